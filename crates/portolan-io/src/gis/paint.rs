//! Levels as colours: images without axes for maps and globes, and a legend.

use std::io::{self, Write};

use crate::picture::{ColourMap, PictureKind, Shades, colour_bar};

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
    let scene = colour_bar(&format!("{label} [{unit}]"), Shades::power(limits));
    let drawn = PictureKind::Png.bytes(&scene, None);
    drawn.expect("a small picture always encodes into memory").0
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
