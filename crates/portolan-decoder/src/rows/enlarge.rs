//! From the result of a convolution to what is read of it: upsampling, ReLU, and the sums and the
//! affine map of the normalisation. Weights are 3 and 1, as in [`crate::upsample`].

use fearless_simd::prelude::*;

use super::RowStage;
use super::edges::{Flags, choose};
use crate::simd::{LANES, load, splat, store};

/// Two rows of the next convolution's input, with their sides, between two rows of the small image:
/// `affine` is scale and offset of each lane.
#[inline(always)]
pub(super) fn input_rows<S: Simd>(
    simd: S,
    [upper, lower]: [&[f32]; 2],
    (scale, offset): (&[f32], &[f32]),
    flags: Flags<'_>,
    mirrored: bool,
    [top, bottom]: [&mut [f32]; 2],
) {
    let (three, zero) = (splat(simd, 3.0), splat(simd, 0.0));
    for lane in (0..LANES).step_by(S::f32s::LEN) {
        let (scale, offset) = (load(simd, scale, lane), load(simd, offset, lane));
        let put =
            |near: S::f32s, far: S::f32s| near.mul_add(three, far).max(zero).mul_add(scale, offset);
        let mix = |upper: &[f32], lower: &[f32]| {
            let (up, low) = (load(simd, upper, lane), load(simd, lower, lane));
            (up.mul_add(three, low), low.mul_add(three, up))
        };
        let mut left = mix(upper, lower);
        let from = upper[LANES..].chunks_exact(LANES).zip(lower[LANES..].chunks_exact(LANES));
        let to = top.chunks_exact_mut(2 * LANES).zip(bottom.chunks_exact_mut(2 * LANES));
        for ((upper, lower), (top, bottom)) in from.zip(to) {
            let right = mix(upper, lower);
            store::<S>(put(left.0, right.0), top, lane);
            store::<S>(put(right.0, left.0), top, LANES + lane);
            store::<S>(put(left.1, right.1), bottom, lane);
            store::<S>(put(right.1, left.1), bottom, LANES + lane);
            left = right;
        }
        for row in [&mut *top, &mut *bottom] {
            let end = row.len() - LANES;
            let (first, last) = match mirrored {
                true => {
                    (load(simd, row, 2 * LANES + lane), load(simd, row, end - 2 * LANES + lane))
                }
                false => (zero, zero),
            };
            let side = choose(simd, flags.first, lane, first, load(simd, row, lane));
            store::<S>(side, row, lane);
            let side = choose(simd, flags.last, lane, last, load(simd, row, end + lane));
            store::<S>(side, row, end + lane);
        }
    }
}

/// Rows 2 k and 2 k + 1 of the enlarged image, one channel: adds to the lanes' sums (origin, sum and
/// sum of squares about the origin), and with `KEEP` writes both rows, one after the other.
#[inline(always)]
pub(super) fn sum_rows<S: Simd, const KEEP: bool>(
    simd: S,
    stage: &RowStage,
    k: usize,
    channel: &[f32],
    sums: &mut [f32],
    out: &mut [f32],
) {
    let (three, zero, pitch) = (splat(simd, 3.0), splat(simd, 0.0), stage.pitch());
    let row = |i: usize| &channel[i * pitch..(i + 1) * pitch];
    let (up, mid) = (row(k.saturating_sub(1)), row(k));
    let down = row((k + 1).min(stage.rows - 1));
    let half = 2 * stage.size.phases * LANES;
    for lane in (0..LANES).step_by(S::f32s::LEN) {
        let mix = |up: &[f32], mid: &[f32], down: &[f32]| {
            let mid = load(simd, mid, lane);
            (mid.mul_add(three, load(simd, up, lane)), mid.mul_add(three, load(simd, down, lane)))
        };
        let mut before = mix(up, mid, down);
        let mut here = mix(&up[LANES..], &mid[LANES..], &down[LANES..]);
        if k == 0 {
            store::<S>(here.0.mul_add(three, before.0).max(zero), sums, lane);
        }
        let origin = load(simd, sums, lane);
        // One of each for every pixel, so that no sum need wait for another.
        let (mut first, mut second) = ([zero; 4], [zero; 4]);
        let mut put =
            |before: (S::f32s, S::f32s), here: (S::f32s, S::f32s), after: (S::f32s, S::f32s)| {
                let mut pixels = [
                    here.0.mul_add(three, before.0),
                    here.0.mul_add(three, after.0),
                    here.1.mul_add(three, before.1),
                    here.1.mul_add(three, after.1),
                ];
                for t in 0..4 {
                    pixels[t] = pixels[t].max(zero);
                    let off = pixels[t] - origin;
                    first[t] += off;
                    second[t] = off.mul_add(off, second[t]);
                }
                pixels
            };
        let planes = up[2 * LANES..]
            .chunks_exact(LANES)
            .zip(mid[2 * LANES..].chunks_exact(LANES))
            .zip(down[2 * LANES..].chunks_exact(LANES));
        if KEEP {
            let (even, odd) = out[..2 * half].split_at_mut(half);
            let pairs = even.chunks_exact_mut(2 * LANES).zip(odd.chunks_exact_mut(2 * LANES));
            for (((up, mid), down), (even, odd)) in planes.zip(pairs) {
                let after = mix(up, mid, down);
                let [a, b, c, d] = put(before, here, after);
                store::<S>(a, even, lane);
                store::<S>(b, even, lane + LANES);
                store::<S>(c, odd, lane);
                store::<S>(d, odd, lane + LANES);
                (before, here) = (here, after);
            }
        } else {
            for ((up, mid), down) in planes {
                let after = mix(up, mid, down);
                put(before, here, after);
                (before, here) = (here, after);
            }
        }
        let total = |of: [S::f32s; 4]| (of[0] + of[1]) + (of[2] + of[3]);
        let at = LANES + lane;
        store::<S>(load(simd, sums, at) + total(first), sums, at);
        let at = 2 * LANES + lane;
        store::<S>(load(simd, sums, at) + total(second), sums, at);
    }
}
