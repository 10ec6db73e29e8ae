//! A kriged survey: readings and a covariance, predicted from all sensors or from the nearest.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ndarray::Array2;
use rayon::prelude::*;

use super::super::bands::{BandData, Group};
use super::super::interpolated::COARSE;
use super::super::thin_plate::MOST_TOGETHER;
use crate::error::EstimateError;
use crate::gaussian_process::{
    Covariance, Family, Hearing, Kriged, Level, MOST_SENSORS, Neighbourhood, Neighbours,
    NuggetRole, Regression, Sample, Sensors, Square, Trend, clustered,
};
use crate::link::DB_PER_LN;
use crate::model::{Archive, Prediction, Predictor, damaged};
use crate::progress::Progress;
use crate::site::Site;

/// Nearest sensors that a place looks at, where there are too many to look at all.
const NEIGHBOURS: usize = 128;
/// Nearest sensors that the sills at the corner of a square are judged by, and the side of the square
/// over their reach where all sensors are looked at.
const LOCAL: (usize, f64) = (64, 0.6);
/// Entries of the matrices that bands with gaps of their own may keep together, 256 MB.
const MOST_ENTRIES: usize = 1 << 25;
/// Sills of corners that a group keeps, 16 MB.
const MOST_SILLS: usize = 1 << 21;
/// Sensors that the whole survey's sill counts for beside those of a neighbourhood.
const SHRINKAGE: f64 = 16.0;
/// A band of fewer sensors than this draws the levels of all bands together, of so many bands at
/// least; rounds in which their mean and variance are found.
const FEW: usize = 60;
const LEAST_BANDS: usize = 4;
const LEVEL_ROUNDS: usize = 12;
/// Most places that are predicted at once.
const BLOCK: usize = 256;
/// Blocks that are predicted before any is scattered.
const BATCH: usize = 128;

/// How predictions are made, beside the covariance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::estimate) struct Recipe {
    pub trend: Trend,
    pub role: NuggetRole,
    pub neighbours: Option<usize>,
    pub sill_fixed: bool,
    /// Mean and variance of the bands' levels, where they are drawn together.
    pub levels: Option<(f64, f64)>,
    /// Where some entries were not heard.
    pub hearing: Option<Hearing>,
}

impl Recipe {
    /// Nearest sensors that are looked at; None where all are. Up to `together` sensors are.
    pub fn neighbours_of(&self, sensors: usize, together: usize) -> Option<usize> {
        let usual = (sensors > together).then_some(NEIGHBOURS);
        self.neighbours.or(usual).filter(|n| *n < sensors)
    }
}

/// Up to how many sensors a group of bands looks at all of them. Hundreds of bands with gaps of
/// their own have a matrix each, and they must fit together.
pub(in crate::estimate) fn together(groups: impl Iterator<Item = usize>) -> usize {
    let mut sizes: Vec<usize> = groups.collect();
    sizes.sort_unstable();
    let mut room = MOST_ENTRIES;
    for sensors in sizes {
        let entries = sensors.saturating_mul(sensors);
        if sensors > 2 * NEIGHBOURS && entries > room {
            return sensors - 1;
        }
        room = room.saturating_sub(entries);
    }
    MOST_TOGETHER
}

/// The sill of every band: what its own readings say, with so much freedom, and the pooled one
/// counted as a reading. A single reading says nothing about how much a band varies: the other
/// bands do.
pub(in crate::estimate) fn band_sills(
    found: Option<(Vec<f64>, f64)>,
    pooled: f64,
    bands: usize,
) -> Vec<f64> {
    match found {
        None => vec![pooled; bands],
        Some((sills, freedom)) => {
            sills.iter().map(|own| (freedom * own + pooled) / (freedom + 1.0)).collect()
        }
    }
}

/// A fitted survey.
pub(in crate::estimate) struct KrigedBands {
    recipe: Recipe,
    covariance: Covariance,
    data: BandData,
    groups: Vec<Reach>,
}

/// One group of bands, ready to predict.
struct Reach {
    /// Sill of every band: bands differ in how much they vary.
    sills: Vec<f64>,
    how: How,
    corners: Mutex<Corners>,
}

/// The sill of every band at corners of squares.
type Corners = HashMap<[u64; 2], Arc<Vec<f64>>>;

enum How {
    Whole { regression: Box<Regression>, index: Neighbours },
    Local { index: Neighbours, count: usize },
}

impl How {
    fn index(&self) -> &Neighbours {
        match self {
            How::Whole { index, .. } | How::Local { index, .. } => index,
        }
    }
}

impl KrigedBands {
    pub fn new(
        recipe: Recipe,
        covariance: Covariance,
        data: BandData,
    ) -> Result<Self, EstimateError> {
        let mut fitted = Self { recipe, covariance, data, groups: Vec::new() };
        let together = together(fitted.data.groups.iter().map(|g| g.sites.len()));
        if fitted.recipe.levels.is_none() && fitted.draws_together() {
            fitted.recipe.levels = fitted.common_level()?;
        }
        let reach = fitted.data.groups.par_iter().map(|g| fitted.reach(g, together));
        fitted.groups = reach.collect::<Result<_, _>>()?;
        Ok(fitted)
    }

    /// A band with a handful of readings should not have a level of its own. What reproduces the
    /// readings, or has a trend, is left as it is known.
    fn draws_together(&self) -> bool {
        let few = |g: &Group| g.sites.len() < FEW;
        self.recipe.trend == Trend::Constant
            && self.recipe.role == NuggetRole::Noise
            && self.data.groups.iter().any(few)
    }

    /// Mean and variance of the bands' levels: the likeliest, given what each band says of its own.
    fn common_level(&self) -> Result<Option<(f64, f64)>, EstimateError> {
        let mut known: Vec<(f64, f64)> = Vec::new();
        for group in &self.data.groups {
            let kept = clustered(&group.sites, MOST_SENSORS);
            let (levels, variance) = self.regression(&group.part(&kept))?.levels();
            known.extend(levels.into_iter().map(|level| (level, variance * self.covariance.sill)));
        }
        if known.len() < LEAST_BANDS {
            return Ok(None);
        }
        let (mut mean, mut between) = (0.0, f64::INFINITY);
        for _ in 0..LEVEL_ROUNDS {
            let weight = |own: f64| if between.is_finite() { 1.0 / (between + own) } else { 1.0 };
            let total: f64 = known.iter().map(|(_, own)| weight(*own)).sum();
            mean = known.iter().map(|(level, own)| weight(*own) * level).sum::<f64>() / total;
            // What levels vary by beyond what is not known of each (DerSimonian and Laird 1986, with
            // weights found again until they agree).
            let excess = |(level, own): &(f64, f64)| {
                let w = weight(*own);
                (w * w * ((level - mean).powi(2) - own), w * w)
            };
            let (sum, squares) =
                known.iter().map(excess).fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
            let bands = known.len() as f64;
            between = (bands / (bands - 1.0) * sum / squares).max(1e-3 * self.covariance.sill);
        }
        Ok(Some((mean, between)))
    }

    fn ratio(&self) -> f64 {
        self.covariance.nugget / self.covariance.sill.max(f64::MIN_POSITIVE)
    }

    fn regression(&self, sample: &Sample) -> Result<Regression, EstimateError> {
        Ok(Regression::new(self.sensors(sample)?, sample.values.as_ref()))
    }

    fn sensors(&self, sample: &Sample) -> Result<Sensors, EstimateError> {
        let ratio = self.ratio();
        let sill = self.covariance.sill.max(f64::MIN_POSITIVE);
        let level = self.recipe.levels.map(|(mean, v)| Level { mean, variance: v / sill });
        Sensors::new(
            sample.sites.clone(),
            self.covariance.correlation(),
            (sample.noise(ratio, self.covariance.sill), ratio),
            (self.recipe.trend, level),
            self.recipe.role,
        )
    }

    fn reach(&self, group: &Group, together: usize) -> Result<Reach, EstimateError> {
        let index = Neighbours::new(&group.sites);
        let (how, found) = match self.recipe.neighbours_of(group.sites.len(), together) {
            None => {
                let regression = Box::new(self.regression(&group.sample())?);
                let found = regression.sills().map(|sills| (sills, regression.freedom()));
                (How::Whole { regression, index }, found)
            }
            Some(count) => {
                let kept = clustered(&group.sites, MOST_SENSORS);
                let regression = self.regression(&group.part(&kept))?;
                let found = regression.sills().map(|sills| (sills, regression.freedom()));
                (How::Local { index, count }, found)
            }
        };
        let found = found.filter(|_| !self.recipe.sill_fixed);
        let sills = band_sills(found, self.covariance.sill, group.bands.len());
        Ok(Reach { sills, how, corners: Mutex::default() })
    }

    /// The sill of every band around a place: a field varies more in one place than in another.
    /// What the nearest sensors say, with the whole survey's sill counted as some of them.
    fn local_sills(
        &self,
        group: &Group,
        reach: &Reach,
        at: Site,
    ) -> Result<Vec<f64>, EstimateError> {
        if self.recipe.sill_fixed {
            return Ok(reach.sills.clone());
        }
        let mut near = Vec::new();
        reach.how.index().nearest(&at, LOCAL.0, &mut near);
        let mut sensors: Vec<usize> = near.into_iter().map(|(_, sensor)| sensor).collect();
        sensors.sort_unstable();
        let near = self.regression(&group.part(&sensors))?;
        let Some(own) = near.sills() else { return Ok(reach.sills.clone()) };
        let weight = near.freedom() / (near.freedom() + SHRINKAGE);
        let mixed = own.iter().zip(&reach.sills);
        Ok(mixed.map(|(own, all)| weight * own + (1.0 - weight) * all).collect())
    }

    /// Sills at the corners of squares, each once: maps are asked for part by part, and the same
    /// corners again and again.
    fn corner_sills(
        &self,
        group: &Group,
        reach: &Reach,
        squares: impl Iterator<Item = Square>,
    ) -> Result<Corners, EstimateError> {
        let corners: HashMap<[u64; 2], Site> =
            squares.flat_map(Square::corners).map(|site| (site.bits(), site)).collect();
        let known = || reach.corners.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut sills, mut new) = (Corners::new(), Vec::new());
        {
            let known = known();
            for (bits, site) in corners {
                match known.get(&bits) {
                    Some(found) => drop(sills.insert(bits, found.clone())),
                    None => new.push((bits, site)),
                }
            }
        }
        let found = new.into_par_iter().map(|(bits, site)| {
            Ok::<_, EstimateError>((bits, Arc::new(self.local_sills(group, reach, site)?)))
        });
        let found: Vec<([u64; 2], Arc<Vec<f64>>)> = found.collect::<Result<_, _>>()?;
        let mut known = known();
        if (known.len() + found.len()) * group.bands.len() > MOST_SILLS {
            known.clear();
        }
        known.extend(found.iter().cloned());
        sills.extend(found);
        Ok(sills)
    }

    /// What is said about places that share a neighbourhood, by `say` where the readings are solved
    /// for, by `weigh` where there are fewer places than bands.
    fn near<T>(
        &self,
        group: &Group,
        reach: &Reach,
        near: &Neighbourhood,
        sites: &[Site],
        say: impl Fn(&Regression, &[Site]) -> T,
        weigh: impl Fn(Kriged) -> T,
    ) -> Result<T, EstimateError> {
        if let How::Whole { regression, .. } = &reach.how {
            return Ok(say(regression, sites));
        }
        let sample = group.part(&near.sensors);
        let sensors = self.sensors(&sample)?;
        let values = sample.values.as_ref();
        Ok(match sites.len() < group.bands.len() {
            true => weigh(sensors.predict(values, sites)),
            false => say(&Regression::new(sensors, values), sites),
        })
    }

    /// Power and spread in dB at places that share a neighbourhood, place by place, in the bands of
    /// the group that are asked for.
    fn told(
        &self,
        kriged: &Kriged,
        cut: &Neighbourhood,
        sites: &[Site],
        known: &Corners,
        asked: &[(usize, usize)],
    ) -> Vec<(f64, f64)> {
        let corners = cut.wide.corners().map(|corner| &known[&corner.bits()]);
        let mut told = Vec::with_capacity(sites.len() * asked.len());
        for (i, site) in sites.iter().enumerate() {
            let weights = cut.wide.weights(*site);
            for &(k, _) in asked {
                let mean = kriged.mean[(i, k)];
                let sill: f64 = corners.iter().zip(weights).map(|(s, w)| w * s[k]).sum();
                let sd = (sill * kriged.variance[i]).sqrt();
                // In linear power the spread in dB is the relative one, to first order.
                let relative = if sd > 0.0 { sd / mean.max(sd) } else { 0.0 };
                let spread = DB_PER_LN * if self.data.link.is_some() { sd } else { relative };
                told.push((self.data.power(mean), spread));
            }
        }
        told
    }

    /// The places that are asked, cut into neighbourhoods of a group.
    fn cuts(&self, group: usize, at: &[Site]) -> Vec<Neighbourhood> {
        let cuts = match &self.groups[group].how {
            How::Whole { index, .. } => index.neighbourhoods(at, LOCAL.0, LOCAL.1),
            How::Local { index, count } => index.neighbourhoods(at, *count, COARSE),
        };
        cuts.into_iter().flat_map(|cut| cut.split(BLOCK)).collect()
    }

    pub fn load(archive: &Archive, bands: usize) -> Result<Self, EstimateError> {
        let covariance = Covariance {
            family: archive.choice("covariance", &Family::NAMED)?,
            decorrelation_m: archive.number("decorrelation_m")?,
            sill: archive.number("sill")?,
            nugget: archive.number("nugget")?,
        };
        let sound = |v: f64| v.is_finite() && v >= 0.0;
        if !(sound(covariance.decorrelation_m)
            && sound(covariance.sill)
            && sound(covariance.nugget))
        {
            return Err(damaged("covariance", "has parameters that are not positive").into());
        }
        let recipe = Recipe {
            trend: archive.choice("trend", &Trend::NAMED)?,
            role: archive.choice("nugget_role", &ROLES)?,
            neighbours: archive.whole("neighbours")?.first().copied(),
            sill_fixed: archive.count("sill_fixed")? == 1,
            levels: archive.pair("levels")?,
            hearing: archive.pair("hearing")?.map(|(floor, softness)| Hearing { floor, softness }),
        };
        Self::new(recipe, covariance, BandData::load(archive, bands)?)
    }
}

const ROLES: [(&str, NuggetRole); 2] = [("noise", NuggetRole::Noise), ("field", NuggetRole::Field)];

impl Group {
    /// Some of the sensors, as the regression sees them.
    fn part(&self, sensors: &[usize]) -> Sample {
        Sample {
            sites: sensors.iter().map(|&s| self.sites[s]).collect(),
            values: faer::Mat::from_fn(sensors.len(), self.bands.len(), |i, k| {
                self.values[[sensors[i], k]]
            }),
            share: sensors.iter().map(|&s| self.share[s]).collect(),
            stated: sensors.iter().map(|&s| self.stated[s]).collect(),
        }
    }
}

impl Predictor for KrigedBands {
    fn kind(&self) -> &'static str {
        super::KIND
    }

    fn predict(
        &self,
        at: &[Site],
        bands: &[usize],
        progress: &Progress<'_>,
    ) -> Result<Prediction, EstimateError> {
        let mut power = Array2::zeros((at.len(), bands.len()));
        let mut spread = Array2::zeros((at.len(), bands.len()));
        let asked = self.data.asked(bands);
        for (g, group) in self.data.groups.iter().enumerate() {
            if asked[g].is_empty() {
                continue;
            }
            let reach = &self.groups[g];
            let cuts = self.cuts(g, at);
            let finished = AtomicUsize::new(0);
            let total = self.data.groups.len() * cuts.len();
            let known = self.corner_sills(group, reach, cuts.iter().map(|cut| cut.wide))?;
            // Batch by batch: what waits to be scattered is small beside the whole.
            for batch in cuts.chunks(BATCH) {
                let found: Vec<Vec<(f64, f64)>> = batch
                    .par_iter()
                    .map(|cut| {
                        let n = 1 + finished.fetch_add(1, Ordering::Relaxed);
                        progress.report(g * cuts.len() + n, total)?;
                        let sites = cut.sites(at);
                        let say = Regression::predict;
                        let kriged = self.near(group, reach, cut, &sites, say, |kriged| kriged)?;
                        Ok(self.told(&kriged, cut, &sites, &known, &asked[g]))
                    })
                    .collect::<Result<_, EstimateError>>()?;
                for (cut, found) in batch.iter().zip(&found) {
                    for (&place, found) in cut.places.iter().zip(found.chunks(asked[g].len())) {
                        for (&(_, out), told) in asked[g].iter().zip(found) {
                            (power[[place, out]], spread[[place, out]]) = *told;
                        }
                    }
                }
            }
        }
        let noise = self.noise();
        let noise: Vec<f64> = bands.iter().map(|&band| noise[band]).collect();
        let hearing = self.recipe.hearing.as_ref();
        Ok(Prediction::with_spread(power, spread, &noise).with_hearing(hearing))
    }

    fn power(
        &self,
        at: &[Site],
        bands: &[usize],
        progress: &Progress<'_>,
    ) -> Result<Array2<f64>, EstimateError> {
        let mut power = Array2::zeros((at.len(), bands.len()));
        let asked = self.data.asked(bands);
        for (g, group) in self.data.groups.iter().enumerate() {
            if asked[g].is_empty() {
                continue;
            }
            let reach = &self.groups[g];
            for batch in self.cuts(g, at).chunks(BATCH) {
                progress.check()?;
                let found: Vec<Vec<f64>> = batch
                    .par_iter()
                    .map(|cut| {
                        let (sites, say) = (cut.sites(at), Regression::mean);
                        let mean =
                            self.near(group, reach, cut, &sites, say, |kriged| kriged.mean)?;
                        let places = 0..sites.len();
                        let one = |i: usize| {
                            let mean = &mean;
                            asked[g].iter().map(move |&(k, _)| self.data.power(mean[(i, k)]))
                        };
                        Ok(places.flat_map(one).collect())
                    })
                    .collect::<Result<_, EstimateError>>()?;
                for (cut, found) in batch.iter().zip(&found) {
                    for (&place, found) in cut.places.iter().zip(found.chunks(asked[g].len())) {
                        for (&(_, out), told) in asked[g].iter().zip(found) {
                            power[[place, out]] = *told;
                        }
                    }
                }
            }
        }
        Ok(power)
    }

    fn power_costs_less(&self) -> bool {
        true
    }

    fn noise_db(&self) -> Option<Vec<f64>> {
        Some(self.noise())
    }

    fn leave_one_out(&self, sensors: &[Site]) -> Result<Option<Array2<f64>>, EstimateError> {
        let mut values = Vec::with_capacity(self.groups.len());
        for (group, reach) in self.data.groups.iter().zip(&self.groups) {
            let How::Whole { regression, .. } = &reach.how else { return Ok(None) };
            let left = regression.leave_one_out(group.sample().values.as_ref());
            values.push(Array2::from_shape_fn(group.values.dim(), |(i, k)| left[(i, k)]));
        }
        Ok(Some(self.data.scatter(sensors, &values)))
    }

    fn predict_without(&self, left_out: &[Site]) -> Result<Option<Array2<f64>>, EstimateError> {
        let away: HashSet<[u64; 2]> = left_out.iter().map(|site| site.bits()).collect();
        let bands: usize = self.data.groups.iter().map(|g| g.bands.len()).sum();
        let mut power = Array2::from_elem((left_out.len(), bands), f64::NAN);
        let parts: Vec<Option<Kriged>> = self
            .data
            .groups
            .par_iter()
            .map(|group| {
                let kept: Vec<usize> = (0..group.sites.len())
                    .filter(|&s| !away.contains(&group.sites[s].bits()))
                    .collect();
                match kept.is_empty() {
                    true => Ok(None),
                    false => Ok(Some(self.regression(&group.part(&kept))?.predict(left_out))),
                }
            })
            .collect::<Result<_, EstimateError>>()?;
        for (group, kriged) in self.data.groups.iter().zip(&parts) {
            let Some(kriged) = kriged else { continue };
            for (k, &band) in group.bands.iter().enumerate() {
                for i in 0..left_out.len() {
                    power[[i, band]] = self.data.power(kriged.mean[(i, k)]);
                }
            }
        }
        Ok(Some(power))
    }

    fn save(&self, archive: &mut Archive) {
        archive.put_choice("covariance", &Family::NAMED, self.covariance.family);
        archive.put_choice("trend", &Trend::NAMED, self.recipe.trend);
        archive.put_choice("nugget_role", &ROLES, self.recipe.role);
        archive.put_number("decorrelation_m", self.covariance.decorrelation_m);
        archive.put_number("sill", self.covariance.sill);
        archive.put_number("nugget", self.covariance.nugget);
        archive.put_whole("neighbours", self.recipe.neighbours);
        archive.put_whole("sill_fixed", [usize::from(self.recipe.sill_fixed)]);
        archive.put_pair("levels", self.recipe.levels);
        archive.put_pair("hearing", self.recipe.hearing.map(|h| (h.floor, h.softness)));
        self.data.save(archive);
    }
}

impl KrigedBands {
    /// The nugget of every band in dB; 0 where it is part of the field, or in linear power, where
    /// it has no meaning in dB.
    fn noise(&self) -> Vec<f64> {
        let ratio = match (self.recipe.role, self.data.link) {
            (NuggetRole::Noise, Some(_)) => self.ratio(),
            _ => 0.0,
        };
        let mut noise = vec![0.0; self.data.groups.iter().map(|g| g.bands.len()).sum()];
        for (group, reach) in self.data.groups.iter().zip(&self.groups) {
            for (&band, sill) in group.bands.iter().zip(&reach.sills) {
                noise[band] = DB_PER_LN * (ratio * sill).sqrt();
            }
        }
        noise
    }
}
