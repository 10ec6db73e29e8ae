//! MATLAB files of version 7.3, which are HDF5 files whose axes stand in reverse order.

use std::panic::{AssertUnwindSafe, catch_unwind};

use hdf5_pure::{DType, File};
use ndarray::ArrayD;

use crate::error::{Check, Problem, quoted};
use crate::store::{Entry, MAX_EXPANSION, Store, arrange, count_elements};
use crate::{mat_text, memory};

/// The variables of a MATLAB 7.3 file that lies in memory.
pub(crate) struct Mat73 {
    file: File,
    entries: Vec<Entry>,
    file_length: usize,
}

impl Mat73 {
    pub fn open(bytes: &[u8]) -> Check<Self> {
        let damaged = |error| Problem::new(format!("damaged MATLAB 7.3 file: {error}"));
        let file_length = bytes.len();
        let (file, entries) = guarded(|| {
            let file = File::from_bytes(bytes.to_vec())?;
            let entries = list(&file)?;
            Ok((file, entries))
        })
        .map_err(damaged)?;
        Ok(Self { file, entries, file_length })
    }
}

fn list(file: &File) -> Result<Vec<Entry>, hdf5_pure::Error> {
    let root = file.root();
    let mut entries = Vec::new();
    for name in root.datasets()? {
        let dataset = root.dataset(&name)?;
        // What cannot be described (a cell array, say) is no map; the others may still be.
        let (Ok(shape), Ok(dtype)) = (dataset.shape(), dataset.dtype()) else { continue };
        // MATLAB stores the shape of an empty array as its elements.
        if dataset.attrs().is_ok_and(|attrs| attrs.contains_key("MATLAB_empty")) {
            continue;
        }
        let side = |&side: &u64| usize::try_from(side).unwrap_or(usize::MAX);
        let shape: Vec<usize> = shape.iter().rev().map(side).collect();
        entries.push(Entry { name, shape, kind: dtype.to_string() });
    }
    Ok(entries)
}

/// Runs the HDF5 reader. It reports damage as errors; should a hostile file still make it panic,
/// that too becomes an error.
fn guarded<T>(read: impl FnOnce() -> Result<T, hdf5_pure::Error>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(outcome) => outcome.map_err(|error| quoted(&error.to_string())),
        Err(_) => Err("its structure makes no sense".to_owned()),
    }
}

impl Store for Mat73 {
    fn entries(&self) -> &[Entry] {
        &self.entries
    }

    fn load(&mut self, index: usize) -> Check<ArrayD<f64>> {
        let Entry { name, shape, kind } = &self.entries[index];
        let wrong = |what: String| Problem::new(format!("array {}: {what}", quoted(name)));
        let count = count_elements(name, shape)?;
        if count > self.file_length.saturating_mul(MAX_EXPANSION) {
            return Err(wrong(format!("{count} elements cannot come out of this file")));
        }
        let bytes = (count as u64).saturating_mul(2 * size_of::<f64>() as u64);
        memory::check(&format!("array {}", quoted(name)), bytes, "save it as .npz")?;
        let values = guarded(|| {
            let dataset = self.file.root().dataset(name)?;
            let numeric = matches!(
                dataset.dtype()?,
                DType::F32
                    | DType::F64
                    | DType::I8
                    | DType::I16
                    | DType::I32
                    | DType::I64
                    | DType::U8
                    | DType::U16
                    | DType::U32
                    | DType::U64
            );
            if numeric { dataset.read_f64().map(Some) } else { Ok(None) }
        });
        match values {
            Ok(Some(values)) => arrange(name, shape, true, values),
            Ok(None) => Err(wrong(format!("type {}, expected real numbers", quoted(kind)))),
            Err(error) => Err(wrong(format!("damaged: {error}"))),
        }
    }

    fn load_text(&mut self, index: usize) -> Check<Vec<String>> {
        let Entry { name, shape, .. } = &self.entries[index];
        let wrong = |what: String| Problem::new(format!("array {}: {what}", quoted(name)));
        if count_elements(name, shape)? > mat_text::MOST_BYTES / 2 {
            return Err(wrong(format!("shape {shape:?}, expected short texts")));
        }
        let units = guarded(|| {
            let dataset = self.file.root().dataset(name)?;
            let text = matches!(dataset.dtype()?, DType::U16);
            if text { dataset.read_u16().map(Some) } else { Ok(None) }
        });
        match units {
            Ok(Some(units)) => mat_text::decode(name, &units, shape),
            Ok(None) => Err(wrong("expected text".to_owned())),
            Err(error) => Err(wrong(format!("damaged: {error}"))),
        }
    }

    fn bands_first(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_reader_is_an_error() {
        let outcome = guarded::<()>(|| panic!("a hostile file"));
        assert!(outcome.unwrap_err().contains("makes no sense"));
    }
}
