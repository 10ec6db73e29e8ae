//! Random splits of a survey, or of a ray-traced city: rmse in dB at held-out places.

use std::path::Path;
use std::time::Instant;

use ndarray::Array2;
use portolan::estimate::{Fold, Residuals};
use portolan::{Cell, Context, Progress, Readings, Site, Values};
use portolan_io::{ReadOptions, radiogat};
use rand::SeedableRng;
use rand::seq::index::sample;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::{maps, mean_and_error};
use crate::args::StudyArgs;
use crate::commands::{MethodCall, load_readings};
use crate::failure::Failure;
use crate::output::{emit, emit_json, figure, table};
use crate::watch::counted;

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
        let rows = splits(args, calls, &known, count)?;
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

/// What one method did over all splits.
struct Row {
    label: String,
    all: Residuals,
    each: Vec<f64>,
    seconds: f64,
}

fn splits(
    args: &StudyArgs,
    calls: &[MethodCall],
    known: &Readings,
    count: usize,
) -> Result<Vec<Row>, Failure> {
    let mut rows: Vec<Row> = calls
        .iter()
        .map(|call| Row {
            label: call.label.clone(),
            all: Residuals::default(),
            each: Vec::new(),
            seconds: 0.0,
        })
        .collect();
    let total = maps(args) as usize * calls.len();
    counted("study", |tell, go_on| {
        for seed in args.seed..args.seed + maps(args) {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut kept = sample(&mut rng, known.sensors(), count).into_vec();
            kept.sort_unstable();
            let held: Vec<usize> =
                (0..known.sensors()).filter(|s| kept.binary_search(s).is_err()).collect();
            let too_few = "too few sensors are left to fit: give a larger --fraction";
            let fold = Fold::new(known, &held, &[]).ok_or_else(|| Failure::input(too_few))?;
            let context =
                Context { seed, emitters: args.assumed.unwrap_or_default(), ..Context::default() };
            for (i, (call, row)) in calls.iter().zip(&mut rows).enumerate() {
                if !go_on() {
                    return Err(Failure::Interrupted);
                }
                let method = call.build()?;
                let start = Instant::now();
                let model = method.fit(&fold.rest, &context, &Progress::silent())?;
                let found = model.predict(&fold.sites, &Progress::silent())?;
                row.seconds += start.elapsed().as_secs_f64() / maps(args) as f64;
                let mut own = Residuals::default();
                own.add(known, &fold, &found);
                row.each.push(own.rmse_db().unwrap_or(f64::NAN));
                row.all.add(known, &fold, &found);
                tell((seed - args.seed) as usize * calls.len() + i + 1, total, None);
            }
        }
        Ok(rows)
    })
}

impl Row {
    fn cells(&self) -> Vec<String> {
        let (mean, error) = mean_and_error(&self.each);
        vec![
            self.label.clone(),
            figure(self.all.rmse_db(), 3),
            format!("{mean:.3}"),
            format!("{error:.3}"),
            figure(self.all.coverage_90(), 3),
            format!("{:.3}", self.seconds),
        ]
    }

    fn json(&self) -> Value {
        let (mean, error) = mean_and_error(&self.each);
        json!({
            "method": self.label, "rmse_db": self.all.rmse_db(),
            "split_rmse_db": mean, "split_rmse_db_se": error,
            "coverage_90": self.all.coverage_90(), "seconds": self.seconds,
        })
    }
}
