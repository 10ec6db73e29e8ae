//! Whole pictures: their pixels, their sizes, odd inputs, and a gallery to look at.

use ndarray::{Array2, Array3};
use portolan::{Cell, Factors, Grid, RadioMap, Readings, Values};

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
        let centre = bands as f64 * (r as f64 + 0.7) / (emitters as f64 + 0.4);
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
            [rows as f64 * (0.5 + 0.33 * t.cos()), cols as f64 * (0.5 + 0.36 * t.sin())]
        })
        .collect();
    RadioMap::factored(grid, factors(rows, cols, 3, 16, wave))
        .unwrap()
        .with_frequencies(Some(freq))
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

fn readings(map: &RadioMap, every: usize) -> Readings {
    let grid = map.grid();
    let indices = (0..grid.cells()).filter(|i| (i * 7919 + i / 3) % every == 0 || *i < 2);
    let cells: Vec<Cell> = indices.map(|i| grid.cell(i)).collect();
    let mut values = Array2::zeros((cells.len(), map.bands()));
    for (cell, mut row) in cells.iter().zip(values.outer_iter_mut()) {
        map.spectrum_into(*cell, row.as_slice_mut().unwrap());
    }
    Readings::new(grid, cells, Values::Power(values)).unwrap()
}

fn plain(map: &RadioMap) -> MapFigure<'_> {
    MapFigure { map, truth: None, readings: None, band: 6, title: None, offset: 0.0 }
}

fn size_of(png: &[u8]) -> (usize, usize) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!(info.color_type, png::ColorType::Rgb);
    (info.width as usize, info.height as usize)
}

fn all_figures(
    truth: &RadioMap,
    estimate: &RadioMap,
    readings: &Readings,
) -> Vec<(&'static str, Picture)> {
    let title = Some("Kriging of a simulated survey".to_owned());
    let names =
        ["nearest\nSSIM 0.612", "kriging\nSSIM 0.871", "unn\nSSIM 0.903", "field\nSSIM 0.921"];
    let estimates: Vec<_> = names.iter().map(|n| (n.to_string(), estimate)).collect();
    let full = MapFigure { truth: Some(truth), readings: Some(readings), title, ..plain(estimate) };
    let spread = with_spread(estimate.clone());
    let f = estimate.factors().unwrap();
    let (grid, freq) = (truth.grid(), truth.freq_hz());
    vec![
        ("plain", map_figure(&plain(estimate)).unwrap()),
        (
            "sensors",
            map_figure(&MapFigure { readings: Some(readings), ..plain(estimate) }).unwrap(),
        ),
        ("spread", map_figure(&MapFigure { readings: Some(readings), ..plain(&spread) }).unwrap()),
        ("truth", map_figure(&full).unwrap()),
        ("truth_spread", map_figure(&MapFigure { map: &spread, ..full }).unwrap()),
        ("methods", methods_figure(truth, readings, &estimates, 6, 0.0).unwrap()),
        ("factors", factors_figure(f, grid, None, None).unwrap()),
        ("factors_truth", factors_figure(f, grid, freq, truth.factors()).unwrap()),
    ]
}

#[test]
#[ignore = "writes pictures to look at into the directory for temporary files"]
fn gallery() {
    let folder = std::env::temp_dir().join("portolan-gallery");
    std::fs::create_dir_all(&folder).unwrap();
    for (rows, cols) in [(64, 64), (34, 14), (14, 34), (8, 300), (300, 8), (1024, 1024), (1, 1)] {
        let (truth, estimate) = (map(rows, cols, 0.0), map(rows, cols, 0.35));
        let every = if rows == 1024 { 997 } else { 11 };
        if rows * cols < 4 {
            let picture = map_figure(&plain(&truth)).unwrap();
            std::fs::write(folder.join("one.png"), picture.png()).unwrap();
            continue;
        }
        for (name, picture) in all_figures(&truth, &estimate, &readings(&truth, every)) {
            let file = folder.join(format!("{name}_{rows}x{cols}.png"));
            std::fs::write(file, picture.png()).unwrap();
        }
        println!("{}", terminal(&decibels(&truth.band(6), 0.0), 60, false));
    }
}

#[test]
fn figures_decode_to_their_size_lose_no_text_and_repeat_bit_for_bit() {
    for (rows, cols) in [(64, 64), (34, 14), (8, 300), (300, 8), (2, 1)] {
        let (truth, estimate) = (map(rows, cols, 0.0), map(rows, cols, 0.35));
        let readings = readings(&truth, 11);
        let again = all_figures(&truth, &estimate, &readings);
        for ((name, picture), (_, second)) in
            all_figures(&truth, &estimate, &readings).into_iter().zip(again)
        {
            let png = picture.png();
            assert_eq!(size_of(&png), (picture.width(), picture.height()), "{name}");
            assert_eq!(picture.canvas().lost_ink(), 0, "{name} {rows}x{cols}");
            assert_eq!(png, second.png(), "{name}");
            assert!(picture.width() <= 2000 && picture.height() <= 3500, "{name} {rows}x{cols}");
        }
    }
}
