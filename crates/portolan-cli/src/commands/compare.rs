//! `portolan compare`: several methods on the same readings.

use portolan::Context;
use portolan::score::{coverage_unmeasured, score};
use serde_json::{Value, json};

use super::score::{as_json, check_offset};
use super::{MethodCall, load_map, load_readings, options_for, timed_estimate};
use crate::args::CompareArgs;
use crate::failure::Failure;
use crate::output::{emit, emit_json, figure, say, table, warn};

pub fn run(args: &CompareArgs) -> Result<(), Failure> {
    check_offset(args.offset)?;
    let calls = args.methods.iter().map(|m| MethodCall::parse(m)).collect::<Result<Vec<_>, _>>()?;
    let options = options_for(&[&args.readings, &args.truth], &args.read.options())?;
    let readings = load_readings(&args.readings, &options[0])?;
    let truth = load_map(&args.truth, &options[1])?;
    // Maps are compared on the truth's grid.
    let readings = readings
        .with_grid(Some(truth.grid()))
        .map_err(|error| Failure::from(error).about(&args.readings))?;
    let measured = readings.cells(truth.grid())?;
    let context = Context {
        emitters: args.run.emitters,
        seed: args.run.seed,
        truth: Some(&truth),
        ..Context::default()
    };
    let (mut rows, mut objects, mut worked) = (Vec::new(), Vec::new(), 0);
    for call in &calls {
        let (model, map, seconds) = match timed_estimate(call, &readings, &context) {
            Ok(found) => found,
            Err(Failure::Input(message) | Failure::Run(message)) => {
                say(&format!("portolan: note: {} failed: {message}", call.label));
                let mut row = vec![call.label.clone()];
                row.extend(vec!["-".to_string(); 6]);
                rows.push(row);
                objects.push(json!({ "method": call.label, "failed": message }));
                continue;
            }
            Err(other) => return Err(other),
        };
        worked += 1;
        warn(&model.report().notes);
        let score = score(&map, &truth, args.offset)
            .map_err(|error| Failure::from(error).about(&args.truth))?;
        let unmeasured = coverage_unmeasured(&map, &truth, score.offset, &measured);
        rows.push(vec![
            call.label.clone(),
            figure(score.ssim, 4),
            figure(score.ssim_strict, 4),
            format!("{:.3}", score.rmse_db),
            figure(score.coverage_90.map(|c| 100.0 * c), 1),
            figure(unmeasured.map(|c| 100.0 * c), 1),
            format!("{:.3}", seconds.total),
        ]);
        let mut object = as_json(&score);
        object["method"] = json!(call.label);
        object["coverage_90_unmeasured"] = json!(unmeasured);
        object["seconds"] = json!(seconds.fit);
        object["total_seconds"] = json!(seconds.total);
        objects.push(object);
    }
    if args.json {
        emit_json(&Value::Array(objects))?;
    } else {
        let header = ["method", "SSIM", "strict", "rmse dB", "cover %", "unmeasured %", "seconds"];
        emit(&table(&header, &rows))?;
    }
    if worked == 0 { Err(Failure::Run("no method worked".into())) } else { Ok(()) }
}
