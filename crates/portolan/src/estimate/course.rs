//! The course of a descent: how rates fall, when it stops, and what it says when it diverges.

use super::OptionSpec;
use crate::error::EstimateError;
use crate::progress::Progress;

/// How the learning rates go from the first iteration to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// As given, throughout: the paper's.
    Constant,
    /// Half a cosine down to a hundredth.
    Cosine,
}

impl Schedule {
    pub fn factor(self, iteration: usize, iterations: usize) -> f64 {
        match self {
            Schedule::Constant => 1.0,
            Schedule::Cosine => {
                let t = iteration as f64 / iterations.max(1) as f64;
                0.01 + 0.99 * 0.5 * (1.0 + (std::f64::consts::PI * t).cos())
            }
        }
    }
}

/// Iterations in a row that must change little before a descent stops early.
const CALM: usize = 5;

/// The option behind a course's tolerance, where it is off by default.
pub(super) const TOLERANCE: OptionSpec = OptionSpec {
    name: "tolerance",
    default: "0",
    takes: "stop once the loss changes relatively less; 0 = never",
};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Course {
    pub iterations: usize,
    /// Stop once the relative change of the loss stays below this; 0 = never.
    pub tolerance: f64,
    pub schedule: Schedule,
}

impl Course {
    /// Evaluates the loss and takes a step, with the factor of the learning rates, until the course
    /// is run; returns the loss before every step. `rates` are the options to lower where the loss
    /// is not finite.
    pub fn run<T>(
        &self,
        progress: &Progress<'_>,
        rates: &str,
        state: &mut T,
        mut evaluate: impl FnMut(&mut T) -> f64,
        mut step: impl FnMut(&mut T, f64),
    ) -> Result<Vec<f64>, EstimateError> {
        let mut trace: Vec<f64> = Vec::with_capacity(self.iterations);
        let mut calm = 0;
        for iteration in 0..self.iterations {
            progress.report(iteration, self.iterations)?;
            let loss = evaluate(state);
            if !loss.is_finite() {
                return Err(EstimateError::Numerical(format!(
                    "the fit diverged at iteration {iteration}: lower {rates}"
                )));
            }
            let change =
                trace.last().map_or(f64::INFINITY, |last| (last - loss).abs() / last.abs());
            calm = if change < self.tolerance { calm + 1 } else { 0 };
            trace.push(loss);
            if calm >= CALM {
                break;
            }
            step(state, self.schedule.factor(iteration, self.iterations));
        }
        Ok(trace)
    }
}
