//! What new readings say has changed: the level of a band, the shape of its field, or all of it. How
//! surprising they are is judged by the survey's own history: its sessions are predicted from those
//! before them in the same way, and scores are divided by what they are there. Tails of readings are
//! heavier than normal ones. Of all bands as many are called changed as hold the rate of false
//! discoveries (Benjamini and Hochberg, Journal of the Royal Statistical Society B 57, 1995).

use std::collections::BTreeSet;

use ndarray::Array2;
use rayon::prelude::*;

use super::Drift;
use super::law::evenly;
use super::levels::{Fresh, History, Surprise};
use super::rows::Rows;
use crate::error::EstimateError;
use crate::link::DB_PER_LN;
use crate::progress::Progress;
use crate::site::Site;

/// Sessions of the history that scores are judged by, spread over all of it, and the fewest surprises
/// that tell how heavy tails are.
const JUDGED: usize = 8;
const FEWEST: usize = 20;
/// Sessions that come before a level can be expected.
const BEFORE: usize = 2;
/// New readings of a band, or places, that are judged: of more, some from everywhere.
const MOST_FRESH: usize = 300;
/// Fewer new readings than this do not tell a shape, or that a band was replaced.
const SHAPED: usize = 4;
const REPLACED: usize = 6;
/// A band is gone where it was expected above its faintest reading at so many places.
const SILENT: usize = 3;
/// Nineteen readings in twenty lie above so many standard deviations below the mean.
const NINETY: f64 = 1.645;

/// What became of a band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeKind {
    /// Nothing that can be told from chance.
    Same,
    /// It is louder or fainter everywhere.
    Level,
    /// Its field has another shape.
    Shape,
    /// Its old map says nothing of the new readings: another transmitter, or another place.
    Replaced,
    /// It was expected at several of the places and heard at none.
    Gone,
    /// The model has no readings of it.
    New,
}

impl ChangeKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Level => "level",
            Self::Shape => "shape",
            Self::Replaced => "replaced",
            Self::Gone => "gone",
            Self::New => "new",
        }
    }
}

/// What new readings say of a band.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Change {
    /// The band of the model, counted from 0; of a new one that of the new readings.
    pub band: usize,
    /// New readings of it.
    pub readings: usize,
    /// By how much it is louder than expected, in dB; NaN without readings.
    pub level_db: f64,
    /// That in standard deviations, calibrated on the survey's history.
    pub level_z: f64,
    /// Chance of a misfit of its shape as large as this one where nothing changed; NaN where there
    /// are too few readings.
    pub shape_p: f64,
    /// What became of it.
    pub kind: ChangeKind,
}

impl Change {
    /// Of a band that the model has no readings of.
    pub(crate) fn new_band(band: usize, readings: usize) -> Self {
        Self { readings, kind: ChangeKind::New, ..Self::nothing(band) }
    }

    fn nothing(band: usize) -> Self {
        let (level_db, level_z, shape_p) = (f64::NAN, f64::NAN, f64::NAN);
        Self { band, readings: 0, level_db, level_z, shape_p, kind: ChangeKind::Same }
    }
}

/// By how much scores and squares exceed what a normal distribution says of them.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Tails {
    level: f64,
    shape: f64,
}

/// Chance of a score this large on either side.
pub(super) fn two_sided(z: f64) -> f64 {
    libm::erfc(z.abs() * std::f64::consts::FRAC_1_SQRT_2)
}

/// Squares as a normal score (Wilson and Hilferty, Proceedings of the National Academy of Sciences 17,
/// 1931), and the squares of a score.
fn score_of(squares: f64, freedom: f64) -> f64 {
    let part = 2.0 / (9.0 * freedom);
    ((squares / freedom).cbrt() - (1.0 - part)) / part.sqrt()
}

fn squares_of(score: f64, freedom: f64) -> f64 {
    let part = 2.0 / (9.0 * freedom);
    freedom * (1.0 - part + score * part.sqrt()).powi(3)
}

/// By how much the values' quantiles exceed those expected; 1 at least.
fn excess(mut values: Vec<f64>, expected: [(f64, f64); 2]) -> f64 {
    values.sort_by(f64::total_cmp);
    if values.len() < FEWEST {
        return 1.0;
    }
    let at = |q: f64| values[((q * values.len() as f64) as usize).min(values.len() - 1)];
    expected.into_iter().map(|(q, usual)| at(q) / usual).fold(1.0, f64::max)
}

/// What new readings, of the bands of the history, say of every band at a false discovery rate.
pub(super) fn changes(
    drift: &Drift,
    new: &Rows,
    silent: Option<&Array2<bool>>,
    rate: f64,
    progress: &Progress<'_>,
) -> Result<Vec<Change>, EstimateError> {
    let known = |t: &&f64| !t.is_nan();
    let times: Vec<f64> = new.time_s.iter().filter(known).copied().collect();
    // Readings without a time are a new session: 0 / 0 is NaN.
    let time_s = times.iter().sum::<f64>() / times.len() as f64;
    let bands = 0..drift.rows.bands();
    let fresh: Vec<Fresh> = bands.clone().map(|band| all_of(new, band)).collect();
    let mut counts: Vec<usize> =
        fresh.iter().map(|f| f.sites.len()).filter(|count| *count > 0).collect();
    counts.sort_unstable();
    let usual = counts.get(counts.len() / 2).copied().unwrap_or(1);
    let tails = tails(drift, usual, &progress.part(0.0..0.8))?;
    let levels = drift.bands();
    let found: Vec<(Change, f64)> = bands
        .into_par_iter()
        .map(|band| {
            progress.check()?;
            let own = &fresh[band];
            let history = History { rows: &drift.rows, band, law: &drift.law, before: None };
            let none = Change { readings: own.sites.len(), ..Change::nothing(band) };
            if own.sites.is_empty() {
                let gone = missed(drift, new, silent, band, time_s) >= SILENT;
                return Ok((
                    Change { kind: if gone { ChangeKind::Gone } else { none.kind }, ..none },
                    1.0,
                ));
            }
            let Some(found) = levels[band].surprise(history, own, time_s) else {
                return Ok((none, 1.0));
            };
            let level_z = found.score / tails.level;
            let shape_p = match own.sites.len() >= SHAPED {
                true => {
                    0.5 * libm::erfc(
                        score_of(found.squares / tails.shape, found.freedom)
                            * std::f64::consts::FRAC_1_SQRT_2,
                    )
                }
                false => f64::NAN,
            };
            let shape = if shape_p.is_nan() { 1.0 } else { shape_p };
            let level = two_sided(level_z);
            let kind = match () {
                () if shape >= level => ChangeKind::Level,
                () if replaced(own, &found, tails, levels[band].noise()) => ChangeKind::Replaced,
                () => ChangeKind::Shape,
            };
            let level_db = DB_PER_LN * found.level;
            Ok((
                Change { level_db, level_z, shape_p, kind, ..none },
                (2.0 * shape.min(level)).min(1.0),
            ))
        })
        .collect::<Result<_, EstimateError>>()?;
    let judged = |change: &Change| {
        !matches!(change.kind, ChangeKind::New | ChangeKind::Gone) && !change.level_z.is_nan()
    };
    let mut chances: Vec<f64> = found.iter().filter(|f| judged(&f.0)).map(|f| f.1).collect();
    chances.sort_by(f64::total_cmp);
    let count = chances.len() as f64;
    let holds = |i: &usize| chances[*i] <= rate * (i + 1) as f64 / count;
    let most = (0..chances.len()).rev().find(holds).map_or(-1.0, |i| chances[i]);
    let called = |(change, chance): (Change, f64)| match judged(&change) && chance > most {
        true => Change { kind: ChangeKind::Same, ..change },
        false => change,
    };
    Ok(found.into_iter().map(called).collect())
}

/// Whether the shape of the old map explains nothing of the new readings.
fn replaced(own: &Fresh, found: &Surprise, tails: Tails, noise: f64) -> bool {
    let count = own.values.len();
    let mean = own.values.iter().sum::<f64>() / count as f64;
    let about = own.values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / noise;
    count >= REPLACED && found.squares / tails.shape >= about.max(found.freedom)
}

/// The readings of a band, whatever their time; of very many, some from everywhere.
fn all_of(rows: &Rows, band: usize) -> Fresh {
    let mut fresh = Fresh::default();
    let read = |row: &usize| !rows.values[[*row, band]].is_nan();
    let mut own: Vec<usize> = (0..rows.sites.len()).filter(read).collect();
    own.sort_by_key(|row| rows.place[*row]);
    for row in evenly(&own, MOST_FRESH) {
        let at = (row, band);
        fresh.sites.push(rows.sites[row]);
        fresh.values.push(rows.values[at]);
        fresh.share.push(rows.share(at));
        fresh.stated.push(rows.stated(at));
    }
    fresh
}

/// Places at which a band was expected above its faintest reading: those that listened for it in vain
/// where the readings say which, else all.
fn missed(
    drift: &Drift,
    new: &Rows,
    silent: Option<&Array2<bool>>,
    band: usize,
    time_s: f64,
) -> usize {
    let faintest = drift.rows.values.column(band);
    let faintest = faintest.iter().copied().filter(|v| !v.is_nan()).fold(f64::INFINITY, f64::min);
    let history = History { rows: &drift.rows, band, law: &drift.law, before: None };
    let levels = &drift.bands()[band];
    let places: Vec<Site> = match silent {
        None => new.places.clone(),
        Some(silent) => {
            let rows = silent.column(band);
            let listened = rows.iter().enumerate().filter(|(_, silent)| **silent);
            let listened: BTreeSet<usize> = listened.map(|(row, _)| new.place[row]).collect();
            listened.into_iter().map(|place| new.places[place]).collect()
        }
    };
    let places = evenly(&places, MOST_FRESH);
    let Some((mean, covariance)) = levels.foreseen(history, &places, time_s) else { return 0 };
    let low = |i: &usize| mean[*i] - NINETY * (covariance[(*i, *i)] + levels.noise()).sqrt();
    (0..mean.len()).filter(|i| low(i) > faintest).count()
}

/// How heavy the tails of the history are: sessions predicted from those before, by about as many
/// readings of each as the new ones have.
fn tails(drift: &Drift, usual: usize, progress: &Progress<'_>) -> Result<Tails, EstimateError> {
    let levels = drift.bands();
    let mut jobs: Vec<(usize, usize)> = Vec::new();
    for (band, own) in levels.iter().enumerate() {
        let sessions = own.sessions();
        if sessions.len() <= BEFORE {
            continue;
        }
        let later = &sessions[BEFORE..];
        let count = later.len().min(JUDGED);
        jobs.extend((0..count).map(|i| (band, later[(2 * i + 1) * later.len() / (2 * count)])));
    }
    let found: Vec<Option<Surprise>> = jobs
        .par_iter()
        .map(|&(band, session)| {
            progress.check()?;
            let rows = &drift.rows;
            let own: Vec<usize> = rows
                .timed(band)
                .into_iter()
                .filter(|r| rows.session[*r] == Some(session))
                .collect();
            let kept = own.len().min(usual);
            let mut fresh = Fresh::default();
            for i in 0..kept {
                // Other rows in every band and session.
                let row = own[(i * own.len() / kept + band + session) % own.len()];
                let at = (row, band);
                fresh.sites.push(rows.sites[row]);
                fresh.values.push(rows.values[at]);
                fresh.share.push(rows.share(at));
                fresh.stated.push(rows.stated(at));
            }
            let time_s = rows.sessions.middle[session];
            let history = History { rows, band, law: &drift.law, before: Some(session) };
            Ok(levels[band].surprise(history, &fresh, time_s))
        })
        .collect::<Result<_, EstimateError>>()?;
    let found: Vec<Surprise> = found.into_iter().flatten().collect();
    let level = found.iter().map(|f| f.score.abs()).collect();
    let shaped = || found.iter().filter(|f| f.freedom + 1.0 >= SHAPED as f64);
    let ratio = |score: f64| {
        let of = |f: &Surprise| f.squares / squares_of(score, f.freedom);
        shaped().map(of).collect::<Vec<f64>>()
    };
    let shape = excess(ratio(1.645), [(0.95, 1.0); 2]).max(excess(ratio(2.326), [(0.99, 1.0); 2]));
    Ok(Tails { level: excess(level, [(0.95, 1.960), (0.99, 2.576)]), shape })
}
