//! Floors between a transmitter and a place. The first one takes more than the next (ITU-R P.1238).

use ndarray::Array2;

use super::{Between, LossColumn};
use crate::error::InputError;
use crate::model::{Archive, damaged};
use crate::site::Site;

pub(super) const KIND: &str = "floors";

/// Floors of a building, evenly spaced.
///
/// ```
/// use portolan::Site;
/// use portolan::between::{Between, Floors};
/// let floors = Floors::new(3.0)?;
/// let at = [Site::new(4.0, 0.0).at_height(1.5), Site::new(4.0, 0.0).at_height(7.2)];
/// let crossed = floors.between(Site::new(0.0, 0.0).at_height(1.0), &at);
/// assert_eq!(crossed, ndarray::array![[0.0, 0.0], [2.0, 1.0]]);
/// # Ok::<(), portolan::InputError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Floors {
    height_m: f64,
}

impl Floors {
    /// So many metres from floor to floor.
    pub fn new(height_m: f64) -> Result<Self, InputError> {
        if !(height_m.is_finite() && height_m > 0.0) {
            return Err(InputError::Request(format!(
                "a floor of {height_m} m: the height of a floor is above 0"
            )));
        }
        Ok(Self { height_m })
    }

    /// Metres from floor to floor.
    pub fn height_m(&self) -> f64 {
        self.height_m
    }

    pub(super) fn load(archive: &Archive) -> Result<Self, InputError> {
        Self::new(archive.number("height_m")?).map_err(|_| damaged("height_m", "is not a height"))
    }
}

impl Between for Floors {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn columns(&self) -> Vec<LossColumn> {
        vec![LossColumn::new("floors", 20.0), LossColumn::new("any floor", 20.0)]
    }

    fn between(&self, transmitter: Site, at: &[Site]) -> Array2<f64> {
        let floors = |site: &Site| ((site.z_m - transmitter.z_m) / self.height_m).abs().round();
        Array2::from_shape_fn((at.len(), 2), |(i, column)| match column {
            0 => floors(&at[i]),
            _ => floors(&at[i]).min(1.0),
        })
    }

    fn save(&self, archive: &mut Archive) {
        archive.put_number("height_m", self.height_m);
    }
}
