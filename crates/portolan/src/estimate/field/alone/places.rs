//! Where the transmitter of a band may stand: a lattice over the survey and well beyond it.

use super::super::law::EmitterPlaces;
use crate::site::{Region, Site};

/// The lattice reaches beyond the survey by this share of its longer side.
const MARGIN: f64 = 0.3;

/// About so many places, evenly spread, with their prior: even over the survey, falling off outside.
/// And their spacing in metres.
pub(super) fn lattice(region: &Region, count: usize) -> (EmitterPlaces, f64) {
    let longest = region.width_m().max(region.height_m()).max(f64::MIN_POSITIVE);
    let margin = MARGIN * longest;
    let (wide, high) = (region.width_m() + 2.0 * margin, region.height_m() + 2.0 * margin);
    let spacing = (wide * high / count as f64).sqrt();
    let along = |length: f64| ((length / spacing).round() as usize).max(1);
    let (across, up) = (along(wide), along(high));
    let mut places = EmitterPlaces::default();
    for i in 0..across * up {
        let (x, y) = (i / up, i % up);
        let step = |low: f64, length: f64, at: usize, count: usize| {
            low - margin + length * (at as f64 + 0.5) / count as f64
        };
        let at =
            Site::new(step(region.low.x_m, wide, x, across), step(region.low.y_m, high, y, up));
        let out = region.outside_m(at);
        places.at.push(at);
        places.log_prior.push(if out > 0.0 { -1.0 - out / (0.15 * longest) } else { 0.0 });
    }
    let sum: f64 = places.log_prior.iter().map(|p| p.exp()).sum();
    places.log_prior.iter_mut().for_each(|p| *p -= sum.ln());
    (places, spacing)
}
