//! Tiles: squares of 256 pixels at power-of-two scales, the same for every map. At zoom z a pixel is
//! 2^-z metres; tile (x, y) begins at (256 x, 256 y) pixels, y up. A tile is a lattice of values
//! with a place every `step` pixels, its edges included; the page draws between them linearly.
//!
//! Values are 16-bit whole numbers, the least meaning "unknown": hundredths of a dB for power and
//! spread, hundredths of a per cent for chances, numbers of bands for the best server.

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

    /// Steps along an edge.
    pub fn steps(&self) -> i64 {
        (TILE / self.step) as i64
    }

    /// Its lattice has a place every 2^-level metres.
    pub fn level(&self) -> i32 {
        self.z - self.step.ilog2() as i32
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_touch_what_they_overlap() {
        let area = Region { low: Site::new(0.0, 0.0), high: Site::new(10.0, 10.0) };
        let tile = Tile { z: 0, x: 0, y: 0, step: 16 };
        assert!(tile.touches(&area) && !Tile { x: 1, ..tile }.touches(&area));
        assert!(!Tile { y: -1, ..tile }.touches(&area));
        assert_eq!((tile.places(), tile.level(), tile.side_m()), (17, -4, 256.0));
    }

    #[test]
    fn numbers_are_packed_to_a_two_hundredth() {
        for value in [-173.206, 0.0, 12.344, -0.004] {
            assert!((unpacked(packed(value)) - value).abs() <= 0.005);
        }
        assert!(unpacked(packed(f64::NAN)).is_nan());
        assert_eq!((packed(f64::NEG_INFINITY), packed(1e9)), (UNKNOWN + 1, i16::MAX));
    }
}
