//! Threads that survive a fork: every process makes its own.

use std::sync::{Arc, Mutex, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuilder};

/// The process that made the threads, and the threads.
static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// The threads of this process. After a fork those of the parent do not exist any more, and waiting
/// for them would never end.
pub fn pool() -> Arc<ThreadPool> {
    let mut slot = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    match &*slot {
        Some((owner, pool)) if *owner == process => pool.clone(),
        _ => {
            let pool = Arc::new(ThreadPoolBuilder::new().build().expect("threads can be started"));
            // Dropping the parent's pool would wait for its threads.
            if let Some((_, gone)) = slot.replace((process, pool.clone())) {
                std::mem::forget(gone);
            }
            pool
        }
    }
}
