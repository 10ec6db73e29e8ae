//! The paper's baselines as methods of the register.

mod dgm;
mod naive_unn;

pub use dgm::{Dgm, DgmStart};
pub use naive_unn::{NaiveSize, NaiveUnn};

use std::sync::Once;

use portolan::InputError;
use portolan::estimate::{self, Entry};

/// Adds `naive_unn` and `dgm` to the register of methods, so that they can be built and their
/// models read. A second call changes nothing.
///
/// ```
/// use portolan::estimate::{Capability, method};
/// portolan_paper::register();
/// assert!(method("naive_unn")?.has(Capability::Grid));
/// assert!(method("dgm")?.has(Capability::Emitters));
/// # Ok::<(), portolan::InputError>(())
/// ```
///
/// # Panics
/// If another method was registered under one of these names before.
pub fn register() {
    static DONE: Once = Once::new();
    DONE.call_once(|| {
        for entry in [naive_unn::ENTRY, dgm::ENTRY] {
            estimate::register(entry).unwrap_or_else(|error| panic!("{error}"));
        }
    });
}

/// A method of the register, the paper's own included.
pub(crate) fn method(name: &str) -> Result<&'static Entry, InputError> {
    register();
    estimate::method(name)
}

#[cfg(test)]
mod tests;
