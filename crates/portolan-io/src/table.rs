//! Tables in text: readings (or a map, cell by cell) in wide or long form.

use std::collections::BTreeMap;
use std::collections::HashMap;

use ndarray::{Array, Array2, Array3, Dimension};
use portolan::{Cell, Grid, RadioMap, Readings, Values};

use crate::columns::{Band, Layout, Position, layout};
use crate::error::{Check, Problem, quoted, shown};
use crate::lines::{Line, Lines};
use crate::options::{ReadOptions, Unit};
use crate::readings_arrays::warn_merged;

/// A long table of a few lines must not claim a huge one of sensors x bands.
const MOST_ENTRIES: usize = 1 << 24;

/// The farthest cell a table may name; a grid's own limit is tighter.
const FARTHEST: f64 = (1u64 << 28) as f64;

/// A table with its positions turned into cells and its values into linear power.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    grid: Grid,
    cells: Vec<Cell>,
    power: Array2<f64>,
    freq_hz: Option<Vec<f64>>,
}

impl Table {
    pub fn read(bytes: &[u8], options: &ReadOptions, warnings: &mut Vec<String>) -> Check<Self> {
        if options.var.is_some() {
            return Err(Problem::new("a table has no variables: leave out --var"));
        }
        let mut lines = Lines::open(bytes)?;
        let header = lines.next()?.ok_or_else(|| Problem::new("line 1: expected a header"))?;
        let layout = layout(&header.fields(), options.unit, warnings)?;
        let (Layout::Wide { position, .. } | Layout::Long { position, .. }) = &layout;
        let places = Places::new(*position, options, warnings)?;
        lines.columns = header.record.len();
        let (cells, power, freq_hz) = match layout {
            Layout::Wide { bands, .. } => wide(&mut lines, &places, &bands)?,
            Layout::Long { freq, scale, power, unit, .. } => {
                let columns = LongColumns { freq, scale, power, unit };
                long(&mut lines, &places, columns, &header, warnings)?
            }
        };
        if cells.is_empty() {
            return Err(Problem::new("a header but no readings below it"));
        }
        let grid = places.grid(&cells, warnings)?;
        Ok(Self { grid, cells, power, freq_hz })
    }

    /// True where every cell of the grid has a line, as in a map written by this crate.
    pub fn covers_grid(&self) -> bool {
        if self.cells.len() < self.grid.cells() {
            return false;
        }
        let mut seen = vec![false; self.grid.cells()];
        self.cells.iter().for_each(|&cell| seen[self.grid.index(cell)] = true);
        seen.iter().all(|&seen| seen)
    }

    pub fn into_readings(self, warnings: &mut Vec<String>) -> Check<Readings> {
        let (readings, merged) =
            Readings::merged(self.grid, self.cells, Values::Power(self.power))?;
        warn_merged(merged, warnings);
        Ok(readings.with_frequencies(self.freq_hz)?)
    }

    /// A map in which the cells without a line are unknown.
    pub fn into_map(self, warnings: &mut Vec<String>) -> Check<RadioMap> {
        let (grid, bands) = (self.grid, self.power.ncols());
        let entries = grid.cells().checked_mul(bands).filter(|&n| n <= self.allowed());
        if entries.is_none() {
            let (rows, cols) = (grid.rows(), grid.cols());
            return Err(Problem::new(format!(
                "a map of {rows} x {cols} x {bands} is too large for a table of {} lines",
                self.cells.len()
            )));
        }
        let mut sum = Array3::<f64>::zeros((grid.rows(), grid.cols(), bands));
        let mut count = Array3::<f64>::zeros(sum.raw_dim());
        let mut lines = vec![0usize; grid.cells()];
        for (cell, values) in self.cells.iter().zip(self.power.rows()) {
            lines[grid.index(*cell)] += 1;
            for (band, value) in values.iter().enumerate().filter(|(_, v)| !v.is_nan()) {
                sum[[cell.row, cell.col, band]] += value;
                count[[cell.row, cell.col, band]] += 1.0;
            }
        }
        warn_merged(lines.iter().map(|n| n.saturating_sub(1)).sum(), warnings);
        let unknown = lines.iter().filter(|n| **n == 0).count();
        if unknown > 0 {
            let cells = grid.cells();
            warnings.push(format!("{unknown} of {cells} cells have no line: taken as unknown"));
        }
        Ok(RadioMap::dense(grid, mean(sum, &count))?.with_frequencies(self.freq_hz)?)
    }

    fn allowed(&self) -> usize {
        MOST_ENTRIES.max(self.power.len().saturating_mul(1000))
    }
}

/// Turns the positions of a table into cells.
struct Places {
    position: Position,
    sides: Option<(usize, usize)>,
    cell_m: f64,
    origin_m: (f64, f64),
}

impl Places {
    fn new(position: Position, options: &ReadOptions, warnings: &mut Vec<String>) -> Check<Self> {
        let cell_m = options.cell_m.unwrap_or(1.0);
        if matches!(position, Position::Metres(..)) && options.cell_m.is_none() {
            warnings.push("the cell size is not given: taken as 1 m".into());
        }
        let (rows, cols) = options.grid.unwrap_or((1, 1));
        Grid::new(rows, cols, cell_m)?;
        Ok(Self { position, sides: options.grid, cell_m, origin_m: options.origin_m })
    }

    fn cell(&self, line: &Line) -> Check<Cell> {
        let (row, col) = match self.position {
            Position::Cell(row, col) => (
                self.whole(line, row, line.number(row)?)?,
                self.whole(line, col, line.number(col)?)?,
            ),
            Position::Metres(x, y) => {
                let row = ((line.number(x)? - self.origin_m.0) / self.cell_m).round();
                let col = ((line.number(y)? - self.origin_m.1) / self.cell_m).round();
                (self.whole(line, x, row)?, self.whole(line, y, col)?)
            }
        };
        if let Some((rows, cols)) = self.sides.filter(|s| row >= s.0 || col >= s.1) {
            let number = line.number;
            return Err(Problem::new(format!(
                "line {number}: row {row}, col {col} is off the {rows} x {cols} grid: give a larger \
                 grid or remove the line"
            )));
        }
        Ok(Cell::new(row, col))
    }

    fn whole(&self, line: &Line, column: usize, value: f64) -> Check<usize> {
        if value.is_nan() {
            return Err(line.wrong(column, "expected a position"));
        }
        if value.fract() != 0.0 {
            return Err(line.wrong(column, "expected a whole number"));
        }
        if !(0.0..FARTHEST).contains(&value) {
            let what = format!("{} is off the grid, which starts at 0", shown(value));
            return Err(line.wrong(column, &what));
        }
        Ok(value as usize)
    }

    /// The caller's grid, or the smallest that holds every sensor.
    fn grid(&self, cells: &[Cell], warnings: &mut Vec<String>) -> Check<Grid> {
        let (rows, cols) = self.sides.unwrap_or_else(|| {
            let rows = cells.iter().map(|c| c.row + 1).max().unwrap_or(1);
            let cols = cells.iter().map(|c| c.col + 1).max().unwrap_or(1);
            warnings.push(format!("the grid is not given: {rows} x {cols} holds every position"));
            (rows, cols)
        });
        Ok(Grid::new(rows, cols, self.cell_m)?)
    }
}

/// Sums over counts. 0 / 0 would be a NaN whose sign is the processor's choice.
fn mean<D: Dimension>(mut sum: Array<f64, D>, count: &Array<f64, D>) -> Array<f64, D> {
    sum.zip_mut_with(count, |sum, &n| *sum = if n > 0.0 { *sum / n } else { f64::NAN });
    sum
}

type Columns = (Vec<Cell>, Array2<f64>, Option<Vec<f64>>);

fn wide(lines: &mut Lines<'_>, places: &Places, bands: &[Band]) -> Check<Columns> {
    let (mut cells, mut values) = (Vec::new(), Vec::new());
    while let Some(line) = lines.next()? {
        cells.push(places.cell(&line)?);
        for band in bands {
            values.push(line.power(band.column, band.unit)?);
        }
    }
    let freq_hz = bands.iter().map(|band| band.freq_hz).collect();
    let power = Array2::from_shape_vec((cells.len(), bands.len()), values)
        .map_err(|error| Problem::new(error.to_string()))?;
    Ok((cells, power, freq_hz))
}

struct LongColumns {
    freq: usize,
    scale: f64,
    power: usize,
    unit: Unit,
}

fn long(
    lines: &mut Lines<'_>,
    places: &Places,
    columns: LongColumns,
    header: &Line,
    warnings: &mut Vec<String>,
) -> Check<Columns> {
    let mut sensors = HashMap::new();
    let (mut cells, mut entries) = (Vec::new(), Vec::new());
    // Positive floats sort as their bits do.
    let mut bands = BTreeMap::<u64, usize>::new();
    while let Some(line) = lines.next()? {
        let cell = places.cell(&line)?;
        let freq_hz = line.number(columns.freq)? * columns.scale;
        if !(freq_hz > 0.0 && freq_hz.is_finite()) {
            let name = quoted(header.record.get(columns.freq).unwrap_or_default());
            return Err(
                line.wrong(columns.freq, &format!("expected a positive frequency as {name}"))
            );
        }
        let sensor = *sensors.entry(cell).or_insert_with(|| {
            cells.push(cell);
            cells.len() - 1
        });
        bands.insert(freq_hz.to_bits(), 0);
        entries.push((sensor, freq_hz.to_bits(), line.power(columns.power, columns.unit)?));
    }
    for (band, place) in bands.values_mut().enumerate() {
        *place = band;
    }
    let most = MOST_ENTRIES.max(entries.len().saturating_mul(1000));
    if cells.len().checked_mul(bands.len()).is_none_or(|n| n > most) {
        return Err(Problem::new(format!(
            "{} cells and {} frequencies in {} lines: too few cells share a frequency",
            cells.len(),
            bands.len(),
            entries.len()
        )));
    }
    let mut sum = Array2::<f64>::zeros((cells.len(), bands.len()));
    let mut count = Array2::<f64>::zeros(sum.raw_dim());
    for (sensor, freq, value) in entries.into_iter().filter(|(_, _, value)| !value.is_nan()) {
        sum[[sensor, bands[&freq]]] += value;
        count[[sensor, bands[&freq]]] += 1.0;
    }
    let repeated: f64 = count.iter().map(|n| (n - 1.0).max(0.0)).sum();
    if repeated > 0.0 {
        warnings.push(format!("{repeated} line(s) repeat a cell and frequency: averaged"));
    }
    let freq_hz = bands.keys().map(|bits| f64::from_bits(*bits)).collect();
    Ok((cells, mean(sum, &count), Some(freq_hz)))
}
