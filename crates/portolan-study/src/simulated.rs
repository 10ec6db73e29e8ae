//! Methods over many simulated maps.

use std::time::Instant;

use portolan::model::ModelEmitter;
use portolan::score::{coverage_unmeasured, score};
use portolan::sense::{Sensing, sense};
use portolan::simulate::{Scenario, simulate};
use portolan::{
    Context, Emitters, EstimateError, InputError, Method, Model, Progress, RadioMap, Readings,
};

use crate::{Mean, MethodCall, batches};

/// A study on simulated maps: what maps are like, how they are sensed, which methods are judged.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// The methods.
    pub calls: Vec<MethodCall>,
    /// What maps are like. Its seed is that of the first, the others follow.
    pub scenario: Scenario,
    /// How they are sensed, each map with its own seed.
    pub sensing: Sensing,
    /// How many maps there are.
    pub maps: u64,
    /// The number of emitters that methods are given; the true one where absent.
    pub assumed: Option<Emitters>,
    /// The a of ln(x + a) in scores; from the truth where absent.
    pub offset: Option<f64>,
}

/// What a method did over all maps.
#[derive(Clone, Debug)]
pub struct Judged {
    /// What tables call it.
    pub label: String,
    /// SSIM; NaN where maps are too small for it.
    pub ssim: Mean,
    /// Root mean square error in dB.
    pub rmse_db: Mean,
    /// Share of unmeasured entries within the 90 % interval; NaN where there is none.
    pub coverage: f64,
    /// Median distance of emitters from where they were found, in metres.
    pub place_m: Option<f64>,
    /// Share of the maps whose number of emitters was found; NaN where none was sought.
    pub counted: f64,
    /// Mean time of a fit and its map.
    pub seconds: f64,
    /// How far it closes the distance from the better of thin plates and kriging to the oracle,
    /// where these are judged too.
    pub share: Option<f64>,
    /// What all fits took, where they ran in batches.
    pub spent: Option<Spent>,
}

/// Seconds of all fits of a method.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// Until the fits began.
    pub start: f64,
    /// From there on.
    pub fit: f64,
}

/// Figures of one method on one map.
#[derive(Clone, Copy)]
pub(crate) struct Figures {
    ssim: f64,
    rmse_db: f64,
    coverage: f64,
    seconds: f64,
    counted: f64,
}

/// What the maps gave for one method.
#[derive(Clone, Default)]
pub(crate) struct Gathered {
    pub figures: Vec<Figures>,
    /// Distances of emitters from where they were found.
    pub misplaced: Vec<f64>,
    pub spent: Option<Spent>,
}

impl Simulated {
    /// Makes every map, fits every method to its readings and scores the maps they draw. Methods
    /// with an engine are given the readings of many maps together.
    ///
    /// # Errors
    /// If there is no map or a map cannot be made or sensed, a method fails, or `progress` says to
    /// stop.
    pub fn run(&self, progress: &Progress<'_>) -> Result<Vec<Judged>, EstimateError> {
        if self.maps == 0 {
            return Err(InputError::Request("0 maps: a study takes 1 or more".into()).into());
        }
        let gathered = match self.calls.iter().any(|call| call.engine.is_some()) {
            true => batches::gather(self, progress)?,
            false => self.gather(progress)?,
        };
        let mut judged: Vec<Judged> = self
            .calls
            .iter()
            .zip(gathered)
            .map(|(call, gathered)| Judged::of(call, gathered))
            .collect();
        share(&mut judged);
        Ok(judged)
    }

    fn gather(&self, progress: &Progress<'_>) -> Result<Vec<Gathered>, EstimateError> {
        let mut gathered = vec![Gathered::default(); self.calls.len()];
        let total = self.maps as usize * self.calls.len();
        for (number, seed) in self.seeds(0..self.maps).enumerate() {
            let (truth, readings) = self.scene(seed)?;
            for (i, (call, gathered)) in self.calls.iter().zip(&mut gathered).enumerate() {
                progress.report(number * self.calls.len() + i, total)?;
                let method = self.method(call)?;
                let start = Instant::now();
                let silent = Progress::silent();
                let model = method.fit(&readings, &self.context(&truth, seed), &silent)?;
                let map = model.map(truth.grid(), &silent)?;
                let seconds = start.elapsed().as_secs_f64();
                gathered.figures.push(self.figures(&truth, &readings, &model, &map, seconds)?);
                gathered.misplaced.extend(misplaced(&truth, &model));
            }
        }
        Ok(gathered)
    }

    /// Seeds of some of the maps.
    pub(crate) fn seeds(&self, maps: std::ops::Range<u64>) -> impl Iterator<Item = u64> + use<> {
        let first = self.scenario.seed;
        maps.map(move |number| first.wrapping_add(number))
    }

    /// A map and what its sensors read.
    pub(crate) fn scene(&self, seed: u64) -> Result<(RadioMap, Readings), InputError> {
        let truth = simulate(&Scenario { seed, ..self.scenario })?;
        let readings = sense(&truth, &Sensing { seed, ..self.sensing.clone() })?;
        Ok((truth, readings))
    }

    /// The method of a call; the oracle also knows the law of the shadowing.
    pub(crate) fn method(&self, call: &MethodCall) -> Result<Box<dyn Method>, InputError> {
        let mut call = call.clone();
        if call.name == "oracle" && call.settings.is_empty() {
            let metres = self.scenario.decorrelation_m.to_string();
            call.settings.push(("decorrelation".into(), metres));
        }
        call.build()
    }

    /// What methods are given about a map.
    pub(crate) fn context<'a>(&self, truth: &'a RadioMap, seed: u64) -> Context<'a> {
        let emitters = self.assumed.unwrap_or(Emitters::Count(self.scenario.emitters));
        Context { emitters, seed, truth: Some(truth), ..Context::default() }
    }

    /// What a map is worth.
    pub(crate) fn figures(
        &self,
        truth: &RadioMap,
        readings: &Readings,
        model: &Model,
        map: &RadioMap,
        seconds: f64,
    ) -> Result<Figures, InputError> {
        let score = score(map, truth, self.offset)
            .map_err(|error| InputError::Request(error.to_string()))?;
        let measured = readings.cells(truth.grid())?;
        let right = |n: f64| f64::from(u8::from(n as usize == self.scenario.emitters));
        Ok(Figures {
            ssim: score.ssim.unwrap_or(f64::NAN),
            rmse_db: score.rmse_db,
            coverage: coverage_unmeasured(map, truth, score.offset, &measured).unwrap_or(f64::NAN),
            seconds,
            counted: model.report().fitted("emitters").map_or(f64::NAN, right),
        })
    }
}

/// Distance from every true emitter to the one found with the most similar PSD, in metres.
pub(crate) fn misplaced(truth: &RadioMap, model: &Model) -> Vec<f64> {
    let Some(factors) = truth.factors() else { return Vec::new() };
    let likeness = |r: usize, psd: &[f64]| {
        let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
        for (a, b) in factors.psd.row(r).iter().zip(psd) {
            (ab, aa, bb) = (ab + a * b, aa + a * a, bb + b * b);
        }
        ab / f64::max((aa * bb).sqrt(), f64::MIN_POSITIVE)
    };
    (0..factors.psd.nrows())
        .filter_map(|r| {
            let of = |e: &ModelEmitter| likeness(r, &e.psd);
            let best = model.emitters().iter().max_by(|a, b| of(a).total_cmp(&of(b)))?;
            Some(best.at.distance_m(truth.emitters()[r]))
        })
        .collect()
}

impl Judged {
    fn of(call: &MethodCall, gathered: Gathered) -> Self {
        let Gathered { figures, mut misplaced, spent } = gathered;
        let of = |pick: fn(&Figures) -> f64| {
            let values: Vec<f64> = figures.iter().map(pick).collect();
            Mean::of(&values)
        };
        misplaced.sort_by(f64::total_cmp);
        Self {
            label: call.label.clone(),
            ssim: of(|f| f.ssim),
            rmse_db: of(|f| f.rmse_db),
            coverage: of(|f| f.coverage).mean,
            place_m: misplaced.get(misplaced.len() / 2).copied(),
            counted: of(|f| f.counted).mean,
            seconds: of(|f| f.seconds).mean,
            share: None,
            spent,
        }
    }
}

fn share(judged: &mut [Judged]) {
    let ssim = |name: &str| judged.iter().find(|j| j.label == name).map(|j| j.ssim.mean);
    let known = (ssim("thin_plate"), ssim("kriging"), ssim("oracle"));
    let (Some(plates), Some(kriging), Some(oracle)) = known else { return };
    let bar = plates.max(kriging);
    let yardsticks = ["thin_plate", "kriging", "oracle"];
    for other in judged.iter_mut().filter(|j| !yardsticks.contains(&&*j.label)) {
        other.share = Some((other.ssim.mean - bar) / (oracle - bar));
    }
}

#[cfg(test)]
mod tests;
