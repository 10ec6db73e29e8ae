//! How many emitters the readings speak for, and whether they speak for emitters at all.
//!
//! Readings without noise show their rank. With noise or levels, some entries are held out and
//! predicted with 1, 2, ... emitters by the fit itself, shadowing, places and all: levels alone
//! say too little. One emitter more is believed if it makes the held-out entries clearly likelier
//! (a paired comparison). Then some sensors are held out, and emitters must predict them better
//! than kriging every band alone.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::Field;
use super::sites::Targets;
use crate::error::EstimateError;
use crate::estimate::emitters::number_of_emitters;
use crate::estimate::{Context, Emitters, Progress, build};
use crate::likelihood::Probit;
use crate::link::Link;
use crate::quantiser::MISSING_LEVEL;
use crate::readings::{Readings, Values};
use crate::unmix::{MOST, count_exact};

/// Entries are dealt into so many parts, and so many of them take their turn to be held out: of
/// power, and of levels, which say less.
const PARTS: usize = 8;
const TURNS: (usize, usize) = (2, 4);
/// The same for sensors.
const SENSOR_PARTS: usize = 4;
const SENSOR_TURNS: usize = 2;
/// More sensors than this add time and decide little.
const JUDGED: usize = 600;
/// Fewer sensors than this cannot spare any.
const FEWEST: usize = 8;
/// Rounds of a fit that is only judged.
const ROUNDS: usize = 6;
/// One emitter more must lower the held-out loss by this many standard errors.
const WORTH: f64 = 1.5;
/// A single entry moves the comparison by no more than this: a few wild ones must not decide.
const MOST_OF_ONE: f64 = 1.0;
/// Numbers of emitters without a gain after which the search ends.
const PATIENCE: usize = 2;
/// Grids with more entries than this are not kriged band by band only to compare.
const MANY_ENTRIES: usize = 1 << 22;
/// Deviation that shadowing between sensors adds to a level's own noise, in nepers.
const UNSEEN: f64 = 0.5;

/// What the readings are made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Structure {
    Emitters(usize),
    /// Every band is its own: factorising them loses.
    Bands,
}

impl Field {
    /// The number of emitters asked for or found, or none at all; and why, where it was found.
    pub(super) fn structure(
        &self,
        readings: &Readings,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<(Structure, Option<String>), EstimateError> {
        let emitters = self.number(readings, context, progress)?;
        let factored = Structure::Emitters(emitters);
        let entries = readings.grid().cells() * readings.bands();
        let sure = match readings.values() {
            Values::Power(power) => count_exact(power).is_some(),
            Values::Levels { .. } => false,
        };
        if told(readings, context) || readings.bands() == 1 || entries > MANY_ENTRIES || sure {
            return Ok((factored, None));
        }
        let some = some_of(readings)?;
        let turns: Vec<SensorTurn> =
            (0..SENSOR_TURNS).filter_map(|turn| SensorTurn::new(&some, turn)).collect();
        if turns.is_empty() {
            return Ok((factored, None));
        }
        let loss = mean(&turns, |turn| self.predicted(turn, emitters, context, progress))?;
        let alone = mean(&turns, |turn| kriged(turn, context, progress))?;
        let (structure, verdict) = match alone < loss {
            true => (Structure::Bands, "every band was kriged alone"),
            false => (factored, "the bands were factorised"),
        };
        let note = format!(
            "{verdict}: held-out sensors lose {loss:.3} with {emitters} emitter(s), {alone:.3} \
             band by band"
        );
        Ok((structure, Some(note)))
    }

    /// The number of emitters asked for or found.
    pub(in crate::estimate) fn number(
        &self,
        readings: &Readings,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<usize, EstimateError> {
        if told(readings, context) {
            return number_of_emitters(readings, context);
        }
        let turns = match readings.values() {
            Values::Power(power) => match count_exact(power) {
                Some(emitters) => return Ok(emitters),
                None => TURNS.0,
            },
            Values::Levels { .. } => TURNS.1,
        };
        let some = some_of(readings)?;
        let turns: Vec<EntryTurn> =
            (0..turns).filter_map(|turn| EntryTurn::new(&some, turn, context.seed)).collect();
        if turns.is_empty() {
            return number_of_emitters(readings, context);
        }
        let most = MOST.min(some.bands()).min(some.sensors());
        let mut best: Option<(usize, Vec<f64>)> = None;
        for emitters in 1..=most {
            progress.report(emitters - 1, most)?;
            let losses = self.held_out(&turns, emitters, context, progress)?;
            match &best {
                Some((_, least)) if gain(least, &losses) <= WORTH => {}
                _ => best = Some((emitters, losses)),
            }
            if best.as_ref().is_some_and(|(good, _)| emitters >= good + PATIENCE) {
                break;
            }
        }
        Ok(best.map_or(1, |(emitters, _)| emitters))
    }

    /// Loss of every held-out entry of every turn.
    fn held_out(
        &self,
        turns: &[EntryTurn],
        emitters: usize,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Vec<f64>, EstimateError> {
        let quiet = |_: f64| progress.report(0, 1).is_ok();
        let parts: Vec<Vec<f64>> = turns
            .par_iter()
            .map(|turn| {
                let targets = Targets::new(turn.kept.values());
                let mut fit = self.begin(&turn.kept, &targets, turn.link, emitters, context)?;
                fit.iterate(ROUNDS, &Progress::new(&quiet))?;
                let model = fit.logs.mapv(f64::exp).dot(&fit.psd);
                let loss =
                    |&(n, k): &(usize, usize)| turn.whole.loss(n, k, model[[n, k]], fit.noise);
                Ok(turn.held.iter().map(loss).collect())
            })
            .collect::<Result<_, EstimateError>>()?;
        Ok(parts.concat())
    }

    /// Loss at the held-out sensors.
    fn predicted(
        &self,
        turn: &SensorTurn,
        emitters: usize,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<f64, EstimateError> {
        let quiet = |_: f64| progress.report(0, 1).is_ok();
        let targets = Targets::new(turn.kept.values());
        let mut fit = self.begin(&turn.kept, &targets, turn.link, emitters, context)?;
        fit.run(self.rounds.unwrap_or(20), &Progress::new(&quiet))?;
        let model = fit.predict(turn.held.cells()).mapv(f64::exp).dot(&fit.psd);
        Ok(turn.loss(|sensor, band| model[[sensor, band]]))
    }
}

/// Nothing is to be chosen, or nothing could be spared to choose by.
fn told(readings: &Readings, context: &Context<'_>) -> bool {
    let asked = context.emitters != Emitters::Auto || context.start.is_some();
    asked || readings.sensors() < FEWEST
}

/// At most `JUDGED` of the sensors, evenly spread over their order.
fn some_of(readings: &Readings) -> Result<Readings, EstimateError> {
    let sensors = readings.sensors();
    let judged = JUDGED.min(sensors);
    let some: Vec<usize> = (0..judged).map(|i| i * sensors / judged).collect();
    // A band that only the others read keeps all of them.
    Ok(readings.subset(&some).unwrap_or_else(|_| readings.clone()))
}

/// By how many standard errors the second loss is below the first, entry by entry.
fn gain(first: &[f64], second: &[f64]) -> f64 {
    let count = first.len() as f64;
    let each = || first.iter().zip(second).map(|(a, b)| (a - b).clamp(-MOST_OF_ONE, MOST_OF_ONE));
    let mean = each().sum::<f64>() / count;
    let square = each().map(|d| (d - mean).powi(2)).sum::<f64>() / count;
    mean / (square / count).sqrt().max(f64::MIN_POSITIVE)
}

fn mean(
    turns: &[SensorTurn],
    of: impl Fn(&SensorTurn) -> Result<f64, EstimateError> + Sync,
) -> Result<f64, EstimateError> {
    let losses: Vec<f64> = turns
        .par_iter()
        .map(|turn| match of(turn) {
            Err(EstimateError::Numerical(_)) => Ok(f64::INFINITY),
            other => other,
        })
        .collect::<Result<_, _>>()?;
    Ok(losses.iter().sum::<f64>() / losses.len() as f64)
}

fn kriged(
    turn: &SensorTurn,
    context: &Context<'_>,
    progress: &Progress<'_>,
) -> Result<f64, EstimateError> {
    let quiet = |_: f64| progress.report(0, 1).is_ok();
    let map = build("kriging", [])?.estimate(&turn.kept, context, &Progress::new(&quiet))?.map;
    let spectra: Vec<Vec<f64>> = (turn.held.cells().iter())
        .map(|&cell| {
            let mut spectrum = vec![0.0; map.bands()];
            map.spectrum_into(cell, &mut spectrum);
            spectrum
        })
        .collect();
    Ok(turn.loss(|sensor, band| spectra[sensor][band]))
}

fn link_of(readings: &Readings) -> Link {
    match readings.values() {
        Values::Levels { quantiser, .. } => quantiser.link(),
        Values::Power(power) => Link::choose(power.iter().copied(), readings.entries()),
    }
}

/// Readings with some entries left out.
struct EntryTurn {
    kept: Readings,
    whole: Targets,
    held: Vec<(usize, usize)>,
    link: Link,
}

impl EntryTurn {
    /// None where a band would be left without readings.
    fn new(readings: &Readings, turn: usize, seed: u64) -> Option<Self> {
        // The same deal in every turn.
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (sensors, bands) = readings.values().dim();
        let mut held: Vec<(usize, usize)> = (0..sensors * bands)
            .filter(|_| rng.random_range(0..PARTS) == turn)
            .map(|i| (i / bands, i % bands))
            .collect();
        let mut values = readings.values().clone();
        match &mut values {
            Values::Levels { levels, .. } => {
                held.retain(|at| levels[*at] != MISSING_LEVEL);
                held.iter().for_each(|at| levels[*at] = MISSING_LEVEL);
            }
            Values::Power(power) => {
                held.retain(|at| !power[*at].is_nan());
                held.iter().for_each(|at| power[*at] = f64::NAN);
            }
        }
        let kept = Readings::new(readings.grid(), readings.cells().to_vec(), values).ok()?;
        let whole = Targets::new(readings.values());
        (!held.is_empty()).then(|| Self { kept, whole, held, link: link_of(readings) })
    }
}

/// Sensors that are seen and sensors that are predicted.
struct SensorTurn {
    kept: Readings,
    held: Readings,
    link: Link,
}

impl SensorTurn {
    /// None where a band would be left without readings.
    fn new(readings: &Readings, turn: usize) -> Option<Self> {
        let (held, kept): (Vec<usize>, Vec<usize>) =
            (0..readings.sensors()).partition(|s| s % SENSOR_PARTS == turn);
        let (kept, held) = (readings.subset(&kept).ok()?, readings.subset(&held).ok()?);
        Some(Self { kept, held, link: link_of(readings) })
    }

    /// Mean squared error of ln(x + a), or mean negative log probability of the levels.
    fn loss(&self, model: impl Fn(usize, usize) -> f64) -> f64 {
        let mean_of = |losses: Vec<f64>| losses.iter().sum::<f64>() / losses.len().max(1) as f64;
        let log = |n: usize, k: usize| self.link.apply(model(n, k));
        match self.held.values() {
            Values::Power(power) => {
                let seen = power.indexed_iter().filter(|(_, y)| !y.is_nan());
                mean_of(seen.map(|((n, k), y)| (log(n, k) - self.link.apply(*y)).powi(2)).collect())
            }
            Values::Levels { levels, quantiser } => {
                let probit = Probit::widened(quantiser, UNSEEN);
                let seen = levels.indexed_iter().filter(|(_, level)| **level != MISSING_LEVEL);
                mean_of(seen.map(|((n, k), l)| -probit.log_probability(*l, log(n, k)).0).collect())
            }
        }
    }
}
