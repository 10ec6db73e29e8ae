//! Raw scans of a Wi-Fi survey go wherever readings go.

use std::io::{Cursor, Write};

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::support::Desk;

/// Three scans at each of twelve places; the median is the one in the middle.
fn trace() -> String {
    let mut text = String::from("# minReadings=110\n");
    for place in 0..12 {
        for offset in [9, 0, -2] {
            let (x, y, dbm) = (place % 4, place / 4, offset - 50 - place);
            text += &format!(
                "t=1139643118358;id=00:02:2D:21:0F:33;pos={x}.0,{y}.0,0.0;degree=130.5;\
                 00:14:bf:b1:97:8a={dbm},2437000000,3;02:00:42:55:31:00={},2457000000,1\n",
                dbm - 7
            );
        }
    }
    text
}

fn packed(text: &str) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    archive.start_file("offline.final.trace.txt", SimpleFileOptions::default()).unwrap();
    archive.write_all(text.as_bytes()).unwrap();
    archive.finish().unwrap().into_inner()
}

#[test]
fn a_trace_is_inspected_converted_and_estimated_from() {
    let desk = Desk::new();
    desk.write("survey.trace.zip", packed(&trace()));
    desk.write("survey.txt", trace());
    let summary = desk.json("inspect survey.trace.zip --json");
    assert_eq!((&summary["format"], &summary["kind"]), (&"trace".into(), &"readings".into()));
    assert_eq!((&summary["sensors"], &summary["bands"]), (&12.into(), &2.into()));
    desk.ok("convert survey.trace.zip a.csv");
    desk.ok("convert survey.txt b.csv");
    assert_eq!(desk.read("a.csv"), desk.read("b.csv"));
    let table = String::from_utf8(desk.read("a.csv")).unwrap();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[..2], ["x_m,y_m,dbm_2437MHz,dbm_2457MHz", "0,0,-50,-57"]);
    assert!(lines.contains(&"3,2,-61,-68"), "{table}");
    desk.ok("estimate survey.trace.zip -o map.npz --method kriging --grid 8x8 --cell-m 1");
    assert_eq!(desk.json("inspect map.npz --json")["rows"], 8);
}

#[test]
fn a_damaged_trace_is_refused_by_its_line() {
    let desk = Desk::new();
    desk.write("survey.txt", trace().replace("pos=2.0,1.0,0.0", "pos=2.0,0.0"));
    desk.refused("convert survey.txt a.csv", &["survey.txt: line 20: pos='2.0,0.0'"]);
    desk.write("survey.zip", packed(&trace()));
    desk.refused("score survey.zip survey.zip", &["survey.zip: holds readings, expected a map"]);
    desk.refused("convert survey.zip a.csv --unit linear", &["survey.zip: a trace is in dBm"]);
}
