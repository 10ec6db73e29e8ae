//! Estimators: from readings to a map. The trait, the register of methods, progress and cancel;
//! one file per method.

mod auto;
mod bands;
mod btd;
mod dgm;
mod emitters;
mod field;
mod held_out;
mod idw;
mod kriging;
mod linear;
mod naive_unn;
mod nearest;
mod options;
mod oracle;
mod progress;
mod register;
mod thin_plate;
mod unn;

pub use options::{OptionSpec, Options};
pub use progress::Progress;
pub use register::{Method, build, method, methods};

use crate::error::EstimateError;
use crate::map::RadioMap;
use crate::readings::Readings;

/// How many emitters to assume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Emitters {
    /// Chosen from the readings.
    #[default]
    Auto,
    Count(usize),
}

/// What every method is told beside its own options.
#[derive(Clone, Copy, Debug, Default)]
pub struct Context<'a> {
    pub emitters: Emitters,
    pub seed: u64,
    /// The true map, for the methods that need it ([`Method::needs_truth`]); no other looks at it.
    pub truth: Option<&'a RadioMap>,
    /// An earlier estimate of the same area to start from, factored, for the methods that can
    /// ([`Method::takes_start`]); no other looks at it.
    pub start: Option<&'a RadioMap>,
}

/// A map made from readings, and how it came about.
#[derive(Clone, Debug)]
pub struct Estimate {
    pub map: RadioMap,
    /// Iterations of the fit; 0 for closed-form methods.
    pub iterations: usize,
    /// Final value of what was minimised, where something was.
    pub loss: Option<f64>,
    /// Loss before every iteration, where there were iterations.
    pub loss_trace: Vec<f64>,
    /// What the fit found out: hyperparameters and the like, for people and for `--json`.
    pub fitted: Vec<(&'static str, f64)>,
    /// What the user should know: neighbourhoods used, bands that could not be fitted.
    pub notes: Vec<String>,
}

impl Estimate {
    pub fn new(map: RadioMap) -> Self {
        Self {
            map,
            iterations: 0,
            loss: None,
            loss_trace: Vec::new(),
            fitted: Vec::new(),
            notes: Vec::new(),
        }
    }
}

/// A method with its options set, ready to make maps.
pub trait Estimator: Sync {
    fn estimate(
        &self,
        readings: &Readings,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Estimate, EstimateError>;
}

#[cfg(test)]
mod tests;
