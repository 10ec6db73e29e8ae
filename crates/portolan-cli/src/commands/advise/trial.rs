//! A simulated survey: sensors added where advised against sensors added at random.

use ndarray::{Array2, Axis, concatenate};
use portolan::advise::{MOST_PLACES, free_cells, shuffled};
use portolan::score::score;
use portolan::{Cell, RadioMap, Readings, Site, Values};
use serde_json::{Value, json};

use super::{Adviser, ModelAndMap};
use crate::failure::Failure;

/// How often the map is made anew on the way to the whole budget.
const STEPS: usize = 5;
/// How many random surveys are averaged.
const DRAWS: u64 = 3;

/// The error in dB with so many sensors.
pub struct Step {
    sensors: usize,
    advised_db: f64,
    random_db: f64,
}

impl Step {
    pub fn row(&self) -> Vec<String> {
        let Step { sensors, advised_db, random_db } = self;
        vec![sensors.to_string(), format!("{advised_db:.3}"), format!("{random_db:.3}")]
    }

    pub fn json(&self) -> Value {
        json!({
            "sensors": self.sensors,
            "advised_rmse_db": self.advised_db,
            "random_rmse_db": self.random_db,
        })
    }
}

/// Adds up to `budget` sensors that read the truth, in steps, both ways. The advice is asked for
/// again at every step, with the readings it has brought.
pub fn trial(
    adviser: &Adviser<'_>,
    readings: &Readings,
    estimate: &ModelAndMap,
    truth: &RadioMap,
    budget: usize,
) -> Result<Vec<Step>, Failure> {
    let free = free_cells(readings.sites(), &estimate.map, &adviser.args.leave_out);
    let most = free.len().min(STEPS * MOST_PLACES);
    if budget > most {
        return Err(Failure::input(format!(
            "--budget {budget}: it takes 1 to {most} sensors here"
        )));
    }
    let error =
        |estimate: &ModelAndMap| Ok::<_, Failure>(score(&estimate.map, truth, None)?.rmse_db);
    let first = error(estimate)?;
    let mut steps = vec![Step { sensors: readings.sensors(), advised_db: first, random_db: first }];
    let orders: Vec<Vec<Cell>> = (0..DRAWS)
        .map(|draw| {
            shuffled(free.clone(), adviser.args.run.seed.wrapping_mul(DRAWS).wrapping_add(draw))
        })
        .collect();
    let mut advised = readings.clone();
    let mut latest: Option<ModelAndMap> = None;
    let mut added = 0;
    while added < budget {
        let more = budget.div_ceil(STEPS).min(budget - added);
        let places = adviser.places(latest.as_ref().unwrap_or(estimate), more)?;
        let cells: Vec<Cell> = places.iter().map(|a| a.cell).collect();
        advised = with_sensors(&advised, truth, &cells)?;
        let newest = adviser.estimate(&advised)?;
        let advised_db = error(&newest)?;
        latest = Some(newest);
        added += more;
        let mut random_db = 0.0;
        for order in &orders {
            let random = with_sensors(readings, truth, &order[..added])?;
            random_db += error(&adviser.estimate(&random)?)? / DRAWS as f64;
        }
        steps.push(Step { sensors: advised.sensors(), advised_db, random_db });
    }
    Ok(steps)
}

/// The readings and exact ones of more cells.
fn with_sensors(readings: &Readings, truth: &RadioMap, more: &[Cell]) -> Result<Readings, Failure> {
    let Values::Power(power) = readings.values() else {
        return Err(Failure::input("--budget adds readings of power, but these are levels"));
    };
    let mut values = Array2::zeros((more.len(), truth.bands()));
    for (mut row, cell) in values.outer_iter_mut().zip(more) {
        let mut spectrum = vec![0.0; truth.bands()];
        truth.spectrum_into(*cell, &mut spectrum);
        row.assign(&ndarray::ArrayView1::from(&spectrum));
    }
    let values = concatenate(Axis(0), &[power.view(), values.view()])
        .map_err(|error| Failure::Run(error.to_string()))?;
    let grid = truth.grid();
    let more = more.iter().map(|&cell| grid.site(cell));
    let sites: Vec<Site> = readings.sites().iter().copied().chain(more).collect();
    let all = Readings::new(sites, Values::Power(values), readings.scale())?;
    Ok(all.with_grid(Some(grid))?.with_labels(readings.labels().clone())?)
}
