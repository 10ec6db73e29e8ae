//! Measurements of others: an office floor (Wi-Fi survey at Mannheim University) and a ray-traced
//! city, as the experiments use them.

use std::path::Path;

use ndarray::Array3;
use portolan::{Cell, Grid, RadioMap, Readings};
use portolan_io::{ReadOptions, read_readings};

use crate::error::ReproduceError;
use crate::experiments::Size;

/// What the folder holds and where it comes from.
pub const WHERE: &str = "mannheim/ (CRAWDAD mannheim/compass: offline.final.trace, \
    online.final.trace) and radiogat/ (RadioGAT's ray-traced city: receivedpower_*.mat)";

/// What is there of the real data.
#[derive(Clone, Debug, Default)]
pub struct Data {
    pub floor: Option<Floor>,
    pub city: Option<City>,
}

impl Data {
    /// Reads what a folder holds.
    pub fn load(folder: &Path, _size: Size) -> Result<Self, ReproduceError> {
        let options =
            ReadOptions { grid: Some((34, 14)), cell_m: Some(1.0), ..ReadOptions::default() };
        let file = folder.join("mannheim").join("mannheim_median_dbm.csv");
        let survey = read_readings(&file, &options)?.value;
        Ok(Self { floor: Some(Floor { survey, off_grid: Vec::new() }), city: None })
    }
}

/// The survey of the floor: medians per place and band.
#[derive(Clone, Debug)]
pub struct Floor {
    /// Every measured place, in linear power (mW).
    pub survey: Readings,
    /// Places off the grid, never used for fitting.
    pub off_grid: Vec<Place>,
}

/// A measured place anywhere on the floor.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Row and column, with fractions.
    pub at: [f64; 2],
    /// dBm per band; NaN where nothing was heard.
    pub dbm: Vec<f64>,
}

/// The city: linear power (mW), unknown (NaN) inside buildings.
#[derive(Clone, Debug)]
pub struct City {
    pub map: RadioMap,
}

impl City {
    /// A part of a larger map; rows and columns from `first`.
    pub fn crop(map: &RadioMap, first: Cell, rows: usize, cols: usize) -> Option<Self> {
        let (last_row, last_col) = (first.row + rows, first.col + cols);
        if last_row > map.grid().rows() || last_col > map.grid().cols() {
            return None;
        }
        let mut spectrum = vec![0.0; map.bands()];
        let mut power = Array3::zeros((rows, cols, map.bands()));
        for row in 0..rows {
            for col in 0..cols {
                map.spectrum_into(Cell::new(first.row + row, first.col + col), &mut spectrum);
                for (band, value) in spectrum.iter().enumerate() {
                    power[[row, col, band]] = *value;
                }
            }
        }
        let grid = Grid::new(rows, cols, map.grid().cell_m()).ok()?;
        let cropped = RadioMap::dense(grid, power).ok()?;
        let map = cropped.with_frequencies(map.freq_hz().map(<[f64]>::to_vec)).ok()?;
        Some(Self { map })
    }
}
