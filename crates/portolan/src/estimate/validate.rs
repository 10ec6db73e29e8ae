//! How well a method would have predicted sensors that it has not seen.

use super::{Context, Method};
use crate::error::EstimateError;
use crate::link::{DB_PER_LN, Link, quiet_offset};
use crate::model::Prediction;
use crate::progress::Progress;
use crate::readings::Readings;

/// Standard deviations that hold 90 % of a normal distribution.
const NINETY: f64 = 1.645;

/// Predicted less read, in dB, at sensors that the fit had not seen.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Residuals {
    /// Sensor, band and difference of every entry.
    pub entries: Vec<(usize, usize, f64)>,
    /// Entries whose reading lies within the 90 % interval of a reading, and entries that have one.
    covered: (usize, usize),
}

impl Residuals {
    /// Adds what was predicted at some sensors of the readings.
    pub fn add(&mut self, readings: &Readings, sensors: &[usize], prediction: &Prediction) {
        let power = readings.power();
        let link = if power.iter().any(|x| *x == 0.0) { readings.link() } else { Link::LOG };
        let floor = quiet_offset(power.iter().copied());
        let (expected, spread) = prediction.reading();
        for (i, &sensor) in sensors.iter().enumerate() {
            for band in 0..readings.bands() {
                let reading = power[[sensor, band]];
                if reading.is_nan() {
                    continue;
                }
                let predicted = expected[[i, band]].max(floor);
                let error = DB_PER_LN * (link.apply(predicted) - link.apply(reading));
                self.entries.push((sensor, band, error));
                if let Some(spread) = spread {
                    self.covered.1 += 1;
                    self.covered.0 += usize::from(error.abs() <= NINETY * spread[[i, band]]);
                }
            }
        }
    }

    fn mean(&self, of: impl Fn(f64) -> f64) -> Option<f64> {
        let count = self.entries.len();
        (count > 0).then(|| self.entries.iter().map(|e| of(e.2)).sum::<f64>() / count as f64)
    }

    /// Root mean square; None without entries.
    pub fn rmse_db(&self) -> Option<f64> {
        self.mean(|e| e * e).map(f64::sqrt)
    }

    /// Mean absolute difference.
    pub fn mae_db(&self) -> Option<f64> {
        self.mean(f64::abs)
    }

    /// Median absolute difference.
    pub fn median_abs_db(&self) -> Option<f64> {
        let mut sizes: Vec<f64> = self.entries.iter().map(|e| e.2.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        sizes.get(sizes.len() / 2).copied()
    }

    /// Share of the readings within their 90 % interval; None where there is no spread.
    pub fn coverage_90(&self) -> Option<f64> {
        (self.covered.1 > 0).then(|| self.covered.0 as f64 / self.covered.1 as f64)
    }
}

/// The sensors outside a fold, as readings to fit; None where a band would be left without any.
pub fn without(readings: &Readings, fold: &[usize]) -> Option<Readings> {
    let held: std::collections::HashSet<usize> = fold.iter().copied().collect();
    let kept: Vec<usize> = (0..readings.sensors()).filter(|s| !held.contains(s)).collect();
    readings.subset(&kept).ok()
}

/// Fits to the sensors outside each fold and compares with those inside. Folds that would leave a
/// band without readings are passed over.
///
/// ```
/// use portolan::estimate::{Kriging, Split, folds, validate};
/// # use ndarray::Array2;
/// # use portolan::{Context, Progress, Readings, Scale, Site, Values};
/// # let sites: Vec<Site> = (0..30).map(|i| Site::new(f64::from(i * 7 % 30), f64::from(i))).collect();
/// # let power = Array2::from_shape_fn((30, 1), |(i, _)| 1e-7 * (1.0 + i as f64));
/// # let readings = Readings::new(sites, Values::Power(power), Scale::Absolute)?;
/// let dealt = folds(readings.sites(), 5, Split::Random, 0);
/// let method = Kriging::default();
/// let found = validate(&readings, &method, &dealt, &Context::default(), &Progress::silent())?;
/// assert!(found.rmse_db().unwrap() < 5.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn validate(
    readings: &Readings,
    method: &dyn Method,
    folds: &[Vec<usize>],
    context: &Context<'_>,
    progress: &Progress<'_>,
) -> Result<Residuals, EstimateError> {
    let mut residuals = Residuals::default();
    for (i, fold) in folds.iter().enumerate() {
        let share = |i: usize| i as f64 / folds.len() as f64;
        let part = progress.part(share(i)..share(i + 1));
        let Some(rest) = without(readings, fold) else { continue };
        let model = method.fit(&rest, context, &part)?;
        let sites: Vec<_> = fold.iter().map(|&s| readings.sites()[s]).collect();
        residuals.add(readings, fold, &model.predict(&sites, &part.quiet())?);
    }
    Ok(residuals)
}
