//! How far `field` closes the distance from the better of thin-plate spline and kriging to the
//! oracle, over seeded simulated maps.
//!
//! ```text
//! cargo run --release -p portolan --example field_table -- \
//!     [maps=16] [seed=0] [side=64] [snr=DB] [bits=B] [sigma=1.7] [gaps=SHARE] [emitters=auto] \
//!     [also=METHOD;..] [field=key=value,..] R,SHADOW,XC,FRACTION ..
//! ```

use std::collections::HashMap;
use std::time::Instant;

use portolan::estimate::{Context, Emitters, Progress, build};
use portolan::score::{coverage_unmeasured, score};
use portolan::sense::{Layout, Quantising, Sensing, sense};
use portolan::simulate::{Scenario, simulate};
use portolan::{Estimator, Grid, RadioMap, quantiser};

type Failure = Box<dyn std::error::Error>;

/// Figures of one method on one map.
#[derive(Clone, Copy, Default)]
struct Figures {
    ssim: f64,
    rmse_db: f64,
    coverage: f64,
    seconds: f64,
}

fn main() -> Result<(), Failure> {
    let (settings, rows): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|a| a.contains('='));
    let settings: HashMap<_, _> = settings.iter().filter_map(|s| s.split_once('=')).collect();
    let number = |name: &str, default: f64| -> Result<f64, Failure> {
        Ok(settings.get(name).map(|text| text.parse()).transpose()?.unwrap_or(default))
    };
    let side = number("side", 64.0)? as usize;
    let first = number("seed", 0.0)? as u64;
    let maps = number("maps", 16.0)? as u64;
    let snr_db = settings.get("snr").map(|s| s.parse()).transpose()?;
    let quantising = match settings.get("bits") {
        None => None,
        Some(bits) => {
            let bits = bits.parse()?;
            let edges = (bits == 3).then(|| quantiser::AUTHORS_EDGES.to_vec());
            Some(Quantising { bits, edges, sigma: number("sigma", 1.7)? })
        }
    };
    let options: Vec<(String, String)> = settings
        .get("field")
        .map_or("", |s| s)
        .split(',')
        .filter_map(|o| o.split_once('='))
        .map(|(k, v)| (k.into(), v.into()))
        .collect();
    let also = settings.get("also").map_or("", |s| s).split(';').filter(|m| !m.is_empty());
    let mut names: Vec<String> = vec!["thin_plate".into(), "kriging".into()];
    names.extend(also.map(String::from));
    names.extend(["field".into(), "oracle".into()]);
    let auto = settings.get("emitters") == Some(&"auto");

    println!(
        "| R, shadow dB, Xc m, sensors | {} | share | rmse dB {} | coverage | position cells | field s |",
        names.join(" | "),
        names.join(" / ")
    );
    println!("|---|{}---|---|---|---|---|", "---|".repeat(names.len()));
    for row in &rows {
        let parts = row.split(',').map(str::parse).collect::<Result<Vec<f64>, _>>()?;
        let [emitters, shadow_db, xc, fraction] = parts[..] else {
            return Err(format!("'{row}': expected R,SHADOW,XC,FRACTION").into());
        };
        let mut figures = vec![Vec::new(); names.len()];
        let mut errors = Vec::new();
        for seed in first..first + maps {
            let truth = simulate(&Scenario {
                emitters: emitters as usize,
                shadow_db,
                decorrelation_m: xc,
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
            let assumed = if auto { Emitters::Auto } else { Emitters::Count(emitters as usize) };
            let context = Context { emitters: assumed, seed, truth: Some(&truth), start: None };
            for (name, figures) in names.iter().zip(&mut figures) {
                let estimator: Box<dyn Estimator> = match name.as_str() {
                    "oracle" => build(name, [("decorrelation".into(), xc.to_string())])?,
                    "field" => build("field", options.clone())?,
                    name => build(name, [])?,
                };
                let start = Instant::now();
                let estimate = estimator.estimate(&readings, &context, &Progress::silent())?;
                let seconds = start.elapsed().as_secs_f64();
                let map = &estimate.map;
                let score = score(map, &truth, None)?;
                figures.push(Figures {
                    ssim: score.ssim.unwrap_or(f64::NAN),
                    rmse_db: score.rmse_db,
                    coverage: coverage_unmeasured(map, &truth, score.offset, readings.cells())
                        .unwrap_or(f64::NAN),
                    seconds,
                });
                if name == "field" {
                    if settings.contains_key("each") {
                        estimate.notes.iter().for_each(|note| println!("  {note}"));
                    }
                    errors.extend(position_errors(&truth, &estimate.map));
                }
            }
            if settings.contains_key("each") {
                let line: Vec<_> =
                    figures.iter().map(|f| format!("{:.4}", f[f.len() - 1].ssim)).collect();
                println!("{seed}: {}", line.join(" "));
            }
        }
        let mean = |i: usize, of: fn(&Figures) -> f64| {
            figures[i].iter().map(of).sum::<f64>() / figures[i].len() as f64
        };
        let ssim: Vec<f64> = (0..names.len()).map(|i| mean(i, |f| f.ssim)).collect();
        let rmse: Vec<String> =
            (0..names.len()).map(|i| format!("{:.3}", mean(i, |f| f.rmse_db))).collect();
        let (field, oracle) = (names.len() - 2, names.len() - 1);
        let bar = ssim[0].max(ssim[1]);
        errors.sort_by(f64::total_cmp);
        println!(
            "| {row} | {} | {:.2} | {} | {:.3} | {:.2} | {:.3} |",
            ssim.iter().map(|s| format!("{s:.4}")).collect::<Vec<_>>().join(" | "),
            (ssim[field] - bar) / (ssim[oracle] - bar),
            rmse.join(" / "),
            mean(field, |f| f.coverage),
            errors.get(errors.len() / 2).copied().unwrap_or(f64::NAN),
            mean(field, |f| f.seconds)
        );
    }
    Ok(())
}

/// Distance from every true emitter to the estimate with the most similar PSD, in cells.
fn position_errors(truth: &RadioMap, estimate: &RadioMap) -> Vec<f64> {
    let (Some(t), Some(e)) = (truth.factors(), estimate.factors()) else { return Vec::new() };
    let likeness = |r: usize, q: usize| {
        let (a, b) = (t.psd.row(r), e.psd.row(q));
        a.dot(&b) / (a.dot(&a) * b.dot(&b)).sqrt().max(f64::MIN_POSITIVE)
    };
    (0..t.psd.nrows())
        .filter_map(|r| {
            let q =
                (0..e.psd.nrows()).max_by(|&a, &b| likeness(r, a).total_cmp(&likeness(r, b)))?;
            let ([i, j], [k, l]) = (truth.emitters()[r], *estimate.emitters().get(q)?);
            Some((i - k).hypot(j - l))
        })
        .collect()
}
