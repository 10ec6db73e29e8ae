//! The register of methods: a new method is one file and one line here.

use std::sync::Arc;

use super::{
    Method, OptionSpec, Options, auto, btd, dgm, field, idw, kriging, linear, naive_unn, nearest,
    oracle, thin_plate, unn,
};
use crate::engine::Engine;
use crate::error::InputError;

type Build = fn(&Options) -> Result<Box<dyn Method>, InputError>;

/// A method of the register: its name, what it does and what it can be told.
///
/// ```
/// use portolan::estimate::{method, methods};
/// let kriging = method("kriging")?;
/// assert!(kriging.gives_spread && !kriging.on_grid);
/// assert!(kriging.options().any(|option| option.name == "covariance"));
/// let on_grid: Vec<&str> = methods().iter().filter(|m| m.on_grid).map(|m| m.name).collect();
/// assert_eq!(on_grid, ["btd", "naive_unn", "unn", "dgm"]);
/// # Ok::<(), portolan::InputError>(())
/// ```
#[non_exhaustive]
pub struct Registered {
    /// Its name.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Goes up when the same input and options begin to give other numbers than in the last
    /// version: results kept under an older one are not this method's.
    pub revision: u32,
    /// Its maps have a spread; `auto` has one unless it chooses thin plates.
    pub gives_spread: bool,
    /// It cannot do without [`Context::truth`](super::Context::truth).
    pub needs_truth: bool,
    /// It makes use of [`Context::start`](super::Context::start).
    pub takes_start: bool,
    /// It tells emitters apart, and makes use of [`Context::emitters`](super::Context::emitters).
    pub takes_emitters: bool,
    /// It makes use of [`Context::transmitters`](super::Context::transmitters).
    pub takes_transmitters: bool,
    /// It lives on a grid and is read between cell centres.
    pub on_grid: bool,
    /// Its fits run on an [`Engine`], which may be another device's.
    pub takes_engine: bool,
    options: &'static [&'static [OptionSpec]],
    build: Build,
}

impl Registered {
    /// Every option of the method.
    pub fn options(&self) -> impl Iterator<Item = &OptionSpec> {
        self.options.iter().copied().flatten()
    }

    /// The method with its options set; an option it does not have is an error.
    pub fn build(
        &self,
        given: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Box<dyn Method>, InputError> {
        (self.build)(&Options::new(self.name, self.options, given)?)
    }

    /// The same with another engine for the fits of decoders; methods without one do not look at
    /// it.
    pub fn build_on(
        &self,
        engine: Arc<dyn Engine>,
        given: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Box<dyn Method>, InputError> {
        (self.build)(&Options::new(self.name, self.options, given)?.on(engine))
    }
}

/// All methods, simplest first.
pub fn methods() -> &'static [Registered] {
    METHODS
}

/// The method of that name.
pub fn method(name: &str) -> Result<&'static Registered, InputError> {
    METHODS.iter().find(|m| m.name == name).ok_or_else(|| {
        let known: Vec<_> = METHODS.iter().map(|m| m.name).collect();
        InputError::UnknownMethod { name: name.into(), known: known.join(", ") }
    })
}

/// Short for looking a method up and setting its options.
///
/// ```
/// use ndarray::array;
/// use portolan::estimate::build;
/// use portolan::{Context, Progress, Readings, Scale, Site, Values};
/// # let sites = vec![Site::new(0.0, 0.0), Site::new(12.0, 0.0), Site::new(0.0, 12.0)];
/// # let power = array![[1e-6], [1e-8], [1e-8]];
/// # let readings = Readings::new(sites, Values::Power(power), Scale::Absolute)?;
/// let settings = [("covariance".to_string(), "matern32".to_string())];
/// let model = build("kriging", settings)?.fit(&readings, &Context::default(), &Progress::silent())?;
/// assert!(model.gives_spread());
/// let typo = build("kriging", [("covarianse".to_string(), "matern32".to_string())]);
/// assert!(typo.err().unwrap().to_string().contains("covarianse"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn build(
    name: &str,
    given: impl IntoIterator<Item = (String, String)>,
) -> Result<Box<dyn Method>, InputError> {
    method(name)?.build(given)
}

const METHODS: &[Registered] = &[
    Registered {
        name: "nearest",
        summary: "the reading of the nearest sensor",
        revision: 1,
        gives_spread: false,
        needs_truth: false,
        takes_start: false,
        takes_emitters: false,
        takes_transmitters: false,
        on_grid: false,
        takes_engine: false,
        options: nearest::OPTIONS,
        build: nearest::build,
    },
    Registered {
        name: "idw",
        summary: "inverse distance weighting of the nearest sensors",
        revision: 1,
        gives_spread: false,
        needs_truth: false,
        takes_start: false,
        takes_emitters: false,
        takes_transmitters: false,
        on_grid: false,
        takes_engine: false,
        options: idw::OPTIONS,
        build: idw::build,
    },
    Registered {
        name: "linear",
        summary: "linear over Delaunay triangles, nearest outside the hull",
        revision: 1,
        gives_spread: false,
        needs_truth: false,
        takes_start: false,
        takes_emitters: false,
        takes_transmitters: false,
        on_grid: false,
        takes_engine: false,
        options: linear::OPTIONS,
        build: linear::build,
    },
    Registered {
        name: "thin_plate",
        summary: "thin-plate spline through the readings",
        revision: 1,
        gives_spread: false,
        needs_truth: false,
        takes_start: false,
        takes_emitters: false,
        takes_transmitters: false,
        on_grid: false,
        takes_engine: false,
        options: thin_plate::OPTIONS,
        build: thin_plate::build,
    },
    Registered {
        name: "kriging",
        summary: "ordinary or universal kriging, hyperparameters fitted, with a spread",
        revision: 3,
        gives_spread: true,
        needs_truth: false,
        takes_start: false,
        takes_emitters: false,
        takes_transmitters: false,
        on_grid: false,
        takes_engine: false,
        options: kriging::OPTIONS,
        build: kriging::build,
    },
    Registered {
        name: "btd",
        summary: "block-term decomposition: emitters with SLFs of low rank",
        revision: 2,
        gives_spread: false,
        needs_truth: false,
        takes_start: false,
        takes_emitters: true,
        takes_transmitters: false,
        on_grid: true,
        takes_engine: false,
        options: btd::OPTIONS,
        build: btd::build,
    },
    Registered {
        name: "naive_unn",
        summary: "one untrained decoder that draws every band, without emitters (the paper's baseline)",
        revision: 1,
        gives_spread: false,
        needs_truth: false,
        takes_start: false,
        takes_emitters: false,
        takes_transmitters: false,
        on_grid: true,
        takes_engine: false,
        options: naive_unn::OPTIONS,
        build: naive_unn::build,
    },
    Registered {
        name: "unn",
        summary: "the paper's domain-factored untrained decoder",
        revision: 3,
        gives_spread: false,
        needs_truth: false,
        takes_start: true,
        takes_emitters: true,
        takes_transmitters: false,
        on_grid: true,
        takes_engine: true,
        options: unn::OPTIONS,
        build: unn::build,
    },
    Registered {
        name: "dgm",
        summary: "SLFs of a generator trained on simulated ones, with their PSDs (the learned baseline)",
        revision: 2,
        gives_spread: false,
        needs_truth: false,
        takes_start: false,
        takes_emitters: true,
        takes_transmitters: false,
        on_grid: true,
        takes_engine: false,
        options: dgm::OPTIONS,
        build: dgm::build,
    },
    Registered {
        name: "field",
        summary: "path loss and shadowing of every emitter, with places, PSDs and a spread (ours)",
        revision: 8,
        gives_spread: true,
        needs_truth: false,
        takes_start: true,
        takes_emitters: true,
        takes_transmitters: true,
        on_grid: false,
        takes_engine: false,
        options: field::OPTIONS,
        build: field::build,
    },
    Registered {
        name: "auto",
        summary: "several methods, chosen or combined by how they predict sensors left out (the default)",
        revision: 8,
        gives_spread: true,
        needs_truth: false,
        takes_start: true,
        takes_emitters: true,
        takes_transmitters: true,
        on_grid: false,
        takes_engine: false,
        options: auto::OPTIONS,
        build: auto::build,
    },
    Registered {
        name: "oracle",
        summary: "kriging told the law of every emitter: what could be had at best",
        revision: 1,
        gives_spread: true,
        needs_truth: true,
        takes_start: false,
        takes_emitters: false,
        takes_transmitters: false,
        on_grid: false,
        takes_engine: false,
        options: oracle::OPTIONS,
        build: oracle::build,
    },
];
