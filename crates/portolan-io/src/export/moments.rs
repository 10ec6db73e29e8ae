//! Maps of one area at several moments, in one file.

use std::path::Path;

use ndarray::{Array4, Axis};
use portolan::{InputError, Model, Progress};

use super::parts::{ModelParts, PartFailure, about_model};
use super::{MapRequest, far_above};
use crate::error::Problem;
use crate::format::Format;
use crate::gis::{Masked, write_moments};
use crate::map_arrays::attribute_arrays;
use crate::named_array::NamedArray;
use crate::output::{check_space, write_file};
use crate::{memory, npz};

/// Bytes of memory for a number of a file: as drawn, and as written.
const BYTES: u64 = 24;

/// The format of a file of several moments, if it can hold them.
pub fn check_moments(output: &Path) -> crate::error::Result<Format> {
    match Format::of_output(output)? {
        format @ (Format::NetCdf | Format::Npz) => Ok(format),
        other => {
            let message =
                format!("{other} holds one moment: maps of several are written as .npz or .nc");
            Err(Problem::new(message).in_target(output))
        }
    }
}

/// Draws a model at moments in seconds since 1970 and writes the maps into one file with an axis of
/// time: `time_s` and `map` (moments, rows, columns, bands) in .npz, by the CF conventions in .nc.
/// Returns notes for the user.
pub fn draw_moments(
    request: &MapRequest<'_>,
    time_s: &[f64],
    progress: &Progress<'_>,
) -> Result<Vec<String>, PartFailure> {
    let MapRequest { model, grid, bands, mask, output, force, .. } = *request;
    mask.check(model.gives_spread()).map_err(InputError::Request)?;
    let wrong = |problem: Problem| PartFailure::from(problem.in_target(output));
    let format = check_moments(output)?;
    let layers = (bands.len() * time_s.len()) as u64 * if model.gives_spread() { 3 } else { 1 };
    let bytes = (grid.cells() as u64).saturating_mul(layers).saturating_mul(BYTES);
    let what = format!("maps of {} moments", time_s.len());
    memory::check(&what, bytes, "ask for fewer moments or bands").map_err(wrong)?;
    let models: Vec<Model> = time_s
        .iter()
        .map(|t| model.at_time(*t))
        .collect::<Result<_, _>>()
        .map_err(PartFailure::from)?;
    let share = |i: usize| i as f64 / models.len() as f64;
    let loudest = match format {
        Format::NetCdf => {
            let parts: Vec<Progress<'_>> =
                (0..models.len()).map(|i| progress.part(share(i)..share(i + 1))).collect();
            let mut moments = models
                .iter()
                .zip(&parts)
                .map(|(model, part)| {
                    Masked::new(ModelParts::new(model, grid, bands, part)?, mask, output)
                        .map_err(PartFailure::from)
                })
                .collect::<Result<Vec<_>, PartFailure>>()?;
            write_moments(output, Some(time_s), &mut moments, force)?;
            moments.into_iter().map(|parts| parts.into_inner().loudest).fold(0.0, f64::max)
        }
        _ => {
            let shape = (time_s.len(), grid.rows(), grid.cols(), bands.len());
            let mut power = Array4::<f64>::zeros(shape);
            let mut spread = model.gives_spread().then(|| Array4::<f64>::zeros(shape));
            for (i, model) in models.iter().enumerate() {
                let drawn = model.map_bands(grid, bands, &progress.part(share(i)..share(i + 1)))?;
                let (own, of_own) = mask.masked(drawn)?.into_dense();
                power.index_axis_mut(Axis(0), i).assign(&own);
                if let (Some(all), Some(own)) = (&mut spread, of_own) {
                    all.index_axis_mut(Axis(0), i).assign(&own);
                }
            }
            let frame = model.frame().select(bands, model.bands())?;
            let about = about_model(model, grid, frame, bands);
            let mut arrays = vec![
                NamedArray::vector("time_s", time_s),
                NamedArray::real("map", power.view().into_dyn().into()),
            ];
            if let Some(spread) = &spread {
                arrays.push(NamedArray::real("spread_db", spread.view().into_dyn().into()));
            }
            arrays.extend(attribute_arrays(&about, &[]));
            check_space(output, npz::length(&arrays))?;
            write_file(output, force, |out| npz::write(&arrays, out))?;
            power.iter().copied().filter(|x| !x.is_nan()).fold(0.0, f64::max)
        }
    };
    Ok(far_above(loudest, model.loudest()).into_iter().chain(mask.note()).collect())
}
