//! Portolan draws the radio spectrum over space and frequency from a handful of sensors.

pub mod error;
pub mod estimate;
#[cfg(test)]
pub(crate) mod fixture;
pub mod grid;
pub mod likelihood;
pub mod link;
pub mod map;
pub mod quantiser;
pub mod readings;
pub mod unmix;

pub use error::{EstimateError, InputError};
pub use estimate::{Context, Emitters, Estimate, Estimator, Progress};
pub use grid::{Cell, Grid};
pub use link::Link;
pub use map::{Factors, RadioMap};
pub use quantiser::Quantiser;
pub use readings::{Readings, Values};
