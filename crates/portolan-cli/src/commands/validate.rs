//! `portolan validate`: cross-validation of methods on a survey's own sensors.

use std::collections::HashSet;
use std::time::Instant;

use portolan::estimate::{Capability, Fold, Residuals, Split, check_used, folds, repeated_rows};
use portolan::{Context, Readings, Site};
use portolan_io::json::{coverage_json, residuals_json};
use portolan_io::picture::residuals_figure;
use serde_json::{Value, json};

use super::picture::{draw, kind_of};
use super::{MethodCall, check_apart, load_obstacles, load_readings, load_transmitters};
use crate::args::{SplitName, ValidateArgs};
use crate::failure::Failure;
use crate::output::{emit, emit_json, figure, say, table, warn};
use crate::watch::{check_interrupt, watched};

/// What a method did.
struct Row {
    label: String,
    residuals: Residuals,
    /// At readings repeated where the fit had others of the same place.
    repeated: Residuals,
    fit_seconds: f64,
    predict_seconds: f64,
    /// Why it did not finish, where it did not.
    failed: Option<String>,
}

pub fn run(args: &ValidateArgs) -> Result<(), Failure> {
    let calls = args.methods.iter().map(|m| MethodCall::parse(m)).collect::<Result<Vec<_>, _>>()?;
    if let Some(plot) = &args.plot {
        kind_of(plot, args.force)?;
        check_apart(plot, &[&args.readings])?;
    }
    if args.transmitters.is_some() {
        // Some of the methods make use of them; the others do not look at them.
        check_used(Capability::Transmitters, calls.iter().map(|call| call.name.as_str()))?;
    }
    if args.obstacles.walls.is_some() {
        check_used(Capability::Obstacles, calls.iter().map(|call| call.name.as_str()))?;
    }
    let readings = load_readings(&args.readings, &args.read.options())?;
    let split = match args.split {
        SplitName::Random => Split::Random,
        SplitName::Blocks => Split::Blocks,
        SplitName::Floors | SplitName::Altitudes => Split::Heights,
    };
    if split == Split::Random && is_track(readings.sites()) {
        warn(&[
            "the places follow a track: random folds tell the error between neighbours on it; \
                --split blocks tells the error beside it"
                .into(),
        ]);
    }
    let dealt = folds(readings.sites(), args.folds as usize, split, args.run.seed);
    if dealt.len() < 2 {
        return Err(Failure::input(format!(
            "{}: its sensors cannot be split {}",
            args.readings.display(),
            match split {
                Split::Blocks => "into boxes",
                Split::Heights => "by height: all readings are at one",
                _ => "in parts",
            }
        )));
    }
    let known = load_transmitters(args.transmitters.as_deref(), &readings)?;
    let obstacles = {
        let names = calls.iter().map(|call| call.name.as_str());
        load_obstacles(&args.obstacles, &args.read, &readings, names)?
    };
    let context = Context {
        emitters: args.run.emitters,
        seed: args.run.seed,
        transmitters: &known,
        obstacles: &obstacles,
        ..Context::default()
    };
    let mut rows = Vec::new();
    for call in &calls {
        rows.push(judge(call, &readings, &dealt, &context)?);
        check_interrupt()?;
    }
    if let Some(plot) = &args.plot {
        let finished = rows.iter().filter(|row| row.failed.is_none());
        let finished: Vec<_> = finished.map(|row| (row.label.as_str(), &row.residuals)).collect();
        if !finished.is_empty() {
            draw(plot, &residuals_figure(&readings, &finished)?, args.force)?;
        }
    }
    report(args, &readings, dealt.len(), &rows)
}

/// Places that are looked at, and the fewest that make a track.
const LOOKED: usize = 1500;
const FEWEST: usize = 60;
/// Within ten steps of a place on a line lie at most twenty others, in a plane about seventy or more.
const STEPS: f64 = 10.0;
const ON_A_LINE: usize = 28;

/// Whether places lie along lines, as those of a walk or a drive do.
fn is_track(sites: &[Site]) -> bool {
    let mut seen = HashSet::new();
    let key = |site: &Site| [site.x_m, site.y_m].map(|v| (v + 0.0).to_bits());
    let places: Vec<Site> = sites.iter().copied().filter(|s| seen.insert(key(s))).collect();
    if places.len() < FEWEST {
        return false;
    }
    let asked: Vec<Site> = places.iter().copied().step_by(places.len().div_ceil(100)).collect();
    let places = &places[..places.len().min(LOOKED)];
    let away = |from: &Site| {
        let mut all: Vec<f64> = places.iter().map(|to| from.distance_m(*to)).collect();
        all.retain(|d| *d > 0.0);
        all.sort_by(f64::total_cmp);
        all
    };
    let known = asked.iter().filter(|site| places.contains(site));
    let all: Vec<Vec<f64>> = known.map(away).filter(|all| !all.is_empty()).collect();
    let mut steps: Vec<f64> = all.iter().map(|all| all[0]).collect();
    steps.sort_by(f64::total_cmp);
    let Some(step) = steps.get(steps.len() / 2) else { return false };
    let near = |all: &Vec<f64>| all.partition_point(|d| *d <= STEPS * step);
    let mut counts: Vec<usize> = all.iter().map(near).collect();
    counts.sort_unstable();
    counts[counts.len() / 2] < ON_A_LINE
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
        repeated: Residuals::default(),
        fit_seconds: 0.0,
        predict_seconds: 0.0,
        failed: None,
    };
    let result = watched(&call.name, |progress| {
        let repeated = Some(repeated_rows(readings)).filter(|rows| !rows.is_empty());
        let count = dealt.len() + usize::from(repeated.is_some());
        for (i, fold) in dealt.iter().chain(&repeated).enumerate() {
            let share = |i: usize| i as f64 / count as f64;
            let part = progress.part(share(i)..share(i + 1));
            let Some(fold) = Fold::new(readings, fold, context.transmitters) else { continue };
            let context = Context { transmitters: &fold.transmitters, ..*context };
            let start = Instant::now();
            let model = method.fit(&fold.rest, &context, &part)?;
            row.fit_seconds += start.elapsed().as_secs_f64();
            let start = Instant::now();
            let found = fold.predict(&model, &part.quiet())?;
            row.predict_seconds += start.elapsed().as_secs_f64();
            let into = if i < dealt.len() { &mut row.residuals } else { &mut row.repeated };
            into.add(readings, &fold, &found);
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
                object["coverage_by_distance"] = coverage_json(&row.residuals, DISTANCES);
                object["repeated"] = match row.repeated.entries.is_empty() {
                    true => Value::Null,
                    false => json!({
                        "entries": row.repeated.entries.len(),
                        "rmse_db": row.repeated.rmse_db(),
                        "coverage_90": row.repeated.coverage_90(),
                    }),
                };
                object["seconds"] = json!(row.fit_seconds);
                object["predict_seconds"] = json!(row.predict_seconds);
                object["failed"] = json!(row.failed);
                object
            })
            .collect();
        let split = match args.split {
            SplitName::Random => "random",
            SplitName::Blocks => "blocks",
            SplitName::Floors => "floors",
            SplitName::Altitudes => "altitudes",
        };
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
        if let Some(text) = coverage(rows) {
            emit(&text)?;
        }
    }
    for row in rows {
        if let Some(note) = disagreement(row) {
            say(&format!("portolan: note: {note}"));
        }
    }
    match rows.iter().all(|row| row.failed.is_some()) {
        true => Err(Failure::Run("no method finished".into())),
        false => Ok(()),
    }
}

/// Parts of about equally many entries that coverage is told for, by distance.
const DISTANCES: usize = 4;
/// Coverages that differ by more than this, and by more than three standard errors, disagree.
const DISAGREE: f64 = 0.05;

/// Coverage where places were read again, and by distance to the nearest reading; None where no
/// method has error bars.
fn coverage(rows: &[Row]) -> Option<String> {
    let finished = || rows.iter().filter(|row| row.failed.is_none());
    let first = finished().find(|row| row.residuals.with_bars() > 0)?;
    let mut header = vec!["90 % covers".to_string(), "repeated".to_string()];
    let parts = first.residuals.coverage_by_distance(DISTANCES);
    header.extend(parts.iter().map(|p| match p.from_m == p.to_m {
        true => format!("{} m", short(p.from_m)),
        false => format!("{}-{} m", short(p.from_m), short(p.to_m)),
    }));
    let percent = |share: Option<f64>| figure(share.map(|s| 100.0 * s), 1);
    let lines: Vec<Vec<String>> = finished()
        .filter(|row| row.residuals.with_bars() > 0)
        .map(|row| {
            let mut line = vec![row.label.clone(), percent(row.repeated.coverage_90())];
            let own = row.residuals.coverage_by_distance(DISTANCES);
            line.extend(own.iter().map(|p| percent(Some(p.coverage_90))));
            line.resize(header.len(), "-".into());
            line
        })
        .collect();
    let legend = match first.repeated.entries.is_empty() {
        true => "repeated: no place was read twice, so that only new places are judged",
        false => "repeated: readings at places that the fit has other readings of",
    };
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    Some(format!(
        "\n{}\n{legend}; then new places by the distance to the nearest reading",
        table(&header, &lines)
    ))
}

/// A distance with three digits.
fn short(metres: f64) -> String {
    let digits = (2.0 - metres.max(1e-3).log10().floor()).clamp(0.0, 3.0) as usize;
    format!("{metres:.digits$}")
}

/// What to say where error bars hold at new places and not at known ones, or the other way round.
fn disagreement(row: &Row) -> Option<String> {
    let (new, again) = (row.residuals.coverage_90()?, row.repeated.coverage_90()?);
    let variance = |share: f64, count: usize| share * (1.0 - share) / count as f64;
    let error =
        variance(new, row.residuals.with_bars()) + variance(again, row.repeated.with_bars());
    let off = (new - again).abs();
    (row.failed.is_none() && off > DISAGREE && off > 3.0 * error.sqrt()).then(|| {
        format!(
            "{}: the 90 % interval holds {:.0} % of readings at new places and {:.0} % of repeated \
             readings at known places: its noise ({}) is not that of repeated visits",
            row.label,
            100.0 * new,
            100.0 * again,
            if again < new { "too low" } else { "too high" }
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_is_a_track_and_a_lattice_or_a_scatter_is_none() {
        let walk: Vec<Site> = (0..400)
            .map(|i| {
                let along = f64::from(i);
                Site::new(along, 30.0 * (along / 60.0).sin() + 0.3 * f64::from(i * 7 % 5))
            })
            .collect();
        assert!(is_track(&walk));
        // However it is walked.
        let lattice: Vec<Site> = (0..400)
            .map(|i| {
                let (row, col) = (i / 20, if i / 20 % 2 == 0 { i % 20 } else { 19 - i % 20 });
                Site::new(f64::from(col), f64::from(row))
            })
            .collect();
        assert!(!is_track(&lattice));
        let scatter: Vec<Site> = (0..400u32)
            .map(|i| {
                let part = |step: f64| 1000.0 * (f64::from(i) * step).fract();
                let off = |n: u32| 40.0 * (f64::from(i * i % 1009 * n) * 0.618_034).fract();
                Site::new(part(0.754_877_67) + off(3), part(0.569_840_29) + off(7))
            })
            .collect();
        assert!(!is_track(&scatter) && !is_track(&walk[..40]));
    }
}
