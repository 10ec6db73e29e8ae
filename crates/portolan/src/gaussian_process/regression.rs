//! Kriging of many bands at once: one factorisation, one set of weights per cell, all bands.

use faer::{Mat, MatRef};

use super::{Covariance, Family, Trend};
use crate::error::EstimateError;
use crate::grid::{Cell, Grid};
use crate::linalg::{Cholesky, add_product, product};

/// What the nugget is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NuggetRole {
    /// Noise of the sensors: the map is smoothed at sensor cells, the spread is the field's own.
    Noise,
    /// Part of the field: sensor cells reproduce their readings, the spread includes the nugget.
    Field,
}

/// Correlation at every offset of a grid, so that no exponential is taken twice.
pub(crate) struct CorrelationTable {
    cols: usize,
    values: Vec<f64>,
}

impl CorrelationTable {
    pub fn new(grid: Grid, family: Family, decorrelation_m: f64) -> Self {
        let scale = grid.cell_m() / decorrelation_m;
        let values = (0..grid.cells())
            .map(|index| {
                let Cell { row, col } = grid.cell(index);
                family.correlation(scale * ((row * row + col * col) as f64).sqrt())
            })
            .collect();
        Self { cols: grid.cols(), values }
    }

    pub fn between(&self, a: Cell, b: Cell) -> f64 {
        self.values[a.row.abs_diff(b.row) * self.cols + a.col.abs_diff(b.col)]
    }

    /// Correlation matrix of some cells, `ratio` added on the diagonal; lower half only.
    pub fn matrix(&self, cells: &[Cell], ratio: f64) -> Mat<f64> {
        let n = cells.len();
        let mut matrix = Mat::zeros(n, n);
        for j in 0..n {
            matrix[(j, j)] = self.values[0] + ratio;
            for i in j + 1..n {
                matrix[(i, j)] = self.between(cells[i], cells[j]);
            }
        }
        matrix
    }
}

/// Trend basis at some cells, one row a cell; coordinates scaled by the grid's longer side.
pub(crate) fn trend_matrix(grid: Grid, trend: Trend, cells: &[Cell]) -> Mat<f64> {
    let scale = 2.0 / grid.rows().max(grid.cols()) as f64;
    let mut matrix = Mat::zeros(cells.len(), trend.terms());
    for (i, cell) in cells.iter().enumerate() {
        let u = scale * (cell.row as f64 - 0.5 * (grid.rows() - 1) as f64);
        let v = scale * (cell.col as f64 - 0.5 * (grid.cols() - 1) as f64);
        let basis = trend.basis(u, v);
        for j in 0..trend.terms() {
            matrix[(i, j)] = basis[j];
        }
    }
    matrix
}

/// A fitted process, ready to predict. Works in units of the sill: predictions do not depend on it.
pub(crate) struct Regression<'a> {
    grid: Grid,
    cells: Vec<Cell>,
    table: &'a CorrelationTable,
    trend: Trend,
    ratio: f64,
    role: NuggetRole,
    cholesky: Cholesky,
    /// L^-1 F.
    half_trend: Mat<f64>,
    /// Of F^T K^-1 F.
    gram: Cholesky,
    /// K^-1 (Y - F beta), sensors x bands.
    weights: Mat<f64>,
    /// Trend terms x bands.
    beta: Mat<f64>,
}

/// Prediction at some cells: mean (cells x bands) and variance in units of the sill.
pub(crate) struct Prediction {
    pub mean: Mat<f64>,
    pub variance: Vec<f64>,
}

impl<'a> Regression<'a> {
    /// `values` are sensors x bands; the table must belong to the covariance's family and distance.
    pub fn new(
        grid: Grid,
        cells: Vec<Cell>,
        values: MatRef<'_, f64>,
        table: &'a CorrelationTable,
        covariance: &Covariance,
        trend: Trend,
        role: NuggetRole,
    ) -> Result<Self, EstimateError> {
        let ratio = covariance.nugget / covariance.sill.max(f64::MIN_POSITIVE);
        let trend = affordable(trend, &cells);
        let f = trend_matrix(grid, trend, &cells);
        // Smooth families on close sensors need a little more on the diagonal to be factorised.
        let attempts = [0.0, 1e-10, 1e-8, 1e-6, 1e-4];
        let cholesky = attempts
            .iter()
            .find_map(|jitter| Cholesky::new(table.matrix(&cells, ratio + jitter).as_ref()))
            .ok_or_else(|| {
                EstimateError::Numerical(format!(
                    "the covariance of {} sensors is not positive definite: choose a shorter \
                     decorrelation or a larger nugget",
                    cells.len()
                ))
            })?;
        let mut half_trend = f.clone();
        cholesky.half_solve(half_trend.as_mut());
        let mut half_values = values.to_owned();
        cholesky.half_solve(half_values.as_mut());
        let gram = Cholesky::new(product(half_trend.transpose(), half_trend.as_ref()).as_ref())
            .ok_or_else(|| {
                EstimateError::Numerical(
                    "the sensors cannot carry the trend (all on a line?): use trend=constant"
                        .into(),
                )
            })?;
        let mut beta = product(half_trend.transpose(), half_values.as_ref());
        gram.half_solve(beta.as_mut());
        gram.other_half_solve(beta.as_mut());
        add_product(half_values.as_mut(), half_trend.as_ref(), beta.as_ref(), -1.0);
        cholesky.other_half_solve(half_values.as_mut());
        Ok(Self {
            grid,
            cells,
            table,
            trend,
            ratio,
            role,
            cholesky,
            half_trend,
            gram,
            weights: half_values,
            beta,
        })
    }

    pub fn predict(&self, at: &[Cell]) -> Prediction {
        let (n, m) = (self.cells.len(), at.len());
        let mut cross = Mat::zeros(n, m);
        for (j, &cell) in at.iter().enumerate() {
            let column = cross.col_mut(j).try_as_col_major_mut().expect("dense").as_slice_mut();
            for (value, &sensor) in column.iter_mut().zip(&self.cells) {
                *value = self.table.between(sensor, cell);
                if self.role == NuggetRole::Field && sensor == cell {
                    *value += self.ratio;
                }
            }
        }
        let basis = trend_matrix(self.grid, self.trend, at);
        let mut mean = product(cross.transpose(), self.weights.as_ref());
        add_product(mean.as_mut(), basis.as_ref(), self.beta.as_ref(), 1.0);
        self.cholesky.half_solve(cross.as_mut());
        // What the unknown trend adds: f* - F^T K^-1 k*.
        let mut lack = basis.transpose().to_owned();
        add_product(lack.as_mut(), self.half_trend.transpose(), cross.as_ref(), -1.0);
        self.gram.half_solve(lack.as_mut());
        let own =
            self.table.values[0] + if self.role == NuggetRole::Field { self.ratio } else { 0.0 };
        let variance = (0..m)
            .map(|j| {
                let known = cross.col(j).squared_norm_l2();
                (own - known + lack.col(j).squared_norm_l2()).max(0.0)
            })
            .collect();
        Prediction { mean, variance }
    }
}

/// The richest trend, up to the one asked for, that this many sensors can carry.
pub(crate) fn affordable(trend: Trend, cells: &[Cell]) -> Trend {
    [Trend::Quadratic, Trend::Linear, Trend::Constant]
        .into_iter()
        .find(|t| t.terms() <= trend.terms() && t.terms() < cells.len())
        .unwrap_or(Trend::Constant)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::load;

    fn fixture_cells(at: &[f64]) -> Vec<Cell> {
        at.chunks(2).map(|p| Cell::new(p[0] as usize, p[1] as usize)).collect()
    }

    /// `kriging.npz` was made by PyKrige; it treats the nugget as part of the field.
    #[test]
    fn equal_to_pykrige() {
        let fixture = load("kriging");
        let get = |name: &str| fixture[name].1.clone();
        let grid = Grid::new(64, 64, 1.0).unwrap();
        let cells = fixture_cells(&get("at"));
        let values = get("values");
        let covariance = Covariance {
            family: Family::Exponential,
            decorrelation_m: get("decorrelation")[0],
            sill: get("psill")[0],
            nugget: get("nugget")[0],
        };
        let table = CorrelationTable::new(grid, covariance.family, covariance.decorrelation_m);
        let y = MatRef::from_column_major_slice(&values, values.len(), 1);
        let role = NuggetRole::Field;
        let regression =
            Regression::new(grid, cells, y, &table, &covariance, Trend::Constant, role).unwrap();
        let at: Vec<Cell> = (0..grid.cells()).map(|i| grid.cell(i)).collect();
        let got = regression.predict(&at);
        for (i, (mean, variance)) in get("predicted").iter().zip(get("variance")).enumerate() {
            assert!((got.mean[(i, 0)] - mean).abs() < 1e-6, "{} {mean}", got.mean[(i, 0)]);
            assert!((covariance.sill * got.variance[i] - variance).abs() < 1e-6);
        }
    }

    #[test]
    fn a_quadratic_surface_is_reproduced_by_its_trend() {
        let grid = Grid::new(12, 9, 1.0).unwrap();
        let surface = |c: Cell| 1.0 + 0.5 * c.row as f64 - 0.1 * (c.row * c.col) as f64;
        let cells: Vec<Cell> = (0..grid.cells()).step_by(4).map(|i| grid.cell(i)).collect();
        let values: Vec<f64> = cells.iter().map(|&c| surface(c)).collect();
        let covariance =
            Covariance { family: Family::Matern52, decorrelation_m: 3.0, sill: 1.0, nugget: 0.1 };
        let table = CorrelationTable::new(grid, covariance.family, covariance.decorrelation_m);
        let y = MatRef::from_column_major_slice(&values, values.len(), 1);
        let (trend, role) = (Trend::Quadratic, NuggetRole::Noise);
        let regression = Regression::new(grid, cells, y, &table, &covariance, trend, role).unwrap();
        let at: Vec<Cell> = (0..grid.cells()).map(|i| grid.cell(i)).collect();
        let got = regression.predict(&at);
        for (i, &cell) in at.iter().enumerate() {
            assert!((got.mean[(i, 0)] - surface(cell)).abs() < 1e-8);
        }
    }
}
