//! Outliers beyond normal noise: noise of a Student's t distribution, where
//! held-out readings ask for it.
//!
//! A reading's noise is normal with a variance of its own, which its residual tells (the scale
//! mixture behind Student's t; Lange, Little and Taylor 1989). A reading far from what its
//! neighbours say is given more noise, and pulls less. Sensors are held out by sensor and by box,
//! in folds, and predicted with and without: only where outliers mislead in both is anything
//! changed.

use faer::Mat;
use ndarray::Array2;
use rayon::prelude::*;

use super::folds::{Split, folds};
use crate::error::EstimateError;
use crate::gaussian_process::{BandSample, Correlation, PooledLaw, clustered, pooled_law};
use crate::linalg::Cholesky;
use crate::link::DB_PER_LN;
use crate::progress::Progress;
use crate::readings::{Readings, Values};
use crate::site::Site;

/// Degrees of freedom.
const FREEDOM: f64 = 4.0;
/// The nugget of usual readings where outliers have noise of their own, over the nugget of all.
const USUAL: f64 = 0.75;
/// Held-out errors, over those with normal noise, that are worth it.
const WORTH: f64 = 0.99;
const FOLDS: usize = 5;
/// Entries of a band, and bands, that decide.
const MOST_ENTRIES: usize = 320;
const MOST_BANDS: usize = 24;
/// More sensors than this have too many readings for a few outliers to matter.
const MOST_SENSORS: usize = 1500;
/// A covariance of fewer entries says nothing about their noise.
const FEWEST: usize = 8;

/// What is said where readings were given noise of their own.
pub(super) const WILD: &str = "outliers beyond normal noise were down-weighted";

/// Readings of one band.
struct Entries {
    sensors: Vec<usize>,
    sites: Vec<Site>,
    values: Vec<f64>,
    /// The nugget's share of each: one over how often it was read.
    share: Vec<f64>,
}

/// The same readings, with noise of their own where they are outliers; None where normal noise
/// predicts as well, and where noise is stated already or some bands were not heard.
pub(super) fn tamed(
    readings: &Readings,
    progress: &Progress<'_>,
) -> Result<Option<Readings>, EstimateError> {
    let Values::Power(power) = readings.values() else { return Ok(None) };
    let known = readings.noise_db().is_some() || readings.not_heard().is_some();
    if known || readings.sensors() > MOST_SENSORS {
        return Ok(None);
    }
    let link = readings.link();
    let bands: Vec<Entries> = power
        .columns()
        .into_iter()
        .enumerate()
        .map(|(band, column)| {
            let sensors: Vec<usize> =
                (0..readings.sensors()).filter(|&s| !column[s].is_nan()).collect();
            let sites = sensors.iter().map(|&s| readings.sites()[s]).collect();
            let values = sensors.iter().map(|&s| link.apply(column[s])).collect();
            let repeats = |s: usize| readings.repeats().map_or(1.0, |r| r[[s, band]].max(1.0));
            let share = sensors.iter().map(|&s| 1.0 / repeats(s)).collect();
            Entries { sensors, sites, values, share }
        })
        .collect();
    let samples: Vec<BandSample> = bands.iter().map(Entries::sample).collect();
    let Some(law) = pooled_law(&samples, progress)? else { return Ok(None) };
    let judged: Vec<&Entries> = bands.iter().filter(|b| b.sensors.len() >= FEWEST).collect();
    let kept = judged.len().min(MOST_BANDS);
    let some: Vec<Entries> = (0..kept)
        .map(|i| judged[(2 * i + 1) * judged.len() / (2 * kept)])
        .map(|band| band.part(&clustered(&band.sites, MOST_ENTRIES)))
        .collect();
    // Random folds alone choose wrongly where places without any sensor nearby are asked for.
    let better = [Split::Random, Split::Blocks].into_iter().all(|split| {
        let mut fold = vec![0; readings.sensors()];
        for (number, sensors) in folds(readings.sites(), FOLDS, split, 0).iter().enumerate() {
            sensors.iter().for_each(|&sensor| fold[sensor] = number);
        }
        let errors: Vec<[f64; 2]> =
            some.par_iter().map(|band| band.held_out(&law, &fold)).collect();
        let sum = |which: usize| errors.iter().map(|e| e[which]).sum::<f64>();
        sum(1) < WORTH * WORTH * sum(0)
    });
    if !better {
        return Ok(None);
    }
    let mut noise = Array2::zeros(power.dim());
    let shares: Vec<Option<Vec<f64>>> = bands.par_iter().map(|band| band.shares(&law)).collect();
    for (band, (entries, shares)) in bands.iter().zip(shares).enumerate() {
        for (i, share) in shares.into_iter().flatten().enumerate() {
            let more = share - FREEDOM / (FREEDOM + 1.0);
            let variance = USUAL * law.nugget * entries.share[i] * more;
            noise[[entries.sensors[i], band]] = DB_PER_LN * variance.sqrt();
        }
    }
    Ok(Some(readings.clone().with_noise_db(Some(noise))?))
}

impl Entries {
    fn sample(&self) -> BandSample {
        BandSample {
            sites: self.sites.clone(),
            values: self.values.clone(),
            share: self.share.clone(),
            stated: vec![0.0; self.sites.len()],
            ..BandSample::default()
        }
    }

    fn part(&self, kept: &[usize]) -> Self {
        Self {
            sensors: kept.iter().map(|&i| self.sensors[i]).collect(),
            sites: kept.iter().map(|&i| self.sites[i]).collect(),
            values: kept.iter().map(|&i| self.values[i]).collect(),
            share: kept.iter().map(|&i| self.share[i]).collect(),
        }
    }

    /// Covariance of the field at the entries, and with some places.
    fn covariance(&self, law: &PooledLaw, at: &[Site]) -> Mat<f64> {
        let correlation = Correlation::exponential(law.decorrelation_m);
        Mat::from_fn(self.sites.len(), at.len(), |i, j| {
            law.sill * correlation.between(self.sites[i], at[j]) + law.level_variance
        })
    }

    fn factor(&self, law: &PooledLaw, noise: impl Fn(usize) -> f64) -> Option<Cholesky> {
        let mut covariance = self.covariance(law, &self.sites);
        (0..self.sites.len()).for_each(|i| covariance[(i, i)] += noise(i));
        Cholesky::new(covariance.as_ref())
    }

    /// Weights of the readings minus the level.
    fn pulls(&self, law: &PooledLaw, factor: &Cholesky) -> Mat<f64> {
        let mut pulls = Mat::from_fn(self.values.len(), 1, |i, _| self.values[i] - law.level);
        factor.half_solve(pulls.as_mut());
        factor.other_half_solve(pulls.as_mut());
        pulls
    }

    /// How many times the usual noise each reading has, by how far it lies from what the others say.
    fn shares(&self, law: &PooledLaw) -> Option<Vec<f64>> {
        if self.sites.len() < FEWEST {
            return None;
        }
        let factor = self.factor(law, |i| law.nugget * self.share[i])?;
        let pulls = self.pulls(law, &factor);
        let shares = factor.inverse_diagonal().into_iter().enumerate().map(|(i, precision)| {
            let off = pulls[(i, 0)] / precision;
            (FREEDOM + off * off * precision) / (FREEDOM + 1.0)
        });
        Some(shares.collect())
    }

    /// Squared errors at held-out sensors, with normal noise and with Student's t.
    fn held_out(&self, law: &PooledLaw, fold: &[usize]) -> [f64; 2] {
        let mut errors = [0.0; 2];
        for number in 0..FOLDS {
            let (held, kept): (Vec<usize>, Vec<usize>) =
                (0..self.sensors.len()).partition(|&i| fold[self.sensors[i]] == number);
            let (held, kept) = (self.part(&held), self.part(&kept));
            let Some(shares) = kept.shares(law) else { continue };
            let cross = kept.covariance(law, &held.sites);
            let usual = |i: usize| law.nugget * kept.share[i];
            let wild = |i: usize| USUAL * shares[i] * usual(i);
            let both = [kept.factor(law, usual), kept.factor(law, wild)];
            for (factor, error) in both.iter().zip(&mut errors) {
                let Some(factor) = factor else { continue };
                let predicted = cross.transpose() * kept.pulls(law, factor);
                for (j, value) in held.values.iter().enumerate() {
                    *error += (law.level + predicted[(j, 0)] - value).powi(2);
                }
            }
        }
        errors
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::scale::Scale;

    /// A smooth field with normal noise, and a share of readings 25 dB off.
    fn survey(wild: f64) -> Readings {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let mut unit = move || rng.random::<f64>();
        let sites: Vec<Site> = (0..120).map(|_| Site::new(40.0 * unit(), 40.0 * unit())).collect();
        let power = Array2::from_shape_fn((120, 4), |(i, k)| {
            let field = 8.0 * (sites[i].x_m / 9.0 + k as f64).sin() - 0.3 * sites[i].y_m;
            let normal = (0..12).map(|_| unit()).sum::<f64>() - 6.0;
            let off = if unit() < wild { 25.0 } else { 0.0 };
            10f64.powf((-60.0 + field + 1.5 * normal - off) / 10.0)
        });
        Readings::new(sites, Values::Power(power), Scale::Absolute).unwrap()
    }

    #[test]
    fn wild_readings_get_noise_and_normal_ones_stay() {
        assert_eq!(tamed(&survey(0.0), &Progress::silent()).unwrap(), None);
        let readings = survey(0.05);
        let found = tamed(&readings, &Progress::silent()).unwrap().expect("some are wild");
        let noise = found.noise_db().unwrap();
        let median = |mut values: Vec<f64>| {
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        let calm = median(noise.iter().copied().collect());
        let most = noise.iter().copied().fold(0.0, f64::max);
        assert!(most > 8.0 && calm < 2.0, "{most} {calm}");
        // Noise that is stated is believed.
        assert_eq!(tamed(&found, &Progress::silent()).unwrap(), None);
    }
}
