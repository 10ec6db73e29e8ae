//! Tables in text: readings (or a map, cell by cell) in wide or long form.

use std::collections::BTreeMap;
use std::collections::HashMap;

use ndarray::{Array2, Array3};
use portolan::{BandLabels, Cell, Grid, RadioMap, Readings, Scale, Site, Values};

use crate::columns::{Band, Position, TableLayout, layout};
use crate::error::{Check, Problem, quoted, shown};
use crate::lines::{Line, Lines};
use crate::options::{ReadOptions, Unit};
use crate::readings_arrays::warn_merged;

/// A long table of a few lines must not claim a huge one of sensors x bands.
const MOST_ENTRIES: usize = 1 << 24;

/// The farthest cell a table may name; a grid's own limit is tighter.
const FARTHEST: f64 = (1u64 << 28) as f64;

/// A table with its places in metres and its values in linear power.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    sites: Vec<Site>,
    /// The grid that the table lies on, where it says so or the caller does.
    grid: Option<Grid>,
    /// The table lists cells with their places and spread, as a map written by this crate.
    map: bool,
    entries: Entries,
    scale: Scale,
    labels: BandLabels,
    /// The power below which the caller says that nothing is heard.
    floor: Option<f64>,
}

/// Values of a table, lines or sensors x bands.
#[derive(Clone, Debug)]
struct Entries {
    power: Array2<f64>,
    /// How often each was read, in a long table.
    count: Option<Array2<f64>>,
    /// Marked by the caller's code for "not heard".
    silent: Array2<bool>,
    spread: Option<Array2<f64>>,
}

impl Table {
    pub fn read(
        bytes: &[u8],
        options: &ReadOptions,
        as_map: bool,
        warnings: &mut Vec<String>,
    ) -> Check<Self> {
        if options.var.is_some() {
            return Err(Problem::new("a table has no variables: leave out --var"));
        }
        let mut lines = Lines::open(bytes)?;
        let header = lines.next()?.ok_or_else(|| Problem::new("line 1: expected a header"))?;
        let layout = layout(&header.fields(), options.unit, warnings)?;
        let (TableLayout::Wide { position, .. } | TableLayout::Long { position, .. }) = &layout;
        let mut places = Places::new(*position, options, as_map, warnings)?;
        let is_map = matches!(position, Position::Both(_));
        lines.columns = header.record.len();
        let scale = layout.scale()?;
        let (sites, entries, labels) = match layout {
            TableLayout::Wide { bands, .. } => wide(&mut lines, &mut places, &bands, options)?,
            TableLayout::Long { freq, scale: hertz, power, unit, .. } => {
                let columns = LongColumns { freq, scale: hertz, power, unit };
                long(&mut lines, &mut places, columns, scale, (&header, options), warnings)?
            }
        };
        if sites.is_empty() {
            return Err(Problem::new("a header but no readings below it"));
        }
        let (sites, grid) = places.settle(sites, warnings)?;
        let floor = options.floor_db.map(|db| 10f64.powf(db / 10.0));
        Ok(Self { sites, grid, map: is_map, entries, scale, labels, floor })
    }

    /// True where the table was written as a map.
    pub fn is_map(&self) -> bool {
        self.map
    }

    pub fn into_readings(self, warnings: &mut Vec<String>) -> Check<Readings> {
        let Entries { power, count, silent, .. } = self.entries;
        // A band that nobody heard says nothing.
        let floor: Vec<f64> = power
            .columns()
            .into_iter()
            .map(|band| band.iter().copied().filter(|x| *x > 0.0).fold(f64::INFINITY, f64::min))
            .collect();
        let bands = power.ncols();
        let marked = silent.iter().any(|s| *s);
        let mut values = power;
        // Marked entries go through the merging of places as zeros, which mean the same.
        if marked && !self.scale.has_zero() {
            ndarray::Zip::from(&mut values).and(&silent).for_each(|x, s| {
                if *s {
                    *x = 0.0;
                }
            });
        }
        let (readings, merged) = Readings::merged(self.sites, Values::Power(values), self.scale)?;
        warn_merged(merged, warnings);
        let readings = readings.with_grid(self.grid)?.with_labels(self.labels)?;
        let readings = match count {
            Some(count) if merged == 0 => readings.with_repeats(Some(count))?,
            _ => readings,
        };
        let Some(silent) = readings.not_heard().map(|n| n.entries.clone()) else {
            return Ok(readings);
        };
        let floor: Vec<f64> = match self.floor {
            Some(floor) => vec![floor; bands],
            None => floor,
        };
        Ok(readings.with_not_heard(silent, floor)?)
    }

    /// A map in which the cells without a line are unknown.
    pub fn into_map(self, warnings: &mut Vec<String>) -> Check<RadioMap> {
        let Some(grid) = self.grid else {
            return Err(Problem::new("a map needs a grid: pass --grid ROWSxCOLS"));
        };
        let bands = self.entries.power.ncols();
        let allowed = MOST_ENTRIES.max(self.entries.power.len().saturating_mul(1000));
        if grid.cells().checked_mul(bands).is_none_or(|n| n > allowed) {
            let (rows, cols) = (grid.rows(), grid.cols());
            return Err(Problem::new(format!(
                "a map of {rows} x {cols} x {bands} is too large for a table of {} lines",
                self.sites.len()
            )));
        }
        let cells: Vec<Cell> = self.sites.iter().filter_map(|&site| grid.cell_at(site)).collect();
        let mut lines = vec![Vec::new(); grid.cells()];
        for (line, cell) in cells.iter().enumerate() {
            lines[grid.index(*cell)].push(line);
        }
        warn_merged(lines.iter().map(|l| l.len().saturating_sub(1)).sum(), warnings);
        let unknown = lines.iter().filter(|l| l.is_empty()).count();
        if unknown > 0 {
            let cells = grid.cells();
            warnings.push(format!("{unknown} of {cells} cells have no line: taken as unknown"));
        }
        let mean = |values: &Array2<f64>, linear: bool| {
            Array3::from_shape_fn((grid.rows(), grid.cols(), bands), |(i, j, k)| {
                let known = lines[grid.index(Cell::new(i, j))].iter().map(|&l| values[[l, k]]);
                let known: Vec<f64> = known.filter(|v| !v.is_nan()).collect();
                average(&known, linear)
            })
        };
        let power = mean(&self.entries.power, self.scale.has_zero());
        let spread = self.entries.spread.as_ref().map(|spread| mean(spread, true));
        let map = RadioMap::dense(grid, power, self.scale)?.with_labels(self.labels)?;
        Ok(map.with_spread_db(spread)?)
    }
}

/// The mean of powers: in dB unless `linear` or one is zero. NaN without any.
fn average(values: &[f64], linear: bool) -> f64 {
    let count = values.len() as f64;
    match values {
        [] => f64::NAN,
        [only] => *only,
        _ if linear || values.contains(&0.0) => values.iter().sum::<f64>() / count,
        _ => (values.iter().map(|v| v.ln()).sum::<f64>() / count).exp(),
    }
}

impl TableLayout {
    /// The scale of all columns, which must be of one kind.
    fn scale(&self) -> Check<Scale> {
        let units: Vec<Unit> = match self {
            TableLayout::Wide { bands, .. } => bands.iter().map(|band| band.unit).collect(),
            TableLayout::Long { unit, .. } => vec![*unit],
        };
        let scales = units.iter().map(|u| u.scale(None)).collect::<Result<Vec<_>, _>>()?;
        match scales.windows(2).all(|pair| pair[0] == pair[1]) {
            true => Ok(scales[0]),
            false => Err(Problem::new(
                "line 1: some columns are calibrated and others are not: expected one kind",
            )),
        }
    }
}

/// Turns the positions of a table into places.
struct Places {
    position: Position,
    sides: Option<(usize, usize)>,
    cell_m: Option<f64>,
    origin: Option<Site>,
    as_map: bool,
    /// The greatest row and column so far, of tables that name cells.
    last: (usize, usize),
    /// Line number, row, col, x and y, in tables with both.
    known: Vec<(u64, [f64; 4])>,
}

impl Places {
    fn new(
        position: Position,
        options: &ReadOptions,
        as_map: bool,
        warnings: &mut Vec<String>,
    ) -> Check<Self> {
        let on_grid = as_map || options.grid.is_some();
        if matches!(position, Position::Metres(..)) && options.cell_m.is_none() && on_grid {
            warnings.push("the cell size is not given: taken as 1 m".into());
        }
        let places = Self {
            position,
            sides: options.grid,
            cell_m: options.cell_m,
            origin: options.origin_m.map(|(x, y)| Site::new(x, y)),
            as_map,
            last: (0, 0),
            known: Vec::new(),
        };
        places.told(options.grid.unwrap_or((1, 1)))?;
        Ok(places)
    }

    /// A grid where the caller says, with cells of the size that the caller says.
    fn told(&self, (rows, cols): (usize, usize)) -> Check<Grid> {
        let origin = self.origin.unwrap_or(Site::new(0.0, 0.0));
        Ok(Grid::new(rows, cols, self.cell_m.unwrap_or(1.0))?.with_origin(origin)?)
    }

    /// The place of a line; a cell's is its row and column until the table is read.
    fn site(&mut self, line: &Line) -> Check<Site> {
        let (row, col) = match self.position {
            Position::Metres(x, y) => {
                let site = Site::new(self.place(line, x)?, self.place(line, y)?);
                if let Some(sides) = self.sides
                    && self.told(sides)?.cell_at(site).is_none()
                {
                    let place = format!("x {}, y {}", shown(site.x_m), shown(site.y_m));
                    return Err(off_grid(line, &place, sides));
                }
                return Ok(site);
            }
            Position::Cell(row, col) => (self.whole(line, row)?, self.whole(line, col)?),
            Position::Both([row, col, x, y]) => {
                let (r, c) = (self.whole(line, row)?, self.whole(line, col)?);
                let at = [r as f64, c as f64, self.place(line, x)?, self.place(line, y)?];
                self.known.push((line.number, at));
                (r, c)
            }
        };
        if let Some((rows, cols)) = self.sides.filter(|s| row >= s.0 || col >= s.1) {
            return Err(off_grid(line, &format!("row {row}, col {col}"), (rows, cols)));
        }
        self.last = (self.last.0.max(row), self.last.1.max(col));
        Ok(Site::new(row as f64, col as f64))
    }

    fn place(&self, line: &Line, column: usize) -> Check<f64> {
        let value = line.number(column)?;
        if value.is_nan() {
            return Err(line.wrong(column, "expected a position"));
        }
        Ok(value)
    }

    fn whole(&self, line: &Line, column: usize) -> Check<usize> {
        let value = self.place(line, column)?;
        if value.fract() != 0.0 {
            return Err(line.wrong(column, "expected a whole number"));
        }
        if !(0.0..FARTHEST).contains(&value) {
            let what = format!("{} is off the grid, which starts at 0", shown(value));
            return Err(line.wrong(column, &what));
        }
        Ok(value as usize)
    }

    /// Places in metres, and the grid that they belong to: the caller's, the smallest that holds
    /// every cell, or none for places in metres that are readings.
    fn settle(
        &self,
        mut sites: Vec<Site>,
        warnings: &mut Vec<String>,
    ) -> Check<(Vec<Site>, Option<Grid>)> {
        if let Position::Metres(..) = self.position {
            let grid = match self.sides {
                Some(sides) => self.told(sides)?,
                None => match portolan::Region::around(&sites).filter(|_| self.as_map) {
                    Some(region) => Grid::covering(region, self.cell_m.unwrap_or(1.0))?,
                    None => return Ok((sites, None)),
                },
            };
            return Ok((sites, Some(grid)));
        }
        let sides @ (rows, cols) = self.sides.unwrap_or((self.last.0 + 1, self.last.1 + 1));
        if self.sides.is_none() && self.known.is_empty() {
            warnings.push(format!("the grid is not given: {rows} x {cols} holds every position"));
        }
        let grid = self.known_grid(sides)?;
        sites.iter_mut().for_each(|site| *site = grid.site_at([site.x_m, site.y_m]));
        Ok((sites, Some(grid)))
    }

    /// The grid whose cells lie where the table says; what the caller says goes first.
    fn known_grid(&self, sides: (usize, usize)) -> Check<Grid> {
        let Some((_, first)) = self.known.first() else { return self.told(sides) };
        // The line that is farthest along an axis tells the size of a cell best.
        let size = |axis: usize| {
            let steps = |at: &[f64; 4]| (at[axis] - first[axis]).abs();
            let far = self.known.iter().map(|(_, at)| at);
            let far = far.max_by(|a, b| steps(a).total_cmp(&steps(b)))?;
            let size = (far[2 + axis] - first[2 + axis]) / (far[axis] - first[axis]);
            // Places have lost the last digits of a size.
            (far[axis] != first[axis]).then(|| format!("{size:.11e}").parse().unwrap_or(size))
        };
        let cell_m = self.cell_m.or_else(|| size(0)).or_else(|| size(1)).unwrap_or(1.0);
        let corner = Site::new(first[2] - first[0] * cell_m, first[3] - first[1] * cell_m);
        let grid =
            Grid::new(sides.0, sides.1, cell_m)?.with_origin(self.origin.unwrap_or(corner))?;
        let told = self.cell_m.is_some() || self.origin.is_some();
        let apart = |at: &[f64; 4]| {
            let site = grid.site_at([at[0], at[1]]);
            let slack = 1e-6 * cell_m + 1e-12 * (at[2].abs() + at[3].abs());
            (site.x_m - at[2]).abs().max((site.y_m - at[3]).abs()) > slack
        };
        match self.known.iter().find(|(_, at)| !told && apart(at)) {
            None => Ok(grid),
            Some((line, [row, col, x, y])) => Err(Problem::new(format!(
                "line {line}: row {row}, col {col} at x {}, y {} is not a cell of the grid that \
                 the other lines make: give row,col or x_m,y_m alone",
                shown(*x),
                shown(*y)
            ))),
        }
    }
}

fn off_grid(line: &Line, place: &str, (rows, cols): (usize, usize)) -> Problem {
    let number = line.number;
    Problem::new(format!(
        "line {number}: {place} is off the {rows} x {cols} grid: give a larger grid or remove the \
         line"
    ))
}

type Columns = (Vec<Site>, Entries, BandLabels);

/// A value and whether it is the caller's code for "not heard".
fn entry(line: &Line, column: usize, unit: Unit, code: Option<f64>) -> Check<(f64, bool)> {
    match code {
        Some(code) if line.number(column)? == code => Ok((f64::NAN, true)),
        _ => Ok((line.power(column, unit)?, false)),
    }
}

fn wide(
    lines: &mut Lines<'_>,
    places: &mut Places,
    bands: &[Band],
    options: &ReadOptions,
) -> Check<Columns> {
    let (mut sites, mut values, mut silent, mut spread) = (vec![], vec![], vec![], vec![]);
    while let Some(line) = lines.next()? {
        sites.push(places.site(&line)?);
        for band in bands {
            let (value, unheard) = entry(&line, band.column, band.unit, options.not_heard)?;
            values.push(value);
            silent.push(unheard);
            if let Some(column) = band.spread {
                spread.push(line.number(column)?);
            }
        }
    }
    let freq_hz: Option<Vec<f64>> = bands.iter().map(|band| band.freq_hz).collect();
    let names: Option<Vec<String>> = bands.iter().map(|band| band.label.clone()).collect();
    let shape = (sites.len(), bands.len());
    let wrong = |error: ndarray::ShapeError| Problem::new(error.to_string());
    let spread = match spread.len() == values.len() {
        true => Some(Array2::from_shape_vec(shape, spread).map_err(wrong)?),
        false => None,
    };
    let entries = Entries {
        power: Array2::from_shape_vec(shape, values).map_err(wrong)?,
        count: None,
        silent: Array2::from_shape_vec(shape, silent).map_err(wrong)?,
        spread,
    };
    Ok((sites, entries, BandLabels::new(freq_hz, names, bands.len())?))
}

struct LongColumns {
    freq: usize,
    scale: f64,
    power: usize,
    unit: Unit,
}

fn long(
    lines: &mut Lines<'_>,
    places: &mut Places,
    columns: LongColumns,
    scale: Scale,
    (header, options): (&Line, &ReadOptions),
    warnings: &mut Vec<String>,
) -> Check<Columns> {
    let mut sensors = HashMap::new();
    let (mut sites, mut entries) = (Vec::new(), Vec::new());
    // Positive floats sort as their bits do.
    let mut bands = BTreeMap::<u64, usize>::new();
    while let Some(line) = lines.next()? {
        let site = places.site(&line)?;
        let freq_hz = line.number(columns.freq)? * columns.scale;
        if !(freq_hz > 0.0 && freq_hz.is_finite()) {
            let name = quoted(header.record.get(columns.freq).unwrap_or_default());
            return Err(
                line.wrong(columns.freq, &format!("expected a positive frequency as {name}"))
            );
        }
        let key = [(site.x_m + 0.0).to_bits(), (site.y_m + 0.0).to_bits()];
        let sensor = *sensors.entry(key).or_insert_with(|| {
            sites.push(site);
            sites.len() - 1
        });
        bands.insert(freq_hz.to_bits(), 0);
        let (value, unheard) = entry(&line, columns.power, columns.unit, options.not_heard)?;
        entries.push((sensor, freq_hz.to_bits(), value, unheard));
    }
    for (band, place) in bands.values_mut().enumerate() {
        *place = band;
    }
    let most = MOST_ENTRIES.max(entries.len().saturating_mul(1000));
    if sites.len().checked_mul(bands.len()).is_none_or(|n| n > most) {
        return Err(Problem::new(format!(
            "{} places and {} frequencies in {} lines: too few places share a frequency",
            sites.len(),
            bands.len(),
            entries.len()
        )));
    }
    let shape = (sites.len(), bands.len());
    let (mut sum, mut count) = (Array2::<f64>::zeros(shape), Array2::<f64>::zeros(shape));
    let mut last = Array2::from_elem(shape, f64::NAN);
    let mut zero = Array2::from_elem(shape, false);
    let mut silent = Array2::from_elem(shape, false);
    for (sensor, freq, value, unheard) in entries {
        let at = [sensor, bands[&freq]];
        silent[at] |= unheard;
        // Where the scale has no zero, a power of zero was not heard.
        if !value.is_nan() && (value > 0.0 || scale.has_zero()) {
            sum[at] += if scale.has_zero() { value } else { value.ln() };
            count[at] += 1.0;
            last[at] = value;
        }
        zero[at] |= value == 0.0;
    }
    let repeated: f64 = count.iter().map(|n| (n - 1.0).max(0.0)).sum();
    if repeated > 0.0 {
        warnings.push(format!("{repeated} line(s) repeat a place and frequency: averaged"));
    }
    let power = Array2::from_shape_fn(shape, |at| match (count[at] > 0.0, zero[at]) {
        // One reading stays what it is, to the last bit.
        (true, _) if count[at] == 1.0 => last[at],
        (true, _) if scale.has_zero() => sum[at] / count[at],
        (true, _) => (sum[at] / count[at]).exp(),
        (false, true) => 0.0,
        (false, false) => f64::NAN,
    });
    // Heard once is heard.
    ndarray::Zip::from(&mut silent).and(&count).for_each(|s, n| *s &= *n == 0.0);
    let freq_hz = bands.keys().map(|bits| f64::from_bits(*bits)).collect();
    let count = (repeated > 0.0).then(|| count.mapv(|n| n.max(1.0)));
    let entries = Entries { power, count, silent, spread: None };
    Ok((sites, entries, BandLabels::from_frequencies(freq_hz)?))
}
