//! `portolan study calibration`: error bars on simulated surveys.

use serde_json::Value;

use crate::support::Desk;

const TINY: &str =
    "study calibration --maps 2 --sensors 30 --noise 1 --bands-each 1 --truths process:20";

#[test]
fn a_tiny_study_of_error_bars() {
    let desk = Desk::new();
    let told = desk.json(&format!("{TINY} --methods kriging --json"));
    let [row] = &told["rows"].as_array().unwrap()[..] else { panic!("{told}") };
    assert_eq!((&row["truth"], &row["sensors"]), (&"process:20".into(), &30.into()), "{row}");
    let methods = row["methods"].as_array().unwrap();
    let names: Vec<&Value> = methods.iter().map(|method| &method["method"]).collect();
    assert_eq!(names, ["true law", "noise unknown", "kriging"], "{row}");
    for method in methods {
        assert_eq!((&method["failed"], &method["without_bars"]), (&0.into(), &0.into()));
        let bins = method["distance"].as_array().unwrap();
        let parts = bins.iter().chain([&method["repeated"], &method["new"]]);
        for part in parts {
            let covered = part["coverage_90"]["value"].as_f64().unwrap();
            assert!((0.0..=1.0).contains(&covered), "{part}");
        }
        assert!(method["new"]["rmse_db"].as_f64().unwrap() < 20.0, "{method}");
    }
    assert_eq!(methods[0]["new"]["score"]["ratio"]["value"], 1.0, "{row}");
    assert_eq!(told["summary"].as_array().unwrap().len(), 3, "{told}");
    // The number of threads changes nothing.
    let alone = desk.json(&format!("{TINY} --methods kriging --json --threads 1"));
    assert_eq!(told, alone);
}

#[test]
fn methods_without_error_bars_are_shown() {
    let desk = Desk::new();
    let said = desk.ok(&format!("{TINY} --methods nearest")).stdout;
    assert!(said.contains("nearest: "), "{said}");
    assert!(said.contains("0 surveys failed, 2 without error bars"), "{said}");
}

#[test]
fn what_a_study_of_error_bars_refuses() {
    let desk = Desk::new();
    desk.refused("study calibration --snr-db 20", &["--snr-db", "error bars"]);
    desk.refused("study calibration --bands 4", &["--bands", "error bars"]);
    desk.refused("study calibration --force", &["--force", "error bars"]);
    desk.refused("study calibration --data .", &["--data", "study real"]);
    desk.refused("study calibration --maps 0", &["--maps 0"]);
    desk.refused("study calibration --truths process:-3", &["--truths", "process:RANGE"]);
    desk.refused("study calibration --noise 1,-2", &["--noise -2"]);
    desk.refused("study calibration --bands-each 0", &["--bands-each 0"]);
    desk.refused("study calibration --sensors 1", &["--sensors 1"]);
    desk.refused("study calibration --methods oracle", &["oracle", "true map"]);
    desk.refused("study --noise 1", &["--noise", "study calibration"]);
    desk.refused("study real --data . --truths path", &["--truths", "study calibration"]);
}
