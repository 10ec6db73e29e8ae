//! Where the factors of exact readings may lie. Noise-free readings have rank R, so two
//! factorisations differ by an R x R matrix only: C' = (I + E) C and S' = S (I + E)^-1. With E in
//! one row i, (I + E)^-1 is I - E: both sides are linear in that row, and a logarithmic barrier
//! over C' >= 0 and S' >= 0 is concave in it. Rows are improved in turn by damped Newton steps
//! (Boyd and Vandenberghe 2004, sections 9.6 and 11.4): first into the feasible set, from a guess
//! that may be negative somewhere, then to its analytic centre.

use super::small::{cholesky, dot, solve};

const PHASE_ONE_ROUNDS: usize = 200;
/// Rounds in which the most negative entry must come a tenth nearer to 0.
const PATIENCE: usize = 20;
const CENTRE_ROUNDS: usize = 30;

/// PSDs (R rows of K) and SLFs at the sensors (R rows of N), such that their product stays fixed.
pub(super) struct Pair {
    pub rank: usize,
    pub psd: Vec<f64>,
    pub slf: Vec<f64>,
}

impl Pair {
    fn psd_row(&self, r: usize) -> &[f64] {
        let bands = self.psd.len() / self.rank;
        &self.psd[r * bands..(r + 1) * bands]
    }

    fn slf_row(&self, r: usize) -> &[f64] {
        let sensors = self.slf.len() / self.rank;
        &self.slf[r * sensors..(r + 1) * sensors]
    }

    /// The most negative entry, in units of the mean size of its row.
    pub(super) fn worst(&self) -> f64 {
        let row = |v: &[f64]| {
            let mean = v.iter().map(|x| x.abs()).sum::<f64>() / v.len() as f64;
            v.iter().fold(f64::INFINITY, |m, &x| m.min(x)) / mean.max(f64::MIN_POSITIVE)
        };
        let rows = (0..self.rank).map(|r| row(self.psd_row(r)).min(row(self.slf_row(r))));
        rows.fold(f64::INFINITY, f64::min)
    }

    /// Entries within `rounding` of zero, in units of the mean size of their row.
    pub(super) fn zeros(&self, rounding: f64) -> usize {
        let row = |v: &[f64]| {
            let mean = v.iter().map(|x| x.abs()).sum::<f64>() / v.len() as f64;
            v.iter().filter(|x| x.abs() <= rounding * mean).count()
        };
        (0..self.rank).map(|r| row(self.psd_row(r)) + row(self.slf_row(r))).sum()
    }

    /// PSD rows to mean 1, the SLFs against it.
    pub(super) fn normalise(&mut self) {
        let (bands, sensors) = (self.psd.len() / self.rank, self.slf.len() / self.rank);
        for r in 0..self.rank {
            let row = &mut self.psd[r * bands..(r + 1) * bands];
            let mean = row.iter().map(|c| c.abs()).sum::<f64>() / bands as f64;
            if mean > 0.0 {
                row.iter_mut().for_each(|c| *c /= mean);
                let slf = &mut self.slf[r * sensors..(r + 1) * sensors];
                slf.iter_mut().for_each(|s| *s *= mean);
            }
        }
    }

    /// Moves to where nothing is negative; false where no such place was found.
    pub(super) fn make_feasible(&mut self) -> bool {
        self.normalise();
        let mut newton = Newton::new(self.rank);
        let mut before = f64::NEG_INFINITY;
        for round in 0..PHASE_ONE_ROUNDS {
            let worst = self.worst();
            if round % PATIENCE == PATIENCE - 1 {
                if worst < 0.9 * before {
                    return false;
                }
                before = worst;
            }
            if worst > 0.0 {
                return true;
            }
            let slack = (-1.2 * worst).max(1e-15);
            for i in 0..self.rank {
                newton.step(self, i, slack);
            }
            self.normalise();
        }
        self.worst() > 0.0
    }

    /// From a feasible pair to the analytic centre of all feasible ones.
    pub(super) fn centre(&mut self) {
        let mut newton = Newton::new(self.rank);
        for _ in 0..CENTRE_ROUNDS {
            let steps = (0..self.rank).map(|i| newton.step(self, i, 0.0));
            if steps.fold(0.0, f64::max) < 1e-3 {
                break;
            }
        }
        self.normalise();
    }
}

/// Workspace of a Newton step.
struct Newton {
    hessian: Vec<f64>,
    ascent: Vec<f64>,
    direction: Vec<f64>,
}

impl Newton {
    fn new(rank: usize) -> Self {
        let zeros = |n| vec![0.0; n];
        Self { hessian: zeros(rank * rank), ascent: zeros(rank), direction: zeros(rank) }
    }

    /// One damped step in row i of E; returns the squared Newton decrement.
    fn step(&mut self, pair: &mut Pair, i: usize, slack: f64) -> f64 {
        let rank = pair.rank;
        let (bands, sensors) = (pair.psd.len() / rank, pair.slf.len() / rank);
        let mean = |v: &[f64]| v.iter().map(|x| x.abs()).sum::<f64>() / v.len() as f64;
        let psd_slack = slack * mean(pair.psd_row(i));
        self.hessian.fill(0.0);
        self.ascent.fill(0.0);
        for k in 0..bands {
            let inverse = 1.0 / (pair.psd[i * bands + k] + psd_slack);
            for p in (0..rank).filter(|&p| p != i) {
                let ratio = pair.psd[p * bands + k] * inverse;
                self.ascent[p] += ratio;
                for q in 0..=p {
                    self.hessian[p * rank + q] += ratio * pair.psd[q * bands + k] * inverse;
                }
            }
        }
        for p in (0..rank).filter(|&p| p != i) {
            let slf_slack = slack * mean(pair.slf_row(p));
            let (mut first, mut second) = (0.0, 0.0);
            for (s, own) in pair.slf_row(p).iter().zip(pair.slf_row(i)) {
                let ratio = own / (s + slf_slack);
                first += ratio;
                second += ratio * ratio;
            }
            self.ascent[p] -= first;
            self.hessian[p * rank + p] += second;
        }
        for p in 0..rank {
            self.hessian[i * rank + p] = 0.0;
            self.hessian[p * rank + i] = 0.0;
        }
        self.hessian[i * rank + i] = 1.0;
        cholesky(&mut self.hessian, rank);
        self.direction.copy_from_slice(&self.ascent);
        solve(&self.hessian, rank, &mut self.direction);
        self.direction[i] = 0.0;
        let decrement = dot(&self.ascent, &self.direction);
        if !(decrement > 0.0 && decrement.is_finite()) {
            return 0.0;
        }
        // Self-concordance makes this step length safe; the reach keeps it inside all the same.
        let scaled = decrement.sqrt();
        let mut reach = if scaled > 0.25 { 1.0 / (1.0 + scaled) } else { 1.0 };
        let mut limit = f64::INFINITY;
        for k in 0..bands {
            let change: f64 = (0..rank).map(|p| self.direction[p] * pair.psd[p * bands + k]).sum();
            if change < 0.0 {
                limit = limit.min((pair.psd[i * bands + k] + psd_slack) / -change);
            }
        }
        for p in (0..rank).filter(|&p| p != i) {
            let slf_slack = slack * mean(pair.slf_row(p));
            for (s, own) in pair.slf_row(p).iter().zip(pair.slf_row(i)) {
                let change = -self.direction[p] * own;
                if change < 0.0 {
                    limit = limit.min((s + slf_slack) / -change);
                }
            }
        }
        // Half the way to the wall is as good as the cautious step where that is shorter.
        reach = reach.max((0.5 * limit).min(1.0)).min(0.9 * limit);
        for p in (0..rank).filter(|&p| p != i) {
            let along = reach * self.direction[p];
            for k in 0..bands {
                pair.psd[i * bands + k] += along * pair.psd[p * bands + k];
            }
            for n in 0..sensors {
                pair.slf[p * sensors + n] -= along * pair.slf[i * sensors + n];
            }
        }
        decrement
    }
}
