//! Writes MATLAB files of version 5, little-endian and not deflated.

use std::io::{self, Write};

use ndarray::CowArray;
use portolan::RadioMap;

use crate::error::{Check, Problem};
use crate::map_arrays::{shared_fields, writes_dense};
use crate::store::{Field, FieldData};

/// MATLAB reads no variable of version 5 that takes more.
const MOST_BYTES: usize = (1 << 31) - 1024;

/// The arrays of a map under the authors' names, with their axes: emitters and bands last.
pub(crate) fn map_fields<'a>(map: &'a RadioMap, dense: Option<bool>) -> Vec<Field<'a>> {
    let mut fields = Vec::new();
    if writes_dense(map, dense) {
        let power: CowArray<'a, f64, _> = match map.to_dense() {
            std::borrow::Cow::Borrowed(power) => power.view().into(),
            std::borrow::Cow::Owned(power) => power.into(),
        };
        fields.push(Field::real("T_true", power.into_dyn()));
    }
    if let Some(factors) = map.factors() {
        let slf = factors.slf.view().permuted_axes([1, 2, 0]);
        fields.push(Field::real("S_true", slf.into_dyn().into()));
        fields.push(Field::real("C_true", factors.psd.t().into_dyn().into()));
    }
    fields.extend(shared_fields(map));
    fields
}

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
    let item: usize = if matches!(field.data, FieldData::Byte(_)) { 1 } else { 8 };
    field.shape().iter().try_fold(item, |product, &side| product.checked_mul(side))
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
    // Version 5 knows no fewer than two axes: a vector is a row.
    let mut sides = vec![1; 2usize.saturating_sub(field.shape().len())];
    sides.extend_from_slice(field.shape());
    let sides: Vec<u8> = sides
        .iter()
        .map(|&side| i32::try_from(side).map(i32::to_le_bytes))
        .collect::<Result<Vec<_>, _>>()
        .map_err(io::Error::other)?
        .concat();
    let (class, kind) = match field.data {
        FieldData::Byte(_) => (9u32, 2u32),
        FieldData::Real(_) | FieldData::Whole(_) => (6, 9),
    };
    let data = length(field).ok_or_else(|| io::Error::other("too large"))?;
    let padded = |bytes: usize| 8 + bytes.next_multiple_of(8);
    let total = padded(8) + padded(sides.len()) + padded(field.name.len()) + padded(data);
    tag(14, total, out)?;
    element(6, &[class.to_le_bytes(), [0; 4]].concat(), out)?;
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
        FieldData::Byte(values) => values.t().iter().try_for_each(|v| out.write_all(&[*v]))?,
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
