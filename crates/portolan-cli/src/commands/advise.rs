//! `portolan advise`: where new sensors would help most.

mod trial;

use std::path::Path;

use ndarray::Array2;
use portolan::advise::{Advice, Process, advise, mean_variance};
use portolan::estimate::method;
use portolan::{Context, Estimate, Grid, RadioMap, Readings};
use portolan_io::picture::{ColourMap, Figure, HeatPanel, Key, Panel, Sensor};
use portolan_io::{check_output, write_bytes};
use serde_json::{Value, json};

use super::{load_map, load_readings, options_for, timed_estimate};
use crate::args::{AdviseArgs, RunArgs};
use crate::failure::Failure;
use crate::output::{emit, emit_json, say, table, warn};
use crate::watch::{check_interrupt, set_threads, watched};
use trial::{Step, trial};

pub fn run(args: &AdviseArgs) -> Result<(), Failure> {
    set_threads(args.run.threads)?;
    check_request(args)?;
    let mut files: Vec<&Path> = vec![&args.readings];
    files.extend(args.truth.as_deref());
    let options = options_for(&files, &args.read.options())?;
    let readings = load_readings(&args.readings, &options[0])?;
    let truth = match &args.truth {
        Some(path) => Some(load_truth(path, &options[1], &readings)?),
        None => None,
    };
    let adviser = Adviser { args, truth: truth.as_ref() };
    let about = |failure: Failure| failure.about(&args.readings);
    let estimate = adviser.estimate(&readings).map_err(about)?;
    let advice = adviser.places(&readings, &estimate, args.count).map_err(about)?;
    warn(&estimate.notes);
    let steps = match (&truth, args.budget) {
        (Some(truth), Some(budget)) => {
            trial(&adviser, &readings, &estimate, truth, budget).map_err(about)?
        }
        _ => Vec::new(),
    };
    check_interrupt()?;
    if let Some(output) = &args.output {
        write_bytes(output, csv(&advice).as_bytes(), args.force)?;
        say(&format!("{}: {} places", output.display(), advice.len()));
    }
    if let Some(output) = &args.plot {
        draw(output, args.force, &readings, &estimate.map, &advice)?;
    }
    let origin = args.read.origin.unwrap_or((0.0, 0.0));
    report(args.json, &advice, &steps, readings.grid(), origin)
}

/// What can be refused before any file is read.
fn check_request(args: &AdviseArgs) -> Result<(), Failure> {
    for (path, extension) in [(&args.output, "csv"), (&args.plot, "png")] {
        let Some(path) = path else { continue };
        if !path.extension().is_some_and(|e| e.eq_ignore_ascii_case(extension)) {
            let path = path.display();
            return Err(Failure::input(format!("{path}: expected a .{extension} name")));
        }
        check_output(path, args.force)?;
    }
    for (option, value) in [("--count", Some(args.count)), ("--budget", args.budget)] {
        if value == Some(0) {
            return Err(Failure::input(format!("{option} 0: it takes 1 or more")));
        }
    }
    let method = method(&args.method)?;
    method.build(args.settings.clone())?;
    if method.gives_spread { Ok(()) } else { Err(no_spread(&args.method)) }
}

fn no_spread(method: &str) -> Failure {
    Failure::input(format!(
        "--method {method}: its map has no spread, and advice needs one; choose kriging or field"
    ))
}

/// The truth, which must be of the readings' size.
fn load_truth(
    path: &Path,
    options: &portolan_io::ReadOptions,
    readings: &Readings,
) -> Result<RadioMap, Failure> {
    let truth = load_map(path, options)?;
    let shape = |grid: Grid, bands: usize| [grid.rows(), grid.cols(), bands];
    let found = shape(truth.grid(), truth.bands());
    let expected = shape(readings.grid(), readings.bands());
    if found != expected {
        return Err(Failure::input(format!(
            "{}: has shape {found:?}, the readings belong to {expected:?} (rows, cols, bands)",
            path.display()
        )));
    }
    Ok(truth)
}

/// A method and what it may be told about the area.
struct Adviser<'a> {
    args: &'a AdviseArgs,
    truth: Option<&'a RadioMap>,
}

impl Adviser<'_> {
    /// The estimate, its spread unknown where the truth is.
    fn estimate(&self, readings: &Readings) -> Result<Estimate, Failure> {
        let AdviseArgs { method, settings, run: RunArgs { emitters, seed, .. }, .. } = self.args;
        let context = Context { emitters: *emitters, seed: *seed, truth: self.truth, start: None };
        let (mut estimate, _) = timed_estimate(method, settings.clone(), readings, &context)?;
        let mut spread = estimate.map.spread_db().ok_or_else(|| no_spread(method))?.clone();
        if let Some(truth) = self.truth {
            for band in 0..truth.bands() {
                let unknown = truth.band(band).mapv(f64::is_nan);
                let spread = spread.index_axis_mut(ndarray::Axis(2), band);
                ndarray::Zip::from(spread).and(&unknown).for_each(|s, &unknown| {
                    if unknown {
                        *s = f64::NAN;
                    }
                });
            }
            estimate.map = estimate.map.with_spread_db(Some(spread))?;
        }
        Ok(estimate)
    }

    fn places(
        &self,
        readings: &Readings,
        estimate: &Estimate,
        count: usize,
    ) -> Result<Vec<Advice>, Failure> {
        let process = Process::from_fitted(&estimate.fitted).ok_or_else(|| {
            Failure::Run("the method has fitted no decorrelation distance".into())
        })?;
        Ok(watched("advising", |progress| {
            advise(readings, &estimate.map, process, count, progress)
        })?)
    }
}

fn csv(advice: &[Advice]) -> String {
    let lines = advice.iter().map(|a| format!("{},{}\n", a.cell.row, a.cell.col));
    std::iter::once("row,col\n".to_owned()).chain(lines).collect()
}

/// The spread over all bands with the sensors, and crosses where new ones belong.
fn draw(
    output: &Path,
    force: bool,
    readings: &Readings,
    map: &RadioMap,
    advice: &[Advice],
) -> Result<(), Failure> {
    let grid = map.grid();
    let field = Array2::from_shape_vec((grid.rows(), grid.cols()), mean_variance(map)?)
        .map_err(|error| Failure::Run(error.to_string()))?
        .mapv(f64::sqrt);
    let highest = field.iter().copied().fold(1e-3, f64::max);
    let mut panel = HeatPanel::new("spread over all bands", field, grid.cell_m());
    panel.colours = ColourMap::Spread;
    // From zero, so that dark always means certain.
    panel.limits = (0.0, highest);
    panel.bar = Some("std. dev. [dB]".to_owned());
    panel.sensors = readings.cells().iter().map(|&cell| Sensor { cell, value: None }).collect();
    panel.emitters = advice.iter().map(|a| [a.cell.row as f64, a.cell.col as f64]).collect();
    let figure = Figure {
        heading: "Where new sensors help most".to_owned(),
        note: format!("crosses: the {} places advised", advice.len()),
        rows: vec![vec![Panel::Heat(panel)]],
        keys: vec![Key::Sensors(readings.sensors())],
    };
    let picture = figure.draw();
    write_bytes(output, &picture.png(), force)?;
    say(&format!("{}: {} x {} pixels", output.display(), picture.width(), picture.height()));
    Ok(())
}

fn report(
    as_json: bool,
    advice: &[Advice],
    steps: &[Step],
    grid: Grid,
    (x, y): (f64, f64),
) -> Result<(), Failure> {
    let metres =
        |a: &Advice| (x + grid.cell_m() * a.cell.row as f64, y + grid.cell_m() * a.cell.col as f64);
    if as_json {
        let places = advice.iter().enumerate().map(|(i, a)| {
            let (x_m, y_m) = metres(a);
            json!({
                "rank": i + 1, "row": a.cell.row, "col": a.cell.col, "x_m": x_m, "y_m": y_m,
                "reduction_percent": 100.0 * a.share, "reduction_db2": a.reduction_db2,
            })
        });
        let places = Value::Array(places.collect());
        if steps.is_empty() {
            return emit_json(&places);
        }
        let steps: Vec<Value> = steps.iter().map(Step::json).collect();
        return emit_json(&json!({ "places": places, "budget": steps }));
    }
    let rows: Vec<Vec<String>> = advice
        .iter()
        .enumerate()
        .map(|(i, a)| {
            let (x_m, y_m) = metres(a);
            let cell = [(i + 1).to_string(), a.cell.row.to_string(), a.cell.col.to_string()];
            let figures =
                [format!("{x_m:.1}"), format!("{y_m:.1}"), format!("{:.2}", 100.0 * a.share)];
            cell.into_iter().chain(figures).collect()
        })
        .collect();
    emit(&table(&["rank", "row", "col", "x_m", "y_m", "variance removed %"], &rows))?;
    if steps.is_empty() {
        return Ok(());
    }
    let rows: Vec<Vec<String>> = steps.iter().map(Step::row).collect();
    emit(&format!("\n{}", table(&["sensors", "advised rmse dB", "random rmse dB"], &rows)))
}
