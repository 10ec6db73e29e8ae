//! Readings without noise in which some bands are read by too few sensors to be known: the others
//! are fitted, and these are continued from neighbouring bands.

use super::fit::FieldFit;
use super::linearised::Reported;
use super::{Field, finish, scale};
use crate::error::EstimateError;
use crate::estimate::Context;
use crate::model::Model;
use crate::progress::Progress;
use crate::readings::{Readings, Values};
use crate::unmix::{count_exact, extended, solid_bands};

impl Field {
    /// The model where bands besides the `solid` ones are read by too few sensors to be known.
    pub(super) fn guessing(
        &self,
        readings: &Readings,
        rows: &Readings,
        solid: &[usize],
        emitters: usize,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Model, EstimateError> {
        let power = readings.power();
        let part = readings.with_bands(solid)?;
        let part_targets = Reported::new(&part);
        let (fit, rounds) = self.run(&part, &part_targets, emitters, context, progress)?;
        let slf = fit.logs.mapv(f64::exp);
        let (psd, mut psd_variance) = extended(&fit.psd, solid, &slf, &power);
        for (i, &band) in solid.iter().enumerate() {
            psd_variance.column_mut(band).assign(&fit.psd_variance.column(i));
        }
        let targets = Reported::new(readings);
        let fit = FieldFit { targets: &targets, psd, psd_variance, ..fit };
        let mut model = finish(rows, &fit, self.neighbours(readings.sensors()), rounds)?;
        let guessed = (0..readings.bands()).filter(|band| solid.binary_search(band).is_err());
        let names: Vec<String> = guessed.map(|band| readings.labels().label(band)).collect();
        model.report_mut().notes.push(format!(
            "read by too few sensors, continued from neighbouring bands: {}",
            names.join(", ")
        ));
        Ok(model)
    }
}

/// Where readings without noise are too few in some bands to know them: the others.
pub(super) fn all_but(readings: &Readings) -> Option<Vec<usize>> {
    let Values::Power(power) = readings.values() else { return None };
    let solid = solid_bands(power);
    let guessed = solid.len() < readings.bands() && readings.sensors() <= scale::FITTED;
    (guessed && count_exact(power).is_some()).then_some(solid)
}
