//! What a map says about its emitters: where they stand, how fast they fade, which bands they
//! occupy, and how much of the power is theirs.

use ndarray::ArrayView1;

use crate::map::RadioMap;
use crate::site::Site;

/// A band that is this far below an emitter's strongest one is no longer occupied by it.
pub const OCCUPIED_DB: f64 = -20.0;

/// A path-loss exponent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exponent {
    /// Power falls as distance to minus this.
    pub value: f64,
    /// Standard error; NaN where unknown.
    pub se: f64,
}

/// The bands that an emitter occupies: those within 20 dB of its strongest.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Occupancy {
    /// First and last band of every stretch, in order.
    pub ranges: Vec<[usize; 2]>,
    /// Share of all bands.
    pub share: f64,
}

impl Occupancy {
    /// From a PSD, one power per band. Without any power no band is occupied.
    pub fn of(psd: ArrayView1<'_, f64>) -> Self {
        let peak = psd.iter().copied().fold(0.0, f64::max);
        let least = peak * 10f64.powf(0.1 * OCCUPIED_DB);
        let mut ranges: Vec<[usize; 2]> = Vec::new();
        let mut bands = 0usize;
        for (band, _) in psd.iter().enumerate().filter(|(_, c)| peak > 0.0 && **c >= least) {
            bands += 1;
            match ranges.last_mut() {
                Some([_, last]) if *last + 1 == band => *last = band,
                _ => ranges.push([band, band]),
            }
        }
        Self { ranges, share: bands as f64 / psd.len().max(1) as f64 }
    }
}

/// One emitter of a map; None is what the map does not say.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EmitterFinding {
    /// Its place, which may lie off the map.
    pub at: Site,
    /// Standard errors of the place along x and y in metres.
    pub at_se_m: Option<[f64; 2]>,
    /// Its path-loss exponent.
    pub exponent: Option<Exponent>,
    /// The bands that it occupies.
    pub occupancy: Option<Occupancy>,
    /// Share of the power over all cells and bands.
    pub power_share: Option<f64>,
}

/// An emitter with less than this share of the power is taken for noise ...
const NOISE_SHARE: f64 = 1e-3;
/// ... if its place is unknown by more than this share of the map's longer side.
const NOISE_SPREAD: f64 = 0.5;

impl EmitterFinding {
    /// Whether this is rather the floor of the noise than a transmitter: next to no power, from
    /// nowhere in particular.
    pub fn is_noise(&self, longest_side_m: f64) -> bool {
        let faint = self.power_share.is_some_and(|share| share < NOISE_SHARE);
        let lost = |[x, y]: [f64; 2]| x.hypot(y) > NOISE_SPREAD * longest_side_m;
        faint && self.at_se_m.is_some_and(lost)
    }
}

impl RadioMap {
    /// Every emitter whose place is known, in the order of the factors.
    pub fn findings(&self) -> Vec<EmitterFinding> {
        let places = self.emitters();
        let factors = self.factors().filter(|f| f.psd.nrows() == places.len());
        let powers: Option<Vec<f64>> = factors.map(|factors| {
            let known = |values: &mut dyn Iterator<Item = &f64>| -> f64 {
                values.filter(|v| !v.is_nan()).sum()
            };
            let both = factors.slf.outer_iter().zip(factors.psd.outer_iter());
            both.map(|(slf, psd)| known(&mut slf.iter()) * known(&mut psd.iter())).collect()
        });
        let total: f64 = powers.iter().flatten().sum();
        let finding = |(r, &at): (usize, &Site)| EmitterFinding {
            at,
            at_se_m: self.emitter_se_m().get(r).copied(),
            exponent: self.exponents().get(r).copied(),
            occupancy: factors.map(|f| Occupancy::of(f.psd.row(r))),
            power_share: powers.as_ref().filter(|_| total > 0.0).map(|p| p[r] / total),
        };
        places.iter().enumerate().map(finding).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Grid;
    use crate::map::Factors;
    use crate::scale::Scale;
    use ndarray::{Array3, array};

    #[test]
    fn bands_within_20_db_of_the_peak_are_occupied() {
        let found = Occupancy::of(array![0.1, 10.0, 0.11, 0.0, 0.099, 0.5].view());
        assert_eq!(found.ranges, [[0, 2], [5, 5]]);
        assert_eq!(found.share, 4.0 / 6.0);
        assert!(Occupancy::of(array![0.0, 0.0].view()).ranges.is_empty());
    }

    #[test]
    fn findings_say_what_the_map_knows_and_no_more() {
        let grid = Grid::new(2, 2, 1.0).unwrap();
        let slf = Array3::from_shape_fn((2, 2, 2), |(r, ..)| if r == 0 { 3.0 } else { 1.0 });
        let psd = array![[1.0, 0.0], [0.0, 1.0]];
        let map = RadioMap::factored(grid, Factors { slf, psd }, Scale::paper()).unwrap();
        assert!(map.findings().is_empty());
        let (here, there) = (Site::new(0.0, 1.5), Site::new(1.0, -2.0));
        let map = map.with_emitters(vec![here, there]);
        let plain = map.findings();
        assert_eq!((plain[1].at, plain[1].at_se_m, plain[1].exponent), (there, None, None));
        assert_eq!(plain[0].power_share, Some(0.75));
        assert_eq!(plain[1].occupancy.as_ref().unwrap().ranges, [[1, 1]]);
        let exponents = vec![Exponent { value: 2.0, se: 0.1 }; 2];
        let full = map.clone().with_emitter_se_m(vec![[0.5, 0.25]; 2]).unwrap();
        let full = full.with_exponents(exponents).unwrap().findings();
        assert_eq!(full[0].at_se_m, Some([0.5, 0.25]));
        assert_eq!(full[1].exponent.unwrap().value, 2.0);
        assert!(map.with_emitter_se_m(vec![[0.5, 0.25]]).is_err());
        let dense = RadioMap::dense(grid, Array3::ones((2, 2, 1)), Scale::paper()).unwrap();
        let dense = dense.with_emitters(vec![here]).findings();
        assert_eq!((&dense[0].occupancy, dense[0].power_share), (&None, None));
    }

    #[test]
    fn a_noise_floor_is_no_transmitter() {
        let at = Site::new(5.0, 5.0);
        let found = |share: f64, se: f64| EmitterFinding {
            at,
            at_se_m: Some([se, se]),
            exponent: None,
            occupancy: None,
            power_share: Some(share),
        };
        assert!(found(1e-5, 1700.0).is_noise(64.0));
        assert!(!found(1e-5, 2.0).is_noise(64.0));
        assert!(!found(0.2, 1700.0).is_noise(64.0));
    }
}
