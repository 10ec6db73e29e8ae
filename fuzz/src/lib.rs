//! What the targets share: the readers take paths, so bytes go through one file for each process.
//! A reader may refuse bytes, but must not panic, hang or blame anything but the input.

use std::path::PathBuf;
use std::sync::OnceLock;

use portolan_io::{IoError, MapFile, ReadOptions, Unit, inspect, read, read_map, read_readings};
use tempfile::TempDir;

/// Writes the bytes to a file of that name and returns its path.
pub fn file(name: &str, bytes: &[u8]) -> PathBuf {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| tempfile::tempdir().expect("there is a temporary folder"));
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).expect("the temporary folder takes a file");
    path
}

/// Panics unless an error is about the input and is one short line.
pub fn check<T>(result: Result<T, IoError>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            let text = error.to_string();
            assert!(error.is_input(), "{text}");
            assert!(!text.contains(['\n', '\r']) && text.len() < 1000, "{text}");
            None
        }
    }
}

/// Every entry point for maps and readings.
pub fn maps_and_readings(name: &str, bytes: &[u8]) {
    let path = file(name, bytes);
    let dbm = ReadOptions { unit: Some(Unit::Dbm), ..ReadOptions::default() };
    for options in [ReadOptions::default(), dbm] {
        check(read(&path, &options));
        check(read_map(&path, &options));
        check(read_readings(&path, &options));
        check(inspect(&path, &options));
    }
}

/// Every way to read a map in parts.
pub fn parts(name: &str, bytes: &[u8]) {
    let Some(mut file) = check(MapFile::open(file(name, bytes))) else { return };
    let (rows, cols, bands) = file.shape();
    for array in file.arrays() {
        let name = &array.name;
        check(file.load(name));
        check(file.load_text(name));
        check(file.read_rows(name, rows / 2..rows, cols / 2..cols, bands / 2..bands));
        if let Some(strips) = check(file.strips(name, 100)) {
            strips.take(50).for_each(|strip| drop(check(strip)));
        }
    }
}
