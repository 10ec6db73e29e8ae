//! Sensors: where they stand, what noise they have, how finely they report.

use rand::RngExt;
use rand::seq::index;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use ndarray::Array2;

use crate::error::InputError;
use crate::grid::{Cell, Grid};
use crate::link::{Link, quiet_offset};
use crate::map::RadioMap;
use crate::quantiser::{MISSING_LEVEL, Quantiser};
use crate::readings::{Readings, Values};
use crate::scale::{Scale, UNIT_OFFSET};
use crate::simulate::{Scenario, simulate, stream};
use crate::site::Site;

/// Where the sensors stand.
///
/// ```
/// use portolan::sense::{SensorLayout, Sensing, sense};
/// use portolan::{Cell, Grid};
/// # use portolan::simulate::{Scenario, simulate};
/// # let map = simulate(&Scenario { bands: 4, ..Scenario::new(Grid::new(20, 20, 1.0)?) })?;
/// let count = |layout| Ok(sense(&map, &Sensing::exact(layout, 0))?.sensors());
/// assert_eq!(count(SensorLayout::Fraction(0.05))?, 20);
/// assert_eq!(count(SensorLayout::Lattice(5))?, 16);
/// let waypoints = vec![Cell::new(0, 0), Cell::new(0, 19)];
/// assert_eq!(count(SensorLayout::Path { waypoints, every: 2 })?, 10);
/// # Ok::<(), portolan::InputError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SensorLayout {
    /// Random cells, this share of all (rounded, at least 2).
    Fraction(f64),
    /// This many random cells.
    Count(usize),
    /// These cells; one that is given twice is read twice.
    Cells(Vec<Cell>),
    /// A regular lattice, one sensor every so many cells along both axes, centred.
    Lattice(usize),
    /// A drive along straight legs between waypoints, one sensor every so many cells.
    Path {
        /// Where the legs begin and end.
        waypoints: Vec<Cell>,
        /// Cells from one sensor to the next.
        every: usize,
    },
}

/// Levels instead of power.
///
/// ```
/// use portolan::sense::{Quantising, Sensing, SensorLayout, sense};
/// use portolan::{Grid, Values};
/// # use portolan::simulate::{Scenario, simulate};
/// # let map = simulate(&Scenario { bands: 4, ..Scenario::new(Grid::new(20, 20, 1.0)?) })?;
/// let quantising = Some(Quantising { bits: 3, edges: None, sigma: 0.0 });
/// let sensing = Sensing { quantising, ..Sensing::exact(SensorLayout::Count(40), 0) };
/// let readings = sense(&map, &sensing)?;
/// assert!(matches!(readings.values(), Values::Levels { quantiser, .. } if quantiser.edges().len() == 7));
/// # Ok::<(), portolan::InputError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Quantising {
    /// Bits of a level, 1 to 8.
    pub bits: u32,
    /// Inner edges in ln(x + a); chosen from quantiles where absent.
    pub edges: Option<Vec<f64>>,
    /// Standard deviation of the noise before quantising.
    pub sigma: f64,
}

/// How a map is sensed.
///
/// ```
/// use portolan::Grid;
/// use portolan::sense::{Sensing, SensorLayout, sense};
/// # use portolan::simulate::{Scenario, simulate};
/// # let map = simulate(&Scenario { bands: 4, ..Scenario::new(Grid::new(20, 20, 1.0)?) })?;
/// let exact = Sensing::exact(SensorLayout::Count(40), 0);
/// let noisy = Sensing { snr_db: Some(20.0), gaps: 0.1, ..exact.clone() };
/// let (exact, noisy) = (sense(&map, &exact)?, sense(&map, &noisy)?);
/// // The same places, other values.
/// assert_eq!(exact.sites(), noisy.sites());
/// assert!(exact.gaps() == 0 && noisy.gaps() > 0);
/// # Ok::<(), portolan::InputError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Sensing {
    /// Where the sensors stand.
    pub layout: SensorLayout,
    /// Power of the readings over power of the additive noise, over all readings, in dB.
    pub snr_db: Option<f64>,
    /// Share of single readings that are lost.
    pub gaps: f64,
    /// Share of the bands that a sensor covers: neighbouring ones, the first drawn at random.
    pub cover: f64,
    /// Report levels instead of power.
    pub quantising: Option<Quantising>,
    /// Seed of places, noise and gaps.
    pub seed: u64,
}

impl Sensing {
    /// Exact readings with a given layout.
    pub fn exact(layout: SensorLayout, seed: u64) -> Self {
        Self { layout, snr_db: None, gaps: 0.0, cover: 1.0, quantising: None, seed }
    }
}

/// Readings of a map. Unknown cells (NaN) are passed over by random layouts and leave gaps in others.
///
/// ```
/// use portolan::sense::{Sensing, SensorLayout, sense};
/// use portolan::{Cell, Grid};
/// # use portolan::simulate::{Scenario, simulate};
/// # let map = simulate(&Scenario { bands: 4, ..Scenario::new(Grid::new(20, 20, 1.0)?) })?;
/// let cells = vec![Cell::new(2, 3), Cell::new(17, 4)];
/// let readings = sense(&map, &Sensing::exact(SensorLayout::Cells(cells), 0))?;
/// assert_eq!(readings.power()[[1, 0]], map.band(0)[[17, 4]]);
/// # Ok::<(), portolan::InputError>(())
/// ```
pub fn sense(map: &RadioMap, sensing: &Sensing) -> Result<Readings, InputError> {
    let cells = place(map, &sensing.layout, &mut stream(sensing.seed, 0))?;
    let mut values = Array2::zeros((cells.len(), map.bands()));
    for (mut row, &cell) in values.outer_iter_mut().zip(&cells) {
        map.spectrum_into(cell, row.as_slice_mut().expect("rows are contiguous"));
    }
    if let Some(snr_db) = sensing.snr_db {
        add_noise(&mut values, snr_db, &mut stream(sensing.seed, 1))?;
    }
    if !(0.0..1.0).contains(&sensing.gaps) {
        let message = format!("a share of gaps of {}: it takes 0 up to 1", sensing.gaps);
        return Err(InputError::Request(message));
    }
    if sensing.gaps > 0.0 {
        let mut rng = stream(sensing.seed, 4);
        values.mapv_inplace(|v| if rng.random_bool(sensing.gaps) { f64::NAN } else { v });
    }
    uncover(&mut values, sensing.cover, &mut stream(sensing.seed, 5))?;
    let values = match &sensing.quantising {
        None => Values::Power(values),
        Some(quantising) => {
            let mut rng = stream(sensing.seed, 2);
            quantise(&values, map, quantising, &mut rng)?
        }
    };
    let sites: Vec<Site> = cells.iter().map(|&cell| map.grid().site(cell)).collect();
    Readings::new(sites, values, map.scale())?
        .with_crs(map.crs())
        .with_grid(Some(map.grid()))?
        .with_labels(map.labels().clone())
}

fn place(
    map: &RadioMap,
    layout: &SensorLayout,
    rng: &mut ChaCha8Rng,
) -> Result<Vec<Cell>, InputError> {
    let grid = map.grid();
    let request = |message: String| Err(InputError::Request(message));
    match layout {
        SensorLayout::Fraction(fraction) => {
            if !(*fraction > 0.0 && *fraction <= 1.0) {
                return request(format!("a fraction of {fraction}: it takes more than 0, up to 1"));
            }
            let known = known_cells(map);
            let count = (fraction * known.len() as f64).round() as usize;
            draw_cells(grid, &known, count.max(2), rng)
        }
        SensorLayout::Count(count) => draw_cells(grid, &known_cells(map), *count, rng),
        SensorLayout::Cells(cells) => check_cells(grid, cells).map(|()| cells.clone()),
        SensorLayout::Lattice(0) | SensorLayout::Path { every: 0, .. } => {
            request("sensors every 0 cells: it takes 1 or more".into())
        }
        SensorLayout::Lattice(step) => {
            let along = |n: usize| {
                let first = (n - 1) % step / 2;
                (first..n).step_by(*step)
            };
            Ok(along(grid.rows())
                .flat_map(|row| along(grid.cols()).map(move |col| Cell::new(row, col)))
                .collect())
        }
        SensorLayout::Path { waypoints, every } => {
            if waypoints.len() < 2 {
                return request("a drive path needs at least two waypoints".into());
            }
            if let Some(sensor) = waypoints.iter().position(|w| !grid.contains(*w)) {
                let Cell { row, col } = waypoints[sensor];
                return request(format!(
                    "waypoint {sensor} at row {row}, col {col} is off the {} x {} grid",
                    grid.rows(),
                    grid.cols()
                ));
            }
            Ok(drive(waypoints, *every))
        }
    }
}

/// Cells must lie on the grid.
fn check_cells(grid: Grid, cells: &[Cell]) -> Result<(), InputError> {
    match cells.iter().position(|&cell| !grid.contains(cell)) {
        None => Ok(()),
        Some(sensor) => {
            let (Site { x_m, y_m, .. }, rows, cols) =
                (grid.site(cells[sensor]), grid.rows(), grid.cols());
            Err(InputError::OffGrid { sensor, x_m, y_m, rows, cols })
        }
    }
}

fn known_cells(map: &RadioMap) -> Vec<usize> {
    let mut spectrum = vec![0.0; map.bands()];
    (0..map.grid().cells())
        .filter(|&index| {
            map.spectrum_into(map.grid().cell(index), &mut spectrum);
            !spectrum.iter().all(|v| v.is_nan())
        })
        .collect()
}

fn draw_cells(
    grid: Grid,
    known: &[usize],
    count: usize,
    rng: &mut ChaCha8Rng,
) -> Result<Vec<Cell>, InputError> {
    if count < 2 || count > known.len() {
        return Err(InputError::Request(format!(
            "{count} sensors: the map takes 2 to {}",
            known.len()
        )));
    }
    let mut picked: Vec<usize> =
        index::sample(rng, known.len(), count).into_iter().map(|i| known[i]).collect();
    picked.sort_unstable();
    Ok(picked.into_iter().map(|index| grid.cell(index)).collect())
}

/// Cells along the legs, one every `every` cells of travel; a cell passed twice is read once.
fn drive(waypoints: &[Cell], every: usize) -> Vec<Cell> {
    let mut seen = std::collections::HashSet::new();
    let mut cells = Vec::new();
    let (mut travelled, mut next) = (0.0, 0.0);
    for leg in waypoints.windows(2) {
        let (from, to) = (leg[0], leg[1]);
        let (dr, dc) = (to.row as f64 - from.row as f64, to.col as f64 - from.col as f64);
        let length = dr.hypot(dc);
        while next <= travelled + length {
            let t = if length > 0.0 { (next - travelled) / length } else { 0.0 };
            let at = |start: usize, d: f64| (start as f64 + t * d).round() as usize;
            let cell = Cell::new(at(from.row, dr), at(from.col, dc));
            if seen.insert(cell) {
                cells.push(cell);
            }
            next += every as f64;
        }
        travelled += length;
    }
    cells
}

/// Every sensor keeps this share of the bands, neighbouring ones, wherever they begin.
fn uncover(values: &mut Array2<f64>, cover: f64, rng: &mut ChaCha8Rng) -> Result<(), InputError> {
    if !(cover > 0.0 && cover <= 1.0) {
        return Err(InputError::Request(format!(
            "sensors that cover a share of {cover} of the bands: it takes more than 0, up to 1"
        )));
    }
    let bands = values.ncols();
    let kept = ((cover * bands as f64).round() as usize).max(1);
    if kept < bands {
        for mut row in values.outer_iter_mut() {
            let first = rng.random_range(0..=bands - kept);
            let off = |k: usize| k < first || k >= first + kept;
            row.iter_mut().enumerate().filter(|(k, _)| off(*k)).for_each(|(_, v)| *v = f64::NAN);
        }
    }
    Ok(())
}

/// White Gaussian noise on linear power; what would fall below zero reads zero.
fn add_noise(
    values: &mut Array2<f64>,
    snr_db: f64,
    rng: &mut ChaCha8Rng,
) -> Result<(), InputError> {
    if !snr_db.is_finite() {
        return Err(InputError::Request(format!("an SNR of {snr_db} dB: it must be finite")));
    }
    let known: Vec<f64> = values.iter().copied().filter(|v| !v.is_nan()).collect();
    let mean_square = known.iter().map(|v| v * v).sum::<f64>() / known.len().max(1) as f64;
    let sigma = (mean_square / 10f64.powf(snr_db / 10.0)).sqrt();
    values.mapv_inplace(|v| {
        let noise: f64 = StandardNormal.sample(rng);
        // NaN.max(0) would be 0: a gap must stay a gap.
        if v.is_nan() { v } else { (v + sigma * noise).max(0.0) }
    });
    Ok(())
}

fn quantise(
    values: &Array2<f64>,
    map: &RadioMap,
    quantising: &Quantising,
    rng: &mut ChaCha8Rng,
) -> Result<Values, InputError> {
    let floor = quiet_offset(values.iter().copied());
    let offset = match map.scale() {
        Scale::Relative { offset } => offset,
        Scale::Absolute | Scale::Uncalibrated => floor,
    };
    let link = Link::new(offset).above_noise(values.iter().copied());
    let quantiser = match &quantising.edges {
        Some(edges) => {
            let levels = Quantiser::levels_for_bits(quantising.bits)?;
            if edges.len() + 1 != levels {
                return Err(InputError::Quantiser(format!(
                    "{} edges make {} levels, but {} bits have {levels}",
                    edges.len(),
                    edges.len() + 1,
                    quantising.bits
                )));
            }
            Quantiser::new(edges.clone(), quantising.sigma, offset)?
        }
        None if link.offset() == UNIT_OFFSET => {
            training_quantiser(map.grid(), values.ncols(), quantising)?
        }
        None => {
            let sample = values.iter().map(|&v| link.apply(v)).collect();
            let Quantising { bits, sigma, .. } = *quantising;
            Quantiser::from_quantiles(sample, bits, sigma, link.offset())?
        }
    };
    let link = quantiser.link();
    let levels = values.mapv(|v| {
        let noise: f64 = StandardNormal.sample(rng);
        if v.is_nan() {
            MISSING_LEVEL
        } else {
            quantiser.level(link.apply(v) + quantiser.sigma() * noise)
        }
    });
    Ok(Values::Levels { levels, quantiser })
}

/// Edges from quantiles of simulated maps of the same size, with 1 to 6 emitters and the paper's
/// range of shadowing.
fn training_quantiser(
    grid: Grid,
    bands: usize,
    quantising: &Quantising,
) -> Result<Quantiser, InputError> {
    let link = Link::new(UNIT_OFFSET);
    let mut sample = Vec::new();
    let mut rng = stream(0, 3);
    for seed in 0..12 {
        let emitters = 1 + seed as usize % 6;
        let shadow_db = rng.random_range(4.0..8.0);
        let decorrelation_m = rng.random_range(40.0..90.0);
        let scenario =
            Scenario { bands, emitters, shadow_db, decorrelation_m, seed, ..Scenario::new(grid) };
        let map = simulate(&scenario)?;
        let mut spectrum = vec![0.0; map.bands()];
        for index in (0..grid.cells()).step_by(1 + grid.cells() / 600) {
            map.spectrum_into(grid.cell(index), &mut spectrum);
            sample.extend(spectrum.iter().map(|&v| link.apply(v)));
        }
    }
    Quantiser::from_quantiles(sample, quantising.bits, quantising.sigma, UNIT_OFFSET)
}

#[cfg(test)]
mod tests;
