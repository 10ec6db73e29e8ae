//! Methods judged on one's own sensors, and over many maps.

use serde_json::Value;

use crate::support::{Desk, PNG};

fn number(object: &Value, name: &str) -> f64 {
    object[name].as_f64().unwrap_or_else(|| panic!("{name} in {object}"))
}

#[test]
fn validate_ranks_methods_on_held_out_sensors() {
    let desk = Desk::with_readings();
    let said = desk.ok("validate readings.npz --methods nearest,kriging --plot errors.png");
    let rows = said.stdout.lines().skip(2).take_while(|line| !line.is_empty());
    let names: Vec<&str> = rows.filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["nearest", "kriging"]);
    assert!(said.stdout.contains("no place was read twice"), "{}", said.stdout);
    for column in ["rmse dB", "mean |e| dB", "median |e| dB", "90 % covers", "fit s", "predict s"] {
        assert!(said.stdout.lines().next().unwrap().contains(column), "{}", said.stdout);
    }
    assert!(desk.read("errors.png").starts_with(PNG));
    for split in ["random", "blocks"] {
        let args =
            format!("validate readings.npz --methods nearest,kriging --split {split} --json");
        let told = desk.json(&args);
        assert_eq!((&told["split"], &told["sensors"]), (&split.into(), &30.into()));
        let rows = told["methods"].as_array().unwrap();
        assert_eq!(rows.len(), 2);
        for row in rows {
            let (rmse, mae) = (number(row, "rmse_db"), number(row, "mae_db"));
            assert!(rmse >= mae && mae > 0.0 && number(row, "median_abs_db") > 0.0, "{row}");
            assert!(number(row, "seconds") >= 0.0 && number(row, "predict_seconds") >= 0.0);
            assert_eq!(number(row, "entries"), 150.0);
        }
        // Without a spread there is nothing to cover.
        assert!(rows[0]["coverage_90"].is_null(), "{}", rows[0]);
        assert!((0.5..=1.0).contains(&number(&rows[1], "coverage_90")), "{}", rows[1]);
        assert!(number(&rows[1], "rmse_db") < number(&rows[0], "rmse_db"), "{told}");
    }
}

#[test]
fn the_same_seed_validates_the_same_and_the_readings_stay() {
    let desk = Desk::with_readings();
    let figures = |threads: usize| {
        let args = "validate readings.npz --methods kriging,field --seed 3 --json --threads";
        let told = desk.json(&format!("{args} {threads}"));
        let rows = told["methods"].as_array().unwrap().clone();
        rows.iter().map(|row| (number(row, "rmse_db"), number(row, "mae_db"))).collect::<Vec<_>>()
    };
    assert_eq!(figures(1), figures(2));
    desk.refused("validate readings.npz --methods magic", &["'magic'"]);
    desk.refused("validate readings.npz --folds 1", &["--folds"]);
    desk.refused("validate readings.npz --plot x.jpg", &["x.jpg", ".png"]);
    desk.refused("validate none.npz", &["none.npz"]);
    desk.refused("validate truth.npz", &["truth.npz: holds a map"]);
}

#[test]
fn validate_goes_on_where_one_method_fails() {
    let desk = Desk::with_readings();
    let said = desk.ok("validate readings.npz --methods oracle,idw");
    assert!(said.stderr.contains("note: oracle failed"), "{}", said.stderr);
    let said = desk.run("validate readings.npz --methods oracle");
    assert_eq!(said.code, Some(1), "{}", said.stderr);
}

#[test]
fn compare_goes_on_where_one_method_fails() {
    let desk = Desk::with_readings();
    // The truth holds no factors, without which there is no oracle.
    desk.ok("convert truth.npz dense.csv");
    desk.ok("convert dense.csv dense.npz");
    let said = desk.ok("compare readings.npz dense.npz --methods oracle,idw");
    assert!(said.stderr.contains("note: oracle failed"), "{}", said.stderr);
    let rows: Vec<&str> = said.stdout.lines().skip(2).collect();
    assert!(rows[0].starts_with("oracle") && rows[0].contains(" -"), "{}", said.stdout);
    assert!(rows[1].starts_with("idw") && rows[1].contains('.'), "{}", said.stdout);
    let told = desk.json("compare readings.npz dense.npz --methods oracle,idw --json");
    assert!(told[0]["failed"].is_string() && number(&told[1], "rmse_db") > 0.0, "{told}");
    let said = desk.run("compare readings.npz dense.npz --methods oracle");
    assert_eq!(said.code, Some(1), "{}", said.stderr);
}

#[test]
fn a_study_of_two_small_maps() {
    let desk = Desk::new();
    let args = "study --maps 2 --grid 16x14 --bands 4 --emitters 2 --fraction 0.15";
    let said = desk.ok(&format!("{args} --methods thin_plate,kriging,oracle"));
    for name in ["method", "thin_plate", "kriging", "oracle"] {
        assert!(said.stdout.lines().any(|line| line.starts_with(name)), "{}", said.stdout);
    }
    let told = desk.json(&format!("{args} --methods kriging,field --json"));
    let rows = told[0]["methods"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for row in rows {
        assert!(number(row, "rmse_db") > 0.0 && number(row, "rmse_db_se") >= 0.0, "{row}");
        assert!((0.0..=1.0).contains(&number(row, "ssim")), "{row}");
    }
    let many = desk.json(&format!(
        "{} --sensors 20,40 --methods idw --json",
        args.replace("--fraction 0.15", "")
    ));
    assert_eq!((&many[0]["sensors"], &many[1]["sensors"]), (&20.into(), &40.into()));
    desk.refused("study --maps 0", &["--maps 0"]);
    desk.refused("study --methods magic", &["'magic'"]);
    desk.refused("study none.csv", &["none.csv"]);
}

#[test]
fn a_study_of_a_survey_holds_sensors_out() {
    let desk = Desk::new();
    let mut table = String::from("x_m,y_m,dbm_2412MHz\n");
    for i in 0..40 {
        let (x, y) = (1.3 * f64::from(i % 8), 2.1 * f64::from(i / 8));
        table += &format!("{x},{y},{:.2}\n", -40.0 - 2.0 * x - y);
    }
    desk.write("survey.csv", table);
    let told =
        desk.json("study survey.csv --splits 3 --methods nearest,kriging --sensors 20 --json");
    let text = told.to_string();
    assert!(text.contains("\"kriging\"") && text.contains("rmse_db"), "{text}");
}

/// Places read three times: readings vary by 3 dB between places, and by `noise` dB between visits.
fn visited(noise: f64) -> String {
    let mut table = String::from("x_m,y_m,dbm_hall\n");
    // A sequence without a pattern (Knuth's multiplicative hash).
    let chance = |i: u64| (i.wrapping_mul(2654435761) % 1_000_003) as f64 / 1_000_003.0 - 0.5;
    for place in 0..60u64 {
        let (x, y) = (100.0 * chance(7 * place + 1), 100.0 * chance(7 * place + 2));
        let level = -70.0 + 8.0 * (x / 25.0).sin() + 6.0 * chance(7 * place + 3);
        for visit in 0..3 {
            let off = 3.5 * noise * chance(1000 + 3 * place + visit);
            table += &format!("{x:.3},{y:.3},{:.3}\n", level + off);
        }
    }
    table
}

#[test]
fn validate_tells_coverage_of_repeated_readings_and_by_distance() {
    let desk = Desk::new();
    desk.write("survey.csv", visited(2.0));
    let told = desk.json("validate survey.csv --methods kriging --json");
    let row = &told["methods"][0];
    assert_eq!(number(&row["repeated"], "entries"), 60.0);
    assert!((0.75..=1.0).contains(&number(&row["repeated"], "coverage_90")), "{row}");
    let parts = row["coverage_by_distance"].as_array().unwrap();
    let entries: f64 = parts.iter().map(|part| number(part, "entries")).sum();
    assert_eq!((parts.len(), entries), (4, number(row, "entries")));
    assert!(parts.windows(2).all(|w| number(&w[0], "to_m") <= number(&w[1], "from_m")), "{row}");
    // Noise that is set far too low holds at new places, and not at known ones.
    let said = desk.ok("validate survey.csv --methods kriging:nugget=0.01");
    assert!(said.stdout.contains("90 % covers") && said.stdout.contains("repeated"));
    assert!(said.stderr.contains("repeated readings at known places"), "{}", said.stderr);
    assert!(said.stderr.contains("too low"), "{}", said.stderr);
}
