//! Marks that look the same on a map and in its legend.

use super::canvas::{Canvas, INK, Rgb, WHITE};
use super::plot::Rect;

pub const UNKNOWN: Rgb = [228, 228, 230];
pub const UNKNOWN_HATCH: Rgb = [214, 214, 217];
pub const EMITTER: Rgb = [225, 20, 50];

/// A filled circle with a dark edge, to be seen on every colour.
pub fn draw_sensor(canvas: &mut Canvas, centre: (f64, f64), radius: f64, fill: Rgb) {
    let edge = (radius * 0.4).clamp(0.8, 1.3);
    canvas.disc(centre, radius + edge / 2.0, INK);
    canvas.disc(centre, radius - edge / 2.0, fill);
}

/// A red cross with a white edge: red is in none of the maps of power.
pub fn draw_emitter(canvas: &mut Canvas, centre: (f64, f64)) {
    canvas.cross(centre, 6.5, 6.0, WHITE);
    canvas.cross(centre, 6.5, 3.0, EMITTER);
}

/// The place of an emitter that is known within an ellipse: a dot, and the ellipse as far
/// as it lies in the plot.
pub fn draw_located(canvas: &mut Canvas, centre: (f64, f64), radii: (f64, f64), plot: Rect) {
    let (x, y) = (plot.x as f64, plot.y as f64);
    let clip = (x, y, x + plot.width as f64, y + plot.height as f64);
    canvas.ellipse(centre, radii, 4.4, clip, WHITE);
    canvas.disc(centre, 3.4, WHITE);
    canvas.ellipse(centre, radii, 2.2, clip, EMITTER);
    canvas.disc(centre, 2.3, EMITTER);
}

pub fn draw_unknown(canvas: &mut Canvas, area: Rect) {
    for y in area.y..area.y + area.height {
        for x in area.x..area.x + area.width {
            canvas.set(x, y, unknown(x, y));
        }
    }
}

/// The colour of a pixel of which nothing is known; hatched, so that no value looks like it.
pub fn unknown(x: i64, y: i64) -> Rgb {
    if (x + y).rem_euclid(7) == 0 { UNKNOWN_HATCH } else { UNKNOWN }
}
