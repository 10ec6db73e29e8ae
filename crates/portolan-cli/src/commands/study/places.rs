//! Random splits of a survey, or of a ray-traced city: rmse in dB at held-out places.

use std::path::Path;

use ndarray::Array2;
use portolan::{Cell, Readings, Site, Values};
use portolan_io::{ReadOptions, radiogat};
use portolan_study::{SplitJudged, Splits};
use serde_json::{Value, json};

use super::maps;
use crate::args::StudyArgs;
use crate::commands::{MethodCall, load_readings};
use crate::failure::Failure;
use crate::output::{emit, emit_json, figure, table};
use crate::watch::stepwise;

/// The share of a city's open cells that are sensors, unless told otherwise.
const CITY_SHARE: f64 = 0.05;

pub fn run(args: &StudyArgs, survey: &Path, calls: &[MethodCall]) -> Result<(), Failure> {
    let known = match survey.is_dir() {
        true => city(args, survey)?,
        false => {
            let unit = args.unit.map(|unit| unit.unit());
            let options = ReadOptions { unit, grid: args.grid, ..ReadOptions::default() };
            load_readings(survey, &options)?
        }
    };
    let share = args.fraction.unwrap_or(if survey.is_dir() { CITY_SHARE } else { 0.5 });
    let counts = match &args.sensors {
        Some(counts) => counts.clone(),
        None => vec![(share * known.sensors() as f64).round() as usize],
    };
    if let Some(count) = counts.iter().find(|c| **c < 2 || **c >= known.sensors()) {
        let most = known.sensors() - 1;
        return Err(Failure::input(format!("{count} sensors: the survey takes 2 to {most}")));
    }
    let mut objects = Vec::new();
    for count in counts {
        let study = Splits {
            calls,
            readings: &known,
            count,
            splits: maps(args),
            seed: args.seed,
            assumed: args.assumed.unwrap_or_default(),
        };
        let judged = stepwise("study", maps(args) as usize * calls.len(), |p| study.run(p))?;
        let rows: Vec<Row> = judged.into_iter().map(Row).collect();
        if args.json {
            objects.push(json!({ "sensors": count, "methods": rows.iter().map(Row::json).collect::<Vec<_>>() }));
            continue;
        }
        emit(&format!("{count} of {} sensors, {} splits", known.sensors(), maps(args)))?;
        let lines: Vec<Vec<String>> = rows.iter().map(Row::cells).collect();
        let header = ["method", "rmse dB", "split mean", "±", "90 % covers", "seconds"];
        emit(&table(&header, &lines))?;
    }
    if args.json { emit_json(&Value::Array(objects)) } else { Ok(()) }
}

/// The cells outside buildings of the middle of a city.
fn city(args: &StudyArgs, folder: &Path) -> Result<Readings, Failure> {
    let whole = radiogat::city(folder)?;
    let grid = whole.map.grid();
    let (rows, cols) = args.grid.unwrap_or((grid.rows(), grid.cols()));
    let first = |all: usize, side: usize| all.saturating_sub(side) / 2;
    let part = whole.crop(first(grid.rows(), rows), first(grid.cols(), cols), rows, cols)?;
    let open = part.buildings.indexed_iter().filter(|(_, inside)| !**inside);
    let cells: Vec<Cell> = open.map(|((row, col), _)| Cell::new(row, col)).collect();
    let power = part.map.to_dense();
    let spectra = Array2::from_shape_fn((cells.len(), part.map.bands()), |(sensor, band)| {
        power[[cells[sensor].row, cells[sensor].col, band]]
    });
    let sites: Vec<Site> = cells.iter().map(|&cell| part.map.grid().site(cell)).collect();
    let readings = Readings::new(sites, Values::Power(spectra), part.map.scale())?;
    let labels = part.map.labels().clone();
    Ok(readings.with_grid(Some(part.map.grid()))?.with_labels(labels)?)
}

/// One line of the table.
struct Row(SplitJudged);

impl Row {
    fn cells(&self) -> Vec<String> {
        let Self(row) = self;
        vec![
            row.label.clone(),
            figure(row.all.rmse_db(), 3),
            format!("{:.3}", row.split_rmse_db.mean),
            format!("{:.3}", row.split_rmse_db.error),
            figure(row.all.coverage_90(), 3),
            format!("{:.3}", row.seconds),
        ]
    }

    fn json(&self) -> Value {
        let Self(row) = self;
        json!({
            "method": row.label, "rmse_db": row.all.rmse_db(),
            "split_rmse_db": row.split_rmse_db.mean, "split_rmse_db_se": row.split_rmse_db.error,
            "coverage_90": row.all.coverage_90(), "seconds": row.seconds,
        })
    }
}
