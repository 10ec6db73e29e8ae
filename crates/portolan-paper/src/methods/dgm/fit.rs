//! The joint fit: Adam on the latents, levels and PSDs of all emitters together, PSDs projected onto
//! non-negative values after every step.

use crate::generator::{Generator, GeneratorWorkspace, Sampler};
use portolan::EstimateError;
use portolan::Progress;
use portolan::engine::Descent;
use portolan::engine::Likelihood;
use portolan::engine::Misfit;
use portolan_decoder::adam::Adam;
use portolan_decoder::penalty::add_penalty;

/// Everything that is fitted: X = sum_r exp(level_r) S(z_r) o c_r.
#[derive(Clone, Debug)]
pub(super) struct DgmUnknowns {
    /// Emitters x latent.
    pub latents: Vec<f32>,
    /// Logarithm of each emitter's scale, so that PSDs are near 1 whatever its power.
    pub levels: Vec<f32>,
    /// Emitters x padded bands.
    pub psd: Vec<f32>,
}

/// How the joint fit descends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DgmFitOptions {
    pub descent: Descent,
    pub rate_latent: f64,
    pub rate_psd: f64,
    /// Weight of the latents' squared norm beside the misfit per band.
    pub lambda: f64,
}

/// A generator bound to readings: evaluates the objective and descends it without allocating.
pub(super) struct DgmFit<'a, L: Likelihood<f32>> {
    generator: &'a Generator,
    sampler: &'a Sampler,
    misfit: Misfit<L>,
    /// One over the number of bands.
    share: f32,
    workspace: GeneratorWorkspace,
    pub gradient: DgmUnknowns,
    slf: Vec<f32>,
    grad_slf: Vec<f32>,
}

impl<'a, L: Likelihood<f32>> DgmFit<'a, L> {
    pub fn new(
        generator: &'a Generator,
        sampler: &'a Sampler,
        misfit: Misfit<L>,
        emitters: usize,
        bands: usize,
    ) -> Self {
        let at_sensors = vec![0.0; emitters * sampler.len()];
        Self {
            generator,
            sampler,
            share: 1.0 / bands as f32,
            workspace: generator.workspace(emitters),
            gradient: DgmUnknowns {
                latents: vec![0.0; emitters * generator.latent_len()],
                levels: vec![0.0; emitters],
                psd: vec![0.0; emitters * misfit.padded()],
            },
            misfit,
            slf: at_sensors.clone(),
            grad_slf: at_sensors,
        }
    }

    /// Misfit per band and penalty at a point; their gradient is left in `self.gradient`.
    pub fn evaluate(&mut self, at: &DgmUnknowns, lambda: f64) -> f64 {
        let sensors = self.sampler.len();
        self.generator.forward(&at.latents, self.sampler, &mut self.workspace);
        let drawn = self.workspace.ln_slf().chunks_exact(sensors);
        for ((slf, ln_slf), level) in self.slf.chunks_exact_mut(sensors).zip(drawn).zip(&at.levels)
        {
            slf.iter_mut().zip(ln_slf).for_each(|(s, f)| *s = (f + level).exp());
        }
        let gradient = &mut self.gradient;
        let misfit =
            self.misfit.gradient(&self.slf, &at.psd, &mut self.grad_slf, &mut gradient.psd);
        gradient.psd.iter_mut().for_each(|g| *g *= self.share);
        // From S to ln S.
        self.grad_slf.iter_mut().zip(&self.slf).for_each(|(g, s)| *g *= s * self.share);
        for (level, grad) in gradient.levels.iter_mut().zip(self.grad_slf.chunks_exact(sensors)) {
            *level = grad.iter().sum();
        }
        let grad_latents = &mut gradient.latents;
        self.generator.backward(&self.grad_slf, self.sampler, &mut self.workspace, grad_latents);
        misfit * f64::from(self.share) + add_penalty(lambda, &at.latents, grad_latents)
    }

    /// Descends from `at`; returns the loss before every iteration.
    pub fn descend(
        &mut self,
        at: &mut DgmUnknowns,
        options: &DgmFitOptions,
        progress: &Progress<'_>,
    ) -> Result<Vec<f64>, EstimateError> {
        let mut latents = Adam::new(at.latents.len());
        let mut levels = Adam::new(at.levels.len());
        let mut psd = Adam::new(at.psd.len());
        let trace = options.descent.run(
            progress,
            &mut (self, at),
            |(fit, at)| fit.evaluate(at, options.lambda),
            |(fit, at), factor| {
                let rate = options.rate_psd * factor;
                latents.step(options.rate_latent * factor, &mut at.latents, &fit.gradient.latents);
                levels.step(rate, &mut at.levels, &fit.gradient.levels);
                psd.step_nonnegative(rate, &mut at.psd, &fit.gradient.psd);
            },
        );
        trace.map_err(|halt| halt.explained("lr_latent or lr_psd"))
    }
}
