//! How a descent runs: how its rates fall, when it stops, and what it says when it diverges.

use thiserror::Error;

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
    /// What the rates are multiplied by at an iteration, counted from 0.
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
pub const CALM: usize = 5;

/// When a descent is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Ending {
    /// After all iterations, or earlier once the relative change of the loss was below the
    /// tolerance five times in a row (the paper's text).
    #[default]
    Either,
    /// After all iterations and once the loss changes by less than the tolerance (the paper's
    /// algorithm box). Rates that do not fall may never let it calm down, so that there is an end,
    /// and the iterate of least loss counts instead of the last.
    Both {
        /// The most iterations.
        most: usize,
    },
}

/// The plan of a descent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Descent {
    /// Iterations, as [`Ending`] understands them.
    pub iterations: usize,
    /// The change of the loss that counts as none; 0 = the iterations alone decide.
    pub tolerance: f64,
    /// When it is over.
    pub ending: Ending,
    /// How the learning rates fall.
    pub schedule: Schedule,
}

/// The loss was not a finite number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the fit diverged at iteration {iteration}")]
#[non_exhaustive]
pub struct Diverged {
    /// Counted from 0.
    pub iteration: usize,
}

impl Diverged {
    /// At an iteration, counted from 0: what an engine says of a map.
    pub fn at(iteration: usize) -> Self {
        Self { iteration }
    }
}

/// Why a descent did not run to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt {
    /// The progress callback asked to stop.
    Cancelled,
    /// The loss was not a finite number.
    Diverged(Diverged),
}

impl Halt {
    /// What the user reads; `rates` are the options to lower where the fit diverged.
    pub fn explained(self, rates: &str) -> EstimateError {
        match self {
            Halt::Cancelled => EstimateError::Cancelled,
            Halt::Diverged(diverged) => {
                EstimateError::Numerical(format!("{diverged}: lower {rates}"))
            }
        }
    }
}

impl Descent {
    /// The most iterations.
    pub fn most(&self) -> usize {
        match self.ending {
            Ending::Both { most } if self.tolerance > 0.0 => most.max(self.iterations),
            _ => self.iterations,
        }
    }

    /// Whether the iterate of least loss is the result.
    pub fn keeps_best(&self) -> bool {
        matches!(self.ending, Ending::Both { .. })
    }

    /// Evaluates the loss and takes a step, with the factor of the learning rates, until the
    /// descent is over; returns the loss before every step.
    pub fn run<T>(
        &self,
        progress: &Progress<'_>,
        state: &mut T,
        mut evaluate: impl FnMut(&mut T) -> f64,
        mut step: impl FnMut(&mut T, f64),
    ) -> Result<Vec<f64>, Halt> {
        let mut trace: Vec<f64> = Vec::with_capacity(self.iterations);
        let mut calm = 0;
        let most = self.most();
        for iteration in 0..most {
            progress.report(iteration, most).map_err(|_| Halt::Cancelled)?;
            let loss = evaluate(state);
            if !loss.is_finite() {
                return Err(Halt::Diverged(Diverged { iteration }));
            }
            let change = trace.last().map_or(f64::INFINITY, |last| (last - loss).abs());
            let relative = change / trace.last().map_or(1.0, |last| last.abs());
            calm = if relative < self.tolerance { calm + 1 } else { 0 };
            trace.push(loss);
            let over = match self.ending {
                Ending::Either => calm >= CALM,
                Ending::Both { .. } => iteration >= self.iterations && change < self.tolerance,
            };
            if over {
                break;
            }
            step(state, self.schedule.factor(iteration, self.iterations));
        }
        Ok(trace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descent(iterations: usize, tolerance: f64) -> Descent {
        Descent { iterations, tolerance, ending: Ending::Either, schedule: Schedule::Cosine }
    }

    #[test]
    fn rates_fall_to_a_hundredth() {
        assert_eq!(Schedule::Cosine.factor(0, 10), 1.0);
        assert!((Schedule::Cosine.factor(5, 10) - 0.505).abs() < 1e-12);
        assert!((Schedule::Cosine.factor(10, 10) - 0.01).abs() < 1e-12);
        assert_eq!(Schedule::Constant.factor(7, 10), 1.0);
    }

    #[test]
    fn it_stops_when_calm_and_says_where_it_diverged() {
        let silent = Progress::silent();
        let run = |tolerance: f64, losses: &[f64]| {
            let mut at = 0;
            descent(losses.len(), tolerance).run(
                &silent,
                &mut at,
                |at| losses[*at],
                |at, _| *at += 1,
            )
        };
        let losses = [9.0, 8.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 3.0, 2.0];
        assert_eq!(run(0.0, &losses).unwrap(), losses);
        assert_eq!(run(1e-3, &losses).unwrap(), losses[..8]);
        let diverged = run(0.0, &[1.0, 2.0, f64::INFINITY, 1.0]).unwrap_err();
        assert_eq!(diverged, Halt::Diverged(Diverged { iteration: 2 }));
        assert_eq!(
            diverged.explained("lr").to_string(),
            "the fit diverged at iteration 2: lower lr"
        );
    }

    #[test]
    fn the_boxs_loop_goes_on_while_either_condition_holds() {
        let run = |tolerance: f64, change: f64| {
            let both = Descent { ending: Ending::Both { most: 40 }, ..descent(4, tolerance) };
            let mut loss = 100.0;
            both.run(&Progress::silent(), &mut loss, |loss| *loss, |loss, _| *loss -= change)
        };
        // Not before the iterations, and then at once if nothing changes.
        assert_eq!(run(1e-3, 0.0).unwrap().len(), 5);
        assert_eq!(run(1e-3, 1.0).unwrap().len(), 40);
        assert_eq!(run(0.0, 1.0).unwrap().len(), 4);
    }

    #[test]
    fn it_can_be_cancelled() {
        let until = |done: f64| done < 0.5;
        let mut steps = 0;
        let halt =
            descent(10, 0.0).run(&Progress::new(&until), &mut steps, |_| 1.0, |n, _| *n += 1);
        assert_eq!((halt, steps), (Err(Halt::Cancelled), 5));
    }
}
