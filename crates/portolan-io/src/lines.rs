//! The lines of a table in text: commas, semicolons or tabs between the fields, quotes allowed,
//! lines that begin with # left out.

use csv::{ReaderBuilder, StringRecord, Trim};

use crate::error::{Check, Problem, quoted};
use crate::options::Unit;

/// The records of a table with their line numbers.
pub(crate) struct Lines<'a> {
    reader: csv::Reader<&'a [u8]>,
    decimal_comma: bool,
    /// How many fields every line must have; 0 = any number.
    pub columns: usize,
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
        Ok(Self { reader, decimal_comma: separator.is_some(), columns: 0 })
    }

    pub fn next(&mut self) -> Check<Option<Line>> {
        let mut record = StringRecord::new();
        let more = self.reader.read_record(&mut record).map_err(|error| {
            let line = error.position().map_or(0, |p| p.line());
            Problem::new(format!("line {line}: expected text in UTF-8"))
        })?;
        let number = record.position().map_or(0, |p| p.line());
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
