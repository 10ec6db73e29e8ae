//! Tables with a line per sensor and band: a log of received frames, a list of peaks.

use portolan::{BandLabels, Scale, Site};

use super::columns::{BandColumn, FrequencyColumn, LongColumns};
use super::lines::{Line, Lines};
use super::positions::{Positions, Settled};
use super::{Entries, doubts, entry, no_readings};
use crate::error::{Check, shown};
use crate::options::ReadOptions;
use crate::survey::{BandKind, Sighting, Sightings, TimeColumn};

/// Frequencies without a unit are MHz where all of them lie below this.
const MOST_MHZ: f64 = 1e5;
/// Frequencies below this may be kHz as well as Hz.
const MOST_KHZ: f64 = 7.5e6;

/// What to read of every line.
pub(super) struct Long<'a> {
    pub columns: &'a LongColumns,
    pub time: Option<usize>,
    pub device: Option<usize>,
    pub scale: Scale,
    /// A level of zero is unknown.
    pub wigle: bool,
}

/// Lines that say nothing.
#[derive(Default)]
struct Lost {
    place: usize,
    name: usize,
    level: usize,
    /// These are kept, without their time.
    time: usize,
}

/// What a line says.
enum Read {
    Sighting(Site, Sighting),
    Nowhere,
    NoBand,
    NoLevel,
}

impl Long<'_> {
    pub fn read(
        &self,
        lines: &mut Lines<'_>,
        positions: &mut Positions,
        options: &ReadOptions,
        warnings: &mut Vec<String>,
    ) -> Check<(Settled, Entries, BandLabels)> {
        let mut time = self.time.map(|column| TimeColumn::new(column, &options.survey));
        let kind = match &self.columns.band {
            BandColumn::Frequency(_) => BandKind::Frequency,
            BandColumn::Channel(_) => BandKind::Channel,
            BandColumn::Name(_) => BandKind::Name,
        };
        let mut sightings = Sightings::new(kind);
        let mut lost = Lost::default();
        while let Some(line) = lines.next()? {
            match self.sighting(&line, positions, &mut sightings, options) {
                Ok(Read::Sighting(site, mut sighting)) => {
                    match time.as_mut().map(|time| time.of(&line)) {
                        Some(Ok(time_s)) => sighting.time_s = time_s,
                        Some(Err(_)) => lost.time += 1,
                        None => {}
                    }
                    sightings.add(site, sighting);
                }
                Ok(Read::Nowhere) => lost.place += 1,
                Ok(Read::NoBand) => lost.name += 1,
                Ok(Read::NoLevel) => lost.level += 1,
                Err(problem) => lines.pass_over(problem)?,
            }
        }
        lines.finish(warnings)?;
        for (count, what) in [
            (lost.place, "without a position"),
            (lost.name, "without a band"),
            (lost.level, "with a level of 0, which is unknown"),
        ] {
            if count > 0 {
                warnings.push(format!("{count} line(s) {what}: left out"));
            }
        }
        warnings.extend(time.as_ref().and_then(TimeColumn::warning));
        if lost.time > 0 {
            warnings
                .push(format!("{} line(s) with a time that is none: kept without it", lost.time));
        }
        if sightings.is_empty() {
            return Err(no_readings(lost.place));
        }
        let by_frequency = matches!(self.columns.band, BandColumn::Frequency(_));
        if self.columns.freq.is_some_and(|column| column.scale.is_none()) {
            if by_frequency && sightings.scale_frequencies(MOST_MHZ, 1e6) {
                warnings.push("frequencies without a unit are taken as MHz".into());
            } else if let Some(hz) = sightings.frequencies_in_khz(MOST_KHZ) {
                doubts::raise(
                    (doubts::DoubtKind::Frequency, 1),
                    format!(
                        "a frequency of {} has no unit: {} MHz if it is in kHz, {} MHz if in Hz; say it \
                         by --freq-unit kHz or --freq-unit Hz",
                        shown(hz),
                        shown(hz / 1e3),
                        shown(hz / 1e6)
                    ),
                    options,
                    warnings,
                )?;
            }
        }
        let mut settled = positions.settle(sightings.take_sites(), warnings)?;
        let gathered = sightings.gathered(&mut settled.sites, self.scale, options, warnings)?;
        if let BandColumn::Name(names) = &self.columns.band
            && names.len() > 1
            && options.not_heard.is_none()
            && alone(&gathered.0.power)
        {
            warnings.push(
                "nearly every row has one cell only: if the phone reports no other than the cell that \
                 serves it, --not-heard below-serving says that the others are weaker"
                    .into(),
            );
        }
        Ok((settled, gathered.0, gathered.1))
    }

    /// What a line says.
    fn sighting(
        &self,
        line: &Line,
        positions: &mut Positions,
        sightings: &mut Sightings,
        options: &ReadOptions,
    ) -> Check<Read> {
        let Some(site) = positions.site(line)? else { return Ok(Read::Nowhere) };
        let silent = |column: usize| line.number(column).map(|number| number.is_nan());
        // Of what cannot be read no band is made.
        let (power, unheard) = entry(line, self.columns.value, self.columns.unit, options)?;
        let band = match &self.columns.band {
            BandColumn::Frequency(column) => match silent(column.column)? {
                true => return Ok(Read::NoBand),
                false => sightings.frequency(hertz(line, *column)?),
            },
            BandColumn::Channel(column) => {
                let channel = line.number(*column)?;
                if channel.is_nan() {
                    return Ok(Read::NoBand);
                }
                if !(channel >= 0.0 && channel.fract() == 0.0 && channel < 1e6) {
                    return Err(line.wrong(*column, "expected the number of a channel"));
                }
                sightings.channel(channel as u32)
            }
            BandColumn::Name(columns) => {
                let parts = columns.iter().map(|column| line.record.get(*column));
                let parts: Vec<&str> = parts.map(Option::unwrap_or_default).collect();
                if parts.iter().all(|part| part.is_empty()) {
                    return Ok(Read::NoBand);
                }
                sightings.name(&parts.join("/"), || self.frequency_of(line))
            }
        };
        if self.wigle && line.number(self.columns.value)? == 0.0 {
            return Ok(Read::NoLevel);
        }
        let device = self.device.and_then(|column| line.record.get(column));
        let device = device.and_then(|name| sightings.devices.number(name));
        let member = self.columns.member.and_then(|column| line.record.get(column));
        let member = member.map_or(0, |name| sightings.member(name));
        let time_s = f64::NAN;
        let sighting = Sighting { band, power, silent: unheard, time_s, device, member };
        Ok(Read::Sighting(site, sighting))
    }

    /// The frequency of a named band, where the line says; not known is no error.
    fn frequency_of(&self, line: &Line) -> Option<f64> {
        let written = self.columns.freq.and_then(|column| {
            let value = line.number(column.column).ok().filter(|f| *f > 0.0)?;
            let scale = column.scale.unwrap_or(if value < MOST_MHZ { 1e6 } else { 1.0 });
            Some(value * scale)
        });
        let channel = || {
            let value = line.number(self.columns.channel?).ok()?;
            (value.fract() == 0.0 && (1.0..1000.0).contains(&value))
                .then(|| crate::survey::channel_hz(value as u32))
                .flatten()
        };
        written.or_else(channel)
    }
}

fn hertz(line: &Line, column: FrequencyColumn) -> Check<f64> {
    let freq_hz = line.number(column.column)? * column.scale.unwrap_or(1.0);
    if !(freq_hz > 0.0 && freq_hz.is_finite()) {
        return Err(line.wrong(column.column, "expected a positive frequency"));
    }
    Ok(freq_hz)
}
/// Rows from which on a log is taken for one of serving cells, and the share of its rows with one cell.
const SERVED: (usize, f64) = (20, 0.95);

/// Whether nearly every row has one of several cells.
fn alone(power: &ndarray::Array2<f64>) -> bool {
    let one = |row: &ndarray::ArrayView1<'_, f64>| row.iter().filter(|p| !p.is_nan()).count() == 1;
    let (rows, bands) = power.dim();
    let count = power.rows().into_iter().filter(one).count();
    bands > 2 && rows >= SERVED.0 && count as f64 >= SERVED.1 * rows as f64
}
