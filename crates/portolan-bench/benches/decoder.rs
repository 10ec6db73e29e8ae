//! Time of one forward and one backward pass: `cargo bench -p portolan-bench --bench decoder`.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use portolan::decoder::adam::Adam;
use portolan::decoder::{Decoder, Shape};

/// Repeatable numbers in (-1, 1).
fn noise(len: usize) -> Vec<f32> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
        })
        .collect()
}

fn passes(c: &mut Criterion) {
    for (side, emitters) in [(64, 4), (64, 1), (128, 4), (256, 4), (512, 8)] {
        let decoder = Decoder::new(&Shape::default(), side, side, emitters).unwrap();
        let params: Vec<f32> = noise(decoder.parameters()).iter().map(|w| 0.4 * w).collect();
        let latents = noise(emitters * decoder.latent_len());
        let cells: Vec<usize> = (0..side * side / 10).map(|i| i * 7919 % (side * side)).collect();
        let at = decoder.readout(&cells).unwrap();
        let upstream = noise(emitters * cells.len());
        let dense = noise(emitters * side * side);
        let mut ws = decoder.workspace();
        let (mut dp, mut dz) = (params.clone(), latents.clone());
        let mut group = c.benchmark_group(format!("decoder {side}x{side} R={emitters}"));
        let id = |name: &str| BenchmarkId::from_parameter(name);
        group.bench_function(id("forward_at"), |b| {
            b.iter(|| decoder.forward_at(black_box(&params), &latents, &at, &mut ws));
        });
        group.bench_function(id("backward_at"), |b| {
            b.iter(|| decoder.backward_at(&params, &at, &upstream, &mut ws, &mut dp, &mut dz));
        });
        group.bench_function(id("both_at"), |b| {
            b.iter(|| {
                decoder.forward_at(black_box(&params), &latents, &at, &mut ws);
                decoder.backward_at(&params, &at, &upstream, &mut ws, &mut dp, &mut dz);
            });
        });
        let shared = decoder.clone().parallel(true);
        let mut ws_shared = shared.workspace();
        group.bench_function(id("both_at, threads"), |b| {
            rayon::scope(|_| {
                b.iter(|| {
                    shared.forward_at(black_box(&params), &latents, &at, &mut ws_shared);
                    shared.backward_at(&params, &at, &upstream, &mut ws_shared, &mut dp, &mut dz);
                });
            });
        });
        group.bench_function(id("forward"), |b| {
            b.iter(|| decoder.forward(black_box(&params), &latents, &mut ws));
        });
        group.bench_function(id("backward"), |b| {
            b.iter(|| decoder.backward(&params, &dense, &mut ws, &mut dp, &mut dz));
        });
        group.finish();
    }
}

fn adam(c: &mut Criterion) {
    let (mut params, grad) = (noise(1144), noise(1144));
    let mut adam = Adam::new(params.len());
    c.bench_function("adam 1144", |b| b.iter(|| adam.step(0.05, black_box(&mut params), &grad)));
}

criterion_group!(benches, passes, adam);
criterion_main!(benches);
