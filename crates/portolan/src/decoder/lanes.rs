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
use crate::simd::{Buffer, LANES, copy, load, splat, store};

/// Most lanes in a chunk.
pub(super) const WIDEST: usize = 64;

/// Numbers of one channel of a chunk. Channels a multiple of 4096 bytes apart would compete for the
/// same lines of the first cache, so a line is added.
pub(super) fn image_len(phases: usize, width: usize) -> usize {
    let len = phases * phases * width;
    if len.is_multiple_of(1024) { len + LANES } else { len }
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
            let whole = (LANES / cells).clamp(1, emitters);
            (whole, (whole * cells).next_multiple_of(LANES), emitters.div_ceil(whole))
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
    plane: u32,
    shift: i32,
    /// Start of the mask in [`Border::masks`].
    mask: u32,
}

/// A plane and two planes to be added up into it.
#[derive(Clone, Copy, Debug)]
struct Stitch {
    plane: u32,
    cases: [Case; 2],
    /// Whether an earlier stitch has begun this plane.
    begun: bool,
}

/// Cuts lists of cases, one for each plane, into stitches. Where a case is left alone, its partner's
/// mask is `nothing`.
fn stitches(lists: Vec<Vec<Case>>, nothing: u32) -> Vec<Stitch> {
    let mut stitches = Vec::new();
    for (plane, cases) in lists.into_iter().enumerate() {
        for (k, two) in cases.chunks(2).enumerate() {
            let first = two[0];
            let second = two.get(1).copied().unwrap_or(Case { mask: nothing, ..first });
            let cases = [first, second];
            stitches.push(Stitch { plane: plane as u32, cases, begun: k > 0 });
        }
    }
    stitches
}

/// A P x P image of planes and the same image with a margin.
#[derive(Clone, Debug)]
pub(super) struct Border {
    phases: usize,
    before: usize,
    /// Planes per side, margin included.
    pub outer: usize,
    /// For every plane of the margin, the planes of the image it is made of.
    expand: Vec<Stitch>,
    /// The adjoint: for every plane of the image, the planes of the margin it contributed to.
    fold: Vec<Stitch>,
    masks: Vec<f32>,
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
            (0..outer).map(|p| axis(phases, cells, p as isize - before as isize, beyond)).collect()
        };
        let (row_cases, col_cases) = (along(lanes.rows), along(lanes.cols));
        let mut expand = vec![Vec::new(); outer * outer];
        let mut fold = vec![Vec::new(); phases * phases];
        // The first mask is empty.
        let (mut masks, mut reach) = (vec![0.0; lanes.total()], 0);
        let mut known = HashMap::new();
        for (pr, rows) in row_cases.iter().enumerate() {
            for (pc, cols) in col_cases.iter().enumerate() {
                let inner = |p: usize| (before..before + phases).contains(&p);
                if inner(pr) && inner(pc) {
                    continue;
                }
                for (row_phase, row_step, row_holds) in rows {
                    for (col_phase, col_step, col_holds) in cols {
                        let shift = row_step * lanes.cols as isize + col_step;
                        let (from, to) = (row_phase * phases + col_phase, pr * outer + pc);
                        reach = reach.max(shift.unsigned_abs());
                        let mut mask = |back: isize| {
                            let holds: Vec<bool> = (0..lanes.total())
                                .map(|lane| {
                                    let Some(lane) = lane.checked_add_signed(-back) else {
                                        return false;
                                    };
                                    lanes.cell(lane).is_some_and(|cell| {
                                        row_holds[cell / lanes.cols] && col_holds[cell % lanes.cols]
                                    })
                                })
                                .collect();
                            let next = masks.len() as u32;
                            *known.entry(holds).or_insert_with_key(|holds| {
                                let bits = holds.iter().map(|&h| if h { 1.0 } else { 0.0 });
                                masks.extend(bits);
                                next
                            })
                        };
                        let (there, back) = (mask(0), mask(shift));
                        let shift = shift as i32;
                        expand[to].push(Case { plane: from as u32, shift, mask: there });
                        fold[from].push(Case { plane: to as u32, shift: -shift, mask: back });
                    }
                }
            }
        }
        let (expand, fold) = (stitches(expand, 0), stitches(fold, 0));
        Self { phases, before, outer, expand, fold, masks, reach }
    }

    /// Numbers of one channel of a chunk, without and with margin.
    fn lens(&self, width: usize) -> (usize, usize) {
        (image_len(self.phases, width), image_len(self.outer, width))
    }

    /// Where row `i` of the image begins inside the margin.
    #[inline(always)]
    fn row(&self, i: usize, width: usize) -> usize {
        ((i + self.before) * self.outer + self.before) * width
    }

    /// Puts a margin around the image of every channel of one chunk, scaled and offset where
    /// `affine` says so. Zeros beyond the border are neither.
    #[inline(always)]
    pub(super) fn expand<S: Simd>(
        &self,
        simd: S,
        source: Source<'_>,
        affine: Option<Affine<'_>>,
        chunk: usize,
        out: &mut [f32],
    ) {
        let width = source.width;
        let (row, (inner, outer)) = (self.phases * width, self.lens(width));
        let mut c = 0;
        while (c + 1) * outer <= out.len() {
            let image = source.image(chunk, c, inner);
            for i in 0..self.phases {
                let to = c * outer + self.row(i, width);
                let (from, to) = (&image[i * row..(i + 1) * row], &mut out[to..to + row]);
                match affine {
                    None => copy(simd, from, to),
                    Some(affine) => affine.apply(simd, c, width, from, to),
                }
            }
            c += 1;
        }
        let place = Place { chunk, channels: c, from: inner, to: outer };
        match affine {
            None => self.stitch::<S, true, false>(simd, &self.expand, source, &[], place, out),
            Some(Affine(all)) => {
                self.stitch::<S, true, true>(simd, &self.expand, source, all, place, out);
            }
        }
    }

    /// The adjoint of [`Border::expand`].
    #[inline(always)]
    pub(super) fn fold<S: Simd>(&self, simd: S, source: Source<'_>, chunk: usize, out: &mut [f32]) {
        let width = source.width;
        let (row, (inner, outer)) = (self.phases * width, self.lens(width));
        let mut c = 0;
        while (c + 1) * inner <= out.len() {
            let image = source.image(chunk, c, outer);
            for i in 0..self.phases {
                let (from, to) = (self.row(i, width), c * inner + i * row);
                copy(simd, &image[from..from + row], &mut out[to..to + row]);
            }
            c += 1;
        }
        let place = Place { chunk, channels: c, from: outer, to: inner };
        self.stitch::<S, false, false>(simd, &self.fold, source, &[], place, out);
    }

    /// Works through some stitches for every channel; `FRESH` planes start from zero. Channels go
    /// innermost: what a stitch needs is worked out once for all of them.
    #[inline(always)]
    fn stitch<S: Simd, const FRESH: bool, const SCALED: bool>(
        &self,
        simd: S,
        stitches: &[Stitch],
        source: Source<'_>,
        affine: &[f32],
        place: Place,
        out: &mut [f32],
    ) {
        let (width, chunk) = (source.width, place.chunk);
        let zero = splat(simd, 0.0);
        for stitch in stitches {
            let [a, b] = stitch.cases;
            let (a_shift, b_shift) = (a.shift as isize, b.shift as isize);
            let begun = stitch.begun || !FRESH;
            for lane in (0..width).step_by(S::f32s::LEN) {
                let masks = chunk * width + lane;
                let a_mask = load(simd, &self.masks, a.mask as usize + masks);
                let b_mask = load(simd, &self.masks, b.mask as usize + masks);
                let mut at = stitch.plane as usize * width + lane;
                let (mut a_at, mut b_at) = (a.plane as usize * width, b.plane as usize * width);
                if source.local {
                    let begin = source.first + chunk * source.stride + lane;
                    a_at = (a_at + begin).wrapping_add_signed(a_shift);
                    b_at = (b_at + begin).wrapping_add_signed(b_shift);
                }
                for c in 0..place.channels {
                    let (mut a, mut b) = if source.local {
                        (load(simd, source.data, a_at), load(simd, source.data, b_at))
                    } else {
                        (
                            source.distant(simd, chunk, a_at, lane, a_shift),
                            source.distant(simd, chunk, b_at, lane, b_shift),
                        )
                    };
                    if SCALED {
                        let (scale, offset) = Affine(affine).at(simd, c, width, lane);
                        a = a.mul_add(scale, offset);
                        b = b.mul_add(scale, offset);
                    }
                    let old = if begun { load(simd, out, at) } else { zero };
                    store::<S>(b.mul_add(b_mask, a.mul_add(a_mask, old)), out, at);
                    at += place.to;
                    a_at += place.from;
                    b_at += place.from;
                }
            }
        }
    }
}

/// Chunk, channels, and from one channel to the next in the source and in the result.
#[derive(Clone, Copy)]
struct Place {
    chunk: usize,
    channels: usize,
    from: usize,
    to: usize,
}

/// Scale and offset for each lane of a chunk; a third number follows them.
#[derive(Clone, Copy)]
pub(super) struct Affine<'a>(pub &'a [f32]);

impl Affine<'_> {
    #[inline(always)]
    fn at<S: Simd>(&self, simd: S, c: usize, width: usize, lane: usize) -> (S::f32s, S::f32s) {
        let at = 3 * c * width + lane;
        (load(simd, self.0, at), load(simd, self.0, at + width))
    }

    #[inline(always)]
    fn apply<S: Simd>(&self, simd: S, c: usize, width: usize, from: &[f32], to: &mut [f32]) {
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
    data: &'a [f32],
    first: usize,
    /// From a chunk to the next.
    stride: usize,
    chunks: usize,
    width: usize,
    /// Whether shifted reads stay within the chunk.
    local: bool,
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
    fn distant<S: Simd>(
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
