//! What samples are compared with: the simulator's first and second moments, and the fields
//! themselves on the device.

use burn::backend::Autodiff;
use burn::tensor::backend::Backend;
use burn::tensor::{Tensor, TensorData};

use crate::fields::{CELLS, SIDE, SPAN};
use crate::variogram::{LAGS, moments};

/// Fields in one tensor on the device.
const CHUNK: usize = 8192;
/// Fields that the statistics are taken from.
pub const COUNTED: usize = 32_768;
/// Weight of the variogram's spread between fields against its mean.
const SPREAD: f64 = 0.25;

pub struct Fields<B: Backend> {
    /// Fields x cells.
    pub chunks: Vec<Tensor<B, 2>>,
}

impl<B: Backend> Fields<B> {
    pub fn new(fields: &[f32], device: &B::Device) -> Self {
        let chunks = fields.chunks(CHUNK * CELLS).map(|chunk| {
            let data = TensorData::new(chunk.to_vec(), [chunk.len() / CELLS, CELLS]);
            Tensor::from_data(data, device)
        });
        Self { chunks: chunks.collect() }
    }
}

pub struct Target<B: Backend> {
    mean: f64,
    sd: f64,
    /// Standard deviation of the step between neighbours, in standard deviations of ln S.
    pub step: f64,
    /// One over the variogram's mean, and over the square root of its second moment: 1 x lags.
    inverse: [Tensor<B, 2>; 2],
    /// Mean of ln S in every cell and one over its standard deviation: 1 x 64 x 64.
    cell_mean: Tensor<B, 3>,
    cell_inverse: Tensor<B, 3>,
}

impl<B: Backend> Target<B> {
    pub fn new(fields: &[f32], device: &B::Device) -> Self {
        let fields = &fields[..fields.len().min(COUNTED * CELLS)];
        let [first, second] = moments(fields);
        let count = (fields.len() / CELLS) as f64;
        let (mut sum, mut square) = (vec![0f64; CELLS], vec![0f64; CELLS]);
        for field in fields.chunks(CELLS) {
            for (cell, o) in field.iter().enumerate() {
                let ln_slf = f64::from((o - 1.0) * SPAN);
                sum[cell] += ln_slf;
                square[cell] += ln_slf * ln_slf;
            }
        }
        let mean = sum.iter().sum::<f64>() / (count * CELLS as f64);
        let sd = (square.iter().sum::<f64>() / (count * CELLS as f64) - mean * mean).sqrt();
        let cell_mean: Vec<f32> = sum.iter().map(|s| (s / count) as f32).collect();
        let cell_inverse: Vec<f32> = sum
            .iter()
            .zip(&square)
            .map(|(s, q)| (q / count - (s / count).powi(2)).sqrt().recip() as f32)
            .collect();
        let row = |values: Vec<f32>| Tensor::from_data(TensorData::new(values, [1, LAGS]), device);
        let map = |values| Tensor::from_data(TensorData::new(values, [1, SIDE, SIDE]), device);
        Self {
            mean,
            sd,
            step: (2.0 * first[0]).sqrt() / sd,
            inverse: [
                row(first.iter().map(|v| v.recip() as f32).collect()),
                row(second.iter().map(|v| v.sqrt().recip() as f32).collect()),
            ],
            cell_mean: map(cell_mean),
            cell_inverse: map(cell_inverse),
        }
    }

    /// ln S with mean 0 and standard deviation 1 over all fields and cells.
    pub fn standardise<C: Backend>(&self, ln_slf: Tensor<C, 3>) -> Tensor<C, 3> {
        (ln_slf - self.mean) / self.sd
    }

    /// Relative squared error of the variogram (n x lags), in its mean and in its spread.
    pub fn variogram_error(&self, each: Tensor<Autodiff<B>, 2>) -> Tensor<Autodiff<B>, 1> {
        let [mean, root] = self.inverse.clone().map(Tensor::from_inner);
        let first = (each.clone().mean_dim(0) * mean - 1.0).square().mean();
        let second = (each.square().mean_dim(0).sqrt() * root - 1.0).square().mean();
        first + second * SPREAD
    }

    /// Relative squared error of the mean and the standard deviation of ln S, cell by cell.
    pub fn moment_error(&self, samples: Tensor<Autodiff<B>, 3>) -> Tensor<Autodiff<B>, 1> {
        let mean = Tensor::from_inner(self.cell_mean.clone());
        let scaled = (samples - mean) * Tensor::from_inner(self.cell_inverse.clone());
        let middle = scaled.clone().mean_dim(0);
        let spread = (scaled - middle.clone()).square().mean_dim(0).sqrt();
        middle.square().mean() + (spread - 1.0).square().mean()
    }
}
