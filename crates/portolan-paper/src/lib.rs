//! The paper's tables and figures as experiments: what runs, how often, beside which printed number
//! ("Domain-Factored Untrained Deep Prior for Spectrum Cartography", Timilsina, Shrestha, Cheng and
//! Fu), and what only they need: the baselines `naive_unn` and `dgm`, which [`register`] adds to the
//! register of methods, `dgm`'s [`generator`] and its weights, and the paper's [`bound`]s.
//!
//! An [`Experiment`] is data: cells that name a scene, a method and the paper's number, made by
//! [`experiments`]. [`run`] runs their trials and writes every result to a
//! [`Journal`]; what the journal holds is never run again. [`Desk`] turns the journal into
//! markdown, CSV, JSON and pictures.

pub mod bound;
mod conventions;
mod data;
mod error;
mod experiment;
mod experiments;
mod files;
pub mod generator;
mod journal;
mod markdown;
mod methods;
mod pictures;
mod printed;
mod record;
mod runner;
mod scene;
mod summary;

pub use conventions::Convention;
pub use data::{City, Data, Floor, SurveyPlace};
pub use error::ReproduceError;
pub use experiment::{
    Call, Experiment, PictureKind, Scene, Section, Simulated, TableCell, TrialSetup,
};
pub use experiments::{NAMES, Size, experiments};
pub use files::{Desk, PAGE};
pub use journal::{FILE as JOURNAL, Journal};
pub use methods::{Dgm, DgmStart, NaiveSize, NaiveUnn, register};
pub use printed::{Printed, printed, printed_cells};
pub use record::{Figures, Metric, Outcome, Record};
pub use runner::{Done, RunSettings, Status, Watch, run};
pub use summary::{CellSummary, Mean};
