//! `portolan validate`: how well methods would have predicted one's own sensors.

use std::path::Path;
use std::time::Instant;

use ndarray::Array2;
use portolan::estimate::{Residuals, Split, folds, method, methods, without};
use portolan::{Context, Grid, Readings};
use portolan_io::picture::{ColourMap, Figure, HeatPanel, Key, Panel, Sensor};
use portolan_io::{check_output, write_bytes};
use serde_json::{Value, json};

use super::{MethodCall, check_apart, load_readings, load_transmitters};
use crate::args::{SplitName, ValidateArgs};
use crate::failure::Failure;
use crate::output::{emit, emit_json, figure, say, table};
use crate::watch::{check_interrupt, set_threads, watched};

/// What a method did.
struct Row {
    label: String,
    residuals: Residuals,
    fit_seconds: f64,
    predict_seconds: f64,
    /// Why it did not finish, where it did not.
    failed: Option<String>,
}

/// Known transmitters are for some of the methods at least; the others do not look at them.
fn check_transmitters(args: &ValidateArgs, calls: &[MethodCall]) -> Result<(), Failure> {
    let takes = |name: &str| method(name).map(|m| m.takes_transmitters);
    if args.transmitters.is_none() {
        return Ok(());
    }
    for call in calls {
        if takes(&call.name)? {
            return Ok(());
        }
    }
    let given: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
    let who = methods().iter().filter(|m| m.takes_transmitters).map(|m| m.name);
    Err(Failure::input(format!(
        "--transmitters: {} make no use of them; choose from {}",
        given.join(", "),
        who.collect::<Vec<_>>().join(", ")
    )))
}

pub fn run(args: &ValidateArgs) -> Result<(), Failure> {
    set_threads(args.run.threads)?;
    let calls = args.methods.iter().map(|m| MethodCall::parse(m)).collect::<Result<Vec<_>, _>>()?;
    if let Some(plot) = &args.plot {
        if plot.extension().is_none_or(|e| !e.eq_ignore_ascii_case("png")) {
            return Err(Failure::input(format!("{}: expected a .png name", plot.display())));
        }
        check_output(plot, args.force)?;
        check_apart(plot, &[&args.readings])?;
    }
    check_transmitters(args, &calls)?;
    let readings = load_readings(&args.readings, &args.read.options())?;
    let split = match args.split {
        SplitName::Random => Split::Random,
        SplitName::Blocks => Split::Blocks,
    };
    let dealt = folds(readings.sites(), args.folds as usize, split, args.run.seed);
    if dealt.len() < 2 {
        return Err(Failure::input(format!(
            "{}: its sensors cannot be split {}",
            args.readings.display(),
            if split == Split::Blocks { "into boxes" } else { "in parts" }
        )));
    }
    let known = load_transmitters(args.transmitters.as_deref(), &readings)?;
    let context = Context {
        emitters: args.run.emitters,
        seed: args.run.seed,
        transmitters: &known,
        ..Context::default()
    };
    let mut rows = Vec::new();
    for call in &calls {
        rows.push(judge(call, &readings, &dealt, &context)?);
        check_interrupt()?;
    }
    if let Some(plot) = &args.plot {
        draw(plot, args.force, &readings, &rows)?;
    }
    report(args, &readings, dealt.len(), &rows)
}

fn judge(
    call: &MethodCall,
    readings: &Readings,
    dealt: &[Vec<usize>],
    context: &Context<'_>,
) -> Result<Row, Failure> {
    let method = call.build()?;
    let mut row = Row {
        label: call.label.clone(),
        residuals: Residuals::default(),
        fit_seconds: 0.0,
        predict_seconds: 0.0,
        failed: None,
    };
    let result = watched(&call.name, |progress| {
        for (i, fold) in dealt.iter().enumerate() {
            let share = |i: usize| i as f64 / dealt.len() as f64;
            let part = progress.part(share(i)..share(i + 1));
            let Some(rest) = without(readings, fold) else { continue };
            let start = Instant::now();
            let model = method.fit(&rest, context, &part)?;
            row.fit_seconds += start.elapsed().as_secs_f64();
            let start = Instant::now();
            let sites: Vec<_> = fold.iter().map(|&s| readings.sites()[s]).collect();
            let found = model.predict(&sites, &part.quiet())?;
            row.predict_seconds += start.elapsed().as_secs_f64();
            row.residuals.add(readings, fold, &found);
        }
        Ok::<(), portolan::EstimateError>(())
    });
    match result.map_err(Failure::from) {
        Err(Failure::Input(message) | Failure::Run(message)) => row.failed = Some(message),
        other => other?,
    }
    Ok(row)
}

fn report(
    args: &ValidateArgs,
    readings: &Readings,
    folds: usize,
    rows: &[Row],
) -> Result<(), Failure> {
    for row in rows {
        if let Some(message) = &row.failed {
            say(&format!("portolan: note: {} failed: {message}", row.label));
        }
    }
    if args.json {
        let methods: Vec<Value> = rows
            .iter()
            .map(|row| {
                let figures = row.failed.is_none().then_some(&row.residuals);
                json!({
                    "method": row.label,
                    "rmse_db": figures.and_then(Residuals::rmse_db),
                    "mae_db": figures.and_then(Residuals::mae_db),
                    "median_abs_db": figures.and_then(Residuals::median_abs_db),
                    "coverage_90": figures.and_then(Residuals::coverage_90),
                    "entries": row.residuals.entries.len(),
                    "seconds": row.fit_seconds,
                    "predict_seconds": row.predict_seconds,
                    "failed": row.failed,
                })
            })
            .collect();
        let split = if args.split == SplitName::Blocks { "blocks" } else { "random" };
        emit_json(&json!({
            "methods": methods, "split": split, "folds": folds, "sensors": readings.sensors(),
        }))?;
    } else {
        let lines: Vec<Vec<String>> = rows
            .iter()
            .map(|row| {
                let of = |value: Option<f64>, digits| {
                    figure(value.filter(|_| row.failed.is_none()), digits)
                };
                vec![
                    row.label.clone(),
                    of(row.residuals.rmse_db(), 3),
                    of(row.residuals.mae_db(), 3),
                    of(row.residuals.median_abs_db(), 3),
                    of(row.residuals.coverage_90().map(|c| 100.0 * c), 1),
                    format!("{:.3}", row.fit_seconds),
                    format!("{:.3}", row.predict_seconds),
                ]
            })
            .collect();
        let header = [
            "method",
            "rmse dB",
            "mean |e| dB",
            "median |e| dB",
            "90 % covers",
            "fit s",
            "predict s",
        ];
        emit(&table(&header, &lines))?;
    }
    match rows.iter().all(|row| row.failed.is_some()) {
        true => Err(Failure::Run("no method finished".into())),
        false => Ok(()),
    }
}

/// Sensors in the colour of their mean error, a panel for each method.
fn draw(output: &Path, force: bool, readings: &Readings, rows: &[Row]) -> Result<(), Failure> {
    let grid = readings.grid_or_default()?;
    let panels: Vec<Panel> = rows
        .iter()
        .filter(|row| row.failed.is_none())
        .map(|row| panel(readings, grid, row))
        .collect();
    if panels.is_empty() {
        return Ok(());
    }
    let figure = Figure {
        heading: "Predicted less read at held-out sensors".to_owned(),
        note: "mean over bands; blue: predicted too low, red: too high".to_owned(),
        rows: panels.into_iter().map(|panel| vec![panel]).collect(),
        keys: vec![Key::Sensors(readings.sensors())],
    };
    let picture = figure.draw();
    write_bytes(output, &picture.png(), force)?;
    say(&format!("{}: {} x {} pixels", output.display(), picture.width(), picture.height()));
    Ok(())
}

fn panel(readings: &Readings, grid: Grid, row: &Row) -> Panel {
    let mut sums = vec![(0.0, 0usize); readings.sensors()];
    for (sensor, _, error) in &row.residuals.entries {
        sums[*sensor].0 += error;
        sums[*sensor].1 += 1;
    }
    let rmse = figure(row.residuals.rmse_db(), 2);
    let nothing = Array2::from_elem((grid.rows(), grid.cols()), f64::NAN);
    let mut panel = HeatPanel::on_grid(format!("{}\nrmse {rmse} dB", row.label), nothing, grid);
    panel.colours = ColourMap::Error;
    let mean = |(sum, count): &(f64, usize)| (*count > 0).then(|| sum / *count as f64);
    let sensor = |(n, sum): (usize, &(f64, usize))| {
        Some(Sensor { at: grid.position(readings.sites()[n]), value: Some(mean(sum)?) })
    };
    panel.sensors = sums.iter().enumerate().filter_map(sensor).collect();
    let mut sizes: Vec<f64> = panel.sensors.iter().filter_map(|s| s.value).map(f64::abs).collect();
    sizes.sort_by(f64::total_cmp);
    let most = sizes.get(sizes.len() * 49 / 50).copied().unwrap_or(1.0).max(0.1);
    panel.limits = (-most, most);
    panel.bar = Some("error [dB]".to_owned());
    Panel::Heat(panel)
}
