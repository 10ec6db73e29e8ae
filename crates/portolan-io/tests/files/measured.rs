//! Surveys of others from their raw files, where they are at hand: set PORTOLAN_DATA to their
//! folder. Without them the tests say so and pass.

use std::path::PathBuf;

use portolan::{Cell, Grid};
use portolan_io::{Content, ReadOptions, Unit, mannheim, radiogat, read, read_map, read_readings};

fn data(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PORTOLAN_DATA").map(|folder| PathBuf::from(folder).join(name));
    let path = path.filter(|path| path.exists());
    if path.is_none() {
        println!("skipped: PORTOLAN_DATA names no folder with {name}");
    }
    path
}

/// The table's fields as numbers, without a detour over linear power.
fn fields(table: &str) -> Vec<Vec<f64>> {
    let lines = table.lines().skip(1);
    lines.map(|line| line.split(',').map(|field| field.parse().unwrap()).collect()).collect()
}

#[test]
fn mannheim_scans_give_the_medians_of_the_research_group() {
    let Some(folder) = data("mannheim") else { return };
    let survey = mannheim::survey(&folder).unwrap();
    assert_eq!((survey.offline.sensors(), survey.offline.bands()), (166, 9));
    assert_eq!(survey.scans, 146_080 + 6_592);
    assert_eq!(survey.left_out, [(2.472e9, 20)]);
    let table = std::fs::read_to_string(folder.join("mannheim_median_dbm.csv")).unwrap();
    let table = fields(&table);
    assert_eq!(table.len(), survey.offline_dbm.len());
    for (line, place) in table.iter().zip(&survey.offline_dbm) {
        let ours = [&[place.x_m, place.y_m], &place.dbm[..]].concat();
        assert_eq!(*line, ours);
    }
    let dbm = ReadOptions { unit: Some(Unit::Dbm), cell_m: Some(1.0), ..ReadOptions::default() };
    let tensor = read_map(folder.join("formatted_data.mat"), &dbm).unwrap().value;
    let tensor = tensor.to_dense().into_owned();
    let power = survey.offline.power();
    let cells = survey.offline.cells(Grid::new(34, 14, 1.0).unwrap()).unwrap();
    let mut measured = 0;
    for ((row, col, band), theirs) in tensor.indexed_iter().filter(|((.., band), _)| *band < 9) {
        match cells.iter().position(|cell| *cell == Cell::new(row, col)) {
            Some(sensor) => assert_eq!(power[[sensor, band]], *theirs, "{row} {col} {band}"),
            None => assert!(theirs.is_nan(), "{row} {col} {band}"),
        }
        measured += usize::from(!theirs.is_nan());
    }
    assert_eq!(measured, 166 * 9);
}

#[test]
fn mannheim_has_places_off_the_grid_to_test_on() {
    let Some(folder) = data("mannheim") else { return };
    let survey = mannheim::survey(&folder).unwrap();
    assert_eq!(survey.online.len(), 60);
    assert!(survey.online.iter().all(|place| place.dbm.iter().all(|dbm| !dbm.is_nan())));
    let inside =
        |p: &mannheim::ScannedPlace| (0.0..=33.0).contains(&p.x_m) && (0.0..=13.0).contains(&p.y_m);
    assert!(survey.online.iter().all(inside));
    // The nearest place of the grid is at most 1.5 m away: its medians must resemble.
    let (mut squares, mut entries) = (0.0, 0.0);
    for place in &survey.online {
        let far = |p: &mannheim::ScannedPlace| (p.x_m - place.x_m).hypot(p.y_m - place.y_m);
        let near = survey.offline_dbm.iter().min_by(|a, b| far(a).total_cmp(&far(b))).unwrap();
        assert!(far(near) < 1.5);
        for (a, b) in place.dbm.iter().zip(&near.dbm) {
            squares += (a - b) * (a - b);
            entries += 1.0;
        }
    }
    let rmse: f64 = f64::sqrt(squares / entries);
    assert!((1.0..6.0).contains(&rmse), "{rmse}");
}

#[test]
fn a_trace_is_readings_like_any_file() {
    let Some(folder) = data("mannheim") else { return };
    let loaded = read(folder.join("offline.final.trace.zip"), &ReadOptions::default()).unwrap();
    let Content::Readings(readings) = loaded.value else { panic!("expected readings") };
    let table = read_readings(folder.join("mannheim_median_dbm.csv"), &ReadOptions::default());
    assert_eq!(readings, table.unwrap().value);
    assert!(loaded.warnings.iter().any(|w| w.contains("2472 MHz was read at 20 of 166 places")));
    let online = read_readings(folder.join("online.final.trace.txt.gz"), &ReadOptions::default());
    assert_eq!(online.unwrap().value.bands(), 9);
}

#[test]
fn a_ray_traced_city_with_its_stations() {
    let Some(folder) = data("radiogat") else { return };
    let city = radiogat::city(folder).unwrap();
    let power = city.map.to_dense();
    assert_eq!(power.dim(), (445, 484, 5));
    assert_eq!(city.map.freq_hz().unwrap(), [1.75e9, 2.75e9, 3.75e9, 4.75e9, 5.75e9]);
    assert_eq!(city.buildings.iter().filter(|inside| **inside).count(), 24_852);
    let expected = [Cell::new(110, 120), Cell::new(110, 362), Cell::new(333, 241)];
    assert_eq!(city.stations, expected);
    // The brightest cells of each band lie around the stations.
    for band in 0..5 {
        let layer = city.map.band(band);
        let open = layer.indexed_iter().filter(|(_, power)| !power.is_nan());
        let ((row, col), _) = open.max_by(|a, b| a.1.total_cmp(b.1)).unwrap();
        let near = |s: &Cell| s.row.abs_diff(row) + s.col.abs_diff(col) < 16;
        assert!(city.stations.iter().any(near), "band {band}: {row}, {col}");
    }
}
