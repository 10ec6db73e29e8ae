//! Models in files: the same to the last bit, or refused.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use ndarray::Array2;
use portolan::estimate::build;
use portolan::{
    BandLabels, Context, Emitters, Grid, Model, Progress, Readings, Scale, Site, Values,
};
use portolan_io::{
    Content, FileKind, ReadOptions, inspect, read, read_map, read_model, read_readings, write_model,
};
use proptest::prelude::*;

/// Two emitters heard by sensors between cells.
fn readings(scale: Scale) -> Readings {
    let at = |s: usize| Site::new(100.0 + (s * 37 % 61) as f64 / 3.1, (s * 29 % 53) as f64 / 4.3);
    let sites: Vec<Site> = (0..28).map(at).collect();
    let heard = |site: Site, from: Site| 1.0 / (1.0 + site.distance_m(from).powi(2));
    let power = Array2::from_shape_fn((sites.len(), 3), |(s, k)| {
        let near = heard(sites[s], Site::new(104.0, 3.0)) * [1.0, 0.4, 0.05][k];
        let far = heard(sites[s], Site::new(115.0, 9.0)) * [0.03, 0.5, 0.9][k];
        let ripple = 10f64.powf(0.1 * ((s * 7 + k) as f64).sin());
        ripple * (near + far)
    });
    let origin = Site::new(99.0, -1.0);
    let grid = Grid::new(24, 16, 1.0).unwrap().with_origin(origin).unwrap();
    let names = ["a", "Küche", "c, d"].map(String::from).to_vec();
    let labels = BandLabels::new(Some(vec![1e9, 2e9, 3e9]), Some(names), 3).unwrap();
    Readings::new(sites, Values::Power(power), scale)
        .and_then(|r| r.with_grid(Some(grid))?.with_labels(labels))
        .unwrap()
}

/// Few iterations and one network: the file is what is tested.
const METHODS: [(&str, &[(&str, &str)]); 9] = [
    ("nearest", &[]),
    ("idw", &[]),
    ("linear", &[]),
    ("thin_plate", &[]),
    ("kriging", &[]),
    ("field", &[]),
    ("btd", &[("iterations", "20")]),
    ("unn", &[("iterations", "15"), ("members", "1")]),
    ("auto", &[]),
];

fn fitted(method: &str, settings: &[(&str, &str)], scale: Scale) -> Model {
    let settings = settings.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect::<Vec<_>>();
    let method = build(method, settings).unwrap();
    let context = Context { emitters: Emitters::Auto, seed: 3, ..Context::default() };
    method.fit(&readings(scale), &context, &Progress::silent()).unwrap()
}

fn written(model: &Model, folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    write_model(&path, model, false).unwrap();
    path
}

fn bits(values: &Array2<f64>) -> Vec<u64> {
    values.iter().map(|v| v.to_bits()).collect()
}

#[test]
fn a_model_that_was_written_and_read_predicts_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let places: Vec<Site> =
        (0..40).map(|i| Site::new(98.0 + 0.61 * f64::from(i), 0.37 * f64::from(i))).collect();
    for (method, settings) in METHODS {
        for (n, scale) in
            [Scale::Absolute, Scale::Uncalibrated, Scale::paper()].into_iter().enumerate()
        {
            let model = fitted(method, settings, scale).named(method);
            let path = written(&model, folder.path(), &format!("{method}{n}.npz"));
            let found = read_model(&path).unwrap();
            let silent = Progress::silent();
            let (a, b) = (model.predict(&places, &silent), found.predict(&places, &silent));
            let (a, b) = (a.unwrap(), b.unwrap());
            assert_eq!(bits(&a.power), bits(&b.power), "{method}");
            assert_eq!(a.spread_db.as_ref().map(bits), b.spread_db.as_ref().map(bits), "{method}");
            let reading = [&a, &b].map(|p| p.reading_spread_db.as_ref().map(bits));
            assert_eq!(reading[0], reading[1], "{method}");
            assert_eq!((found.scale(), found.grid()), (model.scale(), model.grid()), "{method}");
            assert_eq!(
                (found.labels(), found.sites()),
                (model.labels(), model.sites()),
                "{method}"
            );
            assert_eq!(found.emitters(), model.emitters(), "{method}");
            assert_eq!(found.report().method, method);
            assert_eq!(found.report().fitted, model.report().fitted, "{method}");
            assert_eq!(found.report().chosen, model.report().chosen, "{method}");
            // The same model is the same file.
            let again = written(&found, folder.path(), &format!("{method}{n}-again.npz"));
            assert_eq!(std::fs::read(&path).unwrap(), std::fs::read(again).unwrap(), "{method}");
        }
    }
}

#[test]
fn a_model_is_known_as_one() {
    let folder = tempfile::tempdir().unwrap();
    let model = fitted("kriging", &[], Scale::Absolute).named("kriging");
    let path = written(&model, folder.path(), "model.npz");
    let summary = inspect(&path, &ReadOptions::default()).unwrap();
    assert_eq!((summary.kind, summary.bands, summary.sensors), (FileKind::Model, 3, Some(28)));
    assert_eq!((summary.method.as_deref(), summary.unit), (Some("kriging"), Some("dbm")));
    let text = summary.to_string();
    assert!(text.contains("a fitted model") && text.contains("kriging"), "{text}");
    let content = read(&path, &ReadOptions::default()).unwrap().value;
    assert!(matches!(content, Content::Model(_)));
    let error = read_map(&path, &ReadOptions::default()).unwrap_err().to_string();
    assert!(error.contains("holds a model"), "{error}");
    let error = read_readings(&path, &ReadOptions::default()).unwrap_err().to_string();
    assert!(error.contains("holds a model"), "{error}");
    assert!(write_model(&path, &model, false).unwrap_err().to_string().contains("exists"));
    write_model(&path, &model, true).unwrap();
    let wrong = write_model(folder.path().join("model.mat"), &model, false).unwrap_err();
    assert!(wrong.is_input() && wrong.to_string().contains(".npz"), "{wrong}");
}

/// Reads bytes as a model: an error about the input in one line, or a model that answers.
fn survive(bytes: &[u8]) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.npz");
    std::fs::write(&path, bytes).unwrap();
    match read_model(&path) {
        Ok(model) => {
            // What it says is its own affair; it must not panic or claim the memory.
            let _ = model.predict(&[Site::new(100.0, 2.0)], &Progress::silent());
            true
        }
        Err(error) => {
            assert!(error.is_input(), "{error}");
            let text = error.to_string();
            assert!(!text.contains(['\n', '\r']) && text.len() < 1000, "{text}");
            false
        }
    }
}

fn bytes_of(method: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let (_, settings) = METHODS.into_iter().find(|(name, _)| *name == method).unwrap();
    let model = fitted(method, settings, Scale::Absolute);
    std::fs::read(written(&model, folder.path(), "model.npz")).unwrap()
}

#[test]
fn a_model_that_was_cut_short_is_refused() {
    for (method, _) in METHODS {
        let bytes = bytes_of(method);
        for part in 0..40 {
            assert!(!survive(&bytes[..bytes.len() * part / 40]), "{method} {part}");
        }
        assert!(!survive(&bytes[..bytes.len() - 1]), "{method}");
        assert!(survive(&bytes), "{method}");
    }
}

/// The archive with one of its arrays replaced, checksums and all.
fn with_array(bytes: &[u8], name: &str, npy: impl Fn(Vec<u8>) -> Option<Vec<u8>>) -> Vec<u8> {
    use std::io::{Cursor, Read, Write};
    let mut old = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
    let mut new = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for place in 0..old.len() {
        let mut file = old.by_index(place).unwrap();
        let (found, mut bytes) = (file.name().unwrap().into_owned(), Vec::new());
        file.read_to_end(&mut bytes).unwrap();
        let kept = if found == format!("{name}.npy") { npy(bytes) } else { Some(bytes) };
        let Some(bytes) = kept else { continue };
        let options = zip::write::SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Stored);
        new.start_file(found, options).unwrap();
        new.write_all(&bytes).unwrap();
    }
    new.finish().unwrap().into_inner()
}

/// The names of the arrays of an archive.
fn names(bytes: &[u8]) -> Vec<String> {
    let archive = zip::ZipArchive::new(std::io::Cursor::new(bytes)).unwrap();
    let names = archive.file_names().map(|name| name.unwrap().into_owned());
    names.filter_map(|name| name.strip_suffix(".npy").map(str::to_string)).collect()
}

#[test]
fn a_newer_model_is_refused_by_its_version() {
    let bytes = bytes_of("kriging");
    let newer = with_array(&bytes, "portolan_model", |mut npy| {
        let at = npy.len() - 8;
        npy[at..].copy_from_slice(&7i64.to_le_bytes());
        Some(npy)
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("newer.npz");
    std::fs::write(&path, newer).unwrap();
    let error = read_model(&path).unwrap_err();
    assert!(error.is_input() && error.to_string().contains("version 7"), "{error}");
}

#[test]
fn a_model_without_one_of_its_arrays_does_not_panic() {
    for (method, _) in METHODS {
        let bytes = bytes_of(method);
        for name in names(&bytes) {
            survive(&with_array(&bytes, &name, |_| None));
        }
    }
}

#[test]
fn arrays_of_another_length_or_of_wild_numbers_do_not_panic() {
    for (method, _) in METHODS {
        let bytes = bytes_of(method);
        // One of the arrays that differ in their numbers only: a law, a band, a member.
        let mut kinds = HashSet::new();
        let kind = |name: &String| name.replace(|c: char| c.is_ascii_digit(), "");
        for name in names(&bytes).into_iter().filter(|name| kinds.insert(kind(name))) {
            // The last element is dropped, in the header too where the array has one axis.
            survive(&with_array(&bytes, &name, |npy| shortened(&npy)));
            for wild in [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e300] {
                survive(&with_array(&bytes, &name, |mut npy| {
                    let at = npy.len().checked_sub(8)?;
                    npy[at..].copy_from_slice(&wild.to_le_bytes());
                    Some(npy)
                }));
            }
            for whole in [i64::MAX, -1, 0, 1 << 40] {
                survive(&with_array(&bytes, &name, |mut npy| {
                    let at = npy.len().checked_sub(8)?;
                    npy[at..].copy_from_slice(&whole.to_le_bytes());
                    Some(npy)
                }));
            }
        }
    }
}

/// An array of one axis and 8-byte elements without its last.
fn shortened(npy: &[u8]) -> Option<Vec<u8>> {
    let header = usize::from(u16::from_le_bytes([npy[8], npy[9]]));
    let text = std::str::from_utf8(&npy[10..10 + header]).ok()?;
    if !(text.contains("'<f8'") || text.contains("'<i8'")) {
        return None;
    }
    let (before, rest) = text.split_once("'shape': (")?;
    let (shape, after) = rest.split_once(')')?;
    let count: usize = shape.trim_end_matches(',').parse().ok()?;
    let less = count.checked_sub(1)?;
    let header = format!("{before}'shape': ({less},){after}");
    let mut bytes = npy[..8].to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(&npy[10 + text.len()..npy.len() - 8]);
    Some(bytes)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn flipped_bits_do_not_panic(
        method in 0..METHODS.len(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0u8..8), 1..4),
    ) {
        static FILES: std::sync::OnceLock<Vec<Vec<u8>>> = std::sync::OnceLock::new();
        let all = || METHODS.iter().map(|(method, _)| bytes_of(method)).collect();
        let mut bytes = FILES.get_or_init(all)[method].clone();
        for (place, bit) in flips {
            let place = place.index(bytes.len());
            bytes[place] ^= 1 << bit;
        }
        survive(&bytes);
    }
}
