//! How often the number of emitters is found, by kind of readings and number of sensors:
//! `cargo run --release -p portolan --example emitters_count [maps]`.

#[path = "../src/unmix/simulated.rs"]
#[allow(dead_code)]
mod simulated;

use ndarray::Array2;
use portolan::quantiser::Quantiser;
use portolan::unmix::{count, count_levels};
use simulated::{add_noise, simulate};

fn count_from_bits(power: &Array2<f64>, bits: u32, seed: u64) -> usize {
    let sample: Vec<f64> = power.iter().map(|x| (x + 1e-6).ln()).collect();
    let quantiser = Quantiser::from_quantiles(sample, bits, 0.0, 1e-6).expect("enough values");
    let levels = power.mapv(|x| quantiser.level((x + 1e-6).ln()));
    count_levels(&levels, &quantiser, seed).expect("levels are sound").emitters
}

fn main() {
    let maps: u64 = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(8);
    println!("share of {maps} maps with the right count (mean of the counts found), 64 bands");
    print!("readings  sensors");
    (1..=8).for_each(|r| print!("      R = {r}"));
    println!();
    for kind in ["exact", "20 dB", "3 bits"] {
        for sensors in [410, 205, 82] {
            print!("{kind:8} {sensors:8}");
            for emitters in 1..=8 {
                let (mut right, mut sum) = (0, 0);
                for seed in 0..maps {
                    let truth = simulate(sensors, emitters, 64, 2000 + seed);
                    let count_of = |p: &Array2<f64>| count(p, seed).expect("sound").emitters;
                    let found = match kind {
                        "20 dB" => count_of(&add_noise(&truth.power, 20.0, seed)),
                        "3 bits" => count_from_bits(&truth.power, 3, seed),
                        _ => count_of(&truth.power),
                    };
                    right += usize::from(found == emitters);
                    sum += found;
                }
                let (share, mean) = (right as f64 / maps as f64, sum as f64 / maps as f64);
                print!("  {share:.2} ({mean:.1})");
            }
            println!();
        }
    }
}
