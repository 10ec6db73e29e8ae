//! Methods over many simulated maps: the library that the command calls too.

use portolan::Emitters;
use portolan::quantiser::AUTHORS_EDGES;
use portolan::sense::{Quantising, Sensing};
use portolan_study::{Judged, MethodCall, Simulated};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::errors;
use crate::maps::{layout, scenario};
use crate::model::GridParts;
use crate::watched::watched;

/// Label, name and options of a method.
type Call = (String, String, Vec<(String, String)>);

/// A row for each method; `assumed` is the number of emitters that methods are given, none where absent.
#[pyfunction]
#[pyo3(signature = (calls, parts, *, bands, emitters, shadow_db, decorrelation_m, psd, assumed, fraction,
    count, snr_db, gaps, cover, bits, sigma, maps, seed, tell = None))]
#[expect(clippy::too_many_arguments, reason = "one for each thing that a study says")]
pub fn study<'py>(
    py: Python<'py>,
    calls: Vec<Call>,
    parts: GridParts,
    bands: usize,
    emitters: usize,
    shadow_db: f64,
    decorrelation_m: f64,
    psd: &str,
    assumed: Option<usize>,
    fraction: Option<f64>,
    count: Option<usize>,
    snr_db: Option<f64>,
    gaps: f64,
    cover: f64,
    bits: Option<u32>,
    sigma: f64,
    maps: u64,
    seed: u64,
    tell: Option<&Bound<'_, PyAny>>,
) -> PyResult<Bound<'py, PyList>> {
    let calls =
        calls.into_iter().map(|(label, name, options)| MethodCall::new(label, name, options));
    let quantising = bits.map(|bits| {
        let edges = (bits == 3).then(|| AUTHORS_EDGES.to_vec());
        Quantising { bits, edges, sigma }
    });
    let layout = layout(fraction, count)?;
    let study = Simulated {
        calls: calls.collect::<Result<_, _>>().map_err(errors::input)?,
        scenario: scenario(parts, bands, emitters, shadow_db, decorrelation_m, psd, seed)?,
        sensing: Sensing { layout, snr_db, gaps, cover, quantising, seed },
        maps,
        assumed: Some(assumed.map_or(Emitters::Auto, Emitters::Count)),
        offset: None,
    };
    let judged = watched(py, tell, |progress| study.run(progress))?.map_err(errors::estimate)?;
    let rows = PyList::empty(py);
    for Judged { label, ssim, rmse_db, coverage, place_m, counted, seconds, share, .. } in judged {
        let row = PyDict::new(py);
        row.set_item("method", label)?;
        row.set_item("ssim", ssim.mean)?;
        row.set_item("ssim_se", ssim.error)?;
        row.set_item("rmse_db", rmse_db.mean)?;
        row.set_item("rmse_db_se", rmse_db.error)?;
        row.set_item("coverage_90_unmeasured", coverage)?;
        row.set_item("place_m", place_m.unwrap_or(f64::NAN))?;
        row.set_item("count_right", counted)?;
        row.set_item("share", share.unwrap_or(f64::NAN))?;
        row.set_item("seconds", seconds)?;
        rows.append(row)?;
    }
    Ok(rows)
}
