//! `portolan validate`: how well methods would have predicted one's own sensors.

use std::path::Path;
use std::time::Instant;

use portolan::estimate::{Fold, Residuals, Split, folds, method, methods};
use portolan::{Context, Readings};
use portolan_io::picture::residuals_figure;
use portolan_io::told::residuals_json;
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
            let Some(fold) = Fold::new(readings, fold, context.transmitters) else { continue };
            let context = Context { transmitters: &fold.transmitters, ..*context };
            let start = Instant::now();
            let model = method.fit(&fold.rest, &context, &part)?;
            row.fit_seconds += start.elapsed().as_secs_f64();
            let start = Instant::now();
            let found = model.predict(&fold.sites, &part.quiet())?;
            row.predict_seconds += start.elapsed().as_secs_f64();
            row.residuals.add(readings, &fold, &found);
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
                let mut object =
                    residuals_json(&row.label, row.failed.is_none().then_some(&row.residuals));
                object["entries"] = json!(row.residuals.entries.len());
                object["seconds"] = json!(row.fit_seconds);
                object["predict_seconds"] = json!(row.predict_seconds);
                object["failed"] = json!(row.failed);
                object
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
    let finished = rows.iter().filter(|row| row.failed.is_none());
    let finished: Vec<_> = finished.map(|row| (row.label.as_str(), &row.residuals)).collect();
    if finished.is_empty() {
        return Ok(());
    }
    let picture = residuals_figure(readings, &finished)?.draw();
    write_bytes(output, &picture.png(), force)?;
    say(&format!("{}: {} x {} pixels", output.display(), picture.width(), picture.height()));
    Ok(())
}
