//! Pictures of radio maps: figures as PNG, SVG and PDF, and a preview for the terminal.
//!
//! [`map_figure`] draws one band of a map, beside the truth where there is one;
//! [`spectrum_figure`] all bands in order of frequency. They are [`Scene`]s of shapes: x to the right
//! and y up in metres, unless [`Axes::Rows`] is asked for.
//!
//! [`agreement_figure`] sets held-out readings beside what was predicted for them.
//!
//! [`methods_figure`] sets several estimates side by side; [`factors_figure`] takes a map apart
//! into its emitters. They are made of [`HeatPanel`]s and [`LinePanel`]s that a [`Figure`] arranges,
//! and all of these may be used on their own. In these the first row is at the top: columns run to
//! the right along `y_m`, rows downwards along `x_m`.

mod agreement;
mod axis;
mod canvas;
mod colour;
mod cover;
mod factors;
mod field;
mod figure;
#[cfg(test)]
mod gallery;
mod heat;
mod judged;
mod kind;
mod lines;
mod look;
mod map_figure;
mod maps;
mod marks;
mod plot;
mod scene;
mod sheet;
mod terminal;
mod text;

pub use agreement::{Agreement, agreement_figure};
pub use axis::Ticks;
pub use canvas::{Align, Canvas, Rgb};
pub use colour::ColourMap;
pub use cover::{CoverageAbout, CoverageFigure};
pub use factors::factors_figure;
pub use field::{decibels, robust_limits, symmetric_limits};
pub use figure::{Figure, Key, Panel};
pub use heat::{HeatPanel, Sensor};
pub use judged::{advice_figure, mean_errors, residuals_figure};
pub use kind::PictureKind;
pub use lines::{Bar, Curve, LinePanel};
pub use look::{Layer, Look};
pub use map_figure::{MapFigure, map_figure, spectrum_figure};
pub use maps::{WIDEST_DB, methods_figure};
pub use scene::{
    Anchor, Bounds, Ink, Item, Path, Pen, Pixels, Placement, Point, Scene, Segment, Text, Typeface,
    read_plan,
};
pub use sheet::{Axes, Underlay};
pub use terminal::terminal;
pub use text::Font;

/// Why a picture cannot be drawn.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PictureError {
    #[error("band {band} does not exist: {what} has {bands} bands, numbered from 0")]
    Band { what: String, band: usize, bands: usize },
    #[error("{what} is {}, expected {} as in {like}", shape(found), shape(expected))]
    Shape { what: String, found: Vec<usize>, expected: Vec<usize>, like: &'static str },
    #[error("offset {0} cannot be added to powers: give zero or a positive number")]
    Offset(f64),
    #[error("{0} holds no factors (slf and psd) to draw")]
    NoFactors(&'static str),
    #[error("{0} holds no spread, expected a map with one")]
    NoSpread(&'static str),
    #[error("no sensor of the readings lies on the map")]
    NoSensor,
    #[error("a picture of {width} x {height} pixels is too large: choose a smaller width")]
    TooLarge { width: u32, height: f64 },
    #[error("{found} maps do not fit one picture: choose at most {most}")]
    TooMany { found: usize, most: usize },
}

fn shape(lengths: &[usize]) -> String {
    lengths.iter().map(usize::to_string).collect::<Vec<_>>().join(" x ")
}

/// A finished picture: pixels in memory, written as PNG.
#[derive(Clone, Debug)]
pub struct Bitmap {
    canvas: Canvas,
}

impl Bitmap {
    pub fn width(&self) -> usize {
        self.canvas.width()
    }

    pub fn height(&self) -> usize {
        self.canvas.height()
    }

    pub fn canvas(&self) -> &Canvas {
        &self.canvas
    }

    /// The picture as a PNG file, the same bytes every time.
    pub fn png(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let (width, height) = (self.width() as u32, self.height() as u32);
        let mut encoder = png::Encoder::new(&mut out, width, height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let written = encoder
            .write_header()
            .and_then(|mut writer| writer.write_image_data(self.canvas.bytes()));
        written.expect("a non-empty RGB buffer of the stated size always encodes into memory");
        out
    }
}

impl From<Canvas> for Bitmap {
    fn from(canvas: Canvas) -> Self {
        Self { canvas }
    }
}
