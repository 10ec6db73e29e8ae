//! A map file that is read in parts: what is in it, any region of it, or strips of rows one after
//! the other, without ever holding the whole.

use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use ndarray::{Array3, ArrayD, Axis, s};
use zip::read::ZipFile;

use crate::error::{Check, Problem, Result, quoted};
use crate::format::Format;
use crate::map_arrays::layers;
use crate::npz::{ADVICE, Npz, Numbers, ReadSeek, skip_bytes};
use crate::source::Source;
use crate::store::{Store, cube, matrix, reserve};
use crate::summary::ArraySummary;

/// A map `.npz` that stays on disk.
///
/// An array saved by `np.savez` or by [`MapWriter`](crate::MapWriter) is sought in the file; one
/// saved by `np.savez_compressed` is streamed through. A part carries no check sum: damage shows
/// only where an array is read to its end.
///
/// ```
/// use portolan::{Grid, RadioMap, Scale};
/// use portolan_io::{MapFile, WriteOptions, write_map};
/// # let folder = tempfile::tempdir()?;
/// let power = ndarray::Array3::from_shape_fn((6, 4, 2), |(i, ..)| 1e-7 * (1 + i) as f64);
/// let map = RadioMap::dense(Grid::new(6, 4, 1.0)?, power, Scale::Absolute)?;
/// let path = folder.path().join("map.npz");
/// write_map(&path, &map, &WriteOptions::default())?;
/// let mut file = MapFile::open(&path)?;
/// assert_eq!(file.shape(), (6, 4, 2));
/// assert_eq!(file.read_rows("map", 4..6, 0..1, 0..2)?[[1, 0, 0]], 1e-7 * 6.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct MapFile {
    npz: Npz<'static>,
    path: PathBuf,
    shape: (usize, usize, usize),
}

impl MapFile {
    /// Opens a file that holds `map`, or `slf` and `psd`; of the arrays only the headers are read.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let in_file = |problem: Problem| problem.in_file(path);
        let mut source = Source::open(path)?;
        if source.format(path, None).map_err(in_file)? != Format::Npz {
            return Err(in_file(Problem::new("expected a map in .npz, which is read in parts")));
        }
        let npz = Npz::open(source.into_stream()).map_err(in_file)?;
        let shape = shape(&npz).map_err(in_file)?;
        Ok(Self { npz, path: path.to_owned(), shape })
    }

    /// Rows, columns and bands.
    pub fn shape(&self) -> (usize, usize, usize) {
        self.shape
    }

    /// Every array with its shape and the type of its elements (`<f4`, `<f8`, `<U7` ...).
    pub fn arrays(&self) -> Vec<ArraySummary> {
        self.npz.entries().iter().map(ArraySummary::from).collect()
    }

    pub fn has(&self, name: &str) -> bool {
        self.index(name).is_some()
    }

    /// A small array as a whole: `freq_hz`, `cell_m`, `emitters`. `None` where there is none.
    pub fn load(&mut self, name: &str) -> Result<Option<ArrayD<f64>>> {
        let store: &mut dyn Store = &mut self.npz;
        store.find(name).map_err(|problem| problem.in_file(&self.path))
    }

    /// The texts of an array of text: `labels`, `unit`. `None` where there is none.
    pub fn load_text(&mut self, name: &str) -> Result<Option<Vec<String>>> {
        let store: &mut dyn Store = &mut self.npz;
        store.find_text(name).map_err(|problem| problem.in_file(&self.path))
    }

    /// A region of an array of rows x columns x bands. `map` is made of `slf` and `psd` where the
    /// file holds only those.
    pub fn read_rows(
        &mut self,
        array: &str,
        rows: Range<usize>,
        cols: Range<usize>,
        bands: Range<usize>,
    ) -> Result<Array3<f64>> {
        let region = [rows, cols, bands];
        let values = match self.index(array) {
            Some(index) => region_of(&mut self.npz, index, &region),
            None if array == "map" => product(&mut self.npz, &region),
            None => Err(Problem::new(format!("array {} is missing", quoted(array)))),
        };
        values.map_err(|problem| problem.in_file(&self.path))
    }

    /// Strips of whole rows of an array of rows x columns x bands, from the first to the last. A
    /// strip takes at most about `bytes` of memory, but is at least one row.
    pub fn strips(&mut self, array: &str, bytes: usize) -> Result<Strips<'_>> {
        let Self { npz, path, shape } = self;
        let path: &Path = path;
        let index = npz.entries().iter().position(|entry| entry.name == array);
        let strips = match index {
            Some(index) => Strips::new(npz, index, bytes, path),
            // Factors are small: a region of them is sought for every strip.
            None if array == "map" => Ok(Strips {
                source: StripSource::Factors(npz),
                shape: *shape,
                per_strip: rows_per_strip(*shape, bytes),
                next: 0,
                name: array.to_owned(),
                path,
            }),
            None => Err(Problem::new(format!("array {} is missing", quoted(array)))),
        };
        strips.map_err(|problem| problem.in_file(path))
    }

    fn index(&self, name: &str) -> Option<usize> {
        self.npz.entries().iter().position(|entry| entry.name == name)
    }
}

/// Rows, columns and bands by the headers alone.
fn shape(npz: &Npz<'_>) -> Check<(usize, usize, usize)> {
    let shape = |name: &str| {
        npz.entries().iter().find(|entry| entry.name == name).map(|entry| entry.shape.as_slice())
    };
    match (shape("map"), shape("slf"), shape("psd")) {
        (Some(&[rows, cols, bands]), ..) => Ok((rows, cols, bands)),
        (Some(&[rows, cols]), ..) => Ok((rows, cols, 1)),
        (Some(other), ..) => Err(Problem::new(format!(
            "array 'map' has shape {other:?}, expected rows x cols x bands"
        ))),
        (None, Some(&[emitters, rows, cols]), Some(&[others, bands])) if emitters == others => {
            Ok((rows, cols, bands))
        }
        (None, Some(slf), Some(psd)) => Err(Problem::new(format!(
            "arrays 'slf' and 'psd' have shapes {slf:?} and {psd:?}, expected emitters x rows x \
             cols and emitters x bands"
        ))),
        _ => {
            let store: &dyn Store = npz;
            Err(Problem::new(format!("holds {}, expected 'map'", store.names())))
        }
    }
}

/// A region of an array of rows x cols x bands, or of rows x cols, which is one band.
fn region_of(npz: &mut Npz<'_>, index: usize, region: &[Range<usize>; 3]) -> Check<Array3<f64>> {
    let axes = npz.entries()[index].shape.len();
    let name = npz.entries()[index].name.clone();
    if axes == 2 && region[2] == (0..1) {
        return npz.slab(index, &region[..2]).and_then(|array| layers(&name, array));
    }
    cube(&name, npz.slab(index, region)?, "rows x cols x bands")
}

/// The sum over emitters of SLF times PSD in a region (paper, eq. 2).
pub(crate) fn product(npz: &mut Npz<'_>, region: &[Range<usize>; 3]) -> Check<Array3<f64>> {
    let [rows, cols, bands] = region.clone();
    let store: &mut dyn Store = npz;
    let psd = matrix("psd", store.need("psd", "the file holds no 'map'")?, "emitters x bands")?;
    if bands.start > bands.end || bands.end > psd.ncols() {
        let all = psd.ncols();
        return Err(Problem::new(format!("bands {bands:?} are no part of the map's {all}")));
    }
    let slf = store
        .position("slf")
        .ok_or_else(|| Problem::new("array 'slf' is missing: the file holds no 'map'"))?;
    let slf = npz.slab(slf, &[0..psd.nrows(), rows, cols])?;
    let slf = cube("slf", slf, "emitters x rows x cols")?;
    let (_, rows, cols) = slf.dim();
    let count = rows.saturating_mul(cols).saturating_mul(bands.len());
    let mut values = reserve("map", count, 1, ADVICE)?;
    values.resize(count, 0.0);
    let mut power = Array3::from_shape_vec((rows, cols, bands.len()), values)
        .map_err(|error| Problem::new(format!("array 'map': {error}")))?;
    for (loss, spectrum) in slf.axis_iter(Axis(0)).zip(psd.rows()) {
        let spectrum = spectrum.slice(s![bands.clone()]);
        for (mut cell, &loss) in power.lanes_mut(Axis(2)).into_iter().zip(loss.iter()) {
            cell.scaled_add(loss, &spectrum);
        }
    }
    Ok(power)
}

fn rows_per_strip((_, cols, bands): (usize, usize, usize), bytes: usize) -> usize {
    let row = cols.saturating_mul(bands).saturating_mul(size_of::<f64>());
    (bytes / row.max(1)).max(1)
}

/// Strips of rows of an array, each with the rows it holds; see [`MapFile::strips`].
pub struct Strips<'a> {
    source: StripSource<'a>,
    shape: (usize, usize, usize),
    per_strip: usize,
    next: usize,
    name: String,
    path: &'a Path,
}

enum StripSource<'a> {
    /// Row-major: read from the first byte to the last, and the check sum compared.
    Stream(ZipFile<'a, Box<dyn ReadSeek + 'static>>, Numbers),
    /// Column-major: every strip is a region of its own.
    Regions(&'a mut Npz<'static>, usize),
    Factors(&'a mut Npz<'static>),
}

impl<'a> Strips<'a> {
    fn new(npz: &'a mut Npz<'static>, index: usize, bytes: usize, path: &'a Path) -> Check<Self> {
        let numbers = npz.numbers(index)?;
        let header = npz.array(index).header.clone();
        let name = npz.entries()[index].name.clone();
        let shape = match *header.shape {
            [rows, cols, bands] => (rows, cols, bands),
            [rows, cols] => (rows, cols, 1),
            _ => return Err(npz.wrong(index, "expected rows x cols x bands")),
        };
        let source = if header.column_major {
            StripSource::Regions(npz, index)
        } else {
            let mut file = npz.stream(index)?;
            skip_bytes(&mut file, header.length as u64)
                .map_err(|error| Problem::new(format!("array {}: {error}", quoted(&name))))?;
            StripSource::Stream(file, numbers)
        };
        Ok(Self { source, shape, per_strip: rows_per_strip(shape, bytes), next: 0, name, path })
    }

    fn strip(&mut self, rows: Range<usize>) -> Check<Array3<f64>> {
        let (all, cols, bands) = self.shape;
        let last = rows.end == all;
        let region = [rows.clone(), 0..cols, 0..bands];
        let (file, numbers) = match &mut self.source {
            StripSource::Stream(file, numbers) => (file, *numbers),
            StripSource::Regions(npz, index) => return region_of(npz, *index, &region),
            StripSource::Factors(npz) => return product(npz, &region),
        };
        let count = rows.len().saturating_mul(cols).saturating_mul(bands);
        let mut values = reserve(&self.name, count, 1, ADVICE)?;
        let damaged =
            |error| Problem::new(format!("array {}: damaged: {error}", quoted(&self.name)));
        let size = numbers.kind.size();
        let mut block = vec![0; (1 << 16).min(count * size)];
        while values.len() < count {
            let part = (count - values.len()).min(block.len() / size) * size;
            file.read_exact(&mut block[..part]).map_err(damaged)?;
            numbers.kind.decode(numbers.big_endian, &block[..part], &mut values);
        }
        // The check sum is compared when the end is met.
        if last && file.read(&mut [0]).map_err(damaged)? > 0 {
            return Err(damaged(io::Error::other("more bytes than its shape says")));
        }
        Array3::from_shape_vec((rows.len(), cols, bands), values)
            .map_err(|error| damaged(io::Error::other(error)))
    }
}

impl Iterator for Strips<'_> {
    type Item = Result<(Range<usize>, Array3<f64>)>;

    fn next(&mut self) -> Option<Self::Item> {
        let (all, cols, bands) = self.shape;
        if self.next >= all || cols == 0 || bands == 0 {
            return None;
        }
        let rows = self.next..self.next.saturating_add(self.per_strip).min(all);
        let strip = self.strip(rows.clone());
        // Nothing follows damage.
        self.next = if strip.is_ok() { rows.end } else { all };
        Some(strip.map(|strip| (rows, strip)).map_err(|problem| problem.in_file(self.path)))
    }
}
