//! From the arrays of a model to what predicts.

use super::interpolated::Interpolated;
use super::{Idw, Linear, Nearest, ThinPlate};
use super::{
    btd, combined, dgm, field, heights, idw, kriging, linear, naive_unn, nearest, thin_plate, unn,
};
use crate::error::EstimateError;
use crate::model::{Archive, Gridded, Predictor, Room, damaged};

/// The predictor of a kind from what it saved.
pub(crate) fn load(
    kind: &str,
    archive: &Archive,
    bands: usize,
    room: Room,
) -> Result<Box<dyn Predictor>, EstimateError> {
    Ok(match kind {
        nearest::KIND => Box::new(Interpolated::<Nearest>::load(archive, bands)?),
        idw::KIND => Box::new(Interpolated::<Idw>::load(archive, bands)?),
        linear::KIND => Box::new(Interpolated::<Linear>::load(archive, bands)?),
        thin_plate::KIND => Box::new(Interpolated::<ThinPlate>::load(archive, bands)?),
        kriging::KIND => Box::new(kriging::KrigedBands::load(archive, bands)?),
        combined::KIND => Box::new(combined::Combined::load(archive, bands, room)?),
        heights::KIND => Box::new(heights::Lifted::load(archive, bands, room)?),
        field::alone::KIND => Box::new(field::alone::BandsAlone::load(archive, bands)?),
        field::KIND => Box::new(field::EmitterFields::load(archive, bands)?),
        btd::KIND => {
            Box::new(Gridded::load(archive, room, btd::BlockTerms::load(archive, bands)?)?)
        }
        unn::KIND => {
            Box::new(Gridded::load(archive, room, unn::DecodedSlfs::load(archive, bands)?)?)
        }
        naive_unn::KIND => {
            Box::new(Gridded::load(archive, room, naive_unn::DecodedBands::load(archive, bands)?)?)
        }
        dgm::KIND => {
            Box::new(Gridded::load(archive, room, dgm::GeneratedSlfs::load(archive, bands)?)?)
        }
        _ => return Err(damaged("kind", "names no method of this program").into()),
    })
}
