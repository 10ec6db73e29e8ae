//! The formats and the entry points: what a file is, reading it, writing it.

use std::io::Cursor;
use std::path::Path;

use portolan::{RadioMap, Readings};

use crate::error::{Check, Problem, Result};
#[cfg(feature = "hdf5")]
use crate::mat73;
use crate::options::{Content, Loaded, ReadOptions, SurveyOptions, WriteOptions};
use crate::output::{check_space, write_file};
use crate::records::Input;
use crate::records::kinds::{self, Reader};
use crate::source::Source;
use crate::store::Store;
use crate::table::Table;
use crate::{
    gis, mannheim, map_arrays, mat5, mat5_write, model_file, npy_store, npz, readings_arrays,
    survey, table,
};

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// NumPy archive.
    Npz,
    /// Comma-separated table.
    Csv,
    /// MATLAB version 5 to 7.
    Mat5,
    /// MATLAB version 7.3, which is HDF5.
    Mat73,
    /// Scans of a Wi-Fi survey, line by line, plain or packed; see [`crate::mannheim`].
    Trace,
    /// Sweeps of rtl_power, hackrf_sweep or soapy_power.
    Sweep,
    /// One NumPy array.
    Npy,
    /// Points with properties; areas and ellipses are written only.
    GeoJson,
    /// Objects in an array or one per line; read only.
    Json,
    /// Placemarks; read only.
    Kml,
    /// Frames of an older Kismet with positions; read only.
    KismetXml,
    /// The first sheet of an Excel workbook; read only.
    Xlsx,
    /// Points with fields; read only.
    Shapefile,
    /// Recorded samples with their places; read only.
    SigMf,
    /// Points of a GeoPackage or packets of Kismet; read only.
    Sqlite,
    /// Cloud-optimised GeoTIFF; written only.
    GeoTiff,
    /// NetCDF-4; written only.
    NetCdf,
    /// A folder of chunks; written only.
    Zarr,
    /// Pictures for a globe, or placemarks with readings.
    Kmz,
    /// A bare picture with a world file; written only.
    Png,
}

/// Endings of outputs.
const ENDINGS: [(&str, Format); 10] = [
    ("npz", Format::Npz),
    ("csv", Format::Csv),
    ("mat", Format::Mat5),
    ("tif", Format::GeoTiff),
    ("tiff", Format::GeoTiff),
    ("nc", Format::NetCdf),
    ("zarr", Format::Zarr),
    ("geojson", Format::GeoJson),
    ("kmz", Format::Kmz),
    ("png", Format::Png),
];

impl Format {
    /// The format of a name, for input that cannot say it.
    pub fn named(name: &str) -> Option<Self> {
        kinds::KINDS.iter().find(|kind| kind.words.contains(&name)).map(|kind| kind.format)
    }

    /// The names that [`Format::named`] knows, the usual one of each format.
    pub fn names() -> String {
        kinds::words()
    }

    /// The endings of files that can be read.
    pub fn endings() -> impl Iterator<Item = &'static str> {
        kinds::KINDS.iter().flat_map(|kind| kind.endings).copied()
    }

    /// Whether a file holds named arrays.
    pub(crate) fn is_arrays(self) -> bool {
        kinds::kind(self).is_some_and(|kind| matches!(kind.reader, Reader::Arrays))
    }

    /// Whether the table reader takes it.
    pub(crate) fn is_table(self) -> bool {
        let table = |kind: &kinds::Kind| matches!(kind.reader, Reader::Table | Reader::Records(_));
        kinds::kind(self).is_some_and(table)
    }

    /// The format that an output's name asks for.
    pub fn of_output(path: impl AsRef<Path>) -> Result<Self> {
        let ending = extension(path.as_ref());
        let known = ENDINGS.iter().find(|(name, _)| *name == ending).map(|(_, format)| *format);
        known.ok_or_else(|| {
            let problem = "its name must end in .npz, .csv or .mat, or for maps on Earth in .tif, \
                           .nc, .zarr, .geojson, .kmz or .png";
            Problem::new(problem).in_target(path.as_ref())
        })
    }

    /// Whether a map goes there part by part, for a geographic information system.
    pub fn is_gis(self) -> bool {
        use Format::{GeoJson, GeoTiff, Kmz, NetCdf, Png, Zarr};
        matches!(self, GeoTiff | NetCdf | Zarr | GeoJson | Kmz | Png)
    }

    /// Refuses an output that cannot hold readings.
    pub fn check_readings(path: impl AsRef<Path>) -> Result<()> {
        match Self::of_output(path.as_ref())? {
            Format::GeoJson => Ok(()),
            format if format.is_gis() => Err(Problem::new(format!(
                "{format} holds maps, these are readings: choose .npz, .csv, .mat or .geojson"
            ))
            .in_target(path.as_ref())),
            _ => Ok(()),
        }
    }
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Format::GeoTiff => "GeoTIFF",
            Format::NetCdf => "NetCDF",
            Format::Zarr => "Zarr",
            Format::Kmz => "KMZ",
            Format::Png => "PNG",
            read => kinds::kind(*read).map_or("unknown", |kind| kind.name),
        })
    }
}

/// A map has no sensors, even where it has gaps.
const MAP_INSTEAD: &str = "holds a map, expected readings: take some of it with `portolan sense`";

const READINGS_INSTEAD: &str = "holds readings, expected a map";

const MODEL_INSTEAD: &str = "holds a model: draw a map with `portolan predict MODEL --grid`";

/// Which of the two a caller can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    Either,
    Map,
    Readings,
}

/// Reads a map or readings, whichever the file holds.
///
/// ```
/// use portolan_io::{Content, ReadOptions, read};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("survey.csv");
/// # std::fs::write(&path, "x_m,y_m,dbm_2412MHz\n0,0,-60\n9,1,-66\n2,7,-71\n")?;
/// let found = read(&path, &ReadOptions::default())?;
/// assert!(matches!(found.value, Content::Readings(readings) if readings.sensors() == 3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Loaded<Content>> {
    let path = path.as_ref();
    let mut source = Source::open(path)?;
    let format = source.format(path, options.format);
    let parsed = format.and_then(|f| parse(f, (&mut source, path), options, Want::Either));
    parsed.map_err(|problem| problem.in_file(path))
}

/// Reads a map. A table becomes a map with the cells it does not list left unknown.
///
/// ```
/// use portolan_io::{ReadOptions, read_map};
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("map.csv");
/// std::fs::write(&path, "row,col,dbm_2412MHz\n0,0,-60\n1,1,-70\n")?;
/// let map = read_map(&path, &ReadOptions { grid: Some((2, 2)), ..ReadOptions::default() })?.value;
/// assert!((map.band(0)[[1, 1]] / 1e-7 - 1.0).abs() < 1e-12 && map.band(0)[[0, 1]].is_nan());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_map(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Loaded<RadioMap>> {
    let path = path.as_ref();
    let mut source = Source::open(path)?;
    let format = source.format(path, options.format);
    let parsed = format.and_then(|f| parse(f, (&mut source, path), options, Want::Map));
    match parsed.map_err(|problem| problem.in_file(path))? {
        Loaded { value: Content::Map(value), warnings } => Ok(Loaded { value, warnings }),
        _ => Err(Problem::new(READINGS_INSTEAD).in_file(path)),
    }
}

/// Reads readings.
///
/// ```
/// use portolan_io::{ReadOptions, Silence, read_readings};
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("survey.csv");
/// std::fs::write(&path, "x_m,y_m,dbm_2412MHz\n0,0,-60\n9,1,100\n2,7,-71\n")?;
/// // This receiver writes 100 where it hears nothing.
/// let options = ReadOptions { not_heard: Some(Silence::Codes(vec![100.0])), ..ReadOptions::default() };
/// let readings = read_readings(&path, &options)?.value;
/// assert_eq!((readings.labels().label(0).as_str(), readings.gaps()), ("2412MHz", 0));
/// assert!(readings.not_heard().is_some_and(|silent| silent.entries[[1, 0]]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_readings(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Loaded<Readings>> {
    let path = path.as_ref();
    let mut source = Source::open(path)?;
    let format = source.format(path, options.format);
    let parsed = format.and_then(|f| parse(f, (&mut source, path), options, Want::Readings));
    match parsed.map_err(|problem| problem.in_file(path))? {
        Loaded { value: Content::Readings(value), warnings } => Ok(Loaded { value, warnings }),
        _ => Err(Problem::new(MAP_INSTEAD).in_file(path)),
    }
}

/// Writes a map in the format that the name ends in.
///
/// ```
/// use portolan::{Grid, RadioMap, Scale};
/// use portolan_io::{ReadOptions, WriteOptions, read_map, write_map};
/// # let folder = tempfile::tempdir()?;
/// let power = ndarray::Array3::from_elem((3, 4, 2), 1e-7);
/// let map = RadioMap::dense(Grid::new(3, 4, 1.0)?, power, Scale::Absolute)?;
/// for name in ["map.npz", "map.mat"] {
///     let path = folder.path().join(name);
///     write_map(&path, &map, &WriteOptions::default())?;
///     assert_eq!(read_map(&path, &ReadOptions::default())?.value, map);
///     // What is there stays, unless it is said otherwise.
///     assert!(write_map(&path, &map, &WriteOptions::default()).is_err());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_map(path: impl AsRef<Path>, map: &RadioMap, options: &WriteOptions) -> Result<()> {
    let path = path.as_ref();
    match Format::of_output(path)? {
        Format::Npz => {
            let arrays = map_arrays::arrays(map, options.dense);
            check_space(path, npz::length(&arrays))?;
            write_file(path, options.force, |out| npz::write(&arrays, out))
        }
        Format::Mat5 | Format::Mat73 => {
            let arrays = map_arrays::arrays(map, options.dense);
            mat5_write::check(&arrays).map_err(|p| p.in_target(path))?;
            write_file(path, options.force, |out| mat5_write::write(&arrays, out))
        }
        format if format.is_gis() => gis::write_raster(path, &mut gis::WholeMap::new(map), options),
        _ => {
            table::write::check_map(map, options.unit).map_err(|p| p.in_target(path))?;
            write_file(path, options.force, |out| table::write::write_map(map, options.unit, out))
        }
    }
}

/// Writes readings in the format that the name ends in.
///
/// ```
/// use ndarray::array;
/// use portolan::{Readings, Scale, Site, Values};
/// use portolan_io::{ReadOptions, WriteOptions, read_readings, write_readings};
/// # let folder = tempfile::tempdir()?;
/// let sites = vec![Site::new(0.0, 0.0), Site::new(3.5, 1.25)];
/// let readings = Readings::new(sites, Values::Power(array![[1e-7], [2e-8]]), Scale::Absolute)?;
/// let path = folder.path().join("readings.npz");
/// write_readings(&path, &readings, &WriteOptions::default())?;
/// assert_eq!(read_readings(&path, &ReadOptions::default())?.value, readings);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_readings(
    path: impl AsRef<Path>,
    readings: &Readings,
    options: &WriteOptions,
) -> Result<()> {
    let path = path.as_ref();
    Format::check_readings(path)?;
    let arrays = readings_arrays::arrays(readings);
    match Format::of_output(path)? {
        Format::GeoJson => gis::write_sensors(path, readings, options.force),
        Format::Npz => write_file(path, options.force, |out| npz::write(&arrays, out)),
        Format::Mat5 | Format::Mat73 => {
            mat5_write::check(&arrays).map_err(|p| p.in_target(path))?;
            write_file(path, options.force, |out| mat5_write::write(&arrays, out))
        }
        _ => {
            let unit = options.unit;
            table::write::check_readings(readings, unit).map_err(|p| p.in_target(path))?;
            write_file(path, options.force, |out| table::write::write_readings(readings, unit, out))
        }
    }
}

fn extension(path: &Path) -> String {
    path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default()
}

/// The format, by the first bytes or the names in an archive; the name of the file only tells what
/// was meant when they say nothing.
pub(crate) fn detect(path: &Path, bytes: &[u8], names: Option<&[String]>) -> Check<Format> {
    if bytes.is_empty() {
        return Err(Problem::new("is empty, expected readings or a map"));
    }
    kinds::check_refused(bytes)?;
    let look = kinds::Look { bytes, names };
    if let Some(kind) = kinds::KINDS.iter().find(|kind| (kind.is)(&look)) {
        return Ok(kind.format);
    }
    let ending = extension(path);
    let named = kinds::KINDS.iter().find(|kind| kind.endings.contains(&ending.as_str()));
    let archive = bytes.starts_with(b"PK");
    match named {
        // The reader of an archive says what is wrong with it.
        Some(kind) if archive && kind.in_archive() => return Ok(kind.format),
        None | Some(kinds::Kind { format: Format::Csv, .. }) if is_text(bytes) => {
            return Ok(Format::Csv);
        }
        Some(kind) if !matches!(kind.format, Format::Npz | Format::Mat5) && is_text(bytes) => {
            return Ok(Format::Csv);
        }
        None if archive && names.is_none() => return Ok(Format::Npz),
        Some(kind) => {
            let expected = kind.expected;
            return Err(Problem::new(format!(
                "is not what its name says or is damaged, expected {expected}"
            )));
        }
        None => {}
    }
    let what = if archive { "an archive without readings" } else { "not a file that is read" };
    Err(Problem::new(format!("is {what}; these are: {}", kinds::list())))
}

/// Reads from an open file.
pub(crate) fn parse(
    format: Format,
    (source, path): (&mut Source, &Path),
    options: &ReadOptions,
    want: Want,
) -> Check<Loaded<Content>> {
    let mut warnings = Vec::new();
    check_survey_options(format, &options.survey)?;
    if format == Format::Sweep && options.not_heard.is_some() {
        return Err(Problem::new("is sweep: --not-heard is for tables; a sweep hears every bin"));
    }
    if format == Format::Sweep {
        if want == Want::Map {
            return Err(Problem::new(READINGS_INSTEAD));
        }
        let readings = survey::read_sweeps(source.bytes(), options, &mut warnings)?;
        return Ok(Loaded { value: Content::Readings(readings), warnings });
    }
    if format.is_table() {
        let table = match kinds::kind(format).map(|kind| &kind.reader) {
            Some(Reader::Records(read)) => {
                let mut records = read(&mut Input { source, path, options })?;
                Table::of_records(&mut records, options, want == Want::Map, &mut warnings)?
            }
            _ => Table::read(source.bytes(), options, want == Want::Map, &mut warnings)?,
        };
        let is_map = match want {
            Want::Either => table.is_map(),
            Want::Map => true,
            Want::Readings => false,
        };
        let value = match is_map {
            true => Content::Map(table.into_map(&mut warnings)?),
            false => Content::Readings(table.into_readings(options)?),
        };
        return Ok(Loaded { value, warnings });
    }
    if format == Format::Trace {
        if want == Want::Map {
            return Err(Problem::new(READINGS_INSTEAD));
        }
        let readings = mannheim::readings(source.stream()?, options, &mut warnings)?;
        return Ok(Loaded { value: Content::Readings(readings), warnings });
    }
    let mut store = source.store(format)?;
    let mut value = from_arrays(store.as_mut(), options, want, &mut warnings)?;
    // A bare array is a map; where readings are wanted it is what was measured of one.
    let asked =
        want == Want::Readings || (want == Want::Either && options.survey.measured.is_some());
    if let Content::Map(map) = &value
        && format == Format::Npy
        && asked
    {
        let mask = options.survey.measured.as_deref();
        value = Content::Readings(npy_store::measured(map, mask)?);
    }
    Ok(Loaded { value, warnings })
}

/// Whether bytes are a table in text, in UTF-8 or UTF-16, or mostly letters of Latin-1.
fn is_text(bytes: &[u8]) -> bool {
    let utf16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    if utf16 && bytes.len().is_multiple_of(2) {
        return true;
    }
    let control = |b: u8| b < 0x20 && !matches!(b, b'\t' | b'\n' | b'\r');
    let odd = bytes.iter().filter(|b| !b.is_ascii()).count();
    match std::str::from_utf8(bytes) {
        Ok(_) => !bytes.contains(&0),
        Err(_) => !bytes.iter().any(|b| control(*b)) && odd * 5 < bytes.len(),
    }
}

/// Refuses options that say nothing about a format.
fn check_survey_options(format: Format, survey: &SurveyOptions) -> Check<()> {
    let sweep = format == Format::Sweep;
    let table = format.is_table();
    let unfit = [
        (survey.measured.is_some(), format == Format::Npy, "--measured is for a bare .npy array"),
        (survey.track.is_some(), sweep, "--track is for sweeps, which know no position"),
        (survey.band_width_hz.is_some(), sweep, "--band-width is for sweeps"),
        (survey.band_edges_hz.is_some(), sweep, "--band-edges is for sweeps"),
        (survey.columns.is_some(), table, "--columns is for tables and points"),
        (survey.band_by.is_some(), table, "--band-by is for tables with a line for each band"),
        (survey.combine.is_some(), table, "--combine is for tables with a line for each band"),
        (survey.filter.is_some(), table, "--where is for tables"),
        (survey.freq_unit_hz.is_some(), table, "--freq-unit is for tables"),
        (survey.clock.is_some(), table || sweep, "--utc-offset is for tables and sweeps"),
        (survey.min_places.is_some(), table || sweep, "--min-places is for tables and sweeps"),
        (survey.gather_m.is_some(), table || sweep, "--gather is for tables and sweeps"),
    ];
    match unfit.iter().find(|(given, fits, _)| *given && !fits) {
        Some((.., what)) => Err(Problem::new(format!("is {format}: {what}"))),
        None => Ok(()),
    }
}

/// The arrays of bytes in memory.
pub(crate) fn open_store<'a>(format: Format, bytes: &'a [u8]) -> Check<Box<dyn Store + 'a>> {
    match format {
        Format::Npz => Ok(Box::new(npz::Npz::open(Cursor::new(bytes))?)),
        Format::Mat5 => Ok(Box::new(mat5::Mat5::open(bytes)?)),
        #[cfg(feature = "hdf5")]
        Format::Mat73 => Ok(Box::new(mat73::Mat73::open(bytes)?)),
        #[cfg(not(feature = "hdf5"))]
        Format::Mat73 => Err(Problem::new(
            "is a MATLAB 7.3 file, which this build does not read: save it by save -v7",
        )),
        Format::Npy => Ok(Box::new(npy_store::NpyStore::open(bytes)?)),
        _ => Err(Problem::new("is a table, expected arrays")),
    }
}

fn from_arrays(
    store: &mut dyn Store,
    options: &ReadOptions,
    want: Want,
    warnings: &mut Vec<String>,
) -> Check<Content> {
    if model_file::is_model(store) {
        return match want {
            Want::Either => model_file::read(store).map(|model| Content::Model(Box::new(model))),
            Want::Map => Err(Problem::new(MODEL_INSTEAD)),
            Want::Readings => Err(Problem::new("holds a model, expected readings")),
        };
    }
    let is_map = map_arrays::is_map(store, options);
    let is_readings = readings_arrays::is_readings(store);
    let readings = match want {
        Want::Either => is_readings && !is_map,
        Want::Map => is_readings && !is_map,
        Want::Readings => is_readings || !is_map,
    };
    match (readings, want) {
        (true, Want::Map) => Err(Problem::new(READINGS_INSTEAD)),
        (false, Want::Readings) if !store.is_bare() => Err(Problem::new(MAP_INSTEAD)),
        (true, _) => readings_arrays::read(store, options, warnings).map(Content::Readings),
        (false, _) => map_arrays::read(store, options, warnings).map(Content::Map),
    }
}
