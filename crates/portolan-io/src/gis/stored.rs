//! The parts of a map that stays on disk.

use std::ops::Range;
use std::path::{Path, PathBuf};

use ndarray::Array3;
use portolan::RadioMap;

use super::parts::{MapAbout, MapParts, Part, Quantity};
use crate::error::{Check, IoError, Problem, Result};
use crate::format::Format;
use crate::map_arrays::{attach, to_linear};
use crate::options::{Loaded, ReadOptions, Unit};
use crate::source::Source;
use crate::stored_map::MapFile;
use crate::unit_arrays::{grid, unit};

/// Maps of fewer entries than this are loaded as a whole.
const SMALL: u64 = 1 << 23;

/// Bytes of a map that are looked at together.
const STRIP: usize = 1 << 25;

/// A large map `.npz`, read part by part.
pub struct StoredMap {
    path: PathBuf,
    file: MapFile,
    about: MapAbout,
    unit: Unit,
}

impl StoredMap {
    /// Opens a large map; `None` where the file is small, or of a kind that is read as a whole.
    pub fn open(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Option<Loaded<Self>>> {
        let path = path.as_ref();
        let in_file = |problem: Problem| problem.in_file(path);
        let mut source = Source::open(path)?;
        let format = source.format(path, options.format).map_err(in_file)?;
        if format != Format::Npz || options.var.is_some() {
            return Ok(None);
        }
        let Ok(mut file) = MapFile::open(path) else { return Ok(None) };
        let (rows, cols, bands) = file.shape();
        let entries =
            [rows, cols, bands].iter().fold(1u64, |n, &side| n.saturating_mul(side as u64));
        if entries < SMALL {
            return Ok(None);
        }
        if options.grid.is_some_and(|asked| asked != (rows, cols)) {
            // The usual reader says what is wrong.
            return Ok(None);
        }
        let mut warnings = Vec::new();
        let mut store = source.store(format).map_err(in_file)?;
        let mut described = || -> Check<(Unit, RadioMap, portolan::Grid)> {
            let (unit, scale) = unit(store.as_mut(), options, None, &mut warnings)?;
            let whole = grid(store.as_mut(), (rows, cols), options)?;
            // One cell carries everything that is said beside the large arrays.
            let cell =
                RadioMap::dense(whole.part(0..1, 0..1)?, Array3::zeros((1, 1, bands)), scale)?;
            Ok((unit, attach(cell, whole, store.as_mut(), options)?, whole))
        };
        let (unit, cell, whole) = described().map_err(in_file)?;
        let about = MapAbout {
            grid: whole,
            frame: cell.frame().clone(),
            bands,
            spread: file.has("spread_db"),
            noise_db: cell.noise_db().map(<[f64]>::to_vec),
            emitters: cell.emitters().to_vec(),
            quantity: Quantity::Power,
        };
        let unit = match unit.is_decibels() && !has_negative(&mut file)? {
            true => Unit::Linear,
            false => unit,
        };
        let value = Self { path: path.to_owned(), file, about, unit };
        Ok(Some(Loaded { value, warnings }))
    }
}

/// Values in decibels have a negative number among them.
fn has_negative(file: &mut MapFile) -> Result<bool> {
    for strip in file.strips("map", STRIP)? {
        if strip?.1.iter().any(|value| *value < 0.0) {
            return Ok(true);
        }
    }
    Ok(false)
}

impl MapParts for StoredMap {
    type Error = IoError;

    fn about(&self) -> &MapAbout {
        &self.about
    }

    fn part(
        &mut self,
        rows: Range<usize>,
        cols: Range<usize>,
        bands: Range<usize>,
    ) -> Result<Part> {
        let power = self.file.read_rows("map", rows.clone(), cols.clone(), bands.clone())?;
        let spread = match self.about.spread {
            true => Some(self.file.read_rows("spread_db", rows, cols, bands)?),
            false => None,
        };
        if self.unit.is_decibels() {
            // Survey tensors in dBm keep exactly 0 where nothing was measured.
            let level_db = power.mapv(|level| if level == 0.0 { f64::NAN } else { level });
            return Ok(Part { level_db, spread_db: spread });
        }
        let power = to_linear("map", power, Unit::Linear, &mut Vec::new());
        Ok(Part::from_power(power.map_err(|problem| problem.in_file(&self.path))?, spread))
    }
}
