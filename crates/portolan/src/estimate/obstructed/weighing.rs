//! What path loss with obstacles counts for beside the method's model without them: by sensors that are
//! left out of both. Where one of the models cannot leave sensors out, both are fitted again.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ndarray::Array2;

use super::Obstructed;
use crate::error::EstimateError;
use crate::estimate::folds::{spread_folds, thinned};
use crate::estimate::stacking::{Weighed, weighed};
use crate::model::{Archive, LeftOut, Prediction, Predictor};
use crate::progress::Progress;
use crate::readings::Readings;
use crate::site::{PlaceBits, Site};

/// What the model without columns and path loss with columns count for before any reading.
const SHARES: (f64, f64) = (0.1, 0.9);
/// The same where nothing can be held out: the plan may be wrong.
const UNWEIGHED: (f64, f64) = (0.9, 0.1);
/// Sensors are dealt into so many parts of which some are held out, and as many boxes.
const PARTS: usize = 5;
/// Parts and boxes that are held out up to so many places, and beyond.
const FEW_PLACES: usize = 600;
const HELD: (usize, usize) = (3, 2);
const HELD_OF_MANY: (usize, usize) = (1, 1);
/// Places up to which models are fitted again, and the most that are held out of each fit.
const MOST_PLACES: usize = 5000;
const MOST_HELD: usize = 600;

/// Fits a model to some of the readings.
pub(super) type Refit<'a> =
    &'a (dyn Fn(&Readings, &Progress<'_>) -> Result<Arc<dyn Predictor>, EstimateError> + Sync);

/// The weight of path loss with obstacles, and what it follows from.
pub(super) fn weigh(
    readings: &Readings,
    (base, fit_base): (&dyn Predictor, Refit<'_>),
    (own, fit_own): (&Obstructed, Refit<'_>),
    progress: &Progress<'_>,
) -> Result<(f64, String), EstimateError> {
    if let Some(found) = weighed(readings, &[(SHARES.0, base), (SHARES.1, own)])? {
        return Ok(told(&found, "left out one by one"));
    }
    let places = readings.places();
    let held = if places <= FEW_PLACES { HELD } else { HELD_OF_MANY };
    let found = match places <= MOST_PLACES {
        true => {
            let again = |whole, fit| Refitted {
                whole,
                fit,
                readings,
                progress: progress.quiet(),
                held: held.0,
                boxes: AtomicUsize::new(held.1),
            };
            let (base, own) = (again(base, fit_base), again(own, fit_own));
            weighed(readings, &[(SHARES.0, &base), (SHARES.1, &own)])?
        }
        false => None,
    };
    Ok(match found.filter(|found| found[0].1[0].is_finite()) {
        Some(found) => told(&found, "left out part by part"),
        None => (
            UNWEIGHED.1,
            ": sensors cannot be held out of these readings, and the plan may be wrong".into(),
        ),
    })
}

fn told(found: &Weighed, how: &str) -> (f64, String) {
    let [one, boxed] = found[1].1;
    let [one_base, boxed_base] = found[0].1;
    let words = format!(
        ": rmse {one:.2} dB at sensors {how} and {boxed:.2} box by box, {one_base:.2} and \
         {boxed_base:.2} without"
    );
    (found[1].0, words)
}

/// A model that is fitted again to leave sensors out.
struct Refitted<'a> {
    whole: &'a dyn Predictor,
    fit: Refit<'a>,
    readings: &'a Readings,
    progress: Progress<'a>,
    /// Parts of the sensors that are held out.
    held: usize,
    /// Boxes that may still be held out; nothing is said about more.
    boxes: AtomicUsize,
}

impl Refitted<'_> {
    fn unknown(&self, sensors: usize) -> LeftOut {
        let nothing = Array2::from_elem((sensors, self.readings.bands()), f64::NAN);
        LeftOut { power: nothing.clone(), reading_spread_db: Some(nothing) }
    }

    /// None where the model has no spread.
    fn without(&self, left_out: &[Site]) -> Result<Option<LeftOut>, EstimateError> {
        let away: HashSet<PlaceBits> = left_out.iter().map(|site| site.bits()).collect();
        let sites = self.readings.sites();
        let kept: Vec<usize> =
            (0..sites.len()).filter(|&row| !away.contains(&sites[row].bits())).collect();
        // Nothing is said about a band that only these sensors read, or where the fit fails.
        let Ok(rest) = self.readings.subset(&kept) else {
            return Ok(Some(self.unknown(left_out.len())));
        };
        let model = match (self.fit)(&rest, &self.progress) {
            Ok(model) => model,
            Err(EstimateError::Numerical(_) | EstimateError::Input(_)) => {
                return Ok(Some(self.unknown(left_out.len())));
            }
            Err(error) => return Err(error),
        };
        let bands: Vec<usize> = (0..self.readings.bands()).collect();
        let Prediction { power, reading_spread_db, .. } =
            model.predict(left_out, &bands, &self.progress)?;
        Ok(reading_spread_db.map(|spread| LeftOut { power, reading_spread_db: Some(spread) }))
    }
}

impl Predictor for Refitted<'_> {
    fn kind(&self) -> &'static str {
        self.whole.kind()
    }

    fn predict(
        &self,
        at: &[Site],
        bands: &[usize],
        progress: &Progress<'_>,
    ) -> Result<Prediction, EstimateError> {
        self.whole.predict(at, bands, progress)
    }

    fn leave_one_out(&self, sensors: &[Site]) -> Result<Option<LeftOut>, EstimateError> {
        let mut found = self.unknown(sensors.len());
        for part in spread_folds(sensors, PARTS).into_iter().take(self.held) {
            let part = thinned(sensors, &part, MOST_HELD);
            let sites: Vec<Site> = part.iter().map(|&sensor| sensors[sensor]).collect();
            let Some(left) = self.without(&sites)? else { return Ok(None) };
            let both = [
                (Some(&mut found.power), Some(&left.power)),
                (found.reading_spread_db.as_mut(), left.reading_spread_db.as_ref()),
            ];
            for (all, own) in both {
                let Some((all, own)) = all.zip(own) else { continue };
                for (&sensor, row) in part.iter().zip(own.rows()) {
                    all.row_mut(sensor).assign(&row);
                }
            }
        }
        Ok(Some(found))
    }

    fn predict_without(&self, left_out: &[Site]) -> Result<Option<LeftOut>, EstimateError> {
        let left = self.boxes.load(Ordering::Relaxed);
        if left == 0 {
            return Ok(Some(self.unknown(left_out.len())));
        }
        self.boxes.store(left - 1, Ordering::Relaxed);
        self.without(left_out)
    }

    fn save(&self, archive: &mut Archive) {
        self.whole.save(archive);
    }
}
