//! Batches: every map as if it were alone, errors that say what is wrong.

use super::*;
use crate::likelihood::Probit;
use crate::quantiser::{MISSING_LEVEL, Quantiser};
use crate::simulate::stream;
use portolan_decoder::{Draw, Shape, random_network};

const CELLS: usize = 34 * 14;

fn decoder() -> Decoder {
    Decoder::new(&Shape { channels: 4, ..Shape::default() }, 34, 14, 2).unwrap()
}

/// Repeatable numbers in [0, 1).
fn numbers(len: usize, step: usize) -> Vec<f32> {
    (0..len).map(|i| ((i + 1) * step % 97) as f32 / 97.0).collect()
}

/// What one map owns.
struct Case {
    cells: Vec<usize>,
    bands: usize,
    ln_power: Vec<f32>,
    levels: Option<(Vec<u8>, Probit)>,
    offset: f32,
    start: Unknowns,
}

impl Case {
    fn new(sensors: usize, bands: usize, quantised: bool, seed: u64) -> Self {
        let cells = (0..sensors).map(|i| (i + 1) * 37 % CELLS).collect();
        let mut ln_power: Vec<f32> =
            numbers(sensors * bands, 29).iter().map(|v| 3.0 * v - 5.0).collect();
        ln_power[4] = f32::NAN;
        let quantiser = Quantiser::new(vec![-4.0, -3.0, -2.5], 0.3, 1e-3).unwrap();
        let levels = quantised.then(|| {
            let mut levels: Vec<u8> =
                (0..sensors * bands).map(|i| (i * 29 % 31 % 4) as u8).collect();
            levels[7] = MISSING_LEVEL;
            (levels, Probit::new(&quantiser))
        });
        let network = random_network(&decoder(), Draw::Xavier, &mut stream(seed, 0));
        let start = Unknowns { network, psd: numbers(2 * bands, 13) };
        Self { cells, bands, ln_power, levels, offset: 1e-3 * seed as f32, start }
    }

    fn problem(&self) -> FitProblem<'_> {
        let targets = match &self.levels {
            None => Targets::LnPower(&self.ln_power),
            Some((levels, probit)) => Targets::Levels { levels, probit },
        };
        FitProblem {
            cells: &self.cells,
            bands: self.bands,
            targets,
            offset: self.offset,
            start: &self.start,
        }
    }
}

fn cases() -> [Case; 3] {
    [Case::new(30, 7, false, 1), Case::new(45, 20, true, 2), Case::new(12, 16, false, 3)]
}

fn options(iterations: usize) -> FitOptions {
    FitOptions {
        descent: Descent {
            iterations,
            tolerance: 0.0,
            ending: Ending::Either,
            schedule: Schedule::Cosine,
        },
        rate_network: 0.02,
        rate_psd: 0.01,
        penalties: Penalties { latent: 1e-3, psd: 1e-3, network: 1e-4 },
    }
}

fn on_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

#[test]
fn a_batch_of_three_maps_equals_three_single_fits() {
    let (cases, options, silent) = (cases(), options(25), Progress::silent());
    let problems = cases.each_ref().map(Case::problem);
    let decoder = decoder();
    let fit = |decoder: &Decoder, problems: &[FitProblem<'_>]| {
        CpuEngine.fit(decoder, problems, &options, &silent).unwrap()
    };
    let singles: Vec<_> = problems.iter().flat_map(|one| fit(&decoder, &[*one])).collect();
    for (case, single) in cases.iter().zip(&singles) {
        let Descended { at, trace } = single.as_ref().unwrap();
        assert!(trace.len() == 25 && trace[24] < trace[0], "{trace:?}");
        assert_eq!(at.psd.len(), 2 * case.bands);
        assert_ne!(at, &case.start);
    }
    // Passes that threads share, and maps that threads share out.
    for (threads, shared) in [(1, false), (2, true), (5, true)] {
        let decoder = decoder.clone().parallel(shared);
        let together = on_threads(threads, || fit(&decoder, &problems));
        assert!(together == singles, "{threads} threads");
    }
}

#[test]
fn a_batch_of_imitations_equals_single_ones() {
    let (cases, decoder, silent) = (cases(), decoder(), Progress::silent());
    let drawn = [11, 17, 23]
        .map(|step| numbers(2 * CELLS, step).iter().map(|v| v - 2.0).collect::<Vec<f32>>());
    let descent = Descent {
        iterations: 40,
        tolerance: 0.0,
        ending: Ending::Either,
        schedule: Schedule::Cosine,
    };
    let options = ImitationOptions { descent, rate: 0.03 };
    let problems: Vec<_> = drawn
        .iter()
        .zip(&cases)
        .map(|(targets, case)| {
            let (offset, start) = (case.offset, &case.start.network);
            ImitationProblem { targets, offset, start }
        })
        .collect();
    let imitate = |problems: &[ImitationProblem<'_>]| {
        CpuEngine.imitate(&decoder, problems, &options, &silent).unwrap()
    };
    let singles: Vec<_> = problems.iter().flat_map(|one| imitate(&[*one])).collect();
    assert!(singles.iter().all(|one| {
        let trace = &one.as_ref().unwrap().trace;
        trace.len() == 40 && trace[39] < 0.5 * trace[0]
    }));
    assert!(on_threads(3, || imitate(&problems)) == singles);
}

#[test]
fn a_map_that_diverges_does_not_cost_the_others() {
    let (mut cases, silent) = (cases(), Progress::silent());
    cases[1].start.psd[3] = f32::INFINITY;
    let problems = cases.each_ref().map(Case::problem);
    let outcomes = CpuEngine.fit(&decoder(), &problems, &options(3), &silent).unwrap();
    assert_eq!(outcomes[1], Err(Diverged { iteration: 0 }));
    assert!(outcomes[0].is_ok() && outcomes[2].is_ok());
}

#[test]
fn progress_rises_over_the_whole_batch_and_cancels_it() {
    let cases = cases();
    let problems = cases.each_ref().map(Case::problem);
    let seen = std::sync::Mutex::new(Vec::new());
    let note = |done: f64| {
        seen.lock().unwrap().push(done);
        true
    };
    let fit =
        |progress: &Progress<'_>| CpuEngine.fit(&decoder(), &problems, &options(10), progress);
    on_threads(1, || fit(&Progress::new(&note))).unwrap();
    let expected: Vec<f64> = (0..30).map(|k| f64::from(k) / 30.0).collect();
    assert_eq!(seen.into_inner().unwrap(), expected);
    let half = |done: f64| done < 0.5;
    assert_eq!(fit(&Progress::new(&half)), Err(EngineError::Cancelled));
}

#[test]
fn malformed_problems_name_the_part_that_is_wrong() {
    let (case, decoder, silent) = (Case::new(30, 7, false, 1), decoder(), Progress::silent());
    let good = case.problem();
    assert_eq!(good.check(&decoder), Ok(()));
    let short = Unknowns { psd: vec![0.0; 13], ..case.start.clone() };
    let mut latents = case.start.clone();
    latents.network.latents.pop();
    for (problem, word) in [
        (FitProblem { cells: &[0, CELLS], ..good }, "cell 476"),
        (FitProblem { bands: 8, ..good }, "targets"),
        (FitProblem { targets: Targets::LnPower(&[]), ..good }, "targets"),
        (FitProblem { start: &short, ..good }, "PSDs"),
        (FitProblem { start: &latents, ..good }, "latents"),
        (FitProblem { offset: f32::NAN, ..good }, "offset"),
    ] {
        let error = CpuEngine.fit(&decoder, &[good, problem], &options(1), &silent).unwrap_err();
        assert!(matches!(error, EngineError::Malformed(_)));
        assert!(error.to_string().contains(word), "{error}");
    }
    let several = Decoder::new(&Shape { outputs: 3, ..*decoder.shape() }, 34, 14, 2).unwrap();
    assert!(good.check(&several).unwrap_err().to_string().contains("3 outputs"));
}
