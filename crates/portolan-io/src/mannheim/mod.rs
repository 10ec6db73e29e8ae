//! The Wi-Fi survey of an office floor at Mannheim University (CRAWDAD mannheim/compass), from its
//! raw scans: medians at 166 places on a grid of 34 x 14 cells of 1 m, and at 60 places off the grid
//! that make a natural test set. Bands that were read at fewer than half of the places are left out,
//! which leaves the nine of the paper.
//!
//! [`survey`] reads that survey and holds it to its grid. Any other trace in the same format is read
//! by [`crate::read_readings`] with the caller's grid.

mod source;
#[cfg(test)]
mod tests;
mod trace;

use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};

use ndarray::Array2;
use portolan::{BandLabels, Cell, Grid, Readings, Scale, Site, Values};

use crate::error::{Check, IoError, Problem, Result, shown};
use crate::options::{ReadOptions, Unit};

pub(crate) use source::{is_trace, names as archive_names, names_of_trace};
use trace::Medians;
pub use trace::ScannedPlace;

/// Rows and columns of the floor in the paper.
const SIDES: (usize, usize) = (34, 14);

/// The farthest cell a trace may name; a grid's own limit is tighter.
const FARTHEST: f64 = (1u64 << 28) as f64;

/// The survey as medians.
#[derive(Clone, Debug, PartialEq)]
pub struct MannheimSurvey {
    /// 34 x 14 cells of 1 m; x counts rows, y columns.
    pub grid: Grid,
    /// Ascending; the same for both sets.
    pub freq_hz: Vec<f64>,
    /// The places on the grid, as linear power.
    pub offline: Readings,
    /// The same in dBm, one place for each sensor of `offline`.
    pub offline_dbm: Vec<ScannedPlace>,
    /// The places off the grid; none where their trace is not there.
    pub online: Vec<ScannedPlace>,
    /// Frequencies that were left out, with the number of places that read them.
    pub left_out: Vec<(f64, usize)>,
    /// Scans of both traces.
    pub scans: usize,
}

/// Reads the survey from its folder, or from the offline trace alone; as text, .gz or .zip.
pub fn survey(path: impl AsRef<Path>) -> Result<MannheimSurvey> {
    let path = path.as_ref();
    let (offline_path, online_path) = match path.is_dir() {
        true => {
            let offline = find(path, "offline").ok_or_else(|| {
                Problem::new("no offline trace, expected offline.final.trace.zip, .txt or .txt.gz")
                    .in_file(path)
            })?;
            (offline, find(path, "online"))
        }
        false => (path.to_owned(), None),
    };
    let (medians, left_out) = medians(&offline_path)?.drop_rare();
    let in_file = |problem: Problem| problem.in_file(&offline_path);
    let grid = Grid::new(SIDES.0, SIDES.1, 1.0).map_err(|e| in_file(e.into()))?;
    let cells = medians.places.iter().map(|place| on_grid(place, grid)).collect::<Check<_>>();
    let values = Values::Power(linear(&medians));
    let cells: Vec<Cell> = cells.map_err(in_file)?;
    let sites: Vec<Site> = cells.iter().map(|&cell| grid.site(cell)).collect();
    let labels = BandLabels::from_frequencies(medians.freq_hz.clone());
    let offline = Readings::new(sites, values, Scale::Absolute)
        .and_then(|readings| readings.with_grid(Some(grid))?.with_labels(labels?))
        .map_err(|error| in_file(error.into()))?;
    let mut scans = medians.scans;
    let mut online = Vec::new();
    if let Some(path) = online_path {
        let medians = self::medians(&path)?.with_bands(&medians.freq_hz);
        scans += medians.scans;
        online = medians.places;
    }
    let (freq_hz, offline_dbm) = (medians.freq_hz, medians.places);
    Ok(MannheimSurvey { grid, freq_hz, offline, offline_dbm, online, left_out, scans })
}

/// Readings of any trace, at the places that it gives; on the caller's grid where there is one.
pub(crate) fn readings(
    trace: impl Read + Seek,
    options: &ReadOptions,
    warnings: &mut Vec<String>,
) -> Check<Readings> {
    if options.var.is_some() {
        return Err(Problem::new("a trace has no variables: leave out --var"));
    }
    if options.unit.is_some_and(|unit| unit != Unit::Dbm) {
        return Err(Problem::new("a trace is in dBm: leave out --unit"));
    }
    let (medians, left_out) = source::medians(trace)?.drop_rare();
    for (freq, places) in left_out {
        let all = medians.places.len();
        let mhz = freq / 1e6;
        warnings.push(format!("{mhz} MHz was read at {places} of {all} places: left out"));
    }
    let (x, y) = options.origin_m.unwrap_or((0.0, 0.0));
    let grid = match options.grid {
        None => None,
        Some((rows, cols)) => {
            let cell_m = options.cell_m.unwrap_or(1.0);
            let grid = Grid::new(rows, cols, cell_m)?.with_origin(Site::new(x, y))?;
            let off =
                |place: &&ScannedPlace| grid.cell_at(Site::new(place.x_m, place.y_m)).is_none();
            if let Some(place) = medians.places.iter().find(off) {
                return Err(Problem::new(format!(
                    "line {}: x {}, y {} is off the {rows} x {cols} grid: give a larger grid",
                    place.line,
                    shown(place.x_m),
                    shown(place.y_m)
                )));
            }
            Some(grid)
        }
    };
    let sites: Vec<Site> =
        medians.places.iter().map(|place| Site::new(place.x_m, place.y_m)).collect();
    let values = Values::Power(linear(&medians));
    let readings = Readings::new(sites, values, Scale::Absolute)?;
    Ok(readings.with_grid(grid)?.with_labels(BandLabels::from_frequencies(medians.freq_hz)?)?)
}

/// The trace of a folder whose name begins with `set`.
fn find(folder: &Path, set: &str) -> Option<PathBuf> {
    let names = ["zip", "txt", "txt.gz", "gz", "txt.zip"];
    let paths = names.map(|end| folder.join(format!("{set}.final.trace.{end}")));
    paths.into_iter().find(|path| path.is_file())
}

fn medians(path: &Path) -> Result<Medians> {
    let open = |source| IoError::Open { path: path.to_owned(), source };
    source::medians(File::open(path).map_err(open)?).map_err(|problem| problem.in_file(path))
}

fn on_grid(place: &ScannedPlace, grid: Grid) -> Check<Cell> {
    let cell = nearest(place, grid.cell_m(), (0.0, 0.0))?;
    let whole = cell.row as f64 == place.x_m && cell.col as f64 == place.y_m;
    if whole && grid.contains(cell) {
        return Ok(cell);
    }
    let (rows, cols) = SIDES;
    Err(Problem::new(format!(
        "line {}: position {}, {} is no cell of the survey's {rows} x {cols} grid of 1 m",
        place.line,
        shown(place.x_m),
        shown(place.y_m)
    )))
}

fn nearest(place: &ScannedPlace, cell_m: f64, origin_m: (f64, f64)) -> Check<Cell> {
    let side = |position: f64, origin: f64| {
        let index = ((position - origin) / cell_m).round();
        (0.0..FARTHEST).contains(&index).then_some(index as usize).ok_or_else(|| {
            let (line, position) = (place.line, shown(position));
            Problem::new(format!(
                "line {line}: position {position} is off the grid, which starts at {origin}"
            ))
        })
    };
    Ok(Cell::new(side(place.x_m, origin_m.0)?, side(place.y_m, origin_m.1)?))
}

fn linear(medians: &Medians) -> Array2<f64> {
    let shape = (medians.places.len(), medians.freq_hz.len());
    Array2::from_shape_fn(shape, |(p, b)| Unit::Dbm.to_linear(medians.places[p].dbm[b]))
}
