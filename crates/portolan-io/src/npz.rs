//! NumPy archives: a zip of arrays, read from the file one array at a time. Nothing is allocated on
//! the word of a header alone: a stored array must have its bytes, a deflated one may claim what
//! deflate can make of its bytes, and either must fit the memory.

use std::io::{self, Read, Seek, SeekFrom, Write};

use ndarray::ArrayD;
use zip::read::ZipFile;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, System, ZipArchive, ZipWriter};

use crate::error::{Check, Problem, quoted};
use crate::npy::{self, Header};
use crate::number::ElementType;
use crate::store::{Entry, MAX_EXPANSION, NamedArray, Store, arrange, count_elements, reserve};

/// The most bytes that an array of text may take: labels are short.
const MOST_TEXT: u64 = 1 << 22;

/// Bytes that are decoded at a time.
const BLOCK: usize = 1 << 16;

/// What to do about an array that does not fit the memory.
pub(crate) const ADVICE: &str = "read a part of it with --region";

/// A file, or bytes in memory.
pub(crate) trait ReadSeek: Read + Seek {}

impl<T: Read + Seek> ReadSeek for T {}

/// The arrays of an npz file.
pub(crate) struct Npz<'a> {
    archive: ZipArchive<Box<dyn ReadSeek + 'a>>,
    entries: Vec<Entry>,
    arrays: Vec<Array>,
    file_length: u64,
}

/// One array: where it is and how it is packed.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    pub header: Header,
    /// Place in the archive, which may hold other files too.
    place: usize,
    pub stored: bool,
    packed: u64,
    unpacked: u64,
}

/// The elements of an array of numbers, whose size was found to be possible.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    pub kind: ElementType,
    pub big_endian: bool,
    pub count: usize,
}

impl<'a> Npz<'a> {
    pub fn open(mut source: impl ReadSeek + 'a) -> Check<Self> {
        let unreadable = |error| Problem::new(format!("reading stopped: {error}"));
        let file_length = source.seek(SeekFrom::End(0)).map_err(unreadable)?;
        let damaged = |error| Problem::new(format!("damaged npz archive: {error}"));
        let source: Box<dyn ReadSeek + 'a> = Box::new(source);
        let mut archive = ZipArchive::new(source).map_err(damaged)?;
        let (mut entries, mut arrays) = (Vec::new(), Vec::new());
        for place in 0..archive.len() {
            let mut file = archive.by_index(place).map_err(damaged)?;
            let name = String::from_utf8_lossy(file.name_raw()).into_owned();
            let Some(name) = name.strip_suffix(".npy") else { continue };
            let header = Header::read(name, &mut file)?;
            let (shape, kind) = (header.shape.clone(), header.descr.clone());
            entries.push(Entry { name: name.to_owned(), shape, kind });
            let stored = file.compression() == CompressionMethod::Stored;
            let (packed, unpacked) = (file.compressed_size(), file.size());
            arrays.push(Array { header, place, stored, packed, unpacked });
        }
        Ok(Self { archive, entries, arrays, file_length })
    }

    pub fn array(&self, index: usize) -> &Array {
        &self.arrays[index]
    }

    pub fn wrong(&self, index: usize, what: impl std::fmt::Display) -> Problem {
        Problem::new(format!("array {}: {what}", quoted(&self.entries[index].name)))
    }

    /// The array's file in the archive, at the first byte of its header.
    pub fn stream(&mut self, index: usize) -> Check<ZipFile<'_, Box<dyn ReadSeek + 'a>>> {
        let name = &self.entries[index].name;
        self.archive.by_index(self.arrays[index].place).map_err(|error| {
            Problem::new(format!("array {}: damaged archive: {error}", quoted(name)))
        })
    }

    /// The same, seekable; only for stored arrays.
    pub fn seekable(&mut self, index: usize) -> Check<impl Read + Seek + '_> {
        let name = &self.entries[index].name;
        self.archive.by_index_seek(self.arrays[index].place).map_err(|error| {
            Problem::new(format!("array {}: damaged archive: {error}", quoted(name)))
        })
    }

    /// The number of elements, where so many bytes can be in the file.
    fn count(&self, index: usize, size: usize) -> Check<usize> {
        let Array { header, stored, packed, unpacked, .. } = &self.arrays[index];
        let count = count_elements(&self.entries[index].name, &header.shape)?;
        let length = (count as u64).saturating_mul(size as u64);
        let declared = unpacked.saturating_sub(header.length as u64);
        if declared != length {
            let shape = &header.shape;
            let what = format!("{declared} bytes, expected {length} for shape {shape:?}");
            return Err(self.wrong(index, what));
        }
        let expansion = if *stored { 1 } else { MAX_EXPANSION as u64 };
        if *unpacked > (*packed).min(self.file_length).saturating_mul(expansion) {
            return Err(self.wrong(index, format!("{length} bytes cannot come out of this file")));
        }
        Ok(count)
    }

    pub fn numbers(&self, index: usize) -> Check<Numbers> {
        let header = &self.arrays[index].header;
        let (kind, big_endian) = header.number().ok_or_else(|| {
            self.wrong(index, format!("type {}, expected numbers", quoted(&header.descr)))
        })?;
        Ok(Numbers { kind, big_endian, count: self.count(index, kind.size())? })
    }

    /// Passes the elements on, block by block in the order of the file, with the position of the
    /// first one of each block.
    pub fn scan(
        &mut self,
        index: usize,
        mut take: impl FnMut(usize, &[f64]) -> Check<()>,
    ) -> Check<()> {
        let Numbers { kind, big_endian, count } = self.numbers(index)?;
        let (skip, name) = (self.arrays[index].header.length, self.entries[index].name.clone());
        let damaged = |error| Problem::new(format!("array {}: damaged: {error}", quoted(&name)));
        let mut file = self.stream(index)?;
        let mut block = vec![0; BLOCK];
        let mut values = Vec::with_capacity(BLOCK / kind.size());
        skip_bytes(&mut file, skip as u64).map_err(damaged)?;
        let mut first = 0;
        while first < count {
            let part = &mut block[..(count - first).min(BLOCK / kind.size()) * kind.size()];
            file.read_exact(part).map_err(damaged)?;
            values.clear();
            kind.decode(big_endian, part, &mut values);
            take(first, &values)?;
            first += values.len();
        }
        // The check sum is compared when the end is met.
        match file.read(&mut block[..1]) {
            Ok(0) => Ok(()),
            Ok(_) => Err(damaged(io::Error::other("more bytes than its shape says"))),
            Err(error) => Err(damaged(error)),
        }
    }
}

/// Reads bytes and forgets them.
pub(crate) fn skip_bytes(source: &mut impl Read, bytes: u64) -> io::Result<()> {
    match io::copy(&mut source.take(bytes), &mut io::sink())? {
        skipped if skipped == bytes => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

impl Store for Npz<'_> {
    fn entries(&self) -> &[Entry] {
        &self.entries
    }

    fn load(&mut self, index: usize) -> Check<ArrayD<f64>> {
        let Numbers { count, .. } = self.numbers(index)?;
        let Header { shape, column_major, .. } = self.arrays[index].header.clone();
        let name = self.entries[index].name.clone();
        let copies = if column_major && shape.len() > 1 { 2 } else { 1 };
        let mut values = reserve(&name, count, copies, ADVICE)?;
        self.scan(index, |_, block| {
            values.extend_from_slice(block);
            Ok(())
        })?;
        arrange(&name, &shape, column_major, values)
    }

    fn load_text(&mut self, index: usize) -> Check<Vec<String>> {
        let Header { descr, length, .. } = self.arrays[index].header.clone();
        let text = self.arrays[index]
            .header
            .text()
            .ok_or_else(|| self.wrong(index, format!("type {}, expected text", quoted(&descr))))?;
        let bytes = text.width.saturating_mul(text.size);
        let count = self.count(index, bytes)?;
        let total = (count as u64).saturating_mul(bytes.max(1) as u64);
        if total > MOST_TEXT {
            return Err(self.wrong(index, format!("{total} bytes, expected short texts")));
        }
        let mut data = Vec::new();
        let read = self.stream(index)?.take(MOST_TEXT + length as u64 + 1).read_to_end(&mut data);
        let there = read.map_err(|error| self.wrong(index, format!("damaged: {error}")))?;
        if there != length + count * bytes {
            return Err(self.wrong(index, "damaged: its length is not what its shape says"));
        }
        Ok((0..count).map(|n| text.decode(&data[length + n * bytes..][..bytes])).collect())
    }

    fn bands_first(&self) -> bool {
        true
    }
}

/// The bytes that [`write`] makes of the arrays, but for some hundred of the archive's own.
pub(crate) fn length(arrays: &[NamedArray<'_>]) -> io::Result<u64> {
    arrays.iter().map(npy::length).sum()
}

/// Writes an archive that NumPy reads. The bytes depend on the arrays alone.
pub(crate) fn write(arrays: &[NamedArray<'_>], out: impl Write + Seek) -> io::Result<()> {
    let mut archive = ZipWriter::new(out);
    for array in arrays {
        // Stored, as `np.savez` does: the mantissas of float64 powers hardly compress.
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .last_modified_time(DateTime::default())
            .system(System::Unix)
            .unix_permissions(0o644)
            .large_file(npy::length(array)? >= 1 << 31);
        archive.start_file(format!("{}.npy", array.name), options).map_err(io::Error::other)?;
        npy::write(array, &mut archive)?;
    }
    archive.finish().map_err(io::Error::other)?.flush()
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn fields_of_every_kind_are_read_back() {
        let texts = ["dBm".to_owned(), String::new(), "µW \u{1d11e}".to_owned()];
        let truths = ndarray::array![[true, false], [false, true]].into_dyn();
        let floats = ndarray::array![0.25f32, f32::NAN, 3e-40].into_dyn();
        let arrays = [
            NamedArray::texts("labels", &texts),
            NamedArray::text("unit", "relative"),
            NamedArray::truth("not_heard", truths.into()),
            NamedArray::real32("map", floats.clone().into()),
        ];
        let mut bytes = Cursor::new(Vec::new());
        write(&arrays, &mut bytes).unwrap();
        assert!(bytes.get_ref().len() as u64 - length(&arrays).unwrap() < 1000);
        let mut npz = Npz::open(bytes).unwrap();
        let kinds: Vec<&str> = npz.entries().iter().map(|entry| entry.kind.as_str()).collect();
        assert_eq!(kinds, ["<U4", "<U8", "|b1", "<f4"]);
        assert_eq!(npz.load_text(0).unwrap(), texts);
        assert_eq!(npz.load_text(1).unwrap(), ["relative"]);
        assert!(npz.load_text(2).is_err() && npz.load(0).is_err());
        assert_eq!(npz.load(2).unwrap(), ndarray::array![[1.0, 0.0], [0.0, 1.0]].into_dyn());
        let found = npz.load(3).unwrap();
        assert!(found[0] == 0.25 && found[1].is_nan() && found[2] == f64::from(floats[2]));
    }
}
