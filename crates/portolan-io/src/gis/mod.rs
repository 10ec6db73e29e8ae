//! Where on Earth: projections, and the files that a geographic information system opens.
//!
//! Writers of rasters take a map part by part from [`MapParts`], so that a map need not fit memory.
//! Rows of a map go with x and its columns with y; rasters have north up: their first line is the
//! greatest y, and x grows along a line.

pub mod earth;
mod parts;

pub use parts::{MapAbout, MapParts, Part, WholeMap};
