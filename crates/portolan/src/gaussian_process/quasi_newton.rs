//! Minimisation of a smooth function of a few variables by its gradient (BFGS; Nocedal and Wright
//! 2006, algorithm 6.1, with halved steps).

/// Smallest decrease, relative to what the slope promises, that ends the halving.
const ARMIJO: f64 = 1e-4;
const HALVINGS: usize = 20;

/// Minimises `f`, which gives a value and a gradient, from `start`. Ends when a step changes the
/// value by less than `tolerance`, or after `rounds`. No step is longer than `reach` in any
/// variable.
pub(crate) fn descend<E>(
    mut f: impl FnMut(&[f64]) -> Result<(f64, Vec<f64>), E>,
    start: &[f64],
    reach: f64,
    tolerance: f64,
    rounds: usize,
) -> Result<Vec<f64>, E> {
    let n = start.len();
    let mut x = start.to_vec();
    let (mut value, mut slope) = f(&x)?;
    // The inverse of the curvature, as far as it is known.
    let identity = |scale: f64| {
        let mut matrix = vec![0.0; n * n];
        (0..n).for_each(|i| matrix[i * n + i] = scale);
        matrix
    };
    let mut inverse: Option<Vec<f64>> = None;
    for _ in 0..rounds {
        let size = slope.iter().map(|g| g * g).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
        let matrix = inverse.get_or_insert_with(|| identity(0.3 / size));
        let mut step: Vec<f64> = (0..n)
            .map(|i| {
                -matrix[i * n..(i + 1) * n].iter().zip(&slope).map(|(m, g)| m * g).sum::<f64>()
            })
            .collect();
        let mut promise: f64 = step.iter().zip(&slope).map(|(s, g)| s * g).sum();
        if promise >= 0.0 {
            inverse = None;
            step = slope.iter().map(|g| -0.3 * g / size).collect();
            promise = -0.3 * size;
        }
        let longest = step.iter().fold(0.0, |most: f64, s| most.max(s.abs()));
        let mut share = (reach / longest.max(f64::MIN_POSITIVE)).min(1.0);
        let mut found = None;
        for _ in 0..HALVINGS {
            let next: Vec<f64> = x.iter().zip(&step).map(|(x, s)| x + share * s).collect();
            let (there, gradient) = f(&next)?;
            if there <= value + ARMIJO * share * promise {
                found = Some((next, there, gradient));
                break;
            }
            share *= 0.5;
        }
        let Some((next, there, gradient)) = found else { break };
        let moved: Vec<f64> = next.iter().zip(&x).map(|(a, b)| a - b).collect();
        let turned: Vec<f64> = gradient.iter().zip(&slope).map(|(a, b)| a - b).collect();
        let gain = value - there;
        (x, value, slope) = (next, there, gradient);
        if gain < tolerance {
            break;
        }
        let along: f64 = moved.iter().zip(&turned).map(|(s, y)| s * y).sum();
        if along > 1e-10 {
            let square: f64 = turned.iter().map(|y| y * y).sum();
            let old = inverse.take().unwrap_or_else(|| identity(along / square));
            inverse = Some(updated(&old, &moved, &turned, along));
        }
    }
    Ok(x)
}

/// (I - r s y^T) H (I - r y s^T) + r s s^T with r = 1 / s^T y.
fn updated(matrix: &[f64], moved: &[f64], turned: &[f64], along: f64) -> Vec<f64> {
    let n = moved.len();
    let times: Vec<f64> = (0..n)
        .map(|i| matrix[i * n..(i + 1) * n].iter().zip(turned).map(|(m, y)| m * y).sum())
        .collect();
    let both: f64 = times.iter().zip(turned).map(|(t, y)| t * y).sum();
    let factor = (1.0 + both / along) / along;
    let mut new = matrix.to_vec();
    for i in 0..n {
        for j in 0..n {
            new[i * n + j] +=
                factor * moved[i] * moved[j] - (times[i] * moved[j] + moved[i] * times[j]) / along;
        }
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curved_valley_is_followed_to_its_end() {
        let valley = |x: &[f64]| -> Result<_, std::convert::Infallible> {
            let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]);
            let slope = vec![-2.0 * a - 40.0 * b * x[0], 20.0 * b];
            Ok((a * a + 10.0 * b * b, slope))
        };
        let Ok(x) = descend(valley, &[-1.2, 1.0], 1.0, 1e-12, 200);
        assert!((x[0] - 1.0).abs() < 1e-4 && (x[1] - 1.0).abs() < 1e-4, "{x:?}");
    }

    #[test]
    fn steps_stay_within_reach() {
        let mut far: f64 = 0.0;
        let mut last = vec![0.0; 2];
        let bowl = |x: &[f64]| -> Result<_, std::convert::Infallible> {
            far = x.iter().zip(&last).fold(far, |m, (a, b): (&f64, &f64)| m.max((a - b).abs()));
            last = x.to_vec();
            Ok(((x[0] - 9.0).powi(2) + x[1] * x[1], vec![2.0 * (x[0] - 9.0), 2.0 * x[1]]))
        };
        let Ok(x) = descend(bowl, &[0.0, 0.0], 0.5, 1e-12, 200);
        assert!((x[0] - 9.0).abs() < 1e-3, "{x:?}");
        assert!(far <= 0.5 + 1e-12, "{far}");
    }
}
