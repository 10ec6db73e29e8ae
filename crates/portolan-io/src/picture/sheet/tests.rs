//! Pages of maps: what lies where, and that no text is lost or meets another.

use ndarray::Array2;
use portolan::{Grid, Site};

use super::*;
use crate::picture::colour::ColourMap;
use crate::picture::{Item, Pixels};

fn panel(field: Array2<f64>, limits: (f64, f64)) -> MapPanel {
    let bar = Some("power [dBm]".into());
    MapPanel { bar, ..MapPanel::new("power", field, Shades::power(limits)) }
}

fn sheet(panels: Vec<MapPanel>, grid: Grid, typeface: &Typeface) -> Sheet<'_> {
    let columns = Some(panels.len().min(4));
    Sheet { columns, ..Sheet::new("Radio map", "a note", grid, panels, typeface) }
}

/// A ramp that no turn or mirror leaves as it is.
fn ramp(rows: usize, cols: usize) -> Array2<f64> {
    Array2::from_shape_fn((rows, cols), |(i, j)| (i * cols + j) as f64)
}

/// The pixel in the middle of a cell.
fn cell(sheet: &Sheet<'_>, pixels: &Pixels, row: usize, col: usize) -> [u8; 4] {
    let layout = Layout::new(sheet);
    let scale = f64::from(pixels.width()) / layout.width;
    let site = sheet.grid.site_at([row as f64, col as f64]);
    let (x, y) = layout.around(0).view.place(site);
    pixels.at((x * scale) as u32, (y * scale) as u32)
}

#[test]
fn north_is_up_and_rows_may_go_down() {
    let typeface = Typeface::new();
    let grid = Grid::new(4, 6, 10.0).unwrap();
    for axes in [Axes::Xy, Axes::Rows] {
        let sheet = Sheet { axes, ..sheet(vec![panel(ramp(4, 6), (0.0, 23.0))], grid, &typeface) };
        let pixels = sheet.draw().pixels(1000).unwrap();
        for row in 0..4 {
            for col in 0..6 {
                let [r, g, b] = ColourMap::Power.of((row * 6 + col) as f64, (0.0, 23.0));
                assert_eq!(cell(&sheet, &pixels, row, col), [r, g, b, 255], "{axes:?} {row} {col}");
            }
        }
        let view = Layout::new(&sheet).around(0).view;
        let (near, far) = (view.place(Site::new(0.0, 0.0)), view.place(Site::new(0.0, 50.0)));
        match axes {
            Axes::Xy => assert!(far.1 < near.1 && far.0 == near.0),
            Axes::Rows => assert!(far.0 > near.0 && far.1 == near.1),
        }
    }
}

#[test]
fn the_unknown_is_hatched_and_said() {
    let typeface = Typeface::new();
    let mut field = ramp(8, 8);
    for row in 2..6 {
        for col in 3..7 {
            field[[row, col]] = f64::NAN;
        }
    }
    let sheet = sheet(vec![panel(field, (0.0, 63.0))], Grid::new(8, 8, 1.0).unwrap(), &typeface);
    let scene = sheet.draw();
    assert!(scene.texts().iter().any(|(text, _)| *text == "unknown"));
    let pixels = scene.pixels(1600).unwrap();
    let seen: Vec<[u8; 4]> = (2..6)
        .flat_map(|r| (3..7).map(move |c| (r, c)))
        .map(|(row, col)| cell(&sheet, &pixels, row, col))
        .collect();
    assert!(seen.iter().all(|[r, g, b, _]| r.abs_diff(*g) < 12 && g.abs_diff(*b) < 12), "{seen:?}");
}

#[test]
fn a_scale_that_clips_has_tips() {
    let typeface = Typeface::new();
    let tips = |limits: (f64, f64)| panel(ramp(4, 4), limits).bar(1.0).unwrap().tips;
    assert_eq!(tips((0.0, 15.0)), (false, false));
    assert_eq!(tips((0.0, 10.0)), (false, true));
    assert_eq!(tips((3.0, 15.0)), (true, false));
    let grid = Grid::new(4, 4, 1.0).unwrap();
    let triangles = |limits| {
        let scene = sheet(vec![panel(ramp(4, 4), limits)], grid, &typeface).draw();
        let three =
            |item: &&Item| matches!(item, Item::Fill { path, .. } if path.segments.len() == 4);
        scene.items.iter().filter(three).count()
    };
    assert_eq!([(0.0, 15.0), (3.0, 15.0), (3.0, 10.0)].map(triangles), [0, 1, 2]);
}

#[test]
fn no_text_is_lost_or_meets_another() {
    let typeface = Typeface::new();
    for (rows, cols) in [(1, 1), (64, 64), (8, 300), (300, 8), (34, 14), (14, 34)] {
        for count in [1, 2, 3, 4, 9] {
            for (origin, cell_m) in [(0.0, 1.0), (5_482_310.0, 2.5), (-40_000.0, 900.0)] {
                let grid = Grid::new(rows, cols, cell_m).unwrap();
                let grid = grid.with_origin(Site::new(460_123.0, origin)).unwrap();
                let mut first = panel(ramp(rows, cols), (0.0, 10.0));
                first.caption = Some("rmse 2.25 dB".into());
                let panels: Vec<MapPanel> = (0..count)
                    .map(|n| MapPanel { title: format!("band {n}\nof {count}"), ..first.clone() })
                    .collect();
                let scene = sheet(panels, grid, &typeface).draw();
                let texts = scene.texts();
                for (place, (text, bounds)) in texts.iter().enumerate() {
                    let inside = bounds.left >= 0.0
                        && bounds.top >= 0.0
                        && bounds.right <= scene.width
                        && bounds.bottom <= scene.height;
                    assert!(inside, "{rows} x {cols}, {count}: {text} {bounds:?}");
                    for (other, beside) in &texts[..place] {
                        let case = format!("{rows} x {cols}, {count}, {origin}");
                        assert!(!bounds.meets(beside), "{case}: {text} meets {other}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_plan_lies_under_the_map_and_widens_the_page() {
    let typeface = Typeface::new();
    let grid = Grid::new(4, 4, 1.0).unwrap();
    let image = Pixels::from_fn(
        10,
        10,
        |line, _| if line < 5 { [255, 0, 0, 255] } else { [0, 0, 255, 255] },
    );
    // Twice as wide as the map and as high above it: red lies in the north.
    let under = Underlay {
        image: image.into(),
        corner: Site::new(-0.5, 7.5),
        along: (8.0, 0.0),
        down: (0.0, -8.0),
    };
    let panels = vec![panel(Array2::from_elem((4, 4), f64::NAN), (0.0, 1.0))];
    let sheet = Sheet { under: Some(&under), opacity: 0.5, ..sheet(panels, grid, &typeface) };
    let layout = Layout::new(&sheet);
    assert_eq!(layout.view.region, under.region());
    let pixels = sheet.draw().pixels(1000).unwrap();
    let scale = 1000.0 / layout.width;
    let at = |x: f64, y: f64| {
        let (x, y) = layout.around(0).view.place(Site::new(x, y));
        pixels.at((x * scale) as u32, (y * scale) as u32)
    };
    assert_eq!(at(6.0, 6.5), [255, 0, 0, 255]);
    assert_eq!(at(6.0, 1.0), [0, 0, 255, 255]);
    let veiled = at(1.0, 1.0);
    assert!(veiled[2] > veiled[0] && veiled[0] > 40, "{veiled:?}");
}
