//! Bands on their own, ready to predict.

use std::collections::{HashMap, HashSet};

use ndarray::Array2;
use rayon::prelude::*;

use super::super::draw::{EmitterField, EmitterKriging, Fields};
use super::super::law::{Covariates, EmitterPlaces, EmitterPosterior};
use super::super::model::{load_field, save_field};
use super::sought::Sought;
use super::{BandField, JUDGED, TOGETHER};
use crate::error::EstimateError;
use crate::estimate::bands::Rows;
use crate::estimate::mixture::Moments;
use crate::gaussian_process::{Correlation, Hearing, along_curve};
use crate::link::{DB_PER_LN, Link};
use crate::model::{Archive, LeftOut, ModelEmitter, Prediction, Predictor, damaged};
use crate::progress::Progress;
use crate::readings::Readings;
use crate::site::{PlaceBits, Site};

/// More sides than this no model has.
const MOST_SIDES: usize = 64;

/// Every band under several components, each with its weight.
pub(in crate::estimate) struct BandsAlone {
    sides: Vec<Side>,
    link: Link,
    hearing: Option<Hearing>,
    bands: usize,
    /// The transmitters, in models that can find them again.
    sought: Option<Sought>,
}

/// All bands under one account.
pub(super) struct Side {
    /// Noise variance of a reading, per band.
    pub noise: Vec<f64>,
    /// Per band.
    pub weights: Vec<f64>,
    pub parts: Vec<Part>,
}

/// Bands with entries at the same sites, one emitter each.
pub(super) struct Part {
    pub bands: Vec<usize>,
    pub kriging: EmitterKriging,
}

impl BandsAlone {
    pub(super) fn new(
        sides: Vec<Side>,
        link: Link,
        hearing: Option<Hearing>,
        bands: usize,
    ) -> Self {
        Self { sides, link, hearing, bands, sought: None }
    }

    /// With what finds the transmitters again.
    pub(super) fn seeking(self, sought: Sought) -> Self {
        Self { sought: Some(sought), ..self }
    }

    /// The same accounts of further readings, or of these alone.
    fn renewed(&self, readings: &Readings, keep: bool) -> Result<Self, EstimateError> {
        let rows = Rows::heard(readings, Some(self.link))?;
        let sides = self
            .sides
            .iter()
            .map(|side| {
                let mut fields: Vec<Option<BandField>> = vec![None; self.bands];
                for part in &side.parts {
                    for (&band, field) in part.bands.iter().zip(&part.kriging.emitters) {
                        let mut old =
                            BandField { sites: part.kriging.sensors.clone(), field: field.clone() };
                        if !keep {
                            old.sites.clear();
                            old.field.values.clear();
                            old.field.noise.clear();
                        }
                        fields[band] =
                            Some(old.with(readings.sites(), &rows, band, side.noise[band])?);
                    }
                }
                let fields = fields.into_iter().flatten().collect();
                let (noise, weights) = (side.noise.clone(), side.weights.clone());
                Ok(Side { noise, weights, parts: super::unsolved(fields) })
            })
            .collect::<Result<_, EstimateError>>()?;
        let sought = self.sought.as_ref().map(|s| s.renewed(readings.sites(), &rows, keep));
        let Self { link, hearing, bands, .. } = *self;
        Ok(Self { sides, link, hearing, bands, sought })
    }

    /// Noise variance of a reading, per band.
    fn noise(&self) -> Vec<f64> {
        let of = |band: usize| self.sides.iter().map(|s| s.weights[band] * s.noise[band]).sum();
        (0..self.bands).map(of).collect()
    }

    pub fn load(archive: &Archive, bands: usize) -> Result<Self, EstimateError> {
        let link = Link::new(archive.number("link")?.max(0.0));
        let hearing = archive.pair("hearing")?;
        let hearing = hearing.map(|(floor, softness)| Hearing { floor, softness });
        let count = archive.count("sides")?;
        let mut sides = Vec::new();
        for s in 0..count.min(MOST_SIDES) {
            let weights = archive.finite(&format!("side_{s}_weights"))?;
            let noise = match archive.has(&format!("side_{s}_noise")) {
                true => archive.finite(&format!("side_{s}_noise"))?,
                // Models of version 0.2 have one for all bands.
                false => vec![archive.number(&format!("side_{s}_nugget"))?; weights.len()],
            };
            let mut seen = vec![false; weights.len()];
            let mut parts = Vec::new();
            for p in 0..archive.count(&format!("side_{s}_parts"))?.min(bands) {
                let own = archive.whole(&format!("side_{s}_bands_{p}"))?;
                let sites = archive.sites(&format!("side_{s}_sites_{p}"))?;
                let fresh =
                    own.iter().all(|&b| b < seen.len() && !std::mem::replace(&mut seen[b], true));
                if !fresh || sites.is_empty() {
                    return Err(damaged("sides", "does not fit the others").into());
                }
                let fields = own
                    .iter()
                    .map(|b| load_field(archive, &format!("{s}_{b}"), sites.len()))
                    .collect::<Result<_, _>>()?;
                parts.push(Part::new(sites, own, fields));
            }
            let sound = noise.iter().all(|n| *n >= 0.0) && noise.len() == bands;
            let sound = sound && weights.iter().all(|w| (0.0..=1.0).contains(w));
            if weights.len() != bands || !seen.iter().all(|s| *s) || !sound {
                return Err(damaged("sides", "does not hold every band").into());
            }
            sides.push(Side { noise, weights, parts });
        }
        if sides.is_empty() {
            return Err(damaged("sides", "is empty").into());
        }
        Ok(Self { sides, link, hearing, bands, sought: Sought::load(archive, bands)? })
    }
}

/// Means, and standard deviations in dB; NaN where nothing was added.
fn finished(sums: &Array2<Moments>) -> (Array2<f64>, Array2<f64>) {
    let mean = |m: &Moments| if m.is_empty() { f64::NAN } else { m.mean };
    (sums.map(mean), sums.map(|m| DB_PER_LN * m.variance().sqrt()))
}

impl BandsAlone {
    fn left_out(&self, sums: &Array2<Moments>) -> LeftOut {
        let (mean, spread) = finished(sums);
        let power = mean.mapv(|m| if m.is_nan() { m } else { self.link.inverse(m) });
        let noise: Vec<f64> = self.noise().into_iter().map(|v| DB_PER_LN * v.sqrt()).collect();
        LeftOut::with_noise(power, spread, &noise)
    }
}

impl Part {
    /// Every band at places, without the entries of some of them; None without any entry.
    fn without(
        &self,
        away: &HashSet<PlaceBits>,
        at: &[Site],
    ) -> Result<Option<Fields>, EstimateError> {
        let sensors = &self.kriging.sensors;
        let kept: Vec<usize> =
            (0..sensors.len()).filter(|&s| !away.contains(&sensors[s].bits())).collect();
        if kept.is_empty() {
            return Ok(None);
        }
        let sites: Vec<Site> = kept.iter().map(|&s| sensors[s]).collect();
        let pick = |all: &[f64]| kept.iter().map(|&s| all[s]).collect::<Vec<f64>>();
        let fields = self
            .kriging
            .emitters
            .iter()
            .map(|e| EmitterField { values: pick(&e.values), noise: pick(&e.noise), ..e.clone() })
            .map(|e| e.judged_again(&sites).ok_or_else(super::singular))
            .collect::<Result<_, _>>()?;
        let neighbours = self.kriging.neighbours;
        let kriging = EmitterKriging::new(sites, fields, neighbours)?;
        Ok(Some(kriging.all_fields(at, &Progress::silent())?))
    }
}

impl BandField {
    /// With further readings of the band, each of a noise variance of `noise`. Visits to a place that is
    /// known are joined with what it read.
    fn with(
        mut self,
        sites: &[Site],
        rows: &Rows,
        band: usize,
        noise: f64,
    ) -> Result<Self, EstimateError> {
        let field = &mut self.field;
        let mut known: HashMap<PlaceBits, usize> =
            self.sites.iter().enumerate().map(|(i, site)| (site.bits(), i)).collect();
        let before = self.sites.len();
        for (row, site) in sites.iter().enumerate() {
            let value = rows.values[[row, band]];
            if value.is_nan() {
                continue;
            }
            let share = rows.share.as_ref().map_or(1.0, |share| share[[row, band]]);
            let stated = rows.stated.as_ref().map_or(0.0, |stated| stated[[row, band]]);
            let own = share * noise + stated;
            let at = *known.entry(site.bits()).or_insert(self.sites.len());
            if at == self.sites.len() {
                self.sites.push(*site);
                field.values.push(value);
                field.noise.push(own);
                continue;
            }
            // Two readings of one place are one of their weighted mean.
            let (first, second) = (field.noise[at], own);
            let total = first + second;
            let weight = if total > 0.0 { first / total } else { 0.5 };
            field.values[at] += weight * (value - field.values[at]);
            field.noise[at] = if total > 0.0 { first * second / total } else { 0.0 };
        }
        if self.sites.len() == before && rows.values.column(band).iter().all(|v| v.is_nan()) {
            return Ok(self);
        }
        let judged = match self.sites.len() > TOGETHER {
            true => {
                let order = along_curve(&self.sites);
                (0..JUDGED).map(|i| order[i * order.len() / JUDGED]).collect()
            }
            false => (0..self.sites.len()).collect::<Vec<usize>>(),
        };
        let some: Vec<Site> = judged.iter().map(|&i| self.sites[i]).collect();
        let pick = |all: &[f64]| judged.iter().map(|&i| all[i]).collect::<Vec<f64>>();
        let (values, noise) = (pick(&self.field.values), pick(&self.field.noise));
        let part = EmitterField { values, noise, ..self.field.clone() };
        let found = part.judged_again(&some).ok_or_else(super::singular)?;
        let (values, noise) = (self.field.values, self.field.noise);
        Ok(Self { field: EmitterField { values, noise, ..found }, ..self })
    }
}

impl EmitterField {
    /// The same law and places, weighed by other readings.
    fn judged_again(self, sites: &[Site]) -> Option<Self> {
        let correlations = Correlation::exponential(self.shadow.decorrelation_m).matrix(sites);
        let covariates = Covariates::new(&correlations, self.shadow.sill, &self.noise)?;
        let before = self.weights.iter().zip(&self.trends).map(|(w, t)| w.ln() - t.log_evidence);
        let places = EmitterPlaces { at: self.places.clone(), log_prior: before.collect() };
        let losses = self.losses(sites);
        let found = EmitterPosterior::new(covariates, &self.law, &places, &losses, &self.values);
        Some(Self { weights: found.weights, trends: found.trends, ..self })
    }
}

impl Predictor for BandsAlone {
    fn kind(&self) -> &'static str {
        super::KIND
    }

    fn predict(
        &self,
        at: &[Site],
        bands: &[usize],
        progress: &Progress<'_>,
    ) -> Result<Prediction, EstimateError> {
        let shape = (at.len(), bands.len());
        let mut sums = Array2::from_elem(shape, Moments::default());
        let slots: Vec<(usize, usize)> = bands.iter().copied().enumerate().collect();
        let total: usize = self.sides.iter().map(|s| s.parts.len()).sum();
        let mut done = 0;
        for side in &self.sides {
            for part in &side.parts {
                let wanted: Vec<(usize, usize)> = slots
                    .iter()
                    .filter_map(|&(out, band)| {
                        Some((out, part.bands.iter().position(|b| *b == band)?))
                    })
                    .filter(|(out, _)| side.weights[bands[*out]] > 0.0)
                    .collect();
                done += 1;
                progress.report(done, total)?;
                if wanted.is_empty() {
                    continue;
                }
                let emitters: Vec<usize> = wanted.iter().map(|(_, r)| *r).collect();
                let fields = part.kriging.fields(at, &emitters, &progress.quiet())?;
                for (n, (out, _)) in wanted.into_iter().enumerate() {
                    let weight = side.weights[bands[out]];
                    for place in 0..at.len() {
                        let (f, v) = (fields.mean[[n, place]], fields.variance[[n, place]]);
                        sums[[place, out]].add(weight, f, v);
                    }
                }
            }
        }
        let (mean, spread) = finished(&sums);
        let noise = self.noise();
        let noise: Vec<f64> = bands.iter().map(|&b| DB_PER_LN * noise[b].sqrt()).collect();
        let power = mean.mapv(|m| self.link.inverse(m));
        Ok(Prediction::with_spread(power, spread, &noise).with_hearing(self.hearing.as_ref()))
    }

    fn noise_db(&self) -> Option<Vec<f64>> {
        Some(self.noise().into_iter().map(|v| DB_PER_LN * v.sqrt()).collect())
    }

    fn leave_one_out(&self, sensors: &[Site]) -> Result<Option<LeftOut>, EstimateError> {
        let mut rows: HashMap<PlaceBits, Vec<usize>> = HashMap::new();
        for (row, site) in sensors.iter().enumerate() {
            rows.entry(site.bits()).or_default().push(row);
        }
        let mut sums = Array2::from_elem((sensors.len(), self.bands), Moments::default());
        for side in &self.sides {
            for part in &side.parts {
                let Some(left) = part.kriging.leave_one_out()? else { return Ok(None) };
                for (i, site) in part.kriging.sensors.iter().enumerate() {
                    for &row in rows.get(&site.bits()).into_iter().flatten() {
                        for (r, &band) in part.bands.iter().enumerate() {
                            let (f, v) = (left.mean[[r, i]], left.variance[[r, i]]);
                            sums[[row, band]].add(side.weights[band], f, v);
                        }
                    }
                }
            }
        }
        Ok(Some(self.left_out(&sums)))
    }

    fn predict_without(&self, left_out: &[Site]) -> Result<Option<LeftOut>, EstimateError> {
        let away: HashSet<PlaceBits> = left_out.iter().map(|site| site.bits()).collect();
        let mut sums = Array2::from_elem((left_out.len(), self.bands), Moments::default());
        for side in &self.sides {
            let parts: Vec<Option<Fields>> = side
                .parts
                .par_iter()
                .map(|p| p.without(&away, left_out))
                .collect::<Result<_, _>>()?;
            for (part, fields) in side.parts.iter().zip(parts) {
                let Some(fields) = fields else { continue };
                for (r, &band) in part.bands.iter().enumerate() {
                    for place in 0..left_out.len() {
                        let (f, v) = (fields.mean[[r, place]], fields.variance[[r, place]]);
                        sums[[place, band]].add(side.weights[band], f, v);
                    }
                }
            }
        }
        Ok(Some(self.left_out(&sums)))
    }

    fn update(&self, readings: &Readings) -> Result<Option<Box<dyn Predictor>>, EstimateError> {
        Ok(Some(Box::new(self.renewed(readings, true)?)))
    }

    fn relearn(&self, readings: &Readings) -> Result<Option<Box<dyn Predictor>>, EstimateError> {
        match self.hearing {
            Some(_) => Ok(None),
            None => Ok(Some(Box::new(self.renewed(readings, false)?))),
        }
    }

    fn emitters(&self) -> Option<Vec<ModelEmitter>> {
        let sought = self.sought.as_ref()?;
        sought.emitters(self.link, self.bands, &Progress::silent()).ok()
    }

    fn save(&self, archive: &mut Archive) {
        if let Some(sought) = &self.sought {
            sought.save(archive);
        }
        archive.put_number("link", self.link.offset());
        archive.put_pair("hearing", self.hearing.map(|h| (h.floor, h.softness)));
        archive.put_whole("sides", [self.sides.len()]);
        for (s, side) in self.sides.iter().enumerate() {
            archive.put_vector(&format!("side_{s}_weights"), &side.weights);
            archive.put_vector(&format!("side_{s}_noise"), &side.noise);
            archive.put_whole(&format!("side_{s}_parts"), [side.parts.len()]);
            for (p, part) in side.parts.iter().enumerate() {
                archive.put_whole(&format!("side_{s}_bands_{p}"), part.bands.iter().copied());
                archive.put_sites(&format!("side_{s}_sites_{p}"), &part.kriging.sensors);
                for (band, field) in part.bands.iter().zip(&part.kriging.emitters) {
                    save_field(archive, &format!("{s}_{band}"), field);
                }
            }
        }
    }
}
