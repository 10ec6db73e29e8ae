//! Differences of maps and models.

use std::fmt::Write;

use crate::support::Desk;

/// Two surveys of one area: in the second the first band is 15 dB louder, and the second is missing.
fn desk() -> Desk {
    let desk = Desk::new();
    let mut before = String::from("x_m,y_m,dbm_868MHz,dbm_2412MHz\n");
    let mut after = String::from("x_m,y_m,dbm_868MHz,dbm_5180MHz\n");
    for i in 0..80i64 {
        let (x, y) = ((i * 37 % 80) as f64 / 2.0, (i * 53 % 79) as f64 / 3.0);
        let noise = |k: i64| ((i * 7919 + k * 104_729) % 1009) as f64 / 500.0 - 1.0;
        let level = -50.0 - 0.6 * (x - 10.0).hypot(y - 8.0);
        writeln!(before, "{x},{y},{:.2},{:.2}", level + noise(1), level + noise(2)).unwrap();
        writeln!(after, "{x},{y},{:.2},{:.2}", level + 15.0 + noise(3), level + noise(4)).unwrap();
    }
    desk.write("before.csv", before);
    desk.write("after.csv", after);
    for name in ["before", "after"] {
        desk.ok(&format!("fit {name}.csv -o {name}.npz --method kriging"));
    }
    desk
}

#[test]
fn what_changed_between_two_models_is_told_and_drawn() {
    let desk = desk();
    let said = desk.ok("difference before.npz after.npz --cell-m 2 -o d.npz");
    assert!(said.stderr.contains("2 band(s) of one map only are left out"), "{}", said.stderr);
    let told = desk.json("difference before.npz after.npz --cell-m 2 --json");
    let bands = told["bands"].as_array().unwrap();
    assert_eq!((bands.len(), &bands[0]["band"]), (1, &"868MHz".into()));
    assert!((bands[0]["mean_db"].as_f64().unwrap() - 15.0).abs() < 0.6, "{told}");
    assert!(bands[0]["louder"].as_f64().unwrap() > 0.98 && bands[0]["fainter"] == 0.0, "{told}");
    let arrays = desk.ok("inspect d.npz").stdout;
    for name in ["difference_db", "spread_db", "significant"] {
        assert!(arrays.contains(name), "{arrays}");
    }
    for name in ["d.png", "d.svg", "d.tif", "d.nc", "d.zarr"] {
        desk.ok(&format!("difference before.npz after.npz --cell-m 2 -o {name}"));
    }
    let svg = String::from_utf8(desk.read("d.svg")).unwrap();
    assert!(svg.contains("after") && svg.contains("difference"));
    for never in ["truth", "estimate", "error"] {
        assert!(!svg.contains(never), "{never}");
    }
    assert!(String::from_utf8_lossy(&desk.read("d.tif")).contains("difference of 868MHz dB"));
    // A model against its own map: nothing is significant.
    desk.ok("predict before.npz -o map.npz --cell-m 2");
    let same = desk.json("difference before.npz map.npz --json");
    for band in same["bands"].as_array().unwrap() {
        assert!(band["rms_db"].as_f64().unwrap() < 1e-9 && band["louder"] == 0.0, "{same}");
    }
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let desk = desk();
    desk.refused("difference before.csv after.npz", &["before.csv", "fit them first"]);
    desk.refused("difference before.npz after.npz -o d.csv", &["d.csv", ".npz, .tif"]);
    desk.refused("difference before.npz after.npz --band 5180MHz", &["--band", "868MHz"]);
    desk.refused("difference before.npz after.npz --rate 1", &["rate of 1"]);
    desk.refused("difference before.npz after.npz -o after.npz --force", &["after.npz"]);
    desk.ok("predict before.npz -o coarse.npz --cell-m 4");
    desk.ok("predict after.npz -o fine.npz --cell-m 2");
    desk.refused("difference coarse.npz fine.npz", &["other grids"]);
    for option in ["--cell-m 3", "--region 0,0,9,9"] {
        let name = option.split(' ').next().unwrap();
        desk.refused(&format!("difference before.npz fine.npz {option}"), &[name, "fine.npz"]);
    }
}
