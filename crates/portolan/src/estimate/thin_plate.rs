//! Thin-plate splines (Duchon 1977): the smoothest surface, in bending energy, through the
//! readings. s(x) = sum_i w_i |x - x_i|^2 ln |x - x_i| + a plane, with sum w = 0, sum w x = 0.

use faer::Mat;

use super::bands::{Group, Prepared, SCALE_OPTIONS, Scale};
use super::{Context, Estimate, Estimator, OptionSpec, Options, Progress};
use crate::error::{EstimateError, InputError};
use crate::gaussian_process::Neighbours;
use crate::grid::{Cell, Grid};
use crate::linalg::{product, solve_general};
use crate::readings::Readings;

const OWN: &[OptionSpec] = &[
    OptionSpec {
        name: "smoothing",
        default: "0 (through the readings, as SciPy)",
        takes: "a number, 0 or more: added on the diagonal",
    },
    OptionSpec {
        name: "neighbours",
        default: "all up to 2000 sensors, then 96",
        takes: "how many nearest sensors each 8 x 8 tile uses",
    },
];
pub(super) const OPTIONS: &[&[OptionSpec]] = &[OWN, SCALE_OPTIONS];

/// Sensors beyond which one system for all is too slow.
pub(super) const MOST_TOGETHER: usize = 2000;
const NEIGHBOURS: usize = 96;

struct ThinPlate {
    scale: Scale,
    smoothing: f64,
    neighbours: Option<usize>,
}

pub(super) fn build(options: &Options) -> Result<Box<dyn Estimator>, InputError> {
    Ok(Box::new(ThinPlate {
        scale: Scale::from_options(options)?,
        smoothing: options.number("smoothing", 0.0..f64::INFINITY)?.unwrap_or(0.0),
        neighbours: options.count("neighbours", 3..=MOST_TOGETHER)?,
    }))
}

enum Fit {
    Whole(Spline),
    Local { index: Neighbours, count: usize },
}

impl Estimator for ThinPlate {
    fn estimate(
        &self,
        readings: &Readings,
        _context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Estimate, EstimateError> {
        let grid = readings.grid();
        let prepared = Prepared::new(readings, self.scale);
        let neighbours = |sensors: usize| {
            self.neighbours
                .or((sensors > MOST_TOGETHER).then_some(NEIGHBOURS))
                .filter(|n| *n < sensors)
        };
        let map = prepared.map_by_tiles(
            readings,
            progress,
            |group| match neighbours(group.cells.len()) {
                None => Spline::through(grid, group, None, self.smoothing).map(Fit::Whole),
                Some(count) => Ok(Fit::Local { index: Neighbours::new(grid, &group.cells), count }),
            },
            |fit, group, cells, out| match fit {
                Fit::Whole(spline) => {
                    spline.evaluate(cells, out);
                    Ok(())
                }
                Fit::Local { index, count } => {
                    let near = nearest_to_tile(index, cells, *count);
                    let spline = Spline::through(grid, group, Some(&near), self.smoothing)?;
                    spline.evaluate(cells, out);
                    Ok(())
                }
            },
        )?;
        let mut estimate = Estimate::new(map);
        estimate.notes.extend(neighbours(readings.sensors()).map(local_note));
        Ok(estimate)
    }
}

/// The sensors nearest to the middle of a tile, in order of their number.
pub(super) fn nearest_to_tile(index: &Neighbours, cells: &[Cell], count: usize) -> Vec<usize> {
    let (first, last) = (cells[0], cells[cells.len() - 1]);
    let middle = |a: usize, b: usize| 0.5 * (a + b) as f64;
    let mut found = Vec::new();
    index.nearest(middle(first.row, last.row), middle(first.col, last.col), count, &mut found);
    let mut near: Vec<usize> = found.into_iter().map(|(_, sensor)| sensor).collect();
    near.sort_unstable();
    near
}

pub(super) fn local_note(count: usize) -> String {
    format!("used local neighbourhoods: the {count} nearest sensors of each 8 x 8 tile")
}

/// r^2 ln r from the squared distance.
fn kernel(d2: f64) -> f64 {
    if d2 > 0.0 { 0.5 * d2 * d2.ln() } else { 0.0 }
}

/// A spline through the readings of several bands.
struct Spline {
    cells: Vec<Cell>,
    plane: Plane,
    scale: f64,
    /// Kernel weights above plane coefficients, per band.
    coefficients: Mat<f64>,
}

impl Spline {
    /// Through all sensors of a group or some of them.
    fn through(
        grid: Grid,
        group: &Group,
        some: Option<&[usize]>,
        smoothing: f64,
    ) -> Result<Self, EstimateError> {
        let all: Vec<usize>;
        let sensors = match some {
            Some(sensors) => sensors,
            None => {
                all = (0..group.cells.len()).collect();
                &all
            }
        };
        let cells: Vec<Cell> = sensors.iter().map(|&s| group.cells[s]).collect();
        // The spline does not depend on the unit of length; near 1 the system is best conditioned.
        let scale = 1.0 / grid.rows().max(grid.cols()) as f64;
        let plane = Plane::through(&cells);
        let (n, p) = (cells.len(), plane.terms);
        let mut system = Mat::zeros(n + p, n + p);
        for j in 0..n {
            for i in 0..n {
                system[(i, j)] = kernel(squared(cells[i], cells[j], scale));
            }
            // SciPy's smoothing is in cells; the scaled kernel is smaller by the square of the unit.
            system[(j, j)] += smoothing * scale * scale;
            for (k, value) in plane.basis(cells[j]).into_iter().take(p).enumerate() {
                system[(n + k, j)] = value;
                system[(j, n + k)] = value;
            }
        }
        let bands = group.values.ncols();
        let rhs =
            Mat::from_fn(
                n + p,
                bands,
                |i, k| {
                    if i < n { group.values[[sensors[i], k]] } else { 0.0 }
                },
            );
        let coefficients = solve_general(system.as_ref(), rhs.as_ref()).ok_or_else(|| {
            EstimateError::Numerical(format!("no thin-plate spline passes through {n} sensors"))
        })?;
        Ok(Self { cells, plane, scale, coefficients })
    }

    fn evaluate(&self, at: &[Cell], out: &mut [f64]) {
        let (n, p) = (self.cells.len(), self.plane.terms);
        let mut basis = Mat::zeros(n + p, at.len());
        for (j, &cell) in at.iter().enumerate() {
            for i in 0..n {
                basis[(i, j)] = kernel(squared(self.cells[i], cell, self.scale));
            }
            for (k, value) in self.plane.basis(cell).into_iter().take(p).enumerate() {
                basis[(n + k, j)] = value;
            }
        }
        let values = product(basis.transpose(), self.coefficients.as_ref());
        for (j, spectrum) in out.chunks_mut(values.ncols()).enumerate() {
            spectrum.iter_mut().enumerate().for_each(|(k, v)| *v = values[(j, k)]);
        }
    }
}

fn squared(a: Cell, b: Cell, scale: f64) -> f64 {
    let (dr, dc) = (a.row.abs_diff(b.row), a.col.abs_diff(b.col));
    scale * scale * (dr * dr + dc * dc) as f64
}

/// The polynomial part: a plane, a slope along the line that all sensors lie on, or the level of a
/// single sensor.
struct Plane {
    terms: usize,
    centre: [f64; 2],
    along: Option<[f64; 2]>,
    scale: f64,
}

impl Plane {
    fn through(cells: &[Cell]) -> Self {
        let n = cells.len() as f64;
        let mean = |f: fn(&Cell) -> usize| cells.iter().map(|c| f(c) as f64).sum::<f64>() / n;
        let centre = [mean(|c| c.row), mean(|c| c.col)];
        let (mut rr, mut rc, mut cc) = (0.0, 0.0, 0.0);
        for cell in cells {
            let (r, c) = (cell.row as f64 - centre[0], cell.col as f64 - centre[1]);
            rr += r * r;
            rc += r * c;
            cc += c * c;
        }
        let total = rr + cc;
        let flat = rr * cc - rc * rc <= 1e-10 * total * total;
        let along = flat.then_some(if rr >= cc { [rr, rc] } else { [rc, cc] }).map(|[r, c]| {
            let norm = r.hypot(c).max(f64::MIN_POSITIVE);
            [r / norm, c / norm]
        });
        let terms = if total == 0.0 { 1 } else { 3 - usize::from(flat) };
        Self { terms, centre, along, scale: (n / total.max(1.0)).sqrt() }
    }

    fn basis(&self, cell: Cell) -> [f64; 3] {
        let r = self.scale * (cell.row as f64 - self.centre[0]);
        let c = self.scale * (cell.col as f64 - self.centre[1]);
        match self.along {
            Some([dr, dc]) => [1.0, r * dr + c * dc, 0.0],
            None => [1.0, r, c],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::load;
    use ndarray::Array2;

    /// `thin_plate.npz` was made by SciPy's RBFInterpolator.
    #[test]
    fn equal_to_scipy() {
        let fixture = load("thin_plate");
        let cells: Vec<Cell> =
            fixture["at"].1.chunks(2).map(|p| Cell::new(p[0] as usize, p[1] as usize)).collect();
        let values = fixture["values"].1.clone();
        let group = Group {
            bands: vec![0],
            values: Array2::from_shape_vec((cells.len(), 1), values).unwrap(),
            cells,
        };
        let grid = Grid::new(64, 64, 1.0).unwrap();
        let spline = Spline::through(grid, &group, None, 0.0).unwrap();
        let at: Vec<Cell> = (0..grid.cells()).map(|i| grid.cell(i)).collect();
        let mut got = vec![0.0; at.len()];
        spline.evaluate(&at, &mut got);
        for (got, want) in got.iter().zip(&fixture["predicted"].1) {
            assert!((got - want).abs() < 1e-8, "{got} {want}");
        }
    }

    #[test]
    fn sensors_on_a_line_are_enough() {
        let cells: Vec<Cell> = (0..6).map(|i| Cell::new(2 * i, 3 * i)).collect();
        let values = Array2::from_shape_fn((6, 1), |(i, _)| 1.0 + 0.5 * i as f64);
        let grid = Grid::new(20, 20, 1.0).unwrap();
        let group = Group { bands: vec![0], cells: cells.clone(), values };
        let spline = Spline::through(grid, &group, None, 0.0).unwrap();
        let mut got = vec![0.0; 6];
        spline.evaluate(&cells, &mut got);
        for (i, value) in got.iter().enumerate() {
            assert!((value - 1.0 - 0.5 * i as f64).abs() < 1e-9);
        }
    }
}
