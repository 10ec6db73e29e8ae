//! How much of an area lies above a level.

use super::npz::npz;
use super::support::{Desk, PNG};

#[test]
fn a_model_and_its_map_are_covered_alike() {
    let desk = Desk::with_readings();
    desk.ok("fit readings.npz -o model.npz --method kriging");
    desk.ok("estimate readings.npz -o map.npz --method kriging");
    let model = desk.json("coverage model.npz --above -25 --json");
    assert_eq!(model, desk.json("coverage map.npz --above -25 --json"));
    assert_eq!(model["bands"].as_array().unwrap().len(), 5);
    let shares = |of: &serde_json::Value| -> Vec<f64> {
        of["share"].as_array().unwrap().iter().map(|share| share.as_f64().unwrap()).collect()
    };
    let best = shares(&model["best_server"]);
    assert!(best[0] > 0.0 && best[0] >= best[1] && best[1] >= best[2], "{best:?}");
    for band in model["bands"].as_array().unwrap() {
        assert!(shares(band).iter().zip(&best).all(|(one, best)| one <= best), "{band}");
    }
    assert_eq!(model["best_server"]["area_m2"], 16.0 * 14.0);
    let said = desk.ok("coverage model.npz --above -25 --cell-m 0.5 --bands 2 -o cover.png");
    assert!(desk.read("cover.png").starts_with(PNG));
    assert!(said.stdout.contains("90 % sure") && said.stdout.contains("224 m2"), "{}", said.stdout);
    assert!(!said.stdout.contains("best server"), "one band is its own best: {}", said.stdout);
    desk.ok("coverage map.npz --above -25 -o cover.pdf");
    desk.ok("coverage map.npz --above -25 -o cover.svg --region 0,0,5,5");
}

#[test]
fn unknown_cells_and_a_missing_spread_are_said() {
    let desk = Desk::new();
    // -60 dBm, -80 dBm and nothing: 1 of 3 known cells is above -70.
    let power = [1e-6, 1e-8, f64::NAN, 1e-8];
    desk.write("gaps.npz", npz(&[("map", &[2, 2, 1], &power), ("cell_m", &[], &[10.0])]));
    let said = desk.ok("coverage gaps.npz --above -70");
    assert!(said.stderr.contains("gaps.npz: holds no spread"), "{}", said.stderr);
    assert!(said.stderr.contains("left out of the area: 1 of 4 (100 m2)"), "{}", said.stderr);
    assert!(said.stdout.contains("33.3 %") && !said.stdout.contains("sure"), "{}", said.stdout);
    let found = desk.json("coverage gaps.npz --above -70 --json");
    assert!(found["certainties"].is_null());
    assert_eq!(
        (&found["best_server"]["above_m2"][0], &found["unknown_m2"]),
        (&100.0.into(), &100.0.into())
    );
}

#[test]
fn wrong_requests_get_one_line() {
    let desk = Desk::with_readings();
    for (args, words) in [
        ("truth.npz", "--above"),
        ("truth.npz --above loud", "loud"),
        ("truth.npz --above inf", "--above inf"),
        ("none.npz --above -70", "none.npz: cannot be opened"),
        ("readings.npz --above -70", "holds readings, expected a model or a map"),
        ("truth.npz --above -70 --grid 4x4", "--grid: truth.npz is a map"),
        ("truth.npz --above -70 --bands 7", "band 7: the map has"),
        ("truth.npz --above -70 -o x.jpg", "x.jpg: expected a .png, .svg or .pdf"),
        ("truth.npz --above -70 --title Hall", "--output"),
        ("truth.npz --above -70 --region 900,900,901,901", "holds no cell"),
    ] {
        desk.refused(&format!("coverage {args}"), &[words]);
    }
}
