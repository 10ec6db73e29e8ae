//! Pictures of radio maps as PNG, SVG and PDF, and a preview for the terminal.
//!
//! Every picture is a [`Scene`] of shapes. Maps are [`MapPanel`]s that a [`Sheet`] sets side by side, x
//! to the right and y up in metres unless [`Axes::Rows`] is asked for; curves are [`Chart`]s.
//!
//! [`map_figure`] draws one band of a map, beside the truth where there is one; [`spectrum_figure`] all
//! bands in order of frequency; [`methods_figure`] several estimates side by side; [`factors_figure`]
//! takes a map apart into its emitters. [`advice_figure`] and [`residuals_figure`] judge a survey,
//! [`agreement_figure`] sets held-out readings beside what was predicted for them, and
//! [`CoverageFigure`] shows where a map lies above a level.

mod agreement;
mod axis;
mod colour;
mod cover;
mod factors;
mod field;
#[cfg(test)]
mod gallery;
mod judged;
mod kind;
mod look;
mod map_figure;
mod maps;
mod scene;
mod sheet;
mod terminal;

pub use agreement::{Agreement, agreement_figure};
pub use colour::{ColourMap, Rgb};
pub use cover::{CoverageAbout, CoverageFigure};
pub use factors::factors_figure;
pub use field::{decibels, robust_limits, symmetric_limits};
pub use judged::{advice_figure, mean_errors, residuals_figure};
pub use kind::PictureKind;
pub use look::{Layer, Look};
pub use map_figure::{MapFigure, difference_figure, map_figure, spectrum_figure};
pub use maps::{WIDEST_DB, heard, methods_figure};
pub use scene::{
    Anchor, Bounds, Ink, Item, Path, Pen, Pixels, Placement, Point, Scene, Segment, Text, Typeface,
    read_plan,
};
pub(crate) use sheet::colour_bar;
pub use sheet::{
    Axes, Chart, Curve, Key, MapPanel, Occupied, Shades, Sheet, Underlay, charts_figure,
};
pub use terminal::terminal;

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
