//! What can be wrong with the input, said so that a user can mend it.

use thiserror::Error;

use crate::engine::EngineError;

/// A grid, map, set of readings or option that cannot be used.
#[derive(Debug, Error, Clone, PartialEq)]
#[non_exhaustive]
pub enum InputError {
    /// No cells at all, or more than can be counted.
    #[error("a grid of {rows} x {cols} cells is not possible: both sides must be at least 1")]
    GridSize { rows: usize, cols: usize },
    /// The centre of the first cell is not a place.
    #[error("an origin at x {x_m}, y {y_m} is not possible: give finite metres")]
    Origin { x_m: f64, y_m: f64 },
    /// Cell size not a positive number.
    #[error("a cell of {cell_m} m is not possible: give a positive number of metres")]
    CellSize { cell_m: f64 },
    /// An array whose shape does not fit the others.
    #[error("{what} has shape {found:?}, expected {expected:?}")]
    Shape { what: &'static str, found: Vec<usize>, expected: Vec<usize> },
    /// A map or reading that is negative or infinite.
    #[error("{what} at {place} is {value}: power must be finite and not negative")]
    Power { what: &'static str, place: String, value: f64 },
    /// A frequency that is not a positive finite number.
    #[error("frequency of band {band} is {value} Hz: it must be positive")]
    Frequency { band: usize, value: f64 },
    /// A band name that is empty or not the only one of its kind.
    #[error("the label of band {band} is '{label}': labels must be distinct and not empty")]
    Label { band: usize, label: String },
    /// A place that is NaN or infinite.
    #[error("sensor {sensor} is at x {x_m}, y {y_m}: places must be finite")]
    Place { sensor: usize, x_m: f64, y_m: f64 },
    /// A sensor outside the grid.
    #[error(
        "sensor {sensor} at x {x_m} m, y {y_m} m is off the grid of {rows} x {cols} cells: give a larger grid or remove the sensor"
    )]
    OffGrid { sensor: usize, x_m: f64, y_m: f64, rows: usize, cols: usize },
    /// Two sensors at one place where that is not allowed.
    #[error("sensors {first} and {second} both stand at x {x_m} m, y {y_m} m: merge them")]
    DuplicateSite { first: usize, second: usize, x_m: f64, y_m: f64 },
    /// A noise, repeat count or time that cannot be used.
    #[error("{what} of sensor {sensor}, band {band} is {value}: it must be {expected}")]
    Entry { what: &'static str, sensor: usize, band: usize, value: f64, expected: &'static str },
    /// A floor of hearing that lies above readings that were heard.
    #[error(
        "the floor of band {band} is {floor:.1} dB, above {above} of its {heard} heard readings: give the level below which nothing is heard"
    )]
    Floor { band: usize, floor: f64, above: usize, heard: usize },
    /// Fewer than two sensors.
    #[error("{found} sensor(s): a map needs readings from at least 2 places")]
    TooFewSensors { found: usize },
    /// No bands.
    #[error("the readings have no bands")]
    NoBands,
    /// A band that no sensor has read.
    #[error("band {band} has no reading at any sensor: remove the band")]
    EmptyBand { band: usize },
    /// Nothing but zeros.
    #[error("all readings are zero: there is no signal to map (check the unit)")]
    AllZero,
    /// A quantiser that cannot be used.
    #[error("quantiser: {0}")]
    Quantiser(String),
    /// A level outside the quantiser's range.
    #[error(
        "level {level} of sensor {sensor}, band {band} is out of range: {edges} edges make levels 0 to {edges} (255 = missing)"
    )]
    Level { level: u8, sensor: usize, band: usize, edges: usize },
    /// A scenario or layout that cannot be made.
    #[error("{0}")]
    Request(String),
    /// An option that the method does not have.
    #[error("method {method} has no option '{option}': it has {known}")]
    UnknownOption { method: &'static str, option: String, known: String },
    /// An option whose value cannot be used.
    #[error("option {option}={value} of method {method}: {expected}")]
    OptionValue { method: &'static str, option: String, value: String, expected: String },
    /// A method that does not exist.
    #[error("there is no method '{name}': choose one of {known}")]
    UnknownMethod { name: String, known: String },
}

/// Why an estimate did not come about.
#[derive(Debug, Error, Clone, PartialEq)]
#[non_exhaustive]
pub enum EstimateError {
    /// The request or the readings cannot be used.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The progress callback asked to stop.
    #[error("stopped before the estimate was finished")]
    Cancelled,
    /// The numbers went wrong: a matrix that is not positive definite, a fit that diverged.
    #[error("{0}")]
    Numerical(String),
    /// The engine that was to run the fit refused or failed.
    #[error(transparent)]
    Engine(EngineError),
}
