//! What can be wrong with the input, said so that a user can mend it.

use portolan_decoder::DecoderError;
use thiserror::Error;

use crate::engine::EngineError;

/// A grid, map, set of readings or option that cannot be used.
#[derive(Debug, Error, Clone, PartialEq)]
#[non_exhaustive]
pub enum InputError {
    /// No cells at all, or more than can be counted.
    #[error(
        "a grid of {rows} x {cols} cells is not possible: both sides must be at least 1, and together no more than can be counted"
    )]
    GridSize {
        /// Rows asked for.
        rows: usize,
        /// Columns asked for.
        cols: usize,
    },
    /// The centre of the first cell is not a place.
    #[error("an origin at x {x_m}, y {y_m} is not possible: give finite metres")]
    Origin {
        /// Metres along x.
        x_m: f64,
        /// Metres along y.
        y_m: f64,
    },
    /// Cell size not a positive number.
    #[error("a cell of {cell_m} m is not possible: give a positive number of metres")]
    CellSize {
        /// Side asked for, in metres.
        cell_m: f64,
    },
    /// An array whose shape does not fit the others.
    #[error("{what} has shape {found:?}, expected {expected:?}")]
    Shape {
        /// The array.
        what: &'static str,
        /// Its shape.
        found: Vec<usize>,
        /// The shape that would fit.
        expected: Vec<usize>,
    },
    /// A map or reading that is negative or infinite.
    #[error("{what} at {place} is {value}: power must be finite and not negative")]
    Power {
        /// The quantity: a reading, a map, a PSD.
        what: &'static str,
        /// Cell or sensor, and band.
        place: String,
        /// What stands there.
        value: f64,
    },
    /// A frequency that is not a positive finite number.
    #[error("frequency of band {band} is {value} Hz: it must be positive")]
    Frequency {
        /// Counted from 0.
        band: usize,
        /// In Hz.
        value: f64,
    },
    /// A band name that is empty or not the only one of its kind.
    #[error("the label of band {band} is '{label}': labels must be distinct and not empty")]
    Label {
        /// Counted from 0.
        band: usize,
        /// What it was called.
        label: String,
    },
    /// A place that is NaN or infinite.
    #[error("sensor {sensor} is at x {x_m}, y {y_m}, z {z_m}: places must be finite")]
    Place {
        /// Counted from 0.
        sensor: usize,
        /// Metres along x.
        x_m: f64,
        /// Metres along y.
        y_m: f64,
        /// Its z.
        z_m: f64,
    },
    /// A sensor outside the grid.
    #[error(
        "sensor {sensor} at x {x_m} m, y {y_m} m is off the grid of {rows} x {cols} cells: give a larger grid or remove the sensor"
    )]
    OffGrid {
        /// Counted from 0.
        sensor: usize,
        /// Metres along x.
        x_m: f64,
        /// Metres along y.
        y_m: f64,
        /// Rows of the grid.
        rows: usize,
        /// Columns of the grid.
        cols: usize,
    },
    /// A noise, repeat count or time that cannot be used.
    #[error("{what} of sensor {sensor}, band {band} is {value}: it must be {expected}")]
    Entry {
        /// Noise, repeat count or time.
        what: &'static str,
        /// Counted from 0.
        sensor: usize,
        /// Counted from 0.
        band: usize,
        /// What stands there.
        value: f64,
        /// What may stand there.
        expected: &'static str,
    },
    /// A floor of hearing that lies above readings that were heard.
    #[error(
        "the floor of band {band} is {floor:.1} dB, above {above} of its {heard} heard readings: give the level below which nothing is heard"
    )]
    Floor {
        /// Counted from 0.
        band: usize,
        /// The floor given, in dB.
        floor: f64,
        /// Heard readings below the floor.
        above: usize,
        /// Heard readings of the band.
        heard: usize,
    },
    /// Fewer than two sensors.
    #[error("{found} sensor(s): a map needs readings from at least 2 places")]
    TooFewSensors {
        /// How many there are.
        found: usize,
    },
    /// No bands.
    #[error("the readings have no bands")]
    NoBands,
    /// A band that no sensor has read.
    #[error("band {band} has no reading at any sensor: remove the band")]
    EmptyBand {
        /// Counted from 0.
        band: usize,
    },
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
    Level {
        /// The level found.
        level: u8,
        /// Counted from 0.
        sensor: usize,
        /// Counted from 0.
        band: usize,
        /// Inner edges of the quantiser.
        edges: usize,
    },
    /// A scenario or layout that cannot be made.
    #[error("{0}")]
    Request(String),
    /// A decoder that cannot be made, or read.
    #[error(transparent)]
    Decoder(DecoderError),
    /// An option that the method does not have.
    #[error("method {method} has no option '{option}': it has {known}")]
    UnknownOption {
        /// Name of the method.
        method: &'static str,
        /// The option given.
        option: String,
        /// The options it has.
        known: String,
    },
    /// An option whose value cannot be used.
    #[error("option {option}={value} of method {method}: {expected}")]
    OptionValue {
        /// Name of the method.
        method: &'static str,
        /// The option given.
        option: String,
        /// The value given.
        value: String,
        /// What may be given.
        expected: String,
    },
    /// Something that a method is told and makes no use of.
    #[error("{what}: not used by {methods}; choose from {able}")]
    NotUsed {
        /// What was given: the name of a capability.
        what: &'static str,
        /// The method or methods.
        methods: String,
        /// The methods that make use of it.
        able: String,
    },
    /// A method that does not exist.
    #[error("there is no method '{name}': choose one of {known}")]
    UnknownMethod {
        /// The name given.
        name: String,
        /// The methods there are.
        known: String,
    },
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

impl From<DecoderError> for EstimateError {
    fn from(error: DecoderError) -> Self {
        Self::Input(InputError::Decoder(error))
    }
}
