//! `portolan estimate`: the whole map from readings.

use portolan::{Context, Estimate};
use portolan_io::{WriteOptions, write_map};
use serde_json::{Map, Value, json};

use super::{Seconds, check_target, load_readings, timed_estimate};
use crate::args::EstimateArgs;
use crate::failure::Failure;
use crate::output::{emit_json, say, warn};
use crate::watch::{check_interrupt, set_threads};

pub fn run(args: &EstimateArgs) -> Result<(), Failure> {
    set_threads(args.threads)?;
    check_target(&args.output, args.force)?;
    // A wrong method or option is known before a large file is read.
    portolan::estimate::build(&args.method, args.settings.clone())?;
    let readings = load_readings(&args.readings, &args.read.options())?;
    let context = Context { emitters: args.emitters, seed: args.seed };
    let (estimate, seconds) =
        timed_estimate(&args.method, args.settings.clone(), &readings, &context)
            .map_err(|failure| failure.about(&args.readings))?;
    check_interrupt()?;
    let options = WriteOptions { force: args.force, ..WriteOptions::default() };
    write_map(&args.output, &estimate.map, &options)?;
    warn(&estimate.notes);
    if args.json {
        return emit_json(&report(args, &estimate, seconds));
    }
    let fitted: Vec<String> =
        estimate.fitted.iter().map(|(name, value)| format!(", {name} {value:.4}")).collect();
    say(&format!(
        "{}: {} from {} sensors in {:.2} s{}",
        args.output.display(),
        args.method,
        readings.sensors(),
        seconds.total,
        fitted.concat()
    ));
    Ok(())
}

fn report(args: &EstimateArgs, estimate: &Estimate, seconds: Seconds) -> Value {
    let emitters: Vec<Value> = estimate
        .map
        .emitters()
        .iter()
        .map(|[row, col]| json!({ "row": row, "col": col }))
        .collect();
    let fitted: Map<String, Value> =
        estimate.fitted.iter().map(|(name, value)| (name.to_string(), json!(value))).collect();
    json!({
        "method": args.method,
        "output": args.output,
        "seconds": seconds.fit,
        "total_seconds": seconds.total,
        "iterations": estimate.iterations,
        "loss": estimate.loss,
        "emitters": emitters,
        "fitted": fitted,
        "notes": estimate.notes,
    })
}
