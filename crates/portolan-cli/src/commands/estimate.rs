//! `portolan estimate`: the whole map from readings.

use std::path::{Path, PathBuf};

use portolan::estimate::{Method, method, methods};
use portolan::{Context, EmitterFinding, Estimate, RadioMap};
use portolan_io::{ReadOptions, WriteOptions, write_map};
use serde_json::{Map, Value, json};

use super::{Seconds, check_target, load_map, load_readings, options_for, timed_estimate};
use crate::args::EstimateArgs;
use crate::failure::Failure;
use crate::output::{emit, emit_json, figure, say, table, warn};
use crate::watch::{check_interrupt, set_threads};

pub fn run(args: &EstimateArgs) -> Result<(), Failure> {
    set_threads(args.run.threads)?;
    check_target(&args.output, args.force)?;
    // A wrong method or option is known before a large file is read.
    check_request(args)?;
    let mut files: Vec<&Path> = vec![&args.readings];
    files.extend(args.truth.as_deref());
    files.extend(args.start.as_deref());
    let options = options_for(&files, &args.read.options())?;
    let readings = load_readings(&args.readings, &options[0])?;
    let map = |path: &Option<PathBuf>, options: &ReadOptions| {
        path.as_ref().map(|path| load_map(path, options)).transpose()
    };
    let truth = map(&args.truth, &options[options.len().min(2) - 1])?;
    let start = map(&args.start, &options[options.len() - 1])?;
    let context = Context {
        emitters: args.run.emitters,
        seed: args.run.seed,
        truth: truth.as_ref(),
        start: start.as_ref(),
    };
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
        estimate.fitted.iter().map(|(name, value)| format!(", {name} {}", brief(*value))).collect();
    say(&format!(
        "{}: {} from {} sensors in {:.2} s{}",
        args.output.display(),
        args.method,
        readings.sensors(),
        seconds.total,
        fitted.concat()
    ));
    match emitters_table(&estimate.map) {
        Some(table) => emit(&table),
        None => Ok(()),
    }
}

/// What can be refused before any file is read.
fn check_request(args: &EstimateArgs) -> Result<(), Failure> {
    let method = method(&args.method)?;
    method.build(args.settings.clone())?;
    let others = |can: fn(&Method) -> bool| -> String {
        let names: Vec<&str> = methods().iter().filter(|m| can(m)).map(|m| m.name).collect();
        names.join(", ")
    };
    let refused = |option: &str, what: &str, who: String| {
        let name = method.name;
        Err(Failure::input(format!("{option}: method {name} {what}; choose from {who}")))
    };
    match (method.needs_truth, &args.truth) {
        (true, None) => Err(Failure::input(format!(
            "method {} needs the truth: give it with --truth, or use portolan compare",
            method.name
        ))),
        (false, Some(_)) => refused("--truth", "makes no use of it", others(|m| m.needs_truth)),
        _ if args.start.is_some() && !method.takes_start => {
            refused("--start", "cannot start from a map", others(|m| m.takes_start))
        }
        _ => Ok(()),
    }
}

/// Where the emitters are, in metres from the centre of cell 0,0 as well, and what they occupy.
fn emitters_table(map: &RadioMap) -> Option<String> {
    let findings = map.findings();
    let cell = map.grid().cell_m();
    let row = |(r, f): (usize, &EmitterFinding)| {
        let se = |axis: usize| figure(f.at_se.map(|se| se[axis] * cell), 1);
        let exponent = f.exponent.map_or_else(
            || "-".to_string(),
            |e| format!("{:.2} ± {}", e.value, figure(Some(e.se).filter(|s| !s.is_nan()), 2)),
        );
        let share = f.occupancy.as_ref().map(|o| 100.0 * o.share);
        vec![
            (r + 1).to_string(),
            format!("{:.1}", f.at[0]),
            format!("{:.1}", f.at[1]),
            format!("{:.1} ± {}", f.at[0] * cell, se(0)),
            format!("{:.1} ± {}", f.at[1] * cell, se(1)),
            exponent,
            figure(f.power_share.map(|p| 100.0 * p), 1),
            figure(share, 0),
            occupied_words(f, map.freq_hz()),
        ]
    };
    let rows: Vec<_> = findings.iter().enumerate().map(row).collect();
    let header =
        ["emitter", "row", "col", "x_m", "y_m", "exponent", "power %", "bands %", "occupies"];
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

fn report(args: &EstimateArgs, estimate: &Estimate, seconds: Seconds) -> Value {
    let findings = estimate.map.findings();
    let emitters: Vec<Value> = findings.iter().map(|f| emitter_json(f, &estimate.map)).collect();
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

fn emitter_json(finding: &EmitterFinding, map: &RadioMap) -> Value {
    let cell = map.grid().cell_m();
    let (se, exponent) = (finding.at_se, finding.exponent);
    let ranges = finding.occupancy.as_ref().map(|o| &o.ranges);
    let hertz = ranges.zip(map.freq_hz()).map(|(ranges, hz)| {
        ranges.iter().map(|&[first, last]| [hz[first], hz[last]]).collect::<Vec<_>>()
    });
    json!({
        "row": finding.at[0],
        "col": finding.at[1],
        "row_se": se.map(|se| se[0]),
        "col_se": se.map(|se| se[1]),
        "row_se_m": se.map(|se| se[0] * cell),
        "col_se_m": se.map(|se| se[1] * cell),
        "exponent": exponent.map(|e| e.value),
        "exponent_se": exponent.map(|e| e.se),
        "occupied": ranges,
        "occupied_hz": hertz,
        "occupancy": finding.occupancy.as_ref().map(|o| o.share),
        "power_share": finding.power_share,
    })
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
