//! The command line.

mod bound;
pub mod parse;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use portolan::simulate::Scenario;
use portolan::{Emitters, Grid};
use portolan_io::{ReadOptions, Unit};

pub use bound::{BoundArgs, NetworkTerm};

/// Draws the radio spectrum over space and frequency from a handful of sensors.
#[derive(Parser)]
#[command(name = "portolan", version, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// The tour: simulate, sense, estimate with several methods, score, draw
    Demo(DemoArgs),
    /// Make a map with a known truth: path loss, shadowing, smooth spectra
    Simulate(SimulateArgs),
    /// Take readings of a map with sensors
    Sense(SenseArgs),
    /// Estimate the whole map from readings: fit and predict in one
    Estimate(EstimateArgs),
    /// Fit a method to readings and keep what it found
    Fit(FitArgs),
    /// Ask a fitted model for power and spread at places, or for a map
    Predict(PredictArgs),
    /// Say how well methods would have predicted your own sensors
    Validate(ValidateArgs),
    /// Compare methods over many simulated maps, or over splits of a survey
    Study(StudyArgs),
    /// Compare an estimated map with the truth
    Score(ScoreArgs),
    /// Run several methods on the same readings and score them
    Compare(CompareArgs),
    /// Say where new sensors would help most
    Advise(AdviseArgs),
    /// Draw a map as PNG, or preview it in the terminal
    Plot(PlotArgs),
    /// Say what is in a file
    Inspect(InspectArgs),
    /// Convert between npz, csv and mat
    Convert(ConvertArgs),
    /// Run the paper's experiments again; a stopped run goes on where it was
    #[cfg(feature = "paper")]
    Reproduce(ReproduceArgs),
    /// List the methods with their options and defaults
    Methods(MethodsArgs),
    /// Work out the paper's covering number and recovery bounds
    Bound(BoundArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
}

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub struct DemoArgs {
    /// Folder for the files and pictures [default: portolan-demo, or the next free name]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Seed of everything random: the same seed makes the same bytes
    #[arg(long, default_value_t = 7)]
    pub seed: u64,
    /// Replace files of an earlier demo in the same folder
    #[arg(long)]
    pub force: bool,
    /// Number of threads; the result does not depend on it [default: all]
    #[arg(long)]
    pub threads: Option<usize>,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Psd {
    Gaussian,
    Sinc,
}

/// What is simulated.
#[derive(Args)]
pub struct SceneArgs {
    /// Number of frequency bands
    #[arg(long, default_value_t = 64)]
    pub bands: usize,
    /// Number of transmitters
    #[arg(long, default_value_t = 4)]
    pub emitters: usize,
    /// Standard deviation of the shadowing in dB
    #[arg(long, default_value_t = 6.0)]
    pub shadow_db: f64,
    /// Decorrelation distance of the shadowing in metres
    #[arg(long, default_value_t = 90.0)]
    pub decorrelation: f64,
}

impl SceneArgs {
    pub fn scenario(&self, grid: Grid, seed: u64) -> Scenario {
        Scenario {
            bands: self.bands,
            emitters: self.emitters,
            shadow_db: self.shadow_db,
            decorrelation_m: self.decorrelation,
            seed,
            ..Scenario::new(grid)
        }
    }
}

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub struct SimulateArgs {
    /// Where to write the map (.npz, .mat, .csv)
    #[arg(short, long)]
    pub output: PathBuf,
    /// Rows x columns
    #[arg(long, default_value = "64x64", value_parser = parse::grid)]
    pub grid: (usize, usize),
    #[command(flatten)]
    pub scene: SceneArgs,
    /// Shape of the transmitters' spectra
    #[arg(long, value_enum, default_value = "gaussian")]
    pub psd: Psd,
    /// Metres per cell
    #[arg(long, default_value_t = 1.0)]
    pub cell_m: f64,
    /// Seed of everything random: the same seed makes the same bytes
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Write only the factors, however small the map
    #[arg(long)]
    pub factored: bool,
    /// Replace an existing output
    #[arg(long)]
    pub force: bool,
}

/// What is wrong with readings.
#[derive(Args)]
pub struct FlawArgs {
    /// Additive white noise at this signal-to-noise ratio
    #[arg(long)]
    pub snr_db: Option<f64>,
    /// Leave out this share of single readings, at random
    #[arg(long, value_name = "SHARE")]
    pub gaps: Option<f64>,
}

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub struct SenseArgs {
    /// The map to take readings of
    pub truth: PathBuf,
    /// Where to write (.npz, .mat, .csv)
    #[arg(short, long)]
    pub output: PathBuf,
    /// Random cells: this share of all [default: 0.1]
    #[arg(long, group = "layout")]
    pub fraction: Option<f64>,
    /// Random cells: this many
    #[arg(long, group = "layout")]
    pub count: Option<usize>,
    /// These cells: "row,col row,col ..", or a file with one "row,col" a line
    #[arg(long, group = "layout")]
    pub cells: Option<String>,
    /// A regular lattice: one sensor every STEP cells
    #[arg(long, group = "layout", value_name = "STEP")]
    pub lattice: Option<usize>,
    /// A drive along straight legs: "row,col row,col .." or a file of them
    #[arg(long, group = "layout", value_name = "WAYPOINTS")]
    pub path: Option<String>,
    /// With --path: one reading every so many cells
    #[arg(long, requires = "path", default_value_t = 1)]
    pub every: usize,
    #[command(flatten)]
    pub flaws: FlawArgs,
    /// Report levels of a quantiser with 1 to 8 bits instead of power
    #[arg(long)]
    pub bits: Option<u32>,
    /// Inner edges in ln(x + 1e-6), or 'authors' for the paper's 3-bit edges
    #[arg(long, requires = "bits", allow_hyphen_values = true)]
    pub edges: Option<String>,
    /// Standard deviation of the noise before quantising [default: 1.7]
    #[arg(long, requires = "bits")]
    pub sigma: Option<f64>,
    /// Seed of everything random: the same seed makes the same bytes
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Replace an existing output
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub read: ReadArgs,
}

/// What a file may not say about itself.
#[derive(Args)]
pub struct ReadArgs {
    /// Rows x columns, where the file does not say
    #[arg(long, value_parser = parse::grid)]
    pub grid: Option<(usize, usize)>,
    /// Unit of values whose name does not tell
    #[arg(long, value_enum)]
    pub unit: Option<UnitName>,
    /// Metres per cell
    #[arg(long)]
    pub cell_m: Option<f64>,
    /// x,y in metres of the centre of cell 0,0
    #[arg(long, value_name = "X,Y", value_parser = parse::pair, allow_hyphen_values = true)]
    pub origin: Option<(f64, f64)>,
    /// Array or variable of the file that holds the map
    #[arg(long)]
    pub var: Option<String>,
    /// The value in a table that means "not heard", such as 100 or -110
    #[arg(long, value_name = "CODE", allow_hyphen_values = true)]
    pub not_heard: Option<f64>,
    /// Level in dB below which nothing is heard [default: the faintest reading of each band]
    #[arg(long, value_name = "DB", requires = "not_heard", allow_hyphen_values = true)]
    pub floor_db: Option<f64>,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum UnitName {
    /// Milliwatts
    Linear,
    /// Decibels above one milliwatt
    Dbm,
    /// Decibels of a receiver without calibration
    Db,
    /// The paper's simulated maps, without a unit
    Relative,
}

impl ReadArgs {
    pub fn options(&self) -> ReadOptions {
        ReadOptions {
            unit: self.unit.map(UnitName::unit),
            grid: self.grid,
            cell_m: self.cell_m,
            origin_m: self.origin,
            var: self.var.clone(),
            not_heard: self.not_heard,
            floor_db: self.floor_db,
        }
    }
}

impl UnitName {
    pub fn unit(self) -> Unit {
        match self {
            UnitName::Linear => Unit::Linear,
            UnitName::Dbm => Unit::Dbm,
            UnitName::Db => Unit::Db,
            UnitName::Relative => Unit::Relative,
        }
    }
}

/// Options of every command that estimates.
#[derive(Args)]
pub struct RunArgs {
    /// How many emitters to assume, or auto
    #[arg(long, default_value = "auto", value_parser = parse::emitters)]
    pub emitters: Emitters,
    /// Seed of everything random: the same seed makes the same bytes
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Number of threads; the result does not depend on it [default: all]
    #[arg(long)]
    pub threads: Option<usize>,
}

/// What is fitted to which readings.
#[derive(Args)]
pub struct FitChoice {
    /// Readings (.npz, .csv, .mat, Wi-Fi trace)
    pub readings: PathBuf,
    /// See `portolan methods`
    #[arg(long, default_value = "auto")]
    pub method: String,
    /// An option of the method; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse::setting)]
    pub settings: Vec<(String, String)>,
    /// An earlier factored map of the same area to start from: new sensors update it
    #[arg(long, value_name = "MAP")]
    pub start: Option<PathBuf>,
    /// The true map, for the method oracle
    #[arg(long)]
    pub truth: Option<PathBuf>,
    #[command(flatten)]
    pub run: RunArgs,
    #[command(flatten)]
    pub read: ReadArgs,
}

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub struct EstimateArgs {
    #[command(flatten)]
    pub fit: FitChoice,
    /// Where to write the map (.npz, .mat, .csv)
    #[arg(short, long)]
    pub output: PathBuf,
    /// Write a map that is beyond memory in float64 instead of float32
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
pub struct PredictArgs {
    /// A model of `portolan fit` (.npz)
    pub model: PathBuf,
    /// Places to ask about: a table with the columns x_m and y_m (.csv)
    #[arg(conflicts_with_all = ["grid", "cell_m", "origin", "region"])]
    pub places: Option<PathBuf>,
    /// Where to write: predictions at places (.csv), or a map (.npz, .mat, .csv)
    #[arg(short, long)]
    pub output: PathBuf,
    /// Only these bands: labels, frequencies such as 2412MHz, or numbers from 0
    #[arg(long, value_delimiter = ',')]
    pub bands: Option<Vec<String>>,
    /// Draw a map of so many rows x columns [default: the model's grid]
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
    /// Write a map that is beyond memory in float64 instead of float32
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

#[derive(Clone, Copy, ValueEnum, PartialEq, Eq)]
pub enum SplitName {
    /// Sensor by sensor
    Random,
    /// Box by box of the survey
    Blocks,
}

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub struct ValidateArgs {
    /// Readings (.npz, .csv, .mat, Wi-Fi trace)
    pub readings: PathBuf,
    /// Names, each with options if need be: kriging,kriging:trend=linear:covariance=matern32
    #[arg(long, value_delimiter = ',', default_value = "kriging,field,auto")]
    pub methods: Vec<String>,
    /// How sensors are held out
    #[arg(long, value_enum, default_value = "random")]
    pub split: SplitName,
    /// Into how many parts the sensors are dealt
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub folds: u32,
    /// Where to draw the errors at the sensors (.png)
    #[arg(long, value_name = "PNG")]
    pub plot: Option<PathBuf>,
    #[command(flatten)]
    pub run: RunArgs,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    /// Replace an existing picture
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub read: ReadArgs,
}

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub struct StudyArgs {
    /// A survey whose sensors are split at random, or the folder of a ray-traced city; without it
    /// maps are simulated
    pub survey: Option<PathBuf>,
    /// Names, each with options if need be: kriging,kriging:trend=linear:covariance=matern32
    #[arg(long, value_delimiter = ',', default_value = "thin_plate,kriging,field,oracle")]
    pub methods: Vec<String>,
    /// Simulated maps, or splits of a survey
    #[arg(long, default_value_t = 16, visible_alias = "splits")]
    pub maps: u64,
    /// Seed of the first map or split; the others follow
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Rows x columns; of a city the cells in its middle
    #[arg(long, value_parser = parse::grid)]
    pub grid: Option<(usize, usize)>,
    #[command(flatten)]
    pub scene: SceneArgs,
    /// Share of the cells that are sensors [default: 0.1; a city: 0.05]
    #[arg(long, conflicts_with = "sensors")]
    pub fraction: Option<f64>,
    /// Number of sensors; several are several tables
    #[arg(long, value_delimiter = ',')]
    pub sensors: Option<Vec<usize>>,
    #[command(flatten)]
    pub flaws: FlawArgs,
    /// Report levels of a quantiser with 1 to 8 bits instead of power (3: the authors' edges)
    #[arg(long)]
    pub bits: Option<u32>,
    /// Standard deviation of the noise before quantising
    #[arg(long, default_value_t = 1.7)]
    pub sigma: f64,
    /// Number of emitters that methods are told, or auto [default: the true number]
    #[arg(long, value_parser = parse::emitters)]
    pub assumed: Option<Emitters>,
    /// The a of ln(x + a); 0 for dB without an offset [default: from the truth]
    #[arg(long)]
    pub offset: Option<f64>,
    /// Unit of a survey whose column names do not tell
    #[arg(long, value_enum)]
    pub unit: Option<UnitName>,
    /// Number of threads; the figures do not depend on it, seconds do [default: all]
    #[arg(long)]
    pub threads: Option<usize>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub struct ScoreArgs {
    /// The map (.npz, .csv, .mat)
    pub map: PathBuf,
    /// The true map (.npz, .csv, .mat)
    pub truth: PathBuf,
    /// The a of ln(x + a); 0 for dB without an offset [default: from the truth]
    #[arg(long)]
    pub offset: Option<f64>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub read: ReadArgs,
}

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub struct CompareArgs {
    /// Readings (.npz, .csv, .mat)
    pub readings: PathBuf,
    /// The true map (.npz, .csv, .mat)
    pub truth: PathBuf,
    /// Names, each with options if need be: kriging,kriging:trend=linear:covariance=matern32
    #[arg(long, value_delimiter = ',', default_value = "nearest,idw,linear,thin_plate,kriging")]
    pub methods: Vec<String>,
    /// The a of ln(x + a); 0 for dB without an offset [default: from the truth]
    #[arg(long)]
    pub offset: Option<f64>,
    #[command(flatten)]
    pub run: RunArgs,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub read: ReadArgs,
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
    /// Where to draw the sensors and the places (.png)
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
pub struct PlotArgs {
    /// The map (.npz, .csv, .mat)
    pub map: PathBuf,
    /// The picture (.png); without it a preview goes to the terminal
    #[arg(short, long)]
    pub output: Option<PathBuf>,
    /// Counted from 0 [default: the band with the most power]
    #[arg(long)]
    pub band: Option<usize>,
    /// Draw truth, estimate and error side by side
    #[arg(long)]
    pub truth: Option<PathBuf>,
    /// Mark the sensors of these readings
    #[arg(long)]
    pub readings: Option<PathBuf>,
    /// Draw the SLF and PSD of every emitter of a factored map instead of a band
    #[arg(long, conflicts_with_all = ["band", "readings"])]
    pub factors: bool,
    /// Only this rectangle in metres
    #[arg(long, value_name = "X0,Y0,X1,Y1", value_parser = parse::region, allow_hyphen_values = true)]
    pub region: Option<portolan::Region>,
    /// Heading of the picture
    #[arg(long)]
    pub title: Option<String>,
    /// Replace an existing output
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub read: ReadArgs,
}

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
    /// A map or readings (.npz, .csv, .mat, Wi-Fi trace)
    pub input: PathBuf,
    /// Where to write (.npz, .mat, .csv)
    pub output: PathBuf,
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

#[cfg(feature = "paper")]
#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub struct ReproduceArgs {
    /// An experiment, `all`, or `report` to write again what earlier runs found: table-emitters,
    /// table-parameters, table-architecture, table-shadowing, table-hyper,
    /// table-assumed-emitters, table-real, figure-maps, figure-real
    pub what: String,
    /// Maps (or random splits) per cell of a table
    #[arg(long, default_value_t = 5)]
    pub trials: usize,
    /// Folder for results and for the journal of finished trials
    #[arg(long, value_name = "DIR", default_value = "portolan-reproduction")]
    pub out: PathBuf,
    /// Folder with the measured data [default: the environment variable PORTOLAN_DATA]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Seed of the first map; the others follow
    #[arg(long, default_value_t = 10_000)]
    pub seed: u64,
    /// Number of threads; the figures do not depend on it, seconds do [default: all]
    #[arg(long)]
    pub threads: Option<usize>,
    /// Small maps and few iterations, to see that everything runs: the figures mean nothing
    #[arg(long, hide = true)]
    pub tiny: bool,
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
