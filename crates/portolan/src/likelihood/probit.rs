//! Probit bins for quantised readings (paper, supplement B): a level l is seen when
//! b_(l-1) < mu + n <= b_l, n ~ N(0, s^2), so
//! log P = ln(Phi((b_l - mu) / s) - Phi((b_(l-1) - mu) / s)).

use std::f64::consts::FRAC_1_SQRT_2;

use super::bin::{Bin, LN_SQRT_TAU};
use super::{EntryLoss, Likelihood, Real};
use crate::link::Link;
use crate::quantiser::{MISSING_LEVEL, Quantiser};

/// Probit bins: the negative log-probability of a level. The curvature is the Fisher information
/// of a reading with this mean, whatever level was seen; it falls to 0 far outside the edges.
#[derive(Clone, Debug, PartialEq)]
pub struct Probit {
    edges: Vec<f64>,
    sigma: f64,
}

impl Probit {
    /// The likelihood of a quantiser's levels. A sigma below a twentieth of the median bin width
    /// (a noise-free quantiser has 0) is raised to that: the likelihood stays smooth enough to
    /// descend, and a mean pushed against an edge still ends within a few hundredths of a bin.
    pub fn new(quantiser: &Quantiser) -> Self {
        let edges = quantiser.edges().to_vec();
        let mut widths: Vec<f64> = edges.windows(2).map(|pair| pair[1] - pair[0]).collect();
        widths.sort_by(f64::total_cmp);
        let width = widths.get(widths.len() / 2).copied().unwrap_or(1.0);
        let sigma = quantiser.sigma().max(0.05 * width).max(1e-9);
        Self { edges, sigma }
    }

    /// As [`Probit::new`], for means of ln((x + a) / unit): edges lowered by `ln_unit`.
    pub fn shifted(quantiser: &Quantiser, ln_unit: f64) -> Self {
        Self::new(quantiser).lowered(ln_unit)
    }

    /// For means of ln((x + a) / unit): edges lowered by `ln_unit`.
    pub fn lowered(mut self, ln_unit: f64) -> Self {
        self.edges.iter_mut().for_each(|edge| *edge -= ln_unit);
        self
    }

    /// As [`Probit::new`] with no less noise than `least`, in ln power: what the model itself misses
    /// also lies between it and the levels. With fine levels a penalty would otherwise count nothing
    /// beside the steep walls of their bins.
    pub fn at_least(quantiser: &Quantiser, least: f64) -> Self {
        let probit = Self::new(quantiser);
        Self { sigma: probit.sigma.max(least), ..probit }
    }

    /// As [`Probit::new`], for means that are themselves uncertain by `deviation`.
    pub fn widened(quantiser: &Quantiser, deviation: f64) -> Self {
        let probit = Self::new(quantiser);
        Self { sigma: probit.sigma.hypot(deviation), ..probit }
    }

    /// Edges between levels, in the unit of the means.
    pub fn edges(&self) -> &[f64] {
        &self.edges
    }

    /// The deviation in use, floor included.
    pub fn sigma(&self) -> f64 {
        self.sigma
    }

    /// The power at the highest edge: a unit of the readings' own size.
    pub(crate) fn upper_power(&self, link: Link) -> f64 {
        let top = self.edges.last().copied().unwrap_or(0.0);
        link.inverse(top).max(link.offset())
    }

    /// log P(level | mean) and its derivative in the mean; finite for every finite mean.
    pub fn log_probability(&self, level: u8, mean: f64) -> (f64, f64) {
        let bin = self.bin(level, mean);
        (bin.log_probability, bin.score / self.sigma)
    }

    /// log P(level) where the mean is itself uncertain by `deviation`.
    pub fn log_probability_of(&self, level: u8, mean: f64, deviation: f64) -> f64 {
        let (edges, sigma) = (&self.edges, self.sigma.hypot(deviation));
        edge_bin(edges, sigma, level, mean).log_probability
    }

    /// -d2 log P / d mean^2 of the level that was seen, in [0, 1 / sigma^2]: unlike the Fisher
    /// information it stays large where the mean is far from the level.
    pub fn observed_information(&self, level: u8, mean: f64) -> f64 {
        let bin = self.bin(level, mean);
        let information = bin.score * bin.score + bin.edge_moment;
        // A truncated normal has less variance than the whole one, hence the bounds.
        information.clamp(0.0, 1.0) / (self.sigma * self.sigma)
    }

    /// Fisher information about the mean, sum_l P_l (d log P_l / d mean)^2.
    pub fn fisher_information(&self, mean: f64) -> f64 {
        let mut information = 0.0;
        let (mut density, mut below, mut above) = (0.0, 0.0, 1.0);
        for edge in self.edges.iter().copied().chain([f64::INFINITY]) {
            let z = (edge - mean) / self.sigma;
            let next = (-0.5 * z * z - LN_SQRT_TAU).exp();
            let next_below = 0.5 * libm::erfc(-z * FRAC_1_SQRT_2);
            let next_above = 0.5 * libm::erfc(z * FRAC_1_SQRT_2);
            // Subtract on the side where the tails are small.
            let mass = if z > 0.0 { above - next_above } else { next_below - below };
            if mass > f64::MIN_POSITIVE {
                information += (next - density) * ((next - density) / mass);
            }
            (density, below, above) = (next, next_below, next_above);
        }
        information.min(1.0) / (self.sigma * self.sigma)
    }

    fn bin(&self, level: u8, mean: f64) -> Bin {
        edge_bin(&self.edges, self.sigma, level, mean)
    }
}

/// The bin of a level beside a mean with noise of a given deviation.
fn edge_bin(edges: &[f64], sigma: f64, level: u8, mean: f64) -> Bin {
    let level = usize::from(level).min(edges.len());
    let mean = mean.clamp(-1e100, 1e100);
    let lower = if level == 0 { f64::NEG_INFINITY } else { edges[level - 1] };
    let upper = edges.get(level).copied().unwrap_or(f64::INFINITY);
    let scaled = |from: f64, to: f64| (to - from) / sigma;
    Bin::between(scaled(mean, lower), scaled(mean, upper), scaled(lower, upper))
}

impl<T: Real> Likelihood<T> for Probit {
    type Target = u8;

    fn entry(&self, target: u8, mean: T) -> EntryLoss<T> {
        if target == MISSING_LEVEL {
            return EntryLoss::default();
        }
        let mean = mean.to_f64();
        let (log_probability, slope) = self.log_probability(target, mean);
        EntryLoss {
            loss: T::of(-log_probability),
            gradient: T::of(-slope),
            curvature: T::of(self.fisher_information(mean)),
        }
    }

    fn gradient_row(&self, targets: &[u8], means: &[T], gradient: &mut [T]) -> f64 {
        let mut total = 0.0;
        for ((out, &target), &mean) in gradient.iter_mut().zip(targets).zip(means) {
            *out = T::default();
            if target != MISSING_LEVEL {
                let (log_probability, slope) = self.log_probability(target, mean.to_f64());
                *out = T::of(-slope);
                total -= log_probability;
            }
        }
        total
    }

    fn score_row(
        &self,
        targets: &[u8],
        means: &[T],
        gradient: &mut [T],
        curvature: &mut [T],
    ) -> f64 {
        for ((out, &target), &mean) in curvature.iter_mut().zip(targets).zip(means) {
            let missing = target == MISSING_LEVEL;
            *out = T::of(if missing { 0.0 } else { self.fisher_information(mean.to_f64()) });
        }
        self.gradient_row(targets, means, gradient)
    }
}
