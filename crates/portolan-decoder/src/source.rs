//! Planes to be read with a shift, and the scale and offset of what is read.

use fearless_simd::prelude::*;

use super::lanes::{Lanes, WIDEST};
use crate::simd::{Buffer, load, store};

/// Scale and offset for each lane of a chunk; a third number follows them.
#[derive(Clone, Copy)]
pub(super) struct Affine<'a>(pub &'a [f32]);

impl Affine<'_> {
    #[inline(always)]
    pub(super) fn at<S: Simd>(
        &self,
        simd: S,
        c: usize,
        width: usize,
        lane: usize,
    ) -> (S::f32s, S::f32s) {
        let at = 3 * c * width + lane;
        (load(simd, self.0, at), load(simd, self.0, at + width))
    }

    #[inline(always)]
    pub(super) fn apply<S: Simd>(
        &self,
        simd: S,
        c: usize,
        width: usize,
        from: &[f32],
        to: &mut [f32],
    ) {
        for lane in (0..width).step_by(S::f32s::LEN) {
            let (scale, offset) = self.at(simd, c, width, lane);
            for (from, to) in from.chunks_exact(width).zip(to.chunks_exact_mut(width)) {
                store::<S>(load(simd, from, lane).mul_add(scale, offset), to, lane);
            }
        }
    }
}

/// The planes of all chunks, to be read with a shift.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub data: &'a [f32],
    pub first: usize,
    /// From a chunk to the next.
    pub stride: usize,
    chunks: usize,
    pub width: usize,
    /// Whether shifted reads stay within the chunk.
    pub local: bool,
}

impl<'a> Source<'a> {
    /// The first `used` numbers of a buffer.
    pub(super) fn new(lanes: &Lanes, buffer: &'a Buffer, used: usize) -> Self {
        let (data, first) = buffer.with_guards();
        Self {
            data,
            first,
            stride: used / lanes.chunks,
            chunks: lanes.chunks,
            width: lanes.width,
            local: lanes.local(),
        }
    }

    /// One chunk's planes, after `guard` others; only where chunks are [`Lanes::local`].
    pub(super) fn scratch(lanes: &Lanes, data: &'a [f32], guard: usize) -> Self {
        let (chunks, width) = (lanes.chunks, lanes.width);
        Self { data, first: guard, stride: 0, chunks, width, local: true }
    }

    /// Channel `c`, of `len` numbers, of a chunk.
    #[inline(always)]
    pub(super) fn image(&self, chunk: usize, c: usize, len: usize) -> &'a [f32] {
        &self.data[self.first + chunk * self.stride + c * len..][..len]
    }

    /// A vector of the plane that begins at `plane` in its chunk, `shift` lanes on from lane `lane`,
    /// which may be in another chunk. Lanes that do not exist read as anything: their mask is zero.
    #[inline(always)]
    pub(super) fn distant<S: Simd>(
        &self,
        simd: S,
        chunk: usize,
        plane: usize,
        lane: usize,
        shift: isize,
    ) -> S::f32s {
        // Chunks that cut through emitters all have the greatest width.
        let (n, width) = (S::f32s::LEN, WIDEST as isize);
        let begin = (chunk * WIDEST + lane) as isize + shift;
        let (from, inside) = (begin.div_euclid(width), begin.rem_euclid(width) as usize);
        let part = |at: usize| -> &[f32] {
            let over = (at / WIDEST) as isize;
            match usize::try_from(from + over) {
                Ok(chunk) if chunk < self.chunks => {
                    let at = self.first + chunk * self.stride + plane + at % WIDEST;
                    &self.data[at..at + n]
                }
                _ => &[0.0; WIDEST][..n],
            }
        };
        if inside.is_multiple_of(n) {
            return load(simd, part(inside), 0);
        }
        let mut both = [0.0; 2 * WIDEST];
        let first = inside / n * n;
        store::<S>(load(simd, part(first), 0), &mut both, 0);
        store::<S>(load(simd, part(first + n), 0), &mut both, n);
        load(simd, &both, inside - first)
    }
}
