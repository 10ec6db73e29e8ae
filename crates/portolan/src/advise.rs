//! Where the next sensors help most: a greedy design that takes, one after the other, the places
//! that remove the most posterior variance from the whole map.
//!
//! A Gaussian process with exponential correlation is conditioned on the sensors exactly; its
//! covariance is then scaled cell by cell to the spread that the method itself reports. A sensor
//! at x takes cov(x, y)^2 / (var(x) + noise) from the variance at y (Krause, Singh and Guestrin,
//! Near-optimal sensor placements in Gaussian processes, 2008).

mod posterior;

use rand::seq::SliceRandom;

use crate::error::{EstimateError, InputError};
use crate::grid::{Cell, Grid};
use crate::map::RadioMap;
use crate::model::Report;
use crate::progress::Progress;
use crate::simulate::stream;
use crate::site::{Region, Site};
use posterior::Posterior;

/// Up to this many free cells, every one is a candidate.
const ALL_CANDIDATES: usize = 4096;
/// Beyond, candidates stand on a lattice with at least this many free cells.
const SOME_CANDIDATES: usize = 2000;
/// The variance is summed over a lattice of at most this many cells.
const EVALUATED: usize = 1500;
/// The most places advised at once.
pub const MOST_PLACES: usize = 1000;

/// How the uncertain part of a map varies over space.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Process {
    /// Distance in metres over which the process loses its memory.
    pub decorrelation_m: f64,
    /// Variance of a sensor's noise over the variance of the process.
    pub noise_ratio: f64,
}

impl Process {
    /// From what a method has fitted; None where it has no decorrelation distance.
    pub fn from_report(report: &Report) -> Option<Self> {
        let find = |name: &str| report.fitted(name);
        let decorrelation_m = find("decorrelation_m").filter(|d| d.is_finite() && *d > 0.0)?;
        let square = |name: &str| find(name).map(|sd| sd * sd);
        let noise = find("nugget").or_else(|| square("noise_db")).unwrap_or(0.0);
        let process = find("sill").or_else(|| square("shadow_db")).unwrap_or(0.0);
        let ratio = noise / process;
        let noise_ratio = if ratio.is_finite() && ratio > 0.0 { ratio } else { 0.0 };
        Some(Self { decorrelation_m, noise_ratio })
    }
}

/// A place for a new sensor and what it is expected to bring, given all places before it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Advice {
    /// Where to put the sensor.
    pub cell: Cell,
    /// By how much the variance falls, in dB^2, averaged over the known cells.
    pub reduction_db2: f64,
    /// The same as a share of the variance before any new sensor.
    pub share: f64,
}

/// The known cells of a map that have no sensor and lie outside the regions to leave out.
pub fn free_cells(sensors: &[Site], map: &RadioMap, leave_out: &[Region]) -> Vec<Cell> {
    let grid = map.grid();
    let mut free = known(map);
    for cell in sensors.iter().filter_map(|&site| grid.cell_at(site)) {
        free[grid.index(cell)] = false;
    }
    let open = |cell: &Cell| {
        let site = grid.site(*cell);
        !leave_out.iter().any(|region| region.outside_m(site) == 0.0)
    };
    (0..grid.cells()).filter(|&i| free[i]).map(|i| grid.cell(i)).filter(open).collect()
}

/// The free cells in random order: what advice is measured against.
pub fn shuffled(mut cells: Vec<Cell>, seed: u64) -> Vec<Cell> {
    cells.shuffle(&mut stream(seed, 5));
    cells
}

/// The best `count` places, best first. `map` is what was estimated from the sensors; its spread,
/// averaged over bands, is the variance to be reduced. Cells whose power or spread is unknown (NaN)
/// are neither advised nor counted; regions to leave out are not advised.
///
/// ```
/// use portolan::advise::{Process, advise};
/// use portolan::estimate::build;
/// use portolan::{Context, Grid, Progress, Region, Site};
/// # use portolan::sense::{SensorLayout, Sensing, sense};
/// # use portolan::simulate::{Scenario, simulate};
/// let grid = Grid::new(16, 16, 1.0)?;
/// let truth = simulate(&Scenario { bands: 4, emitters: 2, seed: 3, ..Scenario::new(grid) })?;
/// let readings = sense(&truth, &Sensing::exact(SensorLayout::Count(30), 0))?;
/// let model = build("kriging", [])?.fit(&readings, &Context::default(), &Progress::silent())?;
/// let map = model.map(grid, &Progress::silent())?;
/// let process = Process::from_report(model.report()).expect("kriging fits one");
/// let pond = Region { low: Site::new(0.0, 0.0), high: Site::new(5.0, 5.0) };
/// let advice = advise(readings.sites(), &map, &[pond], process, 3, &Progress::silent())?;
/// assert_eq!(advice.len(), 3);
/// assert!(advice.iter().all(|a| a.share > 0.0 && (a.cell.row > 5 || a.cell.col > 5)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn advise(
    sensors: &[Site],
    map: &RadioMap,
    leave_out: &[Region],
    process: Process,
    count: usize,
    progress: &Progress<'_>,
) -> Result<Vec<Advice>, EstimateError> {
    let grid = map.grid();
    let variance = mean_variance(map)?;
    let free = free_cells(sensors, map, leave_out);
    check(process, count, free.len())?;
    progress.report(0, count + 1)?;

    let known = (0..grid.cells()).filter(|&i| !variance[i].is_nan()).map(|i| grid.cell(i));
    let evaluated = at_most(grid, known.collect(), EVALUATED);
    let candidates = match free.len() {
        0..=ALL_CANDIDATES => free,
        _ => at_least(grid, &free, count.max(SOME_CANDIDATES)),
    };
    let spread: Vec<f64> = evaluated.iter().map(|cell| variance[grid.index(*cell)]).collect();
    let total: f64 = spread.iter().sum();
    let mut posterior = Posterior::new(grid, sensors, &evaluated, &spread, &candidates, process)?;
    let mut advice = Vec::with_capacity(count);
    for done in 0..count {
        progress.report(done + 1, count + 1)?;
        let Some((pick, gain)) = posterior.best() else { break };
        posterior.condition(pick);
        advice.push(Advice {
            cell: candidates[pick],
            reduction_db2: gain / evaluated.len() as f64,
            share: if total > 0.0 { gain / total } else { 0.0 },
        });
    }
    Ok(advice)
}

fn check(process: Process, count: usize, free: usize) -> Result<(), InputError> {
    let Process { decorrelation_m, noise_ratio } = process;
    let sound = decorrelation_m > 0.0 && decorrelation_m.is_finite();
    if !(sound && noise_ratio >= 0.0 && noise_ratio.is_finite()) {
        return Err(InputError::Request(format!(
            "a decorrelation of {decorrelation_m} m with a noise of {noise_ratio} times the \
             process: it takes a positive distance and a noise of 0 or more"
        )));
    }
    if count == 0 || count > free.min(MOST_PLACES) {
        let most = free.min(MOST_PLACES);
        return Err(InputError::Request(format!(
            "advice on {count} places: it takes 1 to {most} ({free} cells are free)"
        )));
    }
    Ok(())
}

/// Mean over bands of the squared spread of every cell in dB^2, row by row; NaN where the cell is unknown.
pub fn mean_variance(map: &RadioMap) -> Result<Vec<f64>, InputError> {
    let Some(spread) = map.spread_db() else {
        return Err(InputError::Request("the map has no spread to reduce".into()));
    };
    let mut spectrum = vec![0.0; map.bands()];
    let lanes = spread.lanes(ndarray::Axis(2));
    let mean = lanes.into_iter().enumerate().map(|(index, lane)| {
        map.spectrum_into(map.grid().cell(index), &mut spectrum);
        let told = lane.iter().zip(&spectrum).filter(|(s, p)| !s.is_nan() && !p.is_nan());
        let (sum, bands) = told.fold((0.0, 0), |(sum, n), (s, _)| (sum + s * s, n + 1));
        if bands > 0 { sum / f64::from(bands) } else { f64::NAN }
    });
    Ok(mean.collect())
}

/// Where power is known and, if the map has a spread at all, the spread too.
fn known(map: &RadioMap) -> Vec<bool> {
    if let Ok(variance) = mean_variance(map) {
        return variance.iter().map(|v| !v.is_nan()).collect();
    }
    let mut spectrum = vec![0.0; map.bands()];
    let told = |index| {
        map.spectrum_into(map.grid().cell(index), &mut spectrum);
        spectrum.iter().any(|p| !p.is_nan())
    };
    (0..map.grid().cells()).map(told).collect()
}

/// Whether a cell lies on the centred lattice with one cell every `step`.
fn on_lattice(grid: Grid, cell: Cell, step: usize) -> bool {
    let on = |x: usize, n: usize| x % step == (n - 1) % step / 2;
    on(cell.row, grid.rows()) && on(cell.col, grid.cols())
}

fn lattice_size(grid: Grid, step: usize) -> usize {
    let along = |n: usize| (n - (n - 1) % step / 2).div_ceil(step);
    along(grid.rows()) * along(grid.cols())
}

/// The cells on the finest lattice that holds at most `most`; all of them where they are few.
fn at_most(grid: Grid, cells: Vec<Cell>, most: usize) -> Vec<Cell> {
    if cells.len() <= most {
        return cells;
    }
    let longest = grid.rows().max(grid.cols());
    let step = (1..=longest).find(|&step| lattice_size(grid, step) <= most).unwrap_or(longest);
    let some: Vec<Cell> = cells.iter().copied().filter(|c| on_lattice(grid, *c, step)).collect();
    // Known cells may all lie off the lattice, along a street say.
    if 4 * some.len() >= lattice_size(grid, step) {
        return some;
    }
    let every = cells.len().div_ceil(most);
    cells.into_iter().step_by(every).collect()
}

/// The cells on the coarsest lattice that holds at least `least` of them.
fn at_least(grid: Grid, cells: &[Cell], least: usize) -> Vec<Cell> {
    let longest = grid.rows().max(grid.cols());
    (1..=longest)
        .rev()
        .filter(|&step| lattice_size(grid, step) >= least)
        .map(|step| cells.iter().copied().filter(|c| on_lattice(grid, *c, step)).collect())
        .find(|some: &Vec<Cell>| some.len() >= least)
        .unwrap_or_else(|| cells.to_vec())
}

#[cfg(test)]
mod tests;
