//! Cloud-optimised GeoTIFF (OGC 21-026, OGC 19-008r4): tiles of float32, a layer per band and one
//! for its spread, overviews averaged in dB, directories first and the full image last.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use rayon::prelude::*;

use super::blocks::{each_block, layers};
use super::geokeys::geo_tags;
use super::parts::{MapAbout, MapParts, Quantity};
use super::tiff::{Image, Values, compressed, head};
use crate::error::{IoError, Problem};
use crate::output::Part;

/// Overviews end when both sides of one are at most this.
const SMALLEST: usize = 512;

/// Writes a map as a cloud-optimised GeoTIFF.
pub(super) fn write_geotiff<P: MapParts>(
    path: &Path,
    parts: &mut P,
    force: bool,
) -> Result<(), P::Error> {
    let about = parts.about().clone();
    let in_target = |problem: Problem| problem.in_target(path);
    let layers = layers(parts);
    if layers > usize::from(u16::MAX) {
        let problem = format!("{layers} layers, expected at most 65535: choose .zarr or .npz");
        return Err(in_target(Problem::new(problem)).into());
    }
    let geo = geo_tags(&about).map_err(in_target)?;
    let failed = |source| IoError::Write { path: path.to_owned(), source };
    let (width, height) = (about.grid.rows(), about.grid.cols());
    let mut pyramid = Pyramid {
        scratch: Part::begin(path).map_err(failed)?,
        length: 0,
        side: if width.max(height) <= 256 { 256 } else { 512 },
        sizes: sizes(width, height),
        tiles: Vec::new(),
        pending: HashMap::new(),
    };
    pyramid.tiles = (0..pyramid.sizes.len())
        .map(|level| vec![Tile::default(); layers * pyramid.across(level) * pyramid.down(level)])
        .collect();
    let side = pyramid.side;
    each_block(path, parts, side, |block| {
        let place = (block.columns.start / side, block.lines.start / side);
        let images = block.layers().into_iter().map(|layer| {
            let image = Picture { width: block.columns.len(), pixels: layer.image() };
            (layer.number, image)
        });
        pyramid.add(0, place, images.collect()).map_err(failed)
    })?;
    let output = Part::begin(path).map_err(failed)?;
    pyramid.assemble(&about, &geo, layers, output.file()).map_err(failed)?;
    drop(pyramid);
    Ok(output.finish(path, force)?)
}

/// Sizes of the full image and its overviews, each half of the one before.
fn sizes(width: usize, height: usize) -> Vec<(usize, usize)> {
    let mut sizes = vec![(width, height)];
    while let Some(&(w, h)) = sizes.last().filter(|(w, h)| *w.max(h) > SMALLEST) {
        sizes.push((w.div_ceil(2), h.div_ceil(2)));
    }
    sizes
}

/// Where a compressed tile lies in the scratch file.
#[derive(Clone, Copy, Default)]
struct Tile {
    at: u64,
    length: u32,
}

/// A tile's pixels, line after line.
struct Picture {
    width: usize,
    pixels: Vec<f32>,
}

/// A tile of an overview of which some quarters are there.
struct Pending {
    image: Picture,
    quarters: usize,
}

/// The tiles of all images, compressed as they come in.
struct Pyramid {
    scratch: Part,
    length: u64,
    side: usize,
    sizes: Vec<(usize, usize)>,
    tiles: Vec<Vec<Tile>>,
    /// By level and layer: of each, one tile at a time is put together.
    pending: HashMap<(usize, usize), Pending>,
}

impl Pyramid {
    fn across(&self, level: usize) -> usize {
        self.sizes[level].0.div_ceil(self.side)
    }

    fn down(&self, level: usize) -> usize {
        self.sizes[level].1.div_ceil(self.side)
    }

    /// Takes the tiles of some layers at one place, and what they mean for the overviews. Tiles that
    /// lie together come one after the other.
    fn add(
        &mut self,
        level: usize,
        (column, row): (usize, usize),
        images: Vec<(usize, Picture)>,
    ) -> io::Result<()> {
        let (side, last) = (self.side, level + 1 == self.sizes.len());
        let packed = images.into_par_iter().map(|(layer, image)| {
            let mut tile = vec![f32::NAN; side * side];
            for (line, pixels) in image.pixels.chunks(image.width).enumerate() {
                tile[line * side..line * side + image.width].copy_from_slice(pixels);
            }
            let half = (!last).then(|| halved(&image));
            Ok((layer, compressed(&tile, side)?, half))
        });
        let (across, down) = (self.across(level), self.down(level));
        let mut halves = Vec::new();
        for (layer, bytes, half) in packed.collect::<io::Result<Vec<_>>>()? {
            self.scratch.file().write_all(&bytes)?;
            let index = (layer * down + row) * across + column;
            self.tiles[level][index] = Tile { at: self.length, length: bytes.len() as u32 };
            self.length += bytes.len() as u64;
            halves.extend(half.map(|half| (layer, half)));
        }
        let above = (column / 2, row / 2);
        let whole = self.gather(level + 1, (column, row), halves);
        if whole.is_empty() { Ok(()) } else { self.add(level + 1, above, whole) }
    }

    /// Puts quarters into the tiles of an overview; returns the tiles that are complete.
    fn gather(
        &mut self,
        level: usize,
        (column, row): (usize, usize),
        halves: Vec<(usize, Picture)>,
    ) -> Vec<(usize, Picture)> {
        let Some(&(width, height)) = self.sizes.get(level) else { return Vec::new() };
        let (side, left, top) = (self.side, column / 2 * self.side, row / 2 * self.side);
        let (width, height) = ((width - left).min(side), (height - top).min(side));
        let quarters = width.div_ceil(side / 2) * height.div_ceil(side / 2);
        let mut whole = Vec::new();
        for (layer, half) in halves {
            let tile = self.pending.entry((level, layer)).or_insert_with(|| {
                let image = Picture { width, pixels: vec![f32::NAN; width * height] };
                Pending { image, quarters: 0 }
            });
            let (x, y) = (column % 2 * side / 2, row % 2 * side / 2);
            for (line, pixels) in half.pixels.chunks(half.width).enumerate() {
                let at = (y + line) * width + x;
                tile.image.pixels[at..at + half.width].copy_from_slice(pixels);
            }
            tile.quarters += 1;
            if tile.quarters == quarters {
                whole.extend(self.pending.remove(&(level, layer)).map(|p| (layer, p.image)));
            }
        }
        whole
    }

    /// Head, then tiles: the smallest overview's first, the full image's last.
    fn assemble(
        &self,
        about: &MapAbout,
        geo: &[(u16, Values)],
        layers: usize,
        mut out: &File,
    ) -> io::Result<()> {
        let images: Vec<Image> = (0..self.sizes.len())
            .map(|level| Image {
                tags: tags(self.sizes[level], self.side, layers, level, about, geo),
                tiles: self.tiles[level].iter().map(|tile| tile.length).collect(),
            })
            .collect();
        out.write_all(&head(&images))?;
        let mut scratch = self.scratch.file();
        let mut block = Vec::new();
        for tile in self.tiles.iter().rev().flatten() {
            block.resize(tile.length as usize, 0);
            scratch.seek(SeekFrom::Start(tile.at))?;
            scratch.read_exact(&mut block)?;
            out.write_all(&block)?;
        }
        Ok(())
    }
}

/// Half as many lines and columns: means of what is known.
fn halved(Picture { width, pixels }: &Picture) -> Picture {
    let (width, height) = (*width, pixels.len() / (*width).max(1));
    let mut half = Vec::with_capacity(width.div_ceil(2) * height.div_ceil(2));
    for line in (0..height).step_by(2) {
        for column in (0..width).step_by(2) {
            let (mut sum, mut count) = (0.0f64, 0u32);
            for at_line in line..(line + 2).min(height) {
                for at_column in column..(column + 2).min(width) {
                    let value = pixels[at_line * width + at_column];
                    if !value.is_nan() {
                        sum += f64::from(value);
                        count += 1;
                    }
                }
            }
            half.push(if count > 0 { (sum / f64::from(count)) as f32 } else { f32::NAN });
        }
    }
    Picture { width: width.div_ceil(2), pixels: half }
}

/// The tags of one image, without those of its tiles.
fn tags(
    (width, height): (usize, usize),
    side: usize,
    layers: usize,
    level: usize,
    about: &MapAbout,
    geo: &[(u16, Values)],
) -> Vec<(u16, Values)> {
    let short = |value: u16| Values::Short(vec![value]);
    let long = |value: usize| Values::Long(vec![value as u32]);
    let mut tags = vec![
        (256, long(width)),
        (257, long(height)),
        (258, Values::Short(vec![32; layers])),
        // Deflate, black is the least, layers apart, the floating-point predictor.
        (259, short(8)),
        (262, short(1)),
        (277, short(layers as u16)),
        (284, short(2)),
        (317, short(3)),
        (322, long(side)),
        (323, long(side)),
        (339, Values::Short(vec![3; layers])),
        (42113, Values::Ascii("nan".into())),
    ];
    if layers > 1 {
        tags.push((338, Values::Short(vec![0; layers - 1])));
    }
    if level > 0 {
        tags.push((254, Values::Long(vec![1])));
    } else {
        tags.push((42112, Values::Ascii(metadata(about))));
        tags.extend(geo.iter().cloned());
    }
    tags
}

/// Names and units of the layers, as GDAL reads them.
fn metadata(about: &MapAbout) -> String {
    let mut text = String::from("<GDALMetadata>\n");
    let mut item = |sample: usize, name: String, unit: &str| {
        for (key, role, value) in
            [("DESCRIPTION", "description", &*name), ("UNITTYPE", "unittype", unit)]
        {
            let value = escaped(value);
            text += &format!(
                "<Item name=\"{key}\" sample=\"{sample}\" role=\"{role}\">{value}</Item>\n"
            );
        }
    };
    for band in 0..about.bands {
        let label = about.frame.labels.label(band);
        let name = match about.quantity {
            Quantity::Power => format!("{label} {}", about.unit()),
            Quantity::Difference => format!("difference of {label} dB"),
        };
        item(band, name, about.unit());
    }
    for band in 0..if about.spread { about.bands } else { 0 } {
        let name = format!("spread of {} dB", about.frame.labels.label(band));
        item(about.bands + band, name, "dB");
    }
    text + "</GDALMetadata>\n"
}

/// Text inside XML.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overviews_halve_until_they_are_small() {
        assert_eq!(sizes(512, 300), [(512, 300)]);
        assert_eq!(sizes(1300, 513), [(1300, 513), (650, 257), (325, 129)]);
    }

    #[test]
    fn what_is_unknown_does_not_count_in_a_mean() {
        let nan = f32::NAN;
        let pixels = vec![1.0, 3.0, nan, nan, nan, 4.0, 2.0, nan, 6.0];
        let half = halved(&Picture { width: 3, pixels });
        assert_eq!(half.width, 2);
        assert_eq!(half.pixels, [2.0, 4.0, 2.0, 6.0]);
    }
}
