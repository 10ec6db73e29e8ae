//! Gaussian fields with covariance exp(-d / decorrelation), drawn exactly by circulant embedding.
//!
//! The covariance is laid on a torus whose Fourier transform gives its eigenvalues (Dietrich and
//! Newsam 1997). On a torus barely larger than the grid some of them are negative when shadowing
//! reaches far, so beyond the grid's diagonal D the covariance is cut off by a parabola that meets
//! it in value and slope and ends at zero (Gneiting et al. 2006, "Fast and exact simulation of
//! large Gaussian lattice systems in R2"). The parabola, and with it the torus, shrinks a lot when
//! a constant c < exp(-D / decorrelation) is first taken off the covariance; a random level of
//! variance c, added to the whole field, gives it back. Nothing of this changes the covariance
//! between any two cells of the grid, and the eigenvalues are checked.

use ndarray::Array2;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;
use rustfft::algorithm::butterflies::{Butterfly3, Butterfly5};
use rustfft::algorithm::{MixedRadix, Radix4};
use rustfft::num_complex::Complex64;
use rustfft::{Fft, FftDirection};
use std::sync::Arc;

use crate::error::InputError;
use crate::grid::Grid;

/// The most cells a torus may have (0.5 GB while its eigenvalues are computed).
const MAX_TORUS: usize = 1 << 25;

/// How much of the covariance at the diagonal is left to the parabola, in the order tried.
const SHARES: [f64; 5] = [0.1, 0.2, 0.4, 0.7, 1.0];

/// A sampler of unit-variance fields on one grid.
pub struct Shadowing {
    grid: Grid,
    /// Square roots of the eigenvalues over torus size, torus rows x torus columns.
    amplitude: Array2<f64>,
    /// Standard deviation of the level common to all cells.
    level: f64,
    along_row: Arc<dyn Fft<f64>>,
    along_col: Arc<dyn Fft<f64>>,
}

impl Shadowing {
    /// For fields with covariance exp(-d / `decorrelation_m`) on `grid`.
    ///
    /// # Errors
    /// If the decorrelation distance is too long for the grid.
    pub fn new(grid: Grid, decorrelation_m: f64) -> Result<Self, InputError> {
        let reach = decorrelation_m / grid.cell_m();
        let (rows, cols) = (grid.rows(), grid.cols());
        let short = rows.min(cols) as f64 > 4.0 * reach;
        let plain = short.then(|| Torus::plain(rows, cols, reach));
        let cut = SHARES.iter().map(|&share| Torus::cut_off(rows, cols, reach, share));
        for torus in plain.into_iter().chain(cut) {
            if torus.rows.checked_mul(torus.cols).is_none_or(|cells| cells > MAX_TORUS) {
                break;
            }
            if let Some(shadowing) = Self::embed(grid, &torus) {
                return Ok(shadowing);
            }
        }
        Err(InputError::Request(format!(
            "shadowing with a decorrelation of {decorrelation_m} m reaches too far for a grid of \
             {rows} x {cols} cells of {} m: choose a shorter decorrelation or larger cells",
            grid.cell_m()
        )))
    }

    fn embed(grid: Grid, torus: &Torus) -> Option<Self> {
        let along_row = fft(torus.cols);
        let along_col = fft(torus.rows);
        let eigenvalues = torus.eigenvalues(&*along_row, &*along_col);
        let most = eigenvalues.iter().copied().fold(0.0, f64::max);
        // Rounding leaves eigenvalues of about -1e-16 of the largest; anything beyond is real.
        if eigenvalues.iter().any(|&v| v < -1e-12 * most) {
            return None;
        }
        let cells = (torus.rows * torus.cols) as f64;
        let amplitude = eigenvalues.mapv_into(|v| (v.max(0.0) / cells).sqrt());
        Some(Self { grid, amplitude, level: torus.constant.sqrt(), along_row, along_col })
    }

    /// Two independent fields: the real and the imaginary part of one complex draw.
    pub fn draw_pair(&self, rng: &mut ChaCha8Rng) -> [Array2<f64>; 2] {
        let (torus_rows, torus_cols) = self.amplitude.dim();
        let (rows, cols) = (self.grid.rows(), self.grid.cols());
        let mut scratch = vec![Complex64::default(); self.along_row.get_inplace_scratch_len()];
        let mut line = vec![Complex64::default(); torus_cols];
        // Only the grid's own columns survive the first pass: transposed, ready for the second.
        let mut kept = vec![Complex64::default(); cols * torus_rows];
        for (i, amplitude) in self.amplitude.outer_iter().enumerate() {
            for (value, amplitude) in line.iter_mut().zip(amplitude) {
                let (re, im): (f64, f64) = (StandardNormal.sample(rng), StandardNormal.sample(rng));
                *value = Complex64::new(re, im) * amplitude;
            }
            self.along_row.process_with_scratch(&mut line, &mut scratch);
            for (j, value) in line[..cols].iter().enumerate() {
                kept[j * torus_rows + i] = *value;
            }
        }
        scratch.resize(self.along_col.get_inplace_scratch_len(), Complex64::default());
        self.along_col.process_with_scratch(&mut kept, &mut scratch);
        let mut level =
            || -> f64 { self.level * Distribution::<f64>::sample(&StandardNormal, rng) };
        let levels = [level(), level()];
        let part = |pick: fn(Complex64) -> f64, level: f64| {
            Array2::from_shape_fn((rows, cols), |(i, j)| level + pick(kept[j * torus_rows + i]))
        };
        [part(|z| z.re, levels[0]), part(|z| z.im, levels[1])]
    }
}

/// A covariance on a torus: exp(-h / reach) - constant up to `exact`, then a parabola to `zero`.
/// Lengths in cells.
struct Torus {
    rows: usize,
    cols: usize,
    reach: f64,
    constant: f64,
    exact: f64,
    zero: f64,
}

impl Torus {
    fn plain(rows: usize, cols: usize, reach: f64) -> Self {
        let (rows, cols) = (fft_size(2 * rows), fft_size(2 * cols));
        Self { rows, cols, reach, constant: 0.0, exact: f64::INFINITY, zero: f64::INFINITY }
    }

    fn cut_off(rows: usize, cols: usize, reach: f64, share: f64) -> Self {
        let diagonal = ((rows - 1) as f64).hypot((cols - 1) as f64).max(1.0);
        let zero = diagonal + 2.0 * share * reach;
        let side = if zero < 1e9 { fft_size((2.0 * zero).ceil() as usize) } else { usize::MAX };
        let constant = (1.0 - share) * (-diagonal / reach).exp();
        Self { rows: side, cols: side, reach, constant, exact: diagonal, zero }
    }

    fn covariance(&self, h: f64) -> f64 {
        if h <= self.exact {
            (-h / self.reach).exp() - self.constant
        } else if h < self.zero {
            let edge = (-self.exact / self.reach).exp() - self.constant;
            edge * ((self.zero - h) / (self.zero - self.exact)).powi(2)
        } else {
            0.0
        }
    }

    fn eigenvalues(&self, along_row: &dyn Fft<f64>, along_col: &dyn Fft<f64>) -> Array2<f64> {
        let (rows, cols) = (self.rows, self.cols);
        let wrapped = |i: usize, n: usize| i.min(n - i) as f64;
        // The covariance is even along both axes, so half of the rows carries all of it.
        let half = rows / 2 + 1;
        let mut grid = vec![Complex64::default(); half * cols];
        grid.par_chunks_mut(cols).enumerate().for_each(|(i, line)| {
            for j in 0..=cols / 2 {
                let c = self.covariance((i as f64).hypot(wrapped(j, cols)));
                line[j].re = c;
                line[(cols - j) % cols].re = c;
            }
            along_row.process(line);
        });
        // Columns j and cols - j are alike as well; each column is unfolded, transformed, folded.
        let columns: Vec<Vec<f64>> = (0..=cols / 2)
            .into_par_iter()
            .map(|j| {
                let mut column: Vec<Complex64> = (0..rows)
                    .map(|i| Complex64::new(grid[i.min(rows - i) * cols + j].re, 0.0))
                    .collect();
                along_col.process(&mut column);
                column.iter().map(|v| v.re).collect()
            })
            .collect();
        Array2::from_shape_fn((rows, cols), |(i, j)| columns[j.min(cols - j)][i])
    }
}

/// The transform of a length that [`fft_size`] gives. The library's own planner knows every length,
/// and compiling all it might choose takes a quarter of this crate's build.
fn fft(len: usize) -> Arc<dyn Fft<f64>> {
    let forward = FftDirection::Forward;
    let twos = len.trailing_zeros();
    let mut rest = len >> twos;
    let mut plan: Arc<dyn Fft<f64>> = Arc::new(Radix4::new(1 << twos, forward));
    while rest > 1 {
        let factor: Arc<dyn Fft<f64>> = match rest.is_multiple_of(3) {
            true => Arc::new(Butterfly3::new(forward)),
            false => Arc::new(Butterfly5::new(forward)),
        };
        rest /= factor.len();
        plan = Arc::new(MixedRadix::new(factor, plan));
    }
    plan
}

/// The smallest even number of the form 2^a 3^b 5^c that is at least `least`.
fn fft_size(least: usize) -> usize {
    (least.max(2)..)
        .find(|&n| {
            let mut rest = n;
            for p in [2, 3, 5] {
                while rest.is_multiple_of(p) {
                    rest /= p;
                }
            }
            rest == 1 && n.is_multiple_of(2)
        })
        .expect("there is always a larger power of two")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::stream;

    /// Empirical covariance at several lags of many draws against exp(-d / decorrelation). The
    /// mean is known to be zero; the bound is five standard errors of a product of normals.
    fn check_covariance(rows: usize, cols: usize, cell_m: f64, decorrelation_m: f64) {
        let grid = Grid::new(rows, cols, cell_m).unwrap();
        let shadowing = Shadowing::new(grid, decorrelation_m).unwrap();
        let draws = 2000;
        let far = (rows - 1, cols - 1);
        let pairs = [
            ((0, 0), (0, 0)),
            (far, far),
            ((0, 0), (0, 1)),
            ((0, 0), (rows / 2, cols / 3)),
            ((1, 2), (rows - 1, 0)),
            ((0, 0), far),
            ((rows - 1, 0), (0, cols - 1)),
        ];
        let mut sums = [0.0; 7];
        for draw in 0..draws / 2 {
            for field in shadowing.draw_pair(&mut stream(99, draw)) {
                for (sum, (a, b)) in sums.iter_mut().zip(pairs) {
                    *sum += field[a] * field[b];
                }
            }
        }
        for (sum, (a, b)) in sums.iter().zip(pairs) {
            let d = cell_m * (a.0 as f64 - b.0 as f64).hypot(a.1 as f64 - b.1 as f64);
            let expected = (-d / decorrelation_m).exp();
            let error = sum / draws as f64 - expected;
            let bound = 5.0 * ((1.0 + expected * expected) / draws as f64).sqrt();
            assert!(error.abs() < bound, "{rows}x{cols} {decorrelation_m}: {error} at {d} m");
        }
    }

    #[test]
    fn covariance_is_exact_for_short_and_long_memory() {
        check_covariance(16, 16, 1.0, 2.0);
        check_covariance(16, 16, 1.0, 90.0);
        check_covariance(20, 9, 2.5, 30.0);
        check_covariance(2, 40, 1.0, 500.0);
    }

    #[test]
    fn transforms_are_the_definition() {
        for len in [2, 6, 10, 16, 90, 150].map(fft_size) {
            let at = |k: usize| Complex64::new((3 * k % 7) as f64, (5 * k % 11) as f64 - 4.0);
            let mut fast: Vec<Complex64> = (0..len).map(at).collect();
            fft(len).process(&mut fast);
            for (k, found) in fast.iter().enumerate() {
                let turn = |n: usize| -std::f64::consts::TAU * (n * k % len) as f64 / len as f64;
                let want: Complex64 =
                    (0..len).map(|n| at(n) * Complex64::from_polar(1.0, turn(n))).sum();
                assert!((found - want).norm() < 1e-10, "{len}: {found} {want}");
            }
        }
    }

    #[test]
    fn the_two_fields_of_a_pair_are_independent() {
        let shadowing = Shadowing::new(Grid::new(8, 8, 1.0).unwrap(), 90.0).unwrap();
        let draws = 4000;
        let product: f64 = (0..draws)
            .map(|draw| {
                let [a, b] = shadowing.draw_pair(&mut stream(5, draw));
                a[[3, 3]] * b[[3, 3]]
            })
            .sum();
        assert!((product / draws as f64).abs() < 5.0 / (draws as f64).sqrt());
    }

    #[test]
    fn memory_far_beyond_the_grid_is_refused() {
        assert!(Shadowing::new(Grid::new(64, 64, 1.0).unwrap(), 1e9).is_err());
        assert!(Shadowing::new(Grid::new(1, 1, 1.0).unwrap(), 5.0).is_ok());
    }
}
