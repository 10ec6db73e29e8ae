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
/// A plan farther from the readings than so many times the larger of both is of another place.
const APART: f64 = 1.0;

/// How a plan is read.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlanOptions {
    /// Metres from floor to floor, where walls are of one floor.
    pub floor_height_m: Option<f64>,
    /// Goes on where the plan lies far from the readings.
    pub accept: bool,
}

/// Reads the walls around some readings: a table with `x1_m`, `y1_m`, `x2_m`, `y2_m` (or `lat1`,
/// `lon1`, `lat2`, `lon2`), optionally `material` and `floor`; or GeoJSON with LineStrings and
/// Polygons and the property `material`. Longitudes and latitudes are projected like the readings.
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
        Some(b'{') => geojson(bytes, projection.as_ref())?,
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
    if apart <= APART * size(&plan).max(size(&survey)) {
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
        Ok(Self { ends, degrees, material: find(&MATERIAL), floor: find(&["floor", "level"]) })
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
            let height = floor_height_m.ok_or_else(|| {
                Problem::new(
                    "walls are of one floor each: give the height of a floor by --floor-height",
                )
            })?;
            let low = height * line.number(column)?;
            wall = wall.between_heights(low, low + height);
        }
        walls.push(wall);
    }
    Ok(walls)
}

fn geojson(bytes: &[u8], projection: Option<&Projection>) -> Check<Vec<Wall>> {
    let value: Value = serde_json::from_slice(bytes).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        Problem::new(format!("line {line}, column {column}: is no GeoJSON"))
    })?;
    let mut walls = Vec::new();
    collect(&value, "", projection, &mut walls)?;
    Ok(walls)
}

fn collect(
    value: &Value,
    material: &str,
    projection: Option<&Projection>,
    walls: &mut Vec<Wall>,
) -> Check<()> {
    let list = |key: &str| value.get(key).and_then(Value::as_array).into_iter().flatten();
    let lines = |list: Option<&Value>| -> Vec<Value> {
        list.and_then(Value::as_array).cloned().unwrap_or_default()
    };
    match value.get("type").and_then(Value::as_str) {
        Some("FeatureCollection") => {
            list("features").try_for_each(|own| collect(own, material, projection, walls))
        }
        Some("GeometryCollection") => {
            list("geometries").try_for_each(|own| collect(own, material, projection, walls))
        }
        Some("Feature") => {
            let properties = value.get("properties");
            let own = MATERIAL.iter().find_map(|name| properties?.get(name)?.as_str());
            match value.get("geometry") {
                Some(geometry) if !geometry.is_null() => {
                    collect(geometry, own.unwrap_or(material), projection, walls)
                }
                _ => Ok(()),
            }
        }
        Some("LineString") => line(value.get("coordinates"), material, projection, walls),
        Some("MultiLineString" | "Polygon") => {
            let mut all = lines(value.get("coordinates")).into_iter();
            all.try_for_each(|own| line(Some(&own), material, projection, walls))
        }
        Some("MultiPolygon") => {
            let rings = lines(value.get("coordinates")).into_iter().flat_map(|p| lines(Some(&p)));
            rings.into_iter().try_for_each(|own| line(Some(&own), material, projection, walls))
        }
        Some("Point" | "MultiPoint") => Ok(()),
        _ => Err(Problem::new("is no GeoJSON, expected LineStrings and Polygons")),
    }
}

/// The walls along a line of positions.
fn line(
    value: Option<&Value>,
    material: &str,
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
    walls.extend(sites.windows(2).map(|pair| Wall::new(pair[0], pair[1], material)));
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
}
