//! Radio readings and maps to and from files (npz, csv, mat, Wi-Fi traces), and pictures of them.
//!
//! ```
//! use portolan::estimate::{Kriging, Method};
//! use portolan::{Context, Progress};
//! use portolan_io::{ReadOptions, WriteOptions, read_map, read_readings, write_map};
//! # let folder = tempfile::tempdir()?;
//! # let (table, output) = (folder.path().join("survey.csv"), folder.path().join("map.npz"));
//! # std::fs::write(&table, "x_m,y_m,dbm_2412MHz\n0,0,-60\n9,1,-66\n2,7,-71\n8,8,-75\n")?;
//! let readings = read_readings(&table, &ReadOptions::default())?.value;
//! let model = Kriging::default().fit(&readings, &Context::default(), &Progress::silent())?;
//! let map = model.default_map(&Progress::silent())?;
//! write_map(&output, &map, &WriteOptions::default())?;
//! assert_eq!(read_map(&output, &ReadOptions::default())?.value, map);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod authors;
pub mod covered;
mod difference;
mod error;
pub mod export;
mod format;
pub mod gis;
pub mod json;
mod large_map;
mod large_power;
mod locate;
pub mod mannheim;
mod map_arrays;
mod map_part;
mod map_writer;
mod mat5;
mod mat5_write;
#[cfg(feature = "hdf5")]
mod mat73;
mod mat_text;
mod memory;
mod model_file;
mod named_array;
mod npy;
mod npy_store;
mod npz;
mod number;
mod options;
mod output;
pub mod parse;
pub mod picture;
mod places;
mod plan;
pub mod radiogat;
mod readings_arrays;
mod records;
mod road;
mod slab;
mod source;
mod store;
mod stored_map;
mod summary;
mod survey;
mod table;
mod transmitters;
mod unit_arrays;
mod zip_layout;

pub use difference::{BandDifference, Difference};
pub use error::{IoError, Result};
pub use format::{Format, read, read_map, read_readings, write_map, write_readings};
pub use locate::{Region as EmitterRegion, located_json, regions, write_regions};
pub use map_arrays::attribute_arrays;
pub use map_part::read_map_part;
pub use map_writer::{Element, MapLayout, MapWriter};
pub use memory::{available as free_memory, shown_bytes};
pub use model_file::{read_model, write_model};
pub use named_array::{ArrayData, NamedArray};
pub use options::{
    BandBy, ColumnNames, Combine, Content, Loaded, ReadOptions, Silence, SurveyOptions, Unit,
    WriteOptions,
};
pub use output::{
    abandon_writes, check_output, check_output_is_not_input, free_space, try_abandon_writes,
    write_bytes,
};
pub use places::{PlaceTable, read_places, write_predictions};
pub use plan::{PlanOptions, parse_walls, read_walls};
pub use stored_map::{MapFile, Strips};
pub use summary::{ArraySummary, FileKind, FileSummary, QuantiserSummary, inspect};
pub use survey::{Clock, MomentFormat};
pub use table::doubts::{Doubt, DoubtKind};
pub use table::{ColumnSummary, RowFilter, first_lines};
pub use transmitters::{parse_transmitters, read_transmitters};
