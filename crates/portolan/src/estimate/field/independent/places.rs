//! Where the transmitter of a band may stand: a lattice over the survey and well beyond it, its
//! squares split where the evidence is.

use super::super::law::EmitterPlaces;
use crate::site::{Region, Site};

/// Squares that are split in a round, rounds, and the share of the posterior from which on a square
/// is worth it.
const SPLIT: usize = 48;
const ROUNDS: usize = 5;
const WORTH: f64 = 1e-3;

/// Modes that are looked at closely, and how many nats a mode may lie below the first.
const MODES: usize = 6;
const DEPTH: f64 = 7.0;
/// The lattice about a mode: its spacing in standard deviations, steps to either side, and the widest
/// deviation in sides of the square that it was found in.
const STEP: f64 = 0.7;
const STEPS: i32 = 4;
const WIDEST: f64 = 0.7;
/// Steps of the climb to a mode, and the smallest over the side of its square.
const CLIMBS: usize = 40;
const LEAST: f64 = 1e-3;

/// The lattice reaches beyond the survey by this share of its longer side, which is at least this
/// share of the extent.
const MARGIN: f64 = 0.3;
const NARROWEST: f64 = 1e-3;
/// A square is laid out in so many parts along each side to see how much of it modes cover.
const COVER_PARTS: usize = 8;

/// About so many places, evenly spread, with their prior: even over the survey, falling off outside.
/// And their spacing in metres. `extent_m` is that of the sensors, heights included.
pub(super) fn lattice(region: &Region, extent_m: f64, count: usize) -> (EmitterPlaces, f64) {
    let longest = region.width_m().max(region.height_m()).max(NARROWEST * extent_m);
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
    about_modes(&mut found, judge)?;
    Some(EmitterPlaces {
        at: found.iter().map(|s| s.at).collect(),
        log_prior: found.iter().map(|s| s.log_prior).collect(),
    })
}

/// Puts a fine lattice about every mode in place of what squares hold there: a square whose centre
/// says little may hold half of a mode at its edge.
fn about_modes(
    squares: &mut Vec<Square>,
    judge: impl Fn(&[Site]) -> Option<Vec<f64>>,
) -> Option<()> {
    let mut fine: Vec<Square> = Vec::new();
    let mut modes: Vec<Mode> = Vec::new();
    // Squares from which a climb led to a mode that was known: they stay, and are not tried again.
    let mut tried: Vec<Site> = Vec::new();
    for _ in 0..MODES {
        let open = squares
            .iter()
            .filter(|s| !modes.iter().any(|mode| mode.holds(s.at)) && !tried.contains(&s.at));
        let Some(best) = open.copied().max_by(|a, b| a.log_posterior.total_cmp(&b.log_posterior))
        else {
            break;
        };
        let density = best.log_prior - 2.0 * best.side.ln();
        let mode = Mode::about(best, &judge)?;
        if modes.iter().any(|known| known.holds(mode.at)) {
            tried.push(best.at);
            continue;
        }
        let top = fine.iter().map(|s| s.log_posterior).fold(f64::NEG_INFINITY, f64::max);
        if mode.log_evidence + density + 2.0 * best.side.ln() < top - DEPTH {
            break;
        }
        let steps = -STEPS..=STEPS;
        let at: Vec<Site> = steps
            .clone()
            .flat_map(|i| steps.clone().map(move |j| (i, j)))
            .map(|(i, j)| mode.at(STEP * f64::from(i), STEP * f64::from(j)))
            .filter(|at| !modes.iter().any(|known| known.holds(*at)))
            .collect();
        let area = STEP * STEP * mode.sd[0] * mode.sd[1];
        for (at, evidence) in at.iter().zip(judge(&at)?) {
            let log_prior = density + area.ln();
            let log_posterior = log_prior + evidence;
            fine.push(Square { at: *at, side: area.sqrt(), log_prior, log_posterior });
        }
        modes.push(mode);
    }
    *squares = squares.iter().filter_map(|square| square.beside(&modes)).chain(fine).collect();
    // What is left of rounding at the edges.
    let total: f64 = squares.iter().map(|s| s.log_prior.exp()).sum();
    squares.iter_mut().for_each(|s| s.log_prior -= total.ln());
    Some(())
}

/// A maximum of the evidence, its principal axes and the standard deviation along each.
struct Mode {
    at: Site,
    log_evidence: f64,
    axes: [[f64; 2]; 2],
    sd: [f64; 2],
    /// How far the lattice reaches along each axis.
    reach: [f64; 2],
}

impl Mode {
    /// Climbs from the centre of a square.
    fn about(square: Square, judge: impl Fn(&[Site]) -> Option<Vec<f64>>) -> Option<Self> {
        let (mut at, mut step) = (square.at, 0.5 * square.side);
        let least = LEAST * square.side;
        let mut value = *judge(&[at])?.first()?;
        let mut curved = [[0.0; 2]; 2];
        for _ in 0..CLIMBS {
            // The eight places about it give the slope and the curvature too.
            let ring: Vec<Site> = RING.iter().map(|(x, y)| at.moved(step * x, step * y)).collect();
            let around = judge(&ring)?;
            let bend = |a: usize, b: usize| (2.0 * value - around[a] - around[b]) / (step * step);
            let cross = (around[5] + around[6] - around[4] - around[7]) / (4.0 * step * step);
            curved = [[bend(0, 1), cross], [cross, bend(2, 3)]];
            let best = (0..RING.len()).max_by(|a, b| around[*a].total_cmp(&around[*b]))?;
            if around[best] > value {
                (at, value) = (ring[best], around[best]);
                continue;
            }
            // Half a deviation is near enough, and far enough to see how the evidence bends.
            if curved[0][0].max(curved[1][1]) * step * step < 0.5 || step < least {
                break;
            }
            step *= 0.5;
        }
        let (axes, bends) = principal(curved);
        let sd = bends.map(|bend| match bend > 0.0 {
            true => bend.sqrt().recip().clamp(0.5 * step, WIDEST * square.side),
            false => WIDEST * square.side,
        });
        let reach = sd.map(|sd| (f64::from(STEPS) + 0.5) * STEP * sd);
        Some(Self { at, log_evidence: value, axes, sd, reach })
    }

    /// The place so many deviations along each axis.
    fn at(&self, a: f64, b: f64) -> Site {
        let [u, v] = self.axes;
        let (a, b) = (a * self.sd[0], b * self.sd[1]);
        self.at.moved(a * u[0] + b * v[0], a * u[1] + b * v[1])
    }

    fn holds(&self, at: Site) -> bool {
        let (x, y) = (at.x_m - self.at.x_m, at.y_m - self.at.y_m);
        let along = |axis: usize| (x * self.axes[axis][0] + y * self.axes[axis][1]).abs();
        along(0) <= self.reach[0] && along(1) <= self.reach[1]
    }
}

/// Neighbours of a place: along x, along y, and across.
const RING: [(f64, f64); 8] = [
    (1.0, 0.0),
    (-1.0, 0.0),
    (0.0, 1.0),
    (0.0, -1.0),
    (1.0, 1.0),
    (1.0, -1.0),
    (-1.0, 1.0),
    (-1.0, -1.0),
];

/// Unit vectors and values of a symmetric matrix of two rows.
fn principal(m: [[f64; 2]; 2]) -> ([[f64; 2]; 2], [f64; 2]) {
    let angle = 0.5 * (2.0 * m[0][1]).atan2(m[0][0] - m[1][1]);
    let (sin, cos) = angle.sin_cos();
    let along =
        |u: [f64; 2]| u[0] * u[0] * m[0][0] + 2.0 * u[0] * u[1] * m[0][1] + u[1] * u[1] * m[1][1];
    let axes = [[cos, sin], [-sin, cos]];
    (axes, axes.map(along))
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

impl Square {
    /// What modes leave of it; None if they cover it.
    fn beside(self, modes: &[Mode]) -> Option<Self> {
        let step = self.side / COVER_PARTS as f64;
        let along = |part: usize| step * (part as f64 + 0.5) - 0.5 * self.side;
        let free: Vec<[f64; 2]> = (0..COVER_PARTS * COVER_PARTS)
            .map(|part| [along(part % COVER_PARTS), along(part / COVER_PARTS)])
            .filter(|[x, y]| !modes.iter().any(|mode| mode.holds(self.at.moved(*x, *y))))
            .collect();
        let count = free.len() as f64;
        if free.is_empty() || free.len() == COVER_PARTS * COVER_PARTS {
            return (!free.is_empty()).then_some(self);
        }
        let mean = |axis: usize| free.iter().map(|part| part[axis]).sum::<f64>() / count;
        let share = (count / (COVER_PARTS * COVER_PARTS) as f64).ln();
        Some(Self {
            at: self.at.moved(mean(0), mean(1)),
            log_prior: self.log_prior + share,
            log_posterior: self.log_posterior + share,
            ..self
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_are_split_where_the_evidence_is_and_keep_their_prior() {
        let region = Region::around(&[Site::new(0.0, 0.0), Site::new(100.0, 60.0)]).unwrap();
        let (first, spacing) = lattice(&region, 100.0, 96);
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

    /// Weights and places under a normal evidence, and its centre.
    fn under_normal(sd: [f64; 2], finest: f64) -> (Vec<f64>, Vec<Site>, Site) {
        let region = Region::around(&[Site::new(0.0, 0.0), Site::new(400.0, 400.0)]).unwrap();
        let (first, spacing) = lattice(&region, 500.0, 160);
        let truth = Site::new(203.0, 188.0);
        let log = |s: &Site| {
            let (x, y) = ((s.x_m - truth.x_m) / sd[0], (s.y_m - truth.y_m) / sd[1]);
            -0.5 * (x * x + y * y)
        };
        let judge = |at: &[Site]| Some(at.iter().map(log).collect());
        let found = refined(&first, spacing, finest, judge).unwrap();
        let logs = found.at.iter().zip(&found.log_prior).map(|(s, p)| p + log(s)).collect();
        (super::super::super::law::normalised(logs).0, found.at, truth)
    }

    /// A climb that ended in a known mode once took away the squares that it began in.
    #[test]
    fn a_mode_wider_than_its_lattice_loses_no_mass() {
        for (sd, finest) in [([14.0, 14.0], 4.0), ([30.0, 30.0], 7.0), ([60.0, 9.0], 7.0)] {
            let (weights, at, truth) = under_normal(sd, finest);
            let (mean, found) = super::super::super::law::mean_place(&weights, &at);
            let off = [(mean.x_m - truth.x_m) / sd[0], (mean.y_m - truth.y_m) / sd[1]];
            assert!(off.iter().all(|off| off.abs() < 0.05), "{sd:?}: {off:?}");
            let ratio = [found[0] / sd[0], found[1] / sd[1]];
            assert!(ratio.iter().all(|r| (0.95..1.06).contains(r)), "{sd:?}: {ratio:?}");
            // Rings about the mode hold what they should.
            let radius =
                |s: &Site| ((s.x_m - truth.x_m) / sd[0]).hypot((s.y_m - truth.y_m) / sd[1]);
            for (inner, outer) in [(0.0, 0.8), (0.8, 1.4), (1.4, 2.0), (2.0, 2.8)] {
                let share = |r: f64| 1.0 - (-0.5f64 * r * r).exp();
                let held: f64 = weights
                    .iter()
                    .zip(&at)
                    .filter(|(_, s)| (inner..outer).contains(&radius(s)))
                    .map(|(w, _)| w)
                    .sum();
                let due = share(outer) - share(inner);
                assert!((held - due).abs() < 0.06, "{sd:?}, {inner} to {outer}: {held}, not {due}");
            }
        }
    }
}
