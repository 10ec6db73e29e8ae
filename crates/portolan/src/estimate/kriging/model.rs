//! A kriged survey: readings and the covariances that they leave possible, predicted from all sensors
//! or from the nearest.

use std::collections::HashSet;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use ndarray::Array2;
use rayon::prelude::*;

use super::super::bands::{BandData, Group};
use super::super::interpolated::COARSE;
use super::super::mixture::Moments;
use super::super::thin_plate::MOST_TOGETHER;
use super::scales::{Own, Scales, band_noise, band_sills};
use crate::error::EstimateError;
use crate::gaussian_process::{
    Covariance, Family, Hearing, Kriged, Level, MOST_SENSORS, Neighbourhood, Neighbours,
    NuggetRole, Regression, Sample, Sensors, Trend, WeightedCovariance, clustered,
};
use crate::link::DB_PER_LN;
use crate::model::{Archive, LeftOut, Prediction, Predictor, damaged};
use crate::progress::Progress;
use crate::readings::Readings;
use crate::site::{PlaceBits, Site};

/// Nearest sensors that a place looks at, where there are too many to look at all.
const NEIGHBOURS: usize = 128;
/// Entries of the matrices that bands with gaps of their own may keep together, 256 MB.
const MOST_ENTRIES: usize = 1 << 25;
/// Pool band levels when any band has fewer sensors than this, and there are at least so many
/// bands; rounds in which their mean and variance are found.
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

/// A fitted survey.
pub(in crate::estimate) struct KrigedBands {
    recipe: Recipe,
    data: BandData,
    laws: Vec<FittedLaw>,
}

/// One of the covariances that the readings leave possible, with the groups of bands under it.
struct FittedLaw {
    weight: f64,
    covariance: Covariance,
    /// Mean and variance of the bands' levels, where they are drawn together.
    levels: Option<(f64, f64)>,
    /// Up to how many sensors a group looks at all of them.
    together: usize,
    groups: Vec<Reach>,
}

/// One group of bands.
struct Reach {
    /// Sill of every band: bands differ in how much they vary.
    sills: Vec<f64>,
    /// Noise variance of a reading of every band.
    noise: Vec<f64>,
    /// Solved for when a band of the group is first asked for.
    solution: OnceLock<Solution>,
}

enum Solution {
    Whole(Box<Regression>),
    Local {
        index: Neighbours,
        count: usize,
        /// Every band's level over the whole survey, and its variance in units of the sill: far from
        /// the sensors all neighbourhoods must say the same.
        centre: Option<(Vec<f64>, f64)>,
    },
}

impl KrigedBands {
    pub fn new(
        recipe: Recipe,
        covariances: &[WeightedCovariance],
        data: BandData,
    ) -> Result<Self, EstimateError> {
        let laws = covariances
            .iter()
            .map(|law| FittedLaw::new(&recipe, *law, &data))
            .collect::<Result<_, _>>()?;
        Ok(Self { recipe, data, laws })
    }

    /// Solves for some groups of bands. It is done before their places are shared out among threads,
    /// so that none is solved for twice.
    fn solve(
        &self,
        groups: impl Iterator<Item = usize>,
        progress: &Progress<'_>,
    ) -> Result<(), EstimateError> {
        let open: Vec<(&FittedLaw, usize)> = groups
            .flat_map(|g| self.laws.iter().map(move |law| (law, g)))
            .filter(|(law, g)| law.groups[*g].solution.get().is_none())
            .collect();
        open.par_iter().try_for_each(|&(law, g)| {
            progress.check()?;
            let solution = law.reach(&self.recipe, &self.data.groups[g], None)?;
            law.groups[g].solution.get_or_init(|| solution);
            Ok(())
        })
    }

    /// Places that are asked, cut into parts: of a group that looks at all its sensors in blocks, of
    /// others by neighbourhood.
    fn cuts(&self, group: usize, at: &[Site]) -> Vec<Neighbourhood> {
        let cuts = match self.laws[0].groups[group].solution() {
            Solution::Whole(_) => {
                vec![Neighbourhood { sensors: Vec::new(), places: (0..at.len()).collect() }]
            }
            Solution::Local { index, count, .. } => index.neighbourhoods(at, *count, COARSE),
        };
        cuts.into_iter().flat_map(|cut| cut.split(BLOCK)).collect()
    }

    /// Mean and variance at some places, place by place, in the bands of the group that are asked
    /// for: averaged over the laws, which disagree where the readings leave them open.
    fn told(
        &self,
        g: usize,
        cut: &Neighbourhood,
        sites: &[Site],
        asked: &[(usize, usize)],
    ) -> Result<Vec<Moments>, EstimateError> {
        let mut told = vec![Moments::default(); sites.len() * asked.len()];
        let bands: Vec<usize> = asked.iter().map(|(k, _)| *k).collect();
        for law in &self.laws {
            let group = (&self.data.groups[g], &law.groups[g], &bands[..]);
            let kriged = law.near(&self.recipe, group, cut, sites)?;
            let sills = &law.groups[g].sills;
            for (i, row) in told.chunks_mut(asked.len()).enumerate() {
                for (n, (&k, moments)) in bands.iter().zip(row).enumerate() {
                    moments.add(law.weight, kriged.mean[(i, n)], sills[k] * kriged.variance[i]);
                }
            }
        }
        Ok(told)
    }

    /// Power, and the spread of the field in dB.
    fn in_db(&self, moments: &Moments) -> (f64, f64) {
        let (mean, sd) = (moments.mean, moments.variance().sqrt());
        // In linear power the spread in dB is the relative one, to first order.
        let relative = if sd > 0.0 { sd / mean.max(sd) } else { 0.0 };
        let spread = DB_PER_LN * if self.data.link.is_some() { sd } else { relative };
        (self.data.power(mean), spread)
    }

    /// The noise of a reading of every band in dB; 0 where it is part of the field, or in linear
    /// power, where it has no meaning in dB.
    fn noise(&self) -> Vec<f64> {
        let mut variance = vec![0.0; self.data.groups.iter().map(|g| g.bands.len()).sum()];
        if self.recipe.role == NuggetRole::Noise && self.data.link.is_some() {
            for law in &self.laws {
                for (group, reach) in self.data.groups.iter().zip(&law.groups) {
                    for (&band, noise) in group.bands.iter().zip(&reach.noise) {
                        variance[band] += law.weight * noise;
                    }
                }
            }
        }
        variance.into_iter().map(|v| DB_PER_LN * v.sqrt()).collect()
    }

    fn covariances(&self) -> Vec<WeightedCovariance> {
        let of =
            |law: &FittedLaw| WeightedCovariance { weight: law.weight, covariance: law.covariance };
        self.laws.iter().map(of).collect()
    }

    fn scales(&self) -> Scales {
        let shape = (self.laws.len(), self.data.groups.iter().map(|g| g.bands.len()).sum());
        let all = |of: fn(&Reach) -> &Vec<f64>| {
            let mut table = Array2::zeros(shape);
            for (law, mut row) in self.laws.iter().zip(table.rows_mut()) {
                for (group, reach) in self.data.groups.iter().zip(&law.groups) {
                    let values = group.bands.iter().zip(of(reach));
                    values.for_each(|(&band, value)| row[band] = *value);
                }
            }
            table
        };
        let levels = self.laws.iter().map(|law| law.levels).collect();
        Scales { sills: all(|r| &r.sills), noise: all(|r| &r.noise), levels }
    }

    pub fn load(archive: &Archive, bands: usize) -> Result<Self, EstimateError> {
        let family = archive.choice("covariance", &Family::NAMED)?;
        let laws = match archive.has("laws") {
            true => {
                let rows = archive.matrix("laws")?;
                let rows = rows.rows().into_iter().filter(|row| row.len() == 4);
                rows.map(|row| {
                    let [weight, decorrelation_m, sill, nugget] = [row[0], row[1], row[2], row[3]];
                    let covariance = Covariance { family, decorrelation_m, sill, nugget };
                    WeightedCovariance { weight, covariance }
                })
                .collect()
            }
            // Models of version 0.2 have one.
            false => {
                let covariance = Covariance {
                    family,
                    decorrelation_m: archive.number("decorrelation_m")?,
                    sill: archive.number("sill")?,
                    nugget: archive.number("nugget")?,
                };
                vec![WeightedCovariance { weight: 1.0, covariance }]
            }
        };
        let sound = |v: f64| v.is_finite() && v >= 0.0;
        let fine = |law: &WeightedCovariance| {
            let Covariance { decorrelation_m, sill, nugget, .. } = law.covariance;
            [law.weight, decorrelation_m, sill, nugget].into_iter().all(sound)
        };
        let total: f64 = laws.iter().map(|law| law.weight).sum();
        if !laws.iter().all(fine) || (total - 1.0).abs() > 1e-9 || laws.len() > MOST_LAWS {
            return Err(damaged("laws", "has parameters that are not positive").into());
        }
        let recipe = Recipe {
            trend: archive.choice("trend", &Trend::NAMED)?,
            role: archive.choice("nugget_role", &ROLES)?,
            neighbours: archive.whole("neighbours")?.first().copied(),
            sill_fixed: archive.count("sill_fixed")? == 1,
            levels: archive.pair("levels")?,
            hearing: archive.pair("hearing")?.map(|(floor, softness)| Hearing { floor, softness }),
        };
        let data = BandData::load(archive, bands)?;
        // Older models have no scales: they are found again.
        if !archive.has("sills") {
            return Self::new(recipe, &laws, data);
        }
        let scales = Scales::load(archive, laws.len(), bands)?;
        Ok(Self::scaled(recipe, &laws, &scales, data))
    }

    /// Under laws whose scales are known: nothing is solved for.
    fn scaled(
        recipe: Recipe,
        laws: &[WeightedCovariance],
        scales: &Scales,
        data: BandData,
    ) -> Self {
        let together = together(data.groups.iter().map(|g| g.sites.len()));
        let laws = laws.iter().enumerate().map(|(l, law)| {
            let groups = data.groups.iter().map(|group| {
                let of = |all: &Array2<f64>| group.bands.iter().map(|&b| all[[l, b]]).collect();
                Reach {
                    sills: of(&scales.sills),
                    noise: of(&scales.noise),
                    solution: OnceLock::new(),
                }
            });
            let WeightedCovariance { weight, covariance } = *law;
            FittedLaw {
                weight,
                covariance,
                levels: scales.levels[l],
                together,
                groups: groups.collect(),
            }
        });
        Self { recipe, laws: laws.collect(), data }
    }
}

const ROLES: [(&str, NuggetRole); 2] = [("noise", NuggetRole::Noise), ("field", NuggetRole::Field)];
/// More laws than this no model holds.
const MOST_LAWS: usize = 256;

impl FittedLaw {
    fn new(
        recipe: &Recipe,
        WeightedCovariance { weight, covariance }: WeightedCovariance,
        data: &BandData,
    ) -> Result<Self, EstimateError> {
        let together = together(data.groups.iter().map(|g| g.sites.len()));
        let levels = recipe.levels;
        let mut law = Self { weight, covariance, levels, together, groups: Vec::new() };
        if law.levels.is_none() && draws_together(recipe, data) {
            law.levels = law.common_level(recipe, data)?;
        }
        let found: Vec<(Solution, Vec<Own>)> = data
            .groups
            .par_iter()
            .map(|group| {
                let mut own = Vec::new();
                Ok((law.reach(recipe, group, Some(&mut own))?, own))
            })
            .collect::<Result<_, EstimateError>>()?;
        let (solutions, own): (Vec<Solution>, Vec<Vec<Own>>) = found.into_iter().unzip();
        let own: Vec<Own> = own.into_iter().flatten().collect();
        let sills = match recipe.sill_fixed {
            true => vec![(covariance.sill, covariance.sill); own.len()],
            false => band_sills(&own, covariance.sill),
        };
        let mut rest = sills.into_iter();
        for (group, how) in data.groups.iter().zip(solutions) {
            let (sills, of_noise): (Vec<f64>, Vec<f64>) =
                rest.by_ref().take(group.bands.len()).unzip();
            let noise: Vec<f64> = of_noise.iter().map(|sill| law.ratio() * sill).collect();
            let noise = band_noise(&group.scatter, &noise);
            law.groups.push(Reach { sills, noise, solution: how.into() });
        }
        Ok(law)
    }

    /// Mean and variance of the bands' levels: the likeliest, given what each band says of its own.
    fn common_level(
        &self,
        recipe: &Recipe,
        data: &BandData,
    ) -> Result<Option<(f64, f64)>, EstimateError> {
        let mut known: Vec<(f64, f64)> = Vec::new();
        for group in &data.groups {
            let kept = clustered(&group.sites, MOST_SENSORS);
            let all: Vec<usize> = (0..group.bands.len()).collect();
            let (levels, variance) = self.regression(recipe, &group.part(&kept, &all))?.levels();
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
        // Few levels hardly tell how much levels vary: Student's variance for a normal distribution.
        let bands = known.len() as f64;
        let wider = (1.0 + 1.0 / bands) * (bands - 1.0) / (bands - 3.0);
        Ok(Some((mean, between * wider)))
    }

    fn ratio(&self) -> f64 {
        self.covariance.nugget / self.covariance.sill.max(f64::MIN_POSITIVE)
    }

    fn regression(&self, recipe: &Recipe, sample: &Sample) -> Result<Regression, EstimateError> {
        let sill = self.covariance.sill.max(f64::MIN_POSITIVE);
        let level = self.levels.map(|(mean, v)| Level { mean, variance: v / sill });
        Ok(Regression::new(self.sensors(recipe, sample, level)?, sample.values.as_ref()))
    }

    fn sensors(
        &self,
        recipe: &Recipe,
        sample: &Sample,
        level: Option<Level>,
    ) -> Result<Sensors, EstimateError> {
        let ratio = self.ratio();
        Sensors::new(
            sample.sites.clone(),
            self.covariance.correlation(),
            (sample.noise(ratio, self.covariance.sill), ratio),
            (recipe.trend, level),
            recipe.role,
        )
    }

    /// How a group is looked at; `own` takes what its bands say of their sills.
    fn reach(
        &self,
        recipe: &Recipe,
        group: &Group,
        own: Option<&mut Vec<Own>>,
    ) -> Result<Solution, EstimateError> {
        let judge = |regression: &Regression, own: &mut Vec<Own>| {
            *own = Own::of(regression.sills(), regression.freedom(), group.bands.len());
        };
        let Some(count) = recipe.neighbours_of(group.sites.len(), self.together) else {
            let regression = Box::new(self.regression(recipe, &group.sample())?);
            own.into_iter().for_each(|own| judge(&regression, own));
            return Ok(Solution::Whole(regression));
        };
        let index = Neighbours::new(&group.sites);
        let free = recipe.trend == Trend::Constant && self.levels.is_none();
        if !free && own.is_none() {
            return Ok(Solution::Local { index, count, centre: None });
        }
        let kept = clustered(&group.sites, MOST_SENSORS);
        let all: Vec<usize> = (0..group.bands.len()).collect();
        let regression = self.regression(recipe, &group.part(&kept, &all))?;
        own.into_iter().for_each(|own| judge(&regression, own));
        let centre = free.then(|| regression.levels());
        Ok(Solution::Local { index, count, centre })
    }

    /// What is known about places that share a neighbourhood in some bands of a group, in that order.
    /// Where there are fewer places than bands their weights are found instead of solving for the
    /// readings of every band.
    fn near(
        &self,
        recipe: &Recipe,
        (group, reach, bands): (&Group, &Reach, &[usize]),
        near: &Neighbourhood,
        sites: &[Site],
    ) -> Result<Kriged, EstimateError> {
        match reach.solution() {
            Solution::Whole(regression) => Ok(regression.predict_bands(sites, bands)),
            Solution::Local { centre, .. } => {
                let centre = centre_of(centre, bands);
                let local = self.local(recipe, (group, bands), centre.as_ref(), &near.sensors)?;
                let mut kriged = match sites.len() < bands.len() {
                    true => local.sensors.predict(local.values.as_ref(), sites),
                    false => local.regression().predict(sites),
                };
                add_centre(&mut kriged.mean, centre.as_ref());
                Ok(kriged)
            }
        }
    }

    /// The means of `near` alone, which cost less.
    fn mean_near(
        &self,
        recipe: &Recipe,
        (group, reach, bands): (&Group, &Reach, &[usize]),
        near: &Neighbourhood,
        sites: &[Site],
    ) -> Result<faer::Mat<f64>, EstimateError> {
        match reach.solution() {
            Solution::Whole(regression) => Ok(regression.mean(sites, bands)),
            Solution::Local { centre, .. } => {
                let centre = centre_of(centre, bands);
                let local = self.local(recipe, (group, bands), centre.as_ref(), &near.sensors)?;
                let mut mean = match sites.len() < bands.len() {
                    true => local.sensors.predict(local.values.as_ref(), sites).mean,
                    false => {
                        let all: Vec<usize> = (0..bands.len()).collect();
                        local.regression().mean(sites, &all)
                    }
                };
                add_centre(&mut mean, centre.as_ref());
                Ok(mean)
            }
        }
    }

    /// A neighbourhood, with readings minus the survey's level where that is known.
    fn local(
        &self,
        recipe: &Recipe,
        (group, bands): (&Group, &[usize]),
        centre: Option<&(Vec<f64>, f64)>,
        sensors: &[usize],
    ) -> Result<Local, EstimateError> {
        let mut sample = group.part(sensors, bands);
        let level = match centre {
            Some((levels, variance)) => {
                for (k, level) in levels.iter().enumerate() {
                    sample.values.col_mut(k).iter_mut().for_each(|v| *v -= level);
                }
                Some(Level { mean: 0.0, variance: *variance })
            }
            None => {
                let sill = self.covariance.sill.max(f64::MIN_POSITIVE);
                self.levels.map(|(mean, v)| Level { mean, variance: v / sill })
            }
        };
        let sensors = self.sensors(recipe, &sample, level)?;
        Ok(Local { sensors, values: sample.values })
    }
}

impl Reach {
    fn solution(&self) -> &Solution {
        self.solution.get().expect("the group was solved for before it is asked")
    }
}

/// The levels of some bands.
fn centre_of(centre: &Option<(Vec<f64>, f64)>, bands: &[usize]) -> Option<(Vec<f64>, f64)> {
    let (levels, variance) = centre.as_ref()?;
    Some((bands.iter().map(|&k| levels[k]).collect(), *variance))
}

/// Sensors of a neighbourhood and what they read.
struct Local {
    sensors: Sensors,
    values: faer::Mat<f64>,
}

impl Local {
    fn regression(self) -> Regression {
        Regression::new(self.sensors, self.values.as_ref())
    }
}

fn add_centre(mean: &mut faer::Mat<f64>, centre: Option<&(Vec<f64>, f64)>) {
    for (k, level) in centre.iter().flat_map(|(levels, _)| levels.iter().enumerate()) {
        mean.col_mut(k).iter_mut().for_each(|v| *v += level);
    }
}

/// A band with a handful of readings should not have a level of its own. What reproduces the
/// readings, or has a trend, is left as it is known.
fn draws_together(recipe: &Recipe, data: &BandData) -> bool {
    recipe.trend == Trend::Constant
        && recipe.role == NuggetRole::Noise
        && data.groups.iter().any(|g| g.sites.len() < FEW)
}

impl Group {
    /// Some of the sensors and bands, as the regression sees them.
    fn part(&self, sensors: &[usize], bands: &[usize]) -> Sample {
        Sample {
            sites: sensors.iter().map(|&s| self.sites[s]).collect(),
            values: faer::Mat::from_fn(sensors.len(), bands.len(), |i, k| {
                self.values[[sensors[i], bands[k]]]
            }),
            share: sensors.iter().map(|&s| self.share[s]).collect(),
            stated: sensors.iter().map(|&s| self.stated[s]).collect(),
            scatter: self.scatter.clone(),
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
        self.solve((0..asked.len()).filter(|g| !asked[*g].is_empty()), progress)?;
        for (g, asked) in asked.iter().enumerate().filter(|(_, asked)| !asked.is_empty()) {
            let cuts = self.cuts(g, at);
            let finished = AtomicUsize::new(0);
            let total = self.data.groups.len() * cuts.len();
            // Batch by batch: what waits to be scattered is small beside the whole.
            for batch in cuts.chunks(BATCH) {
                let found: Vec<Vec<(f64, f64)>> = batch
                    .par_iter()
                    .map(|cut| {
                        let n = 1 + finished.fetch_add(1, Ordering::Relaxed);
                        progress.report(g * cuts.len() + n, total)?;
                        let told = self.told(g, cut, &cut.sites(at), asked)?;
                        Ok(told.iter().map(|moments| self.in_db(moments)).collect())
                    })
                    .collect::<Result<_, EstimateError>>()?;
                for (cut, found) in batch.iter().zip(&found) {
                    for (&place, found) in cut.places.iter().zip(found.chunks(asked.len())) {
                        for (&(_, out), told) in asked.iter().zip(found) {
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
        self.solve((0..asked.len()).filter(|g| !asked[*g].is_empty()), progress)?;
        for (g, asked) in asked.iter().enumerate().filter(|(_, asked)| !asked.is_empty()) {
            for batch in self.cuts(g, at).chunks(BATCH) {
                progress.check()?;
                let found: Vec<Vec<f64>> = batch
                    .par_iter()
                    .map(|cut| {
                        let sites = cut.sites(at);
                        let mut mean = vec![Moments::default(); sites.len() * asked.len()];
                        let own: Vec<usize> = asked.iter().map(|(k, _)| *k).collect();
                        for law in &self.laws {
                            let group = (&self.data.groups[g], &law.groups[g], &own[..]);
                            let told = law.mean_near(&self.recipe, group, cut, &sites)?;
                            for (i, row) in mean.chunks_mut(asked.len()).enumerate() {
                                for (n, mean) in row.iter_mut().enumerate() {
                                    mean.add(law.weight, told[(i, n)], 0.0);
                                }
                            }
                        }
                        Ok(mean.into_iter().map(|moments| self.data.power(moments.mean)).collect())
                    })
                    .collect::<Result<_, EstimateError>>()?;
                for (cut, found) in batch.iter().zip(&found) {
                    for (&place, found) in cut.places.iter().zip(found.chunks(asked.len())) {
                        for (&(_, out), told) in asked.iter().zip(found) {
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

    fn leave_one_out(&self, sensors: &[Site]) -> Result<Option<LeftOut>, EstimateError> {
        self.solve(0..self.data.groups.len(), &Progress::silent())?;
        let shapes = self.data.groups.iter().map(|group| group.values.dim());
        let mut moments: Vec<Array2<Moments>> =
            shapes.map(|shape| Array2::from_elem(shape, Moments::default())).collect();
        for law in &self.laws {
            let groups = self.data.groups.iter().zip(&law.groups).zip(&mut moments);
            for ((group, reach), moments) in groups {
                let Solution::Whole(regression) = reach.solution() else { return Ok(None) };
                let left = regression.leave_one_out(group.sample().values.as_ref());
                for ((i, k), moments) in moments.indexed_iter_mut() {
                    let variance = reach.sills[k] * left.variance[i];
                    moments.add(law.weight, left.mean[(i, k)], variance);
                }
            }
        }
        let of = |part: &dyn Fn(&Moments) -> f64| {
            let values: Vec<Array2<f64>> = moments.iter().map(|m| m.map(part)).collect();
            self.data.at_rows(sensors, &values)
        };
        let power = of(&|m| self.in_db(m).0);
        Ok(Some(LeftOut::with_noise(power, of(&|m| self.in_db(m).1), &self.noise())))
    }

    fn predict_without(&self, left_out: &[Site]) -> Result<Option<LeftOut>, EstimateError> {
        let away: HashSet<PlaceBits> = left_out.iter().map(|site| site.bits()).collect();
        let bands: usize = self.data.groups.iter().map(|g| g.bands.len()).sum();
        let mut power = Array2::from_elem((left_out.len(), bands), f64::NAN);
        let mut spread = power.clone();
        let groups = self.data.groups.par_iter().enumerate();
        let parts: Vec<Vec<Moments>> = groups
            .map(|(g, group)| {
                let kept: Vec<usize> = (0..group.sites.len())
                    .filter(|&s| !away.contains(&group.sites[s].bits()))
                    .collect();
                if kept.is_empty() {
                    return Ok(Vec::new());
                }
                let all: Vec<usize> = (0..group.bands.len()).collect();
                let sample = group.part(&kept, &all);
                let mut moments = vec![Moments::default(); left_out.len() * group.bands.len()];
                for law in &self.laws {
                    let kriged = law.regression(&self.recipe, &sample)?.predict(left_out);
                    let sills = &law.groups[g].sills;
                    for (at, moments) in moments.iter_mut().enumerate() {
                        let (i, k) = (at / group.bands.len(), at % group.bands.len());
                        moments.add(law.weight, kriged.mean[(i, k)], sills[k] * kriged.variance[i]);
                    }
                }
                Ok(moments)
            })
            .collect::<Result<_, EstimateError>>()?;
        for (group, moments) in self.data.groups.iter().zip(&parts) {
            for (at, moments) in moments.iter().enumerate() {
                let (i, k) = (at / group.bands.len(), at % group.bands.len());
                (power[[i, group.bands[k]]], spread[[i, group.bands[k]]]) = self.in_db(moments);
            }
        }
        Ok(Some(LeftOut::with_noise(power, spread, &self.noise())))
    }

    fn update(&self, readings: &Readings) -> Result<Option<Box<dyn Predictor>>, EstimateError> {
        let data = self.data.with(readings, self.recipe.hearing.is_some())?;
        Ok(Some(Box::new(Self::scaled(self.recipe, &self.covariances(), &self.scales(), data))))
    }

    fn relearn(&self, readings: &Readings) -> Result<Option<Box<dyn Predictor>>, EstimateError> {
        if self.recipe.hearing.is_some() {
            return Ok(None);
        }
        let data = self.data.instead(readings)?;
        Ok(Some(Box::new(Self::scaled(self.recipe, &self.covariances(), &self.scales(), data))))
    }

    fn save(&self, archive: &mut Archive) {
        archive.put_choice("covariance", &Family::NAMED, self.laws[0].covariance.family);
        archive.put_choice("trend", &Trend::NAMED, self.recipe.trend);
        archive.put_choice("nugget_role", &ROLES, self.recipe.role);
        let laws = Array2::from_shape_fn((self.laws.len(), 4), |(i, j)| {
            let FittedLaw { weight, covariance, .. } = &self.laws[i];
            let Covariance { decorrelation_m, sill, nugget, .. } = *covariance;
            [*weight, decorrelation_m, sill, nugget][j]
        });
        archive.put_matrix("laws", &laws);
        self.scales().save(archive);
        archive.put_whole("neighbours", self.recipe.neighbours);
        archive.put_whole("sill_fixed", [usize::from(self.recipe.sill_fixed)]);
        archive.put_pair("levels", self.recipe.levels);
        archive.put_pair("hearing", self.recipe.hearing.map(|h| (h.floor, h.softness)));
        self.data.save(archive);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::{Context, Kriging, Method};
    use crate::readings::{Readings, Values};
    use crate::scale::Scale;

    /// Six bands, of which the first two miss the same sensors and every other its own.
    fn fitted(kriging: &Kriging, sensors: usize) -> Archive {
        let sites: Vec<Site> =
            (0..sensors).map(|i| Site::new((i * i % 31) as f64, (i * 7 % 19) as f64)).collect();
        let power = Array2::from_shape_fn((sensors, 6), |(i, k)| match i % 11 == k.max(1) {
            true => f64::NAN,
            false => 10f64.powf(-6.0 - ((i * (k + 3)) % 13) as f64 / 10.0),
        });
        let readings = Readings::new(sites, Values::Power(power), Scale::Absolute).unwrap();
        let model = kriging.fit(&readings, &Context::default(), &Progress::silent()).unwrap();
        let mut archive = Archive::default();
        model.predictor().save(&mut archive);
        archive
    }

    fn places() -> Vec<Site> {
        (0..40).map(|i| Site::new(f64::from(i) * 0.8, f64::from(i * i % 17))).collect()
    }

    #[test]
    fn a_model_that_is_read_solves_for_the_bands_that_are_asked_for() {
        for neighbours in [None, Some(9)] {
            let archive = fitted(&Kriging { neighbours, ..Kriging::default() }, 60);
            let (model, silent) = (KrigedBands::load(&archive, 6).unwrap(), Progress::silent());
            let solved = || -> Vec<Vec<usize>> {
                let groups = model.data.groups.iter().enumerate();
                let known = groups.filter(|(g, _)| {
                    model.laws.iter().all(|law| law.groups[*g].solution.get().is_some())
                });
                known.map(|(_, group)| group.bands.clone()).collect()
            };
            assert_eq!(model.data.groups.len(), 5);
            assert!(solved().is_empty());
            let one = model.predict(&places(), &[1], &silent).unwrap();
            assert_eq!(solved(), [[0, 1]]);
            let all = model.predict(&places(), &[0, 1, 2, 3, 4, 5], &silent).unwrap();
            assert_eq!(solved().len(), 5);
            for place in 0..40 {
                let ratio = one.power[[place, 0]] / all.power[[place, 1]];
                assert!((10.0 * ratio.log10()).abs() < 1e-9, "{ratio}");
            }
        }
    }

    #[test]
    fn scales_that_are_read_are_those_of_models_without_them() {
        for kriging in [Kriging::default(), Kriging { neighbours: Some(9), ..Kriging::default() }] {
            // Few sensors: the levels of all bands are drawn together.
            for sensors in [60, 200] {
                let archive = fitted(&kriging, sensors);
                let old = Archive::new(archive.entries().filter_map(|(name, stored)| {
                    let known = ["sills", "noise", "law_levels"].contains(&name);
                    (!known).then(|| (name.to_string(), stored.clone()))
                }));
                assert!(archive.has("sills") && !old.has("sills"));
                let [new, old] = [archive, old].map(|a| KrigedBands::load(&a, 6).unwrap());
                let told = |model: &KrigedBands| {
                    model.predict(&places(), &[4, 0], &Progress::silent()).unwrap()
                };
                assert_eq!(told(&new), told(&old));
            }
        }
    }

    #[test]
    fn scales_that_do_not_fit_are_refused() {
        let archive = fitted(&Kriging::default(), 60);
        for (name, wrong) in [("sills", -1.0), ("noise", f64::NAN), ("law_levels", f64::INFINITY)] {
            let mut damaged = archive.clone();
            let mut values = archive.matrix(name).unwrap();
            values[[0, 0]] = wrong;
            damaged.put_matrix(name, &values);
            assert!(KrigedBands::load(&damaged, 6).is_err(), "{name}");
            damaged.put_matrix(name, &Array2::zeros((1, 1)));
            assert!(KrigedBands::load(&damaged, 6).is_err(), "{name}");
        }
    }
}
