//! The header of one NumPy array, versions 1 to 3 of the format (NumPy enhancement proposal 1).

use std::io::{self, Read, Write};

use crate::error::{Check, Problem, quoted};
use crate::named_array::{ArrayData, NamedArray};
use crate::number::ElementType;

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// The longest header worth reading: a shape and a type take about 100 bytes.
const LONGEST: usize = 1 << 16;

/// What stands before the elements.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Header {
    /// NumPy's name of the element type, such as `<f8`.
    pub descr: String,
    pub column_major: bool,
    pub shape: Vec<usize>,
    /// Bytes up to the first element.
    pub length: usize,
}

impl Header {
    /// Reads up to the first element. `name` is for messages.
    pub fn read(name: &str, source: &mut impl Read) -> Check<Self> {
        let wrong = |what: &str| Problem::new(format!("array {}: {what}", quoted(name)));
        let cut = |_| wrong("the header is cut short or damaged");
        let mut start = [0; 8];
        source.read_exact(&mut start).map_err(cut)?;
        if &start[..6] != MAGIC {
            return Err(wrong("it is not in NumPy's format"));
        }
        let (prefix, length) = match start[6] {
            1 => {
                let mut size = [0; 2];
                source.read_exact(&mut size).map_err(cut)?;
                (10, usize::from(u16::from_le_bytes(size)))
            }
            2 | 3 => {
                let mut size = [0; 4];
                source.read_exact(&mut size).map_err(cut)?;
                (12, u32::from_le_bytes(size) as usize)
            }
            version => return Err(wrong(&format!("format version {version}, expected 1 to 3"))),
        };
        if length > LONGEST {
            return Err(wrong(&format!("a header of {length} bytes, expected at most {LONGEST}")));
        }
        let mut text = vec![0; length];
        source.read_exact(&mut text).map_err(cut)?;
        let text = String::from_utf8_lossy(&text);
        let (descr, column_major, shape) = parse(&text).ok_or_else(|| {
            wrong("the header does not say descr, fortran_order and shape the way NumPy does")
        })?;
        Ok(Self { descr, column_major, shape, length: prefix + length })
    }

    /// The element type and whether it is big-endian; `None` where it is not a plain number.
    pub fn number(&self) -> Option<(ElementType, bool)> {
        let mut letters = self.descr.chars();
        let big_endian = match letters.next()? {
            '<' | '|' => false,
            '>' => true,
            '=' => cfg!(target_endian = "big"),
            _ => return None,
        };
        let kind = match letters.as_str() {
            "b1" => ElementType::Bool,
            "i1" => ElementType::I8,
            "u1" => ElementType::U8,
            "i2" => ElementType::I16,
            "u2" => ElementType::U16,
            "i4" => ElementType::I32,
            "u4" => ElementType::U32,
            "i8" => ElementType::I64,
            "u8" => ElementType::U64,
            "f2" => ElementType::F16,
            "f4" => ElementType::F32,
            "f8" => ElementType::F64,
            _ => return None,
        };
        Some((kind, big_endian))
    }

    /// The kind of text; `None` where it is none.
    pub fn text(&self) -> Option<Text> {
        let (order, letters) = self.descr.split_at_checked(1)?;
        let (kind, width) = letters.split_at_checked(1)?;
        let width = width.parse().ok()?;
        match kind {
            "U" => Some(Text { width, size: 4, big_endian: order == ">" }),
            "S" => Some(Text { width, size: 1, big_endian: false }),
            _ => None,
        }
    }
}

/// Texts of a fixed number of characters: NumPy's `U` (4 bytes each) or `S` (1 byte each).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Text {
    pub width: usize,
    pub size: usize,
    pub big_endian: bool,
}

impl Text {
    /// One text; NumPy fills it up with zeros. What is no character becomes U+FFFD.
    pub fn decode(self, bytes: &[u8]) -> String {
        if self.size == 1 {
            return String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned();
        }
        let (letters, _) = bytes.as_chunks::<4>();
        let letter = |bytes: &[u8; 4]| {
            let number = match self.big_endian {
                true => u32::from_be_bytes(*bytes),
                false => u32::from_le_bytes(*bytes),
            };
            char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER)
        };
        let text: String = letters.iter().map(letter).collect();
        text.trim_end_matches('\0').to_owned()
    }
}

/// The three entries of a header, which is a Python dictionary.
fn parse(text: &str) -> Option<(String, bool, Vec<usize>)> {
    let (mut descr, mut column_major, mut shape) = (None, None, None);
    let mut rest = text.trim().strip_prefix('{')?.trim_start();
    while !rest.starts_with('}') {
        let (key, after) = string(rest)?;
        let value = after.trim_start().strip_prefix(':')?.trim_start();
        rest = match key {
            "descr" if value.starts_with('[') => {
                // A structured type: nothing that is read here, but its array may be left alone.
                descr = Some("structured".to_owned());
                value.get(value.rfind(']')? + 1..)?
            }
            "descr" => {
                let (kind, after) = string(value)?;
                descr = Some(kind.to_owned());
                after
            }
            "fortran_order" => {
                let (yes, after) = match value.strip_prefix("True") {
                    Some(after) => (true, after),
                    None => (false, value.strip_prefix("False")?),
                };
                column_major = Some(yes);
                after
            }
            "shape" => {
                let (sides, after) = value.strip_prefix('(')?.split_once(')')?;
                let sides = sides.split(',').map(str::trim).filter(|side| !side.is_empty());
                shape = Some(sides.map(side).collect::<Option<Vec<usize>>>()?);
                after
            }
            _ => return None,
        };
        rest = rest.trim_start();
        rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
    }
    Some((descr?, column_major?, shape?))
}

fn string(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    text[1..].split_once(quote)
}

/// A side of a shape; Python 2 ended long integers in L.
fn side(text: &str) -> Option<usize> {
    text.strip_suffix('L').unwrap_or(text).parse().ok()
}

/// NumPy's name of an array's element type and the bytes of one element.
fn element(array: &NamedArray<'_>) -> (String, usize) {
    match &array.data {
        ArrayData::Real(_) => ("<f8".into(), 8),
        ArrayData::Real32(_) => ("<f4".into(), 4),
        ArrayData::Whole(_) => ("<i8".into(), 8),
        ArrayData::Byte(_) => ("|u1".into(), 1),
        ArrayData::Truth(_) => ("|b1".into(), 1),
        ArrayData::Text(_) => {
            let width = array.width();
            (format!("<U{width}"), 4 * width)
        }
    }
}

/// The bytes that [`write`] makes of an array.
pub(crate) fn length(array: &NamedArray<'_>) -> io::Result<u64> {
    let (descr, size) = element(array);
    let header = header(&descr, array.shape())?.len() as u64;
    let count: usize = array.shape().iter().product();
    Ok(header + count as u64 * size as u64)
}

/// What stands before the elements of a row-major array.
pub(crate) fn header(descr: &str, shape: &[usize]) -> io::Result<Vec<u8>> {
    let mut sides: String = shape.iter().map(|side| format!("{side}, ")).collect();
    if shape.len() > 1 {
        sides.truncate(sides.len() - 2);
    }
    let sides = sides.trim_end();
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({sides}), }}");
    // NumPy aligns the elements to 64 bytes: 10 before the header, a newline after it.
    let padding = (64 - (text.len() + 11) % 64) % 64;
    text.push_str(&" ".repeat(padding));
    text.push('\n');
    let length = u16::try_from(text.len()).map_err(io::Error::other)?;
    Ok([&MAGIC[..], &[1, 0], &length.to_le_bytes(), text.as_bytes()].concat())
}

/// Writes one array, header and elements.
pub(crate) fn write(array: &NamedArray<'_>, out: &mut impl Write) -> io::Result<()> {
    out.write_all(&header(&element(array).0, array.shape())?)?;
    match &array.data {
        ArrayData::Real(values) => write_numbers(values.iter().map(|v| v.to_le_bytes()), out),
        ArrayData::Real32(values) => write_numbers(values.iter().map(|v| v.to_le_bytes()), out),
        ArrayData::Whole(values) => write_numbers(values.iter().map(|v| v.to_le_bytes()), out),
        ArrayData::Byte(values) => write_numbers(values.iter().map(|v| [*v]), out),
        ArrayData::Truth(values) => write_numbers(values.iter().map(|v| [u8::from(*v)]), out),
        ArrayData::Text(texts) => {
            let width = array.width();
            let padded = |text: &'_ String| {
                let zeros = std::iter::repeat('\0');
                let letters: Vec<char> = text.chars().chain(zeros).take(width).collect();
                letters
            };
            let letters = texts.iter().flat_map(padded);
            write_numbers(letters.map(|letter| (letter as u32).to_le_bytes()), out)
        }
    }
}

fn write_numbers<const N: usize>(
    numbers: impl Iterator<Item = [u8; N]>,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut block = Vec::with_capacity(1 << 16);
    for number in numbers {
        block.extend_from_slice(&number);
        if block.len() >= (1 << 16) - N {
            out.write_all(&block)?;
            block.clear();
        }
    }
    out.write_all(&block)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_as_numpy_writes_them() {
        let text = "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }   \n";
        assert_eq!(parse(text), Some(("<f8".into(), false, vec![3, 4])));
        let text = "{\"shape\": (5L,), \"fortran_order\": True, \"descr\": \">i2\"}";
        assert_eq!(parse(text), Some((">i2".into(), true, vec![5])));
        let text = "{'descr': [('a', '<f4'), ('b', '<f4')], 'fortran_order': False, 'shape': (), }";
        assert_eq!(parse(text), Some(("structured".into(), false, vec![])));
    }

    #[test]
    fn broken_headers_are_refused() {
        for text in [
            "",
            "{",
            "{}",
            "{'descr': '<f8'}",
            "{'descr': '<f8', 'fortran_order': Perhaps, 'shape': (3,)}",
            "{'descr': '<f8', 'fortran_order': True, 'shape': (-3,)}",
            "{'descr': '<f8', 'fortran_order': True, 'shape': (99999999999999999999999,)}",
            "{'descr",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for shape in [vec![], vec![3], vec![2, 3], vec![2, 3, 4]] {
            let values = ndarray::ArrayD::from_elem(shape.clone(), 1.5);
            let mut bytes = Vec::new();
            write(&NamedArray::real("a", values.into()), &mut bytes).unwrap();
            let header = Header::read("a", &mut bytes.as_slice()).unwrap();
            assert_eq!(header.shape, shape);
            assert_eq!(header.length % 64, 0);
            assert_eq!(header.number(), Some((ElementType::F64, false)));
            assert_eq!(bytes.len(), header.length + 8 * shape.iter().product::<usize>());
        }
    }

    #[test]
    fn texts_in_both_widths_and_byte_orders() {
        let header = |descr: &str| Header {
            descr: descr.into(),
            column_major: false,
            shape: vec![],
            length: 0,
        };
        let wide = header("<U3").text().unwrap();
        assert_eq!((wide.width, wide.size), (3, 4));
        assert_eq!(wide.decode(b"d\0\0\0B\0\0\0\0\0\0\0"), "dB");
        assert_eq!(wide.decode(b"\xff\xff\xff\xff"), "\u{fffd}");
        assert_eq!(header(">U1").text().unwrap().decode(b"\0\0\0d"), "d");
        assert_eq!(header("|S4").text().unwrap().decode(b"dBm\0"), "dBm");
        for descr in ["", "<", "<U", "<Ux", "<f8", "structured", "\u{e4}\u{f6}"] {
            assert_eq!(header(descr).text(), None, "{descr}");
        }
    }
}
