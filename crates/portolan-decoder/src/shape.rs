//! What a decoder looks like: options, sizes that follow from the grid, and where each parameter lies.

use std::ops::Range;

use crate::error::DecoderError;

/// How a block enlarges its image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Upsampling {
    /// Twice the size, weights 3/4 and 1/4 (PyTorch's `align_corners = false`). The paper's choice.
    #[default]
    Bilinear,
    /// Twice the size, every pixel repeated.
    Nearest,
    /// Not at all: the latent has the size of the grid.
    None,
}

/// How a block normalises each channel after its ReLU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Normalisation {
    /// Mean and variance over all emitters and all of space ("batch norm" in the paper's table).
    #[default]
    Batch,
    /// Mean and variance over space, for each emitter by itself ("channel norm" in the paper's text).
    PerSample,
    /// No normalisation, and no scale and offset either.
    None,
}

/// What a convolution sees beyond the border.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Padding {
    /// The image mirrored at its border pixels, as often as it takes.
    #[default]
    Reflect,
    /// Zeros.
    Zero,
}

/// What turns the last layer into an SLF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Output {
    /// 1 / (1 + exp(-x)), in (0, 1): the paper's choice.
    #[default]
    Sigmoid,
    /// exp(x).
    Exponential,
}

/// The architecture; the default is the paper's, with 1080 parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Blocks that enlarge their image, 1 to 7. Small grids get fewer: see [`Shape::blocks_on`].
    pub blocks: usize,
    /// Further blocks after those, 0 to 7, that keep the size of theirs.
    pub keep: usize,
    /// Channels of every hidden layer, 1 to 128.
    pub channels: usize,
    /// Side of the convolution kernel, 1 to 7. Pads (k - 1) / 2 before and k / 2 after.
    pub kernel: usize,
    /// How a block enlarges its image.
    pub upsampling: Upsampling,
    /// How a block normalises each channel.
    pub normalisation: Normalisation,
    /// What a convolution sees beyond the border.
    pub padding: Padding,
    /// What turns the last layer into an SLF.
    pub output: Output,
    /// Images drawn of one latent, 1 to 65536: 1 where an emitter's SLF is drawn, as many as bands
    /// where a map is drawn without factors.
    pub outputs: usize,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            blocks: 4,
            keep: 0,
            channels: 6,
            kernel: 3,
            upsampling: Upsampling::default(),
            normalisation: Normalisation::default(),
            padding: Padding::default(),
            output: Output::default(),
            outputs: 1,
        }
    }
}

/// Side of the tiles a grid is rounded up to when nothing is upsampled.
pub(super) const FLAT_TILE: usize = 8;

/// Smallest grid side a decoder can draw.
pub(super) const MIN_SIDE: usize = 8;

impl Upsampling {
    /// Side of the enlarged image over the side of the one before.
    pub(super) fn scale(self) -> usize {
        if self == Upsampling::None { 1 } else { 2 }
    }
}

impl Shape {
    /// Enlarging blocks used on a grid: as many as asked for, but each side of the latent keeps at least two
    /// pixels. Without upsampling, all of them.
    pub fn blocks_on(&self, rows: usize, cols: usize) -> usize {
        match self.upsampling {
            Upsampling::None => self.blocks,
            _ => {
                (1..=self.blocks).rev().find(|&b| rows.min(cols).div_ceil(1 << b) >= 2).unwrap_or(1)
            }
        }
    }

    /// Rows and columns of one emitter's latent: the grid divided by 2^blocks, rounded up. Without
    /// upsampling it has the size of the grid, rounded up to a multiple of 8.
    pub fn latent_on(&self, rows: usize, cols: usize) -> (usize, usize) {
        match self.upsampling {
            Upsampling::None => {
                (rows.next_multiple_of(FLAT_TILE), cols.next_multiple_of(FLAT_TILE))
            }
            _ => {
                let side = 1 << self.blocks_on(rows, cols);
                (rows.div_ceil(side), cols.div_ceil(side))
            }
        }
    }

    pub(super) fn validate(
        &self,
        rows: usize,
        cols: usize,
        emitters: usize,
    ) -> Result<(), DecoderError> {
        let check = |what, value, low, high| match (low..=high).contains(&value) {
            true => Ok(()),
            false => Err(DecoderError::Range { what, value, low, high }),
        };
        check("blocks", self.blocks, 1, 7)?;
        check("blocks that keep their size", self.keep, 0, 7)?;
        check("channels", self.channels, 1, 128)?;
        check("pixels per kernel side", self.kernel, 1, 7)?;
        check("outputs", self.outputs, 1, 1 << 16)?;
        check("emitters", emitters, 1, 1 << 10)?;
        check("grid rows", rows, MIN_SIDE, 1 << 14)?;
        check("grid columns", cols, MIN_SIDE, 1 << 14)
    }

    /// Zero padding before and after a row or column.
    pub(super) fn pad(&self) -> (usize, usize) {
        ((self.kernel - 1) / 2, self.kernel / 2)
    }

    /// Where the parameters lie if so many blocks enlarge their image.
    pub fn layout(&self, enlarging: usize) -> ParameterLayout {
        let mut next = 0;
        let mut take = |len: usize| {
            next += len;
            next - len..next
        };
        let affine = if self.normalisation == Normalisation::None { 0 } else { self.channels };
        let blocks = (0..enlarging + self.keep)
            .map(|b| {
                let inputs = if b == 0 { 1 } else { self.channels };
                BlockLayout {
                    inputs,
                    upsampling: if b < enlarging { self.upsampling } else { Upsampling::None },
                    conv: take(self.channels * inputs * self.kernel * self.kernel),
                    gamma: take(affine),
                    beta: take(affine),
                }
            })
            .collect();
        let out = take(self.outputs * self.channels);
        ParameterLayout { blocks, out, len: next }
    }
}

/// Where the parameters of one block lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockLayout {
    /// Input channels of the convolution: 1 for the first block.
    pub inputs: usize,
    /// How the block enlarges its image.
    pub upsampling: Upsampling,
    /// Weights, (output channel, input channel, row, column), row-major.
    pub conv: Range<usize>,
    /// Scale after normalisation, one per channel; empty without normalisation.
    pub gamma: Range<usize>,
    /// Offset after normalisation, one per channel; empty without normalisation.
    pub beta: Range<usize>,
}

/// Where every parameter lies in the flat parameter slice: block by block, then the 1 x 1 output
/// convolution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterLayout {
    /// The blocks in the order in which they run.
    pub blocks: Vec<BlockLayout>,
    /// Weights of the output convolution, (output, channel).
    pub out: Range<usize>,
    pub(super) len: usize,
}

impl ParameterLayout {
    /// Number of parameters.
    pub fn parameters(&self) -> usize {
        self.len
    }
}

/// The pixel that stands in for pixel `at` of a row of `n` mirrored at its ends.
pub(super) fn reflect(at: isize, n: usize) -> usize {
    if n == 1 {
        return 0;
    }
    // Most are inside, where there is nothing to divide.
    if let Some(inside) = usize::try_from(at).ok().filter(|&at| at < n) {
        return inside;
    }
    let period = 2 * (n - 1);
    let at = at.rem_euclid(period as isize) as usize;
    if at < n { at } else { period - at }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_decoder_has_1080_parameters() {
        assert_eq!(Shape::default().layout(4).parameters(), 1080);
        assert_eq!(Shape::default().latent_on(64, 64), (4, 4));
        let deeper = Shape { keep: 2, ..Shape::default() };
        assert_eq!(deeper.layout(4).parameters(), 1080 + 2 * 336);
        assert_eq!(deeper.latent_on(64, 64), (4, 4));
    }

    #[test]
    fn small_grids_get_fewer_blocks() {
        let shape = Shape::default();
        assert_eq!((shape.blocks_on(34, 14), shape.latent_on(34, 14)), (3, (5, 2)));
        assert_eq!((shape.blocks_on(8, 8), shape.latent_on(8, 8)), (2, (2, 2)));
        assert_eq!(Shape { blocks: 7, ..shape }.blocks_on(64, 64), 5);
    }

    #[test]
    fn reflection_bounces() {
        let seen: Vec<usize> = (-4..7).map(|i| reflect(i, 3)).collect();
        assert_eq!(seen, [0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2]);
        assert_eq!(reflect(-2, 1), 0);
    }
}
