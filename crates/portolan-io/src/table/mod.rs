//! Tables in text: readings (or a map, cell by cell) in wide or long form.

pub(crate) mod columns;
pub(crate) mod doubts;
mod filter;
pub(crate) mod lines;
mod long;
mod names;
pub(crate) mod positions;
mod wide;
pub(crate) mod write;

use ndarray::{Array2, Array3};
use portolan::{BandLabels, Cell, Crs, Devices, Grid, RadioMap, Readings, Scale, Values};

use crate::error::{Check, Problem, quoted, shown};
use crate::options::{ReadOptions, Silence, Unit};
use crate::records::kinds::{Reader, kind};
use crate::records::{Input, Records};
use crate::survey::{MOST_ENTRIES, gather};
use columns::{BandColumn, Declared, Position, TableLayout, TableShape, layout};
pub use filter::RowFilter;
use lines::{Line, Lines};
pub(crate) use names::{is_band_name, is_position, role_of};
use positions::{Positions, Settled};

/// How the files of the app WiGLE begin, which Kismet writes too. Their levels are in dBm.
const WIGLE: &[u8] = b"WigleWifi";

/// The first lines of a table in text, the header among them, field by field; empty where the file
/// is none.
pub fn first_lines(path: &std::path::Path, count: usize) -> crate::Result<Vec<Vec<String>>> {
    let some = |mut lines: Lines<'_>| {
        let mut found = Vec::new();
        while found.len() < count {
            let Some(line) = lines.next()? else { break };
            found.push(line.fields().iter().map(|field| field.to_string()).collect());
        }
        Ok(found)
    };
    let found = with_lines(path, &ReadOptions::default(), some);
    Ok(found.map_err(|problem| problem.in_file(path))?.unwrap_or_default())
}

/// Looks at the lines of a table or of records, the header first; None where a file has none.
pub(crate) fn with_lines<T>(
    path: &std::path::Path,
    options: &ReadOptions,
    look: impl FnOnce(Lines<'_>) -> Check<T>,
) -> Check<Option<T>> {
    let opened = crate::source::Source::open(path);
    let mut source = opened.map_err(|error| Problem::new(error.to_string()))?;
    let format = source.format(path, options.format).ok();
    match format.and_then(kind).map(|kind| &kind.reader) {
        Some(Reader::Table) => {
            let decoded = decoded(source.bytes());
            let bytes = decoded.as_deref().unwrap_or(source.bytes());
            let mut lines = Lines::open(bytes)?;
            if bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).starts_with(WIGLE) {
                lines.next()?;
            }
            look(lines).map(Some)
        }
        Some(Reader::Records(read)) => {
            let input = &mut Input { source: &mut source, path, options };
            let made = read(input)?.table()?;
            look(Lines::of_records(&made, "record")).map(Some)
        }
        _ => Ok(None),
    }
}

/// A column of a table: what it is read as, and some of its values.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnSummary {
    /// Its name in the header.
    pub name: String,
    /// What it is read as; `not used` where it is nothing.
    pub role: String,
    /// The first values that are there.
    pub values: Vec<String>,
}

/// Lines that are looked into for values of columns.
const LOOKED: usize = 200;
/// Values that are shown of a column.
const SHOWN: usize = 3;

/// What the columns of a table are read as.
pub(crate) fn columns_of(lines: Lines<'_>, options: &ReadOptions) -> Check<Vec<ColumnSummary>> {
    let mut lines = lines;
    let Some(header) = lines.next()? else { return Ok(Vec::new()) };
    let names: Vec<String> = header.fields().iter().map(|name| name.trim().to_string()).collect();
    let declared = Declared { unit: options.unit.or(Some(Unit::Dbm)), ..declared(options, &lines) };
    let roles = layout(&header.fields(), declared, &mut Vec::new())?.roles(names.len());
    let mut values: Vec<Vec<String>> = vec![Vec::new(); names.len()];
    for _ in 0..LOOKED {
        let Ok(Some(line)) = lines.next() else { break };
        for (own, field) in values.iter_mut().zip(line.fields()) {
            let field = field.trim();
            if !field.is_empty() && own.len() < SHOWN && !own.iter().any(|known| known == field) {
                own.push(field.chars().take(24).collect());
            }
        }
    }
    let all = names.into_iter().zip(roles).zip(values);
    Ok(all.map(|((name, role), values)| ColumnSummary { name, role, values }).collect())
}

/// What the options say about the columns.
fn declared<'a>(options: &'a ReadOptions, lines: &Lines<'_>) -> Declared<'a> {
    let survey = &options.survey;
    Declared {
        unit: options.unit,
        names: survey.columns.as_ref(),
        band_by: survey.band_by.as_ref(),
        freq_unit_hz: survey.freq_unit_hz,
        lenient: lines.are_records(),
    }
}

/// A table with its places in metres and its values in linear power.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    sites: Vec<portolan::Site>,
    /// The grid that the table lies on, where it says so or the caller does.
    grid: Option<Grid>,
    crs: Option<Crs>,
    /// The table lists cells with their places and spread, as a map written by this crate.
    map: bool,
    entries: Entries,
    scale: Scale,
    labels: BandLabels,
    /// The power below which the caller says that nothing is heard.
    floor: Option<f64>,
}

/// Values of a table, lines or sensors x bands.
#[derive(Clone, Debug)]
pub(crate) struct Entries {
    pub power: Array2<f64>,
    /// How often each was read, where levels share a row.
    pub count: Option<Array2<f64>>,
    /// Marked as "not heard" by the caller's word.
    pub silent: Array2<bool>,
    pub spread: Option<Array2<f64>>,
    /// When each sensor was read, in seconds.
    pub time_s: Option<Vec<f64>>,
    /// Devices whose offsets were taken out.
    pub devices: Option<Devices>,
}

impl Table {
    /// Reads a table in text.
    pub fn read(
        bytes: &[u8],
        options: &ReadOptions,
        as_map: bool,
        warnings: &mut Vec<String>,
    ) -> Check<Self> {
        let decoded = decoded(bytes);
        let bytes = decoded.as_deref().unwrap_or(bytes);
        let mut lines = Lines::open(bytes)?;
        let wigle = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).starts_with(WIGLE);
        if wigle {
            lines.next()?;
        }
        Self::of_lines(lines, options, (as_map, wigle), warnings)
    }

    /// Reads the records of another format.
    pub fn of_records(
        records: &mut Records,
        options: &ReadOptions,
        as_map: bool,
        warnings: &mut Vec<String>,
    ) -> Check<Self> {
        let table = records.table()?;
        warnings.append(&mut records.notes);
        let crs = match (records.crs, options.crs) {
            (Some(own), Some(asked)) if own != asked => {
                return Err(Problem::new(format!(
                    "its places are in {own} by its own word, not in {asked}: leave out --crs"
                )));
            }
            (own, asked) => own.or(asked),
        };
        let options = &ReadOptions { crs, ..options.clone() };
        let lines = Lines::of_records(&table, records.what);
        Self::of_lines(lines, options, (as_map, false), warnings)
    }

    fn of_lines(
        mut lines: Lines<'_>,
        options: &ReadOptions,
        (as_map, wigle): (bool, bool),
        warnings: &mut Vec<String>,
    ) -> Check<Self> {
        if options.var.is_some() {
            return Err(Problem::new("a table has no variables: leave out --var"));
        }
        let header = lines.next()?.ok_or_else(|| Problem::new("line 1: expected a header"))?;
        let unit = match (wigle, options.unit) {
            (true, Some(unit)) if unit != Unit::Dbm => {
                return Err(Problem::new("the levels of this format are in dBm: leave out --unit"));
            }
            (true, _) => Some(Unit::Dbm),
            (false, unit) => unit,
        };
        let survey = &options.survey;
        let declared = Declared { unit, ..declared(options, &lines) };
        let layout = layout(&header.fields(), declared, warnings)?;
        if !layout.unused.is_empty() && !wigle {
            let names: Vec<String> =
                layout.unused.iter().take(8).map(|c| quoted(&header.record[*c])).collect();
            warnings.push(format!("columns that are not used: {}", names.join(", ")));
        }
        let of_floor = layout.floor.zip(survey.floor_height_m).filter(|(_, m)| *m > 0.0);
        let height = layout.height.map(|column| (column, 1.0)).or(of_floor);
        let mut positions = Positions::new((layout.position, height), options, as_map, warnings)?;
        let is_map = matches!(layout.position, Position::Both(..));
        lines.columns = header.record.len();
        lines.strict = options.strict;
        if let Some(filter) = &survey.filter {
            lines.filter = Some(filter.on(&header.fields())?);
        }
        // Heights tell floors apart.
        lines.watched = layout.floor.filter(|_| height.is_none());
        let scale = layout.scale()?;
        let floor = options.floor_db.map(|db| 10f64.powf(db / 10.0));
        let (settled, entries, labels) = match &layout.shape {
            TableShape::Wide(bands) => {
                wide_only(options)?;
                let columns = (&bands[..], layout.time, layout.device);
                let (sites, mut entries, labels, devices) =
                    wide::read(&mut lines, &mut positions, columns, options, warnings)?;
                let mut settled = positions.settle(sites, warnings)?;
                if let Some(size) = options.survey.gather_m {
                    gather(&mut settled.sites, size)?;
                }
                entries.devices = devices.level(&settled.sites, &mut entries.power, warnings)?;
                (settled, entries, labels)
            }
            TableShape::Long(columns) => {
                let long =
                    long::Long { columns, time: layout.time, device: layout.device, scale, wigle };
                long.read(&mut lines, &mut positions, options, warnings)?
            }
        };
        if let Some(column) = lines.watched {
            doubts::check_floors(&header.record[column], &lines.seen, options, warnings)?;
        }
        let unit = match &layout.shape {
            TableShape::Wide(bands) => bands[0].unit,
            TableShape::Long(columns) => columns.unit,
        };
        // A map says what was drawn, not what was received.
        if !is_map && !as_map {
            doubts::Levels::of(entries.power.iter().copied()).check(unit, options, warnings)?;
            if !matches!(layout.position, Position::Cell(..)) {
                doubts::check_places(&settled.sites, options, warnings)?;
            }
        }
        let Settled { sites, grid, crs } = settled;
        Ok(Self { sites, grid, crs, map: is_map, entries, scale, labels, floor })
    }

    /// True where the table was written as a map.
    pub fn is_map(&self) -> bool {
        self.map
    }

    pub fn into_readings(self, options: &ReadOptions) -> Check<Readings> {
        let Entries { power, count, silent, time_s, devices, .. } = self.entries;
        // A band that nobody heard says nothing.
        let floor: Vec<f64> = power
            .columns()
            .into_iter()
            .map(|band| band.iter().copied().filter(|x| *x > 0.0).fold(f64::INFINITY, f64::min))
            .collect();
        let bands = power.ncols();
        let marked = silent.iter().any(|s| *s);
        let mut values = power;
        // Readings take zeros as not heard.
        if marked && !self.scale.has_zero() {
            ndarray::Zip::from(&mut values).and(&silent).for_each(|x, s| {
                if *s {
                    *x = 0.0;
                }
            });
        }
        drop(silent);
        let readings = options.readings(self.sites, Values::Power(values), self.scale)?;
        let readings = readings.with_grid(self.grid)?.with_labels(self.labels)?.with_crs(self.crs);
        let readings = readings.with_time_s(time_s)?.with_repeats(count)?.with_devices(devices);
        if options.not_heard == Some(Silence::BelowServing) {
            return Ok(readings.with_strongest_only()?);
        }
        let Some(silent) = readings.not_heard().map(|n| n.entries.clone()) else {
            return Ok(readings);
        };
        let floor: Vec<f64> = match self.floor {
            Some(floor) => vec![floor; bands],
            None => floor,
        };
        Ok(readings.with_not_heard(silent, floor)?)
    }

    /// A map in which the cells without a line are unknown.
    pub fn into_map(self, warnings: &mut Vec<String>) -> Check<RadioMap> {
        let Some(grid) = self.grid else {
            return Err(Problem::new("a map needs a grid: pass --grid ROWSxCOLS"));
        };
        let bands = self.entries.power.ncols();
        let allowed = MOST_ENTRIES.max(self.entries.power.len().saturating_mul(1000));
        if grid.cells().checked_mul(bands).is_none_or(|n| n > allowed) {
            let (rows, cols) = (grid.rows(), grid.cols());
            return Err(Problem::new(format!(
                "a map of {rows} x {cols} x {bands} is too large for a table of {} lines",
                self.sites.len()
            )));
        }
        let mut lines = vec![Vec::new(); grid.cells()];
        for (line, site) in self.sites.iter().enumerate() {
            let cell = grid.cell_at(*site).ok_or_else(|| {
                let (rows, cols) = (grid.rows(), grid.cols());
                let place = format!("x {}, y {}", shown(site.x_m), shown(site.y_m));
                Problem::new(format!("{place} is off the {rows} x {cols} grid: give a larger one"))
            })?;
            lines[grid.index(cell)].push(line);
        }
        let repeated: usize = lines.iter().map(|l| l.len().saturating_sub(1)).sum();
        if repeated > 0 {
            warnings.push(format!("{repeated} line(s) are of a cell given before: averaged"));
        }
        let unknown = lines.iter().filter(|l| l.is_empty()).count();
        if unknown > 0 {
            let cells = grid.cells();
            warnings.push(format!("{unknown} of {cells} cells have no line: taken as unknown"));
        }
        let mean = |values: &Array2<f64>, linear: bool| {
            Array3::from_shape_fn((grid.rows(), grid.cols(), bands), |(i, j, k)| {
                let known = lines[grid.index(Cell::new(i, j))].iter().map(|&l| values[[l, k]]);
                let known: Vec<f64> = known.filter(|v| !v.is_nan()).collect();
                average(&known, linear)
            })
        };
        let power = mean(&self.entries.power, self.scale.has_zero());
        let spread = self.entries.spread.as_ref().map(|spread| mean(spread, true));
        let map = RadioMap::dense(grid, power, self.scale)?.with_labels(self.labels)?;
        Ok(map.with_spread_db(spread)?.with_crs(self.crs))
    }
}

/// Refuses what only a table with a line per band can be asked.
fn wide_only(options: &ReadOptions) -> Check<()> {
    let asked = match (&options.survey, &options.not_heard) {
        (survey, _) if survey.band_by.is_some() => "--band-by",
        (survey, _) if survey.combine.is_some() => "--combine",
        (survey, _) if survey.min_places.is_some() => "--min-places",
        (_, Some(Silence::Absent)) => "--not-heard absent",
        (_, Some(Silence::BelowServing)) => "--not-heard below-serving",
        _ => return Ok(()),
    };
    Err(Problem::new(format!("{asked} is for a table with a line for each band, not a column")))
}

/// The mean of powers: in dB unless `linear` or one is zero. NaN without any.
fn average(values: &[f64], linear: bool) -> f64 {
    let count = values.len() as f64;
    match values {
        [] => f64::NAN,
        [only] => *only,
        _ if linear || values.contains(&0.0) => values.iter().sum::<f64>() / count,
        _ => (values.iter().map(|v| v.ln()).sum::<f64>() / count).exp(),
    }
}

impl TableLayout {
    /// What each of so many columns is read as.
    fn roles(&self, columns: usize) -> Vec<String> {
        let mut roles = vec![String::from("not used"); columns];
        let mut name = |column: usize, role: &str| {
            if let Some(own) = roles.get_mut(column) {
                *own = role.to_string();
            }
        };
        match self.position {
            Position::Cell(row, col) => [(row, "row"), (col, "column")].map(|(c, r)| name(c, r)),
            Position::Metres(x, y, _) | Position::Both([_, _, x, y], _) => {
                [(x, "x in metres"), (y, "y in metres")].map(|(c, r)| name(c, r))
            }
            Position::Degrees(lat, lon) => {
                [(lat, "latitude"), (lon, "longitude")].map(|(c, r)| name(c, r))
            }
        };
        self.height.into_iter().for_each(|column| name(column, "height in metres"));
        self.time.into_iter().for_each(|column| name(column, "time"));
        self.device.into_iter().for_each(|column| name(column, "device"));
        self.floor.into_iter().for_each(|column| name(column, "floor"));
        match &self.shape {
            TableShape::Wide(bands) => bands.iter().for_each(|band| {
                name(band.column, &format!("levels of a band in {}", band.unit.name()));
                band.spread.into_iter().for_each(|column| name(column, "standard deviation"));
            }),
            TableShape::Long(columns) => {
                columns.freq.into_iter().for_each(|freq| name(freq.column, "frequency"));
                columns.channel.into_iter().for_each(|column| name(column, "channel"));
                columns.member.into_iter().for_each(|column| name(column, "transmitter"));
                match &columns.band {
                    BandColumn::Frequency(freq) => name(freq.column, "band (frequency)"),
                    BandColumn::Channel(column) => name(*column, "band (channel)"),
                    BandColumn::Name(columns) => {
                        columns.iter().for_each(|column| name(*column, "band (name)"));
                    }
                }
                name(columns.value, &format!("level in {}", columns.unit.name()));
            }
        }
        roles
    }

    /// The scale of all columns, which must be of one kind.
    fn scale(&self) -> Check<Scale> {
        let units: Vec<Unit> = match &self.shape {
            TableShape::Wide(bands) => bands.iter().map(|band| band.unit).collect(),
            TableShape::Long(columns) => vec![columns.unit],
        };
        let scales = units.iter().map(|u| u.scale(None)).collect::<Result<Vec<_>, _>>()?;
        match scales.windows(2).all(|pair| pair[0] == pair[1]) {
            true => Ok(scales[0]),
            false => Err(Problem::new(
                "line 1: some columns are calibrated and others are not: expected one kind",
            )),
        }
    }
}

/// Says why a table has no readings; `lost` of its lines have no position.
fn no_readings(lost: usize) -> Problem {
    Problem::new(match lost {
        0 => "a header but no readings below it".to_string(),
        _ => format!("none of {lost} line(s) has a position"),
    })
}

/// A value and whether it is one of the caller's codes for "not heard"; NaN for "no reading".
fn entry(line: &Line, column: usize, unit: Unit, options: &ReadOptions) -> Check<(f64, bool)> {
    if let Some(Silence::Codes(codes)) = &options.not_heard
        && codes.contains(&line.number(column)?)
    {
        return Ok((f64::NAN, true));
    }
    if !options.missing.is_empty() && options.missing.contains(&line.number(column)?) {
        return Ok((f64::NAN, false));
    }
    Ok((line.power(column, unit)?, false))
}

/// A table in UTF-16, as its first bytes say, in UTF-8.
fn decoded(bytes: &[u8]) -> Option<Vec<u8>> {
    let unit: fn([u8; 2]) -> u16 = match bytes.get(..2)? {
        [0xff, 0xfe] => u16::from_le_bytes,
        [0xfe, 0xff] => u16::from_be_bytes,
        _ => return None,
    };
    let units = bytes[2..].chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    let text: String = char::decode_utf16(units).map(|c| c.unwrap_or('\u{fffd}')).collect();
    Some(text.into_bytes())
}
