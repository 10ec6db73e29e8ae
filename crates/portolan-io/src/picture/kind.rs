//! The files that a scene can become.

use super::{PictureError, Scene};

/// Pixels of a PNG for a point of the page.
const FINE: f64 = 2.0;

/// A file that a scene can become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PictureKind {
    Png,
    Svg,
    Pdf,
}

impl PictureKind {
    /// By the ending of a name.
    pub fn of_ending(ending: &str) -> Option<Self> {
        match ending.to_ascii_lowercase().as_str() {
            "png" => Some(PictureKind::Png),
            "svg" => Some(PictureKind::Svg),
            "pdf" => Some(PictureKind::Pdf),
            _ => None,
        }
    }

    /// What a width is counted in.
    pub fn unit(self) -> &'static str {
        if self == PictureKind::Png { "pixels" } else { "points" }
    }

    /// The file's bytes, and the picture's width in its unit; that of the scene where none is given.
    pub fn bytes(self, scene: &Scene, width: Option<u32>) -> Result<(Vec<u8>, f64), PictureError> {
        let points = width.map_or(scene.width, f64::from);
        Ok(match self {
            PictureKind::Png => {
                let pixels = width.unwrap_or((FINE * scene.width).round() as u32);
                (scene.png(pixels)?, f64::from(pixels))
            }
            PictureKind::Svg => (scene.svg(points).into_bytes(), points),
            PictureKind::Pdf => (scene.pdf(points), points),
        })
    }
}
