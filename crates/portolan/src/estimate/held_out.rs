//! How far predictions are from readings that were held out, on the readings' own log scale.
//!
//! Where noise was cut at zero, a quiet reading only says that the power is small: a method that
//! predicts the noise's own mean must not look better than one that predicts the signal.

use ndarray::Array2;

use crate::likelihood::Probit;
use crate::link::{DB_PER_LN, Link, quiet_offset};
use crate::readings::{Readings, Values};
use crate::unmix::{Bounds, judge, level_bounds};

/// Deviation that shadowing between sensors adds to a level's own noise, in ln power.
const UNSEEN: f64 = 0.5;
/// A single sensor or entry moves a comparison by no more than this: a few outliers must not
/// decide.
const MOST_OF_ONE: f64 = 1.0;

/// Judges predictions of some readings.
pub(super) struct Judge<'a> {
    readings: &'a Readings,
    /// Sensors x bands; levels as the power they stand for; NaN = gap.
    power: Array2<f64>,
    link: Link,
    /// No prediction counts as less: one of nothing at all would be infinitely wrong.
    floor: f64,
    bounds: Option<Bounds>,
    probit: Option<Probit>,
}

impl<'a> Judge<'a> {
    pub fn new(readings: &'a Readings) -> Self {
        let power = readings.power();
        let (link, bounds, probit) = match readings.values() {
            // The middle of a bin is what interpolation of levels aims at, not where the power is.
            Values::Levels { levels, quantiser } => {
                let bounds = Some(level_bounds(levels, quantiser));
                (quantiser.link(), bounds, Some(Probit::widened(quantiser, UNSEEN)))
            }
            Values::Power(power) => {
                let powers = power.iter().copied().collect::<Vec<_>>();
                let (link, bounds) = judge(&powers, readings.scale().link());
                (link, bounds, None)
            }
        };
        let floor = if link.offset() > 0.0 { 0.0 } else { quiet_offset(power.iter().copied()) };
        Self { readings, power, link, floor, bounds, probit }
    }

    /// Squared error in ln power; None where there is no reading.
    fn squared(&self, sensor: usize, band: usize, prediction: f64) -> Option<f64> {
        let reading = self.power[[sensor, band]];
        if reading.is_nan() {
            return None;
        }
        let entry = sensor * self.power.ncols() + band;
        let aim = self.bounds.as_ref().map_or(reading, |b| b.nearest(entry, prediction));
        let prediction = prediction.max(self.floor);
        Some((self.link.apply(prediction) - self.link.apply(aim)).powi(2))
    }

    /// Errors in ln power of predictions at some sensors, sensor by sensor and band by band; None where
    /// there is no reading or no prediction.
    pub fn errors(&self, sensors: &[usize], power: &Array2<f64>) -> Vec<Option<f64>> {
        let mut errors = Vec::with_capacity(power.len());
        for (i, &sensor) in sensors.iter().enumerate() {
            for band in 0..power.ncols() {
                let (reading, predicted) = (self.power[[sensor, band]], power[[i, band]]);
                let known = !reading.is_nan() && !predicted.is_nan();
                let off = || self.link.apply(predicted.max(self.floor)) - self.link.apply(reading);
                errors.push(known.then(off));
            }
        }
        errors
    }

    /// Negative log probability of a level.
    fn improbability(&self, sensor: usize, band: usize, prediction: f64) -> Option<f64> {
        let Values::Levels { levels, .. } = self.readings.values() else { return None };
        let probit = self.probit.as_ref()?;
        Some(-probit.log_probability(levels[[sensor, band]], self.link.apply(prediction)).0)
    }
}

/// What predictions of sensor after sensor lost.
#[derive(Clone, Default)]
pub(super) struct Losses {
    squares: f64,
    entries: usize,
    /// Mean loss of every sensor: squared error, or improbability of its levels.
    sensors: Vec<f64>,
}

impl Losses {
    pub fn add(&mut self, judge: &Judge<'_>, sensor: usize, spectrum: &[f64]) {
        let (mut sum, mut entries) = (0.0, 0usize);
        for (band, &prediction) in spectrum.iter().enumerate() {
            let Some(squared) = judge.squared(sensor, band, prediction) else { continue };
            self.squares += squared;
            sum += judge.improbability(sensor, band, prediction).unwrap_or(squared);
            entries += 1;
        }
        self.entries += entries;
        self.sensors.push(sum / entries.max(1) as f64);
    }

    /// One after the other.
    pub fn joined(parts: Vec<Losses>) -> Self {
        parts.into_iter().fold(Losses::default(), |mut all, part| {
            all.squares += part.squares;
            all.entries += part.entries;
            all.sensors.extend(part.sensors);
            all
        })
    }

    /// Infinite where nothing was judged.
    pub fn rmse_db(&self) -> f64 {
        match self.entries {
            0 => f64::INFINITY,
            entries => DB_PER_LN * (self.squares / entries as f64).sqrt(),
        }
    }

    /// By how many standard errors the others lose less, over the same sensors.
    pub fn gain(&self, others: &Losses) -> f64 {
        gain(&self.sensors, &others.sensors)
    }
}

/// By how many standard errors the second losses are below the first, pair by pair.
pub(super) fn gain(first: &[f64], second: &[f64]) -> f64 {
    let count = first.len() as f64;
    let each = || first.iter().zip(second).map(|(a, b)| (a - b).clamp(-MOST_OF_ONE, MOST_OF_ONE));
    let mean = each().sum::<f64>() / count;
    let square = each().map(|d| (d - mean).powi(2)).sum::<f64>() / count;
    mean / (square / count).sqrt().max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantiser::Quantiser;
    use crate::scale::Scale;
    use crate::site::Site;

    fn readings(power: Array2<f64>) -> Readings {
        let sites: Vec<Site> = (0..power.nrows()).map(|i| Site::new(i as f64, i as f64)).collect();
        Readings::new(sites, Values::Power(power), Scale::paper()).unwrap()
    }

    #[test]
    fn a_quiet_reading_is_met_by_any_small_power() {
        // A third of the entries are noise around zero, cut there.
        let noise = |i: usize| if i.is_multiple_of(2) { 0.0 } else { 1e-4 * (1 + i % 5) as f64 };
        let power =
            Array2::from_shape_fn((6, 30), |(n, k)| if k < 20 { 1.0 } else { noise(n * 7 + k) });
        let readings = readings(power);
        let judge = Judge::new(&readings);
        assert_eq!(judge.squared(0, 25, 0.0), judge.squared(0, 25, 1e-5));
        assert!(judge.squared(0, 25, 0.5).unwrap() > 1.0);
        assert!(judge.squared(0, 3, 0.5).unwrap() > 0.3);
    }

    #[test]
    fn a_level_is_met_by_any_power_in_its_bin() {
        let quantiser = Quantiser::new(vec![-2.0, 0.0], 0.0, 1e-6).unwrap();
        let levels = Array2::from_shape_vec((2, 4), vec![0, 1, 2, 255, 1, 1, 1, 1]).unwrap();
        let sites = vec![Site::new(0.0, 0.0), Site::new(1.0, 0.0)];
        let values = Values::Levels { levels, quantiser };
        let readings = Readings::new(sites, values, Scale::paper()).unwrap();
        let judge = Judge::new(&readings);
        let off = |band, logarithm: f64| judge.squared(0, band, logarithm.exp());
        assert_eq!((off(0, -9.0), off(2, 7.0), off(3, 0.0)), (Some(0.0), Some(0.0), None));
        assert!(off(1, -1.9).unwrap() < 1e-9 && off(1, -0.1).unwrap() < 1e-9);
        assert!((off(1, 1.0).unwrap() - 1.0).abs() < 1e-3);
        assert!((off(2, -3.0).unwrap() - 9.0).abs() < 1e-3);
    }

    #[test]
    fn gaps_are_not_judged() {
        let mut power = Array2::from_elem((3, 4), 2.0);
        power[[1, 2]] = f64::NAN;
        let readings = readings(power);
        let judge = Judge::new(&readings);
        let mut losses = Losses::default();
        assert_eq!(losses.rmse_db(), f64::INFINITY);
        losses.add(&judge, 1, &[2.0, 2.0, 9.0, 2.0]);
        assert_eq!(losses.rmse_db(), 0.0);
    }

    #[test]
    fn one_wild_sensor_does_not_decide() {
        let good: Vec<f64> = (0..40).map(|i| 0.1 + 0.01 * f64::from(i % 3)).collect();
        let mut better: Vec<f64> = good.iter().map(|l| l - 0.05).collect();
        better[7] = 90.0;
        assert!(gain(&good, &better) > 0.5);
        assert!(gain(&better, &good) < -0.5);
        assert_eq!(gain(&good, &good), 0.0);
    }
}
