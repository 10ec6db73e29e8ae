//! From the generator's square image to the cells of a grid and back: the same extent, ln S taken
//! bilinearly between the centres of pixels.

use super::Image;

/// Cells of a grid at which ln S is wanted.
#[derive(Clone, Debug)]
pub struct Sampler {
    /// Pixels that any cell looks at, as places in an [`Image`].
    pixels: Vec<usize>,
    /// Four shares for each cell, or one where cells and pixels are the same.
    shares: Vec<(u32, f32)>,
    per_cell: usize,
    cells: usize,
}

impl Sampler {
    /// For some `cells` (row-major) of a grid of `rows` x `cols`, from an image of `side` x `side`.
    pub(super) fn new(side: usize, (rows, cols): (usize, usize), cells: &[usize]) -> Self {
        let same = (rows, cols) == (side, side);
        let mut known = vec![None; side * side];
        let mut pixels = Vec::new();
        let mut shares = Vec::with_capacity(cells.len() * if same { 1 } else { 4 });
        for &cell in cells {
            let vertical = neighbours(cell / cols, rows, side);
            let horizontal = neighbours(cell % cols, cols, side);
            for (i, a) in vertical.into_iter().take(if same { 1 } else { 2 }) {
                for (j, b) in horizontal.into_iter().take(if same { 1 } else { 2 }) {
                    let index = *known[i * side + j].get_or_insert_with(|| {
                        pixels.push(Image::place(side, i, j));
                        pixels.len() as u32 - 1
                    });
                    shares.push((index, a * b));
                }
            }
        }
        Self { pixels, shares, per_cell: if same { 1 } else { 4 }, cells: cells.len() }
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        self.cells
    }

    /// Whether it reads no cell.
    pub fn is_empty(&self) -> bool {
        self.cells == 0
    }

    /// ln S at the cells, and the output at the pixels they look at.
    pub(super) fn read(&self, span: f32, image: &mut Image, ln_slf: &mut [f32]) {
        image.outputs.clear();
        let logits = &image.logits;
        image.outputs.extend(self.pixels.iter().map(|&at| 1.0 / (1.0 + (-logits[at]).exp())));
        for (value, shares) in ln_slf.iter_mut().zip(self.shares.chunks_exact(self.per_cell)) {
            let output: f32 =
                shares.iter().map(|&(pixel, share)| share * image.outputs[pixel as usize]).sum();
            *value = span * (output - 1.0);
        }
    }

    /// Gradient of the logits from that of ln S at the cells.
    pub(super) fn write(&self, span: f32, upstream: &[f32], image: &mut Image) {
        image.gradient.fill(0.0);
        for (up, shares) in upstream.iter().zip(self.shares.chunks_exact(self.per_cell)) {
            for &(pixel, share) in shares {
                let output = image.outputs[pixel as usize];
                let slope = span * output * (1.0 - output);
                image.gradient[self.pixels[pixel as usize]] += up * share * slope;
            }
        }
    }
}

/// The two pixels of a row of `side` on either side of the centre of cell `at` of `cells`, with
/// their shares.
fn neighbours(at: usize, cells: usize, side: usize) -> [(usize, f32); 2] {
    let centre = (at as f64 + 0.5) * side as f64 / cells as f64 - 0.5;
    let centre = centre.clamp(0.0, (side - 1) as f64);
    let low = (centre as usize).min(side - 1);
    let share = (centre - low as f64) as f32;
    [(low, 1.0 - share), ((low + 1).min(side - 1), share)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_lie_between_the_pixels_around_them() {
        assert_eq!(neighbours(5, 64, 64), [(5, 1.0), (6, 0.0)]);
        assert_eq!(neighbours(0, 32, 64), [(0, 0.5), (1, 0.5)]);
        assert_eq!(neighbours(0, 128, 64), [(0, 1.0), (1, 0.0)]);
        assert_eq!(neighbours(127, 128, 64), [(63, 1.0), (63, 0.0)]);
        let [(low, a), (high, b)] = neighbours(3, 14, 64);
        assert_eq!((low, high), (15, 16));
        assert!((15.0 * a + 16.0 * b - 15.5).abs() < 1e-5);
    }
}
