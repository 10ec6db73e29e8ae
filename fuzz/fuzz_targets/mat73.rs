//! MATLAB files of version 7.3, which are HDF5.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    portolan_fuzz::maps_and_readings("a73.mat", bytes);
    portolan_fuzz::parts("a73.mat", bytes);
});
