//! Advice on places for new sensors.

use crate::support::{Desk, PNG};

#[test]
fn places_are_advised_written_drawn_and_sensed() {
    let desk = Desk::with_readings();
    let said = desk.ok("advise readings.npz --count 6 -o places.csv --plot places.png");
    assert!(said.stdout.starts_with("rank"), "{}", said.stdout);
    assert_eq!(said.stdout.lines().count(), 8);
    assert!(desk.read("places.png").starts_with(PNG));
    let places = String::from_utf8(desk.read("places.csv")).unwrap();
    assert_eq!(places.lines().next(), Some("row,col,x_m,y_m"));
    assert_eq!(places.lines().count(), 7);
    let again = desk.ok("advise readings.npz --count 6 --threads 1");
    assert_eq!(again.stdout, said.stdout);
    let sensed = desk.ok("sense truth.npz -o more.npz --cells places.csv");
    assert!(sensed.stderr.contains("6 sensors"), "{}", sensed.stderr);
    desk.refused("advise readings.npz -o places.csv", &["places.csv", "--force"]);
}

#[test]
fn advice_as_json_names_free_cells_best_first() {
    let desk = Desk::with_readings();
    let places = desk.json("advise readings.npz --count 5 --json --cell-m 2 --origin 10,0");
    let places = places.as_array().unwrap();
    assert_eq!(places.len(), 5);
    let share = |i: usize| places[i]["reduction_percent"].as_f64().unwrap();
    assert!((1..5).all(|i| share(i) <= share(i - 1) && share(i) > 0.0));
    for (i, place) in places.iter().enumerate() {
        assert_eq!(place["rank"], i + 1);
        let (row, x_m) = (place["row"].as_u64().unwrap(), place["x_m"].as_f64().unwrap());
        assert!(row < 16 && place["col"].as_u64().unwrap() < 14);
        assert!(x_m >= 10.0 + row as f64, "{place}");
    }
}

#[test]
fn a_method_of_one_s_own_choice() {
    let desk = Desk::with_readings();
    let places = desk.json("advise readings.npz --method field --emitters 2 --count 3 --json");
    assert_eq!(places.as_array().unwrap().len(), 3);
    desk.ok("advise readings.npz --set decorrelation=20 --count 3");
}

#[test]
fn a_budget_is_spent_both_ways() {
    let desk = Desk::with_readings();
    let args = "advise readings.npz --truth truth.npz --budget 12 --count 2";
    let told = desk.json(&format!("{args} --json"));
    assert_eq!(told["places"].as_array().unwrap().len(), 2);
    let steps = told["budget"].as_array().unwrap();
    let sensors: Vec<u64> = steps.iter().map(|s| s["sensors"].as_u64().unwrap()).collect();
    assert_eq!(sensors, [30, 33, 36, 39, 42]);
    let error = |i: usize, way: &str| steps[i][way].as_f64().unwrap();
    assert_eq!(error(0, "advised_rmse_db"), error(0, "random_rmse_db"));
    assert!(error(4, "advised_rmse_db") < error(0, "advised_rmse_db"));
    let said = desk.ok(args);
    assert!(said.stdout.contains("advised rmse dB"), "{}", said.stdout);
}

#[test]
fn unknown_cells_of_the_truth_are_not_advised() {
    let desk = Desk::with_readings();
    let mut table = String::from("row,col,linear_2412MHz\n");
    for (row, col) in (0..12).flat_map(|row| (0..12).map(move |col| (row, col))) {
        let power = if col < 6 { format!("{}", 1 + row + col) } else { String::new() };
        table += &format!("{row},{col},{power}\n");
    }
    desk.write("half.csv", table);
    desk.ok("sense half.csv -o few.npz --count 10 --unit linear --grid 12x12");
    let args = "advise few.npz --truth half.csv --unit linear --grid 12x12 --count 20 --json";
    let places = desk.json(args);
    assert!(places.as_array().unwrap().iter().all(|p| p["col"].as_u64().unwrap() < 6), "{places}");
}

#[test]
fn requests_that_make_no_sense() {
    let desk = Desk::with_readings();
    desk.refused("advise readings.npz --count 0", &["--count 0"]);
    desk.refused("advise readings.npz --count 195", &["195", "194", "free"]);
    desk.refused("advise readings.npz --method idw", &["idw", "spread", "kriging", "field"]);
    desk.refused("advise readings.npz --method magic", &["'magic'"]);
    desk.refused("advise readings.npz --budget 4", &["--truth"]);
    let truth = "advise readings.npz --truth truth.npz";
    desk.refused(&format!("{truth} --budget 0"), &["--budget 0"]);
    desk.refused(&format!("{truth} --budget 500"), &["--budget 500", "194"]);
    desk.refused("advise readings.npz -o places.npz", &["places.npz", ".csv"]);
    desk.refused("advise readings.npz --plot places.jpg", &["places.jpg", ".png"]);
    desk.refused("advise nothing.npz", &["nothing.npz"]);
    desk.ok("simulate -o small.npz --grid 8x8 --bands 5");
    desk.refused(
        "advise readings.npz --truth small.npz",
        &["readings.npz", "off the grid of 8 x 8"],
    );
    desk.ok("sense truth.npz -o levels.npz --bits 3 --count 20");
    desk.refused("advise levels.npz --truth truth.npz --budget 4", &["levels"]);
}
