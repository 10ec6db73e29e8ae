//! `portolan compare`: several methods on the same readings.

use portolan::score::{coverage_unmeasured, score};
use portolan::{Context, estimate};
use serde_json::{Value, json};

use super::score::{as_json, check_offset};
use super::{load_map, load_readings, options_for, timed_estimate};
use crate::args::CompareArgs;
use crate::failure::Failure;
use crate::output::{emit, emit_json, figure, table, warn};
use crate::watch::set_threads;

pub fn run(args: &CompareArgs) -> Result<(), Failure> {
    set_threads(args.run.threads)?;
    check_offset(args.offset)?;
    let methods = args.methods.iter().map(|m| parse_method(m)).collect::<Result<Vec<_>, _>>()?;
    for (name, settings) in &methods {
        estimate::build(name, settings.clone())?;
    }
    let options = options_for(&[&args.readings, &args.truth], &args.read.options())?;
    let readings = load_readings(&args.readings, &options[0])?;
    let truth = load_map(&args.truth, &options[1])?;
    let context = Context {
        emitters: args.run.emitters,
        seed: args.run.seed,
        truth: Some(&truth),
        start: None,
    };
    let (mut rows, mut objects) = (Vec::new(), Vec::new());
    for ((name, settings), label) in methods.iter().zip(&args.methods) {
        let (estimate, seconds) = timed_estimate(name, settings.clone(), &readings, &context)
            .map_err(|failure| failure.about(&args.readings))?;
        warn(&estimate.notes);
        let score = score(&estimate.map, &truth, args.offset)
            .map_err(|error| Failure::from(error).about(&args.truth))?;
        let unmeasured = coverage_unmeasured(&estimate.map, &truth, score.offset, readings.cells());
        rows.push(vec![
            label.clone(),
            figure(score.ssim, 4),
            figure(score.ssim_strict, 4),
            format!("{:.3}", score.rmse_db),
            figure(score.coverage_90.map(|c| 100.0 * c), 1),
            figure(unmeasured.map(|c| 100.0 * c), 1),
            format!("{:.3}", seconds.total),
        ]);
        let mut object = as_json(&score);
        object["method"] = json!(label);
        object["coverage_90_unmeasured"] = json!(unmeasured);
        object["seconds"] = json!(seconds.fit);
        object["total_seconds"] = json!(seconds.total);
        objects.push(object);
    }
    if args.json {
        return emit_json(&Value::Array(objects));
    }
    let header = ["method", "SSIM", "strict", "rmse dB", "cover %", "unmeasured %", "seconds"];
    emit(&table(&header, &rows))
}

type MethodSettings = (String, Vec<(String, String)>);

/// "name" or "name:key=value:key=value".
fn parse_method(text: &str) -> Result<MethodSettings, Failure> {
    let mut parts = text.split(':');
    let name = parts.next().unwrap_or_default().trim().to_string();
    let settings = parts
        .map(|part| {
            part.split_once('=').map(|(k, v)| (k.to_string(), v.to_string())).ok_or_else(|| {
                Failure::input(format!("--methods '{text}': expected name:key=value"))
            })
        })
        .collect::<Result<_, _>>()?;
    Ok((name, settings))
}
