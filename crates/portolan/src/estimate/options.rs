//! Options of a method as the user gives them: `key=value`, each known, each used.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;

use crate::engine::{CpuEngine, Engine};
use crate::error::InputError;

/// One option of a method, as `portolan methods` shows it.
#[derive(Clone, Copy, Debug)]
pub struct OptionSpec {
    /// Its key in `key=value`.
    pub name: &'static str,
    /// The default in words or figures, and where it comes from.
    pub default: &'static str,
    /// What may be given.
    pub takes: &'static str,
}

/// The option behind a descent's tolerance, where it is off by default.
pub const TOLERANCE: OptionSpec = OptionSpec {
    name: "tolerance",
    default: "0",
    takes: "stop once the loss changes relatively less; 0 = never",
};

/// The options given for one method. Each read names the option; whatever the method's list does
/// not hold was refused when this was made.
#[derive(Clone, Debug)]
pub struct Options {
    method: &'static str,
    given: BTreeMap<String, String>,
    engine: Arc<dyn Engine>,
}

impl Options {
    pub(crate) fn new(
        method: &'static str,
        known: &[&[OptionSpec]],
        given: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, InputError> {
        let mut map = BTreeMap::new();
        for (option, value) in given {
            if !known.iter().copied().flatten().any(|spec| spec.name == option) {
                let names: Vec<_> = known.iter().copied().flatten().map(|s| s.name).collect();
                let known = if names.is_empty() { "none".into() } else { names.join(", ") };
                return Err(InputError::UnknownOption { method, option, known });
            }
            map.insert(option, value);
        }
        Ok(Self { method, given: map, engine: Arc::new(CpuEngine) })
    }

    /// The same for another engine than the processor.
    pub(crate) fn on(self, engine: Arc<dyn Engine>) -> Self {
        Self { engine, ..self }
    }

    /// What runs the fits of decoders.
    pub fn engine(&self) -> Arc<dyn Engine> {
        self.engine.clone()
    }

    /// The error for a value that cannot be used.
    pub fn wrong(&self, option: &str, expected: impl Into<String>) -> InputError {
        InputError::OptionValue {
            method: self.method,
            option: option.into(),
            value: self.given.get(option).cloned().unwrap_or_default(),
            expected: expected.into(),
        }
    }

    /// The value of an option, where it was given.
    pub fn get<T: FromStr>(&self, option: &str, takes: &str) -> Result<Option<T>, InputError> {
        self.given
            .get(option)
            .map(|text| text.parse().map_err(|_| self.wrong(option, format!("expected {takes}"))))
            .transpose()
    }

    /// A number in a range, where it was given.
    pub fn number(
        &self,
        option: &str,
        range: std::ops::Range<f64>,
    ) -> Result<Option<f64>, InputError> {
        match self.get::<f64>(option, "a number")? {
            Some(value) if !range.contains(&value) || !value.is_finite() => {
                Err(self.wrong(option, format!("expected {}", in_words(&range))))
            }
            value => Ok(value),
        }
    }

    /// A whole number in a range, where it was given.
    pub fn count(
        &self,
        option: &str,
        range: std::ops::RangeInclusive<usize>,
    ) -> Result<Option<usize>, InputError> {
        match self.get::<usize>(option, "a whole number")? {
            Some(value) if !range.contains(&value) => Err(self.wrong(
                option,
                format!("expected a whole number from {} to {}", range.start(), range.end()),
            )),
            value => Ok(value),
        }
    }

    /// One of several names, where it was given.
    pub fn choice<T: Copy>(
        &self,
        option: &str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, InputError> {
        let Some(text) = self.given.get(option) else { return Ok(None) };
        match choices.iter().find(|(name, _)| name == text) {
            Some((_, value)) => Ok(Some(*value)),
            None => {
                let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
                Err(self.wrong(option, format!("expected {}", names.join(" | "))))
            }
        }
    }
}

/// A range of numbers as a user would say it.
fn in_words(range: &std::ops::Range<f64>) -> String {
    let low = if range.start == f64::MIN_POSITIVE {
        "above 0".to_string()
    } else {
        format!("of {} or more", range.start)
    };
    if range.end.is_finite() {
        format!("a number {low}, below {}", range.end)
    } else {
        format!("a number {low}")
    }
}
