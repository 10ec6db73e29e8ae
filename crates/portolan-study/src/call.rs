//! A method with its options, as people write it.

use std::sync::Arc;

use portolan::engine::Engine;
use portolan::estimate::method;
use portolan::{InputError, Method};

/// A method of the register, its options and what runs its fits.
#[derive(Clone, Debug)]
pub struct MethodCall {
    /// What tables call it.
    pub label: String,
    /// Its name in the register.
    pub name: String,
    /// Its options.
    pub settings: Vec<(String, String)>,
    /// What runs the fits, where it is not the processor.
    pub engine: Option<Arc<dyn Engine>>,
}

impl MethodCall {
    /// "name" or "name:key=value:key=value".
    ///
    /// # Errors
    /// If it is written otherwise, or there is no such method or option.
    pub fn parse(text: &str) -> Result<Self, InputError> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default().trim().to_string();
        let setting = |part: &str| {
            let (key, value) = part.split_once('=').ok_or_else(|| {
                InputError::Request(format!("method '{text}': expected name:key=value"))
            })?;
            Ok((key.to_string(), value.to_string()))
        };
        let settings = parts.map(setting).collect::<Result<_, InputError>>()?;
        Self::new(text.to_string(), name, settings)
    }

    /// A method that is called `label` in tables.
    ///
    /// # Errors
    /// If there is no such method or option.
    pub fn new(
        label: String,
        name: String,
        settings: Vec<(String, String)>,
    ) -> Result<Self, InputError> {
        let call = Self { label, name, settings, engine: None };
        call.build()?;
        Ok(call)
    }

    /// The method with its options set.
    ///
    /// # Errors
    /// If there is no such method or option.
    pub fn build(&self) -> Result<Box<dyn Method>, InputError> {
        let (method, settings) = (method(&self.name)?, self.settings.clone());
        match &self.engine {
            Some(engine) => method.build_on(engine.clone(), settings),
            None => method.build(settings),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_mistakes_are_named() {
        let call = MethodCall::parse("kriging:trend=linear:covariance=matern32").unwrap();
        assert_eq!((call.name.as_str(), call.settings.len()), ("kriging", 2));
        for (text, word) in [
            ("krigging", "krigging"),
            ("kriging:trend", "name:key=value"),
            ("idw:powre=2", "powre"),
        ] {
            let error = MethodCall::parse(text).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
