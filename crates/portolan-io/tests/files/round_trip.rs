//! What is written is read back: every format, with gaps, levels, factors and spread.

use ndarray::{Array2, Array3};
use portolan::{
    BandLabels, Cell, Exponent, Factors, Grid, Quantiser, RadioMap, Readings, Scale, Site, Values,
};
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

/// Frequencies, names, both or neither.
fn labels(seed: u64, bands: usize) -> BandLabels {
    let freq_hz = seed.is_multiple_of(2).then(|| (0..bands).map(|k| 2.4e9 + 5.5e6 * k as f64));
    let names =
        (seed / 2).is_multiple_of(2).then(|| (0..bands).map(|k| format!("Küche {k}, oben")));
    BandLabels::new(freq_hz.map(Iterator::collect), names.map(Iterator::collect), bands).unwrap()
}

/// Each of the three scales.
fn scale(seed: u64) -> Scale {
    match seed % 3 {
        0 => Scale::Absolute,
        1 => Scale::Uncalibrated,
        _ => Scale::relative(noise(seed, 77)).unwrap(),
    }
}

fn dense(seed: u64, rows: usize, cols: usize, bands: usize) -> RadioMap {
    let grid = Grid::new(rows, cols, 2.5).unwrap().with_origin(Site::new(-7.25, 4e5)).unwrap();
    let mut power = Array3::from_shape_fn((rows, cols, bands), |(i, j, k)| {
        noise(seed, (i * cols + j) * bands + k)
    });
    if rows * cols > 1 {
        power[[rows - 1, cols - 1, bands - 1]] = f64::NAN;
    }
    let spread = power.mapv(|_| 3.25);
    let map = RadioMap::dense(grid, power, scale(seed)).unwrap();
    let map = map.with_labels(labels(seed, bands)).unwrap();
    if !seed.is_multiple_of(3) {
        return map;
    }
    let noise_db = (0..bands).map(|k| 0.5 * k as f64).collect();
    map.with_spread_db(Some(spread)).unwrap().with_noise_db(Some(noise_db)).unwrap()
}

fn factored(seed: u64, rows: usize, cols: usize, bands: usize, emitters: usize) -> RadioMap {
    let grid = Grid::new(rows, cols, 1.0).unwrap();
    let slf = Array3::from_shape_fn((emitters, rows, cols), |(r, i, j)| {
        noise(seed, (r * rows + i) * cols + j)
    });
    let psd = Array2::from_shape_fn((emitters, bands), |(r, k)| noise(!seed, r * bands + k));
    let map = RadioMap::factored(grid, Factors { slf, psd }, scale(seed)).unwrap();
    let places = (0..emitters).map(|r| Site::new(r as f64 + 0.5, -1.0)).collect();
    let map = map.with_labels(labels(seed, bands)).unwrap().with_emitters(places);
    if seed.is_multiple_of(3) {
        return map;
    }
    let errors = (0..emitters).map(|r| [0.25, r as f64]).collect();
    let exponents = (0..emitters).map(|r| Exponent { value: r as f64, se: 0.5 }).collect();
    map.with_emitter_se_m(errors).unwrap().with_exponents(exponents).unwrap()
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
    // Levels have the scale of their quantiser.
    let scale = if quantised { Scale::paper() } else { scale(seed) };
    let sites: Vec<Site> = cells.iter().map(|cell| grid.site(*cell)).collect();
    let readings = Readings::new(sites, values, scale).unwrap();
    readings.with_grid(Some(grid)).unwrap().with_labels(labels(seed, bands)).unwrap()
}

/// A table has one name per band: frequencies are not kept beside other names.
fn table_labels(labels: &BandLabels, bands: usize) -> BandLabels {
    match labels.names() {
        Some(names) => BandLabels::new(None, Some(names.to_vec()), bands).unwrap(),
        None => labels.clone(),
    }
}

/// What a table keeps: the paper's offset stands for every other.
fn as_a_table_says(readings: Readings) -> Readings {
    let scale = match readings.scale() {
        Scale::Relative { .. } => Scale::paper(),
        other => other,
    };
    let labels = table_labels(readings.labels(), readings.bands());
    Readings::new(readings.sites().to_vec(), readings.values().clone(), scale)
        .and_then(|made| made.with_grid(readings.grid())?.with_labels(labels))
        .unwrap()
}

/// Equal bit for bit where written so, to a relative tolerance elsewhere; NaN equals NaN.
fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * b.abs()
}

fn assert_same_map(found: &RadioMap, written: &RadioMap, tolerance: f64) {
    let (a, b) = (found.to_dense(), written.to_dense());
    assert_eq!(a.dim(), b.dim());
    assert!(a.iter().zip(b.iter()).all(|(a, b)| close(*a, *b, tolerance)));
    assert_eq!(found.labels(), written.labels());
}

fn assert_same_readings(found: &Readings, written: &Readings, tolerance: f64) {
    assert_eq!((found.sites(), found.grid()), (written.sites(), written.grid()));
    assert_eq!((found.scale(), found.labels()), (written.scale(), written.labels()));
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
            assert_eq!((found.grid(), found.scale()), (map.grid(), map.scale()));
            assert_eq!(found.noise_db(), map.noise_db());
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
        let found = readings_back(&written, "r.csv", &known);
        assert_same_readings(&found, &as_a_table_says(written), 1e-12);
        let written = dense(seed, rows, cols, bands);
        let units: &[Option<Unit>] = match written.scale() {
            Scale::Absolute => &[None, Some(Unit::Linear), Some(Unit::Dbm)],
            Scale::Uncalibrated => &[None, Some(Unit::Db)],
            _ => &[None, Some(Unit::Relative)],
        };
        for &unit in units {
            let options = WriteOptions { unit, ..WriteOptions::default() };
            let found = there_and_back(&written, "m.csv", &options);
            let relative = matches!(written.scale(), Scale::Relative { .. });
            let exact = relative || unit == Some(Unit::Linear);
            let labels = table_labels(written.labels(), bands);
            let expected = written.clone().with_labels(labels).unwrap();
            assert_same_map(&found, &expected, if exact { 0.0 } else { 1e-12 });
            assert_eq!((found.grid(), found.spread_db()), (written.grid(), written.spread_db()));
            assert!(found.scale() == written.scale() || relative);
        }
    }
}

#[test]
fn a_table_holds_zero_in_linear_columns_and_no_levels() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zero.csv");
    let grid = Grid::new(1, 2, 1.0).unwrap();
    let power = ndarray::array![[[0.0, 1.0], [2.0, 1.0]]];
    let map = RadioMap::dense(grid, power, Scale::Absolute).unwrap();
    let dbm = WriteOptions { unit: Some(Unit::Dbm), ..WriteOptions::default() };
    let error = write_map(&path, &map, &dbm).unwrap_err();
    assert!(error.is_input() && error.to_string().contains("no value in decibels"), "{error}");
    write_map(&path, &map, &WriteOptions::default()).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, "row,col,x_m,y_m,linear_band0,dbm_band1\n0,0,0,0,0,0\n0,1,0,1,2,0\n");
    let Content::Map(found) = read(&path, &ReadOptions::default()).unwrap().value else {
        panic!("a table of cells with their places is a map")
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

/// Readings between cells with all that can be known about them.
fn known(seed: u64, scale: Scale, on_grid: bool) -> Readings {
    let (sensors, bands) = (7, 3);
    let at = |s: usize| Site::new(-40.0 + 3.7 * s as f64, 1e5 + 0.1 * (s * s) as f64);
    let sites: Vec<Site> = (0..sensors).map(at).collect();
    let mut power = Array2::from_shape_fn((sensors, bands), |(s, k)| noise(seed, s * bands + k));
    power[[1, 0]] = f64::NAN;
    power[[2, 1]] = f64::NAN;
    let silent = Array2::from_shape_fn((sensors, bands), |at| at == (2, 1));
    let least = |k: usize| power.column(k).iter().copied().fold(f64::INFINITY, f64::min);
    let floor = (0..bands).map(|k| 0.5 * least(k)).collect();
    let count = Array2::from_shape_fn((sensors, bands), |(s, k)| (1 + s + k) as f64);
    let noise_db = Array2::from_shape_fn((sensors, bands), |(s, k)| 0.25 * (s * k) as f64);
    let time = (0..sensors).map(|s| 1.7e9 + 0.5 * s as f64).collect();
    let origin = Site::new(-41.25, 1e5 - 0.5);
    let grid = Grid::new(14, 4, 2.0).unwrap().with_origin(origin).unwrap();
    Readings::new(sites, Values::Power(power), scale)
        .and_then(|r| r.with_grid(on_grid.then_some(grid)))
        .and_then(|r| r.with_labels(labels(4 * seed, bands)))
        .and_then(|r| r.with_not_heard(silent, floor))
        .and_then(|r| r.with_repeats(Some(count)))
        .and_then(|r| r.with_noise_db(Some(noise_db)))
        .and_then(|r| r.with_time_s(Some(time)))
        .unwrap()
}

#[test]
fn readings_between_cells_keep_all_that_is_known_of_them() {
    let scales = [Scale::Absolute, Scale::Uncalibrated, Scale::relative(3e-4).unwrap()];
    for (seed, scale) in scales.into_iter().enumerate() {
        for on_grid in [true, false] {
            let written = known(seed as u64, scale, on_grid);
            for name in ARRAY_FILES {
                let found = readings_back(&written, name, &ReadOptions::default());
                assert_same_readings(&found, &written, 0.0);
                let (a, b) = (found.not_heard().unwrap(), written.not_heard().unwrap());
                assert_eq!(a.entries, b.entries, "{name}");
                assert!(a.floor.iter().zip(&b.floor).all(|(a, b)| close(*a, *b, 1e-12)), "{name}");
                assert_eq!(found.repeats(), written.repeats(), "{name}");
                assert_eq!(found.noise_db(), written.noise_db(), "{name}");
                assert_eq!(found.time_s(), written.time_s(), "{name}");
                assert_eq!(found.gaps(), 1, "{name}");
            }
        }
    }
}

/// Two visits to one place are two rows, in `sites` and in `cells`.
#[test]
fn rows_at_one_place_are_read_back_as_they_are() {
    let cell = [(1, 2), (0, 0), (1, 2), (3, 1), (1, 2), (0, 0)];
    for between in [0.0, 0.25] {
        let sites = cell.map(|(x, y)| Site::new(f64::from(x) + between, f64::from(y))).to_vec();
        let power = Array2::from_shape_fn((6, 2), |(s, k)| noise(5, 2 * s + k));
        let written = Readings::new(sites, Values::Power(power), Scale::Absolute)
            .and_then(|r| r.with_grid(Some(Grid::new(5, 4, 1.0)?)))
            .and_then(|r| r.with_noise_db(Some(Array2::from_shape_fn((6, 2), |(s, _)| s as f64))))
            .and_then(|r| r.with_time_s(Some((0..6).map(f64::from).collect())))
            .unwrap();
        for name in ARRAY_FILES.into_iter().chain(["r.csv"]) {
            let options = match name {
                "r.csv" => ReadOptions { grid: Some((5, 4)), ..ReadOptions::default() },
                _ => ReadOptions::default(),
            };
            let found = readings_back(&written, name, &options);
            assert_eq!(found.sites(), written.sites(), "{name}");
            assert_eq!((found.sensors(), found.places()), (6, 3), "{name}");
            if name != "r.csv" {
                assert_same_readings(&found, &written, 0.0);
                assert_eq!(found.noise_db(), written.noise_db(), "{name}");
                assert_eq!(found.time_s(), written.time_s(), "{name}");
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.npz");
        write_readings(&path, &written, &WriteOptions::default()).unwrap();
        let found = inspect(&path, &ReadOptions::default()).unwrap();
        assert_eq!((found.sensors, found.places), (Some(6), Some(3)));
        assert!(found.to_string().contains("sensors    6 rows at 3 places"), "{found}");
        let arrays: Vec<String> = found.arrays.into_iter().map(|a| a.name).collect();
        let places = if between == 0.0 { "cells" } else { "sites" };
        assert!(arrays.iter().any(|name| name == places), "{arrays:?}");
        // Points may stand on one another.
        let path = folder.path().join("rows.geojson");
        write_readings(&path, &written, &WriteOptions::default()).unwrap();
        assert_eq!(read_readings(&path, &ReadOptions::default()).unwrap().value.sensors(), 6);
    }
}

#[test]
fn nothing_is_said_about_files_of_our_own() {
    let folder = tempfile::tempdir().unwrap();
    for name in ARRAY_FILES {
        let path = folder.path().join(name);
        write_map(&path, &dense(3, 4, 5, 2), &WriteOptions::default()).unwrap();
        assert_eq!(read_map(&path, &ReadOptions::default()).unwrap().warnings, [""; 0]);
        let path = folder.path().join(format!("r-{name}"));
        write_readings(&path, &known(1, Scale::Uncalibrated, true), &WriteOptions::default())
            .unwrap();
        assert_eq!(read_readings(&path, &ReadOptions::default()).unwrap().warnings, [""; 0]);
    }
}

/// The size of cells was once lost where a map had a single row.
#[test]
fn a_table_keeps_the_grid_of_maps_of_any_shape() {
    for (rows, cols) in [(1, 4), (4, 1), (1, 1), (3, 2)] {
        for (cell_m, origin) in [(0.1, Site::new(1e3, -7.7)), (25.0, Site::new(4.5e6, 5e5))] {
            let grid = Grid::new(rows, cols, cell_m).unwrap().with_origin(origin).unwrap();
            let power = Array3::from_elem((rows, cols, 1), 2e-7);
            let map = RadioMap::dense(grid, power, Scale::Absolute).unwrap();
            let found = there_and_back(&map, "m.csv", &WriteOptions::default());
            let expected = match rows * cols {
                // One cell has no size that a table could tell.
                1 => Grid::new(1, 1, 1.0).unwrap().with_origin(origin).unwrap(),
                _ => grid,
            };
            assert_eq!(found.grid(), expected, "{rows} x {cols}");
        }
    }
}

#[test]
fn a_table_says_what_was_not_heard_as_zero() {
    let written = known(2, Scale::Absolute, false);
    let found = readings_back(&written, "r.csv", &ReadOptions::default());
    assert_eq!(found.sites(), written.sites());
    assert_eq!(found.not_heard().unwrap().entries, written.not_heard().unwrap().entries);
    assert_eq!(found.gaps(), 1);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.csv");
    for (scale, unit) in [(Scale::Absolute, Some(Unit::Dbm)), (Scale::Uncalibrated, None)] {
        let options = WriteOptions { unit, ..WriteOptions::default() };
        let error = write_readings(&path, &known(2, scale, false), &options).unwrap_err();
        assert!(error.is_input() && error.to_string().contains("not heard"), "{error}");
        assert!(!path.exists());
    }
}

#[test]
fn a_table_in_another_unit_than_its_powers_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let power = || Array3::from_elem((2, 2, 1), 0.5);
    let grid = Grid::new(2, 2, 1.0).unwrap();
    for (scale, unit) in [
        (Scale::Uncalibrated, Unit::Dbm),
        (Scale::Uncalibrated, Unit::Linear),
        (Scale::paper(), Unit::Dbm),
        (Scale::Absolute, Unit::Db),
        (Scale::Absolute, Unit::Relative),
    ] {
        let map = RadioMap::dense(grid, power(), scale).unwrap();
        let options = WriteOptions { unit: Some(unit), ..WriteOptions::default() };
        let error = write_map(folder.path().join("m.csv"), &map, &options).unwrap_err();
        assert!(error.is_input() && error.to_string().contains("made up"), "{error}");
    }
}
