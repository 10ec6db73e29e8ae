//! Path loss with columns: what stands between a transmitter and a place ([`crate::between`]) takes
//! decibels that the readings tell. Sets of columns are hypotheses: every obstacle not at all, by its
//! classes, or number by number. They are averaged by their evidence, and the average is weighed against
//! the method's model without columns at sensors left out: a wrong plan counts for little.

mod design;
mod law;
mod left_out;
mod model;
mod seeking;
#[cfg(test)]
mod tests;
mod weighing;

use std::collections::BTreeSet;
use std::sync::Arc;

use faer::Mat;
use rayon::prelude::*;

use self::design::merged;
use self::law::{Law, Normal, Point, Prior, Sample, Search};
pub(super) use self::model::Obstructed;
use self::model::{Member, TOGETHER};
use self::seeking::sources;
use self::weighing::weigh;
use super::Context;
use super::bands::{BandData, Domain, Group};
use super::combined::Combined;
use super::field::independent::silence;
use super::times::in_time;
use crate::between::LossColumn;
use crate::error::EstimateError;
use crate::gaussian_process::clustered;
use crate::link::DB_PER_LN;
use crate::model::{Model, Predictor};
use crate::progress::Progress;
use crate::readings::Readings;
use crate::simulate::REFERENCE_DISTANCE_M;
use crate::site::{Site, extent_m};

pub(super) const KIND: &str = model::KIND;

/// The shared exponent and the level before any reading: mean and standard deviation, the latter in dB.
const EXPONENT: (f64, f64) = (3.0, 1.0);
const LEVEL_SD_DB: f64 = 40.0;
/// Entries of a band and work that the law is fitted with.
const MOST_ENTRIES: usize = 160;
const MOST_WORK: f64 = 4e7;
/// Hypotheses and laws below this share are left out.
const LEAST_SHARE: f64 = 0.02;
/// How far evidence between hypotheses is believed.
const TEMPER: f64 = 0.5;
/// More obstacles than this are not tried in all combinations.
const MOST_COMBINED: usize = 2;

/// What a column is worth.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ColumnFinding {
    /// Its name.
    pub name: String,
    /// Decibels that a unit of it takes, and the standard error.
    pub loss_db: f64,
    /// The standard error of the loss.
    pub loss_se_db: f64,
    /// Error at sensors left out one by one, with all columns of the likeliest set.
    pub rmse_db: Option<f64>,
    /// The same with the others of them alone, fitted again.
    pub rmse_without_db: Option<f64>,
}

/// Fits a method, and path loss with columns beside it where there are obstacles. Both see readings
/// without what their levels do in time.
pub(super) fn beside(
    readings: &Readings,
    context: &Context<'_>,
    progress: &Progress<'_>,
    fit: impl Fn(&Readings, &Context<'_>, &Progress<'_>) -> Result<Model, EstimateError> + Sync,
) -> Result<Model, EstimateError> {
    if context.obstacles.is_empty() {
        return fit(readings, context, progress);
    }
    readings.check_enough()?;
    in_time(readings, context, progress, |readings, context, progress| {
        // Times that show no change are not looked at again.
        let untimed = readings.clone().with_time_s(None)?;
        let model = among(&untimed, context, progress, &fit)?;
        Ok(model.in_time(readings, |inner| inner))
    })
}

/// Fits a method without the obstacles and path loss with them, and weighs both.
fn among(
    readings: &Readings,
    context: &Context<'_>,
    progress: &Progress<'_>,
    fit: &(impl Fn(&Readings, &Context<'_>, &Progress<'_>) -> Result<Model, EstimateError> + Sync),
) -> Result<Model, EstimateError> {
    let plain = Context { obstacles: &[], ..*context };
    let mut base = fit(readings, &plain, &progress.part(0.0..0.4))?;
    let found = match obstructed(readings, context, &progress.part(0.4..0.8)) {
        Ok(found) => found,
        Err(EstimateError::Numerical(reason)) => {
            base.report_mut().notes.push(format!("obstacles are left out: {reason}"));
            return Ok(base);
        }
        Err(error) => return Err(error),
    };
    let Found { model: own, columns, notes } = found;
    let fit_base = |rest: &Readings, progress: &Progress<'_>| {
        Ok(fit(rest, &plain, progress)?.into_predictor())
    };
    let fit_own = |rest: &Readings, progress: &Progress<'_>| {
        Ok(Arc::new(obstructed(rest, context, progress)?.model) as Arc<dyn Predictor>)
    };
    let (weight, figures) =
        weigh(readings, (base.predictor(), &fit_base), (&own, &fit_own), &progress.part(0.8..1.0))?;
    let note = format!("path loss with obstacles counts for {:.0} %{figures}", 100.0 * weight);
    let mut model = base.map_predictor(|base| {
        // The obstacles first: they say why a model cannot be updated.
        let members: Vec<(f64, Arc<dyn Predictor>)> =
            vec![(weight, Arc::new(own)), (1.0 - weight, base)];
        Arc::new(Combined::new(members.into_iter().filter(|(w, _)| *w > 0.0).collect()))
    });
    let report = model.report_mut();
    report.notes.push(note);
    report.notes.extend(notes);
    report.notes.extend(columns.iter().map(ColumnFinding::sentence));
    report.columns = columns;
    Ok(model)
}

impl ColumnFinding {
    fn sentence(&self) -> String {
        let Self { name, loss_db, loss_se_db, .. } = self;
        format!("{name}: {loss_db:.1} +- {loss_se_db:.1} dB each")
    }
}

/// A set of columns, each made of some numbers of the obstacles.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Hypothesis {
    columns: Vec<Vec<usize>>,
}

/// What lies between transmitters and readings.
struct Crossings {
    /// The numbers of which some line has any.
    crossed: Vec<bool>,
    /// Columns that differ between places of a band: others cannot be told from its level.
    varies: BTreeSet<Vec<usize>>,
}

/// A hypothesis under its likeliest law.
struct Judged {
    hypothesis: Hypothesis,
    log_evidence: f64,
    best: Point,
}

/// Path loss with obstacles, what its columns are worth, and notes.
struct Found {
    model: Obstructed,
    columns: Vec<ColumnFinding>,
    notes: Vec<String>,
}

fn obstructed(
    readings: &Readings,
    context: &Context<'_>,
    progress: &Progress<'_>,
) -> Result<Found, EstimateError> {
    let silence = silence(readings, &progress.part(0.0..0.2))?;
    let data = BandData::with_silence(readings, Domain::Log, silence.as_ref());
    let extent = extent_m(readings.sites());
    let numbers: Vec<LossColumn> =
        context.obstacles.iter().flat_map(|obstacle| obstacle.columns()).collect();
    let sources = sources(readings, context);
    let survey = Fit {
        extent,
        prior_level: level(&data),
        numbers,
        model: Obstructed {
            data,
            obstacles: context.obstacles.to_vec(),
            reference_m: REFERENCE_DISTANCE_M.max(2e-3 * extent),
            sources,
            members: Vec::new(),
            hearing: silence.and_then(|s| s.law.hearing),
            together: TOGETHER,
        },
    };
    survey.fitted(context, &progress.part(0.2..1.0))
}

/// Mean of all values.
fn level(data: &BandData) -> f64 {
    let values = || data.groups.iter().flat_map(|g| g.values.iter());
    values().sum::<f64>() / values().count().max(1) as f64
}

/// What is fitted.
struct Fit {
    extent: f64,
    prior_level: f64,
    /// The numbers of all obstacles, side by side.
    numbers: Vec<LossColumn>,
    model: Obstructed,
}

impl Fit {
    fn fitted(
        mut self,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Found, EstimateError> {
        if self.model.sources.iter().any(|sources| sources.len() > 1) {
            self.place(&progress.part(0.0..0.3))?;
        }
        let samples = self.samples();
        let hypotheses = self.hypotheses(context);
        let crossings = self.crossings(&hypotheses, &progress.quiet())?;
        let mut judged: Vec<Judged> = Vec::new();
        let part = progress.part(0.3..0.7);
        for (i, hypothesis) in hypotheses.iter().enumerate() {
            part.report(i, hypotheses.len())?;
            let start = judged.last().map(|j| j.best);
            let one = self.judged(hypothesis, &crossings, &samples, start.as_ref(), &part)?;
            if !judged.iter().any(|known| known.hypothesis == one.hypothesis) {
                judged.push(one);
            }
        }
        judged.sort_by(|a, b| b.log_evidence.total_cmp(&a.log_evidence));
        let top = judged[0].log_evidence;
        let shares: Vec<f64> =
            judged.iter().map(|j| (TEMPER * (j.log_evidence - top)).exp()).collect();
        let total: f64 = shares.iter().sum();
        let columns = self.findings(&judged[0], &samples, &progress.quiet())?;
        let mut members = Vec::new();
        for (one, share) in judged.iter().zip(shares) {
            let weight = share / total;
            if weight < LEAST_SHARE {
                continue;
            }
            let reduced = reduced(&samples, &one.hypothesis);
            let prior = self.prior(&one.hypothesis);
            let search = Search { samples: &reduced, prior: &prior, extent_m: self.extent };
            for (share, x) in search.laws(&one.best, &progress.part(0.7..0.9))? {
                if weight * share >= 0.5 * LEAST_SHARE {
                    members.push(self.member(weight * share, &one.hypothesis, &x)?);
                }
            }
        }
        let total: f64 = members.iter().map(|m| m.weight).sum();
        members.iter_mut().for_each(|m| m.weight /= total);
        self.model.members = members;
        self.model.solve_all(&progress.part(0.9..1.0))?;
        let uncrossed = self.numbers.iter().zip(&crossings.crossed).filter(|(_, any)| !**any);
        let notes = uncrossed.map(|(column, _)| {
            format!("{}: crossed by no line between a transmitter and a reading", column.name)
        });
        Ok(Found { notes: notes.collect(), model: self.model, columns })
    }

    /// Every band's values where its transmitter stands at its first place, thinned to what can be
    /// afforded.
    fn samples(&self) -> Vec<Sample> {
        let groups = || self.model.data.groups.iter();
        let one = |(group, k): (&Group, usize)| {
            let kept = clustered(&group.sites, MOST_ENTRIES);
            let sites: Vec<Site> = kept.iter().map(|&i| group.sites[i]).collect();
            let source = &self.model.sources[group.bands[k]][0];
            let design =
                design::design(source, &self.model.obstacles, &sites, self.model.reference_m);
            let mut scatter = group.scatter.clone();
            scatter.squares = scatter.squares.get(k).copied().into_iter().collect();
            Sample {
                values: kept.iter().map(|&i| group.values[[i, k]]).collect(),
                noise: kept.iter().map(|&i| (group.share[i], group.stated[i])).collect(),
                sites,
                design,
                scatter,
            }
        };
        let all: Vec<(&Group, usize)> =
            groups().flat_map(|g| (0..g.bands.len()).map(move |k| (g, k))).collect();
        let work =
            |(group, _): &(&Group, usize)| (group.sites.len().min(MOST_ENTRIES) as f64).powi(3);
        let total: f64 = all.iter().map(work).sum();
        let share = (MOST_WORK / total.max(1.0)).min(1.0);
        let kept = ((all.len() as f64 * share).ceil() as usize).clamp(4.min(all.len()), all.len());
        (0..kept).map(|i| one(all[(2 * i + 1) * all.len() / (2 * kept)])).collect()
    }

    /// Counts what every reading has between it and the first place of its transmitter.
    fn crossings(
        &self,
        hypotheses: &[Hypothesis],
        progress: &Progress<'_>,
    ) -> Result<Crossings, EstimateError> {
        let columns: BTreeSet<&Vec<usize>> = hypotheses.iter().flat_map(|h| &h.columns).collect();
        let columns: Vec<&Vec<usize>> = columns.into_iter().collect();
        let groups = self.model.data.groups.iter();
        let all: Vec<(&Group, usize)> =
            groups.flat_map(|group| group.bands.iter().map(move |&band| (group, band))).collect();
        let each: Vec<(Vec<bool>, Vec<bool>)> = all
            .par_iter()
            .map(|(group, band)| {
                progress.check()?;
                let design = self.model.design(*band, 0, &group.sites);
                let rows = 0..design.nrows();
                let crossed = |c: usize| rows.clone().any(|i| design[(i, 2 + c)] != 0.0);
                let varies = |column: &&Vec<usize>| {
                    let sum = |i: usize| -> f64 { column.iter().map(|c| design[(i, 2 + c)]).sum() };
                    rows.clone().any(|i| sum(i) != sum(0))
                };
                let crossed = (0..self.numbers.len()).map(crossed).collect();
                Ok((crossed, columns.iter().map(varies).collect()))
            })
            .collect::<Result<_, EstimateError>>()?;
        let crossed = (0..self.numbers.len()).map(|c| each.iter().any(|(own, _)| own[c]));
        let varying =
            columns.iter().enumerate().filter(|(c, _)| each.iter().any(|(_, own)| own[*c]));
        let varies = varying.map(|(_, column)| (*column).clone()).collect();
        Ok(Crossings { crossed: crossed.collect(), varies })
    }

    /// What is known of the shared coefficients before any reading.
    fn prior(&self, hypothesis: &Hypothesis) -> Prior {
        let far = (self.extent / self.model.reference_m).max(1.0).ln();
        let mut mean = vec![self.prior_level + EXPONENT.0 * far, EXPONENT.0];
        let mut deviation = vec![LEVEL_SD_DB / DB_PER_LN, EXPONENT.1];
        for column in &hypothesis.columns {
            mean.push(0.0);
            let widest = column.iter().map(|&c| self.numbers[c].loss_sd_db);
            deviation.push(widest.fold(f64::MIN_POSITIVE, f64::max));
        }
        Prior { mean, precision: deviation.into_iter().map(|sd| sd.powi(-2)).collect() }
    }

    /// Sets of columns: of every obstacle none, its classes, or every number by itself.
    fn hypotheses(&self, context: &Context<'_>) -> Vec<Hypothesis> {
        let mut first = 0;
        let mut choices: Vec<Vec<Vec<Vec<usize>>>> = Vec::new();
        for obstacle in context.obstacles {
            let columns = obstacle.columns();
            let own: Vec<usize> = (first..first + columns.len()).collect();
            let classes: BTreeSet<&str> = columns.iter().map(|c| c.class.as_str()).collect();
            let of = |class: &str| -> Vec<usize> {
                own.iter().copied().filter(|&c| columns[c - first].class == class).collect()
            };
            let merged: Vec<Vec<usize>> = classes.into_iter().map(of).collect();
            let each: Vec<Vec<usize>> = own.iter().map(|&c| vec![c]).collect();
            let mut ways = vec![Vec::new(), merged];
            if !same(&ways[1], &each) {
                ways.push(each);
            }
            choices.push(ways);
            first += columns.len();
        }
        // The richest first: its law is where the others start.
        let mut found: BTreeSet<Vec<usize>> = BTreeSet::new();
        let many = choices.len() > MOST_COMBINED;
        let pick =
            |of: &dyn Fn(usize) -> usize| -> Vec<usize> { (0..choices.len()).map(of).collect() };
        match many {
            false => {
                let mut all: Vec<Vec<usize>> = vec![Vec::new()];
                for ways in &choices {
                    let next = |known: &Vec<usize>| {
                        (0..ways.len()).map(|w| [&known[..], &[w]].concat()).collect::<Vec<_>>()
                    };
                    all = all.iter().flat_map(next).collect();
                }
                found.extend(all);
            }
            true => {
                found.insert(pick(&|_| 0));
                found.insert(pick(&|_| 1));
                found.insert(pick(&|o| choices[o].len() - 1));
                for left in 0..choices.len() {
                    found.insert(pick(&|o| usize::from(o != left)));
                    found.insert(pick(&|o| usize::from(o == left)));
                }
            }
        }
        let make = |ways: &Vec<usize>| Hypothesis {
            columns: ways.iter().zip(&choices).flat_map(|(w, own)| own[*w].clone()).collect(),
        };
        found.iter().rev().map(make).collect()
    }

    /// A hypothesis under its likeliest law, without columns that give power instead of taking it, or
    /// that are the same everywhere.
    fn judged(
        &self,
        hypothesis: &Hypothesis,
        crossings: &Crossings,
        samples: &[Sample],
        start: Option<&Point>,
        progress: &Progress<'_>,
    ) -> Result<Judged, EstimateError> {
        let progress = &progress.quiet();
        let mut hypothesis = hypothesis.clone();
        hypothesis.columns.retain(|column| crossings.varies.contains(column));
        let mut start = start.copied();
        loop {
            let reduced = reduced(samples, &hypothesis);
            let prior = self.prior(&hypothesis);
            let search = Search { samples: &reduced, prior: &prior, extent_m: self.extent };
            let (log_evidence, best) = search.likeliest(start.as_ref(), progress)?;
            let shared = self.shared(&hypothesis, &best)?;
            let loss = |c: &usize| shared.mean[(2 + c, 0)];
            let least = (0..hypothesis.columns.len()).min_by(|a, b| loss(a).total_cmp(&loss(b)));
            match least {
                Some(c) if loss(&c) <= 0.0 => {
                    hypothesis.columns.remove(c);
                    start = Some(best);
                }
                _ => return Ok(Judged { hypothesis, log_evidence, best }),
            }
        }
    }

    /// The shared coefficients by all bands.
    fn shared(&self, hypothesis: &Hypothesis, x: &Point) -> Result<Normal, EstimateError> {
        let law = Law::at(x);
        let says = self.model.says(&law, &hypothesis.columns)?;
        let shared: Option<Vec<_>> = says.iter().map(|own| own.of_shared(&law)).collect();
        shared
            .and_then(|all| Normal::shared(&self.prior(hypothesis), all.iter()))
            .ok_or_else(singular)
    }

    /// A law with every band's coefficients as the other bands speak for them.
    fn member(
        &self,
        weight: f64,
        hypothesis: &Hypothesis,
        x: &Point,
    ) -> Result<Member, EstimateError> {
        let law = Law::at(x);
        let says = self.model.says(&law, &hypothesis.columns)?;
        let shared: Option<Vec<_>> = says.iter().map(|own| own.of_shared(&law)).collect();
        let shared = shared.ok_or_else(singular)?;
        let prior = self.prior(hypothesis);
        let of_band = |band: usize| {
            let others = shared.iter().enumerate().filter(|(b, _)| *b != band).map(|(_, own)| own);
            Normal::shared(&prior, others).map(|shared| shared.of_band(&law))
        };
        let before: Option<Vec<Normal>> = (0..shared.len()).map(of_band).collect();
        let before = before.ok_or_else(singular)?;
        let groups = self.model.data.groups.len();
        Ok(Member::new(weight, law, hypothesis.columns.clone(), before, groups))
    }

    /// Puts the likeliest place of every transmitter that is not known first: under what is usual, and
    /// again under the law that follows from that.
    fn place(&mut self, progress: &Progress<'_>) -> Result<(), EstimateError> {
        let mut own = 0;
        let mut columns: Vec<Vec<usize>> = Vec::new();
        for obstacle in &self.model.obstacles {
            let count = obstacle.columns().len();
            columns.push((own..own + count).collect());
            own += count;
        }
        let hypothesis = Hypothesis { columns };
        let mut x = Law::before(self.extent);
        let prior = self.prior(&hypothesis);
        let first = Normal::shared(&prior, [].iter()).ok_or_else(singular)?;
        let law = Law::at(&x);
        let bands = self.model.sources.len();
        let before = vec![first.of_band(&law); bands];
        let groups = self.model.data.groups.len();
        let mut member = Member::new(1.0, law, hypothesis.columns.clone(), before, groups);
        for round in 0..2 {
            progress.report(round, 2)?;
            let weights = self.model.placed(&member, &progress.quiet())?;
            for (sources, weights) in self.model.sources.iter_mut().zip(weights) {
                let best = (0..weights.len()).max_by(|a, b| weights[*a].total_cmp(&weights[*b]));
                sources.swap(0, best.unwrap_or(0));
            }
            let samples = self.samples();
            let reduced = reduced(&samples, &hypothesis);
            let search = Search { samples: &reduced, prior: &prior, extent_m: self.extent };
            x = search.likeliest(Some(&x), &progress.quiet())?.1;
            member = self.member(1.0, &hypothesis, &x)?;
        }
        // Places that say nothing are not carried along.
        let weights = self.model.placed(&member, &progress.quiet())?;
        for (sources, weights) in self.model.sources.iter_mut().zip(weights) {
            let mut order: Vec<usize> = (0..weights.len()).collect();
            order.sort_by(|a, b| weights[*b].total_cmp(&weights[*a]).then(a.cmp(b)));
            order.truncate(MOST_PLACES);
            *sources = order.into_iter().map(|s| sources[s].clone()).collect();
        }
        Ok(())
    }

    /// Error at sensors left out one by one under a hypothesis and its law, in dB.
    fn error(&self, hypothesis: &Hypothesis, x: &Point) -> Result<Option<f64>, EstimateError> {
        let member = self.member(1.0, hypothesis, x)?;
        self.model.left_out_error(&member)
    }

    /// What every column of the likeliest hypothesis is worth: each is left out of it in turn.
    fn findings(
        &self,
        best: &Judged,
        samples: &[Sample],
        progress: &Progress<'_>,
    ) -> Result<Vec<ColumnFinding>, EstimateError> {
        let shared = self.shared(&best.hypothesis, &best.best)?;
        let rmse_db = self.error(&best.hypothesis, &best.best)?;
        let finding = |(c, column): (usize, &Vec<usize>)| {
            let mut less = best.hypothesis.clone();
            less.columns.remove(c);
            let (reduced, prior) = (reduced(samples, &less), self.prior(&less));
            let search = Search { samples: &reduced, prior: &prior, extent_m: self.extent };
            let (_, law) = search.likeliest(Some(&best.best), progress)?;
            Ok(ColumnFinding {
                name: self.name(column),
                loss_db: shared.mean[(2 + c, 0)],
                loss_se_db: shared.covariance[(2 + c, 2 + c)].max(0.0).sqrt(),
                rmse_db,
                rmse_without_db: self.error(&less, &law)?,
            })
        };
        best.hypothesis.columns.iter().enumerate().map(finding).collect()
    }

    fn name(&self, column: &[usize]) -> String {
        match column {
            [one] => self.numbers[*one].name.clone(),
            _ => self.numbers[column[0]].class.clone(),
        }
    }
}

/// Places of a transmitter that are carried along.
const MOST_PLACES: usize = 40;

fn singular() -> EstimateError {
    EstimateError::Numerical("the covariance of path loss cannot be factorised".into())
}

/// Whether some columns are the same as others, in any order.
fn same(a: &[Vec<usize>], b: &[Vec<usize>]) -> bool {
    let set = |all: &[Vec<usize>]| all.iter().cloned().collect::<BTreeSet<_>>();
    set(a) == set(b)
}

/// The samples with the columns of a hypothesis.
fn reduced(samples: &[Sample], hypothesis: &Hypothesis) -> Vec<Sample> {
    let one = |sample: &Sample| {
        let design: Mat<f64> = merged(&sample.design, &hypothesis.columns);
        Sample { design, ..sample.clone() }
    };
    samples.iter().map(one).collect()
}
