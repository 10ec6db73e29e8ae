//! Wi-Fi scans, plain or packed.
#![no_main]

use portolan_fuzz::{check, file, maps_and_readings};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    maps_and_readings("a.trace.txt", bytes);
    check(portolan_io::mannheim::survey(file("a.trace.txt", bytes)));
});
