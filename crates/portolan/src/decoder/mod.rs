//! The untrained decoder G: one small convolutional network, shared by all emitters, that turns
//! each emitter's latent into its SLF (the paper's deep-decoder architecture and its table of
//! parameters).
//!
//! A block is a convolution without bias, upsampling, ReLU and normalisation with scale and offset;
//! after the last block a 1 x 1 convolution without bias and the output function. Grids that the
//! latent does not tile exactly are drawn larger and cropped; statistics are over the whole image.

pub mod reference;
mod shape;

pub use shape::{BlockLayout, Layout, Normalisation, Output, Padding, Shape, Upsampling};

use crate::error::InputError;

/// Added to a variance before its root is taken (PyTorch's default).
const VARIANCE_FLOOR: f64 = 1e-5;

/// A decoder for one grid and number of emitters.
#[derive(Clone, Debug)]
pub struct Decoder {
    shape: Shape,
    layout: Layout,
    rows: usize,
    cols: usize,
    emitters: usize,
    latent: (usize, usize),
}

impl Decoder {
    /// # Errors
    /// If an option is out of range or the grid smaller than 8 x 8.
    pub fn new(
        shape: &Shape,
        rows: usize,
        cols: usize,
        emitters: usize,
    ) -> Result<Self, InputError> {
        shape.validate(rows, cols, emitters)?;
        Ok(Self {
            shape: *shape,
            layout: shape.layout(shape.blocks_on(rows, cols)),
            rows,
            cols,
            emitters,
            latent: shape.latent_on(rows, cols),
        })
    }

    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn cols(&self) -> usize {
        self.cols
    }

    pub fn emitters(&self) -> usize {
        self.emitters
    }

    /// Where each parameter lies.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Number of parameters, latents not counted.
    pub fn parameters(&self) -> usize {
        self.layout.parameters()
    }

    /// Rows and columns of one emitter's latent.
    pub fn latent_dim(&self) -> (usize, usize) {
        self.latent
    }

    /// Numbers in one emitter's latent.
    pub fn latent_len(&self) -> usize {
        self.latent.0 * self.latent.1
    }
}

#[cfg(test)]
mod tests;
