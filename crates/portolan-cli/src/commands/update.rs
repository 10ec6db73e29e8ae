//! `portolan update`: further readings for a model, under the fitted law.

use std::time::Instant;

use portolan_io::{ReadOptions, check_output, read_model, write_model};
use serde_json::json;

use super::moments::new_times_note;
use super::{check_apart, load_readings};
use crate::args::UpdateArgs;
use crate::failure::Failure;
use crate::output::{emit_json, say, warn};

pub fn run(args: &UpdateArgs) -> Result<(), Failure> {
    check_output(&args.output, args.force)?;
    // The model may be replaced, the readings may not.
    check_apart(&args.output, &[&args.readings])?;
    let model = read_model(&args.model)?;
    let given = args.read.options();
    let options = ReadOptions { crs: given.crs.or(model.crs()), further: true, ..given };
    let readings = load_readings(&args.readings, &options)?;
    warn(&Vec::from_iter(
        new_times_note(&model, &readings).filter(|_| readings.points().time_span().is_some()),
    ));
    let start = Instant::now();
    let updated =
        model.updated(&readings).map_err(|error| Failure::from(error).about(&args.readings))?;
    let seconds = start.elapsed().as_secs_f64();
    let new = updated.report().notes.iter().skip(model.report().notes.len());
    warn(&new.cloned().collect::<Vec<String>>());
    write_model(&args.output, &updated, args.force)?;
    let (added, all) = (readings.sensors(), updated.sites().len());
    if args.json {
        return emit_json(&json!({
            "model": args.model, "readings": args.readings, "output": args.output,
            "added": added, "sensors": all, "seconds": seconds, "notes": updated.report().notes,
        }));
    }
    let output = args.output.display();
    say(&format!("{output}: {added} readings added, {all} in all, in {seconds:.2} s"));
    Ok(())
}
