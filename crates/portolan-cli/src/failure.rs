//! How a command can end other than well, and the exit code for each.

use portolan::score::ScoreError;
use portolan::{EstimateError, InputError};
use portolan_io::IoError;
use portolan_io::export::PartFailure;
use portolan_io::picture::PictureError;
#[cfg(feature = "paper")]
use portolan_paper::ReproduceError;

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub enum Failure {
    /// The request or the input is wrong.
    Input(String),
    /// It failed while running.
    Run(String),
    /// The user stopped it.
    Interrupted,
    /// Whoever reads our output has gone away: nothing to say, nothing wrong.
    OutputClosed,
}

impl Failure {
    pub fn input(message: impl Into<String>) -> Self {
        Failure::Input(message.into())
    }

    pub fn code(&self) -> u8 {
        match self {
            Failure::OutputClosed => 0,
            Failure::Run(_) => 1,
            Failure::Input(_) => 2,
            Failure::Interrupted => 130,
        }
    }

    pub fn message(&self) -> Option<&str> {
        match self {
            Failure::Input(message) | Failure::Run(message) => Some(message),
            Failure::Interrupted => Some("interrupted, no half file is left"),
            Failure::OutputClosed => None,
        }
    }

    /// Names the file that a wrong input came from.
    pub fn about(self, file: &std::path::Path) -> Self {
        match self {
            Failure::Input(message) => Failure::Input(format!("{}: {message}", file.display())),
            other => other,
        }
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        Failure::Input(match error {
            // What a method is told is named as its option is.
            InputError::NotUsed { .. } => format!("--{error}"),
            error => error.to_string(),
        })
    }
}

impl From<EstimateError> for Failure {
    fn from(error: EstimateError) -> Self {
        match error {
            EstimateError::Input(error) => error.into(),
            EstimateError::Cancelled => Failure::Interrupted,
            error => Failure::Run(error.to_string()),
        }
    }
}

impl From<PartFailure> for Failure {
    fn from(failure: PartFailure) -> Self {
        match failure {
            PartFailure::Draw(error) => error.into(),
            PartFailure::File(error) => error.into(),
        }
    }
}

impl From<ScoreError> for Failure {
    fn from(error: ScoreError) -> Self {
        Failure::Input(error.to_string())
    }
}

impl From<PictureError> for Failure {
    fn from(error: PictureError) -> Self {
        Failure::Input(error.to_string())
    }
}

#[cfg(feature = "paper")]
impl From<ReproduceError> for Failure {
    fn from(error: ReproduceError) -> Self {
        match error {
            ReproduceError::Stopped => Failure::Interrupted,
            error if error.is_input() => Failure::Input(error.to_string()),
            error => Failure::Run(error.to_string()),
        }
    }
}

impl From<IoError> for Failure {
    fn from(error: IoError) -> Self {
        if error.is_input() {
            Failure::Input(error.to_string())
        } else {
            Failure::Run(error.to_string())
        }
    }
}
