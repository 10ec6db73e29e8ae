use std::path::PathBuf;

use ndarray::{Array2, array};
use tempfile::TempDir;

use super::*;
use crate::mat5_write;
use crate::store::NamedArray;

/// A folder of band files.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Two bands of 2 x 3 cells; the higher frequency first in the folder's own order.
    fn small() -> Self {
        let folder = Self::new();
        folder.band("receivedpower_900MHz_mat_X_2.mat", "powers1", small());
        folder.band("receivedpower_1750MHz_mat_X_2.mat", "powers2", small().mapv(lower));
        folder.text("1 1\n2 3 1 2\n");
        folder
    }

    fn path(&self) -> PathBuf {
        self.0.path().to_owned()
    }

    fn band(&self, file: &str, name: &'static str, dbm: Array2<f64>) {
        self.variables(file, &[(name, dbm)]);
    }

    fn variables(&self, file: &str, variables: &[(&'static str, Array2<f64>)]) {
        let arrays: Vec<NamedArray<'_>> = variables
            .iter()
            .map(|(name, values)| NamedArray::real(*name, values.view().into_dyn().into()))
            .collect();
        let mut bytes = Vec::new();
        mat5_write::write(&arrays, &mut bytes).unwrap();
        std::fs::write(self.path().join(file), bytes).unwrap();
    }

    fn text(&self, stations: &str) {
        std::fs::write(self.path().join(STATIONS), stations).unwrap();
    }

    fn refused(&self, words: &[&str]) {
        let error = city(self.path()).unwrap_err();
        assert!(error.is_input());
        let error = error.to_string();
        for word in words {
            assert!(error.contains(word), "expected {word:?} in {error}");
        }
    }
}

fn small() -> Array2<f64> {
    array![[-50.0, 0.0, -60.0], [-70.0, -80.0, -90.0]]
}

fn lower(dbm: f64) -> f64 {
    if dbm == 0.0 { 0.0 } else { dbm - 3.0 }
}

#[test]
fn bands_buildings_and_stations() {
    let city = city(Folder::small().path()).unwrap();
    assert_eq!(city.map.freq_hz(), Some(&[9e8, 1.75e9][..]));
    let power = city.map.to_dense();
    assert_eq!(power.dim(), (2, 3, 2));
    assert!((power[[1, 0, 0]] / 1e-7 - 1.0).abs() < 1e-12);
    assert!((power[[1, 2, 1]] / 10f64.powf(-9.3) - 1.0).abs() < 1e-12);
    assert!(power[[0, 1, 0]].is_nan() && power[[0, 1, 1]].is_nan());
    assert_eq!(city.buildings, array![[false, true, false], [false, false, false]]);
    // The second line, counted from 1 in the file.
    assert_eq!(city.stations, [Cell::new(1, 2), Cell::new(0, 1)]);
}

#[test]
fn a_crop_takes_its_stations_along() {
    let city = city(Folder::small().path()).unwrap();
    let part = city.crop(0, 1, 2, 2).unwrap();
    assert_eq!(part.map.to_dense()[[1, 1, 1]], city.map.to_dense()[[1, 2, 1]]);
    assert_eq!(part.buildings, array![[true, false], [false, false]]);
    assert_eq!(part.stations, [Cell::new(1, 1), Cell::new(0, 0)]);
    assert_eq!(part.map.freq_hz(), city.map.freq_hz());
    assert_eq!(city.crop(1, 0, 1, 2).unwrap().stations, []);
    assert_eq!(city.crop(0, 0, 2, 3).unwrap().buildings, city.buildings);
    for (row, col, rows, cols) in [(1, 0, 2, 1), (0, 0, 0, 1), (0, 4, 1, 1), (usize::MAX, 0, 1, 1)]
    {
        assert!(city.crop(row, col, rows, cols).is_err());
    }
}

#[test]
fn stations_may_be_absent_but_not_wrong() {
    let folder = Folder::small();
    for (stations, words) in [
        ("1 1\n", "line 2: expected the stations of area 2"),
        ("1 1\n2\n", "line 2: 1 numbers"),
        ("1 1\n\n", "line 2: 0 numbers"),
        ("1 1\n2 x\n", "line 2: 'x'"),
        ("1 1\n0 1\n", "line 2: '0'"),
        ("1 1\n3 1\n", "line 2: station 3 1 is off the map of 2 x 3"),
    ] {
        folder.text(stations);
        folder.refused(&[STATIONS, words]);
    }
    std::fs::remove_file(folder.path().join(STATIONS)).unwrap();
    assert_eq!(city(folder.path()).unwrap().stations, []);
}

#[test]
fn folders_that_are_no_city() {
    let folder = Folder::new();
    folder.refused(&["no bands", "receivedpower_1750MHz"]);
    assert!(city(folder.path().join("absent")).is_err());
    for name in ["receivedpower_MHz_1.mat", "receivedpower_17GHz_1.mat", "receivedpower_5MHz_x.mat"]
    {
        let folder = Folder::new();
        folder.band(name, "powers1", small());
        folder.refused(&[name, "expected a name such as"]);
    }
    let folder = Folder::small();
    folder.band("receivedpower_2000MHz_mat_X_3.mat", "powers3", small());
    folder.refused(&["not bands of one area"]);
    let folder = Folder::small();
    folder.band("receivedpower_900MHz_again_2.mat", "powers1", small());
    folder.refused(&["not bands of one area"]);
}

#[test]
fn band_files_that_do_not_fit() {
    const LAST: &str = "receivedpower_2000MHz_mat_X_2.mat";
    let folder = Folder::small();
    folder.band(LAST, "powers3", array![[-50.0, -50.0]]);
    folder.refused(&[LAST, "1 x 2 cells, expected 2 x 3"]);
    folder.band(LAST, "powers3", array![[-50.0, -55.0, -60.0], [-70.0, -80.0, -90.0]]);
    folder.refused(&["row 0, col 1", "bands 0 and 2"]);
    folder.band(LAST, "other", small());
    folder.refused(&[LAST, "0 variables", "'other'"]);
    folder.variables(LAST, &[("powers1", small()), ("powers2", small())]);
    folder.refused(&[LAST, "2 variables"]);
    for strange in [f64::NAN, f64::INFINITY, 101.0, -1e9] {
        let mut dbm = small();
        dbm[[1, 2]] = strange;
        folder.band(LAST, "powers3", dbm);
        folder.refused(&[LAST, "row 1, col 2"]);
    }
    std::fs::write(folder.path().join(LAST), b"not a MATLAB file").unwrap();
    folder.refused(&[LAST, "MATLAB v5"]);
}
