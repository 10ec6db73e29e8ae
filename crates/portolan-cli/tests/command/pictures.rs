//! Pictures of maps in every kind of file, and what is refused.

use super::npz::npz;
use super::support::{Desk, PNG};

/// A desk with a map of 30 sensors that has a spread.
fn desk() -> Desk {
    let desk = Desk::with_readings();
    desk.ok("estimate readings.npz -o map.npz --method kriging");
    desk
}

/// A small plan: a PNG of this program's own.
fn with_plan() -> Desk {
    let desk = desk();
    desk.ok("plot map.npz -o plan.png --width 300");
    desk
}

/// Width and height of a PNG.
fn size(png: &[u8]) -> (u32, u32) {
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    (number(16), number(20))
}

#[test]
fn a_map_becomes_png_svg_and_pdf() {
    let desk = desk();
    let said = desk.ok("plot map.npz -o map.png --readings readings.npz --width 700");
    let png = desk.read("map.png");
    assert!(png.starts_with(PNG) && size(&png).0 == 700, "{:?}", size(&png));
    assert!(said.stderr.contains("map.png: 700 x ") && said.stdout.is_empty(), "{}", said.stderr);
    desk.ok("plot map.npz -o map.svg --title Hall --width 500");
    let svg = String::from_utf8(desk.read("map.svg")).unwrap();
    assert!(svg.starts_with("<svg ") && svg.contains("width=\"500pt\""));
    assert!(svg.contains("<title>Hall: ") && svg.contains("aria-label=\"x [m]\""));
    desk.ok("plot map.npz -o map.pdf");
    let pdf = desk.read("map.pdf");
    assert!(pdf.starts_with(b"%PDF-1.7") && pdf.ends_with(b"%%EOF\n"));
    for name in ["map.svg", "map.pdf"] {
        let first = desk.read(name);
        let title = if name == "map.svg" { "--title Hall --width 500" } else { "" };
        desk.ok(&format!("plot map.npz -o {name} --force {title}"));
        assert_eq!(first, desk.read(name), "the same bytes every time");
    }
}

#[test]
fn factors_advice_and_errors_become_svg_and_pdf_too() {
    let desk = desk();
    desk.ok("plot truth.npz --factors -o factors.png --width 800");
    assert_eq!(size(&desk.read("factors.png")).0, 800);
    desk.ok("plot truth.npz --factors -o drawn.svg");
    desk.ok("plot truth.npz --factors -o drawn.pdf");
    let words = ["power spectral densities", "x [m]", "y [m]", "PSD / peak"];
    let said = |name: &str, words: &[&str]| {
        let svg = String::from_utf8(desk.read(name)).unwrap();
        for word in words {
            assert!(svg.contains(&format!("aria-label=\"{word}\"")), "{word} in {name}");
        }
    };
    said("drawn.svg", &words);
    assert!(desk.read("drawn.pdf").starts_with(b"%PDF-1.7"));
    desk.ok("advise readings.npz --count 2 --plot places.svg");
    said("places.svg", &["30 sensors", "places advised", "x [m]", "y [m]"]);
    desk.ok("validate readings.npz --methods nearest,idw --plot errors.svg");
    said("errors.svg", &["30 sensors", "nearest", "idw", "error [dB]", "x [m]", "y [m]"]);
}

#[test]
fn every_look_draws_another_picture() {
    let desk = with_plan();
    let looks = [
        "",
        "--axes rows",
        "--range -40,-20",
        "--levels -40,-30,-20",
        "--contours -30,-25",
        "--colours cividis",
        "--colours magma",
        "--above -25",
        "--above -25 --levels 50,90,99",
        "--spread",
        "--spread --colours cividis",
        "--by-frequency --spread",
        "--by-frequency",
        "--by-frequency --bands 3,1",
        "--by-frequency --above -25",
        "--under plan.png --extent -5,-5,25,25",
        "--under plan.png --extent -5,-5,25,25 --opacity 0.3",
        "--under plan.png --control 0,0=-5,25;300,9=25,25;9,100=-5,-5",
    ];
    let drawn: Vec<Vec<u8>> = looks
        .iter()
        .map(|look| {
            desk.ok(&format!("plot map.npz -o look.svg --force {look}"));
            desk.read("look.svg")
        })
        .collect();
    for (place, picture) in drawn.iter().enumerate() {
        for other in &drawn[..place] {
            assert!(picture != other, "{}", looks[place]);
        }
    }
}

#[test]
fn north_is_up_in_the_picture_and_in_the_preview() {
    let desk = Desk::new();
    // Loud where y is great and x small: the upper left.
    let mut table = String::from("row,col,dbm_1GHz\n");
    for row in 0..6 {
        for col in 0..6 {
            let level = if row < 3 && col >= 3 { -40 } else { -90 };
            table += &format!("{row},{col},{level}\n");
        }
    }
    desk.write("corner.csv", table);
    desk.ok("convert corner.csv corner.npz --as map");
    let preview = desk.ok("plot corner.npz").stdout;
    let first = preview.lines().next().unwrap();
    assert!(first.starts_with("@@@") && first.ends_with("..."), "{preview}");
    let preview = desk.ok("plot corner.npz --axes rows").stdout;
    let first = preview.lines().next().unwrap();
    assert!(first.starts_with("...") && first.ends_with("@@@"), "{preview}");
}

#[test]
fn letters_that_no_font_has_are_said_once() {
    let desk = desk();
    let said = desk.ok("plot map.npz -o map.png --title 中中文");
    let notes: Vec<&str> = said.stderr.lines().filter(|line| line.contains("no font")).collect();
    assert_eq!(notes.len(), 1, "{}", said.stderr);
    assert!(notes[0].contains("'中', '文'") && notes[0].contains("--font"), "{}", notes[0]);
    let said = desk.ok("plot map.npz -o map.png --force --title Größe_Ωμέγα_Москва");
    assert!(!said.stderr.contains("no font"), "{}", said.stderr);
}

#[test]
fn wrong_words_get_one_line() {
    let desk = with_plan();
    desk.write("broken.png", &desk.read("plan.png")[..200]);
    desk.write("text.png", "no picture");
    let mut huge = desk.read("plan.png");
    huge[16..24].copy_from_slice(&[0x7f, 255, 255, 255, 0x7f, 255, 255, 255]);
    desk.write("huge.png", huge);
    for (args, words) in [
        ("-o x.gif", "x.gif: expected a .png, .svg or .pdf"),
        ("-o x.png --levels -20,-30", "rising"),
        ("-o x.png --levels a", "rising"),
        ("-o x.png --contours -20,", "rising"),
        ("-o x.png --range -20,-30", "the lower first"),
        ("-o x.png --range -30,-20 --levels 1", "--levels"),
        ("-o x.png --colours rainbow", "viridis"),
        ("-o x.png --axes up", "rows"),
        ("-o x.png --width 10", "200"),
        ("-o x.png --opacity 0.5", "--under"),
        ("-o x.png --under plan.png", "--extent or --control"),
        ("-o x.png --under plan.png --extent 1,1,0,0", "the low corner first"),
        ("-o x.png --under plan.png --control 0,0=1,1;2,2=3,3", "three points"),
        ("-o x.png --under plan.png --control 0,0=1,1;2,2=3,3;4,4=5,6", "triangle"),
        ("-o x.png --under plan.png --extent 0,0,9,9 --opacity 2", "0 to 1"),
        ("-o x.png --under none.png --extent 0,0,9,9", "none.png: cannot be opened"),
        ("-o x.png --under broken.png --extent 0,0,9,9", "broken.png: expected a PNG image"),
        ("-o x.png --under text.png --extent 0,0,9,9", "text.png: expected a PNG image"),
        ("-o x.png --under huge.png --extent 0,0,9,9", "huge.png: "),
        ("-o plan.png --under plan.png --extent 0,0,9,9 --force", "plan.png"),
        ("-o x.png --font plan.png", "plan.png: not a TrueType font"),
        ("-o x.png --above high", "high"),
        ("-o x.png --above -20 --truth truth.npz", "--truth"),
        ("-o x.png --spread --above -20", "--above"),
        ("-o x.png --by-frequency --band 1", "--band"),
        ("-o x.png --by-frequency --bands 9", "band 9"),
        ("-o x.png --bands 1 --band 0", "--band"),
        ("--bands 1", "--output"),
        ("--levels 1,2", "--output"),
        ("-o x.svg --factors --range 1,2", "--factors"),
    ] {
        desk.refused(&format!("plot map.npz {args}"), &[words]);
    }
    desk.refused("plot truth.npz -o x.png --above -20", &["truth.npz", "no spread"]);
    desk.refused("plot truth.npz -o x.png --spread", &["truth.npz", "no spread"]);
}

#[test]
fn the_unknown_is_hatched() {
    let desk = Desk::new();
    let mut power = vec![1e-6; 36];
    power[7..11].fill(f64::NAN);
    desk.write("gaps.npz", npz(&[("map", &[6, 6, 1], &power)]));
    desk.ok("plot gaps.npz -o gaps.svg");
    let svg = String::from_utf8(desk.read("gaps.svg")).unwrap();
    assert!(svg.contains("aria-label=\"unknown\"") && svg.contains("#96969c"));
}
