//! A map that is taken part by part: drawn from a model, read from a file, or held in memory.

use std::ops::Range;

use ndarray::{Array3, s};
use portolan::{Frame, Grid, RadioMap, Site};

use crate::error::IoError;

/// What the levels of a map are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Quantity {
    /// Received power.
    #[default]
    Power,
    /// What received power differs by between two maps.
    Difference,
}

/// What is known of a map before any of it is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct MapAbout {
    /// What it is drawn on.
    pub grid: Grid,
    /// What its numbers mean.
    pub frame: Frame,
    /// Number of bands.
    pub bands: usize,
    /// Whether parts have a spread.
    pub spread: bool,
    /// Standard deviation of a reading's own noise in dB, per band.
    pub noise_db: Option<Vec<f64>>,
    /// Where the emitters stand; empty where unknown.
    pub emitters: Vec<Site>,
    /// What the levels are.
    pub quantity: Quantity,
}

impl MapAbout {
    /// dBm, or dB where there is no calibration.
    pub fn unit(&self) -> &'static str {
        match self.quantity {
            Quantity::Power => self.frame.scale.decibels(),
            Quantity::Difference => "dB",
        }
    }

    /// The name of the levels in files, and what they are in words.
    pub(crate) fn named(&self) -> (&'static str, &'static str) {
        match (self.quantity, self.unit()) {
            (Quantity::Difference, _) => ("difference_db", "difference of received power"),
            (Quantity::Power, "dBm") => ("power_dbm", "received power"),
            (Quantity::Power, _) => ("power_db", "received power without calibration"),
        }
    }

    /// The centre of the raster's column: x, from west to east.
    pub fn x_m(&self, column: usize) -> f64 {
        self.grid.site_at([column as f64, 0.0]).x_m
    }

    /// The centre of the raster's line: y, from north to south.
    pub fn y_m(&self, line: usize) -> f64 {
        self.grid.site_at([0.0, (self.grid.cols() - 1 - line) as f64]).y_m
    }
}

/// Some cells and bands of a map: rows x columns x bands.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Level in dBm or dB; NaN where nothing is known.
    pub level_db: Array3<f64>,
    /// Standard deviation of the field in dB.
    pub spread_db: Option<Array3<f64>>,
}

impl Part {
    /// From linear power; no power at all has no level.
    pub fn from_power(mut power: Array3<f64>, spread_db: Option<Array3<f64>>) -> Self {
        power.par_mapv_inplace(|x| if x > 0.0 { 10.0 * x.log10() } else { f64::NAN });
        Self { level_db: power, spread_db }
    }
}

/// A map that gives its parts in any order.
pub trait MapParts {
    /// What goes wrong: drawing, reading, or an interrupt.
    type Error: From<IoError>;

    /// What is known of the whole.
    fn about(&self) -> &MapAbout;

    /// The cells of some rows and columns of the grid (rows along x), in some bands.
    fn part(
        &mut self,
        rows: Range<usize>,
        cols: Range<usize>,
        bands: Range<usize>,
    ) -> Result<Part, Self::Error>;
}

/// A map in memory.
pub struct WholeMap<'a> {
    map: &'a RadioMap,
    about: MapAbout,
}

impl<'a> WholeMap<'a> {
    /// The parts of a map.
    pub fn new(map: &'a RadioMap) -> Self {
        let about = MapAbout {
            grid: map.grid(),
            frame: map.frame().clone(),
            bands: map.bands(),
            spread: map.spread_db().is_some(),
            noise_db: map.noise_db().map(<[f64]>::to_vec),
            emitters: map.emitters().to_vec(),
            quantity: Quantity::Power,
        };
        Self { map, about }
    }
}

impl MapParts for WholeMap<'_> {
    type Error = IoError;

    fn about(&self) -> &MapAbout {
        &self.about
    }

    fn part(
        &mut self,
        rows: Range<usize>,
        cols: Range<usize>,
        bands: Range<usize>,
    ) -> Result<Part, IoError> {
        let power = match self.map.factors() {
            None => {
                self.map.to_dense().slice(s![rows.clone(), cols.clone(), bands.clone()]).to_owned()
            }
            Some(factors) => {
                let mut power = Array3::zeros((rows.len(), cols.len(), bands.len()));
                for (slf, psd) in factors.slf.outer_iter().zip(factors.psd.outer_iter()) {
                    let loss = slf.slice(s![rows.clone(), cols.clone()]);
                    for (slot, band) in bands.clone().enumerate() {
                        power.slice_mut(s![.., .., slot]).scaled_add(psd[band], &loss);
                    }
                }
                power
            }
        };
        let spread = self.map.spread_db().map(|all| all.slice(s![rows, cols, bands]).to_owned());
        Ok(Part::from_power(power, spread))
    }
}
