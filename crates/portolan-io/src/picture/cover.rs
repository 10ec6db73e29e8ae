//! A picture of coverage: where the best band is above a level, in three certainties.

use ndarray::Array2;
use portolan::coverage::{CERTAINTIES, Coverage, Covered};
use portolan::{Crs, Grid, InputError, Site};

use super::colour::Rgb;
use super::scene::{Scene, Typeface};
use super::sheet::{Key, MapPanel, Shades, Sheet};

/// Cells along the longer side of what is kept for the picture.
const FINEST: usize = 1000;

/// Not above, and above with each certainty (ColorBrewer's Blues).
const SHADES: [Rgb; 4] = [[232, 232, 234], [189, 215, 231], [107, 174, 214], [8, 81, 156]];

/// What the picture says beside its colours.
pub struct CoverageAbout<'a> {
    pub title: Option<&'a str>,
    /// The level with its unit.
    pub level: String,
    pub note: String,
    pub crs: Option<Crs>,
}

/// Chances of the best band, kept as coarsely as a picture needs while they are worked out.
#[derive(Clone, Debug)]
pub struct CoverageFigure {
    grid: Grid,
    step: usize,
    sums: Array2<f64>,
    counts: Array2<f64>,
}

impl CoverageFigure {
    pub fn new(grid: Grid) -> Self {
        let step = grid.rows().max(grid.cols()).div_ceil(FINEST);
        let shape = (grid.rows().div_ceil(step), grid.cols().div_ceil(step));
        Self { grid, step, sums: Array2::zeros(shape), counts: Array2::zeros(shape) }
    }

    /// Adds the chances of whole rows from `first` on; NaN where nothing is known.
    pub fn add_rows(&mut self, first: usize, chances: &[f64]) {
        for (place, chance) in chances.iter().enumerate().filter(|(_, chance)| !chance.is_nan()) {
            let (row, col) = (first + place / self.grid.cols(), place % self.grid.cols());
            let at = [row / self.step, col / self.step];
            self.sums[at] += 100.0 * chance;
            self.counts[at] += 1.0;
        }
    }

    /// The picture.
    pub fn draw(
        &self,
        found: &Coverage,
        about: &CoverageAbout<'_>,
        typeface: &Typeface,
    ) -> Result<Scene, InputError> {
        // 0 / 0 is NaN: nothing known there.
        let field = &self.sums / &self.counts;
        let (rows, cols) = field.dim();
        let cell_m = self.grid.cell_m() * self.step as f64;
        let shift = 0.5 * (cell_m - self.grid.cell_m());
        let Site { x_m, y_m, .. } = self.grid.origin();
        let grid =
            Grid::new(rows, cols, cell_m)?.with_origin(Site::new(x_m + shift, y_m + shift))?;
        let levels =
            if found.spread { CERTAINTIES.map(|c| 100.0 * c).to_vec() } else { vec![50.0] };
        let colours = if found.spread { SHADES.to_vec() } else { vec![SHADES[0], SHADES[3]] };
        let shades = Shades::Stepped { levels, colours };
        let panel = MapPanel::new(format!("above {}", about.level), field, shades);
        let heading = about.title.unwrap_or("Coverage");
        let sheet = Sheet {
            crs: about.crs,
            keys: keys(&found.best, found.spread),
            ..Sheet::new(heading, about.note.clone(), grid, vec![panel], typeface)
        };
        Ok(sheet.draw())
    }
}

fn keys(best: &Covered, spread: bool) -> Vec<Key> {
    let shares = best.shares().map(|share| format!("{:.1} %", 100.0 * share));
    if !spread {
        let above = Key::Shade(SHADES[3], format!("above: {} of the area", shares[0]));
        return vec![above, Key::Shade(SHADES[0], "below".to_owned())];
    }
    let mut keys: Vec<Key> = (0..CERTAINTIES.len())
        .rev()
        .map(|place| {
            let certainty = 100.0 * CERTAINTIES[place];
            let text = format!("at least {certainty:.0} % sure: {} of the area", shares[place]);
            Key::Shade(SHADES[place + 1], text)
        })
        .collect();
    keys.push(Key::Shade(SHADES[0], "less".to_owned()));
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array3;

    #[test]
    fn a_large_area_is_kept_coarsely_and_drawn_with_its_shares() {
        let grid = Grid::new(2500, 3, 1.0).unwrap();
        let mut figure = CoverageFigure::new(grid);
        let mut found = Coverage::new(1, -70.0);
        for first in (0..2500).step_by(500) {
            let level =
                Array3::from_shape_fn(
                    (500, 3, 1),
                    |(i, _, _)| {
                        if first + i < 1250 { -60.0 } else { -90.0 }
                    },
                );
            let spread = Array3::from_elem((500, 3, 1), 2.0);
            figure.add_rows(first, &found.add(level.view(), Some(spread.view())));
        }
        assert_eq!(figure.sums.dim(), (834, 1));
        let about =
            CoverageAbout {
                title: None, level: "−70 dBm".into(), note: String::new(), crs: None
            };
        let scene = figure.draw(&found, &about, &Typeface::new()).unwrap();
        let texts: Vec<&str> = scene.texts().into_iter().map(|(text, _)| text).collect();
        assert!(texts.contains(&"at least 99 % sure: 50.0 % of the area"), "{texts:?}");
        let pixels = scene.pixels(1000).unwrap();
        let [r, g, b] = SHADES[3];
        assert!(pixels.data().chunks(4).any(|p| p == [r, g, b, 255]));
    }
}
