//! Independent bands: every band is a field of its own. Two components of it are weighed band by
//! band: a level with shadowing, as kriging has it, and path loss about one transmitter whose place
//! is averaged over. All bands share the laws of both; levels are drawn to a common one, so that a
//! band heard at a handful of places need not stand for itself.

mod law;
mod model;
mod places;
mod sought;

use std::collections::HashMap;

use ndarray::Array2;
use rayon::prelude::*;

use super::draw::{EmitterField, EmitterKriging};
use super::law::{Covariates, EmitterPlaces, EmitterPosterior, Shadow};
use crate::error::EstimateError;
use crate::estimate::Context;
use crate::estimate::bands::{BandData, Group};
use crate::estimate::kriging::{Own, band_noise, band_sills};
use crate::estimate::stacking::weighed;
use crate::gaussian_process::{
    BandSample, Correlation, Hearing, Neighbours, PooledLaw, PseudoReadings, clustered, pooled_law,
    pooled_laws,
};
use crate::link::{DB_PER_LN, Link};
use crate::model::Model;
use crate::progress::Progress;
use crate::readings::Readings;
use crate::site::{PlaceBits, Site, extent_m};
use law::Account;
pub(in crate::estimate) use model::BandsAlone;
use model::{Part, Side};
use sought::Sought;

pub(in crate::estimate) const KIND: &str = "field_bands";

/// Entries of a band whose covariance is factorised as a whole, and the nearest that are used for a
/// place beyond that.
const TOGETHER: usize = 1500;
const NEIGHBOURS: usize = 128;
/// Entries that a trend is judged by, of more.
const JUDGED: usize = 640;
/// Silent sensors of a band that are listened to.
const MOST_SILENT: usize = 256;
/// How far evidence is believed, where a transmitter has to be found and where it is known:
/// readings follow neither component exactly.
const TEMPER: (f64, f64) = (0.05, 0.1);
/// Log odds of path loss before any reading, where the transmitter is known.
const SEEN: f64 = 1.0;
/// Places up to which the components are weighed by left-out sensors, and the least weight of
/// either.
const MOST_WEIGHED: usize = 1500;
const LEAST_ODDS: f64 = 0.02;
/// Nats of a band's evidence that are luck, and how far the others are believed where left-out sensors
/// have their say too.
const LUCK: f64 = 3.0;
const BELIEVED: f64 = 0.1;
/// Sensors of a band that tell how much it varies, and what level and slope take of their freedom.
const SCALED: usize = 256;
const TREND_TERMS: f64 = 2.0;
/// Places of a transmitter below this share of the evidence are left out.
const LEAST_SHARE: f64 = 1e-4;
/// The extent of a survey whose sensors all stand at one place.
const LEAST_EXTENT_M: f64 = 1e-6;

/// Readings of every band, and the silence in it as readings.
struct Survey {
    samples: Vec<BandSample>,
    /// Values and noise that silence adds, per band.
    pseudo: Vec<PseudoReadings>,
    link: Link,
    extent_m: f64,
}

impl Survey {
    /// Sites, values and noise of a band under a nugget.
    fn entries(&self, band: usize, nugget: f64) -> (Vec<Site>, Vec<f64>, Vec<f64>) {
        let (sample, pseudo) = (&self.samples[band], &self.pseudo[band]);
        let sites = sample.sites.iter().chain(&sample.silent).copied().collect();
        let values = sample.values.iter().chain(&pseudo.values).copied().collect();
        let noise = sample.noise(nugget).into_iter().chain(pseudo.noise.iter().copied()).collect();
        (sites, values, noise)
    }

    /// Number of readings.
    fn readings(&self) -> usize {
        self.samples.iter().map(|sample| sample.values.len()).sum()
    }

    /// The noise variance of a reading of a band: the law's, or what the band's own repeats say.
    fn noise(&self, band: usize, nugget: f64) -> f64 {
        band_noise(&self.samples[band].scatter, &[nugget])[0]
    }
}

/// What was not heard, as readings of a value and a noise of their own, and the law behind it.
pub(in crate::estimate) struct Silence {
    pub law: PooledLaw,
    /// Sensors x bands, in ln power; NaN where there was a reading or nobody listened.
    pub values: Array2<f64>,
    /// Variances.
    pub noise: Array2<f64>,
}

/// What silence says; None where there is none.
pub(in crate::estimate) fn silence(
    readings: &Readings,
    progress: &Progress<'_>,
) -> Result<Option<Silence>, EstimateError> {
    let Some(not_heard) = readings.not_heard() else { return Ok(None) };
    let (samples, silent, _) = samples(readings);
    let Some(law) = pooled_law(&samples, progress)? else { return Ok(None) };
    if law.hearing.is_none() {
        return Ok(None);
    }
    let pseudo = samples.par_iter().map(|s| s.pseudo(&law)).collect::<Result<Vec<_>, _>>()?;
    let mut values = Array2::from_elem(not_heard.entries.dim(), f64::NAN);
    let mut noise = Array2::zeros(values.dim());
    for (band, (pseudo, silent)) in pseudo.iter().zip(&silent).enumerate() {
        for ((&sensor, value), variance) in silent.iter().zip(&pseudo.values).zip(&pseudo.noise) {
            values[[sensor, band]] = *value;
            noise[[sensor, band]] = *variance;
        }
    }
    Ok(Some(Silence { law: reported(readings, law), values, noise }))
}

/// The law as predictions use it: only a floor tells how probably a receiver hears a band.
fn reported(readings: &Readings, law: PooledLaw) -> PooledLaw {
    let floor = readings.not_heard().is_some_and(|not_heard| not_heard.below.is_none());
    PooledLaw { hearing: law.hearing.filter(|_| floor), ..law }
}

/// The bands of some readings as the laws see them, and the sensors of each that heard nothing.
fn samples(readings: &Readings) -> (Vec<BandSample>, Vec<Vec<usize>>, Link) {
    let link = readings.link();
    let not_heard = readings.not_heard();
    let places = BandData::places(readings, Some(link), not_heard.is_some());
    let (samples, silent) = (0..readings.bands())
        .into_par_iter()
        .map(|band| {
            let Group { sites, values, share, stated, scatter, .. } =
                places.group(&places.present(band), vec![band]);
            let unheard = |s: &usize| not_heard.is_some_and(|n| n.entries[[*s, band]]);
            let silent: Vec<usize> = (0..readings.sensors()).filter(unheard).collect();
            let silent = telling(readings.sites(), &sites, silent);
            let below = not_heard.and_then(|n| n.below.as_ref());
            let limits = |silent: &[usize]| {
                below.map_or(Vec::new(), |b| silent.iter().map(|&s| b[s].ln()).collect())
            };
            let sample = BandSample {
                sites,
                values: values.into_iter().collect(),
                share,
                stated,
                limits: limits(&silent),
                silent: silent.iter().map(|&s| readings.sites()[s]).collect(),
                scatter,
            };
            (sample, silent)
        })
        .unzip();
    (samples, silent, link)
}

/// Of many silent sensors those that say most: half of them the nearest to where the band was heard,
/// half spread over the rest.
fn telling(sites: &[Site], heard: &[Site], mut silent: Vec<usize>) -> Vec<usize> {
    if silent.len() <= MOST_SILENT || heard.is_empty() {
        silent.truncate(MOST_SILENT);
        return silent;
    }
    let index = Neighbours::new(heard);
    let mut near = Vec::new();
    let mut by_distance: Vec<(f64, usize)> = silent
        .into_iter()
        .map(|sensor| {
            index.nearest(&sites[sensor], 1, &mut near);
            (near.first().map_or(f64::INFINITY, |found| found.0), sensor)
        })
        .collect();
    by_distance.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let half = MOST_SILENT / 2;
    let mut kept: Vec<usize> = by_distance[..half].iter().map(|(_, sensor)| *sensor).collect();
    let mut rest: Vec<usize> = by_distance[half..].iter().map(|(_, sensor)| *sensor).collect();
    rest.sort_unstable();
    kept.extend((0..half).map(|i| rest[i * rest.len() / half]));
    kept.sort_unstable();
    kept.dedup();
    kept
}

pub(in crate::estimate) fn fit(
    readings: &Readings,
    context: &Context<'_>,
    progress: &Progress<'_>,
) -> Result<Model, EstimateError> {
    let (samples, _, link) = samples(readings);
    let laws = pooled_laws(&samples, &progress.part(0.0..0.3))?;
    let laws = laws.ok_or_else(|| EstimateError::Numerical("no band was read anywhere".into()))?;
    let law = laws[0].1;
    let pseudo = samples.par_iter().map(|s| s.pseudo(&law)).collect::<Result<_, _>>()?;
    let law = reported(readings, law);
    let survey =
        Survey { samples, pseudo, link, extent_m: extent_m(readings.sites()).max(LEAST_EXTENT_M) };
    let plain = laws.iter().map(|(weight, law)| (*weight, Account::plain(law, readings)));
    let plain: Vec<(f64, Account)> = plain.collect();
    let known = context.transmitters;
    let part = progress.part(0.3..0.6);
    let about = Account::about_transmitters(&law, &survey, readings, known, &part)?;
    let rest = progress.part(0.6..1.0);
    // Sides of both kinds, and the log evidence of the likeliest of each.
    let mut sides: Vec<(bool, f64, Vec<f64>, Vec<BandField>)> = Vec::new();
    let mut evidence = Vec::new();
    // Of many readings one law predicts; all say where transmitters may stand.
    let predicting = if survey.readings() > law::AVERAGED { 1 } else { about.len() };
    // The last part says where transmitters stand.
    let count = plain.len() + predicting + 1;
    let share = |i: usize| i as f64 / count as f64;
    for (trend, accounts) in [(false, &plain[..]), (true, &about[..predicting])] {
        for (i, (weight, account)) in accounts.iter().enumerate() {
            let part = rest.part(share(sides.len())..share(sides.len() + 1));
            let scales = account.scales(&survey)?;
            let conditioned = condition(account, &scales, &survey, &part)?;
            let (fields, own): (Vec<_>, Vec<f64>) = conditioned.into_iter().unzip();
            let noise = scales.iter().enumerate();
            let noise =
                noise.map(|(b, (_, scale))| survey.noise(b, scale * account.nugget)).collect();
            let weight = if trend && predicting == 1 { 1.0 } else { *weight };
            sides.push((trend, weight, noise, fields));
            if i == 0 {
                evidence.push(own);
            }
        }
    }
    let likeliest = &about[0].1;
    let better: Vec<f64> = evidence[1].iter().zip(&evidence[0]).map(|(a, b)| a - b).collect();
    let usual = {
        let alone = |side: &(bool, f64, Vec<f64>, Vec<BandField>)| {
            let weights = vec![1.0; readings.bands()];
            let side = Side { noise: side.2.clone(), weights, parts: parts(side.3.clone())? };
            Ok::<_, EstimateError>(BandsAlone::new(
                vec![side],
                survey.link,
                law.hearing,
                readings.bands(),
            ))
        };
        trend_share(readings, &alone(&sides[0])?, &alone(&sides[plain.len()])?)?
    };
    let weights: Vec<f64> = (0..survey.samples.len())
        .map(|band| {
            let known = !likeliest.masts[band].is_empty();
            let odds = match usual {
                _ if known => SEEN + TEMPER.1 * better[band],
                Some(share) => (share / (1.0 - share)).ln() + believed(better[band]),
                None => TEMPER.0 * better[band],
            };
            1.0 / (1.0 + (-odds).clamp(-50.0, 50.0).exp())
        })
        .collect();
    let speaks = |band: &usize| weights[*band] > 0.5 || !likeliest.masts[*band].is_empty();
    let spoken: Vec<usize> = (0..readings.bands()).filter(speaks).collect();
    let sought = Sought::new(&survey, &about, &spoken)?;
    let part = rest.part(share(count - 1)..1.0);
    let emitters = sought.emitters(survey.link, readings.bands(), &part)?;
    let mut built = Vec::new();
    for (path_loss, share, noise, fields) in sides {
        let weights = weights.iter().map(|w| share * if path_loss { *w } else { 1.0 - w });
        let weights = weights.collect();
        built.push(Side { noise, weights, parts: parts(fields)? });
    }
    let local = survey.samples.iter().map(|s| s.sites.len() + s.silent.len()).max().unwrap_or(0);
    let predictor =
        BandsAlone::new(built, survey.link, law.hearing, readings.bands()).seeking(sought);
    let mut model =
        Model::new(readings, predictor).with_emitters(emitters).with_stated_noise(readings);
    let report = model.report_mut();
    report.add_fitted(&fitted(&law));
    report.add_fitted(&[("trend_weight", weights.iter().sum::<f64>() / weights.len() as f64)]);
    if local > TOGETHER {
        report.notes.push(crate::estimate::interpolated::local_note(NEIGHBOURS));
    }
    Ok(model)
}

/// How much path loss counts in most bands, by readings at left-out sensors; None where there are too
/// many to leave out, or silence.
fn trend_share(
    readings: &Readings,
    plain: &BandsAlone,
    about: &BandsAlone,
) -> Result<Option<f64>, EstimateError> {
    if readings.places() > MOST_WEIGHED || readings.not_heard().is_some() {
        return Ok(None);
    }
    let found = weighed(readings, &[(0.5, plain), (0.5, about)])?;
    Ok(found.map(|found| found[1].0.clamp(LEAST_ODDS, 1.0 - LEAST_ODDS)))
}

/// What evidence adds to the log odds of left-out sensors: little of it is luck, much is not.
fn believed(evidence: f64) -> f64 {
    BELIEVED * evidence.signum() * (evidence.abs() - LUCK).max(0.0)
}

/// A law in the words of a report.
fn fitted(law: &PooledLaw) -> Vec<(&'static str, f64)> {
    let square = DB_PER_LN * DB_PER_LN;
    let mut fitted = vec![
        ("decorrelation_m", law.decorrelation_m),
        ("sill", law.sill * square),
        ("nugget", law.nugget * square),
    ];
    fitted.extend(law.hearing.iter().flat_map(Hearing::fitted));
    fitted
}

/// One band's field with the sites of its entries.
#[derive(Clone)]
struct BandField {
    sites: Vec<Site>,
    field: EmitterField,
}

fn singular() -> EstimateError {
    EstimateError::Numerical("a band's covariance cannot be factorised".into())
}

/// Every band under one component, with scales of its own for field and noise, and its log
/// evidence.
fn condition(
    account: &Account,
    scales: &[(f64, f64)],
    survey: &Survey,
    progress: &Progress<'_>,
) -> Result<Vec<(BandField, f64)>, EstimateError> {
    (0..survey.samples.len())
        .into_par_iter()
        .map(|band| {
            progress.check()?;
            let (of_field, of_noise) = scales[band];
            let nugget = survey.noise(band, of_noise * account.nugget);
            let shadow = Shadow { sill: of_field * account.shadow.sill, ..account.shadow };
            let (sites, values, noise) = survey.entries(band, nugget);
            let judged: Vec<usize> = match sites.len() > TOGETHER {
                true => (0..JUDGED).map(|i| i * sites.len() / JUDGED).collect(),
                false => (0..sites.len()).collect(),
            };
            let pick = |all: &[f64]| judged.iter().map(|&i| all[i]).collect::<Vec<f64>>();
            let some: Vec<Site> = judged.iter().map(|&i| sites[i]).collect();
            let (places, losses) = (&account.places[band], account.losses(band, &some));
            let (judged_values, judged_noise) = (pick(&values), pick(&noise));
            let posterior = account
                .posterior(shadow, (&some, &judged_values, &judged_noise), places, &losses)
                .ok_or_else(singular)?;
            let evidence = posterior.log_evidence + account.normaliser();
            let field = account.field(band, shadow, posterior, values, noise);
            Ok((BandField { sites, field }, evidence))
        })
        .collect()
}

impl Account {
    /// Factors on the variances of every band's field and noise: bands differ in how much they vary
    /// about the law that they share.
    fn scales(&self, survey: &Survey) -> Result<Vec<(f64, f64)>, EstimateError> {
        let bands = 0..survey.samples.len();
        if survey.samples.iter().any(|sample| !sample.silent.is_empty()) {
            // What silence says was found under the law as it is.
            return Ok(vec![(1.0, 1.0); bands.len()]);
        }
        let own: Vec<Own> =
            bands.into_par_iter().map(|band| self.own(band, survey)).collect::<Result<_, _>>()?;
        Ok(band_sills(&own, 1.0))
    }

    /// How much a band varies beside the law.
    fn own(&self, band: usize, survey: &Survey) -> Result<Own, EstimateError> {
        let sample = &survey.samples[band];
        let freedom = (sample.sites.len() as f64 - TREND_TERMS).max(0.0);
        if freedom == 0.0 {
            return Ok(Own { sill: None, freedom });
        }
        let (sites, values, noise) = survey.entries(band, survey.noise(band, self.nugget));
        let kept = clustered(&sites, SCALED);
        let pick = |all: &[f64]| kept.iter().map(|&i| all[i]).collect::<Vec<f64>>();
        let (sites, values, noise): (Vec<Site>, _, _) =
            (kept.iter().map(|&i| sites[i]).collect(), pick(&values), pick(&noise));
        let losses = self.losses(band, &sites);
        let entries = (&sites[..], &values[..], &noise[..]);
        let posterior = self.posterior(self.shadow, entries, &self.places[band], &losses);
        let posterior = posterior.ok_or_else(singular)?;
        let trend = posterior.mean_trend(&losses);
        let rest = values.iter().zip(&trend).map(|(v, t)| v - t);
        let squares: f64 = rest.zip(&posterior.pull).map(|(rest, pull)| rest * pull).sum();
        let own = squares / (sites.len() as f64 - TREND_TERMS);
        Ok(Own { sill: Some((own, own)), freedom })
    }

    /// Of a band's sites, values and noise.
    fn posterior(
        &self,
        shadow: Shadow,
        (sites, values, noise): (&[Site], &[f64], &[f64]),
        places: &EmitterPlaces,
        losses: &faer::Mat<f64>,
    ) -> Option<EmitterPosterior> {
        let correlations = Correlation::exponential(shadow.decorrelation_m).matrix(sites);
        let covariates = Covariates::new(&correlations, shadow.sill, noise)?;
        Some(EmitterPosterior::new(covariates, &self.law, places, losses, values))
    }

    /// The places that matter.
    fn field(
        &self,
        band: usize,
        shadow: Shadow,
        posterior: EmitterPosterior,
        values: Vec<f64>,
        noise: Vec<f64>,
    ) -> EmitterField {
        let places = &self.places[band];
        let kept: Vec<usize> =
            (0..places.at.len()).filter(|&j| posterior.weights[j] > LEAST_SHARE).collect();
        let total: f64 = kept.iter().map(|&j| posterior.weights[j]).sum();
        EmitterField {
            law: self.law,
            shadow,
            places: kept.iter().map(|&j| places.at[j]).collect(),
            weights: kept.iter().map(|&j| posterior.weights[j] / total).collect(),
            trends: kept.iter().map(|&j| posterior.trends[j]).collect(),
            masts: self.masts[band].clone(),
            values,
            noise,
        }
    }
}

/// Ready to predict.
fn parts(fields: Vec<BandField>) -> Result<Vec<Part>, EstimateError> {
    let parts = unsolved(fields);
    parts.par_iter().try_for_each(|part| part.kriging.solve_all())?;
    Ok(parts)
}

/// Bands with entries at the same sites share their distances.
fn unsolved(fields: Vec<BandField>) -> Vec<Part> {
    let mut slots: HashMap<Vec<PlaceBits>, usize> = HashMap::new();
    let mut groups: Vec<(Vec<Site>, Vec<usize>, Vec<EmitterField>)> = Vec::new();
    for (band, BandField { sites, field }) in fields.into_iter().enumerate() {
        let key: Vec<PlaceBits> = sites.iter().map(|s| s.bits()).collect();
        let slot = *slots.entry(key).or_insert_with(|| {
            groups.push((sites, Vec::new(), Vec::new()));
            groups.len() - 1
        });
        groups[slot].1.push(band);
        groups[slot].2.push(field);
    }
    groups.into_iter().map(|(sites, bands, fields)| Part::new(sites, bands, fields)).collect()
}

impl Part {
    fn new(sites: Vec<Site>, bands: Vec<usize>, fields: Vec<EmitterField>) -> Self {
        let neighbours = (sites.len() > TOGETHER).then_some(NEIGHBOURS);
        Part { bands, kriging: EmitterKriging::unsolved(sites, fields, neighbours) }
    }
}

#[cfg(test)]
mod tests;
