//! Several readings at one place, and readings moved to the cells of a grid.

use std::collections::HashMap;

use ndarray::Array2;

use super::{NotHeard, Readings, Values, check_sites};
use crate::error::InputError;
use crate::grid::Grid;
use crate::quantiser::MISSING_LEVEL;
use crate::scale::Scale;
use crate::site::Site;

impl Readings {
    /// As [`Readings::new`], but sensors at one place become one, which knows how often each of
    /// its bands was read: powers are averaged in dB (in power where the scale is relative),
    /// levels as numbers. Returns how many sensors were merged away.
    ///
    /// ```
    /// use ndarray::array;
    /// use portolan::{Readings, Scale, Site, Values};
    /// let sites = vec![Site::new(0.0, 0.0), Site::new(3.5, 1.25), Site::new(0.0, 0.0)];
    /// let power = array![[1e-6], [5e-7], [1e-8]];
    /// let (readings, away) = Readings::merged(sites, Values::Power(power), Scale::Absolute)?;
    /// assert_eq!((readings.sensors(), away), (2, 1));
    /// // -60 and -80 dBm are -70 dBm.
    /// assert!((readings.power()[[0, 0]] / 1e-7 - 1.0).abs() < 1e-12);
    /// # Ok::<(), portolan::InputError>(())
    /// ```
    pub fn merged(
        sites: Vec<Site>,
        values: Values,
        scale: Scale,
    ) -> Result<(Self, usize), InputError> {
        check_sites(&sites)?;
        let sensors = sites.len();
        if values.dim().0 != sensors {
            return Ok((Self::new(sites, values, scale)?, 0));
        }
        let apart = Self::checked(sites, values, scale)?;
        let groups = apart.groups_by(|sensor| apart.sites[sensor].bits());
        if groups.len() == sensors {
            return Ok((apart, 0));
        }
        let away = sensors - groups.len();
        Ok((apart.joined(&groups, |first| apart.sites[first])?, away))
    }

    /// The readings as a grid sees them: every sensor at the centre of its cell, those of one cell
    /// merged. For methods that live on a grid.
    pub fn on_grid(&self, grid: Grid) -> Result<Self, InputError> {
        let cells = self.cells(grid)?;
        let centre = |sensor: usize| grid.site(cells[sensor]);
        let groups = self.groups_by(|sensor| grid.index(cells[sensor]));
        let moved = self.joined(&groups, centre)?;
        Ok(Self { grid: Some(grid), ..moved })
    }

    /// Sensors with the same key, in order of the first of each.
    fn groups_by<K: std::hash::Hash + Eq>(&self, key: impl Fn(usize) -> K) -> Vec<Vec<usize>> {
        let mut slot = HashMap::new();
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for sensor in 0..self.sensors() {
            let at = *slot.entry(key(sensor)).or_insert_with(|| {
                groups.push(Vec::new());
                groups.len() - 1
            });
            groups[at].push(sensor);
        }
        groups
    }

    fn joined(
        &self,
        groups: &[Vec<usize>],
        site: impl Fn(usize) -> Site,
    ) -> Result<Self, InputError> {
        let (count, bands) = (groups.len(), self.bands());
        if count < 2 {
            return Err(InputError::TooFewSensors { found: count });
        }
        let weight = |s: usize, k: usize| self.repeats.as_ref().map_or(1.0, |r| r[[s, k]]);
        let mut repeats = Array2::<f64>::zeros((count, bands));
        let mut variance = Array2::<f64>::zeros((count, bands));
        let there = |s: usize, k: usize| match &self.values {
            Values::Power(power) => !power[[s, k]].is_nan(),
            Values::Levels { levels, .. } => levels[[s, k]] != MISSING_LEVEL,
        };
        for (g, group) in groups.iter().enumerate() {
            for k in 0..bands {
                let read: Vec<usize> = group.iter().copied().filter(|&s| there(s, k)).collect();
                for &s in &read {
                    repeats[[g, k]] += weight(s, k);
                    let sd = self.noise_db.as_ref().map_or(0.0, |n| n[[s, k]]);
                    variance[[g, k]] += sd * sd / (read.len() * read.len()) as f64;
                }
            }
        }
        let mean = |value: &dyn Fn(usize, usize) -> f64, scale: Scale| {
            Array2::from_shape_fn((count, bands), |(g, k)| {
                let mut read = groups[g].iter().filter(|&&s| there(s, k)).map(|&s| value(s, k));
                match (read.clone().count(), read.next()) {
                    // One reading stays what it is, to the last bit.
                    (1, Some(only)) => only,
                    _ => {
                        scale.mean(groups[g].iter().filter(|&&s| there(s, k)).map(|&s| value(s, k)))
                    }
                }
            })
        };
        let values = match &self.values {
            Values::Power(power) => Values::Power(mean(&|s, k| power[[s, k]], self.scale)),
            Values::Levels { levels, quantiser } => {
                // Levels are numbers: their mean is the plain one.
                let means = mean(&|s, k| f64::from(levels[[s, k]]), Scale::paper());
                let level = |v: f64| if v.is_nan() { MISSING_LEVEL } else { v.round() as u8 };
                Values::Levels { levels: means.mapv(level), quantiser: quantiser.clone() }
            }
        };
        let sites = groups.iter().map(|group| site(group[0])).collect();
        let fresh = Self::checked(sites, values, self.scale)?;
        let silent = |n: &NotHeard| NotHeard {
            // Heard once is heard.
            entries: Array2::from_shape_fn((count, bands), |(g, k)| {
                repeats[[g, k]] == 0.0 && groups[g].iter().any(|&s| n.entries[[s, k]])
            }),
            floor: n.floor.clone(),
        };
        let times = |t: &Vec<f64>| {
            let mean =
                |group: &Vec<usize>| group.iter().map(|&s| t[s]).sum::<f64>() / group.len() as f64;
            groups.iter().map(mean).collect()
        };
        let repeated = self.repeats.is_some() || groups.iter().any(|group| group.len() > 1);
        Ok(Self {
            crs: self.crs,
            labels: self.labels.clone(),
            grid: self.grid,
            not_heard: self.not_heard.as_ref().map(silent),
            noise_db: self.noise_db.as_ref().map(|_| variance.mapv(f64::sqrt)),
            time_s: self.time_s.as_ref().map(times),
            devices: self.devices.clone(),
            repeats: repeated.then_some(repeats),
            ..fresh
        })
    }
}
