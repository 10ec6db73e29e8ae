//! Tables of places.
#![no_main]

use portolan_fuzz::{check, file};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| drop(check(portolan_io::read_places(
    file("places.csv", bytes),
    None,
    0.0,
    Some(3.0)
))));
