//! `portolan explore`: the address that it prints, what it opens, how it ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::Desk;

/// The command with its page, ended when dropped.
struct Running {
    child: Child,
    url: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn explore(desk: &Desk, words: &str) -> Running {
    let mut child = desk
        .command(&format!("explore --no-open --port 0 {words}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut url = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
    assert!(url.starts_with("http://"), "{url}");
    Running { child, url: url.trim().to_string() }
}

fn state(url: &str) -> serde_json::Value {
    let (host, path) = url.trim_start_matches("http://").split_once('/').unwrap();
    let host = host.replace("0.0.0.0", "127.0.0.1");
    let mut stream = TcpStream::connect(&host).unwrap();
    let request =
        format!("GET /api/state{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

const TABLE: &str = "x_m,y_m,dbm_2412MHz\n0,0,-60\n9,1,-66\n2,7,-71\n8,8,-75\n4,3,-64\n";

#[test]
fn a_survey_a_folder_and_the_demo_open() {
    let desk = Desk::new();
    desk.write("walk.csv", TABLE);
    desk.write("notes.txt", "nothing to see");
    desk.ok("fit walk.csv -o model.npz --method kriging");
    let running = explore(&desk, "walk.csv --method idw");
    let found = state(&running.url);
    assert_eq!(found["items"][0]["name"], "walk.csv");
    assert_eq!(found["jobs"][0]["what"], "idw on walk.csv");
    let running = explore(&desk, ".");
    let found = state(&running.url);
    let kinds: Vec<&str> =
        found["items"].as_array().unwrap().iter().map(|i| i["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["model", "readings"]);
    assert_eq!(found["items"][0]["readings"], 2);
    let running = explore(&desk, "");
    assert_eq!(state(&running.url)["items"][0]["name"], "demo");
    let running = explore(&desk, "--listen 0.0.0.0");
    assert!(running.url.contains("/?token="));
    assert_eq!(state(&running.url)["items"][0]["name"], "demo");
}

#[test]
fn every_survey_is_fitted_and_what_was_not_opened_is_said() {
    let desk = Desk::new();
    std::fs::create_dir(desk.path("town")).unwrap();
    for (name, text) in [
        ("town/a.csv", TABLE),
        ("town/b.csv", TABLE),
        ("town/odd.csv", "here,there\n1,2\n"),
        ("town/plan.svg", "<svg/>"),
    ] {
        desk.write(name, text);
    }
    let mut child = desk
        .command("explore --no-open --port 0 --method idw town")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut url = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let running = Running { child, url: url.trim().to_string() };
    let told: Vec<String> = stderr.lines().take(1).map(Result::unwrap).collect();
    assert!(told[0].starts_with("portolan: note: not opened: town/odd.csv: line 1"), "{told:?}");
    let found = state(&running.url);
    let skipped = found["skipped"].as_array().unwrap();
    assert_eq!((skipped.len(), skipped[0]["file"].as_str()), (1, Some("town/odd.csv")));
    assert!(skipped[0]["why"].as_str().unwrap().contains("'here', 'there'"));
    let jobs: Vec<&str> =
        found["jobs"].as_array().unwrap().iter().map(|j| j["what"].as_str().unwrap()).collect();
    assert_eq!(jobs, ["idw on a.csv", "idw on b.csv"]);
    // Where nothing can be opened, the reasons come with the refusal.
    std::fs::remove_file(desk.path("town/a.csv")).unwrap();
    std::fs::remove_file(desk.path("town/b.csv")).unwrap();
    desk.refused("explore --no-open town", &["holds no readings", "; town/odd.csv: line 1"]);
}

#[test]
fn all_addresses_are_no_address_for_others() {
    let desk = Desk::new();
    let mut child = desk
        .command("explore --no-open --port 0 --listen 0.0.0.0")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let told: Vec<String> = lines.take(2).map(Result::unwrap).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(told[1].contains("replace 0.0.0.0 by this machine's"), "{told:?}");
}

#[cfg(unix)]
#[test]
fn it_ends_well_when_it_is_interrupted() {
    let desk = Desk::new();
    let mut running = explore(&desk, "");
    let begun = Instant::now();
    let id = running.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert_eq!(running.child.wait().unwrap().code(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn wrong_files_and_words_are_refused_before_anything_listens() {
    let desk = Desk::new();
    desk.write("walk.csv", TABLE);
    std::fs::create_dir(desk.path("empty")).unwrap();
    for (words, told) in [
        ("nowhere.csv", "nowhere.csv"),
        ("empty", "holds no readings"),
        ("walk.csv --unit volt", "--unit"),
        ("walk.csv --method magic", "magic"),
        ("--method magic", "magic"),
        ("--unit dbm", "name one"),
        ("walk.csv --listen lab", "--listen"),
    ] {
        desk.refused(&format!("explore --no-open {words}"), &[told]);
    }
}
