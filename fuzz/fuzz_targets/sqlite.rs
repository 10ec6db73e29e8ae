//! GeoPackage and the logs of Kismet.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| portolan_fuzz::maps_and_readings("a.gpkg", bytes));
