//! Mixtures: what several laws or models say of one entry, added up.

/// Mean and variance of a mixture.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moments {
    weight: f64,
    pub mean: f64,
    /// Weighted variances within the parts, and of their means.
    within: f64,
    between: f64,
}

impl Moments {
    pub fn add(&mut self, weight: f64, mean: f64, variance: f64) {
        if weight <= 0.0 {
            return;
        }
        let total = self.weight + weight;
        let off = mean - self.mean;
        self.between += self.weight * weight / total * off * off;
        self.mean += weight / total * off;
        self.within += weight * variance;
        self.weight = total;
    }

    /// NaN where nothing was added.
    pub fn variance(&self) -> f64 {
        (self.within + self.between) / self.weight
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.weight == 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_added_up_in_any_order() {
        let parts = [(0.2, -3.0, 1.0), (0.0, 99.0, 5.0), (0.5, 2.0, 4.0), (0.3, 1.0, 0.5)];
        let of = |parts: &mut dyn Iterator<Item = &(f64, f64, f64)>| {
            let mut sum = Moments::default();
            parts.for_each(|&(weight, mean, variance)| sum.add(weight, mean, variance));
            (sum.mean, sum.variance())
        };
        let (mean, variance) = of(&mut parts.iter());
        assert!((mean - 0.7).abs() < 1e-12);
        let square = 0.2 * (1.0 + 9.0) + 0.5 * (4.0 + 4.0) + 0.3 * (0.5 + 1.0);
        assert!((variance - (square - 0.7 * 0.7)).abs() < 1e-12, "{variance}");
        let turned = of(&mut parts.iter().rev());
        assert!((turned.0 - mean).abs() < 1e-12 && (turned.1 - variance).abs() < 1e-12);
        assert!(Moments::default().is_empty() && Moments::default().variance().is_nan());
    }
}
