//! From the fitted processes to the grid: every emitter's log SLF with its variance, tile by tile.
//! The mean uses all sensors up to a limit, beyond it each tile's nearest ones (Vecchia 1988); what
//! the sensors leave unknown of the shadowing is always taken from the nearest, since sensors
//! behind them add next to nothing (the screening effect; Stein 2002).

use faer::Mat;
use ndarray::Array3;
use rayon::prelude::*;

use super::law::{Covariates, Law, Places, Posterior, Shadow};
use crate::error::EstimateError;
use crate::estimate::Progress;
use crate::estimate::bands::Tiles;
use crate::estimate::thin_plate::nearest_to_tile;
use crate::gaussian_process::{CorrelationTable, Neighbours};
use crate::grid::{Cell, Grid};
use crate::linalg::{Cholesky, product};

/// Nearest sensors that the variance of a tile is taken from.
const NEAR: usize = 64;

/// One emitter ready to be drawn.
pub(crate) struct Drawn<'a> {
    pub law: Law,
    pub shadow: Shadow,
    pub places: &'a Places,
    pub posterior: &'a Posterior,
    /// Pseudo-data at the sensors and their noise variances.
    pub values: &'a [f64],
    pub noise: &'a [f64],
}

/// Mean and variance of every emitter's log SLF, emitters x rows x columns.
pub(crate) struct Fields {
    pub mean: Array3<f64>,
    pub variance: Array3<f64>,
}

/// Sensors, and how many of them each tile's mean looks at (all where None).
pub(crate) struct Canvas<'a> {
    pub grid: Grid,
    pub sensors: &'a [Cell],
    /// Of the decorrelation that all emitters share.
    pub table: &'a CorrelationTable,
    pub neighbours: Option<usize>,
}

impl Canvas<'_> {
    pub fn fields(
        &self,
        emitters: &[Drawn<'_>],
        progress: &Progress<'_>,
    ) -> Result<Fields, EstimateError> {
        let grid = self.grid;
        let shape = (emitters.len(), grid.rows(), grid.cols());
        let (mut mean, mut variance) = (Array3::zeros(shape), Array3::zeros(shape));
        let tiles = Tiles::new(grid);
        let index = Neighbours::new(grid, self.sensors);
        let whole: Vec<Option<Mat<f64>>> = emitters
            .par_iter()
            .map(|e| self.neighbours.is_none().then(|| e.posterior.whole_weights()))
            .collect();
        let parts: Vec<Vec<Vec<(f64, f64)>>> = (0..tiles.count())
            .into_par_iter()
            .map(|tile| {
                progress.report(tile, tiles.count())?;
                let at = tiles.cells(tile);
                let near = nearest_to_tile(&index, &at, self.neighbours.unwrap_or(NEAR));
                let cross = self.neighbours.is_none().then(|| self.cross(None, &at));
                let tile = Tile {
                    canvas: self,
                    at: &at,
                    near: &near,
                    near_cross: self.cross(Some(&near), &at),
                };
                emitters
                    .iter()
                    .zip(&whole)
                    .map(|(emitter, whole)| {
                        let whole = whole.as_ref().zip(cross.as_ref());
                        tile.predict(emitter, whole).ok_or_else(|| {
                            EstimateError::Numerical(
                                "the covariance of neighbouring sensors cannot be factorised"
                                    .into(),
                            )
                        })
                    })
                    .collect()
            })
            .collect::<Result<_, EstimateError>>()?;
        for (tile, part) in parts.iter().enumerate() {
            for (r, values) in part.iter().enumerate() {
                for (cell, (f, v)) in tiles.cells(tile).iter().zip(values) {
                    mean[[r, cell.row, cell.col]] = *f;
                    variance[[r, cell.row, cell.col]] = *v;
                }
            }
        }
        Ok(Fields { mean, variance })
    }

    /// Correlation of all or some sensors with cells.
    fn cross(&self, sensors: Option<&[usize]>, at: &[Cell]) -> Mat<f64> {
        let rows = sensors.map_or(self.sensors.len(), <[usize]>::len);
        Mat::from_fn(rows, at.len(), |i, j| {
            self.table.between(self.sensors[sensors.map_or(i, |s| s[i])], at[j])
        })
    }
}

/// Some cells and their nearest sensors.
struct Tile<'a> {
    canvas: &'a Canvas<'a>,
    at: &'a [Cell],
    near: &'a [usize],
    near_cross: Mat<f64>,
}

impl Tile<'_> {
    /// Mean and variance of one emitter at the tile's cells. `whole` are K^-1 of (pull, 1, losses)
    /// and the correlations with all sensors; without it the nearest sensors stand for all.
    fn predict(
        &self,
        emitter: &Drawn<'_>,
        whole: Option<(&Mat<f64>, &Mat<f64>)>,
    ) -> Option<Vec<(f64, f64)>> {
        let Drawn { law, shadow, places, posterior, .. } = emitter;
        let Canvas { grid, table, sensors, .. } = *self.canvas;
        let cells: Vec<Cell> = self.near.iter().map(|&n| sensors[n]).collect();
        let noise: Vec<f64> = self.near.iter().map(|&n| emitter.noise[n]).collect();
        let local = Covariates::new(table, &cells, shadow.sill, &noise)?;
        let losses = law.losses(grid, &places.at, self.at);
        let trend = posterior.mean_trend(&losses);
        // Columns: shadowing, then what the sensors say of the level and of every place's loss.
        let said = match whole {
            Some((weights, cross)) => product(cross.transpose(), weights.as_ref()),
            None => {
                let weights = self.local_weights(emitter, &cells, &local.cholesky);
                product(self.near_cross.transpose(), weights.as_ref())
            }
        };
        let mut half = self.near_cross.clone();
        local.cholesky.half_solve(half.as_mut());
        let sill = shadow.sill;
        let of = |i: usize| {
            let known = sill * sill * half.col(i).squared_norm_l2();
            let level = 1.0 - sill * said[(i, 1)];
            let (mut within, mut centre, mut square) = (0.0, 0.0, 0.0);
            for (j, (weight, t)) in posterior.weights.iter().zip(&posterior.trends).enumerate() {
                let slope = sill * said[(i, 2 + j)] - losses[(i, j)];
                let [a, b, c] = t.covariance;
                within +=
                    weight * (level * level * a + 2.0 * level * slope * b + slope * slope * c);
                let value = level * t.level + slope * t.exponent;
                centre += weight * value;
                square += weight * value * value;
            }
            let between = (square - centre * centre).max(0.0);
            (trend[i] + sill * said[(i, 0)], (sill - known).max(0.0) + within + between)
        };
        Some((0..self.at.len()).map(of).collect())
    }

    /// K^-1 of (values - trend, 1, losses) over the nearest sensors.
    fn local_weights(&self, emitter: &Drawn<'_>, cells: &[Cell], cholesky: &Cholesky) -> Mat<f64> {
        let losses = emitter.law.losses(self.canvas.grid, &emitter.places.at, cells);
        let trend = emitter.posterior.mean_trend(&losses);
        let mut weights = Mat::from_fn(cells.len(), 2 + losses.ncols(), |i, j| match j {
            0 => emitter.values[self.near[i]] - trend[i],
            1 => 1.0,
            _ => losses[(i, j - 2)],
        });
        cholesky.half_solve(weights.as_mut());
        cholesky.other_half_solve(weights.as_mut());
        weights
    }
}

impl Posterior {
    /// K^-1 of (values - trend, 1, losses) over all sensors.
    fn whole_weights(&self) -> Mat<f64> {
        let sensors = self.pull.len();
        let mut weights = Mat::from_fn(sensors, 2 + self.half_losses.ncols(), |i, j| match j {
            0 => 0.0,
            1 => self.covariates.half_one[(i, 0)],
            _ => self.half_losses[(i, j - 2)],
        });
        self.covariates.cholesky.other_half_solve(weights.as_mut());
        for (i, pull) in self.pull.iter().enumerate() {
            weights[(i, 0)] = *pull;
        }
        weights
    }
}
