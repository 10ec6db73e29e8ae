//! `portolan estimate`: the whole map from readings, fit and predict in one.

use std::time::Instant;

use portolan_io::export::{
    GridRequest, MapRequest, MapSize, check_map, check_moments, draw_map, draw_moments,
};
use portolan_io::gis::Mask;
use serde_json::json;

use super::fit::{emitters_table, fitted, headline, report};
use super::moments::{at_moment, one, series};
use super::{Seconds, check_target};
use crate::args::EstimateArgs;
use crate::failure::Failure;
use crate::output::{emit, emit_json, say, warn};
use crate::watch::{check_interrupt, watched};

pub fn run(args: &EstimateArgs) -> Result<(), Failure> {
    check_target(&args.output, args.force)?;
    // Moments that cannot be read are found before the fit.
    let format = &args.fit.read.survey.moment_format();
    let moments = series(&args.moment, format)?;
    if moments.is_some() {
        check_moments(&args.output)?;
    }
    one(&args.moment, format)?;
    let (readings, model, seconds) = fitted(&args.fit, &args.output, |method, readings| {
        let size = MapSize::of_method(method, readings.grid_or_default()?, readings);
        // Polygons that cannot be read are found before the fit.
        Mask::new(&args.mask, readings.sites(), readings.crs())?;
        let note = check_map(&size, readings.crs(), (&args.output, args.force), args.f64)?;
        warn(&Vec::from_iter(note));
        Ok(())
    })?;
    check_interrupt()?;
    let model = match moments {
        Some(_) => model,
        None => at_moment(model, &args.moment, format)?,
    };
    let start = Instant::now();
    let floor = args.floor.zip(args.fit.read.survey.floor_height);
    let z_m = args.z.or(floor.map(|(floor, height)| floor * height));
    let grid = GridRequest { z_m, ..GridRequest::default() }.on(&model)?;
    if model.grid().is_none() {
        let (rows, cols, origin) = (grid.rows(), grid.cols(), grid.origin());
        let (cell, x, y) = (grid.cell_m(), origin.x_m, origin.y_m);
        warn(&[format!(
            "the grid is not given: {rows} x {cols} cells of {cell} m from x {x}, y {y}"
        )]);
    }
    let bands: Vec<usize> = (0..model.bands()).collect();
    let mask = Mask::new(&args.mask, model.sites(), model.crs())?;
    let request = MapRequest {
        model: &model,
        grid,
        bands: &bands,
        mask: &mask,
        output: &args.output,
        f64: args.f64,
        force: args.force,
    };
    let notes = watched("drawing", |progress| match &moments {
        Some(moments) => draw_moments(&request, moments, progress),
        None => draw_map(&request, progress),
    })?;
    let predict_seconds = start.elapsed().as_secs_f64();
    let seconds = Seconds { total: seconds.total + predict_seconds, ..seconds };
    warn(&model.report().notes);
    warn(&notes);
    if args.json {
        let mut report = report(&args.fit, &model, seconds);
        report["output"] = json!(args.output);
        report["predict_seconds"] = json!(predict_seconds);
        report["grid"] = json!({
            "rows": grid.rows(), "cols": grid.cols(), "cell_m": grid.cell_m(),
            "origin_m": [grid.origin().x_m, grid.origin().y_m], "z_m": grid.origin().z_m,
        });
        for note in notes {
            report["notes"].as_array_mut().into_iter().for_each(|all| all.push(json!(note)));
        }
        return emit_json(&report);
    }
    say(&headline(&args.output, &args.fit, &readings, &model, seconds));
    emitters_table(&model).map_or(Ok(()), |table| emit(&table))
}
