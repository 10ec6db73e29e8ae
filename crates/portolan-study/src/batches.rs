//! A study on another device: maps are made, fitted and scored in batches, so that the device has
//! all of a batch at once and the processor's threads share the rest.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use portolan::estimate::Job;
use portolan::{EstimateError, Progress};
use rayon::prelude::*;

use crate::Simulated;
use crate::simulated::{Gathered, Spent, misplaced};

/// Cells x bands of truths that are held at once: 1,024 maps of 64 x 64 x 64.
const HELD: usize = 1 << 28;

pub fn gather(study: &Simulated, progress: &Progress<'_>) -> Result<Vec<Gathered>, EstimateError> {
    let mut gathered = vec![Gathered::default(); study.calls.len()];
    let at_once = (HELD / (study.scenario.grid.cells() * study.scenario.bands)).max(1) as u64;
    let total = study.maps as usize * study.calls.len();
    let mut done = 0;
    for first in (0..study.maps).step_by(at_once as usize) {
        let seeds: Vec<u64> = study.seeds(first..(first + at_once).min(study.maps)).collect();
        let scenes: Vec<_> =
            seeds.par_iter().map(|&seed| study.scene(seed)).collect::<Result<_, _>>()?;
        let jobs: Vec<Job<'_>> = scenes
            .iter()
            .zip(&seeds)
            .map(|((truth, readings), &seed)| Job { readings, context: study.context(truth, seed) })
            .collect();
        for (call, gathered) in study.calls.iter().zip(&mut gathered) {
            let method = study.method(call)?;
            let share = |done: usize| done as f64 / total as f64;
            let part = progress.part(share(done)..share(done + jobs.len()));
            let start = Instant::now();
            let begun = Mutex::new(start);
            let mark = || *begun.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
            let models = method.fit_many(&jobs, &part.with_fit_start(&mark))?;
            let begun = *begun.lock().unwrap_or_else(PoisonError::into_inner);
            let seconds = start.elapsed().as_secs_f64() / jobs.len() as f64;
            if call.engine.is_some() {
                let spent = gathered.spent.get_or_insert_default();
                spent.add(Spent {
                    start: (begun - start).as_secs_f64(),
                    fit: begun.elapsed().as_secs_f64(),
                });
            }
            let scored: Vec<_> = models
                .into_par_iter()
                .zip(&scenes)
                .map(|(model, (truth, readings))| {
                    let model = model?;
                    let map = model.map(truth.grid(), &Progress::silent())?;
                    let figures = study.figures(truth, readings, &model, &map, seconds)?;
                    Ok((figures, misplaced(truth, &model)))
                })
                .collect::<Result<_, EstimateError>>()?;
            for (figures, misplaced) in scored {
                gathered.figures.push(figures);
                gathered.misplaced.extend(misplaced);
            }
            done += jobs.len();
        }
    }
    Ok(gathered)
}

impl Spent {
    fn add(&mut self, more: Self) {
        self.start += more.start;
        self.fit += more.fit;
    }
}
