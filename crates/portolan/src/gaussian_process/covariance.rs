//! Covariance as a function of distance.

/// The shape of the decay. Each is written with the decorrelation distance L as its only length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// exp(-d / L): what shadowing follows (Gudmundson 1991).
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
    /// Correlation at a distance, in units of the decorrelation distance.
    pub fn correlation(self, h: f64) -> f64 {
        match self {
            Family::Exponential => (-h).exp(),
            Family::Gaussian => (-h * h).exp(),
            Family::Spherical if h < 1.0 => 1.0 - h * (1.5 - 0.5 * h * h),
            Family::Spherical => 0.0,
            Family::Matern32 => {
                let s = 3f64.sqrt() * h;
                (1.0 + s) * (-s).exp()
            }
            Family::Matern52 => {
                let s = 5f64.sqrt() * h;
                (1.0 + s + s * s / 3.0) * (-s).exp()
            }
        }
    }
}

/// sill * correlation(d / decorrelation), plus `nugget` at distance zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Covariance {
    pub family: Family,
    pub decorrelation_m: f64,
    pub sill: f64,
    pub nugget: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_starts_at_one_and_falls() {
        use Family::*;
        for family in [Exponential, Gaussian, Spherical, Matern32, Matern52] {
            assert_eq!(family.correlation(0.0), 1.0);
            let values: Vec<f64> =
                (0..60).map(|i| family.correlation(f64::from(i) * 0.1)).collect();
            assert!(values.windows(2).all(|w| w[1] < w[0] || w[0] == 0.0), "{family:?}");
            assert!(values[59] < 0.01);
        }
    }
}
