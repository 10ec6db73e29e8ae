//! Models that live on a grid: drawn there once, read between cell centres bilinearly in dB.

use ndarray::{Array2, Array3, Axis};

use super::{Archive, FactoredDrawing, Prediction, Predictor};
use crate::error::{EstimateError, InputError};
use crate::grid::Grid;
use crate::map::{Factors, RadioMap};
use crate::progress::Progress;
use crate::scale::Scale;
use crate::site::Site;

/// What a fit on a grid found, and how it is drawn.
pub trait Drawing: Send + Sync {
    /// The name under which it is written.
    fn kind(&self) -> &'static str;

    /// Bytes that drawing takes for each cell; a decoder has 64 channels.
    fn bytes_per_cell(&self) -> u64 {
        64 * 8
    }

    /// Draws on a grid.
    fn draw(&self, grid: Grid) -> Result<DrawnGrid, EstimateError>;

    /// Writes what it takes to draw the same to the last bit.
    fn save(&self, archive: &mut Archive);
}

/// A drawing: emitters, or power in every cell and band.
pub enum DrawnGrid {
    /// SLFs and PSDs.
    Factored(Factors),
    /// Rows x cols x bands, linear power.
    Dense(Array3<f64>),
}

/// Where a model that is read may draw.
#[derive(Clone, Copy)]
pub(crate) struct Room {
    pub grid: Option<Grid>,
    pub free_bytes: u64,
}

impl Room {
    /// The grid, where the memory to draw on it can be had: a grid that is only claimed must not
    /// take it.
    pub fn grid(self, bytes_per_cell: u64) -> Result<Grid, InputError> {
        let grid = self.grid.ok_or_else(|| super::damaged("grid", "is missing"))?;
        let (rows, cols) = (grid.rows(), grid.cols());
        let bytes = (rows as u64).saturating_mul(cols as u64).saturating_mul(bytes_per_cell);
        if bytes <= self.free_bytes && can_be_had(bytes) {
            return Ok(grid);
        }
        Err(InputError::Request(format!(
            "drawing on the model's grid of {rows} x {cols} cells takes {:.3} GB, more memory than \
             is free: fit it on a smaller grid",
            bytes as f64 / 1e9
        )))
    }
}

fn can_be_had(bytes: u64) -> bool {
    let mut room: Vec<u8> = Vec::new();
    let had = usize::try_from(bytes).is_ok_and(|bytes| room.try_reserve_exact(bytes).is_ok());
    // Otherwise the request may be optimised away.
    std::hint::black_box(&room);
    had
}

/// A drawing on its grid.
pub(crate) struct Gridded {
    grid: Grid,
    map: RadioMap,
    /// What a power of zero counts as between cells.
    floor: f64,
    drawing: Box<dyn Drawing>,
}

impl Gridded {
    pub fn new(
        grid: Grid,
        floor: f64,
        drawing: impl Drawing + 'static,
    ) -> Result<Self, EstimateError> {
        // The scale of a map is its reader's business; here only powers count.
        let map = match drawing.draw(grid)? {
            DrawnGrid::Factored(factors) => RadioMap::factored(grid, factors, Scale::Absolute),
            DrawnGrid::Dense(power) => RadioMap::dense(grid, power, Scale::Absolute),
        };
        let diverged = |_| EstimateError::Numerical("the fit diverged".into());
        Ok(Self { grid, map: map.map_err(diverged)?, floor, drawing: Box::new(drawing) })
    }

    pub fn factors(&self) -> Option<&Factors> {
        self.map.factors()
    }

    /// Reads what [`Predictor::save`] wrote; `drawing` is what the method saved itself.
    pub fn load(
        archive: &Archive,
        room: Room,
        drawing: impl Drawing + 'static,
    ) -> Result<Self, EstimateError> {
        let grid = room.grid(drawing.bytes_per_cell())?;
        Self::new(grid, archive.number("floor")?, drawing)
    }
}

impl Predictor for Gridded {
    fn kind(&self) -> &'static str {
        self.drawing.kind()
    }

    fn sees_heights(&self) -> bool {
        false
    }

    fn predict(
        &self,
        at: &[Site],
        bands: &[usize],
        progress: &Progress<'_>,
    ) -> Result<Prediction, EstimateError> {
        let mut power = Array2::zeros((at.len(), bands.len()));
        for (i, (site, mut row)) in at.iter().zip(power.rows_mut()).enumerate() {
            if i % 4096 == 0 {
                progress.report(i, at.len())?;
            }
            let row = row.as_slice_mut().expect("rows are contiguous");
            self.map.powers_at(*site, self.floor, bands.iter().copied(), row);
        }
        Ok(Prediction::of_power(power))
    }

    fn factors(
        &self,
        grid: Grid,
        bands: &[usize],
        _progress: &Progress<'_>,
    ) -> Result<Option<FactoredDrawing>, EstimateError> {
        let own = self.map.factors().filter(|_| self.is_factored_on(grid));
        Ok(own.map(|Factors { slf, psd }| {
            let factors = Factors { slf: slf.clone(), psd: psd.select(Axis(1), bands) };
            FactoredDrawing { factors, spread_db: None }
        }))
    }

    fn is_factored_on(&self, grid: Grid) -> bool {
        self.map.factors().is_some() && grid.coincides(&self.grid)
    }

    fn save(&self, archive: &mut Archive) {
        archive.put_number("floor", self.floor);
        self.drawing.save(archive);
    }
}
