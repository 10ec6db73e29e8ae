//! The generator in plain loops and double precision: slow, and easy to check by eye. The fast path
//! is tested against it.

use super::weights::Layer;

/// ln S of one latent, side x side.
pub(super) fn forward(layers: &[Layer], span: f32, latent: &[f64]) -> Vec<f64> {
    let (mut x, mut side) = (latent.to_vec(), 1);
    for (i, layer) in layers.iter().enumerate() {
        let (stride, pad, large) = if i == 0 { (1, 0, 4) } else { (2, 1, 2 * side) };
        let mut y: Vec<f64> =
            layer.shift.iter().flat_map(|s| vec![f64::from(*s); large * large]).collect();
        for (input, plane) in x.chunks_exact(side * side).enumerate() {
            for (output, out) in y.chunks_exact_mut(large * large).enumerate() {
                for (pixel, value) in plane.iter().enumerate() {
                    for k in 0..Layer::AREA {
                        let row = (pixel / side * stride + k / 4).wrapping_sub(pad);
                        let col = (pixel % side * stride + k % 4).wrapping_sub(pad);
                        if row < large && col < large {
                            let weight = layer.at(input, output, k / 4, k % 4);
                            out[row * large + col] += value * f64::from(weight);
                        }
                    }
                }
            }
        }
        if i + 1 < layers.len() {
            y.iter_mut().for_each(|v| *v = v.max(0.0));
        }
        (x, side) = (y, large);
    }
    x.iter().map(|logit| f64::from(span) * (1.0 / (1.0 + (-logit).exp()) - 1.0)).collect()
}
