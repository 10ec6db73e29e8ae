//! How many emitters the readings speak for, and whether they speak for emitters at all.
//!
//! Readings without noise show their rank. With noise or levels the model is fitted with 1, 2, ...
//! emitters, shadowing, places and all (levels alone say too little), and every reading is predicted
//! by the others. Add an emitter if the readings become clearly likelier (a paired
//! comparison). Then some sensors are held out, and emitters must predict them better than kriging
//! every band alone.

use ndarray::Array2;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::Field;
use super::fit::FieldFit;
use super::linearised::Reported;
use super::start::NOISE_SHARES;
use crate::error::EstimateError;
use crate::estimate::emitters::{number_of_emitters, shown};
use crate::estimate::folds::spread_folds;
use crate::estimate::held_out::{Judge, Losses, gain};
use crate::estimate::{Context, Emitters, Kriging, Method};
use crate::link::DB_PER_LN;
use crate::progress::Progress;
use crate::quantiser::MISSING_LEVEL;
use crate::readings::{Readings, Values};
use crate::unmix::{MOST, count_exact};

/// Hold-out stride of the first comparison.
const PARTS: usize = 8;
/// Sensors are dealt into so many parts, and so many of them take their turn to be held out.
const SENSOR_PARTS: usize = 4;
const SENSOR_TURNS: usize = 2;
/// More sensors than this add time and decide little: of those that count emitters, and of those
/// held out.
const COUNTED: usize = 300;
const JUDGED: usize = 112;
/// Sensors that the law of a fit is fitted to which is only judged.
const LAW_SENSORS: usize = 70;
/// Bands that fewer sensors read take no part in a comparison at held-out sensors.
const READ_BY: usize = 12;
/// Fewer sensors than this cannot spare any.
const FEWEST: usize = 8;
/// Rounds of a fit that takes a first look, of one that counts, and of one that predicts held-out
/// sensors.
const ROUNDS: usize = 6;
const COUNT_ROUNDS: usize = 9;
const SENSOR_ROUNDS: usize = 12;
/// Starts of a fit that counts, where there are gaps.
const COUNT_STARTS: usize = 2;
/// By how many standard errors one emitter more must make readings likelier: power, and levels,
/// which say less.
const MORE: (f64, f64) = (5.0, 2.0);
/// By how many standard errors kriging must be better for bands to be fitted alone; by how many it
/// must be worse where there are few bands, which nearly any factors fit.
const WORTH: f64 = 2.0;
const FEW_WORTH: f64 = -1.0;
const FEW_BANDS: usize = 8;
/// Numbers of emitters without a gain after which the search ends.
const PATIENCE: usize = 2;
/// Numbers that are tried at once.
const AT_ONCE: usize = 2;
/// The emitters of a first look, and by how many standard errors and by which
/// factor bands alone must be better to end the search there.
const MANY: usize = 8;
const CLEAR: f64 = 4.0;
const CLEARLY: f64 = 1.3;
/// What the readings are made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::estimate) enum Structure {
    Emitters(usize),
    /// Every band is its own: factorising them loses.
    Bands,
}

fn levels(readings: &Readings) -> bool {
    matches!(readings.values(), Values::Levels { .. })
}

/// One band is explained by any field, its noise included, and so are some bands by as many emitters:
/// what is to be said about it where that is so.
fn too_few_bands(readings: &Readings, context: &Context<'_>) -> Option<Option<String>> {
    let asked = match context.emitters {
        Emitters::Count(asked) => asked,
        Emitters::Auto => 1,
    };
    if asked < readings.bands() || context.start.is_some() || levels(readings) {
        return None;
    }
    let note =
        format!("{asked} emitters in {} band(s): every band was fitted alone", readings.bands());
    Some((asked > 1).then_some(note))
}

impl Field {
    /// As [`Field::structure`], of readings with one row for every place.
    pub(super) fn structure_of(
        &self,
        readings: &Readings,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<(Structure, Option<String>), EstimateError> {
        if readings.not_heard().is_some() && context.start.is_none() {
            let note = "every band was fitted alone: some of them were not heard everywhere";
            return Ok((Structure::Bands, Some(note.into())));
        }
        if !context.transmitters.is_empty() {
            return Ok((Structure::Bands, None));
        }
        if let Some(note) = too_few_bands(readings, context) {
            return Ok((Structure::Bands, note));
        }
        if !told(readings, context)
            && let Some(note) = self.share_nothing(readings, context, progress)?
        {
            return Ok((Structure::Bands, Some(note)));
        }
        let emitters = self.number(readings, context, progress)?;
        if emitters >= readings.bands() && context.start.is_none() && !levels(readings) {
            let note = "every band was fitted alone: too few bands to separate emitters";
            return Ok((Structure::Bands, Some(note.into())));
        }
        let factored = Structure::Emitters(emitters);
        let sure = || match readings.values() {
            Values::Power(power) => count_exact(power).is_some(),
            Values::Levels { .. } => false,
        };
        if let Emitters::Count(asked) = context.emitters
            && asked > emitters
        {
            let note = format!("{asked} emitters were asked for, the readings show {emitters}");
            return Ok((factored, Some(note)));
        }
        if told(readings, context) || readings.bands() == 1 || sure() {
            return Ok((factored, None));
        }
        let turns = match well_read(&some_of(readings, JUDGED)) {
            Some(some) => {
                let folds = spread_folds(some.sites(), SENSOR_PARTS);
                let folds = folds[..SENSOR_TURNS].iter();
                folds.filter_map(|fold| SensorTurn::new(&some, fold)).collect()
            }
            None => Vec::new(),
        };
        if turns.is_empty() {
            let note = "every band was fitted alone: too few readings to separate emitters";
            return Ok((Structure::Bands, Some(note.into())));
        }
        let together = all(&turns, |turn| self.predicted(turn, emitters, context, progress))?;
        let alone = all(&turns, |turn| kriged(turn, context, progress))?;
        let gain = together.gain(&alone);
        let worse = gain > 0.0 && together.rmse_db() > CLEARLY * alone.rmse_db();
        let worth = if readings.bands() < FEW_BANDS { FEW_WORTH } else { WORTH };
        let (structure, verdict) = match gain > worth || worse {
            true => (Structure::Bands, "every band was fitted alone"),
            false => (factored, "the bands were factorised"),
        };
        let note = format!(
            "{verdict}: held-out sensors are missed by {:.2} dB with {emitters} emitter(s), by {:.2} \
             dB band by band",
            together.rmse_db(),
            alone.rmse_db()
        );
        Ok((structure, Some(note)))
    }

    /// Whether even many emitters say clearly less of held-out entries than each band says for
    /// itself: what is to be said about it. A quick look at some sensors, before any counting.
    fn share_nothing(
        &self,
        readings: &Readings,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Option<String>, EstimateError> {
        let Values::Power(power) = readings.values() else { return Ok(None) };
        if count_exact(power).is_some() {
            return Ok(None);
        }
        let some = some_of(readings, JUDGED);
        let Some(turn) = EntryTurn::new(&some, context.seed) else { return Ok(None) };
        let many = MANY.min(some.bands() / 2).min(some.sensors() / 4).max(1);
        let quiet = progress.quiet();
        let targets = Reported::new(&turn.kept);
        let mut fit = self.judged(&turn.kept, &targets, many, context, NOISE_SHARES[0])?;
        fit.iterate(ROUNDS, &quiet)?;
        let together = fit.logs.mapv(f64::exp).dot(&fit.psd);
        let kriging = Kriging::default().fit(&turn.kept, context, &quiet)?;
        let alone = kriging.predict(turn.kept.sites(), &quiet)?.power;
        let read = some.power();
        let link = some.floored_link();
        let squares = |model: &Array2<f64>| -> Vec<f64> {
            let off = |at: &(usize, usize)| link.apply(model[*at]) - link.apply(read[*at]);
            turn.held.iter().map(|at| off(at).powi(2)).collect()
        };
        let rmse = |s: &[f64]| DB_PER_LN * (s.iter().sum::<f64>() / s.len() as f64).sqrt();
        let (together, alone) = (squares(&together), squares(&alone));
        let (first, second) = (rmse(&together), rmse(&alone));
        let clear = gain(&together, &alone) > CLEAR && first > CLEARLY * second;
        Ok(clear.then(|| {
            format!(
                "every band was fitted alone: held-out readings are missed by {first:.2} dB with \
                 {many} emitter(s), by {second:.2} dB band by band"
            )
        }))
    }

    /// The number of emitters asked for, or fewer where readings without noise show it, or found.
    fn number(
        &self,
        readings: &Readings,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<usize, EstimateError> {
        if told(readings, context) {
            let asked = number_of_emitters(readings, context)?;
            return Ok(if context.start.is_some() { asked } else { shown(readings, asked) });
        }
        if let Values::Power(power) = readings.values()
            && let Some(emitters) = count_exact(power)
        {
            return Ok(emitters);
        }
        let some = some_of(readings, COUNTED);
        let targets = Reported::new(&some);
        let quiet = progress.quiet();
        let left_out = |emitters: usize, share: f64| {
            let mut fit = self.judged(&some, &targets, emitters, context, share)?;
            fit.iterate(COUNT_ROUNDS, &quiet)?;
            fit.left_out()
        };
        // Gaps leave several starts: the better one counts.
        let shares =
            if some.gaps() == 0 { &NOISE_SHARES[..1] } else { &NOISE_SHARES[..COUNT_STARTS] };
        let least = |emitters: usize| {
            let all = shares.iter().map(|&share| left_out(emitters, share));
            let all = all.collect::<Result<Vec<Vec<f64>>, EstimateError>>()?;
            let sum = |losses: &Vec<f64>| losses.iter().sum::<f64>();
            Ok(all.into_iter().min_by(|a, b| sum(a).total_cmp(&sum(b))).unwrap_or_default())
        };
        let worth = match readings.values() {
            Values::Power(_) => MORE.0,
            Values::Levels { .. } => MORE.1,
        };
        let likelier = |least: &[f64], losses: &[f64]| {
            gain(least, losses) > worth && losses.iter().sum::<f64>() < least.iter().sum()
        };
        let most = MOST.min(some.bands()).min(some.sensors());
        let numbers: Vec<usize> = (1..=most).collect();
        let mut best: Option<(usize, Vec<f64>)> = None;
        for tried in numbers.chunks(AT_ONCE) {
            progress.report(tried[0] - 1, most)?;
            let losses =
                tried.par_iter().map(|&e| least(e)).collect::<Result<Vec<_>, EstimateError>>()?;
            for (&emitters, losses) in tried.iter().zip(losses) {
                match &best {
                    Some((good, _)) if emitters > good + PATIENCE => {}
                    Some((_, least)) if !likelier(least, &losses) => {}
                    _ => best = Some((emitters, losses)),
                }
            }
            if best.as_ref().is_some_and(|(good, _)| *tried.last().unwrap_or(&0) >= good + PATIENCE)
            {
                break;
            }
        }
        Ok(best.map_or(1, |(emitters, _)| emitters))
    }

    /// The start of a fit that is only judged.
    fn judged<'a>(
        &self,
        readings: &'a Readings,
        targets: &'a Reported,
        emitters: usize,
        context: &Context<'_>,
        noise_share: f64,
    ) -> Result<FieldFit<'a>, EstimateError> {
        let fit = self.begin(readings, targets, emitters, context, noise_share)?;
        Ok(FieldFit { law_sensors: LAW_SENSORS, ..fit })
    }

    /// What the held-out sensors lose.
    fn predicted(
        &self,
        turn: &SensorTurn,
        emitters: usize,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Losses, EstimateError> {
        let quiet = progress.quiet();
        let targets = Reported::new(&turn.kept);
        let fit = self.started(&turn.kept, &targets, emitters, context, &quiet)?;
        let mut fit = FieldFit { law_sensors: LAW_SENSORS, ..fit };
        fit.run(self.rounds.unwrap_or(SENSOR_ROUNDS), &quiet)?;
        let model = fit.predict(turn.held.sites()).mapv(f64::exp).dot(&fit.psd);
        Ok(turn.losses(|sensor| model.row(sensor).to_vec()))
    }
}

/// Nothing is to be chosen, or nothing could be spared to choose by.
fn told(readings: &Readings, context: &Context<'_>) -> bool {
    let asked = context.emitters != Emitters::Auto || context.start.is_some();
    asked || readings.sensors() < FEWEST
}

/// The bands that enough sensors read to spare some of them, all where there are no gaps; None where
/// most are hardly read, and there is nothing to compare.
fn well_read(readings: &Readings) -> Option<Readings> {
    if readings.gaps() == 0 {
        return Some(readings.clone());
    }
    let sensors: Vec<usize> = (0..readings.sensors()).collect();
    let enough: Vec<bool> =
        read_by(readings, &sensors).into_iter().map(|count| count >= READ_BY).collect();
    with_most(readings, &enough)
}

/// How many of some sensors read each band.
fn read_by(readings: &Readings, sensors: &[usize]) -> Vec<usize> {
    let read = |entry: (usize, usize)| match readings.values() {
        Values::Power(power) => !power[entry].is_nan(),
        Values::Levels { levels, .. } => levels[entry] != MISSING_LEVEL,
    };
    (0..readings.bands())
        .map(|band| sensors.iter().filter(|&&sensor| read((sensor, band))).count())
        .collect()
}

/// Some of the bands; None where they are not most.
fn with_most(readings: &Readings, wanted: &[bool]) -> Option<Readings> {
    let bands: Vec<usize> = (0..wanted.len()).filter(|&band| wanted[band]).collect();
    let most = bands.len() > 1 && bands.len() * 4 >= wanted.len() * 3;
    most.then(|| readings.with_bands(&bands).ok()).flatten()
}

/// At most so many of the sensors, evenly spread over their order.
fn some_of(readings: &Readings, most: usize) -> Readings {
    let sensors = readings.sensors();
    let judged = most.min(sensors);
    let some: Vec<usize> = (0..judged).map(|i| i * sensors / judged).collect();
    // A band that only the others read keeps all of them.
    readings.subset(&some).unwrap_or_else(|_| readings.clone())
}

/// Losses at the held-out sensors of all turns.
fn all(
    turns: &[SensorTurn],
    of: impl Fn(&SensorTurn) -> Result<Losses, EstimateError> + Sync + Send,
) -> Result<Losses, EstimateError> {
    turns.par_iter().map(of).collect::<Result<Vec<_>, _>>().map(Losses::joined)
}

fn kriged(
    turn: &SensorTurn,
    context: &Context<'_>,
    progress: &Progress<'_>,
) -> Result<Losses, EstimateError> {
    let quiet = progress.quiet();
    let model = Kriging::default().fit(&turn.kept, context, &quiet)?;
    let power = model.predict(turn.held.sites(), &quiet)?.power;
    Ok(turn.losses(|sensor| power.row(sensor).to_vec()))
}

/// Readings with some entries left out.
struct EntryTurn {
    kept: Readings,
    held: Vec<(usize, usize)>,
}

impl EntryTurn {
    /// None where a band would be left without readings.
    fn new(readings: &Readings, seed: u64) -> Option<Self> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (sensors, bands) = readings.values().dim();
        let mut held: Vec<(usize, usize)> = (0..sensors * bands)
            .filter(|_| rng.random_range(0..PARTS) == 0)
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
        let kept = readings.with_values(values).ok()?;
        (!held.is_empty()).then(|| Self { kept, held })
    }
}

/// Sensors that are seen and sensors that are predicted.
struct SensorTurn {
    kept: Readings,
    held: Readings,
}

impl SensorTurn {
    /// Of the bands that both kinds of sensors read; None where most are not.
    fn new(readings: &Readings, fold: &[usize]) -> Option<Self> {
        let kept: Vec<usize> = (0..readings.sensors()).filter(|s| !fold.contains(s)).collect();
        let read = read_by(readings, &kept).into_iter().zip(read_by(readings, fold));
        let read: Vec<bool> = read.map(|(kept, held)| kept > 0 && held > 0).collect();
        let readings = with_most(readings, &read)?;
        let (kept, held) = (readings.subset(&kept).ok()?, readings.subset(fold).ok()?);
        Some(Self { kept, held })
    }

    fn losses(&self, spectrum: impl Fn(usize) -> Vec<f64>) -> Losses {
        let judge = Judge::new(&self.held);
        let mut losses = Losses::default();
        (0..self.held.sensors()).for_each(|n| losses.add(&judge, n, &spectrum(n)));
        losses
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scale::Scale;
    use crate::site::Site;

    #[test]
    fn a_turn_leaves_out_bands_that_only_one_side_reads() {
        let sites: Vec<Site> = (0..8).map(|n| Site::new(n as f64, (n * n) as f64)).collect();
        let mut power = Array2::from_shape_fn((8, 6), |(n, k)| 1.0 + (n + k) as f64);
        // Sensors 0 and 4 are held out: band 5 is read by them alone, band 0 by the others alone.
        for n in 0..8 {
            power[[n, if n % 4 == 0 { 0 } else { 5 }]] = f64::NAN;
        }
        let readings = Readings::new(sites, Values::Power(power), Scale::Absolute).unwrap();
        assert!(SensorTurn::new(&readings, &[0, 4]).is_none(), "four of six bands are not most");
        let most = readings.with_bands(&[0, 1, 2, 3, 4]).unwrap();
        let turn = SensorTurn::new(&most, &[0, 4]).unwrap();
        assert_eq!((turn.kept.bands(), turn.held.bands()), (4, 4));
        assert_eq!((turn.kept.sensors(), turn.held.sensors()), (6, 2));
    }

    #[test]
    fn bands_that_hardly_any_sensor_reads_cannot_be_compared() {
        let sites: Vec<Site> = (0..20).map(|n| Site::new(n as f64, (n * n) as f64)).collect();
        let all = Array2::from_shape_fn((20, 8), |(n, k)| 1.0 + (n + k) as f64);
        let told = |power: &Array2<f64>| {
            let values = Values::Power(power.clone());
            let readings = Readings::new(sites.clone(), values, Scale::Absolute).unwrap();
            well_read(&readings).map(|some| some.bands())
        };
        assert_eq!(told(&all), Some(8));
        let mut gaps = all.clone();
        (0..18).for_each(|n| gaps[[n, 7]] = f64::NAN);
        assert_eq!(told(&gaps), Some(7));
        (0..18).for_each(|n| (4..8).for_each(|k| gaps[[n, k]] = f64::NAN));
        assert_eq!(told(&gaps), None);
    }
}
