//! A decoder learns to draw given SLFs: Adam on the squared error of ln(S + a), over all cells.

use fearless_simd::{Level, dispatch};

use crate::descent::Halt;
use crate::engine::problem::ImitationOptions;
use crate::progress::Progress;
use portolan_decoder::adam::Adam;
use portolan_decoder::simd::{LANES, ln};
use portolan_decoder::{Decoder, Network, Workspace};

/// A decoder bound to SLFs: evaluates the objective and descends it without allocating.
pub(super) struct Imitation<'a> {
    decoder: &'a Decoder,
    /// ln(S + a), emitters x cells.
    targets: &'a [f32],
    offset: f32,
    workspace: Workspace,
    gradient: Network,
    upstream: Vec<f32>,
    level: Level,
}

impl<'a> Imitation<'a> {
    pub fn new(decoder: &'a Decoder, targets: &'a [f32], offset: f32) -> Self {
        Self {
            decoder,
            targets,
            offset,
            workspace: decoder.workspace(),
            gradient: Network::zeros(decoder),
            upstream: vec![0.0; targets.len()],
            level: Level::new(),
        }
    }

    /// The loss at a point; its gradient is left in `self.gradient`.
    fn evaluate(&mut self, at: &Network) -> f64 {
        self.decoder.forward(&at.params, &at.latents, &mut self.workspace);
        let loss = dispatch!(self.level, simd => {
            let _ = simd;
            log_misfit(self.workspace.slf(), self.targets, self.offset, &mut self.upstream)
        });
        let Network { params, latents } = &mut self.gradient;
        self.decoder.backward(&at.params, &self.upstream, &mut self.workspace, params, latents);
        f64::from(loss)
    }

    /// Descends from `at`; returns the loss before every iteration.
    pub fn descend(
        &mut self,
        at: &mut Network,
        options: &ImitationOptions,
        progress: &Progress<'_>,
    ) -> Result<Vec<f64>, Halt> {
        let mut network = Adam::new(at.params.len());
        let mut latents = Adam::new(at.latents.len());
        options.descent.run(
            progress,
            &mut (self, at),
            |(imitation, at)| imitation.evaluate(at),
            |(imitation, at), factor| {
                let rate = options.rate * factor;
                network.step(rate, &mut at.params, &imitation.gradient.params);
                latents.step(rate, &mut at.latents, &imitation.gradient.latents);
            },
        )
    }
}

/// Squared error of ln(drawn + offset) against targets; its gradient goes into `upstream`.
#[inline(always)]
fn log_misfit(drawn: &[f32], targets: &[f32], offset: f32, upstream: &mut [f32]) -> f32 {
    let mut sums = [0.0f32; LANES];
    let drawn_chunks = drawn.chunks(LANES).zip(targets.chunks(LANES));
    for ((drawn, targets), upstream) in drawn_chunks.zip(upstream.chunks_mut(LANES)) {
        for (((sum, drawn), target), up) in sums.iter_mut().zip(drawn).zip(targets).zip(upstream) {
            let power = drawn + offset;
            let miss = ln(power) - target;
            *sum += miss * miss;
            *up = 2.0 * miss / power;
        }
    }
    sums.iter().sum()
}
