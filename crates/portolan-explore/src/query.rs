//! The words behind the question mark of an address.

use std::collections::HashMap;

use crate::answer::Refusal;

/// Names and values.
pub struct Query(pub HashMap<String, String>);

impl Query {
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }

    /// A finite number, where the name is there.
    pub fn number(&self, name: &str) -> Result<Option<f64>, Refusal> {
        let wrong = |text: &str| Refusal::input(format!("{name}={text}: expected a number"));
        let parse = |text: &str| {
            text.parse::<f64>().ok().filter(|number| number.is_finite()).ok_or_else(|| wrong(text))
        };
        self.text(name).map(parse).transpose()
    }

    /// What a reader of words makes of it, where the name is there.
    pub fn told<T>(
        &self,
        name: &str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Refusal> {
        let wrong = |error: String| Refusal::input(format!("{name}: {error}"));
        self.text(name).map(read).transpose().map_err(wrong)
    }

    /// Yes or no, and what it is where nothing is said.
    pub fn flag(&self, name: &str, usual: bool) -> Result<bool, Refusal> {
        match self.text(name) {
            None => Ok(usual),
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            Some(text) => Err(Refusal::input(format!("{name}={text}: expected true or false"))),
        }
    }

    /// A whole number, where the name is there.
    pub fn whole<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, Refusal> {
        let wrong = |text: &str| Refusal::input(format!("{name}={text}: expected a whole number"));
        self.text(name).map(|text| text.parse().map_err(|_| wrong(text))).transpose()
    }

    /// A whole number that must be there.
    pub fn needed<T: std::str::FromStr>(&self, name: &str) -> Result<T, Refusal> {
        self.whole(name)?.ok_or_else(|| Refusal::input(format!("{name} is missing")))
    }
}
