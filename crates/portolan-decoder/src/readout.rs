//! From the last activations to SLFs and back: everywhere, or only at the cells that a loss looks
//! at. Normalisation and the 1 x 1 convolution are one weighted sum of activations per pixel.

use fearless_simd::{dispatch, prelude::*};

use super::Decoder;
use super::chunks::each_chunk;
use super::moments::tally_lanes;
use super::passes::Passes;
use super::plan::{PER_LANE, Tally, Workspace};
use super::rows::Places;
use super::shape::Output;
use crate::error::DecoderError;
use crate::simd::{Buffer, exp, load, splat, store};

/// Cells at which SLFs are wanted; made by [`Decoder::readout`].
#[derive(Clone, Debug)]
pub struct Readout {
    /// Cells in the order of their planes, which is the order of memory: where in the caller's.
    pub(super) order: Vec<u32>,
    /// Where each (emitter, cell) lies in the last activations' first channel, and in the gradient
    /// of the logits.
    pub(super) activations: Vec<usize>,
    logits: Vec<usize>,
    /// Where they lie if the decoder is worked on row by row; the others are then empty.
    pub(super) places: Places,
    len: usize,
}

impl Readout {
    pub(super) fn new(decoder: &Decoder, cells: &[usize]) -> Result<Self, DecoderError> {
        let (rows, cols) = (decoder.rows(), decoder.cols());
        if let Some(cell) = cells.iter().find(|&&cell| cell >= rows * cols) {
            return Err(DecoderError::OffGrid { cell: *cell, rows, cols });
        }
        let (plan, lanes, len) = (decoder.plan(), &decoder.plan().lanes, cells.len());
        if let Some(rows) = &plan.rows {
            let places = Places::new(rows, lanes, cells, cols);
            let (order, activations, logits) = Default::default();
            return Ok(Self { order, activations, logits, places, len });
        }
        let place = |emitter: usize, index: u32| {
            let cell = cells[index as usize];
            lanes.place(plan.last_phases, emitter, cell / cols, cell % cols)
        };
        let mut order: Vec<u32> = (0..cells.len() as u32).collect();
        order.sort_by_key(|&index| place(0, index));
        let (mut activations, mut logits) = (Vec::new(), Vec::new());
        for emitter in 0..lanes.emitters {
            for &index in &order {
                let (chunk, at) = place(emitter, index);
                activations.push(chunk * plan.channels * plan.last_len() + at);
                logits.push(chunk * plan.last_len() + at);
            }
        }
        Ok(Self { order, activations, logits, places: Places::default(), len })
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it reads no cell.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[inline(always)]
fn activate<S: Simd>(simd: S, output: Output, x: S::f32s) -> S::f32s {
    match output {
        Output::Exponential => exp(simd, x),
        Output::Sigmoid => {
            let one = S::f32s::splat(simd, 1.0);
            one / (one + exp(simd, -x))
        }
    }
}

/// Derivative of the output at the value `s` it took.
#[inline(always)]
pub(super) fn slope(output: Output, s: f32) -> f32 {
    match output {
        Output::Exponential => s,
        Output::Sigmoid => s * (1.0 - s),
    }
}

impl Passes<'_> {
    /// Scale of channel `c` and the offset of all, for one lane, output weights included.
    pub(super) fn lane_scale(
        &self,
        params: &[f32],
        affine: &[f32],
        lane: usize,
        c: usize,
    ) -> (f32, f32) {
        let width = self.plan.lanes.width;
        let chunk = lane / width * PER_LANE * width * self.plan.channels;
        let at = chunk + c * PER_LANE * width + lane % width;
        let weight = params[self.layout.out.start + c];
        (affine[at] * weight, affine[at + width] * weight)
    }

    pub(super) fn read_at(&self, params: &[f32], readout: &Readout, ws: &mut Workspace) {
        let (plan, cells) = (self.plan, readout.len());
        let (channels, len) = (plan.channels, plan.last_len());
        let row = cells.next_multiple_of(16);
        let emitters = plan.lanes.emitters;
        if ws.gathered.len() != (channels + 1) * emitters * row {
            ws.gathered = Buffer::new((channels + 1) * emitters * row, 0);
            ws.gathered_gradient = Buffer::new(emitters * row, 0);
        }
        ws.slf_at.resize(emitters * cells, 0.0);
        if cells == 0 {
            return;
        }
        let last = &ws.activations[plan.stages.len() - 1][..];
        let affine = &ws.affine[plan.stages.len() - 1];
        let (logits, gathered) = ws.gathered.split_at_mut(emitters * row);
        for (e, places) in readout.activations.chunks_exact(cells).enumerate() {
            let logits = &mut logits[e * row..(e + 1) * row];
            let lane = plan.lanes.first_lane(e);
            let offset: f32 =
                (0..channels).map(|c| self.lane_scale(params, affine, lane, c).1).sum();
            logits.fill(offset);
            for c in 0..channels {
                let (to, from) =
                    (&mut gathered[(c * emitters + e) * row..][..row], &last[c * len..]);
                for (to, &at) in to.iter_mut().zip(places) {
                    *to = from[at];
                }
                let (scale, _) = self.lane_scale(params, affine, lane, c);
                dispatch!(self.level, simd => accumulate(simd, scale, to, logits));
            }
            dispatch!(self.level, simd => apply(simd, self.shape.output, logits));
            let slf = &mut ws.slf_at[e * cells..(e + 1) * cells];
            for (value, &index) in logits.iter().zip(&readout.order) {
                slf[index as usize] = *value;
            }
        }
    }

    /// Gradient of the logits and the tallies of the last block, from `upstream` at the cells.
    pub(super) fn write_at(&self, readout: &Readout, upstream: &[f32], ws: &mut Workspace) {
        let (plan, cells) = (self.plan, readout.len());
        let channels = plan.channels;
        let row = cells.next_multiple_of(16);
        let emitters = plan.lanes.emitters;
        let (values, gathered) = ws.gathered.split_at(emitters * row);
        let moments = &ws.moments[plan.stages.len() - 1];
        let logits = &mut ws.logit_gradient[..];
        ws.tallies.fill(Tally::default());
        for (e, places) in readout.logits.chunks_exact(cells.max(1)).enumerate() {
            let g = e * plan.groups / emitters;
            let d = &mut ws.gathered_gradient[e * row..(e + 1) * row];
            let (values, upstream) = (&values[e * row..], &upstream[e * cells..(e + 1) * cells]);
            for ((d, value), &index) in d.iter_mut().zip(values).zip(&readout.order) {
                *d = upstream[index as usize] * slope(self.shape.output, *value);
            }
            // A readout of a few cells more may have been here before.
            d[cells..].fill(0.0);
            for (d, &at) in d.iter().zip(places) {
                logits[at] += *d;
            }
            for c in 0..channels {
                let v = &gathered[(c * emitters + e) * row..][..row];
                let mean = moments[g * channels + c].mean as f32;
                let tally = &mut ws.tallies[g * channels + c];
                let (plain, scaled) = dispatch!(self.level, simd => total(simd, d, v, mean));
                tally.plain += plain;
                tally.scaled += scaled;
            }
        }
    }

    /// The gradient of the logits is zero again where [`Passes::write_at`] wrote.
    pub(super) fn clear_at(&self, readout: &Readout, ws: &mut Workspace) {
        let logits = &mut ws.logit_gradient[..];
        for &at in &readout.logits {
            logits[at] = 0.0;
        }
    }

    pub(super) fn read_all(
        &self,
        params: &[f32],
        (rows, cols): (usize, usize),
        ws: &mut Workspace,
    ) {
        let plan = self.plan;
        let (lanes, channels, len) = (&plan.lanes, plan.channels, plan.last_len());
        if ws.logits.len() != lanes.chunks * len {
            ws.logits = Buffer::new(lanes.chunks * len, 0);
        }
        ws.slf.resize(lanes.emitters * rows * cols, 0.0);
        let last = &ws.activations[plan.stages.len() - 1];
        let affine = &ws.affine[plan.stages.len() - 1];
        let weights = &params[self.layout.out.clone()];
        each_chunk(self.parallel, lanes.chunks, [&mut ws.logits[..]], &|chunk, [logits]| {
            let v = &last[chunk * channels * len..][..channels * len];
            let stride = PER_LANE * lanes.width * channels;
            let affine = &affine[chunk * stride..][..stride];
            dispatch!(self.level, simd => {
                weigh(simd, lanes.width, weights, affine, v, logits);
                apply(simd, self.shape.output, logits);
            });
        });
        let (logits, phases) = (&ws.logits, plan.last_phases);
        each_chunk(self.parallel, lanes.emitters, [&mut ws.slf[..]], &|e, [slf]| {
            for (i, slf) in slf.chunks_exact_mut(cols).enumerate() {
                for (q, slf) in slf.chunks_mut(phases).enumerate() {
                    let (chunk, at) = lanes.place(phases, e, i, q * phases);
                    let from = &logits[chunk * len + at..];
                    for (slf, value) in slf.iter_mut().zip(from.iter().step_by(lanes.width)) {
                        *slf = *value;
                    }
                }
            }
        });
    }

    pub(super) fn write_all(
        &self,
        upstream: &[f32],
        (rows, cols): (usize, usize),
        ws: &mut Workspace,
    ) {
        let plan = self.plan;
        let (lanes, channels, len) = (&plan.lanes, plan.channels, plan.last_len());
        let phases = plan.last_phases;
        let to = &mut ws.logit_gradient[..];
        for (k, (up, slf)) in upstream.chunks_exact(cols).zip(ws.slf.chunks_exact(cols)).enumerate()
        {
            let cells = up.chunks(phases).zip(slf.chunks(phases));
            for (q, (up, slf)) in cells.enumerate() {
                let (chunk, at) = lanes.place(phases, k / rows, k % rows, q * phases);
                let to = to[chunk * len + at..].iter_mut().step_by(lanes.width);
                for (to, (up, slf)) in to.zip(up.iter().zip(slf)) {
                    *to = *up * slope(self.shape.output, *slf);
                }
            }
        }
        let (d, last) = (&ws.logit_gradient, &ws.activations[plan.stages.len() - 1]);
        let affine = &ws.affine[plan.stages.len() - 1];
        let stride = PER_LANE * lanes.width * channels;
        each_chunk(self.parallel, lanes.chunks, [&mut ws.sums[..]], &|chunk, [sums]| {
            let v = &last[chunk * channels * len..][..channels * len];
            let affine = &affine[chunk * stride..][..stride];
            let d = &d[chunk * len..][..len];
            dispatch!(self.level, simd => tally_lanes(simd, lanes.width, phases, affine, v, d, sums));
        });
        self.tally(ws);
    }
}

/// Sums of d and of d (v - mean).
#[inline(always)]
pub(super) fn total<S: Simd>(simd: S, d: &[f32], v: &[f32], mean: f32) -> (f64, f64) {
    let (n, mean) = (S::f32s::LEN, splat(simd, mean));
    let (mut plain, mut scaled) = (splat(simd, 0.0), splat(simd, 0.0));
    for (d, v) in d.chunks_exact(n).zip(v.chunks_exact(n)) {
        let d = load(simd, d, 0);
        plain += d;
        scaled = d.mul_add(load(simd, v, 0) - mean, scaled);
    }
    (f64::from(plain.reduce_sum()), f64::from(scaled.reduce_sum()))
}

/// to += scale * from.
#[inline(always)]
pub(super) fn accumulate<S: Simd>(simd: S, scale: f32, from: &[f32], to: &mut [f32]) {
    let (n, scale) = (S::f32s::LEN, splat(simd, scale));
    for (from, to) in from.chunks_exact(n).zip(to.chunks_exact_mut(n)) {
        store::<S>(load(simd, from, 0).mul_add(scale, load(simd, to, 0)), to, 0);
    }
}

#[inline(always)]
pub(super) fn apply<S: Simd>(simd: S, output: Output, values: &mut [f32]) {
    for chunk in values.chunks_exact_mut(S::f32s::LEN) {
        activate(simd, output, S::f32s::from_slice(simd, chunk)).store_slice(chunk);
    }
}

/// Logits of one chunk.
#[inline(always)]
fn weigh<S: Simd>(
    simd: S,
    width: usize,
    weights: &[f32],
    affine: &[f32],
    v: &[f32],
    logits: &mut [f32],
) {
    let n = S::f32s::LEN;
    let len = logits.len();
    for lane in (0..width).step_by(n) {
        let read = |c: usize, k: usize| {
            S::f32s::from_slice(simd, &affine[(c * PER_LANE + k) * width + lane..][..n])
        };
        let mut offset = S::f32s::splat(simd, 0.0);
        for (c, w) in weights.iter().enumerate() {
            offset += read(c, 1) * *w;
        }
        for at in (lane..len).step_by(width) {
            let mut sum = offset;
            for (c, w) in weights.iter().enumerate() {
                let v = S::f32s::from_slice(simd, &v[c * len + at..][..n]);
                sum = v.mul_add(read(c, 0) * *w, sum);
            }
            sum.store_slice(&mut logits[at..at + n]);
        }
    }
}
