//! Progress out, cancel in: one callback does both, for every long job.

use std::ops::Range;

use crate::error::EstimateError;

/// Wraps a callback that is told the fraction done (0 to 1) and answers whether to go on.
///
/// ```
/// use portolan::Progress;
/// let told = std::sync::Mutex::new(Vec::new());
/// let callback = |share: f64| { told.lock().unwrap().push(share); share < 0.9 };
/// let progress = Progress::new(&callback);
/// progress.part(0.5..1.0).report(1, 2)?;
/// assert_eq!(*told.lock().unwrap(), [0.75]);
/// assert!(progress.report(19, 20).is_err());
/// # Ok::<(), portolan::EstimateError>(())
/// ```
#[derive(Clone)]
pub struct Progress<'a> {
    callback: &'a (dyn Fn(f64) -> bool + Sync),
    on_fit: &'a (dyn Fn() + Sync),
    /// Where this job's 0 and 1 lie in the whole.
    range: Range<f64>,
    /// The callback is only asked whether to go on.
    quiet: bool,
}

impl<'a> Progress<'a> {
    /// Tells `callback`.
    pub fn new(callback: &'a (dyn Fn(f64) -> bool + Sync)) -> Self {
        Self { callback, on_fit: &|| (), range: 0.0..1.0, quiet: false }
    }

    /// No-op progress: it reports nothing and never cancels.
    pub fn silent() -> Progress<'static> {
        Progress::new(&|_| true)
    }

    /// Also calls `on_fit` when a method has its start and the fit itself begins; methods without
    /// a start of their own never call it.
    pub fn with_fit_start(self, on_fit: &'a (dyn Fn() + Sync)) -> Self {
        Self { on_fit, ..self }
    }

    /// A part of the job: its 0 to 1 is `range` of this one's.
    pub fn part(&self, range: Range<f64>) -> Self {
        if self.quiet {
            return self.clone();
        }
        let at = |share: f64| self.range.start + share * (self.range.end - self.range.start);
        Self { range: at(range.start)..at(range.end), ..self.clone() }
    }

    /// For a job of unknown length, or one of several that run side by side: it can be cancelled,
    /// and the bar stays where it is.
    pub fn quiet(&self) -> Self {
        Self { quiet: true, ..self.clone() }
    }

    /// Fails if the job was cancelled.
    pub fn check(&self) -> Result<(), EstimateError> {
        self.tell(0.0)
    }

    /// Reports that `done` of `total` is done; fails if the job was cancelled.
    pub fn report(&self, done: usize, total: usize) -> Result<(), EstimateError> {
        self.tell(done as f64 / total.max(1) as f64)
    }

    fn tell(&self, share: f64) -> Result<(), EstimateError> {
        let share = if self.quiet { 0.0 } else { share };
        let at = self.range.start + share * (self.range.end - self.range.start);
        if (self.callback)(at) { Ok(()) } else { Err(EstimateError::Cancelled) }
    }

    /// Says that the start is made and the fit begins.
    pub fn fit_begins(&self) {
        (self.on_fit)();
    }
}

impl std::fmt::Debug for Progress<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Progress").field("range", &self.range).finish_non_exhaustive()
    }
}
