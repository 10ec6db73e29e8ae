//! The options of commands that say how good methods are: `validate`, `study`, `score`,
//! `compare`, `reproduce`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use portolan::Emitters;

use super::calibration::CalibrationArgs;
use super::parse;
use super::shared::{DeviceName, FlawArgs, ObstacleArgs, ReadArgs, RunArgs, SceneArgs, UnitName};

#[derive(Clone, Copy, ValueEnum, PartialEq, Eq)]
pub enum SplitName {
    /// By sensor
    Random,
    /// By boxes of the survey
    Blocks,
    /// By floors of a building: each in turn is predicted from the others
    Floors,
    /// By altitudes of a flight, likewise
    Altitudes,
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
    /// Number of folds
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub folds: u32,
    /// Where to draw the errors at the sensors (.png, .svg, .pdf)
    #[arg(long, value_name = "PNG")]
    pub plot: Option<PathBuf>,
    /// Transmitters whose places are known: a table of x_m, y_m (or lat, lon), band, power_dbm,
    /// z_m (.csv)
    #[arg(long, value_name = "CSV")]
    pub transmitters: Option<PathBuf>,
    #[command(flatten)]
    pub obstacles: ObstacleArgs,
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

/// What `--sigma` is unless told otherwise.
const SIGMA: f64 = 1.7;

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub struct StudyArgs {
    /// A survey whose sensors are split at random, the folder of a ray-traced city, the word
    /// `real` for the study on public surveys, or the word `calibration` for the study of error
    /// bars; without it maps are simulated
    pub survey: Option<PathBuf>,
    /// Names, each with options if need be: kriging,kriging:trend=linear:covariance=matern32
    /// [default: thin_plate,kriging,field,oracle; real and calibration: kriging,field,auto]
    #[arg(long, value_delimiter = ',')]
    pub methods: Option<Vec<String>>,
    /// Simulated maps or surveys, or splits of a survey [default: 16; real: 5; calibration: 200]
    #[arg(long, visible_alias = "splits")]
    pub maps: Option<u64>,
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
    /// Number of sensors; several are several tables [calibration: 30,100,300]
    #[arg(long, value_delimiter = ',')]
    pub sensors: Option<Vec<usize>>,
    #[command(flatten)]
    pub flaws: FlawArgs,
    /// Report levels of a quantiser with 1 to 8 bits instead of power (3: the authors' edges)
    #[arg(long)]
    pub bits: Option<u32>,
    /// Edges between levels, in ln(x + 1e-6): authors (3 bits), quantiles (of simulated maps), even
    /// (even steps from -12 to -4) or e1,e2,.. [default: authors for 3 bits, else quantiles]
    #[arg(long, requires = "bits", allow_hyphen_values = true)]
    pub edges: Option<String>,
    /// Standard deviation of the noise before quantising
    #[arg(long, default_value_t = SIGMA)]
    pub sigma: f64,
    /// Number of emitters given to the methods, or auto [default: the true number]
    #[arg(long, value_parser = parse::emitters)]
    pub assumed: Option<Emitters>,
    /// The a of ln(x + a); 0 for dB without an offset [default: from the truth]
    #[arg(long)]
    pub offset: Option<f64>,
    /// Unit of a survey without one in its column names
    #[arg(long, value_enum)]
    pub unit: Option<UnitName>,
    /// Where fits of unn on simulated maps run: on a CUDA device all maps of a method together
    #[arg(long, value_enum, default_value = "cpu", conflicts_with = "survey")]
    pub device: DeviceName,
    /// Real: folder with the surveys [default: the environment variable PORTOLAN_DATA]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Real: folder for the training and test readings of every split, as tables
    #[arg(long, value_name = "DIR")]
    pub export: Option<PathBuf>,
    /// Real: where to draw measured against predicted, and calibration (.png, .svg, .pdf)
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Real: replace existing files
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub calibration: CalibrationArgs,
    /// Number of threads; the figures do not depend on it, seconds do [default: all]
    #[arg(long)]
    pub threads: Option<usize>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

impl StudyArgs {
    /// The first option about simulated maps, or about what a survey lacks, that was given another
    /// value than its default.
    pub fn changed(&self) -> Option<&'static str> {
        let scene = SceneArgs::default();
        let given = [
            (self.grid.is_some(), "--grid"),
            (self.scene.bands != scene.bands, "--bands"),
            (self.scene.emitters != scene.emitters, "--emitters"),
            (self.scene.shadow_db != scene.shadow_db, "--shadow-db"),
            (self.scene.decorrelation != scene.decorrelation, "--decorrelation"),
            (self.fraction.is_some(), "--fraction"),
            (self.flaws.snr_db.is_some(), "--snr-db"),
            (self.flaws.gaps.is_some(), "--gaps"),
            (self.flaws.cover.is_some(), "--cover"),
            (self.bits.is_some(), "--bits"),
            (self.edges.is_some(), "--edges"),
            (self.sigma != SIGMA, "--sigma"),
            (self.assumed.is_some(), "--assumed"),
            (self.offset.is_some(), "--offset"),
            (self.unit.is_some(), "--unit"),
        ];
        given.iter().find(|(given, _)| *given).map(|(_, name)| *name)
    }
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
    /// Small maps and few iterations, for tests: the results are not meaningful
    #[arg(long, hide = true)]
    pub tiny: bool,
}
