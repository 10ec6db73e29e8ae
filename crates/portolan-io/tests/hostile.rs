//! Bytes that nobody should trust: random, cut short, with bits flipped, or made to deceive.
//! Every reader answers with an error about the input, or reads what is harmless.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use portolan::Crs;
use portolan_io::gis::Area;
use portolan_io::{
    Clock, IoError, MapFile, ReadOptions, Silence, SurveyOptions, Unit, inspect, read, read_map,
    read_places, read_readings,
};
use proptest::prelude::*;

const SEEDS: [&str; 19] = [
    "types.npz",
    "factored.npz",
    "float32.npz",
    "simulator.npz",
    "values.npz",
    "levels.npz",
    "authors.mat",
    "authors_deflated.mat",
    "survey_dbm.mat",
    "matrix.mat",
    "levels.mat",
    "authors73.mat",
    "authors73_chunked.mat",
    "levels73.mat",
    "survey.xlsx",
    "survey.zip",
    "survey.kmz",
    "survey.gpkg",
    "survey.kismet",
];

const TABLE: &[u8] = b"x_m,y_m,dbm_2412MHz,mw_2.422GHz\n0,0,-30,0.5\n1,2,,0.25\n3,1,-40,\n";

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// Surveys as people have them.
const TEXTS: [(&str, &[u8]); 10] = [
    ("table.csv", TABLE),
    (
        "wigle.csv",
        b"WigleWifi-1.4,appRelease=1\nMAC,SSID,AuthMode,FirstSeen,Channel,RSSI,CurrentLatitude,\
          CurrentLongitude,AltitudeMeters,AccuracyMeters,Type\n02:00:00:00:00:01,a,[ESS],\
          2024-05-01 12:00:00,6,-60,49.1,8.1,100,4,WIFI\n02:00:00:00:00:01,a,[ESS],\
          2024-05-01 12:00:09,6,-61,49.2,8.2,100,4,WIFI\n",
    ),
    ("sweep.csv", SWEEP),
    ("track.gpx", GPX),
    (
        "points.geojson",
        br#"{"type":"FeatureCollection","features":[{"type":"Feature","geometry":{"type":"Point",
          "coordinates":[8.1,49.1]},"properties":{"dbm_a":-60}},{"type":"Feature","geometry":{"type":
          "Point","coordinates":[8.2,49.2]},"properties":{"dbm_a":-61}}]}"#,
    ),
    (
        "scans.jsonl",
        br#"{"at":{"lat":49.1,"lon":8.1},"time":1,"seen":[{"bssid":"a","rssi":-60},{"bssid":"b","rssi":-61}]}
{"at":{"lat":49.2,"lon":8.2},"time":2,"seen":[{"bssid":"a","rssi":-62},{"bssid":"b","rssi":-63}]}"#,
    ),
    ("columns.json", br#"{"x_m":[1,2,3],"y_m":[4,5,6],"dbm_a":[-60,-61,-62]}"#),
    (
        "marks.kml",
        b"<?xml version=\"1.0\"?><kml><Placemark><description>RSRP: -90&lt;br&gt;PCI: 7</description>\
          <TimeStamp><when>2024-05-01T12:00:00Z</when></TimeStamp><Point><coordinates>8.1,49.1,0\
          </coordinates></Point></Placemark><Placemark><ExtendedData><Data name=\"RSRP\"><value>-91\
          </value></Data><SchemaData><SimpleData name=\"PCI\">7</SimpleData></SchemaData>\
          </ExtendedData><Point><coordinates>8.2,49.2</coordinates></Point></Placemark></kml>",
    ),
    (
        "old.gpsxml",
        b"<gps-run><gps-point bssid=\"a\" time-sec=\"1\" lat=\"49.1\" lon=\"8.1\" signal_dbm=\"-60\"/>\
          <gps-point bssid=\"a\" time-sec=\"9\" lat=\"49.2\" lon=\"8.2\" signal_dbm=\"-61\"/></gps-run>",
    ),
    ("bare.npy", b"\x93NUMPY\x01\x00\x39\x00{'descr': '|u1', 'fortran_order': False, 'shape': (2,2)}\n\x01\x02\x03\x04"),
];

const SWEEP: &[u8] = b"2024-05-01, 12:00:01, 100000000, 102000000, 1000000.00, 10, -60, -61, -61\n\
                       2024-05-01, 12:00:02, 100000000, 102000000, 1000000.00, 10, -62, -63, -63\n";

const GPX: &[u8] = br#"<?xml version="1.0"?><gpx><trk><trkseg><trkpt lat="49.1" lon="8.1"><time>
    2024-05-01T12:00:00Z</time></trkpt><trkpt lat="49.1001" lon="8.1"><time>2024-05-01T12:00:05Z</time>
    </trkpt></trkseg></trk></gpx>"#;

const LAST: usize = SEEDS.len() + TEXTS.len() - 1;

fn seed(index: usize) -> (&'static str, Vec<u8>) {
    match SEEDS.get(index) {
        Some(name) => (name, std::fs::read(data(name)).unwrap()),
        None => {
            let (name, bytes) = TEXTS[index - SEEDS.len()];
            (name, bytes.to_vec())
        }
    }
}

/// How a survey is read: `bytes` may stand for the sweep, for its track, or for what was measured.
fn surveys(folder: &Path, path: &Path, check: impl Fn(Option<IoError>)) {
    let (sweep, track) = (folder.join("good_sweep.csv"), folder.join("good_track.gpx"));
    std::fs::write(&sweep, SWEEP).unwrap();
    std::fs::write(&track, GPX).unwrap();
    let on = |track: &Path| {
        let clock = Some(Clock::UTC);
        let survey = SurveyOptions { track: Some(track.into()), clock, ..Default::default() };
        ReadOptions { survey, ..ReadOptions::default() }
    };
    check(read_readings(path, &on(&track)).err());
    check(read_readings(&sweep, &on(path)).err());
    let bare = folder.join("good.npy");
    std::fs::write(&bare, TEXTS[TEXTS.len() - 1].1).unwrap();
    let survey = SurveyOptions { measured: Some(path.into()), ..Default::default() };
    check(read_readings(&bare, &ReadOptions { survey, ..ReadOptions::default() }).err());
    let survey = SurveyOptions { gather_m: Some(3.0), min_places: Some(1), ..Default::default() };
    let not_heard = Some(Silence::Absent);
    let unit = Some(Unit::Dbm);
    let options = ReadOptions { survey, not_heard, unit, ..ReadOptions::default() };
    check(read_readings(path, &options).err());
    check(read_places(path, Some(Crs::Epsg(32632)), 0.0, Some(3.0)).err());
}

#[test]
fn the_seeds_themselves_are_read() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in TEXTS {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let (track, clock) = (Some(folder.path().join("track.gpx")), Some(Clock::UTC));
        std::fs::write(folder.path().join("track.gpx"), GPX).unwrap();
        let survey = match name {
            "sweep.csv" => SurveyOptions { track, clock, ..Default::default() },
            "wigle.csv" | "scans.jsonl" | "marks.kml" | "old.gpsxml" => {
                SurveyOptions { min_places: Some(1), ..Default::default() }
            }
            "track.gpx" => continue,
            _ => SurveyOptions::default(),
        };
        let found = read_readings(&path, &ReadOptions { survey, ..ReadOptions::default() });
        assert!(found.is_ok(), "{name} {found:?}");
    }
}

const POLYGON: &str = r#"{"type":"FeatureCollection","features":[{"type":"Feature","properties":{},
"geometry":{"type":"MultiPolygon","coordinates":[[[[8.4,49.4],[8.6,49.4],[8.5,49.6],[8.4,49.4]],
[[8.45,49.45],[8.5,49.5],[8.55,49.45],[8.45,49.45]]]]}}]}"#;

/// Polygons of a mask on these bytes: an area, or one line that blames the file.
fn survive_as_polygons(bytes: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("area.geojson");
    std::fs::write(&path, bytes).unwrap();
    for crs in [None, Some(Crs::Epsg(32632))] {
        if let Err(error) = Area::read(&path, crs) {
            let text = error.to_string();
            assert!(error.is_input() && !text.contains('\n') && text.len() < 1000, "{text}");
        }
    }
}

/// Every reader on these bytes: no panic, and errors that blame the input on one line.
fn survive(name: &str, bytes: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    let check = |error: Option<IoError>| {
        if let Some(error) = error {
            assert!(error.is_input(), "{error}");
            let text = error.to_string();
            assert!(!text.contains(['\n', '\r']) && text.len() < 1000, "{text}");
        }
    };
    let var = |name: &str| ReadOptions { var: Some(name.into()), ..ReadOptions::default() };
    let dbm = ReadOptions { unit: Some(Unit::Dbm), ..ReadOptions::default() };
    for options in [ReadOptions::default(), dbm, var("T"), var("layer"), var("map")] {
        check(read(&path, &options).err());
        check(read_map(&path, &options).err());
        check(read_readings(&path, &options).err());
        check(inspect(&path, &options).err());
    }
    surveys(folder.path(), &path, check);
    match MapFile::open(&path) {
        Ok(file) => in_parts(file, check),
        Err(error) => check(Some(error)),
    }
}

/// Every way to read a file in parts.
fn in_parts(mut file: MapFile, check: impl Fn(Option<IoError>)) {
    let (rows, cols, bands) = file.shape();
    for array in file.arrays() {
        let name = &array.name;
        check(file.load(name).err());
        check(file.load_text(name).err());
        check(file.read_rows(name, 0..rows.min(9), 0..cols.min(9), 0..bands.min(9)).err());
        check(file.read_rows(name, rows / 2..rows, cols / 2..cols, bands / 2..bands).err());
        match file.strips(name, 100) {
            Ok(strips) => strips.take(50).for_each(|strip| check(strip.err())),
            Err(error) => check(Some(error)),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..2000), kind in 0usize..7) {
        let (name, start): (_, Vec<u8>) = match kind {
            0 => ("a.npz", b"PK\x03\x04".to_vec()),
            1 => ("a.mat", [[b' '; 124].as_slice(), b"\x00\x01IM"].concat()),
            2 => ("a.mat", [[b' '; 124].as_slice(), b"\x01\x00MI"].concat()),
            3 => ("a.mat", b"\x89HDF\r\n\x1a\n".to_vec()),
            4 => ("a.csv", b"row,col,dbm_1GHz\n".to_vec()),
            5 => ("a.csv", Vec::new()),
            _ => ("a", Vec::new()),
        };
        survive(name, &[start, bytes].concat());
    }

    #[test]
    fn random_tables(
        text in "(row|col|x_m|y_m|lat|lon|time|bssid|channel|rssi_dbm|freq_hz|power|dbm_1GHz|\
                 [,;\"\n0-9.e-]){0,60}",
    ) {
        survive("a.csv", text.as_bytes());
        survive("b.csv", format!("row,col,mw_1GHz\n{text}").as_bytes());
        survive("c.csv", format!("time,lat,lon,bssid,rssi_dbm\n{text}").as_bytes());
        survive("d.csv", format!("2024-05-01, 12:00:01, 1, 3, 1, {text}").as_bytes());
    }

    #[test]
    fn random_polygons(text in "[\\[\\]{}:,\"0-9.e-]{0,60}") {
        survive_as_polygons(text.as_bytes());
        let inside = format!(r#"{{"type":"Polygon","coordinates":[{text}]}}"#);
        survive_as_polygons(inside.as_bytes());
    }

    #[test]
    fn damaged_polygons(
        place in any::<prop::sample::Index>(), byte in any::<u8>(), share in 0.0..1.0f64,
    ) {
        let mut bytes = POLYGON.as_bytes().to_vec();
        bytes[place.index(POLYGON.len())] = byte;
        survive_as_polygons(&bytes);
        survive_as_polygons(&bytes[..(bytes.len() as f64 * share) as usize]);
    }

    #[test]
    fn random_records(text in "[\\[\\]{}:,\"a-d0-9.e-]{0,60}") {
        survive("a.json", text.as_bytes());
        survive("b.json", format!("[{{\"lat\":1,\"lon\":2,{text}}}]").as_bytes());
        let text = text.replace(['{', '['], "<").replace(['}', ']'], ">");
        survive("a.kml", format!("<kml><Placemark><Point>{text}").as_bytes());
    }

    #[test]
    fn cut_short(index in 0..=LAST, share in 0.0..1.0f64) {
        let (name, bytes) = seed(index);
        survive(name, &bytes[..(bytes.len() as f64 * share) as usize]);
    }

    #[test]
    fn flipped_bits(
        index in 0..=LAST,
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0u8..8), 1..4),
    ) {
        let (name, mut bytes) = seed(index);
        for (place, bit) in flips {
            let place = place.index(bytes.len());
            bytes[place] ^= 1 << bit;
        }
        survive(name, &bytes);
    }

    #[test]
    fn overwritten_words(
        index in 0..=LAST,
        place in any::<prop::sample::Index>(),
        word in prop::sample::select(vec![0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, u32::MAX - 7]),
    ) {
        let (name, mut bytes) = seed(index);
        let place = place.index(bytes.len() - 4);
        bytes[place..place + 4].copy_from_slice(&word.to_le_bytes());
        survive(name, &bytes);
    }
}

#[test]
fn records_that_multiply_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |name: &str, bytes: &[u8], words: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let begun = Instant::now();
        let said = read_readings(&path, &ReadOptions::default()).unwrap_err().to_string();
        assert!(said.contains(words), "{said}");
        assert!(begun.elapsed() < Duration::from_secs(5), "refused too late");
    };
    // A long text around a list of many, a name of its own for every record, nested lists.
    let long =
        format!("[{{\"a\":\"{}\",\"l\":[{}{{}}]}}]", "x".repeat(1 << 20), "{},".repeat(1 << 18));
    refused("a.json", long.as_bytes(), "too large a table");
    let names: String = (0..30_000).map(|n| format!("{{\"n{n}\":1}}\n")).collect();
    refused("a.jsonl", names.as_bytes(), "different names");
    refused("b.json", "[".repeat(1 << 20).as_bytes(), "not JSON");
    // Every cell of a page points to the same row.
    let mut base = std::fs::read(data("survey.kismet")).unwrap();
    let page = u16::from_be_bytes([base[16], base[17]]) as usize;
    for start in (page..base.len()).step_by(page) {
        if base[start] == 13 {
            let first = [base[start + 8], base[start + 9]];
            base[start + 3..start + 5].copy_from_slice(&200u16.to_be_bytes());
            (0..200).for_each(|cell| {
                let at = start + 8 + 2 * cell;
                base[at..at + 2].copy_from_slice(&first);
            });
        }
    }
    refused("a.kismet", &base, "damaged SQLite file");
}

#[test]
fn polygons_nested_a_million_deep() {
    survive_as_polygons("[".repeat(1_000_000).as_bytes());
    let deep = format!(
        "{}1{}",
        "{\"type\":\"Feature\",\"geometry\":".repeat(100_000),
        "}".repeat(100_000)
    );
    survive_as_polygons(deep.as_bytes());
    survive_as_polygons(
        br#"{"type":"Polygon","coordinates":[[[1e308,0],[-1e308,1e308],[0,-1e308]]]}"#,
    );
    let path = data("polygon that is not there.geojson");
    assert!(Area::read(path, None).unwrap_err().is_input());
}

/// An npz with one stored entry and whatever sizes its headers claim.
fn npz(header: &str, body: &[u8], claimed: Option<u64>) -> Vec<u8> {
    let mut npy = b"\x93NUMPY\x01\x00".to_vec();
    npy.extend((header.len() as u16).to_le_bytes());
    npy.extend(header.as_bytes());
    npy.extend(body);
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Stored)
        .large_file(true);
    archive.start_file("map.npy", options).unwrap();
    archive.write_all(&npy).unwrap();
    let mut bytes = archive.finish().unwrap().into_inner();
    if let Some(claimed) = claimed {
        let (mut at, real) = (0, (npy.len() as u64).to_le_bytes());
        let mut found = 0;
        while at + 8 <= bytes.len() {
            if bytes[at..at + 8] == real {
                bytes[at..at + 8].copy_from_slice(&claimed.to_le_bytes());
                found += 1;
            }
            at += 1;
        }
        assert!(found >= 2, "the sizes stand in the local header at least");
    }
    bytes
}

fn refused(name: &str, bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    let begun = Instant::now();
    let error = read_map(&path, &ReadOptions::default()).unwrap_err();
    assert!(error.is_input(), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(2), "refused too late");
    error.to_string()
}

#[test]
fn an_npz_of_a_billion_by_a_billion() {
    let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000, 1000000000), }\n";
    let message = refused("a.npz", &npz(header, &[0; 64], None));
    assert!(message.contains("array 'map' claims shape [1000000000, 1000000000]"), "{message}");
    let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (20000, 20000), }\n";
    let message = refused("a.npz", &npz(header, &[0; 64], None));
    assert!(message.contains("64 bytes, expected 3200000000"), "{message}");
}

#[test]
fn an_npz_whose_entry_claims_a_petabyte() {
    let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }\n";
    refused("a.npz", &npz(header, &[0; 32], Some(1_000_000_000_000_000)));
}

#[test]
fn a_deflated_bomb_is_refused_by_its_shape() {
    let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }\n";
    let mut npy = b"\x93NUMPY\x01\x00".to_vec();
    npy.extend((header.len() as u16).to_le_bytes());
    npy.extend(header.as_bytes());
    npy.resize(50_000_000, 0);
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    archive.start_file("map.npy", zip::write::SimpleFileOptions::default()).unwrap();
    archive.write_all(&npy).unwrap();
    let message = refused("a.npz", &archive.finish().unwrap().into_inner());
    assert!(message.contains("expected 32 for shape [2, 2]"), "{message}");
}

#[test]
fn sizes_that_lie_are_refused_in_parts_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npz");
    for shape in ["(20000, 20000)", "(0, 4611686018427387904, 2)", "(1000000000, 1000000000)"] {
        let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n");
        std::fs::write(&path, npz(&header, &[0; 64], None)).unwrap();
        let Ok(mut file) = MapFile::open(&path) else { continue };
        let (rows, cols, bands) = file.shape();
        assert!(file.read_rows("map", 0..rows, 0..cols, 0..bands).unwrap_err().is_input());
        assert!(file.strips("map", 1 << 20).is_err_and(|error| error.is_input()));
    }
    let text = |width: &str, shape: &str| {
        let header =
            format!("{{'descr': '<U{width}', 'fortran_order': False, 'shape': {shape}, }}\n");
        let bytes = npz(&header, &[0; 64], None);
        std::fs::write(&path, bytes).unwrap();
        MapFile::open(&path).unwrap().load_text("map")
    };
    assert_eq!(text("8", "(2, 1)").unwrap().unwrap(), ["", ""]);
    for (width, shape) in [
        ("0", "(1000000000000, 1)"),
        ("9", "(2, 1)"),
        ("1000000000000000000", "(2, 1)"),
        ("99999999999999999999999", "(2, 1)"),
    ] {
        assert!(text(width, shape).unwrap_err().is_input(), "{width} {shape}");
    }
}

#[test]
fn a_mat_with_giant_dimensions() {
    let mut bytes = std::fs::read(data("matrix.mat")).unwrap();
    let sides = [3i32, 4].map(i32::to_le_bytes).concat();
    let at = bytes.windows(8).position(|window| window == sides).unwrap();
    for (rows, cols) in [(i32::MAX, i32::MAX), (-1, 4), (30_000, 10_000)] {
        bytes[at..at + 8].copy_from_slice(&[rows, cols].map(i32::to_le_bytes).concat());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.mat");
        std::fs::write(&path, &bytes).unwrap();
        let options = ReadOptions { var: Some("layer".into()), ..ReadOptions::default() };
        assert!(read_map(&path, &options).unwrap_err().is_input());
    }
}

#[test]
fn an_hdf5_that_is_all_wrong() {
    for filler in [0x00, 0xff, 0x01] {
        let mut bytes = vec![filler; 4096];
        bytes[..8].copy_from_slice(b"\x89HDF\r\n\x1a\n");
        refused("a.mat", &bytes);
        bytes.rotate_right(512);
        refused("a.mat", &bytes);
    }
    // Dimensions of a dataset replaced by giant ones.
    let bytes = std::fs::read(data("authors73.mat")).unwrap();
    let sides = [5u64, 4, 3].map(u64::to_le_bytes).concat();
    let giant = [1u64 << 40, 1 << 12, 3].map(u64::to_le_bytes).concat();
    let mut hostile = bytes.clone();
    let places: Vec<usize> =
        (0..bytes.len() - 24).filter(|&at| bytes[at..at + 24] == sides).collect();
    assert!(!places.is_empty());
    for at in places {
        hostile[at..at + 24].copy_from_slice(&giant);
    }
    refused("a.mat", &hostile);
}

#[test]
fn files_that_are_not_there_or_not_files() {
    let folder = tempfile::tempdir().unwrap();
    let absent = read(folder.path().join("none.npz"), &ReadOptions::default()).unwrap_err();
    assert!(absent.is_input() && absent.to_string().contains("none.npz: cannot be opened"));
    assert!(read(folder.path(), &ReadOptions::default()).unwrap_err().is_input());
    assert!(refused("empty.npz", b"").contains("is empty"));
    assert!(refused("a.npz", b"row,col,dbm_1GHz\n").contains("expected an npz archive"));
    assert!(refused("a.npy", b"\x93NUMPY\x01\x00").contains("cut short"));
}
