//! The decoder in plain loops, for `f32` or `f64`: slow, allocating, and easy to check by eye. The
//! fast path is tested against it.

use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

use super::shape::{Normalisation, Output, Padding, Upsampling, reflect};
use super::{Decoder, VARIANCE_FLOOR};

/// A floating-point number.
pub trait Scalar:
    Copy
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
{
    /// The nearest value of this type.
    fn of(value: f64) -> Self;
    /// e to the power of the value.
    fn exp(self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
}

macro_rules! real {
    ($t:ty) => {
        impl Scalar for $t {
            fn of(value: f64) -> Self {
                value as $t
            }
            fn exp(self) -> Self {
                self.exp()
            }
            fn sqrt(self) -> Self {
                self.sqrt()
            }
        }
    };
}
real!(f32);
real!(f64);

/// A stack of images, (emitter, channel, row, column).
#[derive(Clone)]
struct Images<T> {
    channels: usize,
    rows: usize,
    cols: usize,
    data: Vec<T>,
}

impl<T: Scalar> Images<T> {
    fn zeros(emitters: usize, channels: usize, rows: usize, cols: usize) -> Self {
        Self { channels, rows, cols, data: vec![T::of(0.0); emitters * channels * rows * cols] }
    }

    fn emitters(&self) -> usize {
        self.data.len() / (self.channels * self.rows * self.cols)
    }

    fn at(&self, emitter: usize, channel: usize, row: usize, col: usize) -> usize {
        ((emitter * self.channels + channel) * self.rows + row) * self.cols + col
    }
}

/// One block's intermediate results.
struct Step<T> {
    input: Images<T>,
    rectified: Images<T>,
    /// Mean and reciprocal standard deviation, per emitter and channel.
    moments: Vec<(T, T)>,
}

/// A forward pass, kept for the backward one.
pub struct Tape<T> {
    steps: Vec<Step<T>>,
    last: Images<T>,
    /// The SLFs, (emitter, output, row, column).
    pub slf: Vec<T>,
    /// The smallest magnitude, zero apart, that any ReLU was given: how far the nearest kink is.
    pub nearest_kink: T,
}

/// Gradients in the layouts of the parameters and the latents.
pub struct Gradients<T> {
    /// By parameter, as [`ParameterLayout`](super::ParameterLayout) orders them.
    pub params: Vec<T>,
    /// By latent, emitter by emitter.
    pub latents: Vec<T>,
}

/// Draws every emitter's SLF.
pub fn forward<T: Scalar>(decoder: &Decoder, params: &[T], latents: &[T]) -> Tape<T> {
    let shape = decoder.shape();
    let (rows, cols) = decoder.latent_dim();
    let mut x = Images { channels: 1, rows, cols, data: latents.to_vec() };
    let mut steps = Vec::new();
    let mut nearest_kink = T::of(f64::INFINITY);
    for block in &decoder.layout().blocks {
        let mut v = upsample(block.upsampling, &convolve(decoder, &params[block.conv.clone()], &x));
        for value in &mut v.data {
            let size = if *value > T::of(0.0) { *value } else { -*value };
            if size > T::of(0.0) && size < nearest_kink {
                nearest_kink = size;
            }
            *value = if *value > T::of(0.0) { *value } else { T::of(0.0) };
        }
        let moments = moments(shape.normalisation, &v);
        let mut out = v.clone();
        if shape.normalisation != Normalisation::None {
            let (gamma, beta) = (&params[block.gamma.clone()], &params[block.beta.clone()]);
            let pixels = v.rows * v.cols;
            for (plane, (image, (mean, inv))) in
                out.data.chunks_exact_mut(pixels).zip(&moments).enumerate()
            {
                let c = plane % v.channels;
                for value in image {
                    *value = gamma[c] * (*value - *mean) * *inv + beta[c];
                }
            }
        }
        steps.push(Step { input: x, rectified: v, moments });
        x = out;
    }
    let (emitters, rows, cols) = (decoder.emitters(), decoder.rows(), decoder.cols());
    let weights = &params[decoder.layout().out.clone()];
    let mut slf = Vec::with_capacity(emitters * shape.outputs * rows * cols);
    for (e, weights) in each_output(emitters, weights, x.channels) {
        for i in 0..rows {
            for j in 0..cols {
                let mut logit = T::of(0.0);
                for (c, w) in weights.iter().enumerate() {
                    logit += *w * x.data[x.at(e, c, i, j)];
                }
                slf.push(match shape.output {
                    Output::Sigmoid => T::of(1.0) / (T::of(1.0) + (-logit).exp()),
                    Output::Exponential => logit.exp(),
                });
            }
        }
    }
    Tape { steps, last: x, slf, nearest_kink }
}

/// Gradients of a loss whose gradient with respect to the SLFs is `upstream`.
pub fn backward<T: Scalar>(
    decoder: &Decoder,
    params: &[T],
    tape: &Tape<T>,
    upstream: &[T],
) -> Gradients<T> {
    let shape = decoder.shape();
    let (emitters, rows, cols) = (decoder.emitters(), decoder.rows(), decoder.cols());
    let mut grad = vec![T::of(0.0); params.len()];
    let x = &tape.last;
    let mut dx = Images::zeros(emitters, x.channels, x.rows, x.cols);
    let out = decoder.layout().out.clone();
    for (image, (e, weights)) in each_output(emitters, &params[out.clone()], x.channels).enumerate()
    {
        let first = out.start + image % shape.outputs * x.channels;
        for i in 0..rows {
            for j in 0..cols {
                let k = (image * rows + i) * cols + j;
                let s = tape.slf[k];
                let slope = match shape.output {
                    Output::Sigmoid => s * (T::of(1.0) - s),
                    Output::Exponential => s,
                };
                for (c, w) in weights.iter().enumerate() {
                    let at = x.at(e, c, i, j);
                    grad[first + c] += upstream[k] * slope * x.data[at];
                    dx.data[at] += upstream[k] * slope * *w;
                }
            }
        }
    }
    for (block, step) in decoder.layout().blocks.iter().zip(&tape.steps).rev() {
        if shape.normalisation != Normalisation::None {
            let (gamma, beta) = (block.gamma.start, block.beta.start);
            normalise_backward(
                shape.normalisation,
                step,
                &params[block.gamma.clone()],
                &mut dx,
                |c, dg, db| {
                    grad[gamma + c] += dg;
                    grad[beta + c] += db;
                },
            );
        }
        for (d, v) in dx.data.iter_mut().zip(&step.rectified.data) {
            if *v <= T::of(0.0) {
                *d = T::of(0.0);
            }
        }
        let dy = upsample_backward(block.upsampling, &dx);
        dx = convolve_backward(
            decoder,
            &params[block.conv.clone()],
            &step.input,
            &dy,
            &mut grad[block.conv.clone()],
        );
    }
    Gradients { params: grad, latents: dx.data }
}

/// Every emitter with the weights of every output.
fn each_output<T>(
    emitters: usize,
    weights: &[T],
    channels: usize,
) -> impl Iterator<Item = (usize, &[T])> {
    (0..emitters).flat_map(move |e| weights.chunks_exact(channels).map(move |w| (e, w)))
}

/// The pixel a tap reads, or nothing where zero padding lies.
fn source(decoder: &Decoder, out: usize, tap: usize, n: usize) -> Option<usize> {
    let at = (out + tap) as isize - decoder.shape().pad().0 as isize;
    match decoder.shape().padding {
        Padding::Reflect => Some(reflect(at, n)),
        Padding::Zero => usize::try_from(at).ok().filter(|&at| at < n),
    }
}

/// Calls `visit(output pixel, input pixel, weight)` for every product of the convolution.
fn each_product<T: Scalar>(
    decoder: &Decoder,
    x: &Images<T>,
    mut visit: impl FnMut(usize, usize, usize),
) {
    let (k, channels) = (decoder.shape().kernel, decoder.shape().channels);
    for e in 0..x.emitters() {
        for co in 0..channels {
            for i in 0..x.rows {
                for j in 0..x.cols {
                    let to = ((e * channels + co) * x.rows + i) * x.cols + j;
                    for ci in 0..x.channels {
                        for kh in 0..k {
                            let Some(si) = source(decoder, i, kh, x.rows) else { continue };
                            for kw in 0..k {
                                let Some(sj) = source(decoder, j, kw, x.cols) else { continue };
                                let weight = ((co * x.channels + ci) * k + kh) * k + kw;
                                visit(to, x.at(e, ci, si, sj), weight);
                            }
                        }
                    }
                }
            }
        }
    }
}

fn convolve<T: Scalar>(decoder: &Decoder, weights: &[T], x: &Images<T>) -> Images<T> {
    let mut y = Images::zeros(x.emitters(), decoder.shape().channels, x.rows, x.cols);
    each_product(decoder, x, |to, from, w| y.data[to] += weights[w] * x.data[from]);
    y
}

fn convolve_backward<T: Scalar>(
    decoder: &Decoder,
    weights: &[T],
    x: &Images<T>,
    dy: &Images<T>,
    grad: &mut [T],
) -> Images<T> {
    let mut dx = Images::zeros(x.emitters(), x.channels, x.rows, x.cols);
    each_product(decoder, x, |to, from, w| {
        grad[w] += dy.data[to] * x.data[from];
        dx.data[from] += dy.data[to] * weights[w];
    });
    dx
}

/// Calls `visit(output pixel, input pixel, weight)` for every product of the upsampling.
fn each_share<T: Scalar>(
    mode: Upsampling,
    small: (usize, usize),
    planes: usize,
    mut visit: impl FnMut(usize, usize, T),
) {
    let (rows, cols) = small;
    let side = if mode == Upsampling::None { 1 } else { 2 };
    let taps = |at: usize, n: usize| -> [(usize, f64); 2] {
        let near = at / side;
        if mode != Upsampling::Bilinear {
            return [(near, 1.0), (near, 0.0)];
        }
        let far = if at.is_multiple_of(2) { near.saturating_sub(1) } else { (near + 1).min(n - 1) };
        [(near, 0.75), (far, 0.25)]
    };
    for plane in 0..planes {
        for i in 0..side * rows {
            for j in 0..side * cols {
                for (si, wi) in taps(i, rows) {
                    for (sj, wj) in taps(j, cols) {
                        visit(
                            (plane * side * rows + i) * side * cols + j,
                            (plane * rows + si) * cols + sj,
                            T::of(wi * wj),
                        );
                    }
                }
            }
        }
    }
}

fn upsample<T: Scalar>(mode: Upsampling, y: &Images<T>) -> Images<T> {
    let side = if mode == Upsampling::None { 1 } else { 2 };
    let mut u = Images::zeros(y.emitters(), y.channels, side * y.rows, side * y.cols);
    let planes = y.emitters() * y.channels;
    each_share(mode, (y.rows, y.cols), planes, |to, from, w: T| u.data[to] += w * y.data[from]);
    u
}

fn upsample_backward<T: Scalar>(mode: Upsampling, du: &Images<T>) -> Images<T> {
    let side = if mode == Upsampling::None { 1 } else { 2 };
    let mut dy = Images::zeros(du.emitters(), du.channels, du.rows / side, du.cols / side);
    let (planes, size) = (du.emitters() * du.channels, (dy.rows, dy.cols));
    each_share(mode, size, planes, |to, from, w: T| dy.data[from] += w * du.data[to]);
    dy
}

/// Which planes (emitter, channel) share plane `p`'s statistics.
fn partners(mode: Normalisation, p: usize, planes: usize, channels: usize) -> Vec<usize> {
    match mode {
        Normalisation::Batch => (p % channels..planes).step_by(channels).collect(),
        _ => vec![p],
    }
}

fn moments<T: Scalar>(mode: Normalisation, v: &Images<T>) -> Vec<(T, T)> {
    if mode == Normalisation::None {
        return Vec::new();
    }
    let (planes, pixels) = (v.emitters() * v.channels, v.rows * v.cols);
    let over = |group: &[usize], f: &dyn Fn(T) -> T| {
        let mut sum = T::of(0.0);
        for &p in group {
            for value in &v.data[p * pixels..(p + 1) * pixels] {
                sum += f(*value);
            }
        }
        sum / T::of((group.len() * pixels) as f64)
    };
    (0..planes)
        .map(|p| {
            let group = partners(mode, p, planes, v.channels);
            let mean = over(&group, &|x| x);
            let variance = over(&group, &|x| (x - mean) * (x - mean));
            (mean, T::of(1.0) / (variance + T::of(VARIANCE_FLOOR)).sqrt())
        })
        .collect()
}

fn normalise_backward<T: Scalar>(
    mode: Normalisation,
    step: &Step<T>,
    gamma: &[T],
    dx: &mut Images<T>,
    mut tally: impl FnMut(usize, T, T),
) {
    let (planes, pixels) = (dx.emitters() * dx.channels, dx.rows * dx.cols);
    let v = &step.rectified.data;
    let sums: Vec<(T, T)> = (0..planes)
        .map(|p| {
            let (mean, inv) = step.moments[p];
            let (mut plain, mut scaled) = (T::of(0.0), T::of(0.0));
            let range = p * pixels..(p + 1) * pixels;
            for (d, v) in dx.data[range.clone()].iter().zip(&v[range]) {
                plain += *d;
                scaled += *d * (*v - mean) * inv;
            }
            tally(p % dx.channels, scaled, plain);
            (plain, scaled)
        })
        .collect();
    for p in 0..planes {
        let group = partners(mode, p, planes, dx.channels);
        let n = T::of((group.len() * pixels) as f64);
        let (mut plain, mut scaled) = (T::of(0.0), T::of(0.0));
        for q in group {
            plain += sums[q].0;
            scaled += sums[q].1;
        }
        let (mean, inv) = step.moments[p];
        let range = p * pixels..(p + 1) * pixels;
        let scale = gamma[p % dx.channels] * inv;
        for (d, v) in dx.data[range.clone()].iter_mut().zip(&v[range]) {
            let unit = (*v - mean) * inv;
            *d = scale * (*d - plain / n - unit * scaled / n);
        }
    }
}
