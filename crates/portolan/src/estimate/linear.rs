//! Linear interpolation over Delaunay triangles; outside the hull the nearest sensor.

use delaunator::{Point, triangulate};

use super::bands::{Group, Prepared, SCALE_OPTIONS, Scale};
use super::{Context, Estimate, Estimator, OptionSpec, Options, Progress};
use crate::error::{EstimateError, InputError};
use crate::gaussian_process::Neighbours;
use crate::grid::{Cell, Grid};
use crate::readings::Readings;

pub(super) const OPTIONS: &[&[OptionSpec]] = &[SCALE_OPTIONS];

struct Linear {
    scale: Scale,
}

pub(super) fn build(options: &Options) -> Result<Box<dyn Estimator>, InputError> {
    Ok(Box::new(Linear { scale: Scale::from_options(options)? }))
}

impl Estimator for Linear {
    fn estimate(
        &self,
        readings: &Readings,
        _context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Estimate, EstimateError> {
        let grid = readings.grid();
        let prepared = Prepared::new(readings, self.scale);
        let map = prepared.map_by_tiles(
            readings,
            progress,
            |group| Ok(corners(grid, group)),
            |corners, group, cells, out| {
                for (cell, spectrum) in cells.iter().zip(out.chunks_mut(group.bands.len())) {
                    for (sensor, share) in corners[grid.index(*cell)] {
                        let values = group.values.row(sensor);
                        spectrum.iter_mut().zip(values).for_each(|(s, v)| *s += share * v);
                    }
                }
                Ok(())
            },
        )?;
        Ok(Estimate::new(map))
    }
}

/// Three sensors and their shares for every cell.
fn corners(grid: Grid, group: &Group) -> Vec<[(usize, f64); 3]> {
    let points: Vec<Point> =
        group.cells.iter().map(|c| Point { x: c.row as f64, y: c.col as f64 }).collect();
    let mut corners = vec![None; grid.cells()];
    for triangle in triangulate(&points).triangles.chunks_exact(3) {
        paint(grid, &points, triangle, &mut corners);
    }
    let index = Neighbours::new(grid, &group.cells);
    let mut found = Vec::new();
    corners
        .into_iter()
        .enumerate()
        .map(|(i, inside)| {
            inside.unwrap_or_else(|| {
                let Cell { row, col } = grid.cell(i);
                index.nearest(row as f64, col as f64, 1, &mut found);
                [(found[0].1, 1.0), (found[0].1, 0.0), (found[0].1, 0.0)]
            })
        })
        .collect()
}

/// Writes the barycentric shares of one triangle into every cell it covers.
fn paint(
    grid: Grid,
    points: &[Point],
    triangle: &[usize],
    corners: &mut [Option<[(usize, f64); 3]>],
) {
    let [a, b, c] = [0, 1, 2].map(|i| &points[triangle[i]]);
    let area = (b.x - a.x) * (c.y - a.y) - (c.x - a.x) * (b.y - a.y);
    if area == 0.0 {
        return;
    }
    let span = |f: fn(&Point) -> f64| {
        let (low, high) = (f(a).min(f(b)).min(f(c)), f(a).max(f(b)).max(f(c)));
        low as usize..=high as usize
    };
    for row in span(|p| p.x) {
        for col in span(|p| p.y) {
            let (x, y) = (row as f64, col as f64);
            let share_b = ((x - a.x) * (c.y - a.y) - (c.x - a.x) * (y - a.y)) / area;
            let share_c = ((b.x - a.x) * (y - a.y) - (x - a.x) * (b.y - a.y)) / area;
            let share_a = 1.0 - share_b - share_c;
            // A cell on an edge belongs to both triangles and gets the same value from either.
            if share_a.min(share_b).min(share_c) >= -1e-12 {
                let shares = [share_a, share_b, share_c];
                corners[grid.index(Cell::new(row, col))] =
                    Some([0, 1, 2].map(|i| (triangle[i], shares[i])));
            }
        }
    }
}
