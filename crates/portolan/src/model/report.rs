//! The report of a fit.

/// The report of a fit, as text and for `--json`.
#[derive(Clone, Debug, PartialEq, Default)]
#[non_exhaustive]
pub struct Report {
    /// The method that was asked for.
    pub method: String,
    /// The method that made the model, where another one chose it.
    pub chosen: Option<String>,
    /// What was compared to choose, and how each did.
    pub candidates: Vec<Candidate>,
    /// Iterations of the fit; 0 for closed-form methods.
    pub iterations: usize,
    /// Final value of what was minimised, where something was.
    pub loss: Option<f64>,
    /// Loss before every iteration, where there were iterations; not kept in files.
    pub loss_trace: Vec<f64>,
    /// Fitted values: hyperparameters and the like.
    pub fitted: Vec<(String, f64)>,
    /// What stands between transmitters and places, and how much it takes.
    pub columns: Vec<crate::estimate::ColumnFinding>,
    /// Notes for the user: neighbourhoods used, bands that could not be fitted.
    pub notes: Vec<String>,
}

/// A method that was compared with others.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Candidate {
    /// Its name with its settings.
    pub method: String,
    /// Root mean square error at held-out sensors in dB; None where it failed or was not judged.
    pub rmse_db: Option<f64>,
    /// Its share of the prediction, where methods were combined.
    pub weight: Option<f64>,
}

impl Report {
    /// Adds fitted values.
    pub fn add_fitted(&mut self, fitted: &[(&str, f64)]) {
        self.fitted.extend(fitted.iter().map(|(name, value)| (name.to_string(), *value)));
    }

    /// The value of something that was fitted.
    pub fn fitted(&self, name: &str) -> Option<f64> {
        self.fitted.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    /// The report of a descent.
    pub fn of_descent(trace: Vec<f64>) -> Self {
        Self {
            iterations: trace.len(),
            loss: trace.last().copied(),
            loss_trace: trace,
            ..Self::default()
        }
    }
}
