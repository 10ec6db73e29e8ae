//! Readings from and to named arrays.

use ndarray::{Array2, Axis};
use portolan::estimate::with_likeliest_sigma;
use portolan::quantiser::MISSING_LEVEL;
use portolan::{Devices, Grid, Quantiser, Readings, Scale, Site, Values};

use crate::error::{Check, Problem, shown};
use crate::options::{ReadOptions, Unit};
use crate::store::{ArrayData, NamedArray, Store, matrix, scalar, vector};
use crate::unit_arrays::{crs, frame_arrays, grid, grid_arrays, labels, unit, value_unit};

/// No grid has this many rows or columns.
const FARTHEST: f64 = (1u64 << 40) as f64;

/// True where the arrays can make readings.
pub(crate) fn is_readings(store: &dyn Store) -> bool {
    (store.has("cells") || store.has("sites")) && (store.has("values") || store.has("levels"))
}

pub(crate) fn read(
    store: &mut dyn Store,
    options: &ReadOptions,
    warnings: &mut Vec<String>,
) -> Check<Readings> {
    if !is_readings(store) {
        let names = store.names();
        let expected = "'sites' (or 'grid' and 'cells') and 'values' (or 'levels')";
        return Err(Problem::new(format!("holds {names}, expected {expected}")));
    }
    let grid = match (store.has("cells"), store.has("grid") || options.grid.is_some()) {
        (true, _) | (false, true) => {
            let sides = sides(store, options)?;
            Some(grid(store, sides, options)?)
        }
        (false, false) => None,
    };
    let sites = match (store.has("sites"), grid) {
        (true, _) => sites(store)?,
        (false, Some(grid)) => cells(store, grid)?,
        (false, None) => return Err(Problem::new("array 'sites' is missing")),
    };
    let (values, scale) = match (store.has("values"), store.has("levels")) {
        (true, true) => {
            return Err(Problem::new("holds both 'values' and 'levels', expected one of them"));
        }
        (true, false) => {
            let (unit, scale) = unit(store, options, None, warnings)?;
            (Values::Power(power(store, unit)?), scale)
        }
        (false, _) => levels(store)?,
    };
    let bands = values.dim().1;
    let mut readings = options.readings(sites, values, scale)?;
    if store.has("levels") && !store.has("sigma") {
        readings = with_likeliest_sigma(readings)
            .map_err(|error| Problem::new(format!("array 'sigma' is missing: {error}")))?;
        if let Values::Levels { quantiser, .. } = readings.values() {
            warnings.push(format!(
                "array 'sigma' is missing: taken to be {:.2}, the noise in ln power before the \
                 quantiser that makes the levels likeliest",
                quantiser.sigma()
            ));
        }
    }
    let labels = labels(store, bands)?;
    let crs = crs(store, options)?;
    let readings = readings.with_grid(grid)?.with_labels(labels)?.with_crs(crs);
    let readings = readings.with_devices(devices(store)?);
    attach(readings, store)
}

/// The devices whose offsets were taken out of the readings.
fn devices(store: &mut dyn Store) -> Check<Option<Devices>> {
    let Some(names) = store.find_text("devices")? else { return Ok(None) };
    let mut numbers = |name: &'static str| -> Check<Vec<f64>> {
        let array = store.find(name)?;
        let missing = || Problem::new(format!("array 'devices' needs '{name}' beside it"));
        vector(name, array.ok_or_else(missing)?)
    };
    let (offset, se) = (numbers("device_offset_db")?, numbers("device_se_db")?);
    let spread = numbers("device_spread_db")?;
    let &[spread] = &spread[..] else {
        return Err(Problem::new("array 'device_spread_db' is not one number"));
    };
    Ok(Some(Devices::known(names, offset, se, spread)?))
}

/// What is known about single entries.
fn attach(readings: Readings, store: &mut dyn Store) -> Check<Readings> {
    let (sensors, bands) = readings.values().dim();
    let mut entries = |name: &'static str| -> Check<Option<Array2<f64>>> {
        let Some(index) = store.position(name) else { return Ok(None) };
        let array = store.load(index)?;
        let array = if array.ndim() == 1 { array.insert_axis(Axis(1)) } else { array };
        let array = matrix(name, array, "sensors x bands")?;
        if array.dim() != (sensors, bands) {
            let shape = array.shape();
            return Err(Problem::new(format!(
                "array '{name}' has shape {shape:?}, expected [{sensors}, {bands}]"
            )));
        }
        Ok(Some(array))
    };
    let (count, noise) = (entries("count")?, entries("noise_db")?);
    let not_heard = entries("not_heard")?;
    let time = store.find("time_s")?.map(|array| vector("time_s", array)).transpose()?;
    let mut readings = readings.with_noise_db(noise)?;
    if count.is_some() {
        readings = readings.with_repeats(count)?;
    }
    readings = readings.with_time_s(time)?;
    let Some(silent) = not_heard else { return Ok(readings) };
    let silent = silent.mapv(|v| v != 0.0);
    if let Some(below) = store.find("below_dbm")? {
        let below = vector("below_dbm", below)?;
        return Ok(
            readings.with_weaker(silent, below.iter().map(|b| 10f64.powf(b / 10.0)).collect())?
        );
    }
    let floor = match store.find("floor_dbm")? {
        Some(array) => vector("floor_dbm", array)?,
        None => return Err(Problem::new("array 'not_heard' needs 'floor_dbm' beside it")),
    };
    let floor: Vec<f64> = match floor[..] {
        [one] => vec![one; bands],
        _ => floor,
    };
    Ok(readings.with_not_heard(silent, floor.iter().map(|f| 10f64.powf(f / 10.0)).collect())?)
}

fn sites(store: &mut dyn Store) -> Check<Vec<Site>> {
    let array =
        matrix("sites", store.need("sites", "")?, "sensors x 2 (x, y in metres) or x 3 (z too)")?;
    if ![2, 3].contains(&array.ncols()) {
        let shape = array.shape();
        return Err(Problem::new(format!(
            "array 'sites' has shape {shape:?}, expected [sensors, 2] or [sensors, 3]"
        )));
    }
    let height = |row: ndarray::ArrayView1<'_, f64>| row.get(2).copied().unwrap_or(0.0);
    let site = |row: ndarray::ArrayView1<'_, f64>| Site::new(row[0], row[1]).at_height(height(row));
    Ok(array.rows().into_iter().map(site).collect())
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

fn cells(store: &mut dyn Store, grid: Grid) -> Check<Vec<Site>> {
    let array = matrix("cells", store.need("cells", "")?, "sensors x 2 (row, col)")?;
    if array.ncols() != 2 {
        let shape = array.shape();
        return Err(Problem::new(format!(
            "array 'cells' has shape {shape:?}, expected [sensors, 2] or [sensors, 3]"
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
        Ok(grid.site_at([row, col]))
    };
    array.rows().into_iter().enumerate().map(cell).collect()
}

/// Sensors x bands; a vector is one band.
fn table(name: &str, store: &mut dyn Store) -> Check<Array2<f64>> {
    let array = store.need(name, "")?;
    let array = if array.ndim() == 1 { array.insert_axis(Axis(1)) } else { array };
    matrix(name, array, "sensors x bands")
}

fn power(store: &mut dyn Store, unit: Unit) -> Check<Array2<f64>> {
    let mut values = table("values", store)?;
    let unit = value_unit(unit, values.iter().copied());
    if unit.is_decibels() {
        values.mapv_inplace(|v| unit.to_linear(v));
    } else if let Some(((sensor, band), value)) = values.indexed_iter().find(|(_, v)| **v < 0.0) {
        return Err(Problem::new(format!(
            "array 'values' at sensor {sensor}, band {band} is {}, expected linear power: pass \
             --unit dbm if it is in dBm",
            shown(*value)
        )));
    }
    Ok(values)
}

fn levels(store: &mut dyn Store) -> Check<(Values, Scale)> {
    let why = "levels come with their quantiser: 'edges' and 'a', and 'sigma' where it is known";
    let edges = vector("edges", store.need("edges", why)?)?;
    let sigma = store.find("sigma")?.map_or(Ok(0.0), |array| scalar("sigma", array))?;
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
    let scale = Scale::relative(quantiser.offset())?;
    Ok((Values::Levels { levels, quantiser }, scale))
}

/// The arrays of a set of readings. Sensors on the cells of their grid are written as cells.
pub(crate) fn arrays(readings: &Readings) -> Vec<NamedArray<'_>> {
    let whole = |name: &'static str, array: ndarray::ArrayD<i64>| NamedArray {
        name: name.into(),
        data: ArrayData::Whole(array),
    };
    let mut arrays = Vec::new();
    if let Some(grid) = readings.grid() {
        let sides = ndarray::arr1(&[grid.rows() as i64, grid.cols() as i64]);
        arrays.push(whole("grid", sides.into_dyn()));
    }
    let on_cells = readings.grid().filter(|grid| {
        let centred = |site: &Site| grid.cell_at(*site).is_some_and(|c| grid.site(c) == *site);
        readings.sites().iter().all(centred)
    });
    match on_cells {
        Some(grid) => {
            let cells = Array2::from_shape_fn((readings.sensors(), 2), |(sensor, axis)| {
                grid.position(readings.sites()[sensor])[axis].round() as i64
            });
            arrays.push(whole("cells", cells.into_dyn()));
        }
        None => {
            let flat = readings.sites().iter().all(|site| site.z_m == 0.0);
            let shape = (readings.sensors(), if flat { 2 } else { 3 });
            let sites = Array2::from_shape_fn(shape, |(sensor, axis)| {
                let Site { x_m, y_m, z_m } = readings.sites()[sensor];
                [x_m, y_m, z_m][axis]
            });
            arrays.push(NamedArray::real("sites", sites.into_dyn().into()));
        }
    }
    match readings.values() {
        Values::Power(power) => {
            arrays.push(NamedArray::real("values", power.view().into_dyn().into()));
        }
        Values::Levels { levels, quantiser } => {
            let levels = ArrayData::Byte(levels.view().into_dyn().into());
            arrays.push(NamedArray { name: "levels".into(), data: levels });
            arrays.push(NamedArray::vector("edges", quantiser.edges()));
            arrays.push(NamedArray::scalar("sigma", quantiser.sigma()));
            arrays.push(NamedArray::scalar("a", quantiser.offset()));
        }
    }
    if let Some(repeats) = readings.repeats() {
        arrays.push(NamedArray::real("count", repeats.view().into_dyn().into()));
    }
    if let Some(noise) = readings.noise_db() {
        arrays.push(NamedArray::real("noise_db", noise.view().into_dyn().into()));
    }
    if let Some(time) = readings.time_s() {
        arrays.push(NamedArray::vector("time_s", time));
    }
    if let Some(devices) = readings.devices() {
        arrays.push(NamedArray::texts("devices", &devices.names));
        arrays.push(NamedArray::vector("device_offset_db", &devices.offset_db));
        arrays.push(NamedArray::vector("device_se_db", &devices.se_db));
        arrays.push(NamedArray::scalar("device_spread_db", devices.spread_db));
    }
    if let Some(silent) = readings.not_heard() {
        arrays.push(NamedArray::truth("not_heard", silent.entries.view().into_dyn().into()));
        let floor: ndarray::Array1<f64> = silent.floor.iter().map(|f| 10.0 * f.log10()).collect();
        arrays.push(NamedArray::real("floor_dbm", floor.into_dyn().into()));
        if let Some(below) = &silent.below {
            let below: ndarray::Array1<f64> = below.iter().map(|b| 10.0 * b.log10()).collect();
            arrays.push(NamedArray::real("below_dbm", below.into_dyn().into()));
        }
    }
    arrays.extend(frame_arrays(readings.frame()));
    arrays.extend(readings.grid().into_iter().flat_map(grid_arrays));
    arrays
}
