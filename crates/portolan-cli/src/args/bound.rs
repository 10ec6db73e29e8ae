//! The options of `portolan bound`.

use clap::{Args, ValueEnum};

use super::parse;

#[derive(Clone, Copy, ValueEnum)]
pub enum NetworkTerm {
    Printed,
    Substituted,
}

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub struct BoundArgs {
    /// Emitters
    #[arg(long, value_name = "R", default_value_t = 4)]
    pub emitters: usize,
    /// Frequency bands
    #[arg(long, value_name = "K", default_value_t = 64)]
    pub bands: usize,
    /// Rows x columns of the map
    #[arg(long, value_name = "IxJ", default_value = "64x64", value_parser = parse::grid)]
    pub grid: (usize, usize),
    /// Sensors [default: a tenth of the cells]
    #[arg(long, value_name = "N")]
    pub sensors: Option<usize>,
    /// Layers of the decoder
    #[arg(long, value_name = "L", default_value_t = 4)]
    pub layers: usize,
    /// Most channels of any layer
    #[arg(long, value_name = "W", default_value_t = 6)]
    pub width: usize,
    /// Side of the convolution kernel; counts parameters only
    #[arg(long, default_value_t = 3, requires = "compare")]
    pub kernel: usize,
    /// Largest spectral norm of a weight matrix
    #[arg(long, value_name = "S", default_value_t = 1.0)]
    pub spectral_norm: f64,
    /// Largest (2,1) norm of a weight matrix [default: W S, which always holds]
    #[arg(long, value_name = "B")]
    pub column_norm: Option<f64>,
    /// Product of the squared Lipschitz constants of the activations
    #[arg(long, value_name = "P", default_value_t = 1.0)]
    pub lipschitz: f64,
    /// Entries of a latent, the paper's D0 squared
    #[arg(long, value_name = "D", default_value_t = 16)]
    pub latent_size: usize,
    /// Largest length of a latent
    #[arg(long, value_name = "A", default_value_t = 1.0)]
    pub latent_norm: f64,
    /// Largest length of an emitter's spectrum
    #[arg(long, value_name = "KAPPA", default_value_t = 1.0)]
    pub psd_norm: f64,
    /// Largest Frobenius norm of an emitter's spatial loss field
    #[arg(long, value_name = "GAMMA", default_value_t = 1.0)]
    pub slf_norm: f64,
    /// Fineness of the cover, in Frobenius norm; the paper leaves it open
    #[arg(long, default_value_t = 0.1)]
    pub epsilon: f64,
    /// Constant of the bounds' O(..); the paper leaves it open
    #[arg(long, value_name = "C", default_value_t = 1.0)]
    pub constant: f64,
    /// Largest error of the closest map that the decoder can draw
    #[arg(long, value_name = "NU", default_value_t = 0.0)]
    pub misfit: f64,
    /// Lemma 1's first term as printed, or as Lemma 2 put into its proof gives it
    #[arg(long, value_enum, default_value = "printed")]
    pub network_term: NetworkTerm,
    /// Also say how many sensors bring the bound down to this error
    #[arg(long, value_name = "ERROR")]
    pub target: Option<f64>,
    /// Compare with a decoder that draws all bands at once
    #[arg(long)]
    pub compare: bool,
    /// Channels of that decoder [default: 32, as accurate in the paper]
    #[arg(long, value_name = "W", requires = "compare")]
    pub naive_width: Option<usize>,
    /// Its largest (2,1) norm [default: its widest layer, or K if that is more, times S]
    #[arg(long, value_name = "B", requires = "compare")]
    pub naive_column_norm: Option<f64>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}
