//! Emitters as results, the oracle, and estimates that start from an earlier one.

use serde_json::Value;

use crate::support::{Desk, PNG};

fn number(object: &Value, name: &str) -> f64 {
    object[name].as_f64().unwrap_or_else(|| panic!("{name} in {object}"))
}

#[test]
fn field_says_where_its_emitters_are_how_surely_and_what_they_occupy() {
    let desk = Desk::with_readings();
    let estimate = "estimate readings.npz --method field --emitters 2";
    let report = desk.json(&format!("{estimate} -o map.npz --json --cell-m 2"));
    let emitters = report["emitters"].as_array().unwrap();
    assert_eq!(emitters.len(), 2);
    let mut power = 0.0;
    for emitter in emitters {
        assert!(number(emitter, "row").is_finite() && number(emitter, "col").is_finite());
        assert!(number(emitter, "row_se") > 0.0 && number(emitter, "exponent_se") > 0.0);
        assert_eq!(number(emitter, "y_se_m"), 2.0 * number(emitter, "col_se"));
        let (x, row) = (number(emitter, "x_m"), number(emitter, "row"));
        assert!((x - 2.0 * row).abs() < 1e-9, "{emitter}");
        assert!((1.0..4.0).contains(&number(emitter, "exponent")), "{emitter}");
        let ranges = emitter["occupied"].as_array().unwrap();
        let bands = ranges.iter().map(|r| 1 + r[1].as_u64().unwrap() - r[0].as_u64().unwrap());
        assert_eq!(number(emitter, "occupancy"), bands.sum::<u64>() as f64 / 5.0);
        assert!(emitter["occupied_hz"].is_null());
        power += number(emitter, "power_share");
    }
    assert!((power - 1.0).abs() < 1e-9, "{power}");
    // Said once: not among the notes as well.
    assert!(!report["notes"].to_string().contains("exponent"), "{report}");
    let said = desk.ok(&format!("{estimate} -o again.npz"));
    assert!(said.stdout.starts_with("emitter") && said.stdout.contains(" ± "), "{}", said.stdout);
    assert_eq!(said.stdout.lines().count(), 4);
}

#[test]
fn emitters_have_rows_and_columns_only_where_there_is_a_grid() {
    let desk = Desk::with_readings();
    desk.ok("convert readings.npz cells.csv");
    let cells = String::from_utf8(desk.read("cells.csv")).unwrap();
    desk.write("places.csv", cells.replacen("row,col", "x_m,y_m", 1));
    let field = "--method field --emitters 2 --json";
    let anywhere = desk.json(&format!("estimate places.csv -o a.npz {field}"));
    let on_grid = desk.json(&format!("estimate places.csv -o b.npz {field} --grid 16x14"));
    for (report, has) in [(&anywhere, false), (&on_grid, true)] {
        for emitter in report["emitters"].as_array().unwrap() {
            assert!(number(emitter, "x_m").is_finite() && number(emitter, "y_se_m") > 0.0);
            for name in ["row", "col", "row_se", "col_se"] {
                assert_eq!(emitter.get(name).is_some(), has, "{name} in {emitter}");
            }
        }
    }
}

#[test]
fn what_a_method_does_not_know_is_null() {
    let desk = Desk::with_readings();
    let report = desk.json("estimate readings.npz -o btd.npz --method btd --emitters 2 --json");
    for emitter in report["emitters"].as_array().unwrap() {
        assert!(number(emitter, "row") >= 0.0 && number(emitter, "power_share") > 0.0);
        for unknown in ["row_se", "col_se", "x_se_m", "y_se_m", "exponent", "exponent_se"] {
            assert!(emitter[unknown].is_null(), "{unknown} in {emitter}");
        }
    }
    let report = desk.json("estimate readings.npz -o idw.npz --method idw --json");
    assert_eq!(report["emitters"].as_array().unwrap().len(), 0);
    assert_eq!(desk.ok("estimate readings.npz -o idw2.npz --method idw").stdout, "");
}

#[test]
fn files_keep_errors_and_exponents_and_pictures_show_them() {
    let desk = Desk::with_readings();
    desk.ok("estimate readings.npz -o map.npz --method field --emitters 2");
    for map in ["map.npz", "map.mat"] {
        if map != "map.npz" {
            desk.ok(&format!("convert map.npz {map}"));
        }
        let arrays = desk.json(&format!("inspect {map} --json"))["arrays"].to_string();
        for name in ["emitter_se", "exponent", "exponent_se"] {
            assert!(arrays.contains(&format!("\"{name}\"")), "{name} in {arrays}");
        }
    }
    desk.ok("plot map.npz -o with.png --readings readings.npz");
    desk.ok("plot map.mat -o with-mat.png --readings readings.npz");
    assert_eq!(desk.read("with.png"), desk.read("with-mat.png"));
    desk.ok("plot map.npz -o factors.png --factors --truth truth.npz");
    assert!(desk.read("factors.png").starts_with(PNG));
    // A file without the new arrays is read as before.
    desk.ok("plot truth.npz -o truth.png --factors");
}

#[test]
fn the_oracle_is_the_yardstick_of_compare() {
    let desk = Desk::with_readings();
    let compare = "compare readings.npz truth.npz --methods kriging,oracle,oracle:decorrelation=90";
    let rows = desk.json(&format!("{compare} --json"));
    let rmse: Vec<f64> = (0..3).map(|i| number(&rows[i], "rmse_db")).collect();
    assert!(rmse[1] < rmse[0] && rmse[2] < rmse[0], "{rmse:?}");
    assert!(number(&rows[0], "coverage_90_unmeasured") > 0.3, "{}", rows[0]);
    assert!(desk.ok(compare).stdout.contains("unmeasured %"));
    let estimate = "estimate readings.npz --method oracle --truth truth.npz";
    let report = desk.json(&format!("{estimate} -o o.npz --set decorrelation=90 --json"));
    assert_eq!(number(&report["fitted"], "decorrelation_m"), 90.0);
    let fitted = desk.json(&format!("{estimate} -o f.npz --json"));
    assert!(number(&fitted["fitted"], "decorrelation_m") > 1.0);
    let methods = desk.ok("methods").stdout;
    assert!(methods.contains("oracle") && methods.contains("needs --truth"), "{methods}");
}

#[test]
fn an_oracle_without_a_truth_it_can_use_is_refused() {
    let desk = Desk::with_readings();
    let estimate = "estimate readings.npz -o x.npz --method";
    desk.refused(&format!("{estimate} oracle"), &["oracle", "--truth"]);
    desk.refused(&format!("{estimate} kriging --truth truth.npz"), &["--truth", "oracle"]);
    desk.refused(&format!("{estimate} oracle --truth none.npz"), &["none.npz"]);
    let told = format!("{estimate} oracle --truth");
    desk.refused(&format!("{told} truth.npz --set decorrelation=0"), &["decorrelation=0"]);
    desk.ok("estimate readings.npz -o dense.npz --method idw");
    desk.refused(&format!("{told} dense.npz"), &["factored"]);
    desk.ok("simulate -o other.npz --grid 16x14 --bands 4 --emitters 2");
    desk.refused(&format!("{told} other.npz"), &["other bands"]);
    desk.refused("advise readings.npz --method oracle", &["truth"]);
}

#[test]
fn new_readings_update_an_earlier_map() {
    let desk = Desk::with_readings();
    desk.ok("estimate readings.npz -o first.npz --method field --emitters 2");
    desk.ok("sense truth.npz -o more.npz --count 60 --seed 4");
    for (method, quick) in [("field", ""), ("auto", ""), ("unn", "--set iterations=50")] {
        let args = format!("estimate more.npz --method {method} {quick} --start first.npz --json");
        let report = desk.json(&format!("{args} -o {method}.npz"));
        assert_eq!(report["method"], method);
        let score = desk.json(&format!("score {method}.npz truth.npz --json"));
        assert!(number(&score, "rmse_db") < 2.5, "{method}: {score}");
    }
    // The same seed and start, the same bytes.
    desk.ok("estimate more.npz -o same.npz --method field --start first.npz --threads 1");
    assert_eq!(desk.read("same.npz"), desk.read("field.npz"));
}

#[test]
fn a_start_that_does_not_fit_is_refused() {
    let desk = Desk::with_readings();
    let field = "estimate readings.npz -o x.npz --method field --start";
    desk.ok("estimate readings.npz -o dense.npz --method idw");
    desk.ok("simulate -o bands.npz --grid 16x14 --bands 4 --emitters 2");
    desk.ok("simulate -o sides.npz --grid 14x16 --bands 5 --emitters 2");
    desk.refused(&format!("{field} dense.npz"), &["no SLFs and PSDs"]);
    desk.refused(&format!("{field} bands.npz"), &["4 bands"]);
    desk.refused(&format!("{field} sides.npz"), &["does not cover sensor"]);
    desk.refused(&format!("{field} none.npz"), &["none.npz"]);
    desk.refused(&format!("{field} truth.npz --emitters 3"), &["2 emitters", "3"]);
    let others = "estimate readings.npz -o x.npz --start truth.npz";
    desk.refused(&format!("{others} --method kriging"), &["--start", "kriging", "field"]);
    desk.refused(&format!("{others} --method btd"), &["--start", "btd", "unn"]);
    desk.refused(&format!("{others} --method unn --set start=btd"), &["start"]);
    desk.refused(&format!("{others} --emitters 3"), &["2 emitters"]);
}
