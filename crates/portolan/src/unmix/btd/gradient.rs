//! Any likelihood of ln(x + a): Adam (Kingma and Ba 2015) in the logarithms of A, B and C, which
//! keeps them positive and gives cells 60 dB apart steps of one size.

use super::{BtdFit, BtdOptions, BtdProblem, Factors};
use crate::error::EstimateError;
use crate::likelihood::Likelihood;
use crate::link::Link;
use crate::progress::Progress;

const DECAY: (f64, f64) = (0.9, 0.999);
const EPSILON: f64 = 1e-10;
/// Entries of a start are raised to this share of the largest: a zero has no logarithm.
const LEAST: f64 = 1e-6;

/// One block of parameters with its gradient and Adam's moments.
struct Block {
    gradient: Vec<f64>,
    first: Vec<f64>,
    second: Vec<f64>,
}

impl Block {
    fn new(values: &mut [f64]) -> Self {
        let most = values.iter().copied().fold(0.0, f64::max);
        let least = if most > 0.0 { LEAST * most } else { LEAST };
        values.iter_mut().for_each(|v| *v = v.max(least));
        let zeros = || vec![0.0; values.len()];
        Self { gradient: zeros(), first: zeros(), second: zeros() }
    }

    fn step(&mut self, values: &mut [f64], ridge: f64, rate: f64, time: i32) {
        let (up1, up2) = (1.0 - DECAY.0.powi(time), 1.0 - DECAY.1.powi(time));
        let moments = self.first.iter_mut().zip(&mut self.second);
        for ((value, gradient), (first, second)) in
            values.iter_mut().zip(&self.gradient).zip(moments)
        {
            let slope = *value * (gradient + 2.0 * ridge * *value);
            *first = DECAY.0 * *first + (1.0 - DECAY.0) * slope;
            *second = DECAY.1 * *second + (1.0 - DECAY.1) * slope * slope;
            let step = *first / up1 / ((*second / up2).sqrt() + EPSILON);
            *value = (*value * (-rate * step).exp()).clamp(1e-30, 1e30);
        }
        self.gradient.fill(0.0);
    }
}

/// `frame`: the link, and the unit of power that the factors are in.
pub(super) fn fit<L: Likelihood<f64>>(
    problem: &BtdProblem<'_>,
    options: &BtdOptions,
    mut f: Factors,
    targets: &[L::Target],
    likelihood: &L,
    frame: (Link, f64),
    progress: &Progress<'_>,
) -> Result<BtdFit, EstimateError> {
    let (link, unit) = frame;
    let bands = f.bands;
    let (mut blocks, mut trace) =
        ((Block::new(&mut f.a), Block::new(&mut f.b), Block::new(&mut f.c)), Vec::new());
    let prior: Option<Vec<f64>> = problem.prior_slf.map(|slf| slf.iter().copied().collect());
    let (mut power, mut mean, mut slope) = (vec![0.0; bands], vec![0.0; bands], vec![0.0; bands]);
    let floor = link.offset() / unit;
    for iteration in 0..=options.iterations {
        progress.report(iteration, options.iterations)?;
        let mut loss = 0.0;
        for (n, &cell) in problem.cells.iter().enumerate() {
            power.fill(floor);
            for r in 0..f.emitters {
                let s = f.slf(r, cell);
                let psd = &f.c[r * bands..][..bands];
                power.iter_mut().zip(psd).for_each(|(x, c)| *x += s * c);
            }
            for (m, x) in mean.iter_mut().zip(&power) {
                *m = (x * unit).ln();
            }
            loss += likelihood.gradient_row(&targets[n * bands..][..bands], &mean, &mut slope);
            slope.iter_mut().zip(&power).for_each(|(g, x)| *g /= x);
            for r in 0..f.emitters {
                let s = f.slf(r, cell);
                let mut pull = 0.0;
                let sums = &mut blocks.2.gradient[r * bands..][..bands];
                for ((g, c), sum) in slope.iter().zip(&f.c[r * bands..]).zip(sums) {
                    pull += g * c;
                    *sum += g * s;
                }
                spread(&f, &mut blocks, r, (cell.row, cell.col), pull);
            }
        }
        if let Some(prior) = &prior {
            let weight = options.prior_weight;
            loss += lean(&f, &mut blocks, prior, weight, problem);
        }
        if !loss.is_finite() {
            let message = "the block-term fit diverged: lower the learning rate";
            return Err(EstimateError::Numerical(message.into()));
        }
        let settled = trace.last().is_some_and(|&last: &f64| {
            (last - loss).abs() <= options.tolerance * last.abs().max(f64::MIN_POSITIVE)
        });
        trace.push(loss);
        if settled || iteration == options.iterations {
            break;
        }
        // A decaying rate: Adam at a fixed one never comes to rest.
        let rate =
            options.learning_rate / (1.0 + 4.0 * iteration as f64 / options.iterations as f64);
        let time = i32::try_from(iteration + 1).unwrap_or(i32::MAX);
        blocks.0.step(&mut f.a, options.ridge, rate, time);
        blocks.1.step(&mut f.b, options.ridge, rate, time);
        blocks.2.step(&mut f.c, options.ridge, rate, time);
    }
    f.finish(unit, trace)
}

/// Passes the slope in one cell of SLF r on to A and B.
fn spread(
    f: &Factors,
    blocks: &mut (Block, Block, Block),
    r: usize,
    (row, col): (usize, usize),
    pull: f64,
) {
    let (a, b) = ((r * f.rows + row) * f.rank, (r * f.cols + col) * f.rank);
    for l in 0..f.rank {
        blocks.0.gradient[a + l] += pull * f.b[b + l];
        blocks.1.gradient[b + l] += pull * f.a[a + l];
    }
}

/// weight * (ln S - ln prior - level)^2 over the prior's cells, the level free for every emitter.
fn lean(
    f: &Factors,
    blocks: &mut (Block, Block, Block),
    prior: &[f64],
    weight: f64,
    problem: &BtdProblem<'_>,
) -> f64 {
    let cells = problem.grid.cells();
    let mut loss = 0.0;
    for r in 0..f.emitters {
        let field = &prior[r * cells..(r + 1) * cells];
        let most = field.iter().copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
        let known = |v: f64| v.is_finite() && most > 0.0;
        let error = |i: usize| {
            f.slf(r, problem.grid.cell(i)).max(f64::MIN_POSITIVE).ln()
                - field[i].max(LEAST * most).ln()
        };
        let (mut sum, mut count) = (0.0, 0usize);
        for i in (0..cells).filter(|&i| known(field[i])) {
            sum += error(i);
            count += 1;
        }
        let level = sum / count.max(1) as f64;
        for i in (0..cells).filter(|&i| known(field[i])) {
            let (cell, off) = (problem.grid.cell(i), error(i) - level);
            loss += weight * off * off;
            let pull = 2.0 * weight * off / f.slf(r, cell).max(f64::MIN_POSITIVE);
            spread(f, blocks, r, (cell.row, cell.col), pull);
        }
    }
    loss
}
