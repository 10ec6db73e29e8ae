//! Predicted beside measured: errors, intervals, calibration.

use ndarray::Array2;
use portolan::Prediction;
use portolan::coverage::chance_above;

/// Half of the 90 % interval of a normal law, in standard deviations.
const NINETY: f64 = 1.645;

/// Intervals whose actual coverage is counted.
pub const NOMINAL: [f64; 10] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95];

/// A held-out reading in dB: measured, predicted, and the spread of a reading there.
#[derive(Clone, Copy, Debug)]
pub struct Compared {
    pub measured: f64,
    pub predicted: f64,
    /// NaN where the method knows none.
    pub spread: f64,
}

/// The reading that a prediction expects, at every entry that was heard.
pub fn compare(measured: &Array2<f64>, found: &Prediction) -> Vec<Compared> {
    let (expected, spread) = found.reading();
    let heard = measured.indexed_iter().filter(|(_, level)| !level.is_nan());
    heard
        .map(|(at, &measured)| Compared {
            measured,
            predicted: decibels(expected[at]),
            spread: spread.map_or(f64::NAN, |spread| spread[at]),
        })
        .collect()
}

pub fn decibels(power: f64) -> f64 {
    10.0 * power.max(f64::MIN_POSITIVE).log10()
}

impl Compared {
    pub fn error(&self) -> f64 {
        self.predicted - self.measured
    }

    /// The smallest central interval that holds the reading, as a probability.
    fn needed(&self) -> f64 {
        2.0 * chance_above(self.error().abs(), self.spread, 0.0) - 1.0
    }
}

/// Root mean square; None without entries.
pub fn rmse_db<'a>(all: impl Iterator<Item = &'a Compared>) -> Option<f64> {
    mean(all.map(|c| c.error().powi(2))).map(f64::sqrt)
}

/// Share of the readings within their 90 % interval; None where there is no spread.
pub fn coverage_90<'a>(all: impl Iterator<Item = &'a Compared>) -> Option<f64> {
    let known = all.filter(|c| !c.spread.is_nan());
    mean(known.map(|c| f64::from(u8::from(c.error().abs() <= NINETY * c.spread))))
}

/// Actual coverage of each of the [`NOMINAL`] intervals; NaN where there is no spread.
pub fn calibration(all: &[Compared]) -> [f64; NOMINAL.len()] {
    let needed: Vec<f64> = all.iter().map(Compared::needed).filter(|p| !p.is_nan()).collect();
    NOMINAL.map(|nominal| {
        let within = needed.iter().filter(|p| **p <= nominal).count();
        within as f64 / needed.len() as f64
    })
}

pub fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0usize, 0.0), |(count, sum), v| (count + 1, sum + v));
    (count > 0).then(|| sum / count as f64)
}

/// Area under the curve of heard against unheard entries when they are called heard from a score
/// on: the chance that a heard entry scores above an unheard one, ties counted half. None where all
/// were heard or none.
pub fn area_under_curve(mut scores: Vec<(f64, bool)>) -> Option<f64> {
    scores.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut below, mut sum, mut heard) = (0.0, 0.0, 0.0);
    for equal in scores.chunk_by(|a, b| a.0 == b.0) {
        let here = equal.iter().filter(|s| s.1).count() as f64;
        let silent = equal.len() as f64 - here;
        sum += here * (below + 0.5 * silent);
        (below, heard) = (below + silent, heard + here);
    }
    (below > 0.0 && heard > 0.0).then(|| sum / (below * heard))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_normal_error_is_calibrated_and_half_the_spread_is_not() {
        // Quantiles of a normal law by bisection of its own distribution.
        let quantile = |p: f64| {
            let (mut low, mut high) = (-9.0, 9.0);
            for _ in 0..80 {
                let middle = 0.5 * (low + high);
                if chance_above(middle, 1.0, 0.0) < p { low = middle } else { high = middle }
            }
            low
        };
        let entry = |i: usize, spread: f64| {
            let error = 3.0 * quantile((i as f64 + 0.5) / 2000.0);
            Compared { measured: -70.0, predicted: -70.0 + error, spread }
        };
        let right: Vec<Compared> = (0..2000).map(|i| entry(i, 3.0)).collect();
        for (nominal, actual) in NOMINAL.iter().zip(calibration(&right)) {
            assert!((nominal - actual).abs() < 2e-3, "{nominal} {actual}");
        }
        assert!((coverage_90(right.iter()).unwrap() - 0.9).abs() < 2e-3);
        assert!((rmse_db(right.iter()).unwrap() - 3.0).abs() < 0.02);
        let narrow: Vec<Compared> = (0..2000).map(|i| entry(i, 1.5)).collect();
        assert!((coverage_90(narrow.iter()).unwrap() - 0.589).abs() < 2e-3);
        let unknown: Vec<Compared> = (0..9).map(|i| entry(i, f64::NAN)).collect();
        assert!(coverage_90(unknown.iter()).is_none() && calibration(&unknown)[3].is_nan());
    }

    #[test]
    fn the_area_counts_pairs_in_the_right_order() {
        let scores = vec![(0.9, true), (0.8, false), (0.7, true), (0.1, false)];
        assert_eq!(area_under_curve(scores), Some(0.75));
        assert_eq!(area_under_curve(vec![(0.5, true), (0.5, false)]), Some(0.5));
        assert_eq!(area_under_curve(vec![(0.5, true)]), None);
    }
}
