//! Parts that methods with a decoder or on a grid share, for methods of other crates: options, the
//! emitters that a fit begins with, and the model that it ends with.

pub use super::bands::OFFSET;
pub use super::btd::{gridded_model, unit_norm};
pub use super::emitters::{number_of_emitters, shown as shown_emitters, unmix_readings};
pub use super::options::TOLERANCE;
pub use super::unn::{DECODER_OPTIONS, load_shape, random_psd, save_shape, shape_from_options};
pub use crate::unmix::Unmixed;
