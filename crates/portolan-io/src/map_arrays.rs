//! Maps from and to named arrays: Portolan's own names, the authors' names, or one named array.

use ndarray::{Array1, Array3, ArrayD, ArrayView2, ArrayView3, Axis};
use portolan::{Exponent, Factors, Grid, RadioMap, Site};

use crate::authors;
use crate::error::{Check, Problem, quoted, shown};
use crate::gis::MapAbout;
use crate::options::{ReadOptions, Unit};
use crate::store::{NamedArray, Store, cube, matrix, vector};
use crate::unit_arrays::{crs, frame_arrays, grid, grid_arrays, labels, unit, value_unit};

/// A factored map of up to this many entries is written dense as well, unless told otherwise: scripts
/// that open the file look for `map`.
const DENSE_LIMIT: usize = 1 << 24;

/// True where the arrays can make a map.
pub(crate) fn is_map(store: &dyn Store, options: &ReadOptions) -> bool {
    options.var.is_some()
        || store.has("map")
        || (store.has("slf") && store.has("psd"))
        || authors::is_map(store)
}

pub(crate) fn read(
    store: &mut dyn Store,
    options: &ReadOptions,
    warnings: &mut Vec<String>,
) -> Check<RadioMap> {
    let simulated = options.var.is_none() && !store.has("map") && authors::is_simulated(store);
    let usual = simulated.then_some(Unit::Relative);
    let (named, scale) = unit(store, options, usual, warnings)?;
    let options = &ReadOptions { unit: Some(named), ..options.clone() };
    let power = if let Some(name) = &options.var {
        let why = format!("the file holds {}", store.names());
        let power = layers(name, store.need(name, &why)?)?;
        Power::Dense(to_linear(name, power, named, warnings)?)
    } else if store.has("map") || (store.has("slf") && store.has("psd")) {
        own(store, options, warnings)?
    } else if authors::is_map(store) {
        authors::read(store, options, warnings)?
    } else {
        let names = store.names();
        let expected = "'map', 'slf' and 'psd', 'T_true' or 'T'; name another array with --var";
        return Err(Problem::new(format!("holds {names}, expected {expected}")));
    };
    let (rows, cols) = power.sides();
    if let Some((want_rows, want_cols)) = options.grid.filter(|&grid| grid != (rows, cols)) {
        return Err(Problem::new(format!(
            "the map is {rows} x {cols} cells, but a grid of {want_rows} x {want_cols} was asked for"
        )));
    }
    let grid = grid(store, (rows, cols), options)?;
    let map = match power {
        Power::Dense(power) => RadioMap::dense(grid, power, scale)?,
        Power::Factored(factors) => RadioMap::factored(grid, factors, scale)?,
    };
    let spread = store.find("spread_db")?.map(|array| layers("spread_db", array)).transpose()?;
    attach(map.with_spread_db(spread)?, grid, store, options)
}

pub(crate) enum Power {
    Dense(Array3<f64>),
    Factored(Factors),
}

impl Power {
    fn sides(&self) -> (usize, usize) {
        match self {
            Power::Dense(power) => (power.dim().0, power.dim().1),
            Power::Factored(factors) => (factors.slf.dim().1, factors.slf.dim().2),
        }
    }
}

fn own(store: &mut dyn Store, options: &ReadOptions, warnings: &mut Vec<String>) -> Check<Power> {
    let dense = match store.find("map")? {
        Some(map) => {
            let unit = options.unit.unwrap_or(Unit::Linear);
            Some(to_linear("map", layers("map", map)?, unit, warnings)?)
        }
        None => None,
    };
    if !(store.has("slf") && store.has("psd")) {
        return dense.map(Power::Dense).ok_or_else(|| Problem::new("array 'map' is missing"));
    }
    let slf = store.need("slf", "")?;
    let psd = matrix("psd", store.need("psd", "")?, "emitters x bands")?;
    let Some(dense) = dense else {
        let slf = cube("slf", slf, "emitters x rows x cols")?;
        return Ok(Power::Factored(Factors { slf, psd }));
    };
    match cube("slf", slf, "emitters x rows x cols") {
        Ok(slf) if reproduces(slf.view(), psd.view(), dense.view()) => {
            Ok(Power::Factored(Factors { slf, psd }))
        }
        _ => {
            warnings.push("'slf' and 'psd' do not make up 'map': only 'map' is used".into());
            Ok(Power::Dense(dense))
        }
    }
}

/// Whether factors have the shape of a dense map.
pub(crate) fn fits(
    slf: ArrayView3<'_, f64>,
    psd: ArrayView2<'_, f64>,
    dense: ArrayView3<'_, f64>,
) -> bool {
    let (emitters, rows, cols) = slf.dim();
    psd.nrows() == emitters && dense.dim() == (rows, cols, psd.ncols())
}

/// Whether factors make up a dense map, judged by shape and at about 64 cells.
pub(crate) fn reproduces(
    slf: ArrayView3<'_, f64>,
    psd: ArrayView2<'_, f64>,
    dense: ArrayView3<'_, f64>,
) -> bool {
    if !fits(slf, psd, dense) {
        return false;
    }
    let (emitters, rows, cols) = slf.dim();
    let bands = psd.ncols();
    // Sums of tiny terms keep fewer digits; what is 1e-12 of the peak decides nothing.
    let peak = dense.iter().copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
    let close = |found: f64, expected: f64| {
        (found.is_nan() && expected.is_nan())
            || (found - expected).abs() <= 1e-4 * expected.abs() + 1e-12 * peak
    };
    let cells = rows * cols;
    (0..cells).step_by((cells / 64).max(1)).all(|index| {
        let (row, col) = (index / cols, index % cols);
        (0..bands).all(|band| {
            let sum = (0..emitters).map(|r| slf[[r, row, col]] * psd[[r, band]]).sum();
            close(sum, dense[[row, col, band]])
        })
    })
}

/// Rows x cols x bands; a matrix is one band.
pub(crate) fn layers(name: &str, array: ArrayD<f64>) -> Check<Array3<f64>> {
    let array = if array.ndim() == 2 { array.insert_axis(Axis(2)) } else { array };
    cube(name, array, "rows x cols x bands")
}

/// Linear power. Survey tensors in dBm keep exactly 0 where nothing was measured.
pub(crate) fn to_linear(
    name: &str,
    mut power: Array3<f64>,
    unit: Unit,
    warnings: &mut Vec<String>,
) -> Check<Array3<f64>> {
    let unit = value_unit(unit, power.iter().copied());
    if unit.is_decibels() {
        let unmeasured = power.iter().filter(|&&v| v == 0.0).count();
        power.mapv_inplace(|v| if v == 0.0 { f64::NAN } else { unit.to_linear(v) });
        if unmeasured > 0 {
            let name = quoted(name);
            warnings.push(format!(
                "{unmeasured} entries of {name} are exactly 0 dBm: taken as unmeasured"
            ));
        }
    } else if let Some(((row, col, band), value)) = power.indexed_iter().find(|(_, v)| **v < 0.0) {
        return Err(Problem::new(format!(
            "array {} at row {row}, col {col}, band {band} is {}, expected linear power: pass \
             --unit dbm if it is in dBm",
            quoted(name),
            shown(*value)
        )));
    }
    Ok(power)
}

/// Attaches what is said beside the large arrays; `grid` is that of the whole map.
pub(crate) fn attach(
    map: RadioMap,
    grid: Grid,
    store: &mut dyn Store,
    options: &ReadOptions,
) -> Check<RadioMap> {
    let noise = match store.find("noise_db")? {
        Some(array) => Some(vector("noise_db", array)?),
        None => None,
    };
    let emitters: Vec<Site> = match store.find("emitters")? {
        // MATLAB keeps an empty list as 0 x 0.
        Some(array) if array.is_empty() => Vec::new(),
        Some(array) => {
            let places = pairs("emitters", array, f64::NEG_INFINITY)?;
            places.into_iter().map(|at| grid.site_at(at)).collect()
        }
        None => Vec::new(),
    };
    let errors: Vec<[f64; 2]> = match store.find("emitter_se")? {
        Some(array) => {
            let cells = pairs("emitter_se", array, 0.0)?;
            cells.into_iter().map(|se| se.map(|s| s * grid.cell_m())).collect()
        }
        None => Vec::new(),
    };
    let bands: Vec<usize> = match store.find("emitter_band")? {
        Some(array) => emitter_bands(vector("emitter_band", array)?)?,
        None => Vec::new(),
    };
    let exponents = exponents(store)?;
    let labels = labels(store, map.bands())?;
    let map = map.with_labels(labels)?.with_crs(crs(store, options)?);
    let map = map.with_noise_db(noise)?.with_emitters(emitters);
    Ok(map.with_emitter_se_m(errors)?.with_emitter_bands(bands)?.with_exponents(exponents)?)
}

fn emitter_bands(numbers: Vec<f64>) -> Check<Vec<usize>> {
    let whole = |n: f64| (n >= 0.0 && n.fract() == 0.0 && n < 1e9).then_some(n as usize);
    numbers.iter().map(|&n| whole(n)).collect::<Option<_>>().ok_or_else(|| {
        Problem::new("array 'emitter_band': expected the number of a band per emitter")
    })
}

fn exponents(store: &mut dyn Store) -> Check<Vec<Exponent>> {
    let Some(array) = store.find("exponent")? else { return Ok(Vec::new()) };
    let values = vector("exponent", array)?;
    let errors = match store.find("exponent_se")? {
        Some(array) => vector("exponent_se", array)?,
        None => vec![f64::NAN; values.len()],
    };
    let wrong = values.iter().any(|v| !v.is_finite()) || errors.iter().any(|e| *e < 0.0);
    if errors.len() != values.len() || wrong {
        let (found, expected) = (errors.len(), values.len());
        return Err(Problem::new(format!(
            "arrays 'exponent' and 'exponent_se' hold {expected} and {found} numbers: expected a \
             finite exponent and its standard error per emitter"
        )));
    }
    Ok(values.into_iter().zip(errors).map(|(value, se)| Exponent { value, se }).collect())
}

fn pairs(name: &str, array: ArrayD<f64>, least: f64) -> Check<Vec<[f64; 2]>> {
    let array = matrix(name, array, "emitters x 2 (row, col)")?;
    if array.ncols() != 2 || array.iter().any(|v| !v.is_finite() || *v < least) {
        let shape = array.shape();
        return Err(Problem::new(format!(
            "array '{name}' of shape {shape:?}: expected a finite row and col per emitter{}",
            if least == 0.0 { ", 0 or more" } else { "" }
        )));
    }
    Ok(array.rows().into_iter().map(|row| [row[0], row[1]]).collect())
}

/// Whether the dense map is among what is written.
pub(crate) fn writes_dense(map: &RadioMap, dense: Option<bool>) -> bool {
    let entries = map.grid().cells().saturating_mul(map.bands());
    map.factors().is_none() || dense.unwrap_or(entries <= DENSE_LIMIT)
}

/// The arrays of a map under Portolan's names.
pub(crate) fn arrays<'a>(map: &'a RadioMap, dense: Option<bool>) -> Vec<NamedArray<'a>> {
    let mut arrays = Vec::new();
    if writes_dense(map, dense) {
        let power: ndarray::CowArray<'a, f64, _> = match map.to_dense() {
            std::borrow::Cow::Borrowed(power) => power.view().into(),
            std::borrow::Cow::Owned(power) => power.into(),
        };
        arrays.push(NamedArray::real("map", power.into_dyn()));
    }
    if let Some(factors) = map.factors() {
        arrays.push(NamedArray::real("slf", factors.slf.view().into_dyn().into()));
        arrays.push(NamedArray::real("psd", factors.psd.view().into_dyn().into()));
    }
    arrays.extend(shared_arrays(map));
    arrays
}

/// The arrays that have the same name and axes in every format.
pub(crate) fn shared_arrays(map: &RadioMap) -> Vec<NamedArray<'_>> {
    let mut arrays = Vec::new();
    if let Some(spread) = map.spread_db() {
        arrays.push(NamedArray::real("spread_db", spread.view().into_dyn().into()));
    }
    if let Some(reading) = map.reading_spread_db() {
        arrays.push(NamedArray::real("reading_spread_db", reading.into_dyn().into()));
    }
    arrays.extend(small_arrays(map));
    arrays
}

/// What is said about a map beside its large arrays.
fn small_arrays(map: &RadioMap) -> Vec<NamedArray<'_>> {
    let mut arrays = Vec::new();
    if let Some(noise) = map.noise_db() {
        arrays.push(NamedArray::vector("noise_db", noise));
    }
    let exponents = map.exponents();
    arrays.extend(emitter_arrays(map.grid(), map.emitters(), map.emitter_se_m(), exponents));
    arrays.extend(emitter_band_array(map.emitter_bands()));
    arrays.extend(frame_arrays(map.frame()));
    arrays.extend(grid_arrays(map.grid()));
    arrays
}

/// Emitters as rows and columns of the grid, with their errors in cells.
pub(crate) fn emitter_arrays<'a>(
    grid: Grid,
    emitters: &[Site],
    errors_m: &[[f64; 2]],
    exponents: &[Exponent],
) -> Vec<NamedArray<'a>> {
    let mut arrays = Vec::new();
    let table = |rows: Vec<[f64; 2]>| ndarray::arr2(&rows).into_dyn();
    if !emitters.is_empty() {
        let places = emitters.iter().map(|at| grid.position(*at)).collect();
        arrays.push(NamedArray::real("emitters", table(places).into()));
    }
    if !errors_m.is_empty() {
        let cells = errors_m.iter().map(|se| se.map(|s| s / grid.cell_m())).collect();
        arrays.push(NamedArray::real("emitter_se", table(cells).into()));
    }
    if !exponents.is_empty() {
        let of = |part: fn(&Exponent) -> f64| {
            exponents.iter().map(part).collect::<Array1<f64>>().into_dyn()
        };
        arrays.push(NamedArray::real("exponent", of(|e| e.value).into()));
        arrays.push(NamedArray::real("exponent_se", of(|e| e.se).into()));
    }
    arrays
}

/// The bands of emitters that transmit in one each.
fn emitter_band_array<'a>(bands: &[usize]) -> Option<NamedArray<'a>> {
    let numbers: Array1<f64> = bands.iter().map(|band| *band as f64).collect();
    (!bands.is_empty()).then(|| NamedArray::real("emitter_band", numbers.into_dyn().into()))
}

/// The small arrays of a map, for [`MapWriter`](crate::MapWriter).
pub fn attribute_arrays<'a>(
    about: &'a MapAbout,
    emitters: &[portolan::model::ModelEmitter],
) -> Vec<NamedArray<'a>> {
    let mut arrays = Vec::new();
    if let Some(noise) = &about.noise_db {
        arrays.push(NamedArray::vector("noise_db", noise));
    }
    let places: Vec<Site> = emitters.iter().map(|e| e.at).collect();
    let errors: Vec<[f64; 2]> = emitters.iter().filter_map(|e| e.at_se_m).collect();
    let exponents: Vec<Exponent> = emitters.iter().filter_map(|e| e.exponent).collect();
    arrays.extend(emitter_arrays(about.grid, &places, &errors, &exponents));
    let bands: Option<Vec<usize>> = emitters.iter().map(|e| e.band()).collect();
    arrays.extend(emitter_band_array(&bands.unwrap_or_default()));
    arrays.extend(frame_arrays(&about.frame));
    arrays.extend(grid_arrays(about.grid));
    arrays
}
