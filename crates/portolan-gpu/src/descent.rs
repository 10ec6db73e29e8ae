//! How descents on a device run and end: rates computed ahead, progress between launches, and
//! what a map's standing means once it is over.

use portolan::Progress;
use portolan::engine::{
    Descended, Descent, Diverged, Ending, FitOptions, ImitationOptions, Targets,
};

use crate::backend::{DeviceError, Plain};

/// What a descent of one map came to.
pub(crate) type Outcome<T> = Result<Descended<T>, Diverged>;

/// The plan of a batch of descents, as kernels read it.
pub(crate) struct Course {
    pub descent: Descent,
    /// By iteration: step and scale of network and latents, step of the PSDs (see `adam` of the
    /// kernels and `portolan::adam`).
    pub rates: Vec<f32>,
}

impl Course {
    pub fn of_fit(options: &FitOptions) -> Self {
        Self::new(options.descent, options.rate_network, options.rate_psd)
    }

    pub fn of_imitation(options: &ImitationOptions) -> Self {
        Self::new(options.descent, options.rate, 0.0)
    }

    fn new(descent: Descent, network: f64, psd: f64) -> Self {
        let mut rates = Vec::with_capacity(3 * descent.most());
        for iteration in 0..descent.most() {
            let factor = descent.schedule.factor(iteration, descent.iterations);
            let steps = iteration as i32 + 1;
            let size = factor / (1.0 - 0.9f64.powi(steps));
            let scale = (1.0 - 0.999f64.powi(steps)).sqrt().recip();
            rates.extend([network * size, scale, psd * size].map(|rate| rate as f32));
        }
        Self { descent, rates }
    }

    pub fn most(&self) -> usize {
        self.descent.most()
    }

    pub fn both(&self) -> bool {
        matches!(self.descent.ending, Ending::Both { .. })
    }
}

/// How far a map's descent is, as kernels keep it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    last: f64,
    least: f64,
    calm: i32,
    done: i32,
    over: i32,
    unused: i32,
}
unsafe impl Plain for Standing {}

impl Default for Standing {
    fn default() -> Self {
        Self { last: 0.0, least: f64::INFINITY, calm: 0, done: 0, over: 0, unused: 0 }
    }
}

impl Standing {
    pub fn is_over(&self) -> bool {
        self.over != 0
    }

    /// The trace of a descent that is over, or where it diverged.
    pub fn ended(&self, trace: &[f64]) -> Result<Vec<f64>, Diverged> {
        match self.over {
            2 => Err(Diverged::at(self.done as usize)),
            _ => Ok(trace[..self.done as usize].to_vec()),
        }
    }
}

/// Counts a batch's iterations for the progress callback, which may cancel between launches.
pub(crate) struct Stepping<'a> {
    progress: &'a Progress<'a>,
    done: usize,
    total: usize,
}

impl<'a> Stepping<'a> {
    pub fn new(progress: &'a Progress<'a>, maps: usize, iterations: usize) -> Self {
        Self { progress, done: 0, total: maps * iterations }
    }

    pub fn advance(&mut self, iterations: usize) -> Result<(), DeviceError> {
        self.done += iterations;
        self.progress.report(self.done, self.total).map_err(|_| DeviceError::Cancelled)
    }
}

/// Map-iterations in one launch, about a third of a second on a large device: so often a batch can
/// be cancelled.
const PER_LAUNCH: usize = 400_000;

/// Iterations for the next launch of a batch.
pub(crate) fn stride(maps: usize) -> usize {
    (PER_LAUNCH / maps).max(25)
}

/// Which loss a problem has, as kernels number them.
pub(crate) fn kind(targets: &Targets<'_>) -> i32 {
    match targets {
        Targets::LnPower(_) => 0,
        Targets::Power(_) => 1,
        Targets::Levels { .. } => 2,
    }
}
