//! What people say about a file, as words: the command line and the explorer's page share them.

use std::path::Path;

use portolan::{Crs, Region, Site};

use crate::format::Format;
use crate::options::{BandBy, ColumnNames, Combine, ReadOptions, Silence, Unit};
use crate::survey::Clock;
use crate::table::RowFilter;

/// Rows and columns: 34x14.
pub fn grid(text: &str) -> Result<(usize, usize), String> {
    let wrong = || format!("'{text}': expected ROWSxCOLS, such as 64x64");
    let (rows, cols) = text.split_once(['x', 'X']).ok_or_else(wrong)?;
    match (rows.parse(), cols.parse()) {
        (Ok(rows), Ok(cols)) => Ok((rows, cols)),
        _ => Err(wrong()),
    }
}

/// A place in metres: X,Y.
pub fn pair(text: &str) -> Result<(f64, f64), String> {
    let wrong = || format!("'{text}': expected X,Y in metres");
    let (x, y) = text.split_once(',').ok_or_else(wrong)?;
    match (x.trim().parse::<f64>(), y.trim().parse::<f64>()) {
        (Ok(x), Ok(y)) if x.is_finite() && y.is_finite() => Ok((x, y)),
        _ => Err(wrong()),
    }
}

fn numbers(text: &str, wrong: impl Fn() -> String) -> Result<Vec<f64>, String> {
    let number = |word: &str| word.trim().parse::<f64>().ok().filter(|n| n.is_finite());
    text.split(',').map(|word| number(word).ok_or_else(&wrong)).collect()
}

/// Two values, the lower first: LOW,HIGH.
pub fn range(text: &str) -> Result<(f64, f64), String> {
    let wrong = || format!("'{text}': expected LOW,HIGH, the lower first, such as -100,-40");
    match numbers(text, wrong)?[..] {
        [low, high] if low < high => Ok((low, high)),
        _ => Err(wrong()),
    }
}

/// One to 30 values in rising order.
pub fn levels(text: &str) -> Result<Vec<f64>, String> {
    let wrong = || format!("'{text}': expected 1 to 30 rising values, such as -90,-80,-70");
    let levels = numbers(text, wrong)?;
    let rising = levels.windows(2).all(|pair| pair[0] < pair[1]);
    if rising && levels.len() <= 30 { Ok(levels) } else { Err(wrong()) }
}

/// Two corners of a rectangle: X0,Y0,X1,Y1.
pub fn region(text: &str) -> Result<Region, String> {
    let wrong = || format!("'{text}': expected X0,Y0,X1,Y1 in metres, the low corner first");
    let numbers: Vec<f64> =
        text.split(',').map(|n| n.trim().parse().map_err(|_| wrong())).collect::<Result<_, _>>()?;
    match numbers[..] {
        [x0, y0, x1, y1] if x0 < x1 && y0 < y1 && x1 - x0 + y1 - y0 < f64::INFINITY => {
            Ok(Region { low: Site::new(x0, y0), high: Site::new(x1, y1) })
        }
        _ => Err(wrong()),
    }
}

/// Values that mean "not heard", or the word absent.
pub fn silence(text: &str) -> Result<Silence, String> {
    if text == "absent" {
        return Ok(Silence::Absent);
    }
    if text == "below-serving" {
        return Ok(Silence::BelowServing);
    }
    let wrong = || format!("'{text}': expected numbers such as -200,-340, absent or below-serving");
    numbers(text, wrong).map(Silence::Codes)
}

/// Codes that mean "no reading".
pub fn missing(text: &str) -> Result<Vec<f64>, String> {
    numbers(text, || format!("'{text}': expected numbers, such as -200,-340"))
}

/// How the transmitters of a network become one band.
pub fn combine(text: &str) -> Result<Combine, String> {
    Ok(match text {
        "strongest" => Combine::Strongest,
        "sum" => Combine::Sum,
        "mean" => Combine::Mean,
        _ => return Err(format!("'{text}': expected strongest, sum or mean")),
    })
}

/// The unit of frequencies, in Hz.
pub fn freq_unit(text: &str) -> Result<f64, String> {
    let known = [("hz", 1.0), ("khz", 1e3), ("mhz", 1e6), ("ghz", 1e9)];
    let found = known.into_iter().find(|(name, _)| text.eq_ignore_ascii_case(name));
    found.map(|(_, hz)| hz).ok_or_else(|| format!("'{text}': expected Hz, kHz, MHz or GHz"))
}

/// Seconds of a unit of time.
pub fn time_unit(text: &str) -> Result<f64, String> {
    let days = match text.trim_end_matches('s') {
        "second" => 1.0 / 86_400.0,
        "minute" => 1.0 / 1440.0,
        "hour" => 1.0 / 24.0,
        "day" => 1.0,
        "week" => 7.0,
        // Of the Gregorian year.
        "month" => 365.2425 / 12.0,
        "year" => 365.2425,
        _ => {
            return Err("expected second, minute, hour, day, week, month or year".into());
        }
    };
    Ok(86_400.0 * days)
}

/// A positive number of metres.
pub fn metres(text: &str) -> Result<f64, String> {
    let found = text.trim().parse().ok().filter(|m: &f64| m.is_finite() && *m > 0.0);
    found.ok_or_else(|| format!("'{text}': expected a positive number of metres"))
}

/// What tells bands apart.
pub fn band_by(text: &str) -> Result<BandBy, String> {
    let known = [BandBy::Bssid, BandBy::Ssid, BandBy::Frequency, BandBy::Channel];
    if let Some(by) = known.into_iter().find(|by| by.to_string() == text) {
        return Ok(by);
    }
    let names: Vec<String> = text.split(',').map(|name| name.trim().to_string()).collect();
    match names.iter().all(|name| !name.is_empty()) {
        true => Ok(BandBy::Columns(names)),
        false => Err(format!("'{text}': expected bssid, ssid, freq, channel or names of columns")),
    }
}

/// The format of an input.
pub fn format(text: &str) -> Result<Format, String> {
    let wrong = || format!("'{text}': expected one of {}", Format::names());
    Format::named(text).ok_or_else(wrong)
}

/// A frequency in Hz, with kHz, MHz or GHz behind it where meant so.
pub fn frequency(text: &str) -> Result<f64, String> {
    let lower = text.trim().to_ascii_lowercase();
    let (number, scale) = [("khz", 1e3), ("mhz", 1e6), ("ghz", 1e9), ("hz", 1.0)]
        .into_iter()
        .find_map(|(suffix, scale)| Some((lower.strip_suffix(suffix)?, scale)))
        .unwrap_or((&lower, 1.0));
    match number.trim().parse::<f64>() {
        Ok(value) if value.is_finite() && value > 0.0 => Ok(value * scale),
        _ => Err(format!("'{text}': expected a frequency, such as 200kHz or 2.4e9")),
    }
}

/// The unit of values.
pub fn unit(text: &str) -> Result<Unit, String> {
    Ok(match text {
        "linear" => Unit::Linear,
        "dbm" => Unit::Dbm,
        "db" => Unit::Db,
        "relative" => Unit::Relative,
        _ => return Err(format!("'{text}': expected linear, dbm, db or relative")),
    })
}

/// Words that [`ReadOptions::tell`] knows, each an option of the command of the same name.
pub const READ_WORDS: [&str; 23] = [
    "unit",
    "grid",
    "cell-m",
    "origin",
    "crs",
    "var",
    "not-heard",
    "floor-db",
    "format",
    "columns",
    "band-by",
    "min-places",
    "gather",
    "utc-offset",
    "band-width",
    "band-edges",
    "missing",
    "combine",
    "where",
    "freq-unit",
    "time-unit",
    "strict",
    "accept",
];

impl ReadOptions {
    /// Sets the option that the command calls `--name`; its value is read as the command reads it.
    ///
    /// ```
    /// use portolan_io::{ReadOptions, Unit};
    /// let mut options = ReadOptions::default();
    /// options.tell("unit", "dbm")?;
    /// options.tell("grid", "34x14")?;
    /// assert_eq!((options.unit, options.grid), (Some(Unit::Dbm), Some((34, 14))));
    /// assert!(options.tell("unit", "volt").is_err() && options.tell("colour", "red").is_err());
    /// # Ok::<(), String>(())
    /// ```
    pub fn tell(&mut self, name: &str, value: &str) -> Result<(), String> {
        let number = |text: &str| {
            let found = text.parse::<f64>().ok().filter(|number| number.is_finite());
            found.ok_or_else(|| format!("'{text}': expected a number"))
        };
        let count = |text: &str| {
            text.parse::<usize>().map_err(|_| format!("'{text}': expected a whole number"))
        };
        let flag = |text: &str| match text {
            "" | "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(format!("'{text}': expected true or false")),
        };
        let told = match name {
            "unit" => unit(value).map(|found| self.unit = Some(found)),
            "grid" => grid(value).map(|found| self.grid = Some(found)),
            "cell-m" => number(value).map(|found| self.cell_m = Some(found)),
            "origin" => pair(value).map(|found| self.origin_m = Some(found)),
            "crs" => value
                .parse::<Crs>()
                .map(|found| self.crs = Some(found))
                .map_err(|error| error.to_string()),
            "var" => {
                self.var = Some(value.to_owned());
                Ok(())
            }
            "not-heard" => silence(value).map(|found| self.not_heard = Some(found)),
            "floor-db" => number(value).map(|found| self.floor_db = Some(found)),
            "format" => format(value).map(|found| self.format = Some(found)),
            "columns" => ColumnNames::parse(value).map(|found| self.survey.columns = Some(found)),
            "band-by" => band_by(value).map(|found| self.survey.band_by = Some(found)),
            "min-places" => count(value).map(|found| self.survey.min_places = Some(found)),
            "gather" => number(value).map(|found| self.survey.gather_m = Some(found)),
            "utc-offset" => Clock::parse(value).map(|found| self.survey.clock = Some(found)),
            "missing" => missing(value).map(|found| self.missing = found),
            "combine" => combine(value).map(|found| self.survey.combine = Some(found)),
            "where" => RowFilter::parse(value).map(|found| self.survey.filter = Some(found)),
            "time-unit" => time_unit(value).map(|found| self.survey.time_unit_s = Some(found)),
            "floor-height" => metres(value).map(|found| self.survey.floor_height_m = Some(found)),
            "freq-unit" => freq_unit(value).map(|found| self.survey.freq_unit_hz = Some(found)),
            "strict" => flag(value).map(|found| self.strict = found),
            "accept" => flag(value).map(|found| self.accept = found),
            "band-width" => frequency(value).map(|found| self.survey.band_width_hz = Some(found)),
            "band-edges" => {
                let edges = value.split(',').map(frequency).collect::<Result<_, _>>();
                edges.map(|found| self.survey.band_edges_hz = Some(found))
            }
            _ => return Err(format!("'{name}': expected one of {}", READ_WORDS.join(", "))),
        };
        told.map_err(|message| format!("--{name} {message}"))
    }
}

/// A name that the page may show and a command may name: the last part of a path, without control
/// characters; as long as file systems let names be.
pub fn base_name(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let plain: String = name.chars().filter(|c| !c.is_control()).take(255).collect();
    if plain.is_empty() { "unnamed".into() } else { plain }
}
