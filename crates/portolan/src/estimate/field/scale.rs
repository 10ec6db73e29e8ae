//! Many sensors. The law (places, shadowing, PSDs, noise) is fitted to some of them; at the others
//! the drawn map is the prior that their own readings correct, sensor by sensor. Then all sensors
//! carry the map, each tile by its nearest ones.

use ndarray::Array2;

use super::draw::Fields;
use super::fit::{Fit, LARGEST_STEP};
use super::sites::{Noise, Targets};
use crate::grid::Cell;
use crate::linalg::Cholesky;

/// Sensors that the law is fitted to.
pub(super) const FITTED: usize = 1500;
/// Sensors whose covariance is factorised as a whole.
pub(super) const TOGETHER: usize = 4000;
/// Nearest sensors of a tile beyond that.
pub(super) const NEIGHBOURS: usize = 128;
const STEPS: usize = 8;

/// Evenly spread over the sensors' order.
pub(super) fn some(sensors: usize) -> Vec<usize> {
    let kept = FITTED.min(sensors);
    (0..kept).map(|i| i * sensors / kept).collect()
}

/// Log SLFs at all sensors (sensors x emitters): the posterior of each given the drawn fields.
pub(super) fn everywhere(
    fit: &Fit<'_>,
    fields: &Fields,
    cells: &[Cell],
    targets: &Targets,
    fitted: &[usize],
) -> Array2<f64> {
    let count = fit.psd.nrows();
    let prior = |n: usize, r: usize| {
        let at = [r, cells[n].row, cells[n].col];
        (fields.mean[at], fields.variance[at].max(1e-6))
    };
    let mut logs = Array2::from_shape_fn((cells.len(), count), |(n, r)| prior(n, r).0);
    // Far from the solution, noise taken as small would make the steps wild.
    for step in 0..STEPS {
        let least = 0.3 * 0.3f64.powi(step as i32);
        let noise = Noise { relative: fit.noise.relative.max(least), ..fit.noise };
        let sites = targets.sites(&logs, &fit.psd, noise);
        for n in 0..cells.len() {
            let matrix = faer::Mat::from_fn(count, count, |r, q| {
                let both = sites.information[(n * count + r) * count + q];
                both + if r == q { 1.0 / prior(n, r).1 } else { 0.0 }
            });
            let mut side = faer::Mat::from_fn(count, 1, |r, _| {
                let (mean, variance) = prior(n, r);
                sites.slope[n * count + r] - (logs[[n, r]] - mean) / variance
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
