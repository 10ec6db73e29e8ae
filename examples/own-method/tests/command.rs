//! The method takes part in everything that the command does.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

fn portolan(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_own-method"));
    command.current_dir(folder);
    command
}

fn said(folder: &Path, line: &str) -> String {
    let output = portolan(folder).args(line.split(' ')).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// Twenty places along two streets, falling by 2 dB each.
fn survey(folder: &Path) {
    let mut text = String::from("x_m,y_m,dbm_868MHz\n");
    for i in 0..20 {
        text += &format!("{},{},{}\n", 10 * i, 30 * (i % 2), -60 - 2 * i);
    }
    std::fs::write(folder.join("survey.csv"), text).unwrap();
    std::fs::write(folder.join("places.csv"), "x_m,y_m\n0,0\n95,15\n").unwrap();
}

#[test]
fn the_method_is_listed_fitted_saved_loaded_and_validated() {
    let folder = tempfile::tempdir().unwrap();
    survey(folder.path());
    let run = |line: &str| said(folder.path(), line);
    assert!(run("methods").contains("median: the median of the nearest sensors [spread, heights]"));
    let predicted = |model: &str| {
        run(&format!("predict {model} places.csv -o out.csv --force"));
        let text = std::fs::read_to_string(folder.path().join("out.csv")).unwrap();
        let row = text.lines().nth(2).unwrap().to_string();
        row.split(',').map(|cell| cell.parse::<f64>().unwrap()).collect::<Vec<f64>>()
    };
    run("fit survey.csv -o three.npz --method median --set sensors=3");
    run("fit survey.csv -o all.npz --method median --set sensors=20");
    // The three nearest of x 95, y 15 read -78, -80 and -76 or -82; all of them -79 in the middle.
    let (three, all) = (predicted("three.npz"), predicted("all.npz"));
    assert!((three[2] + 79.0).abs() <= 1.0, "{three:?}");
    assert!((all[2] + 79.0).abs() < 1e-9 && all[3] > three[3], "{all:?}");
    let judged = run("validate survey.csv --methods median,nearest --json");
    assert!(judged.contains("\"method\":\"median\"") || judged.contains("\"method\": \"median\""));
    // Another program does not know the kind.
    let taken = portolan::estimate::register(portolan::estimate::Entry::new(
        "kriging",
        "another of that name",
        |_| unreachable!("it is never built"),
    ));
    assert!(taken.unwrap_err().to_string().contains("'kriging' is taken"));
}

#[test]
fn the_explorer_offers_it() {
    let folder = tempfile::tempdir().unwrap();
    survey(folder.path());
    let mut server = portolan(folder.path())
        .args("explore survey.csv --port 0 --no-open --method median".split(' '))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let found = lines.map_while(Result::ok).find_map(|line| {
        let rest = line.split("http://").nth(1)?;
        Some(rest.trim().trim_end_matches('/').to_string())
    });
    let address = found.expect("the explorer says where it is");
    let (host, _) = address.split_once('/').unwrap_or((&address, ""));
    let mut stream = TcpStream::connect(host).unwrap();
    let request = format!("GET /api/methods HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(answer.contains("\"median\""), "{answer}");
}
