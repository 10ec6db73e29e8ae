//! The same map and the same readings in every format.

use serde_json::Value;

use crate::support::Desk;

fn close(a: &Value, b: &Value) -> bool {
    let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
    (a - b).abs() <= 1e-9 * a.abs()
}

#[test]
fn a_map_survives_npz_mat_csv_and_back() {
    let desk = Desk::with_readings();
    desk.ok("convert truth.npz truth.mat");
    desk.ok("convert truth.mat back.npz");
    assert_eq!(desk.read("back.npz"), desk.read("truth.npz"), "mat keeps everything");
    desk.ok("convert truth.npz truth.csv");
    desk.ok("convert truth.csv from-table.npz");
    for file in ["truth.mat", "truth.csv", "from-table.npz"] {
        let summary = desk.json(&format!("inspect {file} --json"));
        assert_eq!(summary["kind"], "map", "{file}");
        assert_eq!((&summary["rows"], &summary["cols"]), (&16.into(), &14.into()), "{file}");
        assert_eq!(summary["bands"], 5, "{file}");
        let score = desk.json(&format!("score {file} truth.npz --json"));
        assert!(score["rmse_db"].as_f64().unwrap() < 1e-9, "{file}: {score}");
    }
}

#[test]
fn readings_survive_npz_mat_csv_and_back() {
    let desk = Desk::with_readings();
    desk.ok("sense truth.npz -o gaps.npz --count 40 --gaps 0.2");
    for name in ["readings", "gaps"] {
        desk.ok(&format!("convert {name}.npz {name}.mat"));
        desk.ok(&format!("convert {name}.mat {name}-mat.npz"));
        assert_eq!(desk.read(&format!("{name}-mat.npz")), desk.read(&format!("{name}.npz")));
        desk.ok(&format!("convert {name}.npz {name}.csv"));
        desk.ok(&format!("convert {name}.csv {name}-csv.npz --grid 16x14"));
        let [one, two] = [format!("{name}.npz"), format!("{name}-csv.npz")]
            .map(|file| desk.json(&format!("inspect {file} --json")));
        for same in ["kind", "rows", "cols", "bands", "sensors", "gaps"] {
            assert_eq!(one[same], two[same], "{name}, {same}");
        }
        for end in 0..2 {
            assert!(close(&one["range"][end], &two["range"][end]), "{name}: {one} {two}");
        }
        desk.ok(&format!("estimate {name}.csv -o {name}-map.mat --method idw --grid 16x14"));
        desk.ok(&format!("estimate {name}.npz -o {name}-map.npz --method idw"));
        let score = desk.json(&format!("score {name}-map.mat {name}-map.npz --json"));
        assert!(score["rmse_db"].as_f64().unwrap() < 1e-6, "{score}");
    }
}

#[test]
fn levels_survive_mat_and_are_refused_where_a_table_cannot_hold_them() {
    let desk = Desk::with_readings();
    desk.ok("sense truth.npz -o levels.npz --count 30 --bits 3");
    desk.ok("convert levels.npz levels.mat");
    desk.ok("convert levels.mat back.npz");
    assert_eq!(desk.read("back.npz"), desk.read("levels.npz"));
    desk.refused("convert levels.npz levels.csv", &["levels.csv"]);
}

#[test]
fn tables_are_written_in_the_unit_asked_for() {
    let desk = Desk::with_readings();
    desk.ok("convert readings.npz own.csv");
    desk.refused("convert readings.npz x.csv --output-unit dbm", &["x.csv", "relative"]);
    desk.write("survey.csv", "row,col,dbm_1GHz\n0,0,-40\n3,2,-52.5\n");
    desk.ok("convert survey.csv survey.npz");
    desk.ok("convert survey.npz dbm.csv");
    desk.ok("convert survey.npz linear.csv --output-unit linear");
    let header =
        |name| String::from_utf8(desk.read(name)).unwrap().lines().next().unwrap().to_string();
    assert!(header("own.csv").contains("relative_"), "{}", header("own.csv"));
    assert!(header("dbm.csv").contains("dbm_"), "{}", header("dbm.csv"));
    assert!(!header("linear.csv").contains("dbm"), "{}", header("linear.csv"));
    let [dbm, linear] =
        ["dbm.csv", "linear.csv"].map(|file| desk.json(&format!("inspect {file} --json")));
    assert!(close(&dbm["range"][1], &linear["range"][1]), "{dbm} {linear}");
}

#[test]
fn inspect_tells_what_is_in_a_file() {
    let desk = Desk::with_readings();
    let text = desk.ok("inspect readings.npz");
    for words in ["readings", "16 x 14", "sensors    30", "bands      5", "gaps       0 of 150"] {
        assert!(text.stdout.contains(words), "{words}: {}", text.stdout);
    }
    assert!(text.stderr.is_empty());
}
