//! How to read and write: what the caller knows that a file may not say.

use portolan::{RadioMap, Readings};

/// The unit of power values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Linear power; milliwatts where it comes from dBm.
    Linear,
    /// Decibels above one milliwatt.
    Dbm,
}

impl Unit {
    /// Linear power of a value in this unit.
    pub fn to_linear(self, value: f64) -> f64 {
        match self {
            Unit::Linear => value,
            Unit::Dbm => 10f64.powf(value / 10.0),
        }
    }

    /// A linear power in this unit.
    pub fn from_linear(self, power: f64) -> f64 {
        match self {
            Unit::Linear => power,
            Unit::Dbm => 10.0 * power.log10(),
        }
    }
}

/// What to assume while reading. The default takes everything from the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadOptions {
    /// The unit of values whose file does not name one.
    pub unit: Option<Unit>,
    /// Rows and columns, where the file does not say.
    pub grid: Option<(usize, usize)>,
    /// Metres per cell; overrides the file's.
    pub cell_m: Option<f64>,
    /// Where the centre of cell (0, 0) lies, for sensors given by `x_m`, `y_m`.
    pub origin_m: (f64, f64),
    /// The array or variable that is the map.
    pub var: Option<String>,
}

/// How to write. The default refuses to replace a file and picks the rest by content.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WriteOptions {
    /// Replace an existing file.
    pub force: bool,
    /// Whether a factored map is also written dense; by default up to 2^24 entries.
    pub dense: Option<bool>,
    /// The unit of a table's columns; arrays are always linear. By default dBm, but linear for a
    /// band that holds a zero, which has no value in dBm.
    pub unit: Option<Unit>,
}

/// What a file turned out to hold.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    Map(RadioMap),
    Readings(Readings),
}

/// What was read, and what the user should know about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded<T> {
    pub value: T,
    pub warnings: Vec<String>,
}
