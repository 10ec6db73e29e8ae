//! MATLAB files of version 5 to 7 ("Level 5 MAT-File Format", MathWorks): a header of 128 bytes,
//! then one element per variable, plain or deflated. Numeric arrays are read, everything else is
//! listed. Elements are read as a stream, so a size that lies costs nothing.

use std::io::{self, Read};

use flate2::read::ZlibDecoder;
use ndarray::ArrayD;

use crate::error::{Check, Problem, quoted};
use crate::mat_text;
use crate::number::ElementType;
use crate::store::{Entry, MAX_EXPANSION, Store, arrange, count_elements, reserve};

const HEADER: usize = 128;
const MATRIX: u32 = 14;
const COMPRESSED: u32 = 15;

/// More axes or longer names than any real variable has.
const MOST_AXES: usize = 32;
const LONGEST_NAME: usize = 1 << 10;

/// The variables of a MATLAB file that lies in memory.
pub(crate) struct Mat5<'a> {
    bytes: &'a [u8],
    big_endian: bool,
    entries: Vec<Entry>,
    places: Vec<Place>,
}

/// Where a variable's element lies.
#[derive(Clone, Copy)]
struct Place {
    start: usize,
    end: usize,
    compressed: bool,
}

impl<'a> Mat5<'a> {
    pub fn open(bytes: &'a [u8]) -> Check<Self> {
        let big_endian = match bytes.get(126..HEADER) {
            Some(b"IM") => false,
            Some(b"MI") => true,
            _ => return Err(Problem::new("the header is cut short, expected a MATLAB v5 file")),
        };
        let mut mat = Self { bytes, big_endian, entries: Vec::new(), places: Vec::new() };
        let mut at = HEADER;
        // Fewer than 8 bytes are no element: some writers pad the end.
        while bytes.len() - at >= 8 {
            let (kind, size) = (mat.word(at), mat.word(at + 4));
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            let (start, there) = (at + 8, bytes.len() - at - 8);
            if size > there {
                return Err(Problem::new(format!(
                    "byte {at}: a variable of {size} bytes, but only {there} are left"
                )));
            }
            let place = Place { start, end: start + size, compressed: kind == COMPRESSED };
            match kind {
                MATRIX | COMPRESSED => mat.list(place)?,
                _ => {
                    return Err(Problem::new(format!(
                        "byte {at}: element type {kind}, expected a variable"
                    )));
                }
            }
            at = place.end;
        }
        Ok(mat)
    }

    fn word(&self, at: usize) -> u32 {
        let word = [0, 1, 2, 3].map(|i| self.bytes[at + i]);
        if self.big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
    }

    fn list(&mut self, place: Place) -> Check<()> {
        if place.start == place.end {
            return Ok(());
        }
        let variable = self.variable(place).map_err(|error| damaged(place, &error))?;
        if let Some((variable, _)) = variable {
            self.entries.push(Entry {
                name: variable.name,
                shape: variable.shape,
                kind: variable.class.to_owned(),
            });
            self.places.push(place);
        }
        Ok(())
    }

    /// Reads up to the elements; `None` for classes that have no shape.
    fn variable(&self, place: Place) -> io::Result<Option<(Variable, Elements<'a>)>> {
        let stored = &self.bytes[place.start..place.end];
        let mut source: Box<dyn Read + 'a> = Box::new(stored);
        if place.compressed {
            source = Box::new(ZlibDecoder::new(stored));
        }
        let mut elements = Elements { source, big_endian: self.big_endian };
        if place.compressed {
            let (kind, ..) = elements.tag()?;
            if kind != MATRIX {
                return Err(invalid("it is not a variable"));
            }
        }
        let flags = elements.small(8)?;
        let flags = if flags.len() == 8 { self.number(&flags[..4]) } else { 0 };
        let (class, numeric) = match flags & 0xff {
            1 => ("cell", false),
            2 => ("struct", false),
            4 => ("char", false),
            5 => ("sparse", false),
            6 => ("double", true),
            7 => ("single", true),
            8 => ("int8", true),
            9 => ("uint8", true),
            10 => ("int16", true),
            11 => ("uint16", true),
            12 => ("int32", true),
            13 => ("uint32", true),
            14 => ("int64", true),
            15 => ("uint64", true),
            _ => return Ok(None),
        };
        let sides = elements.small(4 * MOST_AXES)?;
        let shape: Vec<usize> =
            sides.chunks_exact(4).map(|side| self.number(side) as usize).collect();
        if shape.len() < 2 || shape.iter().any(|&side| side > i32::MAX as usize) {
            return Err(invalid("its dimensions are not possible"));
        }
        let name = String::from_utf8_lossy(&elements.small(LONGEST_NAME)?).into_owned();
        let class = match (flags & 0x0800 != 0, flags & 0x0200 != 0) {
            (true, _) => "complex",
            (_, true) => "logical",
            _ => class,
        };
        Ok(Some((
            Variable { name, shape, class, numeric: numeric && class != "complex" },
            elements,
        )))
    }

    fn number(&self, bytes: &[u8]) -> u32 {
        let word = [bytes[0], bytes[1], bytes[2], bytes[3]];
        if self.big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
    }
}

impl Store for Mat5<'_> {
    fn entries(&self) -> &[Entry] {
        &self.entries
    }

    fn load(&mut self, index: usize) -> Check<ArrayD<f64>> {
        let place = self.places[index];
        let name = &self.entries[index].name;
        let wrong = |what: String| Problem::new(format!("array {}: {what}", quoted(name)));
        let broken = |error: io::Error| wrong(format!("damaged: {error}"));
        let opened = self.variable(place).map_err(broken)?;
        let (variable, mut elements) =
            opened.ok_or_else(|| wrong("expected numbers".to_owned()))?;
        if !variable.numeric {
            return Err(wrong(format!("class {}, expected real numbers", variable.class)));
        }
        let count = count_elements(name, &variable.shape)?;
        let (kind, size, inline) = elements.tag().map_err(broken)?;
        let kind = storage(kind)
            .ok_or_else(|| wrong(format!("elements of type {kind}, expected numbers")))?;
        let length = count.saturating_mul(kind.size());
        if size != length {
            let shape = &variable.shape;
            return Err(wrong(format!("{size} bytes, expected {length} for shape {shape:?}")));
        }
        let expansion = if place.compressed { MAX_EXPANSION } else { 1 };
        if length > (place.end - place.start).saturating_mul(expansion) {
            return Err(wrong(format!("{length} bytes cannot come out of this file")));
        }
        let mut values = reserve(name, count, 2, "save it as .npz, which is read in parts")?;
        match inline {
            Some(data) => kind.decode(self.big_endian, &data[..size], &mut values),
            None => elements.numbers(kind, length, &mut values).map_err(broken)?,
        }
        arrange(name, &variable.shape, true, values)
    }

    fn load_text(&mut self, index: usize) -> Check<Vec<String>> {
        let name = &self.entries[index].name;
        let wrong = |what: String| Problem::new(format!("array {}: {what}", quoted(name)));
        let broken = |error: io::Error| wrong(format!("damaged: {error}"));
        let (variable, mut elements) = self
            .variable(self.places[index])
            .map_err(broken)?
            .filter(|(variable, _)| variable.class == "char")
            .ok_or_else(|| wrong("expected text".to_owned()))?;
        let (kind, data) = elements.typed(mat_text::MOST_BYTES).map_err(broken)?;
        let units: Vec<u16> = match kind {
            16 => String::from_utf8_lossy(&data).encode_utf16().collect(),
            1 | 2 => data.iter().map(|&letter| u16::from(letter)).collect(),
            4 | 17 => {
                let (units, _) = data.as_chunks::<2>();
                let unit = if self.big_endian { u16::from_be_bytes } else { u16::from_le_bytes };
                units.iter().map(|bytes| unit(*bytes)).collect()
            }
            _ => return Err(wrong(format!("elements of type {kind}, expected text"))),
        };
        mat_text::decode(name, &units, &variable.shape)
    }

    fn bands_first(&self) -> bool {
        false
    }
}

struct Variable {
    name: String,
    shape: Vec<usize>,
    class: &'static str,
    numeric: bool,
}

/// The elements inside a variable, read one after the other.
struct Elements<'a> {
    source: Box<dyn Read + 'a>,
    big_endian: bool,
}

impl Elements<'_> {
    /// Type and size of the next element, and its data where they are part of the tag.
    fn tag(&mut self) -> io::Result<(u32, usize, Option<[u8; 4]>)> {
        let mut word = [0; 4];
        self.source.read_exact(&mut word)?;
        let first = self.order(word);
        self.source.read_exact(&mut word)?;
        if first >> 16 == 0 {
            return Ok((first, self.order(word) as usize, None));
        }
        match (first >> 16) as usize {
            size @ 1..=4 => Ok((first & 0xffff, size, Some(word))),
            _ => Err(invalid("a small element of more than 4 bytes")),
        }
    }

    fn order(&self, word: [u8; 4]) -> u32 {
        if self.big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
    }

    /// The bytes of an element that may have at most `most`.
    fn small(&mut self, most: usize) -> io::Result<Vec<u8>> {
        self.typed(most).map(|(_, data)| data)
    }

    /// The type and the bytes of an element that may have at most `most`.
    fn typed(&mut self, most: usize) -> io::Result<(u32, Vec<u8>)> {
        let (kind, size, inline) = self.tag()?;
        if let Some(data) = inline {
            return Ok((kind, data[..size].to_vec()));
        }
        if size > most {
            return Err(invalid("an element is longer than it can be"));
        }
        let mut data = vec![0; size.next_multiple_of(8)];
        self.source.read_exact(&mut data)?;
        data.truncate(size);
        Ok((kind, data))
    }

    fn numbers(
        &mut self,
        kind: ElementType,
        length: usize,
        values: &mut Vec<f64>,
    ) -> io::Result<()> {
        let mut block = vec![0; 1 << 16];
        let mut left = length;
        while left > 0 {
            let part = &mut block[..left.min(1 << 16)];
            self.source.read_exact(part)?;
            kind.decode(self.big_endian, part, values);
            left -= part.len();
        }
        // A deflated variable ends in a check sum, which is compared when the end is met.
        let padding = length.next_multiple_of(8) - length;
        self.source.by_ref().take(padding as u64 + 1).read_to_end(&mut block).map(|_| ())
    }
}

fn storage(kind: u32) -> Option<ElementType> {
    Some(match kind {
        1 => ElementType::I8,
        2 => ElementType::U8,
        3 => ElementType::I16,
        4 => ElementType::U16,
        5 => ElementType::I32,
        6 => ElementType::U32,
        7 => ElementType::F32,
        9 => ElementType::F64,
        12 => ElementType::I64,
        13 => ElementType::U64,
        _ => return None,
    })
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn damaged(place: Place, error: &io::Error) -> Problem {
    Problem::new(format!("byte {}: damaged variable: {error}", place.start - 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A big-endian file with one variable `T` of int16 [[1, 2], [3, -4]], as MATLAB on SPARC made.
    fn sparc() -> Vec<u8> {
        let mut bytes = b"MATLAB 5.0 MAT-file".to_vec();
        bytes.resize(124, b' ');
        bytes.extend(b"\x01\x00MI");
        let words: [u32; 14] =
            [14, 56, 6, 8, 10, 0, 5, 8, 2, 2, 0x0001_0001, u32::from(b'T') << 24, 3, 8];
        bytes.extend(words.iter().flat_map(|word| word.to_be_bytes()));
        bytes.extend([1i16, 3, 2, -4].iter().flat_map(|v| v.to_be_bytes()));
        bytes
    }

    #[test]
    fn big_endian_files() {
        let bytes = sparc();
        let mut mat = Mat5::open(&bytes).unwrap();
        assert_eq!(mat.entries()[0].kind, "int16");
        let array = mat.load(0).unwrap();
        assert_eq!(array, ndarray::array![[1.0, 2.0], [3.0, -4.0]].into_dyn());
    }

    #[test]
    fn giant_dimensions_are_refused() {
        let mut bytes = sparc();
        for at in [160, 164] {
            bytes[at..at + 4].copy_from_slice(&i32::MAX.to_be_bytes());
        }
        let mut mat = Mat5::open(&bytes).unwrap();
        let problem = format!("{:?}", mat.load(0).unwrap_err());
        assert!(problem.contains("2147483647"), "{problem}");
    }
}
