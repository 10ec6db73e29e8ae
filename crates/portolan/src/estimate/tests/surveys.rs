//! Readings at true places in true units: louder, elsewhere, turned round.

use super::*;

#[test]
fn louder_readings_give_a_map_that_is_louder_by_as_much() {
    let quiet = survey(70);
    let Values::Power(power) = quiet.values() else { panic!() };
    for name in names() {
        let bar = if ["btd", "unn"].contains(&name) { 0.2 } else { 1e-6 };
        let before = fitted(name, &quiet).predict(&asked(), &Progress::silent()).unwrap();
        for db in [-60.0, 7.3, 120.0] {
            let factor = 10f64.powf(db / 10.0);
            let louder = quiet.with_values(Values::Power(power * factor)).unwrap();
            let after = fitted(name, &louder).predict(&asked(), &Progress::silent()).unwrap();
            let (rms, _) = apart_db(&(&before.power * factor), &after.power);
            assert!(rms < bar, "{name}: {rms} dB apart after {db} dB");
            if let (Some(a), Some(b)) = (&before.spread_db, &after.spread_db) {
                let off = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(off < 1e-5, "{name}: spread off by {off} dB after {db} dB");
            }
        }
    }
}

#[test]
fn a_survey_elsewhere_gives_the_same_map() {
    let here = survey(70);
    for (dx, dy) in [(1234.5, -77.25), (-7_654_321.1, 9_876_543.2)] {
        let away = |s: &Site| Site::new(s.x_m + dx, s.y_m + dy);
        let there = Readings::new(
            here.sites().iter().map(away).collect::<Vec<Site>>(),
            here.values().clone(),
            here.scale(),
        );
        let there = there.unwrap();
        let there_asked: Vec<Site> = asked().iter().map(away).collect();
        // Methods on a grid must be given the same cells.
        let grid = Grid::new(45, 35, 1.0).unwrap().with_origin(Site::new(-1.25, -1.25)).unwrap();
        let moved = grid.with_origin(away(&grid.origin())).unwrap();
        let (a, b) = (here.clone().with_grid(Some(grid)), there.with_grid(Some(moved)));
        let (a, b) = (a.unwrap(), b.unwrap());
        for name in names() {
            let a = fitted(name, &a).predict(&asked(), &Progress::silent()).unwrap();
            let b = fitted(name, &b).predict(&there_asked, &Progress::silent()).unwrap();
            let (rms, most) = apart_db(&a.power, &b.power);
            assert!(rms < 1e-6, "{name}: {rms} dB apart, at most {most}, after {dx} {dy}");
        }
    }
}

#[test]
fn a_survey_turned_round_gives_the_map_turned_round() {
    let here = survey(90);
    let (sin, cos) = 0.61f64.sin_cos();
    let turn = |s: &Site| Site::new(cos * s.x_m - sin * s.y_m, sin * s.x_m + cos * s.y_m);
    let sites: Vec<Site> = here.sites().iter().map(turn).collect();
    let turned = Readings::new(sites, here.values().clone(), here.scale()).unwrap();
    let turned_asked: Vec<Site> = asked().iter().map(turn).collect();
    for (name, bar) in [
        ("nearest", 1e-6),
        ("idw", 1e-6),
        ("thin_plate", 1e-6),
        ("kriging", 1e-6),
        ("field", 0.05),
        ("auto", 0.05),
    ] {
        let a = fitted(name, &here).predict(&asked(), &Progress::silent()).unwrap();
        let b = fitted(name, &turned).predict(&turned_asked, &Progress::silent()).unwrap();
        let (rms, most) = apart_db(&a.power, &b.power);
        assert!(rms < bar, "{name}: {rms} dB apart, at most {most}");
    }
}

#[test]
fn a_map_is_what_the_model_predicts_at_its_cells() {
    let readings = survey(70);
    let grid = Grid::new(15, 12, 2.9).unwrap().with_origin(Site::new(-0.5, -0.4)).unwrap();
    let silent = Progress::silent();
    for name in names() {
        let on_grid = readings.clone().with_grid(Some(grid)).unwrap();
        let model = fitted(name, &on_grid);
        let map = model.map(grid, &silent).unwrap();
        let sites = grid.sites();
        let dense = map.to_dense();
        // Tiles of all sizes give the same values.
        for tile in [1, 7, sites.len()] {
            for (t, part) in sites.chunks(tile).enumerate() {
                let found = model.predict_bands(part, &[3, 1], &silent).unwrap();
                for (i, row) in found.power.outer_iter().enumerate() {
                    let cell = grid.cell(t * tile + i);
                    for (out, band) in [(0, 3), (1, 1)] {
                        let want = dense[[cell.row, cell.col, band]];
                        let off = 10.0 * (row[out] / want).log10();
                        assert!(off.abs() < 1e-9, "{name}, tiles of {tile}: {off} dB");
                    }
                }
            }
        }
    }
}

#[test]
fn the_spread_of_kriging_has_no_steps() {
    let readings = survey(300);
    let at: Vec<Site> = (0..2000).map(|i| Site::new(0.015 * f64::from(i), 11.3)).collect();
    // From all sensors, and from the nearest of each small square.
    for (options, most) in [(vec![], 0.05), (vec![("neighbours".into(), "64".into())], 0.15)] {
        let model = build("kriging", options).unwrap();
        let model = model.fit(&readings, &Context::default(), &Progress::silent()).unwrap();
        let spread = model.predict(&at, &Progress::silent()).unwrap().spread_db.unwrap();
        let pairs = (1..at.len()).flat_map(|i| (0..spread.ncols()).map(move |k| (i, k)));
        let step = pairs.map(|(i, k)| (spread[[i, k]] - spread[[i - 1, k]]).abs());
        let step = step.fold(0.0, f64::max);
        assert!(step < most, "{step} dB between places 15 mm apart");
    }
}
