//! How much each method counts in a combination: weights of the least squared error at sensors left
//! out one by one and box by box.

use faer::Mat;

use super::Member;
use crate::error::EstimateError;
use crate::estimate::folds::{Split, folds};
use crate::estimate::held_out::Judge;
use crate::linalg::solve_general;
use crate::link::DB_PER_LN;
use crate::readings::Readings;

/// Parts that boxes of sensors are left out in.
const BOX_PARTS: usize = 5;
/// How far weights are drawn to the members' shares, in units of the least squared error over the number of
/// readings: the fewer there are, the more of a difference is luck.
const CAUTION: f64 = 100.0;

/// Every member's weight, and its rmse in dB at sensors left out one by one and box by box.
pub(super) type Weighed = Vec<(f64, [f64; 2])>;

/// Weighs the members; None where one of them cannot leave sensors out.
pub(super) fn weighed(
    readings: &Readings,
    members: &[Member],
) -> Result<Option<Weighed>, EstimateError> {
    let judge = Judge::new(readings);
    let sites = readings.sites();
    let all: Vec<usize> = (0..sites.len()).collect();
    let boxes: Vec<Vec<usize>> = folds(sites, BOX_PARTS, Split::Blocks, 0)
        .into_iter()
        .filter(|f| f.len() < sites.len())
        .collect();
    // Errors in ln power of every member, one by one and box by box.
    let mut errors: [Vec<Vec<Option<f64>>>; 2] = [Vec::new(), Vec::new()];
    for Member { model, .. } in members {
        let Some(one) = model.leave_one_out()? else { return Ok(None) };
        errors[0].push(judge.errors(&all, &one));
        let mut own = Vec::new();
        for held in &boxes {
            let left_out: Vec<_> = held.iter().map(|&s| sites[s]).collect();
            let Some(power) = model.predict_without(&left_out)? else { return Ok(None) };
            own.extend(judge.errors(held, &power));
        }
        errors[1].push(own);
    }
    let count = members.len();
    let mut total = vec![vec![0.0; count]; count];
    let mut each = vec![[f64::INFINITY; 2]; count];
    for (kind, errors) in errors.iter().enumerate() {
        let gram = gram(errors);
        let least = (0..count).map(|m| gram[m][m]).fold(f64::INFINITY, f64::min);
        if !(least.is_finite() && least > 0.0) {
            continue;
        }
        for i in 0..count {
            each[i][kind] = DB_PER_LN * gram[i][i].sqrt();
            for j in 0..count {
                total[i][j] += gram[i][j] / least;
            }
        }
    }
    let read = readings.power().iter().filter(|p| !p.is_nan()).count().max(1);
    let caution = CAUTION / read as f64;
    (0..count).for_each(|i| total[i][i] += caution);
    let shares: f64 = members.iter().map(|m| m.share).sum();
    let pull: Vec<f64> = members.iter().map(|m| caution * m.share / shares).collect();
    let weights = best_weights(&total, &pull);
    Ok(Some(weights.into_iter().zip(each).collect()))
}

/// Mean products of the members' errors, over the entries that all of them have.
fn gram(errors: &[Vec<Option<f64>>]) -> Vec<Vec<f64>> {
    let count = errors.len();
    let mut sums = vec![vec![0.0; count]; count];
    let mut entries = 0.0;
    for entry in 0..errors[0].len() {
        let Some(own) = errors.iter().map(|e| e[entry]).collect::<Option<Vec<f64>>>() else {
            continue;
        };
        entries += 1.0;
        for i in 0..count {
            for j in 0..count {
                sums[i][j] += own[i] * own[j];
            }
        }
    }
    sums.iter_mut().flatten().for_each(|s| *s /= entries);
    sums
}

/// Weights of sum 1, none negative, with the least w^T A w - 2 w^T b: over every set of members the
/// free minimum, where it is positive.
fn best_weights(matrix: &[Vec<f64>], pull: &[f64]) -> Vec<f64> {
    let count = matrix.len();
    let mut best = (f64::INFINITY, vec![1.0 / count as f64; count]);
    for set in 1usize..1 << count {
        let own: Vec<usize> = (0..count).filter(|m| set >> m & 1 == 1).collect();
        let part = Mat::from_fn(own.len(), own.len(), |i, j| matrix[own[i]][own[j]]);
        let right = Mat::from_fn(own.len(), 2, |i, j| if j == 0 { 1.0 } else { pull[own[i]] });
        let Some(free) = solve_general(part.as_ref(), right.as_ref()) else { continue };
        let sum = |j: usize| (0..own.len()).map(|i| free[(i, j)]).sum::<f64>();
        let level = (1.0 - sum(1)) / sum(0);
        let mut weights = vec![0.0; count];
        for (i, &m) in own.iter().enumerate() {
            weights[m] = level * free[(i, 0)] + free[(i, 1)];
        }
        if weights.iter().any(|w| !w.is_finite() || *w < 0.0) {
            continue;
        }
        let value: f64 = (0..count)
            .map(|i| {
                let row: f64 = matrix[i].iter().zip(&weights).map(|(a, w)| a * w).sum();
                weights[i] * (row - 2.0 * pull[i])
            })
            .sum();
        if value < best.0 {
            best = (value, weights);
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_those_of_the_least_error() {
        // Independent errors: by their precision. One that only repeats a better one: nothing.
        let none = [0.0; 2];
        let apart = best_weights(&[vec![1.0, 0.0], vec![0.0, 4.0]], &none);
        assert!((apart[0] - 0.8).abs() < 1e-12 && (apart[1] - 0.2).abs() < 1e-12, "{apart:?}");
        let same = best_weights(&[vec![1.0, 1.5], vec![1.5, 4.0]], &none);
        assert_eq!(same, [1.0, 0.0]);
        // Errors that say little leave the shares as they were.
        let cautious = best_weights(&[vec![1e6 + 1.0, 0.0], vec![0.0, 1e6 + 4.0]], &[2e5, 8e5]);
        assert!((cautious[0] - 0.2).abs() < 1e-5, "{cautious:?}");
    }

    #[test]
    fn errors_count_where_every_member_has_one() {
        let errors = [vec![Some(1.0), None, Some(3.0)], vec![Some(2.0), Some(9.0), Some(-1.0)]];
        assert_eq!(gram(&errors), [[5.0, -0.5], [-0.5, 2.5]]);
    }
}
