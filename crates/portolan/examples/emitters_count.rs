//! How often the number of emitters is found, by kind of readings and number of sensors:
//! `cargo run --release -p portolan --example emitters_count [maps]`.

#[path = "../src/unmix/simulated.rs"]
#[allow(dead_code)]
mod simulated;

use ndarray::Array2;
use portolan::quantiser::Quantiser;
use portolan::unmix::count;
use simulated::{add_noise, simulate};

fn quantised(power: &Array2<f64>) -> Array2<f64> {
    let sample: Vec<f64> = power.iter().map(|x| (x + 1e-6).ln()).collect();
    let quantiser = Quantiser::from_quantiles(sample, 3, 0.0, 1e-6).expect("enough values");
    power.mapv(|x| quantiser.decode(quantiser.level((x + 1e-6).ln())))
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
                    let truth = simulate(sensors, emitters, 64, 1000 + seed);
                    let power = match kind {
                        "20 dB" => add_noise(&truth.power, 20.0, seed),
                        "3 bits" => quantised(&truth.power),
                        _ => truth.power,
                    };
                    let found = count(&power, seed).expect("readings are sound").emitters;
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
