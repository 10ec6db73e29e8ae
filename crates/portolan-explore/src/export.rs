//! Files to take away, the same bytes that the command writes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use portolan::{Model, Progress, RadioMap, Readings};
use portolan_io::covered::Counted;
use portolan_io::export::{BYTES_AT_ONCE, MapRequest, MapSize, asked_height, check_map, draw_map};
use portolan_io::gis::{Chosen, Mask, MaskRule, Masked, WholeMap, write_emitters, write_raster};
use portolan_io::json::{advice_csv, advice_json};
use portolan_io::picture::{
    MapFigure, PictureKind, Scene, Typeface, advice_figure, factors_figure, map_figure,
    residuals_figure, spectrum_figure,
};
use portolan_io::{
    Format, MomentFormat, PlaceTable, WriteOptions, write_map, write_model, write_predictions,
    write_readings,
};
use tempfile::TempDir;

use crate::answer::Refusal;
use crate::jobs::{Job, Outcome};
use crate::library::{Item, Library};
use crate::request::{ExportRequest, What};
use crate::surface::Surface;

/// Bytes of memory that drawing a whole map for a file may take; larger ones are for the command.
const MOST_MEMORY: u64 = 1_500_000_000;

/// A file that was written, in a folder that goes with it.
pub struct Written {
    _folder: TempDir,
    pub path: PathBuf,
    /// The name that a browser saves it under.
    pub name: String,
}

fn folder() -> Result<TempDir, Refusal> {
    tempfile::Builder::new()
        .prefix("portolan-export-")
        .tempdir()
        .map_err(|error| Refusal::broken(format!("no folder to write to: {error}")))
}

/// Writes what an item can become. `named` is what the command's file would be called.
pub fn write(
    library: &Library,
    item: &Arc<Item>,
    request: &ExportRequest,
    named: &str,
    progress: &Progress<'_>,
) -> Result<Written, Refusal> {
    let folder = folder()?;
    let path = folder.path().join(named);
    write_to(&path, library, item, request, progress)
        .map_err(|refusal| refusal.without(folder.path()))?;
    finished(folder, &path, named)
}

fn write_to(
    path: &Path,
    library: &Library,
    item: &Arc<Item>,
    request: &ExportRequest,
    progress: &Progress<'_>,
) -> Result<(), Refusal> {
    let options = WriteOptions::default();
    match request.what {
        What::Readings => {
            let readings = library.readings_of(item);
            let readings = readings.as_ref().and_then(|item| item.readings());
            let readings =
                readings.ok_or_else(|| Refusal::input("there are no readings to write"))?;
            write_readings(path, readings, &options)?;
        }
        What::Model => write_model(path, model_of(item)?, false)?,
        What::Emitters => {
            write_emitters(path, model_of(item)?, false)?;
        }
        What::Place => {
            let at = request.place.ok_or_else(|| Refusal::input("say the place with x and y"))?;
            let model = model_of(item)?;
            let mut columns = vec![("x_m", at.x_m), ("y_m", at.y_m)];
            if let Some(z_m) = request.grid.z_m {
                columns.push(("z_m", asked_height(model, z_m)?));
            }
            let (header, line) =
                columns.into_iter().map(|(name, at)| (name.to_string(), at.to_string())).unzip();
            let site = at.at_height(request.grid.z_m.unwrap_or(model.height_m()));
            let places = PlaceTable { header, lines: vec![line], sites: vec![site] };
            write_places(path, model, &places, request, progress)?;
        }
        What::Places => {
            let model = model_of(item)?;
            let table = request.table.as_ref();
            let table = table.ok_or_else(|| Refusal::input("upload a table of places first"))?;
            write_places(path, model, &table.places(model)?, request, progress)?;
        }
        What::Map => match item.surface()?.as_ref() {
            Surface::Model(model) => write_model_map(path, model, request, progress)?,
            Surface::Map(map) => write_stored_map(path, map, request)?,
        },
        What::Picture | What::Spectrum | What::Factors | What::Coverage => {
            let readings = library.readings_of(item).filter(|_| request.sensors);
            let readings = readings.as_ref().and_then(|item| item.readings());
            let bytes = match request.what {
                What::Coverage => coverage(item, request, progress)?,
                _ => picture(item, request, readings.map(Arc::as_ref), progress)?,
            };
            std::fs::write(path, bytes)
                .map_err(|error| Refusal::broken(format!("the file: {error}")))?;
        }
    }
    Ok(())
}

fn model_of(item: &Item) -> Result<&Model, Refusal> {
    match item.surface()?.as_ref() {
        Surface::Model(model) => Ok(model),
        Surface::Map(_) => Err(Refusal::input("this is a map, not a model")),
    }
}

fn check_memory(entries: usize) -> Result<(), Refusal> {
    let bytes = (entries as u64).saturating_mul(BYTES_AT_ONCE);
    if bytes <= MOST_MEMORY {
        return Ok(());
    }
    Err(Refusal::input(format!(
        "the map takes {} of memory at once: choose larger cells or fewer bands, a format that is \
         written part by part (.tif, .zarr), or use the command",
        portolan_io::shown_bytes(bytes)
    )))
}

fn write_model_map(
    path: &Path,
    model: &Model,
    request: &ExportRequest,
    progress: &Progress<'_>,
) -> Result<(), Refusal> {
    let grid = request.grid.on(model)?;
    let bands = request.bands.clone().unwrap_or_else(|| (0..model.bands()).collect());
    let size = MapSize::of_model(model, grid, bands.len());
    if !size.by_strips(path)? {
        check_memory(grid.cells().saturating_mul(bands.len()))?;
    }
    check_map(&size, model.crs(), (path, false), false)?;
    let rules = rules(request)?;
    let mask = Mask::new(&rules, model.sites(), model.crs())?;
    let request = MapRequest {
        model,
        grid,
        bands: &bands,
        mask: &mask,
        output: path,
        f64: false,
        force: false,
    };
    draw_map(&request, progress)?;
    Ok(())
}

fn rules(request: &ExportRequest) -> Result<Vec<MaskRule>, Refusal> {
    let rule =
        |mask: &String| mask.parse().map_err(|e| Refusal::input(format!("mask={mask}: {e}")));
    request.masks.iter().map(rule).collect()
}

fn write_stored_map(path: &Path, map: &RadioMap, request: &ExportRequest) -> Result<(), Refusal> {
    let rules = rules(request)?;
    if rules.iter().any(MaskRule::needs_sites) {
        return Err(Refusal::input("a map does not know its sensors: use mask=spread=DB"));
    }
    let mask = Mask::new(&rules, &[], map.crs())?;
    mask.check(map.spread_db().is_some()).map_err(Refusal::input)?;
    let options = WriteOptions::default();
    if Format::of_output(path)?.is_gis() {
        let all: Vec<usize> = (0..map.bands()).collect();
        let chosen = Chosen::new(WholeMap::new(map), request.bands.as_deref().unwrap_or(&all))?;
        let mut masked = Masked::new(chosen, &mask, path)?;
        return Ok(write_raster(path, &mut masked, &options)?);
    }
    let map = match &request.bands {
        Some(bands) => map.select_bands(bands)?,
        None => map.clone(),
    };
    Ok(write_map(path, &mask.masked(map)?, &options)?)
}

fn write_places(
    path: &Path,
    model: &Model,
    places: &PlaceTable,
    request: &ExportRequest,
    progress: &Progress<'_>,
) -> Result<(), Refusal> {
    let bands = request.bands.clone().unwrap_or_else(|| (0..model.bands()).collect());
    check_memory(places.sites.len().saturating_mul(bands.len()))?;
    let points = places
        .points(model, &MomentFormat::default())
        .map_err(|why| Refusal::input(format!("places: {why}")))?;
    let found = model.predict_points(&points, &bands, progress)?;
    let about = (model.labels(), &bands[..], model.scale());
    Ok(write_predictions(path, places, &found, about, false)?)
}

fn kind_of(ending: &str, known: &str) -> Result<PictureKind, Refusal> {
    PictureKind::of_ending(ending)
        .ok_or_else(|| Refusal::input(format!("format={ending}: expected {known}")))
}

fn coverage(
    item: &Item,
    request: &ExportRequest,
    progress: &Progress<'_>,
) -> Result<Vec<u8>, Refusal> {
    let above = request.above.ok_or_else(|| Refusal::input("say the level in dB with above"))?;
    let surface = item.surface()?;
    let bands = request.bands.clone().unwrap_or_else(|| (0..surface.bands()).collect());
    let counted = match surface.as_ref() {
        Surface::Model(model) => {
            Counted::of_model(model, request.grid.on(model)?, &bands, above, progress)?
        }
        Surface::Map(map) => Counted::of_map(map, &bands, above),
    };
    if request.ending == "json" {
        return Ok(format!("{:#}\n", counted.json()).into_bytes());
    }
    let kind = kind_of(&request.ending, "json, png, svg or pdf")?;
    Ok(kind.bytes(&counted.scene(request.title.as_deref(), &Typeface::new())?, None)?.0)
}

fn picture(
    item: &Item,
    request: &ExportRequest,
    readings: Option<&Readings>,
    progress: &Progress<'_>,
) -> Result<Vec<u8>, Refusal> {
    let kind = kind_of(&request.ending, "png, svg or pdf")?;
    let drawn;
    let map = match item.surface()?.as_ref() {
        Surface::Map(map) => map.as_ref(),
        Surface::Model(model) => {
            let grid = request.grid.on(model)?;
            check_memory(grid.cells().saturating_mul(model.bands()))?;
            drawn = model.map(grid, progress)?;
            &drawn
        }
    };
    let look = request.look();
    let (offset, title) = (map.scale().link().offset(), request.title.as_deref());
    let scene = if request.what == What::Factors {
        factors_figure(map, None)?
    } else if request.what == What::Spectrum {
        let bands = request.bands.clone().unwrap_or_else(|| (0..map.bands()).collect());
        spectrum_figure(map, &bands, readings, title, offset, &look)?
    } else {
        let (band, look) = (request.band, &look);
        map_figure(&MapFigure { map, truth: None, readings, band, title, offset, look })?
    };
    Ok(kind.bytes(&scene, None)?.0)
}

/// One file as it is; several, or a folder, as a zip.
fn finished(folder: TempDir, path: &Path, named: &str) -> Result<Written, Refusal> {
    let broken = |error: std::io::Error| Refusal::broken(format!("{named}: {error}"));
    let beside: Vec<PathBuf> = std::fs::read_dir(folder.path())
        .and_then(|entries| entries.map(|entry| entry.map(|e| e.path())).collect())
        .map_err(broken)?;
    if beside.len() == 1 && path.is_file() {
        return Ok(Written { path: path.to_owned(), name: named.to_string(), _folder: folder });
    }
    let packed = tempfile::Builder::new().prefix("portolan-export-").tempdir().map_err(broken)?;
    let name = format!("{named}.zip");
    let target = packed.path().join(&name);
    let mut files = Vec::new();
    gather(folder.path(), &mut files).map_err(broken)?;
    files.sort();
    let mut zip = zip::ZipWriter::new(std::fs::File::create(&target).map_err(broken)?);
    let stored =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for file in files {
        let inner =
            file.strip_prefix(folder.path()).unwrap_or(&file).to_string_lossy().into_owned();
        zip.start_file(inner, stored).map_err(|error| broken(error.into()))?;
        let mut from = std::fs::File::open(&file).map_err(broken)?;
        std::io::copy(&mut from, &mut zip).map_err(broken)?;
    }
    zip.finish().map_err(|error| broken(error.into()))?;
    Ok(Written { path: target, name, _folder: packed })
}

fn gather(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            gather(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// Writes what came of a job.
pub fn write_job(job: &Job, ending: &str) -> Result<Written, Refusal> {
    let outcome = job.outcome().ok_or_else(|| Refusal::input("the job is not done"))?;
    let drawn =
        |scene: Scene, known| Ok::<_, Refusal>(kind_of(ending, known)?.bytes(&scene, None)?.0);
    let (name, bytes) = match outcome.as_ref() {
        Outcome::Validated { readings, rows, .. } => {
            let done = rows
                .iter()
                .filter_map(|row| row.found.as_ref().ok().map(|found| (row.label.as_str(), found)));
            let scene = residuals_figure(readings, &done.collect::<Vec<_>>())?;
            ("errors", drawn(scene, "png, svg or pdf")?)
        }
        Outcome::Advised { sensors, map, advice } => {
            let bytes = match ending {
                "csv" => advice_csv(advice, map.grid()).into_bytes(),
                "json" => format!("{:#}\n", advice_json(advice, map.grid())).into_bytes(),
                _ => drawn(advice_figure(sensors, map, advice)?, "csv, json, png, svg or pdf")?,
            };
            ("places", bytes)
        }
        Outcome::Item(_) => return Err(Refusal::input("the job made a model: export that")),
    };
    let (folder, name) = (folder()?, format!("{name}.{ending}"));
    let path = folder.path().join(&name);
    std::fs::write(&path, bytes).map_err(|error| Refusal::broken(format!("{name}: {error}")))?;
    Ok(Written { path, name, _folder: folder })
}
