//! Words of the command line.

use portolan::{Cell, Emitters, Region, Site};
use portolan_io::{BandBy, Format, Silence};

pub fn grid(text: &str) -> Result<(usize, usize), String> {
    let wrong = || format!("'{text}': expected ROWSxCOLS, such as 64x64");
    let (rows, cols) = text.split_once(['x', 'X']).ok_or_else(wrong)?;
    match (rows.parse(), cols.parse()) {
        (Ok(rows), Ok(cols)) => Ok((rows, cols)),
        _ => Err(wrong()),
    }
}

pub fn pair(text: &str) -> Result<(f64, f64), String> {
    let wrong = || format!("'{text}': expected X,Y in metres");
    let (x, y) = text.split_once(',').ok_or_else(wrong)?;
    match (x.trim().parse::<f64>(), y.trim().parse::<f64>()) {
        (Ok(x), Ok(y)) if x.is_finite() && y.is_finite() => Ok((x, y)),
        _ => Err(wrong()),
    }
}

/// Two corners of a rectangle.
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

/// Values in rising order.
pub type Levels = std::sync::Arc<[f64]>;

fn numbers(text: &str, wrong: impl Fn() -> String) -> Result<Vec<f64>, String> {
    let number = |word: &str| word.trim().parse::<f64>().ok().filter(|n| n.is_finite());
    text.split(',').map(|word| number(word).ok_or_else(&wrong)).collect()
}

/// Two values, the lower first.
pub fn range(text: &str) -> Result<(f64, f64), String> {
    let wrong = || format!("'{text}': expected LOW,HIGH, the lower first, such as -100,-40");
    match numbers(text, wrong)?[..] {
        [low, high] if low < high => Ok((low, high)),
        _ => Err(wrong()),
    }
}

/// One to 30 values in rising order.
pub fn levels(text: &str) -> Result<Levels, String> {
    let wrong = || format!("'{text}': expected 1 to 30 rising values, such as -90,-80,-70");
    let levels = numbers(text, wrong)?;
    let rising = levels.windows(2).all(|pair| pair[0] < pair[1]);
    if rising && levels.len() <= 30 { Ok(levels.into()) } else { Err(wrong()) }
}

pub fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(format!("'{text}': expected a number from 0 to 1")),
    }
}

/// Three points of an image with their places in metres: px, py, x, y.
pub type Control = std::sync::Arc<[[f64; 4]; 3]>;

pub fn control(text: &str) -> Result<Control, String> {
    let wrong = || format!("'{text}': expected three points as \"PX,PY=X,Y;PX,PY=X,Y;PX,PY=X,Y\"");
    let point = |part: &str| {
        let (pixel, place) = part.split_once('=').ok_or_else(wrong)?;
        match (&numbers(pixel, wrong)?[..], &numbers(place, wrong)?[..]) {
            ([px, py], [x, y]) => Ok([*px, *py, *x, *y]),
            _ => Err(wrong()),
        }
    };
    let points: Vec<[f64; 4]> =
        text.trim_end_matches(';').split(';').map(point).collect::<Result<_, _>>()?;
    points.try_into().map(std::sync::Arc::new).map_err(|_| wrong())
}

pub fn emitters(text: &str) -> Result<Emitters, String> {
    match text.parse::<usize>() {
        _ if text == "auto" => Ok(Emitters::Auto),
        Ok(count) if count > 0 => Ok(Emitters::Count(count)),
        _ => Err(format!("'{text}': expected a whole number above 0, or auto")),
    }
}

/// A value that means "not heard", or the word absent.
pub fn silence(text: &str) -> Result<Silence, String> {
    match text.parse::<f64>() {
        _ if text == "absent" => Ok(Silence::Absent),
        Ok(code) if code.is_finite() => Ok(Silence::Code(code)),
        _ => Err(format!("'{text}': expected a number or absent")),
    }
}

pub fn band_by(text: &str) -> Result<BandBy, String> {
    let known = [BandBy::Bssid, BandBy::Ssid, BandBy::Frequency, BandBy::Channel];
    let found = known.into_iter().find(|by| by.to_string() == text);
    found.ok_or_else(|| format!("'{text}': expected bssid, ssid, freq or channel"))
}

pub fn format(text: &str) -> Result<Format, String> {
    let wrong = || format!("'{text}': expected csv, wigle, sweep, geojson, trace, npz, npy or mat");
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

pub fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.into(), value.into())),
        _ => Err(format!("'{text}': expected KEY=VALUE")),
    }
}

/// Cells as "row,col" separated by blanks, semicolons or line ends. A header may name further
/// columns, as the places of `portolan advise` have.
pub fn cells(text: &str) -> Result<Vec<Cell>, String> {
    let mut columns = 2;
    let mut cells = Vec::new();
    for part in text.split([' ', ';', '\n', '\r', '\t']).filter(|part| !part.is_empty()) {
        let fields: Vec<&str> = part.split(',').collect();
        let named = fields.iter().take(2).map(|field| field.to_ascii_lowercase());
        if named.eq(["row", "col"]) {
            columns = fields.len();
            continue;
        }
        match (fields.len() == columns, fields[0].parse(), fields.get(1).map(|col| col.parse())) {
            (true, Ok(row), Some(Ok(col))) => cells.push(Cell::new(row, col)),
            _ => return Err(format!("'{part}': expected row,col as whole numbers from 0")),
        }
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_parsed_or_refused() {
        assert_eq!(grid("34x14"), Ok((34, 14)));
        assert!(grid("34").is_err());
        assert_eq!(emitters("3"), Ok(Emitters::Count(3)));
        assert!(emitters("0").is_err());
        assert_eq!(cells("1,2 3,4;5,6").unwrap().len(), 3);
        let places = "row,col,x_m,y_m\n10,1,20,2\n3,4,6,8\n";
        assert_eq!(cells(places).unwrap(), [Cell::new(10, 1), Cell::new(3, 4)]);
        assert!(cells("10,1,20,2").is_err() && cells("row,col\n1,2,3").is_err());
        assert!(cells("1,x").is_err());
        assert!(setting("=3").is_err());
        assert_eq!(range("-100,-40"), Ok((-100.0, -40.0)));
        assert!(range("-40,-100").is_err() && range("1").is_err() && range("a,b").is_err());
        assert_eq!(levels("-90, -80").unwrap()[..], [-90.0, -80.0]);
        assert!(levels("-80,-90").is_err() && levels("").is_err() && levels("nan").is_err());
        assert_eq!(control("0,0=1,2;9,0=3,4;0,9=5,6").unwrap()[1], [9.0, 0.0, 3.0, 4.0]);
        assert!(control("0,0=1,2;9,0=3,4").is_err() && control("0,0,1,2").is_err());
        assert!(share("1.1").is_err() && share("0.5") == Ok(0.5));
    }
}
