//! `portolan demo`: the tour in one command.

use std::path::{Path, PathBuf};

use portolan::score::score;
use portolan::sense::{Sensing, SensorLayout, sense};
use portolan::simulate::{Scenario, simulate};
use portolan::{Context, Emitters, Grid, RadioMap, Readings};
use portolan_io::picture::{Axes, Look, MapFigure, decibels, map_figure, methods_figure, terminal};
use portolan_io::{WriteOptions, check_output, write_map, write_readings};

use super::picture::draw;
use super::{MethodCall, strongest_band, timed_estimate};
use crate::args::DemoArgs;
use crate::failure::Failure;
use crate::output::{emit, figure, say, table};
use crate::watch::{check_interrupt, watched};

/// What the tour shows, plainest first; the last is drawn large.
const TOUR: [&str; 7] = ["nearest", "idw", "linear", "thin_plate", "kriging", "unn", "field"];
const FILES: [&str; 5] = ["truth.npz", "readings.npz", "map.npz", "methods.png", "map.png"];

pub fn run(args: &DemoArgs) -> Result<(), Failure> {
    let folder = folder(args)?;
    say("A city block of 64 x 64 m, 64 bands, 4 transmitters; 410 sensors (10 % of the cells).");
    let scenario = Scenario { seed: args.seed, ..Scenario::new(Grid::new(64, 64, 1.0)?) };
    let truth = watched("simulating", |_| simulate(&scenario))?;
    let readings = sense(&truth, &Sensing::exact(SensorLayout::Fraction(0.1), args.seed))?;

    let context = Context {
        emitters: Emitters::Count(scenario.emitters),
        seed: args.seed,
        ..Context::default()
    };
    let (mut rows, mut estimates) = (Vec::new(), Vec::new());
    for method in TOUR {
        let call = MethodCall::parse(method)?;
        let (_, map, seconds) = timed_estimate(&call, &readings, &context)?;
        let score = score(&map, &truth, None)?;
        rows.push(vec![
            method.to_string(),
            figure(score.ssim, 3),
            format!("{:.2}", score.rmse_db),
            format!("{:.3}", seconds.total),
        ]);
        estimates.push((format!("{method}, SSIM {}", figure(score.ssim, 3)), map));
    }
    check_interrupt()?;
    let preview = write(&folder, args.force, &truth, &readings, &estimates)?;
    emit(&preview)?;
    emit(&table(&["method", "SSIM", "rmse dB", "seconds"], &rows))?;
    let show = |file: &str| folder.join(file).display().to_string();
    emit(&format!(
        "\npictures: {}, {}\nfiles:    {}, {}, {}\nnext:     portolan estimate {} -o mine.npz",
        show("methods.png"),
        show("map.png"),
        show("truth.npz"),
        show("readings.npz"),
        show("map.npz"),
        show("readings.npz")
    ))
}

/// The folder asked for, or the first free name; made if need be.
fn folder(args: &DemoArgs) -> Result<PathBuf, Failure> {
    let folder = match &args.out {
        Some(folder) => folder.clone(),
        None => (1..)
            .map(|n| {
                PathBuf::from(if n == 1 {
                    "portolan-demo".into()
                } else {
                    format!("portolan-demo-{n}")
                })
            })
            .find(|folder| !folder.exists() || args.force)
            .expect("some name is free"),
    };
    std::fs::create_dir_all(&folder)
        .map_err(|error| Failure::input(format!("{}: {error}", folder.display())))?;
    for file in FILES {
        check_output(&folder.join(file), args.force)?;
    }
    Ok(folder)
}

/// Writes all files; returns the preview for the terminal.
fn write(
    folder: &Path,
    force: bool,
    truth: &RadioMap,
    readings: &Readings,
    estimates: &[(String, RadioMap)],
) -> Result<String, Failure> {
    let band = strongest_band(truth);
    let offset = truth.scale().link().offset();
    let maps: Vec<(String, &RadioMap)> =
        estimates.iter().map(|(name, map)| (name.clone(), map)).collect();
    let best = maps[maps.len() - 1].1;
    let all = methods_figure(truth, readings, &maps, band, offset)?;
    let look = Look::default();
    let one = map_figure(&MapFigure {
        map: best,
        truth: Some(truth),
        readings: Some(readings),
        band,
        title: None,
        offset,
        look: &look,
    })?;
    let options = WriteOptions { force, ..WriteOptions::default() };
    write_map(folder.join(FILES[0]), truth, &options)?;
    write_readings(folder.join(FILES[1]), readings, &options)?;
    write_map(folder.join(FILES[2]), best, &options)?;
    draw(&folder.join(FILES[3]), &all, force)?;
    draw(&folder.join(FILES[4]), &one, force)?;
    use std::io::IsTerminal;
    let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let seen = Axes::Xy.seen(&decibels(&best.band(band), offset)).to_owned();
    Ok(if colour { terminal(&seen, 64, true) } else { String::new() })
}
