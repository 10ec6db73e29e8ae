//! Inverse distance weighting (Shepard 1968): a mean of the nearest readings, weighted by
//! distance to a negative power.

use super::bands::{DOMAIN_OPTIONS, Domain};
use super::interpolated::Interpolated;
use super::weighted_mean::{Near, WeightedMean};
use super::{Capability, Context, Entry, Method, OptionSpec, Options};
use crate::error::{EstimateError, InputError};
use crate::gaussian_process::Neighbours;
use crate::model::{Archive, Model};
use crate::progress::Progress;
use crate::readings::Readings;
use crate::site::{Point, Site};

const OWN: &[OptionSpec] = &[
    OptionSpec { name: "power", default: "3 (ours, by measurement)", takes: "a number above 0" },
    OptionSpec {
        name: "neighbours",
        default: "12 (ours, by measurement)",
        takes: "how many nearest sensors count",
    },
];
pub(super) const OPTIONS: &[&[OptionSpec]] = &[OWN, DOMAIN_OPTIONS];
pub(super) const KIND: &str = "idw";

/// Inverse distance weighting of the nearest sensors.
///
/// ```
/// use ndarray::array;
/// use portolan::estimate::{Idw, Method};
/// use portolan::{Context, Progress, Readings, Scale, Site, Values};
/// let sites = vec![Site::new(0.0, 0.0), Site::new(12.0, 0.0), Site::new(0.0, 12.0)];
/// let power = array![[1e-6], [1e-8], [1e-8]];
/// let readings = Readings::new(sites, Values::Power(power), Scale::Absolute)?;
/// let method = Idw { power: 2.0, neighbours: 2, ..Idw::default() };
/// let model = method.fit(&readings, &Context::default(), &Progress::silent())?;
/// // Half way between -60 and -80 dBm.
/// let there = model.predict(&[Site::new(6.0, 0.0)], &Progress::silent())?;
/// assert!((there.power[[0, 0]] / 1e-7 - 1.0).abs() < 1e-9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Idw {
    /// The domain in which readings are averaged.
    pub domain: Domain,
    /// A reading weighs its distance to minus this power.
    pub power: f64,
    /// How many nearest sensors count.
    pub neighbours: usize,
}

impl Default for Idw {
    fn default() -> Self {
        Self { domain: Domain::Log, power: 3.0, neighbours: 12 }
    }
}

pub(super) fn from_options(options: &Options) -> Result<Idw, InputError> {
    let usual = Idw::default();
    Ok(Idw {
        domain: Domain::from_options(options)?,
        power: options.number("power", f64::MIN_POSITIVE..100.0)?.unwrap_or(usual.power),
        neighbours: options.count("neighbours", 1..=1_000_000)?.unwrap_or(usual.neighbours),
    })
}

/// This method in the register.
pub(super) const ENTRY: Entry =
    Entry::new("idw", "inverse distance weighting of the nearest sensors", build)
        .with_capabilities(&[Capability::Heights])
        .with_options(OPTIONS)
        .with_kinds(&[(KIND, Interpolated::<Idw>::boxed)]);

pub(super) fn build(options: &Options) -> Result<Box<dyn Method>, InputError> {
    Ok(Box::new(from_options(options)?))
}

impl Method for Idw {
    fn fit(
        &self,
        readings: &Readings,
        _context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Model, EstimateError> {
        Interpolated::fit(*self, self.domain, readings, progress)
    }
}

impl Idw {
    /// Fills `near` with the sensors that count and their weights, which sum to 1.
    pub(super) fn weigh_at<P: Point>(
        &self,
        index: &Neighbours<P>,
        sites: &[P],
        at: &P,
        near: &mut Near,
    ) {
        let Near { found, weights } = near;
        index.nearest(at, self.neighbours, found);
        let nearest = sites[found[0].1].squared(at);
        if nearest == 0.0 {
            return weights.push((found[0].1, 1.0));
        }
        // Relative to the nearest: distances to a power may overflow.
        let ratio = |s: usize| sites[s].squared(at) / nearest;
        weights.extend(found.iter().map(|f| (f.1, ratio(f.1).powf(-0.5 * self.power))));
        let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
        weights.iter_mut().for_each(|(_, weight)| *weight /= total);
    }
}

impl WeightedMean for Idw {
    type Index = Neighbours;

    const KIND: &'static str = KIND;

    fn index(sites: &[Site]) -> Neighbours {
        Neighbours::new(sites)
    }

    fn weigh(&self, index: &Neighbours, sites: &[Site], at: Site, near: &mut Near) {
        self.weigh_at(index, sites, &at, near);
    }

    fn save(&self, archive: &mut Archive) {
        archive.put_number("power", self.power);
        archive.put_whole("neighbours", [self.neighbours]);
    }

    fn load(archive: &Archive) -> Result<Self, EstimateError> {
        let neighbours = archive.count("neighbours")?.max(1);
        Ok(Self { power: archive.number("power")?, neighbours, ..Self::default() })
    }
}
