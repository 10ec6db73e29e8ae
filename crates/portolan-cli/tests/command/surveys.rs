//! Tables as people keep them: long and wide, metres and cells, gaps, several readings of a cell.

use crate::npz::npz;
use crate::support::Desk;

#[test]
fn a_wide_table_in_metres_becomes_a_map() {
    let desk = Desk::new();
    let mut table = String::from("x_m,y_m,dbm_2412MHz,dbm_2437MHz\n");
    for i in 0..12 {
        let (x, y) = (2 * (i % 4), 3 * (i / 4));
        let second = if i == 5 { String::new() } else { format!("{}", -60 - y) };
        table += &format!("{x},{y},{},{second}\n", -50 - x);
    }
    desk.write("survey.csv", table);
    let said = desk.ok("estimate survey.csv -o map.npz --grid 8x8 --method kriging");
    assert!(said.stderr.contains("survey.csv: the cell size is not given"), "{}", said.stderr);
    let summary = desk.json("inspect map.npz --json");
    assert_eq!((&summary["rows"], &summary["cols"]), (&8.into(), &8.into()));
    assert_eq!(summary["freq_hz"][0], 2.412e9);
    assert_eq!(desk.json("inspect survey.csv --json --grid 8x8")["gaps"], 1);
}

#[test]
fn a_long_table_is_the_same_as_a_wide_one() {
    let desk = Desk::new();
    desk.write("wide.csv", "x_m,y_m,dbm_100MHz,dbm_200MHz\n0,0,-40,-50\n3,4,-45,\n5,1,-47,-58\n");
    desk.write(
        "long.csv",
        "x_m,y_m,freq_hz,power_dbm\n0,0,1e8,-40\n0,0,2e8,-50\n3,4,1e8,-45\n5,1,1e8,-47\n5,1,2e8,-58\n",
    );
    for name in ["wide", "long"] {
        desk.ok(&format!("convert {name}.csv {name}.npz --grid 6x6 --cell-m 1"));
    }
    // Gaps too are the same bytes: a NaN out of 0 / 0 would have another sign.
    assert_eq!(desk.read("wide.npz"), desk.read("long.npz"));
}

#[test]
fn a_unit_that_no_name_tells_comes_from_the_command_line() {
    let desk = Desk::new();
    desk.write("bare.csv", "row,col,2412MHz\n0,0,-40\n7,3,-52\n4,4,-47\n");
    desk.write("named.csv", "row,col,dbm_2412MHz\n0,0,-40\n7,3,-52\n4,4,-47\n");
    desk.refused("inspect bare.csv", &["bare.csv: line 1, column 3", "--unit dbm"]);
    desk.ok("convert bare.csv bare.npz --unit dbm --grid 8x8");
    desk.ok("convert named.csv named.npz --grid 8x8");
    assert_eq!(desk.read("bare.npz"), desk.read("named.npz"));
    desk.refused(
        "convert named.csv x.npz --unit linear --grid 8x8",
        &["named.csv", "another unit"],
    );
}

#[test]
fn methods_without_noise_average_cells_given_twice_and_say_so() {
    let desk = Desk::new();
    desk.write("twice.csv", "row,col,mw_1GHz\n0,0,1\n2,2,4\n2,2,8\n5,5,2\n");
    // In dB the mean of 4 and 8 is their geometric one.
    let mean = ((4f64.ln() + 8f64.ln()) / 2.0).exp();
    desk.write("once.csv", format!("row,col,mw_1GHz\n0,0,1\n2,2,{mean}\n5,5,2\n"));
    let twice = desk.ok("estimate twice.csv -o twice.npz --method idw --grid 8x8");
    assert!(
        twice.stderr.contains("1 reading at a place read before was averaged: idw has no model"),
        "{}",
        twice.stderr
    );
    let once = desk.ok("estimate once.csv -o once.npz --method idw --grid 8x8");
    assert!(!once.stderr.contains("averaged"), "{}", once.stderr);
    assert_eq!(desk.read("twice.npz"), desk.read("once.npz"));
    // Every line stays a row.
    let rows = desk.ok("inspect twice.csv --grid 8x8");
    assert!(rows.stdout.contains("4 rows at 3 places"), "{}", rows.stdout);
}

#[test]
fn every_command_takes_places_that_were_visited_twice() {
    let desk = Desk::new();
    let mut text = String::from("x_m,y_m,dbm_1GHz,dbm_2GHz\n");
    for i in 0..60 {
        let (place, wiggle) = (i % 40, f64::from(i * 37 % 11) / 3.0);
        let (x, y) = (place % 7, place / 7);
        text += &format!("{x},{y},{:.2},{:.2}\n", -50.0 - f64::from(x) - wiggle, -60.0 + wiggle);
    }
    desk.write("walk.csv", text);
    desk.ok("fit walk.csv -o model.npz --method kriging");
    desk.ok("advise walk.csv --count 3");
    desk.ok("advise model.npz --count 3");
    desk.ok("coverage model.npz --above -55");
    desk.ok("predict model.npz -o near.npz --mask distance=2 --mask hull");
    desk.ok("estimate walk.csv -o map.npz --method idw --mask distance=2");
    desk.ok("convert walk.csv walk.npz");
    desk.ok("convert walk.npz walk.geojson");
    desk.ok("convert walk.npz again.csv");
    assert_eq!(desk.json("inspect again.csv --json")["sensors"], 60);
    assert_eq!(desk.json("inspect walk.geojson --json")["places"], 40);
    desk.ok("plot map.npz -o map.png --readings walk.npz");
    for split in ["random", "blocks"] {
        desk.ok(&format!("validate walk.npz --split {split} --methods idw,thin_plate,kriging"));
    }
}

#[test]
fn a_survey_may_start_away_from_zero() {
    let desk = Desk::new();
    desk.write("far.csv", "x_m,y_m,dbm_1GHz\n-10,5,-40\n-4,9,-50\n-6,7,-44\n");
    desk.refused("estimate far.csv -o map.npz --grid 4x4", &["far.csv: line 2", "x -10, y 5"]);
    desk.ok("estimate far.csv -o map.npz --grid 4x4 --cell-m 2 --origin -10,5");
    assert_eq!(desk.json("inspect map.npz --json")["cell_m"], 2.0);
}

#[test]
fn the_unit_of_another_s_file_is_not_put_on_our_own() {
    let desk = Desk::with_readings();
    desk.ok("estimate readings.npz -o map.npz --method kriging");
    let alone = desk.json("score map.npz truth.npz --json");
    let mut power = String::from("row,col,x_m,y_m,100MHz,101MHz,102MHz,103MHz,104MHz\n");
    desk.ok("convert truth.npz truth.csv --output-unit db");
    let table = String::from_utf8(desk.read("truth.csv")).unwrap();
    table.lines().skip(1).for_each(|line| power += &format!("{line}\n"));
    // The same truth in dBm, in a table whose names do not tell the unit.
    desk.write("bare.csv", power);
    let beside = desk.json("score map.npz bare.csv --unit dbm --offset 1e-6 --json");
    let close = |a: &serde_json::Value, b: &serde_json::Value| {
        (a["rmse_db"].as_f64().unwrap() - b["rmse_db"].as_f64().unwrap()).abs() < 1e-6
    };
    assert!(close(&alone, &beside), "{alone} {beside}");
    let compare = "compare readings.npz bare.csv --unit dbm --offset 1e-6 --methods kriging --json";
    let row = &desk.json(compare)[0];
    assert!(close(&alone, row), "{alone} {row}");
    // Named by --var, an array of one file is not looked for in ours.
    let values: Vec<f64> = (0..16 * 14 * 5).map(|i| -40.0 - f64::from(i % 7)).collect();
    desk.write("other.npz", npz(&[("powers", &[16, 14, 5], &values)]));
    desk.ok("score map.npz other.npz --var powers --unit dbm");
    desk.ok(
        "plot map.npz -o map.png --truth other.npz --readings readings.npz --var powers --unit dbm",
    );
}

#[test]
fn inspect_shows_what_other_commands_refuse() {
    let desk = Desk::new();
    let mut log = String::from("x_m,y_m,bssid,rssi,floor\n");
    for i in 0..80 {
        let level = if i % 8 == 0 { 100 } else { -50 - i % 31 };
        log += &format!("{},{},02:00:00:00:00:01,{level},{}\n", i % 9, i / 9, 1 + i % 2);
    }
    desk.write("log.csv", log);
    let said = desk.ok("inspect log.csv");
    let said = said.stdout + &said.stderr;
    assert!(said.contains("doubt (code") && said.contains("--missing 100"), "{said}");
    assert!(said.contains("--where \"floor = 1\""), "{said}");
    desk.refused("fit log.csv -o m.npz --method nearest", &["log.csv", "floor = 1", "--accept"]);
    let mut second = desk.command("fit log.csv -o m.npz --method nearest --not-heard 100 --where");
    let output = second.arg("floor = 2").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(desk.ok("fit log.csv -o a.npz --method nearest --accept").stderr.contains("doubt ("));
}

#[test]
fn inspect_tells_columns_doubts_and_the_command() {
    let desk = Desk::new();
    let mut log = String::from("lat,lon,cellid,rsrp,quality\n");
    for i in 0..60 {
        let code = if i % 15 == 3 { -340.0 } else { -70.0 - f64::from(i % 23) };
        let (lat, lon) = (52.5 + f64::from(i % 9) * 1e-4, 13.4 + f64::from(i % 7) * 1e-4);
        log += &format!("{lat:.5},{lon:.5},c{},{code},{}\n", i % 2, i % 40);
    }
    desk.write("log.csv", log);
    let told = desk.json("inspect log.csv --json --unit dbm");
    let role = |name: &str| {
        let columns = told["columns"].as_array().unwrap();
        let own = columns.iter().find(|column| column["name"] == name).unwrap();
        (own["role"].as_str().unwrap().to_string(), own["values"].as_array().unwrap().len())
    };
    assert_eq!(role("lat"), ("latitude".into(), 3));
    assert_eq!(role("cellid"), ("band (name)".into(), 2));
    assert_eq!(role("rsrp"), ("level in dbm".into(), 3));
    assert_eq!(role("quality").0, "not used");
    let doubt = &told["doubts"][0];
    assert_eq!((&doubt["kind"], &doubt["count"]), (&"code".into(), &4.into()), "{told}");
    assert_eq!(doubt["option"], "--missing");
    let command = told["command"].as_str().unwrap();
    assert_eq!(command, "portolan estimate log.csv --unit dbm -o map.npz");
    // The command stops with the doubt's one line; the option in it settles it.
    desk.refused("estimate log.csv --unit dbm -o map.npz", &["codes", "--missing -340"]);
    desk.ok("estimate log.csv --unit dbm --missing -340 -o map.npz --method kriging");
    let said = desk.ok("inspect log.csv --unit dbm").stdout;
    assert!(said.contains("column     rsrp: level in dbm (-7"), "{said}");
}
