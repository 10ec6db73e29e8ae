//! The paper's estimator: all emitters share one untrained decoder G, each has its own latent z_r
//! and PSD c_r, and sum_r G(z_r) o c_r is fitted to the readings in ln(x + a) (paper, eq. 4 and
//! algorithm 1), or to quantised levels by maximum likelihood (supplement B).

pub(super) mod start;

use std::sync::Arc;

use ndarray::{Array2, Array3, Axis};

use super::bands::{OFFSET, Scale};
use super::btd::{BtdMethod, factored};
use super::emitters::{number_of_emitters, shown, start_factors, unmix_readings};
use super::{Context, Estimate, Estimator, OptionSpec, Options, Progress};
use crate::decoder::{Decoder, Draw, Network, Normalisation, Output, Padding, Shape, Upsampling};
use crate::descent::{Descent, Schedule};
use crate::engine::{
    Descended, Diverged, Engine, FitOptions, FitProblem, ImitationOptions, ImitationProblem,
    Outcomes, Penalties, Targets, Unknowns,
};
use crate::error::{EstimateError, InputError};
use crate::likelihood::Probit;
use crate::map::{Factors, RadioMap};
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    Uniform,
    Xavier,
    Btd,
    Interpolation,
    Unmixed,
}

/// Learning rate at the beginning of an imitation; it falls along half a cosine.
const IMITATION_RATE: f64 = 0.03;

/// Iterations in which the decoder learns to draw the start's SLFs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Imitation {
    /// Fewer on large grids, where each costs more: see [`IMITATION_WORK`].
    AtMost(usize),
    Exactly(usize),
}

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

struct Unn {
    shape: Shape,
    start: Start,
    /// The start was asked for by name.
    start_named: bool,
    fit: FitOptions,
    scale: Scale,
    imitation: Imitation,
    /// The paper's algorithm to the letter.
    literal: bool,
    engine: Arc<dyn Engine>,
}

pub(super) fn build(options: &Options) -> Result<Box<dyn Estimator>, InputError> {
    let literal =
        options.choice("recipe", &[("default", false), ("paper", true)])?.unwrap_or(false);
    let starts = [
        ("default", None),
        ("uniform", Some(Start::Uniform)),
        ("xavier", Some(Start::Xavier)),
        ("btd", Some(Start::Btd)),
        ("interpolation", Some(Start::Interpolation)),
        ("unmixed", Some(Start::Unmixed)),
    ];
    let usual = if literal { Start::Btd } else { Start::Unmixed };
    let named = options.choice("start", &starts)?.flatten();
    let start = named.unwrap_or(usual);
    // From a good start small steps refine; from a random one they do not arrive.
    let warm = !literal && !matches!(start, Start::Uniform | Start::Xavier);
    let output = if warm { Output::Exponential } else { Output::Sigmoid };
    let finite = 0.0..f64::INFINITY;
    let weight = |name: &str, default: f64| -> Result<f64, InputError> {
        Ok(options.number(name, finite.clone())?.unwrap_or(default))
    };
    Ok(Box::new(Unn {
        shape: shape_from_options(options, output)?,
        start,
        start_named: named.is_some(),
        imitation: options.count("start_iterations", 0..=1_000_000)?.map_or(
            if literal { Imitation::AtMost(300) } else { Imitation::AtMost(2000) },
            Imitation::Exactly,
        ),
        fit: FitOptions {
            descent: Descent {
                iterations: options.count("iterations", 1..=1_000_000)?.unwrap_or(300),
                tolerance: weight("tolerance", if literal { 1e-3 } else { 0.0 })?,
                schedule: if literal { Schedule::Constant } else { Schedule::Cosine },
            },
            rate_network: options
                .number("lr_network", f64::MIN_POSITIVE..f64::INFINITY)?
                .unwrap_or(if warm { 0.005 } else { 0.05 }),
            rate_psd: weight(
                "lr_psd",
                if literal {
                    0.001
                } else if warm {
                    0.002
                } else {
                    0.01
                },
            )?,
            penalties: Penalties {
                latent: weight("lambda_latent", 1e-3)?,
                psd: weight("lambda_psd", 1e-3)?,
                network: weight("lambda_network", 1e-4)?,
            },
        },
        scale: Scale::log_from_options(options)?,
        literal,
        engine: options.engine(),
    }))
}

/// The decoder's shape from the options that every method with a decoder has.
pub(super) fn shape_from_options(options: &Options, output: Output) -> Result<Shape, InputError> {
    let upsampling = [
        ("bilinear", Upsampling::Bilinear),
        ("nearest", Upsampling::Nearest),
        ("none", Upsampling::None),
    ];
    let norms = [
        ("batch", Normalisation::Batch),
        ("sample", Normalisation::PerSample),
        ("none", Normalisation::None),
    ];
    let pads = [("reflect", Padding::Reflect), ("zero", Padding::Zero)];
    let outputs = [("sigmoid", Output::Sigmoid), ("exp", Output::Exponential)];
    let paper = Shape::default();
    Ok(Shape {
        blocks: options.count("blocks", 1..=7)?.unwrap_or(paper.blocks),
        channels: options.count("channels", 1..=128)?.unwrap_or(paper.channels),
        kernel: options.count("kernel", 1..=7)?.unwrap_or(paper.kernel),
        upsampling: options.choice("upsample", &upsampling)?.unwrap_or(paper.upsampling),
        normalisation: options.choice("norm", &norms)?.unwrap_or(paper.normalisation),
        padding: options.choice("pad", &pads)?.unwrap_or(paper.padding),
        output: options.choice("output", &outputs)?.unwrap_or(output),
        outputs: 1,
    })
}

impl Estimator for Unn {
    fn estimate(
        &self,
        readings: &Readings,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Estimate, EstimateError> {
        progress.report(0, 1)?;
        let power = readings.power();
        let link = self.scale.link(readings, &power).expect("the scale is logarithmic");
        // The sigmoid lies in (0, 1): the brightest reading becomes 1.
        let brightest = power.iter().copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
        let unit = if self.literal { 1.0 } else { brightest };
        let offset = link.offset() / unit;
        let scaled = power.mapv(|x| x / unit);
        let emitters = number_of_emitters(readings, context)?;
        let grid = readings.grid();
        let decoder = Decoder::new(&self.shape, grid.rows(), grid.cols(), emitters)?;
        let cells: Vec<usize> = readings.cells().iter().map(|&c| grid.index(c)).collect();
        let job = UnnJob { unn: self, readings, context, decoder: &decoder, offset };
        let start = job.start(unit, progress)?;
        progress.fit_begins();
        let (at, trace) = match readings.values() {
            Values::Power(_) => {
                let targets: Vec<f32> = scaled.iter().map(|x| (x + offset).ln() as f32).collect();
                job.fit(&cells, Targets::LnPower(&targets), &start, progress)?
            }
            Values::Levels { levels, quantiser } => {
                let probit = &Probit::shifted(quantiser, unit.ln());
                let levels: Vec<u8> = levels.iter().copied().collect();
                job.fit(&cells, Targets::Levels { levels: &levels, probit }, &start, progress)?
            }
        };
        let map = job.draw(&at, unit)?;
        let mut estimate = Estimate::new(map);
        estimate.iterations = trace.len();
        estimate.loss = trace.last().copied();
        estimate.loss_trace = trace;
        Ok(estimate)
    }
}

/// One estimate on its way.
struct UnnJob<'a> {
    unn: &'a Unn,
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
            (Some(factors), _) => self.earlier(factors),
            (None, Start::Uniform) => {
                return Ok(random(self.decoder, bands, Draw::Uniform, &mut rng));
            }
            (None, Start::Xavier) => {
                return Ok(random(self.decoder, bands, Draw::Xavier, &mut rng));
            }
            (None, Start::Btd) => {
                let btd = BtdMethod::default();
                let seed = self.context.seed;
                let found = btd.decompose(self.readings, emitters, seed, progress)?;
                let slf = found.slf();
                Guess::new(self.readings.grid(), &found.c, |r| {
                    slf.index_axis(Axis(0), r).to_owned()
                })
            }
            (None, Start::Interpolation) => {
                self.interpolated("thin_plate", true, unit, progress)?
            }
            (None, Start::Unmixed) => self.interpolated("kriging", false, unit, progress)?,
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

    fn earlier(&self, factors: &Factors) -> Guess {
        Guess::new(self.readings.grid(), &factors.psd, |r| {
            factors.slf.index_axis(Axis(0), r).to_owned()
        })
    }

    /// Unmixes the readings and carries each emitter's SLF from the sensors to the grid.
    fn interpolated(
        &self,
        method: &str,
        linear: bool,
        unit: f64,
        progress: &Progress<'_>,
    ) -> Result<Guess, EstimateError> {
        let offset = self.offset * unit;
        let asked = self.decoder.emitters();
        let shown = shown(self.readings, asked);
        let unmixed = unmix_readings(self.readings, shown, offset, self.context.seed)?;
        let guess = Guess::interpolated(self.readings, &unmixed, method, linear, offset, progress)?;
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
        // The bar is the fit's own.
        let still = |_: f64| progress.report(0, 1).is_ok();
        let (decoder, engine) = (self.decoder, &self.unn.engine);
        let outcomes = engine.imitate(decoder, &[problem], &options, &Progress::new(&still));
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
        let outcomes = self.unn.engine.fit(self.decoder, &[problem], &self.unn.fit, progress);
        only(outcomes, |diverged| format!("{diverged}: lower lr_network or lr_psd"))
    }

    /// The fitted map: SLFs of unit norm, PSDs in the readings' own unit.
    fn draw(&self, at: &Unknowns, unit: f64) -> Result<RadioMap, EstimateError> {
        let grid = self.readings.grid();
        let (emitters, bands) = (self.decoder.emitters(), self.readings.bands());
        let mut workspace = self.decoder.workspace();
        self.decoder.forward(&at.network.params, &at.network.latents, &mut workspace);
        let drawn = workspace.slf().iter().map(|v| f64::from(*v)).collect();
        let slf = Array3::from_shape_vec((emitters, grid.rows(), grid.cols()), drawn)
            .expect("the decoder draws the grid");
        let psd = Array2::from_shape_fn((emitters, bands), |(r, k)| {
            unit * f64::from(at.psd[r * bands + k])
        });
        factored(self.readings, slf, psd)
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

#[cfg(test)]
mod tests;
