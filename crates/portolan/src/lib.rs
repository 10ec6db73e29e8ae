//! Portolan draws the radio spectrum over space and frequency from a handful of sensors.
//!
//! The tour, in the order data flows: a [`Grid`] of cells; a [`RadioMap`] of linear power over cells
//! and bands, dense or as [`Factors`]; [`simulate`](mod@simulate) to make one with a known truth;
//! [`sense`](mod@sense) to take [`Readings`] of it; [`estimate`] to get the whole map back by a
//! method of the register; [`score`](mod@score) to see how close it came.
//!
//! ```
//! use portolan::estimate::build;
//! use portolan::score::score;
//! use portolan::sense::{Layout, Sensing, sense};
//! use portolan::simulate::{Scenario, simulate};
//! use portolan::{Context, Grid, Progress};
//!
//! let grid = Grid::new(32, 32, 1.0)?;
//! let truth = simulate(&Scenario { bands: 8, ..Scenario::new(grid) })?;
//! let readings = sense(&truth, &Sensing::exact(Layout::Fraction(0.1), 0))?;
//! let kriging = build("kriging", [])?;
//! let estimate = kriging.estimate(&readings, &Context::default(), &Progress::silent())?;
//! assert!(score(&estimate.map, &truth, None)?.rmse_db < 3.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod adam;
pub mod advise;
pub mod bound;
pub mod decoder;
pub mod descent;
pub mod engine;
pub mod error;
pub mod estimate;
pub mod findings;
#[cfg(test)]
pub(crate) mod fixture;
pub mod gaussian_process;
pub mod generator;
pub mod grid;
pub mod likelihood;
mod linalg;
pub mod link;
pub mod map;
mod misfit;
mod penalty;
pub mod quantiser;
pub mod readings;
pub mod score;
pub mod sense;
mod simd;
pub mod simulate;
pub mod unmix;

pub use error::{EstimateError, InputError};
pub use estimate::{Context, Emitters, Estimate, Estimator, Progress};
pub use findings::{EmitterFinding, Exponent, Occupancy};
pub use grid::{Cell, Grid};
pub use link::Link;
pub use map::{Factors, RadioMap};
pub use quantiser::Quantiser;
pub use readings::{Readings, Values};
