//! Margins around an image of planes, and their adjoint: what lies beyond a cell's own pixels comes
//! from other lanes, at the image's border mirrored, repeated or zero.

use std::collections::HashMap;

use fearless_simd::prelude::*;

use super::lanes::{Lanes, image_len};
use super::shape::{Padding, reflect};
use super::source::{Affine, Source};
use crate::simd::{copy, load, splat, store};

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
struct Case {
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
