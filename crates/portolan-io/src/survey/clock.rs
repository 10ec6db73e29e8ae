//! Times in files: seconds since 1970, or dates on a clock that may be that of a time zone.

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

use crate::error::Check;
use crate::options::SurveyOptions;
use crate::table::lines::Line;

/// Numbers above this are milliseconds since 1970, below it seconds.
const MOST_SECONDS: f64 = 1e11;

/// What a receiver's clock shows: a fixed time ahead of UTC, or the time of a zone with its
/// daylight saving.
///
/// ```
/// use portolan_io::Clock;
/// let summer = Clock::parse("+02:00")?;
/// let berlin = Clock::parse("Europe/Berlin")?;
/// assert_eq!(summer.seconds("2024-07-01 12:00:00", None), Some(1_719_828_000.0));
/// assert_eq!(berlin.seconds("2024-07-01 12:00:00", None), Some(1_719_828_000.0));
/// assert_eq!(berlin.seconds("2024-12-01 12:00:00", None), Some(1_733_050_800.0));
/// assert!(Clock::parse("Europe/Atlantis").is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clock(TimeZone);

impl Clock {
    /// The clock at Greenwich.
    pub const UTC: Self = Self(TimeZone::UTC);

    /// From `+2`, `+02:00`, `-05:30:10` or the name of a zone such as `Europe/Berlin`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let wrong = || {
            format!(
                "'{text}': expected hours ahead of UTC, such as +2, +02:00 or +02:00:13, or a time \
                 zone, such as Europe/Berlin"
            )
        };
        let starts_number = text.starts_with(|c: char| c.is_ascii_digit() || c == '+' || c == '-');
        if !starts_number {
            return TimeZone::get(text).map(Self).map_err(|_| wrong());
        }
        let (sign, digits) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text.strip_prefix('+').unwrap_or(text)),
        };
        let parts: Vec<&str> = digits.split(':').collect();
        if parts.len() > 3 {
            return Err(wrong());
        }
        let mut seconds = 0;
        for (part, unit) in parts.iter().zip([3600, 60, 1]) {
            let short = part.len() <= 2 && part.bytes().all(|b| b.is_ascii_digit());
            let value: i32 = part.parse().ok().filter(|_| short).ok_or_else(wrong)?;
            if unit < 3600 && value > 59 {
                return Err(wrong());
            }
            seconds += value * unit;
        }
        let offset = Offset::from_seconds(sign * seconds).map_err(|_| wrong())?;
        Ok(Self(TimeZone::fixed(offset)))
    }

    /// Whether the clock is put forward and back with daylight saving.
    pub(crate) fn is_fixed(&self) -> bool {
        self.0.to_fixed_offset().is_ok()
    }

    /// Seconds since 1970 of a text: a number, a date and time on this clock, or one that says its
    /// own offset. Where the clock was put back, an hour comes twice: the second time where the
    /// first lies before `after`. None where it is no time.
    pub fn seconds(&self, text: &str, after: Option<f64>) -> Option<f64> {
        let text = text.trim();
        if let Ok(number) = text.parse::<f64>() {
            let seconds = if number.abs() > MOST_SECONDS { number / 1000.0 } else { number };
            return seconds.is_finite().then_some(seconds);
        }
        if let Ok(timestamp) = text.parse::<jiff::Timestamp>() {
            return Some(since_1970(timestamp));
        }
        let written: DateTime = text.parse().ok()?;
        let ambiguous = self.0.to_ambiguous_timestamp(written);
        match ambiguous.offset() {
            AmbiguousOffset::Fold { .. } => {
                let first = since_1970(ambiguous.earlier().ok()?);
                let second = since_1970(ambiguous.later().ok()?);
                Some(if after.is_some_and(|after| first < after) { second } else { first })
            }
            _ => Some(since_1970(ambiguous.compatible().ok()?)),
        }
    }
}

/// How moments are written: on which clock, and what plain numbers count.
///
/// ```
/// use portolan_io::{Clock, MomentFormat};
/// let usual = MomentFormat::default();
/// assert_eq!(usual.read("2024-05-01T12:30:00Z"), Ok(1_714_566_600.0));
/// assert_eq!(usual.read("1714566600"), Ok(1_714_566_600.0));
/// assert!(usual.read("2024-05-01 14:30").unwrap_err().contains("no zone"));
/// let summer = MomentFormat { clock: Some(Clock::parse("+2")?), ..usual };
/// assert_eq!(summer.read("2024-05-01 14:30"), Ok(1_714_566_600.0));
/// let minutes = MomentFormat { unit_s: Some(60.0), ..MomentFormat::default() };
/// assert_eq!(minutes.read("1.5"), Ok(90.0));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MomentFormat {
    /// The clock of times without a zone; None where they are refused.
    pub clock: Option<Clock>,
    /// Seconds that plain numbers count; None where they are seconds since 1970.
    pub unit_s: Option<f64>,
}

impl MomentFormat {
    /// The seconds of a moment, counted as those of the readings are.
    pub fn read(&self, text: &str) -> Result<f64, String> {
        if let (Some(unit_s), Ok(number)) = (self.unit_s, text.trim().parse::<f64>())
            && number.is_finite()
        {
            return Ok(unit_s * number);
        }
        if self.clock.is_none() && has_no_zone(text) {
            return Err(format!(
                "the time '{text}' has no zone: write it with one (2024-05-01T12:30:00Z or +02:00 \
                 behind it), or give --utc-offset"
            ));
        }
        self.clock.as_ref().unwrap_or(&Clock::UTC).seconds(text, None).ok_or_else(|| {
            format!(
                "'{text}': expected a time, such as 2024-05-01T12:30:00Z, or seconds since 1970"
            )
        })
    }
}

fn since_1970(time: jiff::Timestamp) -> f64 {
    time.as_second() as f64 + f64::from(time.subsec_nanosecond()) / 1e9
}

/// The time in a field of a table; NaN where it is empty.
pub(crate) fn time_of(line: &Line, column: usize, clock: &Clock) -> Check<f64> {
    let field = line.record.get(column).unwrap_or_default();
    if field.is_empty() {
        return Ok(f64::NAN);
    }
    // A number may have a decimal comma.
    if field.contains(',')
        && let Ok(number) = line.number(column)
        && let Some(seconds) = clock.seconds(&number.to_string(), None)
    {
        return Ok(seconds);
    }
    clock.seconds(field, None).ok_or_else(|| {
        line.wrong(column, "expected a time, such as 2024-05-01 12:30:00 or seconds since 1970")
    })
}

/// A column of times of a table of readings.
pub(crate) struct TimeColumn {
    column: usize,
    clock: Option<Clock>,
    unit_s: Option<f64>,
    zoneless: bool,
}

impl TimeColumn {
    pub fn new(column: usize, options: &SurveyOptions) -> Self {
        let (clock, unit_s) = (options.clock.clone(), options.time_unit_s);
        Self { column, clock, unit_s, zoneless: false }
    }

    /// The time of a line; NaN where it is empty.
    pub fn of(&mut self, line: &Line) -> Check<f64> {
        if let Some(unit) = self.unit_s {
            return Ok(unit * line.number(self.column)?);
        }
        let clock = self.clock.clone().unwrap_or(Clock::UTC);
        let found = time_of(line, self.column, &clock)?;
        let text = line.record.get(self.column).unwrap_or_default();
        self.zoneless |= self.clock.is_none() && has_no_zone(text);
        Ok(found)
    }

    pub fn warning(&self) -> Option<String> {
        self.zoneless.then(|| {
            "times have no zone: read as UTC; give the receiver's clock by --utc-offset (+02:00, \
             Europe/Berlin)"
                .into()
        })
    }
}

/// Whether a time means another moment on every clock.
fn has_no_zone(text: &str) -> bool {
    let other = Clock(TimeZone::fixed(Offset::constant(1)));
    Clock::UTC.seconds(text, None) != other.seconds(text, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_a_time() {
        let noon = 1_714_566_600.0;
        let clock = Clock::parse("+2").unwrap();
        for text in [
            "2024-05-01 14:30:00",
            "2024-05-01T14:30:00",
            "2024-05-01T12:30:00Z",
            "2024-05-01T08:30:00-04:00",
            "1714566600",
            "1714566600000",
        ] {
            assert_eq!(clock.seconds(text, None), Some(noon), "{text}");
        }
        let odd = Clock::parse("+02:00:13").unwrap();
        assert_eq!(odd.seconds("2024-05-01 14:30:13.250", None), Some(noon + 0.25));
        assert_eq!(Clock::parse("-0:30").unwrap().seconds("2024-05-01 12:00:00", None), Some(noon));
        for wrong in ["noon", "2024-13-01 00:00:00", "", "NaN"] {
            assert_eq!(clock.seconds(wrong, None), None, "{wrong}");
        }
        for wrong in ["+1:2:3:4", "+2:75", "+200", "x/y", ""] {
            assert!(Clock::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_hour_that_comes_twice() {
        let berlin = Clock::parse("Europe/Berlin").unwrap();
        let first = berlin.seconds("2024-10-27 02:30:00", None).unwrap();
        let second = berlin.seconds("2024-10-27 02:30:00", Some(first + 1.0)).unwrap();
        assert_eq!(second - first, 3600.0);
        assert!(!berlin.is_fixed() && Clock::UTC.is_fixed());
    }
}
