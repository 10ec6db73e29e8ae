//! How well a mean explains a reading: squared error in ln(x + a), and probit bins for quantised
//! readings, behind one trait.
//!
//! Probit (paper, supplement B): a level l is seen when b_(l-1) < mu + n <= b_l, n ~ N(0, s^2), so
//! log P = ln(Phi((b_l - mu) / s) - Phi((b_(l-1) - mu) / s)). In the tails both terms underflow;
//! there the scaled function erfcx(x) = exp(x^2) erfc(x) keeps every digit (Abramowitz and Stegun,
//! 7.1.23), and bins narrower than the noise are integrated rather than subtracted.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use crate::link::Link;
use crate::quantiser::{MISSING_LEVEL, Quantiser};

/// ln(sqrt(2 pi)).
const LN_SQRT_TAU: f64 = 0.918_938_533_204_672_8;

/// Six-point Gauss-Legendre rule on [-1, 1]: abscissae and weights of the positive half.
const GAUSS: [(f64, f64); 3] = [
    (0.238_619_186_083_196_9, 0.467_913_934_572_691_05),
    (0.661_209_386_466_264_5, 0.360_761_573_048_138_6),
    (0.932_469_514_203_152, 0.171_324_492_379_170_36),
];

/// A floating-point type that the kernels work in.
pub trait Real:
    Copy
    + Send
    + Sync
    + Default
    + PartialOrd
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::AddAssign
{
    /// The nearest value of this type.
    fn of(value: f64) -> Self;
    /// The same value in double precision.
    fn to_f64(self) -> f64;
    /// Whether it is not a number.
    fn is_nan(self) -> bool;
}

impl Real for f32 {
    #[inline(always)]
    fn of(value: f64) -> Self {
        value as f32
    }

    #[inline(always)]
    fn to_f64(self) -> f64 {
        self.into()
    }

    #[inline(always)]
    fn is_nan(self) -> bool {
        self.is_nan()
    }
}

impl Real for f64 {
    #[inline(always)]
    fn of(value: f64) -> Self {
        value
    }

    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }

    #[inline(always)]
    fn is_nan(self) -> bool {
        self.is_nan()
    }
}

/// Loss of one entry with its first derivative in the mean mu, and the curvature that
/// Gauss-Newton and pseudo-data need (never negative). A missing entry has all three zero.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct EntryLoss<T> {
    /// What the entry costs: a squared error, or minus the logarithm of a probability.
    pub loss: T,
    /// Derivative of the loss in mu.
    pub gradient: T,
    /// Curvature of the loss in mu, 0 or more.
    pub curvature: T,
}

/// A likelihood of readings given their means mu = h(x). Rows are one sensor's bands; slices must
/// have one length.
pub trait Likelihood<T: Real>: Sync {
    /// What a sensor reports: a value of h(x), or a level.
    type Target: Copy + Send + Sync;

    /// Loss, gradient and curvature of one reading.
    fn entry(&self, target: Self::Target, mean: T) -> EntryLoss<T>;

    /// Writes the gradient of a row and returns its summed loss.
    fn gradient_row(&self, targets: &[Self::Target], means: &[T], gradient: &mut [T]) -> f64;

    /// As [`Likelihood::gradient_row`], and writes the curvature.
    fn score_row(
        &self,
        targets: &[Self::Target],
        means: &[T],
        gradient: &mut [T],
        curvature: &mut [T],
    ) -> f64;
}

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
        let mut probit = Self::new(quantiser);
        probit.edges.iter_mut().for_each(|edge| *edge -= ln_unit);
        probit
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
        let level = usize::from(level).min(self.edges.len());
        let mean = mean.clamp(-1e100, 1e100);
        let lower = if level == 0 { f64::NEG_INFINITY } else { self.edges[level - 1] };
        let upper = self.edges.get(level).copied().unwrap_or(f64::INFINITY);
        let (low, high) = ((lower - mean) / self.sigma, (upper - mean) / self.sigma);
        let width = (upper - lower) / self.sigma;
        let middle = 0.5 * (low + high);
        if width * middle.abs().max(1.0) < 0.5 {
            Bin::narrow(middle, width)
        } else if low > 0.0 {
            Bin::tail(low, high, width)
        } else if high < 0.0 {
            let mirrored = Bin::tail(-high, -low, width);
            Bin { score: -mirrored.score, ..mirrored }
        } else {
            Bin::central(low, high)
        }
    }
}

/// One bin in units of sigma: ln P, (phi(low) - phi(high)) / P and
/// (high phi(high) - low phi(low)) / P.
struct Bin {
    log_probability: f64,
    score: f64,
    edge_moment: f64,
}

impl Bin {
    /// The mean lies inside or at the edge of a bin that is not narrow.
    fn central(low: f64, high: f64) -> Self {
        let outside = 0.5 * (libm::erfc(high * FRAC_1_SQRT_2) + libm::erfc(-low * FRAC_1_SQRT_2));
        let inside = if outside < 0.5 {
            1.0 - outside
        } else {
            0.5 * (libm::erf(high * FRAC_1_SQRT_2) + libm::erf(-low * FRAC_1_SQRT_2))
        };
        let log_probability = if outside < 0.5 { (-outside).ln_1p() } else { inside.ln() };
        let density = |z: f64| (-0.5 * z * z - LN_SQRT_TAU).exp();
        let moment = |z: f64| if z.is_finite() { z * density(z) } else { 0.0 };
        Self {
            log_probability,
            score: (density(low) - density(high)) / inside,
            edge_moment: (moment(high) - moment(low)) / inside,
        }
    }

    /// 0 < low < high: everything relative to the density at the near edge.
    fn tail(low: f64, high: f64, width: f64) -> Self {
        // exp(-(high^2 - low^2) / 2), without the cancellation far out.
        let exponent = -width * (low + 0.5 * width);
        let fade = exponent.exp();
        let mass = erfcx(low * FRAC_1_SQRT_2) - fade * erfcx(high * FRAC_1_SQRT_2);
        let far_moment = if fade > 0.0 { high * fade } else { 0.0 };
        let scale = (2.0 / PI).sqrt() / mass;
        Self {
            log_probability: (0.5 * mass).ln() - 0.5 * low * low,
            score: -exponent.exp_m1() * scale,
            edge_moment: (far_moment - low) * scale,
        }
    }

    /// Narrower than the density varies: integrate exp(-middle t - t^2 / 2) over the bin.
    fn narrow(middle: f64, width: f64) -> Self {
        let half = 0.5 * width;
        let integral: f64 = GAUSS
            .iter()
            .map(|&(x, weight)| {
                let t = half * x;
                weight * (-0.5 * t * t).exp() * (middle * t).cosh()
            })
            .sum();
        let mass = width * integral;
        let edge = 2.0 * (-0.5 * half * half).exp();
        let (sinh, cosh) = ((middle * half).sinh(), (middle * half).cosh());
        Self {
            log_probability: mass.ln() - 0.5 * middle * middle - LN_SQRT_TAU,
            score: edge * sinh / mass,
            edge_moment: edge * (half * cosh - middle * sinh) / mass,
        }
    }
}

/// exp(x^2) erfc(x) for x >= 0.
fn erfcx(x: f64) -> f64 {
    if x < 10.0 {
        return (x * x).exp() * libm::erfc(x);
    }
    let step = 0.5 / (x * x);
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 0..10 {
        term *= -f64::from(2 * k + 1) * step;
        sum += term;
    }
    sum / (x * PI.sqrt())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::quantiser::AUTHORS_EDGES;
    use proptest::prelude::*;

    fn authors(sigma: f64) -> Probit {
        Probit::new(&Quantiser::new(AUTHORS_EDGES.to_vec(), sigma, 1e-6).unwrap())
    }

    #[test]
    fn probit_agrees_with_mpmath() {
        let golden = fixture::load("probit");
        let edges = golden["edges"].1.iter().copied().filter(|e| e.is_finite()).collect();
        let probit = Probit::new(&Quantiser::new(edges, golden["sigma"].1[0], 1e-6).unwrap());
        assert_eq!(probit.sigma(), golden["sigma"].1[0]);
        let bins = golden["edges"].1.len() - 1;
        let means = &golden["mu"].1;
        assert_eq!(golden["log_likelihood"].0, [means.len(), bins]);
        for (i, &mean) in means.iter().enumerate() {
            for level in 0..bins {
                let (log_probability, slope) = probit.log_probability(level as u8, mean);
                let expected = golden["log_likelihood"].1[i * bins + level];
                let slope_expected = golden["gradient"].1[i * bins + level];
                let close = |a: f64, b: f64| (a - b).abs() <= 1e-10 * b.abs();
                assert!(
                    close(log_probability, expected),
                    "mean {mean}, level {level}: {log_probability} {expected}"
                );
                assert!(close(slope, slope_expected), "{mean} {level}: {slope} {slope_expected}");
            }
        }
    }

    #[test]
    fn every_bin_is_finite_everywhere() {
        for sigma in [0.0, 1e-3, 1.7, 40.0] {
            let probit = authors(sigma);
            for level in 0..8 {
                for mean in [-1e300, -1e8, -700.0, -11.35, -9.0, 0.0, 55.0, 1e9, f64::MAX] {
                    let score: EntryLoss<f64> = probit.entry(level, mean);
                    assert!(score.loss.is_finite() && score.loss >= 0.0, "{sigma} {level} {mean}");
                    assert!(score.gradient.is_finite(), "{sigma} {level} {mean}");
                    assert!((0.0..=1e9).contains(&score.curvature));
                    assert!(probit.observed_information(level, mean) >= 0.0);
                }
            }
        }
    }

    #[test]
    fn missing_entries_weigh_nothing() {
        let (mut gradient, mut curvature) = ([9.0f32; 3], [9.0f32; 3]);
        let squared = SquaredError::gaussian(0.5);
        let targets = [1.0f32, f32::NAN, 2.0];
        let loss = squared.score_row(&targets, &[1.5, 7.0, 2.0], &mut gradient, &mut curvature);
        assert_eq!((loss, gradient, curvature), (0.5, [2.0, 0.0, 0.0], [4.0, 0.0, 4.0]));
        let probit = authors(1.7);
        let (mut gradient, mut curvature) = ([9.0f64; 2], [9.0f64; 2]);
        let loss = probit.score_row(&[255, 3], &[-9.0, -9.0], &mut gradient, &mut curvature);
        let alone: EntryLoss<f64> = probit.entry(3, -9.0);
        assert_eq!((loss, gradient[0], curvature[0]), (alone.loss, 0.0, 0.0));
        assert_eq!((gradient[1], curvature[1]), (alone.gradient, alone.curvature));
    }

    #[test]
    fn rows_longer_than_the_lanes_agree_with_entries() {
        let targets: Vec<f64> = (0..77).map(|i| f64::from(i % 7) - 3.0).collect();
        let means: Vec<f64> = (0..77).map(|i| f64::from(i % 11) * 0.3).collect();
        let mut gradient = vec![0.0; 77];
        let squared = SquaredError::plain();
        let loss = squared.gradient_row(&targets, &means, &mut gradient);
        let expected: f64 = targets.iter().zip(&means).map(|(y, m)| (y - m) * (y - m)).sum();
        assert!((loss - expected).abs() < 1e-10);
        for ((g, y), m) in gradient.iter().zip(&targets).zip(&means) {
            assert_eq!(*g, 2.0 * (m - y));
        }
    }

    #[test]
    fn probabilities_sum_to_one_and_give_the_fisher_information() {
        for (sigma, mean) in [(1.7, -9.0), (0.05, -9.005), (0.3, -7.7), (5.0, 0.0)] {
            let probit = authors(sigma);
            let (mut sum, mut information) = (0.0, 0.0);
            for level in 0..8 {
                let (log_probability, slope) = probit.log_probability(level, mean);
                sum += log_probability.exp();
                information += log_probability.exp() * slope * slope;
            }
            assert!((sum - 1.0).abs() < 1e-12, "{sigma} {mean}: {sum}");
            let direct = probit.fisher_information(mean);
            assert!((direct - information).abs() < 1e-9 * information, "{direct} {information}");
        }
    }

    proptest! {
        #[test]
        fn gradients_are_finite_differences(mean in -20.0..5.0f64, level in 0u8..8, y in -9.0..9.0f64) {
            let step = 1e-5;
            let slope = |loss: &dyn Fn(f64) -> f64| (loss(mean + step) - loss(mean - step)) / (2.0 * step);
            let probit = authors(1.7);
            let score: EntryLoss<f64> = probit.entry(level, mean);
            let loss = |m: f64| -probit.log_probability(level, m).0;
            prop_assert!((score.gradient - slope(&loss)).abs() < 1e-7 * (1.0 + score.gradient.abs()));
            let gradient = |m: f64| -probit.log_probability(level, m).1;
            let observed = probit.observed_information(level, mean);
            prop_assert!((observed - slope(&gradient)).abs() < 1e-6);
            let squared = SquaredError::gaussian(0.7);
            let score = squared.entry(y, mean);
            let loss = |m: f64| squared.entry(y, m).loss;
            prop_assert!((score.gradient - slope(&loss)).abs() < 1e-6 * (1.0 + score.gradient.abs()));
        }
    }
}
