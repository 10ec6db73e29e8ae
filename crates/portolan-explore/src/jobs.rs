//! Long work beside the server: how far it is, what came of it, and a way to stop it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use portolan::Progress;
use portolan::advise::Advice;
use portolan::estimate::Residuals;
use portolan::{RadioMap, Readings, Site};
use serde_json::{Value, json};

use crate::answer::Refusal;

/// Jobs that run at once.
const MOST_RUNNING: usize = 2;
/// Finished jobs that are remembered.
const MOST_KEPT: usize = 32;

/// What came of a job.
pub enum Outcome {
    /// A new item.
    Item(u32),
    /// Errors of methods at held-out sensors.
    Validated { readings: Arc<Readings>, rows: Vec<Judged>, about: Value },
    /// Places for new sensors.
    Advised { sensors: Vec<Site>, map: Box<RadioMap>, advice: Vec<Advice> },
}

/// A method at held-out sensors.
pub struct Judged {
    pub label: String,
    pub found: Result<Residuals, String>,
    pub seconds: f64,
}

enum State {
    Running,
    Done(Arc<Outcome>),
    Failed(String),
    Cancelled,
}

/// One job.
pub struct Job {
    pub id: u32,
    kind: &'static str,
    /// The item that it is about.
    of: u32,
    /// What it is about, for people.
    what: String,
    share: AtomicU64,
    stop: AtomicBool,
    state: Mutex<State>,
    started: Instant,
    /// Milliseconds that it took, where it has ended.
    took: AtomicU64,
}

impl Job {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn cancel(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub fn running(&self) -> bool {
        matches!(*self.state(), State::Running)
    }

    /// What came of it, where it is done.
    pub fn outcome(&self) -> Option<Arc<Outcome>> {
        match &*self.state() {
            State::Done(outcome) => Some(outcome.clone()),
            _ => None,
        }
    }

    /// How it stands.
    pub fn json(&self) -> Value {
        let (state, error) = match &*self.state() {
            State::Running => ("running", None),
            State::Done(_) => ("done", None),
            State::Failed(error) => ("failed", Some(error.clone())),
            State::Cancelled => ("cancelled", None),
        };
        let seconds = match state {
            "running" => self.started.elapsed().as_secs_f64(),
            _ => self.took.load(Ordering::Relaxed) as f64 / 1e3,
        };
        json!({
            "id": self.id,
            "kind": self.kind,
            "of": self.of,
            "what": self.what,
            "state": state,
            "share": f64::from_bits(self.share.load(Ordering::Relaxed)),
            "seconds": seconds,
            "error": error,
        })
    }
}

/// All jobs.
#[derive(Default)]
pub struct Jobs {
    jobs: Mutex<Vec<Arc<Job>>>,
    last: AtomicU32,
}

impl Jobs {
    /// Starts a job on a thread of its own.
    pub fn start(
        &self,
        kind: &'static str,
        of: u32,
        what: String,
        work: impl FnOnce(&Progress<'_>) -> Result<Outcome, Refusal> + Send + 'static,
    ) -> Result<Arc<Job>, Refusal> {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        if jobs.iter().filter(|job| job.running()).count() >= MOST_RUNNING {
            return Err(Refusal::busy(format!(
                "{MOST_RUNNING} jobs are running: wait for one, or cancel it"
            )));
        }
        while jobs.len() >= MOST_KEPT {
            let Some(oldest) = jobs.iter().position(|job| !job.running()) else { break };
            jobs.remove(oldest);
        }
        let job = Arc::new(Job {
            id: 1 + self.last.fetch_add(1, Ordering::Relaxed),
            kind,
            of,
            what,
            share: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            state: Mutex::new(State::Running),
            started: Instant::now(),
            took: AtomicU64::new(0),
        });
        let (own, told) = (job.clone(), job.clone());
        let run = move || {
            let go_on = |share: f64| {
                told.share.fetch_max(share.max(0.0).to_bits(), Ordering::Relaxed);
                !told.stop.load(Ordering::Relaxed)
            };
            let found = catch_unwind(AssertUnwindSafe(|| work(&Progress::new(&go_on))));
            let state = match found {
                Ok(Ok(outcome)) => State::Done(Arc::new(outcome)),
                Ok(Err(_)) if own.stop.load(Ordering::Relaxed) => State::Cancelled,
                Ok(Err(refusal)) => State::Failed(refusal.message),
                Err(_) => State::Failed("the job broke off: a mistake of ours".into()),
            };
            let took = own.started.elapsed().as_millis();
            own.took.store(u64::try_from(took).unwrap_or(u64::MAX), Ordering::Relaxed);
            *own.state() = state;
        };
        std::thread::Builder::new()
            .name(format!("job {}", job.id))
            .spawn(run)
            .map_err(|error| Refusal::busy(format!("no thread can be started: {error}")))?;
        jobs.push(job.clone());
        Ok(job)
    }

    pub fn get(&self, id: u32) -> Result<Arc<Job>, Refusal> {
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let found = jobs.iter().find(|job| job.id == id).cloned();
        found.ok_or_else(|| Refusal::missing(format!("there is no job {id}")))
    }

    pub fn all(&self) -> Vec<Arc<Job>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tells all jobs to stop.
    pub fn cancel_all(&self) {
        self.all().iter().for_each(|job| job.cancel());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn ended(job: &Job) -> Value {
        for _ in 0..400 {
            if !job.running() {
                return job.json();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("the job does not end");
    }

    #[test]
    fn a_job_ends_well_badly_or_early() {
        let jobs = Jobs::default();
        let good = jobs.start("fit", 1, "a".into(), |_| Ok(Outcome::Item(7))).unwrap();
        assert_eq!(ended(&good)["state"], "done");
        assert!(matches!(good.outcome().as_deref(), Some(Outcome::Item(7))));
        let bad = jobs.start("fit", 1, "b".into(), |_| Err(Refusal::input("no"))).unwrap();
        assert_eq!(ended(&bad)["error"], "no");
        let broken = jobs.start("fit", 1, "c".into(), |_| panic!("on purpose")).unwrap();
        assert_eq!(ended(&broken)["state"], "failed");
        let endless = |progress: &Progress<'_>| loop {
            std::thread::sleep(Duration::from_millis(1));
            progress.report(1, 4)?;
        };
        let long = jobs.start("fit", 1, "d".into(), endless).unwrap();
        let other = jobs.start("fit", 1, "e".into(), endless).unwrap();
        let third = jobs.start("fit", 1, "f".into(), endless);
        assert!(third.err().unwrap().message.contains("cancel"));
        jobs.cancel_all();
        assert_eq!(
            (ended(&long)["state"].clone(), ended(&other)["share"].clone()),
            (json!("cancelled"), json!(0.25))
        );
    }
}
