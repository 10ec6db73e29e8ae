//! The engine: sorts a batch into what one kernel can do together, and splits it where memory runs
//! short.

use std::sync::{Arc, Mutex, PoisonError};

use portolan::Progress;
use portolan::decoder::{Decoder, Network};
use portolan::engine::{
    Engine, EngineError, FitOptions, FitProblem, ImitationOptions, ImitationProblem, Outcomes,
    Unknowns,
};

use crate::backend::{Backend, DeviceError};
use crate::descent::{Outcome, Stepping, kind};
use crate::driver::Cuda;
use crate::{layered, resident};

/// How the engine is called in options, messages and reports.
pub(crate) const NAME: &str = "cuda";

/// Maps that one launch takes at most.
const BATCH: usize = 8192;

/// Runs fits on a CUDA device.
#[derive(Debug)]
pub struct CudaEngine {
    backend: Arc<dyn Backend>,
    device: String,
    /// A device does one batch at a time; others wait.
    turn: Mutex<()>,
}

impl CudaEngine {
    /// The engine of the first CUDA device.
    ///
    /// # Errors
    /// Says why there is none: no driver, one that is too old, no device.
    pub fn new() -> Result<Self, EngineError> {
        let cuda = Cuda::open(0).map_err(failed)?;
        let (major, minor) = cuda.capability();
        let device = format!("{}, compute capability {major}.{minor}", cuda.name());
        Ok(Self { device, ..Self::on(Arc::new(cuda)) })
    }

    pub(crate) fn on(backend: Arc<dyn Backend>) -> Self {
        Self { backend, device: "no device".into(), turn: Mutex::default() }
    }

    /// The device in words.
    pub fn device(&self) -> &str {
        &self.device
    }

    fn on_chip(&self, decoder: &Decoder, bands: usize) -> bool {
        resident::fits(decoder, bands) && self.backend.clusters()
    }

    /// Maps that may be in one batch.
    fn most_maps(&self, decoder: &Decoder) -> usize {
        layered::most_maps(decoder).min(BATCH)
    }
}

fn failed(reason: impl ToString) -> EngineError {
    EngineError::Failed { engine: NAME.into(), reason: reason.to_string() }
}

impl From<DeviceError> for EngineError {
    fn from(error: DeviceError) -> Self {
        match error {
            DeviceError::Cancelled => EngineError::Cancelled,
            DeviceError::OutOfMemory { .. } | DeviceError::TooLarge { .. } => {
                EngineError::Refused { engine: NAME.into(), reason: error.to_string() }
            }
            error => failed(error),
        }
    }
}

impl Engine for CudaEngine {
    fn name(&self) -> &str {
        NAME
    }

    fn at_once(&self) -> Option<usize> {
        let resident = self.backend.clusters().then(|| resident::at_once(&self.backend));
        Some(resident.and_then(Result::ok).unwrap_or(64))
    }

    fn fit(
        &self,
        decoder: &Decoder,
        problems: &[FitProblem<'_>],
        options: &FitOptions,
        progress: &Progress<'_>,
    ) -> Outcomes<Unknowns> {
        problems.iter().try_for_each(|problem| problem.check(decoder))?;
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut stepping = Stepping::new(progress, problems.len(), options.descent.most());
        let sort = |problem: &FitProblem<'_>| (problem.bands, kind(&problem.targets));
        let most = self.most_maps(decoder);
        in_groups(problems, most, sort, |problems| match self.on_chip(decoder, problems[0].bands) {
            true => resident::fit(&self.backend, decoder, problems, options, &mut stepping),
            false => layered::fit(&self.backend, decoder, problems, options, &mut stepping),
        })
    }

    fn imitate(
        &self,
        decoder: &Decoder,
        problems: &[ImitationProblem<'_>],
        options: &ImitationOptions,
        progress: &Progress<'_>,
    ) -> Outcomes<Network> {
        problems.iter().try_for_each(|problem| problem.check(decoder))?;
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut stepping = Stepping::new(progress, problems.len(), options.descent.most());
        let most = self.most_maps(decoder);
        in_groups(
            problems,
            most,
            |_| (),
            |problems| match self.on_chip(decoder, 0) {
                true => resident::imitate(&self.backend, decoder, problems, options, &mut stepping),
                false => layered::imitate(&self.backend, decoder, problems, options, &mut stepping),
            },
        )
    }
}

/// Runs problems of the same sort together, as many as the device has memory for.
fn in_groups<P: Copy, K: Ord, T>(
    problems: &[P],
    most: usize,
    sort: impl Fn(&P) -> K,
    mut run: impl FnMut(&[P]) -> Result<Vec<Outcome<T>>, DeviceError>,
) -> Outcomes<T> {
    let mut order: Vec<usize> = (0..problems.len()).collect();
    order.sort_by_key(|&k| sort(&problems[k]));
    let mut outcomes: Vec<Option<Outcome<T>>> = problems.iter().map(|_| None).collect();
    for same in order.chunk_by(|&a, &b| sort(&problems[a]) == sort(&problems[b])) {
        for part in same.chunks(most) {
            let together: Vec<P> = part.iter().map(|&k| problems[k]).collect();
            let found = halved(&together, &mut run)?;
            part.iter().zip(found).for_each(|(&k, outcome)| outcomes[k] = Some(outcome));
        }
    }
    Ok(outcomes.into_iter().map(|outcome| outcome.expect("every problem was in a part")).collect())
}

/// Runs a batch, or its halves where the whole is too much for the device's memory.
fn halved<P: Copy, T>(
    problems: &[P],
    run: &mut impl FnMut(&[P]) -> Result<Vec<Outcome<T>>, DeviceError>,
) -> Result<Vec<Outcome<T>>, DeviceError> {
    match run(problems) {
        Err(DeviceError::OutOfMemory { .. }) if problems.len() > 1 => {
            let (first, second) = problems.split_at(problems.len() / 2);
            let mut found = halved(first, run)?;
            found.extend(halved(second, run)?);
            Ok(found)
        }
        outcome => outcome,
    }
}
