//! Files of other programs as one thing: a header and records of text fields. The table reader takes
//! them from here, so names of columns, units, doubts, `--where` and `--columns` work alike for every
//! format. [`kinds::KINDS`] has one entry for each format that is read.

mod archive;
mod crs;
mod geojson;
mod geopackage;
mod json;
pub(crate) mod kinds;
mod kismet_xml;
mod kml;
mod shapefile;
pub(crate) mod sigmf;
mod sqlite;
mod xlsx;
mod xml;

use std::collections::{HashMap, HashSet};
use std::path::Path;

use portolan::Crs;

use crate::error::{Check, Problem, quoted};
use crate::options::ReadOptions;
use crate::source::Source;
use crate::table::{is_band_name, is_position, role_of};
pub(crate) use crs::OwnCrs;

/// Fields that a small file may make at least, and fields for each of its bytes.
const FIELDS: usize = 1 << 22;
const FIELDS_PER_BYTE: usize = 16;

/// Columns of a file at most.
const MOST_COLUMNS: usize = 20_000;

/// An open file, where it lies and what the caller says of it.
pub(crate) struct Input<'a> {
    pub source: &'a mut Source,
    pub path: &'a Path,
    pub options: &'a ReadOptions,
}

impl Input<'_> {
    /// The whole file.
    pub fn bytes(&mut self) -> Check<Vec<u8>> {
        if let Source::Memory(bytes) = self.source {
            return Ok(bytes.clone());
        }
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut self.source.stream()?, &mut bytes)
            .map_err(|error| Problem::new(format!("reading stopped: {error}")))?;
        Ok(bytes)
    }
}

/// Records with named fields. A field that a record lacks is empty.
pub(crate) struct Records {
    /// What a record is called in messages.
    pub what: &'static str,
    names: Vec<String>,
    index: HashMap<String, u32>,
    rows: Vec<Vec<(u32, String)>>,
    /// The system of x_m and y_m, where the file says it.
    pub crs: Option<Crs>,
    /// What the caller should know.
    pub notes: Vec<String>,
    left: usize,
    most: usize,
}

impl Records {
    /// No records yet, out of a file of so many bytes.
    pub fn new(what: &'static str, bytes: usize) -> Self {
        let most = FIELDS.max(bytes.saturating_mul(FIELDS_PER_BYTE));
        Self {
            what,
            names: Vec::new(),
            index: HashMap::new(),
            rows: Vec::new(),
            crs: None,
            notes: Vec::new(),
            left: most,
            most,
        }
    }

    pub fn count(&self) -> usize {
        self.rows.len()
    }

    /// A column, whether or not a record has it. Small and large letters are one name.
    pub fn column(&mut self, name: &str) -> Check<u32> {
        let key = name.trim().to_lowercase();
        if let Some(column) = self.index.get(&key) {
            return Ok(*column);
        }
        if self.names.len() >= MOST_COLUMNS {
            return Err(Problem::new(format!(
                "more than {MOST_COLUMNS} different names of fields"
            )));
        }
        let column = self.names.len() as u32;
        self.names.push(name.to_string());
        self.index.insert(key, column);
        Ok(column)
    }

    /// Begins a record.
    pub fn begin(&mut self) {
        self.rows.push(Vec::new());
    }

    /// A field of the last record; nameless ones are left out.
    pub fn put(&mut self, name: &str, text: impl Into<String>) -> Check<()> {
        if name.trim().is_empty() {
            return Ok(());
        }
        let column = self.column(name)?;
        self.put_in(column, text.into())
    }

    /// A field of the last record in a known column.
    pub fn put_in(&mut self, column: u32, text: String) -> Check<()> {
        // A long text counts as many.
        let cost = 1 + text.len() / 8;
        self.left = self.left.checked_sub(cost).ok_or_else(|| self.too_large())?;
        if let Some(row) = self.rows.last_mut() {
            row.push((column, text));
        }
        Ok(())
    }

    fn too_large(&self) -> Problem {
        let (records, names) = (self.rows.len(), self.names.len());
        Problem::new(format!(
            "{records} records with {names} different names of fields are too large a table"
        ))
    }

    /// As a table in text with commas, every field in quotes.
    pub fn table(&mut self) -> Check<Vec<u8>> {
        if self.rows.is_empty() || self.names.is_empty() {
            return Err(Problem::new(format!("holds no {}s with fields", self.what)));
        }
        if self.rows.len().saturating_mul(self.names.len()) > self.most {
            return Err(self.too_large());
        }
        self.shorten();
        let failed = |error: csv::Error| Problem::new(error.to_string());
        let mut writer =
            csv::WriterBuilder::new().quote_style(csv::QuoteStyle::Always).from_writer(Vec::new());
        writer.write_record(&self.names).map_err(failed)?;
        let mut fields: Vec<&str> = Vec::new();
        for row in &self.rows {
            fields.clear();
            fields.resize(self.names.len(), "");
            row.iter().for_each(|(column, text)| fields[*column as usize] = text);
            writer.write_record(&fields).map_err(failed)?;
        }
        writer.into_inner().map_err(|error| Problem::new(error.to_string()))
    }

    /// Gives a nested field its last name alone (`location.lat` becomes `lat`) where the table reader
    /// knows that name and no other column is meant by it. The place of a gateway is none of a reading.
    fn shorten(&mut self) {
        let leaf = |name: &str| name.rsplit('.').next().unwrap_or_default().trim().to_string();
        let of_receiver = |name: &str| {
            let parts = name.to_ascii_lowercase();
            let (parts, _) = parts.rsplit_once('.').unwrap_or_default();
            let known = ["rx_metadata", "gateway", "gateways", "hotspot", "hotspots", "rxinfo"];
            parts.split('.').any(|part| known.contains(&part))
        };
        let meant: Vec<Option<String>> = self
            .names
            .iter()
            .map(|name| {
                let leaf = leaf(name);
                match role_of(&leaf) {
                    Some(_) if is_position(&leaf) && of_receiver(name) => None,
                    Some(role) => Some(format!("{role:?}")),
                    None => is_band_name(&leaf).then(|| leaf.to_ascii_lowercase()),
                }
            })
            .collect();
        let mut times: HashMap<&str, usize> = HashMap::new();
        meant.iter().flatten().for_each(|role| *times.entry(role).or_default() += 1);
        let mut taken: HashSet<String> = self.names.iter().cloned().collect();
        let short: Vec<(usize, String)> = (0..self.names.len())
            .filter(|&c| meant[c].as_deref().is_some_and(|role| times.get(role) == Some(&1)))
            .filter(|&c| self.names[c].contains('.'))
            .map(|c| (c, leaf(&self.names[c])))
            .collect();
        for (column, name) in short {
            if taken.insert(name.clone()) {
                self.names[column] = name;
            }
        }
    }
}

/// A text out of a file for a message, without the name of the library that read it.
pub(crate) fn damaged(what: &str, error: impl std::fmt::Display) -> Problem {
    Problem::new(format!("damaged {what}: {}", quoted(&error.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_names_are_shortened_where_one_is_meant() {
        let mut records = Records::new("record", 100);
        records.begin();
        for name in ["gps.lat", "gps.lon", "radio.rssi", "rx_metadata.lat", "a.note", "b.note"] {
            records.put(name, "1").unwrap();
        }
        let text = String::from_utf8(records.table().unwrap()).unwrap();
        let header = text.lines().next().unwrap().replace('"', "");
        assert_eq!(header, "lat,lon,rssi,rx_metadata.lat,a.note,b.note");
    }

    #[test]
    fn tables_are_bounded_by_the_file() {
        let mut records = Records::new("record", 100);
        for n in 0..5000 {
            records.begin();
            records.put(&format!("name{n}"), "1").unwrap();
        }
        assert!(records.table().unwrap_err().to_string().contains("too large"));
    }
}
