//! A surface through readings, band group by band group: what the interpolators' models are.

use std::sync::OnceLock;

use ndarray::Array2;
use rayon::prelude::*;

use super::Saved;
use super::averaged::averaged;
use super::bands::{BandData, Domain, Group};
use crate::error::EstimateError;
use crate::gaussian_process::Neighbours;
use crate::model::{Archive, LeftOut, Model, Prediction, Predictor};
use crate::progress::Progress;
use crate::readings::Readings;
use crate::site::Site;

/// How values are carried from the sensors to other places.
pub(super) trait Surface: Clone + Send + Sync + Sized + 'static {
    /// What is worked out once for a group of bands.
    type State: Send + Sync;

    const KIND: &'static str;
    /// Whether places at several heights are told apart.
    const SEES_HEIGHTS: bool = true;

    fn prepare(&self, group: &Group) -> Result<Self::State, EstimateError>;

    /// Places that are evaluated together; by default blocks of what is asked for.
    fn cut(&self, _state: &Self::State, _group: &Group, at: &[Site]) -> Vec<Cut> {
        blocks(at.len())
    }

    /// Values at places in some bands of the group, places x bands; `out` is zero.
    fn evaluate(
        &self,
        state: &Self::State,
        bands: (&Group, &[usize]),
        near: Option<&[usize]>,
        at: &[Site],
        out: &mut [f64],
    ) -> Result<(), EstimateError>;

    /// Values at a group's sensors as the others predict them, where that needs no new fit.
    fn leave_one_out(&self, _state: &Self::State, _group: &Group) -> Option<Array2<f64>> {
        None
    }

    fn save(&self, archive: &mut Archive);

    fn load(archive: &Archive) -> Result<Self, EstimateError>;
}

/// Places in one block.
const BLOCK: usize = 256;
/// Blocks that are evaluated before any is scattered.
const BATCH: usize = 128;

/// Places evaluated together, and the sensors used for them; None = all.
pub(super) struct Cut {
    pub places: Vec<usize>,
    pub near: Option<Vec<usize>>,
}

/// So many places in blocks, one after the other.
pub(super) fn blocks(places: usize) -> Vec<Cut> {
    let block = |first: usize| (first..(first + BLOCK).min(places)).collect();
    (0..places).step_by(BLOCK).map(|first| Cut { places: block(first), near: None }).collect()
}

/// Places that look at the same nearest sensors.
pub(super) fn cut_by_neighbours(index: &Neighbours, at: &[Site], count: usize) -> Vec<Cut> {
    let groups = index.neighbourhoods(at, count, COARSE);
    groups.into_iter().map(|n| Cut { places: n.places, near: Some(n.sensors) }).collect()
}

/// Side of the square that shares a neighbourhood, over the reach of that neighbourhood.
pub(super) const COARSE: f64 = 0.25;

pub(super) fn local_note(count: usize) -> String {
    format!("used local neighbourhoods: the {count} nearest sensors of each small square")
}

/// A surface fitted to readings.
pub(super) struct Interpolated<S: Surface> {
    surface: S,
    data: BandData,
    /// Worked out when a group of bands is first asked for.
    states: Vec<OnceLock<S::State>>,
}

impl<S: Surface> Interpolated<S> {
    fn new(surface: S, data: BandData) -> Self {
        let states = data.groups.iter().map(|_| OnceLock::new()).collect();
        Self { surface, data, states }
    }

    fn state(&self, group: usize) -> Result<&S::State, EstimateError> {
        if let Some(state) = self.states[group].get() {
            return Ok(state);
        }
        let state = self.surface.prepare(&self.data.groups[group])?;
        Ok(self.states[group].get_or_init(|| state))
    }

    fn all_states(&self) -> Result<Vec<&S::State>, EstimateError> {
        (0..self.states.len()).map(|group| self.state(group)).collect()
    }

    pub fn fit(
        surface: S,
        domain: Domain,
        readings: &Readings,
        progress: &Progress<'_>,
    ) -> Result<Model, EstimateError> {
        progress.check()?;
        readings.check_enough()?;
        let flat = (!S::SEES_HEIGHTS && readings.has_heights()).then(|| readings.at_height(0.0));
        let flat = flat.as_ref().unwrap_or(readings);
        let joined = averaged(flat, S::KIND)?;
        let places = joined.as_ref().map_or(flat, |joined| &joined.readings);
        let fitted = Self::new(surface, BandData::new(places, domain));
        fitted.all_states()?;
        let mut model = Model::new(readings, fitted);
        model.report_mut().notes.extend(joined.map(|joined| joined.note));
        Ok(model)
    }

    /// Reads what [`Predictor::save`] wrote.
    pub fn boxed(saved: &Saved<'_>) -> Result<Box<dyn Predictor>, EstimateError> {
        let data = BandData::load(saved.archive, saved.bands)?;
        Ok(Box::new(Self::new(S::load(saved.archive)?, data)))
    }
}

impl<S: Surface> Predictor for Interpolated<S> {
    fn kind(&self) -> &'static str {
        S::KIND
    }

    fn sees_heights(&self) -> bool {
        S::SEES_HEIGHTS
    }

    fn predict(
        &self,
        at: &[Site],
        bands: &[usize],
        progress: &Progress<'_>,
    ) -> Result<Prediction, EstimateError> {
        let mut power = Array2::zeros((at.len(), bands.len()));
        let asked = self.data.asked(bands);
        let groups = self.data.groups.len();
        for (g, group) in self.data.groups.iter().enumerate() {
            if asked[g].is_empty() {
                continue;
            }
            let (state, width) = (self.state(g)?, asked[g].len());
            let own: Vec<usize> = asked[g].iter().map(|(k, _)| *k).collect();
            let cuts = self.surface.cut(state, group, at);
            let finished = std::sync::atomic::AtomicUsize::new(0);
            // Batch by batch: what waits to be scattered is small beside the whole.
            for batch in cuts.chunks(BATCH) {
                let filled: Vec<Vec<f64>> = batch
                    .par_iter()
                    .map(|cut| {
                        let n = 1 + finished.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        progress.report(g * cuts.len() + n, groups * cuts.len())?;
                        let sites: Vec<Site> = cut.places.iter().map(|&p| at[p]).collect();
                        let mut out = vec![0.0; sites.len() * width];
                        let near = cut.near.as_deref();
                        self.surface.evaluate(state, (group, &own), near, &sites, &mut out)?;
                        Ok(out)
                    })
                    .collect::<Result<_, EstimateError>>()?;
                for (cut, values) in batch.iter().zip(&filled) {
                    for (&place, spectrum) in cut.places.iter().zip(values.chunks(width)) {
                        for (&(_, out), value) in asked[g].iter().zip(spectrum) {
                            power[[place, out]] = self.data.power(*value);
                        }
                    }
                }
            }
        }
        Ok(Prediction::of_power(power))
    }

    fn leave_one_out(&self, sensors: &[Site]) -> Result<Option<LeftOut>, EstimateError> {
        let groups = self.data.groups.iter().zip(self.all_states()?);
        let values: Option<Vec<Array2<f64>>> =
            groups.map(|(group, state)| self.surface.leave_one_out(state, group)).collect();
        Ok(values.map(|values| {
            let power = self.data.at_rows(sensors, &values).mapv(|value| match value.is_nan() {
                true => value,
                false => self.data.power(value),
            });
            LeftOut { power, reading_spread_db: None }
        }))
    }

    fn update(&self, readings: &Readings) -> Result<Option<Box<dyn Predictor>>, EstimateError> {
        let data = match S::SEES_HEIGHTS {
            true => self.data.with(readings, false)?,
            // All places are at one height.
            false => {
                self.data.with(&readings.at_height(self.data.groups[0].sites[0].z_m), false)?
            }
        };
        Ok(Some(Box::new(Self::new(self.surface.clone(), data))))
    }

    fn save(&self, archive: &mut Archive) {
        self.data.save(archive);
        self.surface.save(archive);
    }
}
