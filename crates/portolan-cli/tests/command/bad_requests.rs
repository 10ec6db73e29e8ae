//! Requests that make no sense, whatever the files: one line, exit 2, no output.

use crate::support::Desk;

#[test]
fn an_unknown_option_of_the_command() {
    let desk = Desk::with_readings();
    desk.refused("estimate readings.npz -o x.npz --metod idw", &["'--metod'", "'--method'"]);
    desk.refused("frobnicate", &["'frobnicate'"]);
    desk.refused("estimate readings.npz", &["--output"]);
    desk.refused("score truth.npz", &["<TRUTH>"]);
}

#[test]
fn an_unknown_option_of_a_method() {
    let desk = Desk::with_readings();
    let estimate = "estimate readings.npz -o x.npz";
    desk.refused(
        &format!("{estimate} --method kriging --set colour=red"),
        &["kriging", "'colour'", "sill"],
    );
    desk.refused(&format!("{estimate} --method nearest --set power=2"), &["nearest", "'power'"]);
    desk.refused(&format!("{estimate} --set colour=red"), &["auto", "'colour'", "folds"]);
    desk.refused(&format!("{estimate} --set colour"), &["'colour'", "KEY=VALUE"]);
    desk.refused("compare readings.npz truth.npz --methods idw:colour=red", &["idw", "'colour'"]);
    desk.refused(
        "compare readings.npz truth.npz --methods idw:colour",
        &["idw:colour", "name:key=value"],
    );
}

#[test]
fn an_unknown_method() {
    let desk = Desk::with_readings();
    desk.refused("estimate readings.npz -o x.npz --method magic", &["'magic'", "kriging"]);
    desk.refused("compare readings.npz truth.npz --methods idw,magic", &["'magic'", "kriging"]);
    desk.refused("compare readings.npz truth.npz --methods=", &["''", "kriging"]);
}

#[test]
fn bad_values_of_a_method_s_options() {
    let desk = Desk::with_readings();
    for (method, setting) in [
        ("kriging", "covariance=round"),
        ("kriging", "decorrelation=0"),
        ("kriging", "decorrelation=nan"),
        ("kriging", "sill=-1"),
        ("kriging", "nugget=inf"),
        ("kriging", "trend=cubic"),
        ("kriging", "neighbours=0"),
        ("kriging", "neighbours=2.5"),
        ("kriging", "domain=decibel"),
        ("idw", "power=0"),
        ("idw", "power=much"),
        ("thin_plate", "smoothing=-1"),
        ("nearest", "offset=0"),
        ("nearest", "domain="),
        ("auto", "folds=1"),
    ] {
        let args = format!("estimate readings.npz -o x.npz --method {method} --set {setting}");
        desk.refused(&args, &[method, setting]);
    }
}

#[test]
fn bad_values_of_simulate() {
    let desk = Desk::new();
    for (option, value, words) in [
        ("--grid", "64", "ROWSxCOLS"),
        ("--grid", "64x", "ROWSxCOLS"),
        ("--grid", "-4x4", "ROWSxCOLS"),
        ("--grid", "0x64", "0 x 64"),
        ("--grid", "1000000x1000000", "1000000 x 1000000"),
        ("--grid", "18446744073709551615x2", "18446744073709551615 x 2"),
        ("--bands", "0", "0 bands"),
        ("--bands", "some", "'some'"),
        ("--emitters", "0", "0 emitters"),
        ("--shadow-db", "nan", "NaN dB"),
        ("--shadow-db", "-1", "-1"),
        ("--decorrelation", "0", "0 m"),
        ("--decorrelation", "inf", "inf"),
        ("--cell-m", "0", "0 m"),
        ("--cell-m", "nan", "NaN m"),
        ("--psd", "square", "gaussian"),
        ("--seed", "-1", "--seed"),
    ] {
        desk.refused(&format!("simulate -o x.npz {option}={value}"), &[words]);
    }
}

#[test]
fn bad_values_of_sense() {
    let desk = Desk::with_readings();
    for (rest, words) in [
        ("--fraction 0", "more than 0, up to 1"),
        ("--fraction nan", "more than 0, up to 1"),
        ("--fraction 2", "more than 0, up to 1"),
        ("--fraction=-1", "more than 0, up to 1"),
        ("--count 0", "2 to 224"),
        ("--count 1", "2 to 224"),
        ("--count 225", "2 to 224"),
        ("--count 3 --fraction 0.1", "cannot be used with"),
        ("--lattice 0", "1 or more"),
        ("--cells 1,1;99,2", "row 99, col 2"),
        ("--cells 1,1", "1 sensor"),
        ("--cells 1;2", "row,col"),
        ("--cells nowhere.txt", "nowhere.txt"),
        ("--path 1,1", "two waypoints"),
        ("--path 1,1;99,2", "row 99, col 2"),
        ("--path 1,1;5,5 --every 0", "1 or more"),
        ("--snr-db nan", "NaN dB"),
        ("--gaps 1", "0 up to 1"),
        ("--gaps nan", "0 up to 1"),
        ("--bits 0", "1 to 8"),
        ("--bits 9", "1 to 8"),
        ("--bits 2 --edges 1,2", "2 edges make 3 levels"),
        ("--bits 2 --edges 3,2,1", "quantiser"),
        ("--bits 2 --edges a,b,c", "'a,b,c'"),
        ("--bits 2 --sigma -1", "quantiser"),
        ("--bits 2 --sigma=nan", "quantiser"),
        ("--sigma 1", "--bits"),
    ] {
        desk.refused(&format!("sense truth.npz -o x.npz {rest}"), &[words]);
    }
}

#[test]
fn bad_values_of_estimate_score_and_plot() {
    let desk = Desk::with_readings();
    for (args, words) in [
        ("estimate readings.npz -o x.npz --emitters 0", "above 0, or auto"),
        ("estimate readings.npz -o x.npz --threads 0", "1 to 1024"),
        ("estimate readings.npz -o x.npz --unit watt", "linear"),
        ("estimate readings.npz -o x.npz --grid 3", "ROWSxCOLS"),
        ("estimate readings.npz -o x.npz --grid 9x9", "readings.npz: the grid is 16 x 14"),
        ("estimate readings.npz -o x.npz --cell-m 0", "readings.npz: a cell of 0 m"),
        ("estimate readings.npz -o x.npz --origin 3", "X,Y"),
        ("score truth.npz truth.npz --offset -1", "--offset -1"),
        ("score truth.npz truth.npz --offset nan", "--offset NaN"),
        ("score truth.npz truth.npz --var nothing", "--var nothing"),
        ("inspect truth.npz --var nothing", "truth.npz: array 'nothing' is missing"),
        ("plot truth.npz -o x.png --band 5", "band 5: the map has band0, band1"),
        ("plot truth.npz --band 5", "band 5: the map has band0, band1"),
        ("plot truth.npz -o x.jpg", "x.jpg: expected a .png, .svg or .pdf"),
        ("plot truth.npz --factors", "-o"),
    ] {
        desk.refused(args, &[words]);
    }
    desk.ok("estimate readings.npz -o dense.npz --method idw");
    desk.refused("plot dense.npz --factors -o x.png", &["dense.npz", "slf and psd"]);
}

#[test]
fn an_output_that_exists_stays_as_it_is() {
    let desk = Desk::with_readings();
    desk.write("there.npz", "mine");
    desk.write("there.csv", "mine");
    desk.write("there.png", "mine");
    for args in [
        "simulate -o there.npz",
        "sense truth.npz -o there.npz",
        "estimate readings.npz -o there.npz",
        "convert truth.npz there.csv",
        "plot truth.npz -o there.png",
    ] {
        desk.refused(args, &["there.", "exists already", "--force"]);
    }
    assert_eq!(desk.read("there.npz"), b"mine");
}

#[test]
fn an_output_in_a_folder_that_is_not_there() {
    let desk = Desk::with_readings();
    for args in [
        "simulate -o no/x.npz",
        "sense truth.npz -o no/x.npz",
        "estimate readings.npz -o no/x.npz",
        "convert truth.npz no/x.csv",
        "plot truth.npz -o no/x.png",
    ] {
        desk.refused(args, &["no/x.", "folder does not exist"]);
    }
    assert!(!desk.path("no").exists());
    desk.refused("demo --out truth.npz", &["truth.npz"]);
}

#[test]
fn an_output_with_a_wrong_ending_is_refused_before_the_work() {
    let desk = Desk::with_readings();
    // The input does not exist either: the ending is told first.
    for args in [
        "simulate -o x.txt",
        "sense none.npz -o x.npy",
        "estimate none.npz -o x",
        "convert none.npz x.xlsx",
    ] {
        desk.refused(args, &["x", ".npz, .csv or .mat"]);
    }
    desk.refused("convert truth.npz .", &["."]);
}
