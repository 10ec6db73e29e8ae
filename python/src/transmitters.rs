//! Transmitters whose places are known.

use std::path::PathBuf;

use portolan::Site;
use portolan::estimate::{Capability, Transmitter, check_used};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors;
use crate::readings::NativeReadings;

/// A transmitter: x and y in metres, its band (all where absent), its power in dB, its height.
pub type Known = (f64, f64, Option<usize>, Option<f64>, f64);

/// Transmitters of the bands of some readings, from the file or the text of a table, and what is to be
/// said about them.
#[pyfunction]
#[pyo3(signature = (readings, *, path = None, text = None))]
pub fn transmitters(
    py: Python<'_>,
    readings: &Bound<'_, NativeReadings>,
    path: Option<PathBuf>,
    text: Option<&str>,
) -> PyResult<(Vec<Known>, Vec<String>)> {
    let readings = &readings.get().inner;
    let found = match (path, text) {
        (Some(path), None) => py.detach(|| portolan_io::read_transmitters(&path, readings)),
        (None, Some(text)) => portolan_io::parse_transmitters(text, readings),
        _ => return Err(PyValueError::new_err("give a path or a text")),
    };
    let (found, notes) = found.map_err(errors::io)?;
    let known = |t: Transmitter| (t.at.x_m, t.at.y_m, t.band, t.power_db, t.at.z_m);
    Ok((found.into_iter().map(known).collect(), notes))
}

pub fn known(given: Vec<Known>) -> Vec<Transmitter> {
    let one = |(x_m, y_m, band, power_db, z_m)| {
        let mut own = Transmitter::new(Site::new(x_m, y_m).at_height(z_m));
        (own.band, own.power_db) = (band, power_db);
        own
    };
    given.into_iter().map(one).collect()
}

/// Refuses transmitters for a method that makes no use of them.
pub fn check_taken(name: &str, given: bool) -> PyResult<()> {
    match given {
        true => check_used(Capability::Transmitters, [name]).map_err(errors::input),
        false => Ok(()),
    }
}
