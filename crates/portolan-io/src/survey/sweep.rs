//! Sweeps of a spectrum analyser made of a cheap radio: rtl_power, hackrf_sweep, soapy_power. A line
//! is a date, a time, the edges of a range, the width of a bin, the number of samples and a level
//! for every bin. They know no position: a track tells where the receiver was.

use std::collections::BTreeMap;

use portolan::{Grid, Readings, Scale, Site, Values};

use super::clock::Clock;
use super::sightings::{BandKind, Sighting, Sightings};
use super::track::Track;
use crate::error::{Check, Problem, quoted};
use crate::options::{ReadOptions, SurveyOptions, Unit};
use crate::table::lines::{Line, Lines};
use crate::table::positions::grid_over;

/// Fields of a line before its levels.
const FIRST: usize = 6;

/// More bins than this are not bands by default.
const MOST_BINS: usize = 1000;

/// A clock that goes back by so many seconds was put back.
const PUT_BACK_S: f64 = 1500.0;

/// Seconds between two fixes of a track beyond which the way between them is not known.
const GAP_S: f64 = 30.0;

/// Whether bytes begin as a sweep does: a date and a time.
pub(crate) fn is_sweep(bytes: &[u8]) -> bool {
    let line = bytes.split(|b| *b == b'\n').find(|line| !line.is_empty()).unwrap_or_default();
    let mut fields = line.split(|b| *b == b',').map(|field| field.trim_ascii());
    let date = fields.next().is_some_and(|f| f.len() == 10 && f[4] == b'-' && f[7] == b'-');
    let time = fields.next().is_some_and(|f| f.len() >= 8 && f[2] == b':' && f[5] == b':');
    date && time && fields.count() >= FIRST - 1
}

/// A line of a sweep.
struct Range {
    time_s: f64,
    low_hz: f64,
    step_hz: f64,
    /// Linear; NaN where a level is missing.
    powers: Vec<f64>,
}

/// Reads sweeps and joins them with their track.
pub(crate) fn read_sweeps(
    bytes: &[u8],
    options: &ReadOptions,
    warnings: &mut Vec<String>,
) -> Check<Readings> {
    let survey = &options.survey;
    let Some(path) = &survey.track else {
        return Err(Problem::new(
            "sweeps say when they were made and not where: give the receiver's way by --track \
             FILE (.gpx, or a table with time, lat and lon)",
        ));
    };
    let track = Track::open(path, options.crs, survey.track_gap_s.unwrap_or(GAP_S))
        .map_err(|error| Problem::new(format!("--track {error}")))?;
    joined(bytes, &track, options, warnings)
}

fn joined(
    bytes: &[u8],
    track: &Track,
    options: &ReadOptions,
    warnings: &mut Vec<String>,
) -> Check<Readings> {
    let survey = &options.survey;
    let clock = survey.clock.as_ref().ok_or_else(|| {
        Problem::new(
            "the times of a sweep have no zone: give the receiver's clock by --utc-offset (+02:00, \
             Europe/Berlin, or 0 for UTC)",
        )
    })?;
    let scale = match options.unit {
        None | Some(Unit::Db) => Scale::Uncalibrated,
        Some(Unit::Dbm) => Scale::Absolute,
        Some(_) => {
            return Err(Problem::new("the levels of a sweep are decibels: pass --unit dbm or db"));
        }
    };
    let bands = Bands::new(survey)?;
    let mut lines = Lines::open(bytes)?;
    let mut join = Join {
        track,
        bands,
        sightings: Sightings::new(BandKind::Frequency),
        sweep: Sweep::default(),
        sweeps: 0,
        lost: 0,
        first_lost: None,
    };
    let mut last = None;
    while let Some(line) = lines.next()? {
        let range = range(&line, clock, last)?;
        last = Some(last.map_or(range.time_s, |last: f64| last.max(range.time_s)));
        // A range that was seen already begins the next sweep.
        if join.sweep.lows.contains(&range.low_hz.to_bits()) {
            join.flush();
        }
        join.add(&range)?;
    }
    join.flush();
    let Join { mut sightings, sweeps, lost, first_lost, .. } = join;
    if let Some(first) = first_lost.filter(|_| lost > 0) {
        let (start, end) = track.span();
        let hint = match lost == sweeps {
            true => format!(
                "; the first is at {}, the track runs from {} to {}",
                shown_time(first),
                shown_time(start),
                shown_time(end)
            ),
            false => String::new(),
        };
        let line = format!("{lost} of {sweeps} sweep(s) have no position on the track");
        if lost == sweeps {
            return Err(Problem::new(format!("{line}{hint}: check --utc-offset")));
        }
        warnings.push(format!("{line}: left out"));
    }
    if sightings.is_empty() {
        return Err(Problem::new("no levels, expected lines of a sweep"));
    }
    let mut sites = sightings.take_sites();
    let (entries, labels) = sightings.gathered(&mut sites, scale, options, warnings)?;
    let readings = options.readings(sites, Values::Power(entries.power), scale)?;
    let origin = options.origin_m.map(|(x, y)| Site::new(x, y));
    let grid = match options.grid {
        Some((rows, cols)) => {
            let grid = Grid::new(rows, cols, options.cell_m.unwrap_or(1.0))?;
            Some(grid.with_origin(origin.unwrap_or(readings.region().low))?)
        }
        None => grid_over(readings.sites(), options.cell_m, origin)?,
    };
    let readings = readings.with_grid(grid)?.with_labels(labels)?.with_crs(track.crs);
    Ok(readings.with_time_s(entries.time_s)?.with_repeats(entries.count)?)
}

fn range(line: &Line, clock: &Clock, last: Option<f64>) -> Check<Range> {
    let field = |column: usize| line.record.get(column).unwrap_or_default();
    let text = format!("{} {}", field(0), field(1));
    let time_s = clock.seconds(&text, last).ok_or_else(|| {
        let text = quoted(&text);
        Problem::new(format!("line {}: {text}, expected a date and a time", line.number))
    })?;
    if let Some(last) = last.filter(|last| last - time_s > PUT_BACK_S && clock.is_fixed()) {
        let minutes = (last - time_s) / 60.0;
        return Err(Problem::new(format!(
            "line {}: the clock goes back by {minutes:.0} minutes: where daylight saving ended, \
             give the time zone, such as --utc-offset Europe/Berlin",
            line.number
        )));
    }
    let number = |column: usize, what: &str| {
        let value = field(column).parse::<f64>().ok().filter(|v| v.is_finite() && *v >= 0.0);
        value.ok_or_else(|| line.wrong(column, what))
    };
    let low_hz = number(2, "expected the lower edge in Hz")?;
    let high_hz = number(3, "expected the upper edge in Hz")?;
    let step_hz = number(4, "expected the width of a bin in Hz")?;
    if !(step_hz > 0.0 && high_hz > low_hz) {
        return Err(line.wrong(4, "expected bins of a positive width between two edges"));
    }
    let bins = ((high_hz - low_hz) / step_hz).round();
    let levels = line.record.len().saturating_sub(FIRST);
    if levels == 0 {
        return Err(Problem::new(format!("line {}: no levels", line.number)));
    }
    // rtl_power prints the last level twice.
    let take = if bins >= 1.0 && (bins as usize) < levels { bins as usize } else { levels };
    let mut powers = Vec::with_capacity(take);
    for column in FIRST..FIRST + take {
        let level = match field(column) {
            "" | "-inf" | "inf" | "nan" | "-nan" => f64::NAN,
            text => {
                text.parse::<f64>().map_err(|_| line.wrong(column, "expected a level in dB"))?
            }
        };
        powers.push(Unit::Db.to_linear(level));
    }
    Ok(Range { time_s, low_hz, step_hz, powers })
}

/// How bins become bands.
enum Bands {
    Bins,
    Width(f64),
    Edges(Vec<f64>),
}

impl Bands {
    fn new(survey: &SurveyOptions) -> Check<Self> {
        match (&survey.band_edges_hz, survey.band_width_hz) {
            (Some(_), Some(_)) => Err(Problem::new("give --band-width or --band-edges, not both")),
            (Some(edges), None) => {
                let ascending = edges.windows(2).all(|pair| pair[0] < pair[1]);
                if edges.len() < 2 || !ascending || !edges.iter().all(|e| e.is_finite()) {
                    return Err(Problem::new(
                        "--band-edges: expected at least two frequencies, ascending",
                    ));
                }
                Ok(Bands::Edges(edges.clone()))
            }
            (None, Some(width)) if width.is_finite() && width > 0.0 => Ok(Bands::Width(width)),
            (None, Some(width)) => {
                Err(Problem::new(format!("--band-width {width}: expected a positive frequency")))
            }
            (None, None) => Ok(Bands::Bins),
        }
    }

    /// The middle and the width of the band that a bin belongs to, in Hz.
    fn of(&self, middle_hz: f64, step_hz: f64) -> Option<(f64, f64)> {
        match self {
            Bands::Bins => Some((middle_hz.round(), step_hz)),
            Bands::Width(width) => {
                // A bin on the edge belongs to the band above it, whatever the rounding.
                let number = (middle_hz / width + 1e-9).floor();
                Some(((number + 0.5) * width, *width))
            }
            Bands::Edges(edges) => {
                let next = edges.partition_point(|edge| *edge <= middle_hz);
                let (low, high) = (edges.get(next.checked_sub(1)?)?, edges.get(next)?);
                Some((0.5 * (low + high), high - low))
            }
        }
    }
}

/// What a sweep has gathered so far.
#[derive(Default)]
struct Sweep {
    lows: std::collections::HashSet<u64>,
    times: (f64, f64),
    /// By the bits of the band's middle: sum of power, bins, and the bins that the band has.
    bands: BTreeMap<u64, (f64, f64, f64)>,
}

struct Join<'a> {
    track: &'a Track,
    bands: Bands,
    sightings: Sightings,
    sweep: Sweep,
    sweeps: usize,
    lost: usize,
    first_lost: Option<f64>,
}

impl Join<'_> {
    fn add(&mut self, range: &Range) -> Check<()> {
        let Range { time_s, low_hz, step_hz, powers } = range;
        self.sweep.lows.insert(low_hz.to_bits());
        self.sweep.times.0 += time_s;
        self.sweep.times.1 += 1.0;
        for (bin, power) in powers.iter().enumerate().filter(|(_, p)| !p.is_nan()) {
            let middle = low_hz + (bin as f64 + 0.5) * step_hz;
            let Some((band, width)) = self.bands.of(middle, *step_hz) else { continue };
            let slot = self.sweep.bands.entry(band.to_bits()).or_insert((0.0, 0.0, 0.0));
            *slot = (slot.0 + power, slot.1 + 1.0, (width / step_hz).max(1.0));
        }
        if matches!(self.bands, Bands::Bins) && self.sweep.bands.len() > MOST_BINS {
            return Err(Problem::new(format!(
                "more than {MOST_BINS} bins in a sweep: gather them by --band-width 1MHz or \
                 --band-edges 88MHz,108MHz"
            )));
        }
        Ok(())
    }

    /// Ends a sweep: its levels belong to where the receiver was at its middle.
    fn flush(&mut self) {
        let Sweep { times: (sum, count), bands, .. } = std::mem::take(&mut self.sweep);
        if count == 0.0 {
            return;
        }
        self.sweeps += 1;
        let time_s = sum / count;
        let Some(site) = self.track.at(time_s) else {
            self.lost += 1;
            self.first_lost.get_or_insert(time_s);
            return;
        };
        for (band, (power, bins, whole)) in bands {
            let band = self.sightings.frequency(f64::from_bits(band));
            // Bins that are missing count as the mean of the others.
            let power = power / bins * whole;
            self.sightings.add(
                site,
                Sighting { band, power, silent: false, time_s, device: None, member: 0 },
            );
        }
    }
}

fn shown_time(seconds: f64) -> String {
    let whole = jiff::Timestamp::from_second(seconds.round() as i64);
    whole.map_or_else(|_| format!("{seconds} s"), |time| time.to_string())
}

#[cfg(test)]
mod tests;
