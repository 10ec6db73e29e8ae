//! Where the joint fit begins: the best of several random latents, each fitted to its emitter's
//! unmixed log-SLF at the sensors, or the best of several random points of the joint fit.

use ndarray::Array2;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;

use super::fit::DgmUnknowns;
use crate::generator::{Generator, Sampler};
use portolan::EstimateError;
use portolan::Progress;
use portolan::engine::Schedule;
use portolan::engine::padded_rows;
use portolan::estimate::parts::Unmixed;
use portolan::estimate::parts::random_psd;
use portolan::simulate::stream;
use portolan_decoder::adam::Adam;
use portolan_decoder::penalty::add_penalty;
use portolan_decoder::simd::padded;

/// Logarithm of one emitter's SLF at the sensors, less what its level will carry.
pub(super) struct Target {
    ln_slf: Vec<f32>,
    /// How far each sensor can tell, 0 to 1.
    weight: Vec<f32>,
}

impl Target {
    /// The level that suits ln S best, and the weighted squared error that remains.
    fn miss(&self, drawn: &[f32]) -> (f32, f32) {
        let entries = || drawn.iter().zip(&self.ln_slf).zip(&self.weight);
        let total: f32 = self.weight.iter().sum();
        let level = entries().map(|((f, t), w)| w * (t - f)).sum::<f32>() / total;
        (level, entries().map(|((f, t), w)| w * (f + level - t).powi(2)).sum())
    }
}

/// What unmixing found, in multiples of `unit`: PSDs with peak 1 (emitters x padded bands), and the
/// SLFs to be drawn.
pub(super) fn targets(unmixed: &Unmixed, unit: f64, offset: f64) -> (Vec<f32>, Vec<Target>) {
    let (emitters, bands) = unmixed.psd.dim();
    let width = padded(bands);
    let mut psd = vec![0.0f32; emitters * width];
    let power: Array2<f64> = unmixed.slf_at_sensors.dot(&unmixed.psd) / unit;
    let mut targets = Vec::with_capacity(emitters);
    for (r, spectrum) in unmixed.psd.outer_iter().enumerate() {
        let peak = spectrum.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let row = psd[r * width..].iter_mut().zip(spectrum);
        row.for_each(|(c, v)| *c = (v / peak) as f32);
        let slf = unmixed.slf_at_sensors.column(r);
        // An emitter that contributes less than the offset in every band cannot be told from none.
        let value = |s: &f64| (s * peak / unit).max(offset).ln() as f32;
        let weight = |(n, s): (usize, &f64)| {
            let shares = spectrum.iter().zip(power.row(n));
            let most = shares.map(|(c, x)| s * c / unit / (x + offset)).fold(0.0, f64::max);
            (most * most).max(WEIGHT_FLOOR) as f32
        };
        targets.push(Target {
            ln_slf: slf.iter().map(value).collect(),
            weight: slf.iter().enumerate().map(weight).collect(),
        });
    }
    (psd, targets)
}

/// Even a sensor that hears only other emitters says that this one is faint there.
const WEIGHT_FLOOR: f64 = 0.01;

/// How many starts there are and how they are fitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct StartOptions {
    /// Random latents looked at, those of them descended, and how far.
    pub draws: usize,
    pub starts: usize,
    pub iterations: usize,
    pub rate_latent: f64,
    pub lambda: f64,
}

/// One latent on its way to a target.
struct Single {
    latent: Vec<f32>,
    level: f32,
    loss: f64,
}

/// A standard normal latent; `which` numbers the latents of a seed.
pub(super) fn random_latent(len: usize, seed: u64, which: usize) -> Vec<f32> {
    let mut rng = stream(seed, 1 + which as u64);
    (0..len).map(|_| StandardNormal.sample(&mut rng)).collect()
}

/// Latents and levels of all emitters: of many random latents those nearest to the emitter's target
/// are descended, and the best of them is taken.
pub(super) fn fit_targets(
    generator: &Generator,
    sampler: &Sampler,
    targets: &[Target],
    options: &StartOptions,
    seed: u64,
    progress: &Progress<'_>,
) -> Result<(Vec<f32>, Vec<f32>), EstimateError> {
    progress.check()?;
    let draws = options.draws.max(options.starts);
    let pool: Vec<(Vec<f32>, Vec<f32>)> = (0..draws)
        .into_par_iter()
        .map_init(
            || generator.workspace(1),
            |ws, which| {
                let latent = random_latent(generator.latent_len(), seed, which);
                generator.forward(&latent, sampler, ws);
                (latent, ws.ln_slf().to_vec())
            },
        )
        .collect();
    let tasks: Vec<(usize, usize)> = targets
        .iter()
        .enumerate()
        .flat_map(|(r, target)| {
            let misses: Vec<f32> = pool.iter().map(|(_, drawn)| target.miss(drawn).1).collect();
            let mut order: Vec<usize> = (0..draws).collect();
            order.sort_by(|&a, &b| misses[a].total_cmp(&misses[b]));
            order.into_iter().take(options.starts).map(move |which| (r, which))
        })
        .collect();
    let fitted: Vec<Single> = tasks
        .into_par_iter()
        .map(|(r, which)| {
            let latent = pool[which].0.clone();
            fit_single(generator, sampler, &targets[r], latent, options, progress)
        })
        .collect::<Result<_, EstimateError>>()?;
    let best = fitted.chunks_exact(options.starts).map(|singles| {
        singles.iter().min_by(|a, b| a.loss.total_cmp(&b.loss)).expect("there is a start")
    });
    let (mut latents, mut levels) = (Vec::new(), Vec::new());
    for single in best {
        latents.extend_from_slice(&single.latent);
        levels.push(single.level);
    }
    Ok((latents, levels))
}

/// Adam on the weighted squared error of ln S + level against a target, the level always the best.
fn fit_single(
    generator: &Generator,
    sampler: &Sampler,
    target: &Target,
    mut latent: Vec<f32>,
    options: &StartOptions,
    progress: &Progress<'_>,
) -> Result<Single, EstimateError> {
    let mut ws = generator.workspace(1);
    let mut upstream = vec![0.0f32; sampler.len()];
    let mut gradient = vec![0.0f32; latent.len()];
    let mut adam = Adam::new(latent.len());
    let (mut level, mut loss) = (0.0f32, f64::INFINITY);
    for iteration in 0..options.iterations {
        progress.check()?;
        generator.forward(&latent, sampler, &mut ws);
        let misfit;
        (level, misfit) = target.miss(ws.ln_slf());
        let entries = ws.ln_slf().iter().zip(&target.ln_slf).zip(&target.weight);
        for (up, ((f, t), w)) in upstream.iter_mut().zip(entries) {
            *up = 2.0 * w * (f + level - t);
        }
        generator.backward(&upstream, sampler, &mut ws, &mut gradient);
        loss = f64::from(misfit) + add_penalty(options.lambda, &latent, &mut gradient);
        if !loss.is_finite() {
            return Err(EstimateError::Numerical(
                "the start of the fit diverged: lower lr_latent".into(),
            ));
        }
        let rate = options.rate_latent * Schedule::Cosine.factor(iteration, options.iterations);
        adam.step(rate, &mut latent, &gradient);
    }
    Ok(Single { latent, level, loss })
}

/// A random point of the joint fit, its power in the mean that of the readings (`mean` is of
/// ln(x + a) over them).
pub(super) fn random_point(
    generator: &Generator,
    sampler: &Sampler,
    (emitters, bands): (usize, usize),
    mean: f64,
    seed: u64,
    which: usize,
) -> DgmUnknowns {
    let count = emitters * generator.latent_len();
    let latents = random_latent(count, seed, which);
    let mut ws = generator.workspace(emitters);
    generator.forward(&latents, sampler, &mut ws);
    let drawn: f64 =
        ws.ln_slf().iter().map(|f| f64::from(*f)).sum::<f64>() / ws.ln_slf().len() as f64;
    // Emitters add up, and their PSDs are one half in the mean.
    let level = mean - drawn - (0.5 * emitters as f64).ln();
    let mut rng = stream(seed, (1 << 32) + which as u64);
    DgmUnknowns {
        latents,
        levels: vec![level as f32; emitters],
        psd: padded_rows(&random_psd(emitters, bands, &mut rng), bands),
    }
}
