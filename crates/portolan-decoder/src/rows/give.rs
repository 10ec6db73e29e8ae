//! The way back through upsampling, ReLU and normalisation.
//!
//! Between two rows of the small image lie two of the enlarged one, and between two columns two
//! columns: four pixels that depend on four of the small image, and owe their gradient to the same
//! four. The small rows beyond the border repeat the outermost one, and so do gradients: what is owed
//! to it a second time comes out by itself.

use fearless_simd::prelude::*;

use crate::simd::{LANES, load, splat, store};

/// Four pixels or their gradients: above left and right, below left and right.
pub(super) type Four<S> = [<S as Simd>::f32s; 4];

/// What the gradients between two rows of the small image owe to both: added to the upper row; the
/// lower one, reached for the first time, begins with `begin`. `slopes` makes gradients of pixels
/// (before ReLU) and of what `each` has for them.
#[inline(always)]
pub(super) fn give<S: Simd, T>(
    simd: S,
    lane: usize,
    [upper, lower]: [&[f32]; 2],
    [to_upper, to_lower]: [&mut [f32]; 2],
    mut begin: impl FnMut(usize) -> S::f32s,
    each: impl Iterator<Item = T>,
    mut slopes: impl FnMut(T, Four<S>) -> Four<S>,
) {
    let three = splat(simd, 3.0);
    let mix = |upper: &[f32], lower: &[f32]| {
        let (up, low) = (load(simd, upper, lane), load(simd, lower, lane));
        (up.mul_add(three, low), low.mul_add(three, up))
    };
    let mut left = mix(upper, lower);
    let mut owed = (splat(simd, 0.0), splat(simd, 0.0));
    let end = to_upper.len() - LANES;
    let (to_upper, upper_end) = to_upper.split_at_mut(end);
    let (to_lower, lower_end) = to_lower.split_at_mut(end);
    let from = upper[LANES..].chunks_exact(LANES).zip(lower[LANES..].chunks_exact(LANES));
    let to = to_upper.chunks_exact_mut(LANES).zip(to_lower.chunks_exact_mut(LANES));
    for (plane, (((upper, lower), (to_upper, to_lower)), item)) in
        from.zip(to).zip(each).enumerate()
    {
        let right = mix(upper, lower);
        let [a, b, c, d] = slopes(
            item,
            [
                left.0.mul_add(three, right.0),
                right.0.mul_add(three, left.0),
                left.1.mul_add(three, right.1),
                right.1.mul_add(three, left.1),
            ],
        );
        let (top_left, top_right) = (a.mul_add(three, b), b.mul_add(three, a));
        let (bottom_left, bottom_right) = (c.mul_add(three, d), d.mul_add(three, c));
        let to = load(simd, to_upper, lane) + (owed.0 + bottom_left);
        store::<S>(top_left.mul_add(three, to), to_upper, lane);
        let to = begin(plane) + (owed.1 + top_left);
        store::<S>(bottom_left.mul_add(three, to), to_lower, lane);
        owed = (top_right.mul_add(three, bottom_right), bottom_right.mul_add(three, top_right));
        left = right;
    }
    store::<S>(load(simd, upper_end, lane) + owed.0, upper_end, lane);
    store::<S>(begin(end / LANES) + owed.1, lower_end, lane);
}

/// The pairs of columns of two rows.
#[inline(always)]
pub(super) fn pairs([top, bottom]: [&[f32]; 2]) -> impl Iterator<Item = [&[f32]; 2]> {
    top.chunks_exact(2 * LANES).zip(bottom.chunks_exact(2 * LANES)).map(
        #[inline(always)]
        |(top, bottom)| [top, bottom],
    )
}

/// The four numbers of two pairs.
#[inline(always)]
pub(super) fn four<S: Simd>(simd: S, [top, bottom]: [&[f32]; 2], lane: usize) -> Four<S> {
    let (right, zero) = (LANES + lane, lane);
    [
        load(simd, top, zero),
        load(simd, top, right),
        load(simd, bottom, zero),
        load(simd, bottom, right),
    ]
}

/// Coefficients of the gradient of a pixel v whose normalised value has the gradient d:
/// scale d - offset - slope v where v > 0, else 0.
pub(super) struct Slopes<S: Simd> {
    pub scale: S::f32s,
    pub offset: S::f32s,
    pub slope: S::f32s,
}

impl<S: Simd> Slopes<S> {
    #[inline(always)]
    pub(super) fn new(simd: S, [scale, offset, slope]: [&[f32]; 3], lane: usize) -> Self {
        let of = |from: &[f32]| load(simd, from, lane);
        Self { scale: of(scale), offset: of(offset), slope: -of(slope) }
    }

    /// From the gradients of normalised values.
    #[inline(always)]
    pub(super) fn of(&self, simd: S, d: Four<S>, v: Four<S>) -> Four<S> {
        let mut out = self.without(v);
        for k in 0..4 {
            out[k] = d[k].mul_add(self.scale, out[k]);
        }
        open(simd, v, out)
    }

    /// Without them.
    #[inline(always)]
    fn without(&self, v: Four<S>) -> Four<S> {
        let mut out = v;
        for k in 0..4 {
            out[k] = v[k].mul_sub(self.slope, self.offset);
        }
        out
    }

    /// Where those of normalised values are counted elsewhere.
    #[inline(always)]
    pub(super) fn of_none(&self, simd: S, v: Four<S>) -> Four<S> {
        open(simd, v, self.without(v))
    }
}

/// Gradients where the ReLU is open.
#[inline(always)]
pub(super) fn open<S: Simd>(simd: S, v: Four<S>, mut gradients: Four<S>) -> Four<S> {
    let zero = splat(simd, 0.0);
    for k in 0..4 {
        gradients[k] = v[k].simd_gt(zero).select(gradients[k], zero);
    }
    gradients
}
