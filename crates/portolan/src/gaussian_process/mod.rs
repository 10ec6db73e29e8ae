//! Gaussian process regression on a grid, as geostatistics does it: covariance families, ordinary
//! and universal kriging, restricted maximum likelihood, local neighbourhoods.
//!
//! References: Cressie, Statistics for Spatial Data (1993), sections 2.6 and 3.4; Rasmussen and
//! Williams, Gaussian Processes for Machine Learning (2006), sections 2.7 and 5.4.

mod covariance;
mod neighbours;
mod nelder_mead;
mod regression;
mod restricted;

pub use covariance::{Covariance, Family};
pub(crate) use neighbours::Neighbours;
pub(crate) use nelder_mead::minimise;
pub use regression::NuggetRole;
pub(crate) use regression::{CorrelationTable, Prediction, Regression};
pub(crate) use restricted::{Fixed, Sample, fit};

/// The polynomial in row and column that a process varies about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trend {
    /// A constant: ordinary kriging.
    Constant,
    /// A plane: universal kriging.
    Linear,
    /// A quadratic surface: universal kriging.
    Quadratic,
}

impl Trend {
    pub(crate) fn terms(self) -> usize {
        match self {
            Trend::Constant => 1,
            Trend::Linear => 3,
            Trend::Quadratic => 6,
        }
    }

    /// The basis functions at coordinates scaled to about [-1, 1].
    pub(crate) fn basis(self, u: f64, v: f64) -> [f64; 6] {
        match self {
            Trend::Constant => [1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            Trend::Linear => [1.0, u, v, 0.0, 0.0, 0.0],
            Trend::Quadratic => [1.0, u, v, u * u, u * v, v * v],
        }
    }
}
