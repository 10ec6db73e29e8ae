//! Maps drawn from a model into a file: at once, or strip by strip where they are beyond memory.

use std::path::Path;

use portolan::{Crs, Grid, Model, RadioMap, Scale};
use portolan_io::gis::{MapPlan, Mask, Masked, check_raster, write_raster};
use portolan_io::{
    Element, Format, MapAttributes, MapLayout, MapWriter, WriteOptions, attribute_arrays, write_map,
};

use super::far_above;
use super::needs::MapSize;
use super::parts::{ModelParts, PartFailure};
use crate::failure::Failure;
use crate::watch::watched;

/// A map to be drawn and written.
pub struct MapRequest<'a> {
    pub model: &'a Model,
    pub grid: Grid,
    pub bands: &'a [usize],
    /// What is not shown.
    pub mask: &'a Mask,
    pub output: &'a Path,
    pub f64: bool,
    pub force: bool,
}

/// Entries of one strip.
const STRIP: usize = 1 << 21;

/// Refuses a map that cannot be written, and says what a large one takes: before any work.
pub fn check_map(
    size: &MapSize,
    crs: Option<Crs>,
    (output, force): (&Path, bool),
    f64: bool,
) -> Result<(), Failure> {
    let MapSize { grid, bands, spread, .. } = *size;
    check_raster(output, &MapPlan { grid, bands, spread, crs }, force)?;
    size.needs(output, f64, STRIP as u64)?.check(output)
}

/// Draws and writes; returns what the user should know.
pub fn draw_map(request: &MapRequest<'_>) -> Result<Vec<String>, Failure> {
    let MapRequest { model, grid, bands, mask, output, force, .. } = *request;
    mask.check(model.gives_spread()).map_err(Failure::input)?;
    if Format::of_output(output)?.is_gis() {
        return by_parts(request);
    }
    if !MapSize::of_model(model, grid, bands.len()).by_strips(output)? {
        let map = watched("drawing", |progress| model.map(grid, progress))?;
        let map = mask.masked(some_bands(map, bands)?)?;
        write_map(output, &map, &WriteOptions { force, ..WriteOptions::default() })?;
        let loudest =
            (0..map.bands()).flat_map(|k| map.band(k)).filter(|x| !x.is_nan()).fold(0.0, f64::max);
        return Ok(far_above(loudest, model.loudest()).into_iter().chain(mask.note()).collect());
    }
    by_strips(request)
}

fn some_bands(map: RadioMap, bands: &[usize]) -> Result<RadioMap, Failure> {
    if bands.len() == map.bands() && bands.iter().enumerate().all(|(i, b)| i == *b) {
        return Ok(map);
    }
    Ok(map.select_bands(bands)?)
}

/// For a geographic information system: the writer asks for the parts it needs.
fn by_parts(request: &MapRequest<'_>) -> Result<Vec<String>, Failure> {
    let MapRequest { model, grid, bands, mask, output, force, .. } = *request;
    let options = WriteOptions { force, ..WriteOptions::default() };
    let loudest = watched("drawing", |progress| {
        let parts = ModelParts::new(model, grid, bands, progress)?;
        let mut masked = Masked::new(parts, mask, output)?;
        write_raster(output, &mut masked, &options)?;
        Ok::<f64, PartFailure>(masked.into_inner().loudest)
    })?;
    Ok(far_above(loudest, model.loudest()).into_iter().chain(mask.note()).collect())
}

fn by_strips(request: &MapRequest<'_>) -> Result<Vec<String>, Failure> {
    let MapRequest { model, grid, bands, mask, output, force, .. } = *request;
    let element = if request.f64 { Element::Float64 } else { Element::Float32 };
    let mut arrays = vec!["map"];
    if model.gives_spread() {
        arrays.push("spread_db");
    }
    let (rows, cols) = (grid.rows(), grid.cols());
    let layout = MapLayout { rows, cols, bands: bands.len(), arrays, element };
    let noise = model.noise_db().map(|all| bands.iter().map(|&b| all[b]).collect::<Vec<f64>>());
    let labels = model.labels().select(bands, model.bands())?;
    let scale: Scale = model.scale();
    let attributes = MapAttributes {
        grid,
        scale,
        labels: &labels,
        noise_db: noise.as_deref(),
        crs: model.crs(),
    };
    let emitters: Vec<_> = model.emitters().iter().filter_map(|e| e.in_bands(bands)).collect();
    let small = attribute_arrays(&attributes, &emitters);
    let mut writer = MapWriter::create(output, &layout, &small, force)?;
    let strip = (STRIP / (cols * bands.len()).max(1)).clamp(1, rows);
    let mut loudest = 0.0f64;
    watched("drawing", |progress| {
        for first in (0..rows).step_by(strip) {
            let last = (first + strip).min(rows);
            let share = |row: usize| row as f64 / rows as f64;
            let part = progress.part(share(first)..share(last));
            let found = model.predict_bands(&grid.sites_of_rows(first..last), bands, &part)?;
            loudest = found.power.iter().copied().fold(loudest, f64::max);
            let cube = |values: ndarray::Array2<f64>| {
                let shape = (last - first, cols, bands.len());
                values.into_shape_with_order(shape).expect("every cell of the strip was asked for")
            };
            let (mut power, mut spread) = (cube(found.power), found.spread_db.map(cube));
            mask.apply(grid, (first..last, 0..cols), &mut power, spread.as_mut());
            writer.write_rows("map", power.view())?;
            if let Some(spread) = spread {
                writer.write_rows("spread_db", spread.view())?;
            }
        }
        Ok::<(), PartFailure>(())
    })?;
    writer.finish()?;
    Ok(far_above(loudest, model.loudest()).into_iter().chain(mask.note()).collect())
}
