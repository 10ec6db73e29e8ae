//! The header of a table: which columns are positions and which are bands, at what frequency and
//! in what unit.

use crate::error::{Check, Problem, quoted, shown};
use crate::options::Unit;

/// Where a sensor stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    /// Columns that hold row and col.
    Cell(usize, usize),
    /// Columns that hold x_m and y_m.
    Metres(usize, usize),
    /// Columns that hold row, col, x_m and y_m: the cells of a map.
    Both([usize; 4]),
}

impl Position {
    fn in_metres(self) -> bool {
        !matches!(self, Position::Cell(..))
    }

    fn holds(self, column: usize) -> bool {
        match self {
            Position::Cell(a, b) | Position::Metres(a, b) => column == a || column == b,
            Position::Both(columns) => columns.contains(&column),
        }
    }
}

/// A column of values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Band {
    pub column: usize,
    pub freq_hz: Option<f64>,
    /// Its name, where that is neither a frequency nor a number.
    pub label: Option<String>,
    pub unit: Unit,
    /// The column with its spread, in a map.
    pub spread: Option<usize>,
}

/// What the columns of a table mean.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TableLayout {
    /// A line per sensor, a column per band.
    Wide { position: Position, bands: Vec<Band> },
    /// A line per sensor and band; frequencies are multiplied by `scale` to give Hz.
    Long { position: Position, freq: usize, scale: f64, power: usize, unit: Unit },
}

/// Hz per unit of a frequency, by the suffix of its name.
const SCALES: [(&str, f64); 4] = [("khz", 1e3), ("mhz", 1e6), ("ghz", 1e9), ("hz", 1.0)];

/// The words for a unit in a column's name.
const UNITS: [(&str, Unit); 5] = [
    ("dbm", Unit::Dbm),
    ("mw", Unit::Linear),
    ("linear", Unit::Linear),
    ("db", Unit::Db),
    ("relative", Unit::Relative),
];

/// How the columns begin that hold the spread of a map's bands.
const SPREAD: &str = "spread_db_";
const READING_SPREAD: &str = "reading_spread_db_";

pub(crate) fn layout(
    header: &[&str],
    unit: Option<Unit>,
    warnings: &mut Vec<String>,
) -> Check<TableLayout> {
    let names: Vec<String> = header.iter().map(|name| name.trim().to_ascii_lowercase()).collect();
    let position = position(&names)?;
    if let Some(column) = (1..names.len()).find(|&c| names[..c].contains(&names[c])) {
        return Err(wrong(column, header[column], "a second column of that name"));
    }
    let spreads: Vec<usize> = (0..names.len()).filter(|c| names[*c].starts_with(SPREAD)).collect();
    // Beside metres, degrees say the same once more.
    let degrees = |c: usize| position.in_metres() && matches!(&*names[c], "lat" | "lon");
    let extra =
        |c: usize| spreads.contains(&c) || names[c].starts_with(READING_SPREAD) || degrees(c);
    let rest: Vec<usize> = (0..names.len()).filter(|c| !position.holds(*c) && !extra(*c)).collect();
    if let Some((freq, scale)) =
        rest.iter().find_map(|&c| frequency_column(&names[c]).map(|s| (c, s)))
    {
        return long(header, &names, position, &rest, (freq, scale), unit);
    }
    let mut bands = Vec::with_capacity(rest.len());
    for column in rest {
        bands.push(band(column, header[column], &names[column], unit, warnings)?);
    }
    for &column in &spreads {
        let of = names[column].strip_prefix(SPREAD).unwrap_or_default();
        let band =
            bands.iter_mut().find(|band: &&mut Band| split_unit(&names[band.column]).0 == of);
        match band {
            Some(band) => band.spread = Some(column),
            None => return Err(wrong(column, header[column], "there is no such band")),
        }
    }
    let Some(first) = bands.first() else {
        return Err(Problem::new("line 1: no band columns, expected names such as dbm_2412MHz"));
    };
    let has_freq = first.freq_hz.is_some();
    if let Some(odd) = bands.iter().find(|band| band.freq_hz.is_some() != has_freq) {
        let what = "expected a frequency in the name of every band or of none";
        return Err(wrong(odd.column, header[odd.column], what));
    }
    Ok(TableLayout::Wide { position, bands })
}

fn wrong(column: usize, name: &str, what: &str) -> Problem {
    Problem::new(format!("line 1, column {} {}: {what}", column + 1, quoted(name)))
}

fn position(names: &[String]) -> Check<Position> {
    let find = |name: &str| names.iter().position(|n| n == name);
    match (find("row"), find("col"), find("x_m"), find("y_m")) {
        (Some(row), Some(col), None, None) => Ok(Position::Cell(row, col)),
        (None, None, Some(x), Some(y)) => Ok(Position::Metres(x, y)),
        (Some(row), Some(col), Some(x), Some(y)) => Ok(Position::Both([row, col, x, y])),
        _ => Err(Problem::new(
            "line 1: expected a header with the columns row,col or x_m,y_m (one pair of them)",
        )),
    }
}

/// The scale of a column of frequencies: `freq_hz`, `frequency_mhz` and the like.
fn frequency_column(name: &str) -> Option<f64> {
    let unit = name.strip_prefix("freq_").or_else(|| name.strip_prefix("frequency_"))?;
    SCALES.iter().find(|(suffix, _)| *suffix == unit).map(|(_, scale)| *scale)
}

fn long(
    header: &[&str],
    names: &[String],
    position: Position,
    rest: &[usize],
    (freq, scale): (usize, f64),
    asked: Option<Unit>,
) -> Check<TableLayout> {
    let mut power = None;
    for &column in rest.iter().filter(|c| **c != freq) {
        let (bare, named) = split_unit(&names[column]);
        if bare != "power" || power.is_some() {
            let what = "not expected beside a column of frequencies: one column 'power_dbm', \
                        'power_mw' or 'power' is";
            return Err(wrong(column, header[column], what));
        }
        power = Some((column, decide(column, header[column], named, asked)?));
    }
    let (power, unit) = power.ok_or_else(|| {
        Problem::new("line 1: a column of frequencies but none of power, expected 'power_dbm'")
    })?;
    Ok(TableLayout::Long { position, freq, scale, power, unit })
}

fn band(
    column: usize,
    written: &str,
    name: &str,
    asked: Option<Unit>,
    warnings: &mut Vec<String>,
) -> Check<Band> {
    let (bare, named) = split_unit(name);
    let mut label = None;
    let expected = "expected row,col, x_m,y_m or a band such as 2412MHz, dbm_2412MHz or 2.412e9";
    let freq_hz = match frequency(bare) {
        Some((freq_hz, spelled_out)) => {
            if !spelled_out && freq_hz < 1e5 {
                let name = quoted(written);
                warnings.push(format!(
                    "column {name} is read as {} Hz: add MHz or GHz if meant so",
                    shown(freq_hz)
                ));
            }
            Some(freq_hz)
        }
        None if is_numbered(bare) => None,
        // A name that says its unit is a band's, whatever else it says.
        None if named.is_some() && !bare.is_empty() => {
            let at = name.find(bare).unwrap_or(0);
            label = written.trim().get(at..at + bare.len()).map(str::to_string);
            None
        }
        None => return Err(wrong(column, written, expected)),
    };
    let unit = decide(column, written, named, asked)?;
    Ok(Band { column, freq_hz, label, unit, spread: None })
}

/// The unit that a name and the caller agree on.
fn decide(column: usize, written: &str, named: Option<Unit>, asked: Option<Unit>) -> Check<Unit> {
    match (named, asked) {
        (Some(named), Some(asked)) if named != asked => {
            Err(wrong(column, written, "its name says another unit than --unit does"))
        }
        (named, asked) => named.or(asked).ok_or_else(|| {
            wrong(column, written, "its unit is not clear: pass --unit dbm or --unit linear")
        }),
    }
}

/// Parts `dbm_2412mhz` or `power_dbm` into the name and the unit.
fn split_unit(name: &str) -> (&str, Option<Unit>) {
    for (word, unit) in UNITS {
        let before = name.strip_prefix(word).and_then(|rest| rest.strip_prefix('_'));
        let after = || name.strip_suffix(word).and_then(|rest| rest.strip_suffix('_'));
        if let Some(bare) = before.or_else(after) {
            return (bare, Some(unit));
        }
    }
    (name, None)
}

/// A frequency in Hz, and whether its unit was spelled out.
fn frequency(text: &str) -> Option<(f64, bool)> {
    let (number, scale) = SCALES
        .iter()
        .find_map(|(suffix, scale)| Some((text.strip_suffix(suffix)?, Some(*scale))))
        .unwrap_or((text, None));
    let number = number.trim_end_matches(['_', ' ']);
    // Rust would also take "inf" and "nan" for numbers.
    if !number.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let freq_hz = number.parse::<f64>().ok()? * scale.unwrap_or(1.0);
    (freq_hz.is_finite() && freq_hz > 0.0).then_some((freq_hz, scale.is_some()))
}

/// `band0`, `band_12`: a band whose frequency nobody knows.
fn is_numbered(text: &str) -> bool {
    let digits = text.strip_prefix("band").map(|rest| rest.strip_prefix('_').unwrap_or(rest));
    digits.is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(header: &str, unit: Option<Unit>) -> Check<TableLayout> {
        layout(&header.split(',').collect::<Vec<_>>(), unit, &mut Vec::new())
    }

    #[test]
    fn names_of_bands() {
        for (name, hz) in [
            ("dbm_2412MHz", 2.412e9),
            ("dBm_2.412GHz", 2.412e9),
            ("2.412e9_dbm", 2.412e9),
            ("DBM_900 kHz", 9e5),
            ("dbm_100Hz", 100.0),
        ] {
            let Ok(TableLayout::Wide { bands, .. }) = read(&format!("row,col,{name}"), None) else {
                panic!("{name}")
            };
            let (freq_hz, unit) = (Some(hz), Unit::Dbm);
            let band = Band { column: 2, freq_hz, label: None, unit, spread: None };
            assert_eq!(bands, [band], "{name}");
        }
        let Ok(TableLayout::Wide { bands, position }) = read("mw_band_3,y_m,x_m", None) else {
            panic!()
        };
        let unit = Unit::Linear;
        assert_eq!(bands, [Band { column: 0, freq_hz: None, label: None, unit, spread: None }]);
        assert_eq!(position, Position::Metres(2, 1));
    }

    #[test]
    fn the_unit_is_never_guessed() {
        let error = |header, unit| format!("{:?}", read(header, unit).unwrap_err());
        assert!(error("row,col,2412MHz", None).contains("--unit dbm or --unit linear"));
        assert!(error("row,col,2412MHz", None).contains("column 3 '2412MHz'"));
        assert!(error("row,col,dbm_2412MHz", Some(Unit::Linear)).contains("another unit"));
        assert!(error("x_m,y_m,freq_hz,power", None).contains("--unit dbm"));
        assert!(read("row,col,2412MHz", Some(Unit::Dbm)).is_ok());
        assert!(read("x_m,y_m,freq_hz,power", Some(Unit::Linear)).is_ok());
    }

    #[test]
    fn headers_that_say_something_else() {
        for header in [
            "",
            "0,0,-70",
            "row,col",
            "row,x_m,dbm_1GHz",
            "row,col,dbm_1GHz,dbm_1GHz",
            "row,col,dbm_1GHz,comment",
            "row,col,nanHz",
            "row,col,dbm_",
            "row,col,dbm_1GHz,dbm_band2",
            "row,col,freq_hz",
            "row,col,freq_hz,power_dbm,power_mw",
        ] {
            assert!(read(header, None).is_err(), "{header}");
        }
    }

    #[test]
    fn a_bare_small_number_is_doubted() {
        let mut warnings = Vec::new();
        layout(&["row", "col", "2412"], Some(Unit::Dbm), &mut warnings).unwrap();
        assert!(warnings[0].contains("2412 Hz"), "{warnings:?}");
    }
}
