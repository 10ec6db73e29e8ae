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

/// PSDs and SLFs with silent bands: emitter r is alone in bands 3 r to 3 r + 2.
fn separable(sensors: usize, emitters: usize, bands: usize) -> Simulated {
    let mut truth = simulate(sensors, emitters, bands, 11);
    for ((r, k), c) in truth.psd.indexed_iter_mut() {
        if k < 3 * emitters && k / 3 != r {
            *c = 0.0;
        } else {
            *c += 0.1 + ((r * 5 + k * 3) % 7) as f64 * 0.05;
        }
    }
    truth.power = truth.slf.dot(&truth.psd);
    truth
}

fn matched(truth: &Array2<f64>, found: &Array2<f64>) -> Vec<usize> {
    let unit = |row: ndarray::ArrayView1<'_, f64>| &row / row.dot(&row).sqrt();
    let nearest = |row| {
        let row = unit(row);
        let scores: Vec<f64> = found.rows().into_iter().map(|c| row.dot(&unit(c))).collect();
        (0..scores.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap()
    };
    truth.rows().into_iter().map(nearest).collect()
}

#[test]
fn separable_readings_are_unmixed_exactly() {
    for (sensors, emitters) in [(40, 2), (41, 4), (200, 6)] {
        let truth = separable(sensors, emitters, 40);
        let found = unmix(&truth.power, emitters, &UnmixOptions::default(), 0).unwrap();
        assert!(found.residual < 1e-9, "{}", found.residual);
        let order = matched(&truth.psd, &found.psd);
        for (r, &q) in order.iter().enumerate() {
            let norm = truth.psd.row(r).dot(&truth.psd.row(r)).sqrt();
            for k in 0..40 {
                let (is, was) = (found.psd[[q, k]], truth.psd[[r, k]] / norm);
                assert!((is - was).abs() < 1e-6, "emitter {r}, band {k}: {is} {was}");
            }
            for n in 0..sensors {
                let (is, was) = (found.slf_at_sensors[[n, q]], truth.slf[[n, r]] * norm);
                assert!((is - was).abs() < 1e-6 * was, "emitter {r}, sensor {n}: {is} {was}");
            }
        }
    }
}

#[test]
fn exact_readings_are_fitted_exactly_and_well() {
    for (sensors, most_db) in [(205, 2.5), (41, 5.0)] {
        for seed in 0..3 {
            let truth = simulate(sensors, 4, 64, seed);
            let found = unmix(&truth.power, 4, &UnmixOptions::default(), seed).unwrap();
            assert!(found.residual < 1e-8, "{}", found.residual);
            let (all, strong) = error_db(&truth, &found);
            assert!(all < most_db && strong < most_db, "{sensors} {seed}: {all} {strong}");
        }
    }
}

#[test]
fn the_order_of_sensors_and_the_unit_do_not_matter() {
    let truth = simulate(60, 3, 40, 4);
    let noisy = add_noise(&truth.power, 50.0, 1);
    let base = unmix(&noisy, 3, &UnmixOptions::default(), 7).unwrap();
    // A power of two, so that not even rounding differs; the floor scales along.
    let floor = quiet_offset(noisy.iter().copied());
    let fixed = UnmixOptions { floor: Some(floor * 1024.0), ..UnmixOptions::default() };
    let scaled = unmix(&noisy.mapv(|x| x * 1024.0), 3, &fixed, 7).unwrap();
    for (a, b) in base.psd.iter().zip(&scaled.psd) {
        assert!((a - b).abs() < 1e-9, "{a} {b}");
    }
    for (a, b) in base.slf_at_sensors.iter().zip(&scaled.slf_at_sensors) {
        assert!((a * 1024.0 - b).abs() <= 1e-9 * b.abs(), "{a} {b}");
    }
}

#[test]
fn the_order_of_emitters_does_not_matter() {
    let truth = simulate(60, 3, 40, 4);
    let mut other = Array2::zeros(truth.power.dim());
    for r in [2, 0, 1] {
        for ((n, k), x) in other.indexed_iter_mut() {
            *x += 3.0 * truth.slf[[n, r]] * (truth.psd[[r, k]] / 3.0);
        }
    }
    let options = UnmixOptions::default();
    let (a, b) =
        (unmix(&truth.power, 3, &options, 0).unwrap(), unmix(&other, 3, &options, 0).unwrap());
    for (x, y) in a.slf_at_sensors.iter().zip(&b.slf_at_sensors) {
        assert!((x - y).abs() < 1e-3 * y.abs(), "{x} {y}");
    }
}

#[test]
fn gaps_are_borne() {
    let truth = simulate(120, 3, 48, 9);
    let mut power = truth.power.clone();
    for (i, x) in power.iter_mut().enumerate() {
        if (i * 7919) % 101 < 15 {
            *x = f64::NAN;
        }
    }
    let found = unmix(&power, 3, &UnmixOptions::default(), 0).unwrap();
    assert!(found.residual < 0.02, "{}", found.residual);
    let model = found.slf_at_sensors.dot(&found.psd);
    let missing = power.indexed_iter().filter(|(_, x)| x.is_nan());
    let errors: Vec<f64> = missing
        .map(|(at, _)| ((model[at] + 1e-6) / (truth.power[at] + 1e-6)).ln().powi(2))
        .collect();
    let rms = (errors.iter().sum::<f64>() / errors.len() as f64).sqrt();
    assert!(rms < 0.1, "{rms}");
}

#[test]
fn odd_readings_give_finite_factors_or_a_clear_error() {
    let options = UnmixOptions::default();
    let ones = Array2::from_elem((6, 5), 2.0);
    let refuse = |power: &Array2<f64>, emitters: usize| {
        unmix(power, emitters, &options, 0).unwrap_err().to_string()
    };
    assert!(refuse(&ones, 6).contains("6 sensors in 5 bands: ask for 1 to 5"));
    assert!(refuse(&ones, 0).contains("ask for 1 to 5"));
    assert!(refuse(&Array2::zeros((3, 3)), 1).contains("zero"));
    assert!(refuse(&Array2::from_elem((3, 3), -1.0), 1).contains("sensor 0, band 0"));
    let mut silent = simulate(30, 2, 20, 1).power;
    silent.column_mut(4).fill(0.0);
    silent.row_mut(7).fill(0.0);
    silent.row_mut(8).fill(f64::NAN);
    let first = silent.row(0).to_owned();
    (10..20).for_each(|n| silent.row_mut(n).assign(&first));
    let single = simulate(30, 1, 16, 2).power.select(ndarray::Axis(1), &[3]);
    let tiny = ones.mapv(|x| x * 1e-290);
    for (power, emitters) in
        [(&ones, 1), (&ones, 3), (&silent, 2), (&silent, 5), (&single, 1), (&tiny, 2)]
    {
        let found = unmix(power, emitters, &options, 0).unwrap();
        let values = found.slf_at_sensors.iter().chain(&found.psd);
        assert!(values.clone().all(|v| v.is_finite() && *v >= 0.0), "{emitters}");
        for psd in found.psd.rows() {
            assert!((psd.dot(&psd) - 1.0).abs() < 1e-9);
        }
        assert!(found.residual < 0.1, "{emitters}: {}", found.residual);
        assert_eq!(found, unmix(power, emitters, &options, 0).unwrap());
    }
}

#[test]
#[ignore = "a measurement: run with --ignored --nocapture"]
fn measure_unmixing() {
    let plain = UnmixOptions { exact: false, polish_rounds: 0, ..UnmixOptions::default() };
    let polished = UnmixOptions { exact: false, ..UnmixOptions::default() };
    let best = UnmixOptions::default();
    println!("R  N    readings  method    all dB  strong dB  residual  ms (16 seeds)");
    for (emitters, sensors) in [(4, 410), (4, 205), (4, 82), (4, 41), (8, 82)] {
        for (kind, snr) in
            [("exact", None), ("20 dB", Some(20.0)), ("40 dB", Some(40.0)), ("gaps", Some(1e3))]
        {
            for (name, options) in [("hals", plain), ("polished", polished), ("best", best)] {
                let (mut all, mut strong, mut residual, mut time) = (0.0, 0.0, 0.0, 0.0);
                // Seeds that no default was chosen on.
                for seed in 100..116 {
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
