//! Shapefiles in an archive.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| portolan_fuzz::maps_and_readings("a.zip", bytes));
