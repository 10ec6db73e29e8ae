//! What is shown where no file is given: a simulated city block, read by a tenth of its cells.

use std::sync::Arc;

use portolan::sense::{Sensing, SensorLayout, sense};
use portolan::simulate::{Scenario, simulate};
use portolan::{Grid, InputError, Readings};

use crate::commands::DEMO_FRACTION;
use crate::library::FitCall;

/// The readings, the same that the commands of [`crate::commands`] make.
pub fn readings() -> Result<Arc<Readings>, InputError> {
    let truth = simulate(&Scenario::new(Grid::new(64, 64, 1.0)?))?;
    let sensing = Sensing::exact(SensorLayout::Fraction(DEMO_FRACTION), 0);
    Ok(Arc::new(sense(&truth, &sensing)?))
}

/// What is fitted to them.
pub fn fit(readings: u32) -> FitCall {
    FitCall { readings, method: "field".into(), settings: Vec::new(), emitters: Some(4), seed: 0 }
}
