//! When readings were taken, as sessions: rows of one visit share a moment. Visits are told apart by
//! the gaps between them; sensors that report again and again have a session for every report.

use std::collections::HashSet;

use crate::site::Site;

/// The most sessions. Of more reports, those that are near in time share one.
pub(super) const MOST: usize = 128;
/// Gaps between visits are so many times as long as gaps within them.
const APART: f64 = 8.0;
/// Rows for each place from which on reports without longer gaps are sessions of their own.
const REPEATED: f64 = 1.5;

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
        let repeated = sites.len() as f64 >= REPEATED * places.len() as f64;
        let starts = starts(&moments, repeated);
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

    /// First and last moment of all.
    pub fn span(&self) -> Option<(f64, f64)> {
        Some((self.spans.first()?.0, self.spans.last()?.1))
    }
}

/// The first moment of every session, of moments in order.
fn starts(moments: &[f64], repeated: bool) -> Vec<f64> {
    let (Some(&first), Some(&last)) = (moments.first(), moments.last()) else { return Vec::new() };
    let gaps: Vec<f64> = moments.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mut sorted = gaps.clone();
    sorted.sort_by(|a, b| b.total_cmp(a));
    // The longest gaps, up to where the next one is much shorter.
    let ratio = |k: &usize| sorted[*k] / sorted[*k + 1];
    let many = sorted.len().saturating_sub(1).min(MOST - 1);
    let edge = (0..many).max_by(|a, b| ratio(a).total_cmp(&ratio(b)).then(b.cmp(a)));
    let after = |least: f64| {
        let later = moments[1..].iter().zip(&gaps).filter(move |(_, gap)| **gap >= least);
        std::iter::once(first).chain(later.map(|(t, _)| *t)).collect()
    };
    match edge {
        Some(k) if ratio(&k) >= APART => after(sorted[k]),
        _ if !repeated => vec![first],
        _ if moments.len() <= MOST => after(0.0),
        _ => {
            let width = (last - first) / MOST as f64;
            let part = |t: f64| (((t - first) / width) as usize).min(MOST - 1);
            let mut kept: Vec<f64> = vec![first];
            for pair in moments.windows(2) {
                if part(pair[1]) != part(pair[0]) {
                    kept.push(pair[1]);
                }
            }
            kept
        }
    }
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
