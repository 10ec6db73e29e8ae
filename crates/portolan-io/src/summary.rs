//! A file's contents as text.

use std::fmt;
use std::path::Path;

use portolan::{BandLabels, Grid, Model, RadioMap, Readings, Region, Scale, Site, Values};

use crate::error::{Problem, Result};
use crate::format::{Format, Want, parse};
use crate::npz::Npz;
use crate::options::{Content, ReadOptions, Unit};
use crate::source::Source;
use crate::store::Entry;
use crate::table::doubts::Doubt;
use crate::table::{ColumnSummary, columns_of, with_lines};
use crate::{large_map, map_arrays, model_file, readings_arrays};

/// Columns that are shown in text.
const MOST_COLUMNS: usize = 24;

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    Map,
    Readings,
    /// A fitted model.
    Model,
    /// Arrays that are neither; one of them may be a map by `--var`.
    Arrays,
}

/// An array of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct ArraySummary {
    pub name: String,
    pub shape: Vec<usize>,
    /// The type of the elements in the file's own words.
    pub element: String,
}

impl From<&Entry> for ArraySummary {
    fn from(entry: &Entry) -> Self {
        let Entry { name, shape, kind } = entry.clone();
        Self { name, shape, element: kind }
    }
}

/// The quantiser of readings in levels.
#[derive(Clone, Debug, PartialEq)]
pub struct QuantiserSummary {
    pub levels: usize,
    pub sigma: f64,
    pub offset: f64,
}

/// What a file holds, in numbers. Where the kind is [`FileKind::Arrays`], only `arrays` is filled.
#[derive(Clone, Debug, PartialEq)]
pub struct FileSummary {
    pub format: Format,
    pub kind: FileKind,
    pub rows: usize,
    pub cols: usize,
    pub cell_m: f64,
    /// The centre of the first cell, x and y in metres.
    pub origin_m: [f64; 2],
    /// Least and greatest x, least and greatest y of the sensors.
    pub region_m: Option<[f64; 4]>,
    /// Where on Earth the metres are, such as EPSG:32632.
    pub crs: Option<String>,
    /// What powers are measured in: dbm, db or relative.
    pub unit: Option<&'static str>,
    /// The a of ln(x + a), of relative powers.
    pub offset: Option<f64>,
    /// Entries that were not heard.
    pub not_heard: usize,
    /// The method of a model.
    pub method: Option<String>,
    pub bands: usize,
    pub freq_hz: Option<Vec<f64>>,
    /// What bands are called, where they have names.
    pub labels: Option<Vec<String>>,
    /// Least and greatest known power; linear, whatever unit the file is in.
    pub range: Option<(f64, f64)>,
    /// Missing entries, and how many there are in all.
    pub gaps: usize,
    pub entries: usize,
    /// Rows of readings: two visits to one place are two.
    pub sensors: Option<usize>,
    /// Different places among them.
    pub places: Option<usize>,
    pub quantiser: Option<QuantiserSummary>,
    /// Emitters of a factored map.
    pub factors: Option<usize>,
    /// Emitters whose position is given.
    pub emitters: usize,
    pub has_spread: bool,
    /// The arrays of the file; none for a table or a trace.
    pub arrays: Vec<ArraySummary>,
    /// The columns of a table of readings, and what they are read as.
    pub columns: Vec<ColumnSummary>,
    /// What makes a map of it meaningless.
    pub doubts: Vec<Doubt>,
    pub warnings: Vec<String>,
}

/// Looks into a file. A file of arrays that make no map is described too, so that `--var` can be
/// chosen; one whose map or readings are wrong is an error.
///
/// ```
/// use portolan_io::{FileKind, ReadOptions, inspect};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("survey.csv");
/// # std::fs::write(&path, "x_m,y_m,dbm_2412MHz\n0,0,-60\n9,1,-66\n2,7,-71\n")?;
/// let found = inspect(&path, &ReadOptions::default())?;
/// assert_eq!((found.kind, found.sensors, found.unit), (FileKind::Readings, Some(3), Some("dbm")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn inspect(path: impl AsRef<Path>, options: &ReadOptions) -> Result<FileSummary> {
    let path = path.as_ref();
    // What is doubted is shown here, and refused elsewhere.
    let options = &ReadOptions { accept: true, ..options.clone() };
    let in_file = |problem: Problem| problem.in_file(path);
    let mut source = Source::open(path)?;
    let format = source.format(path, options.format).map_err(in_file)?;
    let mut arrays = Vec::new();
    let mut known = true;
    if format.is_arrays() {
        let store = source.store(format).map_err(in_file)?;
        known = map_arrays::is_map(store.as_ref(), options)
            || readings_arrays::is_readings(store.as_ref())
            || model_file::is_model(store.as_ref());
        arrays.extend(store.entries().iter().map(ArraySummary::from));
        // Nothing to name with --var: such a file is refused as every other command refuses it.
        known |= arrays.is_empty();
        // Maps of several moments are arrays beside each other.
        known &= !arrays.iter().any(|array| array.name == "map" && array.shape.len() > 3);
    }
    let mut summary = FileSummary::of_arrays(format, arrays);
    if known && format == Format::Npz {
        let mut npz = Npz::open(source.stream().map_err(in_file)?).map_err(in_file)?;
        if large_map::is_large(&npz) && map_arrays::is_map(&npz, options) {
            large_map::describe(&mut npz, options, &mut summary).map_err(in_file)?;
            return Ok(summary);
        }
    }
    if known {
        let loaded = parse(format, (&mut source, path), options, Want::Either).map_err(in_file)?;
        match &loaded.value {
            Content::Map(map) => summary.describe_map(map),
            Content::Readings(readings) => summary.describe_readings(readings),
            Content::Model(model) => summary.describe_model(model),
        }
        summary.doubts = loaded.warnings.iter().filter_map(|w| Doubt::of_warning(w)).collect();
        summary.warnings = loaded.warnings;
        if summary.kind == FileKind::Readings {
            let columns = with_lines(path, options, |lines| columns_of(lines, options));
            summary.columns = columns.ok().flatten().unwrap_or_default();
        }
    }
    Ok(summary)
}

impl FileSummary {
    pub(crate) fn of_arrays(format: Format, arrays: Vec<ArraySummary>) -> Self {
        Self {
            format,
            kind: FileKind::Arrays,
            rows: 0,
            cols: 0,
            cell_m: 1.0,
            origin_m: [0.0; 2],
            region_m: None,
            crs: None,
            unit: None,
            offset: None,
            not_heard: 0,
            method: None,
            bands: 0,
            freq_hz: None,
            labels: None,
            range: None,
            gaps: 0,
            entries: 0,
            sensors: None,
            places: None,
            quantiser: None,
            factors: None,
            emitters: 0,
            has_spread: false,
            arrays,
            columns: Vec::new(),
            doubts: Vec::new(),
            warnings: Vec::new(),
        }
    }

    fn describe_map(&mut self, map: &RadioMap) {
        let grid = map.grid();
        self.kind = FileKind::Map;
        self.describe_grid(grid);
        self.describe_scale(map.scale());
        self.bands = map.bands();
        self.describe_bands(map.labels());
        self.crs = map.crs().map(|crs| crs.to_string());
        self.factors = map.factors().map(|factors| factors.psd.nrows());
        self.emitters = map.emitters().len();
        self.has_spread = map.spread_db().is_some();
        self.entries = grid.cells().saturating_mul(map.bands());
        // Cell by cell: a factored map may be too large to be made dense.
        let mut spectrum = vec![0.0; map.bands()];
        for index in 0..grid.cells() {
            map.spectrum_into(grid.cell(index), &mut spectrum);
            self.count(spectrum.iter().copied());
        }
    }

    pub(crate) fn describe_grid(&mut self, grid: Grid) {
        (self.rows, self.cols, self.cell_m) = (grid.rows(), grid.cols(), grid.cell_m());
        self.origin_m = [grid.origin().x_m, grid.origin().y_m];
    }

    pub(crate) fn describe_scale(&mut self, scale: Scale) {
        let own = Unit::of_scale(scale);
        self.unit = Unit::NAMED.iter().find(|(_, unit)| *unit == own).map(|(name, _)| *name);
        if let Scale::Relative { offset } = scale {
            self.offset = Some(offset);
        }
    }

    fn describe_bands(&mut self, labels: &BandLabels) {
        self.freq_hz = labels.freq_hz().map(<[f64]>::to_vec);
        self.labels = labels.names().map(<[String]>::to_vec);
    }

    fn describe_region(&mut self, sites: &[Site]) {
        self.region_m =
            Region::around(sites).map(|r| [r.low.x_m, r.high.x_m, r.low.y_m, r.high.y_m]);
    }

    fn describe_model(&mut self, model: &Model) {
        self.kind = FileKind::Model;
        model.grid().into_iter().for_each(|grid| self.describe_grid(grid));
        self.describe_scale(model.scale());
        self.describe_region(model.sites());
        self.bands = model.bands();
        self.describe_bands(model.labels());
        self.crs = model.crs().map(|crs| crs.to_string());
        self.sensors = Some(model.sites().len());
        self.emitters = model.emitters().len();
        self.has_spread = model.gives_spread();
        let report = model.report();
        self.method = Some(match &report.chosen {
            Some(chosen) => format!("{} (chose {chosen})", report.method),
            None => report.method.clone(),
        });
    }

    fn describe_readings(&mut self, readings: &Readings) {
        self.kind = FileKind::Readings;
        readings.grid().into_iter().for_each(|grid| self.describe_grid(grid));
        self.describe_scale(readings.scale());
        self.describe_region(readings.sites());
        self.not_heard =
            readings.not_heard().map_or(0, |n| n.entries.iter().filter(|e| **e).count());
        self.bands = readings.bands();
        self.describe_bands(readings.labels());
        self.crs = readings.crs().map(|crs| crs.to_string());
        self.sensors = Some(readings.sensors());
        self.places = Some(readings.places());
        self.entries = readings.sensors() * readings.bands();
        if let Values::Levels { quantiser, .. } = readings.values() {
            self.quantiser = Some(QuantiserSummary {
                levels: quantiser.edges().len() + 1,
                sigma: quantiser.sigma(),
                offset: quantiser.offset(),
            });
        }
        self.count(readings.power().iter().copied());
        self.gaps = readings.gaps();
    }

    fn count(&mut self, values: impl Iterator<Item = f64>) {
        for value in values {
            if value.is_nan() {
                self.gaps += 1;
            } else {
                let (least, most) = self.range.unwrap_or((value, value));
                self.range = Some((least.min(value), most.max(value)));
            }
        }
    }
}

impl fmt::Display for FileSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            FileKind::Map => "map",
            FileKind::Readings => "readings",
            FileKind::Model => "a fitted model",
            FileKind::Arrays => "arrays that make no map: name one with --var",
        };
        writeln!(f, "holds      {kind}")?;
        writeln!(f, "format     {}", self.format)?;
        if self.kind != FileKind::Arrays {
            self.fmt_content(f)?;
        }
        for ColumnSummary { name, role, values } in self.columns.iter().take(MOST_COLUMNS) {
            let (name, values) = (name.escape_debug(), values.join(", "));
            writeln!(f, "column     {name}: {role} ({})", values.escape_debug())?;
        }
        if self.columns.len() > MOST_COLUMNS {
            writeln!(f, "column     and {} more", self.columns.len() - MOST_COLUMNS)?;
        }
        for array in &self.arrays {
            let sides: Vec<String> = array.shape.iter().map(usize::to_string).collect();
            let shape = if sides.is_empty() { "one value".into() } else { sides.join(" x ") };
            let name = array.name.escape_debug();
            writeln!(f, "array      {name}: {shape}, {}", array.element.escape_debug())?;
        }
        Ok(())
    }
}

impl FileSummary {
    fn fmt_content(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(method) = &self.method {
            writeln!(f, "method     {method}")?;
        }
        if self.rows > 0 {
            let [x, y] = self.origin_m;
            let (rows, cols, cell_m) = (self.rows, self.cols, self.cell_m);
            writeln!(f, "grid       {rows} x {cols} cells of {cell_m} m, from x {x}, y {y}")?;
        }
        if let Some([left, right, low, high]) = self.region_m {
            writeln!(f, "places     x {left} to {right}, y {low} to {high} m")?;
        }
        if let Some(crs) = &self.crs {
            writeln!(f, "on Earth   {crs}")?;
        }
        match (self.unit, self.offset) {
            (Some(unit), Some(offset)) => writeln!(f, "unit       {unit}, a {offset}")?,
            (Some(unit), None) => writeln!(f, "unit       {unit}")?,
            (None, _) => {}
        }
        writeln!(f, "bands      {}", self.bands)?;
        if let Some(names) = &self.labels {
            const MOST: usize = 8;
            let more = if names.len() > MOST { ", .." } else { "" };
            writeln!(f, "named      {}{more}", names[..names.len().min(MOST)].join(", "))?;
        }
        if let Some(freq_hz) = &self.freq_hz {
            let least = freq_hz.iter().copied().fold(f64::INFINITY, f64::min) / 1e6;
            let most = freq_hz.iter().copied().fold(0.0, f64::max) / 1e6;
            match least == most {
                true => writeln!(f, "frequency  {least} MHz")?,
                false => writeln!(f, "frequency  {least} to {most} MHz")?,
            }
        }
        if let Some(sensors) = self.sensors {
            match self.places {
                Some(places) if places < sensors => {
                    writeln!(f, "sensors    {sensors} rows at {places} places")?;
                }
                _ => writeln!(f, "sensors    {sensors}")?,
            }
        }
        if let Some(QuantiserSummary { levels, sigma, offset }) = &self.quantiser {
            writeln!(f, "quantised  {levels} levels, sigma {sigma}, a {offset}")?;
        }
        if let Some((least, most)) = self.range {
            let dbm = |power| Unit::Dbm.from_linear(power);
            let (low, high) = (dbm(least), dbm(most));
            writeln!(f, "power      {least:.3e} to {most:.3e} linear ({low:.1} to {high:.1} dB)")?;
        }
        if self.kind != FileKind::Model {
            writeln!(f, "gaps       {} of {}", self.gaps, self.entries)?;
        }
        if self.not_heard > 0 {
            writeln!(f, "not heard  {} of {}", self.not_heard, self.entries)?;
        }
        if self.kind == FileKind::Model {
            writeln!(f, "spread     {}", if self.has_spread { "yes" } else { "no" })?;
        }
        if self.kind == FileKind::Map {
            match self.factors {
                Some(emitters) => writeln!(f, "factored   yes, {emitters} emitter(s)")?,
                None => writeln!(f, "factored   no")?,
            }
            if self.emitters > 0 {
                writeln!(f, "emitters   {} with a position", self.emitters)?;
            }
            writeln!(f, "spread     {}", if self.has_spread { "yes" } else { "no" })?;
        }
        Ok(())
    }
}
