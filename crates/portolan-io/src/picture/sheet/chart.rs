//! Curves over one axis with a legend at the side.

use super::panel::{draw_title, title_lines};
use super::view::minus;
use super::{GAP, LABEL, LEADING, MARGIN, ROW_GAP, TICK, TITLE, headed};
use crate::picture::axis::Ticks;
use crate::picture::colour::{CURVES, INK, QUIET, Rgb};
use crate::picture::field::widen;
use crate::picture::scene::{Anchor, Bounds, Ink, Path, Pen, Point, Scene, Text, Typeface};

const GRID_LINE: Rgb = [232, 232, 235];
/// The least width of a page with a chart, without its margins.
const NARROWEST: f64 = 600.0;
const HEIGHT: f64 = 180.0;
/// From a line of the legend to the next.
const LINE: f64 = 1.5 * LABEL;
/// Length of a curve's sample in the legend.
const SAMPLE: f64 = 22.0;
/// From a bar to the next.
const BAR_STEP: f64 = 6.0;

#[derive(Clone, Debug)]
pub struct Curve {
    /// Shown in the legend; curves without a name are not listed.
    pub name: String,
    /// x, y; a value that is not finite breaks the curve.
    pub points: Vec<Point>,
    /// Curves of one number share a colour.
    pub colour: usize,
    pub dashed: bool,
}

/// Occupied stretches of the axis, shown as a bar at the top of the plot and as a tint under a curve.
#[derive(Clone, Debug)]
pub struct Occupied {
    /// From, to.
    pub ranges: Vec<(f64, f64)>,
    /// That of the curve it belongs to.
    pub colour: usize,
}

/// A chart of several curves.
#[derive(Clone, Debug)]
pub struct Chart {
    /// First line bold, further lines plain.
    pub title: String,
    pub x_name: String,
    pub y_name: String,
    pub curves: Vec<Curve>,
    /// Topmost first; the plot grows by them.
    pub bars: Vec<Occupied>,
    /// Limits of the vertical axis; from the curves where absent.
    pub y_limits: Option<(f64, f64)>,
}

/// Charts one below the other.
pub fn charts_figure(heading: &str, note: &str, charts: &[Chart], typeface: &Typeface) -> Scene {
    let mut scene = headed(heading, note, NARROWEST, typeface);
    charts.iter().for_each(|chart| chart.draw_below(&mut scene, typeface));
    scene
}

impl Chart {
    /// Adds the chart below what is on a page.
    pub fn draw_below(&self, scene: &mut Scene, typeface: &Typeface) {
        scene.width = scene.width.max(NARROWEST + 2.0 * MARGIN);
        let length = |text: &str| typeface.length(text, LABEL, false);
        let named: Vec<&Curve> = self.curves.iter().filter(|c| !c.name.is_empty()).collect();
        let names = named.iter().map(|c| length(&c.name)).fold(0.0, f64::max);
        let bars = match self.bars.len() {
            0 => 0.0,
            count => (count + 1) as f64 * BAR_STEP,
        };
        let height = HEIGHT.max(LINE * named.len() as f64) + bars;
        let ((x_low, x_high), (low, high)) = self.ranges();
        let upward = Ticks::fitting(low, high, (height - bars) as i64, |_| (1.9 * LABEL) as i64);
        let labels = upward.labels.iter().map(|label| length(&minus(label))).fold(0.0, f64::max);
        let left = MARGIN + 1.2 * LABEL + labels + TICK + 2.0 * GAP;
        let legend = if named.is_empty() { GAP } else { 3.0 * GAP + SAMPLE + GAP + names };
        let right = (scene.width - MARGIN - legend).max(left + 200.0);
        let title = title_lines(typeface, &self.title, right - left);
        let top = scene.height - MARGIN + ROW_GAP + LEADING * TITLE * title.len() as f64 + GAP;
        let whole = Bounds { left, top, right, bottom: top + height };
        let axes = Axes { plot: Bounds { top: top + bars, ..whole }, x_low, x_high, low, high };
        let room = |label: &str| (length(&minus(label)) + 1.4 * LABEL).ceil() as i64;
        let across = Ticks::fitting(x_low, x_high, (right - left) as i64, room);

        for value in &upward.values {
            let (_, y) = axes.place((x_low, *value));
            scene.stroke(Path::polyline(&[(left, y), (right, y)]), Pen::new(GRID_LINE, 0.8));
        }
        scene.clipped(whole.path(), |scene| self.draw_bars(scene, top, &axes));
        // Strokes at the ends of the axis show their whole width.
        let strokes = Bounds { left: left - 2.0, right: right + 2.0, ..axes.plot };
        scene.clipped(strokes.path(), |scene| {
            for curve in &self.curves {
                for run in curve.points.split(|p| !drawable(p)) {
                    let run: Vec<Point> = run.iter().map(|p| axes.place(*p)).collect();
                    draw_curve(scene, &run, curve);
                }
            }
        });
        let pen = Pen::new(INK, 0.8);
        scene.stroke(whole.path(), Pen::new(INK, 1.0));
        draw_title(scene, typeface, &title, ((left + right) / 2.0, top));
        for (value, label) in across.values.iter().zip(&across.labels) {
            let (x, bottom) = axes.place((*value, low));
            scene.stroke(Path::polyline(&[(x, bottom), (x, bottom + TICK)]), pen);
            let at = (x, bottom + TICK + GAP + 0.45 * LABEL);
            scene.text(typeface, &Text::new(&minus(label), at, LABEL, Anchor::Middle, INK));
        }
        for (value, label) in upward.values.iter().zip(&upward.labels) {
            let (_, y) = axes.place((x_low, *value));
            scene.stroke(Path::polyline(&[(left - TICK, y), (left, y)]), pen);
            let at = (left - TICK - GAP, y);
            scene.text(typeface, &Text::new(&minus(label), at, LABEL, Anchor::End, INK));
        }
        let below = (whole.bottom + TICK + 1.5 * LEADING * LABEL + GAP, MARGIN + 0.6 * LABEL);
        let name =
            Text::new(&self.x_name, ((left + right) / 2.0, below.0), LABEL, Anchor::Middle, QUIET);
        scene.text(typeface, &name);
        let at = (below.1, (axes.plot.top + whole.bottom) / 2.0);
        let name = Text::new(&self.y_name, at, LABEL, Anchor::Middle, QUIET);
        scene.text(typeface, &name.turned(90.0));
        for (place, curve) in named.into_iter().enumerate() {
            let (x, y) = (right + 3.0 * GAP, top + LINE * (place as f64 + 0.5));
            draw_curve(scene, &[(x, y), (x + SAMPLE, y)], curve);
            let at = (x + SAMPLE + GAP, y);
            scene.text(typeface, &Text::new(&curve.name, at, LABEL, Anchor::Start, INK));
        }
        scene.height = whole.bottom + TICK + 2.0 * LEADING * LABEL + GAP + MARGIN;
    }

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

    /// The bars above the plot of the curves, and the tint under the first solid curve of a bar's
    /// colour.
    fn draw_bars(&self, scene: &mut Scene, top: f64, axes: &Axes) {
        for (lane, bar) in self.bars.iter().enumerate() {
            let rgb = CURVES[bar.colour % CURVES.len()];
            let y = top + (lane as f64 + 0.5) * BAR_STEP;
            let curve = self.curves.iter().find(|c| c.colour == bar.colour && !c.dashed);
            for &(from, to) in bar.ranges.iter().filter(|range| drawable(range)) {
                let (left, right) = (axes.place((from, axes.low)).0, axes.place((to, axes.low)).0);
                scene.fill(Path::rect(left, y, (right - left).max(1.5), BAR_STEP - 2.0), rgb);
                let Some(curve) = curve else { continue };
                let inner = curve.points.iter().map(|p| p.0).filter(|x| (from..to).contains(x));
                let ends = [from].into_iter().chain(inner).chain([to]);
                let known = ends.filter_map(|x| Some((x, height_at(&curve.points, x)?)));
                let mut area: Vec<Point> = known.map(|point| axes.place(point)).collect();
                let (Some(first), Some(last)) = (area.first(), area.last()) else { continue };
                let bottom = axes.plot.bottom;
                let feet = [(last.0, bottom), (first.0, bottom)];
                area.extend(feet);
                scene.fill(Path::polygon(&area), Ink { rgb, alpha: 0.13 });
            }
        }
    }
}

/// Where the axes of a chart run.
struct Axes {
    plot: Bounds,
    x_low: f64,
    x_high: f64,
    low: f64,
    high: f64,
}

impl Axes {
    fn place(&self, (x, y): Point) -> Point {
        let share =
            |value: f64, low: f64, high: f64| ((value - low) / (high - low)).clamp(-1.0, 2.0);
        let Bounds { left, top, right, bottom } = self.plot;
        let across = share(x, self.x_low, self.x_high) * (right - left);
        (left + across, bottom - share(y, self.low, self.high) * (bottom - top))
    }
}

/// The curve at x, on the straight line between its points; beyond them, as at the nearer end.
fn height_at(points: &[Point], x: f64) -> Option<f64> {
    let last = points.len().checked_sub(1)?;
    let after = points.iter().position(|p| p.0 >= x).unwrap_or(last);
    let (to, from) = (points[after], points[after.saturating_sub(1)]);
    let share = if to.0 > from.0 { ((x - from.0) / (to.0 - from.0)).min(1.0) } else { 1.0 };
    let y = from.1 + share * (to.1 - from.1);
    y.is_finite().then_some(y)
}

fn drawable(point: &Point) -> bool {
    point.0.abs() < 1e100 && point.1.abs() < 1e100
}

fn draw_curve(scene: &mut Scene, points: &[Point], curve: &Curve) {
    let rgb = CURVES[curve.colour % CURVES.len()];
    match points {
        [] => {}
        [only] => scene.fill(Path::circle(*only, 2.4), rgb),
        _ => {
            let dashes = curve.dashed.then_some([5.0, 4.0]);
            scene.stroke(Path::polyline(points), Pen { dashes, ..Pen::new(rgb, 1.5) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::Item;

    fn drawn(points: Vec<Point>, dashed: bool) -> Scene {
        let curves = vec![Curve { name: "unn".to_owned(), points, colour: 1, dashed }];
        let chart = Chart {
            title: "a title".to_owned(),
            x_name: "band".to_owned(),
            y_name: "PSD".to_owned(),
            curves,
            bars: vec![Occupied { ranges: vec![(1.0, 3.0)], colour: 1 }],
            y_limits: None,
        };
        charts_figure("Curves", "a note", &[chart], &Typeface::new())
    }

    /// The curve's own strokes in the plot.
    fn strokes(scene: &Scene) -> Vec<(Path, Pen)> {
        let clips = scene.items.iter().filter_map(|item| match item {
            Item::Clip { items, .. } => Some(items),
            _ => None,
        });
        let stroked = clips.flatten().filter_map(|item| match item {
            Item::Stroke { path, pen } => Some((path.clone(), *pen)),
            _ => None,
        });
        stroked.collect()
    }

    #[test]
    fn a_curve_passes_through_its_points_and_breaks_at_gaps() {
        let mut points: Vec<Point> = (0..=8).map(|i| (f64::from(i), f64::from(i % 2))).collect();
        let whole = strokes(&drawn(points.clone(), false));
        assert_eq!((whole.len(), whole[0].1.ink.rgb), (1, CURVES[1]));
        let places: Vec<Point> = whole[0].0.points().collect();
        assert_eq!(places.len(), 9);
        for pair in places.windows(2) {
            assert!((pair[1].0 - pair[0].0 - (places[8].0 - places[0].0) / 8.0).abs() < 1e-9);
        }
        assert!(places[1].1 < places[0].1 - 100.0, "larger values are higher");
        points[4].1 = f64::NAN;
        let broken = strokes(&drawn(points, true));
        let lengths: Vec<usize> = broken.iter().map(|(path, _)| path.points().count()).collect();
        assert_eq!(lengths, [4, 4]);
        assert!(broken.iter().all(|(_, pen)| pen.dashes.is_some()));
    }

    #[test]
    fn heights_are_read_between_points_and_held_beyond_them() {
        let points = [(1.0, 2.0), (3.0, 6.0), (4.0, f64::NAN)];
        let read = [0.5, 2.0, 3.0].map(|x| height_at(&points, x));
        assert_eq!(read, [Some(2.0), Some(4.0), Some(6.0)]);
        assert_eq!(height_at(&points[..2], 9.0), Some(6.0));
        assert_eq!((height_at(&points, 3.5), height_at(&[], 1.0)), (None, None));
    }

    #[test]
    fn empty_constant_and_endless_curves_stay_on_the_page() {
        let endless = vec![(0.0, f64::INFINITY), (f64::NAN, 1.0), (1e300, 2.0)];
        for points in [vec![], vec![(1.0, 1.0)], vec![(0.0, 5.0), (9.0, 5.0)], endless] {
            let scene = drawn(points, false);
            let page = Bounds { left: 0.0, top: 0.0, right: scene.width, bottom: scene.height };
            for (text, bounds) in scene.texts() {
                assert!(page.holds(&bounds), "{text} {bounds:?}");
            }
            assert!(scene.pixels(300).is_ok());
        }
    }
}
