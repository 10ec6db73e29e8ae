//! Where an emitter may stand: a lattice over the survey and a margin around it, refined where the
//! evidence is, down to a fraction of what the sensors resolve.

use faer::Mat;
use rayon::prelude::*;

use super::area::Area;
use super::law::{Covariates, EmitterPlaces, Law, PathLoss};
use crate::site::Site;

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
/// Squares of this side, in units of the survey's resolution, are not split.
pub(super) const FINEST: f64 = 0.45;
/// The survey is extended by this share of its longer side.
const MARGIN: f64 = 0.15;
/// Candidates solved for at once.
const CHUNK: usize = 64;

/// Prior of a place: even over the survey, falling off outside.
fn log_prior(area: &Area, place: Site) -> f64 {
    let out = area.region.outside_m(place);
    if out == 0.0 { 0.0 } else { -2.0 - out / (0.1 * area.longest_m()) }
}

/// The first lattice: its places and its spacing in metres.
fn lattice(area: &Area) -> (Vec<Site>, f64) {
    let margin = MARGIN * area.longest_m();
    let (wide, high) =
        (area.region.width_m() + 2.0 * margin, area.region.height_m() + 2.0 * margin);
    let spacing = (wide * high / FIRST as f64).sqrt().max(area.resolution_m);
    let count = |length: f64| (length / spacing).ceil().max(1.0) as usize;
    let (across, down) = (count(wide), count(high));
    let start = |low: f64, high: f64, count: usize| {
        0.5 * (low + high) - 0.5 * (count as f64 - 1.0) * spacing
    };
    let (low, high) = (area.region.low, area.region.high);
    let (left, bottom) = (start(low.x_m, high.x_m, across), start(low.y_m, high.y_m, down));
    let height = 0.5 * (low.z_m + high.z_m);
    let places = (0..across * down)
        .map(|i| {
            let (x, y) = (i / down, i % down);
            Site::new(left + spacing * x as f64, bottom + spacing * y as f64).at_height(height)
        })
        .collect();
    (places, spacing)
}

/// One emitter's data as the search sees them.
pub(super) struct PlaceSearch<'a> {
    pub area: Area,
    pub law: &'a Law,
    pub sites: &'a [Site],
    pub covariates: &'a Covariates,
    pub values: &'a [f64],
}

impl PlaceSearch<'_> {
    fn trends(&self, places: &[Site]) -> Vec<PathLoss> {
        let half_values = self.covariates.half(self.values);
        places
            .par_chunks(CHUNK)
            .map(|chunk| {
                let mut losses: Mat<f64> = self.law.losses(chunk, self.sites);
                self.covariates.cholesky.half_solve(losses.as_mut());
                self.covariates.trends(self.law, &half_values, &losses)
            })
            .collect::<Vec<_>>()
            .concat()
    }

    fn judge(&self, places: &[Site], spacing: &[f64]) -> Vec<Candidate> {
        let trends = self.trends(places);
        (0..places.len())
            .map(|i| {
                let log_prior = log_prior(&self.area, places[i])
                    + 2.0 * (spacing[i] / self.area.resolution_m).ln();
                let log_posterior = log_prior + trends[i].log_evidence;
                Candidate { at: places[i], spacing: spacing[i], log_prior, log_posterior }
            })
            .collect()
    }

    /// The places that matter, with their prior weights. `coarse` judges the first lattice: the
    /// same sensors, or some of them.
    pub fn search(&self, coarse: &PlaceSearch<'_>) -> EmitterPlaces {
        let (first, spacing) = lattice(&self.area);
        let mut found = coarse.judge(&first, &vec![spacing; first.len()]);
        if coarse.sites.len() < self.sites.len() {
            found.sort_by(|a, b| b.log_posterior.total_cmp(&a.log_posterior));
            found.truncate(SECOND);
            let (at, spacing): (Vec<_>, Vec<_>) = found.iter().map(|c| (c.at, c.spacing)).unzip();
            found = self.judge(&at, &spacing);
        }
        let finest = FINEST * self.area.resolution_m;
        for _ in 0..ROUNDS {
            found.sort_by(|a, b| b.log_posterior.total_cmp(&a.log_posterior));
            let floor = found[0].log_posterior - 7.0;
            let mut split: Vec<Candidate> = Vec::new();
            found.retain(|c| {
                let fine = c.spacing <= finest || c.log_posterior < floor || split.len() == SPLIT;
                if !fine {
                    split.push(*c);
                }
                fine
            });
            if split.is_empty() {
                break;
            }
            let corners = [[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]];
            let children: Vec<(Site, f64)> = split
                .iter()
                .flat_map(|c| {
                    let step = 0.25 * c.spacing;
                    corners.map(|[x, y]| (c.at.moved(x * step, y * step), 2.0 * step))
                })
                .collect();
            let (at, spacing): (Vec<_>, Vec<_>) = children.into_iter().unzip();
            found.extend(self.judge(&at, &spacing));
        }
        found.sort_by(|a, b| b.log_posterior.total_cmp(&a.log_posterior));
        let floor = found[0].log_posterior - 9.0;
        let most = (MOST_ENTRIES / self.sites.len()).clamp(MOST.0, MOST.1);
        found.truncate(most);
        found.retain(|c| c.log_posterior > floor);
        EmitterPlaces {
            at: found.iter().map(|c| c.at).collect(),
            log_prior: found.iter().map(|c| c.log_prior).collect(),
        }
    }
}

/// A place with the side of the square that it stands for, in metres.
#[derive(Clone, Copy)]
struct Candidate {
    at: Site,
    spacing: f64,
    /// Density times area.
    log_prior: f64,
    log_posterior: f64,
}
