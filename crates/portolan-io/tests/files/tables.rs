//! Tables as people write them, and what is said about the wrong ones.

use portolan::{Cell, Grid, Readings, Scale, Site};
use portolan_io::{Loaded, ReadOptions, Result, Unit, read_map, read_readings};

fn load(text: impl AsRef<[u8]>, options: &ReadOptions) -> Result<Loaded<Readings>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("readings.csv");
    std::fs::write(&path, text).unwrap();
    read_readings(&path, options)
}

fn plain() -> ReadOptions {
    ReadOptions::default()
}

fn on_grid(rows: usize, cols: usize) -> ReadOptions {
    ReadOptions { grid: Some((rows, cols)), cell_m: Some(1.0), ..plain() }
}

fn complaint(text: &str, options: &ReadOptions) -> String {
    let error = load(text, options).unwrap_err();
    assert!(error.is_input());
    let message = error.to_string();
    assert!(!message.contains('\n'), "{message}");
    message.split_once("readings.csv: ").unwrap().1.to_owned()
}

#[test]
fn wide_in_metres() {
    let text = "x_m,y_m,dbm_2412MHz,mw_2.422GHz\n10,0,-30,0.5\n12.4,7.6,,0.25\n";
    let origin = ReadOptions {
        origin_m: Some((10.0, 0.0)),
        cell_m: Some(2.0),
        grid: Some((3, 5)),
        ..plain()
    };
    let loaded = load(text, &origin).unwrap();
    let readings = loaded.value;
    let grid = readings.grid().unwrap();
    assert_eq!(readings.sites(), [Site::new(10.0, 0.0), Site::new(12.4, 7.6)]);
    assert_eq!(readings.cells(grid).unwrap(), [Cell::new(0, 0), Cell::new(1, 4)]);
    assert_eq!(readings.freq_hz().unwrap(), [2.412e9, 2.422e9]);
    let power = readings.power();
    assert!((power[[0, 0]] - 1e-3).abs() < 1e-15 && power[[1, 0]].is_nan());
    assert_eq!((power[[0, 1]], power[[1, 1]]), (0.5, 0.25));
    assert_eq!((grid.cell_m(), grid.origin()), (2.0, Site::new(10.0, 0.0)));
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
}

#[test]
fn as_spreadsheets_save_them() {
    let text = "\u{feff}\"row\";\"col\";\"dbm_2412MHz\"\r\n0;0;\"-30,5\"\r\n\r\n1;2;-40\r\n";
    let power = load(text, &on_grid(2, 3)).unwrap().value.power();
    assert!((power[[0, 0]] - 10f64.powf(-3.05)).abs() < 1e-15);
    let text = "# a survey\nrow\tcol\tdbm_1GHz\n0\t0\tNA\n1\t1\t-3\n0\t1\tNaN\n";
    assert_eq!(load(text, &on_grid(2, 2)).unwrap().value.gaps(), 2);
}

#[test]
fn long_form() {
    let text = "x_m,y_m,freq_mhz,power_dbm\n0,0,2422,-20\n0,0,2412,-10\n1,1,2412,0\n0,0,2412,-10\n";
    let Loaded { value, warnings } = load(text, &on_grid(2, 2)).unwrap();
    assert_eq!(value.freq_hz().unwrap(), [2.412e9, 2.422e9]);
    let power = value.power();
    assert!((power[[0, 0]] - 0.1).abs() < 1e-15 && (power[[0, 1]] - 0.01).abs() < 1e-15);
    // A band that is read again at a place is in another row of that place.
    assert_eq!((value.sensors(), value.places()), (3, 2));
    assert!((power[[1, 0]] - 0.1).abs() < 1e-15 && power[[1, 1]].is_nan());
    assert!(power[[2, 0]] == 1.0 && power[[2, 1]].is_nan());
    assert!(warnings.is_empty() && value.repeats().is_none(), "{warnings:?}");
    let text = "row,col,freq_hz,power\n0,0,1e9,1\n1,1,1e9,2\n";
    let linear = ReadOptions { unit: Some(Unit::Linear), ..on_grid(2, 2) };
    assert_eq!(load(text, &linear).unwrap().value.power()[[1, 0]], 2.0);
    assert!(complaint(text, &on_grid(2, 2)).contains("pass --unit dbm or --unit linear"));
}

#[test]
fn what_was_assumed_is_said() {
    let text = "row,col,dbm_1GHz\n0,0,-30\n4,2,-40\n4,2,-50\n";
    let Loaded { value, warnings } = load(text, &plain()).unwrap();
    assert_eq!((value.grid(), value.sensors()), (Some(Grid::new(5, 3, 1.0).unwrap()), 3));
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("5 x 3 holds every position"), "{warnings:?}");
    let text = "x_m,y_m,dbm_1GHz\n0,0,-30\n4,2,-40\n";
    let Loaded { warnings, .. } =
        load(text, &ReadOptions { grid: Some((5, 3)), ..plain() }).unwrap();
    assert!(warnings.len() == 1 && warnings[0].contains("taken as 1 m"), "{warnings:?}");
}

/// Places in metres were once moved to the cells of a grid that nobody had asked for.
#[test]
fn places_in_metres_stay_where_they_are() {
    let text = "x_m,y_m,dbm_1GHz\n0.25,-3,-30\n4.5e6,2,-40\n";
    let Loaded { value, warnings } = load(text, &plain()).unwrap();
    assert_eq!(value.sites(), [Site::new(0.25, -3.0), Site::new(4.5e6, 2.0)]);
    assert_eq!((value.grid(), value.scale()), (None, Scale::Absolute));
    assert!(warnings.is_empty(), "{warnings:?}");
}

#[test]
fn a_table_where_a_map_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("truth.csv");
    std::fs::write(&path, "row,col,mw_1GHz\n0,0,1\n1,1,4\n1,1,2\n").unwrap();
    let Loaded { value, warnings } = read_map(&path, &on_grid(2, 2)).unwrap();
    let dense = value.to_dense();
    assert_eq!(dense[[0, 0, 0]], 1.0);
    assert!((dense[[1, 1, 0]] - 8f64.sqrt()).abs() < 1e-12, "the mean in dB");
    assert!(dense[[0, 1, 0]].is_nan());
    assert!(warnings.iter().any(|w| w.contains("2 of 4 cells")), "{warnings:?}");
}

#[test]
fn complaints_name_line_and_column() {
    let grid = on_grid(3, 3);
    for (text, expected) in [
        ("row,col,dbm_1GHz\n0,0,-30\n1,x,-40\n", "line 3, column 2: 'x', expected a finite number"),
        ("row,col,dbm_1GHz\n0,0,-30\n1,,-40\n", "line 3, column 2: '', expected a position"),
        ("row,col,dbm_1GHz\n0,0.5,-30\n", "line 2, column 2: '0.5', expected a whole number"),
        ("row,col,dbm_1GHz\n0,-1,-30\n", "line 2, column 2: '-1', -1 is off the grid"),
        ("row,col,dbm_1GHz\n0,3,-30\n", "line 2: row 0, col 3 is off the 3 x 3 grid"),
        ("row,col,mw_1GHz\n0,0,-30\n", "line 2, column 3: '-30', power in linear units"),
        ("row,col,dbm_1GHz\n0,0,inf\n", "line 2, column 3: 'inf', expected a finite number"),
        ("row,col,dbm_1GHz\n0,0,1e9\n", "line 2, column 3: '1e9', expected a power"),
        ("row,col,dbm_1GHz\n0,0\n", "line 2: 2 fields, expected 3"),
        ("row,col,freq_hz,power_mw\n0,0,0,1\n", "line 2, column 3: '0', expected a positive"),
        ("row,col,1GHz\n0,0,1\n", "line 1, column 3 '1GHz': its unit is not clear"),
        ("0,0,1\n", "line 1: expected a header"),
        ("row,col,dbm_1GHz\n", "a header but no readings"),
        ("row,col,dbm_1GHz\n0,0,-3\n", "1 sensor(s): a map needs"),
        ("row,col,mw_1GHz\n0,0,0\n1,1,0\n", "all readings are zero"),
        ("row,col,mw_1GHz,mw_2GHz\n0,0,1,\n1,1,1,\n", "band 1 has no reading"),
    ] {
        let message = complaint(text, &grid);
        assert!(message.starts_with(expected), "{message}\n{expected}");
    }
}

#[test]
fn a_small_table_cannot_claim_a_huge_one() {
    // Far apart is no trouble to readings; a row beyond any grid is.
    let far = "row,col,dbm_1GHz\n0,0,-3\n200000000,200000000,-3\n";
    assert_eq!(load(far, &plain()).unwrap().value.sensors(), 2);
    let beyond = "row,col,dbm_1GHz\n0,0,-3\n20000000000,0,-3\n";
    assert!(complaint(beyond, &plain()).contains("is off the grid"));
    let mut long = String::from("row,col,freq_hz,power_mw\n");
    for n in 0..20_000 {
        long.push_str(&format!("{n},0,{},1\n", n + 1));
    }
    assert!(complaint(&long, &plain()).contains("too few places share a band"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wide.csv");
    std::fs::write(&path, "row,col,mw_1GHz\n0,0,1\n16383,16383,1\n").unwrap();
    assert!(read_map(&path, &plain()).unwrap_err().to_string().contains("too large for a table"));
    std::fs::write(&path, far).unwrap();
    assert!(read_map(&path, &plain()).unwrap_err().to_string().contains("too large for a table"));
}
