//! Fits at places with any number of coordinates, as Python holds them.

use numpy::{IntoPyArray, PyArray2, PyReadonlyArray2};
use portolan::estimate::{Covariance, WeightedCovariance};
use portolan::estimate::{Kriging, SpaceMethod, SpaceModel, SpaceReadings};
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

/// Weight, decorrelation, sill and nugget in the working domain, of every law.
type Laws = Vec<(f64, f64, f64, f64)>;

/// Fits to places (n, coordinates) and power (n, bands), NaN = missing; with `laws` nothing is
/// sought.
#[pyfunction]
#[pyo3(signature = (method, options, places, power, *, repeats = None, laws = None))]
pub fn fit_space(
    py: Python<'_>,
    method: String,
    options: Vec<(String, String)>,
    places: PyReadonlyArray2<'_, f64>,
    power: PyReadonlyArray2<'_, f64>,
    repeats: Option<PyReadonlyArray2<'_, f64>>,
    laws: Option<Laws>,
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
    let covariances = |laws: Laws| match built {
        SpaceMethod::Kriging(Kriging { covariance: family, .. }) => {
            let one = |(weight, decorrelation_m, sill, nugget)| WeightedCovariance {
                weight,
                covariance: Covariance { family, decorrelation_m, sill, nugget },
            };
            Some(laws.into_iter().map(one).collect())
        }
        _ => None,
    };
    let inner = watched(py, None, |progress| match laws {
        None => readings.fit(built, progress),
        Some(laws) => readings.with_laws(built, covariances(laws)),
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
        Option<Laws>,
    ) {
        let readings = self.inner.readings();
        (
            self.method.clone(),
            self.options.clone(),
            readings.points.clone().into_pyarray(py),
            readings.power.clone().into_pyarray(py),
            readings.repeats.clone().map(|r| r.into_pyarray(py)),
            self.inner.laws().map(|laws| {
                let one = |law: &WeightedCovariance| {
                    let Covariance { decorrelation_m, sill, nugget, .. } = law.covariance;
                    (law.weight, decorrelation_m, sill, nugget)
                };
                laws.iter().map(one).collect()
            }),
        )
    }
}
