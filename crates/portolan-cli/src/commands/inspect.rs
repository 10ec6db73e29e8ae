//! `portolan inspect`: what is in a file.

use portolan_io::{FileKind, FileSummary, inspect};
use serde_json::{Value, json};

use super::warn_about;
use crate::args::InspectArgs;
use crate::failure::Failure;
use crate::output::{emit, emit_json};

pub fn run(args: &InspectArgs) -> Result<(), Failure> {
    let summary = inspect(&args.file, &args.read.options())?;
    warn_about(&args.file, &summary.warnings);
    if args.json { emit_json(&as_json(&summary)) } else { emit(&summary.to_string()) }
}

fn as_json(summary: &FileSummary) -> Value {
    let arrays: Vec<Value> = summary
        .arrays
        .iter()
        .map(|array| json!({ "name": array.name, "shape": array.shape, "type": array.element }))
        .collect();
    let quantiser = summary
        .quantiser
        .as_ref()
        .map(|q| json!({ "levels": q.levels, "sigma": q.sigma, "offset": q.offset }));
    json!({
        "format": summary.format.to_string(),
        "kind": match summary.kind {
            FileKind::Map => "map",
            FileKind::Readings => "readings",
            FileKind::Model => "model",
            FileKind::Arrays => "arrays",
        },
        "rows": summary.rows,
        "cols": summary.cols,
        "cell_m": summary.cell_m,
        "origin_m": summary.origin_m,
        "region_m": summary.region_m,
        "crs": summary.crs,
        "unit": summary.unit,
        "offset": summary.offset,
        "not_heard": summary.not_heard,
        "method": summary.method,
        "bands": summary.bands,
        "freq_hz": summary.freq_hz,
        "labels": summary.labels,
        "range": summary.range.map(|(low, high)| [low, high]),
        "gaps": summary.gaps,
        "entries": summary.entries,
        "sensors": summary.sensors,
        "quantiser": quantiser,
        "factors": summary.factors,
        "emitters": summary.emitters,
        "has_spread": summary.has_spread,
        "arrays": arrays,
    })
}
