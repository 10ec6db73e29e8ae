//! Where the decoder is fitted: the seam between the methods and what runs their iterations.
//!
//! A method hands an [`Engine`] a batch of problems and gets back what was found for each. All
//! problems of a batch share the [`Decoder`]: its shape, the grid and the number of emitters. Each
//! has its own sensors, targets, offset, bands and start. The engine runs all iterations by itself,
//! so that one on another device moves data once in and once out and can work on all maps and
//! emitters of the batch together. [`CpuEngine`] is the one that is always there.
//!
//! What an engine must keep to:
//! - Adam as in [`Adam`](portolan_decoder::adam::Adam), on network, latents and PSDs, each with moments of its
//!   own; PSDs are set to 0 where a step takes them below.
//! - [`Descent`] says how many iterations, how the rates fall, when to stop early and whether the
//!   last iterate or the one of least loss is the result; the loss before every step is the trace.
//! - The same batch gives the same numbers every time, and a map's numbers do not depend on what
//!   else is in the batch. Two engines agree as far as single precision lets them.

mod cpu;
mod problem;

pub use crate::descent::{Descent, Diverged, Ending, Schedule};
pub use crate::likelihood::{Likelihood, Probit, SquaredError};
pub use crate::misfit::{Misfit, padded_rows};
pub use cpu::CpuEngine;
pub use problem::{
    Descended, FitOptions, FitProblem, ImitationOptions, ImitationProblem, Penalties, Targets,
    Unknowns,
};

use thiserror::Error;

use crate::error::{EstimateError, InputError};
use crate::progress::Progress;
use portolan_decoder::{Decoder, DecoderError, Network};

/// For every problem of a batch, in its order, what was found or where its loss ceased to be a
/// number. One map that diverges does not cost the others.
pub type Outcomes<T> = Result<Vec<Result<Descended<T>, Diverged>>, EngineError>;

/// Runs the iterations of decoder fits, many maps at once.
pub trait Engine: std::fmt::Debug + Send + Sync {
    /// How the engine is called in options, messages and reports.
    fn name(&self) -> &str;

    /// How many maps of a few emitters fill it, where the processor's threads are free for other work
    /// while it runs; None where it needs them itself.
    fn at_once(&self) -> Option<usize> {
        None
    }

    /// Fits networks, latents and PSDs to readings: see [`FitProblem`] for the objective. Reports
    /// the share of all iterations that is done and stops when told to.
    ///
    /// # Errors
    /// If a problem is malformed ([`FitProblem::check`]) or more than the engine can do, if it was
    /// cancelled, or if the device failed: then there are no results at all.
    fn fit(
        &self,
        decoder: &Decoder,
        problems: &[FitProblem<'_>],
        options: &FitOptions,
        progress: &Progress<'_>,
    ) -> Outcomes<Unknowns>;

    /// Teaches networks and latents to draw given SLFs: see [`ImitationProblem`] for the objective.
    ///
    /// # Errors
    /// As [`Engine::fit`].
    fn imitate(
        &self,
        decoder: &Decoder,
        problems: &[ImitationProblem<'_>],
        options: &ImitationOptions,
        progress: &Progress<'_>,
    ) -> Outcomes<Network>;
}

/// Why an engine gave back nothing.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The problem is sound, but not for this engine: a shape it has no code for, too little memory.
    #[error("the engine {engine} cannot do this fit: {reason} (the engine cpu does every fit)")]
    Refused {
        /// Name of the engine.
        engine: String,
        /// What it has no code or memory for.
        reason: String,
    },
    /// The device or its driver failed.
    #[error("the engine {engine} failed: {reason}")]
    Failed {
        /// Name of the engine.
        engine: String,
        /// What the device or driver said.
        reason: String,
    },
    /// Sizes or cells that do not fit together.
    #[error(transparent)]
    Malformed(#[from] InputError),
    /// The progress callback asked to stop.
    #[error("stopped before the fit was finished")]
    Cancelled,
}

impl From<DecoderError> for EngineError {
    fn from(error: DecoderError) -> Self {
        Self::Malformed(InputError::Decoder(error))
    }
}

impl From<EngineError> for EstimateError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Malformed(error) => EstimateError::Input(error),
            EngineError::Cancelled => EstimateError::Cancelled,
            error => EstimateError::Engine(error),
        }
    }
}

#[cfg(test)]
mod tests;
