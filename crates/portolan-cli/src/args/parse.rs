//! Words of the command line.

use portolan::{Cell, Emitters};
use portolan_io::parse;
pub use portolan_io::parse::{
    band_by, combine, format, freq_unit, frequency, grid, pair, range, region, silence,
};

/// Several values of one option.
#[derive(Clone, Debug)]
pub struct Codes(pub Vec<f64>);

impl Codes {
    pub fn parse(text: &str) -> Result<Self, String> {
        portolan_io::parse::missing(text).map(Self)
    }
}

/// Values in rising order.
pub type Levels = std::sync::Arc<[f64]>;

fn numbers(text: &str, wrong: impl Fn() -> String) -> Result<Vec<f64>, String> {
    let number = |word: &str| word.trim().parse::<f64>().ok().filter(|n| n.is_finite());
    text.split(',').map(|word| number(word).ok_or_else(&wrong)).collect()
}

/// One to 30 values in rising order.
pub fn levels(text: &str) -> Result<Levels, String> {
    parse::levels(text).map(Into::into)
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
