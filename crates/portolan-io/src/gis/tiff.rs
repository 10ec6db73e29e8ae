//! The structure of a TIFF file (Adobe, TIFF 6.0, 1992) and of its large form (BigTIFF): directories
//! of tags, and where their values and tiles lie. Tiles are deflated after the floating-point
//! predictor (Adobe, TIFF Technical Note 3, 2005).

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::ZlibEncoder;

/// Beyond this many bytes offsets no longer fit 32 bits.
const MOST_CLASSIC: u64 = u32::MAX as u64 - (1 << 16);

/// The values of a tag.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Values {
    Short(Vec<u16>),
    Long(Vec<u32>),
    Double(Vec<f64>),
    Ascii(String),
    /// Offsets in the file: 4 bytes each, 8 in the large form.
    Offsets(Vec<u64>),
}

impl Values {
    fn kind(&self, large: bool) -> u16 {
        match self {
            Values::Ascii(_) => 2,
            Values::Short(_) => 3,
            Values::Long(_) => 4,
            Values::Double(_) => 12,
            Values::Offsets(_) => {
                if large {
                    16
                } else {
                    4
                }
            }
        }
    }

    fn count(&self) -> u64 {
        (match self {
            Values::Short(v) => v.len(),
            Values::Long(v) => v.len(),
            Values::Double(v) => v.len(),
            Values::Ascii(text) => text.len() + 1,
            Values::Offsets(v) => v.len(),
        }) as u64
    }

    fn bytes(&self, large: bool) -> Vec<u8> {
        match self {
            Values::Short(v) => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Values::Long(v) => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Values::Double(v) => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Values::Ascii(text) => text.bytes().chain([0]).collect(),
            Values::Offsets(v) if large => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Values::Offsets(v) => v.iter().flat_map(|v| (*v as u32).to_le_bytes()).collect(),
        }
    }
}

/// One image of the file: its tags without those of the tiles, and the lengths of its tiles.
pub(crate) struct Image {
    pub tags: Vec<(u16, Values)>,
    /// Bytes of the compressed tiles: those of the first layer, then those of the next.
    pub tiles: Vec<u32>,
}

const TILE_OFFSETS: u16 = 324;
const TILE_BYTE_COUNTS: u16 = 325;

/// The head of a file: directories of all images, the first one being the full image. The tiles of
/// the last image come first, those of the full image last.
pub(crate) fn head(images: &[Image]) -> Vec<u8> {
    let data: u64 = images.iter().flat_map(|image| &image.tiles).map(|&n| u64::from(n)).sum();
    let classic = head_at(images, false, 0);
    if classic.len() as u64 + data <= MOST_CLASSIC {
        head_at(images, false, classic.len() as u64)
    } else {
        let length = head_at(images, true, 0).len() as u64;
        head_at(images, true, length)
    }
}

/// The head where the first tile lies at `first_tile`; its length does not depend on that.
fn head_at(images: &[Image], large: bool, first_tile: u64) -> Vec<u8> {
    let mut offsets = vec![Vec::new(); images.len()];
    let mut at = first_tile;
    for (n, image) in images.iter().enumerate().rev() {
        for length in &image.tiles {
            offsets[n].push(at);
            at += u64::from(*length);
        }
    }
    let mut out = Vec::new();
    if large {
        out.extend(b"II\x2b\0\x08\0\0\0");
        out.extend(16u64.to_le_bytes());
    } else {
        out.extend(b"II\x2a\0");
        out.extend(8u32.to_le_bytes());
    }
    for (n, (image, offsets)) in images.iter().zip(offsets).enumerate() {
        let mut tags = image.tags.clone();
        tags.push((TILE_OFFSETS, Values::Offsets(offsets)));
        tags.push((TILE_BYTE_COUNTS, Values::Long(image.tiles.clone())));
        tags.sort_by_key(|(tag, _)| *tag);
        directory(&tags, large, n + 1 == images.len(), &mut out);
    }
    out
}

/// A directory, and after it the values that do not fit into it.
fn directory(tags: &[(u16, Values)], large: bool, last: bool, out: &mut Vec<u8>) {
    let word = if large { 8 } else { 4 };
    let entry = if large { 20 } else { 12 };
    let count = if large { 8 } else { 2 };
    let mut values_at = out.len() + count + tags.len() * entry + word;
    let mut values = Vec::new();
    let offset = |at: usize| -> Vec<u8> {
        match large {
            true => (at as u64).to_le_bytes().to_vec(),
            false => (at as u32).to_le_bytes().to_vec(),
        }
    };
    match large {
        true => out.extend((tags.len() as u64).to_le_bytes()),
        false => out.extend((tags.len() as u16).to_le_bytes()),
    }
    for (tag, content) in tags {
        out.extend(tag.to_le_bytes());
        out.extend(content.kind(large).to_le_bytes());
        out.extend(offset(content.count() as usize));
        let mut bytes = content.bytes(large);
        if bytes.len() <= word {
            bytes.resize(word, 0);
            out.extend(bytes);
        } else {
            out.extend(offset(values_at));
            // Values begin on a word.
            bytes.resize(bytes.len().next_multiple_of(8), 0);
            values_at += bytes.len();
            values.extend(bytes);
        }
    }
    out.extend(offset(if last { 0 } else { values_at }));
    out.extend(values);
}

/// A tile of `side` x `side` numbers, predicted and deflated: more effort takes twice the time and saves
/// 4 %.
pub(crate) fn compressed(tile: &[f32], side: usize) -> io::Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(2));
    let mut line = vec![0u8; side * 4];
    for numbers in tile.chunks(side) {
        for (n, value) in numbers.iter().enumerate() {
            for (plane, byte) in value.to_be_bytes().into_iter().enumerate() {
                line[plane * side + n] = byte;
            }
        }
        for n in (1..line.len()).rev() {
            line[n] = line[n].wrapping_sub(line[n - 1]);
        }
        encoder.write_all(&line)?;
    }
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(tiles: Vec<u32>) -> Image {
        let tags = vec![(256, Values::Long(vec![7])), (33550, Values::Double(vec![1.0, 2.0, 0.0]))];
        Image { tags, tiles }
    }

    #[test]
    fn overviews_lie_before_the_full_image() {
        let head = head(&[image(vec![10, 20]), image(vec![5])]);
        let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().unwrap());
        assert_eq!((&head[..4], word(4)), (&b"II\x2a\0"[..], 8));
        let offsets_at = word(8 + 2 + 12 + 8) as usize;
        assert_eq!(word(offsets_at), head.len() as u32 + 5);
        assert_eq!(word(offsets_at + 4), head.len() as u32 + 15);
    }

    #[test]
    fn beyond_four_gigabytes_offsets_have_eight_bytes() {
        let head = head(&[image(vec![u32::MAX; 3])]);
        assert_eq!(&head[..4], b"II\x2b\0");
        let long = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().unwrap());
        assert_eq!((long(8), long(16)), (16, 4));
        let offsets_at = long(24 + 20 + 12) as usize;
        assert_eq!(long(offsets_at + 16), head.len() as u64 + 2 * u64::from(u32::MAX));
    }

    #[test]
    fn a_tile_of_one_number_is_small() {
        assert!(compressed(&[-80.5; 64 * 64], 64).unwrap().len() < 200);
    }
}
