//! A network's parameters as one flat vector with a table of shapes, and Adam on it (Kingma and Ba
//! 2015). One vector keeps the optimiser and the checkpoints to a few operations each, which is what
//! counts on a GPU that waits for launches.

use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{Tensor, TensorData};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// Shapes of a network's matrices, in the order in which its forward pass takes them.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    shapes: Vec<[usize; 2]>,
    start: Vec<f32>,
}

impl Layout {
    /// A matrix that starts normal with this standard deviation.
    pub fn matrix(&mut self, rows: usize, cols: usize, sd: f64, rng: &mut ChaCha8Rng) {
        self.shapes.push([rows, cols]);
        self.start.extend((0..rows * cols).map(|_| {
            let value: f64 = StandardNormal.sample(rng);
            (sd * value) as f32
        }));
    }

    /// A row that starts at one value.
    pub fn row(&mut self, cols: usize, value: f32) {
        self.shapes.push([1, cols]);
        self.start.extend(std::iter::repeat_n(value, cols));
    }

    pub fn len(&self) -> usize {
        self.start.len()
    }

    pub fn initial<B: Backend>(&self, device: &B::Device) -> Tensor<B, 1> {
        Tensor::from_data(TensorData::new(self.start.clone(), [self.len()]), device)
    }

    /// The matrices in `flat`, without copying history.
    pub fn split<B: Backend>(&self, flat: &Tensor<B, 1>) -> Vec<Tensor<B, 2>> {
        let mut at = 0;
        self.shapes
            .iter()
            .map(|&[rows, cols]| {
                let matrix = flat.clone().slice_dim(0, at..at + rows * cols).reshape([rows, cols]);
                at += rows * cols;
                matrix
            })
            .collect()
    }

    /// The matrices as constants of a differentiated computation.
    pub fn constants<A: AutodiffBackend>(
        &self,
        flat: &Tensor<A::InnerBackend, 1>,
    ) -> Vec<Tensor<A, 2>> {
        self.split(flat).into_iter().map(Tensor::from_inner).collect()
    }

    /// The matrices as variables of a differentiated computation.
    pub fn leaves<A: AutodiffBackend>(
        &self,
        flat: &Tensor<A::InnerBackend, 1>,
    ) -> Vec<Tensor<A, 2>> {
        self.constants::<A>(flat).into_iter().map(Tensor::require_grad).collect()
    }

    /// The gradient as one flat vector; zero for what the loss does not touch.
    pub fn gradient<A: AutodiffBackend>(
        &self,
        leaves: &[Tensor<A, 2>],
        gradients: &A::Gradients,
    ) -> Tensor<A::InnerBackend, 1> {
        let parts = leaves.iter().map(|leaf| {
            let [rows, cols] = leaf.dims();
            match leaf.grad(gradients) {
                Some(gradient) => gradient.reshape([rows * cols]),
                None => Tensor::zeros([rows * cols], &leaf.device()),
            }
        });
        Tensor::cat(parts.collect(), 0)
    }
}

/// Adam with the gradient's norm held below a bound.
#[derive(Clone, Debug)]
pub struct Adam<B: Backend> {
    pub mean: Tensor<B, 1>,
    pub square: Tensor<B, 1>,
    betas: (f64, f64),
}

const EPSILON: f64 = 1e-8;
const MAX_NORM: f64 = 5.0;

impl<B: Backend> Adam<B> {
    pub fn new(len: usize, betas: (f64, f64), device: &B::Device) -> Self {
        Self { mean: Tensor::zeros([len], device), square: Tensor::zeros([len], device), betas }
    }

    /// One step; `count` is the number of this step, from 1.
    pub fn step(
        &mut self,
        flat: Tensor<B, 1>,
        gradient: Tensor<B, 1>,
        rate: f64,
        count: u64,
    ) -> Tensor<B, 1> {
        let (b1, b2) = self.betas;
        let norm = gradient.clone().square().sum().sqrt().clamp_min(MAX_NORM);
        let gradient = gradient * (norm.recip() * MAX_NORM);
        self.mean = self.mean.clone() * b1 + gradient.clone() * (1.0 - b1);
        self.square = self.square.clone() * b2 + gradient.square() * (1.0 - b2);
        let (c1, c2) = (1.0 - b1.powf(count as f64), 1.0 - b2.powf(count as f64));
        let root = (self.square.clone() / c2).sqrt() + EPSILON;
        flat - self.mean.clone() / root * (rate / c1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::backend::{Autodiff, Flex};
    use rand::SeedableRng;

    #[test]
    fn adam_finds_the_minimum_of_a_quadratic() {
        type A = Autodiff<Flex>;
        let device = Default::default();
        let mut layout = Layout::default();
        layout.matrix(2, 3, 1.0, &mut ChaCha8Rng::seed_from_u64(1));
        layout.row(4, 2.0);
        let mut flat = layout.initial::<Flex>(&device);
        let mut adam = Adam::new(layout.len(), (0.9, 0.99), &device);
        for count in 1..=400 {
            let leaves = layout.leaves::<A>(&flat);
            let loss = (leaves[0].clone() - 0.5).square().sum();
            let gradients = loss.backward();
            let gradient = layout.gradient(&leaves, &gradients);
            flat = adam.step(flat, gradient, 0.02, count);
        }
        let values = flat.into_data().to_vec::<f32>().unwrap();
        assert!(values[..6].iter().all(|v| (v - 0.5).abs() < 1e-2), "{values:?}");
        assert_eq!(values[6..], [2.0; 4], "untouched parameters stay");
    }
}
