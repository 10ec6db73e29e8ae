//! Weights as the points take them, and their gradient: a sum over tiles of products of factors.

#![expect(clippy::needless_range_loop, reason = "rows and columns of a tile read better by index")]

use fearless_simd::prelude::*;

use super::tile::{Six, Three, step};
use super::{CHANNELS, PAIRS, POINTS, tiles};
use crate::convolve::Size;
use crate::simd::{LANES, add_reduced, load, splat, store};
use crate::winograd::Cut;

/// A number for every pair of channels.
type Pairs = [f32; PAIRS];

/// Three weights of one dimension as six factors.
#[inline(always)]
fn expand([a, b, c]: [&Pairs; 3]) -> [Pairs; 6] {
    let mut out = [[0.0; PAIRS]; 6];
    for k in 0..PAIRS {
        let (outer, far) = ((a[k] + c[k]) * (-1.0 / 6.0), a[k] / 24.0 + c[k] / 6.0);
        out[0][k] = a[k] * 0.25;
        out[1][k] = outer - b[k] / 6.0;
        out[2][k] = outer + b[k] / 6.0;
        out[3][k] = far + b[k] / 12.0;
        out[4][k] = far - b[k] / 12.0;
        out[5][k] = c[k];
    }
    out
}

/// The adjoint of [`expand`].
#[inline(always)]
fn contract(u: [&Pairs; 6]) -> [Pairs; 3] {
    let mut out = [[0.0; PAIRS]; 3];
    for k in 0..PAIRS {
        let (near, off) = ((u[1][k] + u[2][k]) / 6.0, (u[2][k] - u[1][k]) / 6.0);
        let (far, far_off) = ((u[3][k] + u[4][k]) / 24.0, (u[3][k] - u[4][k]) / 12.0);
        out[0][k] = u[0][k] * 0.25 - near + far;
        out[1][k] = off + far_off;
        out[2][k] = u[5][k] - near + far * 4.0;
    }
    out
}

/// Weights (out, in, tap) as (point, out, in).
#[inline(always)]
pub(crate) fn pack(weights: &[f32], packed: &mut [f32]) {
    let mut taps = [[0.0; PAIRS]; 9];
    for (pair, w) in weights.as_chunks::<9>().0.iter().enumerate() {
        for tap in 0..9 {
            taps[tap][pair] = w[tap];
        }
    }
    let rows = [0, 3, 6].map(
        #[inline(always)]
        |r| expand([&taps[r], &taps[r + 1], &taps[r + 2]]),
    );
    let packed = packed.as_chunks_mut::<PAIRS>().0;
    for j in 0..6 {
        let column = expand([&rows[0][j], &rows[1][j], &rows[2][j]]);
        for i in 0..6 {
            packed[6 * i + j] = column[i];
        }
    }
}

/// The adjoint of [`pack`], added: from what [`backward_weights`] leaves to the gradient of the weights.
#[inline(always)]
pub(crate) fn unpack(from: &[f32], gradient: &mut [f32]) {
    let from = from.as_chunks::<PAIRS>().0;
    for j in 0..3 {
        let taps = contract([0, 3, 6, 9, 12, 15].map(
            #[inline(always)]
            |row| &from[row + j],
        ));
        for (pair, gradient) in gradient.as_chunks_mut::<9>().0.iter_mut().enumerate() {
            for i in 0..3 {
                gradient[3 * i + j] += taps[i][pair];
            }
        }
    }
}

/// Channels of the result whose sums with all channels of the input fit the registers.
const AT_ONCE: usize = 3;

/// Numbers of what [`backward_weights`] adds to.
pub(crate) const GRADIENT: usize = 6 * 3 * PAIRS;

/// Adds to the gradient of the weights, from the factors of the input and of the result's gradient: as
/// (row of points, column of taps, out, in). Rows are put together by [`unpack`].
#[inline(always)]
pub(crate) fn backward_weights<S: Simd>(
    simd: S,
    size: &Size,
    cut: &Cut,
    x: &[f32],
    dy: &[f32],
    gradient: &mut [f32],
) {
    let (n, zero, count) = (S::f32s::LEN, splat(simd, 0.0), tiles(size, cut.rows));
    let of_lanes = count * POINTS * CHANNELS * n;
    let paired = if n == LANES { count / 2 * 2 * POINTS * CHANNELS * n } else { 0 };
    let mut row = [[0.0; PAIRS * LANES]; 6];
    for (i, gradient) in gradient.chunks_exact_mut(3 * PAIRS).enumerate() {
        for (j, vectors) in row.iter_mut().enumerate() {
            let parts = vectors[..PAIRS * n].chunks_exact_mut(AT_ONCE * CHANNELS * n);
            for (part, vectors) in parts.enumerate() {
                let (mut sums, which) = ([[zero; CHANNELS]; AT_ONCE], (6 * i + j, part));
                for (x, dy) in x.chunks_exact(of_lanes).zip(dy.chunks_exact(of_lanes)) {
                    let ((x2, x1), (dy2, dy1)) = (x.split_at(paired), dy.split_at(paired));
                    correlate::<S, 2>(simd, which, x2, dy2, &mut sums);
                    correlate::<S, 1>(simd, which, x1, dy1, &mut sums);
                }
                for (c, sums) in sums.iter().enumerate() {
                    for (k, sum) in sums.iter().enumerate() {
                        store::<S>(*sum, vectors, (c * CHANNELS + k) * n);
                    }
                }
            }
        }
        // From six columns to three before lanes are added up: half as many vectors.
        for at in (0..PAIRS * n).step_by(n) {
            let mut u = [zero; 6];
            for j in 0..6 {
                u[j] = load(simd, &row[j], at);
            }
            let taps = contract_vectors(simd, u);
            for j in 0..3 {
                store::<S>(taps[j], &mut row[j], at);
            }
        }
        for (vectors, gradient) in row.iter().zip(gradient.chunks_exact_mut(PAIRS)) {
            add_reduced(simd, n, &vectors[..PAIRS * n], gradient);
        }
    }
}

/// As [`contract`].
#[inline(always)]
fn contract_vectors<S: Simd>(simd: S, u: Six<S>) -> Three<S> {
    let (near, off) = ((u[1] + u[2]) * (1.0 / 6.0), u[2] - u[1]);
    let (far, far_off) = ((u[3] + u[4]) * (1.0 / 24.0), (u[3] - u[4]) * (1.0 / 12.0));
    [
        u[0].mul_add(splat(simd, 0.25), far - near),
        off.mul_add(splat(simd, 1.0 / 6.0), far_off),
        far.mul_add(splat(simd, 4.0), u[5] - near),
    ]
}

/// Sums over tiles, `NT` of them at a time, of products of factors at one point.
#[inline(always)]
fn correlate<S: Simd, const NT: usize>(
    simd: S,
    (point, part): (usize, usize),
    x: &[f32],
    dy: &[f32],
    sums: &mut [[S::f32s; CHANNELS]; AT_ONCE],
) {
    let (n, block) = (S::f32s::LEN, POINTS * step::<S, NT>());
    for (x, dy) in x.chunks_exact(block).zip(dy.chunks_exact(block)) {
        let x = &x[point * step::<S, NT>()..][..step::<S, NT>()];
        let dy = &dy[point * step::<S, NT>() + part * AT_ONCE * NT * n..][..AT_ONCE * NT * n];
        for t in 0..NT {
            let mut vectors = [splat(simd, 0.0); CHANNELS];
            for k in 0..CHANNELS {
                vectors[k] = load(simd, x, (k * NT + t) * n);
            }
            for c in 0..AT_ONCE {
                let d = load(simd, dy, (c * NT + t) * n);
                for k in 0..CHANNELS {
                    sums[c][k] = d.mul_add(vectors[k], sums[c][k]);
                }
            }
        }
    }
}
