//! Fitted models: the named arrays of the library in an npz archive.

use std::path::Path;

use portolan::Model;
use portolan::model::{Archive, Stored};

use crate::error::{Check, Problem, Result};
use crate::memory;
use crate::named_array::named_arrays;
use crate::npz;
use crate::output::{check_space, write_file};
use crate::source::Source;
use crate::store::Store;

/// The array by which a model is known.
const MARK: &str = "portolan_model";

/// True where the arrays are a model.
pub(crate) fn is_model(store: &dyn Store) -> bool {
    store.has(MARK)
}

/// Writes a model; its name must end in .npz.
///
/// ```
/// use ndarray::array;
/// use portolan::estimate::{Kriging, Method};
/// use portolan::{Context, Progress, Readings, Scale, Site, Values};
/// use portolan_io::{read_model, write_model};
/// # let folder = tempfile::tempdir()?;
/// let sites = vec![Site::new(0.0, 0.0), Site::new(3.5, 1.25), Site::new(1.0, 6.0)];
/// let readings = Readings::new(sites, Values::Power(array![[1e-7], [2e-8], [3e-8]]), Scale::Absolute)?;
/// let model = Kriging::default().fit(&readings, &Context::default(), &Progress::silent())?;
/// let path = folder.path().join("model.npz");
/// write_model(&path, &model, false)?;
/// let (at, silent) = ([Site::new(2.0, 2.0)], Progress::silent());
/// assert_eq!(read_model(&path)?.predict(&at, &silent)?, model.predict(&at, &silent)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_model(path: impl AsRef<Path>, model: &Model, force: bool) -> Result<()> {
    let path = path.as_ref();
    if path.extension().is_none_or(|e| !e.eq_ignore_ascii_case("npz")) {
        return Err(Problem::new("a model's name must end in .npz").in_target(path));
    }
    let arrays = named_arrays(model.to_archive());
    check_space(path, npz::length(&arrays))?;
    write_file(path, force, |out| npz::write(&arrays, out))
}

/// Reads a model.
pub fn read_model(path: impl AsRef<Path>) -> Result<Model> {
    let path = path.as_ref();
    let mut source = Source::open(path)?;
    let format = source.format(path, None);
    let read = format.and_then(|format| {
        let mut store = source.store(format)?;
        read(store.as_mut())
    });
    read.map_err(|problem| problem.in_file(path))
}

pub(crate) fn read(store: &mut dyn Store) -> Check<Model> {
    if !is_model(store) {
        return Err(Problem::new("is not a model: make one with `portolan fit`"));
    }
    let mut entries = Vec::new();
    for index in 0..store.entries().len() {
        let (name, kind) =
            (store.entries()[index].name.clone(), store.entries()[index].kind.clone());
        let letters = kind.trim_start_matches(['<', '>', '|', '=']);
        let stored = match letters.chars().next() {
            Some('U') => Stored::Text(store.load_text(index)?),
            Some('i' | 'u') => Stored::Whole(store.load(index)?.mapv(|v| v as i64)),
            _ if letters == "f4" => Stored::Single(store.load(index)?.mapv(|v| v as f32)),
            _ => Stored::Real(store.load(index)?),
        };
        entries.push((name, stored));
    }
    let free = memory::available().unwrap_or(u64::MAX);
    Model::from_archive_within(&Archive::new(entries), free)
        .map_err(|error| Problem::new(error.to_string()))
}
