//! How close an estimate is to the truth: structural similarity (Wang et al. 2004) of the log maps,
//! and errors in dB, in log power and in linear power.

use ndarray::{Array2, ArrayView1, ArrayView2, Axis};
use rayon::prelude::*;
use thiserror::Error;

use crate::grid::Cell;
use crate::labels::BandLabels;
use crate::link::{DB_PER_LN, Link};
use crate::map::RadioMap;

/// Why two maps cannot be compared.
#[derive(Debug, Error, Clone, PartialEq)]
#[non_exhaustive]
pub enum ScoreError {
    /// Different grids or bands.
    #[error("the maps differ in shape: {estimate:?} against {truth:?} (rows, cols, bands)")]
    Shape {
        /// Rows, columns and bands of the estimate.
        estimate: [usize; 3],
        /// Rows, columns and bands of the truth.
        truth: [usize; 3],
    },
    /// The same number of cells, but not the same places.
    #[error("the maps lie on different grids: {estimate} against {truth}")]
    Grid {
        /// The grid of the estimate.
        estimate: String,
        /// The grid of the truth.
        truth: String,
    },
    /// The same number of bands, but not the same bands.
    #[error(
        "the maps have different bands: band {band} is {estimate} in one and {truth} in the other"
    )]
    Bands {
        /// The first band that differs, counted from 0.
        band: usize,
        /// What the estimate calls it.
        estimate: String,
        /// What the truth calls it.
        truth: String,
    },
    /// No entry known in both maps.
    #[error("the maps have no known entry in common")]
    Empty,
}

/// The local window of SSIM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Window {
    /// 7 x 7, equal weights, sample covariance: scikit-image's default and ours.
    Uniform7,
    /// Gaussian with sigma 1.5 cut at 11 x 11, population covariance: as first published.
    Gauss11,
}

impl Window {
    fn weights(self) -> Vec<f64> {
        match self {
            Window::Uniform7 => vec![1.0 / 7.0; 7],
            Window::Gauss11 => {
                let raw: Vec<f64> =
                    (-5..=5).map(|i| (-0.5 * f64::from(i * i) / (1.5 * 1.5)).exp()).collect();
                let sum: f64 = raw.iter().sum();
                raw.into_iter().map(|w| w / sum).collect()
            }
        }
    }

    /// From the population covariance in a window to the one that the convention uses.
    fn covariance_factor(self) -> f64 {
        match self {
            Window::Uniform7 => 49.0 / 48.0,
            Window::Gauss11 => 1.0,
        }
    }
}

/// Mean SSIM of two images over all windows that lie inside them and hold no NaN; None where there
/// is no such window, as in an image smaller than one. Symmetric in the images.
pub fn ssim(
    a: ArrayView2<'_, f64>,
    b: ArrayView2<'_, f64>,
    data_range: f64,
    window: Window,
) -> Result<Option<f64>, ScoreError> {
    let weights = window.weights();
    let (rows, cols) = a.dim();
    if b.dim() != a.dim() {
        let (r, c) = b.dim();
        return Err(ScoreError::Shape { estimate: [rows, cols, 1], truth: [r, c, 1] });
    }
    if rows < weights.len() || cols < weights.len() {
        return Ok(None);
    }
    let mean = |f: &dyn Fn(f64, f64) -> f64| {
        let product = Array2::from_shape_fn((rows, cols), |at| f(a[at], b[at]));
        local_mean(&product, &weights)
    };
    let (mean_a, mean_b) = (mean(&|x, _| x), mean(&|_, y| y));
    let (mean_aa, mean_bb, mean_ab) =
        (mean(&|x, _| x * x), mean(&|_, y| y * y), mean(&|x, y| x * y));
    let factor = window.covariance_factor();
    let range = data_range.max(f64::MIN_POSITIVE.sqrt());
    let (c1, c2) = ((0.01 * range).powi(2), (0.03 * range).powi(2));
    let (mut sum, mut windows) = (0.0, 0usize);
    for (at, &ma) in mean_a.indexed_iter() {
        let mb = mean_b[at];
        let var_a = factor * (mean_aa[at] - ma * ma);
        let var_b = factor * (mean_bb[at] - mb * mb);
        let cov = factor * (mean_ab[at] - ma * mb);
        let value = ((2.0 * ma * mb + c1) * (2.0 * cov + c2))
            / ((ma * ma + mb * mb + c1) * (var_a + var_b + c2));
        if !value.is_nan() {
            sum += value;
            windows += 1;
        }
    }
    Ok((windows > 0).then(|| sum / windows as f64))
}

/// Separable weighted mean over every window that lies inside the image.
fn local_mean(image: &Array2<f64>, weights: &[f64]) -> Array2<f64> {
    let (rows, cols) = image.dim();
    let (out_rows, out_cols) = (rows + 1 - weights.len(), cols + 1 - weights.len());
    let along_cols = Array2::from_shape_fn((rows, out_cols), |(i, j)| {
        weights.iter().enumerate().map(|(k, w)| w * image[[i, j + k]]).sum::<f64>()
    });
    let mut out = Array2::zeros((out_rows, out_cols));
    for (i, mut line) in out.outer_iter_mut().enumerate() {
        for (k, w) in weights.iter().enumerate() {
            line.scaled_add(*w, &along_cols.row(i + k));
        }
    }
    out
}

/// All figures of one comparison. Entries unknown (NaN) in either map do not count.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Score {
    /// Mean over bands of SSIM of ln(x + a), 7 x 7 window, data range of the true log map. None
    /// where the map or its unknown cells leave no whole window.
    pub ssim: Option<f64>,
    /// The same with data range 2.
    pub ssim_strict: Option<f64>,
    /// Root mean square error of 10 log10(x + a).
    pub rmse_db: f64,
    /// Norm of the error of ln(x + a) over the norm of the true ln(x + a).
    pub lnre: f64,
    /// Squared norm of the error over squared norm of the truth, linear power.
    pub nmse: f64,
    /// Mean absolute second difference of ln(x + a) along rows and columns, over the truth's: 1 =
    /// as rough as the truth, more = texture that is not there. None where the truth has none.
    pub roughness: Option<f64>,
    /// Share of entries within 1.645 standard deviations, where the estimate has a spread.
    pub coverage_90: Option<f64>,
    /// The a of ln(x + a).
    pub offset: f64,
    /// Number of entries compared.
    pub entries: usize,
}

#[derive(Default)]
struct Sums {
    entries: usize,
    log_error: f64,
    log_truth: f64,
    error: f64,
    truth: f64,
    judged: usize,
    covered: usize,
}

/// Compares an estimate with the truth; `offset` is that of the truth's scale where absent. Where it
/// is 0, an estimate is never counted as less than a hundredth of the faintest true power.
///
/// ```
/// use ndarray::Array3;
/// use portolan::score::score;
/// use portolan::{Grid, RadioMap, Scale};
/// let grid = Grid::new(8, 8, 1.0)?;
/// let power = Array3::from_shape_fn((8, 8, 2), |(i, j, k)| 1e-7 * (1 + i + 2 * j + 3 * k) as f64);
/// let truth = RadioMap::dense(grid, power.clone(), Scale::Absolute)?;
/// let twice = RadioMap::dense(grid, 2.0 * power, Scale::Absolute)?;
/// let found = score(&twice, &truth, None)?;
/// assert!((found.rmse_db - 3.0103).abs() < 1e-4);
/// assert_eq!((score(&truth, &truth, None)?.ssim, found.entries), (Some(1.0), 128));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn score(
    estimate: &RadioMap,
    truth: &RadioMap,
    offset: Option<f64>,
) -> Result<Score, ScoreError> {
    let shape = |map: &RadioMap| [map.grid().rows(), map.grid().cols(), map.bands()];
    if shape(estimate) != shape(truth) {
        return Err(ScoreError::Shape { estimate: shape(estimate), truth: shape(truth) });
    }
    check_same(estimate, truth)?;
    let bands = truth.bands();
    let link = offset.map_or_else(|| truth.scale().link(), Link::new);
    let floor = if link.offset() > 0.0 { 0.0 } else { 0.01 * faintest(truth) };
    let (low, high) = (0..bands)
        .flat_map(|k| truth.band(k))
        .filter(|x| !x.is_nan())
        .map(|x| link.apply(x.max(floor)))
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), h| (lo.min(h), hi.max(h)));
    let range = high - low;
    // Bands are compared in parallel but summed in order: the same figures with any threads.
    let per_band = (0..bands)
        .into_par_iter()
        .map(|k| {
            let (guess, exact) = (estimate.band(k), truth.band(k));
            let spread = estimate.spread_db().map(|s| s.index_axis(Axis(2), k).to_owned());
            let (guess, exact) =
                (guess.mapv(|x| raised(x, floor)), exact.mapv(|x| raised(x, floor)));
            let sums = compare_band(&guess, &exact, spread.as_ref(), link);
            let (guess, exact) = (guess.mapv(|x| link.apply(x)), exact.mapv(|x| link.apply(x)));
            let relative = ssim(guess.view(), exact.view(), range, Window::Uniform7)?;
            let strict = ssim(guess.view(), exact.view(), 2.0, Window::Uniform7)?;
            Ok((sums, relative, strict, bends(&guess, &exact)))
        })
        .collect::<Result<Vec<_>, ScoreError>>()?;
    let total = per_band.iter().fold(Sums::default(), |t, (s, ..)| Sums {
        entries: t.entries + s.entries,
        log_error: t.log_error + s.log_error,
        log_truth: t.log_truth + s.log_truth,
        error: t.error + s.error,
        truth: t.truth + s.truth,
        judged: t.judged + s.judged,
        covered: t.covered + s.covered,
    });
    if total.entries == 0 {
        return Err(ScoreError::Empty);
    }
    let (bends, true_bends) =
        per_band.iter().fold((0.0, 0.0), |(g, e), band| (g + band.3.0, e + band.3.1));
    Ok(Score {
        ssim: mean_known(per_band.iter().map(|b| b.1)),
        ssim_strict: mean_known(per_band.iter().map(|b| b.2)),
        rmse_db: DB_PER_LN * (total.log_error / total.entries as f64).sqrt(),
        lnre: (total.log_error / total.log_truth.max(f64::MIN_POSITIVE)).sqrt(),
        nmse: total.error / total.truth.max(f64::MIN_POSITIVE),
        roughness: (true_bends > 0.0).then(|| bends / true_bends),
        coverage_90: (total.judged > 0).then(|| total.covered as f64 / total.judged as f64),
        offset: link.offset(),
        entries: total.entries,
    })
}

/// Share of entries within 1.645 standard deviations over the cells that no sensor measured; None
/// where the estimate has no spread or no such cell. `offset` is that of a [`Score`].
pub fn coverage_unmeasured(
    estimate: &RadioMap,
    truth: &RadioMap,
    offset: f64,
    measured: &[Cell],
) -> Option<f64> {
    let (spread, link) = (estimate.spread_db()?, Link::new(offset));
    let floor = if offset > 0.0 { 0.0 } else { 0.01 * faintest(truth) };
    let counts: Vec<(usize, usize)> = (0..truth.bands())
        .into_par_iter()
        .map(|k| {
            let mut spread = spread.index_axis(Axis(2), k).to_owned();
            // Without a spread an entry is not judged.
            for cell in measured {
                if let Some(s) = spread.get_mut([cell.row, cell.col]) {
                    *s = 0.0;
                }
            }
            let known = |map: &RadioMap| map.band(k).mapv(|x| raised(x, floor));
            let sums = compare_band(&known(estimate), &known(truth), Some(&spread), link);
            (sums.judged, sums.covered)
        })
        .collect();
    let (judged, covered) = counts.iter().fold((0, 0), |(j, c), more| (j + more.0, c + more.1));
    (judged > 0).then(|| covered as f64 / judged as f64)
}

/// A power, at least the floor; a gap stays one.
fn raised(power: f64, floor: f64) -> f64 {
    if power.is_nan() { power } else { power.max(floor) }
}

/// The least positive power of a map.
fn faintest(map: &RadioMap) -> f64 {
    let mut spectrum = vec![0.0; map.bands()];
    let mut least = f64::INFINITY;
    for index in 0..map.grid().cells() {
        map.spectrum_into(map.grid().cell(index), &mut spectrum);
        least = spectrum.iter().copied().filter(|x| *x > 0.0).fold(least, f64::min);
    }
    if least.is_finite() { least } else { f64::MIN_POSITIVE }
}

/// Maps are compared cell by cell and band by band: these must be the same.
fn check_same(estimate: &RadioMap, truth: &RadioMap) -> Result<(), ScoreError> {
    let words = |map: &RadioMap| {
        let (grid, origin) = (map.grid(), map.grid().origin());
        format!("cells of {} m from x {}, y {}", grid.cell_m(), origin.x_m, origin.y_m)
    };
    if !estimate.grid().coincides(&truth.grid()) {
        return Err(ScoreError::Grid { estimate: words(estimate), truth: words(truth) });
    }
    if !estimate.labels().agrees(truth.labels()) {
        let label = |labels: &BandLabels, band: usize| labels.label(band);
        let (own, other) = (estimate.labels(), truth.labels());
        let differs = |band: &usize| label(own, *band) != label(other, *band);
        let band = (0..truth.bands()).find(differs).unwrap_or(0);
        let (estimate, truth) = (label(own, band), label(other, band));
        return Err(ScoreError::Bands { band, estimate, truth });
    }
    Ok(())
}

fn compare_band(
    guess: &Array2<f64>,
    exact: &Array2<f64>,
    spread_db: Option<&Array2<f64>>,
    link: Link,
) -> Sums {
    let mut sums = Sums::default();
    for (at, (&g, &e)) in guess.indexed_iter().map(|(at, g)| (at, (g, &exact[at]))) {
        if g.is_nan() || e.is_nan() {
            continue;
        }
        let log_error = link.apply(g) - link.apply(e);
        sums.entries += 1;
        sums.log_error += log_error * log_error;
        sums.log_truth += link.apply(e).powi(2);
        sums.error += (g - e).powi(2);
        sums.truth += e * e;
        // A measured cell has no spread: it says nothing about calibration.
        if let Some(spread) = spread_db.map(|s| s[at]).filter(|s| *s > 0.0) {
            sums.judged += 1;
            sums.covered += usize::from(DB_PER_LN * log_error.abs() <= 1.645 * spread);
        }
    }
    sums
}

/// Absolute second differences of two images along rows and columns, summed where all is known.
fn bends(guess: &Array2<f64>, exact: &Array2<f64>) -> (f64, f64) {
    let mut sums = (0.0, 0.0);
    for axis in [Axis(0), Axis(1)] {
        for (g, e) in guess.lanes(axis).into_iter().zip(exact.lanes(axis)) {
            for at in 1..g.len().saturating_sub(1) {
                let bend = |x: &ArrayView1<'_, f64>| (x[at - 1] - 2.0 * x[at] + x[at + 1]).abs();
                let (g, e) = (bend(&g), bend(&e));
                if !(g.is_nan() || e.is_nan()) {
                    sums = (sums.0 + g, sums.1 + e);
                }
            }
        }
    }
    sums
}

fn mean_known(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let (sum, count) = values.flatten().fold((0.0, 0usize), |(s, n), v| (s + v, n + 1));
    (count > 0).then(|| sum / count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::load;
    use crate::grid::Grid;
    use crate::simulate::{Scenario, simulate};
    use ndarray::{Array3, ArrayView3};

    /// `ssim.npz` was made by scikit-image.
    #[test]
    fn equal_to_scikit_image() {
        let fixture = load("ssim");
        let get = |name: &str| fixture[name].1.clone();
        let image = |name: &str| {
            let (shape, data) = &fixture[name];
            Array3::from_shape_vec((shape[0], shape[1], shape[2]), data.clone()).unwrap()
        };
        let check = |truth: ArrayView3<f64>, guess: ArrayView3<f64>, range, window, want: &str| {
            for (k, want) in get(want).into_iter().enumerate() {
                let (a, b) = (truth.index_axis(Axis(2), k), guess.index_axis(Axis(2), k));
                let got = ssim(a, b, range, window).unwrap().unwrap();
                assert!((got - want).abs() < 1e-9, "{got} {want}");
            }
        };
        let range = get("data_range")[0];
        let (truth, guess) = (image("truth"), image("guess"));
        check(truth.view(), guess.view(), range, Window::Uniform7, "uniform7");
        check(truth.view(), guess.view(), 2.0, Window::Uniform7, "uniform7_range2");
        check(truth.view(), guess.view(), range, Window::Gauss11, "gauss11");
        let (truth, guess) = (image("truth_rect"), image("guess_rect"));
        check(truth.view(), guess.view(), range, Window::Uniform7, "uniform7_rect");
    }

    fn maps() -> (RadioMap, RadioMap) {
        let grid = Grid::new(20, 16, 1.0).unwrap();
        let make = |seed| simulate(&Scenario { bands: 8, seed, ..Scenario::new(grid) }).unwrap();
        (make(1), make(2))
    }

    #[test]
    fn a_map_agrees_with_itself_and_not_with_another() {
        let (a, b) = maps();
        let same = score(&a, &a, None).unwrap();
        assert!((same.ssim.unwrap() - 1.0).abs() < 1e-12 && same.rmse_db == 0.0);
        let other = score(&a, &b, None).unwrap();
        assert!(other.ssim.unwrap() < 0.9 && other.rmse_db > 1.0);
        assert!(other.ssim_strict.unwrap() < other.ssim.unwrap());
        assert_eq!(same.offset, 1e-6);
        assert_eq!(same.roughness, Some(1.0));
    }

    #[test]
    fn ripples_are_roughness() {
        let (a, _) = maps();
        let mut dense = a.to_dense().into_owned();
        for ((row, col, _), x) in dense.indexed_iter_mut() {
            *x *= if (row + col).is_multiple_of(2) { 1.5 } else { 1.0 };
        }
        let rippled = RadioMap::dense(a.grid(), dense, a.scale()).unwrap();
        assert!(score(&rippled, &a, None).unwrap().roughness.unwrap() > 1.2);
        let flat = Array3::from_elem((20, 16, 8), 0.1);
        let flat = RadioMap::dense(a.grid(), flat, a.scale()).unwrap();
        assert_eq!(score(&flat, &a, None).unwrap().roughness, Some(0.0));
    }

    #[test]
    fn a_constant_factor_is_its_own_rmse() {
        let (a, _) = maps();
        let grid = a.grid();
        let stronger = RadioMap::dense(grid, a.to_dense().mapv(|x| 2.0 * x), a.scale()).unwrap();
        let score = score(&stronger, &a, Some(1e-30)).unwrap();
        assert!((score.rmse_db - 10.0 * 2f64.log10()).abs() < 1e-9);
        assert!((score.nmse - 1.0).abs() < 1e-12);
    }

    #[test]
    fn unknown_entries_do_not_count() {
        let (a, b) = maps();
        let mut dense = a.to_dense().into_owned();
        dense.slice_mut(ndarray::s![..4, .., ..]).fill(f64::NAN);
        let masked = RadioMap::dense(a.grid(), dense, a.scale()).unwrap();
        let got = score(&b, &masked, Some(1e-6)).unwrap();
        assert_eq!(got.entries, 16 * 16 * 8);
        assert!(got.rmse_db.is_finite() && got.ssim.unwrap().is_finite());
    }

    #[test]
    fn other_shapes_places_and_bands_are_refused_and_small_grids_have_no_ssim() {
        let (a, _) = maps();
        let grid = Grid::new(6, 16, 1.0).unwrap();
        let small = RadioMap::dense(grid, Array3::from_elem((6, 16, 8), 1.0), a.scale()).unwrap();
        assert!(matches!(score(&small, &a, None), Err(ScoreError::Shape { .. })));
        let tiny = score(&small, &small, None).unwrap();
        assert_eq!((tiny.ssim, tiny.rmse_db), (None, 0.0));
        let moved = |grid: Grid| RadioMap::factored(grid, a.factors().unwrap().clone(), a.scale());
        for grid in [
            Grid::new(20, 16, 2.0).unwrap(),
            a.grid().with_origin(crate::site::Site::new(5.0, 0.0)).unwrap(),
        ] {
            let error = score(&moved(grid).unwrap(), &a, None).unwrap_err();
            assert!(matches!(error, ScoreError::Grid { .. }), "{error}");
        }
        let labelled = |hz: f64| {
            let labels = (0..8).map(|k| hz + 1e6 * f64::from(k)).collect();
            a.clone().with_labels(BandLabels::from_frequencies(labels).unwrap()).unwrap()
        };
        let error = score(&labelled(1e9), &labelled(2e9), None).unwrap_err();
        assert!(error.to_string().contains("1000MHz"), "{error}");
        assert!(score(&labelled(1e9), &a, None).is_ok());
    }

    #[test]
    fn coverage_counts_entries_inside_the_interval() {
        let (a, _) = maps();
        let stronger =
            RadioMap::dense(a.grid(), a.to_dense().mapv(|x| 2.0 * x), a.scale()).unwrap();
        let spread = |s: f64| Some(Array3::from_elem((20, 16, 8), s));
        let wide = stronger.clone().with_spread_db(spread(3.0)).unwrap();
        assert_eq!(score(&wide, &a, Some(1e-30)).unwrap().coverage_90, Some(1.0));
        let narrow = stronger.with_spread_db(spread(1.0)).unwrap();
        assert_eq!(score(&narrow, &a, Some(1e-30)).unwrap().coverage_90, Some(0.0));
        // Right only where a sensor stands: of no use elsewhere.
        let mut uneven = Array3::from_elem((20, 16, 8), 1.0);
        uneven.slice_mut(ndarray::s![3, 4, ..]).fill(9.0);
        let uneven = narrow.with_spread_db(Some(uneven)).unwrap();
        assert!(score(&uneven, &a, Some(1e-30)).unwrap().coverage_90.unwrap() > 0.0);
        let beyond = |cells: &[Cell]| coverage_unmeasured(&uneven, &a, 1e-30, cells);
        assert_eq!(beyond(&[Cell::new(3, 4)]), Some(0.0));
        assert_eq!(beyond(&[]), score(&uneven, &a, Some(1e-30)).unwrap().coverage_90);
        let all: Vec<Cell> = (0..320).map(|i| a.grid().cell(i)).collect();
        assert_eq!(beyond(&all), None);
    }
}
