//! Several outputs of one latent: normalisation, 1 x 1 convolution and output function at the cells
//! that a loss looks at, and back. Each step is a small matrix product over channels and cells.

use fearless_simd::{dispatch, prelude::*};

use super::lanes::image_len;
use super::passes::Passes;
use super::plan::{PER_LANE, Plan, Tally, Workspace};
use super::readout::{Readout, apply, slope, total};
use crate::simd::{Buffer, load, splat, store};

/// Room for the passes below; empty where a latent has one output.
#[derive(Debug)]
pub(super) struct Outputs {
    /// Gradient of the last activations, normalised, in their layout; zero between passes.
    pub gradient: Buffer,
    /// Gradient of the output weights.
    pub weight_gradient: Vec<f64>,
    /// (emitter, channel, cell): activations less their mean.
    centred: Buffer,
    /// (emitter, output, cell), in the order of the readout.
    values: Buffer,
    /// The same for one emitter: gradient of the logits.
    upstream: Buffer,
    /// (channel, cell): gradient of the normalised activations of one emitter.
    features: Buffer,
    /// Output weights times normalisation, then transposed.
    weights: Vec<f32>,
    bias: Vec<f32>,
}

impl Outputs {
    pub(super) fn new(plan: &Plan) -> Self {
        let several = plan.outputs > 1;
        let images =
            plan.lanes.chunks * plan.channels * image_len(plan.last_phases, plan.lanes.width);
        let weights = if several { plan.outputs * plan.channels } else { 0 };
        let empty = || Buffer::new(0, 0);
        Self {
            gradient: Buffer::new(if several { images } else { 0 }, 0),
            weight_gradient: vec![0.0; weights],
            centred: empty(),
            values: empty(),
            upstream: empty(),
            features: empty(),
            weights: vec![0.0; weights],
            bias: vec![0.0; if several { plan.outputs.max(plan.channels) } else { 0 }],
        }
    }

    fn make_room(&mut self, plan: &Plan, row: usize) {
        let (emitters, channels, outputs) = (plan.lanes.emitters, plan.channels, plan.outputs);
        // Never smaller: passes over some cells and over all of them may take turns.
        if self.upstream.len() < outputs * row {
            self.centred = Buffer::new(emitters * channels * row, 0);
            self.values = Buffer::new(emitters * outputs * row, 0);
            self.upstream = Buffer::new(outputs * row, 0);
            self.features = Buffer::new(channels * row, 0);
        }
    }
}

/// How an emitter's channel is normalised: scale (v - mean) + level.
struct Normal {
    scale: f32,
    level: f32,
    mean: f32,
}

impl Passes<'_> {
    fn normal(&self, affine: &[f32], emitter: usize, c: usize) -> Normal {
        let (width, lane) = (self.plan.lanes.width, self.plan.lanes.first_lane(emitter));
        let chunk = lane / width * PER_LANE * width * self.plan.channels;
        let at = chunk + c * PER_LANE * width + lane % width;
        let (scale, offset, mean) = (affine[at], affine[at + width], affine[at + 2 * width]);
        Normal { scale, level: offset + scale * mean, mean }
    }

    /// What [`Passes::read_at`] does for one output: (emitter, output, cell).
    pub(super) fn read_outputs(&self, params: &[f32], readout: &Readout, ws: &mut Workspace) {
        let (plan, cells) = (self.plan, readout.len());
        let (channels, outputs, len) = (plan.channels, plan.outputs, plan.last_len());
        let row = cells.next_multiple_of(16);
        ws.outputs.make_room(plan, row);
        ws.slf_at.resize(plan.lanes.emitters * outputs * cells, 0.0);
        let last = &ws.activations[plan.stages.len() - 1][..];
        let affine = &ws.affine[plan.stages.len() - 1];
        let out = &params[self.layout.out.clone()];
        let Outputs { centred, values, weights, bias, .. } = &mut ws.outputs;
        for (e, places) in readout.activations.chunks_exact(cells.max(1)).enumerate() {
            let centred = &mut centred[e * channels * row..][..channels * row];
            bias.fill(0.0);
            for (c, to) in centred.chunks_exact_mut(row).enumerate() {
                let Normal { scale, level, mean } = self.normal(affine, e, c);
                for (to, &at) in to.iter_mut().zip(places) {
                    *to = last[c * len + at] - mean;
                }
                to[cells..].fill(0.0);
                for (k, bias) in bias[..outputs].iter_mut().enumerate() {
                    weights[k * channels + c] = out[k * channels + c] * scale;
                    *bias += out[k * channels + c] * level;
                }
            }
            let values = &mut values[e * outputs * row..][..outputs * row];
            dispatch!(self.level, simd => {
                mix(simd, row, weights, &bias[..outputs], centred, values);
                apply(simd, self.shape.output, values);
            });
            let slf = ws.slf_at[e * outputs * cells..].chunks_exact_mut(cells);
            for (slf, values) in slf.zip(values.chunks_exact(row)) {
                for (value, &index) in values.iter().zip(&readout.order) {
                    slf[index as usize] = *value;
                }
            }
        }
    }

    /// Gradients of the output weights and of the normalised activations, and the tallies of the
    /// last block, from `upstream` at the cells.
    pub(super) fn write_outputs(
        &self,
        params: &[f32],
        readout: &Readout,
        given: &[f32],
        ws: &mut Workspace,
    ) {
        let (plan, cells) = (self.plan, readout.len());
        let (channels, outputs, len) = (plan.channels, plan.outputs, plan.last_len());
        let row = cells.next_multiple_of(16);
        let affine = &ws.affine[plan.stages.len() - 1];
        let out = &params[self.layout.out.clone()];
        ws.tallies.fill(Tally::default());
        ws.outputs.weight_gradient.fill(0.0);
        let Outputs {
            gradient,
            weight_gradient,
            centred,
            values,
            upstream,
            features,
            weights,
            bias,
        } = &mut ws.outputs;
        for (k, out) in out.chunks_exact(channels).enumerate() {
            out.iter().enumerate().for_each(|(c, w)| weights[c * outputs + k] = *w);
        }
        bias.fill(0.0);
        let (upstream, features) =
            (&mut upstream[..outputs * row], &mut features[..channels * row]);
        for (e, places) in readout.activations.chunks_exact(cells.max(1)).enumerate() {
            let given = given[e * outputs * cells..].chunks_exact(cells);
            let values = values[e * outputs * row..].chunks_exact(row);
            for ((d, given), values) in upstream.chunks_exact_mut(row).zip(given).zip(values) {
                for ((d, value), &index) in d.iter_mut().zip(values).zip(&readout.order) {
                    *d = given[index as usize] * slope(self.shape.output, *value);
                }
                d[cells..].fill(0.0);
            }
            dispatch!(self.level, simd => {
                mix(simd, row, weights, &bias[..channels], upstream, features);
            });
            let g = e * plan.groups / plan.lanes.emitters;
            for (c, dx) in features.chunks_exact(row).enumerate() {
                let Normal { scale, level, .. } = self.normal(affine, e, c);
                let centred = &centred[(e * channels + c) * row..][..row];
                for (d, &at) in dx.iter().zip(places) {
                    gradient[c * len + at] += *d;
                }
                let tally = &mut ws.tallies[g * channels + c];
                let (plain, scaled) = dispatch!(self.level, simd => total(simd, dx, centred, 0.0));
                tally.plain += plain;
                tally.scaled += scaled;
                for (k, d) in upstream.chunks_exact(row).enumerate() {
                    let (plain, scaled) =
                        dispatch!(self.level, simd => total(simd, d, centred, 0.0));
                    weight_gradient[k * channels + c] +=
                        f64::from(scale) * scaled + f64::from(level) * plain;
                }
            }
        }
    }

    /// The gradient of the activations is zero again where [`Passes::write_outputs`] wrote.
    pub(super) fn clear_outputs(&self, readout: &Readout, ws: &mut Workspace) {
        let len = self.plan.last_len();
        for &at in &readout.activations {
            (0..self.plan.channels).for_each(|c| ws.outputs.gradient[c * len + at] = 0.0);
        }
    }
}

/// Outputs worked on at a time.
const BLOCK: usize = 4;

/// y_k = bias_k + sum_c weights_kc x_c, for rows of `row` numbers.
#[inline(always)]
fn mix<S: Simd>(simd: S, row: usize, weights: &[f32], bias: &[f32], x: &[f32], y: &mut [f32]) {
    let inputs = weights.len() / bias.len();
    for at in (0..row).step_by(S::f32s::LEN) {
        let mut k = 0;
        while k + BLOCK <= bias.len() {
            mix_block::<S, BLOCK>(simd, (row, inputs, at, k), weights, bias, x, y);
            k += BLOCK;
        }
        for k in k..bias.len() {
            mix_block::<S, 1>(simd, (row, inputs, at, k), weights, bias, x, y);
        }
    }
}

#[inline(always)]
fn mix_block<S: Simd, const N: usize>(
    simd: S,
    (row, inputs, at, k): (usize, usize, usize, usize),
    weights: &[f32],
    bias: &[f32],
    x: &[f32],
    y: &mut [f32],
) {
    let mut sums = [splat(simd, 0.0); N];
    for (j, sum) in sums.iter_mut().enumerate() {
        *sum = splat(simd, bias[k + j]);
    }
    let weights = &weights[k * inputs..(k + N) * inputs];
    for c in 0..inputs {
        let x = load(simd, x, c * row + at);
        for (j, sum) in sums.iter_mut().enumerate() {
            *sum = x.mul_add(splat(simd, weights[j * inputs + c]), *sum);
        }
    }
    for (j, sum) in sums.into_iter().enumerate() {
        store::<S>(sum, y, (k + j) * row + at);
    }
}
