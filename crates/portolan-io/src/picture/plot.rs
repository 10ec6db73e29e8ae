//! What heat maps and charts share: room around the plot, axes, titles.

use super::axis::Ticks;
use super::canvas::{Align, Canvas, INK, QUIET};
use super::text::Font;

pub const TICK: i64 = 6;
const GAP: i64 = 5;
/// Space between lines of text.
pub const LEADING: i64 = 4;

/// The plot of a panel in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rect {
    pub x: i64,
    pub y: i64,
    pub width: i64,
    pub height: i64,
}

/// The size of a plot and the room that text needs around it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    pub left: i64,
    pub right: i64,
    pub top: i64,
    pub bottom: i64,
    pub width: i64,
    pub height: i64,
}

impl Extent {
    pub fn join(self, other: Extent) -> Extent {
        Extent {
            left: self.left.max(other.left),
            right: self.right.max(other.right),
            top: self.top.max(other.top),
            bottom: self.bottom.max(other.bottom),
            width: self.width.max(other.width),
            height: self.height.max(other.height),
        }
    }
}

/// Range, ticks and name of one axis.
#[derive(Clone, Debug)]
pub struct Axis {
    pub low: f64,
    pub high: f64,
    pub ticks: Ticks,
    pub name: String,
}

impl Axis {
    pub fn horizontal(low: f64, high: f64, pixels: i64, name: String) -> Self {
        let room = |label: &str| Font::LABEL.length(label) + 2 * Font::LABEL.advance();
        Self { low, high, ticks: Ticks::fitting(low, high, pixels, room), name }
    }

    pub fn vertical(low: f64, high: f64, pixels: i64, name: String) -> Self {
        let room = |_: &str| Font::LABEL.height() * 3 / 2;
        Self { low, high, ticks: Ticks::fitting(low, high, pixels, room), name }
    }

    /// Where a value lies, as a fraction of the axis.
    pub fn fraction(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }

    fn widest(&self) -> i64 {
        self.ticks.labels.iter().map(|l| Font::LABEL.length(l)).max().unwrap_or(0)
    }

    /// Width of ticks, labels and name beside a plot.
    pub fn room_beside(&self) -> i64 {
        TICK + GAP + self.widest() + GAP + Font::LABEL.height()
    }

    /// Height of ticks, labels and name below a plot.
    pub fn room_below() -> i64 {
        TICK + 2 + 2 * Font::LABEL.height() + LEADING
    }

    /// Ticks below the plot, with labels and the name where `labels` is set.
    pub fn draw_below(&self, canvas: &mut Canvas, plot: Rect, labels: bool) {
        let edge = plot.y + plot.height + 1;
        for (value, label) in self.ticks.values.iter().zip(&self.ticks.labels) {
            let x = plot.x + (self.fraction(*value) * plot.width as f64).floor() as i64;
            canvas.fill_rect(x, edge, 1, TICK, INK);
            if labels {
                canvas.text(x, edge + TICK + 2, label, Font::LABEL, Align::Middle, INK);
            }
        }
        if labels {
            let y = edge + TICK + 2 + Font::LABEL.height() + LEADING;
            let x = plot.x + plot.width / 2;
            canvas.text(x, y, &self.name, Font::LABEL, Align::Middle, QUIET);
        }
    }

    /// Ticks left of the plot; `down` when values grow downwards.
    pub fn draw_left(&self, canvas: &mut Canvas, plot: Rect, labels: bool, down: bool) {
        let edge = plot.x - 1;
        for (value, label) in self.ticks.values.iter().zip(&self.ticks.labels) {
            let y = self.height_of(*value, plot, down);
            canvas.fill_rect(edge - TICK, y, TICK, 1, INK);
            if labels {
                let top = y - Font::LABEL.height() / 2;
                canvas.text(edge - TICK - GAP, top, label, Font::LABEL, Align::End, INK);
            }
        }
        if labels {
            let x = plot.x - self.room_beside();
            let y = plot.y + plot.height / 2;
            canvas.text_up(x, y, &self.name, Font::LABEL, Align::Middle, QUIET);
        }
    }

    /// Ticks, labels and name right of a colour bar.
    pub fn draw_right(&self, canvas: &mut Canvas, plot: Rect) {
        let edge = plot.x + plot.width + 1;
        for (value, label) in self.ticks.values.iter().zip(&self.ticks.labels) {
            let y = self.height_of(*value, plot, false);
            canvas.fill_rect(edge, y, TICK, 1, INK);
            let top = y - Font::LABEL.height() / 2;
            canvas.text(edge + TICK + GAP, top, label, Font::LABEL, Align::Start, INK);
        }
        let x = plot.x + plot.width + self.room_beside() - Font::LABEL.height();
        let y = plot.y + plot.height / 2;
        canvas.text_up(x, y, &self.name, Font::LABEL, Align::Middle, QUIET);
    }

    fn height_of(&self, value: f64, plot: Rect, down: bool) -> i64 {
        let fraction = self.fraction(value);
        let fraction = if down { fraction } else { 1.0 - fraction };
        let offset = (fraction * plot.height as f64).floor() as i64;
        plot.y + offset.clamp(0, plot.height - 1)
    }
}

/// The lines of a title and whether each is its first paragraph, which is set in bold.
pub fn title_lines(title: &str, width: i64) -> Vec<(String, Font)> {
    title
        .lines()
        .enumerate()
        .flat_map(|(paragraph, text)| {
            let font = if paragraph == 0 { Font::TITLE } else { Font::LABEL };
            font.wrap(text, width).into_iter().map(move |line| (line, font))
        })
        .collect()
}

/// Height of a title and the gap under it.
pub fn title_room(lines: usize) -> i64 {
    lines as i64 * (Font::TITLE.height() + LEADING) + 4
}

/// Draws a title so that its last line stands on the plot.
pub fn draw_title(canvas: &mut Canvas, lines: &[(String, Font)], middle: i64, bottom: i64) {
    let mut y = bottom - title_room(lines.len());
    for (line, font) in lines {
        canvas.text(middle, y, line, *font, Align::Middle, INK);
        y += Font::TITLE.height() + LEADING;
    }
}
