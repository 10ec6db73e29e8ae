//! Glyphs and line breaking.

use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};

/// One size and weight of the built-in typeface.
#[derive(Clone, Copy, Debug)]
pub struct Font {
    weight: FontWeight,
    size: RasterHeight,
}

impl Font {
    /// Ticks, labels and captions.
    pub const LABEL: Font = Font { weight: FontWeight::Regular, size: RasterHeight::Size20 };
    /// Titles of panels.
    pub const TITLE: Font = Font { weight: FontWeight::Bold, size: RasterHeight::Size24 };
    /// The heading of a figure.
    pub const HEADING: Font = Font { weight: FontWeight::Bold, size: RasterHeight::Size32 };

    /// Height of a line in pixels.
    pub fn height(self) -> i64 {
        self.size.val() as i64
    }

    /// Width of one character in pixels.
    pub fn advance(self) -> i64 {
        get_raster_width(self.weight, self.size) as i64
    }

    /// Width of a line of text in pixels.
    pub fn length(self, text: &str) -> i64 {
        text.chars().count() as i64 * self.advance()
    }

    /// Calls `put(dx, dy, coverage)` for every pixel with ink.
    pub(super) fn ink(self, text: &str, mut put: impl FnMut(i64, i64, f64)) {
        for (place, character) in text.chars().enumerate() {
            let glyph = get_raster(character, self.weight, self.size)
                .or_else(|| get_raster('?', self.weight, self.size));
            let Some(glyph) = glyph else { continue };
            let left = place as i64 * self.advance();
            for (dy, row) in glyph.raster().iter().enumerate() {
                for (dx, &value) in row.iter().enumerate().filter(|(_, v)| **v > 0) {
                    put(left + dx as i64, dy as i64, f64::from(value) / 255.0);
                }
            }
        }
    }

    /// Breaks text at blanks (and at newlines) into lines of at most `width` pixels; words that are
    /// too long for a line are cut.
    pub(super) fn wrap(self, text: &str, width: i64) -> Vec<String> {
        let most = (width / self.advance()).max(4) as usize;
        let mut lines = Vec::new();
        for paragraph in text.lines() {
            let mut line = String::new();
            for word in paragraph.split_whitespace() {
                let word = shorten(word, most);
                let blank = usize::from(!line.is_empty());
                if line.chars().count() + blank + word.chars().count() > most {
                    lines.push(std::mem::take(&mut line));
                }
                if !line.is_empty() {
                    line.push(' ');
                }
                line.push_str(&word);
            }
            if !line.is_empty() {
                lines.push(line);
            }
        }
        lines.truncate(6);
        lines
    }
}

fn shorten(word: &str, most: usize) -> String {
    if word.chars().count() <= most {
        return word.to_owned();
    }
    word.chars().take(most - 2).chain("..".chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_never_exceed_their_width() {
        let font = Font::TITLE;
        for width in [0, 30, 90, 400] {
            let text = "unrolled neural network\nSSIM 0.93 averylongwordwithoutanyblankinit";
            for line in font.wrap(text, width) {
                assert!(font.length(&line) <= width.max(4 * font.advance()), "{line}");
            }
        }
        assert_eq!(font.wrap("one\ntwo", 400), ["one", "two"]);
        assert!(font.wrap("", 100).is_empty());
    }

    #[test]
    fn unknown_characters_are_drawn_as_question_marks() {
        let ink = |text: &str| {
            let mut sum = 0.0;
            Font::LABEL.ink(text, |x, y, c| sum += c * (3 * x + y) as f64);
            sum
        };
        assert_eq!(ink("\u{4e2d}"), ink("?"));
        assert!(ink("±") != ink("?"));
    }
}
