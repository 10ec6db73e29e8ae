//! Dense algebra of matrices as small as the number of emitters, row by row in flat slices.

/// Inverts an n x n matrix by Gauss-Jordan elimination with pivoting; the determinant comes with
/// it. None where a pivot vanishes.
pub(super) fn invert(matrix: &[f64], n: usize) -> Option<(Vec<f64>, f64)> {
    let mut a = matrix.to_vec();
    let mut inverse = vec![0.0; n * n];
    (0..n).for_each(|i| inverse[i * n + i] = 1.0);
    let scale = matrix.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    let mut determinant = 1.0;
    for column in 0..n {
        let pivot = (column..n)
            .max_by(|&i, &j| a[i * n + column].abs().total_cmp(&a[j * n + column].abs()))?;
        let value = a[pivot * n + column];
        if value.is_nan() || value.abs() <= 1e-15 * scale {
            return None;
        }
        if pivot != column {
            for j in 0..n {
                a.swap(pivot * n + j, column * n + j);
                inverse.swap(pivot * n + j, column * n + j);
            }
            determinant = -determinant;
        }
        determinant *= value;
        for j in 0..n {
            a[column * n + j] /= value;
            inverse[column * n + j] /= value;
        }
        for i in (0..n).filter(|&i| i != column) {
            let factor = a[i * n + column];
            if factor != 0.0 {
                for j in 0..n {
                    a[i * n + j] -= factor * a[column * n + j];
                    inverse[i * n + j] -= factor * inverse[column * n + j];
                }
            }
        }
    }
    Some((inverse, determinant))
}

/// Cholesky factor in place (lower triangle) of a symmetric n x n matrix, its diagonal raised
/// where rounding has made a pivot vanish.
pub(super) fn cholesky(a: &mut [f64], n: usize) {
    for j in 0..n {
        let largest = a[j * n + j].abs().max(f64::MIN_POSITIVE);
        let mut pivot = a[j * n + j];
        for k in 0..j {
            pivot -= a[j * n + k] * a[j * n + k];
        }
        let root = pivot.max(1e-15 * largest).sqrt();
        a[j * n + j] = root;
        for i in j + 1..n {
            let mut sum = a[i * n + j];
            for k in 0..j {
                sum -= a[i * n + k] * a[j * n + k];
            }
            a[i * n + j] = sum / root;
        }
    }
}

/// Solves L L^T x = b in place.
pub(super) fn solve(factor: &[f64], n: usize, b: &mut [f64]) {
    for i in 0..n {
        for k in 0..i {
            b[i] -= factor[i * n + k] * b[k];
        }
        b[i] /= factor[i * n + i];
    }
    for i in (0..n).rev() {
        for k in i + 1..n {
            b[i] -= factor[k * n + i] * b[k];
        }
        b[i] /= factor[i * n + i];
    }
}

pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}
