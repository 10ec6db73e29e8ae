//! Gradients, and maps from every kind of readings.

use rand::RngExt;

use super::*;
use crate::generator::tests::{plain_cells, random_weights};
use crate::methods::tests::{self, Estimate};
use portolan::Quantiser;
use portolan::Scale;
use portolan::estimate::Emitters;
use portolan::score::score;
use portolan::sense::{Quantising, Sensing, SensorLayout, sense};
use portolan::simulate::{Scenario, simulate, stream};
use portolan::{Factors, RadioMap};
use start::random_latent;

fn run(settings: &[(&str, &str)], emitters: usize, readings: &Readings) -> Estimate {
    let context = Context { emitters: Emitters::Count(emitters), seed: 7, ..Context::default() };
    tests::estimate("dgm", settings, readings, &context).unwrap_or_else(|error| panic!("{error}"))
}

/// A map whose SLFs the generator itself drew.
fn drawn(rows: usize, cols: usize, bands: usize, emitters: usize) -> RadioMap {
    let generator = Trained::Broad.generator().unwrap();
    let grid = Grid::new(rows, cols, 1.0).unwrap();
    let cells: Vec<usize> = (0..grid.cells()).collect();
    let sampler = generator.sampler((rows, cols), &cells);
    let mut ws = generator.workspace(emitters);
    let latents = random_latent(emitters * generator.latent_len(), 99, 0);
    generator.forward(&latents, &sampler, &mut ws);
    let slf = ws.ln_slf().iter().map(|f| f64::from(*f).exp()).collect();
    let slf = Array3::from_shape_vec((emitters, rows, cols), slf).unwrap();
    let mut rng = stream(5, 3);
    let psd = Array2::from_shape_fn((emitters, bands), |(r, k)| {
        let bump = (k as f64 - (r as f64 + 0.5) * bands as f64 / emitters as f64) / 3.0;
        (-bump * bump).exp() + rng.random_range(0.0..0.02)
    });
    RadioMap::factored(grid, Factors { slf, psd }, Scale::paper()).unwrap()
}

/// The gradient along a random direction, against differences of plain loops in double precision;
/// `loss` is that of entry (sensor, band) with a mean.
fn gradient_is_the_slope<L: Likelihood<f32>>(
    likelihood: L,
    targets: &[L::Target],
    missing: L::Target,
    loss: impl Fn(usize, f64) -> f64,
) {
    let (emitters, bands, offset, lambda) = (2, 3, 1e-3, 0.1);
    let bytes = random_weights(&[12, 16, 8, 1], 4);
    let generator = Generator::from_safetensors(&bytes).unwrap();
    let cells: Vec<usize> = (0..targets.len() / bands).map(|i| i * 37 % 476).collect();
    let sampler = generator.sampler((34, 14), &cells);
    let misfit = Misfit::new(likelihood, targets, missing, bands, offset);
    let mut fit = DgmFit::new(&generator, &sampler, misfit, emitters, bands);
    let point = |which| random_point(&generator, &sampler, (emitters, bands), -2.0, 1, which);
    let (at, along) = (point(0), point(1));
    fit.evaluate(&at, lambda);
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>();
    let found = dot(&fit.gradient.latents, &along.latents)
        + dot(&fit.gradient.levels, &along.levels)
        + dot(&fit.gradient.psd, &along.psd);
    let objective = |h: f64| -> f64 {
        let step = |x: &[f32], d: &[f32]| -> Vec<f64> {
            x.iter().zip(d).map(|(x, d)| f64::from(*x) + h * f64::from(*d)).collect()
        };
        let latents = step(&at.latents, &along.latents);
        let levels = step(&at.levels, &along.levels);
        let psd = step(&at.psd, &along.psd);
        let drawn: Vec<Vec<f64>> =
            latents.chunks_exact(12).map(|z| plain_cells(&bytes, z, (34, 14))).collect();
        let entries = (0..targets.len()).map(|i| {
            let (cell, k) = (cells[i / bands], i % bands);
            let power = |r: usize| (drawn[r][cell] + levels[r]).exp() * psd[r * padded(bands) + k];
            let x: f64 = (0..emitters).map(power).sum();
            loss(i, (x + offset).ln())
        });
        let square: f64 = latents.iter().map(|z| z * z).sum();
        entries.sum::<f64>() / bands as f64 + lambda * square
    };
    let slope = (objective(1e-6) - objective(-1e-6)) / 2e-6;
    assert!((found - slope).abs() < 1e-3 * slope.abs().max(1.0), "{found} {slope}");
}

#[test]
fn gradients_are_finite_differences() {
    let mut targets: Vec<f32> = (0..3 * 30).map(|i| -4.0 + (i * 29 % 31) as f32 / 10.0).collect();
    targets[17] = f32::NAN;
    let squared = SquaredError::plain();
    gradient_is_the_slope(squared, &targets, f32::NAN, |i, mean| {
        squared.entry(f64::from(targets[i]), mean).loss
    });
    let probit = Probit::new(&Quantiser::new(vec![-4.0, -2.0, -1.0], 0.5, 1e-3).unwrap());
    let mut levels: Vec<u8> = (0..3 * 30).map(|i| (i * 29 % 31 % 4) as u8).collect();
    levels[3] = MISSING_LEVEL;
    gradient_is_the_slope(probit.clone(), &levels, MISSING_LEVEL, |i, mean| {
        probit.entry(levels[i], mean).loss
    });
}

#[test]
fn a_map_of_the_generator_is_found_again() {
    for (emitters, limit) in [(1, 1.0), (3, 1.5)] {
        let truth = drawn(64, 64, 16, emitters);
        let readings = sense(&truth, &Sensing::exact(SensorLayout::Fraction(0.1), 3)).unwrap();
        let estimate = run(&[], emitters, &readings);
        let rmse = score(&estimate.map, &truth, None).unwrap().rmse_db;
        assert!(rmse < limit, "{emitters} emitters: {rmse} dB");
        assert!(estimate.notes.is_empty());
        assert_eq!(estimate.map.emitters().len(), emitters);
    }
}

#[test]
fn levels_gaps_one_band_and_odd_grids_give_a_map() {
    let exact = Sensing::exact(SensorLayout::Fraction(0.3), 5);
    let quantising = Some(Quantising { bits: 3, edges: None, sigma: 0.3 });
    let gaps = Sensing { gaps: 0.2, ..exact.clone() };
    let levels = Sensing { quantising, gaps: 0.1, ..exact.clone() };
    let quick = [("starts", "2"), ("start_iterations", "100"), ("iterations", "200")];
    for (bands, emitters, sensing) in [(7, 2, gaps), (7, 2, levels), (1, 1, exact)] {
        let grid = Grid::new(34, 14, 1.0).unwrap();
        let truth =
            simulate(&Scenario { bands, emitters, seed: 2, ..Scenario::new(grid) }).unwrap();
        let readings = sense(&truth, &sensing).unwrap();
        let estimate = run(&quick, emitters, &readings);
        let rmse = score(&estimate.map, &truth, None).unwrap().rmse_db;
        assert!(rmse < 4.0, "{rmse} dB, {sensing:?}");
        assert!(estimate.notes[0].contains("34 x 14"), "{:?}", estimate.notes);
        assert_eq!(estimate.map.factors().map(|f| f.psd.dim()), Some((emitters, bands)));
    }
}

#[test]
fn every_option_counts() {
    let truth = drawn(24, 20, 6, 2);
    let readings = sense(&truth, &Sensing::exact(SensorLayout::Count(60), 5)).unwrap();
    let quick =
        [("iterations", "20"), ("start_iterations", "20"), ("starts", "6"), ("draws", "20")];
    let plain = run(&quick, 2, &readings);
    for (key, value) in [
        ("weights", "narrow"),
        ("start", "random"),
        ("draws", "9"),
        ("start_iterations", "5"),
        ("iterations", "10"),
        ("tolerance", "0.9"),
        ("lr_latent", "0.01"),
        ("lr_psd", "0.1"),
        ("lambda_latent", "1"),
        ("offset", "0.001"),
    ] {
        let mut settings: Vec<(&str, &str)> =
            quick.iter().copied().filter(|(k, _)| *k != key).collect();
        settings.push((key, value));
        let other = run(&settings, 2, &readings);
        assert_ne!(plain.map, other.map, "{key}={value} changes nothing");
    }
}

#[test]
fn more_starts_find_another_one() {
    // A field that the generator did not draw: the draw nearest to it is not the best to descend.
    let grid = Grid::new(24, 20, 1.0).unwrap();
    let truth = simulate(&Scenario { bands: 6, emitters: 2, ..Scenario::new(grid) }).unwrap();
    let readings = sense(&truth, &Sensing::exact(SensorLayout::Count(60), 5)).unwrap();
    let of = |starts: &'static str| {
        let quick = [("iterations", "20"), ("start_iterations", "20"), ("draws", "20")];
        run(&[&quick[..], &[("starts", starts)]].concat(), 2, &readings).map
    };
    assert_ne!(of("1"), of("6"));
}

#[test]
fn threads_do_not_change_a_bit() {
    let truth = drawn(64, 64, 8, 3);
    let readings = sense(&truth, &Sensing::exact(SensorLayout::Fraction(0.05), 5)).unwrap();
    for start in ["unmixed", "random"] {
        let settings =
            [("iterations", "20"), ("start_iterations", "9"), ("draws", "16"), ("start", start)];
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| run(&settings, 3, &readings))
        };
        let (one, two) = (on(1), on(2));
        assert_eq!(one.map, two.map);
        assert_eq!(one.loss_trace, two.loss_trace);
    }
}
