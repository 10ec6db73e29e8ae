//! Range and gaps of the power of a large map, block by block.

use ndarray::{Array2, Axis};

use crate::error::{Check, Problem, quoted, shown};
use crate::large_map::MOST_LOADED;
use crate::memory::shown_bytes;
use crate::npz::Npz;
use crate::options::Unit;
use crate::store::{Entry, Store};
use crate::stored_map::product;

/// Factors are compared at this many of their elements at most, in up to 64 cells.
const MOST_COMPARED: usize = 1 << 20;
const COMPARED_BANDS: usize = 16;

/// What a pass over the power finds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Scan {
    /// Least and greatest known power, linear.
    pub range: Option<(f64, f64)>,
    pub gaps: usize,
    /// Entries of exactly 0 dBm, which are among the gaps.
    pub unmeasured: usize,
}

impl Scan {
    fn count(&mut self, value: f64) {
        if value.is_nan() {
            self.gaps += 1;
        } else {
            let (least, most) = self.range.unwrap_or((value, value));
            self.range = Some((least.min(value), most.max(value)));
        }
    }
}

/// How the axes of an array stand.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axes {
    pub rows: usize,
    pub cols: usize,
    pub bands: usize,
    bands_first: bool,
}

impl Axes {
    /// Rows x cols x bands, or bands x rows x cols; a matrix is one band.
    pub fn new(entry: &Entry, bands_first: bool) -> Check<Self> {
        let (rows, cols, bands) = match (entry.shape.as_slice(), bands_first) {
            (&[bands, rows, cols], true) => (rows, cols, bands),
            (&[rows, cols, bands], false) => (rows, cols, bands),
            (&[rows, cols], _) => (rows, cols, 1),
            _ => {
                let (name, shape) = (quoted(&entry.name), &entry.shape);
                return Err(Problem::new(format!(
                    "array {name} has shape {shape:?}, expected rows x cols x bands"
                )));
            }
        };
        Ok(Self { rows, cols, bands, bands_first: bands_first && entry.shape.len() == 3 })
    }

    /// The axes in the order of the file, the slowest first: side, and whether it is of rows,
    /// columns or bands.
    fn in_file(&self, column_major: bool) -> [(usize, usize); 3] {
        let (rows, cols, bands) = ((self.rows, 0), (self.cols, 1), (self.bands, 2));
        let mut axes = if self.bands_first { [bands, rows, cols] } else { [rows, cols, bands] };
        if column_major {
            axes.reverse();
        }
        axes
    }

    /// Row, column and band of the element at a position of the file.
    fn place(&self, column_major: bool, position: usize) -> [usize; 3] {
        let mut place = [0; 3];
        let mut left = position;
        for (side, axis) in self.in_file(column_major).into_iter().rev() {
            place[axis] = left % side;
            left /= side;
        }
        place
    }

    fn position(&self, column_major: bool, place: [usize; 3]) -> usize {
        let axes = self.in_file(column_major).into_iter();
        axes.fold(0, |position, (side, axis)| position * side + place[axis])
    }
}

/// Elements at some positions, picked out of a stream.
struct Picked {
    /// Position and number of each, by position.
    wanted: Vec<(usize, usize)>,
    next: usize,
    values: Vec<f64>,
}

impl Picked {
    fn new(positions: impl Iterator<Item = usize>) -> Self {
        let mut wanted: Vec<(usize, usize)> = positions.zip(0..).collect();
        wanted.sort_unstable();
        let values = vec![f64::NAN; wanted.len()];
        Self { wanted, next: 0, values }
    }

    fn take(&mut self, first: usize, block: &[f64]) {
        while let Some(&(position, number)) = self.wanted.get(self.next) {
            let Some(&value) = block.get(position - first) else { break };
            self.values[number] = value;
            self.next += 1;
        }
    }
}

/// Every few steps of `count`, at most about `most` in all.
fn some(count: usize, most: usize) -> impl Iterator<Item = usize> + Clone {
    (0..count).step_by((count / most.max(1)).max(1)).take(most)
}

/// A pass over a dense array, and where a negative number shows that it is in decibels, another.
/// Where SLFs and PSDs are given, tells too whether they make it up.
pub(crate) fn scan_power(
    npz: &mut Npz<'_>,
    index: usize,
    axes: &Axes,
    unit: Unit,
    factors: Option<&(usize, Array2<f64>)>,
) -> Check<(Scan, bool)> {
    let mut negative = false;
    if unit.is_decibels() {
        npz.numbers(index)?;
        // The error only ends the pass.
        let found = npz.scan(index, |_, block| {
            negative |= block.iter().any(|v| *v < 0.0);
            if negative { Err(Problem::new("in decibels")) } else { Ok(()) }
        });
        if !negative {
            found?;
        }
    }
    scan_as(npz, index, axes, if negative { unit } else { Unit::Linear }, factors)
}

fn scan_as(
    npz: &mut Npz<'_>,
    index: usize,
    axes: &Axes,
    unit: Unit,
    factors: Option<&(usize, Array2<f64>)>,
) -> Check<(Scan, bool)> {
    let column_major = npz.array(index).header.column_major;
    let name = npz.entries()[index].name.clone();
    npz.numbers(index)?;
    // Many emitters are compared at few cells.
    let compared = factors.map_or(0, |(_, psd)| (MOST_COMPARED / psd.nrows()).clamp(1, 64));
    let cells = some(axes.rows * axes.cols, compared);
    let cells = cells.map(|cell| (cell / axes.cols, cell % axes.cols));
    let bands = some(axes.bands, COMPARED_BANDS);
    let at = |(row, col): (usize, usize), band| axes.position(column_major, [row, col, band]);
    let mut picked = Picked::new(
        cells
            .clone()
            .flat_map(|cell| bands.clone().map(move |band| (cell, band)))
            .map(|(cell, band)| at(cell, band)),
    );
    let mut scan = Scan::default();
    npz.scan(index, |first, block| {
        picked.take(first, block);
        for (n, &found) in block.iter().enumerate() {
            let mut value = found;
            if unit.is_decibels() {
                let unmeasured = found == 0.0;
                scan.unmeasured += usize::from(unmeasured);
                value = if unmeasured { f64::NAN } else { unit.to_linear(found) };
            }
            if value < 0.0 || value.is_infinite() {
                let [row, col, band] = axes.place(column_major, first + n);
                let (name, found) = (quoted(&name), shown(found));
                let hint = if value < 0.0 { ": pass --unit dbm if it is in dBm" } else { "" };
                return Err(Problem::new(format!(
                    "array {name} at row {row}, col {col}, band {band} is {found}, expected linear \
                     power{hint}"
                )));
            }
            scan.count(value);
        }
        Ok(())
    })?;
    let Some((slf, psd)) = factors else { return Ok((scan, false)) };
    let sums = products(npz, *slf, psd, cells, bands.clone())?;
    // Sums of tiny terms keep fewer digits; what is 1e-12 of the peak decides nothing.
    let peak = scan.range.map_or(0.0, |(_, most)| most);
    let close = |sum: f64, found: f64| {
        (sum.is_nan() && found.is_nan()) || (sum - found).abs() <= 1e-4 * found.abs() + 1e-12 * peak
    };
    let reproduced = sums.iter().zip(&picked.values).all(|(sum, found)| close(*sum, *found));
    Ok((scan, reproduced && !unit.is_decibels()))
}

/// The product of the factors at some cells and bands.
fn products(
    npz: &mut Npz<'_>,
    slf: usize,
    psd: &Array2<f64>,
    cells: impl Iterator<Item = (usize, usize)> + Clone,
    bands: impl Iterator<Item = usize> + Clone,
) -> Check<Vec<f64>> {
    let emitters = psd.nrows();
    // Emitters x rows x cols stand like bands x rows x cols.
    let axes = Axes::new(&npz.entries()[slf], true)?;
    npz.numbers(slf)?;
    let column_major = npz.array(slf).header.column_major;
    let places = cells.flat_map(|(row, col)| (0..emitters).map(move |r| [row, col, r]));
    let mut picked = Picked::new(places.map(|place| axes.position(column_major, place)));
    npz.scan(slf, |first, block| {
        picked.take(first, block);
        Ok(())
    })?;
    let sums = picked.values.chunks(emitters).flat_map(|losses| {
        bands.clone().map(move |band| losses.iter().zip(psd.column(band)).map(|(s, c)| s * c).sum())
    });
    Ok(sums.collect())
}

/// One pass over the SLFs, then the map of them in blocks of cells.
pub(crate) fn scan_factors(
    npz: &mut Npz<'_>,
    slf: usize,
    psd: &Array2<f64>,
    (rows, cols): (usize, usize),
) -> Check<Scan> {
    let emitters = psd.nrows();
    let array = npz.array(slf);
    if !array.stored || array.header.column_major {
        let size = (emitters as u64).saturating_mul(rows as u64).saturating_mul(8 * cols as u64);
        let size = shown_bytes(size);
        return Err(npz.wrong(
            slf,
            format!("{size} that cannot be read in parts: save it by np.savez in C order"),
        ));
    }
    npz.scan(slf, |first, block| match block.iter().position(|v| *v < 0.0 || v.is_infinite()) {
        Some(n) => {
            let (cell, value) = ((first + n) % (rows * cols), shown(block[n]));
            let (emitter, row, col) = ((first + n) / (rows * cols), cell / cols, cell % cols);
            Err(Problem::new(format!(
                "array 'slf' at emitter {emitter}, row {row}, col {col} is {value}, expected a power"
            )))
        }
        None => Ok(()),
    })?;
    let bands = psd.len_of(Axis(1));
    let cells = (MOST_LOADED as usize / 16 / (emitters + bands)).max(1);
    let (tall, wide) = ((cells / cols).max(1), cells.min(cols));
    let mut scan = Scan::default();
    for row in (0..rows).step_by(tall) {
        for col in (0..cols).step_by(wide) {
            let region = [row..(row + tall).min(rows), col..(col + wide).min(cols), 0..bands];
            product(npz, &region)?.iter().for_each(|value| scan.count(*value));
        }
    }
    Ok(scan)
}
