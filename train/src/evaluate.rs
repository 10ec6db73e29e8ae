//! How close samples come to the simulator, and how well the generator can be made to agree with
//! fields it has never seen.

use burn::backend::Autodiff;
use burn::tensor::backend::Backend;
use burn::tensor::{Tensor, TensorData};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::fields::{CELLS, DB, SIDE, SPAN};
use crate::networks::{LATENT, Norm, generate};
use crate::params::Adam;
use crate::variogram::{HELD, LAGS, moments};

/// Samples made at once.
const BATCH: usize = 256;
/// Seed of the samples that fits begin from.
const START: u64 = 4_000_037;
/// Residual of a fit that counts as much as one standard deviation of a latent, in ln power.
const RESIDUAL: f64 = 0.25;

pub fn latents<B: Backend>(seed: u64, count: usize, device: &B::Device) -> Tensor<B, 2> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let values: Vec<f32> = (0..count * LATENT).map(|_| StandardNormal.sample(&mut rng)).collect();
    Tensor::from_data(TensorData::new(values, [count, LATENT]), device)
}

/// o-values of `count` samples of the folded generator.
pub fn sample<B: Backend>(
    matrices: &[Tensor<B, 2>],
    seed: u64,
    count: usize,
    device: &B::Device,
) -> Vec<f32> {
    let latents = latents::<B>(seed, count, device);
    let mut fields = Vec::with_capacity(count * CELLS);
    for from in (0..count).step_by(BATCH) {
        let part = latents.clone().slice([from..count.min(from + BATCH), 0..LATENT]);
        let made = generate(matrices, part, Norm::Folded).into_data();
        fields.extend(made.to_vec::<f32>().expect("the backend computes in f32"));
    }
    fields
}

/// Mean variograms of samples and simulator, lag 1 first.
pub struct Comparison {
    pub samples: [f64; LAGS],
    pub simulator: [f64; LAGS],
}

impl Comparison {
    pub fn new(samples: &[f32], simulator: &[f32]) -> Self {
        Self { samples: moments(samples)[0], simulator: moments(simulator)[0] }
    }

    pub fn error(&self, lag: usize) -> f64 {
        self.samples[lag - 1] / self.simulator[lag - 1] - 1.0
    }

    /// The largest relative error at the held lags.
    pub fn worst(&self) -> f64 {
        HELD.map(|lag| self.error(lag).abs()).fold(0.0, f64::max)
    }

    pub fn print(&self) {
        println!("lag  simulator  samples  error");
        for lag in 1..=LAGS {
            let (a, b) = (self.simulator[lag - 1], self.samples[lag - 1]);
            println!("{lag:3}  {a:9.4}  {b:7.4}  {:+5.1} %", 100.0 * self.error(lag));
        }
        println!("largest error at lags 2 to 20: {:.1} %", 100.0 * self.worst());
    }
}

/// Single-number statistics of a set of fields, each in dB below its own peak.
pub struct Summary {
    /// Mean and standard deviation over all cells.
    pub level: [f64; 2],
    /// Root mean square difference between two fields.
    pub apart: f64,
    /// Cells less than 10 dB below the peak.
    pub bright: f64,
    /// Quantiles at 1, 10, 50, 90 and 99 %.
    pub quantiles: [f64; 5],
    /// Mean and standard deviation at rings around the brightest cell.
    pub rings: Vec<[f64; 2]>,
}

/// Radii of the rings, in cells.
pub const RINGS: [f64; 7] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 48.0];

/// The brightest cell and its value.
pub fn brightest(field: &[f32]) -> (usize, f32) {
    field
        .iter()
        .copied()
        .enumerate()
        .fold((0, f32::MIN), |best, (cell, o)| if o > best.1 { (cell, o) } else { best })
}

pub fn summarise(fields: &[f32]) -> Summary {
    let db = |o: f32| f64::from(o * SPAN) * DB;
    let spread = |sums: [f64; 3]| {
        let mean = sums[1] / sums[0];
        [mean, (sums[2] / sums[0] - mean * mean).max(0.0).sqrt()]
    };
    let mut all = [0.0; 3];
    let mut rings = [[0.0; 3]; RINGS.len()];
    let (mut bright, mut apart) = (0.0, 0.0);
    let count = (fields.len() / CELLS) as f64;
    let mut sorted = Vec::with_capacity(fields.len());
    for (field, next) in fields.chunks(CELLS).zip(fields.chunks(CELLS).cycle().skip(1)) {
        let (top, peak) = brightest(field);
        let (_, other_peak) = brightest(next);
        for (cell, (&o, &other)) in field.iter().zip(next).enumerate() {
            let (value, other) = (db(o - peak), db(other - other_peak));
            sorted.push(value);
            bright += f64::from(u8::from(value > -10.0)) / count;
            all = [all[0] + 1.0, all[1] + value, all[2] + value * value];
            apart += (value - other).powi(2) / fields.len() as f64;
            let across = (cell % SIDE) as f64 - (top % SIDE) as f64;
            let d = ((cell / SIDE) as f64 - (top / SIDE) as f64).hypot(across);
            for (ring, radius) in rings.iter_mut().zip(RINGS) {
                if (d - radius).abs() < 0.5 {
                    *ring = [ring[0] + 1.0, ring[1] + value, ring[2] + value * value];
                }
            }
        }
    }
    sorted.sort_unstable_by(f64::total_cmp);
    let quantile = |part: f64| sorted[(part * (sorted.len() - 1) as f64) as usize];
    Summary {
        level: spread(all),
        apart: apart.sqrt(),
        bright,
        quantiles: [0.01, 0.1, 0.5, 0.9, 0.99].map(quantile),
        rings: rings.into_iter().map(spread).collect(),
    }
}

impl Summary {
    pub fn print(&self, name: &str) {
        let list =
            |values: &[f64]| values.iter().map(|v| format!("{v:.1}")).collect::<Vec<_>>().join(" ");
        let rings: Vec<f64> = self.rings.iter().map(|r| r[0]).collect();
        let spreads: Vec<f64> = self.rings.iter().map(|r| r[1]).collect();
        println!(
            "{name}: mean {:.2} dB, sd {:.2}, two fields apart {:.2}, {:.1} cells within 10 dB of the peak",
            self.level[0], self.level[1], self.apart, self.bright
        );
        println!("  quantiles 1 10 50 90 99 %: {}", list(&self.quantiles));
        println!("  mean at {RINGS:?} cells from the brightest: {}", list(&rings));
        println!("  sd there: {}", list(&spreads));
    }
}

/// Of many samples the latents of those that come nearest to each field where `mask` is 1.
fn nearest<B: Backend>(
    matrices: &[Tensor<B, 2>],
    truth: &Tensor<B, 3>,
    mask: &Tensor<B, 3>,
) -> Tensor<B, 2> {
    let flat = |x: Tensor<B, 3>| {
        let [count, ..] = x.dims();
        x.reshape([count, CELLS])
    };
    let pool = latents::<B>(START, BATCH, &truth.device());
    let made = flat((generate(matrices, pool.clone(), Norm::Folded) - 1.0) * SPAN).transpose();
    let (truth, mask) = (flat(truth.clone()), flat(mask.clone()));
    // The square of the field itself is the same for all.
    let distance = mask.clone().matmul(made.clone().square()) - (truth * mask).matmul(made) * 2.0;
    let [count, _] = distance.dims();
    pool.select(0, distance.argmin(1).reshape([count]))
}

/// Rmse in dB over all cells after fitting latents to `fields` where `seen` (a part of the cells, 1
/// for all) is observed, each from the nearest of many samples. With less than all, latents are held
/// to their standard normal law.
pub fn reconstruct<B: Backend>(
    matrices: &[Tensor<B, 2>],
    fields: &[f32],
    seen: f64,
    steps: u64,
    device: &B::Device,
) -> f64 {
    type A<B> = Autodiff<B>;
    let count = fields.len() / CELLS;
    let mut rng = ChaCha8Rng::seed_from_u64(77);
    let mask: Vec<f32> =
        (0..fields.len()).map(|_| if rng.random_bool(seen) { 1.0 } else { 0.0 }).collect();
    let tensor = |values: Vec<f32>| {
        Tensor::<B, 3>::from_data(TensorData::new(values, [count, SIDE, SIDE]), device)
    };
    let truth = (tensor(fields.to_vec()) - 1.0) * SPAN;
    let mask = tensor(mask);
    let weights: Vec<Tensor<A<B>, 2>> = matrices.iter().cloned().map(Tensor::from_inner).collect();
    let mut adam = Adam::new(count * LATENT, (0.9, 0.99), device);
    let mut flat = nearest(matrices, &truth, &mask).reshape([count * LATENT]);
    let prior = if seen < 1.0 { 0.5 } else { 0.0 };
    for step in 1..=steps {
        let leaf = Tensor::<A<B>, 1>::from_inner(flat.clone()).require_grad();
        let made = generate(&weights, leaf.clone().reshape([count, LATENT]), Norm::Folded);
        let residual = (made - 1.0) * SPAN - Tensor::from_inner(truth.clone());
        let misfit = (residual.square() * Tensor::from_inner(mask.clone())).sum();
        let loss = misfit * (0.5 / RESIDUAL.powi(2)) + leaf.clone().square().sum() * prior;
        let gradient = leaf.grad(&loss.backward()).expect("the loss depends on the latents");
        let rate = 0.1 * (1.0 - (step - 1) as f64 / steps as f64).sqrt();
        flat = adam.step(flat, gradient, rate, step);
    }
    let made = (generate(matrices, flat.reshape([count, LATENT]), Norm::Folded) - 1.0) * SPAN;
    let square = (made - truth).square().mean().into_data().to_vec::<f32>().expect("f32")[0];
    f64::from(square).sqrt() * DB
}
