//! The generator's layers, packed for the kernel in both directions.

use super::product::Product;
use super::weights::Layer;
use portolan_decoder::simd::padded;

/// Side of the first image.
const FIRST: usize = 4;

/// One layer, ready for both directions.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    /// Side of the image it draws.
    pub side: usize,
    /// Channels it draws, padded.
    pub width: usize,
    /// A product for each pixel of the first image, or for each parity: where its result begins.
    pub forward: Vec<(usize, Product)>,
    pub backward: Product,
}

impl Stage {
    /// From the latent to the first image: a matrix for each of its pixels.
    pub fn first(layer: &Layer) -> Self {
        let width = padded(layer.outputs);
        let place = |p: usize| ((p / FIRST + 1) * (FIRST + 2) + p % FIRST + 1) * width;
        let forward = (0..FIRST * FIRST)
            .map(|p| {
                let weight = |_, c, o| layer.at(c, o, p / FIRST, p % FIRST);
                let start = |o: usize| layer.shift[o];
                (place(p), Product::new(vec![0], layer.inputs, layer.outputs, weight, start))
            })
            .collect();
        let taps: Vec<usize> = (0..FIRST * FIRST).map(place).collect();
        let weight = |p, o, c| layer.at(c, o, p / FIRST, p % FIRST);
        let backward = Product::new(taps, layer.outputs, layer.inputs, weight, |_| 0.0);
        Self { side: FIRST, width, forward, backward }
    }

    /// From an image of `side` x `side` to one of twice that.
    pub fn enlarging(layer: &Layer, side: usize) -> Self {
        let (from, to) = (padded(layer.inputs), padded(layer.outputs));
        let (from_row, to_row) = ((side + 2) * from, (2 * side + 2) * to);
        // Result row 2 i + parity takes input rows i - 1 + parity and i + parity; with the margin
        // these are i + parity and i + parity + 1, by kernel rows 3 - parity and 1 - parity.
        let forward = (0..4)
            .map(|parity| {
                let (py, px) = (parity / 2, parity % 2);
                let taps = (0..4).map(|t| (py + t / 2) * from_row + (px + t % 2) * from).collect();
                let weight =
                    |t: usize, c, o| layer.at(c, o, 3 - py - 2 * (t / 2), 3 - px - 2 * (t % 2));
                let product =
                    Product::new(taps, layer.inputs, layer.outputs, weight, |o| layer.shift[o]);
                ((py + 1) * to_row + (px + 1) * to, product)
            })
            .collect();
        // Input row i went to result rows 2 i - 1 to 2 i + 2; with the margin, 2 i to 2 i + 3.
        let taps = (0..Layer::AREA).map(|k| k / 4 * to_row + k % 4 * to).collect();
        let weight = |k: usize, o, c| layer.at(c, o, k / 4, k % 4);
        let backward = Product::new(taps, layer.outputs, layer.inputs, weight, |_| 0.0);
        Self { side: 2 * side, width: to, forward, backward }
    }

    /// Numbers of one image with its margin.
    pub fn len(&self) -> usize {
        (self.side + 2).pow(2) * self.width
    }

    /// From a row to the next.
    pub fn row(&self) -> usize {
        (self.side + 2) * self.width
    }
}

/// Lays the 4 x 4 products of every pixel over each other, two pixels apart.
#[inline(always)]
pub(super) fn lay(side: usize, bias: f32, stamps: &[f32], logits: &mut [f32]) {
    let row = 2 * side + 2;
    logits.fill(bias);
    for (at, stamp) in stamps.as_chunks::<{ Layer::AREA }>().0.iter().take(side * side).enumerate()
    {
        let first = 2 * (at / side) * row + 2 * (at % side);
        for (k, products) in stamp.as_chunks::<4>().0.iter().enumerate() {
            let to = &mut logits[first + k * row..][..4];
            to.iter_mut().zip(products).for_each(|(to, product)| *to += product);
        }
    }
}
