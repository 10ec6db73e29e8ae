//! What makes an answer meaningless without looking wrong: codes taken for power, several floors in
//! one map, places that jump, frequencies in another unit. A doubt stops the command in one line
//! that names the option that settles it; `--accept` goes on regardless and notes the doubt.

use std::collections::{BTreeMap, BTreeSet};

use portolan::{Region, Site};

use crate::error::{Check, Problem, shown};
use crate::options::{ReadOptions, Unit};

/// Above this nothing that people map is received; below it lies the thermal noise of 1 Hz.
const LOUDEST_DBM: f64 = 30.0;
const FAINTEST_DBM: f64 = -174.0;
/// Decibels between a code and the nearest level, and how often a code stands at least.
const APART_DB: f64 = 10.0;
const OFTEN: usize = 3;
const SHARE: f64 = 0.001;
/// Levels that differ, among which a code stands out.
const VARIED: usize = 12;
/// Values that are named.
const NAMED: usize = 4;
/// A place that jumps lies so many times as far from the middle as nine places of ten, and so many
/// metres at least.
const JUMP: f64 = 50.0;
const JUMP_M: f64 = 20_000.0;
/// Of so many places a jump can be seen.
const PLACES: usize = 10;
/// Floors that are listed.
const LISTED: usize = 6;

/// What makes an answer meaningless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoubtKind {
    /// Codes for "no value" among the levels.
    Code,
    /// Numbers that are no levels.
    Level,
    /// Several floors in one table.
    Floor,
    /// Places far from all others.
    Place,
    /// Frequencies in an unknown unit.
    Frequency,
}

impl DoubtKind {
    const ALL: [(&'static str, Self); 5] = [
        ("code", Self::Code),
        ("level", Self::Level),
        ("floor", Self::Floor),
        ("place", Self::Place),
        ("frequency", Self::Frequency),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }
}

/// A doubt that was accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct Doubt {
    /// What is doubted.
    pub kind: DoubtKind,
    /// How many readings, places or floors it is about; 1 where that is not counted.
    pub count: usize,
    /// The option that settles it.
    pub option: String,
    /// All of it in words.
    pub text: String,
}

impl Doubt {
    /// The doubt that a warning speaks of: `doubt (KIND, COUNT): TEXT`.
    pub fn of_warning(warning: &str) -> Option<Self> {
        let (about, text) = warning.strip_prefix("doubt (")?.split_once("): ")?;
        let (kind, count) = about.split_once(", ")?;
        let kind = DoubtKind::ALL.iter().find(|(name, _)| *name == kind)?.1;
        let word = |c: char| !(c.is_ascii_alphanumeric() || c == '-');
        let option = text.find("--").map_or("", |at| text[at..].split(word).next().unwrap_or(""));
        let (option, text) = (option.to_string(), text.to_string());
        Some(Self { kind, count: count.parse().ok()?, option, text })
    }
}

/// Stops with a doubt, or notes it where the caller accepts it.
pub(crate) fn raise(
    (kind, count): (DoubtKind, usize),
    text: String,
    options: &ReadOptions,
    warnings: &mut Vec<String>,
) -> Check<()> {
    match options.accept {
        true => {
            warnings.push(format!("doubt ({}, {count}): {text}", kind.name()));
            Ok(())
        }
        false => Err(Problem::new(format!("{text}; --accept takes them as they are"))),
    }
}

/// Levels in decibels, and how often each stands.
#[derive(Default)]
pub(crate) struct Levels {
    counts: BTreeMap<i64, usize>,
}

impl Levels {
    /// Counts linear powers.
    pub fn of(powers: impl Iterator<Item = f64>) -> Self {
        let mut levels = Self::default();
        for power in powers.filter(|power| *power > 0.0) {
            let hundredths = (1000.0 * power.log10()).round() as i64;
            *levels.counts.entry(hundredths).or_default() += 1;
        }
        levels
    }

    /// The values that stand apart at either end, far too often for a level.
    fn codes(&self, calibrated: bool) -> Vec<(f64, usize)> {
        let all: Vec<(f64, usize)> =
            self.counts.iter().map(|(value, count)| (*value as f64 / 100.0, *count)).collect();
        let total: usize = all.iter().map(|(_, count)| count).sum();
        let often = |count: usize| count >= OFTEN && count as f64 >= SHARE * total as f64;
        let impossible = |value: f64| calibrated && !(FAINTEST_DBM..=LOUDEST_DBM).contains(&value);
        let (mut low, mut high) = (0, all.len());
        let varied = |low: usize, high: usize| high - low > VARIED;
        let mut found = Vec::new();
        // From the ends inwards, while what is left is most.
        while high - low > 1 {
            let left: usize = all[low..high].iter().map(|(_, count)| count).sum();
            let code = |at: usize, next: usize| {
                let ((value, count), (neighbour, _)) = (all[at], all[next]);
                let apart =
                    (value - neighbour).abs() >= APART_DB && often(count) && varied(low, high);
                (apart && 2 * count < left) || impossible(value)
            };
            if code(low, low + 1) {
                found.push(all[low]);
                low += 1;
            } else if code(high - 1, high - 2) {
                found.push(all[high - 1]);
                high -= 1;
            } else {
                break;
            }
        }
        found
    }

    /// Doubts values that are no levels.
    pub fn check(
        &self,
        unit: Unit,
        options: &ReadOptions,
        warnings: &mut Vec<String>,
    ) -> Check<()> {
        if !unit.is_decibels() || self.counts.is_empty() {
            return Ok(());
        }
        let positive = self.counts.keys().all(|value| *value >= 0);
        let several = self.counts.len() > 1;
        if positive && several && unit == Unit::Dbm {
            let (low, high) = (self.counts.keys().next(), self.counts.keys().next_back());
            let (low, high) = (low.map_or(0.0, |v| *v as f64), high.map_or(0.0, |v| *v as f64));
            let (low, high) = (shown(low / 100.0), shown(high / 100.0));
            return raise(
                (DoubtKind::Level, self.counts.values().sum()),
                format!(
                    "all levels lie from {low} to {high}: a quality or a number of bars is no power \
                     in dBm; choose a column by --columns value=NAME, or say --unit db"
                ),
                options,
                warnings,
            );
        }
        let codes = self.codes(unit == Unit::Dbm);
        if codes.is_empty() {
            return Ok(());
        }
        let count: usize = codes.iter().map(|(_, count)| count).sum();
        let total: usize = self.counts.values().sum();
        let named: Vec<String> = codes.iter().take(NAMED).map(|(v, _)| shown(*v)).collect();
        let named = named.join(",");
        let more = match codes.len() > NAMED {
            true => format!(" and {} others", codes.len() - NAMED),
            false => String::new(),
        };
        raise(
            (DoubtKind::Code, count),
            format!(
                "{count} of {total} levels are {named}{more}, which look like codes and not like \
                 power: say what they mean by --missing {named} (no reading) or --not-heard {named} \
                 (below what is heard)"
            ),
            options,
            warnings,
        )
    }
}

/// Doubts several floors in one map.
pub(crate) fn check_floors(
    column: &str,
    floors: &BTreeSet<String>,
    options: &ReadOptions,
    warnings: &mut Vec<String>,
) -> Check<()> {
    let Some(first) = floors.iter().next().filter(|_| floors.len() > 1) else { return Ok(()) };
    let mut listed: Vec<&str> = floors.iter().take(LISTED).map(String::as_str).collect();
    if floors.len() > LISTED {
        listed.push("..");
    }
    let column =
        if column.contains(' ') { format!("\\\"{column}\\\"") } else { column.to_string() };
    let value = if first.parse::<f64>().is_ok() { first.clone() } else { format!("'{first}'") };
    raise(
        (DoubtKind::Floor, floors.len()),
        format!(
            "the lines are of {} floors ({}), which one map cannot hold: choose one by --where \
             \"{column} = {value}\", or give their heights by --floor-height METRES or a column z_m",
            floors.len(),
            listed.join(", ")
        ),
        options,
        warnings,
    )
}

/// Doubts places far from all others.
pub(crate) fn check_places(
    sites: &[Site],
    options: &ReadOptions,
    warnings: &mut Vec<String>,
) -> Check<()> {
    if sites.len() < PLACES {
        return Ok(());
    }
    let middle = |of: fn(&Site) -> f64| {
        let mut along: Vec<f64> = sites.iter().map(of).collect();
        let half = along.len() / 2;
        *along.select_nth_unstable_by(half, f64::total_cmp).1
    };
    let middle = Site::new(middle(|s| s.x_m), middle(|s| s.y_m));
    let away = |site: &Site| middle.distance_m(site.at_height(0.0));
    let mut distances: Vec<f64> = sites.iter().map(away).collect();
    let most = distances.len() * 9 / 10;
    let usual = *distances.select_nth_unstable_by(most, f64::total_cmp).1;
    let limit = (JUMP * usual).max(JUMP_M);
    let far = |site: &&Site| away(site) > limit;
    let count = sites.iter().filter(far).count();
    let (Some(farthest), Some(rest)) = (
        sites.iter().filter(far).max_by(|a, b| away(a).total_cmp(&away(b))),
        Region::around(&sites.iter().filter(|s| !far(s)).copied().collect::<Vec<Site>>()),
    ) else {
        return Ok(());
    };
    let span = rest.width_m().hypot(rest.height_m());
    raise(
        (DoubtKind::Place, count),
        format!(
            "{count} of {} places lie up to {:.0} km from the others, which lie within {:.1} km: \
             leave them out by --where, on the columns that say where",
            sites.len(),
            away(farthest) / 1e3,
            span / 1e3
        ),
        options,
        warnings,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(values: &[(f64, usize)]) -> Levels {
        let all = values.iter().flat_map(|&(value, count)| std::iter::repeat_n(value, count));
        Levels::of(all.map(|db| 10f64.powf(db / 10.0)))
    }

    #[test]
    fn codes_are_told_from_levels() {
        let usual: Vec<(f64, usize)> = (0..60).map(|i| (-50.0 - f64::from(i), 10)).collect();
        let with = |codes: &[(f64, usize)]| {
            let all: Vec<_> = usual.iter().chain(codes).copied().collect();
            let found = levels(&all).codes(true);
            found.into_iter().map(|(value, _)| value).collect::<Vec<f64>>()
        };
        assert_eq!(with(&[]), [] as [f64; 0]);
        assert_eq!(with(&[(-200.0, 40), (-340.0, 2)]), [-340.0, -200.0]);
        assert_eq!(with(&[(-24.0, 30), (-164.0, 9)]), [-164.0, -24.0]);
        assert_eq!(with(&[(100.0, 300)]), [100.0]);
        assert_eq!(with(&[(0.0, 5)]), [0.0]);
        // One strong reading beside a transmitter is none, nor is a receiver's floor.
        assert_eq!(with(&[(-35.0, 1)]), [] as [f64; 0]);
        assert_eq!(with(&[(-112.0, 500)]), [] as [f64; 0]);
        // Two places that are all: neither is a code.
        assert_eq!(levels(&[(-40.0, 10), (-80.0, 10)]).codes(true), []);
    }

    #[test]
    fn places_that_jump_are_doubted() {
        let mut sites: Vec<Site> =
            (0..50).map(|i| Site::new(f64::from(i % 7), f64::from(i / 7))).collect();
        let check = |sites: &[Site]| check_places(sites, &ReadOptions::default(), &mut Vec::new());
        assert!(check(&sites).is_ok());
        sites.push(Site::new(5e6, 4e6));
        let said = check(&sites).unwrap_err().to_string();
        assert!(said.contains("1 of 51 places") && said.contains("--where"), "{said}");
    }
}
