//! Places in metres. Nothing here knows of cells.

/// A place: metres along x, along y and above the survey's zero of heights, as the survey gives them.
///
/// ```
/// use portolan::Site;
/// assert_eq!(Site::new(0.0, 0.0).distance_m(Site::new(3.0, 4.0)), 5.0);
/// // On another floor.
/// assert_eq!(Site::new(0.0, 0.0).distance_m(Site::new(3.0, 0.0).at_height(4.0)), 5.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Site {
    /// Metres along x.
    pub x_m: f64,
    /// Metres along y.
    pub y_m: f64,
    /// Height in metres; 0 where a survey is flat.
    pub z_m: f64,
}

impl Site {
    /// The place at `x_m`, `y_m`, at height 0.
    pub const fn new(x_m: f64, y_m: f64) -> Self {
        Self { x_m, y_m, z_m: 0.0 }
    }

    /// The place above or below this one, at a height.
    pub const fn at_height(self, z_m: f64) -> Self {
        Self { z_m, ..self }
    }

    /// The place so many metres further along x and y, at the same height.
    pub(crate) fn moved(self, dx_m: f64, dy_m: f64) -> Self {
        Self { x_m: self.x_m + dx_m, y_m: self.y_m + dy_m, ..self }
    }

    /// Distance to another place in metres.
    pub fn distance_m(self, other: Site) -> f64 {
        self.squared_m2(other).sqrt()
    }

    /// Squared distance in square metres.
    pub(crate) fn squared_m2(self, other: Site) -> f64 {
        let (dx, dy, dz) = (self.x_m - other.x_m, self.y_m - other.y_m, self.z_m - other.z_m);
        dx * dx + dy * dy + dz * dz
    }

    /// No coordinate is NaN or infinite.
    pub fn is_finite(self) -> bool {
        self.x_m.is_finite() && self.y_m.is_finite() && self.z_m.is_finite()
    }

    /// Equal places have equal bits: -0 is 0.
    pub(crate) fn bits(self) -> PlaceBits {
        [self.x_m, self.y_m, self.z_m].map(|v| (v + 0.0).to_bits())
    }
}

/// The bits of a place, by which equal places are known.
pub(crate) type PlaceBits = [u64; 3];

/// A place as far as distances and polynomials must know it: of two coordinates, or of any number.
pub(crate) trait Point: Clone + Send + Sync + 'static {
    fn axes(&self) -> usize;

    fn coordinate(&self, axis: usize) -> f64;

    fn of(coordinates: impl Iterator<Item = f64>) -> Self;

    /// Squared distance.
    fn squared(&self, other: &Self) -> f64;
}

impl Point for Site {
    fn axes(&self) -> usize {
        3
    }

    fn coordinate(&self, axis: usize) -> f64 {
        [self.x_m, self.y_m, self.z_m][axis]
    }

    fn of(mut coordinates: impl Iterator<Item = f64>) -> Self {
        let mut next = || coordinates.next().unwrap_or_default();
        Site { x_m: next(), y_m: next(), z_m: next() }
    }

    fn squared(&self, other: &Self) -> f64 {
        self.squared_m2(*other)
    }
}

/// Coordinates that the places differ in, counted up to the last of them; at least one. A flat survey
/// has no third.
pub(crate) fn used_axes<P: Point>(sites: &[P]) -> usize {
    let Some(first) = sites.first() else { return 1 };
    let differ =
        |axis: &usize| sites.iter().any(|site| site.coordinate(*axis) != first.coordinate(*axis));
    (0..first.axes()).rev().find(differ).map_or(1, |axis| axis + 1)
}

/// The height of half of the places or more: what a map of them is drawn at.
pub(crate) fn usual_height_m(sites: &[Site]) -> f64 {
    let mut heights: Vec<f64> = sites.iter().map(|site| site.z_m).collect();
    let middle = heights.len() / 2;
    match heights.is_empty() {
        true => 0.0,
        false => *heights.select_nth_unstable_by(middle, f64::total_cmp).1,
    }
}

/// Numbers of the rows at each place, places in order of their first row.
pub(crate) fn by_place(sites: &[Site]) -> Vec<Vec<usize>> {
    grouped(sites.len(), |row| sites[row].bits())
}

/// Numbers with the same key, groups in order of their first number.
pub(crate) fn grouped<K: std::hash::Hash + Eq>(
    count: usize,
    key: impl Fn(usize) -> K,
) -> Vec<Vec<usize>> {
    let mut slot = std::collections::HashMap::new();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for number in 0..count {
        let at = *slot.entry(key(number)).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[at].push(number);
    }
    groups
}

/// The mean of some places, coordinate by coordinate; relative to the first, because coordinates may
/// be millions of metres.
pub(crate) fn middle<P: Point>(sites: &[P]) -> Vec<f64> {
    let Some(first) = sites.first() else { return Vec::new() };
    let count = sites.len() as f64;
    let mean = |axis: usize| {
        let origin = first.coordinate(axis);
        origin + sites.iter().map(|s| s.coordinate(axis) - origin).sum::<f64>() / count
    };
    (0..first.axes()).map(mean).collect()
}

/// An upright rectangle, and the heights of what stands in it.
///
/// ```
/// use portolan::{Region, Site};
/// let sites = [Site::new(2.0, -1.0), Site::new(5.0, 3.0), Site::new(4.0, 7.0)];
/// let region = Region::around(&sites).unwrap();
/// assert_eq!((region.width_m(), region.height_m()), (3.0, 8.0));
/// assert_eq!(region.low, Site::new(2.0, -1.0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Region {
    /// Least x and y.
    pub low: Site,
    /// Greatest x and y.
    pub high: Site,
}

impl Region {
    /// The smallest rectangle around some places; None without any.
    pub fn around(sites: &[Site]) -> Option<Self> {
        let first = *sites.first()?;
        let mut region = Self { low: first, high: first };
        for site in sites {
            region.low.x_m = region.low.x_m.min(site.x_m);
            region.low.y_m = region.low.y_m.min(site.y_m);
            region.high.x_m = region.high.x_m.max(site.x_m);
            region.high.y_m = region.high.y_m.max(site.y_m);
            region.low.z_m = region.low.z_m.min(site.z_m);
            region.high.z_m = region.high.z_m.max(site.z_m);
        }
        Some(region)
    }

    /// Extent along x in metres.
    pub fn width_m(&self) -> f64 {
        self.high.x_m - self.low.x_m
    }

    /// Extent along y in metres.
    pub fn height_m(&self) -> f64 {
        self.high.y_m - self.low.y_m
    }

    /// How far a place lies outside, in metres; 0 inside.
    pub(crate) fn outside_m(&self, site: Site) -> f64 {
        let along = |x: f64, low: f64, high: f64| (low - x).max(x - high).max(0.0);
        along(site.x_m, self.low.x_m, self.high.x_m).hypot(along(
            site.y_m,
            self.low.y_m,
            self.high.y_m,
        ))
    }
}

/// The size of a cloud of places whichever way it is turned: the diagonal of the square that has
/// the same root mean square distance from its centre. At least the least positive number.
pub(crate) fn extent_m<P: Point>(sites: &[P]) -> f64 {
    let middle = middle(sites);
    let apart = |s: &P| -> f64 {
        middle.iter().enumerate().map(|(axis, m)| (s.coordinate(axis) - m).powi(2)).sum()
    };
    let square = sites.iter().map(apart).sum::<f64>() / sites.len().max(1) as f64;
    (12.0 * square).sqrt().max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extent_of_a_square_is_its_diagonal_however_it_is_turned() {
        let sites: Vec<Site> =
            (0..1600).map(|i| Site::new(f64::from(i % 40), f64::from(i / 40))).collect();
        let extent = extent_m(&sites);
        assert!((extent / (40.0 * 2f64.sqrt()) - 1.0).abs() < 1e-3, "{extent}");
        let turned: Vec<Site> = sites
            .iter()
            .map(|s| Site::new(0.6 * s.x_m - 0.8 * s.y_m + 5e6, 0.8 * s.x_m + 0.6 * s.y_m - 3e6))
            .collect();
        assert!((extent_m(&turned) / extent - 1.0).abs() < 1e-9);
    }

    #[test]
    fn outside_is_measured_from_the_nearest_edge() {
        let region = Region::around(&[Site::new(1.0, 2.0), Site::new(4.0, 8.0)]).unwrap();
        assert_eq!(region.outside_m(Site::new(2.0, 3.0)), 0.0);
        assert_eq!(region.outside_m(Site::new(7.0, 12.0)), 5.0);
        assert_eq!((region.width_m(), region.height_m()), (3.0, 6.0));
        assert_eq!(Region::around(&[]), None);
    }
}
