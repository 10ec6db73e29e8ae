//! The options of commands that make data: `demo`, `simulate`, `sense`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::parse;
use super::shared::{FlawArgs, ReadArgs, SceneArgs};

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

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub struct SenseArgs {
    /// The map to read
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
    /// Inner edges in ln(x + 1e-6): e1,e2,.., authors (the paper's, 3 bits), even (even steps from
    /// -12 to -4) or quantiles (of simulated maps, or of a measured map itself) [default: quantiles]
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
