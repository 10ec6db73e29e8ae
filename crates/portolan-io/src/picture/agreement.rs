//! Held-out readings beside what was predicted for them: density per survey, and calibration.

use super::axis::Ticks;
use super::colour::CURVES;
use super::colour::{INK, QUIET, Rgb};
use super::scene::{Anchor, Bounds, Path, Pen, Pixels, Placement, Point, Scene, Text, Typeface};

const MARGIN: f64 = 18.0;
/// Room for tick labels and the name of an axis at its left.
const BESIDE: f64 = 56.0;
/// Side of the plot of calibration, and of the block of density plots.
const PLOTS: f64 = 430.0;
const GAP: f64 = 14.0;
const TITLE: f64 = 15.0;
const LABEL: f64 = 12.5;
const SMALL: f64 = 11.5;
const GRID_LINE: Rgb = [228, 228, 232];
/// Width of a cell of density.
const CELL_DB: f64 = 1.0;
/// Shades follow counts to this power: sparse cells stay visible.
const POWER: f64 = 0.4;
/// The shade of a single reading.
const PALEST: f64 = 0.16;

/// What was measured at held-out places of a survey, and what was predicted.
#[derive(Clone, Debug)]
pub struct Agreement {
    pub name: String,
    /// dB or dBm.
    pub unit: String,
    pub rmse_db: f64,
    /// Measured, predicted.
    pub pairs: Vec<(f64, f64)>,
    /// Nominal and actual shares of the readings within an interval.
    pub calibration: Vec<(f64, f64)>,
}

/// Measured against predicted, survey by survey on the same axes, and calibration of all; `note`
/// says what predicted.
pub fn agreement_figure(surveys: &[Agreement], note: &str, typeface: &Typeface) -> Scene {
    let top = MARGIN + 3.6 * TITLE;
    let left = MARGIN + BESIDE;
    let right = left + PLOTS + 1.5 * BESIDE;
    let (width, height) = (right + PLOTS + 2.0 * MARGIN, top + PLOTS + 4.4 * LABEL + MARGIN);
    let mut scene = Scene::new(width, height, "Held-out readings");
    let painter = Painter { typeface };
    painter.heading(&mut scene, left, "Measured against predicted", note);
    let interval = "held-out readings within an interval of the prediction";
    painter.heading(&mut scene, right, "Calibration", interval);
    let columns = if surveys.len() > 1 { 2 } else { 1 };
    let side = (PLOTS - (columns - 1) as f64 * GAP) / columns as f64;
    let range = range(surveys);
    for (number, survey) in surveys.iter().enumerate() {
        let (row, column) = (number / columns, number % columns);
        let (x, y) = (left + column as f64 * (side + GAP), top + row as f64 * (side + GAP));
        let plot = Bounds { left: x, top: y, right: x + side, bottom: y + side };
        let frame = Frame {
            plot,
            range,
            suffix: "",
            below: number + columns >= surveys.len(),
            beside: column == 0,
        };
        painter.density(&mut scene, &frame, survey, CURVES[number % CURVES.len()]);
    }
    let middle = (left + PLOTS / 2.0, top + PLOTS + 3.4 * LABEL);
    let unit = surveys.first().map_or("dB", |survey| survey.unit.as_str());
    let unit = if surveys.iter().all(|survey| survey.unit == unit) { unit } else { "dBm or dB" };
    painter.name(&mut scene, &format!("measured [{unit}]"), middle, 0.0);
    let beside = (MARGIN + 0.5 * LABEL, top + PLOTS / 2.0);
    painter.name(&mut scene, &format!("predicted [{unit}]"), beside, 90.0);
    let plot = Bounds { left: right, top, right: right + PLOTS, bottom: top + PLOTS };
    painter.calibration(&mut scene, plot, surveys);
    scene
}

/// A plot with the same range on both axes.
struct Frame {
    plot: Bounds,
    range: (f64, f64),
    /// What follows the number at a tick.
    suffix: &'static str,
    /// Whether ticks are labelled below and beside.
    below: bool,
    beside: bool,
}

impl Frame {
    /// Where a pair lies.
    fn place(&self, (x, y): (f64, f64)) -> Point {
        let (low, high) = self.range;
        let share = |value: f64| (value - low) / (high - low);
        let Bounds { left, top, right, bottom } = self.plot;
        (left + share(x) * (right - left), bottom - share(y) * (bottom - top))
    }
}

struct Painter<'a> {
    typeface: &'a Typeface,
}

impl Painter<'_> {
    fn name(&self, scene: &mut Scene, text: &str, at: Point, angle: f64) {
        let text = Text::new(text, at, LABEL, Anchor::Middle, QUIET);
        scene.text(self.typeface, &text.turned(angle));
    }

    fn heading(&self, scene: &mut Scene, x: f64, title: &str, note: &str) {
        let at = (x, MARGIN + 0.5 * TITLE);
        let title = Text::new(title, at, TITLE, Anchor::Start, INK);
        scene.text(self.typeface, &title.bold());
        let at = (x, MARGIN + 1.9 * TITLE);
        scene.text(self.typeface, &Text::new(note, at, LABEL, Anchor::Start, QUIET));
    }

    /// Grid lines and labels of the ticks.
    fn ticks(&self, scene: &mut Scene, frame: &Frame) {
        let Bounds { left, top, right, bottom } = frame.plot;
        let (low, high) = frame.range;
        let ticks = Ticks::fitting(low, high, (right - left) as i64, |_| 44);
        for (value, label) in ticks.values.iter().zip(&ticks.labels) {
            let (x, y) = frame.place((*value, *value));
            for line in [[(x, top), (x, bottom)], [(left, y), (right, y)]] {
                scene.stroke(Path::polyline(&line), Pen::new(GRID_LINE, 0.8));
            }
            let label = format!("{}{}", label.replace('-', "−"), frame.suffix);
            if frame.below {
                let at = (x, bottom + LABEL);
                scene.text(self.typeface, &Text::new(&label, at, SMALL, Anchor::Middle, INK));
            }
            if frame.beside {
                let at = (left - 0.5 * LABEL, y);
                scene.text(self.typeface, &Text::new(&label, at, SMALL, Anchor::End, INK));
            }
        }
    }

    /// The line of equal values, and the border.
    fn border(&self, scene: &mut Scene, plot: Bounds) {
        let corners = [(plot.left, plot.bottom), (plot.right, plot.top)];
        let pen = Pen { dashes: Some([5.0, 4.0]), ..Pen::new(INK, 1.1) };
        scene.stroke(Path::polyline(&corners), pen);
        scene.stroke(plot.path(), Pen::new(INK, 1.0));
    }

    fn density(&self, scene: &mut Scene, frame: &Frame, survey: &Agreement, rgb: Rgb) {
        let (plot, (low, high)) = (frame.plot, frame.range);
        let cells = ((high - low) / CELL_DB).round() as usize;
        let mut counts = vec![0u32; cells * cells];
        let cell = |value: f64| {
            let along = ((value - low) / CELL_DB) as usize;
            (value >= low && along < cells).then_some(along)
        };
        for (measured, predicted) in &survey.pairs {
            if let (Some(column), Some(line)) = (cell(*measured), cell(*predicted)) {
                counts[(cells - 1 - line) * cells + column] += 1;
            }
        }
        self.ticks(scene, frame);
        let most = f64::from(counts.iter().copied().max().unwrap_or(1).max(1));
        let pixels = Pixels::from_fn(cells as u32, cells as u32, |line, column| {
            match f64::from(counts[line * cells + column]) {
                0.0 => [0; 4],
                count => shaded(rgb, PALEST + (1.0 - PALEST) * (count / most).powf(POWER)),
            }
        });
        let (width, height) = (plot.right - plot.left, plot.bottom - plot.top);
        scene.image(pixels, Placement::upright(plot.left, plot.top, width, height), 1.0, false);
        self.border(scene, plot);
        let at = (plot.left + 8.0, plot.top + 13.0);
        let name = Text::new(&survey.name, at, LABEL, Anchor::Start, INK).bold().rimmed(2.5);
        scene.text(self.typeface, &name);
        let rmse = format!("rmse {:.1} dB", survey.rmse_db);
        let at = (plot.left + 8.0, plot.top + 13.0 + 1.35 * LABEL);
        let text = Text::new(&rmse, at, SMALL, Anchor::Start, INK).rimmed(2.5);
        scene.text(self.typeface, &text);
    }

    fn calibration(&self, scene: &mut Scene, plot: Bounds, surveys: &[Agreement]) {
        let frame = Frame { plot, range: (0.0, 100.0), suffix: " %", below: true, beside: true };
        self.ticks(scene, &frame);
        self.border(scene, plot);
        let mut y = plot.top + 20.0;
        for (number, survey) in surveys.iter().enumerate() {
            let rgb = CURVES[number % CURVES.len()];
            let known = survey.calibration.iter().filter(|(_, actual)| actual.is_finite());
            let points: Vec<Point> =
                known.map(|(n, a)| frame.place((100.0 * n, 100.0 * a))).collect();
            scene.stroke(Path::polyline(&points), Pen::new(rgb, 2.2));
            for point in &points {
                scene.fill(Path::circle(*point, 3.2), rgb);
            }
            let x = plot.left + 16.0;
            scene.stroke(Path::polyline(&[(x, y), (x + 26.0, y)]), Pen::new(rgb, 2.2));
            scene.fill(Path::circle((x + 13.0, y), 3.2), rgb);
            let at = (x + 34.0, y);
            let text = Text::new(&survey.name, at, LABEL, Anchor::Start, INK);
            scene.text(self.typeface, &text.rimmed(2.5));
            y += 1.6 * LABEL;
        }
        let hints = [("spread too wide", (56.0, 80.0)), ("spread too narrow", (78.0, 56.0))];
        for (text, at) in hints {
            let text = Text::new(text, frame.place(at), SMALL, Anchor::Middle, QUIET);
            scene.text(self.typeface, &text);
        }
        let middle = ((plot.left + plot.right) / 2.0, plot.bottom + 3.4 * LABEL);
        self.name(scene, "nominal share", middle, 0.0);
        let beside = (plot.left - 4.4 * LABEL, (plot.top + plot.bottom) / 2.0);
        self.name(scene, "actual share", beside, 90.0);
    }
}

/// Whole cells around all but the outermost thousandth of the values: a few outliers do not shrink
/// the rest.
fn range(surveys: &[Agreement]) -> (f64, f64) {
    let both = surveys.iter().flat_map(|s| &s.pairs).flat_map(|(a, b)| [*a, *b]);
    let mut values: Vec<f64> = both.filter(|v| v.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    let Some(last) = values.len().checked_sub(1) else { return (-100.0, -40.0) };
    let few = values.len() / 1000;
    let low = (values[few] / CELL_DB).floor() - 1.0;
    let high = (values[last - few] / CELL_DB).ceil() + 1.0;
    (low * CELL_DB, high * CELL_DB)
}

/// From white at 0 over the colour to a dark tone of it at 1.
fn shaded(rgb: Rgb, shade: f64) -> [u8; 4] {
    const PURE: f64 = 0.6;
    let mixed = |channel: u8| {
        let channel = f64::from(channel);
        let value = if shade < PURE {
            255.0 + (channel - 255.0) * shade / PURE
        } else {
            channel * (1.0 - 0.65 * (shade - PURE) / (1.0 - PURE))
        };
        value.round() as u8
    };
    [mixed(rgb[0]), mixed(rgb[1]), mixed(rgb[2]), 255]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survey(name: &str, pairs: Vec<(f64, f64)>) -> Agreement {
        Agreement {
            name: name.into(),
            unit: "dBm".into(),
            rmse_db: 3.25,
            pairs,
            calibration: vec![(0.5, 0.52), (0.9, 0.88), (0.95, f64::NAN)],
        }
    }

    #[test]
    fn every_survey_is_named_with_its_error_and_stays_on_the_page() {
        let pairs: Vec<(f64, f64)> =
            (0..4000).map(|i| (-90.0 + 0.01 * f64::from(i), -88.0 + 0.01 * f64::from(i))).collect();
        let surveys: Vec<Agreement> =
            ["A", "B", "C", "D"].map(|name| survey(name, pairs.clone())).to_vec();
        let scene = agreement_figure(&surveys, "method auto", &Typeface::new());
        let texts = scene.texts();
        assert_eq!(texts.iter().filter(|(text, _)| *text == "rmse 3.2 dB").count(), 4);
        for name in ["A", "B", "C", "D"] {
            assert_eq!(texts.iter().filter(|(text, _)| *text == name).count(), 2, "{name}");
        }
        for (text, bounds) in texts {
            let inside = bounds.left >= 0.0 && bounds.right <= scene.width;
            assert!(inside && bounds.top >= 0.0 && bounds.bottom <= scene.height, "{text}");
        }
    }

    #[test]
    fn nothing_held_out_is_an_empty_plot() {
        let scene = agreement_figure(&[survey("A", Vec::new())], "", &Typeface::new());
        assert!(scene.pixels(600).is_ok());
        assert!(agreement_figure(&[], "", &Typeface::new()).pixels(600).is_ok());
    }
}
