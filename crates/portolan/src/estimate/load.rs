//! From the arrays of a model to what predicts.

use super::interpolated::Interpolated;
use super::{btd, dgm, field, idw, kriging, linear, naive_unn, nearest, thin_plate, unn};
use crate::error::EstimateError;
use crate::grid::Grid;
use crate::model::{Archive, Gridded, Predictor, damaged};

/// The predictor of a kind from what it saved.
pub(crate) fn load(
    kind: &str,
    archive: &Archive,
    grid: Option<Grid>,
    bands: usize,
) -> Result<Box<dyn Predictor>, EstimateError> {
    Ok(match kind {
        nearest::KIND => Box::new(Interpolated::<nearest::Surface>::load(archive, bands)?),
        idw::KIND => Box::new(Interpolated::<idw::Surface>::load(archive, bands)?),
        linear::KIND => Box::new(Interpolated::<linear::Surface>::load(archive, bands)?),
        thin_plate::KIND => Box::new(Interpolated::<thin_plate::Surface>::load(archive, bands)?),
        kriging::KIND => Box::new(kriging::KrigedBands::load(archive, bands)?),
        field::KIND => Box::new(field::EmitterFields::load(archive, bands)?),
        btd::KIND => {
            Box::new(Gridded::load(archive, grid, btd::BlockTerms::load(archive, bands)?)?)
        }
        unn::KIND => {
            Box::new(Gridded::load(archive, grid, unn::DecodedSlfs::load(archive, bands)?)?)
        }
        naive_unn::KIND => {
            Box::new(Gridded::load(archive, grid, naive_unn::DecodedBands::load(archive, bands)?)?)
        }
        dgm::KIND => {
            Box::new(Gridded::load(archive, grid, dgm::GeneratedSlfs::load(archive, bands)?)?)
        }
        _ => return Err(damaged("kind", "names no method of this program").into()),
    })
}
