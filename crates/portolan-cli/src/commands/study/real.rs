//! `portolan study real`: methods at held-out places of public surveys, with known transmitters,
//! and with what was not heard (docs/real.md).

mod export;
mod report;
mod splits;
mod surveys;
mod tally;
mod unheard;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use portolan::estimate::{Capability, method};
use portolan::{Context, Prediction, Progress};
use portolan_io::picture::{Agreement, Typeface, agreement_figure};
use rayon::prelude::*;

use self::splits::{Rule, Split};
use self::surveys::Survey;
use self::tally::{Compared, NOMINAL, calibration};
use super::calls;
use crate::args::StudyArgs;
use crate::commands::MethodCall;
use crate::commands::picture::{kind_of, save};
use crate::failure::Failure;
use crate::output::{emit, emit_json};
use crate::watch::counted;

/// What stands for the public surveys in place of a survey's name.
pub const WORD: &str = "real";

const METHODS: &str = "kriging,field,auto";
const SPLITS: u64 = 5;

/// Refuses options of this study where another was asked for.
pub fn check_options(args: &StudyArgs) -> Result<(), Failure> {
    let given = [
        (args.data.is_some(), "--data"),
        (args.export.is_some(), "--export"),
        (args.plot.is_some(), "--plot"),
    ];
    match given.iter().find(|(given, _)| *given) {
        Some((_, name)) => Err(Failure::input(format!(
            "{name}: belongs to the study on public surveys: portolan study {WORD} {name} .."
        ))),
        None => Ok(()),
    }
}

pub fn run(args: &StudyArgs) -> Result<(), Failure> {
    refuse_others(args)?;
    let calls = calls(args, METHODS)?;
    if let Some(call) =
        calls.iter().find(|call| method(&call.name).is_ok_and(|m| m.has(Capability::Truth)))
    {
        let message = format!("--methods {}: needs the true map, which nobody knows", call.name);
        return Err(Failure::input(message));
    }
    let kind = args.plot.as_ref().map(|plot| kind_of(plot, args.force)).transpose()?;
    let folder = args.data.clone().or_else(|| std::env::var_os("PORTOLAN_DATA").map(PathBuf::from));
    let folder = folder.ok_or_else(|| {
        Failure::input(
            "study real: say where the surveys are with --data DIR or in PORTOLAN_DATA \
             (docs/real.md lists them)",
        )
    })?;
    let surveys = surveys::read(&folder)?;
    let count = args.maps.unwrap_or(SPLITS);
    if let Some(folder) = &args.export {
        export::write(folder, &surveys, (count, args.seed), args.force)?;
    }
    let study = Study::new(&surveys, &calls, count, args.seed);
    let found = study.run()?;
    if let (Some(plot), Some(kind)) = (&args.plot, kind) {
        let typeface = Typeface::new();
        let note = format!("readings at held-out places, method {}", found.drawn);
        let scene = agreement_figure(&found.agreement(), &note, &typeface);
        save(plot, kind, &scene, &typeface, None, args.force)?;
    }
    if args.json {
        return emit_json(&report::json(&found, count, args.seed));
    }
    emit(&report::tables(&found, count))
}

/// What only other studies know is refused rather than passed over.
fn refuse_others(args: &StudyArgs) -> Result<(), Failure> {
    let given = [
        (args.grid.is_some(), "--grid"),
        (args.fraction.is_some(), "--fraction"),
        (args.sensors.is_some(), "--sensors"),
        (args.bits.is_some(), "--bits"),
        (args.assumed.is_some(), "--assumed"),
        (args.offset.is_some(), "--offset"),
        (args.unit.is_some(), "--unit"),
        (args.flaws.snr_db.is_some(), "--snr-db"),
        (args.flaws.gaps.is_some(), "--gaps"),
        (args.flaws.cover.is_some(), "--cover"),
    ];
    match given.iter().find(|(given, _)| *given) {
        Some((_, name)) => Err(Failure::input(format!(
            "{name}: the study on public surveys has no use for it (./{WORD} names a file)"
        ))),
        None => Ok(()),
    }
}

/// A method, with or without the transmitters' places.
struct Variant<'a> {
    label: String,
    call: &'a MethodCall,
    transmitters: bool,
}

/// What a fit is given of the survey beside heard readings.
#[derive(Clone, Copy, PartialEq)]
enum Input {
    Heard,
    Transmitters,
    Silence,
}

/// One fit and its predictions at the places that test.
fn predict(
    survey: &Survey,
    split: &Split,
    call: &MethodCall,
    input: Input,
) -> Result<Prediction, Failure> {
    let about = |error: Failure| {
        let (title, rule) = (survey.title, split.rule.label());
        match error {
            Failure::Input(why) => Failure::Input(format!("{title}, {rule}: {why}")),
            Failure::Run(why) => Failure::Run(format!("{title}, {rule}: {}: {why}", call.label)),
            other => other,
        }
    };
    let readings = split.readings(survey, input == Input::Silence).map_err(|e| about(e.into()))?;
    let known = match input {
        Input::Transmitters => split.transmitters(survey),
        _ => Vec::new(),
    };
    let context = Context { seed: split.seed, transmitters: &known, ..Context::default() };
    let (sites, _) = split.testing(survey);
    let silent = Progress::silent();
    let model = call.build()?.fit(&readings, &context, &silent).map_err(|e| about(e.into()))?;
    model.predict(&sites, &silent).map_err(|e| about(e.into()))
}

/// One row of the study: a survey and a rule, with what every variant of a method said.
struct Row<'a> {
    survey: &'a Survey,
    rule: Rule,
    /// Places that train and places that test, by split.
    places: Vec<(usize, usize)>,
    outcomes: Vec<Outcome>,
}

/// What one variant of a method said, split by split.
struct Outcome {
    label: String,
    splits: Vec<Vec<Compared>>,
}

/// Everything that was found.
struct Found<'a> {
    rows: Vec<Row<'a>>,
    silence: Vec<unheard::Row<'a>>,
    /// The method that others are compared with, and the one that is drawn.
    base: String,
    drawn: String,
}

struct Study<'a> {
    surveys: &'a [Survey],
    calls: &'a [MethodCall],
    splits: u64,
    seed: u64,
}

impl<'a> Study<'a> {
    fn new(surveys: &'a [Survey], calls: &'a [MethodCall], splits: u64, seed: u64) -> Self {
        Self { surveys, calls, splits, seed }
    }

    /// The methods on a survey; again with its transmitters for those that can use them.
    fn variants(&self, survey: &Survey) -> Vec<Variant<'a>> {
        let plain =
            |call: &'a MethodCall| Variant { label: call.label.clone(), call, transmitters: false };
        let informed = |call: &'a MethodCall| {
            let takes = method(&call.name).is_ok_and(|m| m.has(Capability::Transmitters));
            (takes && !survey.transmitters.is_empty()).then(|| Variant {
                label: format!("{}+transmitters", call.label),
                call,
                transmitters: true,
            })
        };
        let calls = self.calls.iter();
        calls.clone().map(plain).chain(calls.filter_map(informed)).collect()
    }

    fn run(&self) -> Result<Found<'a>, Failure> {
        let mut jobs = Vec::new();
        for survey in self.surveys {
            for rule in Rule::ALL {
                for variant in self.variants(survey) {
                    for number in 0..self.splits {
                        jobs.push((survey, rule, number, variant.call, variant.transmitters));
                    }
                }
            }
        }
        let silence = unheard::jobs(self);
        let total = jobs.len() + silence.len();
        let (compared, silent) = counted("study", |tell, go_on| {
            let done = AtomicUsize::new(0);
            let step = || {
                tell(done.fetch_add(1, Ordering::Relaxed) + 1, total, None);
                if go_on() { Ok(()) } else { Err(Failure::Interrupted) }
            };
            let compared = jobs
                .par_iter()
                .with_max_len(1)
                .map(|&(survey, rule, number, call, transmitters)| {
                    let split = Split::new(survey, rule, number, self.seed);
                    let input = if transmitters { Input::Transmitters } else { Input::Heard };
                    let found = predict(survey, &split, call, input)?;
                    step()?;
                    Ok(tally::compare(&split.testing(survey).1, &found))
                })
                .collect::<Result<Vec<_>, Failure>>()?;
            let silent = silence
                .par_iter()
                .with_max_len(1)
                .map(|job| {
                    let found = job.run()?;
                    step()?;
                    Ok(found)
                })
                .collect::<Result<Vec<_>, Failure>>()?;
            Ok::<_, Failure>((compared, silent))
        })?;
        let mut compared = compared.into_iter();
        let mut rows = Vec::new();
        for survey in self.surveys {
            for rule in Rule::ALL {
                let outcome = |variant: Variant<'_>| Outcome {
                    label: variant.label,
                    splits: compared.by_ref().take(self.splits as usize).collect(),
                };
                let outcomes = self.variants(survey).into_iter().map(outcome).collect();
                let places = (0..self.splits)
                    .map(|number| Split::new(survey, rule, number, self.seed).places())
                    .collect();
                rows.push(Row { survey, rule, places, outcomes });
            }
        }
        let named = self.calls.iter().find(|call| call.label == "kriging");
        let base = named.unwrap_or(&self.calls[0]).label.clone();
        let drawn = self.calls[self.calls.len() - 1].label.clone();
        Ok(Found { rows, silence: unheard::rows(self, silent), base, drawn })
    }
}

impl Found<'_> {
    /// Every held-out reading of a survey as one method saw it.
    fn of_survey(&self, name: &str, label: &str) -> Vec<Compared> {
        let rows = self.rows.iter().filter(|row| row.survey.name == name);
        rows.filter_map(|row| row.outcome(label)).flat_map(Outcome::all).copied().collect()
    }

    fn surveys(&self) -> Vec<&Survey> {
        self.rows.iter().filter(|row| row.rule == Rule::Blocks).map(|row| row.survey).collect()
    }

    /// What the picture shows.
    fn agreement(&self) -> Vec<Agreement> {
        let of = |survey: &&Survey| {
            let all = self.of_survey(survey.name, &self.drawn);
            let rmse = tally::rmse_db(all.iter()).unwrap_or(f64::NAN);
            Agreement {
                name: survey.title.to_string(),
                unit: survey.scale.decibels().to_string(),
                rmse_db: rmse,
                calibration: NOMINAL.iter().copied().zip(calibration(&all)).collect(),
                pairs: all.iter().map(|c| (c.measured, c.predicted)).collect(),
            }
        };
        self.surveys().iter().map(of).collect()
    }
}

impl Row<'_> {
    fn outcome(&self, label: &str) -> Option<&Outcome> {
        self.outcomes.iter().find(|outcome| outcome.label == label)
    }
}

impl Outcome {
    fn all(&self) -> impl Iterator<Item = &Compared> {
        self.splits.iter().flatten()
    }
}
