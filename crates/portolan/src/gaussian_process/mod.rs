//! Gaussian process regression as geostatistics does it: covariance families, ordinary and
//! universal kriging, restricted maximum likelihood, local neighbourhoods. Places are metres in the
//! plane; nothing here knows of cells.
//!
//! References: Cressie, Statistics for Spatial Data (1993), sections 2.6 and 3.4; Rasmussen and
//! Williams, Gaussian Processes for Machine Learning (2006), sections 2.7 and 5.4.

mod covariance;
mod decay;
mod lattice;
mod neighbours;
mod nelder_mead;
mod pooled;
pub(crate) mod quasi_newton;
mod regression;
mod restricted;
mod trend;

pub(crate) use covariance::Correlation;
pub use covariance::{Covariance, Family};
pub(crate) use lattice::posterior_points;
pub(crate) use neighbours::{Neighbourhood, Neighbours, along_curve, clustered};
pub(crate) use nelder_mead::minimise;
pub(crate) use pooled::{
    BandSample, Hearing, NOISE_PRIOR, PooledLaw, PseudoReadings, REACH_PRIOR, pooled_law,
    pooled_laws,
};
pub(crate) use quasi_newton::descend;
pub use regression::NuggetRole;
pub(crate) use regression::{Kriged, Level, Regression, Sensors};
pub use restricted::Fixed;
pub use restricted::WeightedCovariance;
pub(crate) use restricted::{MOST_SENSORS, Prior, Sample, Scatter, fit, misfit};
pub use trend::Trend;
pub(crate) use trend::TrendFrame;
