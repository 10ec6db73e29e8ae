//! A rectangle of a map, read without the rest of it where the file allows.

use std::ops::Range;
use std::path::Path;

use ndarray::s;
use portolan::{Grid, RadioMap, Region, Site};

use crate::error::{Check, Problem, Result};
use crate::format::{Format, read_map};
use crate::map_arrays::{attach, to_linear};
use crate::options::{Loaded, ReadOptions};
use crate::source::Source;
use crate::stored_map::MapFile;
use crate::unit_arrays::{grid, unit};

/// Reads the cells whose centres lie in a rectangle.
pub fn read_map_part(
    path: impl AsRef<Path>,
    region: Region,
    options: &ReadOptions,
) -> Result<Loaded<RadioMap>> {
    let path = path.as_ref();
    let in_file = |problem: Problem| problem.in_file(path);
    let mut source = Source::open(path)?;
    let format = source.format(path, options.format).map_err(in_file)?;
    let parts = format == Format::Npz && options.var.is_none() && MapFile::open(path).is_ok();
    if !parts {
        let Loaded { value, warnings } = read_map(path, options)?;
        let (rows, cols) = sides(value.grid(), region).map_err(in_file)?;
        let value = value.part(rows, cols).map_err(|error| in_file(error.into()))?;
        return Ok(Loaded { value, warnings });
    }
    let mut warnings = Vec::new();
    let mut file = MapFile::open(path)?;
    let (rows, cols, bands) = file.shape();
    let mut store = source.store(format).map_err(in_file)?;
    let mut about = || -> Check<_> {
        let units = unit(store.as_mut(), options, None, &mut warnings)?;
        let whole = grid(store.as_mut(), (rows, cols), options)?;
        Ok((units, whole))
    };
    let ((unit, scale), whole) = about().map_err(in_file)?;
    let (rows, cols) = sides(whole, region).map_err(in_file)?;
    let power = file.read_rows("map", rows.clone(), cols.clone(), 0..bands)?;
    let power = to_linear("map", power, unit, &mut warnings).map_err(in_file)?;
    let spread = match file.has("spread_db") {
        true => Some(file.read_rows("spread_db", rows.clone(), cols.clone(), 0..bands)?),
        false => None,
    };
    let made = whole
        .part(rows, cols)
        .and_then(|grid| RadioMap::dense(grid, power, scale)?.with_spread_db(spread));
    let value =
        made.map_err(Problem::from).and_then(|map| attach(map, whole, store.as_mut(), options));
    Ok(Loaded { value: value.map_err(in_file)?, warnings })
}

/// The rows and columns whose centres lie in a rectangle.
fn sides(grid: Grid, region: Region) -> Check<(Range<usize>, Range<usize>)> {
    let low = grid.position(region.low);
    let high = grid.position(region.high);
    let range = |low: f64, high: f64, count: usize| {
        let first = (low - 1e-9).ceil().max(0.0);
        let last = (high + 1e-9).floor().min(count as f64 - 1.0);
        (first <= last).then(|| first as usize..last as usize + 1)
    };
    match (range(low[0], high[0], grid.rows()), range(low[1], high[1], grid.cols())) {
        (Some(rows), Some(cols)) => Ok((rows, cols)),
        _ => {
            let Site { x_m, y_m, .. } = grid.origin();
            let end = grid.site_at([grid.rows() as f64 - 1.0, grid.cols() as f64 - 1.0]);
            Err(Problem::new(format!(
                "--region holds no cell of the map, which lies at x {x_m} to {}, y {y_m} to {}",
                end.x_m, end.y_m
            )))
        }
    }
}

/// The part of a loaded map.
trait Part: Sized {
    fn part(
        self,
        rows: Range<usize>,
        cols: Range<usize>,
    ) -> std::result::Result<Self, portolan::InputError>;
}

impl Part for RadioMap {
    fn part(
        self,
        rows: Range<usize>,
        cols: Range<usize>,
    ) -> std::result::Result<Self, portolan::InputError> {
        let grid = self.grid().part(rows.clone(), cols.clone())?;
        let cut = s![rows, cols, ..];
        let power = self.to_dense().slice(cut).to_owned();
        let spread = self.spread_db().map(|spread| spread.slice(cut).to_owned());
        RadioMap::dense(grid, power, self.scale())?
            .with_labels(self.labels().clone())?
            .with_crs(self.crs())
            .with_spread_db(spread)?
            .with_noise_db(self.noise_db().map(<[f64]>::to_vec))?
            .with_emitters(self.emitters().to_vec())
            .with_emitter_se_m(self.emitter_se_m().to_vec())?
            .with_emitter_bands(self.emitter_bands().to_vec())?
            .with_exponents(self.exponents().to_vec())
    }
}
