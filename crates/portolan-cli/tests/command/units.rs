//! What powers are measured in, what was not heard, and what a method is told.

use portolan::sense::{Quantising, Sensing, SensorLayout, sense};
use portolan::simulate::{Scenario, simulate};
use portolan::{Grid, Values};

use crate::npz::npz;
use crate::support::{Desk, table};

/// Three sensors on a grid of 8 x 9 cells, with further arrays.
fn readings(values: &[f64], more: &[crate::npz::Array<'_>]) -> Vec<u8> {
    let arrays = [
        ("grid", &[2][..], &[8.0, 9.0][..]),
        ("cells", &[3, 2][..], &[0.0, 0.0, 3.0, 4.0, 7.0, 8.0][..]),
        ("values", &[3, 1][..], values),
    ];
    npz(&[&arrays, more].concat())
}

#[test]
fn an_archive_without_a_unit_says_what_it_is_taken_for() {
    let desk = Desk::new();
    desk.write("r.npz", readings(&[1.0, 2.0, 4.0], &[]));
    let said = desk.ok("estimate r.npz -o map.npz --method idw");
    assert!(said.stderr.contains("note: r.npz: the unit is not given"), "{}", said.stderr);
    assert_eq!(desk.json("inspect map.npz --json")["unit"], "dbm");
    // The caller's word goes where the file has none.
    let said = desk.ok("estimate r.npz -o relative.npz --method idw --unit relative");
    assert!(!said.stderr.contains("the unit is not given"), "{}", said.stderr);
    let summary = desk.json("inspect relative.npz --json");
    assert_eq!((&summary["unit"], &summary["offset"]), (&"relative".into(), &1e-6.into()));
    desk.write("offset.npz", readings(&[1.0, 2.0, 4.0], &[("offset", &[], &[1e-3])]));
    let said = desk.ok("estimate offset.npz -o own.npz --method idw");
    assert!(said.stderr.contains("taken as relative"), "{}", said.stderr);
    assert_eq!(desk.json("inspect own.npz --json")["offset"], 1e-3);
}

#[test]
fn decibels_in_an_archive_are_taken_when_told() {
    let desk = Desk::new();
    desk.write("r.npz", readings(&[-40.0, -50.0, -60.0], &[]));
    desk.refused("estimate r.npz -o x.npz", &["r.npz", "--unit dbm"]);
    for (unit, word) in [("dbm", "dbm"), ("db", "db")] {
        desk.ok(&format!("estimate r.npz -o {unit}.npz --method idw --unit {unit}"));
        desk.ok(&format!("convert {unit}.npz {unit}.csv"));
        let found = table(&desk, &format!("{unit}.csv"));
        let db = found.numbers(&format!("{word}_band0"));
        assert!(db.iter().all(|db| (-60.001..-39.999).contains(db)), "{unit}");
    }
    desk.ok("fit r.npz -o model.npz --method kriging --unit db");
    desk.write("places.csv", "x_m,y_m\n1,1\n");
    desk.ok("predict model.npz places.csv -o at.csv");
    let header = table(&desk, "at.csv").header;
    assert_eq!(header[2..], ["db_band0", "spread_db_band0", "reading_spread_db_band0"]);
}

#[test]
fn power_without_calibration_is_never_called_dbm() {
    let desk = Desk::new();
    desk.write("survey.csv", "x_m,y_m,db_2412MHz\n0,0,-40\n5,1,-47\n2,6,-44\n");
    desk.ok("estimate survey.csv -o map.npz --method kriging");
    assert_eq!(desk.json("inspect map.npz --json")["unit"], "db");
    desk.refused("convert map.npz map.csv --output-unit dbm", &["map.csv", "db"]);
    desk.write("mixed.csv", "x_m,y_m,db_1GHz,dbm_2GHz\n0,0,-40,-40\n5,1,-47,-40\n");
    desk.refused("estimate mixed.csv -o x.npz", &["mixed.csv", "calibrated"]);
}

#[test]
fn what_was_not_heard_is_marked_by_a_code() {
    let desk = Desk::new();
    let mut text = String::from("x_m,y_m,dbm_2412MHz\n");
    for i in 0..30 {
        let (x, y) = (2.0 * f64::from(i % 6), 2.0 * f64::from(i / 6));
        let dbm = -50.0 - 3.0 * x - 2.0 * y;
        text += &format!("{x},{y},{}\n", if dbm < -85.0 { 100.0 } else { dbm });
    }
    desk.write("survey.csv", &text);
    let summary = desk.json("inspect survey.csv --json --not-heard 100");
    let silent = text.lines().filter(|line| line.ends_with(",100")).count();
    assert_eq!((&summary["not_heard"], &summary["gaps"]), (&silent.into(), &0.into()));
    assert!(silent > 1);
    desk.ok("estimate survey.csv -o map.npz --method kriging --not-heard 100 --floor-db -86");
    desk.ok("fit survey.csv -o model.npz --not-heard 100");
    // A floor that lies above what was heard is no floor.
    let args = "estimate survey.csv -o x.npz --not-heard 100 --floor-db";
    desk.refused(&format!("{args} -60"), &["survey.csv", "-60"]);
    desk.refused("estimate survey.csv -o x.npz --floor-db -90", &["--not-heard"]);
    // Arrays keep the marks; so does a table, as zeros.
    for name in ["s.npz", "s.mat", "s2.csv"] {
        desk.ok(&format!("convert survey.csv {name} --not-heard 100 --floor-db -86"));
        let summary = desk.json(&format!("inspect {name} --json"));
        assert_eq!(summary["not_heard"], silent, "{name}");
    }
    desk.refused("convert s.npz x.csv --output-unit dbm", &["x.csv", "not heard"]);
}

#[test]
fn a_number_of_emitters_is_for_methods_that_tell_them_apart() {
    let desk = Desk::with_readings();
    for method in ["kriging", "idw", "nearest"] {
        let args = format!("--method {method} --emitters 2");
        let words = ["--emitters", method, "field"];
        desk.refused(&format!("estimate readings.npz -o x.npz {args}"), &words);
        desk.refused(&format!("fit readings.npz -o x.npz {args}"), &words);
    }
    desk.ok("estimate readings.npz -o x.npz --method kriging --emitters auto");
}

#[test]
fn an_option_that_is_gone_is_refused() {
    let desk = Desk::with_readings();
    let args = "estimate readings.npz -o x.npz --set budget=3";
    desk.refused(args, &["auto", "'budget'", "folds"]);
}

#[test]
fn levels_without_their_noise_show_it() {
    let desk = Desk::new();
    let grid = Grid::new(24, 24, 1.0).unwrap();
    let scenario = Scenario { bands: 12, emitters: 2, seed: 5, ..Scenario::new(grid) };
    let quantising = Some(Quantising { bits: 3, edges: None, sigma: 0.5 });
    let sensing = Sensing { quantising, ..Sensing::exact(SensorLayout::Count(80), 1) };
    let readings = sense(&simulate(&scenario).unwrap(), &sensing).unwrap();
    let Values::Levels { levels, quantiser } = readings.values() else { panic!("no levels") };
    let cells = readings.cells(grid).unwrap();
    let places: Vec<f64> = cells.iter().flat_map(|c| [c.row as f64, c.col as f64]).collect();
    let levels: Vec<f64> = levels.iter().map(|level| f64::from(*level)).collect();
    let arrays = [
        ("grid", &[2][..], &[24.0, 24.0][..]),
        ("cells", &[80, 2][..], &places[..]),
        ("levels", &[80, 12][..], &levels[..]),
        ("edges", &[7][..], quantiser.edges()),
        ("a", &[][..], &[1e-6][..]),
    ];
    desk.write("r.npz", npz(&arrays));
    let said = desk.ok("estimate r.npz -o map.npz --method field --emitters 2");
    assert!(said.stderr.contains("'sigma' is missing: taken to be 0."), "{}", said.stderr);
    let sigma = desk.json("inspect r.npz --json")["quantiser"]["sigma"].as_f64().unwrap();
    assert!((0.35..0.7).contains(&sigma), "{sigma}");
}
