//! Surveys and simulations of others, where they are at hand: set PORTOLAN_DATA to their folder.
//! Without them the tests say so and pass.

use std::path::PathBuf;

use portolan::Grid;
use portolan::simulate::{Scenario, simulate};
use portolan_io::{ReadOptions, Unit, read_map, read_readings};

fn survey(name: &str) -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let folder = std::env::var_os("PORTOLAN_DATA").unwrap_or_else(|| beside.into());
    let path = PathBuf::from(folder).join(name);
    if !path.exists() {
        println!("skipped: {name} is not at hand");
        return None;
    }
    Some(path)
}

fn dbm() -> ReadOptions {
    ReadOptions { unit: Some(Unit::Dbm), cell_m: Some(1.0), ..ReadOptions::default() }
}

#[test]
fn a_map_from_the_authors_simulator() {
    let Some(path) = survey("authors/onebitdata1.mat") else { return };
    let map = read_map(&path, &ReadOptions::default()).unwrap().value;
    assert_eq!((map.grid().rows(), map.grid().cols(), map.bands()), (51, 51, 64));
    assert_eq!(map.factors().expect("factored").slf.dim(), (2, 51, 51));
    let var = Some("T_true".to_owned());
    let dense = read_map(&path, &ReadOptions { var, ..ReadOptions::default() }).unwrap().value;
    let (a, b) = (map.to_dense(), dense.to_dense());
    let peak = b.iter().copied().fold(0.0, f64::max);
    assert!(a.iter().zip(b.iter()).all(|(a, b)| (a - b).abs() <= 1e-9 * peak));
}

#[test]
fn the_mannheim_survey_in_both_formats() {
    let Some(tensor) = survey("mannheim/formatted_data.mat") else { return };
    let Some(table) = survey("mannheim/mannheim_median_dbm.csv") else { return };
    let map = read_map(&tensor, &dbm()).unwrap().value.to_dense().into_owned();
    assert_eq!(map.dim(), (34, 14, 10));
    let readings = read_readings(&table, &dbm()).unwrap().value;
    assert_eq!((readings.sensors(), readings.bands()), (166, 9));
    assert_eq!(readings.freq_hz().unwrap()[0], 2.412e9);
    let power = readings.power();
    let grid = Grid::new(34, 14, 1.0).unwrap();
    for (sensor, cell) in readings.cells(grid).unwrap().iter().enumerate() {
        for band in 0..9 {
            let (a, b) = (power[[sensor, band]], map[[cell.row, cell.col, band]]);
            assert!((a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-12 * b, "{cell:?} {band}");
        }
    }
    let error = read_map(&tensor, &ReadOptions::default()).unwrap_err().to_string();
    assert!(error.contains("--unit dbm"), "{error}");
}

#[test]
fn a_ray_traced_city() {
    for (band, name) in ["1750", "2750", "3750", "4750", "5750"].iter().enumerate() {
        let file = format!("radiogat/receivedpower_{name}MHz_mat_TOTAL_REC_{name}MHz_1.mat");
        let Some(path) = survey(&file) else { return };
        let var = Some(format!("powers{}", band + 1));
        let map = read_map(&path, &ReadOptions { var, ..dbm() }).unwrap().value;
        assert_eq!((map.grid().rows(), map.grid().cols(), map.bands()), (445, 484, 1));
        let layer = map.band(0);
        assert!(layer.iter().any(|v| v.is_nan()), "no buildings");
        assert!(layer.iter().all(|v| v.is_nan() || (*v > 0.0 && *v < 1e3)));
    }
}

/// Median absolute second difference along rows of a field in dB: how rough shadowing is from cell
/// to cell, with the smooth path loss taken out.
fn roughness(field: ndarray::ArrayView2<'_, f64>) -> f64 {
    let mut differences: Vec<f64> = field
        .rows()
        .into_iter()
        .flat_map(|row| {
            let db: Vec<f64> = row.iter().map(|v| 10.0 * v.log10()).collect();
            db.windows(3).map(|w| (w[0] - 2.0 * w[1] + w[2]).abs()).collect::<Vec<_>>()
        })
        .collect();
    differences.sort_by(f64::total_cmp);
    differences[differences.len() / 2]
}

/// The authors' map has 51 x 51 cells, shadowing of 4 dB and a decorrelation of 90 m.
#[test]
fn our_simulator_is_as_rough_as_the_authors() {
    let Some(path) = survey("authors/onebitdata1.mat") else { return };
    let map = read_map(path, &ReadOptions::default()).unwrap().value;
    let theirs = &map.factors().expect("the authors' map has factors").slf;
    let scenario =
        Scenario { emitters: 8, shadow_db: 4.0, ..Scenario::new(Grid::new(51, 51, 1.0).unwrap()) };
    let simulated = simulate(&scenario).unwrap();
    let ours: Vec<f64> =
        simulated.factors().unwrap().slf.outer_iter().map(|slf| roughness(slf)).collect();
    let mean = ours.iter().sum::<f64>() / ours.len() as f64;
    for slf in theirs.outer_iter() {
        let ratio = roughness(slf) / mean;
        assert!((0.85..1.15).contains(&ratio), "{} against {mean}", roughness(slf));
    }
}
