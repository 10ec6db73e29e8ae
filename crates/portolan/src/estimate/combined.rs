//! Several models as one: a weighted mean in dB, and a spread that holds what each is unsure of and
//! how far they disagree.

use ndarray::Array2;

use std::sync::Arc;

use super::{Change, Saved};
use crate::error::EstimateError;
use crate::link::DB_PER_LN;
use crate::model::{Archive, LeftOut, ModelEmitter, Prediction, Predictor, damaged};
use crate::points::Points;
use crate::progress::Progress;
use crate::readings::Readings;
use crate::site::Site;

pub(super) const KIND: &str = "combined";

/// Weighted members; the weights sum to 1.
pub(super) struct Combined {
    members: Vec<(f64, Arc<dyn Predictor>)>,
}

impl Combined {
    pub fn new(members: Vec<(f64, Arc<dyn Predictor>)>) -> Self {
        Self { members }
    }

    pub fn load(saved: &Saved<'_>) -> Result<Self, EstimateError> {
        let archive = saved.archive;
        let weights = archive.finite("weights")?;
        let kinds = archive.text("kinds")?;
        let sum: f64 = weights.iter().sum();
        let sound = weights.iter().all(|w| *w >= 0.0) && (sum - 1.0).abs() < 1e-9;
        if weights.len() != kinds.len() || !sound {
            return Err(damaged("weights", "does not fit the members").into());
        }
        let members = weights.iter().zip(kinds).enumerate();
        let members = members
            .map(|(i, (weight, kind))| {
                let own = archive.inside(&format!("member_{i}_"));
                Ok((*weight, saved.of(&own).load(kind)?.into()))
            })
            .collect::<Result<_, EstimateError>>()?;
        Ok(Self { members })
    }

    /// Weighted mean of something that every member has.
    fn mean(&self, of: impl Fn(usize) -> Option<Array2<f64>>) -> Option<Array2<f64>> {
        let mut sum: Option<Array2<f64>> = None;
        for (i, (weight, _)) in self.members.iter().enumerate() {
            let own = of(i)? * *weight;
            sum = Some(match sum {
                Some(sum) => sum + own,
                None => own,
            });
        }
        sum
    }

    /// Mean in dB, and the spread that holds what each member is unsure of and how far they disagree.
    fn mixture(
        &self,
        value: &dyn Fn(usize) -> Option<Array2<f64>>,
        spread: &dyn Fn(usize) -> Option<Array2<f64>>,
    ) -> Option<(Array2<f64>, Option<Array2<f64>>)> {
        let mean = self.mean(|i| value(i).map(|v| logs(&v)))?;
        let square = self.mean(|i| {
            let off = (logs(&value(i)?) - &mean) * DB_PER_LN;
            Some(spread(i)?.mapv(|s| s * s) + off.mapv(|d| d * d))
        });
        Some((mean.mapv(f64::exp), square.map(|s| s.mapv(f64::sqrt))))
    }

    /// The mixture of what every member says of readings that it is not given.
    fn left_out(
        &self,
        ask: impl Fn(&dyn Predictor) -> Result<Option<LeftOut>, EstimateError>,
    ) -> Result<Option<LeftOut>, EstimateError> {
        let each: Option<Vec<LeftOut>> = self
            .members
            .iter()
            .map(|(_, member)| ask(member.as_ref()))
            .collect::<Result<_, _>>()?;
        let Some(each) = each else { return Ok(None) };
        let found =
            self.mixture(&|i| Some(each[i].power.clone()), &|i| each[i].reading_spread_db.clone());
        Ok(found.map(|(power, reading_spread_db)| LeftOut { power, reading_spread_db }))
    }

    /// The mixture of what every member predicts.
    fn mixed(
        &self,
        progress: &Progress<'_>,
        ask: impl Fn(&dyn Predictor, &Progress<'_>) -> Result<Prediction, EstimateError>,
    ) -> Result<Prediction, EstimateError> {
        let share = |i: usize| i as f64 / self.members.len() as f64;
        let each = self
            .members
            .iter()
            .enumerate()
            .map(|(i, (_, member))| ask(member.as_ref(), &progress.part(share(i)..share(i + 1))))
            .collect::<Result<Vec<Prediction>, _>>()?;
        let (power, spread_db) = self
            .mixture(&|i| Some(each[i].power.clone()), &|i| each[i].spread_db.clone())
            .ok_or_else(|| EstimateError::Numerical("a combination of nothing".into()))?;
        let mut found = Prediction::of_power(power);
        found.spread_db = spread_db;
        let reading = self.mixture(&|i| Some(each[i].reading().0.clone()), &|i| {
            each[i].reading_spread_db.clone()
        });
        if let Some((heard, spread)) = reading {
            found.reading_spread_db = spread;
            found.chance_heard = self.mean(|i| each[i].chance_heard.clone());
            found.heard = found.chance_heard.is_some().then_some(heard);
        }
        Ok(found)
    }
}

fn logs(power: &Array2<f64>) -> Array2<f64> {
    power.mapv(|x| x.max(f64::MIN_POSITIVE).ln())
}

impl Predictor for Combined {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn predict(
        &self,
        at: &[Site],
        bands: &[usize],
        progress: &Progress<'_>,
    ) -> Result<Prediction, EstimateError> {
        self.mixed(progress, |member, part| member.predict(at, bands, part))
    }

    fn predict_points(
        &self,
        at: &Points,
        bands: &[usize],
        progress: &Progress<'_>,
    ) -> Result<Prediction, EstimateError> {
        self.mixed(progress, |member, part| member.predict_points(at, bands, part))
    }

    fn at_time(&self, time_s: f64) -> Option<Box<dyn Predictor>> {
        let there = |(weight, member): &(f64, Arc<dyn Predictor>)| {
            (*weight, member.at_time(time_s).map(Arc::from))
        };
        let found: Vec<(f64, Option<Arc<dyn Predictor>>)> =
            self.members.iter().map(there).collect();
        if found.iter().all(|(_, there)| there.is_none()) {
            return None;
        }
        let pairs = found.into_iter().zip(&self.members);
        let members = pairs.map(|((weight, there), (_, member))| {
            (weight, there.unwrap_or_else(|| member.clone()))
        });
        Some(Box::new(Self { members: members.collect() }))
    }

    fn changes(
        &self,
        readings: &Readings,
        rate: f64,
        progress: &Progress<'_>,
    ) -> Result<Option<Vec<Change>>, EstimateError> {
        for (_, member) in &self.members {
            if let Some(found) = member.changes(readings, rate, progress)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn noise_db(&self) -> Option<Vec<f64>> {
        let each: Option<Vec<Vec<f64>>> = self.members.iter().map(|(_, m)| m.noise_db()).collect();
        let each = each?;
        let bands = each.first().map_or(0, Vec::len);
        let of = |band: usize| {
            let squares = self.members.iter().zip(&each).map(|((w, _), n)| w * n[band].powi(2));
            squares.sum::<f64>().sqrt()
        };
        Some((0..bands).map(of).collect())
    }

    fn leave_one_out(&self, sensors: &[Site]) -> Result<Option<LeftOut>, EstimateError> {
        self.left_out(|member| member.leave_one_out(sensors))
    }

    fn predict_without(&self, left_out: &[Site]) -> Result<Option<LeftOut>, EstimateError> {
        self.left_out(|member| member.predict_without(left_out))
    }

    fn update(&self, readings: &Readings) -> Result<Option<Box<dyn Predictor>>, EstimateError> {
        let update = |(weight, member): &(f64, Arc<dyn Predictor>)| {
            Ok(member.update(readings)?.map(|member| (*weight, member.into())))
        };
        let members: Option<Vec<_>> =
            self.members.iter().map(update).collect::<Result<_, EstimateError>>()?;
        Ok(members.map(|members| Box::new(Self { members }) as Box<dyn Predictor>))
    }

    fn emitters(&self) -> Option<Vec<ModelEmitter>> {
        self.members.iter().find_map(|(_, member)| member.emitters())
    }

    fn relearn(&self, readings: &Readings) -> Result<Option<Box<dyn Predictor>>, EstimateError> {
        let relearn = |(weight, member): &(f64, Arc<dyn Predictor>)| {
            Ok(member.relearn(readings)?.map(|member| (*weight, member.into())))
        };
        let members: Option<Vec<_>> =
            self.members.iter().map(relearn).collect::<Result<_, EstimateError>>()?;
        Ok(members.map(|members| Box::new(Self { members }) as Box<dyn Predictor>))
    }

    fn save(&self, archive: &mut Archive) {
        let weights: Vec<f64> = self.members.iter().map(|(weight, _)| *weight).collect();
        archive.put_vector("weights", &weights);
        archive.put_text("kinds", self.members.iter().map(|(_, m)| m.kind().to_string()));
        for (i, (_, member)) in self.members.iter().enumerate() {
            let mut own = Archive::default();
            member.save(&mut own);
            archive.put_all(&format!("member_{i}_"), &own);
        }
    }
}
