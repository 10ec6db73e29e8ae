//! `portolan predict`: what a model says about places, or a map of any grid.

use std::time::Instant;

use portolan::{Devices, Points, Prediction};
use portolan_io::export::{
    GridRequest, MapRequest, MapSize, Needs, check_map, draw_map, draw_moments,
};
use portolan_io::gis::Mask;
use portolan_io::{
    MomentFormat, PlaceTable, check_output, read_model, read_places, write_predictions,
};
use serde_json::json;

use super::moments::{ahead_note, at_moment, series};
use super::{check_apart, check_target, named_bands};
use crate::args::PredictArgs;
use crate::failure::Failure;
use crate::output::{emit_json, say, warn};
use crate::watch::{check_interrupt, watched};

pub fn run(args: &PredictArgs) -> Result<(), Failure> {
    match &args.places {
        Some(places) => {
            if args.output.extension().is_none_or(|e| !e.eq_ignore_ascii_case("csv")) {
                let name = args.output.display();
                return Err(Failure::input(format!("{name}: expected a .csv name")));
            }
            check_output(&args.output, args.force)?;
            check_apart(&args.output, &[&args.model, places])?;
        }
        None => {
            check_target(&args.output, args.force)?;
            check_apart(&args.output, &[&args.model])?;
        }
    }
    let format = &MomentFormat { clock: args.utc_offset.clone(), unit_s: args.time_unit };
    let moments = series(&args.moment, format)?;
    let model = match (&moments, &args.places) {
        (Some(_), Some(_)) => {
            return Err(Failure::input(
                "--at FROM/TO/STEP draws maps: give places their moments in a column of times",
            ));
        }
        (Some(_), None) => read_model(&args.model)?,
        (None, _) => at_moment(read_model(&args.model)?, &args.moment, format)?,
    };
    if let Some(moments) = &moments {
        warn(&Vec::from_iter(moments.last().and_then(|last| ahead_note(&model, *last))));
    }
    let bands = named_bands(args.bands.as_deref(), model.labels(), model.bands(), "model")?;
    let start = Instant::now();
    let (asked, notes) = match &args.places {
        Some(path) => {
            let places = read_places(path, model.crs(), model.height_m(), args.floor_height)?;
            let spread = model.gives_spread();
            let needs = Needs::of_places(places.sites.len(), bands.len(), spread);
            warn(&Vec::from_iter(needs.check(&args.output)?));
            let wrong = |why: String| Failure::input(format!("{}: {why}", path.display()));
            let points = match &args.moment.at {
                // The model is of that moment.
                Some(_) => Points::from(places.sites.clone()),
                None => places.points(&model, format).map_err(wrong)?,
            };
            let last = points.time_span().and_then(|(_, last)| ahead_note(&model, last));
            let mut notes = Vec::from_iter(last);
            let found =
                watched("predicting", |progress| model.predict_points(&points, &bands, progress))?;
            check_interrupt()?;
            let found = match model.devices() {
                Some(devices) => {
                    let (found, unknown) = read_by(found, devices, &places);
                    notes.extend(unknown);
                    found
                }
                None => found,
            };
            let about = (model.labels(), &bands[..], model.scale());
            write_predictions(&args.output, &places, &found, about, args.force)?;
            (format!("{} places", places.sites.len()), notes)
        }
        None => {
            let request = GridRequest {
                grid: args.grid,
                cell_m: args.cell_m,
                origin: args.origin,
                region: args.region,
                z_m: args
                    .z
                    .or(args.floor.zip(args.floor_height).map(|(floor, height)| floor * height)),
            };
            let grid = request.on(&model)?;
            let (output, force) = (&args.output, args.force);
            let size = MapSize::of_model(&model, grid, bands.len());
            let note = check_map(&size, model.crs(), (output, force), args.f64)?;
            warn(&Vec::from_iter(note));
            let mask = Mask::new(&args.mask, model.sites(), model.crs())?;
            let (model, bands, mask, f64) = (&model, &bands[..], &mask, args.f64);
            let request = MapRequest { model, grid, bands, mask, output, f64, force };
            let notes = watched("drawing", |progress| match &moments {
                Some(moments) => draw_moments(&request, moments, progress),
                None => draw_map(&request, progress),
            })?;
            (format!("{} x {} cells of {} m", grid.rows(), grid.cols(), grid.cell_m()), notes)
        }
    };
    let seconds = start.elapsed().as_secs_f64();
    warn(&notes);
    if args.json {
        return emit_json(&json!({
            "output": args.output, "predict_seconds": seconds, "bands": bands.len(),
            "notes": notes,
        }));
    }
    say(&format!("{}: {asked}, {} band(s) in {seconds:.2} s", args.output.display(), bands.len()));
    Ok(())
}

/// What the devices that the places name would read there.
fn read_by(found: Prediction, devices: &Devices, places: &PlaceTable) -> (Prediction, Vec<String>) {
    let of = places.devices(devices);
    let unknown = of.iter().filter(|device| device.is_none()).count();
    let spread = devices.spread_db;
    let note = format!(
        "{unknown} of {} places name no device of the survey: predicted for its average reading, \
         and a reading may be {spread:.1} dB off with its device",
        of.len()
    );
    (found.read_by(devices, &of), (unknown > 0).then_some(note).into_iter().collect())
}
