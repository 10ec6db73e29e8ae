//! The 3 x 3 convolution by Winograd's minimal filtering, F(2 x 2, 3 x 3) (Lavin and Gray, 2016):
//! 2 x 2 pixels from 16 products per pair of channels instead of 36. Planes make it cheap: the
//! transforms are sums of planes, and sums run beside products on most processors. Tiles are taken
//! in pairs along a row.

use fearless_simd::prelude::*;

use super::convolve::Size;
use super::vector::{load, splat, store};

/// Products per tile and pair of channels.
const POINTS: usize = 16;

/// Numbers of room that one chunk needs.
pub(super) fn room(size: &Size) -> usize {
    2 * POINTS * size.inputs.max(size.outputs) * PAIR
}

/// Lanes of a pair of tiles in the widest vectors.
const PAIR: usize = 32;

/// Whether a block's images can be cut into tiles.
pub(super) fn applies(size: &Size) -> bool {
    size.kernel == 3 && size.phases.is_multiple_of(2)
}

/// Numbers in the transformed weights.
pub(super) fn weights(size: &Size) -> usize {
    POINTS * size.inputs * size.outputs
}

/// (a, b, c) as the four factors of one dimension.
fn expand_kernel([a, b, c]: [f32; 3]) -> [f32; 4] {
    [a, 0.5 * (a + b + c), 0.5 * (a - b + c), c]
}

/// Weights (out, in, tap) as (point, in, out), or with `back` as (point, out, in).
pub(super) fn pack(size: &Size, weights: &[f32], back: bool, packed: &mut [f32]) {
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

/// One channel's 4 x 4 patches of `NT` tiles side by side, as the points' factors.
#[inline(always)]
fn read_patches<S: Simd, const NT: usize>(
    simd: S,
    size: &Size,
    x: &[f32],
    at: usize,
    out: &mut [f32],
    step: usize,
) {
    let n = S::f32s::LEN;
    let row = size.outer * size.width;
    let mut rows = [[splat(simd, 0.0); 6]; 4];
    for c in 0..2 * NT + 2 {
        let at = at + c * size.width;
        let d0 = load(simd, x, at);
        let d1 = load(simd, x, at + row);
        let d2 = load(simd, x, at + 2 * row);
        let d3 = load(simd, x, at + 3 * row);
        rows[0][c] = d0 - d2;
        rows[1][c] = d1 + d2;
        rows[2][c] = d2 - d1;
        rows[3][c] = d1 - d3;
    }
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

/// The adjoint of [`read_patches`], added to `x`.
#[inline(always)]
fn add_patches<S: Simd, const NT: usize>(
    simd: S,
    size: &Size,
    from: &[f32],
    step: usize,
    x: &mut [f32],
    at: usize,
) {
    let n = S::f32s::LEN;
    let row = size.outer * size.width;
    let zero = splat(simd, 0.0);
    let mut rows = [[zero; 6]; 4];
    for (i, r) in rows.iter_mut().enumerate() {
        for t in 0..NT {
            let (c, at) = (2 * t, 4 * i * step + t * n);
            let v0 = load(simd, from, at);
            let v1 = load(simd, from, at + step);
            let v2 = load(simd, from, at + 2 * step);
            let v3 = load(simd, from, at + 3 * step);
            r[c] += v0;
            r[c + 1] += v1 - v2 + v3;
            r[c + 2] = v1 + v2 - v0;
            r[c + 3] = zero - v3;
        }
    }
    for c in 0..2 * NT + 2 {
        let at = at + c * size.width;
        let [v0, v1, v2, v3] = [rows[0][c], rows[1][c], rows[2][c], rows[3][c]];
        store::<S>(load(simd, x, at) + v0, x, at);
        store::<S>(load(simd, x, at + row) + (v1 - v2 + v3), x, at + row);
        store::<S>(load(simd, x, at + 2 * row) + (v1 + v2 - v0), x, at + 2 * row);
        store::<S>(load(simd, x, at + 3 * row) - v3, x, at + 3 * row);
    }
}

/// One channel's 2 x 2 pixels of `NT` tiles, from the points' products.
#[inline(always)]
fn write_pixels<S: Simd, const NT: usize>(
    simd: S,
    size: &Size,
    from: &[f32],
    step: usize,
    y: &mut [f32],
    at: usize,
) {
    let n = S::f32s::LEN;
    let row = size.phases * size.width;
    for t in 0..NT {
        let (mut top, mut bottom) = ([splat(simd, 0.0); 4], [splat(simd, 0.0); 4]);
        for j in 0..4 {
            let at = j * step + t * n;
            let m0 = load(simd, from, at);
            let m1 = load(simd, from, at + 4 * step);
            let m2 = load(simd, from, at + 8 * step);
            let m3 = load(simd, from, at + 12 * step);
            top[j] = m0 + (m1 + m2);
            bottom[j] = m1 - m2 - m3;
        }
        let at = at + 2 * t * size.width;
        for (m, at) in [(top, at), (bottom, at + row)] {
            store::<S>(m[0] + (m[1] + m[2]), y, at);
            store::<S>(m[1] - m[2] - m[3], y, at + size.width);
        }
    }
}

/// The adjoint of [`write_pixels`].
#[inline(always)]
fn read_pixels<S: Simd, const NT: usize>(
    simd: S,
    size: &Size,
    y: &[f32],
    at: usize,
    out: &mut [f32],
    step: usize,
) {
    let n = S::f32s::LEN;
    let row = size.phases * size.width;
    let zero = splat(simd, 0.0);
    for t in 0..NT {
        let at = at + 2 * t * size.width;
        for j in 0..4 {
            // Left and right pixel as the column of points `j` sees them.
            let (mut top, mut bottom) = (zero, zero);
            if j < 3 {
                top = load(simd, y, at);
                bottom = load(simd, y, at + row);
            }
            if j == 1 {
                top += load(simd, y, at + size.width);
                bottom += load(simd, y, at + row + size.width);
            } else if j > 1 {
                top -= load(simd, y, at + size.width);
                bottom -= load(simd, y, at + row + size.width);
            }
            let to = j * step + t * n;
            store::<S>(top, out, to);
            store::<S>(top + bottom, out, to + 4 * step);
            store::<S>(top - bottom, out, to + 8 * step);
            store::<S>(zero - bottom, out, to + 12 * step);
        }
    }
}

/// For every point, `CO` outputs from all inputs.
#[inline(always)]
fn multiply<S: Simd, const CO: usize, const NT: usize>(
    simd: S,
    weights: &[f32],
    (inputs, outputs, first): (usize, usize, usize),
    from: &[f32],
    to: &mut [f32],
) {
    let n = S::f32s::LEN;
    let zero = splat(simd, 0.0);
    for point in 0..POINTS {
        let weights = &weights[point * inputs * outputs..][..inputs * outputs];
        let from = &from[point * inputs * NT * n..][..inputs * NT * n];
        let mut sums = [[zero; NT]; CO];
        for (w, x) in weights.chunks_exact(outputs).zip(from.chunks_exact(NT * n)) {
            let w = &w[first..first + CO];
            let mut vectors = [zero; NT];
            for (t, vector) in vectors.iter_mut().enumerate() {
                *vector = load(simd, x, t * n);
            }
            for (sums, w) in sums.iter_mut().zip(w) {
                let w = splat(simd, *w);
                for (sum, x) in sums.iter_mut().zip(vectors) {
                    *sum = x.mul_add(w, *sum);
                }
            }
        }
        let to = &mut to[(point * outputs + first) * NT * n..][..CO * NT * n];
        for (sums, to) in sums.iter().zip(to.chunks_exact_mut(NT * n)) {
            for (t, sum) in sums.iter().enumerate() {
                store::<S>(*sum, to, t * n);
            }
        }
    }
}

#[inline(always)]
fn multiply_all<S: Simd, const NT: usize>(
    simd: S,
    weights: &[f32],
    (inputs, outputs): (usize, usize),
    from: &[f32],
    to: &mut [f32],
) {
    let mut first = 0;
    while first < outputs {
        let which = (inputs, outputs, first);
        first += match outputs - first {
            6.. => {
                multiply::<S, 6, NT>(simd, weights, which, from, to);
                6
            }
            3.. => {
                multiply::<S, 3, NT>(simd, weights, which, from, to);
                3
            }
            2 => {
                multiply::<S, 2, NT>(simd, weights, which, from, to);
                2
            }
            _ => {
                multiply::<S, 1, NT>(simd, weights, which, from, to);
                1
            }
        };
    }
}

#[inline(always)]
fn forward_tiles<S: Simd, const NT: usize>(
    simd: S,
    size: &Size,
    packed: &[f32],
    room: &mut [f32],
    (row, col, lane): (usize, usize, usize),
    x: &[f32],
    y: &mut [f32],
) {
    let n = NT * S::f32s::LEN;
    let (factors, products) = room.split_at_mut(room.len() / 2);
    let at = (row * size.outer + col) * size.width + lane;
    for ci in 0..size.inputs {
        let x = &x[ci * size.outer_len()..][..size.outer_len()];
        read_patches::<S, NT>(simd, size, x, at, &mut factors[ci * n..], size.inputs * n);
    }
    let channels = (size.inputs, size.outputs);
    multiply_all::<S, NT>(simd, packed, channels, factors, products);
    let at = (row * size.phases + col) * size.width + lane;
    for co in 0..size.outputs {
        let y = &mut y[co * size.inner_len()..][..size.inner_len()];
        write_pixels::<S, NT>(simd, size, &products[co * n..], size.outputs * n, y, at);
    }
}

#[inline(always)]
fn backward_tiles<S: Simd, const NT: usize>(
    simd: S,
    size: &Size,
    packed: &[f32],
    room: &mut [f32],
    (row, col, lane): (usize, usize, usize),
    dy: &[f32],
    dx: &mut [f32],
) {
    let n = NT * S::f32s::LEN;
    let (factors, products) = room.split_at_mut(room.len() / 2);
    let at = (row * size.phases + col) * size.width + lane;
    for co in 0..size.outputs {
        let dy = &dy[co * size.inner_len()..][..size.inner_len()];
        read_pixels::<S, NT>(simd, size, dy, at, &mut factors[co * n..], size.outputs * n);
    }
    let channels = (size.outputs, size.inputs);
    multiply_all::<S, NT>(simd, packed, channels, factors, products);
    let at = (row * size.outer + col) * size.width + lane;
    for ci in 0..size.inputs {
        let dx = &mut dx[ci * size.outer_len()..][..size.outer_len()];
        add_patches::<S, NT>(simd, size, &products[ci * n..], size.inputs * n, dx, at);
    }
}

/// As [`super::convolve::forward`]; weights from [`pack`].
#[inline(always)]
pub(super) fn forward<S: Simd>(
    simd: S,
    size: &Size,
    packed: &[f32],
    room: &mut [f32],
    x: &[f32],
    y: &mut [f32],
) {
    for lane in (0..size.width).step_by(S::f32s::LEN) {
        for row in (0..size.phases).step_by(2) {
            let mut col = 0;
            while col + 4 <= size.phases {
                forward_tiles::<S, 2>(simd, size, packed, room, (row, col, lane), x, y);
                col += 4;
            }
            if col < size.phases {
                forward_tiles::<S, 1>(simd, size, packed, room, (row, col, lane), x, y);
            }
        }
    }
}

/// As [`super::convolve::backward_input`]; weights from [`pack`] with `back`.
#[inline(always)]
pub(super) fn backward_input<S: Simd>(
    simd: S,
    size: &Size,
    packed: &[f32],
    room: &mut [f32],
    dy: &[f32],
    dx: &mut [f32],
) {
    dx.fill(0.0);
    for lane in (0..size.width).step_by(S::f32s::LEN) {
        for row in (0..size.phases).step_by(2) {
            let mut col = 0;
            while col + 4 <= size.phases {
                backward_tiles::<S, 2>(simd, size, packed, room, (row, col, lane), dy, dx);
                col += 4;
            }
            if col < size.phases {
                backward_tiles::<S, 1>(simd, size, packed, room, (row, col, lane), dy, dx);
            }
        }
    }
}
