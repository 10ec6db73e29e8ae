//! Heights: read, fitted, asked for, and refused where they are not known.

use crate::support::{Desk, table};

/// Readings 20 and 60 m above the ground, those above 10 dB stronger, and their places without.
fn desk() -> Desk {
    let desk = Desk::new();
    let (mut survey, mut flat) = (String::from("x_m,y_m,z_m,db\n"), String::from("x_m,y_m,db\n"));
    for i in 0..60 {
        let (x, y) = (f64::from(i * 37 % 100), f64::from(i * 61 % 100));
        let z = if i % 3 == 0 { 60.0 } else { 20.0 };
        let db = -70.0 + 0.25 * z - 0.05 * x + 2.0 * (0.07 * x).sin() * (0.05 * y).cos();
        survey += &format!("{x},{y},{z},{db:.3}\n");
        flat += &format!("{x},{y},{db:.3}\n");
    }
    desk.write("survey.csv", survey);
    desk.write("flat.csv", flat);
    desk.write("places.csv", "x_m,y_m,z_m\n50,50,20\n50,50,60\n");
    desk.write("ground.csv", "x_m,y_m\n50,50\n");
    desk
}

#[test]
fn a_model_is_asked_at_a_height_and_without_one_at_that_of_most_readings() {
    let desk = desk();
    desk.ok("fit survey.csv -o m.npz --method kriging --unit db");
    desk.ok("predict m.npz places.csv -o places-out.csv");
    desk.ok("predict m.npz ground.csv -o ground-out.csv");
    let at = table(&desk, "places-out.csv").numbers("db_db");
    assert!(at[1] - at[0] > 5.0, "{at:?}");
    assert_eq!(table(&desk, "ground-out.csv").numbers("db_db"), at[..1]);
    // Maps alike: one cell about that place.
    for (height, level) in [("", at[0]), (" --z 20", at[0]), (" --z 60", at[1])] {
        let line = format!("predict m.npz -o cell.csv --grid 1x1 --origin 50,50 --force{height}");
        desk.ok(&line);
        let map = table(&desk, "cell.csv");
        let cell = map.numbers("db_db");
        assert!((cell[0] - level).abs() < 1e-3, "{height}: {cell:?} {level}");
    }
    let report = desk.json("estimate survey.csv -o a.npz --method kriging --unit db --z 60 --json");
    assert_eq!(report["grid"]["z_m"], 60.0);
    assert!(report["fitted"]["height_factor"].as_f64().unwrap() > 0.0);
    let above = |z: &str| desk.json(&format!("coverage m.npz --above -60 --json{z}"));
    assert_ne!(above("")["bands"], above(" --z 60")["bands"]);
}

#[test]
fn heights_that_are_not_known_are_refused() {
    let desk = desk();
    desk.refused(
        "estimate flat.csv -o a.npz --method kriging --unit db --z 3",
        &["z: ", "one height", "column z_m"],
    );
    desk.ok("fit survey.csv -o t.npz --method linear --unit db");
    desk.refused("predict t.npz -o a.npz --z 3", &["z: ", "takes all heights as one"]);
    desk.ok("fit survey.csv -o m.npz --method kriging --unit db");
    desk.refused("predict m.npz -o a.npz --z nan", &["z: give metres"]);
}
