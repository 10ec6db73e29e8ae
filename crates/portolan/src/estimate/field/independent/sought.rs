//! Where the transmitters of independent bands may stand: their places under every law that the
//! readings leave possible, found again when there are further readings.

use std::collections::HashMap;

use rayon::prelude::*;

use super::super::law::{
    Covariates, EmitterPlaces, EmitterPosterior, Law, Mast, PathLoss, mean_exponent, mean_place,
};
use super::law::Account;
use super::{JUDGED, LEAST_SHARE, Survey, TOGETHER, singular};
use crate::error::EstimateError;
use crate::estimate::bands::Rows;
use crate::gaussian_process::Correlation;
use crate::link::Link;
use crate::model::{Archive, ModelEmitter, damaged, weighted_places};
use crate::progress::Progress;
use crate::site::{PlaceBits, Site};

/// More laws than this are not read from a file.
const MOST_LAWS: usize = 64;

/// The bands with a transmitter, under all laws.
pub(super) struct Sought {
    laws: Vec<SoughtLaw>,
    bands: Vec<SoughtBand>,
}

#[derive(Clone)]
struct SoughtLaw {
    weight: f64,
    law: Law,
    decorrelation_m: f64,
    /// Sill and nugget of every sought band.
    scales: Vec<(f64, f64)>,
}

/// The entries of one band, and where its transmitter may stand.
#[derive(Clone)]
struct SoughtBand {
    band: usize,
    sites: Vec<Site>,
    values: Vec<f64>,
    /// The nugget's share of every entry, 0 for silence; and the variance besides.
    share: Vec<f64>,
    stated: Vec<f64>,
    places: EmitterPlaces,
    /// Known transmitters, which stand for the only place then.
    masts: Vec<Mast>,
}

impl Sought {
    /// Some bands of a survey.
    pub fn new(
        survey: &Survey,
        accounts: &[(f64, Account)],
        bands: &[usize],
    ) -> Result<Self, EstimateError> {
        let total: f64 = accounts.iter().map(|(weight, _)| weight).sum();
        let mut laws = Vec::new();
        for (weight, account) in accounts {
            let account = account.nearer(survey.extent_m);
            let scales = account.scales(survey)?;
            let of_band = |&band: &usize| {
                let (field, noise) = scales[band];
                (field * account.shadow.sill, survey.noise(band, noise * account.nugget))
            };
            laws.push(SoughtLaw {
                weight: weight / total,
                law: account.law,
                decorrelation_m: account.shadow.decorrelation_m,
                scales: bands.iter().map(of_band).collect(),
            });
        }
        let likeliest = &accounts[0].1;
        let of_band = |&band: &usize| {
            let (sample, pseudo) = (&survey.samples[band], &survey.pseudo[band]);
            let (sites, values, _) = survey.entries(band, 0.0);
            let silence = vec![0.0; pseudo.noise.len()];
            SoughtBand {
                band,
                sites,
                values,
                share: [&sample.share[..], &silence].concat(),
                stated: [&sample.stated[..], &pseudo.noise].concat(),
                places: likeliest.places[band].clone(),
                masts: likeliest.masts[band].clone(),
            }
        };
        Ok(Self { laws, bands: bands.iter().map(of_band).collect() })
    }

    /// The same laws with further readings, or with these alone.
    pub fn renewed(&self, sites: &[Site], rows: &Rows, keep: bool) -> Self {
        let renewed = |(i, own): (usize, &SoughtBand)| {
            let mut own = own.clone();
            if !keep {
                own.sites.clear();
                own.values.clear();
                own.share.clear();
                own.stated.clear();
            }
            own.add(sites, rows, self.laws[0].scales[i].1);
            own
        };
        let bands = self.bands.iter().enumerate().map(renewed).collect();
        Self { laws: self.laws.clone(), bands }
    }

    /// The transmitters, of so many bands in all.
    pub fn emitters(
        &self,
        link: Link,
        bands: usize,
        progress: &Progress<'_>,
    ) -> Result<Vec<ModelEmitter>, EstimateError> {
        let read: Vec<usize> =
            (0..self.bands.len()).filter(|&i| !self.bands[i].sites.is_empty()).collect();
        let powers: Vec<f64> = read.iter().map(|&i| self.bands[i].power(link)).collect();
        let total = powers.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        let found = read.par_iter().zip(&powers).map(|(&i, power)| {
            progress.check()?;
            let mut averaged = Placed::default();
            for law in &self.laws {
                averaged.add(law.weight, self.bands[i].under(law, law.scales[i])?);
            }
            Ok(averaged.emitters(&self.bands[i], bands, power / total))
        });
        Ok(found.collect::<Result<Vec<_>, EstimateError>>()?.concat())
    }

    pub fn save(&self, archive: &mut Archive) {
        if self.bands.is_empty() {
            return;
        }
        let law = |l: &SoughtLaw| {
            let Law { reference_m, exponent, exponent_sd, level, level_sd } = l.law;
            [l.weight, reference_m, exponent, exponent_sd, level, level_sd, l.decorrelation_m]
        };
        archive.put_vector("sought_laws", &self.laws.iter().flat_map(law).collect::<Vec<f64>>());
        let scales = self.laws.iter().flat_map(|l| &l.scales).flat_map(|(sill, n)| [*sill, *n]);
        archive.put_vector("sought_scales", &scales.collect::<Vec<f64>>());
        let counts = |b: &SoughtBand| [b.band, b.sites.len(), b.places.at.len(), b.masts.len()];
        archive.put_whole("sought_bands", self.bands.iter().flat_map(counts));
        let numbers = |of: fn(&SoughtBand) -> &[f64]| {
            self.bands.iter().flat_map(of).copied().collect::<Vec<f64>>()
        };
        let sites = |of: fn(&SoughtBand) -> &[Site]| {
            self.bands.iter().flat_map(of).copied().collect::<Vec<Site>>()
        };
        archive.put_sites("sought_sites", &sites(|b| &b.sites));
        archive.put_vector("sought_values", &numbers(|b| &b.values));
        archive.put_vector("sought_share", &numbers(|b| &b.share));
        archive.put_vector("sought_stated", &numbers(|b| &b.stated));
        archive.put_sites("sought_places", &sites(|b| &b.places.at));
        archive.put_vector("sought_prior", &numbers(|b| &b.places.log_prior));
        let masts = self.bands.iter().flat_map(|b| &b.masts);
        let masts = masts.flat_map(|m| [m.at.x_m, m.at.y_m, m.at.z_m, m.share]);
        archive.put_vector("sought_masts", &masts.collect::<Vec<f64>>());
    }

    /// What [`Self::save`] wrote; older models have none.
    pub fn load(archive: &Archive, bands: usize) -> Result<Option<Self>, EstimateError> {
        if !archive.has("sought_laws") {
            return Ok(None);
        }
        let wrong = || EstimateError::from(damaged("sought_bands", "does not fit the others"));
        let counts = archive.whole("sought_bands")?;
        let count = counts.len() / 4;
        let numbers = archive.finite("sought_laws")?;
        let scales = archive.finite("sought_scales")?;
        let laws: Vec<SoughtLaw> = numbers
            .chunks_exact(7)
            .enumerate()
            .map_while(|(l, row)| {
                let own = scales.get(2 * count * l..2 * count * (l + 1))?;
                Some(SoughtLaw {
                    weight: row[0],
                    law: Law {
                        reference_m: row[1],
                        exponent: row[2],
                        exponent_sd: row[3],
                        level: row[4],
                        level_sd: row[5],
                    },
                    decorrelation_m: row[6],
                    scales: own.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect(),
                })
            })
            .collect();
        let sound = |l: &SoughtLaw| {
            l.weight >= 0.0
                && [l.law.reference_m, l.law.exponent_sd, l.law.level_sd, l.decorrelation_m]
                    .iter()
                    .all(|v| *v > 0.0)
                && l.scales.iter().all(|(sill, nugget)| *sill >= 0.0 && *nugget >= 0.0)
        };
        let whole = !laws.is_empty()
            && laws.len() <= MOST_LAWS
            && 7 * laws.len() == numbers.len()
            && 2 * count * laws.len() == scales.len()
            && counts.len() == 4 * count
            && laws.iter().all(sound);
        if !whole {
            return Err(wrong());
        }
        let mut rest = Rest {
            sites: archive.sites("sought_sites")?,
            values: archive.finite("sought_values")?,
            share: archive.finite("sought_share")?,
            stated: archive.finite("sought_stated")?,
            places: archive.sites("sought_places")?,
            log_prior: archive.vector("sought_prior")?,
            masts: archive.finite("sought_masts")?,
        };
        let mut found: Vec<SoughtBand> = Vec::new();
        for numbers in counts.chunks_exact(4) {
            let own = rest.band(numbers).ok_or_else(wrong)?;
            if own.band >= bands || found.last().is_some_and(|last| last.band >= own.band) {
                return Err(wrong());
            }
            found.push(own);
        }
        Ok(Some(Self { laws, bands: found }))
    }
}

/// What a file holds of the bands that were not read yet.
struct Rest {
    sites: Vec<Site>,
    values: Vec<f64>,
    share: Vec<f64>,
    stated: Vec<f64>,
    places: Vec<Site>,
    log_prior: Vec<f64>,
    masts: Vec<f64>,
}

impl Rest {
    /// The next band, of these numbers: band, entries, places, known transmitters.
    fn band(&mut self, numbers: &[usize]) -> Option<SoughtBand> {
        fn take<T>(all: &mut Vec<T>, count: usize) -> Option<Vec<T>> {
            (count <= all.len()).then(|| all.drain(..count).collect())
        }
        let &[band, entries, places, masts] = numbers else { return None };
        let mast = |m: &[f64]| Mast { at: Site::new(m[0], m[1]).at_height(m[2]), share: m[3] };
        let found = SoughtBand {
            band,
            sites: take(&mut self.sites, entries)?,
            values: take(&mut self.values, entries)?,
            share: take(&mut self.share, entries)?,
            stated: take(&mut self.stated, entries)?,
            places: EmitterPlaces {
                at: take(&mut self.places, places)?,
                log_prior: take(&mut self.log_prior, places)?,
            },
            masts: take(&mut self.masts, masts.checked_mul(4)?)?.chunks(4).map(mast).collect(),
        };
        let sound = places > 0
            && found.places.log_prior.iter().all(|p| !p.is_nan() && *p < f64::INFINITY)
            && found.share.iter().chain(&found.stated).all(|v| *v >= 0.0)
            && found.masts.iter().all(|m| m.share > 0.0)
            && (found.masts.is_empty() || places == 1);
        sound.then_some(found)
    }
}

impl SoughtBand {
    /// Power of its readings together.
    fn power(&self, link: Link) -> f64 {
        let heard = self.values.iter().zip(&self.share).filter(|(_, share)| **share > 0.0);
        heard.map(|(value, _)| link.inverse(*value)).sum()
    }

    /// With further readings. Visits to a place that is known are joined with what it read.
    fn add(&mut self, sites: &[Site], rows: &Rows, nugget: f64) {
        let mut known: HashMap<PlaceBits, usize> =
            self.sites.iter().enumerate().map(|(i, site)| (site.bits(), i)).collect();
        for (row, site) in sites.iter().enumerate() {
            let value = rows.values[[row, self.band]];
            if value.is_nan() {
                continue;
            }
            let share = rows.share.as_ref().map_or(1.0, |share| share[[row, self.band]]);
            let stated = rows.stated.as_ref().map_or(0.0, |stated| stated[[row, self.band]]);
            let at = *known.entry(site.bits()).or_insert(self.sites.len());
            if at == self.sites.len() {
                self.sites.push(*site);
                self.values.push(value);
                self.share.push(share);
                self.stated.push(stated);
                continue;
            }
            let first = nugget * self.share[at] + self.stated[at];
            let second = nugget * share + stated;
            let total = first + second;
            let (weight, joined) = match total > 0.0 {
                true => (first / total, first * second / total),
                false => (0.5, 0.0),
            };
            self.values[at] += weight * (value - self.values[at]);
            self.share[at] *= share / (self.share[at] + share).max(f64::MIN_POSITIVE);
            self.stated[at] = (joined - nugget * self.share[at]).max(0.0);
        }
    }

    /// Weights of the places that matter, and their trends.
    fn under(&self, law: &SoughtLaw, (sill, nugget): (f64, f64)) -> Result<Placed, EstimateError> {
        let count = self.sites.len();
        let judged: Vec<usize> = match count > TOGETHER {
            true => (0..JUDGED).map(|i| i * count / JUDGED).collect(),
            false => (0..count).collect(),
        };
        let sites: Vec<Site> = judged.iter().map(|&i| self.sites[i]).collect();
        let values: Vec<f64> = judged.iter().map(|&i| self.values[i]).collect();
        let noise: Vec<f64> =
            judged.iter().map(|&i| nugget * self.share[i] + self.stated[i]).collect();
        let correlations = Correlation::exponential(law.decorrelation_m).matrix(&sites);
        let covariates = Covariates::new(&correlations, sill, &noise).ok_or_else(singular)?;
        let losses = match self.masts.is_empty() {
            true => law.law.losses(&self.places.at, &sites),
            false => law.law.losses_from(&self.masts, &sites),
        };
        let found = EmitterPosterior::new(covariates, &law.law, &self.places, &losses, &values);
        let weights = &found.weights;
        let kept: Vec<usize> = (0..weights.len()).filter(|&j| weights[j] > LEAST_SHARE).collect();
        let total: f64 = kept.iter().map(|&j| weights[j]).sum();
        let weights = kept.iter().map(|&j| weights[j] / total).collect();
        let trends = kept.iter().map(|&j| found.trends[j]).collect();
        Ok(Placed { places: kept, weights, trends })
    }
}

/// The places of a band's transmitter by number, with weights and trends: under one law or all.
#[derive(Default)]
struct Placed {
    places: Vec<usize>,
    weights: Vec<f64>,
    trends: Vec<PathLoss>,
}

impl Placed {
    /// Adds what was found under a law of some weight.
    fn add(&mut self, law: f64, found: Placed) {
        self.places.extend(found.places);
        self.weights.extend(found.weights.iter().map(|own| own * law));
        self.trends.extend(found.trends);
    }

    /// The transmitters of the band, which has this share of the power.
    fn emitters(&self, own: &SoughtBand, bands: usize, share: f64) -> Vec<ModelEmitter> {
        let mut psd = vec![0.0; bands];
        psd[own.band] = 1.0;
        let exponent = Some(mean_exponent(&self.weights, &self.trends));
        let emitter = |at: Site, at_se_m: [f64; 2], power_share: f64, places: Vec<_>| {
            let (at_se_m, psd) = (Some(at_se_m), psd.clone());
            ModelEmitter { at, at_se_m, exponent, psd, power_share, places }
        };
        if own.masts.is_empty() {
            let at: Vec<Site> = self.places.iter().map(|&j| own.places.at[j]).collect();
            let (mean, sd) = mean_place(&self.weights, &at);
            return vec![emitter(mean, sd, share, weighted_places(&self.weights, &at))];
        }
        let total: f64 = own.masts.iter().map(|mast| mast.share).sum();
        let known = own.masts.iter();
        known.map(|m| emitter(m.at, [0.0; 2], share * m.share / total, Vec::new())).collect()
    }
}
