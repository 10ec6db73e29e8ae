//! Methods: from readings to a model. The trait, the register of methods, one file per method.
//!
//! A method is a struct. What is not set is its default:
//!
//! ```
//! use portolan::estimate::{Method, StartIterations, Unn};
//! use portolan::{Context, Emitters, Grid, Progress};
//! # use portolan::sense::{SensorLayout, Sensing, sense};
//! # use portolan::simulate::{Scenario, simulate};
//! let grid = Grid::new(12, 12, 1.0)?;
//! let truth = simulate(&Scenario { bands: 4, emitters: 2, ..Scenario::new(grid) })?;
//! let readings = sense(&truth, &Sensing::exact(SensorLayout::Count(40), 0))?;
//! // The paper's decoder, with fewer iterations than it takes for a good map.
//! let mut method = Unn::default();
//! (method.start_fit.iterations, method.iterations) = (StartIterations::Exactly(20), 20);
//! let context = Context { emitters: Emitters::Count(2), ..Context::default() };
//! let model = method.fit(&readings, &context, &Progress::silent())?;
//! assert_eq!(model.map(grid, &Progress::silent())?.bands(), 4);
//! assert_eq!(model.report().iterations, 20);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod auto;
mod averaged;
mod bands;
mod btd;
mod combined;
mod emitters;
mod field;
mod folds;
mod heights;
mod held_out;
mod idw;
mod interpolated;
mod kriging;
mod linear;
mod mixture;
mod nearest;
mod obstructed;
mod options;
mod oracle;
pub mod parts;
mod register;
mod robust;
mod space;
mod stacking;
mod thin_plate;
mod times;
mod unn;
mod validate;
mod visits;
mod weighted_mean;

pub use crate::gaussian_process::{
    Covariance, Family, Fixed, NuggetRole, Trend, WeightedCovariance,
};
pub use crate::unmix::btd::BtdOptions;
pub use auto::Auto;
pub use bands::Domain;
pub use btd::Btd;
pub use field::{Field, with_likeliest_sigma};
pub use folds::{Split, folds};
pub use idw::Idw;
pub use kriging::Kriging;
pub use linear::Linear;
pub use nearest::Nearest;
pub use obstructed::ColumnFinding;
pub use options::{OptionSpec, Options};
pub use oracle::Oracle;
pub use register::{
    Build, Capability, Entry, Load, Saved, build, check_used, method, methods, methods_with,
    register,
};
pub use space::{SpaceMethod, SpaceModel, SpaceReadings};
pub use thin_plate::ThinPlate;
pub use times::{Change, ChangeKind};
pub use unn::{Lesson, StartFit, StartIterations, Unn, UnnStart};
pub use validate::{DistanceCoverage, Fold, Residuals, repeated_rows, validate};

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use crate::between::Between;
use crate::error::EstimateError;
use crate::grid::Grid;
use crate::map::RadioMap;
use crate::model::Model;
use crate::progress::Progress;
use crate::readings::Readings;
use crate::site::Site;

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
///
/// ```
/// use portolan::estimate::build;
/// use portolan::{Context, Emitters, Grid, Progress};
/// # use portolan::sense::{SensorLayout, Sensing, sense};
/// # use portolan::simulate::{Scenario, simulate};
/// let grid = Grid::new(16, 16, 1.0)?;
/// let truth = simulate(&Scenario { bands: 4, emitters: 2, seed: 3, ..Scenario::new(grid) })?;
/// let readings = sense(&truth, &Sensing::exact(SensorLayout::Count(60), 0))?;
/// // Methods that live on a grid take this one; those that separate emitters look for two.
/// let coarse = Grid::new(8, 8, 2.0)?.with_origin(portolan::Site::new(0.5, 0.5))?;
/// let context = Context { emitters: Emitters::Count(2), grid: Some(coarse), ..Context::default() };
/// let model = build("btd", [])?.fit(&readings, &context, &Progress::silent())?;
/// assert_eq!((model.emitters().len(), model.grid()), (2, Some(coarse)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Context<'a> {
    /// How many emitters to assume, for the methods that tell them apart.
    pub emitters: Emitters,
    /// Seed of everything random.
    pub seed: u64,
    /// The grid of the methods that live on one; where absent, the readings' own or one around
    /// the sensors.
    pub grid: Option<Grid>,
    /// The true map, for the methods that need it ([`Capability::Truth`]); no other looks at
    /// it.
    pub truth: Option<&'a RadioMap>,
    /// An earlier estimate of the same area to start from, factored, for the methods that can
    /// ([`Capability::Start`]); no other looks at it.
    pub start: Option<&'a RadioMap>,
    /// Transmitters whose places are known, for the methods that can use them
    /// ([`Capability::Transmitters`]); no other looks at them.
    pub transmitters: &'a [Transmitter],
    /// What may stand between transmitters and places, for the methods that can use it
    /// ([`Capability::Obstacles`]); no other looks at it.
    pub obstacles: &'a [Arc<dyn Between>],
}

/// A transmitter whose place is known.
///
/// ```
/// use portolan::estimate::{Field, Method, Transmitter};
/// use portolan::{Context, Progress, Site};
/// # use ndarray::Array2;
/// # use portolan::{Readings, Scale, Values};
/// # let sites: Vec<Site> = (0..40).map(|i| Site::new(f64::from(i * 7 % 40), f64::from(i))).collect();
/// # let mast = Site::new(60.0, 10.0);
/// # let power = Array2::from_shape_fn((40, 1), |(i, _)| {
/// #     1e-4 * (1.0 + 0.3 * (i as f64).sin()) / sites[i].distance_m(mast).powi(2)
/// # });
/// # let readings = Readings::new(sites, Values::Power(power), Scale::Absolute)?;
/// let known = [Transmitter::new(Site::new(60.0, 10.0))];
/// let context = Context { transmitters: &known, ..Context::default() };
/// let model = Field::default().fit(&readings, &context, &Progress::silent())?;
/// // Nobody stood between the survey and the mast.
/// let towards = model.predict(&[Site::new(55.0, 10.0)], &Progress::silent())?;
/// assert!(towards.power[[0, 0]] > 1e-6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Transmitter {
    /// Where it stands.
    pub at: Site,
    /// The band that it transmits in; all where absent.
    pub band: Option<usize>,
    /// Its power in dB, of any reference: only differences count.
    pub power_db: Option<f64>,
}

impl Transmitter {
    /// At a place, in all bands.
    pub fn new(at: Site) -> Self {
        Self { at, band: None, power_db: None }
    }

    /// In one band only.
    pub fn in_band(self, band: usize) -> Self {
        Self { band: Some(band), ..self }
    }
}

impl Context<'_> {
    /// The grid for a method that lives on one.
    pub fn grid_for(&self, readings: &Readings) -> Result<Grid, crate::error::InputError> {
        readings.check_enough()?;
        self.grid.map_or_else(|| readings.grid_or_default(), Ok)
    }
}

/// A method with its options set, ready to fit.
///
/// ```
/// use ndarray::array;
/// use portolan::estimate::{Kriging, Method, Nearest, ThinPlate};
/// use portolan::{Context, Progress, Readings, Scale, Site, Values};
/// let sites = vec![Site::new(0.0, 0.0), Site::new(12.0, 0.0), Site::new(0.0, 12.0)];
/// let power = array![[1e-6], [1e-8], [1e-8]];
/// let readings = Readings::new(sites, Values::Power(power), Scale::Absolute)?;
/// let methods: [(&str, Box<dyn Method>); 3] = [
///     ("nearest", Box::new(Nearest::default())),
///     ("thin_plate", Box::new(ThinPlate::default())),
///     ("kriging", Box::new(Kriging::default())),
/// ];
/// for (name, method) in methods {
///     let model = method.fit(&readings, &Context::default(), &Progress::silent())?;
///     let power = model.predict(&[Site::new(4.0, 4.0)], &Progress::silent())?.power[[0, 0]];
///     assert!((0.99e-8..1.01e-6).contains(&power), "{name}: {power}");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Method: Send + Sync {
    /// Fits the method to readings.
    fn fit(
        &self,
        readings: &Readings,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Model, EstimateError>;

    /// Fits many sets of readings, each as [`Method::fit`] would: a model or an error for each, in
    /// their order. Methods with an [`engine`](crate::engine) give it all maps together; the others
    /// share them out among threads.
    ///
    /// # Errors
    /// If it was cancelled, or if an engine failed: then there are no results at all.
    fn fit_many(
        &self,
        jobs: &[Job<'_>],
        progress: &Progress<'_>,
    ) -> Result<Vec<Result<Model, EstimateError>>, EstimateError> {
        let done = AtomicUsize::new(0);
        let quiet = progress.quiet();
        jobs.par_iter()
            .with_max_len(1)
            .map(|job| {
                let model = self.fit(job.readings, &job.context, &quiet);
                progress.report(done.fetch_add(1, Ordering::Relaxed) + 1, jobs.len())?;
                match model {
                    Err(EstimateError::Cancelled) => Err(EstimateError::Cancelled),
                    model => Ok(model),
                }
            })
            .collect()
    }
}

/// One of many fits: readings, and what the method is told about them.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// What was read.
    pub readings: &'a Readings,
    /// What the method is told beside its options.
    pub context: Context<'a>,
}

#[cfg(test)]
mod tests;
