//! Maps side by side on one page, with axes in metres, colour bars and a legend.

mod bar;
mod chart;
mod contour;
mod legend;
mod marks;
mod panel;
mod shades;
mod underlay;
mod view;

pub(crate) use bar::colour_bar;
pub use chart::{Chart, Curve, Occupied, charts_figure};
pub use legend::Key;
pub use panel::MapPanel;
pub use shades::Shades;
pub use underlay::Underlay;
pub use view::{Axes, View, covered};

use portolan::{Crs, Grid};

use super::colour::{INK, QUIET};
use super::scene::{Anchor, Scene, Text, Typeface};
use bar::{BAR_GAP, Bar};
use view::{Ruler, union};

/// Sizes of text in points.
const HEADING: f64 = 17.0;
const TITLE: f64 = 13.0;
const LABEL: f64 = 11.0;
/// Lines of text are so far apart, in sizes.
const LEADING: f64 = 1.3;

const MARGIN: f64 = 16.0;
const COLUMN_GAP: f64 = 14.0;
const ROW_GAP: f64 = 12.0;
const TICK: f64 = 4.0;
const GAP: f64 = 4.0;
/// Smaller plots are set in a box of this size, so that names and colour bars fit.
const SMALLEST: (f64, f64) = (110.0, 90.0);
/// The least width of a page without its margins.
const NARROWEST: f64 = 340.0;

/// What a page shows.
pub struct Sheet<'a> {
    pub heading: String,
    /// A quieter line under the heading.
    pub note: String,
    /// The grid of all panels.
    pub grid: Grid,
    pub crs: Option<Crs>,
    pub axes: Axes,
    /// What lies under the maps, and how much of it they cover.
    pub under: Option<&'a Underlay>,
    pub opacity: f64,
    pub panels: Vec<MapPanel>,
    /// As many as suit the shape of the maps where it is not said.
    pub columns: Option<usize>,
    /// What crosses mark.
    pub crosses: &'static str,
    /// Entries of the legend before those that the panels ask for.
    pub keys: Vec<Key>,
    pub typeface: &'a Typeface,
}

impl<'a> Sheet<'a> {
    /// Maps with x to the right and y up.
    pub fn new(
        heading: impl Into<String>,
        note: impl Into<String>,
        grid: Grid,
        panels: Vec<MapPanel>,
        typeface: &'a Typeface,
    ) -> Self {
        Self {
            heading: heading.into(),
            note: note.into(),
            grid,
            crs: None,
            axes: Axes::Xy,
            under: None,
            opacity: 1.0,
            panels,
            columns: None,
            crosses: "emitters",
            keys: Vec::new(),
            typeface,
        }
    }

    pub fn draw(&self) -> Scene {
        let layout = Layout::new(self);
        let mut scene = layout.headed.clone();
        (scene.width, scene.height) = (layout.width, layout.height);
        for (place, panel) in self.panels.iter().enumerate() {
            let around = layout.around(place);
            panel.draw(&mut scene, self, &around);
            if let Some(bar) = layout.bars[place].then(|| panel.bar(self.opacity)).flatten() {
                let height = around.room.1;
                let top = around.corner.1 + (around.view.size().1 - height) / 2.0;
                let left = around.corner.0 + around.view.size().0 + BAR_GAP;
                bar.draw(&mut scene, self.typeface, (left, top), height);
            }
        }
        if let Some((bar, at, height)) = layout.common_bar(self) {
            bar.draw(&mut scene, self.typeface, at, height);
        }
        legend::draw(&mut scene, self.typeface, &layout.keys, layout.below, layout.inner);
        scene
    }

    fn keys(&self, view: &View) -> Vec<Key> {
        let mut keys = self.keys.clone();
        let seen = |p: &MapPanel| p.sensors.iter().filter(|(site, _)| view.holds(*site)).count();
        let mut sensors = self.panels.iter().map(seen).filter(|count| *count > 0);
        let first = sensors.next();
        let same = first.filter(|count| sensors.all(|other| other == *count));
        let marked = |located: bool| {
            let mut all = self.panels.iter().flat_map(|p| &p.emitters);
            all.any(|(site, se)| view.holds(*site) && se.is_some() == located)
        };
        let unknown = self.panels.iter().any(|p| p.field.iter().any(|v| v.is_nan()));
        let wanted = [
            (first.is_some(), Key::Sensors(same)),
            (marked(false), Key::Crosses(self.crosses)),
            (marked(true), Key::Located),
            (unknown, Key::Unknown),
        ];
        keys.extend(wanted.into_iter().filter(|(wanted, _)| *wanted).map(|(_, key)| key));
        let (width, height) = view.size();
        let longest = (0.4 * width).max(0.2 * height).min(400.0);
        keys.push(Key::Length {
            metres: view::round_length(longest / view.scale),
            scale: view.scale,
        });
        if self.crs.is_some() {
            keys.push(Key::North { up: self.axes == Axes::Xy });
        }
        keys
    }
}

/// A page of a width as yet without its margins, with a heading and a quieter line below it.
pub(super) fn headed(heading: &str, note: &str, inner: f64, typeface: &Typeface) -> Scene {
    let title = if note.is_empty() { heading.to_owned() } else { format!("{heading}: {note}") };
    let mut scene = Scene::new(inner + 2.0 * MARGIN, 0.0, title);
    let mut y = MARGIN;
    for (text, size, bold) in [(heading, HEADING, true), (note, LABEL, false)] {
        for line in typeface.wrap(text, size, bold, inner, 3) {
            let at = (MARGIN, y + 0.6 * size);
            let ink = if bold { INK } else { QUIET };
            let text = Text { bold, ..Text::new(&line, at, size, Anchor::Start, ink) };
            scene.text(typeface, &text);
            y += LEADING * size;
        }
    }
    scene.height = y + MARGIN;
    scene
}

/// How many columns suit so many maps of a shape: a page about twice as wide as high, without holes
/// if possible.
fn best_columns(count: usize, (across, upward): (f64, f64)) -> usize {
    // Labels surround every map, so a panel is never as slender as its map.
    let long = across.max(upward);
    let aspect = (across / long + 0.25) / (upward / long + 0.25);
    let cost = |columns: usize| {
        let lines = count.div_ceil(columns);
        let shape = columns as f64 * aspect / lines as f64;
        (shape / 1.95).ln().abs() + 0.3 * (lines * columns - count) as f64
    };
    (1..=count.clamp(1, 4)).min_by(|&a, &b| cost(a).total_cmp(&cost(b))).unwrap_or(1)
}

/// Row and column of every panel.
fn cells(panels: &[MapPanel], columns: usize) -> Vec<(usize, usize)> {
    let mut cells: Vec<(usize, usize)> = Vec::new();
    for panel in panels {
        cells.push(match cells.last() {
            None => (0, 0),
            Some((row, column)) if panel.starts_row || column + 1 == columns => (row + 1, 0),
            Some((row, column)) => (*row, column + 1),
        });
    }
    cells
}

/// A panel's place on the page.
struct Around {
    view: View,
    /// The top left corner of the plot.
    corner: (f64, f64),
    /// The least size of what surrounds the plot.
    room: (f64, f64),
    x_labels: bool,
    y_labels: bool,
    rulers: [Ruler; 2],
    /// How far the title stands above its usual place.
    lift: f64,
    title: Vec<(String, bool)>,
}

/// Where everything goes.
struct Layout {
    view: View,
    room: (f64, f64),
    rulers: [Ruler; 2],
    cells: Vec<(usize, usize)>,
    /// Left edge of every column's box.
    lefts: Vec<f64>,
    /// Upper edge of every row's box.
    tops: Vec<f64>,
    titles: Vec<Vec<(String, bool)>>,
    bars: Vec<bool>,
    common: bool,
    headed: Scene,
    keys: Vec<Key>,
    below: f64,
    inner: f64,
    width: f64,
    height: f64,
}

impl Layout {
    fn new(sheet: &Sheet<'_>) -> Self {
        let typeface = sheet.typeface;
        let count = sheet.panels.len();
        let region = covered(sheet.grid);
        let region = sheet.under.map_or(region, |under| union(region, under.region()));
        let shape = View::sized(region, sheet.axes, 1.0).size();
        let columns = sheet.columns.unwrap_or_else(|| best_columns(count, shape));
        let columns = columns.clamp(1, count.max(1));
        let target = match columns {
            1 => 460.0,
            2 => 390.0,
            3 => 320.0,
            4 => 260.0,
            n => (1060.0 / n as f64).max(150.0),
        };
        let view = View::sized(region, sheet.axes, target);
        let (width, height) = view.size();
        let room = (width.max(SMALLEST.0), height.max(SMALLEST.1));
        let rulers = rulers(sheet, &view);
        let cells = cells(&sheet.panels, columns);
        let rows = cells.last().map_or(0, |(row, _)| row + 1);
        let alike = sheet.panels.windows(2).all(|pair| pair[0].same_bar(&pair[1]));
        let common = alike && rows > 1;
        let bars = bars(&sheet.panels, &cells, common);
        let bar_room = |place: usize| match sheet.panels[place].bar(sheet.opacity) {
            Some(bar) if bars[place] => BAR_GAP + bar.room(typeface, room.1),
            _ => 6.0,
        };
        let beside = (room.0 - width) / 2.0;
        let labels = rulers[1].ticks.iter().map(|(_, l)| typeface.length(l, LABEL, false));
        let labels = TICK + 2.0 * GAP + labels.fold(0.0, f64::max) + 1.2 * LABEL;
        let mut lefts = Vec::new();
        let mut x = MARGIN;
        for column in 0..columns {
            x += if column == 0 { (labels - beside).max(6.0) } else { 6.0 };
            lefts.push(x);
            let below = (0..count).filter(|place| cells[*place].1 == column);
            let right = below.map(bar_room).fold(6.0, f64::max);
            x += room.0 + (right - beside).max(6.0) + COLUMN_GAP;
        }
        let common_room = if common {
            let bar = sheet.panels[0].bar(sheet.opacity);
            bar.map_or(0.0, |bar| BAR_GAP + bar.room(typeface, room.1.max(220.0)))
        } else {
            0.0
        };
        let inner = (x - COLUMN_GAP - MARGIN + common_room).max(NARROWEST);
        let headed = headed(&sheet.heading, &sheet.note, inner, typeface);
        let titles: Vec<_> =
            sheet.panels.iter().map(|p| panel::title_lines(typeface, &p.title, room.0)).collect();
        let mut y = headed.height - MARGIN + ROW_GAP / 2.0;
        let lift = lift(room.0, width);
        let mut tops = Vec::new();
        for row in 0..rows {
            let row = (0..count).filter(|place| cells[*place].0 == row);
            let above =
                |lines: &Vec<(String, bool)>| lift + LEADING * TITLE * lines.len() as f64 + GAP;
            let above = row.clone().map(|p| above(&titles[p])).fold(0.0, f64::max);
            let tips = row.clone().any(|p| bars[p]);
            let spare = (room.1 - height) / 2.0;
            y += (above - spare).max(if tips { bar::TIP + 2.0 } else { 6.0 });
            tops.push(y);
            let labelled = row.clone().any(|p| lowest(&cells, p));
            let below = if labelled { TICK + 2.0 * LEADING * LABEL + GAP } else { TICK };
            let caption = row.clone().any(|p| sheet.panels[p].caption.is_some());
            let below = below + if caption { LEADING * LABEL } else { 0.0 };
            y += room.1 + (below - spare).max(if tips { bar::TIP } else { 6.0 }) + ROW_GAP;
        }
        let keys = sheet.keys(&view);
        let height = y + legend::height(typeface, &keys, inner) + MARGIN;
        Self {
            view,
            room,
            rulers,
            cells,
            lefts,
            tops,
            titles,
            bars,
            common,
            headed,
            keys,
            below: y,
            inner,
            width: inner + 2.0 * MARGIN,
            height,
        }
    }

    fn around(&self, place: usize) -> Around {
        let (row, column) = self.cells[place];
        let (width, height) = self.view.size();
        let corner = (
            self.lefts[column] + (self.room.0 - width) / 2.0,
            self.tops[row] + (self.room.1 - height) / 2.0,
        );
        Around {
            view: self.view.at(corner),
            corner,
            room: self.room,
            x_labels: lowest(&self.cells, place),
            y_labels: column == 0,
            rulers: self.rulers.clone(),
            lift: lift(self.room.0, width),
            title: self.titles[place].clone(),
        }
    }

    /// One bar for all panels, right of them, where all have the same scale.
    fn common_bar(&self, sheet: &Sheet<'_>) -> Option<(Bar, (f64, f64), f64)> {
        let mut bar = sheet.panels.first().filter(|_| self.common)?.bar(sheet.opacity)?;
        for panel in &sheet.panels {
            let (below, above) = panel.shades.clips(panel.values());
            bar.tips = (bar.tips.0 || below, bar.tips.1 || above);
        }
        let (top, bottom) = (self.tops[0], self.tops[self.tops.len() - 1] + self.room.1);
        let height = (bottom - top).min(self.room.1.max(220.0));
        let left = self.lefts[self.lefts.len() - 1] + self.room.0 + BAR_GAP + 6.0;
        Some((bar, (left, (top + bottom - height) / 2.0), height))
    }
}

/// A title that is wider than its plot stands clear of the tip of the bar beside it.
fn lift(room: f64, width: f64) -> f64 {
    if room > width { bar::TIP } else { 0.0 }
}

/// Whether no panel stands below this one.
fn lowest(cells: &[(usize, usize)], place: usize) -> bool {
    let (row, column) = cells[place];
    !cells.contains(&(row + 1, column))
}

/// Which panels show their colour bar: one of neighbours that share it.
fn bars(panels: &[MapPanel], cells: &[(usize, usize)], common: bool) -> Vec<bool> {
    let shares = |at: usize| {
        let beside = cells.get(at + 1).is_some_and(|next| next.0 == cells[at].0);
        beside && panels[at].same_bar(&panels[at + 1])
    };
    let column = |of: usize| (0..cells.len()).filter(move |at| cells[*at].1 == cells[of].1);
    (0..cells.len()).map(|at| !common && !column(at).all(shares)).collect()
}

/// Rulers below and left of a plot.
fn rulers(sheet: &Sheet<'_>, view: &View) -> [Ruler; 2] {
    let region = view.region;
    let kilo = region.width_m().max(region.height_m()) >= 10_000.0;
    let (x, y) = match (sheet.crs, sheet.axes) {
        (Some(_), Axes::Xy) => ("easting", "northing"),
        (None, Axes::Xy) => ("x", "y"),
        (_, Axes::Rows) => ("rows, x", "columns, y"),
    };
    let x = (x, (region.low.x_m, region.high.x_m));
    let y = (y, (region.low.y_m, region.high.y_m));
    let (across, upward) = match sheet.axes {
        Axes::Xy => (x, y),
        Axes::Rows => (y, x),
    };
    let (width, height) = view.size();
    let beside = |label: &str| sheet.typeface.length(label, LABEL, false) + 1.4 * LABEL;
    [
        Ruler::new(across.0, across.1, width, kilo, beside),
        Ruler::new(upward.0, upward.1, height, kilo, |_| 1.9 * LABEL),
    ]
}

#[cfg(test)]
mod tests;
