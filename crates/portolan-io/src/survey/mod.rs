//! Surveys as people make them: logs of frames, sweeps without a position, tracks. All of them become sightings (a level of a band at a place), and sightings become
//! readings.

mod clock;
mod devices;
mod sightings;
mod sweep;
mod track;

pub(crate) use clock::TimeColumn;
pub use clock::{Clock, MomentFormat};
pub(crate) use devices::DeviceNames;
pub(crate) use sightings::{BandKind, MOST_ENTRIES, Sighting, Sightings, channel_hz, gather};
pub(crate) use sweep::{is_sweep, read_sweeps};
