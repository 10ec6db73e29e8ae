//! A floor plan or aerial image under a map.

use std::sync::Arc;

use portolan::{Region, Site};

use crate::picture::scene::{Bounds, Pixels, Point};

/// Pixels along the longer side; finer images are averaged.
const FINEST: u32 = 4096;

/// A floor plan or aerial image and where it lies.
#[derive(Clone, Debug)]
pub struct Underlay {
    pub image: Arc<Pixels>,
    /// The corner of the image's first pixel.
    pub corner: Site,
    /// Metres along x and y from that corner to the right and to the lower end.
    pub along: Point,
    pub down: Point,
}

impl Underlay {
    /// An image with north up that covers a rectangle.
    pub fn covering(image: Pixels, region: Region) -> Self {
        let corner = Site::new(region.low.x_m, region.high.y_m);
        let (along, down) = ((region.width_m(), 0.0), (0.0, -region.height_m()));
        Self { image: fine_enough(image), corner, along, down }
    }

    /// An image through three points: pixels from its top left corner, and metres. `None` where
    /// they lie on a line.
    pub fn through(image: Pixels, points: &[[f64; 4]; 3]) -> Option<Self> {
        let [a, b, c] = points;
        let (b, c) = ([0, 1, 2, 3].map(|i| b[i] - a[i]), [0, 1, 2, 3].map(|i| c[i] - a[i]));
        let cross = |i: usize, j: usize| b[i] * c[j] - b[j] * c[i];
        let area = cross(0, 1);
        let size = (b[0].hypot(b[1]) * c[0].hypot(c[1])).max(f64::MIN_POSITIVE);
        let place = b[2].hypot(b[3]) * c[2].hypot(c[3]);
        if area.abs() <= 1e-9 * size || cross(2, 3).abs() <= 1e-9 * place {
            return None;
        }
        // Metres per pixel along x and y, to the right and down.
        let right = |i: usize| (b[i] * c[1] - c[i] * b[1]) / area;
        let down = |i: usize| (c[i] * b[0] - b[i] * c[0]) / area;
        let (right, down) = ((right(2), right(3)), (down(2), down(3)));
        let corner =
            Site::new(a[2] - a[0] * right.0 - a[1] * down.0, a[3] - a[0] * right.1 - a[1] * down.1);
        let times = |v: Point, n: u32| (v.0 * f64::from(n), v.1 * f64::from(n));
        let (along, down) = (times(right, image.width()), times(down, image.height()));
        let whole = [along.0, along.1, down.0, down.1, corner.x_m, corner.y_m];
        let finite = whole.iter().all(|x| x.is_finite());
        finite.then(|| Self { image: fine_enough(image), corner, along, down })
    }

    /// The rectangle that the image needs.
    pub fn region(&self) -> Region {
        let Site { x_m, y_m, .. } = self.corner;
        let (a, d) = (self.along, self.down);
        let corners = [(0.0, 0.0), a, d, (a.0 + d.0, a.1 + d.1)].map(|(x, y)| (x_m + x, y_m + y));
        let Bounds { left, top, right, bottom } =
            Bounds::around(corners).expect("an image has four corners");
        Region { low: Site::new(left, top), high: Site::new(right, bottom) }
    }
}

/// No finer than a picture can show.
fn fine_enough(image: Pixels) -> Arc<Pixels> {
    let factor = image.width().max(image.height()).div_ceil(FINEST);
    Arc::new(if factor > 1 { image.reduced(factor) } else { image })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_points_place_an_image_as_its_extent_does() {
        let image = Pixels::from_fn(200, 100, |_, _| [0; 4]);
        let region = Region { low: Site::new(10.0, 20.0), high: Site::new(50.0, 40.0) };
        let covering = Underlay::covering(image.clone(), region);
        let points = [[0.0, 0.0, 10.0, 40.0], [200.0, 0.0, 50.0, 40.0], [50.0, 100.0, 20.0, 20.0]];
        let through = Underlay::through(image.clone(), &points).unwrap();
        assert_eq!(
            (through.corner, through.along, through.down),
            (covering.corner, covering.along, covering.down)
        );
        assert_eq!(covering.region(), region);
        // Turned by a right angle: the image's right is north.
        let turned = [[0.0, 0.0, 0.0, 0.0], [200.0, 0.0, 0.0, 20.0], [0.0, 100.0, 10.0, 0.0]];
        let turned = Underlay::through(image.clone(), &turned).unwrap();
        assert_eq!((turned.along, turned.down), ((0.0, 20.0), (10.0, 0.0)));
        let line = [[0.0, 0.0, 0.0, 0.0], [5.0, 5.0, 1.0, 1.0], [9.0, 9.0, 2.0, 3.0]];
        assert!(Underlay::through(image, &line).is_none());
    }
}
