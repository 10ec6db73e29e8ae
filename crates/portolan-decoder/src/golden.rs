//! Golden values of tests: float64 and int64 arrays from `tests/fixtures/*.npz` of the crate.

use std::collections::HashMap;
use std::io::Read;

/// Every array of a fixture by name: shape and values.
pub fn load(name: &str) -> HashMap<String, (Vec<usize>, Vec<f64>)> {
    let path = format!("{}/tests/fixtures/{name}.npz", env!("CARGO_MANIFEST_DIR"));
    let mut archive = zip::ZipArchive::new(std::fs::File::open(path).unwrap()).unwrap();
    (0..archive.len())
        .map(|i| {
            let mut entry = archive.by_index(i).unwrap();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            let name = entry.name().unwrap().trim_end_matches(".npy").to_string();
            (name, parse(&bytes))
        })
        .collect()
}

fn parse(bytes: &[u8]) -> (Vec<usize>, Vec<f64>) {
    assert_eq!(&bytes[..7], b"\x93NUMPY\x01");
    let length = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = std::str::from_utf8(&bytes[10..10 + length]).unwrap();
    assert!(header.contains("'fortran_order': False"), "{header}");
    let shape = header.split("'shape': (").nth(1).unwrap().split(')').next().unwrap();
    let shape: Vec<usize> = shape.split(',').filter_map(|side| side.trim().parse().ok()).collect();
    let words = bytes[10 + length..].chunks_exact(8).map(|w| w.try_into().unwrap());
    let values = if header.contains("'<f8'") {
        words.map(f64::from_le_bytes).collect()
    } else {
        assert!(header.contains("'<i8'"), "{header}");
        words.map(|w| i64::from_le_bytes(w) as f64).collect()
    };
    (shape, values)
}
