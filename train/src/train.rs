//! The training loop: an autoencoder with latents pulled to a standard normal (Kingma and Welling
//! 2014, with the residual's variance at its best value as in Rybkin et al. 2021), a critic on
//! samples (hinge loss, spectral norm), and samples' second-order statistics matched to the
//! simulator's. Everything random follows from the seed and the step's number alone.

use std::path::Path;

use anyhow::{Result, bail};
use burn::backend::Autodiff;
use burn::tensor::backend::Backend;
use burn::tensor::{Int, Tensor, TensorData, activation};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::checkpoint::Store;
use crate::fields::{CELLS, DB, SIDE, SPAN};
use crate::networks::{
    LATENT, Norm, SPECTRAL, critic_layout, criticise, encode, encoder_layout, generate,
    generator_layout, spectral_scales,
};
use crate::params::{Adam, Layout};
use crate::target::{Fields, Target};
use crate::variogram::Operator;

/// What is trained and how. A checkpoint can only be resumed with the same plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    pub steps: u64,
    pub batch: usize,
    pub seed: u64,
    /// Weight of the critic's verdict.
    pub adversarial: f64,
    /// Weight of the variogram's relative squared error.
    pub variogram: f64,
    pub rate: f64,
}

const CRITIC_RATE: f64 = 4e-4;
/// Weight of the mean and spread of ln S over samples, cell by cell.
const MOMENTS: f64 = 1.0;
/// Steps, as a part of all, after which the critic's verdict counts in full; from half of it on it
/// begins to count.
const WARM_UP: f64 = 0.1;

type A<B> = Autodiff<B>;

/// Names of the figures that a step reports.
pub const FIGURES: [&str; 6] = ["rmse_dB", "kl", "variogram", "moments", "fooled", "critic"];

pub struct Trainer<B: Backend> {
    pub plan: Plan,
    pub step: u64,
    device: B::Device,
    generator: Layout,
    encoder: Layout,
    critic: Layout,
    /// Generator, then encoder.
    model: Tensor<B, 1>,
    model_adam: Adam<B>,
    critic_flat: Tensor<B, 1>,
    critic_adam: Adam<B>,
    vectors: Vec<Tensor<B, 2>>,
    operator: Operator<A<B>>,
}

/// One step's random numbers, on the device.
struct Draw<B: Backend> {
    fields: Tensor<B, 3>,
    noise: Tensor<B, 2>,
    latents: Tensor<B, 2>,
}

impl<B: Backend> Trainer<B> {
    pub fn new(plan: Plan, device: &B::Device) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(plan.seed);
        let generator = generator_layout(&mut rng);
        let encoder = encoder_layout(&mut rng);
        let critic = critic_layout(&mut rng);
        let model = Tensor::cat(vec![generator.initial(device), encoder.initial(device)], 0);
        let critic_flat = critic.initial::<B>(device);
        let weights = critic.split(&critic_flat);
        let vectors = SPECTRAL.map(|index| Tensor::ones([1, weights[index].dims()[0]], device));
        Self {
            plan,
            step: 0,
            model_adam: Adam::new(generator.len() + encoder.len(), (0.9, 0.99), device),
            critic_adam: Adam::new(critic.len(), (0.5, 0.99), device),
            device: device.clone(),
            generator,
            encoder,
            critic,
            model,
            critic_flat,
            vectors: vectors.to_vec(),
            operator: Operator::new(device),
        }
    }

    /// The generator's matrices.
    pub fn generator(&self) -> Vec<Tensor<B, 2>> {
        self.generator.split(&self.model.clone().slice_dim(0, 0..self.generator.len()))
    }

    /// Latents as batches hold them: half encoded from `ln_slf`, half from the standard normal. Their
    /// statistics are the ones that the layers were trained to be normalised by.
    pub fn mixed_latents(
        &self,
        ln_slf: Tensor<B, 3>,
        target: &Target<B>,
        normal: Tensor<B, 2>,
    ) -> Tensor<B, 2> {
        let [count, ..] = ln_slf.dims();
        let (parts, all) = (self.generator.len(), self.model.dims()[0]);
        let weights = self.encoder.split(&self.model.clone().slice_dim(0, parts..all));
        let [mean, log_variance] = encode(&weights, target.standardise(ln_slf));
        let noise = normal.clone().slice([0..count, 0..LATENT]);
        let prior = normal.slice([count..2 * count, 0..LATENT]);
        Tensor::cat(vec![mean + (log_variance * 0.5).exp() * noise, prior], 0)
    }

    fn draw(&self, fields: &Fields<B>) -> Draw<B> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.plan.seed ^ 0x5eed_0f57_e95a);
        rng.set_stream(self.step);
        let batch = self.plan.batch;
        let chunk = &fields.chunks[rng.random_range(0..fields.chunks.len())];
        let count = chunk.dims()[0] as i32;
        let rows: Vec<i32> = (0..batch).map(|_| rng.random_range(0..count)).collect();
        let rows = Tensor::<B, 1, Int>::from_data(TensorData::new(rows, [batch]), &self.device);
        let mut picked = chunk.clone().select(0, rows).reshape([batch, SIDE, SIDE]);
        // The law of the fields has the square's eight symmetries.
        if rng.random() {
            picked = picked.flip([1]);
        }
        if rng.random() {
            picked = picked.flip([2]);
        }
        if rng.random() {
            picked = picked.swap_dims(1, 2);
        }
        let mut normal = || {
            let values: Vec<f32> =
                (0..batch * LATENT).map(|_| StandardNormal.sample(&mut rng)).collect();
            Tensor::from_data(TensorData::new(values, [batch, LATENT]), &self.device)
        };
        Draw { fields: picked, noise: normal(), latents: normal() }
    }

    /// One step of all networks; the figures are in the order of [`FIGURES`].
    pub fn advance(&mut self, fields: &Fields<B>, target: &Target<B>) -> Tensor<B, 1> {
        let draw = self.draw(fields);
        let progress = self.step as f64 / self.plan.steps as f64;
        self.step += 1;
        let real = (draw.fields.clone() - 1.0) * SPAN;
        let scales = spectral_scales(&self.critic.split(&self.critic_flat), &mut self.vectors);
        let (samples, mut figures) = self.improve_model(&draw, &real, target, &scales, progress);
        let real = target.standardise(real);
        figures.push(self.improve_critic(
            real,
            target.standardise(samples),
            target,
            &scales,
            progress,
        ));
        Tensor::cat(figures, 0)
    }

    fn improve_model(
        &mut self,
        draw: &Draw<B>,
        real: &Tensor<B, 3>,
        target: &Target<B>,
        scales: &[Tensor<B, 2>],
        progress: f64,
    ) -> (Tensor<B, 3>, Vec<Tensor<B, 1>>) {
        let batch = self.plan.batch;
        let parts = self.generator.len();
        let all = self.model.dims()[0];
        let mut leaves = self.generator.leaves::<A<B>>(&self.model.clone().slice_dim(0, 0..parts));
        leaves.extend(self.encoder.leaves::<A<B>>(&self.model.clone().slice_dim(0, parts..all)));
        let (generator, encoder) = leaves.split_at(self.generator.matrices());

        let [mean, log_variance] =
            encode(encoder, Tensor::from_inner(target.standardise(real.clone())));
        let noise = Tensor::from_inner(draw.noise.clone());
        let posterior = mean.clone() + (log_variance.clone() * 0.5).exp() * noise;
        let latents = Tensor::cat(vec![posterior, Tensor::from_inner(draw.latents.clone())], 0);
        let ln_slf = (generate(generator, latents, Norm::Batch(None)) - 1.0) * SPAN;
        let rebuilt = ln_slf.clone().slice([0..batch, 0..SIDE, 0..SIDE]);
        let samples = ln_slf.slice([batch..2 * batch, 0..SIDE, 0..SIDE]);

        let residual = (rebuilt - Tensor::from_inner(real.clone())).square().mean();
        let excess = mean.square() + log_variance.clone().exp() - log_variance - 1.0;
        let divergence = excess.sum() * (0.5 / batch as f64);
        let variogram = target.variogram_error(self.operator.of_each(samples.clone()));
        let moments = target.moment_error(samples.clone());
        let fooled = self.verdict(target.standardise(samples.clone()), target, scales).mean();

        let ramp = ((progress / WARM_UP - 0.5) * 2.0).clamp(0.0, 1.0);
        let loss = residual.clone().log() * 0.5
            + divergence.clone() / CELLS as f64
            + variogram.clone() * self.plan.variogram
            + moments.clone() * MOMENTS
            - fooled.clone() * (self.plan.adversarial * ramp);
        let gradients = loss.backward();
        let joined = [&self.generator, &self.encoder];
        let halves = [generator, encoder];
        let gradient = Tensor::cat(
            joined
                .iter()
                .zip(halves)
                .map(|(part, leaves)| part.gradient(leaves, &gradients))
                .collect(),
            0,
        );
        let rate = cosine(self.plan.rate, progress);
        self.model = self.model_adam.step(self.model.clone(), gradient, rate, self.step);
        let rmse = residual.inner().sqrt() * DB;
        let figures =
            vec![rmse, divergence.inner(), variogram.inner(), moments.inner(), fooled.inner()];
        (samples.inner(), figures)
    }

    /// The critic's verdict, its weights held constant.
    fn verdict(
        &self,
        fields: Tensor<A<B>, 3>,
        target: &Target<B>,
        scales: &[Tensor<B, 2>],
    ) -> Tensor<A<B>, 2> {
        let weights = self.critic.constants::<A<B>>(&self.critic_flat);
        criticise(&scaled(weights, scales), fields, target.step)
    }

    fn improve_critic(
        &mut self,
        real: Tensor<B, 3>,
        samples: Tensor<B, 3>,
        target: &Target<B>,
        scales: &[Tensor<B, 2>],
        progress: f64,
    ) -> Tensor<B, 1> {
        let batch = self.plan.batch;
        let leaves = self.critic.leaves::<A<B>>(&self.critic_flat);
        let both = Tensor::from_inner(Tensor::cat(vec![real, samples], 0));
        let verdict = criticise(&scaled(leaves.clone(), scales), both, target.step);
        let real = verdict.clone().slice([0..batch, 0..1]);
        let samples = verdict.slice([batch..2 * batch, 0..1]);
        let loss = activation::relu(-real + 1.0).mean() + activation::relu(samples + 1.0).mean();
        let gradient = self.critic.gradient(&leaves, &loss.backward());
        let rate = cosine(CRITIC_RATE, progress);
        let flat = self.critic_flat.clone();
        self.critic_flat = self.critic_adam.step(flat, gradient, rate, self.step);
        loss.inner()
    }

    /// Writes everything that the next step depends on.
    pub fn save(&self, path: &Path, set: &str) -> Result<()> {
        let mut store = Store::default();
        store.put("model", &self.model);
        store.put("model.mean", &self.model_adam.mean);
        store.put("model.square", &self.model_adam.square);
        store.put("critic", &self.critic_flat);
        store.put("critic.mean", &self.critic_adam.mean);
        store.put("critic.square", &self.critic_adam.square);
        for (index, vector) in self.vectors.iter().enumerate() {
            store.put(&format!("spectral{index}"), vector);
        }
        store.words.insert("set".into(), set.into());
        store.words.insert("step".into(), self.step.to_string());
        store.words.insert("plan".into(), format!("{:?}", self.plan));
        store.write(path)
    }

    pub fn load(plan: Plan, path: &Path, set: &str, device: &B::Device) -> Result<Self> {
        let store = Store::read(path)?;
        for (name, mine) in [("set", set.to_string()), ("plan", format!("{plan:?}"))] {
            let theirs = store.word(name)?;
            if theirs != mine {
                bail!("{path:?} was begun with {name} {theirs}, not {mine}: give the same options");
            }
        }
        let mut trainer = Self::new(plan, device);
        let get = |name: &str, old: &mut Tensor<B, 1>| -> Result<()> {
            *old = store.get(name, old.dims()[0], device)?;
            Ok(())
        };
        get("model", &mut trainer.model)?;
        get("model.mean", &mut trainer.model_adam.mean)?;
        get("model.square", &mut trainer.model_adam.square)?;
        get("critic", &mut trainer.critic_flat)?;
        get("critic.mean", &mut trainer.critic_adam.mean)?;
        get("critic.square", &mut trainer.critic_adam.square)?;
        for (index, vector) in trainer.vectors.iter_mut().enumerate() {
            let len = vector.dims()[1];
            *vector = store.get(&format!("spectral{index}"), len, device)?.reshape([1, len]);
        }
        trainer.step = store.word("step")?.parse()?;
        Ok(trainer)
    }
}

fn scaled<B: Backend>(
    mut weights: Vec<Tensor<A<B>, 2>>,
    scales: &[Tensor<B, 2>],
) -> Vec<Tensor<A<B>, 2>> {
    for (index, scale) in SPECTRAL.into_iter().zip(scales) {
        weights[index] = weights[index].clone() * Tensor::from_inner(scale.clone());
    }
    weights
}

/// Half a cosine from `rate` to a fiftieth of it.
fn cosine(rate: f64, progress: f64) -> f64 {
    let part = 0.5 * (1.0 + (std::f64::consts::PI * progress.min(1.0)).cos());
    rate * (0.02 + 0.98 * part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::{Set, Source};
    use burn::backend::Flex;

    const PLAN: Plan =
        Plan { steps: 6, batch: 4, seed: 9, adversarial: 0.1, variogram: 10.0, rate: 1e-3 };

    #[test]
    fn a_resumed_run_ends_where_an_unbroken_one_does() {
        let device = Default::default();
        let drawn = Source::new(Set::Broad).unwrap().draw(1, 16);
        let fields = Fields::<Flex>::new(&drawn, &device);
        let target = Target::new(&drawn, &device);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("checkpoint.safetensors");
        let mut whole = Trainer::<Flex>::new(PLAN, &device);
        (0..2).for_each(|_| drop(whole.advance(&fields, &target)));
        whole.save(&path, "broad").unwrap();
        let mut resumed = Trainer::<Flex>::load(PLAN, &path, "broad", &device).unwrap();
        for trainer in [&mut whole, &mut resumed] {
            (0..2).for_each(|_| drop(trainer.advance(&fields, &target)));
        }
        assert_eq!(whole.step, resumed.step);
        for (a, b) in [(&whole.model, &resumed.model), (&whole.critic_flat, &resumed.critic_flat)] {
            assert_eq!(a.to_data(), b.to_data());
        }
        assert!(Trainer::<Flex>::load(PLAN, &path, "narrow", &device).is_err());
        let other = Plan { batch: 5, ..PLAN };
        assert!(Trainer::<Flex>::load(other, &path, "broad", &device).is_err());
    }
}
