//! All blocks forward: margin, convolution, upsampling, ReLU and normalisation.

use fearless_simd::dispatch;

use super::chunks::{each_chunk, each_from};
use super::lanes::image_len;
use super::moments::per_lane_mut;
use super::passes::Passes;
use super::plan::{PER_LANE, Stage, Workspace};
use super::source::{Affine, Source};
use super::upsample::Sums;
use super::winograd::{Cut, two};
use super::{convolve, upsample};
use crate::simd::Buffer;

impl Passes<'_> {
    /// All blocks: leaves the last activations and their scale and offset in the workspace.
    pub(super) fn forward(&self, params: &[f32], latents: &[f32], ws: &mut Workspace) {
        let lanes = &self.plan.lanes;
        self.spread_latents(latents, &mut ws.latent);
        for (b, stage) in self.plan.stages.iter().enumerate() {
            let weights = &params[self.layout.blocks[b].conv.clone()];
            if stage.winograd {
                two::pack(&stage.size, weights, false, &mut ws.packed);
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
                    self.expand(stage, from, affine, chunk, x);
                    self.convolve(stage, packed, tiles, x, small.inside());
                    let source = Source::scratch(lanes, small.all, small.guard);
                    self.enlarge(stage, source, chunk, [v, margin.inside(), sums]);
                };
                let (parallel, room) = (self.parallel, &mut ws.room[..]);
                each_from(parallel, 0, lanes.chunks, [x, v, sums], room, &work);
            } else {
                let small = &mut ws.small[..lanes.chunks * lens.small];
                let work = |chunk: usize, [x, y]: [&mut [f32]; 2], tiles: &mut [f32]| {
                    self.expand(stage, from, affine, chunk, x);
                    self.convolve(stage, packed, tiles, x, y);
                };
                let (parallel, room) = (self.parallel, &mut ws.room[..]);
                each_from(parallel, 0, lanes.chunks, [x, small], room, &work);
                let source = Source::new(lanes, &ws.small, lanes.chunks * lens.small);
                let margin = &mut ws.margin[..lanes.chunks * lens.margin];
                let buffers = [v, margin, sums];
                each_chunk(self.parallel, lanes.chunks, buffers, &|chunk, parts| {
                    self.enlarge(stage, source, chunk, parts);
                });
            }
            self.normalise(b, stage.out_phases.pow(2), params, ws);
        }
    }

    /// The convolution's input: the last block's activations with a margin, scaled and offset.
    fn expand(
        &self,
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
        dispatch!(self.level, simd => stage.pad.expand(simd, source, affine, chunk, x));
    }

    fn convolve(&self, stage: &Stage, packed: &[f32], tiles: &mut [f32], x: &[f32], y: &mut [f32]) {
        let size = &stage.size;
        if stage.winograd {
            let cut = &Cut::whole(size);
            dispatch!(self.level, simd => two::forward(simd, size, cut, packed, tiles, x, y));
        } else {
            dispatch!(self.level, simd => convolve::forward(simd, size, packed, x, y));
        }
    }

    /// Upsampling, ReLU and the sums for normalisation.
    fn enlarge(
        &self,
        stage: &Stage,
        small: Source<'_>,
        chunk: usize,
        [v, margin, sums]: [&mut [f32]; 3],
    ) {
        let size = &stage.size;
        let (width, phases) = (self.plan.lanes.width, size.phases);
        let out_len = image_len(stage.out_phases, width);
        dispatch!(self.level, simd => {
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
                    upsample::repeat(simd, stage.upsampling.scale(), phases, width, y, v, sums);
                }
            }
        });
    }
}
