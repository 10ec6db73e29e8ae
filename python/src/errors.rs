//! Our errors as Python's.

use portolan::{EstimateError, InputError};
use portolan_io::IoError;
use pyo3::PyErr;
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError, PyValueError};

/// What the user asked for or gave is wrong: `ValueError`; a device that failed: `RuntimeError`.
pub fn estimate(error: EstimateError) -> PyErr {
    match error {
        EstimateError::Cancelled => PyKeyboardInterrupt::new_err(()),
        EstimateError::Engine(error) => PyRuntimeError::new_err(error.to_string()),
        error => PyValueError::new_err(error.to_string()),
    }
}

pub fn input(error: InputError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

pub fn io(error: IoError) -> PyErr {
    PyValueError::new_err(error.to_string())
}
