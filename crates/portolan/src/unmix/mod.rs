//! Unmixing at the sensors: readings (N sensors x K bands) = SLFs at the sensors (N x R) times PSDs
//! (R x K), both non-negative. Rows and bands are scaled so that distant sensors and quiet bands
//! count. Readings without noise take their own road (`exact`); others start from successive
//! projection, run hierarchical alternating least squares from several starts, and are polished in
//! relative error (Gillis 2020, Nonnegative Matrix Factorization, chapters 4 to 8).

pub mod btd;
mod complete;
mod cone;
mod count;
mod exact;
mod hals;
mod levels;
mod refine;
mod shear;
#[cfg(test)]
pub(crate) mod simulated;
mod small;
#[cfg(test)]
mod tests;
mod thin;
mod vertices;
mod weighted;

pub(crate) use complete::{complete, filled};
pub(crate) use count::judge;
pub use count::{MOST, count, count_exact};
pub(crate) use levels::level_bounds;
pub use levels::{count_levels, unmix_levels};
pub use refine::refine;
pub(crate) use thin::{extended, solid_bands};
pub(crate) use weighted::Bounds;

use ndarray::Array2;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::error::{EstimateError, InputError};
use crate::link::{Link, quiet_offset};
use exact::Subspace;
use hals::Hals;
use weighted::Weighted;

/// SLFs at the sensors and PSDs.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Unmixed {
    /// Sensors x emitters. Zero at a sensor without any positive reading.
    pub slf_at_sensors: Array2<f64>,
    /// Emitters x bands, each of unit norm; the emitter strongest at the sensors comes first.
    pub psd: Array2<f64>,
    /// Root mean square of ln(x + a) - ln(model + a) over the readings; 0 for a perfect fit. A
    /// reading lost in noise is met by any small power, a level by any power in its bin.
    pub residual: f64,
}

/// Sensors that say what the PSDs are; of more, so many begin, and the others follow.
const MOST_SENSORS: usize = 1024;

/// How to unmix. The defaults are our measured best.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnmixOptions {
    /// Starts of the factorisation: two by successive projection, the rest at random.
    pub starts: usize,
    /// Most rounds of alternating least squares.
    pub rounds: usize,
    /// Most rounds of polishing in relative error; 0 leaves it out.
    pub polish_rounds: usize,
    /// The a of ln(x + a); None takes it from the readings. Where noise was cut at zero, as seen
    /// from the zeros, it is raised above the noise.
    pub floor: Option<f64>,
    /// Look for the exact rank first; without it all readings count as noisy.
    pub exact: bool,
}

impl Default for UnmixOptions {
    fn default() -> Self {
        Self { starts: 4, rounds: 150, polish_rounds: 20, floor: None, exact: true }
    }
}

/// Splits readings (sensors x bands, linear power, NaN = gap) into `emitters` emitters.
pub fn unmix(
    readings_power: &Array2<f64>,
    emitters: usize,
    options: &UnmixOptions,
    seed: u64,
) -> Result<Unmixed, EstimateError> {
    check(readings_power, emitters, options)?;
    let bands = readings_power.ncols();
    // In units of the brightest reading: squares of watts far away would underflow.
    let floor = match options.floor {
        Some(floor) => floor,
        None => quiet_offset(readings_power.iter().copied()),
    };
    let peak = readings_power.iter().copied().filter(|x| !x.is_nan()).fold(0.0, f64::max);
    let power: Vec<f64> = readings_power.iter().map(|x| x / peak).collect();
    let floor = floor / peak;
    let exact = options.exact.then(|| unmix_exact(&power, bands, emitters, floor, options, seed));
    let fitted = match exact.flatten() {
        Some(fitted) => fitted,
        None => {
            let (link, bounds) = count::judge(&power, Link::new(floor));
            let floor = if bounds.is_some() { link.offset().max(floor) } else { floor };
            unmix_noisy(&power, bounds, bands, emitters, floor, options, seed)
        }
    };
    finish(fitted, peak, true)
}

/// Back to the readings' unit, PSDs to unit norm; strongest emitter first where `sorted`.
fn finish(fitted: Weighted, peak: f64, sorted: bool) -> Result<Unmixed, EstimateError> {
    let residual = fitted.residual();
    let (mut slf, psd, bands) = (fitted.slf, fitted.psd, fitted.bands);
    slf.iter_mut().for_each(|s| *s *= peak);
    if !residual.is_finite() || slf.iter().chain(&psd).any(|v| !v.is_finite()) {
        let message = "unmixing gave numbers that are not finite: check the unit of the readings";
        return Err(EstimateError::Numerical(message.into()));
    }
    Ok(normalised(slf, psd, bands, residual, sorted))
}

fn check(power: &Array2<f64>, emitters: usize, options: &UnmixOptions) -> Result<(), InputError> {
    let (sensors, bands) = power.dim();
    if bands == 0 {
        return Err(InputError::NoBands);
    }
    if emitters == 0 || emitters > sensors.min(bands) {
        return Err(InputError::Request(format!(
            "{emitters} emitters cannot be told apart by {sensors} sensors in {bands} bands: ask for 1 to {}",
            sensors.min(bands)
        )));
    }
    if let Some(floor) = options.floor.filter(|f| !(f.is_finite() && *f > 0.0)) {
        return Err(InputError::Request(format!("a floor of {floor} is not a positive power")));
    }
    let wrong = |v: f64| v < 0.0 || v.is_infinite();
    if let Some(((sensor, band), &value)) = power.indexed_iter().find(|(_, v)| wrong(**v)) {
        let place = format!("sensor {sensor}, band {band}");
        return Err(InputError::Power { what: "reading", place, value });
    }
    if power.iter().all(|v| v.is_nan() || *v == 0.0) {
        return Err(InputError::AllZero);
    }
    Ok(())
}

/// Multipliers of rows and bands that bring the norms of the rows and columns of x + floor to 1.
fn equilibrate(power: &[f64], bands: usize, floor: f64) -> (Vec<f64>, Vec<f64>) {
    let sensors = power.len() / bands;
    let (mut rows, mut columns) = (vec![1.0; sensors], vec![1.0; bands]);
    let mut sums = vec![0.0; bands];
    for _ in 0..4 {
        sums.fill(0.0);
        for (row, values) in rows.iter_mut().zip(power.chunks_exact(bands)) {
            let terms = values.iter().zip(&columns).filter(|(x, _)| !x.is_nan());
            let (mut sum, mut there) = (0.0, 0usize);
            for (x, column) in terms {
                sum += ((x + floor) * column).powi(2);
                there += 1;
            }
            let mean = sum * bands as f64 / there.max(1) as f64;
            *row = if mean > 0.0 { 1.0 / mean.sqrt() } else { 0.0 };
            for (sum, x) in sums.iter_mut().zip(values).filter(|(_, x)| !x.is_nan()) {
                *sum += ((x + floor) * *row).powi(2);
            }
        }
        for (column, &sum) in columns.iter_mut().zip(&sums) {
            *column = if sum > 0.0 { 1.0 / sum.sqrt() } else { 0.0 };
        }
    }
    (rows, columns)
}

/// The road for readings of exact rank: from the sensors without gaps, the others follow.
fn unmix_exact(
    power: &[f64],
    bands: usize,
    rank: usize,
    floor: f64,
    options: &UnmixOptions,
    seed: u64,
) -> Option<Weighted> {
    let sensors = power.len() / bands;
    let whole = sensors_without_gaps(power, bands);
    if whole.len() < rank + 1 {
        return None;
    }
    let mut data: Vec<f64> =
        whole.iter().flat_map(|&n| power[n * bands..(n + 1) * bands].iter().copied()).collect();
    let (rows, columns) = equilibrate(&data, bands, 0.0);
    scale(&mut data, &rows, &columns);
    let mut subspace = Subspace::find(&data, bands, rank)?;
    let (mut whole, mut rows) = (whole, rows);
    if whole.len() > MOST_SENSORS {
        let some = spread(whole.len(), MOST_SENSORS);
        data = some.iter().flat_map(|&i| data[i * bands..][..bands].iter().copied()).collect();
        (whole, rows) = some.iter().map(|&i| (whole[i], rows[i])).unzip();
        subspace = Subspace::find(&data, bands, rank)?;
    }
    let pair = subspace.factor(&data, options.starts, seed)?;
    let mut fitted = Weighted {
        rank,
        bands,
        power: power.to_vec(),
        bounds: None,
        floor,
        slf: vec![0.0; rank * sensors],
        psd: pair.psd,
    };
    for psd in fitted.psd.chunks_exact_mut(bands) {
        for (c, &column) in psd.iter_mut().zip(&columns) {
            *c = if column > 0.0 { *c / column } else { 0.0 };
        }
    }
    if whole.len() < sensors {
        fitted.follow();
    }
    for r in 0..rank {
        for (i, &n) in whole.iter().enumerate() {
            fitted.slf[r * sensors + n] = pair.slf[r * whole.len() + i] / rows[i];
        }
    }
    Some(fitted)
}

/// `some` of so many numbers, evenly.
fn spread(count: usize, some: usize) -> Vec<usize> {
    (0..some.min(count)).map(|i| i * count / some.min(count)).collect()
}

fn sensors_without_gaps(power: &[f64], bands: usize) -> Vec<usize> {
    let whole = |row: &[f64]| row.iter().all(|x| !x.is_nan()) && row.iter().any(|x| *x > 0.0);
    let rows = power.chunks_exact(bands).enumerate();
    rows.filter(|(_, row)| whole(row)).map(|(n, _)| n).collect()
}

fn scale(data: &mut [f64], rows: &[f64], columns: &[f64]) {
    for (values, row) in data.chunks_exact_mut(columns.len()).zip(rows) {
        for (x, column) in values.iter_mut().zip(columns) {
            *x *= row * column;
        }
    }
}

/// The road for all other readings.
fn unmix_noisy(
    power: &[f64],
    bounds: Option<Bounds>,
    bands: usize,
    rank: usize,
    floor: f64,
    options: &UnmixOptions,
    seed: u64,
) -> Weighted {
    let sensors = power.len() / bands;
    let (slf, psd) = match sensors > MOST_SENSORS {
        false => alternated(power, bands, rank, floor, options, seed),
        true => {
            let some = spread(sensors, MOST_SENSORS);
            let part: Vec<f64> =
                some.iter().flat_map(|&n| power[n * bands..][..bands].iter().copied()).collect();
            let (own, psd) = alternated(&part, bands, rank, floor, options, seed);
            let mut slf = vec![0.0; rank * sensors];
            for (r, own) in own.chunks_exact(some.len()).enumerate() {
                some.iter().zip(own).for_each(|(n, s)| slf[r * sensors + n] = *s);
            }
            (slf, psd)
        }
    };
    let mut fitted = Weighted { rank, bands, power: power.to_vec(), bounds, floor, slf, psd };
    if sensors > MOST_SENSORS {
        fitted.follow();
    }
    if options.polish_rounds > 0 {
        fitted.polish(options.polish_rounds, 1e-4);
    }
    fitted
}

/// SLFs and PSDs by alternating least squares from several starts.
fn alternated(
    power: &[f64],
    bands: usize,
    rank: usize,
    floor: f64,
    options: &UnmixOptions,
    seed: u64,
) -> (Vec<f64>, Vec<f64>) {
    let sensors = power.len() / bands;
    let (rows, columns) = equilibrate(power, bands, floor);
    let mut data = power.to_vec();
    scale(&mut data, &rows, &columns);
    let gaps: Vec<usize> = (0..data.len()).filter(|&i| data[i].is_nan()).collect();
    // Until a model fills them, gaps hold what the row's and the band's scale suggest.
    let typical = (data.iter().filter(|x| !x.is_nan()).map(|x| x * x).sum::<f64>()
        / (data.len() - gaps.len()).max(1) as f64)
        .sqrt();
    gaps.iter().for_each(|&gap| data[gap] = typical);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut best: Option<(f64, Vec<f64>, Vec<f64>)> = None;
    for start in 0..options.starts.max(1) {
        let (slf, psd) = first_guess(&data, bands, rank, start, &mut rng);
        let mut hals = Hals { rank, sensors, bands, data, gaps: gaps.clone(), slf, psd };
        let loss = hals.run((options.rounds / 5).max(10), 1e-3);
        if best.as_ref().is_none_or(|(least, ..)| loss < *least) {
            best = Some((loss, hals.slf, hals.psd));
        }
        data = hals.data;
    }
    let (_, slf, psd) = best.expect("there is at least one start");
    let mut hals = Hals { rank, sensors, bands, data, gaps, slf, psd };
    hals.run(options.rounds, 1e-5);
    let (mut slf, mut psd) = (hals.slf, hals.psd);
    let divide = |values: &mut [f64], by: &[f64]| {
        for (v, &scale) in values.iter_mut().zip(by) {
            *v = if scale > 0.0 { *v / scale } else { 0.0 };
        }
    };
    slf.chunks_exact_mut(sensors).for_each(|s| divide(s, &rows));
    psd.chunks_exact_mut(bands).for_each(|c| divide(c, &columns));
    (slf, psd)
}

/// Pure bands (start 0), pure sensors (start 1), or random sensors' spectra.
fn first_guess(
    data: &[f64],
    bands: usize,
    rank: usize,
    start: usize,
    rng: &mut ChaCha8Rng,
) -> (Vec<f64>, Vec<f64>) {
    let sensors = data.len() / bands;
    let mut psd: Vec<f64> = (0..rank * bands).map(|_| rng.random_range(0.01..1.0)).collect();
    let mut slf: Vec<f64> = (0..rank * sensors).map(|_| rng.random_range(0.01..1.0)).collect();
    match start {
        0 => {
            let found = vertices::pick(bands, sensors, rank, |n, k| data[n * bands + k]);
            for (r, &k) in found.picks.iter().enumerate() {
                (0..sensors).for_each(|n| slf[r * sensors + n] = data[n * bands + k]);
                // The other bands' shares follow in the first round; SLFs lead.
                (0..bands).for_each(|q| psd[r * bands + q] = f64::from(u8::from(q == k)) + 0.05);
            }
        }
        1 => {
            let found = vertices::pick(sensors, bands, rank, |k, n| data[n * bands + k]);
            for (r, &n) in found.picks.iter().enumerate() {
                psd[r * bands..(r + 1) * bands].copy_from_slice(&data[n * bands..][..bands]);
            }
        }
        _ => {
            for r in 0..rank {
                let n = rng.random_range(0..sensors);
                psd[r * bands..(r + 1) * bands].copy_from_slice(&data[n * bands..][..bands]);
            }
        }
    }
    (slf, psd)
}

/// PSDs to unit norm; strongest emitter first where `sorted`.
fn normalised(slf: Vec<f64>, psd: Vec<f64>, bands: usize, residual: f64, sorted: bool) -> Unmixed {
    let rank = psd.len() / bands;
    let sensors = slf.len() / rank;
    let norms: Vec<f64> = psd
        .chunks_exact(bands)
        .map(|c| {
            let most = c.iter().fold(0.0f64, |m, v| m.max(*v));
            if most > 0.0 {
                most * c.iter().map(|v| (v / most).powi(2)).sum::<f64>().sqrt()
            } else {
                0.0
            }
        })
        .collect();
    let strength: Vec<f64> = (0..rank)
        .map(|r| norms[r] * slf[r * sensors..(r + 1) * sensors].iter().sum::<f64>())
        .collect();
    let mut order: Vec<usize> = (0..rank).collect();
    if sorted {
        order.sort_by(|&a, &b| strength[b].total_cmp(&strength[a]));
    }
    let flat = 1.0 / (bands as f64).sqrt();
    // An emitter that came out silent keeps a flat PSD and no SLF, so that norms stay 1.
    Unmixed {
        slf_at_sensors: Array2::from_shape_fn((sensors, rank), |(n, i)| {
            slf[order[i] * sensors + n] * norms[order[i]]
        }),
        psd: Array2::from_shape_fn((rank, bands), |(i, k)| {
            let norm = norms[order[i]];
            if norm > 0.0 { psd[order[i] * bands + k] / norm } else { flat }
        }),
        residual,
    }
}
