//! A bare picture of one band, a pixel per cell with north up, and beside it a world file and the
//! coordinate system, so that a geographic information system puts it in its place.

use std::path::Path;

use super::earth::System;
use super::paint::{colour, limits, meaning, write_png};
use super::parts::{MapAbout, MapParts};
use super::strips::whole_band;
use crate::error::Problem;
use crate::output::{check_output, write_bytes, write_file};

/// Writes one band as PNG, with `.pgw` and, where the coordinate system is known, `.prj`.
pub fn write_bare_png<P: MapParts>(
    path: &Path,
    parts: &mut P,
    force: bool,
) -> Result<(), P::Error> {
    let about = parts.about().clone();
    let in_target = |problem: Problem| problem.in_target(path);
    if about.bands != 1 {
        let bands = about.bands;
        let problem = format!("a picture shows one band, these are {bands}: choose it by --bands");
        return Err(in_target(Problem::new(problem)).into());
    }
    let system = about.crs.map(System::of).transpose().map_err(in_target)?;
    let (world, projection) = (path.with_extension("pgw"), path.with_extension("prj"));
    check_output(&world, force)?;
    if system.is_some() {
        check_output(&projection, force)?;
    }
    let strip = whole_band(parts, 0)?;
    let (pixels, width) = (&strip.level[0], strip.columns.len());
    let ends = limits(pixels);
    let text = meaning(&about.labels.label(0), ends, about.unit());
    write_file(path, force, |out| {
        write_png(out, (width, about.grid.cols()), &text, |line, bytes| {
            let line = &pixels[line * width..(line + 1) * width];
            bytes.extend(line.iter().flat_map(|level| colour(*level, ends)));
        })
    })?;
    write_bytes(&world, world_file(&about).as_bytes(), force)?;
    if let Some(system) = system {
        write_bytes(&projection, system.wkt().as_bytes(), force)?;
    }
    Ok(())
}

/// Size of a pixel, no rotation, and the centre of the pixel in the north-west corner.
fn world_file(about: &MapAbout) -> String {
    let cell = about.grid.cell_m();
    format!("{cell}\n0\n0\n{}\n{}\n{}\n", -cell, about.x_m(0), about.y_m(0))
}
