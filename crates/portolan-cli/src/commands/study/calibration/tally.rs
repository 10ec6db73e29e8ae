//! Intervals counted against the truth: survey by survey, then over surveys, which are what is
//! independent.

use ndarray::ArrayView2;

use super::design::{BINS, Design};
use super::law::Answer;
use super::truth::Drawn;

/// Halves of the 90 % and the 99 % interval of a normal law, in standard deviations.
const NINETY: f64 = 1.645;
const NINETY_NINE: f64 = 2.576;
/// What an interval score charges for each dB by which the truth lies outside: 2 / (1 - 0.9)
/// (Gneiting and Raftery 2007, equation 43).
const CHARGE: f64 = 20.0;
/// Powers are converted to dB and back: what lies outside by less than this many dB is covered.
const ROUNDING_DB: f64 = 1e-6;

/// Entries of one kind in one survey, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    pub entries: f64,
    /// Entries that have no interval: they count as not covered.
    pub without: f64,
    pub within_90: f64,
    pub within_99: f64,
    pub spread: f64,
    pub score: f64,
    pub square: f64,
}

impl Sums {
    /// Entries about which nothing was said.
    fn missed(entries: usize) -> Self {
        let entries = entries as f64;
        Self { entries, without: entries, ..Self::default() }
    }

    fn of(
        truth: ArrayView2<'_, f64>,
        field: ArrayView2<'_, f64>,
        spread: Option<ArrayView2<'_, f64>>,
    ) -> Self {
        let mut sums = Self::default();
        for (at, truth) in truth.indexed_iter() {
            sums.add((field[at] - truth).abs(), spread.as_ref().map_or(f64::NAN, |s| s[at]));
        }
        sums
    }

    fn add(&mut self, error: f64, spread: f64) {
        self.entries += 1.0;
        self.square += error * error;
        if !(spread.is_finite() && spread >= 0.0 && error.is_finite()) {
            self.without += 1.0;
            return;
        }
        let within =
            |deviations: f64| f64::from(u8::from(error <= deviations * spread + ROUNDING_DB));
        self.within_90 += within(NINETY);
        self.within_99 += within(NINETY_NINE);
        self.spread += spread;
        self.score += 2.0 * NINETY * spread + CHARGE * (error - NINETY * spread).max(0.0);
    }

    fn share(part: f64, of: f64) -> Option<f64> {
        (of > 0.0).then(|| part / of)
    }

    pub fn covered_90(&self) -> Option<f64> {
        Self::share(self.within_90, self.entries)
    }

    pub fn covered_99(&self) -> Option<f64> {
        Self::share(self.within_99, self.entries)
    }

    fn mean_spread(&self) -> Option<f64> {
        Self::share(self.spread, self.entries - self.without)
    }

    /// Mean interval score; None where an entry has no interval.
    fn mean_score(&self) -> Option<f64> {
        if self.without > 0.0 { None } else { Self::share(self.score, self.entries) }
    }

    fn plus(self, other: &Self) -> Self {
        Self {
            entries: self.entries + other.entries,
            without: self.without + other.without,
            within_90: self.within_90 + other.within_90,
            within_99: self.within_99 + other.within_99,
            spread: self.spread + other.spread,
            score: self.score + other.score,
            square: self.square + other.square,
        }
    }
}

/// What one method said of one survey.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Why there was no fit.
    pub failure: Option<String>,
    /// Readings repeated at sensors.
    pub repeated: Sums,
    /// The field at new places.
    pub new: Sums,
    /// The field by distance to the nearest sensor.
    pub bins: [Sums; BINS.len()],
}

impl Seen {
    pub fn of(
        design: &Design,
        drawn: &Drawn,
        (noise_db, bands): (f64, usize),
        answer: &Answer,
    ) -> Self {
        let truth = drawn.asked(bands);
        let part = |from: usize, count: usize| {
            let rows = ndarray::s![from..from + count, ..];
            let spread = answer.spread_db.as_ref().map(|spread| spread.slice(rows));
            Sums::of(truth.slice(rows), answer.field.slice(rows), spread)
        };
        let new = part(0, design.new.len());
        let mut from = design.new.len();
        let mut bins = [Sums::default(); BINS.len()];
        for (sums, places) in bins.iter_mut().zip(&design.bins) {
            *sums = part(from, places.len());
            from += places.len();
        }
        let rows = ndarray::s![from.., ..];
        let repeated = Sums::of(
            drawn.again(noise_db, bands).view(),
            answer.field.slice(rows),
            answer.reading_spread_db.as_ref().map(|spread| spread.slice(rows)),
        );
        Self { failure: None, repeated, new, bins }
    }

    /// A survey without a fit.
    pub fn failed(design: &Design, bands: usize, why: String) -> Self {
        let mut bins = [Sums::default(); BINS.len()];
        for (sums, places) in bins.iter_mut().zip(&design.bins) {
            *sums = Sums::missed(bands * places.len());
        }
        Self {
            failure: Some(why),
            repeated: Sums::missed(bands * design.again.len()),
            new: Sums::missed(bands * design.new.len()),
            bins,
        }
    }

    /// Whether there was a fit, and yet no interval somewhere.
    fn lacks_bars(&self) -> bool {
        let mut parts = self.bins.iter().chain([&self.repeated, &self.new]);
        self.failure.is_none() && parts.any(|sums| sums.without > 0.0)
    }

    fn all_bins(&self) -> Sums {
        self.bins.iter().fold(Sums::default(), Sums::plus)
    }
}

/// A mean over surveys with its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    pub value: f64,
    /// NaN with one survey.
    pub error: f64,
    pub surveys: usize,
}

impl Mean {
    fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.collect();
        let count = values.len() as f64;
        let value = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|v| (v - value).powi(2)).sum();
        let error = (squares / (count - 1.0) / count).sqrt();
        (!values.is_empty()).then_some(Self { value, error, surveys: values.len() })
    }
}

/// Interval scores of a method beside those of the true law on the same places.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scores {
    pub own: f64,
    pub law: f64,
    /// `own / law`, with its standard error by the delta method over surveys.
    pub ratio: Mean,
}

impl Scores {
    fn of(pairs: impl Iterator<Item = (f64, f64)>) -> Option<Self> {
        let pairs: Vec<(f64, f64)> = pairs.collect();
        let own = Mean::of(pairs.iter().map(|pair| pair.0))?.value;
        let law = Mean::of(pairs.iter().map(|pair| pair.1))?.value;
        let value = own / law;
        let rest = Mean::of(pairs.iter().map(|pair| pair.0 - value * pair.1))?;
        Some(Self {
            own,
            law,
            ratio: Mean { value, error: rest.error / law, surveys: pairs.len() },
        })
    }
}

/// What one method did in one row of the study.
pub struct Figures {
    pub surveys: usize,
    pub failed: usize,
    /// Why the first of them failed.
    pub failure: Option<String>,
    /// Surveys with a fit but without an interval somewhere.
    pub without_bars: usize,
    pub repeated: Option<Mean>,
    pub repeated_spread_db: Option<f64>,
    pub repeated_scores: Option<Scores>,
    pub bins: [Option<Mean>; BINS.len()],
    pub bins_99: [Option<Mean>; BINS.len()],
    pub all_99: Option<Mean>,
    /// Over the surveys with a fit.
    pub rmse_db: Option<f64>,
    pub new: Option<Mean>,
    pub scores: Option<Scores>,
}

impl Figures {
    /// Of what a method saw and what the true law saw, survey by survey.
    pub fn of(seen: &[&Seen], law: &[&Seen]) -> Self {
        let mean = |of: &dyn Fn(&Seen) -> Option<f64>| Mean::of(seen.iter().filter_map(|s| of(s)));
        let scores = |of: &dyn Fn(&Seen) -> Option<f64>| {
            Scores::of(seen.iter().zip(law).filter_map(|(own, law)| Some((of(own)?, of(law)?))))
        };
        let fitted = |seen: &&&Seen| seen.failure.is_none();
        let squares = seen.iter().filter(fitted).map(|s| s.new.square / s.new.entries);
        Self {
            surveys: seen.len(),
            failed: seen.len() - seen.iter().filter(fitted).count(),
            failure: seen.iter().find_map(|seen| seen.failure.clone()),
            without_bars: seen.iter().filter(|seen| seen.lacks_bars()).count(),
            repeated: mean(&|seen| seen.repeated.covered_90()),
            repeated_spread_db: mean(&|seen| seen.repeated.mean_spread()).map(|m| m.value),
            repeated_scores: scores(&|seen| seen.repeated.mean_score()),
            bins: std::array::from_fn(|bin| mean(&|seen| seen.bins[bin].covered_90())),
            bins_99: std::array::from_fn(|bin| mean(&|seen| seen.bins[bin].covered_99())),
            all_99: mean(&|seen| seen.all_bins().covered_99()),
            rmse_db: Mean::of(squares).map(|mean| mean.value.sqrt()),
            new: mean(&|seen| seen.new.covered_90()),
            scores: scores(&|seen| seen.new.mean_score()),
        }
    }

    /// The least coverage of the 99 % interval in any bin.
    pub fn least_99(&self) -> Option<Mean> {
        self.bins_99.iter().flatten().copied().min_by(|a, b| a.value.total_cmp(&b.value))
    }

    /// Whether every survey has an interval everywhere.
    pub fn complete(&self) -> bool {
        self.failed == 0 && self.without_bars == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_counted_and_scored() {
        let mut sums = Sums::default();
        for error in [0.0, 3.0, 4.0, 6.0] {
            sums.add(error, 2.0);
        }
        assert_eq!((sums.covered_90(), sums.covered_99()), (Some(0.5), Some(0.75)));
        let width = 2.0 * NINETY * 2.0;
        let outside = 20.0 * ((4.0 - width / 2.0) + (6.0 - width / 2.0));
        assert!((sums.mean_score().unwrap() - (width + outside / 4.0)).abs() < 1e-12);
        assert_eq!(sums.mean_spread(), Some(2.0));
        // What has no interval is not covered, and has no score.
        sums.add(0.0, f64::NAN);
        assert_eq!((sums.covered_90(), sums.mean_score()), (Some(0.4), None));
        assert_eq!(sums.mean_spread(), Some(2.0));
    }

    #[test]
    fn surveys_without_a_fit_are_not_covered_and_are_told() {
        let design = Design::draw(30, 1);
        let mut fine = Seen::failed(&design, 2, String::new());
        fine.failure = None;
        for sums in fine.bins.iter_mut().chain([&mut fine.repeated, &mut fine.new]) {
            let entries = sums.entries as usize;
            *sums = Sums::default();
            (0..entries).for_each(|_| sums.add(1.0, 1.0));
        }
        let lost = Seen::failed(&design, 2, "too hard".into());
        let figures = Figures::of(&[&fine, &lost, &fine, &lost], &[&fine; 4]);
        assert_eq!((figures.surveys, figures.failed, figures.without_bars), (4, 2, 0));
        assert_eq!(figures.failure.as_deref(), Some("too hard"));
        let new = figures.new.unwrap();
        // Half of the surveys: deviation sqrt(1/3) over sqrt(4).
        assert!(new.value == 0.5 && (new.error - (1.0f64 / 12.0).sqrt()).abs() < 1e-12);
        assert_eq!(figures.least_99().unwrap().value, 0.5);
        assert_eq!((figures.rmse_db, figures.scores.unwrap().ratio.surveys), (Some(1.0), 2));
        assert!(!figures.complete());
    }

    #[test]
    fn the_error_of_a_ratio_is_paired() {
        let pairs = [(2.0, 1.0), (4.0, 2.0), (6.0, 3.0)];
        let ratio = Scores::of(pairs.into_iter()).unwrap().ratio;
        assert_eq!((ratio.value, ratio.error), (2.0, 0.0));
        assert!(Scores::of(std::iter::empty()).is_none());
    }
}
