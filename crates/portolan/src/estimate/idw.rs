//! Inverse distance weighting (Shepard 1968): a mean of the nearest readings, weighted by
//! distance to a negative power.

use super::bands::{DOMAIN_OPTIONS, Domain, Group};
use super::interpolated::{self, Interpolated};
use super::{Context, Method, OptionSpec, Options};
use crate::error::{EstimateError, InputError};
use crate::gaussian_process::Neighbours;
use crate::model::{Archive, Model};
use crate::progress::Progress;
use crate::readings::Readings;
use crate::site::Site;

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

pub(super) fn build(options: &Options) -> Result<Box<dyn Method>, InputError> {
    let usual = Idw::default();
    Ok(Box::new(Idw {
        domain: Domain::from_options(options)?,
        power: options.number("power", f64::MIN_POSITIVE..100.0)?.unwrap_or(usual.power),
        neighbours: options.count("neighbours", 1..=1_000_000)?.unwrap_or(usual.neighbours),
    }))
}

impl Method for Idw {
    fn fit(
        &self,
        readings: &Readings,
        _context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Model, EstimateError> {
        let surface = Surface { power: self.power, neighbours: self.neighbours };
        Interpolated::fit(surface, self.domain, readings, progress)
    }
}

pub(super) struct Surface {
    power: f64,
    neighbours: usize,
}

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
        let mut weights = Vec::new();
        for (site, spectrum) in at.iter().zip(out.chunks_mut(group.bands.len())) {
            index.nearest(*site, self.neighbours, &mut found);
            let nearest = group.sites[found[0].1].squared_m2(*site);
            weights.clear();
            if nearest == 0.0 {
                found.truncate(1);
                weights.push(1.0);
            } else {
                // Relative to the nearest: distances to a power may overflow.
                let ratio = |s: usize| group.sites[s].squared_m2(*site) / nearest;
                weights.extend(found.iter().map(|f| ratio(f.1).powf(-0.5 * self.power)));
            }
            let total: f64 = weights.iter().sum();
            for (&(_, sensor), weight) in found.iter().zip(&weights) {
                let share = weight / total;
                let values = group.values.row(sensor);
                spectrum.iter_mut().zip(values).for_each(|(s, v)| *s += share * v);
            }
        }
        Ok(())
    }

    fn save(&self, archive: &mut Archive) {
        archive.put_number("power", self.power);
        archive.put_whole("neighbours", [self.neighbours]);
    }

    fn load(archive: &Archive) -> Result<Self, EstimateError> {
        Ok(Self {
            power: archive.number("power")?,
            neighbours: archive.count("neighbours")?.max(1),
        })
    }
}
