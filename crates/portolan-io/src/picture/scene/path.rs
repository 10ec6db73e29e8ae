//! Outlines made of lines and curves.

/// A place in points from the top left corner.
pub type Point = (f64, f64);

/// How far the handles of a quarter circle reach, in radii.
const QUARTER: f64 = 0.552_284_75;

/// One step of an outline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Segment {
    Move(Point),
    Line(Point),
    Curve(Point, Point, Point),
    Close,
}

/// Outlines, filled by their winding number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Path {
    pub segments: Vec<Segment>,
}

impl Path {
    pub fn rect(x: f64, y: f64, width: f64, height: f64) -> Self {
        let mut path = Self::default();
        path.add_rect(x, y, width, height);
        path
    }

    pub fn add_rect(&mut self, x: f64, y: f64, width: f64, height: f64) {
        let corners = [(x, y), (x + width, y), (x + width, y + height), (x, y + height)];
        self.add_polygon(&corners);
    }

    pub fn polygon(corners: &[Point]) -> Self {
        let mut path = Self::default();
        path.add_polygon(corners);
        path
    }

    fn add_polygon(&mut self, corners: &[Point]) {
        self.add_polyline(corners);
        self.segments.push(Segment::Close);
    }

    pub fn polyline(points: &[Point]) -> Self {
        let mut path = Self::default();
        path.add_polyline(points);
        path
    }

    pub fn add_polyline(&mut self, points: &[Point]) {
        for (place, point) in points.iter().enumerate() {
            self.segments.push(if place == 0 {
                Segment::Move(*point)
            } else {
                Segment::Line(*point)
            });
        }
    }

    /// Adds a stroke from one place to another.
    pub fn line(&mut self, from: Point, to: Point) {
        self.segments.extend([Segment::Move(from), Segment::Line(to)]);
    }

    pub fn ellipse((x, y): Point, (rx, ry): (f64, f64)) -> Self {
        let (kx, ky) = (QUARTER * rx, QUARTER * ry);
        let curve = |a: Point, b: Point, c: Point| {
            let at = |(dx, dy): Point| (x + dx, y + dy);
            Segment::Curve(at(a), at(b), at(c))
        };
        Self {
            segments: vec![
                Segment::Move((x + rx, y)),
                curve((rx, ky), (kx, ry), (0.0, ry)),
                curve((-kx, ry), (-rx, ky), (-rx, 0.0)),
                curve((-rx, -ky), (-kx, -ry), (0.0, -ry)),
                curve((kx, -ry), (rx, -ky), (rx, 0.0)),
                Segment::Close,
            ],
        }
    }

    pub fn circle(centre: Point, radius: f64) -> Self {
        Self::ellipse(centre, (radius, radius))
    }

    /// All corners and handles: what they surround holds the path.
    pub fn points(&self) -> impl Iterator<Item = Point> + '_ {
        self.segments.iter().flat_map(|segment| match *segment {
            Segment::Move(a) | Segment::Line(a) => vec![a],
            Segment::Curve(a, b, c) => vec![a, b, c],
            Segment::Close => Vec::new(),
        })
    }
}
