//! Devices that read the same power differently. Every device has an offset, the same in all
//! bands, drawn from one normal distribution: a random effect beside the field that kriging knows
//! (`pooled_law`). Offsets are found before readings of one place become one, and taken away.

use std::collections::{BTreeMap, HashMap, HashSet};

use faer::Mat;
use rayon::prelude::*;

use crate::error::{EstimateError, InputError};
use crate::gaussian_process::{BandSample, Correlation, PooledLaw, clustered, pooled_law};
use crate::linalg::Cholesky;
use crate::link::DB_PER_LN;
use crate::progress::Progress;
use crate::site::{PlaceBits, Site};

/// What a device read of a band at a place: a positive power.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceReading {
    /// The place.
    pub site: Site,
    /// Number of the band.
    pub band: usize,
    /// Number of the device.
    pub device: usize,
    /// Linear power.
    pub power: f64,
}

/// Devices whose offsets were removed from the readings.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Devices {
    /// Their names.
    pub names: Vec<String>,
    /// How far each reads above the average reading of the survey.
    pub offset_db: Vec<f64>,
    /// Standard errors of the offsets.
    pub se_db: Vec<f64>,
    /// Standard deviation of the offsets of devices like these.
    pub spread_db: f64,
}

/// Entries of a band and bands that offsets are judged by.
const MOST_ENTRIES: usize = 320;
const MOST_BANDS: usize = 48;
/// Rounds in which law and offsets are found in turn, and steps for the spread of the offsets.
const ROUNDS: usize = 3;
const STEPS: usize = 50;
/// What is usual of offsets, in dB. It counts as one device.
const USUAL_DB: f64 = 3.0;
/// Parts in which places are held out, and the share of the error at them above which offsets are
/// not worth it: where each device has a part of the area to itself, offsets may be the field's.
const FOLDS: usize = 5;
const WORTH: f64 = 0.99;

/// The readings of one band, and which device each is of, where that has an offset.
struct Band {
    sample: BandSample,
    device: Vec<Option<usize>>,
    /// The part in which each is held out.
    fold: Vec<usize>,
}

/// What is known of the offsets.
struct Offsets {
    mean: Vec<f64>,
    covariance: Mat<f64>,
    /// Variance of offsets of such devices.
    variance: f64,
}

impl Devices {
    /// Offsets of the devices of these names. None where fewer than two of them read at several
    /// places, or where readings at held-out places are not predicted better without the offsets.
    /// A device that read at one place only keeps an offset of 0.
    ///
    /// ```
    /// use portolan::{DeviceReading, Devices, Site};
    /// let readings: Vec<DeviceReading> = (0..80)
    ///     .map(|i| {
    ///         let (site, device) = (Site::new(f64::from(i % 9), f64::from(i / 9)), (i % 2) as usize);
    ///         let dbm = -60.0 - 0.5 * site.x_m + [0.0, 6.0][device];
    ///         DeviceReading { site, band: 0, device, power: 10f64.powf(dbm / 10.0) }
    ///     })
    ///     .collect();
    /// let found = Devices::find(vec!["old".into(), "new".into()], &readings)?.unwrap();
    /// assert!((found.offset_db[1] - found.offset_db[0] - 6.0).abs() < 0.5);
    /// # Ok::<(), portolan::EstimateError>(())
    /// ```
    pub fn find(
        names: Vec<String>,
        readings: &[DeviceReading],
    ) -> Result<Option<Self>, EstimateError> {
        let count = names.len();
        let several: Vec<bool> = places(count, readings).iter().map(|n| *n > 1).collect();
        if several.iter().filter(|several| **several).count() < 2 {
            return Ok(None);
        }
        let mut read = vec![0usize; count];
        readings.iter().filter(|r| several[r.device]).for_each(|r| read[r.device] += 1);
        let bands = by_band(readings, &several);
        let usual = (USUAL_DB / DB_PER_LN).powi(2);
        let nothing = Mat::zeros(count, count);
        let mut found = Offsets { mean: vec![0.0; count], covariance: nothing, variance: usual };
        for round in 0..ROUNDS {
            let levelled: Vec<BandSample> =
                bands.iter().map(|band| band.levelled(&found.mean)).collect();
            let Some(law) = pooled_law(&levelled, &Progress::silent())? else { return Ok(None) };
            let failed =
                || EstimateError::Numerical("the devices' covariance cannot be factorised".into());
            found = offsets(&bands, &law, found.variance, &several).ok_or_else(failed)?;
            if round + 1 == ROUNDS && !worth_it(&bands, &law, found.variance, &several) {
                return Ok(None);
            }
        }
        let Offsets { mean: offsets, covariance: posterior, variance } = found;
        // Against the survey's average reading, so that levels as a whole stay what they are.
        let total: usize = read.iter().sum();
        let share: Vec<f64> = read.iter().map(|n| *n as f64 / total as f64).collect();
        let middle: f64 = offsets.iter().zip(&share).map(|(o, s)| o * s).sum();
        let with_all: Vec<f64> =
            (0..count).map(|d| (0..count).map(|e| share[e] * posterior[(d, e)]).sum()).collect();
        let of_middle: f64 = with_all.iter().zip(&share).map(|(v, s)| v * s).sum();
        let error = |d: usize| (posterior[(d, d)] - 2.0 * with_all[d] + of_middle).max(0.0).sqrt();
        let or_nothing = |d: usize, value: f64, nothing: f64| {
            DB_PER_LN * if several[d] { value } else { nothing }
        };
        Ok(Some(Self {
            names,
            offset_db: (0..count).map(|d| or_nothing(d, offsets[d] - middle, 0.0)).collect(),
            se_db: (0..count).map(|d| or_nothing(d, error(d), variance.sqrt())).collect(),
            spread_db: DB_PER_LN * variance.sqrt(),
        }))
    }

    /// Devices whose offsets are known.
    pub fn known(
        names: Vec<String>,
        offset_db: Vec<f64>,
        se_db: Vec<f64>,
        spread_db: f64,
    ) -> Result<Self, InputError> {
        let fine = |values: &[f64], least: f64| values.iter().all(|v| v.is_finite() && *v >= least);
        let whole = offset_db.len() == names.len() && se_db.len() == names.len();
        if !(whole && fine(&offset_db, f64::MIN) && fine(&se_db, 0.0) && fine(&[spread_db], 0.0)) {
            let what = "an offset and a standard error for every device, and one spread";
            return Err(InputError::Request(format!("expected {what}")));
        }
        Ok(Self { names, offset_db, se_db, spread_db })
    }

    /// The number of a device.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }

    /// The factor by which a device's power is multiplied to be what the others would read.
    pub fn factor(&self, device: usize) -> f64 {
        (-self.offset_db[device] / DB_PER_LN).exp()
    }
}

/// Number of the places where each device read.
fn places(devices: usize, readings: &[DeviceReading]) -> Vec<usize> {
    let mut places = vec![HashSet::new(); devices];
    readings.iter().for_each(|r| {
        places[r.device].insert(r.site.bits());
    });
    places.iter().map(HashSet::len).collect()
}

/// Names of the devices that read at one place only: an offset cannot be told from the field there.
pub fn seen_once<'a>(names: &'a [String], readings: &[DeviceReading]) -> Vec<&'a str> {
    let places = places(names.len(), readings);
    let once = names.iter().zip(&places).filter(|(_, places)| **places == 1);
    once.map(|(name, _)| name.as_str()).collect()
}

/// Bands with more than one reading, as many as can be afforded. What one device reads at one place
/// more than once is averaged.
fn by_band(readings: &[DeviceReading], several: &[bool]) -> Vec<Band> {
    type Sums = BTreeMap<(usize, usize), (Site, f64, f64)>;
    let mut bands: BTreeMap<usize, Sums> = BTreeMap::new();
    // Places in order of their first reading: nothing depends on where the survey lies.
    let mut order: HashMap<PlaceBits, usize> = HashMap::new();
    for r in readings {
        let next = order.len();
        let place = *order.entry(r.site.bits()).or_insert(next);
        let entry = bands.entry(r.band).or_default().entry((place, r.device));
        let (_, sum, count) = entry.or_insert((r.site, 0.0, 0.0));
        (*sum, *count) = (*sum + r.power.ln(), *count + 1.0);
    }
    let many: Vec<Sums> = bands.into_values().filter(|band| band.len() > 1).collect();
    let kept = many.len().min(MOST_BANDS);
    let some = (0..kept).map(|i| &many[(2 * i + 1) * many.len() / (2 * kept)]);
    some.map(|sums| {
        let mut band = Band { sample: BandSample::default(), device: Vec::new(), fold: Vec::new() };
        for ((place, device), (site, sum, count)) in sums {
            // A place is held out as a whole, and in all bands.
            let mixed = (*place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            band.fold.push((mixed >> 32) as usize % FOLDS);
            band.sample.sites.push(*site);
            band.sample.values.push(sum / count);
            band.sample.share.push(1.0 / count);
            band.sample.stated.push(0.0);
            band.device.push(several[*device].then_some(*device));
        }
        band.part(&clustered(&band.sample.sites, MOST_ENTRIES))
    })
    .collect()
}

impl Band {
    fn part(&self, kept: &[usize]) -> Self {
        Self {
            sample: self.sample.part(kept),
            device: kept.iter().map(|&i| self.device[i]).collect(),
            fold: kept.iter().map(|&i| self.fold[i]).collect(),
        }
    }

    /// The readings without their devices' offsets.
    fn levelled(&self, offsets: &[f64]) -> BandSample {
        let of = |device: &Option<usize>| device.map_or(0.0, |d| offsets[d]);
        let values = self.sample.values.iter().zip(&self.device);
        BandSample { values: values.map(|(v, d)| v - of(d)).collect(), ..self.sample.clone() }
    }

    fn factor(&self, law: &PooledLaw) -> Option<Cholesky> {
        let noise = self.sample.noise(law.nugget);
        let mut covariance = covariance(law, &self.sample.sites, &self.sample.sites);
        noise.iter().enumerate().for_each(|(i, n)| covariance[(i, i)] += n);
        Cholesky::new(covariance.as_ref())
    }

    /// What the band says about the offsets under a law: information, and pull. None where its
    /// covariance cannot be factorised.
    fn says(&self, law: &PooledLaw, devices: usize) -> Option<(Mat<f64>, Mat<f64>)> {
        let mut sides = Mat::zeros(self.device.len(), devices + 1);
        for (i, device) in self.device.iter().enumerate() {
            if let Some(device) = device {
                sides[(i, *device)] = 1.0;
            }
            sides[(i, devices)] = self.sample.values[i] - law.level;
        }
        self.factor(law)?.half_solve(sides.as_mut());
        let all = sides.transpose() * &sides;
        let block = |columns: std::ops::Range<usize>| {
            Mat::from_fn(devices, columns.len(), |i, j| all[(i, columns.start + j)])
        };
        Some((block(0..devices), block(devices..devices + 1)))
    }

    /// The readings of one part, or all others.
    fn held(&self, fold: usize, inside: bool) -> Self {
        let kept: Vec<usize> =
            (0..self.fold.len()).filter(|&i| (self.fold[i] == fold) == inside).collect();
        self.part(&kept)
    }

    /// Sum of squared errors of the band's readings without offsets, as another part of it predicts
    /// them.
    fn missed(&self, from: &Band, law: &PooledLaw, offsets: &[f64]) -> Option<f64> {
        if self.device.is_empty() || from.device.is_empty() {
            return Some(0.0);
        }
        let factor = from.factor(law)?;
        let values = from.levelled(offsets).values;
        let mut pulls = Mat::from_fn(values.len(), 1, |i, _| values[i] - law.level);
        factor.half_solve(pulls.as_mut());
        factor.other_half_solve(pulls.as_mut());
        let predicted = covariance(law, &self.sample.sites, &from.sample.sites) * pulls;
        let own = self.levelled(offsets).values;
        Some((0..own.len()).map(|i| (law.level + predicted[(i, 0)] - own[i]).powi(2)).sum())
    }
}

/// Covariance of the field at some places with that at others.
fn covariance(law: &PooledLaw, at: &[Site], with: &[Site]) -> Mat<f64> {
    let correlation = Correlation::exponential(law.decorrelation_m);
    Mat::from_fn(at.len(), with.len(), |i, j| {
        law.sill * correlation.between(at[i], with[j]) + law.level_variance
    })
}

/// Offsets under a law, and how much they vary, from a first guess of that.
fn offsets(
    bands: &[Band],
    law: &PooledLaw,
    mut variance: f64,
    several: &[bool],
) -> Option<Offsets> {
    let count = several.len();
    let parts: Vec<_> = bands.par_iter().map(|band| band.says(law, count)).collect();
    let (mut information, mut pull) = (Mat::zeros(count, count), Mat::zeros(count, 1));
    for part in parts {
        let (own, towards) = part?;
        information += own;
        pull += towards;
    }
    let among: Vec<usize> = (0..count).filter(|&d| several[d]).collect();
    let mut found = None;
    for _ in 0..STEPS {
        let mut precision = information.clone();
        (0..count).for_each(|d| precision[(d, d)] += 1.0 / variance);
        let covariance = Cholesky::new(precision.as_ref())?.inverse();
        let solved = &covariance * &pull;
        let mean: Vec<f64> = (0..count).map(|d| solved[(d, 0)]).collect();
        let squares: f64 = among.iter().map(|&d| mean[d].powi(2) + covariance[(d, d)]).sum();
        variance = (squares + (USUAL_DB / DB_PER_LN).powi(2)) / (among.len() + 1) as f64;
        found = Some(Offsets { mean, covariance, variance });
    }
    found
}

/// Whether readings at held-out places are predicted better where offsets, found without them, are
/// taken out.
fn worth_it(bands: &[Band], law: &PooledLaw, variance: f64, several: &[bool]) -> bool {
    let none = vec![0.0; several.len()];
    let errors = |fold: usize| {
        let rest: Vec<Band> = bands.iter().map(|band| band.held(fold, false)).collect();
        let found = offsets(&rest, law, variance, several)?;
        let each: Option<Vec<[f64; 2]>> = bands
            .par_iter()
            .zip(&rest)
            .map(|(band, rest)| {
                let held = band.held(fold, true);
                Some([held.missed(rest, law, &none)?, held.missed(rest, law, &found.mean)?])
            })
            .collect();
        let each = each?;
        Some([0, 1].map(|which| each.iter().map(|e| e[which]).sum::<f64>()))
    };
    let Some(all) = (0..FOLDS).map(errors).collect::<Option<Vec<_>>>() else { return false };
    let sum = |which: usize| all.iter().map(|e| e[which]).sum::<f64>();
    sum(1) < WORTH * WORTH * sum(0)
}

#[cfg(test)]
mod tests;
