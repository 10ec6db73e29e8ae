//! The level of a band in every session, found together with its static field at the places: both
//! are Gaussian before the readings, so that few sums of the readings say all (Rasmussen and Williams
//! 2006, section 2.1). Factors R of the covariances before keep the system well conditioned: the
//! posterior covariance is R (I + R' J R)^-1 R', with the information J of the readings.

use std::collections::{BTreeMap, BTreeSet};

use faer::Mat;

use super::law::{LEVEL_DB, TimeLaw, evenly};
use super::rows::Rows;
use crate::gaussian_process::{Correlation, clustered};
use crate::linalg::{Cholesky, add_product, product};
use crate::link::DB_PER_LN;
use crate::site::Site;

/// The most places that levels are found at; of more, clusters of neighbours, and so many places of
/// every session.
const MOST_PLACES: usize = 512;
const OF_SESSION: usize = 4;
const BESIDE: usize = 2;
/// Factors on the variances of the level that a band may have, and the standard deviation of their
/// logarithm before any reading: some transmitters are steady, others are not.
const SCALES: [f64; 6] = [0.1, 0.3, 1.0, 3.0, 10.0, 30.0];
const SCALES_DEVIATION: f64 = 1.0;
/// Readings that the law's noise counts for beside a band's own.
const LAW_COUNT: f64 = 10.0;

/// What is known of a band's level. Moments are given by weights of the sessions.
pub(super) struct BandLevels {
    /// The sessions with readings of the band.
    sessions: Vec<usize>,
    mean: Vec<f64>,
    covariance: Mat<f64>,
    /// Covariance of each level with the field, the mean over places.
    with_field: Vec<f64>,
    /// What is not known of the field because levels are not known: variance, the mean over places.
    of_field: f64,
    /// The factor on the variances of the law.
    scale: f64,
    /// What the noise about the levelled readings is multiplied by: levels fit some of it.
    pub of_noise: f64,
    /// The band's own noise variance.
    noise: f64,
}

/// The level of a band at a moment, in ln power, and the variance of the field there for what is not
/// known of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct LevelAt {
    pub mean: f64,
    pub variance: f64,
}

impl BandLevels {
    pub fn of(rows: &Rows, band: usize, law: &TimeLaw) -> Self {
        let unknown = Self {
            sessions: Vec::new(),
            mean: Vec::new(),
            covariance: Mat::zeros(0, 0),
            with_field: Vec::new(),
            of_field: 0.0,
            scale: 1.0,
            of_noise: 1.0,
            noise: law.noise,
        };
        let Some(system) = System::new(rows, band, law, None) else { return unknown };
        let found = system.solve(law, law.noise, &SCALES).and_then(|first| {
            let noise = system.noise(&first, law.noise);
            Some((system.solve(law, noise, &SCALES)?, noise))
        });
        found.map_or(unknown, |(solved, noise)| system.levels(&solved, noise))
    }

    pub fn at(&self, rows: &Rows, law: &TimeLaw, time_s: f64) -> LevelAt {
        let (weights, unseen) = towards(&self.sessions, rows, law, time_s);
        let dot = |values: &[f64]| weights.iter().zip(values).map(|(w, v)| w * v).sum::<f64>();
        let known: f64 = (0..weights.len())
            .map(|a| {
                let row = |b: usize| weights[b] * self.covariance[(a, b)];
                weights[a] * (0..weights.len()).map(row).sum::<f64>()
            })
            .sum();
        let shared = 2.0 * dot(&self.with_field);
        let seen = (self.of_field + shared + known).max(0.0);
        LevelAt { mean: dot(&self.mean), variance: seen + self.scale * unseen }
    }
}

/// The weights of some sessions' levels for that of a moment, and the variance under the law that they
/// leave. A moment during one of them has its level; NaN is the next session.
fn towards(sessions: &[usize], rows: &Rows, law: &TimeLaw, time_s: f64) -> (Vec<f64>, f64) {
    let middle = &rows.sessions.middle;
    let during = rows.sessions.during(time_s);
    let time_s = if time_s.is_nan() { rows.sessions.next_s() } else { time_s };
    if let Some(own) = during.and_then(|s| sessions.iter().position(|known| *known == s)) {
        return ((0..sessions.len()).map(|t| f64::from(u8::from(t == own))).collect(), 0.0);
    }
    let with = |s: &usize| law.level(middle[*s] - time_s, false);
    let mut weights = Mat::from_fn(sessions.len(), 1, |t, _| with(&sessions[t]));
    let Some(factor) = Cholesky::new(before(sessions, rows, law, 1.0).as_ref()) else {
        return (vec![0.0; sessions.len()], law.level(0.0, true));
    };
    factor.half_solve(weights.as_mut());
    factor.other_half_solve(weights.as_mut());
    let weights: Vec<f64> = weights.col(0).iter().copied().collect();
    let explained: f64 = sessions.iter().zip(&weights).map(|(s, w)| w * with(s)).sum();
    (weights, (law.level(0.0, true) - explained).max(0.0))
}

/// Covariance of the levels of some sessions before any reading.
fn before(sessions: &[usize], rows: &Rows, law: &TimeLaw, scale: f64) -> Mat<f64> {
    let middle = &rows.sessions.middle;
    Mat::from_fn(sessions.len(), sessions.len(), |a, b| {
        scale * law.level(middle[sessions[a]] - middle[sessions[b]], a == b)
    })
}

/// One band's readings, added up by place and session.
struct System<'a> {
    rows: &'a Rows,
    places: Vec<Site>,
    sessions: Vec<usize>,
    /// Place, session, value less the mean, share and stated variance of every reading.
    entries: Vec<(usize, usize, f64, f64, f64)>,
    /// The mean of the values.
    mean: f64,
    /// Of the field's covariance at the places.
    field: Cholesky,
}

/// Places of sessions that have too few of the places that are kept, and those beside them.
fn missing(rows: &Rows, own: &[usize], numbers: &[usize], kept: &[usize]) -> Vec<usize> {
    let mut of: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for &row in own {
        let session = rows.session[row].expect("rows with a time");
        of.entry(session).or_default().insert(rows.place[row]);
    }
    let known = |place: &&usize| kept.binary_search(place).is_ok();
    let few = of.into_values().filter(|all| all.iter().filter(known).count() < OF_SESSION);
    let own = few.flat_map(|all| evenly(&Vec::from_iter(all), OF_SESSION));
    // Places are in the order of a curve: those beside them tell the field there.
    let beside = |place: usize| place.saturating_sub(BESIDE)..=place + BESIDE;
    let more: Vec<usize> =
        own.flat_map(beside).filter(|place| numbers.binary_search(place).is_ok()).collect();
    evenly(&more, MOST_PLACES)
}

/// The posterior: places first, then sessions.
struct Solved {
    mean: Vec<f64>,
    /// (L^-1 R')' (L^-1 R') is the covariance.
    half: Mat<f64>,
    /// Of the field alone at each place, with levels known.
    alone: Vec<f64>,
    scale: f64,
}

impl<'a> System<'a> {
    /// The band's readings, or those before a session.
    fn new(rows: &'a Rows, band: usize, law: &TimeLaw, before: Option<usize>) -> Option<Self> {
        let mut own = rows.timed(band);
        own.retain(|row| before.is_none() || rows.session[*row] < before);
        let mut numbers: Vec<usize> = own.iter().map(|row| rows.place[*row]).collect();
        numbers.dedup();
        let all: Vec<Site> = numbers.iter().map(|place| rows.places[*place]).collect();
        let mut kept: Vec<usize> =
            clustered(&all, MOST_PLACES).into_iter().map(|i| numbers[i]).collect();
        kept.sort_unstable();
        if kept.len() < all.len() {
            kept.extend(missing(rows, &own, &numbers, &kept));
            kept.sort_unstable();
            kept.dedup();
        }
        let read: Vec<(usize, usize)> = own
            .iter()
            .filter_map(|row| Some((*row, kept.binary_search(&rows.place[*row]).ok()?)))
            .collect();
        let session = |row: usize| rows.session[row].expect("rows with a time");
        let mut sessions: Vec<usize> = read.iter().map(|(row, _)| session(*row)).collect();
        sessions.sort_unstable();
        sessions.dedup();
        if sessions.is_empty() {
            return None;
        }
        let mean =
            read.iter().map(|(row, _)| rows.values[[*row, band]]).sum::<f64>() / read.len() as f64;
        let entry = |&(row, place): &(usize, usize)| {
            let number = sessions.binary_search(&session(row)).expect("its session");
            let at = (row, band);
            (place, number, rows.values[at] - mean, rows.share(at), rows.stated(at))
        };
        let entries = read.iter().map(entry).collect();
        let places: Vec<Site> = kept.iter().map(|place| rows.places[*place]).collect();
        let mut covariance = Correlation::exponential(law.reach_m).matrix(&places);
        let level = (LEVEL_DB / DB_PER_LN).powi(2);
        for j in 0..places.len() {
            for i in 0..places.len() {
                // The lower half is all that there is.
                let (a, b) = (i.max(j), i.min(j));
                if i >= j {
                    covariance[(a, b)] = law.sill * covariance[(a, b)] + level;
                }
            }
            covariance[(j, j)] += 1e-9 * law.sill;
        }
        let field = Cholesky::new(covariance.as_ref())?;
        Some(Self { rows, places, sessions, entries, mean, field })
    }

    /// Field and levels, with the factor on the levels' variances that the readings make likeliest.
    fn solve(&self, law: &TimeLaw, noise: f64, scales: &[f64]) -> Option<Solved> {
        let (p, t) = (self.places.len(), self.sessions.len());
        let mut at_place = vec![0.0; p];
        let mut at_session = vec![0.0; t];
        let mut both = Mat::<f64>::zeros(p, t);
        let mut pull = Mat::<f64>::zeros(p + t, 1);
        for &(place, session, value, share, stated) in &self.entries {
            let weight = 1.0 / (noise * share + stated);
            at_place[place] += weight;
            at_session[session] += weight;
            both[(place, session)] += weight;
            pull[(place, 0)] += weight * value;
            pull[(p + session, 0)] += weight * value;
        }
        let field = self.field.lower();
        let weighed = Mat::from_fn(p, p, |i, j| at_place[i] * field[(i, j)]);
        let own = product(field.transpose(), weighed.as_ref());
        let across = product(field.transpose(), both.as_ref());
        let attempt = |scale: f64| {
            let level = before(&self.sessions, self.rows, law, scale);
            let level = Cholesky::new(level.as_ref())?;
            let level = level.lower();
            let crossed = product(across.as_ref(), level);
            let weighed = Mat::from_fn(t, t, |i, j| at_session[i] * level[(i, j)]);
            let levels = product(level.transpose(), weighed.as_ref());
            let matrix = Mat::from_fn(p + t, p + t, |i, j| {
                let one = f64::from(u8::from(i == j));
                one + match (i < p, j < p) {
                    (true, true) => own[(i, j)],
                    (false, true) => crossed[(j, i - p)],
                    (true, false) => crossed[(i, j - p)],
                    (false, false) => levels[(i - p, j - p)],
                }
            });
            let factor = Cholesky::new(matrix.as_ref())?;
            let mut root = Mat::zeros(p + t, p + t);
            for j in 0..p {
                (j..p).for_each(|i| root[(i, j)] = field[(i, j)]);
            }
            for j in 0..t {
                (j..t).for_each(|i| root[(p + i, p + j)] = level[(i, j)]);
            }
            let mut pulled = product(root.transpose(), pull.as_ref());
            factor.half_solve(pulled.as_mut());
            let log = scale.ln() / SCALES_DEVIATION;
            let evidence = 0.5 * (pulled.col(0).squared_norm_l2() - factor.log_det() - log * log);
            Some((evidence, scale, factor, root, pulled))
        };
        let found = scales.iter().filter_map(|scale| attempt(*scale));
        let (_, scale, factor, root, mut pulled) = found.max_by(|a, b| a.0.total_cmp(&b.0))?;
        factor.other_half_solve(pulled.as_mut());
        let mean = product(root.as_ref(), pulled.as_ref());
        let mut half = root.transpose().to_owned();
        factor.half_solve(half.as_mut());
        let alone = Mat::from_fn(p, p, |i, j| own[(i, j)] + f64::from(u8::from(i == j)));
        let mut known = field.transpose().to_owned();
        Cholesky::new(alone.as_ref())?.half_solve(known.as_mut());
        Some(Solved {
            mean: mean.col(0).iter().copied().collect(),
            half,
            alone: (0..p).map(|i| known.col(i).squared_norm_l2()).collect(),
            scale,
        })
    }

    /// Degrees of freedom that fitting takes from the readings: of the field and of the levels.
    fn taken(&self, solved: &Solved, noise: f64) -> (f64, f64) {
        let p = self.places.len();
        let covariance = product(solved.half.transpose(), solved.half.as_ref());
        let mut taken = (0.0, 0.0);
        for &(place, session, _, share, stated) in &self.entries {
            let weight = 1.0 / (noise * share + stated);
            let shared = covariance[(place, p + session)];
            taken.0 += weight * (covariance[(place, place)] + shared);
            taken.1 += weight * (covariance[(p + session, p + session)] + shared);
        }
        taken
    }

    /// The band's own noise: what its readings leave, drawn towards the law's.
    fn noise(&self, solved: &Solved, law: f64) -> f64 {
        let p = self.places.len();
        let (of_field, of_levels) = self.taken(solved, law);
        let freedom = (self.entries.len() as f64 - of_field - of_levels).max(0.0);
        let left = |&(place, session, value, share, stated): &(usize, usize, f64, f64, f64)| {
            let off = value - solved.mean[place] - solved.mean[p + session];
            (off * off - stated) / share
        };
        let squares = self.entries.iter().map(left).sum::<f64>().max(0.0);
        (squares + LAW_COUNT * law) / (freedom + LAW_COUNT)
    }

    fn levels(&self, solved: &Solved, noise: f64) -> BandLevels {
        let (p, t) = (self.places.len(), self.sessions.len());
        let covariance = product(solved.half.transpose(), solved.half.as_ref());
        let over_places = |of: &dyn Fn(usize) -> f64| (0..p).map(of).sum::<f64>() / p as f64;
        let count = self.entries.len() as f64;
        let (_, taken) = self.taken(solved, noise);
        // What repeats scatter by, before and after levels were taken out.
        let free = count - p as f64;
        let of_noise = if free > 1.0 { free / (free - taken).max(0.5 * free) } else { 1.0 };
        BandLevels {
            sessions: self.sessions.clone(),
            mean: solved.mean[p..].to_vec(),
            covariance: Mat::from_fn(t, t, |a, b| covariance[(p + a, p + b)]),
            with_field: (0..t).map(|a| over_places(&|i| covariance[(i, p + a)])).collect(),
            of_field: over_places(&|i| covariance[(i, i)] - solved.alone[i]),
            scale: solved.scale,
            of_noise,
            noise,
        }
    }
}

/// Readings of one band at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Fresh {
    pub sites: Vec<Site>,
    /// ln power.
    pub values: Vec<f64>,
    pub share: Vec<f64>,
    pub stated: Vec<f64>,
}

/// How far readings are from what was expected of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surprise {
    /// By how much the level is higher, in ln power, and that in its standard deviations.
    pub level: f64,
    pub score: f64,
    /// Sum of squares about that level in units of what is expected, and its degrees of freedom.
    pub squares: f64,
    pub freedom: f64,
}

/// A band with its history.
#[derive(Clone, Copy)]
pub(super) struct History<'a> {
    pub rows: &'a Rows,
    pub band: usize,
    pub law: &'a TimeLaw,
    /// Only what was read before this session.
    pub before: Option<usize>,
}

impl BandLevels {
    /// Mean and covariance of the band's field at places and a moment, in ln power. None where it has
    /// no readings.
    pub fn foreseen(
        &self,
        History { rows, band, law, before }: History<'_>,
        at: &[Site],
        time_s: f64,
    ) -> Option<(Vec<f64>, Mat<f64>)> {
        let system = System::new(rows, band, law, before)?;
        let solved = system.solve(law, self.noise, &[self.scale])?;
        let (p, n) = (system.places.len(), at.len());
        let (weights, unseen) = towards(&system.sessions, rows, law, time_s);
        let correlation = Correlation::exponential(law.reach_m);
        let constant = (LEVEL_DB / DB_PER_LN).powi(2);
        let field = |a: Site, b: Site| law.sill * correlation.between(a, b) + constant;
        let mut half = Mat::from_fn(p, n, |i, j| field(system.places[i], at[j]));
        system.field.half_solve(half.as_mut());
        let mut whole = half.clone();
        system.field.other_half_solve(whole.as_mut());
        // What each place sees of the posterior: the field at the places, and the moment's level.
        let seen = Mat::from_fn(p + weights.len(), n, |i, j| match i < p {
            true => whole[(i, j)],
            false => weights[i - p],
        });
        let known = product(solved.half.as_ref(), seen.as_ref());
        let mut covariance = product(known.transpose(), known.as_ref());
        add_product(covariance.as_mut(), half.transpose(), half.as_ref(), -1.0);
        for a in 0..n {
            for b in 0..n {
                covariance[(a, b)] += field(at[a], at[b]) + self.scale * unseen;
            }
        }
        let expected =
            |j: usize| seen.col(j).iter().zip(&solved.mean).map(|(s, m)| s * m).sum::<f64>();
        Some(((0..n).map(|j| system.mean + expected(j)).collect(), covariance))
    }

    /// What new readings of the band are beside the earlier ones.
    pub fn surprise(&self, history: History<'_>, fresh: &Fresh, time_s: f64) -> Option<Surprise> {
        let (expected, mut covariance) = self.foreseen(history, &fresh.sites, time_s)?;
        let n = expected.len();
        (0..n).for_each(|a| {
            covariance[(a, a)] += self.noise * fresh.share[a] + fresh.stated[a];
        });
        let factor = Cholesky::new(covariance.as_ref())?;
        let mut sides = Mat::from_fn(n, 2, |j, side| match side {
            0 => fresh.values[j] - expected[j],
            _ => 1.0,
        });
        factor.half_solve(sides.as_mut());
        let (off, one) = (sides.col(0), sides.col(1));
        let along: f64 = off.iter().zip(one.iter()).map(|(a, b)| a * b).sum();
        let weight = one.squared_norm_l2();
        Some(Surprise {
            level: along / weight,
            score: along / weight.sqrt(),
            squares: (off.squared_norm_l2() - along * along / weight).max(0.0),
            freedom: n as f64 - 1.0,
        })
    }

    /// The band's own noise variance.
    pub fn noise(&self) -> f64 {
        self.noise
    }

    /// The sessions that have readings of the band.
    pub fn sessions(&self) -> &[usize] {
        &self.sessions
    }
}
