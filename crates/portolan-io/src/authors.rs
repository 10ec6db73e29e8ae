//! The arrays of the paper's authors: `T_true` (the map), `S_true` (SLFs), `C_true` (PSDs) and `T`
//! (what was observed). MATLAB files keep the band and emitter axes last, the Python simulator's
//! files first; where the shapes allow both, the product of the factors decides.

use ndarray::{ArrayD, ArrayView2, ArrayView3, Axis, Ix2, Ix3};
use portolan::Factors;

use crate::error::{Check, Problem};
use crate::map_arrays::{Power, fits, reproduces, to_linear};
use crate::options::{ReadOptions, Unit};
use crate::store::Store;

pub(crate) fn is_map(store: &dyn Store) -> bool {
    store.has("T_true") || store.has("T") || (store.has("S_true") && store.has("C_true"))
}

/// True where the true factors are there: their SLFs and PSDs have unit norm, as simulated.
pub(crate) fn is_simulated(store: &dyn Store) -> bool {
    store.has("S_true") && store.has("C_true")
}

pub(crate) fn read(
    store: &mut dyn Store,
    options: &ReadOptions,
    warnings: &mut Vec<String>,
) -> Check<Power> {
    let first = store.bands_first();
    let name = if store.has("T_true") { "T_true" } else { "T" };
    let map = store.find(name)?;
    let arrays = match (store.find("S_true")?, store.find("C_true")?) {
        (Some(slf), Some(psd)) => Some((slf, psd)),
        _ => None,
    };
    let factors = match &arrays {
        Some((slf, psd)) => factor_readings(slf, psd, first)?,
        None => Vec::new(),
    };
    let keep = |(slf, psd): &Pair<'_>| {
        let slf = slf.as_standard_layout().into_owned();
        Power::Factored(Factors { slf, psd: psd.as_standard_layout().into_owned() })
    };
    let dbm = options.unit.is_some_and(Unit::is_decibels);
    let Some(map) = map else {
        if dbm {
            return Err(Problem::new("'S_true' and 'C_true' are linear by their nature, not dBm"));
        }
        let matching = factors.iter().find(|(slf, psd)| slf.dim().0 == psd.nrows());
        return matching.map(keep).ok_or_else(|| {
            Problem::new("'S_true' and 'C_true' do not have the same number of emitters")
        });
    };
    let views = map_readings(name, &map, first)?;
    let pairs = || views.iter().flat_map(|view| factors.iter().map(move |pair| (view, pair)));
    if !dbm {
        // T is what was observed: the true factors need not make it up.
        let observed = name == "T";
        let matching = pairs().find(|(view, (slf, psd))| {
            if observed { fits(*slf, *psd, **view) } else { reproduces(*slf, *psd, **view) }
        });
        if let Some((_, pair)) = matching {
            return Ok(keep(pair));
        }
    }
    if arrays.is_some() {
        warnings.push(format!("'S_true' and 'C_true' do not make up '{name}': they are not used"));
    }
    let view = pairs().find(|(view, (slf, psd))| fits(*slf, *psd, **view)).map(|(view, _)| view);
    if view.is_none() && first && map.ndim() == 3 {
        warnings.push(bands_first_note(name, map.shape()));
    }
    let dense = view.unwrap_or(&views[0]).as_standard_layout().into_owned();
    Ok(Power::Dense(to_linear(name, dense, options.unit.unwrap_or(Unit::Linear), warnings)?))
}

/// What to say where nothing but a habit tells which axis is which.
pub(crate) fn bands_first_note(name: &str, shape: &[usize]) -> String {
    format!(
        "'{name}' of shape {shape:?} is read as bands x rows x cols, as the authors' simulator \
         writes it: --var {name} reads rows x cols x bands"
    )
}

/// SLFs (emitters x rows x cols) and PSDs (emitters x bands).
type Pair<'a> = (ArrayView3<'a, f64>, ArrayView2<'a, f64>);

/// The ways to see an array as rows x cols x bands, the likely one first.
fn map_readings<'a>(
    name: &str,
    map: &'a ArrayD<f64>,
    bands_first: bool,
) -> Check<[ArrayView3<'a, f64>; 2]> {
    let (view, flat) = stacked(name, map, "rows, cols and bands")?;
    let turned = if flat { view } else { view.permuted_axes([1, 2, 0]) };
    Ok(if bands_first { [turned, view] } else { [view, turned] })
}

/// The ways to see two arrays as factors, the likely one first.
fn factor_readings<'a>(
    slf: &'a ArrayD<f64>,
    psd: &'a ArrayD<f64>,
    emitters_first: bool,
) -> Check<Vec<Pair<'a>>> {
    let (slf, flat) = stacked("S_true", slf, "rows, cols and emitters")?;
    let last = slf.permuted_axes([2, 0, 1]);
    let shape = psd.shape();
    let psd = psd.view().into_dimensionality::<Ix2>().map_err(|_| {
        Problem::new(format!("array 'C_true' has shape {shape:?}, expected bands x emitters"))
    })?;
    let slfs = match (flat, emitters_first) {
        (true, _) => vec![last],
        (false, true) => vec![slf, last],
        (false, false) => vec![last, slf],
    };
    let psds = if emitters_first { [psd, psd.reversed_axes()] } else { [psd.reversed_axes(), psd] };
    Ok(slfs.iter().flat_map(|slf| psds.iter().map(|psd| (*slf, *psd))).collect())
}

/// Three axes; a matrix gets a last axis of length 1 and is reported as flat.
fn stacked<'a>(
    name: &str,
    array: &'a ArrayD<f64>,
    expected: &str,
) -> Check<(ArrayView3<'a, f64>, bool)> {
    let flat = array.ndim() == 2;
    let view = if flat { array.view().insert_axis(Axis(2)) } else { array.view() };
    let view = view.into_dimensionality::<Ix3>().map_err(|_| {
        let shape = array.shape();
        Problem::new(format!("array '{name}' has shape {shape:?}, expected {expected}"))
    })?;
    Ok((view, flat))
}
