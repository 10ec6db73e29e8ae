//! Readings seen from the emitters. With q_r = exp(f_r) c_r and t = sum_r q_r, a reading's log
//! likelihood has slope and information in ln t, and d ln t / d f_r = q_r / t is a responsibility in
//! [0, 1]. Summed over bands, every sensor gives a slope vector and an R x R information matrix
//! (Gauss-Newton, or Fisher scoring for levels; Rasmussen and Williams 2006, section 3.4).
//!
//! Power is read with relative noise and additive noise, variance (s t)^2 + sigma^2; a reading that
//! noise has cut to zero, or that was not heard, is censored (Tobin 1958).

use faer::Mat;
use ndarray::Array2;

use super::soft_levels::{LevelReadings, SoftLevels};
use crate::linalg::Cholesky;
use crate::quantiser::MISSING_LEVEL;
use crate::readings::{NotHeard, Readings, Values};

/// Relative noise below which nothing is gained by believing more.
pub(super) const LEAST_RELATIVE: f64 = 1e-3;

/// How softly a floor of hearing cuts, in units of ln power: about 2 dB, receivers differ.
const SOFT_FLOOR: f64 = 0.5;

/// The most that a reading is believed to have said of its own prediction, and the farthest that a
/// prediction in ln power moves without it.
const MOST_OWN: f64 = 0.95;
const LARGEST_MOVE: f64 = 3.0;

/// Power below this has no meaningful logarithm.
pub(super) const LEAST_POWER: f64 = 1e-290;

/// What the sensors reported.
pub(super) enum Reported {
    Power { power: Array2<f64>, not_heard: Option<NotHeard> },
    Levels(LevelReadings),
}

/// Noise of power readings: relative, and additive in the readings' unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Noise {
    pub relative: f64,
    pub additive: f64,
}

/// Slope and information of one reading in ln t.
#[derive(Clone, Copy, Default)]
struct Pull {
    slope: f64,
    information: f64,
}

/// Slopes (sensors x emitters) and information (sensors x emitters x emitters), flat.
pub(super) struct Linearised {
    pub emitters: usize,
    pub slope: Vec<f64>,
    pub information: Vec<f64>,
    /// The same over sensors: bands x emitters, bands x emitters x emitters.
    pub band_slope: Vec<f64>,
    pub band_information: Vec<f64>,
}

impl Reported {
    pub fn new(readings: &Readings) -> Self {
        match readings.values() {
            Values::Power(power) => {
                Reported::Power { power: power.clone(), not_heard: readings.not_heard().cloned() }
            }
            Values::Levels { levels, quantiser } => {
                Reported::Levels(LevelReadings::new(levels.clone(), quantiser))
            }
        }
    }

    fn dim(&self) -> (usize, usize) {
        match self {
            Reported::Power { power, .. } => power.dim(),
            Reported::Levels(read) => read.levels.dim(),
        }
    }

    fn pull(
        &self,
        sensor: usize,
        band: usize,
        total: f64,
        noise: Noise,
        soft: &SoftLevels,
    ) -> Pull {
        match self {
            Reported::Power { power, not_heard } => match not_heard {
                Some(silent) if silent.entries[[sensor, band]] => {
                    silent_pull((total / silent.floor[band]).ln())
                }
                _ => power_pull(power[[sensor, band]], total, noise),
            },
            Reported::Levels(read) => {
                let whole = total + read.offset;
                let entry = sensor * read.levels.ncols() + band;
                let (slope, information) = soft.at(entry, whole.ln());
                let share = total / whole;
                Pull { slope: share * slope, information: share * share * information }
            }
        }
    }

    /// Negative log likelihood of one reading where the power is `total`.
    pub fn loss(&self, sensor: usize, band: usize, total: f64, noise: Noise) -> f64 {
        match self {
            Reported::Levels(read) => {
                let level = read.levels[[sensor, band]];
                -read.tilted(level, (total + read.offset).ln(), 0.0, read.sigma).log_probability
            }
            Reported::Power { power, .. } => {
                let deviation = (noise.relative * total).hypot(noise.additive);
                match power[[sensor, band]] {
                    0.0 => -log_tail(total / deviation),
                    reading => deviation.ln() + 0.5 * ((reading - total) / deviation).powi(2),
                }
            }
        }
    }

    /// Linearises about log SLFs (sensors x emitters) and PSDs (emitters x bands).
    pub fn linearised(
        &self,
        logs: &Array2<f64>,
        psd: &Array2<f64>,
        noise: Noise,
        soft: &SoftLevels,
    ) -> Linearised {
        let (sensors, bands) = self.dim();
        let emitters = psd.nrows();
        let mut found = Linearised {
            emitters,
            slope: vec![0.0; sensors * emitters],
            information: vec![0.0; sensors * emitters * emitters],
            band_slope: vec![0.0; bands * emitters],
            band_information: vec![0.0; bands * emitters * emitters],
        };
        let mut share = vec![0.0; emitters];
        let mut slf = vec![0.0; emitters];
        for n in 0..sensors {
            slf.iter_mut().zip(logs.row(n)).for_each(|(s, f)| *s = f.exp());
            for k in 0..bands {
                let mut total = 0.0;
                for r in 0..emitters {
                    share[r] = slf[r] * psd[[r, k]];
                    total += share[r];
                }
                if total.is_nan() || total < LEAST_POWER {
                    continue;
                }
                let Pull { slope, information } = self.pull(n, k, total, noise, soft);
                share.iter_mut().for_each(|s| *s /= total);
                for r in 0..emitters {
                    found.slope[n * emitters + r] += share[r] * slope;
                    found.band_slope[k * emitters + r] += share[r] * slope;
                    for q in 0..emitters {
                        let both = share[r] * share[q] * information;
                        found.information[(n * emitters + r) * emitters + q] += both;
                        found.band_information[(k * emitters + r) * emitters + q] += both;
                    }
                }
            }
        }
        found
    }

    /// Loss of every reading, each predicted by the others to first order: `at_sensor` and
    /// `in_band` are covariances (emitters x emitters) of a sensor's log SLFs and of a band's ln PSDs
    /// given all readings, one after the other.
    pub fn left_out(
        &self,
        logs: &Array2<f64>,
        psd: &Array2<f64>,
        noise: Noise,
        soft: &SoftLevels,
        at_sensor: &[Mat<f64>],
        in_band: &[Mat<f64>],
    ) -> Vec<f64> {
        if let Reported::Levels(read) = self {
            return soft.left_out(read, logs, psd, at_sensor, in_band);
        }
        let (sensors, bands) = self.dim();
        let emitters = psd.nrows();
        let mut losses = Vec::with_capacity(sensors * bands);
        let mut share = vec![0.0; emitters];
        for n in 0..sensors {
            for k in 0..bands {
                share
                    .iter_mut()
                    .enumerate()
                    .for_each(|(r, s)| *s = logs[[n, r]].exp() * psd[[r, k]]);
                let total = share.iter().sum::<f64>().max(LEAST_POWER);
                if !self.read(n, k) {
                    continue;
                }
                let Pull { slope, information } = self.pull(n, k, total, noise, soft);
                share.iter_mut().for_each(|s| *s /= total);
                let mut variance = 0.0;
                for (r, a) in share.iter().enumerate() {
                    for (q, b) in share.iter().enumerate() {
                        variance += a * b * (at_sensor[n][(r, q)] + in_band[k][(r, q)]);
                    }
                }
                // Without its own pull the logarithm would stand there.
                let own = (information * variance).min(MOST_OWN);
                let moved = (slope * variance / (1.0 - own)).clamp(-LARGEST_MOVE, LARGEST_MOVE);
                losses.push(self.loss(n, k, total * (-moved).exp(), noise));
            }
        }
        losses
    }

    /// Negative log likelihood of all readings.
    pub fn total_loss(&self, logs: &Array2<f64>, psd: &Array2<f64>, noise: Noise) -> f64 {
        let model = logs.mapv(f64::exp).dot(psd);
        let read = model.indexed_iter().filter(|((n, k), _)| self.read(*n, *k));
        read.map(|((n, k), total)| self.loss(n, k, total.max(LEAST_POWER), noise)).sum()
    }

    /// No pseudo-reading says anything yet.
    pub fn soft(&self) -> SoftLevels {
        match self {
            Reported::Power { .. } => SoftLevels::default(),
            Reported::Levels(read) => SoftLevels::none(read),
        }
    }

    fn read(&self, sensor: usize, band: usize) -> bool {
        match self {
            Reported::Power { power, .. } => !power[[sensor, band]].is_nan(),
            Reported::Levels(read) => read.levels[[sensor, band]] != MISSING_LEVEL,
        }
    }

    /// Noise that explains the residuals best, over a grid of both kinds.
    pub fn noise(&self, logs: &Array2<f64>, psd: &Array2<f64>, least_additive: f64) -> Noise {
        let least = Noise { relative: LEAST_RELATIVE, additive: least_additive };
        let Reported::Power { power, .. } = self else { return least };
        let (sensors, bands) = power.dim();
        let slf = logs.mapv(f64::exp);
        let model = slf.dot(psd);
        let step = 1 + sensors * bands / 6000;
        let entries: Vec<(f64, f64)> = power
            .iter()
            .zip(&model)
            .step_by(step)
            .filter(|(y, t)| **y > 0.0 && **t > 0.0)
            .map(|(y, t)| (y - t, *t))
            .collect();
        if entries.is_empty() {
            return least;
        }
        let emitters = psd.nrows() as f64;
        let free = 1.0 - emitters / bands as f64 - emitters / sensors as f64;
        let mut sizes: Vec<f64> = entries.iter().map(|e| e.0.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let middle = sizes[sizes.len() / 2];
        let at = |i: i32, j: i32| Noise {
            relative: LEAST_RELATIVE * 2000f64.powf(f64::from(j) / 16.0),
            additive: (middle * 10f64.powf(f64::from(i) / 4.0)).max(least_additive),
        };
        let misfit = |trial: Noise| -> f64 {
            // One logarithm for four variances, none of which is that small.
            let four = |four: &[(f64, f64)]| {
                let (mut product, mut squares) = (1.0f64, 0.0);
                for (e, t) in four {
                    let v = (trial.relative * t).powi(2) + trial.additive.powi(2);
                    product *= v;
                    squares += e * e / v;
                }
                product.ln() + squares
            };
            entries.chunks(4).map(four).sum()
        };
        let grid = (-8..=8).flat_map(|i| (0..=16).map(move |j| at(i, j)));
        let mut best = (f64::INFINITY, least);
        for trial in grid {
            let value = misfit(trial);
            if value < best.0 {
                best = (value, trial);
            }
        }
        let best = best.1;
        let widen = free.max(0.1).sqrt().recip();
        Noise { relative: best.relative * widen, additive: best.additive * widen }
    }
}

/// Information about one emitter when the others are free within a prior: a Schur complement.
pub(super) fn marginal(information: &[f64], count: usize, r: usize, prior: f64) -> f64 {
    let own = information[r * count + r];
    if count == 1 || own <= 0.0 {
        return own;
    }
    let other = |i: usize| i + usize::from(i >= r);
    let matrix = Mat::from_fn(count - 1, count - 1, |i, j| {
        information[other(i) * count + other(j)] + if i == j { prior } else { 0.0 }
    });
    let side = Mat::from_fn(count - 1, 1, |i, _| information[other(i) * count + r]);
    let Some(cholesky) = Cholesky::new(matrix.as_ref()) else { return own };
    let mut half = side;
    cholesky.half_solve(half.as_mut());
    // Rounding must not turn a little information into none.
    (own - half.col(0).squared_norm_l2()).max(1e-9 * own)
}

fn power_pull(reading: f64, total: f64, noise: Noise) -> Pull {
    if reading.is_nan() {
        return Pull::default();
    }
    let (relative, additive) = (noise.relative, noise.additive / total);
    let variance = relative * relative + additive * additive;
    if reading == 0.0 {
        let z = 1.0 / variance.sqrt();
        let hazard = hazard(z);
        return Pull { slope: -z * hazard, information: z * z * (hazard * (hazard - z)).min(1.0) };
    }
    // Relative noise is log-normal, additive noise is not: each share of the error in its own way.
    let share = relative * relative / variance;
    let ratio = reading / total;
    let error = share * ratio.ln() + (1.0 - share) * (ratio - 1.0);
    Pull { slope: error / variance, information: 1.0 / variance }
}

/// A reading that was not heard, `above` of ln t over the floor.
fn silent_pull(above: f64) -> Pull {
    let z = above / SOFT_FLOOR;
    let hazard = hazard(z);
    Pull {
        slope: -hazard / SOFT_FLOOR,
        information: (hazard * (hazard - z)).clamp(0.0, 1.0) / (SOFT_FLOOR * SOFT_FLOOR),
    }
}

/// ln Phi(-z).
fn log_tail(z: f64) -> f64 {
    -0.5 * z * z - 0.5 * (2.0 * std::f64::consts::PI).ln() - hazard(z).ln()
}

/// phi(z) / Phi(-z).
fn hazard(z: f64) -> f64 {
    if z > 8.0 {
        return z + 1.0 / (z + 2.0 / z);
    }
    let tail = 0.5 * libm::erfc(z * std::f64::consts::FRAC_1_SQRT_2);
    (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt() / tail
}
