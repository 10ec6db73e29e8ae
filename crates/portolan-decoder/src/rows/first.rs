//! The first block's convolution: one channel, one column per lane. It is small, and done directly.

use fearless_simd::prelude::*;

use super::RowStage;
use crate::simd::{LANES, load, splat, store};

/// Three planes of a row: the pixels before, here and after.
const ROW: usize = 3 * LANES;

/// The result, one chunk; `x` has a row more above and below.
#[inline(always)]
pub(super) fn forward<S: Simd>(
    simd: S,
    stage: &RowStage,
    weights: &[f32],
    x: &[f32],
    y: &mut [f32],
) {
    for (c, weights) in weights.as_chunks::<9>().0.iter().enumerate() {
        for i in 0..stage.rows {
            let x = &x[i * ROW..(i + 3) * ROW];
            for lane in (0..LANES).step_by(S::f32s::LEN) {
                let mut sum = splat(simd, 0.0);
                for (tap, w) in weights.iter().enumerate() {
                    sum = load(simd, x, tap * LANES + lane).mul_add(splat(simd, *w), sum);
                }
                store::<S>(sum, y, stage.row(c, i) + LANES + lane);
            }
        }
    }
}

/// Adds to the gradients of weights (a vector each) and input.
#[inline(always)]
pub(super) fn backward<S: Simd>(
    simd: S,
    stage: &RowStage,
    weights: &[f32],
    x: &[f32],
    dy: &[f32],
    dw: &mut [f32],
    dx: &mut [f32],
) {
    for (c, weights) in weights.as_chunks::<9>().0.iter().enumerate() {
        for i in 0..stage.rows {
            let (x, dx) = (&x[i * ROW..(i + 3) * ROW], &mut dx[i * ROW..(i + 3) * ROW]);
            let dy = &dy[c * stage.strip_channel() + i * stage.pitch() + LANES..][..LANES];
            for (tap, w) in weights.iter().enumerate() {
                let dw = &mut dw[(9 * c + tap) * LANES..][..LANES];
                for lane in (0..LANES).step_by(S::f32s::LEN) {
                    let (d, at) = (load(simd, dy, lane), tap * LANES + lane);
                    store::<S>(load(simd, x, at).mul_add(d, load(simd, dw, lane)), dw, lane);
                    store::<S>(d.mul_add(splat(simd, *w), load(simd, dx, at)), dx, at);
                }
            }
        }
    }
}
