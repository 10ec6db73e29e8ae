//! Tiles: the transforms of one dimension, and one channel of a tile to and from its points.

#![expect(clippy::needless_range_loop, reason = "rows and columns of a tile read better by index")]

use fearless_simd::prelude::*;

use super::{CHANNELS, POINTS};
use crate::simd::{LANES, load, splat, store};

/// Three vectors of one dimension: half of six.
pub(super) type Three<S> = [<S as Simd>::f32s; 3];
/// Six vectors of one dimension.
pub(super) type Six<S> = [<S as Simd>::f32s; 6];

/// The first three factors of six pixels; the last is not looked at.
#[inline(always)]
fn patch_low<S: Simd>(simd: S, d: Six<S>) -> Three<S> {
    let (four, minus_four, minus_five) = (splat(simd, 4.0), splat(simd, -4.0), splat(simd, -5.0));
    let (a, b) = (d[2].mul_add(minus_four, d[4]), d[1].mul_add(minus_four, d[3]));
    [d[0].mul_add(four, d[2].mul_add(minus_five, d[4])), a + b, a - b]
}

/// The last three; the first is not looked at.
#[inline(always)]
fn patch_high<S: Simd>(simd: S, d: Six<S>) -> Three<S> {
    let (two, minus_two) = (splat(simd, 2.0), splat(simd, -2.0));
    let (four, minus_five) = (splat(simd, 4.0), splat(simd, -5.0));
    let (c, e) = (d[4] - d[2], d[3] - d[1]);
    [e.mul_add(two, c), e.mul_add(minus_two, c), d[1].mul_add(four, d[3].mul_add(minus_five, d[5]))]
}

/// The adjoint of both: pixels 0, 2 and 4.
#[inline(always)]
fn unpatch_even<S: Simd>(simd: S, v: Six<S>) -> Three<S> {
    let (four, minus_four, minus_five) = (splat(simd, 4.0), splat(simd, -4.0), splat(simd, -5.0));
    let (near, far) = (v[1] + v[2], v[3] + v[4]);
    let middle = v[0].mul_add(minus_five, near.mul_add(minus_four, splat(simd, 0.0) - far));
    [v[0] * four, middle, v[0] + near + far]
}

/// Pixels 1, 3 and 5.
#[inline(always)]
fn unpatch_odd<S: Simd>(simd: S, v: Six<S>) -> Three<S> {
    let (two, minus_two) = (splat(simd, 2.0), splat(simd, -2.0));
    let (four, minus_four, minus_five) = (splat(simd, 4.0), splat(simd, -4.0), splat(simd, -5.0));
    let (near, far) = (v[1] - v[2], v[3] - v[4]);
    [
        v[5].mul_add(four, near.mul_add(minus_four, far * minus_two)),
        v[5].mul_add(minus_five, far.mul_add(two, near)),
        v[5],
    ]
}

/// Four pixels from six products.
#[inline(always)]
fn pixels<S: Simd>(simd: S, m: Six<S>) -> [S::f32s; 4] {
    let (near, off) = (m[1] + m[2], m[1] - m[2]);
    let (far, far_off) = (m[3] + m[4], m[3] - m[4]);
    [
        m[0] + near + far,
        far_off.mul_add(splat(simd, 2.0), off),
        far.mul_add(splat(simd, 4.0), near),
        far_off.mul_add(splat(simd, 8.0), off) + m[5],
    ]
}

/// The adjoint of [`pixels`].
#[inline(always)]
fn unpixels<S: Simd>(simd: S, y: [S::f32s; 4]) -> Six<S> {
    let (two, minus_two, four) = (splat(simd, 2.0), splat(simd, -2.0), splat(simd, 4.0));
    let (even, odd) = (y[0] + y[2], y[1] + y[3]);
    let (wide, off) = (y[2].mul_add(four, y[0]), y[3].mul_add(four, y[1]));
    [y[0], even + odd, even - odd, off.mul_add(two, wide), off.mul_add(minus_two, wide), y[3]]
}

/// From a point to the next in the numbers of `NT` tiles: (point, channel, tile, lane).
pub(super) const fn step<S: Simd, const NT: usize>() -> usize {
    CHANNELS * NT * S::f32s::LEN
}

/// The points of one channel and tile, which begin there.
#[inline(always)]
pub(super) fn points<S: Simd, const NT: usize>(
    tiles: &mut [f32],
    channel: usize,
    t: usize,
) -> &mut [f32] {
    let n = S::f32s::LEN;
    &mut tiles[(channel * NT + t) * n..][..(POINTS - 1) * step::<S, NT>() + n]
}

/// One channel's 6 x 6 patch as the points' factors.
#[inline(always)]
pub(super) fn read_patch<S: Simd, const NT: usize>(
    simd: S,
    row: usize,
    x: &[f32],
    at: usize,
    out: &mut [f32],
) {
    let span = 5 * LANES + S::f32s::LEN;
    let mut rows = [&x[..0]; 6];
    for i in 0..6 {
        rows[i] = &x[at + i * row..at + i * row + span];
    }
    read_half::<S, NT, 0>(simd, rows, out);
    read_half::<S, NT, 1>(simd, rows, out);
}

/// Half of its rows of factors at a time, so that what they are made of fits the registers.
#[inline(always)]
fn read_half<S: Simd, const NT: usize, const HALF: usize>(
    simd: S,
    rows: [&[f32]; 6],
    out: &mut [f32],
) {
    let mut columns = [[splat(simd, 0.0); 6]; 3];
    for c in 0..6 {
        let mut d = [splat(simd, 0.0); 6];
        for i in 0..5 {
            d[i + HALF] = load(simd, rows[i + HALF], c * LANES);
        }
        let three = if HALF == 0 { patch_low(simd, d) } else { patch_high(simd, d) };
        for i in 0..3 {
            columns[i][c] = three[i];
        }
    }
    for i in 0..3 {
        let (low, high) = (patch_low(simd, columns[i]), patch_high(simd, columns[i]));
        let first = 6 * (3 * HALF + i);
        for j in 0..3 {
            store::<S>(low[j], out, (first + j) * step::<S, NT>());
            store::<S>(high[j], out, (first + 3 + j) * step::<S, NT>());
        }
    }
}

/// The adjoint of [`read_patch`], added to the upper two rows of `x`. The lower four are begun, but for
/// the columns that the tile to the left, if there is one, has begun.
#[inline(always)]
pub(super) fn add_patch<S: Simd, const NT: usize>(
    simd: S,
    row: usize,
    from: &[f32],
    x: &mut [f32],
    (at, leftmost): (usize, bool),
) {
    let span = 5 * LANES + S::f32s::LEN;
    let from = &from[..(POINTS - 1) * step::<S, NT>() + S::f32s::LEN];
    let x = &mut x[at..at + 5 * row + span];
    add_half::<S, NT, 0>(simd, from, x, row, leftmost);
    add_half::<S, NT, 1>(simd, from, x, row, leftmost);
}

/// Even or odd rows of the patch.
#[inline(always)]
fn add_half<S: Simd, const NT: usize, const ODD: usize>(
    simd: S,
    from: &[f32],
    x: &mut [f32],
    row: usize,
    leftmost: bool,
) {
    let mut columns = [[splat(simd, 0.0); 6]; 3];
    for j in 0..6 {
        let mut v = [splat(simd, 0.0); 6];
        for i in 0..5 {
            v[i + ODD] = load(simd, from, (6 * (i + ODD) + j) * step::<S, NT>());
        }
        let three = if ODD == 0 { unpatch_even(simd, v) } else { unpatch_odd(simd, v) };
        for i in 0..3 {
            columns[i][j] = three[i];
        }
    }
    for i in 0..3 {
        let (even, odd) = (unpatch_even(simd, columns[i]), unpatch_odd(simd, columns[i]));
        let x = &mut x[(2 * i + ODD) * row..][..5 * LANES + S::f32s::LEN];
        for c in 0..6 {
            let new = if c % 2 == 0 { even[c / 2] } else { odd[c / 2] };
            let begun = i == 0 || c < 2 && !leftmost;
            store::<S>(if begun { load(simd, x, c * LANES) + new } else { new }, x, c * LANES);
        }
    }
}

/// One channel's 4 x 4 pixels, from the points' products.
#[inline(always)]
pub(super) fn write_pixels<S: Simd, const NT: usize>(
    simd: S,
    row: usize,
    from: &[f32],
    y: &mut [f32],
    at: usize,
) {
    let span = 3 * LANES + S::f32s::LEN;
    let from = &from[..(POINTS - 1) * step::<S, NT>() + S::f32s::LEN];
    let mut columns = [[splat(simd, 0.0); 6]; 4];
    for j in 0..6 {
        let mut m = [splat(simd, 0.0); 6];
        for i in 0..6 {
            m[i] = load(simd, from, (6 * i + j) * step::<S, NT>());
        }
        let four = pixels(simd, m);
        for i in 0..4 {
            columns[i][j] = four[i];
        }
    }
    for i in 0..4 {
        let y = &mut y[at + i * row..at + i * row + span];
        for (c, pixel) in pixels(simd, columns[i]).into_iter().enumerate() {
            store::<S>(pixel, y, c * LANES);
        }
    }
}

/// The adjoint of [`write_pixels`].
#[inline(always)]
pub(super) fn read_pixels<S: Simd, const NT: usize>(
    simd: S,
    row: usize,
    y: &[f32],
    at: usize,
    out: &mut [f32],
) {
    let span = 3 * LANES + S::f32s::LEN;
    let mut rows = [[splat(simd, 0.0); 6]; 4];
    for i in 0..4 {
        let y = &y[at + i * row..at + i * row + span];
        let mut four = [splat(simd, 0.0); 4];
        for c in 0..4 {
            four[c] = load(simd, y, c * LANES);
        }
        rows[i] = unpixels(simd, four);
    }
    for j in 0..6 {
        let column = unpixels(simd, [rows[0][j], rows[1][j], rows[2][j], rows[3][j]]);
        for i in 0..6 {
            store::<S>(column[i], out, (6 * i + j) * step::<S, NT>());
        }
    }
}
