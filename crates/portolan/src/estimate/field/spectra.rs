//! PSDs: one Gauss-Newton step on ln c per round. Where noise or gaps hide a band, its neighbours
//! speak for it: ln c is a first-order autoregression over bands about the emitter's own level, whose
//! slope also changes slowly, as far as the readings' evidence says so. Precisions have two diagonals
//! beside the main one (Rue and Held 2005, sections 1.1 and 3.4), so a step costs as much as reading
//! it.

use ndarray::Array2;

use super::linearised::{Linearised, marginal};

/// The autoregression: variance in squared units of ln power, reach in bands.
const SILL: f64 = 25.0;
const REACH: f64 = 30.0;
/// How much the slope may change from band to band, in ln power: standard deviations of which the
/// likeliest is taken. With the last of them only the autoregression counts.
const BENDS: [f64; 7] = [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, f64::INFINITY];
/// Where a spectrum has an edge it bends more than it does elsewhere: variances are those of a prior
/// whose bends are so many times as large.
const EDGES: f64 = 2.0;
/// Turns of the emitters.
const TURNS: usize = 3;
const LARGEST_STEP: f64 = 1.5;

/// What PSDs are known to be like before a reading is seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Smoothness {
    bend: f64,
}

impl Smoothness {
    /// Before any evidence.
    pub fn unknown() -> Self {
        Self { bend: f64::INFINITY }
    }

    /// Precision of ln c in a band whose neighbours are known.
    pub fn given_neighbours(self) -> f64 {
        Prior::new(5, self).precision.own[2]
    }
}

/// Moves the PSDs (emitters x bands); returns the variance of their logarithms and how smooth they
/// are.
pub(super) fn step(psd: &mut Array2<f64>, found: &Linearised) -> (Array2<f64>, Smoothness) {
    let (count, bands) = psd.dim();
    let start = psd.mapv(|c| c.max(f64::MIN_POSITIVE).ln());
    let honest: Vec<Vec<f64>> = (0..count)
        .map(|r| {
            let own = |k: usize| &found.band_information[k * count * count..][..count * count];
            (0..bands).map(|k| marginal(own(k), count, r, 1.0 / SILL)).collect()
        })
        .collect();
    let mut logs = start.clone();
    let mut slope = found.band_slope.clone();
    let seen: Vec<Vec<f64>> = (0..count)
        .map(|r| {
            (0..bands)
                .map(|k| {
                    let step = slope[k * count + r] / honest[r][k].max(f64::MIN_POSITIVE);
                    start[[r, k]] + step.clamp(-LARGEST_STEP, LARGEST_STEP)
                })
                .collect()
        })
        .collect();
    let prior = likeliest(&seen, &honest);
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
    let edges = Prior::new(bands, Smoothness { bend: EDGES * prior.smoothness.bend });
    let mut variance = Array2::zeros((count, bands));
    for (r, information) in honest.iter().enumerate() {
        for (k, v) in edges.precision.with(information).inverse_diagonal().into_iter().enumerate() {
            variance[[r, k]] = v;
        }
    }
    (variance, prior.smoothness)
}

/// The prior under which values with some information are likeliest, all emitters together.
fn likeliest(seen: &[Vec<f64>], information: &[Vec<f64>]) -> Prior {
    let evidence = |prior: &Prior| -> f64 {
        seen.iter().zip(information).map(|(y, i)| prior.evidence(y, i)).sum()
    };
    let bands = seen.first().map_or(0, Vec::len);
    let priors = BENDS.iter().map(|&bend| Prior::new(bands, Smoothness { bend }));
    let judged = priors.map(|prior| (evidence(&prior), prior));
    let best = judged.max_by(|a, b| a.0.total_cmp(&b.0));
    best.map_or_else(|| Prior::new(bands, Smoothness::unknown()), |(_, prior)| prior)
}

struct Prior {
    smoothness: Smoothness,
    precision: Banded,
    /// How much each band says of the level.
    weights: Vec<f64>,
}

impl Prior {
    fn new(bands: usize, smoothness: Smoothness) -> Self {
        let memory = (-1.0 / REACH).exp();
        let unit = 1.0 / (SILL * (1.0 - memory * memory));
        let mut own = vec![unit * (1.0 + memory * memory); bands];
        let mut next = vec![-unit * memory; bands];
        let mut after = vec![0.0; bands];
        own[0] = unit;
        own[bands - 1] = if bands == 1 { 1.0 / SILL } else { unit };
        let weights = (0..bands).map(|k| {
            let beside = usize::from(k > 0) + usize::from(k + 1 < bands);
            own[k] - beside as f64 * unit * memory
        });
        let weights = weights.collect();
        let bend = 1.0 / (smoothness.bend * smoothness.bend);
        for k in 0..bands.saturating_sub(2) {
            for (offset, share) in [1.0, 4.0, 1.0].into_iter().enumerate() {
                own[k + offset] += bend * share;
            }
            next[k] -= 2.0 * bend;
            next[k + 1] -= 2.0 * bend;
            after[k] += bend;
        }
        Self { smoothness, precision: Banded { own, next, after }, weights }
    }

    /// The level that the prior gives some values.
    fn level(&self, values: &[f64]) -> f64 {
        let sum: f64 = self.weights.iter().zip(values).map(|(w, v)| w * v).sum();
        sum / self.weights.iter().sum::<f64>()
    }

    /// (Q + diag(information))^-1 (pull + Q level).
    fn solve(&self, information: &[f64], pull: &[f64], level: f64) -> Vec<f64> {
        // Values are taken relative to the level, about which the prior is centred.
        let pull = pull.iter().zip(information).map(|(p, i)| p - i * level).collect();
        let mut values = self.precision.with(information).solve(pull);
        values.iter_mut().for_each(|v| *v += level);
        values
    }

    /// Log likelihood of values with some information each, but for what no prior changes.
    fn evidence(&self, values: &[f64], information: &[f64]) -> f64 {
        let whole = self.precision.with(information);
        let level = self.level(values);
        let pull: Vec<f64> = values.iter().zip(information).map(|(v, i)| i * (v - level)).collect();
        let met = whole.solve(pull.clone());
        let kept: f64 = met.iter().zip(&pull).map(|(m, p)| m * p).sum();
        let all: f64 = values.iter().zip(&pull).map(|(v, p)| (v - level) * p).sum();
        0.5 * (self.precision.log_det() - whole.log_det() - (all - kept))
    }
}

/// A symmetric matrix with two diagonals on either side.
struct Banded {
    own: Vec<f64>,
    next: Vec<f64>,
    after: Vec<f64>,
}

impl Banded {
    fn with(&self, more: &[f64]) -> Factored {
        let bands = self.own.len();
        let mut factored = Factored {
            pivot: self.own.iter().zip(more).map(|(q, i)| q + i).collect(),
            next: self.next.clone(),
            after: self.after.clone(),
        };
        let Factored { pivot, next, after } = &mut factored;
        for k in 0..bands {
            let (first, second) = (next[k] / pivot[k], after[k] / pivot[k]);
            if k + 1 < bands {
                pivot[k + 1] -= first * next[k];
                next[k + 1] -= first * after[k];
            }
            if k + 2 < bands {
                pivot[k + 2] -= second * after[k];
            }
            (next[k], after[k]) = (first, second);
        }
        factored
    }

    fn log_det(&self) -> f64 {
        self.with(&vec![0.0; self.own.len()]).log_det()
    }
}

/// L D L^T with a unit diagonal of L.
struct Factored {
    pivot: Vec<f64>,
    next: Vec<f64>,
    after: Vec<f64>,
}

impl Factored {
    fn solve(&self, mut values: Vec<f64>) -> Vec<f64> {
        let bands = values.len();
        for k in 0..bands {
            let value = values[k];
            if k + 1 < bands {
                values[k + 1] -= self.next[k] * value;
            }
            if k + 2 < bands {
                values[k + 2] -= self.after[k] * value;
            }
        }
        for k in (0..bands).rev() {
            values[k] /= self.pivot[k];
            if k + 1 < bands {
                values[k] -= self.next[k] * values[k + 1];
            }
            if k + 2 < bands {
                values[k] -= self.after[k] * values[k + 2];
            }
        }
        values
    }

    fn log_det(&self) -> f64 {
        self.pivot.iter().map(|p| p.ln()).sum()
    }

    /// From the last band to the first (Takahashi, Fagan and Chin 1973).
    fn inverse_diagonal(&self) -> Vec<f64> {
        let bands = self.pivot.len();
        let mut diagonal = vec![0.0; bands];
        // The inverse between a band and the next, for the band before.
        let mut beside = 0.0;
        for k in (0..bands).rev() {
            let (first, second) = (self.next[k], self.after[k]);
            let one = diagonal.get(k + 1).copied().unwrap_or(0.0);
            let two = diagonal.get(k + 2).copied().unwrap_or(0.0);
            let (first, second) =
                (if k + 1 < bands { first } else { 0.0 }, if k + 2 < bands { second } else { 0.0 });
            let to_next = -first * one - second * beside;
            let to_after = -first * beside - second * two;
            diagonal[k] = 1.0 / self.pivot[k] - first * to_next - second * to_after;
            beside = to_next;
        }
        diagonal
    }
}

#[cfg(test)]
mod tests {
    use faer::Mat;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::linalg::Cholesky;

    fn dense(prior: &Prior, information: &[f64]) -> Mat<f64> {
        let Banded { own, next, after } = &prior.precision;
        Mat::from_fn(own.len(), own.len(), |i, j| match i.abs_diff(j) {
            0 => own[i] + information[i],
            1 => next[i.min(j)],
            2 => after[i.min(j)],
            _ => 0.0,
        })
    }

    #[test]
    fn banded_matrices_are_solved_as_dense_ones() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for (bands, bend) in [(1, 0.3), (2, 0.3), (3, 0.1), (9, 0.4), (9, f64::INFINITY)] {
            let prior = Prior::new(bands, Smoothness { bend });
            let information: Vec<f64> = (0..bands).map(|_| rng.random_range(0.0..3.0)).collect();
            let whole = Cholesky::new(dense(&prior, &information).as_ref()).unwrap();
            let factored = prior.precision.with(&information);
            assert!((whole.log_det() - factored.log_det()).abs() < 1e-9);
            for (a, b) in whole.inverse_diagonal().iter().zip(factored.inverse_diagonal()) {
                assert!((a / b - 1.0).abs() < 1e-8, "{bands} bands: {a} {b}");
            }
            let pull: Vec<f64> = (0..bands).map(|_| rng.random_range(-1.0..1.0)).collect();
            let solved = factored.solve(pull.clone());
            let matrix = dense(&prior, &information);
            for i in 0..bands {
                let back: f64 = (0..bands).map(|j| matrix[(i, j)] * solved[j]).sum();
                assert!((back - pull[i]).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn smooth_spectra_go_on_and_rough_ones_do_not_bend() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let smooth: Vec<f64> = (0..40).map(|k| -0.02 * (k as f64 - 12.0).powi(2)).collect();
        let rough: Vec<f64> = (0..40).map(|_| rng.random_range(-3.0..3.0)).collect();
        // The last bands are not read.
        let information: Vec<f64> = (0..40).map(|k| if k < 35 { 400.0 } else { 0.0 }).collect();
        let found = |values: &[f64]| {
            let prior = likeliest(&[values.to_vec()], std::slice::from_ref(&information));
            let pull: Vec<f64> = values.iter().zip(&information).map(|(v, i)| v * i).collect();
            (prior.smoothness.bend, prior.solve(&information, &pull, prior.level(values)))
        };
        let (bend, values) = found(&smooth);
        assert!(bend <= 0.1, "{bend}");
        let last = smooth[34];
        assert!((values[38] - smooth[38]).abs() < 0.5 * (last - smooth[38]).abs(), "{values:?}");
        let (bend, values) = found(&rough);
        assert!(bend >= 1.6, "{bend}");
        assert!(values.iter().all(|v| v.abs() < 6.0), "{values:?}");
    }
}
