//! The fields to learn: simulated spatial loss fields on a 64 x 64 grid of 1 m cells, written as
//! o = 1 + (ln S - top) / span in [0, 1], each with its latent.
//!
//! Path loss min(1, (d / 2)^-alpha) with alpha uniform in [2, 2.5], the emitter uniform over the
//! region, and shadowing with covariance eta^2 exp(-d / decorrelation), less its mean over the
//! region; every field draws its own eta from its set's range, every pair its own decorrelation.

use anyhow::{Context, Result};
use clap::ValueEnum;
use ndarray::Array2;
use portolan::Grid;
use portolan::simulate::{REFERENCE_DISTANCE_M, Shadowing};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;

use crate::code::{Modes, SETTINGS, Settings, Whitener};
use crate::networks::LATENT;

/// Cells along one side.
pub const SIDE: usize = 64;
pub const CELLS: usize = SIDE * SIDE;
/// Nepers between the brightest and the faintest that can be drawn; fewer than one cell in a
/// thousand would lie lower.
pub const SPAN: f32 = 21.0;
/// The brightest in ln power above path loss 1 without shadowing; no cell in a million lies higher.
const TOP: f32 = 6.0;
/// dB per unit of ln power.
pub const DB: f64 = 10.0 / std::f64::consts::LN_10;

/// Decorrelation distances for which samplers are kept.
const RUNGS: usize = 64;

/// A range of simulator settings with its own generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Set {
    /// Shadowing of 4 to 8 dB, decorrelation of 40 to 90 m.
    Broad,
    /// Shadowing of 7 to 8 dB, decorrelation of 40 to 70 m.
    Narrow,
}

impl Set {
    pub fn name(self) -> &'static str {
        match self {
            Set::Broad => "broad",
            Set::Narrow => "narrow",
        }
    }

    /// Standard deviation of the shadowing in dB.
    fn shadow_db(self) -> (f64, f64) {
        match self {
            Set::Broad => (4.0, 8.0),
            Set::Narrow => (7.0, 8.0),
        }
    }

    fn decorrelation_m(self) -> (f64, f64) {
        match self {
            Set::Broad => (40.0, 90.0),
            Set::Narrow => (40.0, 70.0),
        }
    }
}

/// Simulated fields and what they are made of.
pub struct Drawn {
    /// o-values, row by row, field after field.
    pub fields: Vec<f32>,
    /// As many latents.
    pub latents: Vec<f32>,
}

/// Draws fields of one set; the ladder of samplers is built once.
pub struct Source {
    set: Set,
    modes: Modes,
    ladder: Vec<(Shadowing, Whitener)>,
}

impl Source {
    pub fn new(set: Set) -> Result<Self> {
        let grid = Grid::new(SIDE, SIDE, 1.0)?;
        let modes = Modes::new();
        let ladder = (0..RUNGS)
            .into_par_iter()
            .map(|rung| {
                let part = (rung as f64 + 0.5) / RUNGS as f64;
                let decorrelation = within(set.decorrelation_m(), part);
                let sampler = Shadowing::new(grid, decorrelation)?;
                Ok((sampler, Whitener::new(&modes, decorrelation)))
            })
            .collect::<Result<Vec<_>>>()
            .context("samplers of shadowing")?;
        Ok(Self { set, modes, ladder })
    }

    pub fn modes(&self) -> &Modes {
        &self.modes
    }

    /// `count` fields (rounded up to even). Same seed, same fields.
    pub fn draw(&self, seed: u64, count: usize) -> Drawn {
        let count = count.next_multiple_of(2);
        let mut drawn =
            Drawn { fields: vec![0.0; count * CELLS], latents: vec![0.0; count * LATENT] };
        let fields = drawn.fields.par_chunks_mut(2 * CELLS);
        let pairs = fields.zip(drawn.latents.par_chunks_mut(2 * LATENT)).enumerate();
        pairs.for_each(|(pair, (fields, latents))| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(pair as u64);
            latents.fill_with(|| StandardNormal.sample(&mut rng));
            // One draw makes two fields, of the same decorrelation distance.
            latents[LATENT + SETTINGS - 1] = latents[SETTINGS - 1];
            let part = Settings::of(latents).decorrelation;
            let (sampler, whitener) = &self.ladder[(part * RUNGS as f64) as usize];
            let both = fields.chunks_mut(CELLS).zip(latents.chunks_mut(LATENT));
            for (shadow, (field, latent)) in sampler.draw_pair(&mut rng).iter().zip(both) {
                let numbers = whitener.numbers(&self.modes, shadow);
                latent[SETTINGS..].iter_mut().zip(numbers).for_each(|(z, v)| *z = v as f32);
                self.finish(shadow, &Settings::of(latent), field);
            }
        });
        drawn
    }

    /// Adds an emitter's path loss to unit shadowing.
    fn finish(&self, shadow: &Array2<f64>, settings: &Settings, out: &mut [f32]) {
        let ln_shadow = within(self.set.shadow_db(), settings.shadow) / DB;
        let exponent = within((2.0, 2.5), settings.exponent);
        let [row, col] = [settings.row, settings.col].map(|part| SIDE as f64 * part - 0.5);
        let mean = shadow.mean().expect("a field has cells");
        for (out, ((i, j), value)) in out.iter_mut().zip(shadow.indexed_iter()) {
            let d = (i as f64 - row).hypot(j as f64 - col);
            let path = -exponent * (d / REFERENCE_DISTANCE_M).max(1.0).ln();
            let ln_slf = (path + ln_shadow * (value - mean)) as f32;
            *out = (1.0 + (ln_slf - TOP) / SPAN).clamp(0.0, 1.0);
        }
    }
}

/// The place `part` of the way from the first to the second.
fn within((low, high): (f64, f64), part: f64) -> f64 {
    low + part * (high - low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_repeat_with_the_seed_and_peak_where_their_latents_say() {
        let source = Source::new(Set::Narrow).unwrap();
        let drawn = source.draw(3, 64);
        assert_eq!(drawn.fields, source.draw(3, 64).fields);
        assert_ne!(drawn.fields, source.draw(4, 64).fields);
        let mut near = 0;
        for (field, latent) in drawn.fields.chunks(CELLS).zip(drawn.latents.chunks(LATENT)) {
            let (peak, _) = field.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).unwrap();
            let settings = Settings::of(latent);
            let [row, col] = [settings.row, settings.col].map(|part| SIDE as f64 * part - 0.5);
            let d = ((peak / SIDE) as f64 - row).hypot((peak % SIDE) as f64 - col);
            near += usize::from(d < 4.0);
        }
        assert!(near > 56, "{near} of 64 peaks are at the emitter");
    }

    #[test]
    fn the_ends_of_the_scale_are_almost_never_reached() {
        let fields = Source::new(Set::Narrow).unwrap().draw(5, 400).fields;
        let ended = fields.iter().filter(|o| **o == 0.0 || **o == 1.0).count();
        assert!((ended as f64) < 1e-3 * fields.len() as f64, "{ended}");
    }
}
