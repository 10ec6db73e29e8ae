//! What can go wrong with a file, in one line that names it, the place in it and what was expected.

use std::io;
use std::path::{Path, PathBuf};

use portolan::InputError;
use thiserror::Error;

/// A file that cannot be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum IoError {
    /// What the file holds is not what was expected.
    #[error("{}: {problem}", path.display())]
    Content { path: PathBuf, problem: String },
    /// The input does not exist or may not be opened.
    #[error("{}: cannot be opened: {source}", path.display())]
    Open { path: PathBuf, source: io::Error },
    /// The output exists and may not be replaced.
    #[error("{}: exists already: choose another name, or replace it with --force", path.display())]
    Exists { path: PathBuf },
    /// The output's name or folder cannot be used, or its format cannot hold the data.
    #[error("{}: cannot be written: {problem}", path.display())]
    Target { path: PathBuf, problem: String },
    /// Reading broke off: a failing disk or network.
    #[error("{}: reading failed: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    /// Writing broke off: a full disk, a folder that may not be written to.
    #[error("{}: writing failed: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

impl IoError {
    /// True where the request or the input is wrong, false where the machine failed while running.
    pub fn is_input(&self) -> bool {
        !matches!(self, IoError::Read { .. } | IoError::Write { .. })
    }

    /// The file it is about.
    pub fn path(&self) -> &Path {
        match self {
            IoError::Content { path, .. }
            | IoError::Open { path, .. }
            | IoError::Exists { path }
            | IoError::Target { path, .. }
            | IoError::Read { path, .. }
            | IoError::Write { path, .. } => path,
        }
    }
}

/// The outcome of reading or writing a file.
pub type Result<T> = std::result::Result<T, IoError>;

/// What is wrong inside a file whose name the caller knows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Problem(String);

/// The outcome of a step that does not know the file's name.
pub(crate) type Check<T> = std::result::Result<T, Problem>;

impl Problem {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn in_file(self, path: &Path) -> IoError {
        IoError::Content { path: path.to_owned(), problem: self.0 }
    }

    pub fn in_target(self, path: &Path) -> IoError {
        IoError::Target { path: path.to_owned(), problem: self.0 }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<InputError> for Problem {
    fn from(error: InputError) -> Self {
        Self(error.to_string())
    }
}

/// A name or field out of a file, fit for one line: control characters escaped, long text cut.
pub(crate) fn quoted(text: &str) -> String {
    const LONGEST: usize = 40;
    let mut shown: String = text.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if text.chars().nth(LONGEST).is_some() {
        shown.push_str("...");
    }
    format!("'{shown}'")
}

/// A number out of a file, fit for one line: hundreds of digits say no more than an exponent.
pub(crate) fn shown(value: f64) -> String {
    match value.abs() {
        size if size == 0.0 || (1e-5..1e15).contains(&size) => value.to_string(),
        _ => format!("{value:e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_machine_s_failures_are_not_input() {
        let path = PathBuf::from("a.npz");
        let full = io::Error::from(io::ErrorKind::StorageFull);
        assert!(!IoError::Write { path: path.clone(), source: full }.is_input());
        assert!(IoError::Exists { path: path.clone() }.is_input());
        let error = Problem::new("line 3, column 'row': expected a number").in_file(&path);
        assert!(error.is_input());
        assert_eq!(error.to_string(), "a.npz: line 3, column 'row': expected a number");
    }

    #[test]
    fn hostile_names_stay_on_one_line() {
        assert_eq!(quoted("a\nb"), r"'a\nb'");
        assert!(quoted(&"x".repeat(5000)).len() < 60);
        let numbers = [1e300, -2.5, 0.0, f64::NAN, f64::INFINITY, 1e-300].map(shown);
        assert_eq!(numbers, ["1e300", "-2.5", "0", "NaN", "inf", "1e-300"]);
    }
}
