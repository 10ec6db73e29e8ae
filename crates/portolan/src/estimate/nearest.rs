//! Every place takes the reading of its nearest sensor.

use super::bands::{DOMAIN_OPTIONS, Domain, Group};
use super::interpolated::{self, Interpolated};
use super::{Context, Method, OptionSpec, Options};
use crate::error::{EstimateError, InputError};
use crate::gaussian_process::Neighbours;
use crate::model::{Archive, Model};
use crate::progress::Progress;
use crate::readings::Readings;
use crate::site::Site;

pub(super) const OPTIONS: &[&[OptionSpec]] = &[DOMAIN_OPTIONS];
pub(super) const KIND: &str = "nearest";

/// The reading of the nearest sensor.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Nearest {
    /// The domain that repeats are compared in; it does not change a reading.
    pub domain: Domain,
}

pub(super) fn build(options: &Options) -> Result<Box<dyn Method>, InputError> {
    Ok(Box::new(Nearest { domain: Domain::from_options(options)? }))
}

impl Method for Nearest {
    fn fit(
        &self,
        readings: &Readings,
        _context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Model, EstimateError> {
        Interpolated::fit(Surface, self.domain, readings, progress)
    }
}

pub(super) struct Surface;

impl interpolated::Surface for Surface {
    type State = Neighbours;

    const KIND: &'static str = KIND;

    fn prepare(&self, group: &Group) -> Result<Neighbours, EstimateError> {
        Ok(Neighbours::new(&group.sites))
    }

    fn evaluate(
        &self,
        index: &Neighbours,
        group: &Group,
        _near: Option<&[usize]>,
        at: &[Site],
        out: &mut [f64],
    ) -> Result<(), EstimateError> {
        let mut found = Vec::new();
        for (site, spectrum) in at.iter().zip(out.chunks_mut(group.bands.len())) {
            index.nearest(*site, 1, &mut found);
            let values = group.values.row(found[0].1);
            spectrum.iter_mut().zip(values).for_each(|(s, v)| *s = *v);
        }
        Ok(())
    }

    fn save(&self, _archive: &mut Archive) {}

    fn load(_archive: &Archive) -> Result<Self, EstimateError> {
        Ok(Self)
    }
}
