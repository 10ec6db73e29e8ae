//! Readings that were taken at several times. The level of a band drifts, and surveys jitter about
//! that: where the readings show it, levels are found for every band and session, taken out before a
//! method is fitted, and put back at the moment that is asked for, with what is not known of them.
//! Between sessions and beyond them the level is predicted, and its spread grows.

mod changes;
mod law;
mod levels;
mod rows;
mod sessions;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use ndarray::Array2;
use rayon::prelude::*;

use self::law::TimeLaw;
use self::levels::{BandLevels, LevelAt};
use self::rows::Rows;
use self::sessions::Sessions;
use super::{Context, Saved};
use crate::error::{EstimateError, InputError};
use crate::link::DB_PER_LN;
use crate::link::Link;
use crate::model::{Archive, LeftOut, Model, ModelEmitter, Prediction, Predictor, damaged};
use crate::points::Points;
use crate::progress::Progress;
use crate::readings::{Readings, Values};
use crate::site::Site;

pub use changes::{Change, ChangeKind};

pub(super) const KIND: &str = "times";

/// Fits readings of one time as they are, and others without what their levels do in time.
pub(super) fn in_time(
    readings: &Readings,
    context: &Context<'_>,
    progress: &Progress<'_>,
    fit: impl FnOnce(&Readings, &Context<'_>, &Progress<'_>) -> Result<Model, EstimateError>,
) -> Result<Model, EstimateError> {
    let Some(time_s) = readings.time_s() else { return fit(readings, context, progress) };
    let unknown = time_s.iter().filter(|t| t.is_nan()).count();
    let mut notes = Vec::new();
    let found = seen(readings, time_s, &mut notes, &progress.part(0.0..0.3))?;
    let Some(drift) = found else {
        let mut model = fit(readings, context, progress)?;
        model.report_mut().notes.extend(notes);
        return Ok(model);
    };
    if unknown > 0 {
        notes.push(format!(
            "{unknown} of {} readings have no time: they take the mean level of their band",
            time_s.len()
        ));
    }
    let drift = Arc::new(drift);
    let model = fit(&drift.levelled(readings)?, context, &progress.part(0.3..1.0))?;
    let (law, sessions) = (drift.law, drift.rows.sessions.count());
    let deviation = |variance: f64| DB_PER_LN * variance.sqrt();
    notes.push(format!(
        "times are used: {sessions} surveys, the level of a band drifts by {:.1} dB and differs by \
         {:.1} dB from survey to survey; maps are of the latest unless asked otherwise",
        deviation(law.drift),
        deviation(law.jitter)
    ));
    let wrap = |inner| Arc::new(Timed { drift, inner, moment: None }) as Arc<dyn Predictor>;
    let mut model = model.in_time(readings, wrap);
    let report = model.report_mut();
    report.add_fitted(&[
        ("surveys", sessions as f64),
        ("drift_db", deviation(law.drift)),
        ("drift_days", law.drift_s / 86_400.0),
        ("jitter_db", deviation(law.jitter)),
    ]);
    report.notes.extend(notes);
    Ok(model)
}

/// What is seen to change in time; None, and why not, where nothing is.
fn seen(
    readings: &Readings,
    time_s: &[f64],
    notes: &mut Vec<String>,
    progress: &Progress<'_>,
) -> Result<Option<Drift>, EstimateError> {
    let found = Sessions::of(time_s, readings.sites());
    let sessions = found.count();
    if sessions < 2 {
        let days = found.span().map_or(0.0, |(from, to)| (to - from) / 86_400.0);
        if days >= LONG_VISIT_DAYS {
            notes.push(format!(
                "times span {days:.0} days without a gap that separates surveys, and few places \
                 were read twice: they are taken as one survey"
            ));
        }
        return Ok(None);
    }
    if let Err(why) = usable(readings) {
        notes.push(format!("times of {sessions} surveys are not used: {why}"));
        return Ok(None);
    }
    let rows = Rows::of(readings, time_s);
    let law = law::fit(&rows, progress)?;
    if law.is_none() {
        notes.push(format!(
            "times of {sessions} surveys are not used: no change from one to another can be told \
             from noise"
        ));
    }
    Ok(law.map(|law| Drift::new(rows, law)))
}

/// One survey that lasts longer is said to be one.
const LONG_VISIT_DAYS: f64 = 2.0;
/// More readings than this take too long.
const MOST_READINGS: usize = 200_000;

/// Whether levels can be taken out of the readings.
fn usable(readings: &Readings) -> Result<(), &'static str> {
    if readings.sensors() > MOST_READINGS {
        return Err("there are more than 200000 readings");
    }
    if readings.not_heard().is_some() {
        return Err("some entries were not heard, and levels cannot be taken out of silence");
    }
    logarithmic(readings)
}

fn logarithmic(readings: &Readings) -> Result<(), &'static str> {
    match readings.values() {
        Values::Power(_) if readings.link() == Link::LOG => Ok(()),
        Values::Power(_) => Err("levels need powers above zero"),
        Values::Levels { .. } => Err("levels of a quantiser cannot be shifted"),
    }
}

/// Readings with the law of their levels.
struct Drift {
    rows: Rows,
    law: TimeLaw,
    bands: OnceLock<Vec<BandLevels>>,
}

impl Drift {
    fn new(rows: Rows, law: TimeLaw) -> Self {
        Self { rows, law, bands: OnceLock::new() }
    }

    fn bands(&self) -> &[BandLevels] {
        self.bands.get_or_init(|| {
            let all = 0..self.rows.bands();
            all.into_par_iter().map(|band| BandLevels::of(&self.rows, band, &self.law)).collect()
        })
    }

    /// The latest moment with readings.
    fn latest_s(&self) -> f64 {
        self.rows.sessions.span().map_or(f64::NAN, |(_, latest)| latest)
    }

    /// Levels of some bands at a moment.
    fn at(&self, time_s: f64, bands: &[usize]) -> Vec<LevelAt> {
        let known = self.bands();
        bands.par_iter().map(|&band| known[band].at(&self.rows, &self.law, time_s)).collect()
    }

    /// What each row's level is above the mean of its band, rows x bands.
    fn of_rows(&self) -> Array2<f64> {
        let all: Vec<usize> = (0..self.rows.bands()).collect();
        let mut levels = Array2::zeros(self.rows.values.dim());
        let mut known: HashMap<usize, Vec<LevelAt>> = HashMap::new();
        for (row, session) in self.rows.session.iter().enumerate() {
            let Some(session) = *session else { continue };
            let at = known.entry(session).or_insert_with(|| self.at(self.rows.time_s[row], &all));
            levels.row_mut(row).iter_mut().zip(at).for_each(|(level, at)| *level = at.mean);
        }
        levels
    }

    /// The readings without what their levels do in time, and without times.
    fn levelled(&self, readings: &Readings) -> Result<Readings, EstimateError> {
        let factor = self.of_rows().mapv(|level| (-level).exp());
        Ok(readings.levelled(&factor)?)
    }

    /// All readings, those of an update among them, likewise.
    fn all_levelled(&self, update: &Readings) -> Result<Readings, EstimateError> {
        let power = (&self.rows.values - &self.of_rows()).mapv(f64::exp);
        let all = Readings::further(self.rows.sites.clone(), Values::Power(power), update.scale())?
            .with_repeats(self.rows.repeats.clone())?
            .with_noise_db(self.rows.noise_db.clone())?;
        Ok(all)
    }
}

/// A model of levelled readings that is asked at a moment.
struct Timed {
    drift: Arc<Drift>,
    inner: Arc<dyn Predictor>,
    /// The latest where None.
    moment: Option<f64>,
}

pub(super) fn load(saved: &Saved<'_>) -> Result<Box<dyn Predictor>, EstimateError> {
    let archive = saved.archive;
    let kind = archive.word("kind")?;
    if kind == KIND {
        return Err(damaged("kind", "is one of times within another").into());
    }
    let rows = Rows::load(archive, saved.bands)?;
    let drift = Arc::new(Drift::new(rows, TimeLaw::load(archive)?));
    let inner = saved.of(&archive.inside("inner_")).load(kind)?.into();
    let moment = archive.finite("moment")?.first().copied();
    Ok(Box::new(Timed { drift, inner, moment }))
}

impl Timed {
    fn levels(&self, bands: &[usize]) -> Vec<LevelAt> {
        self.drift.at(self.moment.unwrap_or_else(|| self.drift.latest_s()), bands)
    }

    /// A prediction of the levelled field with the levels of each row's moment.
    fn moved<'a>(
        &self,
        mut found: Prediction,
        bands: &[usize],
        levels: impl Fn(usize) -> &'a [LevelAt],
    ) -> Prediction {
        let square = DB_PER_LN * DB_PER_LN;
        let more = self.more_noise().unwrap_or_else(|| vec![0.0; self.drift.rows.bands()]);
        for (row, mut powers) in found.power.rows_mut().into_iter().enumerate() {
            let own = powers.iter_mut().zip(levels(row));
            own.for_each(|(power, level)| *power *= level.mean.exp());
        }
        let grown = |own: f64, variance: f64| (own * own + variance).sqrt();
        for (row, mut spreads) in found.spread_db.iter_mut().flat_map(|s| s.rows_mut()).enumerate()
        {
            let own = spreads.iter_mut().zip(levels(row));
            own.for_each(|(spread, level)| *spread = grown(*spread, square * level.variance));
        }
        let readings = found.reading_spread_db.iter_mut().flat_map(|s| s.rows_mut());
        for (row, mut spreads) in readings.enumerate() {
            for ((spread, level), &band) in spreads.iter_mut().zip(levels(row)).zip(bands) {
                *spread = grown(*spread, square * level.variance + more[band]);
            }
        }
        found
    }

    /// What the noise variance of a reading of each band grows by, for the freedom that levels took.
    fn more_noise(&self) -> Option<Vec<f64>> {
        let noise = self.inner.noise_db()?;
        let grown = |(noise, band): (f64, &BandLevels)| noise * noise * (band.of_noise - 1.0);
        Some(noise.into_iter().zip(self.drift.bands()).map(grown).collect())
    }
}

fn widen(spread: &mut Option<Array2<f64>>, more: &[f64]) {
    for (mut column, more) in spread.iter_mut().flat_map(|s| s.columns_mut()).zip(more) {
        column.mapv_inplace(|own| (own * own + more).sqrt());
    }
}

impl Predictor for Timed {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn predict(
        &self,
        at: &[Site],
        bands: &[usize],
        progress: &Progress<'_>,
    ) -> Result<Prediction, EstimateError> {
        let found = self.inner.predict(at, bands, progress)?;
        let levels = self.levels(bands);
        Ok(self.moved(found, bands, |_| &levels))
    }

    fn predict_points(
        &self,
        at: &Points,
        bands: &[usize],
        progress: &Progress<'_>,
    ) -> Result<Prediction, EstimateError> {
        let Some(time_s) = at.time_s() else { return self.predict(at.sites(), bands, progress) };
        let found = self.inner.predict(at.sites(), bands, progress)?;
        let mut moments: Vec<u64> = time_s.iter().map(|t| t.to_bits()).collect();
        moments.sort_unstable();
        moments.dedup();
        let levels: HashMap<u64, Vec<LevelAt>> = moments
            .into_iter()
            .map(|bits| {
                let moment = Some(f64::from_bits(bits)).filter(|t| !t.is_nan()).or(self.moment);
                let moment = moment.unwrap_or_else(|| self.drift.latest_s());
                (bits, self.drift.at(moment, bands))
            })
            .collect();
        Ok(self.moved(found, bands, |row| &levels[&time_s[row].to_bits()]))
    }

    fn power(
        &self,
        at: &[Site],
        bands: &[usize],
        progress: &Progress<'_>,
    ) -> Result<Array2<f64>, EstimateError> {
        let mut power = self.inner.power(at, bands, progress)?;
        for (mut column, level) in power.columns_mut().into_iter().zip(self.levels(bands)) {
            let factor = level.mean.exp();
            column.mapv_inplace(|power| power * factor);
        }
        Ok(power)
    }

    fn power_costs_less(&self) -> bool {
        self.inner.power_costs_less()
    }

    fn sees_heights(&self) -> bool {
        self.inner.sees_heights()
    }

    fn at_time(&self, time_s: f64) -> Option<Box<dyn Predictor>> {
        let (drift, inner) = (self.drift.clone(), self.inner.clone());
        Some(Box::new(Self { drift, inner, moment: Some(time_s) }))
    }

    fn noise_db(&self) -> Option<Vec<f64>> {
        let (noise, more) = (self.inner.noise_db()?, self.more_noise()?);
        Some(noise.iter().zip(more).map(|(noise, more)| (noise * noise + more).sqrt()).collect())
    }

    fn leave_one_out(&self, sensors: &[Site]) -> Result<Option<LeftOut>, EstimateError> {
        let Some(mut left) = self.inner.leave_one_out(sensors)? else { return Ok(None) };
        let levels = self.drift.of_rows();
        if levels.dim() != left.power.dim() {
            return Ok(None);
        }
        left.power.zip_mut_with(&levels, |power, level| *power *= level.exp());
        if let Some(more) = self.more_noise() {
            widen(&mut left.reading_spread_db, &more);
        }
        Ok(Some(left))
    }

    fn update(&self, readings: &Readings) -> Result<Option<Box<dyn Predictor>>, EstimateError> {
        usable(readings).map_err(|why| InputError::Request(format!("the update: {why}")))?;
        // New readings also tell of the levels before them.
        let rows = self.drift.rows.with(readings);
        let drift = Arc::new(Drift::new(rows, self.drift.law));
        let Some(inner) = self.inner.relearn(&drift.all_levelled(readings)?)? else {
            return Ok(None);
        };
        Ok(Some(Box::new(Self { drift, inner: inner.into(), moment: self.moment })))
    }

    fn emitters(&self) -> Option<Vec<ModelEmitter>> {
        self.inner.emitters()
    }

    fn changes(
        &self,
        readings: &Readings,
        rate: f64,
        progress: &Progress<'_>,
    ) -> Result<Option<Vec<Change>>, EstimateError> {
        logarithmic(readings)
            .map_err(|why| InputError::Request(format!("the new readings: {why}")))?;
        let unknown = vec![f64::NAN; readings.sensors()];
        let new = Rows::of(readings, readings.time_s().unwrap_or(&unknown));
        let silent = readings.not_heard().map(|silent| &silent.entries);
        changes::changes(&self.drift, &new, silent, rate, progress).map(Some)
    }

    fn save(&self, archive: &mut Archive) {
        self.drift.law.save(archive);
        self.drift.rows.save(archive);
        archive.put_vector("moment", self.moment.as_slice());
        archive.put_text("kind", [self.inner.kind().to_string()]);
        let mut own = Archive::default();
        self.inner.save(&mut own);
        archive.put_all("inner_", &own);
    }
}

#[cfg(test)]
mod tests;
