//! The options of `plot`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::parse;
use super::shared::{MomentArgs, ReadArgs};

/// Which way the axes run.
#[derive(Clone, Copy, ValueEnum, PartialEq, Eq)]
pub enum AxesName {
    /// x to the right, y up
    Xy,
    /// The first row at the top: x down, y to the right
    Rows,
}

/// Colours of the scale; all are even in lightness, and told apart by colour-blind readers.
#[derive(Clone, Copy, ValueEnum, PartialEq, Eq)]
pub enum ColoursName {
    Viridis,
    Cividis,
    Magma,
}

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub struct PlotArgs {
    /// The map (.npz, .csv, .mat), or with --at a model of `portolan fit`
    pub map: PathBuf,
    #[command(flatten)]
    pub moment: MomentArgs,
    /// The picture (.png, .svg, .pdf); without it a preview goes to the terminal
    #[arg(short, long)]
    pub output: Option<PathBuf>,
    /// The band: its label, its frequency such as 2412MHz, or its number from 0 [default: the band
    /// with the most power]
    #[arg(long)]
    pub band: Option<String>,
    /// Draw all bands in order of frequency, each in a small panel; at most 36
    #[arg(long, requires = "output", conflicts_with_all = ["band", "truth", "factors"])]
    pub by_frequency: bool,
    /// Draw these bands, each in a small panel: labels, frequencies such as 2412MHz, or numbers from 0
    #[arg(long, value_delimiter = ',', requires = "output",
        conflicts_with_all = ["band", "truth", "factors"])]
    pub bands: Option<Vec<String>>,
    /// Draw the chance that the power is above this level in dBm instead of the power
    #[arg(long, value_name = "DBM", requires = "output", conflicts_with_all = ["truth", "factors"])]
    pub above: Option<f64>,
    /// Draw the spread alone instead of the power and the spread beside it
    #[arg(long, requires = "output", conflicts_with_all = ["above", "truth", "factors"])]
    pub spread: bool,
    /// Draw truth, estimate and error side by side
    #[arg(long)]
    pub truth: Option<PathBuf>,
    /// Mark the sensors of these readings
    #[arg(long)]
    pub readings: Option<PathBuf>,
    /// Draw the SLF and PSD of every emitter of a factored map instead of a band
    #[arg(long, conflicts_with_all = [
        "band", "readings", "axes", "range", "levels", "contours", "colours", "under", "font",
    ])]
    pub factors: bool,
    /// Only this rectangle in metres
    #[arg(long, value_name = "X0,Y0,X1,Y1", value_parser = parse::region, allow_hyphen_values = true)]
    pub region: Option<portolan::Region>,
    /// Heading of the picture
    #[arg(long)]
    pub title: Option<String>,
    #[command(flatten)]
    pub look: LookArgs,
    /// Replace an existing output
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub read: ReadArgs,
}

/// How a map is drawn.
#[derive(Args)]
#[command(next_help_heading = "Look")]
pub struct LookArgs {
    /// Which way the axes run
    #[arg(long, value_enum, default_value = "xy")]
    pub axes: AxesName,
    /// Ends of the colour scale; the bar has tips where values lie beyond
    #[arg(long, value_name = "LOW,HIGH", value_parser = parse::range, allow_hyphen_values = true,
        requires = "output", conflicts_with = "levels")]
    pub range: Option<(f64, f64)>,
    /// Steps of colour at these values instead of a continuous scale
    #[arg(long, value_name = "A,B,..", value_parser = parse::levels, allow_hyphen_values = true,
        requires = "output")]
    pub levels: Option<parse::Levels>,
    /// Lines of equal value
    #[arg(long, value_name = "A,B,..", value_parser = parse::levels, allow_hyphen_values = true,
        requires = "output")]
    pub contours: Option<parse::Levels>,
    /// Colours of the scale
    #[arg(long, value_enum, default_value = "viridis", requires = "output")]
    pub colours: ColoursName,
    /// A floor plan or aerial image to lie under the map (.png); say where with --extent or --control
    #[arg(long, value_name = "PNG", requires = "output")]
    pub under: Option<PathBuf>,
    /// The rectangle in metres that the image covers
    #[arg(long, value_name = "X0,Y0,X1,Y1", value_parser = parse::region, allow_hyphen_values = true,
        requires = "under", conflicts_with = "control")]
    pub extent: Option<portolan::Region>,
    /// Three points of the image in pixels from its top left corner, and where they lie in metres
    #[arg(long, value_name = "PX,PY=X,Y;..", value_parser = parse::control, allow_hyphen_values = true,
        requires = "under")]
    pub control: Option<parse::Control>,
    /// How much of the image the map hides, 0 to 1 [default: 0.65]
    #[arg(long, value_parser = parse::share, requires = "under")]
    pub opacity: Option<f64>,
    /// A TrueType font for letters that the built-in font lacks
    #[arg(long, value_name = "TTF", requires = "output")]
    pub font: Option<PathBuf>,
    /// Width of the picture: pixels of a .png, points of a .svg or .pdf
    #[arg(long, value_parser = clap::value_parser!(u32).range(200..=10_000), requires = "output")]
    pub width: Option<u32>,
}
