//! The fast path against plain loops, finite differences and other instruction sets.

use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use safetensors::{Dtype, View};
use std::borrow::Cow;

use super::*;
use portolan::simulate::stream;

struct Tensor(Vec<usize>, Vec<f32>);

impl View for Tensor {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        &self.0
    }

    fn data(&self) -> Cow<'_, [u8]> {
        self.1.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>().into()
    }

    fn data_len(&self) -> usize {
        4 * self.1.len()
    }
}

/// A file of random weights with these channels, from the latent to the image.
pub(crate) fn random_weights(channels: &[usize], seed: u64) -> Vec<u8> {
    let mut rng = stream(seed, 0);
    let mut normal = |len: usize, deviation: f32| -> Vec<f32> {
        (0..len)
            .map(|_| {
                deviation * <StandardNormal as Distribution<f32>>::sample(&StandardNormal, &mut rng)
            })
            .collect()
    };
    let mut tensors = vec![("span".to_string(), Tensor(vec![1], vec![16.0]))];
    let count = channels.len() - 1;
    for (i, pair) in channels.windows(2).enumerate() {
        let (inputs, outputs) = (pair[0], pair[1]);
        let taps = if i == 0 { 1.0 } else { 4.0 };
        let weight = normal(inputs * outputs * 16, (2.0 / (taps * inputs as f32)).sqrt());
        tensors.push((format!("layer{i}.weight"), Tensor(vec![inputs, outputs, 4, 4], weight)));
        if i + 1 == count {
            tensors.push((format!("layer{i}.bias"), Tensor(vec![1], vec![0.3])));
        } else {
            let scale = normal(outputs, 0.1).iter().map(|s| 1.0 + s).collect();
            tensors.push((format!("layer{i}.scale"), Tensor(vec![outputs], scale)));
            tensors.push((format!("layer{i}.shift"), Tensor(vec![outputs], normal(outputs, 0.1))));
        }
    }
    safetensors::serialize(tensors, None).unwrap()
}

const SHIPPED: [usize; 6] = [256, 96, 64, 48, 32, 1];

fn latents(generator: &Generator, count: usize) -> Vec<f32> {
    let mut rng = stream(9, 0);
    (0..count * generator.latent_len()).map(|_| StandardNormal.sample(&mut rng)).collect()
}

fn wide(x: &[f32]) -> Vec<f64> {
    x.iter().map(|&x| f64::from(x)).collect()
}

/// ln S of every cell of a grid, and the gradient of sum(ln S * upstream).
fn draw(
    generator: &Generator,
    latents: &[f32],
    grid: (usize, usize),
    upstream: &[f32],
) -> (Vec<f32>, Vec<f32>) {
    let cells: Vec<usize> = (0..grid.0 * grid.1).collect();
    let sampler = generator.sampler(grid, &cells);
    let mut ws = generator.workspace(latents.len() / generator.latent_len());
    let mut gradient = vec![9.0; latents.len()];
    for _ in 0..2 {
        generator.forward(latents, &sampler, &mut ws);
        generator.backward(upstream, &sampler, &mut ws, &mut gradient);
    }
    (ws.ln_slf().to_vec(), gradient)
}

fn noise(len: usize) -> Vec<f32> {
    let mut rng = stream(3, 1);
    (0..len).map(|_| rng.random_range(-1.0..1.0)).collect()
}

fn levels() -> Vec<Level> {
    let best = Level::new();
    let mut levels = vec![best, Level::baseline()];
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    {
        levels.extend(best.as_sse4_2().map(Level::Sse4_2));
        levels.extend(best.as_avx2().map(Level::Avx2));
    }
    levels
}

#[test]
fn the_fast_path_agrees_with_plain_loops_on_every_instruction_set() {
    for channels in [&SHIPPED[..], &[20, 17, 40, 1]] {
        let bytes = random_weights(channels, 1);
        let (layers, span) = weights::parse(&bytes).unwrap();
        for level in levels() {
            let generator = Generator { level, ..Generator::from_safetensors(&bytes).unwrap() };
            let z = latents(&generator, 3);
            let side = generator.side();
            let upstream = noise(3 * side * side);
            let (found, gradient) = draw(&generator, &z, (side, side), &upstream);
            for (e, z) in z.chunks_exact(generator.latent_len()).enumerate() {
                let want = reference::forward(&layers, span, &wide(z));
                for (a, b) in found[e * side * side..].iter().zip(&want) {
                    assert!((f64::from(*a) - b).abs() < 1e-3, "{a} {b}");
                }
            }
            // Along a direction, in double precision.
            let z = &z[..generator.latent_len()];
            let along = noise(z.len());
            let loss = |h: f64| -> f64 {
                let moved: Vec<f64> =
                    z.iter().zip(&along).map(|(z, d)| f64::from(*z) + h * f64::from(*d)).collect();
                let drawn = reference::forward(&layers, span, &moved);
                drawn.iter().zip(&upstream).map(|(s, u)| s * f64::from(*u)).sum()
            };
            let slope = (loss(1e-6) - loss(-1e-6)) / 2e-6;
            let found: f64 =
                gradient.iter().zip(&along).map(|(g, d)| f64::from(g * d)).sum::<f64>();
            assert!((found - slope).abs() < 2e-3 * slope.abs().max(1.0), "{found} {slope}");
        }
    }
}

/// Bilinear value at the centre of a cell, pixels beyond the border like those at it.
fn between(image: &[f64], side: usize, (rows, cols): (usize, usize), cell: usize) -> f64 {
    let centre = |at: usize, cells: usize| (at as f64 + 0.5) * side as f64 / cells as f64 - 0.5;
    let (y, x) = (centre(cell / cols, rows), centre(cell % cols, cols));
    let pixel = |i: f64, j: f64| {
        let inside = |v: f64| v.clamp(0.0, side as f64 - 1.0) as usize;
        image[inside(i) * side + inside(j)]
    };
    let (i, j) = (y.floor(), x.floor());
    let (v, u) = (y - i, x - j);
    (1.0 - v) * ((1.0 - u) * pixel(i, j) + u * pixel(i, j + 1.0))
        + v * ((1.0 - u) * pixel(i + 1.0, j) + u * pixel(i + 1.0, j + 1.0))
}

/// ln S at every cell of a grid, by plain loops.
pub(crate) fn plain_cells(bytes: &[u8], latent: &[f64], grid: (usize, usize)) -> Vec<f64> {
    let (layers, span) = weights::parse(bytes).unwrap();
    let drawn = reference::forward(&layers, span, latent);
    let side = drawn.len().isqrt();
    (0..grid.0 * grid.1).map(|cell| between(&drawn, side, grid, cell)).collect()
}

#[test]
fn other_grids_are_drawn_between_pixels_and_gradients_go_through() {
    let bytes = random_weights(&[20, 24, 16, 1], 5);
    let generator = Generator::from_safetensors(&bytes).unwrap();
    let (layers, span) = weights::parse(&bytes).unwrap();
    let z = latents(&generator, 1);
    let fine = reference::forward(&layers, span, &wide(&z));
    let (coarse, _) = draw(&generator, &z, (8, 4), &[0.0; 32]);
    // Cell (0, 0) of 8 x 4 covers pixels of rows 0, 1 and columns 0 to 3 of 16 x 16.
    let want = (fine[1] + fine[2] + fine[17] + fine[18]) / 4.0;
    assert!((f64::from(coarse[0]) - want).abs() < 1e-4, "{} {want}", coarse[0]);
    for grid in [(34, 14), (20, 40)] {
        let upstream = noise(grid.0 * grid.1);
        let (_, gradient) = draw(&generator, &z, grid, &upstream);
        let along = noise(z.len());
        let loss = |h: f64| -> f64 {
            let moved: Vec<f64> =
                z.iter().zip(&along).map(|(z, d)| f64::from(*z) + h * f64::from(*d)).collect();
            let drawn = plain_cells(&bytes, &moved, grid);
            drawn.iter().zip(&upstream).map(|(s, u)| s * f64::from(*u)).sum()
        };
        let slope = (loss(1e-6) - loss(-1e-6)) / 2e-6;
        let found: f64 = gradient.iter().zip(&along).map(|(g, d)| f64::from(g * d)).sum();
        assert!((found - slope).abs() < 1e-3 * slope.abs().max(1.0), "{found} {slope}");
    }
}

/// The files were made by the trainer, with a framework's own convolutions.
#[test]
#[cfg(feature = "dgm-weights")]
fn the_shipped_weights_draw_what_the_trainer_drew() {
    for (trained, name) in [(Trained::Broad, "broad"), (Trained::Narrow, "narrow")] {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
        let bytes = std::fs::read(format!("{folder}/slf_{name}_reference.safetensors")).unwrap();
        let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        let numbers = |name: &str| -> Vec<f32> {
            let data = file.tensor(name).unwrap().data();
            data.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
        };
        let generator = trained.generator().unwrap();
        let (found, _) = draw(generator, &numbers("latent"), (64, 64), &[0.0; 4096]);
        for (a, b) in found.iter().zip(numbers("ln_slf")) {
            assert!((a - b).abs() < 1e-3, "{name}: {a} {b}");
        }
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let generator = Generator::from_safetensors(&random_weights(&SHIPPED, 2)).unwrap();
    let z = latents(&generator, 5);
    let upstream = noise(5 * 34 * 14);
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| draw(&generator, &z, (34, 14), &upstream))
    };
    assert_eq!(on(1), on(2));
}

#[test]
fn damaged_weights_are_refused() {
    let good = random_weights(&[8, 6, 5, 1], 1);
    assert!(Generator::from_safetensors(&good).is_ok());
    let refused = |bytes: &[u8], what: &str| {
        let error = Generator::from_safetensors(bytes).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    };
    refused(&good[..good.len() / 2], "cannot be used");
    refused(&random_weights(&[8, 6, 1], 1), "2 layers");
    refused(&random_weights(&[8, 6, 5, 2], 1), "layer2.weight");
    refused(b"", "cannot be used");
}

/// Latents begin with the emitter's place, as parts of the normal law (`train/src/code.rs`).
#[test]
#[cfg(feature = "dgm-weights")]
fn samples_show_one_emitter_where_their_latents_put_it() {
    const COUNT: usize = 64;
    let cells: Vec<usize> = (0..4096).collect();
    let apart = |cell: usize, (row, col): (f64, f64)| {
        ((cell / 64) as f64 - row).hypot((cell % 64) as f64 - col)
    };
    for trained in [Trained::Broad, Trained::Narrow] {
        let generator = trained.generator().unwrap();
        let sampler = generator.sampler((64, 64), &cells);
        let mut ws = generator.workspace(COUNT);
        let latents = latents(generator, COUNT);
        generator.forward(&latents, &sampler, &mut ws);
        let (mut placed, mut alone, mut fall) = (0, 0, 0.0);
        for (z, ln_slf) in latents.chunks(256).zip(ws.ln_slf().chunks(4096)) {
            let db = |cell: usize| f64::from(ln_slf[cell]) * 10.0 / std::f64::consts::LN_10;
            let top = (0..4096).max_by(|&a, &b| db(a).total_cmp(&db(b))).unwrap();
            let place = [z[0], z[1]]
                .map(|z| 32.0 * libm::erfc(-f64::from(z) * std::f64::consts::FRAC_1_SQRT_2) - 0.5);
            placed += usize::from(apart(top, place.into()) < 4.0);
            let centre = ((top / 64) as f64, (top % 64) as f64);
            let far = || cells.iter().copied().filter(|&c| apart(c, centre) > 8.0);
            alone += usize::from(far().all(|c| db(c) < db(top) - 4.0));
            let ring: Vec<f64> = far()
                .filter(|&c| (apart(c, centre) - 16.0).abs() < 0.5)
                .map(|c| db(c) - db(top))
                .collect();
            fall += ring.iter().sum::<f64>() / (ring.len() * COUNT) as f64;
        }
        assert!(placed >= COUNT * 8 / 10, "{placed} of {COUNT} peaks are in their place");
        assert!(alone >= COUNT * 9 / 10, "{alone} of {COUNT} have one peak");
        assert!((-25.0..-18.0).contains(&fall), "{fall} dB at 16 cells, -22 in the simulator");
    }
}

#[test]
#[cfg(not(feature = "dgm-weights"))]
fn without_weights_the_method_says_what_to_build() {
    for trained in [Trained::Broad, Trained::Narrow] {
        let error = trained.generator().unwrap_err().to_string();
        assert!(error.contains("build with the feature dgm-weights"), "{error}");
    }
}
