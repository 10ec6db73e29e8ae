//! Being stopped, and being left by whoever reads the output.
#![cfg(unix)]

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Desk, Said};

/// Sends a signal and waits for the end, which must come soon.
fn stop(mut child: Child, signal: &str, within: Duration) -> Said {
    let sent = Instant::now();
    let kill = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    while child.try_wait().unwrap().is_none() {
        if sent.elapsed() > within {
            child.kill().unwrap();
            panic!("still running {within:?} after {signal}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Said::from(child.wait_with_output().unwrap())
}

fn start(desk: &Desk, args: &str) -> Child {
    let mut command = desk.command(args);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// A desk with readings that take kriging many seconds.
fn much_to_do() -> Desk {
    let desk = Desk::new();
    desk.ok("simulate -o truth.npz --grid 512x512 --bands 4 --emitters 2 --factored");
    desk.ok("sense truth.npz -o readings.npz --count 40000 --gaps 0.05");
    desk
}

#[test]
fn an_interrupted_estimate_ends_with_130_and_leaves_nothing() {
    let desk = much_to_do();
    let before: Vec<String> = desk.files().into_keys().collect();
    for (signal, method) in [("-INT", "kriging"), ("-TERM", "auto")] {
        let child =
            start(&desk, &format!("estimate readings.npz -o map.npz --method {method} --json"));
        std::thread::sleep(Duration::from_millis(700));
        let said = stop(child, signal, Duration::from_secs(3));
        assert_eq!(said.code, Some(130), "{signal}: {}", said.stderr);
        assert_eq!(said.stdout, "");
        assert_eq!(said.lines(), ["portolan: interrupted, no half file is left"]);
        assert_eq!(
            desk.files().into_keys().collect::<Vec<_>>(),
            before,
            "no output, no rest of one"
        );
    }
}

#[test]
fn an_interrupted_drawing_leaves_neither_a_file_nor_a_folder() {
    let desk = Desk::with_readings();
    desk.ok("fit readings.npz -o model.npz --method kriging");
    for name in ["map.zarr", "map.tif"] {
        let child = start(&desk, &format!("predict model.npz --grid 30000x30000 -o {name}"));
        std::thread::sleep(Duration::from_millis(1500));
        let said = stop(child, "-INT", Duration::from_secs(5));
        assert_eq!(said.code, Some(130), "{name}: {}", said.stderr);
        let left = std::fs::read_dir(desk.path("")).unwrap();
        let mut names: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["model.npz", "readings.npz", "truth.npz"], "{name}");
    }
}

#[test]
fn an_interrupted_comparison_ends_with_130() {
    let desk = much_to_do();
    let child = start(&desk, "compare readings.npz truth.npz --methods kriging,auto");
    std::thread::sleep(Duration::from_millis(700));
    let said = stop(child, "-INT", Duration::from_secs(3));
    assert_eq!((said.code, said.stdout.as_str()), (Some(130), ""), "{}", said.stderr);
}

#[test]
fn an_interrupted_write_leaves_no_half_file() {
    let desk = Desk::new();
    let mut child = start(&desk, "simulate -o map.csv --grid 512x512 --bands 64 --emitters 1");
    let begun = Instant::now();
    let part = || std::fs::read_dir(desk.path("")).unwrap().next().is_some();
    while !part() {
        assert!(child.try_wait().unwrap().is_none() && begun.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(5));
    }
    let said = stop(child, "-INT", Duration::from_secs(5));
    // A fast disk may take the whole file within the moment of grace: then it must be whole.
    match said.code {
        Some(130) => assert!(desk.files().is_empty(), "{:?}", desk.files().keys()),
        code => {
            assert_eq!(code, Some(0), "{}", said.stderr);
            assert_eq!(desk.read("map.csv").iter().filter(|b| **b == b'\n').count(), 512 * 512 + 1);
        }
    }
}

#[test]
fn a_command_that_waits_for_its_input_can_be_interrupted() {
    let desk = Desk::new();
    assert!(Command::new("mkfifo").arg(desk.path("pipe.csv")).status().unwrap().success());
    let child = start(&desk, "convert pipe.csv map.npz");
    std::thread::sleep(Duration::from_millis(300));
    let said = stop(child, "-INT", Duration::from_secs(4));
    assert_eq!(said.code, Some(130), "{}", said.stderr);
    assert!(!desk.path("map.npz").exists());
}

#[test]
fn readers_that_go_away_are_no_mistake() {
    let desk = Desk::with_readings();
    for args in [
        "methods",
        "methods --json",
        "completions bash",
        "inspect truth.npz",
        "plot truth.npz",
        "score truth.npz truth.npz --json",
        "--help",
    ] {
        let mut child = start(&desk, args);
        drop(child.stdout.take());
        let said = Said::from(child.wait_with_output().unwrap());
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{args}");
    }
}

#[test]
fn a_closed_standard_error_is_no_reason_to_panic() {
    let desk = Desk::with_readings();
    for (args, code) in [
        ("inspect none.npz", 2),
        ("frobnicate", 2),
        ("estimate readings.npz -o map.npz --method idw", 0),
    ] {
        let mut child = start(&desk, args);
        drop(child.stderr.take());
        assert_eq!(child.wait().unwrap().code(), Some(code), "{args}");
    }
}

#[test]
fn what_a_large_map_takes_is_said_before_it_is_drawn() {
    use std::io::{BufRead, BufReader};
    let desk = Desk::with_readings();
    desk.ok("fit readings.npz -o model.npz --method kriging");
    let before: Vec<String> = desk.files().into_keys().collect();
    // It would take a while: after the line it is interrupted.
    let mut child = start(&desk, "predict model.npz -o map.npz --grid 11181x11181 --f64 --bands 0");
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let said = stop(child, "-INT", Duration::from_secs(3));
    if said.code == Some(2) {
        // A disk without room for it.
        return assert!(line.contains("free"), "{line}");
    }
    assert!(
        line.starts_with("portolan: note: a map of 11181 x 11181 x 1 takes about 2.0 GB on disk"),
        "{line}"
    );
    assert!(line.contains(" of memory"), "{line}");
    assert_eq!(said.code, Some(130), "{}", said.stderr);
    assert_eq!(desk.files().into_keys().collect::<Vec<_>>(), before, "no rest of it");
    // What is small is not worth a word.
    assert_eq!(desk.ok("predict model.npz -o small.npz").lines().len(), 1);
}
