//! The 3 x 3 convolution by Winograd's minimal filtering (Lavin and Gray, 2016): a tile of pixels from
//! fewer products per pair of channels. Planes make it cheap: the transforms are sums of planes, and
//! sums run beside products on most processors.

pub(super) mod four;
pub(super) mod two;

use super::convolve::Size;

/// How the images of a convolution lie in memory: rows of planes, and from a row or a channel to the
/// next, of the input with its margin and of the result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    pub rows: usize,
    pub x_row: usize,
    pub x_channel: usize,
    pub y_row: usize,
    pub y_channel: usize,
}

impl Cut {
    /// All rows of a chunk.
    pub(crate) fn whole(size: &Size) -> Self {
        Self {
            rows: size.phases,
            x_row: size.outer * size.width,
            x_channel: size.outer_len(),
            y_row: size.phases * size.width,
            y_channel: size.inner_len(),
        }
    }
}
