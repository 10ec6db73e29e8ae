//! How many emitters the readings speak for. Without noise: the numerical rank of the scaled
//! readings, read off the pivots of successive projection (a pivoted QR factorisation). With noise
//! or levels: held-out entries (Wold 1978; Owen and Perry 2009) are predicted with 1, 2, ...
//! emitters, and the fewest that predict about as well as the best are taken.

use ndarray::{Array2, Axis};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::thin::solid_bands;
use super::weighted::Bounds;
use super::{UnmixOptions, check, equilibrate, scale, sensors_without_gaps, vertices};
use crate::error::EstimateError;
use crate::link::{Link, noise_floor};

/// More emitters than this are never proposed.
pub const MOST: usize = 12;
/// What is left outside the subspace of exact readings, relative to all, and to the last pivot.
const RANK_LEFT: f64 = 1e-9;
const RANK_GAP: f64 = 1e-4;
/// Shares of the entries that take turns to be held out.
const FOLDS: usize = 8;
/// Folds that are used: more cost time and decide little.
const USED_FOLDS: usize = 3;
/// An emitter must lower the held-out error by this share to be believed.
const WORTH: f64 = 0.01;

/// In units of the noise that was cut at zero (its median, 0.67 of its deviation): where a reading
/// is signal, and the offset of errors.
const LOUD: f64 = 4.5;
const RAISED: f64 = 8.0;

/// The number of emitters and what speaks for it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Count {
    /// The number chosen.
    pub emitters: usize,
    /// What speaks for it.
    pub evidence: Evidence,
}

/// Why a number of emitters was chosen.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Evidence {
    /// Exact readings: the largest share of any band's signal that 0, 1, 2, ... emitters leave.
    Rank {
        /// By number of emitters, from 0.
        left: Vec<f64>,
    },
    /// Other readings: root mean square error of held-out ln(x + a) (of levels: distance from
    /// the bin) with 1, 2, ... emitters. Noise that was cut at zero counts as one of them here.
    HeldOut {
        /// By number of emitters, from 1.
        error: Vec<f64>,
    },
}

/// Estimates the number of emitters from readings (sensors x bands, linear power, NaN = gap): 1 to
/// the least of sensors, bands and 12. Held-out entries are compared in `link`.
pub fn count(readings_power: &Array2<f64>, link: Link, seed: u64) -> Result<Count, EstimateError> {
    check(readings_power, 1, &UnmixOptions::default())?;
    let (sensors, bands) = readings_power.dim();
    let power: Vec<f64> = readings_power.iter().copied().collect();
    let most = MOST.min(sensors).min(bands);
    if let Some(count) = exact_rank(&power, bands, most) {
        return Ok(count);
    }
    let (link, bounds) = judge(&power, link);
    let mut count = held_out(&power, bounds.as_ref(), bands, most, link, 0.0, seed);
    // Readings just above the noise are biased upwards, everywhere alike: the noise itself takes
    // one of the emitters.
    if bounds.is_some() {
        count.emitters = (count.emitters - 1).max(1);
    }
    Ok(count)
}

/// The number of emitters where the readings show it beyond doubt, because they carry no noise.
/// A few bands that hardly any sensor read are left out.
pub fn count_exact(readings_power: &Array2<f64>) -> Option<usize> {
    let readings_power = readings_power.select(Axis(1), &solid_bands(readings_power));
    let (sensors, bands) = readings_power.dim();
    let power: Vec<f64> = readings_power.iter().copied().collect();
    exact_rank(&power, bands, MOST.min(sensors).min(bands)).map(|count| count.emitters)
}

/// How held-out entries are judged. Where noise was cut at zero, what is left of it has a positive
/// mean that looks like one more emitter: such readings only say that the power is small.
pub(crate) fn judge(power: &[f64], link: Link) -> (Link, Option<Bounds>) {
    let zeros = power.iter().filter(|x| **x == 0.0).count();
    let noise = noise_floor(power.iter().copied()).filter(|_| zeros * 50 > power.len());
    let Some(noise) = noise else { return (link, None) };
    let link = Link::new(link.offset().max(noise));
    let loud = LOUD * link.offset();
    let low = power.iter().map(|&x| if x < loud { 0.0 } else { x }).collect();
    let high = power.iter().map(|&x| x.max(loud)).collect();
    (Link::new(RAISED * link.offset()), Some(Bounds { low, high }))
}

fn exact_rank(power: &[f64], bands: usize, most: usize) -> Option<Count> {
    let whole = sensors_without_gaps(power, bands);
    if whole.is_empty() {
        return None;
    }
    let mut data: Vec<f64> =
        whole.iter().flat_map(|&n| power[n * bands..(n + 1) * bands].iter().copied()).collect();
    let (rows, columns) = equilibrate(&data, bands, 0.0);
    scale(&mut data, &rows, &columns);
    // A rank that uses up all sensors or bands is no finding: noise has it too.
    let limit = most.min(whole.len().saturating_sub(1)).min(bands - usize::from(bands > 1));
    let left = vertices::pick(bands, whole.len(), limit, |n, k| data[n * bands + k]).left;
    let emitters = (1..left.len())
        .find(|&r| left[r] < RANK_LEFT * left[0] && left[r] < RANK_GAP * left[r - 1])?;
    Some(Count { emitters, evidence: Evidence::Rank { left: left[..=emitters].to_vec() } })
}

/// `slack`: an error that is not worth another emitter.
pub(super) fn held_out(
    power: &[f64],
    bounds: Option<&Bounds>,
    bands: usize,
    most: usize,
    link: Link,
    slack: f64,
    seed: u64,
) -> Count {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let fold: Vec<usize> = power.iter().map(|_| rng.random_range(0..FOLDS)).collect();
    let options = UnmixOptions { starts: 2, rounds: 60, polish_rounds: 40, ..Default::default() };
    let mut error: Vec<f64> = Vec::new();
    for rank in 1..=most {
        let (mut sum, mut total) = (0.0, 0usize);
        for used in 0..USED_FOLDS {
            let mut seen = power.to_vec();
            let held = (0..seen.len()).filter(|&i| fold[i] == used && !power[i].is_nan());
            let held: Vec<usize> = held.collect();
            held.iter().for_each(|&i| seen[i] = f64::NAN);
            let (bounds_of, a) = (bounds.cloned(), link.offset());
            let fitted = super::unmix_noisy(&seen, bounds_of, bands, rank, a, &options, seed);
            for &i in &held {
                let model = fitted.model(i / bands, i % bands);
                let aim = bounds.map_or(power[i], |bounds| bounds.nearest(i, model));
                sum += (link.apply(aim) - link.apply(model)).powi(2);
                total += 1;
            }
        }
        error.push((sum / total.max(1) as f64).sqrt());
        let best = error.iter().copied().fold(f64::INFINITY, f64::min);
        // Three in a row without a gain: more will only fit the noise.
        if rank >= 3 && error[rank - 3..].iter().all(|e| *e > 1.001 * best) {
            break;
        }
    }
    let best = error.iter().copied().fold(f64::INFINITY, f64::min);
    let good = error.iter().position(|e| *e <= (1.0 + WORTH) * best + slack).unwrap_or(0);
    Count { emitters: good + 1, evidence: Evidence::HeldOut { error } }
}

#[cfg(test)]
mod tests {
    use super::super::simulated::simulate;
    use super::*;

    #[test]
    fn the_rank_of_exact_readings_is_found() {
        for emitters in [1, 2, 5, 8] {
            let truth = simulate(82, emitters, 64, 3);
            let count = count(&truth.power, Link::new(1e-6), 0).unwrap();
            assert_eq!(count.emitters, emitters);
            let Evidence::Rank { left } = count.evidence else { panic!("noise was seen") };
            assert_eq!(left.len(), emitters + 1);
        }
    }

    #[test]
    fn relative_noise_is_told_from_emitters() {
        for emitters in [1, 3] {
            let truth = simulate(120, emitters, 48, 5);
            let mut rng = ChaCha8Rng::seed_from_u64(1);
            let noisy = truth.power.mapv(|x| x * rng.random_range(0.8..1.2));
            let count = count(&noisy, Link::new(1e-6), 0).unwrap();
            assert_eq!(count.emitters, emitters, "{:?}", count.evidence);
        }
    }

    #[test]
    fn odd_readings_have_a_count() {
        assert_eq!(count(&Array2::from_elem((5, 1), 2.0), Link::new(1e-6), 0).unwrap().emitters, 1);
        assert_eq!(count(&Array2::from_elem((6, 7), 0.1), Link::new(1e-6), 0).unwrap().emitters, 1);
        let mut sparse = Array2::from_elem((4, 3), f64::NAN);
        sparse[[0, 0]] = 1.0;
        sparse[[1, 1]] = 2.0;
        sparse[[3, 2]] = 3.0;
        assert!((1..=3).contains(&count(&sparse, Link::new(1e-6), 0).unwrap().emitters));
        assert!(count(&Array2::zeros((4, 3)), Link::new(1e-6), 0).is_err());
    }
}
