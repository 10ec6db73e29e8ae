//! Files of other programs: each gives the readings of the same survey as a table in text. The files
//! were written by openpyxl, pyshp, simplekml and SQLite; see `tests/data/make_formats.py`.

use std::path::{Path, PathBuf};

use portolan::{Crs, Readings, Scale};
use portolan_io::{
    Format, Loaded, ReadOptions, Result, SurveyOptions, first_lines, inspect, read_readings,
};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn plain(path: &Path) -> Result<Loaded<Readings>> {
    read_readings(path, &ReadOptions::default())
}

fn survey() -> Readings {
    plain(&data("survey.csv")).unwrap().value
}

/// The lines of the survey as texts, below its header.
fn lines() -> (Vec<String>, Vec<Vec<String>>) {
    let text = std::fs::read_to_string(data("survey.csv")).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').map(String::from).collect());
    (lines.next().unwrap(), lines.collect())
}

/// What is read from these bytes under a name.
fn written(name: &str, bytes: impl AsRef<[u8]>) -> Result<Loaded<Readings>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    plain(&path)
}

fn refused(name: &str, bytes: impl AsRef<[u8]>) -> String {
    written(name, bytes).unwrap_err().to_string()
}

/// A member of JSON: text for the address, numbers for all else.
fn member(name: &str, text: &str) -> String {
    if name == "bssid" { format!("\"{name}\":\"{text}\"") } else { format!("\"{name}\":{text}") }
}

#[track_caller]
fn same(found: Result<Loaded<Readings>>) {
    let Loaded { value, warnings } = found.unwrap();
    assert_eq!(value, survey(), "{warnings:?}");
}

#[test]
fn json_lines_and_arrays() {
    let (names, rows) = lines();
    let objects: Vec<String> = rows
        .iter()
        .map(|row| {
            let members: Vec<String> = names.iter().zip(row).map(|(n, t)| member(n, t)).collect();
            format!("{{{}}}", members.join(","))
        })
        .collect();
    same(written("a.jsonl", objects.join("\n")));
    same(written("a.json", format!("[{}]", objects.join(",\n"))));
    same(written("a", format!("{{\"count\":24,\"data\":[{}]}}", objects.join(","))));
    // Scans with a list of networks, the place in an object of its own.
    let scans: Vec<String> = rows
        .chunks(3)
        .map(|scan| {
            let seen: Vec<String> = scan
                .iter()
                .map(|row| {
                    let of = |at: usize| member(&names[at], &row[at]);
                    format!("{{{},{},{}}}", of(2), of(3), of(4))
                })
                .collect();
            let (lat, lon, time) = (&scan[0][0], &scan[0][1], &scan[0][5]);
            let place = format!("\"gps\":{{\"lat\":{lat},\"lon\":{lon}}}");
            format!("{{{place},\"time\":{time},\"networks\":[{}]}}", seen.join(","))
        })
        .collect();
    same(written("a.ndjson", scans.join("\n")));
}

#[test]
fn json_that_is_wrong_names_the_record() {
    let text = r#"[{"x_m":1,"y_m":2,"rssi":-60,"bssid":"a"},{"x_m":"here","y_m":2,"rssi":-60,"bssid":"a"}]"#;
    let said = refused("a.json", text);
    assert!(said.contains("record 2") && said.contains("'here'"), "{said}");
    let said = refused("a.json", r#"[{"lat":1,"rssi":-60}]"#);
    assert!(said.contains("columns seen: 'lat', 'rssi'") && !said.contains("line 1"), "{said}");
    assert!(refused("a.json", "{\"a\": ").contains("not JSON"));
}

#[test]
fn kml_and_kmz() {
    same(plain(&data("survey.kmz")));
    let mut archive =
        zip::ZipArchive::new(std::fs::File::open(data("survey.kmz")).unwrap()).unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut archive.by_index(0).unwrap(), &mut text).unwrap();
    same(written("a.kml", text.replace("&lt;br/&gt;", "\n")));
    assert!(refused("a.kml", "<kml><Placemark/></kml>").contains("no placemarks with points"));
}

#[test]
fn geojson_with_a_projected_system() {
    let survey = survey();
    let crs = survey.crs().unwrap();
    let (_, rows) = lines();
    let of = |site: &portolan::Site, row: &Vec<String>| {
        format!(
            r#"{{"type":"Feature","geometry":{{"type":"Point","coordinates":[{},{}]}},
            "properties":{{"bssid":"{}","rssi":{},"freq_mhz":{},"time":{}}}}}"#,
            site.x_m, site.y_m, row[2], row[3], row[4], row[5]
        )
    };
    let features: Vec<String> = rows
        .chunks(3)
        .zip(survey.sites())
        .flat_map(|(rows, site)| rows.iter().map(move |row| of(site, row)))
        .collect();
    let text = format!(
        r#"{{"type":"FeatureCollection","crs":{{"type":"name","properties":
        {{"name":"urn:ogc:def:crs:EPSG::32632"}}}},"features":[{}]}}"#,
        features.join(",")
    );
    assert_eq!(crs, Crs::Epsg(32632));
    same(written("a.geojson", &text));
    let other = text.replace("32632", "31467");
    let said = refused("a.geojson", other);
    assert!(said.contains("EPSG:31467") && said.lines().count() == 1, "{said}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.geojson");
    std::fs::write(&path, text).unwrap();
    let options = ReadOptions { crs: Some(Crs::Epsg(32633)), ..ReadOptions::default() };
    assert!(read_readings(&path, &options).unwrap_err().to_string().contains("by its own word"));
}

#[test]
fn excel_workbooks() {
    let found = plain(&data("survey.xlsx")).unwrap();
    assert!(found.warnings.iter().any(|w| w.contains("the first of 2 sheets")), "{found:?}");
    assert_eq!(found.value, survey());
}

#[test]
fn shapefiles() {
    same(plain(&data("survey.zip")));
    let folder = tempfile::tempdir().unwrap();
    let mut archive =
        zip::ZipArchive::new(std::fs::File::open(data("survey.zip")).unwrap()).unwrap();
    archive.extract(folder.path()).unwrap();
    let path = folder.path().join("survey.shp");
    same(plain(&path));
    std::fs::remove_file(folder.path().join("survey.prj")).unwrap();
    let said = plain(&path).unwrap_err().to_string();
    assert!(said.contains(".prj") && said.contains("--crs"), "{said}");
    std::fs::write(folder.path().join("survey.prj"), "PROJCS[\"DHDN_Zone_3\"]").unwrap();
    assert!(plain(&path).unwrap_err().to_string().contains("--crs"));
    std::fs::remove_file(folder.path().join("survey.dbf")).unwrap();
    assert!(plain(&path).unwrap_err().to_string().contains(".dbf"));
}

#[test]
fn geopackages() {
    same(plain(&data("survey.gpkg")));
}

#[test]
fn logs_of_kismet() {
    let found = plain(&data("survey.kismet")).unwrap();
    assert!(found.warnings.iter().any(|w| w.contains("1 packet(s) without")), "{found:?}");
    assert_eq!(found.value, survey());
    let (_, rows) = lines();
    let points: String = rows
        .iter()
        .map(|row| {
            format!(
                "<gps-point bssid=\"{}\" time-sec=\"{}\" time-usec=\"1\" lat=\"{}\" lon=\"{}\" \
                 signal_dbm=\"{}\" freq_mhz=\"{}\"/>",
                row[2], row[5], row[0], row[1], row[3], row[4]
            )
        })
        .collect();
    let track = "<gps-point bssid=\"GP:SD:TR:AC:KL:OG\" lat=\"1\" lon=\"2\"/>";
    same(written("a.gpsxml", format!("<?xml version=\"1.0\"?><gps-run>{track}{points}</gps-run>")));
}

#[test]
fn mappers_of_lorawan() {
    let (_, rows) = lines();
    let mut text = String::from(
        "id,time,nodeaddr,appeui,gwaddr,modulation,datarate,snr,rssi,freq,lat,lon,alt,accuracy,hdop\n",
    );
    for row in rows {
        let [lat, lon, gateway, rssi, freq, time] = &row[..] else { unreachable!() };
        text += &format!(
            "1,{time},26011b,70b3d5,{gateway},LORA,SF7BW125,9.2,{rssi},{freq},{lat},{lon},100,2,1.1\n"
        );
    }
    same(written("mapper.csv", text));
}

#[test]
fn files_without_readings_say_what_to_use() {
    for (name, bytes, words) in [
        ("a.parquet", &b"PAR1\x15\x04"[..], "portolan.read_table"),
        ("a.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0", ".xlsx"),
        ("a-01.csv", b"\r\nBSSID, First time seen, Last time seen, channel\r\n", "no positions"),
        ("a.gpx", b"<?xml version=\"1.0\"?><gpx></gpx>", "--track"),
        ("a.netxml", b"<?xml version=\"1.0\"?><detection-run>", ".gpsxml"),
        ("a.bin", b"\x00\x01\x02\x03\xff\xfe\x00", "GeoPackage"),
        ("a.kmz", b"PK\x03\x04 and no more", "damaged zip archive"),
    ] {
        let said = refused(name, bytes);
        assert!(said.contains(words) && said.lines().count() == 1, "{name}: {said}");
        assert!(!said.contains("npz archive"), "{name}: {said}");
    }
}

#[test]
fn one_table_names_all_formats() {
    for word in Format::names().split(", ") {
        assert!(Format::named(word).is_some(), "{word}");
    }
    assert!(Format::endings().any(|ending| ending == "gpkg"));
    let header = first_lines(&data("survey.xlsx"), 2).unwrap();
    assert_eq!(header[0], ["lat", "lon", "bssid", "rssi", "freq_mhz", "time"]);
    let found = inspect(data("survey.gpkg"), &ReadOptions::default()).unwrap();
    assert_eq!((found.format, found.places), (Format::Sqlite, Some(8)));
}

#[test]
fn recordings_of_sigmf() {
    let folder = tempfile::tempdir().unwrap();
    for (place, level) in [16i8, 32, 64].into_iter().enumerate() {
        let stem = folder.path().join(format!("place{place}"));
        let lat = 49.48 + 0.001 * place as f64;
        let point = format!(r#"{{"type":"Point","coordinates":[8.46,{lat}]}}"#);
        let meta = format!(
            r#"{{"global":{{"core:datatype":"ci8","core:sample_rate":1e6,"core:version":"1.2.0",
            "core:geolocation":{point}}},"annotations":[],"captures":[
            {{"core:sample_start":0,"core:frequency":433e6,"core:datetime":"2024-05-01T12:00:00Z"}},
            {{"core:sample_start":5000,"core:frequency":868e6}}]}}"#
        );
        std::fs::write(stem.with_extension("sigmf-meta"), meta).unwrap();
        let sample = |level: i8| [level.to_le_bytes(), [0]].concat();
        let samples = [sample(level).repeat(5000), sample(127).repeat(9)].concat();
        std::fs::write(stem.with_extension("sigmf-data"), samples).unwrap();
    }
    let found = plain(folder.path());
    let found = match found {
        Err(error) if error.to_string().contains("fewer than 5") => {
            let survey = SurveyOptions { min_places: Some(1), ..SurveyOptions::default() };
            read_readings(folder.path(), &ReadOptions { survey, ..ReadOptions::default() }).unwrap()
        }
        found => found.unwrap(),
    };
    let readings = found.value;
    assert_eq!((readings.places(), readings.scale()), (3, Scale::Uncalibrated));
    assert_eq!(readings.freq_hz().unwrap(), [433e6, 868e6]);
    let power = readings.power();
    assert!((power[[0, 0]] - 1.0 / 64.0).abs() < 1e-12, "{power:?}");
    let one = folder.path().join("place0.sigmf-meta");
    std::fs::remove_file(folder.path().join("place0.sigmf-data")).unwrap();
    let said = plain(&one).unwrap_err().to_string();
    assert!(said.contains("'place0.sigmf-data' cannot be opened"), "{said}");
}
