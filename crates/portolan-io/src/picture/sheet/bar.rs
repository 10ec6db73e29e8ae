//! Colour bars: what colours mean, with tips where there are values beyond the ends.

use super::shades::Shades;
use super::view::minus;
use super::{GAP, LABEL, TICK};
use crate::picture::axis::Ticks;
use crate::picture::colour::{INK, QUIET};
use crate::picture::field::widen;
use crate::picture::scene::{Anchor, Ink, Path, Pen, Pixels, Placement, Scene, Text, Typeface};

pub const BAR_GAP: f64 = 10.0;
const WIDTH: f64 = 13.0;
/// Height of a tip.
pub const TIP: f64 = 9.0;

/// A colour bar alone on a page.
pub(crate) fn colour_bar(name: &str, shades: Shades) -> Scene {
    const HEIGHT: f64 = 150.0;
    let typeface = Typeface::new();
    let bar = Bar { name: name.to_owned(), shades, tips: (false, false), opacity: 1.0 };
    let width = bar.room(&typeface, HEIGHT) + 2.0 * BAR_GAP;
    let mut scene = Scene::new(width, HEIGHT + 2.0 * BAR_GAP, name);
    bar.draw(&mut scene, &typeface, (BAR_GAP, BAR_GAP), HEIGHT);
    scene
}

#[derive(Clone, Debug)]
pub struct Bar {
    pub name: String,
    pub shades: Shades,
    /// Whether values lie below and above the ends.
    pub tips: (bool, bool),
    /// As the map's, so that its colours look the same.
    pub opacity: f64,
}

impl Bar {
    fn ticks(&self, height: f64) -> Vec<(f64, String)> {
        let (low, high) = widen(self.shades.limits().0, self.shades.limits().1);
        match &self.shades {
            Shades::Even { .. } => {
                let ticks = Ticks::fitting(low, high, height as i64, |_| (1.9 * LABEL) as i64);
                ticks.values.into_iter().zip(ticks.labels.iter().map(|l| minus(l))).collect()
            }
            Shades::Stepped { levels, .. } => {
                // Levels that are too close for their labels go without.
                let apart = 1.1 * LABEL * (high - low) / height;
                let mut last = f64::NEG_INFINITY;
                let mut ticks = Vec::new();
                for level in levels {
                    if level - last >= apart {
                        ticks.push((*level, minus(&level.to_string())));
                        last = *level;
                    }
                }
                ticks
            }
        }
    }

    /// Width of bar, labels and name.
    pub fn room(&self, typeface: &Typeface, height: f64) -> f64 {
        let ticks = self.ticks(height);
        let labels = ticks.iter().map(|(_, label)| typeface.length(label, LABEL, false));
        WIDTH + TICK + 2.0 * GAP + labels.fold(0.0, f64::max) + 1.2 * LABEL
    }

    pub fn draw(&self, scene: &mut Scene, typeface: &Typeface, (x, y): (f64, f64), height: f64) {
        let (low, high) = widen(self.shades.limits().0, self.shades.limits().1);
        let level = |value: f64| y + height * (high - value) / (high - low);
        let ink = |rgb| Ink { rgb, alpha: self.opacity };
        match &self.shades {
            Shades::Even { colours, .. } => {
                let pixels = Pixels::from_fn(1, 256, |line, _| {
                    let [r, g, b] = colours.at(1.0 - (line as f64 + 0.5) / 256.0);
                    [r, g, b, 255]
                });
                scene.image(pixels, Placement::upright(x, y, WIDTH, height), self.opacity, false);
            }
            Shades::Stepped { levels, colours } => {
                let mut edges = levels.clone();
                if levels.len() < 2 {
                    edges = vec![low, levels.first().copied().unwrap_or(high), high];
                }
                let first = usize::from(levels.len() > 1);
                for (step, pair) in edges.windows(2).enumerate() {
                    let (top, bottom) = (level(pair[1]), level(pair[0]));
                    scene.fill(Path::rect(x, top, WIDTH, bottom - top), ink(colours[step + first]));
                }
            }
        }
        let pen = Pen::new(INK, 0.8);
        let mut tip = |edge: f64, end: f64, value: f64| {
            let corners = [(x, edge), (x + WIDTH, edge), (x + WIDTH / 2.0, end)];
            scene.fill(Path::polygon(&corners), ink(self.shades.of(value)));
            scene.stroke(Path::polygon(&corners), pen);
        };
        if self.tips.1 {
            tip(y, y - TIP, f64::INFINITY);
        }
        if self.tips.0 {
            tip(y + height, y + height + TIP, f64::NEG_INFINITY);
        }
        scene.stroke(Path::rect(x, y, WIDTH, height), pen);
        let mut widest = 0.0f64;
        for (value, label) in self.ticks(height) {
            let (edge, at) = (x + WIDTH, level(value));
            scene.stroke(Path::polyline(&[(edge, at), (edge + TICK, at)]), pen);
            let place = (edge + TICK + GAP, at);
            scene.text(typeface, &Text::new(&label, place, LABEL, Anchor::Start, INK));
            widest = widest.max(typeface.length(&label, LABEL, false));
        }
        let place = (x + WIDTH + TICK + 2.0 * GAP + widest + 0.6 * LABEL, y + height / 2.0);
        let name = typeface.cut(&self.name, LABEL, false, height.max(90.0) + 2.0 * TIP);
        let name = Text::new(&name, place, LABEL, Anchor::Middle, QUIET);
        scene.text(typeface, &name.turned(90.0));
    }
}
