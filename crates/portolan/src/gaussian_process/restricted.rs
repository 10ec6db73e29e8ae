//! Decorrelation, sill and nugget by restricted maximum likelihood, pooled over bands.
//!
//! The bands share one correlation and one ratio of nugget to sill; each has its own level. Where
//! sill and nugget are both free the sill has a closed form and is profiled out (Cressie 1993,
//! section 2.6.1), which leaves a search over decorrelation and ratio.

use faer::Mat;

use super::nelder_mead::{minimise, polish};
use super::{Correlation, Covariance, Family, Neighbours, Trend, TrendFrame, clustered};
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
}

/// The most sensors whose likelihood is evaluated; of more, clusters of neighbours.
pub(crate) const MOST_SENSORS: usize = 640;
/// Sensors in the coarse search that finds the start.
const COARSE_SENSORS: usize = 128;
const RATIO_BOUNDS: (f64, f64) = (1e-6, 1e2);
/// Before any reading the decorrelation distance is about the extent of the survey, within a factor
/// of e to this.
const SPREAD_REACH: f64 = 5.0;
/// What is usual counts for the sill as much as this many readings.
const USUAL_READINGS: f64 = 2.0;

/// Fits what is not fixed to all samples together. `usual` is the sill to expect before any reading:
/// it counts where readings are few.
pub(crate) fn fit<P: Point>(
    samples: &[Sample<P>],
    family: Family,
    trend: Trend,
    fixed: Fixed,
    usual: f64,
    progress: &Progress<'_>,
) -> Result<Covariance, EstimateError> {
    if samples.is_empty() {
        // No band has two readings: any law will do, the map is flat in every band.
        let decorrelation_m = fixed.decorrelation_m.unwrap_or(1.0);
        let (sill, nugget) = (fixed.sill.unwrap_or(usual), fixed.nugget.unwrap_or(0.0));
        return Ok(Covariance { family, decorrelation_m, sill, nugget });
    }
    let extent = samples.iter().map(|s| extent_m(&s.sites)).fold(0.0, f64::max);
    let least =
        samples.iter().map(|s| Neighbours::new(&s.sites).closest()).fold(f64::INFINITY, f64::min);
    let reach = ((0.5 * least).min(extent), 20.0 * extent);
    let spread = pooled_variance(samples);
    let stated = samples.iter().any(|s| s.stated.iter().any(|v| *v > 0.0));
    let search = Search { family, trend, fixed, usual, spread, extent, reach, stated };
    let coarse: Vec<Sample<P>> = samples.iter().map(|s| s.thinned_to(COARSE_SENSORS)).collect();
    let fine: Vec<Sample<P>> = samples.iter().map(|s| s.thinned_to(MOST_SENSORS)).collect();

    let start = search.coarse_start(&coarse, progress)?;
    if start.is_empty() {
        return Ok(search.covariance(&[], &fine));
    }
    let bounds = search.bounds();
    let objective = |x: &[f64]| {
        progress.check()?;
        Ok::<_, EstimateError>(search.objective(x, &fine))
    };
    let (best, value) = minimise(objective, &start, &bounds, 0.7, 0.06, 60)?;
    if !value.is_finite() {
        return Err(EstimateError::Numerical(
            "no hyperparameters fit the readings: set decorrelation, sill and nugget".into(),
        ));
    }
    let best = polish(objective, best, &bounds)?;
    Ok(search.covariance(&best, &fine))
}

struct Search {
    family: Family,
    trend: Trend,
    fixed: Fixed,
    usual: f64,
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

    /// A grid search on few sensors; the best point starts the fine search.
    fn coarse_start<P: Point>(
        &self,
        samples: &[Sample<P>],
        progress: &Progress<'_>,
    ) -> Result<Vec<f64>, EstimateError> {
        let bounds = self.bounds();
        let mut axes: Vec<Vec<f64>> = Vec::new();
        if self.fixed.decorrelation_m.is_none() {
            axes.push([0.03, 0.1, 0.3, 1.0, 3.0].map(|f: f64| (f * self.extent).ln()).to_vec());
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
        let mut best = (f64::INFINITY, points[0].clone());
        for point in points.into_iter().filter(|p| !p.is_empty()) {
            progress.check()?;
            let value = self.objective(&point, samples);
            if value < best.0 {
                best = (value, point);
            }
        }
        Ok(best.1)
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
        let prior = ((decorrelation / self.extent).ln() / SPREAD_REACH).powi(2);
        if profiled {
            freedom * (quadratic / freedom).max(1e-300).ln() + log_det + prior
        } else {
            freedom * first.ln() + quadratic / first + log_det + prior
        }
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
            // What is usual is the variance of readings, nugget included.
            let usual = USUAL_READINGS * self.usual / (1.0 + first);
            let sill = ((quadratic + usual) / (freedom + USUAL_READINGS)).max(1e-300);
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
    /// Sensors minus trend terms.
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
        let quadratic =
            (0..half_values.ncols()).map(|k| half_values.col(k).squared_norm_l2()).collect();
        Some(Terms {
            quadratic,
            freedom: (self.sites.len() - frame.terms()) as f64,
            log_det: cholesky.log_det() + gram.log_det(),
        })
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
        vec![Sample { sites, values, share, stated }]
    }

    fn run(samples: &[Sample], fixed: Fixed) -> Covariance {
        let (family, trend) = (Family::Exponential, Trend::Constant);
        fit(samples, family, trend, fixed, 4.0, &Progress::silent()).unwrap()
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
