//! Surveys that say what was not heard, and transmitters whose places are known.

use serde_json::Value;

use crate::support::{Desk, PNG, table};

/// How a table of access points is read.
const READ: &str = "--unit dbm --not-heard 100 --columns bands=WAP*";
/// Where the access points stand, in metres.
const MASTS: [(f64, f64); 4] = [(12.0, 9.0), (48.0, 31.0), (55.0, 4.0), (5.0, 36.0)];

/// Numbers that look random between -1 and 1, the same every time.
fn noise(seed: u32) -> impl FnMut() -> f64 {
    let mut state = u64::from(seed) * 2 + 1;
    move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as f64 / f64::from(1 << 23) - 1.0
    }
}

/// A floor of 60 m x 40 m with four access points, 100 where one was not heard; places as two
/// columns.
fn survey(seed: u32, heading: &str, place: impl Fn(f64, f64) -> String) -> String {
    let mut random = noise(seed);
    let mut text = format!("WAP001,WAP002,WAP003,WAP004,{heading}\n");
    for _ in 0..60 {
        let (x, y) = (30.0 + 30.0 * random(), 20.0 + 20.0 * random());
        for (mast_x, mast_y) in MASTS {
            let loss = 32.0 * (1.0 + (x - mast_x).hypot(y - mast_y)).log10();
            let dbm = -45.0 - loss + 5.0 * random();
            let heard = dbm > -89.0 + 2.0 * random();
            text += &if heard { format!("{dbm:.1},") } else { "100,".to_string() };
        }
        text += &place(x, y);
        text += "\n";
    }
    assert!(text.contains(",100,"));
    text
}

fn metres(x: f64, y: f64) -> String {
    format!("{x:.3},{y:.3}")
}

/// Degrees of a plane that touches the Earth near Mannheim, well enough for a floor.
fn degrees(x: f64, y: f64) -> String {
    format!("{:.9},{:.9}", 49.4875 + y / 111_226.0, 8.466 + x / 72_440.0)
}

fn desk(seed: u32) -> Desk {
    let desk = Desk::new();
    desk.write("survey.csv", survey(seed, "x_m,y_m", metres));
    desk.write("places.csv", "x_m,y_m\n12,9\n30,20\n58,38\n-20,60\n");
    desk
}

fn weights(report: &Value) -> Vec<f64> {
    let candidates = report["candidates"].as_array().unwrap();
    candidates.iter().map(|c| c["weight"].as_f64().unwrap()).collect()
}

#[test]
fn predictions_say_the_chance_of_being_heard_and_what_is_reported() {
    for seed in [1, 2] {
        let desk = desk(seed);
        let summary = desk.json(&format!("inspect survey.csv --json {READ}"));
        assert!(summary["not_heard"].as_u64().unwrap() > 20, "{summary}");
        for method in ["kriging", "field", "auto"] {
            desk.ok(&format!("fit survey.csv -o {method}.npz --method {method} {READ}"));
            desk.ok(&format!("predict {method}.npz places.csv -o {method}.csv"));
            let found = table(&desk, &format!("{method}.csv"));
            for band in ["WAP001", "WAP002", "WAP003", "WAP004"] {
                let column = |what: &str| found.numbers(&format!("{what}_{band}"));
                let (field, heard) = (column("dbm"), column("heard_dbm"));
                let chance = column("chance_heard");
                assert!(chance.iter().all(|c| (0.0..=1.0).contains(c)), "{method}: {chance:?}");
                assert!(field.iter().zip(&heard).all(|(f, h)| *h >= f - 1e-9), "{method}");
                assert!(column("reading_spread_db").iter().all(|s| *s > 0.0 && s.is_finite()));
            }
            // Beside its access point a band is heard, at the other end of the floor it need not be.
            let chance = found.numbers("chance_heard_WAP001");
            assert!(chance[0] > 0.9 && chance[2] < chance[0], "{method}: {chance:?}");
        }
    }
}

#[test]
fn what_was_heard_everywhere_has_no_chance() {
    let desk = desk(3);
    let fit = "fit survey.csv -o model.npz --method kriging --unit dbm --columns bands=WAP*";
    // The code of what was not heard is no power.
    desk.refused(fit, &["are 100", "--not-heard 100"]);
    desk.ok(&format!("{fit} --missing 100"));
    desk.ok("predict model.npz places.csv -o found.csv");
    assert!(!table(&desk, "found.csv").header.iter().any(|name| name.contains("heard")));
}

#[test]
fn known_transmitters_draw_the_field_to_them() {
    let desk = desk(4);
    let mut known = String::from("x_m,y_m,band,height_m\n");
    for (i, (x, y)) in MASTS.iter().enumerate() {
        known += &format!("{x},{y},WAP00{},2.5\n", i + 1);
    }
    desk.write("known.csv", known);
    for method in ["field", "auto"] {
        let fit = format!("fit survey.csv --method {method} {READ} --json");
        let plain = desk.json(&format!("{fit} -o plain.npz --force"));
        let told = desk.json(&format!("{fit} -o told.npz --force --transmitters known.csv"));
        assert_ne!(plain["fitted"], told["fitted"], "{method}");
        desk.ok("predict plain.npz places.csv -o plain.csv --force");
        desk.ok("predict told.npz places.csv -o told.csv --force");
        let [plain, told] = ["plain.csv", "told.csv"].map(|name| table(&desk, name));
        assert_ne!(plain.column("dbm_WAP001"), told.column("dbm_WAP001"), "{method}");
    }
    let said = desk.json(&format!(
        "validate survey.csv --methods kriging,field {READ} --transmitters known.csv --json"
    ));
    assert!(said["methods"][1]["rmse_db"].as_f64().unwrap() > 0.0, "{said}");
    desk.refused(
        &format!("validate survey.csv --methods kriging,idw {READ} --transmitters known.csv"),
        &["--transmitters", "kriging, idw", "field, auto"],
    );
}

#[test]
fn transmitters_are_known_in_degrees_too() {
    let desk = Desk::new();
    desk.write("survey.csv", survey(5, "lat,lon", degrees));
    desk.ok(&format!("convert survey.csv survey.npz {READ}"));
    let mut known = String::from("name,lat,lon\n");
    for (i, (x, y)) in MASTS.iter().enumerate() {
        known += &format!("WAP00{},{}\n", i + 1, degrees(*x, *y));
    }
    desk.write("known.csv", &known);
    desk.write("places.csv", format!("lat,lon\n{}\n", degrees(20.0, 30.0)));
    let fit = format!("fit survey.csv --method field {READ}");
    desk.ok(&format!("{fit} -o told.npz --transmitters known.csv"));
    desk.ok(&format!("{fit} -o plain.npz"));
    for model in ["told", "plain"] {
        desk.ok(&format!("predict {model}.npz places.csv -o {model}.csv"));
    }
    let [told, plain] = ["told.csv", "plain.csv"].map(|name| table(&desk, name));
    assert_ne!(told.column("dbm_WAP001"), plain.column("dbm_WAP001"));
    // Readings in metres of nowhere cannot be joined with degrees.
    desk.write("metres.csv", survey(5, "x_m,y_m", metres));
    desk.refused(
        &format!("fit metres.csv -o x.npz --method field {READ} --transmitters known.csv"),
        &["known.csv", "coordinate system"],
    );
}

#[test]
fn transmitters_may_stand_anywhere_but_are_said_where_two_are_one() {
    let desk = desk(6);
    let first = String::from_utf8(desk.read("survey.csv")).unwrap();
    let sensor = first.lines().nth(1).unwrap().split(',').skip(4).collect::<Vec<_>>().join(",");
    // Outside the area, and on top of a sensor.
    desk.write("known.csv", format!("x_m,y_m,band\n-300,80,WAP001\n{sensor},WAP002\n"));
    let fit = format!("fit survey.csv --method field {READ} --force -o model.npz");
    let said = desk.ok(&format!("{fit} --transmitters known.csv"));
    assert!(!said.stderr.contains("same place"), "{}", said.stderr);
    desk.ok("predict model.npz places.csv -o found.csv");
    assert!(table(&desk, "found.csv").numbers("dbm_WAP001").iter().all(|dbm| dbm.is_finite()));
    desk.write("known.csv", "x_m,y_m,band\n12,9,WAP001\n48,31,WAP002\n12,9,WAP001\n");
    let said = desk.ok(&format!("{fit} --transmitters known.csv"));
    assert!(
        said.stderr.contains("transmitters 1 and 3 stand at the same place"),
        "{}",
        said.stderr
    );
    // One place, two bands: an access point with two radios.
    desk.write("known.csv", "x_m,y_m,band\n12,9,WAP001\n12,9,WAP002\n");
    let said = desk.ok(&format!("{fit} --transmitters known.csv"));
    assert!(!said.stderr.contains("same place"), "{}", said.stderr);
}

#[test]
fn transmitters_that_cannot_be_used_are_refused() {
    let desk = desk(7);
    let fit = format!("fit survey.csv -o x.npz {READ} --transmitters known.csv");
    desk.write("known.csv", "x_m,y_m,band\n12,9,WAP001\n12,9,WAP007\n");
    let bands = ["known.csv", "transmitter 2", "'WAP007'", "WAP001, WAP002, WAP003, WAP004"];
    desk.refused(&format!("{fit} --method field"), &bands);
    for method in ["kriging", "idw", "nearest", "thin_plate", "unn"] {
        let words = ["--transmitters", method, "field, auto"];
        desk.refused(&format!("{fit} --method {method}"), &words);
        desk.refused(&format!("{} --method {method}", fit.replacen("fit", "estimate", 1)), &words);
    }
    for (text, word) in [
        ("x_m,y_m,power_dbm\n12,9,loud\n", "'loud'"),
        ("x_m,y_m\n12,\n", "line 2"),
        ("x_m,y_m\n", "no places"),
        ("name,band\nhall,WAP001\n", "x_m"),
    ] {
        desk.write("known.csv", text);
        desk.refused(&format!("{fit} --method field"), &["known.csv", word]);
    }
}

#[test]
fn auto_says_what_each_method_weighs() {
    let desk = Desk::new();
    // The same floor through a receiver that hears everything.
    let mut random = noise(8);
    let mut text = String::from("x_m,y_m,dbm_a,dbm_b,dbm_c\n");
    for _ in 0..60 {
        let (x, y) = (30.0 + 30.0 * random(), 20.0 + 20.0 * random());
        text += &metres(x, y);
        for (mast_x, mast_y) in MASTS.into_iter().take(3) {
            let loss = 25.0 * (1.0 + (x - mast_x).hypot(y - mast_y)).log10();
            text += &format!(",{:.2}", -40.0 - loss + 4.0 * random());
        }
        text += "\n";
    }
    desk.write("survey.csv", text);
    let report = desk.json("fit survey.csv -o model.npz --json");
    let weights = weights(&report);
    assert!(weights.iter().all(|w| (0.0..=1.0).contains(w)), "{weights:?}");
    assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{weights:?}");
    let heaviest = (0..weights.len()).max_by(|a, b| weights[*a].total_cmp(&weights[*b])).unwrap();
    assert_eq!(report["chosen"], report["candidates"][heaviest]["method"], "{report}");
    assert!(report["notes"].to_string().contains("combined"), "{report}");
}

#[test]
fn pictures_mark_the_transmitters_that_are_known() {
    let desk = desk(9);
    let mut known = String::from("x_m,y_m,band\n");
    for (i, (x, y)) in MASTS.iter().enumerate() {
        known += &format!("{x},{y},WAP00{}\n", i + 1);
    }
    desk.write("known.csv", known);
    let fit = format!("fit survey.csv --method field {READ} --json");
    let told = desk.json(&format!("{fit} -o told.npz --transmitters known.csv"));
    let found = told["emitters"].as_array().unwrap();
    assert!(!found.is_empty(), "{told}");
    for emitter in found {
        let at = |axis: &str| emitter[axis].as_f64().unwrap();
        let near = |m: &(f64, f64)| (m.0 - at("x_m")).hypot(m.1 - at("y_m")) < 1e-6;
        assert!(MASTS.iter().any(near), "{emitter}");
    }
    desk.ok("predict told.npz -o map.npz --cell-m 2");
    desk.ok("plot map.npz -o map.png --band 1");
    assert!(desk.read("map.png").starts_with(PNG));
    // Known to a centimetre: a mark without an ellipse.
    desk.ok("plot map.npz -o map.svg --band 1");
    assert!(!String::from_utf8(desk.read("map.svg")).unwrap().contains("ellipse"));
    // Every band keeps its own transmitter, through files of other kinds too.
    let emitters = |name: &str| desk.json(&format!("inspect {name} --json"))["emitters"].clone();
    assert_eq!(emitters("map.npz"), found.len());
    desk.ok("convert map.npz map.mat");
    for (map, one) in [("map.npz", "a.npz"), ("map.mat", "b.npz")] {
        desk.ok(&format!("convert {map} {one} --bands {}", found[0]["occupied"][0][0]));
        assert_eq!(emitters(one), 1, "{map}");
    }
}

#[test]
fn a_log_of_serving_cells_says_that_the_others_are_weaker() {
    // Four cells at the corners of a square; the phone reports the strongest alone.
    let desk = Desk::new();
    let corners = [(0.0, 0.0), (1000.0, 0.0), (0.0, 1000.0), (1000.0, 1000.0)];
    let level = |x: f64, y: f64, (cx, cy): (f64, f64)| {
        -40.0 - 32.0 * (x - cx).hypot(y - cy).max(30.0).log10() + 4.0 * (x / 90.0 + cy).sin()
    };
    let mut log = String::from("x_m,y_m,technology,operator,cellid,rsrp\n");
    for i in 0..150u32 {
        let (x, y) = (f64::from(i * 613 % 1000), f64::from(i * 389 % 1000));
        let all = corners.map(|corner| level(x, y, corner));
        let best = (0..4).max_by(|a, b| all[*a].total_cmp(&all[*b])).unwrap();
        log += &format!("{x},{y},LTE,1,{},{:.1}\n", 100 + best, all[best]);
    }
    desk.write("log.csv", &log);
    let said = desk.ok("fit log.csv -o gaps.npz --method kriging").stderr;
    assert!(said.contains("--not-heard below-serving"), "{said}");
    desk.ok("fit log.csv -o served.npz --not-heard below-serving");
    let share = |model: &str| {
        let line = format!("coverage {model} --above -118 --cell-m 25 --json");
        desk.json(&line)["best_server"]["expected_share"].as_f64().unwrap()
    };
    let mut above = (0, 0);
    for cell in 0..1600u32 {
        let (x, y) = (f64::from(cell % 40) * 25.0, f64::from(cell / 40) * 25.0);
        let best = corners.map(|corner| level(x, y, corner)).into_iter().fold(-200.0, f64::max);
        above = (above.0 + u32::from(best > -118.0), above.1 + 1);
    }
    let truth = f64::from(above.0) / f64::from(above.1);
    let (gaps, served) = (share("gaps.npz"), share("served.npz"));
    assert!((served - truth).abs() < 0.06, "{served} {truth}");
    assert!((gaps - truth).abs() > 2.0 * (served - truth).abs(), "{gaps} {served} {truth}");
    // It survives a round trip through arrays.
    desk.ok("convert log.csv log.npz --not-heard below-serving");
    desk.ok("fit log.npz -o again.npz");
    assert!((share("again.npz") - served).abs() < 1e-6);
    // A line whose level is a code says nothing of any cell.
    let coded = log + "510,490,LTE,1,101,-340\n20,30,LTE,1,100,-340\n";
    desk.write("coded.csv", coded);
    desk.ok("fit coded.csv -o coded.npz --missing -340 --not-heard below-serving");
    assert!((share("coded.npz") - served).abs() < 0.01);
    desk.write("wide.csv", "x_m,y_m,dbm_1MHz\n0,0,-50\n5,1,-60\n2,7,-55\n");
    desk.refused("fit wide.csv -o w.npz --not-heard below-serving", &["below-serving", "line"]);
}
