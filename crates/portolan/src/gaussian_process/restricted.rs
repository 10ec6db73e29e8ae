//! Decorrelation, sill and nugget by restricted likelihood, pooled over bands.
//!
//! The bands share one correlation and one ratio of nugget to sill; each has its own level. Where
//! sill and nugget are both free the sill is integrated out under an inverse gamma prior (Cressie
//! 1993, section 2.6.1; Gelman et al., Bayesian Data Analysis, section 14.2), which leaves
//! decorrelation and ratio. Noise has a weak prior: receivers err by a few dB, and readings far
//! apart cannot tell noise from a field that changes within their distance. Where readings are few,
//! the posterior is averaged over instead of taking its mode.

use faer::Mat;

use super::lattice::posterior_points;
use super::nelder_mead::{minimise, polish};
use super::{
    Correlation, Covariance, Family, Neighbours, REACH_PRIOR, Trend, TrendFrame, clustered,
};
use crate::error::EstimateError;
use crate::linalg::{Cholesky, add_product, product};
use crate::progress::Progress;
use crate::site::{Point, Site, extent_m};

/// Parameters that the user has fixed; the others are fitted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Fixed {
    /// The decorrelation distance in metres.
    pub decorrelation_m: Option<f64>,
    /// Variance of the process.
    pub sill: Option<f64>,
    /// Variance of what no neighbour shares.
    pub nugget: Option<f64>,
}

/// Sensors and bands without gaps between them.
#[derive(Clone)]
pub(crate) struct Sample<P = Site> {
    pub sites: Vec<P>,
    /// Sensors x bands.
    pub values: Mat<f64>,
    /// The nugget's share at each sensor: one over how often it was read.
    pub share: Vec<f64>,
    /// Stated noise variance of each sensor, beside the nugget.
    pub stated: Vec<f64>,
    /// How far repeated readings of one place scatter.
    pub scatter: Scatter,
}

/// Scatter of repeated readings about the mean of their place: with that mean, all that they say.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Scatter {
    /// Sum of squares of every band; empty where nothing was repeated.
    pub squares: Vec<f64>,
    /// Repeated readings less places that have them, of each band.
    pub freedom: f64,
    /// Mean stated variance of these readings.
    pub stated: f64,
}

impl Scatter {
    /// Log density of the scatter of one band under a noise variance, up to a constant.
    pub fn log_density(&self, nugget: f64) -> f64 {
        let variance = nugget + self.stated;
        let squares: f64 = self.squares.iter().sum();
        match self.freedom > 0.0 {
            true => -0.5 * (squares / variance + self.freedom * variance.ln()),
            false => 0.0,
        }
    }

    /// The derivative of [`Scatter::log_density`] by the noise variance.
    pub fn slope(&self, nugget: f64) -> f64 {
        let variance = nugget + self.stated;
        let squares: f64 = self.squares.iter().sum();
        match self.freedom > 0.0 {
            true => 0.5 * (squares / variance - self.freedom) / variance,
            false => 0.0,
        }
    }

    /// Whether it is one of so many bands.
    pub fn fits(&self, bands: usize) -> bool {
        let none = self.freedom == 0.0 && self.squares.is_empty();
        let sound = self.freedom > 0.0 && self.stated >= 0.0 && self.squares.len() == bands;
        none || (sound && self.squares.iter().all(|s| *s >= 0.0))
    }
}

/// What is assumed before any reading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Prior {
    /// The variance of readings.
    pub variance: f64,
    /// Mean and standard deviation of the logarithm of the noise's standard deviation, where noise
    /// is known in this unit.
    pub noise: Option<(f64, f64)>,
}

/// A covariance that readings leave possible.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WeightedCovariance {
    /// Its posterior weight; those of all sum to 1.
    pub weight: f64,
    /// The covariance.
    pub covariance: Covariance,
}

/// The most sensors whose likelihood is evaluated; of more, clusters of neighbours.
pub(crate) const MOST_SENSORS: usize = 640;
/// Sensors in the coarse search that finds the start.
const COARSE_SENSORS: usize = 128;
/// Places that the fine search starts from, and by what factor their decorrelation distances are apart.
const STARTS: usize = 2;
const APART: f64 = 5.0;
const RATIO_BOUNDS: (f64, f64) = (1e-6, 1e2);
/// The prior variance counts for the sill as much as this many readings.
const PRIOR_READINGS: f64 = 2.0;
/// Readings above which the likeliest covariance stands for all: averaging changes little then.
const AVERAGED: usize = 1500;
/// The most covariances that are averaged, and the most for each sensor of the largest band: each
/// has a matrix of its own.
const MOST_AVERAGED: usize = 20;
const FEWEST_AVERAGED: usize = 5;
const AVERAGED_SENSORS: usize = 3600;

/// Fits what is not fixed to all samples together: the likeliest covariance first, then others that
/// the readings leave possible, where readings are few.
pub(crate) fn fit<P: Point>(
    samples: &[Sample<P>],
    family: Family,
    trend: Trend,
    fixed: Fixed,
    prior: Prior,
    progress: &Progress<'_>,
) -> Result<Vec<WeightedCovariance>, EstimateError> {
    let only = |covariance| vec![WeightedCovariance { weight: 1.0, covariance }];
    if samples.is_empty() {
        // No band has two readings: any law will do, the map is flat in every band.
        let decorrelation_m = fixed.decorrelation_m.unwrap_or(1.0);
        let (sill, nugget) =
            (fixed.sill.unwrap_or(prior.variance), fixed.nugget.unwrap_or(prior.nugget()));
        return Ok(only(Covariance { family, decorrelation_m, sill, nugget }));
    }
    let search = Search::new(samples, family, trend, fixed, prior);
    let coarse: Vec<Sample<P>> = samples.iter().map(|s| s.thinned_to(COARSE_SENSORS)).collect();
    let fine: Vec<Sample<P>> = samples.iter().map(|s| s.thinned_to(MOST_SENSORS)).collect();

    let starts = search.starts(&coarse, progress)?;
    if starts.is_empty() {
        return Ok(only(search.covariance(&[], &fine)));
    }
    let bounds = search.bounds();
    let objective = |x: &[f64]| {
        progress.check()?;
        Ok::<_, EstimateError>(search.objective(x, &fine))
    };
    let entries: usize = fine.iter().map(|s| s.values.nrows() * s.values.ncols()).sum();
    let looked_at = if entries > AVERAGED { 1 } else { starts.len() };
    let mut modes = Vec::new();
    for start in &starts[..looked_at] {
        let (mode, value) = minimise(objective, start, &bounds, 0.7, 0.06, 60)?;
        if value.is_finite() {
            modes.push(polish(objective, mode, &bounds)?);
        }
    }
    let Some(best) = modes.first() else {
        return Err(EstimateError::Numerical(
            "no hyperparameters fit the readings: set decorrelation, sill and nugget".into(),
        ));
    };
    if entries > AVERAGED {
        return Ok(only(search.covariance(best, &fine)));
    }
    let sensors = fine.iter().map(|s| s.sites.len()).max().unwrap_or(1);
    let most = (AVERAGED_SENSORS / sensors).clamp(FEWEST_AVERAGED, MOST_AVERAGED);
    // The objective is twice a negative logarithm.
    let half = |x: &[f64]| objective(x).map(|value| 0.5 * value);
    let found = posterior_points(half, &modes, &bounds, most)?;
    Ok(found
        .into_iter()
        .map(|(weight, x)| WeightedCovariance { weight, covariance: search.covariance(&x, &fine) })
        .collect())
}

/// Twice the negative logarithm of the restricted likelihood of the likeliest covariance, up to a
/// constant of the readings: the lower, the better the places explain the readings.
pub(crate) fn misfit<P: Point>(
    samples: &[Sample<P>],
    family: Family,
    trend: Trend,
    prior: Prior,
    progress: &Progress<'_>,
) -> Result<f64, EstimateError> {
    let search = Search::new(samples, family, trend, Fixed::default(), prior);
    let coarse: Vec<Sample<P>> = samples.iter().map(|s| s.thinned_to(COARSE_SENSORS)).collect();
    let mut least = f64::INFINITY;
    for start in search.starts(&coarse, progress)? {
        let objective = |x: &[f64]| {
            progress.check()?;
            Ok::<_, EstimateError>(search.objective(x, samples))
        };
        let (_, value) = minimise(objective, &start, &search.bounds(), 0.7, 0.06, 60)?;
        least = least.min(value);
    }
    Ok(least)
}

impl Prior {
    /// The nugget before any reading.
    fn nugget(&self) -> f64 {
        self.noise.map_or(0.0, |(mean, _)| (2.0 * mean).exp())
    }

    /// Twice the negative logarithm of the density of a nugget, up to a constant.
    fn penalty(&self, nugget: f64) -> f64 {
        self.noise.map_or(0.0, |(mean, deviation)| {
            let off = (0.5 * nugget.max(f64::MIN_POSITIVE).ln() - mean) / deviation;
            off * off
        })
    }
}

struct Search {
    family: Family,
    trend: Trend,
    fixed: Fixed,
    prior: Prior,
    /// Pooled variance of the readings: the scale of sill and nugget.
    spread: f64,
    /// The diagonal of the survey.
    extent: f64,
    reach: (f64, f64),
    /// Some noise is stated in the readings' unit, which ties the scale down.
    stated: bool,
}

/// A likelihood in terms of the free parameters' logarithms.
impl Search {
    fn new<P: Point>(
        samples: &[Sample<P>],
        family: Family,
        trend: Trend,
        fixed: Fixed,
        prior: Prior,
    ) -> Self {
        let extent = samples.iter().map(|s| extent_m(&s.sites)).fold(0.0, f64::max);
        let closest = samples.iter().map(|s| Neighbours::new(&s.sites).closest());
        let least = closest.fold(f64::INFINITY, f64::min);
        let reach = ((0.5 * least).clamp(1e-4 * extent, extent), 20.0 * extent);
        let spread = pooled_variance(samples);
        let stated = samples.iter().any(|s| s.stated.iter().any(|v| *v > 0.0));
        Self { family, trend, fixed, prior, spread, extent, reach, stated }
    }

    /// Sill and nugget are searched as a ratio with the sill profiled out, unless one is fixed to
    /// a value that ties the scale down.
    fn profiled(&self) -> bool {
        let free = self.fixed.sill.is_none() && self.fixed.nugget.is_none_or(|n| n == 0.0);
        free && !self.stated
    }

    fn bounds(&self) -> Vec<(f64, f64)> {
        let ln = |(a, b): (f64, f64)| (a.ln(), b.ln());
        let scale = (self.spread * 1e-6, self.spread * 1e3);
        let mut bounds = Vec::new();
        if self.fixed.decorrelation_m.is_none() {
            bounds.push(ln(self.reach));
        }
        if self.profiled() {
            if self.fixed.nugget.is_none() {
                bounds.push(ln(RATIO_BOUNDS));
            }
        } else {
            let free = [self.fixed.sill, self.fixed.nugget].iter().filter(|f| f.is_none()).count();
            bounds.extend(std::iter::repeat_n(ln(scale), free));
        }
        bounds
    }

    /// Decorrelation and the two that the mode searches: (ratio, unused) or (sill, nugget).
    fn unpack(&self, x: &[f64]) -> (f64, f64, f64) {
        let mut rest = x.iter().map(|v| v.exp());
        let mut next = |fixed: Option<f64>| {
            fixed.unwrap_or_else(|| rest.next().expect("one value per free parameter"))
        };
        let decorrelation = next(self.fixed.decorrelation_m);
        if self.profiled() {
            (decorrelation, next(self.fixed.nugget), 0.0)
        } else {
            (decorrelation, next(self.fixed.sill), next(self.fixed.nugget))
        }
    }

    /// The logarithm of a share of the extent, within its bounds.
    fn reach_of(&self, share: f64) -> f64 {
        (share * self.extent).clamp(self.reach.0, self.reach.1).ln()
    }

    /// A grid search on few sensors: the best point starts the fine search, and the best of those that
    /// decorrelate much faster or more slowly starts another. Noise and a field that changes within the
    /// sensors' distance look alike.
    fn starts<P: Point>(
        &self,
        samples: &[Sample<P>],
        progress: &Progress<'_>,
    ) -> Result<Vec<Vec<f64>>, EstimateError> {
        let bounds = self.bounds();
        let mut axes: Vec<Vec<f64>> = Vec::new();
        if self.fixed.decorrelation_m.is_none() {
            axes.push([0.01, 0.03, 0.1, 0.3, 1.0, 3.0].map(|f| self.reach_of(f)).to_vec());
        }
        for &(low, high) in &bounds[axes.len()..] {
            let inner = if self.profiled() {
                vec![1e-6f64.ln(), 1e-3f64.ln(), 0.03f64.ln(), 0.3f64.ln()]
            } else {
                [1e-3, 0.01, 0.1, 0.3, 1.0, 3.0].map(|f| (f * self.spread).ln()).to_vec()
            };
            axes.push(inner.into_iter().map(|v| v.clamp(low, high)).collect());
        }
        let mut points = vec![Vec::new()];
        for axis in &axes {
            points = points
                .iter()
                .flat_map(|p| {
                    axis.iter().map(move |v| {
                        let mut p = p.clone();
                        p.push(*v);
                        p
                    })
                })
                .collect();
        }
        let mut found = Vec::new();
        for point in points.into_iter().filter(|p| !p.is_empty()) {
            progress.check()?;
            found.push((self.objective(&point, samples), point));
        }
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut starts: Vec<Vec<f64>> = Vec::new();
        for (_, point) in found {
            let other = self.fixed.decorrelation_m.is_none()
                && starts.iter().all(|s| (s[0] - point[0]).abs() > APART.ln());
            if starts.is_empty() || (starts.len() < STARTS && other) {
                starts.push(point);
            }
        }
        Ok(starts)
    }

    /// Twice the negative restricted log-likelihood, up to a constant; infinite where the matrix
    /// cannot be factorised.
    fn objective<P: Point>(&self, x: &[f64], samples: &[Sample<P>]) -> f64 {
        let (decorrelation, first, second) = self.unpack(x);
        let correlation = Correlation { family: self.family, decorrelation_m: decorrelation };
        let profiled = self.profiled();
        let (ratio, unit) = if profiled { (first, 1.0) } else { (second / first, first) };
        let (mut quadratic, mut freedom, mut log_det) = (0.0, 0.0, 0.0);
        for sample in samples {
            let Some(terms) = sample.terms(self.trend, correlation, ratio, unit) else {
                return f64::INFINITY;
            };
            quadratic += terms.quadratic.iter().sum::<f64>();
            freedom += terms.freedom * sample.values.ncols() as f64;
            log_det += terms.log_det * sample.values.ncols() as f64;
        }
        let (reach, width) = REACH_PRIOR;
        let off = ((decorrelation / self.extent).ln() - reach) / width;
        let mut value = log_det + off * off;
        let nugget = if profiled {
            let usual = self.usual_sill(ratio);
            let total = quadratic + PRIOR_READINGS * usual;
            let freedom = freedom + PRIOR_READINGS;
            value += freedom * total.max(1e-300).ln() - PRIOR_READINGS * usual.ln();
            ratio * total / freedom
        } else {
            value += freedom * first.ln() + quadratic / first;
            second
        };
        if self.fixed.nugget.is_none() {
            value += self.prior.penalty(nugget);
        }
        value
    }

    /// The sill before any reading: the prior variance is that of readings, nugget included.
    fn usual_sill(&self, ratio: f64) -> f64 {
        (self.prior.variance / (1.0 + ratio)).max(f64::MIN_POSITIVE)
    }

    fn covariance<P: Point>(&self, x: &[f64], samples: &[Sample<P>]) -> Covariance {
        let (decorrelation_m, first, second) = self.unpack(x);
        let (sill, nugget) = if self.profiled() {
            let correlation = Correlation { family: self.family, decorrelation_m };
            let terms = samples.iter().filter_map(|s| s.terms(self.trend, correlation, first, 1.0));
            let (mut quadratic, mut freedom) = (0.0, 0.0);
            for t in terms {
                freedom += t.freedom * t.quadratic.len() as f64;
                quadratic += t.quadratic.iter().sum::<f64>();
            }
            let usual = PRIOR_READINGS * self.usual_sill(first);
            let sill = ((quadratic + usual) / (freedom + PRIOR_READINGS)).max(1e-300);
            (sill, first * sill)
        } else {
            (first, second)
        };
        Covariance { family: self.family, decorrelation_m, sill, nugget }
    }
}

/// What one sample adds to the restricted likelihood.
pub(crate) struct Terms {
    /// Per band: (Y - F beta)^T K^-1 (Y - F beta) in units of the sill.
    pub quadratic: Vec<f64>,
    /// Readings minus trend terms.
    pub freedom: f64,
    /// ln det K + ln det F^T K^-1 F in units of the sill.
    pub log_det: f64,
}

impl<P: Point> Sample<P> {
    fn thinned_to(&self, most: usize) -> Self {
        match self.sites.len() <= most {
            true => self.clone(),
            false => self.part(&clustered(&self.sites, most)),
        }
    }

    /// Some of the sensors.
    pub fn part(&self, kept: &[usize]) -> Self {
        Self {
            sites: kept.iter().map(|&i| self.sites[i].clone()).collect(),
            values: Mat::from_fn(kept.len(), self.values.ncols(), |i, k| self.values[(kept[i], k)]),
            share: kept.iter().map(|&i| self.share[i]).collect(),
            stated: kept.iter().map(|&i| self.stated[i]).collect(),
            // What scatters at a place says the same of the noise wherever that is.
            scatter: self.scatter.clone(),
        }
    }

    /// Each sensor's noise in units of a sill, where the nugget is `ratio` of it.
    pub fn noise(&self, ratio: f64, sill: f64) -> Vec<f64> {
        self.share.iter().zip(&self.stated).map(|(share, s)| ratio * share + s / sill).collect()
    }

    /// `unit` is the sill, which only stated noise must know.
    pub fn terms(
        &self,
        trend: Trend,
        correlation: Correlation,
        ratio: f64,
        unit: f64,
    ) -> Option<Terms> {
        let frame = TrendFrame::new(trend, &self.sites);
        let mut matrix = correlation.matrix(&self.sites);
        for (i, noise) in self.noise(ratio, unit).into_iter().enumerate() {
            matrix[(i, i)] += noise;
        }
        let cholesky = Cholesky::new(matrix.as_ref())?;
        let mut half_trend = frame.matrix(&self.sites);
        cholesky.half_solve(half_trend.as_mut());
        let mut half_values = self.values.clone();
        cholesky.half_solve(half_values.as_mut());
        let gram = Cholesky::new(product(half_trend.transpose(), half_trend.as_ref()).as_ref())?;
        let mut beta = product(half_trend.transpose(), half_values.as_ref());
        gram.half_solve(beta.as_mut());
        gram.other_half_solve(beta.as_mut());
        add_product(half_values.as_mut(), half_trend.as_ref(), beta.as_ref(), -1.0);
        let mut quadratic: Vec<f64> =
            (0..half_values.ncols()).map(|k| half_values.col(k).squared_norm_l2()).collect();
        let mut freedom = (self.sites.len() - frame.terms()) as f64;
        let mut log_det = cholesky.log_det() + gram.log_det();
        let repeated = ratio + self.scatter.stated / unit;
        if self.scatter.freedom > 0.0 && repeated > 0.0 {
            let both = quadratic.iter_mut().zip(&self.scatter.squares);
            both.for_each(|(q, squares)| *q += squares / repeated);
            freedom += self.scatter.freedom;
            log_det += self.scatter.freedom * repeated.ln();
        }
        Some(Terms { quadratic, freedom, log_det })
    }
}

fn pooled_variance<P: Point>(samples: &[Sample<P>]) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for sample in samples {
        for column in sample.values.col_iter() {
            let n = column.nrows() as f64;
            let mean = column.iter().sum::<f64>() / n;
            sum += column.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
            count += n;
        }
    }
    if sum > 0.0 { sum / count } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Grid;
    use crate::simulate::{Shadowing, stream};
    use rand_distr::{Distribution, StandardNormal};

    /// Fields of known covariance: the fit must find their parameters again.
    fn sample(grid: Grid, decorrelation_m: f64, sill: f64, nugget: f64) -> Vec<Sample> {
        let shadowing = Shadowing::new(grid, decorrelation_m).unwrap();
        let mut rng = stream(0, 0);
        let fields: Vec<_> = (0..16).flat_map(|_| shadowing.draw_pair(&mut rng)).collect();
        let cells: Vec<_> = (0..grid.cells()).step_by(3).map(|i| grid.cell(i)).collect();
        let values = Mat::from_fn(cells.len(), fields.len(), |i, k| {
            let noise: f64 = StandardNormal.sample(&mut rng);
            sill.sqrt() * fields[k][[cells[i].row, cells[i].col]] + nugget.sqrt() * noise
        });
        let (share, stated) = (vec![1.0; cells.len()], vec![0.0; cells.len()]);
        let sites = cells.into_iter().map(|c| grid.site(c)).collect();
        vec![Sample { sites, values, share, stated, scatter: Scatter::default() }]
    }

    fn run(samples: &[Sample], fixed: Fixed) -> Covariance {
        let (family, trend) = (Family::Exponential, Trend::Constant);
        let prior = Prior { variance: 4.0, noise: None };
        fit(samples, family, trend, fixed, prior, &Progress::silent()).unwrap()[0].covariance
    }

    #[test]
    fn known_parameters_are_found() {
        let grid = Grid::new(32, 32, 1.0).unwrap();
        let mut samples = sample(grid, 8.0, 4.0, 0.5);
        let close = |got: f64, want: f64| assert!((got / want - 1.0).abs() < 0.2, "{got} {want}");
        let free = run(&samples, Fixed::default());
        close(free.decorrelation_m, 8.0);
        close(free.sill, 4.0);
        close(free.nugget, 0.5);
        let fixed = Fixed { sill: Some(4.0), ..Fixed::default() };
        let tied = run(&samples, fixed);
        assert_eq!(tied.sill, 4.0);
        close(tied.decorrelation_m, 8.0);
        close(tied.nugget, 0.5);
        let all = Fixed { decorrelation_m: Some(5.0), sill: Some(3.0), nugget: Some(0.25) };
        let given = run(&samples, all);
        assert_eq!((given.decorrelation_m, given.sill, given.nugget), (5.0, 3.0, 0.25));
        let bare = run(&samples, Fixed { nugget: Some(0.0), ..Fixed::default() });
        assert_eq!(bare.nugget, 0.0);
        // Stated noise leaves the nugget next to nothing.
        samples[0].stated.fill(0.5);
        let stated = run(&samples, Fixed::default());
        close(stated.sill, 4.0);
        assert!(stated.nugget < 0.1, "{}", stated.nugget);
    }
}
