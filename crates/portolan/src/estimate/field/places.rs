//! Where an emitter may stand: a lattice over the grid and a margin around it, refined where the
//! evidence is, down to a quarter of a cell.

use faer::Mat;
use rayon::prelude::*;

use super::law::{Covariates, Law, Places, Trend};
use crate::grid::{Cell, Grid};

/// Candidates of the first lattice, about.
const FIRST: usize = 1300;
/// Candidates of the first lattice that all sensors judge.
const SECOND: usize = 160;
/// Most candidates kept for an emitter: many where sensors are few and places are unsure.
const MOST: (usize, usize) = (48, 200);
const MOST_ENTRIES: usize = 16_000;
/// Candidates that are split at each round of refinement, and rounds.
const SPLIT: usize = 40;
const ROUNDS: usize = 4;
/// Squares of this side in cells are not split.
pub(super) const FINEST: f64 = 0.45;
/// The grid is extended by this share of its longer side.
const MARGIN: f64 = 0.15;
/// Candidates solved for at once.
const CHUNK: usize = 64;

/// Prior of a place: even over the grid, falling off outside.
fn log_prior(grid: Grid, [row, col]: [f64; 2]) -> f64 {
    let outside = |x: f64, n: usize| (-0.5 - x).max(x - (n as f64 - 0.5)).max(0.0);
    let out = outside(row, grid.rows()).hypot(outside(col, grid.cols()));
    let side = grid.rows().max(grid.cols()) as f64;
    if out == 0.0 { 0.0 } else { -2.0 - out / (0.1 * side) }
}

/// The first lattice: its places and its spacing in cells.
pub(super) fn lattice(grid: Grid) -> (Vec<[f64; 2]>, f64) {
    let margin = MARGIN * grid.rows().max(grid.cols()) as f64;
    let (high, wide) = (grid.rows() as f64 + 2.0 * margin, grid.cols() as f64 + 2.0 * margin);
    let spacing = (high * wide / FIRST as f64).sqrt().max(1.0);
    let (down, across) = ((high / spacing).ceil() as usize, (wide / spacing).ceil() as usize);
    let start = |n: usize, count: usize| 0.5 * (n as f64 - 1.0 - (count as f64 - 1.0) * spacing);
    let (top, left) = (start(grid.rows(), down), start(grid.cols(), across));
    let places = (0..down * across)
        .map(|i| {
            let (r, c) = (i / across, i % across);
            [top + spacing * r as f64, left + spacing * c as f64]
        })
        .collect();
    (places, spacing)
}

/// One emitter's data as the search sees them.
pub(super) struct Evidence<'a> {
    pub grid: Grid,
    pub law: &'a Law,
    pub cells: &'a [Cell],
    pub covariates: &'a Covariates,
    pub values: &'a [f64],
}

impl Evidence<'_> {
    fn trends(&self, places: &[[f64; 2]]) -> Vec<Trend> {
        let half_values = self.covariates.half(self.values);
        places
            .par_chunks(CHUNK)
            .map(|chunk| {
                let mut losses: Mat<f64> = self.law.losses(self.grid, chunk, self.cells);
                self.covariates.cholesky.half_solve(losses.as_mut());
                self.covariates.trends(self.law, &half_values, &losses)
            })
            .collect::<Vec<_>>()
            .concat()
    }

    fn judge(&self, places: &[[f64; 2]], spacing: &[f64]) -> Vec<Candidate> {
        let trends = self.trends(places);
        (0..places.len())
            .map(|i| {
                let log_prior = log_prior(self.grid, places[i]) + 2.0 * spacing[i].ln();
                let log_posterior = log_prior + trends[i].log_evidence;
                Candidate { at: places[i], spacing: spacing[i], log_prior, log_posterior }
            })
            .collect()
    }

    /// The places that matter, with their prior weights. `coarse` judges the first lattice: the
    /// same sensors, or some of them.
    pub fn search(&self, coarse: &Evidence<'_>) -> Places {
        let (first, spacing) = lattice(self.grid);
        let mut found = coarse.judge(&first, &vec![spacing; first.len()]);
        if coarse.cells.len() < self.cells.len() {
            found.sort_by(|a, b| b.log_posterior.total_cmp(&a.log_posterior));
            found.truncate(SECOND);
            let (at, spacing): (Vec<_>, Vec<_>) = found.iter().map(|c| (c.at, c.spacing)).unzip();
            found = self.judge(&at, &spacing);
        }
        for _ in 0..ROUNDS {
            found.sort_by(|a, b| b.log_posterior.total_cmp(&a.log_posterior));
            let floor = found[0].log_posterior - 7.0;
            let mut split: Vec<Candidate> = Vec::new();
            found.retain(|c| {
                let fine = c.spacing <= FINEST || c.log_posterior < floor || split.len() == SPLIT;
                if !fine {
                    split.push(*c);
                }
                fine
            });
            if split.is_empty() {
                break;
            }
            let corners = [[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]];
            let children: Vec<([f64; 2], f64)> = split
                .iter()
                .flat_map(|c| {
                    let step = 0.25 * c.spacing;
                    corners.map(|[r, q]| ([c.at[0] + r * step, c.at[1] + q * step], 2.0 * step))
                })
                .collect();
            let (at, spacing): (Vec<_>, Vec<_>) = children.into_iter().unzip();
            found.extend(self.judge(&at, &spacing));
        }
        found.sort_by(|a, b| b.log_posterior.total_cmp(&a.log_posterior));
        let floor = found[0].log_posterior - 9.0;
        let most = (MOST_ENTRIES / self.cells.len()).clamp(MOST.0, MOST.1);
        found.truncate(most);
        found.retain(|c| c.log_posterior > floor);
        Places {
            at: found.iter().map(|c| c.at).collect(),
            log_prior: found.iter().map(|c| c.log_prior).collect(),
        }
    }
}

/// A place with the side of the square that it stands for, in cells.
#[derive(Clone, Copy)]
struct Candidate {
    at: [f64; 2],
    spacing: f64,
    /// Density times area.
    log_prior: f64,
    log_posterior: f64,
}
