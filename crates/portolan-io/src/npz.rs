//! NumPy archives: a zip of arrays. Nothing is allocated on the word of a header alone.

use std::io::{self, Cursor, Read, Seek, Write};

use ndarray::ArrayD;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, System, ZipArchive, ZipWriter};

use crate::error::{Check, Problem, quoted};
use crate::npy::{self, Header};
use crate::store::{
    Entry, Field, FieldData, MAX_BYTES, MAX_EXPANSION, Store, arrange, count_elements,
};

/// The arrays of an npz file that lies in memory.
pub(crate) struct Npz<'a> {
    archive: ZipArchive<Cursor<&'a [u8]>>,
    entries: Vec<Entry>,
    /// Place of each entry in the archive, which may hold other files too.
    places: Vec<usize>,
    file_length: usize,
}

impl<'a> Npz<'a> {
    pub fn open(bytes: &'a [u8]) -> Check<Self> {
        let damaged = |error| Problem::new(format!("damaged npz archive: {error}"));
        let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(damaged)?;
        let (mut entries, mut places) = (Vec::new(), Vec::new());
        for place in 0..archive.len() {
            let mut file = archive.by_index(place).map_err(damaged)?;
            let name = String::from_utf8_lossy(file.name_raw()).into_owned();
            let Some(name) = name.strip_suffix(".npy") else { continue };
            let header = Header::read(name, &mut file)?;
            entries.push(Entry { name: name.to_owned(), shape: header.shape, kind: header.descr });
            places.push(place);
        }
        Ok(Self { archive, entries, places, file_length: bytes.len() })
    }
}

impl Store for Npz<'_> {
    fn entries(&self) -> &[Entry] {
        &self.entries
    }

    fn load(&mut self, index: usize) -> Check<ArrayD<f64>> {
        let name = &self.entries[index].name;
        let wrong = |what: String| Problem::new(format!("array {}: {what}", quoted(name)));
        let mut file = self
            .archive
            .by_index(self.places[index])
            .map_err(|error| wrong(format!("damaged archive: {error}")))?;
        let header = Header::read(name, &mut file)?;
        let (kind, big_endian) = header
            .number()
            .ok_or_else(|| wrong(format!("type {}, expected numbers", quoted(&header.descr))))?;
        let count = count_elements(name, &header.shape)?;
        let length = count.saturating_mul(kind.size());
        let declared = file.size().saturating_sub(header.length as u64);
        if declared != length as u64 {
            let shape = &header.shape;
            return Err(wrong(format!("{declared} bytes, expected {length} for shape {shape:?}")));
        }
        let stored = usize::try_from(file.compressed_size()).unwrap_or(usize::MAX);
        let most = stored.min(self.file_length).saturating_mul(MAX_EXPANSION);
        if length > most.min(MAX_BYTES) {
            return Err(wrong(format!("{length} bytes cannot come out of this file")));
        }
        let mut values = Vec::new();
        values
            .try_reserve_exact(count)
            .map_err(|_| wrong(format!("{count} elements do not fit the memory")))?;
        let mut block = vec![0; 1 << 16];
        let mut left = length;
        while left > 0 {
            let part = &mut block[..left.min(1 << 16)];
            file.read_exact(part).map_err(|error| wrong(format!("damaged: {error}")))?;
            kind.decode(big_endian, part, &mut values);
            left -= part.len();
        }
        // The check sum is compared when the end is met.
        match file.read(&mut block[..1]) {
            Ok(0) => arrange(name, &header.shape, header.column_major, values),
            Ok(_) => Err(wrong("more bytes than its shape says".into())),
            Err(error) => Err(wrong(format!("damaged: {error}"))),
        }
    }

    fn bands_first(&self) -> bool {
        true
    }
}

/// Writes an archive that NumPy reads. The bytes depend on the fields alone.
pub(crate) fn write(fields: &[Field<'_>], out: impl Write + Seek) -> io::Result<()> {
    let mut archive = ZipWriter::new(out);
    for field in fields {
        let size = match field.data {
            FieldData::Byte(_) => 1,
            FieldData::Real(_) | FieldData::Whole(_) => 8,
        };
        let length = field.shape().iter().product::<usize>() * size;
        // Stored, as `np.savez` does: the mantissas of float64 powers hardly compress.
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .last_modified_time(DateTime::default())
            .system(System::Unix)
            .unix_permissions(0o644)
            .large_file(length >= 1 << 31);
        archive.start_file(format!("{}.npy", field.name), options).map_err(io::Error::other)?;
        npy::write(field, &mut archive)?;
    }
    archive.finish().map_err(io::Error::other)?.flush()
}
