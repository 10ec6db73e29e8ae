//! A scene as pixels.

use tiny_skia::{
    FillRule, FilterQuality, LineCap, LineJoin, Mask, Paint, PathBuilder, Pixmap, PixmapPaint,
    Stroke, StrokeDash, Transform,
};

use super::path::{Path, Segment};
use super::{Ink, Item, Pen, Pixels, Placement, Scene};
use crate::picture::PictureError;

/// More pixels are refused.
const MOST_PIXELS: f64 = 200e6;

pub(super) fn draw(scene: &Scene, width: u32) -> Result<Pixels, PictureError> {
    let scale = f64::from(width) / scene.width;
    let height = (scene.height * scale).round().max(1.0);
    let too_large = PictureError::TooLarge { width, height };
    if f64::from(width) * height > MOST_PIXELS {
        return Err(too_large);
    }
    let mut pixmap = Pixmap::new(width, height as u32).ok_or(too_large)?;
    pixmap.fill(tiny_skia::Color::WHITE);
    let scale = Transform::from_scale(scale as f32, scale as f32);
    draw_items(&mut pixmap, &scene.items, scale, None);
    // On a white page every pixel is opaque, and so is as it was before it was multiplied.
    Ok(Pixels::from_data(width, height as u32, pixmap.take()))
}

fn draw_items(pixmap: &mut Pixmap, items: &[Item], scale: Transform, mask: Option<&Mask>) {
    for item in items {
        match item {
            Item::Fill { path, ink } => fill(pixmap, path, *ink, scale, mask),
            Item::Stroke { path, pen } => stroke(pixmap, path, *pen, scale, mask),
            Item::Text { outline, ink, rim, .. } => {
                if *rim > 0.0 {
                    let white = Ink { rgb: [255; 3], alpha: 0.85 };
                    stroke(pixmap, outline, Pen::new(white, 2.0 * rim), scale, mask);
                }
                fill(pixmap, outline, *ink, scale, mask);
            }
            Item::Image { pixels, place, opacity, smooth } => {
                image(pixmap, pixels, place, (*opacity, *smooth), scale, mask);
            }
            Item::Clip { to, items } => {
                let Some(path) = outline(to) else { continue };
                let cut = match mask {
                    None => Mask::new(pixmap.width(), pixmap.height()).map(|mut mask| {
                        mask.fill_path(&path, FillRule::Winding, true, scale);
                        mask
                    }),
                    Some(outer) => {
                        let mut mask = outer.clone();
                        mask.intersect_path(&path, FillRule::Winding, true, scale);
                        Some(mask)
                    }
                };
                if let Some(cut) = cut {
                    draw_items(pixmap, items, scale, Some(&cut));
                }
            }
        }
    }
}

fn fill(pixmap: &mut Pixmap, path: &Path, ink: Ink, scale: Transform, mask: Option<&Mask>) {
    if let Some(path) = outline(path) {
        pixmap.fill_path(&path, &paint(ink), FillRule::Winding, scale, mask);
    }
}

fn stroke(pixmap: &mut Pixmap, path: &Path, pen: Pen, scale: Transform, mask: Option<&Mask>) {
    let Some(path) = outline(path) else { return };
    let dash = pen.dashes.and_then(|d| StrokeDash::new(d.map(|x| x as f32).to_vec(), 0.0));
    let line_cap = if dash.is_some() { LineCap::Butt } else { LineCap::Round };
    let width = pen.width as f32;
    let stroke = Stroke { width, dash, line_cap, line_join: LineJoin::Round, ..Stroke::default() };
    pixmap.stroke_path(&path, &paint(pen.ink), &stroke, scale, mask);
}

fn image(
    pixmap: &mut Pixmap,
    pixels: &Pixels,
    place: &Placement,
    (opacity, smooth): (f64, bool),
    scale: Transform,
    mask: Option<&Mask>,
) {
    // Finer than the page: means, lest thin lines come and go.
    let drawn = f64::from(scale.sx) * place.along.0.hypot(place.along.1);
    let factor = (f64::from(pixels.width()) / drawn.max(1.0)).min(64.0) as u32;
    let coarse = (smooth && factor > 1).then(|| pixels.reduced(factor));
    let covered = |n: u32, of: u32| f64::from(n * factor.max(1)) / f64::from(of);
    let (stretch, pixels) = match &coarse {
        // Whole squares may reach beyond the image's own edge.
        Some(coarse) => (
            (covered(coarse.width(), pixels.width()), covered(coarse.height(), pixels.height())),
            coarse,
        ),
        None => ((1.0, 1.0), pixels),
    };
    let multiplied: Vec<u8> = pixels
        .data()
        .chunks_exact(4)
        .flat_map(|p| {
            let times = |c: u8| ((u16::from(c) * u16::from(p[3]) + 127) / 255) as u8;
            [times(p[0]), times(p[1]), times(p[2]), p[3]]
        })
        .collect();
    let size = tiny_skia::IntSize::from_wh(pixels.width(), pixels.height());
    let Some(source) = size.and_then(|size| Pixmap::from_vec(multiplied, size)) else { return };
    let columns = f64::from(pixels.width()) / stretch.0;
    let lines = f64::from(pixels.height()) / stretch.1;
    let transform = Transform::from_row(
        (place.along.0 / columns) as f32,
        (place.along.1 / columns) as f32,
        (place.down.0 / lines) as f32,
        (place.down.1 / lines) as f32,
        place.corner.0 as f32,
        place.corner.1 as f32,
    );
    let quality = if smooth { FilterQuality::Bilinear } else { FilterQuality::Nearest };
    let paint = PixmapPaint { opacity: opacity as f32, quality, ..PixmapPaint::default() };
    pixmap.draw_pixmap(0, 0, source.as_ref(), &paint, transform.post_concat(scale), mask);
}

fn paint(ink: Ink) -> Paint<'static> {
    let [r, g, b] = ink.rgb;
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    paint.set_color_rgba8(r, g, b, (255.0 * ink.alpha).round() as u8);
    paint
}

fn outline(path: &Path) -> Option<tiny_skia::Path> {
    let mut builder = PathBuilder::new();
    let f = |x: f64| x as f32;
    for segment in &path.segments {
        match *segment {
            Segment::Move((x, y)) => builder.move_to(f(x), f(y)),
            Segment::Line((x, y)) => builder.line_to(f(x), f(y)),
            Segment::Curve(a, b, c) => {
                builder.cubic_to(f(a.0), f(a.1), f(b.0), f(b.1), f(c.0), f(c.1));
            }
            Segment::Close => builder.close(),
        }
    }
    builder.finish()
}
