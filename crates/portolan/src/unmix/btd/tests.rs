use super::*;
use crate::quantiser::Quantiser;

/// A map of two smooth emitters of rank 1 each, read at two cells of three.
fn small() -> (Grid, Vec<Cell>, Array3<f64>, Array2<f64>, Array2<f64>) {
    let grid = Grid::new(12, 9, 1.0).unwrap();
    let bump = |x: f64, at: f64| (-(x - at) * (x - at) / 18.0).exp();
    let slf = Array3::from_shape_fn((2, 12, 9), |(r, i, j)| {
        let at = [(2.0, 6.0), (9.0, 1.0)][r];
        bump(i as f64, at.0) * bump(j as f64, at.1)
    });
    let psd = Array2::from_shape_fn(
        (2, 6),
        |(r, k)| if r == 0 { 1.0 + k as f64 } else { 7.0 - k as f64 },
    );
    let cells: Vec<Cell> =
        (0..108).filter(|i| (i + i / 9) % 3 != 1).map(|i| grid.cell(i)).collect();
    let power = Array2::from_shape_fn((cells.len(), 6), |(n, k)| {
        (0..2).map(|r| slf[[r, cells[n].row, cells[n].col]] * psd[[r, k]]).sum()
    });
    (grid, cells, slf, psd, power)
}

fn map_error(found: &BtdFit, slf: &Array3<f64>, psd: &Array2<f64>) -> f64 {
    let (model, mut error, mut total) = (found.slf(), 0.0, 0.0);
    for ((i, j), _) in slf.index_axis(Axis(0), 0).indexed_iter() {
        for k in 0..psd.ncols() {
            let at = |s: &Array3<f64>, c: &Array2<f64>| {
                (0..c.nrows()).map(|r| s[[r, i, j]] * c[[r, k]]).sum::<f64>()
            };
            let (is, was) = (at(&model, &found.c), at(slf, psd));
            error += (is - was) * (is - was);
            total += was * was;
        }
    }
    (error / total).sqrt()
}

#[test]
fn the_whole_map_follows_from_some_of_its_cells() {
    let (grid, cells, slf, psd, mut power) = small();
    power[[3, 2]] = f64::NAN;
    let problem = BtdProblem {
        grid,
        cells: &cells,
        observed: Observed::Power(power.view()),
        prior_slf: None,
    };
    let options = BtdOptions {
        rank: 1,
        iterations: 600,
        ridge: 1e-9,
        tolerance: 1e-12,
        ..Default::default()
    };
    let start = Start::Random { emitters: 2, seed: 1 };
    let found = fit(&problem, &options, &start, &Progress::silent()).unwrap();
    assert!(map_error(&found, &slf, &psd) < 1e-3, "{}", map_error(&found, &slf, &psd));
    for pair in found.loss_trace.windows(2) {
        assert!(pair[1] <= pair[0] + 1e-12 * found.loss_trace[0], "{pair:?}");
    }
    let again = fit(&problem, &options, &start, &Progress::silent()).unwrap();
    assert_eq!(found, again);
}

#[test]
fn a_prior_fills_rows_that_no_sensor_is_in() {
    let (grid, cells, slf, psd, power) = small();
    let keep: Vec<usize> = (0..cells.len()).filter(|&n| cells[n].row != 5).collect();
    let cells: Vec<Cell> = keep.iter().map(|&n| cells[n]).collect();
    let power = power.select(Axis(0), &keep);
    let options = BtdOptions { rank: 3, iterations: 100, ..Default::default() };
    // The prior's level is free.
    let prior = slf.mapv(|s| 40.0 * s);
    let start = Start::Factors { slf: prior.view(), psd: psd.view(), seed: 2 };
    let with = |prior_slf| {
        let observed = Observed::Power(power.view());
        let problem = BtdProblem { grid, cells: &cells, observed, prior_slf };
        fit(&problem, &options, &start, &Progress::silent()).unwrap()
    };
    assert!(map_error(&with(Some(prior.view())), &slf, &psd) < 0.02);
    assert!(with(None).slf().iter().all(|s| s.is_finite()));
}

#[test]
fn levels_are_fitted_by_their_likelihood() {
    let (grid, cells, slf, psd, power) = small();
    let sample = power.iter().map(|x| (x + 1e-6).ln()).collect();
    let quantiser = Quantiser::from_quantiles(sample, 4, 0.0, 1e-6).unwrap();
    let probit = Probit::new(&quantiser);
    let levels = power.mapv(|x| quantiser.level((x + 1e-6).ln()));
    let observed =
        Observed::Levels { levels: levels.view(), probit: &probit, link: quantiser.link() };
    let problem = BtdProblem { grid, cells: &cells, observed, prior_slf: Some(slf.view()) };
    let options = BtdOptions { rank: 40, iterations: 300, tolerance: 0.0, ..Default::default() };
    let start = Start::Random { emitters: 2, seed: 3 };
    let found = fit(&problem, &options, &start, &Progress::silent()).unwrap();
    assert_eq!(found.a.dim(), (2, 12, 9), "the rank is cut to the shorter side");
    assert!(found.loss_trace[found.loss_trace.len() - 1] < 0.1 * found.loss_trace[0]);
    // The top bin is open, so the brightest cells are known to a sixth only.
    assert!(map_error(&found, &slf, &psd) < 0.2, "{}", map_error(&found, &slf, &psd));
}

#[test]
fn wrong_problems_are_refused_and_cancelling_works() {
    let (grid, cells, slf, psd, power) = small();
    let problem = BtdProblem {
        grid,
        cells: &cells,
        observed: Observed::Power(power.view()),
        prior_slf: None,
    };
    let options = BtdOptions::default();
    let quiet = Progress::silent();
    let none = Start::Random { emitters: 0, seed: 0 };
    assert!(fit(&problem, &options, &none, &quiet).is_err());
    let two = Start::Random { emitters: 2, seed: 0 };
    let short = BtdProblem { cells: &cells[1..], ..problem };
    assert!(fit(&short, &options, &two, &quiet).is_err());
    let three = Start::Random { emitters: 3, seed: 0 };
    let unlike = BtdProblem { prior_slf: Some(slf.view()), ..problem };
    assert!(fit(&unlike, &options, &three, &quiet).is_err());
    let stop = Progress::new(&|_| false);
    let start = Start::Factors { slf: slf.view(), psd: psd.view(), seed: 0 };
    assert_eq!(fit(&problem, &options, &start, &stop), Err(EstimateError::Cancelled));
    let dark = Array2::zeros(power.dim());
    let zero = BtdProblem { observed: Observed::Power(dark.view()), ..problem };
    let found = fit(&zero, &options, &two, &quiet).unwrap();
    assert!(found.slf().iter().chain(&found.c).all(|v| v.is_finite()));
}
