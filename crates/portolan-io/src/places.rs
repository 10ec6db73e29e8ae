//! Tables of places to ask a model about, and what it says, written beside their own columns.

use std::io::Write;
use std::path::Path;

use portolan::{BandLabels, Crs, Devices, Model, Points, Prediction, Scale, Site};

use crate::error::{Check, Problem, Result};
use crate::options::Unit;
use crate::output::write_file;
use crate::source::Source;
use crate::survey::MomentFormat;
use crate::table::columns::{Position, device, floor, height, position, time};
use crate::table::lines::Lines;
use crate::table::positions::{place, project};

/// Places of a table, with all of its columns.
#[derive(Clone, Debug, PartialEq)]
pub struct PlaceTable {
    /// The names of the columns.
    pub header: Vec<String>,
    /// The fields of every line.
    pub lines: Vec<Vec<String>>,
    /// The place of every line.
    pub sites: Vec<Site>,
}

impl PlaceTable {
    /// The points to ask a model about: the moments of a column of times are read if the model tells
    /// moments apart. A line without a time asks about the latest.
    pub fn points(
        &self,
        model: &Model,
        format: &MomentFormat,
    ) -> std::result::Result<Points, String> {
        let points = Points::from(self.sites.clone());
        let header: Vec<&str> = self.header.iter().map(String::as_str).collect();
        let Some(column) = time(&header).filter(|_| model.sees_times()) else { return Ok(points) };
        let of = |(i, line): (usize, &Vec<String>)| match line.get(column).map(|t| t.trim()) {
            None | Some("") => Ok(f64::NAN),
            Some(text) => format.read(text).map_err(|why| format!("line {}: {why}", i + 2)),
        };
        let time_s =
            self.lines.iter().enumerate().map(of).collect::<std::result::Result<_, _>>()?;
        points.with_time_s(Some(time_s)).map_err(|error| error.to_string())
    }

    /// The device of every line among those that a model knows; of none where the table has no
    /// column of devices or a name is not among them.
    pub fn devices(&self, known: &Devices) -> Vec<Option<usize>> {
        let header: Vec<&str> = self.header.iter().map(String::as_str).collect();
        let column = device(&header);
        let known = |line: &Vec<String>| known.position(line.get(column?)?.trim());
        self.lines.iter().map(known).collect()
    }
}

/// Reads a table with the columns x_m and y_m, or lat and lon where the coordinate system of the
/// model is known, and z_m where places have heights; the other columns are kept as they are. Places
/// without a height take `height_m`, the usual one of the model's readings. With `floor_height_m`, metres
/// from floor to floor, a column of floors becomes heights.
///
/// ```
/// use portolan::Site;
/// use portolan_io::read_places;
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("places.csv");
/// std::fs::write(&path, "name,x_m,y_m\ndoor,1.5,2\ndesk,4,0\n")?;
/// let places = read_places(&path, None, 0.0, None)?;
/// assert_eq!(places.sites[1], Site::new(4.0, 0.0));
/// assert_eq!(places.lines[0][0], "door");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_places(
    path: impl AsRef<Path>,
    crs: Option<Crs>,
    height_m: f64,
    floor_height_m: Option<f64>,
) -> Result<PlaceTable> {
    let path = path.as_ref();
    let mut source = Source::open(path)?;
    source.format(path, None).map_err(|problem| problem.in_file(path))?;
    parse(source.bytes(), crs, (height_m, floor_height_m)).map_err(|problem| problem.in_file(path))
}

pub(crate) fn parse(
    bytes: &[u8],
    crs: Option<Crs>,
    (height_m, floor_height_m): (f64, Option<f64>),
) -> Check<PlaceTable> {
    let mut lines = Lines::open(bytes)?;
    let header = lines.next()?.ok_or_else(|| Problem::new("line 1: expected a header"))?;
    let names: Vec<String> = header.fields().iter().map(|name| name.trim().to_string()).collect();
    let of_floor = floor(&header.fields()).zip(floor_height_m);
    let height = height(&header.fields()).map(|column| (column, 1.0)).or(of_floor);
    let (x, y, on_earth) = match position(&header.fields())? {
        Position::Metres(x, y, _) | Position::Both([_, _, x, y], _) => (x, y, false),
        Position::Degrees(lat, lon) => (lon, lat, true),
        Position::Cell(..) => {
            return Err(Problem::new("line 1: cells, expected x_m and y_m, or lat and lon"));
        }
    };
    if on_earth && crs.is_none() {
        return Err(Problem::new(
            "holds latitudes and longitudes, but the model has no coordinate system: fit it to \
             readings with lat and lon, or with --crs",
        ));
    }
    lines.columns = names.len();
    let mut places = PlaceTable { header: names, lines: Vec::new(), sites: Vec::new() };
    while let Some(line) = lines.next()? {
        let own =
            height.map(|(column, unit_m)| line.number(column).map(|n| unit_m * n)).transpose()?;
        let z_m = own.filter(|z| !z.is_nan()).unwrap_or(height_m);
        places.sites.push(Site::new(place(&line, x)?, place(&line, y)?).at_height(z_m));
        places.lines.push(line.fields().iter().map(|field| field.to_string()).collect());
    }
    if places.sites.is_empty() {
        return Err(Problem::new("a header but no places below it"));
    }
    if on_earth {
        project(&mut places.sites, crs)?;
    }
    Ok(places)
}

/// Writes the places with power, spread and reading spread of some bands: `dbm_LABEL` (`db_LABEL`
/// without calibration, `power_LABEL` where powers are relative), `spread_db_LABEL`,
/// `reading_spread_db_LABEL`; where some bands were not heard everywhere, also `chance_heard_LABEL`
/// and `heard_dbm_LABEL`, what a receiver that hears it reports.
pub fn write_predictions(
    path: impl AsRef<Path>,
    places: &PlaceTable,
    prediction: &Prediction,
    (labels, bands, scale): (&BandLabels, &[usize], Scale),
    force: bool,
) -> Result<()> {
    let unit = Unit::of_scale(scale);
    let word = match unit {
        Unit::Relative | Unit::Linear => "power",
        Unit::Dbm => "dbm",
        Unit::Db => "db",
    };
    let heard = match unit {
        Unit::Relative | Unit::Linear => "heard_power",
        Unit::Dbm => "heard_dbm",
        Unit::Db => "heard_db",
    };
    let columns = [
        Some((word, &prediction.power, unit)),
        prediction.spread_db.as_ref().map(|s| ("spread_db", s, Unit::Linear)),
        prediction.reading_spread_db.as_ref().map(|s| ("reading_spread_db", s, Unit::Linear)),
        prediction.chance_heard.as_ref().map(|s| ("chance_heard", s, Unit::Linear)),
        prediction.heard.as_ref().map(|s| (heard, s, unit)),
    ];
    write_file(path.as_ref(), force, |out| {
        let mut writer = csv::Writer::from_writer(out);
        let mut header = places.header.clone();
        for &band in bands {
            let label = labels.label(band);
            header.extend(columns.iter().flatten().map(|(word, ..)| format!("{word}_{label}")));
        }
        writer.write_record(&header)?;
        for (i, own) in places.lines.iter().enumerate() {
            let mut record = own.clone();
            for out in 0..bands.len() {
                for (_, values, unit) in columns.iter().flatten() {
                    record.push(unit.from_linear(values[[i, out]]).to_string());
                }
            }
            writer.write_record(&record)?;
        }
        writer.flush()?;
        writer.into_inner().map_err(|error| error.into_error())?.flush()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gis::earth::Projection;

    #[test]
    fn places_keep_their_other_columns() {
        let found =
            parse(b"name,y_m,x_m\nhall,2.5,1\n\"a, b\",-3,4e3\n", None, (0.0, None)).unwrap();
        assert_eq!(found.sites, [Site::new(1.0, 2.5), Site::new(4000.0, -3.0)]);
        assert_eq!(found.lines[1][0], "a, b");
        let found = parse(b"x_m,y_m,z_m\n1,2,6.4\n3,4,\n", None, (3.2, None)).unwrap();
        assert_eq!(found.sites.iter().map(|s| s.z_m).collect::<Vec<_>>(), [6.4, 3.2]);
        for wrong in ["x_m,z\n1,2\n", "x_m,y_m\n", "x_m,y_m\n1,\n", "x_m,y_m\n1,inf\n", ""] {
            assert!(parse(wrong.as_bytes(), None, (0.0, None)).is_err(), "{wrong}");
        }
        let on_earth = b"lat,lon\n49.5,8.5\n";
        assert!(
            parse(on_earth, None, (0.0, None))
                .unwrap_err()
                .to_string()
                .contains("coordinate system")
        );
        let found = parse(on_earth, Some(Crs::Epsg(32632)), (0.0, None)).unwrap();
        let back = Projection::of(Crs::Epsg(32632)).unwrap().inverse(found.sites[0]).unwrap();
        assert!((back.lat - 49.5).abs() < 1e-9 && (back.lon - 8.5).abs() < 1e-9);
    }
}
