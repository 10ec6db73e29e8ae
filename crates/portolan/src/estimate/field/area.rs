//! The survey as the search for emitters sees it: where they may stand, and how finely places can
//! be told apart.

use crate::readings::Readings;
use crate::simulate::REFERENCE_DISTANCE_M;
use crate::site::{Region, extent_m};

/// Where emitters may stand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Area {
    pub region: Region,
    /// The length that sensors can resolve: a cell of the survey's grid, or a third of the mean
    /// distance between sensors.
    pub resolution_m: f64,
    /// The diagonal of the survey, whichever way it is turned.
    pub extent_m: f64,
}

impl Area {
    pub fn of(readings: &Readings) -> Self {
        let region = readings.region();
        let extent_m = extent_m(readings.sites());
        let resolution_m = match readings.grid() {
            Some(grid) => grid.cell_m(),
            None => 0.316 * extent_m / (2.0 * readings.sensors() as f64).sqrt(),
        };
        Self { region, resolution_m: resolution_m.max(f64::MIN_POSITIVE), extent_m }
    }

    /// Distance within which there is no path loss: closer, nobody can tell distances apart.
    pub fn reference_m(&self) -> f64 {
        REFERENCE_DISTANCE_M.max(0.5 * self.resolution_m)
    }

    /// The longer side of the region.
    pub fn longest_m(&self) -> f64 {
        self.region.width_m().max(self.region.height_m()).max(f64::MIN_POSITIVE)
    }
}
