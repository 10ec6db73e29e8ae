//! All blocks forward: convolution of what the block before kept, then the sums over its enlarged
//! result.

use fearless_simd::dispatch;

use super::edges::close_rows;
use super::enlarge::{input_rows, sum_rows};
use super::readout::Visit;
use super::{RowSpace, RowStage, Rows, first};
use crate::chunks::each_from;
use crate::moments::per_lane;
use crate::passes::Passes;
use crate::plan::{PER_LANE, Workspace};
use crate::readout::Readout;
use crate::shape::reflect;
use crate::simd::{Buffer, LANES};
use crate::winograd::{four, two};

/// A block whose result is read: which one, and scale, offset and mean of its lanes.
#[derive(Clone, Copy)]
pub(super) struct Before<'a> {
    pub stage: &'a RowStage,
    pub results: &'a [f32],
    pub affine: &'a [f32],
}

impl<'a> Before<'a> {
    /// A row of one channel of a chunk's result.
    pub(super) fn row(&self, chunk: usize, c: usize, i: usize) -> &'a [f32] {
        let stage = self.stage;
        let len = stage.size.outputs * stage.channel();
        &self.results[chunk * len + stage.row(c, i)..][..stage.pitch()]
    }

    /// Scale, offset and mean of a channel's lanes.
    pub(super) fn lanes(&self, chunk: usize, c: usize) -> [&'a [f32]; PER_LANE] {
        let stride = PER_LANE * LANES * self.stage.size.outputs;
        per_lane(&self.affine[chunk * stride..][..stride], c, LANES)
    }
}

impl Passes<'_> {
    /// All blocks; leaves the results of the convolutions and the last block's scale and offset in
    /// the workspace, and the pixels of a readout.
    pub(crate) fn forward_rows(
        &self,
        rows: &Rows,
        params: &[f32],
        latents: &[f32],
        readout: Option<&Readout>,
        ws: &mut Workspace,
    ) {
        let chunks = self.plan.lanes.chunks;
        let space = ws.rows.as_mut().expect("made with the plan");
        self.spread_columns(rows, latents, &mut space.latents);
        let blocks = rows.stages.len();
        for (b, stage) in rows.stages.iter().enumerate() {
            let space = ws.rows.as_mut().expect("made with the plan");
            let weights = &params[self.layout.blocks[b].conv.clone()];
            let RowSpace { latents, kept, results, packed, room, .. } = space;
            let (before, after) = results.split_at_mut(b);
            let y = &mut after[0];
            if b == 0 {
                self.first_result(rows, weights, latents, y);
            } else {
                if stage.fours {
                    dispatch!(self.level, simd => {
                        let _ = simd;
                        four::pack(weights, &mut packed[b][0]);
                    });
                } else {
                    let [forth, back] = &mut packed[b];
                    two::pack(&stage.size, weights, false, forth);
                    two::transpose(&stage.size, forth, back);
                }
                let before = Before {
                    stage: &rows.stages[b - 1],
                    results: &before[b - 1],
                    affine: &ws.affine[b - 1],
                };
                let work = |chunk: usize, out: [&mut [f32]; 2], room: &mut [f32]| {
                    self.result(rows, b, before, &packed[b][0], chunk, out, room);
                };
                let out = [&mut kept[b][..], &mut y[..]];
                each_from(self.parallel, 0, chunks, out, &mut room[..], &work);
            }
            self.join_rows(rows, stage, y);
            let last = readout.filter(|_| b + 1 == blocks);
            self.sum_enlarged(stage, y, last, &mut ws.sums, &mut ws.gathered, room);
            self.normalise(b, stage.pixels(), params, ws);
        }
    }

    fn first_result(&self, rows: &Rows, weights: &[f32], latents: &[f32], y: &mut Buffer) {
        let stage = &rows.stages[0];
        let len = (stage.rows + 2) * 3 * LANES;
        for (chunk, y) in y.chunks_exact_mut(stage.size.outputs * stage.channel()).enumerate() {
            let (x, flags) = (&latents[chunk * len..][..len], rows.flags(chunk));
            dispatch!(self.level, simd => {
                first::forward(simd, stage, weights, x, y);
                close_rows(simd, stage, flags, 0..stage.rows, y);
            });
        }
    }

    /// The convolution's result of a chunk, strip by strip, and its input or that one's factors where
    /// they are kept.
    fn result(
        &self,
        rows: &Rows,
        b: usize,
        before: Before<'_>,
        packed: &[f32],
        chunk: usize,
        [kept, y]: [&mut [f32]; 2],
        room: &mut [f32],
    ) {
        let (stage, flags) = (&rows.stages[b], rows.flags(chunk));
        let (tiles, room) = room.split_at_mut(stage.tiles());
        let len = stage.size.inputs * stage.strip_channel();
        let (x, factors) = match (kept.is_empty(), stage.fours) {
            (false, false) => (kept, &mut [][..]),
            _ => (&mut room[..len], kept),
        };
        for from in (0..stage.rows).step_by(stage.strip) {
            let to = (from + stage.strip).min(stage.rows);
            self.input_strip(rows, stage, before, chunk, (from, to), x);
            let cut = &stage.cut(to - from);
            let (size, inner) = (&stage.size, from * stage.pitch() + LANES);
            dispatch!(self.level, simd => {
                if stage.fours {
                    four::forward(simd, size, cut, packed, tiles, (x, factors), &mut y[inner..]);
                } else {
                    two::forward(simd, size, cut, packed, tiles, x, &mut y[inner..]);
                }
                close_rows(simd, stage, flags, from..to, y);
            });
        }
    }

    /// The convolution's input from row `from` - 1 to row `to`.
    pub(super) fn input_strip(
        &self,
        rows: &Rows,
        stage: &RowStage,
        before: Before<'_>,
        chunk: usize,
        (from, to): (usize, usize),
        x: &mut [f32],
    ) {
        let (flags, small, pitch) = (rows.flags(chunk), before.stage.rows, stage.pitch());
        dispatch!(self.level, simd => {
            for (c, x) in x.chunks_exact_mut(stage.strip_channel()).enumerate() {
                let [scale, offset, _] = before.lanes(chunk, c);
                // Two rows between each pair of small ones, of which the first is row `from` / 2 - 1.
                for (k, two) in x[..(to - from + 2) * pitch].chunks_exact_mut(2 * pitch).enumerate() {
                    let upper = (from / 2 + k).saturating_sub(1);
                    let lower = (from / 2 + k).min(small - 1);
                    let between = [before.row(chunk, c, upper), before.row(chunk, c, lower)];
                    let two = two.split_at_mut(pitch).into();
                    input_rows(simd, between, (scale, offset), flags, rows.mirrored, two);
                }
                // Beyond the border the row after the outermost one, mirrored, or nothing.
                if from == 0 && rows.mirrored {
                    x.copy_within(2 * pitch..3 * pitch, 0);
                } else if from == 0 {
                    x[..pitch].fill(0.0);
                }
                let end = (to - from + 1) * pitch;
                if to == stage.rows && rows.mirrored {
                    x.copy_within(end - 2 * pitch..end - pitch, end);
                } else if to == stage.rows {
                    x[end..end + pitch].fill(0.0);
                }
            }
        });
    }

    /// Sums over the enlarged result, and the pixels that a readout asks for.
    fn sum_enlarged(
        &self,
        stage: &RowStage,
        results: &[f32],
        readout: Option<&Readout>,
        sums: &mut [f32],
        gathered: &mut [f32],
        room: &mut [f32],
    ) {
        let (chunks, outputs) = (self.plan.lanes.chunks, stage.size.outputs);
        let len = outputs * stage.channel();
        let image = |chunk: usize, c: usize| {
            &results[chunk * len + c * stage.channel()..][..stage.channel()]
        };
        let Some(readout) = readout else {
            let work = |chunk: usize, [sums]: [&mut [f32]; 1], _: &mut [f32]| {
                sums.fill(0.0);
                dispatch!(self.level, simd => {
                    for (c, sums) in sums.chunks_exact_mut(PER_LANE * LANES).enumerate() {
                        for k in 0..stage.rows {
                            sum_rows::<_, false>(simd, stage, k, image(chunk, c), sums, &mut []);
                        }
                    }
                });
            };
            return each_from(self.parallel, 0, chunks, [sums], &mut [], &work);
        };
        let places = &readout.places;
        let enlarged = 4 * stage.size.phases * LANES;
        let work = |chunk: usize, [sums, gathered]: [&mut [f32]; 2], room: &mut [f32]| {
            sums.fill(0.0);
            let values = gathered[places.room..].chunks_exact_mut(places.room);
            let out = &mut room[..enlarged];
            dispatch!(self.level, simd => {
                let each = sums.chunks_exact_mut(PER_LANE * LANES).zip(values).enumerate();
                for (c, (sums, values)) in each {
                    for k in 0..stage.rows {
                        let visits = places.visits(chunk * stage.rows + k);
                        if visits.is_empty() {
                            sum_rows::<_, false>(simd, stage, k, image(chunk, c), sums, &mut []);
                            continue;
                        }
                        sum_rows::<_, true>(simd, stage, k, image(chunk, c), sums, out);
                        for Visit { from, to } in visits {
                            for (value, &from) in values[*to..].iter_mut().zip(from) {
                                *value = out[from as usize];
                            }
                        }
                    }
                }
            });
        };
        let used = chunks * (outputs + 1) * places.room;
        each_from(self.parallel, 0, chunks, [sums, &mut gathered[..used]], room, &work);
    }

    /// Latents, one after another, as rows of columns with their margin.
    fn spread_columns(&self, rows: &Rows, latents: &[f32], out: &mut [f32]) {
        let (lanes, height) = (&self.plan.lanes, rows.stages[0].rows);
        let (cols, len) = (lanes.cols, (height + 2) * 3 * LANES);
        for (e, latent) in latents.chunks_exact(height * cols).enumerate() {
            for slot in 0..height + 2 {
                let row = slot as isize - 1;
                let inside = usize::try_from(row).is_ok_and(|row| row < height);
                let from = &latent[reflect(row, height) * cols..][..cols];
                for col in 0..cols {
                    let lane = e * cols + col;
                    let at = lane / LANES * len + slot * 3 * LANES + lane % LANES;
                    for (plane, step) in [-1, 0, 1].into_iter().enumerate() {
                        let from_col = col as isize + step;
                        let within = usize::try_from(from_col).is_ok_and(|col| col < cols);
                        let seen = rows.mirrored || (inside && within);
                        out[at + plane * LANES] =
                            if seen { from[reflect(from_col, cols)] } else { 0.0 };
                    }
                }
            }
        }
    }
}
