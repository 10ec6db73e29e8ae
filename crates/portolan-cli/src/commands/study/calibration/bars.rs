//! What error bars have to keep to, and how many rows of the study do not.

use super::tally::{Figures, Mean};
use super::truth::Truth;

/// Coverage of the 90 % interval of a repeated reading. Without noise it may be more: a reading
/// then repeats exactly.
pub const REPEATED: (f64, f64) = (0.86, 0.94);
/// Coverage of the 90 % interval of the field in every bin; the lower end with few sensors.
pub const BINS: (f64, f64) = (0.85, 0.95);
pub const BINS_FEW: f64 = 0.84;
/// Least coverage of the 99 % interval of the field in any bin.
pub const NINETY_NINE: f64 = 0.96;
/// Most that an interval score may be beside the true law's, of process truths; with few sensors.
pub const SCORE: f64 = 1.05;
pub const SCORE_FEW: f64 = 1.15;
/// So many sensors or fewer are few.
pub const FEW: usize = 30;

/// Standard errors beyond a bar from which on a row is clearly outside.
const CLEARLY: f64 = 2.0;

/// What a row was drawn from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    pub truth: Truth,
    pub sensors: usize,
    pub noise_db: f64,
    pub bands: usize,
}

/// Where a figure lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    Inside,
    /// Outside by no more than two standard errors.
    Outside,
    Clearly,
}

impl Verdict {
    /// A figure that is not there is clearly outside.
    fn of(figure: Option<Mean>, (from, to): (f64, f64)) -> Self {
        let Some(Mean { value, error, .. }) = figure else { return Verdict::Clearly };
        let beyond = f64::max(from - value, value - to);
        // A figure of one survey has no standard error.
        let error = if error.is_nan() { f64::INFINITY } else { error };
        if beyond <= 0.0 {
            Verdict::Inside
        } else if beyond <= CLEARLY * error {
            Verdict::Outside
        } else {
            Verdict::Clearly
        }
    }
}

/// How a row does at each bar; None where the bar is not about such rows.
pub struct Verdicts {
    pub repeated: Verdict,
    /// The worst bin.
    pub bins: Option<Verdict>,
    pub ninety_nine: Option<Verdict>,
    pub score: Option<Verdict>,
    pub repeated_score: Option<Verdict>,
}

impl Verdicts {
    pub fn of(setting: &Setting, figures: &Figures) -> Self {
        let few = setting.sensors <= FEW;
        let most = if setting.noise_db == 0.0 { 1.0 } else { REPEATED.1 };
        let bins = (if few { BINS_FEW } else { BINS.0 }, BINS.1);
        let process = setting.truth != Truth::Path;
        let score = |ratio: Option<Mean>| match figures.complete() {
            true => Verdict::of(ratio, (0.0, if few { SCORE_FEW } else { SCORE })),
            // An interval that is not there has no finite score.
            false => Verdict::Clearly,
        };
        let places = figures.bins.iter().flatten();
        let least =
            figures.bins_99.iter().flatten().map(|m| Verdict::of(Some(*m), (NINETY_NINE, 1.0)));
        Self {
            repeated: Verdict::of(figures.repeated, (REPEATED.0, most)),
            bins: places.map(|bin| Verdict::of(Some(*bin), bins)).max(),
            ninety_nine: least.max(),
            score: process.then(|| score(figures.scores.map(|s| s.ratio))),
            repeated_score: (process && setting.noise_db > 0.0)
                .then(|| score(figures.repeated_scores.map(|s| s.ratio))),
        }
    }
}

/// Rows that a bar is about, and how many of them are outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub rows: usize,
    pub outside: usize,
    pub clearly: usize,
}

impl Count {
    pub fn of(verdicts: impl Iterator<Item = Option<Verdict>>) -> Self {
        let mut count = Self::default();
        for verdict in verdicts.flatten() {
            count.rows += 1;
            count.outside += usize::from(verdict != Verdict::Inside);
            count.clearly += usize::from(verdict == Verdict::Clearly);
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_beyond_two_errors_are_clearly_outside() {
        let of = |value, error| Verdict::of(Some(Mean { value, error, surveys: 9 }), (0.85, 0.95));
        assert_eq!(of(0.95, 0.0), Verdict::Inside);
        assert_eq!(of(0.84, 0.01), Verdict::Outside);
        assert_eq!(of(0.97, 0.005), Verdict::Clearly);
        assert_eq!(of(0.5, f64::NAN), Verdict::Outside);
        assert_eq!(Verdict::of(None, (0.0, 1.0)), Verdict::Clearly);
        let verdicts =
            [Some(Verdict::Inside), None, Some(Verdict::Clearly), Some(Verdict::Outside)];
        let expected = Count { rows: 3, outside: 2, clearly: 1 };
        assert_eq!(Count::of(verdicts.into_iter()), expected);
    }
}
