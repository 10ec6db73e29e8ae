//! What a decoder draws from, and where it begins: random parameters and latents.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::Decoder;

/// The parameters of a decoder and the latents of its emitters.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// As [`Decoder::layout`] says.
    pub params: Vec<f32>,
    /// (emitter, row, column).
    pub latents: Vec<f32>,
}

impl Network {
    /// Zeros, as many as a decoder has: room for a gradient.
    pub fn zeros(decoder: &Decoder) -> Self {
        Self {
            params: vec![0.0; decoder.parameters()],
            latents: vec![0.0; decoder.emitters() * decoder.latent_len()],
        }
    }
}

/// How a network without a guess is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    /// Everything uniform in (-1, 1).
    Uniform,
    /// Weights by Glorot and Bengio (2010), scale 1, offset 0, latents standard normal.
    Xavier,
}

/// A random network.
pub fn random_network(decoder: &Decoder, draw: Draw, rng: &mut ChaCha8Rng) -> Network {
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
    Network { params, latents }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shape;
    use rand::SeedableRng;

    #[test]
    fn xavier_keeps_its_bounds_and_scales_begin_at_one() {
        let decoder = Decoder::new(&Shape::default(), 64, 64, 2).unwrap();
        let network = random_network(&decoder, Draw::Xavier, &mut ChaCha8Rng::seed_from_u64(1));
        let block = &decoder.layout().blocks[1];
        let bound = (6.0f32 / (2.0 * 6.0 * 9.0)).sqrt();
        let conv = &network.params[block.conv.clone()];
        assert!(
            conv.iter().all(|w| w.abs() <= bound) && conv.iter().any(|w| w.abs() > 0.9 * bound)
        );
        assert!(network.params[block.gamma.clone()].iter().all(|g| *g == 1.0));
        assert!(network.params[block.beta.clone()].iter().all(|b| *b == 0.0));
        assert_eq!(network.latents.len(), 32);
        assert!(network.latents.iter().any(|z| z.abs() > 1.0));
    }
}
