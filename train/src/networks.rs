//! The two networks: the generator that ships and the critic that only trains it.
//! Each is a list of matrices taken in order by its forward pass.

use burn::tensor::backend::Backend;
use burn::tensor::{Tensor, activation};
use rand_chacha::ChaCha8Rng;

use crate::fields::SIDE;
use crate::layers::{affine, batch_norm, down, leaky, statistics, up};
use crate::params::Layout;

/// Length of a latent.
pub const LATENT: usize = 256;
/// Channels after each of the generator's layers but the last.
pub const CHANNELS: [usize; 4] = [96, 64, 48, 32];
/// Channels after each of the critic's layers.
const CRITIC: [usize; 4] = [32, 64, 128, 128];

/// What follows a generator's convolution.
pub enum Norm<'a, B: Backend> {
    /// The batch's own statistics, then gain and bias; statistics are handed out when asked for.
    Batch(Option<&'a mut Vec<[Tensor<B, 2>; 2]>>),
    /// The two rows are scale and shift themselves.
    Folded,
}

pub fn generator_layout(rng: &mut ChaCha8Rng) -> Layout {
    let mut layout = Layout::default();
    let mut fan_in = LATENT;
    for (layer, channels) in CHANNELS.into_iter().enumerate() {
        let out = if layer == 0 { 16 * channels } else { 4 * channels };
        layout.matrix(fan_in, out, (1.0 / fan_in as f64).sqrt(), rng);
        layout.row(channels, 1.0);
        layout.row(channels, 0.0);
        fan_in = 4 * channels;
    }
    layout.matrix(fan_in, 4, 0.5 / (fan_in as f64).sqrt(), rng);
    layout.row(1, 0.0);
    layout
}

/// Latents (n x 256) to o-values (n x 64 x 64).
pub fn generate<B: Backend>(
    weights: &[Tensor<B, 2>],
    latents: Tensor<B, 2>,
    mut norm: Norm<B>,
) -> Tensor<B, 3> {
    let [batch, _] = latents.dims();
    let mut x = latents.matmul(weights[0].clone()).reshape([batch, 4, 4, CHANNELS[0]]);
    for layer in 0..4 {
        let (gain, bias) = (weights[3 * layer + 1].clone(), weights[3 * layer + 2].clone());
        x = match &mut norm {
            Norm::Folded => affine(x, [gain, bias]),
            Norm::Batch(kept) => {
                if let Some(kept) = kept {
                    kept.push(statistics(&x));
                }
                batch_norm(x, gain, bias)
            }
        };
        x = up(activation::relu(x), weights[3 * layer + 3].clone());
    }
    let x = x.reshape([batch, SIDE * SIDE]) + weights[13].clone();
    activation::sigmoid(x).reshape([batch, SIDE, SIDE])
}

pub fn critic_layout(rng: &mut ChaCha8Rng) -> Layout {
    let mut layout = Layout::default();
    let mut channels = 3;
    for out in CRITIC {
        layout.matrix(16 * channels, out, (2.0 / (16 * channels) as f64).sqrt(), rng);
        layout.row(out, 0.0);
        channels = out;
    }
    for fan_in in [CRITIC[2], 16 * CRITIC[3]] {
        layout.matrix(fan_in, 1, (1.0 / fan_in as f64).sqrt(), rng);
        layout.row(1, 0.0);
    }
    layout
}

/// How real fields (n x 64 x 64, standardised) look: n x 1, a mean verdict on 22-cell patches plus
/// one on the whole. The critic also sees the steps between neighbours, `step` of which are one
/// standard deviation, because texture is a hundredth of a field's variance.
pub fn criticise<B: Backend>(
    weights: &[Tensor<B, 2>],
    fields: Tensor<B, 3>,
    step: f64,
) -> Tensor<B, 2> {
    let [batch, ..] = fields.dims();
    let along = |dim: usize| {
        let ahead = fields.clone().narrow(dim, 1, SIDE - 1);
        let steps = (ahead - fields.clone().narrow(dim, 0, SIDE - 1)) / step;
        Tensor::cat(vec![steps.clone(), steps.narrow(dim, SIDE - 2, 1)], dim)
    };
    let mut x = Tensor::stack::<4>(vec![fields.clone(), along(1), along(2)], 3);
    let mut verdict = Tensor::zeros([batch, 1], &x.device());
    for layer in 0..CRITIC.len() {
        let [rows, cols] = [SIDE >> (layer + 1); 2];
        let out = CRITIC[layer];
        x = down(x, weights[2 * layer].clone());
        let bias = weights[2 * layer + 1].clone().reshape([1, 1, out]);
        x = (x.reshape([batch, rows * cols, out]) + bias).reshape([batch, rows, cols, out]);
        x = leaky(x);
        if layer == 2 {
            let patches = x.clone().reshape([batch * rows * cols, out]).matmul(weights[8].clone());
            verdict = patches.reshape([batch, rows * cols]).mean_dim(1) + weights[9].clone();
        }
    }
    verdict + x.reshape([batch, 16 * CRITIC[3]]).matmul(weights[10].clone()) + weights[11].clone()
}

/// Indices of the critic's matrices whose spectral norm is held at 1 (Miyato et al. 2018).
pub const SPECTRAL: [usize; 6] = [0, 2, 4, 6, 8, 10];

/// One over the largest singular value of each of those matrices, by one power iteration from
/// `vectors`, which it moves on.
pub fn spectral_scales<B: Backend>(
    weights: &[Tensor<B, 2>],
    vectors: &mut [Tensor<B, 2>],
) -> Vec<Tensor<B, 2>> {
    let norm = |x: &Tensor<B, 2>| x.clone().square().sum_dim(1).sqrt() + 1e-12;
    SPECTRAL
        .iter()
        .zip(vectors)
        .map(|(&index, left)| {
            let weight = weights[index].clone();
            let right = left.clone().matmul(weight.clone());
            let right = right.clone() / norm(&right);
            let image = right.matmul(weight.transpose());
            let largest = norm(&image);
            *left = image / largest.clone();
            largest.recip()
        })
        .collect()
}
