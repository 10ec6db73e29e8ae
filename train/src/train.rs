//! The training loop: the generator learns the simulator's field of every latent, near the emitter
//! above all, and where latents say nothing, in the finest texture, it is asked to look like the
//! simulator to a critic (hinge loss, spectral norm) and in its variogram. Everything random follows
//! from the plan and the step's number alone.

use std::path::Path;

use anyhow::{Result, bail};
use burn::backend::Autodiff;
use burn::tensor::backend::Backend;
use burn::tensor::{Int, Tensor, TensorData, activation};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::checkpoint::Store;
use crate::code::Modes;
use crate::fields::{DB, SIDE, SPAN};
use crate::networks::{
    LATENT, Norm, SPECTRAL, critic_layout, criticise, generate, generator_layout, spectral_scales,
};
use crate::params::{Adam, Layout};
use crate::target::{Fields, Target, near_emitter};
use crate::variogram::Operator;

/// What is trained and how. A checkpoint can only be resumed with the same plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Simulated fields to learn from.
    pub fields: usize,
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
/// Weight of the residual near the emitter, where few cells hold most of the power.
const EMITTER: f64 = 40.0;
/// Weight of the residual in all cosines; it keeps invented texture from standing against the
/// field's own.
const TEXTURE: f64 = 0.02;
/// Parts of all steps at which variogram and critic begin to count and from which they count in
/// full.
const RAMP: (f64, f64) = (0.1, 0.3);

type A<B> = Autodiff<B>;

/// Names of the figures that a step reports.
pub const FIGURES: [&str; 6] =
    ["rmse_dB", "described_dB", "emitter", "variogram", "fooled", "critic"];

pub struct Trainer<B: Backend> {
    pub plan: Plan,
    pub step: u64,
    device: B::Device,
    layout: Layout,
    critic: Layout,
    model: Tensor<B, 1>,
    model_adam: Adam<B>,
    critic_flat: Tensor<B, 1>,
    critic_adam: Adam<B>,
    vectors: Vec<Tensor<B, 2>>,
    operator: Operator<A<B>>,
    modes: Modes,
}

/// Fields in ln power and their latents, on the device.
struct Batch<B: Backend> {
    fields: Tensor<B, 3>,
    latents: Tensor<B, 2>,
}

impl<B: Backend> Trainer<B> {
    pub fn new(plan: Plan, device: &B::Device) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(plan.seed);
        let layout = generator_layout(&mut rng);
        let critic = critic_layout(&mut rng);
        let critic_flat = critic.initial::<B>(device);
        let weights = critic.split(&critic_flat);
        let vectors = SPECTRAL.map(|index| Tensor::ones([1, weights[index].dims()[0]], device));
        Self {
            plan,
            step: 0,
            model: layout.initial(device),
            model_adam: Adam::new(layout.len(), (0.9, 0.99), device),
            critic_adam: Adam::new(critic.len(), (0.5, 0.99), device),
            device: device.clone(),
            layout,
            critic,
            critic_flat,
            vectors: vectors.to_vec(),
            operator: Operator::new(device),
            modes: Modes::new(),
        }
    }

    /// The generator's matrices.
    pub fn generator(&self) -> Vec<Tensor<B, 2>> {
        self.layout.split(&self.model)
    }

    fn batch(&self, fields: &Fields<B>) -> Batch<B> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.plan.seed ^ 0x5eed_0f57_e95a);
        rng.set_stream(self.step);
        let batch = self.plan.batch;
        let (fields, latents) = &fields.chunks[rng.random_range(0..fields.chunks.len())];
        let count = fields.dims()[0] as i32;
        let rows: Vec<i32> = (0..batch).map(|_| rng.random_range(0..count)).collect();
        let rows = Tensor::<B, 1, Int>::from_data(TensorData::new(rows, [batch]), &self.device);
        let mut picked = fields.clone().select(0, rows.clone()).reshape([batch, SIDE, SIDE]);
        // A mirrored field has mirrored latents.
        let (along, across) = (rng.random(), rng.random());
        if along {
            picked = picked.flip([1]);
        }
        if across {
            picked = picked.flip([2]);
        }
        let signs = TensorData::new(self.modes.signs(along, across), [1, LATENT]);
        let signs = Tensor::<B, 2>::from_data(signs, &self.device);
        Batch { fields: (picked - 1.0) * SPAN, latents: latents.clone().select(0, rows) * signs }
    }

    /// One step of both networks; the figures are in the order of [`FIGURES`].
    pub fn advance(&mut self, fields: &Fields<B>, target: &Target<B>) -> Tensor<B, 1> {
        let batch = self.batch(fields);
        let progress = self.step as f64 / self.plan.steps as f64;
        self.step += 1;
        let scales = spectral_scales(&self.critic.split(&self.critic_flat), &mut self.vectors);
        let (made, mut figures) = self.improve_model(&batch, target, &scales, progress);
        let real = target.standardise(batch.fields);
        let made = target.standardise(made);
        figures.push(self.improve_critic(real, made, target, &scales, progress));
        Tensor::cat(figures, 0)
    }

    fn improve_model(
        &mut self,
        batch: &Batch<B>,
        target: &Target<B>,
        scales: &[Tensor<B, 2>],
        progress: f64,
    ) -> (Tensor<B, 3>, Vec<Tensor<B, 1>>) {
        let leaves = self.layout.leaves::<A<B>>(&self.model);
        let latents = Tensor::from_inner(batch.latents.clone());
        let made = (generate(&leaves, latents, Norm::Batch(None)) - 1.0) * SPAN;
        let residual = made.clone() - Tensor::from_inner(batch.fields.clone());

        let all = residual.clone().square().mean();
        let described = target.described(residual.clone());
        let emitter = near_emitter(residual, &batch.fields);
        let variogram = target.variogram_error(self.operator.of_each(made.clone()));
        let fooled = self.verdict(target.standardise(made.clone()), target, scales).mean();

        let ramp = ((progress - RAMP.0) / (RAMP.1 - RAMP.0)).clamp(0.0, 1.0);
        let agreement = described.clone() + emitter.clone() * EMITTER + all.clone() * TEXTURE;
        let loss = agreement.log() * 0.5 + variogram.clone() * (self.plan.variogram * ramp)
            - fooled.clone() * (self.plan.adversarial * ramp);
        let gradient = self.layout.gradient(&leaves, &loss.backward());
        let rate = cosine(self.plan.rate, progress);
        self.model = self.model_adam.step(self.model.clone(), gradient, rate, self.step);
        let db = |square: Tensor<A<B>, 1>| square.inner().sqrt() * DB;
        let figures =
            vec![db(all), db(described), emitter.inner(), variogram.inner(), fooled.inner()];
        (made.inner(), figures)
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

    const PLAN: Plan = Plan {
        fields: 16,
        steps: 6,
        batch: 4,
        seed: 9,
        adversarial: 0.1,
        variogram: 10.0,
        rate: 1e-3,
    };

    #[test]
    fn a_resumed_run_ends_where_an_unbroken_one_does() {
        let device = Default::default();
        let source = Source::new(Set::Broad).unwrap();
        let drawn = source.draw(1, PLAN.fields);
        let fields = Fields::<Flex>::new(&drawn, &device);
        let target = Target::new(&drawn.fields, source.modes(), &device);
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
