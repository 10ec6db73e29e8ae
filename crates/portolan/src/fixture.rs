//! What tests share: golden values, and a fit with its map.

#[path = "../../portolan-decoder/src/golden.rs"]
mod golden;

pub use golden::load;

use crate::error::EstimateError;
use crate::estimate::{Context, Method};
use crate::map::RadioMap;
use crate::model::{Model, Report};
use crate::progress::Progress;
use crate::readings::Readings;

/// A fit and the map that it draws.
#[derive(Debug)]
pub struct Estimate {
    pub model: Model,
    pub map: RadioMap,
}

impl std::ops::Deref for Estimate {
    type Target = Report;

    fn deref(&self) -> &Report {
        self.model.report()
    }
}

/// Fits, and draws on the readings' grid.
pub fn estimate(
    method: &dyn Method,
    readings: &Readings,
    context: &Context<'_>,
) -> Result<Estimate, EstimateError> {
    let model = method.fit(readings, context, &Progress::silent())?;
    let map = model.default_map(&Progress::silent())?;
    Ok(Estimate { model, map })
}
