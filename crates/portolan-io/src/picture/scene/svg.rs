//! A scene as SVG: text as outlines that carry their words for readers that ask.

use std::fmt::Write as _;
use std::sync::Arc;

use super::path::{Path, Segment};
use super::{Ink, Item, Pen, Pixels, Placement, Scene};
use crate::picture::colour::Rgb;

pub(super) fn write(scene: &Scene, width: f64) -> String {
    let height = scene.height * width / scene.width;
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}pt\" height=\"{}pt\" \
         viewBox=\"0 0 {} {}\" role=\"img\">",
        number(width),
        number(height),
        number(scene.width),
        number(scene.height)
    );
    let _ = writeln!(out, "<title>{}</title>", escaped(&scene.title));
    let _ = writeln!(out, "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>");
    let mut named = Named::default();
    count_images(&scene.items, &mut named);
    write_items(&mut out, &scene.items, &mut named);
    out.push_str("</svg>\n");
    out
}

/// What is named in the file: how many clips, and the images with how often each is drawn and
/// whether it was written.
#[derive(Default)]
struct Named<'a> {
    clips: usize,
    images: Vec<(&'a Arc<Pixels>, usize, bool)>,
}

fn count_images<'a>(items: &'a [Item], named: &mut Named<'a>) {
    for item in items {
        match item {
            Item::Image { pixels, .. } => {
                match named.images.iter_mut().find(|(known, ..)| Arc::ptr_eq(known, pixels)) {
                    Some((_, count, _)) => *count += 1,
                    None => named.images.push((pixels, 1, false)),
                }
            }
            Item::Clip { items, .. } => count_images(items, named),
            _ => {}
        }
    }
}

fn write_items<'a>(out: &mut String, items: &'a [Item], named: &mut Named<'a>) {
    for item in items {
        match item {
            Item::Fill { path, ink } => {
                let _ = writeln!(out, "<path d=\"{}\"{}/>", steps(path), fill(*ink));
            }
            Item::Stroke { path, pen } => {
                let _ = writeln!(out, "<path d=\"{}\"{}/>", steps(path), stroke(*pen));
            }
            Item::Text { text, outline, ink, rim, .. } => {
                let _ = writeln!(out, "<g aria-label=\"{}\">", escaped(text));
                let steps = steps(outline);
                if *rim > 0.0 {
                    let white = Ink { rgb: [255; 3], alpha: 0.85 };
                    let rim = stroke(Pen::new(white, 2.0 * rim));
                    let _ = writeln!(out, "<path d=\"{steps}\"{rim}/>");
                }
                let _ = writeln!(out, "<path d=\"{steps}\"{}/>\n</g>", fill(*ink));
            }
            Item::Image { pixels, place, opacity, smooth } => {
                let Placement { corner, along, down } = *place;
                let (columns, lines) = (f64::from(pixels.width()), f64::from(pixels.height()));
                let matrix = [
                    along.0 / columns,
                    along.1 / columns,
                    down.0 / lines,
                    down.1 / lines,
                    corner.0,
                    corner.1,
                ];
                let matrix = matrix.map(|x| format!("{x:.7}")).join(" ");
                let opacity = match opacity {
                    o if *o < 1.0 => format!(" opacity=\"{}\"", number(*o)),
                    _ => String::new(),
                };
                let drawn = if *smooth { "" } else { " style=\"image-rendering:pixelated\"" };
                let image = |rest: &str| {
                    format!(
                        "<image width=\"{columns}\" height=\"{lines}\" \
                         preserveAspectRatio=\"none\"{drawn}{rest} \
                         href=\"data:image/png;base64,{}\"/>",
                        base64(&pixels.png())
                    )
                };
                let place = format!(" transform=\"matrix({matrix})\"{opacity}");
                let known = named.images.iter().position(|(known, ..)| Arc::ptr_eq(known, pixels));
                let _ = match known {
                    // An image that is drawn more than once is written once.
                    Some(name) if named.images[name].1 > 1 => {
                        if !named.images[name].2 {
                            named.images[name].2 = true;
                            let image = image(&format!(" id=\"i{name}\""));
                            let _ = writeln!(out, "<defs>{image}</defs>");
                        }
                        writeln!(out, "<use href=\"#i{name}\"{place}/>")
                    }
                    _ => writeln!(out, "{}", image(&place)),
                };
            }
            Item::Clip { to, items } => {
                named.clips += 1;
                let name = named.clips;
                let _ = writeln!(
                    out,
                    "<clipPath id=\"c{name}\"><path d=\"{}\"/></clipPath>\n\
                     <g clip-path=\"url(#c{name})\">",
                    steps(to)
                );
                write_items(out, items, named);
                out.push_str("</g>\n");
            }
        }
    }
}

fn steps(path: &Path) -> String {
    let mut out = String::new();
    let at = |(x, y): (f64, f64)| format!("{} {}", number(x), number(y));
    for segment in &path.segments {
        let _ = match *segment {
            Segment::Move(a) => write!(out, "M{}", at(a)),
            Segment::Line(a) => write!(out, "L{}", at(a)),
            Segment::Curve(a, b, c) => write!(out, "C{} {} {}", at(a), at(b), at(c)),
            Segment::Close => write!(out, "Z"),
        };
    }
    out
}

fn fill(ink: Ink) -> String {
    let opacity = alpha("fill-opacity", ink.alpha);
    format!(" fill=\"{}\"{opacity}", hex(ink.rgb))
}

fn stroke(pen: Pen) -> String {
    let cap = if pen.dashes.is_some() { "butt" } else { "round" };
    let dashes = pen
        .dashes
        .map(|[dash, gap]| format!(" stroke-dasharray=\"{} {}\"", number(dash), number(gap)));
    format!(
        " fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-linecap=\"{cap}\" \
         stroke-linejoin=\"round\"{}{}",
        hex(pen.ink.rgb),
        number(pen.width),
        alpha("stroke-opacity", pen.ink.alpha),
        dashes.unwrap_or_default()
    )
}

fn alpha(name: &str, value: f64) -> String {
    if value < 1.0 { format!(" {name}=\"{}\"", number(value)) } else { String::new() }
}

fn hex([r, g, b]: Rgb) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// Hundredths of a point, without the zeros at the end.
pub(super) fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Text for XML; characters that XML has no place for are left out.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => out.push(c),
        }
    }
    out
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let at = |i: usize| u32::from(chunk.get(i).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..4 {
            out.push(if place <= chunk.len() {
                char::from(DIGITS[(bits >> (18 - 6 * place)) as usize & 63])
            } else {
                '='
            });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixty_four_digits() {
        // RFC 4648, section 10.
        let known = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"];
        for (length, text) in known.iter().enumerate() {
            assert_eq!(base64(&b"foobar"[..length]), *text);
        }
    }

    #[test]
    fn numbers_and_text() {
        assert_eq!([0.0, -0.001, 1.5, 12.0, 0.126].map(number), ["0", "0", "1.5", "12", "0.13"]);
        assert_eq!(escaped("a<b & \"c\"\u{7}\n"), "a&lt;b &amp; &quot;c&quot; ");
    }
}
