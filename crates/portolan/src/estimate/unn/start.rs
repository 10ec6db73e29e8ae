//! Where the fit begins: a random network, or one that imitates SLFs found by simpler means.

use fearless_simd::{Level, dispatch};
use ndarray::Array2;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::fit::Unknowns;
use super::misfit::{LANES, ln, padded};
use crate::adam::Adam;
use crate::decoder::Decoder;
use crate::error::EstimateError;
use crate::estimate::btd::slf_readings;
use crate::estimate::course::Schedule;
use crate::estimate::{Context, Method};
use crate::grid::Grid;
use crate::progress::Progress;
use crate::readings::Readings;
use crate::unmix::Unmixed;

/// SLFs and PSDs to begin with: emitters x cells in (0, 1), emitters x bands.
pub(super) struct Guess {
    pub slf: Vec<f32>,
    pub psd: Array2<f64>,
}

impl Guess {
    /// From unmixed SLFs at the sensors, carried to the grid by an interpolator.
    pub fn interpolated(
        readings: &Readings,
        grid: Grid,
        unmixed: &Unmixed,
        method: &dyn Method,
        floor: f64,
        progress: &Progress<'_>,
    ) -> Result<Self, EstimateError> {
        // An emitter that contributes less than the offset in every band cannot be told from none.
        let mut lifted = unmixed.slf_at_sensors.clone();
        for (mut column, spectrum) in lifted.columns_mut().into_iter().zip(unmixed.psd.outer_iter())
        {
            let peak = spectrum.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
            column.mapv_inplace(|s| s.max(floor / peak));
        }
        let at_sensors = slf_readings(readings, lifted)?;
        let quiet = progress.quiet();
        let model = method.fit(&at_sensors, &Context::default(), &quiet)?;
        let map = model.map(grid, &quiet)?;
        Ok(Self::new(grid, &unmixed.psd, |r| map.band(r)))
    }

    /// Fills up to `emitters` with silent copies: they take nothing of what the decoder can draw.
    pub fn widened(mut self, emitters: usize) -> Self {
        let (shown, bands) = self.psd.dim();
        let cells = self.slf.len() / shown;
        for extra in shown..emitters {
            let from = extra % shown * cells;
            self.slf.extend_from_within(from..from + cells);
        }
        let mut psd = Array2::zeros((emitters.max(shown), bands));
        psd.slice_mut(ndarray::s![..shown, ..]).assign(&self.psd);
        self.psd = psd;
        self
    }

    /// Scales each SLF to a peak just below 1 and its PSD inversely.
    pub fn new(grid: Grid, psd: &Array2<f64>, slf: impl Fn(usize) -> Array2<f64>) -> Self {
        let mut out =
            Self { slf: Vec::with_capacity(psd.nrows() * grid.cells()), psd: psd.clone() };
        for (r, mut spectrum) in out.psd.outer_iter_mut().enumerate() {
            let field = slf(r);
            let peak = field.iter().copied().fold(f64::MIN_POSITIVE, f64::max) / 0.9;
            out.slf.extend(field.iter().map(|v| (v / peak) as f32));
            spectrum.mapv_inplace(|c| c * peak);
        }
        out
    }
}

/// How a network without a guess is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::estimate) enum Draw {
    /// Everything uniform in (-1, 1).
    Uniform,
    /// Weights by Glorot and Bengio (2010), scale 1, offset 0, latents standard normal.
    Xavier,
}

/// A random network and random PSDs in [0, 1).
pub(super) fn random(
    decoder: &Decoder,
    bands: usize,
    draw: Draw,
    rng: &mut ChaCha8Rng,
) -> Unknowns {
    let (params, latents) = random_network(decoder, draw, rng);
    Unknowns { params, latents, psd: random_psd(decoder.emitters(), bands, rng) }
}

/// A random network: parameters and latents.
pub(in crate::estimate) fn random_network(
    decoder: &Decoder,
    draw: Draw,
    rng: &mut ChaCha8Rng,
) -> (Vec<f32>, Vec<f32>) {
    let mut params = vec![0.0f32; decoder.parameters()];
    let channels = decoder.shape().channels;
    match draw {
        Draw::Uniform => params.iter_mut().for_each(|p| *p = rng.random_range(-1.0..1.0)),
        Draw::Xavier => {
            let area = decoder.shape().kernel.pow(2);
            let bound = |inputs: usize, outputs: usize| (6.0 / (inputs + outputs) as f32).sqrt();
            for block in &decoder.layout().blocks {
                let b = bound(block.inputs * area, channels * area);
                params[block.conv.clone()].iter_mut().for_each(|p| *p = rng.random_range(-b..b));
                params[block.gamma.clone()].fill(1.0);
            }
            let b = bound(channels, decoder.shape().outputs);
            let out = decoder.layout().out.clone();
            params[out].iter_mut().for_each(|p| *p = rng.random_range(-b..b));
        }
    }
    let latents = (0..decoder.emitters() * decoder.latent_len())
        .map(|_| match draw {
            Draw::Uniform => rng.random_range(-1.0..1.0),
            Draw::Xavier => StandardNormal.sample(rng),
        })
        .collect();
    (params, latents)
}

/// PSDs uniform in [0, 1), padded with zeros.
pub(in crate::estimate) fn random_psd(
    emitters: usize,
    bands: usize,
    rng: &mut ChaCha8Rng,
) -> Vec<f32> {
    let width = padded(bands);
    let mut psd = vec![0.0; emitters * width];
    for row in psd.chunks_exact_mut(width) {
        row[..bands].iter_mut().for_each(|c| *c = rng.random());
    }
    psd
}

/// PSDs of a guess in multiples of `unit`, padded with zeros.
pub(super) fn padded_psd(psd: &Array2<f64>, unit: f64) -> Vec<f32> {
    let width = padded(psd.ncols());
    let mut out = vec![0.0; psd.nrows() * width];
    for (row, spectrum) in out.chunks_exact_mut(width).zip(psd.outer_iter()) {
        row.iter_mut().zip(spectrum).for_each(|(c, v)| *c = (*v / unit) as f32);
    }
    out
}

/// Learning rate at the beginning of an imitation; it falls along half a cosine.
const IMITATION_RATE: f64 = 0.03;

/// Descends from `at` until the decoder draws `slf` (emitters x cells): Adam on the squared error
/// of ln(S + floor), over all cells.
pub(super) fn imitate(
    decoder: &Decoder,
    slf: &[f32],
    floor: f32,
    iterations: usize,
    at: &mut Unknowns,
    progress: &Progress<'_>,
) -> Result<(), EstimateError> {
    let mut workspace = decoder.workspace();
    let mut upstream = vec![0.0f32; slf.len()];
    let (mut grad_params, mut grad_latents) =
        (vec![0.0; at.params.len()], vec![0.0; at.latents.len()]);
    let (mut network, mut latents) = (Adam::new(at.params.len()), Adam::new(at.latents.len()));
    let targets: Vec<f32> = slf.iter().map(|s| (s + floor).ln()).collect();
    let level = Level::new();
    for iteration in 0..iterations {
        progress.report(iteration, iterations)?;
        decoder.forward(&at.params, &at.latents, &mut workspace);
        let loss = dispatch!(level, simd => {
            let _ = simd;
            log_misfit(workspace.slf(), &targets, floor, &mut upstream)
        });
        if !loss.is_finite() {
            return Err(EstimateError::Numerical("the start of the fit diverged".into()));
        }
        decoder.backward(
            &at.params,
            &upstream,
            &mut workspace,
            &mut grad_params,
            &mut grad_latents,
        );
        let rate = IMITATION_RATE * Schedule::Cosine.factor(iteration, iterations);
        network.step(rate, &mut at.params, &grad_params);
        latents.step(rate, &mut at.latents, &grad_latents);
    }
    Ok(())
}

/// Squared error of ln(drawn + floor) against targets; its gradient goes into `upstream`.
#[inline(always)]
fn log_misfit(drawn: &[f32], targets: &[f32], floor: f32, upstream: &mut [f32]) -> f32 {
    let mut sums = [0.0f32; LANES];
    let drawn_chunks = drawn.chunks(LANES).zip(targets.chunks(LANES));
    for ((drawn, targets), upstream) in drawn_chunks.zip(upstream.chunks_mut(LANES)) {
        for (((sum, drawn), target), up) in sums.iter_mut().zip(drawn).zip(targets).zip(upstream) {
            let power = drawn + floor;
            let miss = ln(power) - target;
            *sum += miss * miss;
            *up = 2.0 * miss / power;
        }
    }
    sums.iter().sum()
}
