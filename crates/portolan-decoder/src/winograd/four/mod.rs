//! F(4 x 4, 3 x 3) for the six channels of the common decoder: a tile is 4 x 4 pixels, its patch of the
//! input 6 x 6, and 36 products per pair of channels take the place of 144. Tiles are taken two at a
//! time where vectors are wide, side by side or one above the other. What the products are made of,
//! the factors, also gives the gradient of the weights: a sum over tiles of products, point by point.

#![expect(clippy::needless_range_loop, reason = "rows and columns of a tile read better by index")]

mod tile;
mod weights;

use fearless_simd::prelude::*;

use super::Cut;
use crate::convolve::Size;
use crate::simd::{LANES, load, splat, store};
use tile::{add_patch, points, read_patch, read_pixels, step, write_pixels};
pub(crate) use weights::{GRADIENT, backward_weights, pack, unpack};

/// Products per tile and pair of channels.
const POINTS: usize = 36;

/// Channels in and out.
const CHANNELS: usize = 6;

/// Numbers of room that one chunk needs: two tiles in the widest vectors.
pub(crate) const ROOM: usize = 2 * POINTS * CHANNELS * 2 * LANES;

/// Pairs of channels.
const PAIRS: usize = CHANNELS * CHANNELS;

/// Numbers of the packed weights.
pub(crate) const WEIGHTS: usize = POINTS * PAIRS;

/// Whether a block's images can be cut into tiles.
pub(crate) fn applies(size: &Size) -> bool {
    let channels = size.inputs == CHANNELS && size.outputs == CHANNELS;
    channels && size.kernel == 3 && size.phases.is_multiple_of(4)
}

/// Numbers of the factors of some rows of a chunk.
pub(crate) fn factors(size: &Size, rows: usize) -> usize {
    tiles(size, rows) * POINTS * CHANNELS * LANES
}

fn tiles(size: &Size, rows: usize) -> usize {
    rows / 4 * (size.phases / 4)
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
pub(crate) fn read_input<S: Simd>(simd: S, size: &Size, cut: &Cut, x: &[f32], factors: &mut [f32]) {
    each_tile!(size, cut, |NT, first, lane, at| {
        let factors = &mut factors[at..at + POINTS * step::<S, NT>()];
        read_patches::<S, NT>(simd, (size, cut), (first, lane), x, factors);
    });
}

/// As [`crate::convolve::forward`]; weights from [`pack`]. Keeps the factors of the input
/// where there is room for all of them.
#[inline(always)]
pub(crate) fn forward<S: Simd>(
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

/// As [`crate::convolve::backward_input`], but added to the first two rows of `dx`; leaves the
/// factors of the result's gradient.
#[inline(always)]
pub(crate) fn backward_input<S: Simd>(
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
