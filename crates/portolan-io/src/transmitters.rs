//! Tables of transmitters whose places are known.

use std::path::Path;

use portolan::Readings;
use portolan::estimate::Transmitter;

use crate::error::{Check, Problem, Result};
use crate::places::{PlaceTable, parse, read_places};

/// Words for a column that says which band, for one that may, for power and for height.
const BAND: [&str; 3] = ["band", "label", "bands"];
const NAME: [&str; 2] = ["name", "id"];
const POWER: [&str; 4] = ["power_dbm", "power_db", "eirp_dbm", "power"];

/// Reads transmitters of the bands of some readings: `x_m` and `y_m`, or `lat` and `lon`; optionally
/// `band` (a label, a frequency, a number, or `all`), `power_dbm`, `z_m` (by default the height of the
/// readings). Without `band` a
/// `name` that is a band's label says it too. Returns what is to be said about them as well.
///
/// ```
/// use portolan_io::read_transmitters;
/// # use ndarray::array;
/// # use portolan::{BandLabels, Readings, Scale, Site, Values};
/// # let sites = vec![Site::new(0.0, 0.0), Site::new(3.5, 1.25)];
/// # let readings = Readings::new(sites, Values::Power(array![[1e-7, 5e-7], [8e-8, 1e-7]]), Scale::Absolute)?;
/// # let readings = readings.with_labels(BandLabels::from_frequencies(vec![2.412e9, 2.437e9])?)?;
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("transmitters.csv");
/// std::fs::write(&path, "x_m,y_m,band,z_m\n12,-3,2437MHz,8\n40,9,all,\n")?;
/// let (known, notes) = read_transmitters(&path, &readings)?;
/// assert_eq!((known[0].band, known[1].band), (Some(1), None));
/// assert_eq!((known[0].at.z_m, known[1].at.z_m), (8.0, 0.0));
/// assert!(notes.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_transmitters(
    path: impl AsRef<Path>,
    readings: &Readings,
) -> Result<(Vec<Transmitter>, Vec<String>)> {
    let path = path.as_ref();
    let table = read_places(path, readings.crs(), readings.height_m(), None)?;
    known(&table, readings).map_err(|problem| problem.in_file(path))
}

/// The same from the text of such a table, for callers that hold it in memory.
///
/// ```
/// use portolan_io::parse_transmitters;
/// # use ndarray::array;
/// # use portolan::{Readings, Scale, Site, Values};
/// # let sites = vec![Site::new(0.0, 0.0), Site::new(3.5, 1.25)];
/// # let readings = Readings::new(sites, Values::Power(array![[1e-7], [8e-8]]), Scale::Absolute)?;
/// let (known, notes) = parse_transmitters("x_m,y_m\n12,-3\n12,-3\n", &readings)?;
/// assert_eq!((known.len(), notes.len()), (2, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn parse_transmitters(
    text: &str,
    readings: &Readings,
) -> Result<(Vec<Transmitter>, Vec<String>)> {
    let found = parse(text.as_bytes(), readings.crs(), (readings.height_m(), None));
    let found = found.and_then(|table| known(&table, readings));
    found.map_err(|problem| problem.in_file(Path::new("transmitters")))
}

fn known(table: &PlaceTable, readings: &Readings) -> Check<(Vec<Transmitter>, Vec<String>)> {
    let column = |words: &[&str]| {
        table.header.iter().position(|name| words.contains(&name.trim().to_lowercase().as_str()))
    };
    let (labels, bands) = (readings.labels(), readings.bands());
    let power = column(&POWER);
    let named = column(&NAME)
        .filter(|&c| table.lines.iter().any(|line| labels.find(line[c].trim(), bands).is_some()));
    let which = column(&BAND).or(named);
    let mut found: Vec<Transmitter> = Vec::new();
    let mut notes = Vec::new();
    for (i, (line, &at)) in table.lines.iter().zip(&table.sites).enumerate() {
        let wrong = |what: String| Problem::new(format!("transmitter {}: {what}", i + 1));
        let mut own = Transmitter::new(at);
        if let Some(text) = which.map(|c| line[c].trim())
            && !text.is_empty()
            && !text.eq_ignore_ascii_case("all")
        {
            let band = labels.find(text, bands).ok_or_else(|| {
                let known: Vec<String> = (0..bands.min(8)).map(|b| labels.label(b)).collect();
                let more = if bands > 8 { ", .." } else { "" };
                wrong(format!("'{text}' is no band of the readings ({}{more})", known.join(", ")))
            })?;
            own = own.in_band(band);
        }
        let number = |column: Option<usize>, what: &str| -> Check<Option<f64>> {
            let text = column.map_or("", |c| line[c].trim());
            if text.is_empty() {
                return Ok(None);
            }
            let value: Option<f64> = text.parse().ok().filter(|v: &f64| v.is_finite());
            value.map(Some).ok_or_else(|| wrong(format!("{what} '{text}' is not a number")))
        };
        own.power_db = number(power, "power")?;
        let twin = |t: &Transmitter| t.at == own.at && t.band == own.band;
        if let Some(first) = found.iter().position(twin) {
            let (first, second) = (first + 1, i + 1);
            notes.push(format!("transmitters {first} and {second} stand at the same place"));
        }
        found.push(own);
    }
    Ok((found, notes))
}
