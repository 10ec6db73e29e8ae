//! One file per command, and the steps several of them share.

pub mod advise;
#[cfg(feature = "paper")]
pub mod bound;
pub mod changes;
pub mod compare;
pub mod completions;
pub mod convert;
pub mod coverage;
pub mod demo;
mod device;
pub mod difference;
pub mod estimate;
pub mod explore;
pub mod fit;
#[cfg(feature = "cuda")]
pub mod gpu_check;
pub mod inspect;
pub mod locate;
pub mod methods;
mod moments;
mod picture;
pub mod plot;
pub mod predict;
#[cfg(feature = "paper")]
pub mod reproduce;
pub mod score;
pub mod sense;
pub mod simulate;
pub mod study;
pub mod update;
pub mod validate;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use portolan::between::{Between, Floors};
use portolan::estimate::{Capability, Transmitter, check_used};
use portolan::{BandLabels, Context, Model, RadioMap, Readings};
use portolan_io::{
    Format, PlanOptions, ReadOptions, SurveyOptions, check_output, check_output_is_not_input,
    inspect, read_map, read_readings, read_walls,
};
use portolan_study::MethodCall;

use crate::args::{ObstacleArgs, ReadArgs};
use crate::failure::Failure;
use crate::output::warn;
use crate::watch::watched;

/// Refuses an output that cannot be written, before any work is done for it.
fn check_target(path: &Path, force: bool) -> Result<(), Failure> {
    Format::of_output(path)?;
    Ok(check_output(path, force)?)
}

/// Refuses an output that is one of the inputs, even under --force.
fn check_apart(output: &Path, inputs: &[&Path]) -> Result<(), Failure> {
    Ok(check_output_is_not_input(output, inputs)?)
}

/// Prints the warnings about a file.
fn warn_about(path: &Path, warnings: &[String]) {
    let named: Vec<String> = warnings.iter().map(|w| format!("{}: {w}", path.display())).collect();
    warn(&named);
}

/// Options for each of several files. `--var` and `--unit` are about the files that need them: one
/// in Portolan's own names with a unit of its own says everything itself.
fn options_for(files: &[&Path], options: &ReadOptions) -> Result<Vec<ReadOptions>, Failure> {
    // What is said about a survey is not about the maps beside it.
    let survey = match files.len() {
        1 => options.survey.clone(),
        _ => SurveyOptions::default(),
    };
    let own = ReadOptions { var: None, unit: None, survey: survey.clone(), ..options.clone() };
    if own == *options {
        return Ok(vec![own; files.len()]);
    }
    let chosen: Vec<ReadOptions> = files
        .iter()
        .map(|file| {
            if *file == Path::new("-") {
                return options.clone();
            }
            let summary = inspect(file, &own).ok();
            let has = |name: &str| {
                summary.iter().flat_map(|summary| &summary.arrays).any(|array| array.name == name)
            };
            let named = options.var.as_deref().is_some_and(has);
            let own_names =
                has("map") || has("cells") || has("sites") || (has("slf") && has("psd"));
            match (own_names && !named, has("unit") || has("levels")) {
                (true, true) => own.clone(),
                (true, false) => {
                    ReadOptions { var: None, survey: survey.clone(), ..options.clone() }
                }
                (false, _) => options.clone(),
            }
        })
        .collect();
    match &options.var {
        Some(var) if chosen.iter().all(|options| options.var.is_none()) => Err(Failure::input(
            format!("--var {var}: none of the files holds an array of that name"),
        )),
        _ => Ok(chosen),
    }
}

/// Reads a map and passes its warnings on.
fn load_map(path: &Path, options: &ReadOptions) -> Result<RadioMap, Failure> {
    let loaded = read_map(path, options)?;
    warn_about(path, &loaded.warnings);
    Ok(loaded.value)
}

/// Known transmitters, where a table of them was given.
fn load_transmitters(
    path: Option<&Path>,
    readings: &Readings,
) -> Result<Vec<Transmitter>, Failure> {
    let Some(path) = path else { return Ok(Vec::new()) };
    let (known, notes) = portolan_io::read_transmitters(path, readings)?;
    warn(&notes);
    Ok(known)
}

/// What stands between transmitters and places, where anything was given that one of the methods uses.
fn load_obstacles<'a>(
    args: &ObstacleArgs,
    read: &ReadArgs,
    readings: &Readings,
    methods: impl Iterator<Item = &'a str>,
) -> Result<Vec<Arc<dyn Between>>, Failure> {
    let mut obstacles: Vec<Arc<dyn Between>> = Vec::new();
    let (floor_height_m, accept) = (read.survey.floor_height, read.accept);
    if let Some(path) = &args.walls {
        let options = PlanOptions { floor_height_m, accept };
        obstacles.push(Arc::new(read_walls(path, readings, options)?));
    }
    if let Some(height) = floor_height_m {
        match check_used(Capability::Obstacles, methods) {
            Ok(()) => obstacles.push(Arc::new(Floors::new(height)?)),
            // For other methods it made heights of a column of floors.
            Err(_) if readings.has_heights() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(obstacles)
}

/// Reads readings and passes their warnings on.
fn load_readings(path: &Path, options: &ReadOptions) -> Result<Readings, Failure> {
    let loaded = read_readings(path, options)?;
    warn_about(path, &loaded.warnings);
    Ok(loaded.value)
}

/// Seconds of a fit.
#[derive(Clone, Copy, Default)]
pub struct Seconds {
    /// The fit alone, without the start that some methods make for themselves.
    fit: f64,
    /// That start.
    start: f64,
    /// All of it, file access apart.
    total: f64,
}

/// Fits a method; returns its model and the time it took.
fn timed_fit(
    call: &MethodCall,
    readings: &Readings,
    context: &Context<'_>,
) -> Result<(Model, Seconds), Failure> {
    let method = call.build()?;
    let start = Instant::now();
    let fit_start = Mutex::new(start);
    let mark = || *fit_start.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    let model = watched(&call.name, |progress| {
        method.fit(readings, context, &progress.clone().with_fit_start(&mark))
    })?;
    let end = Instant::now();
    let fit_start = *fit_start.lock().unwrap_or_else(PoisonError::into_inner);
    let seconds = |from: Instant| (end - from).as_secs_f64();
    let (fit, total) = (seconds(fit_start), seconds(start));
    Ok((model, Seconds { fit, start: total - fit, total }))
}

/// Fits a method and draws its map on the grid of the readings, or on one around them.
fn timed_estimate(
    call: &MethodCall,
    readings: &Readings,
    context: &Context<'_>,
) -> Result<(Model, RadioMap, Seconds), Failure> {
    let (model, seconds) = timed_fit(call, readings, context)?;
    let start = Instant::now();
    let map = watched("drawing", |progress| model.default_map(progress))?;
    let drawing = start.elapsed().as_secs_f64();
    Ok((model, map, Seconds { total: seconds.total + drawing, ..seconds }))
}

/// The band with the most power over the map.
fn strongest_band(map: &RadioMap) -> usize {
    let total = |band: usize| map.band(band).iter().filter(|v| !v.is_nan()).sum::<f64>();
    let totals: Vec<f64> = (0..map.bands()).map(total).collect();
    (0..totals.len()).max_by(|&a, &b| totals[a].total_cmp(&totals[b])).unwrap_or(0)
}

/// The bands that were asked for, by label or number; all where none was named.
fn named_bands(
    names: Option<&[String]>,
    labels: &BandLabels,
    count: usize,
    what: &str,
) -> Result<Vec<usize>, Failure> {
    let Some(names) = names else { return Ok((0..count).collect()) };
    let mut bands = Vec::new();
    for name in names {
        let band = labels.find(name.trim(), count).ok_or_else(|| {
            let known: Vec<String> = (0..count.min(12)).map(|band| labels.label(band)).collect();
            let more = if count > 12 { ", .." } else { "" };
            Failure::input(format!("band {name}: the {what} has {}{more}", known.join(", ")))
        })?;
        if bands.contains(&band) {
            return Err(Failure::input(format!("--bands {name}: it is named twice")));
        }
        bands.push(band);
    }
    Ok(bands)
}
