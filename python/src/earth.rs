//! Degrees and metres.

use ndarray::Array2;
use numpy::{IntoPyArray, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use portolan::{Crs, Site};
use portolan_io::gis::earth::{Degrees, Projection, crs_around};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors;

/// The system of a name such as EPSG:32632.
pub fn crs(text: Option<&str>) -> PyResult<Option<Crs>> {
    text.map(|text| text.parse::<Crs>().map_err(errors::input)).transpose()
}

fn projection(crs: Crs) -> PyResult<Projection> {
    Projection::new(crs).map_err(PyValueError::new_err)
}

/// Metres (n, 2) of latitudes and longitudes, and the system: the one asked for, or the UTM zone
/// around them.
#[pyfunction]
#[pyo3(signature = (lat, lon, crs = None))]
pub fn to_metres<'py>(
    py: Python<'py>,
    lat: PyReadonlyArray1<'_, f64>,
    lon: PyReadonlyArray1<'_, f64>,
    crs: Option<&str>,
) -> PyResult<(Bound<'py, PyArray2<f64>>, String)> {
    let pairs = lat.as_array().into_iter().copied().zip(lon.as_array().into_iter().copied());
    let places: Vec<Degrees> = pairs.map(|(lat, lon)| Degrees { lat, lon }).collect();
    let crs = self::crs(crs)?.unwrap_or_else(|| crs_around(&places));
    let projection = projection(crs)?;
    let mut metres = Array2::zeros((places.len(), 2));
    for (mut row, at) in metres.rows_mut().into_iter().zip(places) {
        let site = projection.forward(at).map_err(PyValueError::new_err)?;
        (row[0], row[1]) = (site.x_m, site.y_m);
    }
    Ok((metres.into_pyarray(py), crs.to_string()))
}

/// Latitude and longitude (n, 2) of places in metres.
#[pyfunction]
pub fn to_degrees<'py>(
    py: Python<'py>,
    places: PyReadonlyArray2<'_, f64>,
    crs: &str,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let projection = projection(crs.parse().map_err(errors::input)?)?;
    let places = places.as_array();
    if places.ncols() != 2 {
        return Err(PyValueError::new_err("places: give (places, 2), x and y in metres"));
    }
    let mut degrees = Array2::zeros((places.nrows(), 2));
    for (mut row, at) in degrees.rows_mut().into_iter().zip(places.rows()) {
        let found = projection.inverse(Site::new(at[0], at[1])).map_err(PyValueError::new_err)?;
        (row[0], row[1]) = (found.lat, found.lon);
    }
    Ok(degrees.into_pyarray(py))
}

/// A system as well-known text.
#[pyfunction]
pub fn well_known_text(crs: &str) -> PyResult<String> {
    let crs: Crs = crs.parse().map_err(errors::input)?;
    portolan_io::gis::earth::well_known_text(crs)
        .ok_or_else(|| PyValueError::new_err(format!("{crs} is not known here")))
}
