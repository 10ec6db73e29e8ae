//! Where transmitters stand.

use super::support::Desk;

/// Sixty places in a yard, two transmitters, path loss with a ripple.
fn survey(desk: &Desk) {
    let masts = [(21.0, 33.0), (70.0, 12.0)];
    let mut text = String::from("x_m,y_m,dbm_a,dbm_b\n");
    for i in 0..60 {
        let (x, y) = (f64::from(i * 37 % 90), f64::from(i * 23 % 59));
        let level = |k: usize| {
            let far: f64 = (x - masts[k].0).hypot(y - masts[k].1);
            let ripple = (0.7 * x + 1.3 * y + k as f64).sin();
            -40.0 - 28.0 * far.max(1.0).log10() + ripple
        };
        text.push_str(&format!("{x},{y},{:.2},{:.2}\n", level(0), level(1)));
    }
    desk.write("survey.csv", text);
}

#[test]
fn places_and_regions_come_from_readings_and_from_models() {
    let desk = Desk::new();
    survey(&desk);
    let found = desk.json("locate survey.csv --method field --json -o places.geojson");
    let emitters = found["emitters"].as_array().unwrap();
    assert_eq!(emitters.len(), 2);
    for (emitter, (band, x, y)) in emitters.iter().zip([("a", 21.0, 33.0), ("b", 70.0, 12.0)]) {
        let number = |name: &str| emitter[name].as_f64().unwrap();
        assert_eq!(emitter["band"], band);
        let off = (number("x_m") - x).hypot(number("y_m") - y);
        assert!(off < 3.0 && number("x_se_m") < 3.0, "{off}");
        let regions = emitter["regions"].as_array().unwrap();
        let area = |n: usize| regions[n]["area_m2"].as_f64().unwrap();
        assert_eq!((&regions[0]["share"], &regions[1]["share"]), (&0.5.into(), &0.9.into()));
        // A normal density holds half of it in 1.39 / 4.61 of the area of nine tenths.
        assert!((0.2..0.5).contains(&(area(0) / area(1))), "{} {}", area(0), area(1));
        let usual = std::f64::consts::PI * 4.61 * number("x_se_m") * number("y_se_m");
        assert!((0.5..2.0).contains(&(area(1) / usual)), "{} {usual}", area(1));
    }
    let written: serde_json::Value = serde_json::from_slice(&desk.read("places.geojson")).unwrap();
    let kinds: Vec<&str> = written["features"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| f["properties"]["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["place", "region", "region", "place", "region", "region"]);
    desk.ok("fit survey.csv --method field -o model.npz");
    let model = desk.json("locate model.npz --json");
    assert_eq!(model["emitters"], found["emitters"]);
    assert!(desk.ok("locate model.npz").stdout.contains("90 % region m2"));
}

#[test]
fn known_transmitters_have_no_region_and_wrong_requests_one_line() {
    let desk = Desk::new();
    survey(&desk);
    desk.write("masts.csv", "x_m,y_m,band\n21,33,a\n70,12,b\n");
    let args = "locate survey.csv --method field --transmitters masts.csv";
    let said = desk.ok(args);
    assert!(said.stdout.contains("given"), "{}", said.stdout);
    for (args, words) in [
        ("locate survey.csv -o places.csv", ".geojson"),
        ("locate none.csv", "none.csv"),
        ("locate survey.csv --method kriging", "no transmitter was found"),
    ] {
        let said = desk.run(args);
        assert!(said.code != Some(0) && said.stderr.contains(words), "{args}: {}", said.stderr);
    }
}
