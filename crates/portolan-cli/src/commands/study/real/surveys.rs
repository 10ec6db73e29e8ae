//! The public surveys, as medians per place.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use ndarray::{Array2, Axis};
use portolan::{Scale, Site};
use portolan_io::gis::earth::{Degrees, Projection, crs_around};

use crate::failure::Failure;

/// Bands of a floor heard at fewer places are left out.
const LEAST_PLACES: usize = 25;

/// Fewer places cannot be split.
const FEWEST: usize = 25;

/// What UJIIndoorLoc writes for an access point that was not heard.
const SILENCE: f64 = 100.0;

/// A survey: one level per place and band.
pub struct Survey {
    /// In JSON and in the names of files.
    pub name: &'static str,
    /// In tables and pictures.
    pub title: &'static str,
    pub scale: Scale,
    pub sites: Vec<Site>,
    pub bands: Vec<String>,
    /// dB or dBm, places x bands; NaN where nothing was heard.
    pub level: Array2<f64>,
    /// Where the transmitter of each band stands, if that is known.
    pub transmitters: Vec<Site>,
    /// Whether a gap means that the receiver listened and heard nothing.
    pub gaps_are_silence: bool,
}

/// Reads the four surveys from the folder that holds them.
pub fn read(folder: &Path) -> Result<Vec<Survey>, Failure> {
    let all = vec![
        mannheim(&folder.join("mannheim/mannheim_median_dbm.csv"))?,
        powder(&folder.join("powder"))?,
        uji(&folder.join("uji/building0_floor1.csv"), "uji0", "UJI building 0")?,
        uji(&folder.join("uji/building2_floor1.csv"), "uji2", "UJI building 2")?,
    ];
    for survey in &all {
        let (places, bands) = survey.level.dim();
        if places < FEWEST || bands == 0 {
            return Err(Failure::input(format!(
                "{}: {places} places and {bands} bands, expected at least {FEWEST} places and a band",
                survey.title
            )));
        }
    }
    Ok(all)
}

fn mannheim(path: &Path) -> Result<Survey, Failure> {
    let table = Table::read(path)?;
    let bands = table.columns_after(&["x_m", "y_m"])?;
    let names = bands.iter().map(|&band| table.header[band].replace("dbm_", "")).collect();
    let level = table.levels(&bands)?;
    let (sites, level) = medians(&table.sites("x_m", "y_m")?, &level, 1.0);
    Ok(Survey {
        name: "mannheim",
        title: "Mannheim",
        scale: Scale::Absolute,
        sites,
        bands: names,
        level,
        transmitters: Vec::new(),
        gaps_are_silence: false,
    })
}

/// One transmitter was carried around and fixed receivers listened. Power is the same in both
/// directions, so each receiver counts as a band whose transmitter stands where the receiver does.
fn powder(folder: &Path) -> Result<Survey, Failure> {
    let table = Table::read(&folder.join("single_tx.csv"))?;
    let receivers = Table::read(&folder.join("receivers.csv"))?;
    let bands = table.columns_after(&["time", "lat", "lon"])?;
    let names: Vec<String> = bands.iter().map(|&band| table.header[band].clone()).collect();
    let walked = table.degrees()?;
    let plane = Projection::new(crs_around(&walked)).map_err(|why| table.wrong(&why))?;
    let metres = |table: &Table, places: &[Degrees]| -> Result<Vec<Site>, Failure> {
        places.iter().map(|at| plane.forward(*at).map_err(|why| table.wrong(&why))).collect()
    };
    let sites = metres(&table, &walked)?;
    let stands = metres(&receivers, &receivers.degrees()?)?;
    let name = receivers.column("name")?;
    let transmitters = names.iter().map(|band| {
        let found = receivers.rows.iter().position(|row| row.get(name) == Some(band));
        found.map(|row| stands[row]).ok_or_else(|| receivers.wrong(&format!("no line for {band}")))
    });
    let transmitters = transmitters.collect::<Result<_, _>>()?;
    let (sites, level) = medians(&sites, &table.levels(&bands)?, 20.0);
    Ok(Survey {
        name: "powder",
        title: "POWDER",
        scale: Scale::Uncalibrated,
        sites,
        bands: names,
        level,
        transmitters,
        gaps_are_silence: false,
    })
}

fn uji(path: &Path, name: &'static str, title: &'static str) -> Result<Survey, Failure> {
    let table = Table::read(path)?;
    let columns: Vec<usize> =
        (0..table.header.len()).filter(|&c| table.header[c].starts_with("WAP")).collect();
    let level = table.levels(&columns)?.mapv(|v| if v == SILENCE { f64::NAN } else { v });
    let (sites, level) = medians(&table.sites("x_m", "y_m")?, &level, 1.0);
    let heard =
        |band: &usize| level.column(*band).iter().filter(|v| !v.is_nan()).count() >= LEAST_PLACES;
    let kept: Vec<usize> = (0..columns.len()).filter(heard).collect();
    Ok(Survey {
        name,
        title,
        scale: Scale::Absolute,
        sites,
        bands: kept.iter().map(|&band| table.header[columns[band]].clone()).collect(),
        level: level.select(Axis(1), &kept),
        transmitters: Vec::new(),
        gaps_are_silence: true,
    })
}

/// Medians over squares of a side in metres, each at the mean of its positions, in the order in
/// which the squares were first visited.
fn medians(sites: &[Site], level: &Array2<f64>, side_m: f64) -> (Vec<Site>, Array2<f64>) {
    let mut squares: Vec<Vec<usize>> = Vec::new();
    let mut known: HashMap<(i64, i64), usize> = HashMap::new();
    for (scan, site) in sites.iter().enumerate() {
        let square = ((site.x_m / side_m).round() as i64, (site.y_m / side_m).round() as i64);
        let place = *known.entry(square).or_insert_with(|| {
            squares.push(Vec::new());
            squares.len() - 1
        });
        squares[place].push(scan);
    }
    let mean = |scans: &[usize], of: fn(&Site) -> f64| {
        scans.iter().map(|&scan| of(&sites[scan])).sum::<f64>() / scans.len() as f64
    };
    let places = squares.iter().map(|s| Site::new(mean(s, |a| a.x_m), mean(s, |a| a.y_m)));
    let level = Array2::from_shape_fn((squares.len(), level.ncols()), |(place, band)| {
        median(squares[place].iter().map(|&scan| level[[scan, band]]))
    });
    (places.collect(), level)
}

/// The median of what is not NaN.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut heard: Vec<f64> = values.filter(|v| !v.is_nan()).collect();
    heard.sort_by(f64::total_cmp);
    match heard.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => heard[n / 2],
        n => 0.5 * (heard[n / 2 - 1] + heard[n / 2]),
    }
}

/// A table with its header, as text.
struct Table {
    path: PathBuf,
    header: Vec<String>,
    rows: Vec<csv::StringRecord>,
}

impl Table {
    fn read(path: &Path) -> Result<Self, Failure> {
        let wrong = |error: csv::Error| match error.kind() {
            csv::ErrorKind::Io(error) => {
                Failure::input(format!("{}: cannot be opened: {error}", path.display()))
            }
            _ => Failure::input(format!("{}: {error}", path.display())),
        };
        let mut reader = csv::Reader::from_path(path).map_err(wrong)?;
        let header = reader.headers().map_err(wrong)?.iter().map(str::to_string).collect();
        let rows = reader.records().collect::<Result<_, _>>().map_err(wrong)?;
        Ok(Self { path: path.to_path_buf(), header, rows })
    }

    fn wrong(&self, why: &str) -> Failure {
        Failure::input(format!("{}: {why}", self.path.display()))
    }

    fn column(&self, name: &str) -> Result<usize, Failure> {
        let found = self.header.iter().position(|column| column == name);
        found.ok_or_else(|| self.wrong(&format!("has no column {name}")))
    }

    /// All columns but the named ones, which must be there.
    fn columns_after(&self, named: &[&str]) -> Result<Vec<usize>, Failure> {
        let named = named.iter().map(|name| self.column(name)).collect::<Result<Vec<_>, _>>()?;
        Ok((0..self.header.len()).filter(|column| !named.contains(column)).collect())
    }

    /// A number; NaN where the cell is empty.
    fn number(&self, row: usize, column: usize) -> Result<f64, Failure> {
        let text = self.rows[row].get(column).unwrap_or_default().trim();
        let number = if text.is_empty() { Ok(f64::NAN) } else { text.parse() };
        number.ok().filter(|v| !v.is_infinite()).ok_or_else(|| {
            let (line, column) = (row + 2, &self.header[column]);
            self.wrong(&format!("line {line}, column {column}: '{text}' is not a number"))
        })
    }

    fn levels(&self, columns: &[usize]) -> Result<Array2<f64>, Failure> {
        let mut level = Array2::zeros((self.rows.len(), columns.len()));
        for ((row, band), value) in level.indexed_iter_mut() {
            *value = self.number(row, columns[band])?;
        }
        Ok(level)
    }

    /// Two columns of numbers, without gaps.
    fn pairs(&self, first: &str, second: &str) -> Result<Vec<(f64, f64)>, Failure> {
        let (a, b) = (self.column(first)?, self.column(second)?);
        let pair = |row| {
            let pair = (self.number(row, a)?, self.number(row, b)?);
            if pair.0.is_nan() || pair.1.is_nan() {
                let line = row + 2;
                return Err(self.wrong(&format!("line {line} has no {first} and {second}")));
            }
            Ok(pair)
        };
        (0..self.rows.len()).map(pair).collect()
    }

    fn sites(&self, x: &str, y: &str) -> Result<Vec<Site>, Failure> {
        Ok(self.pairs(x, y)?.into_iter().map(|(x_m, y_m)| Site::new(x_m, y_m)).collect())
    }

    fn degrees(&self) -> Result<Vec<Degrees>, Failure> {
        Ok(self.pairs("lat", "lon")?.into_iter().map(|(lat, lon)| Degrees { lat, lon }).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn a_place_is_the_mean_of_its_scans_and_reads_their_median() {
        let sites = [(0.1, 0.0), (5.0, 5.0), (-0.3, 0.2), (0.2, 0.1)];
        let sites = sites.map(|(x, y)| Site::new(x, y));
        let none = f64::NAN;
        let level = array![[-50.0, none], [-80.0, -70.0], [-56.0, none], [-53.0, -60.0]];
        let (places, medians) = medians(&sites, &level, 1.0);
        assert_eq!(places.len(), 2);
        assert!(places[0].x_m.abs() < 1e-12 && (places[0].y_m - 0.1).abs() < 1e-12);
        assert_eq!(medians, array![[-53.0, -60.0], [-80.0, -70.0]]);
        assert_eq!(median([-50.0, -60.0].into_iter()), -55.0);
        assert!(median([none].into_iter()).is_nan());
    }
}
