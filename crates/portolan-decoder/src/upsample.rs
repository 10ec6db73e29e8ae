//! Upsampling, ReLU and the sums that normalisation needs, in one pass over the planes; and the way
//! back.
//!
//! Bilinear upsampling is done with the integer weights 3 and 1, so its result is 16 times too
//! large ([`gain`]): ReLU commutes with that, and the normalisation's scale takes it out again.

use fearless_simd::prelude::*;

use super::shape::Upsampling;
use crate::simd::{load, splat, store};

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

/// Running sums of a lane's pixels.
struct Running<S: Simd> {
    origin: S::f32s,
    first: S::f32s,
    second: S::f32s,
}

impl<S: Simd> Running<S> {
    /// ReLU, counted and stored.
    #[inline(always)]
    fn put(&mut self, zero: S::f32s, value: S::f32s, out: &mut [f32], at: usize) {
        let value = value.max(zero);
        let off = value - self.origin;
        self.first += off;
        self.second = off.mul_add(off, self.second);
        store::<S>(value, out, at);
    }
}

/// An even and an odd row between three rows of the small image, at one column.
#[inline(always)]
fn pair<S: Simd>(
    simd: S,
    [up, mid, down]: [&[f32]; 3],
    at: usize,
    three: S::f32s,
) -> (S::f32s, S::f32s) {
    let mid = load(simd, mid, at);
    (mid.mul_add(three, load(simd, up, at)), mid.mul_add(three, load(simd, down, at)))
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
    let (three, zero) = (splat(simd, 3.0), splat(simd, 0.0));
    let (small, row) = ((phases + 2) * width, 2 * phases * width);
    for lane in (0..width).step_by(n) {
        let rows = [&y[..small], &y[small..2 * small], &y[2 * small..3 * small]];
        let (left, _) = pair(simd, rows, lane, three);
        let (here, _) = pair(simd, rows, lane + width, three);
        let origin = here.mul_add(three, left).max(zero);
        let (mut first, mut second) = (zero, zero);
        for (i, v) in v.chunks_exact_mut(2 * row).enumerate() {
            let (even, odd) = v.split_at_mut(row);
            let y = &y[i * small..(i + 3) * small];
            let rows = [&y[..small], &y[small..2 * small], &y[2 * small..]];
            let mut running = Running::<S> { origin, first: zero, second: zero };
            let mut before = pair(simd, rows, lane, three);
            let mut here = pair(simd, rows, lane + width, three);
            for j in 0..phases {
                let after = pair(simd, rows, (j + 2) * width + lane, three);
                let at = 2 * j * width + lane;
                running.put(zero, here.0.mul_add(three, before.0), even, at);
                running.put(zero, here.0.mul_add(three, after.0), even, at + width);
                running.put(zero, here.1.mul_add(three, before.1), odd, at);
                running.put(zero, here.1.mul_add(three, after.1), odd, at + width);
                (before, here) = (here, after);
            }
            first += running.first;
            second += running.second;
        }
        store::<S>(origin, sums.origin, lane);
        store::<S>(first, sums.first, lane);
        store::<S>(second, sums.second, lane);
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

/// Reads gradients of activations.
struct Back<S: Simd> {
    simd: S,
    scale: S::f32s,
    offset: S::f32s,
    slope: S::f32s,
}

impl<S: Simd> Back<S> {
    #[inline(always)]
    fn new(simd: S, c: Coefficients<'_>, lane: usize) -> Self {
        Self {
            simd,
            scale: load(simd, c.scale, lane),
            offset: load(simd, c.offset, lane),
            slope: -load(simd, c.slope, lane),
        }
    }

    #[inline(always)]
    fn at(&self, v: &[f32], dx: &[f32], at: usize) -> S::f32s {
        let (v, dx) = (load(self.simd, v, at), load(self.simd, dx, at));
        let value = dx.mul_add(self.scale, v.mul_sub(self.slope, self.offset));
        let zero = splat(self.simd, 0.0);
        v.simd_gt(zero).select(value, zero)
    }

    /// A pixel and its neighbour.
    #[inline(always)]
    fn two(&self, v: &[f32], dx: &[f32], width: usize, lane: usize) -> (S::f32s, S::f32s) {
        (self.at(v, dx, lane), self.at(v, dx, lane + width))
    }
}

/// Adds what an even and an odd row owe to three rows of the small image, at one column. The last
/// row is reached for the first time.
#[inline(always)]
fn give<S: Simd>(
    simd: S,
    ((up, mid), down): ((&mut [f32], &mut [f32]), &mut [f32]),
    lane: usize,
    even: S::f32s,
    odd: S::f32s,
) {
    let three = splat(simd, 3.0);
    store::<S>(load(simd, up, lane) + even, up, lane);
    store::<S>((even + odd).mul_add(three, load(simd, mid, lane)), mid, lane);
    store::<S>(odd, down, lane);
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
    if width == 16 {
        bilinear_backward_of(simd, phases, 16, c, v, dx, dy);
    } else {
        bilinear_backward_of(simd, phases, width, c, v, dx, dy);
    }
}

#[inline(always)]
fn bilinear_backward_of<S: Simd>(
    simd: S,
    phases: usize,
    width: usize,
    c: Coefficients<'_>,
    v: &[f32],
    dx: &[f32],
    dy: &mut [f32],
) {
    let (three, zero) = (splat(simd, 3.0), splat(simd, 0.0));
    let (small, row) = ((phases + 2) * width, 2 * phases * width);
    dy[..2 * small].fill(0.0);
    for lane in (0..width).step_by(S::f32s::LEN) {
        let back = Back::new(simd, c, lane);
        for i in 0..phases {
            let (even_v, odd_v) = v[2 * i * row..][..2 * row].split_at(row);
            let (even_dx, odd_dx) = dx[2 * i * row..][..2 * row].split_at(row);
            let vs = even_v.chunks_exact(2 * width).zip(odd_v.chunks_exact(2 * width));
            let dxs = even_dx.chunks_exact(2 * width).zip(odd_dx.chunks_exact(2 * width));
            let (up, rest) = dy[i * small..(i + 3) * small].split_at_mut(small);
            let (mid, down) = rest.split_at_mut(small);
            let mut columns = up
                .chunks_exact_mut(width)
                .zip(mid.chunks_exact_mut(width))
                .zip(down.chunks_exact_mut(width));
            let (mut even, mut odd) = (zero, zero);
            let (mut even_next, mut odd_next) = (zero, zero);
            for ((even_v, odd_v), (even_dx, odd_dx)) in vs.zip(dxs) {
                let Some(column) = columns.next() else { break };
                let (a0, a1) = back.two(even_v, even_dx, width, lane);
                let (b0, b1) = back.two(odd_v, odd_dx, width, lane);
                give(simd, column, lane, even + a0, odd + b0);
                even = (a0 + a1).mul_add(three, even_next);
                odd = (b0 + b1).mul_add(three, odd_next);
                (even_next, odd_next) = (a1, b1);
            }
            for (even, odd) in [(even, odd), (even_next, odd_next)] {
                if let Some(column) = columns.next() {
                    give(simd, column, lane, even, odd);
                }
            }
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
        let back = Back::new(simd, c, lane);
        for i in 0..phases {
            for j in 0..phases {
                let mut sum = S::f32s::splat(simd, 0.0);
                for a in 0..scale {
                    for b in 0..scale {
                        let plane = (scale * i + a) * scale * phases + scale * j + b;
                        sum += back.at(v, dx, plane * width + lane);
                    }
                }
                sum.store_slice(&mut dy[(i * phases + j) * width + lane..][..n]);
            }
        }
    }
}
