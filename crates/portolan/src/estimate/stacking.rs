//! How much each method counts in a combination: the weights under which readings of sensors left
//! out by sensor and by box are the likeliest, spread included (stacking; Yao, Vehtari, Simpson and
//! Gelman 2018). A combination is judged as it is used: by its mean and the spread of that.

use ndarray::Array2;

use super::folds::{Split, folds};
use super::held_out::Judge;
use crate::error::EstimateError;
use crate::link::DB_PER_LN;
use crate::model::{LeftOut, Predictor};
use crate::readings::Readings;

/// Parts that boxes of sensors are left out in.
const BOX_PARTS: usize = 5;
/// The members' shares count for as many readings: the fewer there are, the more of a difference is
/// luck.
const CAUTION: f64 = 20.0;
/// Weight that is moved from one member to another at first and at last.
const MOVES: (f64, f64) = (0.2, 0.002);
/// The least standard deviation of a reading that is believed, in ln power: .05 dB.
const LEAST_SPREAD: f64 = 0.05 / DB_PER_LN;

/// Every member's weight, and its rmse in dB in cross-validation by sensor and by box.
pub(super) type Weighed = Vec<(f64, [f64; 2])>;

/// Weighs members that have these shares before any reading; None where one of them cannot leave
/// sensors out.
pub(super) fn weighed(
    readings: &Readings,
    members: &[(f64, &dyn Predictor)],
) -> Result<Option<Weighed>, EstimateError> {
    let judge = Judge::new(readings);
    let sites = readings.sites();
    let all: Vec<usize> = (0..sites.len()).collect();
    let boxes: Vec<Vec<usize>> = folds(sites, BOX_PARTS, Split::Blocks, 0)
        .into_iter()
        .filter(|f| f.len() < sites.len())
        .collect();
    // What every member says of each left-out reading, by sensor and by box.
    let mut said: [Vec<Vec<Option<Said>>>; 2] = [Vec::new(), Vec::new()];
    for (_, member) in members {
        let Some(one) = member.leave_one_out(sites)? else { return Ok(None) };
        let Some(one) = judged(&judge, &all, &one) else { return Ok(None) };
        said[0].push(one);
        let mut own = Vec::new();
        for held in &boxes {
            let left_out: Vec<_> = held.iter().map(|&s| sites[s]).collect();
            let Some(left) = member.predict_without(&left_out)? else { return Ok(None) };
            let Some(left) = judged(&judge, held, &left) else { return Ok(None) };
            own.extend(left);
        }
        said[1].push(own);
    }
    let said = said.map(|said| common(&said));
    let read = readings.power().iter().filter(|p| !p.is_nan()).count().max(1);
    let total: f64 = members.iter().map(|(share, _)| share).sum();
    let shares: Vec<f64> = members.iter().map(|(share, _)| share / total).collect();
    let weights = likeliest(&said, &shares, CAUTION / read as f64);
    let rmse = |kind: usize, m: usize| {
        let squares: f64 = said[kind].iter().map(|entry| entry[m].error.powi(2)).sum();
        match said[kind].len() {
            0 => f64::INFINITY,
            count => DB_PER_LN * (squares / count as f64).sqrt(),
        }
    };
    let each = weights.into_iter().enumerate();
    Ok(Some(each.map(|(m, weight)| (weight, [rmse(0, m), rmse(1, m)])).collect()))
}

/// What a member says of a reading: how far it is off, and how far it says that it may be.
#[derive(Clone, Copy, Debug)]
struct Said {
    error: f64,
    spread: f64,
}

/// Entry by entry; None where the member has no spread.
fn judged(judge: &Judge<'_>, sensors: &[usize], left: &LeftOut) -> Option<Vec<Option<Said>>> {
    let spread: &Array2<f64> = left.reading_spread_db.as_ref()?;
    let errors = judge.errors(sensors, &left.power);
    let both = errors.into_iter().zip(spread);
    let said = both.map(|(error, spread)| {
        Some(Said { error: error?, spread: (spread / DB_PER_LN).max(LEAST_SPREAD) })
    });
    Some(said.collect())
}

/// The entries of which every member says something, members side by side.
fn common(said: &[Vec<Option<Said>>]) -> Vec<Vec<Said>> {
    let entries = said.first().map_or(0, Vec::len);
    (0..entries).filter_map(|e| said.iter().map(|own| own[e]).collect()).collect()
}

/// The weights (of sum 1) with the greatest mean log density, the means of all kinds added up; the
/// shares count as `caution` of a mean. Weight moves from one member to another as long as that helps.
fn likeliest(kinds: &[Vec<Vec<Said>>], shares: &[f64], caution: f64) -> Vec<f64> {
    let mut weights = shares.to_vec();
    let mut best = improbability(kinds, &weights, shares, caution);
    let mut step = MOVES.0;
    while step >= MOVES.1 {
        let mut moved = false;
        for (from, to) in (0..shares.len()).flat_map(|i| (0..shares.len()).map(move |j| (i, j))) {
            let least = step.min(weights[from]);
            if from == to || least <= 0.0 {
                continue;
            }
            let mut next = weights.clone();
            (next[from], next[to]) = (weights[from] - least, weights[to] + least);
            let value = improbability(kinds, &next, shares, caution);
            if value < best {
                (best, weights, moved) = (value, next, true);
            }
        }
        if !moved {
            step *= 0.5;
        }
    }
    weights
}

/// The negative log density of the readings under a combination, and of its weights.
fn improbability(kinds: &[Vec<Vec<Said>>], weights: &[f64], shares: &[f64], caution: f64) -> f64 {
    let prior: f64 = shares.iter().zip(weights).map(|(s, w)| s * w.max(1e-9).ln()).sum();
    let kinds = kinds.iter().filter(|entries| !entries.is_empty());
    let each = kinds.map(|entries| {
        let one = |entry: &Vec<Said>| {
            let both = || weights.iter().zip(entry);
            let error: f64 = both().map(|(w, said)| w * said.error).sum();
            let square = |said: &Said| said.spread.powi(2) + (said.error - error).powi(2);
            let variance: f64 = both().map(|(w, said)| w * square(said)).sum();
            0.5 * (error * error / variance + variance.ln())
        };
        entries.iter().map(one).sum::<f64>() / entries.len() as f64
    });
    each.sum::<f64>() - caution * prior
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(errors: &[f64], spread: f64) -> Vec<Option<Said>> {
        errors.iter().map(|error| Some(Said { error: *error, spread })).collect()
    }

    #[test]
    fn the_likelier_member_counts_more_spread_included() {
        // Errors of standard deviation 1: who says 1 is believed, who says .2 or 5 is not.
        let errors: Vec<f64> = (0..200).map(|i| 1.73 * (f64::from(i) / 100.0 - 1.0)).collect();
        let far: Vec<f64> = errors.iter().map(|e| 3.0 * e).collect();
        let kinds = [common(&[said(&errors, 1.0), said(&far, 3.0), said(&errors, 5.0)]), vec![]];
        let shares = [1.0 / 3.0; 3];
        let weights = likeliest(&kinds, &shares, 0.0);
        assert!(weights[0] > 0.98, "{weights:?}");
        let cautious = likeliest(&kinds, &shares, 1e6);
        assert!(cautious.iter().all(|w| (w - 1.0 / 3.0).abs() < 1e-4), "{cautious:?}");
        assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn entries_count_where_every_member_has_one() {
        let mut first = said(&[1.0, 2.0, 3.0], 1.0);
        first[1] = None;
        assert_eq!(common(&[first, said(&[2.0, 9.0, -1.0], 1.0)]).len(), 2);
    }
}
