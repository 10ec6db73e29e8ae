//! How to read and write: what the caller knows that a file may not say.

use std::path::PathBuf;

use portolan::{Crs, InputError, Model, RadioMap, Readings, Scale, Site, Values};

use crate::format::Format;
use crate::survey::Clock;
use crate::table::RowFilter;

/// The unit of power values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Milliwatts.
    Linear,
    /// Decibels above one milliwatt.
    Dbm,
    /// Decibels of a receiver without calibration.
    Db,
    /// Power without a unit, as the paper's simulated maps.
    Relative,
}

impl Unit {
    /// Every unit with its name in files and options.
    pub const NAMED: [(&'static str, Unit); 4] = [
        ("linear", Unit::Linear),
        ("dbm", Unit::Dbm),
        ("db", Unit::Db),
        ("relative", Unit::Relative),
    ];

    /// The unit of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMED.iter().find(|(known, _)| *known == name).map(|(_, unit)| *unit)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMED.iter().find(|(_, unit)| *unit == self).map_or("", |(name, _)| name)
    }

    /// Whether values are logarithms.
    pub fn is_decibels(self) -> bool {
        matches!(self, Unit::Dbm | Unit::Db)
    }

    /// Linear power of a value in this unit.
    pub fn to_linear(self, value: f64) -> f64 {
        if self.is_decibels() { 10f64.powf(value / 10.0) } else { value }
    }

    /// A linear power in this unit.
    pub fn from_linear(self, power: f64) -> f64 {
        if self.is_decibels() { 10.0 * power.log10() } else { power }
    }

    /// The scale of powers in this unit; `offset` is that of a relative one, the paper's by
    /// default.
    pub fn scale(self, offset: Option<f64>) -> Result<Scale, InputError> {
        match self {
            Unit::Linear | Unit::Dbm => Ok(Scale::Absolute),
            Unit::Db => Ok(Scale::Uncalibrated),
            Unit::Relative => offset.map_or(Ok(Scale::paper()), Scale::relative),
        }
    }

    /// The unit in which people speak of a scale.
    pub fn of_scale(scale: Scale) -> Self {
        match scale {
            Scale::Uncalibrated => Unit::Db,
            Scale::Relative { .. } => Unit::Relative,
            _ => Unit::Dbm,
        }
    }
}

/// What to assume while reading. The default takes everything from the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadOptions {
    /// The unit of values whose file does not name one.
    pub unit: Option<Unit>,
    /// Rows and columns, where the file does not say.
    pub grid: Option<(usize, usize)>,
    /// Metres per cell; overrides the file's.
    pub cell_m: Option<f64>,
    /// Where the centre of cell (0, 0) lies; overrides the file's.
    pub origin_m: Option<(f64, f64)>,
    /// Where on Earth the metres of the file are, or those that its degrees become. A file that says
    /// otherwise is refused.
    pub crs: Option<Crs>,
    /// The array or variable that is the map.
    pub var: Option<String>,
    /// What in a table means "not heard".
    pub not_heard: Option<Silence>,
    /// Codes in a table that mean "no reading".
    pub missing: Vec<f64>,
    /// The level in dB below which nothing is heard; by default the faintest reading of a band.
    pub floor_db: Option<f64>,
    /// What the file is, where its bytes and name do not tell.
    pub format: Option<Format>,
    /// How the lines of a survey become places and bands.
    pub survey: SurveyOptions,
    /// The readings are to update a model: one is enough, and bands may be empty.
    pub further: bool,
    /// Lines that cannot be read refuse the whole table; else one of twenty may be such.
    pub strict: bool,
    /// Accept doubtful input (codes, several floors, places that jump).
    pub accept: bool,
}

impl ReadOptions {
    /// Readings as they are wanted.
    pub(crate) fn readings(
        &self,
        sites: Vec<Site>,
        values: Values,
        scale: Scale,
    ) -> Result<Readings, InputError> {
        match self.further {
            true => Readings::further(sites, values, scale),
            false => Readings::new(sites, values, scale),
        }
    }
}

/// What means "not heard".
#[derive(Clone, Debug, PartialEq)]
pub enum Silence {
    /// Values that some receivers write, such as 100 or -110.
    Codes(Vec<f64>),
    /// A band that is not listed at a place where others are.
    Absent,
    /// The same, of phones that list the cell that serves them alone: the others are weaker than that.
    BelowServing,
}

/// What tells the bands of a survey apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BandBy {
    /// The address or name of a transmitter.
    Bssid,
    /// The name of a network.
    Ssid,
    /// The frequency.
    Frequency,
    /// The number of a channel.
    Channel,
    /// These columns together.
    Columns(Vec<String>),
}

impl std::fmt::Display for BandBy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            BandBy::Bssid => "bssid",
            BandBy::Ssid => "ssid",
            BandBy::Frequency => "freq",
            BandBy::Channel => "channel",
            BandBy::Columns(names) => return f.write_str(&names.join(",")),
        })
    }
}

/// How several transmitters become one band.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Combine {
    /// The strongest, which is what a phone connects to.
    #[default]
    Strongest,
    /// The sum of their powers.
    Sum,
    /// The mean of their levels.
    Mean,
}

/// How the lines of a survey become places and bands. The default takes it from the columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SurveyOptions {
    /// Which column is what.
    pub columns: Option<ColumnNames>,
    /// What tells bands apart; by default the transmitter, else the frequency, else the channel.
    pub band_by: Option<BandBy>,
    /// How the transmitters of a network become one band; the strongest by default.
    pub combine: Option<Combine>,
    /// Which lines are read.
    pub filter: Option<RowFilter>,
    /// What a column of frequencies without a unit in its name is in, in Hz.
    pub freq_unit_hz: Option<f64>,
    /// Bands heard at fewer places are left out; by default 5 for transmitters and networks.
    pub min_places: Option<usize>,
    /// Readings within squares of this many metres are one place.
    pub gather_m: Option<f64>,
    /// Where a receiver without a position was: GPX, or a table with times.
    pub track: Option<PathBuf>,
    /// What the receiver's clock shows when it is midnight at Greenwich.
    pub clock: Option<Clock>,
    /// Seconds that a number in the column of times counts, where it is not one since 1970.
    pub time_unit_s: Option<f64>,
    /// Metres from floor to floor: a column of floors becomes heights.
    pub floor_height_m: Option<f64>,
    /// Seconds between two fixes of a track beyond which the way between them is not known; by
    /// default 30.
    pub track_gap_s: Option<f64>,
    /// Bins of a sweep are gathered into bands of this many Hz ..
    pub band_width_hz: Option<f64>,
    /// .. or into bands between these frequencies in Hz, ascending.
    pub band_edges_hz: Option<Vec<f64>>,
    /// An array that says which cells of a bare array were measured.
    pub measured: Option<PathBuf>,
}

/// Which column of a table is what.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnNames {
    /// Metres along x.
    pub x: Option<String>,
    /// Metres along y.
    pub y: Option<String>,
    /// Height in metres.
    pub z: Option<String>,
    /// Degrees north.
    pub lat: Option<String>,
    /// Degrees east.
    pub lon: Option<String>,
    /// Row of a cell.
    pub row: Option<String>,
    /// Column of a cell.
    pub col: Option<String>,
    /// When it was read.
    pub time: Option<String>,
    /// What it was read with; `none` where that does not matter.
    pub device: Option<String>,
    /// The level, in a table with a line per band.
    pub value: Option<String>,
    /// What tells the bands apart, in such a table.
    pub band: Option<String>,
    /// The frequency, in such a table.
    pub freq: Option<String>,
    /// The channel, in such a table.
    pub channel: Option<String>,
    /// The bands of a table with a column each: a name, or how names begin and a star.
    pub bands: Option<String>,
}

impl ColumnNames {
    /// From `x=NAME,y=NAME,value=NAME,band=NAME`.
    ///
    /// ```
    /// use portolan_io::ColumnNames;
    /// let names = ColumnNames::parse("x=LONGITUDE,y=LATITUDE,bands=WAP*")?;
    /// assert_eq!(names.bands.as_deref(), Some("WAP*"));
    /// assert!(ColumnNames::parse("height=z").is_err());
    /// # Ok::<(), String>(())
    /// ```
    pub fn parse(text: &str) -> std::result::Result<Self, String> {
        let mut names = Self::default();
        for pair in text.split(',') {
            let wrong = || {
                format!(
                    "'{pair}': expected WHAT=NAME, WHAT being x, y, z, lat, lon, row, col, \
                     time, device, value, band, freq, channel or bands"
                )
            };
            let (what, name) = pair.split_once('=').ok_or_else(wrong)?;
            let slot = match what.trim() {
                "x" => &mut names.x,
                "y" => &mut names.y,
                "z" => &mut names.z,
                "lat" => &mut names.lat,
                "lon" => &mut names.lon,
                "row" => &mut names.row,
                "col" => &mut names.col,
                "time" => &mut names.time,
                "device" => &mut names.device,
                "value" => &mut names.value,
                "band" => &mut names.band,
                "freq" => &mut names.freq,
                "channel" => &mut names.channel,
                "bands" => &mut names.bands,
                _ => return Err(wrong()),
            };
            if name.trim().is_empty() || slot.replace(name.trim().to_string()).is_some() {
                return Err(wrong());
            }
        }
        Ok(names)
    }
}

/// How to write. The default refuses to replace a file and picks the rest by content.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WriteOptions {
    /// Replace an existing file.
    pub force: bool,
    /// Whether a factored map is also written dense; by default up to 2^24 entries.
    pub dense: Option<bool>,
    /// The unit of a table's columns; arrays are always linear. By default dBm, but linear for a
    /// band that holds a zero, which has no value in dBm.
    pub unit: Option<Unit>,
    /// Levels of the areas that a GeoJSON of a map holds; a few round ones where there are none.
    pub levels: Vec<f64>,
}

/// What a file turned out to hold.
#[derive(Debug)]
pub enum Content {
    /// A map.
    Map(RadioMap),
    /// Readings.
    Readings(Readings),
    /// A fitted model.
    Model(Box<Model>),
}

/// The value read, and warnings about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded<T> {
    /// What was read.
    pub value: T,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}
