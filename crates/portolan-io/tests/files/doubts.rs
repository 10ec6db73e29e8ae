//! What would be a wrong map without a word: codes as power, merged cells and access points, floors,
//! frequencies in another unit, places that jump; and lines that cannot be read.

use portolan::Readings;
use portolan_io::{Loaded, ReadOptions, read_readings};

fn load(text: impl AsRef<[u8]>, told: &[(&str, &str)]) -> portolan_io::Result<Loaded<Readings>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.csv");
    std::fs::write(&path, text).unwrap();
    let mut options = ReadOptions::default();
    for (name, value) in told {
        options.tell(name, value).unwrap();
    }
    read_readings(&path, &options)
}

fn refused(text: &str, told: &[(&str, &str)], words: &[&str]) {
    let error = load(text, told).unwrap_err();
    let said = error.to_string();
    assert!(error.is_input() && !said.contains('\n'), "{said}");
    for word in words {
        assert!(said.contains(word), "{word} in {said}");
    }
}

fn read(text: impl AsRef<[u8]>, told: &[(&str, &str)]) -> Loaded<Readings> {
    load(text, told).unwrap_or_else(|error| panic!("{error}"))
}

/// A drive past two cells that share an id under different nodes, with codes where there was no
/// reading.
fn drive() -> String {
    let mut text = String::from("Timestamp,Longitude,Latitude,NetworkTech,Node,CellID,RSRP\n");
    for i in 0..200 {
        let (lon, lat) = (11.5 + 1e-4 * f64::from(i), 48.1 + 5e-5 * f64::from(i % 13));
        let rsrp = match i % 20 {
            3 => -200.0,
            7 => -340.0,
            11 => -24.0,
            _ => -75.0 - 0.2 * f64::from(i) - f64::from(i % 5),
        };
        let (tech, node) = if i % 3 == 0 { ("3G", 71) } else { ("4G", 72 + i % 2) };
        text +=
            &format!("2026.05.0{}_10.00.00,{lon:.6},{lat:.6},{tech},{node},15,{rsrp}\n", 1 + i % 9);
    }
    text
}

#[test]
fn codes_are_no_power_until_somebody_says_what_they_are() {
    refused(&drive(), &[], &["-340,-200,-24", "codes", "--missing", "--not-heard", "--accept"]);
    let told = read(drive(), &[("missing", "-200,-340,-24")]).value;
    let levels = told.power().mapv(|p: f64| 10.0 * p.log10());
    let known: Vec<f64> = levels.iter().copied().filter(|v| !v.is_nan()).collect();
    assert_eq!(known.len(), 170);
    assert!(known.iter().all(|v| (-125.0..-70.0).contains(v)));
    let silent = read(drive(), &[("not-heard", "-200,-340"), ("missing", "-24")]).value;
    assert_eq!(silent.not_heard().unwrap().entries.iter().filter(|e| **e).count(), 20);
    // Who accepts them gets them, and is told.
    let all = read(drive(), &[("accept", "")]);
    assert!(all.warnings.iter().any(|w| w.starts_with("doubt (code, ") && w.contains("codes")));
}

#[test]
fn a_cell_is_all_that_identifies_it() {
    let told = read(drive(), &[("missing", "-200,-340,-24")]).value;
    assert_eq!(told.labels().names().unwrap(), ["3G/71/15", "4G/72/15", "4G/73/15"]);
    let by = read(drive(), &[("missing", "-200,-340,-24"), ("band-by", "node")]).value;
    assert_eq!(by.labels().names().unwrap(), ["71", "72", "73"]);
    refused(&drive(), &[("band-by", "node,pci")], &["'pci'", "not there"]);
}

#[test]
fn of_the_access_points_of_a_network_the_strongest_counts() {
    let mut text = String::from("x_m,y_m,ssid,bssid,rssi_dbm\n");
    for i in 0..30 {
        let (x, y) = (f64::from(i % 6), f64::from(i / 6));
        for ap in 0..3 {
            text += &format!("{x},{y},mall,aa:00:00:00:00:0{ap},{}\n", -50 - 15 * ap);
        }
    }
    let level = |told: &[(&str, &str)]| {
        let mut all = vec![("band-by", "ssid")];
        all.extend(told);
        let Loaded { value, warnings } = read(&text, &all);
        assert_eq!((value.sensors(), value.bands()), (30, 1));
        assert!(
            warnings.iter().any(|w| w.contains("several transmitters") && w.contains("--combine"))
        );
        let level = 10.0 * value.power()[[4, 0]].log10();
        assert!(value.power().iter().all(|p| (10.0 * p.log10() - level).abs() < 1e-9));
        level
    };
    assert!((level(&[]) + 50.0).abs() < 1e-9);
    assert!((level(&[("combine", "mean")]) + 65.0).abs() < 1e-9);
    let sum = 10.0 * (1e-5 + 10f64.powf(-6.5) + 1e-8f64).log10();
    assert!((level(&[("combine", "sum")]) - sum).abs() < 1e-9);
    // Each on its own is as before, and nothing is said.
    let single = read(&text, &[]);
    assert_eq!(single.value.bands(), 3);
    assert!(!single.warnings.iter().any(|w| w.contains("several")), "{:?}", single.warnings);
}

#[test]
fn frequencies_in_khz_are_not_read_as_hz() {
    let log = |header: &str| {
        let mut text = format!("{header}\n");
        for i in 0..24 {
            let (lat, lon) = (50.0 + 1e-4 * f64::from(i % 6), 8.0 + 1e-4 * f64::from(i / 6));
            text += &format!("{lat},{lon},2412000,aa:00:00:00:00:0{},{}\n", i % 2, -50 - i);
        }
        text
    };
    // Kismet counts in kHz, and its packets have a transmitter.
    let kismet = read(log("lat,lon,frequency,sourcemac,signal_dbm"), &[]).value;
    assert_eq!(kismet.bands(), 2);
    assert_eq!(kismet.freq_hz().unwrap(), [2.412e9, 2.412e9]);
    let unclear = log("lat,lon,frequency,serial,signal_dbm");
    refused(&unclear, &[], &["2412 MHz if it is in kHz", "2.412 MHz if in Hz", "--freq-unit"]);
    for (unit, hz) in [("kHz", 2.412e9), ("Hz", 2.412e6)] {
        let told = read(&unclear, &[("freq-unit", unit)]).value;
        assert_eq!(told.freq_hz().unwrap(), [hz]);
    }
}

#[test]
fn several_floors_are_not_one_map() {
    let mut text = String::from("x_m,y_m,floor,rssi_dbm,bssid\n");
    for i in 0..60 {
        text +=
            &format!("{},{},{},{},aa:00:00:00:00:01\n", i % 6, i / 6 % 5, 1 + i / 30, -50 - i / 2);
    }
    refused(&text, &[], &["2 floors (1, 2)", "--where", "floor = 1", "--accept"]);
    let second = read(&text, &[("where", "floor = 2")]);
    assert_eq!(second.value.sensors(), 30);
    assert!(second.warnings.iter().any(|w| w.contains("30 line(s) are left out by --where")));
    assert!(read(&text, &[("accept", "")]).warnings.iter().any(|w| w.contains("floors")));
    // Heights tell floors apart.
    let high: String = text
        .lines()
        .enumerate()
        .map(|(i, line)| match i {
            0 => format!("{line},z_m\n"),
            _ => format!("{line},{}\n", if i > 30 { 4.5 } else { 1.5 }),
        })
        .collect();
    assert!(read(&high, &[]).value.has_heights());
}

#[test]
fn places_that_jump_are_doubted() {
    let mut text = String::from("lat,lon,dbm_868MHz\n");
    for i in 0..40 {
        text += &format!(
            "{},{},{}\n",
            52.0 + 1e-3 * f64::from(i % 7),
            13.0 + 1e-3 * f64::from(i / 7),
            -80 - i
        );
    }
    assert!(load(&text, &[]).is_ok());
    text += "-34.0,18.4,-90\n";
    refused(&text, &[], &["1 of 41 places", "km from the others", "--where"]);
    assert_eq!(read(&text, &[("where", "lat > 0")]).value.sensors(), 40);
}

#[test]
fn a_few_lines_that_cannot_be_read_are_counted_and_many_are_refused() {
    let line = |i: usize| format!("{},{},{}.5\n", i % 50, i / 50, -60 - (i % 30) as i64);
    let log = |bad: usize| {
        let mut text = String::from("x_m,y_m,dbm_868MHz\n");
        for i in 0..3000 {
            text += &match (i % bad == 5, i % 4) {
                (true, 0) => "12,3\n".to_string(),
                (true, 1) => "12,3,-8x5,\n".to_string(),
                (true, 2) => "oops\n".to_string(),
                (true, _) => "a,b,c\n".to_string(),
                // A separator too many is none of them.
                (false, _) if i % 97 == 0 => line(i).replace('\n', ",\n"),
                (false, _) => line(i),
            };
        }
        text
    };
    let mended: String = log(100)
        .lines()
        .enumerate()
        .filter(|(i, _)| *i == 0 || (i - 1) % 100 != 5)
        .map(|(_, line)| format!("{}\n", line.trim_end_matches(',')))
        .collect();
    let some = read(log(100), &[]);
    assert_eq!(some.value, read(&mended, &[]).value);
    let said = some.warnings.join("; ");
    assert!(said.contains("30 of 3000 lines cannot be read") && said.contains("line 7"), "{said}");
    refused(&log(100), &[("strict", "")], &["line 7"]);
    refused(&log(10), &[], &["line 7", "300 of 3000 lines"]);
}

#[test]
fn other_encodings_and_units_behind_values_are_read() {
    let plain = "x_m,y_m,dbm_868MHz,note\n1,2,-80,caf\u{e9}\n3,5,-90,b\n2,9,-85,c\n";
    let told: &[(&str, &str)] = &[("columns", "bands=dbm*")];
    let expected = read(plain, told).value;
    let utf16: Vec<u8> =
        [0xff, 0xfe].into_iter().chain(plain.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    assert_eq!(read(utf16, told).value, expected);
    let latin: Vec<u8> = plain.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
    let latin = read(latin, told);
    assert_eq!(latin.value, expected);
    assert!(latin.warnings.iter().any(|w| w.contains("Latin-1")));
    let units = plain.replace("-80", "-80 dBm").replace("-90", "-90dBm");
    assert_eq!(read(units, told).value, expected);
}
