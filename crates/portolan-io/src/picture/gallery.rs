//! Whole pictures: their pixels, their sizes, odd inputs, and a gallery to look at.

use ndarray::{Array2, Array3};
use portolan::{BandLabels, Cell, Exponent, Factors, Grid, RadioMap, Readings, Scale, Values};
use proptest::prelude::*;

use super::*;

/// Emitters with path loss and a wavy stand-in for shadowing.
fn factors(rows: usize, cols: usize, emitters: usize, bands: usize, wave: f64) -> Factors {
    let place = |r: usize| {
        let t = r as f64 * 2.4;
        let row = rows as f64 * (0.5 + 0.33 * t.cos());
        let col = cols as f64 * (0.5 + 0.36 * t.sin());
        (row, col)
    };
    let slf = Array3::from_shape_fn((emitters, rows, cols), |(r, i, j)| {
        let (row, col) = place(r);
        let scale = 64.0 / rows.max(cols) as f64;
        let (di, dj) = ((i as f64 - row) * scale, (j as f64 - col) * scale);
        let (u, v) = (i as f64 * scale, j as f64 * scale);
        let shadow = 5.0 * ((u * 0.21 + r as f64).sin() * (v * 0.17 + wave).cos())
            + 3.0 * (u * 0.4 - v * 0.33 + wave).sin();
        1e-4 / (1.0 + (di * di + dj * dj) / 4.0).powf(1.4) * 10f64.powf(shadow / 10.0)
    });
    let psd = Array2::from_shape_fn((emitters, bands), |(r, k)| {
        let centre = bands as f64 * (r as f64 + 0.7 + 0.2 * wave) / (emitters as f64 + 0.4);
        (-((k as f64 - centre) / (bands as f64 * 0.09)).powi(2)).exp() + 0.01
    });
    Factors { slf, psd }
}

fn map(rows: usize, cols: usize, wave: f64) -> RadioMap {
    let grid = Grid::new(rows, cols, 10.0).unwrap();
    let freq: Vec<f64> = (0..16).map(|k| 2.412e9 + 4e6 * f64::from(k)).collect();
    let emitters = (0..3)
        .map(|r| {
            let t = f64::from(r) * 2.4;
            let place =
                [rows as f64 * (0.5 + 0.33 * t.cos()), cols as f64 * (0.5 + 0.36 * t.sin())];
            grid.site_at(place)
        })
        .collect();
    RadioMap::factored(grid, factors(rows, cols, 3, 16, wave), Scale::Absolute)
        .unwrap()
        .with_labels(BandLabels::from_frequencies(freq).unwrap())
        .unwrap()
        .with_emitters(emitters)
}

fn with_spread(map: RadioMap) -> RadioMap {
    let (rows, cols) = (map.grid().rows(), map.grid().cols());
    let spread = Array3::from_shape_fn((rows, cols, 16), |(i, j, _)| {
        3.0 + 2.0 * (i as f64 * 0.3).sin() * (j as f64 * 0.2).cos()
    });
    map.with_spread_db(Some(spread)).unwrap()
}

/// The same map with standard errors of every place and with exponents.
fn located(map: &RadioMap) -> RadioMap {
    let se = vec![[10.0, 25.0], [3.0, 2.0], [400.0, 60.0]];
    let exponents = [2.0, 2.31, 3.4].map(|value| Exponent { value, se: 0.1 }).to_vec();
    map.clone().with_emitter_se_m(se).unwrap().with_exponents(exponents).unwrap()
}

fn readings(map: &RadioMap, every: usize) -> Readings {
    let grid = map.grid();
    let indices = (0..grid.cells()).filter(|i| hash(*i).is_multiple_of(every) || *i < 2);
    let cells: Vec<Cell> = indices.map(|i| grid.cell(i)).collect();
    let mut values = Array2::zeros((cells.len(), map.bands()));
    for (cell, mut row) in cells.iter().zip(values.outer_iter_mut()) {
        map.spectrum_into(*cell, row.as_slice_mut().unwrap());
    }
    let sites = cells.iter().map(|cell| grid.site(*cell)).collect();
    Readings::new(sites, Values::Power(values), map.scale()).unwrap()
}

fn hash(i: usize) -> usize {
    let mixed = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40) as usize
}

fn look() -> &'static Look {
    static LOOK: std::sync::LazyLock<Look> = std::sync::LazyLock::new(Look::default);
    &LOOK
}

fn plain(map: &RadioMap) -> MapFigure<'_> {
    let (truth, readings, title, look) = (None, None, None, look());
    MapFigure { map, truth, readings, band: 6, title, offset: 0.0, look }
}

/// Texts that are not wholly on the page.
fn lost(scene: &Scene) -> Vec<String> {
    let texts = scene.texts();
    let off = texts.iter().filter(|(_, b)| {
        !(b.left >= 0.0 && b.top >= 0.0 && b.right <= scene.width && b.bottom <= scene.height)
    });
    off.map(|(text, _)| (*text).to_owned()).collect()
}

fn size_of(png: &[u8]) -> (usize, usize) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!(info.color_type, png::ColorType::Rgb);
    (info.width as usize, info.height as usize)
}

/// Figures on the canvas.
fn canvas_figures(
    truth: &RadioMap,
    estimate: &RadioMap,
    readings: &Readings,
) -> Vec<(&'static str, Bitmap)> {
    let names =
        ["nearest\nSSIM 0.612", "kriging\nSSIM 0.871", "unn\nSSIM 0.903", "field\nSSIM 0.921"];
    let estimates: Vec<_> = names.iter().map(|n| (n.to_string(), estimate)).collect();
    vec![
        ("methods", methods_figure(truth, readings, &estimates, 6, 0.0).unwrap()),
        ("factors", factors_figure(&located(estimate), None).unwrap()),
        ("factors_truth", factors_figure(estimate, Some(truth)).unwrap()),
    ]
}

/// Figures of one map.
fn map_figures(
    truth: &RadioMap,
    estimate: &RadioMap,
    readings: &Readings,
) -> Vec<(&'static str, Scene)> {
    let title = Some("Kriging of a simulated survey");
    let full = MapFigure { truth: Some(truth), readings: Some(readings), title, ..plain(estimate) };
    let spread = with_spread(estimate.clone());
    let located = located(estimate);
    let draw = |figure: MapFigure<'_>| map_figure(&figure).unwrap();
    let all: Vec<usize> = (0..truth.bands()).collect();
    vec![
        ("plain", draw(plain(estimate))),
        ("sensors", draw(MapFigure { readings: Some(readings), ..plain(estimate) })),
        ("spread", draw(MapFigure { readings: Some(readings), ..plain(&spread) })),
        ("truth", draw(full)),
        ("truth_spread", draw(MapFigure { map: &spread, ..full })),
        ("located", draw(MapFigure { readings: Some(readings), ..plain(&located) })),
        ("spectrum", spectrum_figure(truth, &all, None, title, 0.0, look()).unwrap()),
    ]
}

#[test]
#[ignore = "writes pictures to look at into the directory for temporary files"]
fn gallery() {
    let folder = std::env::temp_dir().join("portolan-gallery");
    std::fs::create_dir_all(&folder).unwrap();
    let loss = |rate: f64| {
        let points = (0..400).map(|i| (f64::from(i), 1.0 + 9.0 * (-rate * f64::from(i)).exp()));
        points.collect::<Vec<_>>()
    };
    let curve = |(colour, name): (usize, &str)| {
        let points = loss(0.01 * (colour + 1) as f64);
        Curve { name: name.to_owned(), points, colour, dashed: false }
    };
    let mut figure = Figure { heading: "Loss while fitting".to_owned(), ..Figure::default() };
    figure.add_chart(LinePanel {
        title: String::new(),
        x_name: "iteration".to_owned(),
        y_name: "loss".to_owned(),
        curves: ["unn", "dgm", "btd"].into_iter().enumerate().map(curve).collect(),
        bars: Vec::new(),
        y_limits: None,
    });
    std::fs::write(folder.join("loss.png"), figure.draw().png()).unwrap();
    let split = |factors| {
        RadioMap::factored(Grid::new(50, 50, 2.0).unwrap(), factors, Scale::Absolute).unwrap()
    };
    let many = split(factors(50, 50, 7, 64, 0.0));
    let picture = factors_figure(&many, None).unwrap();
    std::fs::write(folder.join("many.png"), picture.png()).unwrap();
    let fewer = split(factors(50, 50, 5, 64, 0.2));
    let picture = factors_figure(&fewer, Some(&many)).unwrap();
    std::fs::write(folder.join("fewer.png"), picture.png()).unwrap();
    for (rows, cols) in [(64, 64), (34, 14), (14, 34), (8, 300), (300, 8), (1024, 1024), (1, 1)] {
        let (truth, estimate) = (map(rows, cols, 0.0), map(rows, cols, 0.35));
        let every = if rows == 1024 { 997 } else { 11 };
        if rows * cols < 4 {
            let scene = map_figure(&plain(&truth)).unwrap();
            std::fs::write(folder.join("one.png"), scene.png(800).unwrap()).unwrap();
            continue;
        }
        let readings = readings(&truth, every);
        for (name, picture) in canvas_figures(&truth, &estimate, &readings) {
            let file = folder.join(format!("{name}_{rows}x{cols}.png"));
            std::fs::write(file, picture.png()).unwrap();
        }
        for (name, scene) in map_figures(&truth, &estimate, &readings) {
            let file = folder.join(format!("{name}_{rows}x{cols}.png"));
            std::fs::write(file, scene.png((1.5 * scene.width) as u32).unwrap()).unwrap();
        }
        println!("{}", terminal(&decibels(&truth.band(6), 0.0), 60, false));
    }
}

#[test]
fn figures_decode_to_their_size_lose_no_text_and_repeat_bit_for_bit() {
    for (rows, cols) in [(64, 64), (34, 14), (8, 300), (300, 8), (2, 1)] {
        let (truth, estimate) = (map(rows, cols, 0.0), map(rows, cols, 0.35));
        let readings = readings(&truth, 11);
        let again = canvas_figures(&truth, &estimate, &readings);
        for ((name, picture), (_, second)) in
            canvas_figures(&truth, &estimate, &readings).into_iter().zip(again)
        {
            let png = picture.png();
            assert_eq!(size_of(&png), (picture.width(), picture.height()), "{name}");
            assert_eq!(picture.canvas().lost_ink(), 0, "{name} {rows}x{cols}");
            assert_eq!(png, second.png(), "{name}");
            assert!(picture.width() <= 2000 && picture.height() <= 3500, "{name} {rows}x{cols}");
        }
        let again = map_figures(&truth, &estimate, &readings);
        for ((name, scene), (_, second)) in
            map_figures(&truth, &estimate, &readings).into_iter().zip(again)
        {
            assert_eq!(lost(&scene), [""; 0], "{name} {rows}x{cols}");
            assert_eq!(size_of(&scene.png(640).unwrap()).0, 640, "{name}");
            assert!(scene == second, "{name}");
            assert!(scene.width <= 1500.0 && scene.height <= 2600.0, "{name} {rows}x{cols}");
        }
    }
}

#[test]
fn estimates_share_the_limits_of_the_truth() {
    let truth = map(40, 40, 0.0);
    let louder = RadioMap::dense(truth.grid(), &*truth.to_dense() * 1e9, Scale::Absolute).unwrap();
    let figure = MapFigure { truth: Some(&truth), ..plain(&louder) };
    let scene = map_figure(&figure).unwrap();
    // 90 dB above the truth: all of the estimate takes the brightest colour.
    let [r, g, b] = ColourMap::Power.at(1.0);
    let picture = scene.pixels((2.0 * scene.width) as u32).unwrap();
    let pixels = picture.data().chunks(4).filter(|p| **p == [r, g, b, 255]).count();
    assert!(pixels >= 500 * 500, "{pixels}");
}

#[test]
fn unknown_infinite_constant_and_silent_maps_are_drawn() {
    for fill in [f64::NAN, 0.0, 1.0, f64::MAX, f64::MIN_POSITIVE] {
        for offset in [0.0, 1e-9] {
            let grid = Grid::new(7, 9, 1.0).unwrap();
            let mut power = Array3::from_elem((7, 9, 7), fill);
            let flat = RadioMap::dense(grid, power.clone(), Scale::paper()).unwrap();
            power[[3, 3, 6]] = f64::MAX;
            power[[3, 4, 6]] = 0.0;
            let spiked = RadioMap::dense(grid, power, Scale::paper()).unwrap();
            for (map, truth) in [(&flat, &spiked), (&spiked, &flat), (&flat, &flat)] {
                let alone = MapFigure { offset, ..plain(map) };
                assert_eq!(lost(&map_figure(&alone).unwrap()), [""; 0]);
                let beside = MapFigure { truth: Some(truth), ..alone };
                let scene = map_figure(&beside).unwrap();
                assert_eq!(lost(&scene), [""; 0]);
                scene.png(300).unwrap();
            }
            let f = Factors { slf: Array3::from_elem((9, 7, 9), fill), psd: Array2::zeros((9, 3)) };
            let split = RadioMap::factored(grid, f, Scale::paper()).unwrap();
            assert_eq!(factors_figure(&split, Some(&split)).unwrap().canvas().lost_ink(), 0);
        }
    }
}

#[test]
fn large_maps_stay_small_pictures() {
    let large = map(1024, 1024, 0.0);
    let scene = map_figure(&plain(&large)).unwrap();
    assert!(scene.width <= 900.0 && scene.height <= 900.0 && scene.svg(500.0).len() < 3 << 20);
}

#[test]
fn what_cannot_be_drawn_is_refused() {
    let (small, large) = (map(5, 6, 0.0), map(6, 5, 0.0));
    let error = map_figure(&MapFigure { band: 16, ..plain(&small) }).unwrap_err().to_string();
    assert!(error.contains("band 16 does not exist: the map has 16 bands"), "{error}");
    let error = map_figure(&MapFigure { truth: Some(&large), ..plain(&small) }).unwrap_err();
    assert!(error.to_string().contains("the truth is 6 x 5, expected 5 x 6"), "{error}");
    assert!(map_figure(&MapFigure { offset: -1.0, ..plain(&small) }).is_err());
    assert!(map_figure(&MapFigure { offset: f64::NAN, ..plain(&small) }).is_err());
    let estimates = vec![("kriging".to_owned(), &large)];
    assert!(methods_figure(&small, &readings(&small, 3), &estimates, 0, 0.0).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_size_loses_text(
        rows in 1usize..120, cols in 2usize..120, every in 1usize..40, title in ".{0,90}",
    ) {
        let truth = map(rows, cols, 0.0);
        let spread = with_spread(map(rows, cols, 0.5));
        let readings = readings(&truth, every);
        let scene = map_figure(&MapFigure {
            truth: Some(&truth), readings: Some(&readings), title: Some(&title), ..plain(&spread)
        }).unwrap();
        prop_assert!(lost(&scene).is_empty(), "{:?}", lost(&scene));
        let estimates: Vec<_> = (0..every % 5).map(|_| (title.clone(), &spread)).collect();
        let picture = methods_figure(&truth, &readings, &estimates, 3, 0.0).unwrap();
        prop_assert_eq!(picture.canvas().lost_ink(), 0);
    }
}
