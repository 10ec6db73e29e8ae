//! Where on Earth: projections, and the files that a geographic information system opens.
//!
//! Writers of rasters take a map part by part from [`MapParts`], so that a map need not fit memory.
//! Rows of a map go with x and its columns with y; rasters have north up: their first line is the
//! greatest y, and x grows along a line.

mod area;
mod bare_png;
mod blocks;
mod cf;
mod chosen;
pub(crate) mod contour;
pub mod earth;
pub(crate) mod geojson;
mod geokeys;
mod geotiff;
mod kml;
mod mask;
mod netcdf;
mod paint;
mod parts;
mod raster;
mod stored;
mod tiff;
mod zarr;

pub use area::Area;
pub use chosen::{Chosen, chosen_bands};
pub use geojson::{write_emitters, write_sensors};
pub use mask::{Mask, MaskRule, Masked};
pub(crate) use netcdf::write_moments;
pub use parts::{MapAbout, MapParts, Part, Quantity, WholeMap};
pub use raster::{MapPlan, check_raster, write_raster};
pub use stored::StoredMap;
