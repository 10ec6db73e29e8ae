//! Normalisation and its way back: statistics of every channel, summed lane by lane.

use std::ops::Range;

use fearless_simd::{dispatch, prelude::*};

use super::VARIANCE_FLOOR;
use super::lanes::{Lanes, image_len};
use super::passes::Passes;
use super::plan::{Moments, PER_LANE, Tally, Workspace};
use super::shape::Normalisation;
use super::upsample::gain;
use crate::simd::{load, splat, store};

/// The three runs of per-lane numbers of channel `c` of a chunk.
#[inline]
pub(super) fn per_lane(chunk: &[f32], c: usize, width: usize) -> [&[f32]; PER_LANE] {
    let all = &chunk[c * PER_LANE * width..][..PER_LANE * width];
    [&all[..width], &all[width..2 * width], &all[2 * width..]]
}

#[inline]
pub(super) fn per_lane_mut(chunk: &mut [f32], c: usize, width: usize) -> [&mut [f32]; PER_LANE] {
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

impl Passes<'_> {
    /// Statistics of block `b`, which has `pixels` in each lane, and from them the scale and offset of every lane.
    pub(super) fn normalise(&self, b: usize, pixels: usize, params: &[f32], ws: &mut Workspace) {
        let plan = self.plan;
        let (lanes, channels) = (&plan.lanes, plan.channels);
        let block = &self.layout.blocks[b];
        let unit = gain(block.upsampling);
        for g in 0..plan.groups {
            for c in 0..channels {
                let (moments, scale, offset) = match self.shape.normalisation {
                    Normalisation::None => (Moments { mean: 0.0, inverse: 1.0 }, unit.recip(), 0.0),
                    _ => {
                        let pixels = pixels as f64;
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

    /// Gradient of the output weights; scales the tallies by them. With several outputs both are
    /// done already.
    pub(super) fn backward_output(&self, params: &[f32], ws: &mut Workspace, grad: &mut [f32]) {
        if self.plan.outputs > 1 {
            let out = grad[self.layout.out.clone()].iter_mut().zip(&ws.outputs.weight_gradient);
            return out.for_each(|(grad, sum)| *grad = *sum as f32);
        }
        let (plan, last) = (self.plan, self.layout.blocks.len() - 1);
        let block = &self.layout.blocks[last];
        let unit = gain(block.upsampling);
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
    pub(super) fn backward_moments(
        &self,
        b: usize,
        pixels: usize,
        params: &[f32],
        ws: &mut Workspace,
        grad: &mut [f32],
    ) {
        let plan = self.plan;
        let (lanes, channels) = (&plan.lanes, plan.channels);
        let block = &self.layout.blocks[b];
        let weighed = b + 1 == self.layout.blocks.len() && plan.outputs == 1;
        let normalised = self.shape.normalisation != Normalisation::None;
        for c in 0..channels {
            let (mut dgamma, mut dbeta) = (0.0, 0.0);
            for g in 0..plan.groups {
                let at = g * channels + c;
                let Moments { mean, inverse } = ws.moments[b][at];
                let Tally { plain, scaled } = ws.tallies[at];
                let range = plan.group(g);
                let n = (range.len() * lanes.cells() * pixels) as f64;
                let (mut scale, mut offset, mut slope) = (gain(block.upsampling).recip(), 0.0, 0.0);
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
    group: Range<usize>,
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
