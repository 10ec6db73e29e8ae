//! Fitting the factors in relative error. Readings span 60 dB and are compared as ln(x + a); near a
//! solution that is least squares with weights 1 / (x + a)^2, solved for one sensor, then one band
//! at a time by coordinate descent on small normal equations, the weights renewed from the model
//! (iteratively reweighted least squares).

use std::ops::Range;

use rayon::prelude::*;

use super::small::{cholesky, solve};

/// Coordinate sweeps on each small system.
const SWEEPS: usize = 12;

/// Sensors in one piece of work.
const PART: usize = 512;

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
        let of_part = |part: Range<usize>| {
            let (mut sum, mut count) = (0.0, 0usize);
            for n in part {
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
            (sum, count)
        };
        let parts: Vec<(f64, usize)> = self.parts().map(of_part).collect();
        let sum: f64 = parts.iter().map(|(sum, _)| sum).sum();
        let count: usize = parts.iter().map(|(_, count)| count).sum();
        (sum / count.max(1) as f64).sqrt()
    }

    /// The sensors in parts that threads share, cut the same way whatever their number.
    fn parts(&self) -> impl IndexedParallelIterator<Item = Range<usize>> + use<> {
        let sensors = self.sensors();
        let part = move |i: usize| i * PART..((i + 1) * PART).min(sensors);
        (0..sensors.div_ceil(PART)).into_par_iter().map(part)
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
        let mut weights: Vec<f64> = vec![0.0; self.power.len()];
        let mut best = self.residual();
        let mut kept = (self.slf.clone(), self.psd.clone());
        for _ in 0..rounds {
            self.weigh(&mut weights);
            self.sensor_side(&weights);
            self.band_side(&weights);
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

    /// Weights of the readings, which move to the nearest power that a level allows.
    fn weigh(&mut self, weights: &mut [f64]) {
        let mut power = std::mem::take(&mut self.power);
        let (bands, sensors) = (self.bands, power.len() / self.bands);
        let length = PART * bands;
        let parts = power.par_chunks_mut(length).zip(weights.par_chunks_mut(length)).enumerate();
        parts.for_each(|(part, (power, weights))| {
            for (i, (x, weight)) in power.iter_mut().zip(weights).enumerate() {
                if x.is_nan() {
                    continue;
                }
                let (n, k) = (part * PART + i / bands, i % bands);
                let model = (0..self.rank)
                    .map(|r| self.slf[r * sensors + n] * self.psd[r * bands + k])
                    .sum();
                if let Some(bounds) = &self.bounds {
                    *x = bounds.nearest(part * length + i, model);
                }
                // The larger of reading and model: neither a deep fade of the model nor a reading
                // that noise has cut to zero may claim all the weight.
                let scale = 1.0 / (x.max(model) + self.floor);
                *weight = scale * scale;
            }
        });
        self.power = power;
    }

    /// SLFs at every sensor that follow from the PSDs.
    pub(super) fn follow(&mut self) {
        let weigh = |x: &f64| if x.is_nan() { 0.0 } else { (x + self.floor).powi(-2) };
        let weights: Vec<f64> = self.power.iter().map(weigh).collect();
        self.sensor_side(&weights);
    }

    /// SLFs at every sensor, given PSDs and weights.
    fn sensor_side(&mut self, weights: &[f64]) {
        let (rank, bands, sensors) = (self.rank, self.bands, self.sensors());
        let of_part = |part: Range<usize>| {
            let mut system = System::new(rank);
            let mut own = vec![0.0; part.len() * rank];
            for (n, own) in part.zip(own.chunks_exact_mut(rank)) {
                own.iter_mut().enumerate().for_each(|(r, s)| *s = self.slf[r * sensors + n]);
                system.clear();
                for k in 0..bands {
                    let (x, weight) = (self.power[n * bands + k], weights[n * bands + k]);
                    if weight > 0.0 {
                        system.add(weight, x, |r| self.psd[r * bands + k]);
                    }
                }
                system.solve(|r| r, own, rank);
            }
            own
        };
        let found: Vec<Vec<f64>> = self.parts().map(of_part).collect();
        for (n, own) in found.iter().flat_map(|part| part.chunks_exact(rank)).enumerate() {
            own.iter().enumerate().for_each(|(r, s)| self.slf[r * sensors + n] = *s);
        }
    }

    fn band_side(&mut self, weights: &[f64]) {
        let (rank, bands, sensors) = (self.rank, self.bands, self.sensors());
        let of_part = |part: Range<usize>| {
            let mut systems: Vec<System> = (0..bands).map(|_| System::new(rank)).collect();
            for n in part {
                for (k, system) in systems.iter_mut().enumerate() {
                    let (x, weight) = (self.power[n * bands + k], weights[n * bands + k]);
                    if weight > 0.0 {
                        system.add(weight, x, |r| self.slf[r * sensors + n]);
                    }
                }
            }
            systems
        };
        let mut parts: Vec<Vec<System>> = self.parts().map(of_part).collect();
        let (first, others) = parts.split_first_mut().expect("there are sensors");
        for (k, system) in first.iter_mut().enumerate() {
            others.iter().for_each(|systems| system.join(&systems[k]));
            system.solve(|r| r * bands + k, &mut self.psd, rank);
        }
    }
}

/// Normal equations of one sensor or one band.
struct System {
    gram: Vec<f64>,
    side: Vec<f64>,
    row: Vec<f64>,
    factor: Vec<f64>,
}

impl System {
    fn new(rank: usize) -> Self {
        let zeros = |n| vec![0.0; n];
        let (gram, factor) = (zeros(rank * rank), zeros(rank * rank));
        Self { gram, side: zeros(rank), row: zeros(rank), factor }
    }

    fn clear(&mut self) {
        self.gram.fill(0.0);
        self.side.fill(0.0);
    }

    /// Adds the equations of another.
    fn join(&mut self, other: &Self) {
        let add = |to: &mut [f64], from: &[f64]| to.iter_mut().zip(from).for_each(|(t, f)| *t += f);
        add(&mut self.gram, &other.gram);
        add(&mut self.side, &other.side);
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
