//! Reads the golden values under `tests/fixtures`.

use std::collections::HashMap;
use std::io::Read;

/// Every array of `tests/fixtures/{name}.npz`: its shape and its values (float64 or int64, C order).
pub fn load(name: &str) -> HashMap<String, (Vec<usize>, Vec<f64>)> {
    let path = format!("{}/tests/fixtures/{name}.npz", env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::File::open(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let mut archive = zip::ZipArchive::new(file).unwrap();
    let names: Vec<String> = archive.file_names().map(|n| n.unwrap().into_owned()).collect();
    names
        .into_iter()
        .map(|entry| {
            let mut bytes = Vec::new();
            archive.by_name(&entry).unwrap().read_to_end(&mut bytes).unwrap();
            (entry.trim_end_matches(".npy").to_owned(), parse(&bytes))
        })
        .collect()
}

fn parse(bytes: &[u8]) -> (Vec<usize>, Vec<f64>) {
    assert_eq!(&bytes[..6], b"\x93NUMPY");
    let (len, start) = match bytes[6] {
        1 => (usize::from(u16::from_le_bytes([bytes[8], bytes[9]])), 10),
        _ => (u32::from_le_bytes(bytes[8..12].try_into().unwrap()) as usize, 12),
    };
    let header = std::str::from_utf8(&bytes[start..start + len]).unwrap();
    assert!(header.contains("'fortran_order': False"), "{header}");
    let inside = header.split_once('(').unwrap().1.split_once(')').unwrap().0;
    let shape = inside.split(',').filter_map(|side| side.trim().parse().ok()).collect();
    let words = bytes[start + len..].chunks_exact(8).map(|w| w.try_into().unwrap());
    let values = if header.contains("'<f8'") {
        words.map(f64::from_le_bytes).collect()
    } else {
        assert!(header.contains("'<i8'"), "{header}");
        words.map(|w| i64::from_le_bytes(w) as f64).collect()
    };
    (shape, values)
}
