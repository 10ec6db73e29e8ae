//! The first sheet of an Excel workbook (ECMA-376 part 1, SpreadsheetML) as records: its first row of
//! two cells or more is the header. Numbers with a style of dates are dates; their clock has no zone.

use std::collections::HashMap;

use quick_xml::events::{BytesStart, Event};

use super::archive::Archive;
use super::xml::{Events, attribute, gather_text, text_of};
use super::{Input, Records};
use crate::error::{Check, Problem, quoted};

/// Columns of a sheet, XFD the last.
const MOST_COLUMNS: usize = 16_384;

/// Days from 30 December 1899, and from 1 January 1904, to 1970.
const DAYS_1900: f64 = 25_569.0;
const DAYS_1904: f64 = 24_107.0;

pub(super) fn read(input: &mut Input<'_>) -> Check<Records> {
    let mut archive = Archive::open(input)?;
    let mut part = |name: &str| -> Check<Option<String>> {
        Ok(archive.file(name)?.map(|bytes| text_of(&bytes)))
    };
    let book = part("xl/workbook.xml")?.ok_or_else(|| Problem::new("a workbook without sheets"))?;
    let links = part("xl/_rels/workbook.xml.rels")?.unwrap_or_default();
    let book = Book::of(&book, &links)?;
    let strings = part("xl/sharedStrings.xml")?.map_or(Ok(Vec::new()), |text| strings(&text))?;
    let dates = part("xl/styles.xml")?.map_or(Ok(Vec::new()), |text| date_styles(&text))?;
    let missing = || Problem::new(format!("a workbook without its sheet {}", quoted(&book.part)));
    let sheet = part(&book.part)?.ok_or_else(missing)?;
    let mut records = Records::new("row", sheet.len());
    if book.sheets > 1 {
        let (name, sheets) = (quoted(&book.name), book.sheets);
        records.notes.push(format!("the first of {sheets} sheets, {name}, is read"));
    }
    let known = Sheet { strings, dates, days: book.days };
    known.rows(&sheet, &mut records)?;
    Ok(records)
}

/// Which part is the first sheet.
struct Book {
    name: String,
    part: String,
    sheets: usize,
    /// Days from the first day of the workbook's clock to 1970.
    days: f64,
}

impl Book {
    fn of(text: &str, links: &str) -> Check<Self> {
        let mut book = Self {
            name: String::new(),
            part: "xl/worksheets/sheet1.xml".into(),
            sheets: 0,
            days: DAYS_1900,
        };
        let mut id = String::new();
        each_start(text, |element| match element.local_name().as_ref() {
            "sheet" => {
                if book.sheets == 0 {
                    // `r:id`, whose prefix is gone; `sheetId` has its own name.
                    (book.name, id) = (attribute(element, "name"), attribute(element, "id"));
                }
                book.sheets += 1;
            }
            "workbookPr" if ["1", "true"].contains(&&*attribute(element, "date1904")) => {
                book.days = DAYS_1904;
            }
            _ => {}
        })?;
        each_start(links, |element| {
            let own = element.local_name().as_ref() == "Relationship";
            if own && attribute(element, "Id") == id {
                let target = attribute(element, "Target");
                book.part = match target.strip_prefix('/') {
                    Some(whole) => whole.to_string(),
                    None => format!("xl/{target}"),
                };
            }
        })?;
        Ok(book)
    }
}

fn each_start(text: &str, mut see: impl FnMut(&BytesStart<'_>)) -> Check<()> {
    let mut events = Events::of(text, "a workbook");
    while let Some(event) = events.next()? {
        if let Event::Start(element) = event {
            see(&element);
        }
    }
    Ok(())
}

/// The shared strings, without the readings aloud beside them.
fn strings(text: &str) -> Check<Vec<String>> {
    let mut events = Events::of(text, "a workbook");
    let (mut found, mut said, mut own) = (Vec::new(), String::new(), false);
    let mut aloud = false;
    while let Some(event) = events.next()? {
        if own && !aloud {
            gather_text(&event, &mut said);
        }
        match &event {
            Event::Start(element) => match element.local_name().as_ref() {
                "t" => own = true,
                "rPh" => aloud = true,
                _ => {}
            },
            Event::End(element) => match element.local_name().as_ref() {
                "t" => own = false,
                "rPh" => aloud = false,
                "si" => found.push(std::mem::take(&mut said)),
                _ => {}
            },
            _ => {}
        }
    }
    Ok(found)
}

/// Which styles of cells show a number as a date.
fn date_styles(text: &str) -> Check<Vec<bool>> {
    let mut codes: HashMap<String, bool> = HashMap::new();
    let (mut styles, mut of_cells) = (Vec::new(), false);
    let mut events = Events::of(text, "a workbook");
    while let Some(event) = events.next()? {
        match &event {
            Event::Start(element) => match element.local_name().as_ref() {
                "numFmt" => {
                    let code = attribute(element, "formatCode");
                    codes.insert(attribute(element, "numFmtId"), is_date(&code));
                }
                "cellXfs" => of_cells = true,
                "xf" if of_cells => {
                    let id = attribute(element, "numFmtId");
                    let known =
                        || matches!(id.parse().unwrap_or(0), 14..=22 | 27..=36 | 45..=47 | 50..=58);
                    styles.push(codes.get(&id).copied().unwrap_or_else(known));
                }
                _ => {}
            },
            Event::End(element) if element.local_name().as_ref() == "cellXfs" => of_cells = false,
            _ => {}
        }
    }
    Ok(styles)
}

/// Whether a format of numbers has years, days, hours or seconds.
fn is_date(code: &str) -> bool {
    let (mut quoted, mut bracket, mut escaped) = (false, false, false);
    for c in code.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' | '_' | '*' => escaped = true,
            '"' => quoted = !quoted,
            '[' => bracket = true,
            ']' => bracket = false,
            'y' | 'Y' | 'd' | 'D' | 'h' | 'H' | 's' | 'S' if !quoted && !bracket => return true,
            _ => {}
        }
    }
    false
}

struct Sheet {
    strings: Vec<String>,
    dates: Vec<bool>,
    days: f64,
}

impl Sheet {
    fn rows(&self, text: &str, records: &mut Records) -> Check<()> {
        let mut events = Events::of(text, "a workbook");
        let mut header: Option<Vec<(usize, String)>> = None;
        let mut row: Vec<(usize, String)> = Vec::new();
        let (mut column, mut kind, mut style) = (0, String::new(), String::new());
        let (mut said, mut own) = (String::new(), false);
        while let Some(event) = events.next()? {
            if own {
                gather_text(&event, &mut said);
            }
            match &event {
                Event::Start(element) => match element.local_name().as_ref() {
                    "row" => (row, column) = (Vec::new(), 0),
                    "c" => {
                        column = column_of(&attribute(element, "r")).unwrap_or(column + 1);
                        (kind, style) = (attribute(element, "t"), attribute(element, "s"));
                        said.clear();
                    }
                    "v" | "t" => own = true,
                    _ => {}
                },
                Event::End(element) => match element.local_name().as_ref() {
                    "v" | "t" => own = false,
                    "c" if column <= MOST_COLUMNS => {
                        let value = self.value(&said, &kind, &style)?;
                        if !value.trim().is_empty() {
                            row.push((column, value));
                        }
                    }
                    "row" if !row.is_empty() => match &header {
                        None if row.len() > 1 => header = Some(std::mem::take(&mut row)),
                        None => {}
                        Some(names) => add(names, &mut row, records)?,
                    },
                    _ => {}
                },
                _ => {}
            }
        }
        for (_, name) in header.iter().flatten() {
            records.column(name)?;
        }
        Ok(())
    }

    fn value(&self, said: &str, kind: &str, style: &str) -> Check<String> {
        match kind {
            "s" => {
                let index: Option<usize> = said.trim().parse().ok();
                let text = index.and_then(|index| self.strings.get(index)).cloned();
                text.ok_or_else(|| {
                    Problem::new(format!("damaged workbook: no shared text {}", quoted(said)))
                })
            }
            // An error such as #N/A is no value.
            "e" => Ok(String::new()),
            "" | "n" => {
                let date = style.parse().ok().and_then(|style: usize| self.dates.get(style));
                let number = said.trim().parse::<f64>().ok().filter(|_| date == Some(&true));
                Ok(number.and_then(|n| self.date(n)).unwrap_or_else(|| said.to_string()))
            }
            _ => Ok(said.to_string()),
        }
    }

    /// The date and time of a number of days.
    fn date(&self, days: f64) -> Option<String> {
        let ms = ((days - self.days) * 86_400_000.0).round();
        let moment =
            jiff::Timestamp::from_millisecond((ms.abs() < 1e15).then_some(ms as i64)?).ok()?;
        Some(jiff::tz::TimeZone::UTC.to_datetime(moment).to_string())
    }
}

fn add(
    names: &[(usize, String)],
    row: &mut Vec<(usize, String)>,
    records: &mut Records,
) -> Check<()> {
    records.begin();
    for (column, text) in row.drain(..) {
        if let Ok(at) = names.binary_search_by_key(&column, |(column, _)| *column) {
            records.put(&names[at].1, text)?;
        }
    }
    Ok(())
}

/// The number of a column from 1, of a cell such as `AB12`.
fn column_of(cell: &str) -> Option<usize> {
    let letters = cell.bytes().take_while(u8::is_ascii_uppercase).take(4);
    let number = letters.fold(0usize, |sum, b| 26 * sum + usize::from(b - b'A') + 1);
    (number > 0).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_and_dates() {
        assert_eq!(
            ["A1", "Z9", "AA3", "XFD1", "7"].map(column_of),
            [Some(1), Some(26), Some(27), Some(16_384), None]
        );
        assert!(is_date("yyyy\\-mm\\-dd") && is_date("h:mm") && !is_date("0.00\" days\""));
        assert!(!is_date("General") && !is_date("[Red]0.0") && !is_date("#,##0_s"));
        let sheet = Sheet { strings: vec!["a".into()], dates: vec![false, true], days: DAYS_1900 };
        assert_eq!(sheet.value("45413.5", "", "1").unwrap(), "2024-05-01T12:00:00");
        assert_eq!(sheet.value("45413.5", "", "0").unwrap(), "45413.5");
        assert_eq!(sheet.value("0", "s", "").unwrap(), "a");
        assert!(sheet.value("1", "s", "").is_err());
    }

    #[test]
    fn rows_below_a_title() {
        let text = "<worksheet><sheetData><row><c r='A1' t='inlineStr'><is><t>Survey</t></is></c></row>\
            <row><c r='A2' t='str'><v>x_m</v></c><c r='C2' t='str'><v>rssi</v></c></row>\
            <row><c r='A3'><v>1.5</v></c><c r='B3'><v>9</v></c><c r='C3'><v>-60</v></c></row>\
            </sheetData></worksheet>";
        let sheet = Sheet { strings: Vec::new(), dates: Vec::new(), days: DAYS_1900 };
        let mut records = Records::new("row", text.len());
        sheet.rows(text, &mut records).unwrap();
        let table = String::from_utf8(records.table().unwrap()).unwrap();
        assert_eq!(table.replace('"', ""), "x_m,rssi\n1.5,-60\n");
    }
}
