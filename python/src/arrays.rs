//! Places and decibels between NumPy and the library.

use ndarray::{Array2, ArrayView2, Axis};
use portolan::{InputError, Scale, Site};
use portolan_io::Unit;
use pyo3::PyResult;
use pyo3::exceptions::PyValueError;

/// Rows of x and y in metres, or of x, y and z; without z they are at `height_m`.
pub fn sites(places: ArrayView2<'_, f64>, height_m: f64) -> Result<Vec<Site>, InputError> {
    if ![2, 3].contains(&places.ncols()) {
        let message = format!(
            "places have {} coordinates: give x and y in metres, shape (n, 2), or x, y and z, (n, 3)",
            places.ncols()
        );
        return Err(InputError::Request(message));
    }
    let site = |row: ndarray::ArrayView1<'_, f64>| {
        Site::new(row[0], row[1]).at_height(row.get(2).copied().unwrap_or(height_m))
    };
    Ok(places.axis_iter(Axis(0)).map(site).collect())
}

/// Rows of x and y, and of z where a place has a height.
pub fn places(sites: &[Site]) -> Array2<f64> {
    let flat = sites.iter().all(|site| site.z_m == 0.0);
    Array2::from_shape_fn((sites.len(), if flat { 2 } else { 3 }), |(i, axis)| {
        let Site { x_m, y_m, z_m } = sites[i];
        [x_m, y_m, z_m][axis]
    })
}

/// Decibels to power; a gap stays one.
pub fn power(db: ArrayView2<'_, f64>) -> Array2<f64> {
    db.mapv(|db| 10f64.powf(0.1 * db))
}

/// Power to decibels: nothing at all is minus infinity.
pub fn decibels(mut power: Array2<f64>) -> Array2<f64> {
    power.par_mapv_inplace(|x| 10.0 * x.log10());
    power
}

/// A scale by its name; `offset` belongs to "relative".
pub fn scale(unit: &str, offset: Option<f64>) -> PyResult<Scale> {
    match (unit, offset) {
        ("dbm", None) => Ok(Scale::Absolute),
        ("db", None) => Ok(Scale::Uncalibrated),
        ("relative", None) => Ok(Scale::paper()),
        ("relative", Some(offset)) => Scale::relative(offset).map_err(crate::errors::input),
        ("dbm" | "db", Some(_)) => Err(PyValueError::new_err("offset belongs to unit='relative'")),
        _ => {
            let message = format!("unit={unit:?}: give 'dbm', 'db' or 'relative'");
            Err(PyValueError::new_err(message))
        }
    }
}

/// The name of a scale, and its offset.
pub fn unit(scale: Scale) -> (&'static str, Option<f64>) {
    match scale {
        Scale::Absolute => ("dbm", None),
        Scale::Relative { offset } => ("relative", Some(offset)),
        _ => ("db", None),
    }
}

/// The unit of a file's values by its name.
pub fn named_unit(name: Option<&str>) -> PyResult<Option<Unit>> {
    let Some(name) = name else { return Ok(None) };
    Unit::named(name).map(Some).ok_or_else(|| {
        let known: Vec<&str> = Unit::NAMED.iter().map(|(name, _)| *name).collect();
        PyValueError::new_err(format!("unit={name:?}: give one of {}", known.join(", ")))
    })
}
