//! Maps from and to named arrays: Portolan's own names, the authors' names, or one named array.

use ndarray::{Array1, Array3, ArrayD, ArrayView2, ArrayView3, Axis};
use portolan::{Exponent, Factors, Grid, RadioMap};

use crate::authors;
use crate::error::{Check, Problem, quoted, shown};
use crate::options::{ReadOptions, Unit};
use crate::store::{Field, Store, cube, matrix, scalar, vector};

/// A factored map of up to this many entries is written dense as well, unless told otherwise.
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
    let power = if let Some(name) = &options.var {
        let why = format!("the file holds {}", store.names());
        let power = layers(name, store.need(name, &why)?)?;
        Power::Dense(to_linear(name, power, options.unit, warnings)?)
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
    let grid = Grid::new(rows, cols, cell_m(store, options)?)?;
    let map = match power {
        Power::Dense(power) => RadioMap::dense(grid, power)?,
        Power::Factored(factors) => RadioMap::factored(grid, factors)?,
    };
    attach(map, store)
}

/// Metres per cell: the caller's word, else the file's, else 1.
pub(crate) fn cell_m(store: &mut dyn Store, options: &ReadOptions) -> Check<f64> {
    match (options.cell_m, store.find("cell_m")?) {
        (Some(cell_m), _) => Ok(cell_m),
        (None, Some(array)) => scalar("cell_m", array),
        (None, None) => Ok(1.0),
    }
}

pub(crate) fn frequencies(store: &mut dyn Store) -> Check<Option<Vec<f64>>> {
    store.find("freq_hz")?.map(|array| vector("freq_hz", array)).transpose()
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
        Some(map) => Some(to_linear("map", layers("map", map)?, options.unit, warnings)?),
        None => None,
    };
    if !(store.has("slf") && store.has("psd")) {
        return dense.map(Power::Dense).ok_or_else(|| Problem::new("array 'map' is missing"));
    }
    if dense.is_none() && options.unit == Some(Unit::Dbm) {
        return Err(Problem::new("'slf' and 'psd' are linear by their nature, not dBm"));
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
    unit: Option<Unit>,
    warnings: &mut Vec<String>,
) -> Check<Array3<f64>> {
    match unit {
        None => {
            if let Some(((row, col, band), value)) = power.indexed_iter().find(|(_, v)| **v < 0.0) {
                return Err(Problem::new(format!(
                    "array {} at row {row}, col {col}, band {band} is {}, expected linear \
                     power: pass --unit dbm if it is in dBm",
                    quoted(name),
                    shown(*value)
                )));
            }
        }
        Some(Unit::Linear) => {}
        Some(Unit::Dbm) => {
            let unmeasured = power.iter().filter(|&&v| v == 0.0).count();
            power.mapv_inplace(|v| if v == 0.0 { f64::NAN } else { Unit::Dbm.to_linear(v) });
            if unmeasured > 0 {
                let name = quoted(name);
                warnings.push(format!(
                    "{unmeasured} entries of {name} are exactly 0 dBm: taken as unmeasured"
                ));
            }
        }
    }
    Ok(power)
}

fn attach(map: RadioMap, store: &mut dyn Store) -> Check<RadioMap> {
    let spread = store.find("spread_db")?.map(|array| layers("spread_db", array)).transpose()?;
    let emitters = match store.find("emitters")? {
        // MATLAB keeps an empty list as 0 x 0.
        Some(array) if array.is_empty() => Vec::new(),
        Some(array) => pairs("emitters", array, f64::NEG_INFINITY)?,
        None => Vec::new(),
    };
    let emitter_se = match store.find("emitter_se")? {
        Some(array) => pairs("emitter_se", array, 0.0)?,
        None => Vec::new(),
    };
    let exponents = exponents(store)?;
    let map = map.with_frequencies(frequencies(store)?)?.with_spread_db(spread)?;
    let map = map.with_emitters(emitters);
    Ok(map.with_emitter_se(emitter_se)?.with_exponents(exponents)?)
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
pub(crate) fn fields<'a>(map: &'a RadioMap, dense: Option<bool>) -> Vec<Field<'a>> {
    let mut fields = Vec::new();
    if writes_dense(map, dense) {
        let power: ndarray::CowArray<'a, f64, _> = match map.to_dense() {
            std::borrow::Cow::Borrowed(power) => power.view().into(),
            std::borrow::Cow::Owned(power) => power.into(),
        };
        fields.push(Field::real("map", power.into_dyn()));
    }
    if let Some(factors) = map.factors() {
        fields.push(Field::real("slf", factors.slf.view().into_dyn().into()));
        fields.push(Field::real("psd", factors.psd.view().into_dyn().into()));
    }
    fields.extend(shared_fields(map));
    fields
}

/// The arrays that have the same name and axes in every format.
pub(crate) fn shared_fields(map: &RadioMap) -> Vec<Field<'_>> {
    let mut fields = Vec::new();
    if let Some(spread) = map.spread_db() {
        fields.push(Field::real("spread_db", spread.view().into_dyn().into()));
    }
    if !map.emitters().is_empty() {
        let positions = ndarray::aview2(map.emitters());
        fields.push(Field::real("emitters", positions.into_dyn().into()));
    }
    if !map.emitter_se().is_empty() {
        let errors = ndarray::aview2(map.emitter_se());
        fields.push(Field::real("emitter_se", errors.into_dyn().into()));
    }
    if !map.exponents().is_empty() {
        let of = |part: fn(&Exponent) -> f64| {
            map.exponents().iter().map(part).collect::<Array1<f64>>().into_dyn()
        };
        fields.push(Field::real("exponent", of(|e| e.value).into()));
        fields.push(Field::real("exponent_se", of(|e| e.se).into()));
    }
    if let Some(freq_hz) = map.freq_hz() {
        fields.push(Field::vector("freq_hz", freq_hz));
    }
    fields.push(Field::scalar("cell_m", map.grid().cell_m()));
    fields
}
