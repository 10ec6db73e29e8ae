//! The options of commands about files and the program itself: `inspect`, `convert`, `methods`,
//! `completions`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use portolan_io::gis::MaskRule;

use super::shared::{ReadArgs, UnitName};

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub struct InspectArgs {
    /// A map or readings (.npz, .csv, .mat, Wi-Fi trace)
    pub file: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub read: ReadArgs,
}

#[derive(Clone, Copy, ValueEnum, PartialEq, Eq)]
pub enum KindName {
    Map,
    Readings,
}

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub struct ConvertArgs {
    /// A map, readings or a model (.npz, .csv, .mat, Wi-Fi trace)
    pub input: PathBuf,
    /// Where to write (.npz, .mat, .csv; maps also .tif, .nc, .zarr, .geojson, .kmz, .png; readings
    /// and the emitters of a model also .geojson)
    pub output: PathBuf,
    /// Only these bands of a map: labels, frequencies such as 2412MHz, or numbers from 0
    #[arg(long, value_delimiter = ',')]
    pub bands: Option<Vec<String>>,
    /// Levels of the areas in a .geojson of a map [default: a few round ones]
    #[arg(long, value_name = "DB", value_delimiter = ',', allow_hyphen_values = true)]
    pub levels: Vec<f64>,
    /// Show only cells that meet this condition: spread=DB at most, distance=METRES to a sensor at
    /// most, hull of the sensors, or inside a polygon (*.geojson); may be repeated
    #[arg(long, value_name = "RULE")]
    pub mask: Vec<MaskRule>,
    /// The readings whose sensors `--mask distance` and `--mask hull` mean
    #[arg(long)]
    pub readings: Option<PathBuf>,
    /// Replace an existing output
    #[arg(long)]
    pub force: bool,
    /// Read a table as this, whatever it looks like
    #[arg(long = "as", value_enum)]
    pub kind: Option<KindName>,
    /// Unit of a written table [default: dbm, linear where a band holds a zero]
    #[arg(long, value_enum)]
    pub output_unit: Option<UnitName>,
    #[command(flatten)]
    pub read: ReadArgs,
}

#[derive(Args)]
pub struct MethodsArgs {
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct CompletionsArgs {
    /// The shell to complete in
    pub shell: clap_complete::Shell,
}

#[cfg(feature = "cuda")]
#[derive(Args)]
pub struct GpuCheckArgs {
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}
