//! The reference against PyTorch and finite differences; the fast path against the reference.

use proptest::prelude::*;

use super::*;
use crate::fixture;

/// Parameters, latents and the same of a fixture's `prefix`ed arrays.
fn from_fixture(decoder: &Decoder, name: &str, prefix: &str) -> (Vec<f64>, Vec<f64>) {
    let data = fixture::load(name);
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
        let data = fixture::load(name);
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
    )
        .prop_map(|(blocks, channels, kernel, upsampling, normalisation, padding, output)| Shape {
            blocks,
            channels,
            kernel,
            upsampling,
            normalisation,
            padding,
            output,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn reference_gradient_is_the_finite_difference(
        shape in any_shape(), rows in 8usize..14, cols in 8usize..14, emitters in 1usize..3, seed in 0u64..1000
    ) {
        let shape = Shape { blocks: shape.blocks.min(3), channels: shape.channels.min(3), ..shape };
        let decoder = Decoder::new(&shape, rows, cols, emitters).unwrap();
        let (params, latents) = start(&decoder, seed);
        let upstream = noise(emitters * rows * cols, seed + 2);
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
        let h = 1e-7;
        let found = (shifted(h) - shifted(-h)) / (2.0 * h);
        let scale = expected.abs().max(loss(&params, &latents).abs()).max(1e-3);
        prop_assert!((found - expected).abs() < 1e-4 * scale, "{found} {expected}");
    }
}
