//! What arrays say about units, places and bands, the same for maps and readings.

use portolan::model::Archive;
use portolan::{BandLabels, Crs, Frame, Grid, Scale, Site};

use crate::error::{Check, Problem, quoted};
use crate::named_array::{NamedArray, named_arrays};
use crate::options::{ReadOptions, Unit};
use crate::store::{Store, scalar, vector};

/// The unit of a file: the caller's word, else the file's, else linear and absolute, or relative
/// where there is an offset. What was assumed is said.
pub(crate) fn unit(
    store: &mut dyn Store,
    options: &ReadOptions,
    usual: Option<Unit>,
    warnings: &mut Vec<String>,
) -> Check<(Unit, Scale)> {
    let offset = store.find("offset")?.map(|array| scalar("offset", array)).transpose()?;
    let own = match store.find_text("unit")? {
        None => None,
        Some(texts) => {
            let name = texts.first().map_or("", |text| text.trim());
            let known = Unit::named(name).filter(|_| texts.len() == 1);
            Some(known.ok_or_else(|| {
                let name = quoted(name);
                Problem::new(format!("unit {name}, expected dbm, linear, db or relative"))
            })?)
        }
    };
    let unit = match (options.unit, own, usual) {
        (Some(unit), ..) | (None, Some(unit), _) | (None, None, Some(unit)) => unit,
        (None, None, None) if offset.is_some() => {
            warnings.push("the unit is not given, an offset is: taken as relative".into());
            Unit::Relative
        }
        (None, None, None) => {
            let assumed = "the unit is not given: taken as linear power in milliwatts; simulated \
                           maps of version 0.1 need --unit relative";
            warnings.push(assumed.into());
            Unit::Linear
        }
    };
    Ok((unit, unit.scale(offset.filter(|_| unit == Unit::Relative))?))
}

/// What values of an array mean. Values in decibels have at least one negative number among them;
/// without any they are linear, as this program writes them whatever the scale.
pub(crate) fn value_unit(unit: Unit, mut values: impl Iterator<Item = f64>) -> Unit {
    if unit.is_decibels() && !values.any(|v| v < 0.0) { Unit::Linear } else { unit }
}

/// Metres per cell: the caller's word, else the file's, else 1.
pub(crate) fn cell_m(store: &mut dyn Store, options: &ReadOptions) -> Check<f64> {
    match (options.cell_m, store.find("cell_m")?) {
        (Some(cell_m), _) => Ok(cell_m),
        (None, Some(array)) => scalar("cell_m", array),
        (None, None) => Ok(1.0),
    }
}

/// The centre of cell (0, 0): the caller's word, else the file's, else the origin of the plane.
fn origin(store: &mut dyn Store, options: &ReadOptions) -> Check<Site> {
    if let Some((x, y)) = options.origin_m {
        return Ok(Site::new(x, y));
    }
    let Some(array) = store.find("origin_m")? else { return Ok(Site::new(0.0, 0.0)) };
    match vector("origin_m", array)?[..] {
        [x, y] => Ok(Site::new(x, y)),
        [x, y, z] => Ok(Site::new(x, y).at_height(z)),
        _ => Err(Problem::new("array 'origin_m' does not hold two or three numbers, x, y and z")),
    }
}

/// A grid of so many cells, of the size and at the place that the caller or the file says.
pub(crate) fn grid(
    store: &mut dyn Store,
    (rows, cols): (usize, usize),
    options: &ReadOptions,
) -> Check<Grid> {
    let origin = origin(store, options)?;
    Ok(Grid::new(rows, cols, cell_m(store, options)?)?.with_origin(origin)?)
}

pub(crate) fn labels(store: &mut dyn Store, bands: usize) -> Check<BandLabels> {
    let freq_hz = store.find("freq_hz")?.map(|array| vector("freq_hz", array)).transpose()?;
    let names = store.find_text("labels")?;
    Ok(BandLabels::new(freq_hz, names, bands)?)
}

/// The arrays that say what numbers mean: unit, CRS and bands.
pub(crate) fn frame_arrays<'a>(frame: &Frame) -> Vec<NamedArray<'a>> {
    let mut archive = Archive::default();
    frame.save(&mut archive);
    named_arrays(archive)
}

/// Where on Earth the metres of a file are: the caller's word, else the file's.
pub(crate) fn crs(store: &mut dyn Store, options: &ReadOptions) -> Check<Option<Crs>> {
    let own = match store.find_text("crs")?.as_deref() {
        None => Check::Ok(None),
        Some([text]) if text.trim().is_empty() => Ok(None),
        Some([text]) => Ok(Some(text.parse()?)),
        Some(_) => Err(Problem::new("array 'crs' does not hold one text, such as EPSG:32632")),
    }?;
    match (own, options.crs) {
        (Some(own), Some(asked)) if own != asked => Err(Problem::new(format!(
            "lies in {own} by its own word, --crs says {asked}: metres are not moved from one system \
             to another"
        ))),
        (own, asked) => Ok(asked.or(own)),
    }
}

/// The arrays that say where a grid lies.
pub(crate) fn grid_arrays<'a>(grid: Grid) -> Vec<NamedArray<'a>> {
    let mut archive = Archive::default();
    grid.save(&mut archive);
    named_arrays(archive)
}
