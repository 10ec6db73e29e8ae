//! The options of `explore`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use portolan::Emitters;
use portolan_io::Format;

use super::parse;

/// The port of a page, where it is free.
pub const USUAL_PORT: u16 = 8765;

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub struct ExploreArgs {
    /// Readings, models or maps, or a folder of them; without any a demonstration opens
    pub files: Vec<PathBuf>,
    /// Port to listen on; 0 takes any free port [default: 8765, or any if it is in use]
    #[arg(long)]
    pub port: Option<u16>,
    /// Do not open a browser
    #[arg(long)]
    pub no_open: bool,
    /// Listen on another address than this machine's own, such as 0.0.0.0; the address that is
    /// printed then holds a token that every request must carry
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<IpAddr>,
    /// The method that is fitted to readings at the start [default: auto; demonstration: field]
    #[arg(long)]
    pub method: Option<String>,
    /// An option of the method; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse::setting)]
    pub settings: Vec<(String, String)>,
    /// How many emitters to assume, or auto
    #[arg(long, default_value = "auto", value_parser = parse::emitters)]
    pub emitters: Emitters,
    /// Seed of everything random: the same seed makes the same model
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Number of threads; the result does not depend on it [default: all]
    #[arg(long)]
    pub threads: Option<usize>,
    #[command(flatten)]
    pub read: ReadWords,
}

impl ExploreArgs {
    /// Where to listen: the port that was asked for, or the usual one and then any.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let ip = self.listen.unwrap_or(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));
        let ports = self.port.map_or_else(|| vec![USUAL_PORT, 0], |port| vec![port]);
        ports.into_iter().map(|port| (ip, port).into()).collect()
    }
}

/// What files do not say about themselves, as words: the page shows them again.
#[derive(Args)]
#[command(next_help_heading = "Files")]
pub struct ReadWords {
    /// Unit of values without one in their name: dbm, db, linear, relative
    #[arg(long)]
    pub unit: Option<String>,
    /// Rows x columns, where the file does not say
    #[arg(long)]
    pub grid: Option<String>,
    /// Metres per cell
    #[arg(long)]
    pub cell_m: Option<String>,
    /// x,y in metres of the centre of cell 0,0
    #[arg(long, value_name = "X,Y", allow_hyphen_values = true)]
    pub origin: Option<String>,
    /// Coordinate system: EPSG:n, or local:LAT,LON [default: the UTM zone of latitudes and
    /// longitudes]
    #[arg(long, allow_hyphen_values = true)]
    pub crs: Option<String>,
    /// Array or variable of the file that holds the map
    #[arg(long)]
    pub var: Option<String>,
    /// The values in a table that mean "not heard", absent or below-serving
    #[arg(long, value_name = "CODE,..", allow_hyphen_values = true)]
    pub not_heard: Option<String>,
    /// Level in dB below which nothing is heard
    #[arg(long, value_name = "DB", requires = "not_heard", allow_hyphen_values = true)]
    pub floor_db: Option<String>,
    /// Codes in a table that mean "no reading"
    #[arg(long, value_name = "CODE,..", allow_hyphen_values = true)]
    pub missing: Option<String>,
    /// Refuse a table with a line that cannot be read
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub strict: Option<String>,
    /// Accept doubtful input (codes as power, several floors, places that jump)
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub accept: Option<String>,
    /// What the input is
    #[arg(long, help = format!("What the input is: {}", Format::names()))]
    pub format: Option<String>,
    /// Meaning of columns: x=NAME,y=NAME (or lat, lon), value=NAME,band=NAME, bands=PREFIX*
    #[arg(long, value_name = "WHAT=NAME,..")]
    pub columns: Option<String>,
    /// Use only lines that meet this condition: "floor = 2", "technology = 'LTE' and rsrp > -120"
    #[arg(long = "where", value_name = "CONDITION")]
    pub filter: Option<String>,
    /// Column that names the band in a table with a line per frame: bssid, ssid, freq, channel, or
    /// the names of columns
    #[arg(long, value_name = "WHAT")]
    pub band_by: Option<String>,
    /// How the transmitters of a network become one band: strongest, sum or mean [default: strongest]
    #[arg(long, value_name = "HOW")]
    pub combine: Option<String>,
    /// Unit of a frequency column without a unit in its name: Hz, kHz, MHz or GHz
    #[arg(long, value_name = "UNIT")]
    pub freq_unit: Option<String>,
    /// Leave out bands heard at fewer places
    #[arg(long, value_name = "N")]
    pub min_places: Option<String>,
    /// Treat readings within a square of this many metres as one place
    #[arg(long, value_name = "METRES")]
    pub gather: Option<String>,
    /// Offset of clocks without a time zone: +2, +02:00:13 or Europe/Berlin
    #[arg(long, value_name = "OFFSET|ZONE", allow_hyphen_values = true)]
    pub utc_offset: Option<String>,
    /// What plain numbers of times count: second, minute, hour, day, week, month or year
    #[arg(long, value_name = "UNIT")]
    pub time_unit: Option<String>,
    /// Metres from floor to floor: a column of floors becomes heights
    #[arg(long, value_name = "METRES")]
    pub floor_height: Option<String>,
    /// Gather the bins of a sweep into bands of this width, such as 200kHz
    #[arg(long, value_name = "HZ")]
    pub band_width: Option<String>,
    /// Gather the bins of a sweep into bands between these frequencies
    #[arg(long, value_name = "HZ,HZ,..")]
    pub band_edges: Option<String>,
}

impl ReadWords {
    /// Names without their dashes, and values.
    pub fn words(&self) -> Vec<(String, String)> {
        let all = [
            ("unit", &self.unit),
            ("grid", &self.grid),
            ("cell-m", &self.cell_m),
            ("origin", &self.origin),
            ("crs", &self.crs),
            ("var", &self.var),
            ("not-heard", &self.not_heard),
            ("floor-db", &self.floor_db),
            ("format", &self.format),
            ("columns", &self.columns),
            ("band-by", &self.band_by),
            ("min-places", &self.min_places),
            ("gather", &self.gather),
            ("utc-offset", &self.utc_offset),
            ("time-unit", &self.time_unit),
            ("floor-height", &self.floor_height),
            ("band-width", &self.band_width),
            ("band-edges", &self.band_edges),
            ("missing", &self.missing),
            ("strict", &self.strict),
            ("accept", &self.accept),
            ("where", &self.filter),
            ("combine", &self.combine),
            ("freq-unit", &self.freq_unit),
        ];
        let given = |(name, value): (&str, &Option<String>)| Some((name.into(), value.clone()?));
        all.into_iter().filter_map(given).collect()
    }
}
