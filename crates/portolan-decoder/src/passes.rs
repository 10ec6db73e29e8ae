//! What the passes through a decoder share: its fixed parts, and latents in and out of the lanes.

use fearless_simd::Level;

use super::lanes::image_len;
use super::plan::Plan;
use super::shape::{ParameterLayout, Shape};
use crate::simd::Buffer;

/// A decoder's fixed parts, as the passes need them.
#[derive(Clone, Copy)]
pub(super) struct Passes<'a> {
    pub shape: &'a Shape,
    pub layout: &'a ParameterLayout,
    pub plan: &'a Plan,
    pub level: Level,
    pub parallel: bool,
}

impl Passes<'_> {
    /// Latents, one after another, into the planes of the first image.
    pub(super) fn spread_latents(&self, latents: &[f32], out: &mut Buffer) {
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

    /// The reverse, for their gradient.
    pub(super) fn collect_latents(&self, from: &[f32], grad: &mut [f32]) {
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
}
