//! Maps drawn from a model into a file: part by part where its format takes that, else at once.

mod moments;
mod needs;
mod parts;

use std::path::Path;

use ndarray::Axis;
use portolan::{Crs, Grid, InputError, Model, Progress, Region, Site};

pub use moments::{check_moments, draw_moments};
pub use needs::{BYTES_AT_ONCE, MapSize, Needs};
pub(crate) use parts::about_model;
pub use parts::{ModelParts, PartFailure, WatchedParts};

use crate::error::Result;
use crate::format::{Format, write_map};
use crate::gis::{MapPlan, Mask, Masked, check_raster, write_raster};
use crate::map_arrays::attribute_arrays;
use crate::map_writer::{Element, MapLayout, MapWriter};
use crate::options::WriteOptions;
use crate::road::write_blocks;

/// A map to be drawn and written.
pub struct MapRequest<'a> {
    /// What is asked.
    pub model: &'a Model,
    /// Where it is asked.
    pub grid: Grid,
    /// In which bands.
    pub bands: &'a [usize],
    /// What is not shown.
    pub mask: &'a Mask,
    /// The file.
    pub output: &'a Path,
    /// Whether a map that is beyond memory is written in float64 instead of float32.
    pub f64: bool,
    /// Whether a file that is there is replaced.
    pub force: bool,
}

/// Entries of one strip.
const STRIP: usize = 1 << 22;

/// Refuses a map that cannot be written, before any work; returns what to say of a large one.
pub fn check_map(
    size: &MapSize,
    crs: Option<Crs>,
    (output, force): (&Path, bool),
    f64: bool,
) -> Result<Option<String>> {
    let MapSize { grid, bands, spread, .. } = *size;
    check_raster(output, &MapPlan { grid, bands, spread, crs }, force)?;
    size.needs(output, f64, STRIP as u64)?.check(output)
}

/// Draws and writes; returns notes for the user.
pub fn draw_map(
    request: &MapRequest<'_>,
    progress: &Progress<'_>,
) -> std::result::Result<Vec<String>, PartFailure> {
    let MapRequest { model, grid, bands, mask, output, force, .. } = *request;
    mask.check(model.gives_spread()).map_err(InputError::Request)?;
    if Format::of_output(output)?.is_gis() {
        return by_parts(request, progress);
    }
    let size = MapSize::of_model(model, grid, bands.len());
    if size.by_strips(output)? {
        return by_strips(request, size.is_large(), progress);
    }
    let map = mask.masked(model.map_bands(grid, bands, progress)?)?;
    write_map(output, &map, &WriteOptions { force, ..WriteOptions::default() })?;
    let loudest =
        (0..map.bands()).flat_map(|k| map.band(k)).filter(|x| !x.is_nan()).fold(0.0, f64::max);
    Ok(far_above(loudest, model.loudest()).into_iter().chain(mask.note()).collect())
}

/// For a geographic information system: the writer asks for the parts it needs.
fn by_parts(
    request: &MapRequest<'_>,
    progress: &Progress<'_>,
) -> std::result::Result<Vec<String>, PartFailure> {
    let MapRequest { model, grid, bands, mask, output, force, .. } = *request;
    let options = WriteOptions { force, ..WriteOptions::default() };
    let parts = ModelParts::new(model, grid, bands, progress)?;
    let mut masked = Masked::new(parts, mask, output)?;
    write_raster(output, &mut masked, &options)?;
    let loudest = masked.into_inner().loudest;
    Ok(far_above(loudest, model.loudest()).into_iter().chain(mask.note()).collect())
}

/// Into npz, strip by strip: the next one is drawn while the one before is written. Maps that are
/// large are in float32 as a rule, and leave out the spread of a reading.
fn by_strips(
    request: &MapRequest<'_>,
    large: bool,
    progress: &Progress<'_>,
) -> std::result::Result<Vec<String>, PartFailure> {
    let MapRequest { model, grid, bands, mask, output, force, .. } = *request;
    let element = if large && !request.f64 { Element::Float32 } else { Element::Float64 };
    let mut arrays = vec!["map"];
    if model.gives_spread() {
        arrays.push("spread_db");
        arrays.extend((!large).then_some("reading_spread_db"));
    }
    let (rows, cols) = (grid.rows(), grid.cols());
    let layout = MapLayout { rows, cols, bands: bands.len(), arrays, element };
    let about = about_model(model, grid, model.frame().select(bands, model.bands())?, bands);
    let emitters: Vec<_> = model.emitters().iter().filter_map(|e| e.in_bands(bands)).collect();
    let small = attribute_arrays(&about, &emitters);
    let mut writer = MapWriter::create(output, &layout, &small, force)?;
    let strip = (STRIP / (cols * bands.len()).max(1)).clamp(1, rows);
    let mut loudest = 0.0f64;
    let drawn = (0..rows).step_by(strip).map(|first| {
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
        Ok::<_, PartFailure>((power, spread))
    });
    write_blocks(output, drawn, |(power, spread)| {
        writer.write_rows("map", power.view())?;
        let Some(mut spread) = spread else { return Ok(()) };
        writer.write_rows("spread_db", spread.view())?;
        if let Some(noise) = about.noise_db.as_ref().filter(|_| !large) {
            spread.lanes_mut(Axis(2)).into_iter().for_each(|mut spectrum| {
                spectrum.iter_mut().zip(noise).for_each(|(s, noise)| *s = s.hypot(*noise));
            });
            writer.write_rows("reading_spread_db", spread.view())?;
        }
        Ok(())
    })?;
    writer.finish()?;
    Ok(far_above(loudest, model.loudest()).into_iter().chain(mask.note()).collect())
}

/// An estimate so far above every reading, in dB, is said.
const FAR_ABOVE_DB: f64 = 30.0;

/// What to say where a map is far louder than anything that was read.
fn far_above(loudest_drawn: f64, loudest_read: f64) -> Option<String> {
    let above = 10.0 * (loudest_drawn / loudest_read).log10();
    (above > FAR_ABOVE_DB).then(|| {
        format!(
            "the map reaches {above:.0} dB above the loudest reading: look at it with care, or \
             choose another method"
        )
    })
}

/// What was said of a grid.
#[derive(Clone, Copy, Debug, Default)]
pub struct GridRequest {
    /// Rows and columns.
    pub grid: Option<(usize, usize)>,
    /// Metres per cell.
    pub cell_m: Option<f64>,
    /// The centre of cell (0, 0).
    pub origin: Option<(f64, f64)>,
    /// The rectangle to cover.
    pub region: Option<Region>,
    /// The height of the map.
    pub z_m: Option<f64>,
}

/// A height at which a model can be asked.
pub fn asked_height(model: &Model, z_m: f64) -> std::result::Result<f64, InputError> {
    let wrong = |message: &str| Err(InputError::Request(message.into()));
    if !model.has_heights() {
        return wrong(
            "z: the readings were taken at one height, which says nothing about others; give their \
             heights in a column z_m",
        );
    }
    if !model.sees_heights() {
        return wrong("z: this method takes all heights as one; fit kriging, field or auto");
    }
    match z_m.is_finite() {
        true => Ok(z_m),
        false => wrong("z: give metres"),
    }
}

impl GridRequest {
    /// The grid that was asked for; what is left open is the model's own.
    pub fn on(self, model: &Model) -> std::result::Result<Grid, InputError> {
        let wrong = |message: &str| Err(InputError::Request(message.into()));
        let own = model.grid_or_default()?;
        let cell_m = self.cell_m.unwrap_or(own.cell_m());
        // Said before a region is counted in cells of no size.
        Grid::new(1, 1, cell_m)?;
        let origin = self.origin.map(|(x, y)| Site::new(x, y));
        let grid = match (self.region, self.grid) {
            (Some(_), Some(_)) if self.cell_m.is_some() => {
                wrong("--region with --grid says the cell size: leave out --cell-m")
            }
            (Some(_), _) if origin.is_some() => {
                wrong("--region says where the map begins: leave out --origin")
            }
            (Some(region), Some((rows, cols))) => {
                let steps = |n: usize| (n.max(2) - 1) as f64;
                let cell_m = (region.width_m() / steps(rows)).max(region.height_m() / steps(cols));
                Grid::new(rows, cols, cell_m)?.with_origin(region.low)
            }
            (Some(region), None) => Grid::covering(region, cell_m),
            (None, Some((rows, cols))) => {
                Grid::new(rows, cols, cell_m)?.with_origin(origin.unwrap_or(own.origin()))
            }
            (None, None) => {
                // The model's area, in cells of the size asked for.
                let cells = |n: usize| ((n as f64 * own.cell_m() / cell_m).round() as usize).max(1);
                let (rows, cols) = match self.cell_m {
                    Some(_) => (cells(own.rows()), cells(own.cols())),
                    None => (own.rows(), own.cols()),
                };
                Grid::new(rows, cols, cell_m)?.with_origin(origin.unwrap_or(own.origin()))
            }
        }?;
        let z_m = match self.z_m {
            Some(z_m) => asked_height(model, z_m)?,
            None => own.origin().z_m,
        };
        Ok(grid.at_height(z_m))
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;
    use portolan::estimate::{Kriging, Method};
    use portolan::{Context, Readings, Scale, Values};

    use super::*;
    use crate::options::ReadOptions;
    use crate::store::Store;

    fn model() -> Model {
        let sites = (0..30).map(|i| Site::new(f64::from(i * i % 31), f64::from(i * 7 % 19)));
        let power = Array2::from_shape_fn((30, 5), |(i, k)| {
            let gap = i % 7 == k;
            if gap { f64::NAN } else { 10f64.powf(-6.0 - ((i * (k + 3)) % 13) as f64 / 10.0) }
        });
        let readings =
            Readings::new(sites.collect::<Vec<_>>(), Values::Power(power), Scale::Absolute);
        Kriging::default()
            .fit(&readings.unwrap(), &Context::default(), &Progress::silent())
            .unwrap()
    }

    fn draw(
        model: &Model,
        grid: Grid,
        output: &Path,
        progress: &Progress<'_>,
    ) -> std::result::Result<Vec<String>, PartFailure> {
        let mask = Mask::new(&[], &[], None)?;
        let bands = &[3, 1][..];
        let request =
            MapRequest { model, grid, bands, mask: &mask, output, f64: false, force: false };
        draw_map(&request, progress)
    }

    #[test]
    fn a_file_that_is_written_strip_by_strip_holds_the_map() {
        let folder = tempfile::tempdir().unwrap();
        let (model, silent) = (model(), Progress::silent());
        // Of several strips: two bands in more cells than one holds.
        let grid = Grid::new(2300, 1000, 0.02).unwrap();
        let path = folder.path().join("map.npz");
        draw(&model, grid, &path, &silent).unwrap();
        let read = crate::read_map(&path, &ReadOptions::default()).unwrap().value;
        assert_eq!(read, model.map_bands(grid, &[3, 1], &silent).unwrap());
        let mut npz = crate::npz::Npz::open(std::fs::File::open(&path).unwrap()).unwrap();
        let store: &mut dyn Store = &mut npz;
        let reading = store.find("reading_spread_db").unwrap().unwrap();
        assert_eq!(reading, read.reading_spread_db().unwrap().into_dyn());
    }

    #[test]
    fn a_drawing_that_is_stopped_leaves_nothing() {
        let model = model();
        for name in ["map.npz", "map.tif", "map.zarr", "map.nc"] {
            let folder = tempfile::tempdir().unwrap();
            let grid = Grid::new(2300, 1000, 0.02).unwrap();
            let halfway = |done: f64| done < 0.5;
            let stopped = draw(&model, grid, &folder.path().join(name), &Progress::new(&halfway));
            let failure = stopped.unwrap_err();
            assert!(matches!(failure, PartFailure::Draw(_)), "{name}: {failure}");
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{name}");
        }
    }
}
