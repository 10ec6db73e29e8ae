//! The polynomial that a process varies about.

use faer::Mat;

use crate::site::{Point, extent_m, middle, used_axes};

/// The polynomial in the coordinates that a process varies about.
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

    /// Terms of the polynomial in so many coordinates.
    fn terms(self, axes: usize) -> usize {
        match self {
            Trend::Constant => 1,
            Trend::Linear => 1 + axes,
            Trend::Quadratic => 1 + axes + axes * (axes + 1) / 2,
        }
    }

    /// The richest trend, up to this one, that so many sensors can carry.
    fn affordable(self, sensors: usize, axes: usize) -> Self {
        [Trend::Quadratic, Trend::Linear, Trend::Constant]
            .into_iter()
            .find(|t| t.terms(axes) <= self.terms(axes) && t.terms(axes) < sensors)
            .unwrap_or(Trend::Constant)
    }
}

/// A trend with the coordinates it is written in: about the middle of the sensors, in units of
/// their extent.
#[derive(Clone, Debug)]
pub(crate) struct TrendFrame {
    trend: Trend,
    middle: Vec<f64>,
    scale: f64,
}

impl TrendFrame {
    pub fn new<P: Point>(trend: Trend, sites: &[P]) -> Self {
        let mut middle = middle(sites);
        // A coordinate that all sensors share has no slope.
        middle.truncate(used_axes(sites));
        let trend = trend.affordable(sites.len(), middle.len());
        Self { trend, middle, scale: 2.8 / extent_m(sites) }
    }

    pub fn terms(&self) -> usize {
        self.trend.terms(self.middle.len())
    }

    /// The basis at some places, one row a place: 1, then the coordinates, then their products.
    pub fn matrix<P: Point>(&self, sites: &[P]) -> Mat<f64> {
        let mut matrix = Mat::zeros(sites.len(), self.terms());
        let mut at = vec![0.0; self.middle.len()];
        for (i, site) in sites.iter().enumerate() {
            for (axis, (u, middle)) in at.iter_mut().zip(&self.middle).enumerate() {
                *u = self.scale * (site.coordinate(axis) - middle);
            }
            matrix[(i, 0)] = 1.0;
            if self.trend != Trend::Constant {
                at.iter().enumerate().for_each(|(axis, u)| matrix[(i, 1 + axis)] = *u);
            }
            if self.trend == Trend::Quadratic {
                let pairs = (0..at.len()).flat_map(|a| (a..at.len()).map(move |b| (a, b)));
                for (k, (a, b)) in pairs.enumerate() {
                    matrix[(i, 1 + at.len() + k)] = at[a] * at[b];
                }
            }
        }
        matrix
    }
}
