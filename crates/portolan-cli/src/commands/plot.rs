//! `portolan plot`: a picture of a map, or a preview in the terminal.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use portolan::{RadioMap, Region};
use portolan_io::picture::{Bitmap, MapFigure, decibels, factors_figure, map_figure, terminal};
use portolan_io::{ReadOptions, check_output, read_map_part, write_bytes};

use super::{check_apart, load_map, load_readings, options_for, strongest_band, warn_about};
use crate::args::PlotArgs;
use crate::failure::Failure;
use crate::output::{emit, say};
use crate::watch::check_interrupt;

/// Width of the preview in characters.
const PREVIEW: usize = 72;

pub fn run(args: &PlotArgs) -> Result<(), Failure> {
    if let Some(output) = &args.output {
        let png = output.extension().is_some_and(|e| e.eq_ignore_ascii_case("png"));
        if !png {
            return Err(Failure::input(format!("{}: expected a .png name", output.display())));
        }
        check_output(output, args.force)?;
    }
    let files: Vec<&Path> = [Some(&args.map), args.truth.as_ref(), args.readings.as_ref()]
        .into_iter()
        .flatten()
        .map(PathBuf::as_path)
        .collect();
    let options = options_for(&files, &args.read.options())?;
    if let Some(output) = &args.output {
        check_apart(output, &files)?;
    }
    let map = match args.region {
        None => load_map(&args.map, &options[0])?,
        Some(region) => load_part(&args.map, region, &options[0])?,
    };
    let load = |path: &PathBuf| match args.region {
        None => load_map(path, &options[1]),
        Some(region) => load_part(path, region, &options[1]),
    };
    let truth = args.truth.as_ref().map(load).transpose()?;
    if args.factors {
        return factors(args, &map, truth.as_ref());
    }
    let last = &options[options.len() - 1];
    let readings = args.readings.as_ref().map(|path| load_readings(path, last)).transpose()?;
    let band = args.band.unwrap_or_else(|| strongest_band(&map));
    if band >= map.bands() {
        return Err(Failure::input(format!(
            "--band {band}: {} has bands 0 to {}",
            args.map.display(),
            map.bands() - 1
        )));
    }
    let offset = truth.as_ref().unwrap_or(&map).scale().link().offset();
    let Some(output) = &args.output else {
        let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        return emit(&terminal(&decibels(&map.band(band), offset), PREVIEW, colour));
    };
    let picture = map_figure(&MapFigure {
        map: &map,
        truth: truth.as_ref(),
        readings: readings.as_ref(),
        band,
        title: args.title.clone(),
        offset,
    })?;
    save(output, &picture, args.force)
}

/// Reads a rectangle of a map and passes its warnings on.
fn load_part(path: &Path, region: Region, options: &ReadOptions) -> Result<RadioMap, Failure> {
    let loaded = read_map_part(path, region, options)?;
    warn_about(path, &loaded.warnings);
    Ok(loaded.value)
}

fn factors(args: &PlotArgs, map: &RadioMap, truth: Option<&RadioMap>) -> Result<(), Failure> {
    let missing = |path: &Path| {
        Failure::input(format!("{}: holds no factors (slf and psd) to draw", path.display()))
    };
    for (map, path) in [(Some(map), Some(&args.map)), (truth, args.truth.as_ref())] {
        if let (Some(map), Some(path)) = (map, path) {
            map.factors().ok_or_else(|| missing(path))?;
        }
    }
    let Some(output) = &args.output else {
        return Err(Failure::input("--factors draws a picture: name it with -o"));
    };
    let picture = factors_figure(map, truth)?;
    save(output, &picture, args.force)
}

fn save(output: &Path, picture: &Bitmap, force: bool) -> Result<(), Failure> {
    check_interrupt()?;
    write_bytes(output, &picture.png(), force)?;
    say(&format!("{}: {} x {} pixels", output.display(), picture.width(), picture.height()));
    Ok(())
}
