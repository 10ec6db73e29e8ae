//! Models that live on a grid: drawn there once, read between cell centres bilinearly in dB.

use ndarray::{Array2, Array3};

use super::{Archive, FactoredDrawing, Prediction, Predictor};
use crate::error::EstimateError;
use crate::grid::Grid;
use crate::map::{Factors, RadioMap};
use crate::progress::Progress;
use crate::scale::Scale;
use crate::site::Site;

/// What a fit on a grid found, and how it is drawn.
pub(crate) trait Drawing: Send + Sync {
    /// The name under which it is written.
    fn kind(&self) -> &'static str;

    fn draw(&self, grid: Grid) -> Result<DrawnGrid, EstimateError>;

    fn save(&self, archive: &mut Archive);
}

/// A drawing: emitters, or power in every cell and band.
pub(crate) enum DrawnGrid {
    Factored(Factors),
    Dense(Array3<f64>),
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
        grid: Option<Grid>,
        drawing: impl Drawing + 'static,
    ) -> Result<Self, EstimateError> {
        let grid = grid.ok_or_else(|| super::damaged("grid", "is missing"))?;
        Self::new(grid, archive.number("floor")?, drawing)
    }
}

impl Predictor for Gridded {
    fn kind(&self) -> &'static str {
        self.drawing.kind()
    }

    fn predict(
        &self,
        at: &[Site],
        bands: &[usize],
        progress: &Progress<'_>,
    ) -> Result<Prediction, EstimateError> {
        let mut spectrum = vec![0.0; self.map.bands()];
        let mut power = Array2::zeros((at.len(), bands.len()));
        for (i, site) in at.iter().enumerate() {
            if i % 4096 == 0 {
                progress.report(i, at.len())?;
            }
            self.map.spectrum_at(*site, self.floor, &mut spectrum);
            for (j, &band) in bands.iter().enumerate() {
                power[[i, j]] = spectrum[band];
            }
        }
        Ok(Prediction::of_power(power))
    }

    fn factors(
        &self,
        grid: Grid,
        _progress: &Progress<'_>,
    ) -> Result<Option<FactoredDrawing>, EstimateError> {
        let own = self.map.factors().filter(|_| grid.coincides(&self.grid));
        Ok(own.map(|factors| FactoredDrawing { factors: factors.clone(), spread_db: None }))
    }

    fn save(&self, archive: &mut Archive) {
        archive.put_number("floor", self.floor);
        self.drawing.save(archive);
    }
}
