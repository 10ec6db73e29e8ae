//! Methods: from readings to a model. The trait, the register of methods, one file per method.

mod auto;
mod bands;
mod btd;
mod dgm;
mod emitters;
mod field;
mod folds;
mod held_out;
mod idw;
mod interpolated;
mod kriging;
mod linear;
mod load;
mod naive_unn;
mod nearest;
mod options;
mod oracle;
mod register;
mod thin_plate;
mod unn;
mod validate;
mod weighted_mean;

pub use auto::Auto;
pub use bands::Domain;
pub use btd::Btd;
pub use dgm::{Dgm, DgmStart};
pub use field::Field;
pub use folds::{Split, folds};
pub use idw::Idw;
pub use kriging::Kriging;
pub use linear::Linear;
pub(crate) use load::load;
pub use naive_unn::{NaiveSize, NaiveUnn};
pub use nearest::Nearest;
pub use options::{OptionSpec, Options};
pub use oracle::Oracle;
pub use register::{Registered, build, method, methods};
pub use thin_plate::ThinPlate;
pub use unn::{Lesson, StartFit, StartIterations, Unn, UnnStart};
pub use validate::{Residuals, validate, without};

use crate::error::EstimateError;
use crate::grid::Grid;
use crate::map::RadioMap;
use crate::model::Model;
use crate::progress::Progress;
use crate::readings::Readings;

/// How many emitters to assume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Emitters {
    /// Chosen from the readings.
    #[default]
    Auto,
    /// This many.
    Count(usize),
}

/// What every method is told beside its own options.
#[derive(Clone, Copy, Debug, Default)]
pub struct Context<'a> {
    /// How many emitters to assume, for the methods that tell them apart.
    pub emitters: Emitters,
    /// Seed of everything random.
    pub seed: u64,
    /// The grid of the methods that live on one; where absent, the readings' own or one around
    /// the sensors.
    pub grid: Option<Grid>,
    /// The true map, for the methods that need it ([`Registered::needs_truth`]); no other looks at
    /// it.
    pub truth: Option<&'a RadioMap>,
    /// An earlier estimate of the same area to start from, factored, for the methods that can
    /// ([`Registered::takes_start`]); no other looks at it.
    pub start: Option<&'a RadioMap>,
}

impl Context<'_> {
    /// The grid for a method that lives on one.
    fn grid_for(&self, readings: &Readings) -> Result<Grid, crate::error::InputError> {
        self.grid.map_or_else(|| readings.grid_or_default(), Ok)
    }
}

/// A method with its options set, ready to fit.
pub trait Method: Send + Sync {
    /// Fits the method to readings.
    fn fit(
        &self,
        readings: &Readings,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Model, EstimateError>;
}

#[cfg(test)]
mod tests;
