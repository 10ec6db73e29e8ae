//! The nearest sensors of any place on the grid, found through buckets of cells.

use crate::grid::{Cell, Grid};

/// An index over sensor cells.
pub(crate) struct Neighbours {
    cells: Vec<Cell>,
    /// Side of a bucket in cells.
    side: usize,
    bucket_rows: usize,
    bucket_cols: usize,
    /// Sensors of every bucket, bucket by bucket.
    sensors: Vec<usize>,
    start: Vec<usize>,
}

impl Neighbours {
    pub fn new(grid: Grid, cells: &[Cell]) -> Self {
        // About two sensors a bucket.
        let side = ((2 * grid.cells()) as f64 / cells.len().max(1) as f64).sqrt().ceil() as usize;
        let side = side.max(1);
        let (bucket_rows, bucket_cols) = (grid.rows().div_ceil(side), grid.cols().div_ceil(side));
        let bucket = |cell: &Cell| cell.row / side * bucket_cols + cell.col / side;
        let mut start = vec![0; bucket_rows * bucket_cols + 1];
        for cell in cells {
            start[bucket(cell) + 1] += 1;
        }
        for i in 1..start.len() {
            start[i] += start[i - 1];
        }
        let mut next = start.clone();
        let mut sensors = vec![0; cells.len()];
        for (sensor, cell) in cells.iter().enumerate() {
            let slot = &mut next[bucket(cell)];
            sensors[*slot] = sensor;
            *slot += 1;
        }
        Self { cells: cells.to_vec(), side, bucket_rows, bucket_cols, sensors, start }
    }

    /// The `count` sensors nearest to a place (row, column, fractions allowed), nearest first as
    /// (squared distance in cells, sensor); equal distances by sensor number.
    pub fn nearest(&self, row: f64, col: f64, count: usize, out: &mut Vec<(f64, usize)>) {
        out.clear();
        let count = count.min(self.cells.len());
        let home = |x: f64, buckets: usize| {
            ((x.max(0.0) / self.side as f64) as usize).min(buckets - 1) as isize
        };
        let (home_row, home_col) = (home(row, self.bucket_rows), home(col, self.bucket_cols));
        let last = self.bucket_rows.max(self.bucket_cols) as isize;
        for ring in 0..=last {
            // Everything in this ring and beyond is at least this far away.
            let reach = ((ring - 1).max(0) as f64) * self.side as f64;
            if out.len() >= count {
                out.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
                out.truncate(count);
                if out.last().is_none_or(|(d, _)| *d < reach * reach) {
                    return;
                }
            }
            let last_col = self.bucket_cols as isize - 1;
            let (left, right) = (home_col - ring, home_col + ring);
            for bucket_row in [home_row - ring, home_row + ring] {
                for bucket_col in left.max(0)..=right.min(last_col) {
                    self.collect(bucket_row, bucket_col, row, col, out);
                }
                if ring == 0 {
                    break;
                }
            }
            let between =
                (home_row - ring + 1).max(0)..(home_row + ring).min(self.bucket_rows as isize);
            for bucket_col in [left, right].into_iter().filter(|c| (0..=last_col).contains(c)) {
                if ring > 0 {
                    for bucket_row in between.clone() {
                        self.collect(bucket_row, bucket_col, row, col, out);
                    }
                }
            }
        }
        out.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        out.truncate(count);
    }

    fn collect(&self, i: isize, j: isize, row: f64, col: f64, out: &mut Vec<(f64, usize)>) {
        let inside = |x: isize, n: usize| usize::try_from(x).ok().filter(|x| *x < n);
        let (Some(i), Some(j)) = (inside(i, self.bucket_rows), inside(j, self.bucket_cols)) else {
            return;
        };
        let bucket = i * self.bucket_cols + j;
        for &sensor in &self.sensors[self.start[bucket]..self.start[bucket + 1]] {
            let cell = self.cells[sensor];
            let (dr, dc) = (cell.row as f64 - row, cell.col as f64 - col);
            out.push((dr * dr + dc * dc, sensor));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_looking_at_every_sensor(
            places in proptest::collection::vec((0usize..40, 0usize..25), 1..60),
            row in -0.5..40.0f64, col in -0.5..25.0f64, count in 1usize..20,
        ) {
            let grid = Grid::new(40, 25, 1.0).unwrap();
            let cells: Vec<Cell> = places.iter().map(|&(r, c)| Cell::new(r, c)).collect();
            let mut found = Vec::new();
            Neighbours::new(grid, &cells).nearest(row, col, count, &mut found);
            let mut all: Vec<(f64, usize)> = cells.iter().enumerate()
                .map(|(i, c)| ((c.row as f64 - row).powi(2) + (c.col as f64 - col).powi(2), i))
                .collect();
            all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            all.truncate(count);
            prop_assert_eq!(found, all);
        }
    }
}
