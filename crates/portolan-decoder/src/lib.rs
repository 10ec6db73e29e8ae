//! Portolan's untrained decoder G: one small convolutional network, shared by all emitters, that turns
//! each emitter's latent into its SLF (the paper's deep-decoder architecture and its table of
//! parameters).
//!
//! A block is a convolution without bias, upsampling, ReLU and normalisation with scale and offset;
//! after the last block a 1 x 1 convolution without bias and the output function. Grids that the
//! latent does not tile exactly are drawn larger and cropped; statistics are over the whole image.
//!
//! # Cost
//! One iteration at 64 x 64 cells, four emitters and six channels needs 10.6 MFLOP of convolution
//! done directly. Forward and for the gradient of the input Winograd's algorithm leaves 4/9 of the
//! products, so 6.7 MFLOP in all: 29 us at the 230 GFLOP/s of one Zen 5 core with AVX-512. The 131
//! thousand activations are gone through once forward and once backward, those of the smaller blocks
//! three times more, some 14 us. So the floor is near 45 us on one core; measured are 26 us forward
//! and 49 us backward. What lies between is Winograd's transforms, the readout and the work at the
//! ends of rows. Time grows linearly with cells: the common decoder keeps a quarter of its pixels and
//! works on strips of rows (`rows`); others finish a block for the whole grid before the next.

#![warn(missing_docs)]
#![expect(clippy::too_many_arguments, reason = "kernels take their sizes and slices one by one")]

pub mod adam;
mod backward;
mod border;
mod chunks;
mod convolve;
mod error;
mod forward;
#[cfg(test)]
mod golden;
mod initial;
mod lanes;
mod moments;
mod outputs;
mod passes;
pub mod penalty;
mod plan;
mod readout;
pub mod reference;
mod rows;
mod shape;
pub mod simd;
mod source;
mod upsample;
mod winograd;

pub use error::DecoderError;
pub use initial::{Draw, Network, random_network};
pub use plan::Workspace;
pub use readout::Readout;
pub use shape::{BlockLayout, Normalisation, Output, Padding, ParameterLayout, Shape, Upsampling};

use fearless_simd::Level;

use passes::Passes;
use plan::Plan;

/// Added to a variance before its root is taken (PyTorch's default).
const VARIANCE_FLOOR: f64 = 1e-5;

/// A decoder for one grid and number of emitters.
#[derive(Clone, Debug)]
pub struct Decoder {
    shape: Shape,
    layout: ParameterLayout,
    rows: usize,
    cols: usize,
    emitters: usize,
    latent: (usize, usize),
    plan: Plan,
    /// Every cell, where a latent has several outputs.
    everywhere: Option<Readout>,
    level: Level,
    parallel: bool,
}

/// Activations of the last block from which on threads share the work by default: 256 x 256 cells
/// and eight emitters at six channels. Below, meeting costs more than sharing gains.
const PARALLEL_FROM: usize = 3 << 20;

impl Decoder {
    /// # Errors
    /// If an option is out of range or the grid smaller than 8 x 8.
    pub fn new(
        shape: &Shape,
        rows: usize,
        cols: usize,
        emitters: usize,
    ) -> Result<Self, DecoderError> {
        shape.validate(rows, cols, emitters)?;
        let layout = shape.layout(shape.blocks_on(rows, cols));
        let latent = shape.latent_on(rows, cols);
        let plan = Plan::new(shape, &layout, latent, emitters);
        let mut decoder = Self {
            shape: *shape,
            layout,
            rows,
            cols,
            emitters,
            latent,
            parallel: plan.activations() >= PARALLEL_FROM,
            plan,
            everywhere: None,
            level: Level::new(),
        };
        if shape.outputs > 1 {
            let cells: Vec<usize> = (0..rows * cols).collect();
            decoder.everywhere = Some(decoder.readout(&cells)?);
        }
        Ok(decoder)
    }

    /// Whether threads share the work, by whole emitters on small grids. The result is the same bit
    /// for bit. By default they do on large grids only: at 64 x 64 a pass is too short to wake
    /// another thread for, unless the whole fit runs inside the thread pool (`rayon::scope`).
    pub fn parallel(self, yes: bool) -> Self {
        Self { parallel: yes, ..self }
    }

    /// Whether a pass is shared among threads.
    pub fn is_parallel(&self) -> bool {
        self.parallel
    }

    /// The architecture it was made with.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Rows of the grid.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns of the grid.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of emitters, each with a latent of its own.
    pub fn emitters(&self) -> usize {
        self.emitters
    }

    /// Where each parameter lies.
    pub fn layout(&self) -> &ParameterLayout {
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

    /// Room for the passes below.
    pub fn workspace(&self) -> Workspace {
        let images = self.emitters * self.shape.outputs;
        Workspace::new(&self.plan, self.parallel, images * self.rows * self.cols)
    }

    /// Prepares to read the SLFs only at some cells, given by their row-major index. A cell may be
    /// given more than once.
    ///
    /// # Errors
    /// If a cell is off the grid.
    pub fn readout(&self, cells: &[usize]) -> Result<Readout, DecoderError> {
        Readout::new(self, cells)
    }

    /// Draws every emitter's SLF: see [`Workspace::slf`].
    ///
    /// `params` follows [`Decoder::layout`], `latents` is (emitter, row, column).
    ///
    /// # Panics
    /// If a slice has the wrong length; so do the other passes.
    pub fn forward(&self, params: &[f32], latents: &[f32], ws: &mut Workspace) {
        self.check(params, latents);
        let passes = self.passes();
        if let Some(rows) = &self.plan.rows {
            passes.forward_rows(rows, params, latents, None, ws);
            return passes.read_rows(rows, params, (self.rows, self.cols), ws);
        }
        passes.forward(params, latents, ws);
        match &self.everywhere {
            None => passes.read_all(params, (self.rows, self.cols), ws),
            Some(everywhere) => {
                std::mem::swap(&mut ws.slf, &mut ws.slf_at);
                passes.read_outputs(params, everywhere, ws);
                std::mem::swap(&mut ws.slf, &mut ws.slf_at);
            }
        }
    }

    /// Draws the SLFs at the readout's cells only: see [`Workspace::slf_at`].
    pub fn forward_at(
        &self,
        params: &[f32],
        latents: &[f32],
        readout: &Readout,
        ws: &mut Workspace,
    ) {
        self.check(params, latents);
        let passes = self.passes();
        if let Some(rows) = &self.plan.rows {
            passes.room_for(readout, ws);
            passes.forward_rows(rows, params, latents, Some(readout), ws);
            return passes.read_rows_at(params, readout, ws);
        }
        passes.forward(params, latents, ws);
        if self.everywhere.is_some() {
            passes.read_outputs(params, readout, ws);
        } else {
            passes.read_at(params, readout, ws);
        }
    }

    /// Gradients of a loss whose gradient with respect to the SLFs of the last
    /// [`forward`](Self::forward) is `upstream`. The gradients are overwritten.
    pub fn backward(
        &self,
        params: &[f32],
        upstream: &[f32],
        ws: &mut Workspace,
        grad_params: &mut [f32],
        grad_latents: &mut [f32],
    ) {
        self.check(params, grad_latents);
        assert_eq!(grad_params.len(), params.len(), "one gradient for each parameter");
        assert_eq!(upstream.len(), ws.slf.len(), "one upstream gradient for each cell");
        let passes = self.passes();
        if let Some(everywhere) = &self.everywhere {
            return self.backward_outputs(
                params,
                everywhere,
                upstream,
                ws,
                grad_params,
                grad_latents,
            );
        }
        if let Some(rows) = &self.plan.rows {
            passes.write_rows(rows, upstream, (self.rows, self.cols), ws);
            passes.backward_rows(rows, params, ws, grad_params, grad_latents);
            return passes.clear_rows(ws);
        }
        passes.write_all(upstream, (self.rows, self.cols), ws);
        passes.backward(params, ws, grad_params, grad_latents);
        ws.logit_gradient.fill(0.0);
    }

    /// The same for the SLFs of the last [`forward_at`](Self::forward_at).
    pub fn backward_at(
        &self,
        params: &[f32],
        readout: &Readout,
        upstream: &[f32],
        ws: &mut Workspace,
        grad_params: &mut [f32],
        grad_latents: &mut [f32],
    ) {
        self.check(params, grad_latents);
        assert_eq!(grad_params.len(), params.len(), "one gradient for each parameter");
        assert_eq!(upstream.len(), ws.slf_at.len(), "one upstream gradient for each cell");
        if self.everywhere.is_some() {
            return self.backward_outputs(params, readout, upstream, ws, grad_params, grad_latents);
        }
        let passes = self.passes();
        if let Some(rows) = &self.plan.rows {
            passes.write_rows_at(readout, upstream, ws);
            passes.backward_rows(rows, params, ws, grad_params, grad_latents);
            return passes.clear_rows_at(readout, ws);
        }
        passes.write_at(readout, upstream, ws);
        passes.backward(params, ws, grad_params, grad_latents);
        passes.clear_at(readout, ws);
    }

    fn backward_outputs(
        &self,
        params: &[f32],
        readout: &Readout,
        upstream: &[f32],
        ws: &mut Workspace,
        grad_params: &mut [f32],
        grad_latents: &mut [f32],
    ) {
        let passes = self.passes();
        passes.write_outputs(params, readout, upstream, ws);
        passes.backward(params, ws, grad_params, grad_latents);
        passes.clear_outputs(readout, ws);
    }

    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn passes(&self) -> Passes<'_> {
        Passes {
            shape: &self.shape,
            layout: &self.layout,
            plan: &self.plan,
            level: self.level,
            parallel: self.parallel,
        }
    }

    fn check(&self, params: &[f32], latents: &[f32]) {
        assert_eq!(params.len(), self.parameters(), "parameters");
        assert_eq!(latents.len(), self.emitters * self.latent_len(), "latents");
    }
}

#[cfg(test)]
mod tests;
