//! Sensors dealt into folds, for cross-validation.

use rand::seq::SliceRandom;

use crate::simulate::stream;
use crate::site::{Region, Site};

/// How sensors are dealt into folds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Split {
    /// Sensor by sensor, at random: how well gaps between sensors are filled.
    #[default]
    Random,
    /// Box by box of a lattice over the survey: how well places without any sensor nearby are
    /// predicted.
    Blocks,
}

/// Boxes along either side of the survey.
const BOXES: usize = 5;

/// Numbers of the sensors of every fold; each sensor is in one of them.
///
/// ```
/// use portolan::Site;
/// use portolan::estimate::{Split, folds};
/// let sites: Vec<Site> = (0..20).map(|i| Site::new(f64::from(i), 0.0)).collect();
/// let dealt = folds(&sites, 4, Split::Random, 0);
/// assert_eq!(dealt.iter().map(Vec::len).collect::<Vec<_>>(), [5, 5, 5, 5]);
/// ```
pub fn folds(sites: &[Site], count: usize, split: Split, seed: u64) -> Vec<Vec<usize>> {
    let count = count.clamp(1, sites.len().max(1));
    let mut rng = stream(seed, 7);
    let groups: Vec<Vec<usize>> = match split {
        Split::Random => {
            let mut order: Vec<usize> = (0..sites.len()).collect();
            order.shuffle(&mut rng);
            order.into_iter().map(|sensor| vec![sensor]).collect()
        }
        Split::Blocks => {
            let mut boxes = boxes(sites);
            boxes.shuffle(&mut rng);
            boxes
        }
    };
    let mut dealt = vec![Vec::new(); count];
    for (i, group) in groups.into_iter().enumerate() {
        dealt[i % count].extend(group);
    }
    dealt.retain(|fold| !fold.is_empty());
    dealt.iter_mut().for_each(|fold| fold.sort_unstable());
    dealt
}

/// The sensors of every box that has some.
fn boxes(sites: &[Site]) -> Vec<Vec<usize>> {
    let Some(region) = Region::around(sites) else { return Vec::new() };
    let mut boxes = vec![Vec::new(); BOXES * BOXES];
    let along = |x: f64, low: f64, length: f64| {
        let share = if length > 0.0 { (x - low) / length } else { 0.0 };
        ((share * BOXES as f64) as usize).min(BOXES - 1)
    };
    for (sensor, site) in sites.iter().enumerate() {
        let x = along(site.x_m, region.low.x_m, region.width_m());
        let y = along(site.y_m, region.low.y_m, region.height_m());
        boxes[x * BOXES + y].push(sensor);
    }
    boxes.retain(|sensors| !sensors.is_empty());
    boxes
}

/// Folds of which each is spread over the whole survey: sensors are dealt in turn along a curve
/// that visits neighbours one after the other.
pub(super) fn spread_folds(sites: &[Site], count: usize) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..sites.len()).collect();
    if let Some(region) = Region::around(sites) {
        let side = region.width_m().max(region.height_m()).max(f64::MIN_POSITIVE);
        let key = |&s: &usize| {
            let at = |x: f64, low: f64| (((x - low) / side) * 65_535.0) as u32;
            hilbert(at(sites[s].x_m, region.low.x_m), at(sites[s].y_m, region.low.y_m))
        };
        order.sort_by_key(|s| (key(s), *s));
    }
    let mut dealt = vec![Vec::new(); count.max(1)];
    for (i, sensor) in order.into_iter().enumerate() {
        dealt[i % count.max(1)].push(sensor);
    }
    dealt.iter_mut().for_each(|fold| fold.sort_unstable());
    dealt
}

/// Position along a Hilbert curve over 2^16 x 2^16 squares.
fn hilbert(mut x: u32, mut y: u32) -> u64 {
    let mut at = 0u64;
    for bit in (0..16).rev() {
        let (right, upper) = ((x >> bit) & 1, (y >> bit) & 1);
        at = 4 * at + u64::from((3 * right) ^ upper);
        if upper == 0 {
            if right == 1 {
                (x, y) = (!x & 0xffff, !y & 0xffff);
            }
            (x, y) = (y, x);
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lattice() -> Vec<Site> {
        (0..400).map(|i| Site::new(f64::from(i / 20), f64::from(i % 20))).collect()
    }

    fn is_a_partition(dealt: &[Vec<usize>], sensors: usize) {
        let mut all: Vec<usize> = dealt.concat();
        all.sort_unstable();
        assert_eq!(all, (0..sensors).collect::<Vec<_>>());
    }

    #[test]
    fn every_sensor_is_in_one_fold() {
        let sites = lattice();
        for split in [Split::Random, Split::Blocks] {
            is_a_partition(&folds(&sites, 5, split, 3), 400);
            assert_eq!(folds(&sites, 5, split, 3), folds(&sites, 5, split, 3));
        }
        assert_ne!(folds(&sites, 5, Split::Random, 3), folds(&sites, 5, Split::Random, 4));
        is_a_partition(&spread_folds(&sites, 7), 400);
        assert_eq!(folds(&sites[..3], 5, Split::Random, 0).len(), 3);
    }

    #[test]
    fn blocks_keep_neighbours_together_and_spread_folds_take_them_apart() {
        let sites = lattice();
        let nearest_in_own_fold = |dealt: &[Vec<usize>]| {
            let fold_of = |s: usize| dealt.iter().position(|f| f.contains(&s)).unwrap();
            let same = (0..399).filter(|&s| s % 20 != 19 && fold_of(s) == fold_of(s + 1)).count();
            same as f64 / 380.0
        };
        assert!(nearest_in_own_fold(&folds(&sites, 5, Split::Blocks, 0)) > 0.7);
        assert!(nearest_in_own_fold(&spread_folds(&sites, 5)) < 0.25);
        // Every fold has its share of every quarter.
        for fold in spread_folds(&sites, 5) {
            for (x, y) in [(0, 0), (0, 10), (10, 0), (10, 10)] {
                let inside = |s: &&usize| {
                    (x..x + 10).contains(&(*s / 20)) && (y..y + 10).contains(&(*s % 20))
                };
                assert!((15..=25).contains(&fold.iter().filter(inside).count()));
            }
        }
    }
}
