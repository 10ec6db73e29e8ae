//! Time to draw latents and to go back: `cargo bench -p portolan-bench --bench generator`.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use portolan_paper::generator::Trained;

fn passes(c: &mut Criterion) {
    let generator = Trained::Broad.generator().expect("the weights are whole");
    let cells: Vec<usize> = (0..410).map(|i| i * 7919 % 4096).collect();
    let sampler = generator.sampler((64, 64), &cells);
    for count in [1, 4, 16] {
        let latents: Vec<f32> = (0..count * generator.latent_len())
            .map(|i| (i * 37 % 101) as f32 / 30.0 - 1.7)
            .collect();
        let upstream = vec![0.1; count * cells.len()];
        let mut ws = generator.workspace(count);
        let mut gradient = latents.clone();
        let mut group = c.benchmark_group(format!("generator, {count} latents"));
        group.bench_function(BenchmarkId::from_parameter("forward"), |b| {
            b.iter(|| generator.forward(black_box(&latents), &sampler, &mut ws));
        });
        group.bench_function(BenchmarkId::from_parameter("backward"), |b| {
            b.iter(|| generator.backward(&upstream, &sampler, &mut ws, &mut gradient));
        });
        group.finish();
    }
}

criterion_group!(benches, passes);
criterion_main!(benches);
