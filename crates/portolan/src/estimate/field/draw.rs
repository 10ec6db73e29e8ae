//! From the fitted processes to places: every emitter's log SLF with its variance. The mean uses all
//! sensors up to a limit, beyond it the nearest ones (Vecchia 1988); what the sensors leave unknown
//! of the shadowing is always taken from the nearest, since sensors behind them add next to nothing
//! (the screening effect; Stein 2002).

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use faer::Mat;
use ndarray::Array2;
use rayon::prelude::*;

use super::law::{Covariates, Law, Mast, PathLoss, Shadow, mean_trend, normalised};
use crate::error::EstimateError;
use crate::estimate::interpolated::COARSE;
use crate::gaussian_process::{Correlation, Neighbourhood, Neighbours};
use crate::linalg::{Cholesky, product};
use crate::progress::Progress;
use crate::site::Site;

/// Nearest sensors that the variance is taken from where the mean looks at all.
const NEAR: usize = 64;
/// The same square of places shares them: its side over their reach.
const NEAR_COARSE: f64 = 0.6;
/// Most places that are worked on at once.
const BLOCK: usize = 256;

/// One emitter's field: what is known of it at the sensors, and where it may stand.
#[derive(Clone)]
pub(crate) struct EmitterField {
    pub law: Law,
    pub shadow: Shadow,
    /// Places with their posterior weights and trends.
    pub places: Vec<Site>,
    pub weights: Vec<f64>,
    pub trends: Vec<PathLoss>,
    /// Known transmitters, which stand for the only place then.
    pub masts: Vec<Mast>,
    /// Pseudo-data at the sensors and their noise variances.
    pub values: Vec<f64>,
    pub noise: Vec<f64>,
}

impl EmitterField {
    /// Losses from the places to other places, those x places.
    pub fn losses(&self, at: &[Site]) -> Mat<f64> {
        match self.masts.is_empty() {
            true => self.law.losses(&self.places, at),
            false => self.law.losses_from(&self.masts, at),
        }
    }

    fn mean_trend(&self, losses: &Mat<f64>) -> Vec<f64> {
        mean_trend(&self.weights, &self.trends, losses)
    }

    /// K^-1 of (values - trend, 1, losses) over some sensors.
    fn weigh(&self, sites: &[Site], values: &[f64], cholesky: &Cholesky) -> Mat<f64> {
        let losses = self.losses(sites);
        let trend = self.mean_trend(&losses);
        let mut weights = Mat::from_fn(sites.len(), 2 + losses.ncols(), |i, j| match j {
            0 => values[i] - trend[i],
            1 => 1.0,
            _ => losses[(i, j - 2)],
        });
        cholesky.half_solve(weights.as_mut());
        cholesky.other_half_solve(weights.as_mut());
        weights
    }
}

/// Mean and variance of every emitter's log SLF, emitters x places.
pub(crate) struct Fields {
    pub mean: Array2<f64>,
    pub variance: Array2<f64>,
}

/// Sensors and emitters, ready to be asked.
pub(crate) struct EmitterKriging {
    pub sensors: Vec<Site>,
    pub emitters: Vec<EmitterField>,
    /// How many nearest sensors a place's mean looks at; all where None.
    pub neighbours: Option<usize>,
    index: Neighbours,
    /// Per emitter K^-1 of (values - trend, 1, losses) over all sensors, where all are looked at:
    /// solved for when the emitter is first drawn.
    whole: Vec<OnceLock<Mat<f64>>>,
}

fn singular() -> EstimateError {
    EstimateError::Numerical(
        "the covariance of neighbouring sensors cannot be factorised: fix decorrelation and \
         shadow_db"
            .into(),
    )
}

impl EmitterKriging {
    pub fn new(
        sensors: Vec<Site>,
        emitters: Vec<EmitterField>,
        neighbours: Option<usize>,
    ) -> Result<Self, EstimateError> {
        let kriging = Self::unsolved(sensors, emitters, neighbours);
        kriging.solve_all().map(|()| kriging)
    }

    /// The same without a solution for any emitter yet.
    pub fn unsolved(
        sensors: Vec<Site>,
        emitters: Vec<EmitterField>,
        neighbours: Option<usize>,
    ) -> Self {
        let index = Neighbours::new(&sensors);
        let whole = emitters.iter().map(|_| OnceLock::new()).collect();
        Self { sensors, emitters, neighbours, index, whole }
    }

    pub fn solve_all(&self) -> Result<(), EstimateError> {
        self.solve(&self.all())
    }

    fn all(&self) -> Vec<usize> {
        (0..self.emitters.len()).collect()
    }

    /// Solves for emitters that are about to be drawn.
    fn solve(&self, emitters: &[usize]) -> Result<(), EstimateError> {
        if self.neighbours.is_some() {
            return Ok(());
        }
        emitters.par_iter().filter(|r| self.whole[**r].get().is_none()).try_for_each(|&r| {
            let e = &self.emitters[r];
            let correlations = e.correlation().matrix(&self.sensors);
            let covariates = Covariates::new(&correlations, e.shadow.sill, &e.noise);
            let covariates = covariates.ok_or_else(singular)?;
            let found = e.weigh(&self.sensors, &e.values, &covariates.cholesky);
            self.whole[r].get_or_init(|| found);
            Ok(())
        })
    }

    /// Log SLFs at the sensors (emitters x sensors) as the other sensors' pseudo-data predict them;
    /// None where places look at the nearest sensors only.
    pub fn leave_one_out(&self) -> Result<Option<Fields>, EstimateError> {
        if self.neighbours.is_some() {
            return Ok(None);
        }
        self.solve_all()?;
        let sensors = &self.sensors;
        let columns: Vec<Vec<(f64, f64)>> = self
            .emitters
            .par_iter()
            .zip(&self.whole)
            .map(|(e, whole)| {
                let whole = whole.get().ok_or_else(singular)?;
                let correlations = e.correlation().matrix(sensors);
                let covariates = Covariates::new(&correlations, e.shadow.sill, &e.noise);
                let covariates = covariates.ok_or_else(singular)?;
                Ok(e.left_out(whole, &covariates.cholesky.inverse_diagonal()))
            })
            .collect::<Result<_, EstimateError>>()?;
        let shape = (columns.len(), sensors.len());
        Ok(Some(Fields {
            mean: Array2::from_shape_fn(shape, |(r, n)| columns[r][n].0),
            variance: Array2::from_shape_fn(shape, |(r, n)| columns[r][n].1),
        }))
    }

    pub fn all_fields(
        &self,
        at: &[Site],
        progress: &Progress<'_>,
    ) -> Result<Fields, EstimateError> {
        self.fields(at, &self.all(), progress)
    }

    /// The fields of some emitters, in that order.
    pub fn fields(
        &self,
        at: &[Site],
        emitters: &[usize],
        progress: &Progress<'_>,
    ) -> Result<Fields, EstimateError> {
        self.solve(emitters)?;
        let shape = (emitters.len(), at.len());
        let (mut mean, mut variance) = (Array2::zeros(shape), Array2::zeros(shape));
        let groups = match self.neighbours {
            Some(count) => self.index.neighbourhoods(at, count, COARSE),
            None => self.index.neighbourhoods(at, NEAR, NEAR_COARSE),
        };
        let parts: Vec<Neighbourhood> =
            groups.into_iter().flat_map(|group| group.split(BLOCK)).collect();
        let finished = AtomicUsize::new(0);
        let drawn: Vec<Vec<Vec<(f64, f64)>>> = parts
            .par_iter()
            .map(|Neighbourhood { sensors: near, places, .. }| {
                let done = 1 + finished.fetch_add(1, Ordering::Relaxed);
                progress.report(done, parts.len())?;
                let sites: Vec<Site> = places.iter().map(|&p| at[p]).collect();
                Patch::new(self, near, &sites).fields(emitters)
            })
            .collect::<Result<_, EstimateError>>()?;
        for (Neighbourhood { places, .. }, part) in parts.iter().zip(&drawn) {
            for (r, values) in part.iter().enumerate() {
                for (&place, (f, v)) in places.iter().zip(values) {
                    mean[[r, place]] = *f;
                    variance[[r, place]] = *v;
                }
            }
        }
        Ok(Fields { mean, variance })
    }
}

impl EmitterField {
    /// What the others say at every sensor, with the place, the level and the exponent that they
    /// alone speak for: under one place in closed form (Rasmussen and Williams 2006, equations 5.10
    /// to 5.12), places weighed without what the sensor itself said of them; and the variance of the
    /// field. `whole` is what `weigh` gave, `diagonal` that of K^-1.
    fn left_out(&self, whole: &Mat<f64>, diagonal: &[f64]) -> Vec<(f64, f64)> {
        let places = || self.weights.iter().zip(&self.trends).enumerate();
        let level: f64 = places().map(|(_, (w, t))| w * t.level).sum();
        let left_out = |i: usize| {
            let slopes = places().map(|(k, (w, t))| w * t.exponent * whole[(i, 2 + k)]);
            let one = whole[(i, 1)];
            let values = whole[(i, 0)] + level * one - slopes.sum::<f64>();
            let (logs, errors): (Vec<f64>, Vec<(f64, f64)>) = places()
                .map(|(k, (weight, t))| {
                    let loss = whole[(i, 2 + k)];
                    let [a, b, c] = t.covariance;
                    let moved = one * one * a - 2.0 * one * loss * b + loss * loss * c;
                    let precision = (diagonal[i] - moved).max(1e-12 * diagonal[i]);
                    let error = (values - t.level * one + t.exponent * loss) / precision;
                    let log = weight.ln() + 0.5 * (error * error * precision - precision.ln());
                    (log, (error, 1.0 / precision))
                })
                .unzip();
            let (weights, _) = normalised(logs);
            let mean = |of: &dyn Fn(&(f64, f64)) -> f64| -> f64 {
                weights.iter().zip(&errors).map(|(w, e)| w * of(e)).sum()
            };
            let error = mean(&|(error, _)| *error);
            let variance = mean(&|(other, own)| own + (other - error).powi(2));
            (self.values[i] - error, (variance - self.noise[i]).max(0.0))
        };
        (0..self.values.len()).map(left_out).collect()
    }

    fn correlation(&self) -> Correlation {
        Correlation::exponential(self.shadow.decorrelation_m)
    }
}

/// Some places and their nearest sensors.
struct Patch<'a> {
    kriging: &'a EmitterKriging,
    at: &'a [Site],
    near: &'a [usize],
    sensors: Vec<Site>,
}

impl<'a> Patch<'a> {
    fn new(kriging: &'a EmitterKriging, near: &'a [usize], at: &'a [Site]) -> Self {
        let sensors = near.iter().map(|&n| kriging.sensors[n]).collect();
        Self { kriging, at, near, sensors }
    }

    /// Mean and variance of some emitters at the places.
    fn fields(&self, emitters: &[usize]) -> Result<Vec<Vec<(f64, f64)>>, EstimateError> {
        let mut last: Option<(f64, Crosses)> = None;
        let mut fields = Vec::with_capacity(emitters.len());
        for &r in emitters {
            let emitter = &self.kriging.emitters[r];
            let reach = emitter.shadow.decorrelation_m;
            // Emitters share their decorrelation, as a rule.
            if last.as_ref().is_none_or(|(known, _)| *known != reach) {
                last = Some((reach, self.crosses(emitter.correlation())));
            }
            let Some((_, crosses)) = &last else { continue };
            fields.push(self.field(emitter, self.kriging.whole[r].get(), crosses)?);
        }
        Ok(fields)
    }

    fn crosses(&self, correlation: Correlation) -> Crosses {
        let whole = self.kriging.neighbours.is_none();
        Crosses {
            near: correlation.cross(&self.sensors, self.at),
            within: correlation.matrix(&self.sensors),
            all: whole.then(|| correlation.cross(&self.kriging.sensors, self.at)),
        }
    }

    /// `whole` are the weights of all sensors; without them the nearest stand for all.
    fn field(
        &self,
        emitter: &EmitterField,
        whole: Option<&Mat<f64>>,
        crosses: &Crosses,
    ) -> Result<Vec<(f64, f64)>, EstimateError> {
        let sill = emitter.shadow.sill;
        let pick = |all: &[f64]| self.near.iter().map(|&n| all[n]).collect::<Vec<f64>>();
        let noise = pick(&emitter.noise);
        let local = Covariates::new(&crosses.within, sill, &noise).ok_or_else(singular)?;
        let losses = emitter.losses(self.at);
        let trend = emitter.mean_trend(&losses);
        // Columns: shadowing, then what the sensors say of the level and of every place's loss.
        let said = match (whole, &crosses.all) {
            (Some(weights), Some(cross)) => product(cross.transpose(), weights.as_ref()),
            _ => {
                let values = pick(&emitter.values);
                let weights = emitter.weigh(&self.sensors, &values, &local.cholesky);
                product(crosses.near.transpose(), weights.as_ref())
            }
        };
        let mut half = crosses.near.clone();
        local.cholesky.half_solve(half.as_mut());
        let of = |i: usize| {
            let known = sill * sill * half.col(i).squared_norm_l2();
            let level = 1.0 - sill * said[(i, 1)];
            let (mut within, mut centre, mut square) = (0.0, 0.0, 0.0);
            for (j, (weight, t)) in emitter.weights.iter().zip(&emitter.trends).enumerate() {
                let slope = sill * said[(i, 2 + j)] - losses[(i, j)];
                let [a, b, c] = t.covariance;
                within +=
                    weight * (level * level * a + 2.0 * level * slope * b + slope * slope * c);
                let value = level * t.level + slope * t.exponent;
                centre += weight * value;
                square += weight * value * value;
            }
            let between = (square - centre * centre).max(0.0);
            (trend[i] + sill * said[(i, 0)], (sill - known).max(0.0) + within + between)
        };
        Ok((0..self.at.len()).map(of).collect())
    }
}

/// Correlations of the nearest sensors with the places and with each other, and of all sensors with
/// the places.
struct Crosses {
    near: Mat<f64>,
    within: Mat<f64>,
    all: Option<Mat<f64>>,
}
