//! The points of a shapefile (ESRI Shapefile Technical Description, 1998) as records: `.shp` for the
//! places, `.dbf` (dBASE III) for the fields, `.prj` for the coordinate system; beside each other or
//! in one zip archive.

use super::archive::Archive;
use super::xml::text_of;
use super::{Input, OwnCrs, Records};
use crate::error::{Check, Problem};
use crate::source::{Source, contents};

/// Its first bytes.
pub(super) const MAGIC: &[u8] = b"\x00\x00\x27\x0a";

/// The parts of a shapefile.
struct Parts {
    shp: Vec<u8>,
    dbf: Option<Vec<u8>>,
    prj: Option<Vec<u8>>,
}

pub(super) fn read(input: &mut Input<'_>) -> Check<Records> {
    let asked = input.options.crs;
    let parts = match input.source {
        Source::Archive(_) => in_archive(input)?,
        Source::Memory(bytes) if bytes.starts_with(b"PK") => in_archive(input)?,
        Source::Memory(_) => beside(input)?,
    };
    let dbf = parts.dbf.ok_or_else(|| {
        Problem::new("is a shapefile without its readings: the .dbf file must lie beside the .shp")
    })?;
    let own = match (parts.prj.map(|prj| OwnCrs::of_text(&text_of(&prj))), asked) {
        (Some(Ok(own)), _) => own,
        (_, Some(crs)) => OwnCrs::Metres(crs),
        (Some(Err(problem)), None) => return Err(problem),
        (None, None) => {
            return Err(Problem::new(
                "is a shapefile without a .prj, which says its coordinate system: put it beside the \
                 .shp, or give --crs if its coordinates are metres",
            ));
        }
    };
    records(&parts.shp, &dbf, own)
}

fn in_archive(input: &mut Input<'_>) -> Check<Parts> {
    let mut archive = Archive::open(input)?;
    let shp = archive.find(|name| name.ends_with(".shp"));
    let shp = shp.ok_or_else(|| Problem::new("an archive without a .shp file in it"))?;
    let stem = shp[..shp.len() - 4].to_ascii_lowercase();
    let mut part = |ending: &str| -> Check<Option<Vec<u8>>> {
        let name = archive.find(|name| name == format!("{stem}{ending}"));
        Ok(name.map(|name| archive.file(&name)).transpose()?.flatten())
    };
    Ok(Parts { shp: part(".shp")?.unwrap_or_default(), dbf: part(".dbf")?, prj: part(".prj")? })
}

fn beside(input: &mut Input<'_>) -> Check<Parts> {
    let path = input.path.to_owned();
    let part = |endings: [&str; 2]| -> Check<Option<Vec<u8>>> {
        let mut names = endings.iter().map(|ending| path.with_extension(ending));
        let found = names.find(|name| name.is_file());
        found.map(|name| contents(&name).map_err(|e| Problem::new(e.to_string()))).transpose()
    };
    Ok(Parts { shp: input.bytes()?, dbf: part(["dbf", "DBF"])?, prj: part(["prj", "PRJ"])? })
}

/// Bytes of a file at a place; past its end it is damaged.
fn piece<'a>(bytes: &'a [u8], at: usize, length: usize, what: &str) -> Check<&'a [u8]> {
    let end = at.checked_add(length);
    end.and_then(|end| bytes.get(at..end)).ok_or_else(|| {
        Problem::new(format!("damaged shapefile: {what} ends at byte {}", bytes.len()))
    })
}

fn number<const N: usize>(bytes: &[u8], at: usize, what: &str) -> Check<[u8; N]> {
    Ok(piece(bytes, at, N, what)?.try_into().unwrap_or([0; N]))
}

/// A point, or none, of every record of a `.shp`.
fn points(shp: &[u8]) -> Check<Vec<Option<[f64; 2]>>> {
    if !shp.starts_with(MAGIC) {
        return Err(Problem::new("damaged shapefile: the .shp has another beginning"));
    }
    let (mut at, mut points) = (100, Vec::new());
    piece(shp, 0, at, "the header of the .shp")?;
    while at < shp.len() {
        let words = u32::from_be_bytes(number(shp, at + 4, "the .shp")?);
        let content = piece(shp, at + 8, (words as usize).saturating_mul(2), "the .shp")?;
        let coordinate =
            |at| -> Check<f64> { Ok(f64::from_le_bytes(number(content, at, "a point")?)) };
        points.push(match u32::from_le_bytes(number(content, 0, "a record")?) {
            0 => None,
            1 | 11 | 21 => Some([coordinate(4)?, coordinate(12)?]),
            kind => {
                return Err(Problem::new(format!(
                    "record {}: a shape of kind {kind}, expected points (kind 1, 11 or 21)",
                    points.len() + 1
                )));
            }
        });
        at += 8 + content.len();
    }
    Ok(points)
}

/// A column of a `.dbf`: name, kind, where it begins in a record and its length.
type Field = (String, u8, usize, usize);

fn fields(dbf: &[u8]) -> Check<Vec<Field>> {
    let (mut fields, mut at, mut start) = (Vec::new(), 32, 1usize);
    while *piece(dbf, at, 1, "the header of the .dbf")? != [b'\r'] {
        let field = piece(dbf, at, 32, "the header of the .dbf")?;
        let name = field[..11].split(|b| *b == 0).next().unwrap_or_default();
        let length = usize::from(field[16]);
        fields.push((text_of(name).trim().to_string(), field[11], start, length));
        start += length;
        at += 32;
    }
    Ok(fields)
}

fn records(shp: &[u8], dbf: &[u8], own: OwnCrs) -> Check<Records> {
    let points = points(shp)?;
    let fields = fields(dbf)?;
    let first = usize::from(u16::from_le_bytes(number(dbf, 8, "the .dbf")?));
    let length = usize::from(u16::from_le_bytes(number(dbf, 10, "the .dbf")?));
    let mut records = Records::new("record", shp.len() + dbf.len());
    let place = match own {
        OwnCrs::Degrees => ["lon", "lat"],
        OwnCrs::Metres(crs) => {
            records.crs = Some(crs);
            ["x_m", "y_m"]
        }
    };
    let mut without = 0;
    for (index, point) in points.iter().enumerate() {
        let row =
            piece(dbf, first.saturating_add(index.saturating_mul(length)), length, "the .dbf")?;
        // A star marks a deleted record.
        let (Some([x, y]), false) = (point, row.first() == Some(&b'*')) else {
            without += 1;
            continue;
        };
        records.begin();
        records.put(place[0], x.to_string())?;
        records.put(place[1], y.to_string())?;
        for (name, kind, start, length) in &fields {
            let text = text_of(piece(row, *start, *length, "a record of the .dbf")?);
            let text = text.trim_matches(|c: char| c == '\0' || c.is_whitespace());
            let text = match kind {
                b'D' if text.len() == 8 && text.is_ascii() => {
                    format!("{}-{}-{}", &text[..4], &text[4..6], &text[6..])
                }
                // Stars fill a number that is too wide for its field.
                b'N' | b'F' if text.starts_with('*') => String::new(),
                b'C' | b'N' | b'F' | b'L' | b'D' => text.to_string(),
                _ => continue,
            };
            if !crate::table::is_position(name) {
                records.put(name, text)?;
            }
        }
    }
    if without > 0 {
        records.notes.push(format!("{without} record(s) without a point, or deleted: left out"));
    }
    Ok(records)
}
