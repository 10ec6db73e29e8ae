//! What happens when memory runs out: one line and exit code 1, where Rust would abort.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::failure::Failure;

/// What the command needs to start: with less, the threads' own beginnings fail, and not quietly.
const TO_START: u64 = 8 << 20;

/// What a thread takes: its stack, a second one for signals, its queue.
const PER_THREAD: u64 = 3 << 20;

/// Fails where there is too little memory to start with.
pub fn check_room() -> Result<(), Failure> {
    match portolan_io::free_memory() {
        Some(free) if free < TO_START => Err(Failure::Run(format!(
            "out of memory: {free} bytes are free, {TO_START} are needed to start"
        ))),
        _ => Ok(()),
    }
}

/// How many threads there is memory for.
pub fn room_for_threads() -> usize {
    let free = portolan_io::free_memory().unwrap_or(u64::MAX);
    usize::try_from(free.saturating_sub(TO_START) / PER_THREAD).unwrap_or(usize::MAX)
}

/// From now on large pieces go back to the system as soon as they are free. By itself glibc keeps
/// more and more of them: a server that draws pieces of many sizes would grow for hours.
pub fn give_back_large_pieces() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        use std::ffi::c_int;
        /// From the header of the C library.
        const M_MMAP_THRESHOLD: c_int = -3;
        const LARGE: c_int = 1 << 20;
        // SAFETY: this is the C library's own declaration; the call changes a number of its allocator.
        unsafe extern "C" {
            fn mallopt(parameter: c_int, value: c_int) -> c_int;
        }
        // Where it cannot be set, memory is as it was.
        let _ = unsafe { mallopt(M_MMAP_THRESHOLD, LARGE) };
    }
}

/// The system's allocator, which ends the command where it has nothing left.
pub struct Allocator;

thread_local! {
    /// Whether this thread is the one that ends the command.
    static ENDING: Cell<bool> = const { Cell::new(false) };
}

// SAFETY: every call goes to the system's allocator as it came, and its answer comes back.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        checked(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        checked(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        checked(unsafe { System.realloc(pointer, layout, size) }, size)
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

fn checked(pointer: *mut u8, size: usize) -> *mut u8 {
    if pointer.is_null() {
        give_up(size);
    }
    pointer
}

/// Ends the command. Returns only on the thread that is doing so already, whose request fails.
#[cold]
fn give_up(size: usize) {
    static BEGUN: AtomicBool = AtomicBool::new(false);
    // A thread that is about to end has no such flag any more; it waits like the others.
    if ENDING.try_with(|ending| ending.replace(true)).unwrap_or(false) {
        return;
    }
    while BEGUN.swap(true, Ordering::SeqCst) {
        std::thread::sleep(Duration::from_secs(1));
    }
    // The list of unfinished files may be held by a thread that waits for memory itself.
    let _no_file_is_named_from_here_on = (0..100).find_map(|_| {
        let abandoned = portolan_io::try_abandon_writes();
        if abandoned.is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        abandoned
    });
    let mut line = [0; 96];
    let mut rest = &mut line[..];
    let _ = writeln!(rest, "portolan: out of memory: {size} bytes could not be had");
    let left = rest.len();
    let length = line.len() - left;
    write_error(&line[..length]);
    std::process::exit(1);
}

/// Writes to standard error without its lock, which another thread may hold.
#[cfg(unix)]
fn write_error(line: &[u8]) {
    use std::mem::ManuallyDrop;
    use std::os::fd::FromRawFd;
    // SAFETY: the descriptor is that of the process for as long as it lives, and is not closed.
    let mut error = ManuallyDrop::new(unsafe { std::fs::File::from_raw_fd(2) });
    let _ = error.write_all(line);
}

#[cfg(not(unix))]
fn write_error(line: &[u8]) {
    let _ = std::io::stderr().write_all(line);
}
