//! The paper's experiments as a command: results, refusals, and being killed at any moment.

use serde_json::Value;

use crate::support::{Desk, PNG};

const TINY: &str = "reproduce table-hyper --tiny --trials 1 --out out";

/// The results of a run without what the clock says.
fn results(desk: &Desk, name: &str) -> Value {
    fn still(value: &mut Value) {
        match value {
            Value::Object(map) => {
                map.retain(|name, _| name != "seconds" && name != "fit_seconds");
                map.values_mut().for_each(still);
            }
            Value::Array(list) => list.iter_mut().for_each(still),
            _ => {}
        }
    }
    let mut value = serde_json::from_slice(&desk.read(name)).unwrap();
    still(&mut value);
    value
}

#[test]
fn a_table_is_printed_beside_the_papers_numbers() {
    let desk = Desk::new();
    let said = desk.ok("reproduce table-hyper --tiny --trials 1 --out out");
    assert!(said.stdout.contains("| 0.0001") && said.stdout.contains("[.8924]"), "{}", said.stdout);
    assert!(desk.read("out/table-hyper.md").starts_with(b"## Hyperparameters"));
    assert!(desk.read("out/reproduction.md").starts_with(b"# Reproduction"));
    assert!(desk.read("out/table-hyper.csv").starts_with(b"section,row,column,method,emitters"));
    let again = desk.ok("reproduce table-hyper --tiny --trials 1 --out out");
    assert_eq!(again.stdout, said.stdout, "nothing runs twice, so seconds are the same");
    std::fs::remove_file(desk.path("out/table-hyper.md")).unwrap();
    let report = desk.ok("reproduce report --tiny --out out");
    assert_eq!(report.stdout, said.stdout);
}

#[test]
fn a_figure_is_drawn() {
    let desk = Desk::new();
    desk.ok("reproduce figure-maps --tiny --trials 1 --out out");
    assert!(desk.read("out/figure-maps.png").starts_with(PNG));
}

#[test]
fn requests_that_cannot_be_met_are_refused() {
    let desk = Desk::new();
    desk.refused("reproduce table-1", &["table-emitters", "figure-real", "all"]);
    desk.refused("reproduce table-hyper --trials 0", &["--trials 0"]);
    desk.refused("reproduce table-hyper --threads 0", &["--threads 0"]);
    desk.refused("reproduce table-hyper --seed 18446744073709551615", &["--seed"]);
    desk.write("file", "");
    desk.refused("reproduce table-hyper --out file", &["file"]);
    desk.refused("reproduce table-real --tiny --data no-such-folder", &["no-such-folder"]);
}

#[test]
fn without_data_the_command_says_where_to_get_it() {
    let desk = Desk::new();
    let mut command = desk.command("reproduce table-real --tiny");
    let output = command.env_remove("PORTOLAN_DATA").output().unwrap();
    let said = crate::support::Said::from(output);
    assert_eq!(said.code, Some(2));
    let line = said.complaint();
    for word in ["--data", "PORTOLAN_DATA", "CRAWDAD", "doi"] {
        assert!(line.contains(word), "{line}");
    }
    assert!(desk.files().is_empty() && !desk.path("portolan-reproduction").exists());
}

#[test]
fn real_data_is_scored_where_it_was_measured() {
    let Some(data) = std::env::var_os("PORTOLAN_DATA") else {
        eprintln!("skipped: PORTOLAN_DATA names no folder with measured data");
        return;
    };
    let desk = Desk::new();
    let words = format!("--tiny --trials 1 --out out --data {}", data.to_string_lossy());
    desk.ok(&format!("reproduce table-real {words}"));
    let table = results(&desk, "out/table-real.json");
    for section in table["sections"].as_array().unwrap() {
        for cell in section["cells"].as_array().unwrap() {
            let measured = section["name"] == "floor";
            assert_eq!(cell["off_grid_rmse_db"]["mean"].is_f64(), measured, "{cell}");
        }
    }
    desk.ok(&format!("reproduce figure-real {words}"));
    assert!(desk.read("out/figure-real.png").starts_with(PNG));
}

#[cfg(unix)]
mod killed {
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    fn start(desk: &Desk) -> Child {
        let mut command = desk.command(TINY);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn journal(desk: &Desk) -> Vec<u8> {
        std::fs::read(desk.path("out/journal.jsonl")).unwrap_or_default()
    }

    /// The journal up to its last whole line.
    fn whole(desk: &Desk) -> Vec<u8> {
        let mut bytes = journal(desk);
        bytes.truncate(bytes.iter().rposition(|b| *b == b'\n').map_or(0, |end| end + 1));
        bytes
    }

    /// Waits until the journal has grown by some bytes, or the run has ended.
    fn wait_for_more(desk: &Desk, child: &mut Child, than: usize) {
        let begun = Instant::now();
        while journal(desk).len() <= than && child.try_wait().unwrap().is_none() {
            assert!(begun.elapsed() < Duration::from_secs(60), "no record in a minute");
            std::thread::sleep(Duration::from_millis(3));
        }
    }

    #[test]
    fn a_run_killed_again_and_again_ends_as_if_it_never_was() {
        let calm = Desk::new();
        calm.ok(TINY);
        let desk = Desk::new();
        let mut kept = Vec::new();
        for pause in [0, 40, 7, 90] {
            let mut child = start(&desk);
            wait_for_more(&desk, &mut child, kept.len());
            std::thread::sleep(Duration::from_millis(pause));
            child.kill().unwrap();
            child.wait().unwrap();
            let now = whole(&desk);
            assert!(now.starts_with(&kept), "finished records stay as they are");
            kept = now;
        }
        desk.ok(TINY);
        assert!(journal(&desk).starts_with(&kept), "finished records are not computed again");
        let lines = |desk: &Desk| journal(desk).iter().filter(|b| **b == b'\n').count();
        assert_eq!(lines(&desk), lines(&calm), "and none twice");
        assert_eq!(results(&desk, "out/table-hyper.json"), results(&calm, "out/table-hyper.json"));
    }

    #[test]
    fn an_interrupted_run_ends_with_130_and_goes_on_later() {
        let desk = Desk::new();
        let mut child = start(&desk);
        wait_for_more(&desk, &mut child, 0);
        let id = child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(130));
        let kept = journal(&desk);
        assert!(kept.ends_with(b"\n"), "the journal is whole");
        desk.ok(TINY);
        assert!(journal(&desk).starts_with(&kept));
    }

    #[test]
    fn two_runs_do_not_share_a_folder() {
        let desk = Desk::new();
        let mut child = start(&desk);
        wait_for_more(&desk, &mut child, 0);
        let second = desk.run(TINY);
        assert_eq!(second.code, Some(2), "{}", second.stderr);
        assert!(second.complaint().contains("in use"), "{}", second.stderr);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
