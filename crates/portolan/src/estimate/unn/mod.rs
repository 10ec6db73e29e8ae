//! The paper's estimator: all emitters share one untrained decoder G, each has its own latent z_r
//! and PSD c_r, and sum_r G(z_r) o c_r is fitted to the readings in ln(x + a) (paper, eq. 4 and
//! algorithm 1), or to quantised levels by maximum likelihood (supplement B).

mod fit;
mod misfit;
mod start;

use ndarray::{Array2, Array3};

use super::bands::Scale;
use super::{Context, Emitters, Estimate, Estimator, OptionSpec, Options, Progress};
use crate::decoder::{Decoder, Normalisation, Output, Padding, Readout, Shape, Upsampling};
use crate::error::{EstimateError, InputError};
use crate::likelihood::{Likelihood, Probit, SquaredError};
use crate::map::{Factors, RadioMap};
use crate::quantiser::MISSING_LEVEL;
use crate::readings::{Readings, Values};
use crate::simulate::stream;
use crate::unmix::{UnmixOptions, count, unmix};
use fit::{Fit, FitOptions, Penalties, Schedule, Unknowns};
use misfit::{Misfit, padded};
use start::{Draw, Guess, imitate, padded_psd, random, random_psd};

const OWN: &[OptionSpec] = &[
    OptionSpec { name: "recipe", default: "default (our measured best)", takes: "default | paper" },
    OptionSpec {
        name: "start",
        default: "default = unmixed (ours); btd in recipe=paper",
        takes: "default | uniform | xavier | btd | interpolation | unmixed",
    },
    OptionSpec { name: "iterations", default: "300 (paper)", takes: "1 to 1000000" },
    OptionSpec {
        name: "tolerance",
        default: "0; 1e-3 in recipe=paper",
        takes: "stop once the loss changes relatively less; 0 = never",
    },
    OptionSpec { name: "blocks", default: "4 (paper)", takes: "1 to 7" },
    OptionSpec { name: "channels", default: "6 (paper)", takes: "1 to 128" },
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
    OptionSpec { name: "output", default: "sigmoid (paper)", takes: "sigmoid | exp" },
    OptionSpec { name: "lr_network", default: "0.05 (paper)", takes: "a number above 0" },
    OptionSpec {
        name: "lr_psd",
        default: "0.01 (ours); 0.001 in recipe=paper",
        takes: "a number, 0 or more",
    },
    OptionSpec { name: "lambda_latent", default: "1e-3 (paper)", takes: "a number, 0 or more" },
    OptionSpec { name: "lambda_psd", default: "1e-3 (paper)", takes: "a number, 0 or more" },
    OptionSpec { name: "lambda_network", default: "1e-4 (paper)", takes: "a number, 0 or more" },
    OptionSpec {
        name: "offset",
        default: "from the readings (1e-6 at unit scale, as in the paper)",
        takes: "the a of ln(x + a), in the readings' unit",
    },
];
pub(super) const OPTIONS: &[&[OptionSpec]] = &[OWN];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    Uniform,
    Xavier,
    Btd,
    Interpolation,
    Unmixed,
}

struct Unn {
    shape: Shape,
    start: Start,
    fit: FitOptions,
    scale: Scale,
    literal: bool,
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
    let finite = 0.0..f64::INFINITY;
    let weight = |name: &str, default: f64| -> Result<f64, InputError> {
        Ok(options.number(name, finite.clone())?.unwrap_or(default))
    };
    Ok(Box::new(Unn {
        shape: Shape {
            blocks: options.count("blocks", 1..=7)?.unwrap_or(paper.blocks),
            channels: options.count("channels", 1..=128)?.unwrap_or(paper.channels),
            kernel: options.count("kernel", 1..=7)?.unwrap_or(paper.kernel),
            upsampling: options.choice("upsample", &upsampling)?.unwrap_or(paper.upsampling),
            normalisation: options.choice("norm", &norms)?.unwrap_or(paper.normalisation),
            padding: options.choice("pad", &pads)?.unwrap_or(paper.padding),
            output: options.choice("output", &outputs)?.unwrap_or(paper.output),
        },
        start: options.choice("start", &starts)?.flatten().unwrap_or(usual),
        fit: FitOptions {
            iterations: options.count("iterations", 1..=1_000_000)?.unwrap_or(300),
            tolerance: weight("tolerance", if literal { 1e-3 } else { 0.0 })?,
            rate_network: options
                .number("lr_network", f64::MIN_POSITIVE..f64::INFINITY)?
                .unwrap_or(0.05),
            rate_psd: weight("lr_psd", if literal { 0.001 } else { 0.01 })?,
            penalties: Penalties {
                latent: weight("lambda_latent", 1e-3)?,
                psd: weight("lambda_psd", 1e-3)?,
                network: weight("lambda_network", 1e-4)?,
            },
            schedule: if literal { Schedule::Constant } else { Schedule::Cosine },
        },
        scale: Scale::log_from_options(options)?,
        literal,
    }))
}

impl Estimator for Unn {
    fn estimate(
        &self,
        readings: &Readings,
        context: &Context,
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
        let emitters = match context.emitters {
            Emitters::Count(emitters) => emitters,
            Emitters::Auto => count(&power, context.seed)?.emitters,
        };
        check_emitters(emitters, readings)?;
        let grid = readings.grid();
        let decoder = Decoder::new(&self.shape, grid.rows(), grid.cols(), emitters)?;
        let cells: Vec<usize> = readings.cells().iter().map(|&c| grid.index(c)).collect();
        let readout = decoder.readout(&cells)?;
        let job =
            Job { unn: self, readings, context, decoder: &decoder, readout: &readout, offset };
        let mut at = job.start(&scaled, progress)?;
        let trace = match readings.values() {
            Values::Power(_) => {
                let targets: Vec<f32> = scaled.iter().map(|x| (x + offset).ln() as f32).collect();
                job.descend(SquaredError::plain(), &targets, f32::NAN, &mut at, progress)?
            }
            Values::Levels { levels, quantiser } => {
                let probit = Probit::shifted(quantiser, unit.ln());
                let targets: Vec<u8> = levels.iter().copied().collect();
                job.descend(probit, &targets, MISSING_LEVEL, &mut at, progress)?
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

fn check_emitters(emitters: usize, readings: &Readings) -> Result<(), InputError> {
    let (sensors, bands) = (readings.sensors(), readings.bands());
    if emitters > sensors || emitters > bands {
        return Err(InputError::Request(format!(
            "{emitters} emitters are more than {sensors} sensors or {bands} bands can tell apart"
        )));
    }
    Ok(())
}

/// One estimate on its way.
struct Job<'a> {
    unn: &'a Unn,
    readings: &'a Readings,
    context: &'a Context,
    decoder: &'a Decoder,
    readout: &'a Readout,
    offset: f64,
}

impl Job<'_> {
    fn start(
        &self,
        scaled: &Array2<f64>,
        progress: &Progress<'_>,
    ) -> Result<Unknowns, EstimateError> {
        let (emitters, bands) = (self.decoder.emitters(), scaled.ncols());
        let mut rng = stream(self.context.seed, 0);
        let (method, settings): (&str, &[(&str, &str)]) = match self.unn.start {
            Start::Uniform => return Ok(random(self.decoder, bands, Draw::Uniform, &mut rng)),
            Start::Xavier => return Ok(random(self.decoder, bands, Draw::Xavier, &mut rng)),
            Start::Interpolation => ("thin_plate", &[("domain", "linear")]),
            Start::Btd => ("thin_plate", &[("domain", "linear")]),
            Start::Unmixed => ("kriging", &[]),
        };
        let options = UnmixOptions { floor: Some(self.offset), ..UnmixOptions::default() };
        let unmixed = unmix(scaled, emitters, &options, self.context.seed)?;
        let guess = Guess::interpolated(
            self.readings,
            &unmixed.slf_at_sensors,
            &unmixed.psd,
            method,
            settings,
            self.offset,
            progress,
        )?;
        let mut at = random(self.decoder, bands, Draw::Xavier, &mut rng);
        let iterations = env("PRE", 300.0) as usize;
        let error = imitate(
            self.decoder,
            &guess.slf,
            self.offset as f32,
            iterations,
            env("PRELR", 0.05),
            &mut at,
            progress,
        )?;
        if std::env::var_os("DEBUG").is_some() {
            eprintln!("imitation {error}");
        }
        at.psd = if self.unn.literal {
            random_psd(emitters, bands, &mut rng)
        } else {
            padded_psd(&guess.psd)
        };
        Ok(at)
    }

    fn descend<L: Likelihood<f32>>(
        &self,
        likelihood: L,
        targets: &[L::Target],
        missing: L::Target,
        at: &mut Unknowns,
        progress: &Progress<'_>,
    ) -> Result<Vec<f64>, EstimateError> {
        let misfit = Misfit::new(likelihood, targets, missing, self.readings.bands(), self.offset);
        let t = std::time::Instant::now();
        let r = Fit::new(self.decoder, self.readout, misfit).descend(at, &self.unn.fit, progress);
        if std::env::var_os("DEBUG").is_some() {
            eprintln!(
                "fit {:?} loss {:?}",
                t.elapsed(),
                r.as_ref().ok().and_then(|r| r.last().copied())
            );
        }
        r
    }

    /// The fitted map: SLFs of unit norm, PSDs in the readings' own unit.
    fn draw(&self, at: &Unknowns, unit: f64) -> Result<RadioMap, EstimateError> {
        let grid = self.readings.grid();
        let (emitters, bands) = (self.decoder.emitters(), self.readings.bands());
        let mut workspace = self.decoder.workspace();
        self.decoder.forward(&at.params, &at.latents, &mut workspace);
        let drawn = workspace.slf().iter().map(|v| f64::from(*v)).collect();
        let mut slf = Array3::from_shape_vec((emitters, grid.rows(), grid.cols()), drawn)
            .expect("the decoder draws the grid");
        let width = padded(bands);
        let mut psd = Array2::from_shape_fn((emitters, bands), |(r, k)| {
            unit * f64::from(at.psd[r * width + k])
        });
        let mut peaks = Vec::with_capacity(emitters);
        for (mut field, mut spectrum) in slf.outer_iter_mut().zip(psd.outer_iter_mut()) {
            let norm = field.iter().map(|v| v * v).sum::<f64>().sqrt();
            if !norm.is_finite() || spectrum.iter().any(|c| !c.is_finite()) {
                return Err(EstimateError::Numerical(
                    "the fit diverged: lower lr_network or lr_psd".into(),
                ));
            }
            field.mapv_inplace(|v| v / norm.max(f64::MIN_POSITIVE));
            spectrum.mapv_inplace(|c| c * norm);
            let peak = field.indexed_iter().max_by(|a, b| a.1.total_cmp(b.1));
            peaks.extend(peak.map(|((row, col), _)| [row as f64, col as f64]));
        }
        let frequencies = self.readings.freq_hz().map(<[f64]>::to_vec);
        let map = RadioMap::factored(grid, Factors { slf, psd })?.with_frequencies(frequencies)?;
        Ok(map.with_emitters(peaks))
    }
}

fn env(name: &str, default: f64) -> f64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}
