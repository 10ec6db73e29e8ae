//! `portolan study`: methods over many simulated maps, over random splits of a survey or a
//! ray-traced city, over public surveys, or over surveys that try their error bars. One harness
//! for every table of figures in the documentation.

mod calibration;
mod places;
mod real;

use std::path::Path;

use portolan::Grid;
use portolan::sense::{Quantising, Sensing, SensorLayout};
use portolan_study::{Judged, Simulated};
use serde_json::{Value, json};

use super::MethodCall;
use super::device::give_engine;
use super::score::check_offset;
use super::sense::edges;
use crate::args::StudyArgs;
use crate::failure::Failure;
use crate::output::{emit, emit_json, figure, say, table};
use crate::watch::{check_interrupt, stepwise};

/// Methods that are compared unless others are named.
const METHODS: &str = "thin_plate,kriging,field,oracle";

/// Simulated maps, or splits of a survey, unless told otherwise.
const MAPS: u64 = 16;

pub fn run(args: &StudyArgs) -> Result<(), Failure> {
    check_offset(args.offset)?;
    if args.maps == Some(0) {
        return Err(Failure::input("--maps 0: it takes 1 or more"));
    }
    let named = |word: &str| args.survey.as_deref() == Some(Path::new(word));
    if named(calibration::WORD) {
        real::check_options(args)?;
        return calibration::run(args);
    }
    calibration::check_options(args)?;
    if named(real::WORD) {
        return real::run(args);
    }
    real::check_options(args)?;
    let mut calls = calls(args, METHODS)?;
    give_engine(args.device, &mut calls)?;
    match &args.survey {
        Some(survey) => places::run(args, survey, &calls),
        None => simulated(args, &calls),
    }
}

/// The methods that were named, or the default ones.
fn calls(args: &StudyArgs, default: &str) -> Result<Vec<MethodCall>, Failure> {
    let default = || default.split(',').map(str::to_string).collect();
    let names: Vec<String> = args.methods.clone().unwrap_or_else(default);
    Ok(names.iter().map(|name| MethodCall::parse(name)).collect::<Result<_, _>>()?)
}

fn maps(args: &StudyArgs) -> u64 {
    args.maps.unwrap_or(MAPS)
}

fn simulated(args: &StudyArgs, calls: &[MethodCall]) -> Result<(), Failure> {
    let counts: Vec<Option<usize>> = match &args.sensors {
        Some(counts) => counts.iter().map(|c| Some(*c)).collect(),
        None => vec![None],
    };
    let mut objects = Vec::new();
    for count in counts {
        let layout = match count {
            Some(count) => SensorLayout::Count(count),
            None => SensorLayout::Fraction(args.fraction.unwrap_or(0.1)),
        };
        let rows = judge(args, calls, layout)?;
        if args.json {
            objects.push(json!({ "sensors": count, "methods": rows.iter().map(Row::json).collect::<Vec<_>>() }));
            continue;
        }
        if let Some(count) = count {
            emit(&format!("{count} sensors"))?;
        }
        let lines: Vec<Vec<String>> = rows.iter().map(Row::cells).collect();
        emit(&table(&HEADER, &lines))?;
    }
    if args.json { emit_json(&Value::Array(objects)) } else { Ok(()) }
}

fn judge(
    args: &StudyArgs,
    calls: &[MethodCall],
    layout: SensorLayout,
) -> Result<Vec<Row>, Failure> {
    let (rows, cols) = args.grid.unwrap_or((64, 64));
    let study = Simulated {
        calls: calls.to_vec(),
        scenario: args.scene.scenario(Grid::new(rows, cols, 1.0)?, args.seed),
        sensing: Sensing {
            layout,
            snr_db: args.flaws.snr_db,
            gaps: args.flaws.gaps.unwrap_or(0.0),
            cover: args.flaws.cover.unwrap_or(1.0),
            quantising: quantising(args)?,
            seed: args.seed,
        },
        maps: maps(args),
        assumed: args.assumed,
        offset: args.offset,
    };
    let judged = stepwise("study", maps(args) as usize * calls.len(), |p| study.run(p))?;
    check_interrupt()?;
    for (row, spent) in judged.iter().filter_map(|row| Some((row, row.spent?))) {
        let (count, total) = (maps(args) as f64, spent.start + spent.fit);
        say(&format!(
            "portolan: note: {}: {count} fits in {total:.3} s, {:.1} maps a second; {:.3} s of it \
             for the starts, {:.1} maps a second without them",
            row.label,
            count / total,
            spent.start,
            count / spent.fit,
        ));
    }
    Ok(judged.into_iter().map(Row).collect())
}

fn quantising(args: &StudyArgs) -> Result<Option<Quantising>, Failure> {
    let Some(bits) = args.bits else { return Ok(None) };
    let usual = if bits == 3 { "authors" } else { "quantiles" };
    let edges = edges(args.edges.as_deref().unwrap_or(usual), bits)?;
    Ok(Some(Quantising { bits, edges, sigma: args.sigma }))
}

const HEADER: [&str; 9] =
    ["method", "SSIM", "±", "rmse dB", "±", "90 % covers", "place m", "count right", "seconds"];

/// One line of the table.
struct Row(Judged);

impl Row {
    fn cells(&self) -> Vec<String> {
        let known = |value: f64| Some(value).filter(|v| !v.is_nan());
        let Judged { label, ssim, rmse_db, coverage, place_m, counted, seconds, share, .. } =
            &self.0;
        let label = match share {
            Some(share) => format!("{label} (share {share:.2})"),
            None => label.clone(),
        };
        vec![
            label,
            figure(known(ssim.mean), 4),
            figure(known(ssim.error), 4),
            figure(known(rmse_db.mean), 3),
            figure(known(rmse_db.error), 3),
            figure(known(*coverage), 3),
            figure(*place_m, 2),
            figure(known(*counted), 2),
            figure(known(*seconds), 3),
        ]
    }

    fn json(&self) -> Value {
        let row = &self.0;
        json!({
            "method": row.label,
            "ssim": row.ssim.mean, "ssim_se": row.ssim.error,
            "rmse_db": row.rmse_db.mean, "rmse_db_se": row.rmse_db.error,
            "coverage_90_unmeasured": row.coverage,
            "place_m": row.place_m, "count_right": row.counted,
            "share": row.share, "seconds": row.seconds,
        })
    }
}
