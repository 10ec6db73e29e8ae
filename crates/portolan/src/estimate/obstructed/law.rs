//! The law of path loss with columns: in every band y = L - n ln d - sum_m w_m N_m + g + noise, with g
//! a Gaussian process of exponential covariance. The coefficients of a band are normal about those
//! that all bands share, which are normal about a prior: all are integrated out in closed form. What
//! is left are the variances and the range, found by the gradient of the evidence.

use faer::Mat;
use rayon::prelude::*;

use crate::error::EstimateError;
use crate::gaussian_process::{NOISE_PRIOR, Scatter, posterior_points, quasi_newton};
use crate::linalg::{Cholesky, product, solve_general};
use crate::link::DB_PER_LN;
use crate::progress::Progress;
use crate::site::Site;

/// Variables of a law: logarithms of the range, of the factor of heights, and of the standard
/// deviations of the field, of a reading, of levels, exponents and losses between bands.
pub(super) const VARIABLES: usize = 7;
pub(super) type Point = [f64; VARIABLES];

/// The range over the extent of a survey before any reading, and the standard deviations of each
/// variable.
const REACH: f64 = 0.25;
const WIDTHS: Point = [1.5, 1.0, 1.0, NOISE_PRIOR.1, 0.7, 0.7, 1.0];
/// What the variables but the range are before any reading: metres of height count twice, 5 dB, noise,
/// 8 dB, .7, 1 dB.
const HEIGHTS: f64 = 2.0;
const FIELD_DB: f64 = 5.0;
const LEVEL_DB: f64 = 8.0;
const EXPONENT_SD: f64 = 0.7;
const LOSS_DB: f64 = 1.0;
/// Rounds of the descent, the change of the log evidence that ends it, and the longest step.
const ROUNDS: usize = 40;
const ENOUGH: f64 = 0.02;
const STEP: f64 = 1.0;
/// Readings up to which the laws that they leave possible are averaged, and the most laws.
const AVERAGED: usize = 1500;
const MOST_LAWS: usize = 8;

/// One band at one place of its transmitter.
#[derive(Clone)]
pub(super) struct Sample {
    pub sites: Vec<Site>,
    /// In ln power.
    pub values: Vec<f64>,
    /// The nugget's share, and the stated variance.
    pub noise: Vec<(f64, f64)>,
    /// Sites x coefficients: 1, -ln d, and minus every number in decibels of ln power.
    pub design: Mat<f64>,
    pub scatter: Scatter,
}

/// What is known of the shared coefficients before any reading, each independent of the others.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Prior {
    pub mean: Vec<f64>,
    pub precision: Vec<f64>,
}

/// A law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Law {
    pub decorrelation_m: f64,
    pub height_factor: f64,
    pub sill: f64,
    pub nugget: f64,
    /// Variances between bands: of the level, of the exponent, of every loss in dB.
    pub between: [f64; 3],
}

impl Law {
    pub fn at(x: &[f64]) -> Self {
        let square = |v: f64| (2.0 * v).exp();
        Self {
            decorrelation_m: x[0].exp(),
            height_factor: x[1].exp(),
            sill: square(x[2]),
            nugget: square(x[3]),
            between: [square(x[4]), square(x[5]), square(x[6])],
        }
    }

    /// The variables before any reading.
    pub fn before(extent_m: f64) -> Point {
        let ln_db = |db: f64| (db / DB_PER_LN).ln();
        [
            (REACH * extent_m).ln(),
            HEIGHTS.ln(),
            ln_db(FIELD_DB),
            ln_db(NOISE_PRIOR.0),
            ln_db(LEVEL_DB),
            EXPONENT_SD.ln(),
            LOSS_DB.ln(),
        ]
    }

    pub fn numbers(&self) -> [f64; VARIABLES] {
        let [level, exponent, loss] = self.between;
        [self.decorrelation_m, self.height_factor, self.sill, self.nugget, level, exponent, loss]
    }

    pub fn of_numbers(numbers: &[f64]) -> Option<Self> {
        let &[decorrelation_m, height_factor, sill, nugget, level, exponent, loss] = numbers else {
            return None;
        };
        let between = [level, exponent, loss];
        let law = Self { decorrelation_m, height_factor, sill, nugget, between };
        let sound = |v: &f64| v.is_finite() && *v > 0.0;
        law.numbers().iter().all(sound).then_some(law)
    }

    /// The variance between bands of every coefficient.
    pub fn deviation(&self, coefficient: usize) -> f64 {
        self.between[coefficient.min(2)]
    }

    /// Distance as the field counts it, and the part of its square that heights make.
    fn distance(&self, a: Site, b: Site) -> (f64, f64) {
        let up = (self.height_factor * (a.z_m - b.z_m)).powi(2);
        let flat = (a.x_m - b.x_m).powi(2) + (a.y_m - b.y_m).powi(2);
        ((flat + up).sqrt(), up)
    }

    /// Covariance of the field between two places.
    pub fn covariance(&self, a: Site, b: Site) -> f64 {
        self.sill * (-self.distance(a, b).0 / self.decorrelation_m).exp()
    }

    /// Covariance of the field and the noise at some sites, lower half.
    pub fn matrix(&self, sites: &[Site], noise: &[(f64, f64)]) -> Mat<f64> {
        let n = sites.len();
        let mut matrix = Mat::zeros(n, n);
        for j in 0..n {
            matrix[(j, j)] = self.sill * (1.0 + 1e-9) + noise[j].0 * self.nugget + noise[j].1;
            for i in j + 1..n {
                matrix[(i, j)] = self.covariance(sites[i], sites[j]);
            }
        }
        matrix
    }
}

/// The search for the laws of some bands.
pub(super) struct Search<'a> {
    pub samples: &'a [Sample],
    pub prior: &'a Prior,
    pub extent_m: f64,
}

/// What a band says of the shared coefficients: precision, and precision times mean; and its own part
/// of the evidence.
struct Part {
    precision: Mat<f64>,
    pull: Mat<f64>,
    value: f64,
    inverse: Mat<f64>,
    solved: Mat<f64>,
}

impl Search<'_> {
    fn coefficients(&self) -> usize {
        self.prior.mean.len()
    }

    /// V = K + H D H^T + noise of a band, factorised.
    fn part(&self, law: &Law, sample: &Sample) -> Option<Part> {
        let (n, terms) = (sample.values.len(), self.coefficients());
        let mut matrix = law.matrix(&sample.sites, &sample.noise);
        for j in 0..n {
            for i in j..n {
                let both = (0..terms)
                    .map(|c| law.deviation(c) * sample.design[(i, c)] * sample.design[(j, c)]);
                matrix[(i, j)] += both.sum::<f64>();
            }
        }
        let cholesky = Cholesky::new(matrix.as_ref())?;
        let inverse = cholesky.inverse();
        let right = Mat::from_fn(n, terms + 1, |i, c| match c < terms {
            true => sample.design[(i, c)],
            false => sample.values[i],
        });
        let solved = product(inverse.as_ref(), right.as_ref());
        let gram = product(right.transpose(), solved.as_ref());
        Some(Part {
            precision: gram.submatrix(0, 0, terms, terms).to_owned(),
            pull: gram.submatrix(0, terms, terms, 1).to_owned(),
            value: 0.5 * (cholesky.log_det() + gram[(terms, terms)]),
            inverse,
            solved,
        })
    }

    /// The negative log evidence with the priors of the variables, and its gradient.
    pub fn objective(
        &self,
        x: &[f64],
        progress: &Progress<'_>,
    ) -> Result<(f64, Vec<f64>), EstimateError> {
        progress.check()?;
        let law = Law::at(x);
        let parts: Option<Vec<Part>> =
            self.samples.par_iter().map(|sample| self.part(&law, sample)).collect();
        let far = || (f64::INFINITY, vec![0.0; VARIABLES]);
        let Some(parts) = parts else { return Ok(far()) };
        let terms = self.coefficients();
        let mut precision =
            Mat::from_fn(terms, terms, |i, j| if i == j { self.prior.precision[i] } else { 0.0 });
        let mut pull = Mat::from_fn(terms, 1, |i, _| self.prior.precision[i] * self.prior.mean[i]);
        let mut value: f64 = (0..terms)
            .map(|i| {
                let (p, m) = (self.prior.precision[i], self.prior.mean[i]);
                0.5 * (p * m * m - p.ln())
            })
            .sum();
        for part in &parts {
            precision += &part.precision;
            pull += &part.pull;
            value += part.value;
        }
        let Some(cholesky) = Cholesky::new(precision.as_ref()) else { return Ok(far()) };
        let covariance = cholesky.inverse();
        let shared = product(covariance.as_ref(), pull.as_ref());
        let explained = product(shared.transpose(), pull.as_ref())[(0, 0)];
        value += 0.5 * (cholesky.log_det() - explained);
        let slopes: Vec<[f64; VARIABLES]> = self
            .samples
            .par_iter()
            .zip(&parts)
            .map(|(sample, part)| slope(&law, sample, part, &shared, &covariance))
            .collect();
        let mut gradient = vec![0.0; VARIABLES];
        for slope in slopes {
            gradient.iter_mut().zip(slope).for_each(|(sum, own)| *sum += own);
        }
        for sample in self.samples {
            value -= sample.scatter.log_density(law.nugget);
            gradient[3] -= sample.scatter.slope(law.nugget) * 2.0 * law.nugget;
        }
        for (i, before) in Law::before(self.extent_m).into_iter().enumerate() {
            let off = (x[i] - before) / WIDTHS[i];
            value += 0.5 * off * off;
            gradient[i] += off / WIDTHS[i];
        }
        Ok((value, gradient))
    }

    /// The likeliest law, and its log evidence. A start that was found for like columns needs few rounds.
    pub fn likeliest(
        &self,
        start: Option<&Point>,
        progress: &Progress<'_>,
    ) -> Result<(f64, Point), EstimateError> {
        let before = Law::before(self.extent_m);
        let objective = |x: &[f64]| self.objective(x, progress);
        let best =
            quasi_newton::descend(objective, start.unwrap_or(&before), STEP, ENOUGH, ROUNDS)?;
        let (value, _) = objective(&best)?;
        match value.is_finite() {
            true => Ok((-value, std::array::from_fn(|i| best[i]))),
            false => Err(EstimateError::Numerical(
                "the covariance of path loss cannot be factorised".into(),
            )),
        }
    }

    /// The laws that the readings leave possible with their weights, the likeliest first.
    pub fn laws(
        &self,
        best: &Point,
        progress: &Progress<'_>,
    ) -> Result<Vec<(f64, Point)>, EstimateError> {
        let read: usize = self.samples.iter().map(|s| s.values.len()).sum();
        if read > AVERAGED {
            return Ok(vec![(1.0, *best)]);
        }
        let bounds: Vec<(f64, f64)> = best.iter().map(|x| (x - 6.0, x + 6.0)).collect();
        let value = |x: &[f64]| Ok::<_, EstimateError>(self.objective(x, progress)?.0);
        let found = posterior_points(value, &[best.to_vec()], &bounds, MOST_LAWS)?;
        let point = |x: Vec<f64>| -> Point { std::array::from_fn(|i| x[i]) };
        Ok(found.into_iter().map(|(weight, x)| (weight, point(x))).collect())
    }
}

/// A band's part of the gradient: half the trace of dV Q, with
/// Q = V^-1 - V^-1 H A^-1 H^T V^-1 - alpha alpha^T and alpha = V^-1 (y - H b).
fn slope(
    law: &Law,
    sample: &Sample,
    part: &Part,
    shared: &Mat<f64>,
    covariance: &Mat<f64>,
) -> [f64; VARIABLES] {
    let (n, terms) = (sample.values.len(), shared.nrows());
    let solved = part.solved.as_ref();
    let trend = product(solved.subcols(0, terms), shared.as_ref());
    let alpha: Vec<f64> = (0..n).map(|i| solved[(i, terms)] - trend[(i, 0)]).collect();
    let spread = product(solved.subcols(0, terms), covariance.as_ref());
    let taken = product(spread.as_ref(), solved.subcols(0, terms).transpose());
    let mut slope = [0.0; VARIABLES];
    for j in 0..n {
        for i in j..n {
            let twice = if i == j { 1.0 } else { 2.0 };
            let q = 0.5 * twice * (part.inverse[(i, j)] - taken[(i, j)] - alpha[i] * alpha[j]);
            let (distance, up) = law.distance(sample.sites[i], sample.sites[j]);
            let field = law.sill * (-distance / law.decorrelation_m).exp();
            slope[0] += q * field * distance / law.decorrelation_m;
            if up > 0.0 {
                slope[1] -= q * field * up / (distance * law.decorrelation_m);
            }
            slope[2] += q * 2.0 * field;
            if i == j {
                slope[3] += q * 2.0 * law.nugget * sample.noise[i].0;
            }
            for c in 0..terms {
                slope[4 + c.min(2)] +=
                    q * 2.0 * law.deviation(c) * sample.design[(i, c)] * sample.design[(j, c)];
            }
        }
    }
    slope
}

/// What one band says by itself: of its coefficients under the field and the noise, G = H^T K^-1 H and
/// g = H^T K^-1 y.
#[derive(Clone)]
pub(super) struct Says {
    pub gram: Mat<f64>,
    pub pull: Mat<f64>,
}

impl Says {
    /// The same of the shared coefficients: the band's own stray from them.
    pub fn of_shared(&self, law: &Law) -> Option<Self> {
        let terms = self.gram.nrows();
        // (I + G D)^-1 (G, g).
        let mixed = Mat::from_fn(terms, terms, |i, j| {
            self.gram[(i, j)] * law.deviation(j) + f64::from(i == j)
        });
        let gram = solve_general(mixed.as_ref(), self.gram.as_ref())?;
        let pull = solve_general(mixed.as_ref(), self.pull.as_ref())?;
        Some(Self { gram, pull })
    }
}

/// Mean and covariance of coefficients.
#[derive(Clone)]
pub(super) struct Normal {
    pub mean: Mat<f64>,
    pub covariance: Mat<f64>,
}

impl Normal {
    /// The shared coefficients, by what some bands say of them.
    pub fn shared<'a>(prior: &Prior, says: impl Iterator<Item = &'a Says>) -> Option<Self> {
        let terms = prior.mean.len();
        let mut precision =
            Mat::from_fn(terms, terms, |i, j| if i == j { prior.precision[i] } else { 0.0 });
        let mut pull = Mat::from_fn(terms, 1, |i, _| prior.precision[i] * prior.mean[i]);
        for own in says {
            precision += &own.gram;
            pull += &own.pull;
        }
        let covariance = Cholesky::new(symmetric(&precision).as_ref())?.inverse();
        Some(Self { mean: product(covariance.as_ref(), pull.as_ref()), covariance })
    }

    /// Those of a band, before its own readings, where these are the shared ones.
    pub fn of_band(&self, law: &Law) -> Self {
        let mut covariance = self.covariance.clone();
        (0..covariance.nrows()).for_each(|c| covariance[(c, c)] += law.deviation(c));
        Self { mean: self.mean.clone(), covariance }
    }

    /// After the band's own readings, and their log evidence up to what does not depend on the
    /// coefficients' design.
    pub fn after(&self, says: &Says) -> Option<(Self, f64)> {
        let before = Cholesky::new(symmetric(&self.covariance).as_ref())?;
        let precision = symmetric(&(before.inverse() + &says.gram));
        let cholesky = Cholesky::new(precision.as_ref())?;
        let covariance = cholesky.inverse();
        let off = &says.pull - product(says.gram.as_ref(), self.mean.as_ref());
        let moved = product(covariance.as_ref(), off.as_ref());
        let mean = &self.mean + &moved;
        // (y - H b)^T K^-1 (y - H b), but for y^T K^-1 y.
        let both = product(says.gram.as_ref(), self.mean.as_ref()) - 2.0 * &says.pull;
        let square = product(self.mean.transpose(), both.as_ref())[(0, 0)];
        let gained = product(off.transpose(), moved.as_ref())[(0, 0)];
        let log = -0.5 * (before.log_det() + cholesky.log_det() + square - gained);
        Some((Self { mean, covariance }, log))
    }
}

fn symmetric(matrix: &Mat<f64>) -> Mat<f64> {
    Mat::from_fn(matrix.nrows(), matrix.ncols(), |i, j| 0.5 * (matrix[(i, j)] + matrix[(j, i)]))
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::simulate::stream;

    fn samples(seed: u64, bands: usize, sites: usize) -> Vec<Sample> {
        let mut rng = stream(seed, 80);
        let mut random = |low: f64, high: f64| low + (high - low) * rng.random::<f64>();
        (0..bands)
            .map(|_| Sample {
                sites: (0..sites)
                    .map(|i| {
                        Site::new(random(0.0, 30.0), random(0.0, 20.0))
                            .at_height(3.0 * (i % 2) as f64)
                    })
                    .collect(),
                values: (0..sites).map(|_| random(-20.0, -10.0)).collect(),
                noise: (0..sites).map(|_| (random(0.3, 1.0), random(0.0, 0.2))).collect(),
                design: Mat::from_fn(sites, 4, |_, c| match c {
                    0 => 1.0,
                    1 => -random(0.0, 4.0),
                    _ => -random(0.0, 3.0).round() / DB_PER_LN,
                }),
                scatter: Scatter { squares: vec![random(1.0, 3.0)], freedom: 5.0, stated: 0.05 },
            })
            .collect()
    }

    fn prior() -> Prior {
        Prior { mean: vec![-12.0, 3.0, 0.0, 0.0], precision: vec![0.01, 1.0, 0.01, 0.01] }
    }

    #[test]
    fn the_gradient_is_that_of_the_evidence() {
        let (samples, prior) = (samples(1, 3, 9), prior());
        let search = Search { samples: &samples, prior: &prior, extent_m: 30.0 };
        let silent = Progress::silent();
        let at = [1.9, 0.4, 0.3, -0.8, 0.5, -0.6, 0.7];
        let (_, gradient) = search.objective(&at, &silent).unwrap();
        for i in 0..VARIABLES {
            let value = |step: f64| {
                let mut x = at;
                x[i] += step;
                search.objective(&x, &silent).unwrap().0
            };
            let slope = (value(1e-5) - value(-1e-5)) / 2e-5;
            assert!((gradient[i] - slope).abs() < 1e-5 * (1.0 + slope.abs()), "{i}: {slope}");
        }
    }

    /// The evidence of everything at once: one normal density over all bands.
    #[test]
    fn coefficients_are_integrated_out() {
        let (mut samples, prior) = (samples(2, 2, 5), prior());
        samples.iter_mut().for_each(|s| s.scatter = Scatter::default());
        let search = Search { samples: &samples, prior: &prior, extent_m: 30.0 };
        let x = [2.2, 0.1, 0.2, -0.7, 0.4, -0.5, 0.2];
        let law = Law::at(&x);
        let n = 10;
        let design = |i: usize, c: usize| samples[i / 5].design[(i % 5, c)];
        let mut matrix = Mat::zeros(n, n);
        for i in 0..n {
            for j in 0..n {
                let own = if i / 5 == j / 5 { 1.0 } else { 0.0 };
                for c in 0..4 {
                    matrix[(i, j)] += design(i, c)
                        * design(j, c)
                        * (1.0 / prior.precision[c] + own * law.deviation(c));
                }
                if own == 1.0 {
                    let (a, b) = (samples[i / 5].sites[i % 5], samples[j / 5].sites[j % 5]);
                    matrix[(i, j)] += law.covariance(a, b);
                }
            }
            let (share, stated) = samples[i / 5].noise[i % 5];
            matrix[(i, i)] += share * law.nugget + stated + 1e-9 * law.sill;
        }
        let rest = Mat::from_fn(n, 1, |i, _| {
            let mean: f64 = (0..4).map(|c| design(i, c) * prior.mean[c]).sum();
            samples[i / 5].values[i % 5] - mean
        });
        let cholesky = Cholesky::new(matrix.as_ref()).unwrap();
        let mut half = rest.clone();
        cholesky.half_solve(half.as_mut());
        let whole = 0.5 * (cholesky.log_det() + half.squared_norm_l2());
        let priors: f64 = Law::before(30.0)
            .iter()
            .zip(&x)
            .zip(WIDTHS)
            .map(|((b, x), w)| 0.5 * ((x - b) / w).powi(2))
            .sum();
        let found = search.objective(&x, &Progress::silent()).unwrap().0;
        assert!((found - priors - whole).abs() < 1e-6, "{found} {whole}");
    }
}
