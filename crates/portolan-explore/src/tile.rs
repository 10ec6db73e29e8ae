//! Tiles: squares of 256 pixels at power-of-two scales, the same for every map. At zoom z a pixel is
//! 2^-z metres; tile (x, y) begins at (256 x, 256 y) pixels, y up. A tile is a lattice of values
//! with a place every `step` pixels, its edges included; the page draws between them linearly.
//!
//! Values are 16-bit whole numbers, the least meaning "unknown": hundredths of a dB for power and
//! spread, hundredths of a per cent for chances, numbers of bands for the best server.

use portolan::coverage::chance_above;
use portolan::{Region, Site};

/// Pixels along a tile.
pub const TILE: usize = 256;
/// Zooms that are drawn.
pub const ZOOMS: std::ops::RangeInclusive<i32> = -16..=14;
/// Pixels between places of a lattice.
pub const STEPS: [usize; 5] = [1, 2, 4, 8, 16];
/// A value that is not known.
pub const UNKNOWN: i16 = i16::MIN;
/// Parts of a dB that power and spread are told in.
const PARTS: f64 = 100.0;

/// One tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tile {
    pub z: i32,
    pub x: i64,
    pub y: i64,
    /// Pixels between places.
    pub step: usize,
}

impl Tile {
    /// Metres along the tile.
    pub fn side_m(&self) -> f64 {
        TILE as f64 * 2f64.powi(-self.z)
    }

    /// Places along an edge.
    pub fn places(&self) -> usize {
        TILE / self.step + 1
    }

    pub fn region(&self) -> Region {
        let side = self.side_m();
        let low = Site::new(self.x as f64 * side, self.y as f64 * side);
        Region { low, high: Site::new(low.x_m + side, low.y_m + side) }
    }

    pub fn touches(&self, area: &Region) -> bool {
        let own = self.region();
        own.low.x_m < area.high.x_m
            && own.high.x_m > area.low.x_m
            && own.low.y_m < area.high.y_m
            && own.high.y_m > area.low.y_m
    }

    /// Places of the lattice row by row, the greatest y first; None where a place lies farther than
    /// a step outside of the area, so that nothing is asked that is not drawn.
    pub fn sites(&self, area: &Region) -> Vec<Option<Site>> {
        let (n, Region { low, high }) = (self.places(), self.region());
        let step = self.side_m() / (n - 1) as f64;
        let near = |site: &Site| {
            site.x_m >= area.low.x_m - step
                && site.x_m <= area.high.x_m + step
                && site.y_m >= area.low.y_m - step
                && site.y_m <= area.high.y_m + step
        };
        (0..n * n)
            .map(|i| {
                let (line, along) = (i / n, i % n);
                let site = Site::new(low.x_m + along as f64 * step, high.y_m - line as f64 * step);
                Some(site).filter(near)
            })
            .collect()
    }
}

/// A number in hundredths, cut at what 16 bits hold.
pub fn packed(value: f64) -> i16 {
    if value.is_nan() {
        return UNKNOWN;
    }
    (value * PARTS).round().clamp(f64::from(UNKNOWN) + 1.0, f64::from(i16::MAX)) as i16
}

/// What a packed number says.
pub fn unpacked(value: i16) -> f64 {
    if value == UNKNOWN { f64::NAN } else { f64::from(value) / PARTS }
}

/// What a tile shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Layer {
    Power,
    Spread,
    /// The chance of lying above a level in dB.
    Above(f64),
    /// The strongest band.
    Best,
}

/// A lattice in some bands, band after band.
pub struct Block {
    /// The first band, and how many.
    pub first: usize,
    pub bands: usize,
    /// Places of a band.
    pub size: usize,
    pub power: Vec<i16>,
    pub spread: Option<Vec<i16>>,
}

impl Block {
    pub fn bytes(&self) -> usize {
        2 * (self.power.len() + self.spread.as_ref().map_or(0, Vec::len)) + 128
    }

    fn plane<'a>(&self, values: &'a [i16], band: usize) -> &'a [i16] {
        let at = (band - self.first) * self.size;
        &values[at..at + self.size]
    }

    /// Appends the values of a layer, little-endian.
    pub fn write(&self, band: usize, layer: Layer, out: &mut Vec<u8>) {
        let power = self.plane(&self.power, band);
        out.reserve(2 * self.size);
        let mut put = |value: i16| out.extend_from_slice(&value.to_le_bytes());
        match layer {
            Layer::Power => power.iter().copied().for_each(put),
            Layer::Spread => match &self.spread {
                Some(spread) => self.plane(spread, band).iter().copied().for_each(put),
                None => (0..self.size).for_each(|_| put(UNKNOWN)),
            },
            Layer::Above(threshold) => {
                let spread = self.spread.as_ref().map(|spread| self.plane(spread, band));
                for (i, level) in power.iter().enumerate() {
                    let spread = spread.map_or(0.0, |spread| unpacked(spread[i]));
                    put(packed(100.0 * chance_above(unpacked(*level), spread, threshold)));
                }
            }
            Layer::Best => self.best().into_iter().for_each(|(band, _)| put(band)),
        }
    }

    /// The strongest band of every place, and its power.
    pub fn best(&self) -> Vec<(i16, i16)> {
        let mut best = vec![(UNKNOWN, UNKNOWN); self.size];
        for band in self.first..self.first + self.bands {
            for (best, &power) in best.iter_mut().zip(self.plane(&self.power, band)) {
                if power > best.1 {
                    *best = (band as i16, power);
                }
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_their_edges() {
        let area = Region { low: Site::new(-1e4, -1e4), high: Site::new(1e4, 1e4) };
        let tile = Tile { z: -1, x: 3, y: -2, step: 8 };
        let (n, own) = (tile.places(), tile.sites(&area));
        let right = Tile { x: 4, ..tile }.sites(&area);
        let above = Tile { y: -1, ..tile }.sites(&area);
        assert_eq!((n, tile.side_m()), (33, 512.0));
        for i in 0..n {
            assert_eq!(own[i * n + n - 1], right[i * n]);
            assert_eq!(own[i], above[(n - 1) * n + i]);
        }
        assert_eq!(own[0], Some(Site::new(1536.0, -512.0)));
    }

    #[test]
    fn places_far_outside_are_not_asked() {
        let area = Region { low: Site::new(0.0, 0.0), high: Site::new(10.0, 10.0) };
        let tile = Tile { z: 0, x: 0, y: 0, step: 16 };
        let asked = tile.sites(&area).iter().flatten().count();
        assert_eq!(asked, 4);
        assert!(tile.touches(&area) && !Tile { x: 1, ..tile }.touches(&area));
        assert!(!Tile { y: -1, ..tile }.touches(&area));
    }

    #[test]
    fn numbers_are_packed_to_a_two_hundredth() {
        for value in [-173.206, 0.0, 12.344, -0.004] {
            assert!((unpacked(packed(value)) - value).abs() <= 0.005);
        }
        assert!(unpacked(packed(f64::NAN)).is_nan());
        assert_eq!((packed(f64::NEG_INFINITY), packed(1e9)), (UNKNOWN + 1, i16::MAX));
    }

    #[test]
    fn layers_are_told_of_a_block() {
        let block = Block {
            first: 4,
            bands: 2,
            size: 3,
            power: vec![-7000, -6000, UNKNOWN, -6500, -6500, UNKNOWN],
            spread: Some(vec![300, 300, UNKNOWN, 0, 0, UNKNOWN]),
        };
        let told = |band, layer| {
            let mut out = Vec::new();
            block.write(band, layer, &mut out);
            out.chunks(2).map(|b| i16::from_le_bytes([b[0], b[1]])).collect::<Vec<_>>()
        };
        assert_eq!(told(5, Layer::Power), [-6500, -6500, UNKNOWN]);
        assert_eq!(told(4, Layer::Spread), [300, 300, UNKNOWN]);
        assert_eq!(told(4, Layer::Above(-70.0)), [5000, 9996, UNKNOWN]);
        assert_eq!(told(5, Layer::Above(-65.0)), [10000, 10000, UNKNOWN]);
        assert_eq!(told(4, Layer::Best), [5, 4, UNKNOWN]);
    }
}
