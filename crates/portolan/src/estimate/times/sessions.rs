//! When readings were taken, as sessions: rows of one visit share a moment. Visits are separated by
//! the gaps between them. Sensors that report again and again, and dates without a time of day, have a
//! session for every moment.

use std::collections::HashSet;

use crate::site::Site;

/// The most sessions. Of more reports, those that are near in time share one.
pub(super) const MOST: usize = 128;
/// Gaps between visits are so many times as long as gaps within them, and so many seconds at least.
const APART: f64 = 8.0;
const LEAST_APART_S: f64 = 600.0;
/// Rows of a visit, on average.
const VISIT: usize = 4;
/// Rows for each place, or for each moment, from which on every moment is a session of its own.
const REPEATED: f64 = 1.5;
const TOGETHER: f64 = 3.0;

/// Sessions in the order of time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sessions {
    /// First and last moment of each.
    spans: Vec<(f64, f64)>,
    /// The mean time of the rows of each.
    pub middle: Vec<f64>,
    /// The session of every row; None where its time is not known.
    pub of_row: Vec<Option<usize>>,
}

impl Sessions {
    pub fn of(time_s: &[f64], sites: &[Site]) -> Self {
        let mut moments: Vec<f64> = time_s.iter().copied().filter(|t| !t.is_nan()).collect();
        moments.sort_by(f64::total_cmp);
        moments.dedup();
        let places: HashSet<_> = sites.iter().map(|site| site.bits()).collect();
        let timed = time_s.iter().filter(|t| !t.is_nan()).count();
        let repeated = sites.len() as f64 >= REPEATED * places.len() as f64;
        let together = timed as f64 >= TOGETHER * moments.len() as f64 && moments.len() <= MOST;
        let starts = starts(&moments, timed, repeated || together);
        let session = |t: f64| starts.partition_point(|start| *start <= t) - 1;
        let of_row: Vec<Option<usize>> =
            time_s.iter().map(|t| (!t.is_nan()).then(|| session(*t))).collect();
        let mut spans = vec![(f64::INFINITY, f64::NEG_INFINITY); starts.len()];
        let mut sums = vec![(0.0, 0.0); starts.len()];
        for (&t, own) in time_s.iter().zip(&of_row) {
            let Some(own) = *own else { continue };
            spans[own] = (spans[own].0.min(t), spans[own].1.max(t));
            sums[own] = (sums[own].0 + (t - starts[own]), sums[own].1 + 1.0);
        }
        let middle = starts.iter().zip(&sums).map(|(start, (sum, count))| start + sum / count);
        Self { middle: middle.collect(), spans, of_row }
    }

    pub fn count(&self) -> usize {
        self.middle.len()
    }

    /// The session during which a moment lies.
    pub fn during(&self, time_s: f64) -> Option<usize> {
        self.spans.iter().position(|(from, to)| (*from..=*to).contains(&time_s))
    }

    /// When a next session is to be expected: as long after the latest as sessions usually are apart.
    pub fn next_s(&self) -> f64 {
        let mut gaps: Vec<f64> = self.middle.windows(2).map(|pair| pair[1] - pair[0]).collect();
        gaps.sort_by(f64::total_cmp);
        let latest = self.span().map_or(0.0, |(_, latest)| latest);
        latest + gaps.get(gaps.len() / 2).copied().unwrap_or(0.0)
    }

    /// First and last moment of all.
    pub fn span(&self) -> Option<(f64, f64)> {
        Some((self.spans.first()?.0, self.spans.last()?.1))
    }
}

/// The first moment of every session, of moments in order: `rows` readings were taken at them.
fn starts(moments: &[f64], rows: usize, reports: bool) -> Vec<f64> {
    let Some(&first) = moments.first() else { return Vec::new() };
    let gaps: Vec<f64> = moments.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let after = |least: f64| -> Vec<f64> {
        let later = moments[1..].iter().zip(&gaps).filter(move |(_, gap)| **gap >= least);
        std::iter::once(first).chain(later.map(|(t, _)| *t)).collect()
    };
    let found = match edge(&gaps, rows) {
        Some(gap) => after(gap),
        None if reports => after(0.0),
        None => vec![first],
    };
    if found.len() > MOST { thinned(&found) } else { found }
}

/// The shortest gap between visits: longer ones are many times as long as all that are shorter. Of
/// several such scales the finest counts, so that one wrong clock does not hide the visits.
fn edge(gaps: &[f64], rows: usize) -> Option<f64> {
    let mut sorted = gaps.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let most = (rows / VISIT).max(2) - 1;
    let apart = |k: &usize| sorted[*k] >= LEAST_APART_S && sorted[*k] >= APART * sorted[*k + 1];
    let last = (0..sorted.len().saturating_sub(1)).take(most).rev().find(apart);
    last.map(|k| sorted[k])
}

/// As many sessions as are affordable: those that are near in time share one.
fn thinned(starts: &[f64]) -> Vec<f64> {
    let (first, last) = (starts[0], starts[starts.len() - 1]);
    let width = (last - first) / MOST as f64;
    let part = |t: f64| (((t - first) / width) as usize).min(MOST - 1);
    let mut kept = vec![first];
    for pair in starts.windows(2) {
        if part(pair[1]) != part(pair[0]) {
            kept.push(pair[1]);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sites(count: usize, places: usize) -> Vec<Site> {
        (0..count).map(|i| Site::new((i % places) as f64, 0.0)).collect()
    }

    #[test]
    fn visits_are_told_apart_by_the_gaps_between_them() {
        // Three visits of forty readings, 20 to 39 s apart.
        let times: Vec<f64> = (0..120)
            .map(|i| f64::from(i / 40) * 2.6e6 + f64::from(i % 40) * 30.0 + f64::from(i * 7 % 10))
            .collect();
        for places in [40, 120] {
            let found = Sessions::of(&times, &sites(120, places));
            assert_eq!(found.count(), 3);
            assert!((0..120).all(|i| found.of_row[i] == Some(i / 40)));
            assert_eq!(found.during(2.6e6 + 100.0), Some(1));
            assert_eq!(found.during(1.3e6), None);
        }
    }

    #[test]
    fn neither_one_wrong_clock_nor_many_visits_nor_bare_dates_hide_the_visits() {
        // Forty daily visits of ten readings a minute apart, and one row of 1970.
        let daily = |days: i32| {
            (0..10 * days).map(|i| 1.7e9 + f64::from(i / 10) * 86_400.0 + f64::from(i % 10) * 60.0)
        };
        let wrong: Vec<f64> = daily(40).chain([0.0]).collect();
        assert_eq!(Sessions::of(&wrong, &sites(401, 401)).count(), 41);
        let many: Vec<f64> = daily(200).collect();
        let found = Sessions::of(&many, &sites(2000, 2000)).count();
        assert!((MOST / 2..=MOST).contains(&found), "{found}");
        // Three drives that say their date only: at places of their own, and at few.
        let dates: Vec<f64> = (0..90).map(|i| f64::from([0, 31, 60][i / 30]) * 86_400.0).collect();
        for places in [90, 30] {
            assert_eq!(Sessions::of(&dates, &sites(90, places)).count(), 3);
        }
        assert_eq!(Sessions::of(&dates[..60], &sites(60, 60)).count(), 2);
        // Scans of twenty rows within a second, a minute apart, on one walk.
        let scans: Vec<f64> =
            (0..400).map(|i| f64::from(i / 20) * 60.0 + f64::from(i % 20) * 0.03).collect();
        assert_eq!(Sessions::of(&scans, &sites(400, 400)).count(), 1);
    }

    #[test]
    fn reports_are_sessions_and_one_walk_is_one() {
        let hours: Vec<f64> = (0..60).map(|i| f64::from(i / 10) * 3600.0).collect();
        assert_eq!(Sessions::of(&hours, &sites(60, 10)).count(), 6);
        let seconds: Vec<f64> = (0..500).map(f64::from).collect();
        assert_eq!(Sessions::of(&seconds, &sites(500, 500)).count(), 1);
        assert_eq!(Sessions::of(&seconds, &sites(500, 10)).count(), MOST);
        let unknown = [f64::NAN, 5.0, f64::NAN, 5.0];
        let found = Sessions::of(&unknown, &sites(4, 4));
        assert_eq!((found.count(), found.of_row[0], found.of_row[1]), (1, None, Some(0)));
        assert_eq!(Sessions::of(&[f64::NAN; 3], &sites(3, 3)).span(), None);
    }
}
