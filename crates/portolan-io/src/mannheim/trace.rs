//! Scans of a Wi-Fi survey, line by line, and their medians per place and frequency.
//!
//! The traces of CRAWDAD mannheim/compass: one scan a line,
//! `t=ms;id=MAC;pos=x,y,z;degree=d;MAC=dBm,Hz,mode;..`, comments begin with `#`. A median is taken
//! over every reading of a frequency at a place, whoever sent it, in whatever mode (3 is an access
//! point, 1 an ad-hoc station) and wherever the receiver faced; of an even number of readings it is
//! the mean of the middle two. Positions, frequencies and readings are kept, never a whole line.

use std::collections::HashMap;
use std::io::{BufRead, Read};

use crate::error::{Check, Problem, quoted};

/// The most text, the longest line and the largest table that is read; the survey has 51 MB in
/// lines of up to 800 bytes.
const MOST_TEXT: u64 = 1 << 30;
const LONGEST_LINE: u64 = 1 << 16;
const MOST_ENTRIES: usize = 1 << 22;
const MOST_BANDS: usize = 1 << 10;

/// Powers that no receiver reports.
const POWERS_DBM: std::ops::RangeInclusive<f64> = -250.0..=100.0;
const HIGHEST_HZ: u64 = 1_000_000_000_000;

/// One place of a survey and what was read there.
#[derive(Clone, Debug, PartialEq)]
pub struct ScannedPlace {
    pub x_m: f64,
    pub y_m: f64,
    /// Median in dBm of every band; NaN where the band was not read.
    pub dbm: Vec<f64>,
    /// The line of its first scan.
    pub(crate) line: u64,
}

/// The medians of a trace.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Medians {
    /// Ascending.
    pub freq_hz: Vec<f64>,
    /// In the order of x, then y.
    pub places: Vec<ScannedPlace>,
    pub scans: usize,
}

impl Medians {
    /// The bands of `freq_hz`; one that the trace does not have is missing everywhere.
    pub fn with_bands(mut self, freq_hz: &[f64]) -> Self {
        let from: Vec<Option<usize>> = freq_hz
            .iter()
            .map(|wanted| self.freq_hz.iter().position(|freq| freq == wanted))
            .collect();
        for place in &mut self.places {
            place.dbm = from.iter().map(|b| b.map_or(f64::NAN, |b| place.dbm[b])).collect();
        }
        self.freq_hz = freq_hz.to_vec();
        self
    }

    /// Leaves out the bands that were read at fewer than half of the places; returns them with
    /// the number of places.
    pub fn drop_rare(self) -> (Self, Vec<(f64, usize)>) {
        let read_at = |band: usize| self.places.iter().filter(|p| !p.dbm[band].is_nan()).count();
        let counts: Vec<usize> = (0..self.freq_hz.len()).map(read_at).collect();
        let all = self.freq_hz.iter().copied().zip(counts);
        let (common, rare): (Vec<_>, Vec<_>) = all.partition(|(_, n)| 2 * n >= self.places.len());
        let common: Vec<f64> = common.into_iter().map(|(freq, _)| freq).collect();
        (self.with_bands(&common), rare)
    }
}

/// Reads a trace in text.
pub(crate) fn read(text: impl BufRead) -> Check<Medians> {
    let mut text = text.take(MOST_TEXT + 1);
    let (mut scans, mut line, mut number) = (Scans::default(), Vec::new(), 0);
    loop {
        line.clear();
        number += 1;
        let at = |what: String| Problem::new(format!("line {number}: {what}"));
        let read = text.by_ref().take(LONGEST_LINE + 1).read_until(b'\n', &mut line);
        let length = read.map_err(|error| at(format!("reading stopped: {error}")))?;
        if text.limit() == 0 {
            return Err(at(format!("more than {MOST_TEXT} bytes of text, the most that is read")));
        }
        if length == 0 {
            return scans.medians();
        }
        if length as u64 > LONGEST_LINE {
            return Err(at(format!("more than {LONGEST_LINE} bytes, expected one scan")));
        }
        let content = line.trim_ascii();
        if !content.is_empty() && !content.starts_with(b"#") {
            let content = std::str::from_utf8(content);
            let content = content.map_err(|_| at("expected text in UTF-8".into()))?;
            scans.add(content, number).map_err(at)?;
        }
    }
}

#[derive(Clone, Copy)]
struct Reading {
    place: u32,
    band: u32,
    dbm: f64,
}

#[derive(Default)]
struct Scans {
    /// Position and first line of every place, by first appearance.
    places: Vec<([f64; 2], u64)>,
    indices: HashMap<[u64; 2], usize>,
    height: Option<f64>,
    bands: Vec<u64>,
    readings: Vec<Reading>,
    scans: usize,
}

impl Scans {
    fn add(&mut self, line: &str, number: u64) -> Result<(), String> {
        let mut fields = line.trim_end_matches(';').split(';');
        let mut named = |name: &str| {
            let field = fields.next().unwrap_or_default();
            let value = field.strip_prefix(name).and_then(|rest| rest.strip_prefix('='));
            value.ok_or_else(|| format!("{}, expected '{name}=..'", quoted(field)))
        };
        let time = named("t")?;
        time.parse::<u64>().map_err(|_| format!("t={}, expected milliseconds", quoted(time)))?;
        check_address(named("id")?)?;
        let position = named("pos")?;
        let heading = named("degree")?;
        finite(heading).ok_or_else(|| format!("degree={}, expected a number", quoted(heading)))?;
        let place = self.place(position, number)? as u32;
        for field in fields {
            let (hz, dbm) = reading(field)?;
            let band = self.band(hz)? as u32;
            self.readings.push(Reading { place, band, dbm });
        }
        self.scans += 1;
        Ok(())
    }

    fn place(&mut self, position: &str, number: u64) -> Result<usize, String> {
        let wrong = || format!("pos={}, expected x,y,z in metres", quoted(position));
        let parts: Vec<f64> = position.split(',').map_while(finite).collect();
        let [x, y, z] = parts[..] else { return Err(wrong()) };
        if position.split(',').count() != 3 {
            return Err(wrong());
        }
        let height = *self.height.get_or_insert(z);
        if height != z {
            return Err(format!("z = {z}, but {height} above: give one floor at a time"));
        }
        // 0 and -0 are one place.
        let position = [x + 0.0, y + 0.0];
        let places = &mut self.places;
        let next = *self.indices.entry(position.map(f64::to_bits)).or_insert_with(|| {
            places.push((position, number));
            places.len() - 1
        });
        self.check_size().map(|()| next)
    }

    fn band(&mut self, hz: u64) -> Result<usize, String> {
        if let Some(band) = self.bands.iter().position(|known| *known == hz) {
            return Ok(band);
        }
        self.bands.push(hz);
        self.check_size().map(|()| self.bands.len() - 1)
    }

    fn check_size(&self) -> Result<(), String> {
        let (places, bands) = (self.places.len(), self.bands.len());
        match places.checked_mul(bands.max(1)) {
            Some(entries) if entries <= MOST_ENTRIES && bands <= MOST_BANDS => Ok(()),
            _ => Err(format!("{places} places and {bands} frequencies are more than is read")),
        }
    }

    fn medians(mut self) -> Check<Medians> {
        if self.readings.is_empty() {
            return Err(Problem::new("no readings, expected lines of 't=..;id=..;pos=..'"));
        }
        let mut order: Vec<usize> = (0..self.bands.len()).collect();
        order.sort_by_key(|&band| self.bands[band]);
        let mut column = vec![0; order.len()];
        order.iter().enumerate().for_each(|(to, &from)| column[from] = to);
        let missing = vec![f64::NAN; order.len()];
        let mut places: Vec<ScannedPlace> = self
            .places
            .iter()
            .map(|&([x_m, y_m], line)| ScannedPlace { x_m, y_m, line, dbm: missing.clone() })
            .collect();
        self.readings.sort_unstable_by(|a, b| {
            (a.place, a.band).cmp(&(b.place, b.band)).then(a.dbm.total_cmp(&b.dbm))
        });
        for group in self.readings.chunk_by(|a, b| (a.place, a.band) == (b.place, b.band)) {
            let (low, high) = (group[(group.len() - 1) / 2].dbm, group[group.len() / 2].dbm);
            places[group[0].place as usize].dbm[column[group[0].band as usize]] =
                (low + high) / 2.0;
        }
        places.sort_by(|a, b| a.x_m.total_cmp(&b.x_m).then(a.y_m.total_cmp(&b.y_m)));
        let freq_hz = order.iter().map(|&band| self.bands[band] as f64).collect();
        Ok(Medians { freq_hz, places, scans: self.scans })
    }
}

/// Frequency and power of `MAC=dBm,Hz,mode`.
fn reading(field: &str) -> Result<(u64, f64), String> {
    let wrong = |what: &str| format!("{}, {what}", quoted(field));
    let (address, values) =
        field.split_once('=').ok_or_else(|| wrong("expected 'MAC=dBm,Hz,mode'"))?;
    check_address(address)?;
    let values: Vec<&str> = values.split(',').collect();
    let [dbm, hz, mode] = values[..] else { return Err(wrong("expected 'MAC=dBm,Hz,mode'")) };
    let dbm = finite(dbm)
        .filter(|dbm| POWERS_DBM.contains(dbm))
        .ok_or_else(|| wrong("expected a power in dBm from -250 to 100"))?;
    let hz = hz
        .parse::<u64>()
        .ok()
        .filter(|hz| (1..=HIGHEST_HZ).contains(hz))
        .ok_or_else(|| wrong("expected a frequency in Hz"))?;
    mode.parse::<u8>().map_err(|_| wrong("expected a mode, such as 3 for an access point"))?;
    Ok((hz, dbm))
}

fn check_address(text: &str) -> Result<(), String> {
    let mut octets = text.split(':');
    let hex = |octet: &str| octet.len() == 2 && octet.bytes().all(|b| b.is_ascii_hexdigit());
    match octets.by_ref().take(6).filter(|octet| hex(octet)).count() == 6 && octets.next().is_none()
    {
        true => Ok(()),
        false => Err(format!("{}, expected a MAC address", quoted(text))),
    }
}

fn finite(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|value| value.is_finite())
}
