//! Files for geographic information systems: what is written, what is refused, what is left behind.

use serde_json::Value;

use crate::support::{Desk, PNG, table};

const CRS: &str = "--crs EPSG:32632";

/// A desk with readings, a model of them and a map that know where on Earth they are.
fn desk() -> Desk {
    let desk = Desk::with_readings();
    desk.ok(&format!("fit readings.npz -o model.npz --method kriging {CRS}"));
    desk.ok(&format!("estimate readings.npz -o map.npz --method kriging {CRS}"));
    desk
}

fn json(desk: &Desk, name: &str) -> Value {
    serde_json::from_slice(&desk.read(name)).unwrap()
}

#[test]
fn every_command_that_draws_writes_every_format() {
    let desk = desk();
    for (ending, begins) in [
        ("tif", &b"II\x2a\0"[..]),
        ("tiff", b"II\x2a\0"),
        ("nc", b"\x89HDF\r\n\x1a\n"),
        ("geojson", b"{\"type\":\"FeatureCollection\""),
        ("kmz", b"PK"),
    ] {
        desk.ok(&format!("convert map.npz a.{ending}"));
        desk.ok(&format!("estimate readings.npz -o b.{ending} --method kriging {CRS}"));
        desk.ok(&format!("predict model.npz --grid 9x12 -o c.{ending}"));
        for name in ["a", "b", "c"] {
            let bytes = desk.read(&format!("{name}.{ending}"));
            assert!(bytes.starts_with(begins), "{name}.{ending}: {:?}", &bytes[..8]);
        }
        // The model's map and the stored map are the same.
        if ending == "tif" {
            assert_eq!(desk.read("a.tif"), desk.read("b.tif"));
        }
    }
    desk.ok("predict model.npz --grid 9x12 --bands 2 -o c.png");
    assert!(desk.read("c.png").starts_with(PNG));
    assert_eq!(String::from_utf8(desk.read("c.pgw")).unwrap(), "1\n0\n0\n-1\n0\n11\n");
    assert!(desk.read("c.prj").starts_with(b"PROJCS[\"WGS 84 / UTM zone 32N\""));
}

#[test]
fn a_zarr_store_is_a_folder_that_force_replaces_whole() {
    let desk = desk();
    desk.ok("convert map.npz map.zarr");
    let store = desk.path("map.zarr");
    let about: Value = serde_json::from_slice(&desk.read("map.zarr/zarr.json")).unwrap();
    assert_eq!(about["zarr_format"], 3);
    std::fs::write(store.join("rest of an older store"), "x").unwrap();
    desk.refused("convert map.npz map.zarr", &["map.zarr", "--force"]);
    desk.ok("convert map.npz map.zarr --force");
    assert!(!store.join("rest of an older store").exists());
    // What is no store is never replaced.
    std::fs::create_dir(desk.path("work.zarr")).unwrap();
    std::fs::write(desk.path("work.zarr").join("thesis.tex"), "x").unwrap();
    desk.refused("convert map.npz work.zarr --force", &["work.zarr", "no Zarr store"]);
    assert!(desk.path("work.zarr").join("thesis.tex").exists());
    let left = std::fs::read_dir(store.parent().unwrap()).unwrap();
    let hidden =
        left.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with('.'));
    assert_eq!(hidden.count(), 0);
}

#[test]
fn what_a_format_cannot_hold_is_refused_before_the_work() {
    let desk = desk();
    for ending in ["tif", "nc", "zarr", "kmz", "png"] {
        desk.refused(&format!("convert readings.npz a.{ending}"), &["these are readings"]);
        desk.refused(&format!("sense truth.npz -o a.{ending} --count 9"), &["these are readings"]);
        desk.refused(&format!("convert model.npz a.{ending}"), &["holds a model", "predict"]);
        assert!(!desk.path(&format!("a.{ending}")).exists());
    }
    desk.refused("estimate readings.npz -o a.kmz", &["a.kmz", "where on Earth", "--crs"]);
    desk.refused("estimate readings.npz -o a.png", &["a.png", "one band, these are 5"]);
    desk.refused("convert truth.npz a.kmz", &["where on Earth"]);
    desk.refused("convert map.npz a.tif --crs EPSG:4326", &["EPSG:4326", "by its own word"]);
    desk.refused("convert truth.npz a.tif --crs EPSG:4326", &["EPSG:4326", "degrees"]);
    desk.refused("convert model.npz a.geojson", &["no emitters"]);
    desk.refused("convert map.npz a.gif", &["a.gif", ".tif", ".zarr"]);
    desk.write("a.pgw", "mine");
    desk.refused("convert map.npz a.png --bands 0", &["a.pgw", "--force"]);
}

#[test]
fn options_that_say_nothing_are_refused() {
    let desk = desk();
    desk.refused("convert map.npz a.tif --levels -80", &["--levels", ".geojson"]);
    desk.refused("convert readings.npz a.geojson --levels -80", &["--levels is about maps"]);
    desk.refused("convert readings.npz a.csv --bands 0", &["--bands is about maps"]);
    desk.refused("convert map.npz a.tif --bands 7", &["band 7", "the map has"]);
    desk.refused("convert map.npz a.tif --mask hull", &["--readings"]);
    desk.refused("convert map.npz a.tif --readings readings.npz", &["--mask"]);
    desk.refused("convert truth.npz a.tif --mask spread=3", &["no spread"]);
    desk.refused("predict model.npz --grid 9x9 -o a.npz --mask polygon.geojson", &["polygon"]);
    desk.refused("estimate readings.npz -o a.npz --mask far=3", &["far=3", "spread=DB"]);
    desk.refused("estimate readings.npz -o a.npz --mask distance=-3", &["distance=-3"]);
}

#[test]
fn a_mask_leaves_the_same_cells_in_every_format() {
    let desk = desk();
    let ring = "[[2.5,1.5],[11.5,1.5],[11.5,9.5],[2.5,9.5],[2.5,1.5]]";
    desk.write("area.geojson", format!(r#"{{"type":"Polygon","coordinates":[{ring}]}}"#));
    desk.ok("convert truth.npz cut.csv --mask area.geojson --bands 0");
    let cut = table(&desk, "cut.csv");
    let name = cut.header.last().unwrap().clone();
    let known = cut.column(&name).into_iter().filter(|field| !field.is_empty()).count();
    assert_eq!(known, 9 * 8);
    let masks = "--mask hull --mask distance=3";
    desk.ok(&format!("predict model.npz -o drawn.npz {masks}"));
    desk.ok(&format!("convert map.npz stored.npz {masks} --readings readings.npz"));
    desk.ok(&format!("estimate readings.npz -o estimated.npz --method kriging {CRS} {masks}"));
    let gaps = |name: &str| desk.json(&format!("inspect {name} --json"))["gaps"].clone();
    assert!(gaps("drawn.npz").as_u64().unwrap() > 0);
    assert_eq!(gaps("drawn.npz"), gaps("stored.npz"));
    assert_eq!(gaps("drawn.npz"), gaps("estimated.npz"));
}

#[test]
fn tables_of_maps_carry_degrees_and_are_read_back() {
    let desk = desk();
    desk.ok("convert map.npz map.csv");
    let written = table(&desk, "map.csv");
    assert_eq!(written.header[2..6], ["x_m", "y_m", "lat", "lon"]);
    let (lat, lon) = (written.numbers("lat"), written.numbers("lon"));
    assert!(lat[0].abs() < 1e-9 && (lon[0] - 4.511).abs() < 1e-3, "{} {}", lat[0], lon[0]);
    desk.ok("convert map.csv again.npz");
}

#[test]
fn sensors_and_areas_as_geojson() {
    let desk = desk();
    let said = desk.ok("convert readings.npz sensors.geojson");
    assert!(said.stderr.contains("metres, not degrees"), "{}", said.stderr);
    let sensors = json(&desk, "sensors.geojson");
    assert_eq!(sensors["features"].as_array().unwrap().len(), 30);
    assert_eq!(sensors["coordinates_in"], "metres");
    let said = desk.ok("convert map.npz areas.geojson --bands 1,3 --levels -60,-40");
    assert!(!said.stderr.contains("metres"), "{}", said.stderr);
    let areas = json(&desk, "areas.geojson");
    let about = |n: usize| &areas["features"][n]["properties"];
    assert_eq!(areas["features"].as_array().unwrap().len(), 4);
    assert_eq!((&about(0)["band"], &about(2)["band"]), (&"band1".into(), &"band3".into()));
    assert_eq!(about(3)["level"], -40.0);
    let area = |n: usize| about(n)["area_m2"].as_f64().unwrap();
    assert!(area(0) >= area(1) && area(0) <= 16.0 * 14.0);
}
