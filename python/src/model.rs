//! Fitted models as Python holds them.

use std::path::PathBuf;
use std::sync::Arc;

use ndarray::{Array2, Array3, ArrayD, ArrayView2, s};
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArray3, PyArrayDyn, PyArrayMethods, PyReadonlyArray2,
};
use portolan::between::Between;
use portolan::engine::Engine;
use portolan::estimate::{
    Capability, Change, ChangeKind, Job, Method, Transmitter, check_used, method,
};
use portolan::model::{Archive, Stored};
use portolan::{
    Context, Emitters, EstimateError, Grid, InputError, Model, Points, Progress, Readings, Site,
};
use portolan_gpu::{CudaEngine, Lenient};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::obstacles::NativeObstacles;
use crate::readings::NativeReadings;
use crate::transmitters::{Known, check_taken, known};
use crate::watched::watched;
use crate::{arrays, errors};

/// A fitted model.
#[pyclass(frozen, name = "NativeModel", module = "portolan._native")]
pub struct NativeModel {
    pub inner: Model,
}

/// A grid: rows (along x), columns (along y), metres per cell, x and y of the centre of cell (0, 0).
pub type GridParts = (usize, usize, f64, f64, f64);

pub fn grid_parts(grid: Grid) -> GridParts {
    let origin = grid.origin();
    (grid.rows(), grid.cols(), grid.cell_m(), origin.x_m, origin.y_m)
}

pub fn grid((rows, cols, cell_m, x_m, y_m): GridParts) -> PyResult<Grid> {
    let grid = Grid::new(rows, cols, cell_m).and_then(|g| g.with_origin(Site::new(x_m, y_m)));
    grid.map_err(errors::input)
}

/// A method, its options and what it is told.
pub struct Request {
    method: String,
    options: Vec<(String, String)>,
    emitters: Emitters,
    seed: u64,
    grid: Option<Grid>,
    obstacles: Vec<Arc<dyn Between>>,
}

impl Request {
    pub fn new(
        method: String,
        options: Vec<(String, String)>,
        emitters: Option<usize>,
        seed: u64,
        parts: Option<GridParts>,
    ) -> PyResult<Self> {
        let emitters = emitters.map_or(Emitters::Auto, Emitters::Count);
        let grid = parts.map(grid).transpose()?;
        Ok(Self { method, options, emitters, seed, grid, obstacles: Vec::new() })
    }

    /// The same with walls and floors, where the method makes use of them.
    pub fn among(self, obstacles: Option<&Bound<'_, NativeObstacles>>) -> PyResult<Self> {
        let Some(obstacles) = obstacles else { return Ok(self) };
        let name = self.method.as_str();
        check_used(Capability::Obstacles, [name]).map_err(errors::input)?;
        Ok(Self { obstacles: obstacles.get().inner.clone(), ..self })
    }

    /// Fits; methods that make no use of known transmitters do not look at them.
    pub fn fit(
        &self,
        readings: &Readings,
        known: &[Transmitter],
        progress: &Progress<'_>,
    ) -> Result<Model, EstimateError> {
        let method = portolan::estimate::build(&self.method, self.options.clone())?;
        Ok(method.fit(readings, &self.context(known), progress)?.named(&self.method))
    }

    fn context<'a>(&'a self, transmitters: &'a [Transmitter]) -> Context<'a> {
        let Self { emitters, seed, grid, .. } = *self;
        let obstacles = &self.obstacles[..];
        Context { emitters, seed, grid, transmitters, obstacles, ..Context::default() }
    }

    /// The method, on another engine where one is given.
    fn built(&self, engine: Option<Arc<dyn Engine>>) -> Result<Box<dyn Method>, InputError> {
        match engine {
            Some(engine) => method(&self.method)?.build_on(engine, self.options.clone()),
            None => portolan::estimate::build(&self.method, self.options.clone()),
        }
    }
}

/// Fits a method of the register.
#[pyfunction]
#[pyo3(signature = (method, options, readings, *, emitters = None, seed = 0, grid = None,
    transmitters = None, obstacles = None, tell = None))]
#[expect(clippy::too_many_arguments, reason = "one for each thing that a fit may be told")]
pub fn fit(
    py: Python<'_>,
    method: String,
    options: Vec<(String, String)>,
    readings: &Bound<'_, NativeReadings>,
    emitters: Option<usize>,
    seed: u64,
    grid: Option<GridParts>,
    transmitters: Option<Vec<Known>>,
    obstacles: Option<&Bound<'_, NativeObstacles>>,
    tell: Option<&Bound<'_, PyAny>>,
) -> PyResult<NativeModel> {
    check_taken(&method, transmitters.is_some())?;
    let request = Request::new(method, options, emitters, seed, grid)?.among(obstacles)?;
    let readings = &readings.get().inner;
    let known = known(transmitters.unwrap_or_default());
    let model = watched(py, tell, |progress| request.fit(readings, &known, progress))?;
    Ok(NativeModel { inner: model.map_err(errors::estimate)? })
}

/// Fits the same method to many readings, each with its own known transmitters, on all cores or on so
/// many threads, or on a device.
#[pyfunction]
#[pyo3(signature = (method, options, readings, *, emitters = None, seed = 0, grid = None,
    transmitters = None, threads = None, device = "cpu", tell = None))]
#[expect(clippy::too_many_arguments, reason = "one for each thing that a fit may be told")]
pub fn fit_many(
    py: Python<'_>,
    method: String,
    options: Vec<(String, String)>,
    readings: Vec<Py<NativeReadings>>,
    emitters: Option<usize>,
    seed: u64,
    grid: Option<GridParts>,
    transmitters: Option<Vec<Vec<Known>>>,
    threads: Option<usize>,
    device: &str,
    tell: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<NativeModel>> {
    check_taken(&method, transmitters.is_some())?;
    let engine = engine(&method, device)?;
    let request = Request::new(method, options, emitters, seed, grid)?;
    let method = request.built(engine).map_err(errors::input)?;
    let mut each = transmitters.unwrap_or_default().into_iter().map(known);
    let readings: Vec<(&Readings, Vec<Transmitter>)> =
        readings.iter().map(|r| (&r.get().inner, each.next().unwrap_or_default())).collect();
    let jobs: Vec<Job<'_>> = readings
        .iter()
        .map(|(readings, known)| Job { readings, context: request.context(known) })
        .collect();
    let own = threads.map(|n| rayon::ThreadPoolBuilder::new().num_threads(n).build()).transpose();
    let own = own.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    let models = watched(py, tell, |progress| {
        let all = || method.fit_many(&jobs, progress)?.into_iter().collect::<Result<Vec<_>, _>>();
        match &own {
            None => all(),
            Some(own) => own.install(all),
        }
    })?;
    let named = |model: Model| NativeModel { inner: model.named(&request.method) };
    models.map(|all| all.into_iter().map(named).collect()).map_err(errors::estimate)
}

/// The engine that fits of a method run on: "cpu" is the processor's own, "cuda" the first CUDA device
/// or an error, "auto" that device where there is one for what it can do.
fn engine(name: &str, device: &str) -> PyResult<Option<Arc<dyn Engine>>> {
    let takes = method(name).map_err(errors::input)?.has(Capability::Device);
    match device {
        "cpu" => Ok(None),
        "auto" if !takes => Ok(None),
        "auto" => Ok(CudaEngine::new().ok().map(|e| Arc::new(Lenient::new(e)) as Arc<dyn Engine>)),
        "cuda" if !takes => {
            check_used(Capability::Device, [name]).map_err(errors::input).map(|()| None)
        }
        "cuda" => match CudaEngine::new() {
            Ok(engine) => Ok(Some(Arc::new(engine))),
            Err(error) => Err(PyRuntimeError::new_err(format!("device='cuda': {error}"))),
        },
        _ => Err(PyValueError::new_err(format!("device={device:?}: give 'cpu', 'cuda' or 'auto'"))),
    }
}

#[pyfunction]
pub fn read_model(py: Python<'_>, path: PathBuf) -> PyResult<NativeModel> {
    let inner = py.detach(|| portolan_io::read_model(&path)).map_err(errors::io)?;
    Ok(NativeModel { inner })
}

/// Places that are predicted at once: enough to share what neighbours have in common, few beside an
/// array of all.
const TOGETHER: usize = 1 << 20;

/// Decibels, spread of the field and of a reading, the chance of being heard, and decibels of what is
/// heard.
type Predicted<A> = (A, Option<A>, Option<A>, Option<A>, Option<A>);

/// What a model says about places, which are looked at where they lie.
fn predicted(
    model: &Model,
    places: ArrayView2<'_, f64>,
    progress: &Progress<'_>,
) -> Result<[Option<Array2<f64>>; 5], EstimateError> {
    let mut layers: [Option<Array2<f64>>; 5] = Default::default();
    let dim = (places.nrows(), model.bands());
    let parts = places.nrows().div_ceil(TOGETHER).max(1);
    for part in 0..parts {
        let rows = part * TOGETHER..((part + 1) * TOGETHER).min(places.nrows());
        let sites = arrays::sites(places.slice(s![rows.clone(), ..]), model.height_m())?;
        let share = |part: usize| part as f64 / parts as f64;
        let found = model.predict(&sites, &progress.part(share(part)..share(part + 1)))?;
        let own = [
            Some(arrays::decibels(found.power)),
            found.spread_db,
            found.reading_spread_db,
            found.chance_heard,
            found.heard.map(arrays::decibels),
        ];
        for (layer, own) in layers.iter_mut().zip(own) {
            let Some(own) = own else { continue };
            if parts == 1 {
                *layer = Some(own);
                continue;
            }
            let whole = layer.get_or_insert_with(|| Array2::zeros(dim));
            whole.slice_mut(s![rows.clone(), ..]).assign(&own);
        }
    }
    Ok(layers)
}

/// Whether a model says what receivers hear: it does everywhere or nowhere.
fn hears(model: &Model) -> Result<bool, EstimateError> {
    let Some(site) = model.sites().first() else { return Ok(false) };
    Ok(model.predict_bands(&[*site], &[0], &Progress::silent())?.chance_heard.is_some())
}

#[pymethods]
impl NativeModel {
    /// Decibels, spread of the field and of a reading, chance of being heard, decibels of what is
    /// heard: each (places, bands).
    fn predict<'py>(
        &self,
        py: Python<'py>,
        places: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<Predicted<Bound<'py, PyArray2<f64>>>> {
        let places = places.as_array();
        let found = watched(py, None, |progress| predicted(&self.inner, places, progress))?;
        let [power, field, reading, chance, heard] = found.map_err(errors::estimate)?;
        let array = |values: Option<Array2<f64>>| values.map(|v| v.into_pyarray(py));
        let power = power.unwrap_or_default().into_pyarray(py);
        Ok((power, array(field), array(reading), array(chance), array(heard)))
    }

    /// The same at places with moments of their own, in seconds since 1970; NaN asks for the latest.
    fn predict_at_times<'py>(
        &self,
        py: Python<'py>,
        places: PyReadonlyArray2<'py, f64>,
        time_s: Vec<f64>,
    ) -> PyResult<Predicted<Bound<'py, PyArray2<f64>>>> {
        let sites =
            arrays::sites(places.as_array(), self.inner.height_m()).map_err(errors::input)?;
        let points = Points::from(sites).with_time_s(Some(time_s)).map_err(errors::input)?;
        let bands: Vec<usize> = (0..self.inner.bands()).collect();
        let found =
            watched(py, None, |progress| self.inner.predict_points(&points, &bands, progress))?;
        let found = found.map_err(errors::estimate)?;
        let array = |values: Option<Array2<f64>>| values.map(|v| v.into_pyarray(py));
        Ok((
            arrays::decibels(found.power).into_pyarray(py),
            array(found.spread_db),
            array(found.reading_spread_db),
            array(found.chance_heard),
            array(found.heard.map(arrays::decibels)),
        ))
    }

    /// The model at a moment in seconds since 1970.
    fn at_time(&self, time_s: f64) -> PyResult<Self> {
        Ok(Self { inner: self.inner.at_time(time_s).map_err(errors::estimate)? })
    }

    /// The first and the last moment of its readings.
    #[getter]
    fn time_span(&self) -> Option<(f64, f64)> {
        self.inner.time_span()
    }

    /// Band, number of readings, level in dB, its score, chance of the shape and kind of every band.
    #[expect(clippy::type_complexity, reason = "a tuple for Python")]
    fn changes(
        &self,
        py: Python<'_>,
        readings: &NativeReadings,
        rate: f64,
    ) -> PyResult<Vec<(String, usize, f64, f64, f64, &'static str)>> {
        let found =
            watched(py, None, |progress| self.inner.changes(&readings.inner, rate, progress))?;
        let label = |change: &Change| match change.kind {
            ChangeKind::New => readings.inner.labels().label(change.band),
            _ => self.inner.labels().label(change.band),
        };
        let row =
            |c: Change| (label(&c), c.readings, c.level_db, c.level_z, c.shape_p, c.kind.name());
        Ok(found.map_err(errors::estimate)?.into_iter().map(row).collect())
    }

    /// Decibels, spread, chance of being heard and decibels of what is heard on a grid, each (rows,
    /// columns, bands).
    #[expect(clippy::type_complexity, reason = "a tuple for Python")]
    fn map<'py>(
        &self,
        py: Python<'py>,
        parts: GridParts,
    ) -> PyResult<(
        Bound<'py, PyArray3<f64>>,
        Option<Bound<'py, PyArray3<f64>>>,
        Option<Bound<'py, PyArray3<f64>>>,
        Option<Bound<'py, PyArray3<f64>>>,
    )> {
        let grid = grid(parts)?;
        let found = watched(py, None, |progress| {
            if !hears(&self.inner)? {
                let (mut power, spread) = self.inner.map(grid, progress)?.into_dense();
                power.par_mapv_inplace(|x| 10.0 * x.log10());
                return Ok((power, spread, None, None));
            }
            // A map holds the field alone: what is heard is asked for at the centres of its cells.
            let found = self.inner.predict(&grid.sites(), progress)?;
            let shape = (grid.rows(), grid.cols(), self.inner.bands());
            let cube = |values: Array2<f64>| {
                values.into_shape_with_order(shape).expect("every cell was asked for")
            };
            let levels = |power: Array2<f64>| cube(arrays::decibels(power));
            Ok((
                levels(found.power),
                found.spread_db.map(cube),
                found.chance_heard.map(cube),
                found.heard.map(levels),
            ))
        })?;
        let (power, spread, chance, heard) = found.map_err(errors::estimate)?;
        let array = |values: Option<_>| values.map(|v: Array3<f64>| v.into_pyarray(py));
        Ok((power.into_pyarray(py), array(spread), array(chance), array(heard)))
    }

    /// Whether predictions say what is heard.
    #[getter]
    fn gives_heard(&self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| hears(&self.inner)).map_err(errors::estimate)
    }

    /// The grid that a map is drawn on by default.
    fn default_grid(&self) -> PyResult<GridParts> {
        Ok(grid_parts(self.inner.grid_or_default().map_err(errors::input)?))
    }

    /// x and y of the least and of the greatest corner around the sensors.
    #[getter]
    fn region(&self) -> (f64, f64, f64, f64) {
        let region = self.inner.region();
        (region.low.x_m, region.low.y_m, region.high.x_m, region.high.y_m)
    }

    #[getter]
    fn bands(&self) -> usize {
        self.inner.bands()
    }

    #[getter]
    fn unit(&self) -> (&'static str, Option<f64>) {
        arrays::unit(self.inner.scale())
    }

    #[getter]
    fn gives_spread(&self) -> bool {
        self.inner.gives_spread()
    }

    #[getter]
    fn freq_hz<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f64>>> {
        Some(self.inner.labels().freq_hz()?.to_vec().into_pyarray(py))
    }

    #[getter]
    fn crs(&self) -> Option<String> {
        self.inner.crs().map(|crs| crs.to_string())
    }

    #[getter]
    fn names(&self) -> Option<Vec<String>> {
        Some(self.inner.labels().names()?.to_vec())
    }

    /// What the fit says about itself.
    #[getter]
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (report, out) = (self.inner.report(), PyDict::new(py));
        out.set_item("method", &report.method)?;
        out.set_item("chosen", report.chosen.as_ref().unwrap_or(&report.method))?;
        let candidates = report.candidates.iter().map(|c| (c.method.clone(), c.rmse_db, c.weight));
        out.set_item("candidates", candidates.collect::<Vec<_>>())?;
        out.set_item("iterations", report.iterations)?;
        out.set_item("loss", report.loss)?;
        out.set_item("loss_trace", report.loss_trace.clone().into_pyarray(py))?;
        let fitted = PyDict::new(py);
        report.fitted.iter().try_for_each(|(name, value)| fitted.set_item(name, value))?;
        out.set_item("fitted", fitted)?;
        let columns = PyList::empty(py);
        for column in &report.columns {
            let own = PyDict::new(py);
            own.set_item("name", &column.name)?;
            own.set_item("coefficient", column.loss_db)?;
            own.set_item("error", column.loss_se_db)?;
            own.set_item("rmse_db", column.rmse_db)?;
            own.set_item("rmse_without_db", column.rmse_without_db)?;
            columns.append(own)?;
        }
        out.set_item("columns", columns)?;
        out.set_item("notes", &report.notes)?;
        Ok(out)
    }

    /// The emitters that the model tells apart, as dictionaries.
    #[getter]
    fn emitters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for emitter in self.inner.emitters() {
            let (found, row) = (emitter.finding(), PyDict::new(py));
            let se = found.at_se_m.unwrap_or([f64::NAN; 2]);
            row.set_item("x_m", found.at.x_m)?;
            row.set_item("y_m", found.at.y_m)?;
            row.set_item("x_se_m", se[0])?;
            row.set_item("y_se_m", se[1])?;
            row.set_item("exponent", found.exponent.map_or(f64::NAN, |e| e.value))?;
            row.set_item("exponent_se", found.exponent.map_or(f64::NAN, |e| e.se))?;
            row.set_item("power_share", found.power_share.unwrap_or(f64::NAN))?;
            list.append(row)?;
        }
        Ok(list)
    }

    fn updated(&self, py: Python<'_>, readings: &Bound<'_, NativeReadings>) -> PyResult<Self> {
        let readings = &readings.get().inner;
        let inner = py.detach(|| self.inner.updated(readings)).map_err(errors::estimate)?;
        Ok(Self { inner })
    }

    fn write(&self, py: Python<'_>, path: PathBuf, force: bool) -> PyResult<()> {
        py.detach(|| portolan_io::write_model(&path, &self.inner, force)).map_err(errors::io)
    }

    /// The model as named arrays: what its file holds.
    fn to_arrays<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let out = PyDict::new(py);
        for (name, stored) in self.inner.to_archive().entries() {
            match stored {
                Stored::Real(values) => out.set_item(name, values.clone().into_pyarray(py))?,
                Stored::Single(values) => out.set_item(name, values.clone().into_pyarray(py))?,
                Stored::Whole(values) => out.set_item(name, values.clone().into_pyarray(py))?,
                Stored::Text(texts) => out.set_item(name, texts)?,
                Stored::Word(word) => out.set_item(name, [word])?,
            }
        }
        Ok(out)
    }

    #[staticmethod]
    fn from_arrays(arrays: &Bound<'_, PyDict>) -> PyResult<Self> {
        let mut entries = Vec::new();
        for (name, value) in arrays {
            entries.push((name.extract::<String>()?, stored(&value)?));
        }
        let inner = Model::from_archive(&Archive::new(entries)).map_err(errors::estimate)?;
        Ok(Self { inner })
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyDict>,))> {
        let make = slf.get_type().getattr("from_arrays")?;
        Ok((make, (slf.get().to_arrays(slf.py())?,)))
    }
}

fn stored(value: &Bound<'_, PyAny>) -> PyResult<Stored> {
    fn owned<'py, T: numpy::Element + Clone>(value: &Bound<'py, PyAny>) -> Option<ArrayD<T>> {
        Some(value.cast::<PyArrayDyn<T>>().ok()?.readonly().as_array().to_owned())
    }
    if let Some(values) = owned::<f64>(value) {
        Ok(Stored::Real(values))
    } else if let Some(values) = owned::<f32>(value) {
        Ok(Stored::Single(values))
    } else if let Some(values) = owned::<i64>(value) {
        Ok(Stored::Whole(values))
    } else {
        let texts = value.extract::<Vec<String>>();
        texts.map(Stored::Text).map_err(|_| PyTypeError::new_err("not an array of a model"))
    }
}
