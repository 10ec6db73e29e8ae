//! Levels as Gaussian pseudo-readings, found by expectation propagation (Minka 2001; Rasmussen and
//! Williams 2006, section 3.6). A level says between which edges ln(t + a) lies, more or less softly:
//! with little noise before the quantiser the likelihood is a box, whose slope and curvature where the
//! fit stands say nothing about where it ends. The pseudo-reading of an entry is what the box leaves of
//! what all other readings say about that entry; it exists with no noise at all.

use faer::Mat;
use ndarray::Array2;

use super::linearised::LEAST_POWER;
use crate::likelihood::bin::Bin;
use crate::quantiser::{MISSING_LEVEL, Quantiser};

/// Noise before the quantiser is never taken to be below this share of the median bin: PSDs and path
/// loss are not quite what the model says.
const LEAST_SIGMA: f64 = 0.05;
/// The most that an entry is believed to have said of its own prediction.
const MOST_OWN: f64 = 0.95;
/// Share of a new pseudo-reading that takes the place of the old one, all being renewed at once.
const RENEWED: f64 = 0.7;

/// Entries by which unknown noise is judged, the most that is thought of, and how many are tried.
const MOST_JUDGED: usize = 4000;
const MOST_SIGMA: f64 = 4.0;
const SIGMAS: i32 = 24;

/// What a quantiser reports, and how.
pub(super) struct LevelReadings {
    pub levels: Array2<u8>,
    edges: Vec<f64>,
    /// The least noise before the quantiser that is believed, and what is said of it.
    least_sigma: f64,
    pub sigma: f64,
    pub offset: f64,
}

/// What a level leaves of a normal prediction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tilted {
    /// Logarithm of the level's probability.
    pub log_probability: f64,
    /// Its slope in the prediction's mean.
    pub slope: f64,
    /// Minus its second derivative, below 1 / variance.
    pub curvature: f64,
}

impl LevelReadings {
    pub fn new(levels: Array2<u8>, quantiser: &Quantiser) -> Self {
        let edges = quantiser.edges().to_vec();
        let mut widths: Vec<f64> = edges.windows(2).map(|pair| pair[1] - pair[0]).collect();
        widths.sort_by(f64::total_cmp);
        let width = widths.get(widths.len() / 2).copied().unwrap_or(1.0);
        let least_sigma = (LEAST_SIGMA * width).max(1e-9);
        let sigma = quantiser.sigma().max(least_sigma);
        Self { levels, edges, least_sigma, sigma, offset: quantiser.offset() }
    }

    /// A level beside a prediction of ln(t + a) with noise of `sigma` before the quantiser.
    pub fn tilted(&self, level: u8, mean: f64, variance: f64, sigma: f64) -> Tilted {
        let level = usize::from(level).min(self.edges.len());
        let deviation = (sigma * sigma + variance).sqrt();
        let lower = if level == 0 { f64::NEG_INFINITY } else { self.edges[level - 1] };
        let upper = self.edges.get(level).copied().unwrap_or(f64::INFINITY);
        let scaled = |from: f64, to: f64| (to - from) / deviation;
        let bin = Bin::between(scaled(mean, lower), scaled(mean, upper), scaled(lower, upper));
        // A truncated normal has less variance than the whole one, hence the bounds.
        let curvature = (bin.score * bin.score + bin.edge_moment).clamp(0.0, 1.0);
        Tilted {
            log_probability: bin.log_probability,
            slope: bin.score / deviation,
            curvature: curvature / (deviation * deviation),
        }
    }
}

/// Pseudo-readings of ln(t + a), sensors x bands: information, and information times value.
#[derive(Clone, Debug, Default)]
pub(super) struct SoftLevels {
    information: Vec<f64>,
    pull: Vec<f64>,
    /// Noise before the quantiser.
    pub sigma: f64,
}

impl SoftLevels {
    /// Nothing is known yet.
    pub fn none(readings: &LevelReadings) -> Self {
        let entries = readings.levels.len();
        Self { information: vec![0.0; entries], pull: vec![0.0; entries], sigma: readings.sigma }
    }

    /// Slope and information of a pseudo-reading in ln(t + a).
    pub fn at(&self, entry: usize, mean: f64) -> (f64, f64) {
        let information = self.information[entry];
        (self.pull[entry] - information * mean, information)
    }

    /// What all other readings say about an entry where the fit has a mean and a variance.
    fn without(&self, entry: usize, mean: f64, variance: f64) -> (f64, f64) {
        let information = self.information[entry];
        let left = variance / (1.0 - (information * variance).min(MOST_OWN));
        (mean + left * (information * mean - self.pull[entry]), left)
    }

    /// Renews every pseudo-reading. `at_sensor` and `in_band` are covariances (emitters x emitters) of
    /// a sensor's log SLFs and of a band's ln PSDs, one after the other.
    pub fn renew(
        &mut self,
        readings: &LevelReadings,
        logs: &Array2<f64>,
        psd: &Array2<f64>,
        at_sensor: &[Mat<f64>],
        in_band: &[Mat<f64>],
    ) {
        let known = Known { logs, psd, at_sensor, in_band, offset: readings.offset };
        known.each(|entry, at, mean, variance| {
            let level = readings.levels[at];
            if level == MISSING_LEVEL {
                return;
            }
            let (mean, variance) = self.without(entry, mean, variance);
            let found = readings.tilted(level, mean, variance, self.sigma);
            let left = 1.0 - variance * found.curvature;
            let information = found.curvature / left;
            let pull = (found.slope + found.curvature * mean) / left;
            self.information[entry] += RENEWED * (information - self.information[entry]);
            self.pull[entry] += RENEWED * (pull - self.pull[entry]);
        });
    }

    /// Minus the log probability of every level, predicted by all other readings.
    pub fn left_out(
        &self,
        readings: &LevelReadings,
        logs: &Array2<f64>,
        psd: &Array2<f64>,
        at_sensor: &[Mat<f64>],
        in_band: &[Mat<f64>],
    ) -> Vec<f64> {
        let mut losses = Vec::with_capacity(readings.levels.len());
        let known = Known { logs, psd, at_sensor, in_band, offset: readings.offset };
        known.each(|entry, at, mean, variance| {
            let level = readings.levels[at];
            if level != MISSING_LEVEL {
                let (mean, variance) = self.without(entry, mean, variance);
                let found = readings.tilted(level, mean, variance, self.sigma);
                losses.push(-found.log_probability);
            }
        });
        losses
    }
}

impl SoftLevels {
    /// The noise before the quantiser under which every level is likeliest, predicted by all others.
    pub fn likeliest_sigma(
        &self,
        readings: &LevelReadings,
        logs: &Array2<f64>,
        psd: &Array2<f64>,
        at_sensor: &[Mat<f64>],
        in_band: &[Mat<f64>],
    ) -> f64 {
        let known = Known { logs, psd, at_sensor, in_band, offset: readings.offset };
        let step = 1 + readings.levels.len() / MOST_JUDGED;
        let mut judged = Vec::new();
        known.each(|entry, at, mean, variance| {
            let level = readings.levels[at];
            if level != MISSING_LEVEL && entry % step == 0 {
                let (mean, variance) = self.without(entry, mean, variance);
                judged.push((level, mean, variance));
            }
        });
        let least = readings.least_sigma;
        let ratio = (MOST_SIGMA / least).max(1.0).powf(1.0 / SIGMAS as f64);
        let loss = |sigma: f64| -> f64 {
            let of = |&(level, mean, variance): &(u8, f64, f64)| {
                -readings.tilted(level, mean, variance, sigma).log_probability
            };
            judged.iter().map(of).sum()
        };
        let trials = (0..=SIGMAS).map(|i| least * ratio.powi(i));
        let judged = trials.map(|sigma| (loss(sigma), sigma));
        judged.min_by(|a, b| a.0.total_cmp(&b.0)).map_or(least, |(_, sigma)| sigma)
    }
}

/// Where the fit stands, and how surely.
struct Known<'a> {
    logs: &'a Array2<f64>,
    psd: &'a Array2<f64>,
    at_sensor: &'a [Mat<f64>],
    in_band: &'a [Mat<f64>],
    offset: f64,
}

impl Known<'_> {
    /// Calls `take` with every entry, its sensor and band, and mean and variance of ln(t + a) there.
    fn each(&self, mut take: impl FnMut(usize, [usize; 2], f64, f64)) {
        let (emitters, bands) = self.psd.dim();
        let mut share = vec![0.0; emitters];
        for n in 0..self.logs.nrows() {
            for k in 0..bands {
                let mut total = 0.0;
                for (r, share) in share.iter_mut().enumerate() {
                    *share = self.logs[[n, r]].exp() * self.psd[[r, k]];
                    total += *share;
                }
                if total.is_nan() || total < LEAST_POWER {
                    continue;
                }
                let whole = total + self.offset;
                share.iter_mut().for_each(|s| *s /= whole);
                let mut variance = 0.0;
                for (r, a) in share.iter().enumerate() {
                    for (q, b) in share.iter().enumerate() {
                        variance += a * b * (self.at_sensor[n][(r, q)] + self.in_band[k][(r, q)]);
                    }
                }
                take(n * bands + k, [n, k], whole.ln(), variance.max(0.0));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn readings(edges: Vec<f64>, levels: Array2<u8>, sigma: f64) -> LevelReadings {
        LevelReadings::new(levels, &Quantiser::new(edges, sigma, 1e-6).unwrap())
    }

    #[test]
    fn slopes_are_finite_differences() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let read = readings(vec![-3.0, -2.9, 0.5, 4.0], Array2::zeros((1, 1)), 0.0);
        for _ in 0..400 {
            let level = rng.random_range(0..5);
            let mean = rng.random_range(-7.0..7.0);
            let variance = 10f64.powf(rng.random_range(-3.0..1.0));
            let sigma = 10f64.powf(rng.random_range(-2.0..0.5));
            let at = |mean| read.tilted(level, mean, variance, sigma);
            let step = 1e-4 * f64::hypot(sigma, variance.sqrt());
            let (here, up, down) = (at(mean), at(mean + step), at(mean - step));
            let slope = (up.log_probability - down.log_probability) / (2.0 * step);
            let bend = (down.slope - up.slope) / (2.0 * step);
            let size = 1.0 / (sigma * sigma + variance);
            assert!((here.slope - slope).abs() < 1e-4 * (slope.abs() + size.sqrt()), "{here:?}");
            assert!((here.curvature - bend).abs() < 1e-3 * (bend.abs() + size), "{here:?}");
            assert!(here.curvature * variance < 1.0);
        }
    }

    /// One emitter in one band: the pseudo-reading and a normal prediction make the moments of the
    /// prediction within the bin.
    #[test]
    fn a_pseudo_reading_has_the_moments_of_its_bin() {
        let (mean, variance, low, high) = (0.4f64, 0.8f64, -0.2f64, 0.9f64);
        let read = readings(vec![low, high], Array2::from_elem((1, 1), 1u8), 0.0);
        let mut soft = SoftLevels::none(&read);
        let (logs, psd) = (Array2::from_elem((1, 1), mean), Array2::from_elem((1, 1), 1.0));
        let at_sensor = [Mat::from_fn(1, 1, |_, _| variance)];
        soft.renew(&read, &logs, &psd, &at_sensor, &[Mat::zeros(1, 1)]);
        // A renewal takes a part of the new pseudo-reading only.
        let (information, pull) = (soft.information[0] / RENEWED, soft.pull[0] / RENEWED);
        let found = 1.0 / (1.0 / variance + information);
        let centre = found * (mean / variance + pull);
        let (mut mass, mut first, mut second) = (0.0, 0.0, 0.0);
        let steps = 200_000;
        for i in 0..steps {
            let x = -6.0 + 13.0 * (f64::from(i) + 0.5) / f64::from(steps);
            let soft_edge = |edge: f64| 0.5 * libm::erfc((x - edge) / (read.sigma * 2f64.sqrt()));
            let weight =
                (soft_edge(high) - soft_edge(low)) * (-0.5 * (x - mean).powi(2) / variance).exp();
            (mass, first, second) = (mass + weight, first + weight * x, second + weight * x * x);
        }
        let (true_mean, square) = (first / mass, second / mass);
        assert!((centre - true_mean).abs() < 1e-4, "{centre} {true_mean}");
        assert!((found - (square - true_mean * true_mean)).abs() < 1e-4);
        // What the others say is found again.
        soft.information[0] = information;
        soft.pull[0] = pull;
        let (back, left) = soft.without(0, centre, found);
        assert!((back - mean).abs() < 1e-6 && (left - variance).abs() < 1e-6);
    }
}
