//! The paper's estimator: all emitters share one untrained decoder G, each has its own latent z_r
//! and PSD c_r, and sum_r G(z_r) o c_r is fitted to the readings in ln(x + a) (paper, eq. 4 and
//! algorithm 1), or to quantised levels by maximum likelihood (supplement B).

pub(super) mod start;

use std::sync::Arc;

use ndarray::{Array2, Array3, Axis};

use super::bands::{Domain, OFFSET};
use super::btd::{Btd, gridded_model, unit_norm};
use super::emitters::{number_of_emitters, shown, start_factors, unmix_readings};
use super::{Context, Kriging, Method, OptionSpec, Options, ThinPlate};
use crate::decoder::{Decoder, Draw, Network, Normalisation, Output, Padding, Shape, Upsampling};
use crate::descent::{Descent, Schedule};
use crate::engine::{
    CpuEngine, Descended, Diverged, Engine, FitOptions, FitProblem, ImitationOptions,
    ImitationProblem, Outcomes, Penalties, Targets, Unknowns,
};
use crate::error::{EstimateError, InputError};
use crate::grid::Grid;
use crate::likelihood::Probit;
use crate::link::Link;
use crate::map::Factors;
use crate::model::{Archive, Drawing, DrawnGrid, Model, Report, damaged};
use crate::progress::Progress;
use crate::readings::{Readings, Values};
use crate::simulate::stream;
use start::{Guess, random, random_psd};

const OWN: &[OptionSpec] = &[
    OptionSpec { name: "recipe", default: "default (our measured best)", takes: "default | paper" },
    OptionSpec {
        name: "start",
        default: "default = unmixed (ours); btd in recipe=paper",
        takes: "default | uniform | xavier | btd | interpolation | unmixed",
    },
    OptionSpec {
        name: "tolerance",
        default: "0; 1e-3 in recipe=paper",
        takes: "stop once the loss changes relatively less; 0 = never",
    },
    OptionSpec { name: "channels", default: "6 (paper)", takes: "1 to 128" },
    OptionSpec {
        name: "output",
        default: "exp (ours); sigmoid from a random start and in recipe=paper",
        takes: "sigmoid | exp",
    },
    OptionSpec {
        name: "start_iterations",
        default: "2000, fewer on large grids (ours); 300 in recipe=paper",
        takes: "how long the decoder learns to draw the SLFs of the start",
    },
    OptionSpec {
        name: "lr_network",
        default: "0.005, falling (ours); 0.05 from a random start and in recipe=paper",
        takes: "a number above 0",
    },
    OptionSpec {
        name: "lr_psd",
        default: "0.002, falling (ours); 0.01 from a random start, 0.001 in recipe=paper",
        takes: "a number, 0 or more",
    },
    OptionSpec { name: "lambda_psd", default: "1e-3 (paper)", takes: "a number, 0 or more" },
    OFFSET,
];
pub(super) const OPTIONS: &[&[OptionSpec]] = &[OWN, DECODER_OPTIONS];

/// The options that every method with a decoder has, with the same defaults.
pub(super) const DECODER_OPTIONS: &[OptionSpec] = &[
    OptionSpec { name: "iterations", default: "300 (paper)", takes: "1 to 1000000" },
    OptionSpec { name: "lambda_latent", default: "1e-3 (paper)", takes: "a number, 0 or more" },
    OptionSpec { name: "lambda_network", default: "1e-4 (paper)", takes: "a number, 0 or more" },
    OptionSpec { name: "blocks", default: "4 (paper)", takes: "1 to 7" },
    OptionSpec { name: "kernel", default: "3 (paper)", takes: "1 to 7" },
    OptionSpec {
        name: "upsample",
        default: "bilinear (paper)",
        takes: "bilinear | nearest | none",
    },
    OptionSpec {
        name: "norm",
        default: "batch (the paper's table)",
        takes: "batch | sample | none",
    },
    OptionSpec {
        name: "pad",
        default: "reflect (as in the deep decoder)",
        takes: "reflect | zero",
    },
];

pub(super) const KIND: &str = "unn";

/// Where the decoder begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum UnnStart {
    /// Everything uniform in (-1, 1).
    Uniform,
    /// Weights by Glorot and Bengio, latents standard normal.
    Xavier,
    /// SLFs of a block-term decomposition.
    Btd,
    /// Unmixed SLFs carried to the grid by thin-plate splines in linear power.
    Interpolation,
    /// Unmixed SLFs carried to the grid by kriging.
    #[default]
    Unmixed,
}

/// Iterations in which the decoder learns to draw the start's SLFs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Imitation {
    /// Fewer on large grids, where each costs more: some 20 s on two cores at most.
    AtMost(usize),
    /// This many.
    Exactly(usize),
}

/// Learning rate at the beginning of an imitation; it falls along half a cosine.
const IMITATION_RATE: f64 = 0.03;

/// Iterations x cells x emitters that an imitation may take: some 20 s on two cores.
const IMITATION_WORK: usize = 400_000_000;

impl Imitation {
    fn iterations(self, decoder: &Decoder) -> usize {
        let drawn = decoder.rows() * decoder.cols() * decoder.emitters();
        match self {
            Imitation::AtMost(most) => most.min((IMITATION_WORK / drawn).max(100)),
            Imitation::Exactly(iterations) => iterations,
        }
    }
}

/// The paper's domain-factored untrained decoder. [`Unn::default`] is our measured best,
/// [`Unn::paper`] the paper's algorithm.
#[derive(Clone, Debug)]
pub struct Unn {
    /// The decoder.
    pub shape: Shape,
    /// Where it begins.
    pub start: UnnStart,
    /// How long it learns to draw the SLFs of the start.
    pub imitation: Imitation,
    /// Most iterations of the fit.
    pub iterations: usize,
    /// Stop once the loss changes relatively less; 0 = never.
    pub tolerance: f64,
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
    /// The readings are not rescaled and PSDs begin at random, as the paper has it.
    pub literal: bool,
    /// What runs the descents.
    pub engine: Arc<dyn Engine>,
    /// The start was asked for: an earlier map is refused.
    start_named: bool,
}

impl Unn {
    /// Our recipe from a given start: from a good start small steps refine, from a random one they
    /// do not arrive.
    pub fn from_start(start: UnnStart) -> Self {
        let warm = !matches!(start, UnnStart::Uniform | UnnStart::Xavier);
        let output = if warm { Output::Exponential } else { Output::Sigmoid };
        Self {
            shape: Shape { output, ..Shape::default() },
            start,
            imitation: Imitation::AtMost(2000),
            iterations: 300,
            tolerance: 0.0,
            schedule: Schedule::Cosine,
            rate_network: if warm { 0.005 } else { 0.05 },
            rate_psd: if warm { 0.002 } else { 0.01 },
            lambda_latent: 1e-3,
            lambda_psd: 1e-3,
            lambda_network: 1e-4,
            offset: None,
            literal: false,
            engine: Arc::new(CpuEngine),
            start_named: false,
        }
    }

    /// The paper's recipe from a given start.
    pub fn paper(start: UnnStart) -> Self {
        Self {
            shape: Shape { output: Output::Sigmoid, ..Shape::default() },
            imitation: Imitation::AtMost(300),
            tolerance: 1e-3,
            schedule: Schedule::Constant,
            rate_network: 0.05,
            rate_psd: 0.001,
            literal: true,
            ..Self::from_start(start)
        }
    }

    fn fit_options(&self) -> FitOptions {
        FitOptions {
            descent: Descent {
                iterations: self.iterations,
                tolerance: self.tolerance,
                schedule: self.schedule,
            },
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

pub(super) fn build(options: &Options) -> Result<Box<dyn Method>, InputError> {
    let literal =
        options.choice("recipe", &[("default", false), ("paper", true)])?.unwrap_or(false);
    let starts = [
        ("default", None),
        ("uniform", Some(UnnStart::Uniform)),
        ("xavier", Some(UnnStart::Xavier)),
        ("btd", Some(UnnStart::Btd)),
        ("interpolation", Some(UnnStart::Interpolation)),
        ("unmixed", Some(UnnStart::Unmixed)),
    ];
    let named = options.choice("start", &starts)?.flatten();
    let usual = match literal {
        true => Unn::paper(named.unwrap_or(UnnStart::Btd)),
        false => Unn::from_start(named.unwrap_or_default()),
    };
    let rates = f64::MIN_POSITIVE..f64::INFINITY;
    let weight = |name: &str, default: f64| -> Result<f64, InputError> {
        Ok(options.number(name, 0.0..f64::INFINITY)?.unwrap_or(default))
    };
    let imitation = options.count("start_iterations", 0..=1_000_000)?;
    Ok(Box::new(Unn {
        shape: shape_from_options(options, usual.shape.output)?,
        imitation: imitation.map_or(usual.imitation, Imitation::Exactly),
        iterations: options.count("iterations", 1..=1_000_000)?.unwrap_or(usual.iterations),
        tolerance: weight("tolerance", usual.tolerance)?,
        rate_network: options.number("lr_network", rates)?.unwrap_or(usual.rate_network),
        rate_psd: weight("lr_psd", usual.rate_psd)?,
        lambda_latent: weight("lambda_latent", usual.lambda_latent)?,
        lambda_psd: weight("lambda_psd", usual.lambda_psd)?,
        lambda_network: weight("lambda_network", usual.lambda_network)?,
        offset: Domain::log_from_options(options)?,
        engine: options.engine(),
        start_named: named.is_some(),
        ..usual
    }))
}

/// The decoder's shape from the options that every method with a decoder has.
pub(super) fn shape_from_options(options: &Options, output: Output) -> Result<Shape, InputError> {
    let paper = Shape::default();
    Ok(Shape {
        blocks: options.count("blocks", 1..=7)?.unwrap_or(paper.blocks),
        channels: options.count("channels", 1..=128)?.unwrap_or(paper.channels),
        kernel: options.count("kernel", 1..=7)?.unwrap_or(paper.kernel),
        upsampling: options.choice("upsample", &UPSAMPLINGS)?.unwrap_or(paper.upsampling),
        normalisation: options.choice("norm", &NORMS)?.unwrap_or(paper.normalisation),
        padding: options.choice("pad", &PADS)?.unwrap_or(paper.padding),
        output: options.choice("output", &OUTPUTS)?.unwrap_or(output),
        outputs: 1,
    })
}

impl Method for Unn {
    fn fit(
        &self,
        readings: &Readings,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Model, EstimateError> {
        progress.check()?;
        let grid = context.grid_for(readings)?;
        let readings = &readings.on_grid(grid)?;
        let power = readings.power_or_floor();
        let link = self.offset.map_or_else(|| readings.floored_link(), Link::new);
        // The sigmoid lies in (0, 1): the brightest reading becomes 1.
        let brightest = power.iter().copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
        let unit = if self.literal { 1.0 } else { brightest };
        let offset = link.offset() / unit;
        let scaled = power.mapv(|x| x / unit);
        let emitters = number_of_emitters(readings, context)?;
        let decoder = Decoder::new(&self.shape, grid.rows(), grid.cols(), emitters)?;
        let cells: Vec<usize> = readings.cells(grid)?.iter().map(|&c| grid.index(c)).collect();
        let job = UnnJob { unn: self, grid, readings, context, decoder: &decoder, offset };
        let start = job.start(unit, &progress.part(0.0..0.7))?;
        progress.fit_begins();
        let fitting = progress.part(0.7..1.0);
        let (at, trace) = match readings.values() {
            Values::Power(_) => {
                let targets: Vec<f32> = scaled.iter().map(|x| (x + offset).ln() as f32).collect();
                job.fit(&cells, Targets::LnPower(&targets), &start, &fitting)?
            }
            Values::Levels { levels, quantiser } => {
                let probit = &Probit::shifted(quantiser, unit.ln());
                let levels: Vec<u8> = levels.iter().copied().collect();
                job.fit(&cells, Targets::Levels { levels: &levels, probit }, &start, &fitting)?
            }
        };
        let decoded = DecodedSlfs {
            shape: self.shape,
            bands: readings.bands(),
            params: at.network.params,
            latents: at.network.latents,
            psd: at.psd,
            unit,
        };
        Ok(gridded_model(readings, grid, decoded)?.with_report(Report::of_descent(trace)))
    }
}

/// One fit on its way.
struct UnnJob<'a> {
    unn: &'a Unn,
    grid: Grid,
    readings: &'a Readings,
    context: &'a Context<'a>,
    decoder: &'a Decoder,
    offset: f64,
}

impl UnnJob<'_> {
    fn start(&self, unit: f64, progress: &Progress<'_>) -> Result<Unknowns, EstimateError> {
        let (emitters, bands) = (self.decoder.emitters(), self.readings.bands());
        let mut rng = stream(self.context.seed, 0);
        let earlier = start_factors(self.readings, self.context)?;
        if earlier.is_some() && self.unn.start_named {
            let message = "unn starts from a map or as its option start says: give one of them";
            return Err(InputError::Request(message.into()).into());
        }
        let guess = match (earlier, self.unn.start) {
            (Some((grid, factors)), _) => self.earlier(grid, factors)?,
            (None, UnnStart::Uniform) => {
                return Ok(random(self.decoder, bands, Draw::Uniform, &mut rng));
            }
            (None, UnnStart::Xavier) => {
                return Ok(random(self.decoder, bands, Draw::Xavier, &mut rng));
            }
            (None, UnnStart::Btd) => {
                let (btd, seed) = (Btd::default(), self.context.seed);
                let quiet = progress.quiet();
                let found = btd.decompose(self.readings, self.grid, emitters, seed, &quiet)?;
                let slf = found.slf();
                Guess::new(self.grid, &found.c, |r| slf.index_axis(Axis(0), r).to_owned())
            }
            (None, UnnStart::Interpolation) => {
                let plates = ThinPlate { domain: Domain::Linear, ..ThinPlate::default() };
                self.interpolated(|_| Box::new(plates), unit, progress)?
            }
            (None, UnnStart::Unmixed) => {
                // SLFs that unmixing put at next to nothing must not dig holes.
                let kriging =
                    |offset| Kriging { domain: Domain::LogOffset(offset), ..Kriging::default() };
                self.interpolated(|offset| Box::new(kriging(offset)), unit, progress)?
            }
        };
        let mut at = random(self.decoder, bands, Draw::Xavier, &mut rng);
        at.network = self.imitate(&guess.slf, &at.network, progress)?;
        at.psd = if self.unn.literal && earlier.is_none() {
            random_psd(emitters, bands, &mut rng)
        } else {
            guess.psd.iter().map(|c| (c / unit) as f32).collect()
        };
        Ok(at)
    }

    fn earlier(&self, grid: Grid, factors: &Factors) -> Result<Guess, InputError> {
        if !grid.coincides(&self.grid) {
            let message = "the map to start from has another grid than the fit: unn needs the same";
            return Err(InputError::Request(message.into()));
        }
        Ok(Guess::new(self.grid, &factors.psd, |r| factors.slf.index_axis(Axis(0), r).to_owned()))
    }

    /// Unmixes the readings and carries each emitter's SLF from the sensors to the grid.
    fn interpolated(
        &self,
        method: impl Fn(f64) -> Box<dyn Method>,
        unit: f64,
        progress: &Progress<'_>,
    ) -> Result<Guess, EstimateError> {
        let offset = self.offset * unit;
        let asked = self.decoder.emitters();
        let shown = shown(self.readings, asked);
        let unmixed = unmix_readings(self.readings, shown, offset, self.context.seed)?;
        let guess =
            Guess::interpolated(self.readings, self.grid, &unmixed, method, offset, progress)?;
        Ok(guess.widened(asked))
    }

    /// A network and latents that draw `slf` (emitters x cells).
    fn imitate(
        &self,
        slf: &[f32],
        start: &Network,
        progress: &Progress<'_>,
    ) -> Result<Network, EstimateError> {
        let offset = self.offset as f32;
        let targets: Vec<f32> = slf.iter().map(|s| (s + offset).ln()).collect();
        let descent = Descent {
            iterations: self.unn.imitation.iterations(self.decoder),
            tolerance: 0.0,
            schedule: Schedule::Cosine,
        };
        let options = ImitationOptions { descent, rate: IMITATION_RATE };
        let problem = ImitationProblem { targets: &targets, offset, start };
        let (decoder, engine) = (self.decoder, &self.unn.engine);
        let outcomes = engine.imitate(decoder, &[problem], &options, progress);
        let (network, _) = only(outcomes, |_| "the start of the fit diverged".into())?;
        Ok(network)
    }

    fn fit(
        &self,
        cells: &[usize],
        targets: Targets<'_>,
        start: &Unknowns,
        progress: &Progress<'_>,
    ) -> Result<(Unknowns, Vec<f64>), EstimateError> {
        let (bands, offset) = (self.readings.bands(), self.offset as f32);
        let problem = FitProblem { cells, bands, targets, offset, start };
        let options = self.unn.fit_options();
        let outcomes = self.unn.engine.fit(self.decoder, &[problem], &options, progress);
        only(outcomes, |diverged| format!("{diverged}: lower lr_network or lr_psd"))
    }
}

/// The outcome of a batch of one, with its trace.
fn only<T>(
    outcomes: Outcomes<T>,
    explain: impl Fn(Diverged) -> String,
) -> Result<(T, Vec<f64>), EstimateError> {
    let outcome = outcomes?.pop().expect("an outcome for each problem");
    let Descended { at, trace } = outcome.map_err(|d| EstimateError::Numerical(explain(d)))?;
    Ok((at, trace))
}

/// What the fit found: a network, a latent for each emitter, and PSDs in multiples of a unit.
pub(super) struct DecodedSlfs {
    shape: Shape,
    bands: usize,
    params: Vec<f32>,
    latents: Vec<f32>,
    /// Emitters x bands.
    psd: Vec<f32>,
    unit: f64,
}

impl DecodedSlfs {
    pub fn load(archive: &Archive, bands: usize) -> Result<Self, EstimateError> {
        Ok(Self {
            shape: load_shape(archive)?,
            bands,
            params: archive.single("params")?,
            latents: archive.single("latents")?,
            psd: archive.single("psd")?,
            unit: archive.number("unit")?,
        })
    }
}

impl Drawing for DecodedSlfs {
    fn kind(&self) -> &'static str {
        KIND
    }

    /// SLFs of unit norm, PSDs in the readings' own unit.
    fn draw(&self, grid: Grid) -> Result<DrawnGrid, EstimateError> {
        let width = self.bands;
        let emitters = self.psd.len() / width;
        let decoder = Decoder::new(&self.shape, grid.rows(), grid.cols(), emitters)?;
        let fits = self.psd.len() == emitters * width
            && self.params.len() == decoder.parameters()
            && self.latents.len() == emitters * decoder.latent_len();
        if !fits {
            return Err(damaged("params", "does not fit the decoder's shape").into());
        }
        let mut workspace = decoder.workspace();
        decoder.forward(&self.params, &self.latents, &mut workspace);
        let drawn = workspace.slf().iter().map(|v| f64::from(*v)).collect();
        let slf = Array3::from_shape_vec((emitters, grid.rows(), grid.cols()), drawn)
            .expect("the decoder draws the grid");
        let psd = Array2::from_shape_fn((emitters, self.bands), |(r, k)| {
            self.unit * f64::from(self.psd[r * width + k])
        });
        unit_norm(slf, psd)
    }

    fn save(&self, archive: &mut Archive) {
        save_shape(&self.shape, archive);
        archive.put_single("params", &self.params);
        archive.put_single("latents", &self.latents);
        archive.put_single("psd", &self.psd);
        archive.put_number("unit", self.unit);
    }
}

/// A decoder's shape as arrays of a model.
pub(super) fn save_shape(shape: &Shape, archive: &mut Archive) {
    let Shape { blocks, channels, kernel, outputs, .. } = *shape;
    archive.put_whole("shape", [blocks, channels, kernel, outputs]);
    archive.put_choice("upsample", &UPSAMPLINGS, shape.upsampling);
    archive.put_choice("norm", &NORMS, shape.normalisation);
    archive.put_choice("pad", &PADS, shape.padding);
    archive.put_choice("output", &OUTPUTS, shape.output);
}

pub(super) fn load_shape(archive: &Archive) -> Result<Shape, InputError> {
    let &[blocks, channels, kernel, outputs] = &archive.whole("shape")?[..] else {
        return Err(damaged("shape", "is not four numbers"));
    };
    if blocks > 7 || channels > 128 || kernel > 7 || outputs > 1 << 16 {
        return Err(damaged("shape", "is of no decoder"));
    }
    Ok(Shape {
        blocks,
        channels,
        kernel,
        outputs,
        upsampling: archive.choice("upsample", &UPSAMPLINGS)?,
        normalisation: archive.choice("norm", &NORMS)?,
        padding: archive.choice("pad", &PADS)?,
        output: archive.choice("output", &OUTPUTS)?,
    })
}

const UPSAMPLINGS: [(&str, Upsampling); 3] = [
    ("bilinear", Upsampling::Bilinear),
    ("nearest", Upsampling::Nearest),
    ("none", Upsampling::None),
];
const NORMS: [(&str, Normalisation); 3] = [
    ("batch", Normalisation::Batch),
    ("sample", Normalisation::PerSample),
    ("none", Normalisation::None),
];
const PADS: [(&str, Padding); 2] = [("reflect", Padding::Reflect), ("zero", Padding::Zero)];
const OUTPUTS: [(&str, Output); 2] = [("sigmoid", Output::Sigmoid), ("exp", Output::Exponential)];

#[cfg(test)]
mod tests;
