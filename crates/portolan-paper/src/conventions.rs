//! SSIM as others compute it. The paper does not say which it used: here are the conventions in use,
//! and how far each is from the columns that the paper prints.

use ndarray::Array2;
use portolan::RadioMap;
use portolan::score::{Window, ssim};

use crate::experiment::{Experiment, TableCell};
use crate::summary::CellSummary;

/// What the data range of an SSIM is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Range {
    /// Of the true log map in that band.
    Band,
    /// Of the whole true log map.
    Map,
    /// 2, the default of a common library for floating-point images.
    Two,
    /// 1, after the true log map was moved and scaled to [0, 1], and the estimate with it.
    Unit,
}

/// One way to compute SSIM of log maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Convention {
    range: Range,
    window: Window,
}

/// The paper's columns that are compared: their labels in the table of emitters.
const COLUMNS: [&str; 4] = ["interpolation", "btd", "dgm", "unn, recipe=paper"];

impl Convention {
    /// Every convention, in the order of [`Figures::ssim_by_convention`](crate::Figures).
    pub const ALL: [Convention; 8] = {
        const fn of(range: Range, window: Window) -> Convention {
            Convention { range, window }
        }
        [
            of(Range::Map, Window::Uniform7),
            of(Range::Band, Window::Uniform7),
            of(Range::Two, Window::Uniform7),
            of(Range::Unit, Window::Uniform7),
            of(Range::Map, Window::Gauss11),
            of(Range::Band, Window::Gauss11),
            of(Range::Two, Window::Gauss11),
            of(Range::Unit, Window::Gauss11),
        ]
    };

    /// The convention in words.
    pub fn name(self) -> String {
        let range = match self.range {
            Range::Band => "data range of the band",
            Range::Map => "data range of the map",
            Range::Two => "data range 2",
            Range::Unit => "scaled to [0, 1]",
        };
        let window = match self.window {
            Window::Uniform7 => "7 x 7",
            _ => "Gaussian 11 x 11",
        };
        format!("{range}, {window}")
    }

    /// Mean over bands; none where the map is smaller than the window.
    pub fn ssim(self, estimate: &RadioMap, truth: &RadioMap) -> Option<f64> {
        let link = truth.scale().link();
        let bands = truth.bands();
        let log = |map: &RadioMap, k: usize| map.band(k).mapv(|x| link.apply(x));
        let truths: Vec<Array2<f64>> = (0..bands).map(|k| log(truth, k)).collect();
        let (low, high) = extremes(truths.iter().flatten());
        let mut sum = 0.0;
        for (k, exact) in truths.iter().enumerate() {
            let guess = log(estimate, k);
            let (low_here, high_here) = extremes(exact.iter());
            let unit = |image: &Array2<f64>| image.mapv(|h| (h - low) / (high - low));
            let found = match self.range {
                Range::Band => ssim(guess.view(), exact.view(), high_here - low_here, self.window),
                Range::Map => ssim(guess.view(), exact.view(), high - low, self.window),
                Range::Two => ssim(guess.view(), exact.view(), 2.0, self.window),
                Range::Unit => ssim(unit(&guess).view(), unit(exact).view(), 1.0, self.window),
            };
            sum += found.ok()??;
        }
        Some(sum / bands as f64)
    }
}

fn extremes<'a>(values: impl Iterator<Item = &'a f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), h| (lo.min(*h), hi.max(*h)))
}

/// A convention beside the paper's numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Distance {
    pub name: String,
    /// For each of the compared columns: our mean and the paper's, over the rows that have both.
    pub columns: Vec<(&'static str, f64, f64)>,
    /// Root mean square of ours minus the paper's, over all compared cells.
    pub rms: f64,
}

/// How far every convention is from what the paper prints in the first section of an experiment;
/// empty where nothing is there to compare.
pub(crate) fn distances(
    experiment: &Experiment,
    of: impl Fn(&TableCell) -> CellSummary,
) -> Vec<Distance> {
    let Some(section) = experiment.sections.first() else { return Vec::new() };
    let compared = |label: &str| -> Vec<(Vec<f64>, f64)> {
        let cells = section.cells.iter().filter(|cell| cell.column == label);
        cells
            .filter_map(|cell| {
                let ours = of(cell).ssim_by_convention();
                Some((ours, cell.printed.as_ref()?.ssim)).filter(|(ours, _)| !ours.is_empty())
            })
            .collect()
    };
    let cells: Vec<_> = COLUMNS.iter().map(|label| (*label, compared(label))).collect();
    if cells.iter().any(|(_, cells)| cells.is_empty()) {
        return Vec::new();
    }
    let distance = |(i, convention): (usize, &Convention)| {
        let mean = |values: &mut dyn Iterator<Item = f64>| {
            let (sum, n) = values.fold((0.0, 0.0), |(s, n), v| (s + v, n + 1.0));
            sum / n
        };
        let columns = cells
            .iter()
            .map(|(label, cells)| {
                let ours = mean(&mut cells.iter().map(|(ours, _)| ours[i]));
                (*label, ours, mean(&mut cells.iter().map(|(_, printed)| *printed)))
            })
            .collect();
        let all = cells.iter().flat_map(|(_, cells)| cells);
        let square = mean(&mut all.map(|(ours, printed)| (ours[i] - printed).powi(2)));
        Distance { name: convention.name(), columns, rms: square.sqrt() }
    };
    let mut found: Vec<Distance> = Convention::ALL.iter().enumerate().map(distance).collect();
    found.sort_by(|a, b| a.rms.total_cmp(&b.rms));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use portolan::Grid;
    use portolan::score::score;
    use portolan::simulate::{Scenario, simulate};

    #[test]
    fn two_of_them_are_the_scores_own() {
        let grid = Grid::new(20, 24, 1.0).unwrap();
        let map = |seed| simulate(&Scenario { bands: 6, seed, ..Scenario::new(grid) }).unwrap();
        let (a, b) = (map(1), map(2));
        let score = score(&a, &b, None).unwrap();
        let found = Convention::ALL.map(|c| c.ssim(&a, &b).unwrap());
        assert!((found[0] - score.ssim.unwrap()).abs() < 1e-12);
        assert!((found[2] - score.ssim_strict.unwrap()).abs() < 1e-12);
        // No two conventions are the same.
        for (i, x) in found.iter().enumerate() {
            assert!(found[..i].iter().all(|y| (x - y).abs() > 1e-6), "{found:?}");
        }
    }
}
