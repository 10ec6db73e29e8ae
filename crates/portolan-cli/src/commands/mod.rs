//! One file per command, and the steps several of them share.

pub mod compare;
pub mod completions;
pub mod convert;
pub mod demo;
pub mod estimate;
pub mod inspect;
pub mod methods;
pub mod plot;
pub mod score;
pub mod sense;
pub mod simulate;

use std::path::Path;
use std::time::Instant;

use portolan::estimate::build;
use portolan::{Context, Estimate, RadioMap, Readings};
use portolan_io::{Format, ReadOptions, check_output, read_map, read_readings};

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

/// Runs a method; returns its estimate and the seconds that the fit took.
fn timed_estimate(
    method: &str,
    settings: impl IntoIterator<Item = (String, String)>,
    readings: &Readings,
    context: &Context,
) -> Result<(Estimate, f64), Failure> {
    let estimator = build(method, settings)?;
    let start = Instant::now();
    let estimate = watched(method, |progress| estimator.estimate(readings, context, progress))?;
    Ok((estimate, start.elapsed().as_secs_f64()))
}

/// The band with the most power over the map.
fn strongest_band(map: &RadioMap) -> usize {
    let total = |band: usize| map.band(band).iter().filter(|v| !v.is_nan()).sum::<f64>();
    let totals: Vec<f64> = (0..map.bands()).map(total).collect();
    (0..totals.len()).max_by(|&a, &b| totals[a].total_cmp(&totals[b])).unwrap_or(0)
}
