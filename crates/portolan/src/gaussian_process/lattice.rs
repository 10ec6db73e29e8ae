//! A posterior of a few variables as a handful of weighted points: a lattice about its mode, along
//! the axes of its curvature, filled as far as the density reaches (Rue, Martino and Chopin 2009,
//! section 3.1).

use faer::{Mat, Side};

/// Distance of the points, in standard deviations, and the longest in the variables' own unit: a
/// direction that the readings leave open has no curvature to go by.
const SPACING: f64 = 1.2;
const LONGEST: f64 = 1.2;
/// Directions known better than this need no points.
const KNOWN: f64 = 0.1;
/// Points less likely than the mode by more than this many nats are left out.
const DEPTH: f64 = 3.5;
/// Half the distance of the differences that give the curvature.
const STEP: f64 = 0.25;
/// The most points that are looked at.
const MOST_LOOKED_AT: usize = 90;

/// Points and weights (of sum 1) for the density exp(-f), the mode first; at most `most`.
pub(crate) fn posterior_points<E>(
    mut f: impl FnMut(&[f64]) -> Result<f64, E>,
    mode: &[f64],
    bounds: &[(f64, f64)],
    most: usize,
) -> Result<Vec<(f64, Vec<f64>)>, E> {
    let n = mode.len();
    let inside = |x: &[f64]| x.iter().zip(bounds).all(|(x, (low, high))| x >= low && x <= high);
    let top = f(mode)?;
    let axes = axes(&mut f, mode, top)?;
    // Breadth first: a point is looked at if a neighbour of it is likely enough.
    let mut found = vec![(0.0, vec![0i32; n], mode.to_vec())];
    let mut seen = std::collections::HashSet::from([vec![0i32; n]]);
    let mut open = std::collections::VecDeque::from([vec![0i32; n]]);
    while let Some(at) = open.pop_front() {
        for axis in (0..n).filter(|&a| axes[a].is_some()) {
            for side in [-1, 1] {
                let mut next = at.clone();
                next[axis] += side;
                if seen.len() >= MOST_LOOKED_AT || !seen.insert(next.clone()) {
                    continue;
                }
                let mut x = mode.to_vec();
                for (steps, axis) in next.iter().zip(&axes) {
                    for (x, along) in x.iter_mut().zip(axis.iter().flatten()) {
                        *x += f64::from(*steps) * along;
                    }
                }
                if !inside(&x) {
                    continue;
                }
                let below = f(&x)? - top;
                if below < DEPTH {
                    found.push((-below, next.clone(), x));
                    open.push_back(next);
                }
            }
        }
    }
    let total: f64 = found.iter().map(|(log, ..)| log.exp()).sum();
    let shares = found.into_iter().map(|(log, at, x)| (log.exp() / total, at, x)).collect();
    Ok(thinned(shares, most.max(1)))
}

/// The mode, and of the other points as many as are wanted: evenly drawn along the longest axis, then
/// the next, so that the spread stays.
fn thinned(mut found: Vec<(f64, Vec<i32>, Vec<f64>)>, most: usize) -> Vec<(f64, Vec<f64>)> {
    let (own, _, mode) = found.remove(0);
    let mut points = vec![(own, mode)];
    if found.len() < most {
        points.extend(found.into_iter().map(|(weight, _, x)| (weight, x)));
        return points;
    }
    if most == 1 {
        return vec![(1.0, points.remove(0).1)];
    }
    found.sort_by(|a, b| a.1.cmp(&b.1));
    let share = (1.0 - own) / (most - 1) as f64;
    let mut reached = 0.0;
    let mut drawn = 0;
    for (weight, _, x) in found {
        reached += weight;
        let mut times = 0.0;
        while drawn + 1 < most && reached >= (drawn as f64 + 0.5) * share {
            drawn += 1;
            times += 1.0;
        }
        if times > 0.0 {
            points.push((times * share, x));
        }
    }
    // Rounding may lose the last one.
    let total: f64 = points.iter().map(|(weight, _)| weight).sum();
    points.iter_mut().for_each(|(weight, _)| *weight /= total);
    points
}

/// Steps along the axes of the curvature; None where nothing is left open.
fn axes<E>(
    f: &mut impl FnMut(&[f64]) -> Result<f64, E>,
    mode: &[f64],
    top: f64,
) -> Result<Vec<Option<Vec<f64>>>, E> {
    let n = mode.len();
    let mut at = |moves: &[(usize, f64)]| {
        let mut there = mode.to_vec();
        moves.iter().for_each(|(i, step)| there[*i] += step);
        f(&there)
    };
    let mut curve = Mat::zeros(n, n);
    for i in 0..n {
        let both = at(&[(i, STEP)])? + at(&[(i, -STEP)])?;
        curve[(i, i)] = (both - 2.0 * top) / (STEP * STEP);
        for j in 0..i {
            let same = at(&[(i, STEP), (j, STEP)])? + at(&[(i, -STEP), (j, -STEP)])?;
            let other = at(&[(i, STEP), (j, -STEP)])? + at(&[(i, -STEP), (j, STEP)])?;
            curve[(i, j)] = (same - other) / (4.0 * STEP * STEP);
            curve[(j, i)] = curve[(i, j)];
        }
    }
    let sound = (0..n).all(|i| (0..n).all(|j| f64::is_finite(curve[(i, j)])));
    let turned = if sound { curve.self_adjoint_eigen(Side::Lower).ok() } else { None };
    let Some(turned) = turned else {
        let along = |i: usize| (0..n).map(|j| if i == j { LONGEST } else { 0.0 }).collect();
        return Ok((0..n).map(|i| Some(along(i))).collect());
    };
    // The least curvature first: the longest axis.
    Ok((0..n)
        .map(|k| {
            let width = turned.S()[k].max(1e-12).powf(-0.5);
            let step = (SPACING * width).min(LONGEST);
            (width > KNOWN).then(|| (0..n).map(|i| step * turned.U()[(i, k)]).collect())
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_normal_posterior_keeps_its_mean_and_spread() {
        // Precision [[8, 3], [3, 2]]: covariance [[2, -3], [-3, 8]] / 7.
        let f = |x: &[f64]| {
            let (a, b) = (x[0] - 1.0, x[1] + 2.0);
            Ok::<_, std::convert::Infallible>(0.5 * (8.0 * a * a + 6.0 * a * b + 2.0 * b * b))
        };
        let Ok(points) = posterior_points(f, &[1.0, -2.0], &[(-9.0, 9.0), (-9.0, 9.0)], 99);
        assert!((5..=30).contains(&points.len()), "{}", points.len());
        let mean = |of: &dyn Fn(&[f64]) -> f64| points.iter().map(|(w, x)| w * of(x)).sum::<f64>();
        assert!((mean(&|_| 1.0) - 1.0).abs() < 1e-12);
        assert!((mean(&|x| x[0]) - 1.0).abs() < 1e-9 && (mean(&|x| x[1]) + 2.0).abs() < 1e-9);
        let (first, second) = (mean(&|x| (x[0] - 1.0).powi(2)), mean(&|x| (x[1] + 2.0).powi(2)));
        assert!((first / (2.0 / 7.0) - 1.0).abs() < 0.2, "{first}");
        assert!((second / (8.0 / 7.0) - 1.0).abs() < 0.2, "{second}");
    }

    #[test]
    fn a_few_points_keep_the_spread_of_many() {
        let f =
            |x: &[f64]| Ok::<_, std::convert::Infallible>(0.5 * (x[0] * x[0] + x[1] * x[1] / 0.16));
        let bounds = [(-9.0, 9.0), (-9.0, 9.0)];
        let Ok(many) = posterior_points(f, &[0.0, 0.0], &bounds, 99);
        let Ok(few) = posterior_points(f, &[0.0, 0.0], &bounds, 8);
        assert!(
            few.len() <= 8 && few[0].1 == [0.0, 0.0] && many.len() > 12,
            "{} {}",
            few.len(),
            many.len()
        );
        let square = |points: &[(f64, Vec<f64>)], axis: usize| {
            points.iter().map(|(w, x)| w * x[axis] * x[axis]).sum::<f64>()
        };
        for axis in 0..2 {
            let (a, b) = (square(&few, axis), square(&many, axis));
            assert!((a / b - 1.0).abs() < 0.4, "{a} {b}");
        }
        assert!((few.iter().map(|(w, _)| w).sum::<f64>() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn what_is_known_is_one_point_and_bounds_hold() {
        let sharp = |x: &[f64]| Ok::<_, std::convert::Infallible>(1e4 * x[0] * x[0]);
        let Ok(points) = posterior_points(sharp, &[0.0], &[(-1.0, 1.0)], 9);
        assert_eq!(points, [(1.0, vec![0.0])]);
        let flat = |_: &[f64]| Ok::<_, std::convert::Infallible>(0.0);
        let Ok(points) = posterior_points(flat, &[0.0], &[(-3.0, 2.0)], 99);
        assert_eq!(points.len(), 4);
        assert!(
            points.iter().all(|(w, x)| (w - 0.25).abs() < 1e-12 && x[0] >= -3.0 && x[0] <= 2.0)
        );
    }
}
