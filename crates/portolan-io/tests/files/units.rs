//! What the numbers of a file mean: its own word, the caller's, or what is said to be assumed.

use ndarray::{Array1, Array2, Array3};
use portolan::{Scale, Site};
use portolan_io::{
    Element, Loaded, MapLayout, MapWriter, NamedArray, ReadOptions, Unit, read_map, read_map_part,
    read_readings,
};

fn unit(unit: Unit) -> ReadOptions {
    ReadOptions { unit: Some(unit), ..ReadOptions::default() }
}

/// A map of 2 x 3 cells and 1 band in a file with further arrays.
fn map(values: [f64; 6], more: &[NamedArray<'_>]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let (arrays, element) = (vec!["map"], Element::Float64);
    let layout = MapLayout { rows: 2, cols: 3, bands: 1, arrays, element };
    let mut writer = MapWriter::create(folder.path().join("m.npz"), &layout, more, false).unwrap();
    let values = Array3::from_shape_vec((2, 3, 1), values.to_vec()).unwrap();
    writer.write_rows("map", values.view()).unwrap();
    writer.finish().unwrap();
    folder
}

/// The same numbers as readings of six sensors.
fn readings(values: [f64; 6], more: &[NamedArray<'_>]) -> tempfile::TempDir {
    let sites = Array2::from_shape_fn((6, 2), |(s, axis)| (s * (axis + 1)) as f64 / 4.0);
    let values = Array1::from(values.to_vec());
    let own = [
        NamedArray::real("sites", sites.into_dyn().into()),
        NamedArray::real("values", values.into_dyn().into()),
    ];
    // A map beside them would be read first.
    let folder = tempfile::tempdir().unwrap();
    let (arrays, element) = (vec!["other"], Element::Float64);
    let layout = MapLayout { rows: 1, cols: 1, bands: 1, arrays, element };
    let all = [&own[..], more].concat();
    let mut writer = MapWriter::create(folder.path().join("r.npz"), &layout, &all, false).unwrap();
    writer.write_rows("other", Array3::zeros((1, 1, 1)).view()).unwrap();
    writer.finish().unwrap();
    folder
}

const LINEAR: [f64; 6] = [1e-4, 2e-5, 3e-5, 4e-6, 5e-6, 6e-6];
const DECIBELS: [f64; 6] = [-40.0, -50.0, -60.0, 3.0, -70.0, -80.0];

#[test]
fn the_unit_of_an_archive_is_its_own_word() {
    for (name, scale) in [
        ("dbm", Scale::Absolute),
        ("linear", Scale::Absolute),
        ("db", Scale::Uncalibrated),
        ("relative", Scale::paper()),
    ] {
        let folder = map(LINEAR, &[NamedArray::text("unit", name)]);
        let Loaded { value, warnings } =
            read_map(folder.path().join("m.npz"), &ReadOptions::default()).unwrap();
        assert_eq!((value.scale(), value.to_dense()[[0, 1, 0]]), (scale, 2e-5), "{name}");
        assert!(warnings.is_empty(), "{name}: {warnings:?}");
        let folder = readings(LINEAR, &[NamedArray::text("unit", name)]);
        let Loaded { value, warnings } =
            read_readings(folder.path().join("r.npz"), &ReadOptions::default()).unwrap();
        assert_eq!((value.scale(), value.power()[[1, 0]]), (scale, 2e-5), "{name}");
        assert_eq!(value.sites()[1], Site::new(0.25, 0.5));
        assert!(warnings.is_empty() && value.grid().is_none(), "{name}: {warnings:?}");
    }
}

#[test]
fn values_in_decibels_are_known_by_a_negative_one() {
    for (name, scale) in [("dbm", Scale::Absolute), ("db", Scale::Uncalibrated)] {
        let folder = map(DECIBELS, &[NamedArray::text("unit", name)]);
        let found = read_map(folder.path().join("m.npz"), &ReadOptions::default()).unwrap().value;
        assert_eq!(found.scale(), scale);
        assert!((found.to_dense()[[0, 1, 0]] - 1e-5).abs() < 1e-18);
        assert!((found.to_dense()[[1, 0, 0]] - 10f64.powf(0.3)).abs() < 1e-12);
        let folder = readings(DECIBELS, &[NamedArray::text("unit", name)]);
        let path = folder.path().join("r.npz");
        let found = read_readings(path, &ReadOptions::default()).unwrap().value;
        assert!((found.power()[[1, 0]] - 1e-5).abs() < 1e-18 && found.scale() == scale);
    }
    for name in ["linear", "relative"] {
        let folder = map(DECIBELS, &[NamedArray::text("unit", name)]);
        let error = read_map(folder.path().join("m.npz"), &ReadOptions::default()).unwrap_err();
        assert!(error.is_input() && error.to_string().contains("--unit dbm"), "{error}");
    }
}

#[test]
fn an_archive_without_a_unit_is_linear_and_that_is_said() {
    let folder = map(LINEAR, &[]);
    let path = folder.path().join("m.npz");
    let Loaded { value, warnings } = read_map(&path, &ReadOptions::default()).unwrap();
    assert_eq!(value.scale(), Scale::Absolute);
    assert!(warnings.len() == 1 && warnings[0].contains("the unit is not given"), "{warnings:?}");
    let Loaded { value, warnings } = read_map(&path, &unit(Unit::Relative)).unwrap();
    assert!(value.scale() == Scale::paper() && warnings.is_empty(), "{warnings:?}");
    let folder = readings(LINEAR, &[NamedArray::scalar("offset", 1e-3)]);
    let path = folder.path().join("r.npz");
    let Loaded { value, warnings } = read_readings(&path, &ReadOptions::default()).unwrap();
    assert_eq!(value.scale(), Scale::relative(1e-3).unwrap());
    assert!(warnings[0].contains("taken as relative"), "{warnings:?}");
}

#[test]
fn words_that_are_no_unit_and_offsets_that_are_none_are_refused() {
    for more in [
        vec![NamedArray::text("unit", "watt")],
        vec![NamedArray::text("unit", "")],
        vec![NamedArray::text("unit", "relative"), NamedArray::scalar("offset", 0.0)],
        vec![NamedArray::text("unit", "relative"), NamedArray::scalar("offset", f64::NAN)],
        vec![NamedArray::text("unit", "relative"), NamedArray::vector("offset", &[1.0, 2.0])],
        vec![NamedArray::text("unit", "dbm"), NamedArray::vector("origin_m", &[1.0])],
        vec![NamedArray::text("unit", "dbm"), NamedArray::vector("origin_m", &[1.0, f64::NAN])],
        vec![NamedArray::text("unit", "dbm"), NamedArray::vector("noise_db", &[1.0, 2.0])],
        vec![NamedArray::text("unit", "dbm"), NamedArray::vector("noise_db", &[-1.0])],
    ] {
        let folder = map(LINEAR, &more);
        let error = read_map(folder.path().join("m.npz"), &ReadOptions::default()).unwrap_err();
        assert!(error.is_input(), "{error}");
    }
}

#[test]
fn not_heard_needs_a_floor_below_what_was_heard() {
    let values = [1e-4, f64::NAN, 3e-5, 4e-6, 5e-6, 6e-6];
    let silent = Array1::from(vec![0.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
    let mark = || NamedArray::real("not_heard", silent.view().into_dyn().into());
    let dbm = || NamedArray::text("unit", "dbm");
    let read = |more: &[NamedArray<'_>]| {
        let folder = readings(values, more);
        read_readings(folder.path().join("r.npz"), &ReadOptions::default())
    };
    let fine = read(&[dbm(), mark(), NamedArray::scalar("floor_dbm", -60.0)]).unwrap().value;
    let silent_entries = fine.not_heard().unwrap();
    assert!(silent_entries.entries[[1, 0]] && (silent_entries.floor[0] - 1e-6).abs() < 1e-18);
    assert_eq!(fine.gaps(), 0);
    let error = read(&[dbm(), mark()]).unwrap_err().to_string();
    assert!(error.contains("'floor_dbm'"), "{error}");
    // One of five heard readings lies below: more than 5 %.
    let error = read(&[dbm(), mark(), NamedArray::scalar("floor_dbm", -53.0)]).unwrap_err();
    assert!(error.is_input() && error.to_string().contains("-53"), "{error}");
    let heard = Array1::from(vec![1.0; 6]);
    let all = NamedArray::real("not_heard", heard.view().into_dyn().into());
    assert!(read(&[dbm(), all, NamedArray::scalar("floor_dbm", -90.0)]).unwrap_err().is_input());
}

#[test]
fn a_part_of_a_map_knows_what_the_whole_does() {
    let more = [
        NamedArray::text("unit", "relative"),
        NamedArray::scalar("offset", 1e-3),
        NamedArray::vector("origin_m", &[10.0, -4.0]),
        NamedArray::scalar("cell_m", 2.0),
        NamedArray::vector("freq_hz", &[2.412e9]),
        NamedArray::vector("noise_db", &[1.5]),
    ];
    let folder = map(LINEAR, &more);
    let path = folder.path().join("m.npz");
    let whole = read_map(&path, &ReadOptions::default()).unwrap().value;
    let region = portolan::Region { low: Site::new(11.0, -3.0), high: Site::new(13.0, 1.0) };
    let part = read_map_part(&path, region, &ReadOptions::default()).unwrap().value;
    assert_eq!(part.grid().origin(), Site::new(12.0, -2.0));
    assert_eq!((part.grid().rows(), part.grid().cols()), (1, 2));
    assert_eq!(part.to_dense().iter().copied().collect::<Vec<_>>(), LINEAR[4..]);
    assert_eq!((part.scale(), part.labels()), (whole.scale(), whole.labels()));
    assert_eq!((whole.noise_db(), part.noise_db()), (Some(&[1.5][..]), Some(&[1.5][..])));
}
