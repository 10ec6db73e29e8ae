//! Counts of parameters, gradients, and maps from every kind of readings.

use super::*;
use crate::methods::tests::{self, Estimate};
use portolan::RadioMap;
use portolan::quantiser::{MISSING_LEVEL, Quantiser};
use portolan::score::score;
use portolan::sense::{Quantising, Sensing, SensorLayout, sense};
use portolan::simulate::{Scenario, simulate};
use portolan_decoder::reference;

fn scene(rows: usize, cols: usize, bands: usize, emitters: usize) -> RadioMap {
    let grid = Grid::new(rows, cols, 1.0).unwrap();
    simulate(&Scenario { bands, emitters, seed: 2, ..Scenario::new(grid) }).unwrap()
}

fn run(settings: &[(&str, &str)], readings: &Readings) -> Result<Estimate, EstimateError> {
    tests::estimate("naive_unn", settings, readings, &Context::default())
}

#[test]
fn the_budget_sets_the_channels_as_in_the_papers_table() {
    let readings =
        sense(&scene(64, 64, 64, 2), &Sensing::exact(SensorLayout::Count(40), 1)).unwrap();
    for (budget, count) in
        [(1080, 1080), (3510, 3510), (4810, 4158), (4860, 4860), (6426, 6426), (30240, 30240)]
    {
        let settings = [("parameters", &budget.to_string()[..]), ("iterations", "1")];
        let estimate = run(&settings, &readings).unwrap();
        assert_eq!(estimate.fitted("parameters"), Some(f64::from(count)));
    }
    let error = run(&[("parameters", "99")], &readings).err().unwrap().to_string();
    assert!(error.contains("parameters=108"), "{error}");
    assert!(run(&[("parameters", "2000"), ("channels", "4")], &readings).is_err());
}

/// The gradient along a random direction, against differences of the plain decoder in double
/// precision; `loss` is that of entry (band, sensor) with a mean.
fn gradient_is_the_slope<L: Likelihood<f32>>(
    likelihood: L,
    targets: &[L::Target],
    loss: impl Fn(usize, f64) -> f64,
) {
    let shape = Shape { channels: 4, outputs: 5, ..Shape::default() };
    let decoder = Decoder::new(&shape, 34, 14, 1).unwrap();
    let cells: Vec<usize> = (0..targets.len() / 5).map(|i| i * 37 % 476).collect();
    let readout = decoder.readout(&cells).unwrap();
    let at = random_network(&decoder, Draw::Xavier, &mut stream(4, 0));
    let along = random_network(&decoder, Draw::Uniform, &mut stream(5, 0));
    let mut fit = NaiveFit::new(&decoder, &readout, likelihood, targets.to_vec(), 1e-3);
    fit.evaluate(&at, 0.1, 0.01);
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>();
    let expected =
        dot(&fit.gradient.params, &along.params) + dot(&fit.gradient.latents, &along.latents);
    let objective = |h: f64| {
        let step = |x: &[f32], d: &[f32]| -> Vec<f64> {
            x.iter().zip(d).map(|(x, d)| f64::from(*x) + h * f64::from(*d)).collect()
        };
        let (params, latent) = (step(&at.params, &along.params), step(&at.latents, &along.latents));
        let drawn = reference::forward(&decoder, &params, &latent).slf;
        let entries = (0..targets.len()).map(|i| {
            let x = drawn[i / cells.len() * 476 + cells[i % cells.len()]];
            loss(i, (x + 1e-3).ln())
        });
        let square = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>();
        entries.sum::<f64>() + 0.1 * square(&latent) + 0.01 * square(&params)
    };
    let found = (objective(1e-6) - objective(-1e-6)) / 2e-6;
    assert!((found - expected).abs() < 1e-3 * expected.abs().max(1.0), "{found} {expected}");
}

#[test]
fn gradients_are_finite_differences() {
    let mut targets: Vec<f32> = (0..5 * 30).map(|i| -4.0 + (i * 29 % 31) as f32 / 10.0).collect();
    targets[17] = f32::NAN;
    let squared = SquaredError::plain();
    gradient_is_the_slope(squared, &targets, |i, mean| {
        squared.entry(f64::from(targets[i]), mean).loss
    });
    let probit = Probit::new(&Quantiser::new(vec![-4.0, -2.0, -1.0], 0.5, 1e-3).unwrap());
    let mut levels: Vec<u8> = (0..5 * 30).map(|i| (i * 29 % 31 % 4) as u8).collect();
    levels[3] = MISSING_LEVEL;
    gradient_is_the_slope(probit.clone(), &levels, |i, mean| probit.entry(levels[i], mean).loss);
}

#[test]
fn levels_gaps_and_odd_grids_give_a_map() {
    let truth = scene(34, 14, 7, 1);
    let exact = Sensing::exact(SensorLayout::Fraction(0.4), 5);
    let quantising = Some(Quantising { bits: 3, edges: None, sigma: 0.3 });
    for sensing in
        [Sensing { gaps: 0.2, ..exact.clone() }, Sensing { quantising, gaps: 0.1, ..exact }]
    {
        let readings = sense(&truth, &sensing).unwrap();
        let estimate = run(&[], &readings).unwrap();
        assert!(estimate.map.factors().is_none());
        let rmse = score(&estimate.map, &truth, None).unwrap().rmse_db;
        assert!(rmse < 4.0, "{rmse} dB, {sensing:?}");
    }
}

#[test]
fn every_option_counts() {
    let readings =
        sense(&scene(24, 20, 6, 2), &Sensing::exact(SensorLayout::Count(60), 5)).unwrap();
    let quick = ("iterations", "20");
    let plain = run(&[quick], &readings).unwrap();
    for (key, value) in [
        ("parameters", "500"),
        ("channels", "3"),
        ("start", "uniform"),
        ("tolerance", "0.9"),
        ("output", "exp"),
        ("lr_network", "0.01"),
        ("lambda_latent", "1"),
        ("lambda_network", "1"),
        ("offset", "0.001"),
        ("blocks", "2"),
        ("kernel", "4"),
        ("upsample", "none"),
        ("norm", "none"),
        ("pad", "zero"),
    ] {
        let other = run(&[quick, (key, value)], &readings).unwrap();
        assert_ne!(plain.map, other.map, "{key}={value} changes nothing");
    }
}

#[test]
fn threads_do_not_change_a_bit_and_every_cell_may_be_read() {
    let truth = scene(64, 64, 16, 2);
    let readings = sense(&truth, &Sensing::exact(SensorLayout::Fraction(1.0), 5)).unwrap();
    assert_eq!(readings.sensors(), 4096);
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| run(&[("iterations", "60"), ("parameters", "6000")], &readings).unwrap())
    };
    let (one, two) = (on(1), on(2));
    assert_eq!(one.map, two.map);
    assert_eq!(one.loss_trace, two.loss_trace);
    assert!(one.loss_trace[59] < 0.5 * one.loss_trace[0]);
}
