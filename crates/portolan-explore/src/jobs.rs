//! Long work beside the server: how far it is, what came of it, and a way to stop it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use portolan::Progress;
use portolan::advise::Advice;
use portolan::estimate::Residuals;
use portolan::{RadioMap, Readings, Site};
use serde_json::{Value, json};

use crate::answer::Refusal;

/// Jobs that run at once.
const MOST_RUNNING: usize = 2;
/// Ended jobs that are remembered.
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

/// What a job does.
pub type Work = Box<dyn FnOnce(&Progress<'_>) -> Result<Outcome, Refusal> + Send>;

/// What a job is about.
pub struct About {
    pub kind: &'static str,
    /// The item that it is about.
    pub of: u32,
    /// The same for people.
    pub what: String,
    /// The request that starts the same job again.
    pub asked: Value,
}

enum State {
    /// Until nothing else runs.
    Waiting(Work),
    Running(Instant),
    Ended {
        end: End,
        seconds: f64,
    },
}

enum End {
    Done(Arc<Outcome>),
    Failed(String),
    Cancelled,
}

/// One job.
pub struct Job {
    pub id: u32,
    about: About,
    share: AtomicU64,
    stop: AtomicBool,
    /// Nobody asks about it any more; it counts until it has ended.
    forgotten: AtomicBool,
    state: Mutex<State>,
}

impl Job {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn cancel(&self) {
        self.stop.store(true, Ordering::Relaxed);
        let mut state = self.state();
        if matches!(*state, State::Waiting(_)) {
            *state = State::Ended { end: End::Cancelled, seconds: 0.0 };
        }
    }

    fn known(&self) -> bool {
        !self.forgotten.load(Ordering::Relaxed)
    }

    fn waiting(&self) -> bool {
        matches!(*self.state(), State::Waiting(_))
    }

    fn running(&self) -> bool {
        matches!(*self.state(), State::Running(_))
    }

    /// What came of it, where it is done.
    pub fn outcome(&self) -> Option<Arc<Outcome>> {
        match &*self.state() {
            State::Ended { end: End::Done(outcome), .. } => Some(outcome.clone()),
            _ => None,
        }
    }

    /// How it stands.
    pub fn json(&self) -> Value {
        let (state, seconds, error) = match &*self.state() {
            State::Waiting(_) => ("waiting", 0.0, None),
            State::Running(since) => ("running", since.elapsed().as_secs_f64(), None),
            State::Ended { end, seconds } => match end {
                End::Done(_) => ("done", *seconds, None),
                End::Failed(error) => ("failed", *seconds, Some(error.clone())),
                End::Cancelled => ("cancelled", *seconds, None),
            },
        };
        json!({
            "id": self.id,
            "kind": self.about.kind,
            "of": self.about.of,
            "what": self.about.what,
            "asked": self.about.asked,
            "state": state,
            "share": f64::from_bits(self.share.load(Ordering::Relaxed)),
            "seconds": seconds,
            "error": error,
        })
    }

    /// Takes the work of a job that waits: from now on it runs.
    fn taken(&self) -> Option<Work> {
        let mut state = self.state();
        match std::mem::replace(&mut *state, State::Running(Instant::now())) {
            State::Waiting(work) => Some(work),
            other => {
                *state = other;
                None
            }
        }
    }

    fn run(&self, work: Work) {
        let begun = Instant::now();
        let go_on = |share: f64| {
            self.share.fetch_max(share.max(0.0).to_bits(), Ordering::Relaxed);
            !self.stop.load(Ordering::Relaxed)
        };
        let found = catch_unwind(AssertUnwindSafe(|| work(&Progress::new(&go_on))));
        let end = match found {
            Ok(Ok(outcome)) => End::Done(Arc::new(outcome)),
            Ok(Err(_)) if self.stop.load(Ordering::Relaxed) => End::Cancelled,
            Ok(Err(refusal)) => End::Failed(refusal.message),
            Err(_) => End::Failed("the job failed: internal error".into()),
        };
        self.end(end, begun.elapsed().as_secs_f64());
    }

    fn end(&self, end: End, seconds: f64) {
        *self.state() = State::Ended { end, seconds };
    }
}

/// All jobs.
#[derive(Clone, Default)]
pub struct Jobs {
    jobs: Arc<Mutex<Vec<Arc<Job>>>>,
    last: Arc<AtomicU32>,
}

impl Jobs {
    fn list(&self) -> MutexGuard<'_, Vec<Arc<Job>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a job on a thread of its own.
    pub fn start(&self, about: About, work: Work) -> Result<Arc<Job>, Refusal> {
        let mut jobs = self.list();
        if jobs.iter().filter(|job| job.running()).count() >= MOST_RUNNING {
            return Err(Refusal::busy(format!(
                "{MOST_RUNNING} jobs are running: wait for one, or cancel it"
            )));
        }
        let job = self.add(&mut jobs, about, work);
        self.begin(&job);
        Ok(job)
    }

    /// Starts a job as soon as nothing else runs.
    pub fn queue(&self, about: About, work: Work) -> Arc<Job> {
        let job = self.add(&mut self.list(), about, work);
        self.next();
        job
    }

    fn add(&self, jobs: &mut Vec<Arc<Job>>, about: About, work: Work) -> Arc<Job> {
        while jobs.len() >= MOST_KEPT {
            let ended = |job: &Arc<Job>| !job.running() && !job.waiting();
            let Some(oldest) = jobs.iter().position(ended) else { break };
            jobs.remove(oldest);
        }
        let job = Arc::new(Job {
            id: 1 + self.last.fetch_add(1, Ordering::Relaxed),
            about,
            share: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            forgotten: AtomicBool::new(false),
            state: Mutex::new(State::Waiting(work)),
        });
        jobs.push(job.clone());
        job
    }

    /// The first that waits begins, where nothing runs.
    fn next(&self) {
        let mut jobs = self.list();
        jobs.retain(|job| job.known() || job.running());
        if jobs.iter().any(|job| job.running()) {
            return;
        }
        jobs.iter().any(|job| self.begin(job));
    }

    /// Runs a job that waits; says whether it runs.
    fn begin(&self, job: &Arc<Job>) -> bool {
        let Some(work) = job.taken() else { return false };
        let (all, own) = (self.clone(), job.clone());
        let run = move || {
            own.run(work);
            all.next();
        };
        let begun = std::thread::Builder::new().name(format!("job {}", job.id)).spawn(run);
        if let Err(error) = &begun {
            job.end(End::Failed(format!("no thread can be started: {error}")), 0.0);
        }
        begun.is_ok()
    }

    pub fn get(&self, id: u32) -> Result<Arc<Job>, Refusal> {
        let found = self.all().into_iter().find(|job| job.id == id);
        found.ok_or_else(|| Refusal::missing(format!("there is no job {id}")))
    }

    pub fn all(&self) -> Vec<Arc<Job>> {
        self.list().iter().filter(|job| job.known()).cloned().collect()
    }

    /// Tells all jobs to stop.
    pub fn cancel_all(&self) {
        self.all().iter().for_each(|job| job.cancel());
    }

    /// Stops the jobs about an item and lets go of what came of them.
    pub fn forget(&self, item: u32) {
        for job in self.all().iter().filter(|job| job.about.of == item) {
            job.cancel();
            job.forgotten.store(true, Ordering::Relaxed);
        }
        self.next();
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use std::time::Duration;

    /// Waits for what must come true.
    pub fn until(what: impl Fn() -> bool) {
        for _ in 0..4000 {
            if what() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("it does not come true");
    }

    fn ended(job: &Job) -> Value {
        until(|| !job.running() && !job.waiting());
        job.json()
    }

    fn about(of: u32) -> About {
        About { kind: "fit", of, what: "a".into(), asked: json!({ "kind": "fit" }) }
    }

    fn endless(progress: &Progress<'_>) -> Result<Outcome, Refusal> {
        loop {
            std::thread::sleep(Duration::from_millis(1));
            progress.report(1, 4)?;
        }
    }

    #[test]
    fn a_job_ends_well_badly_or_early() {
        let jobs = Jobs::default();
        let start = |work: Work| jobs.start(about(1), work);
        let good = start(Box::new(|_| Ok(Outcome::Item(7)))).unwrap();
        assert_eq!(ended(&good)["state"], "done");
        assert!(matches!(good.outcome().as_deref(), Some(Outcome::Item(7))));
        let bad = start(Box::new(|_| Err(Refusal::input("no")))).unwrap();
        assert_eq!(ended(&bad)["error"], "no");
        let broken = start(Box::new(|_| panic!("on purpose"))).unwrap();
        assert_eq!(ended(&broken)["state"], "failed");
        let long = start(Box::new(endless)).unwrap();
        let other = start(Box::new(endless)).unwrap();
        let third = start(Box::new(endless));
        assert!(third.err().unwrap().message.contains("cancel"));
        jobs.cancel_all();
        assert_eq!(
            (ended(&long)["state"].clone(), ended(&other)["share"].clone()),
            (json!("cancelled"), json!(0.25))
        );
    }

    #[test]
    fn jobs_in_a_queue_run_one_after_the_other() {
        let jobs = Jobs::default();
        let first = jobs.queue(about(1), Box::new(endless));
        let second = jobs.queue(about(2), Box::new(endless));
        let third = jobs.queue(about(3), Box::new(|_| Ok(Outcome::Item(7))));
        assert_eq!((first.json()["state"].as_str(), third.waiting()), (Some("running"), true));
        // One that waits is cancelled at once, and is not begun.
        second.cancel();
        assert_eq!(second.json()["state"], "cancelled");
        first.cancel();
        assert_eq!(
            (ended(&third)["state"].as_str(), second.json()["share"].as_f64()),
            (Some("done"), Some(0.0))
        );
    }

    #[test]
    fn a_forgotten_job_counts_until_it_has_ended() {
        let jobs = Jobs::default();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let stubborn = move |_: &Progress<'_>| {
            wait.recv().ok();
            Ok(Outcome::Item(7))
        };
        jobs.start(about(1), Box::new(stubborn)).unwrap();
        jobs.start(about(2), Box::new(endless)).unwrap();
        jobs.forget(1);
        assert!(jobs.start(about(3), Box::new(endless)).is_err());
        go.send(()).unwrap();
        until(|| jobs.start(about(3), Box::new(endless)).is_ok());
        jobs.cancel_all();
    }

    #[test]
    fn jobs_about_an_item_go_with_it() {
        let jobs = Jobs::default();
        let long = jobs.start(about(1), Box::new(endless)).unwrap();
        let other = jobs.start(about(2), Box::new(|_| Ok(Outcome::Item(7)))).unwrap();
        jobs.forget(1);
        assert_eq!((jobs.get(1).is_err(), jobs.get(2).is_ok(), jobs.all().len()), (true, true, 1));
        assert_eq!(ended(&long)["state"], "cancelled");
        assert_eq!(ended(&other)["state"], "done");
        let weak = Arc::downgrade(&long);
        drop(long);
        until(|| weak.strong_count() == 0);
    }
}
