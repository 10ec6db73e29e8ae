//! The law of one emitter's spatial loss field: ln S(x) = b - alpha ln max(d(x, p) / d0, 1) + g(x),
//! g a Gaussian process with covariance eta^2 exp(-d / Xc) (Gudmundson 1991). Level b and exponent
//! alpha are linear given the place p, so they are integrated out in closed form (Rasmussen and
//! Williams 2006, section 2.7); places are a finite set of candidates with prior weights.

use faer::Mat;

use super::area::Area;
use crate::findings::Exponent;
use crate::linalg::{Cholesky, product};
use crate::site::Site;

/// What is assumed of level and exponent before any reading.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Law {
    /// Distance in metres within which there is no path loss.
    pub reference_m: f64,
    pub exponent: f64,
    pub exponent_sd: f64,
    pub level: f64,
    pub level_sd: f64,
}

impl Law {
    pub fn new(area: &Area, level: f64) -> Self {
        let reference_m = area.reference_m();
        Self { reference_m, exponent: 2.3, exponent_sd: 0.35, level, level_sd: 10.0 }
    }

    /// ln max(d / d0, 1) from a place to another.
    fn loss(&self, place: Site, at: Site) -> f64 {
        (0.5 * (place.squared_m2(at) / (self.reference_m * self.reference_m)).ln()).max(0.0)
    }

    /// Losses from an emitter's places to other places, those x emitter's.
    pub fn losses(&self, places: &[Site], at: &[Site]) -> Mat<f64> {
        Mat::from_fn(at.len(), places.len(), |i, j| self.loss(places[j], at[i]))
    }
}

/// One of the transmitters of a band that are known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Mast {
    pub at: Site,
    /// Its power beside the others'.
    pub share: f64,
}

/// The exponent by which the powers of several masts are summed before one is fitted.
const SUMMED: f64 = 2.0;

impl Law {
    /// Losses from all masts together to some places: as from one transmitter at a distance of its
    /// own from each.
    pub fn losses_from(&self, masts: &[Mast], at: &[Site]) -> Mat<f64> {
        let square = self.reference_m * self.reference_m;
        let loss = |place: Site| {
            let part = |mast: &Mast| {
                let far = mast.at.squared_m2(place);
                mast.share * (far / square).max(1.0).powf(-0.5 * SUMMED)
            };
            -masts.iter().map(part).sum::<f64>().ln() / SUMMED
        };
        Mat::from_fn(at.len(), 1, |i, _| loss(at[i]))
    }
}

/// Shadowing: sill in squared units of ln power.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shadow {
    pub decorrelation_m: f64,
    pub sill: f64,
}

/// Places where an emitter may stand, with the logarithm of their prior weight.
#[derive(Clone, Debug, Default)]
pub(crate) struct EmitterPlaces {
    pub at: Vec<Site>,
    pub log_prior: Vec<f64>,
}

/// Covariance of sensors and their noise, factorised.
pub(crate) struct Covariates {
    pub cholesky: Cholesky,
    pub log_det: f64,
    /// L^-1 1.
    pub half_one: Mat<f64>,
}

impl Covariates {
    /// From the sensors' correlations (lower half); None where the matrix cannot be factorised.
    pub fn new(correlations: &Mat<f64>, sill: f64, noise: &[f64]) -> Option<Self> {
        let sensors = noise.len();
        let mut matrix =
            Mat::from_fn(
                sensors,
                sensors,
                |i, j| {
                    if i >= j { sill * correlations[(i, j)] } else { 0.0 }
                },
            );
        for j in 0..sensors {
            matrix[(j, j)] += noise[j] + 1e-9 * sill;
        }
        let cholesky = Cholesky::new(matrix.as_ref())?;
        let mut half_one = Mat::from_fn(sensors, 1, |_, _| 1.0);
        cholesky.half_solve(half_one.as_mut());
        Some(Self { log_det: cholesky.log_det(), cholesky, half_one })
    }

    pub fn half(&self, values: &[f64]) -> Mat<f64> {
        let mut half = Mat::from_fn(values.len(), 1, |i, _| values[i]);
        self.cholesky.half_solve(half.as_mut());
        half
    }

    /// Level, exponent and evidence for every column of L^-1 losses, given L^-1 values.
    pub fn trends(
        &self,
        law: &Law,
        half_values: &Mat<f64>,
        half_losses: &Mat<f64>,
    ) -> Vec<PathLoss> {
        let one = product(half_losses.transpose(), self.half_one.as_ref());
        let values = product(half_losses.transpose(), half_values.as_ref());
        let dot = |a: &Mat<f64>, b: &Mat<f64>| product(a.transpose(), b.as_ref())[(0, 0)];
        let level_precision = law.level_sd.powi(-2);
        let exponent_precision = law.exponent_sd.powi(-2);
        let one_one = dot(&self.half_one, &self.half_one) + level_precision;
        let one_values = dot(&self.half_one, half_values) + level_precision * law.level;
        let squares = dot(half_values, half_values)
            + level_precision * law.level * law.level
            + exponent_precision * law.exponent * law.exponent;
        (0..half_losses.ncols())
            .map(|j| {
                let cross = -one[(j, 0)];
                let own = half_losses.col(j).squared_norm_l2() + exponent_precision;
                let side = exponent_precision * law.exponent - values[(j, 0)];
                let det = (one_one * own - cross * cross).max(1e-12 * one_one * own);
                let level = (own * one_values - cross * side) / det;
                let exponent = (one_one * side - cross * one_values) / det;
                let quadratic = squares - level * one_values - exponent * side;
                PathLoss {
                    level,
                    exponent,
                    covariance: [own / det, -cross / det, one_one / det],
                    log_evidence: -0.5 * (self.log_det + det.ln() + quadratic),
                }
            })
            .collect()
    }
}

/// The trend of an emitter that stands at one place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathLoss {
    pub level: f64,
    pub exponent: f64,
    /// Of (level, exponent): variance of the level, covariance, variance of the exponent.
    pub covariance: [f64; 3],
    /// Up to a constant that depends on neither place nor shadowing.
    pub log_evidence: f64,
}

/// What pseudo-data say about one emitter.
pub(crate) struct EmitterPosterior {
    pub covariates: Covariates,
    /// L^-1 losses, sensors x places.
    pub half_losses: Mat<f64>,
    /// Weight of every place; they sum to 1.
    pub weights: Vec<f64>,
    pub trends: Vec<PathLoss>,
    /// K^-1 (values - mean trend).
    pub pull: Vec<f64>,
    pub log_evidence: f64,
}

impl EmitterPosterior {
    /// `losses` are sensors x places.
    pub fn new(
        covariates: Covariates,
        law: &Law,
        places: &EmitterPlaces,
        losses: &Mat<f64>,
        values: &[f64],
    ) -> Self {
        let mut half_losses = losses.clone();
        covariates.cholesky.half_solve(half_losses.as_mut());
        let mut posterior = Self {
            covariates,
            half_losses,
            weights: Vec::new(),
            trends: Vec::new(),
            pull: Vec::new(),
            log_evidence: 0.0,
        };
        posterior.update(law, places, losses, values);
        posterior
    }

    /// Log evidence of other values at the same sensors with the same noise.
    pub fn evidence(&self, law: &Law, places: &EmitterPlaces, values: &[f64]) -> f64 {
        let half_values = self.covariates.half(values);
        let trends = self.covariates.trends(law, &half_values, &self.half_losses);
        let logs = trends.iter().zip(&places.log_prior).map(|(t, p)| t.log_evidence + p);
        normalised(logs.collect()).1
    }

    /// The same sensors and noise with other values.
    pub fn update(&mut self, law: &Law, places: &EmitterPlaces, losses: &Mat<f64>, values: &[f64]) {
        let half_values = self.covariates.half(values);
        self.trends = self.covariates.trends(law, &half_values, &self.half_losses);
        let logs = self.trends.iter().zip(&places.log_prior).map(|(t, p)| t.log_evidence + p);
        (self.weights, self.log_evidence) = normalised(logs.collect());
        let trend = self.mean_trend(losses);
        let rest: Vec<f64> = values.iter().zip(&trend).map(|(v, t)| v - t).collect();
        let mut half = self.covariates.half(&rest);
        self.covariates.cholesky.other_half_solve(half.as_mut());
        self.pull = (0..rest.len()).map(|i| half[(i, 0)]).collect();
    }

    /// Mean trend at places whose losses (those x emitter's places) are given.
    pub fn mean_trend(&self, losses: &Mat<f64>) -> Vec<f64> {
        mean_trend(&self.weights, &self.trends, losses)
    }

    /// Posterior mean of the place and its standard deviation along x and y.
    pub fn place(&self, places: &EmitterPlaces) -> (Site, [f64; 2]) {
        mean_place(&self.weights, &places.at)
    }

    /// Posterior mean of the exponent and its standard deviation.
    pub fn exponent(&self) -> Exponent {
        mean_exponent(&self.weights, &self.trends)
    }
}

/// Mean of weighted places and their standard deviation along x and y.
pub(crate) fn mean_place(weights: &[f64], places: &[Site]) -> (Site, [f64; 2]) {
    // Relative to the first: coordinates may be millions of metres.
    let first = places[0];
    let (mut mean, mut square) = ([0.0; 2], [0.0; 2]);
    for (w, at) in weights.iter().zip(places) {
        let off = [at.x_m - first.x_m, at.y_m - first.y_m];
        for axis in 0..2 {
            mean[axis] += w * off[axis];
            square[axis] += w * off[axis] * off[axis];
        }
    }
    let sd = [0, 1].map(|a| (square[a] - mean[a] * mean[a]).max(0.0).sqrt());
    (first.moved(mean[0], mean[1]), sd)
}

/// Mean exponent and its standard deviation, within and between places.
pub(crate) fn mean_exponent(weights: &[f64], trends: &[PathLoss]) -> Exponent {
    let (mut value, mut square) = (0.0, 0.0);
    for (w, t) in weights.iter().zip(trends) {
        value += w * t.exponent;
        square += w * (t.exponent * t.exponent + t.covariance[2]);
    }
    Exponent { value, se: (square - value * value).max(0.0).sqrt() }
}

/// Mean over weighted places of level - exponent * loss.
pub(crate) fn mean_trend(weights: &[f64], trends: &[PathLoss], losses: &Mat<f64>) -> Vec<f64> {
    let level: f64 = weights.iter().zip(trends).map(|(w, t)| w * t.level).sum();
    let slopes = Mat::from_fn(weights.len(), 1, |j, _| weights[j] * trends[j].exponent);
    let mean = product(losses.as_ref(), slopes.as_ref());
    (0..losses.nrows()).map(|i| level - mean[(i, 0)]).collect()
}

/// Weights from their logarithms, and the logarithm of their sum.
pub(crate) fn normalised(mut logs: Vec<f64>) -> (Vec<f64>, f64) {
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut sum = 0.0;
    for log in &mut logs {
        *log = (*log - most).exp();
        sum += *log;
    }
    logs.iter_mut().for_each(|w| *w /= sum);
    (logs, most + sum.ln())
}
