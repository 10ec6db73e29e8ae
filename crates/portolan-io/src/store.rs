//! Named arrays, as npz and mat files keep them, whatever their bytes look like.

use ndarray::{Array2, Array3, ArrayD, Ix2, Ix3, IxDyn, ShapeBuilder};

use crate::error::{Check, Problem, quoted};
use crate::memory;
pub(crate) use crate::named_array::{ArrayData, NamedArray};

/// More elements than any machine can address.
const MAX_ELEMENTS: usize = 1 << 54;

/// Deflate cannot expand a byte to more than this; a larger claim is a lie.
pub(crate) const MAX_EXPANSION: usize = 1032;

/// One array of a file: its name, its shape and the type of its elements.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub name: String,
    pub shape: Vec<usize>,
    pub kind: String,
}

/// A file of named arrays, loaded one at a time.
pub(crate) trait Store {
    fn entries(&self) -> &[Entry];

    /// The array in row-major order.
    fn load(&mut self, index: usize) -> Check<ArrayD<f64>>;

    /// The texts of an array of text, in row-major order.
    fn load_text(&mut self, index: usize) -> Check<Vec<String>>;

    /// True for NumPy's files, where the authors put the band axis first.
    fn bands_first(&self) -> bool;

    /// True for one array that has no name of its own.
    fn is_bare(&self) -> bool {
        false
    }
}

impl dyn Store + '_ {
    pub fn position(&self, name: &str) -> Option<usize> {
        self.entries().iter().position(|entry| entry.name == name)
    }

    pub fn has(&self, name: &str) -> bool {
        self.position(name).is_some()
    }

    pub fn find(&mut self, name: &str) -> Check<Option<ArrayD<f64>>> {
        self.position(name).map(|index| self.load(index)).transpose()
    }

    pub fn need(&mut self, name: &str, why: &str) -> Check<ArrayD<f64>> {
        self.find(name)?
            .ok_or_else(|| Problem::new(format!("array {} is missing: {why}", quoted(name))))
    }

    pub fn find_text(&mut self, name: &str) -> Check<Option<Vec<String>>> {
        self.position(name).map(|index| self.load_text(index)).transpose()
    }

    /// The names of all arrays, for messages.
    pub fn names(&self) -> String {
        const MOST: usize = 12;
        let mut names: Vec<String> =
            self.entries().iter().take(MOST).map(|entry| quoted(&entry.name)).collect();
        match self.entries().len() {
            0 => names.push("no arrays".into()),
            n if n > MOST => names.push(format!("{} more", n - MOST)),
            _ => {}
        }
        names.join(", ")
    }
}

/// Number of elements of a declared shape, refused where it could not be held.
pub(crate) fn count_elements(name: &str, shape: &[usize]) -> Check<usize> {
    shape
        .iter()
        .try_fold(1usize, |product, &side| product.checked_mul(side))
        .filter(|&count| count <= MAX_ELEMENTS)
        .ok_or_else(|| {
            let name = quoted(name);
            Problem::new(format!(
                "array {name} claims shape {shape:?}: at most {MAX_ELEMENTS} elements fit any memory"
            ))
        })
}

/// Room for the elements of an array, asked for before it is taken. A copy is made where the file
/// has the axes in another order.
pub(crate) fn reserve(name: &str, count: usize, copies: usize, advice: &str) -> Check<Vec<f64>> {
    let what = format!("array {}", quoted(name));
    let bytes = (count as u64).saturating_mul(8).saturating_mul(copies as u64);
    memory::check(&what, bytes, advice)?;
    let mut values = Vec::new();
    values
        .try_reserve_exact(count)
        .map_err(|_| Problem::new(format!("{what}: {count} elements do not fit the memory")))?;
    Ok(values)
}

/// An array from its elements in file order.
pub(crate) fn arrange(
    name: &str,
    shape: &[usize],
    column_major: bool,
    values: Vec<f64>,
) -> Check<ArrayD<f64>> {
    let found = values.len();
    ArrayD::from_shape_vec(IxDyn(shape).set_f(column_major), values).map(row_major).map_err(|_| {
        let name = quoted(name);
        Problem::new(format!("array {name} of shape {shape:?} holds {found} elements"))
    })
}

/// The same array with its elements in row-major order; copied only where they are not.
pub(crate) fn row_major(array: ArrayD<f64>) -> ArrayD<f64> {
    if array.is_standard_layout() { array } else { array.as_standard_layout().into_owned() }
}

fn wrong_shape(name: &str, shape: &[usize], expected: &str) -> Problem {
    Problem::new(format!("array {} has shape {shape:?}, expected {expected}", quoted(name)))
}

/// Three axes; `expected` says which.
pub(crate) fn cube(name: &str, array: ArrayD<f64>, expected: &str) -> Check<Array3<f64>> {
    let shape = array.shape().to_vec();
    array.into_dimensionality::<Ix3>().map_err(|_| wrong_shape(name, &shape, expected))
}

/// Two axes; `expected` says which.
pub(crate) fn matrix(name: &str, array: ArrayD<f64>, expected: &str) -> Check<Array2<f64>> {
    let shape = array.shape().to_vec();
    array.into_dimensionality::<Ix2>().map_err(|_| wrong_shape(name, &shape, expected))
}

/// One axis longer than 1 at most: MATLAB keeps vectors as matrices.
pub(crate) fn vector(name: &str, array: ArrayD<f64>) -> Check<Vec<f64>> {
    if array.shape().iter().filter(|&&side| side != 1).count() > 1 {
        return Err(wrong_shape(name, array.shape(), "a vector"));
    }
    Ok(array.into_iter().collect())
}

pub(crate) fn scalar(name: &str, array: ArrayD<f64>) -> Check<f64> {
    match (array.len(), array.first()) {
        (1, Some(&value)) => Ok(value),
        _ => Err(wrong_shape(name, array.shape(), "one number")),
    }
}
