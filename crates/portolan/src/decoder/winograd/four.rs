//! F(4 x 4, 3 x 3) for the six channels of the common decoder: a tile is 4 x 4 pixels, its patch of the
//! input 6 x 6, and 36 products per pair of channels take the place of 144. Tiles are taken two at a
//! time where vectors are wide, side by side or one above the other. What the products are made of,
//! the factors, also gives the gradient of the weights: a sum over tiles of products, point by point.

#![expect(clippy::needless_range_loop, reason = "rows and columns of a tile read better by index")]

use fearless_simd::prelude::*;

use super::Cut;
use crate::decoder::convolve::Size;
use crate::simd::{LANES, add_reduced, load, splat, store};

/// Products per tile and pair of channels.
const POINTS: usize = 36;

/// Channels in and out.
const CHANNELS: usize = 6;

/// Numbers of room that one chunk needs: two tiles in the widest vectors.
pub(in crate::decoder) const ROOM: usize = 2 * POINTS * CHANNELS * 2 * LANES;

/// Pairs of channels.
const PAIRS: usize = CHANNELS * CHANNELS;

/// Numbers of the packed weights.
pub(in crate::decoder) const WEIGHTS: usize = POINTS * PAIRS;

/// Whether a block's images can be cut into tiles.
pub(in crate::decoder) fn applies(size: &Size) -> bool {
    let channels = size.inputs == CHANNELS && size.outputs == CHANNELS;
    channels && size.kernel == 3 && size.phases.is_multiple_of(4)
}

/// Numbers of the factors of some rows of a chunk.
pub(in crate::decoder) fn factors(size: &Size, rows: usize) -> usize {
    tiles(size, rows) * POINTS * CHANNELS * LANES
}

fn tiles(size: &Size, rows: usize) -> usize {
    rows / 4 * (size.phases / 4)
}

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
pub(in crate::decoder) fn pack(weights: &[f32], packed: &mut [f32]) {
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
pub(in crate::decoder) fn unpack(from: &[f32], gradient: &mut [f32]) {
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

/// Three vectors of one dimension: half of six.
type Three<S> = [<S as Simd>::f32s; 3];
/// Six vectors of one dimension.
type Six<S> = [<S as Simd>::f32s; 6];

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
const fn step<S: Simd, const NT: usize>() -> usize {
    CHANNELS * NT * S::f32s::LEN
}

/// The points of one channel and tile, which begin there.
#[inline(always)]
fn points<S: Simd, const NT: usize>(tiles: &mut [f32], channel: usize, t: usize) -> &mut [f32] {
    let n = S::f32s::LEN;
    &mut tiles[(channel * NT + t) * n..][..(POINTS - 1) * step::<S, NT>() + n]
}

/// One channel's 6 x 6 patch as the points' factors.
#[inline(always)]
fn read_patch<S: Simd, const NT: usize>(
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
fn add_patch<S: Simd, const NT: usize>(
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
fn write_pixels<S: Simd, const NT: usize>(
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
fn read_pixels<S: Simd, const NT: usize>(
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

/// For every point, all channels from all channels: out from in, or with `BACK` in from out.
#[inline(never)]
fn multiply<S: Simd, const NT: usize, const BACK: bool>(
    simd: S,
    weights: &[f32],
    factors: &[f32],
    products: &mut [f32],
) {
    simd.vectorize(
        #[inline(always)]
        || {
            let (n, zero) = (S::f32s::LEN, splat(simd, 0.0));
            let weights = weights.as_chunks::<PAIRS>().0;
            let factors = factors.chunks_exact(step::<S, NT>());
            let products = products.chunks_exact_mut(step::<S, NT>());
            for ((factors, products), weights) in factors.zip(products).zip(weights) {
                let mut sums = [[zero; NT]; CHANNELS];
                for from in 0..CHANNELS {
                    let mut vectors = [zero; NT];
                    for t in 0..NT {
                        vectors[t] = load(simd, factors, (from * NT + t) * n);
                    }
                    for to in 0..CHANNELS {
                        let pair = if BACK { from * CHANNELS + to } else { to * CHANNELS + from };
                        let w = splat(simd, weights[pair]);
                        for t in 0..NT {
                            sums[to][t] = vectors[t].mul_add(w, sums[to][t]);
                        }
                    }
                }
                for c in 0..CHANNELS {
                    for t in 0..NT {
                        store::<S>(sums[c][t], products, (c * NT + t) * n);
                    }
                }
            }
        },
    );
}

/// Where `NT` tiles begin, the number of the first: row and column.
#[inline(always)]
fn places<const NT: usize>(size: &Size, first: usize) -> [(usize, usize); NT] {
    let (across, mut places) = (size.phases / 4, [(0, 0); NT]);
    for t in 0..NT {
        places[t] = (4 * ((first + t) / across), 4 * ((first + t) % across));
    }
    places
}

/// Factors of the input of some tiles.
#[inline(always)]
fn read_patches<S: Simd, const NT: usize>(
    simd: S,
    (size, cut): (&Size, &Cut),
    (first, lane): (usize, usize),
    x: &[f32],
    factors: &mut [f32],
) {
    for (t, (row, col)) in places::<NT>(size, first).into_iter().enumerate() {
        let at = row * cut.x_row + col * LANES + lane;
        for c in 0..CHANNELS {
            let out = points::<S, NT>(factors, c, t);
            read_patch::<S, NT>(simd, cut.x_row, &x[c * cut.x_channel..], at, out);
        }
    }
}

/// Calls `$body` with all tiles of a cut, `NT` of them at a time (two where a pair's products fit the
/// registers), the first one's number, the lane, and where the tiles' factors begin.
macro_rules! each_tile {
    ($size:ident, $cut:ident, |$nt:ident, $first:ident, $lane:ident, $at:ident| $body:block) => {
        let (count, n) = (tiles($size, $cut.rows), S::f32s::LEN);
        let mut $at = 0;
        for $lane in (0..LANES).step_by(n) {
            let mut $first = 0;
            while n == LANES && $first + 2 <= count {
                const $nt: usize = 2;
                $body
                $first += 2;
                $at += 2 * POINTS * CHANNELS * n;
            }
            while $first < count {
                const $nt: usize = 1;
                $body
                $first += 1;
                $at += POINTS * CHANNELS * n;
            }
        }
    };
}

/// Factors of the input.
#[inline(always)]
pub(in crate::decoder) fn read_input<S: Simd>(
    simd: S,
    size: &Size,
    cut: &Cut,
    x: &[f32],
    factors: &mut [f32],
) {
    each_tile!(size, cut, |NT, first, lane, at| {
        let factors = &mut factors[at..at + POINTS * step::<S, NT>()];
        read_patches::<S, NT>(simd, (size, cut), (first, lane), x, factors);
    });
}

/// As [`crate::decoder::convolve::forward`]; weights from [`pack`]. Keeps the factors of the input
/// where there is room for all of them.
#[inline(always)]
pub(in crate::decoder) fn forward<S: Simd>(
    simd: S,
    size: &Size,
    cut: &Cut,
    packed: &[f32],
    room: &mut [f32],
    (x, kept): (&[f32], &mut [f32]),
    y: &mut [f32],
) {
    let (scratch, room) = room.split_at_mut(ROOM / 2);
    let keep = !kept.is_empty();
    each_tile!(size, cut, |NT, first, lane, at| {
        let len = POINTS * step::<S, NT>();
        let factors = if keep { &mut kept[at..at + len] } else { &mut scratch[..len] };
        read_patches::<S, NT>(simd, (size, cut), (first, lane), x, factors);
        let products = &mut room[..len];
        multiply::<S, NT, false>(simd, packed, factors, products);
        for (t, (row, col)) in places::<NT>(size, first).into_iter().enumerate() {
            let at = row * cut.y_row + col * LANES + lane;
            for c in 0..CHANNELS {
                let (from, y) = (points::<S, NT>(products, c, t), &mut y[c * cut.y_channel..]);
                write_pixels::<S, NT>(simd, cut.y_row, from, y, at);
            }
        }
    });
}

/// As [`crate::decoder::convolve::backward_input`], but added to the first two rows of `dx`; leaves the
/// factors of the result's gradient.
#[inline(always)]
pub(in crate::decoder) fn backward_input<S: Simd>(
    simd: S,
    size: &Size,
    cut: &Cut,
    packed: &[f32],
    room: &mut [f32],
    (dy, factors): (&[f32], &mut [f32]),
    dx: &mut [f32],
) {
    each_tile!(size, cut, |NT, first, lane, at| {
        let len = POINTS * step::<S, NT>();
        let (factors, products) = (&mut factors[at..at + len], &mut room[..len]);
        let places = places::<NT>(size, first);
        for (t, (row, col)) in places.into_iter().enumerate() {
            let at = row * cut.y_row + col * LANES + lane;
            for c in 0..CHANNELS {
                let out = points::<S, NT>(factors, c, t);
                read_pixels::<S, NT>(simd, cut.y_row, &dy[c * cut.y_channel..], at, out);
            }
        }
        multiply::<S, NT, true>(simd, packed, factors, products);
        for (t, (row, col)) in places.into_iter().enumerate() {
            let at = row * cut.x_row + col * LANES + lane;
            for c in 0..CHANNELS {
                let (from, dx) = (points::<S, NT>(products, c, t), &mut dx[c * cut.x_channel..]);
                add_patch::<S, NT>(simd, cut.x_row, from, dx, (at, col == 0));
            }
        }
    });
}

/// Channels of the result whose sums with all channels of the input fit the registers.
const AT_ONCE: usize = 3;

/// Numbers of what [`backward_weights`] adds to.
pub(in crate::decoder) const GRADIENT: usize = 6 * 3 * PAIRS;

/// Adds to the gradient of the weights, from the factors of the input and of the result's gradient: as
/// (row of points, column of taps, out, in). Rows are put together by [`unpack`].
#[inline(always)]
pub(in crate::decoder) fn backward_weights<S: Simd>(
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
