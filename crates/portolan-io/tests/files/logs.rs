//! Logs of frames, points and bare arrays: places on Earth, transmitters as bands, what was not
//! heard.

use std::io::Write;
use std::path::{Path, PathBuf};

use portolan::{Crs, Readings};
use portolan_io::{
    BandBy, ColumnNames, Loaded, ReadOptions, Result, Silence, SurveyOptions, Unit, read_readings,
};

fn recipe(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/recipes").join(name)
}

fn load(text: &str, options: &ReadOptions) -> Result<Loaded<Readings>> {
    let mut file = tempfile::Builder::new().suffix(".csv").tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    read_readings(file.path(), options)
}

fn gathered(metres: f64) -> ReadOptions {
    let survey = SurveyOptions { gather_m: Some(metres), ..SurveyOptions::default() };
    ReadOptions { survey, ..ReadOptions::default() }
}

fn dbm(options: ReadOptions) -> ReadOptions {
    ReadOptions { unit: Some(Unit::Dbm), ..options }
}

#[test]
fn wigle_1_6_and_1_4() {
    let Loaded { value: new, warnings } =
        read_readings(recipe("wigle.csv"), &gathered(5.0)).unwrap();
    assert_eq!(new.crs(), Some(Crs::Epsg(32632)));
    assert_eq!(new.bands(), 6, "{warnings:?}");
    assert!(
        warnings.iter().any(|w| w.contains("1 of 7 bands heard at fewer than 5")),
        "{warnings:?}"
    );
    assert_eq!(new.labels().label(0), "02:00:00:aa:00:01");
    assert_eq!(new.freq_hz().unwrap()[3], 5.18e9);
    assert!(new.time_s().is_some() && new.repeats().is_none_or(|n| n.iter().all(|n| *n >= 1.0)));
    let Loaded { value: old, warnings } =
        read_readings(recipe("kismet.wiglecsv"), &gathered(5.0)).unwrap();
    assert!(warnings.iter().any(|w| w.contains("level of 0")), "{warnings:?}");
    assert_eq!((old.bands(), old.freq_hz().unwrap()[3]), (6, 5.18e9));
    let by = |by: BandBy| {
        let mut options = gathered(5.0);
        options.survey.band_by = Some(by);
        read_readings(recipe("wigle.csv"), &options).unwrap().value
    };
    assert_eq!(by(BandBy::Ssid).labels().names().unwrap(), ["cafe", "guest", "lab", "library"]);
    let channels = by(BandBy::Channel);
    assert_eq!(channels.labels().label(1), "channel 6");
    assert_eq!(by(BandBy::Frequency).freq_hz(), channels.freq_hz());
}

#[test]
fn silence_and_rare_bands() {
    let text = "lat,lon,bssid,rssi_dbm\n49.1,8.1,a,-60\n49.1,8.1,b,-70\n49.2,8.2,a,-65\n\
                49.3,8.3,a,-66\n49.3,8.3,b,-72\n49.3,8.3,b,-74\n,,a,-60\n";
    let mut options = ReadOptions::default();
    options.survey.min_places = Some(2);
    options.not_heard = Some(Silence::Absent);
    let Loaded { value: found, warnings } = load(text, &options).unwrap();
    assert_eq!((found.sensors(), found.places(), found.bands(), found.gaps()), (4, 3, 2, 1));
    let silent = found.not_heard().unwrap();
    assert!(silent.entries[[1, 1]] && silent.entries.iter().filter(|s| **s).count() == 1);
    for (row, level) in [(2, -72.0), (3, -74.0)] {
        assert!((10.0 * found.power()[[row, 1]].log10() - level).abs() < 1e-9);
    }
    assert!(found.repeats().is_none());
    for words in ["without a position", "1 band(s) absent where others"] {
        assert!(warnings.iter().any(|w| w.contains(words)), "{words}: {warnings:?}");
    }
    options.survey.min_places = Some(4);
    assert!(load(text, &options).unwrap_err().to_string().contains("--min-places"));
}

#[test]
fn columns_by_name_and_columns_told() {
    let text = "Easting;Northing;Operator;Freq_MHz;Level\n1;2;x;100,5;-60\n3;4;x;100,5;-61\n";
    let found = load(text, &dbm(ReadOptions::default())).unwrap().value;
    assert_eq!(found.freq_hz().unwrap(), [100.5e6]);
    let error = load(text, &ReadOptions::default()).unwrap_err().to_string();
    assert!(error.contains("'Level'") && error.contains("--unit dbm"), "{error}");
    let wide =
        "WAP1,WAP2,LONGITUDE,LATITUDE,FLOOR\n-50,100,-7500.5,4864900\n-60,-70,-7490,4864920,1\n";
    let wide = wide.replace("4864900\n", "4864900,1\n");
    let mut options = dbm(ReadOptions::default());
    options.survey.columns = Some(ColumnNames::parse("x=LONGITUDE,y=LATITUDE,bands=WAP*").unwrap());
    options.not_heard = Some(Silence::Codes(vec![100.0]));
    let Loaded { value: found, warnings } = load(&wide, &options).unwrap();
    assert_eq!((found.labels().label(1).as_str(), found.crs()), ("WAP2", None));
    assert!(found.not_heard().unwrap().entries[[0, 1]]);
    assert!(warnings.iter().any(|w| w.contains("'FLOOR'")), "{warnings:?}");
    for (header, words) in [
        ("lat,lon,height,name\n", "columns seen: 'lat', 'lon', 'height', 'name'"),
        ("lat,lat_deg,lon,rssi_dbm\n", "says the same as 'lat'"),
        ("lat,rssi_dbm,bssid\n", "lat,lon"),
        ("lat,lon,bssid\n", "no column of values"),
    ] {
        let error = load(&format!("{header}1,2,3,4\n"), &ReadOptions::default()).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
    let off = "lat,lon,dbm_1GHz\n49,8,-60\n95,8,-61\n";
    assert!(load(off, &ReadOptions::default()).unwrap_err().to_string().contains("line 3"));
    let far = "lat,lon,dbm_1GHz\n49,8,-60\n49,108,-61\n";
    assert!(load(far, &ReadOptions::default()).unwrap_err().to_string().contains("too far"));
}

#[test]
fn degrees_go_to_the_system_that_is_asked_for() {
    let text = "lat,lon,dbm_1GHz\n49.4875,8.466,-60\n49.4885,8.466,-61\n";
    let at = |crs: &str| {
        let options = ReadOptions { crs: Some(crs.parse().unwrap()), ..ReadOptions::default() };
        load(text, &options).map(|found| found.value)
    };
    let local = at("local:49.4875,8.466").unwrap();
    assert!(local.sites()[0].distance_m(portolan::Site::new(0.0, 0.0)) < 1e-6);
    assert!((local.sites()[1].y_m - 111.2).abs() < 0.1);
    assert_eq!(at("EPSG:25832").unwrap().crs(), Some(Crs::Epsg(25832)));
    assert!(at("EPSG:4326").unwrap_err().to_string().contains("degrees"));
    assert!(at("EPSG:32650").unwrap_err().to_string().contains("too far"));
}

#[test]
fn points_and_bare_arrays() {
    let found = read_readings(recipe("spots.geojson"), &ReadOptions::default()).unwrap().value;
    assert_eq!(found.labels().names().unwrap(), ["cafe", "lab", "library"]);
    assert_eq!(found.crs(), Some(Crs::Epsg(32632)));
    let folder = tempfile::tempdir().unwrap();
    let npy = |name: &str, descr: &str, shape: &str, data: &[u8]| {
        let mut header =
            format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
        while (10 + header.len() + 1) % 64 != 0 {
            header.push(' ');
        }
        header.push('\n');
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.bytes());
        bytes.extend(data);
        std::fs::write(folder.path().join(name), bytes).unwrap();
    };
    let levels: Vec<u8> = (0..12).flat_map(|i| (-50.0 - f64::from(i)).to_le_bytes()).collect();
    npy("map.npy", "<f8", "(3, 4)", &levels);
    npy("mask.npy", "|b1", "(3, 4)", &[1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1]);
    npy("small.npy", "|b1", "(2, 4)", &[1; 8]);
    let with = |mask: &str| {
        let mut options = dbm(ReadOptions::default());
        options.survey.measured = Some(folder.path().join(mask));
        read_readings(folder.path().join("map.npy"), &options).map(|found| found.value)
    };
    let found = with("mask.npy").unwrap();
    assert_eq!((found.sensors(), found.sites()[1]), (3, portolan::Site::new(1.0, 1.0)));
    assert!((10.0 * found.power()[[1, 0]].log10() + 55.0).abs() < 1e-9);
    assert!(with("small.npy").unwrap_err().to_string().contains("expected 3 x 4"));
}

#[test]
fn options_that_say_nothing_are_refused() {
    let mut options = ReadOptions::default();
    options.survey.band_width_hz = Some(1e6);
    let error = load("x_m,y_m,dbm_1GHz\n1,2,-60\n2,3,-61\n", &options).unwrap_err().to_string();
    assert!(error.contains("--band-width is for sweeps"), "{error}");
    let mut options = ReadOptions::default();
    options.survey.min_places = Some(3);
    let error = load("x_m,y_m,dbm_1GHz\n1,2,-60\n2,3,-61\n", &options).unwrap_err().to_string();
    assert!(error.contains("--min-places"), "{error}");
}

#[test]
fn where_on_earth_survives_every_format() {
    let read = read_readings(recipe("spots.geojson"), &ReadOptions::default()).unwrap().value;
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.npz", "a.mat", "a.csv", "a.geojson"] {
        let path = folder.path().join(name);
        portolan_io::write_readings(&path, &read, &Default::default()).unwrap();
        let back = read_readings(&path, &ReadOptions::default()).unwrap();
        assert_eq!(back.value.crs(), read.crs(), "{name} {:?}", back.warnings);
        assert_eq!(back.value.labels(), read.labels(), "{name}");
        for (a, b) in back.value.sites().iter().zip(read.sites()) {
            assert!(a.distance_m(*b) < 1e-3, "{name} {a:?} {b:?}");
        }
        let apart = (back.value.power() / read.power()).mapv(|x| 10.0 * x.log10().abs());
        assert!(apart.iter().all(|db| *db < 1e-9), "{name}");
    }
}

#[test]
fn odd_surveys_lose_nothing_in_silence() {
    // A line off the grid must not shift the others.
    let text = "lat,lon,dbm_1GHz\n49.40,8.46,-10\n49.48,8.46,-50\n49.48001,8.46,-60\n";
    let mut file = tempfile::Builder::new().suffix(".csv").tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let grid = Some((3, 40));
    let options = ReadOptions { grid, cell_m: Some(1.0), ..ReadOptions::default() };
    let error = portolan_io::read_map(file.path(), &options).unwrap_err();
    assert!(error.to_string().contains("off the 3 x 40 grid"), "{error}");
    // A grid in degrees begins where its sensors do.
    let near = "lat,lon,dbm_1GHz\n49.48,8.46,-50\n49.48001,8.46,-60\n";
    assert_eq!(load(near, &options).unwrap().value.grid().map(|g| g.rows()), Some(3));
    // Bluetooth has no frequency, a time may be none, decimals may have commas.
    let log = "time_s;lat;lon;freq_mhz;level_dbm\n0,5;49,1;8,1;2412;-60\nnoon;49,2;8,2;2412;-61\n\
               2;49,3;8,3;;-62\n";
    let Loaded { value: found, warnings } = load(log, &ReadOptions::default()).unwrap();
    assert_eq!(found.sensors(), 2);
    assert!(found.time_s().is_some_and(|t| t[0] == 0.5 && t[1].is_nan()), "{:?}", found.time_s());
    assert!(warnings.iter().any(|w| w.contains("time that is none")), "{warnings:?}");
    assert!(warnings.iter().any(|w| w.contains("without a band")), "{warnings:?}");
    // Gathered places keep their times.
    let wide = "time,x_m,y_m,dbm_1GHz\n10,0.1,0.1,-60\n20,0.2,0.2,-61\n30,9,9,-70\n";
    let found = load(wide, &gathered(1.0)).unwrap().value;
    assert_eq!((found.time_s(), found.places()), (Some(&[10.0, 20.0, 30.0][..]), 2));
    let log = "time_s,x_m,y_m,freq_mhz,level_dbm\n10,0.1,0.1,100,-60\n12,0.1,0.1,200,-65\n\
               20,0.2,0.2,100,-61\n30,9,9,100,-70\n";
    let found = load(log, &gathered(1.0)).unwrap().value;
    assert_eq!((found.time_s(), found.places()), (Some(&[11.0, 20.0, 30.0][..]), 2));
    // A place that heard only what is left out did not hear the others.
    let log = "x_m,y_m,bssid,rssi_dbm\n0,0,a,-60\n1,1,a,-61\n5,5,rare,-70\n";
    let mut options = ReadOptions { not_heard: Some(Silence::Absent), ..ReadOptions::default() };
    options.survey.min_places = Some(2);
    let found = load(log, &options).unwrap().value;
    assert!(found.sensors() == 3 && found.not_heard().unwrap().entries[[2, 0]]);
    // Where a point is, its geometry says.
    let points = r#"{"type":"FeatureCollection","features":[
        {"type":"Feature","geometry":{"type":"Point","coordinates":[8.46,49.48]},"properties":{"x":1,"y":2,"latitude":3,"dbm_a":-60}},
        {"type":"Feature","geometry":{"type":"Point","coordinates":[8.47,49.48]},"properties":{"x":2,"y":3,"latitude":4,"dbm_a":-61}}]}"#;
    assert_eq!(load(points, &ReadOptions::default()).unwrap().value.crs(), Some(Crs::Epsg(32632)));
    // A coordinate system is not changed by saying another.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npz");
    portolan_io::write_readings(
        &path,
        &load(near, &ReadOptions::default()).unwrap().value,
        &Default::default(),
    )
    .unwrap();
    let other = ReadOptions { crs: Some(Crs::Epsg(32633)), ..ReadOptions::default() };
    assert!(read_readings(&path, &other).unwrap_err().to_string().contains("by its own word"));
}

/// Readings of two phones, the second 8 dB louder, as a line per scan or a line per reading.
fn two_phones(long: bool) -> String {
    let head = if long {
        "x_m,y_m,phone,freq_mhz,rssi_dbm\n"
    } else {
        "x_m,y_m,phone,dbm_1GHz,dbm_2GHz\n"
    };
    let mut text = head.to_string();
    for i in 0..60 {
        let (x, y, phone) = (f64::from(i % 8), f64::from(i / 8), i % 3 % 2);
        let wiggle = f64::from(i * 37 % 11) / 11.0;
        let at = |slope: f64| -60.0 - slope * x - y + 8.0 * f64::from(phone) + wiggle;
        let name = ["old", "new"][phone as usize];
        match long {
            true => {
                for (freq, slope) in [(1000, 1.0), (2000, -0.5)] {
                    text += &format!("{x},{y},{name},{freq},{:.3}\n", at(slope));
                }
            }
            false => text += &format!("{x},{y},{name},{:.3},{:.3}\n", at(1.0), at(-0.5)),
        }
    }
    text
}

#[test]
fn devices_are_brought_to_one_level() {
    let wide = load(&two_phones(false), &ReadOptions::default()).unwrap();
    let devices = wide.value.devices().unwrap().clone();
    assert_eq!(devices.names, ["old", "new"]);
    assert!((devices.offset_db[1] - devices.offset_db[0] - 8.0).abs() < 0.7, "{devices:?}");
    assert!(wide.warnings.iter().any(|w| w.contains("2 devices differ")), "{:?}", wide.warnings);
    // The field is a plane: what is left of it is the wiggle.
    let power = wide.value.power();
    for (site, row) in wide.value.sites().iter().zip(power.rows()) {
        let plane = -60.0 - site.x_m - site.y_m + 0.5;
        let middle = 8.0 * 1.0 / 3.0;
        assert!((10.0 * row[0].log10() - plane - middle).abs() < 1.3, "{site:?}");
    }
    let long = load(&two_phones(true), &ReadOptions::default()).unwrap().value;
    let difference = (&long.power() / &power).mapv(|r: f64| (10.0 * r.log10()).abs());
    assert!(difference.iter().all(|d| *d < 0.05), "{difference:?}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("readings.npz");
    portolan_io::write_readings(&path, &wide.value, &portolan_io::WriteOptions::default()).unwrap();
    assert_eq!(
        read_readings(&path, &ReadOptions::default()).unwrap().value.devices(),
        Some(&devices)
    );
}

/// Both phones at every place: the rows stay, and the offset is plain.
#[test]
fn devices_that_read_the_same_places_are_levelled_row_by_row() {
    for long in [false, true] {
        let head = two_phones(long).lines().next().unwrap().to_string();
        let mut text = two_phones(long);
        for line in two_phones(long).lines().skip(1) {
            let mut fields: Vec<String> = line.split(',').map(String::from).collect();
            let new = fields[2] == "new";
            fields[2] = if new { "old" } else { "new" }.into();
            let levels = if long { 4..5 } else { 3..5 };
            for level in &mut fields[levels] {
                let other = level.parse::<f64>().unwrap() + if new { -8.0 } else { 8.0 };
                *level = format!("{other:.3}");
            }
            text += &(fields.join(",") + "\n");
        }
        let found = load(&text, &ReadOptions::default()).unwrap().value;
        assert_eq!((found.sensors(), found.places()), (120, 60), "{head}");
        let devices = found.devices().unwrap();
        assert!((devices.offset_db[1] - devices.offset_db[0]).abs() > 7.9, "{devices:?}");
        // The two rows of a place say the same once the device offsets are removed.
        let power = found.power();
        for (row, site) in found.sites().iter().enumerate() {
            let other = (0..120).find(|n| *n != row && found.sites()[*n] == *site).unwrap();
            let apart = 10.0 * (power[[row, 0]] / power[[other, 0]]).log10();
            assert!(apart.abs() < 0.1, "{site:?}: {apart} dB");
        }
    }
}

#[test]
fn devices_can_be_left_alone_and_one_place_is_said() {
    let mut options = ReadOptions::default();
    options.survey.columns = Some(ColumnNames::parse("device=none").unwrap());
    let left = load(&two_phones(false), &options).unwrap();
    assert!(left.value.devices().is_none());
    assert!(left.warnings.iter().any(|w| w.contains("not used: 'phone'")), "{:?}", left.warnings);
    let once = two_phones(false) + "3.5,3.5,guest,-70,-71\n";
    let once = load(&once, &ReadOptions::default()).unwrap();
    let said = |w: &String| w.contains("1 of 3 devices read at one place only ('guest')");
    assert!(once.warnings.iter().any(said), "{:?}", once.warnings);
}

/// A table of rows x bands is dense: the levels of a receiver that stood still share rows.
#[test]
fn a_place_read_for_a_day_shares_rows() {
    let mut text = String::from("x_m,y_m,bssid,rssi_dbm\n");
    for i in 0..60_000 {
        text += &format!("0,0,a,-{}\n", 60 + i % 2);
    }
    for i in 0..600 {
        text += &format!("{i},1,b{i},-70\n{i},1,a,-71\n");
    }
    let mut options = ReadOptions::default();
    options.survey.min_places = Some(1);
    let Loaded { value: found, warnings } = load(&text, &options).unwrap();
    assert_eq!((found.places(), found.bands()), (601, 601));
    assert!(found.sensors() > 10_000 && found.sensors() * found.bands() <= 1 << 24);
    let counts = found.repeats().unwrap().column(0);
    assert!(counts.iter().all(|n| *n >= 1.0) && counts.iter().any(|n| *n >= 2.0));
    let counted = counts.iter().zip(found.sites()).filter(|(_, at)| at.y_m == 0.0);
    assert_eq!(counted.map(|(n, _)| n).sum::<f64>(), 60_000.0);
    assert!(warnings.iter().any(|w| w.contains("up to 60000 times")), "{warnings:?}");
}
