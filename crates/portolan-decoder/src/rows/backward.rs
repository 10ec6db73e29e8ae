//! All blocks backward, from the gradient of the logits to those of parameters and latents.

use fearless_simd::{dispatch, prelude::*};

use super::edges::{Flags, choose};
use super::forward::Before;
use super::give::{Slopes, four, give, open, pairs};
use super::{RowSpace, RowStage, Rows, first};
use crate::chunks::each_from;
use crate::convolve;
use crate::moments::per_lane;
use crate::passes::Passes;
use crate::plan::{PER_LANE, Workspace};
use crate::shape::reflect;
use crate::simd::{LANES, add_reduced, load, splat, store};
use crate::winograd::{Cut, four, two};

/// What the way back through one block reads.
struct WayBack<'a> {
    rows: &'a Rows,
    stage: &'a RowStage,
    results: &'a [f32],
    /// The last block: gradient of the logits.
    logits: Option<&'a [f32]>,
    /// Another block: shares of the pixels' gradients.
    shares: Option<&'a [f32]>,
    coefficients: &'a [f32],
    weights: &'a [f32],
    packed: &'a [f32],
    latents: &'a [f32],
    /// The convolution's input, or that one's factors, where it was kept.
    kept: &'a [f32],
}

impl Passes<'_> {
    /// All blocks, backward. The gradient of the logits and the tallies are in the workspace.
    pub(crate) fn backward_rows(
        &self,
        rows: &Rows,
        params: &[f32],
        ws: &mut Workspace,
        grad: &mut [f32],
        grad_latents: &mut [f32],
    ) {
        let (chunks, blocks) = (self.plan.lanes.chunks, rows.stages.len());
        self.backward_output(params, ws, grad);
        for (b, stage) in rows.stages.iter().enumerate().rev() {
            self.backward_moments(b, stage.pixels(), params, ws, grad);
            let space = ws.rows.as_mut().expect("made with the plan");
            let RowSpace { latents, kept, results, shares, weight_gradient, room, packed, .. } =
                space;
            let weights = &params[self.layout.blocks[b].conv.clone()];
            let (before, after) = shares.split_at_mut(b);
            let way = WayBack {
                rows,
                stage,
                results: &results[b],
                logits: (b + 1 == blocks).then_some(&space.logit_gradient),
                shares: after.first().map(|shares| &shares[..]),
                coefficients: &ws.coefficients,
                weights,
                packed: &packed[b][if stage.fours { 0 } else { 1 }],
                latents,
                kept: &kept[b],
            };
            let count = if stage.fours { four::GRADIENT } else { stage.size.weights() * LANES };
            let dw = &mut weight_gradient[..chunks * count];
            if b == 0 {
                let dx = &mut space.latent_gradient[..];
                each_from(
                    self.parallel,
                    0,
                    chunks,
                    [dw, dx],
                    room,
                    &|chunk, out, room: &mut [f32]| {
                        self.first_back(&way, chunk, out, room);
                    },
                );
            } else {
                let from = &rows.stages[b - 1];
                let before_it =
                    Before { stage: from, results: &results[b - 1], affine: &ws.affine[b - 1] };
                let (owed, sums) = (&mut before[b - 1], &mut ws.sums[..]);
                let out = [dw, &mut owed[..], sums];
                each_from(self.parallel, 0, chunks, out, room, &|chunk, out, room: &mut [f32]| {
                    self.back(&way, before_it, chunk, out, room);
                });
                self.settle_rows(rows, from, owed);
            }
            let grad = &mut grad[self.layout.blocks[b].conv.clone()];
            grad.fill(0.0);
            for dw in weight_gradient[..chunks * count].chunks_exact(count) {
                dispatch!(self.level, simd => match stage.fours {
                    true => four::unpack(dw, grad),
                    false => add_reduced(simd, LANES, dw, grad),
                });
            }
            if b > 0 {
                self.tally(ws);
            }
        }
        let space = ws.rows.as_ref().expect("made with the plan");
        self.collect_columns(rows, &space.latent_gradient, grad_latents);
    }

    /// One chunk of the first block: gradients of weights and of the latents with their margin.
    fn first_back(
        &self,
        way: &WayBack<'_>,
        chunk: usize,
        [dw, dx]: [&mut [f32]; 2],
        room: &mut [f32],
    ) {
        let stage = way.stage;
        let (_, room) = room.split_at_mut(stage.tiles());
        let (beyond, room) = room.split_at_mut(stage.pitch());
        let dy = &mut room[..stage.size.outputs * stage.strip_channel()];
        dw.fill(0.0);
        dx.fill(0.0);
        let x = &way.latents[chunk * dx.len()..][..dx.len()];
        dispatch!(self.level, simd => {
            result_gradient(simd, way, chunk, (0, stage.rows), dy, beyond);
            first::backward(simd, stage, way.weights, x, dy, dw, dx);
        });
    }

    /// One chunk of another block, strip by strip: gradients of weights, and what the pixels before
    /// owe to the result before.
    fn back(
        &self,
        way: &WayBack<'_>,
        before: Before<'_>,
        chunk: usize,
        [dw, owed, sums]: [&mut [f32]; 3],
        room: &mut [f32],
    ) {
        let (stage, flags) = (way.stage, way.rows.flags(chunk));
        let (channel, pitch) = (stage.strip_channel(), stage.pitch());
        let (tiles, room) = room.split_at_mut(stage.tiles());
        let (beyond, room) = room.split_at_mut(pitch);
        let (x, room) = room.split_at_mut(stage.size.inputs * channel);
        let (dx, room) = room.split_at_mut(stage.size.inputs * channel);
        let (dy, room) = room.split_at_mut(stage.size.outputs * channel);
        let (dy_factors, x_factors) = room.split_at_mut(stage.factors());
        dw.fill(0.0);
        sums.fill(0.0);
        for dx in dx.chunks_exact_mut(channel) {
            dx[..2 * pitch].fill(0.0);
        }
        let kept = &way.kept[chunk * stage.kept()..][..stage.kept()];
        for from in (0..stage.rows).step_by(stage.strip) {
            let to = (from + stage.strip).min(stage.rows);
            let (size, cut) = (&stage.size, &Cut { y_channel: channel, ..stage.cut(to - from) });
            dispatch!(self.level, simd => {
                result_gradient(simd, way, chunk, (from, to), dy, beyond);
            });
            if kept.is_empty() {
                self.input_strip(way.rows, stage, before, chunk, (from, to), x);
            }
            let inner = &dy[LANES..];
            if stage.fours {
                let len = four::factors(size, to - from);
                let (dy_factors, x_factors) = (&mut dy_factors[..len], &mut x_factors[..]);
                dispatch!(self.level, simd => {
                    let out = (inner, &mut *dy_factors);
                    four::backward_input(simd, size, cut, way.packed, tiles, out, dx);
                });
                let x = if kept.is_empty() {
                    dispatch!(self.level, simd => four::read_input(simd, size, cut, x, x_factors));
                    &x_factors[..len]
                } else {
                    kept
                };
                dispatch!(self.level, simd => {
                    four::backward_weights(simd, size, cut, x, dy_factors, dw);
                });
            } else {
                let x = if kept.is_empty() { &*x } else { kept };
                dispatch!(self.level, simd => {
                    convolve::backward_weights(
                        simd,
                        size,
                        cut,
                        x,
                        inner,
                        #[inline(always)]
                        |k, sum| add_to(simd, sum, dw, k * LANES),
                    );
                });
                dispatch!(self.level, simd => {
                    two::backward_input(simd, size, cut, way.packed, tiles, inner, dx);
                });
            }
            dispatch!(self.level, simd => {
                fold_rows(simd, way, flags, (from, to), dx);
                owe(simd, way, before, chunk, (from, to), dx, owed, sums, &mut beyond[..before.stage.pitch()]);
            });
            // The rows that the next strip adds to go first.
            let rows = to - from;
            if to < stage.rows {
                for dx in dx.chunks_exact_mut(channel) {
                    dx.copy_within(rows * pitch..(rows + 2) * pitch, 0);
                }
                for dy in dy.chunks_exact_mut(channel) {
                    dy.copy_within(rows * pitch..(rows + 1) * pitch, 0);
                }
            }
        }
    }

    /// Folds the margin of the latents' gradient.
    fn collect_columns(&self, rows: &Rows, from: &[f32], grad: &mut [f32]) {
        let (lanes, height) = (&self.plan.lanes, rows.stages[0].rows);
        let (cols, len) = (lanes.cols, (height + 2) * 3 * LANES);
        grad.fill(0.0);
        for (e, grad) in grad.chunks_exact_mut(height * cols).enumerate() {
            for slot in 0..height + 2 {
                let row = slot as isize - 1;
                let inside = usize::try_from(row).is_ok_and(|row| row < height);
                for col in 0..cols {
                    let lane = e * cols + col;
                    let at = lane / LANES * len + slot * 3 * LANES + lane % LANES;
                    for (plane, step) in [-1, 0, 1].into_iter().enumerate() {
                        let to = col as isize + step;
                        let within = usize::try_from(to).is_ok_and(|col| col < cols);
                        if rows.mirrored || (inside && within) {
                            grad[reflect(row, height) * cols + reflect(to, cols)] +=
                                from[at + plane * LANES];
                        }
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn add_to<S: Simd>(simd: S, value: S::f32s, to: &mut [f32], at: usize) {
    store::<S>(load(simd, to, at) + value, to, at);
}

/// Gradient of the convolution's result from row `from` to `to`; `dy` begins with row `from`, and
/// what the row after the last gets so far follows.
#[inline(always)]
fn result_gradient<S: Simd>(
    simd: S,
    way: &WayBack<'_>,
    chunk: usize,
    (from, to): (usize, usize),
    dy: &mut [f32],
    beyond: &mut [f32],
) {
    let (stage, pitch) = (way.stage, way.stage.pitch());
    let image = stage.size.outputs * stage.channel();
    let stride = PER_LANE * LANES * stage.size.outputs;
    let coefficients = &way.coefficients[chunk * stride..][..stride];
    let (out, zero) = (stage.out_pitch(), splat(simd, 0.0));
    for (c, dy) in dy.chunks_exact_mut(stage.strip_channel()).enumerate() {
        let coefficients = per_lane(coefficients, c, LANES);
        let row = |i: usize| &way.results[chunk * image + stage.row(c, i)..][..pitch];
        let begin = if from == 0 { -1 } else { from as isize };
        for k in begin..to as isize {
            let (upper, lower) = (k.max(0) as usize, ((k + 1) as usize).min(stage.rows - 1));
            let between = [row(upper), row(lower)];
            let slot = (k + 1) as usize - from;
            let shares = way
                .shares
                .map_or(&[][..], |shares| &shares[chunk * image + stage.row(c, lower)..][..pitch]);
            let target = match (k < 0, k + 1 == stage.rows as isize) {
                (true, _) => [&mut *beyond, &mut dy[..pitch]],
                (_, true) => [&mut dy[(slot - 1) * pitch..slot * pitch], &mut *beyond],
                _ => {
                    let (a, b) = dy[(slot - 1) * pitch..(slot + 1) * pitch].split_at_mut(pitch);
                    [a, b]
                }
            };
            let [to_upper, to_lower] = target;
            for lane in (0..LANES).step_by(S::f32s::LEN) {
                let slopes = &Slopes::new(simd, coefficients, lane);
                let target = [&mut *to_upper, &mut *to_lower];
                if let Some(logits) = way.logits {
                    let d = |i: isize| {
                        let i = i.clamp(0, 2 * stage.rows as isize - 1) as usize;
                        &logits[chunk * way.rows.logits() + i * out..][..out]
                    };
                    give(
                        simd,
                        lane,
                        between,
                        target,
                        #[inline(always)]
                        |_| zero,
                        pairs([d(2 * k + 1), d(2 * k + 2)]),
                        #[inline(always)]
                        |d, v| slopes.of(simd, four(simd, d, lane), v),
                    );
                } else {
                    give(
                        simd,
                        lane,
                        between,
                        target,
                        #[inline(always)]
                        |plane| load(simd, shares, plane * LANES + lane) * slopes.scale,
                        std::iter::repeat(()),
                        #[inline(always)]
                        |(), v| slopes.of_none(simd, v),
                    );
                }
            }
        }
    }
}

/// to += scale from, plane by plane.
#[inline(always)]
fn add_scaled<S: Simd>(simd: S, scale: &[f32], from: &[f32], to: &mut [f32]) {
    for lane in (0..LANES).step_by(S::f32s::LEN) {
        let scale = load(simd, scale, lane);
        for (from, to) in from.chunks_exact(LANES).zip(to.chunks_exact_mut(LANES)) {
            store::<S>(load(simd, from, lane).mul_add(scale, load(simd, to, lane)), to, lane);
        }
    }
}

/// Where rows of the input's gradient are complete after a strip, counted in the strip, which begins
/// with the row before `from`: all but the last two, unless the image ends here.
fn complete(way: &WayBack<'_>, (from, to): (usize, usize)) -> usize {
    if to == way.stage.rows { to - from + 2 } else { to - from }
}

/// Folds the margin of the input's gradient where rows are complete; then the sides at the border
/// repeat the outermost pixel.
#[inline(always)]
fn fold_rows<S: Simd>(
    simd: S,
    way: &WayBack<'_>,
    flags: Flags<'_>,
    (from, to): (usize, usize),
    dx: &mut [f32],
) {
    let (stage, pitch, mirrored) = (way.stage, way.stage.pitch(), way.rows.mirrored);
    let end = pitch - LANES;
    let zero = splat(simd, 0.0);
    for dx in dx.chunks_exact_mut(stage.strip_channel()) {
        if mirrored && from == 0 {
            let (above, rest) = dx.split_at_mut(2 * pitch);
            add_scaled(simd, &[1.0; LANES], &above[..pitch], &mut rest[..pitch]);
        }
        if mirrored && to == stage.rows {
            let (above, rest) = dx.split_at_mut((to - from + 1) * pitch);
            let row = (to - from - 1) * pitch;
            add_scaled(simd, &[1.0; LANES], &rest[..pitch], &mut above[row..row + pitch]);
        }
        for row in dx.chunks_exact_mut(pitch).take(complete(way, (from, to))) {
            for lane in (0..LANES).step_by(S::f32s::LEN) {
                let (left, right) = (load(simd, row, lane), load(simd, row, end + lane));
                if mirrored {
                    let share = choose(simd, flags.first, lane, left, zero);
                    add_to(simd, share, row, 2 * LANES + lane);
                    let share = choose(simd, flags.last, lane, right, zero);
                    add_to(simd, share, row, end - 2 * LANES + lane);
                }
                let side = load(simd, row, LANES + lane);
                store::<S>(choose(simd, flags.first, lane, side, left), row, lane);
                let side = load(simd, row, end - LANES + lane);
                store::<S>(choose(simd, flags.last, lane, side, right), row, end + lane);
            }
        }
    }
}

/// From the input's gradient, where it is complete, to what it owes to the result of the block before,
/// and its sums with the pixels.
#[inline(always)]
fn owe<S: Simd>(
    simd: S,
    way: &WayBack<'_>,
    before: Before<'_>,
    chunk: usize,
    (from, to): (usize, usize),
    dx: &[f32],
    owed: &mut [f32],
    sums: &mut [f32],
    beyond: &mut [f32],
) {
    let (stage, pitch, small) = (way.stage, way.stage.pitch(), before.stage.pitch());
    let height = before.stage.rows as isize;
    let flags = way.rows.flags(chunk);
    let begin = (from / 2) as isize - 1;
    let end = if to == stage.rows { height } else { (to / 2) as isize - 1 };
    let (zero, one) = (splat(simd, 0.0), splat(simd, 1.0));
    for c in 0..stage.size.inputs {
        let dx = &dx[c * stage.strip_channel()..][..stage.strip_channel()];
        let owed = &mut owed[c * before.stage.channel()..][..before.stage.channel()];
        let [_, _, mean] = before.lanes(chunk, c);
        let sums = &mut sums[c * PER_LANE * LANES..][..PER_LANE * LANES];
        for k in begin..end {
            let upper = k.max(0) as usize;
            let lower = ((k + 1) as usize).min(before.stage.rows - 1);
            let between = [before.row(chunk, c, upper), before.row(chunk, c, lower)];
            let d = |i: isize| {
                let i = i.clamp(0, stage.rows as isize - 1) as usize + 1 - from;
                &dx[i * pitch..(i + 1) * pitch]
            };
            let gradients = [d(2 * k + 1), d(2 * k + 2)];
            let target = match (k < 0, k + 1 == height) {
                (true, _) => [&mut *beyond, &mut owed[..small]],
                (_, true) => [&mut owed[upper * small..][..small], &mut *beyond],
                _ => {
                    let (a, b) = owed[upper * small..][..2 * small].split_at_mut(small);
                    [a, b]
                }
            };
            let [to_upper, to_lower] = target;
            // A row beyond the border repeats another and is not counted.
            let counted = [k >= 0, k + 1 < height].map(|yes| if yes { one } else { zero });
            for lane in (0..LANES).step_by(S::f32s::LEN) {
                let mean = load(simd, mean, lane);
                let (mut plain, mut scaled) = ([zero; 2], [zero; 2]);
                // The sides at the border repeat another pixel of their lane.
                let left = choose(simd, flags.first, lane, zero, one);
                let right = choose(simd, flags.last, lane, zero, one);
                give(
                    simd,
                    lane,
                    between,
                    [&mut *to_upper, &mut *to_lower],
                    #[inline(always)]
                    |_| zero,
                    pairs(gradients).enumerate(),
                    #[inline(always)]
                    |(pair, d), v| {
                        let d = four(simd, d, lane);
                        let left = if pair == 0 { left } else { one };
                        let right = if pair == before.stage.size.phases { right } else { one };
                        for k in 0..4 {
                            let d = d[k] * if k % 2 == 0 { left } else { right };
                            plain[k / 2] += d;
                            scaled[k / 2] = d.mul_add(v[k].max(zero) - mean, scaled[k / 2]);
                        }
                        open(simd, v, d)
                    },
                );
                for row in 0..2 {
                    add_to(simd, plain[row] * counted[row], sums, lane);
                    add_to(simd, scaled[row] * counted[row], sums, LANES + lane);
                }
            }
        }
    }
}
