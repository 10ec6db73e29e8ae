//! The way back through upsampling, ReLU and normalisation.
//!
//! Between two rows of the small image lie two of the enlarged one, and between two columns two
//! columns: four pixels that depend on four of the small image, and owe their gradient to the same
//! four. The small rows beyond the border repeat the outermost one, and so do gradients: what is owed
//! to it a second time comes out by itself.

use fearless_simd::prelude::*;

use crate::simd::{LANES, load, splat, store};

/// Gradient of a pixel v whose normalised value has the gradient d: scale d - offset - slope v where
/// v > 0, else 0.
pub(super) trait Slope<S: Simd> {
    fn at(&mut self, v: S::f32s, pair: usize, which: usize) -> S::f32s;
}

/// Adds what the gradients between two rows of the small image owe to both.
#[inline(always)]
pub(super) fn give<S: Simd>(
    simd: S,
    lane: usize,
    [upper, lower]: [&[f32]; 2],
    [to_upper, to_lower]: [&mut [f32]; 2],
    slope: &mut impl Slope<S>,
) {
    let (three, zero) = (splat(simd, 3.0), splat(simd, 0.0));
    let mix = |at: usize| {
        let (up, low) = (load(simd, upper, at + lane), load(simd, lower, at + lane));
        (up.mul_add(three, low), low.mul_add(three, up))
    };
    let mut left = mix(0);
    let mut owed = (zero, zero);
    let pairs = upper.len() / LANES - 1;
    let columns = to_upper.chunks_exact_mut(LANES).zip(to_lower.chunks_exact_mut(LANES));
    for (pair, (to_upper, to_lower)) in columns.enumerate() {
        if pair == pairs {
            store::<S>(load(simd, to_upper, lane) + owed.0, to_upper, lane);
            store::<S>(load(simd, to_lower, lane) + owed.1, to_lower, lane);
            break;
        }
        let right = mix((pair + 1) * LANES);
        let top = (left.0.mul_add(three, right.0), right.0.mul_add(three, left.0));
        let bottom = (left.1.mul_add(three, right.1), right.1.mul_add(three, left.1));
        let (a, b) = (slope.at(top.0, pair, 0), slope.at(top.1, pair, 1));
        let (c, d) = (slope.at(bottom.0, pair, 2), slope.at(bottom.1, pair, 3));
        let (top_left, top_right) = (a.mul_add(three, b), b.mul_add(three, a));
        let (bottom_left, bottom_right) = (c.mul_add(three, d), d.mul_add(three, c));
        let to = load(simd, to_upper, lane) + owed.0;
        store::<S>(to + top_left.mul_add(three, bottom_left), to_upper, lane);
        let to = load(simd, to_lower, lane) + owed.1;
        store::<S>(to + bottom_left.mul_add(three, top_left), to_lower, lane);
        owed = (top_right.mul_add(three, bottom_right), bottom_right.mul_add(three, top_right));
        left = right;
    }
}

/// The last block: `rows` hold the gradient of the logits, sides included.
pub(super) struct OfLogits<'a, S: Simd> {
    pub simd: S,
    pub lane: usize,
    pub rows: [&'a [f32]; 2],
    pub scale: S::f32s,
    pub offset: S::f32s,
    pub slope: S::f32s,
}

impl<S: Simd> Slope<S> for OfLogits<'_, S> {
    #[inline(always)]
    fn at(&mut self, v: S::f32s, pair: usize, which: usize) -> S::f32s {
        let zero = splat(self.simd, 0.0);
        let d = load(self.simd, self.rows[which / 2], (2 * pair + which % 2) * LANES + self.lane);
        let value = d.mul_add(self.scale, (-v).mul_sub(self.slope, self.offset));
        v.simd_gt(zero).select(value, zero)
    }
}

/// Another block, without the shares of its pixels' gradients, which are known already.
pub(super) struct OfMoments<S: Simd> {
    pub simd: S,
    pub offset: S::f32s,
    pub slope: S::f32s,
}

impl<S: Simd> Slope<S> for OfMoments<S> {
    #[inline(always)]
    fn at(&mut self, v: S::f32s, _pair: usize, _which: usize) -> S::f32s {
        let zero = splat(self.simd, 0.0);
        let value = (-v).mul_sub(self.slope, self.offset);
        v.simd_gt(zero).select(value, zero)
    }
}

/// The shares of the pixels' gradients in `rows`, and their sums with the pixels.
pub(super) struct Shares<'a, S: Simd> {
    pub simd: S,
    pub lane: usize,
    pub rows: [&'a [f32]; 2],
    pub mean: S::f32s,
    /// What pixels on the sides count: 0 where they repeat another of the same lane.
    pub sides: [S::f32s; 2],
    /// Of both rows.
    pub plain: [S::f32s; 2],
    pub scaled: [S::f32s; 2],
}

impl<S: Simd> Slope<S> for Shares<'_, S> {
    #[inline(always)]
    fn at(&mut self, v: S::f32s, pair: usize, which: usize) -> S::f32s {
        let zero = splat(self.simd, 0.0);
        let (row, at) = (which / 2, 2 * pair + which % 2);
        let d = load(self.simd, self.rows[row], at * LANES + self.lane);
        let end = self.rows[row].len() / LANES - 1;
        let counted = match at {
            0 => d * self.sides[0],
            at if at == end => d * self.sides[1],
            _ => d,
        };
        self.plain[row] += counted;
        self.scaled[row] = counted.mul_add(v.max(zero) - self.mean, self.scaled[row]);
        v.simd_gt(zero).select(d, zero)
    }
}
