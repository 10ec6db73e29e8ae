//! A map as characters, for a look without leaving the terminal.

use std::fmt::Write as _;

use ndarray::Array2;

use super::colour::ColourMap;
use super::colour::Rgb;
use super::field::{resize, robust_limits};

const SHADES: &[u8] = b".:-=+*#%@";

/// A preview of a field in dB, at most `width_chars` wide, over a line with its range. With
/// `colour`, each character shows two cells in 24-bit colours; without, one of nine shades. What is
/// unknown stays blank.
///
/// ```
/// use portolan_io::picture::terminal;
/// let field = ndarray::Array2::from_shape_fn((8, 16), |(i, j)| -60.0 - (i + j) as f64);
/// let preview = terminal(&field, 40, false);
/// assert!(preview.lines().count() > 2 && preview.contains("-60"));
/// ```
pub fn terminal(field: &Array2<f64>, width_chars: usize, colour: bool) -> String {
    let (rows, cols) = field.dim();
    if rows == 0 || cols == 0 {
        return String::new();
    }
    // A character is about twice as high as wide; two square points share it.
    let width = width_chars.clamp(1, cols);
    let scale = (width as f64 / cols as f64).min(2.0 * width_chars.max(1) as f64 / rows as f64);
    let points = |n: usize| ((n as f64 * scale).round() as usize).max(1);
    let limits = robust_limits(&[field], 1e6);
    let mut out = if colour {
        blocks(&resize(field, points(rows), points(cols)), limits)
    } else {
        shades(&resize(field, points(rows).div_ceil(2), points(cols)), limits)
    };
    legend(&mut out, field, limits, colour);
    out
}

fn blocks(points: &Array2<f64>, limits: (f64, f64)) -> String {
    let mut out = String::new();
    let colour = |row: usize, col: usize| {
        let value = points.get([row, col]).copied().unwrap_or(f64::NAN);
        (!value.is_nan()).then(|| ColourMap::Power.of(value, limits))
    };
    for row in (0..points.nrows()).step_by(2) {
        for col in 0..points.ncols() {
            match (colour(row, col), colour(row + 1, col)) {
                (Some(top), Some(bottom)) => {
                    out.push_str(&(paint(38, top) + &paint(48, bottom) + "▀\x1b[0m"));
                }
                (Some(top), None) => out.push_str(&(paint(38, top) + "▀\x1b[0m")),
                (None, Some(bottom)) => out.push_str(&(paint(38, bottom) + "▄\x1b[0m")),
                (None, None) => out.push(' '),
            }
        }
        out.push('\n');
    }
    out
}

fn shades(points: &Array2<f64>, limits: (f64, f64)) -> String {
    let mut out = String::new();
    for row in points.outer_iter() {
        out.extend(row.iter().map(|&value| shade(value, limits)));
        out.push('\n');
    }
    out
}

fn shade(value: f64, (low, high): (f64, f64)) -> char {
    if value.is_nan() {
        return ' ';
    }
    let fraction = ((value - low) / (high - low)).clamp(0.0, 1.0);
    char::from(SHADES[((fraction * SHADES.len() as f64) as usize).min(SHADES.len() - 1)])
}

fn legend(out: &mut String, field: &Array2<f64>, limits: (f64, f64), colour: bool) {
    let known = field.iter().copied().filter(|v| v.is_finite());
    let (low, high) =
        known.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
    if low > high {
        out.push_str("nothing known\n");
        return;
    }
    let _ = write!(out, "min {low:.1} dB ");
    let steps = SHADES.len();
    for step in 0..steps {
        let fraction = (step as f64 + 0.5) / steps as f64;
        if colour {
            out.push_str(&(paint(38, ColourMap::Power.at(fraction)) + "█\x1b[0m"));
        } else {
            out.push(shade(limits.0 + fraction * (limits.1 - limits.0), limits));
        }
    }
    let _ = writeln!(out, " max {high:.1} dB");
}

fn paint(layer: u8, [r, g, b]: Rgb) -> String {
    format!("\x1b[{layer};2;{r};{g};{b}m")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;
    use proptest::prelude::*;

    #[test]
    fn shades_follow_power_and_blanks_the_unknown() {
        let field = array![[-90.0, -60.0, -30.0, f64::NAN], [-90.0, -60.0, -30.0, f64::NAN]];
        let text = terminal(&field, 80, false);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], ".+@ ");
        assert_eq!(lines[1], "min -90.0 dB .:-=+*#%@ max -30.0 dB");
        assert_eq!(lines.len(), 2);
    }

    #[test]
    fn one_character_shows_two_rows_in_colour() {
        let text = terminal(&array![[0.0, f64::NAN], [10.0, 10.0]], 80, true);
        let first = text.lines().next().unwrap();
        let [low, high] = [ColourMap::Power.at(0.0), ColourMap::Power.at(1.0)];
        let expected = paint(38, low) + &paint(48, high) + "▀\x1b[0m" + &paint(38, high);
        assert_eq!(first, expected + "▄\x1b[0m");
    }

    proptest! {
        #[test]
        fn previews_keep_to_their_width(
            rows in 1usize..90, cols in 1usize..90, width in 0usize..50, fill in any::<f64>(),
        ) {
            let field = Array2::from_elem((rows, cols), fill);
            let text = terminal(&field, width, false);
            let map_lines = text.lines().count() - 1;
            prop_assert!(map_lines >= 1 && map_lines <= width.max(1) + 1);
            for line in text.lines().take(map_lines) {
                prop_assert!(line.chars().count() <= width.max(1));
            }
            terminal(&field, width, true);
        }
    }
}
