//! Where the transmitters of bands stand, or may stand.

use super::design::Source;
use crate::between::Between;
use crate::estimate::Context;
use crate::readings::Readings;
use crate::site::Site;

/// Places at each height where a transmitter that is not known may stand, about; and how far beyond the
/// survey, in its longer sides.
const PLACES: f64 = 220.0;
const MARGIN: f64 = 0.3;
/// Heights that are tried at most; of more, some from the lowest to the highest.
const MOST_HEIGHTS: usize = 8;

/// Where the transmitter of every band stands, or may stand.
pub(super) fn sources(readings: &Readings, context: &Context<'_>) -> Vec<Vec<Source>> {
    let floor_height_m = context.obstacles.iter().find_map(|own| Between::floor_height_m(&**own));
    let free = candidates(readings, floor_height_m);
    let of = |band: usize| {
        let own = context.transmitters.iter().filter(|t| t.band.is_none_or(|b| b == band));
        let at: Vec<Site> = own.map(|t| t.at).collect();
        match at.is_empty() {
            true => free.clone(),
            false => vec![Source { at, log_prior: 0.0 }],
        }
    };
    (0..readings.bands()).map(of).collect()
}

/// Every height that was surveyed, and one above and below.
fn heights(sites: &[Site], floor_height_m: Option<f64>) -> Vec<f64> {
    let mut heights: Vec<f64> = sites.iter().map(|site| site.z_m).collect();
    heights.sort_by(f64::total_cmp);
    heights.dedup_by(|b, a| (*b - *a).abs() < 1.0);
    let step = match heights[..] {
        [first, second, ..] => Some(second - first),
        _ => floor_height_m,
    };
    if let (Some(step), Some(&low), Some(&high)) = (step, heights.first(), heights.last()) {
        heights.insert(0, low - step);
        heights.push(high + step);
    }
    let last = heights.len().saturating_sub(1);
    match heights.len() > MOST_HEIGHTS {
        true => (0..MOST_HEIGHTS).map(|i| heights[i * last / (MOST_HEIGHTS - 1)]).collect(),
        false => heights,
    }
}

/// Places over the survey and beyond, on every height.
fn candidates(readings: &Readings, floor_height_m: Option<f64>) -> Vec<Source> {
    let region = readings.region();
    let longest = region.width_m().max(region.height_m()).max(f64::MIN_POSITIVE);
    let margin = MARGIN * longest;
    let (wide, high) = (region.width_m() + 2.0 * margin, region.height_m() + 2.0 * margin);
    let spacing = (wide * high / PLACES).sqrt();
    let count = |length: f64| ((length / spacing).round() as usize).max(1);
    let (across, up) = (count(wide), count(high));
    let mut found = Vec::new();
    for z_m in heights(readings.sites(), floor_height_m) {
        for i in 0..across * up {
            let (x, y) = (i / up, i % up);
            let step = |low: f64, length: f64, at: usize, count: usize| {
                low - margin + length * (at as f64 + 0.5) / count as f64
            };
            let at =
                Site::new(step(region.low.x_m, wide, x, across), step(region.low.y_m, high, y, up));
            let out = region.outside_m(at);
            let log_prior = if out > 0.0 { -1.0 - out / (0.15 * longest) } else { 0.0 };
            found.push(Source::one(at.at_height(z_m), log_prior));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surveyed(heights: &[f64]) -> Vec<Site> {
        heights.iter().map(|z_m| Site::new(0.0, 0.0).at_height(*z_m)).collect()
    }

    #[test]
    fn one_level_is_sought_a_floor_above_and_below() {
        assert_eq!(heights(&surveyed(&[1.0, 1.2]), None), [1.0]);
        assert_eq!(heights(&surveyed(&[1.0, 1.2]), Some(3.0)), [-2.0, 1.0, 4.0]);
    }

    #[test]
    fn many_levels_are_sought_from_the_lowest_to_the_highest() {
        let floors: Vec<f64> = (0..20).map(|floor| 3.0 * f64::from(floor) + 1.0).collect();
        let found = heights(&surveyed(&floors), Some(3.0));
        assert_eq!(found.len(), MOST_HEIGHTS);
        assert_eq!((found[0], found[MOST_HEIGHTS - 1]), (-2.0, 61.0));
        let steps = found.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(steps.clone().fold(0.0, f64::max) <= 9.0 && steps.fold(99.0, f64::min) >= 6.0);
        assert_eq!(heights(&surveyed(&[8.0, 11.0]), Some(3.0)), [5.0, 8.0, 11.0, 14.0]);
    }
}
