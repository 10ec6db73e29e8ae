//! An engine that leaves to the processor what the device cannot do.

use portolan::Progress;
use portolan::decoder::{Decoder, Network};
use portolan::engine::{
    CpuEngine, Engine, EngineError, FitOptions, FitProblem, ImitationOptions, ImitationProblem,
    Outcomes, Unknowns,
};

use crate::CudaEngine;

/// A CUDA device, and the processor for fits that it refuses.
#[derive(Debug)]
pub struct Lenient {
    device: CudaEngine,
}

impl Lenient {
    /// Asks this device first.
    pub fn new(device: CudaEngine) -> Self {
        Self { device }
    }
}

impl Engine for Lenient {
    fn name(&self) -> &str {
        self.device.name()
    }

    fn at_once(&self) -> Option<usize> {
        self.device.at_once()
    }

    fn fit(
        &self,
        decoder: &Decoder,
        problems: &[FitProblem<'_>],
        options: &FitOptions,
        progress: &Progress<'_>,
    ) -> Outcomes<Unknowns> {
        match self.device.fit(decoder, problems, options, progress) {
            Err(EngineError::Refused { .. }) => CpuEngine.fit(decoder, problems, options, progress),
            outcomes => outcomes,
        }
    }

    fn imitate(
        &self,
        decoder: &Decoder,
        problems: &[ImitationProblem<'_>],
        options: &ImitationOptions,
        progress: &Progress<'_>,
    ) -> Outcomes<Network> {
        match self.device.imitate(decoder, problems, options, progress) {
            Err(EngineError::Refused { .. }) => {
                CpuEngine.imitate(decoder, problems, options, progress)
            }
            outcomes => outcomes,
        }
    }
}
