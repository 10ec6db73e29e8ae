//! Held-out sensors and advice on new ones.

use numpy::PyReadonlyArray2;
use portolan::advise::{Process, advise as advise_on};
use portolan::estimate::{Capability, Fold, Residuals, Split, folds as dealt};
use portolan::{Region, Site};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::model::{GridParts, NativeModel, Request, grid};
use crate::obstacles::NativeObstacles;
use crate::readings::NativeReadings;
use crate::transmitters::{Known, known};
use crate::watched::watched;
use crate::{arrays, errors};

/// Numbers of the sensors of every fold.
#[pyfunction]
pub fn folds(
    places: PyReadonlyArray2<'_, f64>,
    count: usize,
    split: &str,
    seed: u64,
) -> PyResult<Vec<Vec<usize>>> {
    let split = match split {
        "random" => Split::Random,
        "blocks" => Split::Blocks,
        _ => {
            return Err(PyValueError::new_err(format!(
                "split={split:?}: give 'random' or 'blocks'"
            )));
        }
    };
    Ok(dealt(&arrays::sites(places.as_array(), 0.0).map_err(errors::input)?, count, split, seed))
}

/// How well a method predicts the sensors of every fold from the others.
#[pyfunction]
#[pyo3(signature = (method, options, readings, folds, *, emitters = None, seed = 0,
    transmitters = None, obstacles = None, tell = None))]
#[expect(clippy::too_many_arguments, reason = "one for each thing that a fit may be told")]
pub fn validate<'py>(
    py: Python<'py>,
    method: String,
    options: Vec<(String, String)>,
    readings: &Bound<'_, NativeReadings>,
    folds: Vec<Vec<usize>>,
    emitters: Option<usize>,
    seed: u64,
    transmitters: Option<Vec<Known>>,
    obstacles: Option<&Bound<'_, NativeObstacles>>,
    tell: Option<&Bound<'_, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    // Methods that make no use of obstacles do not look at them.
    let uses = portolan::estimate::method(&method).is_ok_and(|m| m.has(Capability::Obstacles));
    let request = Request::new(method, options, emitters, seed, None)?;
    let request = request.among(obstacles.filter(|_| uses))?;
    let readings = &readings.get().inner;
    let known = known(transmitters.unwrap_or_default());
    let judged = watched(py, tell, |progress| {
        let (mut residuals, mut seconds) = (Residuals::default(), [0.0; 2]);
        for (i, fold) in folds.iter().enumerate() {
            let share = |i: usize| i as f64 / folds.len() as f64;
            let part = progress.part(share(i)..share(i + 1));
            let Some(fold) = Fold::new(readings, fold, &known) else { continue };
            let start = std::time::Instant::now();
            let model = request.fit(&fold.rest, &fold.transmitters, &part)?;
            seconds[0] += start.elapsed().as_secs_f64();
            let start = std::time::Instant::now();
            let found = fold.predict(&model, &part.quiet())?;
            seconds[1] += start.elapsed().as_secs_f64();
            residuals.add(readings, &fold, &found);
        }
        Ok((residuals, seconds))
    })?;
    let (residuals, [fit_seconds, predict_seconds]) = judged.map_err(errors::estimate)?;
    let out = PyDict::new(py);
    out.set_item("rmse_db", residuals.rmse_db())?;
    out.set_item("mae_db", residuals.mae_db())?;
    out.set_item("median_abs_db", residuals.median_abs_db())?;
    out.set_item("coverage_90", residuals.coverage_90())?;
    out.set_item("entries", residuals.entries.len())?;
    out.set_item("seconds", fit_seconds)?;
    out.set_item("predict_seconds", predict_seconds)?;
    Ok(out)
}

/// The places where new sensors help most, best first, as dictionaries.
#[pyfunction]
#[pyo3(signature = (model, parts, count, leave_out, tell = None))]
pub fn advise<'py>(
    py: Python<'py>,
    model: &Bound<'_, NativeModel>,
    parts: GridParts,
    count: usize,
    leave_out: Vec<(f64, f64, f64, f64)>,
    tell: Option<&Bound<'_, PyAny>>,
) -> PyResult<Bound<'py, PyList>> {
    let (model, grid) = (&model.get().inner, grid(parts)?);
    let process = Process::from_report(model.report()).ok_or_else(|| {
        let method = &model.report().method;
        PyValueError::new_err(format!("{method} gives no spread to reduce: use Kriging or Field"))
    })?;
    let region = |(x_low, y_low, x_high, y_high)| Region {
        low: Site::new(x_low, y_low),
        high: Site::new(x_high, y_high),
    };
    let regions: Vec<Region> = leave_out.into_iter().map(region).collect();
    let advice = watched(py, tell, |progress| {
        let map = model.map(grid, &progress.part(0.0..0.5))?;
        advise_on(model.sites(), &map, &regions, process, count, &progress.part(0.5..1.0))
    })?;
    let list = PyList::empty(py);
    for (i, advice) in advice.map_err(errors::estimate)?.iter().enumerate() {
        let (row, at) = (PyDict::new(py), grid.site(advice.cell));
        row.set_item("rank", i + 1)?;
        row.set_item("x_m", at.x_m)?;
        row.set_item("y_m", at.y_m)?;
        row.set_item("reduction_percent", 100.0 * advice.share)?;
        row.set_item("reduction_db2", advice.reduction_db2)?;
        list.append(row)?;
    }
    Ok(list)
}
