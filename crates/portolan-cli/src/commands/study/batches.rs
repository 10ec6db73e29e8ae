//! A study on another device: maps are made, fitted and scored in batches, so that the device has
//! all of a batch at once and the processor's threads share the rest.

use std::sync::Mutex;
use std::time::Instant;

use portolan::estimate::Job;
use portolan::{Progress, RadioMap, Readings};
use rayon::prelude::*;

use super::{Gathered, context_of, figures, maps, method_of, misplaced};
use crate::args::StudyArgs;
use crate::commands::MethodCall;
use crate::failure::Failure;
use crate::output::say;
use crate::watch::counted;

/// Cells x bands of truths that are held at once: 1,024 maps of 64 x 64 x 64.
const HELD: usize = 1 << 28;

/// Seconds of all fits of a method.
#[derive(Clone, Copy, Default)]
struct Spent {
    start: f64,
    fit: f64,
}

pub fn gather(
    args: &StudyArgs,
    calls: &[MethodCall],
    scene: impl Fn(u64) -> Result<(RadioMap, Readings), Failure> + Sync,
) -> Result<Gathered, Failure> {
    let mut gathered = Gathered {
        figures: vec![Vec::new(); calls.len()],
        misplaced: vec![Vec::new(); calls.len()],
    };
    let mut spent = vec![Spent::default(); calls.len()];
    let (rows, cols) = args.grid.unwrap_or((64, 64));
    let at_once = (HELD / (rows * cols * args.scene.bands)).max(1) as u64;
    let (count, total) = (maps(args), maps(args) as usize * calls.len());
    counted("study", |tell, go_on| {
        let mut done = 0;
        for first in (0..count).step_by(at_once as usize) {
            let seeds: Vec<u64> =
                (first..(first + at_once).min(count)).map(|k| args.seed + k).collect();
            let scenes: Vec<_> =
                seeds.par_iter().map(|&seed| scene(seed)).collect::<Result<_, _>>()?;
            let jobs: Vec<Job<'_>> = scenes
                .iter()
                .zip(&seeds)
                .map(|((truth, readings), &seed)| Job {
                    readings,
                    context: context_of(args, truth, seed),
                })
                .collect();
            for (i, call) in calls.iter().enumerate() {
                let method = method_of(args, call)?;
                let start = Instant::now();
                let begun = Mutex::new(start);
                let mark = || *begun.lock().expect("nobody panics with it") = Instant::now();
                let callback = |_: f64| go_on();
                let progress = Progress::new(&callback).with_fit_start(&mark);
                let models = method.fit_many(&jobs, &progress)?;
                let begun = *begun.lock().expect("nobody panics with it");
                let seconds = start.elapsed().as_secs_f64() / jobs.len() as f64;
                spent[i].start += (begun - start).as_secs_f64();
                spent[i].fit += begun.elapsed().as_secs_f64();
                let scored: Vec<_> = models
                    .into_par_iter()
                    .zip(&scenes)
                    .map(|(model, (truth, readings))| {
                        let model = model?;
                        let map = model.map(truth.grid(), &Progress::silent())?;
                        let figures = figures(args, truth, readings, &model, &map, seconds)?;
                        Ok((figures, misplaced(truth, &model)))
                    })
                    .collect::<Result<_, Failure>>()?;
                for (figures, misplaced) in scored {
                    gathered.figures[i].push(figures);
                    gathered.misplaced[i].extend(misplaced);
                }
                done += jobs.len();
                tell(done, total, None);
            }
        }
        Ok::<_, Failure>(())
    })?;
    for (call, spent) in calls.iter().zip(&spent).filter(|(call, _)| call.engine.is_some()) {
        let total = spent.start + spent.fit;
        say(&format!(
            "portolan: note: {}: {count} fits in {total:.3} s, {:.1} maps a second; {:.3} s of it \
             for the starts, {:.1} maps a second without them",
            call.label,
            count as f64 / total,
            spent.start,
            count as f64 / spent.fit,
        ));
    }
    Ok(gathered)
}
