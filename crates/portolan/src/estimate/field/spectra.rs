//! PSDs: one Gauss-Newton step on ln c per round. Where noise hides a band, its neighbours speak for
//! it: ln c is a first-order autoregression over bands about the emitter's own level, whose
//! precision is tridiagonal (Rue and Held 2005, section 1.1), so a step costs as much as reading it.

use ndarray::Array2;

use super::linearised::{Linearised, marginal};

/// The autoregression: variance in squared units of ln power, reach in bands.
const SILL: f64 = 25.0;
const REACH: f64 = 30.0;
/// Turns of the emitters.
const TURNS: usize = 3;
const LARGEST_STEP: f64 = 1.5;

/// Precision of ln c in a band whose two neighbours are known.
pub(super) fn given_neighbours() -> f64 {
    Autoregression::new(3).own[1]
}

/// Moves the PSDs (emitters x bands); returns the variance of their logarithms.
pub(super) fn step(psd: &mut Array2<f64>, found: &Linearised) -> Array2<f64> {
    let (count, bands) = psd.dim();
    let start = psd.mapv(|c| c.max(f64::MIN_POSITIVE).ln());
    let mut logs = start.clone();
    let mut slope = found.band_slope.clone();
    let prior = Autoregression::new(bands);
    for _ in 0..TURNS {
        for r in 0..count {
            let information: Vec<f64> =
                (0..bands).map(|k| found.band_information[(k * count + r) * count + r]).collect();
            let now = logs.row(r).to_vec();
            let pull: Vec<f64> =
                (0..bands).map(|k| slope[k * count + r] + information[k] * now[k]).collect();
            let new = prior.solve(&information, &pull, prior.level(&now));
            for k in 0..bands {
                let limit = start[[r, k]] + LARGEST_STEP;
                let value = new[k].clamp(limit - 2.0 * LARGEST_STEP, limit);
                let moved = value - now[k];
                logs[[r, k]] = value;
                for q in 0..count {
                    slope[k * count + q] -=
                        found.band_information[(k * count + q) * count + r] * moved;
                }
            }
        }
    }
    *psd = logs.mapv(f64::exp);
    let mut variance = Array2::zeros((count, bands));
    for r in 0..count {
        let honest: Vec<f64> = (0..bands)
            .map(|k| {
                let information = &found.band_information[k * count * count..][..count * count];
                marginal(information, count, r, 1.0 / SILL)
            })
            .collect();
        for (k, v) in prior.variance(&honest).into_iter().enumerate() {
            variance[[r, k]] = v;
        }
    }
    variance
}

/// A tridiagonal precision.
struct Autoregression {
    own: Vec<f64>,
    next: f64,
}

impl Autoregression {
    fn new(bands: usize) -> Self {
        let memory = (-1.0 / REACH).exp();
        let unit = 1.0 / (SILL * (1.0 - memory * memory));
        let mut own = vec![unit * (1.0 + memory * memory); bands];
        own[0] = unit;
        own[bands - 1] = unit;
        if bands == 1 {
            own[0] = 1.0 / SILL;
        }
        Self { own, next: -unit * memory }
    }

    /// The level that the autoregression gives some values.
    fn level(&self, values: &[f64]) -> f64 {
        let last = self.own.len() - 1;
        let (mut sum, mut weight) = (0.0, 0.0);
        for (k, v) in values.iter().enumerate() {
            let neighbours = if last == 0 {
                0.0
            } else if k == 0 || k == last {
                1.0
            } else {
                2.0
            };
            let w = self.own[k] + neighbours * self.next;
            sum += w * v;
            weight += w;
        }
        sum / weight
    }

    /// (Q + diag(information))^-1 (pull + Q level), by elimination.
    fn solve(&self, information: &[f64], pull: &[f64], level: f64) -> Vec<f64> {
        let bands = self.own.len();
        let mut pivot = vec![0.0; bands];
        let mut value = vec![0.0; bands];
        for k in 0..bands {
            // Values are taken relative to the level, about which the prior is centred.
            pivot[k] = self.own[k] + information[k];
            value[k] = pull[k] - information[k] * level;
            if k > 0 {
                let factor = self.next / pivot[k - 1];
                pivot[k] -= factor * self.next;
                value[k] -= factor * value[k - 1];
            }
        }
        for k in (0..bands).rev() {
            if k + 1 < bands {
                value[k] -= self.next * value[k + 1];
            }
            value[k] /= pivot[k];
        }
        value.iter_mut().for_each(|v| *v += level);
        value
    }

    /// Diagonal of (Q + diag(information))^-1.
    fn variance(&self, information: &[f64]) -> Vec<f64> {
        let bands = self.own.len();
        let square = self.next * self.next;
        let whole: Vec<f64> = (0..bands).map(|k| self.own[k] + information[k]).collect();
        let mut down = whole.clone();
        for k in 1..bands {
            down[k] -= square / down[k - 1];
        }
        let mut up = whole.clone();
        for k in (0..bands - 1).rev() {
            up[k] -= square / up[k + 1];
        }
        (0..bands).map(|k| 1.0 / (down[k] + up[k] - whole[k])).collect()
    }
}
