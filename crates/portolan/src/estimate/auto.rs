//! The default: several methods judged by cross-validation over sensors, the best one used.
//!
//! Sensors are dealt into folds; each candidate predicts every fold from the others. The error is
//! the root mean square in dB on the readings' own log scale. A candidate that is clearly behind
//! after a fold runs no further, and the comparison keeps to a budget of time where there is a
//! clock.

use super::emitters::start_factors;
use super::field::Field;
use super::held_out::{Judge, Losses};
use super::{
    Context, Emitters, Estimate, Estimator, OptionSpec, Options, Progress, build as build_method,
};
use crate::error::{EstimateError, InputError};
use crate::readings::Readings;

const OWN: &[OptionSpec] = &[
    OptionSpec {
        name: "folds",
        default: "5 (ours)",
        takes: "2 to 20: into how many parts the sensors are dealt",
    },
    OptionSpec {
        name: "budget",
        default: "60 (ours)",
        takes: "seconds after which no further comparison is begun",
    },
];
pub(super) const OPTIONS: &[&[OptionSpec]] = &[OWN];

/// Method, its settings, and its name for people.
type Candidate = (&'static str, &'static [(&'static str, &'static str)], &'static str);

const CANDIDATES: &[Candidate] = &[
    ("kriging", &[], "kriging (exponential)"),
    ("kriging", &[("covariance", "matern32")], "kriging (matern32)"),
    ("thin_plate", &[], "thin_plate"),
    ("field", &[], "field"),
];

/// A candidate is left for one that loses less by so many standard errors over the held-out
/// sensors, or that loses less with an error below this share of its own: smaller differences are
/// luck.
const SURE: f64 = 4.0;
const MARGIN: f64 = 0.95;

/// A candidate that loses more than the best one by so many standard errors is out of the race.
const BEHIND: f64 = 4.0;

/// Grids with more cells than this are judged on one fold: each fold costs a whole map.
const MANY_CELLS: usize = 128 * 128;

struct Auto {
    folds: usize,
    budget_seconds: f64,
}

pub(super) fn build(options: &Options) -> Result<Box<dyn Estimator>, InputError> {
    Ok(Box::new(Auto {
        folds: options.count("folds", 2..=20)?.unwrap_or(5),
        budget_seconds: options.number("budget", 0.0..f64::INFINITY)?.unwrap_or(60.0),
    }))
}

impl Estimator for Auto {
    fn estimate(
        &self,
        readings: &Readings,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Estimate, EstimateError> {
        // A start that no candidate could use would look like candidates that failed.
        start_factors(readings, context)?;
        let folds = self.folds.min(readings.sensors() / 2);
        if folds < 2 {
            let (name, settings, label) = CANDIDATES[0];
            let mut estimate = candidate(name, settings)?.estimate(readings, context, progress)?;
            estimate.notes.push(format!("chose {label}: too few sensors to compare methods"));
            return Ok(estimate);
        }
        let judged = if readings.grid().cells() > MANY_CELLS { 1 } else { folds };
        let mut sums = vec![Sum::default(); CANDIDATES.len()];
        // Chosen once: every fold and the final map are of the same kind.
        let context = &match self.number_of_emitters(readings, context, progress)? {
            Some(emitters) => Context { emitters, ..*context },
            None => {
                let field = CANDIDATES.iter().position(|c| c.0 == "field");
                field.into_iter().for_each(|i| sums[i].out = true);
                *context
            }
        };
        let judge = Judge::new(readings);
        let mut hurried = false;
        for fold in 0..judged {
            if fold > 0 {
                let best = leader(&sums).losses.clone();
                sums.iter_mut().for_each(|sum| sum.out |= sum.losses.gain(&best) > BEHIND);
            }
            if sums.iter().filter(|sum| !sum.out).count() < 2 {
                break;
            }
            for (i, (name, settings, _)) in CANDIDATES.iter().enumerate() {
                let done = fold * CANDIDATES.len() + i;
                progress.report(done, (judged + 1) * CANDIDATES.len())?;
                let sum = &mut sums[i];
                if sum.out {
                    continue;
                }
                if i > 0 && fold == 0 && progress.seconds() > self.budget_seconds {
                    (sum.out, hurried) = (true, true);
                    continue;
                }
                let estimator = candidate(name, settings)?;
                match sum.add_fold(&*estimator, readings, &judge, context, (fold, folds), progress)
                {
                    // A candidate that fails on a fold is out; the others go on.
                    Err(EstimateError::Numerical(_) | EstimateError::Input(_)) => sum.out = true,
                    other => other?,
                }
            }
            // Between folds, so that all are judged by the same sensors.
            if fold + 1 < judged && progress.seconds() > self.budget_seconds {
                hurried = true;
                break;
            }
        }
        let errors: Vec<f64> = sums.iter().map(Sum::rmse_db).collect();
        let best = (0..sums.len())
            .filter(|&i| !sums[i].out)
            .reduce(|best, i| if sums[i].beats(&sums[best]) { i } else { best })
            .unwrap_or(0);
        let (name, settings, label) = CANDIDATES[best];
        let mut estimate = candidate(name, settings)?.estimate(readings, context, progress)?;
        let table: Vec<String> = CANDIDATES
            .iter()
            .zip(&errors)
            .filter(|(_, error)| error.is_finite())
            .map(|((.., label), error)| format!("{label} {error:.2}"))
            .collect();
        let table = match table.is_empty() {
            true => String::new(),
            false => format!(" (rmse dB: {})", table.join(", ")),
        };
        let chosen = format!("chose {label} by cross-validation over sensors{table}");
        estimate.notes.insert(0, chosen);
        if hurried {
            estimate.notes.push(format!(
                "the comparison of methods was cut short after {} s: raise budget= for all of it",
                self.budget_seconds
            ));
        }
        estimate.fitted.push(("cross_validated_rmse_db", errors[best]));
        Ok(estimate)
    }
}

impl Auto {
    /// The number of emitters for the factored candidates; None where it cannot be found.
    fn number_of_emitters(
        &self,
        readings: &Readings,
        context: &Context<'_>,
        progress: &Progress<'_>,
    ) -> Result<Option<Emitters>, EstimateError> {
        if context.start.is_some() {
            return Ok(Some(context.emitters));
        }
        let field = Field::new(&Options::new("field", &[], [])?)?;
        let quiet = |_| progress.report(0, 1).is_ok();
        match field.number(readings, context, &Progress::new(&quiet)) {
            // A number that was asked for stands: `field` says what becomes of it.
            Ok(found) => Ok(Some(match context.emitters {
                Emitters::Auto => Emitters::Count(found),
                asked => asked,
            })),
            Err(EstimateError::Numerical(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn candidate(name: &str, settings: &[(&str, &str)]) -> Result<Box<dyn Estimator>, InputError> {
    build_method(name, settings.iter().map(|(k, v)| (k.to_string(), v.to_string())))
}

/// Of those still in the race, the one that has lost least.
fn leader(sums: &[Sum]) -> &Sum {
    let racing = sums.iter().filter(|sum| !sum.out);
    racing.min_by(|a, b| a.losses.mean().total_cmp(&b.losses.mean())).unwrap_or(&sums[0])
}

#[derive(Clone, Default)]
struct Sum {
    losses: Losses,
    /// Failed or fell behind.
    out: bool,
}

impl Sum {
    /// Predicts the sensors of one fold from the others and adds the errors.
    fn add_fold(
        &mut self,
        estimator: &dyn Estimator,
        readings: &Readings,
        judge: &Judge<'_>,
        context: &Context<'_>,
        (fold, folds): (usize, usize),
        progress: &Progress<'_>,
    ) -> Result<(), EstimateError> {
        let (held, kept): (Vec<usize>, Vec<usize>) =
            (0..readings.sensors()).partition(|s| s % folds == fold);
        // A band that only held-out sensors read cannot be judged on this fold.
        let Ok(rest) = readings.subset(&kept) else { return Ok(()) };
        let quiet = |_| progress.report(0, 1).is_ok();
        let map = estimator.estimate(&rest, context, &Progress::new(&quiet))?.map;
        let mut spectrum = vec![0.0; map.bands()];
        for sensor in held {
            map.spectrum_into(readings.cells()[sensor], &mut spectrum);
            self.losses.add(judge, sensor, &spectrum);
        }
        Ok(())
    }

    fn rmse_db(&self) -> f64 {
        self.losses.rmse_db()
    }

    fn beats(&self, other: &Sum) -> bool {
        let gain = other.losses.gain(&self.losses);
        gain > SURE || (gain > 0.0 && self.rmse_db() < MARGIN * other.rmse_db())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Grid;
    use crate::score::score;
    use crate::sense::{Layout, Sensing, sense};
    use crate::simulate::{Scenario, simulate};

    fn run(settings: &[(&str, &str)], readings: &Readings, progress: &Progress<'_>) -> Estimate {
        told(Emitters::Auto, settings, readings, progress)
    }

    fn told(
        emitters: Emitters,
        settings: &[(&str, &str)],
        readings: &Readings,
        progress: &Progress<'_>,
    ) -> Estimate {
        let context = Context { emitters, ..Context::default() };
        candidate("auto", settings).unwrap().estimate(readings, &context, progress).unwrap()
    }

    #[test]
    fn many_sensors_of_a_simulated_map_lead_to_field() {
        let grid = Grid::new(40, 40, 1.0).unwrap();
        let mut chosen = 0;
        for seed in 0..3 {
            let truth = simulate(&Scenario { bands: 32, emitters: 4, seed, ..Scenario::new(grid) })
                .unwrap();
            let readings = sense(&truth, &Sensing::exact(Layout::Count(240), seed)).unwrap();
            let auto = run(&[], &readings, &Progress::silent());
            let kriging = candidate("kriging", &[]).unwrap();
            let kriging =
                kriging.estimate(&readings, &Context::default(), &Progress::silent()).unwrap();
            let rmse = |e: &Estimate| score(&e.map, &truth, None).unwrap().rmse_db;
            assert!(rmse(&auto) <= rmse(&kriging), "{} {}", rmse(&auto), rmse(&kriging));
            let field = auto.notes[0].starts_with("chose field");
            chosen += usize::from(field);
            if field && chosen == 1 {
                let more = told(Emitters::Count(6), &[], &readings, &Progress::silent());
                assert_eq!(more.map.to_dense(), auto.map.to_dense());
                let says = |note: &String| note.contains("6 emitters were asked for");
                assert!(more.notes.iter().any(says), "{:?}", more.notes);
            }
        }
        assert!(chosen >= 2, "field was chosen on {chosen} of 3 maps");
    }

    #[test]
    fn a_spent_budget_ends_the_comparison_and_says_so() {
        let grid = Grid::new(16, 16, 1.0).unwrap();
        let truth = simulate(&Scenario { bands: 8, emitters: 2, ..Scenario::new(grid) }).unwrap();
        let readings = sense(&truth, &Sensing::exact(Layout::Count(60), 1)).unwrap();
        let go_on = |_: f64| true;
        let clock = || 100.0;
        let late = Progress::new(&go_on).with_clock(&clock);
        let cut = |e: &Estimate| e.notes.iter().any(|note| note.contains("cut short"));
        let hurried = run(&[("budget", "99")], &readings, &late);
        assert!(cut(&hurried));
        // The first candidate alone was judged, and what was not judged is not listed.
        assert!(hurried.notes[0].starts_with("chose kriging (exponential)"), "{:?}", hurried.notes);
        assert!(!hurried.notes[0].contains("field") && !hurried.notes[0].contains("inf"));
        let patient = run(&[("budget", "101")], &readings, &late);
        assert!(!cut(&patient) && patient.notes[0].contains("field"), "{:?}", patient.notes);
    }
}
