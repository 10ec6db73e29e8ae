//! Fits at places with any number of coordinates, as Python holds them.

use numpy::{IntoPyArray, PyArray2, PyReadonlyArray2};
use portolan::estimate::{SpaceMethod, SpaceModel, SpaceReadings};
use portolan::gaussian_process::Covariance;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::watched::watched;
use crate::{arrays, errors};

/// A model of readings at places with any number of coordinates.
#[pyclass(frozen, name = "NativeSpace", module = "portolan._native")]
pub struct NativeSpace {
    method: String,
    options: Vec<(String, String)>,
    inner: SpaceModel,
}

/// Decorrelation, sill and nugget in the working domain.
type Law = (f64, f64, f64);

/// Fits to places (n, coordinates) and power (n, bands), NaN = missing; with `law` nothing is
/// sought.
#[pyfunction]
#[pyo3(signature = (method, options, places, power, *, repeats = None, law = None))]
pub fn fit_space(
    py: Python<'_>,
    method: String,
    options: Vec<(String, String)>,
    places: PyReadonlyArray2<'_, f64>,
    power: PyReadonlyArray2<'_, f64>,
    repeats: Option<PyReadonlyArray2<'_, f64>>,
    law: Option<Law>,
) -> PyResult<NativeSpace> {
    let built = SpaceMethod::build(&method, options.clone()).map_err(errors::input)?;
    let built = built.ok_or_else(|| {
        let given = places.as_array().ncols();
        PyValueError::new_err(format!(
            "{method} maps the plane: X has {given} features, give x and y in metres; nearest, \
             idw, thin_plate and kriging take any number"
        ))
    })?;
    let readings = SpaceReadings {
        points: places.as_array().to_owned(),
        power: power.as_array().to_owned(),
        repeats: repeats.map(|r| r.as_array().to_owned()),
    };
    let covariance = |(decorrelation_m, sill, nugget): Law| match built {
        SpaceMethod::Kriging(kriging) => {
            Some(Covariance { family: kriging.covariance, decorrelation_m, sill, nugget })
        }
        _ => None,
    };
    let inner = watched(py, None, |progress| match law {
        None => readings.fit(built, progress),
        Some(law) => readings.with_law(built, covariance(law)),
    })?;
    Ok(NativeSpace { method, options, inner: inner.map_err(errors::estimate)? })
}

#[pymethods]
impl NativeSpace {
    /// Decibels, spread of the field and of a reading, each (places, bands).
    #[expect(clippy::type_complexity, reason = "a tuple for Python")]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        places: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<(
        Bound<'py, PyArray2<f64>>,
        Option<Bound<'py, PyArray2<f64>>>,
        Option<Bound<'py, PyArray2<f64>>>,
    )> {
        let places = places.as_array();
        let found = watched(py, None, |progress| self.inner.predict(places, progress))?;
        let found = found.map_err(errors::estimate)?;
        let array = |values: Option<ndarray::Array2<f64>>| values.map(|v| v.into_pyarray(py));
        let power = arrays::decibels(found.power).into_pyarray(py);
        Ok((power, array(found.spread_db), array(found.reading_spread_db)))
    }

    /// What [`fit_space`] needs to make it again.
    #[expect(clippy::type_complexity, reason = "a tuple for Python")]
    fn parts<'py>(
        &self,
        py: Python<'py>,
    ) -> (
        String,
        Vec<(String, String)>,
        Bound<'py, PyArray2<f64>>,
        Bound<'py, PyArray2<f64>>,
        Option<Bound<'py, PyArray2<f64>>>,
        Option<Law>,
    ) {
        let readings = self.inner.readings();
        (
            self.method.clone(),
            self.options.clone(),
            readings.points.clone().into_pyarray(py),
            readings.power.clone().into_pyarray(py),
            readings.repeats.clone().map(|r| r.into_pyarray(py)),
            self.inner.law().map(|law| (law.decorrelation_m, law.sill, law.nugget)),
        )
    }
}
