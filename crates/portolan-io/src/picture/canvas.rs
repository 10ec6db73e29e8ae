//! An RGB buffer with anti-aliased marks and text. Positions count pixels from the top left corner;
//! the centre of the first pixel is at (0.5, 0.5).

use super::text::Font;

pub type Rgb = [u8; 3];

pub const WHITE: Rgb = [255; 3];
/// Text, frames and ticks: softer than black on a projector.
pub const INK: Rgb = [38, 38, 42];
/// Text of second rank.
pub const QUIET: Rgb = [96, 96, 104];

/// Which point of a text its position names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Start,
    Middle,
    End,
}

impl Align {
    fn shift(self, length: i64) -> i64 {
        match self {
            Align::Start => 0,
            Align::Middle => length / 2,
            Align::End => length,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
    lost_ink: usize,
}

impl Canvas {
    /// A white canvas.
    pub fn new(width: usize, height: usize) -> Self {
        Self { width, height, pixels: vec![255; width * height * 3], lost_ink: 0 }
    }

    pub fn width(&self) -> usize {
        self.width
    }

    pub fn height(&self) -> usize {
        self.height
    }

    /// Row-major RGB bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.pixels
    }

    /// How many pixels of text fell outside: a layout that is right loses none.
    pub fn lost_ink(&self) -> usize {
        self.lost_ink
    }

    pub fn pixel(&self, x: usize, y: usize) -> Rgb {
        let at = (y * self.width + x) * 3;
        [self.pixels[at], self.pixels[at + 1], self.pixels[at + 2]]
    }

    /// Mixes a colour into a pixel; says whether the pixel exists.
    fn blend(&mut self, x: i64, y: i64, colour: Rgb, coverage: f64) -> bool {
        if x < 0 || y < 0 || x >= self.width as i64 || y >= self.height as i64 {
            return false;
        }
        let at = (y as usize * self.width + x as usize) * 3;
        for (old, new) in self.pixels[at..at + 3].iter_mut().zip(colour) {
            let mixed = f64::from(*old) + coverage * (f64::from(new) - f64::from(*old));
            *old = mixed.round() as u8;
        }
        true
    }

    pub fn set(&mut self, x: i64, y: i64, colour: Rgb) {
        self.blend(x, y, colour, 1.0);
    }

    pub fn fill_rect(&mut self, x: i64, y: i64, width: i64, height: i64, colour: Rgb) {
        self.tint(x, y, width, height, colour, 1.0);
    }

    /// A frame one pixel wide, drawn just outside the given rectangle.
    pub fn frame(&mut self, x: i64, y: i64, width: i64, height: i64, colour: Rgb) {
        self.fill_rect(x - 1, y - 1, width + 2, 1, colour);
        self.fill_rect(x - 1, y + height, width + 2, 1, colour);
        self.fill_rect(x - 1, y, 1, height, colour);
        self.fill_rect(x + width, y, 1, height, colour);
    }

    /// A straight stroke with round ends.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), width: f64, colour: Rgb) {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let length2 = dx * dx + dy * dy;
        let bounds = (from.0.min(to.0), from.1.min(to.1), from.0.max(to.0), from.1.max(to.1));
        self.shape(bounds, width / 2.0, colour, |x, y| {
            let (px, py) = (x - from.0, y - from.1);
            let t =
                if length2 > 0.0 { ((px * dx + py * dy) / length2).clamp(0.0, 1.0) } else { 0.0 };
            (px - t * dx).hypot(py - t * dy) - width / 2.0
        });
    }

    pub fn disc(&mut self, centre: (f64, f64), radius: f64, colour: Rgb) {
        let (cx, cy) = centre;
        self.shape((cx, cy, cx, cy), radius, colour, |x, y| (x - cx).hypot(y - cy) - radius);
    }

    pub fn ring(&mut self, centre: (f64, f64), radius: f64, width: f64, colour: Rgb) {
        let (cx, cy) = centre;
        self.shape((cx, cy, cx, cy), radius + width, colour, |x, y| {
            ((x - cx).hypot(y - cy) - radius).abs() - width / 2.0
        });
    }

    /// The outline of an ellipse with half axes along x and y, left out where outside `clip`
    /// (left, top, right, bottom).
    pub fn ellipse(
        &mut self,
        centre: (f64, f64),
        (rx, ry): (f64, f64),
        width: f64,
        clip: (f64, f64, f64, f64),
        colour: Rgb,
    ) {
        let (cx, cy) = centre;
        let (rx, ry) = (rx.max(0.5), ry.max(0.5));
        let (left, top, right, bottom) = clip;
        let bounds =
            ((cx - rx).max(left), (cy - ry).max(top), (cx + rx).min(right), (cy + ry).min(bottom));
        self.shape(bounds, width, colour, |x, y| {
            if x < left || x > right || y < top || y > bottom {
                return 1.0;
            }
            // Distance to first order: the implicit function over the length of its gradient.
            let (u, v) = ((x - cx) / rx, (y - cy) / ry);
            let level = u.hypot(v);
            if level == 0.0 {
                return rx.min(ry) - width / 2.0;
            }
            let slope = (u / rx).hypot(v / ry);
            (level * (level - 1.0) / slope).abs() - width / 2.0
        });
    }

    /// Mixes a colour into a rectangle.
    pub fn tint(&mut self, x: i64, y: i64, width: i64, height: i64, colour: Rgb, share: f64) {
        for y in y.max(0)..(y + height).min(self.height as i64) {
            for x in x.max(0)..(x + width).min(self.width as i64) {
                self.blend(x, y, colour, share);
            }
        }
    }

    /// A diagonal cross whose strokes reach `arm` pixels along each axis.
    pub fn cross(&mut self, centre: (f64, f64), arm: f64, width: f64, colour: Rgb) {
        let (cx, cy) = centre;
        self.line((cx - arm, cy - arm), (cx + arm, cy + arm), width, colour);
        self.line((cx - arm, cy + arm), (cx + arm, cy - arm), width, colour);
    }

    /// Fills where `distance` (signed, in pixels, negative inside) says so.
    fn shape(
        &mut self,
        bounds: (f64, f64, f64, f64),
        reach: f64,
        colour: Rgb,
        distance: impl Fn(f64, f64) -> f64,
    ) {
        let (x0, y0, x1, y1) = bounds;
        if !(x0 + y0 + x1 + y1).is_finite() {
            return;
        }
        let first = |v: f64| (v - reach - 1.0).floor().max(0.0) as i64;
        let last = |v: f64, size: usize| (v + reach + 1.0).ceil().min(size as f64) as i64;
        for y in first(y0)..last(y1, self.height) {
            for x in first(x0)..last(x1, self.width) {
                let coverage = 0.5 - distance(x as f64 + 0.5, y as f64 + 0.5);
                if coverage > 0.0 {
                    self.blend(x, y, colour, coverage.min(1.0));
                }
            }
        }
    }

    /// Horizontal text; `y` is the top of the line.
    pub fn text(&mut self, x: i64, y: i64, text: &str, font: Font, align: Align, colour: Rgb) {
        let left = x - align.shift(font.length(text));
        font.ink(text, |dx, dy, coverage| {
            let drawn = self.blend(left + dx, y + dy, colour, coverage);
            self.lost_ink += usize::from(!drawn);
        });
    }

    /// Text that reads upwards; `x` is the left edge of the line, `y` its start, middle or end.
    pub fn text_up(&mut self, x: i64, y: i64, text: &str, font: Font, align: Align, colour: Rgb) {
        let bottom = y + align.shift(font.length(text)) - 1;
        font.ink(text, |dx, dy, coverage| {
            let drawn = self.blend(x + dy, bottom - dx, colour, coverage);
            self.lost_ink += usize::from(!drawn);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disc_is_full_inside_empty_outside_and_soft_at_its_edge() {
        let mut canvas = Canvas::new(21, 21);
        canvas.disc((10.5, 10.5), 6.3, [0; 3]);
        assert_eq!(canvas.pixel(10, 10), [0; 3]);
        assert_eq!(canvas.pixel(10, 2), WHITE);
        let edge = canvas.pixel(10, 4)[0];
        assert!(edge > 20 && edge < 235, "{edge}");
    }

    #[test]
    fn an_ellipse_is_a_line_that_keeps_inside_its_clip() {
        let mut canvas = Canvas::new(41, 31);
        canvas.ellipse((20.5, 15.5), (15.0, 8.0), 2.0, (0.0, 0.0, 30.0, 31.0), [0; 3]);
        assert_eq!(canvas.pixel(20, 15), WHITE);
        assert_eq!(canvas.pixel(5, 15), [0; 3]);
        assert_eq!(canvas.pixel(20, 7), [0; 3]);
        assert_eq!(canvas.pixel(35, 15), WHITE, "outside the clip");
    }

    #[test]
    fn shapes_may_leave_the_canvas_or_be_nowhere() {
        let mut canvas = Canvas::new(5, 4);
        canvas.line((-1e9, 2.0), (1e9, 2.0), 1.0, [0; 3]);
        canvas.cross((-3.0, 80.0), 5.0, 2.0, [0; 3]);
        canvas.ring((f64::NAN, 1.0), 5.0, 2.0, [0; 3]);
        canvas.ellipse((2.0, f64::NAN), (3.0, 1e9), 2.0, (0.0, 0.0, 5.0, 4.0), [0; 3]);
        canvas.fill_rect(-5, -5, 6, 6, [9; 3]);
        assert_eq!(canvas.pixel(0, 0), [9; 3]);
        assert_eq!(canvas.pixel(4, 0), WHITE);
    }

    #[test]
    fn text_reports_the_ink_it_loses() {
        let mut canvas = Canvas::new(60, 40);
        canvas.text(30, 4, "dB", Font::LABEL, Align::Middle, INK);
        assert_eq!(canvas.lost_ink(), 0);
        assert!(canvas.bytes().iter().any(|&b| b < 100));
        canvas.text_up(4, 20, "dBm/MHz", Font::LABEL, Align::Middle, INK);
        assert!(canvas.lost_ink() > 0);
    }
}
