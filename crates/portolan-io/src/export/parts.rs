//! Maps that go to a file part by part, with progress and Ctrl-C.

use std::ops::Range;

use ndarray::{Array2, Array3};
use portolan::{EstimateError, Frame, Grid, InputError, Model, Progress, Site};

use crate::error::IoError;
use crate::gis::{MapAbout, MapParts, Part, Quantity, chosen_bands};

/// What goes wrong while a map is drawn and written at once.
#[derive(Debug, thiserror::Error)]
pub enum PartFailure {
    /// The model could not be asked, or the user stopped it.
    #[error(transparent)]
    Draw(EstimateError),
    /// The file could not be written.
    #[error(transparent)]
    File(IoError),
}

impl From<EstimateError> for PartFailure {
    fn from(error: EstimateError) -> Self {
        PartFailure::Draw(error)
    }
}

impl From<InputError> for PartFailure {
    fn from(error: InputError) -> Self {
        PartFailure::Draw(error.into())
    }
}

impl From<IoError> for PartFailure {
    fn from(error: IoError) -> Self {
        PartFailure::File(error)
    }
}

/// How much of a map is done.
struct Share {
    done: f64,
    total: f64,
}

impl Share {
    fn of(about: &MapAbout) -> Self {
        Self { done: 0.0, total: about.grid.cells() as f64 * about.bands as f64 }
    }

    /// The share of the next so many entries.
    fn next(&mut self, entries: usize) -> Range<f64> {
        let start = self.done;
        self.done = (self.done + entries as f64 / self.total.max(1.0)).min(1.0);
        start..self.done
    }
}

/// A map that a model draws.
pub struct ModelParts<'a> {
    model: &'a Model,
    bands: &'a [usize],
    about: MapAbout,
    progress: &'a Progress<'a>,
    share: Share,
    /// The greatest power so far.
    pub loudest: f64,
}

impl<'a> ModelParts<'a> {
    /// The map of some bands on a grid.
    pub fn new(
        model: &'a Model,
        grid: Grid,
        bands: &'a [usize],
        progress: &'a Progress<'a>,
    ) -> Result<Self, EstimateError> {
        let frame = chosen_bands(model.frame(), bands, model.bands())?;
        let about = about_model(model, grid, frame, bands);
        Ok(Self { model, bands, share: Share::of(&about), about, progress, loudest: 0.0 })
    }
}

/// What is known of a model's map before it is drawn.
pub(crate) fn about_model(model: &Model, grid: Grid, frame: Frame, bands: &[usize]) -> MapAbout {
    MapAbout {
        grid,
        frame,
        bands: bands.len(),
        spread: model.gives_spread(),
        noise_db: model.noise_db().map(|all| bands.iter().map(|&b| all[b]).collect()),
        emitters: model.emitters().iter().filter_map(|e| Some(e.in_bands(bands)?.at)).collect(),
        quantity: Quantity::Power,
    }
}

impl MapParts for ModelParts<'_> {
    type Error = PartFailure;

    fn about(&self) -> &MapAbout {
        &self.about
    }

    fn part(
        &mut self,
        rows: Range<usize>,
        cols: Range<usize>,
        bands: Range<usize>,
    ) -> Result<Part, PartFailure> {
        let grid = self.about.grid;
        let shape = (rows.len(), cols.len(), bands.len());
        let row = |row: usize| cols.clone().map(move |col| grid.site_at([row as f64, col as f64]));
        let sites: Vec<Site> = rows.flat_map(row).collect();
        let progress = self.progress.part(self.share.next(shape.0 * shape.1 * shape.2));
        let found = self.model.predict_bands(&sites, &self.bands[bands], &progress)?;
        let cube = |values: Array2<f64>| -> Array3<f64> {
            values.into_shape_with_order(shape).expect("every cell of the part was asked for")
        };
        self.loudest = found.power.iter().copied().fold(self.loudest, f64::max);
        Ok(Part::from_power(cube(found.power), found.spread_db.map(cube)))
    }
}

/// A map from a file, under a bar.
pub struct WatchedParts<'a, P> {
    parts: P,
    progress: &'a Progress<'a>,
    share: Share,
}

impl<'a, P: MapParts> WatchedParts<'a, P> {
    /// Parts whose share of the whole is told.
    pub fn new(parts: P, progress: &'a Progress<'a>) -> Self {
        Self { share: Share::of(parts.about()), parts, progress }
    }
}

impl<P: MapParts<Error = IoError>> MapParts for WatchedParts<'_, P> {
    type Error = PartFailure;

    fn about(&self) -> &MapAbout {
        self.parts.about()
    }

    fn part(
        &mut self,
        rows: Range<usize>,
        cols: Range<usize>,
        bands: Range<usize>,
    ) -> Result<Part, PartFailure> {
        let entries = rows.len() * cols.len() * bands.len();
        let part = self.parts.part(rows, cols, bands)?;
        self.progress.part(self.share.next(entries)).report(1, 1)?;
        Ok(part)
    }
}
