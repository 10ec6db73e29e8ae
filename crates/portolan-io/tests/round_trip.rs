//! What is written is read back: every format, with gaps, levels, factors and spread.

use ndarray::{Array2, Array3};
use portolan::{Cell, Exponent, Factors, Grid, Quantiser, RadioMap, Readings, Values};
use portolan_io::{
    Content, ReadOptions, Unit, WriteOptions, inspect, read, read_map, read_readings, write_map,
    write_readings,
};
use proptest::prelude::*;

/// Deterministic powers over many orders of magnitude.
fn noise(seed: u64, n: usize) -> f64 {
    let mut x = (seed ^ (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_add(1);
    for _ in 0..3 {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    10f64.powf((x % 10_000) as f64 / 1000.0 - 8.0)
}

fn frequencies(seed: u64, bands: usize) -> Option<Vec<f64>> {
    (seed.is_multiple_of(2)).then(|| (0..bands).map(|k| 2.4e9 + 5.5e6 * k as f64).collect())
}

fn dense(seed: u64, rows: usize, cols: usize, bands: usize) -> RadioMap {
    let grid = Grid::new(rows, cols, 2.5).unwrap();
    let mut power = Array3::from_shape_fn((rows, cols, bands), |(i, j, k)| {
        noise(seed, (i * cols + j) * bands + k)
    });
    if rows * cols > 1 {
        power[[rows - 1, cols - 1, bands - 1]] = f64::NAN;
    }
    let spread = power.mapv(|_| 3.25);
    let map = RadioMap::dense(grid, power).unwrap();
    let map = map.with_frequencies(frequencies(seed, bands)).unwrap();
    if seed.is_multiple_of(3) { map.with_spread_db(Some(spread)).unwrap() } else { map }
}

fn factored(seed: u64, rows: usize, cols: usize, bands: usize, emitters: usize) -> RadioMap {
    let grid = Grid::new(rows, cols, 1.0).unwrap();
    let slf = Array3::from_shape_fn((emitters, rows, cols), |(r, i, j)| {
        noise(seed, (r * rows + i) * cols + j)
    });
    let psd = Array2::from_shape_fn((emitters, bands), |(r, k)| noise(!seed, r * bands + k));
    let map = RadioMap::factored(grid, Factors { slf, psd }).unwrap();
    let places = (0..emitters).map(|r| [r as f64 + 0.5, -1.0]).collect();
    let map = map.with_frequencies(frequencies(seed, bands)).unwrap().with_emitters(places);
    if seed.is_multiple_of(3) {
        return map;
    }
    let errors = (0..emitters).map(|r| [0.25, r as f64]).collect();
    let exponents = (0..emitters).map(|r| Exponent { value: r as f64, se: 0.5 }).collect();
    map.with_emitter_se(errors).unwrap().with_exponents(exponents).unwrap()
}

fn readings(seed: u64, rows: usize, cols: usize, bands: usize, quantised: bool) -> Readings {
    let grid = Grid::new(rows, cols, 1.0).unwrap();
    let cells: Vec<Cell> = (0..rows * cols).step_by(2).map(|index| grid.cell(index)).collect();
    let mut power =
        Array2::from_shape_fn((cells.len(), bands), |(s, k)| noise(seed, s * bands + k));
    let values = if quantised {
        let quantiser = Quantiser::new(vec![-12.0, -6.0, 1.5], 1.7, 1e-6).unwrap();
        let mut levels = power.mapv(|v| quantiser.level(quantiser.link().apply(v)));
        levels[[1, 0]] = 255;
        Values::Levels { levels, quantiser }
    } else {
        power[[1, 0]] = f64::NAN;
        Values::Power(power)
    };
    Readings::new(grid, cells, values).unwrap().with_frequencies(frequencies(seed, bands)).unwrap()
}

/// Equal bit for bit where written so, to a relative tolerance elsewhere; NaN equals NaN.
fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * b.abs()
}

fn assert_same_map(found: &RadioMap, written: &RadioMap, tolerance: f64) {
    let (a, b) = (found.to_dense(), written.to_dense());
    assert_eq!(a.dim(), b.dim());
    assert!(a.iter().zip(b.iter()).all(|(a, b)| close(*a, *b, tolerance)));
    assert_eq!(found.freq_hz(), written.freq_hz());
}

fn assert_same_readings(found: &Readings, written: &Readings, tolerance: f64) {
    assert_eq!(found.cells(), written.cells());
    assert_eq!(found.freq_hz(), written.freq_hz());
    let (a, b) = (found.power(), written.power());
    assert_eq!(a.dim(), b.dim());
    assert!(a.iter().zip(b.iter()).all(|(a, b)| close(*a, *b, tolerance)));
}

fn there_and_back(map: &RadioMap, name: &str, options: &WriteOptions) -> RadioMap {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    write_map(&path, map, options).unwrap();
    read_map(&path, &ReadOptions::default()).unwrap().value
}

fn readings_back(readings: &Readings, name: &str, options: &ReadOptions) -> Readings {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    write_readings(&path, readings, &WriteOptions::default()).unwrap();
    read_readings(&path, options).unwrap().value
}

const ARRAY_FILES: [&str; 2] = ["map.npz", "map.mat"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn dense_maps(seed: u64, rows in 1usize..7, cols in 1usize..7, bands in 1usize..5) {
        let map = dense(seed, rows, cols, bands);
        for name in ARRAY_FILES {
            let found = there_and_back(&map, name, &WriteOptions::default());
            assert_same_map(&found, &map, 0.0);
            assert_eq!(found.spread_db(), map.spread_db());
            assert_eq!(found.grid(), map.grid());
        }
    }

    #[test]
    fn factored_maps(seed: u64, side in 2usize..7, bands in 1usize..5, emitters in 1usize..4) {
        let map = factored(seed, side, side, bands, emitters);
        for name in ARRAY_FILES {
            for dense in [None, Some(true), Some(false)] {
                let options = WriteOptions { dense, ..WriteOptions::default() };
                assert_eq!(there_and_back(&map, name, &options), map, "{name}");
            }
        }
    }

    #[test]
    fn sets_of_readings(seed: u64, rows in 2usize..7, cols in 2usize..7, bands in 1usize..5) {
        for name in ARRAY_FILES {
            let written = readings(seed, rows, cols, bands, false);
            let found = readings_back(&written, name, &ReadOptions::default());
            assert_same_readings(&found, &written, 0.0);
            let written = readings(seed, rows, cols, bands, true);
            assert_eq!(readings_back(&written, name, &ReadOptions::default()), written);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tables(seed: u64, rows in 2usize..7, cols in 2usize..7, bands in 1usize..5) {
        let written = readings(seed, rows, cols, bands, false);
        let known = ReadOptions { grid: Some((rows, cols)), ..ReadOptions::default() };
        assert_same_readings(&readings_back(&written, "r.csv", &known), &written, 1e-12);
        let written = dense(seed, rows, cols, bands);
        for unit in [None, Some(Unit::Linear), Some(Unit::Dbm)] {
            let options = WriteOptions { unit, ..WriteOptions::default() };
            let tolerance = if unit == Some(Unit::Linear) { 0.0 } else { 1e-12 };
            assert_same_map(&there_and_back(&written, "m.csv", &options), &written, tolerance);
        }
    }
}

#[test]
fn a_table_holds_zero_in_linear_columns_and_no_levels() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zero.csv");
    let grid = Grid::new(1, 2, 1.0).unwrap();
    let power = ndarray::array![[[0.0, 1.0], [2.0, 1.0]]];
    let map = RadioMap::dense(grid, power).unwrap();
    let dbm = WriteOptions { unit: Some(Unit::Dbm), ..WriteOptions::default() };
    let error = write_map(&path, &map, &dbm).unwrap_err();
    assert!(error.is_input() && error.to_string().contains("no value in dBm"), "{error}");
    write_map(&path, &map, &WriteOptions::default()).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, "row,col,linear_band0,dbm_band1\n0,0,0,0\n0,1,2,0\n");
    let Content::Map(found) = read(&path, &ReadOptions::default()).unwrap().value else {
        panic!("a table of every cell is a map")
    };
    assert_same_map(&found, &map, 0.0);
    let quantised = readings(1, 3, 3, 2, true);
    let error = write_readings(folder.path().join("l.csv"), &quantised, &WriteOptions::default());
    assert!(error.unwrap_err().to_string().contains("cannot hold quantised levels"));
}

#[test]
fn the_bytes_depend_on_the_content_alone() {
    let folder = tempfile::tempdir().unwrap();
    let map = factored(4, 5, 6, 3, 2);
    for name in ARRAY_FILES {
        let paths = ["a", "b"].map(|stem| folder.path().join(format!("{stem}{name}")));
        for path in &paths {
            write_map(path, &map, &WriteOptions::default()).unwrap();
        }
        assert_eq!(std::fs::read(&paths[0]).unwrap(), std::fs::read(&paths[1]).unwrap());
    }
}

/// An estimate in .mat was once written under the authors' name for the truth.
#[test]
fn matlab_files_have_the_names_of_npz() {
    let folder = tempfile::tempdir().unwrap();
    let names = |name: &str| -> Vec<(String, Vec<usize>)> {
        let path = folder.path().join(name);
        write_map(&path, &factored(4, 5, 6, 3, 2), &WriteOptions::default()).unwrap();
        let arrays = inspect(&path, &ReadOptions::default()).unwrap().arrays;
        arrays.into_iter().take(3).map(|array| (array.name, array.shape)).collect()
    };
    let expected = [("map", vec![5, 6, 3]), ("slf", vec![2, 5, 6]), ("psd", vec![2, 3])];
    assert_eq!(names("m.mat"), expected.clone().map(|(name, shape)| (name.to_owned(), shape)));
    assert_eq!(names("m.npz"), names("again.mat"));
}

#[test]
fn unknown_names_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let error =
        write_map(folder.path().join("map.xls"), &dense(1, 2, 2, 1), &WriteOptions::default());
    let error = error.unwrap_err();
    assert!(error.is_input() && error.to_string().contains(".npz, .csv or .mat"), "{error}");
}
