//! `portolan fit`: a method fitted to readings, and what `estimate` shares with it.

use std::path::{Path, PathBuf};

use portolan::estimate::{Capability, ColumnFinding, Entry, check_used, method};
use portolan::{Context, EmitterFinding, Emitters, Model, Readings};
use portolan_io::export::Needs;
use portolan_io::json::model_report;
use portolan_io::{ReadOptions, check_output, write_model};
use serde_json::{Value, json};

use super::device::give_engine;
use super::moments::times_note;
use super::{
    MethodCall, Seconds, check_apart, load_map, load_obstacles, load_readings, load_transmitters,
    options_for, timed_fit,
};
use crate::args::{FitArgs, FitChoice};
use crate::failure::Failure;
use crate::output::{emit, emit_json, figure, say, table, warn};
use crate::watch::check_interrupt;

pub fn run(args: &FitArgs) -> Result<(), Failure> {
    if args.output.extension().is_none_or(|e| !e.eq_ignore_ascii_case("npz")) {
        let name = args.output.display();
        return Err(Failure::input(format!("{name}: a model's name must end in .npz")));
    }
    check_output(&args.output, args.force)?;
    let (readings, model, seconds) = fitted(&args.fit, &args.output, |_, readings| {
        let needs = Needs::of_model(readings.sensors(), readings.bands());
        warn(&Vec::from_iter(needs.check(&args.output)?));
        Ok(())
    })?;
    check_interrupt()?;
    write_model(&args.output, &model, args.force)?;
    warn(&model.report().notes);
    if args.json {
        let mut report = report(&args.fit, &model, seconds);
        report["output"] = json!(args.output);
        return emit_json(&report);
    }
    say(&headline(&args.output, &args.fit, &readings, &model, seconds));
    columns_table(&model).map_or(Ok(()), |table| emit(&table))?;
    emitters_table(&model).map_or(Ok(()), |table| emit(&table))
}

/// Reads and fits what was asked for; nothing is read before the request is known to be sound, and
/// nothing fitted before `check` has seen the readings.
pub fn fitted(
    choice: &FitChoice,
    output: &Path,
    check: impl FnOnce(&Entry, &Readings) -> Result<(), Failure>,
) -> Result<(Readings, Model, Seconds), Failure> {
    let mut call = check_request(choice)?;
    let mut files: Vec<&Path> = vec![&choice.readings];
    files.extend(choice.truth.as_deref());
    files.extend(choice.start.as_deref());
    check_apart(output, &files)?;
    let beside = choice.transmitters.iter().chain(&choice.obstacles.walls);
    check_apart(output, &beside.map(PathBuf::as_path).collect::<Vec<_>>())?;
    let options = options_for(&files, &choice.read.options())?;
    let mut readings = load_readings(&choice.readings, &options[0])?;
    let relative = choice.read.survey.time_unit.is_some();
    if choice.ignore_time {
        readings = readings.with_time_s(None)?;
    } else {
        warn(&Vec::from_iter(times_note(&readings, method(&choice.method)?, relative)));
    }
    check(method(&choice.method)?, &readings)?;
    give_engine(choice.device, std::slice::from_mut(&mut call))?;
    let map = |path: &Option<PathBuf>, options: &ReadOptions| {
        path.as_ref().map(|path| load_map(path, options)).transpose()
    };
    let truth = map(&choice.truth, &options[options.len().min(2) - 1])?;
    let start = map(&choice.start, &options[options.len() - 1])?;
    let known = load_transmitters(choice.transmitters.as_deref(), &readings)?;
    let obstacles = load_obstacles(
        &choice.obstacles,
        &choice.read,
        &readings,
        [call.name.as_str()].into_iter(),
    )?;
    let context = Context {
        emitters: choice.run.emitters,
        seed: choice.run.seed,
        grid: None,
        truth: truth.as_ref(),
        start: start.as_ref(),
        transmitters: &known,
        obstacles: &obstacles,
    };
    let (model, seconds) =
        timed_fit(&call, &readings, &context).map_err(|failure| failure.about(&choice.readings))?;
    Ok((readings, model.named(&choice.method), seconds))
}

/// What can be refused before any file is read.
fn check_request(choice: &FitChoice) -> Result<MethodCall, Failure> {
    let method = method(&choice.method)?;
    let (name, settings) = (choice.method.clone(), choice.settings.clone());
    let call = MethodCall::new(name.clone(), name, settings)?;
    let given = [
        (Capability::Truth, choice.truth.is_some()),
        (Capability::Start, choice.start.is_some()),
        (Capability::Transmitters, choice.transmitters.is_some()),
        (Capability::Obstacles, choice.obstacles.walls.is_some()),
        (Capability::Emitters, choice.run.emitters != Emitters::Auto),
    ];
    for (capability, _) in given.into_iter().filter(|(_, given)| *given) {
        check_used(capability, [method.name])?;
    }
    if method.has(Capability::Truth) && choice.truth.is_none() {
        return Err(Failure::input(format!(
            "method {} needs the truth: give it with --truth, or use portolan compare",
            method.name
        )));
    }
    Ok(call)
}

/// One line about a fit.
pub fn headline(
    output: &Path,
    choice: &FitChoice,
    readings: &Readings,
    model: &Model,
    seconds: Seconds,
) -> String {
    let fitted = model.report().fitted.iter();
    let fitted: Vec<String> =
        fitted.map(|(name, value)| format!(", {name} {}", brief(*value))).collect();
    // Only what a reader would notice.
    let start = match seconds.start > 0.05 {
        true => format!(" ({:.2} s of it for the start)", seconds.start),
        false => String::new(),
    };
    format!(
        "{}: {} from {} sensors in {:.2} s{start}{}",
        output.display(),
        choice.method,
        readings.sensors(),
        seconds.total,
        fitted.concat()
    )
}

/// Where the emitters are, and what they occupy.
pub fn emitters_table(model: &Model) -> Option<String> {
    let longest = model.region().width_m().max(model.region().height_m());
    let row = |(r, f): (usize, EmitterFinding)| {
        let se = |axis: usize| figure(f.at_se_m.map(|se| se[axis]), 1);
        let exponent = f.exponent.map_or_else(
            || "-".to_string(),
            |e| format!("{:.2} ± {}", e.value, figure(Some(e.se).filter(|s| !s.is_nan()), 2)),
        );
        let share = f.occupancy.as_ref().map(|o| 100.0 * o.share);
        if f.is_noise(longest) {
            let mut row = vec![format!("{} (noise)", r + 1)];
            row.extend(vec!["-".to_string(); 3]);
            row.push(figure(f.power_share.map(|p| 100.0 * p), 1));
            row.extend(vec!["-".to_string(); 2]);
            return row;
        }
        vec![
            (r + 1).to_string(),
            format!("{:.1} ± {}", f.at.x_m, se(0)),
            format!("{:.1} ± {}", f.at.y_m, se(1)),
            exponent,
            figure(f.power_share.map(|p| 100.0 * p), 1),
            figure(share, 0),
            occupied_words(&f, model.labels().freq_hz()),
        ]
    };
    let findings = model.emitters().iter().map(|e| e.finding());
    let rows: Vec<_> = findings.enumerate().map(row).collect();
    let header = ["emitter", "x_m", "y_m", "exponent", "power %", "bands %", "occupies"];
    (!rows.is_empty()).then(|| table(&header, &rows))
}

/// What stands between transmitters and places, and what it takes.
pub fn columns_table(model: &Model) -> Option<String> {
    let row = |column: &ColumnFinding| {
        vec![
            column.name.clone(),
            format!("{:.1} ± {:.1}", column.loss_db, column.loss_se_db),
            figure(column.rmse_db, 2),
            figure(column.rmse_without_db, 2),
        ]
    };
    let rows: Vec<_> = model.report().columns.iter().map(row).collect();
    let header = ["between", "loss dB each", "rmse dB", "rmse dB without"];
    (!rows.is_empty()).then(|| table(&header, &rows))
}

/// "bands 3-17, 40" or "2412-2437 MHz".
fn occupied_words(finding: &EmitterFinding, freq_hz: Option<&[f64]>) -> String {
    let Some(occupancy) = &finding.occupancy else { return "-".into() };
    let words = |first: String, last: String| {
        if first == last { first } else { format!("{first}-{last}") }
    };
    let ranges: Vec<String> = occupancy
        .ranges
        .iter()
        .map(|&[first, last]| match freq_hz {
            Some(hz) => words(megahertz(hz[first]), megahertz(hz[last])),
            None => words(first.to_string(), last.to_string()),
        })
        .collect();
    match (ranges.is_empty(), freq_hz) {
        (true, _) => "nothing".into(),
        (false, Some(_)) => format!("{} MHz", ranges.join(", ")),
        (false, None) => format!("bands {}", ranges.join(", ")),
    }
}

fn megahertz(hz: f64) -> String {
    let digits = format!("{:.3}", hz / 1e6);
    digits.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// The result of a fit, for `--json`.
pub fn report(choice: &FitChoice, model: &Model, seconds: Seconds) -> Value {
    let mut report = model_report(model, &choice.method);
    report["seconds"] = json!(seconds.fit);
    report["start_seconds"] = json!(seconds.start);
    report["total_seconds"] = json!(seconds.total);
    report
}

/// Four digits that count.
fn brief(value: f64) -> String {
    let size = value.abs();
    if value.fract() == 0.0 && size < 1e6 {
        return format!("{value}");
    }
    if !(1e-3..1e6).contains(&size) {
        return format!("{value:.3e}");
    }
    let decimals = (3 - size.log10().floor() as i32).max(0) as usize;
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::brief;

    #[test]
    fn numbers_are_brief_and_keep_their_digits() {
        for (value, text) in [
            (4.0, "4"),
            (0.0, "0"),
            (106.2873, "106.3"),
            (0.004312, "0.004312"),
            (6.27554, "6.276"),
            (-123456.7, "-123457"),
            (3.21987e-9, "3.220e-9"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(brief(value), text);
        }
    }
}
