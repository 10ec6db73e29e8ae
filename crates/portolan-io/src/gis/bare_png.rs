//! A bare picture of one band, a pixel per cell with north up, and beside it a world file and the
//! coordinate system, so that a geographic information system puts it in its place.

use std::path::{Path, PathBuf};

use super::blocks::each_band;
use super::earth::System;
use super::paint::{colour, limits, meaning, write_png};
use super::parts::{MapAbout, MapParts};
use crate::error::{Check, Problem, Result};
use crate::output::{check_output, write_bytes, write_file};

/// Writes one band as PNG, with `.pgw` and, where the coordinate system is known, `.prj`.
pub(super) fn write_bare_png<P: MapParts>(
    path: &Path,
    parts: &mut P,
    force: bool,
) -> std::result::Result<(), P::Error> {
    let about = parts.about().clone();
    let in_target = |problem: Problem| problem.in_target(path);
    check_bands(about.bands).map_err(in_target)?;
    let system = about.frame.crs.map(System::of).transpose().map_err(in_target)?;
    check_beside(path, system.is_some(), force)?;
    let (world, projection) = beside(path);
    each_band(path, parts, |_, pixels| {
        let width = about.grid.rows();
        let ends = limits(pixels);
        let text = meaning(&about.frame.labels.label(0), ends, about.unit());
        write_file(path, force, |out| {
            write_png(out, (width, about.grid.cols()), &text, |line, bytes| {
                let line = &pixels[line * width..(line + 1) * width];
                bytes.extend(line.iter().flat_map(|level| colour(*level, ends)));
            })
        })
    })?;
    write_bytes(&world, world_file(&about).as_bytes(), force)?;
    if let Some(system) = system {
        write_bytes(&projection, system.wkt().as_bytes(), force)?;
    }
    Ok(())
}

/// A picture shows one band.
pub(super) fn check_bands(bands: usize) -> Check<()> {
    match bands {
        1 => Ok(()),
        _ => Err(Problem::new(format!(
            "a picture shows one band, these are {bands}: choose one with --bands of `portolan \
             convert` or `predict`"
        ))),
    }
}

/// The world file, and the one that says the coordinate system.
fn beside(path: &Path) -> (PathBuf, PathBuf) {
    (path.with_extension("pgw"), path.with_extension("prj"))
}

/// Refuses files beside the picture that cannot be written.
pub(super) fn check_beside(path: &Path, projected: bool, force: bool) -> Result<()> {
    let (world, projection) = beside(path);
    check_output(&world, force)?;
    if projected { check_output(&projection, force) } else { Ok(()) }
}

/// Size of a pixel, no rotation, and the centre of the pixel in the north-west corner.
fn world_file(about: &MapAbout) -> String {
    let cell = about.grid.cell_m();
    format!("{cell}\n0\n0\n{}\n{}\n{}\n", -cell, about.x_m(0), about.y_m(0))
}
