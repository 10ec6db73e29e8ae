//! Watching a job: a bar on a terminal, and Ctrl-C.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use portolan::Progress;

use crate::failure::Failure;
use crate::memory::room_for_threads;
use crate::output::say;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Ctrl-C grace period: a job that has not stopped by then is ended with the process.
const GRACE: Duration = Duration::from_secs(1);

/// From here on Ctrl-C (and a polite kill) sets a flag that every job looks at. Where none does,
/// because a large file is being read or written, the process ends a moment later.
pub fn listen_for_interrupts() {
    // Where no handler can be set the system's own end of the process remains.
    let _ = ctrlc::set_handler(|| {
        INTERRUPTED.store(true, Ordering::SeqCst);
        std::thread::sleep(GRACE);
        let _no_file_is_named_from_here_on = portolan_io::abandon_writes();
        if let Some(message) = Failure::Interrupted.message() {
            say(&format!("portolan: {message}"));
        }
        std::process::exit(i32::from(Failure::Interrupted.code()));
    });
}

/// Fails if the user has asked to stop: called before anything is written.
pub fn check_interrupt() -> Result<(), Failure> {
    if INTERRUPTED.load(Ordering::SeqCst) { Err(Failure::Interrupted) } else { Ok(()) }
}

/// Runs a job under a bar named `name`; the bar shows on a terminal only and leaves no trace.
pub fn watched<T>(name: &str, job: impl FnOnce(&Progress<'_>) -> T) -> T {
    let bar = if std::io::stderr().is_terminal() {
        let bar = ProgressBar::new(1000);
        let style = ProgressStyle::with_template("{spinner} {msg} [{bar:30}] {percent}% {elapsed}");
        bar.set_style(style.expect("the template is valid"));
        bar.set_message(name.to_string());
        bar.enable_steady_tick(Duration::from_millis(120));
        bar
    } else {
        ProgressBar::hidden()
    };
    let callback = |fraction: f64| {
        bar.set_position((1000.0 * fraction) as u64);
        !INTERRUPTED.load(Ordering::Relaxed)
    };
    let result = job(&Progress::new(&callback));
    bar.finish_and_clear();
    result
}

/// The same under a bar that counts `total` parts.
pub fn stepwise<T>(name: &str, total: usize, job: impl FnOnce(&Progress<'_>) -> T) -> T {
    counted(name, |tell, go_on| {
        let callback = |share: f64| {
            tell((share * total as f64).round() as usize, total, None);
            go_on()
        };
        job(&Progress::new(&callback))
    })
}

/// Runs a job of many parts under a bar that counts them; the job is handed what to call when a
/// part is done (parts done, parts in all, seconds left) and what to ask whether to go on.
pub fn counted<T>(
    name: &str,
    job: impl FnOnce(&(dyn Fn(usize, usize, Option<f64>) + Sync), &(dyn Fn() -> bool + Sync)) -> T,
) -> T {
    let bar = if std::io::stderr().is_terminal() {
        let bar = ProgressBar::new(1);
        let style = "{spinner} {msg} [{bar:30}] {pos}/{len} {elapsed}, {prefix} left";
        bar.set_style(ProgressStyle::with_template(style).expect("the template is valid"));
        bar.set_message(name.to_string());
        bar.set_prefix("?");
        bar.enable_steady_tick(Duration::from_millis(120));
        bar
    } else {
        ProgressBar::hidden()
    };
    let tell = |done: usize, total: usize, left: Option<f64>| {
        bar.set_length(total as u64);
        bar.set_position(done as u64);
        if let Some(seconds) = left {
            bar.set_prefix(HumanDuration(Duration::from_secs_f64(seconds)).to_string());
        }
    };
    let go_on = || !INTERRUPTED.load(Ordering::Relaxed);
    let result = job(&tell, &go_on);
    bar.finish_and_clear();
    result
}

/// Sets the number of threads for everything that follows. `main` calls it once, before the command.
pub fn set_threads(threads: Option<usize>) -> Result<(), Failure> {
    if let Some(threads) = threads.filter(|threads| !(1..=1024).contains(threads)) {
        return Err(Failure::input(format!("--threads {threads}: it takes 1 to 1024")));
    }
    let asked = threads.unwrap_or_else(default_threads);
    let there = threads_to_be_had(asked.min(room_for_threads()));
    if there == 0 {
        return Err(Failure::Run("no thread can be started: memory or processes are short".into()));
    }
    if threads.is_some() && there < asked {
        say(&format!("portolan: note: {there} of {asked} threads can be started"));
    }
    rayon::ThreadPoolBuilder::new()
        .num_threads(there)
        .build_global()
        .map_err(|error| Failure::Run(format!("threads: {error}")))
}

/// As many as the pool would start by itself.
fn default_threads() -> usize {
    let asked = std::env::var("RAYON_NUM_THREADS").ok().and_then(|number| number.parse().ok());
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    asked.filter(|&threads| threads > 0).unwrap_or_else(cores)
}

/// How many threads the system grants at once. The pool itself can be built only once, and not at
/// all where one of its threads does not start.
fn threads_to_be_had(asked: usize) -> usize {
    let gate = Mutex::new(());
    let closed = gate.lock();
    std::thread::scope(|scope| {
        let wait = || drop(gate.lock());
        let start = |_: &usize| std::thread::Builder::new().spawn_scoped(scope, wait).is_ok();
        let started = (0..asked).take_while(start).count();
        drop(closed);
        started
    })
}
