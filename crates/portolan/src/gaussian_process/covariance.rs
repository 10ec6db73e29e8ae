//! Covariance as a function of distance.

use faer::Mat;

use super::decay::exp_minus;
use crate::site::Point;

/// The shape of the decay. Each is written with the decorrelation distance L as its only length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Family {
    /// exp(-d / L): what shadowing follows (Gudmundson 1991).
    #[default]
    Exponential,
    /// exp(-(d / L)^2).
    Gaussian,
    /// 1 - 1.5 d / L + 0.5 (d / L)^3 up to L, then 0.
    Spherical,
    /// (1 + s) exp(-s), s = sqrt(3) d / L.
    Matern32,
    /// (1 + s + s^2 / 3) exp(-s), s = sqrt(5) d / L.
    Matern52,
}

impl Family {
    /// Every family with its name in options and files.
    pub const NAMED: [(&'static str, Family); 5] = [
        ("exponential", Family::Exponential),
        ("gaussian", Family::Gaussian),
        ("spherical", Family::Spherical),
        ("matern32", Family::Matern32),
        ("matern52", Family::Matern52),
    ];

    /// Replaces distances in units of the decorrelation distance by correlations.
    fn apply(self, distances: &mut [f64]) {
        match self {
            Family::Exponential => exp_minus(distances),
            Family::Gaussian => {
                distances.iter_mut().for_each(|h| *h *= *h);
                exp_minus(distances);
            }
            Family::Spherical => distances.iter_mut().for_each(|h| {
                *h = if *h < 1.0 { 1.0 - *h * (1.5 - 0.5 * *h * *h) } else { 0.0 };
            }),
            Family::Matern32 | Family::Matern52 => {
                let root = if self == Family::Matern32 { 3f64 } else { 5f64 }.sqrt();
                let third = if self == Family::Matern32 { 0.0 } else { 1.0 / 3.0 };
                let mut decay: Vec<f64> = distances.iter().map(|h| root * h).collect();
                exp_minus(&mut decay);
                for (h, decay) in distances.iter_mut().zip(decay) {
                    let s = root * *h;
                    *h = (1.0 + s + third * s * s) * decay;
                }
            }
        }
    }
}

/// sill * correlation(d / decorrelation), plus `nugget` at distance zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Covariance {
    /// The shape of the decay.
    pub family: Family,
    /// Its length in metres.
    pub decorrelation_m: f64,
    /// Variance of the process.
    pub sill: f64,
    /// Variance of what no neighbour shares.
    pub nugget: f64,
}

impl Covariance {
    /// The correlation without the nugget.
    pub(crate) fn correlation(&self) -> Correlation {
        Correlation { family: self.family, decorrelation_m: self.decorrelation_m }
    }
}

/// Correlation by distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Correlation {
    pub family: Family,
    pub decorrelation_m: f64,
}

impl Correlation {
    pub fn exponential(decorrelation_m: f64) -> Self {
        Self { family: Family::Exponential, decorrelation_m }
    }

    /// Correlation matrix of some places; lower half only, ones on the diagonal.
    pub fn matrix<P: Point>(&self, sites: &[P]) -> Mat<f64> {
        let n = sites.len();
        let mut matrix = Mat::zeros(n, n);
        let scale = 1.0 / self.decorrelation_m;
        for j in 0..n {
            matrix[(j, j)] = 1.0;
            let column = matrix.col_mut(j).try_as_col_major_mut().expect("columns are contiguous");
            let below = &mut column.as_slice_mut()[j + 1..];
            for (value, site) in below.iter_mut().zip(&sites[j + 1..]) {
                *value = scale * site.squared(&sites[j]).sqrt();
            }
            self.family.apply(below);
        }
        matrix
    }

    /// Correlation of sensors (rows) with places (columns).
    pub fn cross<P: Point>(&self, sensors: &[P], at: &[P]) -> Mat<f64> {
        let mut cross = Mat::zeros(sensors.len(), at.len());
        let scale = 1.0 / self.decorrelation_m;
        for (j, place) in at.iter().enumerate() {
            let column = cross.col_mut(j).try_as_col_major_mut().expect("columns are contiguous");
            let column = column.as_slice_mut();
            for (value, sensor) in column.iter_mut().zip(sensors) {
                *value = scale * sensor.squared(place).sqrt();
            }
            self.family.apply(column);
        }
        cross
    }

    /// Correlation of two places.
    pub fn between<P: Point>(&self, a: P, b: P) -> f64 {
        let mut value = [a.squared(&b).sqrt() / self.decorrelation_m];
        self.family.apply(&mut value);
        value[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::Site;

    #[test]
    fn every_family_starts_at_one_and_falls() {
        for (name, family) in Family::NAMED {
            let mut values: Vec<f64> = (0..60).map(|i| f64::from(i) * 0.1).collect();
            family.apply(&mut values);
            assert_eq!(values[0], 1.0);
            assert!(values.windows(2).all(|w| w[1] < w[0] || w[0] == 0.0), "{name}");
            assert!(values[59] < 0.01);
        }
    }

    #[test]
    fn families_are_what_their_names_say() {
        let at = |family: Family, h: f64| {
            Correlation { family, decorrelation_m: 2.0 }
                .between(Site::new(1.0, 1.0), Site::new(1.0, 1.0 + 2.0 * h))
        };
        let h = 0.7f64;
        let close = |got: f64, want: f64| assert!((got - want).abs() < 1e-15, "{got} {want}");
        close(at(Family::Exponential, h), (-h).exp());
        close(at(Family::Gaussian, h), (-h * h).exp());
        close(at(Family::Spherical, h), 1.0 - 1.5 * h + 0.5 * h * h * h);
        let s = 3f64.sqrt() * h;
        close(at(Family::Matern32, h), (1.0 + s) * (-s).exp());
        let s = 5f64.sqrt() * h;
        close(at(Family::Matern52, h), (1.0 + s + s * s / 3.0) * (-s).exp());
    }

    #[test]
    fn matrices_agree_with_single_pairs() {
        let sites: Vec<Site> =
            (0..9).map(|i| Site::new(f64::from(i * i % 7), f64::from(i))).collect();
        let correlation = Correlation { family: Family::Matern52, decorrelation_m: 3.0 };
        let (matrix, cross) = (correlation.matrix(&sites), correlation.cross(&sites, &sites));
        for j in 0..9 {
            for i in j..9 {
                let want = correlation.between(sites[i], sites[j]);
                assert!((matrix[(i, j)] - want).abs() < 1e-15);
                assert!((cross[(i, j)] - want).abs() < 1e-15);
            }
        }
    }
}
