//! Fit once, predict anywhere: models, predictions at places, maps of any grid.

use crate::npz::npz;
use crate::support::{Desk, METHODS, table};

/// Decibels between two powers.
fn apart_db(a: f64, b: f64) -> f64 {
    (10.0 * (a / b).log10()).abs()
}

/// A survey in dBm at places that lie on no grid.
fn survey() -> String {
    let mut text = String::from("x_m,y_m,dbm_2412MHz,dbm_2437MHz\n");
    for i in 0..24 {
        let (x, y) = (3.0 + 4.3 * f64::from(i % 6), -20.0 + 5.7 * f64::from(i / 6));
        let loss = 20.0 * (x - 9.0f64).hypot(y + 8.0).max(1.0).log10();
        text += &format!("{x},{y},{:.3},{:.3}\n", -40.0 - loss, -47.5 - 0.8 * loss);
    }
    text
}

#[test]
fn a_prediction_at_the_centres_of_cells_is_the_map() {
    let desk = Desk::with_readings();
    for method in METHODS.into_iter().chain(["field", "btd"]) {
        desk.ok(&format!("estimate readings.npz -o {method}.npz --method {method}"));
        desk.ok(&format!("convert {method}.npz {method}.csv --output-unit relative"));
        desk.ok(&format!("fit readings.npz -o {method}-model.npz --method {method}"));
        desk.ok(&format!("predict {method}-model.npz {method}.csv -o {method}-at.csv"));
        let (map, at) =
            (table(&desk, &format!("{method}.csv")), table(&desk, &format!("{method}-at.csv")));
        assert_eq!((map.lines, at.lines), (16 * 14, 16 * 14), "{method}");
        for band in 0..5 {
            let drawn = map.numbers(&format!("relative_band{band}"));
            let asked = at.numbers(&format!("power_band{band}"));
            let worst = drawn.iter().zip(&asked).map(|(a, b)| apart_db(*a, *b)).fold(0.0, f64::max);
            assert!(worst < 1e-9, "{method}, band {band}: {worst} dB");
        }
        // The model draws the same map as `estimate`.
        desk.ok(&format!("predict {method}-model.npz -o {method}-again.npz"));
        let same = desk.read(&format!("{method}-again.npz")) == desk.read(&format!("{method}.npz"));
        assert!(same, "{method}: another map");
    }
}

#[test]
fn predictions_keep_the_columns_of_the_places() {
    let desk = Desk::new();
    desk.write("survey.csv", survey());
    desk.ok("fit survey.csv -o model.npz --method kriging");
    desk.write("places.csv", "name,x_m,y_m,floor\n\"hall, east\",5,-10.5,2\nlab,9.25,-4,\n");
    desk.ok("predict model.npz places.csv -o predictions.csv");
    let found = table(&desk, "predictions.csv");
    let expected = [
        "name",
        "x_m",
        "y_m",
        "floor",
        "dbm_2412MHz",
        "spread_db_2412MHz",
        "reading_spread_db_2412MHz",
        "dbm_2437MHz",
        "spread_db_2437MHz",
        "reading_spread_db_2437MHz",
    ];
    assert_eq!(found.header, expected);
    assert_eq!(found.column("name"), ["hall, east", "lab"]);
    assert_eq!(found.column("floor"), ["2", ""]);
    assert!(found.numbers("dbm_2412MHz").iter().all(|dbm| (-80.0..-40.0).contains(dbm)));
    let (spread, reading) =
        (found.numbers("spread_db_2437MHz"), found.numbers("reading_spread_db_2437MHz"));
    assert!(spread.iter().zip(&reading).all(|(field, all)| *field > 0.0 && all >= field));
}

#[test]
fn some_bands_are_asked_for_by_label_or_number() {
    let desk = Desk::new();
    desk.write("survey.csv", survey());
    desk.write("places.csv", "x_m,y_m\n5,-10\n7,-3\n");
    desk.ok("fit survey.csv -o model.npz --method kriging");
    desk.ok("predict model.npz places.csv -o all.csv");
    desk.ok("predict model.npz places.csv -o one.csv --bands 2437MHz");
    desk.ok("predict model.npz places.csv -o swapped.csv --bands 1,0");
    let [all, one, swapped] = ["all.csv", "one.csv", "swapped.csv"].map(|name| table(&desk, name));
    assert_eq!(one.header.len(), 5);
    assert_eq!(swapped.header[2], "dbm_2437MHz");
    for found in [&one, &swapped] {
        let [some, all] = [found, &all].map(|table| table.numbers("dbm_2437MHz"));
        assert_eq!(some.len(), all.len());
        assert!(some.iter().zip(&all).all(|(some, all)| (some - all).abs() < 1e-9));
    }
    desk.ok("predict model.npz -o map.npz --bands 2437MHz");
    let summary = desk.json("inspect map.npz --json");
    assert_eq!((&summary["bands"], &summary["freq_hz"][0]), (&1.into(), &2.437e9.into()));
    let wrong = "predict model.npz places.csv -o x.csv --bands";
    desk.refused(&format!("{wrong} 2"), &["band 2", "2412MHz, 2437MHz"]);
    desk.refused(&format!("{wrong} 0,2412MHz"), &["--bands 2412MHz", "twice"]);
}

#[test]
fn a_region_is_drawn_in_cells_of_any_size() {
    let desk = Desk::new();
    desk.write("survey.csv", survey());
    desk.ok("fit survey.csv -o model.npz --method kriging");
    desk.ok("predict model.npz -o fine.npz --region 5,-12,9,-6 --cell-m 0.5");
    let fine = desk.json("inspect fine.npz --json");
    assert_eq!(
        (&fine["rows"], &fine["cols"], &fine["cell_m"]),
        (&9.into(), &13.into(), &0.5.into())
    );
    assert_eq!(fine["origin_m"], serde_json::json!([5.0, -12.0]));
    desk.ok("predict model.npz -o few.npz --region 5,-12,9,-6 --grid 5x7");
    assert_eq!(desk.json("inspect few.npz --json")["cell_m"], 1.0);
    // The same power wherever two maps share a place.
    desk.ok("convert fine.npz fine.csv");
    desk.ok("convert few.npz few.csv");
    let (fine, few) = (table(&desk, "fine.csv"), table(&desk, "few.csv"));
    let (dbm, coarse) = (fine.numbers("dbm_2412MHz"), few.numbers("dbm_2412MHz"));
    for row in 0..5 {
        for col in 0..7 {
            assert!((dbm[2 * row * 13 + 2 * col] - coarse[row * 7 + col]).abs() < 1e-9);
        }
    }
    for (args, words) in [
        ("--region 9,-12,5,-6", "--region"),
        ("--region 5,-12,nan,-6", "--region"),
        ("--region 5,-12,9", "X0,Y0,X1,Y1"),
        ("--region 5,-12,9,-6 --origin 0,0", "--origin"),
        ("--region 5,-12,9,-6 --cell-m 0", "0 m"),
        ("--region 5,-12,9,-6 --grid 5x7 --cell-m 1", "--cell-m"),
    ] {
        desk.refused(&format!("predict model.npz -o x.npz {args}"), &[words]);
    }
}

#[test]
fn a_fit_says_what_it_found() {
    let desk = Desk::with_readings();
    let report = desk.json("fit readings.npz -o auto.npz --json");
    assert_eq!(report["method"], "auto");
    let chosen = report["chosen"].as_str().unwrap();
    let candidates = report["candidates"].as_array().unwrap();
    assert!(candidates.iter().any(|c| c["method"] == chosen), "{report}");
    assert!(candidates.iter().any(|c| c["rmse_db"].as_f64().is_some_and(|e| e > 0.0)), "{report}");
    let summary = desk.json("inspect auto.npz --json");
    assert_eq!((&summary["kind"], &summary["sensors"]), (&"model".into(), &30.into()));
    let text = desk.ok("inspect auto.npz").stdout;
    assert!(text.contains("a fitted model") && text.contains(chosen), "{text}");
    desk.refused("fit readings.npz -o model.csv", &["model.csv", ".npz"]);
    desk.refused("fit readings.npz -o auto.npz", &["auto.npz", "--force"]);
}

#[test]
fn a_model_is_no_map_and_no_readings() {
    let desk = Desk::with_readings();
    desk.ok("fit readings.npz -o model.npz --method idw");
    desk.refused("estimate model.npz -o x.npz", &["model.npz: holds a model"]);
    desk.refused("plot model.npz -o x.png", &["model.npz: holds a model", "predict"]);
    desk.refused("convert model.npz x.csv", &["model.npz: holds a model", "predict"]);
    for other in ["truth.npz", "readings.npz"] {
        desk.refused(&format!("predict {other} -o x.npz"), &[other, "not a model", "fit"]);
    }
}

#[test]
fn a_damaged_model_is_refused_in_one_line() {
    let desk = Desk::with_readings();
    desk.write("places.csv", "x_m,y_m\n1,1\n");
    for method in ["kriging", "field", "idw"] {
        desk.ok(&format!("fit readings.npz -o model.npz --method {method} --force"));
        let bytes = desk.read("model.npz");
        for part in 0..12 {
            desk.write("cut.npz", &bytes[..bytes.len() * part / 12]);
            desk.refused("predict cut.npz places.csv -o x.csv", &["cut.npz"]);
            desk.refused("predict cut.npz -o x.npz", &["cut.npz"]);
        }
    }
    desk.write("newer.npz", npz(&[("portolan_model", &[1], &[99.0])]));
    desk.refused("predict newer.npz -o x.npz", &["newer.npz"]);
}

#[test]
fn places_that_are_none_are_refused() {
    let desk = Desk::with_readings();
    desk.ok("fit readings.npz -o model.npz --method kriging");
    for (text, words) in [
        ("x_m,y_m\n1,2\nnan,3\n", "line 3, column 1"),
        ("x_m,y_m\n1,inf\n", "line 2, column 2"),
        ("x_m,y_m\n1,\n", "line 2, column 2"),
        ("x_m,y_m\n1,two\n", "line 2, column 2: 'two'"),
        ("x_m,y_m\n1,2,3\n", "line 2: 3 fields"),
        ("x_m,z_m\n1,2\n", "x_m,y_m, lat,lon"),
        ("x_m,y_m\n", "no places"),
    ] {
        desk.write("places.csv", text);
        let args = "predict model.npz places.csv -o x.csv";
        desk.refused(args, &["places.csv", words]);
    }
    desk.write("places.csv", "x_m,y_m\n1,2\n");
    desk.refused("predict model.npz places.csv -o x.npz", &["x.npz", ".csv"]);
    desk.refused("predict model.npz places.csv -o places.csv --force", &["places.csv", "input"]);
    desk.refused("predict model.npz -o model.npz --force", &["model.npz", "input"]);
    desk.refused("predict model.npz none.csv -o x.csv", &["none.csv"]);
}
