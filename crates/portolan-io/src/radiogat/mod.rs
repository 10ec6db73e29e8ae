//! Ray-traced maps of a city (the data of RadioGAT, Li et al., arXiv 2403.16397): one MATLAB file a
//! band, `receivedpower_1750MHz_.._1.mat`, with one matrix `powers..` of the power in dBm that a
//! cell receives from all stations together; 0 stands for a cell inside a building. The number at
//! the end of the names is the area's; that line of `stations_position.txt` lists row and column of
//! each station, counted from 1. The files do not say how wide a cell is: it is taken as 1 m.

#[cfg(test)]
mod tests;

use std::fs;
use std::path::Path;

use ndarray::{Array2, Array3, ArrayView2, s};
use portolan::{BandLabels, Cell, Grid, InputError, RadioMap, Scale};

use crate::error::{Check, IoError, Problem, Result, quoted, shown};
use crate::mat5::Mat5;
use crate::options::Unit;
use crate::source::contents;
use crate::store::{Store, matrix};

const STATIONS: &str = "stations_position.txt";

/// The most bands, stations and bytes of stations that are read.
const MOST_BANDS: usize = 1 << 8;
const MOST_STATIONS: usize = 1 << 10;
const MOST_TEXT: usize = 1 << 20;

/// Powers outside are no received power in dBm.
const POWERS_DBM: std::ops::RangeInclusive<f64> = -400.0..=100.0;

/// A city: received power in the open, buildings, stations.
#[derive(Clone, Debug, PartialEq)]
pub struct CityMap {
    /// Linear power, NaN inside buildings; with the frequency of every band, ascending.
    pub map: RadioMap,
    /// True inside buildings.
    pub buildings: Array2<bool>,
    /// Where the stations stand; none where their file is not there.
    pub stations: Vec<Cell>,
}

/// Reads a city from the folder of its files.
pub fn city(folder: impl AsRef<Path>) -> Result<CityMap> {
    let folder = folder.as_ref();
    let in_folder = |problem: Problem| problem.in_file(folder);
    let (bands, area) = list(folder)?;
    let mut power: Option<Array3<f64>> = None;
    for (index, band) in bands.iter().enumerate() {
        let path = folder.join(&band.name);
        let in_file = |problem: Problem| problem.in_file(&path);
        let layer = layer(&contents(&path)?).map_err(in_file)?;
        let (rows, cols) = layer.dim();
        let grid = Grid::new(rows, cols, 1.0).map_err(|error| in_file(error.into()))?;
        let power = match &mut power {
            Some(power) => power,
            None => power.insert(cube(grid, bands.len()).map_err(in_file)?),
        };
        let (rows, cols, _) = power.dim();
        if layer.dim() != (rows, cols) {
            let (found, expected) = (layer.dim(), (rows, cols));
            return Err(in_file(Problem::new(format!(
                "{} x {} cells, expected {} x {} as in {}",
                found.0, found.1, expected.0, expected.1, bands[0].name
            ))));
        }
        power.slice_mut(s![.., .., index]).assign(&layer);
    }
    let power = power.ok_or_else(|| in_folder(Problem::new("no bands")))?;
    let buildings = buildings(&power).map_err(in_folder)?;
    let grid = Grid::new(power.dim().0, power.dim().1, 1.0);
    let freq_hz = bands.iter().map(|band| band.mhz * 1e6).collect();
    let map = grid
        .and_then(|grid| RadioMap::dense(grid, power, Scale::Absolute))
        .and_then(|map| map.with_labels(BandLabels::from_frequencies(freq_hz)?))
        .map_err(|error| in_folder(error.into()))?;
    let stations = stations(folder, area, map.grid())?;
    Ok(CityMap { map, buildings, stations })
}

impl CityMap {
    /// The part of `rows` x `cols` cells whose first cell is (`row`, `col`), with its stations.
    pub fn crop(
        &self,
        row: usize,
        col: usize,
        rows: usize,
        cols: usize,
    ) -> std::result::Result<Self, InputError> {
        let whole = self.map.grid();
        let fits = |first: usize, side: usize, all: usize| {
            side > 0 && first.checked_add(side).is_some_and(|end| end <= all)
        };
        if !fits(row, rows, whole.rows()) || !fits(col, cols, whole.cols()) {
            return Err(InputError::Request(format!(
                "{rows} x {cols} cells from row {row}, col {col} do not lie in the map of {} x {}",
                whole.rows(),
                whole.cols()
            )));
        }
        let grid = whole.part(row..row + rows, col..col + cols)?;
        let power = self.map.to_dense();
        let power = power.slice(s![row..row + rows, col..col + cols, ..]).to_owned();
        let buildings = self.buildings.slice(s![row..row + rows, col..col + cols]).to_owned();
        let inside = |station: &&Cell| {
            (row..row + rows).contains(&station.row) && (col..col + cols).contains(&station.col)
        };
        let stations = self.stations.iter().filter(inside);
        let stations = stations.map(|s| Cell::new(s.row - row, s.col - col)).collect();
        let map = RadioMap::dense(grid, power, self.map.scale())?
            .with_labels(self.map.labels().clone())?;
        Ok(Self { map, buildings, stations })
    }
}

struct BandFile {
    name: String,
    mhz: f64,
    area: usize,
}

/// The files of the bands, by frequency, and the number of the area they share.
fn list(folder: &Path) -> Result<(Vec<BandFile>, usize)> {
    let open = |source| IoError::Open { path: folder.to_owned(), source };
    let mut bands = Vec::new();
    for entry in fs::read_dir(folder).map_err(open)? {
        let name = entry.map_err(open)?.file_name();
        let Some(name) = name.to_str() else { continue };
        if name.starts_with("receivedpower_") && name.ends_with(".mat") {
            bands.push(band_file(name).map_err(|problem| problem.in_file(&folder.join(name)))?);
        }
        if bands.len() > MOST_BANDS {
            let what = format!("more than {MOST_BANDS} bands, the most that are read");
            return Err(Problem::new(what).in_file(folder));
        }
    }
    bands.sort_by(|a, b| a.mhz.total_cmp(&b.mhz).then_with(|| a.name.cmp(&b.name)));
    let problem = match bands.windows(2).find(|w| w[0].mhz == w[1].mhz || w[0].area != w[1].area) {
        Some(pair) => format!(
            "{} and {} are not bands of one area: keep one file per band",
            pair[0].name, pair[1].name
        ),
        None => match bands.first() {
            Some(first) => {
                let area = first.area;
                return Ok((bands, area));
            }
            None => "no bands, expected files named receivedpower_1750MHz_.._1.mat".into(),
        },
    };
    Err(Problem::new(problem).in_file(folder))
}

fn band_file(name: &str) -> Check<BandFile> {
    let wrong = || Problem::new("expected a name such as receivedpower_1750MHz_.._1.mat");
    let rest = name.strip_prefix("receivedpower_").ok_or_else(wrong)?;
    let (mhz, rest) = rest.split_once("MHz").ok_or_else(wrong)?;
    let mhz: f64 = mhz.parse().map_err(|_| wrong())?;
    let area = rest.strip_suffix(".mat").and_then(|rest| rest.rsplit('_').next());
    let area: usize = area.and_then(|area| area.parse().ok()).ok_or_else(wrong)?;
    if !(mhz.is_finite() && mhz > 0.0) || area == 0 {
        return Err(wrong());
    }
    Ok(BandFile { name: name.to_owned(), mhz, area })
}

/// One band as linear power, NaN inside buildings.
fn layer(bytes: &[u8]) -> Check<Array2<f64>> {
    let mut mat = Mat5::open(bytes)?;
    let is_power = |name: &str| {
        name.strip_prefix("powers").is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
    };
    let found: Vec<usize> =
        (0..mat.entries().len()).filter(|&i| is_power(&mat.entries()[i].name)).collect();
    let [index] = found[..] else {
        let (count, names) = (found.len(), (&mat as &dyn Store).names());
        return Err(Problem::new(format!(
            "{count} variables named 'powers..', expected one: it holds {names}"
        )));
    };
    let name = mat.entries()[index].name.clone();
    let mut layer = matrix(&name, mat.load(index)?, "rows x columns")?;
    let strange = |value: &f64| *value != 0.0 && !POWERS_DBM.contains(value);
    if let Some(((row, col), value)) = layer.indexed_iter().find(|(_, value)| strange(value)) {
        return Err(Problem::new(format!(
            "array {} at row {row}, col {col} is {}, expected a power in dBm, or 0 inside a building",
            quoted(&name),
            shown(*value)
        )));
    }
    layer.mapv_inplace(|dbm| if dbm == 0.0 { f64::NAN } else { Unit::Dbm.to_linear(dbm) });
    Ok(layer)
}

fn cube(grid: Grid, bands: usize) -> Check<Array3<f64>> {
    let too_large = || {
        let (rows, cols) = (grid.rows(), grid.cols());
        Problem::new(format!("{rows} x {cols} x {bands} entries do not fit the memory"))
    };
    let entries = grid.cells().checked_mul(bands).ok_or_else(too_large)?;
    let mut values = Vec::new();
    values.try_reserve_exact(entries).map_err(|_| too_large())?;
    values.resize(entries, f64::NAN);
    Array3::from_shape_vec((grid.rows(), grid.cols(), bands), values).map_err(|_| too_large())
}

/// A building stands in every band or in none.
fn buildings(power: &Array3<f64>) -> Check<Array2<bool>> {
    let mask = |layer: ArrayView2<'_, f64>| layer.mapv(f64::is_nan);
    let first = mask(power.slice(s![.., .., 0]));
    for band in 1..power.dim().2 {
        let other = mask(power.slice(s![.., .., band]));
        let differs = first.indexed_iter().find(|(place, inside)| other[*place] != **inside);
        if let Some(((row, col), _)) = differs {
            return Err(Problem::new(format!(
                "row {row}, col {col} is inside a building in one of bands 0 and {band} only"
            )));
        }
    }
    Ok(first)
}

fn stations(folder: &Path, area: usize, grid: Grid) -> Result<Vec<Cell>> {
    let path = folder.join(STATIONS);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let bytes = contents(&path)?;
    station_line(&bytes, area, grid).map_err(|problem| problem.in_file(&path))
}

fn station_line(bytes: &[u8], area: usize, grid: Grid) -> Check<Vec<Cell>> {
    let at = |what: String| Problem::new(format!("line {area}: {what}"));
    let text = std::str::from_utf8(bytes).ok().filter(|text| text.len() <= MOST_TEXT);
    let text = text.ok_or_else(|| at(format!("expected at most {MOST_TEXT} bytes of text")))?;
    let line = text.lines().nth(area - 1);
    let line = line.ok_or_else(|| at(format!("expected the stations of area {area}")))?;
    let numbers = line
        .split_whitespace()
        .map(|word| {
            let number = word.parse::<usize>().ok().filter(|number| *number > 0);
            number.ok_or_else(|| at(format!("{}, expected a number above 0", quoted(word))))
        })
        .collect::<Check<Vec<usize>>>()?;
    let (pairs, rest) = numbers.as_chunks::<2>();
    if !rest.is_empty() || pairs.is_empty() || pairs.len() > MOST_STATIONS {
        let found = numbers.len();
        return Err(at(format!("{found} numbers, expected row and column of every station")));
    }
    let stations: Vec<Cell> = pairs.iter().map(|[row, col]| Cell::new(row - 1, col - 1)).collect();
    match stations.iter().find(|station| !grid.contains(**station)) {
        Some(Cell { row, col }) => {
            let (row, col, rows, cols) = (row + 1, col + 1, grid.rows(), grid.cols());
            Err(at(format!("station {row} {col} is off the map of {rows} x {cols} cells")))
        }
        None => Ok(stations),
    }
}
