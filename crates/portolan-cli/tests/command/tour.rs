//! From a simulated truth to a scored and drawn estimate, as a user walks it.

use serde_json::Value;

use crate::support::{Desk, METHODS, PNG};

fn number(object: &Value, name: &str) -> f64 {
    object[name].as_f64().unwrap_or_else(|| panic!("{name} in {object}"))
}

#[test]
fn every_method_makes_a_map_that_scores_better_than_a_flat_one() {
    let desk = Desk::with_readings();
    // The flat map's error is the spread of the truth itself in dB; a method must halve it.
    for method in METHODS {
        let report =
            desk.json(&format!("estimate readings.npz -o {method}.npz --method {method} --json"));
        assert_eq!(report["method"], method);
        assert!(number(&report, "seconds") >= 0.0);
        assert!(report["iterations"].is_u64(), "{report}");
        assert!(report["loss"].is_null() || report["loss"].is_number(), "{report}");
        for emitter in report["emitters"].as_array().unwrap() {
            assert!(number(emitter, "row").is_finite() && number(emitter, "col").is_finite());
        }
        let score = desk.json(&format!("score {method}.npz truth.npz --json"));
        assert!(number(&score, "rmse_db") < 3.5, "{method}: {score}");
        assert!(number(&score, "ssim") > 0.3 && number(&score, "ssim") <= 1.0, "{method}: {score}");
        assert!(number(&score, "ssim_strict") <= 1.0, "{method}: {score}");
        assert!(number(&score, "lnre") < 0.5 && number(&score, "nmse") < 1.0, "{method}: {score}");
    }
}

#[test]
fn the_truth_scored_against_itself_is_perfect() {
    let desk = Desk::with_readings();
    let score = desk.json("score truth.npz truth.npz --json");
    assert!((number(&score, "ssim") - 1.0).abs() < 1e-9, "{score}");
    for error in ["rmse_db", "lnre", "nmse"] {
        assert!(number(&score, error).abs() < 1e-12, "{score}");
    }
    let said = desk.ok("score truth.npz truth.npz");
    assert!(said.stdout.contains("SSIM           1.0000") && said.stderr.is_empty());
}

#[test]
fn the_default_method_is_auto_and_says_what_it_chose() {
    let desk = Desk::with_readings();
    let said = desk.ok("estimate readings.npz -o map.npz");
    assert!(!said.stdout.contains("chose"), "messages go to standard error: {}", said.stdout);
    assert!(said.stderr.contains("note: chose"), "{}", said.stderr);
    assert!(said.stderr.contains("map.npz: auto from 30 sensors"), "{}", said.stderr);
}

#[test]
fn options_of_kriging_are_taken_and_change_the_map() {
    let desk = Desk::with_readings();
    let mut seen = Vec::new();
    for (index, settings) in [
        "--set covariance=exponential",
        "--set covariance=gaussian --set nugget=0.1",
        "--set covariance=spherical",
        "--set covariance=matern32",
        "--set covariance=matern52",
        "--set decorrelation=7.5 --set sill=36 --set nugget=0.01",
        "--set trend=linear",
        "--set trend=quadratic",
        "--set neighbours=10",
        "--set domain=linear",
    ]
    .into_iter()
    .enumerate()
    {
        let output = format!("{index}.npz");
        desk.ok(&format!("estimate readings.npz -o {output} --method kriging {settings}"));
        let bytes = desk.read(&output);
        assert!(!seen.contains(&bytes), "{settings} made no difference");
        seen.push(bytes);
    }
    let args = "estimate readings.npz -o f.npz --method kriging --json \
                --set decorrelation=7.5 --set sill=36 --set nugget=0.01";
    let fitted = desk.json(args)["fitted"].clone();
    assert_eq!((number(&fitted, "decorrelation_m"), number(&fitted, "sill")), (7.5, 36.0));
}

#[test]
fn interpolators_work_in_linear_power_too() {
    let desk = Desk::with_readings();
    for method in ["nearest", "idw", "linear", "thin_plate"] {
        for domain in ["log", "linear"] {
            let output = format!("{method}-{domain}.npz");
            desk.ok(&format!(
                "estimate readings.npz -o {output} --method {method} --set domain={domain}"
            ));
            assert!(number(&desk.json(&format!("score {output} truth.npz --json")), "nmse") < 2.0);
        }
        // The nearest reading is the same in any scale.
        let same =
            desk.read(&format!("{method}-log.npz")) == desk.read(&format!("{method}-linear.npz"));
        assert!(method == "nearest" || !same, "{method}");
    }
}

#[test]
fn sensors_may_stand_on_a_lattice_a_path_or_given_cells() {
    let desk = Desk::with_readings();
    desk.write("places.txt", "row,col\n1,2\n3,4\n5,6\n7,1\n");
    for (layout, sensors) in [
        (vec!["--lattice", "4"], 16),
        (vec!["--path", "0,0 0,9 5,9", "--every", "2"], 8),
        (vec!["--cells", "0,0 3,5;15,13"], 3),
        (vec!["--cells", "places.txt"], 4),
        (vec!["--fraction", "1"], 16 * 14),
        (vec!["--count", "2"], 2),
    ] {
        let mut command = desk.command("sense truth.npz -o laid.npz --force");
        assert!(command.args(&layout).output().unwrap().status.success(), "{layout:?}");
        let summary = desk.json("inspect laid.npz --json");
        assert_eq!(summary["sensors"], sensors, "{layout:?}");
        assert_eq!(summary["kind"], "readings");
        for method in METHODS {
            desk.ok(&format!("estimate laid.npz -o laid-map.npz --method {method} --force"));
        }
    }
}

#[test]
fn noise_gaps_and_every_number_of_bits_are_accepted_by_every_method() {
    let desk = Desk::with_readings();
    desk.ok("sense truth.npz -o halves.npz --count 30 --cover 0.5");
    assert!(desk.json("inspect halves.npz --json")["gaps"].as_u64().unwrap() > 50);
    desk.ok("sense truth.npz -o noisy.npz --count 30 --snr-db 20 --gaps 0.3");
    assert!(desk.json("inspect noisy.npz --json")["gaps"].as_u64().unwrap() > 20);
    let mut files = vec!["noisy.npz".to_string()];
    for bits in 1..=8 {
        let file = format!("bits{bits}.npz");
        desk.ok(&format!("sense truth.npz -o {file} --count 30 --bits {bits} --gaps 0.1"));
        let levels = desk.json(&format!("inspect {file} --json"))["quantiser"]["levels"].as_u64();
        // 255 stands for a missing reading, which leaves 255 levels to 8 bits.
        assert_eq!(levels, Some((1u64 << bits).min(255)), "{bits} bits");
        files.push(file);
    }
    desk.ok("sense truth.npz -o authors.npz --count 30 --bits 3 --edges authors --sigma 1");
    desk.ok("sense truth.npz -o given.npz --count 30 --bits 2 --edges -6,-4.5,-3 --sigma 0");
    files.extend(["authors.npz".into(), "given.npz".into()]);
    for file in files {
        for method in METHODS {
            desk.ok(&format!("estimate {file} -o map.npz --method {method} --force"));
            let score = desk.json("score map.npz truth.npz --json");
            assert!(number(&score, "rmse_db").is_finite(), "{file}, {method}: {score}");
        }
    }
}

#[test]
fn compare_lists_the_methods_asked_for_with_their_options() {
    let desk = Desk::with_readings();
    let said = desk.ok("compare readings.npz truth.npz --methods idw,kriging:trend=linear");
    let names: Vec<&str> =
        said.stdout.lines().skip(2).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["idw", "kriging:trend=linear"]);
    let rows = desk.json("compare readings.npz truth.npz --methods nearest,kriging --json");
    assert_eq!((&rows[0]["method"], &rows[1]["method"]), (&"nearest".into(), &"kriging".into()));
    assert!(number(&rows[1], "rmse_db") < number(&rows[0], "rmse_db"), "{rows}");
    // The same figures as estimate and score give one by one.
    desk.ok("estimate readings.npz -o map.npz --method kriging");
    let alone = desk.json("score map.npz truth.npz --json");
    for figure in ["ssim", "ssim_strict", "rmse_db", "lnre", "nmse"] {
        assert!((number(&alone, figure) - number(&rows[1], figure)).abs() < 1e-9, "{figure}");
    }
}

#[test]
fn pictures_are_png_and_a_preview_needs_no_file() {
    let desk = Desk::with_readings();
    desk.ok("estimate readings.npz -o map.npz --method kriging");
    for (name, rest) in [
        ("plain.png", ""),
        ("band.png", "--band 4 --title Block"),
        ("beside.png", "--truth truth.npz --readings readings.npz"),
    ] {
        let said = desk.ok(&format!("plot map.npz -o {name} {rest}"));
        assert!(desk.read(name).starts_with(PNG) && said.stdout.is_empty(), "{name}");
    }
    desk.ok("plot truth.npz --factors -o factors.png");
    assert!(desk.read("factors.png").starts_with(PNG));
    assert_ne!(desk.read("plain.png"), desk.read("beside.png"));
    let preview = desk.ok("plot map.npz");
    assert!(preview.stdout.lines().count() > 4 && !preview.stdout.contains('\x1b'), "no colours");
}

#[test]
fn a_factored_map_without_the_dense_one_is_read_everywhere() {
    let desk = Desk::with_readings();
    desk.ok("simulate -o thin.npz --grid 16x14 --bands 5 --emitters 2 --seed 3 --factored");
    let summary = desk.json("inspect thin.npz --json");
    assert_eq!((&summary["kind"], &summary["factors"]), (&"map".into(), &2.into()));
    let arrays = summary["arrays"].as_array().unwrap();
    assert!(arrays.iter().all(|array| array["name"] != "map"), "{summary}");
    let score = desk.json("score thin.npz truth.npz --json");
    assert!(number(&score, "rmse_db") < 1e-9, "the same seed makes the same map: {score}");
    desk.ok("sense thin.npz -o thin-readings.npz --count 30 --seed 4");
    assert_eq!(desk.read("thin-readings.npz"), desk.read("readings.npz"));
    desk.ok("plot thin.npz -o thin.png");
}

#[test]
fn force_replaces_an_output() {
    let desk = Desk::with_readings();
    let before = desk.read("truth.npz");
    desk.ok("simulate -o truth.npz --grid 16x14 --bands 5 --emitters 2 --seed 9 --force");
    assert_ne!(before, desk.read("truth.npz"));
}
