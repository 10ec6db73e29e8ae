//! Progress out, cancel in: one callback does both.

use crate::error::EstimateError;

/// Wraps a callback that is told the fraction done (0 to 1) and answers whether to go on.
#[derive(Clone, Copy)]
pub struct Progress<'a> {
    callback: &'a (dyn Fn(f64) -> bool + Sync),
    on_fit: &'a (dyn Fn() + Sync),
    clock: Option<&'a (dyn Fn() -> f64 + Sync)>,
}

impl<'a> Progress<'a> {
    pub fn new(callback: &'a (dyn Fn(f64) -> bool + Sync)) -> Self {
        Self { callback, on_fit: &|| (), clock: None }
    }

    /// Nobody watches, nobody cancels.
    pub fn silent() -> Progress<'static> {
        Progress { callback: &|_| true, on_fit: &|| (), clock: None }
    }

    /// Also calls `on_fit` when a method has its start and the fit itself begins; methods without
    /// a start of their own never call it.
    pub fn with_fit_start(self, on_fit: &'a (dyn Fn() + Sync)) -> Self {
        Self { on_fit, ..self }
    }

    /// Also lends a clock: seconds since the work began. Without one no method keeps to a budget.
    pub fn with_clock(self, clock: &'a (dyn Fn() -> f64 + Sync)) -> Self {
        Self { clock: Some(clock), ..self }
    }

    /// Seconds since the work began; 0 without a clock.
    pub fn seconds(&self) -> f64 {
        self.clock.map_or(0.0, |clock| clock())
    }

    /// Reports that `done` of `total` is done; fails if the job was cancelled.
    pub fn report(&self, done: usize, total: usize) -> Result<(), EstimateError> {
        if (self.callback)(done as f64 / total.max(1) as f64) {
            Ok(())
        } else {
            Err(EstimateError::Cancelled)
        }
    }

    /// Says that the start is made and the fit begins.
    pub fn fit_begins(&self) {
        (self.on_fit)();
    }
}
