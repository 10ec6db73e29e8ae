//! Many bands that share one law and nothing else: y = m + a + g(x) + noise, with a band's own
//! level a ~ N(0, variance of levels), g exponential, noise the nugget. Entries that were not heard
//! take part through a soft floor: a reading y is heard with chance Phi((y - floor) / softness).
//!
//! Heard entries are exactly Gaussian. Those not heard enter by expectation propagation (Minka
//! 2001; Rasmussen and Williams 2006, section 3.6), all at once in every sweep: each becomes a
//! reading of its own value and noise, so that whoever predicts need not know of silence. The law
//! is the likeliest one under weak priors, found by the gradient of the evidence, which at the fixed
//! point of the propagation has a closed form (Seeger 2005).

use std::f64::consts::FRAC_1_SQRT_2;

use faer::Mat;
use rayon::prelude::*;

use super::lattice::posterior_points;
use super::quasi_newton::descend;
use super::{Correlation, Covariance, Family, Scatter, clustered};
use crate::error::EstimateError;
use crate::likelihood::bin::erfcx;
use crate::linalg::Cholesky;
use crate::link::DB_PER_LN;
use crate::progress::Progress;
use crate::site::{Site, extent_m};

/// What is known of one band, in logarithms of power.
#[derive(Clone, Debug, Default)]
pub(crate) struct BandSample {
    pub sites: Vec<Site>,
    pub values: Vec<f64>,
    /// The nugget's share of every reading: one over how often it was read.
    pub share: Vec<f64>,
    /// Stated noise variance of every reading, beside the nugget.
    pub stated: Vec<f64>,
    /// Where it was listened for and not heard.
    pub silent: Vec<Site>,
    /// Logarithms of power that the silent entries lie below, one for each; none where they lie below
    /// the floor of hearing.
    pub limits: Vec<f64>,
    /// How far repeated readings of one place scatter about their mean, which stands in `values`.
    pub scatter: Scatter,
}

/// How readings are heard.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Hearing {
    /// The logarithm of the power that is heard every other time.
    pub floor: f64,
    /// How softly: a standard deviation in ln power.
    pub softness: f64,
}

impl Hearing {
    /// For a field of this mean and for readings of this variance (the field's own and the noise):
    /// the chance of being heard, and the mean of what is then reported.
    pub fn heard(&self, mean: f64, variance: f64) -> (f64, f64) {
        let spread = (self.softness * self.softness + variance).sqrt();
        let z = (mean - self.floor) / spread;
        let (log_chance, hazard) = upper_tail(-z);
        (log_chance.exp(), mean + variance / spread * hazard)
    }

    /// In the words of a report.
    pub fn fitted(&self) -> [(&'static str, f64); 2] {
        [("floor_db", self.floor * DB_PER_LN), ("floor_softness_db", self.softness * DB_PER_LN)]
    }

    /// The standard deviation of what is reported where it is heard.
    pub fn heard_deviation(&self, mean: f64, variance: f64) -> f64 {
        let square = self.softness * self.softness + variance;
        let z = (mean - self.floor) / square.sqrt();
        let hazard = upper_tail(-z).1;
        (variance - variance * variance / square * hazard * (hazard + z)).max(0.0).sqrt()
    }
}

/// ln Phi(-z) and phi(z) / Phi(-z).
fn upper_tail(z: f64) -> (f64, f64) {
    let scale = (2.0 / std::f64::consts::PI).sqrt();
    if z > 0.0 {
        let scaled = erfcx(z * FRAC_1_SQRT_2);
        ((0.5 * scaled).ln() - 0.5 * z * z, scale / scaled)
    } else {
        let mass = 0.5 * libm::erfc(z * FRAC_1_SQRT_2);
        (mass.ln(), 0.5 * scale * (-0.5 * z * z).exp() / mass)
    }
}

/// What all bands share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PooledLaw {
    pub decorrelation_m: f64,
    pub sill: f64,
    pub nugget: f64,
    /// Mean of the bands' levels, and their variance.
    pub level: f64,
    pub level_variance: f64,
    /// Where some entries were not heard.
    pub hearing: Option<Hearing>,
}

impl PooledLaw {
    pub fn covariance(&self) -> Covariance {
        Covariance {
            family: Family::Exponential,
            decorrelation_m: self.decorrelation_m,
            sill: self.sill,
            nugget: self.nugget,
        }
    }
}

/// Work of one evaluation of the evidence that is worth its time: the sum of cubes of the bands'
/// entries.
const MOST_WORK: f64 = 3e8;
/// Entries of a band that the law is fitted to.
const MOST_ENTRIES: usize = 320;
/// Entries of a band that are conditioned on together; of more, patches of neighbours.
const TOGETHER: usize = 512;
const PATCH: usize = 96;
/// Rounds of the descent, and the change of the log evidence that ends it.
const ROUNDS: usize = 40;
const ENOUGH: f64 = 0.02;
/// Sweeps of the propagation, its damping, and the change of a value, in units of its deviation,
/// that ends it.
const SWEEPS: usize = 25;
const DAMPING: f64 = 0.8;
const SETTLED: f64 = 1e-3;

/// Silence as readings: a value and a noise variance each.
#[derive(Clone, Debug, Default)]
pub(crate) struct PseudoReadings {
    pub values: Vec<f64>,
    pub noise: Vec<f64>,
}

/// Logarithms of decorrelation, sill, nugget and variance of levels; level; floor; logarithm of the
/// softness.
const VARIABLES: usize = 7;
type Point = [f64; VARIABLES];

fn law_at(x: &[f64], hears: bool) -> PooledLaw {
    PooledLaw {
        decorrelation_m: x[0].exp(),
        sill: x[1].exp(),
        nugget: x[2].exp(),
        level_variance: x[3].exp(),
        level: x[4],
        hearing: hears.then(|| Hearing { floor: x[5], softness: x[6].exp() }),
    }
}

/// The standard deviation of a receiver's noise before any reading, in dB, and that of its logarithm:
/// two of three receivers err by 1.3 to 5.4 dB.
pub(crate) const NOISE_PRIOR: (f64, f64) = (2.7, 0.7);
/// Mean and standard deviation of the logarithm of the decorrelation distance over the extent of a
/// survey, before any reading.
pub(crate) const REACH_PRIOR: (f64, f64) = (-2.0, 2.5);
/// Readings up to which the laws that they leave possible are averaged, and the most laws.
const AVERAGED: usize = 1200;
const MOST_LAWS: usize = 16;
/// The decorrelation distance of a second start, in the sensors' mean distance over the usual one.
const SHORT: f64 = 1.5;

/// The likeliest law of some bands; None where there is not a single reading.
pub(crate) fn pooled_law(
    samples: &[BandSample],
    progress: &Progress<'_>,
) -> Result<Option<PooledLaw>, EstimateError> {
    let Some(search) = Search::new(samples) else { return Ok(None) };
    Ok(Some(law_at(&search.likeliest(&search.start, progress)?, search.hears)))
}

/// The laws that some bands leave possible with their weights, the likeliest first; that alone where
/// there are many readings, or silence. None where there is not a single reading.
pub(crate) fn pooled_laws(
    samples: &[BandSample],
    progress: &Progress<'_>,
) -> Result<Option<Vec<(f64, PooledLaw)>>, EstimateError> {
    let Some(search) = Search::new(samples) else { return Ok(None) };
    let best = search.likeliest(&search.start, progress)?;
    let readings: usize = search.samples.iter().map(|s| s.values.len()).sum();
    if search.hears || readings > AVERAGED {
        return Ok(Some(vec![(1.0, law_at(&best, search.hears))]));
    }
    // Noise and a field that changes within the sensors' distance look alike.
    let short = search.likeliest(&search.short(), progress)?;
    // Decorrelation, sill and nugget; levels are averaged over in closed form.
    let whole = |x: &[f64]| {
        let mut all = best.clone();
        all[..x.len()].copy_from_slice(x);
        all
    };
    let value = |x: &[f64]| Ok::<_, EstimateError>(search.objective(&whole(x), &[], progress)?.0);
    let bounds: Vec<(f64, f64)> = best[..3].iter().map(|x| (x - 9.0, x + 9.0)).collect();
    let found =
        posterior_points(value, &[best[..3].to_vec(), short[..3].to_vec()], &bounds, MOST_LAWS)?;
    Ok(Some(found.into_iter().map(|(w, x)| (w, law_at(&whole(&x), false))).collect()))
}

/// The posterior of a law.
struct Search {
    samples: Vec<BandSample>,
    hears: bool,
    start: Point,
    /// What each variable is before any reading, and how far it strays from that.
    centre: Point,
    widths: Point,
}

/// The objective, its slope, and what silence says in every band, where any is heard.
type Evaluated = (f64, Vec<f64>, Option<Vec<PseudoReadings>>);

impl Search {
    fn new(samples: &[BandSample]) -> Option<Self> {
        let mut all: Vec<f64> = samples.iter().flat_map(|s| s.values.iter().copied()).collect();
        if all.is_empty() {
            return None;
        }
        let sites: Vec<Site> =
            samples.iter().flat_map(|s| s.sites.iter().chain(&s.silent).copied()).collect();
        let extent = extent_m(&sites);
        let variance = within(samples);
        all.sort_by(f64::total_cmp);
        let hears = samples.iter().any(|s| !s.silent.is_empty());
        let middle = all.iter().sum::<f64>() / all.len() as f64;
        let start: Point = [
            (0.3 * extent).ln(),
            (0.75 * variance).ln(),
            (0.25 * variance).ln(),
            (0.3 * variance).ln(),
            // What is heard is the upper part.
            if hears { middle - variance.sqrt() } else { middle },
            all[all.len() / 20],
            (4.0 / DB_PER_LN).ln(),
        ];
        let mut centre = start;
        centre[0] = REACH_PRIOR.0 + extent.ln();
        centre[2] = 2.0 * (NOISE_PRIOR.0 / DB_PER_LN).ln();
        let widths =
            [REACH_PRIOR.1, 1.5, 2.0 * NOISE_PRIOR.1, 1.5, 4.0 * variance.sqrt(), 2.0, 0.5];
        Some(Self { samples: affordable(samples), hears, start, centre, widths })
    }

    fn variables(&self) -> usize {
        if self.hears { VARIABLES } else { 5 }
    }

    /// The negative logarithm of the posterior, its gradient, and what silence says; `pseudo` is what
    /// it said under a law nearby, or nothing.
    fn objective(
        &self,
        x: &[f64],
        pseudo: &[PseudoReadings],
        progress: &Progress<'_>,
    ) -> Result<Evaluated, EstimateError> {
        progress.check()?;
        let law = law_at(x, self.hears);
        let nothing = PseudoReadings::default();
        let parts: Vec<Option<(f64, Point, PseudoReadings)>> = self
            .samples
            .par_iter()
            .enumerate()
            .map(|(i, sample)| evidence(sample, &law, pseudo.get(i).unwrap_or(&nothing)))
            .collect();
        let (mut value, mut slope) = (0.0, vec![0.0; x.len()]);
        let mut said = Vec::with_capacity(parts.len());
        for part in parts {
            let Some((log_evidence, gradient, found)) = part else {
                return Ok((f64::INFINITY, vec![0.0; x.len()], None));
            };
            value -= log_evidence;
            slope.iter_mut().zip(gradient).for_each(|(s, g)| *s -= g);
            said.push(found);
        }
        for i in 0..x.len() {
            let off = (x[i] - self.centre[i]) / self.widths[i];
            value += 0.5 * off * off;
            slope[i] += off / self.widths[i];
        }
        Ok((value, slope, Some(said)))
    }

    /// A start for a field that changes within the sensors' distance.
    fn short(&self) -> Point {
        let sensors = self.samples.iter().map(|s| s.sites.len()).max().unwrap_or(1);
        let mut start = self.start;
        start[0] += (SHORT / (sensors as f64).sqrt()).ln();
        let both = start[1].exp() + start[2].exp();
        (start[1], start[2]) = ((0.95 * both).ln(), (0.05 * both).ln());
        start
    }

    fn likeliest(&self, start: &Point, progress: &Progress<'_>) -> Result<Vec<f64>, EstimateError> {
        let mut pseudo: Vec<PseudoReadings> = Vec::new();
        let objective = |x: &[f64]| {
            let (value, slope, said) = self.objective(x, &pseudo, progress)?;
            pseudo = said.unwrap_or_else(|| std::mem::take(&mut pseudo));
            Ok::<_, EstimateError>((value, slope))
        };
        descend(objective, &start[..self.variables()], 1.0, ENOUGH, ROUNDS)
    }
}

/// Variance within the bands, or over all of them where none has two readings.
fn within(samples: &[BandSample]) -> f64 {
    let (mut sum, mut freedom) = (0.0, 0.0);
    for sample in samples.iter().filter(|s| s.values.len() > 1) {
        let count = sample.values.len() as f64;
        let mean = sample.values.iter().sum::<f64>() / count;
        sum += sample.values.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
        freedom += count - 1.0;
    }
    let usual = (6.0 / DB_PER_LN).powi(2);
    // What is usual counts as two readings.
    (sum + 2.0 * usual) / (freedom + 2.0)
}

/// As many bands, with as many entries each, as an evaluation can afford: spread over all of them.
fn affordable(samples: &[BandSample]) -> Vec<BandSample> {
    let read: Vec<&BandSample> =
        samples.iter().filter(|s| s.values.len() + s.silent.len() > 0).collect();
    let small: Vec<BandSample> = read.iter().map(|s| s.thinned(MOST_ENTRIES)).collect();
    let work = |s: &BandSample| ((s.values.len() + s.silent.len()) as f64).powi(3);
    let total: f64 = small.iter().map(work).sum();
    let kept = ((small.len() as f64 * (MOST_WORK / total.max(1.0))).ceil() as usize)
        .clamp(4.min(small.len()), small.len());
    (0..kept).map(|i| small[(2 * i + 1) * small.len() / (2 * kept)].clone()).collect()
}

impl BandSample {
    /// Clusters of neighbouring entries, about so many.
    fn thinned(&self, most: usize) -> BandSample {
        let heard = self.sites.len();
        let sites: Vec<Site> = self.sites.iter().chain(&self.silent).copied().collect();
        let kept = clustered(&sites, most);
        let (loud, quiet): (Vec<usize>, Vec<usize>) = kept.into_iter().partition(|i| *i < heard);
        self.with_silence(self.part(&loud), &quiet, &sites)
    }

    /// A part of it with some of its silent entries, counted behind those that were heard.
    fn with_silence(&self, part: BandSample, quiet: &[usize], sites: &[Site]) -> BandSample {
        let heard = self.sites.len();
        let limit = |i: &usize| self.limits.get(i - heard).copied();
        BandSample {
            silent: quiet.iter().map(|&i| sites[i]).collect(),
            limits: quiet.iter().filter_map(limit).collect(),
            ..part
        }
    }

    /// The power that a silent entry lies below, in logarithms.
    fn limit(&self, silent: usize, hearing: &Hearing) -> f64 {
        self.limits.get(silent).copied().unwrap_or(hearing.floor)
    }

    /// Some of the readings, without silence.
    pub fn part(&self, kept: &[usize]) -> BandSample {
        let pick = |all: &[f64]| kept.iter().map(|&i| all[i]).collect::<Vec<f64>>();
        BandSample {
            sites: kept.iter().map(|&i| self.sites[i]).collect(),
            values: pick(&self.values),
            share: pick(&self.share),
            stated: pick(&self.stated),
            silent: Vec::new(),
            limits: Vec::new(),
            scatter: self.scatter.clone(),
        }
    }

    /// Noise variance of every reading.
    pub fn noise(&self, nugget: f64) -> Vec<f64> {
        self.share.iter().zip(&self.stated).map(|(share, s)| nugget * share + s).collect()
    }

    /// What silence says under a law.
    pub fn pseudo(&self, law: &PooledLaw) -> Result<PseudoReadings, EstimateError> {
        let failed = || EstimateError::Numerical("a band's covariance cannot be factorised".into());
        if self.silent.is_empty() {
            return Ok(PseudoReadings::default());
        }
        let heard = self.sites.len();
        let sites: Vec<Site> = self.sites.iter().chain(&self.silent).copied().collect();
        if sites.len() <= TOGETHER {
            let (_, _, pseudo) =
                evidence(self, law, &PseudoReadings::default()).ok_or_else(failed)?;
            return Ok(pseudo);
        }
        // Patch by patch: silence is a matter of the neighbourhood.
        let mut all = PseudoReadings {
            values: vec![0.0; self.silent.len()],
            noise: vec![1.0; self.silent.len()],
        };
        for patch in patches(&sites, PATCH) {
            let (loud, quiet): (Vec<usize>, Vec<usize>) =
                patch.into_iter().partition(|i| *i < heard);
            if quiet.is_empty() {
                continue;
            }
            let part = self.with_silence(self.part(&loud), &quiet, &sites);
            let (_, _, pseudo) =
                evidence(&part, law, &PseudoReadings::default()).ok_or_else(failed)?;
            for (j, &i) in quiet.iter().enumerate() {
                all.values[i - heard] = pseudo.values[j];
                all.noise[i - heard] = pseudo.noise[j];
            }
        }
        Ok(all)
    }
}

/// Places in patches of at most so many neighbours: halved along their longer side.
fn patches(sites: &[Site], most: usize) -> Vec<Vec<usize>> {
    let mut done = Vec::new();
    let mut open: Vec<Vec<usize>> = vec![(0..sites.len()).collect()];
    while let Some(mut patch) = open.pop() {
        if patch.len() <= most {
            done.push(patch);
            continue;
        }
        let range = |of: fn(&Site) -> f64| {
            let (low, high) =
                patch.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), &i| {
                    (f64::min(l, of(&sites[i])), f64::max(h, of(&sites[i])))
                });
            high - low
        };
        let of: fn(&Site) -> f64 =
            if range(|s| s.x_m) >= range(|s| s.y_m) { |s| s.x_m } else { |s| s.y_m };
        patch.sort_by(|&a, &b| of(&sites[a]).total_cmp(&of(&sites[b])).then(a.cmp(&b)));
        let rest = patch.split_off(patch.len() / 2);
        open.push(patch);
        open.push(rest);
    }
    done
}

/// Log evidence of a band, its gradient, and what silence says; None where the covariance cannot be
/// factorised. `known` is what silence said under a law nearby.
fn evidence(
    sample: &BandSample,
    law: &PooledLaw,
    known: &PseudoReadings,
) -> Option<(f64, Point, PseudoReadings)> {
    let heard = sample.values.len();
    let sites: Vec<Site> = sample.sites.iter().chain(&sample.silent).copied().collect();
    let count = sites.len();
    let correlation = Correlation::exponential(law.decorrelation_m);
    let correlations = correlation.matrix(&sites);
    let mut values: Vec<f64> = sample.values.clone();
    let mut noise = sample.noise(law.nugget);
    let start = match (&law.hearing, known.values.len() == sample.silent.len()) {
        (_, true) => known.clone(),
        (Some(hearing), false) => PseudoReadings {
            values: (0..sample.silent.len())
                .map(|i| sample.limit(i, hearing) - hearing.softness)
                .collect(),
            noise: vec![20.0 * (law.sill + law.nugget); sample.silent.len()],
        },
        (None, false) => return None,
    };
    values.extend(&start.values);
    noise.extend(&start.noise);
    let mut fixed = Fixed::new(&correlations, law, &values, &noise)?;
    if let Some(hearing) = &law.hearing
        && count > heard
    {
        for _ in 0..SWEEPS {
            let mut change: f64 = 0.0;
            for i in heard..count {
                let Cavity { mean, variance, .. } = fixed.cavity(i, &values, &noise);
                let spread = (hearing.softness.powi(2) + law.nugget + variance).sqrt();
                let z = (mean - sample.limit(i - heard, hearing)) / spread;
                let hazard = upper_tail(z).1;
                let curvature = (hazard * (hazard - z)).max(1e-12) / (spread * spread);
                // The site that gives the moments of the field below the floor.
                let precision = 1.0 / (1.0 / curvature - variance).max(1e-9 * law.sill);
                let value = mean - hazard / spread / curvature;
                let old = 1.0 / noise[i];
                let next = DAMPING * precision + (1.0 - DAMPING) * old;
                let moved =
                    (DAMPING * precision * value + (1.0 - DAMPING) * old * values[i]) / next;
                change = change.max((moved - values[i]).abs() * next.max(old).sqrt());
                change = change.max((next.ln() - old.ln()).abs());
                (values[i], noise[i]) = (moved, 1.0 / next);
            }
            fixed = Fixed::new(&correlations, law, &values, &noise)?;
            if change < SETTLED.sqrt() {
                break;
            }
        }
    }
    let (mut total, mut gradient) = fixed.gaussian(sample, &correlations, &sites, law);
    if let Some(hearing) = &law.hearing {
        // Whoever was read was heard; below limits of their own nothing is said of the others.
        let told = if sample.limits.is_empty() { &sample.values[..] } else { &[] };
        for value in told {
            let z = (value - hearing.floor) / hearing.softness;
            let (log_chance, hazard) = upper_tail(-z);
            total += log_chance;
            gradient[5] -= hazard / hearing.softness;
            gradient[6] -= hazard * z;
        }
        for i in heard..count {
            let Cavity { mean, variance, whole } = fixed.cavity(i, &values, &noise);
            let square = hearing.softness.powi(2) + law.nugget + variance;
            let z = (mean - sample.limit(i - heard, hearing)) / square.sqrt();
            let (log_chance, hazard) = upper_tail(z);
            let off = mean - values[i];
            total +=
                log_chance + 0.5 * (std::f64::consts::TAU * whole).ln() + 0.5 * off * off / whole;
            let by_square = 0.5 * hazard * z / square;
            gradient[2] += by_square * law.nugget;
            if sample.limits.is_empty() {
                gradient[5] += hazard / square.sqrt();
            }
            gradient[6] += by_square * 2.0 * hearing.softness.powi(2);
        }
    }
    let pseudo = PseudoReadings { values: values.split_off(heard), noise: noise.split_off(heard) };
    total.is_finite().then_some((total, gradient, pseudo))
}

/// All entries of a band as readings: K = sill R + variance of levels + noise, factorised.
struct Fixed {
    log_det: f64,
    inverse: Mat<f64>,
    /// K^-1 (values - level).
    pull: Vec<f64>,
    quadratic: f64,
}

/// What the others say of an entry: mean and variance of the field, and the variance of its reading.
struct Cavity {
    mean: f64,
    variance: f64,
    whole: f64,
}

impl Fixed {
    fn new(
        correlations: &Mat<f64>,
        law: &PooledLaw,
        values: &[f64],
        noise: &[f64],
    ) -> Option<Self> {
        let n = values.len();
        let matrix = Mat::from_fn(n, n, |i, j| {
            let own = if i == j { noise[i] + 1e-9 * law.sill } else { 0.0 };
            if i >= j { law.sill * correlations[(i, j)] + law.level_variance + own } else { 0.0 }
        });
        let cholesky = Cholesky::new(matrix.as_ref())?;
        let inverse = cholesky.inverse();
        let rest: Vec<f64> = values.iter().map(|v| v - law.level).collect();
        let pull: Vec<f64> =
            (0..n).map(|i| (0..n).map(|j| inverse[(i, j)] * rest[j]).sum()).collect();
        let quadratic = pull.iter().zip(&rest).map(|(p, r)| p * r).sum();
        Some(Self { log_det: cholesky.log_det(), inverse, pull, quadratic })
    }

    /// The entry as the others predict it (Rasmussen and Williams 2006, section 5.4.2).
    fn cavity(&self, i: usize, values: &[f64], noise: &[f64]) -> Cavity {
        let own = self.inverse[(i, i)];
        let whole = 1.0 / own;
        let variance = (whole - noise[i]).max(1e-9 * whole);
        Cavity { mean: values[i] - self.pull[i] / own, variance, whole }
    }

    /// Log density of the values and its gradient.
    fn gaussian(
        &self,
        sample: &BandSample,
        correlations: &Mat<f64>,
        sites: &[Site],
        law: &PooledLaw,
    ) -> (f64, Point) {
        let n = self.pull.len();
        let total = -0.5 * (self.log_det + self.quadratic + n as f64 * std::f64::consts::TAU.ln());
        // d / dK = (b b^T - K^-1) / 2, entry by entry.
        let (mut reach, mut sill, mut levels) = (0.0, 0.0, 0.0);
        for j in 0..n {
            for i in j..n {
                let both = self.pull[i] * self.pull[j] - self.inverse[(i, j)];
                let twice = if i == j { 0.5 * both } else { both };
                let correlation = correlations[(i, j)];
                let far = sites[i].distance_m(sites[j]) / law.decorrelation_m;
                reach += twice * correlation * far;
                sill += twice * correlation;
                levels += twice;
            }
        }
        let nugget: f64 = sample
            .share
            .iter()
            .enumerate()
            .map(|(i, share)| 0.5 * share * (self.pull[i] * self.pull[i] - self.inverse[(i, i)]))
            .sum();
        let level: f64 = self.pull.iter().sum();
        let total = total + sample.scatter.log_density(law.nugget);
        let repeats: f64 = sample.scatter.squares.iter().sum();
        let variance = law.nugget + sample.scatter.stated;
        let nugget = nugget + 0.5 * (repeats / variance - sample.scatter.freedom) / variance;
        let gradient = [
            law.sill * reach,
            law.sill * sill,
            law.nugget * nugget,
            law.level_variance * levels,
            level,
            0.0,
            0.0,
        ];
        (total, gradient)
    }
}

#[cfg(test)]
mod tests;
