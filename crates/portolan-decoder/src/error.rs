//! What a decoder refuses.

use thiserror::Error;

/// Why a decoder cannot be made, or read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecoderError {
    /// A size that is out of range.
    #[error("a decoder with {value} {what} is not possible: give {low} to {high}")]
    Range {
        /// What there are so many of.
        what: &'static str,
        /// How many.
        value: usize,
        /// The fewest.
        low: usize,
        /// The most.
        high: usize,
    },
    /// A cell to read that the grid does not have.
    #[error("cell {cell} is off the {rows} x {cols} grid: give 0 to {}", rows * cols - 1)]
    OffGrid {
        /// Row-major index.
        cell: usize,
        /// Of the grid.
        rows: usize,
        /// Of the grid.
        cols: usize,
    },
}
