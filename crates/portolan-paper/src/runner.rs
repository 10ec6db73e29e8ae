//! Runs the trials of experiments, one per thread, and adds every result to the journal at once.
//! What the journal holds is never run again.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use portolan::{Context, EstimateError, InputError, Progress};
use rayon::ThreadPoolBuilder;

use crate::data::Data;
use crate::error::ReproduceError;
use crate::experiment::{Experiment, TrialSetup};
use crate::journal::Journal;
use crate::record::{Figures, Outcome, Record};
use crate::scene::PreparedScene;

/// How to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunSettings {
    pub trials: usize,
    /// Trial t has seed `first_seed` + t.
    pub first_seed: u64,
    pub threads: usize,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Status {
    pub done: usize,
    pub total: usize,
    /// From the time that finished trials took; none before the first.
    pub seconds_left: Option<f64>,
}

/// Who watches a run and may stop it.
pub struct Watch<'a> {
    pub go_on: &'a (dyn Fn() -> bool + Sync),
    pub status: &'a (dyn Fn(Status) + Sync),
}

/// What a run did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Done {
    /// Trials that were asked for.
    pub asked: usize,
    /// Trials that the journal held already.
    pub known: usize,
    /// Trials that could not be run at all, by reason.
    pub refused: Vec<(String, usize)>,
}

/// A setup with its seed.
struct Trial<'a> {
    setup: &'a TrialSetup,
    key: String,
    number: usize,
    /// Trials that differ in nothing but their number take about the same time.
    kind: usize,
}

/// Runs what is missing. Trials whose request cannot be met are counted, and the others go on.
pub fn run(
    experiments: &[Experiment],
    settings: &RunSettings,
    data: &Data,
    journal: &Mutex<Journal>,
    watch: &Watch<'_>,
) -> Result<Done, ReproduceError> {
    let mut done = Done::default();
    let trials = trials(experiments, settings, &lock(journal), &mut done);
    let (alone, together): (Vec<Trial<'_>>, Vec<Trial<'_>>) =
        trials.into_iter().partition(|trial| trial.setup.alone);
    let clock = Mutex::new(Clock::new(&together, &alone, settings.threads));
    let board = Board { settings, data, journal, watch, clock: &clock, refused: Mutex::default() };
    (watch.status)(lock(&clock).status());
    board.work(&together, settings.threads, 1)?;
    board.work(&alone, 1, settings.threads)?;
    done.refused = board.refused.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(done)
}

/// What is missing, in the order in which it is run.
fn trials<'a>(
    experiments: &'a [Experiment],
    settings: &RunSettings,
    journal: &Journal,
    done: &mut Done,
) -> Vec<Trial<'a>> {
    let cells = || experiments.iter().flat_map(Experiment::cells);
    let mut seen = HashSet::new();
    let mut trials = Vec::new();
    for number in 0..settings.trials {
        let mut due: Vec<_> =
            cells().enumerate().filter(|(_, cell)| number < cell.most_trials).collect();
        // What takes minutes comes last: a run that is stopped early has all the rest.
        due.sort_by_key(|(_, cell)| Reverse(cell.most_trials));
        for (kind, cell) in due {
            let Some(setup) = &cell.setup else { continue };
            let key = setup.key(settings.first_seed, number);
            if !seen.insert(key.clone()) {
                continue;
            }
            done.asked += 1;
            if journal.get(&key).is_some() {
                done.known += 1;
            } else {
                trials.push(Trial { setup, key, number, kind });
            }
        }
    }
    trials
}

struct Board<'a> {
    settings: &'a RunSettings,
    data: &'a Data,
    journal: &'a Mutex<Journal>,
    watch: &'a Watch<'a>,
    clock: &'a Mutex<Clock>,
    refused: Mutex<Vec<(String, usize)>>,
}

impl Board<'_> {
    /// Takes trials one after the other with several workers, each with a pool of its own: a trial
    /// that waits must not be handed another one's work, which would spoil its seconds.
    fn work(
        &self,
        trials: &[Trial<'_>],
        workers: usize,
        threads: usize,
    ) -> Result<(), ReproduceError> {
        let next = AtomicUsize::new(0);
        let failure = Mutex::new(None);
        let worker = || {
            let pool = match ThreadPoolBuilder::new().num_threads(threads.max(1)).build() {
                Ok(pool) => pool,
                Err(error) => {
                    let error = InputError::Request(format!("{threads} threads: {error}"));
                    return *lock(&failure) = Some(error.into());
                }
            };
            while lock(&failure).is_none() {
                let Some(trial) = trials.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                if let Err(error) = pool.install(|| self.perform(trial)) {
                    *lock(&failure) = Some(error);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..workers.max(1).min(trials.len()) {
                scope.spawn(worker);
            }
        });
        failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    fn perform(&self, trial: &Trial<'_>) -> Result<(), ReproduceError> {
        if !(self.watch.go_on)() {
            return Err(ReproduceError::Stopped);
        }
        let begun = Instant::now();
        // A mistake in one method must not cost the hours of the others.
        let result = catch_unwind(AssertUnwindSafe(|| self.outcome(trial))).unwrap_or_else(|_| {
            let message = format!("{} panicked on {}", trial.setup.method, trial.key);
            Err(InputError::Request(message).into())
        });
        let outcome = match result {
            Ok(figures) => Some(Outcome::Scored(figures)),
            Err(EstimateError::Cancelled) => return Err(ReproduceError::Stopped),
            Err(EstimateError::Input(error)) => {
                self.refuse(error.to_string());
                None
            }
            Err(error) => Some(Outcome::Failed(error.to_string())),
        };
        if let Some(outcome) = outcome {
            let key = trial.key.clone();
            lock(self.journal).add(Record { key, trial: trial.number, outcome })?;
        }
        let mut clock = lock(self.clock);
        clock.finished(trial.kind, begun.elapsed().as_secs_f64());
        (self.watch.status)(clock.status());
        Ok(())
    }

    fn outcome(&self, trial: &Trial<'_>) -> Result<Figures, EstimateError> {
        let Trial { setup, number, .. } = trial;
        let seed = self.settings.first_seed + *number as u64;
        let prepared =
            PreparedScene::make(&setup.scene, self.data, seed).map_err(|error| match error {
                ReproduceError::Input(error) => error,
                other => InputError::Request(other.to_string()),
            })?;
        let method = prepared.method(&setup.method)?;
        let go_on = |_: f64| (self.watch.go_on)();
        let begun = Instant::now();
        let fit_begun = Mutex::new(begun);
        let mark = || *lock(&fit_begun) = Instant::now();
        let progress = Progress::new(&go_on).with_fit_start(&mark);
        let context = Context {
            emitters: setup.emitters,
            seed,
            truth: prepared.true_map(),
            ..Context::default()
        };
        let model = method.fit(&prepared.readings, &context, &progress)?;
        let map = model.default_map(&progress)?;
        let ended = Instant::now();
        let mut figures = prepared.score(&map)?;
        figures.seconds = (ended - begun).as_secs_f64();
        figures.fit_seconds = (ended - *lock(&fit_begun)).as_secs_f64();
        if setup.draws(*number) {
            let draw = |&band: &usize| (band, prepared.drawn(&map, band));
            figures.fields = setup.draw.iter().map(draw).collect();
        }
        Ok(figures)
    }

    fn refuse(&self, reason: String) {
        let mut refused = lock(&self.refused);
        match refused.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += 1,
            None => refused.push((reason, 1)),
        }
    }
}

/// Guesses the time left from what trials of the same kind took.
struct Clock {
    done: usize,
    total: usize,
    threads: usize,
    /// Left and alone-left per kind.
    left: HashMap<usize, (usize, bool)>,
    /// Sum of seconds and number of finished trials per kind.
    took: HashMap<usize, (f64, usize)>,
}

impl Clock {
    fn new(together: &[Trial<'_>], alone: &[Trial<'_>], threads: usize) -> Self {
        let mut left: HashMap<usize, (usize, bool)> = HashMap::new();
        for trial in together.iter().chain(alone) {
            left.entry(trial.kind).or_insert((0, trial.setup.alone)).0 += 1;
        }
        let total = together.len() + alone.len();
        Self { done: 0, total, threads: threads.max(1), left, took: HashMap::new() }
    }

    fn finished(&mut self, kind: usize, seconds: f64) {
        self.done += 1;
        if let Some((left, _)) = self.left.get_mut(&kind) {
            *left = left.saturating_sub(1);
        }
        let (sum, count) = self.took.entry(kind).or_default();
        *sum += seconds;
        *count += 1;
    }

    fn status(&self) -> Status {
        let all = self.took.values().fold((0.0, 0), |(s, n), (sum, count)| (s + sum, n + count));
        let mean = |(sum, count): (f64, usize)| sum / count.max(1) as f64;
        let left: f64 = self
            .left
            .iter()
            .map(|(kind, (left, alone))| {
                let each = mean(self.took.get(kind).copied().unwrap_or(all));
                *left as f64 * each / if *alone { 1.0 } else { self.threads as f64 }
            })
            .sum();
        let seconds_left = (all.1 > 0).then_some(left);
        Status { done: self.done, total: self.total, seconds_left }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
