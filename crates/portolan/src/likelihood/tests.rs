//! Both likelihoods against golden values and laws.

use proptest::prelude::*;

use super::{EntryLoss, Likelihood, Probit, SquaredError};
use crate::fixture;
use crate::quantiser::{AUTHORS_EDGES, Quantiser};

fn authors(sigma: f64) -> Probit {
    Probit::new(&Quantiser::new(AUTHORS_EDGES.to_vec(), sigma, 1e-6).unwrap())
}

#[test]
fn probit_agrees_with_mpmath() {
    let golden = fixture::load("probit");
    let edges = golden["edges"].1.iter().copied().filter(|e| e.is_finite()).collect();
    let probit = Probit::new(&Quantiser::new(edges, golden["sigma"].1[0], 1e-6).unwrap());
    assert_eq!(probit.sigma(), golden["sigma"].1[0]);
    let bins = golden["edges"].1.len() - 1;
    let means = &golden["mu"].1;
    assert_eq!(golden["log_likelihood"].0, [means.len(), bins]);
    for (i, &mean) in means.iter().enumerate() {
        for level in 0..bins {
            let (log_probability, slope) = probit.log_probability(level as u8, mean);
            let expected = golden["log_likelihood"].1[i * bins + level];
            let slope_expected = golden["gradient"].1[i * bins + level];
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-10 * b.abs();
            assert!(
                close(log_probability, expected),
                "mean {mean}, level {level}: {log_probability} {expected}"
            );
            assert!(close(slope, slope_expected), "{mean} {level}: {slope} {slope_expected}");
        }
    }
}

#[test]
fn every_bin_is_finite_everywhere() {
    for sigma in [0.0, 1e-3, 1.7, 40.0] {
        let probit = authors(sigma);
        for level in 0..8 {
            for mean in [-1e300, -1e8, -700.0, -11.35, -9.0, 0.0, 55.0, 1e9, f64::MAX] {
                let score: EntryLoss<f64> = probit.entry(level, mean);
                assert!(score.loss.is_finite() && score.loss >= 0.0, "{sigma} {level} {mean}");
                assert!(score.gradient.is_finite(), "{sigma} {level} {mean}");
                assert!((0.0..=1e9).contains(&score.curvature));
                assert!(probit.observed_information(level, mean) >= 0.0);
            }
        }
    }
}

#[test]
fn missing_entries_weigh_nothing() {
    let (mut gradient, mut curvature) = ([9.0f32; 3], [9.0f32; 3]);
    let squared = SquaredError::gaussian(0.5);
    let targets = [1.0f32, f32::NAN, 2.0];
    let loss = squared.score_row(&targets, &[1.5, 7.0, 2.0], &mut gradient, &mut curvature);
    assert_eq!((loss, gradient, curvature), (0.5, [2.0, 0.0, 0.0], [4.0, 0.0, 4.0]));
    let probit = authors(1.7);
    let (mut gradient, mut curvature) = ([9.0f64; 2], [9.0f64; 2]);
    let loss = probit.score_row(&[255, 3], &[-9.0, -9.0], &mut gradient, &mut curvature);
    let alone: EntryLoss<f64> = probit.entry(3, -9.0);
    assert_eq!((loss, gradient[0], curvature[0]), (alone.loss, 0.0, 0.0));
    assert_eq!((gradient[1], curvature[1]), (alone.gradient, alone.curvature));
}

#[test]
fn rows_longer_than_the_lanes_agree_with_entries() {
    let targets: Vec<f64> = (0..77).map(|i| f64::from(i % 7) - 3.0).collect();
    let means: Vec<f64> = (0..77).map(|i| f64::from(i % 11) * 0.3).collect();
    let mut gradient = vec![0.0; 77];
    let squared = SquaredError::plain();
    let loss = squared.gradient_row(&targets, &means, &mut gradient);
    let expected: f64 = targets.iter().zip(&means).map(|(y, m)| (y - m) * (y - m)).sum();
    assert!((loss - expected).abs() < 1e-10);
    for ((g, y), m) in gradient.iter().zip(&targets).zip(&means) {
        assert_eq!(*g, 2.0 * (m - y));
    }
}

#[test]
fn probabilities_sum_to_one_and_give_the_fisher_information() {
    for (sigma, mean) in [(1.7, -9.0), (0.05, -9.005), (0.3, -7.7), (5.0, 0.0)] {
        let probit = authors(sigma);
        let (mut sum, mut information) = (0.0, 0.0);
        for level in 0..8 {
            let (log_probability, slope) = probit.log_probability(level, mean);
            sum += log_probability.exp();
            information += log_probability.exp() * slope * slope;
        }
        assert!((sum - 1.0).abs() < 1e-12, "{sigma} {mean}: {sum}");
        let direct = probit.fisher_information(mean);
        assert!((direct - information).abs() < 1e-9 * information, "{direct} {information}");
    }
}

proptest! {
    #[test]
    fn gradients_are_finite_differences(mean in -20.0..5.0f64, level in 0u8..8, y in -9.0..9.0f64) {
        let step = 1e-5;
        let slope = |loss: &dyn Fn(f64) -> f64| (loss(mean + step) - loss(mean - step)) / (2.0 * step);
        let probit = authors(1.7);
        let score: EntryLoss<f64> = probit.entry(level, mean);
        let loss = |m: f64| -probit.log_probability(level, m).0;
        prop_assert!((score.gradient - slope(&loss)).abs() < 1e-7 * (1.0 + score.gradient.abs()));
        let gradient = |m: f64| -probit.log_probability(level, m).1;
        let observed = probit.observed_information(level, mean);
        prop_assert!((observed - slope(&gradient)).abs() < 1e-6);
        let squared = SquaredError::gaussian(0.7);
        let score = squared.entry(y, mean);
        let loss = |m: f64| squared.entry(y, m).loss;
        prop_assert!((score.gradient - slope(&loss)).abs() < 1e-6 * (1.0 + score.gradient.abs()));
    }
}
