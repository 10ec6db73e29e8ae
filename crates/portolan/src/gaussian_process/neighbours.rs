//! The nearest sensors of any place, and places that share a neighbourhood.

use std::ops::Range;

use crate::site::{Point, Region, Site, used_axes};

/// A k-d tree over the sensors (Bentley 1975): bounded work whatever their clusters look like.
pub(crate) struct Neighbours<P = Site> {
    sites: Vec<P>,
    /// Sensors in the order of the tree: a node is a range, its pivot stands in the middle.
    order: Vec<usize>,
    /// The axis that a pivot splits.
    axis: Vec<usize>,
}

/// Ranges of this many sensors are not split.
const LEAF: usize = 8;

/// A squared distance to 20 bits: distances that are equal but for rounding count as equal, so
/// that ties fall the same way wherever the survey lies.
fn rounded(d2: f64) -> f64 {
    const UNIT: u64 = 1 << 32;
    f64::from_bits((d2.to_bits() + UNIT / 2) & !(UNIT - 1))
}

/// A sensor that was found: its squared distance in square metres, and its number.
pub(crate) type Found = (f64, usize);

impl<P: Point> Neighbours<P> {
    pub fn new(sites: &[P]) -> Self {
        let mut tree = Self {
            sites: sites.to_vec(),
            order: (0..sites.len()).collect(),
            axis: vec![0; sites.len()],
        };
        tree.split(0..sites.len());
        tree
    }

    fn split(&mut self, range: Range<usize>) {
        if range.len() <= LEAF {
            return;
        }
        let (sites, slice) = (&self.sites, &mut self.order[range.clone()]);
        let side = |axis: usize| {
            let along = slice.iter().map(|&sensor| sites[sensor].coordinate(axis));
            let (low, high) = along.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| {
                (low.min(x), high.max(x))
            });
            high - low
        };
        // The first of equals.
        let axes = sites[slice[0]].axes();
        let axis = (1..axes).fold((0, side(0)), |longest, axis| {
            let side = side(axis);
            if side > longest.1 { (axis, side) } else { longest }
        });
        let axis = axis.0;
        let middle = range.len() / 2;
        slice.select_nth_unstable_by(middle, |&a, &b| {
            sites[a].coordinate(axis).total_cmp(&sites[b].coordinate(axis)).then(a.cmp(&b))
        });
        let pivot = range.start + middle;
        self.axis[pivot] = axis;
        self.split(range.start..pivot);
        self.split(pivot + 1..range.end);
    }

    /// The `count` sensors nearest to a place, nearest first; equal distances by sensor number.
    pub fn nearest(&self, at: &P, count: usize, out: &mut Vec<Found>) {
        out.clear();
        if count > 0 {
            self.search(0..self.order.len(), at, count, out);
        }
    }

    /// Keeps `out` sorted by (rounded distance, sensor), at most `count` long.
    fn search(&self, range: Range<usize>, at: &P, count: usize, out: &mut Vec<Found>) {
        if range.len() <= LEAF {
            for &sensor in &self.order[range] {
                self.offer(sensor, at, count, out);
            }
            return;
        }
        let pivot = range.start + range.len() / 2;
        let axis = self.axis[pivot];
        let offset = at.coordinate(axis) - self.sites[self.order[pivot]].coordinate(axis);
        let (low, high) = (range.start..pivot, pivot + 1..range.end);
        let (near, far) = if offset < 0.0 { (low, high) } else { (high, low) };
        self.search(near, at, count, out);
        self.offer(self.order[pivot], at, count, out);
        if out.len() < count || out.last().is_some_and(|(d2, _)| rounded(offset * offset) <= *d2) {
            self.search(far, at, count, out);
        }
    }

    fn offer(&self, sensor: usize, at: &P, count: usize, out: &mut Vec<Found>) {
        let found = (rounded(self.sites[sensor].squared(at)), sensor);
        let before = |other: &Found| *other < found;
        if out.len() == count && out.last().is_some_and(before) {
            return;
        }
        let place = out.partition_point(before);
        out.insert(place, found);
        out.truncate(count);
    }

    /// The least distance between two sensors that stand apart.
    pub fn closest(&self) -> f64 {
        let mut found = Vec::new();
        let nearest = |site: &P| {
            self.nearest(site, 2, &mut found);
            found.last().map_or(f64::INFINITY, |(d2, _)| d2.sqrt())
        };
        self.sites.iter().map(nearest).filter(|d| *d > 0.0).fold(f64::INFINITY, f64::min)
    }
}

impl Neighbours {
    /// Cuts places into groups that look at the same sensors, and says which: the `count` nearest
    /// to the middle of a square that is small beside their distance. Which group a place belongs
    /// to depends on the place alone, not on the others that are asked for.
    pub fn neighbourhoods(&self, at: &[Site], count: usize, coarse: f64) -> Vec<Neighbourhood> {
        let Some(region) = Region::around(&self.sites) else { return Vec::new() };
        let tall_m = region.high.z_m - region.low.z_m;
        let side = region.width_m().max(region.height_m()).max(tall_m).max(f64::MIN_POSITIVE);
        // The square is a little larger and set off by an odd amount: places on a lattice must not
        // lie on the border between two groups.
        let low = region.low.moved(-0.0173 * side, -0.0219 * side);
        let square = Square {
            low: match tall_m > 0.0 {
                true => low.at_height(low.z_m - 0.0265 * side),
                false => low,
            },
            side: 1.0523 * side,
            tall: tall_m > 0.0,
        };
        let all: Vec<usize> = (0..at.len()).collect();
        let mut cutting = Cutting { index: self, at, count, coarse, groups: Vec::new() };
        cutting.descend(square, all, 0);
        cutting.groups
    }
}

/// Cuts a square into quarters, a cube into eighths, until places of one look at the same sensors.
struct Cutting<'a> {
    index: &'a Neighbours,
    at: &'a [Site],
    count: usize,
    coarse: f64,
    groups: Vec<Neighbourhood>,
}

impl Cutting<'_> {
    fn descend(&mut self, square: Square, places: Vec<usize>, depth: usize) {
        if places.is_empty() {
            return;
        }
        let mut found = Vec::new();
        let middle = square.middle();
        self.index.nearest(&middle, self.count, &mut found);
        let reach = found.last().map_or(0.0, |(d2, _)| d2.sqrt());
        let all = found.len() == self.index.sites.len();
        if square.side <= self.coarse * reach || depth == DEEPEST || all {
            let mut sensors: Vec<usize> = found.into_iter().map(|(_, sensor)| sensor).collect();
            sensors.sort_unstable();
            self.groups.push(Neighbourhood { sensors, places });
            return;
        }
        let mut parts: [Vec<usize>; 8] = Default::default();
        for place in places {
            let at = self.at[place];
            let above = usize::from(square.tall && at.z_m >= middle.z_m);
            let right = usize::from(at.x_m >= middle.x_m);
            parts[4 * above + 2 * right + usize::from(at.y_m >= middle.y_m)].push(place);
        }
        for (part, places) in parts.into_iter().enumerate() {
            self.descend(square.part(part), places, depth + 1);
        }
    }
}

/// Bits of a coordinate along the curve, for so many axes.
fn bits_for(axes: usize) -> usize {
    (60 / axes.max(1)).clamp(1, 24)
}

/// Places in an order that depends on where they lie alone: along a curve through ever smaller
/// squares (Morton 1966). The squares are set off by an odd amount, so that rounding moves no place
/// of a lattice into another. Equal places keep their order.
pub(crate) fn along_curve<P: Point>(sites: &[P]) -> Vec<usize> {
    let axes = used_axes(sites);
    let range = |axis: usize| {
        let all = sites.iter().map(|s| s.coordinate(axis));
        all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)))
    };
    let ranges: Vec<(f64, f64)> = (0..axes).map(range).collect();
    let side = ranges.iter().map(|(low, high)| high - low).fold(f64::MIN_POSITIVE, f64::max);
    let bits = bits_for(axes);
    let steps = (1u64 << bits) as f64;
    let code = |site: &P| {
        let mut code = 0u64;
        let cells: Vec<u64> = (0..axes.min(60))
            .map(|axis| {
                let set_off = 0.0173 + 0.0046 * axis as f64;
                let along = (site.coordinate(axis) - ranges[axis].0) / side + set_off;
                ((along / 1.0523 * steps) as u64).min(steps as u64 - 1)
            })
            .collect();
        for bit in (0..bits).rev() {
            cells.iter().for_each(|cell| code = code << 1 | (cell >> bit & 1));
        }
        code
    };
    let codes: Vec<u64> = sites.iter().map(code).collect();
    let mut order: Vec<usize> = (0..sites.len()).collect();
    order.sort_by(|&a, &b| {
        let finer = || {
            (0..axes)
                .map(|axis| sites[a].coordinate(axis).total_cmp(&sites[b].coordinate(axis)))
                .find(|o| o.is_ne())
                .unwrap_or(std::cmp::Ordering::Equal)
        };
        codes[a].cmp(&codes[b]).then_with(finer)
    });
    order
}

/// Sensors of a cluster.
const CLUSTER: usize = 16;

/// At most `most` sensors, in clusters of neighbours whose centres are spread over the places: a law
/// must be fitted at the distances that predictions reach across, not only at longer ones. Centres are
/// medians of parts of the survey, so that rounding coordinates hardly moves them.
pub(crate) fn clustered<P: Point>(sites: &[P], most: usize) -> Vec<usize> {
    if sites.len() <= most {
        return (0..sites.len()).collect();
    }
    let index = Neighbours::new(sites);
    let mut kept = Vec::with_capacity(most);
    let mut near = Vec::new();
    for centre in centres(sites, (most / CLUSTER).max(1)) {
        index.nearest(&centre, CLUSTER, &mut near);
        kept.extend(near.iter().map(|(_, sensor)| *sensor));
    }
    kept.sort_unstable();
    kept.dedup();
    kept
}

/// Medians of so many parts of equally many places, each cut along the longer side.
fn centres<P: Point>(sites: &[P], count: usize) -> Vec<P> {
    let axes = sites[0].axes();
    let mut found = Vec::with_capacity(count);
    let mut open = vec![((0..sites.len()).collect::<Vec<usize>>(), count)];
    while let Some((mut part, count)) = open.pop() {
        let along = |axis: usize| move |&s: &usize| sites[s].coordinate(axis);
        if count == 1 {
            let middle = |axis: usize| {
                let at = part.len() / 2;
                let mut all: Vec<f64> = part.iter().map(along(axis)).collect();
                *all.select_nth_unstable_by(at, f64::total_cmp).1
            };
            found.push(P::of((0..axes).map(middle)));
            continue;
        }
        let side = |axis: usize| {
            let all = part.iter().map(along(axis));
            let (low, high) = all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| {
                (low.min(x), high.max(x))
            });
            high - low
        };
        // The first of the longest.
        let sides: Vec<f64> = (0..axes).map(side).collect();
        let longest = (0..axes).rev().max_by(|&a, &b| sides[a].total_cmp(&sides[b])).unwrap_or(0);
        let by_place = |a: &usize, b: &usize| {
            let order = (longest..axes).chain(0..longest);
            order
                .map(|axis| along(axis)(a).total_cmp(&along(axis)(b)))
                .find(|o| o.is_ne())
                .unwrap_or(std::cmp::Ordering::Equal)
        };
        let half = count / 2;
        let at = part.len() * half / count;
        part.select_nth_unstable_by(at, by_place);
        let rest = part.split_off(at);
        open.push((part, half));
        open.push((rest, count - half));
    }
    found
}

/// Squares are halved at most this often.
const DEEPEST: usize = 40;

/// Places that look at the same sensors, both in ascending order.
pub(crate) struct Neighbourhood {
    pub sensors: Vec<usize>,
    pub places: Vec<usize>,
}

impl Neighbourhood {
    /// The places themselves, of all that were asked for.
    pub fn sites(&self, at: &[Site]) -> Vec<Site> {
        self.places.iter().map(|&place| at[place]).collect()
    }

    /// The same in parts of at most so many places.
    pub fn split(self, most: usize) -> Vec<Neighbourhood> {
        if self.places.len() <= most {
            return vec![self];
        }
        let part = |places: &[usize]| Neighbourhood {
            sensors: self.sensors.clone(),
            places: places.to_vec(),
        };
        self.places.chunks(most).map(part).collect()
    }
}

/// An upright square, or a cube where sensors stand at several heights.
#[derive(Clone, Copy)]
struct Square {
    low: Site,
    side: f64,
    tall: bool,
}

impl Square {
    fn middle(self) -> Site {
        self.part(7).low
    }

    /// A quarter of the square, an eighth of the cube: bits say above, right, upper.
    fn part(self, part: usize) -> Self {
        let half = 0.5 * self.side;
        let along = |bit: usize| if part & bit != 0 { half } else { 0.0 };
        let low = self.low.moved(along(2), along(1));
        let up = if self.tall { along(4) } else { 0.0 };
        Self { low: low.at_height(low.z_m + up), side: half, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cloud(places: &[(f64, f64)]) -> Vec<Site> {
        places.iter().map(|&(x, y)| Site::new(x, y)).collect()
    }

    proptest! {
        #[test]
        fn agrees_with_looking_at_every_sensor(
            places in proptest::collection::vec((0.0..40.0f64, -25.0..25.0f64), 1..90),
            lattice in proptest::collection::vec((0i32..12, 0i32..12), 0..60),
            x in -5.0..45.0f64, y in -30.0..30.0f64, count in 1usize..40,
        ) {
            let mut sites = cloud(&places);
            sites.extend(lattice.iter().map(|&(x, y)| Site::new(f64::from(x), f64::from(y))));
            let at = Site::new(x, y);
            let mut found = Vec::new();
            Neighbours::new(&sites).nearest(&at, count, &mut found);
            let mut all: Vec<(f64, usize)> =
                sites.iter().enumerate().map(|(i, s)| (rounded(s.squared_m2(at)), i)).collect();
            all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            all.truncate(count);
            prop_assert_eq!(found, all);
        }

        #[test]
        fn a_neighbourhood_does_not_depend_on_what_else_is_asked(
            sensors in proptest::collection::vec((0.0..40.0f64, 0.0..25.0f64), 30..90),
            at in proptest::collection::vec((-5.0..45.0f64, -5.0..30.0f64), 2..40),
        ) {
            let index = Neighbours::new(&cloud(&sensors));
            let at = cloud(&at);
            let of = |sites: &[Site]| {
                let mut seen = vec![Vec::new(); sites.len()];
                for group in index.neighbourhoods(sites, 6, 0.4) {
                    for place in group.places {
                        seen[place] = group.sensors.clone();
                    }
                }
                seen
            };
            let all = of(&at);
            for (i, site) in at.iter().enumerate() {
                prop_assert_eq!(&of(&[*site])[0], &all[i]);
                prop_assert_eq!(all[i].len(), 6);
            }
        }
    }

    #[test]
    fn dense_clusters_have_small_neighbourhoods() {
        // A hundred sensors within a metre, one a kilometre away.
        let mut sites: Vec<Site> =
            (0..100).map(|i| Site::new(f64::from(i % 10) * 0.1, f64::from(i / 10) * 0.1)).collect();
        sites.push(Site::new(1000.0, 0.0));
        let index = Neighbours::new(&sites);
        let groups = index.neighbourhoods(&sites, 12, 0.3);
        assert!(groups.len() > 20, "{}", groups.len());
        assert!(groups.iter().all(|g| g.places.iter().all(|p| g.sensors.contains(p))));
    }

    #[test]
    fn clusters_are_neighbours_all_over_the_survey() {
        let sites: Vec<Site> =
            (0..2500).map(|i| Site::new(f64::from(i % 50), f64::from(i / 50))).collect();
        let kept = clustered(&sites, 640);
        assert!((500..=640).contains(&kept.len()), "{}", kept.len());
        let some: Vec<Site> = kept.iter().map(|&i| sites[i]).collect();
        let region = Region::around(&some).unwrap();
        assert!(region.height_m() > 40.0);
        let index = Neighbours::new(&some);
        let mut near = Vec::new();
        for site in &some {
            index.nearest(site, 2, &mut near);
            assert!(near[1].0 < 1.1);
        }
        assert_eq!(clustered(&sites, 5000).len(), 2500);
    }

    #[test]
    fn equal_distances_fall_the_same_way_far_away() {
        let near: Vec<Site> =
            (0..100).map(|i| Site::new(f64::from(i % 10) * 0.1, f64::from(i / 10) * 0.1)).collect();
        let away = |s: &Site| Site::new(s.x_m + 7_654_321.1, s.y_m - 1_234_567.7);
        let far: Vec<Site> = near.iter().map(away).collect();
        let (here, there) = (Neighbours::new(&near), Neighbours::new(&far));
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for site in &near {
            let at = Site::new(site.x_m + 0.05, site.y_m);
            here.nearest(&at, 5, &mut a);
            there.nearest(&away(&at), 5, &mut b);
            let numbers = |found: &[Found]| found.iter().map(|f| f.1).collect::<Vec<_>>();
            assert_eq!(numbers(&a), numbers(&b));
        }
    }
}
