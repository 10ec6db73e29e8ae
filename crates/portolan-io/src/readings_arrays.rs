//! Readings from and to named arrays.

use ndarray::{Array2, Axis};
use portolan::quantiser::MISSING_LEVEL;
use portolan::{Cell, Grid, Quantiser, Readings, Values};

use crate::error::{Check, Problem, shown};
use crate::map_arrays::{cell_m, frequencies};
use crate::options::ReadOptions;
use crate::store::{Field, FieldData, Store, matrix, scalar, vector};

/// No grid has this many rows or columns.
const FARTHEST: f64 = (1u64 << 40) as f64;

/// True where the arrays can make readings.
pub(crate) fn is_readings(store: &dyn Store) -> bool {
    store.has("cells") && (store.has("values") || store.has("levels"))
}

pub(crate) fn read(
    store: &mut dyn Store,
    options: &ReadOptions,
    warnings: &mut Vec<String>,
) -> Check<Readings> {
    if !is_readings(store) {
        let names = store.names();
        let expected = "'grid', 'cells' and 'values' (or 'levels')";
        return Err(Problem::new(format!("holds {names}, expected {expected}")));
    }
    let (rows, cols) = sides(store, options)?;
    let grid = Grid::new(rows, cols, cell_m(store, options)?)?;
    let cells = cells(store, grid)?;
    let values = match (store.has("values"), store.has("levels")) {
        (true, true) => {
            return Err(Problem::new("holds both 'values' and 'levels', expected one of them"));
        }
        (true, false) => Values::Power(power(store, options)?),
        (false, _) => levels(store)?,
    };
    let (readings, merged) = Readings::merged(grid, cells, values)?;
    warn_merged(merged, warnings);
    Ok(readings.with_frequencies(frequencies(store)?)?)
}

pub(crate) fn warn_merged(merged: usize, warnings: &mut Vec<String>) {
    if merged > 0 {
        warnings.push(format!("{merged} sensor(s) share a cell with an earlier one: averaged"));
    }
}

fn sides(store: &mut dyn Store, options: &ReadOptions) -> Check<(usize, usize)> {
    let Some(array) = store.find("grid")? else {
        return options
            .grid
            .ok_or_else(|| Problem::new("array 'grid' is missing: pass --grid ROWSxCOLS"));
    };
    let sides = vector("grid", array)?;
    let &[rows, cols] = sides.as_slice() else {
        return Err(Problem::new(format!(
            "array 'grid' holds {} numbers, expected rows and cols",
            sides.len()
        )));
    };
    let whole = |v: f64| (v.fract() == 0.0 && (1.0..FARTHEST).contains(&v)).then_some(v as usize);
    let (Some(rows), Some(cols)) = (whole(rows), whole(cols)) else {
        return Err(Problem::new(format!(
            "array 'grid' is {} x {}, expected whole numbers of 1 or more",
            shown(rows),
            shown(cols)
        )));
    };
    match options.grid {
        Some((r, c)) if (r, c) != (rows, cols) => Err(Problem::new(format!(
            "the grid is {rows} x {cols} cells, but {r} x {c} was asked for"
        ))),
        _ => Ok((rows, cols)),
    }
}

fn cells(store: &mut dyn Store, grid: Grid) -> Check<Vec<Cell>> {
    let array = matrix("cells", store.need("cells", "")?, "sensors x 2 (row, col)")?;
    if array.ncols() != 2 {
        let shape = array.shape();
        return Err(Problem::new(format!(
            "array 'cells' has shape {shape:?}, expected [sensors, 2]"
        )));
    }
    let cell = |(sensor, place): (usize, ndarray::ArrayView1<'_, f64>)| {
        let (row, col) = (place[0], place[1]);
        let at = format!("array 'cells', sensor {sensor}: row {}, col {}", shown(row), shown(col));
        if row.fract() != 0.0 || col.fract() != 0.0 {
            return Err(Problem::new(format!("{at}, expected whole numbers")));
        }
        if !(0.0..grid.rows() as f64).contains(&row) || !(0.0..grid.cols() as f64).contains(&col) {
            let (rows, cols) = (grid.rows(), grid.cols());
            return Err(Problem::new(format!("{at} is off the {rows} x {cols} grid")));
        }
        Ok(Cell::new(row as usize, col as usize))
    };
    array.rows().into_iter().enumerate().map(cell).collect()
}

/// Sensors x bands; a vector is one band.
fn table(name: &str, store: &mut dyn Store) -> Check<Array2<f64>> {
    let array = store.need(name, "")?;
    let array = if array.ndim() == 1 { array.insert_axis(Axis(1)) } else { array };
    matrix(name, array, "sensors x bands")
}

fn power(store: &mut dyn Store, options: &ReadOptions) -> Check<Array2<f64>> {
    let mut values = table("values", store)?;
    match options.unit {
        Some(unit) => values.mapv_inplace(|v| unit.to_linear(v)),
        None => {
            if let Some(((sensor, band), value)) = values.indexed_iter().find(|(_, v)| **v < 0.0) {
                return Err(Problem::new(format!(
                    "array 'values' at sensor {sensor}, band {band} is {}, expected linear \
                     power: pass --unit dbm if it is in dBm",
                    shown(*value)
                )));
            }
        }
    }
    Ok(values)
}

fn levels(store: &mut dyn Store) -> Check<Values> {
    let why = "levels come with their quantiser: 'edges', 'sigma' and 'a'";
    let edges = vector("edges", store.need("edges", why)?)?;
    let sigma = scalar("sigma", store.need("sigma", why)?)?;
    let offset = scalar("a", store.need("a", why)?)?;
    let quantiser = Quantiser::new(edges, sigma, offset)?;
    let raw = table("levels", store)?;
    let mut levels = Array2::from_elem(raw.raw_dim(), MISSING_LEVEL);
    for ((sensor, band), &value) in raw.indexed_iter() {
        if value.is_nan() {
            continue;
        }
        if value.fract() != 0.0 || !(0.0..=255.0).contains(&value) {
            return Err(Problem::new(format!(
                "array 'levels' at sensor {sensor}, band {band} is {}, expected 0 to {} (255 = missing)",
                shown(value),
                quantiser.edges().len()
            )));
        }
        levels[[sensor, band]] = value as u8;
    }
    Ok(Values::Levels { levels, quantiser })
}

/// The arrays of a set of readings.
pub(crate) fn fields(readings: &Readings) -> Vec<Field<'_>> {
    let grid = readings.grid();
    let whole = |name, array: ndarray::ArrayD<i64>| Field { name, data: FieldData::Whole(array) };
    let sides = ndarray::arr1(&[grid.rows() as i64, grid.cols() as i64]);
    let cells = Array2::from_shape_fn((readings.sensors(), 2), |(sensor, axis)| {
        let cell = readings.cells()[sensor];
        if axis == 0 { cell.row as i64 } else { cell.col as i64 }
    });
    let mut fields = vec![whole("grid", sides.into_dyn()), whole("cells", cells.into_dyn())];
    match readings.values() {
        Values::Power(power) => {
            fields.push(Field::real("values", power.view().into_dyn().into()));
        }
        Values::Levels { levels, quantiser } => {
            let levels = FieldData::Byte(levels.view().into_dyn().into());
            fields.push(Field { name: "levels", data: levels });
            fields.push(Field::vector("edges", quantiser.edges()));
            fields.push(Field::scalar("sigma", quantiser.sigma()));
            fields.push(Field::scalar("a", quantiser.offset()));
        }
    }
    if let Some(freq_hz) = readings.freq_hz() {
        fields.push(Field::vector("freq_hz", freq_hz));
    }
    fields.push(Field::scalar("cell_m", grid.cell_m()));
    fields
}
