//! How much each method counts in a combination: weights of the least squared error at sensors left
//! out one by one and box by box.

use faer::Mat;

use crate::error::EstimateError;
use crate::estimate::folds::{Split, folds};
use crate::estimate::held_out::Judge;
use crate::linalg::solve_general;
use crate::link::DB_PER_LN;
use crate::model::Model;
use crate::readings::Readings;

/// Parts that boxes of sensors are left out in.
const BOX_PARTS: usize = 5;
/// How far weights are drawn together, in units of the least squared error: small differences are
/// luck.
const CAUTION: f64 = 0.03;

/// Every member's weight, and its rmse in dB at sensors left out one by one and box by box.
pub(super) type Weighed = Vec<(f64, [f64; 2])>;

/// Weighs the members; None where one of them cannot leave sensors out.
pub(super) fn weighed(
    readings: &Readings,
    members: &[(&'static str, Model)],
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
    for (_, model) in members {
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
    (0..count).for_each(|i| total[i][i] += CAUTION);
    let weights = best_weights(&total);
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

/// Weights of sum 1, none negative, with the least w^T A w: over every set of members the free
/// minimum, where it is positive.
fn best_weights(matrix: &[Vec<f64>]) -> Vec<f64> {
    let count = matrix.len();
    let mut best = (f64::INFINITY, vec![1.0 / count as f64; count]);
    for set in 1usize..1 << count {
        let own: Vec<usize> = (0..count).filter(|m| set >> m & 1 == 1).collect();
        let part = Mat::from_fn(own.len(), own.len(), |i, j| matrix[own[i]][own[j]]);
        let ones = Mat::from_fn(own.len(), 1, |_, _| 1.0);
        let Some(free) = solve_general(part.as_ref(), ones.as_ref()) else { continue };
        let sum: f64 = (0..own.len()).map(|i| free[(i, 0)]).sum();
        let mut weights = vec![0.0; count];
        own.iter().enumerate().for_each(|(i, &m)| weights[m] = free[(i, 0)] / sum);
        if weights.iter().any(|w| !w.is_finite() || *w < 0.0) {
            continue;
        }
        let value: f64 = (0..count)
            .flat_map(|i| (0..count).map(move |j| (i, j)))
            .map(|(i, j)| weights[i] * matrix[i][j] * weights[j])
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
        let apart = best_weights(&[vec![1.0, 0.0], vec![0.0, 4.0]]);
        assert!((apart[0] - 0.8).abs() < 1e-12 && (apart[1] - 0.2).abs() < 1e-12, "{apart:?}");
        let same = best_weights(&[vec![1.0, 1.5], vec![1.5, 4.0]]);
        assert_eq!(same, [1.0, 0.0]);
    }

    #[test]
    fn errors_count_where_every_member_has_one() {
        let errors = [vec![Some(1.0), None, Some(3.0)], vec![Some(2.0), Some(9.0), Some(-1.0)]];
        assert_eq!(gram(&errors), [[5.0, -0.5], [-0.5, 2.5]]);
    }
}
