//! NumPy archives made by hand, so that they can be wrong in ways that the writer never is.

use std::io::{Cursor, Write};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// One array: name, shape, elements.
pub type Array<'a> = (&'a str, &'a [usize], &'a [f64]);

/// The bytes of an archive of float64 arrays. The shape is written as given, true or not.
pub fn npz(arrays: &[Array<'_>]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for (name, shape, values) in arrays {
        archive.start_file(format!("{name}.npy"), options).unwrap();
        archive.write_all(&npy(shape, values)).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

fn npy(shape: &[usize], values: &[f64]) -> Vec<u8> {
    let sides: String = shape.iter().map(|side| format!("{side}, ")).collect();
    let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({sides}), }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}

/// Readings of one band on a grid of 8 x 9 cells: a sensor and a value at each of `cells`.
pub fn readings(cells: &[(f64, f64)], values: &[f64]) -> Vec<u8> {
    let places: Vec<f64> = cells.iter().flat_map(|&(row, col)| [row, col]).collect();
    npz(&[
        ("grid", &[2], &[8.0, 9.0]),
        ("cells", &[cells.len(), 2], &places),
        ("values", &[values.len(), 1], values),
    ])
}

/// A map of one band whose cells all hold `value`, except the first, which holds `first`.
pub fn map(rows: usize, cols: usize, value: f64, first: f64) -> Vec<u8> {
    let mut values = vec![value; rows * cols];
    values[0] = first;
    npz(&[("map", &[rows, cols, 1], &values)])
}
