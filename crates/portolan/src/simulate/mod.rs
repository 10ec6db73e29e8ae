//! Simulated radio maps with a known truth: path loss, correlated log-normal shadowing and smooth
//! power spectra (paper, section IV; Goldsmith, Wireless Communications, chapter 2).

mod shadowing;

pub use shadowing::Shadowing;

use ndarray::{Array2, Array3, Axis};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::error::InputError;
use crate::grid::Grid;
use crate::map::{Factors, RadioMap};
use crate::scale::Scale;

/// Shape of the bumps that make up a power spectral density.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PsdShape {
    /// exp(-(k - centre)^2 / (2 width^2)), as in the paper.
    Gaussian,
    /// sinc^2 with the same width at half height.
    Sinc,
}

/// What to simulate. The defaults are the paper's main setting.
///
/// ```
/// use portolan::Grid;
/// use portolan::simulate::{Scenario, simulate};
/// let grid = Grid::new(20, 30, 2.0)?;
/// let map = simulate(&Scenario { bands: 8, emitters: 3, shadow_db: 4.0, ..Scenario::new(grid) })?;
/// assert_eq!((map.bands(), map.emitters().len()), (8, 3));
/// # Ok::<(), portolan::InputError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scenario {
    /// Cells of the map.
    pub grid: Grid,
    /// Number of bands.
    pub bands: usize,
    /// Number of emitters.
    pub emitters: usize,
    /// Standard deviation of the shadowing in dB.
    pub shadow_db: f64,
    /// Distance in metres over which shadowing loses its memory: covariance exp(-d / decorrelation).
    pub decorrelation_m: f64,
    /// Shape of the spectra.
    pub psd: PsdShape,
    /// Seed of everything random.
    pub seed: u64,
}

impl Scenario {
    /// The paper's main setting on a given grid: 64 bands, 4 emitters, 6 dB, 90 m.
    pub fn new(grid: Grid) -> Self {
        Self {
            grid,
            bands: 64,
            emitters: 4,
            shadow_db: 6.0,
            decorrelation_m: 90.0,
            psd: PsdShape::Gaussian,
            seed: 0,
        }
    }
}

/// Distance within which there is no path loss, in metres.
pub const REFERENCE_DISTANCE_M: f64 = 2.0;

/// A factored map with unit-norm SLFs and PSDs and its emitters' positions.
///
/// ```
/// use portolan::Grid;
/// use portolan::simulate::{Scenario, simulate};
/// let scenario = Scenario { bands: 4, seed: 5, ..Scenario::new(Grid::new(16, 16, 1.0)?) };
/// let map = simulate(&scenario)?;
/// // The same seed makes the same map.
/// assert_eq!(map, simulate(&scenario)?);
/// assert_ne!(map, simulate(&Scenario { seed: 6, ..scenario })?);
/// # Ok::<(), portolan::InputError>(())
/// ```
pub fn simulate(scenario: &Scenario) -> Result<RadioMap, InputError> {
    check(scenario)?;
    let Scenario { grid, bands, emitters, .. } = *scenario;
    let mut rng = stream(scenario.seed, 0);
    let mut positions: Vec<[f64; 2]> = Vec::with_capacity(emitters);
    let mut exponents = Vec::with_capacity(emitters);
    let mut psd = Array2::zeros((emitters, bands));
    for mut spectrum in psd.outer_iter_mut() {
        let row = rng.random_range(-0.5..grid.rows() as f64 - 0.5);
        let col = rng.random_range(-0.5..grid.cols() as f64 - 0.5);
        positions.push([row, col]);
        exponents.push(rng.random_range(2.0..=2.5));
        draw_psd(scenario.psd, &mut rng, spectrum.as_slice_mut().expect("rows are contiguous"));
    }
    let mut slf = Array3::zeros((emitters, grid.rows(), grid.cols()));
    draw_shadowing(scenario, &mut slf)?;
    slf.outer_iter_mut()
        .into_par_iter()
        .zip(positions.par_iter().zip(exponents.par_iter()))
        .for_each(|(mut field, (&[row, col], &exponent))| {
            for ((i, j), value) in field.indexed_iter_mut() {
                let d = grid.cell_m() * (i as f64 - row).hypot(j as f64 - col);
                let path = (d / REFERENCE_DISTANCE_M).max(1.0).powf(-exponent);
                *value = path * 10f64.powf(*value / 10.0);
            }
            let norm = field.iter().map(|v| v * v).sum::<f64>().sqrt();
            field.mapv_inplace(|v| v / norm);
        });
    let emitters = positions.into_iter().map(|at| grid.site_at(at)).collect();
    Ok(RadioMap::factored(grid, Factors { slf, psd }, Scale::paper())?.with_emitters(emitters))
}

fn check(scenario: &Scenario) -> Result<(), InputError> {
    let request = |message: String| Err(InputError::Request(message));
    if scenario.bands == 0 || scenario.bands > 1 << 16 {
        return request(format!("{} bands: it takes 1 to 65536", scenario.bands));
    }
    if scenario.emitters == 0 || scenario.emitters > 256 {
        return request(format!("{} emitters: it takes 1 to 256", scenario.emitters));
    }
    if !(scenario.shadow_db.is_finite() && (0.0..=30.0).contains(&scenario.shadow_db)) {
        return request(format!("shadowing of {} dB: it takes 0 to 30", scenario.shadow_db));
    }
    if !(scenario.decorrelation_m.is_finite() && scenario.decorrelation_m > 0.0) {
        let metres = scenario.decorrelation_m;
        return request(format!("decorrelation of {metres} m: it must be positive"));
    }
    Ok(())
}

/// An independent random stream for each purpose, so that results do not depend on threads.
pub fn stream(seed: u64, purpose: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(purpose);
    rng
}

/// Fills `slf` with shadowing in dB; fields come in independent pairs.
fn draw_shadowing(scenario: &Scenario, slf: &mut Array3<f64>) -> Result<(), InputError> {
    if scenario.shadow_db == 0.0 {
        return Ok(());
    }
    let shadowing = Shadowing::new(scenario.grid, scenario.decorrelation_m)?;
    slf.axis_chunks_iter_mut(Axis(0), 2).into_par_iter().enumerate().for_each(
        |(pair, mut fields)| {
            let mut rng = stream(scenario.seed, 1 + pair as u64);
            let drawn = shadowing.draw_pair(&mut rng);
            for (mut field, drawn) in fields.outer_iter_mut().zip(drawn) {
                field.assign(&drawn);
                field.mapv_inplace(|v| v * scenario.shadow_db);
            }
        },
    );
    Ok(())
}

/// Three bumps, one with its centre in each third of the band, scaled to unit norm. At 64 bands the
/// thirds are [2, 21), [21, 40) and [40, 59).
fn draw_psd(shape: PsdShape, rng: &mut ChaCha8Rng, spectrum: &mut [f64]) {
    let bands = spectrum.len();
    let start = |third: usize| (2 + 19 * third) * bands / 64;
    for third in 0..3 {
        let (low, high) = (start(third), start(third + 1).max(start(third) + 1));
        let centre = rng.random_range(low..high).min(bands - 1) as f64;
        let amplitude = rng.random_range(0.5..=2.0);
        let width = rng.random_range(2.0..=4.0);
        for (k, value) in spectrum.iter_mut().enumerate() {
            let x = (k as f64 - centre) / width;
            *value += amplitude
                * match shape {
                    PsdShape::Gaussian => (-0.5 * x * x).exp(),
                    // 2.66 makes the half-height widths of the two shapes equal.
                    PsdShape::Sinc => sinc(x / 2.66).powi(2),
                };
        }
    }
    let norm = spectrum.iter().map(|v| v * v).sum::<f64>().sqrt();
    spectrum.iter_mut().for_each(|v| *v /= norm);
}

fn sinc(x: f64) -> f64 {
    let t = std::f64::consts::PI * x;
    if t.abs() < 1e-8 { 1.0 } else { t.sin() / t }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario() -> Scenario {
        Scenario { emitters: 3, seed: 7, ..Scenario::new(Grid::new(32, 24, 1.0).unwrap()) }
    }

    #[test]
    fn slfs_and_psds_have_unit_norm() {
        for psd in [PsdShape::Gaussian, PsdShape::Sinc] {
            let map = simulate(&Scenario { psd, ..scenario() }).unwrap();
            let factors = map.factors().unwrap();
            let norm = |values: &mut dyn Iterator<Item = &f64>| values.map(|v| v * v).sum::<f64>();
            for field in factors.slf.outer_iter() {
                assert!((norm(&mut field.iter()) - 1.0).abs() < 1e-12);
                assert!(field.iter().all(|v| *v > 0.0));
            }
            for spectrum in factors.psd.outer_iter() {
                assert!((norm(&mut spectrum.iter()) - 1.0).abs() < 1e-12);
            }
            assert_eq!(map.emitters().len(), 3);
        }
    }

    #[test]
    fn same_seed_same_map_with_any_number_of_threads() {
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| simulate(&scenario()).unwrap())
        };
        assert_eq!(run(1), run(2));
        assert_ne!(run(1), simulate(&Scenario { seed: 8, ..scenario() }).unwrap());
    }

    #[test]
    fn without_shadowing_only_path_loss_is_left() {
        let map = simulate(&Scenario { shadow_db: 0.0, emitters: 1, ..scenario() }).unwrap();
        let slf = &map.factors().unwrap().slf;
        let [row, col] = map.grid().position(map.emitters()[0]);
        let at = |i: usize, j: usize| {
            let d = (i as f64 - row).hypot(j as f64 - col);
            (d.max(REFERENCE_DISTANCE_M).ln(), slf[[0, i, j]].ln())
        };
        let ((d0, p0), (d1, p1)) = (at(0, 0), at(31, 23));
        let exponent = (p0 - p1) / (d1 - d0);
        assert!((2.0..=2.5).contains(&exponent), "{exponent}");
    }

    #[test]
    fn impossible_scenarios_are_refused() {
        assert!(simulate(&Scenario { bands: 0, ..scenario() }).is_err());
        assert!(simulate(&Scenario { emitters: 0, ..scenario() }).is_err());
        assert!(simulate(&Scenario { shadow_db: f64::NAN, ..scenario() }).is_err());
        assert!(simulate(&Scenario { decorrelation_m: 0.0, ..scenario() }).is_err());
        for bands in [1, 2, 5, 9] {
            assert!(simulate(&Scenario { bands, ..scenario() }).is_ok());
        }
    }
}
