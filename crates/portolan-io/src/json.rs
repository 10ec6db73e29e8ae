//! What methods, models, advice and held-out errors are in JSON and tables: the words that the
//! command prints and the explorer's API answers.

use portolan::advise::Advice;
use portolan::estimate::{Capability, Entry, Residuals};
use portolan::{BandLabels, EmitterFinding, Grid, Model, Region, Site};
use serde_json::{Map, Value, json};

use crate::summary::{FileKind, FileSummary};
use crate::table::ColumnSummary;
use crate::table::doubts::Doubt;

/// A method of the register with its options.
pub fn method_json(method: &Entry) -> Value {
    let options: Vec<Value> = method
        .options()
        .map(|o| json!({ "name": o.name, "default": o.default, "takes": o.takes }))
        .collect();
    json!({
        "name": method.name,
        "summary": method.summary,
        "gives_spread": method.has(Capability::Spread),
        "needs_truth": method.has(Capability::Truth),
        "takes_start": method.has(Capability::Start),
        "takes_emitters": method.has(Capability::Emitters),
        "takes_transmitters": method.has(Capability::Transmitters),
        "takes_obstacles": method.has(Capability::Obstacles),
        "takes_heights": method.has(Capability::Heights),
        "takes_device": method.has(Capability::Device),
        "on_grid": method.has(Capability::Grid),
        "options": options,
    })
}

/// The result of a fit; `method` is the requested one.
pub fn model_report(model: &Model, method: &str) -> Value {
    let report = model.report();
    let emitters: Vec<Value> = model
        .emitters()
        .iter()
        .map(|e| emitter_json(&e.finding(), model.labels(), model.region(), model.grid()))
        .collect();
    let fitted: Map<String, Value> =
        report.fitted.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let candidates: Vec<Value> = report
        .candidates
        .iter()
        .map(|c| json!({ "method": c.method, "rmse_db": c.rmse_db, "weight": c.weight }))
        .collect();
    let devices: Vec<Value> = model
        .devices()
        .into_iter()
        .flat_map(|d| d.names.iter().zip(d.offset_db.iter().zip(&d.se_db)))
        .map(|(name, (offset, se))| json!({ "name": name, "offset_db": offset, "se_db": se }))
        .collect();
    let columns: Vec<Value> = report
        .columns
        .iter()
        .map(|c| {
            json!({
                "name": c.name, "coefficient": c.loss_db, "error": c.loss_se_db,
                "rmse_db": c.rmse_db, "rmse_without_db": c.rmse_without_db,
            })
        })
        .collect();
    json!({
        "method": method,
        "devices": devices,
        "columns": columns,
        "chosen": report.chosen.as_deref().unwrap_or(method),
        "candidates": candidates,
        "iterations": report.iterations,
        "loss": report.loss,
        "emitters": emitters,
        "fitted": fitted,
        "notes": report.notes,
    })
}

/// An emitter; cells only where there is a grid.
pub fn emitter_json(
    finding: &EmitterFinding,
    labels: &BandLabels,
    region: Region,
    grid: Option<Grid>,
) -> Value {
    let (se, exponent) = (finding.at_se_m, finding.exponent);
    let ranges = finding.occupancy.as_ref().map(|o| &o.ranges);
    let hertz = ranges.zip(labels.freq_hz()).map(|(ranges, hz)| {
        ranges.iter().map(|&[first, last]| [hz[first], hz[last]]).collect::<Vec<_>>()
    });
    let mut object = json!({
        "x_m": finding.at.x_m,
        "y_m": finding.at.y_m,
        "x_se_m": se.map(|se| se[0]),
        "y_se_m": se.map(|se| se[1]),
        "exponent": exponent.map(|e| e.value),
        "exponent_se": exponent.map(|e| e.se),
        "occupied": ranges,
        "occupied_hz": hertz,
        "occupancy": finding.occupancy.as_ref().map(|o| o.share),
        "power_share": finding.power_share,
        "noise": finding.is_noise(region.width_m().max(region.height_m())),
    });
    if let Some(grid) = grid {
        let [row, col] = grid.position(finding.at);
        let cells = |axis: usize| se.map(|se| se[axis] / grid.cell_m());
        object["row"] = json!(row);
        object["col"] = json!(col);
        object["row_se"] = json!(cells(0));
        object["col_se"] = json!(cells(1));
    }
    object
}

/// Places for new sensors, best first.
pub fn advice_json(advice: &[Advice], grid: Grid) -> Value {
    let places = advice.iter().enumerate().map(|(i, a)| {
        let Site { x_m, y_m, .. } = grid.site(a.cell);
        json!({
            "rank": i + 1, "row": a.cell.row, "col": a.cell.col, "x_m": x_m, "y_m": y_m,
            "reduction_percent": 100.0 * a.share, "reduction_db2": a.reduction_db2,
        })
    });
    Value::Array(places.collect())
}

/// The same as a table, which `portolan sense --cells` takes.
pub fn advice_csv(advice: &[Advice], grid: Grid) -> String {
    let line = |a: &Advice| {
        let Site { x_m, y_m, .. } = grid.site(a.cell);
        format!("{},{},{x_m},{y_m}\n", a.cell.row, a.cell.col)
    };
    std::iter::once("row,col,x_m,y_m\n".to_owned()).chain(advice.iter().map(line)).collect()
}

/// Cross-validation errors of a method, by sensor; None where it did not finish.
pub fn residuals_json(method: &str, residuals: Option<&Residuals>) -> Value {
    json!({
        "method": method,
        "rmse_db": residuals.and_then(Residuals::rmse_db),
        "mae_db": residuals.and_then(Residuals::mae_db),
        "median_abs_db": residuals.and_then(Residuals::median_abs_db),
        "coverage_90": residuals.and_then(Residuals::coverage_90),
    })
}

/// Coverage of the 90 % interval by distance to the nearest reading.
pub fn coverage_json(residuals: &Residuals, parts: usize) -> Value {
    let all = residuals.coverage_by_distance(parts);
    let each = all.iter().map(|part| {
        json!({
            "from_m": part.from_m, "to_m": part.to_m, "entries": part.entries,
            "coverage_90": part.coverage_90,
        })
    });
    Value::Array(each.collect())
}

/// What a file holds.
pub fn summary_json(summary: &FileSummary) -> Value {
    let arrays: Vec<Value> = summary
        .arrays
        .iter()
        .map(|array| json!({ "name": array.name, "shape": array.shape, "type": array.element }))
        .collect();
    let column = |c: &ColumnSummary| json!({ "name": c.name, "role": c.role, "values": c.values });
    let columns: Vec<Value> = summary.columns.iter().map(column).collect();
    let doubt = |d: &Doubt| json!({ "kind": d.kind.name(), "count": d.count, "option": d.option, "text": d.text });
    let doubts: Vec<Value> = summary.doubts.iter().map(doubt).collect();
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
        "places": summary.places,
        "quantiser": quantiser,
        "factors": summary.factors,
        "emitters": summary.emitters,
        "has_spread": summary.has_spread,
        "arrays": arrays,
        "columns": columns,
        "doubts": doubts,
        "warnings": summary.warnings,
    })
}
