//! What bands are called: centre frequencies, names, or both. A Wi-Fi survey has hundreds of
//! transmitters on three channels: names tell them apart.

use crate::error::InputError;

/// Frequencies and names of the bands of readings, maps and models.
///
/// ```
/// use portolan::BandLabels;
/// let labels = BandLabels::new(Some(vec![2.412e9, 2.412e9]), Some(vec!["hall".into(), "lab".into()]), 2)?;
/// assert_eq!(labels.label(1), "lab");
/// assert_eq!(BandLabels::from_frequencies(vec![2.412e9])?.label(0), "2412MHz");
/// # Ok::<(), portolan::InputError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Default)]
pub struct BandLabels {
    freq_hz: Option<Vec<f64>>,
    names: Option<Vec<String>>,
}

impl BandLabels {
    /// For `bands` bands: a frequency for each or none, a distinct name for each or none.
    pub fn new(
        freq_hz: Option<Vec<f64>>,
        names: Option<Vec<String>>,
        bands: usize,
    ) -> Result<Self, InputError> {
        if let Some(freq_hz) = &freq_hz {
            if freq_hz.len() != bands {
                let found = vec![freq_hz.len()];
                return Err(InputError::Shape { what: "freq_hz", found, expected: vec![bands] });
            }
            if let Some(band) = freq_hz.iter().position(|f| !(f.is_finite() && *f > 0.0)) {
                return Err(InputError::Frequency { band, value: freq_hz[band] });
            }
        }
        if let Some(names) = &names {
            if names.len() != bands {
                let found = vec![names.len()];
                return Err(InputError::Shape { what: "labels", found, expected: vec![bands] });
            }
            let mut seen = std::collections::HashSet::new();
            for (band, name) in names.iter().enumerate() {
                if name.is_empty() || name.chars().any(char::is_control) || !seen.insert(name) {
                    return Err(InputError::Label { band, label: name.clone() });
                }
            }
        }
        Ok(Self { freq_hz, names })
    }

    /// Bands known by their frequency.
    pub fn from_frequencies(freq_hz: Vec<f64>) -> Result<Self, InputError> {
        let bands = freq_hz.len();
        Self::new(Some(freq_hz), None, bands)
    }

    /// Centre frequencies, where known.
    pub fn freq_hz(&self) -> Option<&[f64]> {
        self.freq_hz.as_deref()
    }

    /// Names, where given.
    pub fn names(&self) -> Option<&[String]> {
        self.names.as_deref()
    }

    /// What to call a band: its name, else its frequency, else its number.
    pub fn label(&self, band: usize) -> String {
        match (&self.names, &self.freq_hz) {
            (Some(names), _) => names[band].clone(),
            (None, Some(freq_hz)) => frequency_label(freq_hz[band]),
            (None, None) => format!("band{band}"),
        }
    }

    /// The band of that label, or of that number.
    ///
    /// ```
    /// use portolan::BandLabels;
    /// let labels = BandLabels::from_frequencies(vec![2.412e9, 2.437e9])?;
    /// assert_eq!((labels.find("2437MHz", 2), labels.find("0", 2), labels.find("5GHz", 2)), (Some(1), Some(0), None));
    /// # Ok::<(), portolan::InputError>(())
    /// ```
    pub fn find(&self, text: &str, bands: usize) -> Option<usize> {
        let named = (0..bands).find(|&band| self.label(band) == text);
        named.or_else(|| text.parse().ok().filter(|band| *band < bands))
    }

    /// The labels of some of `all` bands.
    pub fn select(&self, bands: &[usize], all: usize) -> Result<Self, InputError> {
        if let Some(band) = bands.iter().find(|band| **band >= all) {
            return Err(InputError::Request(format!("band {band}: there are 0 to {}", all - 1)));
        }
        let freq_hz = self.freq_hz.as_ref().map(|all| bands.iter().map(|&b| all[b]).collect());
        let names = self.names.as_ref().map(|all| bands.iter().map(|&b| all[b].clone()).collect());
        Self::new(freq_hz, names, bands.len())
    }

    /// The one of these bands that is another's band.
    pub(crate) fn same(&self, other: &BandLabels, band: usize) -> Result<usize, InputError> {
        let named = match (&self.names, &other.names) {
            (Some(own), Some(names)) => own.iter().position(|name| *name == names[band]),
            (None, None) => {
                let own = self.freq_hz.iter().flatten();
                let hz = other.freq_hz.as_ref().map_or(f64::NAN, |hz| hz[band]);
                own.clone().position(|own| (own - hz).abs() <= 1e-9 * hz)
            }
            _ => {
                let count = self.names.as_ref().map(Vec::len);
                let count = count.or(self.freq_hz.as_ref().map(Vec::len)).unwrap_or(0);
                (0..count).find(|&own| self.label(own) == other.label(band))
            }
        };
        named.ok_or_else(|| {
            let label = other.label(band);
            InputError::Request(format!(
                "band {label} of the update is none of the model's: fit all readings again"
            ))
        })
    }

    /// Fails where two sets of labels speak of different bands.
    pub(crate) fn agrees(&self, other: &BandLabels) -> bool {
        let frequencies = match (&self.freq_hz, &other.freq_hz) {
            (Some(a), Some(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-9 * a.abs())
            }
            _ => true,
        };
        let names = match (&self.names, &other.names) {
            (Some(a), Some(b)) => a == b,
            _ => true,
        };
        frequencies && names
    }
}

/// A frequency in MHz where that says it exactly, else in Hz.
pub fn frequency_label(freq_hz: f64) -> String {
    let megahertz = freq_hz / 1e6;
    if megahertz * 1e6 == freq_hz && format!("{megahertz}").len() <= 12 {
        format!("{megahertz}MHz")
    } else {
        format!("{freq_hz}Hz")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_labels_are_refused() {
        assert!(BandLabels::new(Some(vec![1e9]), None, 2).is_err());
        assert!(BandLabels::new(Some(vec![-1e9]), None, 1).is_err());
        assert!(BandLabels::new(None, Some(vec!["a".into(), "a".into()]), 2).is_err());
        assert!(BandLabels::new(None, Some(vec!["a".into(), String::new()]), 2).is_err());
        let fine = BandLabels::new(None, Some(vec!["a".into(), "b".into()]), 2).unwrap();
        assert_eq!(
            (fine.find("b", 2), fine.find("0", 2), fine.find("2", 2)),
            (Some(1), Some(0), None)
        );
    }
}
