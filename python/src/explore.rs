//! The explorer inside the interpreter's process: a page over models and readings.

use std::net::Ipv4Addr;

use portolan::Model;
use portolan_explore::{Explorer, FirstFit, Server, StartError};
use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::errors;
use crate::model::NativeModel;
use crate::readings::NativeReadings;

fn error(error: StartError) -> PyErr {
    match error {
        StartError::Input(message) => PyValueError::new_err(message),
        error => PyOSError::new_err(error.to_string()),
    }
}

/// A server that runs until it is closed or forgotten.
#[pyclass(frozen, name = "NativeExplorer", module = "portolan._native")]
pub struct NativeExplorer {
    url: String,
    server: std::sync::Mutex<Option<Server>>,
}

#[pymethods]
impl NativeExplorer {
    /// Where the page is.
    #[getter]
    fn url(&self) -> &str {
        &self.url
    }

    /// Ends the server.
    fn close(&self, py: Python<'_>) {
        let server = self.server.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        py.detach(|| drop(server));
    }
}

/// Opens a page over named models and readings; without any over a demonstration. Readings without
/// a model are fitted by `method`.
#[pyfunction]
#[pyo3(signature = (items, *, port = 0, method = None))]
pub fn explore(
    py: Python<'_>,
    items: Vec<(String, Bound<'_, PyAny>)>,
    port: u16,
    method: Option<String>,
) -> PyResult<NativeExplorer> {
    let mut explorer = match items.is_empty() {
        true => Explorer::demo().map_err(error)?,
        false => Explorer::empty(),
    };
    for (name, item) in &items {
        if let Ok(model) = item.cast::<NativeModel>() {
            // A model of the page's own: the same arrays, the same predictions.
            let archive = model.get().inner.to_archive();
            let model = py.detach(|| Model::from_archive(&archive)).map_err(errors::estimate)?;
            explorer.add_model(name, model).map_err(error)?;
        } else if let Ok(readings) = item.cast::<NativeReadings>() {
            explorer.add_readings(name, readings.get().inner.clone()).map_err(error)?;
        } else {
            return Err(PyTypeError::new_err(format!("{name}: expected a model or readings")));
        }
    }
    // The demonstration has a fit of its own.
    if method.is_some() || !items.is_empty() {
        let usual = FirstFit::default();
        let fit = FirstFit { method: method.unwrap_or(usual.method), ..FirstFit::default() };
        explorer.fit_first(fit).map_err(error)?;
    }
    let address = (Ipv4Addr::LOCALHOST, port).into();
    let server = py.detach(|| Server::start(explorer, &[address])).map_err(error)?;
    Ok(NativeExplorer { url: server.url(), server: std::sync::Mutex::new(Some(server)) })
}
