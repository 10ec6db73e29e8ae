//! Factors known from before, fitted to new readings: sensors in other places, the same PSDs.

use ndarray::Array2;

use super::weighted::Weighted;
use super::{UnmixOptions, Unmixed, check, count, finish};
use crate::error::{EstimateError, InputError};
use crate::link::{Link, quiet_offset};

/// Improves SLFs at the sensors (sensors x emitters) and PSDs (emitters x bands) in relative error
/// for `options.polish_rounds`. Emitters keep their order.
pub fn refine(
    readings_power: &Array2<f64>,
    slf_at_sensors: &Array2<f64>,
    psd: &Array2<f64>,
    options: &UnmixOptions,
) -> Result<Unmixed, EstimateError> {
    let (rank, bands) = psd.dim();
    check(readings_power, rank, options)?;
    let expected = vec![readings_power.nrows(), rank, readings_power.ncols()];
    let found = vec![slf_at_sensors.nrows(), slf_at_sensors.ncols(), bands];
    if found != expected {
        return Err(InputError::Shape { what: "the factors", found, expected }.into());
    }
    let peak = readings_power.iter().copied().filter(|x| !x.is_nan()).fold(0.0, f64::max);
    let power: Vec<f64> = readings_power.iter().map(|x| x / peak).collect();
    let quiet = || quiet_offset(readings_power.iter().copied());
    let floor = options.floor.unwrap_or_else(quiet) / peak;
    let (link, bounds) = count::judge(&power, Link::new(floor));
    let floor = if bounds.is_some() { link.offset().max(floor) } else { floor };
    let slf = slf_at_sensors.t().iter().map(|s| s / peak).collect();
    let psd = psd.iter().copied().collect();
    let mut fitted = Weighted { rank, bands, power, bounds, floor, slf, psd };
    fitted.polish(options.polish_rounds, 1e-4);
    finish(fitted, peak, false)
}

#[cfg(test)]
mod tests {
    use super::super::simulated::simulate;
    use super::*;

    #[test]
    fn known_psds_give_the_slfs_at_new_sensors_in_the_same_order() {
        let truth = simulate(60, 3, 24, 2);
        // Weakest first, as no unmixing would have it, and SLFs that are quite wrong.
        let reversed = |a: &Array2<f64>, axis| {
            let mut a = a.clone();
            a.invert_axis(ndarray::Axis(axis));
            a
        };
        let (slf, psd) = (reversed(&truth.slf, 1), reversed(&truth.psd, 0));
        let options = UnmixOptions { polish_rounds: 3, ..UnmixOptions::default() };
        let wrong = slf.mapv(|s| (2.0 * s).sqrt());
        let found = refine(&truth.power, &wrong, &psd, &options).unwrap();
        assert!(found.residual < 1e-6, "{}", found.residual);
        for (a, b) in found.psd.outer_iter().zip(psd.outer_iter()) {
            let likeness = a.dot(&b) / (a.dot(&a) * b.dot(&b)).sqrt();
            assert!(likeness > 1.0 - 1e-6, "{likeness}");
        }
        assert!(
            refine(&truth.power, &slf, &psd.slice(ndarray::s![..2, ..]).to_owned(), &options)
                .is_err()
        );
    }
}
