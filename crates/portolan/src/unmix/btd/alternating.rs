//! Squared error in power: PSDs, then the columns of A_r and B_r, each by closed-form non-negative
//! coordinate updates over the sensors and the prior's cells (block coordinate descent).

use super::{BtdFit, BtdOptions, BtdProblem, Factors};
use crate::error::EstimateError;
use crate::grid::Cell;
use crate::progress::Progress;

/// Coordinate sweeps over the columns of A and B, and over the PSDs, in one iteration.
const SWEEPS: usize = 2;

/// Cells that speak for one SLF: where, how strongly, and what they ask for.
struct Targets {
    cells: Vec<Cell>,
    weight: Vec<f64>,
    target: Vec<f64>,
    model: Vec<f64>,
}

pub(super) fn fit(
    problem: &BtdProblem<'_>,
    options: &BtdOptions,
    mut factors: Factors,
    power: &[f64],
    unit: f64,
    progress: &Progress<'_>,
) -> Result<BtdFit, EstimateError> {
    let (sensors, bands, emitters) = (problem.cells.len(), factors.bands, factors.emitters);
    let prior: Option<Vec<f64>> = problem.prior_slf.map(|slf| slf.iter().copied().collect());
    let grid_cells = if prior.is_some() { problem.grid.cells() } else { 0 };
    let mut wishes = Targets {
        cells: problem.cells.to_vec(),
        weight: vec![0.0; sensors + grid_cells],
        target: vec![0.0; sensors + grid_cells],
        model: vec![0.0; sensors + grid_cells],
    };
    wishes.cells.extend((0..grid_cells).map(|i| problem.grid.cell(i)));
    let mut sums = vec![[0.0; 2]; factors.rows.max(factors.cols)];
    // The level of a prior belongs to the PSD, so that priors of any scale may be passed.
    let levels: Vec<f64> =
        (0..emitters).map(|r| prior_level(&factors, problem, &prior, r)).collect();
    let mut slf = vec![0.0; sensors * emitters];
    let mut rest = vec![0.0; sensors * bands];
    residual(&factors, problem.cells, power, &mut slf, &mut rest);
    let square = |rest: &[f64]| rest.iter().map(|v| v * v).sum::<f64>() * unit * unit;
    let mut trace = vec![square(&rest)];
    for iteration in 0..options.iterations {
        progress.report(iteration, options.iterations)?;
        for _ in 0..SWEEPS {
            update_psds(&mut factors, power, &slf, &mut rest, options.ridge);
        }
        for r in 0..emitters {
            collect(&factors, r, power, &slf, &rest, &mut wishes, sensors);
            let mean = wishes.weight[..sensors].iter().sum::<f64>() / sensors.max(1) as f64;
            if let Some(prior) = &prior {
                let field = &prior[r * grid_cells..(r + 1) * grid_cells];
                for (i, &value) in field.iter().enumerate() {
                    let known = value.is_finite();
                    wishes.weight[sensors + i] =
                        if known { options.prior_weight * mean } else { 0.0 };
                    wishes.target[sensors + i] =
                        if known { levels[r] * value.max(0.0) } else { 0.0 };
                }
            }
            let ridge = options.ridge * mean;
            for _ in 0..SWEEPS {
                update_side::<true>(&mut factors, r, &mut wishes, ridge, &mut sums);
                update_side::<false>(&mut factors, r, &mut wishes, ridge, &mut sums);
            }
            shift(&factors, r, problem.cells, power, &mut slf, &mut rest);
        }
        // Rounding of the running residual must not add up.
        residual(&factors, problem.cells, power, &mut slf, &mut rest);
        let (before, now) = (trace[trace.len() - 1], square(&rest));
        trace.push(now);
        if (before - now).abs() <= options.tolerance * before {
            break;
        }
    }
    factors.finish(unit, trace)
}

/// Least squares factor between a prior SLF and the start's, at the sensors.
fn prior_level(
    factors: &Factors,
    problem: &BtdProblem<'_>,
    prior: &Option<Vec<f64>>,
    r: usize,
) -> f64 {
    let Some(prior) = prior else { return 1.0 };
    let (mut cross, mut own) = (0.0, 0.0);
    for &cell in problem.cells {
        let value = prior[r * problem.grid.cells() + problem.grid.index(cell)];
        if value > 0.0 && value.is_finite() {
            cross += factors.slf(r, cell) * value;
            own += value * value;
        }
    }
    if cross > 0.0 && own > 0.0 { cross / own } else { 1.0 }
}

/// SLFs at the sensors and what the model leaves of the readings; 0 at gaps.
fn residual(f: &Factors, cells: &[Cell], power: &[f64], slf: &mut [f64], rest: &mut [f64]) {
    for (n, &cell) in cells.iter().enumerate() {
        let row = &mut rest[n * f.bands..][..f.bands];
        row.copy_from_slice(&power[n * f.bands..][..f.bands]);
        for r in 0..f.emitters {
            let s = f.slf(r, cell);
            slf[n * f.emitters + r] = s;
            let psd = &f.c[r * f.bands..][..f.bands];
            row.iter_mut().zip(psd).for_each(|(v, c)| *v -= s * c);
        }
        row.iter_mut().filter(|v| v.is_nan()).for_each(|v| *v = 0.0);
    }
}

fn update_psds(f: &mut Factors, power: &[f64], slf: &[f64], rest: &mut [f64], ridge: f64) {
    let sensors = power.len() / f.bands;
    for r in 0..f.emitters {
        let total: f64 = (0..sensors).map(|n| slf[n * f.emitters + r].powi(2)).sum();
        for k in 0..f.bands {
            let (mut cross, mut own) = (0.0, 0.0);
            for n in 0..sensors {
                if !power[n * f.bands + k].is_nan() {
                    let s = slf[n * f.emitters + r];
                    cross += s * rest[n * f.bands + k];
                    own += s * s;
                }
            }
            let old = f.c[r * f.bands + k];
            let bottom = own + ridge * total;
            if bottom <= 0.0 {
                continue;
            }
            let new = ((cross + own * old) / bottom).max(0.0);
            f.c[r * f.bands + k] = new;
            for n in 0..sensors {
                if !power[n * f.bands + k].is_nan() {
                    rest[n * f.bands + k] -= slf[n * f.emitters + r] * (new - old);
                }
            }
        }
    }
}

/// What the sensors ask of SLF r: the least squares value and its weight, sum_k c_rk^2.
fn collect(
    f: &Factors,
    r: usize,
    power: &[f64],
    slf: &[f64],
    rest: &[f64],
    wishes: &mut Targets,
    sensors: usize,
) {
    let psd = &f.c[r * f.bands..][..f.bands];
    for n in 0..sensors {
        let (mut cross, mut own) = (0.0, 0.0);
        for k in 0..f.bands {
            if !power[n * f.bands + k].is_nan() {
                cross += psd[k] * rest[n * f.bands + k];
                own += psd[k] * psd[k];
            }
        }
        wishes.weight[n] = own;
        wishes.target[n] = slf[n * f.emitters + r] + if own > 0.0 { cross / own } else { 0.0 };
    }
    for (model, &cell) in wishes.model.iter_mut().zip(&wishes.cells) {
        *model = f.slf(r, cell);
    }
}

/// One pass over the columns of A_r (`ROWS`) or B_r.
fn update_side<const ROWS: bool>(
    f: &mut Factors,
    r: usize,
    wishes: &mut Targets,
    ridge: f64,
    sums: &mut [[f64; 2]],
) {
    let (rank, lines) = (f.rank, if ROWS { f.rows } else { f.cols });
    let (a, b) = (r * f.rows * rank, r * f.cols * rank);
    for l in 0..rank {
        sums.fill([0.0; 2]);
        for (i, cell) in wishes.cells.iter().enumerate() {
            let (line, other) = if ROWS {
                (cell.row, f.b[b + cell.col * rank + l])
            } else {
                (cell.col, f.a[a + cell.row * rank + l])
            };
            let weighted = wishes.weight[i] * other;
            sums[line][0] += weighted * (wishes.target[i] - wishes.model[i]);
            sums[line][1] += weighted * other;
        }
        for (line, sum) in sums[..lines].iter_mut().enumerate() {
            let at = if ROWS { a + line * rank + l } else { b + line * rank + l };
            let value = if ROWS { &mut f.a[at] } else { &mut f.b[at] };
            let bottom = sum[1] + ridge;
            let new =
                if bottom > 0.0 { ((sum[0] + sum[1] * *value) / bottom).max(0.0) } else { *value };
            sum[0] = new - *value;
            *value = new;
        }
        for (i, cell) in wishes.cells.iter().enumerate() {
            let (line, other) = if ROWS {
                (cell.row, f.b[b + cell.col * rank + l])
            } else {
                (cell.col, f.a[a + cell.row * rank + l])
            };
            wishes.model[i] += sums[line][0] * other;
        }
    }
}

/// Brings the residual up to date after SLF r has changed.
fn shift(f: &Factors, r: usize, cells: &[Cell], power: &[f64], slf: &mut [f64], rest: &mut [f64]) {
    for (n, &cell) in cells.iter().enumerate() {
        let new = f.slf(r, cell);
        let change = new - slf[n * f.emitters + r];
        slf[n * f.emitters + r] = new;
        for k in 0..f.bands {
            if !power[n * f.bands + k].is_nan() {
                rest[n * f.bands + k] -= change * f.c[r * f.bands + k];
            }
        }
    }
}
