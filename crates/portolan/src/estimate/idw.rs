//! Inverse distance weighting (Shepard 1968): a mean of the nearest readings, weighted by
//! distance to a negative power.

use super::bands::{Prepared, SCALE_OPTIONS, Scale};
use super::{Context, Estimate, Estimator, OptionSpec, Options, Progress};
use crate::error::{EstimateError, InputError};
use crate::gaussian_process::Neighbours;
use crate::readings::Readings;

const OWN: &[OptionSpec] = &[
    OptionSpec { name: "power", default: "3 (ours, by measurement)", takes: "a number above 0" },
    OptionSpec {
        name: "neighbours",
        default: "12 (ours, by measurement)",
        takes: "how many nearest sensors count",
    },
];
pub(super) const OPTIONS: &[&[OptionSpec]] = &[OWN, SCALE_OPTIONS];

struct Idw {
    scale: Scale,
    power: f64,
    neighbours: usize,
}

pub(super) fn build(options: &Options) -> Result<Box<dyn Estimator>, InputError> {
    Ok(Box::new(Idw {
        scale: Scale::from_options(options)?,
        power: options.number("power", f64::MIN_POSITIVE..100.0)?.unwrap_or(3.0),
        neighbours: options.count("neighbours", 1..=1_000_000)?.unwrap_or(12),
    }))
}

impl Estimator for Idw {
    fn estimate(
        &self,
        readings: &Readings,
        _context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Estimate, EstimateError> {
        let prepared = Prepared::new(readings, self.scale);
        let map = prepared.map_by_tiles(
            readings,
            progress,
            |group| Ok(Neighbours::new(readings.grid(), &group.cells)),
            |index, group, cells, out| {
                let mut found = Vec::new();
                for (cell, spectrum) in cells.iter().zip(out.chunks_mut(group.bands.len())) {
                    index.nearest(cell.row as f64, cell.col as f64, self.neighbours, &mut found);
                    if found[0].0 == 0.0 {
                        found.truncate(1);
                        found[0].0 = 1.0;
                    }
                    let weight = |d2: f64| d2.powf(-0.5 * self.power);
                    let total: f64 = found.iter().map(|(d2, _)| weight(*d2)).sum();
                    for &(d2, sensor) in &found {
                        let share = weight(d2) / total;
                        let values = group.values.row(sensor);
                        spectrum.iter_mut().zip(values).for_each(|(s, v)| *s += share * v);
                    }
                }
                Ok(())
            },
        )?;
        Ok(Estimate::new(map))
    }
}
