//! Readings as Python holds them.

use std::path::PathBuf;

use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use portolan::estimate::with_likeliest_sigma;
use portolan::quantiser::Quantiser;
use portolan::{BandLabels, Devices, Readings, Values};
use portolan_io::{
    Clock, ColumnNames, Format, ReadOptions, RowFilter, SurveyOptions, WriteOptions, parse,
    write_readings,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::model::{GridParts, grid, grid_parts};
use crate::{arrays, earth, errors};

type DeviceParts = (Vec<String>, Vec<f64>, Vec<f64>, f64);

/// What sensors read, checked.
#[pyclass(frozen, name = "NativeReadings", module = "portolan._native")]
pub struct NativeReadings {
    pub inner: Readings,
}

/// Readings from arrays: places (n, 2) in metres; values (n, bands) in decibels (or, with `linear`,
/// as power, floors too), NaN where nothing was read; or levels with the inner edges of their
/// quantiser, 255 where nothing was read.
#[pyfunction]
#[pyo3(signature = (places, values, *, linear = false, levels = None, unit = "dbm", offset = None, names = None,
    freq_hz = None, not_heard = None, floor_db = None, repeats = None, noise_db = None,
    time_s = None, further = false))]
#[expect(clippy::too_many_arguments, reason = "one for each thing that readings may know")]
#[expect(clippy::type_complexity, reason = "a tuple for Python")]
pub fn readings(
    py: Python<'_>,
    places: PyReadonlyArray2<'_, f64>,
    values: Option<PyReadonlyArray2<'_, f64>>,
    linear: bool,
    levels: Option<(PyReadonlyArray2<'_, u8>, Vec<f64>, Option<f64>, f64)>,
    unit: &str,
    offset: Option<f64>,
    names: Option<Vec<String>>,
    freq_hz: Option<Vec<f64>>,
    not_heard: Option<PyReadonlyArray2<'_, bool>>,
    floor_db: Option<PyReadonlyArray1<'_, f64>>,
    repeats: Option<PyReadonlyArray2<'_, f64>>,
    noise_db: Option<PyReadonlyArray2<'_, f64>>,
    time_s: Option<PyReadonlyArray1<'_, f64>>,
    further: bool,
) -> PyResult<NativeReadings> {
    let sites = arrays::sites(places.as_array(), 0.0).map_err(errors::input)?;
    let scale = arrays::scale(unit, offset)?;
    let mut unsure = false;
    let values = match (values, levels) {
        (Some(power), None) if linear => Values::Power(power.as_array().to_owned()),
        (Some(db), None) => {
            let db = db.as_array();
            if db.iter().any(|v| v.is_infinite()) {
                let message = "values hold infinity: a reading is a finite number, NaN where nothing was read";
                return Err(PyValueError::new_err(message));
            }
            Values::Power(py.detach(|| arrays::power(db)))
        }
        (None, Some((levels, edges, sigma, offset))) => {
            unsure = sigma.is_none();
            let quantiser =
                Quantiser::new(edges, sigma.unwrap_or(0.0), offset).map_err(errors::input)?;
            Values::Levels { levels: levels.as_array().to_owned(), quantiser }
        }
        _ => return Err(PyValueError::new_err("give values or levels")),
    };
    let bands = values.dim().1;
    let made = if further { Readings::further } else { Readings::new };
    let mut inner = made(sites, values, scale).map_err(errors::input)?;
    if unsure {
        inner = py.detach(|| with_likeliest_sigma(inner)).map_err(errors::estimate)?;
    }
    if names.is_some() || freq_hz.is_some() {
        let labels = BandLabels::new(freq_hz, names, bands).map_err(errors::input)?;
        inner = inner.with_labels(labels).map_err(errors::input)?;
    }
    match (not_heard, floor_db) {
        (Some(entries), Some(floor)) => {
            let power = |db: &f64| if linear { *db } else { 10f64.powf(0.1 * db) };
            let floor = floor.as_array().iter().map(power).collect();
            let entries = entries.as_array().to_owned();
            inner = inner.with_not_heard(entries, floor).map_err(errors::input)?;
        }
        (None, None) => {}
        _ => return Err(PyValueError::new_err("not_heard and floor_db go together")),
    }
    let owned = |array: Option<PyReadonlyArray2<'_, f64>>| array.map(|a| a.as_array().to_owned());
    let time_s = time_s.map(|t| t.as_array().to_vec());
    let inner = inner
        .with_repeats(owned(repeats))
        .and_then(|r| r.with_noise_db(owned(noise_db)))
        .and_then(|r| r.with_time_s(time_s))
        .map_err(errors::input)?;
    Ok(NativeReadings { inner })
}

/// Readings from a file of any kind that the command reads, and what the reader had to say.
#[pyfunction]
#[pyo3(signature = (path, *, unit = None, cell_m = None, not_heard = None, floor_db = None, crs = None,
    format = None, columns = None, band_by = None, min_places = None, gather_m = None, track = None,
    utc_offset = None, track_gap_s = None, band_width_hz = None, band_edges_hz = None,
    measured = None, further = false, missing = None, strict = false, accept = false, combine = None,
    filter = None, freq_unit = None,
    time_unit = None, floor_height = None))]
#[expect(clippy::too_many_arguments, reason = "one for each thing that a file may not say")]
pub fn read_readings(
    py: Python<'_>,
    path: PathBuf,
    unit: Option<&str>,
    cell_m: Option<f64>,
    not_heard: Option<&str>,
    floor_db: Option<f64>,
    crs: Option<&str>,
    format: Option<&str>,
    columns: Option<&str>,
    band_by: Option<&str>,
    min_places: Option<usize>,
    gather_m: Option<f64>,
    track: Option<PathBuf>,
    utc_offset: Option<&str>,
    track_gap_s: Option<f64>,
    band_width_hz: Option<f64>,
    band_edges_hz: Option<Vec<f64>>,
    measured: Option<PathBuf>,
    further: bool,
    missing: Option<Vec<f64>>,
    strict: bool,
    accept: bool,
    combine: Option<&str>,
    filter: Option<&str>,
    freq_unit: Option<&str>,
    time_unit: Option<&str>,
    floor_height: Option<f64>,
) -> PyResult<(NativeReadings, Vec<String>)> {
    let told = |what: &str, text: &str, known: &str| {
        PyValueError::new_err(format!("{what}={text:?}: expected {known}"))
    };
    let not_heard = match not_heard {
        None => None,
        Some(codes) => Some(
            parse::silence(codes).map_err(|_| told("not_heard", codes, "numbers or 'absent'"))?,
        ),
    };
    let format = match format {
        None => None,
        Some(name) => {
            Some(Format::named(name).ok_or_else(|| told("format", name, &Format::names()))?)
        }
    };
    let said =
        |what: &'static str| move |text: String| PyValueError::new_err(format!("{what}: {text}"));
    let survey = SurveyOptions {
        band_by: band_by.map(parse::band_by).transpose().map_err(said("band_by"))?,
        combine: combine.map(parse::combine).transpose().map_err(said("combine"))?,
        filter: filter.map(RowFilter::parse).transpose().map_err(said("where"))?,
        freq_unit_hz: freq_unit.map(parse::freq_unit).transpose().map_err(said("freq_unit"))?,
        time_unit_s: time_unit.map(parse::time_unit).transpose().map_err(said("time_unit"))?,
        floor_height_m: floor_height,
        columns: columns.map(ColumnNames::parse).transpose().map_err(said("columns"))?,
        min_places,
        gather_m,
        track,
        clock: utc_offset.map(Clock::parse).transpose().map_err(said("utc_offset"))?,
        track_gap_s,
        band_width_hz,
        band_edges_hz,
        measured,
    };
    let (unit, crs) = (arrays::named_unit(unit)?, earth::crs(crs)?);
    let options = ReadOptions {
        unit,
        cell_m,
        crs,
        not_heard,
        floor_db,
        format,
        survey,
        further,
        missing: missing.unwrap_or_default(),
        strict,
        accept,
        ..Default::default()
    };
    let loaded = py.detach(|| portolan_io::read_readings(&path, &options)).map_err(errors::io)?;
    Ok((NativeReadings { inner: loaded.value }, loaded.warnings))
}

#[pymethods]
impl NativeReadings {
    /// Whether they need not be enough for a map.
    #[getter]
    fn further(&self) -> bool {
        self.inner.is_further()
    }

    #[getter]
    fn places<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray2<f64>> {
        arrays::places(self.inner.sites()).into_pyarray(py)
    }

    /// Power, NaN where nothing was read; levels are decoded.
    #[getter]
    fn power<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray2<f64>> {
        self.inner.power().into_pyarray(py)
    }

    /// Decibels, NaN where nothing was read; levels are decoded.
    #[getter]
    fn db<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray2<f64>> {
        arrays::decibels(self.inner.power()).into_pyarray(py)
    }

    #[getter]
    fn unit(&self) -> (&'static str, Option<f64>) {
        arrays::unit(self.inner.scale())
    }

    /// Levels, inner edges, deviation of the noise before quantising, and the a of ln(x + a).
    #[getter]
    #[expect(clippy::type_complexity, reason = "a tuple for Python")]
    fn levels<'py>(
        &self,
        py: Python<'py>,
    ) -> Option<(Bound<'py, PyArray2<u8>>, Vec<f64>, f64, f64)> {
        let Values::Levels { levels, quantiser } = self.inner.values() else { return None };
        let edges = quantiser.edges().to_vec();
        Some((levels.clone().into_pyarray(py), edges, quantiser.sigma(), quantiser.offset()))
    }

    /// The grid that the readings lie on, where they say.
    #[getter]
    fn grid(&self) -> Option<GridParts> {
        self.inner.grid().map(grid_parts)
    }

    /// Where on Earth the places are, where known.
    #[getter]
    fn crs(&self) -> Option<String> {
        self.inner.crs().map(|crs| crs.to_string())
    }

    /// Devices whose offsets were taken out: names, offsets, standard errors, and how far devices
    /// like these differ.
    #[getter]
    fn devices(&self) -> Option<DeviceParts> {
        let Devices { names, offset_db, se_db, spread_db, .. } = self.inner.devices()?.clone();
        Some((names, offset_db, se_db, spread_db))
    }

    fn with_devices(&self, devices: Option<DeviceParts>) -> PyResult<Self> {
        let known =
            devices.map(|(names, offset, se, spread)| Devices::known(names, offset, se, spread));
        let known = known.transpose().map_err(errors::input)?;
        Ok(Self { inner: self.inner.clone().with_devices(known) })
    }

    fn with_crs(&self, crs: Option<&str>) -> PyResult<Self> {
        Ok(Self { inner: self.inner.clone().with_crs(earth::crs(crs)?) })
    }

    fn with_grid(&self, parts: GridParts) -> PyResult<Self> {
        let inner = self.inner.clone().with_grid(Some(grid(parts)?)).map_err(errors::input)?;
        Ok(Self { inner })
    }

    #[getter]
    fn freq_hz<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f64>>> {
        Some(self.inner.freq_hz()?.to_vec().into_pyarray(py))
    }

    #[getter]
    fn names(&self) -> Option<Vec<String>> {
        Some(self.inner.labels().names()?.to_vec())
    }

    /// Which entries were not heard, and the floor of every band as power.
    #[getter]
    #[expect(clippy::type_complexity, reason = "a tuple for Python")]
    fn not_heard<'py>(
        &self,
        py: Python<'py>,
    ) -> Option<(Bound<'py, PyArray2<bool>>, Bound<'py, PyArray1<f64>>)> {
        let not_heard = self.inner.not_heard()?;
        let floor = not_heard.floor.to_vec();
        Some((not_heard.entries.clone().into_pyarray(py), floor.into_pyarray(py)))
    }

    #[getter]
    fn repeats<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray2<f64>>> {
        Some(self.inner.repeats()?.clone().into_pyarray(py))
    }

    #[getter]
    fn noise_db<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray2<f64>>> {
        Some(self.inner.noise_db()?.clone().into_pyarray(py))
    }

    #[getter]
    fn time_s<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f64>>> {
        Some(self.inner.time_s()?.to_vec().into_pyarray(py))
    }

    /// Some of the sensors.
    fn subset(&self, sensors: Vec<usize>) -> PyResult<Self> {
        Ok(Self { inner: self.inner.further_subset(&sensors).map_err(errors::input)? })
    }

    fn write(&self, py: Python<'_>, path: PathBuf, force: bool) -> PyResult<()> {
        let options = WriteOptions { force, ..WriteOptions::default() };
        py.detach(|| write_readings(&path, &self.inner, &options)).map_err(errors::io)
    }
}
