//! What the factored methods begin with: how many emitters there are, and their SLFs at the sensors.

use super::{Context, Emitters};
use crate::error::{EstimateError, InputError};
use crate::readings::{Readings, Values};
use crate::unmix::{UnmixOptions, Unmixed, count, count_levels, unmix, unmix_levels};

/// The number of emitters asked for, or estimated from the readings; never more than sensors or
/// bands can tell apart.
pub(super) fn number_of_emitters(
    readings: &Readings,
    context: &Context,
) -> Result<usize, EstimateError> {
    let (sensors, bands) = (readings.sensors(), readings.bands());
    match context.emitters {
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
            Values::Power(power) => count(power, context.seed)?,
            Values::Levels { levels, quantiser } => count_levels(levels, quantiser, context.seed)?,
        }
        .emitters),
    }
}

/// SLFs at the sensors and PSDs, in the readings' own unit; `offset` is the a of ln(x + a).
pub(super) fn unmix_readings(
    readings: &Readings,
    emitters: usize,
    offset: f64,
    seed: u64,
) -> Result<Unmixed, EstimateError> {
    let options = UnmixOptions { floor: Some(offset), ..UnmixOptions::default() };
    match readings.values() {
        Values::Power(power) => unmix(power, emitters, &options, seed),
        Values::Levels { levels, quantiser } => {
            unmix_levels(levels, quantiser, emitters, &options, seed)
        }
    }
}
