//! Every place takes the reading of its nearest sensor.

use super::bands::{DOMAIN_OPTIONS, Domain};
use super::interpolated::Interpolated;
use super::weighted_mean::{Near, WeightedMean};
use super::{Capability, Context, Entry, Method, OptionSpec, Options};
use crate::error::{EstimateError, InputError};
use crate::gaussian_process::Neighbours;
use crate::model::{Archive, Model};
use crate::progress::Progress;
use crate::readings::Readings;
use crate::site::Site;

pub(super) const OPTIONS: &[&[OptionSpec]] = &[DOMAIN_OPTIONS];
pub(super) const KIND: &str = "nearest";

/// The reading of the nearest sensor.
///
/// ```
/// use ndarray::array;
/// use portolan::estimate::{Method, Nearest};
/// use portolan::{Context, Progress, Readings, Scale, Site, Values};
/// let sites = vec![Site::new(0.0, 0.0), Site::new(12.0, 0.0), Site::new(0.0, 12.0)];
/// let power = array![[1e-6], [1e-8], [1e-8]];
/// let readings = Readings::new(sites, Values::Power(power), Scale::Absolute)?;
/// let model = Nearest::default().fit(&readings, &Context::default(), &Progress::silent())?;
/// let there = model.predict(&[Site::new(5.0, 1.0)], &Progress::silent())?;
/// assert!((there.power[[0, 0]] / 1e-6 - 1.0).abs() < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Nearest {
    /// The domain that repeats are compared in; it does not change a reading.
    pub domain: Domain,
}

/// This method in the register.
pub(super) const ENTRY: Entry = Entry::new("nearest", "the reading of the nearest sensor", build)
    .with_capabilities(&[Capability::Heights])
    .with_options(OPTIONS)
    .with_kinds(&[(KIND, Interpolated::<Nearest>::boxed)]);

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
        Interpolated::fit(*self, self.domain, readings, progress)
    }
}

impl WeightedMean for Nearest {
    type Index = Neighbours;

    const KIND: &'static str = KIND;

    fn index(sites: &[Site]) -> Neighbours {
        Neighbours::new(sites)
    }

    fn weigh(&self, index: &Neighbours, _sites: &[Site], at: Site, near: &mut Near) {
        index.nearest(&at, 1, &mut near.found);
        near.weights.push((near.found[0].1, 1.0));
    }

    fn load(_archive: &Archive) -> Result<Self, EstimateError> {
        Ok(Self::default())
    }
}
