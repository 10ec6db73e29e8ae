//! `portolan changes`: what new readings show to have changed since a model's own.

use portolan::estimate::{Change, ChangeKind};
use portolan::{Model, Readings};
use portolan_io::{ReadOptions, read_model};
use serde_json::json;

use super::load_readings;
use super::moments::new_times_note;
use crate::args::ChangesArgs;
use crate::failure::Failure;
use crate::output::{emit, emit_json, figure, say, table, warn};
use crate::watch::watched;

pub fn run(args: &ChangesArgs) -> Result<(), Failure> {
    let model = read_model(&args.model)?;
    let given = args.read.options();
    let options = ReadOptions { crs: given.crs.or(model.crs()), further: true, ..given };
    let readings = load_readings(&args.readings, &options)?;
    warn(&Vec::from_iter(new_times_note(&model, &readings)));
    let found = watched("comparing", |progress| model.changes(&readings, args.rate, progress))
        .map_err(|error| Failure::from(error).about(&args.readings))?;
    let changed = found.iter().filter(|change| change.kind != ChangeKind::Same).count();
    let gone = found.iter().filter(|change| change.kind == ChangeKind::Gone).count();
    if 2 * gone > found.len() {
        warn(&[format!(
            "{gone} of {} bands are gone: is that all that was listened for? Mark what was not heard \
             by --not-heard",
            found.len()
        )]);
    }
    if args.json {
        let bands: Vec<_> = found
            .iter()
            .map(|change| {
                json!({
                    "band": label(change, &model, &readings), "readings": change.readings,
                    "level_db": known(change.level_db), "level_z": known(change.level_z),
                    "shape_p": known(change.shape_p), "kind": change.kind.name(),
                })
            })
            .collect();
        return emit_json(&json!({
            "model": args.model, "readings": args.readings, "rate": args.rate,
            "changed": changed, "bands": bands,
        }));
    }
    say(&format!(
        "{changed} of {} bands changed; {:.0} % of these may be chance",
        found.len(),
        100.0 * args.rate
    ));
    let shown = |change: &&Change| args.all || change.kind != ChangeKind::Same;
    let row = |change: &Change| {
        vec![
            label(change, &model, &readings),
            change.kind.name().to_string(),
            change.readings.to_string(),
            figure(known(change.level_db), 1),
            figure(known(change.level_z), 1),
            figure(known(change.shape_p), 4),
        ]
    };
    let rows: Vec<_> = found.iter().filter(shown).map(row).collect();
    let header = ["band", "kind", "readings", "level_db", "level_z", "shape_p"];
    match rows.is_empty() {
        true => Ok(()),
        false => emit(&table(&header, &rows)),
    }
}

fn known(value: f64) -> Option<f64> {
    Some(value).filter(|value| !value.is_nan())
}

/// The name of a band: of a new one among the readings', else among the model's.
fn label(change: &Change, model: &Model, readings: &Readings) -> String {
    match change.kind {
        ChangeKind::New => readings.labels().label(change.band),
        _ => model.labels().label(change.band),
    }
}
