//! What a power is measured in, carried with every reading, map and model and never guessed.

use crate::error::InputError;
use crate::link::Link;

/// The offset of the paper's simulated maps, whose SLFs and PSDs have unit norm.
pub const UNIT_OFFSET: f64 = 1e-6;

/// The scale of powers.
///
/// ```
/// use portolan::Scale;
/// // Measured power is compared as it is ...
/// assert_eq!(Scale::Absolute.link().offset(), 0.0);
/// // ... the paper's maps in ln(x + a).
/// assert_eq!(Scale::paper().link().offset(), 1e-6);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Scale {
    /// Milliwatts, spoken of in dBm. Compared in ln x.
    Absolute,
    /// Powers of a receiver without calibration, spoken of in dB. Compared in ln x.
    Uncalibrated,
    /// Powers without a unit, as the paper's simulated maps. Compared in ln(x + offset).
    Relative {
        /// The a of ln(x + a), above 0.
        offset: f64,
    },
}

impl Scale {
    /// The scale of the paper's simulated maps.
    pub const fn paper() -> Self {
        Scale::Relative { offset: UNIT_OFFSET }
    }

    /// A relative scale; the offset must be a positive number.
    ///
    /// ```
    /// use portolan::Scale;
    /// assert_eq!(Scale::relative(1e-6)?, Scale::paper());
    /// assert!(Scale::relative(0.0).is_err());
    /// # Ok::<(), portolan::InputError>(())
    /// ```
    pub fn relative(offset: f64) -> Result<Self, InputError> {
        if !(offset.is_finite() && offset > 0.0) {
            return Err(InputError::Request(format!(
                "an offset of {offset}: the a of ln(x + a) must be a positive number"
            )));
        }
        Ok(Scale::Relative { offset })
    }

    /// The link in which powers of this scale are compared.
    pub fn link(self) -> Link {
        match self {
            Scale::Absolute | Scale::Uncalibrated => Link::LOG,
            Scale::Relative { offset } => Link::new(offset),
        }
    }

    /// Whether a power of zero is a value. Elsewhere it means "not heard".
    pub fn has_zero(self) -> bool {
        matches!(self, Scale::Relative { .. })
    }

    /// The unit for people: dBm or dB.
    ///
    /// ```
    /// use portolan::Scale;
    /// assert_eq!((Scale::Absolute.decibels(), Scale::Uncalibrated.decibels()), ("dBm", "dB"));
    /// ```
    pub fn decibels(self) -> &'static str {
        match self {
            Scale::Absolute => "dBm",
            Scale::Uncalibrated | Scale::Relative { .. } => "dB",
        }
    }

    /// The name that files give it.
    pub fn name(self) -> &'static str {
        match self {
            Scale::Absolute => "dbm",
            Scale::Uncalibrated => "db",
            Scale::Relative { .. } => "relative",
        }
    }

    /// The scale of that name; None for other names.
    ///
    /// ```
    /// use portolan::Scale;
    /// assert_eq!(Scale::named("db", None)?, Some(Scale::Uncalibrated));
    /// assert_eq!(Scale::named("relative", Some(1e-6))?, Some(Scale::paper()));
    /// assert_eq!(Scale::named("volt", None)?, None);
    /// # Ok::<(), portolan::InputError>(())
    /// ```
    pub fn named(name: &str, offset: Option<f64>) -> Result<Option<Self>, InputError> {
        Ok(Some(match name {
            "dbm" => Scale::Absolute,
            "db" => Scale::Uncalibrated,
            "relative" => Scale::relative(offset.unwrap_or(UNIT_OFFSET))?,
            _ => return Ok(None),
        }))
    }

    /// The mean of powers read at one place, each with its weight: in dB, but in power where the
    /// scale is relative.
    pub(crate) fn mean(self, powers: impl Iterator<Item = (f64, f64)>) -> f64 {
        let (mut sum, mut count) = (0.0, 0.0);
        for (power, weight) in powers {
            sum += weight * if self.has_zero() { power } else { power.ln() };
            count += weight;
        }
        match (count > 0.0, self.has_zero()) {
            // 0 / 0 would be a NaN whose sign depends on the processor.
            (false, _) => f64::NAN,
            (true, true) => sum / count,
            (true, false) => (sum / count).exp(),
        }
    }
}
