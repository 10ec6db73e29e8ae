//! A map as a heat map: one colour per cell, axes in metres, colour bar, sensors and emitters.

use ndarray::Array2;
use portolan::{Grid, Site};

use super::canvas::{Canvas, INK, Rgb, WHITE};
use super::colour::ColourMap;
use super::field::{paper_size, resize, robust_limits, widen};
use super::marks::{draw_emitter, draw_located, draw_sensor, draw_unknown, unknown};
use super::plot::{Axis, Extent, Rect, draw_title, title_lines, title_room};

const BAR_GAP: i64 = 14;
const BAR_WIDTH: i64 = 16;
/// Narrower plots are set in a box of this size, so that axis names and the colour bar fit.
const SMALLEST: (i64, i64) = (180, 110);

/// Half axes, in standard errors, of the ellipse that holds 90 % of a normal distribution.
const NINETY: f64 = 2.146;

/// A sensor to mark; with a value, its mark takes the value's colour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sensor {
    /// Row and column; between cells too.
    pub at: [f64; 2],
    pub value: Option<f64>,
}

/// One heat map. NaN is drawn as hatched grey.
#[derive(Clone, Debug)]
pub struct HeatPanel {
    /// First line bold, further lines plain.
    pub title: String,
    pub field: Array2<f64>,
    pub cell_m: f64,
    /// The centre of the first cell.
    pub origin: Site,
    pub colours: ColourMap,
    pub limits: (f64, f64),
    /// Name of the colour bar, with its unit; no bar without a name.
    pub bar: Option<String>,
    pub sensors: Vec<Sensor>,
    /// Row, column; those off the grid are left out.
    pub emitters: Vec<[f64; 2]>,
    /// Standard errors of their rows and columns in cells, drawn as ellipses; empty where unknown.
    pub emitter_se: Vec<[f64; 2]>,
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
            origin: Site::new(0.0, 0.0),
            colours: ColourMap::Power,
            limits,
            bar: Some("power [dB]".to_owned()),
            sensors: Vec::new(),
            emitters: Vec::new(),
            emitter_se: Vec::new(),
            x_labels: true,
            y_labels: true,
        }
    }

    /// A panel whose axes are those of a grid.
    pub fn on_grid(title: impl Into<String>, field: Array2<f64>, grid: Grid) -> Self {
        Self { origin: grid.origin(), ..Self::new(title, field, grid.cell_m()) }
    }

    /// Whether values lie below and above the limits, so that the colours cannot tell them.
    fn clipped(&self) -> (bool, bool) {
        let (low, high) = self.limits;
        let slack = 1e-9 * (high - low).abs();
        let any = |wrong: &dyn Fn(f64) -> bool| {
            self.field.iter().any(|v| wrong(*v))
                || self.sensors.iter().filter_map(|s| s.value).any(wrong)
        };
        (any(&|v| v < low - slack), any(&|v| v > high + slack))
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

    fn room_below(&self) -> i64 {
        if self.x_labels { Axis::room_below() } else { 8 }
    }

    /// Emitters on the grid, each with its standard errors where they are known.
    pub(super) fn visible_emitters(&self) -> impl Iterator<Item = ([f64; 2], Option<[f64; 2]>)> {
        let (rows, cols) = self.field.dim();
        let on = |at: f64, cells: usize| (-0.5..=cells as f64 - 0.5).contains(&at);
        let known = self.emitters.iter().enumerate();
        let known = known.map(|(r, at)| (*at, self.emitter_se.get(r).copied()));
        known.filter(move |(at, _)| on(at[0], rows) && on(at[1], cols))
    }

    fn axes(&self, width: i64, height: i64) -> (Axis, Axis) {
        let (rows, cols) = self.field.dim();
        let kilo = rows.max(cols) as f64 * self.cell_m >= 10_000.0;
        let (cell, unit) = if kilo { (self.cell_m / 1e3, "km") } else { (self.cell_m, "m") };
        let share = cell / self.cell_m;
        let range = |cells: usize, from: f64| {
            (share * from - 0.5 * cell, share * from + (cells as f64 - 0.5) * cell)
        };
        let (left, right) = range(cols, self.origin.y_m);
        let (top, bottom) = range(rows, self.origin.x_m);
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
        let left = if self.y_labels { vertical.room_beside() } else { 10 };
        let right = match &self.bar {
            Some(name) => BAR_GAP + BAR_WIDTH + self.bar_axis(boxed.1, name).room_beside(),
            None => 10,
        };
        // A small plot stands in the middle of its box: what surrounds it uses that space first.
        let (beside, above) = ((boxed.0 - width) / 2, (boxed.1 - height) / 2);
        Extent {
            left: (left - beside).max(10),
            right: (right - beside).max(10),
            top: (title_room(lines) - above).max(8),
            bottom: (self.room_below() - above).max(8),
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
        let (below, above) = self.clipped();
        if above {
            self.draw_tip(canvas, bar, bar.y - 2, -1, self.colours.at(1.0));
        }
        if below {
            self.draw_tip(canvas, bar, bar.y + bar.height + 1, 1, self.colours.at(0.0));
        }
        self.bar_axis(bar.height, name).draw_right(canvas, bar);
    }

    /// A tip on the colour bar: there are values beyond its end.
    fn draw_tip(&self, canvas: &mut Canvas, bar: Rect, y: i64, along: i64, colour: Rgb) {
        for step in 0..bar.width / 2 {
            let (x, width) = (bar.x + step, bar.width - 2 * step);
            let row = y + along * step;
            canvas.fill_rect(x, row, width, 1, colour);
            canvas.set(x, row, INK);
            canvas.set(x + width - 1, row, INK);
        }
    }

    fn draw_marks(&self, canvas: &mut Canvas, plot: Rect) {
        let (rows, cols) = self.field.dim();
        let place = |row: f64, col: f64| {
            let x = plot.x as f64 + (col + 0.5) / cols as f64 * plot.width as f64;
            let y = plot.y as f64 + (row + 0.5) / rows as f64 * plot.height as f64;
            (x, y)
        };
        let area = (plot.width * plot.height) as f64;
        let apart = (area / self.sensors.len().max(1) as f64).sqrt();
        for sensor in &self.sensors {
            let [row, col] = sensor.at;
            let on = |at: f64, cells: usize| (-0.5..=cells as f64 - 0.5).contains(&at);
            if !on(row, rows) || !on(col, cols) {
                continue;
            }
            // A mark that carries a value must show its colour, one that does not must not hide any.
            let (share, most) = if sensor.value.is_some() { (0.2, 7.0) } else { (0.16, 4.5) };
            let radius = (share * apart).clamp(1.5, most);
            let fill = sensor.value.map_or(WHITE, |v| self.colours.of(v, self.limits));
            draw_sensor(canvas, place(row, col), radius, fill);
        }
        let cell = (plot.width as f64 / cols as f64, plot.height as f64 / rows as f64);
        for ([row, col], se) in self.visible_emitters() {
            let centre = place(row, col);
            match se {
                Some([down, across]) => {
                    let radii = (NINETY * across * cell.0, NINETY * down * cell.1);
                    draw_located(canvas, centre, radii, plot);
                }
                None => draw_emitter(canvas, centre),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::marks::{EMITTER, UNKNOWN, UNKNOWN_HATCH};
    use super::*;
    use ndarray::array;

    const ROOM: Rect = Rect { x: 120, y: 60, width: 400, height: 400 };

    fn drawn(panel: &HeatPanel) -> Canvas {
        let mut canvas = Canvas::new(700, 600);
        panel.draw(&mut canvas, ROOM, 400);
        canvas
    }

    /// The pixel in the middle of a cell of a 4 x 4 field.
    fn at(canvas: &Canvas, row: usize, col: usize) -> Rgb {
        canvas.pixel(ROOM.x as usize + 100 * col + 50, ROOM.y as usize + 100 * row + 50)
    }

    fn panel() -> HeatPanel {
        let mut field = Array2::from_shape_fn((4, 4), |(i, j)| (4 * i + j) as f64);
        field[[2, 1]] = f64::NAN;
        let mut panel = HeatPanel::new("a title", field, 5.0);
        panel.limits = (0.0, 15.0);
        panel
    }

    #[test]
    fn every_cell_has_its_colour_at_its_place() {
        let panel = panel();
        let canvas = drawn(&panel);
        for ((row, col), &value) in panel.field.indexed_iter() {
            let colour = at(&canvas, row, col);
            if value.is_nan() {
                assert!([UNKNOWN, UNKNOWN_HATCH].contains(&colour));
            } else {
                assert_eq!(colour, ColourMap::Power.of(value, (0.0, 15.0)), "{row}, {col}");
            }
        }
        // Corners of the plot, just inside the frame.
        assert_eq!(canvas.pixel(120, 60), ColourMap::Power.at(0.0));
        assert_eq!(canvas.pixel(519, 459), ColourMap::Power.at(1.0));
        assert_eq!(canvas.pixel(520, 459), INK);
    }

    #[test]
    fn the_colour_bar_runs_from_the_low_limit_up_to_the_high_one() {
        let canvas = drawn(&panel());
        let x = (ROOM.x + ROOM.width + BAR_GAP + BAR_WIDTH / 2) as usize;
        assert_eq!(canvas.pixel(x, 60), ColourMap::Power.at(1.0 - 0.5 / 400.0));
        assert_eq!(canvas.pixel(x, 459), ColourMap::Power.at(0.5 / 400.0));
    }

    #[test]
    fn a_bar_that_clips_has_a_tip() {
        let x = (ROOM.x + ROOM.width + BAR_GAP + BAR_WIDTH / 2) as usize;
        let tips = |limits: (f64, f64)| {
            let panel = HeatPanel { limits, ..panel() };
            let canvas = drawn(&panel);
            [canvas.pixel(x, 57) != WHITE, canvas.pixel(x, 462) != WHITE]
        };
        assert_eq!(tips((0.0, 15.0)), [false, false]);
        assert_eq!(tips((0.0, 10.0)), [true, false]);
        assert_eq!(tips((3.0, 15.0)), [false, true]);
    }

    #[test]
    fn sensors_and_emitters_lie_on_their_cells() {
        let mut panel = panel();
        panel.sensors = vec![
            Sensor { at: [0.0, 2.0], value: None },
            Sensor { at: [1.0, 3.0], value: Some(15.0) },
            Sensor { at: [9.0, 9.0], value: None },
        ];
        panel.emitters = vec![[3.0, 0.0], [40.0, 2.0], [f64::NAN, 1.0]];
        let canvas = drawn(&panel);
        assert_eq!(at(&canvas, 0, 2), WHITE);
        assert_eq!(at(&canvas, 1, 3), ColourMap::Power.at(1.0));
        assert_eq!(at(&canvas, 3, 0), EMITTER);
        assert_eq!(panel.visible_emitters().count(), 1);
    }

    #[test]
    fn the_extent_holds_everything_that_is_drawn() {
        for field in [array![[1.0]], Array2::zeros((1, 60)), Array2::zeros((60, 1))] {
            let panel = HeatPanel::new("estimate - truth", field, 1e-3);
            let e = panel.extent(300);
            let size = (e.left + e.width + e.right, e.top + e.height + e.bottom);
            let mut canvas = Canvas::new(size.0 as usize, size.1 as usize);
            let room = Rect { x: e.left, y: e.top, width: e.width, height: e.height };
            panel.draw(&mut canvas, room, 300);
            assert_eq!(canvas.lost_ink(), 0, "{:?}", panel.field.dim());
        }
    }
}
