//! Curves over one axis with a legend at the side.

use super::canvas::{Align, Canvas, INK, Rgb};
use super::colour::CURVES;
use super::field::widen;
use super::plot::{Axis, Extent, Rect, draw_title, title_lines, title_room};
use super::text::Font;

const GRID_LINE: Rgb = [232, 232, 235];
const SAMPLE: i64 = 34;
/// Height of a bar and the gap to the next.
const BAR_STEP: i64 = 9;

#[derive(Clone, Debug)]
pub struct Curve {
    /// Shown in the legend; curves without a name are not listed.
    pub name: String,
    /// x, y; a value that is not finite breaks the curve.
    pub points: Vec<(f64, f64)>,
    /// Curves of one number share a colour.
    pub colour: usize,
    pub dashed: bool,
}

/// Stretches of the axis, shown as a bar at the top of the plot and as a tint under a curve.
#[derive(Clone, Debug)]
pub struct Bar {
    /// From, to.
    pub ranges: Vec<(f64, f64)>,
    /// That of the curve it belongs to.
    pub colour: usize,
}

/// A chart of several curves.
#[derive(Clone, Debug)]
pub struct LinePanel {
    pub title: String,
    pub x_name: String,
    pub y_name: String,
    pub curves: Vec<Curve>,
    /// Topmost first; the plot grows by them.
    pub bars: Vec<Bar>,
    /// Limits of the vertical axis; from the curves where absent.
    pub y_limits: Option<(f64, f64)>,
}

impl LinePanel {
    fn ranges(&self) -> ((f64, f64), (f64, f64)) {
        let points = || self.curves.iter().flat_map(|c| &c.points).filter(|p| drawable(p));
        let range = |values: &mut dyn Iterator<Item = f64>| {
            let (low, high) =
                values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
            if low <= high { (low, high) } else { (0.0, 1.0) }
        };
        let (left, right) = range(&mut points().map(|p| p.0));
        let (low, high) = range(&mut points().map(|p| p.1));
        // A twentieth of air keeps curves off the frame.
        let air = (high - low) * 0.05;
        let vertical = self.y_limits.unwrap_or((low - air, high + air));
        (widen(left, right), widen(vertical.0, vertical.1))
    }

    fn axes(&self, width: i64, height: i64) -> (Axis, Axis) {
        let ((left, right), (low, high)) = self.ranges();
        (
            Axis::horizontal(left, right, width, self.x_name.clone()),
            Axis::vertical(low, high, height, self.y_name.clone()),
        )
    }

    fn legend_width(&self) -> i64 {
        let names = self.curves.iter().map(|c| Font::LABEL.length(&c.name));
        names.filter(|w| *w > 0).max().map_or(24, |widest| 16 + SAMPLE + 8 + widest)
    }

    pub(super) fn extent(&self, width: i64, height: i64) -> Extent {
        let (_, vertical) = self.axes(width, height);
        let named = self.curves.iter().filter(|c| !c.name.is_empty()).count() as i64;
        Extent {
            left: vertical.room_beside(),
            right: self.legend_width(),
            top: title_room(title_lines(&self.title, width).len()),
            bottom: Axis::room_below(),
            width,
            height: height.max(named * 26) + self.bars_height(),
        }
    }

    fn bars_height(&self) -> i64 {
        self.bars.len() as i64 * BAR_STEP + if self.bars.is_empty() { 0 } else { BAR_STEP }
    }

    /// The bars above the plot of the curves, and the tint under the first solid curve of a bar's
    /// colour.
    fn draw_bars(&self, canvas: &mut Canvas, whole: Rect, plot: Rect, axes: (&Axis, &Axis)) {
        let pixel = |x: f64| {
            let along = axes.0.fraction(x).clamp(0.0, 1.0) * plot.width as f64;
            plot.x + along.round() as i64
        };
        for (lane, bar) in self.bars.iter().enumerate() {
            let colour = CURVES[bar.colour % CURVES.len()];
            let y = whole.y + BAR_STEP / 2 + lane as i64 * BAR_STEP;
            let curve = self.curves.iter().find(|c| c.colour == bar.colour && !c.dashed);
            for &(from, to) in bar.ranges.iter().filter(|r| drawable(r)) {
                let (left, right) = (pixel(from), pixel(to));
                canvas.fill_rect(left, y, (right - left).max(2), BAR_STEP - 3, colour);
                for x in left..right {
                    let value = (x - plot.x) as f64 / plot.width as f64;
                    let value = axes.0.low + value * (axes.0.high - axes.0.low);
                    let Some(height) = curve.and_then(|c| height_at(&c.points, value)) else {
                        continue;
                    };
                    let up = axes.1.fraction(height).clamp(0.0, 1.0) * plot.height as f64;
                    let up = up.round() as i64;
                    canvas.tint(x, plot.y + plot.height - up, 1, up, colour, 0.13);
                }
            }
        }
    }

    pub(super) fn draw(&self, canvas: &mut Canvas, whole: Rect) {
        let above = self.bars_height();
        let plot = Rect { y: whole.y + above, height: whole.height - above, ..whole };
        let (horizontal, vertical) = self.axes(plot.width, plot.height);
        let (width, height) = (plot.width as f64, plot.height as f64);
        for value in &vertical.ticks.values {
            let y = plot.y + ((1.0 - vertical.fraction(*value)) * height).floor() as i64;
            canvas.fill_rect(plot.x, y.min(plot.y + plot.height - 1), plot.width, 1, GRID_LINE);
        }
        let place = |&(x, y): &(f64, f64)| {
            let right = horizontal.fraction(x) * width;
            let down = (1.0 - vertical.fraction(y)).clamp(0.0, 1.0) * height;
            (plot.x as f64 + right, plot.y as f64 + down)
        };
        self.draw_bars(canvas, whole, plot, (&horizontal, &vertical));
        for curve in &self.curves {
            let runs = curve.points.split(|p| !drawable(p));
            for run in runs {
                let run: Vec<_> = run.iter().map(place).collect();
                draw_curve(canvas, &run, curve);
            }
        }
        canvas.frame(whole.x, whole.y, whole.width, whole.height, INK);
        horizontal.draw_below(canvas, plot, true);
        vertical.draw_left(canvas, plot, true, false);
        let lines = title_lines(&self.title, plot.width);
        draw_title(canvas, &lines, plot.x + plot.width / 2, whole.y);
        let named = self.curves.iter().filter(|c| !c.name.is_empty());
        for (place, curve) in named.enumerate() {
            let x = plot.x + plot.width + 16;
            let y = whole.y + 26 * place as i64;
            let middle = y as f64 + Font::LABEL.height() as f64 / 2.0;
            let sample = [(x as f64, middle), ((x + SAMPLE) as f64, middle)];
            draw_curve(canvas, &sample, curve);
            canvas.text(x + SAMPLE + 8, y, &curve.name, Font::LABEL, Align::Start, INK);
        }
    }
}

/// The curve at x, on the straight line between its points.
fn height_at(points: &[(f64, f64)], x: f64) -> Option<f64> {
    let after = points.iter().position(|p| p.0 >= x)?;
    let (to, from) = (points[after], points[after.saturating_sub(1)]);
    let share = if to.0 > from.0 { (x - from.0) / (to.0 - from.0) } else { 1.0 };
    let y = from.1 + share * (to.1 - from.1);
    y.is_finite().then_some(y)
}

fn drawable(point: &(f64, f64)) -> bool {
    point.0.abs() < 1e100 && point.1.abs() < 1e100
}

fn draw_curve(canvas: &mut Canvas, points: &[(f64, f64)], curve: &Curve) {
    let colour = CURVES[curve.colour % CURVES.len()];
    let (stroke, dash, gap) = (2.2, 7.0, 6.0);
    if let [only] = points {
        canvas.disc(*only, 3.5, colour);
    }
    let mut travelled = 0.0;
    for pair in points.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        let length = (to.0 - from.0).hypot(to.1 - from.1);
        if !curve.dashed {
            canvas.line(from, to, stroke, colour);
            continue;
        }
        let at = |d: f64| {
            let t = if length > 0.0 { d / length } else { 0.0 };
            (from.0 + t * (to.0 - from.0), from.1 + t * (to.1 - from.1))
        };
        // Dashes run on across the corners of the curve.
        let mut start = -(travelled % (dash + gap));
        while start < length {
            let (a, b) = (start.max(0.0), (start + dash).min(length));
            if b > a {
                canvas.line(at(a), at(b), stroke, colour);
            }
            start += dash + gap;
        }
        travelled += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLOT: Rect = Rect { x: 90, y: 40, width: 400, height: 200 };

    fn drawn(points: Vec<(f64, f64)>, dashed: bool) -> Canvas {
        let curves = vec![Curve { name: "unn".to_owned(), points, colour: 1, dashed }];
        let bars = Vec::new();
        let (x_name, y_name) = ("band".to_owned(), "PSD".to_owned());
        let panel =
            LinePanel { title: "a title".to_owned(), x_name, y_name, curves, bars, y_limits: None };
        let mut canvas = Canvas::new(640, 320);
        panel.draw(&mut canvas, PLOT);
        canvas
    }

    fn on_curve(canvas: &Canvas, x: usize, y: usize) -> bool {
        canvas.pixel(x, y) == CURVES[1]
    }

    #[test]
    fn a_curve_passes_through_its_points_and_breaks_at_gaps() {
        let mut points: Vec<_> = (0..=8).map(|i| (f64::from(i), f64::from(i % 2))).collect();
        let canvas = drawn(points.clone(), false);
        // The crossing of the middle height between the fourth and the fifth point.
        assert!(on_curve(&canvas, 90 + 175, 40 + 100));
        assert!(!on_curve(&canvas, 90 + 175, 40 + 60));
        points[4].1 = f64::NAN;
        assert!(!on_curve(&drawn(points, false), 90 + 175, 40 + 100));
    }

    #[test]
    fn dashes_leave_gaps() {
        let points = vec![(0.0, 0.0), (1.0, 1.0)];
        let ink = |canvas: &Canvas| canvas.bytes().chunks(3).filter(|p| **p == CURVES[1]).count();
        let (full, dashed) = (ink(&drawn(points.clone(), false)), ink(&drawn(points, true)));
        assert!(dashed * 10 < full * 8 && dashed * 10 > full * 3, "{dashed} of {full}");
    }

    #[test]
    fn empty_constant_and_endless_curves_are_drawn() {
        let endless = vec![(0.0, f64::INFINITY), (f64::NAN, 1.0), (1e300, 2.0)];
        for points in [vec![], vec![(1.0, 1.0)], vec![(0.0, 5.0), (9.0, 5.0)], endless] {
            assert_eq!(drawn(points.clone(), false).lost_ink(), 0);
            assert_eq!(drawn(points, true).lost_ink(), 0);
        }
    }
}
