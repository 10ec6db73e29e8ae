//! Files that NumPy, SciPy and h5py wrote (tests/data/make.py), read with their exact values.

use std::path::{Path, PathBuf};

use ndarray::Array3;
use portolan::quantiser::MISSING_LEVEL;
use portolan::{Cell, RadioMap, Readings, Scale, Site, Values};
use portolan_io::{
    Content, Element, FileKind, MapLayout, MapWriter, ReadOptions, Unit, inspect, read, read_map,
    read_readings,
};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn options() -> ReadOptions {
    ReadOptions::default()
}

fn slf(r: usize, i: usize, j: usize) -> f64 {
    (1 + r + 2 * i + 3 * j) as f64 / 8.0
}

fn psd(r: usize, k: usize) -> f64 {
    (1 + 3 * r + k) as f64 / 4.0
}

fn power() -> Array3<f64> {
    Array3::from_shape_fn((3, 4, 5), |(i, j, k)| (0..2).map(|r| slf(r, i, j) * psd(r, k)).sum())
}

fn map(name: &str) -> RadioMap {
    read_map(data(name), &options()).unwrap().value
}

fn assert_factored(name: &str, map: &RadioMap) {
    let factors = map.factors().unwrap_or_else(|| panic!("{name} is not factored"));
    assert_eq!(factors.slf, Array3::from_shape_fn((2, 3, 4), |(r, i, j)| slf(r, i, j)), "{name}");
    assert_eq!(factors.psd, ndarray::Array2::from_shape_fn((2, 5), |(r, k)| psd(r, k)), "{name}");
}

fn assert_readings(readings: &Readings) {
    let grid = readings.grid().unwrap();
    assert_eq!((grid.rows(), grid.cols()), (3, 4));
    let cells = [Cell::new(0, 0), Cell::new(2, 3), Cell::new(1, 2)];
    assert_eq!(readings.cells(grid).unwrap(), cells);
}

fn assert_levels(name: &str) {
    let readings = read_readings(data(name), &options()).unwrap().value;
    assert_readings(&readings);
    let Values::Levels { levels, quantiser } = readings.values() else {
        panic!("{name} holds no levels")
    };
    assert_eq!(*levels, ndarray::array![[0, MISSING_LEVEL], [3, 1], [2, 2]]);
    assert_eq!(quantiser.edges(), [-3.0, -2.0, -0.5]);
    assert_eq!((quantiser.sigma(), quantiser.offset()), (1.7, 1e-6));
}

#[test]
fn numpy_every_element_type() {
    for letter in "?bBhHiIqQefd".bytes() {
        for order in ["little", "big"] {
            let var = Some(format!("{order}_{letter}"));
            let map = read_map(data("types.npz"), &ReadOptions { var, ..options() }).unwrap().value;
            let most = if letter == b'?' { 2 } else { 100 };
            let expected =
                Array3::from_shape_fn((2, 3, 1), |(i, j, _)| ((3 * i + j) % most) as f64);
            assert_eq!(*map.to_dense(), expected, "{order} {}", letter as char);
        }
    }
    let var = |name: &str| ReadOptions { var: Some(name.into()), ..options() };
    let fortran = read_map(data("types.npz"), &var("fortran")).unwrap().value;
    assert_eq!(fortran.to_dense()[[1, 0, 0]], 3.0);
    let text = read_map(data("types.npz"), &var("text")).unwrap_err();
    assert!(text.is_input() && text.to_string().contains("expected numbers"), "{text}");
    let absent = read_map(data("types.npz"), &var("nothing")).unwrap_err().to_string();
    assert!(absent.contains("'nothing' is missing") && absent.contains("'big_63'"), "{absent}");
}

#[test]
fn numpy_maps() {
    let factored = map("factored.npz");
    assert_factored("factored.npz", &factored);
    assert_eq!(factored.grid().cell_m(), 10.0);
    assert_eq!(factored.emitters(), [Site::new(0.0, 10.0), Site::new(20.0, 30.0)]);
    assert_eq!(factored.freq_hz().unwrap()[1], 2.417e9);
    assert_eq!(factored.spread_db().unwrap()[[2, 3, 4]], 1.5);
    let single = map("float32.npz");
    assert_eq!(*single.to_dense(), power());
    assert!(single.factors().is_none());
    let mismatch = read_map(data("mismatch.npz"), &options()).unwrap();
    assert_eq!(*mismatch.value.to_dense(), power());
    let [unit, factors] = &mismatch.warnings[..] else { panic!("{:?}", mismatch.warnings) };
    assert!(unit.contains("the unit is not given"), "{unit}");
    assert!(factors.contains("only 'map' is used"), "{factors}");
    assert_factored("simulator.npz", &map("simulator.npz"));
}

#[test]
fn an_array_named_t_says_how_its_axes_were_taken() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.npz");
    let layout =
        MapLayout { rows: 2, cols: 3, bands: 4, arrays: vec!["T"], element: Element::Float64 };
    let mut writer = MapWriter::create(&path, &layout, &[], false).unwrap();
    writer.write_rows("T", Array3::ones((2, 3, 4)).view()).unwrap();
    writer.finish().unwrap();
    let relative = ReadOptions { unit: Some(Unit::Relative), ..options() };
    let loaded = read_map(&path, &relative).unwrap();
    assert_eq!(loaded.value.to_dense().dim(), (3, 4, 2));
    let [note] = &loaded.warnings[..] else { panic!("{:?}", loaded.warnings) };
    assert!(note.contains("bands x rows x cols") && note.contains("--var T"), "{note}");
    let named = ReadOptions { var: Some("T".into()), ..relative };
    let loaded = read_map(&path, &named).unwrap();
    assert_eq!((loaded.value.to_dense().dim(), loaded.warnings.len()), ((2, 3, 4), 0));
    // Where factors decide, nothing needs to be said.
    assert!(read_map(data("simulator.npz"), &options()).unwrap().warnings.is_empty());
}

#[test]
fn numpy_readings() {
    let readings = read_readings(data("values.npz"), &options()).unwrap().value;
    assert_readings(&readings);
    let Values::Power(values) = readings.values() else { panic!("no power") };
    assert!(values[[0, 1]].is_nan());
    assert_eq!(values.row(2).to_vec(), [0.125, 2.0]);
    assert_eq!(readings.freq_hz().unwrap(), [2.412e9, 2.417e9]);
    assert_levels("levels.npz");
}

#[test]
fn a_map_is_not_readings_nor_the_other_way_round() {
    let error = read_readings(data("factored.npz"), &options()).unwrap_err();
    assert!(error.is_input());
    assert!(error.to_string().contains("factored.npz: holds a map, expected readings"));
    let error = read_map(data("levels.npz"), &options()).unwrap_err();
    assert!(error.to_string().ends_with("levels.npz: holds readings, expected a map"));
    assert!(matches!(read(data("levels.npz"), &options()).unwrap().value, Content::Readings(_)));
    assert!(matches!(read(data("float32.npz"), &options()).unwrap().value, Content::Map(_)));
}

#[test]
fn an_array_in_dbm_is_converted_when_told() {
    // Without a negative number they are linear, whatever is said.
    let unit = Some(Unit::Dbm);
    let map = read_map(data("float32.npz"), &ReadOptions { unit, ..options() }).unwrap().value;
    assert_eq!((map.to_dense().into_owned(), map.scale()), (power(), Scale::Absolute));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dbm.npz");
    let (arrays, element) = (vec!["map"], Element::Float32);
    let layout = MapLayout { rows: 3, cols: 4, bands: 5, arrays, element };
    let mut writer = MapWriter::create(&path, &layout, &[], false).unwrap();
    let dbm = power().mapv(|p| -40.0 - p);
    writer.write_rows("map", dbm.view()).unwrap();
    writer.finish().unwrap();
    let map = read_map(&path, &ReadOptions { unit, ..options() }).unwrap().value;
    assert!(map.to_dense().iter().zip(&dbm).all(|(p, dbm)| (10.0 * p.log10() - dbm).abs() < 1e-5));
    let error = read_map(data("float32.npz"), &ReadOptions { grid: Some((4, 3)), ..options() });
    assert!(error.unwrap_err().to_string().contains("3 x 4 cells, but a grid of 4 x 3"));
}

#[test]
fn scipy_maps() {
    for name in ["authors.mat", "authors_deflated.mat"] {
        assert_factored(name, &map(name));
        let var = Some("T".to_owned());
        let observed = read_map(data(name), &ReadOptions { var, ..options() }).unwrap().value;
        assert_eq!(*observed.to_dense(), power() * 1.01, "{name}");
        let var = Some("title".to_owned());
        let error = read_map(data(name), &ReadOptions { var, ..options() }).unwrap_err();
        assert!(error.to_string().contains("class char, expected real numbers"), "{error}");
        let var = Some("Om".to_owned());
        let mask = read_map(data(name), &ReadOptions { var, ..options() }).unwrap().value;
        assert_eq!(mask.bands(), 1);
        assert_eq!(mask.to_dense()[[2, 3, 0]], 1.0);
    }
    let error = read_map(data("matrix.mat"), &options()).unwrap_err().to_string();
    assert!(error.contains("holds 'layer'") && error.contains("--var"), "{error}");
    let var = Some("layer".to_owned());
    let layer = read_map(data("matrix.mat"), &ReadOptions { var, ..options() }).unwrap().value;
    assert_eq!(layer.band(0), power().index_axis(ndarray::Axis(2), 0));
    assert_levels("levels.mat");
}

#[test]
fn scipy_survey_in_dbm() {
    let error = read_map(data("survey_dbm.mat"), &options()).unwrap_err();
    assert!(error.is_input() && error.to_string().contains("pass --unit dbm"), "{error}");
    let unit = Some(Unit::Dbm);
    let loaded = read_map(data("survey_dbm.mat"), &ReadOptions { unit, ..options() }).unwrap();
    let found = loaded.value.to_dense();
    for ((i, j, k), expected) in power().indexed_iter() {
        let dbm = (10.0 * expected.log10()).round_ties_even();
        if (i, j) == (1, 2) || dbm == 0.0 {
            assert!(found[[i, j, k]].is_nan());
        } else {
            assert!((found[[i, j, k]] - 10f64.powf(dbm / 10.0)).abs() < 1e-12);
        }
    }
    assert!(loaded.warnings[0].contains("taken as unmeasured"), "{:?}", loaded.warnings);
}

#[cfg(feature = "hdf5")]
#[test]
fn h5py_maps_and_readings() {
    let plain = map("authors73.mat");
    assert_factored("authors73.mat", &plain);
    assert_eq!(plain.freq_hz().unwrap()[4], 2.432e9);
    assert_factored("authors73_chunked.mat", &map("authors73_chunked.mat"));
    let var = Some("T".to_owned());
    let observed = read_map(data("authors73.mat"), &ReadOptions { var, ..options() }).unwrap();
    assert_eq!(*observed.value.to_dense(), power() * 1.01);
    assert_levels("levels73.mat");
}

#[test]
fn summaries() {
    let summary = inspect(data("factored.npz"), &options()).unwrap();
    assert_eq!((summary.kind, summary.rows, summary.cols, summary.bands), (FileKind::Map, 3, 4, 5));
    assert_eq!((summary.factors, summary.emitters, summary.has_spread), (Some(2), 2, true));
    let peak = power().iter().copied().fold(0.0, f64::max);
    assert_eq!(summary.range.unwrap().1, peak);
    let text = summary.to_string();
    for expected in ["cells of 10 m", "2412 to 2432 MHz", "slf: 2 x 3 x 4, <f8", "factored   yes"] {
        assert!(text.contains(expected), "{text}");
    }
    let summary = inspect(data("levels.mat"), &options()).unwrap();
    assert_eq!((summary.kind, summary.sensors), (FileKind::Readings, Some(3)));
    assert_eq!((summary.gaps, summary.entries), (1, 6));
    assert_eq!(summary.quantiser.unwrap().levels, 4);
    let summary = inspect(data("matrix.mat"), &options()).unwrap();
    assert_eq!(summary.kind, FileKind::Arrays);
    assert!(summary.to_string().contains("layer: 3 x 4, single"));
}
