//! Not heard: fits that are told where receivers listened and heard nothing, beside fits that are
//! not.

use super::splits::{Rule, Split};
use super::surveys::Survey;
use super::tally::{Compared, area_under_curve, compare, coverage_90, decibels, mean, rmse_db};
use super::{Input, Study, predict};
use crate::commands::MethodCall;
use crate::failure::Failure;

/// A quarter of the places trains.
const RULE: Rule = Rule::Share(25);

/// One of so many heard readings lies below the floor.
const FLOOR: usize = 50;

/// One fit.
pub struct Job<'a> {
    survey: &'a Survey,
    split: Split,
    call: &'a MethodCall,
    silence: bool,
}

/// What a fit said of heard and of unheard entries.
#[derive(Default)]
pub struct Heard {
    heard: Vec<Compared>,
    /// By how much the field lies above the floor at unheard entries, in dB.
    overshoot: Vec<f64>,
    /// How sure the fit is that an entry is heard, and whether it was.
    scores: Vec<(f64, bool)>,
    floor: f64,
}

/// A survey, and what each method said.
pub struct Row<'a> {
    pub survey: &'a Survey,
    /// Means over the splits.
    pub floor_db: f64,
    pub share_heard: f64,
    pub outcomes: Vec<Outcome>,
}

/// A method with unheard entries dropped, or used.
pub struct Outcome {
    pub label: String,
    pub silence: bool,
    pub heard_rmse_db: Option<f64>,
    pub overshoot_db: Option<f64>,
    pub combined_db: Option<f64>,
    pub area: Option<f64>,
    pub coverage_90: Option<f64>,
}

fn surveys<'a>(study: &Study<'a>) -> impl Iterator<Item = &'a Survey> {
    study.surveys.iter().filter(|survey| survey.gaps_are_silence)
}

pub fn jobs<'a>(study: &Study<'a>) -> Vec<Job<'a>> {
    let mut jobs = Vec::new();
    for survey in surveys(study) {
        for call in study.calls {
            for silence in [false, true] {
                for number in 0..study.splits {
                    let split = Split::new(survey, RULE, number, study.seed);
                    jobs.push(Job { survey, split, call, silence });
                }
            }
        }
    }
    jobs
}

impl Job<'_> {
    pub fn run(&self) -> Result<Heard, Failure> {
        let input = if self.silence { Input::Silence } else { Input::Heard };
        let found = predict(self.survey, &self.split, self.call, input)?;
        let (_, train) = self.split.training(self.survey);
        let (_, test) = self.split.testing(self.survey);
        let mut levels: Vec<f64> =
            train.iter().chain(&test).copied().filter(|v| !v.is_nan()).collect();
        levels.sort_by(f64::total_cmp);
        let floor = levels[levels.len() / FLOOR];
        let mut heard = Heard { heard: compare(&test, &found), floor, ..Heard::default() };
        for (at, level) in test.indexed_iter() {
            let field = decibels(found.power[at]);
            if level.is_nan() {
                heard.overshoot.push((field - floor).max(0.0));
            }
            // A method without chances orders entries by its field.
            let score = found.chance_heard.as_ref().map_or(field, |chance| chance[at]);
            heard.scores.push((score, !level.is_nan()));
        }
        Ok(heard)
    }
}

/// Gathers what [`jobs`] found, in their order.
pub fn rows<'a>(study: &Study<'a>, found: Vec<Heard>) -> Vec<Row<'a>> {
    let mut found = found.into_iter();
    let mut rows = Vec::new();
    for survey in surveys(study) {
        let mut row = Row { survey, floor_db: f64::NAN, share_heard: f64::NAN, outcomes: vec![] };
        for call in study.calls {
            for silence in [false, true] {
                let splits: Vec<Heard> = found.by_ref().take(study.splits as usize).collect();
                row.floor_db = mean(splits.iter().map(|s| s.floor)).unwrap_or(f64::NAN);
                let heard = |s: &(f64, bool)| f64::from(u8::from(s.1));
                let scores = || splits.iter().flat_map(|s| &s.scores);
                row.share_heard = mean(scores().map(heard)).unwrap_or(f64::NAN);
                row.outcomes.push(outcome(&call.label, silence, &splits));
            }
        }
        rows.push(row);
    }
    rows
}

fn outcome(label: &str, silence: bool, splits: &[Heard]) -> Outcome {
    let heard = || splits.iter().flat_map(|s| &s.heard);
    let above = || splits.iter().flat_map(|s| &s.overshoot).map(|e| e * e);
    let scores = splits.iter().flat_map(|s| s.scores.iter().copied()).collect();
    Outcome {
        label: label.to_string(),
        silence,
        heard_rmse_db: rmse_db(heard()),
        overshoot_db: mean(above()).map(f64::sqrt),
        combined_db: mean(heard().map(|c| c.error().powi(2)).chain(above())).map(f64::sqrt),
        area: area_under_curve(scores),
        coverage_90: coverage_90(heard()),
    }
}
