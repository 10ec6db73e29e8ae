//! The fields to learn: simulated spatial loss fields on a 64 x 64 grid of 1 m cells, scaled to peak
//! 1 and written as o = 1 + ln S / span in [0, 1].
//!
//! Path loss min(1, (d / 2)^-alpha) with alpha uniform in [2, 2.5], the emitter uniform over the
//! region, and shadowing with covariance eta^2 exp(-d / decorrelation); every field draws its own
//! eta and decorrelation from its set's ranges.

use anyhow::{Context, Result};
use clap::ValueEnum;
use portolan::Grid;
use portolan::simulate::{REFERENCE_DISTANCE_M, Shadowing};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

/// Cells along one side.
pub const SIDE: usize = 64;
pub const CELLS: usize = SIDE * SIDE;
/// Nepers between the peak and the floor; fewer than one cell in a thousand would lie lower.
pub const SPAN: f32 = 16.0;
/// dB per neper of power.
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

/// Draws fields of one set; the ladder of samplers is built once.
pub struct Source {
    set: Set,
    ladder: Vec<Shadowing>,
}

impl Source {
    pub fn new(set: Set) -> Result<Self> {
        let grid = Grid::new(SIDE, SIDE, 1.0)?;
        let (low, high) = set.decorrelation_m();
        let ladder = (0..RUNGS)
            .into_par_iter()
            .map(|rung| {
                let part = (rung as f64 + 0.5) / RUNGS as f64;
                Shadowing::new(grid, low + part * (high - low))
            })
            .collect::<Result<Vec<_>, _>>()
            .context("samplers of shadowing")?;
        Ok(Self { set, ladder })
    }

    /// `count` fields (rounded up to even), o-values row by row. Same seed, same fields.
    pub fn draw(&self, seed: u64, count: usize) -> Vec<f32> {
        let mut fields = vec![0f32; count.next_multiple_of(2) * CELLS];
        fields.par_chunks_mut(2 * CELLS).enumerate().for_each(|(pair, out)| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(pair as u64);
            let sampler = &self.ladder[rng.random_range(0..RUNGS)];
            for (shadow, out) in sampler.draw_pair(&mut rng).iter().zip(out.chunks_mut(CELLS)) {
                self.finish(shadow.as_slice().expect("a fresh array"), out, &mut rng);
            }
        });
        fields
    }

    /// Adds the path loss of a random emitter to unit shadowing and scales to [0, 1].
    fn finish(&self, shadow: &[f64], out: &mut [f32], rng: &mut ChaCha8Rng) {
        let (low, high) = self.set.shadow_db();
        let nepers = rng.random_range(low..=high) / DB;
        let exponent = rng.random_range(2.0..=2.5);
        let mut place = || rng.random_range(-0.5..SIDE as f64 - 0.5);
        let (row, col) = (place(), place());
        let mut peak = f64::NEG_INFINITY;
        let mut ln_slf = vec![0f64; CELLS];
        for (cell, value) in ln_slf.iter_mut().enumerate() {
            let d = ((cell / SIDE) as f64 - row).hypot((cell % SIDE) as f64 - col);
            *value = nepers * shadow[cell] - exponent * (d / REFERENCE_DISTANCE_M).max(1.0).ln();
            peak = peak.max(*value);
        }
        for (out, value) in out.iter_mut().zip(ln_slf) {
            *out = (1.0 + (value - peak) as f32 / SPAN).max(0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_peak_at_one_and_repeat_with_the_seed() {
        let source = Source::new(Set::Narrow).unwrap();
        let fields = source.draw(3, 4);
        assert_eq!(fields, source.draw(3, 4));
        assert_ne!(fields, source.draw(4, 4));
        for field in fields.chunks(CELLS) {
            assert_eq!(field.iter().copied().fold(0.0, f32::max), 1.0);
            assert!(field.iter().all(|o| (0.0..=1.0).contains(o)));
        }
    }

    #[test]
    fn the_floor_is_almost_never_reached() {
        let fields = Source::new(Set::Narrow).unwrap().draw(5, 400);
        let floored = fields.iter().filter(|o| **o == 0.0).count();
        assert!((floored as f64) < 1e-3 * fields.len() as f64, "{floored}");
    }
}
