//! Figures are those of fits made by hand; engines and stops.

use std::sync::Arc;

use portolan::Grid;
use portolan::engine::CpuEngine;
use portolan::estimate::build;
use portolan::sense::SensorLayout;

use super::*;

fn study(methods: &[&str]) -> Simulated {
    let grid = Grid::new(20, 20, 1.0).unwrap();
    Simulated {
        calls: methods.iter().map(|text| MethodCall::parse(text).unwrap()).collect(),
        scenario: Scenario { bands: 5, emitters: 2, seed: 7, ..Scenario::new(grid) },
        sensing: Sensing::exact(SensorLayout::Count(40), 0),
        maps: 2,
        assumed: None,
        offset: None,
    }
}

#[test]
fn figures_are_those_of_each_map() {
    let found = study(&["idw:power=2"]).run(&Progress::silent()).unwrap();
    let method = build("idw", [("power".into(), "2".into())]).unwrap();
    let rmse = [7, 8].map(|seed| {
        let truth = simulate(&Scenario { seed, ..study(&[]).scenario }).unwrap();
        let readings = sense(&truth, &Sensing::exact(SensorLayout::Count(40), seed)).unwrap();
        let model = method.fit(&readings, &Context::default(), &Progress::silent()).unwrap();
        let map = model.map(truth.grid(), &Progress::silent()).unwrap();
        score(&map, &truth, None).unwrap().rmse_db
    });
    assert_eq!(found[0].rmse_db, Mean::of(&rmse));
    assert!(found[0].counted.is_nan() && found[0].coverage.is_nan() && found[0].place_m.is_none());
}

#[test]
fn the_oracle_is_the_measure_of_shares() {
    let found = study(&["thin_plate", "kriging", "field", "oracle"]);
    let found = found.run(&Progress::silent()).unwrap();
    let bar = found[0].ssim.mean.max(found[1].ssim.mean);
    let share = (found[2].ssim.mean - bar) / (found[3].ssim.mean - bar);
    let shares: Vec<Option<f64>> = found.iter().map(|row| row.share).collect();
    assert_eq!(shares, [None, None, Some(share), None]);
    // Told two emitters, it tells where they are.
    assert!(found[2].place_m.unwrap() < 10.0);
    assert!(found[3].ssim.mean > bar);
}

#[test]
fn batches_on_an_engine_give_the_same_figures() {
    let mut study = study(&["unn:iterations=20:start_iterations=30", "idw"]);
    let alone = study.run(&Progress::silent()).unwrap();
    study.calls[0].engine = Some(Arc::new(CpuEngine));
    let together = study.run(&Progress::silent()).unwrap();
    for (a, b) in alone.iter().zip(&together) {
        assert_eq!((a.rmse_db, a.place_m, a.ssim), (b.rmse_db, b.place_m, b.ssim), "{}", a.label);
    }
    assert!(alone[0].spent.is_none() && together[1].spent.is_none());
    assert!(together[0].spent.is_some_and(|spent| spent.fit > 0.0));
}

#[test]
fn progress_counts_fits_and_stops_them() {
    let seen = std::sync::Mutex::new(Vec::new());
    let note = |share: f64| {
        seen.lock().unwrap().push(share);
        share < 0.5
    };
    let stopped = study(&["nearest", "idw"]).run(&Progress::new(&note));
    assert_eq!(stopped.unwrap_err(), EstimateError::Cancelled);
    assert_eq!(seen.into_inner().unwrap(), [0.0, 0.25, 0.5]);
    let none = Simulated { maps: 0, ..study(&["idw"]) }.run(&Progress::silent());
    assert!(none.unwrap_err().to_string().contains("1 or more"));
}
