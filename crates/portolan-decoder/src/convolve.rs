//! Convolution on planes: forward, and its two adjoints. Every product is a plane times a scalar
//! weight, so the kernels are small matrix products, blocked in registers over channels and lanes.

use fearless_simd::prelude::*;

use super::lanes::image_len;
use super::winograd::Cut;
use crate::simd::{load, splat};

/// Largest number of taps of a kernel.
const MOST_TAPS: usize = 49;

/// Sizes of one block's convolution.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub inputs: usize,
    pub outputs: usize,
    pub kernel: usize,
    /// Planes per side of the output, and of the input with its margin.
    pub phases: usize,
    pub outer: usize,
    /// Lanes of a chunk.
    pub width: usize,
}

impl Size {
    fn taps(&self) -> usize {
        self.kernel * self.kernel
    }

    /// Numbers in one channel of a chunk, without and with margin.
    pub(super) fn inner_len(&self) -> usize {
        image_len(self.phases, self.width)
    }

    pub(super) fn outer_len(&self) -> usize {
        image_len(self.outer, self.width)
    }

    pub(super) fn weights(&self) -> usize {
        self.inputs * self.outputs * self.taps()
    }
}

/// Weights (out, in, tap) as (in, tap, out), for the forward pass.
pub(super) fn pack_forward(size: &Size, weights: &[f32], packed: &mut [f32]) {
    let (taps, inputs) = (size.taps(), size.inputs);
    for (co, row) in weights.chunks_exact(inputs * taps).enumerate() {
        for (k, w) in row.iter().enumerate() {
            packed[k * size.outputs + co] = *w;
        }
    }
}

/// Weights (out, in, tap) as (out, tap, in), for the gradient of the input.
pub(super) fn pack_backward(size: &Size, weights: &[f32], packed: &mut [f32]) {
    let (taps, inputs) = (size.taps(), size.inputs);
    for (co, row) in weights.chunks_exact(inputs * taps).enumerate() {
        for (ci, row) in row.chunks_exact(taps).enumerate() {
            for (tap, w) in row.iter().enumerate() {
                packed[(co * taps + tap) * inputs + ci] = *w;
            }
        }
    }
}

/// What one output plane is a sum of.
struct Taps<'a> {
    /// Where a tap's plane lies in its channel, and which tap it is.
    list: &'a [(usize, usize)],
    /// Taps in the packed weights.
    count: usize,
    /// Channels to sum over, and from one to the next.
    channels: usize,
    stride: usize,
    /// Channels to make, and from one to the next.
    width: usize,
    out_stride: usize,
}

#[inline(always)]
fn tile<S: Simd, const CO: usize, const NV: usize>(
    simd: S,
    taps: &Taps<'_>,
    weights: &[f32],
    (first, lane): (usize, usize),
    x: &[f32],
    y: &mut [f32],
    at: usize,
) {
    let n = S::f32s::LEN;
    let zero = splat(simd, 0.0);
    let mut sums = [[zero; NV]; CO];
    let rows = weights.chunks_exact(taps.count * taps.width);
    for (x, weights) in x.chunks_exact(taps.stride).zip(rows).take(taps.channels) {
        for &(from, tap) in taps.list {
            let w = &weights[tap * taps.width + first..][..CO];
            let x = &x[from + lane..][..NV * n];
            let mut vectors = [zero; NV];
            for (v, vector) in vectors.iter_mut().enumerate() {
                *vector = load(simd, x, v * n);
            }
            for (sums, w) in sums.iter_mut().zip(w) {
                let w = S::f32s::splat(simd, *w);
                for (sum, x) in sums.iter_mut().zip(vectors) {
                    *sum = x.mul_add(w, *sum);
                }
            }
        }
    }
    for (c, sums) in sums.iter().enumerate() {
        let y = &mut y[(first + c) * taps.out_stride + at + lane..][..NV * n];
        for (sum, y) in sums.iter().zip(y.chunks_exact_mut(n)) {
            sum.store_slice(y);
        }
    }
}

/// Returns `CO`.
#[inline(always)]
fn tiles<S: Simd, const CO: usize>(
    simd: S,
    taps: &Taps<'_>,
    weights: &[f32],
    first: usize,
    lanes: usize,
    x: &[f32],
    y: &mut [f32],
    at: usize,
) -> usize {
    let n = S::f32s::LEN;
    let mut lane = 0;
    while lane < lanes {
        let left = (lanes - lane) / n;
        // Four vectors by six channels fill the 32 registers of AVX-512; the others have 16.
        if n == 16 && left >= 4 {
            tile::<S, CO, 4>(simd, taps, weights, (first, lane), x, y, at);
            lane += 4 * n;
        } else if left >= 2 {
            tile::<S, CO, 2>(simd, taps, weights, (first, lane), x, y, at);
            lane += 2 * n;
        } else {
            tile::<S, CO, 1>(simd, taps, weights, (first, lane), x, y, at);
            lane += n;
        }
    }
    CO
}

#[inline(never)]
fn plane<S: Simd>(
    simd: S,
    taps: &Taps<'_>,
    weights: &[f32],
    lanes: usize,
    x: &[f32],
    y: &mut [f32],
    at: usize,
) {
    simd.vectorize(
        #[inline(always)]
        || {
            let mut first = 0;
            while first < taps.width {
                first += match taps.width - first {
                    6.. => tiles::<S, 6>(simd, taps, weights, first, lanes, x, y, at),
                    3.. => tiles::<S, 3>(simd, taps, weights, first, lanes, x, y, at),
                    2 => tiles::<S, 2>(simd, taps, weights, first, lanes, x, y, at),
                    _ => tiles::<S, 1>(simd, taps, weights, first, lanes, x, y, at),
                };
            }
        },
    );
}

/// y = w * x for one chunk: `x` with margin, `y` without, weights from [`pack_forward`]. The planes
/// of a row follow each other, so a whole row is one run of lanes.
#[inline(always)]
pub(super) fn forward<S: Simd>(simd: S, size: &Size, packed: &[f32], x: &[f32], y: &mut [f32]) {
    let mut list = [(0, 0); MOST_TAPS];
    for pr in 0..size.phases {
        for kh in 0..size.kernel {
            for kw in 0..size.kernel {
                let tap = kh * size.kernel + kw;
                list[tap] = (((pr + kh) * size.outer + kw) * size.width, tap);
            }
        }
        let taps = Taps {
            list: &list[..size.taps()],
            count: size.taps(),
            channels: size.inputs,
            stride: size.outer_len(),
            width: size.outputs,
            out_stride: size.inner_len(),
        };
        let row = size.phases * size.width;
        plane(simd, &taps, packed, row, x, y, pr * row);
    }
}

/// The gradient of the input with its margin, for one chunk; weights from [`pack_backward`].
#[inline(always)]
pub(super) fn backward_input<S: Simd>(
    simd: S,
    size: &Size,
    packed: &[f32],
    dy: &[f32],
    dx: &mut [f32],
) {
    let mut list = [(0, 0); MOST_TAPS];
    for pr in 0..size.outer {
        let mut pc = 0;
        while pc < size.outer {
            // Between the margins all taps count, and the row is one run of lanes.
            let inside = pc + 1 >= size.kernel && pc < size.phases;
            let planes = if inside { size.phases - pc } else { 1 };
            let mut count = 0;
            for kh in 0..size.kernel {
                for kw in 0..size.kernel {
                    let (row, col) = (pr.wrapping_sub(kh), pc.wrapping_sub(kw));
                    if row < size.phases && col < size.phases {
                        list[count] =
                            ((row * size.phases + col) * size.width, kh * size.kernel + kw);
                        count += 1;
                    }
                }
            }
            let taps = Taps {
                list: &list[..count],
                count: size.taps(),
                channels: size.outputs,
                stride: size.inner_len(),
                width: size.inputs,
                out_stride: size.outer_len(),
            };
            let at = (pr * size.outer + pc) * size.width;
            plane(simd, &taps, packed, planes * size.width, dy, dx, at);
            pc += planes;
        }
    }
}

/// Sums of dy * x for `CO` output channels and `NT` taps of one input channel.
#[inline(always)]
fn correlate<S: Simd, const CO: usize, const NT: usize>(
    simd: S,
    (size, cut): (&Size, &Cut),
    x: &[f32],
    offsets: [usize; NT],
    dy: &[f32],
    first: usize,
    mut emit: impl FnMut(usize, usize, S::f32s),
) {
    let n = S::f32s::LEN;
    let zero = splat(simd, 0.0);
    let mut sums = [[zero; NT]; CO];
    let row_len = size.phases * size.width;
    for pr in 0..cut.rows {
        let (mut dy_rows, mut x_rows) = ([&dy[..0]; CO], [&x[..0]; NT]);
        for (c, row) in dy_rows.iter_mut().enumerate() {
            *row = &dy[(first + c) * cut.y_channel + pr * cut.y_row..][..row_len];
        }
        for (row, offset) in x_rows.iter_mut().zip(offsets) {
            *row = &x[pr * cut.x_row + offset..][..row_len];
        }
        let mut at = 0;
        while at + n <= row_len {
            let mut xs = [zero; NT];
            for (x, row) in xs.iter_mut().zip(x_rows) {
                *x = load(simd, row, at);
            }
            for c in 0..CO {
                let d = load(simd, dy_rows[c], at);
                for t in 0..NT {
                    sums[c][t] = d.mul_add(xs[t], sums[c][t]);
                }
            }
            at += n;
        }
    }
    for (c, sums) in sums.iter().enumerate() {
        for (t, sum) in sums.iter().enumerate() {
            emit(c, t, *sum);
        }
    }
}

/// The gradient of the weights (out, in, tap) from some rows of a chunk: calls `emit` with the index
/// of each weight and a vector whose sum is its gradient.
#[inline(always)]
pub(super) fn backward_weights<S: Simd>(
    simd: S,
    size: &Size,
    cut: &Cut,
    x: &[f32],
    dy: &[f32],
    mut emit: impl FnMut(usize, S::f32s),
) {
    let (taps, sizes) = (size.taps(), (size, cut));
    let offset = |tap: usize| tap / size.kernel * cut.x_row + tap % size.kernel * size.width;
    for ci in 0..size.inputs {
        let x = &x[ci * cut.x_channel..][..(cut.rows + size.kernel - 1) * cut.x_row];
        let mut tap = 0;
        while tap < taps {
            let step = if taps - tap >= 3 { 3 } else { 1 };
            let mut first = 0;
            while first < size.outputs {
                let mut emit = |c: usize, t: usize, sum: S::f32s| {
                    emit(((first + c) * size.inputs + ci) * taps + tap + t, sum);
                };
                let three = [offset(tap), offset(tap + 1), offset(tap + 2)];
                let one = [offset(tap)];
                let left = size.outputs - first;
                first += if step == 3 && left >= 6 {
                    correlate::<S, 6, 3>(simd, sizes, x, three, dy, first, &mut emit);
                    6
                } else if step == 3 {
                    correlate::<S, 1, 3>(simd, sizes, x, three, dy, first, &mut emit);
                    1
                } else if left >= 6 {
                    correlate::<S, 6, 1>(simd, sizes, x, one, dy, first, &mut emit);
                    6
                } else {
                    correlate::<S, 1, 1>(simd, sizes, x, one, dy, first, &mut emit);
                    1
                };
            }
            tap += step;
        }
    }
}
