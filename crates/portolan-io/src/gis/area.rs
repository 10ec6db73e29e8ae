//! Areas in the plane: polygons with holes out of GeoJSON (RFC 7946), and the convex hull of places.

use std::path::Path;

use portolan::{Crs, Site};
use serde_json::Value;

use super::earth::{Degrees, Projection};
use crate::error::{Check, IoError, Problem, Result};

/// The most bytes of a file of polygons.
const MOST_BYTES: u64 = 1 << 28;

/// Some polygons: a place is inside if it is inside one of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Area {
    /// Rings of each polygon: the outline, then its holes.
    polygons: Vec<Vec<Vec<Site>>>,
}

impl Area {
    /// Reads Polygons and MultiPolygons. With a coordinate system their longitudes and latitudes
    /// are projected into it; without one they are metres.
    pub fn read(path: impl AsRef<Path>, crs: Option<Crs>) -> Result<Self> {
        let path = path.as_ref();
        let opened = |source| IoError::Open { path: path.to_owned(), source };
        let length = std::fs::metadata(path).map_err(opened)?.len();
        let in_file = |problem: Problem| problem.in_file(path);
        if length > MOST_BYTES {
            return Err(in_file(Problem::new("is larger than 256 MB, expected a few polygons")));
        }
        let bytes = std::fs::read(path).map_err(opened)?;
        let projection = crs.map(Projection::of).transpose().map_err(in_file)?;
        Self::parse(&bytes, projection.as_ref()).map_err(in_file)
    }

    pub(crate) fn parse(bytes: &[u8], projection: Option<&Projection>) -> Check<Self> {
        let value: Value = serde_json::from_slice(bytes).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            Problem::new(format!("line {line}, column {column}: is no GeoJSON"))
        })?;
        let mut area = Self::default();
        area.collect(&value, projection)?;
        match area.polygons.is_empty() {
            true => Err(Problem::new("holds no polygon, expected a Polygon or MultiPolygon")),
            false => Ok(area),
        }
    }

    fn collect(&mut self, value: &Value, projection: Option<&Projection>) -> Check<()> {
        let list = |key: &str| value.get(key).and_then(Value::as_array).into_iter().flatten();
        match value.get("type").and_then(Value::as_str) {
            Some("FeatureCollection") => {
                list("features").try_for_each(|feature| self.collect(feature, projection))
            }
            Some("GeometryCollection") => {
                list("geometries").try_for_each(|geometry| self.collect(geometry, projection))
            }
            Some("Feature") => match value.get("geometry") {
                Some(geometry) if !geometry.is_null() => self.collect(geometry, projection),
                _ => Ok(()),
            },
            Some("Polygon") => {
                self.polygons.push(rings(value.get("coordinates"), projection)?);
                Ok(())
            }
            Some("MultiPolygon") => {
                for polygon in list("coordinates") {
                    self.polygons.push(rings(Some(polygon), projection)?);
                }
                Ok(())
            }
            Some("Point" | "MultiPoint" | "LineString" | "MultiLineString") => {
                Err(Problem::new("holds points or lines, expected only a Polygon or MultiPolygon"))
            }
            _ => Err(Problem::new("is no GeoJSON, expected a Polygon or MultiPolygon")),
        }
    }

    /// Where the line of all places with this x crosses the outlines: the inside lies between the
    /// first and the second crossing, the third and the fourth, and so on. One list per polygon.
    pub(crate) fn crossings(&self, x_m: f64) -> Vec<Vec<f64>> {
        let of = |polygon: &Vec<Vec<Site>>| {
            let mut found: Vec<f64> = Vec::new();
            for ring in polygon {
                for (n, a) in ring.iter().enumerate() {
                    let b = ring[(n + 1) % ring.len()];
                    if (a.x_m <= x_m) != (b.x_m <= x_m) {
                        let share = (x_m - a.x_m) / (b.x_m - a.x_m);
                        found.push(a.y_m + share * (b.y_m - a.y_m));
                    }
                }
            }
            found.sort_by(f64::total_cmp);
            found
        };
        self.polygons.iter().map(of).collect()
    }
}

fn rings(value: Option<&Value>, projection: Option<&Projection>) -> Check<Vec<Vec<Site>>> {
    let wrong =
        || Problem::new("a polygon without rings of positions, expected [[[x, y], ..], ..]");
    let list = value.and_then(Value::as_array).filter(|list| !list.is_empty()).ok_or_else(wrong)?;
    let mut rings = Vec::with_capacity(list.len());
    for ring in list {
        let places = ring.as_array().ok_or_else(wrong)?;
        let mut sites = Vec::with_capacity(places.len());
        for place in places {
            let number = |n: usize| {
                place.get(n).and_then(Value::as_f64).filter(|v| v.is_finite()).ok_or_else(wrong)
            };
            let (x, y) = (number(0)?, number(1)?);
            sites.push(match projection {
                Some(projection) => {
                    projection.forward(Degrees { lat: y, lon: x }).map_err(Problem::new)?
                }
                None => Site::new(x, y),
            });
        }
        if sites.first() == sites.last() {
            sites.pop();
        }
        if sites.len() < 3 {
            return Err(Problem::new("a ring of fewer than 4 positions, expected a closed ring"));
        }
        rings.push(sites);
    }
    Ok(rings)
}

/// The corners of the convex hull, counterclockwise (Andrew's monotone chain, 1979). Fewer than
/// three where all places lie on one line.
pub(crate) fn hull(sites: &[Site]) -> Vec<Site> {
    let mut sorted = sites.to_vec();
    sorted.sort_by(|a, b| a.x_m.total_cmp(&b.x_m).then(a.y_m.total_cmp(&b.y_m)));
    sorted.dedup();
    let mut chain: Vec<Site> = Vec::new();
    let half = |chain: &mut Vec<Site>, sites: &mut dyn Iterator<Item = Site>| {
        let start = chain.len();
        for site in sites {
            while chain.len() >= start + 2
                && turn(chain[chain.len() - 2], chain[chain.len() - 1], site) <= 0.0
            {
                chain.pop();
            }
            chain.push(site);
        }
        chain.pop();
    };
    half(&mut chain, &mut sorted.iter().copied());
    half(&mut chain, &mut sorted.iter().rev().copied());
    chain
}

/// Positive where the way from `a` over `b` to `c` turns to the left.
fn turn(a: Site, b: Site, c: Site) -> f64 {
    (b.x_m - a.x_m) * (c.y_m - a.y_m) - (b.y_m - a.y_m) * (c.x_m - a.x_m)
}

/// The least and greatest y of a convex outline at this x, its edge included.
pub(crate) fn convex_range(corners: &[Site], x_m: f64, slack: f64) -> Option<(f64, f64)> {
    let mut range: Option<(f64, f64)> = None;
    for (n, a) in corners.iter().enumerate() {
        let b = corners[(n + 1) % corners.len()];
        let (low, high) = if a.x_m <= b.x_m { (*a, b) } else { (b, *a) };
        if x_m < low.x_m - slack || x_m > high.x_m + slack {
            continue;
        }
        let ends = match high.x_m - low.x_m <= slack {
            true => [low.y_m, high.y_m],
            false => {
                let share = ((x_m - low.x_m) / (high.x_m - low.x_m)).clamp(0.0, 1.0);
                [low.y_m + share * (high.y_m - low.y_m); 2]
            }
        };
        for y in ends {
            let (least, most) = range.unwrap_or((y, y));
            range = Some((least.min(y), most.max(y)));
        }
    }
    range.map(|(least, most)| (least - slack, most + slack))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_outside() {
        let text = r#"{"type":"Feature","properties":{},"geometry":{"type":"Polygon","coordinates":
            [[[0,0],[10,0],[10,10],[0,10],[0,0]],[[4,4],[6,4],[6,6],[4,6],[4,4]]]}}"#;
        let area = Area::parse(text.as_bytes(), None).unwrap();
        assert_eq!(area.crossings(5.0), [[0.0, 4.0, 6.0, 10.0]]);
        assert_eq!(area.crossings(2.0), [[0.0, 10.0]]);
        assert!(area.crossings(11.0)[0].is_empty());
    }

    #[test]
    fn what_is_no_polygon_is_refused_on_one_line() {
        for text in [
            "",
            "{",
            "7",
            r#"{"type":"Point","coordinates":[1,2]}"#,
            r#"{"type":"Polygon"}"#,
            r#"{"type":"Polygon","coordinates":[[[0,0],[1,1]]]}"#,
            r#"{"type":"Polygon","coordinates":[[[0,0],[1,"a"],[2,2],[0,0]]]}"#,
            r#"{"type":"FeatureCollection","features":[]}"#,
        ] {
            let problem = Area::parse(text.as_bytes(), None).unwrap_err().to_string();
            assert!(!problem.contains('\n') && !problem.is_empty(), "{text}: {problem}");
        }
    }

    #[test]
    fn a_hull_holds_its_corners() {
        let site = |x, y| Site::new(x, y);
        let places =
            [site(0.0, 0.0), site(4.0, 0.0), site(2.0, 1.0), site(4.0, 3.0), site(0.0, 3.0)];
        let corners = hull(&places);
        assert_eq!(corners.len(), 4);
        let (low, high) = convex_range(&corners, 4.0, 1e-9).unwrap();
        assert!(low <= 0.0 && high >= 3.0);
        assert!(convex_range(&corners, 4.1, 1e-9).is_none());
        assert!(hull(&[site(0.0, 0.0), site(1.0, 1.0), site(2.0, 2.0)]).len() < 3);
    }
}
