//! A scene as PDF 1.7 (ISO 32000-1): paths, images with soft masks, and outlines of letters that
//! carry their words, for a search.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::path::{Path, Segment};
use super::svg::number;
use super::{Ink, Item, Pen, Pixels, Placement, Scene};

pub(super) fn write(scene: &Scene, width: f64) -> Vec<u8> {
    let scale = width / scene.width;
    let height = scene.height * scale;
    let mut page = Page::default();
    // The page's own axes have y up.
    let _ = writeln!(page.content, "{scale:.6} 0 0 {:.6} 0 {height:.4} cm", -scale);
    page.items(&scene.items);
    let mut file = File::default();
    let catalog = file.reserve();
    let pages = file.reserve();
    let leaf = file.reserve();
    let info = file.reserve();
    let content = file.stream("", page.content.as_bytes());
    let mut images = String::new();
    for (place, pixels) in page.images.iter().enumerate() {
        let _ = write!(images, "/I{place} {} 0 R ", image(&mut file, pixels));
    }
    let mut states = String::new();
    for (percent, name) in &page.alphas {
        let alpha = f64::from(*percent) / 100.0;
        let _ = write!(states, "/A{name} << /ca {alpha} /CA {alpha} >> ");
    }
    file.object(catalog, &format!("<< /Type /Catalog /Pages {pages} 0 R >>"));
    file.object(pages, &format!("<< /Type /Pages /Kids [{leaf} 0 R] /Count 1 >>"));
    let page = format!(
        "<< /Type /Page /Parent {pages} 0 R /MediaBox [0 0 {} {}] /Contents {content} 0 R \
         /Resources << /XObject << {images}>> /ExtGState << {states}>> >> >>",
        number(width),
        number(height)
    );
    file.object(leaf, &page);
    file.object(info, &format!("<< /Title {} /Producer (Portolan) >>", text(&scene.title)));
    file.finish(catalog, info)
}

/// What a page draws, and the images and opacities that it names.
#[derive(Default)]
struct Page<'a> {
    content: String,
    images: Vec<&'a Arc<Pixels>>,
    alphas: BTreeMap<u8, usize>,
}

impl<'a> Page<'a> {
    fn items(&mut self, items: &'a [Item]) {
        for item in items {
            self.content.push_str("q\n");
            match item {
                Item::Fill { path, ink } => self.fill(path, *ink),
                Item::Stroke { path, pen } => self.stroke(path, *pen),
                Item::Text { text: words, outline, ink, rim, .. } => {
                    let words = text(words);
                    let _ = writeln!(self.content, "/Span << /ActualText {words} >> BDC");
                    if *rim > 0.0 {
                        let white = Ink { rgb: [255; 3], alpha: 0.85 };
                        self.content.push_str("q\n");
                        self.stroke(outline, Pen::new(white, 2.0 * rim));
                        self.content.push_str("Q\n");
                    }
                    self.fill(outline, *ink);
                    self.content.push_str("EMC\n");
                }
                Item::Image { pixels, place, opacity, .. } => {
                    self.alpha(*opacity);
                    let Placement { corner, along, down } = *place;
                    let matrix =
                        [along.0, along.1, -down.0, -down.1, corner.0 + down.0, corner.1 + down.1];
                    let matrix = matrix.map(|x| format!("{x:.4}")).join(" ");
                    let known = self.images.iter().position(|image| Arc::ptr_eq(image, pixels));
                    let name = known.unwrap_or(self.images.len());
                    let _ = writeln!(self.content, "{matrix} cm /I{name} Do");
                    if known.is_none() {
                        self.images.push(pixels);
                    }
                }
                Item::Clip { to, items } => {
                    self.path(to);
                    self.content.push_str("W n\n");
                    self.items(items);
                }
            }
            self.content.push_str("Q\n");
        }
    }

    fn fill(&mut self, path: &Path, ink: Ink) {
        self.alpha(ink.alpha);
        let _ = writeln!(self.content, "{} rg", colour(ink));
        self.path(path);
        self.content.push_str("f\n");
    }

    fn stroke(&mut self, path: &Path, pen: Pen) {
        self.alpha(pen.ink.alpha);
        let cap = if pen.dashes.is_some() { 0 } else { 1 };
        let _ =
            writeln!(self.content, "{} RG {} w {cap} J 1 j", colour(pen.ink), number(pen.width));
        if let Some([dash, gap]) = pen.dashes {
            let _ = writeln!(self.content, "[{} {}] 0 d", number(dash), number(gap));
        }
        self.path(path);
        self.content.push_str("S\n");
    }

    fn alpha(&mut self, alpha: f64) {
        let percent = (100.0 * alpha.clamp(0.0, 1.0)).round() as u8;
        if percent < 100 {
            let next = self.alphas.len();
            let name = *self.alphas.entry(percent).or_insert(next);
            let _ = writeln!(self.content, "/A{name} gs");
        }
    }

    fn path(&mut self, path: &Path) {
        let out = &mut self.content;
        let at = |(x, y): (f64, f64)| format!("{} {}", number(x), number(y));
        for segment in &path.segments {
            let _ = match *segment {
                Segment::Move(a) => writeln!(out, "{} m", at(a)),
                Segment::Line(a) => writeln!(out, "{} l", at(a)),
                Segment::Curve(a, b, c) => writeln!(out, "{} {} {} c", at(a), at(b), at(c)),
                Segment::Close => writeln!(out, "h"),
            };
        }
    }
}

fn colour(ink: Ink) -> String {
    ink.rgb.map(|c| format!("{:.3}", f64::from(c) / 255.0)).join(" ")
}

/// Words as big-endian UTF-16 in hexadecimal digits.
fn text(words: &str) -> String {
    let units: String = words.encode_utf16().map(|unit| format!("{unit:04X}")).collect();
    format!("<FEFF{units}>")
}

fn image(file: &mut File, pixels: &Pixels) -> usize {
    let about = |space: &str| {
        let (width, height) = (pixels.width(), pixels.height());
        format!(
            "/Type /XObject /Subtype /Image /Width {width} /Height {height} \
             /ColorSpace /{space} /BitsPerComponent 8"
        )
    };
    let mask = (!pixels.is_opaque()).then(|| {
        let alpha: Vec<u8> = pixels.data().chunks_exact(4).map(|p| p[3]).collect();
        file.stream(&about("DeviceGray"), &alpha)
    });
    let mask = mask.map(|mask| format!(" /SMask {mask} 0 R")).unwrap_or_default();
    file.stream(&format!("{}{mask}", about("DeviceRGB")), &pixels.rgb())
}

/// Numbered objects, and where each begins.
struct File {
    bytes: Vec<u8>,
    starts: Vec<usize>,
}

impl Default for File {
    fn default() -> Self {
        Self { bytes: b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n".to_vec(), starts: Vec::new() }
    }
}

impl File {
    fn reserve(&mut self) -> usize {
        self.starts.push(0);
        self.starts.len()
    }

    fn object(&mut self, number: usize, body: &str) {
        self.starts[number - 1] = self.bytes.len();
        self.bytes.extend(format!("{number} 0 obj\n{body}\nendobj\n").bytes());
    }

    fn stream(&mut self, about: &str, data: &[u8]) -> usize {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        let packed = encoder.write_all(data).and_then(|()| encoder.finish());
        let packed = packed.expect("memory takes every byte");
        let number = self.reserve();
        self.starts[number - 1] = self.bytes.len();
        let length = packed.len();
        let head = format!("{number} 0 obj\n<< {about} /Filter /FlateDecode /Length {length} >>");
        self.bytes.extend(head.bytes());
        self.bytes.extend(b"\nstream\n");
        self.bytes.extend(packed);
        self.bytes.extend(b"\nendstream\nendobj\n");
        number
    }

    fn finish(mut self, catalog: usize, info: usize) -> Vec<u8> {
        let table = self.bytes.len();
        let count = self.starts.len() + 1;
        let mut end = format!("xref\n0 {count}\n0000000000 65535 f \n");
        for start in &self.starts {
            let _ = writeln!(end, "{start:010} 00000 n ");
        }
        let _ = write!(
            end,
            "trailer\n<< /Size {count} /Root {catalog} 0 R /Info {info} 0 R >>\n\
             startxref\n{table}\n%%EOF\n"
        );
        self.bytes.extend(end.bytes());
        self.bytes
    }
}
