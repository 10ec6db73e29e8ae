//! What values and places must be.

use ndarray::Array2;

use super::Values;
use crate::error::InputError;
use crate::quantiser::{MISSING_LEVEL, Quantiser};
use crate::site::Site;

pub(crate) fn check_sites(sites: &[Site]) -> Result<(), InputError> {
    match sites.iter().position(|site| !site.is_finite()) {
        None => Ok(()),
        Some(sensor) => {
            let Site { x_m, y_m, z_m } = sites[sensor];
            Err(InputError::Place { sensor, x_m, y_m, z_m })
        }
    }
}

pub(super) fn check_power(power: &Array2<f64>) -> Result<(), InputError> {
    // NaN is a gap; only negative and infinite values are wrong.
    let wrong = |v: f64| v < 0.0 || v.is_infinite();
    if let Some(((sensor, band), &value)) = power.indexed_iter().find(|(_, v)| wrong(**v)) {
        let place = format!("sensor {sensor}, band {band}");
        return Err(InputError::Power { what: "reading", place, value });
    }
    Ok(())
}

/// What a map needs: two sensors, and something in every band.
pub(super) fn check_enough(values: &Values) -> Result<(), InputError> {
    let found = values.dim().0;
    if found < 2 {
        return Err(InputError::TooFewSensors { found });
    }
    let empty = match values {
        Values::Power(power) => {
            power.columns().into_iter().position(|column| column.iter().all(|v| v.is_nan()))
        }
        Values::Levels { levels, .. } => levels
            .columns()
            .into_iter()
            .position(|column| column.iter().all(|&level| level == MISSING_LEVEL)),
    };
    empty.map_or(Ok(()), |band| Err(InputError::EmptyBand { band }))
}

/// Readings of nothing but silence are no map.
pub(super) fn check_heard(power: &Array2<f64>) -> Result<(), InputError> {
    match power.iter().any(|v| *v > 0.0) || power.iter().all(|v| v.is_nan()) {
        true => Ok(()),
        false => Err(InputError::AllZero),
    }
}

pub(super) fn check_levels(levels: &Array2<u8>, quantiser: &Quantiser) -> Result<(), InputError> {
    let edges = quantiser.edges().len();
    for ((sensor, band), &level) in levels.indexed_iter() {
        if level != MISSING_LEVEL && usize::from(level) > edges {
            return Err(InputError::Level { level, sensor, band, edges });
        }
    }
    Ok(())
}
