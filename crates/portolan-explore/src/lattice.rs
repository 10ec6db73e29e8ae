//! Lattices of places, one inside the other: level l has a place every 2^-l metres, counted from the
//! origin of the metres. A block is a square of a level, its edges included. What a tile shows is
//! picked out of blocks of its level or a finer one, or goes linearly between places of a coarser
//! one: then it is a draft.

use std::sync::Arc;

use portolan::{Region, Site};

use crate::tile::{Tile, UNKNOWN};

/// Steps along a block.
pub const SIDE: i64 = 128;
/// Places along a block.
const PLACES: usize = SIDE as usize + 1;
/// Places of a block in one band.
pub const SIZE: usize = PLACES * PLACES;

/// Most places of the whole area on the levels that are drawn first, and on that from which all
/// views from above are picked.
const FIRST: f64 = 120.0;
const SECOND: f64 = 5000.0;
const BASE: f64 = 300_000.0;
/// Levels above the base that are picked from it.
const ABOVE: i32 = 2;
/// Levels above its own that a draft may come from, beside the base and those drawn first.
const DRAFTS: i32 = 6;

/// Where a block lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockAddress {
    pub level: i32,
    pub x: i64,
    pub y: i64,
}

impl BlockAddress {
    pub fn step_m(&self) -> f64 {
        2f64.powi(-self.level)
    }

    fn touches(&self, area: &Region) -> bool {
        let side = SIDE as f64 * self.step_m();
        let (x, y) = (self.x as f64 * side, self.y as f64 * side);
        x < area.high.x_m && x + side > area.low.x_m && y < area.high.y_m && y + side > area.low.y_m
    }

    /// Its places row by row, the greatest y first; None farther than so many steps outside of the
    /// area: nothing is asked that is not drawn.
    pub fn sites(&self, area: &Region, margin: f64) -> Vec<Option<Site>> {
        let step = self.step_m();
        let margin = margin * step;
        (0..SIZE as i64)
            .map(|i| {
                let (line, along) = (i / PLACES as i64, i % PLACES as i64);
                let x = (self.x * SIDE + along) as f64 * step;
                let y = ((self.y + 1) * SIDE - line) as f64 * step;
                Some(Site::new(x, y)).filter(|site| near(area, *site, margin))
            })
            .collect()
    }
}

fn near(area: &Region, site: Site, margin_m: f64) -> bool {
    site.x_m >= area.low.x_m - margin_m
        && site.x_m <= area.high.x_m + margin_m
        && site.y_m >= area.low.y_m - margin_m
        && site.y_m <= area.high.y_m + margin_m
}

/// The levels of an area that are drawn before others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    pub first: i32,
    pub second: i32,
    pub base: i32,
}

impl Levels {
    pub fn of(area: &Region) -> Self {
        let places = |level: i32| {
            let scale = 2f64.powi(level);
            (area.width_m() * scale + 1.0) * (area.height_m() * scale + 1.0)
        };
        let finest = |most: f64| (-40..=40).rev().find(|&l| places(l) <= most).unwrap_or(-40);
        Self { first: finest(FIRST), second: finest(SECOND), base: finest(BASE) }
    }

    /// The level whose blocks hold all places of a tile.
    pub fn full(&self, tile: &Tile) -> i32 {
        let own = tile.level();
        if (self.base - ABOVE..self.base).contains(&own) { self.base } else { own }
    }

    /// Levels that a draft of a tile comes from, the best first.
    fn drafts(&self, tile: &Tile) -> Vec<i32> {
        let (own, full) = (tile.level(), self.full(tile));
        let mut levels: Vec<i32> = (own - DRAFTS..own).filter(|l| *l > self.base).collect();
        levels.extend([self.base, self.second, self.first].iter().filter(|l| **l < full));
        levels.sort_unstable_by(|a, b| b.cmp(a));
        levels.dedup();
        levels
    }

    /// Steps outside of the area that blocks of a level hold: what is picked from it steps farther.
    pub fn margin(&self, level: i32) -> f64 {
        if level == self.base { f64::from(1 << ABOVE) } else { 1.0 }
    }

    /// Blocks of the whole area that the first drafts are made of.
    pub fn ahead(&self, area: &Region) -> Vec<BlockAddress> {
        let all = |level: i32| {
            let side = SIDE as f64 * 2f64.powi(-level);
            let range = |low: f64, high: f64| (low / side).floor() as i64..=(high / side) as i64;
            let along = range(area.low.x_m, area.high.x_m);
            range(area.low.y_m, area.high.y_m)
                .flat_map(move |y| along.clone().map(move |x| BlockAddress { level, x, y }))
        };
        all(self.second).chain(all(self.first)).filter(|address| address.touches(area)).collect()
    }

    /// Blocks that hold all places of a tile.
    pub fn needed(&self, tile: &Tile, area: &Region) -> Vec<BlockAddress> {
        addresses(tile, self.full(tile), area)
    }

    /// Blocks that a draft of a tile is made of, level by level, the best first.
    pub fn for_draft(&self, tile: &Tile, area: &Region) -> Vec<BlockAddress> {
        self.drafts(tile).into_iter().flat_map(|level| addresses(tile, level, area)).collect()
    }

    /// Whether a block is worth drawing for a draft.
    pub fn serves_drafts(&self, level: i32) -> bool {
        level == self.base || level == self.second || level == self.first
    }
}

/// Blocks of a level that lie under a tile.
fn addresses(tile: &Tile, level: i32, area: &Region) -> Vec<BlockAddress> {
    // Sides of tile and block in steps of the finer of both lattices.
    let finer = level - tile.level();
    let (side, block) = (tile.steps() << finer.max(0), SIDE << (-finer).max(0));
    let range = |at: i64| (at * side).div_euclid(block)..=((at + 1) * side - 1).div_euclid(block);
    range(tile.y)
        .flat_map(|y| range(tile.x).map(move |x| BlockAddress { level, x, y }))
        .filter(|address| address.touches(area))
        .collect()
}

/// The values of a tile while they are gathered.
#[derive(Clone)]
pub struct Gathered<'a> {
    tile: &'a Tile,
    values: Vec<i16>,
    found: Vec<bool>,
}

impl<'a> Gathered<'a> {
    /// Nothing yet; farther than a step outside of the area nothing is looked for.
    pub fn new(tile: &'a Tile, area: &Region) -> Self {
        let n = tile.places();
        let step = tile.side_m() / (n - 1) as f64;
        let (x, y) = (tile.x * tile.steps(), (tile.y + 1) * tile.steps());
        let outside = |i: usize| {
            let (line, along) = ((i / n) as i64, (i % n) as i64);
            !near(area, Site::new((x + along) as f64 * step, (y - line) as f64 * step), step)
        };
        Self { tile, values: vec![UNKNOWN; n * n], found: (0..n * n).map(outside).collect() }
    }

    /// The values that blocks give, as far as they reach.
    pub fn of(mut self, found: &Found, plane: impl Fn(&Block) -> Option<&[i16]>) -> Vec<i16> {
        for (address, block) in found {
            if let Some(plane) = plane(block) {
                self.take(*address, plane);
            }
        }
        self.values
    }

    /// Takes what is not there yet from a block's plane.
    fn take(&mut self, address: BlockAddress, plane: &[i16]) {
        let (steps, n) = (self.tile.steps(), self.tile.places());
        let finer = address.level - self.tile.level();
        // A block's side in steps of the tile, and steps of the block to one of the tile or the
        // other way round.
        let (pick, between) = (1i64 << finer.max(0), 1i64 << (-finer).max(0));
        let span = |at: i64, begin: i64| {
            let low = (at * SIDE * between + pick - 1).div_euclid(pick) - begin;
            let high = ((at + 1) * SIDE * between).div_euclid(pick) - begin;
            (low.max(0), high.min(steps))
        };
        let (x0, y0) = (self.tile.x * steps, self.tile.y * steps);
        let ((left, right), (low, high)) = (span(address.x, x0), span(address.y, y0));
        let along = |at: i64, address: i64| at * pick - address * SIDE * between;
        for up in low..=high {
            let row = (steps - up) as usize * n;
            let v = SIDE * between - along(y0 + up, address.y);
            for right in left..=right {
                let at = row + right as usize;
                if self.found[at] {
                    continue;
                }
                let u = along(x0 + right, address.x);
                self.found[at] = true;
                self.values[at] = match between {
                    1 => plane[v as usize * PLACES + u as usize],
                    _ => linear(plane, u, v, between),
                };
            }
        }
    }
}

/// A value between places, `between` steps to one of the block.
fn linear(plane: &[i16], u: i64, v: i64, between: i64) -> i16 {
    let cell = |w: i64| (w / between).min(SIDE - 1);
    let (i, j) = (cell(u), cell(v));
    let at = j as usize * PLACES + i as usize;
    let four = [plane[at], plane[at + 1], plane[at + PLACES], plane[at + PLACES + 1]];
    let (s, t) = ((u - i * between) as f32, (v - j * between) as f32);
    let (s, t) = (s / between as f32, t / between as f32);
    let weights = [(1.0 - s) * (1.0 - t), s * (1.0 - t), (1.0 - s) * t, s * t];
    let mut sum = 0.0;
    for (value, weight) in four.into_iter().zip(weights) {
        if weight > 0.0 && value == UNKNOWN {
            return UNKNOWN;
        }
        sum += weight * f32::from(value);
    }
    sum.round() as i16
}

/// A lattice in some bands, band after band.
pub struct Block {
    /// The first band.
    pub first: usize,
    pub power: Vec<i16>,
    pub spread: Option<Vec<i16>>,
}

impl Block {
    pub fn bytes(&self) -> usize {
        2 * (self.power.len() + self.spread.as_ref().map_or(0, Vec::len)) + 128
    }

    fn plane<'a>(&self, values: &'a [i16], band: usize) -> &'a [i16] {
        &values[(band - self.first) * SIZE..][..SIZE]
    }

    pub fn power(&self, band: usize) -> &[i16] {
        self.plane(&self.power, band)
    }

    pub fn spread(&self, band: usize) -> Option<&[i16]> {
        self.spread.as_ref().map(|spread| self.plane(spread, band))
    }
}

/// Blocks at hand, the best first.
pub type Found = Vec<(BlockAddress, Arc<Block>)>;

#[cfg(test)]
mod tests {
    use super::*;

    const AREA: Region = Region { low: Site::new(-0.5, -0.5), high: Site::new(1023.5, 1023.5) };

    /// A plane: linear between places, so that drafts are exact.
    fn plane(address: BlockAddress, margin: f64) -> Arc<Block> {
        let value = |site: &Site| (3.0 * site.x_m - 2.0 * site.y_m).round() as i16;
        let sites = address.sites(&AREA, margin);
        let power = sites.iter().map(|site| site.as_ref().map_or(UNKNOWN, value)).collect();
        Arc::new(Block { first: 0, power, spread: None })
    }

    #[test]
    fn levels_grow_with_the_area() {
        let levels = Levels::of(&AREA);
        assert_eq!(levels, Levels { first: -7, second: -4, base: -1 });
        let tile = Tile { z: 0, x: 1, y: 2, step: 2 };
        assert_eq!(levels.needed(&tile, &AREA), [BlockAddress { level: -1, x: 1, y: 2 }]);
        // From above: blocks of the base, those outside of the area left out.
        let above = Tile { z: -2, x: 0, y: 0, step: 2 };
        assert_eq!(levels.needed(&above, &AREA).len(), 16);
        assert_eq!(levels.needed(&Tile { z: 0, step: 1, ..tile }, &AREA).len(), 4);
        assert_eq!(levels.full(&Tile { z: -4, x: 0, y: 0, step: 2 }), -5);
        let deep = Tile { z: 5, x: 40, y: 40, step: 2 };
        let drafts: Vec<i32> = levels.for_draft(&deep, &AREA).iter().map(|s| s.level).collect();
        assert_eq!(drafts, [3, 2, 1, 0, -1, -4, -7]);
    }

    #[test]
    fn tiles_are_picked_from_finer_blocks_and_drafted_from_coarser_ones() {
        let levels = Levels::of(&AREA);
        for tile in [
            Tile { z: -2, x: 0, y: 0, step: 2 },
            Tile { z: -1, x: 1, y: 1, step: 2 },
            Tile { z: 0, x: -1, y: 3, step: 2 },
            Tile { z: 0, x: 2, y: 0, step: 1 },
            Tile { z: 2, x: 5, y: 15, step: 4 },
        ] {
            let find = |addresses: Vec<BlockAddress>| -> Found {
                let one =
                    |address: BlockAddress| (address, plane(address, levels.margin(address.level)));
                addresses.into_iter().map(one).collect()
            };
            let empty = Gathered::new(&tile, &AREA);
            let full = empty.clone().of(&find(levels.needed(&tile, &AREA)), |b| Some(b.power(0)));
            let draft =
                empty.clone().of(&find(levels.for_draft(&tile, &AREA)), |b| Some(b.power(0)));
            let (n, step) = (tile.places(), tile.side_m() / tile.steps() as f64);
            for i in 0..n * n {
                let x = tile.x as f64 * tile.side_m() + (i % n) as f64 * step;
                let y = (tile.y + 1) as f64 * tile.side_m() - (i / n) as f64 * step;
                let site = Site::new(x, y);
                let known = if near(&AREA, site, step) {
                    (3.0 * x - 2.0 * y).round() as i16
                } else {
                    UNKNOWN
                };
                assert_eq!(full[i], known, "{tile:?} {i}");
                if near(&AREA, site, 0.0) {
                    assert!((draft[i] - known).abs() <= 1, "{tile:?} {i}: {} {known}", draft[i]);
                }
            }
        }
    }
}
