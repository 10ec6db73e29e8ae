//! Several rows at one place made one, and readings moved to the cells of a grid.

use ndarray::Array2;

use super::{NotHeard, Readings, Values};
use crate::error::InputError;
use crate::grid::Grid;
use crate::points::Points;
use crate::quantiser::MISSING_LEVEL;
use crate::scale::Scale;
use crate::site::{Site, by_place, grouped};

impl Readings {
    /// Number of different places.
    ///
    /// ```
    /// use ndarray::array;
    /// use portolan::{Readings, Scale, Site, Values};
    /// let sites = vec![Site::new(0.0, 0.0), Site::new(3.5, 1.25), Site::new(0.0, 0.0)];
    /// let power = Values::Power(array![[1e-6], [5e-7], [1e-8]]);
    /// let readings = Readings::new(sites, power, Scale::Absolute)?;
    /// assert_eq!((readings.sensors(), readings.places()), (3, 2));
    /// # Ok::<(), portolan::InputError>(())
    /// ```
    pub fn places(&self) -> usize {
        self.points.places()
    }

    /// The readings with one row for every place, and how many rows were averaged away; None where
    /// every row has a place of its own. For methods that have no model of noise: they cannot pass
    /// through two readings of one place.
    ///
    /// Powers are averaged in dB (in power where the scale is relative), levels as numbers; an entry
    /// that was read several times counts as many times. A row knows how often each of its bands was
    /// read; a stated noise becomes that of the mean.
    ///
    /// ```
    /// use ndarray::array;
    /// use portolan::{Readings, Scale, Site, Values};
    /// let sites = vec![Site::new(0.0, 0.0), Site::new(3.5, 1.25), Site::new(0.0, 0.0)];
    /// let power = Values::Power(array![[1e-6], [5e-7], [1e-8]]);
    /// let readings = Readings::new(sites, power, Scale::Absolute)?;
    /// let (joined, averaged) = readings.joined_places()?.expect("two rows share a place");
    /// assert_eq!((joined.sensors(), averaged), (2, 1));
    /// // -60 and -80 dBm are -70 dBm.
    /// assert!((joined.power()[[0, 0]] / 1e-7 - 1.0).abs() < 1e-12);
    /// assert_eq!(joined.joined_places()?, None);
    /// # Ok::<(), portolan::InputError>(())
    /// ```
    ///
    /// # Errors
    /// If all rows are at one place.
    pub fn joined_places(&self) -> Result<Option<(Self, usize)>, InputError> {
        let places = self.places();
        if places == self.sensors() {
            return Ok(None);
        }
        let joined = self.joined(&by_place(self.sites()), |first| self.sites()[first], true)?;
        Ok(Some((joined, self.sensors() - places)))
    }

    /// The readings as a grid sees them: every sensor at the centre of its cell, those of one cell
    /// merged. For methods that live on a grid.
    pub fn on_grid(&self, grid: Grid) -> Result<Self, InputError> {
        let cells = self.cells(grid)?;
        let centre = |sensor: usize| grid.site(cells[sensor]);
        let groups = grouped(self.sensors(), |sensor| grid.index(cells[sensor]));
        let moved = self.joined(&groups, centre, false)?;
        Ok(Self { grid: Some(grid), ..moved })
    }

    /// One row for every group. Entries weigh as often as they were read where that is `counted`.
    fn joined(
        &self,
        groups: &[Vec<usize>],
        site: impl Fn(usize) -> Site,
        counted: bool,
    ) -> Result<Self, InputError> {
        let (count, bands) = (groups.len(), self.bands());
        if count < 2 {
            return Err(InputError::TooFewSensors { found: count });
        }
        let often = |s: usize, k: usize| self.repeats.as_ref().map_or(1.0, |r| r[[s, k]]);
        let weight = |s: usize, k: usize| if counted { often(s, k) } else { 1.0 };
        let mut repeats = Array2::<f64>::zeros((count, bands));
        let mut variance = Array2::<f64>::zeros((count, bands));
        let there = |s: usize, k: usize| match &self.values {
            Values::Power(power) => !power[[s, k]].is_nan(),
            Values::Levels { levels, .. } => levels[[s, k]] != MISSING_LEVEL,
        };
        for (g, group) in groups.iter().enumerate() {
            for k in 0..bands {
                let read: Vec<usize> = group.iter().copied().filter(|&s| there(s, k)).collect();
                let total: f64 = read.iter().map(|&s| weight(s, k)).sum();
                for &s in &read {
                    repeats[[g, k]] += often(s, k);
                    let sd = self.noise_db.as_ref().map_or(0.0, |n| n[[s, k]]);
                    variance[[g, k]] += sd * sd * weight(s, k).powi(2) / (total * total);
                }
            }
        }
        let mean = |value: &dyn Fn(usize, usize) -> f64, scale: Scale| {
            Array2::from_shape_fn((count, bands), |(g, k)| {
                let read = groups[g].iter().filter(|&&s| there(s, k));
                let mut read = read.map(|&s| (value(s, k), weight(s, k)));
                match (read.clone().count(), read.clone().next()) {
                    // One reading stays what it is, to the last bit.
                    (1, Some((only, _))) => only,
                    _ => scale.mean(&mut read),
                }
            })
        };
        let values = match &self.values {
            Values::Power(power) => Values::Power(mean(&|s, k| power[[s, k]], self.frame.scale)),
            Values::Levels { levels, quantiser } => {
                // Levels are numbers: their mean is the plain one.
                let means = mean(&|s, k| f64::from(levels[[s, k]]), Scale::paper());
                let level = |v: f64| if v.is_nan() { MISSING_LEVEL } else { v.round() as u8 };
                Values::Levels { levels: means.mapv(level), quantiser: quantiser.clone() }
            }
        };
        let times = |t: &[f64]| {
            let mean =
                |group: &Vec<usize>| group.iter().map(|&s| t[s]).sum::<f64>() / group.len() as f64;
            groups.iter().map(mean).collect()
        };
        let sites: Vec<Site> = groups.iter().map(|group| site(group[0])).collect();
        let points = Points::from(sites).with_time_s(self.time_s().map(times))?;
        let fresh = Self::checked(points, values, self.frame.scale, self.further)?;
        let silent = |n: &NotHeard| NotHeard {
            // Heard once is heard.
            entries: Array2::from_shape_fn((count, bands), |(g, k)| {
                repeats[[g, k]] == 0.0 && groups[g].iter().any(|&s| n.entries[[s, k]])
            }),
            floor: n.floor.clone(),
            below: n.below.as_ref().map(|below| {
                let most = |group: &Vec<usize>| group.iter().map(|&s| below[s]).fold(0.0, f64::max);
                groups.iter().map(most).collect()
            }),
        };
        let repeated = self.repeats.is_some() || groups.iter().any(|group| group.len() > 1);
        Ok(Self {
            lifted: self.lifted,
            frame: self.frame.clone(),
            grid: self.grid,
            not_heard: self.not_heard.as_ref().map(silent),
            noise_db: self.noise_db.as_ref().map(|_| variance.mapv(f64::sqrt)),
            devices: self.devices.clone(),
            repeats: repeated.then_some(repeats),
            ..fresh
        })
    }
}
