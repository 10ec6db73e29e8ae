//! `portolan advise`: places where new sensors reduce the variance most.

mod trial;

use std::path::Path;

use portolan::advise::{Advice, Process, advise};
use portolan::estimate::{Capability, method};
use portolan::{Context, Grid, Model, RadioMap, Readings};
use portolan_io::json::{advice_csv, advice_json};
use portolan_io::picture::advice_figure;
use portolan_io::{FileKind, check_output, inspect, read_model, write_bytes};
use serde_json::{Value, json};

use super::picture::{draw, kind_of};
use super::{MethodCall, check_apart, load_map, load_readings, options_for, timed_estimate};
use crate::args::{AdviseArgs, RunArgs};
use crate::failure::Failure;
use crate::output::{emit, emit_json, say, table, warn};
use crate::watch::{check_interrupt, watched};
use trial::{Step, trial};

pub fn run(args: &AdviseArgs) -> Result<(), Failure> {
    check_request(args)?;
    let mut files: Vec<&Path> = vec![&args.readings];
    files.extend(args.truth.as_deref());
    for output in [&args.output, &args.plot].into_iter().flatten() {
        check_apart(output, &files)?;
    }
    let options = options_for(&files, &args.read.options())?;
    let truth = args.truth.as_ref().map(|path| load_map(path, &options[1])).transpose()?;
    let adviser = Adviser { args, truth: truth.as_ref() };
    let about = |failure: Failure| failure.about(&args.readings);
    let is_model =
        inspect(&args.readings, &options[0]).is_ok_and(|found| found.kind == FileKind::Model);
    let (estimate, steps) = if is_model {
        if args.budget.is_some() {
            return Err(Failure::input("--budget adds readings: give readings instead of a model"));
        }
        let model = read_model(&args.readings)?;
        let map = watched("drawing", |progress| model.default_map(progress))?;
        (adviser.seen(model, map).map_err(about)?, Vec::new())
    } else {
        let readings = load_readings(&args.readings, &options[0])?;
        let readings = match &truth {
            Some(truth) => readings.with_grid(Some(truth.grid())).map_err(|e| about(e.into()))?,
            None => readings,
        };
        let estimate = adviser.estimate(&readings).map_err(about)?;
        let steps = match (&truth, args.budget) {
            (Some(truth), Some(budget)) => {
                trial(&adviser, &readings, &estimate, truth, budget).map_err(about)?
            }
            _ => Vec::new(),
        };
        (estimate, steps)
    };
    let advice = adviser.places(&estimate, args.count).map_err(about)?;
    warn(&estimate.model.report().notes);
    check_interrupt()?;
    let grid = estimate.map.grid();
    if let Some(output) = &args.output {
        write_bytes(output, advice_csv(&advice, grid).as_bytes(), args.force)?;
        say(&format!("{}: {} places", output.display(), advice.len()));
    }
    if let Some(output) = &args.plot {
        let scene = advice_figure(estimate.model.sites(), &estimate.map, &advice)?;
        draw(output, &scene, args.force)?;
    }
    report(args.json, &advice, &steps, grid)
}

/// A model and its map, the spread unknown where it must not count.
#[derive(Debug)]
pub struct ModelAndMap {
    pub model: Model,
    pub map: RadioMap,
}

/// What can be refused before any file is read.
fn check_request(args: &AdviseArgs) -> Result<(), Failure> {
    if let Some(path) = &args.output {
        if !path.extension().is_some_and(|e| e.eq_ignore_ascii_case("csv")) {
            return Err(Failure::input(format!("{}: expected a .csv name", path.display())));
        }
        check_output(path, args.force)?;
    }
    args.plot.as_ref().map(|plot| kind_of(plot, args.force)).transpose()?;
    for (option, value) in [("--count", Some(args.count)), ("--budget", args.budget)] {
        if value == Some(0) {
            return Err(Failure::input(format!("{option} 0: it takes 1 or more")));
        }
    }
    let method = method(&args.method)?;
    method.build(args.settings.clone())?;
    if method.has(Capability::Spread) { Ok(()) } else { Err(no_spread(&args.method)) }
}

fn no_spread(method: &str) -> Failure {
    Failure::input(format!(
        "--method {method}: its map has no spread, and advice needs one; choose kriging or field"
    ))
}

/// A method and what it may be told about the area.
struct Adviser<'a> {
    args: &'a AdviseArgs,
    truth: Option<&'a RadioMap>,
}

impl Adviser<'_> {
    fn estimate(&self, readings: &Readings) -> Result<ModelAndMap, Failure> {
        let AdviseArgs { method, settings, run: RunArgs { emitters, seed, .. }, .. } = self.args;
        let context =
            Context { emitters: *emitters, seed: *seed, truth: self.truth, ..Context::default() };
        let call = MethodCall::new(method.clone(), method.clone(), settings.clone())?;
        let (model, map, _) = timed_estimate(&call, readings, &context)?;
        self.seen(model, map)
    }

    /// The estimate, its spread unknown where the truth is.
    fn seen(&self, model: Model, map: RadioMap) -> Result<ModelAndMap, Failure> {
        let Some(mut spread) = map.spread_db().cloned() else {
            return Err(no_spread(&model.report().method));
        };
        let Some(truth) = self.truth else { return Ok(ModelAndMap { model, map }) };
        if !truth.grid().coincides(&map.grid()) || truth.bands() != map.bands() {
            return Err(Failure::input("the truth has another grid or other bands than the map"));
        }
        for band in 0..truth.bands() {
            let unknown = truth.band(band).mapv(f64::is_nan);
            let spread = spread.index_axis_mut(ndarray::Axis(2), band);
            ndarray::Zip::from(spread).and(&unknown).for_each(|s, &unknown| {
                if unknown {
                    *s = f64::NAN;
                }
            });
        }
        Ok(ModelAndMap { map: map.with_spread_db(Some(spread))?, model })
    }

    fn places(&self, estimate: &ModelAndMap, count: usize) -> Result<Vec<Advice>, Failure> {
        let process = Process::from_report(estimate.model.report()).ok_or_else(|| {
            Failure::Run("the method has fitted no decorrelation distance".into())
        })?;
        let (sensors, leave_out) = (estimate.model.sites(), &self.args.leave_out);
        Ok(watched("advising", |progress| {
            advise(sensors, &estimate.map, leave_out, process, count, progress)
        })?)
    }
}

fn report(as_json: bool, advice: &[Advice], steps: &[Step], grid: Grid) -> Result<(), Failure> {
    let metres = |a: &Advice| (grid.site(a.cell).x_m, grid.site(a.cell).y_m);
    if as_json {
        let places = advice_json(advice, grid);
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
