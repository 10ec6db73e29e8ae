//! What the factored methods begin with: how many emitters there are, and their SLFs at the sensors.

use super::{Context, Emitters};
use crate::error::{EstimateError, InputError};
use crate::grid::Grid;
use crate::map::Factors;
use crate::readings::{Readings, Values};
use crate::unmix::{
    UnmixOptions, Unmixed, complete, count, count_exact, count_levels, unmix, unmix_levels,
};

/// The factors to start from, where there is a start; they must belong to the readings' area.
pub(super) fn start_factors<'a>(
    readings: &Readings,
    context: &Context<'a>,
) -> Result<Option<(Grid, &'a Factors)>, InputError> {
    let Some(start) = context.start else { return Ok(None) };
    let wrong = |what: String| Err(InputError::Request(format!("the map to start from {what}")));
    let Some(factors) = start.factors() else {
        return wrong("holds no SLFs and PSDs: make it with field, unn or btd".into());
    };
    let bands = readings.bands();
    if let Some(sensor) = readings.sites().iter().position(|s| start.grid().cell_at(*s).is_none()) {
        return wrong(format!("does not cover sensor {sensor}"));
    }
    if start.bands() != bands {
        return wrong(format!("has {} bands, the readings have {bands}", start.bands()));
    }
    if !start.labels().agrees(readings.labels()) {
        return wrong("has other frequencies or labels than the readings".into());
    }
    if factors.slf.iter().any(|v| v.is_nan()) {
        return wrong("has unknown cells".into());
    }
    match context.emitters {
        Emitters::Count(asked) if asked != factors.psd.nrows() => wrong(format!(
            "has {} emitters, but {asked} are asked for: leave the number out, a start has its own",
            factors.psd.nrows()
        )),
        _ => Ok(Some((start.grid(), factors))),
    }
}

/// The number of emitters of the start, asked for, or estimated from the readings; never more than
/// sensors or bands can tell apart.
pub fn number_of_emitters(
    readings: &Readings,
    context: &Context<'_>,
) -> Result<usize, EstimateError> {
    let (sensors, bands) = (readings.sensors(), readings.bands());
    let asked = match start_factors(readings, context)? {
        Some((_, factors)) => Emitters::Count(factors.psd.nrows()),
        None => context.emitters,
    };
    match asked {
        Emitters::Count(emitters) if emitters > sensors || emitters > bands => {
            Err(InputError::Request(format!(
                "{emitters} emitters are more than {sensors} sensors and {bands} band(s) can tell \
                 apart: ask for at most {}",
                sensors.min(bands)
            ))
            .into())
        }
        Emitters::Count(emitters) => Ok(emitters),
        Emitters::Auto => Ok(match readings.values() {
            Values::Power(_) => {
                count(&readings.power_or_floor(), readings.floored_link(), context.seed)?
            }
            Values::Levels { levels, quantiser } => count_levels(levels, quantiser, context.seed)?,
        }
        .emitters),
    }
}

/// The same readings without gaps, where they carry no noise: what is missing then follows from what
/// is there.
pub(super) fn completed(readings: &Readings) -> Result<Option<Readings>, InputError> {
    match readings.values() {
        Values::Power(power) if readings.not_heard().is_none() => {
            complete(power).map(|whole| readings.with_values(Values::Power(whole))).transpose()
        }
        _ => Ok(None),
    }
}

/// Whether the readings are sums of a few emitters without any noise.
pub(super) fn is_exact(readings: &Readings) -> bool {
    matches!(readings.values(), Values::Power(power) if count_exact(power).is_some())
}

/// Of `asked` emitters as many as there are, where readings without noise show it: splitting them
/// further only harms.
pub fn shown(readings: &Readings, asked: usize) -> usize {
    match readings.values() {
        Values::Power(power) => count_exact(power).map_or(asked, |shown| shown.min(asked)),
        Values::Levels { .. } => asked,
    }
}

/// SLFs at the sensors and PSDs, in the readings' own unit; `offset` is the a of ln(x + a).
pub fn unmix_readings(
    readings: &Readings,
    emitters: usize,
    offset: f64,
    seed: u64,
) -> Result<Unmixed, EstimateError> {
    let options = UnmixOptions { floor: Some(offset), ..UnmixOptions::default() };
    match readings.values() {
        Values::Power(_) => unmix(&readings.power_or_floor(), emitters, &options, seed),
        Values::Levels { levels, quantiser } => {
            unmix_levels(levels, quantiser, emitters, &options, seed)
        }
    }
}
