//! What a model is written as: named arrays of numbers and texts. Files are somebody else's.

use std::collections::BTreeMap;

use ndarray::{Array1, Array2, ArrayD, Ix1, Ix2};

use crate::error::InputError;

/// One array of a model file.
#[derive(Clone, Debug, PartialEq)]
pub enum Stored {
    /// Double precision.
    Real(ArrayD<f64>),
    /// Single precision.
    Single(ArrayD<f32>),
    /// Whole numbers.
    Whole(ArrayD<i64>),
    /// Texts.
    Text(Vec<String>),
    /// One text without an axis.
    Word(String),
}

/// Named arrays, in the order of their names.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Archive {
    entries: BTreeMap<String, Stored>,
}

impl Archive {
    /// An archive from its arrays.
    pub fn new(entries: impl IntoIterator<Item = (String, Stored)>) -> Self {
        Self { entries: entries.into_iter().collect() }
    }

    /// All arrays by name.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Stored)> {
        self.entries.iter().map(|(name, stored)| (name.as_str(), stored))
    }

    /// All arrays, moved out.
    pub fn into_entries(self) -> impl Iterator<Item = (String, Stored)> {
        self.entries.into_iter()
    }

    pub(crate) fn put(&mut self, name: impl Into<String>, stored: Stored) {
        self.entries.insert(name.into(), stored);
    }

    /// All arrays of another archive, their names behind a prefix.
    pub(crate) fn put_all(&mut self, prefix: &str, other: &Archive) {
        for (name, stored) in other.entries() {
            self.put(format!("{prefix}{name}"), stored.clone());
        }
    }

    /// The arrays whose names begin with a prefix, without it.
    pub(crate) fn inside(&self, prefix: &str) -> Archive {
        let own = self.entries.iter().filter_map(|(name, stored)| {
            Some((name.strip_prefix(prefix)?.to_string(), stored.clone()))
        });
        Archive::new(own)
    }

    /// Adds texts.
    pub fn put_text(&mut self, name: &str, texts: impl IntoIterator<Item = String>) {
        self.put(name, Stored::Text(texts.into_iter().collect()));
    }

    /// Adds one text.
    pub fn put_word(&mut self, name: &str, word: impl Into<String>) {
        self.put(name, Stored::Word(word.into()));
    }

    /// Adds a number without an axis.
    pub fn put_scalar(&mut self, name: &str, value: f64) {
        self.put(name, Stored::Real(ndarray::arr0(value).into_dyn()));
    }

    /// The name that a value has in a list of choices.
    pub fn put_choice<T: PartialEq>(
        &mut self,
        name: &str,
        choices: &[(&'static str, T)],
        value: T,
    ) {
        let known = choices.iter().find(|(_, choice)| *choice == value);
        self.put_text(name, known.map(|(word, _)| word.to_string()));
    }

    /// Adds a number.
    pub fn put_number(&mut self, name: &str, value: f64) {
        self.put_vector(name, &[value]);
    }

    /// Adds numbers.
    pub fn put_vector(&mut self, name: &str, values: &[f64]) {
        self.put(name, Stored::Real(Array1::from(values.to_vec()).into_dyn()));
    }

    /// Adds a matrix of numbers.
    pub fn put_matrix(&mut self, name: &str, values: &Array2<f64>) {
        self.put(name, Stored::Real(values.to_owned().into_dyn()));
    }

    /// Adds numbers in single precision.
    pub fn put_single(&mut self, name: &str, values: &[f32]) {
        self.put(name, Stored::Single(Array1::from(values.to_vec()).into_dyn()));
    }

    /// Adds whole numbers.
    pub fn put_whole(&mut self, name: &str, values: impl IntoIterator<Item = usize>) {
        let values: Array1<i64> = values.into_iter().map(|v| v as i64).collect();
        self.put(name, Stored::Whole(values.into_dyn()));
    }

    /// Whether there is an array of that name.
    pub fn has(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    fn find(&self, name: &str) -> Result<&Stored, InputError> {
        self.entries.get(name).ok_or_else(|| damaged(name, "is missing"))
    }

    /// Texts.
    pub fn text(&self, name: &str) -> Result<&[String], InputError> {
        match self.find(name)? {
            Stored::Text(texts) => Ok(texts),
            Stored::Word(word) => Ok(std::slice::from_ref(word)),
            _ => Err(damaged(name, "is not text")),
        }
    }

    /// One text.
    pub fn word(&self, name: &str) -> Result<&str, InputError> {
        match self.text(name)? {
            [word] => Ok(word),
            _ => Err(damaged(name, "is not one text")),
        }
    }

    /// The value of a name in a list of choices.
    pub fn choice<T: Copy>(
        &self,
        name: &str,
        choices: &[(&'static str, T)],
    ) -> Result<T, InputError> {
        let word = self.word(name)?;
        let found = choices.iter().find(|(known, _)| *known == word);
        found.map(|(_, value)| *value).ok_or_else(|| damaged(name, "is none of its choices"))
    }

    /// Numbers.
    pub fn vector(&self, name: &str) -> Result<Vec<f64>, InputError> {
        match self.find(name)? {
            Stored::Real(values) => Ok(values.iter().copied().collect()),
            Stored::Single(values) => Ok(values.iter().map(|v| f64::from(*v)).collect()),
            _ => Err(damaged(name, "is not made of numbers")),
        }
    }

    /// Numbers, none of them NaN or infinite.
    pub fn finite(&self, name: &str) -> Result<Vec<f64>, InputError> {
        let values = self.vector(name)?;
        match values.iter().all(|v| v.is_finite()) {
            true => Ok(values),
            false => Err(damaged(name, "holds a number that is not finite")),
        }
    }

    /// Two numbers, the second of them positive, where they were written; older models have none.
    pub(crate) fn pair(&self, name: &str) -> Result<Option<(f64, f64)>, InputError> {
        if !self.has(name) {
            return Ok(None);
        }
        match self.finite(name)?[..] {
            [] => Ok(None),
            [first, second] if second > 0.0 => Ok(Some((first, second))),
            _ => Err(damaged(name, "is not two numbers")),
        }
    }

    pub(crate) fn put_pair(&mut self, name: &str, pair: Option<(f64, f64)>) {
        self.put_vector(name, &pair.map(|(a, b)| vec![a, b]).unwrap_or_default());
    }

    /// One number.
    pub fn number(&self, name: &str) -> Result<f64, InputError> {
        match self.vector(name)?[..] {
            [value] => Ok(value),
            _ => Err(damaged(name, "is not one number")),
        }
    }

    /// A matrix of numbers.
    pub fn matrix(&self, name: &str) -> Result<Array2<f64>, InputError> {
        match self.find(name)? {
            Stored::Real(values) => values
                .view()
                .into_dimensionality::<Ix2>()
                .map(|m| m.to_owned())
                .map_err(|_| damaged(name, "has not two axes")),
            _ => Err(damaged(name, "is not made of numbers")),
        }
    }

    /// Numbers in single precision.
    pub fn single(&self, name: &str) -> Result<Vec<f32>, InputError> {
        match self.find(name)? {
            Stored::Single(values) => values
                .view()
                .into_dimensionality::<Ix1>()
                .map(|v| v.to_vec())
                .map_err(|_| damaged(name, "has not one axis")),
            _ => Err(damaged(name, "is not single precision")),
        }
    }

    /// Whole numbers of 0 or more.
    pub fn whole(&self, name: &str) -> Result<Vec<usize>, InputError> {
        let wrong = || damaged(name, "is not made of whole numbers of 0 or more");
        match self.find(name)? {
            Stored::Whole(values) => {
                values.iter().map(|v| usize::try_from(*v).map_err(|_| wrong())).collect()
            }
            _ => Err(wrong()),
        }
    }

    /// One whole number of 0 or more.
    pub fn count(&self, name: &str) -> Result<usize, InputError> {
        match self.whole(name)?[..] {
            [value] => Ok(value),
            _ => Err(damaged(name, "is not one number")),
        }
    }
}

/// A model that is not what this library writes.
pub fn damaged(name: &str, what: &str) -> InputError {
    InputError::Request(format!("the model is damaged: array '{name}' {what}"))
}
