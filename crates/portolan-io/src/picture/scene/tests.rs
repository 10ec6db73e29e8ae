//! The same scene in every kind of file.

use super::*;

fn scene() -> (Scene, Typeface) {
    let typeface = Typeface::new();
    let mut scene = Scene::new(200.0, 100.0, "A <title> & more");
    scene.fill(Path::rect(10.0, 10.0, 30.0, 30.0), [255, 0, 0]);
    let pixels = Pixels::from_fn(2, 2, |line, column| match (line, column) {
        (0, 0) => [0, 0, 255, 255],
        (1, 1) => [0, 255, 0, 255],
        _ => [0, 0, 0, 0],
    });
    scene.image(pixels, Placement::upright(50.0, 10.0, 40.0, 40.0), 1.0, false);
    scene.clipped(Path::rect(100.0, 10.0, 20.0, 20.0), |scene| {
        scene.fill(Path::circle((120.0, 30.0), 15.0), Ink { rgb: [0; 3], alpha: 0.5 });
    });
    let tint = Ink::from([230, 230, 230]);
    scene.hatch(Path::rect(130.0, 10.0, 40.0, 40.0), tint, Pen::new([90; 3], 1.0), 8.0);
    scene.stroke(
        Path::polyline(&[(10.0, 60.0), (190.0, 60.0)]),
        Pen { dashes: Some([10.0, 10.0]), ..Pen::new([0; 3], 4.0) },
    );
    let words = Text::new("−73 dBm, Größe", (100.0, 80.0), 14.0, Anchor::Middle, [0; 3]);
    scene.text(&typeface, &words.rimmed(1.0)).unwrap();
    (scene, typeface)
}

#[test]
fn pixels_lie_at_their_places() {
    let (scene, _) = scene();
    let pixels = scene.pixels(400).unwrap();
    assert_eq!((pixels.width(), pixels.height()), (400, 200));
    let at = |x: f64, y: f64| pixels.at((2.0 * x) as u32, (2.0 * y) as u32);
    assert_eq!(at(25.0, 25.0), [255, 0, 0, 255]);
    assert_eq!(at(55.0, 15.0), [0, 0, 255, 255]);
    assert_eq!(at(85.0, 45.0), [0, 255, 0, 255]);
    assert_eq!(at(85.0, 15.0), [255; 4]);
    let half = at(117.0, 27.0);
    assert!(half[0] > 120 && half[0] < 135, "{half:?}");
    assert_eq!(at(123.0, 33.0), [255; 4], "cut off");
    assert_eq!((at(15.0, 60.0), at(25.0, 60.0)), ([0, 0, 0, 255], [255; 4]), "dashes");
    let hatched: Vec<_> = (0..80).map(|x| at(130.0 + f64::from(x) / 2.0, 30.0)[0]).collect();
    assert!(hatched.iter().any(|c| *c < 120) && hatched.contains(&230), "{hatched:?}");
    let dark = |y: f64| (0..200).filter(|x| at(f64::from(*x), y)[0] < 100).count();
    assert!(dark(80.0) > 10 && dark(95.0) == 0, "text stands on its line");
}

#[test]
fn an_svg_has_a_title_and_every_shape() {
    let (scene, _) = scene();
    let svg = scene.svg(300.0);
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    for part in [
        "width=\"300pt\" height=\"150pt\"",
        "<title>A &lt;title&gt; &amp; more</title>",
        "aria-label=\"−73 dBm, Größe\"",
        "stroke-dasharray=\"10 10\"",
        "clip-path=\"url(#c2)\"",
        "fill-opacity=\"0.5\"",
        "image-rendering:pixelated",
    ] {
        assert!(svg.contains(part), "{part}");
    }
    assert!(!svg.contains("<text"));
    assert_eq!(svg, scene.svg(300.0));
}

#[test]
fn a_pdf_finds_its_objects() {
    let (scene, _) = scene();
    let pdf = scene.pdf(300.0);
    let text = String::from_utf8_lossy(&pdf);
    assert!(pdf.starts_with(b"%PDF-1.7") && pdf.ends_with(b"%%EOF\n"));
    assert!(text.contains("/MediaBox [0 0 300 150]") && text.contains("/SMask"));
    let table: usize =
        text.rsplit("startxref\n").next().unwrap().lines().next().unwrap().parse().unwrap();
    assert!(pdf[table..].starts_with(b"xref\n"));
    let lines = String::from_utf8(pdf[table..].to_vec()).unwrap();
    for (place, line) in lines.lines().skip(3).take_while(|line| line.ends_with("n ")).enumerate() {
        let start: usize = line[..10].parse().unwrap();
        assert!(pdf[start..].starts_with(format!("{} 0 obj", place + 1).as_bytes()), "{line}");
    }
}

#[test]
fn text_stands_where_it_is_put() {
    let typeface = Typeface::new();
    let mut scene = Scene::new(100.0, 100.0, "");
    let text = |anchor| Text::new("HOH", (50.0, 50.0), 10.0, anchor, [0; 3]);
    let start = scene.text(&typeface, &text(Anchor::Start)).unwrap();
    let end = scene.text(&typeface, &text(Anchor::End)).unwrap();
    let middle = scene.text(&typeface, &text(Anchor::Middle)).unwrap();
    assert!(start.left > 50.0 && end.right < 50.0 && !start.meets(&end) && middle.meets(&start));
    assert!((middle.top + middle.bottom - 100.0).abs() < 0.3, "{middle:?}");
    let up = scene.text(&typeface, &text(Anchor::Start).turned(90.0)).unwrap();
    assert!(up.bottom < 50.0 && (up.left + up.right - 100.0).abs() < 0.3, "{up:?}");
    assert!(scene.text(&typeface, &Text::new(" ", (0.0, 0.0), 9.0, Anchor::End, [0; 3])).is_none());
}

#[test]
fn lines_keep_to_their_width_and_missing_letters_are_known() {
    let typeface = Typeface::new();
    let text = "unrolled neural network\nSSIM 0.93 averylongwordwithoutanyblankinit";
    for width in [20.0, 60.0, 200.0] {
        for line in typeface.wrap(text, 12.0, true, width, 4) {
            assert!(typeface.length(&line, 12.0, true) <= width, "{line}");
        }
    }
    assert_eq!(typeface.wrap("one\ntwo", 12.0, false, 400.0, 4), ["one", "two"]);
    assert!(typeface.missing().is_empty());
    let known = "µ ≤ ½ Ω łódź Ελλάδα Привет 10³ → “x”";
    assert!(typeface.length(known, 12.0, false) > 100.0 && typeface.missing().is_empty());
    typeface.length("中文中", 12.0, false);
    assert_eq!(typeface.missing(), ['中', '文']);
}

#[test]
fn a_picture_beyond_memory_is_refused() {
    assert!(Scene::new(1.0, 1e6, "").png(8000).is_err());
}
