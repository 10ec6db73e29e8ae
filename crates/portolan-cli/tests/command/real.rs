//! `portolan study real` on a small folder of surveys made up here.

use std::fmt::Write;

use serde_json::Value;

use crate::support::{Desk, PNG, table};

/// A level in dB around a transmitter, with some roughness.
fn level(x: f64, y: f64, (tx, ty): (f64, f64)) -> f64 {
    let distance = (x - tx).hypot(y - ty);
    -30.0 - 20.0 * (1.0 + distance).log10() + 2.0 * (0.7 * x + 1.3 * y).sin()
}

/// Four surveys in the files of the public ones.
fn with_surveys() -> Desk {
    let desk = Desk::new();
    for folder in ["data/mannheim", "data/powder", "data/uji"] {
        std::fs::create_dir_all(desk.path(folder)).unwrap();
    }
    let places: Vec<(f64, f64)> =
        (0..48).map(|i| (1.5 * f64::from(i % 8), 2.5 * f64::from(i / 8))).collect();
    let mut text = String::from("x_m,y_m,dbm_2412MHz,dbm_2437MHz\n");
    for (x, y) in &places {
        let (a, b) = (level(*x, *y, (3.0, 4.0)), level(*x, *y, (9.0, 9.0)));
        writeln!(text, "{x},{y},{a:.1},{b:.1}").unwrap();
    }
    desk.write("data/mannheim/mannheim_median_dbm.csv", text);
    let mut text = String::from("time,lat,lon,roof,hall\n");
    for (i, (x, y)) in places.iter().enumerate() {
        // Two scans of a place, some 40 m apart from the next; every seventh place misses a band.
        let (lat, lon) = (40.76 + 4e-4 * y, -111.84 + 5e-4 * x);
        let roof = level(*x, *y, (2.0, 2.0));
        let hall = level(*x, *y, (9.0, 11.0));
        let hall = if i % 7 == 3 { String::new() } else { format!("{hall:.2}") };
        writeln!(text, "2022-11-23 13:24:40,{lat},{lon},{roof:.2},{hall}").unwrap();
        writeln!(text, "2022-11-23 13:24:44,{lat},{lon},{:.2},{hall}", roof + 1.0).unwrap();
    }
    desk.write("data/powder/single_tx.csv", text);
    desk.write(
        "data/powder/receivers.csv",
        "name,lat,lon\nhall,40.7644,-111.8355\nroof,40.7608,-111.839\n",
    );
    for floor in ["building0_floor1", "building2_floor1"] {
        let mut text = String::from("x_m,y_m,phone,unix_time,WAP001,WAP002,WAP003\n");
        for (i, (x, y)) in places.iter().enumerate() {
            // The first is heard everywhere, the second where it is loud, the third hardly.
            let heard = |level: f64, yes: bool| if yes { level.round() } else { 100.0 };
            let (a, b) = (level(*x, *y, (3.0, 4.0)), level(*x, *y, (10.0, 10.0)));
            let cells = [heard(a, true), heard(b, b > -51.0), heard(a, i % 9 == 0)];
            let (x, y, [a, b, c]) = (x - 7500.0, y + 4.865e6, cells);
            writeln!(text, "{x},{y},{},1380872703,{a},{b},{c}", i % 3).unwrap();
        }
        desk.write(&format!("data/uji/{floor}.csv"), text);
    }
    desk
}

fn rows(told: &Value) -> &[Value] {
    told["rows"].as_array().unwrap()
}

#[test]
fn a_study_of_public_surveys() {
    let desk = with_surveys();
    let told = desk.json(
        "study real --data data --splits 1 --methods kriging,field --export out --plot a.png --json",
    );
    assert_eq!(rows(&told).len(), 16, "{told}");
    for row in rows(&told) {
        let methods = row["methods"].as_array().unwrap();
        // The receivers of POWDER are known.
        let expected = if row["survey"] == "powder" { 3 } else { 2 };
        assert_eq!(methods.len(), expected, "{row}");
        assert_eq!(methods[0]["ratio"], 1.0, "{row}");
        for method in methods {
            let rmse = method["rmse_db"].as_f64().unwrap();
            assert!(rmse > 0.0 && rmse < 20.0, "{row}");
            assert!((0.0..=1.0).contains(&method["coverage_90"].as_f64().unwrap()), "{row}");
        }
    }
    let of = |survey: &str| rows(&told).iter().find(|row| row["survey"] == survey).unwrap();
    assert_eq!(of("mannheim")["train_places"], 5.0);
    assert_eq!((&of("uji0")["bands"], &of("uji0")["places"]), (&2.into(), &48.into()));
    assert_eq!(of("powder")["methods"][2]["method"], "field+transmitters");
    let silent = told["not_heard"].as_array().unwrap();
    assert_eq!(silent.len(), 2);
    for row in silent {
        let used = &row["methods"][1];
        assert_eq!((&used["method"], &used["not_heard_used"]), (&"kriging".into(), &true.into()));
        for name in ["heard_rmse_db", "overshoot_db", "combined_db", "ratio_to_dropped"] {
            assert!(used[name].as_f64().unwrap() >= 0.0, "{name}: {row}");
        }
        assert!((0.5..=1.0).contains(&used["area_under_curve"].as_f64().unwrap()), "{row}");
    }
    assert_eq!(told["calibration"].as_array().unwrap().len(), 8);
    assert!(desk.read("a.png").starts_with(PNG));
    let splits = table(&desk, "out/splits.csv");
    assert_eq!(splits.lines, 16);
    let train = table(&desk, "out/powder-25-0/train.csv");
    assert_eq!(train.header, ["x_m", "y_m", "db_roof", "db_hall"]);
    assert_eq!((train.lines, table(&desk, "out/powder-25-0/test.csv").lines), (12, 36));
    // Tables have the same figures, and the seed decides.
    let said = desk.ok("study real --data data --splits 1 --methods kriging");
    let rmse = of("mannheim")["methods"][0]["rmse_db"].as_f64().unwrap();
    let line = said.stdout.lines().find(|line| line.starts_with("Mannheim")).unwrap();
    assert!(line.ends_with(&format!("{rmse:.2}")), "{line} {rmse}");
    assert!(said.stdout.contains("not heard") && said.stdout.contains("mean ratio"));
    let other = desk.json("study real --data data --splits 1 --methods kriging --seed 9 --json");
    assert_ne!(rows(&other)[0]["methods"][0]["rmse_db"], rmse);
}

#[test]
fn what_a_study_of_public_surveys_refuses() {
    let desk = with_surveys();
    desk.refused("study real --data nowhere", &["nowhere", "mannheim_median_dbm.csv", "opened"]);
    desk.refused("study --data data", &["--data", "study real"]);
    desk.refused("study data/mannheim/mannheim_median_dbm.csv --plot a.png", &["--plot"]);
    desk.refused("study real --data data --sensors 20", &["--sensors"]);
    desk.refused("study real --data data --plot a.txt", &["a.txt", ".png"]);
    desk.refused("study real --data data --methods oracle", &["oracle", "true map"]);
    let mut command = desk.command("study real");
    let said = command.env_remove("PORTOLAN_DATA").output().unwrap();
    let line = String::from_utf8(said.stderr).unwrap();
    assert!(said.status.code() == Some(2) && line.contains("--data"), "{line}");
    desk.write("data/powder/receivers.csv", "name,lat,lon\nhall,40.7644,-111.8355\n");
    desk.refused("study real --data data", &["receivers.csv", "roof"]);
    desk.write("data/mannheim/mannheim_median_dbm.csv", "x_m,y_m,dbm_2412MHz\n0,0,loud\n");
    desk.refused("study real --data data", &["line 2", "dbm_2412MHz", "'loud'"]);
    std::fs::remove_file(desk.path("data/mannheim/mannheim_median_dbm.csv")).unwrap();
    desk.refused("study real --data data", &["mannheim_median_dbm.csv", "cannot be opened"]);
}
