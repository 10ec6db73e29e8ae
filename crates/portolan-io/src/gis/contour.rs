//! Areas at or above a level, by marching squares on cell centres with linear interpolation along
//! the edges (Lorensen and Cline, 1987, in the plane). Towards an unmeasured cell, and towards
//! the edge of the map, an area ends with its cells: half a cell from their centres.

use std::collections::HashMap;

/// One band of a map as an image with north up.
pub(crate) struct Image<'a> {
    /// Line after line from the north; NaN where nothing is known.
    pub pixels: &'a [f32],
    pub width: usize,
}

/// Places in cells: along x from the western column, along y from the southern line.
pub(crate) type Ring = Vec<[f64; 2]>;

/// An outline, counterclockwise, and the holes in it, clockwise.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Polygon {
    pub outline: Ring,
    pub holes: Vec<Ring>,
}

impl Polygon {
    /// In cells.
    pub fn area(&self) -> f64 {
        signed_area(&self.outline) + self.holes.iter().map(|hole| signed_area(hole)).sum::<f64>()
    }
}

/// Crossings keep away from the centres of cells by this share, so that no two of them meet.
const APART: f64 = 1e-3;

/// The sides of a square.
#[derive(Clone, Copy)]
enum Side {
    South,
    East,
    North,
    West,
}

impl Image<'_> {
    fn height(&self) -> usize {
        self.pixels.len() / self.width.max(1)
    }

    /// The value of a cell; NaN around the map.
    fn at(&self, x: i64, y: i64) -> f64 {
        let (width, height) = (self.width as i64, self.height() as i64);
        if x < 0 || y < 0 || x >= width || y >= height {
            return f64::NAN;
        }
        f64::from(self.pixels[((height - 1 - y) * width + x) as usize])
    }

    /// The number of a square's side, the same for both squares that share it.
    fn side(&self, (x, y): (i64, i64), side: Side) -> u64 {
        let (x, y, upright) = match side {
            Side::South => (x, y, 0),
            Side::North => (x, y + 1, 0),
            Side::West => (x, y, 1),
            Side::East => (x + 1, y, 1),
        };
        let across = self.width as u64 + 2;
        (((y + 1) as u64) * across + (x + 1) as u64) * 2 + upright
    }

    /// Where the level crosses a side.
    fn crossing(&self, side: u64, level: f64) -> [f64; 2] {
        let across = self.width as u64 + 2;
        let (x, y) = ((side / 2 % across) as i64 - 1, (side / 2 / across) as i64 - 1);
        let upright = side % 2 == 1;
        let a = self.at(x, y);
        let b = if upright { self.at(x, y + 1) } else { self.at(x + 1, y) };
        let share = match a.is_nan() || b.is_nan() {
            true => 0.5,
            false => ((level - a) / (b - a)).clamp(APART, 1.0 - APART),
        };
        let (x, y) = (x as f64, y as f64);
        if upright { [x, y + share] } else { [x + share, y] }
    }

    /// The polygons of the area at or above a level.
    pub fn above(&self, level: f64) -> Vec<Polygon> {
        nested(self.rings(level))
    }

    /// Closed lines with the area on their left.
    fn rings(&self, level: f64) -> Vec<Ring> {
        use Side::{East, North, South, West};
        let mut next: HashMap<u64, u64> = HashMap::new();
        let inside = |value: f64| value >= level;
        for y in -1..self.height() as i64 {
            let (mut west, mut north_west) = (f64::NAN, f64::NAN);
            for x in -1..self.width as i64 {
                let (east, north_east) = (self.at(x + 1, y), self.at(x + 1, y + 1));
                let corners = [west, east, north_east, north_west];
                (west, north_west) = (east, north_east);
                let case = corners.iter().enumerate().map(|(n, v)| u8::from(inside(*v)) << n).sum();
                let joined = || inside(corners.iter().sum::<f64>() / 4.0);
                let lines: &[(Side, Side)] = match case {
                    1u8 => &[(South, West)],
                    2 => &[(East, South)],
                    3 => &[(East, West)],
                    4 => &[(North, East)],
                    5 if joined() => &[(South, East), (North, West)],
                    5 => &[(South, West), (North, East)],
                    6 => &[(North, South)],
                    7 => &[(North, West)],
                    8 => &[(West, North)],
                    9 => &[(South, North)],
                    10 if joined() => &[(West, South), (East, North)],
                    10 => &[(East, South), (West, North)],
                    11 => &[(East, North)],
                    12 => &[(West, East)],
                    13 => &[(South, East)],
                    14 => &[(West, South)],
                    _ => &[],
                };
                for (from, to) in lines {
                    next.insert(self.side((x, y), *from), self.side((x, y), *to));
                }
            }
        }
        // In the order of the map, not of the table.
        let mut starts: Vec<u64> = next.keys().copied().collect();
        starts.sort_unstable();
        let mut rings = Vec::new();
        for start in starts {
            let mut ring = Ring::new();
            let mut at = start;
            while let Some(to) = next.remove(&at) {
                ring.push(self.crossing(at, level));
                at = to;
            }
            if ring.len() >= 3 {
                rings.push(ring);
            }
        }
        rings
    }
}

/// The area of a ring, positive where it runs counterclockwise.
fn signed_area(ring: &[[f64; 2]]) -> f64 {
    let Some(&[x0, y0]) = ring.first() else { return 0.0 };
    let cross = |a: &[f64; 2], b: &[f64; 2]| (a[0] - x0) * (b[1] - y0) - (b[0] - x0) * (a[1] - y0);
    ring.windows(2).map(|pair| cross(&pair[0], &pair[1])).sum::<f64>() / 2.0
}

/// Puts every hole into the smallest outline around it.
fn nested(rings: Vec<Ring>) -> Vec<Polygon> {
    let (outlines, holes): (Vec<Ring>, Vec<Ring>) =
        rings.into_iter().partition(|ring| signed_area(ring) > 0.0);
    let boxes: Vec<[f64; 4]> = outlines.iter().map(|ring| extent(ring)).collect();
    let areas: Vec<f64> = outlines.iter().map(|ring| signed_area(ring)).collect();
    let mut polygons: Vec<Polygon> =
        outlines.into_iter().map(|outline| Polygon { outline, holes: Vec::new() }).collect();
    for hole in holes {
        let at = hole[0];
        let around = |n: &usize| {
            let [x0, y0, x1, y1] = boxes[*n];
            (x0..=x1).contains(&at[0])
                && (y0..=y1).contains(&at[1])
                && contains(&polygons[*n].outline, at)
        };
        let smallest =
            (0..polygons.len()).filter(around).min_by(|a, b| areas[*a].total_cmp(&areas[*b]));
        if let Some(n) = smallest {
            polygons[n].holes.push(hole);
        }
    }
    polygons
}

fn extent(ring: &[[f64; 2]]) -> [f64; 4] {
    let far = f64::INFINITY;
    ring.iter().fold([far, far, -far, -far], |[x0, y0, x1, y1], [x, y]| {
        [x0.min(*x), y0.min(*y), x1.max(*x), y1.max(*y)]
    })
}

fn contains(ring: &[[f64; 2]], [x, y]: [f64; 2]) -> bool {
    let mut inside = false;
    for (n, a) in ring.iter().enumerate() {
        let b = ring[(n + 1) % ring.len()];
        if (a[1] > y) != (b[1] > y) && x < a[0] + (y - a[1]) / (b[1] - a[1]) * (b[0] - a[0]) {
            inside = !inside;
        }
    }
    inside
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(lines: &[&[f32]]) -> (Vec<f32>, usize) {
        (lines.concat(), lines[0].len())
    }

    #[test]
    fn a_slope_is_cut_where_it_crosses_the_level() {
        let (pixels, width) = image(&[&[0.0, 10.0, 20.0, 30.0], &[0.0, 10.0, 20.0, 30.0]]);
        let found = Image { pixels: &pixels, width }.above(14.0);
        assert_eq!(found.len(), 1);
        let [x0, y0, x1, y1] = extent(&found[0].outline);
        assert!((x0 - 1.4).abs() < 1e-6 && (x1 - 3.5).abs() < 1e-9);
        assert_eq!((y0, y1), (-0.5, 1.5));
        assert!(signed_area(&found[0].outline) > 0.0);
    }

    #[test]
    fn a_gap_is_a_hole_and_an_island_in_it_is_its_own_polygon() {
        let mut pixels = vec![1.0f32; 81];
        for line in 2..7 {
            for column in 2..7 {
                pixels[line * 9 + column] = f32::NAN;
            }
        }
        pixels[4 * 9 + 4] = 1.0;
        let mut found = Image { pixels: &pixels, width: 9 }.above(0.0);
        found.sort_by(|a, b| b.area().total_cmp(&a.area()));
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].holes.len(), found[1].holes.len()), (1, 0));
        assert!(signed_area(&found[0].holes[0]) < 0.0);
        // Every corner of an area loses an eighth of a cell, every corner of a hole gains one.
        assert!((found[0].area() - (81.0 - 25.0 - 0.5 + 0.5)).abs() < 1e-9, "{}", found[0].area());
        assert!((found[1].area() - 0.5).abs() < 1e-9);
    }

    #[test]
    fn areas_of_falling_levels_grow_and_rings_close() {
        let pixels: Vec<f32> = (0..40 * 30)
            .map(|n| ((n % 40) as f32 * 0.7).sin() * 5.0 + ((n / 40) as f32 * 0.5).cos() * 4.0)
            .collect();
        let image = Image { pixels: &pixels, width: 40 };
        let mut before = 0.0;
        for level in [6.0, 3.0, 0.0, -3.0, -9.5] {
            let polygons = image.above(level);
            let area: f64 = polygons.iter().map(Polygon::area).sum();
            assert!(area >= before, "{level}");
            before = area;
            let all = polygons.iter().flat_map(|p| p.holes.iter().chain([&p.outline]));
            let steps =
                all.flat_map(|ring| (0..ring.len()).map(|n| (ring[n], ring[(n + 1) % ring.len()])));
            for (a, b) in steps {
                assert!((a[0] - b[0]).abs() <= 1.0 && (a[1] - b[1]).abs() <= 1.0);
            }
        }
        assert!((before - (1200.0 - 0.5)).abs() < 1e-9, "{before}");
    }
}
