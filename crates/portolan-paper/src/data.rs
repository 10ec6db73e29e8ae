//! Measurements of others: an office floor (Wi-Fi survey at Mannheim University) and a part of a
//! ray-traced city, as the experiments use them.

use std::path::Path;

use portolan::{RadioMap, Readings};
use portolan_io::{mannheim, radiogat};

use crate::error::ReproduceError;
use crate::experiments::Size;

/// What the folder holds and where it comes from.
pub const WHERE: &str = "mannheim/ (offline.final.trace.zip and online.final.trace.txt.gz of \
    CRAWDAD mannheim/compass, IEEE DataPort, doi 10.15783/c7js3p) and radiogat/ \
    (receivedpower_*.mat of github.com/Lxj321/RadioGAT-Multi-band-Radiomap-Reconstruction)";

/// What is there of the real data.
#[derive(Clone, Debug, Default)]
pub struct Data {
    pub floor: Option<Floor>,
    pub city: Option<City>,
}

/// The survey of the floor: medians per place and band.
#[derive(Clone, Debug)]
pub struct Floor {
    /// Every measured cell, in linear power (mW).
    pub survey: Readings,
    /// Places off the grid, never used for fitting.
    pub off_grid: Vec<SurveyPlace>,
}

/// A measured place anywhere on the floor.
#[derive(Clone, Debug, PartialEq)]
pub struct SurveyPlace {
    /// Row and column, with fractions.
    pub at: [f64; 2],
    /// dBm per band; NaN where nothing was heard.
    pub dbm: Vec<f64>,
}

/// The city: linear power (mW), unknown (NaN) inside buildings.
#[derive(Clone, Debug)]
pub struct City {
    pub map: RadioMap,
}

impl Data {
    /// Reads what a folder holds; of the city the 128 x 128 cells in its middle.
    pub fn load(folder: &Path, size: Size) -> Result<Self, ReproduceError> {
        let side = match size {
            Size::Full => 128,
            Size::Tiny => 24,
        };
        let (floor, city) = (folder.join("mannheim"), folder.join("radiogat"));
        let there = |part: &Path| part.is_dir();
        if !there(&floor) && !there(&city) {
            return Err(ReproduceError::NoData { what: folder.display().to_string() });
        }
        Ok(Self {
            floor: there(&floor).then(|| Floor::load(&floor)).transpose()?,
            city: there(&city).then(|| City::load(&city, side)).transpose()?,
        })
    }
}

impl Floor {
    fn load(folder: &Path) -> Result<Self, ReproduceError> {
        let survey = mannheim::survey(folder)?;
        let cell_m = survey.grid.cell_m();
        let off_grid = survey
            .online
            .into_iter()
            .map(|place| SurveyPlace {
                at: [place.x_m / cell_m, place.y_m / cell_m],
                dbm: place.dbm,
            })
            .collect();
        Ok(Self { survey: survey.offline, off_grid })
    }
}

impl City {
    fn load(folder: &Path, side: usize) -> Result<Self, ReproduceError> {
        let whole = radiogat::city(folder)?;
        let grid = whole.map.grid();
        let first = |all: usize| all.saturating_sub(side) / 2;
        let part = whole.crop(first(grid.rows()), first(grid.cols()), side, side)?;
        Ok(Self { map: part.map })
    }
}
