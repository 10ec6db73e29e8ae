//! What changes in time, in all bands alike: beside a static field the drift of a band's level, and its
//! jitter from session to session. They are believed where the evidence of all bands together asks
//! for them, under weak priors (restricted likelihood with a
//! level of unknown height: Rasmussen and Williams 2006, sections 2.7 and 5.4; the penalty for a
//! part's parameters is Schwarz's, Annals of Statistics 6, 1978).

use faer::Mat;
use rayon::prelude::*;

use super::rows::Rows;
use crate::error::EstimateError;
use crate::gaussian_process::{NOISE_PRIOR, clustered, descend};
use crate::linalg::Cholesky;
use crate::link::DB_PER_LN;
use crate::model::{Archive, damaged};
use crate::progress::Progress;
use crate::site::{Site, extent_m};

/// Bands and readings of each that the law is judged by, and sessions that these are taken from.
const BANDS: usize = 10;
const READINGS: usize = 180;
const SESSIONS: usize = 10;
/// Fewer readings than this of a band say nothing.
const FEWEST: usize = 8;
/// Standard deviation in dB within which the level of a band may lie.
pub(super) const LEVEL_DB: f64 = 30.0;
const ROUNDS: usize = 30;
const ENOUGH: f64 = 0.05;
/// A part is believed if it is worth more than this in log evidence, beside Schwarz's penalty.
const SURE: f64 = 2.0;

/// Variances in ln power squared, lengths in metres, times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TimeLaw {
    pub reach_m: f64,
    pub sill: f64,
    /// Of a reading, without what the other parts explain.
    pub noise: f64,
    /// Of a band's level from session to session.
    pub jitter: f64,
    /// Of a band's level over time, and how long it is remembered.
    pub drift: f64,
    pub drift_s: f64,
}

/// Logarithms: reach, sill, noise, jitter, drift and its memory.
const STATIC: usize = 3;
const ALL: usize = 6;

impl TimeLaw {
    fn at(x: &[f64]) -> Self {
        let of = |i: usize| x.get(i).map_or(0.0, |v| v.exp());
        Self {
            reach_m: of(0),
            sill: of(1),
            noise: of(2),
            jitter: of(3),
            drift: of(4),
            drift_s: if x.len() > STATIC { of(5) } else { 1.0 },
        }
    }

    /// Covariance of a band's level at moments of two sessions; they may be the same.
    pub fn level(&self, lag_s: f64, same: bool) -> f64 {
        let own = if same { self.jitter } else { 0.0 };
        own + self.drift * (-lag_s.abs() / self.drift_s).exp()
    }

    pub fn save(&self, archive: &mut Archive) {
        let Self { reach_m, sill, noise, jitter, drift, drift_s } = *self;
        let all = [reach_m, sill, noise, jitter, drift, drift_s];
        archive.put_vector("law", &all);
    }

    pub fn load(archive: &Archive) -> Result<Self, EstimateError> {
        let all = archive.finite("law")?;
        if all.len() != ALL || all.iter().any(|v| *v <= 0.0) {
            return Err(damaged("law", "is not one of times").into());
        }
        Ok(Self::at(&all.iter().map(|v| v.ln()).collect::<Vec<f64>>()))
    }
}

/// The law of some readings; None where nothing is seen to change.
pub(super) fn fit(rows: &Rows, progress: &Progress<'_>) -> Result<Option<TimeLaw>, EstimateError> {
    let Some(search) = Search::new(rows) else { return Ok(None) };
    let best = |start: &[f64], progress: &Progress<'_>| {
        let objective = |x: &[f64]| search.objective(x, progress);
        let found = descend(objective, start, 1.0, ENOUGH, ROUNDS)?;
        let value = search.objective(&found, progress)?.0;
        Ok::<_, EstimateError>((found, value))
    };
    let grown = |x: &[f64]| [x, &search.centre[STATIC..]].concat();
    let (still, without) = best(&search.centre[..STATIC], &progress.part(0.0..0.5))?;
    let (moving, with) = best(&grown(&still), &progress.part(0.5..1.0))?;
    if with > without - search.price(ALL - STATIC) {
        return Ok(None);
    }
    Ok(Some(TimeLaw::at(&moving)))
}

/// Readings of one band: pairs in the lower half of a matrix, row by row.
struct Sample {
    values: Vec<f64>,
    /// One over how often each was read, and its stated noise.
    share: Vec<f64>,
    stated: Vec<f64>,
    apart_m: Vec<f64>,
    lag_s: Vec<f64>,
    /// Of one session.
    same: Vec<bool>,
}

struct Search {
    samples: Vec<Sample>,
    readings: f64,
    centre: [f64; ALL],
    widths: [f64; ALL],
}

impl Search {
    fn new(rows: &Rows) -> Option<Self> {
        let mut known: Vec<(usize, Vec<usize>)> = (0..rows.bands())
            .map(|band| (band, rows.timed(band)))
            .filter(|(_, own)| own.len() >= FEWEST)
            .collect();
        // The best known bands, and of those some from everywhere.
        known.sort_by_key(|(band, own)| (std::cmp::Reverse(own.len()), *band));
        known.truncate((known.len() / 2).max(BANDS));
        let kept = known.len().min(BANDS);
        let some = (0..kept).map(|i| &known[(2 * i + 1) * known.len() / (2 * kept)]);
        let chosen: Vec<Vec<(usize, usize)>> = some
            .enumerate()
            .map(|(i, (band, own))| {
                spread(rows, own, i).into_iter().map(|row| (row, *band)).collect()
            })
            .collect();
        let several = |own: &Vec<(usize, usize)>| {
            own.iter().any(|(row, _)| rows.session[*row] != rows.session[own[0].0])
        };
        let samples: Vec<Sample> =
            chosen.iter().filter(|own| several(own)).map(|own| Sample::new(rows, own)).collect();
        let readings: usize = samples.iter().map(|s| s.values.len()).sum();
        if samples.is_empty() {
            return None;
        }
        let squares = samples.iter().flat_map(|s| s.values.iter().map(|v| v * v)).sum::<f64>();
        let variance = (squares / readings as f64).max((1.0 / DB_PER_LN).powi(2));
        let extent = extent_m(&rows.sites).max(f64::MIN_POSITIVE);
        let span = rows.sessions.span().map_or(1.0, |(a, b)| (b - a).max(f64::MIN_POSITIVE));
        let db = |db: f64| 2.0 * (db / DB_PER_LN).ln();
        let centre = [
            (0.25 * extent).ln(),
            variance.ln(),
            db(NOISE_PRIOR.0),
            db(0.5),
            db(1.0),
            (0.3 * span).ln(),
        ];
        let widths = [2.0, 1.5, 2.0 * NOISE_PRIOR.1, 2.0, 2.0, 1.0];
        Some(Self { samples, readings: readings as f64, centre, widths })
    }

    /// What so many parameters must be worth.
    fn price(&self, parameters: usize) -> f64 {
        SURE + 0.5 * parameters as f64 * self.readings.ln()
    }

    /// The negative logarithm of the posterior and its gradient.
    fn objective(
        &self,
        x: &[f64],
        progress: &Progress<'_>,
    ) -> Result<(f64, Vec<f64>), EstimateError> {
        progress.check()?;
        let law = TimeLaw::at(x);
        let parts: Vec<Option<(f64, [f64; ALL])>> =
            self.samples.par_iter().map(|sample| sample.evidence(&law)).collect();
        let (mut value, mut slope) = (0.0, vec![0.0; x.len()]);
        for part in parts {
            let Some((log_evidence, gradient)) = part else {
                return Ok((f64::INFINITY, vec![0.0; x.len()]));
            };
            value -= log_evidence;
            slope.iter_mut().zip(gradient).for_each(|(s, g)| *s -= g);
        }
        for i in 0..x.len() {
            let off = (x[i] - self.centre[i]) / self.widths[i];
            value += 0.5 * off * off;
            slope[i] += off / self.widths[i];
        }
        Ok((value, slope))
    }
}

/// Rows of a band that show places and sessions together: neighbouring places, sessions from all over
/// the time; `turn` moves the choice, so that bands do not all show the same.
fn spread(rows: &Rows, own: &[usize], turn: usize) -> Vec<usize> {
    if own.len() <= READINGS {
        return own.to_vec();
    }
    let mut sessions: Vec<usize> = own.iter().filter_map(|row| rows.session[*row]).collect();
    sessions.sort_unstable();
    sessions.dedup();
    let mut count = sessions.len().min(SESSIONS);
    let inside = loop {
        let shift = turn % sessions.len().div_ceil(count);
        let kept: Vec<usize> = (0..count)
            .map(|i| sessions[(i * sessions.len() / count + shift) % sessions.len()])
            .collect();
        let of_kept = |row: &usize| rows.session[*row].is_some_and(|s| kept.contains(&s));
        let inside: Vec<usize> = own.iter().copied().filter(of_kept).collect();
        // Where sessions are small, more of them.
        if inside.len() >= READINGS || count == sessions.len() {
            break inside;
        }
        count = (2 * count).min(sessions.len());
    };
    if inside.len() <= READINGS {
        return inside;
    }
    let mut places: Vec<usize> = inside.iter().map(|row| rows.place[*row]).collect();
    places.sort_unstable();
    places.dedup();
    let sites: Vec<Site> = places.iter().map(|p| rows.places[*p]).collect();
    let most = (READINGS * places.len() / inside.len()).max(2);
    let near: Vec<usize> = clustered(&sites, most).into_iter().map(|i| places[i]).collect();
    let chosen: Vec<usize> =
        inside.into_iter().filter(|row| near.contains(&rows.place[*row])).collect();
    evenly(&chosen, 2 * READINGS)
}

/// At most so many of some values, from all over them.
pub(super) fn evenly<T: Copy>(all: &[T], most: usize) -> Vec<T> {
    let kept = all.len().min(most);
    (0..kept).map(|i| all[(2 * i + 1) * all.len() / (2 * kept)]).collect()
}

impl Sample {
    fn new(rows: &Rows, own: &[(usize, usize)]) -> Self {
        let values: Vec<f64> = own.iter().map(|at| rows.values[*at]).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let pairs = || (0..own.len()).flat_map(|i| (0..=i).map(move |j| (own[i].0, own[j].0)));
        let middle = |row: usize| rows.session[row].map_or(0.0, |s| rows.sessions.middle[s]);
        Self {
            values: values.iter().map(|v| v - mean).collect(),
            share: own.iter().map(|at| rows.share(*at)).collect(),
            stated: own.iter().map(|at| rows.stated(*at)).collect(),
            apart_m: pairs().map(|(a, b)| rows.sites[a].distance_m(rows.sites[b])).collect(),
            lag_s: pairs().map(|(a, b)| (middle(a) - middle(b)).abs()).collect(),
            same: pairs().map(|(a, b)| rows.session[a] == rows.session[b]).collect(),
        }
    }

    /// Log evidence under a law, and its gradient by the logarithms; None where the covariance cannot
    /// be factorised.
    fn evidence(&self, law: &TimeLaw) -> Option<(f64, [f64; ALL])> {
        let n = self.values.len();
        let level = (LEVEL_DB / DB_PER_LN).powi(2);
        let count = self.apart_m.len();
        let (mut field, mut drift) = (vec![0.0; count], vec![0.0; count]);
        for p in 0..count {
            let (h, lag) = (self.apart_m[p], self.lag_s[p]);
            field[p] = law.sill * (-h / law.reach_m).exp();
            if law.drift > 0.0 {
                drift[p] = law.drift * (-lag / law.drift_s).exp();
            }
        }
        let mut matrix = Mat::zeros(n, n);
        let mut p = 0;
        for i in 0..n {
            for j in 0..=i {
                let jitter = if self.same[p] { law.jitter } else { 0.0 };
                matrix[(i, j)] = level + field[p] + drift[p] + jitter;
                p += 1;
            }
            matrix[(i, i)] += law.noise * self.share[i] + self.stated[i];
        }
        let cholesky = Cholesky::new(matrix.as_ref())?;
        let mut weights = Mat::from_fn(n, 1, |i, _| self.values[i]);
        cholesky.half_solve(weights.as_mut());
        let square = weights.col(0).squared_norm_l2();
        cholesky.other_half_solve(weights.as_mut());
        let inverse = cholesky.inverse();
        let mut gradient = [0.0; ALL];
        let mut p = 0;
        for i in 0..n {
            for j in 0..=i {
                let twice = if i == j { 0.5 } else { 1.0 };
                let pull = twice * (weights[(i, 0)] * weights[(j, 0)] - inverse[(i, j)]);
                let (h, lag) = (self.apart_m[p], self.lag_s[p]);
                gradient[0] += pull * field[p] * h / law.reach_m;
                gradient[1] += pull * field[p];
                if i == j {
                    gradient[2] += pull * law.noise * self.share[i];
                }
                if self.same[p] {
                    gradient[3] += pull * law.jitter;
                }
                gradient[4] += pull * drift[p];
                gradient[5] += pull * drift[p] * lag / law.drift_s;
                p += 1;
            }
        }
        let tau = (2.0 * std::f64::consts::PI).ln();
        Some((-0.5 * (square + cholesky.log_det() + n as f64 * tau), gradient))
    }
}
