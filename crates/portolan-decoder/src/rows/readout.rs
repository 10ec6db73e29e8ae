//! The last block's pixels at the cells of a readout or everywhere, and back.

use fearless_simd::{dispatch, prelude::*};

use super::enlarge::sum_rows;
use super::{RowSpace, Rows};
use crate::chunks::{each_chunk, each_from};
use crate::lanes::Lanes;
use crate::moments::per_lane;
use crate::passes::Passes;
use crate::plan::{PER_LANE, Tally, Workspace};
use crate::readout::{Readout, accumulate, apply, slope, total};
use crate::simd::{Buffer, LANES, load, splat, store};

/// Pixels to be kept, of one emitter in two enlarged rows: where they are there, and the place of the
/// first among its chunk's; the others follow.
#[derive(Clone, Debug)]
pub(super) struct Visit {
    pub from: Vec<u32>,
    pub to: usize,
}

/// Pixels of one emitter in one chunk, one after another.
#[derive(Clone, Debug)]
struct Run {
    chunk: usize,
    emitter: usize,
    /// Place of the first among the chunk's.
    start: usize,
    /// For each, its place among the caller's, and in the gradient of the logits.
    pixels: Vec<(u32, usize)>,
    /// Those that a lane beside repeats, or the same lane at the border: which, and where.
    repeated: Vec<(u32, usize)>,
}

/// Where the cells of a readout lie.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    visits: Vec<Visit>,
    /// The first visit of each chunk and pair of rows.
    begins: Vec<usize>,
    runs: Vec<Run>,
    /// Places of a chunk, runs padded to whole vectors.
    pub room: usize,
}

/// The last image's layout.
struct Layout<'a> {
    lanes: &'a Lanes,
    phases: usize,
    pitch: usize,
    chunk: usize,
}

impl Layout<'_> {
    fn new<'a>(rows: &Rows, lanes: &'a Lanes) -> Layout<'a> {
        let pitch = rows.last_stage().out_pitch();
        Layout { lanes, phases: rows.last_phases(), pitch, chunk: rows.logits() }
    }

    /// A pixel of the gradient of the logits; plane 0 is the one before the first column.
    fn at(&self, lane: usize, row: usize, plane: usize) -> usize {
        lane / LANES * self.chunk + row * self.pitch + plane * LANES + lane % LANES
    }

    fn lane(&self, emitter: usize, col: usize) -> usize {
        self.lanes.first_lane(emitter) + col / self.phases
    }

    /// Where a pixel is, and where it is repeated.
    fn places(&self, emitter: usize, row: usize, col: usize) -> (usize, Option<usize>) {
        let (lane, plane) = (self.lane(emitter, col), col % self.phases);
        let cell = col / self.phases;
        let repeated = if plane == 0 {
            Some(if cell == 0 { (lane, 0) } else { (lane - 1, self.phases + 1) })
        } else if plane + 1 == self.phases {
            let border = cell + 1 == self.lanes.cols;
            Some(if border { (lane, self.phases + 1) } else { (lane + 1, 0) })
        } else {
            None
        };
        let repeated = repeated.map(|(lane, plane)| self.at(lane, row, plane));
        (self.at(lane, row, plane + 1), repeated)
    }
}

impl Places {
    pub(crate) fn new(rows: &Rows, lanes: &Lanes, cells: &[usize], cols: usize) -> Self {
        let layout = Layout::new(rows, lanes);
        let height = rows.last_stage().rows;
        let (mut runs, mut visits) = (Vec::<Run>::new(), Vec::<(usize, Visit)>::new());
        let mut used = vec![0; lanes.chunks];
        let mut order: Vec<usize> = (0..cells.len()).collect();
        order.sort_by_key(|&index| {
            let (row, col) = (cells[index] / cols, cells[index] % cols);
            (col / layout.phases, row, col)
        });
        for emitter in 0..lanes.emitters {
            let chunk_of = |index: usize| layout.lane(emitter, cells[index] % cols) / LANES;
            for part in order.chunk_by(|&a, &b| chunk_of(a) == chunk_of(b)) {
                let chunk = chunk_of(part[0]);
                let start = used[chunk];
                let mut part = part.to_vec();
                part.sort_by_key(|&index| cells[index]);
                let (mut pixels, mut repeated) = (Vec::new(), Vec::new());
                for (k, &index) in part.iter().enumerate() {
                    let (row, col) = (cells[index] / cols, cells[index] % cols);
                    let (at, again) = layout.places(emitter, row, col);
                    pixels.push(((emitter * cells.len() + index) as u32, at));
                    repeated.extend(again.map(|again| (k as u32, again)));
                    let plane = row % 2 * layout.phases + col % layout.phases;
                    let from = plane * LANES + layout.lane(emitter, col) % LANES;
                    let place = chunk * height + row / 2;
                    match visits.last_mut() {
                        Some((last, Visit { from: many, .. })) if k > 0 && *last == place => {
                            many.push(from as u32);
                        }
                        _ => visits.push((place, Visit { from: vec![from as u32], to: start + k })),
                    }
                }
                used[chunk] = (start + part.len()).next_multiple_of(LANES);
                runs.push(Run { chunk, emitter, start, pixels, repeated });
            }
        }
        visits.sort_by_key(|(place, visit)| (*place, visit.to));
        let begins = (0..=lanes.chunks * height)
            .map(|place| visits.partition_point(|visit| visit.0 < place))
            .collect();
        let visits = visits.into_iter().map(|(_, visit)| visit).collect();
        Self { visits, begins, runs, room: used.into_iter().max().unwrap_or(0).max(LANES) }
    }

    /// The visits of a chunk and pair of rows.
    pub(super) fn visits(&self, place: usize) -> &[Visit] {
        &self.visits[self.begins[place]..self.begins[place + 1]]
    }
}

impl Passes<'_> {
    /// Makes room for the pixels of a readout: the logits, then the channels.
    pub(crate) fn room_for(&self, readout: &Readout, ws: &mut Workspace) {
        let (chunks, room) = (self.plan.lanes.chunks, readout.places.room);
        if ws.gathered.len() < chunks * (self.plan.channels + 1) * room {
            ws.gathered = Buffer::new(chunks * (self.plan.channels + 1) * room, 0);
            ws.gathered_gradient = Buffer::new(chunks * room, 0);
        }
        ws.slf_at.resize(self.plan.lanes.emitters * readout.len(), 0.0);
    }

    /// From the pixels of a readout to its SLFs.
    pub(crate) fn read_rows_at(&self, params: &[f32], readout: &Readout, ws: &mut Workspace) {
        let (channels, places) = (self.plan.channels, &readout.places);
        let affine = &ws.affine[self.layout.blocks.len() - 1];
        for run in &places.runs {
            let chunk = &mut ws.gathered[run.chunk * (channels + 1) * places.room..];
            let (logits, values) = chunk.split_at_mut(places.room);
            let len = run.pixels.len().next_multiple_of(LANES);
            let logits = &mut logits[run.start..run.start + len];
            let lane = self.plan.lanes.first_lane(run.emitter);
            let scale = |c: usize| self.lane_scale(params, affine, lane, c);
            logits.fill((0..channels).map(|c| scale(c).1).sum());
            dispatch!(self.level, simd => {
                for c in 0..channels {
                    let values = &values[c * places.room + run.start..][..len];
                    accumulate(simd, scale(c).0, values, logits);
                }
                apply(simd, self.shape.output, logits);
            });
            for (value, &(index, _)) in logits.iter().zip(&run.pixels) {
                ws.slf_at[index as usize] = *value;
            }
        }
    }

    /// Gradient of the logits and the tallies of the last block, from `upstream` at the cells.
    pub(crate) fn write_rows_at(&self, readout: &Readout, upstream: &[f32], ws: &mut Workspace) {
        let (channels, places) = (self.plan.channels, &readout.places);
        let moments = &ws.moments[self.layout.blocks.len() - 1];
        let space = ws.rows.as_mut().expect("made with the plan");
        ws.tallies.fill(Tally::default());
        for run in &places.runs {
            let chunk = &ws.gathered[run.chunk * (channels + 1) * places.room..];
            let (logits, values) = chunk.split_at(places.room);
            let len = run.pixels.len().next_multiple_of(LANES);
            let d = &mut ws.gathered_gradient[run.chunk * places.room + run.start..][..len];
            let g = run.emitter * self.plan.groups / self.plan.lanes.emitters;
            for ((d, value), &(index, at)) in
                d.iter_mut().zip(&logits[run.start..]).zip(&run.pixels)
            {
                *d = upstream[index as usize] * slope(self.shape.output, *value);
                space.logit_gradient[at] += *d;
            }
            // Another readout may have been here before.
            d[run.pixels.len()..].fill(0.0);
            for &(k, at) in &run.repeated {
                space.logit_gradient[at] += d[k as usize];
            }
            for c in 0..channels {
                let values = &values[c * places.room + run.start..][..len];
                let mean = moments[g * channels + c].mean as f32;
                let (plain, scaled) = dispatch!(self.level, simd => total(simd, d, values, mean));
                let tally = &mut ws.tallies[g * channels + c];
                tally.plain += plain;
                tally.scaled += scaled;
            }
        }
    }

    /// The gradient of the logits is zero again where [`Passes::write_rows_at`] wrote.
    pub(crate) fn clear_rows_at(&self, readout: &Readout, ws: &mut Workspace) {
        let space = ws.rows.as_mut().expect("made with the plan");
        for run in &readout.places.runs {
            for &(_, at) in run.pixels.iter().chain(&run.repeated) {
                space.logit_gradient[at] = 0.0;
            }
        }
    }

    /// The same after [`Passes::write_rows`].
    pub(crate) fn clear_rows(&self, ws: &mut Workspace) {
        ws.rows.as_mut().expect("made with the plan").logit_gradient.fill(0.0);
    }

    /// The SLFs everywhere.
    pub(crate) fn read_rows(
        &self,
        rows: &Rows,
        params: &[f32],
        (height, width): (usize, usize),
        ws: &mut Workspace,
    ) {
        let (lanes, stage, channels) = (&self.plan.lanes, rows.last_stage(), self.plan.channels);
        let RowSpace { results, logits, room, .. } = ws.rows.as_mut().expect("made with the plan");
        let (phases, pair) = (rows.last_phases(), 2 * rows.last_phases() * LANES);
        if logits.len() != lanes.chunks * stage.rows * pair {
            *logits = Buffer::new(lanes.chunks * stage.rows * pair, 0);
        }
        ws.slf.resize(lanes.emitters * height * width, 0.0);
        let results = &results[results.len() - 1];
        let affine = &ws.affine[self.layout.blocks.len() - 1];
        let weights = &params[self.layout.out.clone()];
        let len = channels * stage.channel();
        let stride = PER_LANE * LANES * channels;
        let work = |chunk: usize, [logits]: [&mut [f32]; 1], room: &mut [f32]| {
            let results = &results[chunk * len..][..len];
            let affine = &affine[chunk * stride..][..stride];
            let (row, mut ignored) = (&mut room[..pair], [0.0; PER_LANE * LANES]);
            dispatch!(self.level, simd => {
                for (k, out) in logits.chunks_exact_mut(pair).enumerate() {
                    for (c, w) in weights.iter().enumerate() {
                        let image = &results[c * stage.channel()..][..stage.channel()];
                        sum_rows::<_, true>(simd, stage, k, image, &mut ignored, row);
                        weigh(simd, *w, per_lane(affine, c, LANES), c == 0, row, out);
                    }
                    apply(simd, self.shape.output, out);
                }
            });
        };
        each_from(self.parallel, 0, lanes.chunks, [&mut logits[..]], room, &work);
        let logits = &logits[..];
        each_chunk(self.parallel, lanes.emitters, [&mut ws.slf[..]], &|e, [slf]| {
            for (i, slf) in slf.chunks_exact_mut(width).enumerate() {
                for (cell, slf) in slf.chunks_mut(phases).enumerate() {
                    let lane = lanes.first_lane(e) + cell;
                    let row = lane / LANES * 2 * stage.rows + i;
                    let from = &logits[row * phases * LANES + lane % LANES..];
                    for (slf, value) in slf.iter_mut().zip(from.iter().step_by(LANES)) {
                        *slf = *value;
                    }
                }
            }
        });
    }

    /// Gradient of the logits and the tallies of the last block, from `upstream` everywhere.
    pub(crate) fn write_rows(
        &self,
        rows: &Rows,
        upstream: &[f32],
        (height, width): (usize, usize),
        ws: &mut Workspace,
    ) {
        let (lanes, stage, channels) = (&self.plan.lanes, rows.last_stage(), self.plan.channels);
        let layout = Layout::new(rows, lanes);
        let RowSpace { results, logit_gradient, room, .. } =
            ws.rows.as_mut().expect("made with the plan");
        let pixels = upstream.chunks_exact(width).zip(ws.slf.chunks_exact(width));
        for (k, (up, slf)) in pixels.enumerate() {
            let (emitter, row) = (k / height, k % height);
            let cells = up.chunks(layout.phases).zip(slf.chunks(layout.phases));
            for (cell, (up, slf)) in cells.enumerate() {
                let lane = lanes.first_lane(emitter) + cell;
                let to = logit_gradient[layout.at(lane, row, 1)..].iter_mut().step_by(LANES);
                for (to, (up, slf)) in to.zip(up.iter().zip(slf)) {
                    *to = *up * slope(self.shape.output, *slf);
                }
                let first = cell * layout.phases;
                for col in [first, first + up.len() - 1] {
                    if let (at, Some(again)) = layout.places(emitter, row, col) {
                        logit_gradient[again] = logit_gradient[at];
                    }
                }
            }
        }
        let results = &results[results.len() - 1];
        let affine = &ws.affine[self.layout.blocks.len() - 1];
        let (len, stride) = (channels * stage.channel(), PER_LANE * LANES * channels);
        let pair = 2 * layout.phases * LANES;
        let gradient = &logit_gradient[..];
        let work = |chunk: usize, [sums]: [&mut [f32]; 1], room: &mut [f32]| {
            let (row, mut ignored) = (&mut room[..pair], [0.0; PER_LANE * LANES]);
            let affine = &affine[chunk * stride..][..stride];
            sums.fill(0.0);
            dispatch!(self.level, simd => {
                for (c, sums) in sums.chunks_exact_mut(PER_LANE * LANES).enumerate() {
                    let image = &results[chunk * len + c * stage.channel()..][..stage.channel()];
                    let [_, _, mean] = per_lane(affine, c, LANES);
                    for k in 0..stage.rows {
                        sum_rows::<_, true>(simd, stage, k, image, &mut ignored, row);
                        for (i, row) in row.chunks_exact(pair / 2).enumerate() {
                            let d = &gradient[chunk * layout.chunk + (2 * k + i) * layout.pitch..];
                            tally_row(simd, mean, row, &d[LANES..][..pair / 2], sums);
                        }
                    }
                }
            });
        };
        each_from(self.parallel, 0, lanes.chunks, [&mut ws.sums[..]], room, &work);
        self.tally(ws);
    }
}

/// Adds one channel to the logits of some rows, or begins them.
#[inline(always)]
fn weigh<S: Simd>(
    simd: S,
    weight: f32,
    [scale, offset, _]: [&[f32]; PER_LANE],
    begin: bool,
    values: &[f32],
    logits: &mut [f32],
) {
    for lane in (0..LANES).step_by(S::f32s::LEN) {
        let scale = load(simd, scale, lane) * weight;
        let offset = load(simd, offset, lane) * weight;
        for (v, logit) in values.chunks_exact(LANES).zip(logits.chunks_exact_mut(LANES)) {
            let old = if begin { splat(simd, 0.0) } else { load(simd, logit, lane) };
            store::<S>(load(simd, v, lane).mul_add(scale, old + offset), logit, lane);
        }
    }
}

/// Adds the sums of a row's gradient, and of its product with the pixels less their mean.
#[inline(always)]
fn tally_row<S: Simd>(simd: S, mean: &[f32], v: &[f32], d: &[f32], sums: &mut [f32]) {
    for lane in (0..LANES).step_by(S::f32s::LEN) {
        let (mean, zero) = (load(simd, mean, lane), splat(simd, 0.0));
        let (mut plain, mut scaled) = (zero, zero);
        for (v, d) in v.chunks_exact(LANES).zip(d.chunks_exact(LANES)) {
            let d = load(simd, d, lane);
            plain += d;
            scaled = d.mul_add(load(simd, v, lane) - mean, scaled);
        }
        store::<S>(load(simd, sums, lane) + plain, sums, lane);
        store::<S>(load(simd, sums, LANES + lane) + scaled, sums, LANES + lane);
    }
}
