//! F(2 x 2, 3 x 3): 2 x 2 pixels from 16 products per pair of channels instead of 36. Tiles are taken in
//! pairs along a row.

#![expect(clippy::needless_range_loop, reason = "rows and columns of a tile read better by index")]

use fearless_simd::prelude::*;

use super::Cut;
use crate::convolve::Size;
use crate::simd::{load, splat, store};

/// Products per tile and pair of channels.
const POINTS: usize = 16;

/// Numbers of room that one chunk needs.
pub(crate) fn room(size: &Size) -> usize {
    2 * POINTS * size.inputs.max(size.outputs) * PAIR
}

/// Lanes of a pair of tiles in the widest vectors.
const PAIR: usize = 32;

/// Whether a block's images can be cut into tiles.
pub(crate) fn applies(size: &Size) -> bool {
    size.kernel == 3 && size.phases.is_multiple_of(2)
}

/// Numbers in the transformed weights.
pub(crate) fn weights(size: &Size) -> usize {
    POINTS * size.inputs * size.outputs
}

/// (a, b, c) as the four factors of one dimension.
fn expand_kernel([a, b, c]: [f32; 3]) -> [f32; 4] {
    [a, 0.5 * (a + b + c), 0.5 * (a - b + c), c]
}

/// Weights (out, in, tap) as (point, in, out), or with `back` as (point, out, in).
pub(crate) fn pack(size: &Size, weights: &[f32], back: bool, packed: &mut [f32]) {
    let (inputs, outputs) = (size.inputs, size.outputs);
    for (pair, w) in weights.as_chunks::<9>().0.iter().enumerate() {
        let (co, ci) = (pair / inputs, pair % inputs);
        let at = if back { co * inputs + ci } else { ci * outputs + co };
        let rows = [0, 3, 6].map(|r| expand_kernel([w[r], w[r + 1], w[r + 2]]));
        for j in 0..4 {
            let column = expand_kernel([rows[0][j], rows[1][j], rows[2][j]]);
            for (i, value) in column.into_iter().enumerate() {
                packed[(4 * i + j) * inputs * outputs + at] = value;
            }
        }
    }
}

/// Weights from [`pack`] as it makes them with `back`.
pub(crate) fn transpose(size: &Size, packed: &[f32], back: &mut [f32]) {
    let (inputs, outputs) = (size.inputs, size.outputs);
    let points = packed.chunks_exact(inputs * outputs);
    for (point, back) in points.zip(back.chunks_exact_mut(inputs * outputs)) {
        for (co, back) in back.chunks_exact_mut(inputs).enumerate() {
            for (ci, back) in back.iter_mut().enumerate() {
                *back = point[ci * outputs + co];
            }
        }
    }
}

/// From a plane to the next: `W` where it is known when compiling, which spares the checks of every
/// access; 0 where it is not.
#[inline(always)]
fn plane<const W: usize>(size: &Size) -> usize {
    if W == 0 { size.width } else { W }
}

/// One channel's 4 x 4 patches of `NT` tiles side by side, as the points' factors.
#[inline(always)]
fn read_patches<S: Simd, const NT: usize, const W: usize>(
    simd: S,
    (size, row): (&Size, usize),
    x: &[f32],
    at: usize,
    out: &mut [f32],
) {
    let (n, width) = (S::f32s::LEN, plane::<W>(size));
    let span = (2 * NT + 1) * width + n;
    let out = &mut out[..POINTS * NT * n];
    let x0 = &x[at..at + span];
    let x1 = &x[at + row..at + row + span];
    let x2 = &x[at + 2 * row..at + 2 * row + span];
    let x3 = &x[at + 3 * row..at + 3 * row + span];
    let mut rows = [[splat(simd, 0.0); 6]; 4];
    for c in 0..2 * NT + 2 {
        let at = c * width;
        let (d0, d1) = (load(simd, x0, at), load(simd, x1, at));
        let (d2, d3) = (load(simd, x2, at), load(simd, x3, at));
        rows[0][c] = d0 - d2;
        rows[1][c] = d1 + d2;
        rows[2][c] = d2 - d1;
        rows[3][c] = d1 - d3;
    }
    let step = NT * n;
    for (i, r) in rows.iter().enumerate() {
        for t in 0..NT {
            let (c, to) = (2 * t, 4 * i * step + t * n);
            store::<S>(r[c] - r[c + 2], out, to);
            store::<S>(r[c + 1] + r[c + 2], out, to + step);
            store::<S>(r[c + 2] - r[c + 1], out, to + 2 * step);
            store::<S>(r[c + 1] - r[c + 3], out, to + 3 * step);
        }
    }
}

/// The adjoint of [`read_patches`], added to the upper two rows of `x`. The lower two are begun, but
/// for the columns that the tiles to the left, if there are any, have begun.
#[inline(always)]
fn add_patches<S: Simd, const NT: usize, const W: usize>(
    simd: S,
    (size, row): (&Size, usize),
    from: &[f32],
    x: &mut [f32],
    (at, leftmost): (usize, bool),
) {
    let (n, width) = (S::f32s::LEN, plane::<W>(size));
    let span = (2 * NT + 1) * width + n;
    let (step, from) = (NT * n, &from[..POINTS * NT * n]);
    let zero = splat(simd, 0.0);
    let mut rows = [[zero; 6]; 4];
    for (i, r) in rows.iter_mut().enumerate() {
        for t in 0..NT {
            let (c, at) = (2 * t, 4 * i * step + t * n);
            let (v0, v1) = (load(simd, from, at), load(simd, from, at + step));
            let (v2, v3) = (load(simd, from, at + 2 * step), load(simd, from, at + 3 * step));
            r[c] += v0;
            r[c + 1] += v1 - v2 + v3;
            r[c + 2] = v1 + v2 - v0;
            r[c + 3] = zero - v3;
        }
    }
    for i in 0..4 {
        let x = &mut x[at + i * row..at + i * row + span];
        for c in 0..2 * NT + 2 {
            let at = c * width;
            let new = match i {
                0 => rows[0][c],
                1 => rows[1][c] - rows[2][c] + rows[3][c],
                2 => rows[1][c] + rows[2][c] - rows[0][c],
                _ => zero - rows[3][c],
            };
            let begun = i < 2 || c < 2 && !leftmost;
            store::<S>(if begun { load(simd, x, at) + new } else { new }, x, at);
        }
    }
}

/// One channel's 2 x 2 pixels of `NT` tiles, from the points' products.
#[inline(always)]
fn write_pixels<S: Simd, const NT: usize, const W: usize>(
    simd: S,
    (size, row): (&Size, usize),
    from: &[f32],
    y: &mut [f32],
    at: usize,
) {
    let (n, width) = (S::f32s::LEN, plane::<W>(size));
    let span = (2 * NT - 1) * width + n;
    let (step, from) = (NT * n, &from[..POINTS * NT * n]);
    let (upper, lower) = y[at..at + row + span].split_at_mut(row);
    let (upper, lower) = (&mut upper[..span], &mut lower[..span]);
    for t in 0..NT {
        let (mut top, mut bottom) = ([splat(simd, 0.0); 4], [splat(simd, 0.0); 4]);
        for j in 0..4 {
            let at = j * step + t * n;
            let (m0, m1) = (load(simd, from, at), load(simd, from, at + 4 * step));
            let (m2, m3) = (load(simd, from, at + 8 * step), load(simd, from, at + 12 * step));
            top[j] = m0 + (m1 + m2);
            bottom[j] = m1 - m2 - m3;
        }
        let at = 2 * t * width;
        store::<S>(top[0] + (top[1] + top[2]), upper, at);
        store::<S>(top[1] - top[2] - top[3], upper, at + width);
        store::<S>(bottom[0] + (bottom[1] + bottom[2]), lower, at);
        store::<S>(bottom[1] - bottom[2] - bottom[3], lower, at + width);
    }
}

/// The adjoint of [`write_pixels`].
#[inline(always)]
fn read_pixels<S: Simd, const NT: usize, const W: usize>(
    simd: S,
    (size, row): (&Size, usize),
    y: &[f32],
    at: usize,
    out: &mut [f32],
) {
    let (n, width) = (S::f32s::LEN, plane::<W>(size));
    let span = (2 * NT - 1) * width + n;
    let (step, out) = (NT * n, &mut out[..POINTS * NT * n]);
    let (upper, lower) = (&y[at..at + span], &y[at + row..at + row + span]);
    let zero = splat(simd, 0.0);
    for t in 0..NT {
        let at = 2 * t * width;
        let (a, b) = (load(simd, upper, at), load(simd, upper, at + width));
        let (c, d) = (load(simd, lower, at), load(simd, lower, at + width));
        let (tops, bottoms) = ([a, a + b, a - b, zero - b], [c, c + d, c - d, zero - d]);
        for j in 0..4 {
            let (top, bottom, to) = (tops[j], bottoms[j], j * step + t * n);
            store::<S>(top, out, to);
            store::<S>(top + bottom, out, to + 4 * step);
            store::<S>(top - bottom, out, to + 8 * step);
            store::<S>(zero - bottom, out, to + 12 * step);
        }
    }
}

/// For every point, `CO` outputs from all inputs; returns `CO`.
#[inline(always)]
fn multiply<S: Simd, const CO: usize, const NT: usize>(
    simd: S,
    weights: &[f32],
    (inputs, outputs, first): (usize, usize, usize),
    from: &[f32],
    to: &mut [f32],
) -> usize {
    let n = S::f32s::LEN;
    let zero = splat(simd, 0.0);
    let block = POINTS * NT * n;
    let to = &mut to[first * block..(first + CO) * block];
    for point in 0..POINTS {
        let weights = &weights[point * inputs * outputs..][..inputs * outputs];
        let mut sums = [[zero; NT]; CO];
        for (w, x) in weights.chunks_exact(outputs).zip(from.chunks_exact(block)) {
            let w = &w[first..first + CO];
            let mut vectors = [zero; NT];
            for (t, vector) in vectors.iter_mut().enumerate() {
                *vector = load(simd, x, (point * NT + t) * n);
            }
            for (sums, w) in sums.iter_mut().zip(w) {
                let w = splat(simd, *w);
                for (sum, x) in sums.iter_mut().zip(vectors) {
                    *sum = x.mul_add(w, *sum);
                }
            }
        }
        for (c, sums) in sums.iter().enumerate() {
            for (t, sum) in sums.iter().enumerate() {
                store::<S>(*sum, to, c * block + (point * NT + t) * n);
            }
        }
    }
    CO
}

#[inline(never)]
fn multiply_all<S: Simd, const NT: usize>(
    simd: S,
    weights: &[f32],
    (inputs, outputs): (usize, usize),
    from: &[f32],
    to: &mut [f32],
) {
    simd.vectorize(
        #[inline(always)]
        || {
            let mut first = 0;
            while first < outputs {
                let which = (inputs, outputs, first);
                first += match outputs - first {
                    6.. => multiply::<S, 6, NT>(simd, weights, which, from, to),
                    3.. => multiply::<S, 3, NT>(simd, weights, which, from, to),
                    2 => multiply::<S, 2, NT>(simd, weights, which, from, to),
                    _ => multiply::<S, 1, NT>(simd, weights, which, from, to),
                };
            }
        },
    );
}

#[inline(always)]
fn forward_tiles<S: Simd, const NT: usize, const W: usize>(
    simd: S,
    (size, cut): (&Size, &Cut),
    packed: &[f32],
    room: &mut [f32],
    (row, col, lane): (usize, usize, usize),
    x: &[f32],
    y: &mut [f32],
) {
    let block = POINTS * NT * S::f32s::LEN;
    let (factors, products) = room.split_at_mut(room.len() / 2);
    let at = row * cut.x_row + col * size.width + lane;
    for ci in 0..size.inputs {
        let (x, out) = (&x[ci * cut.x_channel..], &mut factors[ci * block..]);
        read_patches::<S, NT, W>(simd, (size, cut.x_row), x, at, out);
    }
    let channels = (size.inputs, size.outputs);
    multiply_all::<S, NT>(simd, packed, channels, factors, products);
    let at = row * cut.y_row + col * size.width + lane;
    for co in 0..size.outputs {
        let (from, y) = (&products[co * block..], &mut y[co * cut.y_channel..]);
        write_pixels::<S, NT, W>(simd, (size, cut.y_row), from, y, at);
    }
}

#[inline(always)]
fn backward_tiles<S: Simd, const NT: usize, const W: usize>(
    simd: S,
    (size, cut): (&Size, &Cut),
    packed: &[f32],
    room: &mut [f32],
    (row, col, lane): (usize, usize, usize),
    dy: &[f32],
    dx: &mut [f32],
) {
    let block = POINTS * NT * S::f32s::LEN;
    let (factors, products) = room.split_at_mut(room.len() / 2);
    let at = row * cut.y_row + col * size.width + lane;
    for co in 0..size.outputs {
        let (dy, out) = (&dy[co * cut.y_channel..], &mut factors[co * block..]);
        read_pixels::<S, NT, W>(simd, (size, cut.y_row), dy, at, out);
    }
    let channels = (size.outputs, size.inputs);
    multiply_all::<S, NT>(simd, packed, channels, factors, products);
    let at = row * cut.x_row + col * size.width + lane;
    for ci in 0..size.inputs {
        let (from, dx) = (&products[ci * block..], &mut dx[ci * cut.x_channel..]);
        add_patches::<S, NT, W>(simd, (size, cut.x_row), from, dx, (at, col == 0));
    }
}

/// Calls `$tiles::<S, tiles, W>` for all tiles of a cut, in pairs where there are two.
macro_rules! each_tile {
    ($tiles:ident, $w:literal, $simd:ident, $size:ident, $cut:ident, $($argument:ident),*) => {
        for lane in (0..$size.width).step_by(S::f32s::LEN) {
            for row in (0..$cut.rows).step_by(2) {
                let mut col = 0;
                while col + 4 <= $size.phases {
                    let at = (row, col, lane);
                    each_tile!(@call $tiles, 2, $w, $simd, $size, $cut, at, $($argument),*);
                    col += 4;
                }
                if col < $size.phases {
                    let at = (row, col, lane);
                    each_tile!(@call $tiles, 1, $w, $simd, $size, $cut, at, $($argument),*);
                }
            }
        }
    };
    (@call $tiles:ident, $n:literal, $w:literal, $simd:ident, $size:ident, $cut:ident, $at:ident,
     $packed:ident, $room:ident, $from:ident, $to:ident) => {
        $tiles::<S, $n, $w>($simd, ($size, $cut), $packed, $room, $at, $from, $to)
    };
}

/// As [`crate::convolve::forward`]; weights from [`pack`].
#[inline(always)]
pub(crate) fn forward<S: Simd>(
    simd: S,
    size: &Size,
    cut: &Cut,
    packed: &[f32],
    room: &mut [f32],
    x: &[f32],
    y: &mut [f32],
) {
    if size.width == 16 {
        each_tile!(forward_tiles, 16, simd, size, cut, packed, room, x, y);
    } else {
        each_tile!(forward_tiles, 0, simd, size, cut, packed, room, x, y);
    }
}

/// As [`crate::convolve::backward_input`], but added to the first two rows of `dx`; weights from
/// [`pack`] with `back`.
#[inline(always)]
pub(crate) fn backward_input<S: Simd>(
    simd: S,
    size: &Size,
    cut: &Cut,
    packed: &[f32],
    room: &mut [f32],
    dy: &[f32],
    dx: &mut [f32],
) {
    if size.width == 16 {
        each_tile!(backward_tiles, 16, simd, size, cut, packed, room, dy, dx);
    } else {
        each_tile!(backward_tiles, 0, simd, size, cut, packed, room, dy, dx);
    }
}
