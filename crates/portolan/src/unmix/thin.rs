//! Bands that too few sensors read to be known from readings without noise, while all others are: a
//! spectrum that goes on as in the nearest bands, changed as little as the few readings ask for.

use faer::Mat;
use ndarray::{Array2, ArrayView1};

use super::count::MOST;
use crate::linalg::Cholesky;

/// At most one band in so many may be thin, of so many times the sensors that a thin one has.
const SHARE: usize = 8;
const SENSORS: usize = 4;
/// Variance of ln power that a spectrum gains from band to band, and that of a reading.
const STEP: f64 = 1.0;
const NOISE: f64 = 1e-6;
/// Rounds of Gauss-Newton, and the largest step of one.
const ROUNDS: usize = 60;
const LARGEST: f64 = 1.0;
/// A spectrum is never taken to be below this share of its peak.
const LEAST: f64 = 1e-6;

/// How many sensors read a band (NaN = gap).
fn read(band: ArrayView1<'_, f64>) -> usize {
    band.iter().filter(|x| !x.is_nan()).count()
}

/// The bands that more than `few` sensors read, in order; all of them where many are not.
pub(super) fn read_by_more(power: &Array2<f64>, few: usize) -> Vec<usize> {
    let (sensors, bands) = power.dim();
    let solid: Vec<usize> = (0..bands).filter(|&k| read(power.column(k)) > few).collect();
    let rare = (bands - solid.len()) * SHARE <= bands && sensors >= SENSORS * few;
    if rare { solid } else { (0..bands).collect() }
}

/// The bands that do not have to be guessed, where some have to be; readings (sensors x bands) are
/// without noise and complete in all but a few bands.
pub(crate) fn solid_bands(power: &Array2<f64>) -> Vec<usize> {
    read_by_more(power, MOST)
}

/// Spectra in all bands of `power` (sensors x bands) and the variance of their logarithms, given
/// those in the `solid` bands (emitters x solid) and SLFs at the sensors (sensors x emitters).
pub(crate) fn extended(
    psd: &Array2<f64>,
    solid: &[usize],
    slf: &Array2<f64>,
    power: &Array2<f64>,
) -> (Array2<f64>, Array2<f64>) {
    let emitters = psd.nrows();
    let mut whole = Array2::zeros((emitters, power.ncols()));
    let mut variances = Array2::zeros(whole.dim());
    for (i, &band) in solid.iter().enumerate() {
        whole.column_mut(band).assign(&psd.column(i));
    }
    for band in (0..power.ncols()).filter(|band| solid.binary_search(band).is_err()) {
        let after = solid.partition_point(|s| *s < band);
        let beside = [after.checked_sub(1), (after < solid.len()).then_some(after)];
        let precision = |i: usize| 1.0 / (STEP * band.abs_diff(solid[i]) as f64);
        let known: f64 = beside.iter().flatten().map(|&i| precision(i)).sum();
        let log = |r: usize, i: usize| {
            let peak = psd.row(r).iter().copied().fold(0.0, f64::max);
            psd[[r, i]].max(LEAST * peak).max(f64::MIN_POSITIVE).ln()
        };
        let middle: Vec<f64> = (0..emitters)
            .map(|r| {
                beside.iter().flatten().map(|&i| precision(i) * log(r, i)).sum::<f64>() / known
            })
            .collect();
        let heard: Vec<(usize, f64)> =
            power.column(band).iter().copied().enumerate().filter(|(_, y)| *y > 0.0).collect();
        let (logs, variance) = nearest(&middle, 1.0 / known, &heard, slf);
        for r in 0..emitters {
            whole[[r, band]] = logs[r].exp();
            variances[[r, band]] = variance[r];
        }
    }
    (whole, variances)
}

/// Logarithms nearest to the expected ones that meet the readings (sensor, power), and their
/// variances.
fn nearest(
    middle: &[f64],
    variance: f64,
    heard: &[(usize, f64)],
    slf: &Array2<f64>,
) -> (Vec<f64>, Vec<f64>) {
    let emitters = middle.len();
    let mut logs = middle.to_vec();
    let mut open = vec![variance; emitters];
    for _ in 0..ROUNDS {
        let own = |i, j| if i == j { 1.0 / variance } else { 0.0 };
        let mut system = Mat::from_fn(emitters, emitters, own);
        let mut aim = Mat::from_fn(emitters, 1, |r, _| (middle[r] - logs[r]) / variance);
        for &(sensor, y) in heard {
            let parts: Vec<f64> = (0..emitters).map(|r| slf[[sensor, r]] * logs[r].exp()).collect();
            let total = parts.iter().sum::<f64>().max(f64::MIN_POSITIVE);
            let miss = (y / total).ln();
            for r in 0..emitters {
                aim[(r, 0)] += parts[r] / total * miss / NOISE;
                for q in 0..emitters {
                    system[(r, q)] += parts[r] / total * (parts[q] / total) / NOISE;
                }
            }
        }
        let Some(cholesky) = Cholesky::new(system.as_ref()) else { break };
        cholesky.half_solve(aim.as_mut());
        cholesky.other_half_solve(aim.as_mut());
        open = cholesky.inverse_diagonal();
        logs.iter_mut().enumerate().for_each(|(r, l)| *l += aim[(r, 0)].clamp(-LARGEST, LARGEST));
    }
    (logs, open)
}

#[cfg(test)]
mod tests {
    use super::super::simulated::simulate;
    use super::*;

    #[test]
    fn a_band_that_few_read_goes_on_like_its_neighbour() {
        let truth = simulate(205, 4, 64, 5);
        let mut power = truth.power.clone();
        for band in [0, 63] {
            let hidden = (0..205).filter(|n| ![17, 100].contains(n));
            hidden.for_each(|n| power[[n, band]] = f64::NAN);
        }
        let solid = solid_bands(&power);
        assert_eq!(solid, (1..63).collect::<Vec<_>>());
        let psd = truth.psd.select(ndarray::Axis(1), &solid);
        let (whole, variance) = extended(&psd, &solid, &truth.slf, &power);
        let found = truth.slf.dot(&whole);
        for (band, beside) in [(0, 1), (63, 62)] {
            assert!((found[[17, band]] / truth.power[[17, band]] - 1.0).abs() < 1e-3);
            let off = |n: usize| (found[[n, band]] / truth.power[[n, band]]).ln().powi(2);
            let same = |n: usize| (truth.power[[n, beside]] / truth.power[[n, band]]).ln().powi(2);
            let (own, lazy): (f64, f64) = ((0..205).map(off).sum(), (0..205).map(same).sum());
            assert!(own < lazy, "band {band}: {own} {lazy}");
            assert!(variance.column(band).iter().all(|v| *v > 0.0 && *v <= STEP));
        }
        assert_eq!(variance[[0, 30]], 0.0);
    }
}
