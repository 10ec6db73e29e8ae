//! Long work beside a Python thread that listens: Ctrl-C stops it, a callback hears how far it is.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use portolan::Progress;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::pool::pool;

/// How often the calling thread looks for signals.
const POLL: Duration = Duration::from_millis(50);

/// Runs `work` on our threads with the interpreter released. `tell` is called with the share done,
/// now and then.
pub fn watched<T: Send>(
    py: Python<'_>,
    tell: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Progress<'_>) -> T + Send,
) -> PyResult<T> {
    let (stop, share) = (AtomicBool::new(false), AtomicU64::new(0));
    let (result, ready) = (Mutex::new(None), Condvar::new());
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let go_on = |done: f64| {
                share.store(done.to_bits(), Ordering::Relaxed);
                !stop.load(Ordering::Relaxed)
            };
            let found = pool().install(|| work(&Progress::new(&go_on)));
            *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
            ready.notify_all();
        });
        let mut interrupted = None;
        while !worker.is_finished() {
            let there = py.detach(|| {
                let slot = result.lock().unwrap_or_else(PoisonError::into_inner);
                let waited = ready.wait_timeout_while(slot, POLL, |slot| slot.is_none());
                waited.unwrap_or_else(PoisonError::into_inner).0.is_some()
            });
            if there {
                break;
            }
            if interrupted.is_none() {
                let told = py.check_signals().and_then(|()| match tell {
                    Some(tell) => {
                        tell.call1((f64::from_bits(share.load(Ordering::Relaxed)),)).map(drop)
                    }
                    None => Ok(()),
                });
                if let Err(error) = told {
                    stop.store(true, Ordering::Relaxed);
                    interrupted = Some(error);
                }
            }
        }
        match interrupted {
            Some(error) => Err(error),
            None => Ok(()),
        }
    })?;
    let found = result.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.ok_or_else(|| PyRuntimeError::new_err("the job failed: internal error"))
}
