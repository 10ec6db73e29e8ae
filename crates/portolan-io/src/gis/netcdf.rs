//! NetCDF-4 by the CF conventions 1.11. The file is put together in memory, so a size that memory
//! does not have is refused before anything is drawn.

use std::io::Write;
use std::path::Path;

use netcdf_writer::{
    NcAttrValue, NcFileBuilder, NcSliceInfo, NcSliceInfoElem, NcWriteFormat, NcWriteOptions,
};

use super::blocks::each_block;
use super::cf::{Word, grid_mapping};
use super::parts::{MapAbout, MapParts};
use super::raster::MapPlan;
use crate::error::{Check, Problem};
use crate::memory;
use crate::output::write_file;

/// Cells along the side of a chunk.
const SIDE: usize = 512;

/// Bytes of memory for every number: as given, in the file's order of bytes, packed, and the file.
const BYTES: u64 = 16;

type Variable = netcdf_writer::VariableId;

/// Writes a map as NetCDF-4; [`check_raster`](super::check_raster) says whether it fits memory.
pub(super) fn write_netcdf<P: MapParts>(
    path: &Path,
    parts: &mut P,
    force: bool,
) -> Result<(), P::Error> {
    write_moments(path, None, std::slice::from_mut(parts), force)
}

/// Writes maps of several moments, in seconds since 1970, or one without a time.
pub(crate) fn write_moments<P: MapParts>(
    path: &Path,
    time_s: Option<&[f64]>,
    moments: &mut [P],
    force: bool,
) -> Result<(), P::Error> {
    let about = moments[0].about().clone();
    let in_target = |problem: Problem| problem.in_target(path);
    let (mut file, power, spread) = describe(&about, time_s).map_err(in_target)?;
    for (moment, parts) in moments.iter_mut().enumerate() {
        each_block(path, parts, SIDE, |block| {
            let all = |range: std::ops::Range<usize>| NcSliceInfoElem::Slice {
                start: range.start as u64,
                end: range.end as u64,
                step: 1,
            };
            for layer in block.layers() {
                let (band, is_spread) = layer.band();
                let variable = spread.filter(|_| is_spread).unwrap_or(power);
                let mut place =
                    vec![all(band..band + 1), all(block.lines.clone()), all(block.columns.clone())];
                if time_s.is_some() {
                    place.insert(0, all(moment..moment + 1));
                }
                let selection = NcSliceInfo { selections: place };
                let put = file.write_variable_slice(variable, &selection, &layer.image());
                put.map_err(|error| in_target(wrong(&error)))?;
            }
            Ok(())
        })?;
    }
    let (_, bytes) = file
        .to_vec(NcWriteOptions { format: NcWriteFormat::Nc4 })
        .map_err(|error| in_target(wrong(&error)))?;
    drop(file);
    Ok(write_file(path, force, |out| out.write_all(&bytes))?)
}

fn wrong(error: &netcdf_writer::Error) -> Problem {
    Problem::new(error.to_string())
}

/// Refuses what does not fit memory.
pub(super) fn check_size(plan: &MapPlan) -> Check<()> {
    let (columns, lines) = (plan.grid.rows(), plan.grid.cols());
    let layers = plan.bands as u64 * if plan.spread { 2 } else { 1 };
    let numbers = (plan.grid.cells() as u64).saturating_mul(layers);
    let what = format!("NetCDF of {columns} x {lines} x {layers}");
    memory::check(&what, numbers.saturating_mul(BYTES), "choose a name that ends in .zarr")
}

/// A file with everything but the layers.
fn describe(
    about: &MapAbout,
    time_s: Option<&[f64]>,
) -> Check<(NcFileBuilder, Variable, Option<Variable>)> {
    let mapping = about.frame.crs.map(grid_mapping).transpose()?;
    build(about, time_s, mapping).map_err(|error| wrong(&error))
}

fn text(text: &str) -> NcAttrValue {
    NcAttrValue::Chars(text.to_string())
}

fn build(
    about: &MapAbout,
    time_s: Option<&[f64]>,
    mapping: Option<Vec<(&'static str, Word)>>,
) -> Result<(NcFileBuilder, Variable, Option<Variable>), netcdf_writer::Error> {
    let (columns, lines, bands) = (about.grid.rows(), about.grid.cols(), about.bands);
    let mut file = NcFileBuilder::new();
    file.add_attribute("Conventions", text("CF-1.11"))?;
    file.add_attribute("title", text("Radio map"))?;
    file.add_attribute("source", text("Portolan"))?;
    let mut axes = Vec::new();
    if let Some(time_s) = time_s {
        let time = file.add_dimension("time", time_s.len() as u64)?;
        let variable = file.add_variable::<f64>("time", &[time])?;
        file.write_variable(variable, time_s)?;
        file.add_variable_attribute(variable, "standard_name", text("time"))?;
        file.add_variable_attribute(variable, "long_name", text("moment of the map"))?;
        file.add_variable_attribute(variable, "units", text("seconds since 1970-01-01 00:00:00"))?;
        file.add_variable_attribute(variable, "calendar", text("standard"))?;
        file.add_variable_attribute(variable, "axis", text("T"))?;
        axes.push(time);
    }
    let band = file.add_dimension("band", bands as u64)?;
    let y = file.add_dimension("y", lines as u64)?;
    let x = file.add_dimension("x", columns as u64)?;
    let places: [Vec<f64>; 2] = [
        (0..lines).map(|line| about.y_m(line)).collect(),
        (0..columns).map(|column| about.x_m(column)).collect(),
    ];
    for ((name, dimension), values) in [("y", y), ("x", x)].into_iter().zip(places) {
        let variable = file.add_variable::<f64>(name, &[dimension])?;
        file.write_variable(variable, &values)?;
        if mapping.is_some() {
            let standard = format!("projection_{name}_coordinate");
            file.add_variable_attribute(variable, "standard_name", text(&standard))?;
        }
        let long = format!("{name} of cell centres");
        file.add_variable_attribute(variable, "long_name", text(&long))?;
        file.add_variable_attribute(variable, "units", text("m"))?;
        file.add_variable_attribute(variable, "axis", text(&name.to_uppercase()))?;
    }
    let label = file.add_string_variable("band_label", &[band])?;
    let labels: Vec<String> = (0..bands).map(|band| about.frame.labels.label(band)).collect();
    file.write_string_variable(label, &labels)?;
    file.add_variable_attribute(label, "long_name", text("label of the band"))?;
    let mut coordinates = String::from("band_label");
    if let Some(freq_hz) = about.frame.labels.freq_hz() {
        let variable = file.add_variable::<f64>("frequency", &[band])?;
        file.write_variable(variable, freq_hz)?;
        file.add_variable_attribute(variable, "long_name", text("centre frequency"))?;
        let standard = text("radiation_frequency");
        file.add_variable_attribute(variable, "standard_name", standard)?;
        file.add_variable_attribute(variable, "units", text("Hz"))?;
        coordinates += " frequency";
    }
    let has_mapping = mapping.is_some();
    if let Some(words) = mapping {
        let variable = file.add_variable::<i32>("crs", &[])?;
        file.write_variable(variable, &[0])?;
        for (name, word) in words {
            let value = match word {
                Word::Text(words) => text(&words),
                Word::Numbers(numbers) => NcAttrValue::Doubles(numbers),
            };
            file.add_variable_attribute(variable, name, value)?;
        }
    }
    axes.extend([band, y, x]);
    let mut layer = |name: &str, long_name: &str, units: &str| {
        let variable = file.add_variable::<f32>(name, &axes)?;
        let mut chunk = vec![1; axes.len() - 2];
        chunk.extend([lines.min(SIDE) as u64, columns.min(SIDE) as u64]);
        file.set_variable_chunking(variable, chunk)?;
        file.set_variable_deflate(variable, Some(5), true)?;
        file.set_variable_fill_value(variable, f32::NAN)?;
        file.add_variable_attribute(variable, "long_name", text(long_name))?;
        file.add_variable_attribute(variable, "units", text(units))?;
        file.add_variable_attribute(variable, "coordinates", text(&coordinates))?;
        if has_mapping {
            file.add_variable_attribute(variable, "grid_mapping", text("crs"))?;
        }
        Ok::<_, netcdf_writer::Error>(variable)
    };
    // UDUNITS knows dBm as a level above a milliwatt, but no bare decibel.
    let (name, words) = about.named();
    let power = match about.unit() {
        "dBm" => layer(name, words, "dBm")?,
        _ => layer(name, &format!("{words}, in dB"), "1")?,
    };
    let spread = match about.spread {
        true => {
            let long_name = format!("standard deviation of the {words}, in dB");
            Some(layer("spread_db", &long_name, "1")?)
        }
        false => None,
    };
    Ok((file, power, spread))
}
