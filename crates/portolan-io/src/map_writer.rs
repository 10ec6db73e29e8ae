//! Writes a map that is larger than the memory: the large arrays come strip after strip of rows, in
//! turns, and each goes to its place in the file. The file gets its name when everything is there.

use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use flate2::Crc;
use ndarray::ArrayView3;
use rayon::prelude::*;

use crate::error::{Check, IoError, Problem, Result, quoted, shown};
use crate::named_array::NamedArray;
use crate::npy;
use crate::output::{Part, check_output, check_space};
use crate::zip_layout::{self, StoredEntry, directory};

/// Bytes that are encoded and written at a time.
const BLOCK: usize = 1 << 20;

/// Bytes after which the disk is waited for: the system would leave nearly all to the end, when nothing
/// is left to do meanwhile.
const SYNCED: u64 = 1 << 26;

/// How a large array is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Element {
    /// Seven digits, from 1.2e-38 to 3.4e38; smaller numbers lose digits and become 0 below 1e-45.
    #[default]
    Float32,
    Float64,
}

impl Element {
    fn size(self) -> usize {
        match self {
            Element::Float32 => 4,
            Element::Float64 => 8,
        }
    }

    fn descr(self) -> &'static str {
        match self {
            Element::Float32 => "<f4",
            Element::Float64 => "<f8",
        }
    }
}

/// The large arrays of a map file: each is rows x columns x bands.
#[derive(Clone, Debug, PartialEq)]
pub struct MapLayout {
    pub rows: usize,
    pub cols: usize,
    pub bands: usize,
    /// Their names: `map`, `spread_db`, `reading_spread_db`.
    pub arrays: Vec<&'static str>,
    pub element: Element,
}

/// A map `.npz` that is being written strip by strip. It is removed unless it is finished.
///
/// ```
/// use ndarray::Array3;
/// use portolan_io::{Element, MapFile, MapLayout, MapWriter, NamedArray};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("map.npz");
/// let element = Element::Float32;
/// let layout = MapLayout { rows: 90, cols: 80, bands: 9, arrays: vec!["map"], element };
/// let mut writer = MapWriter::create(&path, &layout, &[NamedArray::scalar("cell_m", 2.0)], false)?;
/// for first in (0..90).step_by(30) {
///     let strip = Array3::from_elem((30, 80, 9), 1e-7 * (1 + first) as f64);
///     writer.write_rows("map", strip.view())?;
/// }
/// writer.finish()?;
/// let found = MapFile::open(&path)?.read_rows("map", 60..61, 0..1, 0..1)?;
/// assert!((found[[0, 0, 0]] / 61e-7 - 1.0).abs() < 1e-6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct MapWriter {
    path: PathBuf,
    force: bool,
    part: Part,
    layout: MapLayout,
    entries: Vec<StoredEntry>,
    /// One for each of the layout's arrays, in its order, which is that of the first entries.
    progress: Vec<Progress>,
    /// Bytes that may not be on the disk yet.
    waiting: u64,
}

struct Progress {
    /// Bytes of the header, then of the rows that were written.
    written: u64,
    rows: usize,
    crc: Crc,
}

impl MapWriter {
    /// Makes the file and writes the small arrays. Refuses a size that the disk has no room for.
    pub fn create(
        path: impl AsRef<Path>,
        layout: &MapLayout,
        small: &[NamedArray<'_>],
        force: bool,
    ) -> Result<Self> {
        let path = path.as_ref();
        check_output(path, force)?;
        let failed = |source| IoError::Write { path: path.to_owned(), source };
        let entries = entries(layout, small).map_err(|problem| problem.in_target(path))?;
        let length = entries.last().map_or(0, StoredEntry::end);
        check_space(path, Ok(length))?;
        let mut writer = Self {
            path: path.to_owned(),
            force,
            part: Part::begin(path).map_err(failed)?,
            layout: layout.clone(),
            entries,
            progress: Vec::new(),
            waiting: 0,
        };
        writer.begin(small).map_err(failed)?;
        Ok(writer)
    }

    fn begin(&mut self, small: &[NamedArray<'_>]) -> io::Result<()> {
        let MapLayout { rows, cols, bands, arrays, element } = self.layout.clone();
        for n in 0..arrays.len() {
            let header = npy::header(element.descr(), &[rows, cols, bands])?;
            let mut crc = Crc::new();
            crc.update(&header);
            self.put(self.entries[n].data(), &header)?;
            self.progress.push(Progress { written: header.len() as u64, rows: 0, crc });
        }
        for (n, array) in small.iter().enumerate() {
            let mut bytes = Vec::new();
            npy::write(array, &mut bytes)?;
            let entry = &mut self.entries[arrays.len() + n];
            let mut crc = Crc::new();
            crc.update(&bytes);
            entry.crc = crc.sum();
            let at = entry.data();
            self.put(at, &bytes)?;
        }
        Ok(())
    }

    /// The next rows of an array: rows x columns x bands. Arrays may take turns; the rows of each
    /// come in order.
    pub fn write_rows(&mut self, array: &str, strip: ArrayView3<'_, f64>) -> Result<()> {
        let target = |problem: String| Problem::new(problem).in_target(&self.path);
        let MapLayout { rows, cols, bands, element, .. } = self.layout;
        let Some(n) = self.layout.arrays.iter().position(|name| *name == array) else {
            return Err(target(format!("its layout has no array {}", quoted(array))));
        };
        let first = self.progress[n].rows;
        let (more, strip_cols, strip_bands) = strip.dim();
        if more > rows - first || (strip_cols, strip_bands) != (cols, bands) {
            return Err(target(format!(
                "a strip of {more} x {strip_cols} x {strip_bands} for '{array}', expected at most \
                 {} x {cols} x {bands}",
                rows - first
            )));
        }
        let strip = strip.as_standard_layout();
        let values = strip.as_slice().expect("the standard layout is contiguous");
        let beyond = |v: &f64| v.is_finite() && (*v as f32).is_infinite();
        if let Some(at) = values.par_iter().position_first(beyond).filter(|_| element.size() == 4) {
            let (row, col, band) = (at / (cols * bands), at / bands % cols, at % bands);
            let (row, v) = (first + row, shown(values[at]));
            return Err(target(format!(
                "'{array}' at row {row}, col {col}, band {band} is {v}, which needs float64"
            )));
        }
        let failed = |source| IoError::Write { path: self.path.clone(), source };
        let encoded: Vec<(Vec<u8>, Crc)> = values
            .par_chunks(BLOCK / element.size())
            .map(|some| {
                let mut bytes = vec![0; some.len() * element.size()];
                let slots = bytes.chunks_exact_mut(element.size()).zip(some);
                match element {
                    Element::Float32 => {
                        slots
                            .for_each(|(slot, v)| slot.copy_from_slice(&(*v as f32).to_le_bytes()));
                    }
                    Element::Float64 => {
                        slots.for_each(|(slot, v)| slot.copy_from_slice(&v.to_le_bytes()));
                    }
                }
                let mut crc = Crc::new();
                crc.update(&bytes);
                (bytes, crc)
            })
            .collect();
        for (bytes, crc) in encoded {
            let at = self.entries[n].data() + self.progress[n].written;
            self.put(at, &bytes).map_err(failed)?;
            self.progress[n].crc.combine(&crc);
            self.progress[n].written += bytes.len() as u64;
            self.waiting += bytes.len() as u64;
        }
        if self.waiting >= SYNCED {
            self.part.file().sync_data().map_err(failed)?;
            self.waiting = 0;
        }
        self.progress[n].rows += more;
        Ok(())
    }

    /// Writes what frames the arrays and gives the file its name.
    pub fn finish(mut self) -> Result<()> {
        for (progress, name) in self.progress.iter().zip(&self.layout.arrays) {
            let (found, expected) = (progress.rows, self.layout.rows);
            if found != expected {
                let problem = format!("'{name}' got {found} rows, expected {expected}");
                return Err(Problem::new(problem).in_target(&self.path));
            }
        }
        for (entry, progress) in self.entries.iter_mut().zip(&self.progress) {
            entry.crc = progress.crc.sum();
        }
        let failed = |source| IoError::Write { path: self.path.clone(), source };
        for entry in &self.entries {
            self.put(entry.offset, &entry.local_header()).map_err(failed)?;
        }
        let end = self.entries.last().map_or(0, StoredEntry::end);
        self.put(end, &directory(&self.entries)).map_err(failed)?;
        self.part.finish(&self.path, self.force)
    }

    fn put(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.part.file();
        file.seek(SeekFrom::Start(at))?;
        file.write_all(bytes)
    }
}

fn entries(layout: &MapLayout, small: &[NamedArray<'_>]) -> Check<Vec<StoredEntry>> {
    let MapLayout { rows, cols, bands, arrays, element } = layout;
    let too_large = || Problem::new(format!("{rows} x {cols} x {bands} is no possible size"));
    let unusable = |error: io::Error| Problem::new(error.to_string());
    let header = npy::header(element.descr(), &[*rows, *cols, *bands]).map_err(unusable)?;
    let length = [*rows, *cols, *bands, element.size()]
        .iter()
        .try_fold(1u64, |product, &side| product.checked_mul(side as u64))
        .and_then(|bytes| bytes.checked_add(header.len() as u64))
        .filter(|bytes| *bytes < 1 << 56)
        .ok_or_else(too_large)?;
    let mut names: Vec<&str> = small.iter().map(|array| &*array.name).collect();
    names.extend(arrays);
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Problem::new(format!("array {} comes twice", quoted(pair[0]))));
    }
    let mut lengths: Vec<(String, u64)> =
        arrays.iter().map(|name| (format!("{name}.npy"), length)).collect();
    for array in small {
        lengths.push((format!("{}.npy", array.name), npy::length(array).map_err(unusable)?));
    }
    Ok(zip_layout::layout(lengths))
}
