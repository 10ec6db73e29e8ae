//! Kriging of many bands at once: one factorisation, one set of weights per place, all bands.

use std::sync::OnceLock;

use faer::{Mat, MatRef};

use super::{Correlation, Trend, TrendFrame};
use crate::error::EstimateError;
use crate::linalg::{Cholesky, add_product, columns, product};
use crate::site::{Point, Site};

/// What the nugget is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum NuggetRole {
    /// Noise of the sensors: the map is smoothed at the sensors, the spread is the field's own.
    #[default]
    Noise,
    /// Part of the field: the map reproduces the readings at the sensors, the spread includes the
    /// nugget.
    Field,
}

/// What is known of a band's level before its readings: its mean, and its variance in units of the
/// sill.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Level {
    pub mean: f64,
    pub variance: f64,
}

/// Fewer readings have no quantile; with this many it counts as much as the mean.
const LEAST_QUANTILE: usize = 20;
const QUANTILE_READINGS: f64 = 100.0;

/// The sensors of a process, whatever they read. Works in units of the sill: predictions do not
/// depend on it.
pub(crate) struct Sensors<P = Site> {
    sites: Vec<P>,
    correlation: Correlation,
    frame: TrendFrame,
    /// What the diagonal has beside the correlation, per sensor.
    noise: Vec<f64>,
    /// The nugget over the sill.
    ratio: f64,
    role: NuggetRole,
    cholesky: Cholesky,
    /// L^-1 F.
    half_trend: Mat<f64>,
    /// Of F^T K^-1 F, and of what is known of the level before.
    gram: Cholesky,
    /// The level's mean over its variance.
    before: f64,
}

/// A fitted process, ready to predict at many places.
pub(crate) struct Regression<P = Site> {
    sensors: Sensors<P>,
    /// K^-1 (Y - F beta), sensors x bands, where it was asked for.
    weights: OnceLock<Mat<f64>>,
    /// Trend terms x bands.
    beta: Mat<f64>,
    /// L^-1 (Y - F beta): what every reading adds to those before it, of the sill's variance.
    innovations: Mat<f64>,
}

/// Prediction at some places: mean (places x bands) and variance in units of the sill.
pub(crate) struct Kriged {
    pub mean: Mat<f64>,
    pub variance: Vec<f64>,
}

/// What sensors say of places: L^-1 k* (sensors x places), and the trend that this leaves,
/// f* - F^T K^-1 k*, half solved by the gram (terms x places).
struct Seen {
    half: Mat<f64>,
    lack: Mat<f64>,
}

impl<P: Point> Sensors<P> {
    /// `noise` is each sensor's variance and `ratio` the nugget's, in units of the sill.
    pub fn new(
        sites: Vec<P>,
        correlation: Correlation,
        (noise, ratio): (Vec<f64>, f64),
        (trend, level): (Trend, Option<Level>),
        role: NuggetRole,
    ) -> Result<Self, EstimateError> {
        let frame = TrendFrame::new(trend, &sites);
        let mut matrix = correlation.matrix(&sites);
        // Smooth families on close sensors need a little more on the diagonal to be factorised.
        let attempts = [0.0, 1e-10, 1e-8, 1e-6, 1e-4];
        let cholesky = attempts
            .iter()
            .find_map(|jitter| {
                noise.iter().enumerate().for_each(|(i, n)| matrix[(i, i)] = 1.0 + (n + jitter));
                Cholesky::new(matrix.as_ref())
            })
            .ok_or_else(|| {
                EstimateError::Numerical(format!(
                    "the covariance of {} sensors is not positive definite: choose a shorter \
                     decorrelation or a larger nugget",
                    sites.len()
                ))
            })?;
        let mut half_trend = frame.matrix(&sites);
        cholesky.half_solve(half_trend.as_mut());
        let mut gram = product(half_trend.transpose(), half_trend.as_ref());
        if let Some(Level { variance, .. }) = level {
            gram[(0, 0)] += 1.0 / variance;
        }
        let gram = Cholesky::new(gram.as_ref()).ok_or_else(|| {
            EstimateError::Numerical(
                "the sensors cannot carry the trend (all on a line?): use trend=constant".into(),
            )
        })?;
        let before = level.map_or(0.0, |level| level.mean / level.variance);
        Ok(Self {
            sites,
            correlation,
            frame,
            noise,
            ratio,
            role,
            cholesky,
            half_trend,
            gram,
            before,
        })
    }

    /// Correlations of the sensors with places, those x places.
    fn cross(&self, at: &[P]) -> Mat<f64> {
        let mut cross = self.correlation.cross(&self.sites, at);
        if self.role == NuggetRole::Field {
            for (j, place) in at.iter().enumerate() {
                for (i, sensor) in self.sites.iter().enumerate() {
                    if sensor.squared(place) == 0.0 {
                        cross[(i, j)] += self.noise[i];
                    }
                }
            }
        }
        cross
    }

    fn seen(&self, mut cross: Mat<f64>, basis: &Mat<f64>) -> Seen {
        self.cholesky.half_solve(cross.as_mut());
        let mut lack = basis.transpose().to_owned();
        add_product(lack.as_mut(), self.half_trend.transpose(), cross.as_ref(), -1.0);
        self.gram.half_solve(lack.as_mut());
        Seen { half: cross, lack }
    }

    fn variance(&self, Seen { half, lack }: &Seen) -> Vec<f64> {
        let own = 1.0 + if self.role == NuggetRole::Field { self.ratio } else { 0.0 };
        (0..half.ncols())
            .map(|j| {
                let known = half.col(j).squared_norm_l2();
                (own - known + lack.col(j).squared_norm_l2()).max(0.0)
            })
            .collect()
    }

    /// What `Regression::predict` says of readings (sensors x bands), by the weights of every
    /// place: with A = G^-1 (f* - F^T K^-1 k*) they are L^-T (L^-1 k* + L^-1 F A). Costs less
    /// where there are fewer places than bands: the readings need not be solved for.
    pub fn predict(&self, values: MatRef<'_, f64>, at: &[P]) -> Kriged {
        let mut seen = self.seen(self.cross(at), &self.frame.matrix(at));
        let variance = self.variance(&seen);
        self.gram.other_half_solve(seen.lack.as_mut());
        add_product(seen.half.as_mut(), self.half_trend.as_ref(), seen.lack.as_ref(), 1.0);
        self.cholesky.other_half_solve(seen.half.as_mut());
        let mut mean = product(seen.half.transpose(), values);
        if self.before != 0.0 {
            for j in 0..at.len() {
                let known = self.before * seen.lack[(0, j)];
                (0..mean.ncols()).for_each(|band| mean[(j, band)] += known);
            }
        }
        Kriged { mean, variance }
    }
}

impl<P: Point> Regression<P> {
    /// `values` are sensors x bands.
    pub fn new(sensors: Sensors<P>, values: MatRef<'_, f64>) -> Self {
        let mut half_values = values.to_owned();
        sensors.cholesky.half_solve(half_values.as_mut());
        let half_trend = sensors.half_trend.as_ref();
        let mut beta = product(half_trend.transpose(), half_values.as_ref());
        (0..beta.ncols()).for_each(|band| beta[(0, band)] += sensors.before);
        sensors.gram.half_solve(beta.as_mut());
        sensors.gram.other_half_solve(beta.as_mut());
        add_product(half_values.as_mut(), half_trend, beta.as_ref(), -1.0);
        Self { sensors, weights: OnceLock::new(), beta, innovations: half_values }
    }

    fn weights(&self) -> &Mat<f64> {
        self.weights.get_or_init(|| {
            let mut weights = self.innovations.clone();
            self.sensors.cholesky.other_half_solve(weights.as_mut());
            weights
        })
    }

    /// Every band's constant, and the variance of each in units of the sill.
    pub fn levels(&self) -> (Vec<f64>, f64) {
        let inverse = self.sensors.gram.inverse();
        ((0..self.beta.ncols()).map(|band| self.beta[(0, band)]).collect(), inverse[(0, 0)])
    }

    /// Sensors less trend terms.
    pub fn freedom(&self) -> f64 {
        self.sensors.sites.len() as f64 - self.sensors.frame.terms() as f64
    }

    /// What every band's own readings say of its sill. Of few readings the mean square of what each
    /// adds to the others; of many the sill that puts nine of ten left-out readings inside their 90 %
    /// interval, because the few sensors beside an emitter must not decide for all. None where there
    /// is nothing to judge by. With every one the mean square alone, which noise goes by.
    pub fn sills(&self) -> Option<Vec<(f64, f64)>> {
        let (n, freedom) = (self.sensors.sites.len(), self.freedom());
        if freedom < 1.0 {
            return None;
        }
        let share = n as f64 / (n as f64 + QUANTILE_READINGS);
        let (weights, own) = (self.weights(), self.left_out_precision());
        let of = |band: usize| {
            let mean = self.innovations.col(band).squared_norm_l2() / freedom;
            if n < LEAST_QUANTILE || mean == 0.0 {
                return (mean, mean);
            }
            let mut squares: Vec<f64> =
                (0..n).map(|i| weights[(i, band)].powi(2) / own[i]).collect();
            let at = (0.9 * n as f64) as usize;
            let (_, square, _) = squares.select_nth_unstable_by(at, f64::total_cmp);
            let quantile = (*square / (1.645 * 1.645)).max(0.1 * mean);
            (((1.0 - share) * mean.ln() + share * quantile.ln()).exp(), mean)
        };
        Some((0..self.beta.ncols()).map(of).collect())
    }

    /// One over the variance of every reading as the others predict it, in units of the sill: the
    /// diagonal of Q = K^-1 - K^-1 F (F^T K^-1 F)^-1 F^T K^-1 (Dubrule 1983).
    fn left_out_precision(&self) -> Vec<f64> {
        let sensors = &self.sensors;
        let mut lack = sensors.half_trend.clone();
        sensors.cholesky.other_half_solve(lack.as_mut());
        let mut lack = lack.transpose().to_owned();
        sensors.gram.half_solve(lack.as_mut());
        let diagonal = sensors.cholesky.inverse_diagonal();
        let own = |i: usize| (diagonal[i] - lack.col(i).squared_norm_l2()).max(1e-12 * diagonal[i]);
        (0..diagonal.len()).map(own).collect()
    }

    /// Leave-one-out prediction at every sensor's place, sensors x bands: the reading minus (Q y)_i
    /// / Q_ii, and the variance of the field there.
    pub fn leave_one_out(&self, values: MatRef<'_, f64>) -> Kriged {
        let own = self.left_out_precision();
        let weights = self.weights();
        let mean = Mat::from_fn(values.nrows(), values.ncols(), |i, k| {
            values[(i, k)] - weights[(i, k)] / own[i]
        });
        let field = |(own, noise): (&f64, &f64)| match self.sensors.role {
            NuggetRole::Noise => (1.0 / own - noise).max(0.0),
            NuggetRole::Field => 1.0 / own,
        };
        let variance = own.iter().zip(&self.sensors.noise).map(field).collect();
        Kriged { mean, variance }
    }

    fn mean_from(&self, cross: &Mat<f64>, basis: &Mat<f64>, bands: &[usize]) -> Mat<f64> {
        let weights = columns(self.weights().as_ref(), bands);
        let mut mean = product(cross.transpose(), weights.as_ref());
        let beta = columns(self.beta.as_ref(), bands);
        add_product(mean.as_mut(), basis.as_ref(), beta.as_ref(), 1.0);
        mean
    }

    /// The means of `predict` alone, which cost far less.
    pub fn mean(&self, at: &[P], bands: &[usize]) -> Mat<f64> {
        self.mean_from(&self.sensors.cross(at), &self.sensors.frame.matrix(at), bands)
    }

    /// Means in some bands, in that order, and the variance.
    pub fn predict_bands(&self, at: &[P], bands: &[usize]) -> Kriged {
        let cross = self.sensors.cross(at);
        let basis = self.sensors.frame.matrix(at);
        let mean = self.mean_from(&cross, &basis, bands);
        let variance = self.sensors.variance(&self.sensors.seen(cross, &basis));
        Kriged { mean, variance }
    }

    pub fn predict(&self, at: &[P]) -> Kriged {
        self.predict_bands(at, &(0..self.beta.ncols()).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::load;
    use crate::gaussian_process::Family;
    use crate::grid::Grid;

    fn regression(
        (sites, values): (Vec<Site>, MatRef<'_, f64>),
        correlation: Correlation,
        noise: (Vec<f64>, f64),
        trend: Trend,
        role: NuggetRole,
    ) -> Regression {
        let sensors = Sensors::new(sites, correlation, noise, (trend, None), role).unwrap();
        Regression::new(sensors, values)
    }

    #[test]
    fn places_are_weighed_as_readings_are_solved_for() {
        let sites: Vec<Site> =
            (0..30).map(|i| Site::new(f64::from(i * i % 31), f64::from(i * 5 % 13))).collect();
        let at: Vec<Site> = (0..9).map(|i| Site::new(f64::from(i) * 3.1, 4.0)).collect();
        let values = Mat::from_fn(30, 3, |i, k| ((i * (k + 3)) % 7) as f64 - 20.0);
        for level in [None, Some(Level { mean: -15.0, variance: 2.0 })] {
            let sensors = || {
                let noise = (vec![0.2; 30], 0.2);
                let trend = (Trend::Linear, level);
                let role = NuggetRole::Field;
                Sensors::new(sites.clone(), Correlation::exponential(6.0), noise, trend, role)
                    .unwrap()
            };
            let few = sensors().predict(values.as_ref(), &at);
            let many = Regression::new(sensors(), values.as_ref()).predict(&at);
            assert_eq!(few.variance, many.variance);
            let off = (0..27).map(|i| few.mean[(i / 3, i % 3)] - many.mean[(i / 3, i % 3)]);
            assert!(off.fold(0.0, |a: f64, b| a.max(b.abs())) < 1e-10);
        }
    }

    /// `kriging.npz` was made by PyKrige's OrdinaryKriging.
    #[test]
    fn equal_to_pykrige() {
        let fixture = load("kriging");
        let get = |name: &str| fixture[name].1.clone();
        let sites: Vec<Site> = get("at").chunks(2).map(|p| Site::new(p[0], p[1])).collect();
        let values = get("values");
        let (sill, nugget) = (get("psill")[0], get("nugget")[0]);
        let correlation =
            Correlation { family: Family::Exponential, decorrelation_m: get("decorrelation")[0] };
        let y = MatRef::from_column_major_slice(&values, values.len(), 1);
        let noise = (vec![nugget / sill; sites.len()], nugget / sill);
        let role = NuggetRole::Field;
        let regression = regression((sites, y), correlation, noise, Trend::Constant, role);
        let side = (get("predicted").len() as f64).sqrt() as usize;
        let got = regression.predict(&Grid::new(side, side, 1.0).unwrap().sites());
        for (i, (mean, variance)) in get("predicted").iter().zip(get("variance")).enumerate() {
            assert!((got.mean[(i, 0)] - mean).abs() < 1e-6, "{} {mean}", got.mean[(i, 0)]);
            assert!((sill * got.variance[i] - variance).abs() < 1e-6);
        }
    }

    #[test]
    fn a_quadratic_surface_is_reproduced_by_its_trend() {
        let grid = Grid::new(12, 9, 0.7).unwrap();
        let surface = |s: &Site| 1.0 + 0.5 * s.x_m - 0.1 * s.x_m * s.y_m;
        let at = grid.sites();
        let sites: Vec<Site> = at.iter().copied().step_by(4).collect();
        let values: Vec<f64> = sites.iter().map(surface).collect();
        let correlation = Correlation { family: Family::Matern52, decorrelation_m: 3.0 };
        let y = MatRef::from_column_major_slice(&values, values.len(), 1);
        let (trend, role) = (Trend::Quadratic, NuggetRole::Noise);
        let noise = (vec![0.1; sites.len()], 0.1);
        let regression = regression((sites, y), correlation, noise, trend, role);
        let got = regression.predict(&at);
        for (i, site) in at.iter().enumerate() {
            assert!((got.mean[(i, 0)] - surface(site)).abs() < 1e-8);
        }
    }

    #[test]
    fn leaving_a_sensor_out_equals_a_regression_without_it() {
        let sites: Vec<Site> =
            (0..12).map(|i| Site::new(f64::from(i * i % 13), f64::from(i % 5) + 0.3)).collect();
        let values: Vec<f64> = (0..12).map(|i| f64::from(i * 7 % 5) - 0.4 * f64::from(i)).collect();
        let correlation = Correlation::exponential(4.0);
        let run = |kept: &[usize]| {
            let sites = kept.iter().map(|&i| sites[i]).collect();
            let y = Mat::from_fn(kept.len(), 1, |i, _| values[kept[i]]);
            let noise = (vec![0.2; kept.len()], 0.2);
            let (trend, role) = (Trend::Linear, NuggetRole::Noise);
            regression((sites, y.as_ref()), correlation, noise, trend, role)
        };
        let all: Vec<usize> = (0..12).collect();
        let y = MatRef::from_column_major_slice(&values, 12, 1);
        let got = run(&all).leave_one_out(y);
        for (out, site) in sites.iter().enumerate() {
            let kept: Vec<usize> = all.iter().copied().filter(|i| *i != out).collect();
            let want = run(&kept).predict(&[*site]);
            let (mean, variance) = (got.mean[(out, 0)], got.variance[out]);
            assert!((mean - want.mean[(0, 0)]).abs() < 1e-9, "{mean} {}", want.mean[(0, 0)]);
            assert!((variance - want.variance[0]).abs() < 1e-9, "{variance}");
        }
    }

    #[test]
    fn a_sensor_read_often_counts_more() {
        let sites = vec![Site::new(0.0, 0.0), Site::new(2.0, 0.0)];
        let values = [1.0, 3.0];
        let y = MatRef::from_column_major_slice(&values, 2, 1);
        let correlation = Correlation::exponential(5.0);
        let mean = |first: f64| {
            let noise = (vec![first, 1.0], 1.0);
            let (trend, role) = (Trend::Constant, NuggetRole::Noise);
            regression((sites.clone(), y), correlation, noise, trend, role)
                .predict(&[Site::new(1.0, 0.0)])
                .mean[(0, 0)]
        };
        assert!((mean(1.0) - 2.0).abs() < 1e-12);
        assert!(mean(0.1) < 1.9);
    }
}
