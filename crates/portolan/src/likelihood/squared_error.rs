//! Squared error in ln(x + a), by rows that the compiler makes vectors of.

use super::{EntryLoss, Likelihood, Real};
use crate::link::Link;

/// weight * (y - mu)^2; a target of NaN is missing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SquaredError {
    weight: f64,
}

impl SquaredError {
    /// The paper's plain sum of squares: curvature 2.
    pub const fn plain() -> Self {
        Self { weight: 1.0 }
    }

    /// The negative log-likelihood of Gaussian noise, up to a constant: curvature 1 / s^2.
    /// `deviation` must be positive.
    pub fn gaussian(deviation: f64) -> Self {
        debug_assert!(deviation > 0.0);
        Self { weight: 0.5 / (deviation * deviation) }
    }

    /// The targets ln(x + a) of powers, NaN where a power is NaN.
    pub fn targets<T: Real>(powers: impl IntoIterator<Item = f64>, link: Link) -> Vec<T> {
        powers.into_iter().map(|power| T::of(link.apply(power))).collect()
    }
}

/// Lanes summed side by side, so that the compiler may use vectors for a sum too.
const LANES: usize = 16;

impl<T: Real> Likelihood<T> for SquaredError {
    type Target = T;

    #[inline(always)]
    fn entry(&self, target: T, mean: T) -> EntryLoss<T> {
        let missing = target.is_nan();
        let error = if missing { T::default() } else { mean - target };
        let curvature = if missing { T::default() } else { T::of(2.0 * self.weight) };
        let scaled = error * T::of(self.weight);
        EntryLoss { loss: error * scaled, gradient: scaled + scaled, curvature }
    }

    #[inline(always)]
    fn gradient_row(&self, targets: &[T], means: &[T], gradient: &mut [T]) -> f64 {
        let (targets_chunks, targets_rest) = targets.as_chunks::<LANES>();
        let (means_chunks, means_rest) = means.as_chunks::<LANES>();
        let (chunks, rest) = gradient.as_chunks_mut::<LANES>();
        let mut sums = [T::default(); LANES];
        let twice = T::of(2.0 * self.weight);
        for ((out, target), mean) in chunks.iter_mut().zip(targets_chunks).zip(means_chunks) {
            // One simple loop after another: the compiler makes a vector of each.
            let mut error = [T::default(); LANES];
            for lane in 0..LANES {
                let miss = mean[lane] - target[lane];
                error[lane] = if target[lane].is_nan() { T::default() } else { miss };
            }
            for lane in 0..LANES {
                sums[lane] += error[lane] * error[lane];
            }
            for lane in 0..LANES {
                out[lane] = error[lane] * twice;
            }
        }
        let mut total = self.weight * sums.iter().map(|s| s.to_f64()).sum::<f64>();
        for ((out, &target), &mean) in rest.iter_mut().zip(targets_rest).zip(means_rest) {
            let score = self.entry(target, mean);
            *out = score.gradient;
            total += score.loss.to_f64();
        }
        total
    }

    #[inline(always)]
    fn score_row(
        &self,
        targets: &[T],
        means: &[T],
        gradient: &mut [T],
        curvature: &mut [T],
    ) -> f64 {
        for (out, &target) in curvature.iter_mut().zip(targets) {
            *out = self.entry(target, T::default()).curvature;
        }
        self.gradient_row(targets, means, gradient)
    }
}
