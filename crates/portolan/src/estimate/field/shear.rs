//! Choosing among exact factorisations by where things lie in space. Readings without noise leave
//! the factors free up to shears, C_i + e C_j with S_j - e S_i, which change neither the readings
//! nor the volume of (S, C). Unmixing picks the likeliest with sensors taken as independent; here
//! the evidence of each emitter's Gaussian process takes the place of that guess.

use ndarray::Array2;

use super::fit::Emitter;
use super::law::Law;

/// Distances from either wall of the feasible interval, as powers of e, that are tried.
const TRIALS: [f64; 7] = [0.7, 1.5, 3.0, 5.0, 8.0, 12.0, 17.0];
/// Neighbouring bands of a PSD resemble each other: each counts for this much of an independent one.
const BANDS_WEIGHT: f64 = 0.3;
/// How a PSD bends from band to band follows Student's t with so many degrees of freedom: mostly
/// little, at an edge much. Its usual bend, in ln power, is never taken to be less than this.
const FREEDOM: f64 = 4.0;
const LEAST_BEND: f64 = 0.3;
/// A band is never taken to be below this share of its PSD's mean.
const LEAST_SHARE: f64 = 1e-18;
/// Steps around the best trial, and the shortest worth taking.
const STEPS: usize = 12;
const SHORTEST: f64 = 1e-4;

/// Factors of exact readings on their way to the likeliest.
pub(super) struct Shears<'a> {
    pub law: &'a Law,
    pub emitters: &'a [Emitter],
    /// One vector per emitter.
    slf: Vec<Vec<f64>>,
    psd: Vec<Vec<f64>>,
    /// How much PSDs usually bend.
    bend: f64,
    /// Negative log-likelihood of every SLF and of every PSD.
    slf_value: Vec<f64>,
    psd_value: Vec<f64>,
}

impl<'a> Shears<'a> {
    pub fn new(
        law: &'a Law,
        emitters: &'a [Emitter],
        logs: &Array2<f64>,
        psd: &Array2<f64>,
    ) -> Self {
        let slf: Vec<Vec<f64>> =
            logs.columns().into_iter().map(|f| f.iter().map(|v| v.exp()).collect()).collect();
        let psd: Vec<Vec<f64>> = psd.outer_iter().map(|c| c.to_vec()).collect();
        let bend = usual_bend(&psd);
        let mut shears = Self {
            law,
            emitters,
            bend,
            slf_value: Vec::new(),
            psd_value: psd.iter().map(|c| spectrum_value(c, bend)).collect(),
            slf,
            psd,
        };
        shears.slf_value =
            shears.slf.iter().enumerate().map(|(r, s)| shears.field_value(r, s)).collect();
        shears
    }

    /// Of S_r: a Gaussian process in ln S.
    fn field_value(&self, r: usize, slf: &[f64]) -> f64 {
        let logs: Vec<f64> = slf.iter().map(|s| s.max(f64::MIN_POSITIVE).ln()).collect();
        let Emitter { places, posterior, .. } = &self.emitters[r];
        logs.iter().sum::<f64>() - posterior.evidence(self.law, places, &logs)
    }

    /// Sweeps over all pairs until little is gained; returns the factors.
    pub fn run(mut self, sweeps: usize) -> (Array2<f64>, Array2<f64>) {
        let count = self.slf.len();
        for sweep in 0..sweeps {
            let mut gained = 0.0f64;
            for i in 0..count {
                for j in (0..count).filter(|&j| j != i) {
                    gained += self.improve(i, j, sweep == 0);
                }
            }
            if gained < 0.05 {
                break;
            }
        }
        let (sensors, bands) = (self.slf[0].len(), self.psd[0].len());
        let logs = Array2::from_shape_fn((sensors, count), |(n, r)| {
            self.slf[r][n].max(f64::MIN_POSITIVE).ln()
        });
        (logs, Array2::from_shape_fn((count, bands), |(r, k)| self.psd[r][k]))
    }

    /// The best shear of C_i by C_j; returns what it gains.
    fn improve(&mut self, i: usize, j: usize, search: bool) -> f64 {
        let room = |a: &[f64], b: &[f64]| {
            a.iter()
                .zip(b)
                .filter(|(_, y)| **y > 0.0)
                .map(|(x, y)| x / y)
                .fold(f64::INFINITY, f64::min)
        };
        let (down, up) = (room(&self.psd[i], &self.psd[j]), room(&self.slf[j], &self.slf[i]));
        let width = down + up;
        if !(width > 0.0 && width.is_finite()) {
            return 0.0;
        }
        let start = self.slf_value[j] + self.psd_value[i];
        let mut best = Trial { along: 0.0, value: start, factors: None };
        if search {
            for trial in TRIALS {
                let share = (-trial).exp() * width;
                for along in [share - down, up - share] {
                    best = best.or_better(self.shear(i, j, along));
                }
            }
        }
        // Steps relative to the nearer wall, longer while they help, shorter when they do not.
        let mut step = 0.25;
        for _ in 0..STEPS {
            let near = (best.along + down).min(up - best.along);
            let before = best.value;
            for sign in [1.0, -1.0] {
                if best.value == before {
                    let along = best.along + sign * step * near;
                    best = best.or_better(self.shear(i, j, along));
                }
            }
            step = if best.value < before { (1.5 * step).min(0.8) } else { 0.25 * step };
            if step < SHORTEST {
                break;
            }
        }
        let Some(factors) = best.factors else { return 0.0 };
        self.slf[j] = factors.slf;
        self.psd[i] = factors.psd;
        self.slf_value[j] = factors.slf_value;
        self.psd_value[i] = factors.psd_value;
        start - best.value
    }

    /// C_i + e C_j and S_j - e S_i with their values.
    fn shear(&self, i: usize, j: usize, along: f64) -> Trial {
        let mix = |a: &[f64], b: &[f64], e: f64| -> Vec<f64> {
            a.iter().zip(b).map(|(x, y)| (x + e * y).max(0.0)).collect()
        };
        let slf = mix(&self.slf[j], &self.slf[i], -along);
        let psd = mix(&self.psd[i], &self.psd[j], along);
        let (slf_value, psd_value) = (self.field_value(j, &slf), spectrum_value(&psd, self.bend));
        let factors = Some(Sheared { slf, psd, slf_value, psd_value });
        Trial { along, value: slf_value + psd_value, factors }
    }
}

/// A shear that was tried; the start has no new factors.
struct Trial {
    along: f64,
    value: f64,
    factors: Option<Sheared>,
}

struct Sheared {
    slf: Vec<f64>,
    psd: Vec<f64>,
    slf_value: f64,
    psd_value: f64,
}

impl Trial {
    fn or_better(self, other: Trial) -> Trial {
        if other.value < self.value { other } else { self }
    }
}

fn spectrum_logs(psd: &[f64]) -> Vec<f64> {
    let mean = psd.iter().sum::<f64>() / psd.len() as f64;
    let floor = (LEAST_SHARE * mean).max(f64::MIN_POSITIVE);
    psd.iter().map(|c| (c + floor).ln()).collect()
}

fn bends(logs: &[f64]) -> impl Iterator<Item = f64> {
    logs.windows(3).map(|w| w[0] - 2.0 * w[1] + w[2])
}

/// The deviation that the median bend suggests.
fn usual_bend(psd: &[Vec<f64>]) -> f64 {
    let logs: Vec<Vec<f64>> = psd.iter().map(|c| spectrum_logs(c)).collect();
    let mut sizes: Vec<f64> = logs.iter().flat_map(|l| bends(l)).map(f64::abs).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.get(sizes.len() / 2).map_or(1.0, |middle| middle / 0.6745).max(LEAST_BEND)
}

/// Of a PSD: any level and slope in ln power, and bends of the usual size.
fn spectrum_value(psd: &[f64], usual: f64) -> f64 {
    let logs = spectrum_logs(psd);
    let bent = |b: f64| 0.5 * (FREEDOM + 1.0) * ((b / usual).powi(2) / FREEDOM).ln_1p();
    BANDS_WEIGHT * logs.iter().sum::<f64>() + bends(&logs).map(bent).sum::<f64>()
}
