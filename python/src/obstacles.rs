//! What stands between transmitters and places.

use std::path::PathBuf;
use std::sync::Arc;

use portolan::between::{Between, Floors};
use portolan_io::{PlanOptions, parse_walls, read_walls};
use pyo3::prelude::*;

use crate::errors;
use crate::readings::NativeReadings;

/// Walls and floors around some readings.
#[pyclass(frozen, name = "NativeObstacles", module = "portolan._native")]
pub struct NativeObstacles {
    pub inner: Vec<Arc<dyn Between>>,
}

#[pymethods]
impl NativeObstacles {
    /// From a plan in a file or its text, and metres from floor to floor; `accept` takes a plan that lies
    /// far from the readings or is tiny beside them.
    #[new]
    #[pyo3(signature = (readings, *, path = None, text = None, floor_height = None, accept = false))]
    fn new(
        readings: &Bound<'_, NativeReadings>,
        path: Option<PathBuf>,
        text: Option<&str>,
        floor_height: Option<f64>,
        accept: bool,
    ) -> PyResult<Self> {
        let readings = &readings.get().inner;
        let options = PlanOptions { floor_height_m: floor_height, accept };
        let mut inner: Vec<Arc<dyn Between>> = Vec::new();
        if let Some(path) = path {
            inner.push(Arc::new(read_walls(path, readings, options).map_err(errors::io)?));
        }
        if let Some(text) = text {
            inner.push(Arc::new(parse_walls(text, readings, options).map_err(errors::io)?));
        }
        if let Some(height) = floor_height {
            inner.push(Arc::new(Floors::new(height).map_err(errors::input)?));
        }
        Ok(Self { inner })
    }
}
