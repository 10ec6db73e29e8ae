//! Methods compared over many simulated maps ([`Simulated`]), or over random splits of a survey
//! ([`Splits`]): the harness that the command `portolan study` and the Python package share.
//!
//! ```
//! use portolan::simulate::Scenario;
//! use portolan::sense::{Sensing, SensorLayout};
//! use portolan::{Grid, Progress};
//! use portolan_study::{MethodCall, Simulated};
//!
//! let study = Simulated {
//!     calls: vec![MethodCall::parse("nearest")?, MethodCall::parse("kriging:trend=constant")?],
//!     scenario: Scenario { bands: 4, emitters: 2, ..Scenario::new(Grid::new(16, 16, 1.0)?) },
//!     sensing: Sensing::exact(SensorLayout::Fraction(0.3), 0),
//!     maps: 2,
//!     assumed: None,
//!     offset: None,
//! };
//! let found = study.run(&Progress::silent())?;
//! assert_eq!((found.len(), found[1].label.as_str()), (2, "kriging:trend=constant"));
//! assert!(found[1].rmse_db.mean < found[0].rmse_db.mean);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(missing_docs)]

mod batches;
mod call;
mod mean;
mod simulated;
mod splits;

pub use call::MethodCall;
pub use mean::Mean;
pub use simulated::{Judged, Simulated, Spent};
pub use splits::{SplitJudged, Splits};
