//! Fitting the factors in relative error. Readings span 60 dB and are compared as ln(x + a); near a
//! solution that is least squares with weights 1 / (x + a)^2, solved for one sensor, then one band
//! at a time by coordinate descent on small normal equations, the weights renewed from the model
//! (iteratively reweighted least squares).

use super::small::{cholesky, solve};

/// Coordinate sweeps on each small system.
const SWEEPS: usize = 12;

/// Between which powers each reading lies: the bins of a quantiser.
#[derive(Clone)]
pub(crate) struct Bounds {
    pub low: Vec<f64>,
    pub high: Vec<f64>,
}

impl Bounds {
    /// The power in the bin of entry `at` that is nearest to a model's.
    pub fn nearest(&self, at: usize, model: f64) -> f64 {
        model.max(self.low[at]).min(self.high[at])
    }
}

/// Readings (sensor after sensor, NaN = gap) and factors (emitter after emitter). Where bounds are
/// known, a model inside them is right, and the reading follows it.
pub(super) struct Weighted {
    pub rank: usize,
    pub bands: usize,
    pub power: Vec<f64>,
    pub bounds: Option<Bounds>,
    /// The a of ln(x + a).
    pub floor: f64,
    pub slf: Vec<f64>,
    pub psd: Vec<f64>,
}

impl Weighted {
    fn sensors(&self) -> usize {
        self.power.len() / self.bands
    }

    /// Root mean square of ln(x + a) - ln(model + a) over the entries that are there.
    pub(super) fn residual(&self) -> f64 {
        let sensors = self.sensors();
        let (mut sum, mut count) = (0.0, 0usize);
        for n in 0..sensors {
            for k in 0..self.bands {
                let at = n * self.bands + k;
                if !self.power[at].is_nan() {
                    let model = self.model(n, k);
                    let x = self.aim(at, model);
                    let error = ((x + self.floor) / (model + self.floor)).ln();
                    sum += error * error;
                    count += 1;
                }
            }
        }
        (sum / count.max(1) as f64).sqrt()
    }

    fn aim(&self, at: usize, model: f64) -> f64 {
        self.bounds.as_ref().map_or(self.power[at], |bounds| bounds.nearest(at, model))
    }

    pub(super) fn model(&self, n: usize, k: usize) -> f64 {
        let sensors = self.sensors();
        (0..self.rank).map(|r| self.slf[r * sensors + n] * self.psd[r * self.bands + k]).sum()
    }

    /// Alternates until a round gains less than `tolerance` of the residual; keeps the best round.
    /// Returns its residual.
    pub(super) fn polish(&mut self, rounds: usize, tolerance: f64) -> f64 {
        let sensors = self.sensors();
        let mut system = System::new(self.rank);
        let mut weights: Vec<f64> = vec![0.0; self.power.len()];
        let mut best = self.residual();
        let mut kept = (self.slf.clone(), self.psd.clone());
        for _ in 0..rounds {
            for n in 0..sensors {
                for k in 0..self.bands {
                    let at = n * self.bands + k;
                    if self.power[at].is_nan() {
                        continue;
                    }
                    let model = self.model(n, k);
                    let x = self.aim(at, model);
                    self.power[at] = x;
                    // The larger of reading and model: neither a deep fade of the model nor a
                    // reading that noise has cut to zero may claim all the weight.
                    let scale = 1.0 / (x.max(model) + self.floor);
                    weights[at] = scale * scale;
                }
            }
            self.sensor_side(&weights, &mut system);
            self.band_side(&weights, &mut system);
            let now = self.residual();
            let gain = best - now;
            if gain > 0.0 {
                best = now;
                kept.0.copy_from_slice(&self.slf);
                kept.1.copy_from_slice(&self.psd);
            }
            if gain < tolerance * best {
                break;
            }
        }
        (self.slf, self.psd) = kept;
        best
    }

    /// SLFs at every sensor, given PSDs and weights.
    pub(super) fn sensor_side(&mut self, weights: &[f64], system: &mut System) {
        let (rank, bands, sensors) = (self.rank, self.bands, self.sensors());
        for n in 0..sensors {
            system.clear();
            for k in 0..bands {
                let (x, weight) = (self.power[n * bands + k], weights[n * bands + k]);
                if weight > 0.0 {
                    system.add(weight, x, |r| self.psd[r * bands + k]);
                }
            }
            system.solve(|r| r * sensors + n, &mut self.slf, rank);
        }
    }

    fn band_side(&mut self, weights: &[f64], system: &mut System) {
        let (rank, bands, sensors) = (self.rank, self.bands, self.sensors());
        for k in 0..bands {
            system.clear();
            for n in 0..sensors {
                let (x, weight) = (self.power[n * bands + k], weights[n * bands + k]);
                if weight > 0.0 {
                    system.add(weight, x, |r| self.slf[r * sensors + n]);
                }
            }
            system.solve(|r| r * bands + k, &mut self.psd, rank);
        }
    }
}

/// Normal equations of one sensor or one band.
pub(super) struct System {
    gram: Vec<f64>,
    side: Vec<f64>,
    row: Vec<f64>,
    factor: Vec<f64>,
}

impl System {
    pub(super) fn new(rank: usize) -> Self {
        let zeros = |n| vec![0.0; n];
        let (gram, factor) = (zeros(rank * rank), zeros(rank * rank));
        Self { gram, side: zeros(rank), row: zeros(rank), factor }
    }

    fn clear(&mut self) {
        self.gram.fill(0.0);
        self.side.fill(0.0);
    }

    #[inline(always)]
    fn add(&mut self, weight: f64, target: f64, factor: impl Fn(usize) -> f64) {
        let rank = self.row.len();
        for r in 0..rank {
            self.row[r] = factor(r);
        }
        for p in 0..rank {
            let scaled = weight * self.row[p];
            self.side[p] += scaled * target;
            for q in 0..=p {
                self.gram[p * rank + q] += scaled * self.row[q];
            }
        }
    }

    /// Improves the non-negative unknowns, found in `values` at `place(r)`.
    fn solve(&mut self, place: impl Fn(usize) -> usize, values: &mut [f64], rank: usize) {
        for p in 0..rank {
            for q in 0..p {
                self.gram[q * rank + p] = self.gram[p * rank + q];
            }
        }
        // Where the plain solution is positive it is the answer.
        self.factor.copy_from_slice(&self.gram);
        self.row.copy_from_slice(&self.side);
        cholesky(&mut self.factor, rank);
        solve(&self.factor, rank, &mut self.row);
        if self.row.iter().all(|v| *v >= 0.0 && v.is_finite()) {
            (0..rank).for_each(|r| values[place(r)] = self.row[r]);
            return;
        }
        for _ in 0..SWEEPS {
            for p in 0..rank {
                let own = self.gram[p * rank + p];
                if own > 0.0 && own.is_finite() {
                    let mut rest = self.side[p];
                    for q in (0..rank).filter(|&q| q != p) {
                        rest -= self.gram[p * rank + q] * values[place(q)];
                    }
                    values[place(p)] = (rest / own).max(0.0);
                }
            }
        }
    }
}
