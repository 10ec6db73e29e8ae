//! JSON, JSON lines, GeoJSON and SigMF.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| portolan_fuzz::maps_and_readings("a.json", bytes));
