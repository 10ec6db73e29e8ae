//! Many sensors. The law (places, shadowing, PSDs, noise) is fitted to some of them; at the others
//! the drawn field is the prior that their own readings correct, sensor by sensor. Then all sensors
//! carry the map, each place by its nearest ones.

use faer::Mat;
use ndarray::Array2;
use rayon::prelude::*;

use super::draw::Fields;
use super::fit::{FieldFit, LARGEST_STEP, Pseudo};
use super::law::Covariates;
use super::linearised::{Linearised, Noise, Reported};
use super::soft_levels::SoftLevels;
use crate::gaussian_process::Neighbours;
use crate::linalg::Cholesky;
use crate::readings::Readings;
use crate::site::Site;

/// Sensors that the law is fitted to.
pub(super) const FITTED: usize = 1500;
/// Sensors whose covariance is factorised as a whole.
pub(in crate::estimate) const TOGETHER: usize = 4000;
/// Nearest sensors of a place beyond that.
pub(in crate::estimate) const NEIGHBOURS: usize = 128;
const STEPS: usize = 8;
/// Neighbours that a sensor's log SLFs must agree with where readings are exact, and sweeps.
const AGREEING: usize = 24;
const SWEEPS: usize = 3;
/// Sensors whose neighbours' predictions are compared with their readings, about.
const MOST_JUDGED: usize = 4000;
/// Standard deviations of the shadowing below the trend that a log SLF starts from at least.
const DEEP: f64 = 3.0;
/// What exact readings leave open of a log SLF that agrees with its neighbours: a variance.
const SETTLED: f64 = 1e-8;

/// Evenly spread over the sensors' order.
pub(in crate::estimate) fn some(sensors: usize) -> Vec<usize> {
    let kept = FITTED.min(sensors);
    (0..kept).map(|i| i * sensors / kept).collect()
}

/// The same, with a reading sensor for each band that none of them reads.
pub(super) fn some_of(readings: &Readings) -> Vec<usize> {
    let mut kept = some(readings.sensors());
    let power = readings.power();
    for column in power.columns() {
        if kept.iter().all(|&sensor| column[sensor].is_nan()) {
            kept.extend(column.iter().position(|value| !value.is_nan()));
        }
    }
    kept.sort_unstable();
    kept
}

/// Log SLFs at all sensors (sensors x emitters), the posterior of each given the fields drawn there,
/// and what stands in for levels.
pub(super) fn everywhere(
    fit: &FieldFit<'_>,
    fields: &Fields,
    targets: &Reported,
    fitted: &[usize],
) -> (Array2<f64>, SoftLevels) {
    let prior = |n: usize, r: usize| (fields.mean[[r, n]], fields.variance[[r, n]].max(1e-6));
    let shape = (fields.mean.ncols(), fit.psd.nrows());
    let mut logs = Array2::from_shape_fn(shape, |(n, r)| prior(n, r).0);
    let mut soft = targets.soft();
    let known = Known { psd: &fit.psd, psd_variance: &fit.psd_variance, noise: fit.noise, targets };
    correct(&mut logs, &mut soft, &known, 0, prior);
    for (i, &n) in fitted.iter().enumerate() {
        logs.row_mut(n).assign(&fit.logs.row(i));
    }
    (logs, soft)
}

/// What log SLFs are corrected by.
struct Known<'a> {
    psd: &'a Array2<f64>,
    psd_variance: &'a Array2<f64>,
    noise: Noise,
    targets: &'a Reported,
}

/// Corrects log SLFs, whose prior has a mean and a variance, by the readings.
fn correct(
    logs: &mut Array2<f64>,
    soft: &mut SoftLevels,
    known: &Known<'_>,
    first: usize,
    prior: impl Fn(usize, usize) -> (f64, f64),
) {
    let Known { psd, psd_variance, noise, targets } = *known;
    let count = psd.nrows();
    // Far from the solution, noise taken as small would make the steps wild.
    for step in first..STEPS {
        let least = 0.3 * 0.3f64.powi(step as i32);
        let noise = Noise { relative: noise.relative.max(least), ..noise };
        if let Reported::Levels(read) = targets {
            let before = targets.linearised(logs, psd, noise, soft);
            let open = |n: usize| {
                let whole = Cholesky::new(precision(&before, n, &prior).as_ref());
                whole.map_or_else(|| Mat::zeros(count, count), |whole| whole.inverse())
            };
            let at_sensor: Vec<Mat<f64>> = (0..logs.nrows()).map(open).collect();
            let in_band: Vec<Mat<f64>> = psd_variance
                .columns()
                .into_iter()
                .map(|v| Mat::from_fn(count, count, |r, q| if r == q { v[r] } else { 0.0 }))
                .collect();
            soft.renew(read, logs, psd, &at_sensor, &in_band);
        }
        let found = targets.linearised(logs, psd, noise, soft);
        for n in 0..logs.nrows() {
            let mut side = Mat::from_fn(count, 1, |r, _| {
                let (mean, variance) = prior(n, r);
                found.slope[n * count + r] - (logs[[n, r]] - mean) / variance
            });
            let matrix = precision(&found, n, &prior);
            let Some(cholesky) = Cholesky::new(matrix.as_ref()) else { continue };
            cholesky.half_solve(side.as_mut());
            cholesky.other_half_solve(side.as_mut());
            for r in 0..count {
                logs[[n, r]] += side[(r, 0)].clamp(-LARGEST_STEP, LARGEST_STEP);
            }
        }
    }
}

/// Precision of a sensor's log SLFs given its readings and a prior.
fn precision(
    found: &Linearised,
    sensor: usize,
    prior: &impl Fn(usize, usize) -> (f64, f64),
) -> Mat<f64> {
    let count = found.emitters;
    Mat::from_fn(count, count, |r, q| {
        let both = found.information[(sensor * count + r) * count + q];
        both + if r == q { 1.0 / prior(sensor, r).1 } else { 0.0 }
    })
}

/// A sensor's neighbours, their weights and the variance that they leave.
type Around = (Vec<usize>, Mat<f64>, f64);

impl FieldFit<'_> {
    /// Exact readings fix the sum over emitters, not every part of it: each sensor's log SLFs are
    /// brought to agree with its neighbours', and then are data without noise.
    pub fn settle(&mut self) {
        let Some((trends, around)) = self.neighbourhoods() else { return };
        // A part that unmixing put at nothing has no logarithm to interpolate.
        let deep = DEEP * self.shadow.sill.sqrt();
        for ((n, r), log) in self.logs.indexed_iter_mut() {
            *log = log.max(trends[r][n] - deep);
        }
        for _ in 0..SWEEPS {
            let means = self.said_by_neighbours(&trends, &around);
            let prior = |n: usize, r: usize| (means[[n, r]], around[n].2);
            let known = Known {
                psd: &self.psd,
                psd_variance: &self.psd_variance,
                noise: self.noise,
                targets: self.targets,
            };
            correct(&mut self.logs, &mut self.soft, &known, STEPS / 2, prior);
        }
        for (r, emitter) in self.emitters.iter_mut().enumerate() {
            emitter.pseudo = Pseudo {
                values: self.logs.column(r).to_vec(),
                noise: vec![SETTLED; self.sites.len()],
            };
        }
    }

    /// Every emitter's trend at the sensors, and the sensors' neighbours with their weights and what
    /// they leave unknown, which are the same for every emitter. None where they cannot be solved.
    fn neighbourhoods(&self) -> Option<(Vec<Vec<f64>>, Vec<Around>)> {
        let (correlation, sill) = (self.correlation(), self.shadow.sill);
        let index = Neighbours::new(self.sites);
        let trends: Vec<Vec<f64>> = self
            .emitters
            .iter()
            .map(|e| e.posterior.mean_trend(&self.law.losses(&e.places.at, self.sites)))
            .collect();
        let around: Option<Vec<Around>> = (0..self.sites.len())
            .into_par_iter()
            .map(|n| {
                let mut near = Vec::new();
                index.nearest(&self.sites[n], AGREEING + 1, &mut near);
                let near: Vec<usize> =
                    near.into_iter().map(|(_, m)| m).filter(|m| *m != n).collect();
                let sites: Vec<Site> = near.iter().map(|&m| self.sites[m]).collect();
                let none = vec![0.0; sites.len()];
                let known = Covariates::new(&correlation.matrix(&sites), 1.0, &none)?;
                let mut weights = correlation.cross(&sites, &[self.sites[n]]);
                known.cholesky.half_solve(weights.as_mut());
                let left = sill * (1.0 - weights.col(0).squared_norm_l2()).max(1e-6);
                known.cholesky.other_half_solve(weights.as_mut());
                Some((near, weights, left))
            })
            .collect();
        Some((trends, around?))
    }

    /// Every sensor's log SLFs as its neighbours predict them.
    fn said_by_neighbours(&self, trends: &[Vec<f64>], around: &[Around]) -> Array2<f64> {
        Array2::from_shape_fn(self.logs.dim(), |(n, r)| {
            let (near, weights, _) = &around[n];
            let said = near.iter().enumerate();
            let said = said.map(|(i, &m)| weights[(i, 0)] * (self.logs[[m, r]] - trends[r][m]));
            trends[r][n] + said.sum::<f64>()
        })
    }

    /// By how much variances must grow for nine of ten readings to lie inside the 90 % interval of
    /// what their neighbours predict.
    pub fn overconfidence(&self) -> f64 {
        let Some((trends, around)) = self.neighbourhoods() else { return 1.0 };
        let means = self.said_by_neighbours(&trends, &around);
        let (sensors, bands) = (self.sites.len(), self.psd.ncols());
        let step = 1 + sensors / MOST_JUDGED;
        let mut ratios = Vec::new();
        for n in (0..sensors).step_by(step) {
            for k in 0..bands {
                let (mut now, mut told, mut variance) = (0.0, 0.0, 0.0);
                for (r, psd) in self.psd.column(k).iter().enumerate() {
                    let part = means[[n, r]].exp() * psd;
                    now += self.logs[[n, r]].exp() * psd;
                    told += part;
                    variance += part * part * around[n].2;
                }
                let ratio = (now / told).ln().powi(2) * told * told / variance;
                ratios.extend(Some(ratio).filter(|r| r.is_finite()));
            }
        }
        if ratios.is_empty() {
            return 1.0;
        }
        let at = (0.9 * ratios.len() as f64) as usize;
        let (_, ratio, _) = ratios.select_nth_unstable_by(at, f64::total_cmp);
        (*ratio / (1.645 * 1.645)).clamp(0.1, 10.0)
    }
}
