//! Sensors dealt into folds, for cross-validation. Rows at one place stay together: a place that is
//! held out must be new to the fit.

use rand::seq::SliceRandom;

use crate::simulate::stream;
use crate::site::{Region, Site, by_place};

/// How sensors are dealt into folds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Split {
    /// Place by place, at random: how well gaps between sensors are filled.
    #[default]
    Random,
    /// By boxes of a lattice over the survey: how well places without any sensor nearby are
    /// predicted.
    Blocks,
    /// By height: how well floors or altitudes without any reading are predicted.
    Heights,
}

/// Heights that are further apart than this are of different floors or altitudes.
const STOREY_M: f64 = 1.0;

/// Boxes along either side of the survey.
const BOXES: usize = 5;

/// Numbers of the sensors of every fold; each sensor is in one of them, and sensors at one place are
/// in the same.
///
/// ```
/// use portolan::Site;
/// use portolan::estimate::{Split, folds};
/// let sites: Vec<Site> = (0..20).map(|i| Site::new(f64::from(i), 0.0)).collect();
/// let dealt = folds(&sites, 4, Split::Random, 0);
/// assert_eq!(dealt.iter().map(Vec::len).collect::<Vec<_>>(), [5, 5, 5, 5]);
/// ```
pub fn folds(sites: &[Site], count: usize, split: Split, seed: u64) -> Vec<Vec<usize>> {
    let places = by_place(sites);
    let count = count.clamp(1, places.len().max(1));
    let mut rng = stream(seed, 7);
    let groups: Vec<Vec<usize>> = match split {
        Split::Random => {
            let mut places = places;
            places.shuffle(&mut rng);
            places
        }
        Split::Blocks => {
            let mut boxes = boxes(sites);
            boxes.shuffle(&mut rng);
            boxes
        }
        Split::Heights => {
            let mut levels = levels(sites);
            levels.shuffle(&mut rng);
            levels
        }
    };
    let count = count.min(groups.len().max(1));
    let mut dealt = vec![Vec::new(); count];
    for (i, group) in groups.into_iter().enumerate() {
        dealt[i % count].extend(group);
    }
    dealt.retain(|fold| !fold.is_empty());
    dealt.iter_mut().for_each(|fold| fold.sort_unstable());
    dealt
}

/// The sensors of every floor or altitude, from below.
fn levels(sites: &[Site]) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..sites.len()).collect();
    order.sort_by(|a, b| sites[*a].z_m.total_cmp(&sites[*b].z_m));
    order
        .chunk_by(|a, b| sites[*b].z_m - sites[*a].z_m <= STOREY_M)
        .map(<[usize]>::to_vec)
        .collect()
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

/// Folds of which each is spread over the whole survey: places are dealt in turn along a curve that
/// visits neighbours one after the other.
pub(super) fn spread_folds(sites: &[Site], count: usize) -> Vec<Vec<usize>> {
    let mut places = by_place(sites);
    if let Some(region) = Region::around(sites) {
        let side = region.width_m().max(region.height_m()).max(f64::MIN_POSITIVE);
        let key = |rows: &Vec<usize>| {
            let (site, low) = (sites[rows[0]], region.low);
            let at = |x: f64, low: f64| (((x - low) / side) * 65_535.0) as u32;
            (hilbert(at(site.x_m, low.x_m), at(site.y_m, low.y_m)), rows[0])
        };
        places.sort_by_key(key);
    }
    let mut dealt = vec![Vec::new(); count.max(1)];
    for (i, rows) in places.into_iter().enumerate() {
        dealt[i % count.max(1)].extend(rows);
    }
    dealt.iter_mut().for_each(|fold| fold.sort_unstable());
    dealt
}

/// About `most` sensors of a larger fold, evenly spread over its order; places stay whole.
pub(super) fn thinned(sites: &[Site], fold: &[usize], most: usize) -> Vec<usize> {
    let own: Vec<Site> = fold.iter().map(|&sensor| sites[sensor]).collect();
    let step = fold.len().div_ceil(most).max(1);
    let places = by_place(&own).into_iter().step_by(step).flatten();
    let mut some: Vec<usize> = places.map(|row| fold[row]).collect();
    some.sort_unstable();
    some
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
    use proptest::prelude::*;

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

    proptest! {
        #[test]
        fn a_place_is_in_one_fold(
            at in prop::collection::vec((0..6i32, 0..6i32), 2..80),
            count in 1usize..8,
            seed in 0u64..50,
        ) {
            let sites: Vec<Site> =
                at.iter().map(|&(x, y)| Site::new(f64::from(x), 0.1 * f64::from(y))).collect();
            let mut all = vec![spread_folds(&sites, count)];
            for split in [Split::Random, Split::Blocks] {
                let dealt = folds(&sites, count, split, seed);
                prop_assert!(dealt.iter().all(|fold| !fold.is_empty()));
                all.push(dealt);
            }
            for dealt in all {
                is_a_partition(&dealt, sites.len());
                let places = |fold: &Vec<usize>| -> std::collections::HashSet<crate::site::PlaceBits> {
                    fold.iter().map(|&sensor| sites[sensor].bits()).collect()
                };
                for (i, fold) in dealt.iter().enumerate() {
                    let own = places(fold);
                    for other in &dealt[..i] {
                        prop_assert!(own.is_disjoint(&places(other)));
                    }
                    // Part of a fold leaves no place half held out.
                    let some = thinned(&sites, fold, 3);
                    let left: Vec<usize> =
                        fold.iter().copied().filter(|s| some.binary_search(s).is_err()).collect();
                    prop_assert!(places(&some).is_disjoint(&places(&left)));
                }
            }
        }
    }

    #[test]
    fn a_part_of_a_fold_is_spread_over_it() {
        let fold: Vec<usize> = (0..400).step_by(2).collect();
        let every_fourth: Vec<usize> = (0..400).step_by(8).collect();
        assert_eq!(thinned(&lattice(), &fold, 50), every_fourth);
        assert_eq!(thinned(&lattice(), &fold, 200), fold);
        assert!(thinned(&lattice(), &[], 50).is_empty());
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
