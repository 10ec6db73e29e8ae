//! Writes MATLAB files of version 5, little-endian and not deflated.

use std::io::{self, Write};

use crate::error::{Check, Problem};
use crate::field::{Field, FieldData};
use crate::mat_text;

/// MATLAB reads no variable of version 5 that takes more.
const MOST_BYTES: usize = (1 << 31) - 1024;

/// Refuses what the format cannot hold.
pub(crate) fn check(fields: &[Field<'_>]) -> Check<()> {
    match fields.iter().find(|field| length(field).is_none_or(|bytes| bytes > MOST_BYTES)) {
        Some(field) => Err(Problem::new(format!(
            "'{}' of shape {:?} is larger than a MATLAB v5 file can hold: choose a name in .npz",
            field.name,
            field.shape()
        ))),
        None => Ok(()),
    }
}

fn length(field: &Field<'_>) -> Option<usize> {
    sides(field).iter().try_fold(storage(field).2, |product, &side| product.checked_mul(side))
}

/// Class of the array, type of its elements and the bytes of one.
fn storage(field: &Field<'_>) -> (u32, u32, usize) {
    match field.data {
        FieldData::Real(_) | FieldData::Whole(_) => (6, 9, 8),
        FieldData::Real32(_) => (7, 7, 4),
        FieldData::Byte(_) | FieldData::Truth(_) => (9, 2, 1),
        FieldData::Text(_) => (4, 17, 2),
    }
}

/// Version 5 knows no fewer than two axes: a vector is a row, texts are the rows of a matrix.
fn sides(field: &Field<'_>) -> Vec<usize> {
    if let FieldData::Text(texts) = &field.data {
        return vec![texts.len(), mat_text::width(texts.iter())];
    }
    let mut sides = vec![1; 2usize.saturating_sub(field.shape().len())];
    sides.extend_from_slice(field.shape());
    sides
}

pub(crate) fn write(fields: &[Field<'_>], out: &mut impl Write) -> io::Result<()> {
    let mut header = b"MATLAB 5.0 MAT-file, written by Portolan".to_vec();
    header.resize(116, b' ');
    header.resize(124, 0);
    header.extend(b"\x00\x01IM");
    out.write_all(&header)?;
    fields.iter().try_for_each(|field| write_field(field, out))
}

fn write_field(field: &Field<'_>, out: &mut impl Write) -> io::Result<()> {
    let sides: Vec<u8> = sides(field)
        .iter()
        .map(|&side| i32::try_from(side).map(i32::to_le_bytes))
        .collect::<Result<Vec<_>, _>>()
        .map_err(io::Error::other)?
        .concat();
    let (class, kind, _) = storage(field);
    let logical = if matches!(field.data, FieldData::Truth(_)) { 0x0200 } else { 0 };
    let data = length(field).ok_or_else(|| io::Error::other("too large"))?;
    let padded = |bytes: usize| 8 + bytes.next_multiple_of(8);
    let total = padded(8) + padded(sides.len()) + padded(field.name.len()) + padded(data);
    tag(14, total, out)?;
    element(6, &[(class | logical).to_le_bytes(), [0; 4]].concat(), out)?;
    element(5, &sides, out)?;
    element(1, field.name.as_bytes(), out)?;
    tag(kind, data, out)?;
    // Reversing the axes turns row-major order into MATLAB's.
    match &field.data {
        FieldData::Real(values) => {
            values.t().iter().try_for_each(|v| out.write_all(&v.to_le_bytes()))?;
        }
        FieldData::Whole(values) => {
            values.t().iter().try_for_each(|v| out.write_all(&(*v as f64).to_le_bytes()))?;
        }
        FieldData::Real32(values) => {
            values.t().iter().try_for_each(|v| out.write_all(&v.to_le_bytes()))?;
        }
        FieldData::Byte(values) => values.t().iter().try_for_each(|v| out.write_all(&[*v]))?,
        FieldData::Truth(values) => {
            values.t().iter().try_for_each(|v| out.write_all(&[u8::from(*v)]))?;
        }
        FieldData::Text(texts) => out.write_all(&mat_text::encode(texts.iter()))?,
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
        let fields = [
            Field::texts("labels", &texts),
            Field::text("unit", "dbm"),
            Field::truth("not_heard", truths.into()),
            Field::real32("map", ndarray::array![[0.25f32, 3.0, -1.5]].into_dyn().into()),
        ];
        let mut bytes = Vec::new();
        write(&fields, &mut bytes).unwrap();
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
