//! The survey area: rows and columns of square cells.

use crate::error::InputError;

/// The largest number of cells a grid may have; beyond it a file is taken to be damaged.
const MAX_CELLS: usize = 1 << 28;

/// One cell, counted from the top left corner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cell {
    pub row: usize,
    pub col: usize,
}

impl Cell {
    pub const fn new(row: usize, col: usize) -> Self {
        Self { row, col }
    }
}

/// Rows x columns of square cells, `cell_m` metres wide. Cell (0, 0) has its centre at the origin;
/// rows grow with `x_m`, columns with `y_m`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    rows: usize,
    cols: usize,
    cell_m: f64,
}

impl Grid {
    pub fn new(rows: usize, cols: usize, cell_m: f64) -> Result<Self, InputError> {
        let fits = rows.checked_mul(cols).is_some_and(|cells| cells <= MAX_CELLS);
        if rows == 0 || cols == 0 || !fits {
            return Err(InputError::GridSize { rows, cols, most: MAX_CELLS });
        }
        if !(cell_m.is_finite() && cell_m > 0.0) {
            return Err(InputError::CellSize { cell_m });
        }
        Ok(Self { rows, cols, cell_m })
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn cols(&self) -> usize {
        self.cols
    }

    pub fn cell_m(&self) -> f64 {
        self.cell_m
    }

    /// Number of cells.
    pub fn cells(&self) -> usize {
        self.rows * self.cols
    }

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

    /// Distance between two cell centres in metres.
    pub fn distance_m(&self, a: Cell, b: Cell) -> f64 {
        let (dr, dc) = (a.row.abs_diff(b.row), a.col.abs_diff(b.col));
        self.cell_m * ((dr * dr + dc * dc) as f64).sqrt()
    }

    /// Distance between opposite corners in metres.
    pub fn diagonal_m(&self) -> f64 {
        self.distance_m(Cell::new(0, 0), Cell::new(self.rows - 1, self.cols - 1))
    }
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
    fn distance_is_in_metres() {
        let grid = Grid::new(10, 10, 2.0).unwrap();
        assert_eq!(grid.distance_m(Cell::new(0, 0), Cell::new(3, 4)), 10.0);
    }

    #[test]
    fn impossible_grids_are_refused() {
        assert!(Grid::new(0, 5, 1.0).is_err());
        assert!(Grid::new(usize::MAX, 2, 1.0).is_err());
        assert!(Grid::new(5, 5, f64::NAN).is_err());
        assert!(Grid::new(5, 5, -1.0).is_err());
    }
}
