//! The header of a table: which columns are positions, times and bands, at what frequency and in
//! what unit.

use super::names::{
    Role, cell_columns, frequency, frequency_column, is_band_name, is_beside, is_gateway,
    is_numbered, matches, normal, split_unit,
};
use crate::error::{Check, Problem, quoted, shown};
use crate::options::{BandBy, ColumnNames, Unit};

/// Where a sensor stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    /// Columns that hold row and col.
    Cell(usize, usize),
    /// Columns that hold x and y in metres, and latitude and longitude where they stand beside.
    Metres(usize, usize, Option<(usize, usize)>),
    /// Columns that hold row, col, x_m and y_m: the cells of a map; and latitude and longitude.
    Both([usize; 4], Option<(usize, usize)>),
    /// Columns that hold latitude and longitude.
    Degrees(usize, usize),
}

/// A column of values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Band {
    pub column: usize,
    pub freq_hz: Option<f64>,
    /// Its name, where that is neither a frequency nor a number.
    pub label: Option<String>,
    pub unit: Unit,
    /// The column with its spread, in a map.
    pub spread: Option<usize>,
}

/// A column of frequencies; without a scale its numbers tell whether they are Hz or MHz.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FrequencyColumn {
    pub column: usize,
    pub scale: Option<f64>,
}

/// What tells the bands of a long table apart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum BandColumn {
    Frequency(FrequencyColumn),
    Channel(usize),
    Name(Vec<usize>),
}

/// The columns of a table with a line per sensor and band.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LongColumns {
    pub band: BandColumn,
    /// What else is known of a named band.
    pub freq: Option<FrequencyColumn>,
    pub channel: Option<usize>,
    /// Transmitters of which a band is made.
    pub member: Option<usize>,
    pub value: usize,
    pub unit: Unit,
}

/// What the columns of a table mean.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TableLayout {
    pub position: Position,
    /// Metres of height.
    pub height: Option<usize>,
    pub time: Option<usize>,
    /// What the reading was taken with.
    pub device: Option<usize>,
    /// The floor of a building.
    pub floor: Option<usize>,
    pub shape: TableShape,
    /// Columns that are not used.
    pub unused: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TableShape {
    /// A line per sensor, a column per band.
    Wide(Vec<Band>),
    /// A line per sensor and band.
    Long(LongColumns),
}

/// What the caller says about the columns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Declared<'a> {
    pub unit: Option<Unit>,
    pub names: Option<&'a ColumnNames>,
    pub band_by: Option<&'a BandBy>,
    /// What frequencies without a unit are in, in Hz.
    pub freq_unit_hz: Option<f64>,
    /// The columns are fields of records: those that are no bands are left alone, as a GIS keeps many.
    pub lenient: bool,
}

/// What `--columns device=` says where devices shall not be told apart.
const NO_DEVICE: &str = "none";

/// How the columns begin that hold the spread of a map's bands.
const SPREAD: &str = "spread_db_";
const READING_SPREAD: &str = "reading_spread_db_";

/// What a header says.
pub(crate) fn layout(
    header: &[&str],
    declared: Declared<'_>,
    warnings: &mut Vec<String>,
) -> Check<TableLayout> {
    let names: Vec<String> = header.iter().map(|name| normal(name)).collect();
    let header = Header { written: header, names, declared };
    let roles = header.roles()?;
    let position = header.position(&roles)?;
    if let Some(column) =
        (1..header.names.len()).find(|&c| header.names[..c].contains(&header.names[c]))
    {
        return Err(header.wrong(column, "a second column of that name"));
    }
    let (time, device) = (roles.get(Role::Time), roles.get(Role::Device));
    let (height, floor) = (roles.get(Role::Z), roles.get(Role::Floor));
    if let Some(columns) = header.long(&roles)? {
        let used =
            |c: &usize| roles.0.iter().any(|(role, column)| column == c && *role != Role::Floor);
        let names = match &columns.band {
            BandColumn::Name(names) => &names[..],
            _ => &[],
        };
        let unused = (0..header.names.len()).filter(|c| !used(c) && !names.contains(c)).collect();
        return Ok(TableLayout {
            position,
            height,
            time,
            device,
            floor,
            shape: TableShape::Long(columns),
            unused,
        });
    }
    let (bands, unused) = header.wide(&roles, warnings)?;
    let shape = TableShape::Wide(bands);
    Ok(TableLayout { position, height, time, device, floor, shape, unused })
}

/// Which column has which role.
struct Roles(Vec<(Role, usize)>);

impl Roles {
    fn get(&self, role: Role) -> Option<usize> {
        self.0.iter().find(|(known, _)| *known == role).map(|(_, column)| *column)
    }
}

struct Header<'a> {
    written: &'a [&'a str],
    names: Vec<String>,
    declared: Declared<'a>,
}

impl Header<'_> {
    /// A problem with the header as a whole: what was seen and what was wanted.
    fn lacks(&self, what: &str) -> Problem {
        let line = if self.declared.lenient { "" } else { "line 1: " };
        Problem::new(format!("{line}{what}; {}", self.seen()))
    }

    fn seen(&self) -> String {
        const MOST: usize = 8;
        let mut seen: Vec<String> = self.written.iter().take(MOST).map(|n| quoted(n)).collect();
        if self.written.len() > MOST {
            seen.push(format!("and {} more", self.written.len() - MOST));
        }
        format!("columns seen: {}", seen.join(", "))
    }

    fn wrong(&self, column: usize, what: &str) -> Problem {
        let name = quoted(self.written[column]);
        let seen = self.seen();
        match self.declared.lenient {
            true => Problem::new(format!("field {name}: {what}; {seen}")),
            false => Problem::new(format!("line 1, column {} {name}: {what}; {seen}", column + 1)),
        }
    }

    fn roles(&self) -> Check<Roles> {
        let mut roles: Vec<(Role, usize)> = Vec::new();
        let mut named = |role: Role, name: &str| -> Check<()> {
            let name = normal(name);
            let column = self.find(&name).ok_or_else(|| {
                self.lacks(&format!("--columns names {}, which is not there", quoted(&name)))
            })?;
            roles.push((role, column));
            Ok(())
        };
        if let Some(declared) = self.declared.names {
            let given = [
                (Role::X, &declared.x),
                (Role::Y, &declared.y),
                (Role::Z, &declared.z),
                (Role::Lat, &declared.lat),
                (Role::Lon, &declared.lon),
                (Role::Row, &declared.row),
                (Role::Col, &declared.col),
                (Role::Time, &declared.time),
                (Role::Frequency, &declared.freq),
                (Role::Channel, &declared.channel),
                (Role::Value, &declared.value),
                (Role::Device, &declared.device),
            ];
            for (role, name) in given {
                let none = |name: &&String| role != Role::Device || *name != NO_DEVICE;
                if let Some(name) = name.as_ref().filter(none) {
                    named(role, name)?;
                }
            }
            if let Some(name) = &declared.band {
                let role = Role::of(&normal(name));
                named(role.filter(|r| r.is_band()).unwrap_or(Role::Transmitter), name)?;
            }
        }
        for (column, name) in self.names.iter().enumerate() {
            let Some(role) = Role::of(name) else { continue };
            if roles.iter().any(|(_, taken)| *taken == column) || self.is_told(role) {
                continue;
            }
            match roles.iter().find(|(known, _)| *known == role) {
                // What identifies a cell is more than one column.
                Some((Role::Transmitter, other))
                    if cell_columns(&self.names, column).contains(other) => {}
                // A gateway has several names, of which the first is enough.
                Some((Role::Transmitter, other))
                    if is_gateway(name) && is_gateway(&self.names[*other]) => {}
                Some((_, other)) => {
                    let other = quoted(self.written[*other]);
                    return Err(self.wrong(
                        column,
                        &format!("says the same as {other}: choose one by --columns"),
                    ));
                }
                None => roles.push((role, column)),
            }
        }
        Ok(Roles(roles))
    }

    /// Whether the caller's columns say all about a role: a position in one way rules out others.
    fn is_told(&self, role: Role) -> bool {
        let Some(declared) = self.declared.names else { return false };
        let positioned =
            [&declared.x, &declared.y, &declared.lat, &declared.lon, &declared.row, &declared.col]
                .iter()
                .any(|name| name.is_some());
        match role {
            Role::X | Role::Y | Role::Lat | Role::Lon | Role::Row | Role::Col => positioned,
            Role::Value => declared.value.is_some() || declared.bands.is_some(),
            Role::Transmitter | Role::Network => {
                declared.band.is_some() || declared.bands.is_some()
            }
            Role::Channel => declared.channel.is_some() || declared.bands.is_some(),
            Role::Frequency => declared.freq.is_some() || declared.bands.is_some(),
            Role::Z => declared.z.is_some(),
            Role::Time => declared.time.is_some(),
            Role::Device => declared.device.is_some(),
            Role::Floor => false,
        }
    }

    fn position(&self, roles: &Roles) -> Check<Position> {
        let pair = |a: Role, b: Role| (roles.get(a), roles.get(b));
        let metres = pair(Role::X, Role::Y);
        let cells = pair(Role::Row, Role::Col);
        let degrees = match pair(Role::Lat, Role::Lon) {
            (Some(lat), Some(lon)) => Some((lat, lon)),
            _ => None,
        };
        match (cells, metres, degrees) {
            ((Some(row), Some(col)), (None, None), None) => Ok(Position::Cell(row, col)),
            ((None, None), (Some(x), Some(y)), beside) => Ok(Position::Metres(x, y, beside)),
            ((Some(row), Some(col)), (Some(x), Some(y)), beside) => {
                Ok(Position::Both([row, col, x, y], beside))
            }
            ((None, None), (None, None), Some((lat, lon))) => Ok(Position::Degrees(lat, lon)),
            _ => Err(self.lacks(
                "expected a header that says where: x_m,y_m, lat,lon or row,col (one pair of them), or \
                 --columns x=NAME,y=NAME",
            )),
        }
    }

    /// The columns of a long table, where it is one.
    fn long(&self, roles: &Roles) -> Check<Option<LongColumns>> {
        if self.declared.names.is_some_and(|declared| declared.bands.is_some()) {
            return Ok(None);
        }
        // The sniffer Kismet counts in kHz.
        let kismet = self.names.iter().any(|name| name == "sourcemac").then_some(1e3);
        let freq = roles.get(Role::Frequency).map(|column| {
            let named = frequency_column(&self.names[column]);
            FrequencyColumn { column, scale: named.or(self.declared.freq_unit_hz).or(kismet) }
        });
        let channel = roles.get(Role::Channel);
        let transmitter = roles.get(Role::Transmitter);
        let name = transmitter.map(|column| BandColumn::Name(cell_columns(&self.names, column)));
        let network = roles.get(Role::Network).map(|column| BandColumn::Name(vec![column]));
        let by_channel = channel.map(BandColumn::Channel);
        let by_frequency = freq.map(BandColumn::Frequency);
        let band = match self.declared.band_by {
            None => name.or(by_frequency).or(by_channel).or(network),
            Some(by) => {
                let band = match by {
                    BandBy::Bssid => name,
                    BandBy::Ssid => network,
                    BandBy::Frequency => by_frequency,
                    BandBy::Channel => by_channel,
                    BandBy::Columns(names) => Some(BandColumn::Name(
                        names.iter().map(|name| self.column(name)).collect::<Check<_>>()?,
                    )),
                };
                let missing = || {
                    self.lacks(&format!(
                        "--band-by {by}, but no column of that kind: wanted is bssid, ssid, freq \
                         or channel, or --columns band=NAME"
                    ))
                };
                Some(band.ok_or_else(missing)?)
            }
        };
        let Some(band) = band else { return Ok(None) };
        let Some(value) = roles.get(Role::Value) else {
            return Err(self.lacks(
                "a line for each band but no column of values: wanted is power_dbm, rssi_dbm or \
                 level (with --unit), or --columns value=NAME",
            ));
        };
        let named = split_unit(&self.names[value]).1;
        let unit = self.unit(value, named.or(self.known_unit(value)))?;
        let alone = |columns: &[usize]| transmitter.filter(|own| !columns.contains(own));
        let member = match &band {
            BandColumn::Name(columns) => alone(columns),
            _ => None,
        };
        Ok(Some(LongColumns { band, freq, channel, member, value, unit }))
    }

    /// The bands of a wide table, and the columns that nobody uses.
    fn wide(&self, roles: &Roles, warnings: &mut Vec<String>) -> Check<(Vec<Band>, Vec<usize>)> {
        let names = &self.names;
        let placed = |c: usize| {
            roles
                .0
                .iter()
                .any(|(role, column)| *column == c && !matches!(role, Role::Value | Role::Floor))
        };
        let declared = self.declared.names.and_then(|declared| declared.bands.as_deref());
        let spreads: Vec<usize> =
            (0..names.len()).filter(|c| names[*c].starts_with(SPREAD)).collect();
        let extra = |c: usize| spreads.contains(&c) || names[c].starts_with(READING_SPREAD);
        let rest: Vec<usize> = (0..names.len()).filter(|c| !placed(*c) && !extra(*c)).collect();
        // Beside a band others are what people write down too.
        let lenient = self.declared.lenient || rest.iter().any(|c| self.is_band(*c));
        let (mut bands, mut unused) = (Vec::with_capacity(rest.len()), Vec::new());
        for column in rest {
            match declared {
                // Devices that shall not be told apart, and floors.
                _ if matches!(Role::of(&names[column]), Some(Role::Device | Role::Floor)) => {
                    unused.push(column);
                }
                Some(pattern) if !matches(&names[column], &pattern.to_ascii_lowercase()) => {
                    unused.push(column);
                }
                None if lenient && !self.is_band(column) => unused.push(column),
                _ => bands.push(self.band(column, declared.is_some(), warnings)?),
            }
        }
        for &column in &spreads {
            let of = names[column].strip_prefix(SPREAD).unwrap_or_default();
            let band =
                bands.iter_mut().find(|band: &&mut Band| split_unit(&names[band.column]).0 == of);
            match band {
                Some(band) => band.spread = Some(column),
                None => return Err(self.wrong(column, "there is no such band")),
            }
        }
        let Some(first) = bands.first() else {
            return Err(self.lacks(match declared {
                Some(_) => "no column is named as --columns bands= says",
                None => {
                    "no band columns: wanted are names such as dbm_2412MHz, or one column of \
                         values and one of bands"
                }
            }));
        };
        let has_freq = first.freq_hz.is_some();
        if let Some(odd) = bands.iter().find(|band| band.freq_hz.is_some() != has_freq) {
            let what = "expected a frequency in the name of every band or of none";
            return Err(self.wrong(odd.column, what));
        }
        // A name for one band is a name for all.
        if bands.iter().any(|band| band.label.is_some()) && bands.iter().any(|b| b.label.is_none())
        {
            for band in &mut bands {
                let written = self.written[band.column].trim();
                band.label.get_or_insert_with(|| written.to_string());
            }
        }
        Ok((bands, unused))
    }

    /// Whether a name is that of a band, with its unit or without.
    fn is_band(&self, column: usize) -> bool {
        let name = &self.names[column];
        let bare = split_unit(name).0;
        let value = !bare.is_empty() && !is_beside(bare) && Role::of(name) == Some(Role::Value);
        value || is_band_name(name)
    }

    fn band(&self, column: usize, declared: bool, warnings: &mut Vec<String>) -> Check<Band> {
        let (written, name) = (self.written[column], &self.names[column]);
        let (bare, named) = split_unit(name);
        let mut label = None;
        let expected = "not a band: wanted are names such as 2412MHz, dbm_2412MHz or 2.412e9; \
                        choose the bands by --columns bands=PREFIX*";
        let freq_hz = match frequency(bare) {
            Some((freq_hz, spelled_out)) => {
                if !spelled_out && freq_hz < 1e5 {
                    let name = quoted(written);
                    warnings.push(format!(
                        "column {name} is read as {} Hz: add MHz or GHz if meant so",
                        shown(freq_hz)
                    ));
                }
                Some(freq_hz)
            }
            None if is_numbered(bare) => None,
            // A name that says its unit is a band's, whatever else it says.
            None if !bare.is_empty() && (declared || self.is_band(column)) => {
                let at = name.find(bare).unwrap_or(0);
                label = written.trim().get(at..at + bare.len()).map(str::to_string);
                None
            }
            None => return Err(self.wrong(column, expected)),
        };
        let unit = self.unit(column, named.or(self.known_unit(column)))?;
        Ok(Band { column, freq_hz, label, unit, spread: None })
    }

    /// A column by its name; a nested field also by its full one (`gps.lat` for `lat`).
    fn find(&self, name: &str) -> Option<usize> {
        let known = |wanted: &str| self.names.iter().position(|known| known == wanted);
        let last = || name.rsplit_once('.').filter(|_| self.declared.lenient);
        known(name).or_else(|| known(last()?.1))
    }

    fn column(&self, name: &str) -> Check<usize> {
        let name = normal(name);
        self.find(&name).ok_or_else(|| {
            self.lacks(&format!("--band-by names {}, which is not there", quoted(&name)))
        })
    }

    /// Phones report these in dBm by their definition, whatever else a file says.
    fn known_unit(&self, column: usize) -> Option<Unit> {
        let defined = ["rsrp", "rscp", "rssi", "ss_rsrp", "csi_rsrp", "nr_rsrp", "esp"];
        let name = self.names[column].as_str();
        // G-NetTrack's `Level` is the RSRP, RSCP or RSSI of the network that it names beside it.
        let beside = |known: &str| self.names.iter().any(|name| name == known);
        let tracked = name == "level" && beside("networktech") && beside("cellid");
        // The log of airodump-ng has the error of each position.
        let captured = name == "power" && beside("bssid") && beside("latitude_error");
        let known = defined.contains(&name) || tracked || captured;
        (known && self.declared.unit.is_none()).then_some(Unit::Dbm)
    }

    /// The unit that a name and the caller agree on.
    fn unit(&self, column: usize, named: Option<Unit>) -> Check<Unit> {
        match (named, self.declared.unit) {
            (Some(named), Some(asked)) if named != asked => {
                Err(self.wrong(column, "its name says another unit than --unit does"))
            }
            (named, asked) => named.or(asked).ok_or_else(|| {
                self.wrong(column, "its unit is not clear: pass --unit dbm or --unit linear")
            }),
        }
    }
}

/// The columns of positions of any table: those of a header that holds nothing else of interest.
pub(crate) fn position(header: &[&str]) -> Check<Position> {
    let names = header.iter().map(|name| normal(name)).collect();
    let header = Header { written: header, names, declared: Declared::default() };
    header.position(&header.roles()?)
}

/// The column of heights of any table.
pub(crate) fn height(header: &[&str]) -> Option<usize> {
    header.iter().position(|name| Role::of(&normal(name)) == Some(Role::Z))
}

/// The column of floors, where there is one.
pub(crate) fn floor(header: &[&str]) -> Option<usize> {
    header.iter().position(|name| Role::of(&normal(name)) == Some(Role::Floor))
}

/// The column of times of any table.
pub(crate) fn time(header: &[&str]) -> Option<usize> {
    header.iter().position(|name| Role::of(&normal(name)) == Some(Role::Time))
}

/// The column of devices of any table.
pub(crate) fn device(header: &[&str]) -> Option<usize> {
    header.iter().position(|name| Role::of(&normal(name)) == Some(Role::Device))
}

#[cfg(test)]
mod tests;
