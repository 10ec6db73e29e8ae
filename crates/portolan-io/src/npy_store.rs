//! A bare `.npy` array: a map of rows x columns, or rows x columns x bands.

use std::path::Path;

use ndarray::{Array2, ArrayD, Axis};
use portolan::{Cell, RadioMap, Readings, Site, Values};

use crate::error::{Check, Problem};
use crate::npy::Header;
use crate::source::contents;
use crate::store::{Entry, Store, arrange, count_elements, reserve};

/// One array, under the name of a map.
pub(crate) struct NpyStore<'a> {
    bytes: &'a [u8],
    header: Header,
    entries: [Entry; 1],
}

const NAME: &str = "map";

impl<'a> NpyStore<'a> {
    pub fn open(bytes: &'a [u8]) -> Check<Self> {
        let header = Header::read(NAME, &mut &bytes[..])?;
        let (shape, kind) = (header.shape.clone(), header.descr.clone());
        Ok(Self { bytes, header, entries: [Entry { name: NAME.into(), shape, kind }] })
    }
}

impl Store for NpyStore<'_> {
    fn entries(&self) -> &[Entry] {
        &self.entries
    }

    fn load(&mut self, _: usize) -> Check<ArrayD<f64>> {
        let Header { shape, column_major, length, descr } = &self.header;
        let (kind, big_endian) = self
            .header
            .number()
            .ok_or_else(|| Problem::new(format!("elements of type {descr}, expected numbers")))?;
        let count = count_elements(NAME, shape)?;
        let data = self.bytes.get(*length..).unwrap_or_default();
        if (data.len() as u64) != (count as u64).saturating_mul(kind.size() as u64) {
            let found = data.len();
            return Err(Problem::new(format!("{found} bytes do not fit its shape {shape:?}")));
        }
        let copies = if *column_major && shape.len() > 1 { 2 } else { 1 };
        let mut values = reserve(NAME, count, copies, "save a smaller part of it")?;
        kind.decode(big_endian, data, &mut values);
        arrange(NAME, shape, *column_major, values)
    }

    fn load_text(&mut self, _: usize) -> Check<Vec<String>> {
        Err(Problem::new("expected numbers, not text"))
    }

    fn bands_first(&self) -> bool {
        false
    }

    fn is_bare(&self) -> bool {
        true
    }
}

/// The cells of a bare array that were measured, as readings: those that a second array marks, or
/// without one those that are not NaN.
pub(crate) fn measured(map: &RadioMap, mask: Option<&Path>) -> Check<Readings> {
    let grid = map.grid();
    let mask: Option<Array2<f64>> =
        mask.map(|path| mask_of(path, (grid.rows(), grid.cols()))).transpose()?;
    let marked = |cell: Cell| mask.as_ref().is_none_or(|m| m[[cell.row, cell.col]].abs() > 0.0);
    let bands: Vec<Array2<f64>> = (0..map.bands()).map(|band| map.band(band)).collect();
    let known = |cell: Cell| bands.iter().any(|band| !band[[cell.row, cell.col]].is_nan());
    let cells: Vec<Cell> = (0..grid.cells())
        .map(|index| grid.cell(index))
        .filter(|cell| marked(*cell) && known(*cell))
        .collect();
    let power = Array2::from_shape_fn((cells.len(), bands.len()), |(sensor, band)| {
        bands[band][[cells[sensor].row, cells[sensor].col]]
    });
    let sites: Vec<Site> = cells.iter().map(|cell| grid.site(*cell)).collect();
    let readings = Readings::new(sites, Values::Power(power), map.scale())?;
    let readings = readings.with_grid(Some(grid))?.with_labels(map.labels().clone())?;
    Ok(readings.with_crs(map.crs()))
}

fn mask_of(path: &Path, sides: (usize, usize)) -> Check<Array2<f64>> {
    let name = path.display();
    let bytes = contents(path).map_err(|error| Problem::new(error.to_string()))?;
    let wrong = |problem: Problem| Problem::new(format!("--measured {name}: {problem}"));
    let mut mask = NpyStore::open(&bytes).and_then(|mut store| store.load(0)).map_err(wrong)?;
    // A mask of one band is one of all.
    if mask.ndim() == 3 && mask.shape()[2] == 1 {
        mask = mask.index_axis_move(Axis(2), 0);
    }
    let found = mask.shape().to_vec();
    let mask = mask.into_dimensionality().ok().filter(|m: &Array2<f64>| m.dim() == sides);
    mask.ok_or_else(|| {
        let (rows, cols) = sides;
        wrong(Problem::new(format!("shape {found:?}, expected {rows} x {cols} as the map")))
    })
}
