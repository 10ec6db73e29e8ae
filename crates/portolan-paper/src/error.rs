//! Why an experiment could not be run.

use std::path::PathBuf;

use portolan::InputError;
use portolan_io::IoError;
use portolan_io::picture::PictureError;
use thiserror::Error;

/// What can go wrong while the paper is reproduced.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReproduceError {
    /// A name that is no experiment.
    #[error("there is no experiment '{name}': choose one of {known}")]
    Unknown { name: String, known: String },
    /// Real measurements are needed and were not named.
    #[error(
        "{what}: no measured data: give --data DIR or set PORTOLAN_DATA to a folder with {}",
        crate::data::WHERE
    )]
    NoData { what: String },
    /// A scene that cannot be made.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A file that cannot be read or written.
    #[error(transparent)]
    Io(#[from] IoError),
    /// A picture that cannot be drawn.
    #[error(transparent)]
    Picture(#[from] PictureError),
    /// The journal cannot be read or written.
    #[error("{}: {source}", path.display())]
    Journal { path: PathBuf, source: std::io::Error },
    /// A journal that was written by something else.
    #[error("{}, line {line}: {problem}: give another --out", path.display())]
    BadJournal { path: PathBuf, line: usize, problem: String },
    /// Somebody else writes to the same folder.
    #[error("{} is in use by another run: wait for it or give another --out", path.display())]
    Busy { path: PathBuf },
    /// The user stopped it.
    #[error("stopped before all records were made")]
    Stopped,
}

impl ReproduceError {
    /// True where the request or the input is wrong, false where the machine failed while running.
    pub fn is_input(&self) -> bool {
        match self {
            ReproduceError::Io(error) => error.is_input(),
            ReproduceError::Journal { .. } | ReproduceError::Stopped => false,
            _ => true,
        }
    }
}
