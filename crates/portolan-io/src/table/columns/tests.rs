use super::*;

fn read(header: &str, unit: Option<Unit>) -> Check<TableLayout> {
    let declared = Declared { unit, ..Declared::default() };
    layout(&header.split(',').collect::<Vec<_>>(), declared, &mut Vec::new())
}

fn bands(header: &str, unit: Option<Unit>) -> Vec<Band> {
    match read(header, unit).unwrap().shape {
        TableShape::Wide(bands) => bands,
        TableShape::Long(_) => panic!("{header}"),
    }
}

#[test]
fn names_of_bands() {
    for (name, hz) in [
        ("dbm_2412MHz", 2.412e9),
        ("dBm_2.412GHz", 2.412e9),
        ("2.412e9_dbm", 2.412e9),
        ("DBM_900 kHz", 9e5),
        ("dbm_100Hz", 100.0),
    ] {
        let (freq_hz, unit) = (Some(hz), Unit::Dbm);
        let band = Band { column: 2, freq_hz, label: None, unit, spread: None };
        assert_eq!(bands(&format!("row,col,{name}"), None), [band], "{name}");
    }
    let unit = Unit::Linear;
    let band = Band { column: 0, freq_hz: None, label: None, unit, spread: None };
    assert_eq!(bands("mw_band_3,y_m,x_m", None), [band]);
    let position = read("mw_band_3,y_m,x_m", None).unwrap().position;
    assert_eq!(position, Position::Metres(2, 1, None));
    let addresses = bands("lat,lon,AA:bb:cc:00:11:22", Some(Unit::Dbm));
    assert_eq!(addresses[0].label.as_deref(), Some("AA:bb:cc:00:11:22"));
}

#[test]
fn the_unit_is_never_guessed() {
    let error = |header: &str, unit| format!("{:?}", read(header, unit).unwrap_err());
    assert!(error("row,col,2412MHz", None).contains("--unit dbm"));
    assert!(error("row,col,2412MHz", None).contains("column 3 '2412MHz'"));
    assert!(error("row,col,dbm_2412MHz", Some(Unit::Linear)).contains("another unit"));
    assert!(error("x_m,y_m,freq_hz,power", None).contains("--unit dbm"));
    assert!(error("lat,lon,bssid,level", None).contains("--unit dbm"));
    assert!(error("lat,lon,level", None).contains("--unit dbm"));
    // These are dBm by their definition.
    for name in ["rssi", "rsrp", "RSRP (dBm)", "rscp"] {
        let found = read(&format!("lat,lon,bssid,{name}"), None).unwrap();
        assert!(matches!(found.shape, TableShape::Long(LongColumns { unit: Unit::Dbm, .. })));
    }
    assert!(read("row,col,2412MHz", Some(Unit::Dbm)).is_ok());
    assert!(read("x_m,y_m,freq_hz,power", Some(Unit::Linear)).is_ok());
}

#[test]
fn headers_that_say_something_else() {
    for header in [
        "",
        "0,0,-70",
        "row,col",
        "row,x_m,dbm_1GHz",
        "row,col,dbm_1GHz,dbm_1GHz",
        "row,col,comment",
        "row,col,nanHz",
        "row,col,dbm_",
        "row,col,dbm_1GHz,dbm_band2",
        "row,col,freq_hz",
        "row,col,freq_hz,power_dbm,power_mw",
        "lat,latitude,lon,rssi_dbm",
        "lat,x_m,rssi_dbm",
    ] {
        let error = read(header, None).unwrap_err().to_string();
        assert!(error.contains("columns seen"), "{header}: {error}");
    }
}

#[test]
fn names_that_people_use() {
    for header in [
        "time,Latitude,Longitude,BSSID,SSID,channel,rssi_dBm",
        "easting,northing,freq_mhz,level_dbm,operator",
        "lat,lng,frequency,dbm",
    ] {
        let found = read(header, None).unwrap();
        assert!(matches!(found.shape, TableShape::Long(_)), "{header}");
    }
    let names = ColumnNames::parse("x=LONGITUDE,y=LATITUDE,bands=WAP*").unwrap();
    let declared = Declared { unit: Some(Unit::Dbm), names: Some(&names), ..Declared::default() };
    let header = ["WAP001", "WAP002", "LONGITUDE", "LATITUDE", "FLOOR"];
    let found = layout(&header, declared, &mut Vec::new()).unwrap();
    assert_eq!((found.position, found.unused), (Position::Metres(2, 3, None), vec![4]));
    // What people write down beside a level is no band.
    let found = read("Latitude (deg),Longitude (deg),rssi,snr,snr_db,comment", None).unwrap();
    assert_eq!((found.position, found.unused), (Position::Degrees(0, 1), vec![3, 4, 5]));
    let wrong = ColumnNames::parse("x=easting,y=LATITUDE,bands=WAP*").unwrap();
    assert!(
        layout(&header, Declared { names: Some(&wrong), ..declared }, &mut Vec::new()).is_err()
    );
}

#[test]
fn a_bare_small_number_is_doubted() {
    let mut warnings = Vec::new();
    let declared = Declared { unit: Some(Unit::Dbm), ..Declared::default() };
    layout(&["row", "col", "2412"], declared, &mut warnings).unwrap();
    assert!(warnings[0].contains("2412 Hz"), "{warnings:?}");
}
