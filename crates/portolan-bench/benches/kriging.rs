//! Time of kriging, all sensors together and by neighbourhoods:
//! `cargo bench -p portolan-bench --bench kriging`.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use portolan::estimate::{Kriging, Method};
use portolan::sense::{Sensing, SensorLayout, sense};
use portolan::simulate::{Scenario, simulate};
use portolan::{Context, Grid, Model, Progress, Readings, Site};

/// Exact readings of a simulated map of `side` x `side` cells, seed 0.
fn readings(side: usize, bands: usize, sensors: usize) -> Readings {
    let grid = Grid::new(side, side, 1.0).expect("the grid has cells");
    let truth =
        simulate(&Scenario { bands, ..Scenario::new(grid) }).expect("the scenario is sound");
    sense(&truth, &Sensing::exact(SensorLayout::Count(sensors), 0)).expect("there are cells enough")
}

/// A lattice of `side` x `side` places over `extent_m` metres, off the cells' centres.
fn places(side: usize, extent_m: f64) -> Vec<Site> {
    let step = extent_m / side as f64;
    let at = |i: usize| (i as f64 + 0.3) * step;
    (0..side * side).map(|i| Site::new(at(i / side), at(i % side))).collect()
}

fn fit(readings: &Readings) -> Model {
    let context = Context::default();
    Kriging::default().fit(readings, &context, &Progress::silent()).expect("kriging fits")
}

fn kriging(c: &mut Criterion) {
    let cases = [("together", 64, 64, 410, 64), ("local", 256, 8, 20_000, 100)];
    for (name, side, bands, sensors, places_side) in cases {
        let readings = readings(side, bands, sensors);
        let places = places(places_side, side as f64 - 1.0);
        let model = fit(&readings);
        let mut group = c.benchmark_group(format!("kriging {name}, {sensors} sensors"));
        group.sample_size(10).measurement_time(Duration::from_secs(10));
        group.bench_function(BenchmarkId::from_parameter(format!("fit {bands} bands")), |b| {
            b.iter(|| fit(black_box(&readings)));
        });
        let id = BenchmarkId::from_parameter(format!("predict {} places", places.len()));
        group.bench_function(id, |b| {
            b.iter(|| model.predict(black_box(&places), &Progress::silent()));
        });
        group.finish();
    }
}

criterion_group!(benches, kriging);
criterion_main!(benches);
