//! How writers of rasters walk over a map: block by block, each in as many bands as fit a bounded
//! memory, all of them as a rule. A model is then asked once for every place.

use std::ops::Range;
use std::path::Path;

use ndarray::{ArrayView3, Axis};
use rayon::prelude::*;

use super::parts::MapParts;
use crate::error::Result;
use crate::road::write_blocks;

/// Entries that are asked for at a time.
pub(crate) const MOST_ENTRIES: usize = 1 << 22;

/// Numbers that a block holds at most, 128 MB.
const MOST_HELD: usize = 1 << 25;

/// Some columns and lines of a raster, with north up.
pub(crate) struct Block {
    pub columns: Range<usize>,
    pub lines: Range<usize>,
    bands: Range<usize>,
    /// Of how many bands the raster is.
    of: usize,
    spread: bool,
    /// Line after line; in a line layer after layer, levels before spreads.
    values: Vec<f32>,
}

/// One level or spread of a block.
pub(crate) struct Layer<'a> {
    /// Its number in the raster: levels of all bands come before all spreads.
    pub number: usize,
    block: &'a Block,
    slot: usize,
}

impl Block {
    /// Its layers.
    pub fn layers(&self) -> Vec<Layer<'_>> {
        let number = |slot: usize| match slot.checked_sub(self.bands.len()) {
            Some(spread) => self.of + self.bands.start + spread,
            None => self.bands.start + slot,
        };
        (0..self.slots()).map(|slot| Layer { number: number(slot), block: self, slot }).collect()
    }

    fn slots(&self) -> usize {
        self.bands.len() * if self.spread { 2 } else { 1 }
    }

    fn read<P: MapParts>(
        parts: &mut P,
        (columns, lines): (Range<usize>, Range<usize>),
        bands: Range<usize>,
    ) -> std::result::Result<Self, P::Error> {
        let about = parts.about();
        let (of, spread, height) = (about.bands, about.spread, about.grid.cols());
        let mut block = Self { columns, lines, bands, of, spread, values: Vec::new() };
        block.values = vec![f32::NAN; block.columns.len() * block.lines.len() * block.slots()];
        // Lines count from the north, columns of the grid from the south.
        let cols = height - block.lines.end..height - block.lines.start;
        // Whole rows of the grid lie together in files: cut across them only where they are too long.
        let long = (MOST_ENTRIES / block.bands.len()).max(1);
        let some_cols = cols.len().min(long);
        let some_rows = (long / some_cols).clamp(1, block.columns.len());
        for first in block.columns.clone().step_by(some_rows) {
            let rows = first..(first + some_rows).min(block.columns.end);
            for first_col in cols.clone().step_by(some_cols) {
                let some = first_col..(first_col + some_cols).min(cols.end);
                let part = parts.part(rows.clone(), some.clone(), block.bands.clone())?;
                let at = (rows.start - block.columns.start, height - some.end - block.lines.start);
                block.place(part.level_db.view(), at, 0);
                if let Some(found) = &part.spread_db {
                    block.place(found.view(), at, block.bands.len());
                }
            }
        }
        Ok(block)
    }

    /// Turns a part, whose rows go with x and columns with y, into lines with north up.
    fn place(&mut self, part: ArrayView3<'_, f64>, (left, top): (usize, usize), slot: usize) {
        let (columns, line) = (self.columns.len(), self.columns.len() * self.slots());
        let lines = self.values.par_chunks_mut(line).skip(top).take(part.dim().1);
        lines.enumerate().for_each(|(n, line)| {
            let across = part.index_axis(Axis(1), part.dim().1 - 1 - n);
            for (column, spectrum) in across.outer_iter().enumerate() {
                for (k, value) in spectrum.iter().enumerate() {
                    line[(slot + k) * columns + left + column] = *value as f32;
                }
            }
        });
    }
}

impl Layer<'_> {
    /// Its lines from the north.
    pub fn lines(&self) -> impl Iterator<Item = &[f32]> {
        let width = self.block.columns.len();
        let line = width * self.block.slots();
        self.block.values.chunks(line).map(move |line| &line[self.slot * width..][..width])
    }

    /// Line after line.
    pub fn image(&self) -> Vec<f32> {
        self.lines().flatten().copied().collect()
    }

    /// The band of a level or of a spread, and whether it is a spread.
    pub fn band(&self) -> (usize, bool) {
        match self.number.checked_sub(self.block.of) {
            Some(band) => (band, true),
            None => (self.number, false),
        }
    }
}

/// Number of layers: a level per band, and a spread per band where there is one.
pub(crate) fn layers(parts: &impl MapParts) -> usize {
    let about = parts.about();
    about.bands * if about.spread { 2 } else { 1 }
}

/// Gives every block of `side` x `side` cells to `write`, four that lie together one after the other:
/// all blocks of the first bands, then those of the next. `write` runs while the next block is made.
pub(crate) fn each_block<P: MapParts>(
    path: &Path,
    parts: &mut P,
    side: usize,
    write: impl FnMut(Block) -> Result<()> + Send,
) -> std::result::Result<(), P::Error> {
    let about = parts.about();
    let (columns, lines, bands) = (about.grid.rows(), about.grid.cols(), about.bands);
    let numbers = side.min(columns).saturating_mul(side.min(lines)).max(1);
    let at_once = (MOST_HELD / (numbers * (layers(parts) / bands))).clamp(1, bands);
    let (across, down) = (columns.div_ceil(side), lines.div_ceil(side));
    let mut places: Vec<(usize, usize)> =
        (0..across).flat_map(|x| (0..down).map(move |y| (x, y))).collect();
    places.sort_by_key(|(x, y)| interleaved(*x, *y));
    let groups = (0..bands).step_by(at_once).map(|first| first..(first + at_once).min(bands));
    let asked = groups.flat_map(|group| places.iter().map(move |place| (*place, group.clone())));
    let cut = |n: usize, length: usize| n * side..((n + 1) * side).min(length);
    let blocks =
        asked.map(|((x, y), bands)| Block::read(parts, (cut(x, columns), cut(y, lines)), bands));
    write_blocks(path, blocks, write)
}

/// The bits of two numbers in turns: neighbours in both are close (Morton 1966).
fn interleaved(x: usize, y: usize) -> u128 {
    (0..usize::BITS).fold(0, |sum, bit| {
        let of = |n: usize| (n as u128 >> bit) & 1;
        sum | (of(x) << (2 * bit)) | (of(y) << (2 * bit + 1))
    })
}

/// Gives the levels of every band as an image, line after line from the north, to `take`.
pub(crate) fn each_band<P: MapParts>(
    path: &Path,
    parts: &mut P,
    mut take: impl FnMut(usize, &[f32]) -> Result<()> + Send,
) -> std::result::Result<(), P::Error> {
    let grid = parts.about().grid;
    each_block(path, parts, grid.rows().max(grid.cols()), |block| {
        let levels = block.layers().into_iter().map(|layer| (layer.band(), layer));
        for ((band, _), layer) in levels.filter(|((_, spread), _)| !spread) {
            take(band, &layer.image())?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use ndarray::Array3;
    use portolan::{Frame, Grid, RadioMap, Scale};

    use super::*;
    use crate::error::IoError;
    use crate::gis::{MapAbout, Part, WholeMap};

    fn level(i: usize, j: usize, k: usize) -> f64 {
        (100 * k + 10 * i + j) as f64
    }

    #[test]
    fn blocks_have_north_up_and_x_along_a_line() {
        let power = Array3::from_shape_fn((5, 3, 2), |(i, j, k)| 10f64.powf(level(i, j, k) / 10.0));
        let spread = Array3::from_shape_fn((5, 3, 2), |(i, j, k)| 0.5 + level(i, j, k));
        let map = RadioMap::dense(Grid::new(5, 3, 1.0).unwrap(), power, Scale::Absolute).unwrap();
        let map = map.with_spread_db(Some(spread)).unwrap();
        let mut seen = 0;
        each_block(Path::new("map.tif"), &mut WholeMap::new(&map), 2, |block| {
            for layer in block.layers() {
                let (band, is_spread) = layer.band();
                assert_eq!(layer.number, if is_spread { 2 + band } else { band });
                let width = block.columns.len();
                assert_eq!(layer.image().len(), width * block.lines.len());
                for (n, found) in layer.image().iter().enumerate() {
                    let (line, column) = (block.lines.start + n / width, n % width);
                    let more = if is_spread { 0.5 } else { 0.0 };
                    let expected = level(block.columns.start + column, 2 - line, band) + more;
                    assert!((f64::from(*found) - expected).abs() < 1e-4, "{found} {expected}");
                    seen += 1;
                }
            }
            Ok(())
        })
        .unwrap();
        assert_eq!(seen, 60);
        let mut bands = Vec::new();
        each_band(Path::new("map.png"), &mut WholeMap::new(&map), |band, image| {
            assert_eq!(image.len(), 15);
            assert!((f64::from(image[14]) - level(4, 0, band)).abs() < 1e-4);
            bands.push(band);
            Ok(())
        })
        .unwrap();
        assert_eq!(bands, [0, 1]);
    }

    /// Counts how often every entry is asked for.
    struct Counting(MapAbout, u64);

    impl MapParts for Counting {
        type Error = IoError;

        fn about(&self) -> &MapAbout {
            &self.0
        }

        fn part(
            &mut self,
            rows: Range<usize>,
            cols: Range<usize>,
            bands: Range<usize>,
        ) -> Result<Part> {
            assert_eq!(bands, 0..self.0.bands, "bands are asked for together");
            self.1 += (rows.len() * cols.len() * bands.len()) as u64;
            let level_db = Array3::zeros((rows.len(), cols.len(), bands.len()));
            Ok(Part { spread_db: Some(level_db.clone()), level_db })
        }
    }

    #[test]
    fn a_model_of_64_bands_is_asked_once_for_every_place() {
        let about = MapAbout {
            grid: Grid::new(700, 530, 1.0).unwrap(),
            frame: Frame::new(Scale::Absolute),
            bands: 64,
            spread: true,
            noise_db: None,
            emitters: Vec::new(),
            quantity: crate::gis::Quantity::Power,
        };
        let mut parts = Counting(about, 0);
        each_block(Path::new("map.tif"), &mut parts, 512, |_| Ok(())).unwrap();
        assert_eq!(parts.1, 700 * 530 * 64);
    }
}
