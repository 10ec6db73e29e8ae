//! Making a scene for a seed and scoring an estimate of it. Methods of one row see the same map and
//! the same readings, because both follow from the seed alone.

use ndarray::Array2;
use portolan::quantiser::AUTHORS_EDGES;
use portolan::score::score;
use portolan::sense::{Quantising, Sensing, SensorLayout, sense};
use portolan::simulate::{Scenario, simulate};
use portolan::{Grid, InputError, Method, RadioMap, Readings, Site};
use rand::SeedableRng;
use rand::seq::index::sample;
use rand_chacha::ChaCha8Rng;

use crate::conventions::Convention;
use crate::data::{Data, SurveyPlace};
use crate::error::ReproduceError;
use crate::experiment::{Call, Scene, Simulated};
use crate::methods::method;
use crate::record::Figures;

/// Standard deviation of the noise before quantising, in ln power (the authors' code).
const SIGMA: f64 = 1.7;

/// Measured scenes: an estimate this far below the weakest reading counts no worse, in dB.
const BELOW_WEAKEST_DB: f64 = 20.0;

/// A scene made: what is true and what the sensors report.
pub struct PreparedScene {
    pub truth: Truth,
    pub readings: Readings,
}

/// What is known beside the readings.
pub enum Truth {
    /// Everything.
    Map { map: Box<RadioMap>, decorrelation_m: f64 },
    /// Some places on the grid with their spectra in dBm, and some between its cells.
    Held { places: Vec<(Site, Vec<f64>)>, off_grid: Vec<SurveyPlace>, floor_dbm: f64 },
}

impl Truth {
    fn held(
        places: Vec<(Site, Vec<f64>)>,
        off_grid: Vec<SurveyPlace>,
        readings: &Readings,
    ) -> Self {
        let weakest =
            readings.power().iter().filter(|p| **p > 0.0).fold(f64::MAX, |w, p| w.min(*p));
        Truth::Held { places, off_grid, floor_dbm: dbm(weakest) - BELOW_WEAKEST_DB }
    }
}

impl PreparedScene {
    pub fn make(scene: &Scene, data: &Data, seed: u64) -> Result<Self, ReproduceError> {
        match scene {
            Scene::Simulated(simulated) => Ok(Self::simulated(simulated, seed)?),
            Scene::Floor { sensors } => {
                let floor = data.floor.as_ref().ok_or_else(|| missing("the office floor"))?;
                let all = floor.survey.sensors();
                if *sensors > all {
                    let message = format!("{sensors} sensors: the floor has {all} places");
                    return Err(InputError::Request(message).into());
                }
                let mut rng = ChaCha8Rng::seed_from_u64(seed);
                let mut kept = sample(&mut rng, all, *sensors).into_vec();
                kept.sort_unstable();
                let power = floor.survey.power();
                let held = (0..all).filter(|s| kept.binary_search(s).is_err());
                let places = held
                    .map(|s| (floor.survey.sites()[s], power.row(s).mapv(dbm).to_vec()))
                    .collect();
                let readings = floor.survey.subset(&kept)?;
                let truth = Truth::held(places, floor.off_grid.clone(), &readings);
                Ok(Self { truth, readings })
            }
            Scene::City { fraction } => {
                let city = data.city.as_ref().ok_or_else(|| missing("the ray-traced city"))?;
                let readings =
                    sense(&city.map, &Sensing::exact(SensorLayout::Fraction(*fraction), seed))?;
                let grid = city.map.grid();
                let mut held = vec![true; grid.cells()];
                let cells = readings.cells(grid)?;
                cells.iter().for_each(|&cell| held[grid.index(cell)] = false);
                let mut spectrum = vec![0.0; city.map.bands()];
                let held = (0..grid.cells()).filter(|&index| held[index]);
                let places = held
                    .map(|index| {
                        city.map.spectrum_into(grid.cell(index), &mut spectrum);
                        (grid.site(grid.cell(index)), spectrum.iter().copied().map(dbm).collect())
                    })
                    .collect();
                Ok(Self { truth: Truth::held(places, Vec::new(), &readings), readings })
            }
        }
    }

    fn simulated(scene: &Simulated, seed: u64) -> Result<Self, InputError> {
        let [rows, cols, bands] = scene.size;
        let Simulated { emitters, shadow_db, decorrelation_m, .. } = *scene;
        let grid = Grid::new(rows, cols, 1.0)?;
        let scenario =
            Scenario { bands, emitters, shadow_db, decorrelation_m, seed, ..Scenario::new(grid) };
        let map = simulate(&scenario)?;
        let quantising = scene.bits.map(|bits| Quantising {
            bits,
            edges: (bits == 3).then(|| AUTHORS_EDGES.to_vec()),
            sigma: SIGMA,
        });
        let sensing =
            Sensing { quantising, ..Sensing::exact(SensorLayout::Fraction(scene.fraction), seed) };
        let readings = sense(&map, &sensing)?;
        Ok(Self { truth: Truth::Map { map: Box::new(map), decorrelation_m }, readings })
    }

    /// The method; the oracle also knows the law of the shadowing.
    pub fn method(&self, call: &Call) -> Result<Box<dyn Method>, InputError> {
        let mut options = call.options.clone();
        if let (Truth::Map { decorrelation_m, .. }, "oracle") = (&self.truth, call.name) {
            options.push(("decorrelation".into(), decorrelation_m.to_string()));
        }
        method(call.name)?.build(options)
    }

    /// The whole true map, where it is known. Only the oracle looks at it.
    pub fn true_map(&self) -> Option<&RadioMap> {
        match &self.truth {
            Truth::Map { map, .. } => Some(map),
            Truth::Held { .. } => None,
        }
    }

    /// Scores an estimate; seconds and pictures are the caller's.
    pub fn score(&self, estimate: &RadioMap) -> Result<Figures, InputError> {
        match &self.truth {
            Truth::Map { map, .. } => {
                let request =
                    |error: portolan::score::ScoreError| InputError::Request(error.to_string());
                let score = score(estimate, map, None).map_err(request)?;
                Ok(Figures {
                    ssim: score.ssim,
                    ssim_strict: score.ssim_strict,
                    ssim_by_convention: Convention::ALL
                        .iter()
                        .filter_map(|convention| convention.ssim(estimate, map))
                        .collect(),
                    roughness: score.roughness,
                    rmse_db: score.rmse_db,
                    ..Figures::default()
                })
            }
            Truth::Held { places, off_grid, floor_dbm } => {
                let mut spectrum = vec![0.0; estimate.bands()];
                // Between cells the map is read bilinearly in dBm.
                let mut read = |site: Site| -> Vec<f64> {
                    estimate.spectrum_at(site, 10f64.powf(floor_dbm / 10.0), &mut spectrum);
                    spectrum.iter().map(|x| dbm(*x).max(*floor_dbm)).collect()
                };
                let (mut on_grid, mut between) = (Errors::default(), Errors::default());
                for (site, known) in places {
                    on_grid.add(read(*site).into_iter(), known);
                }
                for place in off_grid {
                    between.add(read(estimate.grid().site_at(place.at)).into_iter(), &place.dbm);
                }
                let rmse_db = on_grid.rmse().ok_or_else(|| {
                    InputError::Request("no measured cell is left to score on".into())
                })?;
                Ok(Figures { rmse_db, off_grid_rmse_db: between.rmse(), ..Figures::default() })
            }
        }
    }

    /// The floor under powers before they become decibels in a picture.
    pub fn offset(&self) -> f64 {
        match &self.truth {
            Truth::Map { map, .. } => map.scale().link().offset(),
            Truth::Held { .. } => 0.0,
        }
    }

    /// One band of an estimate in dB, for a picture.
    pub fn drawn(&self, estimate: &RadioMap, band: usize) -> Array2<f32> {
        let offset = self.offset();
        match &self.truth {
            Truth::Map { .. } => estimate.band(band).mapv(|x| (10.0 * (x + offset).log10()) as f32),
            Truth::Held { floor_dbm, .. } => {
                estimate.band(band).mapv(|x| dbm(x).max(*floor_dbm) as f32)
            }
        }
    }
}

#[derive(Default)]
struct Errors {
    squares: f64,
    entries: usize,
}

impl Errors {
    fn add(&mut self, guess: impl Iterator<Item = f64>, known: &[f64]) {
        for (guess, known) in guess.zip(known).filter(|(_, known)| !known.is_nan()) {
            self.squares += (guess - known).powi(2);
            self.entries += 1;
        }
    }

    fn rmse(&self) -> Option<f64> {
        (self.entries > 0).then(|| (self.squares / self.entries as f64).sqrt())
    }
}

/// dBm of a power in mW.
fn dbm(power: f64) -> f64 {
    10.0 * power.log10()
}

fn missing(what: &str) -> ReproduceError {
    ReproduceError::NoData { what: what.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Floor;
    use ndarray::Array3;
    use portolan::Scale;

    #[test]
    fn only_held_out_cells_are_scored_and_silence_has_a_floor() {
        let grid = Grid::new(8, 8, 1.0).unwrap();
        let sites: Vec<Site> =
            (0..10).map(|i| Site::new(f64::from(i % 8), f64::from(i / 8))).collect();
        let power =
            Array2::from_shape_fn((10, 2), |(s, b)| 10f64.powf(-5.0 - 0.1 * (s + b) as f64));
        let values = portolan::Values::Power(power.clone());
        let survey = Readings::new(sites, values, Scale::Absolute).unwrap();
        let survey = survey.with_grid(Some(grid)).unwrap();
        let off_grid = vec![SurveyPlace { at: [0.5, 0.0], dbm: vec![-50.0, f64::NAN] }];
        let data = Data { floor: Some(Floor { survey, off_grid }), city: None };
        let prepared = PreparedScene::make(&Scene::Floor { sensors: 9 }, &data, 1).unwrap();
        let Truth::Held { places, floor_dbm, .. } = &prepared.truth else { panic!() };
        let [(held, known)] = &places[..] else { panic!("one of ten is held out") };
        assert!(!prepared.readings.sites().contains(held));
        let silence = RadioMap::dense(grid, Array3::zeros((8, 8, 2)), Scale::Absolute).unwrap();
        let figures = prepared.score(&silence).unwrap();
        let want = known.iter().map(|k| (k - floor_dbm).powi(2)).sum::<f64>() / 2.0;
        assert!((figures.rmse_db - want.sqrt()).abs() < 1e-9);
        assert!((figures.off_grid_rmse_db.unwrap() - (-50.0 - floor_dbm)).abs() < 1e-9);
        assert_eq!(figures.ssim, None);
    }

    #[test]
    fn methods_see_the_same_map_and_readings() {
        let scene = Scene::Simulated(Simulated {
            size: [12, 12, 4],
            emitters: 2,
            shadow_db: 6.0,
            decorrelation_m: 90.0,
            fraction: 0.2,
            bits: Some(3),
        });
        let make = |seed| PreparedScene::make(&scene, &Data::default(), seed).unwrap().readings;
        assert_eq!(make(5), make(5));
        assert_ne!(make(5), make(6));
    }
}
