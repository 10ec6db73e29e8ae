//! Where a simulated survey stands: its sensors, and the places at which error bars are tried.

use std::f64::consts::TAU;

use portolan::Site;
use rand::seq::index::sample;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Side of the square that holds the sensors, in metres.
pub const SIDE_M: f64 = 100.0;

/// Distances in metres between which the nearest sensor of a place lies.
pub const BINS: [(f64, f64); 6] =
    [(0.0, 1.0), (1.0, 3.0), (3.0, 10.0), (10.0, 30.0), (30.0, 100.0), (100.0, 250.0)];

/// New places in the square, places of each bin, and sensors that read again.
const NEW: usize = 24;
const OF_BIN: usize = 6;
const AGAIN: usize = 12;

/// After so many places that lie in another bin, a bin is left with those that were found.
const TRIES: usize = 2000;

/// Purposes of a survey's random numbers; bands have streams of their own from `BAND` on.
const SENSORS: u64 = 0;
const PLACES: u64 = 1;
const BY_DISTANCE: u64 = 2;
const REPEATED: u64 = 3;
pub const BAND: u64 = 16;

/// An independent stream of random numbers for each purpose.
pub fn stream(seed: u64, purpose: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(purpose);
    rng
}

/// The places of one survey.
pub struct Design {
    pub sensors: Vec<Site>,
    /// Uniform in the square.
    pub new: Vec<Site>,
    /// By distance to the nearest sensor: one list for each of [`BINS`], perhaps short or empty.
    pub bins: Vec<Vec<Site>>,
    /// Sensors that read a second time.
    pub again: Vec<usize>,
}

impl Design {
    pub fn draw(sensors: usize, seed: u64) -> Self {
        let mut rng = stream(seed, SENSORS);
        let sensors: Vec<Site> = (0..sensors).map(|_| anywhere(&mut rng)).collect();
        let mut rng = stream(seed, PLACES);
        let new = (0..NEW).map(|_| anywhere(&mut rng)).collect();
        let mut rng = stream(seed, BY_DISTANCE);
        let bins = BINS.iter().map(|&bin| by_distance(&sensors, bin, &mut rng)).collect();
        let count = AGAIN.min(sensors.len());
        let again = sample(&mut stream(seed, REPEATED), sensors.len(), count).into_vec();
        Self { sensors, new, bins, again }
    }

    /// The places without a reading: new ones, then those by distance.
    pub fn places(&self) -> impl Iterator<Item = Site> {
        self.new.iter().chain(self.bins.iter().flatten()).copied()
    }

    /// Everything that a method is asked for: [`Design::places`], then sensors that read again.
    pub fn asked(&self) -> Vec<Site> {
        self.places().chain(self.again.iter().map(|&sensor| self.sensors[sensor])).collect()
    }
}

fn anywhere(rng: &mut ChaCha8Rng) -> Site {
    let x = rng.random_range(0.0..SIDE_M);
    Site::new(x, rng.random_range(0.0..SIDE_M))
}

/// Places whose nearest sensor lies between two distances, in the square or outside.
fn by_distance(sensors: &[Site], (from, to): (f64, f64), rng: &mut ChaCha8Rng) -> Vec<Site> {
    let mut found = Vec::with_capacity(OF_BIN);
    for _ in 0..TRIES {
        if found.len() == OF_BIN {
            break;
        }
        let Site { x_m, y_m, .. } = sensors[rng.random_range(0..sensors.len())];
        let angle = rng.random_range(0.0..TAU);
        let distance = rng.random_range(from..to);
        let place = Site::new(x_m + distance * angle.cos(), y_m + distance * angle.sin());
        if (from..to).contains(&nearest_m(place, sensors)) {
            found.push(place);
        }
    }
    found
}

fn nearest_m(place: Site, sensors: &[Site]) -> f64 {
    sensors.iter().map(|&sensor| place.distance_m(sensor)).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_lie_in_their_bins_and_few_sensors_are_the_first_of_many() {
        for seed in 0..4 {
            let (few, many) = (Design::draw(30, seed), Design::draw(300, seed));
            assert_eq!(few.sensors, many.sensors[..30]);
            assert_eq!((few.new.len(), few.again.len()), (NEW, AGAIN));
            for design in [few, many] {
                for ((from, to), places) in BINS.iter().zip(&design.bins) {
                    assert_eq!(places.len(), OF_BIN, "{from} to {to} m");
                    let near = |p: &Site| nearest_m(*p, &design.sensors);
                    assert!(places.iter().map(near).all(|d| (*from..*to).contains(&d)));
                }
            }
        }
    }
}
