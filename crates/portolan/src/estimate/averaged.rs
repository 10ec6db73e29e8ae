//! What methods without a model of noise do with places that were read more than once: a surface
//! cannot pass through two readings of one place, so they are averaged, and the report says so.

use crate::error::InputError;
use crate::readings::Readings;

/// One row for every place, and the note that says so.
pub(super) struct Averaged {
    pub readings: Readings,
    pub note: String,
}

/// The readings with one row for every place; None where every row has a place of its own.
pub(super) fn averaged(readings: &Readings, method: &str) -> Result<Option<Averaged>, InputError> {
    averaged_because(readings, &format!("{method} has no model of noise"))
}

/// As [`averaged`], with another reason.
pub(super) fn averaged_because(
    readings: &Readings,
    reason: &str,
) -> Result<Option<Averaged>, InputError> {
    let Some((readings, count)) = readings.joined_places()? else { return Ok(None) };
    let what = match count {
        1 => "1 reading at a place read before was averaged".to_string(),
        _ => format!("{count} readings at places read before were averaged"),
    };
    Ok(Some(Averaged { readings, note: format!("{what}: {reason}") }))
}
