//! The little linear algebra that the estimators share, over faer, one thread each: parallelism
//! lives above, across tiles, bands and trials.

use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place, solve_upper_triangular_in_place,
};
use faer::prelude::Solve;
use faer::{Accum, Mat, MatMut, MatRef, Par, Side};

/// A = L L^T.
pub(crate) struct Cholesky {
    lower: Mat<f64>,
}

impl Cholesky {
    /// Of a symmetric matrix given by its lower half; None where it is not positive definite.
    pub fn new(matrix: MatRef<'_, f64>) -> Option<Self> {
        let factor = matrix.llt(Side::Lower).ok()?;
        let lower = factor.L().to_owned();
        let fine = (0..lower.nrows()).all(|i| lower[(i, i)] > 0.0 && lower[(i, i)].is_finite());
        fine.then_some(Self { lower })
    }

    /// L.
    pub fn lower(&self) -> MatRef<'_, f64> {
        self.lower.as_ref()
    }

    /// ln det A.
    pub fn log_det(&self) -> f64 {
        2.0 * (0..self.lower.nrows()).map(|i| self.lower[(i, i)].ln()).sum::<f64>()
    }

    /// L^-1 B in place.
    pub fn half_solve(&self, rhs: MatMut<'_, f64>) {
        solve_lower_triangular_in_place(self.lower.as_ref(), rhs, Par::Seq);
    }

    /// L B in place, for a B of one column.
    #[cfg(test)]
    pub fn times(&self, mut column: MatMut<'_, f64>) {
        let product = product(self.lower.as_ref(), column.as_ref());
        column.copy_from(product);
    }

    /// A^-1.
    pub fn inverse(&self) -> Mat<f64> {
        let n = self.lower.nrows();
        let mut half = Mat::identity(n, n);
        self.half_solve(half.as_mut());
        product(half.transpose(), half.as_ref())
    }

    /// The diagonal of A^-1.
    pub fn inverse_diagonal(&self) -> Vec<f64> {
        let n = self.lower.nrows();
        let mut half = Mat::identity(n, n);
        self.half_solve(half.as_mut());
        (0..n).map(|j| half.col(j).squared_norm_l2()).collect()
    }

    /// L^-T B in place: the other half of A^-1 B.
    pub fn other_half_solve(&self, rhs: MatMut<'_, f64>) {
        solve_upper_triangular_in_place(self.lower.transpose(), rhs, Par::Seq);
    }
}

/// A B.
pub(crate) fn product(a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> Mat<f64> {
    let mut out = Mat::zeros(a.nrows(), b.ncols());
    matmul(out.as_mut(), Accum::Replace, a, b, 1.0, Par::Seq);
    out
}

/// Some columns, in that order.
pub(crate) fn columns(matrix: MatRef<'_, f64>, chosen: &[usize]) -> Mat<f64> {
    Mat::from_fn(matrix.nrows(), chosen.len(), |i, k| matrix[(i, chosen[k])])
}

/// Adds `factor` A B to `out`.
pub(crate) fn add_product(
    out: MatMut<'_, f64>,
    a: MatRef<'_, f64>,
    b: MatRef<'_, f64>,
    factor: f64,
) {
    matmul(out, Accum::Add, a, b, factor, Par::Seq);
}

/// Solution of a general square system by LU with partial pivoting; None where it is singular.
pub(crate) fn solve_general(matrix: MatRef<'_, f64>, rhs: MatRef<'_, f64>) -> Option<Mat<f64>> {
    let solution = matrix.partial_piv_lu().solve(rhs);
    let finite = (0..solution.ncols()).all(|j| solution.col(j).iter().all(|v| v.is_finite()));
    finite.then_some(solution)
}
