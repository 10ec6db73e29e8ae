//! Where results go: never over an input, never into a folder that takes nothing, and complete.

use crate::support::{Desk, PNG};

#[test]
fn an_output_that_is_the_input_is_refused_even_under_force() {
    let desk = Desk::with_readings();
    desk.ok("convert truth.npz truth.csv");
    for args in [
        "sense truth.npz -o truth.npz",
        "estimate readings.npz -o readings.npz",
        "estimate readings.npz -o ./readings.npz",
        "estimate readings.npz -o truth.npz --method oracle --truth truth.npz",
        "fit readings.npz -o readings.npz",
        "convert truth.csv truth.csv",
    ] {
        desk.refused(&format!("{args} --force"), &["it is the input", "another name"]);
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(desk.path("readings.npz"), desk.path("link.npz")).unwrap();
        desk.refused("estimate readings.npz -o link.npz --force", &["link.npz", "it is the input"]);
    }
}

#[cfg(unix)]
#[test]
fn a_folder_that_takes_nothing_is_found_before_the_work() {
    use std::os::unix::fs::PermissionsExt;
    let desk = Desk::with_readings();
    let folder = desk.path("closed");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o500)).unwrap();
    if std::fs::write(folder.join("probe"), "").is_ok() {
        println!("skipped: permissions do not bind this user");
        return;
    }
    found_before_the_work(&desk, "closed");
}

/// Nobody can make a file there, whatever their permissions.
#[cfg(target_os = "linux")]
#[test]
fn a_folder_of_the_system_is_found_before_the_work() {
    found_before_the_work(&Desk::new(), "/proc");
}

/// The inputs do not exist either: the folder is told first.
#[cfg(unix)]
fn found_before_the_work(desk: &Desk, folder: &str) {
    for args in [
        "simulate --grid 2000x2000 -o FOLDER/x.npz",
        "sense none.npz -o FOLDER/x.npz",
        "estimate none.npz -o FOLDER/x.npz",
        "fit none.npz -o FOLDER/x.npz",
        "predict none.npz -o FOLDER/x.npz",
        "predict none.npz none.csv -o FOLDER/x.csv",
        "convert none.npz FOLDER/x.csv",
        "plot none.npz -o FOLDER/x.png",
        "validate none.npz --plot FOLDER/x.png",
    ] {
        let args = args.replace("FOLDER", folder);
        desk.refused(&args, &[folder, "cannot be written to"]);
    }
}

#[test]
fn the_origin_is_kept_in_file_report_and_emitters() {
    let desk = Desk::with_readings();
    let field = "estimate readings.npz --method field --emitters 2 --json";
    let plain = desk.json(&format!("{field} -o plain.npz"));
    let moved = desk.json(&format!("{field} -o moved.npz --origin 1000,-250.5"));
    assert_eq!(moved["grid"]["origin_m"], serde_json::json!([1000.0, -250.5]));
    let summary = desk.json("inspect moved.npz --json");
    assert_eq!(summary["origin_m"], serde_json::json!([1000.0, -250.5]));
    let pairs = |report: &serde_json::Value, x: &str, y: &str| -> Vec<[f64; 2]> {
        let emitters = report["emitters"].as_array().unwrap();
        emitters.iter().map(|e| [e[x].as_f64().unwrap(), e[y].as_f64().unwrap()]).collect()
    };
    let cells = pairs(&moved, "row", "col");
    for (moved, cell) in pairs(&moved, "x_m", "y_m").into_iter().zip(&cells) {
        assert!((moved[0] - 1000.0 - cell[0]).abs() < 1e-9, "{moved:?}");
        assert!((moved[1] + 250.5 - cell[1]).abs() < 1e-9, "{moved:?}");
    }
    for (a, b) in pairs(&plain, "row", "col").iter().zip(&cells) {
        assert!((a[0] - b[0]).abs() < 1e-3 && (a[1] - b[1]).abs() < 1e-3, "{a:?} {b:?}");
    }
    // Every format keeps it.
    for name in ["moved.mat", "moved.csv"] {
        desk.ok(&format!("convert moved.npz {name}"));
        let summary = desk.json(&format!("inspect {name} --json"));
        assert_eq!(summary["origin_m"], serde_json::json!([1000.0, -250.5]), "{name}");
    }
}

#[test]
fn a_table_keeps_the_spread_and_the_size_of_cells() {
    let desk = Desk::with_readings();
    desk.ok("estimate readings.npz -o map.npz --method kriging --cell-m 2.5 --origin 7.3,-4");
    desk.ok("convert map.npz map.csv");
    desk.ok("convert map.csv back.npz");
    let (map, back) = (desk.json("inspect map.npz --json"), desk.json("inspect back.npz --json"));
    for same in ["rows", "cols", "cell_m", "origin_m", "unit", "offset", "has_spread", "bands"] {
        assert_eq!(map[same], back[same], "{same}");
        assert!(!map[same].is_null(), "{same} in {map}");
    }
    // Spread and power are the same: the coverage would tell.
    let score = desk.json("score back.npz map.npz --json");
    assert!(score["rmse_db"].as_f64().unwrap() < 1e-9, "{score}");
    desk.ok("plot map.npz -o map.png");
    desk.ok("plot back.npz -o back.png");
    assert_eq!(desk.read("map.png"), desk.read("back.png"));
}

/// The example that the README opens with.
#[test]
fn the_survey_of_the_readme() {
    let desk = Desk::new();
    let mut table = String::from("x_m,y_m,dbm_2412MHz,dbm_2437MHz\n");
    for i in 0..48 {
        let (x, y) = (3.0 * f64::from(i % 12), 3.7 * f64::from(i / 12));
        let gap = if i == 7 { String::new() } else { format!("{:.1}", -60.0 - x / 3.0) };
        table += &format!("{x},{y},{:.1},{gap}\n", -45.0 - y - x / 2.0);
    }
    desk.write("survey.csv", table);
    desk.ok("estimate survey.csv -o map.npz --grid 34x14");
    desk.ok("plot map.npz -o map.png --readings survey.csv");
    assert!(desk.read("map.png").starts_with(PNG));
    let text = desk.ok("inspect map.npz").stdout;
    assert!(text.contains("34 x 14 cells of 1 m") && text.contains("unit       dbm"), "{text}");
    // Without a grid one is drawn around the sensors, and said.
    let said = desk.ok("estimate survey.csv -o around.npz");
    assert!(said.stderr.contains("the grid is not given: 34 x 13 cells of 1 m"), "{}", said.stderr);
    desk.ok("plot around.npz -o around.png --readings survey.csv");
}

#[test]
fn sensors_without_a_reading_in_the_band_are_not_drawn() {
    let desk = Desk::new();
    let head = "row,col,dbm_1GHz,dbm_2GHz\n0,0,-40,-50\n9,9,-45,-55\n2,7,-44,-52\n";
    desk.write("all.csv", format!("{head}5,5,-42,-51\n"));
    desk.write("gap.csv", format!("{head}5,5,-42,\n"));
    desk.ok("estimate all.csv -o map.npz --method idw --grid 10x10");
    for (name, band) in [("all", 0), ("gap", 0), ("all", 1), ("gap", 1)] {
        let rest = format!("--readings {name}.csv --grid 10x10 --band {band}");
        desk.ok(&format!("plot map.npz -o {name}{band}.png {rest}"));
    }
    assert_eq!(desk.read("all0.png"), desk.read("gap0.png"));
    assert_ne!(desk.read("all1.png"), desk.read("gap1.png"));
}

#[test]
fn maps_of_other_frequencies_or_cells_are_not_scored() {
    let desk = Desk::with_readings();
    desk.ok("estimate readings.npz -o other.npz --method idw --cell-m 2");
    desk.refused("score other.npz truth.npz", &["other.npz", "2 m"]);
    desk.ok("estimate readings.npz -o moved.npz --method idw --origin 5,0");
    desk.refused("score moved.npz truth.npz", &["moved.npz"]);
    let lines = |hertz: &str| {
        let mut table = format!("row,col,x_m,y_m,dbm_{hertz}\n");
        for i in 0..64 {
            table += &format!("{0},{1},{0},{1},{2}\n", i / 8, i % 8, -40 - i % 5);
        }
        table
    };
    desk.write("a.csv", lines("2412MHz"));
    desk.write("b.csv", lines("2437MHz"));
    desk.ok("score a.csv a.csv");
    desk.refused("score a.csv b.csv", &["a.csv", "2412MHz", "2437MHz"]);
}

#[test]
fn a_map_below_the_window_of_ssim_is_scored_without_it() {
    let desk = Desk::new();
    let lines: String = (0..16).map(|i| format!("{},{},{}\n", i / 4, i % 4, 1 + i % 3)).collect();
    desk.write("small.csv", format!("row,col,mw_1GHz\n{lines}"));
    desk.ok("convert small.csv small.npz --as map");
    let score = desk.json("score small.npz small.npz --json");
    assert!(score["ssim"].is_null() && score["ssim_strict"].is_null(), "{score}");
    assert_eq!(score["rmse_db"], 0.0);
    assert!(desk.ok("score small.npz small.npz").stdout.contains("SSIM           -"));
}

/// Found by fitting for an hour first: a map that the disk has no room for is refused before the fit.
#[test]
fn a_map_beyond_the_disk_is_refused_before_the_fit() {
    let desk = Desk::new();
    desk.write("table.csv", "row,col,mw_1GHz\n0,0,1\n9,2,2\n4,7,1\n8,8,3\n1,5,2\n");
    // On such a grid no decoder could be fitted: the refusal must come first.
    let wide = "--grid 50000000x50000000 -o map.npz";
    // The expected spread counts, but for auto, which may choose a method without.
    for (method, takes) in [("kriging", "20.0 PB"), ("auto", "10.0 PB"), ("btd", "10.0 PB")] {
        let what = format!("map.npz: a map of 50000000 x 50000000 x 1 takes {takes}");
        let args = format!("estimate table.csv --method {method} {wide}");
        desk.refused(&args, &[&what, "are free there"]);
    }
    desk.ok("fit table.csv -o model.npz --method kriging");
    desk.refused(&format!("predict model.npz {wide}"), &["takes 20.0 PB", "are free there"]);
    desk.refused(
        "estimate table.csv --method kriging --grid 20000x20000 -o map.csv",
        &["map.csv: a map of 20000 x 20000 x 1", "which .npz, .tif and .zarr take"],
    );
}
