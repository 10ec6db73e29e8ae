//! One door to every file that a geographic information system opens.

use std::path::Path;

use portolan::{Crs, Grid};

use super::earth::System;
use super::parts::MapParts;
use super::{bare_png, geojson, geotiff, kml, netcdf, zarr};
use crate::error::{Check, Problem, Result};
use crate::format::Format;
use crate::options::WriteOptions;

/// What a map will be like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MapPlan {
    /// What it is drawn on.
    pub grid: Grid,
    /// Number of bands.
    pub bands: usize,
    /// Whether it has a spread.
    pub spread: bool,
    /// Where on Earth it lies.
    pub crs: Option<Crs>,
}

/// Refuses a map that its output cannot hold, before anything is fitted or drawn.
pub fn check_raster(path: &Path, plan: &MapPlan, force: bool) -> Result<()> {
    let format = Format::of_output(path)?;
    let checked = || -> Check<()> {
        plan.crs.map(System::of).transpose()?;
        match format {
            Format::NetCdf => netcdf::check_size(plan),
            Format::Kmz => kml::check_place(plan.crs),
            Format::Png => bare_png::check_bands(plan.bands),
            _ => Ok(()),
        }
    };
    if !format.is_gis() {
        return Ok(());
    }
    checked().map_err(|problem| problem.in_target(path))?;
    match format {
        Format::Png => bare_png::check_beside(path, plan.crs.is_some(), force),
        _ => Ok(()),
    }
}

/// Writes a map, part by part, in the format that the name ends in.
///
/// ```
/// use portolan::{Grid, RadioMap, Scale};
/// use portolan_io::WriteOptions;
/// use portolan_io::gis::{WholeMap, write_raster};
/// # let folder = tempfile::tempdir()?;
/// let power = ndarray::Array3::from_elem((30, 40, 2), 1e-7);
/// let map = RadioMap::dense(Grid::new(30, 40, 1.0)?, power, Scale::Absolute)?;
/// for name in ["map.tif", "map.nc", "map.zarr"] {
///     let path = folder.path().join(name);
///     write_raster(&path, &mut WholeMap::new(&map), &WriteOptions::default())?;
///     assert!(path.exists());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_raster<P: MapParts>(
    path: &Path,
    parts: &mut P,
    options: &WriteOptions,
) -> std::result::Result<(), P::Error> {
    let about = parts.about();
    let (grid, bands, spread, crs) = (about.grid, about.bands, about.spread, about.frame.crs);
    check_raster(path, &MapPlan { grid, bands, spread, crs }, options.force)?;
    match Format::of_output(path)? {
        Format::GeoTiff => geotiff::write_geotiff(path, parts, options.force),
        Format::NetCdf => netcdf::write_netcdf(path, parts, options.force),
        Format::Zarr => zarr::write_zarr(path, parts, options.force),
        Format::GeoJson => geojson::write_contours(path, parts, &options.levels, options.force),
        Format::Kmz => kml::write_kmz(path, parts, options.force),
        Format::Png => bare_png::write_bare_png(path, parts, options.force),
        other => {
            let problem = format!("{other} is not written part by part");
            Err(Problem::new(problem).in_target(path).into())
        }
    }
}
