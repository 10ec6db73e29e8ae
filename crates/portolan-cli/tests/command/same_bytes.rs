//! The same seed makes the same bytes, whatever the number of threads.

use crate::support::{Desk, METHODS};

/// Runs a command with one and with two threads and compares the files they write.
fn same(desk: &Desk, args: &str, by_option: bool) {
    let outputs = [1, 2].map(|threads| {
        let output = format!("with-{threads}.npz");
        let _ = std::fs::remove_file(desk.path(&output));
        let option = if by_option { format!("--threads {threads}") } else { String::new() };
        let status = desk
            .command(&format!("{args} -o {output} {option}"))
            .env("RAYON_NUM_THREADS", threads.to_string())
            .output()
            .unwrap()
            .status;
        assert!(status.success(), "{args}");
        desk.read(&output)
    });
    assert!(outputs[0] == outputs[1], "{args}: one and two threads differ");
}

#[test]
fn simulate_and_sense_make_the_same_bytes_with_one_and_two_threads() {
    let desk = Desk::new();
    // Large enough that work is shared out at all.
    desk.ok("simulate -o truth.npz --grid 96x80 --bands 24 --seed 5");
    same(&desk, "simulate --grid 96x80 --bands 24 --seed 5", false);
    for rest in ["", "--snr-db 10 --gaps 0.2", "--bits 3", "--lattice 5"] {
        same(&desk, &format!("sense truth.npz --seed 6 {rest}"), false);
    }
}

#[test]
fn every_method_makes_the_same_bytes_with_one_and_two_threads() {
    let desk = Desk::new();
    desk.ok("simulate -o truth.npz --grid 36x30 --bands 12 --seed 5");
    desk.ok("sense truth.npz -o readings.npz --count 100 --snr-db 20 --gaps 0.1");
    desk.ok("sense truth.npz -o levels.npz --count 100 --bits 3");
    for method in METHODS {
        for readings in ["readings.npz", "levels.npz"] {
            same(&desk, &format!("estimate {readings} --method {method} --seed 7"), true);
        }
    }
}

#[test]
fn fit_and_predict_make_the_same_bytes_with_one_and_two_threads() {
    let desk = Desk::new();
    desk.ok("simulate -o truth.npz --grid 36x30 --bands 12 --seed 5");
    desk.ok("sense truth.npz -o readings.npz --count 100 --snr-db 20 --gaps 0.1");
    for method in METHODS.into_iter().chain(["field"]) {
        same(&desk, &format!("fit readings.npz --method {method} --seed 7"), true);
        std::fs::rename(desk.path("with-1.npz"), desk.path("model.npz")).unwrap();
        same(&desk, "predict model.npz --grid 90x70 --cell-m 0.5", true);
    }
}

#[test]
fn another_seed_makes_other_bytes() {
    let desk = Desk::with_readings();
    desk.ok("simulate -o other.npz --grid 16x14 --bands 5 --emitters 2 --seed 8");
    assert_ne!(desk.read("other.npz"), desk.read("truth.npz"));
    desk.ok("sense truth.npz -o other-readings.npz --count 30 --seed 8");
    assert_ne!(desk.read("other-readings.npz"), desk.read("readings.npz"));
}

#[test]
fn pictures_are_the_same_bytes_every_time() {
    let desk = Desk::with_readings();
    for name in ["one.png", "two.png"] {
        desk.ok(&format!("plot truth.npz -o {name} --readings readings.npz"));
    }
    assert_eq!(desk.read("one.png"), desk.read("two.png"));
}
