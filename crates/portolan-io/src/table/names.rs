//! The names by which people call columns: what they are for, units and frequencies in them.

use crate::options::Unit;

/// Hz per unit of a frequency, by the suffix of its name.
const SCALES: [(&str, f64); 4] = [("khz", 1e3), ("mhz", 1e6), ("ghz", 1e9), ("hz", 1.0)];

/// The words for a unit in a column's name.
const UNITS: [(&str, Unit); 5] = [
    ("dbm", Unit::Dbm),
    ("mw", Unit::Linear),
    ("linear", Unit::Linear),
    ("db", Unit::Db),
    ("relative", Unit::Relative),
];

/// What a column is for, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    X,
    Y,
    Z,
    Lat,
    Lon,
    Row,
    Col,
    Time,
    Transmitter,
    Network,
    Channel,
    Frequency,
    Value,
    Device,
    Floor,
}

/// A name as it is compared: small letters, a unit in brackets behind an underscore.
pub(super) fn normal(name: &str) -> String {
    let name = name.trim().trim_matches(['\'', '"']).to_ascii_lowercase();
    let bare = name.strip_suffix([')', ']']).and_then(|name| name.rsplit_once(['(', '[']));
    let name = match bare {
        Some((bare, unit)) if !bare.trim().is_empty() => {
            let (bare, unit) = (bare.trim_end(), unit.trim());
            match UNITS.iter().any(|(known, _)| *known == unit)
                || SCALES.iter().any(|(known, _)| *known == unit)
            {
                true => format!("{bare}_{unit}"),
                false => match unit {
                    "m" | "metres" | "meters" => format!("{bare}_m"),
                    "deg" | "degrees" | "\u{b0}" | "utc" | "s" => bare.to_string(),
                    _ => name,
                },
            }
        }
        _ => name,
    };
    name.replace(' ', "_")
}

impl Role {
    /// The names by which people call it, the usual first.
    const NAMES: [(Role, &'static [&'static str]); 15] = [
        (Role::X, &["x_m", "x", "easting", "east", "x_meters", "x_metres", "pos_x", "utm_e"]),
        (Role::Y, &["y_m", "y", "northing", "north", "y_meters", "y_metres", "pos_y", "utm_n"]),
        (Role::Z, &["z_m", "height_m", "altitude_m", "z_meters", "z_metres", "pos_z"]),
        (
            Role::Lat,
            &[
                "lat",
                "latitude",
                "currentlatitude",
                "gps_lat",
                "gps_latitude",
                "lat_deg",
                "latitude_deg",
            ],
        ),
        (
            Role::Lon,
            &[
                "lon",
                "lng",
                "long",
                "longitude",
                "currentlongitude",
                "gps_lon",
                "gps_longitude",
                "lon_deg",
            ],
        ),
        (Role::Row, &["row"]),
        (Role::Col, &["col", "column"]),
        (
            Role::Time,
            &[
                "time",
                "timestamp",
                "time_s",
                "unix_time",
                "datetime",
                "date_time",
                "firstseen",
                "time_utc",
                "utc",
                "gps_time",
                "gpstime",
                "date",
            ],
        ),
        (
            Role::Transmitter,
            &[
                "bssid",
                "mac",
                "mac_address",
                "netid",
                "transmitter",
                "tx",
                "cell_id",
                "cellid",
                "pci",
                "ap",
                "sourcemac",
                "source_mac",
                "transmac",
                "gwaddr",
                "gateway",
                "gateway_id",
                "gateway_eui",
                "gtw_id",
                "hotspot",
                "hotspot_name",
                "hotspot_id",
            ],
        ),
        (Role::Network, &["ssid", "essid", "network"]),
        (Role::Floor, &["floor", "floor_id", "floorid", "storey", "story", "etage"]),
        (Role::Channel, &["channel", "chan", "ch"]),
        (Role::Frequency, &["freq", "frequency", "frequencies"]),
        (
            Role::Device,
            &["device", "device_id", "phone", "phone_id", "phoneid", "handset", "handset_id"],
        ),
        (
            Role::Value,
            &[
                "power",
                "rssi",
                "level",
                "signal",
                "rss",
                "signal_strength",
                "rsrp",
                "rscp",
                "value",
                "dbm",
            ],
        ),
    ];

    pub fn of(name: &str) -> Option<Self> {
        let bare = split_unit(name).0;
        let known = |of: &str| Self::NAMES.iter().find(|(_, names)| names.contains(&of));
        match known(name).or_else(|| known(bare).filter(|(role, _)| *role == Role::Value)) {
            Some((role, _)) => Some(*role),
            None => frequency_column(name).map(|_| Role::Frequency),
        }
    }
}

impl Role {
    /// Whether it tells bands apart.
    pub fn is_band(self) -> bool {
        matches!(self, Role::Transmitter | Role::Network | Role::Channel | Role::Frequency)
    }
}

/// What identifies a cell beside its own number, in the order in which a band names it. Two networks
/// give the same number to different cells.
const CELL_KEYS: [&[&str]; 7] = [
    &["technology", "networktech", "tech", "rat", "radio", "networkmode", "network_type"],
    &["operator", "operatorname", "plmn", "mcc"],
    &["mnc"],
    &["lac", "tac", "area"],
    &["node", "nodeid", "enb", "enodeb", "enb_id", "gnb", "gnb_id", "rnc"],
    &["cell_id", "cellid", "ci", "cid"],
    &["pci", "psc", "physical_cell_id"],
];

/// The columns that identify a cell, where `column` is one of them; else that column alone.
pub(super) fn cell_columns(names: &[String], column: usize) -> Vec<usize> {
    let is_cell = |name: &str| CELL_KEYS[5..].iter().any(|keys| keys.contains(&name));
    if !is_cell(&names[column]) {
        return vec![column];
    }
    let first = |keys: &&[&str]| names.iter().position(|name| keys.contains(&name.as_str()));
    CELL_KEYS.iter().filter_map(first).collect()
}

/// Whether a name is that of a gateway of LoRaWAN.
pub(super) fn is_gateway(name: &str) -> bool {
    ["gwaddr", "gateway", "gtw_", "hotspot"].iter().any(|start| name.starts_with(start))
}

/// Whether a name is that of something beside power: quality, or how the receiver moved.
pub(super) fn is_beside(bare: &str) -> bool {
    [
        "rsrq", "sinr", "snr", "rssnr", "rs_sinr", "lsnr", "quality", "qual", "cqi", "ta", "ecno",
        "ec/no", "ber", "speed", "altitude", "alt", "accuracy", "bearing", "heading", "hdop",
        "noise",
    ]
    .contains(&bare)
}

/// What a column of that name is for.
pub(crate) fn role_of(name: &str) -> Option<Role> {
    Role::of(&normal(name))
}

/// Whether a name is that of a band by its frequency, number or address, or says a unit.
pub(crate) fn is_band_name(name: &str) -> bool {
    let name = normal(name);
    let (bare, unit) = split_unit(&name);
    let known = frequency(bare).is_some() || is_numbered(bare) || is_address(bare);
    !bare.is_empty() && !is_beside(bare) && (known || unit.is_some())
}

/// Whether a name is that of a position.
pub(crate) fn is_position(name: &str) -> bool {
    let role = Role::of(&name.trim().to_ascii_lowercase());
    role.is_some_and(|role| {
        matches!(role, Role::X | Role::Y | Role::Lat | Role::Lon | Role::Row | Role::Col)
    })
}

/// Whether a name is as a pattern says, which may end in a star.
pub(super) fn matches(name: &str, pattern: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    }
}

/// The scale of a column of frequencies: `freq_hz`, `frequency_mhz` and the like.
pub(super) fn frequency_column(name: &str) -> Option<f64> {
    let unit = name.strip_prefix("freq_").or_else(|| name.strip_prefix("frequency_"))?;
    SCALES.iter().find(|(suffix, _)| *suffix == unit).map(|(_, scale)| *scale)
}

/// Parts `dbm_2412mhz` or `power_dbm` into the name and the unit.
pub(super) fn split_unit(name: &str) -> (&str, Option<Unit>) {
    for (word, unit) in UNITS {
        let before = name.strip_prefix(word).and_then(|rest| rest.strip_prefix('_'));
        let after = || name.strip_suffix(word).and_then(|rest| rest.strip_suffix('_'));
        if let Some(bare) = before.or_else(after) {
            return (bare, Some(unit));
        }
        if name == word && unit.is_decibels() {
            return (name, Some(unit));
        }
    }
    (name, None)
}

/// A frequency in Hz, and whether its unit was spelled out.
pub(crate) fn frequency(text: &str) -> Option<(f64, bool)> {
    let (number, scale) = SCALES
        .iter()
        .find_map(|(suffix, scale)| Some((text.strip_suffix(suffix)?, Some(*scale))))
        .unwrap_or((text, None));
    let number = number.trim_end_matches(['_', ' ']);
    // Rust would also take "inf" and "nan" for numbers.
    if !number.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let freq_hz = number.parse::<f64>().ok()? * scale.unwrap_or(1.0);
    (freq_hz.is_finite() && freq_hz > 0.0).then_some((freq_hz, scale.is_some()))
}

/// `band0`, `band_12`: a band whose frequency nobody knows.
pub(super) fn is_numbered(text: &str) -> bool {
    let digits = text.strip_prefix("band").map(|rest| rest.strip_prefix('_').unwrap_or(rest));
    digits.is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()))
}

/// `aa:bb:cc:00:11:22`: the address of a transmitter.
pub(super) fn is_address(text: &str) -> bool {
    let parts: Vec<&str> = text.split([':', '-']).collect();
    parts.len() == 6
        && parts.iter().all(|p| p.len() == 2 && p.bytes().all(|b| b.is_ascii_hexdigit()))
}
