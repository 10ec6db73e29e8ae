//! What items, places and sensors are told to be, and that the description of the API is true.

use std::time::{Duration, Instant};

use portolan::{Progress, Readings, Scale, Site, Values};
use portolan_explore::{Explorer, FirstFit};
use serde_json::Value;

use crate::client::{ended, found, get, kriged, readings, serve, with_model};

#[test]
fn the_demo_is_there_at_once_and_fitted_soon() {
    let server = serve(Explorer::demo().unwrap());
    let begun = Instant::now();
    let state = found(&server, "/api/state");
    assert_eq!(state["items"][0]["name"], "demo");
    let job = state["jobs"][0]["id"].as_u64().unwrap();
    assert_eq!(ended(&server, job)["state"], "done");
    assert!(begun.elapsed() < Duration::from_secs(60));
    let model = found(&server, "/api/items/2");
    assert_eq!(
        (model["kind"].as_str(), model["emitters"].as_array().unwrap().len()),
        (Some("model"), 4)
    );
    assert!(model["emitters"][0]["x_se_m"].as_f64().unwrap() > 0.0);
    assert_eq!(model["area"], serde_json::json!([-0.5, -0.5, 63.5, 63.5]));
    let commands = found(&server, "/api/items/2/commands?what=map&format=tif");
    assert_eq!(
        commands["commands"],
        serde_json::json!([
            "portolan simulate -o truth.npz",
            "portolan sense truth.npz -o readings.npz --fraction 0.1",
            "portolan fit readings.npz -o model.npz --method field --emitters 4",
            "portolan predict model.npz -o map.tif",
        ])
    );
}

#[test]
fn a_model_of_several_heights_is_shown_and_asked_at_one() {
    let flat = readings();
    let high = |(i, site): (usize, &Site)| site.at_height(if i % 3 == 0 { 40.0 } else { 12.0 });
    let sites: Vec<Site> = flat.sites().iter().enumerate().map(high).collect();
    let power = ndarray::Array2::from_shape_fn((60, 1), |(i, _)| {
        flat.power()[[i, 0]] * if i % 3 == 0 { 30.0 } else { 1.0 }
    });
    let readings = Readings::new(sites, Values::Power(power), Scale::Absolute).unwrap();
    let model = kriged(&readings);
    let mut explorer = Explorer::empty();
    explorer.add_readings("drone", readings.clone()).unwrap();
    explorer.add_model("kriging", kriged(&readings)).unwrap();
    let server = serve(explorer);
    let known = |z_m: f64| {
        let at = [Site::new(7.25, 3.5).at_height(z_m)];
        10.0 * model.predict(&at, &Progress::silent()).unwrap().power[[0, 0]].log10()
    };
    assert!(known(40.0) > known(12.0) + 5.0);
    for (asked, z_m) in [("", 12.0), ("&z=40", 40.0)] {
        let told = found(&server, &format!("/api/items/2/at?x=7.25&y=3.5{asked}"));
        assert_eq!(told["z_m"], z_m);
        assert!((told["level"][0].as_f64().unwrap() - known(z_m)).abs() < 1e-4, "{told}");
        assert!(told["near"][0]["z_m"].is_number());
    }
    let commands = "/api/items/2/commands?what=place&format=csv&x=7.25&y=3.5&z=40";
    assert!(found(&server, commands)["commands"].to_string().contains("x_m,y_m,z_m"));
    let (server, _) = with_model();
    let refused = get(&server, "/api/items/2/at?x=7.25&y=3.5&z=40");
    assert!(refused.status == 400 && refused.error().contains("one height"), "{}", refused.error());
}

#[test]
fn places_and_sensors_are_told_as_the_model_has_them() {
    let (server, model) = with_model();
    let told = found(&server, "/api/items/2/at?x=7.25&y=3.5");
    let known = model.predict(&[Site::new(7.25, 3.5)], &Progress::silent()).unwrap();
    for band in 0..3 {
        let level = 10.0 * known.power[[0, band]].log10();
        assert!((told["level"][band].as_f64().unwrap() - level).abs() < 1e-4);
        let spread = known.spread_db.as_ref().unwrap()[[0, band]];
        assert!((told["spread"][band].as_f64().unwrap() - spread).abs() < 1e-4);
    }
    let near = told["near"].as_array().unwrap();
    assert_eq!(near.len(), 5);
    let far: Vec<f64> = near.iter().map(|n| n["distance_m"].as_f64().unwrap()).collect();
    assert!(far.windows(2).all(|pair| pair[0] <= pair[1]) && far[0] < 3.0);
    assert!(told["lat_lon"].is_null());
    // What the map says at the sensor, not at the selected place.
    let site = Site::new(near[0]["x_m"].as_f64().unwrap(), near[0]["y_m"].as_f64().unwrap());
    let known = model.predict(&[site], &Progress::silent()).unwrap();
    let there = 10.0 * known.power[[0, 2]].log10();
    assert!((near[0]["map"][2].as_f64().unwrap() - there).abs() < 1e-4);

    let sensor = found(&server, "/api/items/2/sensor?n=5");
    assert!(sensor["read"][1].is_null());
    let others = model.leave_one_out().unwrap().unwrap();
    let held = 10.0 * others[[5, 0]].log10();
    assert!((sensor["held_out"][0].as_f64().unwrap() - held).abs() < 1e-4);
    let levels = get(&server, "/api/items/2/levels?band=1").body;
    let levels: Vec<f32> =
        levels.chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
    assert!(levels.len() == 60 && levels[5].is_nan());
    assert!((f64::from(levels[6]) - 10.0 * readings().power()[[6, 1]].log10()).abs() < 1e-4);
    assert_eq!(found(&server, "/api/items/1/places")["x_m"].as_array().unwrap().len(), 60);
}

#[test]
fn readings_are_fitted_at_the_start() {
    let mut explorer = Explorer::empty();
    explorer.add_readings("survey", readings()).unwrap();
    explorer.fit_first(FirstFit { method: "idw".into(), ..FirstFit::default() }).unwrap();
    let wrong = FirstFit { method: "magic".into(), ..FirstFit::default() };
    assert!(explorer.fit_first(wrong).unwrap_err().to_string().contains("magic"));
    let server = serve(explorer);
    assert_eq!(ended(&server, 1)["item"], 2);
    assert_eq!(found(&server, "/api/items/2")["spread"], false);
}

#[test]
fn all_readings_without_a_model_are_fitted_one_after_the_other() {
    let mut explorer = Explorer::empty();
    let fitted = readings();
    let odd = || {
        let sites: Vec<Site> =
            (0..9).map(|i| Site::new(f64::from(i % 3), f64::from(i / 3))).collect();
        let power = ndarray::Array2::from_shape_fn((9, 1), |(i, _)| 1e-6 * (1.0 + i as f64));
        Readings::new(sites, Values::Power(power), Scale::Absolute).unwrap()
    };
    explorer.add_model("kriging", kriged(&fitted)).unwrap();
    for (name, readings) in [("fitted", fitted), ("one", odd()), ("two", odd())] {
        explorer.add_readings(name, readings).unwrap();
    }
    explorer.fit_first(FirstFit { method: "idw".into(), ..FirstFit::default() }).unwrap();
    let server = serve(explorer);
    let of: Vec<Value> = (1..=2).map(|job| ended(&server, job)["of"].clone()).collect();
    assert_eq!(of, [3, 4]);
    let asked = found(&server, "/api/jobs/2")["asked"].clone();
    assert_eq!((&asked["readings"], &asked["method"]), (&4.into(), &"idw".into()));
    assert_eq!(get(&server, "/api/jobs/3").status, 404);
}

/// Every address of the description answers, with anything but "no such address".
#[test]
fn the_description_of_the_api_is_true() {
    let (server, _) = with_model();
    let text = get(&server, "/api/openapi.json");
    assert_eq!(text.body, include_bytes!("../../openapi.json"));
    let described: Value = text.json();
    assert_eq!(described["info"]["version"], env!("CARGO_PKG_VERSION"));
    let paths = described["paths"].as_object().unwrap();
    for (path, verbs) in paths {
        let real =
            path.replace("{id}", "2").replace("{z}", "3").replace("{x}", "0").replace("{y}", "0");
        if verbs.get("get").is_some() {
            let answer = get(&server, &real);
            assert_ne!(answer.status, 405, "{path}");
            let unknown = answer.status == 404 && answer.error().contains("openapi");
            assert!(!unknown, "{path} is described and not there");
        } else {
            assert_eq!(get(&server, &real).status, 405, "{path}");
        }
    }
    // And nothing is there that is not described.
    let routes = include_str!("../../src/routes.rs");
    for line in routes.lines().filter(|line| line.contains(".route(\"/api/")) {
        let path = line.split('"').nth(1).unwrap();
        assert!(paths.contains_key(path), "{path} is not described");
    }
    let methods = found(&server, "/api/methods");
    assert!(methods.as_array().unwrap().iter().all(|m| m["name"] != "oracle"));
    assert_eq!(found(&server, "/api/palettes")["viridis"].as_array().unwrap().len(), 256);
}
