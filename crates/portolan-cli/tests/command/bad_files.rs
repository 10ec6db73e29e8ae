//! Files that hold something else than they should: the line names the file and the place in it.

use crate::npz::{map, npz, readings};
use crate::support::{Desk, METHODS};

const NAN: f64 = f64::NAN;

/// Three sensors on the grid of `npz::readings`.
const CELLS: [(f64, f64); 3] = [(0.0, 0.0), (3.0, 4.0), (7.0, 8.0)];

/// Feeds readings to `estimate`, `inspect` and `convert`, which must refuse them alike.
fn refused(name: &str, bytes: impl AsRef<[u8]>, words: &[&str]) {
    let desk = Desk::new();
    desk.write(name, bytes);
    let words = [&[name], words].concat();
    for args in [format!("estimate {name} -o x.npz"), format!("convert {name} x.mat")] {
        desk.refused(&args, &words);
    }
}

/// Feeds a map to the commands that take one.
fn refused_map(name: &str, bytes: impl AsRef<[u8]>, words: &[&str]) {
    let desk = Desk::with_readings();
    desk.write(name, bytes);
    let words = [&[name], words].concat();
    for args in [
        format!("sense {name} -o x.npz"),
        format!("score {name} truth.npz"),
        format!("score truth.npz {name}"),
        format!("compare readings.npz {name}"),
        format!("plot {name} -o x.png"),
    ] {
        desk.refused(&args, &words);
    }
}

#[test]
fn a_wrong_shape_of_readings() {
    refused("r.npz", readings(&CELLS, &[1.0, 2.0]), &["values", "[2, 1]", "[3, 1]"]);
    let flat = [("grid", &[2][..], &[8.0, 9.0][..]), ("cells", &[4], &[0.0, 0.0, 1.0, 1.0])];
    let values = ("values", &[2, 1][..], &[1.0, 2.0][..]);
    refused("r.npz", npz(&[flat[0], flat[1], values]), &["'cells'", "[4]", "row, col"]);
    let cells = ("cells", &[2, 2][..], &[0.0, 0.0, 1.0, 1.0][..]);
    let cube = ("values", &[2, 1, 1][..], &[1.0, 2.0][..]);
    refused("r.npz", npz(&[flat[0], cells, cube]), &["'values'", "[2, 1, 1]", "sensors x bands"]);
    let grid = ("grid", &[3][..], &[8.0, 9.0, 2.0][..]);
    refused("r.npz", npz(&[grid, cells, values]), &["'grid'", "rows and cols"]);
    let grid = ("grid", &[2][..], &[8.5, 9.0][..]);
    refused("r.npz", npz(&[grid, cells, values]), &["'grid'", "8.5"]);
}

#[test]
fn a_wrong_shape_of_a_map() {
    refused_map(
        "m.npz",
        npz(&[("map", &[4], &[1.0; 4])]),
        &["'map'", "[4]", "rows x cols x bands"],
    );
    let slf = ("slf", &[2, 3, 3][..], &[1.0; 18][..]);
    let psd = ("psd", &[3, 2][..], &[1.0; 6][..]);
    refused_map("m.npz", npz(&[slf, psd]), &["psd"]);
    let dense = ("map", &[3, 3, 2][..], &[1.0; 18][..]);
    let freq = ("freq_hz", &[3][..], &[1.0; 3][..]);
    refused_map("m.npz", npz(&[dense, freq]), &["freq"]);
    refused_map("m.npz", npz(&[("other", &[2], &[1.0; 2])]), &["'other'", "'map'", "--var"]);
}

#[test]
fn negative_or_infinite_power() {
    refused(
        "r.npz",
        readings(&CELLS, &[1.0, -2.0, 1.0]),
        &["sensor 1, band 0", "-2", "--unit dbm"],
    );
    refused("r.npz", readings(&CELLS, &[1.0, f64::INFINITY, 1.0]), &["sensor 1", "inf"]);
    refused("r.csv", "row,col,mw_1GHz\n0,0,1\n1,1,-2\n", &["line 3, column 3", "-2", "negative"]);
    refused_map("m.npz", map(12, 12, 1.0, -3.0), &["row 0, col 0, band 0", "-3"]);
    refused_map("m.npz", map(12, 12, 1.0, f64::INFINITY), &["row 0, col 0", "inf"]);
}

#[test]
fn nan_where_none_may_be() {
    // NaN is a gap among readings, but a position, an edge or a factor must be a number.
    let lost = [(0.0, 0.0), (NAN, 4.0), (7.0, 8.0)];
    refused("r.npz", readings(&lost, &[1.0, 2.0, 1.0]), &["sensor 1", "NaN"]);
    refused("r.npz", readings(&CELLS, &[NAN; 3]), &["band 0", "no reading"]);
    refused("r.csv", "row,col,mw_1GHz\n0,0,1\n,1,2\n", &["line 3, column 1", "position"]);
    let slf = ("slf", &[1, 2, 2][..], &[1.0; 4][..]);
    refused_map("m.npz", npz(&[slf, ("psd", &[1, 1], &[NAN])]), &["psd", "NaN"]);
    let dense = ("map", &[2, 2, 1][..], &[1.0; 4][..]);
    refused_map("m.npz", npz(&[dense, ("freq_hz", &[1], &[NAN])]), &["frequency", "NaN"]);
    refused_map("m.npz", npz(&[dense, ("cell_m", &[], &[NAN])]), &["cell", "NaN"]);
    refused_map("m.npz", npz(&[dense, ("emitters", &[1, 2], &[0.0, NAN])]), &["'emitters'"]);
}

#[test]
fn a_sensor_off_the_grid() {
    let off = [(0.0, 0.0), (8.0, 4.0), (7.0, 8.0)];
    refused("r.npz", readings(&off, &[1.0; 3]), &["sensor 1", "row 8, col 4", "8 x 9"]);
    let before = [(0.0, 0.0), (-1.0, 4.0), (7.0, 8.0)];
    refused("r.npz", readings(&before, &[1.0; 3]), &["sensor 1", "row -1, col 4"]);
    let between = [(0.0, 0.0), (1.5, 4.0), (7.0, 8.0)];
    refused("r.npz", readings(&between, &[1.0; 3]), &["sensor 1", "row 1.5", "whole"]);
    let desk = Desk::new();
    desk.write("r.csv", "row,col,mw_1GHz\n0,0,1\n5,2,1\n");
    desk.refused("estimate r.csv -o x.npz --grid 4x4", &["r.csv: line 3", "row 5, col 2", "4 x 4"]);
}

#[test]
fn no_sensors_and_one_sensor() {
    refused("r.npz", readings(&[], &[]), &["0 sensor(s)", "at least 2"]);
    refused("r.npz", readings(&CELLS[..1], &[1.0]), &["1 sensor(s)", "at least 2"]);
    refused("r.csv", "row,col,mw_1GHz\n", &["no readings"]);
    refused("r.csv", "row,col,mw_1GHz\n3,4,1\n", &["1 sensor(s)", "at least 2"]);
    // Two lines of the same cell are two rows and one place.
    let desk = Desk::new();
    desk.write("r.csv", "row,col,mw_1GHz\n3,4,1\n3,4,2\n");
    desk.ok("convert r.csv r.npz");
    desk.refused("estimate r.npz -o x.npz --method idw", &["1 sensor(s)", "at least 2 places"]);
}

#[test]
fn all_zero_readings() {
    refused("r.npz", readings(&CELLS, &[0.0; 3]), &["all readings are zero"]);
    refused("r.csv", "row,col,mw_1GHz\n3,4,0\n1,2,0\n", &["all readings are zero"]);
}

#[test]
fn cells_given_twice_in_an_archive_are_averaged_where_nothing_knows_noise() {
    let desk = Desk::new();
    let twice = [(0.0, 0.0), (3.0, 4.0), (3.0, 4.0), (7.0, 8.0)];
    let in_decibels = ((4f64.ln() + 8f64.ln()) / 2.0).exp();
    // In dB where a power has a unit, in power where it is relative.
    for (unit, mean) in [("linear", in_decibels), ("relative", 6.0)] {
        desk.write("twice.npz", readings(&twice, &[1.0, 4.0, 8.0, 2.0]));
        desk.write("once.npz", readings(&CELLS, &[1.0, mean, 2.0]));
        for method in METHODS {
            let rest = format!("--method {method} --unit {unit} --force");
            let said = desk.ok(&format!("estimate twice.npz -o a.npz {rest}"));
            let note = format!("1 reading at a place read before was averaged: {method} has no");
            let surface = ["nearest", "idw", "linear", "thin_plate"].contains(&method);
            assert_eq!(said.stderr.contains(&note), surface, "{}", said.stderr);
            desk.ok(&format!("estimate once.npz -o b.npz {rest}"));
            // Where noise is fitted, two readings count for more than one.
            if !["kriging", "auto"].contains(&method) {
                assert_eq!(desk.read("a.npz"), desk.read("b.npz"), "{method} {unit}");
            }
        }
    }
}

#[test]
fn levels_out_of_range_or_without_their_quantiser() {
    let grid = ("grid", &[2][..], &[8.0, 9.0][..]);
    let cells = ("cells", &[2, 2][..], &[0.0, 0.0, 3.0, 4.0][..]);
    let edges = ("edges", &[3][..], &[-6.0, -4.0, -2.0][..]);
    let noise = [("sigma", &[][..], &[1.0][..]), ("a", &[][..], &[1e-6][..])];
    let with = |levels: &[f64]| {
        npz(&[grid, cells, ("levels", &[2, 1], levels), edges, noise[0], noise[1]])
    };
    refused("r.npz", with(&[1.0, 4.0]), &["level 4", "sensor 1, band 0", "0 to 3"]);
    refused("r.npz", with(&[1.0, 0.5]), &["sensor 1, band 0", "0.5"]);
    refused("r.npz", with(&[1.0, -1.0]), &["sensor 1, band 0", "-1"]);
    refused("r.npz", with(&[255.0, 255.0]), &["band 0", "no reading"]);
    let levels = ("levels", &[2, 1][..], &[1.0, 2.0][..]);
    refused("r.npz", npz(&[grid, cells, levels, noise[0], noise[1]]), &["'edges'", "missing"]);
    let down = ("edges", &[3][..], &[-2.0, -4.0, -6.0][..]);
    refused("r.npz", npz(&[grid, cells, levels, down, noise[0], noise[1]]), &["quantiser", "edge"]);
}

#[test]
fn readings_where_a_map_is_expected_and_the_other_way_round() {
    let desk = Desk::with_readings();
    for args in [
        "sense readings.npz -o x.npz",
        "score readings.npz truth.npz",
        "score truth.npz readings.npz",
        "compare readings.npz readings.npz",
        "plot readings.npz -o x.png",
    ] {
        desk.refused(args, &["readings.npz: holds readings, expected a map"]);
    }
    for args in [
        "estimate truth.npz -o x.npz",
        "compare truth.npz truth.npz",
        "plot truth.npz -o x.png --readings truth.npz",
    ] {
        desk.refused(args, &["truth.npz: holds a map, expected readings"]);
    }
}

#[test]
fn an_input_that_is_not_there() {
    let desk = Desk::with_readings();
    for args in [
        "sense none.npz -o x.npz",
        "estimate none.npz -o x.npz",
        "score none.npz truth.npz",
        "score truth.npz none.npz",
        "compare none.npz truth.npz",
        "plot none.npz -o x.png",
        "plot truth.npz -o x.png --truth none.npz",
        "inspect none.npz",
        "convert none.npz x.csv",
    ] {
        desk.refused(args, &["none.npz: cannot be opened"]);
    }
    desk.refused("inspect .", &[".: is a folder"]);
}

#[test]
fn maps_that_do_not_fit_each_other() {
    let desk = Desk::with_readings();
    desk.ok("simulate -o other.npz --grid 14x16 --bands 5");
    desk.ok("simulate -o bands.npz --grid 16x14 --bands 4");
    for other in ["other.npz", "bands.npz"] {
        desk.refused(&format!("score truth.npz {other}"), &["truth.npz", "[16, 14, 5]", "differ"]);
    }
    let compare = "compare readings.npz";
    desk.refused(&format!("{compare} bands.npz"), &["bands.npz", "[16, 14, 5]", "differ"]);
    desk.refused(&format!("{compare} other.npz"), &["readings.npz", "off the grid of 14 x 16"]);
    desk.refused("plot truth.npz -o x.png --truth other.npz", &["16 x 14", "14 x 16"]);
    desk.ok("sense other.npz -o other-readings.npz --count 20");
    // Sensors stand where they stand: those on the map are drawn.
    desk.ok("plot truth.npz -o some.png --readings other-readings.npz");
    let far = "plot truth.npz -o x.png --readings";
    desk.write("far.csv", "x_m,y_m,dbm_1GHz\n900,900,-40\n901,900,-41\n");
    desk.refused(&format!("{far} far.csv"), &["bands"]);
    let bands: String = (1..=5).map(|band| format!(",dbm_{band}GHz")).collect();
    let line = |x: f64| format!("{x},900,-40,-40,-40,-40,-40\n");
    desk.write("far.csv", format!("x_m,y_m{bands}\n{}{}", line(900.0), line(901.0)));
    desk.refused(&format!("{far} far.csv"), &["sensor"]);
}

#[test]
fn a_grid_smaller_than_the_window_of_ssim_is_compared_without_it() {
    let desk = Desk::new();
    desk.write("small.npz", map(4, 4, 1.0, 2.0));
    desk.write("readings.csv", "row,col,mw_1GHz\n0,0,2\n3,3,1\n");
    let compare = "compare readings.csv small.npz --methods idw --grid 4x4";
    assert!(desk.ok(compare).stdout.contains("idw"));
    assert!(desk.json(&format!("{compare} --json"))[0]["ssim"].is_null());
}

#[test]
fn a_number_in_a_table_that_is_none() {
    for (bad, place) in [
        ("row,col,dbm_1GHz\n0,0,-40\n1,1,abc\n", "line 3, column 3: 'abc'"),
        ("row,col,dbm_1GHz\n0,0,inf\n1,1,-3\n", "line 2, column 3: 'inf'"),
        ("row,col,dbm_1GHz\n0,0,1e9\n1,1,-3\n", "line 2, column 3: '1e9'"),
        ("row,col,dbm_1GHz\n0,x,-40\n1,1,-3\n", "line 2, column 2: 'x'"),
        ("row,col,dbm_1GHz\n0,1.5,-40\n1,1,-3\n", "line 2, column 2: '1.5'"),
        ("row,col,dbm_1GHz\n0,0,-40\n1,1\n", "line 3: 2 fields, expected 3"),
        ("# survey\nrow,col,dbm_1GHz\n0,0,-40\n1,1,-4O\n", "line 4, column 3: '-4O'"),
        ("row,col,dbm_1GHz\n0,0,-40\n1,1,\"-3\n4\"\n", "line 3, column 3: '-3\\n4'"),
        ("x_m,y_m,freq_hz,power_dbm\n0,0,-5,-40\n", "line 2, column 3: '-5'"),
    ] {
        refused("t.csv", bad, &[place]);
    }
}

#[test]
fn a_header_that_is_not_clear() {
    refused("t.csv", "row,col,2412MHz\n0,0,-40\n", &["line 1, column 3 '2412MHz'", "--unit dbm"]);
    refused("t.csv", "x_m,y_m,freq_hz,power\n0,0,1e9,3\n", &["column 4 'power'", "--unit dbm"]);
    refused("t.csv", "lat,lon,dbm_1GHz\n0,0,-40\n", &["none of 1 line(s) has a position"]);
    refused("t.csv", "row,col,remark\n0,0,x\n", &["column 3 'remark'"]);
    refused("t.csv", "lat,y_m,dbm_1GHz\n0,0,-40\n", &["line 1", "lat,lon", "seen: 'lat'"]);
    refused("t.csv", "row,col\n0,0\n", &["line 1", "no band columns"]);
    refused("t.csv", "0,0,-40\n1,1,-50\n", &["line 1", "header"]);
    refused("t.csv", "", &["is empty"]);
}
