//! Options that several commands share.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use portolan::simulate::Scenario;
use portolan::{Crs, Emitters, Grid};
use portolan_io::{
    BandBy, Clock, ColumnNames, Combine, Format, MomentFormat, ReadOptions, RowFilter, Silence,
    SurveyOptions, Unit,
};

use super::parse;

/// What is simulated.
#[derive(Args)]
pub struct SceneArgs {
    /// Number of frequency bands
    #[arg(long, default_value_t = SceneArgs::default().bands)]
    pub bands: usize,
    /// Number of transmitters
    #[arg(long, default_value_t = SceneArgs::default().emitters)]
    pub emitters: usize,
    /// Standard deviation of the shadowing in dB
    #[arg(long, default_value_t = SceneArgs::default().shadow_db)]
    pub shadow_db: f64,
    /// Decorrelation distance of the shadowing in metres
    #[arg(long, default_value_t = SceneArgs::default().decorrelation)]
    pub decorrelation: f64,
}

impl Default for SceneArgs {
    fn default() -> Self {
        Self { bands: 64, emitters: 4, shadow_db: 6.0, decorrelation: 90.0 }
    }
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

/// What is wrong with readings.
#[derive(Args)]
pub struct FlawArgs {
    /// Additive white noise at this signal-to-noise ratio
    #[arg(long)]
    pub snr_db: Option<f64>,
    /// Leave out this share of single readings, at random
    #[arg(long, value_name = "SHARE")]
    pub gaps: Option<f64>,
    /// Every sensor covers this share of the bands only: neighbouring ones, the first at random
    #[arg(long, value_name = "SHARE")]
    pub cover: Option<f64>,
}

/// What a file may not say about itself.
#[derive(Args)]
pub struct ReadArgs {
    /// Rows x columns, where the file does not say
    #[arg(long, value_parser = parse::grid)]
    pub grid: Option<(usize, usize)>,
    /// Unit of values without one in their name
    #[arg(long, value_enum)]
    pub unit: Option<UnitName>,
    /// Metres per cell
    #[arg(long)]
    pub cell_m: Option<f64>,
    /// x,y in metres of the centre of cell 0,0
    #[arg(long, value_name = "X,Y", value_parser = parse::pair, allow_hyphen_values = true)]
    pub origin: Option<(f64, f64)>,
    /// Coordinate system: EPSG:n, or local:LAT,LON [default: the UTM zone of latitudes and
    /// longitudes]
    #[arg(long, value_name = "CRS", allow_hyphen_values = true)]
    pub crs: Option<Crs>,
    /// Array or variable of the file that holds the map
    #[arg(long)]
    pub var: Option<String>,
    /// The values in a table that mean "not heard", such as 100 or -200,-340, or absent: a band that
    /// is not listed at a place where others are; or below-serving: phones list the strongest cell alone
    #[arg(long, value_name = "CODE,..", value_parser = parse::silence, allow_hyphen_values = true)]
    pub not_heard: Option<Silence>,
    /// Level in dB below which nothing is heard [default: the faintest reading of each band]
    #[arg(long, value_name = "DB", requires = "not_heard", allow_hyphen_values = true)]
    pub floor_db: Option<f64>,
    /// Codes in a table that mean "no reading", such as -200,-340
    #[arg(long, value_name = "CODE,..", value_parser = parse::Codes::parse, allow_hyphen_values = true)]
    pub missing: Option<parse::Codes>,
    /// Refuse a table with a line that cannot be read [default: one line of twenty may be such]
    #[arg(long)]
    pub strict: bool,
    /// Accept doubtful input (codes as power, several floors, places that jump)
    #[arg(long)]
    pub accept: bool,
    /// What the input is, for standard input (-)
    #[arg(long, value_parser = parse::format, help = format!("What the input is, for standard input (-): {}", Format::names()))]
    pub format: Option<Format>,
    #[command(flatten)]
    pub survey: SurveyArgs,
}

/// How the lines of a survey become places and bands.
#[derive(Args)]
#[command(next_help_heading = "Surveys")]
pub struct SurveyArgs {
    /// Meaning of columns: x=NAME,y=NAME (or lat, lon), value=NAME,band=NAME (or freq, channel),
    /// time=NAME, device=NAME (or none), bands=PREFIX* for a column per band
    #[arg(long, value_name = "WHAT=NAME,..", value_parser = ColumnNames::parse)]
    pub columns: Option<ColumnNames>,
    /// Use only lines that meet this condition: "floor = 2", "technology = 'LTE' and rsrp > -120"
    #[arg(long = "where", value_name = "CONDITION", value_parser = RowFilter::parse)]
    pub filter: Option<RowFilter>,
    /// Column that names the band in a table with a line per frame: bssid, ssid, freq, channel, or
    /// the names of columns
    #[arg(long, value_name = "WHAT", value_parser = parse::band_by)]
    pub band_by: Option<BandBy>,
    /// How the transmitters of a network become one band: strongest, sum or mean [default: strongest]
    #[arg(long, value_name = "HOW", value_parser = parse::combine)]
    pub combine: Option<Combine>,
    /// Unit of a frequency column without a unit in its name: Hz, kHz, MHz or GHz
    #[arg(long, value_name = "UNIT", value_parser = parse::freq_unit)]
    pub freq_unit: Option<f64>,
    /// Leave out bands heard at fewer places [default: 5 for transmitters, 1 for frequencies]
    #[arg(long, value_name = "N")]
    pub min_places: Option<usize>,
    /// Treat readings within a square of this many metres as one place
    #[arg(long, value_name = "METRES")]
    pub gather: Option<f64>,
    /// Where the receiver of a sweep was: GPX, or a table with time and lat,lon or x_m,y_m
    #[arg(long, value_name = "FILE")]
    pub track: Option<PathBuf>,
    /// Offset of clocks without a time zone: +2, +02:00:13 or Europe/Berlin
    #[arg(long, value_name = "OFFSET|ZONE", value_parser = Clock::parse, allow_hyphen_values = true)]
    pub utc_offset: Option<Clock>,
    /// What numbers in the column of times count, where it is not seconds since 1970: second, minute,
    /// hour, day, week, month or year
    #[arg(long, value_name = "UNIT", value_parser = portolan_io::parse::time_unit)]
    pub time_unit: Option<f64>,
    /// Metres from floor to floor: a column of floors becomes heights, and `field` and `auto` fit the
    /// loss of the floors between a transmitter and a place
    #[arg(long, value_name = "METRES", value_parser = portolan_io::parse::metres)]
    pub floor_height: Option<f64>,
    /// Seconds between two fixes of a track beyond which a place is not known [default: 30]
    #[arg(long, value_name = "SECONDS", requires = "track")]
    pub track_gap: Option<f64>,
    /// Gather the bins of a sweep into bands of this width, such as 200kHz
    #[arg(long, value_name = "HZ", value_parser = parse::frequency)]
    pub band_width: Option<f64>,
    /// Gather the bins of a sweep into bands between these frequencies, such as 88MHz,98MHz,108MHz
    #[arg(long, value_name = "HZ,HZ,..", value_parser = parse::frequency, value_delimiter = ',')]
    pub band_edges: Option<Vec<f64>>,
    /// Which cells of a bare .npy map were measured: a second array, true or 1 where they were
    #[arg(long, value_name = "NPY")]
    pub measured: Option<PathBuf>,
}

impl SurveyArgs {
    /// How moments are written.
    pub fn moment_format(&self) -> MomentFormat {
        MomentFormat { clock: self.utc_offset.clone(), unit_s: self.time_unit }
    }

    fn options(&self) -> SurveyOptions {
        SurveyOptions {
            columns: self.columns.clone(),
            band_by: self.band_by.clone(),
            combine: self.combine,
            filter: self.filter.clone(),
            freq_unit_hz: self.freq_unit,
            min_places: self.min_places,
            gather_m: self.gather,
            track: self.track.clone(),
            clock: self.utc_offset.clone(),
            time_unit_s: self.time_unit,
            floor_height_m: self.floor_height,
            track_gap_s: self.track_gap,
            band_width_hz: self.band_width,
            band_edges_hz: self.band_edges.clone(),
            measured: self.measured.clone(),
        }
    }
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
            crs: self.crs,
            var: self.var.clone(),
            not_heard: self.not_heard.clone(),
            missing: self.missing.clone().map(|codes| codes.0).unwrap_or_default(),
            strict: self.strict,
            accept: self.accept,
            floor_db: self.floor_db,
            format: self.format,
            survey: self.survey.options(),
            further: false,
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
    /// Transmitters whose places are known: a table of x_m, y_m (or lat, lon), band, power_dbm,
    /// z_m (.csv)
    #[arg(long, value_name = "CSV")]
    pub transmitters: Option<PathBuf>,
    #[command(flatten)]
    pub obstacles: ObstacleArgs,
    /// Where the fit runs: cuda needs method unn; auto takes a CUDA device where there is one
    #[arg(long, value_enum, default_value = "cpu")]
    pub device: DeviceName,
    /// Fit as if all readings were of one time
    #[arg(long)]
    pub ignore_time: bool,
    #[command(flatten)]
    pub run: RunArgs,
    #[command(flatten)]
    pub read: ReadArgs,
}

/// What stands between transmitters and places.
#[derive(Args)]
pub struct ObstacleArgs {
    /// Walls of a plan: a table of x1_m, y1_m, x2_m, y2_m, material, floor (.csv), or lines and
    /// polygons with a material (.geojson)
    #[arg(long, value_name = "PLAN")]
    pub walls: Option<PathBuf>,
}

/// When a model is asked about.
#[derive(Args)]
pub struct MomentArgs {
    /// The moment to ask about: 2024-05-01T12:30:00Z, or seconds since 1970 [default: that of the
    /// latest reading]. Maps in .npz and .nc of several: FROM/TO/STEP with a step such as 6h or 1d
    #[arg(long, value_name = "MOMENT", allow_hyphen_values = true)]
    pub at: Option<String>,
}

/// Where fits run.
#[derive(Clone, Copy, ValueEnum, PartialEq, Eq)]
pub enum DeviceName {
    /// A CUDA device where there is one, else the processor
    Auto,
    /// The processor
    Cpu,
    /// The first CUDA device
    Cuda,
}
