//! A picture as a list of shapes in points, from the top left corner: drawn as PNG, SVG or PDF.
//!
//! Text is turned into outlines when it is set, so that it looks the same everywhere.

mod path;
mod pdf;
mod pixels;
mod raster;
mod svg;
mod typeface;

use std::sync::Arc;

pub use path::{Path, Point, Segment};
pub use pixels::{Pixels, read_plan};
pub use typeface::Typeface;

use super::PictureError;
use super::colour::Rgb;

/// A colour and how much of it covers what lies below.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ink {
    pub rgb: Rgb,
    /// From 0, nothing, to 1.
    pub alpha: f64,
}

impl From<Rgb> for Ink {
    fn from(rgb: Rgb) -> Self {
        Self { rgb, alpha: 1.0 }
    }
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pen {
    pub ink: Ink,
    pub width: f64,
    /// Lengths of a dash and of the gap after it.
    pub dashes: Option<[f64; 2]>,
}

impl Pen {
    pub fn new(ink: impl Into<Ink>, width: f64) -> Self {
        Self { ink: ink.into(), width, dashes: None }
    }
}

/// Where an image lies: its top left corner, and the vectors along its upper and its left edge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placement {
    pub corner: Point,
    pub along: Point,
    pub down: Point,
}

impl Placement {
    pub fn upright(x: f64, y: f64, width: f64, height: f64) -> Self {
        Self { corner: (x, y), along: (width, 0.0), down: (0.0, height) }
    }
}

/// Which point of a text its position names, along the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// A line of text to be set.
#[derive(Clone, Debug, PartialEq)]
pub struct Text<'a> {
    pub text: &'a str,
    /// On the line's middle height for figures and capitals.
    pub at: Point,
    pub size: f64,
    pub bold: bool,
    pub anchor: Anchor,
    /// Degrees, anticlockwise.
    pub angle: f64,
    pub ink: Ink,
    /// Width of a white rim, for text upon a map.
    pub rim: f64,
}

impl<'a> Text<'a> {
    /// Plain text of a size.
    pub fn new(text: &'a str, at: Point, size: f64, anchor: Anchor, ink: impl Into<Ink>) -> Self {
        Self { text, at, size, bold: false, anchor, angle: 0.0, ink: ink.into(), rim: 0.0 }
    }

    pub fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    pub fn turned(self, angle: f64) -> Self {
        Self { angle, ..self }
    }

    pub fn rimmed(self, rim: f64) -> Self {
        Self { rim, ..self }
    }
}

/// A rectangle: left, top, right, bottom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

impl Bounds {
    pub fn around(points: impl IntoIterator<Item = Point>) -> Option<Self> {
        points.into_iter().fold(None, |found: Option<Bounds>, (x, y)| {
            let old = found.unwrap_or(Bounds { left: x, top: y, right: x, bottom: y });
            Some(Bounds {
                left: old.left.min(x),
                top: old.top.min(y),
                right: old.right.max(x),
                bottom: old.bottom.max(y),
            })
        })
    }

    pub fn meets(&self, other: &Bounds) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    pub fn holds(&self, other: &Bounds) -> bool {
        self.left <= other.left
            && self.right >= other.right
            && self.top <= other.top
            && self.bottom >= other.bottom
    }

    pub fn path(&self) -> Path {
        Path::rect(self.left, self.top, self.right - self.left, self.bottom - self.top)
    }
}

/// One thing that is drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    Fill {
        path: Path,
        ink: Ink,
    },
    Stroke {
        path: Path,
        pen: Pen,
    },
    Image {
        pixels: Arc<Pixels>,
        place: Placement,
        opacity: f64,
        smooth: bool,
    },
    Text {
        text: String,
        outline: Path,
        ink: Ink,
        rim: f64,
        bounds: Bounds,
    },
    /// Items of which only what lies in a path is seen.
    Clip {
        to: Path,
        items: Vec<Item>,
    },
}

/// A picture: shapes on a white page.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    pub width: f64,
    pub height: f64,
    /// What it shows, for readers that ask.
    pub title: String,
    pub items: Vec<Item>,
}

impl Scene {
    pub fn new(width: f64, height: f64, title: impl Into<String>) -> Self {
        Self { width, height, title: title.into(), items: Vec::new() }
    }

    pub fn fill(&mut self, path: Path, ink: impl Into<Ink>) {
        self.items.push(Item::Fill { path, ink: ink.into() });
    }

    pub fn stroke(&mut self, path: Path, pen: Pen) {
        self.items.push(Item::Stroke { path, pen });
    }

    pub fn image(
        &mut self,
        pixels: impl Into<Arc<Pixels>>,
        place: Placement,
        opacity: f64,
        smooth: bool,
    ) {
        let pixels = pixels.into();
        self.items.push(Item::Image { pixels, place, opacity, smooth });
    }

    /// Sets a line of text; returns what it covers.
    pub fn text(&mut self, typeface: &Typeface, text: &Text<'_>) -> Option<Bounds> {
        let (outline, bounds) = typeface.set(text)?;
        let (ink, rim) = (text.ink, text.rim);
        self.items.push(Item::Text { text: text.text.to_owned(), outline, ink, rim, bounds });
        Some(bounds)
    }

    /// Slanting lines over an area, on a tint: nothing is known there.
    pub fn hatch(&mut self, area: Path, tint: Ink, pen: Pen, apart: f64) {
        let Some(bounds) = Bounds::around(area.points()) else { return };
        let height = bounds.bottom - bounds.top;
        let mut lines = Path::default();
        // Lines keep their places whatever the area, so that neighbouring areas match.
        let mut x = ((bounds.left - height) / apart).floor() * apart + bounds.bottom % apart;
        while x < bounds.right {
            lines.line((x, bounds.bottom), (x + height, bounds.top));
            x += apart;
        }
        let items =
            vec![Item::Fill { path: bounds.path(), ink: tint }, Item::Stroke { path: lines, pen }];
        self.items.push(Item::Clip { to: area, items });
    }

    /// What `draw` adds is seen only in `to`.
    pub fn clipped(&mut self, to: Path, draw: impl FnOnce(&mut Scene)) {
        let before = std::mem::take(&mut self.items);
        draw(self);
        let items = std::mem::replace(&mut self.items, before);
        if !items.is_empty() {
            self.items.push(Item::Clip { to, items });
        }
    }

    /// Every text with what it covers.
    pub fn texts(&self) -> Vec<(&str, Bounds)> {
        fn collect<'a>(items: &'a [Item], found: &mut Vec<(&'a str, Bounds)>) {
            for item in items {
                match item {
                    Item::Text { text, bounds, .. } => found.push((text, *bounds)),
                    Item::Clip { items, .. } => collect(items, found),
                    _ => {}
                }
            }
        }
        let mut found = Vec::new();
        collect(&self.items, &mut found);
        found
    }

    /// As PNG, `width` pixels wide.
    pub fn png(&self, width: u32) -> Result<Vec<u8>, PictureError> {
        Ok(raster::draw(self, width)?.png())
    }

    /// As the pixels of a PNG, `width` pixels wide.
    pub fn pixels(&self, width: u32) -> Result<Pixels, PictureError> {
        raster::draw(self, width)
    }

    /// As SVG, `width` points wide.
    pub fn svg(&self, width: f64) -> String {
        svg::write(self, width)
    }

    /// As PDF, `width` points wide.
    pub fn pdf(&self, width: f64) -> Vec<u8> {
        pdf::write(self, width)
    }
}

#[cfg(test)]
mod tests;
