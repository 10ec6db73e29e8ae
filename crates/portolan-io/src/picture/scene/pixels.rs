//! Images: made here, or read from a PNG of someone else's.

use std::io::BufReader;
use std::path::Path;

use crate::error::{Check, IoError, Problem};
use crate::memory;

/// More pixels are refused: an aerial image of 10,000 x 10,000 still passes.
const MOST_PIXELS: u64 = 100_000_000;

/// Rows of red, green, blue and opacity, a byte each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pixels {
    width: u32,
    height: u32,
    data: Vec<u8>,
}

impl Pixels {
    /// Asks for the colour of every pixel: line from the top, column.
    pub fn from_fn(width: u32, height: u32, of: impl Fn(usize, usize) -> [u8; 4]) -> Self {
        let (width, height) = (width.max(1), height.max(1));
        let mut data = Vec::with_capacity(width as usize * height as usize * 4);
        for line in 0..height as usize {
            for column in 0..width as usize {
                data.extend(of(line, column));
            }
        }
        Self { width, height, data }
    }

    pub(super) fn from_data(width: u32, height: u32, data: Vec<u8>) -> Self {
        debug_assert_eq!(data.len(), width as usize * height as usize * 4);
        Self { width, height, data }
    }

    pub fn width(&self) -> u32 {
        self.width
    }

    pub fn height(&self) -> u32 {
        self.height
    }

    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// The colour of a pixel from the top left corner.
    pub fn at(&self, x: u32, y: u32) -> [u8; 4] {
        let start = (y as usize * self.width as usize + x as usize) * 4;
        [self.data[start], self.data[start + 1], self.data[start + 2], self.data[start + 3]]
    }

    pub fn is_opaque(&self) -> bool {
        self.data.chunks_exact(4).all(|pixel| pixel[3] == 255)
    }

    /// Means over squares of so many pixels.
    pub fn reduced(&self, factor: u32) -> Self {
        let factor = factor.max(1);
        let (width, height) = (self.width.div_ceil(factor), self.height.div_ceil(factor));
        let span = |place: usize, end: u32| {
            let first = place as u32 * factor;
            first..(first + factor).min(end)
        };
        Self::from_fn(width, height, |line, column| {
            let mut sums = [0u64; 4];
            let mut count = 0;
            for y in span(line, self.height) {
                for x in span(column, self.width) {
                    let [r, g, b, a] = self.at(x, y);
                    for (sum, value) in sums.iter_mut().zip([r, g, b]) {
                        *sum += u64::from(value) * u64::from(a);
                    }
                    sums[3] += u64::from(a);
                    count += 1;
                }
            }
            let opacity = sums[3].max(1);
            let colour = |c: usize| ((sums[c] + opacity / 2) / opacity) as u8;
            [colour(0), colour(1), colour(2), (sums[3] / count) as u8]
        })
    }

    /// Red, green and blue alone.
    pub(super) fn rgb(&self) -> Vec<u8> {
        self.data.chunks_exact(4).flat_map(|p| [p[0], p[1], p[2]]).collect()
    }

    /// As a PNG file, the same bytes every time.
    pub fn png(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let opaque = self.is_opaque();
        let mut encoder = png::Encoder::new(&mut out, self.width, self.height);
        encoder.set_color(if opaque { png::ColorType::Rgb } else { png::ColorType::Rgba });
        encoder.set_depth(png::BitDepth::Eight);
        let written = encoder.write_header().and_then(|mut writer| {
            if opaque {
                writer.write_image_data(&self.rgb())
            } else {
                writer.write_image_data(&self.data)
            }
        });
        written.expect("a buffer of the stated size always encodes into memory");
        out
    }
}

/// Reads a floor plan or an aerial image.
pub fn read_plan(path: &Path) -> Result<Pixels, IoError> {
    let file = std::fs::File::open(path)
        .map_err(|source| IoError::Open { path: path.to_owned(), source })?;
    decode(BufReader::new(file)).map_err(|problem| problem.in_file(path))
}

fn decode(input: impl std::io::BufRead + std::io::Seek) -> Check<Pixels> {
    let broken = |error: png::DecodingError| {
        let text = error.to_string();
        let text = text.lines().next().unwrap_or_default().to_owned();
        Problem::new(format!("expected a PNG image: {text}"))
    };
    let limits = png::Limits { bytes: 1 << 30 };
    let mut decoder = png::Decoder::new_with_limits(input, limits);
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let mut reader = decoder.read_info().map_err(broken)?;
    let (width, height) = reader.info().size();
    let count = u64::from(width) * u64::from(height);
    if count > MOST_PIXELS {
        return Err(Problem::new(format!(
            "{width} x {height} pixels, expected an image of at most 100 million"
        )));
    }
    // The image as it is stored, and as it is drawn.
    memory::check("the image", 8 * count, "make it smaller")?;
    let size = reader.output_buffer_size().ok_or_else(|| Problem::new("too large an image"))?;
    let mut bytes = vec![0; size];
    let frame = reader.next_frame(&mut bytes).map_err(broken)?;
    bytes.truncate(frame.buffer_size());
    let data = match frame.color_type {
        png::ColorType::Rgba => bytes,
        png::ColorType::Rgb => {
            bytes.chunks_exact(3).flat_map(|p| [p[0], p[1], p[2], 255]).collect()
        }
        png::ColorType::Grayscale => bytes.iter().flat_map(|&g| [g, g, g, 255]).collect(),
        png::ColorType::GrayscaleAlpha => {
            bytes.chunks_exact(2).flat_map(|p| [p[0], p[0], p[0], p[1]]).collect()
        }
        png::ColorType::Indexed => return Err(Problem::new("expected a PNG with its palette")),
    };
    if (frame.width, frame.height) != (width, height) {
        return Err(Problem::new("the first frame does not fill the image, expected a plain PNG"));
    }
    Ok(Pixels::from_data(width, height, data))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn images_come_back_as_they_were_written() {
        for alpha in [255, 90] {
            let made = Pixels::from_fn(5, 3, |i, j| [i as u8 * 40, j as u8 * 30, 7, alpha]);
            assert_eq!(decode(Cursor::new(made.png())).unwrap(), made);
        }
    }

    #[test]
    fn reduced_images_keep_their_mean() {
        let checks = Pixels::from_fn(7, 4, |i, j| [if (i + j) % 2 == 0 { 200 } else { 100 }; 4]);
        let half = checks.reduced(2);
        assert_eq!((half.width(), half.height()), (4, 2));
        // The brighter pixels weigh more, as they are more opaque.
        assert_eq!(half.at(0, 0), [167, 167, 167, 150]);
        assert_eq!(checks.reduced(1), checks);
    }

    #[test]
    fn grey_palettes_and_sixteen_bits_are_read() {
        let encode = |colour, depth, palette: Option<&'static [u8]>, data: &[u8]| {
            let mut out = Vec::new();
            let mut encoder = png::Encoder::new(&mut out, 2, 1);
            encoder.set_color(colour);
            encoder.set_depth(depth);
            if let Some(palette) = palette {
                encoder.set_palette(palette);
            }
            encoder.write_header().unwrap().write_image_data(data).unwrap();
            decode(Cursor::new(out)).unwrap().at(1, 0)
        };
        use png::{BitDepth, ColorType};
        assert_eq!(encode(ColorType::Grayscale, BitDepth::Eight, None, &[0, 9]), [9, 9, 9, 255]);
        let sixteen = encode(ColorType::Grayscale, BitDepth::Sixteen, None, &[0, 0, 200, 1]);
        assert_eq!(sixteen, [200, 200, 200, 255]);
        let palette: &[u8] = &[1, 2, 3, 4, 5, 6];
        let indexed = encode(ColorType::Indexed, BitDepth::One, Some(palette), &[0b0100_0000]);
        assert_eq!(indexed, [4, 5, 6, 255]);
    }

    #[test]
    fn hostile_images_are_refused() {
        let good = Pixels::from_fn(4, 4, |_, _| [1, 2, 3, 255]).png();
        let mut huge = good.clone();
        // The width and height of the header, with their checksum: 2^31 - 1 each.
        huge[16..24].copy_from_slice(&[0x7f, 255, 255, 255, 0x7f, 255, 255, 255]);
        let mut crc = flate2::Crc::new();
        crc.update(&huge[12..29]);
        huge[29..33].copy_from_slice(&crc.sum().to_be_bytes());
        for bad in [&b""[..], b"GIF89a", &good[..good.len() / 2], &good[..20], &huge] {
            assert!(decode(Cursor::new(bad)).is_err());
        }
        let said = decode(Cursor::new(&huge)).unwrap_err().to_string();
        assert!(!said.contains('\n'), "{said}");
    }
}
