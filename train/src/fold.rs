//! The generator as it ships: batch norm folded into one scale and shift per channel, f16, kernels
//! in the layout in x out x 4 x 4 of transposed convolutions.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use burn::tensor::backend::Backend;
use burn::tensor::{Tensor, TensorData};
use half::f16;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use crate::fields::SPAN;
use crate::layers;
use crate::networks::{CHANNELS, LATENT, Norm, generate};

/// A layer's weight as in x out x 4 x 4; the matrix is that of [`layers::up`].
pub fn kernel<B: Backend>(matrix: Tensor<B, 2>, input: usize, out: usize) -> Tensor<B, 4> {
    matrix
        .reshape([2, 2, input, 2, 2, out])
        .flip([0, 1])
        .permute([2, 5, 0, 3, 1, 4])
        .reshape([input, out, 4, 4])
}

fn matrix<B: Backend>(kernel: Tensor<B, 4>) -> Tensor<B, 2> {
    let [input, out, ..] = kernel.dims();
    kernel
        .reshape([input, out, 2, 2, 2, 2])
        .permute([2, 4, 0, 3, 5, 1])
        .flip([0, 1])
        .reshape([4 * input, 4 * out])
}

/// Named f16 tensors in the order in which they ship.
pub struct Folded {
    tensors: Vec<(String, Vec<usize>, Vec<f16>)>,
    pub words: HashMap<String, String>,
}

/// Mean and variance of every normalised layer over one large batch of latents.
pub fn population<B: Backend>(
    weights: &[Tensor<B, 2>],
    latents: Tensor<B, 2>,
) -> Vec<[Tensor<B, 2>; 2]> {
    let mut kept = Vec::new();
    generate(weights, latents, Norm::Batch(Some(&mut kept)));
    kept
}

/// The generator's matrices with normalisation by `statistics` folded in, still in f32.
pub fn fold<B: Backend>(
    weights: &[Tensor<B, 2>],
    statistics: &[[Tensor<B, 2>; 2]],
) -> Vec<Tensor<B, 2>> {
    let mut folded = weights.to_vec();
    for (layer, statistics) in statistics.iter().enumerate() {
        let (gain, bias) = (weights[3 * layer + 1].clone(), weights[3 * layer + 2].clone());
        let [scale, shift] = layers::fold(statistics.clone(), gain, bias);
        folded[3 * layer + 1] = scale;
        folded[3 * layer + 2] = shift;
    }
    folded
}

impl Folded {
    /// Rounds folded matrices to f16.
    pub fn new<B: Backend>(matrices: &[Tensor<B, 2>]) -> Self {
        let mut folded = Self { tensors: Vec::new(), words: HashMap::new() };
        let mut put = |name: String, shape: Vec<usize>, data: TensorData| {
            let values = data.to_vec::<f32>().expect("the backend computes in f32");
            folded.tensors.push((name, shape, values.into_iter().map(f16::from_f32).collect()));
        };
        let mut input = LATENT;
        for (layer, out) in CHANNELS.into_iter().chain([1]).enumerate() {
            let weight = matrices[3 * layer].clone();
            let weight = match layer {
                0 => weight.reshape([input, 4, 4, out]).permute([0, 3, 1, 2]),
                _ => kernel(weight, input, out),
            };
            let weight = weight.reshape([input * out * 16]).into_data();
            put(format!("layer{layer}.weight"), vec![input, out, 4, 4], weight);
            let rows: &[&str] = if layer < 4 { &["scale", "shift"] } else { &["bias"] };
            for (row, name) in rows.iter().enumerate() {
                let values = matrices[3 * layer + 1 + row].to_data();
                put(format!("layer{layer}.{name}"), vec![out], values);
            }
            input = out;
        }
        folded
    }

    /// The rounded matrices, for [`generate`] with [`Norm::Folded`].
    pub fn matrices<B: Backend>(&self, device: &B::Device) -> Vec<Tensor<B, 2>> {
        let to_matrix = |(name, shape, values): &(String, Vec<usize>, Vec<f16>)| {
            let values: Vec<f32> = values.iter().map(|v| v.to_f32()).collect();
            let flat = Tensor::<B, 1>::from_data(
                TensorData::new(values, [shape.iter().product::<usize>()]),
                device,
            );
            match shape[..] {
                [input, out, _, _] if name == "layer0.weight" => flat
                    .reshape([input, out, 4, 4])
                    .permute([0, 2, 3, 1])
                    .reshape([input, 16 * out]),
                [input, out, _, _] => matrix(flat.reshape([input, out, 4, 4])),
                _ => flat.reshape([1, shape[0]]),
            }
        };
        self.tensors.iter().map(to_matrix).collect()
    }

    pub fn write(&self, path: &Path) -> Result<()> {
        let bytes = |values: &[f16]| values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let data: Vec<Vec<u8>> = self.tensors.iter().map(|(_, _, v)| bytes(v)).collect();
        let span = SPAN.to_le_bytes();
        let mut views = vec![("span".to_string(), TensorView::new(Dtype::F32, vec![1], &span)?)];
        for ((name, shape, _), data) in self.tensors.iter().zip(&data) {
            views.push((name.clone(), TensorView::new(Dtype::F16, shape.clone(), data)?));
        }
        let file = safetensors::serialize(views, Some(self.words.clone()))?;
        std::fs::write(path, file).with_context(|| format!("cannot write {path:?}"))
    }

    pub fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).with_context(|| format!("cannot read {path:?}"))?;
        let (_, header) = SafeTensors::read_metadata(&bytes)?;
        let words = header.metadata().clone().unwrap_or_default();
        let file = SafeTensors::deserialize(&bytes)?;
        let mut tensors = Vec::new();
        for layer in 0..5 {
            let rows: &[&str] =
                if layer < 4 { &["weight", "scale", "shift"] } else { &["weight", "bias"] };
            for row in rows {
                let name = format!("layer{layer}.{row}");
                let view = file.tensor(&name).map_err(|e| anyhow!("{path:?}: {name}: {e}"))?;
                let halves = view.data().chunks_exact(2);
                let values = halves.map(|b| f16::from_le_bytes([b[0], b[1]])).collect();
                tensors.push((name, view.shape().to_vec(), values));
            }
        }
        Ok(Self { tensors, words })
    }
}

/// Writes a latent and the ln S that the shipped weights make of it, for tests of other readers.
pub fn write_reference(path: &Path, latent: &[f32], ln_slf: &[f32], side: usize) -> Result<()> {
    let bytes = |v: &[f32]| v.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    let (latent_bytes, field_bytes) = (bytes(latent), bytes(ln_slf));
    let views = [
        ("latent", TensorView::new(Dtype::F32, vec![latent.len()], &latent_bytes)?),
        ("ln_slf", TensorView::new(Dtype::F32, vec![side, side], &field_bytes)?),
    ];
    let file = safetensors::serialize(views, None)?;
    std::fs::write(path, file).with_context(|| format!("cannot write {path:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::networks::generator_layout;
    use burn::backend::Flex;
    use burn::tensor::Distribution;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn the_shipped_file_makes_the_fields_of_the_trained_generator() {
        let device = Default::default();
        let layout = generator_layout(&mut ChaCha8Rng::seed_from_u64(4));
        let weights = layout.split(&layout.initial::<Flex>(&device));
        let latents =
            Tensor::<Flex, 2>::random([24, LATENT], Distribution::Normal(0.0, 1.0), &device);
        let trained = generate(&weights, latents.clone(), Norm::Batch(None));
        let statistics = population(&weights, latents.clone());
        let folded = Folded::new(&fold(&weights, &statistics));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights.safetensors");
        folded.write(&path).unwrap();
        let shipped = Folded::read(&path).unwrap().matrices::<Flex>(&device);
        let again = generate(&shipped, latents, Norm::Folded);
        let worst = (trained - again).abs().max().into_scalar();
        assert!(worst < 1e-3, "{worst}");
        assert!(std::fs::metadata(&path).unwrap().len() < 2_000_000);
    }
}
