//! How images lie in memory: every cell of the latent grid is a SIMD lane.
//!
//! A block's image has P x P pixels per latent cell. The fast path stores it as P x P *planes*, each
//! holding one pixel of every cell of every emitter. A convolution tap or an upsampling weight then
//! reads whole planes: no shuffles, no edge columns, and the 4 x 4 stage fills vectors as well as the
//! 64 x 64 one. Only a pixel beyond a cell's own P x P comes from another lane, and [`Border`]
//! lists, for every such plane, from which planes and lanes, at the image's border mirrored or zero.
//!
//! Lanes are cut into chunks of at most [`WIDEST`], the unit of work and of parallelism.

use std::collections::HashMap;
use std::ops::Range;

use fearless_simd::prelude::*;

use super::shape::{Padding, reflect};
use super::vector;

/// Most lanes in a chunk.
pub(super) const WIDEST: usize = 64;

/// Lanes come in multiples of this.
const QUANTUM: usize = 16;

/// Numbers that start on a cache line, with room on both sides for shifted reads.
#[derive(Debug)]
pub(super) struct Buffer {
    data: Vec<f32>,
    first: usize,
    len: usize,
}

impl Buffer {
    pub(super) fn new(len: usize, guard: usize) -> Self {
        let guard = guard.next_multiple_of(QUANTUM);
        let data = vec![0.0f32; len + 2 * guard + QUANTUM];
        let align = data.as_ptr().align_offset(4 * QUANTUM).min(QUANTUM);
        Self { first: guard + align, data, len }
    }

    /// Everything, and where the numbers begin.
    pub(super) fn guarded(&self) -> (&[f32], usize) {
        (&self.data, self.first)
    }
}

impl std::ops::Deref for Buffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.data[self.first..self.first + self.len]
    }
}

impl std::ops::DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.data[self.first..self.first + self.len]
    }
}

/// The latent cells of all emitters in a row, cut into chunks.
#[derive(Clone, Debug)]
pub(super) struct Lanes {
    pub emitters: usize,
    pub rows: usize,
    pub cols: usize,
    /// Lanes of a chunk.
    pub width: usize,
    pub chunks: usize,
    /// Emitters in a chunk where they are kept whole; 0 where chunks cut through them.
    whole: usize,
}

impl Lanes {
    pub(super) fn new(emitters: usize, rows: usize, cols: usize) -> Self {
        let cells = rows * cols;
        let (whole, width, chunks) = if cells <= WIDEST {
            // Narrow chunks: an activation image of one channel then stays in the first cache.
            let whole = (QUANTUM / cells).clamp(1, emitters);
            (whole, (whole * cells).next_multiple_of(QUANTUM), emitters.div_ceil(whole))
        } else {
            (0, WIDEST, (emitters * cells).div_ceil(WIDEST))
        };
        Self { emitters, rows, cols, width, chunks, whole }
    }

    /// Whether no cell's neighbours lie in another chunk.
    pub(super) fn local(&self) -> bool {
        self.whole > 0 || self.chunks == 1
    }

    pub(super) fn total(&self) -> usize {
        self.chunks * self.width
    }

    /// Lanes of one emitter.
    pub(super) fn cells(&self) -> usize {
        self.rows * self.cols
    }

    /// The first of an emitter's lanes, which follow each other.
    pub(super) fn first_lane(&self, emitter: usize) -> usize {
        match self.whole {
            0 => emitter * self.cells(),
            n => emitter / n * self.width + emitter % n * self.cells(),
        }
    }

    /// The cell that a lane holds; the lanes without one stay zero.
    fn cell(&self, lane: usize) -> Option<usize> {
        let (emitter, cell) = match self.whole {
            0 => (lane / self.cells(), lane % self.cells()),
            n => {
                let (chunk, inside) = (lane / self.width, lane % self.width);
                if inside >= n * self.cells() {
                    return None;
                }
                (chunk * n + inside / self.cells(), inside % self.cells())
            }
        };
        (emitter < self.emitters).then_some(cell)
    }

    /// Chunk and place in it of pixel (row, col) of an image with `phases` pixels per cell.
    pub(super) fn place(
        &self,
        phases: usize,
        emitter: usize,
        row: usize,
        col: usize,
    ) -> (usize, usize) {
        let lane = self.first_lane(emitter) + row / phases * self.cols + col / phases;
        let plane = row % phases * phases + col % phases;
        (lane / self.width, plane * self.width + lane % self.width)
    }

    /// Where the lanes of some emitters lie: (chunk, lanes in it).
    pub(super) fn segments(
        &self,
        emitters: Range<usize>,
    ) -> impl Iterator<Item = (usize, Range<usize>)> + Clone {
        let (width, whole, cells) = (self.width, self.whole, self.cells());
        let chunks = match whole {
            0 => emitters.start * cells / width..(emitters.end * cells).div_ceil(width),
            n => emitters.start / n..emitters.end.div_ceil(n),
        };
        chunks.map(move |chunk| {
            let lanes = match whole {
                0 => emitters.start * cells..emitters.end * cells,
                n => {
                    let first = emitters.start.max(chunk * n);
                    let last = emitters.end.min((chunk + 1) * n);
                    let lane = |e: usize| chunk * width + (e - chunk * n) * cells;
                    lane(first)..lane(last)
                }
            };
            let start = chunk * width;
            (chunk, lanes.start.max(start) - start..lanes.end.min(start + width) - start)
        })
    }
}

/// What lies beyond the border of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beyond {
    Mirror,
    Nothing,
    /// The border pixel again.
    Repeat,
}

impl From<Padding> for Beyond {
    fn from(padding: Padding) -> Self {
        match padding {
            Padding::Reflect => Self::Mirror,
            Padding::Zero => Self::Nothing,
        }
    }
}

/// One source of a plane: `plane`, read `shift` lanes further on, where `mask` says so.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Case {
    pub plane: u32,
    pub shift: i32,
    /// Start of the mask in [`Border::masks`]; [`ALL`] where every lane counts.
    pub mask: u32,
}

/// No mask, and no shift.
pub(super) const ALL: u32 = u32::MAX;

/// A P x P image of planes and the same image with a margin.
#[derive(Clone, Debug)]
pub(super) struct Border {
    /// Planes per side, margin included.
    pub outer: usize,
    /// For every plane with margin, the planes of the image it is made of.
    pub expand: Vec<Vec<Case>>,
    /// The adjoint: for every plane of the image, the planes with margin it contributed to.
    pub fold: Vec<Vec<Case>>,
    pub masks: Vec<f32>,
    pub reach: usize,
}

/// Source phase, step in cells, and the cells along one side for which this holds.
type AxisCase = (usize, isize, Vec<bool>);

fn axis(phases: usize, cells: usize, at: isize, beyond: Beyond) -> Vec<AxisCase> {
    let mut cases: Vec<AxisCase> = Vec::new();
    let n = cells * phases;
    for cell in 0..cells {
        let pixel = (cell * phases) as isize + at;
        let inside = usize::try_from(pixel).ok().filter(|&p| p < n);
        let from = match beyond {
            Beyond::Mirror => reflect(pixel, n),
            Beyond::Repeat => pixel.clamp(0, n as isize - 1) as usize,
            Beyond::Nothing => match inside {
                Some(pixel) => pixel,
                None => continue,
            },
        };
        let (phase, step) = (from % phases, (from / phases) as isize - cell as isize);
        match cases.iter_mut().find(|c| (c.0, c.1) == (phase, step)) {
            Some(case) => case.2[cell] = true,
            None => {
                let mut holds = vec![false; cells];
                holds[cell] = true;
                cases.push((phase, step, holds));
            }
        }
    }
    cases
}

impl Border {
    /// Margins of `before` and `after` planes around `phases` x `phases`.
    pub(super) fn new(
        lanes: &Lanes,
        phases: usize,
        (before, after): (usize, usize),
        beyond: Beyond,
    ) -> Self {
        let outer = before + phases + after;
        let along = |cells: usize| -> Vec<Vec<AxisCase>> {
            (0..outer)
                .map(|p| axis(phases, cells, p as isize - before as isize, beyond))
                .collect()
        };
        let (row_cases, col_cases) = (along(lanes.rows), along(lanes.cols));
        let mut border = Self {
            outer,
            expand: vec![Vec::new(); outer * outer],
            fold: vec![Vec::new(); phases * phases],
            masks: Vec::new(),
            reach: 0,
        };
        let mut known = HashMap::new();
        for (pr, rows) in row_cases.iter().enumerate() {
            for (pc, cols) in col_cases.iter().enumerate() {
                let inner = |p: usize| (before..before + phases).contains(&p);
                let whole = inner(pr) && inner(pc);
                for (row_phase, row_step, row_holds) in rows {
                    for (col_phase, col_step, col_holds) in cols {
                        let shift = row_step * lanes.cols as isize + col_step;
                        let (from, to) = (row_phase * phases + col_phase, pr * outer + pc);
                        border.reach = border.reach.max(shift.unsigned_abs());
                        let mut mask = |back: isize| {
                            let holds: Vec<bool> = (0..lanes.total())
                                .map(|lane| {
                                    let Some(lane) = lane.checked_add_signed(-back) else {
                                        return false;
                                    };
                                    lanes.cell(lane).is_some_and(|cell| {
                                        row_holds[cell / lanes.cols]
                                            && col_holds[cell % lanes.cols]
                                    })
                                })
                                .collect();
                            let next = border.masks.len() as u32;
                            *known.entry(holds).or_insert_with_key(|holds| {
                                let bits = holds.iter().map(|&h| if h { 1.0 } else { 0.0 });
                                border.masks.extend(bits);
                                next
                            })
                        };
                        let (there, back) = if whole { (ALL, ALL) } else { (mask(0), mask(shift)) };
                        let shift = shift as i32;
                        border.expand[to].push(Case { plane: from as u32, shift, mask: there });
                        border.fold[from].push(Case {
                            plane: to as u32,
                            shift: -shift,
                            mask: back,
                        });
                    }
                }
            }
        }
        border
    }
}

/// Planes of one channel in all chunks, to be read with a shift.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub data: &'a [f32],
    /// Where the channel's first plane lies in the first chunk.
    pub first: usize,
    /// From a chunk to the next.
    pub stride: usize,
    pub chunks: usize,
    pub width: usize,
    /// Whether shifted reads stay within the chunk.
    pub local: bool,
}

impl Source<'_> {
    /// A vector of plane `plane`, `shift` lanes on from lane `lane` of chunk `chunk`. Lanes that do
    /// not exist read as anything finite: their mask is zero.
    #[inline(always)]
    fn load<S: Simd>(
        &self,
        simd: S,
        chunk: usize,
        plane: usize,
        lane: usize,
        shift: isize,
    ) -> S::f32s {
        let n = S::f32s::LEN;
        let row = plane * self.width;
        if self.local {
            let at = self.first + chunk * self.stride + row + lane;
            return vector::load(simd, self.data, at.wrapping_add_signed(shift));
        }
        let begin = (chunk * self.width + lane) as isize + shift;
        let (from, inside) =
            (begin.div_euclid(self.width as isize), begin.rem_euclid(self.width as isize) as usize);
        let at = |chunk: isize| self.first + chunk as usize * self.stride + row;
        let exists = |chunk: isize| (0..self.chunks as isize).contains(&chunk);
        if inside + n <= self.width {
            if !exists(from) {
                return S::f32s::splat(simd, 0.0);
            }
            let at = at(from) + inside;
            return S::f32s::from_slice(simd, &self.data[at..at + n]);
        }
        S::f32s::from_fn(simd, |i| {
            let over = (inside + i) / self.width;
            let chunk = from + over as isize;
            if exists(chunk) { self.data[at(chunk) + (inside + i) % self.width] } else { 0.0 }
        })
    }
}

/// Makes each plane of `out` from its cases, then hands it to `each(plane, lane, sum, weight)`, whose
/// answer is stored.
#[inline(always)]
pub(super) fn remap<S: Simd>(
    simd: S,
    cases: &[Vec<Case>],
    masks: &[f32],
    source: Source<'_>,
    chunk: usize,
    out: &mut [f32],
    mut each: impl FnMut(usize, usize, S::f32s, S::f32s) -> S::f32s,
) {
    let n = S::f32s::LEN;
    let (zero, one) = (S::f32s::splat(simd, 0.0), S::f32s::splat(simd, 1.0));
    for (plane, (cases, out)) in cases.iter().zip(out.chunks_exact_mut(source.width)).enumerate() {
        for (i, out) in out.chunks_exact_mut(n).enumerate() {
            let lane = i * n;
            let (mut sum, mut weight) = (zero, zero);
            for case in cases {
                let value =
                    source.load(simd, chunk, case.plane as usize, lane, case.shift as isize);
                if case.mask == ALL {
                    sum += value;
                    weight = one;
                } else {
                    let at = case.mask as usize + chunk * source.width + lane;
                    let mask = S::f32s::from_slice(simd, &masks[at..at + n]);
                    sum = value.mul_add(mask, sum);
                    weight += mask;
                }
            }
            each(plane, lane, sum, weight).store_slice(out);
        }
    }
}
