//! The area above a level, with several certainties.
//!
//! A level in dB with a spread is taken as normal: the chance that the field lies above a threshold
//! is Phi((level - threshold) / spread). The best server of a cell is the band with the greatest
//! chance there, and what is certain of it is the chance of that one band. Its expected share is that of
//! any band: errors of the bands count as independent.

use libm::erfc;
use ndarray::ArrayView3;

/// Certainties that [`Coverage`] counts.
pub const CERTAINTIES: [f64; 3] = [0.5, 0.9, 0.99];

/// The chance that a normal level lies above a threshold; certain where there is no spread.
///
/// ```
/// use portolan::coverage::chance_above;
/// assert_eq!(chance_above(-70.0, 3.0, -70.0), 0.5);
/// assert!((chance_above(-64.0, 3.0, -70.0) - 0.977).abs() < 1e-3);
/// assert_eq!(chance_above(-71.0, 0.0, -70.0), 0.0);
/// assert!(chance_above(f64::NAN, 3.0, -70.0).is_nan());
/// ```
pub fn chance_above(level_db: f64, spread_db: f64, threshold_db: f64) -> f64 {
    if level_db.is_nan() || spread_db.is_nan() {
        return f64::NAN;
    }
    let above = level_db - threshold_db;
    if spread_db <= 0.0 {
        return if above >= 0.0 { 1.0 } else { 0.0 };
    }
    0.5 * erfc(-above / (spread_db * std::f64::consts::SQRT_2))
}

/// Cells of an area above a level: known ones, and those with each of the [`CERTAINTIES`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Covered {
    /// Cells of which something is known.
    pub known: u64,
    /// Cells above the level with at least each certainty.
    pub above: [u64; CERTAINTIES.len()],
    /// The sum of the chances of all known cells.
    pub chances: f64,
}

impl Covered {
    fn count(&mut self, chance: f64, expected: f64) {
        if chance.is_nan() {
            return;
        }
        self.known += 1;
        self.chances += expected;
        for (count, certainty) in self.above.iter_mut().zip(CERTAINTIES) {
            *count += u64::from(chance >= certainty);
        }
    }

    /// The expected share of the known cells that is above the level: without the bias that a count at
    /// one certainty has. NaN where none is known.
    pub fn expected_share(&self) -> f64 {
        self.chances / self.known as f64
    }

    /// Shares of the known cells; NaN where none is known.
    pub fn shares(&self) -> [f64; CERTAINTIES.len()] {
        self.above.map(|count| count as f64 / self.known as f64)
    }
}

/// Coverage of an area, counted part by part.
///
/// ```
/// use ndarray::array;
/// use portolan::coverage::Coverage;
/// let mut found = Coverage::new(2, -70.0);
/// let level = array![[[-60.0, -80.0]], [[-90.0, -69.0]], [[f64::NAN, f64::NAN]]];
/// let spread = ndarray::Array3::from_elem((3, 1, 2), 4.0);
/// let best = found.add(level.view(), Some(spread.view()));
/// assert_eq!(found.bands[0].above, [1, 1, 1]);
/// assert_eq!(found.bands[1].above, [1, 0, 0]);
/// assert_eq!((found.best.above, found.best.known, found.cells), ([2, 1, 1], 2, 3));
/// assert!(best[0] > 0.99 && best[2].is_nan());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Coverage {
    threshold_db: f64,
    /// Each band on its own.
    pub bands: Vec<Covered>,
    /// The band with the greatest chance of every cell.
    pub best: Covered,
    /// All cells so far, unknown ones too.
    pub cells: u64,
    /// Whether all parts had a spread: without one a cell is above the level or not.
    pub spread: bool,
}

impl Coverage {
    /// Nothing counted yet.
    pub fn new(bands: usize, threshold_db: f64) -> Self {
        let bands = vec![Covered::default(); bands];
        Self { threshold_db, bands, best: Covered::default(), cells: 0, spread: true }
    }

    /// Counts the cells of a part (rows x columns x bands, in dB) and returns the greatest chance
    /// of every cell, row by row; NaN where no band is known.
    pub fn add(
        &mut self,
        level_db: ArrayView3<'_, f64>,
        spread_db: Option<ArrayView3<'_, f64>>,
    ) -> Vec<f64> {
        let (rows, cols, bands) = level_db.dim();
        self.spread &= spread_db.is_some();
        let mut best = Vec::with_capacity(rows * cols);
        for row in 0..rows {
            for col in 0..cols {
                let (mut most, mut none) = (f64::NAN, 1.0);
                for band in 0..bands {
                    let spread = spread_db.map_or(0.0, |spread| spread[[row, col, band]]);
                    let chance =
                        chance_above(level_db[[row, col, band]], spread, self.threshold_db);
                    self.bands[band].count(chance, chance);
                    // The maximum of a number and NaN is the number.
                    most = most.max(chance);
                    none *= 1.0 - if chance.is_nan() { 0.0 } else { chance };
                }
                self.best.count(most, 1.0 - none);
                self.cells += 1;
                best.push(most);
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array3, s};

    #[test]
    fn parts_add_up_to_the_whole() {
        let level = Array3::from_shape_fn((7, 5, 3), |(i, j, k)| {
            if (i, j) == (3, 2) { f64::NAN } else { -90.0 + 4.0 * i as f64 + j as f64 - k as f64 }
        });
        let spread = level.mapv(|_| 3.0);
        let mut whole = Coverage::new(3, -75.0);
        let best = whole.add(level.view(), Some(spread.view()));
        let mut parts = Coverage::new(3, -75.0);
        let mut joined = Vec::new();
        for rows in [0..2, 2..3, 3..7] {
            let part = s![rows, .., ..];
            joined.extend(parts.add(level.slice(part), Some(spread.slice(part))));
        }
        assert!((whole.best.chances - parts.best.chances).abs() < 1e-9);
        assert_eq!(
            (whole.best.above, &whole.bands[1].above),
            (parts.best.above, &parts.bands[1].above)
        );
        assert_eq!((whole.cells, whole.best.known, best[3 * 5 + 2].is_nan()), (35, 34, true));
        assert!(best.iter().zip(&joined).all(|(a, b)| a == b || a.is_nan() && b.is_nan()));
        let [half, ninety, most] = whole.best.shares();
        assert!(half > ninety && ninety > most && half < 1.0);
    }

    #[test]
    fn a_level_is_above_with_half_the_chance_where_it_equals_it() {
        let mut found = Coverage::new(1, -70.0);
        found.add(Array3::from_elem((1, 1, 1), -70.0).view(), None);
        assert!(!found.spread);
        assert_eq!(found.best.above, [1, 1, 1]);
        let mut found = Coverage::new(1, -70.0);
        let spread = Array3::from_elem((1, 1, 1), 5.0);
        found.add(Array3::from_elem((1, 1, 1), -70.0).view(), Some(spread.view()));
        assert_eq!(found.best.above, [1, 0, 0]);
        assert_eq!(found.best.expected_share(), 0.5);
        // Either of two bands.
        let mut found = Coverage::new(2, -70.0);
        let (level, spread) =
            (Array3::from_elem((1, 1, 2), -70.0), Array3::from_elem((1, 1, 2), 5.0));
        found.add(level.view(), Some(spread.view()));
        assert_eq!((found.best.expected_share(), found.bands[0].expected_share()), (0.75, 0.5));
        assert!(Coverage::new(1, 0.0).best.shares()[0].is_nan());
    }
}
