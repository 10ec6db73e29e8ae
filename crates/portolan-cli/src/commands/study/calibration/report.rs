//! Tables and JSON of the study of error bars.

use serde_json::{Value, json};

use super::bars::{self, Count, Verdict, Verdicts};
use super::design::BINS;
use super::tally::{Figures, Mean, Scores};
use super::{Row, Study};
use crate::output::{figure, table};

const HEADER: [&str; 20] = [
    "sensors",
    "noise",
    "bands",
    "method",
    "again 90",
    "said dB",
    "again score",
    "0-1 m",
    "1-3 m",
    "3-10 m",
    "10-30 m",
    "30-100 m",
    ">100 m",
    "all 99",
    "least 99",
    "new 90",
    "new rmse",
    "new score",
    "failed",
    "no bars",
];

const LEGEND: &str = "\
again: readings repeated at sensors: covered by the 90 % interval; said dB: mean standard deviation
0-1 m ..: the field by distance to the nearest sensor, covered by the 90 % interval
all 99, least 99: the field covered by the 99 % interval, over all distances and at the worst
new: the field at places uniform in the square: covered by the 90 % interval, rmse in dB
score: mean 90 % interval score beside the true law's on the same places
true law: knows all of the simulator's parameters; noise unknown: knows all but which of the
study's noises it is, equally likely before the readings: what it misses, readings do not tell
coverage in percent; ± one standard error over surveys
failed, no bars: surveys without a fit, and with one but without an error bar somewhere";

/// The bars that rows are held to.
struct Bar {
    name: String,
    pick: fn(&Verdicts) -> Option<Verdict>,
}

fn held_to() -> Vec<Bar> {
    let percent = |share: f64| format!("{:.0}", 100.0 * share);
    let range = |(from, to): (f64, f64)| format!("{} to {} %", percent(from), percent(to));
    let scores = format!("at most {} ({} with few sensors)", bars::SCORE, bars::SCORE_FEW);
    let bins = format!(
        "field by distance {} (few sensors: from {})",
        range(bars::BINS),
        percent(bars::BINS_FEW)
    );
    let least = format!("99 % in every bin at least {} %", percent(bars::NINETY_NINE));
    vec![
        Bar {
            name: format!(
                "repeated reading {} (no noise: from {})",
                range(bars::REPEATED),
                percent(bars::REPEATED.0)
            ),
            pick: |v| Some(v.repeated),
        },
        Bar { name: bins, pick: |v| v.bins },
        Bar { name: least, pick: |v| v.ninety_nine },
        Bar { name: format!("score at new places, process truths, {scores}"), pick: |v| v.score },
        Bar {
            name: format!("score of repeated readings, process truths with noise, {scores}"),
            pick: |v| v.repeated_score,
        },
    ]
}

/// How many rows of a method, by its number, are outside a bar.
fn count(rows: &[Row], who: usize, pick: fn(&Verdicts) -> Option<Verdict>) -> Count {
    Count::of(rows.iter().map(|row| pick(&Verdicts::of(&row.setting, &row.figures[who]))))
}

fn lost(rows: &[Row], who: usize, of: fn(&Figures) -> usize) -> usize {
    rows.iter().map(|row| of(&row.figures[who])).sum()
}

pub fn tables(study: &Study<'_>, rows: &[Row]) -> String {
    let (first, last) = (study.seed, study.seed.wrapping_add(study.surveys - 1));
    let mut parts = vec![LEGEND.to_string()];
    for truth in &study.truths {
        let of_truth = rows.iter().filter(|row| row.setting.truth == *truth);
        let lines: Vec<Vec<String>> = of_truth.flat_map(|row| lines(study, row)).collect();
        let (label, surveys) = (truth.label(), study.surveys);
        let title = format!("truth {label}, {surveys} surveys a row, seeds {first} to {last}");
        parts.push(format!("{title}\n{}", table(&HEADER, &lines)));
    }
    parts.extend(shortages(study, rows));
    parts.push(summary(study, rows));
    parts.join("\n\n")
}

fn lines(study: &Study<'_>, row: &Row) -> Vec<Vec<String>> {
    let percent = |mean: Option<Mean>| {
        with_error(mean.map(|m| Mean { value: 100.0 * m.value, error: 100.0 * m.error, ..m }), 1)
    };
    let ratio = |scores: Option<Scores>| with_error(scores.map(|s| s.ratio), 2);
    let setting = &row.setting;
    let line = |(label, figures): (&str, &Figures)| {
        let repeated = figures.repeated_scores.filter(|_| setting.noise_db > 0.0);
        let mut line = vec![
            setting.sensors.to_string(),
            setting.noise_db.to_string(),
            setting.bands.to_string(),
            label.to_string(),
            percent(figures.repeated),
            figure(figures.repeated_spread_db, 2),
            ratio(repeated),
        ];
        line.extend(figures.bins.iter().map(|bin| percent(*bin)));
        line.extend([
            percent(figures.all_99),
            percent(figures.least_99()),
            percent(figures.new),
            figure(figures.rmse_db, 2),
            ratio(figures.scores),
            figures.failed.to_string(),
            figures.without_bars.to_string(),
        ]);
        line
    };
    study.labels().zip(&row.figures).map(line).collect()
}

fn with_error(mean: Option<Mean>, digits: usize) -> String {
    match mean {
        None => "-".into(),
        Some(Mean { value, error, .. }) if error.is_nan() => format!("{value:.digits$}"),
        Some(Mean { value, error, .. }) => format!("{value:.digits$}±{error:.digits$}"),
    }
}

/// What the tables cannot show: bins with fewer places than others, and why fits failed.
fn shortages(study: &Study<'_>, rows: &[Row]) -> Option<String> {
    let mut notes = Vec::new();
    for row in rows {
        let setting = format!(
            "{}, {} sensors, noise {} dB, {} bands",
            row.setting.truth.label(),
            row.setting.sensors,
            row.setting.noise_db,
            row.setting.bands
        );
        for (label, figures) in study.labels().zip(&row.figures) {
            if let Some(why) = &figures.failure {
                let failed = figures.failed;
                notes.push(format!("{setting}: {label} failed {failed} times, first: {why}"));
            }
        }
    }
    for sensors in &study.sensors {
        let Some(row) = rows.iter().find(|row| row.setting.sensors == *sensors) else { continue };
        let most = row.places.iter().copied().max().unwrap_or(0);
        for ((from, to), places) in BINS.iter().zip(row.places) {
            if places < most {
                notes.push(format!(
                    "{sensors} sensors: {places} of {most} places {from} to {to} m away found"
                ));
            }
        }
    }
    (!notes.is_empty()).then(|| notes.join("\n"))
}

/// A line a method: rows outside each bar.
fn summary(study: &Study<'_>, rows: &[Row]) -> String {
    let bars = held_to();
    let mut lines = vec![
        "rows outside the bars (in square brackets: by more than two standard errors)".to_string(),
    ];
    lines.extend(bars.iter().enumerate().map(|(i, bar)| format!("{}: {}", i + 1, bar.name)));
    for (who, label) in study.labels().enumerate() {
        let counts = bars.iter().enumerate().map(|(i, bar)| {
            let Count { rows, outside, clearly } = count(rows, who, bar.pick);
            format!("({}) {outside} of {rows} [{clearly}]", i + 1)
        });
        let counts: Vec<String> = counts.collect();
        let (failed, without) =
            (lost(rows, who, |f| f.failed), lost(rows, who, |f| f.without_bars));
        let counts = counts.join(", ");
        lines.push(format!(
            "{label}: {counts}; {failed} surveys failed, {without} without error bars"
        ));
    }
    lines.join("\n")
}

pub fn json(study: &Study<'_>, rows: &[Row]) -> Value {
    let summary: Vec<Value> = study
        .labels()
        .enumerate()
        .map(|(who, label)| {
            let of = |pick| {
                let Count { rows, outside, clearly } = count(rows, who, pick);
                json!({ "rows": rows, "outside": outside, "outside_by_two_se": clearly })
            };
            json!({
                "method": label,
                "repeated_90": of(|v| Some(v.repeated)),
                "bins_90": of(|v| v.bins), "bins_99": of(|v| v.ninety_nine),
                "score": of(|v| v.score), "repeated_score": of(|v| v.repeated_score),
                "failed": lost(rows, who, |f| f.failed),
                "without_bars": lost(rows, who, |f| f.without_bars),
            })
        })
        .collect();
    json!({
        "surveys": study.surveys, "seed": study.seed,
        "bars": {
            "repeated_90": bars::REPEATED, "bins_90": bars::BINS, "bins_90_few": bars::BINS_FEW,
            "bins_99": bars::NINETY_NINE, "score": bars::SCORE, "score_few": bars::SCORE_FEW,
            "few_sensors": bars::FEW,
        },
        "rows": rows.iter().map(|row| row_json(study, row)).collect::<Vec<_>>(),
        "summary": summary,
    })
}

fn row_json(study: &Study<'_>, row: &Row) -> Value {
    let setting = &row.setting;
    let methods: Vec<Value> = study
        .labels()
        .zip(&row.figures)
        .map(|(label, figures)| method_json(label, figures, row))
        .collect();
    json!({
        "truth": setting.truth.label(), "sensors": setting.sensors,
        "noise_db": setting.noise_db, "bands": setting.bands, "methods": methods,
    })
}

fn method_json(label: &str, figures: &Figures, row: &Row) -> Value {
    let bins: Vec<Value> = BINS
        .iter()
        .enumerate()
        .map(|(bin, (from, to))| {
            json!({
                "from_m": from, "to_m": to, "places": row.places[bin],
                "coverage_90": mean_json(figures.bins[bin]),
                "coverage_99": mean_json(figures.bins_99[bin]),
            })
        })
        .collect();
    // Without noise the true law's reading is exact but for what keeps its factorisation so: what
    // others score beside it says nothing.
    let beside_law = row.setting.noise_db > 0.0;
    json!({
        "method": label, "surveys": figures.surveys, "failed": figures.failed,
        "failure": figures.failure, "without_bars": figures.without_bars,
        "repeated": {
            "coverage_90": mean_json(figures.repeated), "spread_db": figures.repeated_spread_db,
            "score": scores_json(figures.repeated_scores, beside_law),
        },
        "distance": bins,
        "coverage_99": mean_json(figures.all_99), "least_99": mean_json(figures.least_99()),
        "new": {
            "rmse_db": figures.rmse_db, "coverage_90": mean_json(figures.new),
            "score": scores_json(figures.scores, true),
        },
    })
}

fn mean_json(mean: Option<Mean>) -> Value {
    mean.map_or(Value::Null, |m| json!({ "value": m.value, "se": m.error, "surveys": m.surveys }))
}

fn scores_json(scores: Option<Scores>, beside_law: bool) -> Value {
    scores.map_or(Value::Null, |scores| {
        let ratio = Some(scores.ratio).filter(|_| beside_law);
        json!({ "own": scores.own, "true_law": scores.law, "ratio": mean_json(ratio) })
    })
}
