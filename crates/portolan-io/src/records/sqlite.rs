//! The tables of a SQLite file, read only (the file format of sqlite.org/fileformat2.html): table
//! b-trees and overflow pages. Indexes and a write-ahead log are not read.

use std::collections::HashSet;

use crate::error::{Check, Problem, quoted};

/// Its first bytes.
pub(super) const MAGIC: &[u8] = b"SQLite format 3\0";

/// Levels of a tree; a file of 2^64 rows has fewer.
const DEEPEST: usize = 40;

/// A field of a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Null,
    Integer(i64),
    Real(f64),
    Text(std::borrow::Cow<'a, [u8]>),
    Blob(std::borrow::Cow<'a, [u8]>),
}

impl Value<'_> {
    /// As a field of a record; empty for a blob.
    pub fn text(&self) -> String {
        match self {
            Value::Null | Value::Blob(_) => String::new(),
            Value::Integer(number) => number.to_string(),
            Value::Real(number) => number.to_string(),
            Value::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        }
    }
}

/// A table of a database.
#[derive(Clone, Debug)]
pub(super) struct SqlTable {
    pub name: String,
    pub columns: Vec<String>,
    root: u32,
    /// The column that is the number of the row, which its record leaves empty.
    row_id: Option<usize>,
}

impl SqlTable {
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|own| own.eq_ignore_ascii_case(name))
    }
}

/// A database in memory.
pub(super) struct Database<'a> {
    bytes: &'a [u8],
    page: usize,
    /// Bytes of a page that are used.
    usable: usize,
}

fn damaged(what: &str) -> Problem {
    Problem::new(format!("damaged SQLite file: {what}"))
}

impl<'a> Database<'a> {
    pub fn open(bytes: &'a [u8]) -> Check<Self> {
        if !bytes.starts_with(MAGIC) || bytes.len() < 100 {
            return Err(damaged("its header is cut short"));
        }
        let page = match u16::from_be_bytes([bytes[16], bytes[17]]) {
            1 => 65_536,
            size => usize::from(size),
        };
        if !page.is_power_of_two() || page < 512 {
            return Err(damaged(&format!("pages of {page} bytes")));
        }
        if bytes[56..60] != [0, 0, 0, 1] && bytes[56..60] != [0, 0, 0, 0] {
            return Err(Problem::new("a SQLite file with text in UTF-16, expected UTF-8"));
        }
        let usable = page - usize::from(bytes[20]);
        if usable < 480 {
            return Err(damaged("its pages are too small"));
        }
        Ok(Self { bytes, page, usable })
    }

    /// The tables that have a b-tree of rows.
    pub fn tables(&self) -> Check<Vec<SqlTable>> {
        let schema = SqlTable { name: "schema".into(), columns: vec![], root: 1, row_id: None };
        let mut tables = Vec::new();
        self.rows(&schema, |row| {
            let text = |at: usize| row.get(at).map(Value::text).unwrap_or_default();
            let (kind, name, sql) = (text(0), text(1), text(4));
            let root = match row.get(3) {
                Some(Value::Integer(root)) => u32::try_from(*root).unwrap_or(0),
                _ => 0,
            };
            let plain = !sql.to_ascii_uppercase().contains("WITHOUT ROWID");
            if kind == "table" && root > 0 && plain {
                let (columns, row_id) = columns_of(&sql);
                tables.push(SqlTable { name, columns, root, row_id });
            }
            Ok(())
        })?;
        Ok(tables)
    }

    fn page(&self, number: u32) -> Check<&'a [u8]> {
        let start = (number as usize).checked_sub(1).and_then(|n| n.checked_mul(self.page));
        let found = start.and_then(|start| self.bytes.get(start..start.checked_add(self.page)?));
        found.ok_or_else(|| damaged(&format!("page {number} is not in the file")))
    }

    /// Every row of a table, in the order of its numbers.
    pub fn rows(
        &self,
        table: &SqlTable,
        mut see: impl FnMut(&[Value<'_>]) -> Check<()>,
    ) -> Check<()> {
        let mut seen = HashSet::new();
        // Rows do not share bytes: more than the file has are a trap.
        let mut left = self.bytes.len();
        // Pages yet to read, the next last, with their depth.
        let mut pages = vec![(table.root, 0)];
        while let Some((number, depth)) = pages.pop() {
            if depth > DEEPEST || !seen.insert(number) {
                return Err(damaged("a page of a table is in it twice"));
            }
            let page = self.page(number)?;
            let header = if number == 1 { 100 } else { 0 };
            let cells = usize::from(u16_at(page, header + 3)?);
            match page[header] {
                5 => {
                    pages.push((u32_at(page, header + 8)?, depth + 1));
                    for cell in (0..cells).rev() {
                        let at = usize::from(u16_at(page, header + 12 + 2 * cell)?);
                        pages.push((u32_at(page, at)?, depth + 1));
                    }
                }
                13 => {
                    for cell in 0..cells {
                        let at = usize::from(u16_at(page, header + 8 + 2 * cell)?);
                        let (row_id, payload) = self.cell(page, at)?;
                        let rest = left.checked_sub(payload.len().max(1));
                        left = rest.ok_or_else(|| damaged("its rows overlap"))?;
                        let mut row = record(&payload)?;
                        if let Some(value) = table.row_id.and_then(|column| row.get_mut(column))
                            && *value == Value::Null
                        {
                            *value = Value::Integer(row_id);
                        }
                        see(&row)?;
                    }
                }
                kind => return Err(damaged(&format!("page {number} of kind {kind} in a table"))),
            }
        }
        Ok(())
    }

    /// The number and the bytes of a row, with those on overflow pages.
    fn cell(&self, page: &'a [u8], at: usize) -> Check<(i64, std::borrow::Cow<'a, [u8]>)> {
        let mut at = at;
        let length = usize::try_from(varint(page, &mut at)?).unwrap_or(usize::MAX);
        let row_id = varint(page, &mut at)?;
        if length > self.bytes.len() {
            return Err(damaged("a row is longer than the file"));
        }
        let most = self.usable - 35;
        if length <= most {
            return Ok((row_id, piece(page, at, length)?.into()));
        }
        let least = (self.usable - 12) * 32 / 255 - 23;
        let kept = least + (length - least) % (self.usable - 4);
        let kept = if kept <= most { kept } else { least };
        let mut payload = piece(page, at, kept)?.to_vec();
        let mut next = u32_at(page, at + kept)?;
        while payload.len() < length {
            let page = self.page(next)?;
            let rest = (length - payload.len()).min(self.usable - 4);
            payload.extend_from_slice(piece(page, 4, rest)?);
            next = u32_at(page, 0)?;
        }
        Ok((row_id, payload.into()))
    }
}

fn piece(bytes: &[u8], at: usize, length: usize) -> Check<&[u8]> {
    at.checked_add(length).and_then(|end| bytes.get(at..end)).ok_or_else(|| damaged("a row is cut"))
}

fn u16_at(bytes: &[u8], at: usize) -> Check<u16> {
    Ok(u16::from_be_bytes(piece(bytes, at, 2)?.try_into().unwrap_or_default()))
}

fn u32_at(bytes: &[u8], at: usize) -> Check<u32> {
    Ok(u32::from_be_bytes(piece(bytes, at, 4)?.try_into().unwrap_or_default()))
}

/// A number of one to nine bytes.
fn varint(bytes: &[u8], at: &mut usize) -> Check<i64> {
    let mut value = 0u64;
    for place in 0..9 {
        let byte = piece(bytes, *at, 1)?[0];
        *at += 1;
        if place == 8 {
            return Ok(((value << 8) | u64::from(byte)) as i64);
        }
        value = (value << 7) | u64::from(byte & 0x7f);
        if byte < 0x80 {
            break;
        }
    }
    Ok(value as i64)
}

/// The fields of a row.
fn record(payload: &[u8]) -> Check<Vec<Value<'_>>> {
    let mut at = 0;
    let header = usize::try_from(varint(payload, &mut at)?).unwrap_or(usize::MAX);
    let (mut body, mut row) = (header, Vec::new());
    while at < header {
        let kind = varint(payload, &mut at)?;
        let mut take = |length: usize| -> Check<&[u8]> {
            let taken = piece(payload, body, length)?;
            body += length;
            Ok(taken)
        };
        row.push(match kind {
            0 => Value::Null,
            1..=6 => {
                let bytes = take([1, 2, 3, 4, 6, 8][kind as usize - 1])?;
                let negative = bytes[0] >= 0x80;
                let start = if negative { -1i64 } else { 0 };
                Value::Integer(bytes.iter().fold(start, |sum, b| (sum << 8) | i64::from(*b)))
            }
            7 => Value::Real(f64::from_be_bytes(take(8)?.try_into().unwrap_or_default())),
            8 | 9 => Value::Integer(kind - 8),
            12.. => {
                let bytes = take(usize::try_from((kind - 12) / 2).unwrap_or(usize::MAX))?;
                match kind % 2 {
                    0 => Value::Blob(bytes.into()),
                    _ => Value::Text(bytes.into()),
                }
            }
            _ => return Err(damaged("a field of an unknown kind")),
        });
    }
    Ok(row)
}

/// The names of the columns of a `CREATE TABLE`, and which one is the number of the row.
fn columns_of(sql: &str) -> (Vec<String>, Option<usize>) {
    let inside = sql.split_once('(').map_or("", |(_, rest)| rest);
    let (mut parts, mut part, mut depth, mut quote) = (Vec::new(), String::new(), 0usize, None);
    for c in inside.chars() {
        match (quote, c) {
            (Some(end), _) => quote = (c != end).then_some(end),
            (None, '"' | '`' | '\'') => quote = Some(c),
            (None, '[') => quote = Some(']'),
            (None, '(') => depth += 1,
            (None, ')') if depth == 0 => break,
            (None, ')') => depth -= 1,
            (None, ',') if depth == 0 => {
                parts.push(std::mem::take(&mut part));
                continue;
            }
            _ => {}
        }
        part.push(c);
    }
    parts.push(part);
    let (mut names, mut row_id) = (Vec::new(), None);
    for part in parts {
        let part = part.trim();
        let first = part.split_whitespace().next().unwrap_or_default().to_ascii_uppercase();
        let word = first.split('(').next().unwrap_or_default();
        if part.is_empty()
            || ["PRIMARY", "UNIQUE", "CHECK", "FOREIGN", "CONSTRAINT"].contains(&word)
        {
            continue;
        }
        let (name, rest) = match part.chars().next() {
            Some(open @ ('"' | '`' | '\'' | '[')) => {
                let close = if open == '[' { ']' } else { open };
                part[1..].split_once(close).unwrap_or((&part[1..], ""))
            }
            _ => part.split_once(char::is_whitespace).unwrap_or((part, "")),
        };
        let rest = rest.trim().to_ascii_uppercase();
        if rest.starts_with("INTEGER") && rest.contains("PRIMARY KEY") {
            row_id = Some(names.len());
        }
        names.push(name.to_string());
    }
    (names, row_id)
}

/// Refuses a file without any of the tables that are wanted, and names those that it has.
pub(super) fn no_tables(tables: &[SqlTable], wanted: &str) -> Problem {
    let names: Vec<String> = tables.iter().take(8).map(|table| quoted(&table.name)).collect();
    let names = if names.is_empty() { "none".to_string() } else { names.join(", ") };
    Problem::new(format!("a SQLite file without {wanted}; tables seen: {names}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_a_table() {
        let sql = "CREATE TABLE \"a b\" (fid INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, \"my, geom\" \
                   POINT, [x] REAL DEFAULT (1+(2)), d DECIMAL(10,2), UNIQUE (x, d))";
        let (names, row_id) = columns_of(sql);
        assert_eq!(
            (names, row_id),
            (["fid", "my, geom", "x", "d"].map(String::from).into(), Some(0))
        );
    }

    #[test]
    fn numbers_of_all_lengths() {
        let mut at = 0;
        assert_eq!(varint(&[0x81, 0x00], &mut at).unwrap(), 128);
        assert_eq!(varint(&[0xff; 9], &mut 0).unwrap(), -1);
        assert!(varint(&[0x80], &mut 0).is_err());
        let row = record(&[5, 1, 9, 17, 0, 0xfe, b'a', b'b']).unwrap();
        assert_eq!(row[0], Value::Integer(-2));
        assert_eq!((row[1].clone(), row[2].text()), (Value::Integer(1), "ab".to_string()));
    }
}
