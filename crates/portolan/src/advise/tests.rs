use std::collections::HashSet;

use ndarray::Array3;

use super::*;
use crate::estimate::{Context, Kriging, Method};
use crate::gaussian_process::{Correlation, Fixed};
use crate::linalg::{product, solve_general};
use crate::scale::Scale;
use crate::sense::{Sensing, SensorLayout, sense};
use crate::simulate::{Scenario, simulate};
use faer::Mat;

/// A map with 40 sensors, all in its left half, and its estimate by kriging.
fn one_sided() -> (Vec<Site>, RadioMap, Process) {
    let grid = Grid::new(24, 24, 1.0).unwrap();
    let scenario = Scenario { bands: 4, decorrelation_m: 15.0, ..Scenario::new(grid) };
    let truth = simulate(&scenario).unwrap();
    let cells = (0..40).map(|i| Cell::new(i * 7 % 24, i * 5 % 11)).collect();
    let readings = sense(&truth, &Sensing::exact(SensorLayout::Cells(cells), 0)).unwrap();
    let fixed = Fixed { decorrelation_m: Some(8.0), ..Fixed::default() };
    let kriging = Kriging { fixed, ..Kriging::default() };
    let model = kriging.fit(&readings, &Context::default(), &Progress::silent()).unwrap();
    let process = Process::from_report(model.report()).unwrap();
    assert_eq!(process.decorrelation_m, 8.0);
    let map = model.map(grid, &Progress::silent()).unwrap();
    (readings.sites().to_vec(), map, process)
}

#[test]
fn advice_goes_where_no_sensor_is() {
    let (readings, map, process) = one_sided();
    let advice = advise(&readings, &map, &[], process, 12, &Progress::silent()).unwrap();
    assert_eq!(advice.len(), 12);
    assert!(advice[..6].iter().all(|a| a.cell.col > 11), "{advice:?}");
    let picked: HashSet<Cell> = advice.iter().map(|a| a.cell).collect();
    assert_eq!(picked.len(), 12);
    assert!(readings.iter().all(|site| !picked.contains(&map.grid().cell_at(*site).unwrap())));
    assert!(advice.windows(2).all(|w| w[1].reduction_db2 <= w[0].reduction_db2), "{advice:?}");
    assert!(advice.iter().all(|a| a.share > 0.0));
    assert!(advice.iter().map(|a| a.share).sum::<f64>() < 1.0);
    assert_eq!(advice, advise(&readings, &map, &[], process, 12, &Progress::silent()).unwrap());
}

#[test]
fn a_place_read_twice_has_half_of_the_noise() {
    let (sensors, map, process) = one_sided();
    let twice = [&sensors[..], &sensors[..]].concat();
    let told = |sensors: &[Site], noise_ratio: f64| {
        let process = Process { noise_ratio, ..process };
        advise(sensors, &map, &[], process, 6, &Progress::silent()).unwrap()
    };
    // Without noise a second visit says nothing new.
    assert_eq!(told(&twice, 0.0), told(&sensors, 0.0));
    assert_ne!(told(&twice, 0.4), told(&sensors, 0.4));
    assert!(told(&twice, 0.4).iter().all(|a| a.share > 0.0));
}

/// Posterior variance of a process of unit variance, by solving for the weights of each cell.
fn variances(grid: Grid, process: Process, sensors: &[Cell]) -> Vec<f64> {
    let correlation = Correlation::exponential(process.decorrelation_m);
    let between = |a: Cell, b: Cell| correlation.between(grid.site(a), grid.site(b));
    let n = sensors.len();
    let matrix = Mat::from_fn(n, n, |i, j| {
        between(sensors[i], sensors[j]) + if i == j { process.noise_ratio } else { 0.0 }
    });
    (0..grid.cells())
        .map(|index| {
            let to = Mat::from_fn(n, 1, |i, _| between(sensors[i], grid.cell(index)));
            let weights = solve_general(matrix.as_ref(), to.as_ref()).unwrap();
            1.0 - product(to.transpose(), weights.as_ref())[(0, 0)]
        })
        .collect()
}

#[test]
fn reductions_equal_those_of_the_process_made_anew() {
    let grid = Grid::new(5, 6, 2.0).unwrap();
    let mut sensors = vec![Cell::new(0, 0), Cell::new(2, 1), Cell::new(4, 0)];
    let first: HashSet<Cell> = sensors.iter().copied().collect();
    let readings: Vec<Site> = sensors.iter().map(|&cell| grid.site(cell)).collect();
    let spread =
        Array3::from_shape_fn((5, 6, 2), |(i, j, k)| 1.0 + (i * 3 + j * 5 + k) as f64 % 7.0);
    let map = RadioMap::dense(grid, Array3::ones((5, 6, 2)), Scale::paper()).unwrap();
    let map = map.with_spread_db(Some(spread.clone())).unwrap();
    for noise_ratio in [0.0, 0.3] {
        let process = Process { decorrelation_m: 5.0, noise_ratio };
        let advice = advise(&readings, &map, &[], process, 4, &Progress::silent()).unwrap();
        let start = variances(grid, process, &sensors);
        let scale: Vec<f64> = (0..grid.cells())
            .map(|index| {
                let cell = grid.cell(index);
                let square = |k: usize| spread[[cell.row, cell.col, k]].powi(2);
                let mean = 0.5 * (square(0) + square(1));
                if first.contains(&cell) { 0.0 } else { mean / start[index] }
            })
            .collect();
        let total = |sensors: &[Cell]| -> f64 {
            let left = variances(grid, process, sensors);
            left.iter().zip(&scale).map(|(v, s)| v * s).sum::<f64>() / grid.cells() as f64
        };
        for a in &advice {
            let before = total(&sensors);
            let gain = |cell: Cell| before - total(&[&sensors[..], &[cell]].concat());
            assert!((gain(a.cell) - a.reduction_db2).abs() < 1e-8, "{a:?}");
            let others = (0..grid.cells()).map(|i| grid.cell(i));
            for other in others.filter(|cell| !sensors.contains(cell)) {
                assert!(gain(other) <= a.reduction_db2 + 1e-8, "{other:?} beats {a:?}");
            }
            sensors.push(a.cell);
        }
        sensors.truncate(3);
    }
}

#[test]
fn unknown_cells_are_never_advised() {
    let (readings, map, process) = one_sided();
    let mut spread = map.spread_db().unwrap().clone();
    spread.slice_mut(ndarray::s![.., 12.., ..]).fill(f64::NAN);
    let map = map.with_spread_db(Some(spread)).unwrap();
    let advice = advise(&readings, &map, &[], process, 5, &Progress::silent()).unwrap();
    assert!(advice.iter().all(|a| a.cell.col < 12), "{advice:?}");
}

#[test]
fn large_maps_are_advised_from_a_lattice() {
    let grid = Grid::new(90, 110, 1.0).unwrap();
    let all: Vec<Cell> = (0..grid.cells()).map(|i| grid.cell(i)).collect();
    let some = at_most(grid, all.clone(), EVALUATED);
    assert!((EVALUATED / 3..=EVALUATED).contains(&some.len()), "{}", some.len());
    assert_eq!(at_least(grid, &all, SOME_CANDIDATES).len(), 45 * 55);
    for step in 1..120 {
        let on = all.iter().filter(|cell| on_lattice(grid, **cell, step)).count();
        assert_eq!(on, lattice_size(grid, step), "step {step}");
    }
    let street: Vec<Cell> = all.iter().copied().filter(|cell| cell.row < 20).collect();
    assert!((200..=EVALUATED).contains(&at_most(grid, street, EVALUATED).len()));
}

#[test]
fn impossible_requests_are_refused() {
    let (readings, map, process) = one_sided();
    let ask = |map: &RadioMap, process, count| {
        advise(&readings, map, &[], process, count, &Progress::silent()).unwrap_err().to_string()
    };
    assert!(ask(&map, process, 0).contains("1 to 536"));
    assert!(ask(&map, process, 537).contains("1 to 536"));
    assert!(ask(&map, Process { decorrelation_m: 0.0, ..process }, 1).contains("decorrelation"));
    let plain = map.clone().with_spread_db(None).unwrap();
    assert!(ask(&plain, process, 1).contains("no spread"));
    let stop = |_: f64| false;
    let stopped = advise(&readings, &map, &[], process, 3, &Progress::new(&stop));
    assert_eq!(stopped, Err(EstimateError::Cancelled));
}

#[test]
fn regions_to_leave_out_are_not_advised() {
    let (sensors, map, process) = one_sided();
    let corner = Region { low: Site::new(-0.5, 11.5), high: Site::new(12.5, 23.5) };
    let advice = advise(&sensors, &map, &[corner], process, 8, &Progress::silent()).unwrap();
    assert!(advice.iter().all(|a| a.cell.row > 12 || a.cell.col < 12), "{advice:?}");
    assert!(advice[..3].iter().all(|a| a.cell.col > 11), "the other corner counts: {advice:?}");
}
