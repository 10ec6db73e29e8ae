//! Bytes that nobody should trust, through the whole command: exit 2 and one line, never a panic.

use std::path::Path;

use proptest::prelude::*;

use crate::npz::npz;
use crate::support::Desk;

/// A good file of each format and what it holds.
fn good(desk: &Desk) -> Vec<String> {
    for extension in ["mat", "csv"] {
        desk.ok(&format!("convert readings.npz readings.{extension}"));
        desk.ok(&format!("convert truth.npz truth.{extension}"));
    }
    let kinds = ["readings", "truth"];
    let names = |kind: &&str| ["npz", "mat", "csv"].map(|extension| format!("{kind}.{extension}"));
    kinds.iter().flat_map(names).collect()
}

/// Every reading command on these bytes: a clean refusal, or a clean success where the damage does
/// no harm.
fn survive(desk: &Desk, name: &str, bytes: &[u8], harmless: bool) {
    desk.write(name, bytes);
    // A flipped bit can make an honest grid of millions of cells, whose estimate takes its time.
    let reader = if harmless { "convert" } else { "estimate" };
    let output = if harmless { "" } else { "-o" };
    for args in [
        format!("inspect {name}"),
        format!("{reader} {name} {output} out.npz --force"),
        format!("plot {name} -o out.png --force"),
    ] {
        let said = desk.run(&args);
        assert!(!said.stderr.contains("panicked"), "{args}: {}", said.stderr);
        match said.code {
            Some(2) => {
                said.complaint();
                assert_eq!(said.stdout, "");
            }
            code => assert!(harmless && code == Some(0), "{args}: {code:?} {}", said.stderr),
        }
        let left: Vec<String> =
            desk.files().into_keys().filter(|file| file.starts_with(".portolan")).collect();
        assert!(left.is_empty(), "{args}: {left:?}");
    }
}

#[test]
fn truncated_files_of_every_format() {
    let desk = Desk::with_readings();
    for name in good(&desk) {
        let bytes = desk.read(&name);
        let (_, extension) = name.split_once('.').unwrap();
        for part in 0..12 {
            let length = bytes.len() * part / 12;
            // A table that ends early at a line's end is a shorter table.
            survive(&desk, &format!("cut.{extension}"), &bytes[..length], extension == "csv");
        }
        if extension != "csv" {
            survive(&desk, &format!("cut.{extension}"), &bytes[..bytes.len() - 1], false);
        }
    }
}

#[test]
fn truncated_matlab_73_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../portolan-io/tests/data");
    let desk = Desk::new();
    for name in ["authors73.mat", "authors73_chunked.mat", "levels73.mat"] {
        let bytes = std::fs::read(folder.join(name)).unwrap();
        desk.write("whole.mat", &bytes);
        desk.ok("inspect whole.mat");
        for part in 0..12 {
            survive(&desk, "cut.mat", &bytes[..bytes.len() * part / 12], false);
        }
    }
}

#[test]
fn a_matlab_file_without_variables_is_refused() {
    let header = [[b' '; 124].as_slice(), b"\x00\x01IM"].concat();
    for tail in [&b""[..], b"abc"] {
        survive(&Desk::new(), "empty.mat", &[&header, tail].concat(), false);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_in_every_format(
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        kind in 0usize..6,
    ) {
        let (name, start): (_, Vec<u8>) = match kind {
            0 => ("a.npz", b"PK\x03\x04".to_vec()),
            1 => ("a.npz", Vec::new()),
            2 => ("a.mat", [[b' '; 124].as_slice(), b"\x00\x01IM"].concat()),
            3 => ("a.mat", b"\x89HDF\r\n\x1a\n".to_vec()),
            4 => ("a.csv", b"row,col,dbm_1GHz\n".to_vec()),
            _ => ("a.csv", Vec::new()),
        };
        survive(&Desk::new(), name, &[start, bytes].concat(), false);
    }

    #[test]
    fn flipped_bits_in_every_format(
        file in any::<prop::sample::Index>(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0u8..8), 1..5),
    ) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../portolan-io/tests/data");
        let names = ["values.npz", "factored.npz", "levels.mat", "authors.mat", "authors73.mat", "levels73.mat"];
        let name = names[file.index(names.len())];
        let mut bytes = std::fs::read(folder.join(name)).unwrap();
        for (place, bit) in flips {
            let place = place.index(bytes.len());
            bytes[place] ^= 1 << bit;
        }
        survive(&Desk::new(), name, &bytes, true);
    }
}

#[test]
fn sizes_that_do_not_fit_memory_are_refused_before_they_are_allocated() {
    let desk = Desk::with_readings();
    let giant = |name| (name, &[1_000_000, 1_000_000, 1_000_000][..], &[1.0][..]);
    desk.write("map.npz", npz(&[giant("map")]));
    for args in ["inspect map.npz", "score map.npz truth.npz", "sense map.npz -o x.npz"] {
        desk.refused(args, &["map.npz: array 'map'", "1000000"]);
    }
    let grid = |side: f64| {
        npz(&[
            ("grid", &[2], &[side, side]),
            ("cells", &[2, 2], &[0.0, 0.0, 3.0, 4.0]),
            ("values", &[2, 1], &[1.0, 2.0]),
        ])
    };
    desk.write("grid.npz", grid(1e9));
    desk.refused("estimate grid.npz -o x.npz", &["x.npz", "1000000000 x 1000000000"]);
    desk.write("grid.npz", grid(1e300));
    desk.refused("estimate grid.npz -o x.npz", &["grid.npz", "grid"]);
    desk.write("far.csv", "row,col,mw_1GHz\n0,0,1\n200000000,200000000,2\n");
    desk.refused("estimate far.csv -o x.npz", &["x.npz", "200000001 x 200000001"]);
    let shape = [3_000, 3_000, 3_000];
    desk.write("map.npz", npz(&[("slf", &shape, &[1.0]), ("psd", &[3_000, 4], &[1.0])]));
    desk.refused("plot map.npz -o x.png", &["map.npz: array 'slf'", "3000"]);
}

#[test]
fn a_file_under_another_s_name_is_recognised_or_refused() {
    let desk = Desk::with_readings();
    let bytes = desk.read("readings.npz");
    // What a file holds is told by its first bytes; its name is only a hint.
    desk.write("readings.csv", &bytes);
    desk.ok("inspect readings.csv");
    desk.write("table.npz", "row,col,mw_1GHz\n0,0,1\n");
    desk.refused("inspect table.npz", &["table.npz", "expected an npz archive"]);
    desk.write("table.mat", "row,col,mw_1GHz\n0,0,1\n");
    desk.refused("inspect table.mat", &["table.mat", "MATLAB"]);
    desk.write("text.csv", [0xff, 0xfe, 0x00]);
    desk.refused("inspect text.csv", &["text.csv", "UTF-8"]);
    desk.write("one.npy", b"\x93NUMPY\x01\x00");
    desk.refused("inspect one.npy", &["one.npy", "cut short"]);
}
