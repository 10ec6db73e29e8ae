//! Many sensors. The law (places, shadowing, PSDs, noise) is fitted to some of them; at the others
//! the drawn field is the prior that their own readings correct, sensor by sensor. Then all sensors
//! carry the map, each place by its nearest ones.

use ndarray::Array2;

use super::draw::Fields;
use super::fit::{FieldFit, LARGEST_STEP};
use super::linearised::{Noise, Targets};
use crate::linalg::Cholesky;

/// Sensors that the law is fitted to.
pub(super) const FITTED: usize = 1500;
/// Sensors whose covariance is factorised as a whole.
pub(super) const TOGETHER: usize = 4000;
/// Nearest sensors of a place beyond that.
pub(super) const NEIGHBOURS: usize = 128;
const STEPS: usize = 8;

/// Evenly spread over the sensors' order.
pub(super) fn some(sensors: usize) -> Vec<usize> {
    let kept = FITTED.min(sensors);
    (0..kept).map(|i| i * sensors / kept).collect()
}

/// Log SLFs at all sensors (sensors x emitters): the posterior of each given the fields drawn
/// there.
pub(super) fn everywhere(
    fit: &FieldFit<'_>,
    fields: &Fields,
    targets: &Targets,
    fitted: &[usize],
) -> Array2<f64> {
    let count = fit.psd.nrows();
    let sensors = fields.mean.ncols();
    let prior = |n: usize, r: usize| (fields.mean[[r, n]], fields.variance[[r, n]].max(1e-6));
    let mut logs = Array2::from_shape_fn((sensors, count), |(n, r)| prior(n, r).0);
    // Far from the solution, noise taken as small would make the steps wild.
    for step in 0..STEPS {
        let least = 0.3 * 0.3f64.powi(step as i32);
        let noise = Noise { relative: fit.noise.relative.max(least), ..fit.noise };
        let found = targets.linearised(&logs, &fit.psd, noise);
        for n in 0..sensors {
            let matrix = faer::Mat::from_fn(count, count, |r, q| {
                let both = found.information[(n * count + r) * count + q];
                both + if r == q { 1.0 / prior(n, r).1 } else { 0.0 }
            });
            let mut side = faer::Mat::from_fn(count, 1, |r, _| {
                let (mean, variance) = prior(n, r);
                found.slope[n * count + r] - (logs[[n, r]] - mean) / variance
            });
            let Some(cholesky) = Cholesky::new(matrix.as_ref()) else { continue };
            cholesky.half_solve(side.as_mut());
            cholesky.other_half_solve(side.as_mut());
            for r in 0..count {
                logs[[n, r]] += side[(r, 0)].clamp(-LARGEST_STEP, LARGEST_STEP);
            }
        }
    }
    for (i, &n) in fitted.iter().enumerate() {
        logs.row_mut(n).assign(&fit.logs.row(i));
    }
    logs
}
