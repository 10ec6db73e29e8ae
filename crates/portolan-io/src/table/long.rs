//! Tables with a line per sensor and band: a log of received frames, a list of peaks.

use portolan::{BandLabels, Scale};

use super::columns::{BandColumn, FrequencyColumn, LongColumns};
use super::lines::{Line, Lines};
use super::positions::{Positions, Settled};
use super::{Entries, entry, no_readings};
use crate::error::Check;
use crate::options::ReadOptions;
use crate::survey::{BandKind, Clock, Sighting, Sightings, time_of};

/// Frequencies without a unit are MHz where all of them lie below this.
const MOST_MHZ: f64 = 1e5;

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

impl Long<'_> {
    pub fn read(
        &self,
        lines: &mut Lines<'_>,
        positions: &mut Positions,
        options: &ReadOptions,
        warnings: &mut Vec<String>,
    ) -> Check<(Settled, Entries, BandLabels)> {
        let clock = options.survey.clock.clone().unwrap_or(Clock::UTC);
        let kind = match self.columns.band {
            BandColumn::Frequency(_) => BandKind::Frequency,
            BandColumn::Channel(_) => BandKind::Channel,
            BandColumn::Name(_) => BandKind::Name,
        };
        let mut sightings = Sightings::new(kind);
        let mut lost = Lost::default();
        while let Some(line) = lines.next()? {
            let Some(site) = positions.site(&line)? else {
                lost.place += 1;
                continue;
            };
            let band = match self.columns.band {
                BandColumn::Frequency(column) => {
                    if line.number(column.column)?.is_nan() {
                        lost.name += 1;
                        continue;
                    }
                    sightings.frequency(hertz(&line, column)?)
                }
                BandColumn::Channel(column) => {
                    let channel = line.number(column)?;
                    if channel.is_nan() {
                        lost.name += 1;
                        continue;
                    }
                    if !(channel >= 0.0 && channel.fract() == 0.0 && channel < 1e6) {
                        return Err(line.wrong(column, "expected the number of a channel"));
                    }
                    sightings.channel(channel as u32)
                }
                BandColumn::Name(column) => {
                    let name = line.record.get(column).unwrap_or_default();
                    if name.is_empty() {
                        lost.name += 1;
                        continue;
                    }
                    sightings.name(name, || self.frequency_of(&line))
                }
            };
            if self.wigle && line.number(self.columns.value)? == 0.0 {
                lost.level += 1;
                continue;
            }
            let (power, silent) =
                entry(&line, self.columns.value, self.columns.unit, options.not_heard)?;
            let time_s = match self.time.map(|column| time_of(&line, column, &clock)) {
                Some(Ok(time_s)) => time_s,
                Some(Err(_)) => {
                    lost.time += 1;
                    f64::NAN
                }
                None => f64::NAN,
            };
            let device = self.device.and_then(|column| line.record.get(column));
            let device = device.and_then(|name| sightings.devices.number(name));
            sightings.add(site, Sighting { band, power, silent, time_s, device });
        }
        for (count, what) in [
            (lost.place, "without a position"),
            (lost.name, "without a band"),
            (lost.level, "with a level of 0, which is unknown"),
        ] {
            if count > 0 {
                warnings.push(format!("{count} line(s) {what}: left out"));
            }
        }
        if lost.time > 0 {
            warnings
                .push(format!("{} line(s) with a time that is none: kept without it", lost.time));
        }
        if sightings.is_empty() {
            return Err(no_readings(lost.place));
        }
        if let BandColumn::Frequency(FrequencyColumn { scale: None, .. }) = self.columns.band
            && sightings.scale_frequencies(MOST_MHZ, 1e6)
        {
            warnings.push("frequencies without a unit are taken as MHz".into());
        }
        let mut settled = positions.settle(sightings.take_sites(), warnings)?;
        let gathered = sightings.gathered(&mut settled.sites, self.scale, options, warnings)?;
        Ok((settled, gathered.0, gathered.1))
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
