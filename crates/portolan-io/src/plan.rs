//! Plans of walls: a table of segments, or lines and outlines of GeoJSON.

use std::path::Path;

use portolan::between::{Wall, Walls};
use portolan::{Readings, Region, Site};
use serde_json::Value;

use crate::error::{Check, IoError, Problem, Result};
use crate::gis::earth::{Degrees, Projection};
use crate::table::lines::Lines;

/// The most bytes of a plan.
const MOST_BYTES: u64 = 1 << 28;
/// Property names that say what a wall is made of.
const MATERIAL: [&str; 4] = ["material", "class", "kind", "type"];
/// Names of the floor that a wall is on.
const FLOOR: [&str; 2] = ["floor", "level"];
/// A plan farther from the readings than so many times the larger of both is of another place.
const APART: f64 = 1.0;
/// A plan smaller than this share of the survey is in another unit.
const TINY: f64 = 0.01;

/// How a plan is read.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlanOptions {
    /// Metres from floor to floor, where walls are of one floor.
    pub floor_height_m: Option<f64>,
    /// Goes on where the plan lies far from the readings, or is tiny beside them.
    pub accept: bool,
}

/// Reads the walls around some readings: a table with `x1_m`, `y1_m`, `x2_m`, `y2_m` (or `lat1`,
/// `lon1`, `lat2`, `lon2`), optionally `material` and `floor`; or GeoJSON with LineStrings and
/// Polygons and the properties `material` and `floor`. Longitudes and latitudes are projected like the
/// readings.
///
/// ```
/// use portolan_io::{PlanOptions, read_walls};
/// # use ndarray::array;
/// # use portolan::{Readings, Scale, Site, Values};
/// # let sites = vec![Site::new(0.0, 0.0), Site::new(3.5, 1.25)];
/// # let readings = Readings::new(sites, Values::Power(array![[1e-7], [8e-8]]), Scale::Absolute)?;
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("walls.csv");
/// std::fs::write(&path, "x1_m,y1_m,x2_m,y2_m,material\n0,2,4,2,brick\n4,2,4,0,glass\n")?;
/// let walls = read_walls(&path, &readings, PlanOptions::default())?;
/// assert_eq!(walls.walls()[1].material, "glass");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_walls(
    path: impl AsRef<Path>,
    readings: &Readings,
    options: PlanOptions,
) -> Result<Walls> {
    let path = path.as_ref();
    let opened = |source| IoError::Open { path: path.to_owned(), source };
    let in_file = |problem: Problem| problem.in_file(path);
    if std::fs::metadata(path).map_err(opened)?.len() > MOST_BYTES {
        return Err(in_file(Problem::new("is larger than 256 MB, expected the walls of a plan")));
    }
    let bytes = std::fs::read(path).map_err(opened)?;
    parse(&bytes, readings, options).map_err(in_file)
}

/// The same from the text of a plan, for callers that hold it in memory.
pub fn parse_walls(text: &str, readings: &Readings, options: PlanOptions) -> Result<Walls> {
    parse(text.as_bytes(), readings, options).map_err(|problem| problem.in_file(Path::new("walls")))
}

fn parse(bytes: &[u8], readings: &Readings, options: PlanOptions) -> Check<Walls> {
    let projection = readings.crs().map(Projection::of).transpose()?;
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    let walls = match first {
        Some(b'{') => geojson(bytes, projection.as_ref(), options.floor_height_m)?,
        _ => table(bytes, projection.as_ref(), options.floor_height_m)?,
    };
    if walls.is_empty() {
        return Err(Problem::new("holds no wall"));
    }
    let walls = Walls::new(walls)?;
    if !options.accept {
        check_near(walls.region(), readings.region())?;
    }
    Ok(walls)
}

/// A plan that lies elsewhere would be crossed by nothing, and nobody would know.
fn check_near(plan: Region, survey: Region) -> Check<()> {
    let gap = |low: f64, high: f64, other_low: f64, other_high: f64| {
        (other_low - high).max(low - other_high).max(0.0)
    };
    let apart = gap(plan.low.x_m, plan.high.x_m, survey.low.x_m, survey.high.x_m).hypot(gap(
        plan.low.y_m,
        plan.high.y_m,
        survey.low.y_m,
        survey.high.y_m,
    ));
    let size = |r: &Region| r.width_m().max(r.height_m());
    let (wide, survey_wide) = (size(&plan), size(&survey));
    if wide < TINY * survey_wide {
        return Err(Problem::new(format!(
            "the plan is {wide:.2} m wide and the readings {survey_wide:.0} m: if it is in longitudes \
             and latitudes, name the coordinate system of the readings by --crs; or go on with \
             --accept"
        )));
    }
    if apart <= APART * wide.max(survey_wide) {
        return Ok(());
    }
    let far = match apart >= 1000.0 {
        true => format!("{:.1} km", apart / 1000.0),
        false => format!("{apart:.0} m"),
    };
    Err(Problem::new(format!(
        "the plan lies {far} from the readings: give it in the coordinates of the readings, or go on \
         with --accept"
    )))
}

/// Columns of a table of walls.
struct Columns {
    ends: [usize; 4],
    degrees: bool,
    material: Option<usize>,
    floor: Option<usize>,
}

impl Columns {
    fn of(header: &[String]) -> Check<Self> {
        let find = |names: &[&str]| header.iter().position(|own| names.contains(&own.as_str()));
        let all = |names: [&[&str]; 4]| -> Option<[usize; 4]> {
            let found: Vec<usize> = names.iter().filter_map(|names| find(names)).collect();
            found.try_into().ok()
        };
        let metres = all([&["x1_m", "x1"], &["y1_m", "y1"], &["x2_m", "x2"], &["y2_m", "y2"]]);
        let degrees = all([&["lat1"], &["lon1", "lng1"], &["lat2"], &["lon2", "lng2"]]);
        let (ends, degrees) = match (metres, degrees) {
            (Some(ends), _) => (ends, false),
            (None, Some(ends)) => (ends, true),
            _ => {
                return Err(Problem::new(
                    "line 1: expected the columns x1_m,y1_m,x2_m,y2_m or lat1,lon1,lat2,lon2",
                ));
            }
        };
        Ok(Self { ends, degrees, material: find(&MATERIAL), floor: find(&FLOOR) })
    }
}

fn table(
    bytes: &[u8],
    projection: Option<&Projection>,
    floor_height_m: Option<f64>,
) -> Check<Vec<Wall>> {
    let mut lines = Lines::open(bytes)?;
    let header = lines.next()?.ok_or_else(|| Problem::new("line 1: expected a header"))?;
    let names: Vec<String> =
        header.fields().iter().map(|name| name.trim().to_lowercase()).collect();
    let columns = Columns::of(&names)?;
    if columns.degrees && projection.is_none() {
        return Err(Problem::new("holds latitudes and longitudes, the readings are in metres"));
    }
    lines.columns = names.len();
    let mut walls = Vec::new();
    while let Some(line) = lines.next()? {
        let mut ends = [0.0; 4];
        for (value, &column) in ends.iter_mut().zip(&columns.ends) {
            *value = line.number(column)?;
            if !value.is_finite() {
                return Err(line.wrong(column, "expected a number"));
            }
        }
        let place = |a: f64, b: f64| match (columns.degrees, projection) {
            (true, Some(projection)) => {
                projection.forward(Degrees { lat: a, lon: b }).map_err(Problem::new)
            }
            _ => Ok(Site::new(a, b)),
        };
        let fields = line.fields();
        let material = columns.material.map_or("", |column| fields[column].trim());
        let mut wall = Wall::new(place(ends[0], ends[1])?, place(ends[2], ends[3])?, material);
        if let Some(column) = columns.floor.filter(|&column| !fields[column].trim().is_empty()) {
            let height = floor_height(floor_height_m)?;
            let (low_m, high_m) = heights_of(line.number(column)?, height);
            wall = wall.between_heights(low_m, high_m);
        }
        walls.push(wall);
    }
    Ok(walls)
}

fn floor_height(given_m: Option<f64>) -> Check<f64> {
    given_m.ok_or_else(|| {
        Problem::new("walls are of one floor each: give the height of a floor by --floor-height")
    })
}

/// From where to where a floor reaches.
fn heights_of(floor: f64, height_m: f64) -> (f64, f64) {
    (height_m * floor, height_m * floor + height_m)
}

/// What the walls of a feature share.
#[derive(Clone, Copy)]
struct Kind<'a> {
    material: &'a str,
    heights_m: Option<(f64, f64)>,
}

fn geojson(
    bytes: &[u8],
    projection: Option<&Projection>,
    floor_height_m: Option<f64>,
) -> Check<Vec<Wall>> {
    let value: Value = serde_json::from_slice(bytes).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        Problem::new(format!("line {line}, column {column}: is no GeoJSON"))
    })?;
    let mut walls = Vec::new();
    let kind = Kind { material: "", heights_m: None };
    Geometry { projection, floor_height_m }.collect(&value, kind, &mut walls)?;
    Ok(walls)
}

/// How geometries are read.
#[derive(Clone, Copy)]
struct Geometry<'a> {
    projection: Option<&'a Projection>,
    floor_height_m: Option<f64>,
}

impl Geometry<'_> {
    fn collect(self, value: &Value, kind: Kind<'_>, walls: &mut Vec<Wall>) -> Check<()> {
        let list = |key: &str| value.get(key).and_then(Value::as_array).into_iter().flatten();
        let lines = |list: Option<&Value>| -> Vec<Value> {
            list.and_then(Value::as_array).cloned().unwrap_or_default()
        };
        match value.get("type").and_then(Value::as_str) {
            Some("FeatureCollection") => {
                list("features").try_for_each(|own| self.collect(own, kind, walls))
            }
            Some("GeometryCollection") => {
                list("geometries").try_for_each(|own| self.collect(own, kind, walls))
            }
            Some("Feature") => match value.get("geometry") {
                Some(geometry) if !geometry.is_null() => {
                    let own = self.kind(value.get("properties"), kind)?;
                    self.collect(geometry, own, walls)
                }
                _ => Ok(()),
            },
            Some("LineString") => line(value.get("coordinates"), kind, self.projection, walls),
            Some("MultiLineString" | "Polygon") => {
                let mut all = lines(value.get("coordinates")).into_iter();
                all.try_for_each(|own| line(Some(&own), kind, self.projection, walls))
            }
            Some("MultiPolygon") => {
                let polygons = lines(value.get("coordinates")).into_iter();
                let mut rings = polygons.flat_map(|p| lines(Some(&p)));
                rings.try_for_each(|own| line(Some(&own), kind, self.projection, walls))
            }
            Some("Point" | "MultiPoint") => Ok(()),
            _ => Err(Problem::new("is no GeoJSON, expected LineStrings and Polygons")),
        }
    }

    /// What the properties of a feature say of its walls.
    fn kind<'k>(self, properties: Option<&'k Value>, around: Kind<'k>) -> Check<Kind<'k>> {
        let material = MATERIAL.iter().find_map(|name| properties?.get(name)?.as_str());
        let floor = FLOOR.iter().find_map(|name| match properties?.get(name)? {
            Value::Null => None,
            Value::String(text) if text.trim().is_empty() => None,
            other => Some(other),
        });
        let heights_m = match floor {
            None => around.heights_m,
            Some(value) => {
                let height = floor_height(self.floor_height_m)?;
                let number = match value {
                    Value::String(text) => text.trim().parse().ok(),
                    other => other.as_f64(),
                };
                let floor = number.filter(|floor: &f64| floor.is_finite()).ok_or_else(|| {
                    Problem::new(format!("the floor {value} of a wall: expected a number"))
                })?;
                Some(heights_of(floor, height))
            }
        };
        Ok(Kind { material: material.unwrap_or(around.material), heights_m })
    }
}

/// The walls along a line of positions.
fn line(
    value: Option<&Value>,
    kind: Kind<'_>,
    projection: Option<&Projection>,
    walls: &mut Vec<Wall>,
) -> Check<()> {
    let wrong = || Problem::new("a line without positions, expected [[x, y], [x, y], ..]");
    let places = value.and_then(Value::as_array).ok_or_else(wrong)?;
    let site = |place: &Value| -> Check<Site> {
        let number = |n: usize| {
            place.get(n).and_then(Value::as_f64).filter(|v| v.is_finite()).ok_or_else(wrong)
        };
        let (x, y) = (number(0)?, number(1)?);
        match projection {
            Some(projection) => {
                projection.forward(Degrees { lat: y, lon: x }).map_err(Problem::new)
            }
            None => Ok(Site::new(x, y)),
        }
    };
    let sites: Vec<Site> = places.iter().map(site).collect::<Check<_>>()?;
    walls.extend(sites.windows(2).map(|pair| {
        let wall = Wall::new(pair[0], pair[1], kind.material);
        match kind.heights_m {
            Some((low_m, high_m)) => wall.between_heights(low_m, high_m),
            None => wall,
        }
    }));
    Ok(())
}

#[cfg(test)]
mod tests {
    use ndarray::array;
    use portolan::{Scale, Values};

    use super::*;

    fn readings() -> Readings {
        let sites = vec![Site::new(0.0, 0.0), Site::new(9.0, 5.0)];
        Readings::new(sites, Values::Power(array![[1e-7], [8e-8]]), Scale::Absolute).unwrap()
    }

    fn read(text: &str) -> Check<Walls> {
        parse(text.as_bytes(), &readings(), PlanOptions::default())
    }

    #[test]
    fn lines_and_outlines_become_walls() {
        let text = r#"{"type": "FeatureCollection", "features": [
            {"type": "Feature", "properties": {"material": "brick"},
             "geometry": {"type": "LineString", "coordinates": [[0, 0], [4, 0], [4, 3]]}},
            {"type": "Feature", "properties": null, "geometry": {"type": "Polygon",
             "coordinates": [[[5, 0], [7, 0], [7, 2], [5, 0]]]}}]}"#;
        let walls = read(text).unwrap();
        let materials: Vec<&str> = walls.walls().iter().map(|w| w.material.as_str()).collect();
        assert_eq!(materials, ["brick", "brick", "", "", ""]);
        assert_eq!(walls.walls()[1].to, Site::new(4.0, 3.0));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, word) in [
            ("", "header"),
            ("x1_m,y1_m\n0,0\n", "x1_m,y1_m,x2_m,y2_m"),
            ("x1_m,y1_m,x2_m,y2_m\n0,0,4\n", "line 2"),
            ("x1_m,y1_m,x2_m,y2_m\n0,0,4,north\n", "north"),
            ("x1_m,y1_m,x2_m,y2_m\n", "no wall"),
            ("x1_m,y1_m,x2_m,y2_m,floor\n0,0,4,1,2\n", "--floor-height"),
            ("x1_m,y1_m,x2_m,y2_m\n4000,0,4004,0\n", "4.0 km"),
            ("lat1,lon1,lat2,lon2\n50,8,50,9\n", "metres"),
            ("{\"type\": \"Banana\"}", "GeoJSON"),
            ("{", "line 1"),
            ("{\"type\": \"LineString\", \"coordinates\": [[0]]}", "positions"),
        ] {
            let error = read(text).err().unwrap_or_else(|| panic!("{text} is read")).to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    #[test]
    fn walls_of_a_floor_have_its_heights() {
        let options = PlanOptions { floor_height_m: Some(3.0), accept: false };
        let text = "x1,y1,x2,y2,floor\n0,0,4,1,2\n0,0,4,1,\n";
        let walls = parse(text.as_bytes(), &readings(), options).unwrap();
        let heights: Vec<_> = walls.walls().iter().map(|w| w.heights_m).collect();
        assert_eq!(heights, [Some((6.0, 9.0)), None]);
    }

    #[test]
    fn walls_of_geojson_have_the_heights_of_their_floor() {
        let feature = |floor: &str| {
            format!(
                r#"{{"type": "Feature", "properties": {{{floor}}}, "geometry":
                {{"type": "LineString", "coordinates": [[0, 0], [4, 1]]}}}}"#
            )
        };
        let features = [r#""floor": 0"#, r#""level": "2""#, r#""floor": null"#].map(feature);
        let text =
            format!(r#"{{"type": "FeatureCollection", "features": [{}]}}"#, features.join(","));
        let options = PlanOptions { floor_height_m: Some(3.0), accept: false };
        let walls = parse(text.as_bytes(), &readings(), options).unwrap();
        let heights: Vec<_> = walls.walls().iter().map(|w| w.heights_m).collect();
        assert_eq!(heights, [Some((0.0, 3.0)), Some((6.0, 9.0)), None]);
        let error = read(&text).unwrap_err().to_string();
        assert!(error.contains("--floor-height"), "{error}");
        let text = feature(r#""floor": "ground""#);
        let error = parse(text.as_bytes(), &readings(), options).unwrap_err().to_string();
        assert!(error.contains("ground") && error.contains("number"), "{error}");
    }

    #[test]
    fn plans_in_degrees_beside_readings_in_metres_are_refused() {
        let text = r#"{"type": "LineString", "coordinates": [[8.40, 5.01], [8.4001, 5.0102]]}"#;
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains("--crs") && error.contains("--accept"), "{error}");
        let options = PlanOptions { accept: true, ..PlanOptions::default() };
        assert_eq!(parse(text.as_bytes(), &readings(), options).unwrap().walls().len(), 1);
    }
}
