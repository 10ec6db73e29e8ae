//! A map as a heat map: one colour per cell, axes in metres, colour bar, sensors and emitters.

use ndarray::Array2;
use portolan::Cell;

use super::canvas::{Align, Canvas, INK, Rgb, WHITE};
use super::colour::ColourMap;
use super::field::{paper_size, resize, robust_limits, widen};
use super::plot::{Axis, Extent, LEADING, Rect, draw_title, title_lines, title_room};
use super::text::Font;

const UNKNOWN: Rgb = [228, 228, 230];
const UNKNOWN_HATCH: Rgb = [214, 214, 217];
pub const EMITTER: Rgb = [225, 20, 50];
const BAR_GAP: i64 = 14;
const BAR_WIDTH: i64 = 16;
/// Narrower plots are set in a box of this size, so that axis names and the colour bar fit.
const SMALLEST: (i64, i64) = (170, 130);

/// A sensor to mark; with a value, its mark takes the value's colour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sensor {
    pub cell: Cell,
    pub value: Option<f64>,
}

/// One heat map. NaN is drawn as hatched grey.
#[derive(Clone, Debug)]
pub struct HeatPanel {
    /// First line bold, further lines plain.
    pub title: String,
    pub field: Array2<f64>,
    pub cell_m: f64,
    pub colours: ColourMap,
    pub limits: (f64, f64),
    /// Name of the colour bar, with its unit; no bar without a name.
    pub bar: Option<String>,
    pub sensors: Vec<Sensor>,
    /// Row, column; those off the grid are left out.
    pub emitters: Vec<[f64; 2]>,
    /// A line below the plot.
    pub caption: Option<String>,
    /// Whether the axes carry labels; neighbours that share an axis need them once.
    pub x_labels: bool,
    pub y_labels: bool,
}

impl HeatPanel {
    /// A panel with robust limits and nothing marked.
    pub fn new(title: impl Into<String>, field: Array2<f64>, cell_m: f64) -> Self {
        let limits = robust_limits(&[&field], f64::MAX / 1e10);
        Self {
            title: title.into(),
            field,
            cell_m,
            colours: ColourMap::Power,
            limits,
            bar: Some("power [dB]".to_owned()),
            sensors: Vec::new(),
            emitters: Vec::new(),
            caption: None,
            x_labels: true,
            y_labels: true,
        }
    }

    pub fn has_unknown(&self) -> bool {
        self.field.iter().any(|v| v.is_nan())
    }

    /// Whether another panel can use this one's colour bar.
    pub fn same_bar(&self, other: &HeatPanel) -> bool {
        (&self.bar, self.colours, self.limits) == (&other.bar, other.colours, other.limits)
    }

    fn size(&self, target: usize) -> (i64, i64) {
        let (rows, cols) = self.field.dim();
        let (width, height) = paper_size(rows.max(1), cols.max(1), target);
        (width as i64, height as i64)
    }

    fn axes(&self, width: i64, height: i64) -> (Axis, Axis) {
        let (rows, cols) = self.field.dim();
        let kilo = rows.max(cols) as f64 * self.cell_m >= 10_000.0;
        let (cell, unit) = if kilo { (self.cell_m / 1e3, "km") } else { (self.cell_m, "m") };
        let range = |cells: usize| (-0.5 * cell, (cells as f64 - 0.5) * cell);
        let (left, right) = range(cols);
        let (top, bottom) = range(rows);
        (
            Axis::horizontal(left, right, width, format!("columns, y [{unit}]")),
            Axis::vertical(top, bottom, height, format!("rows, x [{unit}]")),
        )
    }

    fn bar_axis(&self, height: i64, name: &str) -> Axis {
        let (low, high) = widen(self.limits.0, self.limits.1);
        Axis::vertical(low, high, height, name.to_owned())
    }

    pub(super) fn extent(&self, target: usize) -> Extent {
        let (width, height) = self.size(target);
        let (_, vertical) = self.axes(width, height);
        let boxed = (width.max(SMALLEST.0), height.max(SMALLEST.1));
        let lines = title_lines(&self.title, boxed.0).len();
        let caption = i64::from(self.caption.is_some()) * (Font::LABEL.height() + 2 * LEADING);
        Extent {
            left: if self.y_labels { vertical.room_beside() } else { 10 },
            right: match &self.bar {
                Some(name) => BAR_GAP + BAR_WIDTH + self.bar_axis(boxed.1, name).room_beside(),
                None => 10,
            },
            top: title_room(lines),
            bottom: if self.x_labels { Axis::room_below() } else { 8 } + caption,
            width: boxed.0,
            height: boxed.1,
        }
    }

    /// Draws the panel in a box of at least the size that `extent` asked for.
    pub(super) fn draw(&self, canvas: &mut Canvas, room: Rect, target: usize) {
        let (width, height) = self.size(target);
        let x = room.x + (room.width - width) / 2;
        let y = room.y + (room.height - height) / 2;
        let plot = Rect { x, y, width, height };
        self.draw_cells(canvas, plot);
        canvas.frame(x, y, width, height, INK);
        let (horizontal, vertical) = self.axes(width, height);
        horizontal.draw_below(canvas, plot, self.x_labels);
        vertical.draw_left(canvas, plot, self.y_labels, true);
        let lines = title_lines(&self.title, room.width);
        let middle = x + width / 2;
        draw_title(canvas, &lines, middle, y);
        if let Some(caption) = &self.caption {
            let below = if self.x_labels { Axis::room_below() } else { 8 };
            let line = Font::LABEL.wrap(caption, room.width).into_iter().next();
            let top = y + height + below + LEADING;
            let line = line.unwrap_or_default();
            canvas.text(middle, top, &line, Font::LABEL, Align::Middle, INK);
        }
        if let Some(name) = &self.bar {
            let x = x + width + BAR_GAP;
            let bar = Rect { x, y: room.y, width: BAR_WIDTH, height: room.height };
            self.draw_bar(canvas, bar, name);
        }
        self.draw_marks(canvas, plot);
    }

    fn draw_cells(&self, canvas: &mut Canvas, plot: Rect) {
        if self.field.is_empty() {
            draw_unknown(canvas, plot);
            return;
        }
        let pixels = resize(&self.field, plot.height as usize, plot.width as usize);
        for ((i, j), &value) in pixels.indexed_iter() {
            let (x, y) = (plot.x + j as i64, plot.y + i as i64);
            let colour =
                if value.is_nan() { unknown(x, y) } else { self.colours.of(value, self.limits) };
            canvas.set(x, y, colour);
        }
    }

    fn draw_bar(&self, canvas: &mut Canvas, bar: Rect, name: &str) {
        for dy in 0..bar.height {
            let fraction = 1.0 - (dy as f64 + 0.5) / bar.height as f64;
            canvas.fill_rect(bar.x, bar.y + dy, bar.width, 1, self.colours.at(fraction));
        }
        canvas.frame(bar.x, bar.y, bar.width, bar.height, INK);
        self.bar_axis(bar.height, name).draw_right(canvas, bar);
    }

    fn draw_marks(&self, canvas: &mut Canvas, plot: Rect) {
        let (rows, cols) = self.field.dim();
        let place = |row: f64, col: f64| {
            let x = plot.x as f64 + (col + 0.5) / cols as f64 * plot.width as f64;
            let y = plot.y as f64 + (row + 0.5) / rows as f64 * plot.height as f64;
            (x, y)
        };
        let radius = mark_radius(plot, self.sensors.len());
        for sensor in &self.sensors {
            let Cell { row, col } = sensor.cell;
            if row >= rows || col >= cols {
                continue;
            }
            let fill = sensor.value.map_or(WHITE, |v| self.colours.of(v, self.limits));
            draw_sensor(canvas, place(row as f64, col as f64), radius, fill);
        }
        for &[row, col] in &self.emitters {
            let inside = (-0.5..=rows as f64 - 0.5).contains(&row)
                && (-0.5..=cols as f64 - 0.5).contains(&col);
            if inside {
                draw_emitter(canvas, place(row, col));
            }
        }
    }
}

/// A sixth of the mean distance between sensors, within what can be seen.
fn mark_radius(plot: Rect, sensors: usize) -> f64 {
    let area = (plot.width * plot.height) as f64;
    (0.16 * (area / sensors.max(1) as f64).sqrt()).clamp(1.5, 4.5)
}

pub fn draw_sensor(canvas: &mut Canvas, centre: (f64, f64), radius: f64, fill: Rgb) {
    let edge = (radius * 0.4).clamp(0.8, 1.3);
    canvas.disc(centre, radius + edge / 2.0, INK);
    canvas.disc(centre, radius - edge / 2.0, fill);
}

pub fn draw_emitter(canvas: &mut Canvas, centre: (f64, f64)) {
    canvas.cross(centre, 6.5, 6.0, WHITE);
    canvas.cross(centre, 6.5, 3.0, EMITTER);
}

pub fn draw_unknown(canvas: &mut Canvas, area: Rect) {
    for y in area.y..area.y + area.height {
        for x in area.x..area.x + area.width {
            canvas.set(x, y, unknown(x, y));
        }
    }
}

fn unknown(x: i64, y: i64) -> Rgb {
    if (x + y).rem_euclid(7) == 0 { UNKNOWN_HATCH } else { UNKNOWN }
}
