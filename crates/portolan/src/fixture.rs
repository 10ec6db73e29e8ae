//! Golden values for tests: reads the arrays of an `.npz` file (NumPy's format 1.0 and 2.0).

use std::collections::HashMap;
use std::io::Read;

/// Every array of `tests/fixtures/<name>` as shape and values in C order.
pub fn load(name: &str) -> HashMap<String, (Vec<usize>, Vec<f64>)> {
    let path = format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::File::open(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let mut archive = zip::ZipArchive::new(file).unwrap();
    (0..archive.len())
        .map(|i| {
            let mut entry = archive.by_index(i).unwrap();
            let key = entry.name().unwrap().trim_end_matches(".npy").to_string();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            let array = parse(&bytes).unwrap_or_else(|e| panic!("{name}, {key}: {e}"));
            (key, array)
        })
        .collect()
}

fn parse(bytes: &[u8]) -> Result<(Vec<usize>, Vec<f64>), String> {
    if bytes.len() < 12 || &bytes[..6] != b"\x93NUMPY" {
        return Err("not an npy array".into());
    }
    let (start, length) = match bytes[6] {
        1 => (10, usize::from(u16::from_le_bytes([bytes[8], bytes[9]]))),
        _ => (12, u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]) as usize),
    };
    let header = String::from_utf8_lossy(&bytes[start..start + length]).into_owned();
    if header.contains("'fortran_order': True") {
        return Err("Fortran order".into());
    }
    let shape = header
        .split_once("'shape': (")
        .and_then(|(_, rest)| rest.split_once(')'))
        .ok_or("no shape")?
        .0
        .split(',')
        .map(str::trim)
        .filter(|s| !s.is_empty())
        .map(|s| s.parse().map_err(|_| format!("bad shape {s}")))
        .collect::<Result<Vec<usize>, _>>()?;
    let words = bytes[start + length..].chunks_exact(8).map(|w| w.try_into().unwrap());
    let values: Vec<f64> = if header.contains("<f8") {
        words.map(f64::from_le_bytes).collect()
    } else if header.contains("<i8") {
        words.map(|w| i64::from_le_bytes(w) as f64).collect()
    } else {
        return Err(format!("unsupported type in {header}"));
    };
    let expected: usize = shape.iter().product();
    if values.len() != expected {
        return Err(format!("{} values for shape {shape:?}", values.len()));
    }
    Ok((shape, values))
}
