//! Where the transmitter of a band may stand: a lattice over the survey and well beyond it, its
//! squares split where the evidence is.

use super::super::law::EmitterPlaces;
use crate::site::{Region, Site};

/// Squares that are split in a round, rounds, and the share of the posterior from which on a square
/// is worth it.
const SPLIT: usize = 24;
const ROUNDS: usize = 5;
const WORTH: f64 = 4e-3;

/// The lattice reaches beyond the survey by this share of its longer side.
const MARGIN: f64 = 0.3;

/// About so many places, evenly spread, with their prior: even over the survey, falling off outside.
/// And their spacing in metres.
pub(super) fn lattice(region: &Region, count: usize) -> (EmitterPlaces, f64) {
    let longest = region.width_m().max(region.height_m()).max(f64::MIN_POSITIVE);
    let margin = MARGIN * longest;
    let (wide, high) = (region.width_m() + 2.0 * margin, region.height_m() + 2.0 * margin);
    let spacing = (wide * high / count as f64).sqrt();
    let along = |length: f64| ((length / spacing).round() as usize).max(1);
    let (across, up) = (along(wide), along(high));
    let mut places = EmitterPlaces::default();
    for i in 0..across * up {
        let (x, y) = (i / up, i % up);
        let step = |low: f64, length: f64, at: usize, count: usize| {
            low - margin + length * (at as f64 + 0.5) / count as f64
        };
        let height = 0.5 * (region.low.z_m + region.high.z_m);
        let at =
            Site::new(step(region.low.x_m, wide, x, across), step(region.low.y_m, high, y, up))
                .at_height(height);
        let out = region.outside_m(at);
        places.at.push(at);
        places.log_prior.push(if out > 0.0 { -1.0 - out / (0.15 * longest) } else { 0.0 });
    }
    let sum: f64 = places.log_prior.iter().map(|p| p.exp()).sum();
    places.log_prior.iter_mut().for_each(|p| *p -= sum.ln());
    (places, spacing)
}

/// The same places with squares of side `spacing` split down to `finest` where the posterior is.
/// `judge` gives the log evidence of places.
pub(super) fn refined(
    first: &EmitterPlaces,
    spacing: f64,
    finest: f64,
    judge: impl Fn(&[Site]) -> Option<Vec<f64>>,
) -> Option<EmitterPlaces> {
    let squares = |at: &[Site], log_prior: &[f64], side: f64| -> Option<Vec<Square>> {
        let each = at.iter().zip(log_prior).zip(judge(at)?);
        let each = each.map(|((&at, &log_prior), evidence)| Square {
            at,
            side,
            log_prior,
            log_posterior: log_prior + evidence,
        });
        Some(each.collect())
    };
    let mut found = squares(&first.at, &first.log_prior, spacing)?;
    for _ in 0..ROUNDS {
        found.sort_by(|a, b| b.log_posterior.total_cmp(&a.log_posterior));
        let floor = found.first()?.log_posterior + WORTH.ln();
        let worth = |s: &Square| s.side > 1.5 * finest && s.log_posterior > floor;
        let split: Vec<Square> = found.iter().filter(|s| worth(s)).take(SPLIT).copied().collect();
        if split.is_empty() {
            break;
        }
        let mut left = SPLIT;
        found.retain(|s| {
            let goes = worth(s) && left > 0;
            left -= usize::from(goes);
            !goes
        });
        for side in sides(&split) {
            let of_side = || split.iter().filter(|s| s.side == side);
            let quarter = 0.25 * side;
            let corners = [(-1.0, -1.0), (-1.0, 1.0), (1.0, -1.0), (1.0, 1.0)];
            let move_by = |s: &Square, (x, y): (f64, f64)| s.at.moved(x * quarter, y * quarter);
            let at: Vec<Site> =
                of_side().flat_map(|s| corners.map(|corner| move_by(s, corner))).collect();
            let log_prior: Vec<f64> =
                of_side().flat_map(|s| [s.log_prior - 4f64.ln(); 4]).collect();
            found.extend(squares(&at, &log_prior, 0.5 * side)?);
        }
    }
    Some(EmitterPlaces {
        at: found.iter().map(|s| s.at).collect(),
        log_prior: found.iter().map(|s| s.log_prior).collect(),
    })
}

/// The different sides of some squares.
fn sides(squares: &[Square]) -> Vec<f64> {
    let mut sides: Vec<f64> = squares.iter().map(|s| s.side).collect();
    sides.sort_by(f64::total_cmp);
    sides.dedup();
    sides
}

/// A place with the square that it stands for.
#[derive(Clone, Copy)]
struct Square {
    at: Site,
    side: f64,
    log_prior: f64,
    log_posterior: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_are_split_where_the_evidence_is_and_keep_their_prior() {
        let region = Region::around(&[Site::new(0.0, 0.0), Site::new(100.0, 60.0)]).unwrap();
        let (first, spacing) = lattice(&region, 96);
        let truth = Site::new(31.7, 12.3);
        let judge = |at: &[Site]| Some(at.iter().map(|s| -0.5 * s.squared_m2(truth)).collect());
        let found = refined(&first, spacing, 0.5, judge).unwrap();
        let mass: f64 = found.log_prior.iter().map(|p| p.exp()).sum();
        assert!((mass - 1.0).abs() < 1e-9, "{mass}");
        let logs = found.at.iter().zip(&found.log_prior);
        let logs = logs.map(|(s, p)| p - 0.5 * s.squared_m2(truth)).collect();
        let weights = super::super::super::law::normalised(logs).0;
        let (mean, sd) = super::super::super::law::mean_place(&weights, &found.at);
        assert!(mean.distance_m(truth) < 0.1 && sd.iter().all(|s| (s - 1.0).abs() < 0.15));
        assert!(found.at.len() < 400, "{}", found.at.len());
    }
}
