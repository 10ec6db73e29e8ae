//! What a map is drawn on: rows and columns of square cells, somewhere in the plane.

use crate::error::InputError;
use crate::site::{Region, Site};

/// One cell, counted from the corner with the least x and y.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cell {
    /// Along x.
    pub row: usize,
    /// Along y.
    pub col: usize,
}

impl Cell {
    /// The cell at a row and a column.
    pub const fn new(row: usize, col: usize) -> Self {
        Self { row, col }
    }
}

/// Rows x columns of square cells, `cell_m` metres wide. The centre of cell (0, 0) is the origin;
/// rows grow with x, columns with y.
///
/// ```
/// use portolan::{Cell, Grid, Site};
/// let grid = Grid::new(10, 20, 0.5)?.with_origin(Site::new(100.0, -40.0))?;
/// assert_eq!(grid.site(Cell::new(2, 4)), Site::new(101.0, -38.0));
/// assert_eq!(grid.cell_at(Site::new(101.1, -38.1)), Some(Cell::new(2, 4)));
/// # Ok::<(), portolan::InputError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    rows: usize,
    cols: usize,
    cell_m: f64,
    origin: Site,
}

impl Grid {
    /// A grid whose origin is (0, 0).
    pub fn new(rows: usize, cols: usize, cell_m: f64) -> Result<Self, InputError> {
        let fits = rows.checked_mul(cols).is_some_and(|cells| cells <= isize::MAX as usize);
        if rows == 0 || cols == 0 || !fits {
            return Err(InputError::GridSize { rows, cols });
        }
        if !(cell_m.is_finite() && cell_m > 0.0) {
            return Err(InputError::CellSize { cell_m });
        }
        Ok(Self { rows, cols, cell_m, origin: Site::new(0.0, 0.0) })
    }

    /// The same grid with the centre of cell (0, 0) elsewhere.
    pub fn with_origin(self, origin: Site) -> Result<Self, InputError> {
        if !origin.is_finite() {
            return Err(InputError::Origin { x_m: origin.x_m, y_m: origin.y_m });
        }
        Ok(Self { origin, ..self })
    }

    /// The grid with cells of `cell_m` metres that covers a region, origin at its low corner.
    ///
    /// ```
    /// use portolan::{Grid, Region, Site};
    /// let region = Region { low: Site::new(10.0, 0.0), high: Site::new(13.0, 5.0) };
    /// let grid = Grid::covering(region, 0.5)?;
    /// assert_eq!((grid.rows(), grid.cols(), grid.origin()), (7, 11, region.low));
    /// # Ok::<(), portolan::InputError>(())
    /// ```
    pub fn covering(region: Region, cell_m: f64) -> Result<Self, InputError> {
        Self::new(1, 1, cell_m)?;
        let cells =
            |length: f64| ((length / cell_m - 1e-9).ceil().max(0.0) as usize).saturating_add(1);
        Self::new(cells(region.width_m()), cells(region.height_m()), cell_m)?
            .with_origin(region.low)
    }

    /// Number of rows: cells along x.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns: cells along y.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Metres per cell.
    pub fn cell_m(&self) -> f64 {
        self.cell_m
    }

    /// The centre of cell (0, 0).
    pub fn origin(&self) -> Site {
        self.origin
    }

    /// Number of cells.
    pub fn cells(&self) -> usize {
        self.rows * self.cols
    }

    /// Whether a cell belongs to the grid.
    pub fn contains(&self, cell: Cell) -> bool {
        cell.row < self.rows && cell.col < self.cols
    }

    /// Position of a cell in row-major order.
    pub fn index(&self, cell: Cell) -> usize {
        cell.row * self.cols + cell.col
    }

    /// The cell at a row-major position.
    pub fn cell(&self, index: usize) -> Cell {
        Cell::new(index / self.cols, index % self.cols)
    }

    /// The centre of a cell.
    pub fn site(&self, cell: Cell) -> Site {
        self.site_at([cell.row as f64, cell.col as f64])
    }

    /// The place at a row and column; fractions allowed, off the grid too.
    pub fn site_at(&self, [row, col]: [f64; 2]) -> Site {
        self.origin.moved(row * self.cell_m, col * self.cell_m)
    }

    /// The same cells at a height.
    ///
    /// ```
    /// use portolan::{Cell, Grid};
    /// let upstairs = Grid::new(4, 4, 1.0)?.at_height(3.2);
    /// assert_eq!(upstairs.site(Cell::new(1, 1)).z_m, 3.2);
    /// # Ok::<(), portolan::InputError>(())
    /// ```
    pub fn at_height(self, z_m: f64) -> Self {
        Self { origin: self.origin.at_height(z_m), ..self }
    }

    /// The height of all cells in metres.
    pub fn z_m(&self) -> f64 {
        self.origin.z_m
    }

    /// Row and column of a place; fractions, and off the grid too.
    pub fn position(&self, site: Site) -> [f64; 2] {
        [(site.x_m - self.origin.x_m) / self.cell_m, (site.y_m - self.origin.y_m) / self.cell_m]
    }

    /// The cell that a place lies in; None off the grid.
    pub fn cell_at(&self, site: Site) -> Option<Cell> {
        let [row, col] = self.position(site).map(f64::round);
        let inside = |x: f64, n: usize| (x >= 0.0 && x < n as f64).then_some(x as usize);
        Some(Cell::new(inside(row, self.rows)?, inside(col, self.cols)?))
    }

    /// The centres of all cells, row by row.
    pub fn sites(&self) -> Vec<Site> {
        self.sites_of_rows(0..self.rows)
    }

    /// The centres of the cells of some rows, row by row.
    pub fn sites_of_rows(&self, rows: std::ops::Range<usize>) -> Vec<Site> {
        rows.flat_map(|row| (0..self.cols).map(move |col| self.site(Cell::new(row, col)))).collect()
    }

    /// Some rows and columns as a grid of their own, at the same place.
    pub fn part(
        &self,
        rows: std::ops::Range<usize>,
        cols: std::ops::Range<usize>,
    ) -> Result<Self, InputError> {
        if rows.end > self.rows || cols.end > self.cols {
            return Err(InputError::Request(format!(
                "rows {} to {}, columns {} to {} are not all on the {} x {} grid",
                rows.start, rows.end, cols.start, cols.end, self.rows, self.cols
            )));
        }
        let origin = self.site(Cell::new(rows.start, cols.start));
        Self::new(rows.len(), cols.len(), self.cell_m)?.with_origin(origin)
    }

    /// From the outer edge of the first cell to that of the last.
    pub fn region(&self) -> Region {
        let half = 0.5;
        Region {
            low: self.site_at([-half, -half]),
            high: self.site_at([self.rows as f64 - half, self.cols as f64 - half]),
        }
    }

    /// Whether two grids have the same cells at the same places, up to rounding.
    pub fn coincides(&self, other: &Grid) -> bool {
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * self.cell_m;
        self.rows == other.rows
            && self.cols == other.cols
            && near(self.cell_m, other.cell_m)
            && near(self.origin.x_m, other.origin.x_m)
            && near(self.origin.y_m, other.origin.y_m)
            && near(self.origin.z_m, other.origin.z_m)
    }
}

/// A grid over a region: cells of 1 m, or of a round number of metres that makes at most 256 of
/// them along the longer side.
pub(crate) fn default_grid(region: Region) -> Result<Grid, InputError> {
    let longest = region.width_m().max(region.height_m());
    let sizes = (0..30).flat_map(|decade| [1.0, 2.0, 5.0].map(|f| f * 10f64.powi(decade)));
    // A desk is measured in centimetres, a country in kilometres.
    let cell_m = if longest < 8.0 && longest > 0.0 {
        longest / 64.0
    } else if longest <= 512.0 {
        1.0
    } else {
        sizes.into_iter().find(|cell| longest <= 256.0 * cell).unwrap_or(longest / 256.0)
    };
    let snap = |x: f64| (x / cell_m).floor() * cell_m;
    let low = Site { x_m: snap(region.low.x_m), y_m: snap(region.low.y_m), ..region.low };
    Grid::covering(Region { low, ..region }, cell_m)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_and_cell_are_inverse() {
        let grid = Grid::new(7, 5, 2.0).unwrap();
        for index in 0..grid.cells() {
            assert_eq!(grid.index(grid.cell(index)), index);
        }
    }

    #[test]
    fn cells_and_sites_are_inverse() {
        let grid = Grid::new(7, 5, 0.3).unwrap().with_origin(Site::new(-7e3, 4.8e6)).unwrap();
        for (index, site) in grid.sites().into_iter().enumerate() {
            assert_eq!(grid.cell_at(site), Some(grid.cell(index)));
        }
        assert_eq!(grid.cell_at(grid.site_at([-0.6, 0.0])), None);
        assert_eq!(grid.cell_at(grid.site_at([6.4, 4.4])), Some(Cell::new(6, 4)));
        assert_eq!(grid.cell_at(grid.site_at([6.6, 0.0])), None);
        let part = grid.part(2..5, 1..3).unwrap();
        assert!(part.site(Cell::new(1, 1)).distance_m(grid.site(Cell::new(3, 2))) < 1e-9);
        assert!(grid.part(2..8, 1..3).is_err());
    }

    #[test]
    fn a_region_is_covered() {
        let region = Region::around(&[Site::new(1.0, 2.0), Site::new(4.2, 8.0)]).unwrap();
        let grid = Grid::covering(region, 0.5).unwrap();
        assert_eq!((grid.rows(), grid.cols()), (8, 13));
        assert_eq!(grid.origin(), Site::new(1.0, 2.0));
        assert!(grid.cell_at(region.high).is_some());
    }

    #[test]
    fn impossible_grids_are_refused() {
        assert!(Grid::new(0, 5, 1.0).is_err());
        assert!(Grid::new(usize::MAX, 2, 1.0).is_err());
        assert!(Grid::new(5, 5, f64::NAN).is_err());
        assert!(Grid::new(5, 5, -1.0).is_err());
        assert!(Grid::new(5, 5, 1.0).unwrap().with_origin(Site::new(f64::NAN, 0.0)).is_err());
    }
}
