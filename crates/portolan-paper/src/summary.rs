//! Mean and standard error of what the journal holds for a cell.

use crate::experiment::TableCell;
use crate::journal::Journal;
use crate::record::{Figures, Metric, Outcome};

/// A cell over all its trials.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellSummary {
    /// Trials with figures.
    pub maps: usize,
    /// Trials whose fit gave none.
    pub failed: usize,
    figures: Vec<Figures>,
}

/// Mean over trials, with its standard error where there are at least two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    pub mean: f64,
    pub error: Option<f64>,
}

impl CellSummary {
    /// Everything that the journal holds for a cell.
    pub fn of(cell: &TableCell, journal: &Journal, first_seed: u64) -> Self {
        let mut summary = Self::default();
        let Some(setup) = &cell.setup else { return summary };
        for trial in 0..journal.trials() {
            match journal.get(&setup.key(first_seed, trial)).map(|record| &record.outcome) {
                Some(Outcome::Scored(figures)) => {
                    summary.maps += 1;
                    summary.figures.push(Figures { fields: Vec::new(), ..figures.clone() });
                }
                Some(Outcome::Failed(_)) => summary.failed += 1,
                None => {}
            }
        }
        summary
    }

    pub fn is_empty(&self) -> bool {
        self.maps + self.failed == 0
    }

    /// Means of SSIM by each convention, over the trials that have them.
    pub fn ssim_by_convention(&self) -> Vec<f64> {
        let all: Vec<&Vec<f64>> = self.figures.iter().map(|f| &f.ssim_by_convention).collect();
        let there: Vec<_> = all.into_iter().filter(|values| !values.is_empty()).collect();
        let width = there.first().map_or(0, |values| values.len());
        let of = |i: usize| there.iter().filter_map(move |values| values.get(i));
        (0..width).map(|i| of(i).sum::<f64>() / of(i).count() as f64).collect()
    }

    pub fn mean(&self, metric: Metric) -> Option<Mean> {
        let values: Vec<f64> = self.figures.iter().filter_map(|f| metric.of(f)).collect();
        mean(&values)
    }
}

fn mean(values: &[f64]) -> Option<Mean> {
    if values.is_empty() {
        return None;
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    let error = (values.len() > 1).then(|| (squares / (n * (n - 1.0))).sqrt());
    Some(Mean { mean, error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_errors_are_of_the_mean() {
        assert_eq!(mean(&[]), None);
        assert_eq!(mean(&[2.0]), Some(Mean { mean: 2.0, error: None }));
        let Some(Mean { mean, error: Some(error) }) = mean(&[1.0, 2.0, 3.0, 4.0]) else { panic!() };
        // Sample variance 5/3, over 4 values.
        assert_eq!(mean, 2.5);
        assert!((error - (5.0f64 / 12.0).sqrt()).abs() < 1e-15);
    }
}
