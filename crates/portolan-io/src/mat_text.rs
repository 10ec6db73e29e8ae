//! Texts in MATLAB files: the rows of a matrix of UTF-16 units, column after column, filled up with
//! blanks.

use crate::error::{Check, Problem, quoted};

/// The most bytes that texts may take: labels are short.
pub(crate) const MOST_BYTES: usize = 1 << 22;

/// Units of the longest text, 1 at least.
pub(crate) fn width<'a>(texts: impl Iterator<Item = &'a String>) -> usize {
    texts.map(|text| text.encode_utf16().count()).max().unwrap_or(0).max(1)
}

/// The bytes of a matrix of texts, little-endian.
pub(crate) fn encode<'a>(texts: impl Iterator<Item = &'a String> + Clone) -> Vec<u8> {
    let width = width(texts.clone());
    let blanks = std::iter::repeat(u16::from(b' '));
    let rows: Vec<Vec<u16>> =
        texts.map(|text| text.encode_utf16().chain(blanks.clone()).take(width).collect()).collect();
    (0..width)
        .flat_map(|column| rows.iter().map(move |row| row[column]))
        .flat_map(u16::to_le_bytes)
        .collect()
}

/// The rows of a matrix of units.
pub(crate) fn decode(name: &str, units: &[u16], shape: &[usize]) -> Check<Vec<String>> {
    let (rows, columns) = match *shape {
        [rows, columns] if rows.checked_mul(columns) == Some(units.len()) => (rows, columns),
        _ => {
            let (name, found) = (quoted(name), units.len());
            return Err(Problem::new(format!(
                "array {name}: {found} characters of shape {shape:?}, expected rows of text"
            )));
        }
    };
    let text = |row: usize| {
        let row: Vec<u16> = units.iter().copied().skip(row).step_by(rows).collect();
        String::from_utf16_lossy(&row).trim_end_matches([' ', '\0']).to_owned()
    };
    // An empty text is 0 x 0.
    match columns {
        0 => Ok(vec![String::new()]),
        _ => Ok((0..rows).map(text).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        let texts = ["2412MHz", "", "µW", "𝄞"].map(str::to_owned);
        let bytes = encode(texts.iter());
        let (units, _) = bytes.as_chunks::<2>();
        let units: Vec<u16> = units.iter().map(|unit| u16::from_le_bytes(*unit)).collect();
        assert_eq!(decode("labels", &units, &[4, 7]).unwrap(), texts);
        assert!(decode("labels", &units, &[4, 8]).is_err());
        assert!(decode("labels", &units, &[2, 2, 7]).is_err());
        assert!(decode("labels", &[], &[0, 1 << 40]).unwrap().is_empty());
        assert_eq!(decode("unit", &[], &[0, 0]).unwrap(), [""]);
    }
}
