//! Upsampling, ReLU and the sums that normalisation needs, in one pass over the planes; and the way
//! back.
//!
//! Bilinear upsampling is done with the integer weights 3 and 1, so its result is 16 times too
//! large ([`gain`]): ReLU commutes with that, and the normalisation's scale takes it out again.

use fearless_simd::prelude::*;

use super::shape::Upsampling;

/// How much larger the stored activations are than the true ones.
pub(super) fn gain(mode: Upsampling) -> f64 {
    if mode == Upsampling::Bilinear { 16.0 } else { 1.0 }
}

/// Sums over the pixels of each lane, relative to the lane's first pixel.
pub(super) struct Sums<'a> {
    pub origin: &'a mut [f32],
    pub first: &'a mut [f32],
    pub second: &'a mut [f32],
}

/// One channel of one chunk. `y` has a margin of one plane.
#[inline(always)]
pub(super) fn bilinear<S: Simd>(
    simd: S,
    phases: usize,
    width: usize,
    y: &[f32],
    v: &mut [f32],
    sums: Sums<'_>,
) {
    let n = S::f32s::LEN;
    let (three, zero) = (S::f32s::splat(simd, 3.0), S::f32s::splat(simd, 0.0));
    let outer = phases + 2;
    let row = 2 * phases * width;
    for lane in (0..width).step_by(n) {
        let load = |r: usize, c: usize| {
            let at = (r * outer + c) * width + lane;
            S::f32s::from_slice(simd, &y[at..at + n])
        };
        // The first pixel of the lane: 9, 3, 3 and 1 parts of the corner's neighbours.
        let upper = load(1, 0).mul_add(three, load(0, 0));
        let right = load(1, 1).mul_add(three, load(0, 1));
        let origin = right.mul_add(three, upper).max(zero);
        let (mut first, mut second) = (zero, zero);
        for i in 0..phases {
            let (even, odd) = v[2 * i * row..2 * (i + 1) * row].split_at_mut(row);
            let (mut part, mut square) = (zero, zero);
            let pair = |c: usize| {
                let (up, mid, down) = (load(i, c), load(i + 1, c), load(i + 2, c));
                (mid.mul_add(three, up), mid.mul_add(three, down))
            };
            let (mut before, mut here) = (pair(0), pair(1));
            for j in 0..phases {
                let after = pair(j + 2);
                let at = 2 * j * width + lane;
                let mut put = |out: &mut [f32], at: usize, value: S::f32s| {
                    let value = value.max(zero);
                    let off = value - origin;
                    part += off;
                    square = off.mul_add(off, square);
                    value.store_slice(&mut out[at..at + n]);
                };
                put(even, at, here.0.mul_add(three, before.0));
                put(even, at + width, here.0.mul_add(three, after.0));
                put(odd, at, here.1.mul_add(three, before.1));
                put(odd, at + width, here.1.mul_add(three, after.1));
                (before, here) = (here, after);
            }
            first += part;
            second += square;
        }
        origin.store_slice(&mut sums.origin[lane..lane + n]);
        first.store_slice(&mut sums.first[lane..lane + n]);
        second.store_slice(&mut sums.second[lane..lane + n]);
    }
}

/// One channel of one chunk, each pixel `scale` x `scale` times; `y` has no margin.
#[inline(always)]
pub(super) fn repeat<S: Simd>(
    simd: S,
    scale: usize,
    phases: usize,
    width: usize,
    y: &[f32],
    v: &mut [f32],
    sums: Sums<'_>,
) {
    let n = S::f32s::LEN;
    let zero = S::f32s::splat(simd, 0.0);
    let copies = S::f32s::splat(simd, (scale * scale) as f32);
    for lane in (0..width).step_by(n) {
        let origin = S::f32s::from_slice(simd, &y[lane..lane + n]).max(zero);
        let (mut first, mut second) = (zero, zero);
        for i in 0..phases {
            let (mut part, mut square) = (zero, zero);
            for j in 0..phases {
                let at = (i * phases + j) * width + lane;
                let value = S::f32s::from_slice(simd, &y[at..at + n]).max(zero);
                let off = value - origin;
                part += off;
                square = off.mul_add(off, square);
                for a in 0..scale {
                    for b in 0..scale {
                        let plane = (scale * i + a) * scale * phases + scale * j + b;
                        value.store_slice(&mut v[plane * width + lane..][..n]);
                    }
                }
            }
            first += part;
            second += square;
        }
        origin.store_slice(&mut sums.origin[lane..lane + n]);
        (first * copies).store_slice(&mut sums.first[lane..lane + n]);
        (second * copies).store_slice(&mut sums.second[lane..lane + n]);
    }
}

/// Coefficients, per lane, of the way back through normalisation: the gradient of an activation v
/// is `scale` dx - `offset` - `slope` v where v > 0, else 0.
#[derive(Clone, Copy)]
pub(super) struct Coefficients<'a> {
    pub scale: &'a [f32],
    pub offset: &'a [f32],
    pub slope: &'a [f32],
}

/// Reads the gradient of an activation.
macro_rules! gradient {
    ($simd:ident, $S:ident, $c:ident, $lane:ident, $width:ident, $v:ident, $dx:ident) => {{
        let n = $S::f32s::LEN;
        let zero = $S::f32s::splat($simd, 0.0);
        let scale = $S::f32s::from_slice($simd, &$c.scale[$lane..$lane + n]);
        let offset = $S::f32s::from_slice($simd, &$c.offset[$lane..$lane + n]);
        let slope = -$S::f32s::from_slice($simd, &$c.slope[$lane..$lane + n]);
        move |plane: usize| {
            let at = plane * $width + $lane;
            let v = $S::f32s::from_slice($simd, &$v[at..at + n]);
            let dx = $S::f32s::from_slice($simd, &$dx[at..at + n]);
            let value = dx.mul_add(scale, v.mul_sub(slope, offset));
            v.simd_gt(zero).select(value, zero)
        }
    }};
}

/// Adjoint of [`bilinear`] for one channel of one chunk; `dy` has a margin of one plane.
#[inline(always)]
pub(super) fn bilinear_backward<S: Simd>(
    simd: S,
    phases: usize,
    width: usize,
    c: Coefficients<'_>,
    v: &[f32],
    dx: &[f32],
    dy: &mut [f32],
) {
    let n = S::f32s::LEN;
    let (three, zero) = (S::f32s::splat(simd, 3.0), S::f32s::splat(simd, 0.0));
    let outer = phases + 2;
    for lane in (0..width).step_by(n) {
        let gradient = gradient!(simd, S, c, lane, width, v, dx);
        for col in 0..outer {
            for row in 0..2 {
                zero.store_slice(&mut dy[(row * outer + col) * width + lane..][..n]);
            }
        }
        for i in 0..phases {
            // What the even and the odd row of this pair owe to column `col` of the small image.
            let mut give = |col: usize, even: S::f32s, odd: S::f32s| {
                let mut add = |row: usize, value: S::f32s| {
                    let at = ((i + row) * outer + col) * width + lane;
                    let dy = &mut dy[at..at + n];
                    // Row i + 2 is reached here for the first time.
                    let old = if row == 2 { zero } else { S::f32s::from_slice(simd, dy) };
                    (old + value).store_slice(dy);
                };
                add(0, even);
                add(1, (even + odd) * three);
                add(2, odd);
            };
            let top = 2 * i * 2 * phases;
            let (mut even, mut odd) = (zero, zero);
            let (mut even_next, mut odd_next) = (zero, zero);
            for j in 0..phases {
                let a = [gradient(top + 2 * j), gradient(top + 2 * j + 1)];
                let below = top + 2 * phases;
                let b = [gradient(below + 2 * j), gradient(below + 2 * j + 1)];
                give(j, even + a[0], odd + b[0]);
                even = (a[0] + a[1]).mul_add(three, even_next);
                odd = (b[0] + b[1]).mul_add(three, odd_next);
                (even_next, odd_next) = (a[1], b[1]);
            }
            give(phases, even, odd);
            give(phases + 1, even_next, odd_next);
        }
    }
}

/// Adjoint of [`repeat`]; `dy` has no margin.
#[inline(always)]
pub(super) fn repeat_backward<S: Simd>(
    simd: S,
    scale: usize,
    phases: usize,
    width: usize,
    c: Coefficients<'_>,
    v: &[f32],
    dx: &[f32],
    dy: &mut [f32],
) {
    let n = S::f32s::LEN;
    for lane in (0..width).step_by(n) {
        let gradient = gradient!(simd, S, c, lane, width, v, dx);
        for i in 0..phases {
            for j in 0..phases {
                let mut sum = S::f32s::splat(simd, 0.0);
                for a in 0..scale {
                    for b in 0..scale {
                        sum += gradient((scale * i + a) * scale * phases + scale * j + b);
                    }
                }
                sum.store_slice(&mut dy[(i * phases + j) * width + lane..][..n]);
            }
        }
    }
}
