//! The two components of a band, each with the law that all bands share.

use faer::Mat;
use rayon::prelude::*;

use super::super::law::{Covariates, EmitterPlaces, EmitterPosterior, Law, Mast, Shadow};
use super::Survey;
use super::places::{lattice, refined};
use crate::error::EstimateError;
use crate::estimate::Transmitter;
use crate::gaussian_process::{
    Correlation, NOISE_PRIOR, PooledLaw, REACH_PRIOR, clustered, minimise, posterior_points,
};
use crate::link::DB_PER_LN;
use crate::progress::Progress;
use crate::readings::Readings;
use crate::simulate::REFERENCE_DISTANCE_M;
use crate::site::Site;

/// Path loss before any reading: 23 +- 9 dB a decade.
const EXPONENT: (f64, f64) = (2.3, 0.9);
/// Places of the first lattice, and the finest square over the sensors' mean distance.
const COARSE_PLACES: usize = 160;
const FINEST: f64 = 0.2;
/// Distance within which there is no path loss, over the side of a square, and the least over the
/// extent of the survey.
const REFERENCE: f64 = 0.4;
const NEAREST: f64 = 0.01;
/// The same where the transmitter itself is sought: near it every metre counts.
const NEAREST_SOUGHT: f64 = 0.003;
/// Entries of a band by which squares are split.
const JUDGED: usize = 400;
/// Entries of a band and work of an evaluation that the law is fitted with.
const MOST_ENTRIES: usize = 256;
const MOST_WORK: f64 = 3e8;
const EVALUATIONS: usize = 130;
const FIRST_EVALUATIONS: usize = 50;
/// Readings up to which the laws that they leave possible are averaged, and the most laws.
pub(super) const AVERAGED: usize = 1200;
/// The same where laws are averaged for the places of transmitters only.
const PLACED: usize = 6000;
const MOST_LAWS: usize = 12;

/// How every band is thought of.
pub(super) struct Account {
    pub law: Law,
    pub shadow: Shadow,
    pub nugget: f64,
    /// Where the transmitter of each band may stand.
    pub places: Vec<EmitterPlaces>,
    /// The known transmitters of each band, which are the only place then.
    pub masts: Vec<Vec<Mast>>,
    /// The finest square that a place stands for.
    pub finest_m: f64,
}

impl Account {
    /// A level and shadowing: a transmitter so far that no distance matters.
    pub fn plain(pooled: &PooledLaw, readings: &Readings) -> Self {
        let nowhere = EmitterPlaces { at: vec![readings.sites()[0]], log_prior: vec![0.0] };
        Self {
            law: Law {
                reference_m: f64::MAX,
                exponent: EXPONENT.0,
                exponent_sd: EXPONENT.1,
                level: pooled.level,
                // Few bands leave the mean of their levels open.
                level_sd: (pooled.level_variance
                    + (pooled.level_variance + pooled.sill) / readings.bands() as f64)
                    .sqrt(),
            },
            shadow: Shadow { decorrelation_m: pooled.decorrelation_m, sill: pooled.sill },
            nugget: pooled.nugget,
            places: vec![nowhere; readings.bands()],
            masts: vec![Vec::new(); readings.bands()],
            finest_m: 0.0,
        }
    }

    /// Path loss about one transmitter for each band: the laws that the readings leave possible with
    /// their weights, the likeliest first.
    pub fn about_transmitters(
        pooled: &PooledLaw,
        survey: &Survey,
        readings: &Readings,
        known: &[Transmitter],
        progress: &Progress<'_>,
    ) -> Result<Vec<(f64, Self)>, EstimateError> {
        let region = readings.region();
        let extent = survey.extent_m;
        let (coarse, spacing) = lattice(&region, extent, COARSE_PLACES);
        let apart = (region.width_m() * region.height_m() / readings.places() as f64).sqrt();
        // Heights may make the extent larger than the lattice.
        let finest_m = FINEST * apart.max(0.01 * extent).min(spacing);
        let nearest = NEAREST * extent;
        let masts: Vec<Vec<Mast>> = (0..readings.bands()).map(|band| masts(known, band)).collect();
        let all_known = masts.iter().all(|m| !m.is_empty());
        let spread = |free: &EmitterPlaces| -> Vec<EmitterPlaces> {
            masts.iter().map(|m| if m.is_empty() { free.clone() } else { stand(m) }).collect()
        };
        let plain = Self::plain(pooled, readings);
        let account = Self {
            law: Law { reference_m: (REFERENCE * spacing).max(nearest), ..plain.law },
            places: spread(&coarse),
            masts: masts.clone(),
            finest_m,
            ..plain
        };
        if all_known {
            let reference_m = REFERENCE_DISTANCE_M.max(2e-3 * extent);
            let law = Law { reference_m, ..account.law };
            let account = Self { law, ..account };
            return account.learn(pooled, survey, None, false, progress);
        }
        // A first law on the coarse lattice says which of its squares are worth splitting.
        let quick = account.learn(pooled, survey, None, true, &progress.part(0.0..0.4))?;
        let first = quick.into_iter().next().map_or(account, |(_, first)| first);
        let reference_m = nearest;
        // The level is the one at the reference distance.
        let nearer = first.law.exponent * (first.law.reference_m / reference_m).ln();
        let law = Law { reference_m, level: first.law.level + nearer, ..first.law };
        let fine = Self { law, ..first }.split(survey, &coarse, spacing)?;
        let part = progress.part(0.4..0.9);
        let learnt = fine.learn(pooled, survey, Some(&fine), false, &part)?;
        let best = learnt[0].1.split(survey, &coarse, spacing)?;
        let with_places = |law: Account| Self { places: best.places.clone(), ..law };
        Ok(learnt.into_iter().map(|(weight, law)| (weight, with_places(law))).collect())
    }

    /// The same law with squares split where it thinks that transmitters stand.
    fn split(
        &self,
        survey: &Survey,
        coarse: &EmitterPlaces,
        spacing: f64,
    ) -> Result<Self, EstimateError> {
        let of_band = |band: usize| -> Result<EmitterPlaces, EstimateError> {
            let nugget = survey.noise(band, self.nugget);
            let (sites, values, noise) = survey.entries(band, nugget);
            if !self.masts[band].is_empty() || sites.is_empty() {
                return Ok(self.places[band].clone());
            }
            let kept = clustered(&sites, JUDGED);
            let pick = |all: &[f64]| kept.iter().map(|&i| all[i]).collect::<Vec<f64>>();
            let (values, noise) = (pick(&values), pick(&noise));
            let sites: Vec<Site> = kept.iter().map(|&i| sites[i]).collect();
            let correlations = Correlation::exponential(self.shadow.decorrelation_m).matrix(&sites);
            let covariates = Covariates::new(&correlations, self.shadow.sill, &noise);
            let covariates = covariates.ok_or_else(super::singular)?;
            let half_values = covariates.half(&values);
            let judge = |at: &[Site]| {
                let mut losses = self.law.losses(at, &sites);
                covariates.cholesky.half_solve(losses.as_mut());
                let trends = covariates.trends(&self.law, &half_values, &losses);
                Some(trends.iter().map(|t| t.log_evidence).collect())
            };
            refined(coarse, spacing, self.finest_m, judge).ok_or_else(super::singular)
        };
        let places = (0..survey.samples.len()).into_par_iter().map(of_band);
        Ok(Self { places: places.collect::<Result<_, _>>()?, masts: self.masts.clone(), ..*self })
    }

    /// The same law with path loss down to a shorter distance, for the places and exponents of
    /// transmitters.
    pub fn nearer(&self, extent_m: f64) -> Self {
        let reference_m = self.law.reference_m.min(NEAREST_SOUGHT * extent_m);
        let more = self.law.exponent * (self.law.reference_m / reference_m).ln();
        Self {
            law: Law { reference_m, level: self.law.level + more, ..self.law },
            places: self.places.clone(),
            masts: self.masts.clone(),
            ..*self
        }
    }

    /// Losses from the places of a band's transmitter to some sites.
    pub fn losses(&self, band: usize, sites: &[Site]) -> Mat<f64> {
        match self.masts[band].is_empty() {
            true => self.law.losses(&self.places[band].at, sites),
            false => self.law.losses_from(&self.masts[band], sites),
        }
    }

    /// What the priors of level and exponent add to a band's log evidence.
    pub fn normaliser(&self) -> f64 {
        -self.law.level_sd.ln() - self.law.exponent_sd.ln()
    }

    /// The laws of all bands together, as far as they can be afforded, on these places. A `quick` look
    /// gives the best of a few; a law found so is where a thorough search starts.
    fn learn(
        &self,
        pooled: &PooledLaw,
        survey: &Survey,
        first: Option<&Account>,
        quick: bool,
        progress: &Progress<'_>,
    ) -> Result<Vec<(f64, Account)>, EstimateError> {
        let some = self.affordable(survey);
        let losses: Vec<Mat<f64>> =
            some.par_iter().map(|(band, sites, ..)| self.losses(*band, sites)).collect();
        let extent = survey.extent_m;
        let levels = typical_level(&losses, pooled);
        let usual = [
            (0.5 * pooled.decorrelation_m).ln(),
            (0.5 * pooled.sill).ln(),
            pooled.nugget.ln(),
            (pooled.sill + pooled.level_variance).ln(),
            levels,
        ];
        let start = match first {
            Some(Account { law, shadow, nugget, .. }) => [
                shadow.decorrelation_m.ln(),
                shadow.sill.ln(),
                nugget.ln(),
                2.0 * law.level_sd.ln(),
                levels,
            ],
            None => usual,
        };
        let widths = [REACH_PRIOR.1, 1.5, 2.0 * NOISE_PRIOR.1, 1.5, 20.0 / DB_PER_LN];
        let nugget = 2.0 * (NOISE_PRIOR.0 / DB_PER_LN).ln();
        // Path loss explains the better part of what bands vary by.
        let sill = (0.25 * pooled.sill).ln();
        let middle = [REACH_PRIOR.0 + extent.ln(), sill, nugget, usual[3], levels];
        let bounds: Vec<(f64, f64)> = [
            ((1e-3 * extent).ln(), (20.0 * extent).ln()),
            (usual[1] - 8.0, usual[1] + 8.0),
            (usual[2] - 8.0, usual[2] + 8.0),
            (usual[3] - 8.0, usual[3] + 8.0),
            (levels - 40.0, levels + 40.0),
        ]
        .to_vec();
        let objective = |x: &[f64]| {
            progress.check()?;
            let trial = self.at(x);
            let evidence: f64 = some
                .par_iter()
                .zip(&losses)
                .map(|((band, sites, values, noise), losses)| {
                    let noise = noise.of(trial.nugget);
                    let places = &self.places[*band];
                    let entries = (&sites[..], &values[..], &noise[..]);
                    let found = trial.posterior(trial.shadow, entries, places, losses);
                    let scatter = survey.samples[*band].scatter.log_density(trial.nugget);
                    let own = |p: EmitterPosterior| p.log_evidence + trial.normaliser();
                    found.map_or(f64::NEG_INFINITY, |p| own(p) + scatter)
                })
                .collect::<Vec<f64>>()
                .iter()
                .sum();
            let prior: f64 = (0..x.len()).map(|i| ((x[i] - middle[i]) / widths[i]).powi(2)).sum();
            Ok::<_, EstimateError>(0.5 * prior - evidence)
        };
        let most = if quick { FIRST_EVALUATIONS } else { EVALUATIONS };
        let (best, _) = minimise(objective, &start, &bounds, 0.7, 0.05, most)?;
        if survey.readings() > PLACED || quick {
            return Ok(vec![(1.0, self.at(&best))]);
        }
        let whole = |x: &[f64]| {
            let mut all = best.clone();
            all[..x.len()].copy_from_slice(x);
            all
        };
        let some = |x: &[f64]| objective(&whole(x));
        let found = posterior_points(some, &[best[..3].to_vec()], &bounds[..3], MOST_LAWS)?;
        Ok(found.into_iter().map(|(weight, x)| (weight, self.at(&whole(&x)))).collect())
    }

    /// The same places under another law.
    fn at(&self, x: &[f64]) -> Account {
        Account {
            law: Law { level: x[4], level_sd: (0.5 * x[3]).exp(), ..self.law },
            shadow: Shadow { decorrelation_m: x[0].exp(), sill: x[1].exp() },
            nugget: x[2].exp(),
            places: self.places.clone(),
            masts: self.masts.clone(),
            finest_m: self.finest_m,
        }
    }

    fn affordable(&self, survey: &Survey) -> Vec<Entries> {
        let bands: Vec<usize> =
            (0..survey.samples.len()).filter(|&b| !survey.samples[b].sites.is_empty()).collect();
        let thinned: Vec<Entries> = bands
            .iter()
            .map(|&band| {
                let (sample, pseudo) = (&survey.samples[band], &survey.pseudo[band]);
                let (sites, values, _) = survey.entries(band, 0.0);
                let kept = clustered(&sites, MOST_ENTRIES);
                let heard = sample.values.len();
                let noise = kept
                    .iter()
                    .map(|&i| match i < heard {
                        true => (sample.share[i], sample.stated[i]),
                        false => (0.0, pseudo.noise[i - heard]),
                    })
                    .collect();
                let sites = kept.iter().map(|&i| sites[i]).collect();
                let values = kept.iter().map(|&i| values[i]).collect();
                (band, sites, values, Noises(noise))
            })
            .collect();
        let work = |(band, sites, ..): &Entries| {
            let n = sites.len() as f64;
            n * n * (n / 3.0 + 2.0 * self.places[*band].at.len() as f64)
        };
        let total: f64 = thinned.iter().map(work).sum();
        let kept = ((thinned.len() as f64 * MOST_WORK / total.max(1.0)).ceil() as usize)
            .clamp(4.min(thinned.len()), thinned.len());
        let mut thinned: Vec<Option<Entries>> = thinned.into_iter().map(Some).collect();
        (0..kept)
            .filter_map(|i| {
                let at = (2 * i + 1) * thinned.len() / (2 * kept);
                thinned[at].take()
            })
            .collect()
    }
}

/// The level at the reference distance that readings of the usual level speak for.
fn typical_level(losses: &[Mat<f64>], pooled: &PooledLaw) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for losses in losses {
        sum += losses.col_iter().map(|column| column.iter().sum::<f64>()).sum::<f64>();
        count += (losses.nrows() * losses.ncols()) as f64;
    }
    pooled.level + EXPONENT.0 * sum / f64::max(count, 1.0)
}

/// The known transmitters of a band. Powers are shares of the strongest; one that says none is as
/// strong as the others.
fn masts(known: &[Transmitter], band: usize) -> Vec<Mast> {
    let own: Vec<&Transmitter> =
        known.iter().filter(|t| t.band.is_none_or(|b| b == band)).collect();
    let most = own.iter().filter_map(|t| t.power_db).fold(f64::NEG_INFINITY, f64::max);
    own.iter()
        .map(|t| Mast {
            at: t.at,
            share: t.power_db.map_or(1.0, |power| 10f64.powf(0.1 * (power - most))),
        })
        .collect()
}

/// Where masts stand, as one place: the middle of their power.
fn stand(masts: &[Mast]) -> EmitterPlaces {
    let total: f64 = masts.iter().map(|m| m.share).sum();
    let mean = |of: fn(&Mast) -> f64| masts.iter().map(|m| m.share * of(m)).sum::<f64>() / total;
    let at = match masts {
        [one] => one.at,
        _ => Site::new(mean(|m| m.at.x_m), mean(|m| m.at.y_m)),
    };
    EmitterPlaces { at: vec![at], log_prior: vec![0.0] }
}

/// The nugget's share and the stated variance of every entry.
struct Noises(Vec<(f64, f64)>);

impl Noises {
    fn of(&self, nugget: f64) -> Vec<f64> {
        self.0.iter().map(|(share, stated)| nugget * share + stated).collect()
    }
}

/// Band, sites, values and noise.
type Entries = (usize, Vec<Site>, Vec<f64>, Noises);
