//! How writers of rasters walk over a map: strips of tiles from west to east, a few bands at a
//! time, so that what is held does not depend on the size of the map.

use std::ops::Range;

use ndarray::ArrayView3;

use super::parts::MapParts;

/// Entries that are asked for at a time.
pub(crate) const MOST_ENTRIES: usize = 1 << 22;

/// A strip of a raster from its north edge to its south edge.
pub(crate) struct Strip {
    /// The columns of the raster that it covers.
    pub columns: Range<usize>,
    /// The bands that it holds.
    pub bands: Range<usize>,
    /// One image per band, line after line: levels.
    pub level: Vec<Vec<f32>>,
    /// The same of the spread, where the map has one.
    pub spread: Vec<Vec<f32>>,
}

impl Strip {
    /// Numbers of the layers with their images: all levels come before all spreads.
    pub fn layers(&self, bands: usize) -> impl Iterator<Item = (usize, &[f32])> {
        let first = self.bands.start;
        let level = self.level.iter().enumerate().map(move |(n, image)| (first + n, &image[..]));
        let spread =
            self.spread.iter().enumerate().map(move |(n, image)| (bands + first + n, &image[..]));
        level.chain(spread)
    }
}

/// Number of layers: a level per band, and a spread per band where there is one.
pub(crate) fn layers(parts: &impl MapParts) -> usize {
    let about = parts.about();
    about.bands * if about.spread { 2 } else { 1 }
}

/// Gives every strip of `width` columns to `take`: all strips of the first bands, then those of the
/// next.
pub(crate) fn each_strip<P: MapParts>(
    parts: &mut P,
    width: usize,
    mut take: impl FnMut(Strip) -> Result<(), P::Error>,
) -> Result<(), P::Error> {
    let about = parts.about();
    let (columns, lines, bands) = (about.grid.rows(), about.grid.cols(), about.bands);
    let at_once = (MOST_ENTRIES / width.min(columns).saturating_mul(lines).max(1)).clamp(1, bands);
    for first_band in (0..bands).step_by(at_once) {
        let group = first_band..(first_band + at_once).min(bands);
        for first in (0..columns).step_by(width) {
            let strip = read_strip(parts, first..(first + width).min(columns), group.clone())?;
            take(strip)?;
        }
    }
    Ok(())
}

/// Gives the levels of every band as an image, line after line from the north, to `take`.
pub(crate) fn each_band<P: MapParts>(
    parts: &mut P,
    mut take: impl FnMut(usize, &[f32]) -> Result<(), P::Error>,
) -> Result<(), P::Error> {
    let columns = parts.about().grid.rows();
    each_strip(parts, columns, |strip| {
        strip.bands.clone().zip(&strip.level).try_for_each(|(band, image)| take(band, image))
    })
}

fn read_strip<P: MapParts>(
    parts: &mut P,
    columns: Range<usize>,
    bands: Range<usize>,
) -> Result<Strip, P::Error> {
    let about = parts.about();
    let (lines, has_spread) = (about.grid.cols(), about.spread);
    let image = |_| vec![f32::NAN; columns.len() * lines];
    let images = |count: usize| (0..count).map(image).collect::<Vec<_>>();
    let mut level = images(bands.len());
    let mut spread = images(if has_spread { bands.len() } else { 0 });
    // Whole rows of the grid lie together in files: cut across them only where they are too long.
    let long = MOST_ENTRIES / bands.len();
    let some_lines = lines.min(long.max(1));
    let some_columns = (long / some_lines).clamp(1, columns.len());
    for first in columns.clone().step_by(some_columns) {
        let rows = first..(first + some_columns).min(columns.end);
        for first_col in (0..lines).step_by(some_lines) {
            let cols = first_col..(first_col + some_lines).min(lines);
            let part = parts.part(rows.clone(), cols.clone(), bands.clone())?;
            let at = (first - columns.start, cols.start);
            let size = (columns.len(), lines);
            place(part.level_db.view(), at, size, &mut level);
            if let Some(found) = &part.spread_db {
                place(found.view(), at, size, &mut spread);
            }
        }
    }
    Ok(Strip { columns, bands, level, spread })
}

/// Turns a part, whose rows go with x and columns with y, into pixels with north up.
fn place(
    part: ArrayView3<'_, f64>,
    (left, low): (usize, usize),
    (columns, lines): (usize, usize),
    images: &mut [Vec<f32>],
) {
    for ((row, col, band), value) in part.indexed_iter() {
        let line = lines - 1 - (low + col);
        images[band][line * columns + left + row] = *value as f32;
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Array3;
    use portolan::{Grid, RadioMap, Scale};

    use super::*;
    use crate::gis::WholeMap;

    #[test]
    fn strips_have_north_up_and_x_along_a_line() {
        let level = |i: usize, j: usize, k: usize| (100 * k + 10 * i + j) as f64;
        let power = Array3::from_shape_fn((5, 3, 2), |(i, j, k)| 10f64.powf(level(i, j, k) / 10.0));
        let map = RadioMap::dense(Grid::new(5, 3, 1.0).unwrap(), power, Scale::Absolute).unwrap();
        let mut seen = 0;
        each_strip(&mut WholeMap::new(&map), 2, |strip| {
            for (layer, image) in strip.layers(2) {
                for (n, found) in image.iter().enumerate() {
                    let (line, column) = (n / strip.columns.len(), n % strip.columns.len());
                    let expected = level(strip.columns.start + column, 2 - line, layer);
                    assert!((f64::from(*found) - expected).abs() < 1e-4);
                    seen += 1;
                }
            }
            Ok(())
        })
        .unwrap();
        assert_eq!(seen, 30);
    }
}
