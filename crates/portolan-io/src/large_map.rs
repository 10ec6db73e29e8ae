//! What is in a map that is too large to be loaded for a look: its arrays are streamed, so that the
//! memory does not depend on what a file claims to hold.

use ndarray::Array2;

use crate::authors;
use crate::error::{Check, Problem, quoted, shown};
use crate::large_power::{Axes, Scan, scan_factors, scan_power};
use crate::memory::shown_bytes;
use crate::npz::Npz;
use crate::options::{ReadOptions, Unit};
use crate::store::{Entry, Store, matrix, vector};
use crate::summary::{FileKind, FileSummary};
use crate::unit_arrays::{crs, grid, unit};

/// Files whose arrays take less in memory are loaded as a whole; it is also the most that is held
/// of a larger one.
pub(crate) const MOST_LOADED: u64 = 1 << 26;

/// Whether a file's arrays together are too large to be loaded for a look.
pub(crate) fn is_large(npz: &Npz<'_>) -> bool {
    let bytes = npz.entries().iter().map(bytes);
    bytes.fold(0u64, u64::saturating_add) > MOST_LOADED
}

fn bytes(entry: &Entry) -> u64 {
    entry.shape.iter().fold(8, |product, &side| product.saturating_mul(side as u64))
}

/// Which arrays are the power.
enum Power {
    /// One array and how its axes stand.
    Dense(usize, Axes),
    /// SLFs (emitters x rows x cols) and PSDs (emitters x bands).
    Factors(usize, usize),
}

/// Fills in what there is to say about a map.
pub(crate) fn describe(
    npz: &mut Npz<'_>,
    options: &ReadOptions,
    summary: &mut FileSummary,
) -> Check<()> {
    small(npz, "offset", 1)?;
    let simulated = options.var.is_none() && !has(npz, "map") && authors::is_simulated(npz);
    let usual = simulated.then_some(Unit::Relative);
    let (unit, scale) = unit(npz, options, usual, &mut summary.warnings)?;
    summary.describe_scale(scale);
    let power = choose(npz, options, summary)?;
    let (rows, cols, bands) = match &power {
        Power::Dense(_, axes) => (axes.rows, axes.cols, axes.bands),
        Power::Factors(slf, psd) => {
            factor_sides(&npz.entries()[*slf].shape, &npz.entries()[*psd].shape)?
        }
    };
    if let Some((want_rows, want_cols)) = options.grid.filter(|&grid| grid != (rows, cols)) {
        return Err(Problem::new(format!(
            "the map is {rows} x {cols} cells, but a grid of {want_rows} x {want_cols} was asked for"
        )));
    }
    if rows == 0 || cols == 0 || bands == 0 {
        return Err(Problem::new(format!(
            "a map of {rows} x {cols} x {bands}, expected at least one row, column and band"
        )));
    }
    summary.kind = FileKind::Map;
    small(npz, "cell_m", 1)?;
    small(npz, "origin_m", 2)?;
    summary.describe_grid(grid(npz, (rows, cols), options)?);
    summary.crs = crs(npz, options)?.map(|crs| crs.to_string());
    summary.bands = bands;
    summary.entries = rows.saturating_mul(cols).saturating_mul(bands);
    let freq_hz = small(npz, "freq_hz", bands)?;
    summary.freq_hz = freq_hz.map(|array| vector("freq_hz", array)).transpose()?;
    attached(npz, summary)?;
    let scan = match power {
        Power::Dense(index, axes) => {
            let own = npz.entries()[index].name == "map" && options.var.is_none();
            let pair = if own { small_factors(npz, &axes)? } else { None };
            let (scan, reproduced) = scan_power(npz, index, &axes, unit, pair.as_ref())?;
            match (&pair, reproduced) {
                (Some((_, psd)), true) => summary.factors = Some(psd.nrows()),
                _ if own && has(npz, "slf") && has(npz, "psd") => summary
                    .warnings
                    .push("'slf' and 'psd' do not make up 'map': only 'map' is used".into()),
                _ => {}
            }
            scan
        }
        Power::Factors(slf, psd) => {
            let psd = load_psd(npz, psd)?;
            summary.factors = Some(psd.nrows());
            scan_factors(npz, slf, &psd, (rows, cols))?
        }
    };
    let Scan { range, gaps, unmeasured } = scan;
    (summary.range, summary.gaps) = (range, gaps);
    if unmeasured > 0 {
        let what = format!("{unmeasured} entries are exactly 0 dBm: taken as unmeasured");
        summary.warnings.push(what);
    }
    Ok(())
}

fn has(npz: &Npz<'_>, name: &str) -> bool {
    npz.entries().iter().any(|entry| entry.name == name)
}

fn position(npz: &Npz<'_>, name: &str) -> Option<usize> {
    npz.entries().iter().position(|entry| entry.name == name)
}

fn choose(npz: &Npz<'_>, options: &ReadOptions, summary: &mut FileSummary) -> Check<Power> {
    let bands_last = |index: usize| Axes::new(&npz.entries()[index], false);
    if let Some(name) = &options.var {
        let index = position(npz, name).ok_or_else(|| {
            let store: &dyn Store = npz;
            let (name, names) = (quoted(name), store.names());
            Problem::new(format!("array {name} is missing: the file holds {names}"))
        })?;
        return Ok(Power::Dense(index, bands_last(index)?));
    }
    if let Some(index) = position(npz, "map") {
        return Ok(Power::Dense(index, bands_last(index)?));
    }
    if let (Some(slf), Some(psd)) = (position(npz, "slf"), position(npz, "psd")) {
        return Ok(Power::Factors(slf, psd));
    }
    let Some(index) = position(npz, "T_true").or_else(|| position(npz, "T")) else {
        return Err(Problem::new(
            "'S_true' and 'C_true' are too large to be looked into without 'T_true'",
        ));
    };
    // As the authors' simulator writes it, unless the shapes of the factors say otherwise.
    let views = [true, false].map(|first| Axes::new(&npz.entries()[index], first));
    let fitting =
        views.iter().flatten().find_map(|axes| Some((axes.clone(), emitters(npz, axes)?)));
    if let Some((axes, emitters)) = fitting {
        summary.factors = Some(emitters);
        return Ok(Power::Dense(index, axes));
    }
    let [axes, _] = views;
    let Entry { name, shape, .. } = &npz.entries()[index];
    if shape.len() == 3 {
        summary.warnings.push(authors::bands_first_note(name, shape));
    }
    Ok(Power::Dense(index, axes?))
}

/// The number of emitters of the authors' factors, where their shapes fit a map.
fn emitters(npz: &Npz<'_>, axes: &Axes) -> Option<usize> {
    let shape = |name| position(npz, name).map(|index| npz.entries()[index].shape.as_slice());
    let (rows, cols, bands) = (axes.rows, axes.cols, axes.bands);
    match (shape("S_true")?, shape("C_true")?) {
        (&[a, b, c], &[d, e]) => [(a, [b, c]), (c, [a, b])]
            .into_iter()
            .find(|&(r, sides)| {
                sides == [rows, cols] && ([d, e] == [r, bands] || [d, e] == [bands, r])
            })
            .map(|(r, _)| r),
        _ => None,
    }
}

fn factor_sides(slf: &[usize], psd: &[usize]) -> Check<(usize, usize, usize)> {
    match (slf, psd) {
        (&[emitters, rows, cols], &[others, bands]) if emitters == others && emitters > 0 => {
            Ok((rows, cols, bands))
        }
        _ => Err(Problem::new(format!(
            "arrays 'slf' and 'psd' have shapes {slf:?} and {psd:?}, expected emitters x rows x \
             cols and emitters x bands"
        ))),
    }
}

/// An array of a known number of elements, which is looked at before it is loaded.
fn small(npz: &mut Npz<'_>, name: &str, count: usize) -> Check<Option<ndarray::ArrayD<f64>>> {
    let Some(index) = position(npz, name) else { return Ok(None) };
    let entry = &npz.entries()[index];
    if bytes(entry) != (count as u64).saturating_mul(8) {
        let (name, shape) = (quoted(name), &entry.shape);
        return Err(Problem::new(format!(
            "array {name} has shape {shape:?}, expected {count} numbers"
        )));
    }
    npz.load(index).map(Some)
}

/// What is attached to a map, by the headers alone.
fn attached(npz: &Npz<'_>, summary: &mut FileSummary) -> Check<()> {
    let (rows, cols, bands) = (summary.rows, summary.cols, summary.bands);
    for name in ["spread_db", "reading_spread_db"] {
        let Some(index) = position(npz, name) else { continue };
        let shape = npz.entries()[index].shape.as_slice();
        if shape != [rows, cols, bands] && !(bands == 1 && shape == [rows, cols]) {
            return Err(Problem::new(format!(
                "array '{name}' has shape {shape:?}, expected [{rows}, {cols}, {bands}]"
            )));
        }
        npz.numbers(index)?;
        summary.has_spread |= name == "spread_db";
    }
    if let Some(index) = position(npz, "emitters") {
        match *npz.entries()[index].shape {
            [emitters, 2] => summary.emitters = emitters,
            ref shape if shape.contains(&0) => {}
            ref shape => {
                return Err(Problem::new(format!(
                    "array 'emitters' has shape {shape:?}, expected emitters x 2 (row, col)"
                )));
            }
        }
    }
    Ok(())
}

/// SLFs and PSDs beside a dense map, where their shapes fit it.
fn small_factors(npz: &mut Npz<'_>, axes: &Axes) -> Check<Option<(usize, Array2<f64>)>> {
    let (Some(slf), Some(psd)) = (position(npz, "slf"), position(npz, "psd")) else {
        return Ok(None);
    };
    let sides = factor_sides(&npz.entries()[slf].shape, &npz.entries()[psd].shape);
    if sides != Ok((axes.rows, axes.cols, axes.bands)) {
        return Ok(None);
    }
    load_psd(npz, psd).map(|psd| Some((slf, psd)))
}

fn load_psd(npz: &mut Npz<'_>, index: usize) -> Check<Array2<f64>> {
    let size = bytes(&npz.entries()[index]);
    if size > MOST_LOADED {
        return Err(npz.wrong(index, format!("{} of spectra are too much", shown_bytes(size))));
    }
    let psd = matrix("psd", npz.load(index)?, "emitters x bands")?;
    match psd.indexed_iter().find(|(_, v)| !(v.is_finite() && **v >= 0.0)) {
        Some(((emitter, band), value)) => Err(Problem::new(format!(
            "array 'psd' at emitter {emitter}, band {band} is {}, expected a power",
            shown(*value)
        ))),
        None => Ok(psd),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{BufReader, Cursor};
    use std::path::Path;

    use ndarray::Array3;

    use super::*;
    use crate::format::Format;
    use crate::named_array::NamedArray;
    use crate::npz;

    fn streamed(mut npz: Npz<'_>, options: &ReadOptions) -> Check<FileSummary> {
        let arrays = npz.entries().iter().map(Into::into).collect();
        let mut summary = FileSummary::of_arrays(Format::Npz, arrays);
        describe(&mut npz, options, &mut summary).map(|()| summary)
    }

    fn archive(arrays: &[NamedArray<'_>]) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        npz::write(arrays, &mut bytes).unwrap();
        bytes.into_inner()
    }

    #[test]
    fn streaming_finds_what_loading_finds() {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
        let folder = tempfile::tempdir().unwrap();
        let factors = folder.path().join("factors.npz");
        let map = crate::read_map(data.join("factored.npz"), &ReadOptions::default()).unwrap();
        let options = crate::WriteOptions { dense: Some(false), ..Default::default() };
        crate::write_map(&factors, &map.value, &options).unwrap();
        let var = |name: &str| ReadOptions { var: Some(name.into()), ..ReadOptions::default() };
        let dbm = ReadOptions { unit: Some(Unit::Dbm), ..ReadOptions::default() };
        for (path, options) in [
            (data.join("factored.npz"), ReadOptions::default()),
            (data.join("float32.npz"), ReadOptions::default()),
            (data.join("float32.npz"), dbm),
            (data.join("mismatch.npz"), ReadOptions::default()),
            (data.join("simulator.npz"), ReadOptions::default()),
            (data.join("types.npz"), var("fortran")),
            (data.join("types.npz"), var("little_101")),
            (factors, ReadOptions::default()),
        ] {
            let npz = Npz::open(BufReader::new(File::open(&path).unwrap())).unwrap();
            let found = streamed(npz, &options).unwrap();
            let mut expected = crate::inspect(&path, &options).unwrap();
            // Loading the authors' factors makes the map of them, which rounds differently.
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-12 * b.abs();
            let (found_range, range) = (found.range.unwrap(), expected.range.unwrap());
            assert!(close(found_range.0, range.0) && close(found_range.1, range.1), "{path:?}");
            expected.range = found.range;
            assert_eq!(found, expected, "{path:?}");
        }
    }

    #[test]
    fn axes_are_told_and_bad_powers_are_placed() {
        let mut power = Array3::from_elem((2, 3, 4), 1.0);
        power[[1, 2, 3]] = -5.0;
        let read = |name, options: &ReadOptions| {
            let bytes = archive(&[NamedArray::real(name, power.view().into_dyn().into())]);
            streamed(Npz::open(Cursor::new(bytes)).unwrap(), options)
        };
        let told = format!("{:?}", read("map", &ReadOptions::default()).unwrap_err());
        assert!(
            told.contains("row 1, col 2, band 3 is -5") && told.contains("--unit dbm"),
            "{told}"
        );
        let told = format!("{:?}", read("T", &ReadOptions::default()).unwrap_err());
        assert!(told.contains("row 2, col 3, band 1 is -5"), "{told}");
        let dbm = ReadOptions { unit: Some(Unit::Dbm), ..ReadOptions::default() };
        let summary = read("T", &dbm).unwrap();
        assert_eq!((summary.rows, summary.cols, summary.bands), (3, 4, 2));
        assert!(summary.warnings[0].contains("bands x rows x cols"), "{:?}", summary.warnings);
        let grid = ReadOptions { grid: Some((3, 2)), ..dbm };
        assert!(read("map", &grid).is_err());
    }

    #[test]
    fn small_arrays_are_looked_at_before_they_are_loaded() {
        let power = Array3::from_elem((2, 3, 4), 1.0);
        let map = NamedArray::real("map", power.view().into_dyn().into());
        for wrong in [
            NamedArray::vector("freq_hz", &[1.0; 3]),
            NamedArray::vector("cell_m", &[1.0; 2]),
            NamedArray::scalar("cell_m", -1.0),
            NamedArray::vector("emitters", &[1.0; 2]),
            NamedArray::vector("spread_db", &[1.0; 24]),
        ] {
            let name = wrong.name.clone();
            let bytes = archive(&[map.clone(), wrong]);
            let npz = Npz::open(Cursor::new(bytes)).unwrap();
            assert!(streamed(npz, &ReadOptions::default()).is_err(), "{name}");
        }
    }
}
