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

/// A building of three floors, 3.2 m apart: an access point on the lowest, 12 dB lost by each slab.
fn building(desk: &Desk) {
    let mut table = String::from("x_m,y_m,floor,dbm_2437MHz\n");
    for floor in 0..3 {
        for i in 0..40 {
            let (x, y) = (f64::from(i % 8) * 4.0, f64::from(i / 8) * 5.0);
            let noise = f64::from((i * 7919 + floor * 104_729) % 1009) / 400.0 - 1.26;
            let away = (x - 9.0).hypot(y - 8.0).hypot(3.2 * f64::from(floor)).max(1.0);
            let dbm = -38.0 - 26.0 * away.log10() - 12.0 * f64::from(floor) + noise;
            table += &format!("{x},{y},{floor},{dbm:.2}\n");
        }
    }
    desk.write("building.csv", table);
    desk.write("places.csv", "x_m,y_m,floor\n9,8,0\n9,8,1\n9,8,2\n");
}

#[test]
fn a_column_of_floors_becomes_heights() {
    let desk = Desk::new();
    building(&desk);
    desk.refused("fit building.csv -o m.npz", &["3 floors", "--floor-height METRES", "floor = 0"]);
    desk.ok("fit building.csv -o m.npz --method kriging --floor-height 3.2");
    desk.ok("predict m.npz places.csv -o out.csv --floor-height 3.2");
    let levels = crate::support::table(&desk, "out.csv").numbers("dbm_2437MHz");
    assert!(levels[0] > levels[1] + 8.0 && levels[1] > levels[2] + 8.0, "{levels:?}");
    // A map of a floor, and the same by its height.
    let draw = "predict m.npz --grid 5x5 --cell-m 4";
    desk.ok(&format!("{draw} -o floor.npz --floor 2 --floor-height 3.2"));
    desk.ok(&format!("{draw} -o height.npz --z 6.4"));
    assert_eq!(desk.read("floor.npz"), desk.read("height.npz"));
    desk.ok("estimate building.csv -o e.npz --method kriging --floor-height 3.2 --floor 2");
    desk.refused("predict m.npz -o no.npz --floor 2", &["--floor-height"]);
    desk.refused("fit building.csv -o m2.npz --floor-height 0", &["--floor-height", "positive"]);
    // Floors are held out as a whole; one that nobody visited is harder.
    let error = |split: &str| {
        let told = desk.json(&format!(
            "validate building.csv --methods kriging --floor-height 3.2 --split {split} --json"
        ));
        assert_eq!(told["split"], split);
        (told["methods"][0]["rmse_db"].as_f64().unwrap(), told["folds"].as_u64().unwrap())
    };
    let (random, floors) = (error("random"), error("floors"));
    assert!(floors.0 > 2.0 * random.0 && floors.1 == 3, "{random:?} {floors:?}");
    assert_eq!(error("altitudes"), floors);
    let flat = "fit flat.csv -o f.npz --method kriging --floor-height 3";
    desk.write("flat.csv", "x_m,y_m,dbm_1MHz\n0,0,-50\n5,1,-60\n2,7,-55\n");
    desk.refused(flat, &["kriging"]);
    desk.refused(
        "validate building.csv --methods kriging --where floor=1 --split floors --floor-height 3",
        &["by height"],
    );
}
