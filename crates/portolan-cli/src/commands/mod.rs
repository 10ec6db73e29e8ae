//! One file per command, and the steps several of them share.

pub mod advise;
pub mod bound;
pub mod compare;
pub mod completions;
pub mod convert;
pub mod demo;
pub mod estimate;
pub mod inspect;
pub mod methods;
pub mod plot;
pub mod reproduce;
pub mod score;
pub mod sense;
pub mod simulate;

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use portolan::estimate::build;
use portolan::{Context, Estimate, RadioMap, Readings};
use portolan_io::{Format, ReadOptions, check_output, inspect, read_map, read_readings};

use crate::failure::Failure;
use crate::output::warn;
use crate::watch::watched;

/// Refuses an output that cannot be written, before any work is done for it.
fn check_target(path: &Path, force: bool) -> Result<(), Failure> {
    Format::of_output(path)?;
    Ok(check_output(path, force)?)
}

/// Says what the user should know about a file.
fn warn_about(path: &Path, warnings: &[String]) {
    let named: Vec<String> = warnings.iter().map(|w| format!("{}: {w}", path.display())).collect();
    warn(&named);
}

/// Options for each of several files. `--var` and `--unit` are about the files that need them: one
/// in Portolan's own names says everything itself, and its linear power must not be taken for dBm.
fn options_for(files: &[&Path], options: &ReadOptions) -> Result<Vec<ReadOptions>, Failure> {
    let own = ReadOptions { var: None, unit: None, ..options.clone() };
    if own == *options {
        return Ok(vec![own; files.len()]);
    }
    let chosen: Vec<ReadOptions> = files
        .iter()
        .map(|file| {
            let summary = inspect(file, &own).ok();
            let has = |name: &str| {
                summary.iter().flat_map(|summary| &summary.arrays).any(|array| array.name == name)
            };
            let named = options.var.as_deref().is_some_and(has);
            let own_names = has("map") || has("cells") || (has("slf") && has("psd"));
            if own_names && !named { own.clone() } else { options.clone() }
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

/// Reads readings and passes their warnings on.
fn load_readings(path: &Path, options: &ReadOptions) -> Result<Readings, Failure> {
    let loaded = read_readings(path, options)?;
    warn_about(path, &loaded.warnings);
    Ok(loaded.value)
}

/// Seconds of an estimate.
#[derive(Clone, Copy)]
struct Seconds {
    /// The fit alone, without the start that some methods make for themselves.
    fit: f64,
    /// All of it, file access apart.
    total: f64,
}

/// Runs a method; returns its estimate and the time it took.
fn timed_estimate(
    method: &str,
    settings: impl IntoIterator<Item = (String, String)>,
    readings: &Readings,
    context: &Context<'_>,
) -> Result<(Estimate, Seconds), Failure> {
    let estimator = build(method, settings)?;
    let start = Instant::now();
    let fit_start = Mutex::new(start);
    let mark = || *fit_start.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    let estimate = watched(method, |progress| {
        estimator.estimate(readings, context, &progress.with_fit_start(&mark))
    })?;
    let end = Instant::now();
    let fit_start = *fit_start.lock().unwrap_or_else(PoisonError::into_inner);
    let seconds = |from: Instant| (end - from).as_secs_f64();
    Ok((estimate, Seconds { fit: seconds(fit_start), total: seconds(start) }))
}

/// The band with the most power over the map.
fn strongest_band(map: &RadioMap) -> usize {
    let total = |band: usize| map.band(band).iter().filter(|v| !v.is_nan()).sum::<f64>();
    let totals: Vec<f64> = (0..map.bands()).map(total).collect();
    (0..totals.len()).max_by(|&a, &b| totals[a].total_cmp(&totals[b])).unwrap_or(0)
}
