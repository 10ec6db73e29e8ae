//! The common decoder (3 x 3 kernels, bilinear upsampling, one output) row by row, so that what a step
//! needs is still in the cache from the step before, whatever the size of the grid.
//!
//! A lane is a column of the latent of one emitter. A block's image has P columns per lane and all
//! rows of the image: a *plane* holds one pixel of every lane, a row is P planes and one more on both
//! sides, which repeat pixels of the lanes beside (at the image's border, of the lane itself). A
//! mirrored row is then another row, and only the planes on both sides look at other lanes.
//!
//! Of each block the result of the convolution is kept, a quarter of the pixels, and of small images
//! also what the convolution was made of, for the gradient of its weights. What follows the result
//! (upsampling, ReLU, normalisation) is cheap and done again wherever it is read: for the sums of the
//! normalisation, for the next convolution, and on the way back. Chunks of 16 lanes are the unit of
//! work and of parallelism; a chunk goes through its rows in strips that stay in the cache.

mod backward;
mod edges;
mod enlarge;
mod first;
mod forward;
mod give;
mod readout;

pub(super) use readout::Places;

use super::convolve::Size;
use super::lanes::Lanes;
use super::shape::{Padding, ParameterLayout, Shape, Upsampling};
use super::winograd::{Cut, four, two};
use crate::simd::{Buffer, LANES};

/// Rows of a strip: the input, the gradients and the tiles of six channels and eight columns fit into
/// the second cache, and mostly the first.
const STRIP: usize = 32;

/// One block.
#[derive(Clone, Debug)]
pub(super) struct RowStage {
    pub size: Size,
    /// Rows of the convolution's result.
    pub rows: usize,
    strip: usize,
    /// Whether the convolution is done by [`four`] instead of [`two`].
    fours: bool,
}

impl RowStage {
    /// Numbers of a row of the convolution's result, sides included.
    fn pitch(&self) -> usize {
        (self.size.phases + 2) * LANES
    }

    /// The same once enlarged.
    fn out_pitch(&self) -> usize {
        (2 * self.size.phases + 2) * LANES
    }

    /// Numbers of a channel of the convolution's result. Channels a multiple of 4096 bytes apart would
    /// compete for the same lines of the first cache.
    fn channel(&self) -> usize {
        let len = self.rows * self.pitch();
        if len.is_multiple_of(1024) { len + LANES } else { len }
    }

    /// Row `i` of a channel.
    fn row(&self, c: usize, i: usize) -> usize {
        c * self.channel() + i * self.pitch()
    }

    /// Pixels of a lane after upsampling.
    pub(super) fn pixels(&self) -> usize {
        4 * self.rows * self.size.phases
    }

    /// A strip of some rows of the input, of gradients alike, and of the result in memory.
    fn cut(&self, rows: usize) -> Cut {
        Cut {
            rows,
            x_row: self.pitch(),
            x_channel: self.strip_channel(),
            y_row: self.pitch(),
            y_channel: self.channel(),
        }
    }

    /// Numbers of a chunk that are kept from the way there for the way back, the input or its factors:
    /// all where one strip holds them, else none, and they are made again.
    fn kept(&self) -> usize {
        match (self.strip < self.rows, self.fours) {
            (true, _) => 0,
            (false, true) => self.factors(),
            (false, false) => self.size.inputs * self.strip_channel(),
        }
    }

    /// Numbers of the factors of a strip.
    fn factors(&self) -> usize {
        if self.fours { four::factors(&self.size, self.strip) } else { 0 }
    }

    /// Numbers that the tiles of the convolution need to work in.
    fn tiles(&self) -> usize {
        if self.fours { four::ROOM } else { two::room(&self.size) }
    }

    /// Numbers of the weights as the convolution takes them, for the way there and the way back. One
    /// set serves both with [`four`].
    fn packed(&self) -> [usize; 2] {
        match self.fours {
            true => [four::WEIGHTS, 0],
            false => [two::weights(&self.size); 2],
        }
    }

    /// Numbers of a channel of a strip: one row more above and below.
    fn strip_channel(&self) -> usize {
        (self.strip + 2) * self.pitch() + LANES
    }
}

/// Sizes of all blocks, and which lanes are at the image's border.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    pub stages: Vec<RowStage>,
    mirrored: bool,
    /// 1 for the first and the last lanes of an emitter, and for lanes that none has; else 0.
    first: Vec<f32>,
    last: Vec<f32>,
    /// Whether an emitter's lanes lie in several chunks.
    cut: bool,
}

/// Share of lanes that must hold something for the rows to be worth it.
const FILL: f64 = 0.7;

impl Rows {
    /// Lanes and rows of a decoder that can be worked on in this way; a latent has (rows, columns).
    pub(super) fn new(
        shape: &Shape,
        layout: &ParameterLayout,
        latent: (usize, usize),
        emitters: usize,
    ) -> Option<(Lanes, Self)> {
        let lanes = Lanes::of_columns(emitters, latent.1);
        let used = emitters * latent.1;
        let common = shape.kernel == 3
            && shape.upsampling == Upsampling::Bilinear
            && shape.keep == 0
            && shape.outputs == 1;
        if !common || (used as f64) < FILL * lanes.total() as f64 {
            return None;
        }
        let stages = layout.blocks.iter().enumerate().map(|(b, block)| {
            let (phases, rows) = (1 << b, latent.0 << b);
            let size = Size {
                inputs: block.inputs,
                outputs: shape.channels,
                kernel: 3,
                phases,
                outer: phases + 2,
                width: LANES,
            };
            let strip = if b == 0 { rows } else { STRIP.min(rows) };
            RowStage { size, rows, strip, fours: four::applies(&size) }
        });
        let at = |lane: usize, col: usize| lane >= used || lane % latent.1 == col;
        let flags = |col: usize| {
            (0..lanes.total()).map(|lane| if at(lane, col) { 1.0 } else { 0.0 }).collect()
        };
        let rows = Self {
            stages: stages.collect(),
            mirrored: shape.padding == Padding::Reflect,
            first: flags(0),
            last: flags(latent.1 - 1),
            cut: !LANES.is_multiple_of(latent.1) && lanes.chunks > 1,
        };
        Some((lanes, rows))
    }

    pub(super) fn last_stage(&self) -> &RowStage {
        &self.stages[self.stages.len() - 1]
    }

    /// Planes per latent cell and side of the last image.
    fn last_phases(&self) -> usize {
        2 * self.last_stage().size.phases
    }

    /// Numbers of the last image's one channel, a chunk's.
    fn logits(&self) -> usize {
        let stage = self.last_stage();
        2 * stage.rows * stage.out_pitch()
    }

    /// The flags of a chunk's lanes.
    fn flags(&self, chunk: usize) -> edges::Flags<'_> {
        let range = chunk * LANES..(chunk + 1) * LANES;
        edges::Flags { first: &self.first[range.clone()], last: &self.last[range] }
    }

    /// Numbers that one chunk needs to work in.
    fn room(&self) -> usize {
        let of = |s: &RowStage| {
            let strips = (2 * s.size.inputs + s.size.outputs) * s.strip_channel();
            let enlarged = s.size.outputs * 2 * s.out_pitch();
            let factors = if s.kept() > 0 { s.factors() } else { 2 * s.factors() };
            s.tiles() + s.pitch() + factors + strips.max(enlarged)
        };
        self.stages.iter().map(of).max().unwrap_or(0)
    }
}

/// What the passes keep.
#[derive(Debug)]
pub(super) struct RowSpace {
    latents: Buffer,
    /// Inputs of the convolutions, or their factors, where one strip holds them; elsewhere none.
    kept: Vec<Buffer>,
    /// Results of the convolutions.
    results: Vec<Buffer>,
    /// What the gradients of a block's pixels owe to its convolution's result, before normalisation
    /// has its say; the planes on both sides owe it to the lanes beside.
    shares: Vec<Buffer>,
    /// Gradient of the logits, zero between passes; the planes on both sides repeat others.
    pub logit_gradient: Buffer,
    /// The logits themselves.
    logits: Buffer,
    weight_gradient: Buffer,
    latent_gradient: Buffer,
    /// Weights of each block, for the way there and the way back.
    packed: Vec<[Vec<f32>; 2]>,
    room: Buffer,
}

impl RowSpace {
    pub(super) fn new(rows: &Rows, chunks: usize, parallel: bool) -> Self {
        let image = |s: &RowStage| Buffer::new(chunks * s.size.outputs * s.channel(), LANES);
        let (inner, rooms) = (rows.stages.len() - 1, if parallel { chunks } else { 1 });
        let weights = rows.stages.iter().map(|s| s.size.weights()).max().unwrap_or(0);
        let packed = |s: &RowStage| s.packed().map(|len| vec![0.0; len]);
        let latents = || Buffer::new(chunks * (rows.stages[0].rows + 2) * 3 * LANES, LANES);
        let kept = |s: &RowStage| Buffer::new(chunks * s.kept(), 0);
        Self {
            latents: latents(),
            kept: rows.stages.iter().map(kept).collect(),
            results: rows.stages.iter().map(image).collect(),
            shares: rows.stages[..inner].iter().map(image).collect(),
            logit_gradient: Buffer::new(chunks * rows.logits(), 0),
            logits: Buffer::new(0, 0),
            weight_gradient: Buffer::new(chunks * weights * LANES, 0),
            latent_gradient: latents(),
            packed: rows.stages.iter().map(packed).collect(),
            room: Buffer::new(rooms * rows.room(), 0),
        }
    }
}
