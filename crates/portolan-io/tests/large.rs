//! Maps that are larger than one wants to hold: written strip by strip, read by region, looked into
//! block by block. The peak of what is allocated is measured.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ndarray::{Array3, Axis, s};
use portolan_io::{
    Element, FileKind, MapFile, MapLayout, MapWriter, NamedArray, ReadOptions, inspect, read_map,
};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::SeqCst) + layout.size();
        PEAK.fetch_max(now, Ordering::SeqCst);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::SeqCst);
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The peak is the process's: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes that `job` held at most beyond what was held before.
fn peak_of<T>(job: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.load(Ordering::SeqCst);
    PEAK.store(before, Ordering::SeqCst);
    let result = job();
    (result, PEAK.load(Ordering::SeqCst) - before)
}

fn power(rows: std::ops::Range<usize>, cols: usize, bands: usize) -> Array3<f64> {
    Array3::from_shape_fn((rows.len(), cols, bands), |(i, j, k)| {
        (1 + (rows.start + i) * 7 + j * 3 + k) as f64 / 64.0
    })
}

fn layout(rows: usize, cols: usize, bands: usize, element: Element) -> MapLayout {
    MapLayout { rows, cols, bands, arrays: vec!["map", "spread_db", "reading_spread_db"], element }
}

/// Writes a map in strips of five rows, whose arrays take turns.
fn written(path: &Path, rows: usize, cols: usize, bands: usize, element: Element) {
    let freq_hz: Vec<f64> = (0..bands).map(|band| 2.4e9 + 5e6 * band as f64).collect();
    let labels: Vec<String> = (0..bands).map(|band| format!("channel {band} µ")).collect();
    let small = [
        NamedArray::scalar("cell_m", 2.5),
        NamedArray::vector("freq_hz", &freq_hz),
        NamedArray::texts("labels", &labels),
        NamedArray::text("unit", "relative"),
    ];
    let layout = layout(rows, cols, bands, element);
    let mut writer = MapWriter::create(path, &layout, &small, false).unwrap();
    for first in (0..rows).step_by(5) {
        let strip = power(first..(first + 5).min(rows), cols, bands);
        writer.write_rows("map", strip.view()).unwrap();
        writer.write_rows("spread_db", (&strip * 0.5).view()).unwrap();
        writer.write_rows("reading_spread_db", (&strip * 2.0).view()).unwrap();
    }
    writer.finish().unwrap();
}

/// An npz of one array that is all zeros, deflated.
fn zeros(path: &Path, name: &str, descr: &str, shape: &[usize], bytes: usize) {
    let sides: String = shape.iter().map(|side| format!("{side}, ")).collect();
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({sides}), }}\n");
    let mut archive = ZipWriter::new(std::fs::File::create(path).unwrap());
    let deflated = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .large_file(true);
    archive.start_file(format!("{name}.npy"), deflated).unwrap();
    archive.write_all(b"\x93NUMPY\x01\x00").unwrap();
    archive.write_all(&(header.len() as u16).to_le_bytes()).unwrap();
    archive.write_all(header.as_bytes()).unwrap();
    std::io::copy(&mut std::io::repeat(0).take(bytes as u64), &mut archive).unwrap();
    if name != "map" {
        archive.start_file("psd.npy", deflated).unwrap();
        archive.write_all(b"\x93NUMPY\x01\x00").unwrap();
        let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1), }\n";
        archive.write_all(&(header.len() as u16).to_le_bytes()).unwrap();
        archive.write_all(header.as_bytes()).unwrap();
        archive.write_all(&1f64.to_le_bytes()).unwrap();
    }
    archive.finish().unwrap();
}

#[test]
fn what_is_written_strip_by_strip_is_read_whole_and_in_parts() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    for (name, element) in [("a.npz", Element::Float32), ("b.npz", Element::Float64)] {
        let path = folder.path().join(name);
        written(&path, 13, 7, 3, element);
        let whole = power(0..13, 7, 3);
        let map = read_map(&path, &ReadOptions::default()).unwrap().value;
        assert_eq!(*map.to_dense(), whole);
        assert_eq!(*map.spread_db().unwrap(), &whole * 0.5);
        assert_eq!(map.grid().cell_m(), 2.5);
        let mut file = MapFile::open(&path).unwrap();
        assert_eq!(file.shape(), (13, 7, 3));
        let kinds: Vec<String> = file.arrays().into_iter().map(|array| array.element).collect();
        assert_eq!(kinds[0], if element == Element::Float32 { "<f4" } else { "<f8" });
        assert_eq!(file.load_text("labels").unwrap().unwrap()[2], "channel 2 µ");
        assert_eq!(file.load_text("unit").unwrap().unwrap(), ["relative"]);
        assert_eq!(file.load("freq_hz").unwrap().unwrap().len(), 3);
        assert!(file.load("nothing").unwrap().is_none() && !file.has("nothing"));
        let region = file.read_rows("reading_spread_db", 4..9, 2..6, 1..2).unwrap();
        assert_eq!(region, whole.slice(s![4..9, 2..6, 1..2]).to_owned() * 2.0);
        assert!(file.read_rows("map", 4..14, 0..7, 0..3).unwrap_err().is_input());
        assert!(file.read_rows("none", 0..1, 0..1, 0..1).unwrap_err().is_input());
        let mut next = 0;
        for strip in file.strips("map", 4 * 7 * 3 * 8).unwrap() {
            let (rows, strip) = strip.unwrap();
            assert!(rows.start == next && rows.len() <= 4);
            assert_eq!(strip, whole.slice(s![rows.clone(), .., ..]));
            next = rows.end;
        }
        assert_eq!(next, 13);
        let mut files = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path());
        assert!(files.all(|file| file.extension().is_some_and(|end| end == "npz")));
    }
}

#[test]
fn factors_are_read_in_parts_too() {
    let _alone = alone();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let folder = tempfile::tempdir().unwrap();
    let whole = read_map(data.join("factored.npz"), &ReadOptions::default()).unwrap().value;
    let options = portolan_io::WriteOptions { dense: Some(false), ..Default::default() };
    let path = folder.path().join("factors.npz");
    portolan_io::write_map(&path, &whole, &options).unwrap();
    let mut file = MapFile::open(&path).unwrap();
    assert!(!file.has("map"));
    assert_eq!(file.shape(), (3, 4, 5));
    let region = file.read_rows("map", 1..3, 0..2, 2..5).unwrap();
    assert_eq!(region, whole.to_dense().slice(s![1..3, 0..2, 2..5]));
    let strips: Vec<Array3<f64>> =
        file.strips("map", 1).unwrap().map(|strip| strip.unwrap().1).collect();
    let views: Vec<_> = strips.iter().map(|strip| strip.view()).collect();
    assert_eq!(ndarray::concatenate(Axis(0), &views).unwrap(), *whole.to_dense());
}

#[test]
fn an_unfinished_map_leaves_nothing() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("map.npz");
    let files = || std::fs::read_dir(folder.path()).unwrap().count();
    let layout = MapLayout { arrays: vec!["map"], ..layout(4, 3, 2, Element::Float32) };
    let begin = || MapWriter::create(&path, &layout, &[], false).unwrap();
    let mut writer = begin();
    writer.write_rows("map", power(0..2, 3, 2).view()).unwrap();
    assert_eq!(files(), 1);
    drop(writer);
    assert_eq!(files(), 0);
    let mut writer = begin();
    writer.write_rows("map", power(0..3, 3, 2).view()).unwrap();
    let early = writer.finish().unwrap_err().to_string();
    assert!(early.contains("'map' got 3 rows, expected 4"), "{early}");
    assert_eq!(files(), 0);
    let mut writer = begin();
    for (array, strip) in [
        ("map", power(0..5, 3, 2)),
        ("map", power(0..1, 2, 3)),
        ("spread_db", power(0..1, 3, 2)),
        ("map", Array3::from_elem((1, 3, 2), 1e300)),
    ] {
        assert!(writer.write_rows(array, strip.view()).is_err(), "{array} {:?}", strip.dim());
    }
    drop(writer);
    let twice = MapWriter::create(&path, &layout, &[NamedArray::scalar("map", 1.0)], false);
    assert!(twice.is_err_and(|error| error.to_string().contains("comes twice")));
    let giant = MapLayout { rows: usize::MAX, ..layout.clone() };
    assert!(MapWriter::create(&path, &giant, &[], false).is_err_and(|error| error.is_input()));
    let large = MapLayout { rows: 1 << 50, ..layout.clone() };
    let full = MapWriter::create(&path, &large, &[], false);
    assert!(cfg!(not(unix)) || full.is_err_and(|error| error.to_string().contains("are free")));
    std::fs::write(&path, b"mine").unwrap();
    let exists = MapWriter::create(&path, &layout, &[], false);
    assert!(exists.is_err_and(|error| error.to_string().contains("--force")));
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
}

#[test]
fn reading_and_writing_in_parts_takes_little_memory() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("map.npz");
    // 3 x 40 MB as float32, 3 x 80 MB in memory.
    let (rows, cols, bands) = (1000, 1000, 10);
    let ((), peak) = peak_of(|| written(&path, rows, cols, bands, Element::Float32));
    assert!(peak < 4 << 20, "writing held {peak} bytes");
    let (sum, peak) = peak_of(|| {
        let mut file = MapFile::open(&path).unwrap();
        let strips = file.strips("map", 1 << 20).unwrap();
        let sum = strips.map(|strip| strip.unwrap().1.sum()).sum::<f64>();
        let region = file.read_rows("spread_db", 400..500, 20..60, 3..5).unwrap();
        assert_eq!(region[[99, 39, 1]], power(499..500, 60, 5)[[0, 59, 4]] * 0.5);
        sum
    });
    assert!(peak < 4 << 20, "reading held {peak} bytes");
    assert!(sum > 0.0);
    let (summary, peak) = peak_of(|| inspect(&path, &ReadOptions::default()).unwrap());
    assert!(peak < 4 << 20, "looking held {peak} bytes");
    assert_eq!((summary.rows, summary.cols, summary.bands), (rows, cols, bands));
    assert_eq!((summary.gaps, summary.entries, summary.has_spread), (0, 10_000_000, true));
    assert_eq!(summary.range, Some((1.0 / 64.0, (1 + 999 * 7 + 999 * 3 + 9) as f64 / 64.0)));
    assert_eq!(summary.freq_hz.unwrap().len(), bands);
    assert_eq!((summary.kind, summary.cell_m, summary.factors), (FileKind::Map, 2.5, None));
}

/// 522 KB that claim 8.4 GB were once loaded for a look; a quarter of it here.
#[test]
fn a_look_into_a_small_file_takes_little_memory() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zeros.npz");
    let bytes = 128 << 20;
    zeros(&path, "map", "|u1", &[1 << 10, 1 << 10, 1 << 7], bytes);
    assert!(std::fs::metadata(&path).unwrap().len() < 140_000);
    let (summary, peak) = peak_of(|| inspect(&path, &ReadOptions::default()).unwrap());
    assert!(peak < 4 << 20, "looking held {peak} bytes");
    assert_eq!((summary.entries, summary.range), (1 << 27, Some((0.0, 0.0))));
    // One row of all of it: a region still is read in little.
    zeros(&path, "map", "|u1", &[1, 1 << 27], bytes);
    let (summary, peak) = peak_of(|| inspect(&path, &ReadOptions::default()).unwrap());
    assert!(peak < 4 << 20, "looking held {peak} bytes");
    assert_eq!((summary.rows, summary.cols, summary.bands), (1, 1 << 27, 1));
    let (region, peak) = peak_of(|| {
        MapFile::open(&path).unwrap().read_rows("map", 0..1, (1 << 27) - 5..1 << 27, 0..1)
    });
    assert_eq!(region.unwrap().len(), 5);
    assert!(peak < 4 << 20, "the region held {peak} bytes");
    // Factors that would have to be unpacked as a whole are refused.
    zeros(&path, "slf", "|u1", &[1, 1 << 13, 1 << 14], bytes);
    let (error, peak) = peak_of(|| inspect(&path, &ReadOptions::default()).unwrap_err());
    assert!(peak < 4 << 20, "looking held {peak} bytes");
    assert!(error.is_input() && error.to_string().contains("np.savez"), "{error}");
}
