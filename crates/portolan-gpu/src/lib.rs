//! Portolan's engine for CUDA devices: decoder fits of many radio maps at once.
//!
//! [`CudaEngine`] is an [`Engine`](portolan::engine::Engine) for `Entry::build_on`. It needs a
//! driver of CUDA 12.0 or later and a device of compute capability 8.0 or later, no toolkit; both
//! are looked for when it is made.
//!
//! ```
//! use std::sync::Arc;
//! use portolan::engine::{CpuEngine, Engine};
//! use portolan_gpu::CudaEngine;
//! let engine: Arc<dyn Engine> = match CudaEngine::new() {
//!     Ok(engine) => Arc::new(engine),
//!     Err(_) => Arc::new(CpuEngine),
//! };
//! let unn = portolan::estimate::method("unn")?.build_on(engine, [])?;
//! # Ok::<(), portolan::InputError>(())
//! ```

#![warn(missing_docs)]

mod backend;
mod check;
mod descent;
mod driver;
#[cfg(test)]
mod emulated;
mod engine;
mod kernels;
mod layered;
mod lenient;
mod resident;

pub use check::{Verdict, check};
pub use engine::CudaEngine;
pub use lenient::Lenient;
