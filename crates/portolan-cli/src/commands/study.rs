//! `portolan study`: methods over many simulated maps, over random splits of a survey or a
//! ray-traced city, over public surveys, or over surveys that try their error bars. One harness
//! for every table of figures in the documentation.

mod batches;
mod calibration;
mod places;
mod real;

use std::path::Path;
use std::time::Instant;

use portolan::quantiser::AUTHORS_EDGES;
use portolan::score::{coverage_unmeasured, score};
use portolan::sense::{Quantising, Sensing, SensorLayout, sense};
use portolan::simulate::simulate;
use portolan::{Context, Emitters, Grid, Method, Model, RadioMap, Readings};
use serde_json::{Value, json};

use super::MethodCall;
use super::device::give_engine;
use super::score::check_offset;
use crate::args::StudyArgs;
use crate::failure::Failure;
use crate::output::{emit, emit_json, figure, table};
use crate::watch::{check_interrupt, counted};

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
    names.iter().map(|name| MethodCall::parse(name)).collect()
}

fn maps(args: &StudyArgs) -> u64 {
    args.maps.unwrap_or(MAPS)
}

/// Figures of one method on one map.
#[derive(Clone, Copy, Default)]
struct Figures {
    ssim: f64,
    rmse_db: f64,
    coverage: f64,
    seconds: f64,
    /// Whether the number of emitters was found; NaN where none was sought.
    counted: f64,
}

/// What the maps gave: figures by method, and distances of emitters from where they were found.
struct Gathered {
    figures: Vec<Vec<Figures>>,
    misplaced: Vec<Vec<f64>>,
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
        let gathered = gather(args, calls, &layout)?;
        check_interrupt()?;
        let rows = rows(calls, &gathered);
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

fn gather(
    args: &StudyArgs,
    calls: &[MethodCall],
    layout: &SensorLayout,
) -> Result<Gathered, Failure> {
    let (rows, cols) = args.grid.unwrap_or((64, 64));
    let grid = Grid::new(rows, cols, 1.0)?;
    let quantising = args.bits.map(|bits| Quantising {
        bits,
        edges: (bits == 3).then(|| AUTHORS_EDGES.to_vec()),
        sigma: args.sigma,
    });
    let mut gathered = Gathered {
        figures: vec![Vec::new(); calls.len()],
        misplaced: vec![Vec::new(); calls.len()],
    };
    if calls.iter().any(|call| call.engine.is_some()) {
        return batches::gather(args, calls, |seed| scene(args, grid, layout, &quantising, seed));
    }
    let total = maps(args) as usize * calls.len();
    counted("study", |tell, go_on| {
        for seed in args.seed..args.seed + maps(args) {
            let (truth, readings) = scene(args, grid, layout, &quantising, seed)?;
            for (i, call) in calls.iter().enumerate() {
                if !go_on() {
                    return Err(Failure::Interrupted);
                }
                let (figures, misplaced) = one(args, call, &truth, &readings, seed)?;
                gathered.figures[i].push(figures);
                gathered.misplaced[i].extend(misplaced);
                let done = (seed - args.seed) as usize * calls.len() + i + 1;
                tell(done, total, None);
            }
        }
        Ok(gathered)
    })
}

/// A map and what its sensors read.
fn scene(
    args: &StudyArgs,
    grid: Grid,
    layout: &SensorLayout,
    quantising: &Option<Quantising>,
    seed: u64,
) -> Result<(RadioMap, Readings), Failure> {
    let truth = simulate(&args.scene.scenario(grid, seed))?;
    let sensing = Sensing {
        layout: layout.clone(),
        snr_db: args.flaws.snr_db,
        gaps: args.flaws.gaps.unwrap_or(0.0),
        cover: args.flaws.cover.unwrap_or(1.0),
        quantising: quantising.clone(),
        seed,
    };
    let readings = sense(&truth, &sensing)?;
    Ok((truth, readings))
}

/// The method of a call; the oracle also knows the law of the shadowing.
fn method_of(args: &StudyArgs, call: &MethodCall) -> Result<Box<dyn Method>, Failure> {
    let mut call = call.clone();
    if call.name == "oracle" && call.settings.is_empty() {
        call.settings.push(("decorrelation".into(), args.scene.decorrelation.to_string()));
    }
    call.build()
}

/// What methods are told about a map.
fn context_of<'a>(args: &StudyArgs, truth: &'a RadioMap, seed: u64) -> Context<'a> {
    let emitters = args.assumed.unwrap_or(Emitters::Count(args.scene.emitters));
    Context { emitters, seed, truth: Some(truth), ..Context::default() }
}

/// One method on one map.
fn one(
    args: &StudyArgs,
    call: &MethodCall,
    truth: &RadioMap,
    readings: &Readings,
    seed: u64,
) -> Result<(Figures, Vec<f64>), Failure> {
    let silent = portolan::Progress::silent();
    let method = method_of(args, call)?;
    let start = Instant::now();
    let model = method.fit(readings, &context_of(args, truth, seed), &silent)?;
    let map = model.map(truth.grid(), &silent)?;
    let seconds = start.elapsed().as_secs_f64();
    Ok((figures(args, truth, readings, &model, &map, seconds)?, misplaced(truth, &model)))
}

/// What a map is worth.
fn figures(
    args: &StudyArgs,
    truth: &RadioMap,
    readings: &Readings,
    model: &Model,
    map: &RadioMap,
    seconds: f64,
) -> Result<Figures, Failure> {
    let score = score(map, truth, args.offset)?;
    let measured = readings.cells(truth.grid())?;
    let found = model.report().fitted("emitters");
    Ok(Figures {
        ssim: score.ssim.unwrap_or(f64::NAN),
        rmse_db: score.rmse_db,
        coverage: coverage_unmeasured(map, truth, score.offset, &measured).unwrap_or(f64::NAN),
        seconds,
        counted: found.map_or(f64::NAN, |n| f64::from(u8::from(n as usize == args.scene.emitters))),
    })
}

/// Distance from every true emitter to the one found with the most similar PSD, in metres.
fn misplaced(truth: &RadioMap, model: &Model) -> Vec<f64> {
    let Some(factors) = truth.factors() else { return Vec::new() };
    let likeness = |r: usize, psd: &[f64]| {
        let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
        for (a, b) in factors.psd.row(r).iter().zip(psd) {
            (ab, aa, bb) = (ab + a * b, aa + a * a, bb + b * b);
        }
        ab / f64::max((aa * bb).sqrt(), f64::MIN_POSITIVE)
    };
    (0..factors.psd.nrows())
        .filter_map(|r| {
            let of = |e: &portolan::model::ModelEmitter| likeness(r, &e.psd);
            let best = model.emitters().iter().max_by(|a, b| of(a).total_cmp(&of(b)))?;
            Some(best.at.distance_m(truth.emitters()[r]))
        })
        .collect()
}

const HEADER: [&str; 9] =
    ["method", "SSIM", "±", "rmse dB", "±", "90 % covers", "place m", "count right", "seconds"];

/// One line of the table.
struct Row {
    label: String,
    ssim: (f64, f64),
    rmse_db: (f64, f64),
    coverage: f64,
    place_m: Option<f64>,
    counted: f64,
    seconds: f64,
    share: Option<f64>,
}

fn rows(calls: &[MethodCall], gathered: &Gathered) -> Vec<Row> {
    let of = |figures: &[Figures], pick: fn(&Figures) -> f64| {
        let values: Vec<f64> = figures.iter().map(pick).collect();
        mean_and_error(&values)
    };
    let mut rows: Vec<Row> = calls
        .iter()
        .zip(gathered.figures.iter().zip(&gathered.misplaced))
        .map(|(call, (figures, misplaced))| {
            let mut sorted = misplaced.clone();
            sorted.sort_by(f64::total_cmp);
            Row {
                label: call.label.clone(),
                ssim: of(figures, |f| f.ssim),
                rmse_db: of(figures, |f| f.rmse_db),
                coverage: of(figures, |f| f.coverage).0,
                place_m: sorted.get(sorted.len() / 2).copied(),
                counted: of(figures, |f| f.counted).0,
                seconds: of(figures, |f| f.seconds).0,
                share: None,
            }
        })
        .collect();
    // How far a method closes the distance from the better of thin plates and kriging to the
    // oracle.
    let ssim = |name: &str| rows.iter().find(|r| r.label == name).map(|r| r.ssim.0);
    if let (Some(plates), Some(kriging), Some(oracle)) =
        (ssim("thin_plate"), ssim("kriging"), ssim("oracle"))
    {
        let bar = plates.max(kriging);
        rows.iter_mut().for_each(|r| r.share = Some((r.ssim.0 - bar) / (oracle - bar)));
        let told = ["thin_plate", "kriging", "oracle"];
        rows.iter_mut().filter(|r| told.contains(&&*r.label)).for_each(|r| r.share = None);
    }
    rows
}

/// Mean and its standard error.
fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
    (mean, (variance / (count * (count - 1.0).max(1.0))).sqrt())
}

impl Row {
    fn cells(&self) -> Vec<String> {
        let known = |value: f64| Some(value).filter(|v| !v.is_nan());
        let label = match self.share {
            Some(share) => format!("{} (share {share:.2})", self.label),
            None => self.label.clone(),
        };
        vec![
            label,
            figure(known(self.ssim.0), 4),
            figure(known(self.ssim.1), 4),
            figure(known(self.rmse_db.0), 3),
            figure(known(self.rmse_db.1), 3),
            figure(known(self.coverage), 3),
            figure(self.place_m, 2),
            figure(known(self.counted), 2),
            figure(known(self.seconds), 3),
        ]
    }

    fn json(&self) -> Value {
        json!({
            "method": self.label,
            "ssim": self.ssim.0, "ssim_se": self.ssim.1,
            "rmse_db": self.rmse_db.0, "rmse_db_se": self.rmse_db.1,
            "coverage_90_unmeasured": self.coverage,
            "place_m": self.place_m, "count_right": self.counted,
            "share": self.share, "seconds": self.seconds,
        })
    }
}
