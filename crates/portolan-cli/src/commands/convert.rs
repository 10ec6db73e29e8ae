//! `portolan convert`: between file formats.

use portolan::{Crs, RadioMap, Site};
use portolan_io::export::{PartFailure, WatchedParts};
use portolan_io::gis::{
    Chosen, MapParts, Mask, MaskRule, Masked, StoredMap, WholeMap, write_emitters, write_raster,
};
use portolan_io::{
    Content, Format, IoError, Loaded, WriteOptions, read, read_map, read_readings, write_map,
    write_readings,
};

use super::{check_apart, check_target, load_readings, named_bands, warn_about};
use crate::args::{ConvertArgs, KindName};
use crate::failure::Failure;
use crate::output::{say, warn};
use crate::watch::{check_interrupt, watched};

pub fn run(args: &ConvertArgs) -> Result<(), Failure> {
    check_target(&args.output, args.force)?;
    let mut inputs = vec![args.input.as_path()];
    inputs.extend(args.readings.as_deref());
    check_apart(&args.output, &inputs)?;
    let format = Format::of_output(&args.output)?;
    check_words(args, format)?;
    let what = convert(args, format)?;
    say(&format!("{}: {what} from {}", args.output.display(), args.input.display()));
    Ok(())
}

/// Refuses options that say nothing about this output, before any file is read.
fn check_words(args: &ConvertArgs, format: Format) -> Result<(), Failure> {
    if !args.levels.is_empty() && format != Format::GeoJson {
        return Err(Failure::input("--levels is about areas of a map: write them as .geojson"));
    }
    if let Some(level) = args.levels.iter().find(|level| !level.is_finite()) {
        return Err(Failure::input(format!("--levels {level}: expected numbers in dB")));
    }
    let needs_sites = args.mask.iter().any(MaskRule::needs_sites);
    match (needs_sites, &args.readings) {
        (true, None) => Err(Failure::input(
            "--mask distance and --mask hull ask where the sensors stood: say it with --readings",
        )),
        (false, Some(_)) => Err(Failure::input(
            "--readings is for --mask distance=METRES and --mask hull: add one, or leave it out",
        )),
        _ => Ok(()),
    }
}

fn convert(args: &ConvertArgs, format: Format) -> Result<&'static str, Failure> {
    let options = args.read.options();
    if format.is_gis()
        && args.kind != Some(KindName::Readings)
        && let Some(Loaded { value, warnings }) = StoredMap::open(&args.input, &options)?
    {
        warn_about(&args.input, &warnings);
        write_parts(args, format, value)?;
        return Ok("a map");
    }
    let loaded = match args.kind {
        None => read(&args.input, &options)?,
        Some(KindName::Map) => {
            let Loaded { value, warnings } = read_map(&args.input, &options)?;
            Loaded { value: Content::Map(value), warnings }
        }
        Some(KindName::Readings) => {
            let Loaded { value, warnings } = read_readings(&args.input, &options)?;
            Loaded { value: Content::Readings(value), warnings }
        }
    };
    warn_about(&args.input, &loaded.warnings);
    check_interrupt()?;
    match loaded.value {
        Content::Map(map) if format.is_gis() => {
            write_parts(args, format, WholeMap::new(&map))?;
            Ok("a map")
        }
        Content::Map(map) => {
            write_whole(args, map)?;
            Ok("a map")
        }
        Content::Readings(readings) => {
            only_maps(args, "readings")?;
            warn_of_metres(format, readings.crs());
            write_readings(&args.output, &readings, &write_options(args))?;
            Ok("readings")
        }
        Content::Model(model) if format == Format::GeoJson => {
            only_maps(args, "a model")?;
            warn_of_metres(format, model.crs());
            write_emitters(&args.output, &model, args.force)?;
            Ok("emitters")
        }
        Content::Model(_) => Err(Failure::input(format!(
            "{}: holds a model: draw a map of it with `portolan predict`",
            args.input.display()
        ))),
    }
}

fn write_options(args: &ConvertArgs) -> WriteOptions {
    let unit = args.output_unit.map(|u| u.unit());
    let levels = args.levels.clone();
    WriteOptions { force: args.force, unit, levels, ..WriteOptions::default() }
}

/// Refuses options that are about maps.
fn only_maps(args: &ConvertArgs, found: &str) -> Result<(), Failure> {
    let given = [
        ("--bands", args.bands.is_some()),
        ("--levels", !args.levels.is_empty()),
        ("--mask", !args.mask.is_empty()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((name, _)) => {
            let file = args.input.display();
            Err(Failure::input(format!("{file}: holds {found}, {name} is about maps")))
        }
        None => Ok(()),
    }
}

/// Says that a file for a geographic information system does not say where on Earth it is.
fn warn_of_metres(format: Format, crs: Option<Crs>) {
    if format == Format::GeoJson && crs.is_none() {
        let line = "where on Earth it lies is not known: coordinates are metres, not degrees; say \
                    it with --crs";
        warn(&[line.to_string()]);
    }
}

/// The mask that was asked for, with the sensors of other readings.
fn mask(args: &ConvertArgs, crs: Option<Crs>) -> Result<Mask, Failure> {
    let mut sites: Vec<Site> = Vec::new();
    if let Some(path) = &args.readings {
        let readings = load_readings(path, &args.read.options())?;
        if let (Some(a), Some(b)) = (crs, readings.crs())
            && a != b
        {
            let path = path.display();
            return Err(Failure::input(format!("{path}: is in {b}, the map in {a}")));
        }
        sites = readings.sites().to_vec();
    }
    Ok(Mask::new(&args.mask, &sites, crs)?)
}

fn write_whole(args: &ConvertArgs, map: RadioMap) -> Result<(), Failure> {
    let mask = mask(args, map.crs())?;
    mask.check(map.spread_db().is_some()).map_err(Failure::input)?;
    let map = match &args.bands {
        Some(names) => {
            let bands = named_bands(Some(names), map.labels(), map.bands(), "map")?;
            map.select_bands(&bands)?
        }
        None => map,
    };
    write_map(&args.output, &mask.masked(map)?, &write_options(args))?;
    warn(&Vec::from_iter(mask.note()));
    Ok(())
}

fn write_parts(
    args: &ConvertArgs,
    format: Format,
    parts: impl MapParts<Error = IoError>,
) -> Result<(), Failure> {
    let about = parts.about();
    let mask = mask(args, about.frame.crs)?;
    mask.check(about.spread).map_err(Failure::input)?;
    warn_of_metres(format, about.frame.crs);
    let bands = named_bands(args.bands.as_deref(), &about.frame.labels, about.bands, "map")?;
    let chosen = Chosen::new(parts, &bands)?;
    watched("writing", |progress| {
        let parts = WatchedParts::new(chosen, progress);
        let mut masked = Masked::new(parts, &mask, &args.output)?;
        write_raster(&args.output, &mut masked, &write_options(args))
    })
    .map_err(|failure: PartFailure| Failure::from(failure))?;
    warn(&Vec::from_iter(mask.note()));
    Ok(())
}
