//! The learned prior: a generator of SLFs, trained on simulated ones (`train/`), as in Shrestha, Fu
//! and Hong, "Deep Spectrum Cartography" (2022). A latent z, standard normal, is enlarged by
//! transposed convolutions with kernel 4 to an image o in (0, 1); ln S = (o - 1) span is the SLF
//! up to a factor, which belongs to the emitter's power.
//!
//! Stride 2 and padding 1 make of every layer four convolutions with 2 x 2 taps, one for each parity
//! of the result's rows and columns; backward it is one convolution with 4 x 4 taps and stride 2.
//! Images keep a margin of zeros, so that no tap needs to know of borders.
//!
//! # Cost
//! 12 million products forward and as many backward for one latent, the training's layers being
//! 256, 96, 64, 48, 32 and 1 channels. `cargo bench -p portolan-bench --bench generator`.

#![expect(clippy::too_many_arguments, reason = "kernels take their sizes and slices one by one")]

mod product;
#[cfg(test)]
mod reference;
mod sampler;
mod stage;
mod weights;

pub use sampler::Sampler;

#[cfg(feature = "dgm-weights")]
use std::sync::OnceLock;

use fearless_simd::{Level, dispatch, prelude::*};
use rayon::prelude::*;

use portolan::InputError;
use portolan_decoder::simd::padded;
use product::{Finish, Product, Steps};
use stage::{Stage, lay};
use weights::Layer;

/// What the shipped weights were trained on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Trained {
    /// Shadowing of 4 to 8 dB, decorrelation of 40 to 90 m.
    #[default]
    Broad,
    /// Shadowing of 7 to 8 dB, decorrelation of 40 to 70 m.
    Narrow,
}

impl Trained {
    /// The generator, unpacked once.
    ///
    /// # Errors
    /// If this was built without the feature `dgm-weights`, or with damaged weights.
    #[cfg(feature = "dgm-weights")]
    pub fn generator(self) -> Result<&'static Generator, InputError> {
        static BROAD: OnceLock<Result<Generator, InputError>> = OnceLock::new();
        static NARROW: OnceLock<Result<Generator, InputError>> = OnceLock::new();
        let (cell, bytes): (_, &[u8]) = match self {
            Trained::Broad => (&BROAD, include_bytes!("../../weights/slf_broad.safetensors")),
            Trained::Narrow => (&NARROW, include_bytes!("../../weights/slf_narrow.safetensors")),
        };
        cell.get_or_init(|| Generator::from_safetensors(bytes)).as_ref().map_err(Clone::clone)
    }

    /// The generator, unpacked once.
    ///
    /// # Errors
    /// Always: this build has no weights.
    #[cfg(not(feature = "dgm-weights"))]
    pub fn generator(self) -> Result<&'static Generator, InputError> {
        Err(InputError::Request(
            "this build has no learned prior: build with the feature dgm-weights".into(),
        ))
    }
}

/// A trained generator.
#[derive(Clone, Debug)]
pub struct Generator {
    latent: usize,
    /// All layers with ReLU.
    stages: Vec<Stage>,
    /// The last layer: 16 products for each pixel, to be laid over each other, and its adjoint.
    last: Product,
    last_adjoint: Product,
    bias: f32,
    span: f32,
    level: Level,
}

impl Generator {
    /// # Errors
    /// If the tensors are not those of a generator.
    pub fn from_safetensors(bytes: &[u8]) -> Result<Self, InputError> {
        let (layers, span) = weights::parse(bytes)?;
        let (last, hidden) = layers.split_last().expect("there are three layers at least");
        let mut stages: Vec<Stage> = vec![Stage::first(&hidden[0])];
        for layer in &hidden[1..] {
            let side = stages[stages.len() - 1].side;
            stages.push(Stage::enlarging(layer, side));
        }
        let side = 2 * stages[stages.len() - 1].side;
        let area = Layer::AREA;
        // The image has a margin of one pixel: kernel row k of pixel i falls on row 2 i + k.
        let taps = (0..area).map(|k| k / 4 * (side + 2) + k % 4).collect();
        Ok(Self {
            latent: hidden[0].inputs,
            stages,
            last: Product::new(
                vec![0],
                last.inputs,
                area,
                |_, c, k| last.at(c, 0, k / 4, k % 4),
                |_| 0.0,
            ),
            last_adjoint: Product::new(
                taps,
                1,
                last.inputs,
                |k, _, c| last.at(c, 0, k / 4, k % 4),
                |_| 0.0,
            ),
            bias: last.shift[0],
            span,
            level: Level::new(),
        })
    }

    /// Numbers in a latent.
    pub fn latent_len(&self) -> usize {
        self.latent
    }

    /// Side of the image that is drawn.
    pub fn side(&self) -> usize {
        2 * self.stages[self.stages.len() - 1].side
    }

    /// Nepers between the brightest and the darkest that can be drawn.
    pub fn span(&self) -> f32 {
        self.span
    }

    /// Prepares to read ln S at some cells (row-major) of a grid of `rows` x `cols` that covers the
    /// same ground.
    ///
    /// # Panics
    /// If a cell is off the grid.
    pub fn sampler(&self, (rows, cols): (usize, usize), cells: &[usize]) -> Sampler {
        assert!(cells.iter().all(|&cell| cell < rows * cols), "cells of the grid");
        Sampler::new(self.side(), (rows, cols), cells)
    }

    /// Room to draw `count` latents.
    pub fn workspace(&self, count: usize) -> GeneratorWorkspace {
        let teams = (0..count)
            .step_by(TEAM)
            .map(|first| Team::new(self, TEAM.min(count - first)))
            .collect();
        GeneratorWorkspace { teams, ln_slf: Vec::new(), count }
    }

    /// Draws every latent (latent after latent): see [`GeneratorWorkspace::ln_slf`].
    ///
    /// # Panics
    /// If there are not as many latents as the workspace has room for; so does the way back.
    pub fn forward(&self, latents: &[f32], sampler: &Sampler, ws: &mut GeneratorWorkspace) {
        assert_eq!(latents.len(), ws.count * self.latent, "latents");
        ws.ln_slf.resize(ws.count * sampler.len(), 0.0);
        if sampler.is_empty() {
            return;
        }
        let teams = ws.teams.par_iter_mut().zip(latents.par_chunks(TEAM * self.latent));
        teams.zip(ws.ln_slf.par_chunks_mut(TEAM * sampler.len())).for_each(
            |((team, latents), ln_slf)| {
                dispatch!(self.level, simd => self.draw(simd, latents, team));
                let images = team.images.iter_mut().zip(ln_slf.chunks_exact_mut(sampler.len()));
                images.for_each(|(image, out)| sampler.read(self.span, image, out));
            },
        );
    }

    /// Gradient in the latents of a loss whose gradient in ln S, as the last
    /// [`forward`](Self::forward) left it, is `upstream`.
    pub fn backward(
        &self,
        upstream: &[f32],
        sampler: &Sampler,
        ws: &mut GeneratorWorkspace,
        gradient: &mut [f32],
    ) {
        assert_eq!(gradient.len(), ws.count * self.latent, "latents");
        assert_eq!(upstream.len(), ws.ln_slf.len(), "one upstream gradient for each cell");
        if sampler.is_empty() {
            return gradient.fill(0.0);
        }
        let teams = ws.teams.par_iter_mut().zip(gradient.par_chunks_mut(TEAM * self.latent));
        teams.zip(upstream.par_chunks(TEAM * sampler.len())).for_each(
            |((team, gradient), upstream)| {
                let images = team.images.iter_mut().zip(upstream.chunks_exact(sampler.len()));
                images.for_each(|(image, upstream)| sampler.write(self.span, upstream, image));
                dispatch!(self.level, simd => self.draw_back(simd, team, gradient));
            },
        );
    }

    #[inline(always)]
    fn draw<S: Simd>(&self, simd: S, latents: &[f32], team: &mut Team) {
        let members = team.images.len();
        let first = &self.stages[0];
        let (from, to) = (Steps { row: 0, col: self.latent }, Steps { row: 0, col: first.len() });
        for (begin, product) in &first.forward {
            let out = &mut team.activations[0][*begin..];
            product.run(simd, (1, members), (latents, from), (out, to), Finish::Rectify);
        }
        for (s, pair) in self.stages.windows(2).enumerate() {
            let [small, large] = pair else { unreachable!("windows of two") };
            let (before, after) = team.activations.split_at_mut(s + 1);
            let from = Steps { row: small.row(), col: small.width };
            let to = Steps { row: 2 * large.row(), col: 2 * large.width };
            let images = before[s].chunks_exact(small.len());
            for (x, y) in images.zip(after[0].chunks_exact_mut(large.len())) {
                for (begin, product) in &large.forward {
                    let out = &mut y[*begin..];
                    product.run(
                        simd,
                        (small.side, small.side),
                        (x, from),
                        (out, to),
                        Finish::Rectify,
                    );
                }
            }
        }
        let stage = &self.stages[self.stages.len() - 1];
        let inside = stage.row() + stage.width;
        let from = Steps { row: stage.row(), col: stage.width };
        let to = Steps { row: stage.side * Layer::AREA, col: Layer::AREA };
        let drawn = team.activations[self.stages.len() - 1].chunks_exact(stage.len());
        for (x, image) in drawn.zip(&mut team.images) {
            let size = (stage.side, stage.side);
            self.last.run(simd, size, (&x[inside..], from), (&mut team.stamps, to), Finish::Plain);
            lay(stage.side, self.bias, &team.stamps, &mut image.logits);
        }
    }

    #[inline(always)]
    fn draw_back<S: Simd>(&self, simd: S, team: &mut Team, gradient: &mut [f32]) {
        let last = self.stages.len() - 1;
        let stage = &self.stages[last];
        let row = 2 * stage.side + 2;
        let inside = stage.row() + stage.width;
        let (from, to) =
            (Steps { row: 2 * row, col: 2 }, Steps { row: stage.row(), col: stage.width });
        let activations = team.activations[last].chunks_exact(stage.len());
        let gradients = team.gradients[last].chunks_exact_mut(stage.len());
        for ((image, x), dx) in team.images.iter().zip(activations).zip(gradients) {
            let size = (stage.side, stage.side);
            let finish = Finish::Gate(&x[inside..]);
            let source = &image.gradient[..];
            self.last_adjoint.run(simd, size, (source, from), (&mut dx[inside..], to), finish);
        }
        for (s, pair) in self.stages.windows(2).enumerate().rev() {
            let [small, large] = pair else { unreachable!("windows of two") };
            let inside = small.row() + small.width;
            let (before, after) = team.gradients.split_at_mut(s + 1);
            let from = Steps { row: 2 * large.row(), col: 2 * large.width };
            let to = Steps { row: small.row(), col: small.width };
            let images = after[0].chunks_exact(large.len());
            let activations = team.activations[s].chunks_exact(small.len());
            let gradients = before[s].chunks_exact_mut(small.len());
            for ((dy, x), dx) in images.zip(activations).zip(gradients) {
                let finish = Finish::Gate(&x[inside..]);
                let size = (small.side, small.side);
                large.backward.run(simd, size, (dy, from), (&mut dx[inside..], to), finish);
            }
        }
        let first = &self.stages[0];
        let members = team.images.len();
        let wide = padded(self.latent);
        let (from, to) = (Steps { row: 0, col: first.len() }, Steps { row: 0, col: wide });
        let source = &team.gradients[0][..];
        let out = &mut team.latents[..];
        first.backward.run(simd, (1, members), (source, from), (out, to), Finish::Plain);
        for (to, from) in gradient.chunks_exact_mut(self.latent).zip(out.chunks_exact(wide)) {
            to.copy_from_slice(&from[..self.latent]);
        }
    }
}

/// Latents drawn together: their weights are read once.
const TEAM: usize = 2;

/// The last image of one latent, with a margin of one pixel.
#[derive(Clone, Debug)]
struct Image {
    logits: Vec<f32>,
    gradient: Vec<f32>,
    /// The output at the pixels that a sampler looks at.
    outputs: Vec<f32>,
}

impl Image {
    /// Where pixel (row, col) lies.
    fn place(side: usize, row: usize, col: usize) -> usize {
        (row + 1) * (side + 2) + col + 1
    }
}

/// Room for a few latents.
#[derive(Clone, Debug)]
struct Team {
    /// For each stage the images of all members.
    activations: Vec<Vec<f32>>,
    gradients: Vec<Vec<f32>>,
    images: Vec<Image>,
    /// Products of the last layer for one image.
    stamps: Vec<f32>,
    /// Gradients of the latents, padded.
    latents: Vec<f32>,
}

impl Team {
    fn new(generator: &Generator, members: usize) -> Self {
        let buffers = || -> Vec<Vec<f32>> {
            generator.stages.iter().map(|stage| vec![0.0; members * stage.len()]).collect()
        };
        let side = generator.side();
        let pixels = vec![0.0; (side + 2).pow(2)];
        let image = Image {
            logits: pixels.clone(),
            gradient: pixels,
            outputs: Vec::with_capacity(side * side),
        };
        Self {
            activations: buffers(),
            gradients: buffers(),
            images: vec![image; members],
            stamps: vec![0.0; (side / 2).pow(2) * Layer::AREA],
            latents: vec![0.0; members * padded(generator.latent)],
        }
    }
}

/// Room for one forward and backward pass, made once and used for every iteration.
#[derive(Clone, Debug)]
pub struct GeneratorWorkspace {
    teams: Vec<Team>,
    ln_slf: Vec<f32>,
    count: usize,
}

impl GeneratorWorkspace {
    /// ln S of the last [`forward`](Generator::forward), (latent, cell).
    pub fn ln_slf(&self) -> &[f32] {
        &self.ln_slf
    }
}

#[cfg(test)]
pub(crate) mod tests;
