//! Devices that read the same power differently. Every device has an offset, the same in all
//! bands, drawn from one normal distribution: a random effect beside the field that kriging knows
//! (`pooled_law`). Offsets are found before readings of one place become one, and taken away.

use std::collections::{BTreeMap, HashSet};

use faer::Mat;
use rayon::prelude::*;

use crate::error::{EstimateError, InputError};
use crate::gaussian_process::{BandSample, Correlation, PooledLaw, clustered, pooled_law};
use crate::linalg::Cholesky;
use crate::link::DB_PER_LN;
use crate::progress::Progress;
use crate::site::Site;

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

/// Devices whose readings were brought to one level.
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

/// The readings of one band, and which device each is of.
struct Band {
    sample: BandSample,
    device: Vec<usize>,
}

impl Devices {
    /// Offsets of the devices of these names; None where fewer than two of them read anything.
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
        let mut read = vec![0usize; count];
        readings.iter().for_each(|r| read[r.device] += 1);
        if read.iter().filter(|n| **n > 0).count() < 2 {
            return Ok(None);
        }
        let bands = by_band(readings);
        let mut offsets = vec![0.0; count];
        let mut variance = (USUAL_DB / DB_PER_LN).powi(2);
        let mut posterior = Mat::zeros(count, count);
        for _ in 0..ROUNDS {
            let levelled: Vec<BandSample> =
                bands.iter().map(|band| band.levelled(&offsets)).collect();
            let Some(law) = pooled_law(&levelled, &Progress::silent())? else { return Ok(None) };
            let failed =
                || EstimateError::Numerical("the devices' covariance cannot be factorised".into());
            let (information, pull) = gathered(&bands, &law, count).ok_or_else(failed)?;
            for _ in 0..STEPS {
                let mut precision = information.clone();
                (0..count).for_each(|d| precision[(d, d)] += 1.0 / variance);
                posterior = Cholesky::new(precision.as_ref()).ok_or_else(failed)?.inverse();
                let mean = &posterior * &pull;
                offsets = (0..count).map(|d| mean[(d, 0)]).collect();
                let squares: f64 = (0..count).map(|d| offsets[d].powi(2) + posterior[(d, d)]).sum();
                variance = (squares + (USUAL_DB / DB_PER_LN).powi(2)) / (count + 1) as f64;
            }
        }
        // Against the survey's average reading, so that levels as a whole stay what they are.
        let total: usize = read.iter().sum();
        let share: Vec<f64> = read.iter().map(|n| *n as f64 / total as f64).collect();
        let middle: f64 = offsets.iter().zip(&share).map(|(o, s)| o * s).sum();
        let with_all: Vec<f64> =
            (0..count).map(|d| (0..count).map(|e| share[e] * posterior[(d, e)]).sum()).collect();
        let of_middle: f64 = with_all.iter().zip(&share).map(|(v, s)| v * s).sum();
        let error = |d: usize| (posterior[(d, d)] - 2.0 * with_all[d] + of_middle).max(0.0).sqrt();
        Ok(Some(Self {
            names,
            offset_db: offsets.iter().map(|o| DB_PER_LN * (o - middle)).collect(),
            se_db: (0..count).map(|d| DB_PER_LN * error(d)).collect(),
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

/// Names of the devices that read at one place only: an offset cannot be told from the field there.
pub fn seen_once<'a>(names: &'a [String], readings: &[DeviceReading]) -> Vec<&'a str> {
    let mut places = vec![HashSet::new(); names.len()];
    readings.iter().for_each(|r| {
        places[r.device].insert(r.site.bits());
    });
    let once = names.iter().zip(&places).filter(|(_, places)| places.len() == 1);
    once.map(|(name, _)| name.as_str()).collect()
}

/// Bands with more than one reading, as many as can be afforded. What one device reads at one place
/// more than once is averaged.
fn by_band(readings: &[DeviceReading]) -> Vec<Band> {
    type Sums = BTreeMap<([u64; 2], usize), (Site, f64, f64)>;
    let mut bands: BTreeMap<usize, Sums> = BTreeMap::new();
    for r in readings {
        let entry = bands.entry(r.band).or_default().entry((r.site.bits(), r.device));
        let (_, sum, count) = entry.or_insert((r.site, 0.0, 0.0));
        (*sum, *count) = (*sum + r.power.ln(), *count + 1.0);
    }
    let several: Vec<Sums> = bands.into_values().filter(|band| band.len() > 1).collect();
    let kept = several.len().min(MOST_BANDS);
    let some = (0..kept).map(|i| &several[(2 * i + 1) * several.len() / (2 * kept)]);
    some.map(|sums| {
        let mut band = Band { sample: BandSample::default(), device: Vec::new() };
        for ((_, device), (site, sum, count)) in sums {
            band.sample.sites.push(*site);
            band.sample.values.push(sum / count);
            band.sample.share.push(1.0 / count);
            band.sample.stated.push(0.0);
            band.device.push(*device);
        }
        let near = clustered(&band.sample.sites, MOST_ENTRIES);
        Band {
            sample: band.sample.part(&near),
            device: near.iter().map(|&i| band.device[i]).collect(),
        }
    })
    .collect()
}

impl Band {
    /// The readings without their devices' offsets.
    fn levelled(&self, offsets: &[f64]) -> BandSample {
        let values = self.sample.values.iter().zip(&self.device);
        BandSample { values: values.map(|(v, d)| v - offsets[*d]).collect(), ..self.sample.clone() }
    }

    /// What the band says about the offsets under a law: information, and pull. None where its
    /// covariance cannot be factorised.
    fn says(&self, law: &PooledLaw, devices: usize) -> Option<(Mat<f64>, Mat<f64>)> {
        let count = self.device.len();
        let noise = self.sample.noise(law.nugget);
        let mut covariance =
            Correlation::exponential(law.decorrelation_m).matrix(&self.sample.sites);
        for j in 0..count {
            for i in j..count {
                covariance[(i, j)] = law.sill * covariance[(i, j)] + law.level_variance;
            }
            covariance[(j, j)] += noise[j];
        }
        let factor = Cholesky::new(covariance.as_ref())?;
        let mut sides = Mat::zeros(count, devices + 1);
        for (i, device) in self.device.iter().enumerate() {
            sides[(i, *device)] = 1.0;
            sides[(i, devices)] = self.sample.values[i] - law.level;
        }
        factor.half_solve(sides.as_mut());
        let all = sides.transpose() * &sides;
        let block = |columns: std::ops::Range<usize>| {
            Mat::from_fn(devices, columns.len(), |i, j| all[(i, columns.start + j)])
        };
        Some((block(0..devices), block(devices..devices + 1)))
    }
}

/// What all bands say.
fn gathered(bands: &[Band], law: &PooledLaw, devices: usize) -> Option<(Mat<f64>, Mat<f64>)> {
    let parts: Vec<_> = bands.par_iter().map(|band| band.says(law, devices)).collect();
    let (mut information, mut pull) = (Mat::zeros(devices, devices), Mat::zeros(devices, 1));
    for part in parts {
        let (own, towards) = part?;
        information += own;
        pull += towards;
    }
    Some((information, pull))
}

#[cfg(test)]
mod tests;
