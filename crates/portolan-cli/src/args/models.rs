//! The options of commands that fit and ask: `estimate`, `fit`, `predict`, `coverage`,
//! `difference`, `advise`.

use std::path::PathBuf;

use clap::Args;
use portolan_io::Clock;
use portolan_io::export::GridRequest;
use portolan_io::gis::MaskRule;

use super::parse;
use super::plot::LookArgs;
use super::shared::{FitChoice, MomentArgs, ReadArgs, RunArgs};

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub struct EstimateArgs {
    #[command(flatten)]
    pub fit: FitChoice,
    /// Where to write the map (.npz, .mat, .csv, .tif, .nc, .zarr, .geojson, .kmz, .png)
    #[arg(short, long)]
    pub output: PathBuf,
    /// Show only cells that meet this condition: spread=DB at most, distance=METRES to a sensor at
    /// most, hull of the sensors, or inside a polygon (*.geojson); may be repeated
    #[arg(long, value_name = "RULE")]
    pub mask: Vec<MaskRule>,
    /// The height of the map in metres, where readings have heights [default: that of most of them]
    #[arg(long, value_name = "METRES", allow_hyphen_values = true)]
    pub z: Option<f64>,
    /// The floor of the map, by --floor-height
    #[arg(
        long,
        value_name = "NUMBER",
        allow_hyphen_values = true,
        requires = "floor_height",
        conflicts_with = "z"
    )]
    pub floor: Option<f64>,
    #[command(flatten)]
    pub moment: MomentArgs,
    /// Write a map larger than memory in float64 instead of float32
    #[arg(long)]
    pub f64: bool,
    /// Print what was done as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Replace an existing output
    #[arg(long)]
    pub force: bool,
}

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub struct FitArgs {
    #[command(flatten)]
    pub fit: FitChoice,
    /// Where to write the model (.npz)
    #[arg(short, long)]
    pub output: PathBuf,
    /// Print what was done as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Replace an existing output
    #[arg(long)]
    pub force: bool,
}

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub struct LocateArgs {
    #[command(flatten)]
    pub fit: FitChoice,
    /// Where to write the places and regions (.geojson)
    #[arg(short, long)]
    pub output: Option<PathBuf>,
    /// Print places and regions as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Replace an existing output
    #[arg(long)]
    pub force: bool,
}

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub struct PredictArgs {
    /// A model of `portolan fit` (.npz)
    pub model: PathBuf,
    /// Places to predict: a table with the columns x_m and y_m (.csv)
    #[arg(conflicts_with_all = ["grid", "cell_m", "origin", "region"])]
    pub places: Option<PathBuf>,
    /// Where to write: predictions at places (.csv), or a map (.npz, .mat, .csv, .tif, .nc, .zarr,
    /// .geojson, .kmz, .png)
    #[arg(short, long)]
    pub output: PathBuf,
    /// Only these bands: labels, frequencies such as 2412MHz, or numbers from 0
    #[arg(long, value_delimiter = ',')]
    pub bands: Option<Vec<String>>,
    /// Show only cells that meet this condition: spread=DB at most, distance=METRES to a sensor at
    /// most, hull of the sensors, or inside a polygon (*.geojson); may be repeated
    #[arg(long, value_name = "RULE", conflicts_with = "places")]
    pub mask: Vec<MaskRule>,
    /// Draw a map of this many rows x columns [default: the model's grid]
    #[arg(long, value_parser = parse::grid)]
    pub grid: Option<(usize, usize)>,
    /// Metres per cell of the map
    #[arg(long)]
    pub cell_m: Option<f64>,
    /// x,y in metres of the centre of the map's cell 0,0
    #[arg(long, value_name = "X,Y", value_parser = parse::pair, allow_hyphen_values = true)]
    pub origin: Option<(f64, f64)>,
    /// Draw the map of this rectangle in metres
    #[arg(long, value_name = "X0,Y0,X1,Y1", value_parser = parse::region, allow_hyphen_values = true)]
    pub region: Option<portolan::Region>,
    /// The height of the map in metres, where readings have heights [default: that of most of them]
    #[arg(long, value_name = "METRES", allow_hyphen_values = true, conflicts_with = "places")]
    pub z: Option<f64>,
    /// The floor of the map, by --floor-height
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, requires = "floor_height",
        conflicts_with_all = ["z", "places"])]
    pub floor: Option<f64>,
    /// Metres from floor to floor: a column of floors beside the places becomes heights
    #[arg(long, value_name = "METRES", value_parser = portolan_io::parse::metres)]
    pub floor_height: Option<f64>,
    #[command(flatten)]
    pub moment: MomentArgs,
    /// What times without a zone show: +2, +02:00:13 or Europe/Berlin
    #[arg(long, value_name = "OFFSET|ZONE", value_parser = Clock::parse, allow_hyphen_values = true)]
    pub utc_offset: Option<Clock>,
    /// What plain numbers of times count, if the model was fitted with --time-unit
    #[arg(long, value_name = "UNIT", value_parser = portolan_io::parse::time_unit)]
    pub time_unit: Option<f64>,
    /// Write a map larger than memory in float64 instead of float32
    #[arg(long)]
    pub f64: bool,
    /// Number of threads; the result does not depend on it [default: all]
    #[arg(long)]
    pub threads: Option<usize>,
    /// Print what was done as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Replace an existing output
    #[arg(long)]
    pub force: bool,
}

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub struct UpdateArgs {
    /// A model of `portolan fit` (.npz)
    pub model: PathBuf,
    /// Further readings of the same bands (.npz, .csv, ..)
    pub readings: PathBuf,
    /// Where to write the model (.npz); with --force it may be the model itself
    #[arg(short, long)]
    pub output: PathBuf,
    /// Print what was done as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Replace an existing output
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub read: ReadArgs,
}

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub struct ChangesArgs {
    /// A model of `portolan fit` to surveys with times (.npz)
    pub model: PathBuf,
    /// New readings (.npz, .csv, ..)
    pub readings: PathBuf,
    /// Share of the bands called changed that may be so by chance
    #[arg(long, value_name = "SHARE", default_value_t = 0.05, value_parser = parse::share)]
    pub rate: f64,
    /// List all bands, not only those that changed
    #[arg(long)]
    pub all: bool,
    /// Number of threads; the result does not depend on it [default: all]
    #[arg(long)]
    pub threads: Option<usize>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub read: ReadArgs,
}

/// The grid on which a model is evaluated.
#[derive(Args)]
pub struct GridArgs {
    /// Evaluate a model on this many rows x columns [default: the model's grid]
    #[arg(long, value_parser = parse::grid)]
    grid: Option<(usize, usize)>,
    /// Metres per cell of that grid
    #[arg(long)]
    cell_m: Option<f64>,
    /// x,y in metres of the centre of that grid's cell 0,0
    #[arg(long, value_name = "X,Y", value_parser = parse::pair, allow_hyphen_values = true)]
    origin: Option<(f64, f64)>,
    /// Only this rectangle in metres
    #[arg(long, value_name = "X0,Y0,X1,Y1", value_parser = parse::region, allow_hyphen_values = true)]
    pub region: Option<portolan::Region>,
    /// The height of the map in metres, where readings have heights [default: that of most of them]
    #[arg(long, value_name = "METRES", allow_hyphen_values = true)]
    z: Option<f64>,
}

impl GridArgs {
    /// What a model is asked for.
    pub fn request(&self) -> GridRequest {
        let Self { grid, cell_m, origin, region, z } = *self;
        GridRequest { grid, cell_m, origin, region, z_m: z }
    }

    /// The first option that a map, which has a grid of its own, cannot follow.
    pub fn about_models(&self) -> Option<&'static str> {
        let given = [
            (self.grid.is_some(), "--grid"),
            (self.cell_m.is_some(), "--cell-m"),
            (self.origin.is_some(), "--origin"),
            (self.z.is_some(), "--z"),
        ];
        given.into_iter().find(|(given, _)| *given).map(|(_, name)| name)
    }
}

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub struct CoverageArgs {
    /// A model of `portolan fit`, or a map (.npz, .csv, .mat)
    pub input: PathBuf,
    /// The level in dBm, or in the map's own dB
    #[arg(long, value_name = "DBM")]
    pub above: f64,
    /// Only these bands: labels, frequencies such as 2412MHz, or numbers from 0
    #[arg(long, value_delimiter = ',')]
    pub bands: Option<Vec<String>>,
    /// Where to draw the certainties (.png, .svg, .pdf)
    #[arg(short, long)]
    pub output: Option<PathBuf>,
    /// Heading of the picture
    #[arg(long, requires = "output")]
    pub title: Option<String>,
    #[command(flatten)]
    pub on: GridArgs,
    #[command(flatten)]
    pub moment: MomentArgs,
    /// Number of threads; the result does not depend on it [default: all]
    #[arg(long)]
    pub threads: Option<usize>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    /// Replace an existing output
    #[arg(long)]
    pub force: bool,
}

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub struct AdviseArgs {
    /// Readings (.npz, .csv, .mat), or a model of `portolan fit`
    pub readings: PathBuf,
    /// Leave out this rectangle in metres; may be repeated
    #[arg(long, value_name = "X0,Y0,X1,Y1", value_parser = parse::region, allow_hyphen_values = true)]
    pub leave_out: Vec<portolan::Region>,
    /// How many places to advise
    #[arg(long, default_value_t = 10)]
    pub count: usize,
    /// A method whose maps have a spread: kriging, field, auto
    #[arg(long, default_value = "kriging")]
    pub method: String,
    /// An option of the method; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse::setting)]
    pub settings: Vec<(String, String)>,
    /// Where to write the places (.csv), for `portolan sense --cells`
    #[arg(short, long)]
    pub output: Option<PathBuf>,
    /// Where to draw the sensors and the places (.png, .svg, .pdf)
    #[arg(long, value_name = "PNG")]
    pub plot: Option<PathBuf>,
    /// The true map: its unknown cells are not advised
    #[arg(long)]
    pub truth: Option<PathBuf>,
    /// Add up to this many sensors that read the truth exactly, where advised and at random, and
    /// compare the errors
    #[arg(long, value_name = "SENSORS", requires = "truth")]
    pub budget: Option<usize>,
    #[command(flatten)]
    pub run: RunArgs,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    /// Replace existing outputs
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub read: ReadArgs,
}

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub struct DifferenceArgs {
    /// The earlier map or model
    pub before: PathBuf,
    /// The later map or model
    pub after: PathBuf,
    /// Where to write it: .npz, .tif, .nc, .zarr, or a picture of one band (.png, .svg, .pdf)
    #[arg(short, long)]
    pub output: Option<PathBuf>,
    /// The band of the picture, by its label [default: the one that differs most]
    #[arg(long)]
    pub band: Option<String>,
    /// Share of the cells called different that may be so by chance
    #[arg(long, default_value_t = 0.05)]
    pub rate: f64,
    /// Leave out cells where the difference is not significant
    #[arg(long)]
    pub significant: bool,
    #[command(flatten)]
    pub on: GridArgs,
    /// Heading of the picture
    #[arg(long)]
    pub title: Option<String>,
    #[command(flatten)]
    pub look: LookArgs,
    /// Print the figures as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Replace an existing output
    #[arg(long)]
    pub force: bool,
}
