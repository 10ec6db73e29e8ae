//! The planes on both sides of a row, which hold pixels of the lanes beside.

use fearless_simd::{dispatch, prelude::*};

use super::{RowStage, Rows};
use crate::passes::Passes;
use crate::simd::{Buffer, LANES, load, splat, store};

/// Which lanes of a chunk are an emitter's first and last.
#[derive(Clone, Copy)]
pub(super) struct Flags<'a> {
    pub first: &'a [f32],
    pub last: &'a [f32],
}

/// Where the flag is set the one, elsewhere the other.
#[inline(always)]
pub(super) fn choose<S: Simd>(
    simd: S,
    flag: &[f32],
    lane: usize,
    a: S::f32s,
    b: S::f32s,
) -> S::f32s {
    load(simd, flag, lane).simd_gt(splat(simd, 0.0)).select(a, b)
}

/// Fills the sides of some rows of all channels from the planes within, as far as they lie in this
/// chunk. At the border the outermost pixel is repeated.
#[inline(always)]
pub(super) fn close_rows<S: Simd>(
    simd: S,
    stage: &RowStage,
    flags: Flags<'_>,
    rows: std::ops::Range<usize>,
    image: &mut [f32],
) {
    let (pitch, inner) = (stage.pitch(), stage.size.phases * LANES);
    for c in 0..stage.size.outputs {
        for i in rows.clone() {
            let row = &mut image[stage.row(c, i)..][..pitch];
            for lane in (0..LANES).step_by(S::f32s::LEN) {
                // One lane off: what is read beyond the chunk is either flagged or put right later.
                let (before, after) = (load(simd, row, inner + lane - 1), after(simd, row, lane));
                let (left, right) = (load(simd, row, LANES + lane), load(simd, row, inner + lane));
                store::<S>(choose(simd, flags.first, lane, left, before), row, lane);
                let side = choose(simd, flags.last, lane, right, after);
                store::<S>(side, row, inner + LANES + lane);
            }
        }
    }
}

/// The first plane one lane on. A row of one plane ends with it.
#[inline(always)]
fn after<S: Simd>(simd: S, row: &[f32], lane: usize) -> S::f32s {
    load(simd, row, LANES + lane + 1)
}

impl Passes<'_> {
    /// Puts right the sides that look into another chunk.
    pub(super) fn join_rows(&self, rows: &Rows, stage: &RowStage, images: &mut Buffer) {
        if !rows.cut {
            return;
        }
        let (chunk_len, inner) = (stage.size.outputs * stage.channel(), stage.size.phases * LANES);
        for chunk in 1..self.plan.lanes.chunks {
            if rows.first[chunk * LANES] > 0.0 {
                continue;
            }
            let (left, right) = images.split_at_mut(chunk * chunk_len);
            let left = &mut left[(chunk - 1) * chunk_len..];
            for c in 0..stage.size.outputs {
                for i in 0..stage.rows {
                    let at = stage.row(c, i);
                    right[at] = left[at + inner + LANES - 1];
                    left[at + inner + 2 * LANES - 1] = right[at + LANES];
                }
            }
        }
    }

    /// Adds what the sides owe to the lanes beside.
    pub(super) fn settle_rows(&self, rows: &Rows, stage: &RowStage, images: &mut Buffer) {
        let (chunk_len, inner) = (stage.size.outputs * stage.channel(), stage.size.phases * LANES);
        for chunk in 1..self.plan.lanes.chunks {
            if rows.first[chunk * LANES] == 0.0 {
                let (left, right) = images.split_at_mut(chunk * chunk_len);
                let left = &mut left[(chunk - 1) * chunk_len..];
                for c in 0..stage.size.outputs {
                    for i in 0..stage.rows {
                        let at = stage.row(c, i);
                        left[at + inner + LANES - 1] += right[at];
                        right[at + LANES] += left[at + inner + 2 * LANES - 1];
                    }
                }
            }
        }
        for (chunk, image) in images.chunks_exact_mut(chunk_len).enumerate() {
            let flags = rows.flags(chunk);
            dispatch!(self.level, simd => settle(simd, stage, flags, image));
        }
    }
}

/// The same within a chunk. Lane 15 owes nothing to a lane of the chunk, nor does lane 0.
#[inline(always)]
fn settle<S: Simd>(simd: S, stage: &RowStage, flags: Flags<'_>, image: &mut [f32]) {
    let (pitch, inner, zero) = (stage.pitch(), stage.size.phases * LANES, splat(simd, 0.0));
    for c in 0..stage.size.outputs {
        for i in 0..stage.rows {
            let row = &mut image[stage.row(c, i)..][..pitch];
            // What came from other chunks has been added.
            (row[0], row[inner + 2 * LANES - 1]) = (0.0, 0.0);
            let mut sides = [0.0; 2 * LANES + 2];
            sides[..LANES].copy_from_slice(&row[..LANES]);
            sides[LANES + 2..].copy_from_slice(&row[inner + LANES..]);
            for lane in (0..LANES).step_by(S::f32s::LEN) {
                let left = load(simd, &sides, lane + 1);
                let left = choose(simd, flags.last, lane, zero, left);
                store::<S>(load(simd, row, inner + lane) + left, row, inner + lane);
                let right = load(simd, &sides, LANES + 1 + lane);
                let right = choose(simd, flags.first, lane, zero, right);
                store::<S>(load(simd, row, LANES + lane) + right, row, LANES + lane);
            }
        }
    }
}
