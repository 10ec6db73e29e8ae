//! Floors between a transmitter and a place: the slabs that lie between their heights. The first one
//! takes more than the next (ITU-R P.1238).

use ndarray::Array2;

use super::{Between, LossColumn};
use crate::error::InputError;
use crate::model::{Archive, damaged};
use crate::site::Site;

pub(super) const KIND: &str = "floors";
/// Heights on a slab may lie this share of a floor below it.
const ROUNDING: f64 = 1e-6;

/// Floors of a building, evenly spaced. Heights count from the lowest slab: floor k reaches from k times
/// the height of a floor to (k + 1) times, basements below 0. Devices on one floor have no slab between
/// them, whichever their heights above it.
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
    /// So many metres from slab to slab.
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

    /// The number of the floor that a place is on, by the rule of floors in plans.
    fn floor(&self, at: Site) -> f64 {
        (at.z_m / self.height_m + ROUNDING).floor()
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
        let floors = |site: &Site| (self.floor(*site) - self.floor(transmitter)).abs();
        Array2::from_shape_fn((at.len(), 2), |(i, column)| match column {
            0 => floors(&at[i]),
            _ => floors(&at[i]).min(1.0),
        })
    }

    fn floor_height_m(&self) -> Option<f64> {
        Some(self.height_m)
    }

    fn save(&self, archive: &mut Archive) {
        archive.put_number("height_m", self.height_m);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slabs_between_two_heights_are_counted() {
        let floors = Floors::new(3.0).unwrap();
        let up = |z_m: f64| Site::new(0.0, 0.0).at_height(z_m);
        for (a, b, slabs) in [
            // An access point under the ceiling and a phone in the hand, on one floor.
            (2.8, 1.0, 0.0f64),
            // The same access point and a phone one floor up.
            (2.8, 4.0, 1.0),
            (1.0, 2.9, 0.0),
            (1.0, 7.2, 2.0),
            (-1.0, 1.0, 1.0),
            // A device on the slab itself, rounding or not.
            (3.0 * (0.1 + 0.2) / 0.3 - 1e-9, 4.0, 0.0),
        ] {
            for (from, to) in [(a, b), (b, a)] {
                let found = floors.between(up(from), &[up(to)]);
                assert_eq!(found, ndarray::array![[slabs, slabs.min(1.0)]], "{from} {to}");
            }
        }
    }
}
