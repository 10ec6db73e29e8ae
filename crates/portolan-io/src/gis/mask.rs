//! What not to show of a map: where its spread is large, far from every sensor, outside their hull or
//! outside a polygon.

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ndarray::Array3;
use portolan::{Crs, Grid, InputError, RadioMap, Region, Site};

use super::area::{Area, convex_range, hull};
use super::parts::{MapAbout, MapParts, Part};
use crate::error::{IoError, Problem, Result};

/// One rule of a mask, as the user says it.
///
/// ```
/// use portolan_io::gis::MaskRule;
/// assert_eq!("spread=8".parse(), Ok(MaskRule::Spread(8.0)));
/// assert_eq!("town.geojson".parse(), Ok(MaskRule::Inside("town.geojson".into())));
/// assert!("distance=-1".parse::<MaskRule>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum MaskRule {
    /// The spread is at most so many dB.
    Spread(f64),
    /// The nearest sensor is at most so many metres away.
    Distance(f64),
    /// Inside the convex hull of the sensors.
    Hull,
    /// Inside the polygons of a GeoJSON file.
    Inside(PathBuf),
}

impl FromStr for MaskRule {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let wrong = || {
            format!("'{text}': expected spread=DB, distance=METRES, hull or a file named *.geojson")
        };
        let number = |number: &str| {
            let value = number.trim().parse::<f64>().ok();
            value.filter(|v| v.is_finite() && *v > 0.0).ok_or_else(wrong)
        };
        match text.split_once('=') {
            Some(("spread", value)) => number(value).map(MaskRule::Spread),
            Some(("distance", value)) => number(value).map(MaskRule::Distance),
            _ if text == "hull" => Ok(MaskRule::Hull),
            _ if [".geojson", ".json"].iter().any(|end| text.to_lowercase().ends_with(end)) => {
                Ok(MaskRule::Inside(text.into()))
            }
            _ => Err(wrong()),
        }
    }
}

impl MaskRule {
    /// Whether the rule asks where the sensors stood.
    pub fn needs_sites(&self) -> bool {
        matches!(self, MaskRule::Distance(_) | MaskRule::Hull)
    }
}

/// Rules that all must hold where a map is shown.
#[derive(Clone, Debug, Default)]
pub struct Mask {
    spread_db: Option<f64>,
    near: Option<Near>,
    hull: Option<(Vec<Site>, f64)>,
    areas: Vec<Area>,
    /// Entries that were shown so far.
    shown: Arc<AtomicUsize>,
}

impl Mask {
    /// Rules about the sensors at `sites`; polygons are read, in the map's coordinate system.
    pub fn new(rules: &[MaskRule], sites: &[Site], crs: Option<Crs>) -> Result<Self> {
        let mut mask = Self::default();
        let least = |old: Option<f64>, new: f64| Some(old.map_or(new, |old| old.min(new)));
        let mut distance = None;
        for rule in rules {
            match rule {
                MaskRule::Spread(most) => mask.spread_db = least(mask.spread_db, *most),
                MaskRule::Distance(most) => distance = least(distance, *most),
                MaskRule::Hull => {
                    let corners = hull(sites);
                    let longest =
                        Region::around(sites).map_or(0.0, |r| r.width_m().max(r.height_m()));
                    mask.hull = Some((corners, 1e-9 * longest));
                }
                MaskRule::Inside(path) => mask.areas.push(Area::read(path, crs)?),
            }
        }
        mask.near = distance.map(|most_m| Near::new(sites, most_m));
        Ok(mask)
    }

    /// Whether it leaves every map as it is.
    pub fn is_empty(&self) -> bool {
        self.spread_db.is_none()
            && self.near.is_none()
            && self.hull.is_none()
            && self.areas.is_empty()
    }

    /// Refuses a map without the spread that a rule asks for.
    pub fn check(&self, has_spread: bool) -> std::result::Result<(), String> {
        match (self.spread_db, has_spread) {
            (Some(most), false) => Err(format!("--mask spread={most}: the map has no spread")),
            _ => Ok(()),
        }
    }

    /// Makes unknown what is not shown of some rows and columns of a grid: powers or levels, and
    /// their spread.
    pub fn apply(
        &self,
        grid: Grid,
        (rows, cols): (Range<usize>, Range<usize>),
        values: &mut Array3<f64>,
        spread: Option<&mut Array3<f64>>,
    ) {
        self.hide(grid, (rows, cols), values, spread);
        let shown = values.iter().filter(|x| !x.is_nan()).count();
        self.shown.fetch_add(shown, Ordering::Relaxed);
    }

    /// What to say where nothing of a map was shown.
    pub fn note(&self) -> Option<String> {
        let nothing = !self.is_empty() && self.shown.load(Ordering::Relaxed) == 0;
        nothing.then(|| "--mask hides the whole map: nothing of it is shown".to_string())
    }

    fn hide(
        &self,
        grid: Grid,
        (rows, cols): (Range<usize>, Range<usize>),
        values: &mut Array3<f64>,
        mut spread: Option<&mut Array3<f64>>,
    ) {
        if let (Some(most), Some(spread)) = (self.spread_db, spread.as_deref_mut()) {
            values.zip_mut_with(spread, |value, spread| {
                if *spread > most || spread.is_nan() {
                    *value = f64::NAN;
                }
            });
            spread.mapv_inplace(|s| if s > most { f64::NAN } else { s });
        }
        if self.near.is_none() && self.hull.is_none() && self.areas.is_empty() {
            return;
        }
        for (i, row) in rows.enumerate() {
            let x_m = grid.site_at([row as f64, 0.0]).x_m;
            let hull = self.hull.as_ref().map(|(hull, slack)| convex_range(hull, x_m, *slack));
            let crossings: Vec<Vec<Vec<f64>>> =
                self.areas.iter().map(|area| area.crossings(x_m)).collect();
            for (j, col) in cols.clone().enumerate() {
                let site = grid.site_at([row as f64, col as f64]);
                let inside =
                    |polygon: &Vec<f64>| polygon.partition_point(|y| *y <= site.y_m) % 2 == 1;
                let kept = hull
                    .is_none_or(|range| range.is_some_and(|(a, b)| (a..=b).contains(&site.y_m)))
                    && crossings.iter().all(|polygons| polygons.iter().any(inside))
                    && self.near.as_ref().is_none_or(|near| near.reaches(site));
                if !kept {
                    values.slice_mut(ndarray::s![i, j, ..]).fill(f64::NAN);
                    if let Some(spread) = spread.as_deref_mut() {
                        spread.slice_mut(ndarray::s![i, j, ..]).fill(f64::NAN);
                    }
                }
            }
        }
    }

    /// A map that shows only what the rules leave. Its factors are lost: they know no gaps.
    pub fn masked(&self, map: RadioMap) -> std::result::Result<RadioMap, InputError> {
        if self.is_empty() {
            return Ok(map);
        }
        let grid = map.grid();
        let (crs, scale, labels) = (map.crs(), map.scale(), map.labels().clone());
        let noise = map.noise_db().map(<[f64]>::to_vec);
        let (emitters, errors) = (map.emitters().to_vec(), map.emitter_se_m().to_vec());
        let (exponents, own) = (map.exponents().to_vec(), map.emitter_bands().to_vec());
        let (mut power, mut spread) = map.into_dense();
        self.apply(grid, (0..grid.rows(), 0..grid.cols()), &mut power, spread.as_mut());
        RadioMap::dense(grid, power, scale)?
            .with_labels(labels)?
            .with_crs(crs)
            .with_spread_db(spread)?
            .with_noise_db(noise)?
            .with_emitters(emitters)
            .with_emitter_se_m(errors)?
            .with_emitter_bands(own)?
            .with_exponents(exponents)
    }
}

/// Sensors in squares as wide as the distance that is asked for.
#[derive(Clone, Debug)]
struct Near {
    most_m: f64,
    squares: HashMap<(i64, i64), Vec<Site>>,
}

impl Near {
    fn new(sites: &[Site], most_m: f64) -> Self {
        let mut near = Self { most_m, squares: HashMap::new() };
        for site in sites {
            near.squares.entry(near.square(*site)).or_default().push(*site);
        }
        near
    }

    fn square(&self, site: Site) -> (i64, i64) {
        let along = |at: f64| (at / self.most_m).floor() as i64;
        (along(site.x_m), along(site.y_m))
    }

    fn reaches(&self, site: Site) -> bool {
        let (x, y) = self.square(site);
        let around = |n: i64| [n.saturating_sub(1), n, n.saturating_add(1)];
        let near = |other: &Site| other.distance_m(site) <= self.most_m * (1.0 + 1e-12);
        around(x).into_iter().any(|x| {
            around(y)
                .into_iter()
                .any(|y| self.squares.get(&(x, y)).is_some_and(|sites| sites.iter().any(near)))
        })
    }
}

/// The parts of a map under a mask.
pub struct Masked<'a, P> {
    parts: P,
    mask: &'a Mask,
}

impl<'a, P: MapParts> Masked<'a, P> {
    /// Fails where a rule asks for a spread that the map does not have.
    pub fn new(
        parts: P,
        mask: &'a Mask,
        path: &std::path::Path,
    ) -> std::result::Result<Self, IoError> {
        let checked = mask.check(parts.about().spread);
        checked.map_err(|problem| Problem::new(problem).in_target(path))?;
        Ok(Self { parts, mask })
    }

    /// The parts without the mask.
    pub fn into_inner(self) -> P {
        self.parts
    }
}

impl<P: MapParts> MapParts for Masked<'_, P> {
    type Error = P::Error;

    fn about(&self) -> &MapAbout {
        self.parts.about()
    }

    fn part(
        &mut self,
        rows: Range<usize>,
        cols: Range<usize>,
        bands: Range<usize>,
    ) -> std::result::Result<Part, P::Error> {
        let mut part = self.parts.part(rows.clone(), cols.clone(), bands)?;
        let grid = self.parts.about().grid;
        let Part { level_db, spread_db } = &mut part;
        self.mask.apply(grid, (rows, cols), level_db, spread_db.as_mut());
        Ok(part)
    }
}

#[cfg(test)]
mod tests {
    use portolan::Scale;

    use super::*;

    fn map() -> RadioMap {
        let spread = Array3::from_shape_fn((6, 4, 1), |(i, ..)| 2.0 * i as f64);
        let power = Array3::from_elem((6, 4, 1), 1e-7);
        RadioMap::dense(Grid::new(6, 4, 1.0).unwrap(), power, Scale::Absolute)
            .unwrap()
            .with_spread_db(Some(spread))
            .unwrap()
    }

    fn known(rules: &[&str], sites: &[Site]) -> Vec<(usize, usize)> {
        let rules: Vec<MaskRule> = rules.iter().map(|rule| rule.parse().unwrap()).collect();
        let masked = Mask::new(&rules, sites, None).unwrap().masked(map()).unwrap();
        let band = masked.band(0);
        let spread = masked.spread_db().unwrap();
        let shown = band.indexed_iter().filter(|(_, v)| !v.is_nan()).map(|(at, _)| at);
        shown.inspect(|(i, j)| assert!(!spread[[*i, *j, 0]].is_nan())).collect()
    }

    #[test]
    fn every_rule_hides_what_it_says() {
        assert_eq!(known(&["spread=4"], &[]).len(), 12);
        let corner = [Site::new(0.0, 0.0)];
        assert_eq!(known(&["distance=1"], &corner), [(0, 0), (0, 1), (1, 0)]);
        let three = [Site::new(0.0, 0.0), Site::new(2.0, 0.0), Site::new(0.0, 2.0)];
        assert_eq!(known(&["hull"], &three), [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0)]);
        assert_eq!(known(&["hull", "spread=2"], &three).len(), 5);
    }

    #[test]
    fn polygons_keep_their_inside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("area.geojson");
        let ring = "[[0.5,-1],[3.5,-1],[3.5,1.5],[0.5,1.5],[0.5,-1]]";
        let text = format!(r#"{{"type":"Polygon","coordinates":[{ring}]}}"#);
        std::fs::write(&path, text).unwrap();
        let rule = path.to_string_lossy().into_owned();
        assert_eq!(known(&[&rule], &[]).len(), 6);
    }

    #[test]
    fn wrong_words_are_refused() {
        for word in ["", "spread", "spread=", "spread=x", "distance=0", "hulls", "area.csv"] {
            assert!(word.parse::<MaskRule>().is_err(), "{word}");
        }
        let mask = Mask::new(&[MaskRule::Spread(3.0)], &[], None).unwrap();
        assert!(mask.check(false).is_err() && mask.check(true).is_ok());
    }
}
