//! Named arrays that are to be written.

use std::borrow::Cow;

use ndarray::{ArrayD, CowArray, IxDyn};
use portolan::model::{Archive, Stored};

/// The elements of an array that is to be written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ArrayData<'a> {
    Real(CowArray<'a, f64, IxDyn>),
    /// Half the size, seven digits.
    Real32(CowArray<'a, f32, IxDyn>),
    Whole(ArrayD<i64>),
    Byte(CowArray<'a, u8, IxDyn>),
    Truth(CowArray<'a, bool, IxDyn>),
    Text(ArrayD<String>),
}

/// An array that is to be written.
#[derive(Clone, Debug)]
pub struct NamedArray<'a> {
    pub name: Cow<'static, str>,
    pub data: ArrayData<'a>,
}

impl<'a> NamedArray<'a> {
    pub fn real(name: impl Into<Cow<'static, str>>, values: CowArray<'a, f64, IxDyn>) -> Self {
        Self { name: name.into(), data: ArrayData::Real(values) }
    }

    pub fn real32(name: impl Into<Cow<'static, str>>, values: CowArray<'a, f32, IxDyn>) -> Self {
        Self { name: name.into(), data: ArrayData::Real32(values) }
    }

    pub fn vector(name: impl Into<Cow<'static, str>>, values: &'a [f64]) -> Self {
        Self::real(name, ndarray::ArrayView1::from(values).into_dyn().into())
    }

    pub fn scalar(name: impl Into<Cow<'static, str>>, value: f64) -> Self {
        Self::real(name, ndarray::arr0(value).into_dyn().into())
    }

    pub fn truth(name: impl Into<Cow<'static, str>>, values: CowArray<'a, bool, IxDyn>) -> Self {
        Self { name: name.into(), data: ArrayData::Truth(values) }
    }

    /// One text.
    pub fn text(name: impl Into<Cow<'static, str>>, text: impl Into<String>) -> Self {
        Self { name: name.into(), data: ArrayData::Text(ndarray::arr0(text.into()).into_dyn()) }
    }

    /// A list of texts, such as the labels of bands.
    pub fn texts(name: impl Into<Cow<'static, str>>, texts: &[String]) -> Self {
        let texts = ndarray::Array1::from(texts.to_vec());
        Self { name: name.into(), data: ArrayData::Text(texts.into_dyn()) }
    }

    pub fn shape(&self) -> &[usize] {
        match &self.data {
            ArrayData::Real(values) => values.shape(),
            ArrayData::Real32(values) => values.shape(),
            ArrayData::Whole(values) => values.shape(),
            ArrayData::Byte(values) => values.shape(),
            ArrayData::Truth(values) => values.shape(),
            ArrayData::Text(texts) => texts.shape(),
        }
    }

    /// Characters of the longest text, 1 at least; 1 for numbers.
    pub(crate) fn width(&self) -> usize {
        match &self.data {
            ArrayData::Text(texts) => {
                texts.iter().map(|text| text.chars().count()).max().unwrap_or(0).max(1)
            }
            _ => 1,
        }
    }
}

/// The arrays of an archive.
pub(crate) fn named_arrays<'a>(archive: Archive) -> Vec<NamedArray<'a>> {
    let one = |(name, stored): (String, Stored)| NamedArray {
        name: name.into(),
        data: match stored {
            Stored::Real(values) => ArrayData::Real(values.into()),
            Stored::Single(values) => ArrayData::Real32(values.into()),
            Stored::Whole(values) => ArrayData::Whole(values),
            Stored::Text(texts) => ArrayData::Text(ndarray::Array1::from(texts).into_dyn()),
            Stored::Word(word) => ArrayData::Text(ndarray::arr0(word).into_dyn()),
        },
    };
    archive.into_entries().map(one).collect()
}
