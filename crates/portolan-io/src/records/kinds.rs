//! The formats that are read, one entry each: the words of `--format`, the endings, how the first
//! bytes or the names in an archive tell it, and its reader. The order is that of recognition.

use super::{
    Input, Records, geojson, geopackage, json, kismet_xml, kml, shapefile, sigmf, sqlite, xlsx,
};
use crate::error::{Check, Problem};
use crate::format::Format;
use crate::{mannheim, survey};

/// What is seen of a file before it is read.
pub(crate) struct Look<'a> {
    pub bytes: &'a [u8],
    /// The names in a zip archive, in small letters; None where it is none or damaged.
    pub names: Option<&'a [String]>,
}

/// How a format is read.
pub(crate) enum Reader {
    /// Named arrays.
    Arrays,
    /// Text with a line per reading or place.
    Table,
    /// A reader of its own.
    Own,
    /// Records, which the table reader takes.
    Records(fn(&mut Input<'_>) -> Check<Records>),
}

/// A format that is read.
pub(crate) struct Kind {
    pub format: Format,
    /// As messages call it.
    pub name: &'static str,
    /// The words of `--format`, the usual first.
    pub words: &'static [&'static str],
    pub endings: &'static [&'static str],
    /// What a file of that ending should be.
    pub expected: &'static str,
    pub is: fn(&Look<'_>) -> bool,
    pub reader: Reader,
}

impl Kind {
    /// Whether it is a zip archive.
    pub fn in_archive(&self) -> bool {
        matches!(self.format, Format::Npz | Format::Xlsx | Format::Kmz)
    }
}

/// Every format that is read.
pub(crate) const KINDS: &[Kind] = &[
    Kind {
        format: Format::Npz,
        name: "npz",
        words: &["npz"],
        endings: &["npz"],
        expected: "an npz archive",
        is: |look| look.names.is_some_and(|names| has(names, ".npy")),
        reader: Reader::Arrays,
    },
    Kind {
        format: Format::Xlsx,
        name: "Excel (xlsx)",
        words: &["xlsx"],
        endings: &["xlsx", "xlsm"],
        expected: "an Excel workbook (.xlsx)",
        is: |look| look.names.is_some_and(|names| names.iter().any(|n| n == "xl/workbook.xml")),
        reader: Reader::Records(xlsx::read),
    },
    Kind {
        format: Format::Shapefile,
        name: "shapefile (with its .dbf and .prj, or zipped)",
        words: &["shp"],
        endings: &["shp"],
        expected: "a shapefile of points",
        is: |look| {
            look.bytes.starts_with(shapefile::MAGIC)
                || look.names.is_some_and(|names| has(names, ".shp"))
        },
        reader: Reader::Records(shapefile::read),
    },
    Kind {
        format: Format::Kmz,
        name: "KMZ",
        words: &["kmz"],
        endings: &["kmz"],
        expected: "a KMZ archive with placemarks",
        is: |look| look.names.is_some_and(|names| has(names, ".kml")),
        reader: Reader::Records(kml::read_kmz),
    },
    Kind {
        format: Format::Kml,
        name: "KML",
        words: &["kml"],
        endings: &["kml"],
        expected: "KML placemarks",
        is: |look| begins(look.bytes, b"<") && holds(head(look.bytes), b"<kml"),
        reader: Reader::Records(kml::read_kml),
    },
    Kind {
        format: Format::KismetXml,
        name: "gpsxml of Kismet",
        words: &["gpsxml"],
        endings: &["gpsxml"],
        expected: "frames of Kismet with positions",
        is: |look| begins(look.bytes, b"<") && holds(head(look.bytes), b"<gps-run"),
        reader: Reader::Records(kismet_xml::read),
    },
    Kind {
        format: Format::Sqlite,
        name: "GeoPackage or .kismet",
        words: &["gpkg", "kismet"],
        endings: &["gpkg", "kismet"],
        expected: "a GeoPackage or a log of Kismet (SQLite)",
        is: |look| look.bytes.starts_with(sqlite::MAGIC),
        reader: Reader::Records(geopackage::read),
    },
    Kind {
        format: Format::Trace,
        name: "trace",
        words: &["trace"],
        endings: &["trace"],
        expected: "a trace of Wi-Fi scans",
        is: |look| match look.names {
            Some(names) => mannheim::names_of_trace(names),
            None => mannheim::is_trace(look.bytes),
        },
        reader: Reader::Own,
    },
    Kind {
        format: Format::Npy,
        name: "npy",
        words: &["npy"],
        endings: &["npy"],
        expected: "a NumPy array",
        is: |look| look.bytes.starts_with(b"\x93NUMPY"),
        reader: Reader::Arrays,
    },
    Kind {
        format: Format::Sweep,
        name: "sweep",
        words: &["sweep", "rtl_power", "hackrf_sweep", "soapy_power"],
        endings: &[],
        expected: "sweeps of rtl_power or hackrf_sweep",
        is: |look| survey::is_sweep(look.bytes),
        reader: Reader::Own,
    },
    Kind {
        format: Format::SigMf,
        name: "SigMF (a .sigmf-meta or a folder of them)",
        words: &["sigmf"],
        endings: &[sigmf::ENDING],
        expected: "the description of a SigMF recording",
        is: |look| is_json(look.bytes) && holds(look.bytes, b"\"core:datatype\""),
        reader: Reader::Records(sigmf::read),
    },
    Kind {
        format: Format::GeoJson,
        name: "GeoJSON",
        words: &["geojson"],
        endings: &["geojson", "geojsonl"],
        expected: "GeoJSON points",
        is: |look| is_json(look.bytes) && holds(look.bytes, b"\"Feature"),
        reader: Reader::Records(geojson::read),
    },
    Kind {
        format: Format::Json,
        name: "JSON",
        words: &["json", "jsonl", "ndjson"],
        endings: &["json", "jsonl", "ndjson"],
        expected: "JSON objects, one per line or in an array",
        is: |look| is_json(look.bytes),
        reader: Reader::Records(json::read),
    },
    Kind {
        format: Format::Mat73,
        name: "mat v7.3",
        words: &[],
        endings: &[],
        expected: "a MATLAB file of version 7.3",
        is: |look| {
            const HDF5: &[u8] = b"\x89HDF\r\n\x1a\n";
            [0, 512, 1024, 2048].iter().any(|&at| look.bytes.get(at..at + 8) == Some(HDF5))
        },
        reader: Reader::Arrays,
    },
    Kind {
        format: Format::Mat5,
        name: "mat v5",
        words: &["mat"],
        endings: &["mat"],
        expected: "a MATLAB file of version 5 or 7.3",
        is: |look| {
            matches!(look.bytes.get(126..128), Some(b"IM" | b"MI")) && look.bytes.contains(&0)
        },
        reader: Reader::Arrays,
    },
    Kind {
        format: Format::Csv,
        name: "csv",
        words: &["csv", "wigle"],
        endings: &["csv", "tsv", "txt"],
        expected: "a table in text (UTF-8, UTF-16 or Latin-1)",
        // What is text but nothing else; the name goes first.
        is: |_| false,
        reader: Reader::Table,
    },
];

/// The entry of a format; None where it is only written.
pub(crate) fn kind(format: Format) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.format == format)
}

/// The words of `--format`, the usual one of each format.
pub(crate) fn words() -> String {
    let words: Vec<&str> = KINDS.iter().filter_map(|kind| kind.words.first().copied()).collect();
    words.join(", ")
}

/// What can be read, in the words of people.
pub(crate) fn list() -> String {
    let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
    names.join(", ")
}

/// Files of other programs that hold no readings, or not as they are: how they are told, and what
/// to do instead.
type Refused = (fn(&[u8]) -> bool, &'static str);

const REFUSED: &[Refused] = &[
    (
        |bytes| bytes.starts_with(b"PAR1") || bytes.starts_with(b"ARROW1"),
        "is Parquet or Arrow, which the command does not read: in Python, portolan.read_table reads it",
    ),
    (
        |bytes| bytes.starts_with(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"),
        "is a workbook of Excel 97 (.xls) or another old Office file: save it as .xlsx or .csv",
    ),
    (
        |bytes| begins(bytes, b"BSSID, First time seen"),
        "is a list of airodump-ng, which has no positions: record with --gpsd and --output-format \
         logcsv and give the .log.csv, or give the .gpsxml or .kismet of Kismet",
    ),
    (
        |bytes| begins(bytes, b"<") && holds(head(bytes), b"<gpx"),
        "is a track, which has places but no readings: give a sweep, and the track by --track",
    ),
    (
        |bytes| begins(bytes, b"<") && holds(head(bytes), b"<detection-run"),
        "is a list of Kismet with one place for each network, expected readings: give the .gpsxml or \
         .kismet beside it",
    ),
];

/// Refuses a file of which it is known that it holds no readings.
pub(crate) fn check_refused(bytes: &[u8]) -> Check<()> {
    match REFUSED.iter().find(|(is, _)| is(bytes)) {
        Some((_, why)) => Err(Problem::new(*why)),
        None => Ok(()),
    }
}

/// Whether an archive has a file of an ending, shadows of macOS aside.
pub(super) fn has(names: &[String], ending: &str) -> bool {
    names.iter().any(|name| name.ends_with(ending) && !name.starts_with("__macosx/"))
}

fn head(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(4096)]
}

/// Whether a text begins so, behind a mark of its order of bytes and empty lines.
pub(super) fn begins(bytes: &[u8], start: &[u8]) -> bool {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start().starts_with(start)
}

pub(super) fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

fn is_json(bytes: &[u8]) -> bool {
    let open = begins(bytes, b"{") || begins(bytes, b"[");
    open && std::str::from_utf8(bytes).is_ok()
}
