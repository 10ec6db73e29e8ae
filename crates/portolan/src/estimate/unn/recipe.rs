//! What makes up a fit of the decoder: ours, and the paper's in the readings it allows.

use std::sync::Arc;

use crate::descent::{Descent, Ending, Schedule};
use crate::engine::{CpuEngine, Engine, FitOptions, Penalties};
use portolan_decoder::{Decoder, Output, Shape};

/// Where the decoder begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum UnnStart {
    /// Everything uniform in (-1, 1).
    Uniform,
    /// Weights by Glorot and Bengio, latents standard normal.
    Xavier,
    /// A block-term decomposition.
    Btd,
    /// Thin-plate splines in linear power: of the readings where the start's map is learnt, of
    /// unmixed SLFs where those are.
    Interpolation,
    /// Unmixed SLFs carried to the grid by kriging.
    #[default]
    Unmixed,
}

impl UnnStart {
    /// Whether it says what the decoder should draw.
    pub(super) fn is_informed(self) -> bool {
        !matches!(self, UnnStart::Uniform | UnnStart::Xavier)
    }
}

/// What the decoder learns before the fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lesson {
    /// The start's SLFs in ln(x + a), emitter by emitter; its PSDs are taken as they are.
    Slfs,
    /// The start's map in ln(x + a): network, latents and PSDs together, PSDs from U[0, 1].
    LogMap,
    /// The same in linear power.
    LinearMap,
}

/// Iterations in which the decoder learns what the start says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartIterations {
    /// 3,000 where readings are without noise and 1,000 otherwise, because a start that noise has
    /// bent should not be learnt too well; fewer on large grids, as for `AtMost`.
    Usual,
    /// Fewer on large grids, where each costs more: some 20 s on two cores at most.
    AtMost(usize),
    /// This many.
    Exactly(usize),
}

/// Iterations x numbers to learn that a start may take: some 20 s on two cores for SLFs.
const SLF_WORK: usize = 400_000_000;
/// The same for a map, whose numbers cost less each.
const MAP_WORK: usize = 4_000_000_000;

/// How the decoder learns what the start says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StartFit {
    /// What is learnt.
    pub lesson: Lesson,
    /// How long.
    pub iterations: StartIterations,
    /// Learning rate of network and latents.
    pub rate_network: f64,
    /// Learning rate of the PSDs, where they are learnt.
    pub rate_psd: f64,
    /// How the rates fall.
    pub schedule: Schedule,
}

impl StartFit {
    /// `exact`: the start comes from readings without noise.
    pub(super) fn descent(&self, decoder: &Decoder, bands: usize, exact: bool) -> Descent {
        let cells = decoder.rows() * decoder.cols();
        let affordable = match self.lesson {
            Lesson::Slfs => SLF_WORK / (cells * decoder.emitters()),
            Lesson::LogMap | Lesson::LinearMap => MAP_WORK / (cells * bands),
        };
        let iterations = match self.iterations {
            StartIterations::Usual => if exact { 3000 } else { 1000 }.min(affordable.max(100)),
            StartIterations::AtMost(most) => most.min(affordable.max(100)),
            StartIterations::Exactly(iterations) => iterations,
        };
        let Self { schedule, .. } = *self;
        Descent { iterations, tolerance: 0.0, ending: Ending::Either, schedule }
    }
}

/// The paper's domain-factored untrained decoder. [`Unn::default`] is our measured best,
/// [`Unn::paper`] the paper's algorithm.
///
/// ```
/// use portolan::estimate::{StartIterations, Unn};
/// use portolan::sense::{Sensing, SensorLayout, sense};
/// use portolan::simulate::{Scenario, simulate};
/// use portolan::{Context, Emitters, Grid, Method, Progress};
///
/// let scenario = Scenario { bands: 4, emitters: 1, ..Scenario::new(Grid::new(16, 16, 1.0)?) };
/// let readings = sense(&simulate(&scenario)?, &Sensing::exact(SensorLayout::Count(60), 0))?;
/// let mut unn = Unn { iterations: 20, ..Unn::default() };
/// unn.start_fit.iterations = StartIterations::Exactly(50);
/// let context = Context { emitters: Emitters::Count(1), ..Context::default() };
/// let model = unn.fit(&readings, &context, &Progress::silent())?;
/// let losses = &model.report().loss_trace;
/// assert!(losses.len() == 20 && losses[19] < losses[0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Unn {
    /// The decoder.
    pub shape: Shape,
    /// Where it begins.
    pub start: UnnStart,
    /// How it learns what the start says.
    pub start_fit: StartFit,
    /// Iterations of the fit.
    pub iterations: usize,
    /// The change of the loss that counts as none; 0 = the iterations alone decide.
    pub tolerance: f64,
    /// Go on beyond the iterations until the loss changes by less than the tolerance, as the
    /// paper's algorithm box has it: see [`Ending::Both`].
    pub until_calm: bool,
    /// The most iterations then; where absent 3,000, but 500 for quantised readings, whose noise a
    /// longer fit draws.
    pub most_iterations: Option<usize>,
    /// How learning rates fall.
    pub schedule: Schedule,
    /// Learning rate of network and latents.
    pub rate_network: f64,
    /// Learning rate of the PSDs.
    pub rate_psd: f64,
    /// Weight of the latents' squared norm.
    pub lambda_latent: f64,
    /// Weight of the PSDs' squared norm.
    pub lambda_psd: f64,
    /// Weight of the network's squared norm.
    pub lambda_network: f64,
    /// The a of ln(x + a); from the unit where absent.
    pub offset: Option<f64>,
    /// Readings are divided by the brightest one before the fit.
    pub rescale: bool,
    /// What runs the descents.
    pub engine: Arc<dyn Engine>,
    /// Fits that are averaged, each with a network of its own and without some of the sensors. By
    /// default 8; on grids of more than 65,536 cells and with fewer than 32 places 1. One member is
    /// the fit itself, without a spread.
    pub members: Option<usize>,
    /// An earlier map in the context is refused instead of taking the place of `start`.
    pub start_insisted: bool,
}

impl Unn {
    /// Our recipe from a given start: from a good start small steps refine, from a random one they
    /// do not arrive.
    pub fn from_start(start: UnnStart) -> Self {
        let warm = start.is_informed();
        let output = if warm { Output::Exponential } else { Output::Sigmoid };
        Self {
            shape: Shape { output, ..Shape::default() },
            start,
            start_fit: StartFit {
                lesson: Lesson::Slfs,
                iterations: StartIterations::Usual,
                rate_network: 0.03,
                rate_psd: 0.03,
                schedule: Schedule::Cosine,
            },
            iterations: 300,
            tolerance: 0.0,
            until_calm: false,
            most_iterations: None,
            schedule: Schedule::Cosine,
            rate_network: if warm { 0.005 } else { 0.05 },
            rate_psd: if warm { 0.002 } else { 0.01 },
            lambda_latent: 1e-3,
            lambda_psd: 1e-3,
            lambda_network: 1e-4,
            offset: None,
            rescale: true,
            engine: Arc::new(CpuEngine),
            members: (!warm).then_some(1),
            start_insisted: false,
        }
    }

    /// The paper's recipe from a given start, as its tables read best: the rates of its text, the
    /// loop of its algorithm box, and a start in which the PSDs are learnt too.
    pub fn paper(start: UnnStart) -> Self {
        Self {
            shape: Shape { output: Output::Sigmoid, ..Shape::default() },
            start_fit: StartFit {
                lesson: Lesson::LogMap,
                iterations: StartIterations::AtMost(1500),
                rate_network: 0.05,
                rate_psd: 0.05,
                schedule: Schedule::Constant,
            },
            tolerance: 1e-3,
            until_calm: true,
            schedule: Schedule::Constant,
            rate_network: 0.05,
            rate_psd: 0.001,
            rescale: false,
            members: Some(1),
            ..Self::from_start(start)
        }
    }

    /// `quantised`: the readings are levels.
    pub(super) fn fit_options(&self, quantised: bool) -> FitOptions {
        let Self { iterations, tolerance, schedule, .. } = *self;
        let most = self.most_iterations.unwrap_or(if quantised { 500 } else { 3000 });
        let ending = if self.until_calm { Ending::Both { most } } else { Ending::Either };
        FitOptions {
            descent: Descent { iterations, tolerance, ending, schedule },
            rate_network: self.rate_network,
            rate_psd: self.rate_psd,
            penalties: Penalties {
                latent: self.lambda_latent,
                psd: self.lambda_psd,
                network: self.lambda_network,
            },
        }
    }
}

impl Default for Unn {
    fn default() -> Self {
        Self::from_start(UnnStart::default())
    }
}
