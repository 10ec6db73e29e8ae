//! Means and how far they can be trusted.

/// A mean and its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The mean; NaN where a value is.
    pub mean: f64,
    /// Its standard error; 0 for one value.
    pub error: f64,
}

impl Mean {
    /// Of some values.
    pub fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
        Self { mean, error: (variance / (count * (count - 1.0).max(1.0))).sqrt() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_those_of_the_mean() {
        let found = Mean::of(&[1.0, 2.0, 3.0, 6.0]);
        assert_eq!(found.mean, 3.0);
        // Variance 14 / 3, over four values.
        assert!((found.error - (14.0f64 / 12.0).sqrt()).abs() < 1e-15);
        assert_eq!(Mean::of(&[2.5]), Mean { mean: 2.5, error: 0.0 });
    }
}
