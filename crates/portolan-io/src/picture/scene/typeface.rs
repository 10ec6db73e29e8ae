//! Outlines of letters: the fonts that come along, and one of the user's for other scripts.
//!
//! Letters are set one after the other: scripts whose letters join or reorder are not shaped.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use ttf_parser::{Face, OutlineBuilder};

use super::path::{Path, Point, Segment};
use super::{Anchor, Bounds, Text};
use crate::error::{IoError, Problem};

static REGULAR: &[u8] = include_bytes!("../../../fonts/DejaVuSans-subset.ttf");
static BOLD: &[u8] = include_bytes!("../../../fonts/DejaVuSans-Bold-subset.ttf");

/// Larger fonts are refused: the largest in use hold 20 MB.
const LARGEST: u64 = 64 << 20;

/// Half the height of capitals, in sizes.
const HALF_CAPITAL: f64 = 0.365;

/// The fonts that text is set in.
#[derive(Debug, Default)]
pub struct Typeface {
    own: Option<Vec<u8>>,
    missing: Mutex<BTreeSet<char>>,
}

impl Typeface {
    /// The fonts that come along.
    pub fn new() -> Self {
        Self::default()
    }

    /// A font of the user's; what it lacks is taken from those that come along.
    pub fn from_file(path: &std::path::Path) -> Result<Self, IoError> {
        let open = |source| IoError::Open { path: path.to_owned(), source };
        let wrong = |problem: &str| Problem::new(problem).in_file(path);
        let about = std::fs::metadata(path).map_err(open)?;
        if !about.is_file() || about.len() > LARGEST {
            return Err(wrong("expected a TrueType font of at most 64 MB"));
        }
        let bytes = std::fs::read(path).map_err(open)?;
        let glyphs = Face::parse(&bytes, 0).map_or(0, |face| face.number_of_glyphs());
        if glyphs == 0 {
            return Err(wrong("not a TrueType font, expected a .ttf file"));
        }
        Ok(Self { own: Some(bytes), ..Self::default() })
    }

    /// Characters that no font had, so far.
    pub fn missing(&self) -> Vec<char> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }

    /// Length of a line in points.
    pub fn length(&self, text: &str, size: f64, bold: bool) -> f64 {
        let mut end = 0.0;
        self.glyphs(text, size, bold, |_, advance, _| end += advance);
        end
    }

    /// The outline of a line of text and what it covers; nothing where it has no ink.
    pub(super) fn set(&self, text: &Text<'_>) -> Option<(Path, Bounds)> {
        let length = self.length(text.text, text.size, text.bold);
        let shift = match text.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => length / 2.0,
            Anchor::End => length,
        };
        let (sin, cos) = text.angle.to_radians().sin_cos();
        let mut pen = Pen {
            path: Path::default(),
            last: (0.0, 0.0),
            place: Box::new(move |(x, y)| {
                // The line's own axes: x along it, y down from the middle of capitals.
                let (x, y) = (x - shift, HALF_CAPITAL * text.size - y);
                (text.at.0 + x * cos + y * sin, text.at.1 - x * sin + y * cos)
            }),
            scale: 1.0,
            left: 0.0,
        };
        self.glyphs(text.text, text.size, text.bold, |(face, glyph), advance, scale| {
            pen.scale = scale;
            face.outline_glyph(glyph, &mut pen);
            pen.left += advance;
        });
        let bounds = Bounds::around(pen.path.points())?;
        Some((pen.path, bounds))
    }

    /// Calls `each(glyph, advance, points per unit of the font)` for every character.
    fn glyphs<'a>(
        &'a self,
        text: &str,
        size: f64,
        bold: bool,
        mut each: impl FnMut((&Face<'a>, ttf_parser::GlyphId), f64, f64),
    ) {
        let along = if bold { [BOLD, REGULAR] } else { [REGULAR, BOLD] };
        let fonts = self.own.as_deref().into_iter().chain(along);
        let faces: Vec<Face<'a>> = fonts.filter_map(|data| Face::parse(data, 0).ok()).collect();
        for character in text.chars() {
            let character = if character.is_control() { ' ' } else { character };
            let found = faces.iter().find_map(|face| Some((face, face.glyph_index(character)?)));
            let found = found.or_else(|| {
                let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
                missing.insert(character);
                let stand_in = |face: &'_ Face<'a>| face.glyph_index('\u{fffd}');
                faces.iter().find_map(|face| Some((face, stand_in(face)?)))
            });
            let Some((face, glyph)) = found else { continue };
            let scale = size / f64::from(face.units_per_em());
            let advance = f64::from(face.glyph_hor_advance(glyph).unwrap_or(0)) * scale;
            each((face, glyph), advance, scale);
        }
    }

    /// Breaks text at blanks into lines of at most `width`; a word that is too long is cut, and so
    /// is text of more than `most` lines.
    pub fn wrap(&self, text: &str, size: f64, bold: bool, width: f64, most: usize) -> Vec<String> {
        let fits = |line: &str| self.length(line, size, bold) <= width;
        let mut lines: Vec<String> = Vec::new();
        for paragraph in text.lines() {
            let mut line = String::new();
            for word in paragraph.split_whitespace() {
                let longer = if line.is_empty() { word.into() } else { format!("{line} {word}") };
                if fits(&longer) {
                    line = longer;
                    continue;
                }
                if !line.is_empty() {
                    lines.push(std::mem::take(&mut line));
                }
                line = self.cut(word, size, bold, width);
            }
            if !line.is_empty() {
                lines.push(line);
            }
        }
        if lines.len() > most {
            lines.truncate(most);
            if let Some(last) = lines.last_mut() {
                *last = self.cut(&format!("{last} ……"), size, bold, width);
            }
        }
        lines
    }

    /// As much of a line as fits, with dots where some is lost.
    pub fn cut(&self, line: &str, size: f64, bold: bool, width: f64) -> String {
        if self.length(line, size, bold) <= width {
            return line.to_owned();
        }
        let mut kept: Vec<char> = line.chars().take(500).collect();
        loop {
            kept.pop();
            let text: String = kept.iter().chain(&['…']).collect();
            if kept.is_empty() || self.length(&text, size, bold) <= width {
                return text;
            }
        }
    }
}

/// Takes a glyph's outline in units of its font, y up.
struct Pen<'a> {
    path: Path,
    last: Point,
    place: Box<dyn Fn(Point) -> Point + 'a>,
    scale: f64,
    left: f64,
}

impl Pen<'_> {
    fn at(&self, x: f32, y: f32) -> Point {
        (self.place)((self.left + f64::from(x) * self.scale, f64::from(y) * self.scale))
    }

    fn push(&mut self, segment: Segment, last: Point) {
        self.path.segments.push(segment);
        self.last = last;
    }
}

impl OutlineBuilder for Pen<'_> {
    fn move_to(&mut self, x: f32, y: f32) {
        let to = self.at(x, y);
        self.push(Segment::Move(to), to);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let to = self.at(x, y);
        self.push(Segment::Line(to), to);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let (from, handle, to) = (self.last, self.at(x1, y1), self.at(x, y));
        let toward =
            |a: Point| (a.0 + 2.0 / 3.0 * (handle.0 - a.0), a.1 + 2.0 / 3.0 * (handle.1 - a.1));
        self.push(Segment::Curve(toward(from), toward(to), to), to);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let to = self.at(x, y);
        self.push(Segment::Curve(self.at(x1, y1), self.at(x2, y2), to), to);
    }

    fn close(&mut self) {
        self.path.segments.push(Segment::Close);
    }
}
