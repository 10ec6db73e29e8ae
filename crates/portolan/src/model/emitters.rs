//! The emitters of a model.

use ndarray::ArrayView1;

use crate::findings::{EmitterFinding, Exponent, Occupancy};
use crate::site::Site;

/// An emitter that a fit told apart.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ModelEmitter {
    /// Its place.
    pub at: Site,
    /// Standard errors of the place along x and y in metres, where known.
    pub at_se_m: Option<[f64; 2]>,
    /// Its path-loss exponent, where known.
    pub exponent: Option<Exponent>,
    /// Its power in every band.
    pub psd: Vec<f64>,
    /// Its share of the power at the sensors.
    pub power_share: f64,
    /// Where it may stand, with weights of sum 1, where that is known.
    pub places: Vec<(f64, Site)>,
}

/// Places of an emitter that are kept: what is less likely is left out.
const LEAST_SHARE: f64 = 1e-5;

/// Weighted places, each once, the likeliest first.
pub(crate) fn weighted_places(weights: &[f64], places: &[Site]) -> Vec<(f64, Site)> {
    let mut slots = std::collections::HashMap::new();
    let mut found: Vec<(f64, Site)> = Vec::new();
    for (weight, site) in weights.iter().zip(places) {
        let slot = *slots.entry(site.bits()).or_insert_with(|| {
            found.push((0.0, *site));
            found.len() - 1
        });
        found[slot].0 += weight;
    }
    found.retain(|(weight, _)| *weight > LEAST_SHARE);
    let total: f64 = found.iter().map(|(weight, _)| weight).sum();
    found.iter_mut().for_each(|(weight, _)| *weight /= total);
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found
}

impl ModelEmitter {
    /// The band that it transmits in, where that is one only.
    pub fn band(&self) -> Option<usize> {
        let mut on = (0..self.psd.len()).filter(|&band| self.psd[band] > 0.0);
        on.next().filter(|_| on.next().is_none())
    }

    /// The same emitter in some bands, in that order; None where it transmits in none of them.
    pub fn in_bands(&self, bands: &[usize]) -> Option<Self> {
        let psd: Vec<f64> = bands.iter().map(|&band| self.psd[band]).collect();
        psd.iter().any(|p| *p > 0.0).then(|| Self { psd, ..self.clone() })
    }

    /// In the words of a map's findings.
    pub fn finding(&self) -> EmitterFinding {
        EmitterFinding {
            at: self.at,
            at_se_m: self.at_se_m,
            exponent: self.exponent,
            occupancy: Some(Occupancy::of(ArrayView1::from(&self.psd))),
            power_share: Some(self.power_share),
        }
    }
}

/// Shares of the power at the sensors, from SLFs (emitters x sensors) and PSDs (emitters x bands).
pub(crate) fn power_shares(slf: &ndarray::Array2<f64>, psd: &ndarray::Array2<f64>) -> Vec<f64> {
    let each: Vec<f64> =
        slf.outer_iter().zip(psd.outer_iter()).map(|(s, c)| s.sum() * c.sum()).collect();
    let total = each.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    each.into_iter().map(|power| power / total).collect()
}
