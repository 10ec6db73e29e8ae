//! Surfaces whose value at a place is a weighted mean of some sensors' readings: what `nearest`,
//! `idw` and `linear` share.

use super::bands::Group;
use super::interpolated::Surface;
use crate::error::EstimateError;
use crate::model::Archive;
use crate::site::Site;

/// Which sensors count at a place, and how much.
pub(super) trait WeightedMean: Clone + Send + Sync + Sized + 'static {
    /// What finds the sensors of a place.
    type Index: Send + Sync;

    const KIND: &'static str;
    /// Whether places at several heights are told apart.
    const SEES_HEIGHTS: bool = true;

    fn index(sites: &[Site]) -> Self::Index;

    /// Fills `near` with sensors and their weights, which sum to 1.
    fn weigh(&self, index: &Self::Index, sites: &[Site], at: Site, near: &mut Near);

    fn save(&self, _archive: &mut Archive) {}

    /// What was saved. The domain is kept with the readings.
    fn load(archive: &Archive) -> Result<Self, EstimateError>;
}

/// Sensors that count at a place, and room to find them.
#[derive(Default)]
pub(super) struct Near {
    /// Distances and sensors, as [`Neighbours::nearest`](crate::gaussian_process::Neighbours) gives
    /// them.
    pub found: Vec<(f64, usize)>,
    /// Sensors and weights.
    pub weights: Vec<(usize, f64)>,
}

impl<M: WeightedMean> Surface for M {
    type State = M::Index;

    const KIND: &'static str = M::KIND;
    const SEES_HEIGHTS: bool = M::SEES_HEIGHTS;

    fn prepare(&self, group: &Group) -> Result<M::Index, EstimateError> {
        Ok(M::index(&group.sites))
    }

    fn evaluate(
        &self,
        index: &M::Index,
        (group, bands): (&Group, &[usize]),
        _near: Option<&[usize]>,
        at: &[Site],
        out: &mut [f64],
    ) -> Result<(), EstimateError> {
        let mut near = Near::default();
        for (site, spectrum) in at.iter().zip(out.chunks_mut(bands.len())) {
            near.weights.clear();
            self.weigh(index, &group.sites, *site, &mut near);
            for &(sensor, weight) in &near.weights {
                let values = group.values.row(sensor);
                spectrum.iter_mut().zip(bands).for_each(|(s, k)| *s += weight * values[*k]);
            }
        }
        Ok(())
    }

    fn save(&self, archive: &mut Archive) {
        WeightedMean::save(self, archive);
    }

    fn load(archive: &Archive) -> Result<Self, EstimateError> {
        WeightedMean::load(archive)
    }
}
