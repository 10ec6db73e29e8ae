//! Maps as Python holds them: simulated, read from files, made of arrays; sensed and scored.

use std::path::PathBuf;

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArray3, PyReadonlyArray2, PyReadonlyArray3};
use portolan::quantiser::AUTHORS_EDGES;
use portolan::sense::{Quantising, Sensing, SensorLayout};
use portolan::simulate::{PsdShape, Scenario};
use portolan::{BandLabels, Cell, Grid, RadioMap};
use portolan_io::{ReadOptions, WriteOptions};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::model::{GridParts, grid, grid_parts};
use crate::readings::NativeReadings;
use crate::{arrays, earth, errors};

/// A map, checked.
#[pyclass(frozen, name = "NativeMap", module = "portolan._native")]
pub struct NativeMap {
    inner: RadioMap,
}

/// Draws a map: path loss and shadowing around emitters.
#[pyfunction]
#[pyo3(signature = (parts, *, bands, emitters, shadow_db, decorrelation_m, psd, seed))]
#[expect(clippy::too_many_arguments, reason = "one for each thing that a scenario says")]
pub fn simulate(
    py: Python<'_>,
    parts: GridParts,
    bands: usize,
    emitters: usize,
    shadow_db: f64,
    decorrelation_m: f64,
    psd: &str,
    seed: u64,
) -> PyResult<NativeMap> {
    let scenario = scenario(parts, bands, emitters, shadow_db, decorrelation_m, psd, seed)?;
    let map = py.detach(|| portolan::simulate::simulate(&scenario));
    Ok(NativeMap { inner: map.map_err(errors::input)? })
}

/// What simulated maps are like.
pub fn scenario(
    parts: GridParts,
    bands: usize,
    emitters: usize,
    shadow_db: f64,
    decorrelation_m: f64,
    psd: &str,
    seed: u64,
) -> PyResult<Scenario> {
    let psd = match psd {
        "gaussian" => PsdShape::Gaussian,
        "sinc" => PsdShape::Sinc,
        _ => return Err(PyValueError::new_err(format!("psd={psd:?}: give 'gaussian' or 'sinc'"))),
    };
    Ok(Scenario {
        bands,
        emitters,
        shadow_db,
        decorrelation_m,
        psd,
        seed,
        ..Scenario::new(grid(parts)?)
    })
}

/// Some of the cells, a tenth unless said otherwise.
pub fn layout(fraction: Option<f64>, count: Option<usize>) -> PyResult<SensorLayout> {
    match (fraction, count) {
        (None, None) => Ok(SensorLayout::Fraction(0.1)),
        (Some(fraction), None) => Ok(SensorLayout::Fraction(fraction)),
        (None, Some(count)) => Ok(SensorLayout::Count(count)),
        (Some(_), Some(_)) => Err(PyValueError::new_err("give one of fraction and count")),
    }
}

/// A map from a file of any kind that the command reads, and what the reader had to say.
#[pyfunction]
#[pyo3(signature = (path, *, unit = None, cell_m = None))]
pub fn read_map(
    py: Python<'_>,
    path: PathBuf,
    unit: Option<&str>,
    cell_m: Option<f64>,
) -> PyResult<(NativeMap, Vec<String>)> {
    let options = ReadOptions { unit: arrays::named_unit(unit)?, cell_m, ..ReadOptions::default() };
    let loaded = py.detach(|| portolan_io::read_map(&path, &options)).map_err(errors::io)?;
    Ok((NativeMap { inner: loaded.value }, loaded.warnings))
}

/// A map from decibels, (rows, columns, bands), NaN where unknown.
#[pyfunction]
#[pyo3(signature = (db, parts, *, unit, offset = None, spread_db = None, names = None,
    freq_hz = None, emitters = None, crs = None))]
#[expect(clippy::too_many_arguments, reason = "one for each thing that a map may know")]
pub fn map_of(
    py: Python<'_>,
    db: PyReadonlyArray3<'_, f64>,
    parts: GridParts,
    unit: &str,
    offset: Option<f64>,
    spread_db: Option<PyReadonlyArray3<'_, f64>>,
    names: Option<Vec<String>>,
    freq_hz: Option<Vec<f64>>,
    emitters: Option<PyReadonlyArray2<'_, f64>>,
    crs: Option<&str>,
) -> PyResult<NativeMap> {
    let (grid, scale) = (grid(parts)?, arrays::scale(unit, offset)?);
    let db = db.as_array();
    let bands = db.dim().2;
    let power = py.detach(|| db.mapv(|db| 10f64.powf(0.1 * db)));
    let labels = BandLabels::new(freq_hz, names, bands).map_err(errors::input)?;
    let mut inner = RadioMap::dense(grid, power, scale)
        .and_then(|map| map.with_labels(labels))
        .and_then(|map| map.with_spread_db(spread_db.map(|s| s.as_array().to_owned())))
        .map_err(errors::input)?;
    if let Some(emitters) = emitters {
        inner =
            inner.with_emitters(arrays::sites(emitters.as_array(), 0.0).map_err(errors::input)?);
    }
    Ok(NativeMap { inner: inner.with_crs(earth::crs(crs)?) })
}

#[pymethods]
impl NativeMap {
    /// Decibels, (rows, columns, bands).
    #[getter]
    fn db<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray3<f64>> {
        let mut power = self.inner.to_dense().into_owned();
        py.detach(|| power.par_mapv_inplace(|x| 10.0 * x.log10()));
        power.into_pyarray(py)
    }

    #[getter]
    fn spread_db<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray3<f64>>> {
        Some(self.inner.spread_db()?.clone().into_pyarray(py))
    }

    #[getter]
    fn grid(&self) -> GridParts {
        grid_parts(self.inner.grid())
    }

    #[getter]
    fn unit(&self) -> (&'static str, Option<f64>) {
        arrays::unit(self.inner.scale())
    }

    #[getter]
    fn freq_hz<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f64>>> {
        Some(self.inner.freq_hz()?.to_vec().into_pyarray(py))
    }

    #[getter]
    fn crs(&self) -> Option<String> {
        self.inner.crs().map(|crs| crs.to_string())
    }

    #[getter]
    fn names(&self) -> Option<Vec<String>> {
        Some(self.inner.labels().names()?.to_vec())
    }

    /// x and y of the emitters, where the map knows them.
    #[getter]
    fn emitters<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray2<f64>>> {
        let emitters = self.inner.emitters();
        (!emitters.is_empty()).then(|| arrays::places(emitters).into_pyarray(py))
    }

    /// Readings of the map.
    #[pyo3(signature = (*, fraction = None, count = None, cells = None, lattice = None, path = None,
        every = 1, snr_db = None, gaps = 0.0, cover = 1.0, bits = None, edges = None, sigma = 0.0, seed = 0))]
    #[expect(clippy::too_many_arguments, reason = "one for each way to sense")]
    fn sense(
        &self,
        fraction: Option<f64>,
        count: Option<usize>,
        cells: Option<Vec<(usize, usize)>>,
        lattice: Option<usize>,
        path: Option<Vec<(usize, usize)>>,
        every: usize,
        snr_db: Option<f64>,
        gaps: f64,
        cover: f64,
        bits: Option<u32>,
        edges: Option<Vec<f64>>,
        sigma: f64,
        seed: u64,
    ) -> PyResult<NativeReadings> {
        let at = |cells: Vec<(usize, usize)>| -> PyResult<Vec<Cell>> {
            let grid: Grid = self.inner.grid();
            let cells: Vec<Cell> =
                cells.into_iter().map(|(row, col)| Cell::new(row, col)).collect();
            match cells.iter().find(|cell| !grid.contains(**cell)) {
                Some(Cell { row, col, .. }) => Err(PyValueError::new_err(format!(
                    "cell ({row}, {col}) is off the {} x {} grid",
                    grid.rows(),
                    grid.cols()
                ))),
                None => Ok(cells),
            }
        };
        let layout = match (fraction, count, cells, lattice, path) {
            (fraction, count, None, None, None) if fraction.is_none() || count.is_none() => {
                layout(fraction, count)?
            }
            (None, None, Some(cells), None, None) => SensorLayout::Cells(at(cells)?),
            (None, None, None, Some(step), None) => SensorLayout::Lattice(step),
            (None, None, None, None, Some(path)) => {
                SensorLayout::Path { waypoints: at(path)?, every }
            }
            _ => {
                let message = "give one of fraction, count, cells, lattice and path";
                return Err(PyValueError::new_err(message));
            }
        };
        let quantising = bits.map(|bits| Quantising { bits, edges, sigma });
        let sensing = Sensing { layout, snr_db, gaps, cover, quantising, seed };
        let inner = portolan::sense::sense(&self.inner, &sensing).map_err(errors::input)?;
        Ok(NativeReadings { inner })
    }

    /// How close this map is to the truth; with readings, coverage of the cells that they leave out.
    #[pyo3(signature = (truth, offset = None, readings = None))]
    fn score<'py>(
        &self,
        py: Python<'py>,
        truth: &Self,
        offset: Option<f64>,
        readings: Option<&NativeReadings>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let wrong = |error: portolan::score::ScoreError| PyValueError::new_err(error.to_string());
        let (map, truth) = (&self.inner, &truth.inner);
        let found = py.detach(|| portolan::score::score(map, truth, offset)).map_err(wrong)?;
        let out = PyDict::new(py);
        out.set_item("ssim", found.ssim)?;
        out.set_item("ssim_strict", found.ssim_strict)?;
        out.set_item("rmse_db", found.rmse_db)?;
        out.set_item("lnre", found.lnre)?;
        out.set_item("nmse", found.nmse)?;
        out.set_item("roughness", found.roughness)?;
        out.set_item("coverage_90", found.coverage_90)?;
        out.set_item("offset", found.offset)?;
        out.set_item("entries", found.entries)?;
        if let Some(readings) = readings {
            let measured = readings.inner.cells(truth.grid()).map_err(errors::input)?;
            let coverage =
                portolan::score::coverage_unmeasured(map, truth, found.offset, &measured);
            out.set_item("coverage_90_unmeasured", coverage)?;
        }
        Ok(out)
    }

    fn write(&self, py: Python<'_>, path: PathBuf, force: bool) -> PyResult<()> {
        let options = WriteOptions { force, ..WriteOptions::default() };
        py.detach(|| portolan_io::write_map(&path, &self.inner, &options)).map_err(errors::io)
    }
}

/// The inner edges of the paper's 3-bit quantiser, in ln(x + a).
#[pyfunction]
pub fn authors_edges() -> Vec<f64> {
    AUTHORS_EDGES.to_vec()
}
