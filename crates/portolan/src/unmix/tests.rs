//! Tests of unmixing as a whole, and the measurements behind its defaults.

use super::*;
use simulated::{Simulated, add_noise, simulate};

/// Error of SLFs in dB after matching emitters by PSD and removing each one's level: over all
/// entries, and over those that make up a tenth of some band.
fn error_db(truth: &Simulated, found: &Unmixed) -> (f64, f64) {
    let emitters = truth.psd.nrows();
    let mut pairs: Vec<(f64, usize, usize)> = (0..emitters * emitters)
        .map(|p| (p / emitters, p % emitters))
        .map(|(i, j)| (truth.psd.row(i).dot(&found.psd.row(j)), i, j))
        .collect();
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (mut left, mut right) = (vec![true; emitters], vec![true; emitters]);
    let (mut all, mut strong) = (Vec::new(), Vec::new());
    for (_, i, j) in pairs {
        if !(left[i] && right[j]) {
            continue;
        }
        (left[i], right[j]) = (false, false);
        let ratio = |n: usize| {
            let (is, was) = (found.slf_at_sensors[[n, j]], truth.slf[[n, i]]);
            10.0 * (is.max(1e-30) / was).log10()
        };
        let mut sorted: Vec<f64> = (0..truth.slf.nrows()).map(ratio).collect();
        sorted.sort_by(f64::total_cmp);
        let level = sorted[sorted.len() / 2];
        for n in 0..truth.slf.nrows() {
            let error = (ratio(n) - level).clamp(-30.0, 30.0);
            all.push(error * error);
            let share =
                |k: usize| truth.slf[[n, i]] * truth.psd[[i, k]] / (truth.power[[n, k]] + 1e-6);
            if (0..truth.psd.ncols()).map(share).fold(0.0, f64::max) > 0.1 {
                strong.push(error * error);
            }
        }
    }
    let rms = |v: &[f64]| (v.iter().sum::<f64>() / v.len().max(1) as f64).sqrt();
    (rms(&all), rms(&strong))
}

#[test]
#[ignore = "a measurement: run with --ignored --nocapture"]
fn measure_unmixing() {
    let plain = UnmixOptions { exact: false, polish_rounds: 0, ..UnmixOptions::default() };
    let polished = UnmixOptions { exact: false, ..UnmixOptions::default() };
    let best = UnmixOptions::default();
    println!("R  N    readings  method    all dB  strong dB  residual  ms (16 seeds)");
    for (emitters, sensors) in [(4, 410), (4, 205), (4, 82), (4, 41), (8, 410), (8, 82)] {
        for (kind, snr) in [("exact", None), ("30 dB", Some(30.0)), ("gaps", Some(1e3))] {
            for (name, options) in [("hals", plain), ("polished", polished), ("best", best)] {
                let (mut all, mut strong, mut residual, mut time) = (0.0, 0.0, 0.0, 0.0);
                for seed in 0..16 {
                    let truth = simulate(sensors, emitters, 64, seed);
                    let mut power = match snr {
                        Some(snr) if kind != "gaps" => add_noise(&truth.power, snr, seed),
                        _ => truth.power.clone(),
                    };
                    if kind == "gaps" {
                        power
                            .iter_mut()
                            .enumerate()
                            .filter(|(i, _)| (i * 7919) % 1009 < 3)
                            .for_each(|(_, v)| *v = f64::NAN);
                    }
                    let start = std::time::Instant::now();
                    let found = unmix(&power, emitters, &options, seed).unwrap();
                    time += start.elapsed().as_secs_f64() * 1e3 / 16.0;
                    let error = error_db(&truth, &found);
                    all += error.0 / 16.0;
                    strong += error.1 / 16.0;
                    residual += found.residual / 16.0;
                }
                println!(
                    "{emitters}  {sensors:4} {kind}  {name:8} {all:8.3} {strong:8.3} {residual:10.2e} {time:6.1}"
                );
            }
        }
    }
}

#[test]
#[ignore = "lab"]
fn lab_shear() {
    use super::cone::Pair;
    for (emitters, sensors) in [(4, 410), (4, 82), (4, 41), (8, 82)] {
        let mut rows = vec![];
        for seed in 0..16 {
            let truth = simulate(sensors, emitters, 64, seed);
            let power: Vec<f64> = truth.power.iter().copied().collect();
            let (row, col) = equilibrate(&power, 64, 0.0);
            let mut data = power.clone();
            scale(&mut data, &row, &col);
            let sub = Subspace::find(&data, 64, emitters).unwrap();
            let Some(found) = sub.factor(&data, 4, seed) else {
                rows.push([f64::NAN; 6]);
                continue;
            };
            for unscaled in [false, true] {
                let get = |pair: &Pair| {
                    let slf = Array2::from_shape_fn((sensors, emitters), |(n, r)| {
                        pair.slf[r * sensors + n] / row[n]
                    });
                    let psd = Array2::from_shape_fn((emitters, 64), |(r, k)| {
                        pair.psd[r * 64 + k] / col[k]
                    });
                    let norm: Vec<f64> = psd.rows().into_iter().map(|c| c.dot(&c).sqrt()).collect();
                    let psd = Array2::from_shape_fn((emitters, 64), |(r, k)| psd[[r, k]] / norm[r]);
                    error_db(&truth, &Unmixed { slf_at_sensors: slf, psd, residual: 0.0 }).0
                };
                let run = |p: &Pair| {
                    let mut p = Pair { rank: emitters, psd: p.psd.clone(), slf: p.slf.clone() };
                    if unscaled {
                        p.slf.iter_mut().enumerate().for_each(|(i, s)| *s /= row[i % sensors]);
                        p.psd.iter_mut().enumerate().for_each(|(i, s)| *s /= col[i % 64]);
                    }
                    let l = p.likeliest();
                    if unscaled {
                        p.slf.iter_mut().enumerate().for_each(|(i, s)| *s *= row[i % sensors]);
                        p.psd.iter_mut().enumerate().for_each(|(i, s)| *s *= col[i % 64]);
                    }
                    (l, get(&p))
                };
                let t = Pair {
                    rank: emitters,
                    psd: (0..emitters * 64)
                        .map(|i| truth.psd[[i / 64, i % 64]] * col[i % 64])
                        .collect(),
                    slf: (0..emitters * sensors)
                        .map(|i| truth.slf[[i % sensors, i / sensors]] * row[i % sensors])
                        .collect(),
                };
                let a = run(&t);
                let b = run(&found);
                if unscaled {
                    rows.last_mut().map(|r: &mut [f64; 6]| {
                        r[3] = a.1;
                        r[4] = b.1;
                        r[5] = b.0 - a.0;
                    });
                } else {
                    rows.push([a.1, b.1, b.0 - a.0, 0.0, 0.0, 0.0]);
                }
            }
        }
        println!("R {emitters} N {sensors}");
        let ok: Vec<_> = rows.iter().filter(|r| !r[0].is_nan()).collect();
        println!(
            "ok {}, mean {:.2?}",
            ok.len(),
            (0..6)
                .map(|i| ok.iter().map(|r| r[i]).sum::<f64>() / ok.len() as f64)
                .collect::<Vec<_>>()
        );
        for r in rows.iter().take(8) {
            println!("  {r:.2?}");
        }
    }
}
