//! What an engine is given and what it gives back. All numbers lie in flat slices, row-major.

use crate::descent::Descent;
use crate::error::InputError;
use crate::likelihood::Probit;
use portolan_decoder::{Decoder, Network};

/// Everything that is fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct Unknowns {
    /// Weights of the decoder and its latents.
    pub network: Network,
    /// Emitters x bands, 0 or more.
    pub psd: Vec<f32>,
}

/// One map to fit (paper, eq. 4 and algorithm 1): minimise, over network, latents z_r and PSDs
/// c_r >= 0, the misfit of ln(sum_r G(z_r) o c_r + a) to the targets plus the [`Penalties`].
#[derive(Clone, Copy, Debug)]
pub struct FitProblem<'a> {
    /// Where each sensor is: row-major indices of cells. A cell may hold several.
    pub cells: &'a [usize],
    /// Number of bands.
    pub bands: usize,
    /// What the sensors read there.
    pub targets: Targets<'a>,
    /// The a of ln(x + a), 0 or more.
    pub offset: f32,
    /// Where the descent begins.
    pub start: &'a Unknowns,
}

/// What the sensors read, sensors x bands.
#[derive(Clone, Copy, Debug)]
pub enum Targets<'a> {
    /// ln(x + a), NaN where nothing was read: the misfit is the sum of squared differences.
    LnPower(&'a [f32]),
    /// x itself, NaN where nothing was read: the misfit is the sum of squared differences of power,
    /// and the offset plays no part.
    Power(&'a [f32]),
    /// Levels, [`MISSING_LEVEL`](crate::quantiser::MISSING_LEVEL) where nothing was read: the
    /// misfit is the negative logarithm of their probability.
    Levels {
        /// Sensors x bands.
        levels: &'a [u8],
        /// Edges and noise that the levels come from.
        probit: &'a Probit,
    },
}

impl Targets<'_> {
    /// Entries, sensors times bands.
    pub fn len(&self) -> usize {
        match self {
            Targets::LnPower(values) | Targets::Power(values) => values.len(),
            Targets::Levels { levels, .. } => levels.len(),
        }
    }

    /// Whether there is nothing to fit.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Weights of the squared norms in the objective.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Penalties {
    /// On the latents.
    pub latent: f64,
    /// On the PSDs.
    pub psd: f64,
    /// On the weights of the network.
    pub network: f64,
}

/// How all fits of a batch descend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FitOptions {
    /// Iterations, tolerance and schedule.
    pub descent: Descent,
    /// Learning rate of network and latents.
    pub rate_network: f64,
    /// Learning rate of the PSDs.
    pub rate_psd: f64,
    /// Weights of the squared norms.
    pub penalties: Penalties,
}

/// SLFs to imitate: minimise, over network and latents, the squared error of ln(G(z_r) + a) to the
/// targets, over all cells.
#[derive(Clone, Copy, Debug)]
pub struct ImitationProblem<'a> {
    /// ln(S_r + a), emitters x cells.
    pub targets: &'a [f32],
    /// The a of ln(S + a), 0 or more.
    pub offset: f32,
    /// Where the descent begins.
    pub start: &'a Network,
}

/// How all imitations of a batch descend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ImitationOptions {
    /// Iterations, tolerance and schedule.
    pub descent: Descent,
    /// Learning rate of network and latents.
    pub rate: f64,
}

/// Where a descent ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Descended<T> {
    /// After the last step.
    pub at: T,
    /// The loss before every step.
    pub trace: Vec<f64>,
}

impl FitProblem<'_> {
    /// Whether the sizes fit each other and the decoder; every engine calls this first.
    ///
    /// # Errors
    /// Names the part that does not fit.
    pub fn check(&self, decoder: &Decoder) -> Result<(), InputError> {
        check_decoder(decoder)?;
        check_offset(self.offset)?;
        let cells = decoder.rows() * decoder.cols();
        if let Some(cell) = self.cells.iter().find(|&&cell| cell >= cells) {
            let message = format!("a sensor in cell {cell} of a grid of {cells} cells");
            return Err(InputError::Request(message));
        }
        check_len("targets", self.targets.len(), &[self.cells.len(), self.bands])?;
        check_len("start's PSDs", self.start.psd.len(), &[decoder.emitters(), self.bands])?;
        check_network(decoder, &self.start.network)
    }
}

impl ImitationProblem<'_> {
    /// Whether the sizes fit each other and the decoder; every engine calls this first.
    ///
    /// # Errors
    /// Names the part that does not fit.
    pub fn check(&self, decoder: &Decoder) -> Result<(), InputError> {
        check_decoder(decoder)?;
        check_offset(self.offset)?;
        let size = [decoder.emitters(), decoder.rows() * decoder.cols()];
        check_len("SLFs to imitate", self.targets.len(), &size)?;
        check_network(decoder, self.start)
    }
}

fn check_decoder(decoder: &Decoder) -> Result<(), InputError> {
    match decoder.shape().outputs {
        1 => Ok(()),
        outputs => Err(InputError::Request(format!(
            "a decoder with {outputs} outputs: one that draws SLFs has 1"
        ))),
    }
}

fn check_offset(offset: f32) -> Result<(), InputError> {
    if offset.is_finite() && offset >= 0.0 {
        return Ok(());
    }
    Err(InputError::Request(format!("an offset of {offset}: ln(x + a) needs 0 or more")))
}

fn check_network(decoder: &Decoder, network: &Network) -> Result<(), InputError> {
    check_len("start's parameters", network.params.len(), &[decoder.parameters()])?;
    let size = [decoder.emitters(), decoder.latent_len()];
    check_len("start's latents", network.latents.len(), &size)
}

fn check_len(what: &'static str, found: usize, expected: &[usize]) -> Result<(), InputError> {
    if found == expected.iter().product::<usize>() && found > 0 {
        return Ok(());
    }
    Err(InputError::Shape { what, found: vec![found], expected: expected.to_vec() })
}
