//! Tables and JSON of the study on public surveys.

use serde_json::{Value, json};

use super::tally::{Compared, NOMINAL, calibration, coverage_90, mean, rmse_db};
use super::{Found, Outcome, Row, unheard};
use crate::output::{figure, table};

impl Found<'_> {
    /// Methods that ran on every survey, in their order.
    fn labels(&self) -> Vec<&str> {
        let first = self.rows.first();
        first.map_or(Vec::new(), |row| row.outcomes.iter().map(|o| o.label.as_str()).collect())
    }

    fn ratio(&self, row: &Row<'_>, outcome: &Outcome) -> Option<f64> {
        let base = row.outcome(&self.base)?;
        Some(rmse_db(outcome.all())? / rmse_db(base.all())?)
    }

    fn mean_ratio(&self, label: &str) -> Option<f64> {
        mean(self.rows.iter().filter_map(|row| self.ratio(row, row.outcome(label)?)))
    }

    /// Every held-out reading of the study as one method saw it.
    fn everything(&self, label: &str) -> Vec<Compared> {
        let outcomes = self.rows.iter().filter_map(|row| row.outcome(label));
        outcomes.flat_map(Outcome::all).copied().collect()
    }
}

impl Row<'_> {
    /// Places that train and that test, and held-out readings, on average over the splits.
    fn sizes(&self) -> [f64; 3] {
        let of = |pick: fn(&(usize, usize)) -> usize| {
            mean(self.places.iter().map(|p| pick(p) as f64)).unwrap_or(f64::NAN)
        };
        let readings = self
            .outcomes
            .first()
            .and_then(|outcome| mean(outcome.splits.iter().map(|compared| compared.len() as f64)));
        [of(|p| p.0), of(|p| p.1), readings.unwrap_or(f64::NAN)]
    }
}

pub fn tables(found: &Found<'_>, splits: u64) -> String {
    let mut parts = vec![errors(found, splits), coverage(found)];
    parts.extend(transmitters(found));
    parts.extend(silence(found));
    parts.join("\n\n")
}

fn errors(found: &Found<'_>, splits: u64) -> String {
    let labels = found.labels();
    let others = || labels.iter().filter(|label| **label != found.base);
    let mut header = vec!["survey", "train", "places", "readings", found.base.as_str()];
    others().for_each(|label| header.extend([*label, "ratio"]));
    let mut lines: Vec<Vec<String>> = Vec::new();
    for row in &found.rows {
        let [train, _, readings] = row.sizes();
        let base = row.outcome(&found.base);
        let mut line = vec![
            row.survey.title.to_string(),
            row.rule.label(),
            format!("{train:.0}"),
            format!("{readings:.0}"),
            figure(base.and_then(|o| rmse_db(o.all())), 2),
        ];
        for outcome in others().filter_map(|label| row.outcome(label)) {
            line.push(figure(rmse_db(outcome.all()), 2));
            line.push(figure(found.ratio(row, outcome), 3));
        }
        lines.push(line);
    }
    let mut last: Vec<String> = ["mean ratio", "", "", "", ""].map(String::from).to_vec();
    for label in others() {
        last.extend([String::new(), figure(found.mean_ratio(label), 3)]);
    }
    lines.push(last);
    let several = if splits == 1 { "" } else { "s" };
    format!(
        "rmse in dB at held-out places, {splits} split{several}; ratios to {}\n{}",
        found.base,
        table(&header, &lines)
    )
}

fn coverage(found: &Found<'_>) -> String {
    let labels = found.labels();
    let header: Vec<&str> = ["survey", "train"].into_iter().chain(labels.iter().copied()).collect();
    let of = |row: &Row<'_>, label: &str| row.outcome(label).and_then(|o| coverage_90(o.all()));
    let line = |first: [&str; 2], value: &dyn Fn(&str) -> Option<f64>| {
        let percent = labels.iter().map(|label| figure(value(label).map(|v| 100.0 * v), 1));
        first.map(String::from).into_iter().chain(percent).collect()
    };
    let mut lines: Vec<Vec<String>> = found
        .rows
        .iter()
        .map(|row| line([row.survey.title, &row.rule.label()], &|label| of(row, label)))
        .collect();
    lines.push(line(["mean of the rows", ""], &|label| {
        mean(found.rows.iter().filter_map(|row| of(row, label)))
    }));
    lines.push(line(["all readings", ""], &|label| coverage_90(found.everything(label).iter())));
    format!("readings within their 90 % interval, in percent\n{}", table(&header, &lines))
}

/// Surveys whose transmitters are known: methods that used them.
fn transmitters(found: &Found<'_>) -> Option<String> {
    let known = |row: &&Row<'_>| row.outcomes.len() > found.labels().len();
    let rows: Vec<&Row<'_>> = found.rows.iter().filter(known).collect();
    let informed = &rows.first()?.outcomes[found.labels().len()..];
    let mut header = vec!["survey", "train", found.base.as_str()];
    for outcome in informed {
        header.extend([outcome.label.as_str(), "ratio", "90 % covers"]);
    }
    let lines: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let base = row.outcome(&found.base).and_then(|o| rmse_db(o.all()));
            let mut line = vec![row.survey.title.to_string(), row.rule.label(), figure(base, 2)];
            for outcome in &row.outcomes[found.labels().len()..] {
                line.push(figure(rmse_db(outcome.all()), 2));
                line.push(figure(found.ratio(row, outcome), 3));
                line.push(figure(coverage_90(outcome.all()).map(|v| 100.0 * v), 1));
            }
            line
        })
        .collect();
    Some(format!("with the places of the transmitters known\n{}", table(&header, &lines)))
}

fn silence(found: &Found<'_>) -> Option<String> {
    let header = [
        "survey",
        "method",
        "not heard",
        "heard rmse",
        "ratio",
        "overshoot",
        "together",
        "area",
        "90 % covers",
    ];
    let mut lines = Vec::new();
    for row in &found.silence {
        for outcome in &row.outcomes {
            lines.push(vec![
                row.survey.title.to_string(),
                outcome.label.clone(),
                if outcome.silence { "used" } else { "dropped" }.to_string(),
                figure(outcome.heard_rmse_db, 2),
                figure(against_dropped(row, outcome), 3),
                figure(outcome.overshoot_db, 2),
                figure(outcome.combined_db, 2),
                figure(outcome.area, 3),
                figure(outcome.coverage_90.map(|v| 100.0 * v), 1),
            ]);
        }
    }
    let floors = found.silence.iter().map(|row| {
        let (title, share) = (row.survey.title, 100.0 * row.share_heard);
        format!("{title}: {share:.0} % of entries heard, floor {:.1} dBm", row.floor_db)
    });
    let floors: Vec<String> = floors.collect();
    (!lines.is_empty()).then(|| {
        format!(
            "what was not heard, 25 % of the places train ({})\n{}",
            floors.join("; "),
            table(&header, &lines)
        )
    })
}

/// Heard rmse beside that of the same method with unheard entries dropped.
fn against_dropped(row: &unheard::Row<'_>, outcome: &unheard::Outcome) -> Option<f64> {
    let same = |other: &&unheard::Outcome| other.label == outcome.label && !other.silence;
    let dropped = row.outcomes.iter().find(same)?;
    outcome.silence.then_some(outcome.heard_rmse_db? / dropped.heard_rmse_db?)
}

pub fn json(found: &Found<'_>, splits: u64, seed: u64) -> Value {
    let labels = found.labels();
    let means: Vec<Value> = labels
        .iter()
        .map(|label| {
            json!({
                "method": label,
                "ratio": found.mean_ratio(label),
                "coverage_90": coverage_90(found.everything(label).iter()),
            })
        })
        .collect();
    json!({
        "splits": splits, "seed": seed, "ratio_to": found.base,
        "rows": found.rows.iter().map(|row| row_json(found, row)).collect::<Vec<_>>(),
        "means": means,
        "calibration": calibrations(found, &labels),
        "not_heard": found.silence.iter().map(silence_json).collect::<Vec<_>>(),
    })
}

fn row_json(found: &Found<'_>, row: &Row<'_>) -> Value {
    let [train, test, readings] = row.sizes();
    let methods: Vec<Value> = row
        .outcomes
        .iter()
        .map(|outcome| {
            let each: Vec<_> = outcome.splits.iter().map(|split| rmse_db(split.iter())).collect();
            json!({
                "method": outcome.label,
                "rmse_db": rmse_db(outcome.all()),
                "ratio": found.ratio(row, outcome),
                "split_rmse_db": each,
                "coverage_90": coverage_90(outcome.all()),
            })
        })
        .collect();
    json!({
        "survey": row.survey.name, "train": row.rule.label(),
        "places": row.survey.sites.len(), "bands": row.survey.bands.len(),
        "train_places": train, "test_places": test, "test_readings": readings,
        "methods": methods,
    })
}

fn calibrations(found: &Found<'_>, labels: &[&str]) -> Vec<Value> {
    let mut all = Vec::new();
    for survey in found.surveys() {
        for label in labels {
            let actual = calibration(&found.of_survey(survey.name, label));
            let actual = actual.map(|share| Some(share).filter(|v| !v.is_nan()));
            all.push(json!({
                "survey": survey.name, "method": label, "nominal": NOMINAL, "actual": actual,
            }));
        }
    }
    all
}

fn silence_json(row: &unheard::Row<'_>) -> Value {
    let methods: Vec<Value> = row
        .outcomes
        .iter()
        .map(|outcome| {
            json!({
                "method": outcome.label, "not_heard_used": outcome.silence,
                "heard_rmse_db": outcome.heard_rmse_db,
                "ratio_to_dropped": against_dropped(row, outcome),
                "overshoot_db": outcome.overshoot_db, "combined_db": outcome.combined_db,
                "area_under_curve": outcome.area, "coverage_90": outcome.coverage_90,
            })
        })
        .collect();
    json!({
        "survey": row.survey.name, "train": "25 %", "floor_dbm": row.floor_db,
        "share_heard": row.share_heard, "methods": methods,
    })
}
