//! What one trial came to, and the line of the journal that says so.

use ndarray::Array2;
use serde_json::{Value, json};

/// A finished trial: its figures, or why the fit gave none.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    pub key: String,
    pub trial: usize,
    pub outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Scored(Figures),
    /// The numbers went wrong: counted, never hidden, never tried again.
    Failed(String),
}

/// All figures of one estimate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// With the data range of the true log map; none where too few cells are known.
    pub ssim: Option<f64>,
    /// With data range 2.
    pub ssim_strict: Option<f64>,
    /// By each of the [conventions](crate::Convention::ALL); empty where the truth is not known.
    pub ssim_by_convention: Vec<f64>,
    /// Second differences over the truth's.
    pub roughness: Option<f64>,
    /// Simulated: over all cells. Measured: over held-out measured cells.
    pub rmse_db: f64,
    /// At places off the grid, where there are any.
    pub off_grid_rmse_db: Option<f64>,
    /// The fit alone.
    pub fit_seconds: f64,
    /// With the start that some methods make for themselves.
    pub seconds: f64,
    /// Bands kept for a picture, in dB, rows x columns.
    pub fields: Vec<(usize, Array2<f32>)>,
}

/// A figure of which tables are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    Ssim,
    SsimStrict,
    RmseDb,
    Roughness,
    OffGridRmseDb,
    FitSeconds,
    Seconds,
}

impl Metric {
    pub const ALL: [Metric; 7] = [
        Metric::Ssim,
        Metric::SsimStrict,
        Metric::RmseDb,
        Metric::Roughness,
        Metric::OffGridRmseDb,
        Metric::FitSeconds,
        Metric::Seconds,
    ];

    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Metric::Ssim => "ssim",
            Metric::SsimStrict => "ssim_strict",
            Metric::RmseDb => "rmse_db",
            Metric::Roughness => "roughness",
            Metric::OffGridRmseDb => "off_grid_rmse_db",
            Metric::FitSeconds => "fit_seconds",
            Metric::Seconds => "seconds",
        }
    }

    /// Digits after the point that are worth printing.
    pub fn digits(self) -> usize {
        match self {
            Metric::Ssim | Metric::SsimStrict => 4,
            Metric::RmseDb | Metric::Roughness | Metric::OffGridRmseDb => 2,
            Metric::FitSeconds | Metric::Seconds => 2,
        }
    }

    pub fn of(self, figures: &Figures) -> Option<f64> {
        match self {
            Metric::Ssim => figures.ssim,
            Metric::SsimStrict => figures.ssim_strict,
            Metric::RmseDb => Some(figures.rmse_db),
            Metric::Roughness => figures.roughness,
            Metric::OffGridRmseDb => figures.off_grid_rmse_db,
            Metric::FitSeconds => Some(figures.fit_seconds),
            Metric::Seconds => Some(figures.seconds),
        }
    }
}

impl Record {
    /// One line of JSON, without its end.
    pub fn line(&self) -> String {
        let mut value = json!({ "key": self.key, "trial": self.trial });
        match &self.outcome {
            Outcome::Failed(why) => value["failed"] = json!(why),
            Outcome::Scored(figures) => {
                for metric in Metric::ALL {
                    value[metric.name()] = json!(metric.of(figures));
                }
                if !figures.ssim_by_convention.is_empty() {
                    value["ssim_by_convention"] = json!(figures.ssim_by_convention);
                }
                if !figures.fields.is_empty() {
                    let field = |(band, field): &(usize, Array2<f32>)| {
                        let db: Vec<Value> = field.iter().map(|v| hundredths(*v)).collect();
                        json!({ "band": band, "rows": field.nrows(), "db": db })
                    };
                    value["fields"] = figures.fields.iter().map(field).collect();
                }
            }
        }
        value.to_string()
    }

    /// The record that a line holds.
    pub fn parse(line: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let text = |name: &str| value[name].as_str().map(str::to_string);
        let key = text("key").ok_or("no key")?;
        let trial = value["trial"].as_u64().ok_or("no trial")? as usize;
        let number = |metric: Metric| value[metric.name()].as_f64();
        let needed = |metric: Metric| number(metric).ok_or(format!("no {}", metric.name()));
        let outcome = match text("failed") {
            Some(why) => Outcome::Failed(why),
            None => Outcome::Scored(Figures {
                ssim: number(Metric::Ssim),
                ssim_strict: number(Metric::SsimStrict),
                ssim_by_convention: parse_numbers(&value["ssim_by_convention"]),
                roughness: number(Metric::Roughness),
                rmse_db: needed(Metric::RmseDb)?,
                off_grid_rmse_db: number(Metric::OffGridRmseDb),
                fit_seconds: needed(Metric::FitSeconds)?,
                seconds: needed(Metric::Seconds)?,
                fields: parse_fields(&value["fields"])?,
            }),
        };
        Ok(Self { key, trial, outcome })
    }
}

/// Two digits are more than a picture shows; null stands for what is not finite.
fn hundredths(value: f32) -> Value {
    json!((f64::from(value) * 100.0).round() / 100.0)
}

fn parse_numbers(value: &Value) -> Vec<f64> {
    value.as_array().map_or(&[][..], Vec::as_slice).iter().filter_map(Value::as_f64).collect()
}

fn parse_fields(value: &Value) -> Result<Vec<(usize, Array2<f32>)>, String> {
    let list = value.as_array().map_or(&[][..], Vec::as_slice);
    list.iter()
        .map(|field| {
            let band = field["band"].as_u64().ok_or("a field without a band")? as usize;
            let rows = field["rows"].as_u64().ok_or("a field without rows")? as usize;
            let db = field["db"].as_array().ok_or("a field without values")?;
            let db: Vec<f32> = db.iter().map(|v| v.as_f64().unwrap_or(f64::NAN) as f32).collect();
            if rows == 0 || !db.len().is_multiple_of(rows) {
                return Err("a field whose rows differ in length".to_string());
            }
            let shape = (rows, db.len() / rows);
            let field = Array2::from_shape_vec(shape, db).map_err(|error| error.to_string())?;
            Ok((band, field))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_its_line() {
        let figures = Figures {
            ssim: Some(0.875),
            ssim_by_convention: vec![0.5, 0.25],
            rmse_db: 1.5,
            seconds: 2.0,
            fit_seconds: 1.0,
            fields: vec![(29, Array2::from_shape_fn((2, 3), |(i, j)| -0.25 * (i + j) as f32))],
            ..Figures::default()
        };
        for outcome in [Outcome::Scored(figures), Outcome::Failed("the fit diverged".into())] {
            let record = Record { key: "a | b".into(), trial: 3, outcome };
            assert!(!record.line().contains('\n'));
            assert_eq!(Record::parse(&record.line()), Ok(record));
        }
    }

    #[test]
    fn other_lines_are_refused() {
        for line in ["", "{", "{}", r#"{"key":"a","trial":0}"#, r#"{"key":"a","rmse_db":1}"#] {
            assert!(Record::parse(line).is_err(), "{line}");
        }
    }
}
