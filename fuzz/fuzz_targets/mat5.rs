//! MATLAB files of version 5 to 7.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    portolan_fuzz::maps_and_readings("a.mat", bytes);
    portolan_fuzz::parts("a.mat", bytes);
});
