//! The polynomial that a process varies about.

use faer::Mat;

use crate::site::{Site, extent_m};

/// The polynomial in x and y that a process varies about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Trend {
    /// A constant: ordinary kriging.
    #[default]
    Constant,
    /// A plane: universal kriging.
    Linear,
    /// A quadratic surface: universal kriging.
    Quadratic,
}

impl Trend {
    /// Every trend with its name in options and files.
    pub const NAMED: [(&'static str, Trend); 3] =
        [("constant", Trend::Constant), ("linear", Trend::Linear), ("quadratic", Trend::Quadratic)];

    pub(crate) fn terms(self) -> usize {
        match self {
            Trend::Constant => 1,
            Trend::Linear => 3,
            Trend::Quadratic => 6,
        }
    }

    /// The basis functions at coordinates scaled to about [-1, 1].
    fn basis(self, u: f64, v: f64) -> [f64; 6] {
        match self {
            Trend::Constant => [1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            Trend::Linear => [1.0, u, v, 0.0, 0.0, 0.0],
            Trend::Quadratic => [1.0, u, v, u * u, u * v, v * v],
        }
    }

    /// The richest trend, up to this one, that so many sensors can carry.
    fn affordable(self, sensors: usize) -> Self {
        [Trend::Quadratic, Trend::Linear, Trend::Constant]
            .into_iter()
            .find(|t| t.terms() <= self.terms() && t.terms() < sensors)
            .unwrap_or(Trend::Constant)
    }
}

/// A trend with the coordinates it is written in: about the middle of the sensors, in units of
/// their extent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrendFrame {
    pub trend: Trend,
    middle: Site,
    scale: f64,
}

impl TrendFrame {
    pub fn new(trend: Trend, sites: &[Site]) -> Self {
        let first = sites.first().copied().unwrap_or(Site::new(0.0, 0.0));
        let count = sites.len().max(1) as f64;
        let mean = |f: fn(Site) -> f64| {
            f(first) + sites.iter().map(|s| f(*s) - f(first)).sum::<f64>() / count
        };
        let middle = Site::new(mean(|s| s.x_m), mean(|s| s.y_m));
        Self { trend: trend.affordable(sites.len()), middle, scale: 2.8 / extent_m(sites) }
    }

    /// The basis at some places, one row a place.
    pub fn matrix(&self, sites: &[Site]) -> Mat<f64> {
        let mut matrix = Mat::zeros(sites.len(), self.trend.terms());
        for (i, site) in sites.iter().enumerate() {
            let u = self.scale * (site.x_m - self.middle.x_m);
            let v = self.scale * (site.y_m - self.middle.y_m);
            let basis = self.trend.basis(u, v);
            for j in 0..self.trend.terms() {
                matrix[(i, j)] = basis[j];
            }
        }
        matrix
    }
}
