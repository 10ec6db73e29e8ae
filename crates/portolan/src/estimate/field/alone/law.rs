//! The two accounts of a band, each with the law that all bands share.

use rayon::prelude::*;

use super::super::law::{EmitterPlaces, EmitterPosterior, Law, Mast, Shadow};
use super::Survey;
use super::places::lattice;
use crate::error::EstimateError;
use crate::estimate::Transmitter;
use crate::gaussian_process::{NOISE_PRIOR, PooledLaw, clustered, minimise, posterior_points};
use crate::link::DB_PER_LN;
use crate::progress::Progress;
use crate::readings::Readings;
use crate::simulate::REFERENCE_DISTANCE_M;
use crate::site::{Site, extent_m};

/// Path loss before any reading: 20 +- 8 dB a decade.
const EXPONENT: (f64, f64) = (2.0, 0.8);
/// Places of the lattice, and of the coarse one that the law is fitted on.
const PLACES: usize = 300;
const COARSE_PLACES: usize = 96;
/// Entries of a band and work of an evaluation that the law is fitted with.
const MOST_ENTRIES: usize = 256;
const MOST_WORK: f64 = 3e8;
const EVALUATIONS: usize = 130;
/// Readings up to which the laws that they leave possible are averaged, and the most laws.
const AVERAGED: usize = 1200;
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
    /// What a place stands for.
    pub spacing_m: f64,
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
                level_sd: pooled.level_variance.sqrt(),
            },
            shadow: Shadow { decorrelation_m: pooled.decorrelation_m, sill: pooled.sill },
            nugget: pooled.nugget,
            places: vec![nowhere; readings.bands()],
            masts: vec![Vec::new(); readings.bands()],
            spacing_m: 0.0,
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
        let (places, spacing_m) = lattice(&region, PLACES);
        let (coarse, _) = lattice(&region, COARSE_PLACES);
        let bands = readings.bands();
        let reference_m = (0.4 * spacing_m).max(1.0_f64.min(0.01 * extent_m(readings.sites())));
        let masts: Vec<Vec<Mast>> = (0..bands).map(|band| masts(known, band)).collect();
        let spread = |free: &EmitterPlaces| -> Vec<EmitterPlaces> {
            masts.iter().map(|m| if m.is_empty() { free.clone() } else { stand(m) }).collect()
        };
        let plain = Self::plain(pooled, readings);
        let mut account = Self {
            law: Law { reference_m, ..plain.law },
            places: spread(&coarse),
            masts: masts.clone(),
            spacing_m,
            ..plain
        };
        if masts.iter().all(|m| !m.is_empty()) {
            account.law.reference_m = REFERENCE_DISTANCE_M.max(2e-3 * extent_m(readings.sites()));
        }
        let learnt = account.learn(pooled, survey, readings, progress)?;
        let fine = spread(&places);
        let with_places = |law: Account| Self { places: fine.clone(), masts: masts.clone(), ..law };
        Ok(learnt.into_iter().map(|(weight, law)| (weight, with_places(law))).collect())
    }

    /// Losses from the places of a band's transmitter to some sites.
    pub fn losses(&self, band: usize, sites: &[Site]) -> faer::Mat<f64> {
        match self.masts[band].is_empty() {
            true => self.law.losses(&self.places[band].at, sites),
            false => self.law.losses_from(&self.masts[band], sites),
        }
    }

    /// What the priors of level and exponent add to a band's log evidence.
    pub fn normaliser(&self) -> f64 {
        -self.law.level_sd.ln() - self.law.exponent_sd.ln()
    }

    /// The laws of all bands together, as far as they can be afforded, without places.
    fn learn(
        &self,
        pooled: &PooledLaw,
        survey: &Survey,
        readings: &Readings,
        progress: &Progress<'_>,
    ) -> Result<Vec<(f64, Account)>, EstimateError> {
        let some = self.affordable(survey);
        let extent = extent_m(readings.sites());
        let levels = self.typical_level(&some, pooled);
        let start = [
            (0.5 * pooled.decorrelation_m).ln(),
            (0.5 * pooled.sill).ln(),
            pooled.nugget.ln(),
            (pooled.sill + pooled.level_variance).ln(),
            levels,
        ];
        let widths = [1.5, 1.5, 2.0 * NOISE_PRIOR.1, 1.5, 20.0 / DB_PER_LN];
        let nugget = 2.0 * (NOISE_PRIOR.0 / DB_PER_LN).ln();
        let middle = [(0.3 * extent).ln(), start[1], nugget, start[3], levels];
        let bounds: Vec<(f64, f64)> = [
            ((1e-3 * extent).ln(), (20.0 * extent).ln()),
            (start[1] - 8.0, start[1] + 8.0),
            (start[2] - 8.0, start[2] + 8.0),
            (start[3] - 8.0, start[3] + 8.0),
            (levels - 40.0, levels + 40.0),
        ]
        .to_vec();
        let objective = |x: &[f64]| {
            progress.check()?;
            let trial = self.at(x);
            let evidence: f64 = some
                .par_iter()
                .map(|(band, sites, values, noise)| {
                    let noise = noise.of(trial.nugget);
                    let losses = self.losses(*band, sites);
                    let places = &self.places[*band];
                    let found = trial.posterior(sites, values, &noise, places, &losses);
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
        let (best, _) = minimise(objective, &start, &bounds, 0.7, 0.05, EVALUATIONS)?;
        let readings: usize = some.iter().map(|entries| entries.1.len()).sum();
        if readings > AVERAGED {
            return Ok(vec![(1.0, self.at(&best))]);
        }
        let whole = |x: &[f64]| {
            let mut all = best.clone();
            all[..x.len()].copy_from_slice(x);
            all
        };
        let some = |x: &[f64]| objective(&whole(x));
        let found = posterior_points(some, &best[..3], &bounds[..3], MOST_LAWS)?;
        Ok(found.into_iter().map(|(weight, x)| (weight, self.at(&whole(&x)))).collect())
    }

    /// The same places under another law.
    fn at(&self, x: &[f64]) -> Account {
        Account {
            law: Law { level: x[4], level_sd: (0.5 * x[3]).exp(), ..self.law },
            shadow: Shadow { decorrelation_m: x[0].exp(), sill: x[1].exp() },
            nugget: x[2].exp(),
            places: Vec::new(),
            masts: Vec::new(),
            spacing_m: self.spacing_m,
        }
    }

    /// The level at the reference distance that readings of the usual level speak for.
    fn typical_level(&self, some: &[Entries], pooled: &PooledLaw) -> f64 {
        let (mut sum, mut count) = (0.0, 0.0);
        for (band, sites, ..) in some {
            let losses = self.losses(*band, sites);
            for j in 0..losses.ncols() {
                sum += losses.col(j).iter().sum::<f64>();
                count += losses.nrows() as f64;
            }
        }
        pooled.level + EXPONENT.0 * sum / f64::max(count, 1.0)
    }

    fn affordable(&self, survey: &Survey) -> Vec<Entries> {
        let bands: Vec<usize> =
            (0..survey.samples.len()).filter(|&b| !survey.samples[b].sites.is_empty()).collect();
        let thinned: Vec<Entries> = bands
            .iter()
            .map(|&band| {
                let (sample, told) = (&survey.samples[band], &survey.told[band]);
                let (sites, values, _) = survey.entries(band, 0.0);
                let kept = clustered(&sites, MOST_ENTRIES);
                let heard = sample.values.len();
                let noise = kept
                    .iter()
                    .map(|&i| match i < heard {
                        true => (sample.share[i], sample.stated[i]),
                        false => (0.0, told.noise[i - heard]),
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

/// The known transmitters of a band. Powers are shares of the strongest; one that says none is as
/// strong as the others.
fn masts(known: &[Transmitter], band: usize) -> Vec<Mast> {
    let own: Vec<&Transmitter> =
        known.iter().filter(|t| t.band.is_none_or(|b| b == band)).collect();
    let most = own.iter().filter_map(|t| t.power_db).fold(f64::NEG_INFINITY, f64::max);
    own.iter()
        .map(|t| Mast {
            at: t.at,
            height_m: t.height_m,
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
