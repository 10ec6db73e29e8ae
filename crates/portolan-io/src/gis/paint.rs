//! Levels as colours: images without axes for maps and globes, and a legend.

use std::io::{self, Write};

use crate::picture::{Align, Canvas, ColourMap, Font, Ticks};

/// Decibels between the ends of the colours at most.
const WIDEST: f32 = 100.0;

/// At most so many values are looked at to choose the limits.
const MOST_SEEN: usize = 1 << 20;

/// The levels at the ends of the colours: a few extreme cells do not stretch them.
pub(crate) fn limits(pixels: &[f32]) -> (f64, f64) {
    let step = pixels.len().div_ceil(MOST_SEEN).max(1);
    let mut known: Vec<f32> =
        pixels.iter().step_by(step).copied().filter(|v| v.is_finite()).collect();
    if known.is_empty() {
        known = pixels.iter().copied().filter(|v| v.is_finite()).collect();
    }
    known.sort_by(f32::total_cmp);
    let at = |share: f64| known.get(((known.len().max(1) - 1) as f64 * share).round() as usize);
    let (Some(&low), Some(&high)) = (at(0.005), at(0.995)) else { return (0.0, 1.0) };
    let low = low.max(high - WIDEST);
    match high - low > 1e-3 {
        true => (f64::from(low), f64::from(high)),
        false => (f64::from(low) - 0.5, f64::from(high) + 0.5),
    }
}

/// The colour of a level, transparent where nothing is known.
pub(crate) fn colour(level: f32, limits: (f64, f64)) -> [u8; 4] {
    if level.is_nan() {
        return [0; 4];
    }
    let [r, g, b] = ColourMap::Power.of(f64::from(level), limits);
    [r, g, b, 255]
}

/// Writes a PNG line by line.
pub(crate) fn write_png(
    out: impl Write,
    (width, height): (usize, usize),
    about: &str,
    mut line: impl FnMut(usize, &mut Vec<u8>),
) -> io::Result<()> {
    let mut encoder = png::Encoder::new(out, width as u32, height as u32);
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.add_itxt_chunk("Description".to_string(), about.to_string())?;
    let mut writer = encoder.write_header()?;
    let mut stream = writer.stream_writer()?;
    let mut bytes = Vec::with_capacity(4 * width);
    for number in 0..height {
        bytes.clear();
        line(number, &mut bytes);
        stream.write_all(&bytes)?;
    }
    stream.finish()?;
    Ok(())
}

/// What the colours mean.
pub(crate) fn meaning(label: &str, (low, high): (f64, f64), unit: &str) -> String {
    format!("{label}: {low:.1} {unit} (dark violet) to {high:.1} {unit} (yellow)")
}

/// A bar of colours with levels beside it.
pub(crate) fn legend(label: &str, limits: (f64, f64), unit: &str) -> Vec<u8> {
    let (low, high) = limits;
    let title = format!("{label} in {unit}");
    let font = Font::LABEL;
    let (bar, top, edge) = (240i64, font.height() + 20, 14i64);
    let width = (font.length(&title) + 2 * edge).max(140);
    let height = top + bar + edge;
    let mut canvas = Canvas::new(width as usize, height as usize);
    let ink = [38, 38, 42];
    canvas.text(edge, 8, &title, font, Align::Start, ink);
    let at = |level: f64| top + ((high - level) / (high - low) * (bar - 1) as f64).round() as i64;
    for y in 0..bar {
        let level = high - (high - low) * y as f64 / (bar - 1) as f64;
        canvas.fill_rect(edge, top + y, 28, 1, ColourMap::Power.of(level, limits));
    }
    let ticks = Ticks::between(low, high, 6);
    for (value, text) in ticks.values.iter().zip(&ticks.labels) {
        canvas.fill_rect(edge + 28, at(*value), 6, 1, ink);
        canvas.text(edge + 40, at(*value) - font.height() / 2, text, font, Align::Start, ink);
    }
    let mut bytes = Vec::new();
    let pixels = canvas.bytes();
    let line = |y: usize, out: &mut Vec<u8>| {
        let row = &pixels[3 * y * width as usize..3 * (y + 1) * width as usize];
        out.extend(row.chunks(3).flat_map(|c| [c[0], c[1], c[2], 255]));
    };
    write_png(&mut bytes, (width as usize, height as usize), &title, line)
        .expect("an image of the stated size always encodes into memory");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_ignore_what_is_unknown_or_extreme() {
        let mut pixels: Vec<f32> = (0..1000).map(|n| -100.0 + n as f32 * 0.05).collect();
        pixels.push(500.0);
        pixels.push(f32::NAN);
        let (low, high) = limits(&pixels);
        assert!((low + 99.75).abs() < 0.2 && (high + 50.25).abs() < 0.2, "{low} {high}");
        assert_eq!(limits(&[f32::NAN]), (0.0, 1.0));
        assert_eq!(limits(&[-3.0]), (-3.5, -2.5));
    }

    #[test]
    fn the_unknown_is_transparent() {
        assert_eq!(colour(f32::NAN, (0.0, 1.0)), [0; 4]);
        assert_eq!(colour(0.5, (0.0, 1.0))[3], 255);
        assert!(legend("2412MHz", (-95.0, -40.0), "dBm").starts_with(b"\x89PNG"));
    }
}
