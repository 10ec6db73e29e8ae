//! Time of a fit of `field`: `cargo bench -p portolan-bench --bench field`.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use portolan::estimate::{Field, Method};
use portolan::sense::{Sensing, SensorLayout, sense};
use portolan::simulate::{Scenario, simulate};
use portolan::{Context, Emitters, Grid, Progress};

/// 2 % and 10 % of 64 x 64 cells; 64 bands and 4 emitters, the paper's main setting, seed 0.
fn fits(c: &mut Criterion) {
    let grid = Grid::new(64, 64, 1.0).expect("the grid has cells");
    let truth = simulate(&Scenario::new(grid)).expect("the scenario is sound");
    let context = Context { emitters: Emitters::Count(4), ..Context::default() };
    let mut group = c.benchmark_group("field, 64 bands, R=4");
    group.sample_size(10).measurement_time(Duration::from_secs(10));
    for sensors in [82, 410] {
        let sensing = Sensing::exact(SensorLayout::Count(sensors), 0);
        let readings = sense(&truth, &sensing).expect("there are cells enough");
        group.bench_function(BenchmarkId::from_parameter(format!("fit {sensors} sensors")), |b| {
            b.iter(|| Field::default().fit(black_box(&readings), &context, &Progress::silent()));
        });
    }
    group.finish();
}

criterion_group!(benches, fits);
criterion_main!(benches);
