//! What is still uncertain, given the sensors and the places picked so far.

use faer::Mat;
use rayon::prelude::*;

use super::Process;
use crate::error::EstimateError;
use crate::gaussian_process::Correlation;
use crate::grid::{Cell, Grid};
use crate::linalg::{Cholesky, add_product, product};
use crate::site::{Site, by_place};

/// With more places than this, correlations are conditioned on an even selection of them; the
/// spread knows the others.
const MOST_SENSORS: usize = 2000;
/// Below this share of its prior variance a place has nothing left to tell.
const CERTAIN: f64 = 1e-9;

/// A process of unit variance after conditioning. Scaling it to the method's spread multiplies
/// only what a sensor brings to the evaluated cells: its own scale cancels.
pub(super) struct Posterior {
    correlation: Correlation,
    noise: f64,
    candidates: Vec<Site>,
    /// L^-1 k of every candidate, one column each.
    half: Mat<f64>,
    /// Of every pick: its covariance with all candidates over the square root of its variance.
    picks: Vec<Vec<f64>>,
    picked: Vec<bool>,
    /// Posterior variance of the candidates.
    variance: Vec<f64>,
    /// Evaluated cells x candidates.
    cross: Mat<f64>,
    /// dB^2 of the method's spread for every unit of variance, at the evaluated cells.
    scale: Vec<f64>,
}

impl Posterior {
    /// `spread` is the method's variance at the evaluated cells.
    pub fn new(
        grid: Grid,
        sensors: &[Site],
        evaluated: &[Cell],
        spread: &[f64],
        candidates: &[Cell],
        process: Process,
    ) -> Result<Self, EstimateError> {
        let correlation = Correlation::exponential(process.decorrelation_m);
        // Of a place that was read n times the mean is known, with 1/n of the noise.
        let places = by_place(sensors);
        let every = places.len().div_ceil(MOST_SENSORS).max(1);
        let read = || places.iter().step_by(every);
        let used: Vec<Site> = read().map(|rows| sensors[rows[0]]).collect();
        let noise = process.noise_ratio;
        let own: Vec<f64> = read().map(|rows| noise / rows.len() as f64).collect();
        let plain = correlation.matrix(&used);
        // Very long decorrelation distances need a little more on the diagonal.
        let cholesky = [0.0, 1e-10, 1e-8, 1e-6]
            .iter()
            .find_map(|jitter| {
                let mut matrix = plain.clone();
                (0..used.len()).for_each(|i| matrix[(i, i)] += own[i] + jitter);
                Cholesky::new(matrix.as_ref())
            })
            .ok_or_else(|| {
                let sensors = used.len();
                EstimateError::Numerical(format!(
                    "the covariance of {sensors} sensors is not positive definite: choose a \
                     shorter decorrelation"
                ))
            })?;
        let sites = |cells: &[Cell]| cells.iter().map(|&c| grid.site(c)).collect::<Vec<Site>>();
        let (places, candidates) = (sites(evaluated), sites(candidates));
        let half = |sites: &[Site]| {
            let mut half = correlation.cross(&used, sites);
            cholesky.half_solve(half.as_mut());
            half
        };
        let left = |half: &Mat<f64>| -> Vec<f64> {
            (0..half.ncols()).map(|j| (1.0 - half.col(j).squared_norm_l2()).max(0.0)).collect()
        };
        let (half_evaluated, half) = (half(&places), half(&candidates));
        let taken: std::collections::HashSet<Cell> =
            sensors.iter().filter_map(|&s| grid.cell_at(s)).collect();
        let scale = left(&half_evaluated)
            .iter()
            .zip(spread)
            .zip(evaluated)
            // What remains in a sensor's own cell is its noise: no other place removes it.
            .map(
                |((left, v), cell)| {
                    if *left > CERTAIN && !taken.contains(cell) { v / left } else { 0.0 }
                },
            )
            .collect();
        let mut cross = correlation.cross(&places, &candidates);
        add_product(cross.as_mut(), half_evaluated.transpose(), half.as_ref(), -1.0);
        Ok(Self {
            noise,
            picks: Vec::new(),
            picked: vec![false; candidates.len()],
            variance: left(&half),
            candidates,
            correlation,
            half,
            cross,
            scale,
        })
    }

    /// The candidate that removes the most variance, and how much; the first of equals. None where
    /// all are picked.
    pub fn best(&self) -> Option<(usize, f64)> {
        let gains: Vec<f64> = (0..self.candidates.len())
            .into_par_iter()
            .map(|j| if self.variance[j] > CERTAIN { self.gain(j) } else { 0.0 })
            .collect();
        let open = (0..gains.len()).filter(|&j| !self.picked[j]);
        // The later of equal maxima is returned, hence the reversal.
        let pick = open.rev().max_by(|&a, &b| gains[a].total_cmp(&gains[b]))?;
        Some((pick, gains[pick]))
    }

    fn gain(&self, candidate: usize) -> f64 {
        let column = self.cross.col(candidate);
        let sum: f64 = column.iter().zip(&self.scale).map(|(c, scale)| scale * c * c).sum();
        sum / (self.variance[candidate] + self.noise)
    }

    /// Puts a sensor at a candidate: a rank-one downdate of everything.
    pub fn condition(&mut self, pick: usize) {
        self.picked[pick] = true;
        if self.variance[pick] <= CERTAIN {
            return;
        }
        let root = (self.variance[pick] + self.noise).sqrt();
        let along = self.covariance(pick).into_iter().map(|c| c / root).collect::<Vec<_>>();
        let across: Vec<f64> = self.cross.col(pick).iter().map(|c| c / root).collect();
        for (j, step) in along.iter().enumerate() {
            self.variance[j] = (self.variance[j] - step * step).max(0.0);
            for (c, a) in self.cross.col_mut(j).iter_mut().zip(&across) {
                *c -= step * a;
            }
        }
        self.picks.push(along);
    }

    /// Posterior covariance of one candidate with all.
    fn covariance(&self, pick: usize) -> Vec<f64> {
        let known = product(self.half.transpose(), self.half.col(pick).as_mat());
        (0..self.candidates.len())
            .map(|j| {
                let prior = self.correlation.between(self.candidates[pick], self.candidates[j]);
                let told: f64 = self.picks.iter().map(|along| along[pick] * along[j]).sum();
                prior - known[(j, 0)] - told
            })
            .collect()
    }
}
