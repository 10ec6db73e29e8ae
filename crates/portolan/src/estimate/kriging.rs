//! Kriging: the best linear unbiased prediction under a covariance fitted to the readings, with
//! its standard deviation. Ordinary by default, universal with a polynomial trend.

use faer::Mat;
use ndarray::Array3;
use rayon::prelude::*;

use super::bands::{Group, Prepared, SCALE_OPTIONS, Scale, Tiles, finish};
use super::thin_plate::{MOST_TOGETHER, local_note, nearest_to_tile};
use super::{Context, Estimate, Estimator, OptionSpec, Options, Progress};
use crate::error::{EstimateError, InputError};
use crate::gaussian_process::{
    CorrelationTable, Covariance, Family, Fixed, Neighbours, NuggetRole, Prediction, Regression,
    Sample, Trend, fit,
};
use crate::grid::{Cell, Grid};
use crate::link::DB_PER_NEPER;
use crate::readings::Readings;

const OWN: &[OptionSpec] = &[
    OptionSpec {
        name: "covariance",
        default: "exponential (what shadowing follows)",
        takes: "exponential | gaussian | spherical | matern32 | matern52",
    },
    OptionSpec { name: "decorrelation", default: "fitted", takes: "metres" },
    OptionSpec { name: "sill", default: "fitted", takes: "dB^2 (power^2 in domain=linear)" },
    OptionSpec { name: "nugget", default: "fitted", takes: "dB^2 (power^2 in domain=linear)" },
    OptionSpec {
        name: "trend",
        default: "constant (ordinary kriging)",
        takes: "constant | linear | quadratic",
    },
    OptionSpec {
        name: "exact",
        default: "false (the nugget is noise and is smoothed away)",
        takes: "true | false: reproduce the readings at sensor cells, as PyKrige does",
    },
    OptionSpec {
        name: "neighbours",
        default: "all up to 2000 sensors, then 128",
        takes: "how many nearest sensors each 8 x 8 tile uses",
    },
];
pub(super) const OPTIONS: &[&[OptionSpec]] = &[OWN, SCALE_OPTIONS];

const NEIGHBOURS: usize = 128;
/// Groups of bands that the likelihood looks at; the largest say enough.
const MOST_GROUPS: usize = 4;

struct Kriging {
    scale: Scale,
    family: Family,
    trend: Trend,
    role: NuggetRole,
    neighbours: Option<usize>,
    fixed: Fixed,
}

pub(super) fn build(options: &Options) -> Result<Box<dyn Estimator>, InputError> {
    let families = [
        ("exponential", Family::Exponential),
        ("gaussian", Family::Gaussian),
        ("spherical", Family::Spherical),
        ("matern32", Family::Matern32),
        ("matern52", Family::Matern52),
    ];
    let trends =
        [("constant", Trend::Constant), ("linear", Trend::Linear), ("quadratic", Trend::Quadratic)];
    let exact = options.choice("exact", &[("true", true), ("false", false)])?.unwrap_or(false);
    let positive = f64::MIN_POSITIVE..f64::INFINITY;
    Ok(Box::new(Kriging {
        scale: Scale::from_options(options)?,
        family: options.choice("covariance", &families)?.unwrap_or(Family::Exponential),
        trend: options.choice("trend", &trends)?.unwrap_or(Trend::Constant),
        role: if exact { NuggetRole::Field } else { NuggetRole::Noise },
        neighbours: options.count("neighbours", 2..=MOST_TOGETHER)?,
        fixed: Fixed {
            decorrelation_m: options.number("decorrelation", positive.clone())?,
            sill: options.number("sill", positive)?,
            nugget: options.number("nugget", 0.0..f64::INFINITY)?,
        },
    }))
}

impl Estimator for Kriging {
    fn estimate(
        &self,
        readings: &Readings,
        _context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Estimate, EstimateError> {
        let grid = readings.grid();
        let prepared = Prepared::new(readings, self.scale);
        // Users speak of dB; the log domain is natural logarithms.
        let unit = if prepared.link.is_some() { DB_PER_NEPER * DB_PER_NEPER } else { 1.0 };
        let fixed = Fixed {
            sill: self.fixed.sill.map(|s| s / unit),
            nugget: self.fixed.nugget.map(|n| n / unit),
            ..self.fixed
        };
        let covariance = self.fit(grid, &prepared.groups, fixed, progress)?;
        let table = CorrelationTable::new(grid, covariance.family, covariance.decorrelation_m);
        let neighbours = |sensors: usize| {
            self.neighbours
                .or((sensors > MOST_TOGETHER).then_some(NEIGHBOURS))
                .filter(|n| *n < sensors)
        };

        let shape = (grid.rows(), grid.cols(), readings.bands());
        let (mut map, mut spread) = (Array3::zeros(shape), Array3::zeros(shape));
        for (done, group) in prepared.groups.iter().enumerate() {
            let job = Job { kriging: self, grid, group, table: &table, covariance: &covariance };
            let stage = (done, prepared.groups.len());
            let tiles = job.tiles(neighbours(group.cells.len()), stage, progress)?;
            let sills = match fixed.sill {
                Some(sill) => vec![sill; group.bands.len()],
                None => job.sills(),
            };
            for (cells, prediction) in tiles {
                for (i, cell) in cells.iter().enumerate() {
                    for (k, &band) in group.bands.iter().enumerate() {
                        let mean = prediction.mean[(i, k)];
                        let sd = (sills[k] * prediction.variance[i]).sqrt();
                        let at = [cell.row, cell.col, band];
                        let power = prepared.link.map_or(mean.max(0.0), |link| link.inverse(mean));
                        map[at] = power;
                        // In linear power the spread in dB is the relative one, to first order.
                        spread[at] = DB_PER_NEPER
                            * if prepared.link.is_some() { sd } else { sd / mean.max(sd) };
                    }
                }
            }
        }
        let mut estimate = Estimate::new(finish(readings, map)?.with_spread_db(Some(spread))?);
        estimate.fitted = vec![
            ("decorrelation_m", covariance.decorrelation_m),
            ("sill", covariance.sill * unit),
            ("nugget", covariance.nugget * unit),
        ];
        estimate.notes.extend(neighbours(readings.sensors()).map(local_note));
        Ok(estimate)
    }
}

impl Kriging {
    fn fit(
        &self,
        grid: Grid,
        groups: &[Group],
        fixed: Fixed,
        progress: &Progress<'_>,
    ) -> Result<Covariance, EstimateError> {
        let mut largest: Vec<&Group> = groups.iter().collect();
        largest.sort_by_key(|g| std::cmp::Reverse(g.values.len()));
        let samples: Vec<Sample> = largest
            .into_iter()
            .take(MOST_GROUPS)
            .filter(|g| g.cells.len() > 1)
            .map(|g| Sample { cells: g.cells.clone(), values: g.matrix(None) })
            .collect();
        fit(grid, &samples, self.family, self.trend, fixed, progress)
    }
}

/// One group of bands on its way to the grid.
struct Job<'a> {
    kriging: &'a Kriging,
    grid: Grid,
    group: &'a Group,
    table: &'a CorrelationTable,
    covariance: &'a Covariance,
}

impl<'a> Job<'a> {
    fn regression(&self, sensors: Option<&[usize]>) -> Result<Regression<'a>, EstimateError> {
        let cells = match sensors {
            None => self.group.cells.clone(),
            Some(sensors) => sensors.iter().map(|&s| self.group.cells[s]).collect(),
        };
        let values = self.group.matrix(sensors);
        let Kriging { trend, role, .. } = *self.kriging;
        Regression::new(self.grid, cells, values.as_ref(), self.table, self.covariance, trend, role)
    }

    fn tiles(
        &self,
        neighbours: Option<usize>,
        (done, groups): (usize, usize),
        progress: &Progress<'_>,
    ) -> Result<Vec<(Vec<Cell>, Prediction)>, EstimateError> {
        let whole = if neighbours.is_none() { Some(self.regression(None)?) } else { None };
        let index = Neighbours::new(self.grid, &self.group.cells);
        let tiles = Tiles::new(self.grid);
        let finished = std::sync::atomic::AtomicUsize::new(0);
        (0..tiles.count())
            .into_par_iter()
            .map(|tile| {
                let n = 1 + finished.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                progress.report(done * tiles.count() + n, groups * tiles.count())?;
                let cells = tiles.cells(tile);
                let prediction = match (&whole, neighbours) {
                    (Some(regression), _) => regression.predict(&cells),
                    (None, count) => {
                        let count = count.unwrap_or(NEIGHBOURS);
                        let near = nearest_to_tile(&index, &cells, count);
                        self.regression(Some(&near))?.predict(&cells)
                    }
                };
                Ok((cells, prediction))
            })
            .collect()
    }

    /// The sill of every band given the common shape: bands differ in how much they vary.
    fn sills(&self) -> Vec<f64> {
        let ratio = self.covariance.nugget / self.covariance.sill.max(f64::MIN_POSITIVE);
        let sample = Sample { cells: self.group.cells.clone(), values: self.group.matrix(None) };
        match sample.thinned().terms(self.grid, self.kriging.trend, self.table, ratio) {
            Some(terms) if terms.freedom >= 1.0 => {
                terms.quadratic.iter().map(|q| q / terms.freedom).collect()
            }
            // A single reading says nothing about how much a band varies: the other bands do.
            _ => vec![self.covariance.sill; self.group.bands.len()],
        }
    }
}

impl Group {
    /// The values of all or some sensors as a matrix, sensors x bands.
    fn matrix(&self, sensors: Option<&[usize]>) -> Mat<f64> {
        let rows = sensors.map_or(self.cells.len(), <[usize]>::len);
        Mat::from_fn(rows, self.bands.len(), |i, k| self.values[[sensors.map_or(i, |s| s[i]), k]])
    }
}
