//! Cross-validation of a method on held-out sensors.

use super::{Context, Method, Transmitter};
use crate::error::EstimateError;
use crate::gaussian_process::Neighbours;
use crate::link::{DB_PER_LN, Link, quiet_offset};
use crate::model::{Model, Prediction};
use crate::points::Points;
use crate::progress::Progress;
use crate::readings::Readings;
use crate::site::{Site, by_place};

/// Standard deviations that hold 90 % of a normal distribution.
const NINETY: f64 = 1.645;

/// Predicted minus read, in dB, at held-out sensors.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Residuals {
    /// Sensor, band and difference of every entry.
    pub entries: Vec<(usize, usize, f64)>,
    /// Of every entry with an error bar: metres to the nearest reading that the fit had, and whether
    /// the reading lies within the 90 % interval of a reading.
    covered: Vec<(f64, bool)>,
}

/// Coverage of the 90 % interval of readings whose nearest neighbour is about equally far.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct DistanceCoverage {
    /// The least distance to the nearest reading, in metres.
    pub from_m: f64,
    /// The largest.
    pub to_m: f64,
    /// Entries in between.
    pub entries: usize,
    /// Share of them within their interval.
    pub coverage_90: f64,
}

impl Residuals {
    /// Adds what was predicted at the sensors of a fold.
    pub fn add(&mut self, readings: &Readings, fold: &Fold, prediction: &Prediction) {
        let power = readings.power();
        let link = if power.iter().any(|x| *x == 0.0) { readings.link() } else { Link::LOG };
        let floor = quiet_offset(power.iter().copied());
        let (expected, spread) = prediction.reading();
        for (i, &sensor) in fold.sensors.iter().enumerate() {
            for (column, &band) in fold.bands.iter().enumerate() {
                let reading = power[[sensor, band]];
                if reading.is_nan() {
                    continue;
                }
                let predicted = expected[[i, column]].max(floor);
                let error = DB_PER_LN * (link.apply(predicted) - link.apply(reading));
                self.entries.push((sensor, band, error));
                if let Some(spread) = spread {
                    let within = error.abs() <= NINETY * spread[[i, column]];
                    self.covered.push((fold.distances_m[i], within));
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
        share(self.covered.iter())
    }

    /// Coverage by distance to the nearest reading, in so many parts of about equally many entries,
    /// nearest first. Fewer parts where distances are equal; none where there is no spread.
    pub fn coverage_by_distance(&self, parts: usize) -> Vec<DistanceCoverage> {
        let mut all = self.covered.clone();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut found = Vec::new();
        let mut from = 0;
        for part in 1..=parts {
            let mut to = part * all.len() / parts;
            // Equal distances stay together.
            while to > from && to < all.len() && all[to].0 == all[to - 1].0 {
                to += 1;
            }
            if let Some(coverage_90) = share(all[from.min(to)..to].iter()) {
                let (from_m, to_m) = (all[from].0, all[to - 1].0);
                found.push(DistanceCoverage { from_m, to_m, entries: to - from, coverage_90 });
                from = to;
            }
        }
        found
    }

    /// Entries with an error bar.
    pub fn with_bars(&self) -> usize {
        self.covered.len()
    }
}

/// Share of the entries within their interval.
fn share<'a>(entries: impl ExactSizeIterator<Item = &'a (f64, bool)>) -> Option<f64> {
    let count = entries.len();
    (count > 0).then(|| entries.filter(|e| e.1).count() as f64 / count as f64)
}

/// Sensors that are held out, and what is left to fit.
pub struct Fold {
    sensors: Vec<usize>,
    /// The bands that the others read; what is left has no other.
    bands: Vec<usize>,
    /// Where and when the held-out readings were taken.
    pub points: Points,
    /// How far the nearest of the others is from each.
    distances_m: Vec<f64>,
    /// The other sensors' readings.
    pub rest: Readings,
    /// The known transmitters of the bands that are left.
    pub transmitters: Vec<Transmitter>,
}

impl Fold {
    /// Holds some sensors out, and the bands that only they read; None where too little is left.
    pub fn new(readings: &Readings, sensors: &[usize], known: &[Transmitter]) -> Option<Self> {
        let held: std::collections::HashSet<usize> = sensors.iter().copied().collect();
        let kept: Vec<usize> = (0..readings.sensors()).filter(|s| !held.contains(s)).collect();
        let power = readings.power();
        let read = |band: &usize| kept.iter().any(|&sensor| !power[[sensor, *band]].is_nan());
        let bands: Vec<usize> = (0..readings.bands()).filter(read).collect();
        let all = bands.len() == readings.bands();
        let some = (!all).then(|| readings.with_bands(&bands)).transpose().ok()?;
        let number = |of: usize| bands.iter().position(|band| *band == of);
        let transmitters = known.iter().filter_map(|t| match t.band {
            Some(band) => Some(t.in_band(number(band)?)),
            None => Some(*t),
        });
        let rest = some.as_ref().unwrap_or(readings).subset(&kept).ok()?;
        if rest.places() < 2 {
            return None;
        }
        let points = readings.points().select(sensors);
        let index = Neighbours::new(rest.sites());
        let mut near = Vec::new();
        let nearest = |site: &Site| {
            index.nearest(site, 1, &mut near);
            near.first().map_or(f64::INFINITY, |found| rest.sites()[found.1].distance_m(*site))
        };
        Some(Self {
            distances_m: points.sites().iter().map(nearest).collect(),
            points,
            rest,
            transmitters: transmitters.collect(),
            sensors: sensors.to_vec(),
            bands,
        })
    }
}

impl Fold {
    /// What a model of the others says of the held-out readings, each at its own time.
    pub fn predict(
        &self,
        model: &Model,
        progress: &Progress<'_>,
    ) -> Result<Prediction, EstimateError> {
        let bands: Vec<usize> = (0..model.bands()).collect();
        model.predict_points(&self.points, &bands, progress)
    }
}

/// One row of every place that was read more than once: held out, they are repeated readings at
/// places that the fit knows.
pub fn repeated_rows(readings: &Readings) -> Vec<usize> {
    let places = by_place(readings.sites());
    let often = places.iter().enumerate().filter(|(_, rows)| rows.len() > 1);
    // Not the same visit everywhere: that would be one survey of several.
    let mut rows: Vec<usize> = often.map(|(i, rows)| rows[i % rows.len()]).collect();
    rows.sort_unstable();
    rows
}

/// Fits to the sensors outside each fold and compares with those inside, in the bands that both
/// read.
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
        let Some(fold) = Fold::new(readings, fold, context.transmitters) else { continue };
        let context = Context { transmitters: &fold.transmitters, ..*context };
        let model = method.fit(&fold.rest, &context, &part)?;
        residuals.add(readings, &fold, &fold.predict(&model, &part.quiet())?);
    }
    Ok(residuals)
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, array};

    use super::*;
    use crate::readings::Values;
    use crate::scale::Scale;

    #[test]
    fn coverage_is_told_by_distance() {
        let covered =
            [(5.0, true), (0.0, false), (2.0, true), (0.0, true), (9.0, true), (2.0, false)];
        let residuals = Residuals { entries: Vec::new(), covered: covered.to_vec() };
        assert_eq!(residuals.coverage_90(), Some(4.0 / 6.0));
        let parts = residuals.coverage_by_distance(3);
        let told: Vec<_> =
            parts.iter().map(|p| (p.from_m, p.to_m, p.entries, p.coverage_90)).collect();
        assert_eq!(told, [(0.0, 0.0, 2, 0.5), (2.0, 2.0, 2, 0.5), (5.0, 9.0, 2, 1.0)]);
        // Equal distances are one part.
        let same = Residuals { covered: vec![(1.0, true); 7], ..Residuals::default() };
        assert_eq!(same.coverage_by_distance(4).len(), 1);
        assert!(Residuals::default().coverage_by_distance(4).is_empty());
    }

    #[test]
    fn distances_are_to_the_readings_that_are_left() {
        let at = [0.0, 1.0, 4.0, 4.0, 9.0];
        let sites: Vec<Site> = at.iter().map(|x| Site::new(*x, 0.0)).collect();
        let power = Array2::from_shape_fn((5, 1), |(i, _)| 1e-6 * (i + 1) as f64);
        let readings = Readings::new(sites, Values::Power(power), Scale::Absolute).unwrap();
        let fold = Fold::new(&readings, &[1, 2, 4], &[]).unwrap();
        assert_eq!(fold.distances_m, [1.0, 0.0, 5.0]);
        assert_eq!(repeated_rows(&readings), [2]);
    }

    #[test]
    fn a_band_that_only_the_held_out_read_is_held_out_too() {
        let sites: Vec<Site> = (0..4).map(|i| Site::new(f64::from(i), 0.0)).collect();
        let gap = f64::NAN;
        let power = array![[1.0, gap, 2.0], [3.0, 4.0, gap], [5.0, gap, 6.0], [7.0, gap, 8.0]];
        let readings = Readings::new(sites, Values::Power(power), Scale::Absolute).unwrap();
        let known = [
            Transmitter::new(Site::new(9.0, 9.0)).in_band(2),
            Transmitter::new(Site::new(0.0, 9.0)).in_band(1),
        ];
        let fold = Fold::new(&readings, &[1, 2], &known).unwrap();
        assert_eq!((fold.bands.as_slice(), fold.rest.bands()), ([0, 2].as_slice(), 2));
        assert_eq!(fold.rest.power(), array![[1.0, 2.0], [7.0, 8.0]]);
        assert_eq!(fold.transmitters, [known[0].in_band(1)]);
        let mut residuals = Residuals::default();
        residuals.add(&readings, &fold, &Prediction::of_power(array![[3.0, 1.0], [5.0, 60.0]]));
        let found: Vec<_> = residuals.entries.iter().map(|e| (e.0, e.1, e.2.round())).collect();
        assert_eq!(found, [(1, 0, 0.0), (2, 0, 0.0), (2, 2, 10.0)]);
        assert!(Fold::new(&readings, &[1, 2, 3], &[]).is_none());
    }
}
