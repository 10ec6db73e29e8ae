//! All blocks backward: from the gradient of the logits to those of parameters and latents.

use fearless_simd::dispatch;

use super::border::Border;
use super::chunks::{each_chunk, each_from};
use super::lanes::image_len;
use super::moments::{per_lane, tally_lanes};
use super::passes::Passes;
use super::plan::{PER_LANE, Stage, Workspace};
use super::shape::Upsampling;
use super::source::Source;
use super::upsample::Coefficients;
use super::winograd::{Cut, two};
use super::{convolve, upsample};
use crate::simd::{Buffer, reduce};

/// What the way back through one block reads.
struct WayBack<'a> {
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

impl Passes<'_> {
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
            self.backward_moments(b, stage.out_phases.pow(2), params, ws, grad);
            let weights = &params[self.layout.blocks[b].conv.clone()];
            if stage.winograd {
                two::pack(&stage.size, weights, true, &mut ws.packed);
            } else {
                convolve::pack_backward(&stage.size, weights, &mut ws.packed);
            }
            let last = b + 1 == blocks;
            let several = self.plan.outputs > 1;
            // One buffer for the gradient that comes in, one for the gradient that goes out.
            let [even, odd] = &mut ws.gradients;
            let (read, write) = if b % 2 == 0 { (odd, even) } else { (even, odd) };
            let pass = WayBack {
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
            let dw = &mut ws.weight_gradient[..lanes.chunks * stage.size.weights()];
            let dx = &mut write[..lanes.chunks * stage.lens.input];
            let sums = &mut ws.sums[..];
            let room = &mut ws.room[..];
            if lanes.local() {
                self.back_by_chunk(&pass, [dw, dx, sums], room);
            } else {
                let planes = [&mut ws.small, &mut ws.margin, &mut ws.input_margin];
                self.back_by_step(&pass, [dw, dx, sums], planes, room);
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

    /// One block where no chunk needs another: all steps of a chunk while it is in the cache.
    fn back_by_chunk(&self, pass: &WayBack<'_>, out: [&mut [f32]; 3], room: &mut [f32]) {
        let (lanes, stage) = (&self.plan.lanes, pass.stage);
        let work = |chunk: usize, [dw, dx, sums]: [&mut [f32]; 3], room: &mut [f32]| {
            let ([mut small, mut margin, mut input], tiles) = self.plan.rooms(stage, room);
            if let Some(up) = &stage.up {
                self.shrink(pass, chunk, margin.inside());
                let source = Source::scratch(lanes, margin.all, margin.guard);
                self.fold(up, source, chunk, small.inside());
            } else {
                self.shrink(pass, chunk, small.inside());
            }
            self.correlate(pass, chunk, small.inside(), tiles, [dw, input.inside()]);
            let source = Source::scratch(lanes, input.all, input.guard);
            self.fold_input(pass, source, chunk, [dx, sums]);
        };
        each_from(self.parallel, 0, lanes.chunks, out, room, &work);
    }

    /// One block where chunks read from each other: each step for all chunks before the next.
    fn back_by_step(
        &self,
        pass: &WayBack<'_>,
        [dw, dx, sums]: [&mut [f32]; 3],
        [small, margin, framed]: [&mut Buffer; 3],
        room: &mut [f32],
    ) {
        let (lanes, stage) = (&self.plan.lanes, pass.stage);
        let (parallel, chunks, lens) = (self.parallel, lanes.chunks, &stage.lens);
        let small_len = chunks * lens.small;
        if let Some(up) = &stage.up {
            let margin_len = chunks * lens.margin;
            each_chunk(parallel, chunks, [&mut margin[..margin_len]], &|chunk, [out]| {
                self.shrink(pass, chunk, out);
            });
            let source = Source::new(lanes, margin, margin_len);
            each_chunk(parallel, chunks, [&mut small[..small_len]], &|chunk, [dy]| {
                self.fold(up, source, chunk, dy);
            });
        } else {
            each_chunk(parallel, chunks, [&mut small[..small_len]], &|chunk, [out]| {
                self.shrink(pass, chunk, out);
            });
        }
        let framed_len = chunks * lens.framed;
        let work = |chunk: usize, out: [&mut [f32]; 2], tiles: &mut [f32]| {
            let dy = &small[chunk * lens.small..][..lens.small];
            self.correlate(pass, chunk, dy, tiles, out);
        };
        each_from(parallel, 0, chunks, [dw, &mut framed[..framed_len]], room, &work);
        let source = Source::new(lanes, framed, framed_len);
        each_chunk(parallel, chunks, [dx, sums], &|chunk, out| {
            self.fold_input(pass, source, chunk, out);
        });
    }

    /// The gradient of the convolution's result, from that of the activations; bilinear
    /// upsampling leaves a margin to be folded.
    fn shrink(&self, pass: &WayBack<'_>, chunk: usize, out: &mut [f32]) {
        let stage = pass.stage;
        let (width, phases) = (self.plan.lanes.width, stage.size.phases);
        let channels = self.plan.channels;
        let len = image_len(stage.out_phases, width);
        let stride = PER_LANE * width * channels;
        let coefficients = &pass.coefficients[chunk * stride..][..stride];
        let out_len = out.len() / channels;
        dispatch!(self.level, simd => {
            for (c, out) in out.chunks_exact_mut(out_len).enumerate() {
                let [scale, offset, slope] = per_lane(coefficients, c, width);
                let by = Coefficients { scale, offset, slope };
                let image = chunk * channels + c;
                let v = &pass.activations[image * len..][..len];
                // The gradient of the logits serves all channels.
                let dx = &pass.gradient[if pass.shared { chunk } else { image } * len..][..len];
                if stage.upsampling == Upsampling::Bilinear {
                    upsample::bilinear_backward(simd, phases, width, by, v, dx, out);
                } else {
                    let scale = stage.upsampling.scale();
                    upsample::repeat_backward(simd, scale, phases, width, by, v, dx, out);
                }
            }
        });
    }

    /// Folds a margin into its image.
    fn fold(&self, margin: &Border, source: Source<'_>, chunk: usize, out: &mut [f32]) {
        dispatch!(self.level, simd => margin.fold(simd, source, chunk, out));
    }

    /// Gradients of the weights, and of the input with its margin.
    fn correlate(
        &self,
        pass: &WayBack<'_>,
        chunk: usize,
        dy: &[f32],
        tiles: &mut [f32],
        [dw, dx]: [&mut [f32]; 2],
    ) {
        let (size, len) = (&pass.stage.size, pass.stage.lens.framed);
        let x = &pass.inputs[chunk * len..][..len];
        let cut = &Cut::whole(size);
        dispatch!(self.level, simd => {
            convolve::backward_weights(
                simd,
                size,
                cut,
                x,
                dy,
                #[inline(always)]
                |k, sum| dw[k] = reduce(simd, sum),
            );
        });
        let packed = pass.packed;
        if pass.stage.winograd {
            dx.fill(0.0);
            dispatch!(self.level, simd => {
                two::backward_input(simd, size, cut, packed, tiles, dy, dx);
            });
        } else {
            dispatch!(self.level, simd => convolve::backward_input(simd, size, packed, dy, dx));
        }
    }

    /// Gradient of the input without its margin, and per lane its sums with the activations there.
    fn fold_input(
        &self,
        pass: &WayBack<'_>,
        source: Source<'_>,
        chunk: usize,
        [dx, sums]: [&mut [f32]; 2],
    ) {
        self.fold(&pass.stage.pad, source, chunk, dx);
        if let Some((v, affine)) = pass.before {
            let width = self.plan.lanes.width;
            let (len, stride) = (pass.stage.lens.input, PER_LANE * width * self.plan.channels);
            let v = &v[chunk * len..][..len];
            let affine = &affine[chunk * stride..][..stride];
            let phases = pass.stage.size.phases;
            dispatch!(self.level, simd => tally_lanes(simd, width, phases, affine, v, dx, sums));
        }
    }
}
