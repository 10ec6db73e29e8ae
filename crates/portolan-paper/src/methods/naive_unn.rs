//! The paper's naive baseline: one untrained decoder with one latent draws all bands at once, one
//! output each, and is fitted to the readings in ln(x + a), or to quantised levels by maximum
//! likelihood. Nothing is said of emitters.

use fearless_simd::{Level, dispatch};
use ndarray::Array3;

use portolan::Grid;
use portolan::Link;
use portolan::Progress;
use portolan::engine::{Descent, Ending, Schedule};
use portolan::engine::{Likelihood, Probit, SquaredError};
use portolan::estimate::parts::{
    DECODER_OPTIONS, OFFSET, TOLERANCE, gridded_model, load_shape, save_shape, shape_from_options,
};
use portolan::estimate::{Capability, Context, Domain, Entry, Method, OptionSpec, Options};
use portolan::model::{Archive, Drawing, DrawnGrid, Model, Report, damaged};
use portolan::simulate::stream;
use portolan::{EstimateError, InputError};
use portolan::{Readings, Values};
use portolan_decoder::adam::Adam;
use portolan_decoder::penalty::add_penalty;
use portolan_decoder::simd::ln;
use portolan_decoder::{Decoder, Draw, Network, Output, Readout, Shape, Workspace, random_network};

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
const OPTIONS: &[&[OptionSpec]] = &[OWN, DECODER_OPTIONS];

const KIND: &str = "naive_unn";

/// The parameters of the paper's factored decoder.
const BUDGET: usize = 1080;

/// How large the network is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NaiveSize {
    /// So many channels.
    Channels(usize),
    /// As many channels as this number of parameters allows.
    Parameters(usize),
}

/// One untrained decoder that draws every band, without emitters: the paper's baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NaiveUnn {
    /// The decoder; its channels and outputs follow from `size` and the readings.
    pub shape: Shape,
    /// How large it is.
    pub size: NaiveSize,
    /// It begins uniform in (-1, 1) instead of as Glorot and Bengio have it.
    pub uniform_start: bool,
    /// Most iterations.
    pub iterations: usize,
    /// Stop once the loss changes relatively less; 0 = never.
    pub tolerance: f64,
    /// How the learning rate falls.
    pub schedule: Schedule,
    /// Learning rate.
    pub rate: f64,
    /// Weight of the latent's squared norm.
    pub lambda_latent: f64,
    /// Weight of the network's squared norm.
    pub lambda_network: f64,
    /// The a of ln(x + a); from the unit where absent.
    pub offset: Option<f64>,
}

impl Default for NaiveUnn {
    fn default() -> Self {
        Self {
            shape: Shape { output: Output::Sigmoid, ..Shape::default() },
            size: NaiveSize::Parameters(BUDGET),
            uniform_start: false,
            iterations: 300,
            tolerance: 0.0,
            schedule: Schedule::Cosine,
            rate: 0.05,
            lambda_latent: 1e-3,
            lambda_network: 1e-4,
            offset: None,
        }
    }
}

/// This method in the register.
pub(super) const ENTRY: Entry = Entry::new(
    "naive_unn",
    "one untrained decoder that draws every band, without emitters (the paper's baseline)",
    build,
)
.with_capabilities(&[Capability::Grid])
.with_options(OPTIONS)
.with_kinds(&[(KIND, |saved| saved.gridded(DecodedBands::load(saved.archive, saved.bands)?))]);

fn build(options: &Options) -> Result<Box<dyn Method>, InputError> {
    let usual = NaiveUnn::default();
    let weight = |name: &str, default: f64| -> Result<f64, InputError> {
        Ok(options.number(name, 0.0..f64::INFINITY)?.unwrap_or(default))
    };
    let channels = options.count("channels", 1..=128)?;
    let budget = options.count("parameters", 1..=100_000_000)?;
    let size = match (channels, budget) {
        (Some(_), Some(_)) => {
            return Err(options.wrong("parameters", "give parameters or channels, not both"));
        }
        (Some(channels), None) => NaiveSize::Channels(channels),
        (None, budget) => budget.map_or(usual.size, NaiveSize::Parameters),
    };
    let rates = f64::MIN_POSITIVE..f64::INFINITY;
    Ok(Box::new(NaiveUnn {
        shape: shape_from_options(options, usual.shape.output)?,
        size,
        uniform_start: options
            .choice("start", &[("uniform", true), ("xavier", false)])?
            .unwrap_or(usual.uniform_start),
        iterations: options.count("iterations", 1..=1_000_000)?.unwrap_or(usual.iterations),
        tolerance: weight("tolerance", usual.tolerance)?,
        rate: options.number("lr_network", rates)?.unwrap_or(usual.rate),
        lambda_latent: weight("lambda_latent", usual.lambda_latent)?,
        lambda_network: weight("lambda_network", usual.lambda_network)?,
        offset: Domain::log_from_options(options)?,
        ..usual
    }))
}

impl NaiveUnn {
    /// The shape for these readings: an output for each band, channels by the budget.
    fn shape_for(&self, readings: &Readings, grid: Grid) -> Result<Shape, InputError> {
        let (rows, cols) = (grid.rows(), grid.cols());
        let of = |channels: usize| Shape { channels, outputs: readings.bands(), ..self.shape };
        let count =
            |channels: usize| of(channels).layout(self.shape.blocks_on(rows, cols)).parameters();
        match self.size {
            NaiveSize::Channels(channels) => Ok(of(channels)),
            NaiveSize::Parameters(budget) => {
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

impl Method for NaiveUnn {
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
        let unit = power.iter().copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
        let offset = link.offset() / unit;
        let shape = self.shape_for(readings, grid)?;
        let decoder = Decoder::new(&shape, grid.rows(), grid.cols(), 1)?;
        let cells: Vec<usize> = readings.cells(grid)?.iter().map(|&c| grid.index(c)).collect();
        let readout = decoder.readout(&cells)?;
        let draw = if self.uniform_start { Draw::Uniform } else { Draw::Xavier };
        let mut at = random_network(&decoder, draw, &mut stream(context.seed, 0));
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
        let mut report = Report::of_descent(trace);
        report.add_fitted(&[("parameters", decoder.parameters() as f64)]);
        let decoded = DecodedBands { shape, params: at.params, latent: at.latents, unit };
        let mut model = gridded_model(readings, grid, decoded)?;
        *model.report_mut() = report;
        Ok(model)
    }
}

/// The result of the fit: a network with an output for every band, and its latent.
struct DecodedBands {
    shape: Shape,
    params: Vec<f32>,
    latent: Vec<f32>,
    unit: f64,
}

impl DecodedBands {
    fn load(archive: &Archive, bands: usize) -> Result<Self, EstimateError> {
        let shape = load_shape(archive)?;
        if shape.outputs != bands {
            return Err(damaged("shape", "does not have an output for every band").into());
        }
        Ok(Self {
            shape,
            params: archive.single("params")?,
            latent: archive.single("latents")?,
            unit: archive.number("unit")?,
        })
    }
}

impl Drawing for DecodedBands {
    fn kind(&self) -> &'static str {
        KIND
    }

    /// Beside the channels every band in single and in double precision.
    fn bytes_per_cell(&self) -> u64 {
        64 * 8 + 12 * self.shape.outputs as u64
    }

    fn draw(&self, grid: Grid) -> Result<DrawnGrid, EstimateError> {
        let decoder = Decoder::new(&self.shape, grid.rows(), grid.cols(), 1)?;
        if self.params.len() != decoder.parameters() || self.latent.len() != decoder.latent_len() {
            return Err(damaged("params", "does not fit the decoder's shape").into());
        }
        let mut workspace = decoder.workspace();
        decoder.forward(&self.params, &self.latent, &mut workspace);
        let (drawn, cells) = (workspace.slf(), grid.cells());
        let shape = (grid.rows(), grid.cols(), self.shape.outputs);
        let power = Array3::from_shape_fn(shape, |(i, j, k)| {
            self.unit * f64::from(drawn[k * cells + i * grid.cols() + j])
        });
        if power.iter().any(|x| !x.is_finite()) {
            return Err(EstimateError::Numerical("the fit diverged: lower lr_network".into()));
        }
        Ok(DrawnGrid::Dense(power))
    }

    fn save(&self, archive: &mut Archive) {
        save_shape(&self.shape, archive);
        archive.put_single("params", &self.params);
        archive.put_single("latents", &self.latent);
        archive.put_number("unit", self.unit);
    }
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
        let descent = Descent {
            iterations: options.iterations,
            tolerance: options.tolerance,
            ending: Ending::Either,
            schedule: options.schedule,
        };
        let trace = descent.run(
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
