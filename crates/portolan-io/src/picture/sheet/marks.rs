//! Marks that look the same on a map and in its legend.

use crate::picture::colour::{INK, Rgb, WHITE};
use crate::picture::scene::{Ink, Path, Pen, Point, Scene};

/// Where nothing is known, or nothing is drawn but marks.
pub const UNKNOWN: Rgb = [228, 228, 230];
const EMITTER: Rgb = [225, 20, 50];

/// A dot with a dark edge, to be seen on every colour.
pub fn draw_sensor(scene: &mut Scene, centre: Point, radius: f64, fill: Rgb) {
    let edge = (0.35 * radius).clamp(0.5, 0.9);
    scene.fill(Path::circle(centre, radius + edge / 2.0), INK);
    scene.fill(Path::circle(centre, radius - edge / 2.0), fill);
}

/// A red cross with a white edge: red is in none of the maps of power.
pub fn draw_emitter(scene: &mut Scene, (x, y): Point) {
    let mut cross = Path::default();
    cross.line((x - 4.4, y - 4.4), (x + 4.4, y + 4.4));
    cross.line((x - 4.4, y + 4.4), (x + 4.4, y - 4.4));
    scene.stroke(cross.clone(), Pen::new(WHITE, 4.2));
    scene.stroke(cross, Pen::new(EMITTER, 2.2));
}

/// The place of an emitter that is known within an ellipse: a dot, and the ellipse.
pub fn draw_located(scene: &mut Scene, centre: Point, radii: (f64, f64)) {
    let ellipse = Path::ellipse(centre, radii);
    scene.stroke(ellipse.clone(), Pen::new(WHITE, 3.2));
    scene.fill(Path::circle(centre, 2.6), WHITE);
    scene.stroke(ellipse, Pen::new(EMITTER, 1.6));
    scene.fill(Path::circle(centre, 1.8), EMITTER);
}

/// Hatches an area of which nothing is known, so that no value looks like it.
pub fn draw_unknown(scene: &mut Scene, area: Path) {
    let tint = Ink { rgb: UNKNOWN, alpha: 0.6 };
    scene.hatch(area, tint, Pen::new([150, 150, 156], 0.9), 6.0);
}
