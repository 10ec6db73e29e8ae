//! The lines of a table in text: commas, semicolons or tabs between the fields, quotes allowed,
//! lines that begin with # left out.

use csv::{ReaderBuilder, StringRecord, Trim};

use crate::error::{Check, Problem, quoted};
use crate::options::Unit;

/// The records of a table with their line numbers.
pub(crate) struct Lines<'a> {
    reader: csv::Reader<&'a [u8]>,
    counter: LineCounter<'a>,
    decimal_comma: bool,
    /// How many fields every line must have; 0 = any number.
    pub columns: usize,
}

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
    /// Line of the file, from 1.
    pub number: u64,
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
        let reader = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .trim(Trim::All)
            .comment(Some(b'#'))
            .delimiter(separator.unwrap_or(b','))
            .from_reader(bytes);
        let counter = LineCounter { bytes, at: 0, number: 1 };
        Ok(Self { reader, counter, decimal_comma: separator.is_some(), columns: 0 })
    }

    pub fn next(&mut self) -> Check<Option<Line>> {
        let mut record = StringRecord::new();
        let more = self.reader.read_record(&mut record).map_err(|error| {
            let line = self.counter.line(error.position());
            Problem::new(format!("line {line}: expected text in UTF-8"))
        })?;
        let number = self.counter.line(record.position());
        if more && self.columns > 0 && record.len() != self.columns {
            let (found, expected) = (record.len(), self.columns);
            return Err(Problem::new(format!(
                "line {number}: {found} fields, expected {expected} as in the header"
            )));
        }
        Ok(more.then_some(Line { record, number, decimal_comma: self.decimal_comma }))
    }
}

impl Line {
    pub fn fields(&self) -> Vec<&str> {
        self.record.iter().collect()
    }

    pub fn wrong(&self, column: usize, what: &str) -> Problem {
        let field = quoted(self.record.get(column).unwrap_or_default());
        Problem::new(format!("line {}, column {}: {field}, {what}", self.number, column + 1))
    }

    /// A finite number; NaN where the field is empty or says that it is missing.
    pub fn number(&self, column: usize) -> Check<f64> {
        let field = self.record.get(column).unwrap_or_default();
        if ["", "nan", "na", "n/a"].iter().any(|missing| field.eq_ignore_ascii_case(missing)) {
            return Ok(f64::NAN);
        }
        let parsed = match self.decimal_comma {
            true => field.replacen(',', ".", 1).parse::<f64>(),
            false => field.parse::<f64>(),
        };
        match parsed {
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
