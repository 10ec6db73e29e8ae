//! `portolan plot`: a picture of a map, or a preview in the terminal.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use portolan::{RadioMap, Region};
use portolan_io::export::GridRequest;
use portolan_io::picture::{
    Layer, MapFigure, PictureError, PictureKind, Typeface, decibels, factors_figure, map_figure,
    spectrum_figure, terminal,
};
use portolan_io::{ReadOptions, read_map_part, read_model};

use super::moments::at_moment;
use super::picture::{axes, kind_of, look, save};
use super::{
    check_apart, load_map, load_readings, named_bands, options_for, strongest_band, warn_about,
};
use crate::args::PlotArgs;
use crate::failure::Failure;
use crate::output::emit;
use crate::watch::watched;

/// Width of the preview in characters.
const PREVIEW: usize = 72;

pub fn run(args: &PlotArgs) -> Result<(), Failure> {
    let kind = args.output.as_ref().map(|output| kind_of(output, args.force)).transpose()?;
    let files: Vec<&Path> = [Some(&args.map), args.truth.as_ref(), args.readings.as_ref()]
        .into_iter()
        .flatten()
        .map(PathBuf::as_path)
        .collect();
    let options = options_for(&files, &args.read.options())?;
    if let Some(output) = &args.output {
        let drawn = [args.look.under.as_ref(), args.look.font.as_ref()];
        let drawn = drawn.into_iter().flatten().map(PathBuf::as_path);
        check_apart(output, &files.iter().copied().chain(drawn).collect::<Vec<_>>())?;
    }
    let look = look(&args.look, Layer::of(args.above, args.spread))?;
    let map = match args.region {
        region if args.moment.at.is_some() => drawn(args, region)?,
        None => load_map(&args.map, &options[0])?,
        Some(region) => load_part(&args.map, region, &options[0])?,
    };
    let load = |path: &PathBuf| match args.region {
        None => load_map(path, &options[1]),
        Some(region) => load_part(path, region, &options[1]),
    };
    let truth = args.truth.as_ref().map(load).transpose()?;
    if args.factors {
        return factors(args, kind, &map, truth.as_ref());
    }
    let last = &options[options.len() - 1];
    let readings = args.readings.as_ref().map(|path| load_readings(path, last)).transpose()?;
    let band = match &args.band {
        None => strongest_band(&map),
        Some(name) => {
            named_bands(Some(std::slice::from_ref(name)), map.labels(), map.bands(), "map")?[0]
        }
    };
    let offset = truth.as_ref().unwrap_or(&map).scale().link().offset();
    let (Some(output), Some(kind)) = (&args.output, kind) else {
        let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let field = decibels(&map.band(band), offset);
        let seen = axes(&args.look).seen(&field).to_owned();
        return emit(&terminal(&seen, PREVIEW, colour));
    };
    let (title, readings) = (args.title.as_deref(), readings.as_ref());
    let scene = if args.by_frequency || args.bands.is_some() {
        let bands = named_bands(args.bands.as_deref(), map.labels(), map.bands(), "map")?;
        spectrum_figure(&map, &bands, readings, title, offset, &look)
    } else {
        let (map, truth, look) = (&map, truth.as_ref(), &look);
        map_figure(&MapFigure { map, truth, readings, band, title, offset, look })
    };
    let scene = scene.map_err(|error| match error {
        PictureError::NoSpread(_) => Failure::from(error).about(&args.map),
        error => error.into(),
    })?;
    save(output, kind, &scene, &look.typeface, args.look.width, args.force)
}

/// The map of a model at the moment asked for.
fn drawn(args: &PlotArgs, region: Option<Region>) -> Result<RadioMap, Failure> {
    let model = at_moment(read_model(&args.map)?, &args.moment, &args.read.survey.moment_format())?;
    let grid = GridRequest { region, ..GridRequest::default() }.on(&model)?;
    Ok(watched("drawing", |progress| model.map(grid, progress))?)
}

/// Reads a rectangle of a map and passes its warnings on.
fn load_part(path: &Path, region: Region, options: &ReadOptions) -> Result<RadioMap, Failure> {
    let loaded = read_map_part(path, region, options)?;
    warn_about(path, &loaded.warnings);
    Ok(loaded.value)
}

fn factors(
    args: &PlotArgs,
    kind: Option<PictureKind>,
    map: &RadioMap,
    truth: Option<&RadioMap>,
) -> Result<(), Failure> {
    let missing = |path: &Path| {
        Failure::input(format!("{}: holds no factors (slf and psd) to draw", path.display()))
    };
    for (map, path) in [(Some(map), Some(&args.map)), (truth, args.truth.as_ref())] {
        if let (Some(map), Some(path)) = (map, path) {
            map.factors().ok_or_else(|| missing(path))?;
        }
    }
    let (Some(output), Some(kind)) = (&args.output, kind) else {
        return Err(Failure::input("--factors draws a picture: name it with -o"));
    };
    let scene = factors_figure(map, truth)?;
    save(output, kind, &scene, &Typeface::new(), args.look.width, args.force)
}
