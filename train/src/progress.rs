//! The loop around the steps: lines of progress, checkpoints now and then, an end in time.

use std::time::Instant;

use anyhow::{Result, bail};
use burn::tensor::backend::Backend;

use crate::target::{Fields, Target};
use crate::train::{FIGURES, Trainer};

/// Runs to the plan's end or until `limit_s` seconds have passed; a line every `every` steps.
pub fn run<B: Backend>(
    trainer: &mut Trainer<B>,
    fields: &Fields<B>,
    target: &Target<B>,
    every: u64,
    limit_s: f64,
    mut save: impl FnMut(&Trainer<B>) -> Result<()>,
) -> Result<()> {
    let start = Instant::now();
    let (mut printed, mut saved) = (Instant::now(), Instant::now());
    while trainer.step < trainer.plan.steps && start.elapsed().as_secs_f64() < limit_s {
        let figures = trainer.advance(fields, target);
        if trainer.step.is_multiple_of(every) || trainer.step == trainer.plan.steps {
            let values = figures.into_data().to_vec::<f32>().expect("f32");
            let ms = printed.elapsed().as_secs_f64() * 1e3 / every as f64;
            let words =
                FIGURES.iter().zip(&values).map(|(name, value)| format!("{name} {value:.4}"));
            let words = words.collect::<Vec<_>>().join("  ");
            println!("step {}  {words}  {ms:.1} ms", trainer.step);
            if values.iter().any(|v| !v.is_finite()) {
                bail!("training diverged at step {}: lower --rate or --adversarial", trainer.step);
            }
            printed = Instant::now();
        }
        if saved.elapsed().as_secs() > 120 {
            save(trainer)?;
            saved = Instant::now();
        }
    }
    println!("stopped at step {} after {:.0} s", trainer.step, start.elapsed().as_secs_f64());
    save(trainer)
}
