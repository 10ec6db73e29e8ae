//! Radio readings and maps to and from files (npz, csv, mat, Wi-Fi traces), and pictures of them.

mod authors;
mod columns;
mod error;
mod format;
mod lines;
pub mod mannheim;
mod map_arrays;
mod mat5;
mod mat5_write;
#[cfg(feature = "hdf5")]
mod mat73;
mod npy;
mod npz;
mod number;
mod options;
mod output;
pub mod picture;
pub mod radiogat;
mod readings_arrays;
mod store;
mod summary;
mod table;
mod table_write;

pub use error::{IoError, Result};
pub use format::{Format, read, read_map, read_readings, write_map, write_readings};
pub use options::{Content, Loaded, ReadOptions, Unit, WriteOptions};
pub use output::{abandon_writes, check_output, write_bytes};
pub use summary::{ArraySummary, Kind, QuantiserSummary, Summary, inspect};
