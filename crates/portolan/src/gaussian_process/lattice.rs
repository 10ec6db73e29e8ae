//! A posterior of a few variables as a handful of weighted points: a lattice about each mode, along
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

/// Points and weights (of sum 1) for the density exp(-f) about its modes, the likeliest mode first; at
/// most `most`. Modes that lie within the lattice of a likelier one are not modes of their own.
pub(crate) fn posterior_points<E>(
    mut f: impl FnMut(&[f64]) -> Result<f64, E>,
    modes: &[Vec<f64>],
    bounds: &[(f64, f64)],
    most: usize,
) -> Result<Vec<(f64, Vec<f64>)>, E> {
    let mut tops = Vec::new();
    for mode in modes {
        tops.push((f(mode)?, mode));
    }
    tops.sort_by(|a, b| a.0.total_cmp(&b.0));
    let top = tops[0].0;
    let mut lattices: Vec<Lattice> = Vec::new();
    for (own, mode) in tops {
        let holds = |lattice: &Lattice| lattice.holds(mode);
        if own - top < DEPTH && !lattices.iter().any(holds) {
            lattices.push(Lattice::filled(&mut f, mode, (own, top), bounds)?);
        }
    }
    // In the order of the axes, the likeliest mode before all.
    let all = lattices.into_iter().enumerate().flat_map(|(l, mut lattice)| {
        lattice.points[usize::from(l == 0)..].sort_by(|a, b| a.1.cmp(&b.1));
        lattice.points.into_iter().map(|(log, _, x)| (log.exp(), x))
    });
    let mut found: Vec<(f64, Vec<f64>)> = all.collect();
    let total: f64 = found.iter().map(|(mass, _)| mass).sum();
    found.iter_mut().for_each(|(mass, _)| *mass /= total);
    Ok(thinned(found, most.max(1)))
}

/// Points about one mode.
struct Lattice {
    mode: Vec<f64>,
    axes: Vec<Axis>,
    /// Logarithm of the mass, steps along the axes, and the point; the mode first.
    points: Vec<(f64, Vec<i32>, Vec<f64>)>,
}

/// A direction of the curvature.
struct Axis {
    unit: Vec<f64>,
    /// What a step stands for; no steps are taken along an axis that is known.
    length: f64,
    known: bool,
}

impl Lattice {
    /// `top` is the value at the mode, and the one that depth is counted from.
    fn filled<E>(
        f: &mut impl FnMut(&[f64]) -> Result<f64, E>,
        mode: &[f64],
        (own, top): (f64, f64),
        bounds: &[(f64, f64)],
    ) -> Result<Self, E> {
        let n = mode.len();
        let inside = |x: &[f64]| x.iter().zip(bounds).all(|(x, (low, high))| x >= low && x <= high);
        let axes = axes(f, mode, own)?;
        let volume: f64 = axes.iter().map(|axis| axis.length.ln()).sum();
        let mut points = vec![(volume + top - own, vec![0i32; n], mode.to_vec())];
        // Breadth first: a point is looked at if a neighbour of it is likely enough.
        let mut seen = std::collections::HashSet::from([vec![0i32; n]]);
        let mut open = std::collections::VecDeque::from([vec![0i32; n]]);
        while let Some(at) = open.pop_front() {
            for axis in (0..n).filter(|&a| !axes[a].known) {
                for side in [-1, 1] {
                    let mut next = at.clone();
                    next[axis] += side;
                    if seen.len() >= MOST_LOOKED_AT || !seen.insert(next.clone()) {
                        continue;
                    }
                    let mut x = mode.to_vec();
                    for (steps, axis) in next.iter().zip(&axes) {
                        for (x, along) in x.iter_mut().zip(&axis.unit) {
                            *x += f64::from(*steps) * axis.length * along;
                        }
                    }
                    if !inside(&x) {
                        continue;
                    }
                    let below = f(&x)? - top;
                    if below < DEPTH {
                        points.push((volume - below, next.clone(), x));
                        open.push_back(next);
                    }
                }
            }
        }
        Ok(Self { mode: mode.to_vec(), axes, points })
    }

    /// Whether a place belongs to one of the points.
    fn holds(&self, x: &[f64]) -> bool {
        let steps = |axis: &Axis| {
            let both = x.iter().zip(&self.mode).zip(&axis.unit);
            let along: f64 = both.map(|((x, m), u)| (x - m) * u).sum();
            (along / axis.length).round() as i32
        };
        let at: Vec<i32> = self.axes.iter().map(steps).collect();
        self.points.iter().any(|(_, steps, _)| *steps == at)
    }
}

/// The first point, and of the others as many as are wanted: evenly drawn in their order, so that the
/// spread stays.
fn thinned(mut found: Vec<(f64, Vec<f64>)>, most: usize) -> Vec<(f64, Vec<f64>)> {
    if found.len() <= most {
        return found;
    }
    let (own, mode) = found.remove(0);
    if most == 1 {
        return vec![(1.0, mode)];
    }
    let mut points = vec![(own, mode)];
    let share = (1.0 - own) / (most - 1) as f64;
    let mut reached = 0.0;
    let mut drawn = 0;
    for (weight, x) in found {
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

/// The axes of the curvature, the longest first.
fn axes<E>(
    f: &mut impl FnMut(&[f64]) -> Result<f64, E>,
    mode: &[f64],
    top: f64,
) -> Result<Vec<Axis>, E> {
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
    Ok((0..n)
        .map(|k| match &turned {
            Some(turned) => {
                let width = turned.S()[k].max(1e-12).powf(-0.5);
                let length = (SPACING * width).min(LONGEST);
                let unit = (0..n).map(|i| turned.U()[(i, k)]).collect();
                Axis { unit, length, known: width <= KNOWN }
            }
            None => {
                let unit = (0..n).map(|i| if i == k { 1.0 } else { 0.0 }).collect();
                Axis { unit, length: LONGEST, known: false }
            }
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
        let Ok(points) = posterior_points(f, &[vec![1.0, -2.0]], &[(-9.0, 9.0), (-9.0, 9.0)], 99);
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
        let Ok(many) = posterior_points(f, &[vec![0.0, 0.0]], &bounds, 99);
        let Ok(few) = posterior_points(f, &[vec![0.0, 0.0]], &bounds, 8);
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
        let Ok(points) = posterior_points(sharp, &[vec![0.0]], &[(-1.0, 1.0)], 9);
        assert_eq!(points, [(1.0, vec![0.0])]);
        let flat = |_: &[f64]| Ok::<_, std::convert::Infallible>(0.0);
        let Ok(points) = posterior_points(flat, &[vec![0.0]], &[(-3.0, 2.0)], 99);
        assert_eq!(points.len(), 4);
        assert!(
            points.iter().all(|(w, x)| (w - 0.25).abs() < 1e-12 && x[0] >= -3.0 && x[0] <= 2.0)
        );
    }

    #[test]
    fn modes_have_the_mass_that_they_have() {
        // Two normal densities of different width, the wider with three quarters of the mass.
        let f = |x: &[f64]| {
            let part = |mass: f64, at: f64, width: f64| {
                mass / width * (-0.5 * ((x[0] - at) / width).powi(2)).exp()
            };
            Ok::<_, std::convert::Infallible>(-(part(3.0, -3.0, 0.8) + part(1.0, 2.0, 0.2)).ln())
        };
        let modes = [vec![2.0], vec![-3.0], vec![-2.9], vec![2.05]];
        let Ok(points) = posterior_points(f, &modes, &[(-9.0, 9.0)], 99);
        let left: f64 = points.iter().filter(|(_, x)| x[0] < 0.0).map(|(w, _)| w).sum();
        assert!((left - 0.75).abs() < 0.03, "{left}");
        assert_eq!(points[0].1, [2.0]);
        let Ok(few) = posterior_points(f, &modes, &[(-9.0, 9.0)], 4);
        let left: f64 = few.iter().filter(|(_, x)| x[0] < 0.0).map(|(w, _)| w).sum();
        assert!(few.len() <= 4 && (left - 0.75).abs() < 0.2, "{left}");
    }
}
