//! From metres to places on the page, and the rulers beside a map.

use ndarray::{Array2, ArrayView2, s};
use portolan::{Grid, Region, Site};

use crate::picture::axis::Ticks;
use crate::picture::scene::{Bounds, Point};

/// Which way the axes of a picture run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Axes {
    /// x to the right and y up, as on every map.
    #[default]
    Xy,
    /// The first row at the top: x down and y to the right, as an array is printed.
    Rows,
}

impl Axes {
    /// A field of rows along x and columns along y as it is seen: lines from the top.
    pub fn seen(self, field: &Array2<f64>) -> ArrayView2<'_, f64> {
        match self {
            Axes::Xy => field.t().slice_move(s![..;-1, ..]),
            Axes::Rows => field.view(),
        }
    }
}

/// The rectangle that a grid's cells cover.
pub fn covered(grid: Grid) -> Region {
    let (origin, half) = (grid.origin(), 0.5 * grid.cell_m());
    let end = |start: f64, cells: usize| start + (cells as f64 - 0.5) * grid.cell_m();
    Region {
        low: Site::new(origin.x_m - half, origin.y_m - half),
        high: Site::new(end(origin.x_m, grid.rows()), end(origin.y_m, grid.cols())),
    }
}

/// The smallest rectangle around two.
pub fn union(a: Region, b: Region) -> Region {
    Region {
        low: Site::new(a.low.x_m.min(b.low.x_m), a.low.y_m.min(b.low.y_m)),
        high: Site::new(a.high.x_m.max(b.high.x_m), a.high.y_m.max(b.high.y_m)),
    }
}

/// A rectangle of metres at a place on the page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct View {
    pub region: Region,
    pub axes: Axes,
    /// Points per metre.
    pub scale: f64,
    /// The top left corner on the page.
    pub corner: Point,
}

impl View {
    /// About `target` points on the longer side; a strip may be longer, lest its other side vanish.
    pub fn sized(region: Region, axes: Axes, target: f64) -> Self {
        let (long, short) = (
            region.width_m().max(region.height_m()).max(f64::MIN_POSITIVE),
            region.width_m().min(region.height_m()),
        );
        let target = if long > 3.0 * short { 1.5 * target } else { target };
        Self { region, axes, scale: target / long, corner: (0.0, 0.0) }
    }

    pub fn at(self, corner: Point) -> Self {
        Self { corner, ..self }
    }

    pub fn size(&self) -> (f64, f64) {
        let (x, y) = (self.region.width_m() * self.scale, self.region.height_m() * self.scale);
        match self.axes {
            Axes::Xy => (x, y),
            Axes::Rows => (y, x),
        }
    }

    pub fn bounds(&self) -> Bounds {
        let ((left, top), (width, height)) = (self.corner, self.size());
        Bounds { left, top, right: left + width, bottom: top + height }
    }

    /// Where a place in metres lies on the page.
    pub fn place(&self, site: Site) -> Point {
        let (left, top) = self.corner;
        let Region { low, high } = self.region;
        match self.axes {
            Axes::Xy => {
                (left + (site.x_m - low.x_m) * self.scale, top + (high.y_m - site.y_m) * self.scale)
            }
            Axes::Rows => {
                (left + (site.y_m - low.y_m) * self.scale, top + (site.x_m - low.x_m) * self.scale)
            }
        }
    }

    /// A vector of metres as one of points.
    pub fn turn(&self, (x, y): Point) -> Point {
        match self.axes {
            Axes::Xy => (x * self.scale, -y * self.scale),
            Axes::Rows => (y * self.scale, x * self.scale),
        }
    }

    pub fn holds(&self, site: Site) -> bool {
        let Region { low, high } = self.region;
        (low.x_m..=high.x_m).contains(&site.x_m) && (low.y_m..=high.y_m).contains(&site.y_m)
    }
}

/// Round places along one side of a map, with their labels and the name of the axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Ruler {
    /// Metres and labels.
    pub ticks: Vec<(f64, String)>,
    pub name: String,
}

/// From here on an axis counts from a round number near its start.
const FAR_M: f64 = 1e5;

impl Ruler {
    /// A ruler from `low` to `high` metres over `points`; labels take `room` of them. `kilo` counts
    /// in kilometres.
    pub fn new(
        name: &str,
        (low, high): (f64, f64),
        points: f64,
        kilo: bool,
        room: impl Fn(&str) -> f64,
    ) -> Self {
        let (metres, unit) = if kilo { (1e3, "km") } else { (1.0, "m") };
        let range = high - low;
        let far = low.abs().max(high.abs());
        // Northings of millions of metres leave no digit for what differs.
        let base = if far >= FAR_M && range > 0.0 && range < far / 20.0 {
            let step = 10f64.powf(range.log10().ceil());
            (low / step).floor() * step
        } else {
            0.0
        };
        let (from, to) = ((low - base) / metres, (high - base) / metres);
        let room = |label: &str| room(&minus(label)).ceil() as i64;
        let ticks = Ticks::fitting(from, to, points as i64, room);
        let ticks = ticks.values.iter().zip(&ticks.labels);
        let ticks = ticks.map(|(v, label)| (base + v * metres, minus(label))).collect();
        let name = if base == 0.0 {
            format!("{name} [{unit}]")
        } else {
            let sign = if base < 0.0 { '+' } else { '−' };
            format!("{name} {sign} {} [{unit}]", grouped((base / metres).abs()))
        };
        Self { ticks, name }
    }
}

/// With the sign that is as wide as a plus.
pub fn minus(label: &str) -> String {
    label.replace('-', "−")
}

/// A whole number in groups of three digits.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            out.push('\u{a0}');
        }
        out.push(digit);
    }
    out
}

/// The longest round length of at most `most` metres: 1, 2 or 5 times a power of ten.
pub fn round_length(most: f64) -> f64 {
    let power = 10f64.powf(most.log10().floor());
    [5.0, 2.0, 1.0].map(|m| m * power).into_iter().find(|length| *length <= most).unwrap_or(power)
}

/// A length as people say it.
pub fn said_length(metres: f64) -> String {
    if metres >= 1000.0 {
        format!("{} km", metres / 1000.0)
    } else if metres >= 1.0 {
        format!("{metres} m")
    } else {
        format!("{} m", (metres * 1e6).round() / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn y_is_up_and_x_to_the_right() {
        let field = array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
        let seen = Axes::Xy.seen(&field);
        assert_eq!(seen, array![[3.0, 6.0], [2.0, 5.0], [1.0, 4.0]]);
        assert_eq!(Axes::Rows.seen(&field), field);
        let grid = Grid::new(2, 3, 10.0).unwrap().with_origin(Site::new(100.0, 50.0)).unwrap();
        let view = View::sized(covered(grid), Axes::Xy, 300.0);
        assert_eq!(view.size(), (200.0, 300.0));
        assert_eq!(view.place(Site::new(100.0, 50.0)), (50.0, 250.0));
        assert_eq!(view.turn((1.0, 1.0)), (10.0, -10.0));
        let view = View::sized(covered(grid), Axes::Rows, 300.0).at((5.0, 6.0));
        assert_eq!(view.size(), (300.0, 200.0));
        assert_eq!(view.place(Site::new(110.0, 50.0)), (55.0, 156.0));
    }

    #[test]
    fn rulers_count_from_near_where_they_are() {
        let ruler = |low, high, kilo| Ruler::new("y", (low, high), 300.0, kilo, |_| 30.0);
        let utm = ruler(5_482_310.0, 5_483_090.0, false);
        assert_eq!(utm.name, "y − 5\u{a0}482\u{a0}000 [m]");
        assert_eq!(utm.ticks[0], (5_482_400.0, "400".to_string()));
        let plain = ruler(-20.0, 640.0, false);
        assert_eq!((plain.name.as_str(), plain.ticks[0].1.as_str()), ("y [m]", "0"));
        let wide = ruler(-20_000.0, 50_000.0, true);
        assert_eq!((wide.name.as_str(), wide.ticks[0].1.as_str()), ("y [km]", "−20"));
        assert_eq!([730.0, 1000.0, 0.3, 499.0].map(round_length), [500.0, 1000.0, 0.2, 200.0]);
        assert_eq!([2000.0, 50.0, 0.2].map(said_length), ["2 km", "50 m", "0.2 m"]);
    }
}
