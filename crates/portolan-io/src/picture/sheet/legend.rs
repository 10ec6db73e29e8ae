//! What the marks mean, how long a stretch is, and where north lies: below the maps, where it hides
//! nothing.

use super::marks::{draw_emitter, draw_located, draw_sensor, draw_unknown};
use super::view::said_length;
use super::{LABEL, LEADING};
use crate::picture::colour::{INK, QUIET, Rgb, WHITE};
use crate::picture::scene::{Anchor, Path, Pen, Scene, Text, Typeface};

const APART: f64 = 18.0;
const LINE: f64 = 1.6 * LABEL;

/// An entry of the legend.
#[derive(Clone, Debug, PartialEq)]
pub enum Key {
    /// So many, or another number in every panel.
    Sensors(Option<usize>),
    /// Crosses, and what they mark.
    Crosses(&'static str),
    /// Emitters with an ellipse about them.
    Located,
    Unknown,
    /// A colour and what it means.
    Shade(Rgb, String),
    /// A stretch of the map at so many points per metre.
    Length {
        metres: f64,
        scale: f64,
    },
    /// An arrow to the north: up, or to the right.
    North {
        up: bool,
    },
}

impl Key {
    fn text(&self) -> String {
        match self {
            Key::Sensors(None) => "sensors".into(),
            Key::Sensors(Some(1)) => "1 sensor".into(),
            Key::Sensors(Some(count)) => format!("{count} sensors"),
            Key::Crosses(what) => (*what).into(),
            Key::Located => "emitters, 90 % ellipse".into(),
            Key::Unknown => "unknown".into(),
            Key::Shade(_, text) => text.clone(),
            Key::Length { metres, .. } => said_length(*metres),
            Key::North { .. } => "N".into(),
        }
    }

    fn mark_width(&self) -> f64 {
        match self {
            Key::Length { metres, scale } => metres * scale,
            _ => 14.0,
        }
    }

    fn draw_mark(&self, scene: &mut Scene, x: f64, y: f64) {
        let centre = (x + 7.0, y);
        let area = Path::rect(x, y - 5.5, 14.0, 11.0);
        match self {
            Key::Sensors(_) => draw_sensor(scene, centre, 3.0, WHITE),
            Key::Crosses(_) => draw_emitter(scene, centre),
            Key::Located => draw_located(scene, centre, (6.5, 5.0)),
            Key::Unknown => {
                draw_unknown(scene, area.clone());
                scene.stroke(area, Pen::new(QUIET, 0.6));
            }
            Key::Shade(colour, _) => {
                scene.fill(area.clone(), *colour);
                scene.stroke(area, Pen::new(QUIET, 0.6));
            }
            Key::Length { .. } => {
                let (end, tick) = (x + self.mark_width(), 3.5);
                let bar = Path::polyline(&[(x, y - tick), (x, y), (end, y), (end, y - tick)]);
                scene.stroke(bar, Pen::new(INK, 1.4));
            }
            Key::North { up } => {
                let turn = |(a, b): (f64, f64)| {
                    if *up { (centre.0 + a, y + b) } else { (centre.0 - b, y + a) }
                };
                let arrow = [(0.0, -7.0), (4.2, 5.5), (0.0, 2.6), (-4.2, 5.5)].map(turn);
                scene.fill(Path::polygon(&arrow), INK);
            }
        }
    }
}

/// Left edge and line of every entry.
fn places(typeface: &Typeface, keys: &[Key], width: f64) -> Vec<(f64, usize)> {
    let (mut x, mut line) = (0.0, 0);
    keys.iter()
        .map(|key| {
            let length = key.mark_width() + 6.0 + typeface.length(&key.text(), LABEL, false);
            if x > 0.0 && x + length > width {
                (x, line) = (0.0, line + 1);
            }
            let place = (x, line);
            x += length + APART;
            place
        })
        .collect()
}

pub fn height(typeface: &Typeface, keys: &[Key], width: f64) -> f64 {
    places(typeface, keys, width).last().map_or(0.0, |(_, line)| (line + 1) as f64 * LINE)
}

pub fn draw(scene: &mut Scene, typeface: &Typeface, keys: &[Key], top: f64, width: f64) {
    for (key, (x, line)) in keys.iter().zip(places(typeface, keys, width)) {
        let (x, y) = (super::MARGIN + x, top + LINE * line as f64 + 0.5 * LEADING * LABEL);
        key.draw_mark(scene, x, y);
        let at = (x + key.mark_width() + 6.0, y);
        scene.text(typeface, &Text::new(&key.text(), at, LABEL, Anchor::Start, QUIET));
    }
}
