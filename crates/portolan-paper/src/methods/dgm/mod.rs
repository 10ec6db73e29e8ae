//! The learned baseline: SLFs drawn by a trained generator, X = sum_r S(z_r) o c_r, fitted to the
//! readings over latents z_r and PSDs c_r >= 0 (Shrestha, Fu and Hong, "Deep Spectrum Cartography",
//! 2022; for quantised levels Timilsina, Shrestha and Fu, 2023), the best of several starts.

mod fit;
mod start;

use ndarray::{Array2, Array3};
use rayon::prelude::*;

use crate::generator::{Generator, Sampler, Trained};
use fit::{DgmFit, DgmFitOptions, DgmUnknowns};
use portolan::Grid;
use portolan::Link;
use portolan::Progress;
use portolan::engine::Misfit;
use portolan::engine::{Descent, Ending, Schedule};
use portolan::engine::{Likelihood, Probit, SquaredError};
use portolan::estimate::parts::{
    OFFSET, TOLERANCE, gridded_model, number_of_emitters, shown_emitters, unit_norm, unmix_readings,
};
use portolan::estimate::{Capability, Context, Domain, Entry, Method, OptionSpec, Options};
use portolan::model::{Archive, Drawing, DrawnGrid, Model, Report, damaged};
use portolan::quantiser::MISSING_LEVEL;
use portolan::{EstimateError, InputError};
use portolan::{Readings, Values};
use portolan_decoder::simd::padded;
use start::{StartOptions, fit_targets, random_point, targets};

const OWN: &[OptionSpec] = &[
    OptionSpec {
        name: "weights",
        default: "broad (trained on shadowing of 4 to 8 dB, decorrelation of 40 to 90 m)",
        takes: "broad | narrow (7 to 8 dB, 40 to 70 m)",
    },
    OptionSpec { name: "start", default: "unmixed (ours)", takes: "unmixed | random" },
    OptionSpec {
        name: "draws",
        default: "128 (ours)",
        takes: "1 to 100000 random points to look at",
    },
    OptionSpec {
        name: "starts",
        default: "3 (ours)",
        takes: "1 to 1000, as many of the best draws are descended",
    },
    OptionSpec { name: "start_iterations", default: "200 (ours)", takes: "1 to 1000000, for each" },
    OptionSpec { name: "iterations", default: "400 (ours)", takes: "1 to 1000000" },
    TOLERANCE,
    OptionSpec { name: "lr_latent", default: "0.2, falling (ours)", takes: "a number above 0" },
    OptionSpec { name: "lr_psd", default: "0.01, falling (ours)", takes: "a number, 0 or more" },
    OptionSpec {
        name: "lambda_latent",
        default: "0.03 (ours)",
        takes: "weight of |z|^2 beside the misfit per band; a number, 0 or more",
    },
    OFFSET,
];
const OPTIONS: &[&[OptionSpec]] = &[OWN];

const KIND: &str = "dgm";

/// What a generator misses of ln power, about: levels are taken to have no less noise.
const LEAST_SIGMA: f64 = 0.5;

/// Where the fit begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum DgmStart {
    /// PSDs by unmixing, latents fitted to each emitter's SLF at the sensors.
    #[default]
    Unmixed,
    /// The best of many random points.
    Random,
}

/// SLFs of a generator trained on simulated ones, with their PSDs: the learned baseline.
///
/// ```
/// use portolan::estimate::Method;
/// use portolan_paper::Dgm;
/// use portolan::{Context, Emitters, Grid, Progress};
/// # use portolan::sense::{SensorLayout, Sensing, sense};
/// # use portolan::simulate::{Scenario, simulate};
/// let grid = Grid::new(12, 12, 1.0)?;
/// let truth = simulate(&Scenario { bands: 8, emitters: 2, seed: 3, ..Scenario::new(grid) })?;
/// let readings = sense(&truth, &Sensing::exact(SensorLayout::Count(40), 0))?;
/// let context = Context { emitters: Emitters::Count(2), ..Context::default() };
/// # if cfg!(feature = "dgm-weights") {
/// let quick = Dgm { draws: 4, starts: 1, start_iterations: 2, iterations: 3, ..Dgm::default() };
/// let model = quick.fit(&readings, &context, &Progress::silent())?;
/// assert_eq!((model.emitters().len(), model.report().iterations), (2, 3));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dgm {
    /// Which weights.
    pub trained: Trained,
    /// Where the fit begins.
    pub start: DgmStart,
    /// Random points looked at.
    pub draws: usize,
    /// Points descended.
    pub starts: usize,
    /// Iterations for each of them.
    pub start_iterations: usize,
    /// Most iterations of the joint fit.
    pub iterations: usize,
    /// Stop once the loss changes relatively less; 0 = never.
    pub tolerance: f64,
    /// Learning rate of the latents.
    pub rate_latent: f64,
    /// Learning rate of the PSDs.
    pub rate_psd: f64,
    /// Weight of the latents' squared norm beside the misfit per band.
    pub lambda_latent: f64,
    /// The a of ln(x + a); from the unit where absent.
    pub offset: Option<f64>,
}

impl Default for Dgm {
    fn default() -> Self {
        Self {
            trained: Trained::default(),
            start: DgmStart::Unmixed,
            draws: 128,
            starts: 3,
            start_iterations: 200,
            iterations: 400,
            tolerance: 0.0,
            rate_latent: 0.2,
            rate_psd: 0.01,
            lambda_latent: 0.03,
            offset: None,
        }
    }
}

const WEIGHTS: [(&str, Trained); 2] = [("broad", Trained::Broad), ("narrow", Trained::Narrow)];

/// This method in the register.
pub(super) const ENTRY: Entry = Entry::new(
    "dgm",
    "SLFs of a generator trained on simulated ones, with their PSDs (the learned baseline)",
    build,
)
.with_revision(3)
.with_capabilities(&[Capability::Emitters, Capability::Grid])
.with_options(OPTIONS)
.with_kinds(&[(KIND, |saved| saved.gridded(GeneratedSlfs::load(saved.archive, saved.bands)?))]);

fn build(options: &Options) -> Result<Box<dyn Method>, InputError> {
    let usual = Dgm::default();
    let finite = 0.0..f64::INFINITY;
    let starts = [("unmixed", DgmStart::Unmixed), ("random", DgmStart::Random)];
    let rates = f64::MIN_POSITIVE..f64::INFINITY;
    let count = |name: &str, most: usize, default: usize| -> Result<usize, InputError> {
        Ok(options.count(name, 1..=most)?.unwrap_or(default))
    };
    Ok(Box::new(Dgm {
        trained: options.choice("weights", &WEIGHTS)?.unwrap_or_default(),
        start: options.choice("start", &starts)?.unwrap_or_default(),
        draws: count("draws", 100_000, usual.draws)?,
        starts: count("starts", 1000, usual.starts)?,
        start_iterations: count("start_iterations", 1_000_000, usual.start_iterations)?,
        iterations: count("iterations", 1_000_000, usual.iterations)?,
        tolerance: options.number("tolerance", finite.clone())?.unwrap_or(usual.tolerance),
        rate_latent: options.number("lr_latent", rates)?.unwrap_or(usual.rate_latent),
        rate_psd: options.number("lr_psd", finite.clone())?.unwrap_or(usual.rate_psd),
        lambda_latent: options.number("lambda_latent", finite)?.unwrap_or(usual.lambda_latent),
        offset: Domain::log_from_options(options)?,
    }))
}

impl Method for Dgm {
    fn fit(
        &self,
        readings: &Readings,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Model, EstimateError> {
        progress.check()?;
        let generator = self.trained.generator()?;
        let grid = context.grid_for(readings)?;
        let readings = &readings.on_grid(grid)?;
        let power = readings.power_or_floor();
        let link = self.offset.map_or_else(|| readings.floored_link(), Link::new);
        let unit = power.iter().copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
        let cells: Vec<usize> = readings.cells(grid)?.iter().map(|&c| grid.index(c)).collect();
        let sampler = generator.sampler((grid.rows(), grid.cols()), &cells);
        let job = DgmJob {
            dgm: self,
            readings,
            context,
            generator,
            sampler: &sampler,
            emitters: number_of_emitters(readings, context)?,
            unit,
            offset: link.offset() / unit,
        };
        let logs: Vec<f32> = power.iter().map(|x| (x / unit + job.offset).ln() as f32).collect();
        let (at, trace) = match readings.values() {
            Values::Power(_) => {
                let mean = mean(&logs);
                job.solve(SquaredError::plain(), &logs, f32::NAN, mean, progress)?
            }
            Values::Levels { levels, quantiser } => {
                let probit = Probit::at_least(quantiser, LEAST_SIGMA).lowered(unit.ln());
                let targets: Vec<u8> = levels.iter().copied().collect();
                job.solve(probit, &targets, MISSING_LEVEL, mean(&logs), progress)?
            }
        };
        let mut report = Report::of_descent(trace);
        let square = at.latents.iter().map(|z| f64::from(z * z)).sum::<f64>();
        report.add_fitted(&[("latent_rms", (square / at.latents.len() as f64).sqrt())]);
        report.notes.extend(stretched(grid, generator.side()));
        let generated = GeneratedSlfs { trained: self.trained, bands: readings.bands(), at, unit };
        let mut model = gridded_model(readings, grid, generated)?;
        *model.report_mut() = report;
        Ok(model)
    }
}

/// Over the values that are there.
fn mean(values: &[f32]) -> f64 {
    let there = || values.iter().filter(|v| v.is_finite());
    there().map(|v| f64::from(*v)).sum::<f64>() / there().count().max(1) as f64
}

/// One fit on its way; powers are multiples of `unit`.
struct DgmJob<'a> {
    dgm: &'a Dgm,
    readings: &'a Readings,
    context: &'a Context<'a>,
    generator: &'a Generator,
    sampler: &'a Sampler,
    emitters: usize,
    unit: f64,
    offset: f64,
}

impl DgmJob<'_> {
    fn solve<L: Likelihood<f32> + Clone>(
        &self,
        likelihood: L,
        targets: &[L::Target],
        missing: L::Target,
        mean: f64,
        progress: &Progress<'_>,
    ) -> Result<(DgmUnknowns, Vec<f64>), EstimateError> {
        let bands = self.readings.bands();
        let fit = || {
            let misfit = Misfit::new(likelihood.clone(), targets, missing, bands, self.offset);
            DgmFit::new(self.generator, self.sampler, misfit, self.emitters, bands)
        };
        let mut at = match self.dgm.start {
            DgmStart::Unmixed => self.unmixed(progress)?,
            DgmStart::Random => self.best_random(fit, mean, progress)?,
        };
        progress.fit_begins();
        let trace = fit().descend(&mut at, &self.options(self.dgm.iterations), progress)?;
        Ok((at, trace))
    }

    fn options(&self, iterations: usize) -> DgmFitOptions {
        let Dgm { rate_latent, rate_psd, lambda_latent, tolerance, .. } = *self.dgm;
        let ending = Ending::Either;
        let descent = Descent { iterations, tolerance, ending, schedule: Schedule::Cosine };
        DgmFitOptions { descent, rate_latent, rate_psd, lambda: lambda_latent }
    }

    /// Of many random points the lowest are descended a little, and the lowest of them is taken.
    fn best_random<'f, L: Likelihood<f32> + 'f>(
        &self,
        fit: impl Fn() -> DgmFit<'f, L> + Sync,
        mean: f64,
        progress: &Progress<'_>,
    ) -> Result<DgmUnknowns, EstimateError> {
        let options = self.options(self.dgm.start_iterations);
        let size = (self.emitters, self.readings.bands());
        let seed = self.context.seed;
        let quiet = progress.quiet();
        let point =
            |which: usize| random_point(self.generator, self.sampler, size, mean, seed, which);
        let mut drawn: Vec<(f64, usize)> = (0..self.dgm.draws.max(self.dgm.starts))
            .into_par_iter()
            .map_init(&fit, |fit, which| {
                (fit.evaluate(&point(which), self.dgm.lambda_latent), which)
            })
            .collect();
        drawn.sort_by(|a, b| a.0.total_cmp(&b.0));
        let points = drawn[..self.dgm.starts]
            .par_iter()
            .map(|&(_, which)| {
                let mut at = point(which);
                let trace = fit().descend(&mut at, &options, &quiet)?;
                Ok((trace.last().copied().unwrap_or(f64::INFINITY), at))
            })
            .collect::<Result<Vec<_>, EstimateError>>()?;
        let best = points.into_iter().min_by(|a, b| a.0.total_cmp(&b.0));
        Ok(best.expect("there is a start").1)
    }

    /// PSDs by unmixing the readings, latents by fitting each emitter's SLF at the sensors.
    fn unmixed(&self, progress: &Progress<'_>) -> Result<DgmUnknowns, EstimateError> {
        let shown = shown_emitters(self.readings, self.emitters);
        let seed = self.context.seed;
        let unmixed = unmix_readings(self.readings, shown, self.offset * self.unit, seed)?;
        let (mut psd, targets) = targets(&unmixed, self.unit, self.offset);
        let options = StartOptions {
            draws: self.dgm.draws,
            starts: self.dgm.starts,
            iterations: self.dgm.start_iterations,
            rate_latent: self.dgm.rate_latent,
            lambda: self.dgm.lambda_latent,
        };
        let (mut latents, mut levels) =
            fit_targets(self.generator, self.sampler, &targets, &options, seed, progress)?;
        // Emitters beyond those shown begin as silent copies.
        psd.resize(self.emitters * padded(self.readings.bands()), 0.0);
        for extra in shown..self.emitters {
            let len = self.generator.latent_len();
            let from = extra % shown;
            latents.extend_from_within(from * len..(from + 1) * len);
            levels.push(levels[from]);
        }
        Ok(DgmUnknowns { latents, levels, psd })
    }
}

/// What to know where the grid is not the one of the training.
fn stretched(grid: Grid, side: usize) -> Option<String> {
    if (grid.rows(), grid.cols()) == (side, side) && grid.cell_m() == 1.0 {
        return None;
    }
    Some(format!(
        "the learned prior knows {side} x {side} cells of 1 m: its SLFs are stretched to {} x {} \
         cells of {} m, so path loss and shadowing are of another size than it was trained on",
        grid.rows(),
        grid.cols(),
        grid.cell_m()
    ))
}

/// The result of the fit: a latent, a level and a PSD for each emitter, in multiples of a unit.
struct GeneratedSlfs {
    trained: Trained,
    bands: usize,
    at: DgmUnknowns,
    unit: f64,
}

impl GeneratedSlfs {
    fn load(archive: &Archive, bands: usize) -> Result<Self, EstimateError> {
        Ok(Self {
            trained: archive.choice("weights", &WEIGHTS)?,
            bands,
            at: DgmUnknowns {
                latents: archive.single("latents")?,
                levels: archive.single("levels")?,
                psd: archive.single("psd")?,
            },
            unit: archive.number("unit")?,
        })
    }
}

impl Drawing for GeneratedSlfs {
    fn kind(&self) -> &'static str {
        KIND
    }

    /// SLFs of unit norm, PSDs in the readings' own unit.
    fn draw(&self, grid: Grid) -> Result<DrawnGrid, EstimateError> {
        let generator = self.trained.generator()?;
        let (size, width) = ((grid.rows(), grid.cols()), padded(self.bands));
        let DgmUnknowns { latents, levels, psd } = &self.at;
        let emitters = levels.len();
        let fits = latents.len() == emitters * generator.latent_len();
        if emitters == 0 || !fits || psd.len() != emitters * width {
            return Err(damaged("latents", "does not fit the generator").into());
        }
        let cells: Vec<usize> = (0..grid.cells()).collect();
        let everywhere = generator.sampler(size, &cells);
        let mut ws = generator.workspace(emitters);
        generator.forward(latents, &everywhere, &mut ws);
        let drawn = ws.ln_slf().iter().map(|f| f64::from(*f).exp()).collect();
        let slf =
            Array3::from_shape_vec((emitters, size.0, size.1), drawn).expect("every cell is drawn");
        let psd = Array2::from_shape_fn((emitters, self.bands), |(r, k)| {
            self.unit * f64::from(levels[r]).exp() * f64::from(psd[r * width + k])
        });
        unit_norm(slf, psd)
    }

    fn save(&self, archive: &mut Archive) {
        archive.put_choice("weights", &WEIGHTS, self.trained);
        archive.put_single("latents", &self.at.latents);
        archive.put_single("levels", &self.at.levels);
        archive.put_single("psd", &self.at.psd);
        archive.put_number("unit", self.unit);
    }
}

#[cfg(all(test, feature = "dgm-weights"))]
mod tests;
