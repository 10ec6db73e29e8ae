//! How images lie in memory: every cell of the latent grid is a SIMD lane.
//!
//! A block's image has P x P pixels per latent cell. The fast path stores it as P x P *planes*, each
//! holding one pixel of every cell of every emitter. A convolution tap or an upsampling weight then
//! reads whole planes: no shuffles, no edge columns, and the 4 x 4 stage fills vectors as well as the
//! 64 x 64 one. Only a pixel beyond a cell's own P x P comes from another lane, and [`Border`](super::border::Border)
//! lists, for every such plane, from which planes and lanes, at the image's border mirrored or zero.
//!
//! Lanes are cut into chunks of at most [`WIDEST`], the unit of work and of parallelism.

use std::ops::Range;

use crate::simd::LANES;

/// Most lanes in a chunk.
pub(super) const WIDEST: usize = 64;

/// Numbers of one channel of a chunk. Channels a multiple of 4096 bytes apart would compete for the
/// same lines of the first cache, so a line is added.
#[inline]
pub(super) fn image_len(phases: usize, width: usize) -> usize {
    let len = phases * phases * width;
    if len.is_multiple_of(1024) { len + LANES } else { len }
}

/// The latent cells of all emitters in a row, cut into chunks.
#[derive(Clone, Debug)]
pub(super) struct Lanes {
    pub emitters: usize,
    pub rows: usize,
    pub cols: usize,
    /// Lanes of a chunk.
    pub width: usize,
    pub chunks: usize,
    /// Emitters in a chunk where they are kept whole; 0 where chunks cut through them.
    whole: usize,
}

impl Lanes {
    pub(super) fn new(emitters: usize, rows: usize, cols: usize) -> Self {
        let cells = rows * cols;
        let (whole, width, chunks) = if cells <= WIDEST {
            // Narrow chunks: an activation image of one channel then stays in the first cache.
            let whole = (LANES / cells).clamp(1, emitters);
            (whole, (whole * cells).next_multiple_of(LANES), emitters.div_ceil(whole))
        } else {
            (0, WIDEST, (emitters * cells).div_ceil(WIDEST))
        };
        Self { emitters, rows, cols, width, chunks, whole }
    }

    /// Every column of every emitter is a lane, whatever the rows, in narrow chunks that cut through
    /// emitters.
    pub(super) fn of_columns(emitters: usize, cols: usize) -> Self {
        let chunks = (emitters * cols).div_ceil(LANES);
        Self { emitters, rows: 1, cols, width: LANES, chunks, whole: 0 }
    }

    /// Whether no cell's neighbours lie in another chunk.
    pub(super) fn local(&self) -> bool {
        self.whole > 0 || self.chunks == 1
    }

    pub(super) fn total(&self) -> usize {
        self.chunks * self.width
    }

    /// Lanes of one emitter.
    pub(super) fn cells(&self) -> usize {
        self.rows * self.cols
    }

    /// The first of an emitter's lanes, which follow each other.
    pub(super) fn first_lane(&self, emitter: usize) -> usize {
        match self.whole {
            0 => emitter * self.cells(),
            n => emitter / n * self.width + emitter % n * self.cells(),
        }
    }

    /// The cell that a lane holds; the lanes without one stay zero.
    #[inline]
    pub(super) fn cell(&self, lane: usize) -> Option<usize> {
        let (emitter, cell) = match self.whole {
            0 => (lane / self.cells(), lane % self.cells()),
            n => {
                let (chunk, inside) = (lane / self.width, lane % self.width);
                if inside >= n * self.cells() {
                    return None;
                }
                (chunk * n + inside / self.cells(), inside % self.cells())
            }
        };
        (emitter < self.emitters).then_some(cell)
    }

    /// Chunk and place in it of pixel (row, col) of an image with `phases` pixels per cell.
    pub(super) fn place(
        &self,
        phases: usize,
        emitter: usize,
        row: usize,
        col: usize,
    ) -> (usize, usize) {
        let lane = self.first_lane(emitter) + row / phases * self.cols + col / phases;
        let plane = row % phases * phases + col % phases;
        (lane / self.width, plane * self.width + lane % self.width)
    }

    /// Where the lanes of some emitters lie: (chunk, lanes in it).
    pub(super) fn segments(
        &self,
        emitters: Range<usize>,
    ) -> impl Iterator<Item = (usize, Range<usize>)> + Clone {
        let (width, whole, cells) = (self.width, self.whole, self.cells());
        let chunks = match whole {
            0 => emitters.start * cells / width..(emitters.end * cells).div_ceil(width),
            n => emitters.start / n..emitters.end.div_ceil(n),
        };
        chunks.map(move |chunk| {
            let lanes = match whole {
                0 => emitters.start * cells..emitters.end * cells,
                n => {
                    let first = emitters.start.max(chunk * n);
                    let last = emitters.end.min((chunk + 1) * n);
                    let lane = |e: usize| chunk * width + (e - chunk * n) * cells;
                    lane(first)..lane(last)
                }
            };
            let start = chunk * width;
            (chunk, lanes.start.max(start) - start..lanes.end.min(start + width) - start)
        })
    }
}
