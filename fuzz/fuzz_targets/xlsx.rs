//! Workbooks and other zip archives with tables.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| portolan_fuzz::maps_and_readings("a.xlsx", bytes));
