//! Too little memory: one line and exit code 1, or a refusal by size; never a backtrace or a hang.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::npz::npz;
use crate::support::{Desk, Said};

fn program() -> &'static Path {
    assert_cmd::cargo::cargo_bin!("portolan")
}

/// Runs the command with at most so many kB of address space.
fn limited(desk: &Desk, kilobytes: usize, args: &str) -> Said {
    let program = program();
    let mut command = Command::new("bash");
    command.arg("-c").arg(format!("ulimit -v {kilobytes}; exec {} {args}", program.display()));
    command.current_dir(desk.path(""));
    let mut command = assert_cmd::Command::from_std(command);
    Said::from(command.timeout(Duration::from_secs(60)).output().unwrap())
}

/// Every limit from too little to enough; returns what was said where it failed while running. The
/// least is the size of the program's file, in which it still loads: names of its functions, which
/// it does not load, are a sixth of it.
fn squeezed(desk: &Desk, args: &str, output: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let before: Vec<String> = desk.files().into_keys().collect();
    let least = program().metadata().unwrap().len() as f64 / 1000.0;
    for step in 0..14 {
        let kilobytes = (least * 1.4f64.powi(step)) as usize;
        let said = limited(desk, kilobytes, args);
        let context = format!("{args} in {kilobytes} kB: {:?} {}", said.code, said.stderr);
        assert!(matches!(said.code, Some(0..=2)), "{context}");
        if said.code == Some(0) {
            std::fs::remove_file(desk.path(output)).unwrap();
        } else {
            lines.extend((said.code == Some(1)).then(|| said.complaint()));
            said.complaint();
        }
        assert_eq!(desk.files().into_keys().collect::<Vec<_>>(), before, "{context}");
    }
    lines
}

#[test]
fn running_out_of_memory_is_told_in_one_line() {
    let desk = Desk::new();
    let args = "simulate -o map.npz --grid 512x512 --bands 32 --emitters 2";
    let lines = squeezed(&desk, args, "map.npz");
    let told = |line: &String| line.contains("out of memory") && line.ends_with("could not be had");
    assert!(lines.iter().any(told), "{lines:?}");
}

#[test]
fn threads_that_run_out_of_memory_end_the_command() {
    let desk = Desk::new();
    desk.ok("simulate -o truth.npz --grid 100x100 --bands 2 --emitters 2 --factored");
    desk.ok("sense truth.npz -o readings.npz --count 900");
    let args = "estimate readings.npz -o map.npz --method kriging --threads 4";
    assert!(!squeezed(&desk, args, "map.npz").is_empty());
}

#[test]
fn an_array_that_does_not_fit_is_refused_by_its_size() {
    let desk = Desk::new();
    let (rows, cols) = (2000, 5000);
    desk.write("large.npz", npz(&[("map", &[rows, cols, 1], &vec![1.0; rows * cols])]));
    let said = limited(&desk, 90_000, "convert large.npz out.csv");
    assert_eq!(said.code, Some(2), "{}", said.stderr);
    let line = said.complaint();
    for words in ["large.npz: array 'map' takes 80.0 MB", "of memory are free", "--region"] {
        assert!(line.contains(words), "{line}");
    }
    // A look needs none of it.
    let said = limited(&desk, 90_000, "inspect large.npz");
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(said.stdout.contains("2000 x 5000"), "{}", said.stdout);
}
