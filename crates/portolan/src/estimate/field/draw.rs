//! From the fitted processes to the grid: log SLFs with their variance, the map and its spread.

use faer::Mat;
use ndarray::Array3;
use rayon::prelude::*;

use super::law::{Law, Places, Posterior, Shadow};
use crate::estimate::bands::Tiles;
use crate::gaussian_process::{CorrelationTable, Family};
use crate::grid::{Cell, Grid};
use crate::linalg::{add_product, product};

/// One emitter ready to be drawn.
pub(crate) struct Drawn<'a> {
    pub law: Law,
    pub shadow: Shadow,
    pub places: &'a Places,
    pub posterior: &'a Posterior,
}

/// Mean and variance of every emitter's log SLF, emitters x rows x columns.
pub(crate) struct Fields {
    pub mean: Array3<f64>,
    pub variance: Array3<f64>,
}

/// Draws emitters that share their sensors.
pub(crate) fn fields(grid: Grid, cells: &[Cell], emitters: &[Drawn<'_>]) -> Fields {
    let shape = (emitters.len(), grid.rows(), grid.cols());
    let (mut mean, mut variance) = (Array3::zeros(shape), Array3::zeros(shape));
    let tiles = Tiles::new(grid);
    for (r, emitter) in emitters.iter().enumerate() {
        let reach = emitter.shadow.decorrelation_m;
        let table = CorrelationTable::new(grid, Family::Exponential, reach);
        let parts: Vec<Vec<(f64, f64)>> = (0..tiles.count())
            .into_par_iter()
            .map(|tile| emitter.predict(grid, cells, &table, &tiles.cells(tile)))
            .collect();
        for (tile, part) in parts.iter().enumerate() {
            for (cell, (f, v)) in tiles.cells(tile).iter().zip(part) {
                mean[[r, cell.row, cell.col]] = *f;
                variance[[r, cell.row, cell.col]] = *v;
            }
        }
    }
    Fields { mean, variance }
}

impl Drawn<'_> {
    /// Mean and variance at some cells.
    fn predict(
        &self,
        grid: Grid,
        sensors: &[Cell],
        table: &CorrelationTable,
        at: &[Cell],
    ) -> Vec<(f64, f64)> {
        let Self { law, shadow, places, posterior } = self;
        let mut cross = Mat::from_fn(sensors.len(), at.len(), |i, j| {
            shadow.sill * table.between(sensors[i], at[j])
        });
        let losses = law.losses(grid, &places.at, at);
        let trend = posterior.mean_trend(&losses);
        let pull = Mat::from_fn(sensors.len(), 1, |i, _| posterior.pull[i]);
        let mean = product(cross.transpose(), pull.as_ref());
        posterior.covariates.cholesky.half_solve(cross.as_mut());
        // What the trend adds beyond what the sensors already say of it.
        let ones = product(cross.transpose(), posterior.covariates.half_one.as_ref());
        let mut lack = losses;
        add_product(lack.as_mut(), cross.transpose(), posterior.half_losses.as_ref(), -1.0);
        (0..at.len())
            .map(|i| {
                let known = cross.col(i).squared_norm_l2();
                let level = 1.0 - ones[(i, 0)];
                let (mut within, mut centre, mut square) = (0.0, 0.0, 0.0);
                for (j, (weight, t)) in posterior.weights.iter().zip(&posterior.trends).enumerate()
                {
                    let slope = -lack[(i, j)];
                    let [a, b, c] = t.covariance;
                    within +=
                        weight * (level * level * a + 2.0 * level * slope * b + slope * slope * c);
                    let value = level * t.level + slope * t.exponent;
                    centre += weight * value;
                    square += weight * value * value;
                }
                let between = (square - centre * centre).max(0.0);
                let variance = (shadow.sill - known).max(0.0) + within + between;
                (trend[i] + mean[(i, 0)], variance)
            })
            .collect()
    }
}
