use std::io::{Cursor, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::source::{is_trace, medians};
use super::*;
use crate::format::{Format, detect};

/// A scan at a position with readings of "dBm,Hz,mode".
fn scan(position: &str, readings: &[&str]) -> String {
    let mut line = format!("t=1139643118358;id=00:02:2D:21:0F:33;pos={position};degree=0.5");
    for (sender, reading) in readings.iter().enumerate() {
        line += &format!(";00:14:bf:b1:97:{sender:02x}={reading}");
    }
    line + "\n"
}

fn text(scans: &[(&str, &[&str])]) -> String {
    scans.iter().map(|(position, readings)| scan(position, readings)).collect()
}

fn small() -> String {
    let mut trace = String::from("# timestamp=2006-02-11 08:31:58\n\n");
    trace += &text(&[
        ("1.0,0.0,0.0", &["-50,2437000000,3", "-60,2412000000,3"]),
        ("0.0,2.0,0.0", &["-70,2412000000,3", "-80,2437000000,1"]),
        ("1.0,0.0,0.0", &["-53,2437000000,1", "-40,2437000000,3", "-90,2437000000,3"]),
    ]);
    trace
}

fn gzip(text: &str) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(text.as_bytes()).unwrap();
    packed.finish().unwrap()
}

fn zip_of(files: &[(&str, &str)]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in files {
        archive.start_file(*name, SimpleFileOptions::default()).unwrap();
        archive.write_all(text.as_bytes()).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

fn read(text: &str) -> Check<Medians> {
    medians(Cursor::new(text.as_bytes()))
}

fn refused(text: &str, words: &[&str]) {
    let problem = format!("{:?}", read(text).unwrap_err());
    for word in words {
        assert!(problem.contains(word), "expected {word:?} in {problem}");
    }
}

#[test]
fn a_median_is_over_senders_modes_and_scans() {
    let medians = read(&small()).unwrap();
    assert_eq!(medians.freq_hz, [2.412e9, 2.437e9]);
    assert_eq!(medians.scans, 3);
    let places = &medians.places;
    assert_eq!((places[0].x_m, places[0].y_m, &places[0].dbm[..]), (0.0, 2.0, &[-70.0, -80.0][..]));
    // -90, -53, -50, -40: an even number, whose middle two are averaged.
    assert_eq!((places[1].x_m, places[1].y_m, &places[1].dbm[..]), (1.0, 0.0, &[-60.0, -51.5][..]));
    assert_eq!(places[1].line, 3);
}

#[test]
fn an_odd_number_has_a_middle_and_readings_repeat() {
    let readings: &[&str] = &["-50,100,3", "-50,100,3", "-77,100,3", "-20,100,3", "-49,100,3"];
    let medians = read(&text(&[("0,0,0", readings)])).unwrap();
    assert_eq!(medians.places[0].dbm, [-50.0]);
}

fn found(name: &str, bytes: &[u8]) -> crate::error::Check<Format> {
    let names = crate::source::archive_names(Cursor::new(bytes));
    detect(Path::new(name), bytes, names.as_deref())
}

#[test]
fn every_wrapping_gives_the_same() {
    let plain = read(&small()).unwrap();
    let windows = small().replace('\n', ";\r\n").replace("#;", "#");
    assert_eq!(read(&windows.replace("\n;\r", "\n\r")).unwrap(), plain);
    for packed in [gzip(&small()), zip_of(&[("deep/a.trace.txt", &small())])] {
        assert!(is_trace(&packed));
        assert_eq!(medians(Cursor::new(&packed)).unwrap(), plain);
        assert_eq!(found("x", &packed), Ok(Format::Trace));
    }
    assert_eq!(found("x", small().as_bytes()), Ok(Format::Trace));
    let two = zip_of(&[("a.txt", &small()), ("b.txt", &small())]);
    let problem = format!("{:?}", medians(Cursor::new(&two)).unwrap_err());
    assert!(problem.contains("2 text files"), "{problem}");
}

#[test]
fn arrays_and_tables_are_no_traces() {
    let arrays = zip_of(&[("map.npy", ""), ("readme.txt", "")]);
    assert_eq!(found("x.npz", &arrays), Ok(Format::Npz));
    assert!(!is_trace(b"row,col,dbm_1GHz\n0,0,-40\n"));
    assert!(!is_trace(b"t=3,col\n"));
    assert!(!is_trace(b"PK\x03\x04damaged"));
}

#[test]
fn damaged_packing_is_refused_with_its_place() {
    let packed = gzip(&small().repeat(2000));
    let problem = medians(Cursor::new(&packed[..packed.len() / 2])).unwrap_err();
    assert!(format!("{problem:?}").contains("line "), "{problem:?}");
    let mut archive = zip_of(&[("a.txt", &small().repeat(2000))]);
    let middle = archive.len() / 2;
    archive[middle] ^= 0xff;
    assert!(medians(Cursor::new(&archive)).is_err());
}

#[test]
fn malformed_lines_are_named() {
    let good = scan("0.0,0.0,0.0", &["-50,2437000000,3"]);
    let wrong = |from: &str, to: &str, words: &[&str]| {
        assert!(good.contains(from), "{from}");
        let mut expected = vec!["line 3: "];
        expected.extend(words);
        refused(&format!("# first\n{good}{}", good.replace(from, to)), &expected);
    };
    wrong("t=1139643118358", "1139643118358", &["'1139643118358'", "t=.."]);
    wrong("t=1139643118358", "t=soon", &["soon", "milliseconds"]);
    wrong("id=00:02:2D:21:0F:33", "id=00:02:2D:21:0F", &["MAC address"]);
    wrong("id=00:02:2D:21:0F:33", "id=00:02:2D:21:0F:33:44", &["MAC address"]);
    wrong("id=00:02:2D:21:0F:33;", "", &["'id=..'"]);
    wrong("pos=0.0,0.0,0.0", "pos=0.0,0.0", &["x,y,z"]);
    wrong("pos=0.0,0.0,0.0", "pos=0.0,0.0,0.0,1", &["x,y,z"]);
    wrong("pos=0.0,0.0,0.0", "pos=0.0,NaN,0.0", &["x,y,z"]);
    wrong("pos=0.0,0.0,0.0", "pos=0.0,0.0,3.0", &["z = 3", "one floor"]);
    wrong("degree=0.5", "degree=north", &["north"]);
    wrong("00:14:bf:b1:97:00=", "0014bfb19700=", &["0014bfb19700", "MAC address"]);
    wrong("=-50,2437000000,3", "", &["MAC=dBm,Hz,mode"]);
    wrong("-50,2437000000,3", "-50,2437000000", &["MAC=dBm,Hz,mode"]);
    wrong("-50,2437000000,3", "-50,2437000000,3,1", &["MAC=dBm,Hz,mode"]);
    wrong("-50,", "inf,", &["power in dBm"]);
    wrong("-50,", "-5000,", &["power in dBm"]);
    wrong("2437000000", "0", &["frequency"]);
    wrong("2437000000", "2.437e9", &["frequency"]);
    wrong("000,3", "000,x", &["mode"]);
}

#[test]
fn hostile_text_is_refused() {
    refused("", &["no readings"]);
    refused("# only a comment\n", &["no readings"]);
    refused(&scan("0,0,0", &[]), &["no readings"]);
    refused(&format!("# a\nt={}", "1".repeat(1 << 17)), &["line 2", "65536 bytes"]);
    let many: Vec<String> = (1..=1100).map(|hz| format!("-50,{hz},3")).collect();
    let fields: Vec<String> = many.iter().map(|m| format!(";00:14:bf:b1:97:00={m}")).collect();
    refused(&(scan("0,0,0", &[]).trim_end().to_owned() + &fields.concat()), &["1025 frequencies"]);
    let latin = [scan("0,0,0", &["-50,100,3"]).as_bytes(), b"t=\xff;"].concat();
    let problem = format!("{:?}", medians(Cursor::new(latin)).unwrap_err());
    assert!(problem.contains("line 2: expected text in UTF-8"), "{problem}");
}

#[test]
fn a_rare_band_is_left_out() {
    let trace = text(&[
        ("0,0,0", &["-50,100,3", "-60,200,3", "-70,300,3"]),
        ("0,1,0", &["-51,100,3", "-61,200,3"]),
        ("0,2,0", &["-52,100,3"]),
        ("0,3,0", &["-53,100,3"]),
    ]);
    let (kept, rare) = read(&trace).unwrap().drop_rare();
    // 200 Hz is read at exactly half of the places.
    assert_eq!(kept.freq_hz, [100.0, 200.0]);
    assert_eq!(rare, [(300.0, 1)]);
    assert!(kept.places[2].dbm[1].is_nan());
}

#[test]
fn a_folder_becomes_a_survey() {
    let folder = tempfile::tempdir().unwrap();
    let error = survey(folder.path()).unwrap_err().to_string();
    assert!(error.contains("no offline trace"), "{error}");
    let offline = folder.path().join("offline.final.trace.txt.gz");
    std::fs::write(&offline, gzip(&small())).unwrap();
    assert_eq!(survey(folder.path()).unwrap().online, []);
    let off_grid = text(&[("0.25,1.5,0", &["-42,2437000000,3", "-43,5000000000,3"])]);
    std::fs::write(folder.path().join("online.final.trace.txt"), off_grid).unwrap();
    let survey = survey(folder.path()).unwrap();
    assert_eq!((survey.grid.rows(), survey.grid.cols(), survey.scans), (34, 14, 4));
    assert_eq!(survey.freq_hz, [2.412e9, 2.437e9]);
    let cells = survey.offline.cells(survey.grid).unwrap();
    assert_eq!(cells, [Cell::new(0, 2), Cell::new(1, 0)]);
    assert!((survey.offline.power()[[0, 0]] - 1e-7).abs() < 1e-20);
    assert_eq!((survey.online[0].x_m, survey.online[0].dbm[1]), (0.25, -42.0));
    assert!(survey.online[0].dbm[0].is_nan());
    for position in ["0.5,0,0", "34,0,0", "0,14,0", "-1,0,0"] {
        std::fs::write(&offline, small() + &scan(position, &["-50,2437000000,3"])).unwrap();
        let error = super::survey(&offline).unwrap_err().to_string();
        assert!(error.contains("trace.txt.gz: line 6: position"), "{error}");
    }
}

#[test]
fn any_trace_is_read_on_the_callers_grid() {
    let mut warnings = Vec::new();
    let options = ReadOptions { grid: Some((4, 4)), cell_m: Some(2.0), ..ReadOptions::default() };
    let trace = text(&[
        ("2.1,0,0", &["-50,100,3"]),
        ("1.9,0,0", &["-50,100,3"]),
        ("6,6.9,0", &["-60,100,3"]),
    ]);
    let readings = super::readings(std::io::Cursor::new(&trace), &options, &mut warnings).unwrap();
    let places = [Site::new(1.9, 0.0), Site::new(2.1, 0.0), Site::new(6.0, 6.9)];
    assert_eq!((readings.sites(), readings.scale()), (&places[..], Scale::Absolute));
    let cells = readings.cells(readings.grid().unwrap()).unwrap();
    assert_eq!(cells, [Cell::new(1, 0), Cell::new(1, 0), Cell::new(3, 3)]);
    assert_eq!(readings.freq_hz(), Some(&[100.0][..]));
    assert!(warnings.is_empty(), "{warnings:?}");
    let anywhere = ReadOptions::default();
    let readings = super::readings(std::io::Cursor::new(&trace), &anywhere, &mut warnings).unwrap();
    assert_eq!((readings.sites(), readings.grid()), (&places[..], None));
    let refused = |options: ReadOptions, words: &str| {
        let problem =
            super::readings(std::io::Cursor::new(&trace), &options, &mut Vec::new()).unwrap_err();
        assert!(format!("{problem:?}").contains(words), "{problem:?}");
    };
    refused(ReadOptions { grid: Some((3, 4)), ..options.clone() }, "line 3: x 6, y 6.9 is off");
    refused(
        ReadOptions { origin_m: Some((4.0, 0.0)), ..options.clone() },
        "line 2: x 1.9, y 0 is off",
    );
    refused(ReadOptions { unit: Some(Unit::Linear), ..options.clone() }, "dBm");
    refused(ReadOptions { var: Some("T".into()), ..options.clone() }, "--var");
    refused(ReadOptions { cell_m: Some(-1.0), ..options }, "positive number of metres");
}
