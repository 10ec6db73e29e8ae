//! Every cell takes the reading of its nearest sensor.

use super::bands::{Prepared, SCALE_OPTIONS, Scale};
use super::{Context, Estimate, Estimator, OptionSpec, Options, Progress};
use crate::error::{EstimateError, InputError};
use crate::gaussian_process::Neighbours;
use crate::readings::Readings;

pub(super) const OPTIONS: &[&[OptionSpec]] = &[SCALE_OPTIONS];

struct Nearest {
    scale: Scale,
}

pub(super) fn build(options: &Options) -> Result<Box<dyn Estimator>, InputError> {
    Ok(Box::new(Nearest { scale: Scale::from_options(options)? }))
}

impl Estimator for Nearest {
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
                    index.nearest(cell.row as f64, cell.col as f64, 1, &mut found);
                    let values = group.values.row(found[0].1);
                    spectrum.iter_mut().zip(values).for_each(|(s, v)| *s = *v);
                }
                Ok(())
            },
        )?;
        Ok(Estimate::new(map))
    }
}
