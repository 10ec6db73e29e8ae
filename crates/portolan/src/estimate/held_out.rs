//! How far predictions are from readings that were held out, on the readings' own log scale.
//!
//! Where noise was cut at zero, a quiet reading only says that the power is small: a method that
//! predicts the noise's own mean must not look better than one that predicts the signal.

use ndarray::Array2;

use crate::link::{DB_PER_NEPER, Link};
use crate::readings::{Readings, Values};
use crate::unmix::{Bounds, judge};

/// Judges predictions of some readings.
pub(super) struct Judge {
    /// Sensors x bands; levels as the power they stand for; NaN = gap.
    power: Array2<f64>,
    link: Link,
    bounds: Option<Bounds>,
}

impl Judge {
    pub fn new(readings: &Readings) -> Self {
        let power = readings.power();
        let (link, bounds) = match readings.values() {
            Values::Levels { quantiser, .. } => (quantiser.link(), None),
            Values::Power(power) => judge(&power.iter().copied().collect::<Vec<_>>()),
        };
        Self { power, link, bounds }
    }

    /// Squared error in nepers; None where there is no reading.
    pub fn squared(&self, sensor: usize, band: usize, prediction: f64) -> Option<f64> {
        let reading = self.power[[sensor, band]];
        if reading.is_nan() {
            return None;
        }
        let entry = sensor * self.power.ncols() + band;
        let aim = self.bounds.as_ref().map_or(reading, |b| b.nearest(entry, prediction));
        Some((self.link.apply(prediction) - self.link.apply(aim)).powi(2))
    }
}

/// Squared errors added up.
#[derive(Clone, Copy, Default)]
pub(super) struct Errors {
    squares: f64,
    entries: usize,
}

impl Errors {
    pub fn add(&mut self, squared: Option<f64>) {
        if let Some(squared) = squared {
            self.squares += squared;
            self.entries += 1;
        }
    }

    /// Infinite where nothing was judged.
    pub fn rmse_db(&self) -> f64 {
        match self.entries {
            0 => f64::INFINITY,
            entries => DB_PER_NEPER * (self.squares / entries as f64).sqrt(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::{Cell, Grid};

    fn judge_of(power: Array2<f64>) -> Judge {
        let grid = Grid::new(8, 8, 1.0).unwrap();
        let cells = (0..power.nrows()).map(|i| Cell::new(i, i)).collect();
        Judge::new(&Readings::new(grid, cells, Values::Power(power)).unwrap())
    }

    #[test]
    fn a_quiet_reading_is_met_by_any_small_power() {
        // A third of the entries are noise around zero, cut there.
        let noise = |i: usize| if i % 2 == 0 { 0.0 } else { 1e-4 * (1 + i % 5) as f64 };
        let power =
            Array2::from_shape_fn((6, 30), |(n, k)| if k < 20 { 1.0 } else { noise(n * 7 + k) });
        let judge = judge_of(power.clone());
        assert_eq!(judge.squared(0, 25, 0.0), judge.squared(0, 25, 1e-5));
        assert!(judge.squared(0, 25, 0.5).unwrap() > 1.0);
        assert!(judge.squared(0, 3, 0.5).unwrap() > 0.3);
        let mut errors = Errors::default();
        errors.add(judge.squared(0, 3, 1.0));
        assert_eq!(errors.rmse_db(), 0.0);
    }

    #[test]
    fn gaps_are_not_judged() {
        let mut power = Array2::from_elem((3, 4), 2.0);
        power[[1, 2]] = f64::NAN;
        let judge = judge_of(power);
        assert_eq!(judge.squared(1, 2, 1.0), None);
        let mut errors = Errors::default();
        errors.add(judge.squared(1, 2, 1.0));
        assert_eq!(errors.rmse_db(), f64::INFINITY);
    }
}
