//! Writes MATLAB files of version 5, little-endian and not deflated.

use std::io::{self, Write};

use crate::error::{Check, Problem};
use crate::mat_text;
use crate::named_array::{ArrayData, NamedArray};

/// MATLAB reads no variable of version 5 that takes more.
const MOST_BYTES: usize = (1 << 31) - 1024;

/// Refuses what the format cannot hold.
pub(crate) fn check(arrays: &[NamedArray<'_>]) -> Check<()> {
    match arrays.iter().find(|array| length(array).is_none_or(|bytes| bytes > MOST_BYTES)) {
        Some(array) => Err(Problem::new(format!(
            "'{}' of shape {:?} is larger than a MATLAB v5 file can hold: choose a name in .npz",
            array.name,
            array.shape()
        ))),
        None => Ok(()),
    }
}

fn length(array: &NamedArray<'_>) -> Option<usize> {
    sides(array).iter().try_fold(storage(array).2, |product, &side| product.checked_mul(side))
}

/// Class of the array, type of its elements and the bytes of one.
fn storage(array: &NamedArray<'_>) -> (u32, u32, usize) {
    match array.data {
        ArrayData::Real(_) | ArrayData::Whole(_) => (6, 9, 8),
        ArrayData::Real32(_) => (7, 7, 4),
        ArrayData::Byte(_) | ArrayData::Truth(_) => (9, 2, 1),
        ArrayData::Text(_) => (4, 17, 2),
    }
}

/// Version 5 knows no fewer than two axes: a vector is a row, texts are the rows of a matrix.
fn sides(array: &NamedArray<'_>) -> Vec<usize> {
    if let ArrayData::Text(texts) = &array.data {
        return vec![texts.len(), mat_text::width(texts.iter())];
    }
    let mut sides = vec![1; 2usize.saturating_sub(array.shape().len())];
    sides.extend_from_slice(array.shape());
    sides
}

pub(crate) fn write(arrays: &[NamedArray<'_>], out: &mut impl Write) -> io::Result<()> {
    let mut header = b"MATLAB 5.0 MAT-file, written by Portolan".to_vec();
    header.resize(116, b' ');
    header.resize(124, 0);
    header.extend(b"\x00\x01IM");
    out.write_all(&header)?;
    arrays.iter().try_for_each(|array| write_array(array, out))
}

fn write_array(array: &NamedArray<'_>, out: &mut impl Write) -> io::Result<()> {
    let sides: Vec<u8> = sides(array)
        .iter()
        .map(|&side| i32::try_from(side).map(i32::to_le_bytes))
        .collect::<Result<Vec<_>, _>>()
        .map_err(io::Error::other)?
        .concat();
    let (class, kind, _) = storage(array);
    let logical = if matches!(array.data, ArrayData::Truth(_)) { 0x0200 } else { 0 };
    let data = length(array).ok_or_else(|| io::Error::other("too large"))?;
    let padded = |bytes: usize| 8 + bytes.next_multiple_of(8);
    let total = padded(8) + padded(sides.len()) + padded(array.name.len()) + padded(data);
    tag(14, total, out)?;
    element(6, &[(class | logical).to_le_bytes(), [0; 4]].concat(), out)?;
    element(5, &sides, out)?;
    element(1, array.name.as_bytes(), out)?;
    tag(kind, data, out)?;
    // Reversing the axes turns row-major order into MATLAB's.
    match &array.data {
        ArrayData::Real(values) => {
            values.t().iter().try_for_each(|v| out.write_all(&v.to_le_bytes()))?;
        }
        ArrayData::Whole(values) => {
            values.t().iter().try_for_each(|v| out.write_all(&(*v as f64).to_le_bytes()))?;
        }
        ArrayData::Real32(values) => {
            values.t().iter().try_for_each(|v| out.write_all(&v.to_le_bytes()))?;
        }
        ArrayData::Byte(values) => values.t().iter().try_for_each(|v| out.write_all(&[*v]))?,
        ArrayData::Truth(values) => {
            values.t().iter().try_for_each(|v| out.write_all(&[u8::from(*v)]))?;
        }
        ArrayData::Text(texts) => out.write_all(&mat_text::encode(texts.iter()))?,
    }
    out.write_all(&vec![0; data.next_multiple_of(8) - data])
}

fn tag(kind: u32, size: usize, out: &mut impl Write) -> io::Result<()> {
    let size = u32::try_from(size).map_err(io::Error::other)?;
    out.write_all(&[kind.to_le_bytes(), size.to_le_bytes()].concat())
}

fn element(kind: u32, data: &[u8], out: &mut impl Write) -> io::Result<()> {
    tag(kind, data.len(), out)?;
    out.write_all(data)?;
    out.write_all(&vec![0; data.len().next_multiple_of(8) - data.len()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mat5::Mat5;
    use crate::store::Store;

    #[test]
    fn fields_of_every_kind_are_read_back() {
        let texts = ["2412MHz".to_owned(), "µ".to_owned()];
        let truths = ndarray::array![[true, false, true], [false, true, true]].into_dyn();
        let arrays = [
            NamedArray::texts("labels", &texts),
            NamedArray::text("unit", "dbm"),
            NamedArray::truth("not_heard", truths.into()),
            NamedArray::real32("map", ndarray::array![[0.25f32, 3.0, -1.5]].into_dyn().into()),
        ];
        let mut bytes = Vec::new();
        write(&arrays, &mut bytes).unwrap();
        let mut mat = Mat5::open(&bytes).unwrap();
        let kinds: Vec<&str> = mat.entries().iter().map(|entry| entry.kind.as_str()).collect();
        assert_eq!(kinds, ["char", "char", "logical", "single"]);
        assert_eq!(mat.load_text(0).unwrap(), texts);
        assert_eq!(mat.load_text(1).unwrap(), ["dbm"]);
        assert!(mat.load_text(2).is_err() && mat.load(0).is_err());
        let truths = ndarray::array![[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]].into_dyn();
        assert_eq!(mat.load(2).unwrap(), truths);
        assert_eq!(mat.load(3).unwrap(), ndarray::array![[0.25, 3.0, -1.5]].into_dyn());
    }
}
