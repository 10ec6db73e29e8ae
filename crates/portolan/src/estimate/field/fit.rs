//! The fit. Readings with noise: linearised, then one Gaussian process per emitter in turn until they
//! agree (block Gauss-Seidel on the joint posterior), then PSDs and noise, and again; places and
//! shadowing now and then. Readings without noise: only the choice among exact factorisations.

use faer::Mat;
use ndarray::Array2;
use rayon::prelude::*;

use super::area::Area;
use super::law::{Covariates, EmitterPlaces, EmitterPosterior, Law, Shadow};
use super::linearised::{Linearised, Noise, Reported, marginal};
use super::places::PlaceSearch;
use super::shadow::{self, EmitterSample, FixedShadow};
use super::shear::Shears;
use super::soft_levels::SoftLevels;
use super::spectra::{self, Smoothness};
use crate::error::EstimateError;
use crate::gaussian_process::{Correlation, Neighbours};
use crate::linalg::Cholesky;
use crate::progress::Progress;
use crate::site::Site;

/// Information below this says nothing; a variance of 1e4 in ln power.
const LEAST_INFORMATION: f64 = 1e-4;
/// Turns of the emitters per round.
const TURNS: usize = 3;
/// Rounds in which places and shadowing are sought again.
const REFRESH: [usize; 4] = [0, 2, 5, 9];
/// The same where the fit starts from an earlier estimate.
const WARM_REFRESH: [usize; 2] = [0, 2];
/// Beyond so many sensors, the nearest ones alone say what they leave open for levels.
const OPEN_TOGETHER: usize = 300;
const OPEN_NEAREST: usize = 16;
/// Largest step of a log SLF in one round.
pub(super) const LARGEST_STEP: f64 = 1.5;
/// A round that moves ln power by less than this is the last.
const SETTLED: f64 = 1e-3;
/// The same from an earlier estimate, which is near the answer: after a few rounds only the
/// directions that the readings do not determine still change.
const WARM_SETTLED: f64 = 0.05;
/// Choices among exact factorisations, each with fresh places and shadowing, and sweeps of each.
const CHOICES: usize = 2;
const SWEEPS: usize = 8;
/// Sensors that the first lattice of places is judged by.
const COARSE_SENSORS: usize = 200;

/// What one emitter is known by.
pub(super) struct Emitter {
    pub places: EmitterPlaces,
    /// Sensors x places.
    pub losses: Mat<f64>,
    pub pseudo: Pseudo,
    pub posterior: EmitterPosterior,
}

/// Pseudo-data of one emitter: values and noise variances at the sensors.
pub(super) struct Pseudo {
    pub values: Vec<f64>,
    pub noise: Vec<f64>,
}

pub(super) struct FieldFit<'a> {
    pub area: Area,
    pub sites: &'a [Site],
    pub targets: &'a Reported,
    pub law: Law,
    pub fixed: FixedShadow,
    pub best_place_only: bool,
    /// Sensors that the law is fitted to; more say little more.
    pub law_sensors: usize,
    /// The readings have no noise, and the start fits them.
    pub exact: bool,
    /// The start is an earlier estimate.
    pub warm: bool,
    /// There was one, but the readings contradict it.
    pub unmet: bool,
    /// The additive noise is never taken to be below this.
    pub least_additive: f64,
    /// Log SLFs, sensors x emitters.
    pub logs: Array2<f64>,
    /// Emitters x bands.
    pub psd: Array2<f64>,
    /// Variance of ln PSD.
    pub psd_variance: Array2<f64>,
    /// How smooth PSDs are.
    pub smoothness: Smoothness,
    pub noise: Noise,
    /// The noise before the quantiser is not known: it is what makes levels likeliest.
    pub unsure: bool,
    /// What stands in for levels.
    pub soft: SoftLevels,
    pub shadow: Shadow,
    pub emitters: Vec<Emitter>,
}

impl FieldFit<'_> {
    /// Returns the number of rounds.
    pub fn run(&mut self, rounds: usize, progress: &Progress<'_>) -> Result<usize, EstimateError> {
        let done =
            if self.exact { self.choose(progress)? } else { self.iterate(rounds, progress)? };
        let found = self.linearised();
        let honest = self.honest_all(&found);
        let places = self.search(&honest)?;
        self.condition(honest, places)?;
        Ok(done)
    }

    /// Log SLFs at other places (places x emitters).
    pub fn predict(&self, at: &[Site]) -> Array2<f64> {
        let cross = self.correlation().cross(self.sites, at);
        let sill = self.shadow.sill;
        let mut logs = Array2::zeros((at.len(), self.emitters.len()));
        for (mut column, emitter) in logs.columns_mut().into_iter().zip(&self.emitters) {
            let losses = self.law.losses(&emitter.places.at, at);
            let trend = emitter.posterior.mean_trend(&losses);
            for (j, (log, trend)) in column.iter_mut().zip(trend).enumerate() {
                let pulls = cross.col(j).iter().zip(&emitter.posterior.pull);
                *log = trend + sill * pulls.map(|(c, p)| c * p).sum::<f64>();
            }
        }
        logs
    }

    fn choose(&mut self, progress: &Progress<'_>) -> Result<usize, EstimateError> {
        let several = self.psd.nrows() > 1;
        let choices = if several && !self.warm { CHOICES } else { 1 };
        for choice in 0..choices {
            progress.report(choice, choices)?;
            let found = self.linearised();
            let places = self.refresh(&found)?;
            if several {
                self.condition(self.pseudo_all(&found), places)?;
                let shears = Shears::new(&self.law, &self.emitters, &self.logs, &self.psd);
                (self.logs, self.psd) = shears.run(SWEEPS);
                self.normalise();
            }
        }
        Ok(choices)
    }

    pub fn iterate(
        &mut self,
        rounds: usize,
        progress: &Progress<'_>,
    ) -> Result<usize, EstimateError> {
        let (refresh, settled) = match self.warm {
            true => (&WARM_REFRESH[..], WARM_SETTLED),
            false => (&REFRESH[..], SETTLED),
        };
        for round in 0..rounds {
            progress.report(round, rounds)?;
            self.noise = self.targets.noise(&self.logs, &self.psd, self.least_additive);
            self.soften()?;
            let found = self.linearised();
            let places = if refresh.contains(&round) {
                self.refresh(&found)?
            } else {
                self.emitters.iter().map(|e| e.places.clone()).collect()
            };
            self.condition(self.pseudo_all(&found), places)?;
            let moved = self.turns(found);
            let found = self.linearised();
            (self.psd_variance, self.smoothness) = spectra::step(&mut self.psd, &found);
            self.normalise();
            if moved < settled {
                return Ok(round + 1);
            }
        }
        Ok(rounds)
    }

    /// Log evidence of the readings, up to a constant: their likelihood where the fit stands, and how
    /// likely log SLFs there are under the law (Laplace; Rasmussen and Williams 2006, section 3.4).
    pub fn log_evidence(&mut self) -> Result<f64, EstimateError> {
        let found = self.linearised();
        let places = self.emitters.iter().map(|e| e.places.clone()).collect();
        self.condition(self.honest_all(&found), places)?;
        let mut sum = -self.targets.total_loss(&self.logs, &self.psd, self.noise);
        for (r, Emitter { pseudo, posterior, .. }) in self.emitters.iter().enumerate() {
            sum += posterior.log_evidence;
            for ((value, noise), log) in
                pseudo.values.iter().zip(&pseudo.noise).zip(self.logs.column(r))
            {
                sum += 0.5 * (noise.ln() + (value - log).powi(2) / noise);
            }
        }
        Ok(sum)
    }

    /// Loss of every reading, predicted by the others; law, places and noise are kept.
    pub fn left_out(&self) -> Result<Vec<f64>, EstimateError> {
        let found = self.linearised();
        let (at_sensor, in_band) = self.covariances(&found, &self.left_open(&found)?);
        let Self { targets, logs, psd, noise, soft, .. } = self;
        Ok(targets.left_out(logs, psd, *noise, soft, &at_sensor, &in_band))
    }

    /// Levels are given fresh pseudo-readings.
    fn soften(&mut self) -> Result<(), EstimateError> {
        if let Reported::Levels(read) = self.targets {
            let found = self.linearised();
            let open = match self.sites.len() {
                few if few <= OPEN_TOGETHER => self.left_open(&found)?,
                _ => self.left_open_nearby(&found),
            };
            let (at_sensor, in_band) = self.covariances(&found, &open);
            if self.unsure {
                let Self { soft, logs, psd, .. } = &*self;
                self.soft.sigma = soft.likeliest_sigma(read, logs, psd, &at_sensor, &in_band);
            }
            self.soft.renew(read, &self.logs, &self.psd, &at_sensor, &in_band);
        }
        Ok(())
    }

    /// Variance that the other sensors leave open of every emitter at a sensor, emitters x sensors.
    fn left_open(&self, found: &Linearised) -> Result<Vec<Vec<f64>>, EstimateError> {
        let correlations = self.correlation().matrix(self.sites);
        self.honest_all(found)
            .par_iter()
            .map(|p| {
                let all = self.covariates(&correlations, &p.noise)?;
                let own = all.cholesky.inverse_diagonal();
                let without = own.iter().zip(&p.noise).map(|(i, noise)| 1.0 / i - noise);
                Ok(without.map(|v| v.max(1e-6 * self.shadow.sill)).collect())
            })
            .collect()
    }

    /// As [`FieldFit::left_open`], from the nearest sensors alone.
    fn left_open_nearby(&self, found: &Linearised) -> Vec<Vec<f64>> {
        let (correlation, sill) = (self.correlation(), self.shadow.sill);
        let index = Neighbours::new(self.sites);
        let pseudo = self.honest_all(found);
        let at_sensor: Vec<Vec<f64>> = (0..self.sites.len())
            .into_par_iter()
            .map(|n| {
                let mut near = Vec::new();
                index.nearest(&self.sites[n], OPEN_NEAREST + 1, &mut near);
                let near: Vec<usize> =
                    near.into_iter().map(|(_, m)| m).filter(|m| *m != n).collect();
                let sites: Vec<Site> = near.iter().map(|&m| self.sites[m]).collect();
                let correlations = correlation.matrix(&sites);
                let cross = correlation.cross(&sites, &[self.sites[n]]);
                let open = |p: &Pseudo| {
                    let noise: Vec<f64> = near.iter().map(|&m| p.noise[m]).collect();
                    let known = Covariates::new(&correlations, sill, &noise)?;
                    let mut half = cross.clone();
                    known.cholesky.half_solve(half.as_mut());
                    Some(sill * (1.0 - sill * half.col(0).squared_norm_l2()).max(1e-6))
                };
                pseudo.iter().map(|p| open(p).unwrap_or(sill)).collect()
            })
            .collect();
        let of = |r: usize| at_sensor.iter().map(|open| open[r]).collect();
        (0..found.emitters).map(of).collect()
    }

    /// Covariances (emitters x emitters) of the log SLFs at every sensor and of the ln PSDs in every
    /// band, given all readings, one after the other.
    fn covariances(&self, found: &Linearised, open: &[Vec<f64>]) -> (Vec<Mat<f64>>, Vec<Mat<f64>>) {
        let count = found.emitters;
        let covariance = |information: &[f64], prior: &dyn Fn(usize) -> f64| {
            let matrix = Mat::from_fn(count, count, |r, q| {
                information[r * count + q] + if r == q { prior(r) } else { 0.0 }
            });
            Cholesky::new(matrix.as_ref())
                .map_or_else(|| Mat::zeros(count, count), |whole| whole.inverse())
        };
        let (size, neighbours) = (count * count, self.smoothness.given_neighbours());
        let at_sensor: Vec<Mat<f64>> = (0..self.sites.len())
            .map(|n| covariance(&found.information[n * size..][..size], &|r| 1.0 / open[r][n]))
            .collect();
        let in_band: Vec<Mat<f64>> = (0..self.psd.ncols())
            .map(|k| covariance(&found.band_information[k * size..][..size], &|_| neighbours))
            .collect();
        (at_sensor, in_band)
    }

    fn linearised(&self) -> Linearised {
        self.targets.linearised(&self.logs, &self.psd, self.noise, &self.soft)
    }

    /// Pseudo-data with the other emitters held where they are: what a turn needs.
    fn pseudo_all(&self, found: &Linearised) -> Vec<Pseudo> {
        (0..found.emitters).map(|r| self.pseudo(found, r, |own, _| own)).collect()
    }

    /// Pseudo-data with the other emitters free within their shadowing. At a solution every choice
    /// of noise gives the same mean; this one gives honest evidence and an honest spread.
    pub fn honest_all(&self, found: &Linearised) -> Vec<Pseudo> {
        let (count, prior) = (found.emitters, 1.0 / self.shadow.sill);
        let own = |r: usize, n: usize| {
            marginal(&found.information[n * count * count..][..count * count], count, r, prior)
        };
        (0..count).into_par_iter().map(|r| self.pseudo(found, r, |_, n| own(r, n))).collect()
    }

    fn pseudo(
        &self,
        found: &Linearised,
        r: usize,
        information: impl Fn(f64, usize) -> f64,
    ) -> Pseudo {
        let count = found.emitters;
        let (values, noise) = (0..self.logs.nrows())
            .map(|n| {
                let own = information(found.information[(n * count + r) * count + r], n);
                let noise = 1.0 / own.max(LEAST_INFORMATION);
                let step = (found.slope[n * count + r] * noise).clamp(-LARGEST_STEP, LARGEST_STEP);
                (self.logs[[n, r]] + step, noise)
            })
            .unzip();
        Pseudo { values, noise }
    }

    /// Fresh places and shadowing.
    fn refresh(&mut self, found: &Linearised) -> Result<Vec<EmitterPlaces>, EstimateError> {
        let honest = self.honest_all(found);
        let places = self.search(&honest)?;
        let samples: Vec<EmitterSample> = honest
            .into_iter()
            .zip(places)
            .map(|(Pseudo { values, noise }, places)| EmitterSample { values, noise, places })
            .collect();
        let (law, sites) = (&self.law, self.sites);
        let most = self.law_sensors;
        self.shadow = shadow::fit(&self.area, law, sites, &samples, self.fixed, self.shadow, most);
        Ok(samples.into_iter().map(|s| s.places).collect())
    }

    pub fn correlation(&self) -> Correlation {
        Correlation::exponential(self.shadow.decorrelation_m)
    }

    fn covariates(
        &self,
        correlations: &Mat<f64>,
        noise: &[f64],
    ) -> Result<Covariates, EstimateError> {
        Covariates::new(correlations, self.shadow.sill, noise).ok_or_else(|| {
            EstimateError::Numerical(
                "the covariance of the sensors is not positive definite: fix decorrelation and \
                 shadow_db"
                    .into(),
            )
        })
    }

    /// One process per emitter, given its pseudo-data and places.
    pub fn condition(
        &mut self,
        pseudo: Vec<Pseudo>,
        places: Vec<EmitterPlaces>,
    ) -> Result<(), EstimateError> {
        let correlations = self.correlation().matrix(self.sites);
        self.emitters = pseudo
            .into_par_iter()
            .zip(places)
            .map(|(pseudo, mut places)| {
                if self.best_place_only {
                    places.at.truncate(1);
                    places.log_prior.truncate(1);
                }
                let losses = self.law.losses(&places.at, self.sites);
                let covariates = self.covariates(&correlations, &pseudo.noise)?;
                let posterior =
                    EmitterPosterior::new(covariates, &self.law, &places, &losses, &pseudo.values);
                Ok(Emitter { places, losses, pseudo, posterior })
            })
            .collect::<Result<_, EstimateError>>()?;
        Ok(())
    }

    fn search(&self, pseudo: &[Pseudo]) -> Result<Vec<EmitterPlaces>, EstimateError> {
        let correlations = self.correlation().matrix(self.sites);
        let step = self.sites.len().div_ceil(COARSE_SENSORS);
        let few: Vec<Site> = self.sites.iter().copied().step_by(step).collect();
        let few_correlations = self.correlation().matrix(&few);
        let thin = |all: &[f64]| all.iter().copied().step_by(step).collect::<Vec<f64>>();
        let (area, law, sites) = (self.area, &self.law, self.sites);
        pseudo
            .par_iter()
            .map(|p| {
                let all = self.covariates(&correlations, &p.noise)?;
                let whole = PlaceSearch { area, law, sites, covariates: &all, values: &p.values };
                if step == 1 {
                    return Ok(whole.search(&whole));
                }
                let some = self.covariates(&few_correlations, &thin(&p.noise))?;
                let values = thin(&p.values);
                let part =
                    PlaceSearch { area, law, sites: &few, covariates: &some, values: &values };
                Ok(whole.search(&part))
            })
            .collect()
    }

    /// Emitters in turn; returns the root mean square step, sensors weighted by what they see.
    fn turns(&mut self, mut found: Linearised) -> f64 {
        let count = found.emitters;
        let before = self.logs.clone();
        for _ in 0..TURNS {
            for r in 0..count {
                let Pseudo { values, noise } = self.pseudo(&found, r, |own, _| own);
                let Emitter { places, losses, posterior, .. } = &mut self.emitters[r];
                posterior.update(&self.law, places, losses, &values);
                for n in 0..self.sites.len() {
                    let new = values[n] - noise[n] * posterior.pull[n];
                    let step = new - self.logs[[n, r]];
                    self.logs[[n, r]] = new;
                    for q in 0..count {
                        let both = found.information[(n * count + q) * count + r];
                        found.slope[n * count + q] -= both * step;
                    }
                }
            }
        }
        let (mut sum, mut weight) = (0.0, 0.0);
        for ((n, r), f) in self.logs.indexed_iter() {
            let own = found.information[(n * count + r) * count + r] * self.shadow.sill;
            let trust = own / (1.0 + own);
            sum += trust * (f - before[[n, r]]).powi(2);
            weight += trust;
        }
        (sum / f64::max(weight, 1e-9)).sqrt()
    }

    /// PSDs to unit norm.
    fn normalise(&mut self) {
        for (r, mut spectrum) in self.psd.outer_iter_mut().enumerate() {
            let norm = spectrum.iter().map(|c| c * c).sum::<f64>().sqrt();
            if norm > 0.0 && norm.is_finite() {
                spectrum.mapv_inplace(|c| c / norm);
                self.logs.column_mut(r).mapv_inplace(|f| f + norm.ln());
            }
        }
    }
}
