//! The engine that is always there: one map is fitted by one [`DecoderFit`], maps run side by side.

mod fit;
mod imitation;

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::problem::{
    Descended, FitOptions, FitProblem, ImitationOptions, ImitationProblem, Targets, Unknowns,
};
use super::{Engine, EngineError, Outcomes};
use crate::descent::{Diverged, Halt};
use crate::likelihood::{Likelihood, SquaredError};
use crate::misfit::{Misfit, cropped_rows, padded_rows};
use crate::progress::Progress;
use crate::quantiser::MISSING_LEVEL;
use fit::DecoderFit;
use imitation::Imitation;
use portolan_decoder::{Decoder, Network};

/// Runs fits on the processor. It refuses nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuEngine;

impl Engine for CpuEngine {
    fn name(&self) -> &str {
        "cpu"
    }

    fn fit(
        &self,
        decoder: &Decoder,
        problems: &[FitProblem<'_>],
        options: &FitOptions,
        progress: &Progress<'_>,
    ) -> Outcomes<Unknowns> {
        problems.iter().try_for_each(|problem| problem.check(decoder))?;
        let iterations = options.descent.most();
        batch(decoder, problems, iterations, progress, |decoder, problem, progress| {
            fit_one(decoder, problem, options, progress)
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
        let iterations = options.descent.most();
        batch(decoder, problems, iterations, progress, |decoder, problem, progress| {
            let mut at = problem.start.clone();
            let mut imitation = Imitation::new(decoder, problem.targets, problem.offset);
            let trace = imitation.descend(&mut at, options, progress)?;
            Ok(Descended { at, trace })
        })
    }
}

/// Does every problem, on as many threads as there are.
fn batch<P: Sync, T: Send>(
    decoder: &Decoder,
    problems: &[P],
    iterations: usize,
    progress: &Progress<'_>,
    one: impl Fn(&Decoder, &P, &Progress<'_>) -> Result<Descended<T>, Halt> + Sync,
) -> Outcomes<T> {
    // Where there is a map for each thread, a pass is not shared among threads as well.
    let alone =
        (problems.len() >= rayon::current_num_threads()).then(|| decoder.clone().parallel(false));
    let decoder = alone.as_ref().unwrap_or(decoder);
    if let [problem] = problems {
        // From outside the pool every shared pass would be handed over to it and waited for.
        let outcome = match decoder.is_parallel() {
            true => rayon::scope(|_| one(decoder, problem, progress)),
            false => one(decoder, problem, progress),
        };
        return Ok(vec![settled(outcome)?]);
    }
    let (done, total) = (AtomicUsize::new(0), problems.len() * iterations);
    let count = |_: f64| progress.report(done.fetch_add(1, Ordering::Relaxed), total).is_ok();
    problems
        .par_iter()
        .with_max_len(1)
        .map(|problem| settled(one(decoder, problem, &Progress::new(&count))))
        .collect()
}

/// A map that diverges is an outcome; being cancelled ends the batch.
fn settled<T>(
    outcome: Result<Descended<T>, Halt>,
) -> Result<Result<Descended<T>, Diverged>, EngineError> {
    match outcome {
        Ok(descended) => Ok(Ok(descended)),
        Err(Halt::Diverged(diverged)) => Ok(Err(diverged)),
        Err(Halt::Cancelled) => Err(EngineError::Cancelled),
    }
}

fn fit_one(
    decoder: &Decoder,
    problem: &FitProblem<'_>,
    options: &FitOptions,
    progress: &Progress<'_>,
) -> Result<Descended<Unknowns>, Halt> {
    let (bands, offset) = (problem.bands, f64::from(problem.offset));
    match problem.targets {
        Targets::LnPower(targets) => {
            let misfit = Misfit::new(SquaredError::plain(), targets, f32::NAN, bands, offset);
            descend(decoder, problem, misfit, options, progress)
        }
        Targets::Power(targets) => {
            let misfit = Misfit::linear(SquaredError::plain(), targets, f32::NAN, bands);
            descend(decoder, problem, misfit, options, progress)
        }
        Targets::Levels { levels, probit } => {
            let misfit = Misfit::new(probit.clone(), levels, MISSING_LEVEL, bands, offset);
            descend(decoder, problem, misfit, options, progress)
        }
    }
}

fn descend<L: Likelihood<f32>>(
    decoder: &Decoder,
    problem: &FitProblem<'_>,
    misfit: Misfit<L>,
    options: &FitOptions,
    progress: &Progress<'_>,
) -> Result<Descended<Unknowns>, Halt> {
    let readout = decoder.readout(problem.cells).expect("the cells were checked");
    let start = problem.start;
    let psd = padded_rows(&start.psd, problem.bands);
    let mut at = Unknowns { network: start.network.clone(), psd };
    let trace = DecoderFit::new(decoder, &readout, misfit).descend(&mut at, options, progress)?;
    at.psd = cropped_rows(&at.psd, problem.bands);
    Ok(Descended { at, trace })
}
