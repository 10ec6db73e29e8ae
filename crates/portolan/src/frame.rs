//! What the numbers of readings, models and maps mean: the unit, the place on Earth, the names of the
//! bands. One type, and one encoding as named arrays.

use crate::crs::Crs;
use crate::error::InputError;
use crate::labels::BandLabels;
use crate::model::{Archive, damaged};
use crate::scale::Scale;

/// The unit of powers, the coordinate system of places, and the labels of bands.
///
/// ```
/// use portolan::{BandLabels, Crs, Frame, Scale};
/// let labels = BandLabels::from_frequencies(vec![2.412e9, 2.437e9])?;
/// let frame = Frame { crs: Some(Crs::Epsg(32632)), labels, ..Frame::new(Scale::Absolute) };
/// assert_eq!(frame.select(&[1], 2)?.labels.label(0), "2437MHz");
/// # Ok::<(), portolan::InputError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// What powers are measured in.
    pub scale: Scale,
    /// Where on Earth metres are counted, where known.
    pub crs: Option<Crs>,
    /// Frequencies and names of the bands.
    pub labels: BandLabels,
}

impl Frame {
    /// A scale, and nothing else known.
    pub fn new(scale: Scale) -> Self {
        Self { scale, crs: None, labels: BandLabels::default() }
    }

    /// The frame of some of `all` bands.
    pub fn select(&self, bands: &[usize], all: usize) -> Result<Self, InputError> {
        Ok(Self { labels: self.labels.select(bands, all)?, ..*self })
    }

    /// The same with the labels of as many bands.
    pub(crate) fn labelled(&self, labels: &BandLabels, bands: usize) -> Result<Self, InputError> {
        let (freq_hz, names) = (labels.freq_hz().map(<[f64]>::to_vec), labels.names());
        let labels = BandLabels::new(freq_hz, names.map(<[String]>::to_vec), bands)?;
        Ok(Self { labels, ..*self })
    }

    /// Adds the arrays `unit`, `offset`, `crs`, `freq_hz` and `labels`, as far as they are known.
    ///
    /// ```
    /// use portolan::model::Archive;
    /// use portolan::{Frame, Scale};
    /// let (frame, mut archive) = (Frame::new(Scale::paper()), Archive::default());
    /// frame.save(&mut archive);
    /// assert_eq!(Frame::load(&archive, 3)?, frame);
    /// # Ok::<(), portolan::InputError>(())
    /// ```
    pub fn save(&self, archive: &mut Archive) {
        archive.put_word("unit", self.scale.name());
        if let Scale::Relative { offset } = self.scale {
            archive.put_scalar("offset", offset);
        }
        if let Some(crs) = self.crs {
            archive.put_word("crs", crs.to_string());
        }
        if let Some(freq_hz) = self.labels.freq_hz() {
            archive.put_vector("freq_hz", freq_hz);
        }
        if let Some(names) = self.labels.names() {
            archive.put_text("labels", names.iter().cloned());
        }
    }

    /// The frame of so many bands that [`Frame::save`] wrote.
    pub fn load(archive: &Archive, bands: usize) -> Result<Self, InputError> {
        let offset = archive.has("offset").then(|| archive.number("offset")).transpose()?;
        let scale = Scale::named(archive.word("unit")?, offset)?
            .ok_or_else(|| damaged("unit", "is none of dbm, db and relative"))?;
        let crs = archive.has("crs").then(|| archive.word("crs")?.parse()).transpose()?;
        let freq_hz = archive.has("freq_hz").then(|| archive.vector("freq_hz")).transpose()?;
        let names = archive.has("labels").then(|| archive.text("labels")).transpose()?;
        let labels = BandLabels::new(freq_hz, names.map(<[String]>::to_vec), bands)?;
        Ok(Self { scale, crs, labels })
    }
}
