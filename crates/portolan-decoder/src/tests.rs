//! The reference against PyTorch and finite differences; the fast path against the reference.

use proptest::prelude::*;

use super::*;
use crate::golden;

/// Parameters, latents and the same of a fixture's `prefix`ed arrays.
fn from_fixture(decoder: &Decoder, name: &str, prefix: &str) -> (Vec<f64>, Vec<f64>) {
    let data = golden::load(name);
    let get = |key: String| data[&format!("{prefix}{key}")].1.clone();
    let mut params = vec![0.0; decoder.parameters()];
    for (b, block) in decoder.layout().blocks.iter().enumerate() {
        params[block.conv.clone()].copy_from_slice(&get(format!("conv{b}")));
        params[block.gamma.clone()].copy_from_slice(&get(format!("gamma{b}")));
        params[block.beta.clone()].copy_from_slice(&get(format!("beta{b}")));
    }
    params[decoder.layout().out.clone()].copy_from_slice(&get("out".into()));
    (params, get("z".into()))
}

/// Largest difference over the norm of what is expected.
fn distance<A: Copy + Into<f64>>(found: &[A], expected: &[f64]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let norm = expected.iter().map(|x| x * x).sum::<f64>().sqrt();
    let worst = found.iter().zip(expected).map(|(&f, e)| (f.into() - e).abs()).fold(0.0, f64::max);
    worst / norm.max(1e-30)
}

fn fixtures() -> [(&'static str, Decoder); 2] {
    [("decoder_reflect", Padding::Reflect), ("decoder_zero", Padding::Zero)].map(
        |(name, padding)| {
            (name, Decoder::new(&Shape { padding, ..Shape::default() }, 64, 64, 3).unwrap())
        },
    )
}

#[test]
fn reference_agrees_with_pytorch() {
    for (name, decoder) in fixtures() {
        let data = golden::load(name);
        let (params, latents) = from_fixture(&decoder, name, "");
        let (dparams, dlatents) = from_fixture(&decoder, name, "grad_");
        let tape = reference::forward(&decoder, &params, &latents);
        assert!(distance(&tape.slf, &data["slf"].1) < 1e-10);
        let grad = reference::backward(&decoder, &params, &tape, &data["upstream"].1);
        for block in &decoder.layout().blocks {
            for part in [&block.conv, &block.gamma, &block.beta] {
                let off = distance(&grad.params[part.clone()], &dparams[part.clone()]);
                assert!(off < 1e-9, "{name} {part:?} {off}");
            }
        }
        let out = decoder.layout().out.clone();
        assert!(distance(&grad.params[out.clone()], &dparams[out]) < 1e-9);
        assert!(distance(&grad.latents, &dlatents) < 1e-9);
    }
}

/// Repeatable numbers in (-1, 1).
fn noise(len: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        })
        .collect()
}

/// A random start that keeps activations of order one.
fn start(decoder: &Decoder, seed: u64) -> (Vec<f64>, Vec<f64>) {
    let mut params = noise(decoder.parameters(), seed);
    for block in &decoder.layout().blocks {
        let fan = (block.inputs * decoder.shape().kernel.pow(2)) as f64;
        params[block.conv.clone()].iter_mut().for_each(|w| *w *= (6.0 / fan).sqrt());
        params[block.gamma.clone()].iter_mut().for_each(|g| *g = 1.0 + 0.3 * *g);
        params[block.beta.clone()].iter_mut().for_each(|b| *b *= 0.3);
    }
    (params, noise(decoder.latent_len() * decoder.emitters(), seed + 1))
}

fn any_shape() -> impl Strategy<Value = Shape> {
    (
        1usize..=5,
        1usize..=7,
        1usize..=7,
        prop::sample::select(vec![Upsampling::Bilinear, Upsampling::Nearest, Upsampling::None]),
        prop::sample::select(vec![
            Normalisation::Batch,
            Normalisation::PerSample,
            Normalisation::None,
        ]),
        prop::sample::select(vec![Padding::Reflect, Padding::Zero]),
        prop::sample::select(vec![Output::Sigmoid, Output::Exponential]),
        prop::sample::select(vec![1, 1, 2, 5]),
        prop::sample::select(vec![0, 0, 1, 2]),
    )
        .prop_map(
            |(
                blocks,
                channels,
                kernel,
                upsampling,
                normalisation,
                padding,
                output,
                outputs,
                keep,
            )| {
                Shape {
                    blocks,
                    keep,
                    channels,
                    kernel,
                    upsampling,
                    normalisation,
                    padding,
                    output,
                    outputs,
                }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn reference_gradient_is_the_finite_difference(
        shape in any_shape(), rows in 8usize..14, cols in 8usize..14, emitters in 1usize..3, seed in 0u64..1000
    ) {
        let shape = Shape { blocks: shape.blocks.min(3), channels: shape.channels.min(3), ..shape };
        let decoder = Decoder::new(&shape, rows, cols, emitters).unwrap();
        let (params, latents) = start(&decoder, seed);
        let upstream = noise(emitters * shape.outputs * rows * cols, seed + 2);
        let loss = |params: &[f64], latents: &[f64]| -> f64 {
            let slf = reference::forward(&decoder, params, latents).slf;
            slf.iter().zip(&upstream).map(|(s, u)| s * u).sum()
        };
        let tape = reference::forward(&decoder, &params, &latents);
        let grad = reference::backward(&decoder, &params, &tape, &upstream);
        // A direction, rather than each coordinate: a kink of the ReLU then matters little.
        let (along, beside) = (noise(params.len(), seed + 3), noise(latents.len(), seed + 4));
        let expected: f64 = grad.params.iter().zip(&along).map(|(g, d)| g * d).sum::<f64>()
            + grad.latents.iter().zip(&beside).map(|(g, d)| g * d).sum::<f64>();
        let shifted = |h: f64| {
            let p: Vec<f64> = params.iter().zip(&along).map(|(p, d)| p + h * d).collect();
            let z: Vec<f64> = latents.iter().zip(&beside).map(|(z, d)| z + h * d).collect();
            loss(&p, &z)
        };
        let scale = expected.abs().max(loss(&params, &latents).abs()).max(1e-3);
        // A kink between the two points spoils a difference: a shorter step is clear of it.
        let found = [1e-7, 1e-8, 1e-9].map(|h| (shifted(h) - shifted(-h)) / (2.0 * h));
        let agrees = found.iter().any(|found| (found - expected).abs() < 1e-4 * scale);
        prop_assert!(agrees, "{found:?} {expected}");
    }
}

/// The fast path's SLFs and gradients, dense or at `cells`.
fn fast(
    decoder: &Decoder,
    params: &[f64],
    latents: &[f64],
    upstream: &[f64],
    cells: Option<&[usize]>,
) -> (Vec<f32>, Vec<f32>, Vec<f32>) {
    let narrow = |x: &[f64]| x.iter().map(|&x| x as f32).collect::<Vec<f32>>();
    let (params, latents, upstream) = (narrow(params), narrow(latents), narrow(upstream));
    let (mut dparams, mut dlatents) = (vec![9.0; params.len()], vec![9.0; latents.len()]);
    let mut ws = decoder.workspace();
    match cells {
        None => {
            decoder.forward(&params, &latents, &mut ws);
            decoder.backward(&params, &upstream, &mut ws, &mut dparams, &mut dlatents);
            (ws.slf().to_vec(), dparams, dlatents)
        }
        Some(cells) => {
            let at = decoder.readout(cells).unwrap();
            decoder.forward_at(&params, &latents, &at, &mut ws);
            decoder.backward_at(&params, &at, &upstream, &mut ws, &mut dparams, &mut dlatents);
            (ws.slf_at().to_vec(), dparams, dlatents)
        }
    }
}

#[test]
fn fast_path_agrees_with_pytorch() {
    for (name, decoder) in fixtures() {
        let data = golden::load(name);
        let (params, latents) = from_fixture(&decoder, name, "");
        let (dparams, dlatents) = from_fixture(&decoder, name, "grad_");
        let upstream = &data["upstream"].1;
        let (slf, dp, dz) = fast(&decoder, &params, &latents, upstream, None);
        assert!(distance(&slf, &data["slf"].1) < 1e-5, "{}", distance(&slf, &data["slf"].1));
        for block in &decoder.layout().blocks {
            for part in [&block.conv, &block.gamma, &block.beta] {
                let off = distance(&dp[part.clone()], &dparams[part.clone()]);
                assert!(off < 1e-4, "{name} {part:?} {off}");
            }
        }
        let out = decoder.layout().out.clone();
        assert!(distance(&dp[out.clone()], &dparams[out]) < 1e-4);
        assert!(distance(&dz, &dlatents) < 1e-4);
    }
}

/// Compares dense and sparse passes with the reference: within 1e-4 of the norm, or where rounding
/// alone moves the reference further (a gradient that all but cancels), within a few times that.
/// Nothing is compared where rounding may open or close a ReLU.
fn agree(decoder: &Decoder, seed: u64) {
    let (params, latents) = start(decoder, seed);
    let n = decoder.rows() * decoder.cols();
    let upstream = noise(decoder.emitters() * decoder.shape().outputs * n, seed + 2);
    let cells: Vec<usize> = (0..n).step_by(7).chain([0, n - 1, 5, 5]).collect();
    let pick = |x: &[f64]| -> Vec<f64> {
        x.chunks_exact(n).flat_map(|x| cells.iter().map(|&c| x[c])).collect()
    };
    let weights = pick(&upstream);
    let mut sparse = vec![0.0; upstream.len()];
    for (k, w) in weights.iter().enumerate() {
        sparse[k / cells.len() * n + cells[k % cells.len()]] += w;
    }
    let narrow = |x: &[f64]| x.iter().map(|&x| x as f32).collect::<Vec<f32>>();
    let (params32, latents32) = (narrow(&params), narrow(&latents));
    let wide = |x: &[f32]| x.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
    let (params, latents) = (wide(&params32), wide(&latents32));
    let tape = reference::forward(decoder, &params, &latents);
    if tape.nearest_kink < 5e-6 {
        return;
    }
    let tape32 = reference::forward(decoder, &params32, &latents32);
    let check = |what: &str, found: &[f32], plain: &[f32], expected: &[f64]| {
        let (off, limit) = (distance(found, expected), 1e-4 + 10.0 * distance(plain, expected));
        let (rows, cols) = (decoder.rows(), decoder.cols());
        assert!(off < limit, "{what} {off} {limit} {:?} {rows}x{cols}", decoder.shape());
    };
    for (upstream, given, cells) in
        [(&upstream, &upstream, None), (&sparse, &weights, Some(&cells[..]))]
    {
        let grad = reference::backward(decoder, &params, &tape, upstream);
        let grad32 = reference::backward(decoder, &params32, &tape32, &narrow(upstream));
        let (slf, dp, dz) = fast(decoder, &params, &latents, given, cells);
        let expected = if cells.is_some() { pick(&tape.slf) } else { tape.slf.clone() };
        check("slf", &slf, &narrow(&expected), &expected);
        check("params", &dp, &grad32.params, &grad.params);
        check("latents", &dz, &grad32.latents, &grad.latents);
    }
}

#[test]
fn fast_path_agrees_on_many_grids() {
    for (rows, cols) in [(8, 8), (34, 14), (40, 27), (100, 64), (9, 31), (64, 64)] {
        for emitters in [1, 2, 5] {
            for padding in [Padding::Reflect, Padding::Zero] {
                let shape = Shape { padding, ..Shape::default() };
                agree(&Decoder::new(&shape, rows, cols, emitters).unwrap(), 11);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(96) })]

    #[test]
    fn fast_path_agrees_for_every_shape(
        shape in any_shape(), rows in 8usize..40, cols in 8usize..40, emitters in 1usize..6, seed in 0u64..1000
    ) {
        agree(&Decoder::new(&shape, rows, cols, emitters).unwrap(), seed);
    }
}

/// Every instruction set this processor has.
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
fn every_instruction_set_agrees() {
    for level in levels() {
        for (channels, kernel, outputs, rows, cols, emitters) in [
            (6, 3, 1, 64, 64, 4),
            (7, 2, 1, 34, 14, 3),
            (16, 3, 1, 40, 27, 2),
            (2, 5, 1, 150, 140, 1),
            (5, 3, 9, 34, 14, 1),
        ] {
            let shape = Shape { channels, kernel, outputs, ..Shape::default() };
            let mut decoder = Decoder::new(&shape, rows, cols, emitters).unwrap();
            decoder.level = level;
            agree(&decoder, 5);
        }
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let flat = Shape { upsampling: Upsampling::None, blocks: 2, ..Shape::default() };
    let plain = Shape { normalisation: Normalisation::PerSample, ..Shape::default() };
    let several = Shape { outputs: 3, ..Shape::default() };
    for (shape, rows, cols, emitters) in [
        (Shape::default(), 64, 64, 4),
        (plain, 160, 150, 3),
        (flat, 96, 80, 2),
        (several, 160, 150, 2),
    ] {
        let decoder = Decoder::new(&shape, rows, cols, emitters).unwrap();
        let (params, latents) = start(&decoder, 3);
        let upstream = noise(emitters * shape.outputs * rows * cols, 4);
        let run = |decoder: &Decoder, threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| fast(decoder, &params, &latents, &upstream, None))
        };
        let shared = decoder.clone().parallel(true);
        let alone = run(&decoder.parallel(false), 1);
        assert_eq!(alone, run(&shared, 1));
        assert_eq!(alone, run(&shared, 2));
        assert_eq!(alone, run(&shared, 5));
    }
}

#[test]
fn a_workspace_keeps_nothing_from_one_pass_to_the_next() {
    for outputs in [1, 4] {
        let shape = Shape { outputs, ..Shape::default() };
        let decoder = Decoder::new(&shape, 40, 50, 3).unwrap();
        let narrow = |x: Vec<f64>| x.into_iter().map(|x| x as f32).collect::<Vec<f32>>();
        let (params, latents) = start(&decoder, 7);
        let (params, latents) = (narrow(params), narrow(latents));
        let mut ws = decoder.workspace();
        let mut results = Vec::new();
        for _ in 0..2 {
            for cells in [vec![3, 77, 475], vec![], vec![5; 40], vec![7; 41]] {
                let at = decoder.readout(&cells).unwrap();
                let upstream = vec![0.5; 3 * outputs * cells.len()];
                let (mut dp, mut dz) = (params.clone(), latents.clone());
                decoder.forward_at(&params, &latents, &at, &mut ws);
                decoder.backward_at(&params, &at, &upstream, &mut ws, &mut dp, &mut dz);
                results.push((ws.slf_at().to_vec(), dp, dz));
            }
            let (mut dp, mut dz) = (params.clone(), latents.clone());
            decoder.forward(&params, &latents, &mut ws);
            let upstream = vec![0.1; 3 * outputs * 40 * 50];
            decoder.backward(&params, &upstream, &mut ws, &mut dp, &mut dz);
            results.push((ws.slf().to_vec(), dp, dz));
        }
        let (first, second) = results.split_at(5);
        assert_eq!(first, second);
        assert!(first[1].1.iter().all(|&g| g == 0.0));
        // Forty cells after forty-one: what lies beyond the fortieth must not count.
        let mut fresh = decoder.workspace();
        let at = decoder.readout(&[5; 40]).unwrap();
        let (mut dp, mut dz) = (params.clone(), latents.clone());
        decoder.forward_at(&params, &latents, &decoder.readout(&[7; 41]).unwrap(), &mut ws);
        for ws in [&mut ws, &mut fresh] {
            decoder.forward_at(&params, &latents, &at, ws);
            decoder.backward_at(&params, &at, &vec![0.5; 120 * outputs], ws, &mut dp, &mut dz);
            assert_eq!((&dp, &dz), (&first[2].1, &first[2].2));
        }
    }
}

#[test]
fn impossible_decoders_are_refused() {
    let shape = Shape::default();
    assert!(Decoder::new(&Shape { blocks: 0, ..shape }, 64, 64, 1).is_err());
    assert!(Decoder::new(&Shape { channels: 129, ..shape }, 64, 64, 1).is_err());
    assert!(Decoder::new(&Shape { kernel: 8, ..shape }, 64, 64, 1).is_err());
    assert!(Decoder::new(&shape, 7, 64, 1).is_err());
    assert!(Decoder::new(&shape, 64, 64, 0).is_err());
    assert!(Decoder::new(&shape, 8, 8, 1).unwrap().readout(&[64]).is_err());
}

/// Ten Adam steps of the paper's objective from the fixture's start: latents, parameters and PSDs
/// with one gradient each, as PyTorch took them. Returns the data terms and the last SLFs.
fn ten_steps(
    decoder: &Decoder,
    mut slf_and_back: impl FnMut(
        &[f64],
        &[f64],
        &mut dyn FnMut(&[f64]) -> Vec<f64>,
    ) -> (Vec<f64>, Vec<f64>),
) -> (Vec<f64>, Vec<f64>) {
    let data = golden::load("adam10");
    let cells: Vec<usize> =
        data["cells"].1.chunks_exact(2).map(|c| (c[0] * 64.0 + c[1]) as usize).collect();
    let target: Vec<f64> = data["values"].1.iter().map(|y| (y + 1e-6).ln()).collect();
    let (emitters, bands) = (decoder.emitters(), target.len() / cells.len());
    let (mut params, mut latents) = from_fixture(decoder, "adam10", "start_");
    let mut psd = data["psd_start"].1.clone();
    let mut adams = [params.len(), latents.len(), psd.len()].map(crate::adam::Adam::new);
    let (mut losses, mut last) = (Vec::new(), Vec::new());
    for _ in 0..10 {
        let mut loss = 0.0;
        let mut dpsd: Vec<f64> = psd.iter().map(|c| 2e-3 * c).collect();
        let (mut dparams, mut dlatents) = slf_and_back(&params, &latents, &mut |slf| {
            let mut upstream = vec![0.0; slf.len()];
            for (n, &cell) in cells.iter().enumerate() {
                for k in 0..bands {
                    let at = |e: usize| e * slf.len() / emitters + cell;
                    let power: f64 = (0..emitters).map(|e| slf[at(e)] * psd[e * bands + k]).sum();
                    let error = (power + 1e-6).ln() - target[n * bands + k];
                    loss += error * error;
                    let pull = 2.0 * error / (power + 1e-6);
                    for e in 0..emitters {
                        upstream[at(e)] += pull * psd[e * bands + k];
                        dpsd[e * bands + k] += pull * slf[at(e)];
                    }
                }
            }
            last = slf.to_vec();
            upstream
        });
        dparams.iter_mut().zip(&params).for_each(|(g, p)| *g += 2e-4 * p);
        dlatents.iter_mut().zip(&latents).for_each(|(g, z)| *g += 2e-3 * z);
        losses.push(loss);
        adams[0].step(0.05, &mut params, &dparams);
        adams[1].step(0.05, &mut latents, &dlatents);
        adams[2].step_nonnegative(0.001, &mut psd, &dpsd);
    }
    let (params_end, latents_end) = from_fixture(decoder, "adam10", "end_");
    let off = distance(&params, &params_end) + distance(&latents, &latents_end);
    losses.push(off + distance(&psd, &data["psd_end"].1));
    (losses, last)
}

#[test]
fn ten_steps_of_the_papers_fit_agree_with_pytorch() {
    let decoder = Decoder::new(&Shape::default(), 64, 64, 4).unwrap();
    let data = golden::load("adam10");
    let expected: Vec<f64> = data["losses"].1.chunks_exact(2).map(|l| l[0]).collect();
    let (losses, _) = ten_steps(&decoder, |params, latents, loss| {
        let tape = reference::forward(&decoder, params, latents);
        let grad = reference::backward(&decoder, params, &tape, &loss(&tape.slf));
        (grad.params, grad.latents)
    });
    assert!(distance(&losses[..10], &expected) < 1e-9, "{losses:?}");
    assert!(losses[10] < 1e-7, "{}", losses[10]);

    let mut ws = decoder.workspace();
    let (losses, _) = ten_steps(&decoder, |params, latents, loss| {
        let narrow = |x: &[f64]| x.iter().map(|&x| x as f32).collect::<Vec<f32>>();
        let wide = |x: &[f32]| x.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
        let (params, latents) = (narrow(params), narrow(latents));
        let (mut dp, mut dz) = (params.clone(), latents.clone());
        decoder.forward(&params, &latents, &mut ws);
        let upstream = narrow(&loss(&wide(ws.slf())));
        decoder.backward(&params, &upstream, &mut ws, &mut dp, &mut dz);
        (wide(&dp), wide(&dz))
    });
    assert!(distance(&losses[..10], &expected) < 1e-4, "{losses:?}");
}
