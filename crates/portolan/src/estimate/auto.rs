//! The default: several methods judged at sensors that they have not seen. Where bands are sums of
//! emitters the best one is used; where every band is its own, the methods are combined, with
//! weights from cross-validation by sensor and by box.
//!
//! Every candidate is fitted once, to all readings, and then predicts each sensor from the others:
//! Gaussian processes and splines can leave a sensor out without fitting again (Rippa 1999;
//! Rasmussen and Williams 2006, section 5.4.2). Beyond a few thousand sensors, where they look at
//! neighbourhoods only, one part of the sensors is held out instead. How much is compared follows
//! from the readings alone, so that the same readings lead to the same choice on any machine.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::combined::Combined;
use super::emitters::{completed, start_factors};
use super::field::{Structure, independent};
use super::folds::{spread_folds, thinned};
use super::heights::in_space;
use super::held_out::{Judge, Losses};
use super::obstructed::beside;
use super::robust::{WILD, tamed};
use super::stacking::{Weighed, weighed};
use super::{Capability, Context, Emitters, Entry, Field, Kriging, Method, OptionSpec, Options};
use crate::error::{EstimateError, InputError};
use crate::gaussian_process::Family;
use crate::model::{Candidate, Model, Predictor};
use crate::progress::Progress;
use crate::readings::Readings;

const OWN: &[OptionSpec] = &[OptionSpec {
    name: "folds",
    default: "none: every sensor is left out in turn",
    takes: "2 to 20: fit to parts of the sensors instead, so many times",
}];
pub(super) const OPTIONS: &[&[OptionSpec]] = &[OWN];

/// A candidate is left for one that loses less by `SURE` standard errors over the sensors, or by
/// `HINT` with an error below the share `MARGIN` of its own: smaller differences are luck.
const SURE: f64 = 4.0;
const HINT: f64 = 1.0;
const MARGIN: f64 = 0.95;
/// A candidate that is ahead by this much ends the comparison.
const DECIDED: f64 = 0.9;
/// Fewer sensors than this cannot be compared on.
const FEWEST: usize = 4;
/// Where no sensor can be left out by itself, this share of them is held out.
const HELD_PARTS: usize = 5;
/// More held-out sensors than this decide nothing.
const MOST_HELD: usize = 600;
/// Places up to which methods are weighed; more take too long to leave out.
const MOST_WEIGHED: usize = 1500;

/// The best of several methods, by what they predict at sensors that they have not seen.
///
/// ```
/// use portolan::estimate::{Auto, Method};
/// use portolan::{Context, Emitters, Grid, Progress};
/// # use portolan::sense::{SensorLayout, Sensing, sense};
/// # use portolan::simulate::{Scenario, simulate};
/// let grid = Grid::new(24, 24, 1.0)?;
/// let truth = simulate(&Scenario { bands: 8, emitters: 2, seed: 3, ..Scenario::new(grid) })?;
/// let readings = sense(&truth, &Sensing::exact(SensorLayout::Count(60), 0))?;
/// let context = Context { emitters: Emitters::Count(2), ..Context::default() };
/// let model = Auto::default().fit(&readings, &context, &Progress::silent())?;
/// let report = model.report();
/// let judged = |name: &str| report.candidates.iter().any(|c| c.method == name && c.rmse_db.is_some());
/// assert!(judged("kriging") && judged(report.chosen.as_deref().unwrap()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Auto {
    /// Fit to parts of the sensors, so many times; by default every sensor is left out in turn.
    pub folds: Option<usize>,
}

/// This method in the register.
pub(super) const ENTRY: Entry = Entry::new(
    "auto",
    "several methods, chosen or combined by how they predict sensors left out (the default)",
    build,
)
.with_revision(9)
.with_capabilities(&[
    Capability::Spread,
    Capability::Start,
    Capability::Emitters,
    Capability::Transmitters,
    Capability::Obstacles,
    Capability::Heights,
    Capability::Times,
])
.with_options(OPTIONS)
.with_kinds(&[(super::combined::KIND, |saved| Ok(Box::new(Combined::load(saved)?)))]);

pub(super) fn build(options: &Options) -> Result<Box<dyn Method>, InputError> {
    Ok(Box::new(Auto { folds: options.count("folds", 2..=20)? }))
}

/// What is compared, in the order in which ties fall.
struct Entrant {
    label: &'static str,
    /// The name in the register.
    name: &'static str,
    /// What it counts in a combination before any sensor was left out.
    share: f64,
    method: Box<dyn Method>,
}

/// A method that takes part in a combination.
struct Member {
    label: &'static str,
    share: f64,
    model: Model,
}

fn entrants() -> Vec<Entrant> {
    let rough = Kriging::default();
    let smooth = Kriging { covariance: Family::Matern32, ..rough };
    let entrant =
        |label, name, share, method: Box<dyn Method>| Entrant { label, name, share, method };
    vec![
        entrant("kriging", "kriging", 0.45, Box::new(rough)),
        entrant("field", "field", 0.45, Box::<Field>::default()),
        // Smooth fields are far off where they go on beyond the sensors.
        entrant("kriging:covariance=matern32", "kriging", 0.1, Box::new(smooth)),
    ]
}

impl Method for Auto {
    fn fit(
        &self,
        readings: &Readings,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Model, EstimateError> {
        beside(readings, context, progress, |readings, context, progress| {
            in_space(readings, context, progress, |readings, context, progress| {
                self.fitted(readings, context, progress)
            })
        })
    }
}

impl Auto {
    fn fitted(
        &self,
        readings: &Readings,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Model, EstimateError> {
        // A start that no candidate could use would look like candidates that failed.
        start_factors(readings, context)?;
        // Once for all candidates.
        let whole = completed(readings)?;
        let readings = whole.as_ref().unwrap_or(readings);
        let entrants = entrants();
        if readings.sensors() < FEWEST {
            let Entrant { label, method, .. } = &entrants[0];
            let mut model = method.fit(readings, context, progress)?;
            let note = format!("chose {label}: too few sensors to compare methods");
            model.report_mut().notes.push(note);
            model.report_mut().chosen = Some(label.to_string());
            return Ok(model);
        }
        // Found once: every fit of `field` is of the same kind.
        let (structure, note) = self.structure(readings, context, &progress.part(0.0..0.4))?;
        let rest = progress.part(0.4..1.0);
        let mut model = match structure {
            // Readings of the strongest band alone are chosen ones: they mislead path loss.
            Some(Structure::Bands) if readings.not_heard().is_some_and(|n| n.below.is_some()) => {
                let mut model = Kriging::default().fit(readings, context, &rest)?;
                model.report_mut().chosen = Some("kriging".into());
                model
            }
            // Where silence counts, `field` contains kriging's model of it already.
            Some(Structure::Bands) if readings.not_heard().is_some() => {
                let mut model = IndependentBands.fit(readings, context, &rest)?;
                model.report_mut().chosen = Some("field".into());
                model
            }
            Some(Structure::Bands) => {
                let tamed = tamed(readings, &rest.part(0.0..0.1))?;
                let steady = tamed.as_ref().unwrap_or(readings);
                let part = rest.part(0.1..1.0);
                let mut model = self.combined(entrants, steady, context, &part)?;
                model.report_mut().notes.extend(tamed.map(|_| WILD.to_string()));
                model
            }
            Some(Structure::Emitters(found)) => {
                let emitters = match context.emitters {
                    Emitters::Auto if context.start.is_none() => Emitters::Count(found),
                    // A number that was asked for stands: `field` says what becomes of it.
                    asked => asked,
                };
                let context = &Context { emitters, ..*context };
                let (runs, best) = self.race(&entrants, readings, context, &rest)?;
                chosen(&entrants, runs, best, readings, context, &rest)?
            }
            None => {
                let some: Vec<Entrant> =
                    entrants.into_iter().filter(|e| e.name != "field").collect();
                let (runs, best) = self.race(&some, readings, context, &rest)?;
                chosen(&some, runs, best, readings, context, &rest)?
            }
        };
        model.report_mut().notes.extend(note);
        Ok(model)
    }
}

/// `field` for independent bands.
struct IndependentBands;

impl Method for IndependentBands {
    fn fit(
        &self,
        readings: &Readings,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Model, EstimateError> {
        independent::fit(readings, context, progress)
    }
}

/// How one entrant did.
#[derive(Default)]
struct Run {
    /// Fitted to all readings, where it was.
    model: Option<Model>,
    /// None where it failed or was not judged.
    losses: Option<Losses>,
}

impl Run {
    fn beats(&self, other: &Run) -> bool {
        let (Some(own), Some(others)) = (&self.losses, &other.losses) else {
            return self.losses.is_some();
        };
        let gain = others.gain(own);
        gain > SURE || (gain > HINT && own.rmse_db() < MARGIN * others.rmse_db())
    }

    /// So far ahead that nothing else needs to be looked at.
    fn settles(&self, other: &Run) -> bool {
        let (Some(own), Some(others)) = (&self.losses, &other.losses) else { return false };
        others.gain(own) > SURE && own.rmse_db() < DECIDED * others.rmse_db()
    }
}

impl Auto {
    /// Judges the entrants in turn: how each did, and the best.
    fn race(
        &self,
        entrants: &[Entrant],
        readings: &Readings,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<(Vec<Run>, usize), EstimateError> {
        let judge = Judge::new(readings);
        let mut runs: Vec<Run> = Vec::new();
        let mut best = 0;
        for (i, entrant) in entrants.iter().enumerate() {
            let share = |i: usize| i as f64 / entrants.len() as f64;
            let part = progress.part(share(i)..share(i + 1));
            let run = match self.run(entrant, readings, &judge, context, &part) {
                // A candidate that fails is out; the others go on.
                Err(EstimateError::Numerical(_) | EstimateError::Input(_)) => Run::default(),
                other => other?,
            };
            runs.push(run);
            let (first, last) = (&runs[best], &runs[i]);
            let settled = i > 0 && last.settles(first);
            if i > 0 && last.beats(first) {
                best = i;
            }
            if settled {
                break;
            }
        }
        Ok((runs, best))
    }

    /// Methods that fit every band alone, each with the weight that held-out sensors give it.
    fn combined(
        &self,
        mut entrants: Vec<Entrant>,
        readings: &Readings,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Model, EstimateError> {
        entrants
            .iter_mut()
            .filter(|e| e.name == "field")
            .for_each(|e| e.method = Box::new(IndependentBands));
        if self.folds.is_some() {
            let (runs, best) = self.race(&entrants, readings, context, progress)?;
            return chosen(&entrants, runs, best, readings, context, progress);
        }
        let many = readings.places() > MOST_WEIGHED;
        if many {
            entrants.truncate(2);
        }
        let mut members: Vec<Member> = Vec::new();
        for (i, entrant) in entrants.iter().enumerate() {
            let share = |i: usize| i as f64 / entrants.len() as f64;
            let part = progress.part(share(i)..share(i + 1));
            match entrant.method.fit(readings, context, &part) {
                Ok(model) => {
                    members.push(Member { label: entrant.label, share: entrant.share, model });
                }
                Err(EstimateError::Numerical(_) | EstimateError::Input(_)) => {}
                Err(error) => return Err(error),
            }
        }
        let found = match many {
            true => None,
            false => {
                let each: Vec<(f64, &dyn Predictor)> =
                    members.iter().map(|m| (m.share, m.model.predictor())).collect();
                weighed(readings, &each)?
            }
        };
        join(readings, members, found)
    }

    fn run(
        &self,
        entrant: &Entrant,
        readings: &Readings,
        judge: &Judge<'_>,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Run, EstimateError> {
        if self.folds.is_none() {
            let model = entrant.method.fit(readings, context, progress)?;
            if let Some(left_out) = model.leave_one_out()? {
                let mut losses = Losses::default();
                for (sensor, spectrum) in left_out.outer_iter().enumerate() {
                    losses.add(judge, sensor, &spectrum.to_vec());
                }
                return Ok(Run { model: Some(model), losses: Some(losses) });
            }
            let dealt = spread_folds(readings.sites(), HELD_PARTS);
            let held = thinned(readings.sites(), &dealt[0], MOST_HELD);
            let losses = held_out(entrant, readings, judge, context, &[held], &progress.quiet())?;
            return Ok(Run { model: Some(model), losses });
        }
        let dealt = spread_folds(readings.sites(), self.folds.unwrap_or(HELD_PARTS));
        let losses = held_out(entrant, readings, judge, context, &dealt, progress)?;
        Ok(Run { model: None, losses })
    }

    /// What `field` takes the readings for, and what is to be said about it; None where that cannot
    /// be found.
    fn structure(
        &self,
        readings: &Readings,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<(Option<Structure>, Option<String>), EstimateError> {
        match Field::default().structure(readings, context, progress) {
            // `field` itself says what it makes of a number that was asked for.
            Ok((Structure::Emitters(found), _)) => Ok((Some(Structure::Emitters(found)), None)),
            Ok((Structure::Bands, note)) => Ok((Some(Structure::Bands), note)),
            Err(EstimateError::Numerical(_)) => Ok((None, None)),
            Err(error) => Err(error),
        }
    }
}

/// The best of a race.
fn chosen(
    entrants: &[Entrant],
    mut runs: Vec<Run>,
    best: usize,
    readings: &Readings,
    context: &Context<'_>,
    progress: &Progress<'_>,
) -> Result<Model, EstimateError> {
    let candidates: Vec<Candidate> = entrants
        .iter()
        .zip(&runs)
        .map(|(entrant, run)| Candidate {
            method: entrant.label.to_string(),
            rmse_db: run.losses.as_ref().map(Losses::rmse_db).filter(|e| e.is_finite()),
            weight: None,
        })
        .collect();
    let model = match runs[best].model.take() {
        Some(model) => model,
        None => entrants[best].method.fit(readings, context, &progress.quiet())?,
    };
    Ok(reported(model, entrants[best].label, candidates))
}

/// The members as one model.
fn join(
    readings: &Readings,
    members: Vec<Member>,
    found: Option<Weighed>,
) -> Result<Model, EstimateError> {
    if members.is_empty() {
        return Err(EstimateError::Numerical("no method could fit the readings".into()));
    }
    let shares: f64 = members.iter().map(|m| m.share).sum();
    let weight = |m: usize| found.as_ref().map_or(members[m].share / shares, |f| f[m].0);
    let error = |m: usize| found.as_ref().map(|f| f[m].1[0]).filter(|e| e.is_finite());
    let candidates: Vec<Candidate> = members
        .iter()
        .enumerate()
        .map(|(m, member)| Candidate {
            method: member.label.to_string(),
            rmse_db: error(m),
            weight: Some(weight(m)),
        })
        .collect();
    let heaviest = (0..members.len()).max_by(|a, b| weight(*a).total_cmp(&weight(*b))).unwrap_or(0);
    let table: Vec<String> = candidates
        .iter()
        .enumerate()
        .map(|(m, c)| match &found {
            Some(found) => {
                let [one, boxed] = found[m].1;
                format!("{} {:.2} ({one:.2}, {boxed:.2})", c.method, weight(m))
            }
            None => format!("{} {:.2}", c.method, weight(m)),
        })
        .collect();
    let basis = match found {
        Some(_) => " (rmse dB in cross-validation by sensor, by box)",
        None => " (too many sensors to weigh them)",
    };
    let note = format!("combined {}{basis}", table.join(", "));
    let mut report = members[heaviest].model.report().clone();
    // Methods that tell no emitters apart say nothing against those of another.
    let telling = members.iter().filter(|m| !m.model.emitters().is_empty());
    let telling = telling.max_by(|a, b| a.share.total_cmp(&b.share));
    let emitters = telling.map_or_else(Vec::new, |member| member.model.emitters().to_vec());
    report.notes.insert(0, note);
    if let Some(error) = candidates[heaviest].rmse_db {
        report.add_fitted(&[("cross_validated_rmse_db", error)]);
    }
    report.chosen = Some(candidates[heaviest].method.clone());
    report.candidates = candidates;
    let weights: Vec<f64> = (0..members.len()).map(weight).collect();
    let parts = members.into_iter().zip(&weights);
    let kept: Vec<(f64, Arc<dyn Predictor>)> = parts
        .filter(|(_, w)| **w > 0.0)
        .map(|(member, w)| (*w, member.model.into_predictor()))
        .collect();
    let model = Model::new(readings, Combined::new(kept)).with_stated_noise(readings);
    Ok(model.with_report(report).with_emitters(emitters))
}

/// The winner with what was compared.
fn reported(mut model: Model, label: &str, candidates: Vec<Candidate>) -> Model {
    let table: Vec<String> = candidates
        .iter()
        .filter_map(|c| c.rmse_db.map(|error| format!("{} {error:.2}", c.method)))
        .collect();
    let table = match table.is_empty() {
        true => String::new(),
        false => format!(" (rmse dB: {})", table.join(", ")),
    };
    let report = model.report_mut();
    report.notes.insert(0, format!("chose {label} by cross-validation{table}"));
    let own = candidates.iter().find(|c| c.method == label).and_then(|c| c.rmse_db);
    if let Some(error) = own {
        report.add_fitted(&[("cross_validated_rmse_db", error)]);
    }
    report.chosen = Some(label.to_string());
    report.candidates = candidates;
    model
}

/// Fits to the sensors outside each fold and judges those inside; None where nothing was judged.
fn held_out(
    entrant: &Entrant,
    readings: &Readings,
    judge: &Judge<'_>,
    context: &Context<'_>,
    folds: &[Vec<usize>],
    progress: &Progress<'_>,
) -> Result<Option<Losses>, EstimateError> {
    let mut losses = Losses::default();
    for (i, fold) in folds.iter().enumerate() {
        progress.report(i, folds.len())?;
        let kept: Vec<usize> =
            (0..readings.sensors()).filter(|s| fold.binary_search(s).is_err()).collect();
        // A band that only held-out sensors read cannot be judged on this fold.
        let Ok(rest) = readings.subset(&kept) else { continue };
        let model = entrant.method.fit(&rest, context, &progress.quiet())?;
        let sites: Vec<_> = fold.iter().map(|&s| readings.sites()[s]).collect();
        let power = model.predict(&sites, &progress.quiet())?.power;
        for (&sensor, spectrum) in fold.iter().zip(power.outer_iter()) {
            losses.add(judge, sensor, &spectrum.to_vec());
        }
    }
    Ok(losses.rmse_db().is_finite().then_some(losses))
}
