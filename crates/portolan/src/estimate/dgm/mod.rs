//! The learned baseline: SLFs drawn by a trained generator, X = sum_r S(z_r) o c_r, fitted to the
//! readings over latents z_r and PSDs c_r >= 0 (Shrestha, Fu and Hong, "Deep Spectrum Cartography",
//! 2022; for quantised levels Timilsina, Shrestha and Fu, 2023), the best of several starts.

mod fit;
mod start;

use ndarray::{Array2, Array3};
use rayon::prelude::*;

use super::bands::{OFFSET, Scale};
use super::btd::factored;
use super::emitters::{number_of_emitters, shown, unmix_readings};
use super::options::TOLERANCE;
use super::{Context, Estimate, Estimator, OptionSpec, Options, Progress};
use crate::descent::{Descent, Schedule};
use crate::error::{EstimateError, InputError};
use crate::generator::{Generator, Sampler, Trained};
use crate::likelihood::{Likelihood, Probit, SquaredError};
use crate::map::RadioMap;
use crate::misfit::Misfit;
use crate::quantiser::MISSING_LEVEL;
use crate::readings::{Readings, Values};
use crate::simd::padded;
use fit::{DgmFit, DgmFitOptions, DgmUnknowns};
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
pub(super) const OPTIONS: &[&[OptionSpec]] = &[OWN];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    Unmixed,
    Random,
}

struct Dgm {
    trained: Trained,
    start: Start,
    draws: usize,
    starts: usize,
    start_iterations: usize,
    descent: Descent,
    rate_latent: f64,
    rate_psd: f64,
    lambda: f64,
    scale: Scale,
}

pub(super) fn build(options: &Options) -> Result<Box<dyn Estimator>, InputError> {
    let finite = 0.0..f64::INFINITY;
    let weights = [("broad", Trained::Broad), ("narrow", Trained::Narrow)];
    let starts = [("unmixed", Start::Unmixed), ("random", Start::Random)];
    let rates = f64::MIN_POSITIVE..f64::INFINITY;
    Ok(Box::new(Dgm {
        trained: options.choice("weights", &weights)?.unwrap_or_default(),
        start: options.choice("start", &starts)?.unwrap_or(Start::Unmixed),
        draws: options.count("draws", 1..=100_000)?.unwrap_or(128),
        starts: options.count("starts", 1..=1000)?.unwrap_or(3),
        start_iterations: options.count("start_iterations", 1..=1_000_000)?.unwrap_or(200),
        descent: Descent {
            iterations: options.count("iterations", 1..=1_000_000)?.unwrap_or(400),
            tolerance: options.number("tolerance", finite.clone())?.unwrap_or(0.0),
            schedule: Schedule::Cosine,
        },
        rate_latent: options.number("lr_latent", rates)?.unwrap_or(0.2),
        rate_psd: options.number("lr_psd", finite.clone())?.unwrap_or(0.01),
        lambda: options.number("lambda_latent", finite)?.unwrap_or(0.03),
        scale: Scale::log_from_options(options)?,
    }))
}

impl Estimator for Dgm {
    fn estimate(
        &self,
        readings: &Readings,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Estimate, EstimateError> {
        progress.report(0, 1)?;
        let generator = self.trained.generator()?;
        let power = readings.power();
        let link = self.scale.link(readings, &power).expect("the scale is logarithmic");
        let unit = power.iter().copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
        let grid = readings.grid();
        let cells: Vec<usize> = readings.cells().iter().map(|&c| grid.index(c)).collect();
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
                let probit = Probit::shifted(quantiser, unit.ln());
                let targets: Vec<u8> = levels.iter().copied().collect();
                job.solve(probit, &targets, MISSING_LEVEL, mean(&logs), progress)?
            }
        };
        let mut estimate = Estimate::new(job.draw(&at)?);
        estimate.iterations = trace.len();
        estimate.loss = trace.last().copied();
        estimate.loss_trace = trace;
        let square = at.latents.iter().map(|z| f64::from(z * z)).sum::<f64>();
        estimate.fitted.push(("latent_rms", (square / at.latents.len() as f64).sqrt()));
        estimate.notes.extend(job.note());
        Ok(estimate)
    }
}

/// Over the values that are there.
fn mean(values: &[f32]) -> f64 {
    let there = || values.iter().filter(|v| v.is_finite());
    there().map(|v| f64::from(*v)).sum::<f64>() / there().count().max(1) as f64
}

/// One estimate on its way; powers are multiples of `unit`.
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
            Start::Unmixed => self.unmixed(progress)?,
            Start::Random => self.best_random(fit, mean, progress)?,
        };
        progress.fit_begins();
        let trace = fit().descend(&mut at, &self.options(self.dgm.descent), progress)?;
        Ok((at, trace))
    }

    fn options(&self, descent: Descent) -> DgmFitOptions {
        let Dgm { rate_latent, rate_psd, lambda, .. } = *self.dgm;
        DgmFitOptions { descent, rate_latent, rate_psd, lambda }
    }

    /// Of many random points the lowest are descended a little, and the lowest of them is taken.
    fn best_random<'f, L: Likelihood<f32> + 'f>(
        &self,
        fit: impl Fn() -> DgmFit<'f, L> + Sync,
        mean: f64,
        progress: &Progress<'_>,
    ) -> Result<DgmUnknowns, EstimateError> {
        let descent = Descent { iterations: self.dgm.start_iterations, ..self.dgm.descent };
        let options = self.options(descent);
        let size = (self.emitters, self.readings.bands());
        let seed = self.context.seed;
        let quiet = |_: f64| progress.report(0, 1).is_ok();
        let point =
            |which: usize| random_point(self.generator, self.sampler, size, mean, seed, which);
        let mut drawn: Vec<(f64, usize)> = (0..self.dgm.draws.max(self.dgm.starts))
            .into_par_iter()
            .map_init(&fit, |fit, which| (fit.evaluate(&point(which), self.dgm.lambda), which))
            .collect();
        drawn.sort_by(|a, b| a.0.total_cmp(&b.0));
        let points = drawn[..self.dgm.starts]
            .par_iter()
            .map(|&(_, which)| {
                let mut at = point(which);
                let trace = fit().descend(&mut at, &options, &Progress::new(&quiet))?;
                Ok((trace.last().copied().unwrap_or(f64::INFINITY), at))
            })
            .collect::<Result<Vec<_>, EstimateError>>()?;
        let best = points.into_iter().min_by(|a, b| a.0.total_cmp(&b.0));
        Ok(best.expect("there is a start").1)
    }

    /// PSDs by unmixing the readings, latents by fitting each emitter's SLF at the sensors.
    fn unmixed(&self, progress: &Progress<'_>) -> Result<DgmUnknowns, EstimateError> {
        let shown = shown(self.readings, self.emitters);
        let seed = self.context.seed;
        let unmixed = unmix_readings(self.readings, shown, self.offset * self.unit, seed)?;
        let (mut psd, targets) = targets(&unmixed, self.unit, self.offset);
        let options = StartOptions {
            draws: self.dgm.draws,
            starts: self.dgm.starts,
            iterations: self.dgm.start_iterations,
            rate_latent: self.dgm.rate_latent,
            lambda: self.dgm.lambda,
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

    /// The fitted map: SLFs of unit norm, PSDs in the readings' own unit.
    fn draw(&self, at: &DgmUnknowns) -> Result<RadioMap, EstimateError> {
        let grid = self.readings.grid();
        let size = (grid.rows(), grid.cols());
        let cells: Vec<usize> = (0..grid.cells()).collect();
        let everywhere = self.generator.sampler(size, &cells);
        let mut ws = self.generator.workspace(self.emitters);
        self.generator.forward(&at.latents, &everywhere, &mut ws);
        let drawn = ws.ln_slf().iter().map(|f| f64::from(*f).exp()).collect();
        let slf = Array3::from_shape_vec((self.emitters, size.0, size.1), drawn)
            .expect("every cell is drawn");
        let width = padded(self.readings.bands());
        let psd = Array2::from_shape_fn((self.emitters, self.readings.bands()), |(r, k)| {
            self.unit * f64::from(at.levels[r]).exp() * f64::from(at.psd[r * width + k])
        });
        factored(self.readings, slf, psd)
    }

    /// What to know where the grid is not the one of the training.
    fn note(&self) -> Option<String> {
        let (grid, side) = (self.readings.grid(), self.generator.side());
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
}

#[cfg(test)]
mod tests;
