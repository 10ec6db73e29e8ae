//! Panels in rows and columns under a common heading.

use super::Bitmap;
use super::canvas::{Align, Canvas, INK, QUIET, WHITE};
use super::heat::HeatPanel;
use super::lines::LinePanel;
use super::marks::{draw_emitter, draw_located, draw_sensor, draw_unknown};
use super::plot::{Extent, LEADING, Rect};
use super::text::Font;

const MARGIN: i64 = 24;
const COLUMN_GAP: i64 = 18;
const ROW_GAP: i64 = 16;
const CHART_HEIGHT: i64 = 240;
const NARROWEST: i64 = 420;
const MOST_COLUMNS: usize = 4;

#[derive(Clone, Debug)]
pub enum Panel {
    Heat(HeatPanel),
    /// Takes a row of its own, as wide as the figure.
    Lines(LinePanel),
}

/// What the legend under a figure explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Sensors(usize),
    Emitters,
    /// Emitters with an ellipse about them.
    Located,
    Unknown,
}

/// A heading and rows of panels.
#[derive(Clone, Debug, Default)]
pub struct Figure {
    pub heading: String,
    /// A quieter line under the heading.
    pub note: String,
    pub rows: Vec<Vec<Panel>>,
    pub keys: Vec<Key>,
}

impl Figure {
    /// Adds heat maps of one grid in so many columns; axes and colour bars that neighbours share
    /// are labelled once. Adds what their marks mean to the legend.
    pub fn add_maps(&mut self, mut panels: Vec<HeatPanel>, columns: usize) {
        let columns = columns.max(1);
        let count = panels.len();
        self.explain(&panels);
        let alike = panels.windows(2).all(|pair| pair[0].same_bar(&pair[1]));
        for column in 0..columns.min(count) {
            let last = column + 1 == columns.min(count);
            let shares = |at: usize| at + 1 < count && panels[at].same_bar(&panels[at + 1]);
            let shared = !last && (alike || (column..count).step_by(columns).all(shares));
            for at in (column..count).step_by(columns) {
                panels[at].y_labels = column == 0;
                panels[at].x_labels = at + columns >= count;
                if shared {
                    panels[at].bar = None;
                }
            }
        }
        let mut panels = panels.into_iter().map(Panel::Heat).peekable();
        while panels.peek().is_some() {
            self.rows.push(panels.by_ref().take(columns).collect());
        }
    }

    pub fn add_chart(&mut self, chart: LinePanel) {
        self.rows.push(vec![Panel::Lines(chart)]);
    }

    fn explain(&mut self, panels: &[HeatPanel]) {
        let sensors = panels.iter().map(|p| p.sensors.len()).max().unwrap_or(0);
        let marked = |located: bool| {
            let mut all = panels.iter().flat_map(HeatPanel::visible_emitters);
            all.any(|(_, se)| se.is_some() == located)
        };
        let wanted = [
            (sensors > 0, Key::Sensors(sensors)),
            (marked(false), Key::Emitters),
            (marked(true), Key::Located),
            (panels.iter().any(HeatPanel::has_unknown), Key::Unknown),
        ];
        for (_, key) in wanted.into_iter().filter(|(wanted, _)| *wanted) {
            if !self.keys.contains(&key) {
                self.keys.push(key);
            }
        }
    }

    pub fn draw(&self) -> Bitmap {
        let layout = FigureLayout::new(self);
        let mut canvas = Canvas::new(layout.width as usize, layout.height as usize);
        let mut y = MARGIN;
        for line in &layout.heading {
            canvas.text(MARGIN, y, line, Font::HEADING, Align::Start, INK);
            y += Font::HEADING.height() + LEADING;
        }
        for line in &layout.note {
            canvas.text(MARGIN, y, line, Font::LABEL, Align::Start, QUIET);
            y += Font::LABEL.height() + LEADING;
        }
        y += ROW_GAP / 2;
        for (row, extent) in self.rows.iter().zip(&layout.rows) {
            y += extent.top;
            layout.draw_row(&mut canvas, row, y, extent.height);
            y += extent.height + extent.bottom + ROW_GAP;
        }
        self.draw_keys(&mut canvas, y);
        canvas.into()
    }

    fn draw_keys(&self, canvas: &mut Canvas, y: i64) {
        let mut x = MARGIN;
        let middle = y as f64 + Font::LABEL.height() as f64 / 2.0;
        for key in &self.keys {
            let centre = (x as f64 + 9.0, middle);
            let text = match key {
                Key::Sensors(count) => {
                    draw_sensor(canvas, centre, 4.5, WHITE);
                    format!("{count} sensors")
                }
                Key::Emitters => {
                    draw_emitter(canvas, centre);
                    "emitters".to_owned()
                }
                Key::Located => {
                    let around = Rect { x, y, width: 18, height: Font::LABEL.height() };
                    draw_located(canvas, centre, (8.0, 6.5), around);
                    "emitters, 90 % ellipse".to_owned()
                }
                Key::Unknown => {
                    let area = Rect { x, y: y + 2, width: 18, height: 16 };
                    draw_unknown(canvas, area);
                    canvas.frame(area.x, area.y, area.width, area.height, QUIET);
                    "unknown".to_owned()
                }
            };
            canvas.text(x + 26, y, &text, Font::LABEL, Align::Start, QUIET);
            x += 26 + Font::LABEL.length(&text) + 28;
        }
    }
}

/// Where everything goes.
struct FigureLayout {
    target: usize,
    columns: Vec<Extent>,
    rows: Vec<Extent>,
    heading: Vec<String>,
    note: Vec<String>,
    inner: i64,
    width: i64,
    height: i64,
}

impl FigureLayout {
    fn new(figure: &Figure) -> Self {
        let heat_rows = || figure.rows.iter().filter(|r| !is_chart(r));
        let count = heat_rows().map(Vec::len).max().unwrap_or(0);
        let target = match count {
            0 | 1 => 500,
            2 => 420,
            3 => 370,
            _ => 300,
        };
        let extent_of = |panel: &Panel, inner: i64| match panel {
            Panel::Heat(heat) => heat.extent(target),
            Panel::Lines(lines) => {
                // Margins do not depend on the width but for the ticks, which only grow with it.
                let around = lines.extent(inner, CHART_HEIGHT);
                let width = (inner - around.left - around.right).max(240);
                lines.extent(width, CHART_HEIGHT)
            }
        };
        let mut columns = vec![Extent::default(); count];
        for row in heat_rows() {
            for (column, panel) in columns.iter_mut().zip(row) {
                *column = column.join(extent_of(panel, 0));
            }
        }
        let gaps = COLUMN_GAP * (count as i64 - 1).max(0);
        let maps: i64 = columns.iter().map(|c| c.left + c.width + c.right).sum::<i64>() + gaps;
        let has_chart = figure.rows.iter().any(|r| is_chart(r));
        let inner = maps.max(if has_chart { 900 } else { NARROWEST });
        let rows: Vec<Extent> = figure
            .rows
            .iter()
            .map(|row| row.iter().fold(Extent::default(), |e, p| e.join(extent_of(p, inner))))
            .collect();
        let heading = Font::HEADING.wrap(&figure.heading, inner);
        let note = Font::LABEL.wrap(&figure.note, inner);
        let text = heading.len() as i64 * (Font::HEADING.height() + LEADING)
            + note.len() as i64 * (Font::LABEL.height() + LEADING)
            + ROW_GAP / 2;
        let panels: i64 = rows.iter().map(|r| r.top + r.height + r.bottom + ROW_GAP).sum();
        let keys = if figure.keys.is_empty() { -ROW_GAP } else { Font::LABEL.height() };
        let height = 2 * MARGIN + text + (panels + keys).max(0);
        Self { target, columns, rows, heading, note, inner, width: inner + 2 * MARGIN, height }
    }

    fn draw_row(&self, canvas: &mut Canvas, row: &[Panel], y: i64, height: i64) {
        let mut x = MARGIN;
        for (place, panel) in row.iter().enumerate() {
            match panel {
                Panel::Lines(lines) => {
                    let extent = lines.extent(self.inner, height);
                    let width = (self.inner - extent.left - extent.right).max(240);
                    lines.draw(canvas, Rect { x: x + extent.left, y, width, height });
                }
                Panel::Heat(heat) => {
                    let column = self.columns[place];
                    let plot = Rect { x: x + column.left, y, width: column.width, height };
                    heat.draw(canvas, plot, self.target);
                    x += column.left + column.width + column.right + COLUMN_GAP;
                }
            }
        }
    }
}

fn is_chart(row: &[Panel]) -> bool {
    matches!(row, [Panel::Lines(_)])
}

/// How many columns suit so many maps of a shape: a figure about twice as wide as high, without
/// holes if possible.
pub fn best_columns(count: usize, rows: usize, cols: usize) -> usize {
    // Labels surround every map, so a panel is never as slender as its map.
    let long = rows.max(cols).max(1) as f64;
    let aspect = (cols as f64 / long + 0.25) / (rows as f64 / long + 0.25);
    let cost = |columns: usize| {
        let lines = count.div_ceil(columns);
        let shape = columns as f64 * aspect / lines as f64;
        (shape / 1.95).ln().abs() + 0.3 * (lines * columns - count) as f64
    };
    let most = count.clamp(1, MOST_COLUMNS);
    (1..=most).min_by(|&a, &b| cost(a).total_cmp(&cost(b))).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::best_columns;

    #[test]
    fn panels_are_arranged_for_a_slide() {
        let square = [1, 2, 3, 4, 5, 6, 7, 8, 9].map(|n| best_columns(n, 64, 64));
        assert_eq!(square, [1, 2, 3, 2, 3, 3, 4, 4, 3]);
        assert_eq!(best_columns(3, 8, 300), 1);
        assert_eq!(best_columns(4, 300, 8), 4);
    }
}
