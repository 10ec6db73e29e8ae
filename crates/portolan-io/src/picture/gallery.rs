//! Whole pictures: their pixels, their sizes, odd inputs, and a gallery to look at.

use ndarray::{Array2, Array3};
use portolan::advise::{Process, advise};
use portolan::coverage::Coverage;
use portolan::estimate::Residuals;
use portolan::{
    BandLabels, Cell, Exponent, Factors, Grid, Progress, RadioMap, Readings, Scale, Site, Values,
};
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
    let sites: Vec<Site> = cells.iter().map(|cell| grid.site(*cell)).collect();
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

/// Texts that are not wholly on the page, or meet others.
fn lost(scene: &Scene) -> Vec<String> {
    let texts = scene.texts();
    let page = Bounds { left: 0.0, top: 0.0, right: scene.width, bottom: scene.height };
    let off = texts.iter().enumerate().filter(|(place, (_, bounds))| {
        !page.holds(bounds) || texts[..*place].iter().any(|(_, other)| other.meets(bounds))
    });
    off.map(|(_, (text, _))| (*text).to_owned()).collect()
}

fn size_of(png: &[u8]) -> (usize, usize) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!(info.color_type, png::ColorType::Rgb);
    (info.width as usize, info.height as usize)
}

/// By how much every sensor was missed when it was held out.
fn residuals(readings: &Readings, missed: impl Fn(&Site) -> f64) -> Residuals {
    let mut residuals = Residuals::default();
    let sites = readings.sites().iter().enumerate();
    residuals.entries.extend(sites.map(|(sensor, site)| (sensor, 0, missed(site))));
    residuals
}

/// Every kind of figure of maps.
fn figures(
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
    let names =
        ["nearest\nSSIM 0.612", "kriging\nSSIM 0.871", "unn\nSSIM 0.903", "field\nSSIM 0.921"];
    let estimates: Vec<_> = names.iter().map(|n| (n.to_string(), estimate)).collect();
    let missed = residuals(readings, |site| 0.02 * site.x_m - 4.0);
    let process = Process { decorrelation_m: 50.0, noise_ratio: 0.1 };
    let two = &readings.sites()[..2];
    let advice = advise(two, &spread, &[], process, 1, &Progress::silent()).unwrap_or_default();
    vec![
        ("plain", draw(plain(estimate))),
        ("sensors", draw(MapFigure { readings: Some(readings), ..plain(estimate) })),
        ("spread", draw(MapFigure { readings: Some(readings), ..plain(&spread) })),
        ("truth", draw(full)),
        ("truth_spread", draw(MapFigure { map: &spread, ..full })),
        ("located", draw(MapFigure { readings: Some(readings), ..plain(&located) })),
        ("spectrum", spectrum_figure(truth, &all, None, title, 0.0, look()).unwrap()),
        ("methods", methods_figure(truth, readings, &estimates, 6, 0.0).unwrap()),
        ("factors", factors_figure(&located, None).unwrap()),
        ("factors_truth", factors_figure(estimate, Some(truth)).unwrap()),
        (
            "residuals",
            residuals_figure(readings, &[("kriging", &missed), ("unn", &missed)]).unwrap(),
        ),
        ("advice", advice_figure(readings.sites(), &spread, &advice).unwrap()),
        ("coverage", coverage(estimate)),
    ]
}

/// Where the strongest band is above the middle of its levels.
fn coverage(map: &RadioMap) -> Scene {
    let grid = map.grid();
    let level = decibels(&map.band(6), 0.0);
    let above = level.iter().copied().sum::<f64>() / level.len() as f64;
    let level = level.insert_axis(ndarray::Axis(2));
    let (mut figure, mut found) = (CoverageFigure::new(grid), Coverage::new(1, above));
    figure.add_rows(0, &found.add(level.view(), None));
    let about =
        CoverageAbout { title: None, level: "the middle".into(), note: String::new(), crs: None };
    figure.draw(&found, &about, &Typeface::new()).unwrap()
}

#[test]
#[ignore = "writes pictures to look at into the directory for temporary files"]
fn gallery() {
    let folder = std::env::temp_dir().join("portolan-gallery");
    std::fs::create_dir_all(&folder).unwrap();
    let split = |factors| {
        RadioMap::factored(Grid::new(50, 50, 2.0).unwrap(), factors, Scale::Absolute).unwrap()
    };
    let many = split(factors(50, 50, 7, 64, 0.0));
    let write = |name: &str, scene: &Scene| {
        let bytes = PictureKind::Png.bytes(scene, None).unwrap().0;
        std::fs::write(folder.join(format!("{name}.png")), bytes).unwrap();
    };
    write("many", &factors_figure(&many, None).unwrap());
    let fewer = split(factors(50, 50, 5, 64, 0.2));
    write("fewer", &factors_figure(&fewer, Some(&many)).unwrap());
    for (rows, cols) in [(64, 64), (34, 14), (14, 34), (8, 300), (300, 8), (1024, 1024), (1, 1)] {
        let (truth, estimate) = (map(rows, cols, 0.0), map(rows, cols, 0.35));
        let every = if rows == 1024 { 997 } else { 11 };
        if rows * cols < 4 {
            write("one", &map_figure(&plain(&truth)).unwrap());
            continue;
        }
        let readings = readings(&truth, every);
        for (name, scene) in figures(&truth, &estimate, &readings) {
            write(&format!("{name}_{rows}x{cols}"), &scene);
        }
        println!("{}", terminal(&decibels(&truth.band(6), 0.0), 60, false));
    }
}

#[test]
fn figures_decode_to_their_size_lose_no_text_and_repeat_bit_for_bit() {
    for (rows, cols) in [(64, 64), (34, 14), (8, 300), (300, 8), (2, 1)] {
        let (truth, estimate) = (map(rows, cols, 0.0), map(rows, cols, 0.35));
        let readings = readings(&truth, 11);
        let again = figures(&truth, &estimate, &readings);
        for ((name, scene), (_, second)) in
            figures(&truth, &estimate, &readings).into_iter().zip(again)
        {
            assert_eq!(lost(&scene), [""; 0], "{name} {rows}x{cols}");
            assert_eq!(size_of(&scene.png(640).unwrap()).0, 640, "{name}");
            assert!(scene == second, "{name}");
            assert!(scene.width <= 1500.0 && scene.height <= 3500.0, "{name} {rows}x{cols}");
        }
    }
}

/// Colours and where they are seen: quarters of maps and sensors.
fn seen(items: &[Item], found: &mut Vec<(Point, Rgb)>) {
    for item in items {
        match item {
            Item::Clip { items, .. } => seen(items, found),
            Item::Image { pixels, place, .. } if pixels.width() > 1 => {
                for (x, y) in [(1, 1), (1, 3), (3, 1), (3, 3)] {
                    let [r, g, b, alpha] =
                        pixels.at(pixels.width() * x / 4, pixels.height() * y / 4);
                    let share = |n: u32| f64::from(n) / 4.0;
                    let across = place.corner.0 + share(x) * place.along.0;
                    let down = place.corner.1 + share(y) * place.down.1;
                    found.extend((alpha == 255).then_some(((across, down), [r, g, b])));
                }
            }
            Item::Fill { path, ink } => {
                let Some(Bounds { left, top, right, bottom }) = Bounds::around(path.points())
                else {
                    continue;
                };
                if right - left < 12.0 {
                    found.push((((left + right) / 2.0, (top + bottom) / 2.0), ink.rgb));
                }
            }
            _ => {}
        }
    }
}

#[test]
fn east_is_right_and_north_is_up_in_every_kind_of_figure() {
    // One corner is unlike all others: far along x and near along y, so on the lower right.
    let (rows, cols) = (12, 8);
    let corner = |row: usize, col: usize| row >= 6 && col < 4;
    let grid = Grid::new(rows, cols, 10.0).unwrap();
    let slf =
        Array3::from_shape_fn((1, rows, cols), |(_, i, j)| if corner(i, j) { 1e-4 } else { 1e-9 });
    let factors = Factors { slf, psd: Array2::ones((1, 16)) };
    let spread =
        Array3::from_shape_fn((rows, cols, 16), |(i, j, _)| if corner(i, j) { 9.0 } else { 1.0 });
    let map = RadioMap::factored(grid, factors, Scale::Absolute).unwrap();
    let map = map.with_spread_db(Some(spread)).unwrap();
    let readings = readings(&map, 1);
    let missed = residuals(&readings, |site| {
        let cell = grid.cell_at(*site).unwrap();
        if corner(cell.row, cell.col) { 5.0 } else { -5.0 }
    });
    let estimates = [("kriging".to_owned(), &map)];
    let draw = |layer| {
        let look = Look { layer, ..Look::default() };
        let readings = Some(&readings);
        map_figure(&MapFigure { readings, look: &look, ..plain(&map) }).unwrap()
    };
    let [loud, above] = [1.0, 1.0].map(|end| ColourMap::Power.at(end));
    let wide = ColourMap::Spread.at(1.0);
    let missed_by = ColourMap::Error.at(1.0);
    for (name, colour, scene) in [
        ("power", loud, draw(Layer::Power)),
        ("spread", wide, draw(Layer::Spread)),
        ("above", above, draw(Layer::Above(-80.0))),
        ("spectrum", loud, spectrum_figure(&map, &[1, 2], None, None, 0.0, look()).unwrap()),
        ("methods", loud, methods_figure(&map, &readings, &estimates, 6, 0.0).unwrap()),
        ("factors", loud, factors_figure(&map, Some(&map)).unwrap()),
        ("residuals", missed_by, residuals_figure(&readings, &[("unn", &missed)]).unwrap()),
        ("advice", wide, advice_figure(readings.sites(), &map, &[]).unwrap()),
        ("coverage", [8, 81, 156], coverage(&map)),
    ] {
        let mut places = Vec::new();
        seen(&scene.items, &mut places);
        places.retain(|(_, rgb)| *rgb == colour);
        let mut count = 0;
        // The frames of the maps: the legend and the colour bars are outside of them.
        for item in &scene.items {
            let Item::Clip { to, .. } = item else { continue };
            let Bounds { left, top, right, bottom } = Bounds::around(to.points()).unwrap();
            let within = |(x, y): &Point| (left..right).contains(x) && (top..bottom).contains(y);
            for (x, y) in places.iter().map(|(at, _)| *at).filter(within) {
                let lower_right = 2.0 * x > left + right && 2.0 * y > top + bottom;
                assert!(lower_right, "{name}: {x}, {y}");
                count += 1;
            }
        }
        assert!(count > 0, "{name}");
        let names: Vec<&str> = scene.texts().into_iter().map(|(text, _)| text).collect();
        assert!(names.contains(&"x [m]") && names.contains(&"y [m]"), "{name}: {names:?}");
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
            assert_eq!(lost(&factors_figure(&split, Some(&split)).unwrap()), [""; 0]);
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
        let scene = methods_figure(&truth, &readings, &estimates, 3, 0.0).unwrap();
        prop_assert!(lost(&scene).is_empty(), "{:?}", lost(&scene));
    }
}
