//! Block-term decomposition: every SLF is a non-negative matrix of low rank, S_r = A_r B_r^T, and
//! the map is sum_r (A_r B_r^T) o c_r (Zhang, Fu, Wang, Zhao and Hong 2020, "Spectrum cartography
//! via coupled block-term tensor decomposition"). Only the sensors' cells enter, and, with a small
//! weight, the cells of SLFs interpolated beforehand. Squared error in power is fitted by
//! alternating non-negative least squares as published; levels and ln(x + a) by Adam.

mod alternating;
mod gradient;

use ndarray::{Array2, Array3, ArrayView2, ArrayView3, Axis};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::hals::Hals;
use crate::error::{EstimateError, InputError};
use crate::grid::{Cell, Grid};
use crate::likelihood::Probit;
use crate::link::Link;
use crate::progress::Progress;
use crate::site::Site;

/// What the sensors report, sensors x bands.
#[derive(Clone, Copy, Debug)]
pub enum Observed<'a> {
    /// Power, fitted by squared error in power as published; NaN = gap.
    Power(ArrayView2<'a, f64>),
    /// Levels of ln(x + a), fitted by their probit likelihood; 255 = gap.
    Levels {
        /// Sensors x bands.
        levels: ArrayView2<'a, u8>,
        /// Edges and noise that the levels come from.
        probit: &'a Probit,
        /// The a of ln(x + a).
        link: Link,
    },
}

impl Observed<'_> {
    fn dim(&self) -> (usize, usize) {
        match self {
            Observed::Power(power) => power.dim(),
            Observed::Levels { levels, .. } => levels.dim(),
        }
    }
}

/// Readings at cells of a grid, and SLFs (emitters x rows x columns) as regularisation without
/// sensors.
#[derive(Clone, Copy, Debug)]
pub struct BtdProblem<'a> {
    /// Where the SLFs live.
    pub grid: Grid,
    /// The cell of every sensor.
    pub cells: &'a [Cell],
    /// What the sensors report, in the order of `cells`.
    pub observed: Observed<'a>,
    /// SLFs as regularisation; none: the sensors alone decide.
    pub prior_slf: Option<ArrayView3<'a, f64>>,
}

/// How to fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BtdOptions {
    /// Rank L of an SLF (the paper's 10); at most the shorter side of the grid is used.
    pub rank: usize,
    /// The most iterations.
    pub iterations: usize,
    /// Stops once the loss changes by less than this share of it.
    pub tolerance: f64,
    /// Tikhonov weight on A, B and C, relative to the mean curvature of the data term.
    pub ridge: f64,
    /// Weight of a prior cell relative to a sensor's.
    pub prior_weight: f64,
    /// Step of Adam in ln A, ln B and ln C.
    pub learning_rate: f64,
}

impl Default for BtdOptions {
    fn default() -> Self {
        Self {
            rank: 10,
            iterations: 200,
            tolerance: 1e-5,
            ridge: 1e-4,
            prior_weight: 1e-2,
            learning_rate: 0.05,
        }
    }
}

/// Where the fit begins.
#[derive(Clone, Copy, Debug)]
pub enum Start<'a> {
    /// Random factors.
    Random {
        /// Number of emitters.
        emitters: usize,
        /// Seed of the random factors.
        seed: u64,
    },
    /// SLFs (emitters x rows x columns) and PSDs (emitters x bands), say unmixed and interpolated.
    Factors {
        /// SLFs, emitters x rows x columns.
        slf: ArrayView3<'a, f64>,
        /// PSDs, emitters x bands.
        psd: ArrayView2<'a, f64>,
        /// Seed of what splits the SLFs into factors.
        seed: u64,
    },
}

/// A fitted decomposition.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct BtdFit {
    /// Emitters x rows x rank.
    pub a: Array3<f64>,
    /// Emitters x columns x rank.
    pub b: Array3<f64>,
    /// Emitters x bands.
    pub c: Array2<f64>,
    /// Loss before every iteration and after the last.
    pub loss_trace: Vec<f64>,
}

impl BtdFit {
    /// The SLFs, emitters x rows x columns.
    pub fn slf(&self) -> Array3<f64> {
        let (emitters, rows, _) = self.a.dim();
        let mut slf = Array3::zeros((emitters, rows, self.b.dim().1));
        for ((a, b), mut s) in
            self.a.outer_iter().zip(self.b.outer_iter()).zip(slf.axis_iter_mut(Axis(0)))
        {
            s.assign(&a.dot(&b.t()));
        }
        slf
    }
}

/// Factors in flat form, emitter after emitter.
struct Factors {
    emitters: usize,
    rank: usize,
    rows: usize,
    cols: usize,
    bands: usize,
    a: Vec<f64>,
    b: Vec<f64>,
    c: Vec<f64>,
}

impl Factors {
    fn a_row(&self, emitter: usize, row: usize) -> &[f64] {
        &self.a[(emitter * self.rows + row) * self.rank..][..self.rank]
    }

    fn b_row(&self, emitter: usize, col: usize) -> &[f64] {
        &self.b[(emitter * self.cols + col) * self.rank..][..self.rank]
    }

    fn slf(&self, emitter: usize, cell: Cell) -> f64 {
        super::small::dot(self.a_row(emitter, cell.row), self.b_row(emitter, cell.col))
    }

    fn finish(self, power_unit: f64, loss_trace: Vec<f64>) -> Result<BtdFit, EstimateError> {
        let Self { emitters, rank, rows, cols, bands, a, b, c } = self;
        if a.iter().chain(&b).chain(&c).any(|v| !v.is_finite()) {
            let message = "the block-term fit diverged: lower the learning rate or the rank";
            return Err(EstimateError::Numerical(message.into()));
        }
        let shape = |error: ndarray::ShapeError| EstimateError::Numerical(error.to_string());
        let c: Vec<f64> = c.into_iter().map(|v| v * power_unit).collect();
        Ok(BtdFit {
            a: Array3::from_shape_vec((emitters, rows, rank), a).map_err(shape)?,
            b: Array3::from_shape_vec((emitters, cols, rank), b).map_err(shape)?,
            c: Array2::from_shape_vec((emitters, bands), c).map_err(shape)?,
            loss_trace,
        })
    }
}

/// Fits a block-term decomposition. The same start gives the same answer, bit for bit.
pub fn fit(
    problem: &BtdProblem<'_>,
    options: &BtdOptions,
    start: &Start<'_>,
    progress: &Progress<'_>,
) -> Result<BtdFit, EstimateError> {
    check(problem, options, start)?;
    let flat = |power: ArrayView2<'_, f64>| power.iter().copied().collect::<Vec<f64>>();
    match problem.observed {
        Observed::Power(power) => {
            let power = flat(power);
            let peak = power.iter().copied().filter(|v| !v.is_nan()).fold(0.0, f64::max);
            let unit = if peak > 0.0 { peak } else { 1.0 };
            let scaled: Vec<f64> = power.iter().map(|v| v / unit).collect();
            let factors = first_factors(problem, options, start, unit);
            alternating::fit(problem, options, factors, &scaled, unit, progress)
        }
        Observed::Levels { levels, probit, link } => {
            let targets: Vec<u8> = levels.iter().copied().collect();
            let unit = probit.upper_power(link);
            let factors = first_factors(problem, options, start, unit);
            gradient::fit(problem, options, factors, &targets, probit, (link, unit), progress)
        }
    }
}

fn check(
    problem: &BtdProblem<'_>,
    options: &BtdOptions,
    start: &Start<'_>,
) -> Result<(), InputError> {
    let (sensors, bands) = problem.observed.dim();
    let (rows, cols) = (problem.grid.rows(), problem.grid.cols());
    let shape = |what, found: &[usize], expected: Vec<usize>| {
        if found == expected.as_slice() {
            return Ok(());
        }
        Err(InputError::Shape { what, found: found.to_vec(), expected })
    };
    if bands == 0 {
        return Err(InputError::NoBands);
    }
    shape("readings", &[sensors, bands], vec![problem.cells.len(), bands])?;
    let off = problem.cells.iter().position(|&cell| !problem.grid.contains(cell));
    if let Some(sensor) = off {
        let Site { x_m, y_m, .. } = problem.grid.site(problem.cells[sensor]);
        return Err(InputError::OffGrid { sensor, x_m, y_m, rows, cols });
    }
    let emitters = match start {
        Start::Random { emitters, .. } => *emitters,
        Start::Factors { slf, psd, .. } => {
            shape("start SLFs", slf.shape(), vec![psd.nrows(), rows, cols])?;
            shape("start PSDs", psd.shape(), vec![psd.nrows(), bands])?;
            psd.nrows()
        }
    };
    if emitters == 0 || options.rank == 0 {
        let message = "a block-term fit needs at least 1 emitter and rank 1";
        return Err(InputError::Request(message.into()));
    }
    if let Some(prior) = problem.prior_slf {
        shape("prior SLFs", prior.shape(), vec![emitters, rows, cols])?;
    }
    for (name, value) in [
        ("ridge", options.ridge),
        ("prior weight", options.prior_weight),
        ("learning rate", options.learning_rate),
    ] {
        if !(value.is_finite() && value >= 0.0) {
            let message = format!("a {name} of {value} cannot be used: give 0 or more");
            return Err(InputError::Request(message));
        }
    }
    Ok(())
}

/// Start in units of `unit` of power: SLFs given are factored, others are drawn at random.
fn first_factors(
    problem: &BtdProblem<'_>,
    options: &BtdOptions,
    start: &Start<'_>,
    unit: f64,
) -> Factors {
    let (rows, cols) = (problem.grid.rows(), problem.grid.cols());
    let bands = problem.observed.dim().1;
    let rank = options.rank.min(rows).min(cols);
    let (emitters, seed) = match start {
        Start::Random { emitters, seed } => (*emitters, *seed),
        Start::Factors { psd, seed, .. } => (psd.nrows(), *seed),
    };
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut draw = |n: usize| (0..n).map(|_| rng.random_range(0.1..1.0)).collect::<Vec<f64>>();
    let (mut a, mut b) = (draw(emitters * rows * rank), draw(emitters * cols * rank));
    let mut c = draw(emitters * bands);
    let fill = 1.0 / rank as f64;
    a.iter_mut().for_each(|v| *v *= fill);
    if let Start::Factors { slf, psd, .. } = start {
        // NaN and negative values of a start are no reason to fail: they count as zero.
        let clean = |v: f64| if v > 0.0 && v.is_finite() { v } else { 0.0 };
        for (v, &given) in c.iter_mut().zip(psd.iter()) {
            *v = clean(given) / unit;
        }
        for (r, field) in slf.outer_iter().enumerate() {
            let level = field.iter().copied().map(clean).fold(0.0, f64::max);
            let level = if level > 0.0 { level } else { 1.0 };
            let mut hals = Hals {
                rank,
                sensors: rows,
                bands: cols,
                data: field.iter().map(|v| clean(*v) / level).collect(),
                gaps: Vec::new(),
                slf: transpose(&a[r * rows * rank..][..rows * rank], rank),
                psd: transpose(&b[r * cols * rank..][..cols * rank], rank),
            };
            hals.run(100, 1e-4);
            a[r * rows * rank..][..rows * rank].copy_from_slice(&transpose(&hals.slf, rows));
            b[r * cols * rank..][..cols * rank].copy_from_slice(&transpose(&hals.psd, cols));
            c[r * bands..][..bands].iter_mut().for_each(|v| *v *= level);
        }
    }
    Factors { emitters, rank, rows, cols, bands, a, b, c }
}

/// Rows of `length` to columns.
fn transpose(values: &[f64], length: usize) -> Vec<f64> {
    let rows = values.len() / length;
    (0..values.len()).map(|i| values[(i % rows) * length + i / rows]).collect()
}

#[cfg(test)]
mod tests;
