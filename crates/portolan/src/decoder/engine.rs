//! The blocks, forward and backward, chunk by chunk. Chunks are worked on in any order, or at the
//! same time, and their sums are added in the order of the chunks: the result does not depend on
//! the number of threads.

use fearless_simd::{Level, dispatch, prelude::*};

use super::lanes::{Affine, Lanes, Source, image_len};
use super::plan::{Moments, PER_LANE, Plan, Stage, Tally, Workspace};
use super::shape::{Layout, Normalisation, Shape, Upsampling};
use super::upsample::{Coefficients, Sums, gain};
use super::{VARIANCE_FLOOR, convolve, upsample, winograd};
use crate::simd::{Buffer, load, splat, store};

/// A decoder's fixed parts, as the passes need them.
#[derive(Clone, Copy)]
pub(super) struct Engine<'a> {
    pub shape: &'a Shape,
    pub layout: &'a Layout,
    pub plan: &'a Plan,
    pub level: Level,
    pub parallel: bool,
}

/// What the way back through one block reads.
struct Pass<'a> {
    stage: &'a Stage,
    activations: &'a [f32],
    /// Gradient of the normalised activations, one for each channel or one shared by all.
    gradient: &'a [f32],
    shared: bool,
    coefficients: &'a [f32],
    inputs: &'a [f32],
    packed: &'a [f32],
    /// Activations of the block before, and their scales, offsets and means.
    before: Option<(&'a [f32], &'a [f32])>,
}

/// Calls `work(chunk, its part of each buffer)` for every chunk.
pub(super) fn each_chunk<const N: usize>(
    parallel: bool,
    chunks: usize,
    buffers: [&mut [f32]; N],
    work: &(impl Fn(usize, [&mut [f32]; N]) + Sync),
) {
    each_from(parallel, 0, chunks, buffers, &mut [], &|chunk, parts, _: &mut [f32]| {
        work(chunk, parts);
    });
}

/// The same with room to work in: one per chunk where they run at the same time, else one for all.
fn each_from<const N: usize>(
    parallel: bool,
    first: usize,
    chunks: usize,
    mut buffers: [&mut [f32]; N],
    scratch: &mut [f32],
    work: &(impl Fn(usize, [&mut [f32]; N], &mut [f32]) + Sync),
) {
    if chunks == 1 {
        return work(first, buffers, scratch);
    }
    let half = chunks / 2;
    let mut rest: [&mut [f32]; N] = std::array::from_fn(|_| Default::default());
    for (buffer, rest) in buffers.iter_mut().zip(&mut rest) {
        let whole = std::mem::take(buffer);
        let at = whole.len() / chunks * half;
        (*buffer, *rest) = whole.split_at_mut(at);
    }
    if parallel {
        let at = scratch.len() / chunks * half;
        let (left, right) = scratch.split_at_mut(at);
        rayon::join(
            || each_from(parallel, first, half, buffers, left, work),
            || each_from(parallel, first + half, chunks - half, rest, right, work),
        );
    } else {
        each_from(parallel, first, half, buffers, scratch, work);
        each_from(parallel, first + half, chunks - half, rest, scratch, work);
    }
}

/// The three runs of per-lane numbers of channel `c` of a chunk.
fn per_lane(chunk: &[f32], c: usize, width: usize) -> [&[f32]; PER_LANE] {
    let all = &chunk[c * PER_LANE * width..][..PER_LANE * width];
    [&all[..width], &all[width..2 * width], &all[2 * width..]]
}

fn per_lane_mut(chunk: &mut [f32], c: usize, width: usize) -> [&mut [f32]; PER_LANE] {
    let all = &mut chunk[c * PER_LANE * width..][..PER_LANE * width];
    let (first, rest) = all.split_at_mut(width);
    let (second, third) = rest.split_at_mut(width);
    [first, second, third]
}

/// Sum of `f(a, b, c)` over three runs of equal length, eight partial sums at a time.
#[inline(always)]
fn sum_of([a, b, c]: [&[f32]; 3], f: impl Fn(f64, f64, f64) -> f64) -> f64 {
    let mut parts = [0.0; 8];
    let whole = a.len() / 8 * 8;
    let eights = a.chunks_exact(8).zip(b.chunks_exact(8)).zip(c.chunks_exact(8));
    for ((a, b), c) in eights {
        for k in 0..8 {
            parts[k] += f(f64::from(a[k]), f64::from(b[k]), f64::from(c[k]));
        }
    }
    for k in whole..a.len() {
        parts[0] += f(f64::from(a[k]), f64::from(b[k]), f64::from(c[k]));
    }
    parts.iter().sum::<f64>()
}

impl Engine<'_> {
    /// All blocks: leaves the last activations and their scale and offset in the workspace.
    pub(super) fn forward(&self, params: &[f32], latents: &[f32], ws: &mut Workspace) {
        let lanes = &self.plan.lanes;
        self.spread_latents(latents, &mut ws.latent);
        for (b, stage) in self.plan.stages.iter().enumerate() {
            let weights = &params[self.layout.blocks[b].conv.clone()];
            if stage.winograd {
                winograd::pack(&stage.size, weights, false, &mut ws.packed);
            } else {
                convolve::pack_forward(&stage.size, weights, &mut ws.packed);
            }
            let packed = &ws.packed;
            let (before, after) = ws.activations.split_at_mut(b);
            let (from, affine) = match b {
                0 => (&ws.latent, None),
                _ => (&before[b - 1], Some(&ws.affine[b - 1])),
            };
            let (x, v, sums) = (&mut ws.inputs[b][..], &mut after[0][..], &mut ws.sums[..]);
            let lens = &stage.lens;
            if lanes.local() {
                let work = |chunk: usize, [x, v, sums]: [&mut [f32]; 3], room: &mut [f32]| {
                    let ([mut small, mut margin, _], tiles) = self.plan.rooms(stage, room);
                    dispatch!(self.level, simd => {
                        self.expand(simd, stage, from, affine, chunk, x);
                        convolve(simd, stage, packed, tiles, x, small.inside());
                        let source = Source::scratch(lanes, small.all, small.guard);
                        self.enlarge(simd, stage, source, chunk, [v, margin.inside(), sums]);
                    });
                };
                let (parallel, room) = (self.parallel, &mut ws.room[..]);
                each_from(parallel, 0, lanes.chunks, [x, v, sums], room, &work);
            } else {
                let small = &mut ws.small[..lanes.chunks * lens.small];
                let work = |chunk: usize, [x, y]: [&mut [f32]; 2], tiles: &mut [f32]| {
                    dispatch!(self.level, simd => {
                        self.expand(simd, stage, from, affine, chunk, x);
                        convolve(simd, stage, packed, tiles, x, y);
                    });
                };
                let (parallel, room) = (self.parallel, &mut ws.room[..]);
                each_from(parallel, 0, lanes.chunks, [x, small], room, &work);
                let source = Source::new(lanes, &ws.small, lanes.chunks * lens.small);
                let margin = &mut ws.margin[..lanes.chunks * lens.margin];
                let buffers = [v, margin, sums];
                each_chunk(self.parallel, lanes.chunks, buffers, &|chunk, parts| {
                    dispatch!(self.level, simd => {
                        self.enlarge(simd, stage, source, chunk, parts);
                    });
                });
            }
            self.normalise(b, stage, params, ws);
        }
    }

    fn spread_latents(&self, latents: &[f32], out: &mut Buffer) {
        let (lanes, phases) = (&self.plan.lanes, self.plan.first_phases);
        if phases == 1 {
            for (e, latent) in latents.chunks_exact(lanes.cells()).enumerate() {
                out[lanes.first_lane(e)..][..latent.len()].copy_from_slice(latent);
            }
            return;
        }
        let stride = image_len(phases, lanes.width);
        let cols = lanes.cols * phases;
        for (e, image) in latents.chunks_exact(latents.len() / lanes.emitters).enumerate() {
            for (k, value) in image.iter().enumerate() {
                let (chunk, at) = lanes.place(phases, e, k / cols, k % cols);
                out[chunk * stride + at] = *value;
            }
        }
    }

    fn collect_latents(&self, from: &[f32], grad: &mut [f32]) {
        let (lanes, phases) = (&self.plan.lanes, self.plan.first_phases);
        if phases == 1 {
            for (e, grad) in grad.chunks_exact_mut(lanes.cells()).enumerate() {
                grad.copy_from_slice(&from[lanes.first_lane(e)..][..grad.len()]);
            }
            return;
        }
        let stride = image_len(phases, lanes.width);
        let cols = lanes.cols * phases;
        let len = grad.len() / lanes.emitters;
        for (e, image) in grad.chunks_exact_mut(len).enumerate() {
            for (k, value) in image.iter_mut().enumerate() {
                let (chunk, at) = lanes.place(phases, e, k / cols, k % cols);
                *value = from[chunk * stride + at];
            }
        }
    }

    /// The convolution's input: the last block's activations with a margin, scaled and offset.
    #[inline(always)]
    fn expand<S: Simd>(
        &self,
        simd: S,
        stage: &Stage,
        from: &Buffer,
        affine: Option<&Buffer>,
        chunk: usize,
        x: &mut [f32],
    ) {
        let (lanes, size) = (&self.plan.lanes, &stage.size);
        let source = Source::new(lanes, from, lanes.chunks * size.inputs * size.inner_len());
        let stride = PER_LANE * lanes.width * self.plan.channels;
        let affine = affine.map(|affine| Affine(&affine[chunk * stride..][..stride]));
        stage.pad.expand(simd, source, affine, chunk, x);
    }

    /// Upsampling, ReLU and the sums for normalisation.
    #[inline(always)]
    fn enlarge<S: Simd>(
        &self,
        simd: S,
        stage: &Stage,
        small: Source<'_>,
        chunk: usize,
        [v, margin, sums]: [&mut [f32]; 3],
    ) {
        let size = &stage.size;
        let (width, phases) = (self.plan.lanes.width, size.phases);
        let out_len = image_len(stage.out_phases, width);
        if let Some(up) = &stage.up {
            up.expand(simd, small, None, chunk, margin);
        }
        for (c, v) in v.chunks_exact_mut(out_len).enumerate() {
            let [origin, first, second] = per_lane_mut(sums, c, width);
            let sums = Sums { origin, first, second };
            if let Some(up) = &stage.up {
                let len = image_len(up.outer, width);
                upsample::bilinear(simd, phases, width, &margin[c * len..][..len], v, sums);
            } else {
                let y = small.image(chunk, c, size.inner_len());
                upsample::repeat(simd, self.shape.scale(), phases, width, y, v, sums);
            }
        }
    }

    /// Statistics of block `b`, and from them the scale and offset of every lane.
    fn normalise(&self, b: usize, stage: &Stage, params: &[f32], ws: &mut Workspace) {
        let plan = self.plan;
        let (lanes, channels) = (&plan.lanes, plan.channels);
        let block = &self.layout.blocks[b];
        let unit = gain(self.shape.upsampling);
        for g in 0..plan.groups {
            for c in 0..channels {
                let (moments, scale, offset) = match self.shape.normalisation {
                    Normalisation::None => (Moments { mean: 0.0, inverse: 1.0 }, unit.recip(), 0.0),
                    _ => {
                        let pixels = (stage.out_phases * stage.out_phases) as f64;
                        let (mean, variance) = dispatch!(self.level, simd => {
                            let _ = simd;
                            mean_and_variance(lanes, plan.group(g), pixels, &ws.sums, channels, c)
                        });
                        let deviation = (variance / (unit * unit) + VARIANCE_FLOOR).sqrt();
                        let inverse = (deviation * unit).recip();
                        let scale = f64::from(params[block.gamma.start + c]) * inverse;
                        let offset = f64::from(params[block.beta.start + c]) - scale * mean;
                        (Moments { mean, inverse }, scale, offset)
                    }
                };
                ws.moments[b][g * channels + c] = moments;
                let stride = PER_LANE * lanes.width * channels;
                for (chunk, range) in lanes.segments(plan.group(g)) {
                    let chunk = &mut ws.affine[b][chunk * stride..][..stride];
                    let [scales, offsets, means] = per_lane_mut(chunk, c, lanes.width);
                    scales[range.clone()].fill(scale as f32);
                    offsets[range.clone()].fill(offset as f32);
                    means[range].fill(moments.mean as f32);
                }
            }
        }
    }

    /// All blocks, backward. `ws.logit_gradient` holds the gradient of the logits, `ws.tallies` its
    /// sums with the last activations (per group and channel, not yet times the output weights).
    pub(super) fn backward(
        &self,
        params: &[f32],
        ws: &mut Workspace,
        grad: &mut [f32],
        grad_latents: &mut [f32],
    ) {
        let (lanes, blocks) = (&self.plan.lanes, self.plan.stages.len());
        self.backward_output(params, ws, grad);
        for (b, stage) in self.plan.stages.iter().enumerate().rev() {
            self.backward_moments(b, stage, params, ws, grad);
            let weights = &params[self.layout.blocks[b].conv.clone()];
            if stage.winograd {
                winograd::pack(&stage.size, weights, true, &mut ws.packed);
            } else {
                convolve::pack_backward(&stage.size, weights, &mut ws.packed);
            }
            let last = b + 1 == blocks;
            let several = self.plan.outputs > 1;
            // One buffer for the gradient that comes in, one for the gradient that goes out.
            let [even, odd] = &mut ws.gradients;
            let (read, write) = if b % 2 == 0 { (odd, even) } else { (even, odd) };
            let pass = Pass {
                stage,
                activations: &ws.activations[b],
                gradient: match (last, several) {
                    (false, _) => read,
                    (true, false) => &ws.logit_gradient,
                    (true, true) => &ws.outputs.gradient,
                },
                shared: last && !several,
                coefficients: &ws.coefficients,
                inputs: &ws.inputs[b],
                packed: &ws.packed,
                before: (b > 0).then(|| (&ws.activations[b - 1][..], &ws.affine[b - 1][..])),
            };
            let lens = &stage.lens;
            let dw = &mut ws.weight_gradient[..lanes.chunks * stage.size.weights()];
            let dx = &mut write[..lanes.chunks * lens.input];
            let sums = &mut ws.sums[..];
            if lanes.local() {
                let work = |chunk: usize, [dw, dx, sums]: [&mut [f32]; 3], room: &mut [f32]| {
                    let ([mut small, mut margin, mut input], tiles) = self.plan.rooms(stage, room);
                    dispatch!(self.level, simd => {
                        if let Some(up) = &stage.up {
                            self.shrink(simd, &pass, chunk, margin.inside());
                            let source = Source::scratch(lanes, margin.all, margin.guard);
                            up.fold(simd, source, chunk, small.inside());
                        } else {
                            self.shrink(simd, &pass, chunk, small.inside());
                        }
                        let out = [dw, input.inside()];
                        self.correlate(simd, &pass, chunk, small.inside(), tiles, out);
                        let source = Source::scratch(lanes, input.all, input.guard);
                        self.fold_input(simd, &pass, source, chunk, [dx, sums]);
                    });
                };
                let (parallel, room) = (self.parallel, &mut ws.room[..]);
                each_from(parallel, 0, lanes.chunks, [dw, dx, sums], room, &work);
            } else {
                let small_len = lanes.chunks * lens.small;
                let (parallel, chunks) = (self.parallel, lanes.chunks);
                if let Some(up) = &stage.up {
                    let margin_len = lanes.chunks * lens.margin;
                    each_chunk(
                        parallel,
                        chunks,
                        [&mut ws.margin[..margin_len]],
                        &|chunk, [out]| {
                            dispatch!(self.level, simd => self.shrink(simd, &pass, chunk, out));
                        },
                    );
                    let source = Source::new(lanes, &ws.margin, margin_len);
                    each_chunk(parallel, chunks, [&mut ws.small[..small_len]], &|chunk, [dy]| {
                        dispatch!(self.level, simd => up.fold(simd, source, chunk, dy));
                    });
                } else {
                    each_chunk(parallel, chunks, [&mut ws.small[..small_len]], &|chunk, [out]| {
                        dispatch!(self.level, simd => self.shrink(simd, &pass, chunk, out));
                    });
                }
                let framed_len = lanes.chunks * lens.framed;
                let (dy, framed) = (&ws.small, &mut ws.input_margin[..framed_len]);
                let work = |chunk: usize, out: [&mut [f32]; 2], tiles: &mut [f32]| {
                    let dy = &dy[chunk * lens.small..][..lens.small];
                    dispatch!(self.level, simd => {
                        self.correlate(simd, &pass, chunk, dy, tiles, out);
                    });
                };
                each_from(parallel, 0, chunks, [dw, framed], &mut ws.room[..], &work);
                let source = Source::new(lanes, &ws.input_margin, framed_len);
                each_chunk(parallel, chunks, [dx, sums], &|chunk, out| {
                    dispatch!(self.level, simd => {
                        self.fold_input(simd, &pass, source, chunk, out);
                    });
                });
            }
            let grad = &mut grad[self.layout.blocks[b].conv.clone()];
            let parts = ws.weight_gradient.chunks_exact(stage.size.weights());
            for (chunk, part) in parts.take(lanes.chunks).enumerate() {
                if chunk == 0 {
                    grad.copy_from_slice(part);
                } else {
                    grad.iter_mut().zip(part).for_each(|(g, p)| *g += p);
                }
            }
            if b > 0 {
                self.tally(ws);
            }
        }
        self.collect_latents(&ws.gradients[0], grad_latents);
    }

    /// Gradient of the output weights; scales the tallies by them. With several outputs both are
    /// done already.
    fn backward_output(&self, params: &[f32], ws: &mut Workspace, grad: &mut [f32]) {
        if self.plan.outputs > 1 {
            let out = grad[self.layout.out.clone()].iter_mut().zip(&ws.outputs.weight_gradient);
            return out.for_each(|(grad, sum)| *grad = *sum as f32);
        }
        let (plan, last) = (self.plan, self.plan.stages.len() - 1);
        let block = &self.layout.blocks[last];
        let unit = gain(self.shape.upsampling);
        for c in 0..plan.channels {
            let weight = f64::from(params[self.layout.out.start + c]);
            let (scale, offset) = match self.shape.normalisation {
                Normalisation::None => (unit.recip(), 0.0),
                _ => (
                    f64::from(params[block.gamma.start + c]),
                    f64::from(params[block.beta.start + c]),
                ),
            };
            let mut sum = 0.0;
            for g in 0..plan.groups {
                let at = g * plan.channels + c;
                let tally = &mut ws.tallies[at];
                sum += scale * ws.moments[last][at].inverse * tally.scaled + offset * tally.plain;
                tally.plain *= weight;
                tally.scaled *= weight;
            }
            grad[self.layout.out.start + c] = sum as f32;
        }
    }

    /// Gradients of scale and offset, and the coefficients of the way back through normalisation.
    fn backward_moments(
        &self,
        b: usize,
        stage: &Stage,
        params: &[f32],
        ws: &mut Workspace,
        grad: &mut [f32],
    ) {
        let plan = self.plan;
        let (lanes, channels) = (&plan.lanes, plan.channels);
        let block = &self.layout.blocks[b];
        let weighed = b + 1 == plan.stages.len() && plan.outputs == 1;
        let normalised = self.shape.normalisation != Normalisation::None;
        for c in 0..channels {
            let (mut dgamma, mut dbeta) = (0.0, 0.0);
            for g in 0..plan.groups {
                let at = g * channels + c;
                let Moments { mean, inverse } = ws.moments[b][at];
                let Tally { plain, scaled } = ws.tallies[at];
                let range = plan.group(g);
                let pixels = lanes.cells() * stage.out_phases * stage.out_phases;
                let n = (range.len() * pixels) as f64;
                let (mut scale, mut offset, mut slope) =
                    (gain(self.shape.upsampling).recip(), 0.0, 0.0);
                if normalised {
                    dgamma += scaled * inverse;
                    dbeta += plain;
                    scale = f64::from(params[block.gamma.start + c]) * inverse;
                    slope = scale * inverse * inverse * scaled / n;
                    offset = scale * plain / n - slope * mean;
                }
                if weighed {
                    scale *= f64::from(params[self.layout.out.start + c]);
                }
                let stride = PER_LANE * lanes.width * channels;
                for (chunk, range) in lanes.segments(range) {
                    let chunk = &mut ws.coefficients[chunk * stride..][..stride];
                    let [scales, offsets, slopes] = per_lane_mut(chunk, c, lanes.width);
                    scales[range.clone()].fill(scale as f32);
                    offsets[range.clone()].fill(offset as f32);
                    slopes[range].fill(slope as f32);
                }
            }
            if normalised {
                grad[block.gamma.start + c] = dgamma as f32;
                grad[block.beta.start + c] = dbeta as f32;
            }
        }
    }

    /// The gradient of the convolution's result, from that of the activations; bilinear
    /// upsampling leaves a margin to be folded.
    #[inline(always)]
    fn shrink<S: Simd>(&self, simd: S, pass: &Pass<'_>, chunk: usize, out: &mut [f32]) {
        let stage = pass.stage;
        let (width, phases) = (self.plan.lanes.width, stage.size.phases);
        let channels = self.plan.channels;
        let len = image_len(stage.out_phases, width);
        let stride = PER_LANE * width * channels;
        let coefficients = &pass.coefficients[chunk * stride..][..stride];
        let out_len = out.len() / channels;
        for (c, out) in out.chunks_exact_mut(out_len).enumerate() {
            let [scale, offset, slope] = per_lane(coefficients, c, width);
            let by = Coefficients { scale, offset, slope };
            let image = chunk * channels + c;
            let v = &pass.activations[image * len..][..len];
            // The gradient of the logits serves all channels.
            let dx = &pass.gradient[if pass.shared { chunk } else { image } * len..][..len];
            if self.shape.upsampling == Upsampling::Bilinear {
                upsample::bilinear_backward(simd, phases, width, by, v, dx, out);
            } else {
                let scale = self.shape.scale();
                upsample::repeat_backward(simd, scale, phases, width, by, v, dx, out);
            }
        }
    }

    /// Gradients of the weights, and of the input with its margin.
    #[inline(always)]
    fn correlate<S: Simd>(
        &self,
        simd: S,
        pass: &Pass<'_>,
        chunk: usize,
        dy: &[f32],
        tiles: &mut [f32],
        [dw, dx]: [&mut [f32]; 2],
    ) {
        let (size, len) = (&pass.stage.size, pass.stage.lens.framed);
        let x = &pass.inputs[chunk * len..][..len];
        convolve::backward_weights(simd, size, x, dy, dw);
        if pass.stage.winograd {
            winograd::backward_input(simd, size, pass.packed, tiles, dy, dx);
        } else {
            convolve::backward_input(simd, size, pass.packed, dy, dx);
        }
    }

    /// Gradient of the input without its margin, and per lane its sums with the activations there.
    #[inline(always)]
    fn fold_input<S: Simd>(
        &self,
        simd: S,
        pass: &Pass<'_>,
        source: Source<'_>,
        chunk: usize,
        [dx, sums]: [&mut [f32]; 2],
    ) {
        pass.stage.pad.fold(simd, source, chunk, dx);
        if let Some((v, affine)) = pass.before {
            let width = self.plan.lanes.width;
            let (len, stride) = (pass.stage.lens.input, PER_LANE * width * self.plan.channels);
            let v = &v[chunk * len..][..len];
            let affine = &affine[chunk * stride..][..stride];
            tally_lanes(simd, width, pass.stage.size.phases, affine, v, dx, sums);
        }
    }

    /// Adds the lanes' sums up to one tally per group and channel.
    pub(super) fn tally(&self, ws: &mut Workspace) {
        let (plan, channels) = (self.plan, self.plan.channels);
        let stride = PER_LANE * plan.lanes.width * channels;
        for g in 0..plan.groups {
            for c in 0..channels {
                let mut tally = Tally::default();
                for (chunk, range) in plan.lanes.segments(plan.group(g)) {
                    let [plain, scaled, _] =
                        per_lane(&ws.sums[chunk * stride..][..stride], c, plan.lanes.width);
                    let parts = [&plain[range.clone()], &scaled[range.clone()], &plain[range]];
                    dispatch!(self.level, simd => {
                        let _ = simd;
                        tally.plain += sum_of(parts, #[inline(always)] |plain, _, _| plain);
                        tally.scaled += sum_of(parts, #[inline(always)] |_, scaled, _| scaled);
                    });
                }
                ws.tallies[g * channels + c] = tally;
            }
        }
    }
}

#[inline(always)]
fn convolve<S: Simd>(
    simd: S,
    stage: &Stage,
    packed: &[f32],
    tiles: &mut [f32],
    x: &[f32],
    y: &mut [f32],
) {
    if stage.winograd {
        winograd::forward(simd, &stage.size, packed, tiles, x, y);
    } else {
        convolve::forward(simd, &stage.size, packed, x, y);
    }
}

/// Per lane and channel, the sums of a gradient and of its product with the activations' distance
/// from their mean. Every channel has a gradient of its own, or all share one.
#[inline(always)]
pub(super) fn tally_lanes<S: Simd>(
    simd: S,
    width: usize,
    phases: usize,
    affine: &[f32],
    v: &[f32],
    dx: &[f32],
    sums: &mut [f32],
) {
    let zero = splat(simd, 0.0);
    let (len, used) = (image_len(phases, width), phases * phases * width);
    for ((c, v), dx) in v.chunks_exact(len).enumerate().zip(dx.chunks_exact(len).cycle()) {
        let [_, _, means] = per_lane(affine, c, width);
        let [plains, scaleds, _] = per_lane_mut(sums, c, width);
        for lane in (0..width).step_by(S::f32s::LEN) {
            let mean = load(simd, means, lane);
            // Two of each, so that one sum need not wait for the other.
            let (mut plain, mut scaled) = ([zero; 2], [zero; 2]);
            for (v, dx) in v[..used].chunks_exact(width).zip(dx[..used].chunks_exact(width)) {
                let d = load(simd, dx, lane);
                plain[0] += d;
                scaled[0] = d.mul_add(load(simd, v, lane) - mean, scaled[0]);
                plain.swap(0, 1);
                scaled.swap(0, 1);
            }
            store::<S>(plain[0] + plain[1], plains, lane);
            store::<S>(scaled[0] + scaled[1], scaleds, lane);
        }
    }
}

/// Over the pixels of a group of lanes, from the sums of each lane about its own origin (Chan,
/// Golub and LeVeque's pairwise update, all lanes at once).
#[inline(always)]
fn mean_and_variance(
    lanes: &Lanes,
    group: std::ops::Range<usize>,
    pixels: f64,
    sums: &[f32],
    channels: usize,
    c: usize,
) -> (f64, f64) {
    let stride = PER_LANE * lanes.width * channels;
    let count = (group.len() * lanes.cells()) as f64;
    let share = pixels.recip();
    let (mut mean, mut square) = (0.0, 0.0);
    for (chunk, range) in lanes.segments(group.clone()) {
        let parts = per_lane(&sums[chunk * stride..][..stride], c, lanes.width)
            .map(|part| &part[range.clone()]);
        mean += sum_of(
            parts,
            #[inline(always)]
            |origin, first, _| first * share + origin,
        );
    }
    mean /= count;
    for (chunk, range) in lanes.segments(group) {
        let parts = per_lane(&sums[chunk * stride..][..stride], c, lanes.width)
            .map(|part| &part[range.clone()]);
        square += sum_of(
            parts,
            #[inline(always)]
            |origin, first, second| {
                let off = first * share + origin - mean;
                second - first * first * share + pixels * off * off
            },
        );
    }
    (mean, (square * share / count).max(0.0))
}
