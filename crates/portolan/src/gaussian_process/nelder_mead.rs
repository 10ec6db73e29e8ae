//! Minimisation without derivatives in two or three dimensions (Nelder and Mead 1965).

/// Minimises `f` from `start` with a first simplex of side `step`; every point is clamped to
/// `bounds`. Stops when the simplex is smaller than `tolerance` or after `evaluations`.
pub(crate) fn minimise<E>(
    mut f: impl FnMut(&[f64]) -> Result<f64, E>,
    start: &[f64],
    bounds: &[(f64, f64)],
    step: f64,
    tolerance: f64,
    evaluations: usize,
) -> Result<(Vec<f64>, f64), E> {
    let n = start.len();
    let clamp = |x: &mut Vec<f64>| {
        for (v, (low, high)) in x.iter_mut().zip(bounds) {
            *v = v.clamp(*low, *high);
        }
    };
    let mut simplex = Vec::with_capacity(n + 1);
    for i in 0..=n {
        let mut x = start.to_vec();
        if i > 0 {
            // Step away from a bound rather than into it.
            let room = bounds[i - 1].1 - x[i - 1];
            x[i - 1] += if room >= step { step } else { -step };
        }
        clamp(&mut x);
        let value = f(&x)?;
        simplex.push((x, value));
    }
    let mut used = n + 1;
    loop {
        simplex.sort_by(|a, b| a.1.total_cmp(&b.1));
        let size = (0..n)
            .map(|d| {
                let column = simplex.iter().map(|(x, _)| x[d]);
                column.clone().fold(f64::MIN, f64::max) - column.fold(f64::MAX, f64::min)
            })
            .fold(0.0, f64::max);
        if size < tolerance || used >= evaluations {
            return Ok(simplex.swap_remove(0));
        }
        let centre: Vec<f64> = (0..n)
            .map(|d| simplex[..n].iter().map(|(x, _)| x[d]).sum::<f64>() / n as f64)
            .collect();
        let worst = simplex[n].clone();
        let mut along = |t: f64| -> Result<(Vec<f64>, f64), E> {
            let mut x: Vec<f64> =
                centre.iter().zip(&worst.0).map(|(c, w)| c + t * (w - c)).collect();
            clamp(&mut x);
            let value = f(&x)?;
            used += 1;
            Ok((x, value))
        };
        let reflected = along(-1.0)?;
        if reflected.1 < simplex[0].1 {
            let expanded = along(-2.0)?;
            simplex[n] = if expanded.1 < reflected.1 { expanded } else { reflected };
        } else if reflected.1 < simplex[n - 1].1 {
            simplex[n] = reflected;
        } else {
            let contracted = along(if reflected.1 < worst.1 { -0.5 } else { 0.5 })?;
            if contracted.1 < worst.1.min(reflected.1) {
                simplex[n] = contracted;
            } else {
                let best = simplex[0].0.clone();
                for (x, value) in &mut simplex[1..] {
                    x.iter_mut().zip(&best).for_each(|(v, b)| *v = 0.5 * (*v + b));
                    *value = f(x)?;
                    used += 1;
                }
            }
        }
    }
}

/// Half the distance of the differences that [`polish`] takes.
const REACH: f64 = 0.15;
const POLISHING: usize = 6;

/// Newton's method by central differences from a point near the minimum, so that the answer does not
/// depend on the way there: rounding may turn a comparison of [`minimise`], which then ends a little
/// elsewhere. Coordinates within reach of a bound stay where they are.
pub(crate) fn polish<E>(
    mut f: impl FnMut(&[f64]) -> Result<f64, E>,
    mut x: Vec<f64>,
    bounds: &[(f64, f64)],
) -> Result<Vec<f64>, E> {
    let inside =
        |i: &usize| x[*i] - 2.0 * REACH > bounds[*i].0 && x[*i] + 2.0 * REACH < bounds[*i].1;
    let free: Vec<usize> = (0..x.len()).filter(inside).collect();
    let begun = x.clone();
    for _ in 0..POLISHING {
        let middle = f(&x)?;
        let mut at = |moves: &[(usize, f64)]| {
            let mut there = x.clone();
            moves.iter().for_each(|(i, step)| there[*i] += step);
            f(&there)
        };
        let n = free.len();
        let (mut slope, mut curve) = (vec![0.0; n], vec![vec![0.0; n]; n]);
        for (a, &i) in free.iter().enumerate() {
            let (up, down) = (at(&[(i, REACH)])?, at(&[(i, -REACH)])?);
            slope[a] = (up - down) / (2.0 * REACH);
            curve[a][a] = (up - 2.0 * middle + down) / (REACH * REACH);
            for (b, &j) in free.iter().enumerate().take(a) {
                let same = at(&[(i, REACH), (j, REACH)])? + at(&[(i, -REACH), (j, -REACH)])?;
                let other = at(&[(i, REACH), (j, -REACH)])? + at(&[(i, -REACH), (j, REACH)])?;
                curve[a][b] = (same - other) / (4.0 * REACH * REACH);
                curve[b][a] = curve[a][b];
            }
        }
        let Some(step) = newton(&curve, &slope) else { break };
        let size = step.iter().map(|s| s.abs()).fold(0.0, f64::max);
        if !size.is_finite() {
            break;
        }
        for (&i, s) in free.iter().zip(&step) {
            x[i] = (x[i] - s.clamp(-REACH, REACH)).clamp(begun[i] - REACH, begun[i] + REACH);
        }
        if size < 1e-8 {
            break;
        }
    }
    Ok(x)
}

/// H^-1 g in one, two or three dimensions; None where H is not positive definite.
fn newton(curve: &[Vec<f64>], slope: &[f64]) -> Option<Vec<f64>> {
    let n = slope.len();
    let matrix = faer::Mat::from_fn(n, n, |i, j| curve[i][j]);
    let mut side = faer::Mat::from_fn(n, 1, |i, _| slope[i]);
    let cholesky = crate::linalg::Cholesky::new(matrix.as_ref())?;
    cholesky.half_solve(side.as_mut());
    cholesky.other_half_solve(side.as_mut());
    (n > 0).then(|| (0..n).map(|i| side[(i, 0)]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_bottom_of_a_bent_valley_and_respects_bounds() {
        let valley = |x: &[f64]| -> Result<f64, ()> {
            Ok((1.0 - x[0]).powi(2) + 10.0 * (x[1] - x[0] * x[0]).powi(2))
        };
        let wide = [(-5.0, 5.0), (-5.0, 5.0)];
        let (x, value) = minimise(valley, &[-1.0, 2.0], &wide, 0.5, 1e-6, 500).unwrap();
        assert!(value < 1e-8 && (x[0] - 1.0).abs() < 1e-3, "{x:?} {value}");
        let narrow = [(-5.0, 0.5), (-5.0, 5.0)];
        let (x, _) = minimise(valley, &[-1.0, 2.0], &narrow, 0.5, 1e-6, 500).unwrap();
        assert!((x[0] - 0.5).abs() < 1e-3, "{x:?}");
    }

    #[test]
    fn polishing_forgets_where_it_began() {
        let bowl = |x: &[f64]| {
            let (a, b) = (x[0] - 0.3, x[1] + 1.2);
            Ok::<_, std::convert::Infallible>(3.0 * a * a + a * b + b * b + 0.2 * a * a * a)
        };
        let bounds = [(-5.0, 5.0), (-5.0, 5.0)];
        let Ok(one) = polish(bowl, vec![0.32, -1.17], &bounds);
        let Ok(two) = polish(bowl, vec![0.27, -1.22], &bounds);
        assert!(
            (one[0] - two[0]).abs() < 1e-7 && (one[1] - two[1]).abs() < 1e-7,
            "{one:?} {two:?}"
        );
        assert!((one[0] - 0.3).abs() < 0.01);
        // At a bound only the other coordinate moves.
        let tight = [(-5.0, 5.0), (-1.0, 5.0)];
        let Ok(held) = polish(bowl, vec![0.3, -1.0], &tight);
        assert_eq!(held[1], -1.0);
        assert!(held[0] < 0.3);
    }
}
