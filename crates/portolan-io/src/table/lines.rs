//! The lines of a table in text: commas, semicolons or tabs between the fields, quotes allowed,
//! lines that begin with # left out.

use std::collections::BTreeSet;

use csv::{ByteRecord, ReaderBuilder, StringRecord, Trim};

use super::filter::LineFilter;
use crate::error::{Check, Problem, quoted};
use crate::options::Unit;

/// Of so many lines one may be such that it cannot be read.
const ONE_OF: usize = 20;
/// Lines that cannot be read of which the first problems are shown.
const SHOWN: usize = 3;

/// The records of a table with their line numbers.
pub(crate) struct Lines<'a> {
    reader: csv::Reader<&'a [u8]>,
    counter: LineCounter<'a>,
    decimal_comma: bool,
    /// What its lines are called, where they are records of another format.
    record: Option<&'static str>,
    /// How many fields every line must have; 0 = any number.
    pub columns: usize,
    /// Lines that cannot be read end the reading.
    pub strict: bool,
    /// Which lines are wanted.
    pub filter: Option<LineFilter>,
    /// A column whose values are gathered.
    pub watched: Option<usize>,
    pub seen: BTreeSet<String>,
    read: usize,
    left_out: usize,
    latin: usize,
    bad: usize,
    problems: Vec<Problem>,
}

/// Values of a watched column that are gathered.
const MOST_SEEN: usize = 64;

/// Counts lines. The reader's own count is that of the place where it began to look for a record,
/// which is before comments, empty lines and the second half of a `\r\n`.
struct LineCounter<'a> {
    bytes: &'a [u8],
    at: usize,
    number: u64,
}

impl LineCounter<'_> {
    /// The line on which the record that was looked for from `position` begins.
    fn line(&mut self, position: Option<&csv::Position>) -> u64 {
        let from = position.map_or(0, |p| usize::try_from(p.byte()).unwrap_or(usize::MAX));
        while self.at < from.min(self.bytes.len()) {
            self.step();
        }
        let mut comment = false;
        while let Some(&byte) = self.bytes.get(self.at) {
            let ends = matches!(byte, b'\n' | b'\r');
            if !(comment || ends || byte == b'#') {
                break;
            }
            // Only a line feed ends a comment.
            comment = if comment { byte != b'\n' } else { byte == b'#' };
            self.step();
        }
        self.number
    }

    fn step(&mut self) {
        let is = |at: usize, byte: u8| self.bytes.get(at) == Some(&byte);
        let ends = is(self.at, b'\n') || (is(self.at, b'\r') && !is(self.at + 1, b'\n'));
        self.number += u64::from(ends);
        self.at += 1;
    }
}

/// One record.
pub(crate) struct Line {
    pub record: StringRecord,
    /// Line of the file, or record, from 1.
    pub number: u64,
    what: &'static str,
    decimal_comma: bool,
}

impl<'a> Lines<'a> {
    pub fn open(bytes: &'a [u8]) -> Check<Self> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let header = bytes
            .split(|b| matches!(b, b'\n' | b'\r'))
            .find(|line| !line.is_empty() && !line.starts_with(b"#"))
            .unwrap_or_default();
        let count = |mark: u8| header.iter().filter(|b| **b == mark).count();
        let separator = [b';', b'\t'].into_iter().find(|&mark| count(mark) > count(b','));
        let mut builder = ReaderBuilder::new();
        builder.comment(Some(b'#')).delimiter(separator.unwrap_or(b','));
        Ok(Self::new(builder, bytes, separator.is_some(), None))
    }

    /// The records of another format, which are a table with commas and numbers with points.
    pub fn of_records(bytes: &'a [u8], what: &'static str) -> Self {
        Self::new(ReaderBuilder::new(), bytes, false, Some(what))
    }

    fn new(
        mut builder: ReaderBuilder,
        bytes: &'a [u8],
        decimal_comma: bool,
        record: Option<&'static str>,
    ) -> Self {
        let builder = builder.has_headers(false).flexible(true).trim(Trim::All);
        let counter = LineCounter { bytes, at: 0, number: 1 };
        Self {
            reader: builder.from_reader(bytes),
            counter,
            decimal_comma,
            record,
            columns: 0,
            strict: true,
            filter: None,
            watched: None,
            seen: BTreeSet::new(),
            read: 0,
            left_out: 0,
            latin: 0,
            bad: 0,
            problems: Vec::new(),
        }
    }

    /// Whether these are the records of another format.
    pub fn are_records(&self) -> bool {
        self.record.is_some()
    }

    /// The next line that is wanted. Lines that cannot be read are passed over, unless all must be
    /// read.
    pub fn next(&mut self) -> Check<Option<Line>> {
        loop {
            let mut bytes = ByteRecord::new();
            let more = self.reader.read_byte_record(&mut bytes).map_err(|error| {
                let line = self.counter.line(error.position());
                Problem::new(format!("line {line}: {error}"))
            })?;
            let number = match self.record {
                Some(_) => self.read as u64 + 1,
                None => self.counter.line(bytes.position()),
            };
            if !more {
                return Ok(None);
            }
            // The header is none.
            self.read += usize::from(self.columns > 0);
            let mut record = match StringRecord::from_byte_record(bytes) {
                Ok(record) => record,
                Err(_) if self.strict => {
                    return Err(Problem::new(format!("line {number}: expected text in UTF-8")));
                }
                Err(error) => {
                    self.latin += 1;
                    let latin = |field: &[u8]| field.iter().map(|b| char::from(*b)).collect();
                    error.into_byte_record().iter().map(latin).collect::<Vec<String>>().into()
                }
            };
            if self.columns > 0 && record.len() > self.columns {
                // A separator too many at the end.
                if record.iter().skip(self.columns).all(str::is_empty) {
                    record.truncate(self.columns);
                }
            }
            if self.columns > 0 && record.len() != self.columns {
                let (found, expected) = (record.len(), self.columns);
                self.pass_over(Problem::new(format!(
                    "line {number}: {found} fields, expected {expected} as in the header"
                )))?;
                continue;
            }
            if self.filter.as_ref().is_some_and(|filter| !filter.keeps(&record)) {
                self.left_out += 1;
                continue;
            }
            if let Some(value) = self.watched.and_then(|column| record.get(column))
                && !value.is_empty()
                && self.seen.len() < MOST_SEEN
                && !self.seen.contains(value)
            {
                self.seen.insert(value.to_string());
            }
            let what = self.record.unwrap_or("line");
            return Ok(Some(Line { record, number, what, decimal_comma: self.decimal_comma }));
        }
    }

    /// Counts a line that cannot be read.
    pub fn pass_over(&mut self, problem: Problem) -> Check<()> {
        if self.strict {
            return Err(problem);
        }
        self.bad += 1;
        if self.problems.len() < SHOWN {
            self.problems.push(problem);
        }
        Ok(())
    }

    /// Says what was not read; too much of it is an error.
    pub fn finish(&mut self, warnings: &mut Vec<String>) -> Check<()> {
        if self.left_out > 0 {
            warnings.push(format!("{} line(s) are left out by --where", self.left_out));
        }
        if self.latin > 0 {
            warnings.push(format!("{} line(s) are not UTF-8: read as Latin-1", self.latin));
        }
        if self.bad == 0 {
            return Ok(());
        }
        let said: Vec<String> = self.problems.iter().map(Problem::to_string).collect();
        if self.bad * ONE_OF > self.read {
            return Err(match self.bad {
                1 => self.problems[0].clone(),
                bad => Problem::new(format!(
                    "{}; {bad} of {} lines cannot be read",
                    self.problems[0], self.read
                )),
            });
        }
        warnings.push(format!(
            "{} of {} lines cannot be read and are left out: {}; --strict refuses them",
            self.bad,
            self.read,
            said.join("; ")
        ));
        Ok(())
    }
}

impl Line {
    pub fn fields(&self) -> Vec<&str> {
        self.record.iter().collect()
    }

    pub fn wrong(&self, column: usize, what: &str) -> Problem {
        let field = quoted(self.record.get(column).unwrap_or_default());
        Problem::new(format!("{}, column {}: {field}, {what}", self.place(), column + 1))
    }

    /// Where it stands in the file, as `line 3`.
    pub fn place(&self) -> String {
        format!("{} {}", self.what, self.number)
    }

    /// A finite number; NaN where the field is empty or says that it is missing.
    pub fn number(&self, column: usize) -> Check<f64> {
        let field = self.record.get(column).unwrap_or_default();
        if ["", "nan", "na", "n/a"].iter().any(|missing| field.eq_ignore_ascii_case(missing)) {
            return Ok(f64::NAN);
        }
        let parse = |text: &str| match self.decimal_comma {
            true => text.replacen(',', ".", 1).parse::<f64>(),
            false => text.parse::<f64>(),
        };
        // Some write the unit behind every value: -99 dBm.
        let bare = || {
            let end = field.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '°');
            let unit = field[end.len()..].to_ascii_lowercase();
            ["dbm", "db", "mhz", "khz", "ghz", "hz", "m", "°"]
                .contains(&unit.as_str())
                .then_some(end)
        };
        match parse(field).or_else(|error| bare().map_or(Err(error), |bare| parse(bare.trim_end())))
        {
            Ok(value) if value.is_finite() => Ok(value),
            _ => Err(self.wrong(column, "expected a finite number or nothing")),
        }
    }

    /// Linear power, NaN = missing.
    pub fn power(&self, column: usize, unit: Unit) -> Check<f64> {
        let power = unit.to_linear(self.number(column)?);
        if power < 0.0 {
            let what = "power in linear units cannot be negative: pass --unit dbm if it is in dBm";
            return Err(self.wrong(column, what));
        }
        if power.is_infinite() {
            return Err(self.wrong(column, "expected a power that a number can hold"));
        }
        Ok(power)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first field of every record and the line it is on.
    fn numbers(text: &str) -> Vec<(String, u64)> {
        let mut lines = Lines::open(text.as_bytes()).unwrap();
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            found.push((line.record[0].to_owned(), line.number));
        }
        found
    }

    #[test]
    fn lines_are_counted_alike_whatever_ends_them() {
        let text = "# note\na,b\n1,2\n\n# a, \"note\"\n3,4\n\"5\n\",6\n7,8";
        let expected =
            [("a", 2), ("1", 3), ("3", 6), ("5", 7), ("7", 9)].map(|(s, n)| (s.to_owned(), n));
        assert_eq!(numbers(text), expected);
        assert_eq!(numbers(&text.replace('\n', "\r\n")), expected);
        assert_eq!(numbers(&format!("\u{feff}{text}\r\n\r\n")), expected);
        let old_mac = numbers("a,b\r1,2\r\r3,4\r");
        assert_eq!(old_mac.iter().map(|(_, line)| *line).collect::<Vec<_>>(), [1, 2, 4]);
    }
}
