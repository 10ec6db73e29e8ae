//! Accuracy of methods over seeded simulated maps: mean and standard error.
//!
//! ```text
//! cargo run --release -p portolan --example accuracy -- \
//!     [maps=16] [seed=0] [emitters=4] [shadow=6] [xc=90] [fraction=0.1] [side=64] [snr=DB] [gaps=SHARE] [bits=B] \
//!     [assumed=R] METHOD[:key=value,..] ..
//! ```

use std::collections::HashMap;
use std::time::Instant;

use portolan::estimate::{Context, Emitters, Progress, build};
use portolan::score::score;
use portolan::sense::{Layout, Quantising, Sensing, sense};
use portolan::simulate::{Scenario, simulate};
use portolan::{Grid, quantiser};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let (settings, methods): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|a| a.contains('=') && !a.contains(':'));
    let settings: HashMap<_, _> = settings.iter().filter_map(|s| s.split_once('=')).collect();
    let number = |name: &str, default: f64| -> Result<f64, Failure> {
        Ok(settings.get(name).map(|text| text.parse()).transpose()?.unwrap_or(default))
    };
    let side = number("side", 64.0)? as usize;
    let maps = number("maps", 16.0)? as u64;
    let first = number("seed", 0.0)? as u64;
    let emitters = number("emitters", 4.0)? as usize;
    let assumed = number("assumed", emitters as f64)? as usize;
    let fraction = number("fraction", 0.1)?;
    let snr_db = settings.get("snr").map(|s| s.parse()).transpose()?;
    let quantising = match settings.get("bits") {
        None => None,
        Some(bits) => {
            let bits = bits.parse()?;
            let edges = (bits == 3).then(|| quantiser::AUTHORS_EDGES.to_vec());
            Some(Quantising { bits, edges, sigma: number("sigma", 1.7)? })
        }
    };

    let mut figures = vec![Vec::new(); methods.len()];
    for seed in first..first + maps {
        let truth = simulate(&Scenario {
            emitters,
            shadow_db: number("shadow", 6.0)?,
            decorrelation_m: number("xc", 90.0)?,
            seed,
            ..Scenario::new(Grid::new(side, side, 1.0)?)
        })?;
        let sensing = Sensing {
            layout: Layout::Fraction(fraction),
            snr_db,
            gaps: number("gaps", 0.0)?,
            quantising: quantising.clone(),
            seed,
        };
        let readings = sense(&truth, &sensing)?;
        for (method, figures) in methods.iter().zip(&mut figures) {
            let (name, options) = method.split_once(':').unwrap_or((method, ""));
            let options = options.split(',').filter_map(|o| o.split_once('='));
            let estimator = build(name, options.map(|(k, v)| (k.into(), v.into())))?;
            let context =
                Context { emitters: Emitters::Count(assumed), seed, ..Context::default() };
            let start = Instant::now();
            let estimate = estimator.estimate(&readings, &context, &Progress::silent())?;
            let seconds = start.elapsed().as_secs_f64();
            let score = score(&estimate.map, &truth, None)?;
            let ssim = score.ssim.unwrap_or(f64::NAN);
            let coverage = score.coverage_90.unwrap_or(f64::NAN);
            figures.push([ssim, score.rmse_db, seconds, coverage]);
        }
    }
    println!("| method | SSIM | rmse dB | seconds | 90 % coverage |\n|---|---|---|---|---|");
    for (method, figures) in methods.iter().zip(&figures) {
        let mean = |i: usize| figures.iter().map(|f| f[i]).sum::<f64>() / figures.len() as f64;
        let error = |i: usize| {
            let n = figures.len() as f64;
            let variance: f64 = figures.iter().map(|f| (f[i] - mean(i)).powi(2)).sum::<f64>();
            (variance / (n * (n - 1.0).max(1.0))).sqrt()
        };
        println!(
            "| {method} | {:.4} ± {:.4} | {:.3} ± {:.3} | {:.3} | {:.2} |",
            mean(0),
            error(0),
            mean(1),
            error(1),
            mean(2),
            mean(3)
        );
    }
    Ok(())
}
