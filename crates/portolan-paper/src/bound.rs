//! The paper's covering number and recovery bounds as a calculator ("Domain-Factored Untrained Deep
//! Prior for Spectrum Cartography", Lemmas 1 and 2, Propositions 1 and 2).
//!
//! Covering numbers overflow every float, and their logarithms may too, so that terms are carried
//! as natural logarithms. A logarithm of a covering number that the printed formula makes negative
//! is taken as 0: a cover has at least one element.

#[cfg(test)]
mod tests;

use portolan::InputError;

/// A decoder as the lemmas see it: sizes, and norms that its weights and latents keep to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DecoderClass {
    /// L; a decoder has L + 1 weight matrices.
    pub layers: usize,
    /// W, the most channels of any layer.
    pub width: usize,
    /// s, the largest spectral norm of a weight matrix.
    pub spectral_norm: f64,
    /// b, the largest (2, 1) norm: the lengths of a weight matrix's columns, summed.
    pub column_norm: f64,
    /// P, the product of the squared Lipschitz constants of the activations.
    pub lipschitz: f64,
    /// Entries of a latent, D_0^2.
    pub latent_size: usize,
    /// a, the largest length of a latent.
    pub latent_norm: f64,
}

impl DecoderClass {
    /// The paper's decoder (its table of the architecture) with norms of 1. A column is no longer
    /// than the spectral norm, so that b = W s holds whatever the weights.
    pub fn paper() -> Self {
        Self {
            layers: 4,
            width: 6,
            spectral_norm: 1.0,
            column_norm: 6.0,
            lipschitz: 1.0,
            latent_size: 16,
            latent_norm: 1.0,
        }
    }

    fn check(&self) -> Result<(), InputError> {
        count("layers", self.layers)?;
        count("width", self.width)?;
        count("latent size", self.latent_size)?;
        positive("spectral norm", self.spectral_norm)?;
        positive("column norm", self.column_norm)?;
        positive("Lipschitz product", self.lipschitz)?;
        positive("latent norm", self.latent_norm)
    }

    /// ln of a^2 b^2 P ln(2 W^2) s^(2L - 2) L^3 / epsilon^2, which both lemmas share.
    fn ln_complexity(&self, epsilon: f64) -> f64 {
        let layers = self.layers as f64;
        2.0 * (self.latent_norm.ln() + self.column_norm.ln() - epsilon.ln())
            + self.lipschitz.ln()
            + (2f64.ln() + 2.0 * (self.width as f64).ln()).ln()
            + (2.0 * layers - 2.0) * self.spectral_norm.ln()
            + 3.0 * layers.ln()
    }
}

/// The factor of the network's term in Lemma 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum NetworkFactor {
    /// R^3 (kappa + gamma), as printed.
    #[default]
    Printed,
    /// 4 R^3 (kappa + gamma)^2: what comes out when Lemma 2 at epsilon / (R (kappa + gamma)), from
    /// which the lemma's other terms follow, is put in.
    Substituted,
}

/// The maps that the domain-factored decoder can draw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FactoredClass {
    /// The decoder that draws every SLF.
    pub decoder: DecoderClass,
    /// R
    pub emitters: usize,
    /// K
    pub bands: usize,
    /// kappa, the largest length of a PSD.
    pub psd_norm: f64,
    /// gamma, the largest Frobenius norm of an SLF.
    pub slf_norm: f64,
    /// Which of the two network factors to use.
    pub factor: NetworkFactor,
}

/// The logarithm of a covering number, term by term; each is the natural logarithm of its term, and
/// minus infinity where the term is 0.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Covering {
    /// From the weights of the decoder.
    pub ln_network: f64,
    /// From the latents.
    pub ln_latents: f64,
    /// From the PSDs.
    pub ln_spectra: f64,
}

impl Covering {
    /// ln of log N, the sum of the terms.
    pub fn ln_log(&self) -> f64 {
        ln_sum([self.ln_network, self.ln_latents, self.ln_spectra])
    }
}

impl FactoredClass {
    /// Lemma 1: the covering number of the factored maps at `epsilon` in Frobenius norm.
    ///
    /// ```
    /// use portolan_paper::bound::{DecoderClass, FactoredClass, NetworkFactor};
    /// let maps = FactoredClass {
    ///     decoder: DecoderClass::paper(),
    ///     emitters: 4,
    ///     bands: 64,
    ///     psd_norm: 1.0,
    ///     slf_norm: 1.0,
    ///     factor: NetworkFactor::Printed,
    /// };
    /// // A finer cover has more elements.
    /// assert!(maps.covering(0.01)?.ln_log() > maps.covering(0.1)?.ln_log());
    /// # Ok::<(), portolan::InputError>(())
    /// ```
    pub fn covering(&self, epsilon: f64) -> Result<Covering, InputError> {
        self.check()?;
        positive("epsilon", epsilon)?;
        let decoder = &self.decoder;
        let (emitters, bands) = (self.emitters as f64, self.bands as f64);
        let both = self.psd_norm + self.slf_norm;
        let factor = match self.factor {
            NetworkFactor::Printed => both.ln(),
            NetworkFactor::Substituted => 4f64.ln() + 2.0 * both.ln(),
        };
        let shared = emitters.ln() + both.ln() - epsilon.ln();
        let latent = 6f64.ln() + decoder.lipschitz.ln() + decoder.latent_norm.ln() + shared;
        let spectrum = 3f64.ln() + self.psd_norm.ln() + shared;
        Ok(Covering {
            ln_network: 3.0 * emitters.ln() + factor + decoder.ln_complexity(epsilon),
            ln_latents: (emitters * decoder.latent_size as f64).ln() + latent.max(0.0).ln(),
            ln_spectra: (emitters * bands).ln() + spectrum.max(0.0).ln(),
        })
    }

    fn check(&self) -> Result<(), InputError> {
        self.decoder.check()?;
        count("number of emitters", self.emitters)?;
        count("number of bands", self.bands)?;
        positive("PSD norm", self.psd_norm)?;
        positive("SLF norm", self.slf_norm)
    }

    /// Half of the largest distance of two maps of the class in Frobenius norm: R kappa gamma.
    pub fn radius(&self) -> f64 {
        self.emitters as f64 * self.psd_norm * self.slf_norm
    }
}

/// Lemma 2: the covering number of what one decoder can draw, which is the whole map where nothing
/// is factored.
pub fn decoder_covering(decoder: &DecoderClass, epsilon: f64) -> Result<Covering, InputError> {
    decoder.check()?;
    positive("epsilon", epsilon)?;
    let latent = 6f64.ln() + decoder.lipschitz.ln() + decoder.latent_norm.ln() - epsilon.ln();
    Ok(Covering {
        ln_network: 4f64.ln() + decoder.ln_complexity(epsilon),
        ln_latents: (decoder.latent_size as f64).ln() + latent.max(0.0).ln(),
        ln_spectra: f64::NEG_INFINITY,
    })
}

/// Parameters of a decoder with `layers` blocks of convolution without bias and a normalisation of
/// two parameters a channel, then a 1 x 1 convolution to `outputs`.
pub fn parameters(layers: usize, width: usize, kernel: usize, outputs: usize) -> f64 {
    let (layers, width, outputs) = (layers as f64, width as f64, outputs as f64);
    let taps = (kernel as f64).powi(2);
    let first = taps * width + 2.0 * width;
    first + (layers - 1.0) * (taps * width * width + 2.0 * width) + width * outputs
}

/// What the sensors report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// Proposition 1; holds with probability 1 - delta.
    Full,
    /// Proposition 2; holds with probability 1 - 2 delta.
    Quantised,
}

/// A bound on the error of the recovered map: its root mean square over cells and bands.
///
/// ```
/// use portolan_paper::bound::{DecoderClass, FactoredClass, NetworkFactor, Precision, RecoveryBound};
/// let maps = FactoredClass {
///     decoder: DecoderClass::paper(),
///     emitters: 4,
///     bands: 64,
///     psd_norm: 1.0,
///     slf_norm: 1.0,
///     factor: NetworkFactor::Printed,
/// };
/// let bound = RecoveryBound {
///     precision: Precision::Full,
///     emitters: 4,
///     bands: 64,
///     ln_log_covering: maps.covering(0.1)?.ln_log(),
///     constant: 1.0,
///     misfit: 0.0,
/// };
/// // More sensors, a smaller error; and the number of sensors that an error asks for.
/// let error = bound.terms(410)?.ln_total().exp();
/// assert!(bound.terms(820)?.ln_total().exp() < error);
/// assert!(bound.sensors_for(0.5 * error)?.count.unwrap() > 410);
/// # Ok::<(), portolan::InputError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecoveryBound {
    /// Full readings or levels: which proposition holds.
    pub precision: Precision,
    /// R
    pub emitters: usize,
    /// K
    pub bands: usize,
    /// ln of log N, from [`Covering::ln_log`].
    pub ln_log_covering: f64,
    /// The constant of the propositions' O(..), which they leave open.
    pub constant: f64,
    /// nu, the largest error in any entry that the closest map of the class makes.
    pub misfit: f64,
}

/// The terms of a bound as natural logarithms; minus infinity where a term is 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoundTerms {
    /// From taking N cells for all.
    pub ln_sampling: f64,
    /// From the richness of the class.
    pub ln_covering: f64,
    /// From the closest map of the class, which still misses the truth: nu.
    pub ln_misfit: f64,
}

impl BoundTerms {
    /// ln of the bound, the sum of the terms.
    pub fn ln_total(&self) -> f64 {
        ln_sum([self.ln_sampling, self.ln_covering, self.ln_misfit])
    }
}

/// Sensors that a bound asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct SensorsNeeded {
    /// Natural logarithm of the number.
    pub ln: f64,
    /// The number itself, where it is below 10^12.
    pub count: Option<u64>,
}

impl RecoveryBound {
    /// The bound with this many sensors.
    pub fn terms(&self, sensors: usize) -> Result<BoundTerms, InputError> {
        self.check()?;
        count("number of sensors", sensors)?;
        Ok(self.terms_at((sensors as f64).ln()))
    }

    /// The fewest sensors with which the bound is at most `error`.
    pub fn sensors_for(&self, error: f64) -> Result<SensorsNeeded, InputError> {
        positive("error", error)?;
        self.sensors_for_ln(error.ln())
    }

    /// As [`RecoveryBound::sensors_for`], for an error given by its natural logarithm.
    pub fn sensors_for_ln(&self, ln_error: f64) -> Result<SensorsNeeded, InputError> {
        self.check()?;
        if ln_error.is_nan() || ln_error <= self.misfit.ln() {
            let (error, misfit) = (ln_error.exp(), self.misfit);
            return Err(InputError::Request(format!(
                "no number of sensors brings the error to {error}: the misfit alone is {misfit}"
            )));
        }
        let reached = |ln_sensors: f64| self.terms_at(ln_sensors).ln_total() <= ln_error;
        let (mut low, mut high) = (0.0, 1.0);
        while !reached(high) {
            (low, high) = (high, 2.0 * high);
        }
        // 200 halvings leave neighbouring floats.
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            (low, high) = if reached(middle) { (low, middle) } else { (middle, high) };
        }
        let ln = if reached(0.0) { 0.0 } else { high };
        Ok(SensorsNeeded { ln, count: whole(ln, &reached) })
    }

    fn terms_at(&self, ln_sensors: f64) -> BoundTerms {
        let ln_emitters = (self.emitters as f64).ln();
        let ln_bands = (self.bands as f64).ln();
        let (sampling, covering) = match self.precision {
            Precision::Full => (
                ln_emitters - 0.5 * ln_sensors,
                0.25 * (self.ln_log_covering - ln_sensors) - 0.5 * ln_bands,
            ),
            Precision::Quantised => (
                0.5 * (ln_emitters - ln_sensors) - ln_bands,
                0.5 * (self.ln_log_covering - ln_sensors),
            ),
        };
        BoundTerms {
            ln_sampling: self.constant.ln() + sampling,
            ln_covering: self.constant.ln() + covering,
            ln_misfit: self.misfit.ln(),
        }
    }

    fn check(&self) -> Result<(), InputError> {
        count("number of emitters", self.emitters)?;
        count("number of bands", self.bands)?;
        positive("constant", self.constant)?;
        if !(self.misfit.is_finite() && self.misfit >= 0.0) {
            let misfit = self.misfit;
            return Err(InputError::Request(format!("the misfit is {misfit}: give 0 or more")));
        }
        if self.ln_log_covering.is_nan() || self.ln_log_covering == f64::INFINITY {
            return Err(InputError::Request("the covering number is not finite".into()));
        }
        Ok(())
    }
}

/// The smallest whole number of sensors that reaches the error, near one that does.
fn whole(ln: f64, reached: &impl Fn(f64) -> bool) -> Option<u64> {
    const MOST: f64 = 1e12;
    let mut sensors = Some(ln.exp().ceil()).filter(|sensors| *sensors < MOST)?;
    while !reached(sensors.ln()) {
        sensors += 1.0;
    }
    while sensors > 1.0 && reached((sensors - 1.0).ln()) {
        sensors -= 1.0;
    }
    Some(sensors as u64)
}

/// ln of a sum of terms that are given by their logarithms, at least one of them above zero.
fn ln_sum(terms: [f64; 3]) -> f64 {
    let largest = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    largest + terms.iter().map(|term| (term - largest).exp()).sum::<f64>().ln()
}

fn count(what: &str, value: usize) -> Result<(), InputError> {
    match value {
        0 => Err(InputError::Request(format!("the {what} is 0: give at least 1"))),
        _ => Ok(()),
    }
}

fn positive(what: &str, value: f64) -> Result<(), InputError> {
    match value.is_finite() && value > 0.0 {
        true => Ok(()),
        false => Err(InputError::Request(format!("the {what} is {value}: give a positive number"))),
    }
}
