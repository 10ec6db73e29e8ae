//! NumPy archives.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    portolan_fuzz::maps_and_readings("a.npz", bytes);
    portolan_fuzz::parts("a.npz", bytes);
});
