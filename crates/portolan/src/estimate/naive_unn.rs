//! The paper's naive baseline: one untrained decoder with one latent draws all bands at once, one
//! output each, and is fitted to the readings in ln(x + a), or to quantised levels by maximum
//! likelihood. Nothing is said of emitters.

use fearless_simd::{Level, dispatch};
use ndarray::Array3;

use super::bands::{OFFSET, Scale};
use super::options::TOLERANCE;
use super::unn::{DECODER_OPTIONS, shape_from_options};
use super::{Context, Estimate, Estimator, OptionSpec, Options, Progress};
use crate::adam::Adam;
use crate::decoder::{Decoder, Draw, Network, Output, Readout, Shape, Workspace, random_network};
use crate::descent::{Descent, Schedule};
use crate::error::{EstimateError, InputError};
use crate::likelihood::{Likelihood, Probit, SquaredError};
use crate::map::RadioMap;
use crate::penalty::add_penalty;
use crate::readings::{Readings, Values};
use crate::simd::ln;
use crate::simulate::stream;

const OWN: &[OptionSpec] = &[
    OptionSpec {
        name: "parameters",
        default: "1080 (paper: as many as unn)",
        takes: "the most parameters the network may have; sets its channels",
    },
    OptionSpec { name: "channels", default: "by parameters", takes: "1 to 128" },
    OptionSpec { name: "start", default: "xavier", takes: "uniform | xavier" },
    TOLERANCE,
    OptionSpec { name: "output", default: "sigmoid (paper)", takes: "sigmoid | exp" },
    OptionSpec {
        name: "lr_network",
        default: "0.05 (paper), falling (ours)",
        takes: "a number above 0",
    },
    OFFSET,
];
pub(super) const OPTIONS: &[&[OptionSpec]] = &[OWN, DECODER_OPTIONS];

/// The parameters of the paper's factored decoder.
const BUDGET: usize = 1080;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Size {
    Channels(usize),
    /// As many channels as this number of parameters allows.
    Parameters(usize),
}

struct NaiveUnn {
    shape: Shape,
    size: Size,
    draw: Draw,
    descent: Descent,
    rate: f64,
    lambda_latent: f64,
    lambda_network: f64,
    scale: Scale,
}

pub(super) fn build(options: &Options) -> Result<Box<dyn Estimator>, InputError> {
    let weight = |name: &str, default: f64| -> Result<f64, InputError> {
        Ok(options.number(name, 0.0..f64::INFINITY)?.unwrap_or(default))
    };
    let channels = options.count("channels", 1..=128)?;
    let budget = options.count("parameters", 1..=100_000_000)?;
    let size = match (channels, budget) {
        (Some(_), Some(_)) => {
            return Err(options.wrong("parameters", "give parameters or channels, not both"));
        }
        (Some(channels), None) => Size::Channels(channels),
        (None, budget) => Size::Parameters(budget.unwrap_or(BUDGET)),
    };
    let draws = [("uniform", Draw::Uniform), ("xavier", Draw::Xavier)];
    let rates = f64::MIN_POSITIVE..f64::INFINITY;
    Ok(Box::new(NaiveUnn {
        shape: shape_from_options(options, Output::Sigmoid)?,
        size,
        draw: options.choice("start", &draws)?.unwrap_or(Draw::Xavier),
        descent: Descent {
            iterations: options.count("iterations", 1..=1_000_000)?.unwrap_or(300),
            tolerance: weight("tolerance", 0.0)?,
            schedule: Schedule::Cosine,
        },
        rate: options.number("lr_network", rates)?.unwrap_or(0.05),
        lambda_latent: weight("lambda_latent", 1e-3)?,
        lambda_network: weight("lambda_network", 1e-4)?,
        scale: Scale::log_from_options(options)?,
    }))
}

impl NaiveUnn {
    /// The shape for these readings: an output for each band, channels by the budget.
    fn shape_for(&self, readings: &Readings) -> Result<Shape, InputError> {
        let (rows, cols) = (readings.grid().rows(), readings.grid().cols());
        let of = |channels: usize| Shape { channels, outputs: readings.bands(), ..self.shape };
        let count =
            |channels: usize| of(channels).layout(self.shape.blocks_on(rows, cols)).parameters();
        match self.size {
            Size::Channels(channels) => Ok(of(channels)),
            Size::Parameters(budget) => {
                (1..=128).rev().find(|&c| count(c) <= budget).map(of).ok_or_else(|| {
                    InputError::Request(format!(
                        "{budget} parameters are too few to draw {} bands: set parameters={} or more",
                        readings.bands(),
                        count(1)
                    ))
                })
            }
        }
    }
}

impl Estimator for NaiveUnn {
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
        let unit = power.iter().copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
        let offset = link.offset() / unit;
        let grid = readings.grid();
        let decoder = Decoder::new(&self.shape_for(readings)?, grid.rows(), grid.cols(), 1)?;
        let cells: Vec<usize> = readings.cells().iter().map(|&c| grid.index(c)).collect();
        let readout = decoder.readout(&cells)?;
        let mut at = random_network(&decoder, self.draw, &mut stream(context.seed, 0));
        progress.fit_begins();
        // Readings band by band, as the decoder draws them.
        let trace = match readings.values() {
            Values::Power(_) => {
                let value = |x: &f64| (x / unit + offset).ln() as f32;
                let targets: Vec<f32> = power.t().iter().map(value).collect();
                let mut fit =
                    NaiveFit::new(&decoder, &readout, SquaredError::plain(), targets, offset);
                fit.descend(&mut at, self, progress)?
            }
            Values::Levels { levels, quantiser } => {
                let probit = Probit::shifted(quantiser, unit.ln());
                let targets: Vec<u8> = levels.t().iter().copied().collect();
                NaiveFit::new(&decoder, &readout, probit, targets, offset)
                    .descend(&mut at, self, progress)?
            }
        };
        let mut estimate = Estimate::new(draw(readings, &decoder, &at, unit)?);
        estimate.iterations = trace.len();
        estimate.loss = trace.last().copied();
        estimate.loss_trace = trace;
        estimate.fitted.push(("parameters", decoder.parameters() as f64));
        Ok(estimate)
    }
}

/// The map that a network draws, in the readings' own unit.
fn draw(
    readings: &Readings,
    decoder: &Decoder,
    at: &Network,
    unit: f64,
) -> Result<RadioMap, EstimateError> {
    let mut workspace = decoder.workspace();
    decoder.forward(&at.params, &at.latents, &mut workspace);
    let (grid, bands) = (readings.grid(), readings.bands());
    let (drawn, cells) = (workspace.slf(), grid.cells());
    let power = Array3::from_shape_fn((grid.rows(), grid.cols(), bands), |(i, j, k)| {
        unit * f64::from(drawn[k * cells + i * grid.cols() + j])
    });
    if power.iter().any(|x| !x.is_finite()) {
        return Err(EstimateError::Numerical("the fit diverged: lower lr_network".into()));
    }
    let frequencies = readings.freq_hz().map(<[f64]>::to_vec);
    Ok(RadioMap::dense(grid, power)?.with_frequencies(frequencies)?)
}

/// A decoder bound to readings: evaluates the objective and descends it without allocating.
struct NaiveFit<'a, L: Likelihood<f32>> {
    decoder: &'a Decoder,
    readout: &'a Readout,
    likelihood: L,
    /// Bands x sensors.
    targets: Vec<L::Target>,
    offset: f32,
    workspace: Workspace,
    gradient: Network,
    upstream: Vec<f32>,
    /// ln(x + a) of one band.
    mean: Vec<f32>,
    level: Level,
}

impl<'a, L: Likelihood<f32>> NaiveFit<'a, L> {
    fn new(
        decoder: &'a Decoder,
        readout: &'a Readout,
        likelihood: L,
        targets: Vec<L::Target>,
        offset: f64,
    ) -> Self {
        Self {
            decoder,
            readout,
            likelihood,
            offset: offset as f32,
            workspace: decoder.workspace(),
            gradient: Network::zeros(decoder),
            upstream: vec![0.0; targets.len()],
            mean: vec![0.0; readout.len()],
            targets,
            level: Level::new(),
        }
    }

    /// Misfit and penalty at a point; their gradient is left in `self.gradient`.
    fn evaluate(&mut self, at: &Network, lambda_latent: f64, lambda_network: f64) -> f64 {
        self.decoder.forward_at(&at.params, &at.latents, self.readout, &mut self.workspace);
        let misfit = dispatch!(self.level, simd => {
            let _ = simd;
            self.misfit()
        });
        let Network { params, latents } = &mut self.gradient;
        self.decoder.backward_at(
            &at.params,
            self.readout,
            &self.upstream,
            &mut self.workspace,
            params,
            latents,
        );
        misfit
            + add_penalty(lambda_network, &at.params, params)
            + add_penalty(lambda_latent, &at.latents, latents)
    }

    #[inline(always)]
    fn misfit(&mut self) -> f64 {
        let sensors = self.readout.len();
        let bands = self.workspace.slf_at().chunks_exact(sensors);
        let rows = bands.zip(self.targets.chunks_exact(sensors));
        let mut loss = 0.0;
        for ((drawn, targets), slope) in rows.zip(self.upstream.chunks_exact_mut(sensors)) {
            for (mean, x) in self.mean.iter_mut().zip(drawn) {
                *mean = ln(x + self.offset);
            }
            loss += self.likelihood.gradient_row(targets, &self.mean, slope);
            for (slope, x) in slope.iter_mut().zip(drawn) {
                *slope /= x + self.offset;
            }
        }
        loss
    }

    fn descend(
        &mut self,
        at: &mut Network,
        options: &NaiveUnn,
        progress: &Progress<'_>,
    ) -> Result<Vec<f64>, EstimateError> {
        let mut network = Adam::new(at.params.len());
        let mut latent = Adam::new(at.latents.len());
        let trace = options.descent.run(
            progress,
            &mut (self, at),
            |(fit, at)| fit.evaluate(at, options.lambda_latent, options.lambda_network),
            |(fit, at), factor| {
                network.step(options.rate * factor, &mut at.params, &fit.gradient.params);
                latent.step(options.rate * factor, &mut at.latents, &fit.gradient.latents);
            },
        );
        trace.map_err(|halt| halt.explained("lr_network"))
    }
}

#[cfg(test)]
mod tests;
