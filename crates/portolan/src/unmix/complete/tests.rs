//! Gaps that come back, and noise that is left alone.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::super::simulated::simulate;
use super::*;

fn worst(found: &Array2<f64>, truth: &Array2<f64>) -> f64 {
    let peak = |row: ndarray::ArrayView1<'_, f64>| row.iter().copied().fold(0.0, f64::max);
    let rows = found.rows().into_iter().zip(truth.rows());
    rows.map(|(a, b)| (&a - &b).iter().fold(0.0f64, |w, x| w.max(x.abs())) / peak(b))
        .fold(0.0, f64::max)
}

#[test]
fn entries_missing_at_random_come_back() {
    for (seed, emitters) in [(1, 2), (2, 4), (3, 6)] {
        let truth = simulate(150, emitters, 48, seed).power;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let gappy = truth.mapv(|x| if rng.random_bool(0.3) { f64::NAN } else { x });
        let found = complete(&gappy).expect("there is no noise");
        assert!(worst(&found, &truth) < 1e-8, "{emitters}: {}", worst(&found, &truth));
    }
}

#[test]
fn sensors_that_cover_half_of_the_bands() {
    let truth = simulate(205, 4, 64, 5).power;
    let mut gappy = Array2::from_elem(truth.dim(), f64::NAN);
    for n in 0..truth.nrows() {
        let first = n % 33;
        (first..first + 32).for_each(|k| gappy[[n, k]] = truth[[n, k]]);
    }
    let found = complete(&gappy).expect("there is no noise");
    assert!(worst(&found, &truth) < 1e-7, "{}", worst(&found, &truth));
}

#[test]
fn noise_and_whole_readings_are_left_alone() {
    let truth = simulate(120, 3, 40, 7).power;
    assert_eq!(complete(&truth), None);
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let noisy = truth.mapv(|x| match rng.random_bool(0.3) {
        true => f64::NAN,
        false => x * rng.random_range(0.99..1.01),
    });
    assert_eq!(complete(&noisy), None);
    assert_eq!(complete(&Array2::from_elem((5, 5), f64::NAN)), None);
    // So few readings that a high rank would meet any of them.
    for (sensors, bands, read) in [(20, 12, 8), (12, 10, 7), (12, 10, 5), (16, 8, 5), (30, 6, 4)] {
        for seed in 0..10 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let noise = Array2::from_shape_fn((sensors, bands), |(n, k)| {
                let there = (k + bands - n % bands) % bands < read;
                if there { rng.random_range(0.5..2.0f64) } else { f64::NAN }
            });
            assert_eq!(complete(&noise), None, "{sensors} x {bands}, {read} read");
        }
    }
}
