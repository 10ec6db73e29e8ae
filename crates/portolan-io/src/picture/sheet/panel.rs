//! One map: its colours, lines, marks, axes and title.

use ndarray::{Array2, ArrayView2};
use portolan::{Region, Site};

use super::bar::Bar;
use super::contour::contours;
use super::marks::{UNKNOWN, draw_emitter, draw_located, draw_sensor, draw_unknown};
use super::shades::Shades;
use super::view::{View, covered, minus};
use super::{Around, GAP, LABEL, LEADING, Sheet, TICK, TITLE};
use crate::picture::colour::{INK, QUIET, WHITE};
use crate::picture::field::{paper_size, resize};
use crate::picture::scene::{
    Anchor, Bounds, Ink, Path, Pen, Pixels, Placement, Point, Scene, Text, Typeface,
};

/// Half axes, in standard errors, of the ellipse that holds 90 % of a normal distribution.
const NINETY: f64 = 2.146;

/// Longer sides are averaged before contours are sought.
const FINEST: usize = 600;

/// A map to draw.
#[derive(Clone, Debug)]
pub struct MapPanel {
    /// First line bold, further lines plain.
    pub title: String,
    /// Rows along x, columns along y; NaN where nothing is known. Empty: marks alone.
    pub field: Array2<f64>,
    pub shades: Shades,
    /// Name of the colour bar with its unit; no bar without a name.
    pub bar: Option<String>,
    /// Lines of equal value, with their labels.
    pub contours: Vec<f64>,
    /// Places, and values whose colours they take.
    pub sensors: Vec<(Site, Option<f64>)>,
    /// Places, and standard errors along x and y where known.
    pub emitters: Vec<(Site, Option<[f64; 2]>)>,
    /// A line below the plot.
    pub caption: Option<String>,
    /// Whether it is the first of a row, even where there is room in the one before.
    pub starts_row: bool,
}

impl MapPanel {
    /// A map without a colour bar or marks.
    pub fn new(title: impl Into<String>, field: Array2<f64>, shades: Shades) -> Self {
        Self {
            title: title.into(),
            field,
            shades,
            bar: None,
            contours: Vec::new(),
            sensors: Vec::new(),
            emitters: Vec::new(),
            caption: None,
            starts_row: false,
        }
    }

    /// Sensors without a map.
    pub fn of_sensors(
        title: impl Into<String>,
        sensors: Vec<(Site, Option<f64>)>,
        shades: Shades,
    ) -> Self {
        Self { sensors, ..Self::new(title, Array2::zeros((0, 0)), shades) }
    }

    /// Whether another panel can use this one's colour bar.
    pub fn same_bar(&self, other: &MapPanel) -> bool {
        (&self.bar, &self.shades) == (&other.bar, &other.shades)
    }

    /// All that is coloured.
    pub(super) fn values(&self) -> impl Iterator<Item = &f64> + Clone {
        self.field.iter().chain(self.sensors.iter().filter_map(|(_, value)| value.as_ref()))
    }

    pub(super) fn bar(&self, opacity: f64) -> Option<Bar> {
        let tips = self.shades.clips(self.values());
        self.bar.clone().map(|name| Bar { name, shades: self.shades.clone(), tips, opacity })
    }

    pub(super) fn draw(&self, scene: &mut Scene, sheet: &Sheet<'_>, around: &Around) {
        let view = around.view;
        let frame = view.bounds().path();
        let mut labels = Vec::new();
        scene.clipped(frame.clone(), |scene| {
            if let Some(under) = sheet.under {
                let corner = view.place(under.corner);
                let place = Placement {
                    corner,
                    along: view.turn(under.along),
                    down: view.turn(under.down),
                };
                scene.image(under.image.clone(), place, 1.0, true);
            }
            self.draw_cells(scene, sheet, &view);
            labels = self.draw_contours(scene, sheet, &view);
        });
        scene.stroke(frame, Pen::new(INK, 1.0));
        self.draw_marks(scene, &view);
        for (label, at, angle) in &labels {
            let text = Text::new(label, *at, LABEL, Anchor::Middle, INK);
            scene.text(sheet.typeface, &text.turned(*angle).rimmed(2.0));
        }
        self.draw_rulers(scene, sheet.typeface, around);
        self.draw_words(scene, sheet.typeface, around);
    }

    fn draw_cells(&self, scene: &mut Scene, sheet: &Sheet<'_>, view: &View) {
        let seen = sheet.axes.seen(&self.field);
        let area = cells_area(sheet, view);
        if seen.is_empty() {
            return scene.fill(area.path(), UNKNOWN);
        }
        let (width, height) = (area.right - area.left, area.bottom - area.top);
        let (columns, lines) =
            paper_size(seen.nrows(), seen.ncols(), (2.0 * width.max(height)) as usize);
        let values = resize(&seen.to_owned(), lines, columns);
        let pixels = Pixels::from_fn(columns as u32, lines as u32, |line, column| {
            match values[[line, column]] {
                value if value.is_nan() => [0; 4],
                value => {
                    let [r, g, b] = self.shades.of(value);
                    [r, g, b, 255]
                }
            }
        });
        if let Some(path) = unknown_area(&values.view(), area) {
            draw_unknown(scene, path);
        }
        let place = Placement::upright(area.left, area.top, width, height);
        scene.image(pixels, place, sheet.opacity, false);
    }

    /// Draws lines; returns their labels with place and angle, to be drawn over all marks.
    fn draw_contours(
        &self,
        scene: &mut Scene,
        sheet: &Sheet<'_>,
        view: &View,
    ) -> Vec<(String, Point, f64)> {
        let mut texts = Vec::new();
        if self.contours.is_empty() {
            return texts;
        }
        let mut seen = sheet.axes.seen(&self.field).to_owned();
        let long = seen.nrows().max(seen.ncols());
        if long > FINEST {
            let size = |n: usize| (n * FINEST).div_ceil(long).max(1);
            seen = resize(&seen, size(seen.nrows()), size(seen.ncols()));
        }
        let area = cells_area(sheet, view);
        let step = (
            (area.right - area.left) / seen.ncols() as f64,
            (area.bottom - area.top) / seen.nrows() as f64,
        );
        let mut labels: Vec<Bounds> = Vec::new();
        let marks: Vec<Bounds> =
            self.sensors.iter().map(|(s, _)| square(view.place(*s), 4.0)).collect();
        for level in &self.contours {
            let label = minus(&level.to_string());
            let mut room = 3;
            for line in contours(&seen.view(), *level) {
                let line: Vec<Point> = line
                    .iter()
                    .map(|[i, j]| (area.left + (j + 0.5) * step.0, area.top + (i + 0.5) * step.1))
                    .collect();
                let path = Path::polyline(&line);
                scene.stroke(path.clone(), Pen::new(Ink { rgb: WHITE, alpha: 0.55 }, 2.6));
                scene.stroke(path, Pen::new(INK, 1.1));
                let length = sheet.typeface.length(&label, LABEL, false);
                // Clear of sensors where that is possible.
                let clear = [labels.as_slice(), marks.as_slice()].concat();
                let found = label_place(&line, length, &clear, &area)
                    .or_else(|| label_place(&line, length, &labels, &area));
                let Some((at, angle)) = found.filter(|_| room > 0) else { continue };
                room -= 1;
                labels.push(square(at, length / 2.0 + 2.0));
                texts.push((label.clone(), at, angle));
            }
        }
        texts
    }

    fn draw_marks(&self, scene: &mut Scene, view: &View) {
        let (width, height) = view.size();
        let apart = (width * height / self.sensors.len().max(1) as f64).sqrt();
        for (site, value) in self.sensors.iter().filter(|(site, _)| view.holds(*site)) {
            // A mark that has a value must show its colour, one that has none must not hide any.
            let (share, most) = if value.is_some() { (0.2, 4.5) } else { (0.14, 3.0) };
            let fill = value.map_or(WHITE, |value| self.shades.of(value));
            draw_sensor(scene, view.place(*site), (share * apart).clamp(1.1, most), fill);
        }
        for (site, se) in self.emitters.iter().filter(|(site, _)| view.holds(*site)) {
            let centre = view.place(*site);
            match se {
                Some([x, y]) => {
                    let (rx, ry) = view.turn((NINETY * x, NINETY * y));
                    let radii = (rx.abs().max(0.5), ry.abs().max(0.5));
                    let frame = view.bounds().path();
                    scene.clipped(frame, |scene| draw_located(scene, centre, radii));
                }
                None => draw_emitter(scene, centre),
            }
        }
    }

    fn draw_rulers(&self, scene: &mut Scene, typeface: &Typeface, around: &Around) {
        let Bounds { left, top, right, bottom } = around.view.bounds();
        let [across, upward] = &around.rulers;
        let Region { low, .. } = around.view.region;
        let pen = Pen::new(INK, 0.8);
        let on_axis = |metres: f64, horizontal: bool| {
            let x_runs = horizontal == (around.view.axes == super::Axes::Xy);
            let site = if x_runs { Site::new(metres, low.y_m) } else { Site::new(low.x_m, metres) };
            around.view.place(site)
        };
        for (metres, label) in &across.ticks {
            let x = on_axis(*metres, true).0;
            scene.stroke(Path::polyline(&[(x, bottom), (x, bottom + TICK)]), pen);
            if around.x_labels {
                let at = (x, bottom + TICK + GAP + 0.45 * LABEL);
                scene.text(typeface, &Text::new(label, at, LABEL, Anchor::Middle, INK));
            }
        }
        let mut widest = 0.0f64;
        for (metres, label) in &upward.ticks {
            let y = on_axis(*metres, false).1;
            scene.stroke(Path::polyline(&[(left - TICK, y), (left, y)]), pen);
            if around.y_labels {
                let at = (left - TICK - GAP, y);
                scene.text(typeface, &Text::new(label, at, LABEL, Anchor::End, INK));
                widest = widest.max(typeface.length(label, LABEL, false));
            }
        }
        if around.x_labels {
            let at = ((left + right) / 2.0, bottom + TICK + 1.5 * LEADING * LABEL + GAP);
            let name = typeface.cut(&across.name, LABEL, false, around.room.0 + 24.0);
            scene.text(typeface, &Text::new(&name, at, LABEL, Anchor::Middle, QUIET));
        }
        if around.y_labels {
            let at = (left - TICK - 2.0 * GAP - widest - 0.6 * LABEL, (top + bottom) / 2.0);
            let name = typeface.cut(&upward.name, LABEL, false, around.room.1 + 24.0);
            let text = Text::new(&name, at, LABEL, Anchor::Middle, QUIET);
            scene.text(typeface, &text.turned(90.0));
        }
    }

    fn draw_words(&self, scene: &mut Scene, typeface: &Typeface, around: &Around) {
        let Bounds { left, top, right, bottom } = around.view.bounds();
        let middle = (left + right) / 2.0;
        draw_title(scene, typeface, &around.title, (middle, top - around.lift));
        if let Some(caption) = &self.caption {
            let below = if around.x_labels { 2.0 * LEADING * LABEL + GAP } else { 0.0 };
            let at = (middle, bottom + TICK + below + 0.5 * LEADING * LABEL);
            let caption = typeface.cut(caption, LABEL, false, around.room.0);
            scene.text(typeface, &Text::new(&caption, at, LABEL, Anchor::Middle, INK));
        }
    }
}

/// Draws the lines of a title above a place.
pub fn draw_title(
    scene: &mut Scene,
    typeface: &Typeface,
    lines: &[(String, bool)],
    (middle, bottom): Point,
) {
    let mut y = bottom - GAP - LEADING * TITLE * (lines.len() as f64 - 0.5);
    for (line, bold) in lines {
        let size = if *bold { TITLE } else { LABEL };
        let text = Text::new(line, (middle, y), size, Anchor::Middle, INK);
        scene.text(typeface, &Text { bold: *bold, ..text });
        y += LEADING * TITLE;
    }
}

/// The lines of a title and whether each is of its first paragraph, which is set in bold.
pub fn title_lines(typeface: &Typeface, title: &str, width: f64) -> Vec<(String, bool)> {
    let paragraphs = title.lines().enumerate().flat_map(|(place, text)| {
        let bold = place == 0;
        let size = if bold { TITLE } else { LABEL };
        typeface.wrap(text, size, bold, width, 2).into_iter().map(move |line| (line, bold))
    });
    paragraphs.take(4).collect()
}

/// Where the grid's cells lie on the page.
fn cells_area(sheet: &Sheet<'_>, view: &View) -> Bounds {
    let Region { low, high } = covered(sheet.grid);
    Bounds::around([view.place(low), view.place(high)]).expect("two corners")
}

/// The cells of which nothing is known, as runs along lines; equal runs of neighbouring lines are
/// one.
fn unknown_area(values: &ArrayView2<'_, f64>, area: Bounds) -> Option<Path> {
    let (lines, columns) = values.dim();
    let step = ((area.right - area.left) / columns as f64, (area.bottom - area.top) / lines as f64);
    let runs = |line: usize| {
        let mut runs: Vec<[usize; 2]> = Vec::new();
        for column in (0..columns).filter(|column| values[[line, *column]].is_nan()) {
            match runs.last_mut() {
                Some(run) if run[1] == column => run[1] += 1,
                _ => runs.push([column, column + 1]),
            }
        }
        runs
    };
    let mut path = Path::default();
    let mut first = 0;
    let mut open: Vec<[usize; 2]> = Vec::new();
    for line in 0..=lines {
        let found = if line < lines { runs(line) } else { Vec::new() };
        if found != open {
            for [from, to] in &open {
                path.add_rect(
                    area.left + *from as f64 * step.0,
                    area.top + first as f64 * step.1,
                    (to - from) as f64 * step.0,
                    (line - first) as f64 * step.1,
                );
            }
            (first, open) = (line, found);
        }
    }
    (!path.segments.is_empty()).then_some(path)
}

fn square((x, y): Point, reach: f64) -> Bounds {
    Bounds { left: x - reach, top: y - reach, right: x + reach, bottom: y + reach }
}

/// A straight piece of a line that holds a label, clear of other labels: its middle and angle.
fn label_place(
    line: &[Point],
    length: f64,
    taken: &[Bounds],
    area: &Bounds,
) -> Option<(Point, f64)> {
    let mut run = vec![0.0];
    for pair in line.windows(2) {
        let step = (pair[1].0 - pair[0].0).hypot(pair[1].1 - pair[0].1);
        run.push(run[run.len() - 1] + step);
    }
    let total = run[run.len() - 1];
    if total < 3.0 * length {
        return None;
    }
    let at = |along: f64| {
        let next = run.partition_point(|r| *r < along).clamp(1, line.len() - 1);
        let (a, b) = (line[next - 1], line[next]);
        let step = run[next] - run[next - 1];
        let t = if step > 0.0 { (along - run[next - 1]) / step } else { 0.0 };
        (a.0 + t * (b.0 - a.0), a.1 + t * (b.1 - a.1))
    };
    [0.5, 0.35, 0.65, 0.2, 0.8, 0.28, 0.72].into_iter().find_map(|share| {
        let middle = share * total;
        let (from, to) = (at(middle - length / 2.0), at(middle + length / 2.0));
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let centre = at(middle);
        let bounds = square(centre, length / 2.0 + 2.0);
        let inside = bounds.left > area.left
            && bounds.right < area.right
            && bounds.top > area.top
            && bounds.bottom < area.bottom;
        let free = inside && taken.iter().all(|other| !other.meets(&bounds));
        let mut angle = -dy.atan2(dx).to_degrees();
        // Never upside down.
        if angle.abs() > 90.0 {
            angle -= 180.0 * angle.signum();
        }
        (free && dx.hypot(dy) > 0.85 * length).then_some((centre, angle))
    })
}
