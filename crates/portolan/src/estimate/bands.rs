//! What the classical methods share: the scale they work in, bands grouped by their gaps, and the
//! way back to a map.

use ndarray::{Array2, Array3};
use rayon::prelude::*;

use super::{OptionSpec, Options, Progress};
use crate::error::{EstimateError, InputError};
use crate::grid::Cell;
use crate::link::Link;
use crate::map::RadioMap;
use crate::readings::{Readings, Values};

/// The option that [`Scale::log_from_options`] reads.
pub(super) const OFFSET: OptionSpec = OptionSpec {
    name: "offset",
    default: "from the readings (1e-6 at unit scale, as in the paper)",
    takes: "the a of ln(x + a), in the readings' unit",
};

/// Options of every interpolator.
pub(super) const SCALE_OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "domain",
        default: "log (ours: power spans decades)",
        takes: "log | linear",
    },
    OFFSET,
];

/// The scale in which values are interpolated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    log: bool,
    offset: Option<f64>,
}

impl Scale {
    pub fn from_options(options: &Options) -> Result<Self, InputError> {
        let log = options.choice("domain", &[("log", true), ("linear", false)])?.unwrap_or(true);
        let offset = options.number("offset", f64::MIN_POSITIVE..f64::INFINITY)?;
        if offset.is_some() && !log {
            return Err(options.wrong("offset", "it belongs to domain=log"));
        }
        Ok(Self { log, offset })
    }

    /// ln(x + a) with the offset that suits the readings.
    pub fn logarithmic() -> Self {
        Self { log: true, offset: None }
    }

    /// For methods that always work in ln(x + a).
    pub fn log_from_options(options: &Options) -> Result<Self, InputError> {
        let offset = options.number("offset", f64::MIN_POSITIVE..f64::INFINITY)?;
        Ok(Self { log: true, offset })
    }

    /// The link for these readings; None in linear power.
    pub fn link(&self, readings: &Readings, power: &Array2<f64>) -> Option<Link> {
        self.log.then(|| match (self.offset, readings.values()) {
            (Some(offset), _) => Link::new(offset),
            (None, Values::Levels { quantiser, .. }) => quantiser.link(),
            (None, Values::Power(_)) => Link::choose(power.iter().copied(), readings.entries()),
        })
    }
}

/// Bands that miss the same sensors, with the readings they have.
pub(super) struct Group {
    pub bands: Vec<usize>,
    pub cells: Vec<Cell>,
    /// Sensors x bands of the group, on the working scale, no gaps.
    pub values: Array2<f64>,
}

/// Readings on the working scale.
pub(super) struct Prepared {
    pub link: Option<Link>,
    pub groups: Vec<Group>,
    bands: usize,
}

impl Prepared {
    pub fn new(readings: &Readings, scale: Scale) -> Self {
        let power = readings.power();
        let link = scale.link(readings, &power);
        let values = power.mapv(|x| link.map_or(x, |link| link.apply(x)));
        let mut by_pattern: Vec<(Vec<usize>, Vec<usize>)> = Vec::new();
        let mut place = std::collections::HashMap::new();
        for (band, column) in values.columns().into_iter().enumerate() {
            let present: Vec<usize> =
                column.indexed_iter().filter(|(_, v)| !v.is_nan()).map(|(s, _)| s).collect();
            let slot = *place.entry(present).or_insert_with_key(|present| {
                by_pattern.push((present.clone(), Vec::new()));
                by_pattern.len() - 1
            });
            by_pattern[slot].1.push(band);
        }
        let groups = by_pattern
            .into_iter()
            .map(|(sensors, bands)| Group {
                cells: sensors.iter().map(|&s| readings.cells()[s]).collect(),
                values: Array2::from_shape_fn((sensors.len(), bands.len()), |(i, k)| {
                    values[[sensors[i], bands[k]]]
                }),
                bands,
            })
            .collect();
        Self { link, groups, bands: values.ncols() }
    }

    /// Calls `fill` for every group, tile by tile of the grid; it writes the tile's predictions,
    /// cells x bands of the group. Tiles run in parallel and do not depend on each other.
    pub fn map_by_tiles<S: Sync>(
        &self,
        readings: &Readings,
        progress: &Progress<'_>,
        prepare: impl Fn(&Group) -> Result<S, EstimateError>,
        fill: impl Fn(&S, &Group, &[Cell], &mut [f64]) -> Result<(), EstimateError> + Sync,
    ) -> Result<RadioMap, EstimateError> {
        let grid = readings.grid();
        let tiles = Tiles::new(grid);
        let mut map = Array3::zeros((grid.rows(), grid.cols(), self.bands));
        for (done, group) in self.groups.iter().enumerate() {
            let state = prepare(group)?;
            let bands = group.bands.len();
            let finished = std::sync::atomic::AtomicUsize::new(0);
            let filled: Vec<Vec<f64>> = (0..tiles.count())
                .into_par_iter()
                .map(|tile| {
                    let cells = tiles.cells(tile);
                    let mut out = vec![0.0; cells.len() * bands];
                    fill(&state, group, &cells, &mut out)?;
                    let n = 1 + finished.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    progress.report(done * tiles.count() + n, self.groups.len() * tiles.count())?;
                    Ok(out)
                })
                .collect::<Result<_, EstimateError>>()?;
            for (tile, values) in filled.iter().enumerate() {
                for (cell, spectrum) in tiles.cells(tile).iter().zip(values.chunks(bands)) {
                    for (&band, &value) in group.bands.iter().zip(spectrum) {
                        let power = self.link.map_or(value.max(0.0), |link| link.inverse(value));
                        map[[cell.row, cell.col, band]] = power;
                    }
                }
            }
        }
        finish(readings, map)
    }
}

/// A dense map with the readings' frequencies; a value that is not finite is an error.
pub(super) fn finish(readings: &Readings, map: Array3<f64>) -> Result<RadioMap, EstimateError> {
    if map.iter().any(|v| !v.is_finite()) {
        return Err(EstimateError::Numerical(
            "the interpolation overflowed: the readings span too wide a range for this scale"
                .into(),
        ));
    }
    let frequencies = readings.freq_hz().map(<[f64]>::to_vec);
    Ok(RadioMap::dense(readings.grid(), map)?.with_frequencies(frequencies)?)
}

/// Square tiles of a grid, row by row.
pub(super) struct Tiles {
    grid: crate::grid::Grid,
    across: usize,
    down: usize,
}

/// Side of a tile in cells: a neighbourhood serves its whole tile.
pub(super) const TILE: usize = 8;

impl Tiles {
    pub fn new(grid: crate::grid::Grid) -> Self {
        Self { grid, across: grid.cols().div_ceil(TILE), down: grid.rows().div_ceil(TILE) }
    }

    pub fn count(&self) -> usize {
        self.across * self.down
    }

    pub fn cells(&self, tile: usize) -> Vec<Cell> {
        let (row, col) = (tile / self.across * TILE, tile % self.across * TILE);
        let rows = row..(row + TILE).min(self.grid.rows());
        let cols = col..(col + TILE).min(self.grid.cols());
        rows.flat_map(|r| cols.clone().map(move |c| Cell::new(r, c))).collect()
    }
}
