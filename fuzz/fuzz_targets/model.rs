//! Fitted models. One that is read must also answer, if only with an error.
#![no_main]

use portolan::{Progress, Site};
use portolan_fuzz::{check, file};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    portolan_paper::register();
    if let Some(model) = check(portolan_io::read_model(file("model.npz", bytes))) {
        let places = [Site::new(0.0, 0.0), Site::new(2.5, 1.5)];
        let _ = model.predict(&places, &Progress::silent());
    }
});
