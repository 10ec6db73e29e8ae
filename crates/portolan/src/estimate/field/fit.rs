//! The fit: sites from the readings, one Gaussian process per emitter in turn until they agree
//! (block Gauss-Seidel on the joint posterior), then PSDs, noise and, now and then, places and
//! shadowing.

use faer::Mat;
use ndarray::Array2;
use rayon::prelude::*;

use super::law::{Covariates, Law, Places, Posterior, Shadow};
use super::places::Evidence;
use super::shear::Shears;
use super::shadow::{self, Fixed, Sample};
use super::sites::{Noise, Sites, Targets, marginal};
use super::spectra;
use crate::error::EstimateError;
use crate::estimate::Progress;
use crate::gaussian_process::{CorrelationTable, Family};
use crate::grid::{Cell, Grid};

/// Information below this says nothing; a variance of 1e4 squared nepers.
const LEAST_INFORMATION: f64 = 1e-4;
/// Turns of the emitters per round.
const TURNS: usize = 3;
/// Rounds after which places and shadowing are sought again.
const REFRESH: [usize; 4] = [0, 2, 5, 9];
/// Largest step of a log SLF or log PSD in one round.
const LARGEST_STEP: f64 = 1.5;

/// What one emitter is known by.
pub(super) struct Emitter {
    pub places: Places,
    /// Sensors x places.
    pub losses: Mat<f64>,
    pub posterior: Posterior,
}

pub(super) struct Fit<'a> {
    pub grid: Grid,
    pub cells: &'a [Cell],
    pub targets: &'a Targets,
    pub law: Law,
    pub fixed: Fixed,
    pub best_place_only: bool,
    /// The readings have no noise, and the start fits them.
    pub exact: bool,
    /// The additive noise is never taken to be below this.
    pub least_additive: f64,
    /// Log SLFs, sensors x emitters.
    pub logs: Array2<f64>,
    /// Emitters x bands.
    pub psd: Array2<f64>,
    /// Variance of ln PSD.
    pub psd_variance: Array2<f64>,
    pub noise: Noise,
    pub shadow: Shadow,
    pub emitters: Vec<Emitter>,
}

/// Pseudo-data of one emitter: values and noise variances at the sensors.
struct Pseudo {
    values: Vec<f64>,
    noise: Vec<f64>,
}

impl Fit<'_> {
    pub fn run(&mut self, rounds: usize, progress: &Progress<'_>) -> Result<usize, EstimateError> {
        if self.exact && self.psd.nrows() > 1 {
            for _ in 0..super::places::env("SHEARS", 2.0) as usize {
                let sites = self.targets.sites(&self.logs, &self.psd, self.noise);
                self.prepare(&sites, true, progress)?;
                let shears = Shears::new(&self.law, &self.emitters, &self.logs, &self.psd);
                (self.logs, self.psd) = shears.run(super::places::env("SWEEPS", 8.0) as usize);
                self.normalise();
            }
        }
        let mut done = 0;
        for round in 0..rounds {
            progress.report(round, rounds)?;
            self.noise = self.targets.noise(&self.logs, &self.psd, self.least_additive);
            let sites = self.targets.sites(&self.logs, &self.psd, self.noise);
            self.prepare(&sites, REFRESH.contains(&round), progress)?;
            let moved = self.turns(sites);
            if std::env::var_os("FIELD_DEBUG").is_some() {
                eprintln!(
                    "round {round} moved {moved:.2e} noise {:?} shadow {:?}",
                    self.noise, self.shadow
                );
            }
            done = round + 1;
            if moved < 1e-3 {
                break;
            }
            self.spectra();
        }
        self.settle()?;
        Ok(done)
    }

    fn pseudo(&self, sites: &Sites, r: usize) -> Pseudo {
        let emitters = sites.emitters;
        let (values, noise) = (0..self.cells.len())
            .map(|n| {
                let own = sites.information[(n * emitters + r) * emitters + r];
                let noise = 1.0 / own.max(LEAST_INFORMATION);
                let step =
                    (sites.slope[n * emitters + r] * noise).clamp(-LARGEST_STEP, LARGEST_STEP);
                (self.logs[[n, r]] + step, noise)
            })
            .unzip();
        Pseudo { values, noise }
    }

    /// As [`Fit::pseudo`], with the other emitters free within their shadowing.
    fn honest(&self, sites: &Sites, r: usize) -> Pseudo {
        let count = sites.emitters;
        let (values, noise) = (0..self.cells.len())
            .map(|n| {
                let information = &sites.information[n * count * count..][..count * count];
                let own = marginal(information, count, r, 1.0 / self.shadow.sill);
                let noise = 1.0 / own.max(LEAST_INFORMATION);
                let step =
                    (sites.slope[n * count + r] * noise).clamp(-LARGEST_STEP, LARGEST_STEP);
                (self.logs[[n, r]] + step, noise)
            })
            .unzip();
        Pseudo { values, noise }
    }

    fn covariates(&self, shadow: Shadow, noise: &[f64]) -> Result<Covariates, EstimateError> {
        let table = CorrelationTable::new(self.grid, Family::Exponential, shadow.decorrelation_m);
        Covariates::new(&table, self.cells, shadow.sill, noise).ok_or_else(|| {
            EstimateError::Numerical(
                "the covariance of the sensors is not positive definite: fix decorrelation and \
                 shadow_db"
                    .into(),
            )
        })
    }

    /// Covariances of this round; places and shadowing where asked for.
    fn prepare(
        &mut self,
        sites: &Sites,
        refresh: bool,
        progress: &Progress<'_>,
    ) -> Result<(), EstimateError> {
        let places = if refresh {
            let honest: Vec<Pseudo> =
                (0..sites.emitters).map(|r| self.honest(sites, r)).collect();
            let samples: Vec<Sample> = honest
                .iter()
                .zip(self.search(&honest)?)
                .map(|(p, places)| Sample {
                    values: p.values.clone(),
                    noise: p.noise.clone(),
                    places,
                })
                .collect();
            self.shadow = shadow::fit(
                self.grid,
                &self.law,
                self.cells,
                &samples,
                self.fixed,
                self.shadow,
                progress,
            )?;
            self.search(&honest)?
        } else {
            self.emitters.iter().map(|e| e.places.clone()).collect()
        };
        let pseudo: Vec<Pseudo> = (0..sites.emitters).map(|r| self.pseudo(sites, r)).collect();
        self.condition(&pseudo, places)
    }

    /// One process per emitter, given its pseudo-data and places.
    fn condition(&mut self, pseudo: &[Pseudo], places: Vec<Places>) -> Result<(), EstimateError> {
        self.emitters = pseudo
            .par_iter()
            .zip(places)
            .map(|(p, mut places)| {
                if self.best_place_only {
                    places.at.truncate(1);
                    places.log_prior.truncate(1);
                }
                let losses = self.law.losses(self.grid, &places.at, self.cells);
                let covariates = self.covariates(self.shadow, &p.noise)?;
                let posterior = Posterior::new(covariates, &self.law, &places, &losses, &p.values);
                Ok(Emitter { places, losses, posterior })
            })
            .collect::<Result<_, EstimateError>>()?;
        Ok(())
    }

    fn search(&self, pseudo: &[Pseudo]) -> Result<Vec<Places>, EstimateError> {
        pseudo
            .par_iter()
            .map(|p| {
                let covariates = self.covariates(self.shadow, &p.noise)?;
                let evidence = Evidence {
                    grid: self.grid,
                    law: &self.law,
                    cells: self.cells,
                    covariates: &covariates,
                    values: &p.values,
                };
                Ok(evidence.search())
            })
            .collect()
    }

    /// Emitters in turn; returns the root mean square step, sensors weighted by what they see.
    fn turns(&mut self, mut sites: Sites) -> f64 {
        let count = sites.emitters;
        let before = self.logs.clone();
        for _ in 0..TURNS {
            for r in 0..count {
                let pseudo = self.pseudo(&sites, r);
                let emitter = &mut self.emitters[r];
                let Emitter { places, losses, posterior } = emitter;
                posterior.update(&self.law, places, losses, &pseudo.values);
                for n in 0..self.cells.len() {
                    let new = pseudo.values[n] - pseudo.noise[n] * posterior.pull[n];
                    let step = new - self.logs[[n, r]];
                    self.logs[[n, r]] = new;
                    for q in 0..count {
                        let both = sites.information[(n * count + q) * count + r];
                        sites.slope[n * count + q] -= both * step;
                    }
                }
            }
        }
        let (mut sum, mut weight) = (0.0, 0.0);
        for ((n, r), f) in self.logs.indexed_iter() {
            let own = sites.information[(n * count + r) * count + r];
            let trust = own * self.shadow.sill / (1.0 + own * self.shadow.sill);
            sum += trust * (f - before[[n, r]]).powi(2);
            weight += trust;
        }
        (sum / f64::max(weight, 1e-9)).sqrt()
    }

    /// One Gauss-Newton step on log PSDs.
    fn spectra(&mut self) {
        let sites = self.targets.sites(&self.logs, &self.psd, self.noise);
        self.psd_variance = spectra::step(&mut self.psd, &sites);
        self.normalise();
    }

    /// Processes about the final SLFs, with the noise that the other emitters' freedom adds. At a
    /// solution every choice of noise gives the same mean; this one gives an honest spread.
    fn settle(&mut self) -> Result<(), EstimateError> {
        let sites = self.targets.sites(&self.logs, &self.psd, self.noise);
        let pseudo: Vec<Pseudo> =
            (0..sites.emitters).map(|r| self.honest(&sites, r)).collect();
        let places = self.search(&pseudo)?;
        self.condition(&pseudo, places)
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
