//! Further readings for a fitted model.

use crate::support::{Desk, table};

/// Readings in two bands, and one more in the second alone, its columns in another order.
fn desk() -> Desk {
    let desk = Desk::new();
    let mut survey = String::from("x_m,y_m,dbm_868MHz,dbm_2412MHz\n");
    for i in 0..40 {
        let (x, y) = (f64::from(i * 37 % 100), f64::from(i * 61 % 100));
        let away = (x - 30.0).hypot(y - 60.0).max(2.0);
        let db = -30.0 - 25.0 * away.log10() + 2.0 * (0.3 * x).sin();
        survey += &format!("{x},{y},{db:.3},{:.3}\n", db - 8.0 - 0.05 * y);
    }
    desk.write("survey.csv", survey);
    desk.write("more.csv", "dbm_2412MHz,y_m,x_m\n-66,50,50\n");
    desk.write("places.csv", "x_m,y_m\n50,50\n");
    desk
}

#[test]
fn one_reading_of_one_band_moves_that_band_where_it_was_taken() {
    let desk = desk();
    desk.ok("fit survey.csv -o m.npz --method kriging");
    let predicted = || {
        desk.ok("predict m.npz places.csv -o out.csv --force");
        let out = table(&desk, "out.csv");
        let of = |name: &str| out.numbers(name)[0];
        [of("dbm_868MHz"), of("dbm_2412MHz"), of("spread_db_2412MHz")]
    };
    let before = predicted();
    let report = desk.json("update m.npz more.csv -o m.npz --force --json");
    assert_eq!((&report["added"], &report["sensors"]), (&1.into(), &41.into()), "{report}");
    let after = predicted();
    assert!((after[0] - before[0]).abs() < 1e-9, "{before:?} {after:?}");
    assert!(after[1] > before[1] + 2.0 && after[1] < -66.0, "{before:?} {after:?}");
    assert!(after[2] < before[2], "{before:?} {after:?}");
    // A map is drawn of it, and it takes another.
    desk.ok("predict m.npz -o map.npz --grid 8x8");
    assert!(desk.ok("update m.npz survey.csv -o all.npz").stderr.contains("81 in all"));
}

#[test]
fn readings_that_do_not_belong_to_the_model_are_refused() {
    let desk = desk();
    desk.ok("fit survey.csv -o m.npz --method kriging");
    desk.write("other.csv", "x_m,y_m,dbm_5180MHz\n1,1,-60\n2,2,-61\n");
    desk.refused(
        "update m.npz other.csv -o n.npz",
        &["other.csv", "band 5180MHz", "none of the model's"],
    );
    desk.refused("update m.npz more.csv -o m.npz", &["m.npz", "--force"]);
    desk.ok("fit survey.csv -o b.npz --method btd");
    desk.refused(
        "update b.npz more.csv -o n.npz",
        &["btd cannot be updated", "fit all readings again"],
    );
    // One reading is enough for an update, and too few for a fit.
    desk.refused("fit more.csv -o n.npz", &["more.csv", "at least 2 places"]);
}
