//! How to read and write: what the caller knows that a file may not say.

use portolan::{Crs, InputError, Model, RadioMap, Readings, Scale};

/// The unit of power values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Milliwatts.
    Linear,
    /// Decibels above one milliwatt.
    Dbm,
    /// Decibels of a receiver without calibration.
    Db,
    /// Power without a unit, as the paper's simulated maps.
    Relative,
}

impl Unit {
    /// Every unit with its name in files and options.
    pub const NAMED: [(&'static str, Unit); 4] = [
        ("linear", Unit::Linear),
        ("dbm", Unit::Dbm),
        ("db", Unit::Db),
        ("relative", Unit::Relative),
    ];

    /// The unit of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMED.iter().find(|(known, _)| *known == name).map(|(_, unit)| *unit)
    }

    /// Whether values are logarithms.
    pub fn is_decibels(self) -> bool {
        matches!(self, Unit::Dbm | Unit::Db)
    }

    /// Linear power of a value in this unit.
    pub fn to_linear(self, value: f64) -> f64 {
        if self.is_decibels() { 10f64.powf(value / 10.0) } else { value }
    }

    /// A linear power in this unit.
    pub fn from_linear(self, power: f64) -> f64 {
        if self.is_decibels() { 10.0 * power.log10() } else { power }
    }

    /// The scale of powers in this unit; `offset` is that of a relative one, the paper's by
    /// default.
    pub fn scale(self, offset: Option<f64>) -> Result<Scale, InputError> {
        match self {
            Unit::Linear | Unit::Dbm => Ok(Scale::Absolute),
            Unit::Db => Ok(Scale::Uncalibrated),
            Unit::Relative => offset.map_or(Ok(Scale::paper()), Scale::relative),
        }
    }

    /// The unit in which people speak of a scale.
    pub fn of_scale(scale: Scale) -> Self {
        match scale {
            Scale::Uncalibrated => Unit::Db,
            Scale::Relative { .. } => Unit::Relative,
            _ => Unit::Dbm,
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
    /// Where the centre of cell (0, 0) lies; overrides the file's.
    pub origin_m: Option<(f64, f64)>,
    /// Where on Earth the metres of the file are, or those that its degrees become; overrides the
    /// file's.
    pub crs: Option<Crs>,
    /// The array or variable that is the map.
    pub var: Option<String>,
    /// The value in a table that means "not heard".
    pub not_heard: Option<f64>,
    /// The level in dB below which nothing is heard; by default the faintest reading of a band.
    pub floor_db: Option<f64>,
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
    /// Levels of the areas that a GeoJSON of a map holds; a few round ones where there are none.
    pub levels: Vec<f64>,
}

/// What a file turned out to hold.
#[derive(Debug)]
pub enum Content {
    /// A map.
    Map(RadioMap),
    /// Readings.
    Readings(Readings),
    /// A fitted model.
    Model(Box<Model>),
}

/// What was read, and what the user should know about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded<T> {
    /// What was read.
    pub value: T,
    /// What the user should know.
    pub warnings: Vec<String>,
}
