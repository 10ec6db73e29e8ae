//! What a run will need of disk and memory: refused before the work where the disk is too small,
//! said before it where it is much.

use std::path::Path;

use ndarray::ArrayView1;
use portolan::estimate::{Capability, Entry};
use portolan::{Grid, Model, Readings, Values};

use crate::error::{Problem, Result};
use crate::format::Format;
use crate::memory::{available as free_memory, shown_bytes};
use crate::output::free_space;

/// Sizes from here on are said.
const LARGE: u64 = 100_000_000;
/// Maps of more entries than this are large.
const MOST_AT_ONCE: u64 = 1 << 26;
/// Factored maps of more entries than this are written without the dense map.
const MOST_DENSE: u64 = 1 << 24;
/// Entries that two blocks of a raster take the memory of, as they are drawn.
const PART: u64 = 1 << 23;
/// Bytes that an entry takes while a map is drawn at once: power, spread and reading spread, and a
/// copy of each.
pub const BYTES_AT_ONCE: u64 = 48;
/// Bytes that a reading takes while a method is fitted.
const BYTES_IN_FIT: u64 = 40;
/// The most that matrices between sensors take while a method is fitted.
const MOST_MATRICES: u64 = 300_000_000;
/// Bytes of a number in a table, with its comma; a gap takes one.
const BYTES_IN_TABLE: u64 = 20;

/// What an output takes.
pub struct Needs {
    what: String,
    /// Bytes of the file at least, and as expected.
    file: (u64, u64),
    memory: u64,
}

impl Needs {
    /// Refuses an output that its disk has no room for; returns what to say of a large one.
    pub fn check(&self, output: &Path) -> Result<Option<String>> {
        let Self { what, file: (least, expected), memory } = self;
        let free = free_space(output);
        if let Some(free) = free.filter(|free| least > free) {
            let (least, free) = (shown_bytes(*least), shown_bytes(free));
            let problem = format!("{what} takes {least}, {free} are free there");
            return Err(Problem::new(problem).in_file(output));
        }
        Ok((*expected.max(memory) >= LARGE).then(|| {
            let mut line = format!("{what} takes about {} on disk", shown_bytes(*expected));
            if let Some(free) = free {
                line += &format!(" ({} are free)", shown_bytes(free));
            }
            format!("{line} and {} of memory", shown_bytes(*memory))
        }))
    }

    /// Of a table with power, spread and reading spread at places.
    pub fn of_places(places: usize, bands: usize, spread: bool) -> Self {
        let entries = (places as u64).saturating_mul(bands as u64);
        let columns = if spread { 3 } else { 1 };
        let file = entries.saturating_mul(columns).saturating_mul(BYTES_IN_TABLE);
        let memory = entries.saturating_mul(BYTES_AT_ONCE);
        Self { what: format!("{places} places in {bands} band(s)"), file: (entries, file), memory }
    }

    /// Of a model: its sensors' places at least, and their readings.
    pub fn of_model(sensors: usize, bands: usize) -> Self {
        let (places, entries) = (16 * sensors as u64, 8 * (sensors * bands) as u64);
        let what = format!("a model of {sensors} sensors in {bands} band(s)");
        Self { what, file: (places, places + entries), memory: entries }
    }
}

/// What a fit takes: copies of the readings, and a matrix between the sensors of every band that has
/// gaps of its own.
fn fit_bytes(readings: &Readings) -> u64 {
    let (sensors, bands) = (readings.sensors() as u64, readings.bands() as u64);
    let bytes = |sensors: u64| sensors.saturating_mul(sensors).saturating_mul(8);
    let matrices = match (readings.values(), readings.gaps()) {
        (Values::Power(power), gaps) if gaps > 0 => {
            let heard = |band: ArrayView1<'_, f64>| band.iter().filter(|v| !v.is_nan()).count();
            power.columns().into_iter().map(|band| bytes(heard(band) as u64)).sum()
        }
        _ => bytes(sensors.min(2000)),
    };
    sensors * bands * BYTES_IN_FIT + matrices.min(MOST_MATRICES)
}

/// A map that is asked for.
#[derive(Clone, Copy)]
pub struct MapSize {
    pub grid: Grid,
    pub bands: usize,
    /// It has a spread, or may have one.
    pub spread: bool,
    /// It is kept as factors, or may be.
    pub factored: bool,
    /// Whether it certainly has the spread that it may have.
    pub sure: bool,
    /// Bytes that its fit takes, where it is still to be made.
    pub fit: u64,
}

impl MapSize {
    /// Before the fit: what a method's maps are like. `auto` may choose one without a spread.
    pub fn of_method(method: &Entry, grid: Grid, readings: &Readings) -> Self {
        let (spread, factored) = (method.has(Capability::Spread), method.has(Capability::Emitters));
        let (bands, sure) = (readings.bands(), method.name != "auto");
        Self { grid, bands, spread, factored, sure, fit: fit_bytes(readings) }
    }

    pub fn of_model(model: &Model, grid: Grid, bands: usize) -> Self {
        let factored = model.is_factored_on(grid);
        Self { grid, bands, spread: model.gives_spread(), factored, sure: true, fit: 0 }
    }

    fn entries(&self) -> u64 {
        let cells = (self.grid.rows() as u64).saturating_mul(self.grid.cols() as u64);
        cells.saturating_mul(self.bands as u64)
    }

    fn what(&self) -> String {
        let (rows, cols) = (self.grid.rows(), self.grid.cols());
        format!("a map of {rows} x {cols} x {}", self.bands)
    }

    /// Whether the map is too large to be drawn at once, or to be written in float64 unasked.
    pub(super) fn is_large(&self) -> bool {
        self.entries() > MOST_AT_ONCE
    }

    /// Whether the map is written part by part: for a geographic information system and into npz.
    /// Maps that are kept as factors are drawn at once where they fit memory.
    pub fn by_strips(&self, output: &Path) -> Result<bool> {
        let format = Format::of_output(output)?;
        if format.is_gis() || (format == Format::Npz && !self.factored) {
            return Ok(true);
        }
        let at_once = self.entries().saturating_mul(BYTES_AT_ONCE);
        let strips = self.is_large() || free_memory().is_some_and(|free| at_once > free / 2);
        if strips && format != Format::Npz {
            let what = self.what();
            let problem =
                format!("{what} is written strip by strip, which .npz, .tif and .zarr take");
            return Err(Problem::new(problem).in_file(output));
        }
        Ok(strips)
    }

    /// What the map takes; `strip` is the number of entries in one strip.
    pub fn needs(&self, output: &Path, f64: bool, strip: u64) -> Result<Needs> {
        let entries = self.entries();
        let spreads = u64::from(self.spread);
        let sure = if self.sure { spreads } else { 0 };
        let of = |arrays: u64, bytes: u64| entries.saturating_mul(arrays * bytes);
        let part = PART.min(entries);
        let (file, held) = match (self.by_strips(output)?, Format::of_output(output)?) {
            (true, Format::NetCdf) => ((0, of(1 + spreads, 4)), of(1 + spreads, 1) / 3 + part),
            (true, format) if format.is_gis() => ((0, of(1 + spreads, 4)), part),
            (true, _) if self.is_large() => {
                let bytes = if f64 { 8 } else { 4 };
                ((of(1 + sure, bytes), of(1 + spreads, bytes)), strip)
            }
            (true, _) => ((of(1 + 2 * sure, 8), of(1 + 2 * spreads, 8)), strip.min(entries)),
            (false, Format::Csv) => ((of(1 + sure, 1), of(1 + spreads, BYTES_IN_TABLE)), entries),
            (false, _) => {
                let power = u64::from(!self.factored || entries <= MOST_DENSE);
                ((of(power + 2 * sure, 8), of(1 + 2 * spreads, 8)), entries)
            }
        };
        let memory = held.saturating_mul(BYTES_AT_ONCE).saturating_add(self.fit);
        Ok(Needs { what: self.what(), file, memory })
    }
}
