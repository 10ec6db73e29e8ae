//! The one kernel of the generator: at every pixel of an image, a sum over taps and channels of
//! source times weight. Channels lie innermost, so that a pixel's sums are vectors; four pixels of a
//! row are worked on together, and the sums stay in registers.

use fearless_simd::prelude::*;

use portolan_decoder::simd::{LANES, load, padded, splat, store};

/// Weights packed for the kernel.
#[derive(Clone, Debug)]
pub(super) struct Product {
    /// (block of outputs, tap, input channel, output in the block).
    weights: Vec<f32>,
    /// Where the sums begin, one for each output.
    start: Vec<f32>,
    /// Where each tap lies from the first source.
    taps: Vec<usize>,
    /// Input channels of a tap.
    depth: usize,
    /// Outputs in a block: three vectors, two or one, of the widest kind.
    block: usize,
}

/// Where pixels lie in a buffer: from the first to the first of the next row, to the next in a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steps {
    pub row: usize,
    pub col: usize,
}

/// What happens to a sum when it is stored.
#[derive(Clone, Copy)]
pub(super) enum Finish<'a> {
    Plain,
    /// Negative ones become 0.
    Rectify,
    /// Kept where this, laid out like the result, is above 0.
    Gate(&'a [f32]),
}

impl Product {
    /// `weight(tap, input, output)` for every product, `start(output)` for every sum.
    pub(super) fn new(
        taps: Vec<usize>,
        depth: usize,
        outputs: usize,
        weight: impl Fn(usize, usize, usize) -> f32,
        start: impl Fn(usize) -> f32,
    ) -> Self {
        let width = padded(outputs);
        let block = [48, 32, LANES].into_iter().find(|b| width.is_multiple_of(*b)).unwrap_or(LANES);
        let mut weights = Vec::with_capacity(taps.len() * depth * width);
        for first in (0..width).step_by(block) {
            for tap in 0..taps.len() {
                for input in 0..depth {
                    let row = (first..first + block)
                        .map(|o| if o < outputs { weight(tap, input, o) } else { 0.0 });
                    weights.extend(row);
                }
            }
        }
        let start = (0..width).map(|o| if o < outputs { start(o) } else { 0.0 }).collect();
        Self { weights, start, taps, depth, block }
    }

    /// Fills `rows` x `cols` pixels of `out`.
    #[inline(never)]
    pub(super) fn run<S: Simd>(
        &self,
        simd: S,
        (rows, cols): (usize, usize),
        (source, from): (&[f32], Steps),
        (out, to): (&mut [f32], Steps),
        finish: Finish<'_>,
    ) {
        simd.vectorize(
            #[inline(always)]
            || {
                let packed = self.taps.len() * self.depth * self.block;
                for (b, weights) in self.weights.chunks_exact(packed).enumerate() {
                    for i in 0..rows {
                        let (from_row, to_row) = (i * from.row, i * to.row + b * self.block);
                        let mut j = 0;
                        while j < cols {
                            let at = (from_row + j * from.col, to_row + j * to.col);
                            let steps = (from.col, to.col);
                            j += match (self.block, cols - j) {
                                (48, 4..) => self.tiles::<S, 4, 3>(
                                    simd, b, weights, at, steps, source, out, finish,
                                ),
                                (32, 4..) => self.tiles::<S, 4, 2>(
                                    simd, b, weights, at, steps, source, out, finish,
                                ),
                                (_, 4..) => self.tiles::<S, 4, 1>(
                                    simd, b, weights, at, steps, source, out, finish,
                                ),
                                (48, 2..) => self.tiles::<S, 2, 3>(
                                    simd, b, weights, at, steps, source, out, finish,
                                ),
                                (32, 2..) => self.tiles::<S, 2, 2>(
                                    simd, b, weights, at, steps, source, out, finish,
                                ),
                                (_, 2..) => self.tiles::<S, 2, 1>(
                                    simd, b, weights, at, steps, source, out, finish,
                                ),
                                (48, _) => self.tiles::<S, 1, 3>(
                                    simd, b, weights, at, steps, source, out, finish,
                                ),
                                (32, _) => self.tiles::<S, 1, 2>(
                                    simd, b, weights, at, steps, source, out, finish,
                                ),
                                _ => self.tiles::<S, 1, 1>(
                                    simd, b, weights, at, steps, source, out, finish,
                                ),
                            };
                        }
                    }
                }
            },
        );
    }

    /// One block of outputs at P pixels, V vectors at a time; returns P.
    #[inline(always)]
    fn tiles<S: Simd, const P: usize, const V: usize>(
        &self,
        simd: S,
        block: usize,
        weights: &[f32],
        (from, to): (usize, usize),
        (from_step, to_step): (usize, usize),
        source: &[f32],
        out: &mut [f32],
        finish: Finish<'_>,
    ) -> usize {
        let n = S::f32s::LEN;
        for first in (0..self.block).step_by(V * n) {
            let mut sums = [[splat(simd, 0.0); V]; P];
            for v in 0..V {
                let start = load(simd, &self.start, block * self.block + first + v * n);
                sums.iter_mut().for_each(|sums| sums[v] = start);
            }
            let rows = weights.chunks_exact(self.depth * self.block);
            for (&tap, weights) in self.taps.iter().zip(rows) {
                let x: [&[f32]; P] = std::array::from_fn(
                    #[inline(always)]
                    |p| &source[from + tap + p * from_step..][..self.depth],
                );
                for (c, w) in weights.chunks_exact(self.block).enumerate() {
                    let w = &w[first..first + V * n];
                    let mut vectors = [splat(simd, 0.0); V];
                    for (v, vector) in vectors.iter_mut().enumerate() {
                        *vector = load(simd, w, v * n);
                    }
                    for p in 0..P {
                        let x = splat(simd, x[p][c]);
                        for v in 0..V {
                            sums[p][v] = vectors[v].mul_add(x, sums[p][v]);
                        }
                    }
                }
            }
            let zero = splat(simd, 0.0);
            for (p, sums) in sums.iter().enumerate() {
                for (v, sum) in sums.iter().enumerate() {
                    let at = to + p * to_step + first + v * n;
                    let value = match finish {
                        Finish::Plain => *sum,
                        Finish::Rectify => sum.max(zero),
                        Finish::Gate(gate) => load(simd, gate, at).simd_gt(zero).select(*sum, zero),
                    };
                    store::<S>(value, out, at);
                }
            }
        }
        P
    }
}
