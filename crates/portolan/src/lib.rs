//! Portolan draws the radio spectrum over space and frequency from a handful of sensors.
//!
//! [`Readings`] say what sensors read, at which [`Site`]s, on which [`Scale`]. A method of the
//! register ([`estimate`]) fits a [`Model`] to them. The model predicts power and spread at any
//! place, or draws a [`RadioMap`] on a [`Grid`].
//!
//! ```
//! use ndarray::array;
//! use portolan::estimate::{Kriging, Method};
//! use portolan::{Context, Grid, Progress, Readings, Scale, Site, Values};
//!
//! let sites = vec![Site::new(0.0, 0.0), Site::new(12.5, 3.0), Site::new(4.0, 9.5)];
//! let dbm = array![[-70.0, -63.0], [-71.0, f64::NAN], [-80.0, -60.0]];
//! let power = dbm.mapv(|p: f64| 10f64.powf(p / 10.0));
//! let readings = Readings::new(sites, Values::Power(power), Scale::Absolute)?;
//! let model = Kriging::default().fit(&readings, &Context::default(), &Progress::silent())?;
//! let there = model.predict(&[Site::new(6.0, 4.0)], &Progress::silent())?;
//! assert!(there.power[[0, 0]] > 1e-8 && there.spread_db.unwrap()[[0, 0]] > 0.0);
//! // The same model draws a map: here 14 x 11 cells of one metre.
//! let map = model.map(Grid::new(14, 11, 1.0)?, &Progress::silent())?;
//! assert!((map.band(0)[[6, 4]] / there.power[[0, 0]] - 1.0).abs() < 1e-9);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Experiments need a truth: [`simulate`](mod@simulate) makes one, [`sense`](mod@sense) takes
//! readings of it, [`score`](mod@score) says how close a map came.
//!
//! ```
//! use portolan::estimate::build;
//! use portolan::score::score;
//! use portolan::sense::{SensorLayout, Sensing, sense};
//! use portolan::simulate::{Scenario, simulate};
//! use portolan::{Context, Grid, Progress};
//!
//! let grid = Grid::new(24, 24, 1.0)?;
//! let truth = simulate(&Scenario { bands: 8, ..Scenario::new(grid) })?;
//! let readings = sense(&truth, &Sensing::exact(SensorLayout::Fraction(0.1), 0))?;
//! let model = build("kriging", [])?.fit(&readings, &Context::default(), &Progress::silent())?;
//! let map = model.map(grid, &Progress::silent())?;
//! assert!(score(&map, &truth, None)?.rmse_db < 3.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(missing_docs)]

pub mod advise;
pub mod between;
pub mod coverage;
mod crs;
mod descent;
mod devices;
pub mod engine;
mod error;
pub mod estimate;
mod findings;
#[cfg(test)]
mod fixture;
mod frame;
mod gaussian_process;
mod grid;
mod labels;
mod likelihood;
mod linalg;
mod link;
mod map;
mod misfit;
pub mod model;
mod points;
mod progress;
pub mod quantiser;
mod readings;
mod scale;
pub mod score;
pub mod sense;
pub mod simulate;
mod site;
mod unmix;

pub use crs::Crs;
pub use devices::{DeviceReading, Devices, seen_once};
pub use error::{EstimateError, InputError};
pub use estimate::{Context, Emitters, Method};
pub use findings::{EmitterFinding, Exponent, Occupancy};
pub use frame::Frame;
pub use grid::{Cell, Grid};
pub use labels::BandLabels;
pub use link::Link;
pub use map::{Factors, RadioMap};
pub use model::{Model, Prediction, Report};
pub use ndarray;
pub use points::Points;
pub use portolan_decoder as decoder;
pub use progress::Progress;
pub use quantiser::Quantiser;
pub use readings::{Readings, Values};
pub use scale::Scale;
pub use site::{Region, Site};
