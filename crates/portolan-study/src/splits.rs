//! Methods over random splits of a survey: rmse in dB at held-out places.

use std::time::Instant;

use portolan::estimate::{Fold, Residuals};
use portolan::{Context, Emitters, EstimateError, InputError, Progress, Readings};
use rand::SeedableRng;
use rand::seq::index::sample;
use rand_chacha::ChaCha8Rng;

use crate::{Mean, MethodCall};

/// A study on random splits of a survey.
#[derive(Clone, Copy, Debug)]
pub struct Splits<'a> {
    /// The methods.
    pub calls: &'a [MethodCall],
    /// The survey.
    pub readings: &'a Readings,
    /// Sensors that a fit sees.
    pub count: usize,
    /// How many splits there are.
    pub splits: u64,
    /// Seed of the first split; the others follow.
    pub seed: u64,
    /// The number of emitters that methods are given.
    pub assumed: Emitters,
}

/// What one method did over all splits.
#[derive(Clone, Debug)]
pub struct SplitJudged {
    /// What tables call it.
    pub label: String,
    /// Every held-out reading of every split.
    pub all: Residuals,
    /// The root mean square error of the splits in dB.
    pub split_rmse_db: Mean,
    /// Mean time of a fit and its predictions.
    pub seconds: f64,
}

impl Splits<'_> {
    /// Fits every method to a part of every split, and compares its predictions with the rest.
    ///
    /// # Errors
    /// If a split leaves nothing to fit or to compare with, a method fails, or `progress` says to
    /// stop.
    pub fn run(&self, progress: &Progress<'_>) -> Result<Vec<SplitJudged>, EstimateError> {
        let known = self.readings;
        if !(2..known.sensors()).contains(&self.count) {
            let (count, most) = (self.count, known.sensors().saturating_sub(1));
            let message = format!("{count} sensors: the survey takes 2 to {most}");
            return Err(InputError::Request(message).into());
        }
        let mut each = vec![Vec::new(); self.calls.len()];
        let mut judged: Vec<(Residuals, f64)> = vec![Default::default(); self.calls.len()];
        let total = self.splits as usize * self.calls.len();
        for number in 0..self.splits {
            let seed = self.seed.wrapping_add(number);
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut kept = sample(&mut rng, known.sensors(), self.count).into_vec();
            kept.sort_unstable();
            let held: Vec<usize> =
                (0..known.sensors()).filter(|s| kept.binary_search(s).is_err()).collect();
            let fold = Fold::new(known, &held, &[]).ok_or_else(|| {
                InputError::Request("too few sensors are left to fit: keep a larger share".into())
            })?;
            let context = Context { seed, emitters: self.assumed, ..Context::default() };
            for (i, (call, (all, seconds))) in self.calls.iter().zip(&mut judged).enumerate() {
                progress.report(number as usize * self.calls.len() + i, total)?;
                let method = call.build()?;
                let start = Instant::now();
                let model = method.fit(&fold.rest, &context, &Progress::silent())?;
                let found = fold.predict(&model, &Progress::silent())?;
                *seconds += start.elapsed().as_secs_f64() / self.splits as f64;
                let mut own = Residuals::default();
                own.add(known, &fold, &found);
                each[i].push(own.rmse_db().unwrap_or(f64::NAN));
                all.add(known, &fold, &found);
            }
        }
        let judged = self.calls.iter().zip(judged).zip(&each);
        Ok(judged
            .map(|((call, (all, seconds)), each)| SplitJudged {
                label: call.label.clone(),
                all,
                split_rmse_db: Mean::of(each),
                seconds,
            })
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use portolan::ndarray::Array2;
    use portolan::{Scale, Site, Values};

    use super::*;

    fn survey() -> Readings {
        let site = |s: usize| Site::new((s * 37 % 61) as f64, (s * 29 % 53) as f64);
        let sites: Vec<Site> = (0..40).map(site).collect();
        let power = Array2::from_shape_fn((40, 2), |(s, k)| {
            1e-6 / (1.0 + sites[s].distance_m(Site::new(20.0, 30.0 * k as f64)).powi(2))
        });
        Readings::new(sites, Values::Power(power), Scale::Absolute).unwrap()
    }

    #[test]
    fn every_split_holds_out_what_it_does_not_keep() {
        let (readings, calls) = (survey(), [MethodCall::parse("thin_plate").unwrap()]);
        let assumed = Emitters::Auto;
        let study =
            Splits { calls: &calls, readings: &readings, count: 30, splits: 3, seed: 1, assumed };
        let found = study.run(&Progress::silent()).unwrap();
        // Ten of forty sensors in two bands, three times.
        assert_eq!(found[0].all.entries.len(), 3 * 10 * 2);
        assert!(found[0].split_rmse_db.mean > 0.0 && found[0].split_rmse_db.error > 0.0);
        for count in [1, 40] {
            let error = Splits { count, ..study }.run(&Progress::silent()).unwrap_err();
            assert!(error.to_string().contains("2 to 39"), "{error}");
        }
    }
}
