//! Some bands of a map.

use std::ops::Range;

use ndarray::{Array3, Axis, concatenate};
use portolan::{BandLabels, Frame, InputError};

use super::parts::{MapAbout, MapParts, Part};

/// The parts of a map in some of its bands, in any order.
pub struct Chosen<P> {
    parts: P,
    bands: Vec<usize>,
    about: MapAbout,
}

impl<P: MapParts> Chosen<P> {
    /// Fails where a band is not there.
    pub fn new(parts: P, bands: &[usize]) -> Result<Self, InputError> {
        let whole = parts.about();
        let frame = chosen_bands(&whole.frame, bands, whole.bands)?;
        let noise = whole.noise_db.as_ref().map(|all| bands.iter().map(|&b| all[b]).collect());
        let about = MapAbout { frame, bands: bands.len(), noise_db: noise, ..whole.clone() };
        Ok(Self { parts, bands: bands.to_vec(), about })
    }
}

/// The frame of some of `all` bands; those without a name keep their number.
pub fn chosen_bands(frame: &Frame, bands: &[usize], all: usize) -> Result<Frame, InputError> {
    let chosen = frame.select(bands, all)?;
    if frame.labels != BandLabels::default() || bands.iter().copied().eq(0..all) {
        return Ok(chosen);
    }
    let numbers = bands.iter().map(|&b| frame.labels.label(b)).collect();
    Ok(Frame { labels: BandLabels::new(None, Some(numbers), bands.len())?, ..chosen })
}

impl<P: MapParts> MapParts for Chosen<P> {
    type Error = P::Error;

    fn about(&self) -> &MapAbout {
        &self.about
    }

    fn part(
        &mut self,
        rows: Range<usize>,
        cols: Range<usize>,
        bands: Range<usize>,
    ) -> Result<Part, P::Error> {
        let (mut levels, mut spreads) = (Vec::new(), Vec::new());
        let mut rest = &self.bands[bands];
        while let Some(&first) = rest.first() {
            // Neighbours are asked for together.
            let run = rest.iter().zip(first..).take_while(|(band, n)| **band == *n).count();
            let part = self.parts.part(rows.clone(), cols.clone(), first..first + run)?;
            levels.push(part.level_db);
            spreads.extend(part.spread_db);
            rest = &rest[run..];
        }
        Ok(Part {
            level_db: joined(levels),
            spread_db: Some(spreads).filter(|s| !s.is_empty()).map(joined),
        })
    }
}

fn joined(mut layers: Vec<Array3<f64>>) -> Array3<f64> {
    if layers.len() == 1 {
        return layers.remove(0);
    }
    let views: Vec<_> = layers.iter().map(|layer| layer.view()).collect();
    concatenate(Axis(2), &views).expect("all parts cover the same cells")
}
