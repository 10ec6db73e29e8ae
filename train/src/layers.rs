//! Convolutions of kernel 4 and stride 2 as matrix products, channels last.
//!
//! A kernel of 4 with stride 2 covers 2 x 2 blocks of 2 x 2 cells. Gathering the four neighbouring
//! blocks side by side turns the convolution, and its transpose, into one product whose gradient is
//! two more: the kernels that GPUs and CPUs are best at.

use burn::tensor::backend::Backend;
use burn::tensor::{Tensor, activation};

const EPSILON: f64 = 1e-5;

/// Zeros around rows and columns.
fn frame<B: Backend>(x: Tensor<B, 4>) -> Tensor<B, 4> {
    let [batch, rows, cols, channels] = x.dims();
    Tensor::zeros([batch, rows + 2, cols + 2, channels], &x.device())
        .slice_assign([0..batch, 1..rows + 1, 1..cols + 1, 0..channels], x)
}

/// Every 2 x 2 neighbourhood as channels: (row offset, column offset, channel).
fn neighbourhoods<B: Backend>(x: Tensor<B, 4>) -> Tensor<B, 4> {
    let [batch, rows, cols, channels] = x.dims();
    let part = |i: usize, j: usize| {
        x.clone().slice([0..batch, i..rows - 1 + i, j..cols - 1 + j, 0..channels])
    };
    Tensor::cat(vec![part(0, 0), part(0, 1), part(1, 0), part(1, 1)], 3)
}

fn product<B: Backend>(x: Tensor<B, 4>, weight: Tensor<B, 2>) -> Tensor<B, 4> {
    let [batch, rows, cols, channels] = x.dims();
    let [_, out] = weight.dims();
    x.reshape([batch * rows * cols, channels]).matmul(weight).reshape([batch, rows, cols, out])
}

/// Halves rows and columns. The weight is (u, v, p, q, channel) x out for kernel row 2u + p.
pub fn down<B: Backend>(x: Tensor<B, 4>, weight: Tensor<B, 2>) -> Tensor<B, 4> {
    let x = frame(x);
    let [batch, rows, cols, channels] = x.dims();
    let blocks = x
        .reshape([batch, rows / 2, 2, cols / 2, 2, channels])
        .permute([0, 1, 3, 2, 4, 5])
        .reshape([batch, rows / 2, cols / 2, 4 * channels]);
    product(neighbourhoods(blocks), weight)
}

/// Doubles rows and columns: the transposed convolution of kernel 4, stride 2, padding 1. The weight
/// is (u, v, channel) x (p, q, out) for kernel row 2 (1 - u) + p.
pub fn up<B: Backend>(x: Tensor<B, 4>, weight: Tensor<B, 2>) -> Tensor<B, 4> {
    let [batch, rows, cols, _] = x.dims();
    let out = weight.dims()[1] / 4;
    product(neighbourhoods(frame(x)), weight)
        .reshape([batch, rows + 1, cols + 1, 2, 2, out])
        .permute([0, 1, 3, 2, 4, 5])
        .reshape([batch, 2 * rows + 2, 2 * cols + 2, out])
        .slice([0..batch, 1..2 * rows + 1, 1..2 * cols + 1, 0..out])
}

/// Mean and variance per channel, each 1 x channels.
pub fn statistics<B: Backend>(x: &Tensor<B, 4>) -> [Tensor<B, 2>; 2] {
    let [batch, rows, cols, channels] = x.dims();
    let flat = x.clone().reshape([batch, rows * cols, channels]);
    let mean = flat.clone().mean_dim(0).mean_dim(1);
    let variance = (flat - mean.clone()).square().mean_dim(0).mean_dim(1);
    [mean.reshape([1, channels]), variance.reshape([1, channels])]
}

/// Scale and shift that normalise by `statistics` and then apply the affine part.
pub fn fold<B: Backend>(
    [mean, variance]: [Tensor<B, 2>; 2],
    gain: Tensor<B, 2>,
    bias: Tensor<B, 2>,
) -> [Tensor<B, 2>; 2] {
    let scale = gain / (variance + EPSILON).sqrt();
    let shift = bias - mean * scale.clone();
    [scale, shift]
}

pub fn affine<B: Backend>(x: Tensor<B, 4>, [scale, shift]: [Tensor<B, 2>; 2]) -> Tensor<B, 4> {
    let [batch, rows, cols, channels] = x.dims();
    let flat = x.reshape([batch, rows * cols, channels]);
    (flat * scale.reshape([1, 1, channels]) + shift.reshape([1, 1, channels]))
        .reshape([batch, rows, cols, channels])
}

/// Batch normalisation with the batch's own statistics.
pub fn batch_norm<B: Backend>(
    x: Tensor<B, 4>,
    gain: Tensor<B, 2>,
    bias: Tensor<B, 2>,
) -> Tensor<B, 4> {
    let folded = fold(statistics(&x), gain, bias);
    affine(x, folded)
}

pub fn leaky<B: Backend>(x: Tensor<B, 4>) -> Tensor<B, 4> {
    x.clone() * 0.2 + activation::relu(x) * 0.8
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::backend::Flex;
    use burn::tensor::module::{conv_transpose2d, conv2d};
    use burn::tensor::ops::{ConvOptions, ConvTransposeOptions};
    use burn::tensor::{Distribution, TensorData};

    fn noise<const D: usize>(shape: [usize; D]) -> Tensor<Flex, D> {
        Tensor::random(shape, Distribution::Normal(0.0, 1.0), &Default::default())
    }

    fn assert_close(a: TensorData, b: TensorData) {
        let (a, b) = (a.to_vec::<f32>().unwrap(), b.to_vec::<f32>().unwrap());
        assert_eq!(a.len(), b.len());
        assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-4));
    }

    #[test]
    fn down_is_a_convolution() {
        let (x, kernel) = (noise([2, 8, 6, 3]), noise([5, 3, 4, 4]));
        let weight =
            kernel.clone().reshape([5, 3, 2, 2, 2, 2]).permute([2, 4, 3, 5, 1, 0]).reshape([48, 5]);
        let options = ConvOptions::new([2, 2], [1, 1], [1, 1], 1);
        let expected = conv2d(x.clone().permute([0, 3, 1, 2]), kernel, None, options);
        assert_close(
            down(x, weight).into_data(),
            expected.permute([0, 2, 3, 1]).reshape([2, 4, 3, 5]).into_data(),
        );
    }

    #[test]
    fn up_is_a_transposed_convolution() {
        let (x, weight) = (noise([2, 4, 3, 3]), noise([12, 20]));
        let kernel = crate::fold::kernel(weight.clone(), 3, 5);
        let options = ConvTransposeOptions::new([2, 2], [1, 1], [0, 0], [1, 1], 1);
        let expected = conv_transpose2d(x.clone().permute([0, 3, 1, 2]), kernel, None, options);
        assert_close(
            up(x, weight).into_data(),
            expected.permute([0, 2, 3, 1]).reshape([2, 8, 6, 5]).into_data(),
        );
    }
}
