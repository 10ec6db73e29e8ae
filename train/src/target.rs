//! What the generator's fields are compared with: the simulator's fields on the device, their
//! variogram, and the measure of agreement with them.

use burn::backend::Autodiff;
use burn::tensor::backend::Backend;
use burn::tensor::{Tensor, TensorData};
use ndarray::Array2;

use crate::code::Modes;
use crate::fields::{CELLS, Drawn, SIDE, SPAN};
use crate::networks::LATENT;
use crate::variogram::{LAGS, moments};

/// Fields in one tensor on the device.
const CHUNK: usize = 8192;
/// Fields that the statistics are taken from.
const COUNTED: usize = 32_768;
/// Weight of the variogram's spread between fields against its mean.
const SPREAD: f64 = 0.25;

pub struct Fields<B: Backend> {
    /// Fields x cells, and fields x latent.
    pub chunks: Vec<(Tensor<B, 2>, Tensor<B, 2>)>,
}

impl<B: Backend> Fields<B> {
    pub fn new(drawn: &Drawn, device: &B::Device) -> Self {
        let tensor = |values: &[f32], width: usize| {
            let data = TensorData::new(values.to_vec(), [values.len() / width, width]);
            Tensor::from_data(data, device)
        };
        let fields = drawn.fields.chunks(CHUNK * CELLS).map(|part| tensor(part, CELLS));
        let latents = drawn.latents.chunks(CHUNK * LATENT).map(|part| tensor(part, LATENT));
        Self { chunks: fields.zip(latents).collect() }
    }
}

pub struct Target<B: Backend> {
    mean: f64,
    sd: f64,
    /// Standard deviation of the step between neighbours, in standard deviations of ln S.
    pub step: f64,
    /// One over the variogram's mean, and over the square root of its second moment: 1 x lags.
    inverse: [Tensor<B, 2>; 2],
    /// Cells along a side x half periods.
    cosines: Tensor<B, 2>,
    /// Which pairs of half periods latents describe: 1 x half periods x half periods.
    mask: Tensor<B, 3>,
}

impl<B: Backend> Target<B> {
    /// From o-values.
    pub fn new(fields: &[f32], modes: &Modes, device: &B::Device) -> Self {
        let fields = &fields[..fields.len().min(COUNTED * CELLS)];
        let [first, second] = moments(fields);
        let ln_slf = || fields.iter().map(|o| f64::from((o - 1.0) * SPAN));
        let mean = ln_slf().sum::<f64>() / fields.len() as f64;
        let square = ln_slf().map(|v| (v - mean).powi(2)).sum::<f64>();
        let sd = (square / fields.len() as f64).sqrt();
        let row = |values: Vec<f32>| Tensor::from_data(TensorData::new(values, [1, LAGS]), device);
        let count = modes.cosines().nrows();
        let narrow = |values: &Array2<f64>| values.iter().map(|v| *v as f32).collect::<Vec<_>>();
        let cosines = TensorData::new(narrow(modes.cosines()), [count, SIDE]);
        let mask = TensorData::new(narrow(&modes.mask()), [1, count, count]);
        Self {
            mean,
            sd,
            step: (2.0 * first[0]).sqrt() / sd,
            inverse: [
                row(first.iter().map(|v| v.recip() as f32).collect()),
                row(second.iter().map(|v| v.sqrt().recip() as f32).collect()),
            ],
            cosines: Tensor::<B, 2>::from_data(cosines, device).transpose(),
            mask: Tensor::from_data(mask, device),
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

    /// Mean squared residual per cell (n x 64 x 64) in the cosines that latents describe.
    pub fn described(&self, residual: Tensor<Autodiff<B>, 3>) -> Tensor<Autodiff<B>, 1> {
        let [batch, ..] = residual.dims();
        let cosines = Tensor::<Autodiff<B>, 2>::from_inner(self.cosines.clone());
        let [_, count] = cosines.dims();
        let rows = residual.reshape([batch * SIDE, SIDE]).matmul(cosines.clone());
        let turned = rows.reshape([batch, SIDE, count]).swap_dims(1, 2);
        let both = turned.reshape([batch * count, SIDE]).matmul(cosines);
        // Rows of the result are half periods along columns.
        let both = both.reshape([batch, count, count]).swap_dims(1, 2);
        let masked = both * Tensor::from_inner(self.mask.clone());
        masked.square().sum() / (batch * CELLS) as f64
    }
}

/// Mean squared residual per cell, each cell weighted by its part of the field's peak power: what
/// happens near the emitter.
pub fn near_emitter<B: Backend>(
    residual: Tensor<Autodiff<B>, 3>,
    truth: &Tensor<B, 3>,
) -> Tensor<Autodiff<B>, 1> {
    let [batch, ..] = truth.dims();
    let peak = truth.clone().reshape([batch, CELLS]).max_dim(1).reshape([batch, 1, 1]);
    let power = (truth.clone() - peak).exp();
    (residual.square() * Tensor::from_inner(power)).mean()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::{Set, Source};
    use burn::backend::Flex;

    #[test]
    fn described_sees_slow_cosines_and_not_fast_ones() {
        let device = Default::default();
        let source = Source::new(Set::Broad).unwrap();
        let drawn = source.draw(1, 2);
        let target = Target::<Flex>::new(&drawn.fields, source.modes(), &device);
        let described = |k: usize, l: usize| {
            let cosine = |k: usize, x: usize| {
                let phase = std::f64::consts::PI * k as f64 * (x as f64 + 0.5) / SIDE as f64;
                if k == 0 { 1.0 } else { 2f64.sqrt() * phase.cos() }
            };
            let wave = |cell: usize| (cosine(k, cell / SIDE) * cosine(l, cell % SIDE)) as f32;
            let data = TensorData::new((0..CELLS).map(wave).collect(), [1, SIDE, SIDE]);
            target.described(Tensor::from_data(data, &device)).into_scalar()
        };
        // The last circle of cosines is cut through: (10, 14) has a number, (14, 10) has none.
        for (k, l) in [(0, 0), (0, 5), (5, 0), (10, 14)] {
            assert!((described(k, l) - 1.0).abs() < 1e-4, "{k} {l}: {}", described(k, l));
        }
        for (k, l) in [(14, 10), (15, 15), (0, 40)] {
            assert!(described(k, l) < 1e-4, "{k} {l}: {}", described(k, l));
        }
    }

    #[test]
    fn the_emitter_weighs_most() {
        let device = Default::default();
        let mut truth = vec![-10f32; CELLS];
        truth[100] = 0.0;
        let miss = |cell: usize| {
            let mut residual = vec![0f32; CELLS];
            residual[cell] = 1.0;
            let tensor = |values: Vec<f32>| TensorData::new(values, [1, SIDE, SIDE]);
            let truth = Tensor::<Flex, 3>::from_data(tensor(truth.clone()), &device);
            near_emitter(Tensor::from_data(tensor(residual), &device), &truth).into_scalar()
        };
        assert!((miss(100) * CELLS as f32 - 1.0).abs() < 1e-5);
        assert!((miss(7) * CELLS as f32 - (-10f32).exp()).abs() < 1e-6);
    }
}
