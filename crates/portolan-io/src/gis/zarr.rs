//! A Zarr store of version 3: a folder with a small JSON text per array and a file per chunk. The
//! axes are band, y (from north to south) and x; xarray opens it.

use std::fs::{create_dir_all, write};
use std::io;
use std::path::Path;

use rayon::prelude::*;
use serde_json::{Map, Value, json};

use super::blocks::{Block, Layer, each_block};
use super::cf::{Word, grid_mapping};
use super::parts::{MapAbout, MapParts};
use crate::error::IoError;
use crate::output::Folder;

/// Cells along the side of a chunk.
const SIDE: usize = 512;

/// The file that describes an array or a group.
pub(crate) const ABOUT: &str = "zarr.json";

/// Writes a map as a Zarr store.
pub(super) fn write_zarr<P: MapParts>(
    path: &Path,
    parts: &mut P,
    force: bool,
) -> Result<(), P::Error> {
    let about = parts.about().clone();
    let mapping = match about.frame.crs {
        Some(crs) => Some(grid_mapping(crs).map_err(|problem| problem.in_target(path))?),
        None => None,
    };
    let failed = |source| IoError::Write { path: path.to_owned(), source };
    let folder = Folder::begin(path).map_err(failed)?;
    describe(folder.path(), &about, mapping).map_err(failed)?;
    each_block(path, parts, SIDE, |block| {
        let layers = block.layers();
        let written = layers
            .par_iter()
            .try_for_each(|layer| write_chunk(folder.path(), &about, &block, layer));
        written.map_err(failed)
    })?;
    Ok(folder.finish(path, force)?)
}

fn write_chunk(root: &Path, about: &MapAbout, block: &Block, layer: &Layer<'_>) -> io::Result<()> {
    let (wide, high) = chunk(about);
    let mut values = vec![f32::NAN; wide * high];
    for (line, pixels) in layer.lines().enumerate() {
        values[line * wide..line * wide + pixels.len()].copy_from_slice(pixels);
    }
    // A chunk that is not there holds nothing that is known.
    if values.iter().all(|value| value.is_nan()) {
        return Ok(());
    }
    let mut bytes = vec![0; 4 * values.len()];
    let slots = bytes.chunks_exact_mut(4).zip(&values);
    slots.for_each(|(slot, value)| slot.copy_from_slice(&value.to_le_bytes()));
    let (row, column) = (block.lines.start / SIDE, block.columns.start / SIDE);
    let (name, band) = match layer.band() {
        (band, true) => ("spread_db", band),
        (band, false) => (about.named().0, band),
    };
    put(root, &format!("{name}/c/{band}/{row}/{column}"), &bytes)
}

/// Columns and lines of a chunk.
fn chunk(about: &MapAbout) -> (usize, usize) {
    (SIDE.min(about.grid.rows()), SIDE.min(about.grid.cols()))
}

/// Chunks are not compressed: deflate saves a fifth of float32 levels and is slower than disks.
fn put(root: &Path, key: &str, bytes: &[u8]) -> io::Result<()> {
    let file = root.join(key);
    create_dir_all(file.parent().unwrap_or(root))?;
    write(file, bytes)
}

/// The texts that describe the arrays, and the coordinates.
fn describe(
    root: &Path,
    about: &MapAbout,
    mapping: Option<Vec<(&'static str, Word)>>,
) -> io::Result<()> {
    let (columns, lines, bands) = (about.grid.rows(), about.grid.cols(), about.bands);
    let (wide, high) = chunk(about);
    let axes = ["band", "y", "x"];
    let mut arrays: Vec<(&str, Value)> = Vec::new();

    let mut beside = Vec::new();
    let frequencies = about.frame.labels.freq_hz();
    beside.extend(frequencies.map(|_| "freq_hz"));
    beside.extend(mapping.as_ref().map(|_| "spatial_ref"));
    let mut layer = |name: &'static str, long_name: &str, units: &str| {
        let mut attributes = json!({ "long_name": long_name, "units": units });
        if !beside.is_empty() {
            attributes["coordinates"] = json!(beside.join(" "));
        }
        if mapping.is_some() {
            attributes["grid_mapping"] = json!("spatial_ref");
        }
        let shape = [bands, lines, columns];
        let array = array("float32", &shape, &[1, high, wide], json!("NaN"), &axes, attributes);
        arrays.push((name, array));
    };
    let (name, words) = about.named();
    layer(name, words, about.unit());
    if about.spread {
        layer("spread_db", &format!("standard deviation of the {words}"), "dB");
    }

    let numbers = |name: &'static str, values: &[f64], axis: &str, attributes: Value| {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        put(root, &format!("{name}/c/0"), &bytes)?;
        let length = values.len();
        let array = array("float64", &[length], &[length], json!("NaN"), &[axis], attributes);
        Ok::<_, io::Error>((name, array))
    };
    let x: Vec<f64> = (0..columns).map(|column| about.x_m(column)).collect();
    let y: Vec<f64> = (0..lines).map(|line| about.y_m(line)).collect();
    for (name, values, axis) in [("x", x, "x"), ("y", y, "y")] {
        let mut attributes = json!({
            "units": "m", "axis": axis.to_uppercase(),
            "long_name": format!("{axis} of cell centres"),
        });
        if mapping.is_some() {
            attributes["standard_name"] = json!(format!("projection_{axis}_coordinate"));
        }
        arrays.push(numbers(name, &values, axis, attributes)?);
    }
    if let Some(values) = frequencies {
        let attributes = json!({ "units": "Hz", "long_name": "centre frequency" });
        arrays.push(numbers("freq_hz", values, "band", attributes)?);
    }
    let counted: Vec<u8> = (0..bands as i64).flat_map(i64::to_le_bytes).collect();
    put(root, "band/c/0", &counted)?;
    let labels: Vec<String> = (0..bands).map(|band| about.frame.labels.label(band)).collect();
    let attributes = json!({ "long_name": "band", "labels": labels });
    arrays.push(("band", array("int64", &[bands], &[bands], json!(0), &["band"], attributes)));
    if let Some(words) = mapping {
        put(root, "spatial_ref/c", &0i64.to_le_bytes())?;
        let attributes = Value::Object(words.into_iter().map(worded).collect());
        arrays.push(("spatial_ref", array("int64", &[], &[], json!(0), &[], attributes)));
    }

    let mut all = Map::new();
    for (name, text) in arrays {
        create_dir_all(root.join(name))?;
        write(root.join(name).join(ABOUT), text.to_string())?;
        all.insert(name.to_string(), text);
    }
    let group = json!({
        "zarr_format": 3, "node_type": "group",
        "attributes": { "Conventions": "CF-1.11", "title": "Radio map", "source": "Portolan" },
        "consolidated_metadata": {
            "kind": "inline", "must_understand": false, "metadata": all,
        },
    });
    write(root.join(ABOUT), group.to_string())
}

fn worded((name, word): (&'static str, Word)) -> (String, Value) {
    let value = match word {
        Word::Text(text) => json!(text),
        Word::Numbers(numbers) if numbers.len() == 1 => json!(numbers[0]),
        Word::Numbers(numbers) => json!(numbers),
    };
    (name.to_string(), value)
}

fn array(
    kind: &str,
    shape: &[usize],
    chunk: &[usize],
    fill: Value,
    axes: &[&str],
    attributes: Value,
) -> Value {
    json!({
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": kind,
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": chunk } },
        "chunk_key_encoding": { "name": "default", "configuration": { "separator": "/" } },
        "fill_value": fill,
        "codecs": [{ "name": "bytes", "configuration": { "endian": "little" } }],
        "dimension_names": axes, "attributes": attributes,
    })
}
